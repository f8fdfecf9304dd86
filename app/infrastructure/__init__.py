"""External parts of a process other than storage and models: Redis, Celery, the clock, metrics, the watchdog."""

"""What a process needs from outside beside storage and models: Redis, Celery, the clock, metrics, the watchdog."""

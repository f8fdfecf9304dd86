"""The only place that knows the database, Redis, Celery and model libraries."""

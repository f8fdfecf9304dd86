"""Load, call the core, call a port, save; no SQL, no HTTP, no Celery."""

"""What the service does, a folder for each kind of work: load, ask the core, call a port, save. No HTTP, no Celery."""

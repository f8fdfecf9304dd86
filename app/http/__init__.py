"""The HTTP API: short routes that call the services."""

"""HTTP: routes of a few lines over the services."""

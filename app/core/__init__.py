"""The pure core. Its packages form a line: each imports only those before it (see pyproject.toml)."""

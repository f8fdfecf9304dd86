"""The SQL of the use cases, a repository for each kind of row."""

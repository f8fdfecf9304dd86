"""The SQL of the use cases; one repository for each kind of row."""

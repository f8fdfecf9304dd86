"""What code decides about a summary: exact checks, what is asked about again, what is changed, and the record of it."""

"""What code decides about a summary: exact checks, questions to the model, changes, and the record of the changes."""

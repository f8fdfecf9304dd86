"""Finds the parts of the history that fit a question: recall, search, and the reply of the offline model."""

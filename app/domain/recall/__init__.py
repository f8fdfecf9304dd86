"""Recall: which messages that would not be served a question needs, and which of them fit."""

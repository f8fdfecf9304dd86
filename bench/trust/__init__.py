"""Tests whether summaries can be trusted: conversations, recorded answers of a strong writer, and planted lies."""

"""The requests to a summarizer, and the reading of its answers."""

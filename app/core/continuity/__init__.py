"""Measures what a conversation can still answer after a compaction, by probes made of the folded messages."""

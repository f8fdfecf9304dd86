"""What a conversation can still answer after a compaction: probes of what was folded, asked of what is served."""

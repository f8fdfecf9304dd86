"""Compaction: when it is due, which process holds it, the attempts, the fenced write, and how its end is ensured."""

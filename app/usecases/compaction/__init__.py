"""Compaction: when it is due, who holds it, the attempts, the fenced write, and what makes sure that it ends."""

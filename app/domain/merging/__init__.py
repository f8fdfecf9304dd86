"""From an accepted candidate to a state version: merged, completed, pruned, applied."""

"""Keys, statistics, metrics."""

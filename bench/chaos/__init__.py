"""A campaign of faults against the whole service, and a checker of what must hold: ``python -m bench.chaos``."""

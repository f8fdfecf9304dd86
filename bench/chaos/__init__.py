"""A campaign of faults against the whole service, and a checker that proves what must hold: ``python -m bench.chaos``."""

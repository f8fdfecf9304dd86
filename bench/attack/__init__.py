"""Attacks on a running service from outside, and what holds: see ``docs/attacks.md``."""

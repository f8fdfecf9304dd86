"""Attacks a running service from outside, and checks what holds: see ``docs/attacks.md``."""

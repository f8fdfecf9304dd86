"""Measurements, each a command (``python -m bench.<name>``) that prints a table and writes JSON.

Nothing that runs imports this package, and nothing of it is shipped.
"""

"""Measurements, each a command (``python -m bench.<name>``) that prints a table and writes JSON.

The running service does not import this package, and the package is not shipped.
"""

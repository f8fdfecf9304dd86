"""Segments: how a history is cut, and what is told of each stretch."""

"""Segments: cutting a history into stretches, and describing each stretch."""

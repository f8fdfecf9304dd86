"""Verification of a state by a model after it was written."""

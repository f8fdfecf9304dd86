"""Tokens: estimated, calibrated against what providers report, and shown as a gauge."""

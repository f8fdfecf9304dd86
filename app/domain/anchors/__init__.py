"""Anchors: finding them, their status, and what of them is served."""

"""Figures of a commit, kept so that a later one can be compared with it."""

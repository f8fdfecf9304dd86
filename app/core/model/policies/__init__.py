"""Policies and presets: what a conversation may be told to do."""

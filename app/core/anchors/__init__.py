"""Anchors: passages that no paraphrase should replace, and what becomes of them."""

"""Segments: stretches of covered messages, their levels of detail, and the markers that lead back to them."""

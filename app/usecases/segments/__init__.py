"""Segments: expanded to any level of detail, and described in more detail in the background."""

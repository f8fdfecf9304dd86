"""Segments: expanded to any level of detail, and told in more detail in the background."""

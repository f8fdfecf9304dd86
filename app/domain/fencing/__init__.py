"""Texts as data: fenced, escaped, without secrets, and shown in part where they are giant."""

"""Texts of the service's own, in the language of a conversation."""

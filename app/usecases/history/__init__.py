"""Conversations and messages: appended, pinned, erased, exported."""

"""The protocol of the AI SDK's ``useChat``: UI messages, and their stream (version 1)."""

"""Conversations as frontends of the AI SDK keep them: one message for everything that an answer consists of."""

"""Conversations as the frontends of the AI SDK keep them: one message for all that an answer is made of."""

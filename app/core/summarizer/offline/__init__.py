"""The summarizer without a model: it quotes messages."""

"""A chat turn: the message, the model, its tools, the reply."""

"""What a model is sent as context, and what is recalled for it."""

"""What a model would be sent, and what is recalled for it."""

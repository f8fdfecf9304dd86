"""What the service says itself, in the language of a conversation."""

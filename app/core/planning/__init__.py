"""What to fold, and what to hold."""

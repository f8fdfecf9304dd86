"""Messages read as passages: who says what, which passages are data, and what each is worth."""

"""Messages read as passages: who says what, what of it is data, and what it is worth."""

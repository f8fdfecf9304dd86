"""What a summarizer is asked, what it answers, and the one that needs no model."""

"""What a summarizer is asked, and how its answer is read."""

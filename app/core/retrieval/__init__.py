"""What of the history fits a question: recall, search, and the reply of the offline model."""

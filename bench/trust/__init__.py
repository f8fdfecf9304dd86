"""Whether summaries can be trusted: conversations, recorded answers of a strong writer, planted lies, and the bench."""

"""What clients of OpenAI's API ask for: answers with and without a conversation, responses, forks, compacted input."""

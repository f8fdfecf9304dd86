"""Conversations, messages, states, records, errors: the values that everything else works on."""

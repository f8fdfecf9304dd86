"""The context of a turn: put together, kept within its budget, written in a provider's form."""

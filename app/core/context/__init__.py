"""The context of a turn: assembled, kept within its budget, and written in a provider's form."""

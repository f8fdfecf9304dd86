"""Planning compactions: when, which messages are folded, and which are held."""

"""A state, its versions, where each entry came from, and what differs between two of them."""

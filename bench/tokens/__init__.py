"""Fits the token estimator's prices to the Gemma 3 vocabulary, and measures its error."""

"""The token estimator against the Gemma 3 vocabulary: how its prices come to be, and how far off it is."""

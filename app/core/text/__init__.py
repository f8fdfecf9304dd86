"""Taking texts apart: sentences, and the exact values that a text states."""

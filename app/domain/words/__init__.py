"""Taking texts apart: sentences, words, languages, exact values, and how alike two texts are."""

"""Texts: sentences, words, values, languages, tokens, escaping and limits. Nothing here depends on conversations."""

"""Texts: sentences, words, values, languages, tokens; what escapes and bounds them. It knows no message."""

"""Throughline: conversations that go on for ever, kept whole."""

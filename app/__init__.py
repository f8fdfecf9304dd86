"""Throughline: conversations that may go on for ever and stay whole."""

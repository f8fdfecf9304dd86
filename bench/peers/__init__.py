"""Compares Throughline with what people would use instead: frameworks' own memories, and two bare services."""

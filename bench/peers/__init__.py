"""Throughline beside what people would pick instead: frameworks' own memories, and two bare services."""

"""Shim."""

from app.domain.words.text import sentences as sentences


def sentence_spans(text: str) -> list[tuple[int, int]]:
    found, start = [], 0
    for s in sentences(text):
        at = text.find(s, start)
        if at < 0:
            continue
        found.append((at, at + len(s)))
        start = at + len(s)
    return found

"""What anchors are called in a prompt: by their message and their place in it, so that names need no table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from app.core.model.anchors import Anchor, FoundAnchor


def names_of(anchors: Iterable[FoundAnchor]) -> list[tuple[str, FoundAnchor]]:
    """The anchors by place, each with its name: the second one of message 12 is ``P12-2``.

    A message's anchors have the same names whatever others are left out.
    """
    ordered = sorted(anchors, key=lambda anchor: (anchor.seq, anchor.offset, anchor.type))
    count: Counter[int] = Counter()
    named: list[tuple[str, FoundAnchor]] = []
    for anchor in ordered:
        count[anchor.seq] += 1
        named.append((f"P{anchor.seq}-{count[anchor.seq]}", anchor))
    return named


def by_name(anchors: Iterable[Anchor]) -> Mapping[str, Anchor]:
    """Stored anchors by their names."""
    return {name: anchor for name, anchor in names_of(anchors) if isinstance(anchor, Anchor)}

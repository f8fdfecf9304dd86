"""Finds what superseded anchors say: their words, and which of their values a later statement changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from app.core.anchors.topics import topic_with_times
from app.core.model.anchors import Anchor
from app.core.text.repeating import contain_each_other, is_little_more_than


class OutdatedAnchors:
    """Superseded anchors by their message, each with the active anchor that finally replaced it."""

    def __init__(self, superseded: Sequence[Anchor], active: Iterable[Anchor] = ()) -> None:
        self._known: Mapping[UUID, Anchor] = {one.id: one for one in [*superseded, *active]}
        self._by_seq: dict[int, list[Anchor]] = {}
        for one in superseded:
            self._by_seq.setdefault(one.seq, []).append(one)

    def successor(self, text: str, seqs: Iterable[int]) -> Anchor | None:
        """The active anchor that replaced one that this text repeats word for word; ``None`` if it repeats none."""
        found = (one for seq in seqs for one in self._by_seq.get(seq, ()) if is_little_more_than(text, one.content))
        last = next((self._last_successor(one) for one in found), None)
        return last if last is not None and last.status == "active" else None

    def outdated_values(self, sentence: str, seq: int) -> frozenset[str] | None:
        """The changed values in a sentence of a message, in lower case; ``None``: nothing of the sentence holds."""
        changed: set[str] = set()
        for one in self._by_seq.get(seq, ()):
            if contain_each_other(sentence, one.content):
                last = self._last_successor(one)
                classes = topic_with_times(last.content).classes if last is not one else frozenset[str]()
                stale = {value for class_, value in topic_with_times(sentence).values if class_ in classes}
                if not stale:
                    return None
                changed |= stale
        return frozenset(changed)

    def is_repeated_by(self, text: str) -> bool:
        """Whether a text says hardly more than a superseded anchor."""
        return any(is_little_more_than(text, one.content) for found in self._by_seq.values() for one in found)

    def _last_successor(self, anchor: Anchor) -> Anchor:
        seen = {anchor.id}
        while (
            successor := self._known.get(anchor.superseded_by) if anchor.superseded_by else None
        ) and successor.id not in seen:
            seen.add(successor.id)
            anchor = successor
        return anchor

"""What anchors say that does not hold any more: their words, and which of their values a later statement changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from app.core.anchors.topics import topic_of
from app.core.model.anchors import Anchor
from app.core.text.relative import undated
from app.core.text.speakers import without_speaker

_MOSTLY: Final = 0.7  # of a text that goes with what it repeats: what else it says would go too
_LEAST: Final = 8  # characters; what is shorter stands in too many texts


class Outdated:
    """Superseded anchors by their message, and the active one that each gave way to in the end."""

    def __init__(self, superseded: Sequence[Anchor], active: Iterable[Anchor] = ()) -> None:
        self._known: Mapping[UUID, Anchor] = {one.id: one for one in [*superseded, *active]}
        self._by_seq: dict[int, list[Anchor]] = {}
        for one in superseded:
            self._by_seq.setdefault(one.seq, []).append(one)

    def successor(self, text: str, seqs: Iterable[int]) -> Anchor | None:
        """The active anchor that took the place of what this text repeats word for word; ``None`` if it does not."""
        found = (one for seq in seqs for one in self._by_seq.get(seq, ()) if is_only(text, one.content))
        last = next((self._last(one) for one in found), None)
        return last if last is not None and last.status == "active" else None

    def values(self, sentence: str, seq: int) -> frozenset[str] | None:
        """The values in a sentence of a message that changed, in lower case; ``None``: all that it says did."""
        changed: set[str] = set()
        for one in self._by_seq.get(seq, ()):
            if repeats(sentence, one.content):
                last = self._last(one)
                classes = topic_of(last.content).classes if last is not one else frozenset[str]()
                stale = {value for class_, value in topic_of(sentence).values if class_ in classes}
                if not stale:
                    return None
                changed |= stale
        return frozenset(changed)

    def says(self, text: str) -> bool:
        """Whether a text says hardly more than something that was superseded."""
        return any(is_only(text, one.content) for found in self._by_seq.values() for one in found)

    def _last(self, one: Anchor) -> Anchor:
        seen = {one.id}
        while (by := self._known.get(one.superseded_by) if one.superseded_by else None) and by.id not in seen:
            seen.add(by.id)
            one = by
        return one


def is_only(text: str, quote: str) -> bool:
    """Whether a text says hardly more than the quote."""
    return repeats(text, quote) and len(plain_of(undated(quote))) >= _MOSTLY * len(plain_of(undated(text)))


def repeats(text: str, quote: str) -> bool:
    """Whether one of the two is part of the other, speaker, case and spaces aside."""
    one, other = plain_of(undated(text)), plain_of(undated(quote))
    return min(len(one), len(other)) >= _LEAST and (one in other or other in one)


def plain_of(text: str) -> str:
    """A text without its speaker, its end, its case and its line breaks."""
    return without_speaker(" ".join(text.split())).rstrip(".!?…。！？ ").casefold()

"""Checks the anchors that a model proposes: only verbatim quotes of a message of the span are accepted."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, get_args

from app.core.anchors.detect import found_anchor
from app.core.anchors.pasting import is_pasted
from app.core.anchors.tables import MAX_STATEMENT_LENGTH
from app.core.model.anchors import AnchorType, FoundAnchor
from app.core.model.candidate import AnchorProposal
from app.core.model.conversation import Message
from app.core.model.redaction import redact
from app.core.text.identifiers import find_identifiers
from app.core.text.words import words

MAX_PROPOSALS: Final = 24
"""The most proposals that are accepted from one candidate: a model that proposes everything has chosen nothing."""

_MIN_QUOTE_LENGTH: Final = 3  # characters, and at least one word with content
_TYPES: Final = frozenset(get_args(AnchorType))


def accepted_anchors(
    proposals: Sequence[AnchorProposal], span: Sequence[Message], known: Sequence[FoundAnchor]
) -> tuple[FoundAnchor, ...]:
    """The accepted proposals as anchors, in order of position.

    A quote must be in the message that it names, apart from spaces; if it is in exactly one other message of the span
    instead, it is taken from there. The message's own text is stored, redacted like every anchor.

    Args:
        proposals: The proposals of the candidate.
        span: The folded messages.
        known: Anchors of the span that are already known: a quote that overlaps one of them is a double.
    """
    texts = {message.seq: _SearchableText.of(message) for message in span if message.is_spoken}
    taken_spans = [_span_in_message(anchor) for anchor in known]
    accepted: list[FoundAnchor] = []
    for proposal in proposals:
        found = _located_anchor(proposal, texts)
        if found is None or len(accepted) >= MAX_PROPOSALS:
            continue
        found_span = _span_in_message(found)
        if not any(_overlap(found_span, other) for other in taken_spans):
            taken_spans.append(found_span)
            accepted.append(found)
    return tuple(sorted(accepted, key=lambda anchor: (anchor.seq, anchor.offset)))


def quoted_anchors(
    proposals: Sequence[AnchorProposal], span: Sequence[Message], known: Sequence[FoundAnchor]
) -> list[FoundAnchor]:
    """The known anchors that a proposal quotes, in whole or in part."""
    texts = {message.seq: _SearchableText.of(message) for message in span if message.is_spoken}
    places = [_span_in_message(found) for proposal in proposals if (found := _located_anchor(proposal, texts))]
    return [anchor for anchor in known if any(_overlap(_span_in_message(anchor), place) for place in places)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _SearchableText:
    """A message's text with single spaces, and a way from its places to places in the content."""

    message: Message
    redacted: str
    plain: str
    runs: tuple[int, ...]
    """The places in ``plain`` where words begin."""
    places: tuple[int, ...]
    """The places in the content where the same words begin."""

    @classmethod
    def of(cls, message: Message) -> _SearchableText:
        content, runs, places, position, length = message.content, list[int](), list[int](), 0, 0
        pieces = content.split()
        for piece in pieces:
            position = content.index(piece, position)
            runs.append(length)
            places.append(position)
            position += len(piece)
            length += len(piece) + 1
        return cls(
            message=message,
            redacted=redact(content),
            plain=" ".join(pieces),
            runs=tuple(runs),
            places=tuple(places),
        )

    def place(self, index: int) -> int:
        """The place in the content of a character of ``plain``."""
        run = bisect_right(self.runs, index) - 1
        return self.places[run] + index - self.runs[run]

    def find(self, quote: str) -> tuple[int, int] | None:
        """(start, end) in the content of the first occurrence of the quote as whole words; ``None`` without one."""
        start = self.plain.find(quote)
        while start >= 0:
            end = start + len(quote)
            if _is_word_boundary(self.plain, start) and _is_word_boundary(self.plain, end):
                return self.place(start), self.place(end - 1) + 1
            start = self.plain.find(quote, start + 1)
        return None


def _located_anchor(proposal: AnchorProposal, texts: dict[int, _SearchableText]) -> FoundAnchor | None:
    quote = " ".join(proposal.quote.split())
    if proposal.type not in _TYPES or not _MIN_QUOTE_LENGTH <= len(quote) <= MAX_STATEMENT_LENGTH or not words(quote):
        return None
    named = texts.get(proposal.seq)
    place = named.find(quote) if named else None
    if named and place:
        return _anchor_at(proposal.type, named, place)
    others = [(text, found) for text in texts.values() if (found := text.find(quote))]
    return _anchor_at(proposal.type, *others[0]) if len(others) == 1 else None


def _anchor_at(type_: AnchorType, text: _SearchableText, place: tuple[int, int]) -> FoundAnchor | None:
    start, end = place
    quote = text.message.content[start:end]
    content = quote if text.redacted == text.message.content else redact(quote)
    if content == quote and quote not in text.redacted:
        return None  # it has a part of a secret that only the whole message reveals
    pasted = is_pasted(text.message, start)
    found = found_anchor(text.message, type_, content, start, find_identifiers(content), pasted=pasted)
    return replace(found, proposed_by="model")


def _is_word_boundary(text: str, index: int) -> bool:
    around = text[max(index - 1, 0) : index + 1]
    # In scripts without spaces every place is such a boundary.
    return index in {0, len(text)} or not around.isalnum() or not around.isascii()


def _span_in_message(anchor: FoundAnchor) -> tuple[int, int, int]:
    return anchor.seq, anchor.offset, anchor.offset + len(anchor.content)


def _overlap(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]

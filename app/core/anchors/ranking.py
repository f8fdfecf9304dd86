"""What a summarizer's answer says of the anchors that it was shown: it ranks them, and alone changes no status."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from app.core.anchors.naming import by_name
from app.core.anchors.proposals import quoted
from app.core.model.anchors import Anchor, AnchorClaim, Ranking
from app.core.model.candidate import Candidate, KeptWord
from app.core.model.conversation import Message
from app.core.model.provenance import regions
from app.core.text.values import Given, values


def ranking_of(
    candidate: Candidate, anchors: Sequence[Anchor], span: Sequence[Message], shown: Mapping[int, Message]
) -> Ranking:
    """What a candidate says of anchors.

    What it says is worth keeping, or quotes itself, is confirmed. Of the rules' finds in these messages, what it was
    shown and does not name, or gives up, is passed over; a candidate that names none of them passes over none.
    Of an anchor that a user set nothing may be claimed, and of one with a value that a user gave not that it is none.

    Args:
        candidate: As it was accepted.
        anchors: Active ones, of these and of earlier messages.
        span: The folded messages.
        shown: The messages as the model was shown them, by ``seq``.
    """
    named = by_name(anchors)
    said = [(named[word.id], word) for word in candidate.kept if word.id in named]
    claims = [claim for anchor, word in said if (claim := _claim(anchor, word, span, anchors)) is not None]
    quotes = {anchor.id for anchor in quoted(candidate.anchors, span, anchors) if isinstance(anchor, Anchor)}
    confirmed = {anchor.id for anchor, word in said if word.claims is None} | quotes
    named_ids = {anchor.id for anchor, word in said if word.claims != "withdrawn"} | confirmed
    return Ranking(
        confirmed=_ordered(confirmed, anchors),
        passed_over=_ordered(_unnamed(anchors, named_ids, shown), anchors) if said or quotes else (),
        claims=tuple(claims),
    )


def ranked(anchors: Iterable[Anchor], ranking: Ranking) -> tuple[Anchor, ...]:
    """The anchors as they rank from now on."""
    confirmed, passed_over = frozenset(ranking.confirmed), frozenset(ranking.passed_over)
    return tuple(
        replace(one, passed_over=one.id in passed_over) if one.id in confirmed | passed_over else one for one in anchors
    )


def _unnamed(anchors: Iterable[Anchor], named: Collection[UUID], shown: Mapping[int, Message]) -> set[UUID]:
    return {
        anchor.id
        for anchor in anchors
        if anchor.proposed_by == "rule"
        and anchor.id not in named
        and (message := shown.get(anchor.seq)) is not None
        and anchor.content in message.content
    }


def _ordered(ids: Collection[UUID], anchors: Iterable[Anchor]) -> tuple[UUID, ...]:
    return tuple(anchor.id for anchor in anchors if anchor.id in ids)


def _claim(anchor: Anchor, word: KeptWord, span: Sequence[Message], known: Iterable[Anchor]) -> AnchorClaim | None:
    if word.claims is None or anchor.proposed_by == "user":
        return None
    if word.claims == "withdrawn":
        return None if _holds_given_value(anchor, span, known) else AnchorClaim(anchor_id=anchor.id, status="withdrawn")
    seqs = {message.seq for message in span}
    seq = word.by_seq if word.by_seq in seqs else None
    if seq is None or seq < anchor.seq:
        return None
    return AnchorClaim(anchor_id=anchor.id, status=word.claims, seq=seq)


def _holds_given_value(anchor: Anchor, span: Sequence[Message], known: Iterable[Anchor]) -> bool:
    """Whether it holds a value that a user gave, in these messages or in what is kept of earlier ones."""
    if not (held := values(anchor.content)):
        return False
    given = Given()
    for message in span:
        if message.role == "user":
            given.add(message.seq, regions(message.content)[1], message.created_at)
    for one in known:
        if one.speaker == "user" and not one.pasted:
            given.add(one.seq, one.content)
    own_source = {anchor.seq} if anchor.pasted else set[int]()
    return any(given.sources(value) - own_source for value in held)

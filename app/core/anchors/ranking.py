"""Reads what a summarizer's answer says about anchors. It changes the rank of anchors, but not their status."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from app.core.anchors.prompt_ids import anchors_by_prompt_id
from app.core.anchors.proposals import quoted_anchors
from app.core.model.anchors import Anchor, AnchorClaim, Ranking
from app.core.model.candidate import AnchorAnswer, Candidate
from app.core.model.claims import ANCHOR_FIELD
from app.core.model.conversation import Message
from app.core.model.repairs import Repair, RepairReason
from app.core.text.pasted import pasted_and_own_text
from app.core.text.values import ValueIndex, values


def ranking_of(
    candidate: Candidate, anchors: Sequence[Anchor], span: Sequence[Message], shown_messages: Mapping[int, Message]
) -> Ranking:
    """What a candidate says about anchors.

    * An anchor that the candidate calls worth keeping, or quotes itself, is confirmed.
    * Anchors of these messages that rules found and the model was shown, but that the candidate does not name, are
      passed over. If it names none of them, none is passed over.
    * An anchor that it gives up gets the claim that it is settled, or that it should not be an anchor. There is no
      claim about an anchor that a user set. An anchor with a value that a user gave gets no claim that it should not be
      one: it is passed over instead.

    ``anchors`` are the active ones, of these and of earlier messages; ``shown_messages`` is what the model saw of each
    message, by ``seq``.
    """
    named = anchors_by_prompt_id(anchors)
    answers = [(named[word.id], word) for word in candidate.anchor_answers if word.id in named]
    given_up_claims = [
        (anchor, claim) for anchor, word in answers if (claim := _provable_claim(anchor, word, span)) is not None
    ]
    claims = [claim for anchor, claim in given_up_claims if _may_be_claimed(anchor, claim, span, anchors)]
    given_up = {anchor.id for anchor, _ in given_up_claims}
    passed_over = (
        given_up - {claim.anchor_id for claim in claims} - {one.id for one in anchors if _was_set_by_user(one)}
    )
    quotes = {anchor.id for anchor in quoted_anchors(candidate.anchors, span, anchors) if isinstance(anchor, Anchor)}
    confirmed = {anchor.id for anchor, word in answers if word.claims is None} | quotes
    named_ids = {anchor.id for anchor, word in answers if word.claims != "withdrawn"} | confirmed
    return Ranking(
        confirmed=_ids_in_order(confirmed, anchors),
        passed_over=_ids_in_order(passed_over | _ids_not_named(anchors, named_ids, shown_messages), anchors)
        if answers or quotes
        else (),
        claims=tuple(claims),
        given_up=_ids_in_order(given_up, anchors),
    )


def ranked(anchors: Iterable[Anchor], ranking: Ranking) -> tuple[Anchor, ...]:
    """The anchors with their new rank."""
    if ranking == Ranking():
        return tuple(anchors)
    confirmed, passed_over = frozenset(ranking.confirmed), frozenset(ranking.passed_over)
    claimed = {claim.anchor_id: claim.status for claim in ranking.claims}
    return tuple(
        replace(
            one,
            passed_over=one.id in passed_over or (one.passed_over and one.id not in confirmed),
            claimed_status=claimed.get(one.id, None if one.id in confirmed else one.claimed_status),
        )
        for one in anchors
    )


def repairs_of(anchors: Iterable[Anchor], ranking: Ranking) -> Iterator[Repair]:
    """Records for anchors that a model gave up: set aside until a verifier agrees, but kept if a user set them."""
    for one in anchors:
        if one.id in ranking.given_up:
            reason: RepairReason = "kept" if _was_set_by_user(one) else "set_aside"
            yield Repair(field=ANCHOR_FIELD, reason=reason, before=one.content, after=one.content)


def _ids_not_named(
    anchors: Iterable[Anchor], named: Collection[UUID], shown_messages: Mapping[int, Message]
) -> set[UUID]:
    return {
        anchor.id
        for anchor in anchors
        if anchor.proposed_by == "rule"
        and anchor.id not in named
        and (message := shown_messages.get(anchor.seq)) is not None
        and anchor.content in message.content
    }


def _ids_in_order(ids: Collection[UUID], anchors: Iterable[Anchor]) -> tuple[UUID, ...]:
    return tuple(anchor.id for anchor in anchors if anchor.id in ids)


def _provable_claim(anchor: Anchor, word: AnchorAnswer, span: Sequence[Message]) -> AnchorClaim | None:
    if word.claims is None:
        return None
    shown_by = word.by_seq if any(one.seq == word.by_seq for one in span) else None
    if word.claims == "withdrawn":
        if shown_by is None or shown_by <= anchor.seq:
            return AnchorClaim(anchor_id=anchor.id, status="withdrawn")
        # If a later message made it useless, it was an anchor until then: it is resolved, not withdrawn.
        return AnchorClaim(anchor_id=anchor.id, status="resolved", seq=shown_by)
    shows = shown_by is not None and shown_by >= anchor.seq
    return AnchorClaim(anchor_id=anchor.id, status=word.claims, seq=shown_by) if shows else None


def _may_be_claimed(anchor: Anchor, claim: AnchorClaim, span: Sequence[Message], known: Iterable[Anchor]) -> bool:
    return not (_was_set_by_user(anchor) or (claim.status == "withdrawn" and _has_value_of_user(anchor, span, known)))


def _was_set_by_user(anchor: Anchor) -> bool:
    return anchor.proposed_by == "user"


def _has_value_of_user(anchor: Anchor, span: Sequence[Message], known: Iterable[Anchor]) -> bool:
    """Whether an anchor has a value that a user gave, in these messages or in known anchors of earlier ones."""
    if not (anchor_values := values(anchor.content)):
        return False
    user_values = ValueIndex()
    for message in span:
        if message.role == "user":
            user_values.add(message.seq, pasted_and_own_text(message.content)[1], message.created_at)
    for one in known:
        if one.speaker == "user" and not one.pasted:
            user_values.add(one.seq, one.content)
    own_source = {anchor.seq} if anchor.pasted else set[int]()
    return any(user_values.sources(value) - own_source for value in anchor_values)

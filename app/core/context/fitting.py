"""Makes a context fit its budget, by leaving parts out.

Parts are left out in this order:

1. digests of segments, half of them at a time;
2. the tail before the last turn, with a digest in its place while there is room for one;
3. style and shared knowledge, then the narrative, then the days of held messages;
4. anchors, which a marker then leads to;
5. facts, clause by clause: first those that tell least per token, among equals the oldest (docs/decisions/0018);
6. the rest of the tail except its last message;
7. held messages, the oldest first, each with a warning.

A tool call and its result are left out together. If the policy never leaves an anchor out, facts are left out before
anchors, as long as all anchors then fit. If they do not, or if a client asked for a smaller context, facts and anchors
are left out together, those first that tell least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, Final, Literal

from app.core.anchors.serving import LEAST_TOKEN_LIMIT
from app.core.context.drafts import (
    Draft,
    Material,
    block_of,
    block_sizes,
    outline_of,
    size_of,
    weight_of,
    with_anchors,
    with_held,
    with_served,
)
from app.core.context.eliding import with_giants_elided, with_tail_elided
from app.core.model.anchors import FoundAnchor
from app.core.model.conversation import Message, Outline
from app.core.model.errors import BudgetTooSmallError
from app.core.model.in_doubt import own_and_earlier_text, without_doubt_mark
from app.core.model.overlap import message_text
from app.core.model.records import FoldRequest
from app.core.model.state import ID_LETTERS, FieldRole, StateEntry, StateField, StateSchema
from app.core.planning.cuts import Tail, held_indexes, legal_cuts, turn_starts
from app.core.reading.labels import role_label
from app.core.retrieval.corpus import words_in
from app.core.state.digesting import NO_DIGESTS, Digests
from app.core.state.layout import LeftOut, state_json
from app.core.state.pruning import prune, state_of
from app.core.state.shrinking import shrunk, telling_most
from app.core.text.budget import first_fitting, make_fitting

TRUNCATION_STEP: Final = 0.05  # a share of the budget; so coarse that the cut stays in place for many messages
DIGEST_SHARE: Final = 0.10  # the share of the room for the digest of the messages that are left out
COARSE_BITS: Final = 5  # the room is rounded to so many bits, since recall leaves a bit more or less with each question
DIGEST_FRAME: Final = 60  # tokens of the elements around a digest, rounded up

_SOFT: Final[frozenset[FieldRole]] = frozenset({"style", "known", "narrative"})
"""The roles whose entries are left out before any anchor."""

Digest = Callable[[Sequence[Message], int], str]
"""A pure function from (messages left out, most tokens) to a plain text."""


FirstToGo = Literal["anchors", "facts", "least"]
"""What is left out first: ``anchors`` if the policy has an allotment for them; ``facts`` if it never leaves an anchor
out; ``least``, whatever of both tells least per token, if it never leaves an anchor out but a budget was requested. If
not all anchors fit, ``facts`` works like ``least``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The room for a context after its system prompt and files."""

    tokens: int
    anchors: int | None
    """The anchors' share of the room; ``None`` = all of it."""
    first_to_go: FirstToGo = "anchors"
    """What is left out first if facts and anchors do not fit together."""


Shrink = Callable[[Material, Draft, Room], Draft]


def fit(material: Material, draft: Draft, room: Room, digest: Digest, *, told: bool = True) -> Draft:
    """Leave out what has to be left out for the draft to fit.

    Args:
        material: The material of the context.
        draft: The draft with everything.
        room: The room for it.
        digest: Makes the digest of the messages that are left out.
        told: Whether the state is needed. If not, a state that does not fit is left out as a whole, which is faster;
            the messages are the same.

    Raises:
        BudgetTooSmallError: Not even the last message fits.
    """
    elides = material.policy.oversized == "elide"
    draft = with_giants_elided(material, draft, room.tokens) if elides else draft
    for shrink in _shrink_steps(digest, room.first_to_go, told=told):
        if size_of(material, draft) + _unloaded_tokens(material, draft) <= room.tokens:
            return draft
        draft = shrink(material, draft, room)
    if elides and size_of(material, draft) > room.tokens:
        draft = with_tail_elided(material, draft, room.tokens)
    minimum = size_of(material, draft)
    if minimum <= room.tokens:
        return draft
    needed, left = material.conversation.counted(minimum), material.conversation.counted(max(room.tokens, 0))
    raise BudgetTooSmallError(
        f"the last user message alone needs {needed} tokens, the budget leaves {left}:"
        f" ask for a budget of at least {needed}",
        extra={"minimum": needed},
    )


def _shrink_steps(digest: Digest, first: FirstToGo, *, told: bool) -> Iterator[Shrink]:
    yield _with_fewer_digests
    yield _without_old_tail(digest)
    yield _without_digest
    yield _with_smaller_state(soft=True, told=told)
    yield _without_held_days
    facts = _with_smaller_state(soft=False, told=told)
    if first == "facts":
        yield facts
    if first != "anchors" and told:
        yield _with_worthiest_facts_and_anchors
    yield from (_with_fewer_anchors, facts) if first == "anchors" else (facts, _with_fewer_anchors)
    yield _without_tail
    yield _without_oldest_held
    yield _without_block


def _unloaded_tokens(material: Material, draft: Draft) -> int:
    # Messages that were not read count until truncation has left them out.
    return 0 if draft.left_out else material.unloaded_tokens


def _with_fewer_digests(material: Material, draft: Draft, room: Room) -> Draft:
    """The draft with half of the digests, a quarter …: so coarse that the block stays the same for many messages."""
    *_, present = block_sizes(material, draft)
    bare = replace(draft, digests=NO_DIGESTS)
    without = size_of(material, bare)
    free = room.tokens - without - _unloaded_tokens(material, bare)
    left = present
    while left > max(free, 0):
        left //= 2

    def added(element: str) -> int:
        return size_of(material, replace(bare, digests=Digests(element=element))) - without

    return replace(bare, digests=material.digestible.within(left, added))


def _without_old_tail(digest: Digest) -> Shrink:
    """Cut the tail before the last turn, oldest first, in steps, and put a digest and the anchors in its place."""

    def shrink(material: Material, draft: Draft, room: Room) -> Draft:
        tokens = _coarse_room(room.tokens)
        allowance = int(tokens * DIGEST_SHARE)
        step = max(int(tokens * TRUNCATION_STEP), 1)
        needed = size_of(material, draft) + material.unloaded_tokens + allowance - tokens
        cuts = _cuts(material, draft.tail, last_turn=True)
        if not cuts:
            return draft
        steps = -(-max(needed, 1) // step)
        count, cut = _fewest_removing(cuts, steps * step), draft
        while True:
            cut = _without_first_of_tail(material, draft, count, room)
            if count == cuts[-1][0] or size_of(material, cut) + allowance <= tokens:
                break
            steps += 1
            count = _fewest_removing(cuts, steps * step)
        told = _newest_within(material, draft.tail[:count], material.budgets.budget)
        text = digest(told, allowance - DIGEST_FRAME) if told and allowance > DIGEST_FRAME else ""
        left_out = replace(cut.left_out, digest=text) if cut.left_out else None
        return replace(cut, left_out=left_out).warned("context_truncated")

    return shrink


def _coarse_room(tokens: int) -> int:
    # The steps are at most a sixteenth of the room: so another question alone does not move the cut or the digest.
    step = 1 << max(tokens.bit_length() - COARSE_BITS, 0)
    return tokens // step * step


def _cuts(material: Material, tail: Sequence[Message], *, last_turn: bool) -> list[tuple[int, int]]:
    """(how many messages are cut, how many tokens that removes), ascending; messages that were not read always count.

    Args:
        material: The material, for the estimator and the tokens that were not read.
        tail: The messages to be cut from.
        last_turn: Whether the last turn stays; otherwise all messages but the last may be cut.
    """
    outline = material.outlines(tail)
    starts = turn_starts(outline)
    most = starts[-1] if starts and last_turn else max(len(tail) - 1, 0)
    legal = legal_cuts(
        Tail(outline=tuple(outline)), estimator=material.policy.estimator, request=FoldRequest(fold="all")
    )
    held = held_indexes(outline)
    leaving = (0 if index in held else weight_of(material, one) for index, one in enumerate(tail))
    unloaded = material.unloaded_tokens if last_turn else 0
    gone = [unloaded + size for size in accumulate(leaving)]
    first = _orphaned_start(outline) if unloaded else 0
    found = [(index + 1, gone[index]) for index in legal if first <= index + 1 <= most]
    return [(0, unloaded), *found] if unloaded and not (first and found) else found


def _orphaned_start(outline: Sequence[Outline]) -> int:
    calls = frozenset[str]().union(*(item.calls for item in outline))
    # So many messages are cut that no result is left without its call.
    return max((index + 1 for index, item in enumerate(outline) if item.results - calls), default=0)


def _fewest_removing(cuts: Sequence[tuple[int, int]], removed: int) -> int:
    return next((count for count, gone in cuts if gone >= removed), cuts[-1][0])


def _without_first_of_tail(material: Material, draft: Draft, count: int, room: Room) -> Draft:
    gone = draft.tail[:count]
    held = held_indexes(material.outlines(gone))
    kept_back = tuple(message for index, message in enumerate(gone) if index in held)
    cut_seq = gone[-1].seq if gone else draft.tail[0].seq - 1
    left_out = LeftOut(from_seq=material.conversation.boundary_seq + 1, to_seq=cut_seq, digest="")
    shorter = replace(draft, tail=draft.tail[count:], left_out=left_out)
    shorter = with_held(material, shorter, (*draft.held, *kept_back)) if kept_back else shorter
    return with_anchors(material, shorter, room=room.anchors)


def _newest_within(material: Material, messages: Sequence[Message], tokens: int) -> tuple[Message, ...]:
    # The result is the same for the same cut, however much of the tail was read.
    return tuple(first_fitting(reversed(messages), tokens, partial(weight_of, material)))[::-1]


def _without_digest(material: Material, draft: Draft, room: Room) -> Draft:  # noqa: ARG001 - one shape for all steps
    return replace(draft, left_out=replace(draft.left_out, digest="")) if draft.left_out else draft


def _with_smaller_state(*, soft: bool, told: bool) -> Shrink:
    """The step that shrinks style, known and the narrative (``soft``), or all other entries of the state."""

    def shrink(material: Material, draft: Draft, room: Room) -> Draft:
        state = material.conversation.compressed_state
        if state is None or draft.state is None:
            return draft
        entries = _entries(material.schema, state)
        chosen = [entry for entry in entries if (entry.role in _SOFT) == soft]
        rest = state_of(material.schema, [entry for entry in entries if (entry.role in _SOFT) != soft] if soft else [])

        def served(candidate: Mapping[str, Any]) -> Draft:
            state = {name: value or rest[name] for name, value in candidate.items() if value or rest[name]}
            return replace(draft, state=state_json(material.schema, state) if state else None)

        def over(candidate: Mapping[str, Any]) -> int:
            return size_of(material, served(candidate)) - room.tokens

        if not told:
            kept = tuple(chosen) if over(state_of(material.schema, chosen)) <= 0 else ()
        elif soft:
            kept, _ = prune(material.schema, chosen, fits=lambda candidate: over(candidate) <= 0)
        else:
            beside = (message_text(message) for message in (*draft.held, *draft.tail))
            heard, asked = _covered_talk(material, entries), _query_relevance(material)
            kept = shrunk(material.schema, chosen, over=over, said=beside, heard=heard, asked=asked)
        if kept == tuple(chosen):
            return draft
        return served(state_of(material.schema, kept)).warned("state_shortened")

    return shrink


def _with_worthiest_facts_and_anchors(material: Material, draft: Draft, room: Room) -> Draft:
    """The draft with the facts and anchors that are worth most on one scale; anchors that a user set always stay.

    Anchors stay word for word or not at all. In a turn the words of its messages do not influence the choice, and the
    room is rounded. So the next turn mostly begins with the same text, which a provider's cache needs.
    """
    state = material.conversation.compressed_state
    entries = _entries(material.schema, state) if state is not None else ()
    facts = [entry for entry in entries if entry.role not in _SOFT]
    if not facts or not draft.anchors:
        return draft
    servable, is_turn = material.servable(draft), room.first_to_go == "facts"
    places = {f"#{place}": place for place in servable.movable}
    beside = [message_text(message) for message in (*draft.held, *(() if is_turn else draft.tail))]
    beside += [anchor.content for anchor in servable.without(servable.movable).shown]
    others = size_of(material, replace(draft, state=None, anchors=""))
    most = others + _coarse_room(room.tokens - others) if is_turn else room.tokens

    def served(kept: Sequence[StateEntry]) -> Draft:
        told = state_of(material.schema, [entry for entry in kept if entry.id not in places])
        state = {name: value for name, value in told.items() if value}
        shorter = replace(draft, state=state_json(material.schema, state) if state else None)
        hidden = servable.movable.keys() - {places[entry.id] for entry in kept if entry.id in places}
        return with_served(material, shorter, servable.without(servable.with_newest_shown(hidden)))

    kept = telling_most(
        [*facts, *(_anchor_as_entry(place, anchor) for place, (anchor, _) in servable.movable.items())],
        over=lambda kept: size_of(material, served(kept)) - most,
        said=beside,
        heard=_covered_talk(material, entries),
        asked=_query_relevance(material),
        lines={f"#{place}": tokens for place, (_, tokens) in servable.movable.items()},
    )
    is_whole = [entry for entry in kept if entry.id not in places] == facts
    return served(kept) if is_whole else served(kept).warned("state_shortened")


def _anchor_as_entry(place: int, anchor: FoundAnchor) -> StateEntry:
    return StateEntry(
        id=f"#{place}",
        field=f"#{place}",
        role="open" if anchor.type == "unresolved_question" else "fact",
        text=f"{role_label(anchor.speaker, 'en')}: {anchor.content}",
        since_version=0,
        in_doubt=anchor.claimed_status is not None or anchor.passed_over,
    )


def _covered_talk(material: Material, entries: Sequence[StateEntry]) -> Iterator[str]:
    layout = material.conversation.layout
    yield from (entry.text for entry in entries if entry.role in _SOFT)
    if layout is not None:
        yield from (layout.anchors, layout.digests)


def _query_relevance(material: Material) -> Callable[[str], float] | None:
    # In a turn the question is ignored, so that the state stays the same for the provider's cache.
    recall = material.recall
    if recall is None or not (recall.is_explicit and recall.question):
        return None
    corpus = recall.corpus
    rarities = {stem: corpus.rarity(stem) * weight for stem, weight in recall.asked.stems.items()}
    whole = sum(rarities.values()) or 1.0
    return lambda text: sum(rarities.get(stem, 0.0) for stem in words_in(text, corpus.language).counts) / whole


def _entries(schema: StateSchema, state: Mapping[str, Any]) -> tuple[StateEntry, ...]:
    """The texts of a served state as entries, in served order, for pruning by role; those in doubt count as the oldest.

    A field serves entries in doubt after all others: by their place alone they would count as the newest.
    """
    texts = [
        (field, text, in_doubt)
        for field in schema.fields
        for text, in_doubt in _texts_with_doubt(field, state[field.name])
        if text
    ]
    by_age = sorted(range(len(texts)), key=lambda place: not texts[place][-1])
    number_of = {place: number for number, place in enumerate(by_age)}
    return tuple(
        StateEntry(
            id=f"{ID_LETTERS[field.role]}{number_of[place]}",
            field=field.name,
            role=field.role,
            text=text,
            since_version=0,
            in_doubt=in_doubt,
        )
        for place, (field, text, in_doubt) in enumerate(texts)
    )


def _texts_with_doubt(field: StateField, served: Any) -> Iterator[tuple[str, bool]]:
    if field.is_list:
        yield from map(without_doubt_mark, served)
    else:
        yield from zip(own_and_earlier_text(served), (False, True), strict=True)


def _with_fewer_anchors(material: Material, draft: Draft, room: Room) -> Draft:
    if not draft.anchors:
        return draft

    def over(fewer: Draft) -> int:
        return size_of(material, fewer) - room.tokens

    _, present, _ = block_sizes(material, draft)
    left = max(present - over(draft), LEAST_TOKEN_LIMIT)
    return make_fitting(lambda left: with_anchors(material, draft, room=left), over, left, LEAST_TOKEN_LIMIT)


def _without_tail(material: Material, draft: Draft, room: Room) -> Draft:
    """Leave out the rest of the tail except the last message, oldest first."""
    cuts = [cut for cut in _cuts(material, draft.tail, last_turn=False) if cut[0]]
    shorter, excess = draft, size_of(material, draft) - room.tokens
    for count, gone in cuts:
        if gone < excess and count != cuts[-1][0]:
            continue
        shorter = _without_first_of_tail(
            material, draft, count, replace(room, anchors=0 if room.anchors == 0 else LEAST_TOKEN_LIMIT)
        )
        shorter = replace(shorter, state=draft.state).warned("context_truncated")
        if size_of(material, shorter) <= room.tokens:
            break
    return shorter


def _without_held_days(_material: Material, draft: Draft, _room: Room) -> Draft:
    return replace(draft, held_days="", tells_days=False)


def _without_oldest_held(material: Material, draft: Draft, room: Room) -> Draft:
    while draft.held and size_of(material, draft) > room.tokens:
        first, *others = draft.held
        pair = held_indexes([replace(outline_of(one), is_protected=one is first) for one in draft.held])
        gone = [one for index, one in enumerate(draft.held) if index in pair]
        draft = with_held(material, draft, tuple(one for one in others if one not in gone))
        draft = draft.warned(*(f"held_message_left_out:{one.seq}" for one in gone))
    return draft


def _without_block(material: Material, draft: Draft, room: Room) -> Draft:  # noqa: ARG001 - one shape for all steps
    if not block_of(material, draft):
        return draft
    warnings = ("anchors_left_out",) if draft.anchors else ()
    return replace(draft, state=None, anchors="").warned(*warnings)

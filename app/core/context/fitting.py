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

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain
from typing import Any, Final, Literal

from app.core.anchors.selection import MIN_TOKEN_LIMIT
from app.core.context.drafts import (
    ContextInputs,
    Draft,
    block_of,
    block_sizes,
    draft_tokens,
    weight_of,
    with_anchors,
    with_held_messages,
    with_served_anchors,
)
from app.core.context.oversized_messages import with_oversized_elided, with_tail_elided
from app.core.model.anchors import FoundAnchor
from app.core.model.conversation import Message, Outline
from app.core.model.doubt_marks import own_and_earlier_text, without_doubt_mark
from app.core.model.errors import BudgetTooSmallError
from app.core.model.policies.protection import call_groups
from app.core.model.records import FoldRequest
from app.core.model.state import ID_LETTERS, FieldRole, StateEntry, StateField, StateSchema
from app.core.model.word_overlap import message_text
from app.core.planning.cuts import Tail, held_indexes, legal_cuts, turn_starts
from app.core.reading.labels import role_label
from app.core.retrieval.corpus import words_in
from app.core.state.digest_selection import NO_DIGESTS, Digests
from app.core.state.layout import LeftOut, state_json
from app.core.state.pruning import prune, state_of
from app.core.state.shrinking import most_informative, shrunk_entries
from app.core.text.budget import first_fitting, make_fitting

TRUNCATION_STEP: Final = 0.05  # a share of the budget; so coarse that the cut stays in place for many messages
DIGEST_SHARE: Final = 0.10  # the share of the room for the digest of the messages that are left out
ROUNDING_BITS: Final = 5
"""The room is rounded to this many bits, since recall leaves a little more or less with each question."""
DIGEST_FRAME: Final = 60  # tokens of the elements around a digest, rounded up

_SOFT_ROLES: Final[frozenset[FieldRole]] = frozenset({"style", "known", "narrative"})
"""The roles whose entries are left out before any anchor."""

DigestFunction = Callable[[Sequence[Message], int], str]
"""A pure function from (messages left out, most tokens) to a plain text."""


RemovedFirst = Literal["anchors", "facts", "least"]
"""What is left out first: ``anchors`` if the policy has an allotment for them; ``facts`` if it never leaves an anchor
out; ``least``, whatever of both tells least per token, if it never leaves an anchor out but a budget was requested. If
not all anchors fit, ``facts`` works like ``least``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLimits:
    """The room for a context after its system prompt and files."""

    tokens: int
    anchors: int | None
    """The anchors' share of the room; ``None`` = all of it."""
    removed_first: RemovedFirst = "anchors"
    """What is left out first if facts and anchors do not fit together."""


ShrinkStep = Callable[[ContextInputs, Draft, TokenLimits], Draft]


def fit(
    inputs: ContextInputs, draft: Draft, limits: TokenLimits, digest: DigestFunction, *, needs_state: bool = True
) -> Draft:
    """Leave out what has to be left out for the draft to fit.

    Args:
        inputs: All that the context is made from.
        draft: The draft with everything.
        limits: The most tokens of it.
        digest: Makes the digest of the messages that are left out.
        needs_state: Whether the state is needed. If not, a state that does not fit is left out as a whole, which is
            faster; the messages are the same.

    Raises:
        BudgetTooSmallError: Not even the last message fits.
    """
    elides = inputs.policy.oversized == "elide"
    draft = with_oversized_elided(inputs, draft, limits.tokens) if elides else draft
    for shrink in _shrink_steps(digest, limits.removed_first, needs_state=needs_state):
        if draft_tokens(inputs, draft) + _unloaded_tokens(inputs, draft) <= limits.tokens:
            return draft
        draft = shrink(inputs, draft, limits)
    if elides and draft_tokens(inputs, draft) > limits.tokens:
        draft = with_tail_elided(inputs, draft, limits.tokens)
    minimum = draft_tokens(inputs, draft)
    if minimum <= limits.tokens:
        return draft
    counted = inputs.conversation.counted
    raise BudgetTooSmallError.needing(counted(minimum), left=counted(max(limits.tokens, 0)))


def _shrink_steps(digest: DigestFunction, removed_first: RemovedFirst, *, needs_state: bool) -> Iterator[ShrinkStep]:
    yield _with_fewer_digests
    yield _without_old_tail(digest)
    yield _without_digest
    yield _with_smaller_state(soft=True, needs_state=needs_state)
    yield _without_held_days
    facts = _with_smaller_state(soft=False, needs_state=needs_state)
    if removed_first == "facts":
        yield facts
    if removed_first != "anchors" and needs_state:
        yield _with_best_facts_and_anchors
    yield from (_with_fewer_anchors, facts) if removed_first == "anchors" else (facts, _with_fewer_anchors)
    yield _without_tail
    yield _without_oldest_held
    yield _without_block


def _unloaded_tokens(inputs: ContextInputs, draft: Draft) -> int:
    # Messages that were not read count until truncation has left them out.
    return 0 if draft.left_out else inputs.unloaded_tokens


def _with_fewer_digests(inputs: ContextInputs, draft: Draft, limits: TokenLimits) -> Draft:
    """The draft with half of the digests, a quarter …: so coarse that the block stays the same for many messages."""
    *_, present = block_sizes(inputs, draft)
    bare = replace(draft, digests=NO_DIGESTS)
    without = draft_tokens(inputs, bare)
    free = limits.tokens - without - _unloaded_tokens(inputs, bare)
    left = present
    while left > max(free, 0):
        left //= 2

    def added(element: str) -> int:
        return draft_tokens(inputs, replace(bare, digests=Digests(element=element))) - without

    return replace(bare, digests=inputs.digest_source.select(left, added))


def _without_old_tail(digest: DigestFunction) -> ShrinkStep:
    """Cut the tail before the last turn, oldest first, in steps, and put a digest and the anchors in its place."""

    def shrink(inputs: ContextInputs, draft: Draft, limits: TokenLimits) -> Draft:
        tokens = _rounded_tokens(limits.tokens)
        allowance = int(tokens * DIGEST_SHARE)
        step = max(int(tokens * TRUNCATION_STEP), 1)
        needed = draft_tokens(inputs, draft) + inputs.unloaded_tokens + allowance - tokens
        cuts = _cuts(inputs, draft.tail, last_turn=True)
        if not cuts:
            return draft
        steps = -(-max(needed, 1) // step)
        count, cut = _fewest_removing(cuts, steps * step), draft
        while True:
            cut = _without_first_of_tail(inputs, draft, count, limits)
            if count == cuts[-1][0] or draft_tokens(inputs, cut) + allowance <= tokens:
                break
            steps += 1
            count = _fewest_removing(cuts, steps * step)
        digested = _newest_within(inputs, draft.tail[:count], inputs.budgets.budget)
        text = digest(digested, allowance - DIGEST_FRAME) if digested and allowance > DIGEST_FRAME else ""
        left_out = replace(cut.left_out, digest=text) if cut.left_out else None
        return replace(cut, left_out=left_out).warned("context_truncated")

    return shrink


def _rounded_tokens(tokens: int) -> int:
    # The steps are at most a sixteenth of the room: so another question alone does not move the cut or the digest.
    step = 1 << max(tokens.bit_length() - ROUNDING_BITS, 0)
    return tokens // step * step


def _cuts(inputs: ContextInputs, tail: Sequence[Message], *, last_turn: bool) -> list[tuple[int, int]]:
    """(how many messages are cut, how many tokens that removes), ascending; messages that were not read always count.

    Args:
        inputs: The inputs, for the estimator and the tokens that were not read.
        tail: The messages to be cut from.
        last_turn: Whether the last turn stays; otherwise all messages but the last may be cut.
    """
    if not tail:  # all of it was erased after its tokens were counted
        return []
    outline = inputs.outlines(tail)
    starts = turn_starts(outline)
    most = starts[-1] if starts and last_turn else max(len(tail) - 1, 0)
    legal = legal_cuts(Tail(outline=tuple(outline)), estimator=inputs.policy.estimator, request=FoldRequest(fold="all"))
    held = held_indexes(outline)
    leaving = (0 if index in held else weight_of(inputs, one) for index, one in enumerate(tail))
    unloaded = inputs.unloaded_tokens if last_turn else 0
    gone = [unloaded + size for size in accumulate(leaving)]
    first = _orphaned_start(outline) if unloaded else 0
    found = [(index + 1, gone[index]) for index in legal if first <= index + 1 <= most]
    return [(0, unloaded), *found] if unloaded and not (first and found) else found


def _orphaned_start(outline: Sequence[Outline]) -> int:
    # So many messages are cut that no result is left without its call, which comes before it. Clients may use an id
    # again, so a later call with the same id is another one.
    calls, first = set[str](), 0
    for index, item in enumerate(outline):
        calls |= item.calls
        first = first if item.results <= calls else index + 1
    return first


def _fewest_removing(cuts: Sequence[tuple[int, int]], removed: int) -> int:
    return next((count for count, gone in cuts if gone >= removed), cuts[-1][0])


def _without_first_of_tail(inputs: ContextInputs, draft: Draft, count: int, limits: TokenLimits) -> Draft:
    gone = draft.tail[:count]
    held = held_indexes(inputs.outlines(gone))
    kept_back = tuple(message for index, message in enumerate(gone) if index in held)
    cut_seq = gone[-1].seq if gone else draft.tail[0].seq - 1
    left_out = LeftOut(from_seq=inputs.conversation.boundary_seq + 1, to_seq=cut_seq, digest="")
    shorter = replace(draft, tail=draft.tail[count:], left_out=left_out)
    shorter = with_held_messages(inputs, shorter, (*draft.held, *kept_back)) if kept_back else shorter
    return with_anchors(inputs, shorter, token_limit=limits.anchors)


def _newest_within(inputs: ContextInputs, messages: Sequence[Message], tokens: int) -> tuple[Message, ...]:
    # The result is the same for the same cut, however much of the tail was read.
    return tuple(first_fitting(reversed(messages), tokens, partial(weight_of, inputs)))[::-1]


def _without_digest(inputs: ContextInputs, draft: Draft, limits: TokenLimits) -> Draft:  # noqa: ARG001 - one shape for all steps
    return replace(draft, left_out=replace(draft.left_out, digest="")) if draft.left_out else draft


def _with_smaller_state(*, soft: bool, needs_state: bool) -> ShrinkStep:
    """The step that shrinks style, known and the narrative (``soft``), or all other entries of the state."""

    def shrink(inputs: ContextInputs, draft: Draft, limits: TokenLimits) -> Draft:
        state = inputs.conversation.compressed_state
        if state is None or draft.state is None:
            return draft
        entries = _entries(inputs.schema, state)
        chosen = [entry for entry in entries if (entry.role in _SOFT_ROLES) == soft]
        rest = state_of(
            inputs.schema, [entry for entry in entries if (entry.role in _SOFT_ROLES) != soft] if soft else []
        )

        def served(candidate: Mapping[str, Any]) -> Draft:
            state = {name: value or rest[name] for name, value in candidate.items() if value or rest[name]}
            return replace(draft, state=state_json(inputs.schema, state) if state else None)

        def over(candidate: Mapping[str, Any]) -> int:
            return draft_tokens(inputs, served(candidate)) - limits.tokens

        if not needs_state:
            kept = tuple(chosen) if over(state_of(inputs.schema, chosen)) <= 0 else ()
        elif soft:
            kept, _ = prune(inputs.schema, chosen, fits=lambda candidate: over(candidate) <= 0)
        else:
            served_texts = (message_text(message) for message in (*draft.held, *draft.tail))
            covered_texts, relevance = _covered_texts(inputs, entries), _query_relevance(inputs)
            kept = shrunk_entries(
                inputs.schema,
                chosen,
                over=over,
                served_texts=served_texts,
                covered_texts=covered_texts,
                relevance=relevance,
            )
        if kept == tuple(chosen):
            return draft
        return served(state_of(inputs.schema, kept)).warned("state_shortened")

    return shrink


def _with_best_facts_and_anchors(inputs: ContextInputs, draft: Draft, limits: TokenLimits) -> Draft:
    """The draft with the facts and anchors that are worth most on one scale; anchors that a user set always stay.

    Anchors stay word for word or not at all. In a turn the words of its messages do not influence the choice, and the
    room is rounded. So the next turn mostly begins with the same text, which a provider's cache needs.
    """
    state = inputs.conversation.compressed_state
    entries = _entries(inputs.schema, state) if state is not None else ()
    facts = [entry for entry in entries if entry.role not in _SOFT_ROLES]
    if not facts or not draft.anchors:
        return draft
    servable, is_turn = inputs.servable(draft), limits.removed_first == "facts"
    places = {f"#{place}": place for place in servable.movable}
    served_texts = [message_text(message) for message in (*draft.held, *(() if is_turn else draft.tail))]
    served_texts += [anchor.content for anchor in servable.without(servable.movable).shown]
    other_tokens = draft_tokens(inputs, replace(draft, state=None, anchors=""))
    max_tokens = other_tokens + _rounded_tokens(limits.tokens - other_tokens) if is_turn else limits.tokens

    def served(kept: Sequence[StateEntry]) -> Draft:
        full_state = state_of(inputs.schema, [entry for entry in kept if entry.id not in places])
        state = {name: value for name, value in full_state.items() if value}
        shorter = replace(draft, state=state_json(inputs.schema, state) if state else None)
        hidden = servable.movable.keys() - {places[entry.id] for entry in kept if entry.id in places}
        return with_served_anchors(inputs, shorter, servable.without(servable.with_newest_shown(hidden)))

    kept = most_informative(
        [*facts, *(_anchor_as_entry(place, anchor) for place, (anchor, _) in servable.movable.items())],
        over=lambda kept: draft_tokens(inputs, served(kept)) - max_tokens,
        served_texts=served_texts,
        covered_texts=_covered_texts(inputs, entries),
        relevance=_query_relevance(inputs),
        whole_tokens={f"#{place}": tokens for place, (_, tokens) in servable.movable.items()},
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


def _covered_texts(inputs: ContextInputs, entries: Sequence[StateEntry]) -> Iterator[str]:
    layout = inputs.conversation.layout
    yield from (entry.text for entry in entries if entry.role in _SOFT_ROLES)
    if layout is not None:
        yield from (layout.anchors, layout.digests)


def _query_relevance(inputs: ContextInputs) -> Callable[[str], float] | None:
    # In a turn the question is ignored, so that the state stays the same for the provider's cache.
    recall = inputs.recall
    if recall is None or not (recall.is_explicit and recall.question):
        return None
    corpus = recall.corpus
    rarities = {stem: corpus.rarity(stem) * weight for stem, weight in recall.completed_question.stems.items()}
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


def _with_fewer_anchors(inputs: ContextInputs, draft: Draft, limits: TokenLimits) -> Draft:
    if not draft.anchors:
        return draft

    def over(fewer: Draft) -> int:
        return draft_tokens(inputs, fewer) - limits.tokens

    _, present, _ = block_sizes(inputs, draft)
    left = max(present - over(draft), MIN_TOKEN_LIMIT)
    return make_fitting(lambda left: with_anchors(inputs, draft, token_limit=left), over, left, MIN_TOKEN_LIMIT)


def _without_tail(inputs: ContextInputs, draft: Draft, limits: TokenLimits) -> Draft:
    """Leave out the rest of the tail except the last message, oldest first."""
    cuts = [cut for cut in _cuts(inputs, draft.tail, last_turn=False) if cut[0]]
    shorter, excess = draft, draft_tokens(inputs, draft) - limits.tokens
    for count, gone in cuts:
        if gone < excess and count != cuts[-1][0]:
            continue
        shorter = _without_first_of_tail(
            inputs, draft, count, replace(limits, anchors=0 if limits.anchors == 0 else MIN_TOKEN_LIMIT)
        )
        shorter = replace(shorter, state=draft.state).warned("context_truncated")
        if draft_tokens(inputs, shorter) <= limits.tokens:
            break
    return shorter


def _without_held_days(_inputs: ContextInputs, draft: Draft, _limits: TokenLimits) -> Draft:
    return replace(draft, held_days="", serves_held_days=False)


def _without_oldest_held(inputs: ContextInputs, draft: Draft, limits: TokenLimits) -> Draft:
    order = call_groups([(item.calls, item.results) for item in inputs.outlines(draft.held)])

    def without(count: int) -> Draft:
        gone = frozenset(chain.from_iterable(order[:count]))
        return with_held_messages(
            inputs, draft, tuple(one for index, one in enumerate(draft.held) if index not in gone)
        )

    def fits(count: int) -> bool:
        return draft_tokens(inputs, without(count)) <= limits.tokens

    count = bisect_left(range(len(order)), True, key=fits)  # noqa: FBT003
    seqs = (draft.held[index].seq for index in chain.from_iterable(order[:count]))
    return without(count).warned(*(f"held_message_left_out:{seq}" for seq in seqs))


def _without_block(inputs: ContextInputs, draft: Draft, limits: TokenLimits) -> Draft:  # noqa: ARG001 - one shape for all steps
    if not block_of(inputs, draft):
        return draft
    warnings = ("anchors_left_out",) if draft.anchors else ()
    return replace(draft, state=None, anchors="").warned(*warnings)

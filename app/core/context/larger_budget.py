"""Uses a larger budget to serve covered segments in more detail than in the layout of the state block.

The newest, the most important and, with a question, the most related segments are served as their originals (L0),
messages before the tail; others are in the block at L1, L2 or L3. ``segments.budgeting`` chooses. Nothing that would be
served otherwise is lost: a recalled message is left out only if its segment is served whole. Without a requested budget
the block stays as it was laid out, except in a turn with a budget above the conversation's own, if the policy gives
anchors all the room.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from app.core.context.drafts import Draft, Material, first_draft, says_something, size_of, with_held
from app.core.context.joining import closeness_to_best, recall_tokens
from app.core.model.conversation import Message
from app.core.model.segments import LEVELS, ServableSegment, ShownSegment
from app.core.segments.budgeting import TOLD, Choice, Form, Step, steps_of, weight, within
from app.core.segments.digests import WAY_BACK, element_of, lines_of
from app.core.state.digesting import Digests
from app.core.text.budget import without_last
from app.core.text.localization.catalogue import Catalogue, catalogue_of
from app.core.text.token_counts import tokens_of

FULL: Final = "full"
_NONE: Final = "none"
_AROUND: Final = 16
"""Tokens of the line with the dates of a segment's originals, rounded up."""
_ROUNDS: Final = 3
"""The number of passes. A segment that holds a recalled message replaces it, which leaves room for another segment."""


def with_choice(material: Material) -> Material:
    """The material with the possible forms of its segments: computed once, for reading and for the context."""
    choice = _choice(material, first_draft(material).digests)
    return replace(material, detail=replace(material.detail, choice=choice))


def places_to_read(material: Material, room: int) -> list[tuple[int, int]]:
    """The first and last ``seq`` of each segment whose originals a budget could serve, before anything is recalled.

    ``room``: the tokens after the system prompt and the files.
    """
    draft = first_draft(material)
    plan = _Plan(material, draft)
    taken = within(plan.steps, _free_tokens(material, draft, room))
    return [(one.from_seq, one.to_seq) for one in plan.opened_by(taken)]


def with_detail(material: Material, draft: Draft, room: int) -> Draft:
    """The draft with as much more detail as fits into ``room``; unchanged if something already had to be left out.

    ``material`` has the originals that ``places_to_read`` names. ``room``: the tokens after the system prompt and the
    files.
    """
    laid_out = first_draft(material)
    if not material.detail.segments or draft.left_out or draft.digests != laid_out.digests:
        return draft
    plan = _Plan(material, draft)
    found, free = draft, _free_tokens(material, draft, room)
    for _ in range(_ROUNDS):
        taken = within(plan.steps, free)
        while taken and (excess := _size(material, plan.served(taken)) - room) > 0:
            taken = without_last(taken, excess, lambda step: step.tokens)
        found = plan.served(taken) if taken else found
        gained = len(draft.recalled) - len(found.recalled)
        left = room - _size(material, found)
        if not gained or left <= 0 or len(taken) == len(plan.steps):
            break
        free = sum(step.tokens for step in taken) + left
    return found


def _free_tokens(material: Material, draft: Draft, room: int) -> int:
    left = room - _size(material, draft) - material.unloaded_tokens
    left -= 0 if draft.digests.element else WAY_BACK
    most = material.detail.room
    if most is None:
        return left
    while most > max(left, 0):
        most //= 2  # so coarse that what is served stays the same for many messages
    return most


def _size(material: Material, draft: Draft) -> int:
    return size_of(material, draft) + recall_tokens(material, draft)


class _Plan:
    """The forms that each segment of a draft could be served in. The digests of the draft are those of the layout."""

    def __init__(self, material: Material, draft: Draft) -> None:
        self._material = material
        self._draft = draft
        self._segments = material.detail.segments
        self._choice = material.detail.choice or _choice(material, draft.digests)
        self.steps = self._choice.steps

    def opened_by(self, taken: Sequence[Step]) -> list[ServableSegment]:
        """The segments that these steps serve as their originals."""
        return [
            segment
            for segment, form in zip(self._segments, self._choice.taken(taken), strict=True)
            if form.name == FULL
        ]

    def served(self, taken: Sequence[Step]) -> Draft:
        """The draft with these steps taken."""
        chosen = list(zip(self._segments, self._choice.taken(taken), strict=True))
        told = [(segment, form) for segment, form in chosen if form.line]
        opened = [segment for segment, form in chosen if form.name == FULL]
        behind = max(self._material.detail.total - len(told) - len(opened), 0)
        locale = self._material.conversation.locale
        digests = Digests(
            element=element_of([form.line for _, form in told], behind, locale),
            segments=tuple(_shown_segment(segment, form.name) for segment, form in told),
        )
        originals = [one for segment in opened for one in self._originals_of(segment)]
        known = {message.seq for message in self._draft.held}
        added = [one for one in originals if one.seq not in known and says_something(one)]
        held = tuple(sorted((*self._draft.held, *added), key=lambda message: message.seq))
        seqs = {message.seq for message in held}
        draft = replace(
            self._draft,
            digests=digests,
            opened=tuple(_shown_segment(segment, FULL) for segment in opened),
            recalled=tuple(one for one in self._draft.recalled if one.source.seq not in seqs),
        )
        return with_held(self._material, draft, held) if added else draft

    def _originals_of(self, segment: ServableSegment) -> Sequence[Message]:
        originals = self._material.detail.originals
        first = bisect_left(originals, segment.from_seq, key=lambda message: message.seq)
        return originals[first : bisect_right(originals, segment.to_seq, key=lambda message: message.seq)]


def _shown_segment(segment: ServableSegment, name: str) -> ShownSegment:
    level = next((level for level in LEVELS if level == name), None)
    return ShownSegment(id=segment.id, level=level, from_seq=segment.from_seq, to_seq=segment.to_seq)


def _closeness_to_question(material: Material, segments: Sequence[ServableSegment]) -> dict[str, float]:
    closeness = closeness_to_best(material)
    if not closeness:
        return {}
    found: dict[str, float] = {}
    seqs = sorted(closeness)
    for segment in segments:
        inside = seqs[bisect_left(seqs, segment.from_seq) : bisect_right(seqs, segment.to_seq)]
        found[segment.id] = max((closeness[seq] for seq in inside), default=0.0)
    return found


def _choice(material: Material, digests: Digests) -> Choice:
    segments = material.detail.segments
    shown = {one.id: one.level or "marker" for one in digests.segments}
    say = catalogue_of(material.conversation.locale)
    forms = [
        list(_forms_of(material, segment, shown.get(segment.id, _NONE), worth, say))
        for segment, worth in zip(segments, _worths(material, _closeness_to_question(material, segments)), strict=True)
    ]
    # There are no steps if the block shows a segment that was not read.
    return Choice(forms, steps_of(forms) if shown.keys() <= {segment.id for segment in segments} else [])


def _forms_of(
    material: Material, segment: ServableSegment, present: str, worth: float, say: Catalogue
) -> Iterator[Form]:
    """The forms in which a segment could be served: first the present one, then better ones."""
    lines = lines_of(segment, material.policy.levels, estimator=material.policy.estimator, say=say)
    names = [*lines]
    value = worth * segment.tokens
    if present == _NONE:
        yield Form(_NONE, 0, 0.0)
    else:
        line, tokens = lines[present] if present in lines else lines["marker"]
        yield Form(present, tokens, value * TOLD[present], line)
        names = names[names.index(present) + 1 :] if present in names else []
    for name in names:
        line, tokens = lines[name]
        yield Form(name, tokens, value * TOLD[name], line)
    if material.detail.opens:
        yield Form(FULL, _full_tokens(material, segment), value * TOLD[FULL])


def _full_tokens(material: Material, segment: ServableSegment) -> int:
    # The tokens are those of the segment's row, so that they are the same before and after the originals are read.
    covered, estimator = material.conversation.covered, material.policy.estimator
    whole = tokens_of(covered.tokens, covered.bytes, estimator)
    return -(-segment.tokens * whole // max(covered.tokens, 1)) + _AROUND


def _worths(material: Material, relations: Mapping[str, float]) -> Iterator[float]:
    segments, quoted_seqs = material.detail.segments, material.detail.quoted
    anchors = sorted(anchor.seq for anchor in material.anchors) if quoted_seqs is None else sorted(quoted_seqs)
    for place, segment in enumerate(segments):
        quoted = bisect_right(anchors, segment.to_seq) - bisect_left(anchors, segment.from_seq)
        told = segment.identifiers + 2 * quoted
        yield weight(
            rank=len(segments) - 1 - place,
            importance=min(told / max(2 * segment.messages, 1), 1.0),
            relation=relations.get(segment.id, 0.0),
        )

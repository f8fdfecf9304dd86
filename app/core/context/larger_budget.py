"""Uses a larger budget to serve covered segments in more detail than in the layout of the state block.

The newest, the most important and, with a question, the most related segments are served as their originals (L0),
messages before the tail; others are in the block at L1, L2 or L3. ``detail_choice`` chooses. Nothing that would be
served otherwise is lost: a recalled message is left out only if its segment is served whole. Without a requested budget
the block stays as it was laid out, except in a turn with a budget above the conversation's own, if the policy gives
anchors all the room.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from app.core.context.drafts import ContextInputs, Draft, draft_tokens, first_draft, has_content, with_held_messages
from app.core.context.recalled_messages import closeness_to_best, recall_tokens
from app.core.model.conversation import Message
from app.core.model.segments import LEVELS, ServableSegment, ShownSegment
from app.core.segments.detail_choice import (
    FORM_WORTHS,
    DetailOptions,
    Form,
    Step,
    fitting_steps,
    token_worth,
    upgrade_steps,
)
from app.core.segments.digests import MARKER_ELEMENT_TOKENS, digests_element, segment_lines
from app.core.state.digest_selection import Digests
from app.core.text.budget import without_last
from app.core.text.localization.catalogue import Catalogue, catalogue_of
from app.core.text.token_counts import tokens_of

FULL: Final = "full"
_NONE: Final = "none"
_DATE_LINE_TOKENS: Final = 16
"""Tokens of the line with the dates of a segment's originals, rounded up."""
_ROUNDS: Final = 3
"""The number of passes. A segment that holds a recalled message replaces it, which leaves room for another segment."""


def with_detail_options(inputs: ContextInputs) -> ContextInputs:
    """The inputs with the possible forms of its segments: computed once, for reading and for the context."""
    options = _detail_options(inputs, first_draft(inputs).digests)
    return replace(inputs, detail=replace(inputs.detail, options=options))


def ranges_to_read(inputs: ContextInputs, max_tokens: int) -> list[tuple[int, int]]:
    """The first and last ``seq`` of each segment whose originals a budget could serve, before anything is recalled.

    ``max_tokens``: the tokens after the system prompt and the files.
    """
    draft = first_draft(inputs)
    plan = _DetailPlan(inputs, draft)
    taken = fitting_steps(plan.steps, _free_tokens(inputs, draft, max_tokens))
    return [(one.from_seq, one.to_seq) for one in plan.expanded_by(taken)]


def with_detail(inputs: ContextInputs, draft: Draft, max_tokens: int) -> Draft:
    """The draft with as much more detail as fits into ``max_tokens``; unchanged if something was already left out.

    ``inputs`` has the originals that ``ranges_to_read`` names. ``max_tokens``: the tokens after the system prompt and
    the files.
    """
    laid_out = first_draft(inputs)
    if not inputs.detail.segments or draft.left_out or draft.digests != laid_out.digests:
        return draft
    plan = _DetailPlan(inputs, draft)
    found, free = draft, _free_tokens(inputs, draft, max_tokens)
    for _ in range(_ROUNDS):
        taken = fitting_steps(plan.steps, free)
        while taken and (excess := _size(inputs, plan.served(taken)) - max_tokens) > 0:
            taken = without_last(taken, excess, lambda step: step.tokens)
        found = plan.served(taken) if taken else found
        gained = len(draft.recalled) - len(found.recalled)
        left = max_tokens - _size(inputs, found)
        if not gained or left <= 0 or len(taken) == len(plan.steps):
            break
        free = sum(step.tokens for step in taken) + left
    return found


def _free_tokens(inputs: ContextInputs, draft: Draft, max_tokens: int) -> int:
    left = max_tokens - _size(inputs, draft) - inputs.unloaded_tokens
    left -= 0 if draft.digests.element else MARKER_ELEMENT_TOKENS
    most = inputs.detail.max_added_tokens
    if most is None:
        return left
    while most > max(left, 0):
        most //= 2  # so coarse that what is served stays the same for many messages
    return most


def _size(inputs: ContextInputs, draft: Draft) -> int:
    return draft_tokens(inputs, draft) + recall_tokens(inputs, draft)


class _DetailPlan:
    """The forms that each segment of a draft could be served in. The digests of the draft are those of the layout."""

    def __init__(self, inputs: ContextInputs, draft: Draft) -> None:
        self._inputs = inputs
        self._draft = draft
        self._segments = inputs.detail.segments
        self._options = inputs.detail.options or _detail_options(inputs, draft.digests)
        self.steps = self._options.steps

    def expanded_by(self, taken: Sequence[Step]) -> list[ServableSegment]:
        """The segments that these steps serve as their originals."""
        return [
            segment
            for segment, form in zip(self._segments, self._options.forms_after(taken), strict=True)
            if form.name == FULL
        ]

    def served(self, taken: Sequence[Step]) -> Draft:
        """The draft with these steps taken."""
        chosen = list(zip(self._segments, self._options.forms_after(taken), strict=True))
        digested = [(segment, form) for segment, form in chosen if form.line]
        expanded = [segment for segment, form in chosen if form.name == FULL]
        hidden_count = max(self._inputs.detail.total - len(digested) - len(expanded), 0)
        locale = self._inputs.conversation.locale
        digests = Digests(
            element=digests_element([form.line for _, form in digested], hidden_count, locale),
            segments=tuple(_shown_segment(segment, form.name) for segment, form in digested),
        )
        originals = [one for segment in expanded for one in self._originals_of(segment)]
        known = {message.seq for message in self._draft.held}
        added = [one for one in originals if one.seq not in known and has_content(one)]
        held = tuple(sorted((*self._draft.held, *added), key=lambda message: message.seq))
        seqs = {message.seq for message in held}
        draft = replace(
            self._draft,
            digests=digests,
            expanded=tuple(_shown_segment(segment, FULL) for segment in expanded),
            recalled=tuple(one for one in self._draft.recalled if one.source.seq not in seqs),
        )
        return with_held_messages(self._inputs, draft, held) if added else draft

    def _originals_of(self, segment: ServableSegment) -> Sequence[Message]:
        originals = self._inputs.detail.originals
        first = bisect_left(originals, segment.from_seq, key=lambda message: message.seq)
        return originals[first : bisect_right(originals, segment.to_seq, key=lambda message: message.seq)]


def _shown_segment(segment: ServableSegment, name: str) -> ShownSegment:
    level = next((level for level in LEVELS if level == name), None)
    return ShownSegment(id=segment.id, level=level, from_seq=segment.from_seq, to_seq=segment.to_seq)


def _closeness_to_question(inputs: ContextInputs, segments: Sequence[ServableSegment]) -> dict[str, float]:
    closeness = closeness_to_best(inputs)
    if not closeness:
        return {}
    found: dict[str, float] = {}
    seqs = sorted(closeness)
    for segment in segments:
        inside = seqs[bisect_left(seqs, segment.from_seq) : bisect_right(seqs, segment.to_seq)]
        found[segment.id] = max((closeness[seq] for seq in inside), default=0.0)
    return found


def _detail_options(inputs: ContextInputs, digests: Digests) -> DetailOptions:
    segments = inputs.detail.segments
    shown = {one.id: one.level or "marker" for one in digests.segments}
    catalogue = catalogue_of(inputs.conversation.locale)
    forms = [
        list(_forms_of(inputs, segment, shown.get(segment.id, _NONE), worth, catalogue))
        for segment, worth in zip(segments, _worths(inputs, _closeness_to_question(inputs, segments)), strict=True)
    ]
    # There are no steps if the block shows a segment that was not read.
    return DetailOptions(forms, upgrade_steps(forms) if shown.keys() <= {segment.id for segment in segments} else [])


def _forms_of(
    inputs: ContextInputs, segment: ServableSegment, present: str, worth: float, catalogue: Catalogue
) -> Iterator[Form]:
    """The forms in which a segment could be served: first the present one, then better ones."""
    lines = segment_lines(segment, inputs.policy.levels, estimator=inputs.policy.estimator, catalogue=catalogue)
    names = [*lines]
    value = worth * segment.tokens
    if present == _NONE:
        yield Form(_NONE, 0, 0.0)
    else:
        line, tokens = lines[present] if present in lines else lines["marker"]
        yield Form(present, tokens, value * FORM_WORTHS[present], line)
        names = names[names.index(present) + 1 :] if present in names else []
    for name in names:
        line, tokens = lines[name]
        yield Form(name, tokens, value * FORM_WORTHS[name], line)
    if inputs.detail.may_expand:
        yield Form(FULL, _full_tokens(inputs, segment), value * FORM_WORTHS[FULL])


def _full_tokens(inputs: ContextInputs, segment: ServableSegment) -> int:
    # The tokens are those of the segment's row, so that they are the same before and after the originals are read.
    covered, estimator = inputs.conversation.covered, inputs.policy.estimator
    whole = tokens_of(covered.tokens, covered.bytes, estimator)
    return -(-segment.tokens * whole // max(covered.tokens, 1)) + _DATE_LINE_TOKENS


def _worths(inputs: ContextInputs, relations: Mapping[str, float]) -> Iterator[float]:
    segments, quoted_seqs = inputs.detail.segments, inputs.detail.anchor_seqs
    anchors = sorted(anchor.seq for anchor in inputs.anchors) if quoted_seqs is None else sorted(quoted_seqs)
    for place, segment in enumerate(segments):
        quoted = bisect_right(anchors, segment.to_seq) - bisect_left(anchors, segment.from_seq)
        values_and_anchors = segment.identifiers + 2 * quoted
        yield token_worth(
            rank=len(segments) - 1 - place,
            importance=min(values_and_anchors / max(2 * segment.messages, 1), 1.0),
            relation=relations.get(segment.id, 0.0),
        )

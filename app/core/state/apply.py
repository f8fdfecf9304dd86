"""Makes a state version from an accepted candidate: merges, prunes to the cap, lays out, and checks what it saves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from app.core.anchors.proposals import accepted_anchors
from app.core.anchors.ranking import ranked, ranking_of, repairs_of
from app.core.anchors.selection import MIN_TOKEN_LIMIT, ServedAnchors, serve
from app.core.model.anchors import Anchor, FoundAnchor, Ranking
from app.core.model.candidate import Candidate
from app.core.model.conversation import Layout, Message, Sums
from app.core.model.doubt_marks import with_doubt_marks
from app.core.model.policies.budgets import Budgets
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.provenance import origin_of
from app.core.model.records import EntryCounts
from app.core.model.repairs import Repair
from app.core.model.segments import SegmentDigest
from app.core.model.state import ID_LETTERS, StateEntry, StateSchema, StateVersion
from app.core.model.word_overlap import Overlap
from app.core.planning.compaction import CompactionPlan
from app.core.state.layout import layout_of
from app.core.state.merge import MergeResult, merge
from app.core.state.outdated import OutdatedAnchors
from app.core.state.pruning import prune, state_of, state_token_limit
from app.core.state.restored_sentences import as_sentence, forgotten_statements, missing_statements, with_quotes
from app.core.state.statement_removal import removed_statements
from app.core.summarizer.candidate import without_drops_for_space
from app.core.summarizer.offline.narrative_states import is_narrative_only
from app.core.text.budget import Budget
from app.core.text.relative import without_added_days
from app.core.text.sentences import sentences
from app.core.text.token_counts import MESSAGE_OVERHEAD, Estimator, estimate_text
from app.core.validation.dates import text_with_dates
from app.core.validation.gate import GateReport, saves_too_little
from app.core.validation.lost_values import LostSentence, StaleValues, lost_sentences
from app.core.validation.same_subject import has_other_subject

QUOTES_DIVISOR: Final = 4
"""The state's cap, divided by this, is the room for quotes of values that code brings back. A state of one text may
also use the room that it leaves free."""
MIN_QUOTE_TOKENS: Final = 60
"""The least room for quotes, in tokens: in less, they are only scraps, and so small a state needs all its room."""
PRUNING_STEP_TOKENS: Final = 8
"""Pruning continues in such steps: a block counted as a whole differs from the sum of its parts by fewer tokens."""
ANCHORS_OVER_BUDGET: Final = "anchors_over_budget"
"""The reason of a fold that is refused since its anchors, all of which are served, would fill the context."""
MARKER_TOKENS: Final = 12
"""The tokens of the marker for anchors without room: they count as state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyContext:
    """Everything that an accepted candidate is applied to."""

    schema: StateSchema
    policy: CompactionPolicy
    budgets: Budgets
    plan: CompactionPlan
    span: tuple[Message, ...]
    previous: tuple[StateEntry, ...]
    next_entry: int
    version: int
    """The number of the version to be written."""
    tokens_before: int
    """The context's size before the compaction."""
    block_before: int
    """The tokens of the present state block, including its anchors and digests."""
    target: int
    """The size that the context should end below: the budget's target, converted to estimated tokens by the
    conversation's factor."""
    anchors: tuple[Anchor, ...] = ()
    """The active anchors up to the end of the chunk whose messages are not held."""
    outdated: tuple[Anchor, ...] = ()
    """The newest superseded anchors: what they say is removed from the state and does not come back as a quote."""
    demands: frozenset[int] = frozenset()
    """The messages after the state so far in which a user set a constraint or a goal."""
    is_carried_over: bool = False
    """Whether the state so far was just carried over from another schema: all of it stays, even above the cap."""
    added_tokens: int = 0
    """Tokens that this compaction adds beside the state block: those of tools that are offered from then on."""
    lasting_tokens: int = 0
    """Tokens that stay whatever is folded: those of the parts before the state block, and of all held messages."""


class FinalReason(str):
    """The reason word of a refusal that no other answer of a model could avoid."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedCandidate:
    """A new state, ready to be saved."""

    state: dict[str, Any]
    entries: tuple[StateEntry, ...]
    """Served entries first, then those that the cap pushed out."""
    next_entry: int
    layout: Layout
    counts: EntryCounts
    tokens_after: int
    """The context's size with this state, for the same tail."""
    proposed_anchors: tuple[FoundAnchor, ...] = ()
    """The anchors that the model proposed and that are verbatim in the span."""
    ranking: Ranking = field(default_factory=Ranking)
    """What the model said about the anchors that it was shown."""
    digests: tuple[SegmentDigest, ...] = ()
    """The model's checked descriptions of the chunk's segments."""
    repairs: tuple[Repair, ...] = ()
    """What was changed in the candidate."""
    lost: tuple[tuple[int, str], ...] = ()
    """(message, sentence) of each value that code had to bring back: the model can be asked about them."""
    anchor_room: int | None = None
    """The tokens for anchors, if the whole allotment would make the context no smaller; ``None``: the allotment."""


def apply_candidate(report: GateReport, context: ApplyContext) -> AppliedCandidate | str:
    """The state version made from an accepted candidate, or the reason word why there is none.

    * The size of the candidate's own text counts, without what code adds: a text that repeats its input is not a
      summary, even though the cap would shorten it.
    * Exact values that it lost come back as quotes.
    * The state stays within its cap. If the context would still be above the target after the last chunk, the state is
      pruned further, down to its planned size at most.
    * The result is always smaller than what it replaces. If needed, the quotes are left out first, then the anchors
      that the model proposed, then other anchors, which a marker then leads to: a short conversation may consist of
      little else.

    Reasons: ``not_smaller``, and ``anchors_over_budget`` (the policy has no allotment for anchors, and because of them
    the context would exceed the budget).
    """
    if report.candidate is None:
        return report.reason or "not_smaller"
    ranking = _model_ranking(report, context)
    context = replace(context, anchors=ranked(context.anchors, ranking))
    merged = merge(
        context.schema,
        context.previous,
        without_drops_for_space(report.candidate) if context.is_carried_over else report.candidate,
        context.span,
        context.version,
        context.next_entry,
        context.anchors,
        None if report.by_model else OutdatedAnchors(context.outdated, context.anchors),
        by_model=report.by_model,
        demands=context.demands,
    )
    if saves_too_little(
        _folded_text_tokens(context),
        _tokens_without_added_days(context.previous, context) if context.block_before else 0,
        _tokens_without_added_days(merged.entries, context),
    ):
        return "not_smaller"
    counts = replace(merged.counts, ungrounded=report.ungrounded_count)
    merged = replace(merged, counts=counts)
    quotes = report.candidate.anchors
    proposed = (
        accepted_anchors(quotes, [one for one in context.span if not one.is_protected], context.anchors)
        if quotes
        else ()
    )
    applied = _applied_with_least_loss(merged, context, proposed, report.candidate if report.by_model else None)
    if isinstance(applied, str):
        return apply_candidate(report, replace(context, is_carried_over=False)) if context.is_carried_over else applied
    if _anchors_exceed_budget(applied, context):
        return FinalReason(ANCHORS_OVER_BUDGET)
    set_aside = (*merged.repairs, *repairs_of(context.anchors, ranking))
    repairs = (
        *report.repairs,
        *set_aside,
        *applied.repairs,
        *_repairs_of_shortened_narratives(merged, applied, context.schema),
    )
    return replace(applied, digests=report.candidate.digests, repairs=repairs, ranking=ranking)


def certain_refusal(context: ApplyContext) -> FinalReason | None:
    """Why ``apply_candidate`` refuses every candidate about this chunk; ``None`` if it may accept one.

    Under a policy without an allotment for anchors all of them are served, so it can be certain before a model is
    asked: even with an empty state they exceed the budget, or make the context no smaller.
    """
    if context.policy.anchor_share is not None or not context.anchors:
        return None
    least = layout_of(
        context.schema,
        state_of(context.schema, ()),
        served_as=context.policy.served_as,
        estimator=context.policy.estimator,
        anchors=_served_anchors(context, ()),
    )
    always, budget = context.lasting_tokens + context.added_tokens, _budget_in_estimated_tokens(context)
    if always + least.tokens > budget >= always + _most_state_tokens(context):
        return FinalReason(ANCHORS_OVER_BUDGET)
    tokens_after = _tokens_after(context, least)
    if tokens_after < context.tokens_before:
        return None
    return FinalReason(ANCHORS_OVER_BUDGET if tokens_after > budget else "not_smaller")


def _tokens_after(context: ApplyContext, layout: Layout) -> int:
    """The context's size with this layout, for the same tail."""
    removed = context.plan.folded_tokens + context.block_before
    return context.tokens_before + context.added_tokens - removed + layout.tokens


def _repairs_of_shortened_narratives(
    merged: MergeResult, applied: AppliedCandidate, schema: StateSchema
) -> Iterator[Repair]:
    # In a state of one text, lost sentences are recorded as entries instead.
    served_texts = {entry.id: entry.text for entry in served(applied.entries)}
    for entry in merged.entries if merged.by_model and not is_narrative_only(schema) else ():
        if entry.role == "narrative" and not entry.pruned and served_texts.get(entry.id) != entry.text:
            yield Repair(
                field=entry.field,
                reason="shortened",
                before=entry.text,
                after=served_texts.get(entry.id),
                entry_id=entry.id,
            )


def _model_ranking(report: GateReport, context: ApplyContext) -> Ranking:
    if (
        report.candidate is None
        or not report.by_model
        or report.source_texts is None
        or context.budgets.anchor_tokens == 0
    ):
        return Ranking()
    return ranking_of(report.candidate, context.anchors, context.span, report.source_texts.messages)


def _applied_with_least_loss(
    merged: MergeResult, context: ApplyContext, proposed: tuple[FoundAnchor, ...], candidate: Candidate | None
) -> AppliedCandidate | str:
    """The state with as many added quotes and anchors as keep the context below its target, or else below its old size.

    Passages that the model itself quotes come first: before they are left out, anchors found by rules are.
    """
    lost: tuple[tuple[int, str], ...] = ()
    if candidate is None:
        quotes = _quotes_for_offline(merged, context, proposed)
    else:
        quotes, lost = _quotes_and_losses_for_model(merged, context, proposed, candidate)
    smaller: AppliedCandidate | None = None
    for given_quotes, found in dict.fromkeys(((quotes, proposed), (quotes, ()), ((), proposed), ((), ()))):
        applied = _applied_with_quotes(merged, context, given_quotes, found)
        if applied.tokens_after >= context.tokens_before and found and context.policy.anchor_share is not None:
            applied = _with_fewer_anchors(merged, context, applied, given_quotes, found)
        if applied.tokens_after >= context.tokens_before or (found and not _serves_any(applied, found)):
            continue
        applied = replace(applied, lost=lost)
        if not context.plan.is_last or applied.tokens_after <= context.target:
            return applied
        smaller = smaller or applied
    if smaller is not None:
        return smaller
    if context.policy.anchor_share is None:
        return _reason_with_all_anchors(applied, context)
    applied = _with_fewer_anchors(merged, context, applied)
    return applied if applied.tokens_after < context.tokens_before else "not_smaller"


def _reason_with_all_anchors(applied: AppliedCandidate, context: ApplyContext) -> str:
    if applied.tokens_after - applied.layout.anchor_tokens >= context.tokens_before:
        return "not_smaller"
    # Without the anchors the state would be smaller: no shorter record helps.
    return FinalReason(
        ANCHORS_OVER_BUDGET if applied.tokens_after > _budget_in_estimated_tokens(context) else "not_smaller"
    )


def _serves_any(applied: AppliedCandidate, found: Sequence[FoundAnchor]) -> bool:
    return any(one.content in applied.layout.anchors for one in found)


def _with_fewer_anchors(
    merged: MergeResult,
    context: ApplyContext,
    applied: AppliedCandidate,
    quotes: Sequence[tuple[int, str]] = (),
    found: tuple[FoundAnchor, ...] = (),
) -> AppliedCandidate:
    anchor_budget = applied.layout.anchor_tokens
    while applied.tokens_after >= context.tokens_before and anchor_budget > MIN_TOKEN_LIMIT:
        anchor_budget = max(anchor_budget - (applied.tokens_after - context.tokens_before + 1), MIN_TOKEN_LIMIT)
        applied = _applied_with_quotes(merged, context, quotes, found, anchor_budget)
    return applied


def _quotes_and_losses_for_model(
    merged: MergeResult, context: ApplyContext, found: tuple[FoundAnchor, ...], candidate: Candidate
) -> tuple[tuple[tuple[int, str], ...], tuple[tuple[int, str], ...]]:
    lost = list(_lost_sentences_of_span(merged, context, found, digests=candidate.digests))
    quote_budget = context.budgets.state_cap // QUOTES_DIVISOR
    older = _missing_earlier_statements(merged, context, quote_budget)
    quote_budget -= sum(estimate_text(text, context.policy.estimator) for _, text in older)
    quote_budget = min(quote_budget, _quote_tokens_beside(merged.entries, context))
    kept = fitting_quotes(lost, Budget(quote_budget), context.policy.estimator)
    return (*older, *kept), tuple((one.seq, one.text) for one in lost)


def _quote_tokens_beside(entries: Sequence[StateEntry], context: ApplyContext) -> int:
    """The most tokens for quotes of the span: if the state is one text, the room that it leaves, or half the share.

    That text was written anew within the limit, and quotes become a part of it: with more of them, statements of the
    text itself would be pushed out.
    """
    limit = state_token_limit(context.schema, context.budgets)
    most = limit // QUOTES_DIVISOR
    if not is_narrative_only(context.schema) or context.is_carried_over:
        return most
    free = limit - _tokens_without_anchors(state_of(context.schema, entries), context)
    return min(most, max(free, most // 2))


def _missing_earlier_statements(merged: MergeResult, context: ApplyContext, max_tokens: int) -> list[tuple[int, str]]:
    if context.is_carried_over:
        return missing_statements(
            context.schema,
            context.previous,
            merged.entries,
            outdated=OutdatedAnchors(context.outdated, context.anchors),
        )
    return forgotten_statements(
        context.schema, context.previous, merged.entries, max_tokens=max_tokens, estimator=context.policy.estimator
    )


def _quotes_for_offline(
    merged: MergeResult, context: ApplyContext, found: tuple[FoundAnchor, ...]
) -> tuple[tuple[int, str], ...]:
    most = context.budgets.state_cap // QUOTES_DIVISOR
    if most < MIN_QUOTE_TOKENS:
        return ()
    cap = state_token_limit(context.schema, context.budgets)
    least = max(cap // QUOTES_DIVISOR, MIN_QUOTE_TOKENS)
    if context.is_carried_over:
        return (
            *_missing_earlier_statements(merged, context, least),
            *_fitting_quotes_of_span(merged, context, found, max_tokens=least),
        )
    left = cap - _tokens_without_anchors(state_of(context.schema, merged.entries), context)
    quote_budget = min(most, max(least, left))
    older = _missing_earlier_statements(merged, context, quote_budget)
    quote_budget -= sum(estimate_text(text, context.policy.estimator) for _, text in older)
    return (*older, *_fitting_quotes_of_span(merged, context, found, max_tokens=quote_budget))


def _fitting_quotes_of_span(
    merged: MergeResult, context: ApplyContext, found: tuple[FoundAnchor, ...], *, max_tokens: int
) -> list[tuple[int, str]]:
    budget, stale = Budget(max_tokens), OutdatedAnchors(context.outdated, context.anchors).outdated_values
    # Sentences that are surely longer than the remaining room are skipped.
    lost = _lost_sentences_of_span(merged, context, found, stale=stale, token_budget=budget)
    return fitting_quotes(lost, budget, context.policy.estimator)


def _lost_sentences_of_span(
    merged: MergeResult,
    context: ApplyContext,
    found: tuple[FoundAnchor, ...],
    *,
    digests: Sequence[SegmentDigest] = (),
    stale: StaleValues | None = None,
    token_budget: Budget | None = None,
) -> Iterator[LostSentence]:
    shown = _served_anchors(context, found).shown
    span = {message.seq for message in context.span}
    shown_of_span = [anchor for anchor in shown if anchor.seq in span]
    served_texts = [
        *with_doubt_marks([entry for entry in merged.entries if not entry.pruned]),
        *(f"{one.topic}. {one.brief}" for one in digests),
    ]
    hidden = [anchor for anchor in (*context.anchors, *found) if anchor.seq in span and anchor not in shown_of_span]
    return lost_sentences(
        context.span,
        served_texts,
        served_anchors=shown,
        unserved_anchors=hidden,
        stale_values=stale,
        token_budget=token_budget,
    )


def fitting_quotes(lost: Iterable[LostSentence], budget: Budget, estimator: Estimator) -> list[tuple[int, str]]:
    """The first lost sentences for which there is room, as quotes in the order of the messages."""
    return sorted(
        (one.seq, one.attributed_text) for one in lost if budget.takes(estimate_text(one.attributed_text, estimator))
    )


def _applied_with_quotes(
    merged: MergeResult,
    context: ApplyContext,
    quotes: Sequence[tuple[int, str]],
    found: tuple[FoundAnchor, ...],
    anchor_budget: int | None = None,
) -> AppliedCandidate:
    messages = {message.seq: message for message in context.span}
    quotes = [(seq, text_with_dates(text, [messages[seq]]) if seq in messages else text) for seq, text in quotes]
    entries = with_quotes(
        context.schema,
        merged.entries,
        quotes,
        context.span,
        version=context.version,
        next_entry=merged.next_entry,
        at_end=merged.by_model,
        before=context.previous,
    )
    whole = replace(merged, entries=entries, next_entry=merged.next_entry + len(quotes))
    applied = _pruned_to_cap(whole, context, found, cap=_most_state_tokens(context), anchor_room=anchor_budget)
    cap, floor = (
        applied.layout.tokens - applied.layout.anchor_tokens,
        context.budgets.state_tokens - PRUNING_STEP_TOKENS,
    )
    while context.plan.is_last and (excess := applied.tokens_after - context.target) > 0 and cap > floor:
        cap = max(cap - max(excess, PRUNING_STEP_TOKENS), floor)
        applied = _pruned_to_cap(whole, context, found, cap=cap, anchor_room=anchor_budget)
    served_text = "\n".join(entry.text for entry in served(applied.entries)).casefold()
    restored = [text for _, text in quotes if text.casefold() in served_text]
    counts = replace(applied.counts, restored_by_code=merged.counts.restored_by_code + len(restored))
    repairs = tuple(repairs_of_restored_sentences(restored, applied, context.schema)) if merged.by_model else ()
    return _with_removed_statements_as_pruned(replace(applied, counts=counts, repairs=repairs), whole, context)


def repairs_of_restored_sentences(
    texts: Sequence[str], applied: AppliedCandidate, schema: StateSchema
) -> Iterator[Repair]:
    """Repairs for the sentences that code brought back: entries of their own, or parts of a text that is the state."""
    is_one_text, entries = is_narrative_only(schema), served(applied.entries)
    for text in map(as_sentence, texts) if is_one_text else texts:
        for entry in [one for one in entries if (text in one.text if is_one_text else text == one.text)][-1:]:
            yield Repair(field=entry.field, reason="value_restored", before="", after=text, entry_id=entry.id)


def _most_state_tokens(context: ApplyContext) -> int:
    # Entries that were carried over are kept beside the new ones until the next compaction.
    carried = (
        _tokens_without_anchors(state_of(context.schema, context.previous), context) if context.is_carried_over else 0
    )
    return carried + state_token_limit(context.schema, context.budgets)


def _with_removed_statements_as_pruned(
    applied: AppliedCandidate, whole: MergeResult, context: ApplyContext
) -> AppliedCandidate:
    """Record as pruned the statements for which a state of one text had no room.

    Statements from the span name their source messages; the others are older than the span, and are in the version
    before.
    """
    if not is_narrative_only(context.schema):
        return applied
    kept = {entry.id: entry.text for entry in served(applied.entries)}
    gone = [
        (entry, text)
        for entry in whole.entries
        if entry.id in kept
        for text in removed_statements(entry.text, kept[entry.id])
    ]
    overlap, messages = Overlap(context.span if gone else ()), {message.seq: message for message in context.span}
    pruned: list[StateEntry] = []
    for number, (entry, text) in enumerate(gone, start=applied.next_entry):
        before = next((one for one in context.previous if text in one.text), None)
        drawn = {seq for sentence in sentences(text) for seq in overlap.sources(sentence)}
        seqs = tuple(sorted(drawn)) if before is None else before.from_seqs
        pruned.append(
            replace(
                entry,
                id=f"{ID_LETTERS[entry.role]}{number}",
                text=text,
                from_seqs=seqs,
                since_version=entry.since_version if before is None else before.since_version,
                origins=tuple(sorted({origin_of(messages[seq], text) for seq in seqs if seq in messages})),
                superseded=(),
                pruned=True,
            )
        )
    return replace(applied, entries=(*applied.entries, *pruned), next_entry=applied.next_entry + len(pruned))


def _anchors_exceed_budget(applied: AppliedCandidate, context: ApplyContext) -> bool:
    anchors = applied.layout.anchor_tokens
    if context.policy.anchor_share is not None or not anchors:
        return False
    budget = _budget_in_estimated_tokens(context)
    always = context.lasting_tokens + context.added_tokens + applied.layout.tokens
    # What is always served has to fit after any chunk, since no later chunk would help.
    sizes = (always, applied.tokens_after) if context.plan.is_last else (always,)
    return any(size > budget >= size - anchors for size in sizes)


def _budget_in_estimated_tokens(context: ApplyContext) -> int:
    return context.budgets.budget * context.target // max(context.budgets.target, 1)


def version_of(
    applied: AppliedCandidate,
    context: ApplyContext,
    *,
    boundary: UUID,
    covered: Sums,
    compaction_id: UUID,
    layout: Layout,
    now: datetime,
) -> StateVersion:
    """The version to be stored; ``layout`` names the held messages that follow the block."""
    return StateVersion(
        version=context.version,
        state_schema=context.schema.name,
        state=applied.state,
        entries=applied.entries,
        next_entry=applied.next_entry,
        boundary_seq=context.plan.to_seq,
        boundary_message_id=boundary,
        covered=covered,
        layout=layout,
        compaction_id=compaction_id,
        created_at=now,
        repairs=repairs_on_record(applied),
    )


def repairs_on_record(applied: AppliedCandidate) -> tuple[Repair, ...]:
    """The repairs without secrets, each with the entry that it led to."""
    ids = {(entry.field, entry.text): entry.id for entry in applied.entries}
    for repair in reversed(applied.repairs):  # a later repair may have changed the text again, as by adding a day
        if repair.before and repair.after and (id_ := ids.get((repair.field, repair.after))):
            ids.setdefault((repair.field, repair.before), id_)
    narratives = {
        entry.field: entry.id for entry in served(applied.entries) if entry.role == "narrative" and not entry.in_doubt
    }
    return tuple(
        replace(
            repair.redacted(),
            entry_id=repair.entry_id
            or ids.get((repair.field, repair.after or ""))
            or (narratives.get(repair.field) if repair.cut else None),
        )
        for repair in applied.repairs
    )


def served(entries: Sequence[StateEntry]) -> tuple[StateEntry, ...]:
    """The entries that are in the state, without those that the cap pushed out."""
    return tuple(entry for entry in entries if not entry.pruned)


def _folded_text_tokens(context: ApplyContext) -> int:
    # The marks around each message are not counted: even an echo of all messages would save them.
    marks = MESSAGE_OVERHEAD if context.policy.estimator == "script" else 0
    return max(context.plan.folded_tokens - marks * context.plan.messages, 0)


def given_up_without_successor(entries: Sequence[StateEntry], previous: Iterable[StateEntry]) -> set[str]:
    """Ids of the entries that were just put in doubt and that no possible successor repeats in any part."""
    clear = {entry.id for entry in previous if not entry.in_doubt and entry.role != "narrative"}
    texts = {one.id: one.text for one in entries}
    return {
        one.id
        for one in entries
        if one.in_doubt
        and one.id in clear
        and all(has_other_subject(texts.get(name, ""), one.text) for name in one.replaced_by)
    }


def _pruned_to_cap(
    merged: MergeResult, context: ApplyContext, found: tuple[FoundAnchor, ...], *, cap: int, anchor_room: int | None
) -> AppliedCandidate:
    anchors = _served_anchors(context, found, anchor_room)
    most_tokens = cap - (MARKER_TOKENS if anchors.behind_marker else 0)

    def fits(state: dict[str, Any]) -> bool:
        """Whether the block with its frame, without anchors, fits: the planner and the policy's floor count it so."""
        return _tokens_without_anchors(state, context) <= most_tokens

    carried_over = {entry.id for entry in context.previous} if context.is_carried_over else ()
    since = context.version if merged.by_model else None
    doubted = given_up_without_successor(merged.entries, context.previous)
    kept, pushed_out = prune(
        context.schema, merged.entries, fits=fits, carried_over=carried_over, written_since=since, doubted=doubted
    )
    state = state_of(context.schema, kept)
    layout = layout_of(
        context.schema, state, served_as=context.policy.served_as, estimator=context.policy.estimator, anchors=anchors
    )
    return AppliedCandidate(
        state=state,
        entries=(*kept, *pushed_out, *merged.removed),
        next_entry=merged.next_entry,
        layout=layout,
        counts=merged.counts,
        tokens_after=_tokens_after(context, layout),
        proposed_anchors=found,
        anchor_room=anchor_room,
    )


def _served_anchors(
    context: ApplyContext, found: Sequence[FoundAnchor], anchor_budget: int | None = None
) -> ServedAnchors:
    return serve(
        (*context.anchors, *found),
        through_seq=context.plan.to_seq,
        held_seqs=(),
        token_limit=context.budgets.anchor_tokens if anchor_budget is None else anchor_budget,
        estimator=context.policy.estimator,
    )


def _tokens_without_added_days(entries: Sequence[StateEntry], context: ApplyContext) -> int:
    return _tokens_without_anchors(
        state_of(context.schema, [replace(one, text=without_added_days(one.text)) for one in entries]), context
    )


def _tokens_without_anchors(state: dict[str, Any], context: ApplyContext) -> int:
    return layout_of(
        context.schema, state, served_as=context.policy.served_as, estimator=context.policy.estimator
    ).tokens

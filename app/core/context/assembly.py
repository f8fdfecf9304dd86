"""Assembles what a model is sent, within its budget. Pure: it never compacts.

The order is from stable to volatile, so that a provider's prompt cache hits: system prompt with awareness block,
attached files, system messages that the block covers, state block, other held messages, tail. Messages recalled for a
question stand inside the last user message. Between two state versions each other part only grows at its end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final, Literal

from app.core.anchors.rendering import ANCHORS_MARKER, seqs_in
from app.core.context.drafts import (
    ContextInputs,
    Draft,
    block_of,
    block_sizes,
    draft_tokens,
    first_draft,
    held_day_tokens,
    rendered_weight,
    total_weight,
)
from app.core.context.files import with_files
from app.core.context.fitting import DigestFunction, RemovedFirst, TokenLimits, fit
from app.core.context.larger_budget import FULL, with_detail
from app.core.context.oversized_messages import with_all_oversized_elided, with_large_elided
from app.core.context.recalled_messages import conversation_messages, recall_tokens, with_recall
from app.core.context.tools import tools_tokens
from app.core.model.caches import Caching
from app.core.model.errors import ContextOverWindowError
from app.core.model.files import ConversationFile, RequestFile
from app.core.model.gauge import Breakdown, Gauge, gauge_of, in_proportion
from app.core.model.model_io import ContextMessage, ToolSpec
from app.core.model.policies.budgets import exact_share
from app.core.model.segments import Marker, ShownSegment
from app.core.retrieval.ranking import RecalledMessage
from app.core.segments.markers import find_markers
from app.core.state.digest_selection import NO_DIGESTS, digest_token_shares

__all__ = [
    "AssembledContext",
    "ContextInputs",
    "DigestFunction",
    "Section",
    "assemble",
    "available_tokens",
    "exceeds_budget",
    "system_text",
]

MAX_LISTED_SEQS: Final = 200
"""The most positions that a digest's section lists, so that a response stays small for any history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A stretch of the context and where it came from.

    Digests have a section for each shown segment, and one without a segment for the lines of their own element.
    """

    kind: str
    seqs: tuple[int, ...]
    """All positions; for a segment of more than ``MAX_LISTED_SEQS`` messages only the first and the last."""
    tokens: int
    level: str | None = None
    """The level of a digest; ``None``: only its marker is shown."""
    segment_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledContext:
    """What a model would be sent, with everything needed to trace it."""

    messages: tuple[ContextMessage, ...]
    sections: tuple[Section, ...]
    gauge: Gauge
    estimated: int
    """The tokens of the whole by our estimate alone; gauge and sections are corrected by what the provider reported."""
    warnings: tuple[str, ...] = ()
    truncated: tuple[int, int] | None = None
    """The first and the last ``seq`` that were left out for lack of room."""
    recalled: tuple[RecalledMessage, ...] = ()
    """The messages recalled for the question, best first, each with the reasons for it."""
    recalled_by: Literal["words", "words_and_vectors"] | None = None
    """What recall was based on; ``None`` if no embedding model is set, or nothing was looked for."""
    markers: tuple[Marker, ...] = ()
    """All markers in the block, in its order."""
    tools: tuple[ToolSpec, ...] = ()
    """The tools that the chat model is offered; they are counted under ``system``."""
    attached: tuple[ConversationFile, ...] = ()
    """The conversation's files."""
    files: tuple[RequestFile, ...] = ()
    """The conversation's files as this request carries them; ``messages`` do not include them."""
    locale: str = "en"
    """The conversation's locale: what a format has to put in words is written in its language."""
    keeps_all: bool = False
    """Whether the policy forbids leaving anything out, so that a turn fails instead."""
    caching: Caching | None = None
    """How a provider may cache the beginning of the context; ``None``: not at all."""

    @property
    def sends_all_files(self) -> bool:
        """Whether every file is sent, and none is only described in words."""
        return all(file.form != "words" for file in self.files)

    @property
    def messages_with_files(self) -> tuple[ContextMessage, ...]:
        """All messages, including the one with the files."""
        return with_files(self.messages, self.files, self.locale)


def system_text(system_prompt: str, awareness: str) -> str:
    """The system prompt as it is sent; a compaction never changes it."""
    return f"{system_prompt}\n\n{awareness}" if system_prompt else awareness


def exceeds_budget(inputs: ContextInputs, *, budget: int | None = None) -> bool:
    """Whether something has to be left out, so that assembling needs the active anchors."""
    if budget is None and inputs.policy.on_failure == "keep_full":
        return False
    return _whole_size(inputs, first_draft(inputs)) > _token_limits(inputs, budget).tokens


def assemble(inputs: ContextInputs, *, digest: DigestFunction, budget: int | None = None) -> AssembledContext:
    """Assemble a context within its budget.

    Args:
        inputs: The conversation, its held messages, its tail, its anchors, and what to recall from.
        digest: Makes the digest of what has to be left out.
        budget: Tokens for everything after the system prompt and the files; ``None`` = the policy's budget, which
            includes both.

    Raises:
        BudgetTooSmallError: Not even the last user message fits.
        ContextOverWindowError: Under ``keep_full`` the whole exceeds the window; or the files leave no room for this
            model.
    """
    limits = _token_limits(inputs, budget)
    _refuse_files_that_fill_the_budget(inputs, limits, budget)
    is_uncut = budget is None and inputs.policy.on_failure == "keep_full"

    def fitted(tokens: int, *, needs_state: bool = True) -> Draft:
        draft = first_draft(inputs)
        if is_uncut:
            return _uncut_draft(inputs, draft)
        smaller_limits = replace(limits, tokens=tokens)
        return (
            fit(inputs, draft, smaller_limits, digest, needs_state=needs_state)
            if _whole_size(inputs, draft) > tokens
            else draft
        )

    base = inputs.conversation.estimated_within(inputs.budgets.budget if budget is None else budget)
    fill_limit = _most_tokens_below_triggers(inputs) - _tokens_before_block(inputs) if budget is None else None
    draft = with_recall(inputs, fitted, limits.tokens, share_base=base, may_cut=not is_uncut, fill_limit=fill_limit)
    if budget is not None or inputs.detail.max_added_tokens is not None:
        draft = with_detail(inputs, draft, limits.tokens)
    if budget is None and _anchors_exceed_budget(inputs, draft):
        draft = draft.warned("anchors_over_budget")
    return _assembled_context(inputs, draft)


def _anchors_exceed_budget(inputs: ContextInputs, draft: Draft) -> bool:
    # The policy never leaves an anchor out: until it is changed, nothing can be compacted.
    was_refused = bool(draft.warnings) and inputs.conversation.quiet.reason == "anchors_over_budget"
    return was_refused or (inputs.policy.anchor_share is None and draft.anchors_behind_marker > 0)


def available_tokens(inputs: ContextInputs, budget: int | None) -> int:
    """The tokens for everything after the system prompt and the files."""
    return _token_limits(inputs, budget).tokens


def available_anchor_tokens(inputs: ContextInputs, budget: int | None) -> int | None:
    """The most tokens of anchors in any draft, without those that users set; ``None``: all anchors are needed.

    It is their share, plus the tokens of the anchors in the layout with the block around them: one step of fitting may
    leave them so much of that as the rest does not use.
    """
    limit = _token_limits(inputs, budget).anchors
    if limit is None or inputs.policy.estimator != "script" or inputs.detail.segments:
        return None
    laid_out = first_draft(inputs)
    if not (limit or laid_out.anchors):
        return 0
    alone = replace(laid_out, state=None, digests=NO_DIGESTS, held_days="", anchors=laid_out.anchors or ANCHORS_MARKER)
    return limit + rendered_weight(inputs, block_of(inputs, alone))


def _most_tokens_below_triggers(inputs: ContextInputs) -> int:
    firsts = (trigger.at.first_tokens(inputs.budgets) for trigger in inputs.policy.triggers)
    lowest = min((first for first in firsts if first is not None), default=inputs.budgets.window + 1)
    return inputs.conversation.estimated_within(lowest - 1)


def _token_limits(inputs: ContextInputs, budget: int | None) -> TokenLimits:
    share = inputs.policy.anchor_share
    if budget is None:
        tokens = inputs.conversation.estimated_within(inputs.budgets.budget) - _tokens_before_block(inputs)
        removed_first: RemovedFirst = "facts" if share is None else "anchors"
        return TokenLimits(tokens=tokens, anchors=inputs.budgets.anchor_tokens, removed_first=removed_first)
    tokens = inputs.conversation.estimated_within(budget)
    if share is None:
        return TokenLimits(tokens=tokens, anchors=None, removed_first="least")
    return TokenLimits(tokens=tokens, anchors=math.floor(exact_share(share) * tokens), removed_first="anchors")


def _refuse_files_that_fill_the_budget(
    inputs: ContextInputs, limits: TokenLimits, requested_budget: int | None
) -> None:
    """Files are never left out: a model whose budget they fill cannot be asked."""
    files = inputs.conversation.file_tokens
    if requested_budget is not None or not files or limits.tokens > 0:
        return
    budget, weight = inputs.budgets.budget, inputs.conversation.counted(files)
    raise ContextOverWindowError(
        f"the attached files of {weight} tokens leave no room in a budget of {budget} beside the system prompt: remove"
        " files, or ask a model with a larger window",
        extra={
            "tokens": inputs.conversation.counted(_tokens_before_block(inputs)),
            "files": weight,
            "window": inputs.budgets.window,
        },
    )


def _whole_size(inputs: ContextInputs, draft: Draft) -> int:
    return draft_tokens(inputs, draft) + inputs.unloaded_tokens


def _uncut_draft(inputs: ContextInputs, draft: Draft) -> Draft:
    """The draft under ``keep_full``: over the budget but within the window it is sent whole, with a warning.

    If the policy says so, a message that can never fit is sent without its middle. If that is not enough, large
    messages are too, the largest first.
    """
    system = _tokens_before_block(inputs)
    window = inputs.conversation.estimated_within(inputs.budgets.window)
    elides = inputs.policy.oversized == "elide" and not inputs.unloaded_tokens  # unread messages cannot be served
    total = system + _whole_size(inputs, draft)
    if total > window and elides:
        draft = with_all_oversized_elided(inputs, draft, window - system)
        total = system + _whole_size(inputs, draft)
    if total > window and elides:
        draft = with_large_elided(inputs, draft, window - system)
        total = system + _whole_size(inputs, draft)
    tokens = inputs.conversation.counted(total)
    if tokens > inputs.budgets.window:
        raise ContextOverWindowError(
            f"the context of {tokens} tokens exceeds the window of {inputs.budgets.window}; compact the conversation,"
            " by keep_tail_messages further than its policy keeps, or choose on_failure: truncate",
            extra={
                "tokens": tokens,
                "window": inputs.budgets.window,
                "breakdown": asdict(_whole_breakdown(inputs, draft).scaled(tokens)),
            },
        )
    return draft.warned("context_over_budget") if tokens > inputs.budgets.budget else draft


def _whole_breakdown(inputs: ContextInputs, draft: Draft) -> Breakdown:
    loaded = _assembled_context(inputs, draft).gauge.breakdown
    return replace(loaded, tail=loaded.tail + inputs.conversation.counted(inputs.unloaded_tokens))


def _assembled_context(inputs: ContextInputs, draft: Draft) -> AssembledContext:
    system = _system_tokens(inputs)
    state, anchors, digests = block_sizes(inputs, draft)
    expanded = _expanded_sections(inputs, draft)
    expanded_tokens = sum(section.tokens for section in expanded)
    held = max(total_weight(inputs, draft.held) - expanded_tokens, 0) + held_day_tokens(inputs, draft)
    tail = total_weight(inputs, draft.tail)
    expanded_seqs = {seq for section in expanded for seq in section.seqs}
    recalled, passages = recall_tokens(inputs, draft), recall_tokens(inputs, replace(draft, recalled=()))
    sections = (
        Section(kind="system", seqs=(), tokens=system),
        Section(kind="files", seqs=(), tokens=inputs.conversation.file_tokens),
        Section(kind="state", seqs=(), tokens=state),
        Section(kind="anchors", seqs=seqs_in(draft.anchors), tokens=anchors),
        *_digest_sections(draft, digests),
        *expanded,
        Section(
            kind="held",
            seqs=tuple(message.seq for message in draft.held if message.seq not in expanded_seqs),
            tokens=held,
        ),
        Section(kind="tail", seqs=tuple(message.seq for message in draft.tail), tokens=tail),
        Section(kind="passages", seqs=(), tokens=passages),
        Section(kind="recalled", seqs=recalled_seqs(draft.recalled), tokens=recalled - passages),
    )
    estimated = Breakdown(
        system=system,
        files=inputs.conversation.file_tokens,
        state=state,
        anchors=anchors,
        digests=digests + expanded_tokens,
        held=held,
        tail=tail,
        recalled=recalled,
    )
    tokens = inputs.conversation.counted(estimated.total)
    return AssembledContext(
        messages=(
            _system_message(inputs),
            *_with_block(block_of(inputs, draft), conversation_messages(draft, inputs.conversation.locale), draft),
        ),
        sections=tuple(one for one in _with_gauge_tokens(sections, tokens) if one.tokens or one.segment_id),
        gauge=gauge_of(
            inputs.policy,
            inputs.budgets,
            estimated.scaled(tokens),
            anchors_behind_marker=draft.anchors_behind_marker,
            adaptive=inputs.thresholds,
        ),
        estimated=estimated.total,
        warnings=draft.warnings,
        truncated=(draft.left_out.from_seq, draft.left_out.to_seq) if draft.left_out else None,
        recalled=draft.recalled,
        markers=(*find_markers(draft.anchors), *find_markers(draft.digests.element)),
        tools=inputs.tools,
        attached=inputs.files,
        locale=inputs.conversation.locale,
        keeps_all=inputs.policy.on_failure == "keep_full",
    )


def _with_gauge_tokens(sections: Sequence[Section], tokens: int) -> list[Section]:
    shares = in_proportion((section.tokens for section in sections), tokens)
    return [replace(section, tokens=share) for section, share in zip(sections, shares, strict=True)]


def _with_block(
    block: Sequence[ContextMessage], messages: Sequence[ContextMessage], draft: Draft
) -> tuple[ContextMessage, ...]:
    covered = {message.seq for message in draft.held if message.role == "system"}
    before = (message for message in messages if message.seq in covered)
    return (*before, *block, *(message for message in messages if message.seq not in covered))


def _digest_sections(draft: Draft, tokens: int) -> list[Section]:
    return [
        Section(
            kind="digests",
            seqs=_shown_seqs(shown) if shown else (),
            tokens=share,
            level=shown.level if shown else None,
            segment_id=shown.id if shown else None,
        )
        for shown, share in digest_token_shares(draft.digests, tokens)
    ]


def _expanded_sections(inputs: ContextInputs, draft: Draft) -> list[Section]:
    """One section for each covered segment whose originals are served; other held messages do not belong to it."""
    held = {message.seq for message in first_draft(inputs).held}
    sections = []
    for segment in draft.expanded:
        messages = [
            message
            for message in draft.held
            if segment.from_seq <= message.seq <= segment.to_seq and message.seq not in held
        ]
        sections.append(
            Section(
                kind="digests",
                seqs=tuple(message.seq for message in messages),
                tokens=total_weight(inputs, messages),
                level=FULL,
                segment_id=segment.id,
            )
        )
    return sections


def _shown_seqs(shown: ShownSegment) -> tuple[int, ...]:
    if shown.to_seq - shown.from_seq < MAX_LISTED_SEQS:
        return tuple(range(shown.from_seq, shown.to_seq + 1))
    return shown.from_seq, shown.to_seq


def recalled_seqs(recalled: Sequence[RecalledMessage]) -> tuple[int, ...]:
    """Positions of recalled messages, in order."""
    return tuple(sorted(one.source.seq for one in recalled))


def _system_message(inputs: ContextInputs) -> ContextMessage:
    return ContextMessage(role="system", content=inputs.system)


def _system_tokens(inputs: ContextInputs) -> int:
    definitions = tools_tokens(inputs.tools, inputs.policy.estimator) + inputs.schema_tokens
    return rendered_weight(inputs, (_system_message(inputs),)) + definitions


def _tokens_before_block(inputs: ContextInputs) -> int:
    return _system_tokens(inputs) + inputs.conversation.file_tokens

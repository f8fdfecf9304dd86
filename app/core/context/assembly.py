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
    Draft,
    Material,
    block_of,
    block_sizes,
    first_draft,
    held_day_tokens,
    size_of,
    weigh_all,
    weight_in_all,
)
from app.core.context.eliding import with_all_giants_elided, with_large_elided
from app.core.context.files import with_files
from app.core.context.fitting import Digest, FirstToGo, Room, fit
from app.core.context.joining import recall_tokens, spoken, with_recall
from app.core.context.larger_budget import FULL, with_detail
from app.core.context.tools import tools_tokens
from app.core.model.caches import Caching
from app.core.model.errors import ContextOverWindowError
from app.core.model.files import ConversationFile, RequestFile
from app.core.model.gauge import Breakdown, Gauge, gauge_of, in_proportion
from app.core.model.model_io import ContextMessage, ToolSpec
from app.core.model.policies.policy import exact
from app.core.model.segments import Marker, ShownSegment
from app.core.retrieval.ranking import Recalled
from app.core.segments.markers import find
from app.core.state.digesting import NO_DIGESTS, shares_of

__all__ = ["AssembledContext", "Digest", "Material", "Section", "assemble", "exceeds", "room_of", "system_text"]

SEQS: Final = 200
"""The most positions that a digest's section lists, so that a response stays small for any history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A stretch of the context and where it came from.

    Digests have a section for each shown segment, and one without a segment for the lines of their own element.
    """

    kind: str
    seqs: tuple[int, ...]
    """All positions; for a segment of more than ``SEQS`` messages only the first and the last."""
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
    recalled: tuple[Recalled, ...] = ()
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
    def is_complete(self) -> bool:
        """Whether every file is sent, and none is only described in words."""
        return all(file.form != "words" for file in self.files)

    @property
    def whole(self) -> tuple[ContextMessage, ...]:
        """All messages, including the one with the files."""
        return with_files(self.messages, self.files, self.locale)


def system_text(system_prompt: str, awareness: str) -> str:
    """The system prompt as it is sent; a compaction never changes it."""
    return f"{system_prompt}\n\n{awareness}" if system_prompt else awareness


def exceeds(material: Material, *, budget: int | None = None) -> bool:
    """Whether something has to be left out, so that assembling needs the active anchors."""
    if budget is None and material.policy.on_failure == "keep_full":
        return False
    return _whole_size(material, first_draft(material)) > _room(material, budget).tokens


def assemble(material: Material, *, digest: Digest, budget: int | None = None) -> AssembledContext:
    """Assemble a context within its budget.

    Args:
        material: The conversation, its held messages, its tail, its anchors, and what to recall from.
        digest: Makes the digest of what has to be left out.
        budget: Tokens for everything after the system prompt and the files; ``None`` = the policy's budget, which
            includes both.

    Raises:
        BudgetTooSmallError: Not even the last user message fits.
        ContextOverWindowError: Under ``keep_full`` the whole exceeds the window; or the files leave no room for this
            model.
    """
    room = _room(material, budget)
    _refuse_without_room(material, room, budget)
    keeps_full = budget is None and material.policy.on_failure == "keep_full"

    def fitted(tokens: int, *, told: bool = True) -> Draft:
        draft = first_draft(material)
        if keeps_full:
            return _kept_full(material, draft)
        smaller = replace(room, tokens=tokens)
        return fit(material, draft, smaller, digest, told=told) if _whole_size(material, draft) > tokens else draft

    base = material.conversation.estimated_within(material.budgets.budget if budget is None else budget)
    most = _most_below_triggers(material) - _tokens_before_block(material) if budget is None else None
    draft = with_recall(material, fitted, room.tokens, base=base, may_cut=not keeps_full, most=most)
    if budget is not None or material.detail.room is not None:
        draft = with_detail(material, draft, room.tokens)
    if budget is None and _anchors_have_no_room(material, draft):
        draft = draft.warned("anchors_over_budget")
    return _assembled_context(material, draft)


def _anchors_have_no_room(material: Material, draft: Draft) -> bool:
    # The policy never leaves an anchor out: until it is changed, nothing can be compacted.
    was_refused = bool(draft.warnings) and material.conversation.quiet.reason == "anchors_over_budget"
    return was_refused or (material.policy.anchor_share is None and draft.behind_marker > 0)


def room_of(material: Material, budget: int | None) -> int:
    """The tokens for everything after the system prompt and the files."""
    return _room(material, budget).tokens


def room_for_anchors(material: Material, budget: int | None) -> int | None:
    """The most tokens of anchors in any draft, without those that users set; ``None``: all anchors are needed.

    It is their share, plus the tokens of the anchors in the layout with the block around them: one step of fitting may
    leave them so much of that as the rest does not use.
    """
    room = _room(material, budget).anchors
    if room is None or material.policy.estimator != "script" or material.detail.segments:
        return None
    laid_out = first_draft(material)
    if not (room or laid_out.anchors):
        return 0
    alone = replace(laid_out, state=None, digests=NO_DIGESTS, held_days="", anchors=laid_out.anchors or ANCHORS_MARKER)
    return room + weigh_all(material, block_of(material, alone))


def _most_below_triggers(material: Material) -> int:
    firsts = (trigger.at.first_tokens(material.budgets) for trigger in material.policy.triggers)
    lowest = min((first for first in firsts if first is not None), default=material.budgets.window + 1)
    return material.conversation.estimated_within(lowest - 1)


def _room(material: Material, budget: int | None) -> Room:
    share = material.policy.anchor_share
    if budget is None:
        tokens = material.conversation.estimated_within(material.budgets.budget) - _tokens_before_block(material)
        first_to_go: FirstToGo = "facts" if share is None else "anchors"
        return Room(tokens=tokens, anchors=material.budgets.anchor_tokens, first_to_go=first_to_go)
    tokens = material.conversation.estimated_within(budget)
    if share is None:
        return Room(tokens=tokens, anchors=None, first_to_go="least")
    return Room(tokens=tokens, anchors=math.floor(exact(share) * tokens), first_to_go="anchors")


def _refuse_without_room(material: Material, room: Room, asked: int | None) -> None:
    """Files are never left out: a model whose budget they fill cannot be asked."""
    files = material.conversation.file_tokens
    if asked is not None or not files or room.tokens > 0:
        return
    budget, weight = material.budgets.budget, material.conversation.counted(files)
    raise ContextOverWindowError(
        f"the attached files of {weight} tokens leave no room in a budget of {budget} beside the system prompt: remove"
        " files, or ask a model with a larger window",
        extra={
            "tokens": material.conversation.counted(_tokens_before_block(material)),
            "files": weight,
            "window": material.budgets.window,
        },
    )


def _whole_size(material: Material, draft: Draft) -> int:
    return size_of(material, draft) + material.unloaded_tokens


def _kept_full(material: Material, draft: Draft) -> Draft:
    """The draft under ``keep_full``: over the budget but within the window it is sent whole, with a warning.

    If the policy says so, a message that can never fit is sent without its middle. If that is not enough, large
    messages are too, the largest first.
    """
    system = _tokens_before_block(material)
    window = material.conversation.estimated_within(material.budgets.window)
    elides = material.policy.oversized == "elide" and not material.unloaded_tokens  # unread messages cannot be served
    total = system + _whole_size(material, draft)
    if total > window and elides:
        draft = with_all_giants_elided(material, draft, window - system)
        total = system + _whole_size(material, draft)
    if total > window and elides:
        draft = with_large_elided(material, draft, window - system)
        total = system + _whole_size(material, draft)
    tokens = material.conversation.counted(total)
    if tokens > material.budgets.window:
        raise ContextOverWindowError(
            f"the context of {tokens} tokens exceeds the window of {material.budgets.window}; compact the conversation,"
            " by keep_tail_messages further than its policy keeps, or choose on_failure: truncate",
            extra={
                "tokens": tokens,
                "window": material.budgets.window,
                "breakdown": asdict(_whole_breakdown(material, draft).scaled(tokens)),
            },
        )
    return draft.warned("context_over_budget") if tokens > material.budgets.budget else draft


def _whole_breakdown(material: Material, draft: Draft) -> Breakdown:
    loaded = _assembled_context(material, draft).gauge.breakdown
    return replace(loaded, tail=loaded.tail + material.conversation.counted(material.unloaded_tokens))


def _assembled_context(material: Material, draft: Draft) -> AssembledContext:
    system = _system_tokens(material)
    state, anchors, digests = block_sizes(material, draft)
    opened = _opened_sections(material, draft)
    brought_back = sum(section.tokens for section in opened)
    held = max(weight_in_all(material, draft.held) - brought_back, 0) + held_day_tokens(material, draft)
    tail = weight_in_all(material, draft.tail)
    opened_seqs = {seq for section in opened for seq in section.seqs}
    recalled, passages = recall_tokens(material, draft), recall_tokens(material, replace(draft, recalled=()))
    sections = (
        Section(kind="system", seqs=(), tokens=system),
        Section(kind="files", seqs=(), tokens=material.conversation.file_tokens),
        Section(kind="state", seqs=(), tokens=state),
        Section(kind="anchors", seqs=seqs_in(draft.anchors), tokens=anchors),
        *_digest_sections(draft, digests),
        *opened,
        Section(
            kind="held",
            seqs=tuple(message.seq for message in draft.held if message.seq not in opened_seqs),
            tokens=held,
        ),
        Section(kind="tail", seqs=tuple(message.seq for message in draft.tail), tokens=tail),
        Section(kind="passages", seqs=(), tokens=passages),
        Section(kind="recalled", seqs=recalled_seqs(draft.recalled), tokens=recalled - passages),
    )
    estimated = Breakdown(
        system=system,
        files=material.conversation.file_tokens,
        state=state,
        anchors=anchors,
        digests=digests + brought_back,
        held=held,
        tail=tail,
        recalled=recalled,
    )
    tokens = material.conversation.counted(estimated.total)
    return AssembledContext(
        messages=(
            _system_message(material),
            *_with_block(block_of(material, draft), spoken(draft, material.conversation.locale), draft),
        ),
        sections=tuple(one for one in _with_gauge_tokens(sections, tokens) if one.tokens or one.segment_id),
        gauge=gauge_of(
            material.policy,
            material.budgets,
            estimated.scaled(tokens),
            anchors_behind_marker=draft.behind_marker,
            adaptive=material.thresholds,
        ),
        estimated=estimated.total,
        warnings=draft.warnings,
        truncated=(draft.left_out.from_seq, draft.left_out.to_seq) if draft.left_out else None,
        recalled=draft.recalled,
        markers=(*find(draft.anchors), *find(draft.digests.element)),
        tools=material.tools,
        attached=material.files,
        locale=material.conversation.locale,
        keeps_all=material.policy.on_failure == "keep_full",
    )


def _with_gauge_tokens(sections: Sequence[Section], tokens: int) -> list[Section]:
    shares = in_proportion((section.tokens for section in sections), tokens)
    return [replace(section, tokens=share) for section, share in zip(sections, shares, strict=True)]


def _with_block(
    block: Sequence[ContextMessage], told: Sequence[ContextMessage], draft: Draft
) -> tuple[ContextMessage, ...]:
    covered = {message.seq for message in draft.held if message.role == "system"}
    before = (message for message in told if message.seq in covered)
    return (*before, *block, *(message for message in told if message.seq not in covered))


def _digest_sections(draft: Draft, tokens: int) -> list[Section]:
    return [
        Section(
            kind="digests",
            seqs=_shown_seqs(shown) if shown else (),
            tokens=share,
            level=shown.level if shown else None,
            segment_id=shown.id if shown else None,
        )
        for shown, share in shares_of(draft.digests, tokens)
    ]


def _opened_sections(material: Material, draft: Draft) -> list[Section]:
    """One section for each covered segment whose originals are served; other held messages do not belong to it."""
    held = {message.seq for message in first_draft(material).held}
    found = []
    for one in draft.opened:
        messages = [
            message for message in draft.held if one.from_seq <= message.seq <= one.to_seq and message.seq not in held
        ]
        found.append(
            Section(
                kind="digests",
                seqs=tuple(message.seq for message in messages),
                tokens=weight_in_all(material, messages),
                level=FULL,
                segment_id=one.id,
            )
        )
    return found


def _shown_seqs(shown: ShownSegment) -> tuple[int, ...]:
    if shown.to_seq - shown.from_seq < SEQS:
        return tuple(range(shown.from_seq, shown.to_seq + 1))
    return shown.from_seq, shown.to_seq


def recalled_seqs(recalled: Sequence[Recalled]) -> tuple[int, ...]:
    """Positions of recalled messages, in order."""
    return tuple(sorted(one.source.seq for one in recalled))


def _system_message(material: Material) -> ContextMessage:
    return ContextMessage(role="system", content=material.system)


def _system_tokens(material: Material) -> int:
    beside = tools_tokens(material.tools, material.policy.estimator) + material.schema_tokens
    return weigh_all(material, (_system_message(material),)) + beside


def _tokens_before_block(material: Material) -> int:
    return _system_tokens(material) + material.conversation.file_tokens

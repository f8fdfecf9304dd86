"""What a model is sent: budgeter and assembler. Pure; never compacts; never exceeds its budget.

Order, from stable to volatile, so that a provider's prompt cache hits: system prompt with awareness block, state block,
held messages, tail. Between two state versions each of them only grows at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from app.domain.compaction import Tail, legal_cuts, turn_starts
from app.domain.conversation import Conversation, Message, Outline
from app.domain.errors import BudgetTooSmallError, ContextOverWindowError
from app.domain.gauge import Breakdown, Gauge, gauge_of
from app.domain.layout import LeftOut, block_messages, layout_of, messages_tokens
from app.domain.model_io import ContextMessage
from app.domain.policy import Budgets, CompactionPolicy
from app.domain.pruning import prune, state_of
from app.domain.records import FoldRequest
from app.domain.state import ID_LETTERS, StateEntry, StateSchema
from app.domain.tokens import tokens_of

TRUNCATION_STEP = 0.05  # of the budget: coarse, so that the cut stays where it is for many messages
DIGEST_SHARE = 0.10  # of the room, for the digest of what is left out
DIGEST_FRAME = 60  # tokens of the elements around a digest, rounded up

Digest = Callable[[Sequence[Message], int], str]
"""(messages left out, most tokens) to a plain text; a pure function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What there is to assemble from."""

    conversation: Conversation
    schema: StateSchema
    policy: CompactionPolicy
    budgets: Budgets
    system: str
    """System prompt with awareness block."""
    held: tuple[Message, ...]
    """Held messages up to the boundary."""
    tail: tuple[Message, ...]
    """The newest messages after the boundary, commands left out."""
    unloaded_tokens: int = 0
    """What the messages between the boundary and ``tail[0]`` weigh: they cannot be served, only cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A stretch of the context and where it came from."""

    kind: str
    seqs: tuple[int, ...]
    tokens: int
    level: str | None = None
    segment_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledContext:
    """What a model would be sent, with everything needed to trace it."""

    messages: tuple[ContextMessage, ...]
    sections: tuple[Section, ...]
    gauge: Gauge
    warnings: tuple[str, ...] = ()
    truncated: tuple[int, int] | None = None
    """First and last ``seq`` left out for want of room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A context in the making: the parts that may still shrink."""

    block: tuple[ContextMessage, ...]
    held: tuple[Message, ...]
    tail: tuple[Message, ...]
    left_out: LeftOut | None = None
    warnings: tuple[str, ...] = ()


def system_text(system_prompt: str, awareness: str) -> str:
    """The system prompt as it is sent: never changes because of a compaction."""
    return f"{system_prompt}\n\n{awareness}" if system_prompt else awareness


def assemble(material: Material, *, digest: Digest, budget: int | None = None) -> AssembledContext:
    """Put a context together within its budget.

    Args:
        material: The conversation, its held messages and its tail.
        digest: Makes the digest of what has to be left out.
        budget: Tokens for all that stands after the system prompt; ``None`` = the policy's budget, which holds the
            system prompt too.

    Raises:
        BudgetTooSmallError: Not even the last user message fits.
        ContextOverWindowError: Under ``keep_full`` the whole exceeds the window.
    """
    system = _tokens(material, (ContextMessage(role="system", content=material.system),))
    draft = _Draft(block=_stored_block(material), held=material.held, tail=material.tail)
    room = material.budgets.budget - system if budget is None else budget
    size = _size(material, draft) + material.unloaded_tokens
    if budget is None and material.policy.on_failure == "keep_full":
        draft = _kept_full(material, draft, system=system, size=size)
    elif size > room:
        draft = _fit(material, draft, room=room, digest=digest)
    return _assembled(material, draft, system=system)


def _kept_full(material: Material, draft: _Draft, *, system: int, size: int) -> _Draft:
    """``keep_full``: over the budget but inside the window is sent whole, with a warning."""
    total = system + size
    if total > material.budgets.window:
        raise ContextOverWindowError(
            f"the context of {total} tokens exceeds the window of {material.budgets.window};"
            " compact the conversation, or choose on_failure: truncate",
            extra={"tokens": total, "window": material.budgets.window},
        )
    over = total > material.budgets.budget
    return replace(draft, warnings=("context_over_budget",)) if over else draft


def _fit(material: Material, draft: _Draft, *, room: int, digest: Digest) -> _Draft:
    """Remove, in this order, until it fits: old tail, digest, parts of the state, the last turn's, held messages."""
    for shrink in (_without_old_tail(digest), _without_digest, _with_smaller_state, _without_tail, _without_held):
        draft = shrink(material, draft, room)
        if _size(material, draft) <= room:
            return draft
    minimum = _size(material, draft)
    raise BudgetTooSmallError(
        f"the last user message alone needs {minimum} tokens, the budget leaves {max(room, 0)}:"
        f" ask for a budget of at least {minimum}",
        extra={"minimum": minimum},
    )


def _without_old_tail(digest: Digest) -> Callable[[Material, _Draft, int], _Draft]:
    """Cut the tail before the last turn, oldest first, in steps, and put a digest in its place."""

    def shrink(material: Material, draft: _Draft, room: int) -> _Draft:
        allowance = int(room * DIGEST_SHARE)
        needed = _size(material, draft) + material.unloaded_tokens + allowance - room
        step = max(int(room * TRUNCATION_STEP), 1)
        count = _cut(material, draft.tail, removed=-(-max(needed, 1) // step) * step, last_turn=True)
        if not count and not material.unloaded_tokens:
            return draft
        return _cut_off(material, draft, count, digest=digest, allowance=allowance)

    return shrink


def _cut(material: Material, tail: Sequence[Message], *, removed: int, last_turn: bool) -> int:
    """How many of the loaded messages go so that at least ``removed`` tokens go, or as many as may."""
    outline = [_outline(message) for message in tail]
    starts = turn_starts(outline)
    most = starts[-1] if starts and last_turn else max(len(tail) - 1, 0)
    cuts = legal_cuts(
        Tail(outline=tuple(outline)), estimator=material.policy.estimator, request=FoldRequest(fold="all")
    )
    ends = [index for index in cuts if index < most]
    leaving = (0 if message.is_protected else _message_tokens(material, message) for message in tail)
    gone = [material.unloaded_tokens + size for size in accumulate(leaving)]
    if material.unloaded_tokens >= removed:
        return 0
    return next((index + 1 for index in ends if gone[index] >= removed), ends[-1] + 1 if ends else 0)


def _cut_off(material: Material, draft: _Draft, count: int, *, digest: Digest, allowance: int) -> _Draft:
    gone = draft.tail[:count]
    kept_back = tuple(message for message in gone if message.is_protected)
    cut_seq = gone[-1].seq if gone else draft.tail[0].seq - 1
    told = _newest_within(material, gone, material.budgets.budget)
    text = digest(told, allowance - DIGEST_FRAME) if told and allowance > DIGEST_FRAME else ""
    left_out = LeftOut(from_seq=material.conversation.boundary_seq + 1, to_seq=cut_seq, digest=text)
    return replace(
        draft,
        block=_block(material, left_out),
        held=(*draft.held, *kept_back),
        tail=draft.tail[count:],
        left_out=left_out,
        warnings=(*draft.warnings, "context_truncated"),
    )


def _newest_within(material: Material, messages: Sequence[Message], tokens: int) -> tuple[Message, ...]:
    """What a digest tells of: bounded, and the same for the same cut, however much of the tail was loaded."""
    sizes = accumulate(_message_tokens(material, message) for message in reversed(messages))
    count = sum(size <= tokens for size in sizes)
    return tuple(messages[len(messages) - count :])


def _without_digest(material: Material, draft: _Draft, room: int) -> _Draft:  # noqa: ARG001 - one shape for all steps
    return replace(draft, block=_stored_block(material)) if draft.left_out else draft


def _with_smaller_state(material: Material, draft: _Draft, room: int) -> _Draft:
    """Style and known first, then the narrative, then the oldest facts."""
    state = material.conversation.compressed_state
    if state is None:
        return draft
    rest = _size(material, replace(draft, block=()))

    def fits(candidate: dict[str, Any]) -> bool:
        return rest + _tokens(material, _state_block(material, candidate)) <= room

    kept, _ = prune(material.schema, _entries(material.schema, state), fits=fits)
    block = _state_block(material, state_of(material.schema, kept)) if kept else ()
    return replace(draft, block=block, warnings=(*draft.warnings, "state_shortened"))


def _entries(schema: StateSchema, state: Mapping[str, Any]) -> tuple[StateEntry, ...]:
    """The texts of a served state as entries, in served order, for pruning by role."""
    texts = [
        (field, text)
        for field in schema.fields
        for text in (state[field.name] if field.is_list else [state[field.name]])
    ]
    return tuple(
        StateEntry(
            id=f"{ID_LETTERS[field.role]}{number}", field=field.name, role=field.role, text=text, since_version=0
        )
        for number, (field, text) in enumerate(texts)
        if text
    )


def _without_tail(material: Material, draft: _Draft, room: int) -> _Draft:
    """The rest of the tail but the last message, oldest first."""
    removed = _size(material, draft) - room
    count = _cut(replace(material, unloaded_tokens=0), draft.tail, removed=removed, last_turn=False)
    if not count:
        return draft
    left_out = LeftOut(
        from_seq=draft.left_out.from_seq if draft.left_out else material.conversation.boundary_seq + 1,
        to_seq=draft.tail[count - 1].seq,
        digest="",
    )
    kept_back = tuple(message for message in draft.tail[:count] if message.is_protected)
    return replace(draft, held=(*draft.held, *kept_back), tail=draft.tail[count:], left_out=left_out)


def _without_held(material: Material, draft: _Draft, room: int) -> _Draft:
    """Held messages, oldest first, each with a warning."""
    while draft.held and _size(material, draft) > room:
        gone = draft.held[0]
        draft = replace(draft, held=draft.held[1:], warnings=(*draft.warnings, f"held_message_left_out:{gone.seq}"))
    return draft


def _assembled(material: Material, draft: _Draft, *, system: int) -> AssembledContext:
    held = [_context_message(message) for message in draft.held]
    tail = [_context_message(message) for message in draft.tail]
    sizes = (_tokens(material, draft.block), _tokens(material, held), _tokens(material, tail))
    breakdown = Breakdown(system=system, state=sizes[0], held=sizes[1], tail=sizes[2])
    sections = (
        Section(kind="system", seqs=(), tokens=system),
        Section(kind="state", seqs=(), tokens=sizes[0]),
        Section(kind="held", seqs=tuple(message.seq for message in draft.held), tokens=sizes[1]),
        Section(kind="tail", seqs=tuple(message.seq for message in draft.tail), tokens=sizes[2]),
    )
    return AssembledContext(
        messages=(ContextMessage(role="system", content=material.system), *draft.block, *held, *tail),
        sections=tuple(section for section in sections if section.tokens),
        gauge=gauge_of(material.policy, material.budgets, breakdown),
        warnings=draft.warnings,
        truncated=(draft.left_out.from_seq, draft.left_out.to_seq) if draft.left_out else None,
    )


def _stored_block(material: Material) -> tuple[ContextMessage, ...]:
    layout = material.conversation.layout
    return block_messages(layout.text, served_as=material.policy.served_as) if layout else ()


def _block(material: Material, left_out: LeftOut) -> tuple[ContextMessage, ...]:
    layout = material.conversation.layout
    shown = left_out if left_out.digest else None
    return block_messages(layout.text if layout else None, served_as=material.policy.served_as, left_out=shown)


def _state_block(material: Material, state: dict[str, Any]) -> tuple[ContextMessage, ...]:
    layout = layout_of(material.schema, state, served_as=material.policy.served_as, estimator=material.policy.estimator)
    return block_messages(layout.text, served_as=material.policy.served_as)


def _size(material: Material, draft: _Draft) -> int:
    """Tokens of everything after the system prompt."""
    messages = (*draft.held, *draft.tail)
    return _tokens(material, draft.block) + sum(_message_tokens(material, message) for message in messages)


def _tokens(material: Material, messages: Sequence[ContextMessage]) -> int:
    return messages_tokens(messages, material.policy.estimator)


def _message_tokens(material: Material, message: Message) -> int:
    return tokens_of(message.token_count, message.byte_length, material.policy.estimator)


def _context_message(message: Message) -> ContextMessage:
    return ContextMessage(role=message.role, content=message.content, parts=message.parts, seq=message.seq)


def _outline(message: Message) -> Outline:
    """A message as the planner's laws see it."""
    calls = (part.get("id") for part in message.parts if part.get("type") == "tool_call")
    results = (part.get("tool_call_id") for part in message.parts if part.get("type") == "tool_result")
    return Outline(
        seq=message.seq,
        role=message.role,
        token_count=message.token_count,
        byte_length=message.byte_length,
        is_protected=message.is_protected,
        calls=frozenset(str(call) for call in calls),
        results=frozenset(str(call) for call in results),
    )

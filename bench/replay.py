"""Folds a talk again and again with the offline model, as the service does, but in memory, with the pure core alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from app.core.anchors.detect import detect
from app.core.anchors.selection import serve
from app.core.anchors.transitions import transitions
from app.core.context.drafts import outline_of
from app.core.model.anchors import Anchor, FoundAnchor
from app.core.model.conversation import UNPROTECTED, Layout, Message, ProtectedReason, Role
from app.core.model.gauge import Breakdown
from app.core.model.model_io import Proposal, SummaryRequest
from app.core.model.policies.budgets import Budgets, budgets_of
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.policies.protection import protected_reason, size_of
from app.core.model.policies.resolving import DEFAULT_PRESET, resolve
from app.core.model.records import FoldRequest
from app.core.model.redaction import redact_message
from app.core.model.schemas import schema_named
from app.core.model.segments import LEVELS, ServableSegment
from app.core.model.state import StateEntry, StateSchema
from app.core.planning.compaction import CompactionPlan, NothingToFold, plan_compaction
from app.core.planning.cuts import Tail
from app.core.planning.triggers import trigger_tokens
from app.core.segments.describing import describe
from app.core.segments.extractive import level_text
from app.core.segments.segmentation import split_into_segments
from app.core.state.apply import AppliedCandidate, ApplyContext, apply_candidate, served
from app.core.state.layout import block_messages, layout_of
from app.core.state.schema_change import entries_in_schema, next_entry_number, requested_state_tokens
from app.core.summarizer.offline.extractive import compress
from app.core.text.parts import Part
from app.core.text.token_counts import estimate_text, weigh
from app.core.validation.gate import judge

CHUNK_TOKENS: Final = 8_000  # tokens that the offline model reads at once
OUTPUT_LIMIT: Final = 65_536  # tokens that the default summarizer can write
BEGINNING: Final = datetime(2026, 1, 5, 9, tzinfo=UTC)
CONVERSATION: Final = UUID(int=1)
EVERYTHING: Final = FoldRequest(fold="all")


@dataclass(slots=True, kw_only=True)
class Replay:
    """One conversation in memory, with methods to append, to fold, and to see what would be served."""

    policy: CompactionPolicy
    budgets: Budgets
    system_tokens: int = 0
    messages: list[Message] = field(default_factory=list)
    anchors: list[Anchor] = field(default_factory=list)
    entries: tuple[StateEntry, ...] = ()
    next_entry: int = 1
    version: int = 0
    boundary: int = 0
    layout: Layout | None = None
    compactions: int = 0
    """How many compactions were applied; each has one chunk or more."""
    written_in: str | None = None
    """The schema of the present state; ``None`` while there is no state."""
    refused: list[str] = field(default_factory=list)
    """The reason words of the candidates that were refused."""

    @classmethod
    def in_window(cls, window: int, preset: str = DEFAULT_PRESET, **overrides: object) -> Replay:
        """A conversation of the default preset, or another, in a window of this many tokens."""
        policy = resolve(preset, {"context_window": window, **overrides})
        return cls(policy=policy, budgets=budgets_of(policy, window, output_limit=OUTPUT_LIMIT))

    @property
    def schema(self) -> StateSchema:
        """The schema of the state that is written next."""
        return schema_named(self.policy.state_schema)

    @property
    def carries(self) -> bool:
        """Whether the present state has another schema than the next one."""
        return self.written_in is not None and self.written_in != self.schema.name

    @property
    def previous(self) -> tuple[StateEntry, ...]:
        """The entries that are served now, in the fields of the schema that is written next."""
        entries = served(self.entries)
        if self.written_in is None or not self.carries:
            return entries
        return entries_in_schema(entries, self.schema, source=schema_named(self.written_in), next_entry=self.next_entry)

    def change(self, window: int, preset: str, **overrides: object) -> None:
        """Use another preset from now on; the state stays as it is until the next compaction."""
        self.policy = resolve(preset, {"context_window": window, **overrides})
        self.budgets = budgets_of(self.policy, window, output_limit=OUTPUT_LIMIT)

    def say(self, role: Role, content: str, parts: Sequence[Part] = (), at: datetime | None = None) -> Message:
        """Append one message; anchors and other effects are detected as when the service stores it."""
        seq = len(self.messages) + 1
        weight = weigh(role, content, parts)
        message = Message(
            id=UUID(int=1_000_000 + seq),
            conversation_id=CONVERSATION,
            seq=seq,
            role=role,
            content=content,
            parts=tuple(parts),
            protected_reason=self._reason(role, seq, content, weight.tokens),
            token_count=weight.tokens,
            byte_length=weight.bytes,
            created_at=at or BEGINNING + timedelta(minutes=seq),
        )
        self.messages.append(message)
        self._anchor(redact_message(message))
        return message

    def is_due(self) -> bool:
        """Whether the context has reached the policy's first threshold."""
        first = trigger_tokens(self.policy, self.budgets)
        return first is not None and self.breakdown().total >= first

    def fold(self, request: FoldRequest | None = None) -> int:
        """Fold by this request (to the target by default), chunk by chunk; return how many chunks were applied."""
        request = request or FoldRequest(fold="to_target")
        chunks = 0
        while not isinstance(planned := self._plan(request), NothingToFold):
            applied = self.take(planned)
            if isinstance(applied, str):
                self.refused.append(applied)
                break
            chunks += 1
            if planned.is_last:
                break
        self.compactions += chunks > 0
        return chunks

    def take(self, planned: CompactionPlan) -> AppliedCandidate | str:
        """Fold one chunk: propose, judge, apply."""
        span = tuple(redact_message(message) for message in self.messages[planned.from_seq - 1 : planned.to_seq])
        request = self.request(span)
        applied = apply_candidate(judge(self.answer(request), request), self._applying(planned, span))
        if isinstance(applied, str):
            return applied
        self.version += 1
        self.boundary = planned.to_seq
        self.entries, self.next_entry, self.written_in = applied.entries, applied.next_entry, self.schema.name
        self._lay_out(applied.state)
        return applied

    def answer(self, request: SummaryRequest) -> Proposal:
        """The summarizer's proposal."""
        return Proposal(text=compress(request), finish="stop", model="offline")

    def forget(self) -> None:
        """Forget everything that is known of the folded messages, to see that a check notices it."""
        self.entries, self.anchors = (), []
        if self.layout is not None:
            self._lay_out(self.schema.model().model_dump())

    def request(self, span: Sequence[Message]) -> SummaryRequest:
        """The request to the offline model about these messages."""
        through = span[-1].seq if span else self.boundary
        return SummaryRequest(
            schema=self.schema,
            messages=tuple(span),
            previous=self.previous,
            anchors=self._active(through),
            anchor_room=self.budgets.anchor_tokens,
            target_tokens=requested_state_tokens(self.budgets, self.previous, carried=self.carries),
            chunk_tokens=CHUNK_TOKENS,
        )

    def breakdown(self) -> Breakdown:
        """How many tokens each part of the context has."""
        anchors = self.layout.anchor_tokens if self.layout else 0
        return Breakdown(
            system=self.system_tokens,
            state=self.layout.state_tokens if self.layout else 0,
            anchors=anchors,
            held=sum(size_of(message, self.policy.estimator) for message in self.held())
            + (self.layout.held_day_tokens if self.layout else 0),
            tail=sum(size_of(message, self.policy.estimator) for message in self.tail()),
        )

    def held(self) -> list[Message]:
        """Messages that the state covers, but that are held, and so served verbatim."""
        return [message for message in self.messages[: self.boundary] if message.is_protected]

    def tail(self) -> list[Message]:
        """Messages after the boundary."""
        return self.messages[self.boundary :]

    def block(self) -> str:
        """The state block as it is served: state and anchors."""
        if self.layout is None:
            return ""
        messages = block_messages(self.layout.text, served_as=self.policy.served_as, anchors=self.layout.anchors)
        return "\n".join(message.content for message in messages)

    def served(self) -> str:
        """Everything that is served after the system prompt: block, held messages, tail."""
        return "\n".join(filter(None, [self.block(), *(message.content for message in [*self.held(), *self.tail()])]))

    def remembered(self) -> str:
        """State and anchors only: what is known of the folded messages without any original."""
        layout = self.layout
        return f"{layout.text}\n{layout.anchors}" if layout else ""

    def remembered_tokens(self) -> int:
        """The tokens of state and anchors."""
        return estimate_text(self.remembered())

    def _reason(self, role: Role, seq: int, content: str, tokens: int) -> ProtectedReason:
        """The reason that the service would store: a message that exceeds the allotment is accepted, but not held."""
        reason = protected_reason(self.policy, role=role, turn=seq - 1, content=content)
        if reason in UNPROTECTED or reason == "system":
            return reason
        used = sum(one.token_count for one in self.messages if one.is_protected and one.role != "system")
        return reason if used + tokens <= self.budgets.pin_tokens else "over_allotment"

    def _anchor(self, message: Message) -> None:
        found = [self._stored(anchor, number) for number, anchor in enumerate(detect(message))]
        changes = transitions([anchor for anchor in self.anchors if anchor.status == "active"], found, [message])
        changed = {change.anchor_id: change for change in changes}
        self.anchors = [
            replace(anchor, status=change.status, superseded_by=change.superseded_by)
            if (change := changed.get(anchor.id))
            else anchor
            for anchor in [*self.anchors, *found]
        ]

    def _stored(self, found: FoundAnchor, number: int) -> Anchor:
        return Anchor(
            type=found.type,
            content=found.content,
            seq=found.seq,
            offset=found.offset,
            importance=found.importance,
            token_count=found.token_count,
            proposed_by=found.proposed_by,
            speaker=found.speaker,
            pasted=found.pasted,
            said_at=found.said_at,
            said_by=found.said_by,
            id=UUID(int=found.seq * 1_000 + number),
            conversation_id=CONVERSATION,
            message_id=UUID(int=1_000_000 + found.seq),
            created_at=BEGINNING,
        )

    def _active(self, through: int) -> tuple[Anchor, ...]:
        held = {message.seq for message in self.messages[:through] if message.is_protected}
        return tuple(
            anchor
            for anchor in self.anchors
            if anchor.status == "active" and anchor.seq <= through and anchor.seq not in held
        )

    def _lay_out(self, state: dict[str, object]) -> None:
        held = [message.seq for message in self.held()]
        shown = serve(
            self._active(self.boundary),
            through_seq=self.boundary,
            held_seqs=held,
            token_limit=self.budgets.anchor_tokens,
            estimator=self.policy.estimator,
        )
        self.layout = layout_of(
            self.schema,
            state,
            served_as=self.policy.served_as,
            estimator=self.policy.estimator,
            held=self.held(),
            anchors=shown,
        )

    def _plan(self, request: FoldRequest) -> CompactionPlan | NothingToFold:
        outline = tuple(outline_of(message) for message in self.tail())
        return plan_compaction(
            Tail(outline=outline),
            breakdown=self.breakdown(),
            budgets=self.budgets,
            estimator=self.policy.estimator,
            request=request,
            chunk_tokens=CHUNK_TOKENS,
        )

    def _applying(self, planned: CompactionPlan, span: tuple[Message, ...]) -> ApplyContext:
        return ApplyContext(
            schema=self.schema,
            policy=self.policy,
            budgets=self.budgets,
            plan=planned,
            span=span,
            previous=self.previous,
            next_entry=next_entry_number(self.previous, self.next_entry),
            is_carried_over=self.carries,
            version=self.version + 1,
            tokens_before=self.breakdown().total,
            block_before=self.layout.tokens if self.layout else 0,
            target=self.budgets.target,
            anchors=self._active(planned.to_seq),
            outdated=tuple(anchor for anchor in self.anchors if anchor.status == "superseded"),
        )


def segments_of(replay: Replay) -> list[ServableSegment]:
    """The segments of everything that is folded, at every level, as described by code."""
    stretches = split_into_segments(replay.messages[: replay.boundary], replay.policy.segment_by)
    return [_segment(number, messages) for number, messages in enumerate(stretches)]


def _segment(number: int, messages: Sequence[Message]) -> ServableSegment:
    cut = describe(messages)
    return ServableSegment(
        id=f"topic_{number}",
        from_seq=cut.from_seq,
        to_seq=cut.to_seq,
        topic=cut.topic,
        messages=cut.messages,
        tokens=cut.tokens,
        identifiers=len(cut.identifiers),
        texts={level: level_text(level, messages, cut, locale="en") for level in LEVELS},
    )

"""A draft of a context: its parts, its size in tokens, and the inputs from which it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Final

from app.core.anchors.rendering import anchors_element
from app.core.anchors.selection import ServableAnchors, ServedAnchors
from app.core.model.anchors import FoundAnchor
from app.core.model.conversation import Conversation, Message, Outline
from app.core.model.files import ConversationFile
from app.core.model.gauge import AdaptiveThresholds
from app.core.model.model_io import ContextMessage, ToolSpec
from app.core.model.policies.budgets import Budgets
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.policies.protection import call_ids
from app.core.model.segments import ServableSegment, ShownSegment
from app.core.model.state import StateSchema
from app.core.retrieval.ranking import Ranking, RecalledMessage
from app.core.retrieval.rendering import Passage, Recall
from app.core.segments.detail_choice import DetailOptions
from app.core.state.digest_selection import NO_DIGESTS, Digests, DigestSource, shown_segments
from app.core.state.layout import LeftOut, block_messages, days_element, messages_tokens
from app.core.text.token_counts import tokens_of

_TOKENS: Final = attrgetter("token_count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """Covered segments, for serving them in more detail under a larger budget."""

    segments: tuple[ServableSegment, ...] = ()
    """The newest segments with all their levels, by position."""
    total: int = 0
    """The number of all segments, including these."""
    max_added_tokens: int | None = None
    """The most tokens that they may add in a turn; ``None``: whatever a requested budget leaves."""
    may_expand: bool = True
    """Whether originals may be served."""
    originals: tuple[Message, ...] = ()
    """The messages of the segments that are served verbatim, in order."""
    anchor_seqs: tuple[int, ...] | None = None
    """The positions of active anchors, if the anchors themselves were not read."""
    options: DetailOptions | None = field(default=None, repr=False, compare=False)
    """The forms in which the segments could be served, once computed (``larger_budget.with_detail_options``)."""


NO_DETAIL: Final = Detail()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextInputs:
    """Everything from which a context can be assembled."""

    conversation: Conversation
    schema: StateSchema
    policy: CompactionPolicy
    budgets: Budgets
    system: str
    """The system prompt with the awareness block."""
    held: tuple[Message, ...]
    """Held messages up to the boundary."""
    tail: tuple[Message, ...]
    """The newest messages after the boundary, commands left out."""
    unloaded_tokens: int = 0
    """The tokens of the messages between the boundary and ``tail[0]``: these were not read and cannot be served."""
    anchors: tuple[FoundAnchor, ...] = ()
    """Active anchors that can be shown; needed only if something has to be left out (``assembly.exceeds_budget``)."""
    anchors_unread: int = 0
    """The number of further active anchors, for which no draft has room."""
    segments: tuple[ServableSegment, ...] = ()
    """The newest segments with their levels; needed whenever ``anchors`` are, so that digests are removed gradually."""
    segments_total: int = 0
    """The number of all segments, including these."""
    detail: Detail = NO_DETAIL
    """The covered segments that can be served in more detail than in the layout."""
    recall: Recall | None = None
    """What can be recalled, and the caller's own passages."""
    tools: tuple[ToolSpec, ...] = ()
    """The tools that the chat model is offered: a part of every request, before everything else."""
    schema_tokens: int = 0
    """The tokens of the schema of a structured output, which is likewise a part of every request."""
    files: tuple[ConversationFile, ...] = ()
    """The attached files, in order; their tokens are stored with the conversation."""
    thresholds: AdaptiveThresholds | None = None
    """For the gauge: the adapted thresholds and the reason for them, if the thresholds are adaptive."""
    _servables: dict[tuple[int, frozenset[int]], ServableAnchors] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    rankings: list[tuple[Recall, Ranking]] = field(default_factory=list, repr=False, compare=False)
    """The ranking for the question, once computed; copies of these inputs share it."""
    block_token_counts: dict[tuple[object, ...], int] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """The tokens of state blocks by their parts (``block_tokens``), since many drafts have the same block."""
    _outlines: dict[int, tuple[Message, Outline]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The outline of each message, by the identity of the message, since many drafts have the same messages."""

    def ranking(self, recall: Recall) -> Ranking:
        """The messages that may be recalled, ranked for the question; computed once."""
        ranking_of_recall = next((ranking for known, ranking in self.rankings if known is recall), None)
        if ranking_of_recall is None:
            ranking_of_recall = Ranking(recall.corpus, recall.completed_question, cosines=recall.cosines)
            self.rankings[:] = [(recall, ranking_of_recall)]
        return ranking_of_recall

    def outlines(self, messages: Sequence[Message]) -> list[Outline]:
        """The outlines of messages for the planner's rules; each is made only once."""
        known = self._outlines
        for message in messages:
            if id(message) not in known:
                known[id(message)] = message, outline_of(message)
        return [known[id(message)][1] for message in messages]

    def with_originals(self, originals: Sequence[Message]) -> ContextInputs:
        """These inputs with the originals of segments that were read."""
        return replace(self, detail=replace(self.detail, originals=tuple(originals)))

    def servable(self, draft: Draft) -> ServableAnchors:
        """The anchors whose messages a draft does not serve, ranked once for all drafts with the same messages."""
        through = max(draft.through_seq, self.conversation.boundary_seq)
        held = frozenset(message.seq for message in draft.held)
        if (through, held) not in self._servables:
            self._servables[through, held] = ServableAnchors(
                self.anchors,
                through_seq=through,
                held_seqs=held,
                estimator=self.policy.estimator,
                unread_count=self.anchors_unread,
            )
        return self._servables[through, held]

    @property
    def digest_source(self) -> DigestSource:
        """The segments of which digests can be served: if the layout has digests, only the segments that it shows."""
        layout = self.conversation.layout
        laid_out = shown_segments(self.segments, layout.segments) if layout and layout.segments else self.segments
        return DigestSource(
            segments=laid_out,
            total=self.segments_total,
            levels=self.policy.levels,
            estimator=self.policy.estimator,
            locale=self.conversation.locale,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The parts of a context after the system prompt and the files."""

    state: str | None
    """The state's JSON."""
    anchors: str
    """The rendered element with the anchors."""
    anchors_behind_marker: int
    held: tuple[Message, ...]
    tail: tuple[Message, ...]
    digests: Digests = NO_DIGESTS
    left_out: LeftOut | None = None
    warnings: tuple[str, ...] = ()
    recalled: tuple[RecalledMessage, ...] = ()
    """The recalled messages, best first."""
    named_roles: frozenset[str] = frozenset()
    """Roles whose messages begin with the speaker's name."""
    passages: tuple[Passage, ...] = ()
    """The caller's own passages."""
    held_days: str = ""
    """The rendered element with the days of the held messages."""
    serves_held_days: bool = True
    """Whether these days are served. Once they were left out for lack of room, they are not added again."""
    expanded: tuple[ShownSegment, ...] = ()
    """Covered segments whose originals are among the held messages."""
    known_recall_tokens: list[int] = field(default_factory=list, init=False, repr=False, compare=False)
    """The tokens that recall adds (``recall_tokens``), once computed, since they are needed in many steps."""

    @property
    def through_seq(self) -> int:
        """The last message that truncation removed from the tail; 0 if it removed none."""
        return self.left_out.to_seq if self.left_out else 0

    def warned(self, *warnings: str) -> Draft:
        """This draft with further warnings, each once."""
        return replace(self, warnings=tuple(dict.fromkeys((*self.warnings, *warnings))))


def first_draft(inputs: ContextInputs) -> Draft:
    """The draft with everything, and with the block as it was laid out."""
    layout = inputs.conversation.layout
    return Draft(
        state=layout.text if layout else None,
        anchors=layout.anchors if layout else "",
        anchors_behind_marker=layout.anchors_behind_marker if layout else 0,
        held=tuple(message for message in inputs.held if has_content(message)),
        tail=tuple(message for message in inputs.tail if has_content(message)),
        digests=Digests(element=layout.digests, segments=layout.segments) if layout else NO_DIGESTS,
        held_days=layout.held_days if layout and inputs.held else "",
    )


def has_content(message: Message) -> bool:
    """Whether a message tells a model anything. A command, an erased message and an empty broken-off answer do not."""
    return message.is_part_of_talk and bool(message.content or message.parts)


def with_anchors(inputs: ContextInputs, draft: Draft, *, token_limit: int | None) -> Draft:
    """The draft with the anchors whose messages it does not serve, within this number of tokens."""
    return with_served_anchors(inputs, draft, inputs.servable(draft).within(token_limit))


def with_served_anchors(inputs: ContextInputs, draft: Draft, served: ServedAnchors) -> Draft:
    """The draft with these anchors."""
    element = anchors_element(served.shown, behind_marker=served.behind_marker if inputs.policy.levels else 0)
    return replace(draft, anchors=element, anchors_behind_marker=served.behind_marker)


def with_held_messages(inputs: ContextInputs, draft: Draft, held: tuple[Message, ...]) -> Draft:
    """The draft with other held messages, and their days."""
    since = draft.tail[0].created_at.date() if draft.tail else None
    days = days_element(held, since, inputs.conversation.locale) if draft.serves_held_days else ""
    return replace(draft, held=held, held_days=days)


def block_of(inputs: ContextInputs, draft: Draft) -> tuple[ContextMessage, ...]:
    """The messages of the state block."""
    return block_messages(
        draft.state,
        served_as=inputs.policy.served_as,
        anchors=draft.anchors,
        digests=draft.digests.element,
        left_out=draft.left_out if draft.left_out and draft.left_out.digest else None,
        held_days=draft.held_days,
    )


def block_tokens(inputs: ContextInputs, draft: Draft) -> int:
    """The tokens of the state block."""
    left_out = draft.left_out if draft.left_out and draft.left_out.digest else None
    parts = draft.state, draft.anchors, draft.digests.element, left_out, draft.held_days
    if parts not in inputs.block_token_counts:
        inputs.block_token_counts[parts] = rendered_weight(inputs, block_of(inputs, draft))
    return inputs.block_token_counts[parts]


def block_sizes(inputs: ContextInputs, draft: Draft) -> tuple[int, int, int]:
    """The tokens of the block without anchors, digests and days, then those that anchors add, then those of digests."""
    draft = replace(draft, held_days="")
    without = replace(draft, digests=NO_DIGESTS)
    bare = block_tokens(inputs, replace(without, anchors=""))
    anchored = block_tokens(inputs, without) if draft.anchors else bare
    whole = block_tokens(inputs, draft) if draft.digests.element else anchored
    return bare, anchored - bare, whole - anchored


def held_day_tokens(inputs: ContextInputs, draft: Draft) -> int:
    """The tokens that the days of held messages add to the block."""
    if not draft.held_days:
        return 0
    return max(block_tokens(inputs, draft) - block_tokens(inputs, replace(draft, held_days="")), 0)


def draft_tokens(inputs: ContextInputs, draft: Draft) -> int:
    """The tokens after the system prompt and the files, without recall; held messages and tail are rounded apart."""
    return block_tokens(inputs, draft) + total_weight(inputs, draft.held) + total_weight(inputs, draft.tail)


def rendered_weight(inputs: ContextInputs, messages: Sequence[ContextMessage]) -> int:
    """The tokens of rendered messages."""
    return messages_tokens(messages, inputs.policy.estimator)


def weight_of(inputs: ContextInputs, message: Message) -> int:
    """The tokens of a stored message."""
    return tokens_of(message.token_count, message.byte_length, inputs.policy.estimator)


def total_weight(inputs: ContextInputs, messages: Sequence[Message]) -> int:
    """The tokens of stored messages, computed from their sums like utilization."""
    estimator = inputs.policy.estimator
    byte_count = 0 if estimator == "script" else sum(one.byte_length for one in messages)
    return tokens_of(sum(map(_TOKENS, messages)), byte_count, estimator)


def outline_of(message: Message) -> Outline:
    """The outline of a message for the planner's rules."""
    calls, results = call_ids(message)
    return Outline(
        seq=message.seq,
        role=message.role,
        token_count=message.token_count,
        byte_length=message.byte_length,
        is_protected=message.is_protected,
        calls=frozenset(calls),
        results=frozenset(results),
    )

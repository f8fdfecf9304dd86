"""A draft of a context: its parts, which of them may still become smaller, and its size in tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Final

from app.core.anchors.rendering import anchors_element
from app.core.anchors.serving import Servable, Served
from app.core.model.anchors import FoundAnchor
from app.core.model.conversation import Conversation, Message, Outline
from app.core.model.files import ConversationFile
from app.core.model.gauge import AdaptiveThresholds
from app.core.model.model_io import ContextMessage, ToolSpec
from app.core.model.policies.policy import Budgets, CompactionPolicy
from app.core.model.policies.protection import call_ids
from app.core.model.segments import ServableSegment, ShownSegment
from app.core.model.state import StateSchema
from app.core.retrieval.ranking import Ranking, Recalled
from app.core.retrieval.serving import Passage, Recall
from app.core.segments.budgeting import Choice
from app.core.state.digesting import NO_DIGESTS, Digestible, Digests, as_laid_out
from app.core.state.layout import LeftOut, block_messages, days_element, messages_tokens
from app.core.text.token_counts import tokens_of

_TOKENS: Final = attrgetter("token_count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """Covered segments, for serving them in more detail where a budget is larger."""

    segments: tuple[ServableSegment, ...] = ()
    """The newest ones with all their levels, by position."""
    total: int = 0
    """How many there are, these included."""
    room: int | None = None
    """The most tokens that they may add in a turn; ``None``: whatever an asked budget leaves."""
    opens: bool = True
    """Whether originals may be served."""
    originals: tuple[Message, ...] = ()
    """The messages of the segments that are served verbatim, in order."""
    quoted: tuple[int, ...] | None = None
    """Where active anchors stand, if these were not read themselves."""
    choice: Choice | None = field(default=None, repr=False, compare=False)
    """What the segments could be served as, once that was computed (``larger_budget.with_choice``)."""


NO_DETAIL: Final = Detail()


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
    anchors: tuple[FoundAnchor, ...] = ()
    """Active anchors that can be shown; needed only where something has to be left out (``assembly.exceeds``)."""
    anchors_unread: int = 0
    """How many more there are, for which no draft has room."""
    segments: tuple[ServableSegment, ...] = ()
    """The newest segments with their levels; needed where anchors are, so that digests give way little by little."""
    segments_total: int = 0
    """How many there are, these included."""
    detail: Detail = NO_DETAIL
    """What covered segments can be served of in more detail than they are laid out in."""
    recall: Recall | None = None
    """What to recall from, and what a caller brings along."""
    tools: tuple[ToolSpec, ...] = ()
    """What the chat model is offered: a part of every request, before everything else."""
    schema_tokens: int = 0
    """What the schema of a structured output weighs: likewise."""
    files: tuple[ConversationFile, ...] = ()
    """The attached files, in order: what they weigh stands with the conversation."""
    thresholds: AdaptiveThresholds | None = None
    """For the gauge: where the thresholds follow the conversation, why they are what they are."""
    _ranked: dict[tuple[int, frozenset[int]], Servable] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    rankings: list[tuple[Recall, Ranking]] = field(default_factory=list, repr=False, compare=False)
    """The ranking for the question once it was computed; a copy of this material shares it."""
    blocks: dict[tuple[object, ...], int] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What state blocks weigh by their parts (``block_tokens``): one is weighed in draft after draft."""
    _outlines: dict[int, tuple[Message, Outline]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By the identity of a message, with it: each is looked at in draft after draft."""

    def ranking(self, recall: Recall) -> Ranking:
        """The messages that may be recalled, ranked for the question; computed once."""
        found = next((ranking for known, ranking in self.rankings if known is recall), None)
        if found is None:
            found = Ranking(recall.corpus, recall.asked, cosines=recall.cosines)
            self.rankings[:] = [(recall, found)]
        return found

    def outlines(self, messages: Sequence[Message]) -> list[Outline]:
        """The messages as the planner's laws see them; each is made once."""
        known = self._outlines
        for message in messages:
            if id(message) not in known:
                known[id(message)] = message, outline_of(message)
        return [known[id(message)][1] for message in messages]

    def with_originals(self, originals: Sequence[Message]) -> Material:
        """This material with what was read of the segments."""
        return replace(self, detail=replace(self.detail, originals=tuple(originals)))

    def servable(self, draft: Draft) -> Servable:
        """The anchors whose messages a draft does not serve: ranked once for all drafts that serve the same ones."""
        through = max(draft.through_seq, self.conversation.boundary_seq)
        held = frozenset(message.seq for message in draft.held)
        if (through, held) not in self._ranked:
            self._ranked[through, held] = Servable(
                self.anchors,
                through_seq=through,
                held=held,
                estimator=self.policy.estimator,
                not_read=self.anchors_unread,
            )
        return self._ranked[through, held]

    @property
    def digestible(self) -> Digestible:
        """What digests can be served of: of a layout that has some, no more than it shows."""
        layout = self.conversation.layout
        laid_out = as_laid_out(self.segments, layout.segments) if layout and layout.segments else self.segments
        return Digestible(
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
    """The rendered element."""
    behind_marker: int
    held: tuple[Message, ...]
    tail: tuple[Message, ...]
    digests: Digests = NO_DIGESTS
    left_out: LeftOut | None = None
    warnings: tuple[str, ...] = ()
    recalled: tuple[Recalled, ...] = ()
    """Messages that are brought back, best first."""
    named: frozenset[str] = frozenset()
    """Roles whose messages begin with the speaker's name."""
    passages: tuple[Passage, ...] = ()
    """Those of the caller."""
    held_days: str = ""
    """The rendered element with the days of the held messages."""
    tells_days: bool = True
    """False once those days had to make room: they do not come back with other held messages."""
    opened: tuple[ShownSegment, ...] = ()
    """Covered segments whose originals stand among the held messages."""
    weighed: list[int] = field(default_factory=list, init=False, repr=False, compare=False)
    """What recall adds (``joining.recall_tokens``), once that was computed: it is asked for step by step."""

    @property
    def through_seq(self) -> int:
        """The last message that truncation took out of the tail; 0 when it took none."""
        return self.left_out.to_seq if self.left_out else 0

    def warned(self, *warnings: str) -> Draft:
        """This draft with further warnings, each once."""
        return replace(self, warnings=tuple(dict.fromkeys((*self.warnings, *warnings))))


def first_draft(material: Material) -> Draft:
    """Everything there is, the block as it was laid out."""
    layout = material.conversation.layout
    return Draft(
        state=layout.text if layout else None,
        anchors=layout.anchors if layout else "",
        behind_marker=layout.anchors_behind_marker if layout else 0,
        held=tuple(message for message in material.held if says_something(message)),
        tail=tuple(message for message in material.tail if says_something(message)),
        digests=Digests(element=layout.digests, segments=layout.segments) if layout else NO_DIGESTS,
        held_days=layout.held_days if layout and material.held else "",
    )


def says_something(message: Message) -> bool:
    """Whether a model is told anything: not by a command, an erased message, or an answer broken off at once."""
    return message.is_told and bool(message.content or message.parts)


def with_anchors(material: Material, draft: Draft, *, room: int | None) -> Draft:
    """The draft with those anchors whose messages it does not serve, within a room of their own."""
    return with_served(material, draft, material.servable(draft).within(room))


def with_served(material: Material, draft: Draft, served: Served) -> Draft:
    """The draft with these anchors."""
    element = anchors_element(served.shown, behind_marker=served.behind_marker if material.policy.levels else 0)
    return replace(draft, anchors=element, behind_marker=served.behind_marker)


def with_held(material: Material, draft: Draft, held: tuple[Message, ...]) -> Draft:
    """The draft with other held messages, and their days."""
    since = draft.tail[0].created_at.date() if draft.tail else None
    days = days_element(held, since, material.conversation.locale) if draft.tells_days else ""
    return replace(draft, held=held, held_days=days)


def block_of(material: Material, draft: Draft) -> tuple[ContextMessage, ...]:
    """The messages of the state block."""
    return block_messages(
        draft.state,
        served_as=material.policy.served_as,
        anchors=draft.anchors,
        digests=draft.digests.element,
        left_out=draft.left_out if draft.left_out and draft.left_out.digest else None,
        held_days=draft.held_days,
    )


def block_tokens(material: Material, draft: Draft) -> int:
    """What the state block weighs."""
    told = draft.left_out if draft.left_out and draft.left_out.digest else None
    parts = draft.state, draft.anchors, draft.digests.element, told, draft.held_days
    if parts not in material.blocks:
        material.blocks[parts] = weigh_all(material, block_of(material, draft))
    return material.blocks[parts]


def block_sizes(material: Material, draft: Draft) -> tuple[int, int, int]:
    """What the block weighs without its anchors, digests and days, what anchors add, and what digests add to both."""
    draft = replace(draft, held_days="")
    without = replace(draft, digests=NO_DIGESTS)
    bare = block_tokens(material, replace(without, anchors=""))
    anchored = block_tokens(material, without) if draft.anchors else bare
    whole = block_tokens(material, draft) if draft.digests.element else anchored
    return bare, anchored - bare, whole - anchored


def held_day_tokens(material: Material, draft: Draft) -> int:
    """What the days of held messages add to the block."""
    if not draft.held_days:
        return 0
    return max(block_tokens(material, draft) - block_tokens(material, replace(draft, held_days="")), 0)


def size_of(material: Material, draft: Draft) -> int:
    """Tokens after the system prompt and the files, without recall; held messages and tail are rounded apart."""
    return block_tokens(material, draft) + weight_in_all(material, draft.held) + weight_in_all(material, draft.tail)


def weigh_all(material: Material, messages: Sequence[ContextMessage]) -> int:
    """What rendered messages weigh."""
    return messages_tokens(messages, material.policy.estimator)


def weight_of(material: Material, message: Message) -> int:
    """What a stored message weighs."""
    return tokens_of(message.token_count, message.byte_length, material.policy.estimator)


def weight_in_all(material: Material, messages: Sequence[Message]) -> int:
    """What stored messages weigh, computed from their sums as utilization is."""
    estimator = material.policy.estimator
    bytes_ = 0 if estimator == "script" else sum(one.byte_length for one in messages)
    return tokens_of(sum(map(_TOKENS, messages)), bytes_, estimator)


def outline_of(message: Message) -> Outline:
    """A message as the planner's laws see it."""
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

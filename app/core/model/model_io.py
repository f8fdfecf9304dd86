"""What goes to a model and what comes back, the same for every provider and for the offline model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any, Final, Literal

from app.core.model.anchors import Anchor
from app.core.model.claims import Claim
from app.core.model.conversation import Message, Usage
from app.core.model.files import RequestFile
from app.core.model.segments import CutSegment
from app.core.model.state import StateEntry, StateSchema
from app.core.text.parts import Part

Cost = Callable[[int, int], float | None]
"""The price of a call in USD, by the tokens read (none of them cached) and written; ``None``: unknown."""

OFFLINE: Final = "offline"
"""The name of the model that needs no provider: it quotes messages."""

FinishReason = Literal["stop", "length", "blocked", "tool_call", "other"]


def unknown_cost(_read: int, _written: int) -> None:
    """The cost of a call to a model without a known price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool that is offered to the chat model."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of the arguments, an object."""
    strict: bool = False
    """Whether the provider has to hold the model to the schema, if it can and the schema allows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolName:
    """A ``tool_choice`` that names the one tool to be called."""

    name: str


ToolChoice = Literal["auto", "none", "required"] | ToolName
"""Whether the model calls a tool of the client: as it likes, not at all, in any case, or this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredOutput:
    """The reply is to be JSON."""

    schema: Mapping[str, Any] | None = None
    """JSON Schema of the reply, an object; ``None``: any JSON object."""
    name: str = "output"
    description: str = ""
    strict: bool | None = None
    """Whether the provider has to hold the model to the schema; ``None``: as the provider does by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettings:
    """How a client wants a turn's model called; ``None`` leaves a setting to the model."""

    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    """The most output tokens of each step of a turn."""
    stop: tuple[str, ...] = ()
    """Texts before which the reply ends."""
    tool_choice: ToolChoice | None = None
    """Holds for the client's tools only; it does not change which tools of its own the service offers."""
    parallel_tool_calls: bool | None = None
    """Whether one step may call several tools."""
    reasoning_effort: str | None = None
    """One of ``REASONING_EFFORTS``."""
    reasoning: Reasoning | None = None
    """What becomes of the model's thoughts; ``None``: what the conversation's policy says."""
    output: StructuredOutput | None = None
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None


Reasoning = Literal["off", "shown", "asked"]
"""What is done with a model's thoughts. ``off``: they are dropped. ``shown``: if there are any, they are passed on and
stored. ``asked``: the model is also asked to show them, if that changes neither the depth of its thoughts nor the
cost."""

REASONING_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
NO_SETTINGS: Final = CallSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePrices:
    """What a provider asks in USD for one token of a cached prefix."""

    input: float
    """The price of a token that is read in full."""
    cached: float
    """The price of a token that is read from a cache."""
    storage: float
    """The price of a token that is kept for an hour in a cache of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheTerms:
    """The conditions under which a model's provider keeps caches on demand."""

    account: str
    """A mark of the account in which the caches are kept; no other account can use them."""
    minimum: int
    """The fewest tokens of a cache, as the provider documents it."""
    priced_on: str
    """The day on which the table of storage prices was read, ISO 8601."""
    prices: Callable[[int, date], CachePrices | None] = field(compare=False, repr=False)
    """The prices by the tokens of the prefix, on a day; ``None`` if one of them is unknown."""


RefusedSettings = Callable[[CallSettings, Sequence[ToolSpec]], Mapping[str, str]]
"""Lists which of a client's settings and tools a model cannot take: the reason, by the field's name."""


def refuses_nothing(_settings: CallSettings, _tools: Sequence[ToolSpec]) -> Mapping[str, str]:
    """For a model that takes everything: no setting is refused."""
    return {}


ReadsMedia = Callable[[str], bool]
"""Whether a model reads data of that media type."""


def reads_no_media(_media_type: str) -> bool:
    """For a model that reads text alone: no media type is taken."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProfile:
    """What a model can take: limits in its own tokens."""

    name: str
    input_limit: int
    output_limit: int
    limit_known: bool = False
    """Whether ``input_limit`` comes from the model or the operator, and is not a guess."""
    chunk_tokens: int | None = None
    """The most tokens that it can read in a compaction call, if that is less than half the input limit."""
    metered: bool = True
    """Whether its calls cost money; the spend guard counts only calls that do."""
    reads_prompts: bool = True
    """Whether it is given a prompt; the offline model reads none."""
    calls_tools: bool = False
    """Whether tools are offered to it as a chat model."""
    stateful: bool = False
    """Whether its provider keeps the context of a chat, so that a request may go on from an earlier response."""
    caches: CacheTerms | None = None
    """The conditions for caches at its provider; ``None``: it keeps none."""
    cost: Cost = field(default=unknown_cost, compare=False, repr=False)
    refuses: RefusedSettings = field(default=refuses_nothing, compare=False, repr=False)
    reads_media: ReadsMedia = field(default=reads_no_media, compare=False, repr=False)
    file_account: str | None = field(default=None, repr=False)
    """A mark of the account in which its provider keeps files; made of the address and our key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMessage:
    """One entry of an assembled context. ``seq`` is ``None`` for what the service wrote itself."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    parts: tuple[Part, ...] = ()
    name: str = ""
    """The name of the person who says it, if one of several (``labels.name_for_model``); it is not in the content."""
    seq: int | None = None
    event_type: str | None = field(default=None, compare=False)
    """The event type of the stored message. No model is sent it."""
    is_protected: bool = field(default=False, compare=False)
    """Whether it is sent word for word whatever is folded."""

    @property
    def turn(self) -> int | None:
        """The message's place in the history from 0, as the Sessions Pattern counts."""
        return None if self.seq is None else self.seq - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """The response from which a stateful model goes on: its provider keeps everything up to it."""

    response_id: str
    open_calls: tuple[Part, ...] = ()
    """The tool calls with which the response ended, as they are stored: each needs a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One step of the chat model: ``messages[0]`` is the system prompt when it has role ``system``."""

    messages: tuple[ContextMessage, ...]
    files: tuple[RequestFile, ...] = ()
    """The conversation's files. They stand between the system prompt and all history (``context.files.with_files``)."""
    tools: tuple[ToolSpec, ...] = ()
    must_call: tuple[str, ...] = ()
    """The tools of which the model has to call one; empty: it may answer."""
    settings: CallSettings = NO_SETTINGS
    """The client's settings; ``tool_choice`` has already become ``tools`` and ``must_call``."""
    continues: Continuation | None = None
    """For a stateful model: the response to continue. ``messages`` hold the system prompt and all later messages."""
    reasoning: Reasoning = "shown"
    """What becomes of the model's thoughts, whatever ``settings`` say."""
    is_kept: bool = True
    """Whether a stateful model's provider keeps the response, so that a later request may go on from it."""
    locale: str = "en"
    """The conversation's locale: what has to be put in words for a provider is written in its language."""
    cache: str | None = None
    """The provider's name of a cache with the system prompt and the tools, which this request contains as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of the reply."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    """A piece of what the model shows of its thoughts: no part of the reply."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call of a tool by the model, which waits for its result."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    details: Mapping[str, Any] = field(default_factory=dict)
    """JSON that the provider wants back unchanged with the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinish:
    """The last thing a step yields."""

    reason: FinishReason
    usage: Usage
    model: str
    response_id: str | None = None
    """For a stateful model: the response that a later request may continue."""
    named_cache: bool = False
    """Whether the request named the cache that it was given."""


StepEvent = TextDelta | ReasoningDelta | ToolCall | StepFinish


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A statement in a summarizer's answer about which it is asked again."""

    field: str
    statement: str
    values: tuple[str, ...] = ()
    """The values of the statement that were not shown; if empty, the statement gives the reader orders."""
    says: str = ""
    """What the messages say instead."""


@dataclass(frozen=True, kw_only=True)
class SummaryRequest:
    """One call of the summarizer, structured.

    An LLM adapter renders it with ``prompts.render_summary``, the offline model reads it as it is.
    """

    schema: StateSchema
    messages: tuple[Message, ...]
    """The chunk, in order; held messages are in it too, since the state must make sense of them."""
    previous: tuple[StateEntry, ...] = ()
    """The served entries of the state so far."""
    anchors: tuple[Anchor, ...] = ()
    """The active anchors up to the end of the chunk: code serves them verbatim beside the state."""
    anchor_room: int | None = None
    """The tokens for anchors in the block; anchors that do not fit are left to a marker. ``None``: all are served."""
    system_prompt: str = ""
    """The conversation's own system prompt: what it says counts as shown, and need not be recorded."""
    system_context: str = ""
    """The part of the system prompt that the summarizer is shown: terms, synonyms and workflow hints."""
    focus: str | None = None
    instructions: str = ""
    feedback: str | None = None
    """The reason word for which the attempt before was refused."""
    target_tokens: int = 800
    """How many tokens the new state should have."""
    max_output_tokens: int = 4_096
    locale: str = "en"
    chunk_tokens: int | None = None
    """The most tokens of the messages as an LLM is shown them; if there are more, giant messages are shown elided."""
    missing: tuple[tuple[int, str], ...] = ()
    """If the summary is made once more: each (message, sentence) that the first one leaves out or tells differently."""
    segments: tuple[CutSegment, ...] = ()
    """The stretches of the chunk, each to be described as well; empty if no digests are wanted."""
    doubts: tuple[Doubt, ...] = ()
    """If the summarizer is asked again: the statements of its answer that do not hold."""
    lost: tuple[tuple[int, str], ...] = ()
    """If the summarizer is asked again: each (message, sentence) whose values would no longer be served."""

    @cached_property
    def language(self) -> str | None:
        """The language of the chunk; ``None`` if it is not known."""
        from app.core.model.provenance import language_of  # noqa: PLC0415 - a second of imports, for settings, too

        return language_of(self.messages)

    @property
    def asks_again(self) -> bool:
        """Whether this request is about an answer that was given already."""
        return bool(self.doubts or self.lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailRequest:
    """One call of the summarizer for a segment's L1: a condensed narrative of key exchanges and their outcomes."""

    topic: str
    messages: tuple[Message, ...]
    """The segment's messages, without secrets; commands and erased messages are left out."""
    target_tokens: int
    max_output_tokens: int
    locale: str = "en"
    instructions: str = ""
    shown_tokens: int | None = None
    """The most tokens of the messages as an LLM is shown them; giant messages are elided for it. ``None``: no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationRequest:
    """One call of the verifier: claims of what a summarizer wrote, and what they can be judged by."""

    messages: tuple[Message, ...]
    """The messages of the chunk, with the same secrets withheld as from the summarizer."""
    claims: tuple[Claim, ...]
    previous: tuple[StateEntry, ...] = ()
    """The entries that were served before."""
    older: tuple[Message, ...] = ()
    """Excerpts of earlier messages: the sources of entries that a claim replaces, drops, joins or retells."""
    max_output_tokens: int = 4_096
    chunk_tokens: int | None = None
    """The limit that the summarizer's request had: in a chunk with more tokens, giant messages are shown elided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A summarizer's raw answer, unchecked: visible to nobody until the gate has passed it."""

    text: str
    finish: FinishReason
    model: str
    usage: Usage = field(default_factory=Usage)
    called_tool: bool = False

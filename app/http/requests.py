"""Request bodies, and the services' values that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Annotated, Any, Final, Literal, Self
from uuid import UUID

from pydantic import Field, Strict, ValidationInfo, field_validator, model_validator

from app.core.context.formats import Format
from app.core.model.anchors import AnchorStatus
from app.core.model.conversation import MessageStatus, Role
from app.core.model.fieldwise import from_same_fields
from app.core.model.segments import LEVEL_BY_NAME, LEVELS, LevelName
from app.core.retrieval.rendering import Passage
from app.core.state.erasing import stubs
from app.core.text.token_counts import Weight
from app.http.fields import (
    MAX_BATCH_MESSAGES,
    MAX_CONTENT_LENGTH,
    MAX_PARTS,
    MAX_PASSAGE_LENGTH,
    MAX_PASSAGES,
    Budget,
    Count,
    EventType,
    Flag,
    Focus,
    Input,
    Locale,
    Metadata,
    ModelName,
    Overrides,
    PresetName,
    PresetVersion,
    Query,
    Scratchpad,
    Seq,
    SystemPrompt,
    Time,
    Title,
    UserId,
    Version,
)
from app.http.parts import Part
from app.off_loop import off_loop
from app.usecases.chat.chat_input import ChatInput
from app.usecases.compaction.manual import CompactInput
from app.usecases.context.recalling import RecallRequest, WantedSections
from app.usecases.context.requests import Compact, ContextAsk
from app.usecases.history.conversations import NewConversation
from app.usecases.history.drafts import MessageDraft

_BYTES_PER_DRAFT: Final = 10
"""The bytes of work that each part counts for; its text is not searched."""


def _unchanged(placeholder: Any) -> Any:
    # The default is never used: a field that is left out stays unchanged.
    def hide(schema: dict[str, Any]) -> None:
        schema.pop("default", None)

    return Field(default_factory=lambda: copy(placeholder), json_schema_extra=hide)


class EmptyRequest(Input):
    """An empty body."""


class ConversationCreate(Input):
    """A new conversation. Every field is optional."""

    title: Title | None = None
    user_id: UserId | None = None
    locale: Locale = "en"
    system_prompt: SystemPrompt = ""
    preset: PresetName | None = Field(None, description="Absent or null: the operator's default, which is `semantic`.")
    preset_version: PresetVersion | None = Field(
        None,
        description="That of an exported conversation, whose policy it is to keep. Absent or null: the present one.",
    )
    policy: Overrides = Field(default_factory=dict)
    scratchpad: Scratchpad = Field(default_factory=dict)
    metadata: Metadata = Field(default_factory=dict)

    def new(self) -> NewConversation:
        """The body as a value of the services."""
        return NewConversation(**dict(self))


class ConversationPatch(Input):
    """Only given fields change: ``policy`` replaces the overrides, scratchpad and metadata are merged (RFC 7396)."""

    title: Title | None = _unchanged(None)
    locale: Locale = _unchanged("en")
    system_prompt: SystemPrompt = _unchanged("")
    preset: PresetName = _unchanged("semantic")
    policy: Overrides = _unchanged({})
    scratchpad: Scratchpad = _unchanged({})
    metadata: Metadata = _unchanged({})

    def changes(self) -> dict[str, Any]:
        """The given fields, and no others."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class MessageInput(Input):
    """A message as a client gives it."""

    role: Role
    parts: Annotated[list[Part], Field(max_length=MAX_PARTS)] = Field(default_factory=list, validate_default=True)
    content: str = Field(default="", validate_default=True, description="May be empty only beside parts.")
    event_type: EventType = "casual"
    metadata: Metadata = Field(default_factory=dict)
    created_at: Time | None = None
    model: ModelName | None = None
    usage: Metadata | None = None

    @field_validator("content")
    @classmethod
    def _content_or_parts(cls, value: str, info: ValidationInfo) -> str:
        is_whole = info.data.get("status", "complete") == "complete"
        if not value.strip() and is_whole and not info.data.get("parts", True):
            raise ValueError("content cannot be empty")
        return value

    @field_validator("parts")
    @classmethod
    def _results_of_a_tool(cls, value: list[Part], info: ValidationInfo) -> list[Part]:
        if info.data.get("role") == "tool" and not any(part.type == "tool_result" for part in value):
            raise ValueError("a message of role tool needs a tool_result")
        return value

    def draft(self) -> MessageDraft:
        """The message as a value of the services; parts keep exactly the given keys."""
        return from_same_fields(MessageDraft, self, parts=tuple(part.as_given() for part in self.parts))


async def drafts_of(messages: Sequence[MessageInput]) -> list[MessageDraft]:
    """The messages as values of the services; many parts are converted off the event loop."""
    size = sum(1 + len(message.parts) for message in messages)
    return await off_loop(lambda: [message.draft() for message in messages], size=_BYTES_PER_DRAFT * size)


class MessageAppend(MessageInput):
    """One message to append, without a reply."""

    expected_last_message_id: UUID | None = None


class _Past(Input):
    """What happened to a message in the history that it comes from."""

    status: MessageStatus = Field(
        default="complete",
        description="As the history that it comes from has it; of one that was erased place, role, time and the ids of"
        " tool calls are kept, and nothing else that is given.",
    )
    is_command: Flag = Field(
        default=False, description="A typed command or its answer: in the history, and in no context."
    )
    reasoning: Annotated[str, Field(max_length=MAX_CONTENT_LENGTH)] = Field(
        default="", description="What its model showed of its thoughts."
    )


class PastMessage(MessageInput, _Past):
    """A message as a client gives it, or as another history contains it."""

    @field_validator("role")
    @classmethod
    def _role_of_what_became_of_it(cls, value: Role, info: ValidationInfo) -> Role:
        status = info.data.get("status")
        if value != "assistant" and status in {"interrupted", "superseded"}:
            raise ValueError(f"only a message of the assistant can be {status}")
        if value not in {"user", "assistant"} and info.data.get("is_command"):
            raise ValueError("only a user types a command, and only the assistant answers it")
        return value

    def draft(self) -> MessageDraft:
        """The message as a value of the services; an erased one becomes what ``erasing.tombstone`` leaves."""
        draft = super().draft()
        if self.status != "erased":
            return draft
        kept = stubs(draft.parts)
        return MessageDraft(
            role=self.role,
            content="",
            parts=kept,
            event_type=self.event_type,
            created_at=self.created_at,
            status="erased",
            is_command=self.is_command,
            weight=None if kept else Weight(tokens=0, bytes=0),
        )


class MessageBatch(Input):
    """Messages to append, either all or none; for those from another history, also what happened to them there."""

    messages: Annotated[list[PastMessage], Field(min_length=1, max_length=MAX_BATCH_MESSAGES)]
    expected_last_message_id: UUID | None = None


class PassageInput(Input):
    """A passage of the client, to be served next to recalled ones."""

    text: Annotated[str, Field(min_length=1, max_length=MAX_PASSAGE_LENGTH)]
    source: Annotated[str, Field(min_length=1, max_length=500, description="Where it is from, in your words.")]

    def passage(self) -> Passage:
        """The passage as a value of the core."""
        return Passage(text=self.text, source=self.source)


Passages = Annotated[list[PassageInput], Field(max_length=MAX_PASSAGES)]


class RegenerateRequest(Input):
    """How the last reply is made again."""

    model: ModelName | None = Field(
        default=None, description="One that the operator allows; the configured chat model when it is left out."
    )
    recall: Flag | None = Field(default=None, description="For this turn, whatever the policy says.")
    passages: Passages = Field(default_factory=list)
    expected_last_message_id: UUID | None = None

    def input(self) -> ChatInput:
        """The body as a value of the services."""
        return from_same_fields(
            ChatInput, self, passages=tuple(one.passage() for one in self.passages), regenerates=True
        )


class CompactRequest(Input):
    """A manual compaction."""

    focus: Focus | None = None
    up_to_message_id: UUID | None = None
    keep_tail_messages: Annotated[Count, Field(le=1_000)] | None = None
    dry_run: Flag = False
    wait: Flag = True

    def input(self) -> CompactInput:
        """The body as a value of the services."""
        return CompactInput(**dict(self))


class ExaminationRequest(Input):
    """Whether damage that code can mend is mended too."""

    mend: Annotated[bool, Strict()] = False


class RestoreRequest(Input):
    """Which state is restored, as a new version."""

    state_version: Annotated[Version, Strict()]


class AnchorPatch(Input):
    """The new status of an anchor."""

    status: AnchorStatus


class SegmentRequest(Input):
    """Which segment, by its id or its exact range, and which level of it to make; `full` always exists."""

    segment_id: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    from_seq: Seq | None = None
    to_seq: Seq | None = None
    level: LevelName

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        places = (self.from_seq is None, self.to_seq is None)
        if places not in {(True, True), (False, False)} or (self.segment_id is None) == places[0]:
            raise ValueError("give either segment_id, or from_seq and to_seq")
        if (self.from_seq or 0) > (self.to_seq or 0):
            raise ValueError("from_seq must not be above to_seq")
        return self

    def place(self) -> str | tuple[int, int]:
        """The id or the range, as a value of the services."""
        return self.segment_id or (self.from_seq or 0, self.to_seq or 0)


class ContextSections(Input):
    """The sections that a context has. Omitted ones are left out, and the gauge does not count them."""

    state: Flag = True
    anchors: Flag = True
    digests: Flag = True
    held: Flag = True
    recalled: Flag = True
    levels: Annotated[list[Literal["detailed", "brief", "tags"]], Field(max_length=3)] | None = Field(
        default=None, description="The levels that digests may show; the policy's when it is left out."
    )

    def wanted(self) -> WantedSections:
        """The sections as a value of the services."""
        named = None if self.levels is None else [LEVEL_BY_NAME[name] for name in self.levels]
        levels = None if named is None else tuple(level for level in LEVELS if level in named)
        return WantedSections(**{**dict(self), "levels": levels})


class ContextRequest(Input):
    """The context that a client requests."""

    budget: Annotated[Budget, Strict()] | None = None
    query: Query | None = None
    passages: Passages = Field(default_factory=list)
    compact: Compact = Field(
        default="never", description="`if_needed`: what is due before a model call is compacted first, as in a turn."
    )
    format: Format = "plain"
    sections: ContextSections = ContextSections()

    def ask(self) -> ContextAsk:
        """The body as a value of the services."""
        passages = tuple(one.passage() for one in self.passages)
        asked = RecallRequest(query=self.query, passages=passages, wanted=self.sections.wanted())
        return ContextAsk(budget=self.budget, recall_request=asked, compact=self.compact, counts=True)


class TokenCountRequest(Input):
    """What to count: a text, or messages."""

    text: Annotated[str, Field(max_length=MAX_CONTENT_LENGTH)] | None = None
    messages: Annotated[list[MessageInput], Field(max_length=MAX_BATCH_MESSAGES)] | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.text is None) == (self.messages is None):
            raise ValueError("give either text or messages")
        return self

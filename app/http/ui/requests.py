"""Reads what ``useChat`` sends: its last message, or all messages, of which only the last one is used."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import to_json

from app.core.context.turn_options import MAX_TOOLS
from app.core.model.fieldwise import from_same_fields
from app.core.model.model_io import CallSettings, ToolName
from app.core.text.parts import Part
from app.core.text.patterns import compiled
from app.http.chat_requests import MAX_RESULTS, NamedTool, ToolChoice, ToolInput
from app.http.fields import MAX_CONTENT_LENGTH, MAX_PARTS, Flag, ModelName, SystemPrompt, UtcOffset
from app.http.idempotency import kept_key
from app.http.refusals import invalid_field
from app.http.requests import Passages
from app.usecases.chat.chat_input import ChatInput, ToolResultInput
from app.usecases.shared.idempotency import Idem
from app.usecases.ui.turns import RegenerationRequest

MAX_URL_LENGTH: Final = 8_192
MAX_UI_PARTS: Final = 4_096
"""The most parts of an assistant's message. Everything except results of tools is ignored."""
DATA_URL: Final = compiled(r"data:([^,;\s]{1,200})((?:;[^,;\s]{1,100}){0,8});base64,", re.IGNORECASE)
ADDRESS: Final = compiled(r"https?://", re.IGNORECASE)

Id = Annotated[str, Field(min_length=1, max_length=200)]


class _Given(BaseModel):
    """Unknown fields are ignored, since applications add fields of their own to their requests."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class UiPart(_Given):
    """A part of a UI message; which fields it has depends on its type."""

    type: Annotated[str, Field(max_length=200)]
    text: str | None = None
    url: str | None = None
    mediaType: Annotated[str, Field(max_length=200)] | None = None  # noqa: N815 - as it is on the wire
    filename: Annotated[str, Field(max_length=500)] | None = None
    toolCallId: Id | None = None  # noqa: N815
    state: Annotated[str, Field(max_length=50)] | None = None
    output: Any = None
    errorText: Annotated[str, Field(max_length=MAX_CONTENT_LENGTH)] | None = None  # noqa: N815
    providerExecuted: bool | None = None  # noqa: N815

    @property
    def is_tool(self) -> bool:
        """Whether it is a tool call."""
        return self.type == "dynamic-tool" or self.type.startswith("tool-")


class UiMessage(_Given):
    """The last message of a chat."""

    id: Id
    role: Literal["user", "assistant", "system"]
    parts: Annotated[list[UiPart], Field(max_length=MAX_UI_PARTS)]

    @property
    def words(self) -> str:
        """The texts of the message joined."""
        return "\n\n".join(part.text for part in self.parts if part.type == "text" and part.text)


class UiRequest(_Given):
    """The body that ``DefaultChatTransport`` sends, or one with only the last message."""

    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
    message: UiMessage | None = Field(default=None, description="The last message.")
    messages: list[Any] = Field(default_factory=list, description="All of them: without `message` the last one counts.")
    messageId: Id | None = None  # noqa: N815
    utc_offset: UtcOffset | None = None
    model: ModelName | None = None
    recall: Flag | None = None
    instructions: SystemPrompt | None = None
    passages: Passages = Field(default_factory=list)
    tools: Annotated[list[ToolInput], Field(max_length=MAX_TOOLS)] = Field(
        default_factory=list, description="Of the frontend, as in `POST …/chat`: calls of them are left open."
    )
    tool_choice: ToolChoice | None = None

    @model_validator(mode="before")
    @classmethod
    def _last_message(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or value.get("message") is not None:
            return value
        messages = value.get("messages")
        if not isinstance(messages, Sequence) or isinstance(messages, str) or not messages:
            return value
        return {**value, "message": messages[-1], "messages": []}

    def submitted(self) -> tuple[str, ChatInput]:
        """The frontend's id of the message, and its content. Raises ``InvalidInputError``."""
        message = self.message
        if message is None:
            raise invalid_field("message", "send the last message, or all of them in messages")
        if message.role == "user":
            if self.messageId is not None:
                raise invalid_field(
                    "messageId", "a sent message cannot be changed: send the corrected text as a new message"
                )
            return message.id, self._new_message(message)
        results = _results_of_last_step(message) if message.role == "assistant" else []
        if not results:
            raise invalid_field("message", "the last message is neither a user's nor has results of tools")
        return message.id, self._chat_input(results=tuple(results))

    def again(self) -> tuple[RegenerationRequest, ChatInput]:
        """Which reply is to be made again, and how."""
        message = self.message
        question = message.words if message is not None and message.role == "user" else None
        return RegenerationRequest(named=self.messageId, question=question), self._chat_input()

    def idem(self, conversation_id: UUID) -> Idem | None:
        """The key that the message's id gives; ``None`` if a repeated request cannot be recognised."""
        message = self.message
        if self.trigger == "regenerate-message":
            return _idem(conversation_id, f"regenerate:{self.messageId}", None) if self.messageId else None
        if message is None:
            return None
        if message.role == "user":
            return _idem(conversation_id, message.id, [part.model_dump() for part in message.parts])
        results = _results_of_last_step(message)
        calls = hashlib.sha256("\n".join(sorted(one.tool_call_id for one in results)).encode()).hexdigest()
        fields = [(one.tool_call_id, one.content) for one in results]
        return _idem(conversation_id, f"{message.id}:{calls}", fields)

    def _new_message(self, message: UiMessage) -> ChatInput:
        media = [
            _media(part, f"message.parts.{number}") for number, part in enumerate(message.parts) if part.type == "file"
        ]
        if len(media) > MAX_PARTS:
            raise invalid_field("message.parts", f"at most {MAX_PARTS} files are taken")
        words = message.words
        if not words.strip() and not media:
            raise invalid_field("message.parts", "content cannot be empty")
        return self._chat_input(content=words, parts=tuple(media))

    def _chat_input(self, **fields: Any) -> ChatInput:
        choice = self.tool_choice
        return from_same_fields(
            ChatInput,
            self,
            **fields,
            tools=tuple(tool.spec() for tool in self.tools),
            settings=CallSettings(tool_choice=ToolName(name=choice.name) if isinstance(choice, NamedTool) else choice),
            passages=tuple(one.passage() for one in self.passages),
        )


def _results_of_last_step(message: UiMessage) -> list[ToolResultInput]:
    """The results of the frontend's tools in the last step; results of earlier steps were sent before."""
    starts = [number for number, part in enumerate(message.parts) if part.type == "step-start"]
    last_step = message.parts[starts[-1] + 1 :] if starts else message.parts
    results: list[ToolResultInput] = []
    for part in last_step:
        if not part.is_tool or part.providerExecuted or part.toolCallId is None:
            continue
        if part.state == "output-available":
            results.append(ToolResultInput(tool_call_id=part.toolCallId, content=part.output))
        elif part.state == "output-error":
            results.append(ToolResultInput(tool_call_id=part.toolCallId, content={"error": part.errorText or ""}))
    if len(results) > MAX_RESULTS:
        raise invalid_field("message.parts", f"at most {MAX_RESULTS} results are taken")
    return results


def _media(part: UiPart, field: str) -> Part:
    """A file in its stored form."""
    source, name = part.url or "", {"name": part.filename} if part.filename else {}
    inline = DATA_URL.match(source)
    if inline is not None:
        data = source[inline.end() :]
        if not data:
            raise invalid_field(f"{field}.url", "the file is empty")
        return {"type": "media", "media_type": part.mediaType or inline[1], "data": data, **name}
    if not ADDRESS.match(source) or len(source) > MAX_URL_LENGTH:
        raise invalid_field(f"{field}.url", "a file is taken as a data URL in Base64, or by an http address")
    return {"type": "media", "media_type": part.mediaType or "application/octet-stream", "url": source, **name}


def _idem(conversation_id: UUID, name: str, fields: Any) -> Idem:
    return Idem(key=kept_key(f"ui:{conversation_id}:{name}"), fingerprint=hashlib.sha256(to_json(fields)).hexdigest())

"""Reads the body of a chat completion."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from app.core.model.fieldwise import from_same_fields
from app.core.model.model_io import CallSettings, ToolSpec
from app.http.fields import MAX_CONTENT_LENGTH, MAX_SYSTEM_PROMPT_LENGTH
from app.http.openai.content import (
    CallId,
    Content,
    Given,
    ToolName,
    call_part,
    media_in,
    result_parts,
    stored_content,
)
from app.http.openai.items import without_empty
from app.http.openai.settings import (
    MAX_TOOLS,
    AllowedTools,
    AnswerSchema,
    ClientFunction,
    Mode,
    NamedTool,
    Penalty,
    Share,
    Temperature,
    Tokens,
    chosen_tools,
    refuse_unsupported,
)
from app.usecases.history.drafts import MessageDraft

MAX_MESSAGES: Final = 10_000
SpeakerName = Annotated[str, Field(max_length=64, pattern=r"^[^\s<|\\/>]+$")]
"""The name of a speaker among several of one role, with the limits of that API."""
INSTRUCTION_ROLES: Final = frozenset({"system", "developer"})


class CalledFunction(Given):
    """The function that was called."""

    name: ToolName
    arguments: Annotated[str, Field(max_length=MAX_CONTENT_LENGTH)] = "{}"


class ChatCall(Given):
    """A call in an assistant's message."""

    id: CallId
    function: CalledFunction


class ChatMessage(Given):
    """One message."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    name: SpeakerName | None = None
    content: Content | None = None
    tool_calls: Annotated[list[ChatCall], Field(max_length=128)] | None = None
    tool_call_id: CallId | None = None
    refusal: str | None = None

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        if self.role == "tool" and self.tool_call_id is None:
            raise ValueError("a message of role tool needs tool_call_id")
        if self.role != "assistant" and self.content is None:
            raise ValueError("content cannot be null")
        self.draft()
        return self

    def draft(self) -> MessageDraft:
        """The message as a draft to be stored. Raises ``ValueError`` for content that cannot be stored."""
        if self.role == "tool":
            return MessageDraft(role="tool", content="", parts=result_parts(self.tool_call_id or "", self.content))
        words, parts = stored_content(self.content)
        metadata = {} if self.name is None else {"name": self.name}
        if self.role == "assistant":
            calls = [call_part(call.id, call.function.name, call.function.arguments) for call in self.tool_calls or ()]
            content = words or self.refusal or ""
            return MessageDraft(role="assistant", content=content, parts=(*media_in(parts), *calls), metadata=metadata)
        role: Literal["system", "user"] = "user" if self.role == "user" else "system"
        own_parts = parts if role == "user" else media_in(parts)
        return MessageDraft(role=role, content=words, parts=own_parts, metadata=metadata)


class ChatTool(Given):
    """A tool. Only functions are supported."""

    type: Literal["function"]
    function: ClientFunction


class ChosenFunction(Given):
    """The function that has to be called."""

    name: ToolName


class ChatNamedTool(Given):
    """The tool that has to be called."""

    type: Literal["function"]
    function: ChosenFunction


class ChatToolSelection(Given):
    """Some of the tools, by name, and whether one of them has to be called."""

    mode: Mode = "auto"
    tools: Annotated[list[ChatNamedTool], Field(max_length=MAX_TOOLS)]


class ChatAllowedTools(Given):
    """The tools that may be called."""

    type: Literal["allowed_tools"]
    allowed_tools: ChatToolSelection


class ChatFormat(Given):
    """The format of the answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: AnswerSchema | None = None

    @model_validator(mode="after")
    def _has_its_schema(self) -> Self:
        if self.type == "json_schema" and self.json_schema is None:
            raise ValueError("json_schema is missing: {name, schema}")
        return self


class StreamOptions(Given):
    """How the answer is streamed."""

    include_usage: bool | None = None


def _named_tool(named: ChatNamedTool) -> NamedTool:
    return NamedTool(type="function", name=named.function.name)


class ChatCompletionRequest(Given):
    """A chat completion. Fields that are not listed are ignored."""

    model: Annotated[str, Field(min_length=1, max_length=200)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MAX_MESSAGES)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: Annotated[list[ChatTool], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: Mode | ChatNamedTool | ChatAllowedTools | None = None
    parallel_tool_calls: bool | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    stop: str | list[str] | None = None
    response_format: ChatFormat | None = None
    reasoning_effort: Annotated[str, Field(max_length=40)] | None = None
    seed: int | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    user: Annotated[str, Field(max_length=255)] | None = None
    metadata: dict[str, Any] | None = None
    conversation: Any = Field(default=None, description="Ours: the conversation whose new messages these are.")
    truncation: Literal["auto", "disabled"] | None = Field(
        default=None,
        description="Ours: whether the oldest messages of an answer without a conversation may be left out.",
    )
    n: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    logit_bias: dict[str, Any] | None = None
    modalities: list[str] | None = None
    audio: Any = None
    functions: Any = None
    function_call: Any = None
    web_search_options: Any = None
    verbosity: str | None = None
    moderation: Any = None

    @model_validator(mode="after")
    def _within_limits(self) -> Self:
        if len(self.instructions or "") > MAX_SYSTEM_PROMPT_LENGTH:
            raise ValueError(f"the system message may have at most {MAX_SYSTEM_PROMPT_LENGTH} characters")
        return self

    def refuse_unsupported(self) -> None:
        """Raises ``InvalidInputError`` for fields that would otherwise be ignored silently."""
        refuse_unsupported(
            [
                ("n", self.n not in {None, 1}, "one completion at a time is made here"),
                ("logprobs", bool(self.logprobs), "log probabilities are not told here"),
                ("top_logprobs", bool(self.top_logprobs), "log probabilities are not told here"),
                ("logit_bias", bool(self.logit_bias), "tokens are not weighed here"),
                ("modalities", bool(set(self.modalities or ()) - {"text"}), "only text is answered here"),
                ("audio", self.audio is not None, "only text is answered here"),
                ("functions", bool(self.functions), "use tools"),
                ("function_call", self.function_call not in (None, "none", "auto"), "use tool_choice"),
                ("web_search_options", self.web_search_options is not None, "nothing is searched for here"),
                ("moderation", self.moderation is not None, "nothing is moderated here"),
                ("verbosity", self.verbosity not in {None, "medium"}, "say it in the system message"),
            ]
        )

    @property
    def instructions(self) -> str | None:
        """The system's and the developer's text before the first other message."""
        return "\n\n".join(message.draft().content for message in self._leading_instructions()) or None

    @property
    def drafts(self) -> list[MessageDraft]:
        """The messages after the instructions, without empty replies and system messages."""
        leading = sum(1 for _ in self._leading_instructions())
        return without_empty(message.draft() for message in self.messages[leading:])

    def settings_and_tools(self) -> tuple[CallSettings, tuple[ToolSpec, ...]]:
        """How the model is called, and the tools that it may call."""
        choice, tools = chosen_tools(self._tool_choice(), [tool.function for tool in self.tools or ()])
        settings = from_same_fields(
            CallSettings,
            self,
            max_output_tokens=self.max_completion_tokens or self.max_tokens,
            stop=(self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ()),
            tool_choice=choice,
            output=self._structured_output(),
            frequency_penalty=self.frequency_penalty or None,
            presence_penalty=self.presence_penalty or None,
        )
        return settings, tools

    def _tool_choice(self) -> Mode | NamedTool | AllowedTools | None:
        """The choice in the form of responses."""
        match self.tool_choice:
            case ChatNamedTool() as named:
                return _named_tool(named)
            case ChatAllowedTools(allowed_tools=allowed):
                tools = [_named_tool(tool) for tool in allowed.tools]
                return AllowedTools(type="allowed_tools", mode=allowed.mode, tools=tools)
            case mode:
                return mode

    def _structured_output(self) -> Any:
        form = self.response_format
        if form is None or form.type == "text":
            return None
        return (form.json_schema if form.type == "json_schema" and form.json_schema else AnswerSchema()).output()

    def _leading_instructions(self) -> Iterator[ChatMessage]:
        # If there is nothing else, the last one is what has to be answered.
        return takewhile(lambda message: message.role in INSTRUCTION_ROLES, self.messages[:-1])

"""The body of a chat request: a message or results of tools, and what the client brings for the turn."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import Discriminator, Field, Strict, Tag, field_validator, model_validator

from app.core.context.turn_options import MAX_STOPS, MAX_TOOLS
from app.core.model.fieldwise import from_same_fields
from app.core.model.model_io import CallSettings, StructuredOutput, ToolName, ToolSpec
from app.http.fields import (
    MAX_CONTENT_LENGTH,
    MAX_PARTS,
    EventType,
    Flag,
    Input,
    ModelName,
    OutputTokens,
    Penalty,
    Probability,
    Schema,
    Seed,
    StopText,
    SystemPrompt,
    Temperature,
    ToolLabel,
    UtcOffset,
)
from app.http.parts import CallId, MediaPart, TextPart
from app.http.requests import Passages
from app.usecases.chat.starting import ChatInput, ToolResultInput

MAX_RESULTS = 256


class ToolInput(Input):
    """A tool of the client, for this turn only."""

    name: ToolLabel
    description: Annotated[str, Field(max_length=MAX_CONTENT_LENGTH)] = ""
    parameters: Schema = Field(
        default_factory=lambda: {"type": "object", "properties": {}}, description="JSON Schema of the arguments."
    )

    def spec(self) -> ToolSpec:
        """The tool as a value of the core."""
        return ToolSpec(name=self.name, description=self.description, parameters=self.parameters)


class ToolResult(Input):
    """The result of a tool of the client."""

    tool_call_id: CallId
    content: Any = Field(description="A text, or any JSON.")

    def input(self) -> ToolResultInput:
        """The result as a value of the services."""
        return ToolResultInput(tool_call_id=self.tool_call_id, content=self.content)


class NamedTool(Input):
    """The one tool that has to be called."""

    name: ToolLabel


ToolChoice = Annotated[
    Annotated[Literal["auto", "none", "required"], Tag("<word>")] | Annotated[NamedTool, Tag("<tool>")],
    Discriminator(lambda given: "<word>" if isinstance(given, str) else "<tool>"),
]
"""The kind is decided first, so that an error names only that kind."""


class ResponseFormat(Input):
    """The form of the reply: `json_schema` needs a `schema`."""

    type: Literal["text", "json_object", "json_schema"]
    name: ToolLabel = "output"
    description: Annotated[str, Field(max_length=10_000)] = ""
    schema_: Schema | None = Field(default=None, alias="schema", description="JSON Schema of an object.")
    strict: Flag | None = Field(default=None, description="Whether the model has to be held to the schema.")

    @model_validator(mode="after")
    def _schema_where_it_belongs(self) -> Self:
        if (self.type == "json_schema") != (self.schema_ is not None):
            raise ValueError("give a schema with the type json_schema, and with no other")
        return self

    def output(self) -> StructuredOutput | None:
        """The format as a value of the core; `None` for text."""
        if self.type == "text":
            return None
        return StructuredOutput(schema=self.schema_, name=self.name, description=self.description, strict=self.strict)


class ChatRequest(Input):
    """A user's message, or results of the client's tools, or neither: then the message that still waits is answered.

    Everything else in the request holds for this turn only.
    """

    parts: Annotated[
        list[Annotated[TextPart | MediaPart, Field(discriminator="type")]],
        Field(max_length=MAX_PARTS, description="Texts and media of the user's message."),
    ] = Field(default_factory=list)
    content: str | None = Field(default=None, description="May be empty only beside parts.")
    tool_results: Annotated[list[ToolResult], Field(max_length=MAX_RESULTS)] = Field(default_factory=list)
    event_type: EventType = "casual"
    utc_offset: UtcOffset | None = None
    model: ModelName | None = Field(
        default=None, description="One that the operator allows; the configured chat model when it is left out."
    )
    recall: Flag | None = Field(default=None, description="For this turn, whatever the policy says.")
    passages: Passages = Field(default_factory=list)
    instructions: SystemPrompt | None = Field(default=None, description="Stand after the conversation's system prompt.")
    tools: Annotated[list[ToolInput], Field(max_length=MAX_TOOLS)] = Field(
        default_factory=list, description="A turn in which the model calls one of these ends with `open_calls`."
    )
    tool_choice: ToolChoice | None = Field(
        default=None, description="Among `tools`; what the service offers of its own stays as it is."
    )
    parallel_tool_calls: Flag | None = None
    response_format: ResponseFormat | None = None
    temperature: Temperature | None = None
    top_p: Probability | None = None
    max_tokens: OutputTokens | None = None
    stop: Annotated[list[StopText], Field(max_length=MAX_STOPS)] = Field(default_factory=list)
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    seed: Annotated[Seed, Strict()] | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    expected_last_message_id: UUID | None = None

    @field_validator("content")
    @classmethod
    def _not_blank(cls, value: str | None, info: Any) -> str | None:
        if value is not None and not value.strip() and not info.data.get("parts"):
            raise ValueError("content cannot be empty")
        return value

    def input(self) -> ChatInput:
        """The request as a value of the services."""
        return from_same_fields(
            ChatInput,
            self,
            parts=tuple(part.as_given() for part in self.parts),
            results=tuple(result.input() for result in self.tool_results),
            tools=tuple(tool.spec() for tool in self.tools),
            settings=self._settings(),
            passages=tuple(one.passage() for one in self.passages),
        )

    def _settings(self) -> CallSettings:
        choice = self.tool_choice
        return from_same_fields(
            CallSettings,
            self,
            max_output_tokens=self.max_tokens,
            stop=tuple(self.stop),
            tool_choice=ToolName(name=choice.name) if isinstance(choice, NamedTool) else choice,
            output=self.response_format.output() if self.response_format else None,
        )

"""The bodies of responses, conversations and compacted input, and what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, field_validator, model_validator

from app.core.model.fieldwise import from_same_fields
from app.core.model.model_io import CallSettings, StructuredOutput, ToolSpec
from app.http.fields import MAX_SYSTEM_PROMPT_LENGTH, Metadata
from app.http.openai.content import Given, form_of
from app.http.openai.items import CallItem, InputItem, MessageItem, ResultItem, draft_of
from app.http.openai.resources import DEFAULT_ECHO
from app.http.openai.settings import (
    MAX_TOOLS,
    AllowedTools,
    AnswerSchema,
    ClientFunction,
    Mode,
    Name,
    NamedTool,
    Penalty,
    Share,
    Temperature,
    Tokens,
    chosen_tools,
    offered_name,
    refuse_unsupported,
)

MAX_ITEMS: Final = 10_000
MAX_CREATED_ITEMS: Final = 20
"""The most items that one call may add to a conversation, as in that API."""
OWN_EVENTS: Final = "throughline.events"
"""The word in ``include`` with which a client asks for this service's own events in a stream."""


def checked_items(items: list[Any]) -> list[Any]:
    """The same items. Raises ``ValueError`` if one cannot be stored."""
    for item in items:
        if isinstance(item, MessageItem | CallItem | ResultItem):
            draft_of(item)
    return items


def not_empty(text: str) -> str:
    """The same text. Raises ``ValueError`` if it is empty."""
    if not text.strip():
        raise ValueError("input cannot be empty: leave it out where nothing is said")
    return text


Id = Annotated[str, Field(min_length=1, max_length=100)]
Items = Annotated[list[InputItem], Field(max_length=MAX_ITEMS), AfterValidator(checked_items)]
FewItems = Annotated[list[InputItem], Field(min_length=1, max_length=MAX_CREATED_ITEMS), AfterValidator(checked_items)]
Text = Annotated[str, AfterValidator(not_empty)]
Input = Annotated[Annotated[Text, Tag("text")] | Annotated[Items, Tag("list")], Discriminator(form_of)]


class FunctionTool(ClientFunction):
    """A function that the client runs."""

    type: Literal["function"]

    @property
    def functions(self) -> Iterator[ClientFunction]:
        """The function under the name by which a model is offered it."""
        yield self


class NamespaceTool(Given):
    """Functions that belong together, and that the client runs too, such as those of one MCP server."""

    type: Literal["namespace"]
    name: Name
    description: str | None = None
    tools: Annotated[list[FunctionTool], Field(max_length=MAX_TOOLS)]

    @property
    def functions(self) -> Iterator[ClientFunction]:
        """The functions under the names by which a model is offered them; the first tells what the namespace is."""
        about = self.description
        for tool in self.tools:
            described = "\n\n".join(filter(None, (about, tool.description)))
            yield tool.model_copy(update={"name": offered_name(tool.name, self.name), "description": described})
            about = None


Tool = Annotated[FunctionTool | NamespaceTool, Field(discriminator="type")]


class NamedConversation(Given):
    """A conversation, by its id."""

    id: Id


class ReasoningSettings(Given):
    """How much the model reasons."""

    effort: Annotated[str, Field(max_length=40)] | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    """Whether the model is asked to show its reasoning; the provider decides how long the shown text is."""


class TextFormat(AnswerSchema):
    """The format of the answer."""

    type: Literal["text", "json_object", "json_schema"] = "text"

    @model_validator(mode="after")
    def _has_its_schema(self) -> Self:
        if self.type == "json_schema" and self.schema_ is None:
            raise ValueError("schema is missing")
        return self

    def shown(self) -> dict[str, Any]:
        """The format as a response repeats it."""
        if self.type != "json_schema":
            return {"type": self.type}
        return {
            "type": self.type,
            "name": self.name,
            "description": self.description,
            "schema": self.schema_,
            "strict": self.strict or False,
        }


class TextSettings(Given):
    """Settings of the answer's text."""

    format: TextFormat | None = None
    verbosity: str | None = None


class WithHistory(Given):
    """What a request refers to: its own input, a stored response, or a conversation."""

    input: Input | None = None
    instructions: Annotated[str, Field(max_length=MAX_SYSTEM_PROMPT_LENGTH)] | None = None
    previous_response_id: Id | None = None
    conversation: Id | NamedConversation | None = None

    @model_validator(mode="after")
    def _one_history(self) -> Self:
        if self.conversation is not None and self.previous_response_id is not None:
            raise ValueError("conversation and previous_response_id exclude each other: give one of them")
        return self

    @property
    def items(self) -> list[Any]:
        """The input as items."""
        if isinstance(self.input, str):
            return [MessageItem(role="user", content=self.input)]
        return list(self.input or ())

    @property
    def conversation_name(self) -> str | None:
        """The id of the conversation as it was written."""
        return self.conversation.id if isinstance(self.conversation, NamedConversation) else self.conversation


class Requested(WithHistory):
    """The fields that responses and the count of their input share."""

    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    tools: Annotated[list[Tool], Field(max_length=MAX_TOOLS)] | None = None
    tool_choice: Mode | NamedTool | AllowedTools | None = None
    parallel_tool_calls: bool | None = None
    text: TextSettings | None = None
    reasoning: ReasoningSettings | None = None
    truncation: Literal["auto", "disabled"] | None = None

    @field_validator("tools", mode="before")
    @classmethod
    def _functions_alone(cls, value: Any) -> Any:
        count = 0
        for tool in value if isinstance(value, list) else ():
            kind = tool.get("type") if isinstance(tool, dict) else "function"
            if kind not in ("function", "namespace"):  # not a set, for a list or an object cannot be looked for in one
                raise ValueError(f"type {str(kind)[:64]!r}: only functions, which the client runs, are offered here")
            inner = tool.get("tools") if kind == "namespace" else None
            count += len(inner) if isinstance(inner, list) else 1
        if count > MAX_TOOLS:
            raise ValueError(f"are {count} functions, with those in namespaces: far more than are taken")
        return value


class ResponseRequest(Requested):
    """A response. Fields that are not listed are ignored."""

    stream: bool | None = None
    store: bool | None = None
    metadata: Metadata | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    max_output_tokens: Tokens | None = None
    include: Annotated[list[str], Field(max_length=50)] | None = None
    safety_identifier: Annotated[str, Field(max_length=255)] | None = None
    prompt_cache_key: Annotated[str, Field(max_length=255)] | None = None
    user: Annotated[str, Field(max_length=255)] | None = None
    background: bool | None = None
    max_tool_calls: int | None = None
    top_logprobs: int | None = None
    generate: bool | None = None
    """Over a socket: ``False`` asks for no answer yet."""
    prompt_cache_options: Any = None
    prompt: Any = None
    moderation: Any = None

    def refuse_unsupported(self) -> None:
        """Raises ``InvalidInputError`` for fields that would otherwise be ignored silently."""
        verbosity = self.text.verbosity if self.text else None
        logprobs = "message.output_text.logprobs" in (self.include or ())
        options = self.prompt_cache_options
        warms = isinstance(options, dict) and options.get("prewarm") is True
        refuse_unsupported(
            [
                ("background", bool(self.background), "responses are made while the client waits, or streamed"),
                ("max_tool_calls", self.max_tool_calls is not None, "only the client's functions are called"),
                ("top_logprobs", bool(self.top_logprobs), "log probabilities are not told here"),
                ("generate", self.generate is False, "each request is answered: send it once it is whole"),
                ("prompt_cache_options.prewarm", warms, "each request is answered: send it once it is whole"),
                ("include", logprobs, "log probabilities are not told here"),
                ("prompt", self.prompt is not None, "there are no stored prompts here: use instructions"),
                ("moderation", self.moderation is not None, "nothing is moderated here"),
                ("text.verbosity", verbosity not in {None, "medium"}, "say it in the instructions"),
            ]
        )

    @property
    def stores(self) -> bool:
        """Whether the response has to be stored."""
        return self.store is not False

    @property
    def wants_own_events(self) -> bool:
        """Whether this service's own events are wanted in the stream."""
        return OWN_EVENTS in (self.include or ())

    def settings_and_tools(self) -> tuple[CallSettings, tuple[ToolSpec, ...]]:
        """How the model is called, and the tools that it may call."""
        functions = [function for tool in self.tools or () for function in tool.functions]
        choice, tools = chosen_tools(self.tool_choice, functions)
        settings = from_same_fields(
            CallSettings,
            self,
            tool_choice=choice,
            reasoning_effort=self.reasoning.effort if self.reasoning else None,
            reasoning="asked" if self.reasoning and self.reasoning.summary else None,
            output=self._structured_output(),
            frequency_penalty=self.frequency_penalty or None,
            presence_penalty=self.presence_penalty or None,
        )
        return settings, tools

    def echo(self, model: str) -> dict[str, Any]:
        """The fields in which the response repeats this request, without those that have their default."""
        form = self.text.format if self.text and self.text.format else None
        choice = self.tool_choice
        fields = {name: getattr(self, name, None) for name in DEFAULT_ECHO} | {
            "model": model,
            "tools": [tool.model_dump() for tool in self.tools or ()],
            "tool_choice": choice.model_dump(exclude_none=True) if isinstance(choice, Given) else choice,
            "text": {"format": form.shown()} if form else None,
            "reasoning": self.reasoning.model_dump() if self.reasoning else None,
        }
        return {name: value for name, value in fields.items() if value is not None and value != DEFAULT_ECHO[name]}

    def _structured_output(self) -> StructuredOutput | None:
        form = self.text.format if self.text else None
        return None if form is None or form.type == "text" else form.output()


class CompactedInputRequest(WithHistory):
    """Input to be compacted: given items, a stored response's conversation or, as an extension, a conversation."""

    model: Annotated[str, Field(min_length=1, max_length=200)]

    @model_validator(mode="after")
    def _input_or_conversation(self) -> Self:
        if self.conversation is not None and self.input:
            raise ValueError("give conversation or input, not both: a conversation is compacted as it is stored")
        if self.conversation is None and self.previous_response_id is None and not self.input:
            raise ValueError("give input, previous_response_id or conversation")
        return self


class ConversationRequest(Given):
    """A new conversation."""

    items: Annotated[list[InputItem], Field(max_length=MAX_CREATED_ITEMS), AfterValidator(checked_items)] | None = None
    metadata: Metadata | None = None


class ConversationUpdate(Given):
    """New metadata that replaces a conversation's metadata."""

    metadata: Metadata


class NoBody(Given):
    """An empty body."""


class ItemsRequest(Given):
    """Items to append."""

    items: FewItems

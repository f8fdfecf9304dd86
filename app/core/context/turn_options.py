"""What a client sends for one turn only: a system prompt, tools and settings of its own. None of it is stored."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import to_json

from app.core.context.tools import ANSWER_TOOL_NAME
from app.core.model.errors import FieldError, InvalidInputError
from app.core.model.json_sizes import json_bytes
from app.core.model.model_io import (
    NO_SETTINGS,
    REASONING_EFFORTS,
    CallSettings,
    ModelProfile,
    StructuredOutput,
    ToolName,
    ToolSpec,
)
from app.core.text.patterns import compiled
from app.core.text.token_counts import Estimator, estimate_text

MAX_TOOLS: Final = 128
"""The most tools of a client, as many as OpenAI takes."""
MAX_STOPS: Final = 4
"""The most stop texts, as many as OpenAI takes."""
SCHEMA_BYTES: Final = 65_536
"""The largest JSON schema, in bytes."""
TOOLS_BYTES: Final = 262_144
"""The most bytes of all tools with their descriptions, which are written for the provider at every request."""
SCHEMA_DEPTH: Final = 32
"""The most levels of a JSON schema, which is rewritten for a provider by recursion."""

_NAME: Final = compiled(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOptions:
    """A client's own system prompt, tools and settings for one turn."""

    instructions: str = ""
    """A system prompt for this turn, sent after the conversation's own."""
    tools: tuple[ToolSpec, ...] = ()
    settings: CallSettings = NO_SETTINGS

    @property
    def offered(self) -> tuple[ToolSpec, ...]:
        """The client's tools that the model may call in this turn."""
        return () if self.settings.tool_choice == "none" else self.tools

    @property
    def names(self) -> frozenset[str]:
        """The names of the offered tools."""
        return frozenset(tool.name for tool in self.offered)

    @property
    def must_call(self) -> tuple[str, ...]:
        """The tools of which the model has to call one; empty: it may answer without a call."""
        choice = self.settings.tool_choice
        if isinstance(choice, ToolName):
            return (choice.name,)
        return tuple(tool.name for tool in self.tools) if choice == "required" else ()

    def schema_tokens(self, estimator: Estimator) -> int:
        """How many tokens the schema of a structured output adds to every request."""
        output = self.settings.output
        if output is None or output.schema is None:
            return 0
        return estimate_text(to_json(dict(output.schema)).decode() + output.name + output.description, estimator)


NO_OPTIONS: Final = TurnOptions()


def refuse_unsupported_options(options: TurnOptions, profile: ModelProfile, *, reserved_names: Collection[str]) -> None:
    """Refuse options that no model takes, or that this one does not take.

    ``reserved_names`` are the names of the service's own tools.

    Raises:
        InvalidInputError: Some options are refused; the error lists them by their field in a chat request.
    """
    errors = [*_tool_errors(options.tools, reserved_names), *_setting_errors(options)]
    if not errors:
        refused = profile.refuses(options.settings, options.tools)
        errors = [FieldError(field=name, message=f"{why} (model {profile.name})") for name, why in refused.items()]
    if errors:
        raise InvalidInputError("; ".join(f"{one.field}: {one.message}" for one in errors[:3]), errors=errors)


def _tool_errors(tools: Sequence[ToolSpec], reserved_names: Collection[str]) -> Iterator[FieldError]:
    if len(tools) > MAX_TOOLS:
        yield FieldError(field="tools", message=f"are {len(tools)}, at most {MAX_TOOLS} are taken")
    size = sum(_tool_bytes(tool) for tool in tools[: MAX_TOOLS + 1])
    if size > TOOLS_BYTES:
        yield FieldError(field="tools", message=f"are {size} bytes as JSON, at most {TOOLS_BYTES} are taken")
    earlier: set[str] = set()
    for number, tool in enumerate(tools[:MAX_TOOLS]):
        why = _name_error(tool.name, reserved_names, earlier)
        if why:
            yield FieldError(field=f"tools.{number}.name", message=why)
        earlier.add(tool.name)
        yield from _schema_errors(f"tools.{number}.parameters", tool.parameters)


def _name_error(name: str, reserved_names: Collection[str], earlier: Collection[str]) -> str | None:
    if not _NAME.fullmatch(name):
        return "must be 1 to 64 letters, digits, _ and -"
    if name in reserved_names or name == ANSWER_TOOL_NAME:
        return f"{name} is a tool of the service: give yours another name"
    return f"there are two tools named {name}" if name in earlier else None


def _schema_errors(field: str, schema: Mapping[str, Any]) -> Iterator[FieldError]:
    size = json_bytes(schema)
    if size > SCHEMA_BYTES:
        yield FieldError(field=field, message=f"is {size} bytes as JSON, at most {SCHEMA_BYTES} are taken")
    elif _is_too_deep(schema):
        yield FieldError(field=field, message=f"is nested deeper than {SCHEMA_DEPTH} levels")
    elif schema.get("type", "object") != "object":
        yield FieldError(field=field, message="must be the JSON schema of an object")


def _setting_errors(options: TurnOptions) -> Iterator[FieldError]:
    settings = options.settings
    choice = settings.tool_choice
    if isinstance(choice, ToolName) and choice.name not in {tool.name for tool in options.tools}:
        yield FieldError(field="tool_choice", message="names no tool of this request")
    if choice == "required" and not options.tools:
        yield FieldError(field="tool_choice", message="requires a call, and this request brings no tools")
    if settings.reasoning_effort not in {None, *REASONING_EFFORTS}:
        allowed = ", ".join(REASONING_EFFORTS)
        yield FieldError(field="reasoning_effort", message=f"must be one of {allowed}")
    if len(settings.stop) > MAX_STOPS or "" in settings.stop:
        yield FieldError(field="stop", message=f"must be at most {MAX_STOPS} texts, none of them empty")
    if settings.output is not None:
        yield from _output_errors(settings.output)


def _output_errors(output: StructuredOutput) -> Iterator[FieldError]:
    if not _NAME.fullmatch(output.name):
        yield FieldError(field="response_format.name", message="must be 1 to 64 letters, digits, _ and -")
    if output.schema is not None:
        yield from _schema_errors("response_format.schema", output.schema)
    elif output.strict:
        yield FieldError(field="response_format.strict", message="needs a schema")


def _is_too_deep(schema: Any) -> bool:
    # There is no recursion here, since a value may have any number of levels.
    level = [schema]
    for _ in range(SCHEMA_DEPTH):
        level = [item for value in level for item in _items_inside(value)]
        if not level:
            return False
    return True


def _items_inside(value: Any) -> Collection[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list | tuple) else ()


def _tool_bytes(tool: ToolSpec) -> int:
    return len(tool.name) + len(tool.description.encode("utf-8", "replace")) + json_bytes(tool.parameters)

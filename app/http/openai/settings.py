"""Reads how a client wants the model called, in the terms of chat completions and responses, or refuses it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from app.core.model.errors import FieldError, InvalidInputError
from app.core.model.model_io import StructuredOutput, ToolChoice, ToolName, ToolSpec
from app.http.openai.content import Given

Temperature = Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Penalty = Annotated[float, Field(ge=-2, le=2, allow_inf_nan=False)]
Tokens = Annotated[int, Field(ge=1, le=100_000_000)]
MAX_NAME_LENGTH: Final = 64
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH)]
MAX_TOOLS = 256
"""More tools than any model takes. Errors in fewer tools are reported one by one."""


class ClientFunction(Given):
    """A function of a client."""

    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None

    def spec(self) -> ToolSpec:
        """The tool as it is offered to a model."""
        parameters = self.parameters or {"type": "object", "properties": {}}
        return ToolSpec(
            name=self.name, description=self.description or "", parameters=parameters, strict=self.strict or False
        )


def offered_name(name: str, namespace: str | None) -> str:
    """The name under which a model is offered a function: models know no namespaces.

    If the two names together are too long, a hash stands for their end.
    """
    joined = name if namespace is None else f"{namespace}__{name}"
    if len(joined) <= MAX_NAME_LENGTH:
        return joined
    digest = hashlib.sha256(joined.encode()).hexdigest()[:8]
    return f"{joined[: MAX_NAME_LENGTH - len(digest) - 1]}_{digest}"


class NamedTool(Given):
    """A tool, by its name: the one that a model is offered, or that of a function beside its namespace's."""

    type: Literal["function"]
    name: Name
    namespace: Name | None = None

    @property
    def offered_name(self) -> str:
        """The name under which a model is offered it."""
        return offered_name(self.name, self.namespace)


class AllowedTools(Given):
    """Some of the tools, by name."""

    type: Literal["allowed_tools"]
    mode: Literal["none", "auto", "required"] = "auto"
    tools: Annotated[list[NamedTool], Field(max_length=MAX_TOOLS)]


Mode = Literal["none", "auto", "required"]


class AnswerSchema(Given):
    """The schema of a structured answer."""

    name: Name = "output"
    description: str | None = None
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: bool | None = None

    def output(self) -> StructuredOutput:
        """The schema as a value of the core."""
        return StructuredOutput(
            schema=self.schema_, name=self.name, description=self.description or "", strict=self.strict
        )


def chosen_tools(
    choice: Mode | NamedTool | AllowedTools | None, tools: Sequence[ClientFunction]
) -> tuple[ToolChoice | None, tuple[ToolSpec, ...]]:
    """The choice (``None`` if the model chooses), and the tools that may be called.

    Raises:
        InvalidInputError: The allowed tools name one that the request does not bring.
    """
    offered = tuple(tool.spec() for tool in tools)
    match choice:
        case NamedTool() as tool:
            return ToolName(name=tool.offered_name), offered
        case AllowedTools(mode=mode, tools=allowed):
            names = {tool.offered_name for tool in allowed}
            if missing := names - {tool.name for tool in offered}:
                raise InvalidInputError.of(
                    "tool_choice", f"names no tool of this request: {', '.join(sorted(missing))}"
                )
            return None if mode == "auto" else mode, tuple(tool for tool in offered if tool.name in names)
        case mode:
            return None if mode == "auto" else mode, offered


def refuse_unsupported(parameters: Iterable[tuple[str, bool, str]]) -> None:
    """Refuse parameters that would otherwise be ignored silently.

    Args:
        parameters: for each parameter its name, whether it asks for something unsupported, and why.

    Raises:
        InvalidInputError: One of them does.
    """
    wrong = [FieldError(field=name, message=why) for name, asks, why in parameters if asks]
    if wrong:
        detail = "; ".join(f"{one.field}: {one.message}" for one in wrong)
        raise InvalidInputError(detail, errors=wrong, code="unsupported_parameter")

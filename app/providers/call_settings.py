"""Turns a client's call settings into those of pydantic-ai, and names those that a model cannot take.

pydantic-ai silently leaves out most settings that a model does not support. So these are refused by name, before
anything is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.profiles.openai import SAMPLING_PARAMS
from pydantic_ai.settings import ModelSettings, ThinkingEffort
from pydantic_ai.tools import ToolDefinition

from app.core.context.tools import ANSWER_TOOL_NAME
from app.core.model.model_io import CallSettings, ChatRequest, StructuredOutput, ToolName, ToolSpec

LIBRARY_NAMES: Final[Mapping[str, str]] = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_output_tokens": "max_tokens",
    "stop": "stop_sequences",
    "parallel_tool_calls": "parallel_tool_calls",
    "seed": "seed",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
}
"""pydantic-ai's names of settings that are sent to a provider unchanged."""

REQUEST_FIELDS: Final[Mapping[str, str]] = {"max_output_tokens": "max_tokens"}
"""Names of settings in a chat request that differ from the service's own."""

_NEUTRAL: Final[Mapping[str, float]] = {"temperature": 1.0, "top_p": 1.0}
"""What a model that takes no sampling settings uses by itself. Clients set it because it takes no other value."""

NO_REASONING: Final = "none"
"""The effort that means no reasoning."""

_ANY_OBJECT: Final[Mapping[str, Any]] = {"type": "object", "additionalProperties": True}
_ANSWER_TOOL_DESCRIPTION: Final = "Gives the answer. Call it once everything is known, in place of writing the answer."
_MISTRAL: Final = "mistral"
_REASON_FULLY: Final = frozenset({"deepseek", "zai"})
"""The kinds of models on Bedrock that, like Mistral's, reason fully at any depth."""
_ANTHROPIC_SAMPLING: Final = frozenset({"temperature", "top_p"})


def chosen_settings(model: Model, settings: CallSettings, must_call: Sequence[str]) -> ModelSettings:
    """The settings that a client chose, and no others."""
    unused = _refused_sampling_settings(model.profile, settings)
    chosen = {
        theirs: getattr(settings, ours)
        for ours, theirs in LIBRARY_NAMES.items()
        if not (theirs in unused and _is_neutral(ours, settings))
    }
    library_settings: dict[str, Any] = {
        name: value for name, value in chosen.items() if value is not None and value != ()
    }
    if "stop_sequences" in library_settings:
        library_settings["stop_sequences"] = list(library_settings["stop_sequences"])
    if settings.reasoning_effort is not None:
        library_settings["thinking"] = _thinking(settings.reasoning_effort)
    if must_call:
        library_settings["tool_choice"] = list(must_call)
    return cast("ModelSettings", library_settings)


def least_reasoning(model: Model) -> ThinkingEffort | bool:
    """The reasoning that leaves room for the answer within an output limit: little, or none where little is a lot."""
    profile: Mapping[str, Any] = model.profile
    is_all_or_none = model.system == _MISTRAL or profile.get("bedrock_thinking_variant") in _REASON_FULLY
    return False if is_all_or_none else "low"


def without_lost_thoughts(model: Model, settings: ModelSettings, thread: Sequence[ModelMessage]) -> ModelSettings:
    """The settings without reasoning, if the model would refuse to go on from calls without what it thought before.

    Claude does so before version 4.6, which reasons within a budget. Thoughts are not kept, so such a model reasons
    until its first call.
    """
    profile: Mapping[str, Any] = model.profile
    last = next((message for message in reversed(thread) if isinstance(message, ModelResponse)), None)
    called = last is not None and any(isinstance(part, ToolCallPart) for part in last.parts)
    if not called or profile.get("anthropic_supports_adaptive_thinking", True):
        return settings
    rests = settings.copy()
    rests.pop("thinking", None)
    return rests


def parameters_of(model: Model, request: ChatRequest) -> ModelRequestParameters:
    """The tools that the model may call, and the form of its answer.

    Code checks the arguments of calls, so that no provider has to rewrite a tool's schema.
    """
    tools = [definition_of(tool) for tool in request.tools]
    output = request.settings.output
    if output is None or request.must_call:
        return ModelRequestParameters(function_tools=tools)
    wanted = OutputObjectDefinition(
        json_schema=dict(output.schema or _ANY_OBJECT),
        name=output.name,
        description=output.description or None,
        strict=output.strict,
    )
    if output.schema is None:
        return ModelRequestParameters(function_tools=tools, output_mode="prompted", output_object=wanted)
    if answers_by_call(model, request):
        answer = ToolDefinition(
            name=ANSWER_TOOL_NAME,
            description=output.description or _ANSWER_TOOL_DESCRIPTION,
            parameters_json_schema=dict(output.schema),
            strict=output.strict,
            kind="output",
        )
        return ModelRequestParameters(
            function_tools=tools, output_mode="tool", output_tools=[answer], allow_text_output=False
        )
    if _is_native(model):
        return ModelRequestParameters(function_tools=tools, output_mode="native", output_object=wanted)
    return ModelRequestParameters(function_tools=tools, output_mode="prompted", output_object=wanted)


def answers_by_call(model: Model, request: ChatRequest) -> bool:
    """Whether the model gives its structured answer as the arguments of a call, since it follows no schema otherwise.

    Some models follow a schema only if there are no tools, and some follow only the schemas of tools.
    """
    output = request.settings.output
    if output is None or output.schema is None or request.must_call:
        return False
    if not _is_native(model):
        return _calls_tools(model)
    return bool(request.tools) and not _takes_schema_with_tools(model)


def refused_fields(model: Model, settings: CallSettings, tools: Sequence[ToolSpec]) -> dict[str, str]:
    """Fields of a chat request that this model cannot take, each with the reason."""
    wrong = {REQUEST_FIELDS.get(name, name): why for name, why in _refused_settings(model, settings)}
    if tools and not _calls_tools(model):
        wrong["tools"] = "this model calls no tools"
    for number, tool in enumerate(tools):
        if not _takes_schemas(model, ModelRequestParameters(function_tools=[definition_of(tool)])):
            wrong[f"tools.{number}.parameters"] = "is no JSON schema that can be sent"
    output = settings.output
    if output is not None and output.schema is not None:
        shown = OutputObjectDefinition(json_schema=dict(output.schema), name=output.name, strict=output.strict)
        if not _takes_schemas(model, ModelRequestParameters(output_mode="native", output_object=shown)):
            wrong["response_format.schema"] = "is no JSON schema that can be sent"
    return wrong


def _refused_settings(model: Model, settings: CallSettings) -> Iterator[tuple[str, str]]:
    given = [ours for ours in LIBRARY_NAMES if getattr(settings, ours) not in (None, ())]
    profile: Mapping[str, Any] = model.profile
    ignored = model.unsupported_settings | set(profile.get("openai_unsupported_model_settings", ()))
    unused = _refused_sampling_settings(profile, settings)
    for name in given:
        if LIBRARY_NAMES[name] in ignored and not (name == "parallel_tool_calls" and settings.parallel_tool_calls):
            yield name, "this model does not take it"
        elif LIBRARY_NAMES[name] in unused and not _is_neutral(name, settings):
            yield name, "this model does not take it while it reasons"
    yield from _refused_reasoning(profile, settings.reasoning_effort)
    yield from _refused_choice(profile, settings)
    if settings.output is not None:
        yield from _refused_output(model, settings.output)


def _refused_reasoning(profile: Mapping[str, Any], effort: str | None) -> Iterator[tuple[str, str]]:
    if effort is None:
        return
    always = profile.get("thinking_always_enabled", False)
    efforts = profile.get("openai_reasoning_efforts")
    if not (profile.get("supports_thinking", False) or always):
        if effort != NO_REASONING:
            yield "reasoning_effort", "this model does not reason"
    elif efforts is not None and effort not in efforts:
        yield "reasoning_effort", f"must be one of {', '.join(sorted(efforts))}"
    elif effort == NO_REASONING and always:
        yield "reasoning_effort", "this model always reasons"


def _refused_choice(profile: Mapping[str, Any], settings: CallSettings) -> Iterator[tuple[str, str]]:
    choice = settings.tool_choice
    if not (isinstance(choice, ToolName) or choice == "required"):
        return
    if not profile.get("supports_forced_tool_choice", True):
        yield "tool_choice", "this model cannot be made to call a tool"
    elif _is_reasoning(profile, settings) and not profile.get("supports_forced_tool_choice_with_thinking", True):
        yield "tool_choice", "this model cannot be made to call a tool while it reasons"


def _refused_output(model: Model, output: StructuredOutput) -> Iterator[tuple[str, str]]:
    if output.strict and not (_is_native(model) or _calls_tools(model)):
        yield "response_format.strict", "this model cannot be held to a schema"


def _refused_sampling_settings(profile: Mapping[str, Any], settings: CallSettings) -> frozenset[str]:
    if profile.get("anthropic_disallows_sampling_settings", False):
        return _ANTHROPIC_SAMPLING
    if not profile.get("openai_supports_reasoning", False):
        return frozenset()
    efforts = profile.get("openai_reasoning_efforts")
    may_rest = (
        NO_REASONING in efforts if efforts is not None else profile.get("openai_supports_reasoning_effort_none", False)
    )
    return frozenset() if may_rest and not _is_reasoning(profile, settings) else frozenset(SAMPLING_PARAMS)


def _is_neutral(name: str, settings: CallSettings) -> bool:
    return name in _NEUTRAL and getattr(settings, name) == _NEUTRAL[name]


def _is_reasoning(profile: Mapping[str, Any], settings: CallSettings) -> bool:
    if settings.reasoning_effort is not None:
        return settings.reasoning_effort != NO_REASONING or bool(profile.get("thinking_always_enabled", False))
    enabled = profile.get("thinking_enabled_by_default", False) or profile.get("thinking_always_enabled", False)
    return bool(enabled)


def _thinking(effort: str) -> ThinkingEffort | bool:
    return False if effort == NO_REASONING else cast("ThinkingEffort", effort)


def definition_of(tool: ToolSpec) -> ToolDefinition:
    """A tool as pydantic-ai takes it."""
    parameters = {"type": "object", "properties": {}, **tool.parameters}  # an object, even if the tool does not say so
    # ``None``: the model is held to the schema if that needs no other one. ``True`` would make each property required.
    strict = None if tool.strict else False
    return ToolDefinition(
        name=tool.name, description=tool.description, parameters_json_schema=parameters, strict=strict
    )


def _takes_schemas(model: Model, parameters: ModelRequestParameters) -> bool:
    # Tried before the turn begins, since later it would fail in the middle of the turn.
    try:
        model.customize_request_parameters(parameters)
    except (UserError, RecursionError, TypeError, ValueError, AttributeError, KeyError):
        return False
    return True


def _is_native(model: Model) -> bool:
    return bool(model.profile.get("supports_json_schema_output", False))


def _takes_schema_with_tools(model: Model) -> bool:
    # Gemini does so since version 3; of other providers this is unknown.
    profile: Mapping[str, Any] = model.profile
    return bool(profile.get("google_supports_tool_combination", True))


def _calls_tools(model: Model) -> bool:
    return bool(model.profile.get("supports_tools", True))

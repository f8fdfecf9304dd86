"""What a client sends with a turn: refusing it takes no longer than reading it, whatever it contains."""

from __future__ import annotations

from typing import Any

import pytest

from app.core.context.turn_options import SCHEMA_DEPTH, TurnOptions, refuse_unsupported_options
from app.core.model.errors import InvalidInputError
from app.core.model.model_io import CallSettings, ChatRequest, ModelProfile, StructuredOutput, ToolName, ToolSpec
from app.providers.offline import cut_reply, required_call

PROFILE = ModelProfile(name="fake", input_limit=1_000, output_limit=100)
REPLY = "The harbour opens at seven. Nobody waits there. END of it."


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels - 1):
        schema = {"a": schema}
    return {"type": "object", **schema}


def wrong(**options: Any) -> list[str]:
    try:
        refuse_unsupported_options(TurnOptions(**options), PROFILE, reserved_names={"ours"})
    except InvalidInputError as error:
        return [one.field for one in error.errors]
    return []


def tools(*names: str, **fields: Any) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(**{"name": name, "description": "", "parameters": {}, **fields}) for name in names)


def test_depth_is_measured_without_recursion() -> None:
    assert wrong(tools=tools("a", parameters=nested(SCHEMA_DEPTH))) == []
    assert wrong(tools=tools("a", parameters=nested(SCHEMA_DEPTH + 1))) == ["tools.0.parameters"]
    output = StructuredOutput(schema={"type": "object", "x": [[[nested(SCHEMA_DEPTH)]]]})
    assert wrong(settings=CallSettings(output=output)) == ["response_format.schema"]


def test_every_wrong_field_is_named_at_once() -> None:
    settings = CallSettings(stop=("a",) * 5, output=StructuredOutput(name="no name", strict=True))
    found = wrong(tools=tools("ours", "a", "a", "structured_answer"), settings=settings)
    assert found == [
        "tools.0.name",
        "tools.2.name",
        "tools.3.name",
        "stop",
        "response_format.name",
        "response_format.strict",
    ]


def test_names_that_agent_frameworks_give_their_tools_are_free() -> None:
    assert wrong(tools=tools("final_answer", "final_result", "finish", "submit", "think")) == []


def test_a_choice_names_a_tool_of_the_client() -> None:
    for choice in (ToolName(name="ours"), "required"):
        assert wrong(settings=CallSettings(tool_choice=choice)) == ["tool_choice"]
        assert wrong(tools=tools("ours2"), settings=CallSettings(tool_choice=choice)) == (
            ["tool_choice"] if isinstance(choice, ToolName) else []
        )
    assert wrong(tools=tools("a"), settings=CallSettings(tool_choice=ToolName(name="a"))) == []
    assert wrong(settings=CallSettings(reasoning_effort="hard")) == ["reasoning_effort"]
    assert wrong(tools=tools("a", parameters={"type": "array"})) == ["tools.0.parameters"]


def test_the_model_is_asked_only_about_what_is_sound() -> None:
    asked: list[CallSettings] = []

    def refuses(settings: CallSettings, _tools: Any) -> dict[str, str]:
        asked.append(settings)
        return {"seed": "it has none"}

    picky = ModelProfile(name="picky", input_limit=1, output_limit=1, refuses=refuses)
    with pytest.raises(InvalidInputError, match="seed: it has none \\(model picky\\)"):
        refuse_unsupported_options(TurnOptions(settings=CallSettings(seed=1)), picky, reserved_names=())
    with pytest.raises(InvalidInputError, match="stop"):
        refuse_unsupported_options(TurnOptions(settings=CallSettings(stop=("",))), picky, reserved_names=())
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("settings", "reply", "reason"),
    [
        (CallSettings(), REPLY, "stop"),
        (CallSettings(stop=("nowhere", "END", "of it")), REPLY.partition("END")[0], "stop"),
        (CallSettings(max_output_tokens=1_000), REPLY, "stop"),
        (CallSettings(max_output_tokens=6), "The harbour opens at ", "length"),
        (CallSettings(max_output_tokens=1), "The ", "length"),
    ],
)
def test_the_offline_reply_ends_where_its_client_wants(settings: CallSettings, reply: str, reason: str) -> None:
    assert cut_reply(REPLY, settings) == (reply, reason)


@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [
        ({}, {}),
        ({"properties": {"a": {"type": "string"}}}, {}),
        (
            {"required": ["a", "b", "c"], "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "boolean"}}},
            {"a": "x", "b": False, "c": ""},
        ),
        ({"required": ["a", 7], "properties": {"a": {"type": ["array", "null"]}}}, {"a": ""}),
        ({"required": "a", "properties": ["a"]}, {}),
    ],
)
def test_a_call_made_by_schema_has_what_is_required(parameters: dict[str, Any], arguments: dict[str, Any]) -> None:
    request = ChatRequest(messages=(), tools=tools("other", "b", parameters=parameters), must_call=("b",))
    made = required_call(request)
    assert (made.name, made.arguments) == ("b", arguments)

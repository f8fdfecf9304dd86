"""A client's settings as each provider gets them, and those that are refused because a model cannot take them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.profiles.anthropic import anthropic_model_profile
from pydantic_ai.profiles.google import google_model_profile

from app.core.context.turn_options import TurnOptions, refuse_unsupported_options
from app.core.model.errors import InvalidInputError
from app.core.model.model_io import (
    CallSettings,
    ChatRequest,
    ContextMessage,
    StepFinish,
    StructuredOutput,
    SummaryRequest,
    ToolCall,
    ToolName,
    ToolSpec,
)
from app.core.model.schemas.session import SESSION
from app.providers.keys import Keys
from app.providers.loop import ProviderLoop
from app.providers.profiles import profile_of
from app.providers.provider_models import ProviderChat, ProviderModel, ProviderSummarizer
from app.providers.registry import ModelRegistry
from tests.gemini_server import Gemini, running_gemini, serving
from tests.integration.test_models import OpenAIServer, said, talk
from tests.openai_server import OpenAI, running_openai

GEMINI_3, GEMINI_2 = "google:gemini-3-flash-preview", "google:gemini-2.5-flash"
GPT_5, GPT_4 = "openai-responses:gpt-5", "openai-responses:gpt-4o"
LLAMA = "openai:own-llama"
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
OWN = ToolSpec(name="search", description="Finds.", parameters={"type": "object", "properties": {}})
THEIRS = ToolSpec(name="weather", description="Tells.", parameters={"type": "object", "properties": {}})
ASKED = (ContextMessage(role="system", content="Be kind."), ContextMessage(role="user", content="Hello", seq=1))
CITY = StructuredOutput(schema=SCHEMA, name="place", strict=True)


@pytest.fixture(scope="module")
def gemini() -> Iterator[Gemini]:
    with running_gemini() as server:
        yield server


@pytest.fixture(scope="module")
def openai() -> Iterator[OpenAI]:
    with running_openai() as server:
        yield server


@pytest.fixture(scope="module")
def llama() -> Iterator[OpenAIServer]:
    server = OpenAIServer()
    with serving(server.app()) as url:
        server.url = f"{url}/v1"
        yield server


@pytest.fixture
async def google(gemini: Gemini) -> AsyncIterator[ModelRegistry]:
    gemini.reset()
    registry = ModelRegistry(keys=Keys(google_api_key="key", google_base_url=gemini.url))
    yield registry
    await registry.close()


@pytest.fixture
async def responses(openai: OpenAI) -> AsyncIterator[ModelRegistry]:
    openai.reset()
    registry = ModelRegistry(keys=Keys(openai_api_key="key", openai_base_url=openai.url))
    yield registry
    await registry.close()


async def step(registry: ModelRegistry, model: str, settings: CallSettings, **fields: Any) -> list[Any]:
    request = ChatRequest(messages=ASKED, settings=settings, **fields)
    return [event async for event in registry.chat(model).step(request)]


class TestOnTheWire:
    async def test_of_gemini(self, google: ModelRegistry, gemini: Gemini) -> None:
        settings = CallSettings(
            temperature=0.0,
            top_p=0.5,
            max_output_tokens=77,
            stop=("END",),
            seed=7,
            frequency_penalty=0.5,
            presence_penalty=-0.5,
            reasoning_effort="high",
        )
        await step(google, GEMINI_3, settings, tools=(OWN, THEIRS), must_call=("weather",))
        body = gemini.requests("chat")[-1]["body"]
        config = body["generationConfig"]
        sent = {name: config[name] for name in ("temperature", "topP", "maxOutputTokens", "stopSequences", "seed")}
        assert sent == {"temperature": 0.0, "topP": 0.5, "maxOutputTokens": 77, "stopSequences": ["END"], "seed": 7}
        assert (config["frequencyPenalty"], config["presencePenalty"]) == (0.5, -0.5)
        assert "high" in str(config["thinkingConfig"]).lower()
        assert body["toolConfig"]["functionCallingConfig"] == {"mode": "ANY", "allowedFunctionNames": ["weather"]}

    async def test_of_responses(self, responses: ModelRegistry, openai: OpenAI) -> None:
        settings = CallSettings(temperature=0.0, top_p=0.5, max_output_tokens=77, parallel_tool_calls=False)
        await step(responses, GPT_4, settings, tools=(OWN, THEIRS), must_call=("weather",))
        body = openai.last.body
        assert (body["temperature"], body["top_p"], body["max_output_tokens"]) == (0.0, 0.5, 77)
        assert body["parallel_tool_calls"] is False
        assert body["tool_choice"] == {"type": "function", "name": "weather"}
        assert [tool["strict"] for tool in body["tools"]] == [False, False]
        await step(responses, GPT_5, CallSettings(reasoning_effort="low", temperature=1.0, top_p=1.0))
        assert openai.last.body["reasoning"]["effort"] == "low"
        assert not {"temperature", "top_p"} & openai.last.body.keys()

    async def test_a_tool_that_is_held_to_its_schema(self, responses: ModelRegistry, openai: OpenAI) -> None:
        parameters = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
        whole = ToolSpec(name="whole", description="", parameters=parameters, strict=True)
        optional = {**parameters, "required": []}
        loose = replace(whole, name="loose", parameters=optional)
        await step(
            responses, GPT_4, CallSettings(), tools=(OWN, replace(whole, name="free", strict=False), whole, loose)
        )
        sent = openai.last.body["tools"]
        assert [tool["strict"] for tool in sent] == [False, False, True, False]
        assert sent[-1]["parameters"]["required"] == [], "control: no schema is made stricter than it is"

    async def test_of_chat_completions(self, llama: OpenAIServer) -> None:
        registry = ModelRegistry(keys=Keys(openai_base_url=llama.url))
        settings = CallSettings(
            temperature=0.0,
            max_output_tokens=77,
            stop=("END",),
            seed=7,
            frequency_penalty=0.5,
            presence_penalty=-0.5,
            parallel_tool_calls=True,
            output=CITY,
        )
        await step(registry, LLAMA, settings, tools=(OWN, THEIRS))
        body = llama.requests[-1]
        assert (body["temperature"], body["stop"], body["seed"]) == (0.0, ["END"], 7)
        assert body.get("max_tokens", body.get("max_completion_tokens")) == 77
        assert (body["frequency_penalty"], body["presence_penalty"], body["parallel_tool_calls"]) == (0.5, -0.5, True)
        assert body["response_format"]["type"] == "json_schema"
        assert body["response_format"]["json_schema"]["name"] == "place"
        assert body["tool_choice"] == "auto", "beside a form of the answer tools stay a choice"
        await step(registry, LLAMA, CallSettings(), tools=(OWN, THEIRS), must_call=("search", "weather"))
        assert llama.requests[-1]["tool_choice"] == "required"
        await registry.close()

    async def test_nothing_goes_along_where_nothing_is_chosen(self, google: ModelRegistry, gemini: Gemini) -> None:
        await step(google, GEMINI_3, CallSettings())
        config = gemini.requests("chat")[-1]["body"]["generationConfig"]
        assert set(config) <= {"responseModalities"}


CALLED: tuple[ContextMessage, ...] = (
    *ASKED,
    ContextMessage(
        role="assistant",
        content="",
        parts=({"type": "tool_call", "id": "c", "name": "weather", "arguments": {}},),
        seq=2,
    ),
    ContextMessage(
        role="tool", content="", parts=({"type": "tool_result", "tool_call_id": "c", "content": "rain"},), seq=3
    ),
)
REPLIED = (*CALLED, ContextMessage(role="assistant", content="Rain.", seq=4))


@pytest.mark.parametrize(
    ("name", "context", "effort"),
    [
        ("claude-haiku-4-5", ASKED, "high"),
        ("claude-haiku-4-5", CALLED, None),
        ("claude-haiku-4-5", (*CALLED, replace(ASKED[-1], seq=4)), None),
        ("claude-haiku-4-5", (*REPLIED, replace(ASKED[-1], seq=5)), "high"),
        ("claude-opus-4-8", CALLED, "high"),
        ("gemini-3-flash-preview", CALLED, "high"),
    ],
)
async def test_a_model_goes_on_from_calls_without_lost_thoughts(
    name: str, context: tuple[ContextMessage, ...], effort: str | None
) -> None:
    thought: list[object] = []

    async def answer(_: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        thought.append(info.model_request_parameters.thinking)
        yield "Hi."

    found = anthropic_model_profile(name) if name.startswith("claude") else google_model_profile(name)
    model = FunctionModel(stream_function=answer, profile=found)
    provided = ProviderModel(
        model=model,
        profile=profile_of(f"some:{name}", bundled=None, override=None),
        takes_media=lambda _: False,
        loop=ProviderLoop(),
    )
    request = ChatRequest(messages=context, tools=(THEIRS,), settings=CallSettings(reasoning_effort="high"))
    events = [event async for event in ProviderChat(provider_model=provided, timeout=5.0).step(request)]
    await provided.loop.close()
    assert said(events) == "Hi."
    assert thought == [effort]


@pytest.mark.parametrize(
    ("system", "profile", "effort"),
    [
        ("google", {"supports_thinking": True}, "low"),
        ("mistral", {"supports_thinking": True}, False),
        ("bedrock", {"supports_thinking": True, "bedrock_thinking_variant": "zai"}, False),
        ("bedrock", {"supports_thinking": True, "bedrock_thinking_variant": "anthropic"}, "low"),
    ],
)
async def test_the_reasoning_of_a_summary_leaves_room_for_it(
    system: str, profile: Any, effort: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library knows models that reason fully at any depth but none."""
    seen: list[object] = []

    def answer(_messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(info.model_request_parameters.thinking)
        return ModelResponse(parts=[TextPart("{}")])

    model = FunctionModel(answer, profile=profile)
    monkeypatch.setattr(FunctionModel, "system", system)
    loop = ProviderLoop()
    limits = profile_of("x:y", bundled=None, override=None)
    provided = ProviderModel(model=model, profile=limits, takes_media=bool, loop=loop)
    request = SummaryRequest(schema=SESSION, messages=talk(("user", "Hello")))
    await ProviderSummarizer(provider_model=provided, timeout=10).ask(request)
    await loop.close()
    assert seen == [effort]


class TestAStructuredAnswer:
    async def test_is_constrained_beside_tools_where_the_model_can(
        self, google: ModelRegistry, gemini: Gemini, responses: ModelRegistry, openai: OpenAI
    ) -> None:
        gemini.script("chat", {"name": "text", "text": '{"city":"Rome"}'})
        events = await step(google, GEMINI_3, CallSettings(output=CITY), tools=(OWN,))
        body = gemini.requests("chat")[-1]["body"]
        assert body["generationConfig"]["responseMimeType"] == "application/json"
        assert body["generationConfig"]["responseJsonSchema"]["required"] == ["city"]
        assert body["toolConfig"]["functionCallingConfig"]["mode"] == "AUTO"
        assert said(events) == '{"city":"Rome"}'

        openai.script('{"city":"Rome"}')
        await step(responses, GPT_5, CallSettings(output=CITY), tools=(OWN,))
        form = openai.last.body["text"]["format"]
        assert (form["type"], form["name"], form["strict"]) == ("json_schema", "place", True)
        assert openai.last.body["tool_choice"] == "auto"

    async def test_is_given_by_a_call_where_it_cannot_stand_beside_tools(
        self, google: ModelRegistry, gemini: Gemini
    ) -> None:
        answer = {"name": "structured_answer", "args": {"city": "Rome"}}
        own = {"name": "search", "args": {}}
        gemini.script("chat", {"name": "calls", "text": "Well:", "calls": [answer]})
        events = await step(google, GEMINI_2, CallSettings(output=CITY), tools=(OWN,))
        body = gemini.requests("chat")[-1]["body"]
        declared = [one["name"] for tool in body["tools"] for one in tool["functionDeclarations"]]
        assert declared == ["search", "structured_answer"]
        assert body["toolConfig"]["functionCallingConfig"]["mode"] == "ANY"
        assert json.loads(said(events)) == {"city": "Rome"}
        assert isinstance(events[-1], StepFinish)
        assert events[-1].reason == "stop"

        gemini.script("chat", {"name": "calls", "calls": [own, answer]})
        events = await step(google, GEMINI_2, CallSettings(output=CITY), tools=(OWN,))
        assert [event.name for event in events if isinstance(event, ToolCall)] == ["search"]
        assert (said(events), events[-1].reason) == ("", "tool_call")

        gemini.script("chat", {"name": "text", "text": '{"city":"Rome"}'})
        await step(google, GEMINI_2, CallSettings(output=CITY))
        config = gemini.requests("chat")[-1]["body"]["generationConfig"]
        assert config["responseMimeType"] == "application/json", "control: without tools it is constrained"

    async def test_may_be_any_object(self, responses: ModelRegistry, openai: OpenAI) -> None:
        openai.script("{}")
        await step(responses, GPT_5, CallSettings(output=StructuredOutput()))
        assert openai.last.body["text"]["format"] == {"type": "json_object"}
        shown = " ".join(openai.last.texts)
        assert '"additionalProperties": true' in shown, "with false it is told to write an empty object"


REFUSED: tuple[tuple[str, CallSettings, list[str]], ...] = (
    (GEMINI_3, CallSettings(parallel_tool_calls=False), ["parallel_tool_calls"]),
    (GEMINI_3, CallSettings(parallel_tool_calls=True, seed=1, stop=("x",)), []),
    ("google:gemini-2.0-flash", CallSettings(reasoning_effort="low"), ["reasoning_effort"]),
    (GPT_4, CallSettings(seed=1, stop=("x",), frequency_penalty=1.0), ["stop", "seed", "frequency_penalty"]),
    (GPT_5, CallSettings(temperature=0.5, top_p=0.5), ["temperature", "top_p"]),
    (GPT_5, CallSettings(reasoning_effort="none"), ["reasoning_effort"]),
    ("openai-responses:gpt-5.2", CallSettings(temperature=0.5), []),
    ("openai-responses:gpt-5.2", CallSettings(temperature=0.5, reasoning_effort="low"), ["temperature"]),
    (GPT_5, CallSettings(temperature=1.0, top_p=1.0), []),
    ("openai:o3", CallSettings(reasoning_effort="minimal"), ["reasoning_effort"]),
    ("offline", CallSettings(output=StructuredOutput()), ["response_format"]),
    ("offline", CallSettings(temperature=0.5, seed=1, tool_choice=ToolName(name="weather")), []),
)
"""A model, settings, and the fields of them that the model cannot take."""


class TestRefusals:
    async def test_name_the_field_and_the_model(self, gemini: Gemini, openai: OpenAI) -> None:
        registry = ModelRegistry(
            keys=Keys(
                google_api_key="key", google_base_url=gemini.url, openai_api_key="key", openai_base_url=openai.url
            )
        )
        found = [refused(registry, model, TurnOptions(tools=(THEIRS,), settings=one)) for model, one, _ in REFUSED]
        await registry.close()
        assert [[field for field, _ in each] for each in found] == [fields for _, _, fields in REFUSED]
        assert all(model in why for each, (model, _, _) in zip(found, REFUSED, strict=True) for _, why in each)

    async def test_of_schemas_that_no_provider_could_be_sent(self, google: ModelRegistry) -> None:
        broken = ToolSpec(name="x", description="", parameters={"type": "object", "properties": ["a"]})
        output = StructuredOutput(schema={"type": "object", "properties": {"a": 7}})
        options = TurnOptions(tools=(THEIRS, broken), settings=CallSettings(output=output))
        assert [field for field, _ in refused(google, GEMINI_3, options)] == [
            "tools.1.parameters",
            "response_format.schema",
        ]


def refused(registry: ModelRegistry, model: str, options: TurnOptions) -> list[tuple[str, str]]:
    try:
        refuse_unsupported_options(options, registry.chat(model).profile, reserved_names=frozenset())
    except InvalidInputError as error:
        return [(wrong.field, wrong.message) for wrong in error.errors]
    return []

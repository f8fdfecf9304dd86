"""Answers of Gemini, of gateways before it, and of OpenAI's responses that are a little odd: nothing is lost for it."""

from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, TextPart
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.core.model.errors import InvalidInputError, ModelUnavailableError
from app.core.model.model_io import (
    ChatRequest,
    ContextMessage,
    Proposal,
    ReasoningDelta,
    StepEvent,
    StepFinish,
    SummaryRequest,
    ToolCall,
)
from app.core.model.schemas.session import SESSION
from app.providers import http_answers, other_providers, provider_models, refusals, replies
from app.providers.keys import Keys
from app.providers.registry import ModelRegistry
from app.providers.replies import text_of
from tests.gemini_server import serving
from tests.integration.test_models import said, talk

GEMINI = "google:gemini-3-flash-preview"
RESPONSES = "openai-responses:gpt-5-mini"
LOCAL = "openai:own-llama"
SUMMARY = SummaryRequest(schema=SESSION, messages=talk(("user", "We meet on 14 March.")))
CHAT = ChatRequest(messages=(ContextMessage(role="user", content="Hello"),), reasoning="shown")
Given = Callable[[dict[str, Any]], Response]


@dataclass(slots=True)
class OddServer:
    """Gives one answer to every request."""

    answer: Given = lambda _: Response()
    requests: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    async def give(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        return self.answer(body)

    def models(self, name: str) -> ModelRegistry:
        keys = Keys(
            google_api_key="k",
            google_base_url=self.url,
            openai_api_key="k",
            openai_base_url=f"{self.url}/v1",
            ambient=True,
        )
        return ModelRegistry(chat=name, compaction=name, keys=keys)

    async def heard(self, name: str = GEMINI, request: ChatRequest = CHAT) -> list[StepEvent]:
        """What a chat model says."""
        registry = self.models(name)
        try:
            return [event async for event in registry.chat().step(request)]
        finally:
            await registry.close()

    async def proposed(self, name: str = GEMINI) -> Proposal:
        """What a summarizer says."""
        registry = self.models(name)
        try:
            return await registry.summarizer().ask(SUMMARY)
        finally:
            await registry.close()


@contextmanager
def odd_server() -> Iterator[OddServer]:
    server = OddServer()
    with serving(Starlette(routes=[Route("/{path:path}", server.give, methods=["POST"])])) as url:
        server.url = url
        yield server


@pytest.fixture
def odd() -> Iterator[OddServer]:
    with odd_server() as server:
        yield server


def chunk(*parts: dict[str, Any], finish: str | None = "STOP") -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
    return {
        "candidates": [candidate | ({"finishReason": finish} if finish else {})],
        "usageMetadata": {"promptTokenCount": 12, "candidatesTokenCount": 3, "totalTokenCount": 15},
        "responseId": "r",
    }


GOOD = json.dumps(chunk({"text": "Good "}, finish=None))
DAY = json.dumps(chunk({"text": "day."}))


SPOKEN = "".join(
    f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
    for event in (
        {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "day."}
        | {"sequence_number": 1, "logprobs": []},
        {
            "type": "response.completed",
            "sequence_number": 2,
            "response": {
                "id": "resp_1",
                "object": "response",
                "created_at": 1,
                "status": "completed",
                "model": "gpt-5-mini",
                "output": [],
                "parallel_tool_calls": True,
                "tool_choice": "auto",
                "tools": [],
            },
        },
    )
)


def streamed(text: str) -> Given:
    return lambda _: Response(text.encode(), media_type="text/event-stream")


def whole(body: Any, status: int = 200) -> Given:
    return lambda _: JSONResponse(body, status_code=status)


def google_error(status: int, message: str, word: str = "INVALID_ARGUMENT") -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "status": word}}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"data: {GOOD}\r\n\r\ndata: {DAY}\r\n\r\n", id="Google's own"),
        pytest.param(f": keep-alive\n\ndata: {GOOD}\n\n: keep-alive\n\ndata: {DAY}\n\n", id="comments"),
        pytest.param(f"data: {GOOD}\n\ndata: {DAY}\n\ndata: [DONE]\n\n", id="done"),
        pytest.param(f"data:{GOOD}\n\ndata:{DAY}\n\n", id="no space"),
        pytest.param(f"event: message\nid: 1\ndata: {GOOD}\n\nevent: message\nid: 2\ndata: {DAY}\n\n", id="fields"),
        pytest.param(f"data: \n\ndata: {GOOD}\n\ndata: {DAY}", id="empty data, and no end"),
    ],
)
async def test_events_are_read_as_gateways_write_them(odd: OddServer, text: str) -> None:
    odd.answer = streamed(text)

    events = await odd.heard()

    assert said(events) == "Good day."
    finish = events[-1]
    assert isinstance(finish, StepFinish)
    assert (finish.reason, finish.usage.output_tokens) == ("stop", 3)


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85"])
async def test_a_line_separator_in_a_reply_ends_no_event(odd: OddServer, end: str) -> None:
    odd.answer = streamed(f"data: {DAY.replace('day.', f'one{end}two')}\r\n\r\n")

    assert said(await odd.heard()) == "one\ntwo"


@pytest.mark.parametrize(
    "part",
    [
        pytest.param({}, id="empty"),
        pytest.param({"thought": True}, id="the mark of a thought"),
        pytest.param({"thought": True, "thoughtSignature": "YWJj"}, id="a signed thought without text"),
        pytest.param({"somethingNew": {"a": 1}}, id="unknown"),
        pytest.param({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}, id="a result without code"),
    ],
)
async def test_a_part_that_cannot_be_read_costs_nothing_else(odd: OddServer, part: dict[str, Any]) -> None:
    called = {"functionCall": {"name": "weather", "args": {"city": "Wien"}}, "thoughtSignature": "YWJj"}
    answer = chunk({"text": "Hm.", "thought": True}, part, {"text": "Good day."}, called)
    odd.answer = streamed(f"data: {json.dumps(answer)}\r\n\r\n")
    thought, text, call, finish = await odd.heard()

    assert isinstance(thought, ReasoningDelta)
    assert isinstance(call, ToolCall)
    assert (thought.text, said([text]), call.arguments) == ("Hm.", "Good day.", {"city": "Wien"})
    assert call.details == {"provider": "google", "thought_signature": "YWJj"}
    assert isinstance(finish, StepFinish)

    odd.answer = whole(chunk(part, {"text": "{}"}))
    assert (await odd.proposed()).text == "{}"


async def test_gemini_on_google_cloud_is_asked_and_read_alike(odd: OddServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "k")
    monkeypatch.setenv("GOOGLE_VERTEX_BASE_URL", odd.url)
    odd.answer = streamed(f": hm\n\ndata: {json.dumps(chunk({'thought': True}, {'text': 'Good.'}))}\n\n")
    plan = {"type": "media", "media_type": "application/pdf", "data": "JVBERi0="}
    asked = ContextMessage(role="user", content="Read this.", parts=(plan,))
    registry = ModelRegistry(chat="google-cloud:gemini-3-flash-preview", keys=Keys(ambient=True))
    events = [event async for event in registry.chat().step(ChatRequest(messages=(asked,)))]
    await registry.close()

    assert said(events) == "Good."
    (content,) = odd.requests[0]["contents"]
    assert content["parts"][1] == {"inlineData": {"data": "JVBERi0=", "mime_type": "application/pdf"}}


@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [
        (429, "Your prepayment credits are depleted. Please go to AI Studio at …", "quota_exceeded"),
        (429, "Your project has exceeded its monthly spending cap. Please go to AI Studio at …", "quota_exceeded"),
        (429, "Resource has been exhausted (e.g. check quota).", "rate_limited"),
        (499, "The operation was cancelled.", "server_error"),
    ],
)
async def test_google_says_why_it_does_not_answer(odd: OddServer, status: int, message: str, reason: str) -> None:
    odd.answer = whole(google_error(status, message, {499: "CANCELLED"}.get(status, "RESOURCE_EXHAUSTED")), status)

    for asked in (odd.heard, odd.proposed):
        with pytest.raises(ModelUnavailableError) as caught:
            await asked()
        assert (caught.value.reason, caught.value.retryable) == (reason, reason != "quota_exceeded")


@pytest.mark.parametrize(
    "message",
    [
        "The specified schema produces a constraint that has too many states for serving. Typical causes are …",
        "A schema in GenerationConfig in the request exceeds the maximum allowed nesting depth.",
        "Invalid JSON payload received. Unknown name \"responseJsonSchema\" at 'generation_config': Cannot find field.",
    ],
)
async def test_a_schema_that_google_does_not_take_is_told_in_words(odd: OddServer, message: str) -> None:
    def answer(body: dict[str, Any]) -> Response:
        has_schema = "responseJsonSchema" in body["generationConfig"]
        given = whole(google_error(400, message), 400) if has_schema else whole(chunk({"text": "{}"}))
        return given(body)

    odd.answer = answer

    assert (await odd.proposed()).text == "{}"
    assert len(odd.requests) == 2
    assert "logos" in json.dumps(odd.requests[1]["systemInstruction"]), "the schema in words"


async def test_a_summary_is_asked_for_without_a_depth_of_reasoning_that_is_refused(odd: OddServer) -> None:
    refusal = google_error(400, "Thinking level LOW is not supported for this model.")

    def answer(body: dict[str, Any]) -> Response:
        thinks = "thinkingConfig" in body["generationConfig"]
        return (whole(refusal, 400) if thinks else whole(chunk({"text": "{}"})))(body)

    odd.answer = answer
    assert (await odd.proposed()).text == "{}"
    assert ["responseJsonSchema" in body["generationConfig"] for body in odd.requests] == [True, True]

    odd.answer = whole(refusal, 400)
    with pytest.raises(ModelUnavailableError) as caught:
        await odd.proposed()
    assert (caught.value.reason, len(odd.requests)) == ("bad_request", 4), "it ends all the same"


async def test_what_a_model_refuses_is_left_out_for_an_hour(odd: OddServer, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {"thinkingConfig": "Thinking level LOW is not supported", "responseJsonSchema": "too many states"}

    def answer(body: dict[str, Any]) -> Response:
        asked = next((why for name, why in refused.items() if name in body["generationConfig"]), None)
        return (whole(google_error(400, asked), 400) if asked else whole(chunk({"text": "{}"})))(body)

    odd.answer = answer
    registry = odd.models(GEMINI)
    for asks in (3, 1):
        odd.requests.clear()
        assert (await registry.summarizer().ask(SUMMARY)).text == "{}"
        assert len(odd.requests) == asks
    monkeypatch.setattr(refusals, "REMEMBERED", 0.0)
    assert registry._models is not None
    registry._models.build(GEMINI).refused.note("thinking")
    assert (await registry.summarizer().ask(SUMMARY)).text == "{}"
    await registry.close()
    assert len(odd.requests) == 1 + 2, "it may take the depth of reasoning by now"


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        (GEMINI, google_error(400, "Unable to submit request because thinking is not supported by this model.")),
        (RESPONSES, {"error": {"message": "Your organization must be verified to generate reasoning summaries."}}),
    ],
)
async def test_a_model_that_does_not_show_its_thoughts_answers_all_the_same(
    odd: OddServer, name: str, refusal: dict[str, Any]
) -> None:
    def answer(body: dict[str, Any]) -> Response:
        wishes = "summary" in str(body.get("reasoning")) or "thinkingConfig" in body.get("generationConfig", ())
        spoken = f"data: {DAY}\n\n" if name == GEMINI else SPOKEN
        return (whole(refusal, 400) if wishes else streamed(spoken))(body)

    odd.answer = answer
    registry = odd.models(name)
    for asks in (2, 1):
        odd.requests.clear()
        events = [event async for event in registry.chat().step(replace(CHAT, reasoning="asked"))]
        assert (said(events), len(odd.requests)) == ("day.", asks)

    odd.answer = whole({"error": {"message": "reasoning: no", "code": 400, "status": "INVALID_ARGUMENT"}}, 400)
    other = odd.models(name)
    with pytest.raises(ModelUnavailableError, match="bad_request"):
        [event async for event in other.chat().step(replace(CHAT, reasoning="asked"))]
    for used in (registry, other):
        await used.close()


@pytest.mark.parametrize("name", [RESPONSES, LOCAL])
async def test_a_prompt_that_openai_blocks_is_not_sent_again(odd: OddServer, name: str) -> None:
    """Its words name a guide to reasoning, as if the depth of it or the wish for thoughts were refused."""
    message = (
        "Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try again with a"
        " different prompt: https://platform.openai.com/docs/guides/reasoning#advice-on-prompting"
    )
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": "invalid_prompt"}
    odd.answer = whole({"error": error}, 400)
    (finish,) = await odd.heard(name, replace(CHAT, reasoning="asked"))
    assert isinstance(finish, StepFinish)
    assert (finish.reason, (await odd.proposed(name)).finish, len(odd.requests)) == ("blocked", "blocked", 2)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Output blocked by content filtering policy", "blocked"),
        ("You have reached your specified API usage limits. You will regain access on 2026-12-01.", "quota_exceeded"),
        ("messages.0: image could not be processed", "bad_request"),
    ],
)
async def test_a_400_of_anthropic_says_why(odd: OddServer, message: str, reason: str) -> None:
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    odd.answer = whole(error, 400)
    if reason == "blocked":
        assert (await odd.proposed(LOCAL)).finish == "blocked"
        return
    with pytest.raises(ModelUnavailableError) as caught:
        await odd.heard(LOCAL)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [
        (403, "Key limit exceeded (total limit). Manage it using https://openrouter.ai/…", "quota_exceeded"),
        (403, "Your newly created team doesn't have any credits or licenses yet.", "quota_exceeded"),
        (429, "Your team has either used all credits or reached its monthly spending limit.", "quota_exceeded"),
        (412, "Account x is suspended, possibly due to reaching the monthly spending limit", "quota_exceeded"),
        (400, "blocked_api_access", "quota_exceeded"),
        (400, "Incorrect API key provided: k. You can obtain an API key from https://console.x.ai.", "unauthorized"),
        (400, "foo/bar is not a valid model ID", "model_not_found"),
        (400, "model_decommissioned", "model_not_found"),
        (400, "invalid_model", "model_not_found"),
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096.", "context_too_long"),
        (403, "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO", "blocked"),
        (400, "Content Exists Risk", "blocked"),
        (400, "data_inspection_failed", "blocked"),
        (403, "Access to the chat endpoint is denied", "unauthorized"),
        (424, "The request failed due to an error while processing the model.", "server_error"),
    ],
)
async def test_each_provider_says_in_its_words_why_it_does_not_answer(
    odd: OddServer, status: int, message: str, reason: str
) -> None:
    odd.answer = whole({"error": {"message": message, "type": "invalid_request_error"}}, status)
    if reason == "blocked":
        assert (await odd.proposed(LOCAL)).finish == "blocked"
        return
    with pytest.raises(ModelUnavailableError) as caught:
        await odd.heard(LOCAL)
    assert (caught.value.reason, caught.value.retryable) == (reason, reason == "server_error")


def called(id_: str) -> tuple[ContextMessage, ...]:
    call = {"type": "tool_call", "id": id_, "name": "weather", "arguments": {}}
    result = {"type": "tool_result", "tool_call_id": id_, "name": "weather", "content": "sunny"}
    return (
        ContextMessage(role="user", content="How is the weather?"),
        ContextMessage(role="assistant", content="", parts=(call,)),
        ContextMessage(role="tool", content="", parts=(result,)),
    )


SUNNY = {"id": "1", "choices": [{"index": 0, "delta": {"content": "Sunny."}, "finish_reason": "stop"}]}
CALLED = ChatRequest(messages=called("call_1"), reasoning="shown")


@pytest.mark.parametrize(
    "message",
    [
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
        "Missing `reasoning_content` field in the assistant message at message index 1.",
    ],
)
async def test_a_server_that_wants_thoughts_back_gets_the_field(odd: OddServer, message: str) -> None:
    """Moonshot and DeepSeek do. Each step after a call was refused, for ever."""

    def answer(body: dict[str, Any]) -> Response:
        misses = any(one["role"] == "assistant" and "reasoning_content" not in one for one in body["messages"])
        error = {"error": {"message": message, "type": "invalid_request_error"}}
        return (whole(error, 400) if misses else streamed(f"data: {json.dumps(SUNNY)}\n\ndata: [DONE]\n\n"))(body)

    odd.answer = answer
    registry = odd.models(LOCAL)
    for asks in (2, 1):
        odd.requests.clear()
        assert said([event async for event in registry.chat().step(CALLED)]) == "Sunny."
        assert len(odd.requests) == asks
    await registry.close()


@pytest.mark.parametrize(("name", "kept"), [("openai:Devstral-Small", False), (LOCAL, True)])
async def test_a_call_has_an_id_that_mistrals_template_takes(odd: OddServer, name: str, *, kept: bool) -> None:
    odd.answer = streamed(f"data: {json.dumps(SUNNY)}\n\ndata: [DONE]\n\n")
    await odd.heard(name, CALLED)
    _, call, result = odd.requests[0]["messages"]
    id_ = call["tool_calls"][0]["id"]
    assert id_ == result["tool_call_id"]
    assert (id_ == "call_1") if kept else (len(id_) == 9 and id_.isalnum())


async def test_hugging_face_is_asked_without_its_own_client(odd: OddServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's is not installed, and loses each answer: it does not know its own address."""
    monkeypatch.setattr(other_providers, "_HUGGING_FACE_ROUTER", f"{odd.url}/v1")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    name = "huggingface:Qwen/Qwen3-32B:cerebras"
    with pytest.raises(InvalidInputError, match="set HF_TOKEN"):
        await odd.heard(name)
    monkeypatch.setenv("HF_TOKEN", "hf_k")
    odd.answer = streamed(f"data: {json.dumps(SUNNY)}\n\ndata: [DONE]\n\n")
    assert said(await odd.heard(name)) == "Sunny."
    assert odd.requests[0]["model"] == "Qwen/Qwen3-32B:cerebras"


async def test_a_model_that_failed_at_groq_may_be_asked_again(odd: OddServer) -> None:
    message = "Failed to generate JSON. Please adjust your prompt. See 'failed_generation' for more details."
    odd.answer = whole(
        {"error": {"message": message, "type": "invalid_request_error", "code": "json_validate_failed"}}, 400
    )
    with pytest.raises(ModelUnavailableError) as caught:
        await odd.proposed(LOCAL)
    assert (caught.value.reason, caught.value.retryable) == ("unreadable", True)


def test_a_text_without_words_is_empty() -> None:
    """Anthropic's client makes one of a block that it does not know."""
    unknown: Any = None
    answer = ModelResponse(parts=[TextPart(content=unknown), TextPart(content="{}")])
    assert text_of(answer) == "{}"


def failed(code: str) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "failed",
        "model": "gpt-5-mini",
        "output": [],
        "error": {"code": code, "message": "It was flagged."},
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


@pytest.mark.parametrize(
    ("code", "reason"), [("invalid_prompt", "blocked"), ("bio_policy", "blocked"), ("invalid_image", "bad_request")]
)
async def test_a_response_that_fails_for_its_request_is_no_outage(odd: OddServer, code: str, reason: str) -> None:
    event = {"type": "response.failed", "sequence_number": 1, "response": failed(code)}
    odd.answer = streamed(f"event: response.failed\ndata: {json.dumps(event)}\n\n")
    if reason == "blocked":
        (finish,) = await odd.heard(RESPONSES)
        assert isinstance(finish, StepFinish)
        assert finish.reason == reason
        odd.answer = whole(failed(code))
        assert (await odd.proposed(RESPONSES)).finish == reason
        return
    with pytest.raises(ModelUnavailableError) as caught:
        await odd.heard(RESPONSES)
    assert (caught.value.reason, caught.value.retryable) == (reason, False)


def completion(*calls: dict[str, Any]) -> str:
    """The stream of a chat completion with these calls."""
    made = [{"index": index, "id": "c", "type": "function", **call} for index, call in enumerate(calls)]
    choice = {"index": 0, "delta": {"tool_calls": made}, "finish_reason": "tool_calls"}
    body = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(body)}\n\ndata: [DONE]\n\n"


def tool_call(arguments: str = "{}", **more: Any) -> dict[str, Any]:
    return {"function": {"name": "f", "arguments": arguments}, **more}


@pytest.mark.parametrize(
    ("id_", "kept"), [("resp_1", "resp_1"), ("r" * 1_001, None), ("r\0", None), ("r r", None), ("", None)]
)
async def test_an_id_that_cannot_be_stored_is_none(odd: OddServer, id_: str, kept: str | None) -> None:
    odd.answer = streamed(SPOKEN.replace('"resp_1"', json.dumps(id_)))
    finish = (await odd.heard(RESPONSES))[-1]
    assert isinstance(finish, StepFinish)
    assert finish.response_id == kept


@pytest.mark.parametrize("deep", [100, 900])
async def test_a_call_that_is_nested_deeply_is_a_call(odd: OddServer, deep: int) -> None:
    nested = '{"a": ' * deep + "1" + "}" * deep
    signed = {"google": {"thought_signature": "S"}, "x": "?"}
    for name, text in (
        (LOCAL, completion(tool_call(extra_content=signed))),
        (GEMINI, f"data: {json.dumps(chunk({'functionCall': {'name': 'f', 'args': {'x': '?'}}}))}\n\n"),
    ):
        odd.answer = streamed(text.replace('"?"', nested))
        call = (await odd.heard(name))[0]
        assert isinstance(call, ToolCall)
        assert json.dumps([dict(call.arguments), dict(call.details)]).count('"a"') < 70


async def test_a_long_signature_is_left_out(odd: OddServer) -> None:
    odd.answer = streamed(completion(*(tool_call(extra_content={"s": "S" * size}) for size in (100_000, 130_000))))
    assert [isinstance(one, ToolCall) and bool(one.details) for one in (await odd.heard(LOCAL))[:2]] == [True, False]


async def test_calls_with_more_than_a_message_may_have_are_cut_off(
    odd: OddServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_models, "CALLS_BYTES", 100)
    half = tool_call(json.dumps({"a": "x" * 42}))
    odd.answer = streamed(completion(half, half))
    assert [type(one) for one in await odd.heard(LOCAL)] == [ToolCall, ToolCall, StepFinish]
    odd.answer = streamed(completion(half, half, tool_call()))
    (finish,) = await odd.heard(LOCAL)
    assert isinstance(finish, StepFinish)
    assert finish.reason == "length"


async def test_a_word_that_googles_client_does_not_know_is_not_logged(odd: OddServer) -> None:
    odd.answer = streamed(f"data: {json.dumps(chunk({'text': 'Good day.'}, finish='A forged line'))}\n\n")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        finish = (await odd.heard())[-1]
    assert isinstance(finish, StepFinish)
    assert finish.reason == "other"
    assert not [one for one in told if "A forged line" in str(one.message)]


async def test_an_answer_of_many_calls_is_not_read(odd: OddServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "MAX_PARTS", 5)
    odd.answer = streamed(completion(*[tool_call()] * 5))
    assert len(await odd.heard(LOCAL)) == 6
    odd.answer = streamed(completion(*[tool_call()] * 6))
    with pytest.raises(ModelUnavailableError) as caught:
        await odd.heard(LOCAL)
    assert (caught.value.reason, caught.value.retryable) == ("unreadable", False)


class TestTheLimit:
    @pytest.fixture(autouse=True)
    def limited(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(http_answers, "ANSWER_BYTES", 100_000)

    @pytest.mark.parametrize("name", [GEMINI, LOCAL, RESPONSES])
    @pytest.mark.parametrize("packed", [False, True])
    async def test_no_answer_is_read_beyond_it(self, odd: OddServer, name: str, *, packed: bool) -> None:
        text = json.dumps({"text": "a" * 200_000}).encode()
        headers = {"content-encoding": "gzip"} if packed else {}
        body = gzip.compress(text) if packed else text
        odd.answer = lambda _: Response(body, media_type="application/json", headers=headers)
        await self._refused(odd, lambda: odd.proposed(name))

    @pytest.mark.parametrize("name", [GEMINI, LOCAL, RESPONSES])
    async def test_no_stream_is_read_beyond_it(self, odd: OddServer, name: str) -> None:
        odd.answer = streamed("data: " + "a" * 200_000)
        await self._refused(odd, lambda: odd.heard(name))

    @pytest.mark.parametrize("name", [GEMINI, LOCAL, RESPONSES])
    async def test_no_answer_is_read_that_is_packed_twice(self, odd: OddServer, name: str) -> None:
        """The client that the library has for GitHub's models unpacks each piece at once, whatever its size."""
        body = gzip.compress(gzip.compress(json.dumps(chunk({"text": "day"})).encode()))
        odd.answer = lambda _: Response(body, media_type="application/json", headers={"content-encoding": "gzip, gzip"})
        await self._refused(odd, lambda: odd.proposed(name))

    @pytest.mark.parametrize("size", [1_000, 90_000])
    async def test_what_is_below_it_is_read(self, odd: OddServer, size: int) -> None:
        odd.answer = whole(chunk({"text": "a" * size}))
        assert len((await odd.proposed()).text) == size

    async def _refused(self, odd: OddServer, asked: Callable[[], Any]) -> None:
        with pytest.raises(ModelUnavailableError) as caught:
            await asked()
        assert (caught.value.reason, caught.value.retryable) == ("unreadable", False)
        assert len(odd.requests) == 1


@pytest.mark.parametrize(
    "told", [{}, {"modelVersion": "gemini-3-flash-preview"}, {"modelVersion": "gemini-of-tomorrow"}]
)
async def test_a_call_has_the_price_of_the_model_that_was_asked(odd: OddServer, told: dict[str, str]) -> None:
    """An answer may name a version that the table of prices does not have; a call without a price counts as free."""
    odd.answer = streamed(f"data: {json.dumps(chunk({'text': 'Good day.'}) | told)}\n\n")
    finish = (await odd.heard())[-1]
    assert isinstance(finish, StepFinish)
    assert finish.usage.cost_usd == pytest.approx((0.5 * 12 + 3.0 * 3) / 1_000_000)

    odd.answer = whole(chunk({"text": "{}"}) | told)
    assert (await odd.proposed()).usage.cost_usd == finish.usage.cost_usd

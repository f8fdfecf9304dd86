"""OpenRouter passes on the answers, the prices and the refusals of many providers: none is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic_ai.providers.openrouter import OpenRouterProvider

from app.core.model.errors import ModelUnavailableError
from app.core.model.model_io import ChatRequest, ContextMessage, ReasoningDelta, StepFinish, ToolCall, ToolSpec
from tests.integration.test_models import said
from tests.integration.test_odd_answers import LOCAL, OddServer, odd_server, streamed, whole

GPT = "openrouter:openai/gpt-5"
GEMINI = "openrouter:google/gemini-3-flash-preview"
USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 30,
    "total_tokens": 1030,
    "cost": 0.0123,
    "is_byok": False,
    "cost_details": {"upstream_inference_cost": 0.5},
}
BY_TABLE = 0.00155
WEATHER = ToolSpec(name="weather", description="The weather.", parameters={"type": "object"})


@pytest.fixture
def router(monkeypatch: pytest.MonkeyPatch) -> Iterator[OddServer]:
    with odd_server() as server:
        monkeypatch.setenv("OPENROUTER_API_KEY", "k")
        monkeypatch.setattr(OpenRouterProvider, "base_url", property(lambda _: f"{server.url}/api/v1"))
        yield server


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
    own = {"id": "gen-1", "provider": "OpenAI", "object": "chat.completion.chunk", "model": "openai/gpt-5"}
    return own | {"created": 1_764_000_000, "choices": [choice]} | more


def events(*chunks: dict[str, Any]) -> str:
    told = "".join(f"data: {json.dumps(one)}\n\n" for one in chunks)
    return f": OPENROUTER PROCESSING\n\n{told}data: [DONE]\n\n"


def answer(finish: str = "stop", content: str = "{}", usage: Any = USAGE, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **more}}
    own = {"id": "gen-1", "provider": "OpenAI", "object": "chat.completion", "model": "openai/gpt-5"}
    return own | {"created": 1_764_000_000, "choices": [choice], "usage": usage}


@pytest.mark.parametrize(
    ("told", "price"),
    [({}, 0.0123), ({"cost": 0}, 0.0), ({"is_byok": True}, 0.5123), ({"cost": None}, BY_TABLE)],
)
async def test_a_call_costs_what_openrouter_says(router: OddServer, told: dict[str, Any], price: float) -> None:
    """The table does not have what the provider takes that was chosen; with an own key, a provider bills the rest."""
    ended = chunk({}, usage=USAGE | told)
    router.answer = streamed(events(chunk({"content": "Good day."}, "stop"), ended, ended))
    finish = (await router.heard(GPT))[-1]
    assert isinstance(finish, StepFinish)
    assert finish.usage.cost_usd == pytest.approx(price)

    router.answer = whole(answer(usage=USAGE | told))
    assert (await router.proposed(GPT)).usage.cost_usd == pytest.approx(price)
    if price != BY_TABLE:
        assert (await router.proposed(LOCAL)).usage.cost_usd == pytest.approx(price), "by its address, too"


@pytest.mark.parametrize("told", [-1, True, "0.01", [0.01], 1e300, pytest.param(10**400, id="an endless number")])
async def test_a_price_that_no_call_can_have_is_ignored(router: OddServer, told: Any) -> None:
    """A sum of such prices would be too large for the database."""
    usage = USAGE | {"cost": told}
    router.answer = streamed(events(chunk({"content": "Good day."}, "stop"), chunk({}, usage=usage)))
    text, finish = await router.heard(GPT)
    assert isinstance(finish, StepFinish)
    assert said([text]) == "Good day."
    assert finish.usage.cost_usd == pytest.approx(BY_TABLE)
    router.answer = whole(answer(usage=usage))
    assert (await router.proposed(GPT)).usage.cost_usd == pytest.approx(BY_TABLE)


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"reasoning_details": [{"type": "reasoning.new", "format": None, "index": 0}]}, id="kind"),
        pytest.param({"reasoning_details": [{"type": "reasoning.text", "text": None, "index": 0}]}, id="no text"),
        pytest.param({"annotations": [{"type": "url_citation", "url_citation": {"url": "https://a.b"}}]}, id="source"),
        pytest.param({"annotations": [{"type": "new"}]}, id="kind of source"),
    ],
)
async def test_a_detail_that_is_not_known_costs_nothing_else(router: OddServer, odd: dict[str, Any]) -> None:
    said_so = chunk({"content": "Good day.", "reasoning": "Hm.", **odd})
    router.answer = streamed(events(said_so, chunk({"content": ""}, "eos"), chunk({}, usage=USAGE)))
    thought, text, finish = await router.heard(GPT)
    assert isinstance(thought, ReasoningDelta)
    assert isinstance(finish, StepFinish)
    assert (thought.text, said([text]), finish.reason) == ("Hm.", "Good day.", "stop")

    router.answer = whole(answer("eos", **odd))
    assert (await router.proposed(GPT)).text == "{}"


async def test_an_answer_in_the_field_of_the_provider_is_read(router: OddServer) -> None:
    router.answer = whole({"id": None, "choices": None, "model": None, "provider": answer()})
    assert (await router.proposed(GPT)).text == "{}"


async def test_an_answer_that_a_provider_broke_off_is_an_outage(router: OddServer) -> None:
    broken = answer("error", content="")
    broken["choices"][0]["error"] = {"code": 502, "message": "Upstream idle timeout exceeded"}
    router.answer = whole(broken)
    with pytest.raises(ModelUnavailableError) as caught:
        await router.proposed(GPT)
    assert (caught.value.reason, caught.value.retryable) == ("server_error", True)


@pytest.mark.parametrize("is_late", [False, True])
async def test_the_signature_of_a_call_goes_back_to_gemini(router: OddServer, *, is_late: bool) -> None:
    """Gemini refuses a call without it, and OpenRouter sends it beside the reply, before or after the call."""
    details = [
        {"type": "reasoning.text", "text": "Hm.", "format": "google-gemini-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "c2ln", "format": "google-gemini-v1", "index": 0, "id": "tool_0"},
    ]
    named = {"index": 0, "id": "tool_0", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    pieces = [chunk({"reasoning_details": details}), chunk({"tool_calls": [named]})]
    router.answer = streamed(events(*(reversed(pieces) if is_late else pieces), chunk({}, "tool_calls")))
    asked = ContextMessage(role="user", content="How is the weather?")
    call, _ = await router.heard(GEMINI, ChatRequest(messages=(asked,), tools=(WEATHER,)))
    assert isinstance(call, ToolCall)

    part = {"type": "tool_call", "id": call.id, "name": call.name, "arguments": {}, "details": call.details}
    result = {"type": "tool_result", "tool_call_id": call.id, "name": call.name, "content": "sunny"}
    thread = (
        asked,
        ContextMessage(role="assistant", content="", parts=(part,)),
        ContextMessage(role="tool", content="", parts=(result,)),
    )
    router.answer = streamed(events(chunk({"content": "Sunny."}, "stop")))
    await router.heard(GEMINI, ChatRequest(messages=thread, tools=(WEATHER,)))
    sent = router.requests[-1]["messages"][1]
    assert sent["reasoning_details"] == [details[1]]
    assert "extra_content" not in sent["tool_calls"][0]


@pytest.mark.parametrize("is_begun", [False, True])
async def test_a_prompt_that_is_flagged_is_blocked(router: OddServer, *, is_begun: bool) -> None:
    about = {"reasons": ["violence"], "flagged_input": "…", "provider_name": "OpenAI", "model_slug": "openai/gpt-5"}
    error = {"error": {"code": 403, "message": "Your input was flagged.", "metadata": about}}
    router.answer = streamed(events(error)) if is_begun else whole(error, 403)
    (finish,) = await router.heard(GPT)
    assert isinstance(finish, StepFinish)
    assert finish.reason == "blocked"
    if not is_begun:
        assert (await router.proposed(GPT)).finish == "blocked"

"""What models show of their thoughts, as providers send it and as the database stores it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.core.model.model_io import CallSettings, ChatRequest, ContextMessage, Reasoning, ReasoningDelta, TextDelta
from app.core.model.records import Page
from app.providers.keys import Keys
from app.providers.registry import ModelRegistry
from app.storage.unit_of_work import UnitOfWorkFactory
from tests.gemini_server import running_gemini, serving
from tests.gemini_wire import shows_thoughts
from tests.integration.rows import message, stored, talk
from tests.openai_server import running_openai

HELLO: Final = (ContextMessage(role="user", content="Hello."),)
Told = list[tuple[str, str]]


async def told(registry: ModelRegistry, reasoning: Reasoning = "shown", effort: str | None = None) -> Told:
    """Runs of words and of thoughts, in order."""
    runs: Told = []
    request = ChatRequest(messages=HELLO, reasoning=reasoning, settings=CallSettings(reasoning_effort=effort))
    async for event in registry.chat().step(request):
        if isinstance(event, TextDelta | ReasoningDelta):
            kind = "text" if isinstance(event, TextDelta) else "thought"
            before = runs.pop()[1] if runs and runs[-1][0] == kind else ""
            runs.append((kind, before + event.text))
    await registry.close()
    return runs


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("model", "reasoning", "effort", "asks"),
    [
        ("gemini-3-flash-preview", "asked", None, True),
        ("gemini-3-flash-preview", "shown", None, False),
        ("gemini-3-flash-preview", "asked", "none", False),
        ("gemini-2.5-flash", "asked", None, True),
        ("gemini-2.0-flash", "asked", None, False),
    ],
)
async def test_gemini_is_asked_where_it_thinks_anyway(
    model: str, reasoning: Reasoning, effort: str | None, *, asks: bool
) -> None:
    with running_gemini() as gemini:
        gemini.script("chat", {"name": "text", "text": "Hi.", "thoughts": "A greeting.\x00"})
        registry = ModelRegistry(chat=f"google:{model}", keys=Keys(google_api_key="key", google_base_url=gemini.url))
        runs = await told(registry, reasoning, effort)
        body = gemini.requests("chat")[0]["body"]
    assert runs == [*([("thought", "A greeting.")] if asks else []), ("text", "Hi.")]
    assert shows_thoughts(body) is asks
    if asks:
        assert body["generationConfig"]["thinkingConfig"] == {"include_thoughts": True}, "no deeper than by itself"


@pytest.mark.daily(2)
@pytest.mark.parametrize(("reasoning", "effort"), [("asked", None), ("asked", "low"), ("shown", None), ("off", None)])
async def test_responses_are_asked_for_a_summary_and_two_thoughts_are_told_apart(
    reasoning: Reasoning, effort: str | None
) -> None:
    with running_openai() as openai:
        openai.script({"text": "Hi.", "thoughts": ["A greeting.", "I greet back."]})
        model = "openai-responses:gpt-5.4"
        registry = ModelRegistry(chat=model, keys=Keys(openai_api_key="key", openai_base_url=openai.url))
        runs = await told(registry, reasoning, effort)
        asked = openai.last.body.get("reasoning") or {}
    is_asked = reasoning == "asked"
    assert runs == [*([("thought", "A greeting.\n\nI greet back.")] if is_asked else []), ("text", "Hi.")]
    assert asked.get("summary") == ("auto" if is_asked else None)
    assert asked.get("effort") == effort


@pytest.fixture(params=["reasoning", "reasoning_content", "tags"])
def compatible(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server of chat completions whose model thinks unasked, in one of the existing formats."""
    thinking: list[dict[str, Any]] = [{request.param: "A "}, {request.param: "greeting."}]
    if request.param == "tags":
        thinking = [{"content": "<think>"}, {"content": "A greeting."}, {"content": "</think>"}]

    async def complete(asked: Request) -> Response:
        common = {"id": "1", "created": 1, "model": (await asked.json())["model"], "object": "chat.completion.chunk"}
        deltas = [*thinking, {"content": "Hi."}, {}]
        chunks = [{**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        chunks[-1]["choices"][0]["finish_reason"] = "stop"
        lines = [*map(json.dumps, chunks), "[DONE]"]
        return PlainTextResponse("".join(f"data: {line}\n\n" for line in lines), media_type="text/event-stream")

    with serving(Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"])])) as url:
        yield f"{url}/v1"


@pytest.mark.daily(2)
@pytest.mark.parametrize("reasoning", ["shown", "off"])
async def test_servers_of_open_models_show_their_thoughts_unasked(compatible: str, reasoning: Reasoning) -> None:
    runs = await told(ModelRegistry(chat="openai:own-llama", keys=Keys(openai_base_url=compatible)), reasoning)
    assert runs == [*([("thought", "A greeting.")] if reasoning == "shown" else []), ("text", "Hi.")]


async def test_what_rewrites_a_message_takes_its_thoughts(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
) -> None:
    """The version before, which does not know thoughts, erases them as well. The control: other changes keep them."""
    of = (await stored(begin, tenant)).id
    thought = {"role": "assistant", "reasoning": "I know of seven berths."}
    await talk(begin, tenant, [message(of, seq, **thought) for seq in (1, 2, 3)])

    async def kept() -> list[str]:
        async with begin(tenant) as unit:
            found, _ = await unit.messages.page(of, Page(limit=9, order="asc"))
            assert {one.reasoning for one in found} == {""}, "no other read brings them"
            return [one.reasoning for one in await unit.messages.with_reasoning(found)]

    async with engine.begin() as connection:
        await connection.execute(
            text("UPDATE messages SET content = '', parts = '[]', status = 'erased' WHERE seq = 1")
        )
        await connection.execute(text("UPDATE messages SET status = 'superseded', token_count = 3 WHERE seq = 2"))
    assert await kept() == ["", thought["reasoning"], thought["reasoning"]]
    async with begin(tenant) as unit:
        await unit.messages.erase(of, [message(of, 3, id=(await unit.messages.at_seq(of, 3)).id, status="erased")])
        await unit.commit()
    assert await kept() == ["", thought["reasoning"], ""]

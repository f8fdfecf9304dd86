"""The Gemini path from end to end: our adapter, pydantic-ai, google-genai, a socket, a server with scripted faults."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gc
import json
import time
import traceback
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.core.model.errors import ModelUnavailableError
from app.core.model.model_io import (
    CallSettings,
    ChatRequest,
    ContextMessage,
    FinishReason,
    StepEvent,
    StepFinish,
    SummaryRequest,
    TextDelta,
    ToolCall,
    ToolSpec,
)
from app.core.model.schemas.session import SESSION
from app.core.model.state import StateEntry
from app.core.validation.gate import judge
from app.providers.keys import Keys
from app.providers.registry import ModelRegistry
from app.usecases.ports import ChatModel
from tests.gemini_faults import BEHAVIOURS, CONTINUED_CHAT, INVENTED, PLEASE_PROVIDE, Behaviour
from tests.gemini_server import Gemini, gemini_process
from tests.integration.test_models import said, talk

MODEL = "google:gemini-3-flash-preview"
KEY = "AIza-made-up-key"
SECRET = "the vault code is 8841"  # it is in the conversation, and must not be in an error

LINES = (
    ("user", "Hi! I'm planning a trip to Lisbon with my sister Ana. My budget is 1,450 euros for both of us."),
    ("assistant", "Lovely. When would you like to travel, and from where?"),
    ("user", "We leave from Vienna on 14 March 2027 and come back on 21 March 2027. Ana is vegetarian."),
    ("assistant", "Then flight OS451 at 07:20 fits well. It costs 212 euros per person."),
    ("user", "Good, I decided to take OS451. By the way, my passport number is in the file /home/me/passport.txt."),
    ("assistant", "Noted. I will look for vegetarian restaurants near the Alfama district."),
    ("user", f"Oh, and remember: {SECRET}. Please never book hotels above 90 euros a night."),
    ("assistant", "Understood: nothing above 90 euros a night. Casa do Barao has rooms for 84 euros."),
)
TALKS = {
    "en": LINES,
    "de": (
        ("user", "Guten Morgen! Ich möchte am 3. Mai 2027 mit der Bahn von Wien nach Hamburg fahren."),
        ("assistant", "Gern. Der Nachtzug NJ490 fährt um 20:05 Uhr ab und kostet 129 Euro im Schlafwagen."),
        ("user", "Das ist gut, ich nehme den NJ490. Meine Frau Petra kommt auch mit, wir brauchen zwei Betten."),
        ("assistant", "Dann reserviere ich zwei Betten für zusammen 258 Euro. Die Bestätigung kommt bis Freitag."),
    ),
    "ru": (
        ("user", "Здравствуйте! Мне нужно перенести базу данных на сервер db7 до 12 декабря 2026 года."),
        ("assistant", "Хорошо. Сколько места занимает база и какая версия PostgreSQL сейчас используется?"),
        (
            "user",
            "База занимает 340 ГБ, версия 16.2. Останавливать сервис можно только в воскресенье с 02:00.",
        ),
        ("assistant", "Тогда сделаем логическую репликацию и переключение в воскресенье 6 декабря в 02:30."),
    ),
    "zh": (
        ("user", "你好，我想在2027年3月14日从上海飞往里斯本，预算是9000元，两个人。我的妹妹小美吃素。"),
        ("assistant", "好的，TP221航班07:20起飞，每人4200元，比较合适。需要我预订吗？"),
        ("user", "可以，请预订TP221航班。酒店每晚不要超过600元。"),
        ("assistant", "明白了。阿尔法玛区有一家酒店，每晚580元，我先为您保留两个晚上。"),
    ),
}
REQUEST = SummaryRequest(schema=SESSION, messages=talk(*LINES))
CHAT = ChatRequest(
    messages=(
        ContextMessage(role="system", content="Be kind."),
        ContextMessage(role="user", content=f"Hello there. {SECRET}. Which flight did we take?"),
    )
)


@contextlib.asynccontextmanager
async def models(gemini: Gemini, *, timeout: float = 30.0, url: str | None = None) -> AsyncIterator[ModelRegistry]:  # noqa: ASYNC109 - the registry's own
    registry = ModelRegistry(
        chat=MODEL,
        compaction=MODEL,
        keys=Keys(google_api_key=KEY, google_base_url=url or gemini.url),
        chat_timeout=timeout,
        compaction_timeout=timeout,
    )
    yield registry
    await registry.close()


async def heard(chat: ChatModel, request: ChatRequest = CHAT) -> tuple[str, StepFinish, int]:
    """The reply, its end, and the number of its pieces."""
    events = [event async for event in chat.step(request)]
    *deltas, finish = events
    assert isinstance(finish, StepFinish)
    assert all(isinstance(delta, ToolCall) or (isinstance(delta, TextDelta) and delta.text) for delta in deltas)
    return said(events), finish, len(deltas)


class TestTheWire:
    async def test_a_compaction_asks_for_json_of_the_candidates_shape(self, gemini: Gemini) -> None:
        async with models(gemini) as registry:
            proposal = await registry.summarizer().ask(REQUEST)

        (call,) = gemini.requests("compaction")
        config = call["body"]["generationConfig"]
        assert (call["model"], call["method"]) == ("gemini-3-flash-preview", "generateContent")
        assert call["headers"]["x-goog-api-key"] == KEY
        assert config["responseMimeType"] == "application/json"
        assert {field.name for field in SESSION.fields} <= set(config["responseJsonSchema"]["properties"])
        assert config["maxOutputTokens"] == REQUEST.max_output_tokens
        assert config["thinkingConfig"]["thinking_level"] == "LOW"
        assert call["body"]["systemInstruction"]["parts"][0]["text"]
        assert proposal.finish == "stop"
        assert proposal.model == MODEL
        assert not proposal.called_tool

    async def test_an_honest_candidate_says_what_was_said_in_fewer_words(self, gemini: Gemini) -> None:
        async with models(gemini) as registry:
            proposal = await registry.summarizer().ask(REQUEST)

        candidate = json.loads(proposal.text)
        texts = [item["text"] for item in candidate["logos"]]
        assert any("OS451" in text for text in texts)
        assert not any(text.startswith("I ") for text in texts)
        assert all(set(item["from"]) <= set(range(1, 9)) for item in candidate["logos"])
        assert sum(map(len, texts)) < sum(len(text) for _, text in LINES) * 0.6
        assert candidate["conversation_summary"]
        assert candidate["dropped"] == []

    @pytest.mark.parametrize("language", TALKS)
    async def test_an_honest_candidate_passes_the_gate(self, gemini: Gemini, language: str) -> None:
        request = SummaryRequest(schema=SESSION, messages=talk(*TALKS[language]))
        async with models(gemini) as registry:
            report = judge(await registry.summarizer().ask(request), request)
        assert report.reason is None
        assert report.candidate is not None
        assert report.candidate.items

    async def test_a_correction_names_the_entry_that_it_replaces(self, gemini: Gemini) -> None:
        entry = StateEntry(
            id="F7", field="logos", role="fact", text="The budget for the trip is 1,450 euros.", since_version=1
        )
        messages = talk(("user", "Actually, our budget for the trip is 1,700 euros now, since Ana got a bonus of 250."))
        async with models(gemini) as registry:
            proposal = await registry.summarizer().ask(
                SummaryRequest(schema=SESSION, messages=(*messages, *talk(*LINES)[1:]), previous=(entry,))
            )

        assert [item["replaces"] for item in json.loads(proposal.text)["logos"] if "1,700" in item["text"]] == [["F7"]]

    async def test_a_chat_step_streams_and_sends_the_context_as_contents(self, gemini: Gemini) -> None:
        context = (
            ContextMessage(role="system", content="Be kind."),
            ContextMessage(role="user", content="one"),
            ContextMessage(role="user", content="two"),
            ContextMessage(role="assistant", content="three"),
            ContextMessage(role="system", content="Now be brief."),
            ContextMessage(role="user", content="four"),
        )
        async with models(gemini) as registry:
            request = ChatRequest(messages=context, settings=CallSettings(max_output_tokens=500))
            text, finish, pieces = await heard(registry.chat(), request)

        (call,) = gemini.requests("chat")
        contents = call["body"]["contents"]
        assert call["method"] == "streamGenerateContent"
        assert [content["role"] for content in contents] == ["user", "model", "user"]
        assert [part["text"] for part in contents[0]["parts"]] == ["one", "two"]
        assert [part["text"] for part in contents[2]["parts"]] == ["<system>Now be brief.</system>", "four"]
        assert call["body"]["systemInstruction"]["parts"][-1]["text"] == "Be kind."
        assert call["body"]["generationConfig"]["maxOutputTokens"] == 500
        assert "responseJsonSchema" not in call["body"]["generationConfig"]
        assert text == "You said: <system>Now be brief.</system> four"
        assert finish.reason == "stop"
        assert pieces > 1

    async def test_calls_and_results_go_as_function_calls_and_responses(self, gemini: Gemini) -> None:
        context = (
            ContextMessage(role="user", content="How warm is it?"),
            ContextMessage(
                role="assistant",
                content="",
                parts=({"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Lisbon"}},),
            ),
            ContextMessage(
                role="tool",
                content="",
                parts=({"type": "tool_result", "tool_call_id": "c1", "content": {"celsius": 21}},),
            ),
        )
        async with models(gemini) as registry:
            await heard(registry.chat(), ChatRequest(messages=context))

        _, call, result = gemini.requests("chat")[0]["body"]["contents"]
        assert call["parts"][0]["functionCall"] == {"id": "c1", "name": "weather", "args": {"city": "Lisbon"}}
        assert result["parts"][0]["functionResponse"] == {"id": "c1", "name": "weather", "response": {"celsius": 21}}

    async def test_media_that_gemini_reads_goes_inline(self, gemini: Gemini) -> None:
        media: tuple[dict[str, Any], ...] = (
            {"type": "media", "media_type": "image/png", "data": "iVBORw0KGgo="},
            {"type": "media", "media_type": "application/zip", "data": "UEsDBA=="},
            {"type": "media", "media_type": "image/png", "url": "https://example.org/cat.png"},
        )
        context = (ContextMessage(role="user", content="Look.", parts=media),)
        async with models(gemini) as registry:
            await heard(registry.chat(), ChatRequest(messages=context))

        parts = gemini.requests("chat")[0]["body"]["contents"][0]["parts"]
        assert parts == [
            {"text": "Look."},
            {"inlineData": {"data": "iVBORw0KGgo=", "mime_type": "image/png"}},
            {"text": "[attached: application/zip]"},
            {"text": "[attached: image/png at https://example.org/cat.png]"},
        ]

    async def test_usage_counts_thoughts_cached_tokens_and_money(self, gemini: Gemini) -> None:
        context = (ContextMessage(role="user", content="word " * 3_000),)
        async with models(gemini) as registry:
            _, finish, _ = await heard(registry.chat(), ChatRequest(messages=context))
            proposal = await registry.summarizer().ask(REQUEST)

        usage = finish.usage
        assert usage.input_tokens > 1_500
        assert usage.input_tokens > usage.cached_tokens > 500
        assert usage.output_tokens > 0
        # 0.50 dollars a million in, 0.05 cached, 3.00 out.
        fresh = usage.input_tokens - usage.cached_tokens
        assert usage.cost_usd == pytest.approx(
            (0.5 * fresh + 0.05 * usage.cached_tokens + 3.0 * usage.output_tokens) / 1_000_000
        )
        assert proposal.usage.cost_usd
        assert proposal.usage.output_tokens > 0

    async def test_an_unknown_model_has_no_price_and_no_error(self, gemini: Gemini) -> None:
        async with models(gemini) as registry:
            _, finish, _ = await heard(registry.chat("google:gemini-of-tomorrow"))

        assert finish.usage.cost_usd is None
        assert finish.usage.input_tokens > 0

    def test_counting_tokens(self, gemini: Gemini) -> None:
        body = {"contents": [{"role": "user", "parts": [{"text": "Hello there, world."}]}]}
        response = httpx.post(f"{gemini.url}/v1beta/models/any:countTokens", json=body, headers={"x-goog-api-key": "k"})
        assert 3 <= response.json()["totalTokens"] <= 7

    def test_without_a_key_the_server_refuses(self, gemini: Gemini) -> None:
        response = httpx.post(f"{gemini.url}/v1beta/models/any:generateContent", json={"contents": []})
        assert response.status_code == 403


ROAD: tuple[tuple[Behaviour, str, bool, int | None], ...] = (
    ({"name": "reset"}, "connection", True, None),
    ({"name": "reset_midway"}, "connection", True, None),
    ({"name": "error_400"}, "bad_request", False, 400),
    ({"name": "error_401"}, "unauthorized", False, 401),
    ({"name": "error_404"}, "model_not_found", False, 404),
    ({"name": "error_429"}, "rate_limited", True, 429),
    ({"name": "error_500"}, "server_error", True, 500),
    ({"name": "error_503"}, "server_error", True, 503),
    ({"name": "bad_key"}, "unauthorized", False, 400),
    ({"name": "too_long"}, "context_too_long", False, 400),
    ({"name": "garbled"}, "unreadable", True, None),
    ({"name": "honest", "max_input_tokens": 5}, "context_too_long", False, 400),
)

ENDINGS: tuple[tuple[Behaviour, FinishReason], ...] = (
    ({"name": "honest"}, "stop"),
    ({"name": "empty"}, "stop"),
    ({"name": "blank"}, "stop"),
    ({"name": "thoughts_only"}, "stop"),
    ({"name": "please_provide"}, "stop"),
    ({"name": "continued_chat"}, "stop"),
    ({"name": "tool_call"}, "tool_call"),
    ({"name": "cut"}, "length"),
    ({"name": "cut_parseable"}, "length"),
    ({"name": "safety"}, "blocked"),
    ({"name": "safety_empty"}, "blocked"),
    ({"name": "recitation"}, "blocked"),
    ({"name": "text", "text": "{}", "finish": "PROHIBITED_CONTENT"}, "blocked"),
    ({"name": "text", "text": "{}", "finish": "BLOCKLIST"}, "blocked"),
    ({"name": "text", "text": "{}", "finish": "SPII"}, "blocked"),
    ({"name": "blocked_prompt"}, "blocked"),
    ({"name": "honest", "block_if": "vault"}, "blocked"),
    ({"name": "text", "text": "{}", "finish": "OTHER"}, "other"),
    ({"name": "text", "text": "{}", "finish": "LANGUAGE"}, "other"),
    ({"name": "text", "text": "", "finish": "MALFORMED_FUNCTION_CALL"}, "other"),
    ({"name": "text", "text": "{}", "finish": "A_REASON_OF_TOMORROW"}, "other"),
    ({"name": "unfinished"}, "other"),
)


def name_of(value: object) -> str | None:
    if not isinstance(value, dict):
        return None
    return "-".join(str(part) for key, part in value.items() if key != "text")


WEATHER = ToolSpec(
    name="weather",
    description="How warm it is.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
SIGNATURE = "c2lnbmVkIGJ5IHRoZSBtb2RlbA=="
ASKS: Behaviour = {
    "name": "calls",
    "text": "Let me look.",
    "calls": [{"name": "weather", "args": {"city": "Lisbon"}}, {"name": "weather", "args": {"city": "\x00Faro"}}],
    "signature": SIGNATURE,
}


class TestTools:
    async def test_are_declared_and_their_calls_come_after_the_text(self, gemini: Gemini) -> None:
        gemini.script("chat", ASKS)
        async with models(gemini) as registry:
            events = [event async for event in registry.chat().step(replace(CHAT, tools=(WEATHER,)))]

        (declared,) = gemini.requests("chat")[0]["body"]["tools"][0]["functionDeclarations"]
        assert (declared["name"], declared["description"]) == ("weather", "How warm it is.")
        assert declared["parameters_json_schema"]["required"] == ["city"]
        *deltas, first, second, finish = events
        assert said(deltas) == "Let me look."
        assert isinstance(first, ToolCall)
        assert isinstance(second, ToolCall)
        assert [(call.name, call.arguments) for call in (first, second)] == [
            ("weather", {"city": "Lisbon"}),
            ("weather", {"city": "Faro"}),
        ]
        assert (first.details, second.details) == ({"provider": "google", "thought_signature": SIGNATURE}, {})
        assert isinstance(finish, StepFinish)
        assert finish.reason == "tool_call"

    async def test_none_are_declared_where_none_are_offered(self, gemini: Gemini) -> None:
        async with models(gemini) as registry:
            await heard(registry.chat())

        assert "tools" not in gemini.requests("chat")[0]["body"]

    @pytest.mark.parametrize(
        ("details", "sent"),
        [
            ({"provider": "google", "thought_signature": SIGNATURE}, True),
            ({"provider": "somebody else", "thought_signature": SIGNATURE}, False),
            ({"provider": "google", "thought_signature": "no base64 at all"}, False),
            ({"provider": "google", "thought_signature": 7}, False),
            ("a text", False),
        ],
    )
    async def test_a_call_goes_back_with_its_own_providers_signature_alone(
        self, gemini: Gemini, details: object, *, sent: bool
    ) -> None:
        """If a client stored something else instead, the signature is lost, but the chat goes on."""
        call = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {}, "details": details}
        context = (
            ContextMessage(role="user", content="How warm is it?"),
            ContextMessage(role="assistant", content="", parts=(call,)),
        )
        async with models(gemini) as registry:
            await heard(registry.chat(), ChatRequest(messages=context))

        part = gemini.requests("chat")[0]["body"]["contents"][1]["parts"][0]
        assert (base64.urlsafe_b64decode(part["thoughtSignature"]) == base64.b64decode(SIGNATURE)) is sent


@pytest.mark.parametrize(("behaviour", "reason", "retryable", "status"), ROAD, ids=name_of)
class TestTheRoad:
    async def test_a_proposal_fails_with_a_word(
        self, gemini: Gemini, behaviour: Behaviour, reason: str, retryable: object, status: int | None
    ) -> None:
        gemini.script("compaction", behaviour)
        async with models(gemini) as registry:
            with pytest.raises(ModelUnavailableError) as caught:
                await registry.summarizer().ask(REQUEST)

        error = caught.value
        assert (error.reason, error.retryable, error.status) == (reason, retryable, status)
        assert_silent(error)
        assert len(gemini.requests("compaction")) == 1, "the ladder is ours: no layer below may repeat a call"

    async def test_a_step_fails_with_the_same_word(
        self, gemini: Gemini, behaviour: Behaviour, reason: str, retryable: object, status: int | None
    ) -> None:
        tries = 2 if behaviour["name"] == "reset" else 1
        gemini.script("chat", *[behaviour] * tries)
        async with models(gemini) as registry:
            with pytest.raises(ModelUnavailableError) as caught:
                await heard(registry.chat())

        error = caught.value
        assert (error.reason, error.retryable, error.status) == (reason, retryable, status)
        assert_silent(error)
        assert len(gemini.requests("chat")) == tries


async def test_a_connection_that_breaks_before_the_reply_is_tried_once_more(gemini: Gemini) -> None:
    gemini.script("chat", "reset")
    async with models(gemini) as registry:
        text, finish, _ = await heard(registry.chat())

    assert text
    assert finish.reason == "stop"
    assert len(gemini.requests("chat")) == 2


async def test_the_wait_that_google_asks_for_is_passed_on(gemini: Gemini) -> None:
    gemini.script("compaction", "error_429", "error_503")
    async with models(gemini) as registry:
        for wait in (14.0, None):
            with pytest.raises(ModelUnavailableError) as caught:
                await registry.summarizer().ask(REQUEST)
            assert caught.value.retry_after == wait


def assert_silent(error: ModelUnavailableError) -> None:
    """Insist that an error shows neither the conversation, the key nor the provider's words, even in a traceback."""
    shown = "".join(traceback.format_exception(error)) + repr(error.args)
    for word in (SECRET, KEY, "overloaded", "internal error has occurred", "API key not valid", "Bad Gateway"):
        assert word not in shown


@pytest.mark.parametrize(("behaviour", "finish"), ENDINGS, ids=name_of)
class TestEndings:
    async def test_a_proposal_says_how_it_ended(
        self, gemini: Gemini, behaviour: Behaviour, finish: FinishReason
    ) -> None:
        gemini.script("compaction", behaviour)
        async with models(gemini) as registry:
            proposal = await registry.summarizer().ask(REQUEST)

        assert proposal.finish == finish
        assert proposal.called_tool == (finish == "tool_call")
        assert proposal.usage.input_tokens > 0

    async def test_a_step_says_how_it_ended(self, gemini: Gemini, behaviour: Behaviour, finish: FinishReason) -> None:
        gemini.script("chat", behaviour)
        async with models(gemini) as registry:
            _, end, _ = await heard(registry.chat())

        assert end.reason == finish


class TestCandidates:
    """The candidate is the model's own text; the gate's task is to judge it."""

    async def proposed(self, gemini: Gemini, behaviour: Behaviour) -> str:
        gemini.script("compaction", behaviour)
        async with models(gemini) as registry:
            return (await registry.summarizer().ask(REQUEST)).text

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("empty", ""),
            ("blank", " \n\t \n"),
            ("thoughts_only", ""),
            ("please_provide", PLEASE_PROVIDE),
            ("continued_chat", CONTINUED_CHAT),
            ("tool_call", ""),
            ("safety_empty", ""),
            ("blocked_prompt", ""),
        ],
    )
    async def test_no_candidate(self, gemini: Gemini, name: str, text: str) -> None:
        assert await self.proposed(gemini, {"name": name}) == text

    @pytest.mark.parametrize("name", ["cut_parseable", "safety", "recitation"])
    async def test_ended_badly_with_parseable_text(self, gemini: Gemini, name: str) -> None:
        assert json.loads(await self.proposed(gemini, {"name": name}))["logos"]

    @pytest.mark.parametrize("name", ["cut", "invalid_json", "raw_nul"])
    async def test_unparseable(self, gemini: Gemini, name: str) -> None:
        with pytest.raises(ValueError, match=r"line \d+ column"):
            json.loads(await self.proposed(gemini, {"name": name}))

    async def test_skeleton(self, gemini: Gemini) -> None:
        assert not any(json.loads(await self.proposed(gemini, {"name": "skeleton"})).values())

    async def test_missing_fields(self, gemini: Gemini) -> None:
        assert list(json.loads(await self.proposed(gemini, {"name": "missing_fields"}))) == ["logos"]

    async def test_larger_than_its_span(self, gemini: Gemini) -> None:
        assert len(await self.proposed(gemini, {"name": "larger"})) > sum(len(text) for _, text in LINES)

    @pytest.mark.parametrize(("language", "word"), [("zh", "用户"), ("de", "Nutzer"), ("ru", "Пользователь")])
    async def test_another_language(self, gemini: Gemini, language: str, word: str) -> None:
        assert word in await self.proposed(gemini, {"name": "foreign", "language": language})

    async def test_nul_and_lone_surrogates_arrive_as_they_are(self, gemini: Gemini) -> None:
        nul = json.loads(await self.proposed(gemini, {"name": "nul"}))
        escaped = json.loads(await self.proposed(gemini, {"name": "escaped_surrogate"}))
        raw = json.loads(await self.proposed(gemini, {"name": "surrogate"}))
        assert nul["conversation_summary"].endswith("\x00")
        assert escaped["conversation_summary"].endswith("\ud800")
        assert raw["conversation_summary"].endswith("\ud800")

    async def test_huge(self, gemini: Gemini) -> None:
        assert len(await self.proposed(gemini, {"name": "huge", "bytes": 2_000_000})) > 2_000_000

    async def test_nested(self, gemini: Gemini) -> None:
        assert await self.proposed(gemini, {"name": "nested", "depth": 500}) == "[" * 500 + "]" * 500

    async def test_nested_beyond_what_the_client_survives(self, gemini: Gemini) -> None:
        with pytest.raises(ModelUnavailableError, match="unreadable"):
            await self.proposed(gemini, {"name": "nested"})

    async def test_an_invented_fact(self, gemini: Gemini) -> None:
        assert INVENTED in await self.proposed(gemini, {"name": "invented"})

    async def test_forgetful_and_dropping(self, gemini: Gemini) -> None:
        forgetful = json.loads(await self.proposed(gemini, {"name": "forgets"}))
        dropping = json.loads(await self.proposed(gemini, {"name": "drops", "entries": ["F1"]}))
        assert len(forgetful["logos"]) == 1
        assert [item["entry"] for item in dropping["dropped"]] == ["F1"]

    async def test_a_part_of_a_candidate_over_the_honest_one(self, gemini: Gemini) -> None:
        candidate = {"pathos": [{"text": "Warm.", "from": [1], "replaces": []}]}
        written = json.loads(await self.proposed(gemini, {"name": "candidate", "candidate": candidate}))
        assert written["pathos"] == candidate["pathos"]
        assert written["logos"]


class TestReplies:
    async def test_a_broken_stream_keeps_what_came(self, gemini: Gemini) -> None:
        gemini.script("chat", "reset_midway")
        events: list[StepEvent] = []

        async def listen(chat: ChatModel) -> None:
            async for event in chat.step(CHAT):
                events.append(event)  # noqa: PERF401 - what came before the break is the point

        async with models(gemini) as registry:
            with pytest.raises(ModelUnavailableError, match="connection"):
                await listen(registry.chat())
        assert said(events).startswith("You said:")

    async def test_thoughts_are_no_reply(self, gemini: Gemini) -> None:
        async with models(gemini) as registry:
            text, finish, _ = await heard(registry.chat())
        assert "Let me see" not in text
        assert finish.usage.output_tokens > 0

    async def test_what_no_database_can_hold_is_cleaned(self, gemini: Gemini) -> None:
        gemini.script("chat", {"name": "text", "text": "a\x00b \ud800 c \U0001f600 d"})
        async with models(gemini) as registry:
            text, _, _ = await heard(registry.chat())
        assert text.startswith("ab ")
        assert text.endswith(" c \U0001f600 d")
        text.encode()

    async def test_leaving_a_stream_closes_the_connection(self, gemini: Gemini) -> None:
        gemini.script("chat", {"name": "text", "text": "one two three four five", "hold_after": 1})
        async with models(gemini) as registry:
            stream = registry.chat().step(CHAT)
            assert isinstance(await anext(stream), TextDelta)
            await stream.aclose()  # type: ignore[attr-defined]  # an async generator behind the port's type
            for _ in range(200):  # google-genai leaves its response to the collector, generator after generator
                gc.collect()
                await asyncio.sleep(0.05)
                if gemini.requests()[0]["outcome"] != "open":
                    break
            assert gemini.requests()[0]["outcome"] == "client_left"
            gemini.script("chat", {"name": "text", "text": "one two three four five"})
            assert (await heard(registry.chat()))[0], "the client is as good as before"

    async def test_the_state_block_goes_as_it_is(self, gemini: Gemini) -> None:
        block = '<session_state>\n{"logos": ["a < b"]}\n</session_state>'
        context = (
            ContextMessage(role="system", content="Be kind."),
            ContextMessage(role="user", content=block),
            ContextMessage(role="assistant", content="Understood."),
            ContextMessage(role="user", content="Go on."),
        )
        async with models(gemini) as registry:
            await heard(registry.chat(), ChatRequest(messages=context))
        body = gemini.requests("chat")[0]["body"]
        assert [part["text"] for part in body["systemInstruction"]["parts"]] == ["Be kind."]
        texts = [[part["text"] for part in content["parts"]] for content in body["contents"]]
        assert texts == [[block], ["Understood."], ["Go on."]]


class TestTime:
    async def test_one_deadline_bounds_a_proposal(self, gemini: Gemini) -> None:
        gemini.script("compaction", "hang")
        async with models(gemini, timeout=0.4) as registry:
            started = time.monotonic()
            with pytest.raises(ModelUnavailableError) as caught:
                await registry.summarizer().ask(REQUEST)
        assert (caught.value.reason, caught.value.retryable) == ("timeout", True)
        assert time.monotonic() - started > 0.3
        assert await outcome_of_first(gemini) == "client_left"
        assert len(gemini.requests()) == 1, "no time is left for a second try"

    async def test_one_deadline_bounds_a_step(self, gemini: Gemini) -> None:
        gemini.script("chat", "hang")
        async with models(gemini, timeout=0.4) as registry:
            with pytest.raises(ModelUnavailableError, match="timeout"):
                await heard(registry.chat())

    @pytest.mark.daily(1)
    @pytest.mark.parametrize("has_words", [True, False], ids=["words", "control"])
    async def test_what_was_written_until_the_deadline_stays(self, gemini: Gemini, *, has_words: bool) -> None:
        """Control: thoughts alone are no reply."""
        said_first = {"text": "one two three four five"} if has_words else {"text": "", "thoughts": "Well, well, well."}
        gemini.script("chat", {"name": "text", **said_first, "hold_after": 2})
        async with models(gemini, timeout=0.4) as registry:
            if has_words:
                text, finish, _ = await heard(registry.chat())
                assert (text, finish.reason) == ("one two th", "other")
            else:
                with pytest.raises(ModelUnavailableError, match="timeout"):
                    await heard(registry.chat(), replace(CHAT, reasoning="asked"))

    async def test_late_is_fine(self, gemini: Gemini) -> None:
        gemini.script("compaction", {"name": "honest", "delay": 0.3})
        async with models(gemini) as registry:
            assert (await registry.summarizer().ask(REQUEST)).finish == "stop"

    async def test_a_cancelled_call_lets_go_at_once(self, gemini: Gemini) -> None:
        gemini.script("compaction", "hang")
        async with models(gemini) as registry:
            call = asyncio.create_task(registry.summarizer().ask(REQUEST))
            await asyncio.to_thread(gemini.wait_for, "compaction")
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        assert await outcome_of_first(gemini) == "client_left"

    async def test_nobody_listens(self, gemini: Gemini) -> None:
        async with models(gemini, url="http://127.0.0.1:9") as registry:
            with pytest.raises(ModelUnavailableError, match="connection"):
                await registry.summarizer().ask(REQUEST)

    async def test_calls_hold_until_they_are_released(self, gemini: Gemini) -> None:
        gemini.script("compaction", {"name": "honest", "hold": True})
        async with models(gemini) as registry:
            call = asyncio.create_task(registry.summarizer().ask(REQUEST))
            await asyncio.to_thread(gemini.wait_for, "compaction")
            assert not call.done()
            gemini.release()
            assert (await call).finish == "stop"


class TestTheScript:
    async def test_the_next_n_calls_fail_and_the_default_follows(self, gemini: Gemini) -> None:
        gemini.script("compaction", {"name": "error_500", "times": 2}, default="skeleton")
        async with models(gemini) as registry:
            for _ in range(2):
                with pytest.raises(ModelUnavailableError):
                    await registry.summarizer().ask(REQUEST)
            proposal = await registry.summarizer().ask(REQUEST)
            text, _, _ = await heard(registry.chat())
        assert not any(json.loads(proposal.text).values())
        assert text.startswith("You said"), "chat has a queue of its own"

    def test_an_unknown_behaviour_is_refused(self, gemini: Gemini) -> None:
        with pytest.raises(httpx.HTTPStatusError):
            gemini.script("chat", "juggle")

    @pytest.mark.long
    async def test_as_a_process_of_its_own(self) -> None:
        with gemini_process() as gemini:
            gemini.script("compaction", "error_503")
            async with models(gemini) as registry:
                with pytest.raises(ModelUnavailableError, match="server_error"):
                    await registry.summarizer().ask(REQUEST)
                assert (await registry.summarizer().ask(REQUEST)).finish == "stop"
            assert [item["outcome"] for item in gemini.requests()] == ["answered", "answered"]

    def test_every_behaviour_is_tried_here(self) -> None:
        """Every fault must be named by a test of the models, so that somebody has seen it."""
        here = [Path(__file__), Path(__file__).with_name("test_detailing.py")]
        tried = "".join(path.read_text(encoding="utf-8") for path in here)
        assert [name for name in BEHAVIOURS if f'"{name}"' not in tried] == []


async def outcome_of_first(gemini: Gemini) -> str:
    """The outcome of the first call, once it is over."""
    for _ in range(250):
        outcome = str(gemini.requests()[0]["outcome"])
        if outcome != "open":
            return outcome
        await asyncio.sleep(0.02)
    return "open"

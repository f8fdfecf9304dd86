"""OpenAI's Responses through the real client, before a scripted server that stores what it is told to store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.core.context.formats.calls import STUB_RESULT
from app.core.model.errors import ModelUnavailableError
from app.core.model.model_io import (
    ChatRequest,
    ContextMessage,
    Continuation,
    StepEvent,
    StepFinish,
    SummaryRequest,
    TextDelta,
    ToolCall,
    ToolSpec,
)
from app.core.model.schemas.session import SESSION
from app.core.text.parts import Part
from app.providers.keys import Keys
from app.providers.registry import ModelRegistry
from tests.integration.test_models import said, talk
from tests.openai_server import OpenAI

MODEL = "openai-responses:gpt-5"
TOOL = ToolSpec(name="look_up", description="Looks up.", parameters={"type": "object", "properties": {}})
SYSTEM = ContextMessage(role="system", content="Be kind.")
CALLS = {"text": "Let me see.", "calls": [{"name": "look_up", "args": {"of": "a"}}, {"name": "look_up", "args": {}}]}


@pytest.fixture
async def registry(openai: OpenAI) -> AsyncIterator[ModelRegistry]:
    registry = ModelRegistry(chat=MODEL, compaction=MODEL, keys=Keys(openai_api_key="key", openai_base_url=openai.url))
    yield registry
    await registry.close()


def user(content: str, seq: int = 1) -> ContextMessage:
    return ContextMessage(role="user", content=content, seq=seq)


def result(of: str, content: str) -> ContextMessage:
    part = {"type": "tool_result", "tool_call_id": of, "name": "look_up", "content": content}
    return ContextMessage(role="tool", content="", parts=(part,), seq=9)


async def step(registry: ModelRegistry, *messages: ContextMessage, **fields: Any) -> list[StepEvent]:
    request = ChatRequest(messages=(SYSTEM, *messages), tools=(TOOL,), **fields)
    return [event async for event in registry.chat().step(request)]


def response_id(events: list[StepEvent]) -> str:
    finish = events[-1]
    assert isinstance(finish, StepFinish)
    assert finish.response_id is not None
    return finish.response_id


def calls_in(events: list[StepEvent]) -> list[ToolCall]:
    return [event for event in events if isinstance(event, ToolCall)]


def stored(call: ToolCall, id_: str) -> Part:
    """A call as the service stores it, under an id of the service's own."""
    details = {"details": dict(call.details)}
    return {"type": "tool_call", "id": id_, "name": call.name, "arguments": dict(call.arguments), **details}


async def refusal(registry: ModelRegistry, **fields: Any) -> ModelUnavailableError:
    with pytest.raises(ModelUnavailableError) as caught:
        await step(registry, user("Hello"), **fields)
    return caught.value


class TestTheProfile:
    def test_says_stateful(self, registry: ModelRegistry) -> None:
        profile = registry.chat().profile
        assert (profile.name, profile.stateful, profile.calls_tools) == (MODEL, True, True)

    def test_control_chat_completions_of_the_same_provider_are_not(self, registry: ModelRegistry) -> None:
        assert not registry.chat("openai:gpt-5").profile.stateful

    def test_limits_are_those_of_the_same_model_under_chat_completions(self, registry: ModelRegistry) -> None:
        names = (MODEL, "openai:gpt-5")
        one, other = (registry.chat(name).profile for name in names)
        assert (one.input_limit, one.output_limit) == (other.input_limit, other.output_limit)


class TestAStep:
    async def test_streams_and_ends_with_the_id_to_go_on_from(self, registry: ModelRegistry, openai: OpenAI) -> None:
        openai.script("Good day to you, whoever you are.")
        events = await step(registry, user("Hello"))
        assert said(events) == "Good day to you, whoever you are."
        assert sum(isinstance(event, TextDelta) for event in events) > 1
        assert response_id(events) in openai.kept
        body = openai.last.body
        assert (body["model"], body["store"], body["stream"]) == ("gpt-5", True, True)
        assert "previous_response_id" not in body

    async def test_the_system_prompt_is_sent_as_instructions_each_time(
        self, registry: ModelRegistry, openai: OpenAI
    ) -> None:
        first = await step(registry, user("Hello"))
        await step(registry, user("And now?"), continues=Continuation(response_id=response_id(first)))
        assert [one.body["instructions"] for one in openai.chats] == ["Be kind."] * 2
        assert [item["role"] for one in openai.chats for item in one.input] == ["user", "user"]

    async def test_going_on_sends_only_what_is_new_and_the_model_sees_all(
        self, registry: ModelRegistry, openai: OpenAI
    ) -> None:
        openai.script("Good day.")
        first = await step(registry, user("My cat is Tilda."))
        second = await step(registry, user("Her name?"), continues=Continuation(response_id=response_id(first)))
        assert openai.last.texts == ["Her name?"]
        assert openai.last.continues == response_id(first)
        assert "My cat is Tilda." in str(openai.last.seen)
        assert response_id(second) != response_id(first)

    async def test_what_others_said_meanwhile_goes_along(self, registry: ModelRegistry, openai: OpenAI) -> None:
        first = await step(registry, user("Hello"))
        came = (
            ContextMessage(role="assistant", content="A reply that was broken", seq=3),
            ContextMessage(role="system", content="Be brief.", seq=4),
            user("And now?", 5),
        )
        await step(registry, *came, continues=Continuation(response_id=response_id(first)))
        assert [item["role"] for item in openai.last.input] == ["assistant", "system", "user"]
        assert openai.last.texts == ["A reply that was broken", "Be brief.", "And now?"]


class TestToolCalls:
    async def test_results_go_out_under_the_ids_that_the_provider_knows(
        self, registry: ModelRegistry, openai: OpenAI
    ) -> None:
        openai.script(CALLS, "Both are there.")
        first = await step(registry, user("Look up both."))
        made = calls_in(first)
        assert [call.details["call_id"] for call in made] == [call.id for call in made]
        ours = [stored(call, f"ours_{number}") for number, call in enumerate(made)]
        continues = Continuation(response_id=response_id(first), open_calls=tuple(ours))
        answered = await step(registry, result("ours_1", "two"), result("ours_0", "one"), continues=continues)
        assert said(answered) == "Both are there."
        assert [(item["type"], item["call_id"], item["output"]) for item in openai.last.input] == [
            ("function_call_output", made[0].id, "one"),
            ("function_call_output", made[1].id, "two"),
        ]

    async def test_a_call_that_never_got_a_result_gets_the_stub(self, registry: ModelRegistry, openai: OpenAI) -> None:
        openai.script(CALLS)
        first = await step(registry, user("Look up both."))
        ours = [stored(call, f"ours_{number}") for number, call in enumerate(calls_in(first))]
        continues = Continuation(response_id=response_id(first), open_calls=tuple(ours))
        await step(registry, result("ours_0", "one"), user("Never mind."), continues=continues)
        assert openai.last.texts == ["one", STUB_RESULT, "Never mind."]

    async def test_a_result_of_an_answered_call_is_told_in_words(self, registry: ModelRegistry, openai: OpenAI) -> None:
        first = await step(registry, user("Hello"))
        continues = Continuation(response_id=response_id(first))
        await step(registry, result("gone", "late news"), user("And?"), continues=continues)
        assert {item.get("role") for item in openai.last.input} == {"user"}
        assert "[result of look_up: late news]" in " ".join(openai.last.texts)

    async def test_calls_after_the_response_go_with_their_results(
        self, registry: ModelRegistry, openai: OpenAI
    ) -> None:
        first = await step(registry, user("Hello"))
        call = {"type": "tool_call", "id": "ours", "name": "look_up", "arguments": {}, "details": {"call_id": "lost"}}
        made = ContextMessage(role="assistant", content="", parts=(call,), seq=3)
        await step(registry, made, result("ours", "one"), continues=Continuation(response_id=response_id(first)))
        assert [(item["type"], item["call_id"]) for item in openai.last.input] == [
            ("function_call", "ours"),
            ("function_call_output", "ours"),
        ]

    async def test_control_without_the_open_calls_the_provider_refuses(
        self, registry: ModelRegistry, openai: OpenAI
    ) -> None:
        openai.script(CALLS)
        first = await step(registry, user("Look up both."))
        found = await refusal(registry, continues=Continuation(response_id=response_id(first)))
        assert found.reason == "bad_request"

    @pytest.mark.parametrize("details", [None, "x", {"call_id": 7}, {"call_id": ""}, {}])
    async def test_details_that_make_no_sense_are_left_out(
        self, registry: ModelRegistry, openai: OpenAI, details: Any
    ) -> None:
        """Only the service stores calls that are on the provider's side; stored calls are not trusted all the same."""
        call = {"type": "tool_call", "id": "ours", "name": "look_up", "arguments": {}, "details": details}
        first = await step(registry, user("Hello"))
        continues = Continuation(response_id=response_id(first), open_calls=(call,))
        with pytest.raises(ModelUnavailableError):
            await step(registry, result("ours", "one"), continues=continues)
        assert openai.last.input[0]["call_id"] == "ours"


class TestRefusals:
    async def test_a_response_that_is_not_kept(self, registry: ModelRegistry, openai: OpenAI) -> None:
        first = await step(registry, user("Hello"))
        openai.forget()
        found = await refusal(registry, continues=Continuation(response_id=response_id(first)))
        assert (found.reason, found.retryable, found.status) == ("previous_response_not_found", False, 400)

    async def test_a_chain_beyond_the_window(self, registry: ModelRegistry, openai: OpenAI) -> None:
        first = await step(registry, user("word " * 200))
        openai.window = 100
        found = await refusal(registry, continues=Continuation(response_id=response_id(first)))
        assert found.reason == "context_too_long"

    async def test_not_found_by_status_alone(self, registry: ModelRegistry, openai: OpenAI) -> None:
        openai.script({"status": 404, "message": "Not found."})
        assert (await refusal(registry)).reason == "model_not_found"


async def test_an_answer_that_broke_off_says_so(registry: ModelRegistry, openai: OpenAI) -> None:
    openai.script({"text": "It was a dark", "incomplete": "max_output_tokens"})
    finish = (await step(registry, user("Tell me a story.")))[-1]
    assert isinstance(finish, StepFinish)
    assert finish.reason == "length"


async def test_nothing_is_kept_of_a_summary(registry: ModelRegistry, openai: OpenAI) -> None:
    request = SummaryRequest(schema=SESSION, messages=talk(("user", "Our goal is a choir of 40 by 3 May.")))
    proposal = await registry.summarizer().ask(request)
    assert "choir" in proposal.text
    assert openai.asked[-1].body["store"] is False
    assert not openai.kept

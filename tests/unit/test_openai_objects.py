"""What clients of OpenAI's API read: ids, items, objects with every field, and events in the API's order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from types import SimpleNamespace
from typing import Any, Final, Literal
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import Headers

from app.core.model.conversation import Message
from app.core.model.errors import (
    ContextOverWindowError,
    DomainError,
    FieldError,
    InvalidInputError,
    ModelFailedError,
    NotFoundError,
    RateLimitedError,
    TooLargeError,
    UnauthenticatedError,
)
from app.core.model.model_io import CallSettings, FinishReason, ToolName, ToolSpec
from app.http.notifications import Notifier
from app.http.openai import ids
from app.http.openai.answers import Answering, chat_chunks, whole_chat, whole_response
from app.http.openai.chat_chunks import ChatChunks
from app.http.openai.chat_requests import ChatCompletionRequest, ChatMessage
from app.http.openai.errors import is_openai_path, openai_error, openai_status
from app.http.openai.inputs import name_of, reason_not_to_store
from app.http.openai.items import CallItem, InputItem, draft_of, items_of, joined_steps
from app.http.openai.resources import DEFAULT_ECHO, Json, chat_completion, list_object, response_object
from app.http.openai.response_events import ResponseEvents, event_after
from app.http.openai.response_requests import ResponseRequest
from app.http.openai.sending import send_stream
from app.http.shutdown import Stopping
from app.settings import Settings
from app.usecases.history.drafts import MessageDraft
from app.usecases.openai.answering import AnswerEvent, Ended, Failed, ServiceEvent, TextDelta, ToolsCalled
from app.usecases.openai.conversation_names import ConversationName
from tests.rows import each
from tests.unit.timing import assert_linear_in

ONE: Final = UUID("0193e000-0000-7000-8000-000000000001")
RESPONSE: Final = frozenset(
    {
        "id", "object", "created_at", "completed_at", "status", "incomplete_details", "model", "previous_response_id",
        "instructions", "output", "error", "tools", "tool_choice", "truncation", "parallel_tool_calls", "text", "top_p",
        "presence_penalty", "frequency_penalty", "top_logprobs", "temperature", "reasoning", "usage",
        "max_output_tokens", "max_tool_calls", "store", "background", "service_tier", "metadata", "safety_identifier",
        "prompt_cache_key", "conversation", "user",
    }
)  # fmt: skip
NOT_NULL: Final = {
    "presence_penalty": 0.0, "frequency_penalty": 0.0, "top_logprobs": 0, "temperature": 1.0, "top_p": 1.0,
    "tool_choice": "auto", "truncation": "disabled", "background": False, "service_tier": "default", "tools": [],
    "parallel_tool_calls": True, "text": {"format": {"type": "text"}}, "metadata": {}, "store": True,
}  # fmt: skip
PLACE: Final = {"item_id", "output_index", "content_index"}
EVENTS: Final[dict[str, set[str]]] = {
    "response.created": {"response"},
    "response.in_progress": {"response"},
    "response.output_item.added": {"output_index", "item"},
    "response.content_part.added": {*PLACE, "part"},
    "response.output_text.delta": {*PLACE, "delta", "logprobs"},
    "response.output_text.done": {*PLACE, "text", "logprobs"},
    "response.content_part.done": {*PLACE, "part"},
    "response.output_item.done": {"output_index", "item"},
    "response.function_call_arguments.delta": {"item_id", "output_index", "delta"},
    "response.function_call_arguments.done": {"item_id", "output_index", "name", "arguments"},
    "response.completed": {"response"},
    "response.incomplete": {"response"},
    "response.failed": {"response"},
}
"""Every event that is sent, and its fields beside ``type`` and ``sequence_number``."""
TOLD: Final = ("response.output_text.done", "response.content_part.done", "response.output_item.done")
ITEM: Final[TypeAdapter[Any]] = TypeAdapter(InputItem, config={"defer_build": True})
BEGUN: Final = ("response.created", "response.in_progress")
OPENED: Final = ("response.output_item.added", "response.content_part.added")
CALLED: Final = (
    "response.output_item.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
)


def events_maker() -> ResponseEvents:
    def resource(status: str, output: Any) -> Json:
        return response_object("resp_1", created_at=1, status=status, echo={}, output=output)

    return ResponseEvents(resource=resource, message="msg_1", call_id="fc_{}".format, reasoning_id="rs_{}".format)


def played(pieces: list[str | None], calls: int, end: str) -> list[Json]:
    """The events of a whole stream; ``None`` stands for a call of the service's own tool."""
    events = events_maker()
    made = list(events.begin())
    for piece in pieces:
        if piece is None:
            events.boundary()
        else:
            made += events.text(piece)
    for number in range(calls):
        made += events.call(number, f"call_{number}", "look", '{"a": 1}')
    made += events.fail() if end == "failed" else events.complete(end)
    return made


# Ids


@given(st.uuids(), st.integers(0, 255))
def test_an_id_leads_back_to_what_it_was_made_of(id_: UUID, part: int) -> None:
    assert ids.uuid_of(ids.conversation_id(id_), "conv") == id_
    assert ids.uuid_of(ids.response_id(id_), "resp") == id_
    assert ids.uuid_of(ids.response_id(id_), "conv") is None
    assert ids.item_of(ids.message_id(id_)) == ids.ItemId(id_)
    assert ids.item_of(ids.call_item_id(id_, part)) == ids.ItemId(id_, part)


@given(st.text(max_size=60))
def test_what_is_no_id_is_none(text: str) -> None:
    assert ids.item_of(text) is None
    assert ids.uuid_of(text, "conv") is None


@pytest.mark.parametrize("text", ["msg_" + "0" * 32 + "_1", "fc_" + "0" * 32, "conv_" + "0" * 32, "MSG_" + "0" * 32])
def test_an_item_is_a_message_or_one_part_of_it(text: str) -> None:
    assert ids.item_of(text) is None


# Errors


@each(
    ("error", "status", "expected"),
    [
        (UnauthenticatedError("No."), 401, (401, "authentication_error", None, "invalid_api_key")),
        (InvalidInputError("x", errors=[FieldError(field="n", message="x")]), 422,
         (400, "invalid_request_error", "n", "invalid_input")),
        (InvalidInputError.of("content", "x"), 422, (400, "invalid_request_error", "input", "invalid_input")),
        (InvalidInputError.of("tool_results.0.tool_call_id", "x"), 422,
         (400, "invalid_request_error", "input", "invalid_input")),
        (InvalidInputError.of("messages.0.content", "x"), 422,
         (400, "invalid_request_error", "messages.0.content", "invalid_input")),
        (InvalidInputError.of("messages.0.content.list.0.text.text", "x"), 422,
         (400, "invalid_request_error", "messages.0.content.0.text", "invalid_input")),
        (InvalidInputError.of("input.list.0.content.list.0.input_text.text", "x"), 422,
         (400, "invalid_request_error", "input.0.content.0.input_text.text", "invalid_input")),
        (InvalidInputError.of("input.list.0.content.text", "x"), 422,
         (400, "invalid_request_error", "input.0.content", "invalid_input")),
        (InvalidInputError.of("text.format", "x"), 422,
         (400, "invalid_request_error", "text.format", "invalid_input")),
        (InvalidInputError("x", code="model_not_allowed"), 422,
         (404, "invalid_request_error", None, "model_not_found")),
        (ContextOverWindowError("x"), 503, (400, "invalid_request_error", None, "context_length_exceeded")),
        (ModelFailedError("x", code="model_unavailable", extra={"reason": "bad_request"}), 503,
         (400, "invalid_request_error", None, "model_unavailable")),
        (ModelFailedError("x", code="blocked", extra={"reason": "blocked"}), 502,
         (400, "invalid_request_error", None, "blocked")),
        (ModelFailedError("x", code="model_unavailable", extra={"reason": "unauthorized"}), 503,
         (503, "server_error", None, "model_unavailable")),
        (RateLimitedError("x"), 429, (429, "rate_limit_error", None, "rate_limit_exceeded")),
        (DomainError("x"), 500, (500, "server_error", None, "internal_error")),
    ],
)  # fmt: skip
def test_errors_have_that_apis_words(error: DomainError, status: int, expected: tuple[Any, ...]) -> None:
    there = openai_status(error, status)
    told = openai_error(error, there)
    assert (there, told["type"], told["param"], told["code"]) == expected
    assert told.keys() == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    ("field", "of_a_chat", "of_a_response"),
    [
        ("input", "messages", "input"),
        ("content", "messages", "input"),
        ("messages.0.content", "messages.0.content", "messages.0.content"),
        ("reasoning_effort", "reasoning_effort", "reasoning.effort"),
        ("response_format.schema", "response_format.schema", "text.format.schema"),
        ("settings.max_tokens", "max_tokens", "max_output_tokens"),
        ("temperature", "temperature", "temperature"),
    ],
)
def test_a_field_is_named_as_its_request_has_it(field: str, of_a_chat: str, of_a_response: str) -> None:
    error = InvalidInputError.of(field, "x")
    assert openai_error(error, 400, path="/v1/chat/completions")["param"] == of_a_chat
    assert openai_error(error, 400, path="/v1/responses")["param"] == of_a_response


def test_an_id_as_the_contract_has_it_is_answered_with_its_form_here() -> None:
    asked = {"conversation_id": "01a22b80-9285-7780-9f3d-df245828ce63", "item_id": "msg_1"}
    told = openai_error(NotFoundError("No such conversation."), 404, asked)["message"]
    form = " Here its id is 'conv_01a22b80928577809f3ddf245828ce63'."
    assert told == f"There is no item 'msg_1' with conversation '{asked['conversation_id']}'.{form}"
    unknown = openai_error(NotFoundError("No such conversation."), 404, {"conversation_id": "conv_1"})["message"]
    assert unknown == "There is no conversation 'conv_1'."


def test_a_request_that_is_too_long_is_told_in_the_words_that_clients_know() -> None:
    """LiteLLM and LangChain have an error of their own for it, by which they fall back on another model.

    Pi compacts its session, and asks again.
    """
    told = openai_error(TooLargeError("the request has 9 tokens", extra={}), 400)["message"]
    assert told.startswith("Input tokens exceed the configured limit")
    assert told.endswith("reduce the length of the messages: the request has 9 tokens")
    assert openai_error(TooLargeError("it took 9 s", extra={"seconds": 9}), 400)["message"] == "it took 9 s"


def test_an_error_tells_no_secret_back() -> None:
    assert "sk-proj-" not in openai_error(InvalidInputError(f"what is sk-proj-{'a1B2' * 12}?"), 400)["message"]


@pytest.mark.parametrize(
    ("path", "there"), [("/v1", True), ("/v1/x", True), ("/v10", False), ("/conversations", False)]
)
def test_which_paths_are_that_apis(path: str, *, there: bool) -> None:
    assert is_openai_path(path) is there


# Objects


@pytest.mark.parametrize(
    ("id_", "reason"),
    [
        ("0193e000-0000-4000-8000-000000000001", None),
        ("local:Zq8", "temporary"),
        ("temporary:Zq8", "temporary"),
        ("channel:0193e000-0000-4000-8000-000000000001", "temporary"),
    ],
)
def test_only_a_chat_that_open_webui_keeps_is_kept(id_: str, reason: str | None) -> None:
    assert reason_not_to_store(Headers({"X-OpenWebUI-Chat-Id": id_, "X-OpenWebUI-Task": ""})) == reason


def test_no_end_user_is_taken_for_another_whose_long_name_begins_alike() -> None:
    def named(user: str) -> ConversationName | None:
        headers = Headers({"X-OpenWebUI-User-Id": user, "X-OpenWebUI-Chat-Id": "a chat"})
        return name_of(headers, conversation_field=None, metadata=None, user="another")

    longest = named("u" * 255)
    assert longest is not None
    assert longest.user == "u" * 255
    with pytest.raises(InvalidInputError):
        named("u" * 256)


def test_a_response_has_every_field_whatever_was_said() -> None:
    bare = response_object("resp_1", created_at=1, status="in_progress", echo={})
    assert bare.keys() == RESPONSE
    assert {name: bare[name] for name in NOT_NULL} == NOT_NULL
    assert DEFAULT_ECHO.keys() < RESPONSE
    whole = response_object(
        "resp_1", created_at=1, status="incomplete", echo={"temperature": 0.2}, usage={"input_tokens": 5},
        reason="max_output_tokens", conversation="conv_1",
    )  # fmt: skip
    assert (whole["temperature"], whole["conversation"]) == (0.2, {"id": "conv_1"})
    assert whole["incomplete_details"] == {"reason": "max_output_tokens"}
    assert whole["usage"] == {
        "input_tokens": 5, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}, "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 5,
    }  # fmt: skip


def test_a_completion_without_words_says_null_beside_its_calls() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    made = chat_completion("c", created=1, model="m", text="", calls=[call], finish_reason="tool_calls", usage=None)
    assert made["choices"][0]["message"]["content"] is None
    assert made["choices"][0]["message"]["tool_calls"] == [call]


def test_an_empty_list_has_no_ends() -> None:
    assert list_object([], has_more=False) == {
        "object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False,
    }  # fmt: skip


# Items


def message(**fields: Any) -> Message:
    given: dict[str, Any] = {
        "id": ONE, "conversation_id": ONE, "seq": 1, "role": "user", "content": "",
        "created_at": datetime(2026, 11, 22, tzinfo=UTC),
    }  # fmt: skip
    return Message(**given | fields)


CALL: Final = {"type": "tool_call", "id": "call_1", "name": "look", "arguments": {"at": "Paris"}}
RESULT: Final = {"type": "tool_result", "tool_call_id": "call_1", "content": "sunny"}


@pytest.mark.parametrize(
    "item",
    [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi", "annotations": []}]},
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "What is it?"},
            {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "low"}]},
        {"type": "message", "role": "user", "content": [
            {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "low"},
            {"type": "input_text", "text": "This was before, and after:"},
            {"type": "input_image", "image_url": "data:image/png;base64,aGkh", "detail": "low"},
            {"type": "input_text", "text": "What changed?"}]},
        {"type": "message", "role": "user", "content": [
            {"type": "input_file", "file_url": "https://x.test/plan.pdf", "filename": "plan.pdf"}]},
        {"type": "message", "role": "user", "content": [
            {"type": "input_file", "file_data": "data:application/pdf;base64,aGk=", "filename": "plan.pdf"}]},
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": '{"at": "Paris"}'},
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{broken"},
        {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
        {"type": "function_call_output", "call_id": "call_1", "output": [
            {"type": "input_text", "text": "The screen."},
            {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "low"}]},
    ],
)  # fmt: skip
def test_an_item_comes_back_as_it_was_given(item: Json) -> None:
    draft: MessageDraft = draft_of(ITEM.validate_python(item))
    (back,) = items_of(message(role=draft.role, content=draft.content, parts=draft.parts))
    shown = {name: back[name] for name in item}
    if "content" in item:
        shown["content"] = [{name: part[name] for name in given} for part, given in zip(
            back["content"], item["content"], strict=True)]  # fmt: skip
    assert shown == item
    assert back["status"] == "completed"


def test_a_message_is_its_words_and_each_of_its_calls_and_results() -> None:
    said = message(role="assistant", content="I look.", parts=(CALL,))
    assert [item["id"] for item in items_of(said)] == [f"msg_{ONE.hex}", f"fc_{ONE.hex}_0"]
    assert [item["type"] for item in items_of(replace(said, content=""))] == ["function_call"]
    assert items_of(replace(said, status="erased")) == []
    assert items_of(replace(said, status="interrupted"))[0]["status"] == "incomplete"
    (brought,) = items_of(message(role="tool", parts=(RESULT,)))
    assert (brought["type"], brought["output"]) == ("function_call_output", "sunny")


def words(text: str, role: str = "assistant") -> Json:
    return {"type": "message", "role": role, "content": text}


def call(id_: str) -> Json:
    return {"type": "function_call", "call_id": id_, "name": "look", "arguments": "{}"}


def result(id_: str) -> Json:
    return {"type": "function_call_output", "call_id": id_, "output": "x"}


@pytest.mark.parametrize(
    ("items", "steps"),
    [
        ([words("I look."), call("a"), call("b"), result("a"), result("b")], [("I look.", "ab"), ("", ""), ("", "")]),
        ([call("a"), words("I look."), result("a")], [("I look.", "a"), ("", "")]),
        ([call("a"), result("a"), words("Now this."), call("b")], [("", "a"), ("", ""), ("Now this.", "b")]),
        ([words("One."), words("Two."), call("a")], [("One.", ""), ("Two.", "a")]),
        ([words("One."), call("a"), words("Two.")], [("One.", "a"), ("Two.", "")]),
        ([words("Hello", "user"), call("a")], [("Hello", ""), ("", "a")]),
        ([words("One."), words("Hello", "user"), words("Two.")], [("One.", ""), ("Hello", ""), ("Two.", "")]),
        ([], []),
    ],
)
def test_what_a_model_said_and_called_in_one_step_is_one_message(
    items: list[Json], steps: list[tuple[str, str]]
) -> None:
    messages = list(joined_steps(draft_of(ITEM.validate_python(item)) for item in items))
    calls = ["".join(part["id"] for part in message.parts if part["type"] == "tool_call") for message in messages]
    assert [(message.content, ids_) for message, ids_ in zip(messages, calls, strict=True)] == steps


def test_any_number_of_calls_in_one_step_takes_linear_time() -> None:
    def calls_made(count: int) -> list[MessageDraft]:
        return [draft_of(ITEM.validate_python(call(f"call_{number}"))) for number in range(count)]

    def joining(calls: int) -> Callable[[], object]:
        drafts = calls_made(calls)
        return lambda: list(joined_steps(drafts))

    assert_linear_in(joining, 8_000)
    assert [len(draft.parts) for draft in joined_steps(calls_made(600))] == [256, 256, 88]


@pytest.mark.parametrize("escape", ["\\u0000", "\\ud800"])
def test_arguments_that_nobody_can_store_stay_text(escape: str) -> None:
    given = f'{{"at": "{escape}"}}'
    draft = draft_of(ITEM.validate_python({**call("call_1"), "arguments": given}))
    assert draft.parts[0]["arguments"] == given
    control = draft_of(ITEM.validate_python({**call("call_1"), "arguments": '{"at": "\\ud83d\\ude00"}'}))
    assert control.parts[0]["arguments"] == {"at": "😀"}


@pytest.mark.parametrize(
    "content",
    ["", "  ", [{"type": "input_image", "file_id": "file_1"}], [{"type": "input_image", "image_url": ""}],
     [{"type": "input_image", "image_url": "https://x.test/" + "y" * 9_000}],
     [{"type": "input_image", "image_url": "no address"}], [{"type": "input_file", "file_data": "no data"}],
     [{"type": "input_audio", "input_audio": {"data": "no sound", "format": "wav"}}]],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused(content: Any) -> None:
    item = ITEM.validate_python({"role": "user", "content": content})
    with pytest.raises(ValueError, match=r"empty|stored files|data or an address|at most|is Base64"):
        draft_of(item)


def test_an_image_may_be_given_by_its_address_alone() -> None:
    address = "https://x.test/a.png"
    for shape in (address, {"url": address}):
        item = ITEM.validate_python({"role": "user", "content": [{"type": "image_url", "image_url": shape}]})
        assert [part["url"] for part in draft_of(item).parts] == [address]


@pytest.mark.parametrize("name", ["Anna Berg", "a\n", "", "a" * 65, "<a", "a|b", "a\\b", "a/b"])
def test_a_name_is_kept_within_that_apis_limits(name: str) -> None:
    """Control: a name within the limits is a message's, of any role; a tool has no speaker."""
    with pytest.raises(ValueError, match=r"name\n.*(pattern|at most 64)"):
        ChatMessage(role="user", content="x", name=name)
    roles: tuple[Literal["user", "assistant", "system"], ...] = ("user", "assistant", "system")
    for role in roles:
        for fit in ("Anna_Berg", "Анна:", "a" * 64):
            assert ChatMessage(role=role, content="x", name=fit).draft().metadata == {"name": fit}
        assert ChatMessage(role=role, content="x").draft().metadata == {}
    assert ChatMessage(role="tool", content="x", tool_call_id="c", name="look").draft().metadata == {}


# Streams


@pytest.mark.parametrize(
    ("pieces", "calls", "end", "expected"),
    [
        (["a", "bcdefgh", "i"], 0, "completed",
         (*BEGUN, *OPENED, *["response.output_text.delta"] * 2, *TOLD, "response.completed")),
        ([], 2, "completed", (*BEGUN, *CALLED, *CALLED, "response.completed")),
        (["a"], 1, "completed", (*BEGUN, *OPENED, "response.output_text.delta", *TOLD, *CALLED, "response.completed")),
        (["a"], 0, "incomplete", (*BEGUN, *OPENED, "response.output_text.delta", *TOLD, "response.incomplete")),
        (["a"], 0, "cancelled", (*BEGUN, *OPENED, "response.output_text.delta", *TOLD, "response.incomplete")),
        (["a"], 0, "failed", (*BEGUN, *OPENED, "response.output_text.delta", *TOLD, "response.failed")),
        ([], 0, "failed", (*BEGUN, "response.failed")),
    ],
)  # fmt: skip
def test_the_order_of_a_stream(pieces: list[str | None], calls: int, end: str, expected: tuple[str, ...]) -> None:
    assert tuple(event["type"] for event in played(pieces, calls, end)) == expected


@given(
    st.lists(st.none() | st.text(max_size=5), max_size=8),
    st.integers(0, 3),
    st.sampled_from(["completed", "incomplete", "cancelled", "failed"]),
)
@example(["0", None, "\r", None, "0"], 0, "completed")
def test_laws_of_streams(pieces: list[str | None], calls: int, end: str) -> None:
    events = played(pieces, calls, end)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    for event in events:
        assert event.keys() == {"type", "sequence_number", *EVENTS[event["type"]]}
    deltas = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    output = events[-1]["response"]["output"]
    assert [item["content"][0]["text"] for item in output if item["type"] == "message"] == ([deltas] if deltas else [])
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == output
    assert [event["output_index"] for event in events if event["type"] == "response.output_item.added"] == list(
        range(len(output))
    )
    assert events[-1]["response"]["status"] == end
    words = "".join("\n\n" if piece is None else piece for piece in pieces)
    assert deltas.split() == words.split()
    assert bool(deltas.strip()) == bool(deltas)


@given(
    st.lists(st.none() | st.text(max_size=40), max_size=8),
    st.integers(0, 2),
    st.sampled_from(["completed", "incomplete", "cancelled", "failed"]),
)
def test_all_streams_of_a_response_have_the_same_events(pieces: list[str | None], calls: int, end: str) -> None:
    """Another stream is made from the same text in fewer pieces. So a client can go on after any number."""
    assert played(pieces, calls, end) == played(joined_pieces(pieces), calls, end)


@pytest.mark.parametrize(("characters", "most"), [(5, 1), (80, 10), (4_000, 500), (100_000, 1_500), (3_000_000, 1_700)])
def test_a_long_text_is_not_too_many_events(characters: int, most: int) -> None:
    text = "".join(chr(33 + number % 90) for number in range(characters))
    events = [event for event in played([text], 0, "completed") if "delta" in event]
    assert most / 2 < len(events) <= most
    assert deltas_of(events) == text


def test_a_client_learns_that_the_response_failed_after_a_long_text() -> None:
    (*_, last) = played([], 0, "failed")
    assert event_after(last, 900) == {**last, "sequence_number": 901}
    assert event_after({**last, "type": "response.in_progress"}, 900) is None


def joined_pieces(pieces: list[str | None]) -> list[str | None]:
    runs = groupby(pieces, key=lambda piece: piece is None)
    return [None if is_call else "".join(piece or "" for piece in run) for is_call, run in runs]


def deltas_of(events: list[Json]) -> str:
    return "".join(event.get("delta", "") for event in events)


def test_what_is_said_before_and_after_a_look_up_is_parted() -> None:
    (item,) = played(["I look.", None, "It is sunny."], 0, "completed")[-1]["response"]["output"]
    assert item["content"][0]["text"] == "I look.\n\nIt is sunny."
    item, _ = played(["I look.", None, "\n"], 1, "completed")[-1]["response"]["output"]
    assert item["content"][0]["text"] == "I look."


@pytest.mark.parametrize("with_usage", [True, False])
def test_the_chunks_of_a_completion(*, with_usage: bool) -> None:
    chunks = ChatChunks(id="chatcmpl-1", created=1, model="m", with_usage=with_usage)
    made = [chunks.begin(), *chunks.text("a"), *chunks.call("c1", "f", "{}"), *chunks.call("c2", "g", "{}")]
    made += chunks.end("tool_calls", {"input_tokens": 3, "output_tokens": 4})
    deltas = [chunk["choices"][0]["delta"] for chunk in made if chunk["choices"]]
    assert deltas[0] == {"role": "assistant", "content": "", "refusal": None}
    assert deltas[1] == {"content": "a"}
    assert [delta["tool_calls"][0]["index"] for delta in deltas[2:4]] == [0, 1]
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in made if chunk["choices"]]
    assert reasons == [None, None, None, None, "tool_calls"]
    assert ("usage" in made[0]) is with_usage
    if with_usage:
        assert (made[-1]["choices"], made[-1]["usage"]["total_tokens"]) == ([], 7)


def answered_by(*events: AnswerEvent | DomainError | float) -> Answering:
    """An answer with these events; a number is a pause in seconds, and an error of the program ends it."""

    async def source() -> AsyncGenerator[AnswerEvent, None]:
        for event in events:
            if isinstance(event, DomainError):
                raise event
            if isinstance(event, float):
                await asyncio.sleep(event)
            else:
                yield event

    return Answering(
        id=ONE, reply_id=ONE, created_at=1, model="m", outcome="", source=source(), now=lambda: datetime.now(UTC)
    )


@pytest.mark.parametrize(
    ("finish", "told"),
    [("stop", "stop"), ("length", "length"), ("tool_call", "tool_calls"), ("other", None)],
)
async def test_a_chat_completion_says_why_it_ended_or_nothing_where_nobody_knows(
    finish: FinishReason, told: str | None
) -> None:
    def answering() -> Answering:
        return answered_by(TextDelta("It is sun"), Ended(text="It is sun", finish=finish))

    assert (await whole_chat(answering()))["choices"][0]["finish_reason"] == told
    chunks = [chunk async for chunk in chat_chunks(answering(), with_usage=False)]
    assert chunks[-1]["choices"][0] == {"index": 0, "delta": {}, "logprobs": None, "finish_reason": told}


@pytest.mark.parametrize("form", [{"type": "json_schema"}, {"type": "json_schema", "name": "town", "schema": {}}])
def test_a_schema_in_the_form_of_the_other_api_is_refused_and_not_dropped(form: Json) -> None:
    """Control: in its own form it is taken."""
    whole = {"type": "json_schema", "json_schema": {"name": "town", "schema": {}}}
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    with pytest.raises(ValueError, match="json_schema is missing"):
        ChatCompletionRequest.model_validate({**body, "response_format": form})
    assert ChatCompletionRequest.model_validate({**body, "response_format": whole}).settings_and_tools()[0].output
    with pytest.raises(ValueError, match="schema is missing"):
        ResponseRequest.model_validate({"input": "x", "text": {"format": whole}})


# What a request may call


RECALLED: Final = ServiceEvent("context.recalled", {})
AWAY: Final = ModelFailedError("away", code="model_unavailable")


@pytest.mark.parametrize("failure", [AWAY, Failed(AWAY)])
async def test_a_stream_that_fails_before_its_first_words_is_an_error(failure: DomainError | Failed) -> None:
    """Control: after the first words, and after the longest wait, it is the last event."""
    with pytest.raises(ModelFailedError, match="away"):
        await answered_by(RECALLED, 0.0, failure).wait_for_first_words(20, Stopping())
    early, late = answered_by(RECALLED, TextDelta("Yes"), failure), answered_by(RECALLED, 0.05, failure)
    for answering, seconds in ((early, 20), (late, 0.01)):
        await answering.wait_for_first_words(seconds, Stopping())
        chunks = [chunk async for chunk in chat_chunks(answering, with_usage=False)]
        assert chunks[-1]["error"]["code"] == "model_unavailable"


async def test_who_waits_for_the_first_words_misses_none() -> None:
    answering = answered_by(RECALLED, ToolsCalled(), TextDelta("Yes"), TextDelta(", Sir."), Ended(text="Yes, Sir."))
    await answering.wait_for_first_words(20, Stopping())
    assert (await whole_chat(answering))["choices"][0]["message"]["content"] == "Yes, Sir."


async def test_who_waits_for_the_first_words_and_leaves_ends_the_source() -> None:
    answering = answered_by(30.0, TextDelta("Yes"))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(answering.wait_for_first_words(20, Stopping()), 0.01)
    assert [event async for event in answering.source] == []


async def test_nobody_waits_for_the_first_words_while_the_process_ends() -> None:
    answering, stopping = answered_by(0.2, TextDelta("Yes"), Ended(text="Yes")), Stopping()
    stopping.begin()
    before = asyncio.get_running_loop().time()
    await answering.wait_for_first_words(20, stopping)
    assert asyncio.get_running_loop().time() - before < 0.1
    assert (await whole_chat(answering))["choices"][0]["message"]["content"] == "Yes"


async def test_a_client_that_leaves_between_the_wait_and_the_first_event_ends_the_source() -> None:
    answering = answered_by(TextDelta("Yes"), TextDelta(", Sir."))
    await answering.wait_for_first_words(20, Stopping())
    services: Any = SimpleNamespace(settings=Settings(_env_file=None))
    chunks = chat_chunks(answering, with_usage=False)
    response = send_stream(services, answering, chunks, Stopping(), named=False)

    async def gone(_message: Any) -> None:
        raise OSError

    async def silent() -> Any:
        await asyncio.Event().wait()

    await response({"type": "http"}, silent, gone)
    assert [event async for event in answering.source] == []


@pytest.mark.parametrize("is_chat", [True, False])
@pytest.mark.parametrize(("mode", "choice"), [("auto", None), ("required", "required")])
def test_allowed_tools_are_offered_alone(*, is_chat: bool, mode: str, choice: str | None) -> None:
    def settings_with(*allowed: str) -> tuple[CallSettings, tuple[ToolSpec, ...]]:
        function: dict[str, Any] = {"parameters": {"type": "object"}}
        if is_chat:
            tools = [{"type": "function", "function": {"name": name, **function}} for name in ("look", "tell")]
            named = [{"type": "function", "function": {"name": name}} for name in allowed]
            allowance: Json = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": named}}
            messages = [{"role": "user", "content": "x"}]
            body = {"model": "m", "messages": messages, "tools": tools, "tool_choice": allowance}
            return ChatCompletionRequest.model_validate(body).settings_and_tools()
        tools = [{"type": "function", "name": name, **function} for name in ("look", "tell")]
        named = [{"type": "function", "name": name} for name in allowed]
        allowance = {"type": "allowed_tools", "mode": mode, "tools": named}
        body = {"input": "x", "tools": tools, "tool_choice": allowance}
        return ResponseRequest.model_validate(body).settings_and_tools()

    settings, tools = settings_with("tell")
    assert (settings.tool_choice, [tool.name for tool in tools]) == (choice, ["tell"])
    with pytest.raises(InvalidInputError, match="names no tool of this request: sing") as caught:
        settings_with("tell", "sing")
    assert caught.value.errors[0].field == "tool_choice"


def test_a_model_is_offered_functions_of_a_namespace_under_one_name_that_it_can_take() -> None:
    """Two functions whose names are too long together, and differ at their ends only, stay two."""
    long = "x" * 60
    inner = [{"type": "function", "name": name} for name in ("add", f"{long}_1", f"{long}_2")]
    tools = [{"type": "namespace", "name": "notes", "description": "All notes.", "tools": inner}]
    request = ResponseRequest.model_validate({"input": "x", "tools": tools})
    _, offered = request.settings_and_tools()
    names = [tool.name for tool in offered]
    assert (names[0], len(set(names)), [len(name) for name in names[1:]]) == ("notes__add", 3, [64, 64])
    assert [tool.description for tool in offered] == ["All notes.", "", ""]
    events = ResponseEvents(
        resource=lambda _, output: {"output": output},
        message="msg",
        call_id=str,
        reasoning_id=str,
        tools=request.echo("throughline")["tools"],
    )
    for number, name in enumerate([*names, "plain"]):
        item = list(events.call(number, "call", name, "{}"))[-1]["item"]
        expected = ("notes", inner[number]["name"]) if number < len(names) else (None, "plain")
        assert (item.get("namespace"), item["name"]) == expected
    sent_back = {"type": "function_call", "call_id": "call", "name": f"{long}_1", "namespace": "notes"}
    assert draft_of(CallItem.model_validate(sent_back)).parts[0]["name"] == names[1]


@pytest.mark.parametrize(
    ("tools", "why"),
    [
        ([{"type": []}], "only functions"),
        ([{"type": {}}], "only functions"),
        ([{"type": "namespace", "name": name, "tools": [{}] * 200} for name in "ab"], "400 functions"),
    ],
)
def test_tools_of_unreadable_types_and_too_many_in_namespaces_are_refused_before_they_are_read(
    tools: list[Json], why: str
) -> None:
    with pytest.raises(ValidationError, match=why):
        ResponseRequest.model_validate({"input": "x", "tools": tools})


def test_a_choice_names_a_function_of_a_namespace_as_its_call_does() -> None:
    inner = [{"type": "function", "name": name} for name in ("add", "tell")]
    tools = [{"type": "namespace", "name": "notes", "tools": inner}, {"type": "function", "name": "tell"}]
    named = {"type": "function", "name": "tell", "namespace": "notes"}
    choices = (named, {"type": "function", "name": "notes__tell"})
    for choice in choices:
        request = ResponseRequest.model_validate({"input": "x", "tools": tools, "tool_choice": choice})
        assert request.settings_and_tools()[0].tool_choice == ToolName(name="notes__tell")
        assert request.echo("throughline")["tool_choice"] == choice, "the choice is repeated as it was given"
        allowed = {"type": "allowed_tools", "mode": "auto", "tools": [choice]}
        request = ResponseRequest.model_validate({"input": "x", "tools": tools, "tool_choice": allowed})
        assert [tool.name for tool in request.settings_and_tools()[1]] == ["notes__tell"]
        assert request.echo("throughline")["tool_choice"] == allowed


async def test_a_whole_response_looks_up_no_notifications() -> None:
    answering = answered_by(ServiceEvent("compaction.started", {}), TextDelta("Yes"), Ended(text="Yes"))
    answering.notifier = Notifier(SimpleNamespace(), ONE, ONE, None)  # type: ignore[arg-type]  # it has no services
    assert (await whole_response(answering))["output"][0]["content"][0]["text"] == "Yes"

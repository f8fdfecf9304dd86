"""Clients of OpenAI's API: which conversation a request continues, what it is answered, and what is stored, once."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Final
from uuid import UUID

import httpx
import pytest

from app.usecases.chat.starting import ChatService
from app.usecases.chat.turn_handle import TurnHandle
from app.usecases.openai import stored_answers
from app.usecases.openai.stored_answers import StoredAnswers
from app.usecases.shared.idempotency import claim_key
from tests.acceptance.conftest import SharedServices, StartService, uses_processes
from tests.acceptance.service import Service, until
from tests.acceptance.sockets import over_socket
from tests.acceptance.talk import Json
from tests.openai_server import OpenAI, obliging, running_openai, text_of

MODEL: Final = "throughline"
UNASKED: Final = {"type": "function_call_output", "call_id": "c", "output": "x"}
WEATHER: Final = {
    "name": "get_weather",
    "description": "Of a place.",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}
IMAGE: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
    "rkJggg=="
)


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenAI]:
    with running_openai() as server:
        yield server


@pytest.fixture
def service(provider: OpenAI, shared_services: SharedServices, request: pytest.FixtureRequest) -> Service:
    """A service with a scripted chat model, which answers each request as asked unless a test says otherwise."""
    provider.reset()
    provider.rule = obliging
    return shared_services.get(
        "openai",
        processes=uses_processes(request.node),
        OPENAI_API_KEY="scripted",
        OPENAI_BASE_URL=provider.url,
        THROUGHLINE_CHAT_MODEL="openai-responses:gpt-scripted",
        THROUGHLINE_COMPACTION_MODEL="offline",
        THROUGHLINE_REQUEST_TIMEOUT_SECONDS="20",
    )


@pytest.fixture
def scripted(service: Service) -> Iterator[httpx.Client]:
    with service.client() as client:
        yield client


def ask(client: httpx.Client, path: str, body: Json, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.post(f"/v1{path}", json={"model": MODEL, **body}, headers=named)


def good(response: httpx.Response) -> Json:
    assert response.status_code == 200, response.text
    found: Json = response.json()
    return found


def refused(response: httpx.Response, status: int, code: str) -> Json:
    assert (response.status_code, response.json()["error"]["code"]) == (status, code), response.text
    assert response.json()["error"].keys() == {"message", "type", "param", "code"}
    error: Json = response.json()["error"]
    return error


def user(text: str | list[Json]) -> Json:
    return {"role": "user", "content": text}


def chat(client: httpx.Client, *messages: Json, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
    return client.post(
        "/v1/chat/completions", json={"model": MODEL, "messages": list(messages), **body}, headers=headers
    )


def reply(response: httpx.Response) -> Json:
    message: Json = good(response)["choices"][0]["message"]
    return {"role": "assistant", "content": message["content"]}


def streamed_text(lines: Iterable[str]) -> str:
    """The joined content of a chat completion's chunks."""
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


def done(response: httpx.Response) -> str:
    """What the service did with a request, by its header."""
    return response.headers["x-throughline"].partition(";")[0]


def conversation(response: httpx.Response) -> str:
    found: str = response.headers["x-throughline"].partition("conversation=")[2].partition(";")[0]
    return found


def texts(client: httpx.Client, conversation_id: str) -> list[str]:
    """The texts of a conversation's items, the oldest first."""
    items = good(client.get(f"/v1/conversations/{conversation_id}/items?order=asc&limit=100"))["data"]
    return [item["content"][0]["text"] if item["type"] == "message" else item["type"] for item in items]


def said(response: Json) -> str:
    return "".join(part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"])


def events(response: httpx.Response) -> list[Json]:
    """A stream's events; it ends as that API's streams do."""
    assert response.headers["content-type"].startswith("text/event-stream")
    blocks = [block for block in response.text.split("\n\n") if block.strip() and not block.startswith(":")]
    assert blocks.pop() == "data: [DONE]"
    found = []
    for block in blocks:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        assert "id" not in fields
        found.append(json.loads(fields["data"]))
        if "event" in fields:
            assert fields["event"] == found[-1]["type"]
    return found


# Whose conversation


@pytest.mark.long
def test_a_history_under_a_name_is_kept_once_and_other_prompts_leave_it_alone(scripted: httpx.Client) -> None:
    named = {"X-OpenWebUI-Chat-Id": "5f0f7b9a-chat", "X-OpenWebUI-User-Id": "ann"}
    history: list[Json] = [{"role": "system", "content": "Be brief."}, user("Hello")]
    for number in range(3):
        answered = chat(scripted, *history, headers=named)
        assert done(answered) == "stored"
        history += [reply(answered), user(f"More {number}")]
    kept = conversation(answered)
    before = texts(scripted, kept)
    assert before == [message["content"] for message in history[1:-1]]

    title = chat(scripted, user("### Task: a title for <chat>Hello</chat>"), headers=named)
    edited = chat(scripted, user("Hallo"), history[2], user("More"), headers=named)
    again = chat(scripted, *history[:-3], headers=named)
    assert [done(one) for one in (title, edited, again)] == ["stateless"] * 3
    assert texts(scripted, kept) == before
    others = chat(scripted, *history, headers={**named, "X-OpenWebUI-User-Id": "bob"})
    assert conversation(others) != kept

    only_new = chat(scripted, user("And now?"), conversation=kept)
    assert conversation(only_new) == kept
    assert texts(scripted, kept)[-2:] == ["And now?", reply(only_new)["content"]]
    refused(chat(scripted, user("x"), conversation="conv_" + "0" * 32), 404, "not_found")


@pytest.mark.long
def test_a_prompt_of_a_frontend_never_begins_a_chat_and_a_temporary_chat_is_not_kept(scripted: httpx.Client) -> None:
    """Open WebUI asks what to search for before the first words of the user, under the chat's name."""
    named = {"X-OpenWebUI-Chat-Id": "5f0f7b9b-chat", "X-OpenWebUI-User-Id": "ann", "X-OpenWebUI-Task": ""}
    task = {**named, "X-OpenWebUI-Task": "query_generation"}
    asked = chat(scripted, user("### Task: queries for <chat>Hello</chat>"), headers=task)
    assert asked.headers["x-throughline"] == "stateless; reason=task"
    answered = chat(scripted, user("Hello"), headers=named)
    assert done(answered) == "stored"
    assert texts(scripted, conversation(answered)) == ["Hello", reply(answered)["content"]]
    title = ask(
        scripted, "/responses", {"input": "### Task: a title"}, **{**task, "X-OpenWebUI-Task": "title_generation"}
    )
    assert (title.headers["x-throughline"], good(title)["store"]) == ("stateless; reason=task", False)

    for _ in range(2):
        unkept = chat(scripted, user("Tell nobody."), headers={**named, "X-OpenWebUI-Chat-Id": "local:Zq8-socket"})
        assert unkept.headers["x-throughline"] == "stateless; reason=temporary"


def test_a_chat_is_kept_after_its_user_asked_again_with_a_hint(scripted: httpx.Client) -> None:
    """Open WebUI sends "More Concise" as a message, and shows the new reply in the place of the first."""
    chats = {"X-OpenWebUI-Chat-Id": "5f0f7b9d-chat", "X-OpenWebUI-User-Id": "ann"}
    first, second = ({**chats, "X-OpenWebUI-User-Message-Id": f"0193e000-0000-4000-8000-00000000000{n}"} for n in "12")
    question = user("Hello")
    before = reply(chat(scripted, question, headers=first))
    after = reply(chat(scripted, question, before, user("More Concise"), headers=first))
    last = chat(scripted, question, after, user("Thanks"), headers=second)
    assert done(last) == "stored"
    kept = (question, before, user("More Concise"), after, user("Thanks"), reply(last))
    assert texts(scripted, conversation(last)) == [one["content"] for one in kept]

    unknown = {"X-OpenWebUI-Chat-Id": "5f0f7b9e-chat", "X-OpenWebUI-User-Message-Id": "{{USER_MESSAGE_ID}}"}
    before = reply(chat(scripted, question, headers=unknown))
    after = reply(chat(scripted, question, before, user("More Concise"), headers=unknown))
    assert done(chat(scripted, question, after, user("Thanks"), headers=unknown)) == "stateless"


@pytest.mark.long
@pytest.mark.parametrize("users", [2, pytest.param(100, marks=pytest.mark.long)])
def test_equal_openings_under_one_key_find_nothing_of_each_other(
    scripted: httpx.Client, provider: OpenAI, users: int
) -> None:
    """All users open in the same way; what each says afterwards is in no request of another."""
    opening = [user("Hello, I need help."), {"role": "assistant", "content": "With what?"}]
    codes = [f"code-{number:03}-{number * 7919 % 1000:03}" for number in range(users)]
    chains: list[str] = []
    for number, code in enumerate(codes):
        retried = {"x-stainless-retry-count": str(number % 2)}
        assert done(chat(scripted, *opening, user(f"My code is {code}."), headers=retried)) == "stateless"
        first = good(ask(scripted, "/responses", {"input": "Hello, I need help."}, **retried))
        mine = good(ask(scripted, "/responses", {"input": f"My code is {code}.", "previous_response_id": first["id"]}))
        chains.append(mine["id"])
    for code, chain in zip(codes, chains, strict=True):
        provider.asked.clear()
        good(ask(scripted, "/responses", {"input": "What is my code?", "previous_response_id": chain}))
        chat(scripted, *opening, user("What is my code?"))
        seen = json.dumps([asked.seen for asked in provider.asked])
        assert code in seen
        assert not [other for other in codes if other != code and other in seen]


@pytest.mark.long
def test_what_names_nothing_stores_nothing(scripted: httpx.Client, provider: OpenAI) -> None:
    before = scripted.get("/conversations").json()["data"]
    answered = chat(scripted, user("Hello"), user("Hello"))
    unkept = ask(scripted, "/responses", {"input": "Hello", "store": False})
    assert (done(answered), done(unkept)) == ("stateless", "stateless")
    assert [asked.body["store"] for asked in provider.asked] == [False, False], "nor does the provider"
    assert (good(unkept)["store"], good(unkept)["conversation"]) == (False, None)
    assert scripted.get("/conversations").json()["data"] == before
    refused(scripted.get(f"/v1/responses/{unkept.json()['id']}"), 404, "not_found")
    unknown = {"input": "x", "previous_response_id": unkept.json()["id"]}
    refused(ask(scripted, "/responses", unknown), 404, "previous_response_not_found")
    refused(ask(scripted, "/responses", {**unknown, "store": False}), 404, "previous_response_not_found")
    refused(ask(scripted, "/responses/input_tokens", unknown), 404, "previous_response_not_found")


def by(name: str, text: str, role: str = "user") -> Json:
    return {"role": role, "name": name, "content": text}


def names(client: httpx.Client, kept: str) -> list[tuple[str, str | None]]:
    """The content of a conversation's messages, each with the name of its speaker."""
    found = client.get(f"/conversations/{kept.removeprefix('conv_')}/messages?limit=100").json()["data"]
    return [(message["content"], message["metadata"].get("name")) for message in found]


def test_the_names_of_a_history_are_kept_and_it_goes_on_with_and_without_them(scripted: httpx.Client) -> None:
    """Control: a message without a name gets none, and the name of a leading system message is nobody's."""
    named = {"X-Conversation-Id": "of several people"}
    bot = by("Bot", "Hello, Anna.", "assistant")
    history = [by("Rules", "Be brief.", "system"), by("Anna", "Hello"), bot, by("Ben", "Hello"), user("And me")]
    first = chat(scripted, *history, headers=named)
    kept = conversation(first)
    whole = [("Hello", "Anna"), ("Hello, Anna.", "Bot"), ("Hello", "Ben"), ("And me", None)]
    assert names(scripted, kept) == [*whole, (reply(first)["content"], None)]

    history += [{**reply(first), "name": "Bot"}, by("Анна", "More")]
    second = chat(scripted, *history, headers=named)
    assert (done(second), conversation(second)) == ("stored", kept)
    assert names(scripted, kept)[5:] == [("More", "Анна"), (reply(second)["content"], None)]
    history += [reply(second), user("Without names")]
    unnamed = [{field: value for field, value in message.items() if field != "name"} for message in history]
    assert conversation(chat(scripted, *unnamed, headers=named)) == kept
    other = chat(scripted, by("Ben", "Hello"), *history[2:], headers=named)
    assert done(other) == "stateless", "of somebody else the same words are another message"


def test_a_long_history_is_stored_when_its_frontend_first_names_it(
    scripted: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many messages are new. Control: one that cannot be answered is refused, and nothing of it is stored."""
    monkeypatch.setattr(stored_answers, "MAX_NEW_MESSAGES", 4)
    named = {"X-Conversation-Id": "a long chat"}
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    step: list[Json] = [{"role": "assistant", "content": None, "tool_calls": [call]},
                        {"role": "tool", "tool_call_id": "call_1", "content": "Sunny"}]  # fmt: skip
    lines = [{"role": ("user", "assistant")[number % 2], "content": f"Line {number}."} for number in range(11)]
    history = [*lines[:3], *step, *lines[3:]]
    refused(chat(scripted, *history[:-1], headers=named), 400, "invalid_input")
    answered = chat(scripted, *history, headers=named)
    assert done(answered) == "stored"
    told = texts(scripted, conversation(answered))
    assert told == [
        *(f"Line {number}." for number in range(3)), "function_call", "function_call_output",
        *(f"Line {number}." for number in range(3, 11)), reply(answered)["content"],
    ]  # fmt: skip


def test_a_model_is_told_who_of_several_users_speaks(scripted: httpx.Client, provider: OpenAI) -> None:
    """Names are told in the same words in all turns; messages of the model and messages without a name stay."""
    history = [by("Anna", "It rains."), by("Bot", "Does it?", "assistant"), user("It does.")]
    first = reply(chat(scripted, *history))
    before = provider.last.texts
    assert before[-3:] == ["Anna: It rains.", "Does it?", "It does."]
    history += [first, by("Ben", "Ben: It snows."), by("system", "And thaws.")]
    good(chat(scripted, *history))
    assert provider.last.texts == [*before, first["content"], "Ben: It snows.", "And thaws."]

    named = {"X-Conversation-Id": "names for the model"}
    kept = conversation(chat(scripted, *history[:3], headers=named)).removeprefix("conv_")
    assert provider.last.texts[-3:] == before[-3:]
    last = reply(chat(scripted, *history, headers=named))
    assert provider.last.texts[-2:] == ["Ben: It snows.", "And thaws."]
    formatted = scripted.get(f"/conversations/{kept}/context?format=openai").json()["messages"]
    assert [(one["content"], one.get("name")) for one in formatted[1:]] == [
        ("It rains.", "Anna"), ("Does it?", "Bot"), ("It does.", None), (first["content"], None),
        ("Ben: It snows.", "Ben"), ("And thaws.", None), (last["content"], None),
    ]  # fmt: skip


# Responses


def test_a_response_is_a_turn_that_can_be_read_gone_on_from_and_deleted(scripted: httpx.Client) -> None:
    first = good(ask(scripted, "/responses", {"input": "My name is Ada.", "metadata": {"a": "b"}, "temperature": 0.5}))
    second = good(ask(scripted, "/responses", {"input": "And yours?", "previous_response_id": first["id"]}))
    assert second["conversation"] == first["conversation"]
    assert good(scripted.get(f"/v1/responses/{first['id']}")) == first
    items = good(scripted.get(f"/v1/responses/{second['id']}/input_items"))
    assert [item["content"][0]["text"] for item in items["data"]] == ["And yours?"]

    forked = ask(scripted, "/responses", {"input": "Or rather?", "previous_response_id": first["id"]})
    fork, origin = good(forked)["conversation"]["id"], first["conversation"]["id"]
    assert f"forked-from={origin}" in forked.headers["x-throughline"]
    assert texts(scripted, fork) == ["My name is Ada.", said(first), "Or rather?", said(good(forked))]
    assert texts(scripted, origin)[-2:] == ["And yours?", said(second)]

    assert good(scripted.delete(f"/v1/responses/{second['id']}"))["deleted"] is True
    refused(scripted.get(f"/v1/responses/{second['id']}"), 404, "not_found")
    assert texts(scripted, origin) == ["My name is Ada.", said(first)]
    assert "And yours?" not in scripted.get(f"/v1/conversations/{origin}/items").text
    anew = good(ask(scripted, "/responses", {"input": "Anew?", "previous_response_id": first["id"]}))
    assert anew["conversation"]["id"] == origin, "nothing comes after it any more, so nothing is forked"
    assert texts(scripted, origin) == ["My name is Ada.", said(first), "Anew?", said(anew)]


def test_a_request_that_is_refused_leaves_no_fork(scripted: httpx.Client) -> None:
    """Control: the same place is forked for a request that is answered."""
    first = good(ask(scripted, "/responses", {"input": "One."}))
    good(ask(scripted, "/responses", {"input": "Two.", "previous_response_id": first["id"]}))
    forked = ask(scripted, "/responses", {"input": "Or?", "previous_response_id": first["id"]})

    def newest() -> str:
        found: str = scripted.get("/conversations?limit=1").json()["data"][0]["id"]
        return found

    before = newest()
    assert before == str(UUID(conversation(forked).removeprefix("conv_")))
    for items in ([UNASKED], [{"role": "assistant", "content": "I say."}]):
        body = {"input": items, "previous_response_id": first["id"]}
        refused(ask(scripted, "/responses", body), 400, "invalid_input")
        assert newest() == before


def test_what_was_deleted_is_asked_anew_by_the_same_body(scripted: httpx.Client) -> None:
    """Only a key of the client's own stands for the answer that it had."""
    first = good(ask(scripted, "/responses", {"input": "One."}))
    body, own = {"input": "Two.", "previous_response_id": first["id"]}, {"Idempotency_Key": "of a deleted answer"}
    second = good(ask(scripted, "/responses", body))
    assert good(ask(scripted, "/responses", body))["id"] == second["id"]
    good(scripted.delete(f"/v1/responses/{second['id']}"))
    good(ask(scripted, "/responses", body | {"input": "Or?"}))  # so the next is a fork
    third = good(ask(scripted, "/responses", body))
    assert said(third) == said(second)
    good(scripted.delete(f"/v1/conversations/{third['conversation']['id']}"))
    assert said(good(ask(scripted, "/responses", body))) == said(second)

    keyed = good(ask(scripted, "/responses", {"input": "Three."}, **own))
    good(scripted.delete(f"/v1/responses/{keyed['id']}"))
    refused(ask(scripted, "/responses", {"input": "Three."}, **own), 404, "not_found")


@pytest.mark.daily(1)
@pytest.mark.parametrize("store", [True, False])
def test_a_reply_that_was_made_again_still_answers_whoever_goes_on_from_it(
    scripted: httpx.Client, provider: OpenAI, *, store: bool
) -> None:
    provider.script("The first answer.", "The second answer.")
    first = good(ask(scripted, "/responses", {"input": "One."}))
    native = f"/conversations/{first['conversation']['id'].removeprefix('conv_')}"
    scripted.post(f"{native}/chat/regenerate", json={}).raise_for_status()
    body = {"input": "Go on.", "previous_response_id": first["id"], "store": store}
    good(ask(scripted, "/responses", body))
    assert provider.last.texts == ["One.", "The first answer.", "Go on."]
    good(scripted.delete(f"/v1/responses/{first['id']}"))
    refused(ask(scripted, "/responses", body | {"input": "Or?"}), 404, "previous_response_not_found")


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_list_of_items_goes_on_behind_an_item_that_was_deleted(scripted: httpx.Client, order: str) -> None:
    """So a client may delete items while it reads the pages."""
    path = f"/v1/conversations/{good(scripted.post('/v1/conversations', json={}))['id']}/items"
    scripted.post(path, json={"items": [user(f"Line {number}.") for number in range(5)]}).raise_for_status()
    page = good(scripted.get(path, params={"limit": 2, "order": order}))
    rest = {"limit": 3, "order": order, "after": page["last_id"]}
    before = good(scripted.get(path, params=rest))
    good(scripted.delete(f"{path}/{page['last_id']}"))
    assert good(scripted.get(path, params=rest)) == before
    refused(scripted.get(path, params={"after": f"msg_{'0' * 32}"}), 400, "invalid_input")


def test_a_referenced_message_keeps_its_name_and_is_named_once_it_is_gone(scripted: httpx.Client) -> None:
    kept = conversation(chat(scripted, by("Anna", "Hello"), headers={"X-Conversation-Id": "referred to by name"}))
    item = good(scripted.get(f"/v1/conversations/{kept}/items?order=asc"))["data"][0]
    added = good(ask(scripted, "/responses", {"input": [{"type": "item_reference", "id": item["id"]}]}))
    assert names(scripted, added["conversation"]["id"])[0] == ("Hello", "Anna")
    good(scripted.delete(f"/v1/conversations/{kept}/items/{item['id']}"))
    gone = ask(scripted, "/responses", {"input": [{"type": "item_reference", "id": item["id"]}]})
    assert item["id"] in refused(gone, 404, "not_found")["message"]


def test_what_is_said_before_a_look_up_belongs_to_the_response(scripted: httpx.Client, provider: OpenAI) -> None:
    """Whole, read, sent again and as a stream it is the same; and it is deleted together with what was looked up."""
    begun = good(scripted.post("/v1/conversations", json={}))["id"]
    path = f"/conversations/{UUID(begun.removeprefix('conv_'))}"
    long = [{"role": "user", "content": f"Order {number}. " + "It goes to Oslo. " * 60} for number in range(9)]
    assert scripted.post(f"{path}/messages/batch", json={"messages": long}).status_code == 201
    assert scripted.post(f"{path}/compact", json={"keep_tail_messages": 1}).json()["status"] == "applied"
    look_up = {"name": "search_history", "args": {"query": "my sorrow"}}
    provider.script({"text": "I look for your sorrow.", "calls": [look_up]}, "Here.")
    body = {"input": "Where is my sorrow?", "conversation": begun}
    whole = good(ask(scripted, "/responses", body, x_stainless_retry_count="0"))
    assert said(whole) == "I look for your sorrow.\n\nHere."
    assert good(scripted.get(f"/v1/responses/{whole['id']}")) == whole
    assert good(ask(scripted, "/responses", body, x_stainless_retry_count="1")) == whole
    (*_, last) = events(scripted.get(f"/v1/responses/{whole['id']}?stream=true"))
    assert last["response"] == whole

    provider.script({"text": "Both.", "calls": [look_up, {"name": "get_weather", "args": {}}]})
    tools = [{"type": "function", **WEATHER}]
    mixed = good(ask(scripted, "/responses", {"input": "x", "conversation": begun, "tools": tools}))
    assert good(scripted.get(f"/v1/responses/{mixed['id']}")) == mixed
    for item in mixed["output"]:
        assert good(scripted.get(f"/v1/conversations/{begun}/items/{item['id']}")) == item
    result = {"type": "function_call_output", "call_id": mixed["output"][-1]["call_id"], "output": "Sunny"}
    good(ask(scripted, "/responses", {"input": [result], "previous_response_id": mixed["id"], "store": False}))
    assert "Sunny" in provider.last.texts
    assert "interrupted" not in provider.last.texts, "what the service looked up is there too"

    assert good(scripted.delete(f"/v1/responses/{whole['id']}"))["deleted"] is True
    assert good(scripted.delete(f"/v1/responses/{mixed['id']}"))["deleted"] is True
    assert "sorrow" not in scripted.get(f"{path}/export").text


def test_what_a_client_adds_while_a_response_is_made_is_not_deleted_with_it(
    scripted: httpx.Client, provider: OpenAI
) -> None:
    tools = [{"type": "function", **WEATHER}]
    first = good(ask(scripted, "/responses", {"input": "Rain?", "tools": tools}))
    path = f"/v1/conversations/{first['conversation']['id']}/items"
    provider.script({"text": "All right.", "hold": True})
    body = {"input": "Never mind.", "previous_response_id": first["id"]}
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(lambda: good(ask(scripted, "/responses", body)))
        until(lambda: "Never mind." in provider.last.texts)
        late = {"type": "function_call_output", "call_id": first["output"][0]["call_id"], "output": "Sunny"}
        good(scripted.post(path, json={"items": [late]}))
        provider.release()
    good(scripted.delete(f"/v1/responses/{second.result()['id']}"))
    items = good(scripted.get(path, params={"order": "asc"}))["data"]
    assert [item["type"] for item in items] == ["message", "function_call", "function_call_output"]


@pytest.mark.long
def test_a_long_fork_is_made_by_the_worker(start_service: StartService) -> None:
    service = start_service(THROUGHLINE_REQUEST_TIMEOUT_SECONDS="60")
    with service.client() as client:
        begun = good(client.post("/v1/conversations", json={}))["id"]
        native = begun.removeprefix("conv_")
        for start in (0, 1):
            lines = [{"role": ("user", "assistant")[n % 2], "content": f"Line {start} {n}."} for n in range(600)]
            assert client.post(f"/conversations/{native}/messages/batch", json={"messages": lines}).is_success
        first = good(ask(client, "/responses", {"input": "First?", "conversation": begun}))
        good(ask(client, "/responses", {"input": "Second?", "conversation": begun}))
        body = {"input": "Other?", "previous_response_id": first["id"]}
        waiting = ask(client, "/responses", body, x_stainless_retry_count="0")
        refused(waiting, 409, "fork_in_progress")
        assert int(waiting.headers["retry-after"]) >= 1
        answers: list[httpx.Response] = []

        def answered() -> bool:
            answers.append(ask(client, "/responses", body, x_stainless_retry_count="1"))
            return answers[-1].status_code == 200

        until(answered, 60, what="the fork")
        fork = good(answers[-1])["conversation"]["id"]
        whole = client.get(f"/conversations/{fork.removeprefix('conv_')}").json()
        assert whole["message_count"] == 1_200 + 2 + 2
        again = good(ask(client, "/responses", body, x_stainless_retry_count="2"))
        assert (again["id"], again["conversation"]["id"]) == (good(answers[-1])["id"], fork)


def test_the_stream_of_a_response_and_of_a_completion(scripted: httpx.Client) -> None:
    found = events(ask(scripted, "/responses", {"input": "Stream, please.", "stream": True}))
    deltas = "".join(event["delta"] for event in found if event["type"] == "response.output_text.delta")
    assert [found[0]["type"], found[-1]["type"]] == ["response.created", "response.completed"]
    last = found[-1]["response"]
    assert deltas == said(last)
    assert good(scripted.get(f"/v1/responses/{last['id']}")) == last
    again = events(scripted.get(f"/v1/responses/{last['id']}?stream=true&starting_after=1"))
    assert (again[0]["sequence_number"], again[-1]["response"]["output"]) == (2, last["output"])
    begun = next(event for event in found if event["type"] == "response.output_text.delta")["sequence_number"]
    rest = events(scripted.get(f"/v1/responses/{last['id']}?stream=true&starting_after={begun}"))
    assert "".join(event.get("delta", "") for event in rest) == deltas[len(found[begun]["delta"]) :]
    assert [event["sequence_number"] for event in (*found[: begun + 1], *rest)] == list(range(len(found)))
    chunks = events(chat(scripted, user("Stream, please."), stream=True, stream_options={"include_usage": True}))
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks[:-1]) == deltas
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["total_tokens"] > 0) == ([], True)


def test_a_failure_is_an_error_and_in_a_stream_that_has_begun_its_last_event(
    scripted: httpx.Client, provider: OpenAI
) -> None:
    refusal = {"status": 400, "code": "invalid_value", "message": "No."}
    provider.script({"status": 400, "code": "invalid_prompt", "message": "No."}, *[refusal] * 4)
    refused(chat(scripted, user("x")), 400, "blocked")
    refused(chat(scripted, user("x")), 400, "model_unavailable")
    body: Json = {"input": "x", "stream": True}
    refused(ask(scripted, "/responses", body), 400, "model_unavailable")
    refused(chat(scripted, user("x"), stream=True), 400, "model_unavailable")
    last = events(ask(scripted, "/responses", {**body, "include": ["throughline.events"]}))[-1]
    assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
    assert last["response"]["error"].keys() == {"code", "message"}
    provider.script("")
    empty = chat(scripted, user("x"))
    refused(empty, 502, "empty_reply")
    assert empty.json()["error"]["message"] == "the model gave an empty answer: send the request again"


def test_the_same_words_after_a_failure_are_answered_and_not_said_twice(
    scripted: httpx.Client, provider: OpenAI
) -> None:
    """The AI SDK, and a person who presses a button again, repeat a request without counting their tries."""
    tools = [{"type": "function", **WEATHER}]
    refusals = [{"status": 400, "code": code} for code in ("context_length_exceeded", "invalid_value")]
    call = {"name": "get_weather", "args": {}}
    without_live_context = refusals[1]
    provider.script(*refusals, {"calls": [call]}, refusals[1], without_live_context, "Sunny.", "Still.")
    body: Json = {"conversation": good(scripted.post("/v1/conversations", json={}))["id"], "tools": tools}
    question = {**body, "input": "Rain?"}
    too_long = refused(ask(scripted, "/responses", question), 400, "context_length_exceeded")
    assert too_long["message"].endswith("the message is stored: send the same request again")
    refused(ask(scripted, "/responses", question, x_stainless_retry_count="0"), 400, "model_unavailable")
    (made,) = good(ask(scripted, "/responses", question))["output"]
    result = {"type": "function_call_output", "call_id": made["call_id"], "output": "x"}
    refused(ask(scripted, "/responses", {**body, "input": [result]}), 400, "model_unavailable")
    assert said(good(ask(scripted, "/responses", {**body, "input": [result]}))) == "Sunny."
    assert said(good(ask(scripted, "/responses", question))) == "Still.", "what was answered may be asked again"
    told = texts(scripted, body["conversation"])
    assert told == ["Rain?", "function_call", "function_call_output", "Sunny.", "Rain?", "Still."]


@pytest.mark.daily(1)
@pytest.mark.parametrize("stream", [True, False])
def test_a_failed_opening_is_asked_again_in_its_own_conversation(
    scripted: httpx.Client, provider: OpenAI, *, stream: bool
) -> None:
    """Also by a client that does not count its tries. Control: one of two that ask at once has another conversation."""
    refusal, body = {"status": 400, "code": "invalid_value"}, {"input": f"Opening {stream}.", "stream": stream}
    provider.script(refusal, refusal, *["Here."] * 4)

    def newest() -> set[str]:
        return {one["id"] for one in scripted.get("/conversations?limit=100").json()["data"]}

    before = newest()
    for _ in range(2):
        refused(ask(scripted, "/responses", body), 400, "model_unavailable")
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda _: ask(scripted, "/responses", body), range(2)))
    kept = {conversation(one) for one in (*answers, ask(scripted, "/responses", body))}
    assert len(kept) == len(newest() - before) == 3
    assert [texts(scripted, one) for one in kept] == [[f"Opening {stream}.", "Here."]] * 3


def test_a_reply_that_was_cut_off_says_so(scripted: httpx.Client, provider: OpenAI) -> None:
    provider.script(*[{"text": "It is", "incomplete": "max_output_tokens"}] * 2)
    whole = good(ask(scripted, "/responses", {"input": "x", "max_output_tokens": 16}))
    assert (whole["status"], whole["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert good(scripted.get(f"/v1/responses/{whole['id']}")) == whole
    assert good(chat(scripted, user("x")))["choices"][0]["finish_reason"] == "length"


# What the model receives


def test_tools_images_settings_and_the_system_message_reach_the_model(scripted: httpx.Client, provider: OpenAI) -> None:
    named = {"X-Conversation-Id": "with tools"}
    image = {"type": "image_url", "image_url": {"url": IMAGE}}
    pictured = {"role": "user", "content": [{"type": "text", "text": "What is it like here?"}, image]}
    system, tools = {"role": "system", "content": "You are a pirate."}, [{"type": "function", "function": WEATHER}]
    called = chat(scripted, system, pictured, headers=named, tools=tools, temperature=0.3, max_tokens=99)
    choice = good(called)["choices"][0]
    (call,) = choice["message"]["tool_calls"]
    assert (choice["finish_reason"], call["function"]["name"]) == ("tool_calls", "get_weather")
    body = provider.last.body
    assert "You are a pirate." in json.dumps(body)
    assert IMAGE.partition(",")[2] in json.dumps(body)
    assert (body["temperature"], body["max_output_tokens"]) == (0.3, 99)

    result = {"role": "tool", "tool_call_id": call["id"], "content": "Sunny"}
    answered = chat(scripted, system, pictured, choice["message"], result, headers=named, tools=tools)
    assert (done(answered), reply(answered)["content"]) == ("stored", "You said: Sunny")
    assert texts(scripted, conversation(answered))[1:] == ["function_call", "function_call_output", "You said: Sunny"]
    wanted = {"type": "json_schema", "json_schema": {"name": "town", "schema": WEATHER["parameters"]}}
    assert json.loads(reply(chat(scripted, user("x"), response_format=wanted))["content"]) == {"place": "Paris"}


@pytest.mark.daily(1)
@pytest.mark.parametrize("further", [[], [{"role": "user", "content": "And now?"}]])
def test_a_picture_that_a_tool_returned_reaches_the_model(
    scripted: httpx.Client, provider: OpenAI, further: list[Json]
) -> None:
    first = good(ask(scripted, "/responses", {"input": "x", "tools": [{"type": "function", **WEATHER}]}))
    output = [{"type": "input_text", "text": "Seen."}, {"type": "input_image", "image_url": IMAGE}]
    result = {"type": "function_call_output", "call_id": first["output"][-1]["call_id"], "output": output}
    second = good(ask(scripted, "/responses", {"input": [result, *further], "previous_response_id": first["id"]}))
    assert provider.last.texts[-2 - len(further)] == "Seen."
    assert provider.last.input[-1 - len(further)]["content"][0]["image_url"] == IMAGE
    items = good(scripted.get(f"/v1/responses/{second['id']}/input_items"))["data"]
    assert items[-1]["output"] == [output[0], {**output[1], "detail": "auto"}]


@pytest.mark.parametrize("store", [True, False])
def test_words_before_calls_are_no_end_of_an_answer(scripted: httpx.Client, provider: OpenAI, *, store: bool) -> None:
    """Agents on responses send each step again as items: the words, then every call, then every result."""
    calls = [
        {"type": "function_call", "call_id": id_, "name": "get_weather", "arguments": "{}"} for id_ in ("one", "two")
    ]
    results = [{"type": "function_call_output", "call_id": id_, "output": "Sunny"} for id_ in ("one", "two")]
    step = [user("And here?"), {"role": "assistant", "content": "I look."}, *calls, *results]
    body = {"input": step, "tools": [{"type": "function", **WEATHER}], "store": store}
    assert said(good(ask(scripted, "/responses", body))) == "You said: Sunny"
    assert provider.last.texts[-5:] == ["I look.", "get_weather {}", "get_weather {}", "Sunny", "Sunny"]


def test_a_function_in_a_namespace_is_called_by_both_names(scripted: httpx.Client, provider: OpenAI) -> None:
    """Codex sends the tools of an MCP server in this form, and runs no call without its namespace."""
    tools = [{"type": "namespace", "name": "mcp__sky", "description": "The sky.",
              "tools": [{"type": "function", "strict": False, **WEATHER}]}]  # fmt: skip
    provider.script({"text": "I look.", "calls": [{"name": "mcp__sky__get_weather", "args": {"place": "Oslo"}}]})
    body: Json = {"model": "throughline", "input": [user("Rain?")], "tools": tools}
    answer = good(ask(scripted, "/responses", body))
    call = answer["output"][-1]
    assert (call["type"], call["namespace"], call["name"]) == ("function_call", "mcp__sky", "get_weather")
    assert answer["tools"][0]["tools"][0]["name"] == "get_weather"
    offered = provider.last.body["tools"][0]
    assert offered["description"] == f"The sky.\n\n{WEATHER['description']}"
    assert good(scripted.get(f"/v1/responses/{answer['id']}"))["output"][-1] == call
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "Sunny"}
    given = [*body["input"], *answer["output"], result]
    assert said(good(ask(scripted, "/responses", {**body, "input": given}))) == "You said: Sunny"
    assert provider.last.texts[-2] == 'mcp__sky__get_weather {"place":"Oslo"}'


@pytest.mark.daily(1)
@pytest.mark.parametrize("repeats_words", [True, False])
def test_what_a_client_repeats_before_its_results_is_stored_once(
    scripted: httpx.Client, provider: OpenAI, *, repeats_words: bool
) -> None:
    """Semantic Kernel sends the question and the words of each step again, the AI SDK the question and all results."""
    weather = {"name": "get_weather", "args": {}}
    steps = [{"text": "I look.", "calls": [weather] * 2}, {"text": "I look once more.", "calls": [weather]}]
    provider.script(*steps, "No rain.")
    given = [user("Rain?")]
    body: Json = {"conversation": good(scripted.post("/v1/conversations", json={}))["id"]}
    for _ in range(3):
        answer = good(ask(scripted, "/responses", {**body, "input": given, "tools": [{"type": "function", **WEATHER}]}))
        if repeats_words:
            body = {"previous_response_id": answer["id"]}
            given.append({"role": "assistant", "content": said(answer)})
        calls = [item["call_id"] for item in answer["output"] if item["type"] == "function_call"]
        given += [{"type": "function_call_output", "call_id": id_, "output": "Sunny"} for id_ in calls]
    assert said(answer) == "No rain."
    assert texts(scripted, answer["conversation"]["id"]) == [
        "Rain?", "I look.", *["function_call"] * 2, *["function_call_output"] * 2,
        "I look once more.", "function_call", "function_call_output", "No rain.",
    ]  # fmt: skip


def test_what_is_said_in_the_place_of_erased_messages_is_stored(scripted: httpx.Client, provider: OpenAI) -> None:
    """Any words may be those of an erased message: what is to be answered now is new all the same."""
    tools = [{"type": "function", **WEATHER}]
    first = good(ask(scripted, "/responses", {"input": "Rain?", "tools": tools}))
    begun, (call,) = first["conversation"]["id"], first["output"]
    items = f"/v1/conversations/{begun}/items"
    good(scripted.delete(f"{items}/{good(scripted.get(items))['data'][-1]['id']}"))
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "Sunny"}
    good(ask(scripted, "/responses", {"input": [user("And snow?"), result], "conversation": begun}))
    assert texts(scripted, begun)[:3] == ["function_call", "And snow?", "function_call_output"]

    named = {"X-Conversation-Id": "with erased messages"}
    history = [user("Hello"), reply(chat(scripted, user("Hello"), headers=named))]
    kept = conversation(chat(scripted, *history, user("My secret."), headers=named))
    for item in good(scripted.get(f"/v1/conversations/{kept}/items?limit=2"))["data"]:
        good(scripted.delete(f"/v1/conversations/{kept}/items/{item['id']}"))
    for words in ("How are you?", "And now?"):
        answered = chat(scripted, *history, user(words), headers=named)
        history += [user(words), reply(answered)]
    assert (done(answered), texts(scripted, kept)) == ("stored", [message["content"] for message in history])

    erased = good(scripted.get(f"/v1/conversations/{kept}/items?limit=1"))["data"][0]["id"]
    good(scripted.delete(f"/v1/conversations/{kept}/items/{erased}"))
    history[-1] = reply(chat(scripted, *history[:-1], headers=named))  # only the reply is gone: it is asked for again
    answered = chat(scripted, *history, user("Go on."), headers=named)
    history += [user("Go on."), reply(answered)]
    assert (done(answered), texts(scripted, kept)) == ("stored", [message["content"] for message in history])


def test_an_empty_line_before_a_call_is_no_message_and_can_be_sent_back(
    scripted: httpx.Client, service: Service, provider: OpenAI
) -> None:
    step = {"text": "\n\n", "calls": [{"name": "get_weather", "args": {}}]}
    body = {"input": "Rain?", "tools": [{"type": "function", **WEATHER}], "store": False}
    provider.script(step, "No.", step, "All right.")
    made = good(ask(scripted, "/responses", body))["output"]
    assert [item["type"] for item in made] == ["function_call"]
    made.insert(0, {"role": "assistant", "content": "\n\n"})  # as other services have it in their output
    result = {"type": "function_call_output", "call_id": made[-1]["call_id"], "output": "Sunny"}
    assert said(good(ask(scripted, "/responses", {**body, "input": [user("Rain?"), *made, result]}))) == "No."
    further = {"input": "Never mind.", "store": False, "previous_response_id": "last"}
    told = asyncio.run(over_socket(service.url, [body, further]))
    assert [one["type"] for one in told] == ["response.completed"] * 2


@pytest.mark.daily(6)
@pytest.mark.parametrize(
    ("path", "body", "status", "param"),
    [
        ("/chat/completions", {"messages": [user("x")], "n": 2}, 400, "n"),
        ("/chat/completions", {"messages": [user("x")], "logprobs": True}, 400, "logprobs"),
        ("/chat/completions", {"messages": [user("x")], "logit_bias": {"5": 1}}, 400, "logit_bias"),
        ("/chat/completions", {"messages": [user("x")], "function_call": {"name": "look"}}, 400, "function_call"),
        ("/chat/completions", {"messages": [user("x")], "moderation": {"model": "m"}}, 400, "moderation"),
        ("/chat/completions", {"messages": [user(" ")]}, 400, "messages"),
        ("/chat/completions", {"messages": [{"role": "tool", "content": "x"}]}, 400, "messages.0"),
        ("/chat/completions", {"messages": [user("x")], "model": "gpt-9"}, 404, "model"),
        ("/chat/completions", {"messages": [user("x")], "tool_choice": "required"}, 400, "tool_choice"),
        ("/chat/completions", {"messages": [user("x"), {"role": "assistant", "content": "y"}]}, 400, "messages"),
        ("/chat/completions", {"messages": [user("x"), {"role": "tool", "tool_call_id": "c", "content": "y"}]},
         400, "messages"),
        ("/responses", {"input": "x", "reasoning": {"effort": "low"}}, 400, "reasoning.effort"),
        ("/responses", {"input": "x", "background": True}, 400, "background"),
        ("/responses", {"input": "x", "generate": False}, 400, "generate"),
        ("/responses", {"input": "x", "prompt_cache_options": {"prewarm": True}}, 400, "prompt_cache_options.prewarm"),
        ("/responses", {"input": "x", "moderation": {"model": "m"}}, 400, "moderation"),
        ("/responses", {"input": " "}, 400, "input"),
        ("/responses/input_tokens", {"input": ""}, 400, "input"),
        ("/conversations", {"items": [{"type": "compaction", "encrypted_content": "tl1.AAAA"}]}, 400, "items"),
        ("/conversations", {"items": [UNASKED]}, 400, "items"),
        ("/responses", {"input": "x", "text": {"verbosity": "a\0"}}, 400, "text.verbosity"),
        ("/responses", {"input": "x", "tools": [{"type": "web_search"}]}, 400, "tools"),
        ("/responses", {"input": [{"type": "computer_call"}]}, 400, "input.0"),
        ("/responses", {"input": "x", "conversation": "conv_1", "previous_response_id": "resp_1"}, 400, "body"),
        ("/responses", {"input": [UNASKED], "store": False}, 400, "input"),
        ("/responses", {"input": [UNASKED]}, 400, "input"),
        ("/responses", {"input": "x", "tools": [{"type": "function", "name": "a b"}]}, 400, "tools.0.name"),
        ("/responses", {"input": "x", "tool_choice": "required"}, 400, "tool_choice"),
        ("/chat/completions", {"messages": [{**user("x"), "name": "Anna Berg"}]}, 400, "messages.0.name"),
        ("/responses/compact", {"input": "x", "model": None}, 400, "model"),
        ("/responses/compact", {"input": [{"type": "compaction", "encrypted_content": "tl1.AAAA"}]}, 400, "input"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_and_named(
    scripted: httpx.Client, path: str, body: Json, status: int, param: str
) -> None:
    before = scripted.get("/conversations").json()["data"]
    named = {"X-Conversation-Id": "refused"} if path == "/chat/completions" else {}
    response = ask(scripted, path, body, **named)
    assert response.status_code == status, response.text
    assert scripted.get("/conversations").json()["data"] == before
    assert str(response.json()["error"]["param"]).startswith(param)


def test_the_framework_refuses_in_that_form_too(scripted: httpx.Client) -> None:
    refused(scripted.get("/v1/nothing"), 404, "not_found")
    refused(scripted.put("/v1/models"), 405, "method_not_allowed")
    broken = {"Content-Type": "application/json"}
    refused(scripted.post("/v1/responses", content=b"{", headers=broken), 400, "unreadable")
    refused(scripted.post("/v1/responses", content=b"x" * 8_000_001, headers=broken), 413, "body_too_large")
    refused(scripted.post("/v1/responses", content=b"{}"), 415, "unsupported_media_type")
    refused(scripted.get("/v1/models", headers={"Host": "evil.example"}), 421, "host_not_allowed")
    refused(scripted.get("/v1/models", headers={"Authorization": "Bearer tl_wrong"}), 401, "invalid_api_key")
    assert scripted.get("/v1/models", headers={"Authorization": "Bearer none"}).is_success
    assert good(scripted.get("/v1/models/throughline/handoff"))["id"] == "throughline/handoff"
    refused(scripted.get("/v1/models/throughline/none"), 404, "model_not_found")


@pytest.mark.long
def test_an_array_beyond_the_window_is_refused_or_truncated(scripted: httpx.Client, provider: OpenAI) -> None:
    long = [user("All my words. " * 25_000), {"role": "assistant", "content": "Yes."}] * 3
    refused(chat(scripted, *long, user("The last one.")), 400, "context_length_exceeded")
    good(chat(scripted, *long, user("The last one."), truncation="auto"))
    assert provider.last.texts[-1] == "The last one."
    named = {"X-Conversation-Id": "parted and long"}
    good(chat(scripted, user("Hello"), headers=named))
    parted = refused(chat(scripted, *long, user("The last one."), headers=named), 400, "context_length_exceeded")
    assert "differ from those stored in its conversation" in parted["message"]


# Once


def test_a_retry_of_an_sdk_has_one_effect(scripted: httpx.Client) -> None:
    begun = good(scripted.post("/v1/conversations", json={}))["id"]
    body = {"input": "Next.", "conversation": begun}
    tries = [ask(scripted, "/responses", body, x_stainless_retry_count=str(number)) for number in range(3)]
    assert len({good(one)["id"] for one in tries}) == 1
    assert texts(scripted, begun) == ["Next.", said(good(tries[0]))]
    anew = ask(scripted, "/responses", body, x_stainless_retry_count="0")
    assert good(anew)["id"] != good(tries[0])["id"], "who says the same again means it"
    items = {"items": [{"type": "message", "role": "user", "content": "Added."}]}
    for number in range(2):
        named = {"x-stainless-retry-count": str(number)}
        good(scripted.post(f"/v1/conversations/{begun}/items", json=items, headers=named))
    assert texts(scripted, begun).count("Added.") == 1
    first = good(anew)["id"]
    forks = [good(ask(scripted, "/responses", {"input": "Go on.", "previous_response_id": first})) for _ in range(2)]
    assert forks[0]["id"] == forks[1]["id"]


@pytest.mark.long
def test_a_retry_of_an_opening_has_one_effect_unless_another_user_said_the_same(scripted: httpx.Client) -> None:
    body = {"input": "An opening of one user."}
    tries = [good(ask(scripted, "/responses", body, x_stainless_retry_count=str(number))) for number in range(3)]
    assert len({(one["id"], one["conversation"]["id"]) for one in tries}) == 1
    uncounted = good(ask(scripted, "/responses", body))
    assert uncounted["conversation"] != tries[0]["conversation"]

    other = good(ask(scripted, "/responses", body, x_stainless_retry_count="0"))
    assert other["conversation"] != tries[0]["conversation"]
    unknown = good(ask(scripted, "/responses", body, x_stainless_retry_count="1"))
    assert unknown["conversation"] not in (tries[0]["conversation"], other["conversation"], uncounted["conversation"])


@pytest.mark.long
def test_retries_of_openings_that_come_at_once_find_nothing_of_each_other(scripted: httpx.Client) -> None:
    def opening(tries: int) -> str:
        body = {"input": "The same words of everybody."}
        told: str = good(ask(scripted, "/responses", body, x_stainless_retry_count=str(tries)))["conversation"]["id"]
        return told

    with ThreadPoolExecutor(8) as pool:
        firsts = list(pool.map(opening, [0] * 8))
        retries = list(pool.map(opening, [1] * 8))
    assert len({*firsts, *retries}) == 16


@pytest.mark.long
def test_a_fork_keeps_what_users_pinned_and_which_anchors_they_set(scripted: httpx.Client) -> None:
    first = good(ask(scripted, "/responses", {"input": "We decided to paint the boat blue. We must not use lead."}))
    good(ask(scripted, "/responses", {"input": "And then?", "previous_response_id": first["id"]}))
    origin = first["conversation"]["id"].removeprefix("conv_")
    pinned = scripted.get(f"/conversations/{origin}/messages").json()["data"][0]
    theirs, other = scripted.get(f"/conversations/{origin}/anchors").json()["data"]
    scripted.patch(f"/conversations/{origin}/anchors/{theirs['id']}", json={"status": "active"}).raise_for_status()
    scripted.put(f"/conversations/{origin}/messages/{pinned['id']}/pin").raise_for_status()
    forked = good(ask(scripted, "/responses", {"input": "Or?", "previous_response_id": first["id"]}))
    fork = forked["conversation"]["id"].removeprefix("conv_")
    copies = scripted.get(f"/conversations/{fork}/messages").json()["data"]
    assert [copy["protected_reason"] == "pinned" for copy in copies] == [copy["seq"] == 1 for copy in copies]
    anchors = scripted.get(f"/conversations/{fork}/anchors").json()["data"]
    assert [(one["content"], one["proposed_by"]) for one in anchors] == [
        (theirs["content"], "user"),
        (other["content"], "rule"),
    ]


def test_a_retry_of_a_running_request_follows_it(scripted: httpx.Client, provider: OpenAI) -> None:
    named = {"X-Conversation-Id": "running"}
    body = {"model": MODEL, "messages": [user("Hello")], "stream": True}
    provider.script({"text": "Only once.", "hold": True})
    with ThreadPoolExecutor(3) as threads, ExitStack() as streams:
        first = threads.submit(chat, scripted, user("Hello"), headers=named)
        until(lambda: provider.chats, 10, what="the first request")

        def follow(_number: int) -> httpx.Response:
            return streams.enter_context(scripted.stream("POST", "/v1/chat/completions", json=body, headers=named))

        # A stream's head comes once it follows, so neither of them can arrive after the answer.
        retries = list(threads.map(follow, range(2)))
        provider.release()
        told = [streamed_text(retry.iter_lines()) for retry in retries]
        assert [reply(first.result(20))["content"], *told] == ["Only once."] * 3
    assert len(provider.chats) == 1


def test_tries_at_one_time_after_a_failure_have_one_answer(
    scripted: httpx.Client, provider: OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that do not count themselves."""
    named = {"X-Conversation-Id": "failed, then asked twice"}
    provider.script({"status": 400, "code": "invalid_value"}, "Only once.")
    refused(chat(scripted, user("Hello"), headers=named), 400, "model_unavailable")
    both, start = asyncio.Barrier(2), ChatService.start

    async def start_together(self: ChatService, *args: Any, **further: Any) -> TurnHandle:
        await both.wait()
        return await start(self, *args, **further)

    monkeypatch.setattr(ChatService, "start", start_together)
    with ThreadPoolExecutor(2) as threads:
        tries = threads.map(lambda _: chat(scripted, user("Hello"), headers=named), range(2))
        assert [reply(one)["content"] for one in tries] == ["Only once."] * 2
    assert len(provider.chats) == 2


def test_an_answer_that_was_lost_is_given_again_between_calls_and_after_them(
    scripted: httpx.Client, provider: OpenAI
) -> None:
    """Its client sends the same history again, and does not count its tries."""
    named, offered = {"X-Conversation-Id": "lost answers"}, [{"type": "function", "function": WEATHER}]
    provider.script({"calls": [{"name": "get_weather", "args": {}}]}, "Without.", "Lost.", "Sunny.", "Yes.")

    def ask_again(*messages: Json) -> Json:
        good(chat(scripted, *messages, tools=offered, headers=named))
        answer = chat(scripted, *messages, tools=offered, headers=named)
        message: Json = good(answer)["choices"][0]["message"]
        return message

    calling = ask_again(user("Rain?"))
    assert len(provider.chats) == 1
    assert done(chat(scripted, user("Rain?"), headers=named)) == "stateless"  # control: it does not offer the tool
    result = {"role": "tool", "tool_call_id": calling["tool_calls"][0]["id"], "content": "Sunny"}
    history = [user("Rain?"), calling, result]
    history.append(ask_again(*history))
    last = chat(scripted, *history, user("Sure?"), headers=named)
    assert (history[-1]["content"], done(last), reply(last)["content"]) == ("Sunny.", "stored", "Yes.")
    kept = ["Rain?", "function_call", "function_call_output", "Lost.", "Sunny.", "Sure?", "Yes."]
    assert texts(scripted, conversation(last)) == kept


def test_later_calls_and_those_that_were_appended_are_never_taken_for_lost_ones(
    scripted: httpx.Client, provider: OpenAI
) -> None:
    body: Json = {"tools": [{"type": "function", "function": WEATHER}], "headers": {"X-Conversation-Id": "later calls"}}
    provider.script(*2 * [{"calls": [{"name": "get_weather", "args": {}}]}])
    history, results = [user("Rain?")], []
    for _ in range(2):
        answer = chat(scripted, *history, **body)
        calling = good(answer)["choices"][0]["message"]
        results.append({"tool_call_id": calling["tool_calls"][0]["id"], "content": "Sunny"})
        history += [calling, {"role": "tool", **results[-1]}]
    refused(chat(scripted, user("Rain?"), **body), 409, "tools_pending")  # it began anew, and never had the first call
    appended = [
        {"role": "tool", "content": "", "parts": [{"type": "tool_result", **results[-1]}]},
        {
            "role": "assistant",
            "content": "",
            "parts": [{"type": "tool_call", "id": "x", "name": "get_weather", "arguments": {}}],
        },
    ]
    path = f"/conversations/{UUID(conversation(answer).removeprefix('conv_'))}/messages/batch"
    assert scripted.post(path, json={"messages": appended}).is_success
    refused(chat(scripted, *history, **body), 409, "tools_pending")


def test_a_retry_of_what_others_have_gone_on_from_is_refused_and_stores_nothing_twice(
    scripted: httpx.Client, provider: OpenAI
) -> None:
    body = {"input": "Mine?", "conversation": good(scripted.post("/v1/conversations", json={}))["id"]}
    provider.script({"status": 400, "code": "invalid_value"}, "Other.")
    refused(ask(scripted, "/responses", body, x_stainless_retry_count="0"), 400, "model_unavailable")
    good(ask(scripted, "/responses", {**body, "input": "Other?"}))
    for tries in "12":
        refused(ask(scripted, "/responses", body, x_stainless_retry_count=tries), 409, "conversation_moved_on")
    assert texts(scripted, body["conversation"]) == ["Mine?", "Other?", "Other."]


def test_two_retries_of_an_answer_that_was_deleted_are_one_request(
    scripted: httpx.Client, provider: OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"input": "Mine?", "conversation": good(scripted.post("/v1/conversations", json={}))["id"]}
    provider.script("Mine.", "Mine anew.", "Mine again.")
    first = good(ask(scripted, "/responses", body, x_stainless_retry_count="0"))
    good(scripted.delete(f"/v1/responses/{first['id']}"))

    async def overtaken(*args: Any) -> Any:
        monkeypatch.undo()
        good(await asyncio.to_thread(ask, scripted, "/responses", body, x_stainless_retry_count="1"))
        return await claim_key(*args)

    monkeypatch.setattr(stored_answers, "claim_key", overtaken)
    assert said(good(ask(scripted, "/responses", body, x_stainless_retry_count="2"))) == "Mine anew."


def test_a_conversation_that_another_request_made_and_deleted_is_made_anew(
    scripted: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one failed before anything was stored, between two steps of this one."""
    begin, named = StoredAnswers._begin_when_free, {"X-Conversation-Id": "made twice"}

    async def begin_without(self: StoredAnswers, tenant_id: UUID, id_: UUID, *args: Any, **further: Any) -> Any:
        monkeypatch.undo()
        await self.drop_if_empty(tenant_id, id_)
        return await begin(self, tenant_id, id_, *args, **further)

    monkeypatch.setattr(StoredAnswers, "_begin_when_free", begin_without)
    assert done(chat(scripted, user("Hello"), headers=named)) == "stored"


def test_a_request_to_another_model_is_never_answered_by_a_running_turn(
    scripted: httpx.Client, provider: OpenAI
) -> None:
    """A frontend may ask several models at once under one name."""
    named = {"X-Conversation-Id": "of two models"}
    provider.script({"text": "Of the first.", "hold": True}, "Of the second.")
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(chat, scripted, user("Hello"), headers=named)
        until(lambda: provider.chats, 10, what="the first request")
        second = chat(scripted, user("Hello"), headers=named, model=f"{MODEL}/handoff")
        provider.release()
        assert reply(first.result(20))["content"] == "Of the first."
    assert (done(second), reply(second)["content"]) == ("stateless", "Of the second.")
    assert texts(scripted, conversation(first.result())) == ["Hello", "Of the first."]


def test_a_running_response_is_cancelled_and_what_came_is_kept(scripted: httpx.Client, provider: OpenAI) -> None:
    provider.script({"text": "One two three four five six seven eight.", "hold_after": 1})
    with scripted.stream("POST", "/v1/responses", json={"model": MODEL, "input": "x", "stream": True}) as response:
        lines = response.iter_lines()
        begun = next(json.loads(line[6:]) for line in lines if line.startswith("data: "))["response"]
        assert good(scripted.get(f"/v1/responses/{begun['id']}"))["status"] == "in_progress"
        next(line for line in lines if "output_text.delta" in line)
        ended = good(scripted.post(f"/v1/responses/{begun['id']}/cancel", headers={"x-stainless-lang": "js"}))
        rest = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    assert (ended["status"], rest[-1]["type"]) == ("cancelled", "response.incomplete")
    assert rest[-1]["response"]["status"] == "cancelled"
    assert 0 < len(said(ended)) < len("One two three four five six seven eight.")
    assert good(scripted.get(f"/v1/responses/{begun['id']}")) == ended


def test_a_chat_goes_on_after_its_user_stopped_a_reply(scripted: httpx.Client, provider: OpenAI) -> None:
    """A frontend stops by disconnecting, and goes on with the words that it has; the service finishes the reply."""
    named = {"X-Conversation-Id": "stopped by its user"}
    whole = "One two three four five six seven eight."
    provider.script({"text": whole, "hold_after": 1})
    body = {"model": MODEL, "messages": [user("Count.")], "stream": True}
    with scripted.stream("POST", "/v1/chat/completions", json=body, headers=named) as response:
        chunks = (json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: {"))
        came = next(text for chunk in chunks if (text := chunk["choices"][0]["delta"].get("content")))
    assert 0 < len(came) < len(whole)
    provider.release()
    history = [user("Count."), {"role": "assistant", "content": came}, user("Thanks.")]
    answered = chat(scripted, *history, headers=named)
    assert (done(answered), conversation(answered)) == ("stored", conversation(response))
    assert texts(scripted, conversation(answered)) == ["Count.", whole, "Thanks.", reply(answered)["content"]]


def test_a_reply_that_is_asked_for_again_takes_the_place_of_the_last(scripted: httpx.Client, provider: OpenAI) -> None:
    """A frontend's button for another reply sends the history without the last one, and goes on from the new one."""
    named = {"X-Conversation-Id": "asked again"}
    provider.script("One.", "Two.", "Two.", "Three.", "Four.")
    first = [user("A number?"), reply(chat(scripted, user("A number?"), headers=named)), user("And one more?")]
    replies = [chat(scripted, *first, headers=named) for _ in range(3)]
    on = chat(scripted, *first, reply(replies[-1]), user("Thanks."), headers=named)
    assert {conversation(one) for one in (*replies, on)} == {conversation(on)}
    seen = [text_of(item) for item in provider.last.seen if item.get("type") != "reasoning"]
    assert seen[-5:] == ["A number?", "One.", "And one more?", "Three.", "Thanks."]
    kept = scripted.get(f"/conversations/{UUID(conversation(on).removeprefix('conv_'))}/messages").json()["data"]
    assert [(message["content"], message["status"]) for message in kept[3:6]] == [
        ("Two.", "superseded"), ("Two.", "superseded"), ("Three.", "complete"),
    ]  # fmt: skip
    earlier = chat(scripted, user("A number?"), headers=named)
    other = chat(scripted, *first, reply(replies[0]), user("Thanks."), headers=named)
    assert (done(earlier), done(other)) == ("stateless", "stateless"), "only the last one is made again"


@pytest.mark.daily(1)
@pytest.mark.parametrize("words", ["What is it?", ""])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (IMAGE, f"data:image/png;base64,{base64.b64encode(b'another picture').decode()}"),
        ("https://x.test/picture?id=1", "https://x.test/picture?id=2"),
    ],
    ids=["data", "address"],
)
def test_the_same_question_about_another_picture_is_another_history(
    scripted: httpx.Client, provider: OpenAI, one: str, other: str, words: str
) -> None:
    name = f"{words}{one[:5]}"

    def asked(url: str) -> Json:
        said: list[Json] = [{"type": "text", "text": words}] if words else []
        return user([*said, {"type": "image_url", "image_url": {"url": url}}])

    named = {"X-Conversation-Id": f"two pictures {name}"}
    first = chat(scripted, asked(one), headers=named)
    assert done(chat(scripted, asked(other), headers=named)) == "stateless"
    assert other.rpartition(",")[2] in json.dumps(provider.last.body)
    assert done(chat(scripted, asked(one), reply(first), user("And now?"), headers=named)) == "stored"
    assert done(chat(scripted, asked(one), headers={"X-Conversation-Id": f"one picture {name}"})) == "stored"


def test_an_element_for_one_request_only_makes_no_other_history(scripted: httpx.Client) -> None:
    """OpenCode adds an element to the newest message while it plans, and leaves it out of the next request."""
    named = {"X-Conversation-Id": "planned"}
    reminder = "<system-reminder>\nPlan, and change nothing.\n</system-reminder>\n"
    planned = {"role": "user", "content": [{"type": "text", "text": text} for text in ("Plan it.", reminder)]}
    first = chat(scripted, user("Hello"), headers=named)
    second = chat(scripted, user("Hello"), reply(first), planned, headers=named)
    third = [user("Hello"), reply(first), user("Plan it."), reply(second), user("Build it.")]
    assert done(chat(scripted, *third, headers=named)) == "stored"
    edited = [user("Hello"), reply(first), user("Plan"), reply(second), user("Build it.")]
    assert done(chat(scripted, *edited, headers=named)) == "stateless"


def test_an_empty_system_prompt_is_no_message(scripted: httpx.Client, provider: OpenAI) -> None:
    nothing: tuple[object, ...] = ("", [])
    silent = [{"role": role, "content": content} for role in ("system", "developer") for content in nothing]
    made = good(ask(scripted, "/responses", {"input": [*silent, user("Hello")]}))
    assert len(provider.last.input) == 1
    assert len(good(scripted.get(f"/v1/responses/{made['id']}/input_items"))["data"]) == 1
    good(chat(scripted, user("Hello"), *silent, user("Are you there?")))
    assert [one["role"] for one in provider.last.input] == ["user"] * 2


def test_a_system_message_alone_is_answered_but_begins_no_conversation(
    scripted: httpx.Client, provider: OpenAI
) -> None:
    alone = [{"role": "developer", "content": "Be brief."}, {"role": "system", "content": "Greet."}]
    assert done(chat(scripted, *alone)) == "stateless"
    assert (provider.last.body["instructions"], provider.last.texts) == ("Be brief.", ["Greet."])
    refused(chat(scripted, *alone, headers={"X-Conversation-Id": "greeting"}), 400, "invalid_input")
    refused(chat(scripted, {"role": "system", "content": " "}), 400, "invalid_input")


@pytest.mark.parametrize("strict", [True, False, None])
def test_a_tool_may_hold_the_model_to_its_schema(
    scripted: httpx.Client, provider: OpenAI, *, strict: bool | None
) -> None:
    tool = {**WEATHER, "strict": strict}
    good(ask(scripted, "/responses", {"input": "Rain?", "tools": [{"type": "function", **tool}]}))
    good(chat(scripted, user("Rain?"), tools=[{"type": "function", "function": tool}]))
    assert [one.body["tools"][0]["strict"] for one in provider.chats[-2:]] == [bool(strict)] * 2


def test_a_reply_of_which_nothing_came_is_no_message(scripted: httpx.Client, provider: OpenAI) -> None:
    """Some frontends keep an empty reply in their history where an answer failed."""
    named = {"X-Conversation-Id": "with an empty reply"}
    provider.script({"status": 500, "message": "No."})
    assert chat(scripted, user("Hello"), headers=named).is_error
    empty = [user("Hello"), {"role": "assistant", "content": ""}, user("Are you there?")]
    answered = chat(scripted, *empty, headers=named)
    again = chat(scripted, *empty, reply(answered), user("And now?"), headers=named)
    assert [done(answered), done(again)] == ["stored", "stored"]
    stored = scripted.get(f"/conversations/{UUID(conversation(again).removeprefix('conv_'))}/messages").json()["data"]
    assert [message["content"] for message in stored][:2] == ["Hello", "Are you there?"]
    assert len(stored) == 5


def test_a_chat_is_kept_after_its_user_took_back_what_failed(scripted: httpx.Client, provider: OpenAI) -> None:
    """A frontend drops a message that failed, or its user rewrites it; control: an answered one stays."""
    named = {"X-Conversation-Id": "taken back"}
    provider.script({"status": 500, "message": "No."})
    assert chat(scripted, user("Helo"), headers=named).is_error
    history = [user("Hello")]
    history += [reply(chat(scripted, *history, headers=named))]
    provider.script(*[{"status": 500, "message": "No."}] * 2)
    assert chat(scripted, *history, user("How is it"), headers=named).is_error
    assert chat(scripted, *history, user("How is it here?"), headers=named).is_error
    answered = chat(scripted, *history, user("What is it like here?"), headers=named)
    assert done(answered) == "stored"
    said_by_users = ["Helo", "Hello", "How is it", "How is it here?", "What is it like here?"]
    assert [one for one in texts(scripted, conversation(answered)) if not one.startswith("You said")] == said_by_users
    other = chat(scripted, *history, user("What else?"), headers=named)
    assert done(other) == "stateless"


# Compaction


@pytest.mark.long
def test_a_typed_command_compacts_a_named_conversation(scripted: httpx.Client) -> None:
    begun = good(scripted.post("/v1/conversations", json={}))["id"]
    lines = [{"role": ("user", "assistant")[n % 2], "content": f"We agreed that part {n} costs {n + 40} euros."}
             for n in range(60)]  # fmt: skip
    scripted.post(f"/conversations/{begun.removeprefix('conv_')}/messages/batch", json={"messages": lines})
    counting = {"input": "x", "conversation": begun}
    before = good(ask(scripted, "/responses/input_tokens", counting))["input_tokens"]
    answered = chat(scripted, user("/compact costs"), conversation=begun)
    assert "euros" in reply(answered)["content"]
    assert good(ask(scripted, "/responses/compact", {"conversation": begun}))["output"][-1]["type"] == "compaction"
    assert good(ask(scripted, "/responses/input_tokens", counting))["input_tokens"] < before


def test_the_events_of_a_compaction_have_the_notifications_of_its_preset(scripted: httpx.Client) -> None:
    begun = scripted.post("/conversations", json={"preset": "turn_end", "locale": "ru"}).json()["id"]
    said = [{"role": ("user", "assistant")[n % 2], "content": f"We agreed on {n + 40} euros."} for n in range(40)]
    scripted.post(f"/conversations/{begun}/messages/batch", json={"messages": said})
    body: Json = {"conversation": f"conv_{begun.replace('-', '')}", "include": ["throughline.events"], "stream": True}
    found = events(ask(scripted, "/responses", {**body, "input": "/compact"}, accept_language="en"))
    own = [event for event in found if event["type"].startswith("throughline:compaction.")]
    assert [event["type"].rpartition(".")[2] for event in own] == ["started", "applied"]
    assert [event["notification"]["title"] for event in own] == [
        "Compressing the conversation",
        "Conversation compressed",
    ]


@pytest.mark.case("59")
def test_compacted_input_stands_for_what_it_was_made_of(scripted: httpx.Client, provider: OpenAI) -> None:
    words = [f"We agreed that part {number} costs {number + 40} euros." for number in range(60)]
    lines = [{"role": ("user", "assistant")[number % 2], "content": text} for number, text in enumerate(words)]
    made = good(ask(scripted, "/responses/compact", {"input": lines}))
    (item,) = made["output"]
    assert (made["object"], item["type"]) == ("response.compaction", "compaction")
    assert "euros" not in item["encrypted_content"]
    good(ask(scripted, "/responses", {"input": [item, user("What does part 7 cost?")], "store": False}))
    seen = json.dumps(provider.last.body)
    assert "Summary of the conversation so far" in seen
    assert "euros" in seen
    assert len(seen) < len(json.dumps(lines))
    changed = {**item, "encrypted_content": item["encrypted_content"][:-6] + "AAAAAA"}
    refused(ask(scripted, "/responses", {"input": [changed]}), 400, "invalid_input")


def test_compacted_input_shows_what_users_said_and_tells_it_once(scripted: httpx.Client, provider: OpenAI) -> None:
    lines = [user("My boat is called Vela."), {"role": "assistant", "content": "A fine name."}, user("She is blue.")]
    made = good(ask(scripted, "/responses/compact", {"input": lines}))
    *told, item = made["output"]
    assert [one["content"][0]["text"] for one in told] == ["My boat is called Vela.", "She is blue."]
    texts_of_all = ["My boat is called Vela.", "A fine name.", "She is blue.", "Which colour?"]
    sent: tuple[list[Json], ...] = (told, [], told[:1])
    for before in sent:
        good(ask(scripted, "/responses", {"input": [*before, item, user("Which colour?")], "store": False}))
        seen = list(provider.last.texts)
        assert seen == texts_of_all if before != told[:1] else set(seen) == set(texts_of_all)


@pytest.mark.parametrize(("size", "is_kept"), [(1_900_000, True), (2_400_000, False)])
def test_compacted_input_is_no_larger_than_a_request_that_brings_it_again(
    scripted: httpx.Client, provider: OpenAI, *, size: int, is_kept: bool
) -> None:
    picture = base64.b64encode(b"\x89PNG" + os.urandom(size)).decode()
    shown = [{"type": "input_text", "text": "Which boat?"},
             {"type": "input_image", "image_url": f"data:image/png;base64,{picture}"}]  # fmt: skip
    made = good(ask(scripted, "/responses/compact", {"input": [user("Hello."), {"role": "user", "content": shown}]}))
    counts = []
    for sent in (made["output"], made["output"][-1:]):
        good(ask(scripted, "/responses", {"input": [*sent, user("And this?")], "store": False}))
        seen = json.dumps(provider.last.body)
        assert (picture in seen, "image/png, 2.4 MB; left out" in seen) == (is_kept, not is_kept)
        counts.append(seen.count("Which boat?"))
    assert counts == [1, 1], "the messages beside the item are those in it"
    if not is_kept:
        words = user("word " * 1_000_000)
        refused(ask(scripted, "/responses/compact", {"input": [user("Hello."), words]}), 413, "body_too_large")


def test_compacted_input_keeps_who_of_several_users_said_what(scripted: httpx.Client, provider: OpenAI) -> None:
    kept = {"X-Conversation-Id": "two boats"}
    first = chat(scripted, by("Anna", "My boat is called Vela."), headers=kept)
    history = [by("Anna", "My boat is called Vela."), reply(first), by("Boris", "Mine is called Orca.")]
    begun = conversation(chat(scripted, *history, headers=kept))
    made = good(ask(scripted, "/responses/compact", {"conversation": begun}))
    for before in list[Any](), made["output"][:-1]:
        items = [*before, made["output"][-1], user("Whose is Orca?")]
        good(ask(scripted, "/responses", {"input": items, "store": False}))
        users = [text for text in provider.last.texts if text.startswith(("Anna", "Boris", "My", "Mine", "Whose"))]
        assert users == ["Anna: My boat is called Vela.", "Boris: Mine is called Orca.", "Whose is Orca?"]


# What a small request can ask for


def test_references_bring_no_more_than_a_request_could_bring_itself(scripted: httpx.Client) -> None:
    made = good(ask(scripted, "/conversations", {"items": [user("word " * 20_000)]}))["id"]
    (item,) = good(scripted.get(f"/v1/conversations/{made}/items"))["data"]
    named = {"type": "item_reference", "id": item["id"]}
    for path in ("/responses", "/responses/input_tokens"):
        error = refused(ask(scripted, path, {"input": [named] * 100}), 400, "context_length_exceeded")
        assert "refers to" in error["message"]
    counted = good(ask(scripted, "/responses/input_tokens", {"input": [named] * 2}))
    assert counted["input_tokens"] > 20_000, "control: a few are taken"


def test_arguments_that_cannot_be_stored_as_data_are_kept_as_text(scripted: httpx.Client) -> None:
    for number, given in enumerate(['{"at": "\\u0000"}', '{"at": "\\ud800"}', '{"at": NaN}']):
        call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": given}}
        answered = chat(
            scripted,
            user("Look."),
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "nothing"},
            headers={"X-Conversation-Id": f"arguments {number}"},
        )
        assert done(answered) == "stored", answered.text
        items = good(scripted.get(f"/v1/conversations/{conversation(answered)}/items"))["data"]
        assert [item["arguments"] for item in items if item["type"] == "function_call"] == [given]


def test_a_key_of_idempotency_gives_nobody_the_answer_of_another_conversation(scripted: httpx.Client) -> None:
    key = {"Idempotency-Key": "the hash of a body"}
    first = chat(scripted, user("Who am I?"), headers={**key, "X-OpenWebUI-User-Id": "ann", "X-Conversation-Id": "1"})
    again = chat(scripted, user("Who am I?"), headers={**key, "X-OpenWebUI-User-Id": "ann", "X-Conversation-Id": "1"})
    assert reply(again) == reply(first)
    for others in ({"X-OpenWebUI-User-Id": "ben", "X-Conversation-Id": "1"}, {"X-Conversation-Id": "2"}):
        refused(chat(scripted, user("Who am I?"), headers=key | others), 400, "idempotency_key_reused")


# Sockets


def test_a_socket_remembers_what_is_kept_nowhere(service: Service, provider: OpenAI) -> None:
    found = asyncio.run(over_socket(service.url, [
        {"input": "The word is cobalt.", "store": False},
        {"input": "Which word?", "store": False, "previous_response_id": "last"},
        {"input": [{"type": "function_call_output", "call_id": "none", "output": "x"}], "store": False,
         "previous_response_id": "last"},
        {"input": "Which word?", "store": False, "previous_response_id": "last"},
        {"type": "response.cancel"},
    ]))  # fmt: skip
    assert [one["type"] for one in found[:2]] == ["response.completed"] * 2
    assert [text for text in provider.last.texts if "cobalt" in text] == [
        "The word is cobalt.",
        "You said: The word is cobalt.",
    ]
    assert [one["error"]["code"] for one in found[2:]] == ["invalid_input", "previous_response_not_found", "unreadable"]


def test_a_socket_outlives_a_frame_of_bytes(service: Service) -> None:
    told, answered = asyncio.run(over_socket(service.url, [b"\x00", {"input": "Still there?", "store": False}]))
    assert told["error"]["code"] == "unreadable"
    assert answered["type"] == "response.completed"


def test_no_page_of_another_origin_opens_a_socket(service: Service) -> None:
    from websockets.exceptions import InvalidStatus  # noqa: PLC0415 - for this test alone

    for headers, status in (({"Origin": "http://evil.example"}, "403"), ({"Authorization": "Bearer tl_wrong"}, "401")):
        with pytest.raises(InvalidStatus, match=status):
            asyncio.run(over_socket(service.url, [], headers))
    asyncio.run(over_socket(service.url, [], {"Origin": "http://localhost:3000"}))

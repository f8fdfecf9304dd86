"""Every route: what it asks of the services, what it answers, and what it refuses."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from app.core.context.assembly import AssembledContext, Section
from app.core.model import errors
from app.core.model.conversation import Sums
from app.core.model.errors import FieldError
from app.core.model.json_merge import merge_patch
from app.core.model.model_io import ContextMessage
from app.core.model.policies.resolving import PRESETS
from app.core.model.records import Page
from app.core.model.segments import Marker
from app.core.model.state import StateEntry, StateVersion
from app.core.model.state_difference import EntryChange, StateDifference
from app.http import health
from app.http.auth import bearer
from app.http.idempotency import fingerprint, kept_key
from app.http.openapi import CHECKED_IN
from app.usecases.chat.turn_handle import ChatEvent
from app.usecases.context.recalling import WantedSections
from app.usecases.context.requests import ContextView
from app.usecases.history.conversations import NewConversation
from app.usecases.shared.compaction_views import CompactionView
from tests.rows import each
from tests.unit.api_fakes import (
    ANCHOR,
    AT,
    COMPACTION,
    CONVERSATION,
    GAUGE,
    MESSAGE,
    PATH_IDS,
    REPLY,
    TENANT,
    Turning,
    World,
    anchor,
    chat_result,
    compaction,
    conversation_view,
    world,
)

ONE = f"/conversations/{CONVERSATION}"
AS_JSON = {"Content-Type": "application/json"}
HELLO = {"role": "user", "content": "hello"}
CONTEXT = AssembledContext(
    messages=(ContextMessage(role="system", content="s"), ContextMessage(role="user", content="u", seq=9)),
    sections=(
        Section(kind="digests", seqs=(1, 2), tokens=7, level="L2", segment_id="auth"),
        Section(kind="tail", seqs=(9,), tokens=4),
    ),
    markers=(Marker(text="auth", level="L1", segment_id="auth"),),
    gauge=GAUGE,
    estimated=GAUGE.tokens,
    warnings=("context_truncated",),
    truncated=(1, 8),
)
VIEW = ContextView(context=CONTEXT)
ENTRY = StateEntry(
    id="F1",
    field="logos",
    role="fact",
    text="t",
    from_seqs=(1, 2),
    since_version=1,
    origins=("document", "tool"),
    pruned=True,
)
STATE = StateVersion(
    version=2,
    state_schema="session",
    state={"logos": ["t"]},
    entries=(ENTRY,),
    next_entry=2,
    boundary_seq=4,
    boundary_message_id=MESSAGE,
    covered=Sums(),
    layout=None,
    compaction_id=COMPACTION,
    created_at=AT,
)

ROUTES = [
    (method.upper(), path.format(**PATH_IDS) + ("?q=kettle" if path.endswith("/search") else ""))
    for path, item in json.loads(CHECKED_IN.read_text(encoding="utf-8"))["paths"].items()
    for method, operation in item.items()
    if operation.get("security") and not path.startswith("/v1/")
]
"""Every route of the checked-in document that needs a key; routes that speak as OpenAI does are tried elsewhere."""
ADMIN = {
    ("GET", "/audit"),
    ("GET", "/compactions"),
    ("POST", f"/compactions/{COMPACTION}/retry"),
    ("POST", f"{ONE}/release"),
    ("DELETE", "/users/someone"),
}
READS = [path for method, path in ROUTES if method == "GET"]
FILES = f"{ONE}/files"
"""This route takes the bytes of a file, not JSON."""
POSTS = [path for method, path in ROUTES if method == "POST" and path != FILES]
LENIENT = {f"{ONE}/ui"}
"""This route accepts fields that applications add to what the AI SDK sends."""
BODIES: dict[str, Any] = {
    f"{ONE}/messages": HELLO,
    f"{ONE}/messages/batch": {"messages": [HELLO]},
    f"{ONE}/restore": {"state_version": 2},
    f"{ONE}/segments": {"segment_id": "auth", "level": "brief"},
    f"{ONE}/ui": {"message": {"id": "1", "role": "user", "parts": [{"type": "text", "text": "hello"}]}},
    "/tokens/count": {"text": "t"},
}


@pytest.fixture
async def api() -> World:
    made = world()
    turn = Turning()
    turn.tell(ChatEvent(type="reply.completed", result=chat_result()))
    made.calls.answers.update({"chat.start": turn, "context_requests.answer": VIEW})
    return made


def fields(response: httpx.Response) -> list[str]:
    assert (response.status_code, response.json()["code"]) == (422, "invalid_input"), response.text
    return [item["field"] for item in response.json()["errors"]]


def problem(response: httpx.Response) -> tuple[int, str]:
    assert response.headers["content-type"] == "application/problem+json"
    return response.status_code, response.json()["code"]


# Who may


@each(("method", "path"), ROUTES)
@each("header", [None, "Bearer ", "Bearer wrong", "Basic d3JpdGVyOg==", "writer"])
async def test_without_a_valid_key(api: World, method: str, path: str, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    async with api.client(key=None) as client:
        response = await client.request(method, path, headers=headers)
    assert problem(response) == (401, "unauthenticated")
    assert response.headers["www-authenticate"] == "Bearer"
    assert api.calls.made == []


@pytest.mark.parametrize("header", [None, "Bearer", "Bearer ", "bearer   "])
def test_nothing_behind_bearer_is_no_key(header: str | None) -> None:
    """The examples at ``/docs`` send it in a shell without a key, which open mode needs none of."""
    assert bearer(header) is None


async def test_the_key_is_checked_before_the_body(api: World) -> None:
    async with api.client(key=None) as client:
        response = await client.post("/conversations", content=b"{broken", headers={"Content-Type": "text/x"})
    assert response.status_code == 401


@each(("method", "path"), ROUTES)
async def test_reading_is_not_writing_and_operations_are_the_admin_s(api: World, method: str, path: str) -> None:
    """An allowed request is refused for another reason, which shows a route that the admin's list lacks."""
    refused = set()
    for key in ("reader", "writer", "admin"):
        async with api.client(key=key) as client:
            response = await client.request(method, path, params={"qeury": "x"})
        if response.status_code == 403:
            assert problem(response) == (403, "forbidden")
            refused.add(key)
    assert refused == ({"reader", "writer"} if (method, path) in ADMIN else set() if method == "GET" else {"reader"})


@pytest.mark.parametrize("path", ["/presets", "/healthz", "/readyz", "/openapi.json", "/docs"])
async def test_what_needs_no_key(api: World, path: str) -> None:
    async with api.client(key=None) as client:
        assert (await client.get(path)).status_code == 200


async def test_development_mode_needs_no_key(api: World) -> None:
    api.keys.is_open = True
    async with api.client(key=None) as client:
        assert (await client.get(ONE)).status_code == 200


# What is refused


@each("path", READS)
async def test_unknown_parameters_are_refused(api: World, path: str) -> None:
    async with api.client() as client:
        response = await client.get(path, params={"qeury": "x"})
    assert fields(response) == ["qeury"]
    assert api.calls.made == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"query": "x", "compact": "always"}, "compact"),
        ({"query": ""}, "query"),
        ({"passages": [{"text": "x"}]}, "passages.0.source"),
        ({"format": "cohere"}, "format"),
        ({"sections": {"tail": False}}, "sections.tail"),
        ({"sections": {"state": "no"}}, "sections.state"),
        ({"sections": {"levels": ["full"]}}, "sections.levels.0"),
        ({"sections": None}, "sections"),
        ({"qeury": "x"}, "qeury"),
    ],
)
async def test_what_a_context_cannot_be_asked_for(api: World, body: dict[str, Any], field: str) -> None:
    async with api.client() as client:
        assert fields(await client.post(f"{ONE}/context", json=body)) == [field]


async def test_an_unknown_parameter_is_told_the_known_ones(api: World) -> None:
    async with api.client() as client:
        (error,) = (await client.get("/conversations?limt=3")).json()["errors"]
        assert error["message"] == "is not a parameter of this request; there are after, limit, order, user_id"
        (error,) = (await client.get("/presets?limit=3")).json()["errors"]
        assert error["message"] == "is not a parameter of this request; there are none"


async def test_a_path_that_is_nobodys_says_where_they_all_are(api: World) -> None:
    async with api.client() as client:
        response = await client.get("/conversation")
    assert problem(response) == (404, "not_found")
    assert "openapi.json" in response.json()["detail"]


@pytest.mark.parametrize(
    "path",
    [
        "/chat/completions", "/v1/v1/chat/completions", "/responses", "/models",
        "/v1//chat/completions", "/v1/chat/completions/", "/v1//models",
    ],
)  # fmt: skip
async def test_a_client_of_openais_api_with_a_wrong_address_is_told_which_it_takes(api: World, path: str) -> None:
    async with api.client() as client:
        response = await client.post(path, json={})
    assert response.status_code == 404
    assert "an address that ends with /v1, once" in response.text


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/v1/nowhere", "/nowhere", "/v1", "/v1/"])
async def test_control_elsewhere_it_is_told_where_everything_is(api: World, path: str) -> None:
    async with api.client() as client:
        response = await client.post(path, json={})
    assert response.status_code == 404
    assert "docs/contract.md list every path" in response.text


async def test_what_a_context_cannot_be_looked_at_with(api: World) -> None:
    async with api.client() as client:
        assert fields(await client.get(f"{ONE}/context?query=")) == ["query"]
        assert fields(await client.get(f"{ONE}/context?format=cohere")) == ["format"]
        assert fields(await client.get(f"{ONE}/context?compact=if_needed")) == ["compact"]


async def test_repeated_and_unstorable_parameters(api: World) -> None:
    async with api.client() as client:
        assert fields(await client.get("/conversations?limit=1&limit=2")) == ["limit"]
        assert fields(await client.get("/conversations?user_id=a%00b")) == ["user_id"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "limit"),
        ("order=up", "order"),
        (f"after={'x' * 301}", "after"),
    ],
)
async def test_paging_limits(api: World, query: str, field: str) -> None:
    async with api.client() as client:
        assert fields(await client.get(f"/conversations?{query}")) == [field]


@each("path", sorted(set(POSTS) - LENIENT))
@pytest.mark.case("52")
async def test_unknown_fields_are_refused(api: World, path: str) -> None:
    async with api.client() as client:
        response = await client.post(path, json={**BODIES.get(path, {}), "colour": True})
    assert fields(response) == ["colour"]
    told, _, known = response.json()["errors"][0]["message"].partition("; there are ")
    assert told == "is not a field of this request"
    assert {*BODIES.get(path, ())} <= {*known.split(", ")}
    assert api.calls.made == []


@pytest.mark.parametrize(
    ("path", "body", "field", "known"),
    [
        (f"{ONE}/compact", {"focuss": "x"}, "focuss", "focus, up_to_message_id, keep_tail_messages, dry_run, wait"),
        (
            f"{ONE}/context",
            {"sections": {"tale": True}},
            "sections.tale",
            "state, anchors, digests, held, recalled, levels",
        ),
        (
            f"{ONE}/chat",
            {"content": "x", "passages": [{"text": "y", "source": "z", "origin": "z"}]},
            "passages.0.origin",
            "text, source",
        ),
        (f"{ONE}/chat/interrupt", {"reason": "x"}, "reason", ""),
    ],
)
async def test_an_unknown_field_is_told_the_known_ones(
    api: World, path: str, body: dict[str, Any], field: str, known: str
) -> None:
    async with api.client() as client:
        response = await client.post(path, json=body)
    (error,) = response.json()["errors"]
    assert error["field"] == field
    assert error["message"] == f"is not a field of this request{'; there are ' if known else ''}{known}"


@pytest.mark.parametrize("path", sorted(BODIES))
async def test_a_missing_body_is_unreadable(api: World, path: str) -> None:
    async with api.client() as client:
        assert problem(await client.post(path, headers=AS_JSON)) == (400, "unreadable")


@pytest.mark.parametrize("path", ["/conversations", "/v1/conversations"])
async def test_a_post_without_a_body_asks_for_nothing_of_its_own(api: World, path: str) -> None:
    async with api.client() as client:
        response = await client.post(path, headers=AS_JSON)
    assert response.is_success, response.text
    (_, new), _ = api.calls.last("conversations.create")
    assert new == NewConversation()


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"topic": "tea"},
        {"topic": {"name": "tea"}, "place": "Oslo"},
        {"topic": {"name": "tea", "more": {}}, "place": {"x": 1}},
    ],
)
async def test_metadata_takes_the_place_of_the_old(api: World, wanted: dict[str, Any]) -> None:
    present = {"topic": {"kind": 1, "more": {"deep": True}}, "place": "Riga", "other": [1]}
    api.calls.answers["conversations.get"] = conversation_view(metadata=present)
    async with api.client() as client:
        response = await client.post(f"/v1/conversations/conv_{CONVERSATION.hex}", json={"metadata": wanted})
    (_, _, changes), _ = api.calls.last("conversations.patch")
    assert response.is_success, response.text
    assert merge_patch(present, changes["metadata"]) == wanted


async def test_a_message_for_openai_s_clients_names_the_field_as_the_parameter_does(api: World) -> None:
    async with api.client() as client:
        told = (await client.post("/v1/responses", json={"model": "throughline", "input": 5})).json()["error"]
    assert told["param"] == "input"
    assert told["message"].startswith("input: must be")


@pytest.mark.parametrize("body", [b"{", b"nonsense", b'{"title": NaN}', b"\xff\xfe", b"[" * 70 + b"]" * 70])
@pytest.mark.case("56")
async def test_unreadable_json(api: World, body: bytes) -> None:
    async with api.client() as client:
        response = await client.post("/conversations", content=body, headers={"Content-Type": "application/json"})
    assert problem(response) == (400, "unreadable")


@pytest.mark.parametrize("body", [b"[]", b"null", b'"text"', b"1"])
async def test_json_that_is_no_object(api: World, body: bytes) -> None:
    async with api.client() as client:
        response = await client.post(f"{ONE}/messages", content=body, headers={"Content-Type": "application/json"})
    assert problem(response) == (422, "invalid_input")
    assert response.json()["detail"] == "body: must be a JSON object"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"metadata": 1}, "metadata: must be a JSON object"),
        ({"parts": "hello"}, "parts: must be a JSON array"),
        ({"parts": ["hello"]}, "parts.0: must be a JSON object"),
        ({"parts": [{"text": "hello"}]}, "parts.0: must be a JSON object with a type"),
    ],
)
async def test_what_is_wanted_is_told_in_words_of_json(api: World, given: dict[str, Any], told: str) -> None:
    async with api.client() as client:
        assert (await client.post(f"{ONE}/messages", json={**HELLO, **given})).json()["detail"] == told


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16"]
)
async def test_other_content_types(api: World, kind: str) -> None:
    async with api.client() as client:
        response = await client.post("/conversations", content=b"{}", headers={"Content-Type": kind})
    assert problem(response) == (415, "unsupported_media_type")


async def test_blank_content_in_the_promised_words(api: World) -> None:
    async with api.client() as client:
        for path, body in ((f"{ONE}/messages", {"role": "user", "content": " "}), (f"{ONE}/chat", {"content": ""})):
            response = await client.post(path, json=body)
            assert fields(response) == ["content"]
            assert response.json()["errors"][0]["message"] == response.json()["detail"] == "content cannot be empty"


async def test_faults_in_a_batch_are_named_by_place(api: World) -> None:
    messages = [HELLO, {"role": "user", "content": ""}, {**HELLO, "parts": [{"type": "tool_call", "id": "c"}]}]
    async with api.client() as client:
        response = await client.post(f"{ONE}/messages/batch", json={"messages": messages})
    assert fields(response) == [
        "messages.1.content",
        "messages.2.parts.0.name",
        "messages.2.parts.0.arguments",
    ]


async def test_faults_of_a_message_that_comes_alone_are_named_by_its_own_fields(api: World) -> None:
    unknown = FieldError(field="messages.0.parts", message="no such call")
    named = []
    for path, body in ((f"{ONE}/messages", HELLO), (f"{ONE}/messages/batch", {"messages": [HELLO]})):
        api.calls.answers["messages.append"] = errors.InvalidInputError("d", errors=[unknown])
        async with api.client() as client:
            named += fields(await client.post(path, json=body))
    assert named == ["parts", "messages.0.parts"]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (f"{ONE}/states?a=x&b=1", "a: Input should be"),
        (f"{ONE}/search", "q: Field required"),
        (f"{ONE}/messages?limit=x", "limit: Input should be"),
    ],
)
async def test_the_detail_names_the_parameter(api: World, path: str, told: str) -> None:
    async with api.client() as client:
        assert (await client.get(path)).json()["detail"].startswith(told)


@pytest.mark.parametrize(
    ("choice", "field"), [("weather", "tool_choice"), ({"nmae": "weather"}, "tool_choice.name"), (7, "tool_choice")]
)
@pytest.mark.parametrize("path", ["chat", "ui"])
async def test_a_choice_of_tools_is_refused_by_the_field_that_it_has(
    api: World, path: str, choice: Any, field: str
) -> None:
    body = {**BODIES[f"{ONE}/ui"], "tool_choice": choice} if path == "ui" else {"tool_choice": choice}
    async with api.client() as client:
        named = fields(await client.post(f"{ONE}/{path}", json=body))
    assert field in named
    assert {name.partition(".")[0] for name in named} == {"tool_choice"}
    assert all(name.replace("_", "").replace(".", "").isalpha() for name in named)


@pytest.mark.parametrize("messages", [[], [HELLO] * 1_001])
async def test_batch_sizes(api: World, messages: list[Any]) -> None:
    async with api.client() as client:
        assert fields(await client.post(f"{ONE}/messages/batch", json={"messages": messages})) == ["messages"]


async def test_the_answer_to_a_flood_is_small(api: World) -> None:
    async with api.client() as client:
        response = await client.post("/conversations", json={f"k{number}" * 500: 0 for number in range(1_000)})
    assert response.status_code == 422
    assert len(response.content) < 50_000


async def test_the_bare_address_leads_to_the_page(api: World) -> None:
    async with api.client() as client:
        response = await client.get("/")
    assert (response.status_code, response.headers["location"]) == (307, "/ui/")


@pytest.mark.parametrize("path", ["/nowhere", "/conversations/", f"{ONE}/nothing"])
async def test_unknown_paths(api: World, path: str) -> None:
    async with api.client() as client:
        response = await client.get(path)
    assert problem(response) == (404, "not_found")
    assert "The page is at /ui/" in response.json()["detail"]


async def test_clients_of_azure_are_told_in_their_form_where_that_api_is(api: World) -> None:
    async with api.client() as client:
        response = await client.post("/openai/deployments/gpt/chat/completions?api-version=1", json={})
    assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")
    assert "ends with /v1" in response.json()["error"]["message"]


async def test_models_are_there_for_whoever_only_looks_whether_they_are(api: World) -> None:
    async with api.client() as client:
        found = [(await client.head(f"/v1/models{one}")).status_code for one in ("", "/throughline", "/none")]
    assert found == [200, 200, 404]


async def test_control_what_is_not_found_at_a_known_path_is_no_matter_of_the_page(api: World) -> None:
    api.calls.answers["conversations.get"] = errors.NotFoundError("No such conversation.")
    async with api.client() as client:
        assert "/ui/" not in (await client.get(ONE)).json()["detail"]


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        (ONE, "DELETE, GET, PATCH"),
        ("/conversations", "GET, POST"),
        (f"{ONE}/messages/{MESSAGE}/pin", "DELETE, PUT"),
        (f"{ONE}/segments", "GET, POST"),
        ("/presets", "GET"),
        ("/openapi.json", "GET, HEAD"),
    ],
)
async def test_wrong_methods_are_told_all_that_the_path_can_do(api: World, path: str, methods: str) -> None:
    async with api.client() as client:
        response = await client.options(path)
    assert problem(response) == (405, "method_not_allowed")
    assert response.json()["detail"] == f"This path takes {methods}, and not OPTIONS."
    assert response.headers["allow"] == methods


@pytest.mark.parametrize("since", ["5", "0.5", "1763632800", "now", ""])
async def test_a_number_is_no_time(api: World, since: str) -> None:
    async with api.client() as client:
        assert fields(await client.get("/stats", params={"since": since})) == ["since"]


@pytest.mark.parametrize("path", ["/conversations/abc", "/conversations/abc/messages", "/compactions/1"])
async def test_ids_are_uuids(api: World, path: str) -> None:
    async with api.client() as client:
        assert fields(await client.get(path)) in (["conversation_id"], ["compaction_id"])


@each("key", ["", "x" * 256, "ünï", "tab\there"])
@each("path", POSTS)
async def test_idempotency_keys_out_of_contract(api: World, path: str, key: str) -> None:
    async with api.client() as client:
        headers = {"Idempotency-Key": key.encode("latin-1")}
        response = await client.post(path, json=BODIES.get(path, {}), headers=headers)  # type: ignore[arg-type]
    assert fields(response) == ["Idempotency-Key"]


@each("second", ["k1", "k2"])
@each("path", POSTS)
async def test_two_idempotency_keys_are_one_too_many(api: World, path: str, second: str) -> None:
    async with api.client() as client:
        one, *more = [("idempotency-key", key) for key in ("k1", second)]
        assert fields(await client.post(path, json=BODIES.get(path, {}), headers=[one, *more])) == ["Idempotency-Key"]
        control = await client.post(path, json=BODIES.get(path, {}), headers=[one])
    assert control.status_code != 422


async def test_two_preconditions_and_two_places_in_a_stream_are_refused_too(api: World) -> None:
    async with api.client() as client:
        both = await client.patch(ONE, json={"title": "t"}, headers=[("if-match", '"3"'), ("if-match", '"4"')])
        assert fields(both) == ["If-Match"]
        both = await client.get(f"{ONE}/events", headers=[("last-event-id", "3"), ("last-event-id", "4")])
        assert fields(both) == ["Last-Event-ID"]


@pytest.mark.parametrize("value", ["3", 'w/"3"', '"x"', '"3", "4"', '""', '"-1"'])
async def test_malformed_preconditions(api: World, value: str) -> None:
    async with api.client() as client:
        patched = await client.patch(ONE, json={}, headers={"If-Match": value})
        restored = await client.post(f"{ONE}/restore", json={"state_version": 1}, headers={"If-Match": value})
    assert problem(patched) == problem(restored) == (400, "unreadable")


@each(
    ("error", "status", "retry_after"),
    [
        (errors.NotFoundError("d"), 404, None),
        (errors.UnknownPresetError("d", errors=[FieldError(field="preset", message="m")]), 422, None),
        (errors.PolicyInvalidError("d"), 422, None),
        (errors.BudgetTooSmallError("d", extra={"minimum": 7}), 422, None),
        (errors.IdempotencyKeyReusedError("d"), 422, None),
        (errors.IdempotencyInProgressError("d", retry_after=2), 409, "2"),
        (errors.TurnInProgressError("d"), 409, "1"),
        (errors.CompactionInProgressError("d", retry_after=5), 409, "5"),
        (errors.ConversationMovedOnError("d"), 409, None),
        (errors.PinBudgetExceededError("d", extra={"protected_tokens": 1, "size": 2, "limit": 2}), 409, None),
        (errors.NotPinnableError("d"), 409, None),
        (errors.StateVersionMismatchError("d"), 412, None),
        (errors.TooLargeError("d", extra={"limit": 9}), 413, None),
        (errors.SummarizerFailedError("d", code="empty_summary"), 502, None),
        (errors.ModelFailedError("d", extra={"message_id": str(MESSAGE)}), 502, None),
        (errors.ContextOverWindowError("d", extra={"breakdown": {"system": 1}}), 503, None),
        (errors.DependencyUnavailableError("d"), 503, "1"),
        (errors.ConflictError("d", code="not_covered"), 409, "1"),
    ],
)
async def test_errors_of_the_services(
    api: World, error: errors.DomainError, status: int, retry_after: str | None
) -> None:
    api.calls.answers["conversations.create"] = error
    async with api.client() as client:
        response = await client.post("/conversations", json={})
    assert problem(response) == (status, error.stable_code)
    body = response.json()
    assert body["type"] == f"urn:throughline:problem:{error.stable_code}"
    assert (body["title"], body["detail"], body["retryable"]) == (error.title, "d", error.retryable)
    assert body.items() >= error.extra.items()
    assert response.headers.get("retry-after") == retry_after


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (errors.ModelFailedError("d", extra={"reason": "unauthorized"}), "false"),
        (errors.ModelFailedError("d", extra={"reason": "server_error"}), None),
        (errors.ContextOverWindowError("d"), "false"),
        (errors.DependencyUnavailableError("d"), None),
        (errors.CompactionInProgressError("d", retry_after=5), None),
        (RuntimeError("a defect"), None),
    ],
)
async def test_openai_s_clients_are_told_where_no_other_try_helps(
    api: World, error: Exception, told: str | None
) -> None:
    """OpenAI's clients repeat every 409 and every 5xx on their own, unless this header forbids it."""
    api.calls.answers["conversations.create"] = error
    async with api.client() as client:
        response = await client.post("/v1/conversations", json={})
        elsewhere = await client.post("/conversations", json={})
    assert response.is_error, response.text
    assert response.headers.get("x-should-retry") == told
    assert "x-should-retry" not in elsewhere.headers, "a problem says `retryable`"


# What is asked and answered


async def test_creating_a_conversation(api: World) -> None:
    given = {"title": "T", "user_id": "u", "locale": "ru", "policy": {"context_window": 4000}, "metadata": {"k": [1]}}
    body = json.dumps(given).encode()
    headers = {"Idempotency-Key": "k1", "Content-Type": "application/json"}
    async with api.client() as client:
        response = await client.post("/conversations", content=body, headers=headers)
    (tenant, new), kwargs = api.calls.last("conversations.create")
    assert response.status_code == 201
    assert response.headers["location"] == ONE
    assert response.headers["etag"] == '"3"'
    assert (tenant, new.title, new.locale, new.policy) == (TENANT, "T", "ru", {"context_window": 4000})
    assert (kwargs["idem"].key, kwargs["idem"].fingerprint) == (
        kept_key("k1"),
        fingerprint("POST", "/conversations", body),
    )


async def test_a_conversation_in_full(api: World) -> None:
    async with api.client() as client:
        response = await client.get(ONE)
    assert response.headers["etag"] == '"3"'
    document = json.loads(CHECKED_IN.read_text(encoding="utf-8"))
    assert response.json().keys() == document["components"]["schemas"]["Conversation"]["properties"].keys()
    assert response.json()["policy"] == conversation_view().policy.model_dump(mode="json")
    assert response.json()["message_count"] == 7


async def test_lists_have_one_shape(api: World) -> None:
    async with api.client() as client:
        response = await client.get("/conversations?limit=5&after=abc&order=asc&user_id=u")
    assert response.json().keys() == {"data", "next_cursor", "has_more"}
    assert (response.json()["next_cursor"], response.json()["has_more"]) == (None, False)
    assert response.json()["data"][0].keys().isdisjoint({"compressed_state", "policy", "scratchpad"})
    assert api.calls.last("conversations.page")[0] == (TENANT, Page(limit=5, after="abc", order="asc"), "u")


async def test_messages_are_listed_from_the_start(api: World) -> None:
    async with api.client() as client:
        response = await client.get(f"{ONE}/messages")
    assert (response.json()["next_cursor"], response.json()["has_more"]) == ("next", True)
    assert api.calls.last("messages.page")[0] == (TENANT, CONVERSATION, Page(order="asc"))


@pytest.mark.parametrize("tag", ['"3"', 'W/"3"'], ids=["as it was", "as a proxy that compresses makes it"])
async def test_patching_what_is_given(api: World, tag: str) -> None:
    async with api.client() as client:
        response = await client.patch(ONE, json={"title": None, "scratchpad": {"a": None}}, headers={"If-Match": tag})
    args, kwargs = api.calls.last("conversations.patch")
    assert response.status_code == 200
    assert args == (TENANT, CONVERSATION, {"title": None, "scratchpad": {"a": None}})
    assert kwargs == {"if_match": 3}


async def test_any_version_will_do(api: World) -> None:
    async with api.client() as client:
        await client.patch(ONE, json={}, headers={"If-Match": "*"})
    assert api.calls.last("conversations.patch")[1] == {"if_match": None}


async def test_deleting(api: World) -> None:
    async with api.client() as client:
        response = await client.delete(ONE)
    assert (response.status_code, response.content) == (204, b"")


async def test_appending_one(api: World) -> None:
    given = {
        **HELLO,
        "event_type": "goal",
        "expected_last_message_id": str(MESSAGE),
        "created_at": "2020-01-02T03:04:05Z",
    }
    async with api.client() as client:
        response = await client.post(f"{ONE}/messages", json=given)
    (tenant, conversation, (draft,)), kwargs = api.calls.last("messages.append")
    assert (response.status_code, response.json()["id"]) == (201, str(MESSAGE))
    assert (tenant, conversation, draft.role, draft.content, draft.event_type) == (
        TENANT,
        CONVERSATION,
        "user",
        "hello",
        "goal",
    )
    assert kwargs == {"expected_last_message_id": MESSAGE, "idem": None}


async def test_appending_many(api: World) -> None:
    async with api.client() as client:
        response = await client.post(f"{ONE}/messages/batch", json={"messages": [HELLO, HELLO]})
    assert (response.status_code, [item["seq"] for item in response.json()["data"]]) == (201, [1, 2])
    assert len(api.calls.last("messages.append")[0][2]) == 2


async def test_chat_as_json(api: World) -> None:
    async with api.client() as client:
        response = await client.post(f"{ONE}/chat", json={"content": "hello"}, headers={"Idempotency-Key": "k"})
    assert response.status_code == 201
    told = {"message", "reply", "context", "compaction", "recalled", "warnings", "status", "open_calls", "finish"}
    assert response.json().keys() == told
    args, kwargs = api.calls.last("chat.start")
    assert (args[2].content, kwargs["idem"].key) == ("hello", kept_key("k"))


async def test_chat_answers_what_waits(api: World) -> None:
    async with api.client() as client:
        response = await client.post(f"{ONE}/chat", headers=AS_JSON)
    assert response.status_code == 201
    assert api.calls.last("chat.start")[0][2].content is None


async def test_a_reply_is_made_again(api: World) -> None:
    async with api.client() as client:
        response = await client.post(f"{ONE}/chat/regenerate", json={"recall": False})
        refused = await client.post(f"{ONE}/chat/regenerate", json={"content": "Another."})
    assert response.status_code == 201
    given = api.calls.last("chat.start")[0][2]
    assert (given.regenerates, given.content, given.recall) == (True, None, False)
    assert fields(refused) == ["content"]


async def test_following_where_no_turn_runs(api: World) -> None:
    async with api.client(key="reader") as client:
        response = await client.get(f"{ONE}/chat/stream")
    assert (response.status_code, response.content) == (204, b"")


async def test_following_a_turn_from_its_beginning(api: World) -> None:
    api.calls.answers["chat.follow"] = api.calls.answers["chat.start"]
    async with api.client(key="reader") as client:
        response = await client.get(f"{ONE}/chat/stream")
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.text.startswith("event: reply.completed")


async def test_a_model_that_fails(api: World) -> None:
    turn = Turning()
    turn.tell(ChatEvent(type="reply.failed", error=errors.ModelFailedError("d", extra={"message_id": str(MESSAGE)})))
    api.calls.answers["chat.start"] = turn
    async with api.client() as client:
        response = await client.post(f"{ONE}/chat", json={"content": "hello"})
    assert problem(response) == (502, "model_failed")
    assert response.json()["message_id"] == str(MESSAGE)


async def test_interrupting(api: World) -> None:
    async with api.client() as client:
        running = await client.post(f"{ONE}/chat/interrupt", headers=AS_JSON)
        api.calls.answers["chat.interrupt"] = None
        idle = await client.post(f"{ONE}/chat/interrupt", json={})
    assert (running.status_code, running.json()) == (202, {"interrupted": True, "message_id": str(MESSAGE)})
    assert (idle.status_code, idle.json()) == (202, {"interrupted": False, "message_id": None})


async def test_compacting_now(api: World) -> None:
    async with api.client() as client:
        response = await client.post(f"{ONE}/compact", json={"focus": "money", "keep_tail_messages": 0})
    args, kwargs = api.calls.last("manual.compact")
    assert response.status_code == 200
    assert "location" not in response.headers
    assert (args[2].focus, args[2].keep_tail_messages, args[2].wait, args[2].dry_run) == ("money", 0, True, False)
    assert 0 < kwargs["timeout"] < 120
    body = response.json()
    assert (body["summary"], body["ratio"], body["cost_usd"], body["usage"]["input_tokens"]) == (
        "what happened",
        0.25,
        0.5,
        10,
    )


async def test_compacting_later(api: World) -> None:
    api.calls.answers["manual.compact"] = CompactionView(compaction=compaction(status="queued"))
    async with api.client() as client:
        response = await client.post(f"{ONE}/compact", json={"wait": False})
    assert (response.status_code, response.headers["location"]) == (202, f"/compactions/{COMPACTION}")


async def test_compacting_later_again_under_the_same_key_is_accepted_again_also_after_its_end(api: World) -> None:
    api.calls.answers["manual.compact"] = CompactionView(compaction=compaction(status="skipped"))
    async with api.client() as client:
        response = await client.post(f"{ONE}/compact", json={"wait": False})
    assert (response.status_code, response.json()["status"]) == (202, "skipped")
    assert response.headers["location"].endswith(response.json()["id"])


async def test_a_dry_run_has_no_id(api: World) -> None:
    api.calls.answers["manual.compact"] = CompactionView(compaction=compaction(status="queued"), planned=True)
    async with api.client() as client:
        response = await client.post(f"{ONE}/compact", json={"dry_run": True, "wait": False})
    assert (response.status_code, response.json()["id"], response.json()["status"]) == (200, None, "planned")


async def test_compactions_of_a_conversation_and_of_all(api: World) -> None:
    async with api.client() as client:
        own = await client.get(f"{ONE}/compactions")
        every = await client.get("/compactions?status=failed")
        wrong = await client.get("/compactions?status=broken")
        retried = await client.post(f"/compactions/{COMPACTION}/retry", headers={**AS_JSON, "Idempotency-Key": "k"})
    assert own.json()["data"][0]["id"] == str(COMPACTION)
    assert [kwargs for name, _, kwargs in api.calls.made if name == "manual.page"] == [
        {"conversation_id": CONVERSATION},
        {"status": "failed"},
    ]
    assert every.status_code == 200
    assert fields(wrong) == ["status"]
    assert (retried.status_code, retried.headers["location"]) == (202, f"/compactions/{COMPACTION}")


async def test_a_context(api: World) -> None:
    async with api.client() as client:
        got = await client.get(f"{ONE}/context?budget=500&format=plain")
        posted = await client.post(f"{ONE}/context", json={"budget": 500})
    assert got.content == posted.content
    asks = [args[2] for name, args, _ in api.calls.made if name == "context_requests.answer"]
    assert [(ask.budget, ask.compact, ask.counts) for ask in asks] == [(500, "never", False), (500, "never", True)]
    body = got.json()
    assert body["messages"][1] == {
        "role": "user",
        "content": "u",
        "parts": [],
        "seq": 9,
        "turn": 8,
        "event_type": None,
        "is_protected": False,
    }
    assert body["sections"] == [
        {"kind": "digests", "level": "brief", "segment_id": "auth", "seqs": [1, 2], "tokens": 7},
        {"kind": "tail", "level": None, "segment_id": None, "seqs": [9], "tokens": 4},
    ]
    assert body["markers"] == [{"text": "[auth →L1:auth]", "level": "detailed", "segment_id": "auth"}]
    assert body["truncated"] == {"from_seq": 1, "to_seq": 8}
    assert (body["system"], body["compaction"]) == (None, None)


async def test_a_context_in_the_shape_of_a_provider(api: World) -> None:
    async with api.client() as client:
        openai = (await client.get(f"{ONE}/context?format=openai")).json()
        gemini = (await client.post(f"{ONE}/context", json={"format": "gemini"})).json()
        anthropic = (await client.post(f"{ONE}/context", json={"format": "anthropic"})).json()
    assert openai["messages"] == [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    assert openai["system"] is None
    assert (gemini["system"], gemini["messages"]) == ("s", [{"role": "user", "parts": [{"text": "u"}]}])
    said = [{"role": "user", "content": [{"type": "text", "text": "u"}]}]
    assert (anthropic["system"], anthropic["messages"]) == ("s", said)
    assert openai["sections"] == gemini["sections"] == anthropic["sections"]


async def test_what_a_context_is_asked_with(api: World) -> None:
    body = {
        "query": "q",
        "compact": "if_needed",
        "sections": {"state": False, "levels": ["tags", "detailed"]},
        "passages": [{"text": "t", "source": "s"}],
    }
    async with api.client() as client:
        await client.post(f"{ONE}/context", json=body, headers={"Idempotency-Key": "k"})
    args, kwargs = api.calls.last("context_requests.answer")
    ask = args[2]
    assert (ask.compact, ask.recall_request.query, ask.recall_request.passages[0].source) == ("if_needed", "q", "s")
    assert ask.recall_request.wanted == WantedSections(state=False, levels=("L1", "L3"))
    assert kwargs["idem"].key == kept_key("k")


@pytest.mark.parametrize("budget", ["0", "-1", "x", "1.5", "100000001"])
async def test_budgets_out_of_contract(api: World, budget: str) -> None:
    async with api.client() as client:
        assert fields(await client.get(f"{ONE}/context?budget={budget}")) == ["budget"]
        assert fields(await client.post(f"{ONE}/context", json={"budget": budget})) == ["budget"]


async def test_usage(api: World) -> None:
    async with api.client() as client:
        body = (await client.get(f"{ONE}/usage")).json()
    assert body["tokens"] == sum(body["breakdown"].values()) == 100
    assert body.keys() >= {"budget", "window", "utilization", "status", "background_at", "sync_at"}
    assert body["anchors_behind_marker"] == 2


async def test_states(api: World) -> None:
    api.calls.answers["states.page"] = ([STATE], "c")
    async with api.client() as client:
        body = (await client.get(f"{ONE}/states")).json()
    assert body["data"][0]["provenance"] == [
        {
            "entry_id": "F1",
            "field": "logos",
            "text": "t",
            "from_seqs": [1, 2],
            "since_version": 1,
            "origins": ["document", "tool"],
            "superseded": [],
            "in_doubt": False,
            "standing": None,
            "pruned": True,
        }
    ]
    assert body["data"][0].keys() == {
        "version",
        "state",
        "state_schema",
        "provenance",
        "repairs",
        "made_by",
        "verified",
        "verification",
        "compaction_id",
        "boundary_seq",
        "created_at",
    }


async def test_a_difference(api: World) -> None:
    change = EntryChange(entry_id="F2", field="logos", before="x", after="y")
    found = StateDifference(a=1, b=2, added=(ENTRY,), removed=(), changed=(change,))
    api.calls.answers["states.difference"] = found
    async with api.client() as client:
        body = (await client.get(f"{ONE}/states?a=1&b=2")).json()
    assert api.calls.last("states.difference")[0] == (TENANT, CONVERSATION, 1, 2)
    assert (body["a"], body["b"], body["removed"]) == (1, 2, [])
    assert body["added"][0]["entry_id"] == "F1"
    assert body["changed"] == [{"entry_id": "F2", "field": "logos", "before": "x", "after": "y"}]


@pytest.mark.parametrize(("query", "field"), [("a=1", "b"), ("b=1", "a"), ("a=0&b=1", "a"), ("a=1&b=x", "b")])
async def test_a_difference_needs_two_versions(api: World, query: str, field: str) -> None:
    async with api.client() as client:
        assert fields(await client.get(f"{ONE}/states?{query}")) == [field]


async def test_restoring(api: World) -> None:
    async with api.client() as client:
        response = await client.post(f"{ONE}/restore", json={"state_version": 2}, headers={"If-Match": '"3"'})
    args, kwargs = api.calls.last("states.restore")
    assert (response.status_code, response.headers["etag"]) == (200, '"3"')
    assert (args, kwargs) == ((TENANT, CONVERSATION, 2), {"if_match": 3, "idem": None})


@pytest.mark.parametrize("version", [-1, "0", "2", 2.0, False, True, 2**31, None])
async def test_restoring_nonsense(api: World, version: Any) -> None:
    async with api.client() as client:
        assert fields(await client.post(f"{ONE}/restore", json={"state_version": version})) == ["state_version"]


async def test_erasing_a_message(api: World) -> None:
    async with api.client() as client:
        response = await client.delete(f"{ONE}/messages/{MESSAGE}")
    assert (response.status_code, response.content) == (204, b"")
    assert api.calls.last("erasure.erase")[0] == (TENANT, CONVERSATION, MESSAGE)


PIN = f"{ONE}/messages/{MESSAGE}/pin"


async def test_pinning_and_back(api: World) -> None:
    async with api.client() as client:
        pinned = await client.put(PIN)
        unpinned = await client.delete(PIN)
    assert (pinned.status_code, pinned.json()["protected_reason"], pinned.json()["is_protected"]) == (
        200,
        "pinned",
        True,
    )
    assert (unpinned.status_code, unpinned.json()["is_protected"]) == (200, False)
    assert api.calls.last("pins.pin")[0] == api.calls.last("pins.unpin")[0] == (TENANT, CONVERSATION, MESSAGE)


async def test_a_pin_without_room_says_the_numbers(api: World) -> None:
    numbers = {"protected_tokens": 200, "size": 120, "limit": 306}
    api.calls.answers["pins.pin"] = errors.PinBudgetExceededError("d", extra=numbers)
    async with api.client() as client:
        response = await client.put(PIN)
    assert problem(response) == (409, "pin_budget_exceeded")
    assert response.json().items() >= numbers.items()
    assert response.json()["retryable"] is False
    assert "retry-after" not in response.headers


async def test_anchors_are_listed_from_the_start(api: World) -> None:
    async with api.client() as client:
        response = await client.get(f"{ONE}/anchors?type=decision&status=active&limit=5&after=abc")
        every = await client.get(f"{ONE}/anchors")
    assert response.json()["data"] == [
        {
            "id": str(ANCHOR),
            "type": "decision",
            "content": "let's use MySQL",
            "original_position": 7,
            "offset": 12,
            "message_id": str(MESSAGE),
            "speaker": "user",
            "pasted": False,
            "status": "active",
            "proposed_by": "rule",
            "superseded_by": None,
        }
    ]
    assert every.status_code == 200
    assert [(args, kwargs) for name, args, kwargs in api.calls.made if name == "anchors.page"] == [
        ((TENANT, CONVERSATION, Page(limit=5, after="abc", order="asc")), {"type_": "decision", "status": "active"}),
        ((TENANT, CONVERSATION, Page(order="asc")), {"type_": None, "status": None}),
    ]


async def test_words_that_no_anchor_has_are_refused_with_those_there_are(api: World) -> None:
    async with api.client() as client:
        answers = [
            (await client.get(f"{ONE}/anchors?type=idea"), "type", ("commitment", "correction")),
            (await client.get(f"{ONE}/anchors?status=open"), "status", ("active", "resolved", "superseded")),
            (await client.patch(f"{ONE}/anchors/{ANCHOR}", json={"status": "done"}), "status", ("active", "resolved")),
        ]
        more = await client.patch(f"{ONE}/anchors/{ANCHOR}", json={"status": "active", "content": "x"})
        none = await client.patch(f"{ONE}/anchors/{ANCHOR}", json={})
    for response, field, allowed in answers:
        assert fields(response) == [field]
        assert all(f"'{word}'" in response.json()["errors"][0]["message"] for word in allowed)
    assert fields(more) == ["content"]
    assert fields(none) == ["status"]
    assert api.calls.made == []


async def test_an_anchor_s_status(api: World) -> None:
    api.calls.answers["anchors.set_status"] = anchor(status="superseded", superseded_by=REPLY, proposed_by="model")
    async with api.client() as client:
        response = await client.patch(f"{ONE}/anchors/{ANCHOR}", json={"status": "superseded"})
    assert (response.status_code, response.json()["status"]) == (200, "superseded")
    assert (response.json()["superseded_by"], response.json()["proposed_by"]) == (str(REPLY), "model")
    assert api.calls.last("anchors.set_status")[0] == (TENANT, CONVERSATION, ANCHOR, "superseded")


async def test_counting_tokens(api: World) -> None:
    async with api.client() as client:
        text = await client.post("/tokens/count", json={"text": "hello"})
        messages = await client.post("/tokens/count", json={"messages": [HELLO]})
        both = await client.post("/tokens/count", json={"text": "hello", "messages": [HELLO]})
    assert text.json() == messages.json() == {"tokens": 42}
    assert both.json()["errors"] == [{"field": "body", "message": "give either text or messages"}]


async def test_presets(api: World) -> None:
    async with api.client(key=None) as client:
        body = (await client.get("/presets")).json()
    shown = {item["name"]: item["policy"]["state_schema"] for item in body["data"]}
    assert shown == {name: preset.policy.state_schema for name, preset in PRESETS.items()}
    assert body["data"][0]["policy"]["target"] == 0.6


async def test_readiness_is_looked_up_once_for_all_who_ask_at_a_time(api: World) -> None:
    async def slow() -> str:
        await asyncio.sleep(0.05)
        return "ok"

    api.calls.answers["database_state"] = slow
    async with api.client(key=None) as client:
        answers = await asyncio.gather(*(client.get("/readyz") for _ in range(5)), client.head("/readyz"))
        later = await client.get("/readyz")
    assert {answer.status_code for answer in (*answers, later)} == {200}
    assert [name for name, *_ in api.calls.made].count("database_state") == 2


async def test_a_look_at_readiness_that_hangs_holds_up_nobody_for_long(
    api: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "LOOK_SECONDS", 0.05)
    api.calls.answers["row_security"] = asyncio.Event().wait
    async with api.client(key=None) as client:
        async with asyncio.timeout(5):
            answers = await asyncio.gather(*(client.get("/readyz") for _ in range(2)))
        assert [answer.status_code for answer in answers] == [503, 503]
        del api.calls.answers["row_security"]
        assert (await client.get("/readyz")).status_code == 200


async def test_health(api: World) -> None:
    async with api.client(key=None) as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        ready = {"status": "ok", "postgres": "ok", "redis": "ok", "row_security": "on", "background": "ok"}
        assert (await client.get("/readyz")).json() == ready
        api.calls.answers |= {"redis_ok": False, "row_security": False}
        degraded = await client.get("/readyz")
        api.calls.answers |= {"redis_ok": True, "row_security": True, "database_state": "read_only"}
        read_only = await client.get("/readyz")
        api.calls.answers["database_state"] = "away"
        away = await client.get("/readyz")
        heads = [(await client.head(path)).status_code for path in ("/healthz", "/readyz", "/presets")]
    assert heads == [200, 503, 405], "monitors ask in either way; a server sends no body then"
    assert degraded.status_code == 200
    assert degraded.json() == ready | {"status": "degraded", "redis": "away", "row_security": "off"}
    assert (read_only.status_code, read_only.json()) == (200, ready | {"status": "degraded", "postgres": "read_only"})
    assert problem(away) == (503, "dependency_unavailable")
    assert away.headers["retry-after"] == "2"


async def test_the_document_is_served(api: World) -> None:
    async with api.client(key=None) as client:
        body = (await client.get("/openapi.json")).json()
    assert body["info"]["title"] == "Throughline"

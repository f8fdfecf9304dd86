"""The events of streams as openapi.json declares them; the acceptance tests compare them with what is sent."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest

from app.http.openapi import CHECKED_IN
from tests.acceptance.declared import UndeclaredError, check_event

DOCUMENT: Final[dict[str, Any]] = json.loads(CHECKED_IN.read_text(encoding="utf-8"))
PAGE: Final = (CHECKED_IN.parent / "docs" / "contract.md").read_text(encoding="utf-8")
TYPE: Final = re.compile(r"`([a-z_]+\.[a-z_]+)`")
ID: Final = "01a1f8c9-ff73-7019-ab1b-f77319df580e"
ERASED: Final[dict[str, Any]] = {
    "id": "7",
    "type": "message.erased",
    "conversation_id": ID,
    "occurred_at": "2026-11-20T10:00:00.120000Z",
    "data": {"message_id": ID, "seq": 3},
    "notification": None,
}
DELTA: Final[dict[str, Any]] = {"type": "reply.delta", "data": {"text": "sea"}}


@pytest.mark.parametrize(
    ("method", "path", "union"),
    [
        ("post", "/chat", "ChatStreamEvent"),
        ("get", "/chat/stream", "ChatStreamEvent"),
        ("post", "/chat/regenerate", "ChatStreamEvent"),
        ("get", "/events", "ConversationEvent"),
    ],
)
def test_each_stream_names_its_events(method: str, path: str, union: str) -> None:
    operation = DOCUMENT["paths"]["/conversations/{conversation_id}" + path][method]
    schema = operation["responses"]["200"]["content"]["text/event-stream"]["schema"]
    assert schema == {"$ref": f"#/components/schemas/{union}"}
    declared = DOCUMENT["components"]["schemas"][union]
    assert {one["$ref"] for one in declared["oneOf"]} == set(declared["discriminator"]["mapping"].values())


@pytest.mark.parametrize(("column", "union"), [(1, "ConversationEvent"), (2, "ChatStreamEvent")])
def test_the_page_names_the_same_types(column: int, union: str) -> None:
    table = PAGE.split("| `type` |")[1].split("\n\n")[0].splitlines()[2:]
    rows = [line.strip("| ").split(" | ") for line in table]
    told = {name for row in rows if row[column] != "–" for name in TYPE.findall(row[0])}
    differ = told ^ DOCUMENT["components"]["schemas"][union]["discriminator"]["mapping"].keys()
    assert not differ, f"the table of events in docs/contract.md and {union} in app/http/event_schemas.py: {differ}"


def test_what_is_declared_passes() -> None:
    check_event("ConversationEvent", ERASED)
    check_event("ChatStreamEvent", DELTA)


@pytest.mark.parametrize(
    ("union", "event"),
    [
        ("ConversationEvent", {**ERASED, "type": "message.vanished"}),
        ("ConversationEvent", {**ERASED, "data": {"message_id": ID}}),
        ("ConversationEvent", {**ERASED, "data": {"message_id": ID, "seq": "3"}}),
        ("ConversationEvent", {**ERASED, "data": {"message_id": ID, "seq": 3, "text": "more"}}),
        ("ConversationEvent", {**ERASED, "more": 1}),
        ("ChatStreamEvent", {**DELTA, "type": "reply.completed"}),
        ("ChatStreamEvent", ERASED),
    ],
)
def test_control_what_is_not_declared_is_seen(union: str, event: Any) -> None:
    with pytest.raises(UndeclaredError):
        check_event(union, event)

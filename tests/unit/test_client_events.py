"""The Python client's event classes are those that openapi.json declares; unknown events are passed on."""

from __future__ import annotations

import json
from typing import Any, Final, get_type_hints

from pydantic import TypeAdapter

from app import client
from app.client import events
from app.client.resources import ChatEvent, Event
from app.http.openapi import CHECKED_IN
from tests.rows import each

SCHEMAS: Final[dict[str, Any]] = json.loads(CHECKED_IN.read_text(encoding="utf-8"))["components"]["schemas"]
THROWN: Final = "ReplyFailed"
"""This event is not passed on but raised as an error."""
NAMES: Final = sorted(
    {
        one["$ref"].rpartition("/")[2]
        for union in ("ChatStreamEvent", "ConversationEvent")
        for one in SCHEMAS[union]["oneOf"]
    }
    - {THROWN}
)
WHEN: Final[dict[str, Any]] = {
    "id": "1",
    "conversation_id": "01a1f8c9-ff73-7019-ab1b-f77319df580e",
    "occurred_at": "2026-11-20T10:00:00Z",
}


def fields_of(name: str) -> tuple[set[str], set[str]]:
    """All fields of an event's data, and those that are always there."""
    schema = SCHEMAS[SCHEMAS[name]["properties"]["data"]["$ref"].rpartition("/")[2]]
    return set(schema["properties"]), set(schema.get("required", ()))


@each("name", NAMES)
def test_each_declared_event_is_a_class(name: str) -> None:
    kind = getattr(client, name, None)
    assert kind is not None, f"app/client/__init__.py lacks {name}, a class of app/client/events.py"
    declared = SCHEMAS[name]["properties"]["type"]
    assert set(events.types_of(kind)) == set(declared.get("enum", [declared.get("const")]))
    every, always = fields_of(name)
    if name == "ReplyEnded":
        assert set(client.ChatResult.model_fields) == every
        return
    read = TypeAdapter(get_type_hints(kind)["data"]).json_schema()
    words = {"notification"} if name == "CompactionEvent" else set()  # there it is next to the data, not in them
    assert set(read["properties"]) == every | words
    assert set(read["required"]) == always


def test_each_class_is_found_by_its_types() -> None:
    found = {kind.__name__ for kind in (*events._EVENTS.values(), *events._CHAT_EVENTS.values())}
    assert {*NAMES} - found == {"ReplyEnded"}, "_EVENTS or _CHAT_EVENTS in app/client/events.py lacks a class"


def test_events_are_read_as_the_class_of_their_type() -> None:
    body = {**WHEN, "type": "message.erased", "data": {"message_id": "m", "seq": 3, "more": 1}}
    erased = events.event_of(json.dumps(body))
    assert isinstance(erased, client.MessageErasedEvent)
    assert erased.data == {"message_id": "m", "seq": 3, "more": 1}
    called = events.chat_event_of("tool.called", None, {"id": "a", "name": "weather", "arguments": {"at": "sea"}})
    assert isinstance(called, client.ToolCalled)
    assert called.data["arguments"] == {"at": "sea"}


def test_a_type_or_a_form_that_is_not_known_passes() -> None:
    event = events.event_of(json.dumps({**WHEN, "type": "weather.changed", "data": {"wind": 9}}))
    assert (type(event), event.type, event.data) == (Event, "weather.changed", {"wind": 9})
    told = events.chat_event_of("weather.changed", 4, {"wind": 9})
    assert (type(told), told.id, told.data) == (ChatEvent, 4, {"wind": 9})
    older = events.event_of(json.dumps({**WHEN, "type": "message.erased", "data": {}}))
    assert (type(older), older.type) == (Event, "message.erased")

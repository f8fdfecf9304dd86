"""Ids of stored rows in OpenAI's API, made without a table: a prefix and the 32 digits of the row's UUID."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

from app.core.text.patterns import compiled

Prefix = Literal["conv", "msg", "resp", "fc", "fco", "cmp", "rs"]

_ID: Final = compiled(r"(conv|msg|resp|fc|fco|cmp|rs)_([0-9a-f]{32})(?:_([0-9]{1,3}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class ItemId:
    """An item: a message, or one part of it."""

    message_id: UUID
    part: int | None = None
    """The number of a tool call or result among the message's parts; ``None`` = the text of the message."""


def conversation_id(id_: UUID) -> str:
    """The id of a conversation."""
    return f"conv_{id_.hex}"


def response_id(turn_id: UUID) -> str:
    """The id of a response, made from that of its turn."""
    return f"resp_{turn_id.hex}"


def message_id(id_: UUID) -> str:
    """The id of the item with a message's text."""
    return f"msg_{id_.hex}"


def call_item_id(id_: UUID, part: int) -> str:
    """The id of the item for a call in a message."""
    return f"fc_{id_.hex}_{part}"


def result_item_id(id_: UUID, part: int) -> str:
    """The id of the item for a call's result."""
    return f"fco_{id_.hex}_{part}"


def reasoning_id(id_: UUID, number: int) -> str:
    """The id of an item with the model's reasoning for a message; such items are numbered."""
    return f"rs_{id_.hex}_{number}"


def is_reasoning(text: str) -> bool:
    """Whether it is the id of a reasoning item."""
    found = _ID.fullmatch(text)
    return found is not None and found[1] == "rs"


def compaction_item_id(id_: UUID) -> str:
    """The id of compacted input."""
    return f"cmp_{id_.hex}"


def uuid_of(text: str, prefix: Prefix) -> UUID | None:
    """The UUID in an id with that prefix; ``None`` if it is not such an id."""
    found = _ID.fullmatch(text)
    return UUID(found[2]) if found and found[1] == prefix and found[3] is None else None


def item_of(text: str) -> ItemId | None:
    """The item with that id; ``None`` if it is not the id of an item."""
    found = _ID.fullmatch(text)
    if found is None or found[1] not in {"msg", "fc", "fco"}:
        return None
    is_part = found[1] != "msg"
    if is_part != (found[3] is not None):
        return None
    return ItemId(UUID(found[2]), int(found[3]) if is_part else None)

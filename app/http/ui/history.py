"""A page of a conversation as UI messages."""

from __future__ import annotations

from typing import Any

from app.core.model.notifications import STARTED
from app.http.notifications import Notifier
from app.http.ui.chunks import Json
from app.http.ui.parts import answer_parts, content_parts, metadata_of, notice_parts, recalled_parts
from app.http.ui.stream import compaction_with_notification
from app.usecases.compaction.claiming import numbers_of
from app.usecases.compaction.ending import EVENTS
from app.usecases.ui.entries import Entry
from app.usecases.ui.threads import Thread


async def present_thread(thread: Thread, notifier: Notifier) -> dict[str, Any]:
    """The page. Its ``data``, in the order of time, is what ``useChat`` takes as ``messages``."""
    return {
        "data": [await present_entry(entry, thread, notifier) for entry in thread.entries],
        "next_cursor": thread.cursor,
        "has_more": thread.cursor is not None,
    }


async def present_entry(entry: Entry, thread: Thread, notifier: Notifier) -> Json:
    """One UI message. Compactions within its turn come before its text, later ones at the end."""
    inside: list[Json] = []
    after: list[Json] = []
    for row in entry.compactions:
        where = inside if entry.is_answer and row.ran_in == "turn" else after
        where.append(await compaction_with_notification(notifier, numbers_of(row), EVENTS.get(row.status, STARTED)))
    last = entry.messages[-1]
    content = answer_parts(entry.messages, thread.own_tools) if entry.is_answer else list(content_parts(last))
    parts = [
        *inside,
        *(recalled_parts(entry.recalled, thread.passages) if entry.recalled else ()),
        *content,
        *notice_parts(entry.warnings),
        *after,
    ]
    return {
        "id": str(entry.id),
        "role": "assistant" if entry.is_answer else last.role,
        "metadata": metadata_of(last),
        "parts": parts or [{"type": "text", "text": ""}],
    }

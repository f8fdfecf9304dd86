"""Notices of compactions during a chat: from the turn's own stream, and from the worker."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from app.client import Conversation, Throughline, ThroughlineError
from app.core.model.notifications import notification_of
from app.core.model.policies.policy import CompactionPolicy
from app.core.text.localization.catalogue import Catalogue, catalogue_of

PREFIX: Final = "compaction."
_SIZE_FIELDS: Final = ("tokens_before", "tokens_after")


class Notices:
    """Events of one conversation about compactions, each told once, in the conversation's language."""

    def __init__(self, conversation: Conversation, connect: Callable[[], Throughline]) -> None:
        self._conversation = conversation
        self._connect = connect
        self._policy = _policy_with_notices(conversation)
        self._shown: set[tuple[str, str]] = set()
        self._received: queue.SimpleQueue[tuple[str, Mapping[str, Any]]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def listen(self, after: int) -> None:
        """Begin to listen after that event, in a thread that ends with the process."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._follow_events, args=(after,), name="notices", daemon=True)
            self._thread.start()

    def waiting(self) -> Iterator[str]:
        """What was heard since the last call."""
        with contextlib.suppress(queue.Empty):
            while True:
                words = self.words(*self._received.get_nowait())
                if words:
                    yield words

    def words(self, type_: str, data: Mapping[str, Any]) -> str | None:
        """One line about an event; ``None`` for events that are not shown, or were shown already."""
        key = (type_, str(data.get("compaction_id")))
        if not type_.startswith(PREFIX) or key in self._shown:
            return None
        self._shown.add(key)
        catalogue = catalogue_of(self._conversation.locale)
        notification = notification_of(type_, data, self._policy, catalogue)
        if notification is None:
            return None
        return f"{notification.title} · {notification.message.rstrip('.')}{_sizes_or_reason(type_, data, catalogue)}"

    def _follow_events(self, after: int) -> None:
        with contextlib.suppress(ThroughlineError, ValidationError, RuntimeError), self._connect() as client:
            for event in client.events(self._conversation.id, after=after):
                if event.type.startswith(PREFIX):
                    self._received.put((event.type, event.data))


def _sizes_or_reason(type_: str, data: Mapping[str, Any], catalogue: Catalogue) -> str:
    if type_ != "compaction.applied":
        reason = data.get("reason")
        return f" ({catalogue.word('reason', reason)})" if reason else ""
    before, after = (data.get(name) for name in _SIZE_FIELDS)
    return f" ({catalogue.number(before)} → {catalogue.number(after)})" if before and after else ""


def _policy_with_notices(conversation: Conversation) -> CompactionPolicy:
    try:
        policy = CompactionPolicy.model_validate(conversation.policy)
    except ValidationError:  # an event of a newer service
        policy = CompactionPolicy()
    return policy.model_copy(update={"notifications": "before_and_after"})

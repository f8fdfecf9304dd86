"""Writes the notifications for the user that are sent with a conversation's events, in every kind of stream."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from app.bootstrap import Container
from app.core.model.errors import DependencyUnavailableError, NotFoundError
from app.core.model.notifications import NOTIFIED_EVENT_TYPES, Notification, notification_of
from app.core.text.localization.catalogue import catalogue_of
from app.usecases.history.conversations import ConversationView

KNOWN_SECONDS: Final = 1.0
"""How long policy and locale are remembered, since a replay may have hundreds of events."""


class Notifier:
    """Writes the notifications for events of one conversation, by its present policy and locale.

    ``accept_language`` is an ``Accept-Language`` header. Its language takes precedence over the conversation's locale.
    """

    def __init__(self, services: Container, tenant: UUID, conversation_id: UUID, accept_language: str | None) -> None:
        self._services = services
        self._tenant = tenant
        self._id = conversation_id
        self._accept_language = accept_language
        self._known: tuple[float, ConversationView] | None = None

    async def notification(self, type_: str, data: Mapping[str, Any]) -> Notification | None:
        """The notification of an event of this type with these numbers, if there is one."""
        if type_ not in NOTIFIED_EVENT_TYPES:
            return None
        try:
            view = await self._conversation_view()
        except NotFoundError:  # deleted meanwhile: the stream will end in a moment
            return None
        return notification_of(type_, data, view.policy, catalogue_of(self._accept_language, view.conversation.locale))

    async def notification_if_available(self, type_: str, data: Mapping[str, Any]) -> Notification | None:
        """The notification of an event of a turn, which goes on without it if the database cannot be read."""
        with suppress(DependencyUnavailableError):
            return await self.notification(type_, data)
        return None

    async def _conversation_view(self) -> ConversationView:
        now = time.monotonic()
        if self._known is None or now - self._known[0] >= KNOWN_SECONDS:
            self._known = now, await self._services.conversations.get(self._tenant, self._id)
        return self._known[1]

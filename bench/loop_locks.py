"""Measures what a process computes while its transaction locks a conversation's row, for which other writers wait."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from uuid import UUID

from app.core.model.conversation import Conversation
from app.storage.repositories.conversations import ConversationRepository
from app.storage.scoped_session import TenantSession


class LockProbe:
    """CPU time of all threads of this process, from the lock to the commit or the end; one request at a time."""

    def __init__(self) -> None:
        self._since: dict[int, float] = {}
        self._longest = 0.0

    def taken(self) -> float:
        """The longest CPU time under a lock since the last call, in seconds."""
        longest, self._longest = self._longest, 0.0
        return longest

    @property
    def is_held(self) -> bool:
        """Whether a transaction of this process locks a conversation's row now."""
        return bool(self._since)

    @contextlib.contextmanager
    def watching(self) -> Iterator[LockProbe]:
        """Measure within the block."""
        lock, commit, close = ConversationRepository.lock, TenantSession.commit, TenantSession.close
        probe = self

        async def locking(repository: ConversationRepository, conversation_id: UUID) -> Conversation:
            found = await lock(repository, conversation_id)
            probe._since.setdefault(id(repository._session), time.process_time())  # noqa: SLF001 - its own session
            return found

        async def committing(session: TenantSession) -> None:
            await commit(session)
            probe._note(session)

        async def closing(session: TenantSession) -> None:
            probe._note(session)
            await close(session)

        ConversationRepository.lock = locking  # type: ignore[method-assign,assignment]
        TenantSession.commit = committing  # type: ignore[method-assign,assignment]
        TenantSession.close = closing  # type: ignore[method-assign,assignment]
        try:
            yield self
        finally:
            ConversationRepository.lock = lock  # type: ignore[method-assign]
            TenantSession.commit = commit  # type: ignore[method-assign]
            TenantSession.close = close  # type: ignore[method-assign]

    def _note(self, session: TenantSession) -> None:
        began = self._since.pop(id(session), None)
        if began is not None:
            self._longest = max(self._longest, time.process_time() - began)

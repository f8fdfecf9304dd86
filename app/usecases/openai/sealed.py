"""Compacted input: a token that a client keeps in place of a conversation's messages, and sends again as input."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from app.core.model.errors import InvalidInputError
from app.usecases.history.drafts import MessageDraft
from app.usecases.ports import Sealer
from app.usecases.shared.shell import Shell

VERSION: Final = 1
HEADING: Final = "Summary of the conversation so far:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """A history that was compacted."""

    summary: str = ""
    messages: tuple[MessageDraft, ...] = ()
    """The newest messages, word for word."""

    def drafts(self) -> list[MessageDraft]:
        """The input as messages again. The summary has no more authority than the user whose words it sums up."""
        told = [MessageDraft(role="user", content=f"{HEADING}\n\n{self.summary}")] if self.summary else []
        return [*told, *self.messages]

    @property
    def said_by_users(self) -> tuple[MessageDraft, ...]:
        """The users' messages among the newest. They are also sent next to the token, where clients look for them."""
        return tuple(draft for draft in self.messages if draft.role == "user" and not draft.content.startswith(HEADING))

    def stands_after(self, drafts: Sequence[MessageDraft]) -> int:
        """How many of the last drafts repeat the users' messages that the token already contains."""
        beside = self.said_by_users
        return len(beside) if beside and list(drafts[-len(beside) :]) == list(beside) else 0


class SealedInputs:
    """Seals and opens compacted input; a tenant's secret is made when it is first needed."""

    def __init__(self, shell: Shell, sealer: Sealer) -> None:
        self._shell = shell
        self._sealer = sealer

    async def seal(self, tenant_id: UUID, compacted: Compacted) -> str:
        """The compacted input as an encrypted token."""
        told = {
            "v": VERSION,
            "summary": compacted.summary,
            "messages": [
                {"role": draft.role, "content": draft.content, "parts": [dict(part) for part in draft.parts]}
                for draft in compacted.messages
            ],
        }
        return self._sealer.seal(
            json.dumps(told, ensure_ascii=False), tenant_id, await self._shell.sealing_secret(tenant_id)
        )

    async def open(self, tenant_id: UUID, token: str) -> Compacted:
        """The content of a token. Raises ``InvalidInputError`` unless this service gave it to this tenant."""
        text = self._sealer.open(token, tenant_id, await self._shell.sealing_secret(tenant_id))
        if text is None:
            message = "this compacted input was not made here, or was changed: send the messages themselves"
            raise InvalidInputError.of("input", message)
        told = json.loads(text)
        return Compacted(summary=told["summary"], messages=tuple(_draft(one) for one in told["messages"]))


def _draft(told: dict[str, object]) -> MessageDraft:
    parts = told["parts"]
    return MessageDraft(
        role=str(told["role"]),  # type: ignore[arg-type]  # as it was sealed
        content=str(told["content"]),
        parts=tuple(parts) if isinstance(parts, Sequence) else (),
    )

"""Compacted input: a token that a client keeps in place of a conversation's messages, and sends again as input."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from app.core.model.errors import InvalidInputError
from app.core.text.speakers import name_in
from app.usecases.history.drafts import MessageDraft
from app.usecases.ports import Sealer
from app.usecases.shared.shell import Shell

VERSION: Final = 1
HEADING: Final = "Summary of the conversation so far:"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedInput:
    """A history that was compacted."""

    summary: str = ""
    messages: tuple[MessageDraft, ...] = ()
    """The newest messages, word for word."""

    def drafts(self) -> list[MessageDraft]:
        """The input as messages again. The summary has no more authority than the user whose words it sums up."""
        summary_messages = [MessageDraft(role="user", content=f"{HEADING}\n\n{self.summary}")] if self.summary else []
        return [*summary_messages, *self.messages]

    @property
    def user_messages(self) -> tuple[MessageDraft, ...]:
        """The users' messages among the newest. They are also sent next to the token, where clients look for them."""
        return tuple(draft for draft in self.messages if draft.role == "user" and not draft.content.startswith(HEADING))

    def repeated_at_end(self, drafts: Sequence[MessageDraft]) -> int:
        """How many of the last drafts repeat the users' messages that the token already contains."""
        users = list(map(_content, self.user_messages))
        return len(users) if users and list(map(_content, drafts[-len(users) :])) == users else 0


class SealedInputs:
    """Seals and opens compacted input; a tenant's secret is made when it is first needed."""

    def __init__(self, shell: Shell, sealer: Sealer) -> None:
        self._shell = shell
        self._sealer = sealer

    async def seal(self, tenant_id: UUID, compacted: CompactedInput) -> str:
        """The compacted input as an encrypted token."""
        payload = {
            "v": VERSION,
            "summary": compacted.summary,
            "messages": [
                {
                    "role": draft.role,
                    "content": draft.content,
                    "parts": [dict(part) for part in draft.parts],
                    "name": name_in(draft.metadata),
                }
                for draft in compacted.messages
            ],
        }
        return self._sealer.seal(
            json.dumps(payload, ensure_ascii=False), tenant_id, await self._shell.sealing_secret(tenant_id)
        )

    async def open(self, tenant_id: UUID, token: str) -> CompactedInput:
        """The content of a token. Raises ``InvalidInputError`` unless this service gave it to this tenant."""
        text = self._sealer.open(token, tenant_id, await self._shell.sealing_secret(tenant_id))
        if text is None:
            message = "this compacted input was not made here, or it or its key changed: send the messages themselves"
            raise InvalidInputError.of("input", message)
        payload = json.loads(text)
        return CompactedInput(summary=payload["summary"], messages=tuple(_draft(one) for one in payload["messages"]))


def _content(draft: MessageDraft) -> tuple[object, ...]:
    # Items have no field for a speaker's name.
    return draft.role, draft.content, draft.parts


def _draft(payload: dict[str, object]) -> MessageDraft:
    parts, name = payload["parts"], payload.get("name")
    return MessageDraft(
        role=str(payload["role"]),  # type: ignore[arg-type]  # as it was sealed
        content=str(payload["content"]),
        parts=tuple(parts) if isinstance(parts, Sequence) else (),
        metadata={"name": name} if name else {},
    )

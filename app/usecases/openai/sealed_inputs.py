"""Compacted input: a token that a client keeps in place of a conversation's messages, and sends again as input."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from app.core.context.media import parts_within_bytes
from app.core.model.errors import InvalidInputError
from app.core.text.localization.catalogue import FALLBACK
from app.core.text.parts import BETWEEN_TEXTS, Part, without_repeats
from app.core.text.speakers import name_in
from app.off_loop import off_loop
from app.usecases.history.drafts import MessageDraft
from app.usecases.ports import Sealer
from app.usecases.shared.caller import current_user
from app.usecases.shared.shell import Shell

VERSION: Final = 1
HEADING: Final = "Summary of the conversation so far:"
_OWN_KEYS: Final = ("type", "media_type", "data", "url", "text")


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

    def with_media_within(self, limit: int) -> CompactedInput:
        """The same; the oldest media are replaced by words if all have more than ``limit`` characters of Base64."""
        kept = parts_within_bytes(self.messages, limit, FALLBACK)
        return replace(self, messages=tuple(map(_with_words, self.messages, kept)))

    def repeated_at_end(self, drafts: Sequence[MessageDraft]) -> int:
        """How many of the last drafts repeat the users' messages that the token already contains."""
        users = self.user_messages
        last = drafts[-len(users) :] if users else ()
        return len(users) if last and list(map(_compared, last)) == list(map(_compared, users)) else 0


class SealedInputs:
    """Seals and opens compacted input; a tenant's secret is made when it is first needed.

    What the key of one end user opens was sealed for the same end user.
    """

    def __init__(self, shell: Shell, sealer: Sealer) -> None:
        self._shell = shell
        self._sealer = sealer

    async def seal(self, tenant_id: UUID, compacted: CompactedInput) -> str:
        """The compacted input as an encrypted token."""
        secret = await self._shell.sealing_secret(tenant_id)
        user = current_user()
        return await off_loop(lambda: self._sealer.seal(_text_of(compacted, user), tenant_id, secret))

    async def open(self, tenant_id: UUID, token: str) -> CompactedInput:
        """The content of a token.

        Raises ``InvalidInputError`` unless this service gave it to this tenant, and to the end user of the key if the
        key is limited to one.
        """
        secret, user = await self._shell.sealing_secret(tenant_id), current_user()
        found = await off_loop(
            lambda: _compacted_in(self._sealer.open(token, tenant_id, secret), user), size=len(token)
        )
        if found is None:
            message = "this compacted input was not made here, or it or its key changed: send the messages themselves"
            raise InvalidInputError.of("input", message)
        return found


def _text_of(compacted: CompactedInput, user: str | None) -> str:
    payload = {
        "v": VERSION,
        "user": user,
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
    return json.dumps(payload, ensure_ascii=False)


def _compacted_in(text: str | None, user: str | None) -> CompactedInput | None:
    """The content of a token's text; ``None`` if there is no text, or the end user ``user`` may not read it."""
    if text is None:
        return None
    payload = json.loads(text)
    if user is not None and payload.get("user", user) != user:  # tokens of older versions name nobody
        return None
    return CompactedInput(summary=payload["summary"], messages=tuple(_draft(one) for one in payload["messages"]))


def _compared(draft: MessageDraft) -> tuple[object, ...]:
    # A medium that a client sends again also has the defaults with which it was shown: its detail, its name.
    return draft.role, draft.content, [[part.get(key) for key in _OWN_KEYS] for part in draft.parts]


def _with_words(draft: MessageDraft, parts: Sequence[Part]) -> MessageDraft:
    # The words are in the content, where they also are when a client sends the message again.
    words = [str(part["text"]) for part in parts if part not in draft.parts]
    if not words:
        return draft
    content = BETWEEN_TEXTS.join(text for text in (draft.content, *words) if text)
    own = without_repeats(draft.content, parts)
    return replace(draft, content=content, parts=tuple(part for part in own if part in draft.parts))


def _draft(payload: dict[str, object]) -> MessageDraft:
    parts, name = payload["parts"], payload.get("name")
    return MessageDraft(
        role=str(payload["role"]),  # type: ignore[arg-type]  # as it was sealed
        content=str(payload["content"]),
        parts=tuple(parts) if isinstance(parts, Sequence) else (),
        metadata={"name": name} if name else {},
    )

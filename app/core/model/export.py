"""A conversation as Markdown, for people: the full history, and no trace of any compaction."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from app.core.model.conversation import Conversation, Message
from app.core.text.contents import named_address
from app.core.text.localization.catalogue import Catalogue, catalogue_of
from app.core.text.parts import Part, own_content, own_parts
from app.core.text.patterns import compiled
from app.core.text.speakers import name_in

_FENCE: Final = compiled(r"`{3,}")


def markdown_head(conversation: Conversation) -> str:
    """The title, and the system prompt where there is one, under headings in the conversation's language."""
    catalogue = catalogue_of(conversation.locale)
    began = catalogue.text("export.began", time=_time(conversation.created_at, catalogue))
    lines = [f"# {conversation.title or catalogue.text('export.title')}", "", began]
    if conversation.system_prompt:
        lines += ["", f"## {catalogue.text('export.system_prompt')}", "", conversation.system_prompt]
    return "\n".join(lines) + "\n"


def markdown_message(message: Message, locale: str = "en") -> str:
    """A message under its heading; empty for typed commands and their answers, which do not belong to the talk."""
    if message.is_command:
        return ""
    catalogue = catalogue_of(locale)
    name = name_in(message.metadata)
    speaker = catalogue.text(f"export.{message.role}") + (f" ({name})" if name else "")
    heading = f"\n## {speaker}, {_time(message.created_at, catalogue)}\n\n"
    return heading + "\n\n".join(_paragraphs(message, catalogue)) + "\n"


def _time(moment: datetime, catalogue: Catalogue) -> str:
    moment = moment.astimezone(UTC)
    return catalogue.text(
        "export.time",
        year=f"{moment:%Y}",
        month=f"{moment:%m}",
        day=f"{moment:%d}",
        clock=f"{moment:%H:%M}",
    )


def _paragraphs(message: Message, catalogue: Catalogue) -> Iterator[str]:
    if message.status == "erased":
        yield f"*({catalogue.text('export.erased')})*"
        return
    content = own_content(message.role, message.content, message.parts)
    if content:
        yield content
    for part in own_parts(content, message.parts):
        yield _part(part, catalogue)
    if message.status in {"interrupted", "superseded"}:
        yield f"*({catalogue.text(f'export.{message.status}')})*"


def _part(part: Part, catalogue: Catalogue) -> str:
    kind = part.get("type")
    if kind == "text":
        return str(part.get("text", ""))
    if kind == "tool_call":
        called = catalogue.text("export.calls", name=str(part.get("name")))
        return f"*{called}:*\n\n{_fenced(_as_text(part.get('arguments')))}"
    if kind == "tool_result":
        brought = (
            catalogue.text("export.result_of", name=str(part["name"]))
            if part.get("name")
            else catalogue.text("export.result")
        )
        return f"*{brought}:*\n\n{_fenced(_as_text(part.get('content')))}"
    where = f": {url}" if (url := named_address(part)) else ""
    known = (part.get("media_type") or catalogue.text("export.file"), " ".join(str(part.get("name") or "").split()))
    return f"*{catalogue.text('export.attached', what=', '.join(filter(None, map(str, known))))}{where}*"


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _fenced(text: str) -> str:
    longest = max((len(run) for run in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"

"""A conversation as Markdown, for people: the full history, and no trace of any compaction."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from app.domain.conversation import Conversation, Message, Part

_ROLES: Final = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
_FENCE: Final = re.compile(r"`{3,}")


def markdown_head(conversation: Conversation) -> str:
    """The title, and the system prompt where there is one."""
    lines = [f"# {conversation.title or 'Conversation'}", "", f"Began {conversation.created_at:%Y-%m-%d %H:%M} UTC."]
    if conversation.system_prompt:
        lines += ["", "## System prompt", "", conversation.system_prompt]
    return "\n".join(lines) + "\n"


def markdown_message(message: Message) -> str:
    """A message under its heading; empty for typed commands and their answers, which are no part of what was said."""
    if message.is_command:
        return ""
    heading = f"\n## {_ROLES[message.role]}, {message.created_at:%Y-%m-%d %H:%M} UTC\n\n"
    return heading + "\n\n".join(_said(message)) + "\n"


def _said(message: Message) -> Iterator[str]:
    if message.status == "erased":
        yield "*(erased)*"
        return
    if message.content:
        yield message.content
    for part in message.parts:
        if part.get("type") != "text" or str(part.get("text", "")) not in message.content:
            yield _part(part)
    if message.status == "interrupted":
        yield "*(interrupted)*"


def _part(part: Part) -> str:
    kind = part.get("type")
    if kind == "text":
        return str(part.get("text", ""))
    if kind == "tool_call":
        return f"*Calls {part.get('name')}:*\n\n{_fenced(_plain(part.get('arguments')))}"
    if kind == "tool_result":
        return f"*Result of {part.get('name') or 'a tool'}:*\n\n{_fenced(_plain(part.get('content')))}"
    where = f": {part['url']}" if part.get("url") else ""
    return f"*Attached {part.get('media_type', 'file')}{where}*"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _fenced(text: str) -> str:
    """A code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"

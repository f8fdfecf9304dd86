"""The key under which a level is stored: a hash of its originals, its level, its maker and the prompt's version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from app.core.model.conversation import Message
from app.core.model.segments import Level


def content_hash(messages: Sequence[Message], level: Level, maker: str, prompt_version: str) -> str:
    """The SHA-256, in hex, of a span, a level, its maker and the maker's prompt version.

    Each message counts with ``seq``, role, content and parts; the order of keys does not matter.
    """
    serialized = json.dumps(
        {
            "level": level,
            "maker": maker,
            "prompt": str(prompt_version),
            "span": [[message.seq, message.role, message.content, list(message.parts)] for message in messages],
        },
        ensure_ascii=True,  # so that a lone surrogate can be hashed too
        sort_keys=True,
        separators=(",", ":"),
        default=_plain_value,
    )
    return hashlib.sha256(serialized.encode("ascii")).hexdigest()


def _plain_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, Sequence) else str(value)

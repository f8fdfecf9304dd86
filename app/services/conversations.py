"""Conversations: create, read, change, delete, restore a state, look at its versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.domain.conversation import Conversation
from app.domain.gauge import Gauge
from app.domain.policy import CompactionPolicy
from app.domain.presets import DEFAULT_PRESET
from app.services.shell import Shell

MERGED = ("scratchpad", "metadata")  # changed by RFC 7396
SHAPING = ("preset", "policy", "system_prompt", "locale")  # these change sizes, thresholds or protection


@dataclass(frozen=True, slots=True, kw_only=True)
class NewConversation:
    """What a client gives of a conversation."""

    title: str | None = None
    user_id: str | None = None
    locale: str = "en"
    system_prompt: str = ""
    preset: str = DEFAULT_PRESET
    policy: Mapping[str, Any] = field(default_factory=dict)
    scratchpad: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationView:
    """A conversation as clients see it."""

    conversation: Conversation
    policy: CompactionPolicy
    gauge: Gauge


class ConversationService:
    """Everything about a conversation but its messages and turns."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

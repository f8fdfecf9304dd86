"""What a model shows of its reasoning: read from its stream, and requested where that costs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from pydantic_ai.messages import (
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.models import Model
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.settings import ModelSettings

from app.providers.replies import PieceCleaner

SEPARATOR: Final = "\n\n"
"""Separates two pieces of reasoning of one step."""
_GEMINI_SETTINGS: Final[Mapping[str, Any]] = {"google_thinking_config": {"include_thoughts": True}}
_RESPONSES_SETTINGS: Final[Mapping[str, Any]] = {"openai_reasoning_summary": "auto"}


@dataclass(slots=True)
class Thoughts:
    """Collects the reasoning from the events of one step."""

    _has_earlier: bool = False
    _needs_separator: bool = False
    _pieces: PieceCleaner = field(default_factory=PieceCleaner)

    def of(self, event: ModelResponseStreamEvent) -> str:
        """The piece of reasoning in an event; empty for everything else."""
        if isinstance(event, PartStartEvent) and isinstance(event.part, ThinkingPart):
            self._needs_separator, piece = self._has_earlier, self._pieces.cleaned(event.part.content)
        elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, ThinkingPartDelta):
            piece = self._pieces.cleaned(event.delta.content_delta or "")
        else:
            return ""
        if not piece:
            return ""
        before = SEPARATOR if self._needs_separator else ""
        self._has_earlier, self._needs_separator = True, False
        return before + piece


def with_thoughts_wanted(model: Model, settings: ModelSettings) -> ModelSettings:
    """The settings with a request to show thoughts, if the model has some anyway and showing them costs nothing.

    The depth of reasoning is not changed for this. If a client chose a depth, pydantic-ai already asks Gemini to show
    its reasoning, since one setting contains both.
    """
    thinking = settings.get("thinking")
    if thinking is False or not _can_think(model):
        return settings
    if isinstance(model, GoogleModel) and thinking is None:
        return cast("ModelSettings", {**settings, **_GEMINI_SETTINGS})
    if isinstance(model, OpenAIResponsesModel):
        return cast("ModelSettings", {**settings, **_RESPONSES_SETTINGS})
    return settings


def _can_think(model: Model) -> bool:
    profile: Mapping[str, Any] = model.profile
    return bool(profile.get("supports_thinking", False) or profile.get("thinking_always_enabled", False))

"""The services of the AI SDK's wire."""

from __future__ import annotations

from dataclasses import dataclass

from app.usecases.ui.threads import ThreadService
from app.usecases.ui.turns import FrontendTurnService


@dataclass(frozen=True, slots=True, kw_only=True)
class UiServices:
    """What frontends of the AI SDK ask for."""

    turns: FrontendTurnService
    threads: ThreadService

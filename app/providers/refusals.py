"""What a model lately refused, so that not every request is sent with it first."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

REMEMBERED: Final = 3_600.0
"""For how many seconds it is left out. Providers learn new options, and a gateway may ask another one."""
_MOST: Final = 64
"""How many refusals are remembered; the oldest is dropped first."""


@dataclass(slots=True)
class Refusals:
    """The refused options of one model. They are used on the event loop of its provider only."""

    monotonic: Callable[[], float] = time.monotonic
    _until: dict[str, float] = field(default_factory=dict)

    def note(self, option: str) -> None:
        """Remember that the model answers only without this option."""
        self._until.pop(option, None)
        if len(self._until) >= _MOST:
            del self._until[next(iter(self._until))]
        self._until[option] = self.monotonic() + REMEMBERED

    def has(self, option: str) -> bool:
        """Whether the model refused this option lately."""
        return self.monotonic() < self._until.get(option, 0.0)

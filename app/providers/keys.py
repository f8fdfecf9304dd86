"""Addresses and API keys of providers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Keys and base URLs as the settings give them; keys never show in a ``repr``."""

    ambient: bool = False
    """Whether providers without a key in the settings may use credentials that the process finds in its environment."""

    google_api_key: str | None = field(default=None, repr=False)
    google_base_url: str | None = None
    openai_api_key: str | None = field(default=None, repr=False)
    openai_base_url: str | None = None


NO_KEYS: Final = Keys()

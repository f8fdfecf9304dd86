"""Settings that tests share: reading them takes longer than many tests, and they never change."""

from __future__ import annotations

from typing import Any, Final

from app.settings import Settings

_READ: Final[dict[str, Settings]] = {}


def chosen_settings(**chosen: Any) -> Settings:
    """The defaults with these settings of a test; no ``.env`` is read, and equal ones are read once in a process."""
    key = repr(sorted(chosen.items()))
    if key not in _READ:
        _READ[key] = Settings(_env_file=None, **chosen)
    return _READ[key]

"""Settings that tests share: reading them takes longer than many tests, and they never change."""

from __future__ import annotations

import os
from typing import Any, Final

from app.settings import Settings

_READ: Final[dict[tuple[str, frozenset[tuple[str, str]]], Settings]] = {}


def chosen_settings(**chosen: Any) -> Settings:
    """The environment's settings with these of a test, but no ``.env``; a process reads equal ones once."""
    around = frozenset(one for one in os.environ.items() if not one[0].startswith("PYTEST_"))  # pytest's names the test
    key = repr(sorted(chosen.items())), around
    if key not in _READ:
        _READ[key] = Settings(_env_file=None, **chosen)
    return _READ[key]

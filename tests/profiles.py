"""How many examples a property is tried with: HYPOTHESIS_PROFILE is ``dev`` (the default), ``ci`` or ``long``.

``dev`` is quick, tries new examples in each run and begins with those that failed the last time. ``ci`` tries the same
examples in every run, so that a failure comes from the change that is tested; nothing is kept between runs. ``long``
looks for new failures. A failure prints what it takes to see it again, and what was found becomes an ``@example``.

No example has a deadline, and no property must be made fast: on a busy machine it would fail for being slow once.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings

EXAMPLES = {"dev": 25, "ci": 20, "long": 500}


def load() -> None:
    """Register the profiles and load the one that is asked for, before any module of tests is imported."""
    chosen = os.environ.get("HYPOTHESIS_PROFILE") or "dev"
    if chosen not in EXAMPLES:
        raise ValueError(f"HYPOTHESIS_PROFILE must be one of {', '.join(EXAMPLES)}, not {chosen!r}")
    parent = settings.get_profile("default")
    for name, number in EXAMPLES.items():
        kept: dict[str, Any] = {"derandomize": True, "database": None} if name == "ci" else {}
        kept["suppress_health_check"] = [HealthCheck.too_slow]
        settings.register_profile(name, parent, max_examples=number, deadline=None, print_blob=True, **kept)
    settings.load_profile(chosen)


def is_long() -> bool:
    """Whether large sizes, which take long, are tried too."""
    return settings.get_current_profile_name() == "long"


def examples(factor: float, **more: Any) -> settings:
    """Settings of a property that needs more or fewer examples than others: this many times the profile's number."""
    return settings(max_examples=max(1, round(factor * settings().max_examples)), **more)

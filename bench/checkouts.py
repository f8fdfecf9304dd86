"""Adapts today's scripts to an older checkout, whose modules had other names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

FORMER: Final[Mapping[str, str]] = {
    "app.core.model.anchors": "app.domain.anchors.values",
    "app.core.model.conversation": "app.domain.conversation",
    "app.core.model.model_io": "app.domain.model_io",
    "app.core.model.policies.policy": "app.domain.policies.policy",
    "app.core.model.policies.resolving": "app.domain.policies.presets",
    "app.core.model.redaction": "app.domain.fencing.redaction",
    "app.core.model.schemas": "app.domain.schemas",
    "app.core.model.state": "app.domain.states.state",
    "app.core.planning.compaction": "app.domain.planning.compaction",
    "app.core.state.apply": "app.domain.merging.apply",
    "app.core.text.sameness": "app.domain.words.sameness",
    "app.core.text.token_counts": "app.domain.weighing.tokens",
    "app.core.validation": "app.domain.gating",
    "app.core.validation.gate": "app.domain.gating.gate",
    "app.usecases.compaction.segmenting": "app.services.segmenting",
}
"""The name of each module before commit baad797, by today's name."""
_NAME: Final = re.compile(r"^from (app\.[\w.]+) import ", re.MULTILINE)


def script_for(script: Path, checkout: Path) -> str:
    """The text of a script, with the module names of this checkout.

    Raises:
        KeyError: The script imports a module whose former name is not known.
    """
    text = script.read_text(encoding="utf-8")
    if (checkout / "app" / "core" / "model").is_dir():
        return text
    return _NAME.sub(lambda found: f"from {FORMER[found[1]]} import ", text)

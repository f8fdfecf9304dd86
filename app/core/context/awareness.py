"""The awareness block: a fixed part of the system prompt that tells the chat model what a state block is.

It is sent from the first turn on, so that the first compaction does not change the prompt's cached beginning.
"""

from __future__ import annotations

from collections.abc import Collection

from app.core.model.segments import Level
from app.core.model.state import StateSchema
from app.core.text.localization.catalogue import catalogue_of


def awareness_block(
    schema: StateSchema, locale: str, levels: Collection[Level] = (), *, anchor_share: float | None = None
) -> str:
    """What the chat model is told about the state block.

    Args:
        schema: The schema of the served state.
        locale: A BCP 47 tag (``ru-RU``); languages without a catalogue get the English wording.
        levels: The levels of the policy: without any, neither digests nor markers are served.
        anchor_share: The share of the policy: with 0 no anchors are served.
    """
    catalogue = catalogue_of(locale)
    anchors = [] if anchor_share == 0 else [catalogue.text("awareness.anchors")]
    digests = [catalogue.text("awareness.digests", level=min(levels))] if levels else []
    use = catalogue.own.get(f"use.{schema.name}", schema.use)
    return " ".join([use, *anchors, *digests, catalogue.text("awareness.rules")])

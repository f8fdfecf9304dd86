"""The names of anchors in a prompt, made from their message and their place in it, so that no table is needed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from app.core.model.anchors import Anchor, FoundAnchor
from app.core.text.patterns import compiled

_PROMPT_ID: Final = compiled(r"(?<![A-Za-z0-9])P(?P<seq>[0-9]{1,12})-[0-9]{1,6}(?![0-9])")


def prompt_ids_of(anchors: Iterable[FoundAnchor]) -> list[tuple[str, FoundAnchor]]:
    """The anchors by place, each with its name: the second one of message 12 is ``P12-2``.

    The names of a message's anchors do not depend on anchors of other messages.
    """
    ordered = sorted(anchors, key=lambda anchor: (anchor.seq, anchor.offset, anchor.type))
    count: Counter[int] = Counter()
    ids_and_anchors: list[tuple[str, FoundAnchor]] = []
    for anchor in ordered:
        count[anchor.seq] += 1
        ids_and_anchors.append((f"P{anchor.seq}-{count[anchor.seq]}", anchor))
    return ids_and_anchors


def without_prompt_ids(text: str, shown_ids: Collection[str]) -> str:
    """A text with the names of anchors replaced by the numbers of their messages: ``P12-2`` becomes ``#12``.

    Readers of the record see the numbers before the anchors, and can look up the message; they never see the names.

    ``shown_ids`` are the names that the summarizer was shown; others are kept.
    """

    def position(id_: re.Match[str]) -> str:
        return f"#{id_['seq']}" if id_.group() in shown_ids else id_.group()

    return _PROMPT_ID.sub(position, text)


def anchors_by_prompt_id(anchors: Iterable[Anchor]) -> Mapping[str, Anchor]:
    """Stored anchors by their names."""
    return {id_: anchor for id_, anchor in prompt_ids_of(anchors) if isinstance(anchor, Anchor)}

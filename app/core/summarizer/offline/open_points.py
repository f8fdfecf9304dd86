"""Finds questions that nobody answered, and matters that were left open."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from app.core.model.state import StateEntry
from app.core.reading.choice import KeptTexts
from app.core.reading.cues import NON_ANSWER
from app.core.reading.labels import phrases
from app.core.reading.passages import Passage
from app.core.summarizer.offline.items import Item, without_label
from app.core.text.words import stems

_MAX_MESSAGES: Final = 6  # the most messages with open points that are kept
_MAX_POINTS: Final = 3  # the most open points of one message


def open_items(passages: Sequence[Passage], previous: Sequence[StateEntry], language: str) -> list[Item]:
    """Questions that nobody answered and matters that were left open; if there are too many, the newest are kept."""
    words_ = phrases(language)
    label = words_.open_question if words_ else ""
    by_message: defaultdict[int, list[Passage]] = defaultdict(list)
    for passage in passages:
        if _is_open(passage, passages):
            by_message[passage.seq].append(passage)
    items: list[Item] = []
    known = KeptTexts(frozenset(stems(without_label(entry.text))) for entry in previous)
    for seq, found in sorted(by_message.items())[-_MAX_MESSAGES:]:
        if known.repeats(frozenset().union(*(passage.stems for passage in found))):
            continue
        speaker = "" if label and not found[0].is_named else f"{found[0].speaker}: "
        points = " ".join(passage.text for passage in found[:_MAX_POINTS])
        text = (
            speaker + points
            if points.casefold().startswith(label.casefold().rstrip(": "))
            else label + speaker + points
        )
        items.append(Item(text=text, seqs=(seq,), passages=tuple(found)))
    return items


def _is_open(passage: Passage, passages: Sequence[Passage]) -> bool:
    if passage.role == "tool" or (len(passage.stems) < 2 and not passage.identifiers):  # noqa: PLR2004 - "Why?"
        return False
    if passage.is_question:
        return passage.role == "user" and not passage.is_named and not _is_answered(passage, passages)
    return "open" in passage.cues and (passage.role == "user" or passage.is_named)


def _is_answered(question: Passage, passages: Sequence[Passage]) -> bool:
    answer: list[Passage] = []
    for passage in passages[question.index + 1 :]:
        if passage.role == "assistant":
            if answer and answer[0].seq != passage.seq:
                break
            answer.append(passage)
        elif answer:
            break
    return bool(answer) and not NON_ANSWER.search(answer[0].text) and not (len(answer) == 1 and answer[0].is_question)

"""Questions that nobody answered, matters that were left open, and what settles them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from app.core.model.state import StateEntry
from app.core.reading.choice import Told
from app.core.reading.cues import NON_ANSWER
from app.core.reading.labels import PHRASES, phrases
from app.core.reading.passages import Passage
from app.core.summarizer.offline.corrections import FEW
from app.core.summarizer.offline.items import Item, bare
from app.core.text.supposing import is_supposed
from app.core.text.words import GENERIC_STEMS, stems

_MOST: Final = 6  # messages
_LATER: Final = 400  # sentences; what settles a question comes soon, and the search stays bounded


def open_items(passages: Sequence[Passage], previous: Sequence[StateEntry], language: str) -> list[Item]:
    """Questions that nobody answered and matters that were left open, newest kept when there are too many."""
    words_ = phrases(language)
    label = words_.open_question if words_ else ""
    by_message: defaultdict[int, list[Passage]] = defaultdict(list)
    for passage in passages:
        if _is_open(passage, passages):
            by_message[passage.seq].append(passage)
    items: list[Item] = []
    known = Told(frozenset(stems(bare(entry.text))) for entry in previous)
    for seq, found in sorted(by_message.items())[-_MOST:]:
        if known.repeats(frozenset().union(*(passage.stems for passage in found))):
            continue
        speaker = "" if label and not found[0].is_named else f"{found[0].speaker}: "
        said = " ".join(passage.text for passage in found[:FEW])
        text = speaker + said if said.casefold().startswith(label.casefold().rstrip(": ")) else label + speaker + said
        items.append(Item(text=text, seqs=(seq,), passages=tuple(found)))
    return items


def _is_open(passage: Passage, passages: Sequence[Passage]) -> bool:
    if passage.role == "tool" or (len(passage.stems) < 2 and not passage.identifiers):  # noqa: PLR2004 - "Why?"
        return False
    if passage.is_question:
        return passage.role == "user" and not passage.is_named and not _is_answered(passage, passages)
    if "open" not in passage.cues or (passage.role != "user" and not passage.is_named):
        return False
    return _resolved_by(passage.stems, passages[passage.index + 1 :], after=passage.seq) is None


def _is_answered(question: Passage, passages: Sequence[Passage]) -> bool:
    answer: list[Passage] = []
    for passage in passages[question.index + 1 :]:
        if passage.role == "assistant":
            if answer and answer[0].seq != passage.seq:
                break
            answer.append(passage)
        elif answer:
            break
    if not answer:
        return False
    evasive = NON_ANSWER.search(answer[0].text) or (len(answer) == 1 and answer[0].is_question)
    return not evasive or _resolved_by(question.stems, passages[question.index + 1 :], after=answer[0].seq) is not None


def _resolved_by(asked: frozenset[str], later: Sequence[Passage], *, after: int) -> Passage | None:
    """The first later statement that settles it."""
    content = frozenset(word for word in asked if word not in GENERIC_STEMS)
    for passage in later[:_LATER]:
        if passage.seq <= after or passage.is_question or "open" in passage.cues or is_supposed(passage.text):
            continue
        shared = len(content & passage.stems)
        settles = passage.cues & {"decision", "result", "closed", "correction"}
        if shared and shared >= (0.34 if settles else 0.6) * len(content) and (shared > 1 or settles):
            return passage
    return None


def resolved_entries(passages: Sequence[Passage], previous: Sequence[StateEntry]) -> list[tuple[str, int]]:
    """Open entries of the state so far that this span settles, with the ``seq`` that does."""
    labels = tuple(words_.open_question for words_ in PHRASES.values())
    found: list[tuple[str, int]] = []
    for entry in previous:
        if entry.role == "open" or (entry.role == "fact" and entry.text.startswith(labels)):
            by = _resolved_by(frozenset(stems(bare(entry.text))), passages, after=0)
            if by is not None:
                found.append((entry.id, by.seq))
    return found

"""Writes the story so far in sentences that somebody said: how the conversation began, then what came last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from app.core.model.state import StateEntry
from app.core.reading.cues import Cue
from app.core.reading.importance import Ratings
from app.core.reading.labels import phrases
from app.core.reading.passages import Passage
from app.core.text.clauses import is_fragment
from app.core.text.sentences import closed, sentences
from app.core.text.shortening import clip, fitted
from app.core.text.token_counts import estimate_text

_LONGEST_PART: Final = 160  # the most characters of a quoted sentence
_SHORTEST: Final = 24  # the fewest characters to which a sentence is cut
_BEGINNING: Final = 6  # the number of messages that count as the beginning
_LATEST: Final = 2  # the number of sentences about what came last
_LATE: Final = 0.6  # the last part of a span begins after this share of it
_SETTLED: Final = 0.15  # added likelihood for a sentence by which something was decided or changed
_SETTLES: Final[frozenset[Cue]] = frozenset({"decision", "correction", "update", "result", "event"})
_STANDS: Final = 0.4


def narrative(
    passages: Sequence[Passage], ratings: Ratings, previous: Sequence[StateEntry], language: str, *, room: int
) -> str:
    """The story so far within about ``room`` tokens; empty only when nothing was said.

    Its first sentence stays as long as there is room. What was said last comes last, in a frame that says so.
    """
    earlier = " ".join(entry.text for entry in previous if entry.role == "narrative").strip()
    if not passages:
        return earlier
    sound = list(_readable_statements(passages, ratings.standalone))
    told = list(_latest_sentences(passages, sound, ratings.likely))
    words = phrases(language)
    parts = [closed(clip(passage.text_with_speaker, _LONGEST_PART)) for passage in told]
    first = _first_sentence(earlier) if previous else _best_opening_sentence(sound, told, ratings.likely, room // 2)
    first = "" if first in parts else first
    if words and (first or len(parts) > 1):
        last = told[-1]
        parts[-1] = closed(words.last_by.format(speaker=last.speaker, text=clip(last.text, _LONGEST_PART)))
    for kept in ([first, *parts], [first, parts[-1]], parts, parts[-1:]):
        text = " ".join(filter(None, kept))
        if estimate_text(text) <= room:
            return text
    return _cut_to_fit(parts[-1], room) or clip(parts[-1], _SHORTEST)


def _cut_to_fit(text: str, room: int) -> str:
    cut = fitted(text, room, shortest=_SHORTEST)
    return cut if estimate_text(cut) <= room else ""


def _first_sentence(earlier: str) -> str:
    return clip(next(iter(sentences(earlier)), ""), _LONGEST_PART)


def _best_opening_sentence(
    sound: Sequence[Passage], told: Sequence[Passage], likely: Sequence[float], room: int
) -> str:
    opening = [one for one in sound if one.turn < _BEGINNING and one not in told]
    fitting = [one for one in opening if estimate_text(one.text_with_speaker) <= room]
    best = max(fitting, key=lambda one: (likely[one.index], -one.index), default=None)
    return closed(clip(best.text_with_speaker, _LONGEST_PART)) if best else ""


def _latest_sentences(
    passages: Sequence[Passage], sound: Sequence[Passage], likely: Sequence[float]
) -> Iterator[Passage]:
    if not sound:
        spoken = [one for one in passages if one.role in {"user", "assistant"} and not one.is_pasted]
        yield (spoken or list(passages))[-1]
        return
    recent = [one for one in sound if one.index >= _LATE * passages[-1].index] or sound[-1:]
    ranked = sorted(recent, key=lambda one: (-likely[one.index] - _SETTLED * bool(one.cues & _SETTLES), -one.index))
    yield from sorted(ranked[:_LATEST], key=lambda one: one.index)


def _readable_statements(passages: Sequence[Passage], standing: Sequence[float]) -> Iterator[Passage]:
    found = [
        one
        for one in passages
        if one.role in {"user", "assistant"}
        and not (one.is_question or one.is_pasted or one.is_listed or is_fragment(one.text))
        and standing[one.index] >= _STANDS
    ]
    yield from [one for one in found if one.role == "user" or one.is_named] or found

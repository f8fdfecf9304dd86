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

_MAX_QUOTE_LENGTH: Final = 160  # the most characters of a quoted sentence
_MIN_QUOTE_LENGTH: Final = 24  # the fewest characters to which a sentence is cut
_OPENING_MESSAGES: Final = 6  # the number of messages that count as the beginning
_LATEST_SENTENCES: Final = 2  # the number of sentences about what came last
_LATE_SHARE: Final = 0.6  # the last part of a span begins after this share of it
_SETTLING_BONUS: Final = 0.15  # added likelihood for a sentence by which something was decided or changed
_SETTLING_CUES: Final[frozenset[Cue]] = frozenset({"decision", "correction", "update", "result", "event"})
_MIN_UNDERSTANDABLE: Final = 0.4


def narrative(
    passages: Sequence[Passage], ratings: Ratings, previous: Sequence[StateEntry], language: str, *, max_tokens: int
) -> str:
    """The story so far within about ``max_tokens`` tokens; empty only when nothing was said.

    Its first sentence stays as long as there is room. What was said last comes last, in a frame that says so.
    """
    earlier = " ".join(entry.text for entry in previous if entry.role == "narrative").strip()
    if not passages:
        return earlier
    readable = list(_readable_statements(passages, ratings.standalone))
    latest = list(_latest_sentences(passages, readable, ratings.likely))
    words = phrases(language)
    parts = [closed(clip(passage.text_with_speaker, _MAX_QUOTE_LENGTH)) for passage in latest]
    first = (
        _first_sentence(earlier)
        if previous
        else _best_opening_sentence(readable, latest, ratings.likely, max_tokens // 2)
    )
    first = "" if first in parts else first
    if words and (first or len(parts) > 1):
        last = latest[-1]
        parts[-1] = closed(words.last_by.format(speaker=last.speaker, text=clip(last.text, _MAX_QUOTE_LENGTH)))
    for kept in ([first, *parts], [first, parts[-1]], parts, parts[-1:]):
        text = " ".join(filter(None, kept))
        if estimate_text(text) <= max_tokens:
            return text
    return _cut_to_fit(parts[-1], max_tokens) or clip(parts[-1], _MIN_QUOTE_LENGTH)


def _cut_to_fit(text: str, max_tokens: int) -> str:
    cut = fitted(text, max_tokens, shortest=_MIN_QUOTE_LENGTH)
    return cut if estimate_text(cut) <= max_tokens else ""


def _first_sentence(earlier: str) -> str:
    return clip(next(iter(sentences(earlier)), ""), _MAX_QUOTE_LENGTH)


def _best_opening_sentence(
    readable: Sequence[Passage], latest: Sequence[Passage], likely: Sequence[float], max_tokens: int
) -> str:
    opening = [one for one in readable if one.turn < _OPENING_MESSAGES and one not in latest]
    fitting = [one for one in opening if estimate_text(one.text_with_speaker) <= max_tokens]
    best = max(fitting, key=lambda one: (likely[one.index], -one.index), default=None)
    return closed(clip(best.text_with_speaker, _MAX_QUOTE_LENGTH)) if best else ""


def _latest_sentences(
    passages: Sequence[Passage], readable: Sequence[Passage], likely: Sequence[float]
) -> Iterator[Passage]:
    if not readable:
        spoken = [one for one in passages if one.role in {"user", "assistant"} and not one.is_pasted]
        yield (spoken or list(passages))[-1]
        return
    recent = [one for one in readable if one.index >= _LATE_SHARE * passages[-1].index] or readable[-1:]
    ranked = sorted(
        recent, key=lambda one: (-likely[one.index] - _SETTLING_BONUS * bool(one.cues & _SETTLING_CUES), -one.index)
    )
    yield from sorted(ranked[:_LATEST_SENTENCES], key=lambda one: one.index)


def _readable_statements(passages: Sequence[Passage], standing: Sequence[float]) -> Iterator[Passage]:
    found = [
        one
        for one in passages
        if one.role in {"user", "assistant"}
        and not (one.is_question or one.is_pasted or one.is_listed or is_fragment(one.text))
        and standing[one.index] >= _MIN_UNDERSTANDABLE
    ]
    yield from [one for one in found if one.role == "user" or one.is_named] or found

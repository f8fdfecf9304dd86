"""Adds dates to relative times in entries: the day that "yesterday" means. It replaces no word.

The date is computed from the day of the source message that has the same word. If no source of an entry has it, or
sources of several days do, nothing is added. For times that name no single day ("last Friday"), the day of their
message is put at the end of the entry.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Final

from app.core.model.candidate import Candidate, CandidateItem
from app.core.model.conversation import Message
from app.core.model.overlap import message_text
from app.core.model.repairs import Repair
from app.core.text.budget import Budget
from app.core.text.memo import FIGURE_GROWTH, memoized
from app.core.text.relative import NearDay, date_note, day_in_brackets, has_relative_time, near_days, other_times
from app.core.text.sentences import ENDS, sentence_spans
from app.core.text.values import Value, values
from app.core.text.words import stems

_BESIDE: Final = 6
"""The most characters between a relative time and a date that already says its day: "yesterday, 12 May"."""
_BEFORE_DAY: Final = frozenset("(（,，")
_SAME: Final = 0.6
"""The share of a sentence's words that a message must have to count as its source, if the sentence names none."""
_LONGEST_MESSAGE: Final = 20_000  # characters of a message that are looked at
_MOST_SENTENCES: Final = 100
"""The most sentences of a narrative that are given dates: for each one the whole span is searched."""
_MOST_SOURCES: Final = 100
"""The most source messages of a text to which a date is added: more messages are hardly of one day."""
_MOST_WORDS: Final = 20
"""The most different relative times of a text that are looked for in messages."""


def with_dates(candidate: Candidate, messages: Iterable[Message], *, is_told: bool) -> tuple[Candidate, list[Repair]]:
    """The candidate with the dates that follow from its sources, and a repair for each text to which one was added.

    Args:
        candidate: The candidate, with its sources complete.
        messages: The messages of the span.
        is_told: Whether one text is the whole state: then its sentences are treated like entries.
    """
    span = list(messages)
    items = with_days(candidate.items, span)
    narrative = {field: _dated_by_sentence(text, span, is_told=is_told) for field, text in candidate.narrative.items()}
    pairs = [(old.field, old.text, new.text) for old, new in zip(candidate.items, items, strict=True)]
    pairs += [(field, text, narrative[field]) for field, text in candidate.narrative.items()]
    repairs = [
        Repair(field=field, reason="date_added", before=before, after=after)
        for field, before, after in pairs
        if before != after
    ]
    return (replace(candidate, items=items, narrative=narrative) if repairs else candidate), repairs


def with_days(items: Sequence[CandidateItem], messages: Iterable[Message]) -> tuple[CandidateItem, ...]:
    """Items with the dates that follow from their sources among these messages."""
    span = {message.seq: message for message in messages}
    return tuple(
        replace(item, text=dated(item.text, [span[seq] for seq in item.from_seqs if seq in span])) for item in items
    )


def dated(text: str, sources: Sequence[Message], *, beside: bool = True) -> str:
    """A text with the dates of its relative times added, as far as its sources say them.

    Args:
        text: An entry or a sentence.
        sources: The messages that it was made from.
        beside: Whether the day of the message may be added at the end, if no date can be put after the time itself.
    """
    near, others = near_days(text), other_times(text)
    if not 0 < len(sources) <= _MOST_SOURCES or not (near or others):
        return text
    days = [(one, _day_meant(one, sources)) for one in near]
    absolute = [(value.start, value.end) for value in values(text) if _is_day(value, text)]
    known = [(one, day) for one, day in days if day and not one.is_quoted]
    pieces, end = list[str](), 0
    for one, day in sorted(_without_date_beside(known, absolute), key=lambda told: told[0].end):
        if text[one.end : one.end + 2].lstrip()[:1] not in {"(", "（"}:
            pieces += [text[end : one.end], day_in_brackets(day, one.language)]
            end = one.end
    added = "".join([*pieces, text[end:]])
    if not beside or added != text or absolute or len(known) == len(near) + len(others):
        return added
    words = [other.text for other in others] or [text[one.start : one.end] for one in near]
    said = _day_when_said(words, sources)
    return inserted_before_end(added, date_note(said, text)) if said else added


def _is_day(value: Value, text: str) -> bool:
    # Digits after a bracket or the like may be a day: "by Friday (12.06.)".
    is_apart = text[: value.start].rstrip()[-1:] in _BEFORE_DAY
    return value.kind == "date" or (is_apart and any(form[:2] == "d:" for form in value.forms))


def _dated_by_sentence(text: str, span: Sequence[Message], *, is_told: bool) -> str:
    pieces: list[str] = []
    end, looked_through = 0, Budget(_MOST_SENTENCES)
    for start, stop in sentence_spans(text):
        sentence = text[start:stop]
        told = has_relative_time(sentence) and looked_through.takes(1)
        pieces += [text[end:start], dated(sentence, _sources(sentence, span), beside=is_told) if told else sentence]
        end = stop
    return "".join([*pieces, text[end:]])


def _sources(sentence: str, span: Sequence[Message]) -> list[Message]:
    """The messages that have a relative time of the sentence and most of its words."""
    wanted = [sentence[one.start : one.end].casefold() for one in near_days(sentence)]
    wanted += [other.text.casefold() for other in other_times(sentence)]
    wanted = list(dict.fromkeys(wanted))[:_MOST_WORDS]
    content = frozenset(stems(sentence)) if wanted else frozenset[str]()
    return [
        message
        for message in (span if wanted else ())
        for text in [message_text(message)[:_LONGEST_MESSAGE]]
        for folded in [text.casefold()]
        if any(word in folded for word in wanted) and len(content.intersection(stems(text))) >= _SAME * len(content)
    ]


def _day_meant(one: NearDay, sources: Sequence[Message]) -> date | None:
    said = {
        _day_of_message(message)
        for message in sources
        if (one.language, one.distance) in _distances_in_days(message_text(message)[:_LONGEST_MESSAGE])
    }
    try:
        return said.pop() + timedelta(days=one.distance) if len(said) == 1 else None
    except OverflowError:
        return None


@memoized(FIGURE_GROWTH)
def _distances_in_days(text: str) -> frozenset[tuple[str, int]]:
    return frozenset((one.language, one.distance) for one in near_days(text))


def _day_when_said(words: Sequence[str], sources: Sequence[Message]) -> date | None:
    words = list(dict.fromkeys(words))[:_MOST_WORDS]
    texts: Mapping[int, str] = {one.seq: message_text(one)[:_LONGEST_MESSAGE].casefold() for one in sources}
    days = {_day_of_message(one) for one in sources if any(word.casefold() in texts[one.seq] for word in words)}
    return days.pop() if len(days) == 1 else None


def _day_of_message(message: Message) -> date:
    # The day is that of the time zone with which the message was stored.
    return message.created_at.date()


def _without_date_beside(
    known: Iterable[tuple[NearDay, date]], absolute: Sequence[tuple[int, int]]
) -> Iterator[tuple[NearDay, date]]:
    starts, ends = [start for start, _ in absolute], [end for _, end in absolute]
    for one, day in known:
        after = bisect_left(starts, one.end)
        before = bisect_right(ends, one.start) - 1
        is_before = before >= 0 and one.start - ends[before] <= _BESIDE
        if not (is_before or (after < len(starts) and starts[after] - one.end <= _BESIDE)):
            yield one, day


def inserted_before_end(text: str, said: str) -> str:
    """The text with ``said`` inserted before its final punctuation mark."""
    bare = text.rstrip(ENDS)
    return f"{bare}{said}{text[len(bare) :]}" if bare else text

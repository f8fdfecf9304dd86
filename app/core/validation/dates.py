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
from app.core.model.repairs import Repair
from app.core.model.word_overlap import message_text
from app.core.text.blanks import with_plain_blanks
from app.core.text.budget import Budget
from app.core.text.memo import FIGURE_GROWTH, memoized
from app.core.text.relative import NearDay, date_note, day_in_brackets, has_relative_time, near_days, other_times
from app.core.text.sentences import ENDS, sentence_spans
from app.core.text.values import Value, values
from app.core.text.words import stems

_MAX_CHARACTERS_BETWEEN: Final = 6
"""The most characters between a relative time and a date that already says its day: "yesterday, 12 May"."""
_BEFORE_DAY: Final = frozenset("(（,，")
_MIN_SHARED_WORD_SHARE: Final = 0.6
"""The share of a sentence's words that a message must have to count as its source, if the sentence names none."""
_MAX_MESSAGE_LENGTH: Final = 20_000  # characters of a message that are looked at
_MAX_SENTENCES: Final = 100
"""The most sentences of a narrative that are given dates: for each one the whole span is searched."""
_MAX_SOURCES: Final = 100
"""The most source messages of a text to which a date is added: more messages are hardly of one day."""
_MAX_RELATIVE_TIMES: Final = 20
"""The most different relative times of a text that are looked for in messages."""


def candidate_with_dates(
    candidate: Candidate, messages: Iterable[Message], *, is_narrative_only: bool
) -> tuple[Candidate, list[Repair]]:
    """The candidate with the dates that follow from its sources, and a repair for each text to which one was added.

    Args:
        candidate: The candidate, with its sources complete.
        messages: The messages of the span.
        is_narrative_only: Whether one text is the whole state: then its sentences are treated like entries.
    """
    span = list(messages)
    items = items_with_dates(candidate.items, span)
    narrative = {
        field: narrative_with_dates(text, span, is_narrative_only=is_narrative_only)
        for field, text in candidate.narrative.items()
    }
    pairs = [(old.field, old.text, new.text) for old, new in zip(candidate.items, items, strict=True)]
    pairs += [(field, text, narrative[field]) for field, text in candidate.narrative.items()]
    repairs = [
        Repair(field=field, reason="date_added", before=before, after=after)
        for field, before, after in pairs
        if before != after
    ]
    return (replace(candidate, items=items, narrative=narrative) if repairs else candidate), repairs


def items_with_dates(items: Sequence[CandidateItem], messages: Iterable[Message]) -> tuple[CandidateItem, ...]:
    """Items with the dates that follow from their sources among these messages."""
    span = {message.seq: message for message in messages}
    return tuple(
        replace(item, text=text_with_dates(item.text, [span[seq] for seq in item.from_seqs if seq in span]))
        for item in items
    )


def text_with_dates(text: str, sources: Sequence[Message], *, may_append_day: bool = True) -> str:
    """A text with the dates of its relative times added, as far as its sources say them.

    Args:
        text: An entry or a sentence.
        sources: The messages that it was made from.
        may_append_day: Whether the day of the message may be added at the end, if no date can be put after the time
            itself.
    """
    relative_days, other_relative_times = near_days(text), other_times(text)
    if not 0 < len(sources) <= _MAX_SOURCES or not (relative_days or other_relative_times):
        return text
    days = [(one, _day_of_relative_time(one, sources)) for one in relative_days]
    absolute = [(value.start, value.end) for value in values(text) if _is_day(value, text)]
    known = [(one, day) for one, day in days if day and not one.is_quoted]
    pieces, end = list[str](), 0
    for one, day in sorted(_without_adjacent_date(known, absolute), key=lambda pair: pair[0].end):
        if text[one.end : one.end + 2].lstrip()[:1] not in {"(", "（"}:
            pieces += [text[end : one.end], day_in_brackets(day, one.language)]
            end = one.end
    dated = "".join([*pieces, text[end:]])
    if not may_append_day or dated != text or absolute or len(known) == len(relative_days) + len(other_relative_times):
        return dated
    plain = with_plain_blanks(text)
    words = [other.text for other in other_relative_times] or [plain[one.start : one.end] for one in relative_days]
    message_day = _common_message_day(words, sources)
    return inserted_before_end(dated, date_note(message_day, text)) if message_day else dated


def _is_day(value: Value, text: str) -> bool:
    # Digits after a bracket or the like may be a day: "by Friday (12.06.)".
    is_apart = text[: value.start].rstrip()[-1:] in _BEFORE_DAY
    return value.kind == "date" or (is_apart and any(form[:2] == "d:" for form in value.forms))


def narrative_with_dates(text: str, span: Sequence[Message], *, is_narrative_only: bool) -> str:
    """A narrative with the dates of its relative times added, as far as messages of the span say them.

    Args:
        text: The narrative, or sentences of it.
        span: The folded messages.
        is_narrative_only: Whether one text is the whole state: then its sentences are treated like entries.
    """
    pieces: list[str] = []
    end, search_budget = 0, Budget(_MAX_SENTENCES)
    for start, stop in sentence_spans(text):
        sentence = text[start:stop]
        is_dated = has_relative_time(sentence) and search_budget.takes(1)
        pieces += [
            text[end:start],
            text_with_dates(sentence, _source_messages(sentence, span), may_append_day=is_narrative_only)
            if is_dated
            else sentence,
        ]
        end = stop
    return "".join([*pieces, text[end:]])


def _source_messages(sentence: str, span: Sequence[Message]) -> list[Message]:
    """The messages that have a relative time of the sentence and most of its words."""
    plain = with_plain_blanks(sentence)
    wanted = [plain[one.start : one.end].casefold() for one in near_days(sentence)]
    wanted += [other.text.casefold() for other in other_times(sentence)]
    if not wanted:
        return []
    times, content = list(dict.fromkeys(wanted))[:_MAX_RELATIVE_TIMES], frozenset(stems(sentence))

    def is_source(message: Message) -> bool:
        text = message_text(message)[:_MAX_MESSAGE_LENGTH]
        folded = with_plain_blanks(text).casefold()
        has_time = any(time in folded for time in times)
        return has_time and len(content.intersection(stems(text))) >= _MIN_SHARED_WORD_SHARE * len(content)

    return list(filter(is_source, span))


def _day_of_relative_time(relative_day: NearDay, sources: Sequence[Message]) -> date | None:
    message_days = {
        _day_of_message(message)
        for message in sources
        if (relative_day.language, relative_day.distance)
        in _distances_in_days(message_text(message)[:_MAX_MESSAGE_LENGTH])
    }
    try:
        return message_days.pop() + timedelta(days=relative_day.distance) if len(message_days) == 1 else None
    except OverflowError:
        return None


@memoized(FIGURE_GROWTH)
def _distances_in_days(text: str) -> frozenset[tuple[str, int]]:
    return frozenset((one.language, one.distance) for one in near_days(text))


def _common_message_day(words: Sequence[str], sources: Sequence[Message]) -> date | None:
    words = list(dict.fromkeys(words))[:_MAX_RELATIVE_TIMES]
    shown = {one.seq: message_text(one)[:_MAX_MESSAGE_LENGTH] for one in sources}
    texts: Mapping[int, str] = {seq: with_plain_blanks(text).casefold() for seq, text in shown.items()}
    days = {_day_of_message(one) for one in sources if any(word.casefold() in texts[one.seq] for word in words)}
    return days.pop() if len(days) == 1 else None


def _day_of_message(message: Message) -> date:
    # The day is that of the time zone with which the message was stored.
    return message.created_at.date()


def _without_adjacent_date(
    known: Iterable[tuple[NearDay, date]], absolute: Sequence[tuple[int, int]]
) -> Iterator[tuple[NearDay, date]]:
    starts, ends = [start for start, _ in absolute], [end for _, end in absolute]
    for one, day in known:
        after = bisect_left(starts, one.end)
        before = bisect_right(ends, one.start) - 1
        is_before = before >= 0 and one.start - ends[before] <= _MAX_CHARACTERS_BETWEEN
        if not (is_before or (after < len(starts) and starts[after] - one.end <= _MAX_CHARACTERS_BETWEEN)):
            yield one, day


def inserted_before_end(text: str, insertion: str) -> str:
    """The text with ``insertion`` inserted before its final punctuation mark."""
    bare = text.rstrip(ENDS)
    return f"{bare}{insertion}{text[len(bare) :]}" if bare else text

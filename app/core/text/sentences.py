"""Splits texts of any language into sentences. Every pattern takes linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from app.core.text.day_notes import end_of_note
from app.core.text.languages.combined_words import words_of
from app.core.text.memo import memoized
from app.core.text.patterns import capped, compiled
from app.core.text.tables import MONTHS, WEEKDAYS

_FENCE: Final = compiled(r"^[ \t]*+(?:```|~~~)", re.MULTILINE)
_END: Final = compiled(
    r"[.!?…。！？｡؟।۔](?:"  # a pattern that begins with a class is searched fast
    r"(?<=[.!?…])(?<![.!?…]{2})[.!?…]*+[\"'”’»“)\]*_]{0,4}+(?=\s)"  # Latin, Cyrillic and the like: a space must follow
    r"|(?<=[。！？｡؟।۔])[。！？｡؟।۔]*+[」』”’）\"]{0,4})"
)
_BEFORE: Final = 40
"""How many characters before a full stop are looked at."""
_LAST_WORDS: Final = capped(
    r"(?:(?P<before>[^\W\d_]{1,12})\s)?(?P<last>[^\W_]{1,20}(?:\.[^\W_]{1,3}){0,3})\.$", _BEFORE + 1
)
_PARTED: Final = capped(r"(?:^|[\s(])([^\W\d_]\.) ([^\W\d_])\.$", _BEFORE + 1)
"""An abbreviation of two letters with a space between them: "z. B.", "u. a."."""
_LIST_MARK: Final = compiled(r"\s*(?:[-*+•–—]|\(?\d{1,3}[.)]|\(?[a-zа-я][.)]|#{1,6}|>)\s")
_TABLE_RULE: Final = compiled(r"[\s|:=_*-]+")
_NEXT_WORD: Final = capped(r"\s*[\"'“„«(*_]{0,3}(?P<word>[^\W\d_]*)", 40)
_NEVER: Final = words_of("sentences", "abbreviations")
_SOMETIMES: Final = words_of("sentences", "abbreviations_at_ends")
_SHORTENED: Final = _NEVER | _SOMETIMES
_BEFORE_ORDINALS: Final = words_of("sentences", "before_ordinals")
_SHORT_WORDS: Final = words_of("sentences", "short_words")
_MIN_LAST_WORD_LENGTH: Final = 3
"""A full stop after a shorter word and before a lower-case letter does not end a sentence: it mostly abbreviates."""
_SOFT_WRAP: Final = 60
"""A line of at least so many characters may continue in the next line."""
LINE_BREAK: Final = compiled(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""The characters at which ``str.splitlines`` splits lines."""
ENDS: Final = ".!?…。！？"
"""The marks with which a sentence ends."""
_LINE_ENDS: Final = f"{ENDS}:;"
_STOPS: Final = frozenset(ENDS)
_CLOSING: Final = "\"'”’»」』)]"
_AFTER_MARK: Final = f"{_CLOSING}*_ \t\r\n"
_QUESTIONS: Final = ("?", "？", "؟")


@memoized()
def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, in order, without blank ones.

    A line break separates sentences, unless a long line plainly continues in lower case: then it counts as a space.
    List items and rows of a table are sentences of their own, a fenced block of code is one sentence. Abbreviations,
    initials, decimals, versions, addresses and German ordinals do not split a sentence.
    """
    return tuple(_in_one_line(text[start:end]) for start, end in sentence_spans(text))


def sentences_read_once(text: str) -> Iterator[str]:
    """Like ``sentences``, for a text that is read only once: the result does not take up room in the memo."""
    return (_in_one_line(text[start:end]) for start, end in _spans(text))


def asks(text: str) -> bool:
    """Whether a text ends with a question, perhaps inside quotation marks or brackets."""
    return text.rstrip(_AFTER_MARK).endswith(_QUESTIONS)


def is_code(sentence: str) -> bool:
    """Whether a sentence is a fenced block of code."""
    return _FENCE.match(sentence) is not None


def closed(text: str) -> str:
    """The text with a final full stop, unless it already ends like a sentence, perhaps inside a quotation."""
    return text if not text or text.rstrip(_CLOSING)[-1:] in _STOPS else f"{text}."


@memoized()
def sentence_spans(text: str) -> tuple[tuple[int, int], ...]:
    """The beginning and end of each sentence in the text."""
    return _spans(text)


def _spans(text: str) -> tuple[tuple[int, int], ...]:
    spans: list[tuple[int, int]] = []
    if text.isprintable() and "```" not in text and "~~~" not in text:  # one line
        start, end = _stripped(text, 0, len(text))
        is_text = start < end and not _TABLE_RULE.fullmatch(text)
        return tuple(span for span in _split(text, start, end) if span[0] < span[1]) if is_text else ()
    for start, end, is_code in _prose_and_code(text):
        if is_code:
            spans.append(_stripped(text, start, end))
            continue
        for first, last in _lines(text, start, end):
            spans.extend(_split(text, first, last))
    return tuple(span for span in spans if span[0] < span[1])


def starts_within(text: str, first: int, last: int) -> list[int]:
    """The places where sentences begin in a stretch of a text, without the stretch's own beginning."""
    return [first + start for start, _ in sentence_spans(text[first:last])[1:]]


def _in_one_line(sentence: str) -> str:
    if "\n" not in sentence or is_code(sentence):
        return sentence
    return " ".join(line.strip() for line in sentence.splitlines())


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip()))


def _prose_and_code(text: str) -> Iterator[tuple[int, int, bool]]:
    fences = [match.start() for match in _FENCE.finditer(text)]
    position = 0
    for opening, closing in zip(fences[::2], [*fences[1::2], None], strict=False):
        # A fence that is never closed reaches to the end of the text.
        end = len(text) if closing is None else (text.find("\n", closing) + 1 or len(text))
        yield position, opening, False
        yield opening, end, True
        position = end
    yield position, len(text), False


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The lines, with the continuation of a long line joined to it."""
    position = start
    first = last = length = -1
    for raw in text[start:end].splitlines(keepends=True):
        begin, stop = _stripped(text, position, position + len(raw))
        position += len(raw)
        line = text[begin:stop]
        if first >= 0:
            goes_on = length >= _SOFT_WRAP and line[:1].islower() and text[last - 1] not in _LINE_ENDS
            if goes_on and not _LIST_MARK.match(line):
                last, length = stop, stop - begin
                continue
            yield first, last
        first, last, length = (-1, -1, -1) if not line or _TABLE_RULE.fullmatch(line) else (begin, stop, stop - begin)
    if first >= 0:
        yield first, last


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    if text[start] == "|":  # a row of a table
        yield start, end
        return
    mark = _LIST_MARK.match(text, start, end)
    for match in _END.finditer(text, mark.end() if mark else start, end):
        if match.start() >= start and _is_end(text, match, start, end):
            stop = min(end_of_note(text, match.end()), end)
            yield _stripped(text, start, stop)
            start = stop
    yield _stripped(text, start, end)


def _ends_with_whole_word(text: str, match: re.Match[str], start: int) -> bool:
    word = text[text.rfind(" ", start, match.start()) + 1 : match.start()].lower()
    return len(word) >= _MIN_LAST_WORD_LENGTH and word.isalpha() and word not in _SHORTENED


def _last_words(text: str) -> re.Match[str] | None:
    # Only the last two words are searched: a search in the whole text takes longer.
    return _LAST_WORDS.search(" ".join(text.rsplit(" ", 2)[-2:]))


def _is_end(text: str, match: re.Match[str], start: int, end: int) -> bool:
    at = match.start()
    if text[at] != "." or text.startswith("..", at) or _ends_with_whole_word(text, match, start):
        return True
    words = _last_words(text[max(start, at - _BEFORE) : at + 1])
    if words is None:
        return True
    parted = _PARTED.search(words.string)
    written = parted[1] + parted[2] if parted and (parted[1] + parted[2]).lower() in _SHORTENED else words["last"]
    last = written.lower()
    following = _NEXT_WORD.match(text[match.end() : min(end, match.end() + _BEFORE)])
    word = following["word"] if following else ""
    if f"{last}.{word}".lower() in _SHORTENED:  # "z. B."
        return False
    if last.isdigit():
        is_ordinal = (words["before"] or "").lower() in _BEFORE_ORDINALS and len(last) < 3  # noqa: PLR2004 - no year
        return word.lower() not in MONTHS and not is_ordinal
    if last in _SOMETIMES:
        is_name = word.lower() in MONTHS or word.lower() in WEEKDAYS or (len(word) > 1 and word.isupper())
        return word[:1].isupper() and not is_name
    is_capital = written.isupper()
    is_of_degrees = words.string[: words.start("last")].rstrip().endswith("°")  # "50 °F."
    is_never = last in _NEVER and (not is_capital or len(last) == 1) and not is_of_degrees
    is_initial = len(last) == 1 and is_capital and last != "i" and not is_of_degrees
    is_word = "." not in last and (len(last) >= _MIN_LAST_WORD_LENGTH or last in _SHORT_WORDS)
    return not (is_never or is_initial) and (is_word or not word[:1].islower() or not last.isalpha())

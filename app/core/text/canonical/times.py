"""Times of day: "5 pm", "17:00", "в 5 вечера", "下午5点"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from app.core.text.canonical.number_words import ORDINALS, WORDS, read_han, read_words
from app.core.text.canonical.values import Value
from app.core.text.patterns import compiled

_HOURS: Final = 24
_NOON: Final = 12
_SMALL_WORDS: Final = "|".join(
    sorted((word for word, value in WORDS.items() if value <= _NOON and value == int(value)), key=len, reverse=True)
)
_HALF_OF: Final = {word: hour for word, hour in ORDINALS.items() if hour <= _NOON and not word.isascii()}
"""The hour that is half over: in Russian the one that began is not named."""
_WRITTEN: Final = compiled(
    r"(?<![\d:.])(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::\d{2}(?:\.\d{1,6})?)?(?!\d|:\d)"
    r"(?:\s?(?P<half>[ap])\.?m\b\.?|\s(?P<part>утра|вечера|дня|ночи|in the (?:morning|afternoon|evening)|at night)\b)?"
    r"|(?<![\d:.,$€£])(?P<hour2>\d{1,2})(?:[.:](?P<minute2>\d{2}))?\s?(?P<half2>[ap])\.?m\b\.?"
)
_SPOKEN: Final = compiled(
    rf"(?<![^\W_])(?P<hour>\d{{1,2}}|{_SMALL_WORDS})\s(?:час(?:а|ов)?\s)?(?P<half>утра|вечера|дня|ночи|o['’]clock|uhr)(?![^\W_])"
)
_SPOKEN_SIGN: Final = compiled(r"\b(?:утра|вечера|дня|ночи|o['’]clock|uhr)\b")
_HALF: Final = compiled(
    rf"\b(?P<past>half past)\s(?P<hour>{_SMALL_WORDS}|\d{{1,2}})(?![^\W_])"
    rf"|\bhalb\s(?P<to>{_SMALL_WORDS}|\d{{1,2}})(?![^\W_])"
    rf"|\b(?:половин[аеу]\s|пол-?)(?P<first>{'|'.join(_HALF_OF)})\b"
)
_HALF_SIGN: Final = compiled(r"\b(?:half past|halb\s|пол)")
_HAN: Final = compiled(
    r"(?P<half>凌晨|清晨|早上|上午|中午|下午|傍晚|晚上)?(?P<hour>\d{1,2}|[一二两三四五六七八九十]{1,3})[点點时時](?![零一二三四五六七八九])"
    r"(?:(?P<thirty>半)|(?P<minute>\d{1,2})分?)?"
)
_HAN_SIGN: Final = compiled("[点點时時]")
_NAMED: Final = compiled(r"\b(?:noon|midday|midnight|полдень|полночь)\b")
_LOOSE: Final = compiled(
    rf"\b(?:at|by|around|about|until|till|from|before|after|to|between|and|в|к|до|около|после|с|um|ab|gegen|vers|à"
    rf"|a las)\s"
    rf"(?P<hour>\d{{1,2}}|{_SMALL_WORDS})(?![\d:.,]\d|[^\W_])"
)
_LATE: Final = frozenset({"p", "in the afternoon", "in the evening", "вечера", "дня", "下午", "傍晚", "晚上"})
_EARLY: Final = frozenset({"a", "in the morning", "утра", "凌晨", "清晨", "早上", "上午"})
_WORDS: Final = {"noon": "12:00", "midday": "12:00", "полдень": "12:00", "midnight": "00:00", "полночь": "00:00"}


def find_times(text: str) -> Iterator[Value]:
    """Times that are plainly times, in a text of small letters."""
    for match in _WRITTEN.finditer(text):
        minute = int(match["minute"] or match["minute2"] or 0)
        yield _value(
            match,
            _forms(_hour(match["hour"] or match["hour2"]), minute, match["half"] or match["half2"] or match["part"]),
        )
    for match in _SPOKEN.finditer(text) if _SPOKEN_SIGN.search(text) else ():
        yield _value(match, _forms(_hour(match["hour"]), 0, match["half"]))
    for match in _HALF.finditer(text) if _HALF_SIGN.search(text) else ():
        hour = _hour(match["hour"]) if match["past"] else (_HALF_OF.get(match["first"]) or _hour(match["to"])) - 1
        yield _value(match, _forms(hour or _NOON, 30, None))
    for match in _HAN.finditer(text) if _HAN_SIGN.search(text) else ():
        minute = 30 if match["thirty"] else int(match["minute"] or 0)
        yield _value(match, _forms(_hour(match["hour"]), minute, match["half"]))
    for match in _NAMED.finditer(text):
        yield _value(match, (f"t:{_WORDS[match.group()]}",))


def find_loose_times(text: str) -> Iterator[tuple[str, ...]]:
    """What is perhaps a time ("at 5", "в пять"); only of use as what a text gives."""
    for match in _LOOSE.finditer(text):
        if forms := _forms(_hour(match["hour"]), 0, None):
            yield forms


def _value(match: re.Match[str], forms: tuple[str, ...]) -> Value:
    return Value(kind="time", start=match.start(), end=match.end(), needs=forms, gives=forms)


def _hour(text: str) -> int:
    if text.isdigit():
        return int(text)
    return int(read_words(text) or read_han(text) or 0)


def _forms(hour: int, minute: int, half: str | None) -> tuple[str, ...]:
    """Its readings: without a half of the day, an hour up to twelve may be either."""
    if hour > _HOURS or minute > 59:  # noqa: PLR2004 - minutes of an hour
        return ()
    if half in _LATE:
        hours = [hour % _NOON + _NOON]
    elif half in _EARLY:
        hours = [hour % _NOON]
    elif half in {"ночи", "at night"}:
        hours = [hour % _NOON, hour]
    else:
        hours = [hour, (hour + _NOON) % _HOURS] if hour <= _NOON else [hour % _HOURS]
    return tuple(f"t:{each:02}:{minute:02}" for each in dict.fromkeys(hours))

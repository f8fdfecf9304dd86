"""Decides on words that belong to a value in one language only: "once" is eleven in Spanish."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from app.core.text import tables as t
from app.core.text.language import detect
from app.core.text.languages.loading import languages
from app.core.text.languages.sections_of_values import Values
from app.core.text.scan_results import TIGHT, Token
from app.core.text.vocabulary import VOCABULARY
from app.core.text.word_lists import STOPWORDS

MAYBE: Final = "maybe"
"""Marks a word as part of a value only if the text is in a language that it may be in: "dos meses"."""
_AMOUNT_KEYS: Final = ("numbers", "scales", "units", "shares", "currencies")
_VALUE_KEYS: Final = (
    *_AMOUNT_KEYS, "date_fill", "before_clock", "past_hour", "ten_joints", "ordinals", "quarters", "half_past",
    "named_hours",
)  # fmt: skip
"""The keys whose words, next to a homograph, show its language."""


def _words(code: str, keys: Sequence[str] = _VALUE_KEYS) -> Iterator[str]:
    own_values = next(one.values for one in languages() if one.code == code)
    for key in keys:
        for row in getattr(own_values, key):
            yield from (row,) if isinstance(row, str) else row[1]


def _all_words(own_values: Values) -> frozenset[str]:
    rows = (getattr(own_values, name) for name in type(own_values).model_fields)
    listed = (row for several in rows if isinstance(several, tuple) for row in several)
    return frozenset(word for row in listed for word in ((row,) if isinstance(row, str) else row[1]))


_WORDS_OF_VALUES: Final = {one.code: frozenset(_words(one.code)) for one in languages()}
_WORDS_OF_AMOUNTS: Final = {one.code: frozenset(_words(one.code, _AMOUNT_KEYS)) for one in languages()}
_USED_WORDS: Final = {one.code: _all_words(one.values) | STOPWORDS.get(one.code, frozenset()) for one in languages()}
_OTHER_MEANINGS: Final = {
    word: [used for code, used in _USED_WORDS.items() if code not in codes and word in used]
    for word, codes in t.HOMOGRAPHS.items()
}
"""For each homograph, the words of each language in which it means something else."""


def with_homographs_decided(tokens: list[Token], text: str) -> list[Token]:
    """The tokens of a text with each homograph decided for one language; those that then fit no value are left out.

    ``text`` is the normalized text.
    """
    if not any(token.kind == "w" and token.text in t.HOMOGRAPHS for token in tokens):
        return tokens
    return [
        one
        for place, token in enumerate(tokens)
        for one in (_decided(tokens, place, text) if token.kind == "w" and token.text in t.HOMOGRAPHS else (token,))
    ]


def _decided(tokens: Sequence[Token], place: int, text: str) -> tuple[Token, ...]:
    token = tokens[place]
    if token.text not in t.SHORT_MONTHS or _is_beside_number(tokens, place):
        for code in sorted(t.HOMOGRAPHS[token.text]):
            if _is_beside_word_of_language(tokens, place, text, code) or code == detect(text):
                return (replace(token, text=t.own_word(token.text, code)),)
        for code in sorted(t.HOMOGRAPHS[token.text]):
            if any(word in _WORDS_OF_AMOUNTS[code] for word in _words_beside(tokens, place, text)):
                return (replace(token, text=t.own_word(token.text, code), data=MAYBE),)
    return (token,) if token.text in VOCABULARY else ()


def without_uncertain_values(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens, with homographs that are only possibly part of a value read as ordinary words."""
    if not any(token.data is MAYBE for token in tokens):
        return tokens
    plain = (replace(one, text=one.text.rpartition(".")[0], data=None) if one.data is MAYBE else one for one in tokens)
    return [one for one in plain if one.kind != "w" or one.text not in t.HOMOGRAPHS or one.text in VOCABULARY]


def _is_beside_number(tokens: Sequence[Token], place: int) -> bool:
    for step in (-1, 1):
        at = place + step
        if 0 <= at < len(tokens) and tokens[at].text in t.DATE_FILL:  # "18 de abr"
            at += step
        if 0 <= at < len(tokens) and tokens[at].kind in {"n", "o"}:
            return True
    return False


def _is_beside_word_of_language(tokens: Sequence[Token], place: int, text: str, code: str) -> bool:
    others = _OTHER_MEANINGS[tokens[place].text]
    return any(
        code in t.HOMOGRAPHS.get(word, ())
        or (word in _WORDS_OF_VALUES[code] and not any(word in other for other in others))
        for word in _words_beside(tokens, place, text)
    )


def _words_beside(tokens: Sequence[Token], place: int, text: str) -> Iterator[str]:
    for step in (-1, 1):
        yield (word := _word_near(tokens, place, step, text))
        if word in t.TEN_JOINTS:
            yield _word_near(tokens, place + step, step, text)


def _word_near(tokens: Sequence[Token], place: int, step: int, text: str) -> str:
    other = place + step
    if not 0 <= other < len(tokens) or tokens[other].kind != "w":
        return ""
    before, behind = tokens[min(place, other)], tokens[max(place, other)]
    return tokens[other].text if text[before.end : behind.start] in TIGHT else ""

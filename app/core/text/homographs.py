"""Words of values that mean something else in another language: "once" is eleven in Spanish."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from app.core.text import tables as t
from app.core.text.language import detect
from app.core.text.languages.loading import languages
from app.core.text.scanned import TIGHT, Token
from app.core.text.vocabulary import VOCABULARY

_KEYS: Final = ("numbers", "scales", "units", "shares", "date_fill", "before_clock", "past_hour")
"""Words that show a language beside a homograph."""


def _words(code: str) -> Iterator[str]:
    said = next(one.values for one in languages() if one.code == code)
    for key in _KEYS:
        for row in getattr(said, key):
            yield from (row,) if isinstance(row, str) else row[1]


def _words_of_one_language_only() -> dict[str, frozenset[str]]:
    every = {language.code: frozenset(_words(language.code)) for language in languages()}
    return {
        code: every[code].difference(t.HOMOGRAPHS, *(words for other, words in every.items() if other != code))
        for code in sorted(frozenset().union(*t.HOMOGRAPHS.values()))
    }


_OWN: Final = _words_of_one_language_only()


def settled(tokens: list[Token], text: str) -> list[Token]:
    """The tokens of a text, each homograph decided for one language. Those that then belong to no value are left out.

    ``text`` is normalized.
    """
    if not any(token.kind == "w" and token.text in t.HOMOGRAPHS for token in tokens):
        return tokens
    return [
        one
        for place, token in enumerate(tokens)
        for one in (_settled(tokens, place, text) if token.kind == "w" and token.text in t.HOMOGRAPHS else (token,))
    ]


def _settled(tokens: Sequence[Token], place: int, text: str) -> tuple[Token, ...]:
    token = tokens[place]
    if token.text not in t.SHORT_MONTHS or _is_beside_number(tokens, place):
        for code in sorted(t.HOMOGRAPHS[token.text]):
            if code == detect(text) or _is_beside_word_of_language(tokens, place, text, code):
                return (replace(token, text=t.own_word(token.text, code)),)
    return (token,) if token.text in VOCABULARY else ()


def _is_beside_number(tokens: Sequence[Token], place: int) -> bool:
    return any(one.kind in {"n", "o"} for one in (*tokens[place - 1 : place], *tokens[place + 1 : place + 2]))


def _is_beside_word_of_language(tokens: Sequence[Token], place: int, text: str, code: str) -> bool:
    for other, last, first in ((place - 1, place - 1, place), (place + 1, place, place + 1)):
        word = tokens[other].text if 0 <= other < len(tokens) else ""
        is_own = word in _OWN[code] or code in t.HOMOGRAPHS.get(word, ())
        if is_own and text[tokens[last].end : tokens[first].start] in TIGHT:
            return True
    return False

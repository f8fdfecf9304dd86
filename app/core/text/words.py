"""Takes text apart into content words and light stems. Every pattern runs in linear time."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from app.core.text.languages.loading import languages
from app.core.text.memo import memoized, word_memo
from app.core.text.patterns import compiled
from app.core.text.plain_letters import in_plain_letters
from app.core.text.scripts import MARKS, READING_AIDS, UNSPACED
from app.core.text.word_lists import FRAME, GENERIC, NOISE, STOPWORDS, respelled

_TOKEN: Final = compiled(
    rf"(?P<unspaced>[{UNSPACED}]+)"
    r"|(?P<number>\d+(?:[.,:]\d+)*)"
    rf"|(?P<word>(?:[^\W\d_{UNSPACED}]++[{MARKS}]*+)++(?:['’][^\W\d_]{{1,3}}\b)?)"
)
_ASCII_TOKEN: Final = compiled(r"\d+(?:[.,:]\d+)*|[a-z]+(?:'[a-z]{1,3}\b)?", re.ASCII)
_SPACED: Final = (
    "".join(one.lower() if one.isalnum() or one == "'" else " " for one in map(chr, range(128))).encode().ljust(256)
)
"""The replacement of each ASCII byte where only words and numbers are wanted: small letter, apostrophe or space."""
_OTHER_NUMBER: Final = compiled(r"[0-9](?:[.,:][0-9]|['A-Za-z]|(?<=['A-Za-z][0-9]))", re.ASCII)
_OTHER_APOSTROPHE: Final = compiled(r"'(?:(?<![A-Za-z]')|(?![A-Za-z]{1,3}(?![\w'])))", re.ASCII)
"""Marks in a text that do not separate words as a space does: "1.5", "3rd", "'twas", "o'clock"."""
_SIGNS: Final = (("’", "'"), *((sign, " ") for sign in "€£“”„«»–—…•"))
"""Usual marks between words that are not ASCII, each with an ASCII replacement."""
_WRITTEN: Final = compiled(rf"[^\W_]++(?:[{MARKS}]++[^\W_]*+|[.+#'’-][^\W_]++)*+")
_READING_AIDS: Final = compiled(f"[{READING_AIDS}]+")


def tokens(text: str) -> list[str]:
    """All words as they are written, compounds as one: ``don't``, ``e-mail``, ``node.js``."""
    return _WRITTEN.findall(text)


@memoized()
def words(text: str) -> tuple[str, ...]:
    """Content words in order, lower case, function words left out; pairs of characters in unspaced scripts."""
    plain = text
    for sign, instead in () if text.isascii() else _SIGNS:
        plain = plain.replace(sign, instead)
    if plain.isascii():  # finds the same, in a third of the time
        return tuple(filter(None, map(_word_of_token, ascii_tokens(plain))))
    composed = unicodedata.normalize("NFC", text)  # "é" is one letter, even if written as two characters
    return tuple(_words(_READING_AIDS.sub("", composed)))


def _words(text: str) -> list[str]:
    found: list[str] = []
    for token in _TOKEN.finditer(text):
        value = respelled(token.group().lower())
        if token.lastgroup == "unspaced":
            found.extend([value] if len(value) == 1 else [value[i : i + 2] for i in range(len(value) - 1)])
        elif token.lastgroup == "number" or (value not in NOISE and (len(value) > 1 or not value.isascii())):
            base = value.removesuffix("'s")
            found.extend([base] if base == value or base not in STOPWORDS["en"] else [])
    return found


@memoized()
def stems(text: str) -> tuple[str, ...]:
    """``words`` without the endings of their inflected forms."""
    return tuple(map(stem, words(text)))


def ascii_tokens(text: str) -> list[str]:
    """The words and numbers of an ASCII text, in lower case, function words included."""
    if _OTHER_NUMBER.search(text) or ("'" in text and _OTHER_APOSTROPHE.search(text)):
        return _ASCII_TOKEN.findall(text.lower())
    return text.encode().translate(_SPACED).decode().split()  # takes half the time, for most texts of a talk


def stems_of_tokens(tokens: list[str]) -> list[str]:
    """The stems of words from ``ascii_tokens``, without function words."""
    return list(filter(None, map(_stem_of_token, tokens)))


_RUSSIAN_ENDINGS: Final = tuple(ending for one in languages() for ending in one.terms.endings)
_MIN_RUSSIAN_STEM_LENGTH: Final = 3
_MIN_ENGLISH_STEM_LENGTH: Final = 3
_VOWELS: Final = frozenset("aeiouy")
_SHORT_STEM: Final = compiled(r"[^aeiouy]+[aeiouy][^aeiouywx]")


@word_memo
def stem(word: str) -> str:
    """Fold the most common endings of a lower-case English or Russian word; other words only get plain letters."""
    if is_russian(word):
        return _stem_russian(word)
    plain = in_plain_letters(word)
    return (
        _stem_english(plain) if plain.isascii() and len(plain) > _MIN_ENGLISH_STEM_LENGTH and plain.isalpha() else plain
    )


def is_russian(word: str) -> bool:
    """Whether a lower-case word is in Cyrillic letters whose endings are folded as Russian."""
    return "а" <= word[:1] <= "я"


def _content_of_token(token: str) -> str:
    # Finds the same as ``_words`` in an ASCII token, in a fifth of the time: thousands of words are new to a process.
    if token[0].isdigit():
        return token
    if token in NOISE or len(token) == 1:
        return ""
    base = token.removesuffix("'s")
    return "" if base != token and base in STOPWORDS["en"] else base


_word_of_token: Final = word_memo(_content_of_token)


@word_memo
def _stem_of_token(token: str) -> str:
    word = _content_of_token(token)
    return _stem_english(word) if len(word) > _MIN_ENGLISH_STEM_LENGTH and word.isalpha() else word


def _stem_russian(word: str) -> str:
    base = word[:-2] if word.endswith(("ся", "сь")) and len(word) > _MIN_RUSSIAN_STEM_LENGTH + 2 else word
    for ending in _RUSSIAN_ENDINGS:
        if base.endswith(ending) and len(base) - len(ending) >= _MIN_RUSSIAN_STEM_LENGTH:
            return base[: -len(ending)]
    return base


def _stem_english(word: str) -> str:
    # The last letter is looked at first: most words end in none of the letters that an ending could have.
    base = word
    if base[-1] == "s":
        if base.endswith("ies") and len(base) > 4:  # noqa: PLR2004 - "ties", "lies"
            base = base[:-3] + "y"
        elif base.endswith(("sses", "shes", "ches", "xes", "zes")):
            base = base[:-2]
        elif not base.endswith(("ss", "us", "is")):
            base = base[:-1]
    if base[-1] in "gd":
        base = _without_participle(base)
    if base[-1] == "y":
        if base.endswith("ly") and len(base) > 5:  # noqa: PLR2004 - "only", "reply"
            base = base[:-2]
        if base[-1] == "y" and len(base) > _MIN_ENGLISH_STEM_LENGTH:
            base = base[:-1] + "i"
    return (
        base[:-1]
        if base[-1] == "e" and len(base) > _MIN_ENGLISH_STEM_LENGTH and not _needs_final_e(base[:-1])
        else base
    )


def _without_participle(base: str) -> str:
    for ending in ("ing", "ed"):
        rest = base[: -len(ending)]
        if base.endswith(ending) and len(rest) >= _MIN_ENGLISH_STEM_LENGTH and _VOWELS & set(rest):
            return rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest + "e" * _needs_final_e(rest)
    return base


def _needs_final_e(base: str) -> bool:
    # "care" and "plane" would be other words without it: Porter's rule for short stems.
    return _SHORT_STEM.fullmatch(base) is not None


GENERIC_STEMS: Final[frozenset[str]] = frozenset(stem(word) for word in GENERIC)
"""Stems too common in talk to name a topic."""
FRAME_STEMS: Final[frozenset[str]] = frozenset(stem(word) for word in FRAME)
"""Stems of words by which a record reports speech: who said something, and that it was said."""

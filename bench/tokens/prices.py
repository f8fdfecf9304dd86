"""Makes the prices from the pages: fixed prices, fitted prices, and the module ``app.core.text.token_prices``."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from app.core.text.token_counts import class_of, counts
from bench.tokens.corpus import OTHER, Page
from bench.tokens.fitting import Row, Shrinkage, fit

FIXED: Final[Mapping[str, float]] = {
    "ascii": 0.0,
    "blank_digit": 1.0,
    "blanks": 1.0,
    "control": 1.0,
    "cyrillic_beyond": 0.6,
    "digit": 1.0,
    "line_breaks": 1.0,
    "rare_ideograph": 2.0,
    "skin": 1.0,
}
"""Prices that follow from the vocabulary: digits are never joined, runs of blanks and breaks are one token, and so on.

Two kinds are hardly in any text: rare ideographs (some have a token, the others are spelled out in bytes) and Cyrillic
runs longer than a word (measured on repeated letters and syllables).
"""

_WEIGHTS: Final[Mapping[str, float]] = {
    "English chat": 6,
    "English prose": 5,
    "markdown": 6,
    "JSON": 6,
    "code: of many languages": 4,
    "code: python": 3,
    "code: javascript": 2,
    "code: typescript": 2,
    "Russian": 4,
    "Chinese": 4,
    "Japanese": 3,
    "Arabic": 3,
    "emoji-rich chat": 3,
    "mixed": 3,
    "capitals": 1,
    OTHER: 1,
}
"""The weight of each kind; every other language has 1. Within a kind all sources have the same weight."""

_LITERARY: Final[Mapping[str, float]] = {"quran-json": 0.1, "sentences-bundle": 0.1}
"""Sources with less weight: people do not write to each other in scripture and quotations."""

_MIN_PAGES: Final = 40  # pages that must have a character for it to get a price of its own
_SHRINK_LETTER: Final = 3e-4
_SHRINK: Final = 1e-4
_STEP: Final = 0.1  # to which the letters' prices are rounded
_NOT_APART: Final = frozenset({"ascii", "digit", "control", "emoji", "flag", "skin", "fallback"})
_LINE: Final = 84  # columns of a string; wide characters take two


def fitted(pages: Sequence[Page]) -> tuple[dict[str, float], dict[str, float]]:
    """Prices of classes and runs, and of single letters, from the pages of the split ``fit`` only."""
    chosen = [page for page in pages if page.split == "fit"]
    apart = _letters(chosen)
    weights = _weights(chosen)
    by_class = fit(_rows(chosen, weights, ()), FIXED, Shrinkage(towards={}, strength={}, otherwise=_SHRINK))
    start = {**by_class, **{letter: by_class.get(class_of(letter), 0.0) for letter in apart}}
    drawn = Shrinkage(towards=start, strength=dict.fromkeys(apart, _SHRINK_LETTER), otherwise=_SHRINK)
    prices = fit(_rows(chosen, weights, apart), FIXED, drawn)
    letters = {letter: round(round(prices[letter] / _STEP) * _STEP, 1) for letter in sorted(apart)}
    # The other prices are fitted again, to make up for the rounding of the letters.
    others = {name: price for name, price in prices.items() if name not in apart}
    last = Shrinkage(towards=others, strength={}, otherwise=_SHRINK)
    prices = fit(_rows(chosen, weights, apart), {**FIXED, **letters}, last)
    return {name: round(price, 2) for name, price in sorted(prices.items()) if name not in apart}, letters


def _letters(pages: Iterable[Page]) -> frozenset[str]:
    standing = Counter(character for page in pages for character in set(page.text.lower()))
    return frozenset(
        letter for letter, count in standing.items() if count >= _MIN_PAGES and class_of(letter) not in _NOT_APART
    )


def _weights(pages: Sequence[Page]) -> list[float]:
    of_source = Counter((page.kind, page.source) for page in pages)
    sources = Counter(kind for kind, _ in of_source)
    return [
        _WEIGHTS.get(page.kind, 1)
        * _LITERARY.get(page.source, 1)
        / (sources[page.kind] * of_source[page.kind, page.source])
        for page in pages
    ]


def _rows(pages: Sequence[Page], weights: Sequence[float], apart: Iterable[str]) -> list[Row]:
    letters = frozenset(apart)
    return [
        (weight, {name: count / page.tokens for name, count in counts(page.text, letters).items()})
        for page, weight in zip(pages, weights, strict=True)
    ]


def as_module(prices: Mapping[str, float], letters: Mapping[str, float], names: Iterable[str]) -> str:
    """The source of ``token_prices.py``; a name that no page had gets the price of the nearest name."""
    everything = {**dict.fromkeys(names, 1.0), **prices}
    lines = [
        '"""What each kind of character and run costs in tokens, as printed by ``python -m bench.tokens fit``.',
        "",
        "Fitted, not chosen: change how they are fitted, and print them anew.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import Mapping",
        "from typing import Final",
        "",
        "PRICES: Final[Mapping[str, float]] = {",
        *(f'    "{name}": {price},' for name, price in sorted(everything.items())),
        "}",
        '"""Tokens per character of a class, per run of a kind (by its length), per character beyond the longest."""',
        "",
        "LETTERS: Final[Mapping[float, str]] = {",
    ]
    groups: dict[float, list[str]] = {}
    for letter, price in letters.items():
        groups.setdefault(round(price, 1), []).append(letter)
    for price, group in sorted(groups.items()):
        lines += [f"    {price}: (", *(f'        "{part}"' for part in _broken(group)), "    ),"]
    lines += ["}", '"""Letters and ideographs with a price of their own, by that price."""', ""]
    return "\n".join(lines)


def _broken(letters: Sequence[str]) -> Iterable[str]:
    line, width = "", 0
    for letter in letters:
        shown = letter if unicodedata.category(letter)[0] in "LPS" else f"\\u{ord(letter):04x}"
        shown = "\\" + shown if shown in {'"', "\\"} else shown
        size = len(shown) * (2 if unicodedata.east_asian_width(letter) in "WF" else 1)
        if width + size > _LINE:
            yield line
            line, width = "", 0
        line, width = line + shown, width + size
    yield line

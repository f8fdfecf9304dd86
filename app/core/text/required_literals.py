"""Finds strings of which a text must contain one for a pattern to match, so that the pattern is tried on few texts.

Every text that a pattern matches contains one of the pattern's *pieces*, if both are normalized. A pattern for which no
pieces are found is tried on every text. Syntax that ``re`` knows and this reader does not counts as "anything".
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain, product
from operator import or_
from typing import Final

from app.core.text.memo import FIGURE_GROWTH, memoized, with_same_digits, word_memo
from app.core.text.patterns import compiled

_GRAM: Final = 3  # how many characters of a piece are used to look it up
_NEXT: Final = 2  # how many characters of the next word are compared first
_Gram = tuple[str, str, str]
_MAX_SPELLINGS: Final = 64  # the most spellings of one stretch that are listed
_QUANTIFIER: Final = compiled(r"(?:(?P<least>[*+?])|\{(?P<from>\d*)(?:,\d*)?\})[?+]?")
_GROUP: Final = compiled(r"\?(?:(?P<around><?[=!])|(?P<inside>:|>|P<\w+>|[aimsux]*(?:-[imsx]+)?:))")
_CLASS: Final = compiled(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_PLAIN: Final = compiled(r"[^\\()\[|*+?.^${]++")
_CODE: Final = compiled(r"x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}")
_PLACES: Final = frozenset("bBAZ")
_KINDS: Final = frozenset("dDwWsSntrfva")


@dataclass(frozen=True, slots=True)
class _Matches:
    """What a stretch of a pattern matches: exactly these spellings, or any text that contains one of these pieces."""

    spellings: frozenset[str] | None = None
    pieces: frozenset[str] | None = None

    @property
    def needs(self) -> frozenset[str] | None:
        """Pieces of which a text must contain one; ``None``: nothing is required."""
        if self.spellings is None:
            return self.pieces
        return self.spellings if self.spellings and "" not in self.spellings else None


_ANYTHING: Final = _Matches()
_NOWHERE: Final = _Matches(spellings=frozenset({""}))


class _UnreadableError(ValueError):
    """Syntax of ``re`` that this reader does not know."""


def normalized(text: str) -> str:
    """A text with one spelling for all letters that ``re.IGNORECASE`` treats as equal, and for both apostrophes."""
    if text.isascii():
        return text.lower()
    return text.replace("İ", "i").replace("ı", "i").replace("’", "'").casefold()


def pieces(pattern: str) -> frozenset[str] | None:
    """Normalized pieces: every text that the pattern matches contains one of them. ``None``: nothing is known."""
    try:
        needed = _Reader(pattern).whole().needs
    except _UnreadableError:
        return None
    return None if needed is None else _without_longer_pieces(needed)


def alternatives(pattern: str) -> list[tuple[str, frozenset[str] | None]]:
    """The top-level alternatives of a pattern, each with its pieces. The pattern matches where one of them does."""
    try:
        found = _Reader(pattern).branches()
    except _UnreadableError:
        return [(pattern, None)]
    return [(part, None if fits.needs is None else _without_longer_pieces(fits.needs)) for part, fits in found]


_Pieces = Sequence[tuple[str, int]]
"""Pieces, each with the bits of the patterns that need it."""
_Begun = Mapping[str, _Pieces]
"""Pieces that begin in one word, by the first characters of the next word."""
_NONE_BEGUN: Final[_Begun] = {}


class PatternIndex:
    """Finds which of many patterns may match a text, by looking up their pieces word by word.

    A piece without a space is within one word. For a piece with spaces, the first word is looked up, then the text.
    All digits are taken alike, so that words with numbers recur.
    """

    def __init__(self) -> None:
        self._count = 0
        self._always = 0
        self._bits: defaultdict[str, int] = defaultdict(int)

    def add(self, pattern: str) -> int:
        """Add a pattern, and return its bit."""
        return self.add_needing(pieces(pattern))

    def add_needing(self, needed: frozenset[str] | None) -> int:
        """Add a pattern whose pieces are known, and return its bit."""
        for seen in (
            "may_match_text",
            "_matches_in_word",
            "_blank_pieces",
            "_short_keys",
            "_grams",
            "_keys_by_rarest_gram",
            "_by_key",
        ):
            self.__dict__.pop(seen, None)
        bit = 1 << self._count
        self._count += 1
        for piece in needed or ():
            self._bits[with_same_digits(piece)] |= bit
        self._always |= bit if needed is None else 0
        return bit

    def may_match(self, text: str) -> int:
        """The bits of the patterns that may match a normalized text."""
        found = self._always
        text = with_same_digits(text)
        words = text.split()
        for number, (whole, begun) in enumerate(map(self._matches_in_word, words), 1):
            if whole:
                found |= whole
            if begun:
                following = words[number][:_NEXT] if number < len(words) else ""
                for piece, bits in begun.get(following, ()):
                    if piece in text:
                        found |= bits
        for piece, bits in self._blank_pieces:
            if piece in text:
                found |= bits
        return found

    @cached_property
    def may_match_text(self) -> Callable[[str], int]:
        """``may_match`` for a text that is not normalized yet. Results are remembered."""
        return memoized(FIGURE_GROWTH)(lambda text: self.may_match(normalized(text)))

    @cached_property
    def _matches_in_word(self) -> Callable[[str], tuple[int, _Begun]]:
        return word_memo(self._look_up)

    def _look_up(self, word: str) -> tuple[int, _Begun]:
        between = f" {word} "
        keys = [key for key in self._short_keys[word.isascii()] if key in between]
        for gram in self._grams.intersection(zip(between, between[1:], between[2:], strict=False)):
            keys += [key for key in self._keys_by_rarest_gram[gram] if key in between]
        begun: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for following, pieces_begun in chain.from_iterable(self._by_key[key][1].items() for key in keys):
            begun[following] += pieces_begun
        return reduce(or_, (self._by_key[key][0] for key in keys), 0), begun or _NONE_BEGUN

    @cached_property
    def _blank_pieces(self) -> _Pieces:
        return [(piece, bits) for piece, bits in self._bits.items() if not piece.split()]

    @cached_property
    def _by_key(self) -> Mapping[str, tuple[int, _Begun]]:
        """The other pieces by their part in the first word, with the spaces around it.

        For each such part: the bits of pieces that it completes, and the pieces that only begin with it.
        """
        found: dict[str, tuple[int, defaultdict[str, list[tuple[str, int]]]]] = {}
        for piece, bits in self._bits.items():
            if not piece.split():
                continue
            first, *others = piece.split()
            behind = piece.partition(first)[2]
            key = f"{' ' * piece[0].isspace()}{first}{' ' * bool(behind)}"
            whole, begun = found.get(key, (0, defaultdict(list)))
            following = others[0][:_NEXT] if others else ""
            if len(following) < _NEXT and not others[1:] and piece.endswith(following):
                whole |= bits  # nothing follows, or only one character, with which any word may begin
            else:
                begun[following].append((piece, bits))
            found[key] = whole, begun
        return found

    @cached_property
    def _short_keys(self) -> tuple[list[str], list[str]]:
        short = [key for key in self._by_key if len(key) < _GRAM]
        return short, [key for key in short if key.isascii()]

    @cached_property
    def _grams(self) -> frozenset[_Gram]:
        return frozenset(self._keys_by_rarest_gram)

    @cached_property
    def _keys_by_rarest_gram(self) -> Mapping[_Gram, Sequence[str]]:
        count = Counter(gram for key in self._by_key for gram in _grams(key))
        found: defaultdict[_Gram, list[str]] = defaultdict(list)
        for key in self._by_key:
            if len(key) >= _GRAM:
                found[min(_grams(key), key=lambda gram: (count[gram], gram))].append(key)
        return found


def _grams(text: str) -> set[_Gram]:
    return set(zip(text, text[1:], text[2:], strict=False))


class _Reader:
    """Reads a pattern that ``re`` has accepted, once, from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def whole(self) -> _Matches:
        found = self._either()
        if self._at < len(self._pattern):
            raise _UnreadableError(self._pattern)
        return found

    def branches(self) -> list[tuple[str, _Matches]]:
        """The alternatives of the whole pattern, with what each matches."""
        found: list[tuple[str, _Matches]] = []
        start = 0
        while True:
            fits = self._sequence()
            found.append((self._pattern[start : self._at], fits))
            if self._next() != "|":
                return found
            self._at += 1
            start = self._at

    def _next(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _either(self) -> _Matches:
        branches = [self._sequence()]
        while self._next() == "|":
            self._at += 1
            branches.append(self._sequence())
        return _any_of(branches)

    def _sequence(self) -> _Matches:
        parts: list[_Matches] = []
        while self._next() not in {"", "|", ")"}:
            parts.append(self._repeated(self._atom()))
        return _in_turn(parts)

    def _repeated(self, one: _Matches) -> _Matches:
        found = _QUANTIFIER.match(self._pattern, self._at)
        if found is None:
            return one
        self._at = found.end()
        if found["least"] == "?":
            return _any_of([one, _NOWHERE])
        is_sure = found["least"] == "+" or int(found["from"] or 0) > 0
        return _Matches(pieces=one.needs) if is_sure else _ANYTHING

    def _atom(self) -> _Matches:
        plain = _PLAIN.match(self._pattern, self._at)
        if plain is not None:
            return self._spelled(plain.end())
        sign = self._next()
        if sign == "(":
            return self._group()
        if sign == "[":
            return self._class()
        self._at += 1
        if sign == "\\":
            return self._escaped()
        if sign in "^$":
            return _NOWHERE
        return _ANYTHING if sign == "." else _Matches(spellings=frozenset({normalized(sign)}))

    def _spelled(self, end: int) -> _Matches:
        """A run of plain characters, without its last one if only that is repeated."""
        start = self._at
        if end - start > 1 and _QUANTIFIER.match(self._pattern, end):
            end -= 1
        self._at = end
        return _Matches(spellings=frozenset({normalized(self._pattern[start:end])}))

    def _group(self) -> _Matches:
        self._at += 1
        around = None
        if self._next() == "?":
            kind = _GROUP.match(self._pattern, self._at)
            if kind is None:
                raise _UnreadableError(self._pattern)
            around = kind["around"]
            self._at = kind.end()
        inside = self._either()
        self._at += 1
        if around == "=":  # what must follow is in the text, but nothing of it is passed
            return _Matches(pieces=inside.needs)
        return _NOWHERE if around else inside

    def _class(self) -> _Matches:
        found = _CLASS.match(self._pattern, self._at)
        if found is None:
            raise _UnreadableError(self._pattern)
        self._at = found.end()
        signs = found.group()[1:-1]
        if len(signs) > len("abcd") or signs[:1] == "^" or set(signs) & set("\\-"):
            return _ANYTHING
        return _Matches(spellings=frozenset(normalized(sign) for sign in signs))

    def _escaped(self) -> _Matches:
        sign = self._next()
        self._at += 1
        if sign in _PLACES:
            return _NOWHERE
        if sign in _KINDS:
            return _ANYTHING
        if sign.isalnum():
            code = _CODE.match(self._pattern, self._at - 1)
            if code is None:
                raise _UnreadableError(self._pattern)
            self._at = code.end()
            return _ANYTHING
        return _Matches(spellings=frozenset({normalized(sign)}))


def _any_of(branches: Sequence[_Matches]) -> _Matches:
    if all(branch.spellings is not None for branch in branches):
        spellings = frozenset[str]().union(*(branch.spellings or () for branch in branches))
        if len(spellings) <= _MAX_SPELLINGS:
            return _Matches(spellings=spellings)
    needs = [branch.needs for branch in branches]
    if any(need is None for need in needs):
        return _ANYTHING
    return _Matches(pieces=frozenset[str]().union(*(need or () for need in needs)))


def _in_turn(parts: Iterable[_Matches]) -> _Matches:
    """What consecutive parts match: parts of known spelling are joined, and the most selective pieces are required."""
    spellings, is_whole = frozenset({""}), True
    needs: list[frozenset[str]] = []
    for part in parts:
        if part.spellings is not None and len(spellings) * len(part.spellings) <= _MAX_SPELLINGS:
            spellings = frozenset(map("".join, product(spellings, part.spellings)))
            continue
        is_whole = False
        needs += [need for need in (_Matches(spellings=spellings).needs, part.needs) if need]
        spellings = part.spellings or frozenset({""})
    if is_whole:
        return _Matches(spellings=spellings)
    needs += [need for need in (_Matches(spellings=spellings).needs,) if need]
    return _Matches(pieces=max(needs, key=_selectivity) if needs else None)


def _without_longer_pieces(needed: frozenset[str]) -> frozenset[str]:
    kept: list[str] = []
    for piece in sorted(needed, key=lambda piece: (len(piece), piece)):
        if not any(other in piece for other in kept):
            kept.append(piece)
    return frozenset(kept)


def _selectivity(need: frozenset[str]) -> tuple[int, int]:
    return min(len(piece) for piece in need), -len(need)

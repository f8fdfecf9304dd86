"""A table's patterns, each tried only on texts that contain what it needs: most sentences have nothing of an anchor."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from app.core.text.factors import alternatives, fold, pieces
from app.core.text.patterns import capped

_GRAM: Final = 3  # signs by which pieces are looked up
LONGEST: Final = 400
"""Characters of a text that patterns of a table see, which is as long as a statement may be."""

_NOTHING: Final = capped(r"(?!)", LONGEST)

_Gram = tuple[str, str, str]


class Folded:
    """A text as pieces are looked for in it; what a table found stays with it."""

    __slots__ = ("_opened", "text")

    def __init__(self, text: str) -> None:
        self.text = fold(text)
        self._opened: dict[int, int] = {}

    def opened(self, cues: Cues) -> int:
        """The numbers, as bits, of the table's patterns that may fit; found out once."""
        known = self._opened.get(id(cues))
        if known is None:
            known = self._opened[id(cues)] = cues.open(self.text)
        return known


class Cue:
    """Patterns of which one is enough, without regard to case."""

    __slots__ = ("_needed", "_parts", "mask", "pattern")

    def __init__(self, parts: Sequence[tuple[int, str]]) -> None:
        self._parts: Final = tuple((1 << number, capped(part, LONGEST, re.IGNORECASE)) for number, part in parts)
        self.mask: Final = sum(bit for bit, _ in self._parts)
        joined = "|".join(f"(?:{part})" for _, part in parts)
        self.pattern: Final = capped(joined, LONGEST, re.IGNORECASE) if parts else _NOTHING
        needed = [pieces(part) for _, part in parts]
        self._needed: Final = None if None in needed else frozenset[str]().union(*(need or () for need in needed))

    def fits(self, texts: Iterable[str], opened: int) -> bool:
        """Whether one of these texts has it.

        Args:
            texts: Parts of one text.
            opened: What ``Folded.opened`` says of that text.
        """
        if not self.mask & opened:
            return False
        tried = [pattern for bit, pattern in self._parts if bit & opened]
        return any(pattern.search(text) for text in texts for pattern in tried)

    def all_in(self, text: str) -> Iterator[re.Match[str]]:
        """Where it stands in a text of which nothing is looked up yet."""
        if self._needed is not None:
            folded = fold(text)
            if not any(piece in folded for piece in self._needed):
                return iter(())
        return self.pattern.finditer(text)


class Cues:
    """All the cues of one table, numbered as they come, and which pieces each of their patterns needs."""

    def __init__(self) -> None:
        self._count = 0
        self._always = 0
        self._bits: defaultdict[str, int] = defaultdict(int)

    def cue(self, patterns: Iterable[str]) -> Cue:
        """Take one in; none any more once texts are looked at."""
        parts: list[tuple[int, str]] = []
        for part in (part for pattern in patterns if pattern for part in alternatives(pattern)):
            parts.append((self._count, part))
            needed, bit = pieces(part), 1 << self._count
            for piece in needed or ():
                self._bits[piece] |= bit
            self._always |= bit if needed is None else 0
            self._count += 1
        return Cue(parts)

    def open(self, folded: str) -> int:
        """The numbers, as bits, of the patterns that may fit a folded text."""
        found = self._always
        for piece, bits in self._short:
            if piece in folded:
                found |= bits
        grams = zip(folded, folded[1:], folded[2:], strict=False)
        for known in filter(None, map(self._by_gram.get, grams)):
            for piece, bits in known:
                if piece in folded:
                    found |= bits
        return found

    @cached_property
    def _short(self) -> list[tuple[str, int]]:
        return [(piece, bits) for piece, bits in self._bits.items() if len(piece) < _GRAM]

    @cached_property
    def _by_gram(self) -> Mapping[_Gram, Sequence[tuple[str, int]]]:
        """Each piece under that three signs in a row of it which the fewest others have."""
        count = Counter(gram for piece in self._bits for gram in _grams(piece))
        found: defaultdict[_Gram, list[tuple[str, int]]] = defaultdict(list)
        for piece, bits in self._bits.items():
            if len(piece) >= _GRAM:
                found[min(_grams(piece), key=lambda gram: (count[gram], gram))].append((piece, bits))
        return found


def _grams(text: str) -> set[_Gram]:
    return set(zip(text, text[1:], text[2:], strict=False))

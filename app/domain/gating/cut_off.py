"""Whether a text stops before its end: signals, each with a weight, and what they add up to.

No signal knows a language: what ends nothing stands in tables, where sentences end is a matter of marks, and the rest
is told by what a text stands beside. A text that ends where an original ends, in its words, was not cut there.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from app.domain.gating.originals import Originals
from app.domain.words.language_tables import words_of
from app.domain.words.patterns import capped, compiled
from app.domain.words.text import stem
from app.domain.words.vocabulary import STOPWORDS

SURE: Final = 5
"""What the signals add up to where nothing honest looks like it, without a full stop too: it is refused."""
LIKELY: Final = 2
"""Enough to have another look at an entry, of which many are phrases."""
DOUBTFUL: Final = 1
"""Enough to have another look at a story, which ends like a sentence as a rule."""

_LONG: Final = 60  # characters; a shorter text may be a phrase, which needs no end and may close with "for" or "it"
_SHORT: Final = 30  # characters; of a shorter one the part before a full stop may be an abbreviation
_FEWEST_WORDS: Final = 3
_FEWEST_SIGNS: Final = 6  # of a script without blanks
_OTHERS: Final = 3  # texts beside it, of which nearly all have their ends
_NEARLY_ALL: Final = 0.9
_STRETCH: Final = 4  # words as an original has them
_CONTEXT: Final = 2  # words as an original has them before one that is cut

_FORM: Final = 3  # words of context more, where it may be another form of a word
_LOOKED_AT: Final = 1_000  # characters of an end
_CLOSED: Final = compiled(r"[.!?…。！？｡؟।۔][\"'»”’)\]}`*」』）]*\s*\Z")
_WORD_LAST: Final = compiled(r"[\w%€$₽£¥°]\s*\Z")
_HANGS: Final = compiled(r"[,，、(\[{«“（「—–-]\s*\Z")
_INTRODUCES: Final = compiled(r"[;:；：]\s*\Z")
_SENTENCE: Final = compiled(r"[^\W\d_]{5}[.!?…][\"'»”’)\]]{0,3}\s+[\"'«„“(\[]{0,3}[^\W\d_a-zа-яё]|[。！？]\s*\S")
"""Where a sentence ends and another begins: a story that has such a place ends its last sentence too.

A word of five letters: shorter ones may be titles and abbreviations (``Prof.``).
"""
_ITEM: Final = compiled(r"\s*(?:[-*+•–—#|>]|\d{1,3}[.)])\s")
_LAST_WORD: Final = compiled(r"(?<!\S)[\"'«„“(\[]*([^\W\d_]+(?:[-'’][^\W\d_]+)*)\s*\Z")
"""As it stands between spaces: ``sign-in`` and ``requirements.in`` end in no preposition."""
_FENCE: Final = compiled(r"^[^\S\n]*+(?:```|~~~)", re.MULTILINE)
_PAIRS: Final = ("()", "[]", "«»", "“”", "「」", "『』", "（）", "《》", "【】")
_NO_BRACKET: Final = capped(r"[:;=8xX]['-]?[()\[\]]+|(?<=\d)\"|^\W{0,4}\w{1,3}\)|„[^„“”]*+[“”]", _LOOKED_AT)
"""Smileys, inches, the letter of a list's item, and quotes that close with what opens others."""
_SIGNS: Final = compiled(r"[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What a text can be compared with; all of it may be unknown."""

    originals: Originals = field(default_factory=Originals)
    others_end: bool = False
    """Whether nearly all texts of the same making have their ends: the other entries of its field, of a story all."""
    before: str = ""
    """What stood in its place in the version before."""


@dataclass(frozen=True)
class _Ending:
    """A text's end, and what is told of it."""

    text: str
    is_story: bool
    beside: Beside

    @cached_property
    def last(self) -> str:
        """As much of its end as is looked at."""
        return self.text.rstrip()[-_LOOKED_AT:]

    @cached_property
    def last_line(self) -> str:
        return self.last.rpartition("\n")[2]

    @cached_property
    def words(self) -> int:
        return len(self.text.split()) + len(_SIGNS.findall(self.text)) * _FEWEST_WORDS // _FEWEST_SIGNS

    @cached_property
    def is_open(self) -> bool:
        """A sentence begun and not ended; an item of a story's list is a phrase."""
        is_item = self.is_story and _ITEM.match(self.last_line) is not None
        return not is_item and self.words >= _FEWEST_WORDS and not _CLOSED.search(self.last)

    @cached_property
    def is_long(self) -> bool:
        return len(self.text) >= _LONG

    @cached_property
    def last_word(self) -> str:
        found = _LAST_WORD.search(self.last)
        return found[1].casefold() if found else ""

    @cached_property
    def ends_like_an_original(self) -> bool:
        return self.is_open and self.beside.originals.after(self.last).ends


def weigh(text: str, *, is_story: bool, beside: Beside | None = None) -> int:
    """How likely it is that a text was cut off: nothing, ``DOUBTFUL``, ``LIKELY``, ``SURE`` or more.

    Args:
        text: A story, or an entry of a list: entries may be phrases, only a story has to end like a sentence.
        is_story: Which of the two it is.
        beside: What it is compared with.
    """
    ending = _Ending(text, is_story, beside or Beside())
    if _breaks_off(ending):
        return SURE
    found = [signal for signal in _SIGNALS if signal.holds(ending)]
    if found and ending.ends_like_an_original:
        found = [signal for signal in found if is_story and not signal.excused]
    return sum(signal.story if is_story else signal.entry for signal in found)


def _breaks_off(ending: _Ending) -> bool:
    """A block that never closes, or JSON that breaks off."""
    return bool(len(_FENCE.findall(ending.text)) % 2) or _is_broken_json(ending.text)


def _hangs(ending: _Ending) -> bool:
    if ending.words < _FEWEST_WORDS:
        return False
    return _HANGS.search(ending.last) is not None or (ending.is_story and _INTRODUCES.search(ending.last) is not None)


def _needs_more(ending: _Ending) -> bool:
    """It ends in a word after which something has to come, in whatever language."""
    return ending.words >= _FEWEST_WORDS and ending.last_word in _NEVER_LAST


def _ends_in_grammar(ending: _Ending) -> bool:
    """It ends in a word that carries no content; a phrase may, what it is *for*."""
    return ending.is_long and ending.last_word in _FUNCTION_WORDS


def _is_unclosed(ending: _Ending) -> bool:
    """A quote or a bracket is open in its last line."""
    if not ending.is_open:
        return False
    line = _NO_BRACKET.sub("", ending.last_line)
    return line.count('"') % 2 == 1 or any(line.count(opens) > line.count(closes) for opens, closes in _PAIRS)


def _only_others_end(ending: _Ending) -> bool:
    """The sentences before have their ends, and the last has none."""
    is_told = len(ending.text) >= _SHORT or _SIGNS.search(ending.text) is not None
    ends_in_word = _WORD_LAST.search(ending.last) is not None
    return is_told and ending.is_open and ends_in_word and _SENTENCE.search(ending.text) is not None


def _only_texts_beside_end(ending: _Ending) -> bool:
    return ending.is_open and ending.beside.others_end


def _had_an_end_before(ending: _Ending) -> bool:
    return ending.is_open and _CLOSED.search(ending.beside.before[-_LOOKED_AT:]) is not None


def _goes_on(ending: _Ending) -> bool:
    """An original says the same words, and goes on there."""
    return ending.is_open and ending.beside.originals.after(ending.last).goes_on >= _STRETCH


def _is_within_a_word(ending: _Ending) -> bool:
    """An original says the same words, and the last is a longer one there."""
    return _context(ending) >= _CONTEXT


def _is_surely_within_a_word(ending: _Ending) -> bool:
    return _context(ending) > _CONTEXT


def _context(ending: _Ending) -> int:
    """How many words before one that is cut stand so in an original; of another form of a word it takes more."""
    if not ending.is_open:
        return 0
    found = ending.beside.originals.after(ending.last)
    is_form = found.is_known or stem(ending.last_word) == stem(found.whole)
    return found.inside - _FORM if is_form else found.inside


@dataclass(frozen=True, slots=True)
class _Signal:
    holds: Callable[[_Ending], bool]
    story: int
    entry: int
    excused: bool = True
    """Whether a story that ends as an original does is excused; an entry always is."""


_SIGNALS: Final = (
    _Signal(_hangs, story=SURE, entry=LIKELY, excused=False),
    _Signal(_needs_more, story=SURE, entry=LIKELY, excused=False),
    _Signal(_ends_in_grammar, story=DOUBTFUL, entry=DOUBTFUL),
    _Signal(_is_unclosed, story=LIKELY, entry=LIKELY),
    _Signal(_only_others_end, story=LIKELY, entry=DOUBTFUL, excused=False),
    _Signal(_only_texts_beside_end, story=DOUBTFUL, entry=DOUBTFUL),
    _Signal(_had_an_end_before, story=DOUBTFUL, entry=0),
    _Signal(_goes_on, story=DOUBTFUL, entry=DOUBTFUL),
    _Signal(_is_within_a_word, story=LIKELY, entry=LIKELY),
    _Signal(_is_surely_within_a_word, story=SURE - LIKELY, entry=SURE - LIKELY),
)


def _is_broken_json(text: str) -> bool:
    if not text.lstrip().startswith(("{", "[{", '["')):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return True
    return False


def beside_of(
    texts: Iterable[tuple[str, str, bool]], originals: Originals, before: Mapping[str, str] | None = None
) -> Callable[[str, str], Beside]:
    """What each text of a state stands beside.

    Args:
        texts: (field, text, whether it is a story) of all of them.
        originals: What the state is about.
        before: The stories of an earlier version, by field.
    """
    given = list(texts)
    entries = Counter(name for name, _, is_story in given if not is_story)
    closed = Counter(name for name, text, is_story in given if not is_story and _CLOSED.search(text[-_LOOKED_AT:]))
    earlier = before or {}

    def of(name: str, text: str) -> Beside:
        is_entry = name in entries
        count = entries[name] - 1 if is_entry else entries.total()
        ends = closed[name] if is_entry else closed.total()
        return Beside(
            originals=originals,
            others_end=count >= _OTHERS and ends >= _NEARLY_ALL * count,
            before="" if earlier.get(name) == text else earlier.get(name, ""),
        )

    return of


_FUNCTION_WORDS: Final = frozenset().union(*STOPWORDS.values()) | words_of("ending", "never")
_NEVER_LAST: Final = words_of("ending", "never")
"""Without those that end a phrase as well, in whatever language: what it is *for*, option *a*, "fängt *an*"."""

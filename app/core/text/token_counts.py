"""Estimates how many tokens a text costs, by its scripts: in linear time, without a vocabulary.

A text is counted twice: its characters (by class; letters and ideographs that many texts have, one by one) and its runs
(words by length, punctuation, spaces, line breaks). Each has a price; the estimate is the sum. The prices in
``token_prices`` are fitted against the Gemma 3 vocabulary that Gemini 2 and later share, and ``docs/tokens.md`` says
how far off they are. Since everything has its own price, the estimate of two texts joined is the sum of their estimates
but for the price of a run that the seam cuts in two.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_lowercase
from typing import Final, Literal

from app.core.text.contents import decoded_bytes
from app.core.text.memo import FIGURE_GROWTH, MAX_WORD_LENGTH, memoized, with_same_digits, word_memo
from app.core.text.parts import Part, as_short_text, compact_json, is_repeated_text, own_content
from app.core.text.patterns import compiled
from app.core.text.token_prices import LETTERS, PRICES

Estimator = Literal["script", "bytes"]

MESSAGE_OVERHEAD: Final = 4
"""Tokens around every message: the marker that opens a turn, its role, a line break, the marker that closes it."""

BYTES_PER_TOKEN: Final = 4
"""The plain rule of thumb behind the estimator ``bytes``."""

UNITS: Final[Mapping[Estimator, int]] = {"script": 1, "bytes": BYTES_PER_TOKEN}
"""How many of the units that an estimator adds up (tokens, or bytes) make a token."""

_MAX_CHARACTERS_PER_TOKEN: Final = (
    7  # characters per token in a sentence: few sentences have more, and none that holds a value
)
IMAGE_TOKENS: Final = 1_120
"""The tokens of an image for Gemini 3 by default; Gemini 2.5 takes 258 for each tile of it."""
PAGE_TOKENS: Final = 560
"""The tokens of a page of a PDF for Gemini 3 by default; Gemini 2.5 takes 258."""
UNKNOWN_PAGE_BYTES: Final = 50_000
"""This many bytes of a PDF count as a page if its pages cannot be counted."""
_AUDIO_TOKENS: Final = 32 * 60  # 32 a second, for a clip whose length is unknown and taken as a minute
_VIDEO_TOKENS: Final = (258 + 32) * 60  # one frame and its sound a second, for a clip taken as a minute
_MEDIA_TOKENS: Final[Mapping[str, int]] = {"image": IMAGE_TOKENS, "audio": _AUDIO_TOKENS, "video": _VIDEO_TOKENS}

_LETTER_PRICES: Final = {letter: price for price, letters in LETTERS.items() for letter in letters}

ALL_PRICES: Final[Mapping[str, float]] = {**PRICES, **_LETTER_PRICES}
"""The prices by the names that ``counts`` gives; a single letter is its own name."""

_HUNDREDTHS: Final = {name: round(100 * price) for name, price in ALL_PRICES.items()}
"""Prices have two decimal places; as whole numbers they add up exactly for a text that is counted in pieces."""

_CLASSES: Final[tuple[tuple[int, str], ...]] = (
    (0x0000, "control"),
    (0x0009, "ascii"),
    (0x000B, "control"),
    (0x0020, "ascii"),
    (0x0030, "digit"),
    (0x003A, "ascii"),
    (0x0061, "latin"),
    (0x007B, "ascii"),
    (0x007F, "control"),
    (0x0080, "other"),
    (0x00A0, "sign"),
    (0x00C0, "latin_1"),
    (0x0100, "latin_extended"),
    (0x0250, "other"),
    (0x0370, "greek"),
    (0x0400, "cyrillic"),
    (0x0452, "cyrillic_rare"),
    (0x0530, "armenian"),
    (0x0590, "hebrew"),
    (0x0600, "arabic_sign"),
    (0x0620, "arabic"),
    (0x064B, "arabic_mark"),
    (0x0660, "arabic"),
    (0x0700, "other"),
    (0x0900, "devanagari"),
    (0x0980, "indic"),
    (0x0E00, "thai"),
    (0x0E80, "other"),
    (0x10A0, "georgian"),
    (0x1100, "hangul"),
    (0x1200, "ethiopic"),
    (0x1400, "other"),
    (0x1E00, "latin_stacked"),
    (0x1F00, "greek"),
    (0x2000, "sign"),
    (0x200D, "joiner"),
    (0x200E, "sign"),
    (0x2500, "box"),
    (0x2580, "sign"),
    (0x2600, "emoji"),
    (0x27C0, "sign"),
    (0x2C00, "other"),
    (0x3000, "cjk_sign"),
    (0x3040, "hiragana"),
    (0x30A0, "katakana"),
    (0x3100, "other"),
    (0x3130, "hangul"),
    (0x3190, "other"),
    (0x3400, "rare_ideograph"),
    (0x4E00, "ideograph"),
    (0xA000, "other"),
    (0xAC00, "hangul"),
    (0xD7B0, "fallback"),
    (0xF900, "ideograph"),
    (0xFB00, "hebrew"),
    (0xFB50, "arabic"),
    (0xFE00, "joiner"),
    (0xFE10, "other"),
    (0xFE70, "arabic"),
    (0xFF00, "cjk_sign"),
    (0xFFF0, "other"),
    (0x10000, "fallback"),
    (0x1F000, "emoji"),
    (0x1F1E6, "flag"),
    (0x1F200, "emoji"),
    (0x1F3FB, "skin"),
    (0x1F400, "emoji"),
    (0x1FB00, "fallback"),
    (0x20000, "rare_ideograph"),
    (0x40000, "fallback"),
)
"""The first code point of each class."""

_STARTS: Final = tuple(start for start, _ in _CLASSES)


@dataclass(frozen=True, slots=True)
class _Run:
    """A kind of run. It has one name per range of lengths, and one for each character beyond the last range."""

    name: str
    pattern: re.Pattern[str]
    needs: frozenset[str]
    """The classes of its characters: a text without any of them has no such run."""
    lengths: tuple[int, ...] = ()
    has_tail: bool = False
    begins: tuple[str, ...] = ("",)
    """A text has such a run only if it contains one of these."""

    def names(self) -> tuple[str, ...]:
        bounds = tuple(f"{self.name}_{bound}" for bound in self.lengths) or (self.name,)
        return (*bounds, f"{self.name}_beyond") if self.has_tail else bounds

    def count(self, text: str, into: dict[str, int]) -> None:
        found = self.pattern.findall(text) if any(begin in text for begin in self.begins) else []
        if not found:
            return
        if not self.lengths:
            into[self.name] = into.get(self.name, 0) + len(found)
            return
        for length, count in Counter(map(len, found)).items():
            over = length - self.lengths[-1]
            name = f"{self.name}_{self.lengths[bisect_left(self.lengths, length)] if over < 0 else self.lengths[-1]}"
            into[name] = into.get(name, 0) + count
            if over > 0 and self.has_tail:
                beyond = f"{self.name}_beyond"
                into[beyond] = into.get(beyond, 0) + count * over


_ACCENTED: Final = "\u00c0-\u024f\u1e00-\u1eff"
_LOWER: Final = f"a-z{_ACCENTED}"
_PUNCTUATION: Final = r"!-/:-@\[-`{-~"

_LATIN: Final = frozenset({"latin", "latin_1", "latin_extended", "latin_stacked"})
_CYRILLIC: Final = frozenset({"cyrillic", "cyrillic_rare"})
_EMOJI: Final = frozenset({"emoji", "flag", "skin"})
_EAST_ASIAN: Final = frozenset({"cjk_sign", "hiragana", "katakana", "rare_ideograph", "ideograph"})

_LINE_BREAKS: Final = _Run("line_breaks", compiled(r"\n{1,31}"), frozenset({"ascii"}), begins=("\n",))

_WORD: Final = _Run(
    "word",
    compiled(f"[A-Z]?[{_LOWER}]+|[A-Z]+(?![{_LOWER}])"),  # each part of a camelCase name is a word of its own
    _LATIN,
    (2, 3, 5, 8),
    has_tail=True,
)
_RUNS: Final = (
    _WORD,
    _Run("capitals", compiled("[A-Z\u00c0-\u00de]{2,}"), _LATIN, (2,), has_tail=True),
    _Run("punctuation", compiled(f"[{_PUNCTUATION}]+"), frozenset({"ascii"}), (1, 2, 3, 4), has_tail=True),
    _LINE_BREAKS,
    _Run("blanks", compiled(r" {2,31}|\t{1,31}"), frozenset({"ascii"}), begins=("  ", "\t")),
    _Run("blank_digit", compiled(" (?=[0-9])"), frozenset({"digit"})),
    _Run("blank_emoji", compiled(" (?=[\u2600-\u27bf\U0001f000-\U0001faff])"), _EMOJI),
    _Run("blank_ideograph", compiled(" (?=[\u3000-\u9fff])"), _EAST_ASIAN),
    _Run("cyrillic", compiled("[\u0400-\u052f]+"), _CYRILLIC, (2, 4, 8, 16), has_tail=True),
    _Run("cyrillic_capitals", compiled("[\u0400-\u042f]{2,}"), _CYRILLIC, (2,), has_tail=True),
    _Run("boxes", compiled("[\u2500-\u257f]+"), frozenset({"box"})),
    _Run("greek", compiled("[\u0370-\u03ff\u1f00-\u1fff]+"), frozenset({"greek"})),
    _Run("armenian", compiled("[\u0530-\u058f]+"), frozenset({"armenian"})),
    _Run("georgian", compiled("[\u10a0-\u10ff]+"), frozenset({"georgian"})),
    _Run("hebrew", compiled("[\u0590-\u05ff]+"), frozenset({"hebrew"})),
    _Run("devanagari", compiled("[\u0900-\u097f]+"), frozenset({"devanagari"})),
    _Run("indic", compiled("[\u0980-\u0dff]+"), frozenset({"indic"})),
    _Run("thai", compiled("[\u0e00-\u0e7f]+"), frozenset({"thai"})),
    _Run("hiragana", compiled("[\u3041-\u309f]+"), frozenset({"hiragana"})),
    _Run("hangul", compiled("[\uac00-\ud7af]+"), frozenset({"hangul"})),
)

PRICE_NAMES: Final = frozenset({name for _, name in _CLASSES} | {name for run in _RUNS for name in run.names()})
"""The names of everything that has a price, except single letters."""

_NOT_SUM_OF_WORDS: Final = compiled("[\u0181-\u0245\u10a0-\u10cd\u3100-\u33ff]")
"""Characters whose text is not the sum of its words: a run of them is counted only if the text has one of the classes
that the run ``needs``, to which they, or their small letters, do not belong."""

# Each of these tags is one token in the vocabulary. So is a control character, which replaces the tag for counting.
_TAG: Final = compiled(
    r"</?(?:table|caption|thead|tbody|tfoot|tr|th|td|h[1-6]|blockquote|strong|em|b|i|u|s|sub|sup|code|a|html|body|img|"
    r"span|ul|li|div|iframe|footer)>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """What a message weighs: ``tokens`` by the script estimator with its overhead, ``bytes`` in UTF-8."""

    tokens: int
    bytes: int


FREE_BYTES_OF_FURTHER_KEYS: Final = 2_000
"""Bytes of a message's further keys in parts that count nothing; see ``weigh``."""
_COUNTED_KEYS: Final[Mapping[str, frozenset[str]]] = {
    "text": frozenset({"type", "text"}),
    "tool_call": frozenset({"type", "id", "name", "arguments"}),
    "tool_result": frozenset({"type", "id", "tool_call_id", "name", "content"}),
    "media": frozenset({"type", "media_type", "url", "data", "tokens"}),
}
"""The keys of each kind of part that are not further keys: they are counted in another way, or are short."""


@lru_cache(maxsize=16_384)
def class_of(character: str) -> str:
    """The class of a character: its script, or what else it is."""
    return _CLASSES[bisect_right(_STARTS, ord(character)) - 1][1]


def counts(text: str, single: Collection[str] = _LETTER_PRICES) -> dict[str, int]:
    """The counts by which a text is priced: its runs, and its characters by class; those in ``single`` one by one."""
    if "<" in text:
        text = _TAG.sub("\x01", text)
    found: dict[str, int] = {}
    classes: set[str] = set()
    for character, count in Counter(text.lower()).items():
        kind = class_of(character)
        classes.add(kind)
        name = character if character in single else kind
        found[name] = found.get(name, 0) + count
    for run in _RUNS:
        if not run.needs.isdisjoint(classes):
            run.count(text, found)
    return found


@memoized(FIGURE_GROWTH)
def _script_tokens(text: str) -> float:
    return sum(ALL_PRICES[name] * count for name, count in counts(text).items())


@memoized(FIGURE_GROWTH)
def _hundredths_of_tokens(text: str) -> int:
    first, *others = with_same_digits(text).split(" ")  # all digits weigh the same
    if not others or "  " in text or (not text.isascii() and _NOT_SUM_OF_WORDS.search(text)):  # two blanks are one run
        return _hundredths_of(text)
    # The weight of a word does not depend on its neighbours.
    return _hundredths_of_tokens(first) + sum(map(_hundredths_behind_blank, others))


@word_memo
def _hundredths_behind_blank(word: str) -> int:
    letters = word[:-1] if word[-1:] in _MARKS else word
    if 0 < len(letters) < len(_RUNS_OF_LETTERS) and letters.isascii() and letters.isalpha():
        lowered = letters.lower()
        if letters[1:] == lowered[1:]:  # one word and at most one mark: no patterns are needed
            found = _BLANK + _RUNS_OF_LETTERS[len(letters)] + sum(map(_LETTERS.__getitem__, lowered))
            return found + (_MARKS[word[-1]] if len(word) > len(letters) else 0)
    return _hundredths_of(f" {word}")


def _hundredths_of(text: str) -> int:
    return sum(_HUNDREDTHS[name] * count for name, count in counts(text).items())


def _run_of_letters(length: int) -> int:
    counted: dict[str, int] = {}
    _WORD.count("a" * length, counted)
    return sum(_HUNDREDTHS[name] * count for name, count in counted.items())


_LETTERS: Final = {letter: _HUNDREDTHS.get(letter, _HUNDREDTHS[class_of(letter)]) for letter in ascii_lowercase}
_RUNS_OF_LETTERS: Final = tuple(map(_run_of_letters, range(MAX_WORD_LENGTH)))
_MARKS: Final = {mark: _hundredths_of(mark) for mark in ".,;:!?"}
_BLANK: Final = _hundredths_of(" ")


def byte_length(text: str) -> int:
    """UTF-8 length; a lone surrogate counts as the three bytes it would take."""
    return len(text.encode("utf-8", "surrogatepass"))


def estimate_text(text: str, estimator: Estimator = "script") -> int:
    """Estimate the tokens of a text.

    Args:
        text: Any string; lone surrogates and NUL are counted too.
        estimator: ``script`` looks at the scripts; ``bytes`` divides the UTF-8 length by four.

    Returns:
        The tokens; 0 only for the empty text.
    """
    if not text or estimator == "bytes":
        return tokens_of(0, byte_length(text), "bytes")
    hundredths = _hundredths_of_tokens(text)
    return -(-hundredths // 100) if hundredths % 100 else max(1, math.ceil(_script_tokens(text)))


def estimate_lines(text: str) -> int:
    """The script estimate of a text, as the sum of its lines, whose estimates are remembered.

    It equals ``estimate_text``: only runs of line breaks span lines, and they are added. If the prices add up to whole
    tokens, ``estimate_text`` itself is called, since the rounding of its sum decides then.
    """
    hundredths = sum(map(_hundredths_of_tokens, text.split("\n")))
    hundredths += _HUNDREDTHS[_LINE_BREAKS.name] * len(_LINE_BREAKS.pattern.findall(text))
    return -(-hundredths // 100) if hundredths % 100 else estimate_text(text)


def least_tokens(characters: int) -> int:
    """The fewest tokens that a sentence of that many characters can have; it need not be counted."""
    return characters // _MAX_CHARACTERS_PER_TOKEN


def tokens_of(tokens: int, bytes_: int, estimator: Estimator) -> int:
    """The tokens that an estimator gives for stored counts or sums: ``tokens`` itself, or ``bytes_`` ÷ 4 rounded up."""
    return tokens if estimator == "script" else -(-bytes_ // BYTES_PER_TOKEN)


def weigh(
    role: str, content: str, parts: Sequence[Part] = (), *, estimate: Callable[[str], int] = estimate_text
) -> Weight:
    """Estimate the tokens of a message as it will be sent: its content, its parts and the markers around it.

    * A part that repeats the content (a tool's result, a text) counts once.
    * Media count by their own ``tokens`` if given, otherwise by their type; the length of their data does not matter.
    * Further keys of parts, which are in every context, count by their length less the first
      ``FREE_BYTES_OF_FURTHER_KEYS`` bytes.
    * The content is counted by ``estimate``. The caller may give ``estimate_lines`` for a content whose lines recur.
    """
    shown_content = own_content(role, content, parts)
    tokens, size, further_bytes = MESSAGE_OVERHEAD + estimate(shown_content), byte_length(shown_content), 0
    for part in parts:
        media = _media_tokens(part) if part.get("type") == "media" else None
        more = _bytes_of_further_keys(part)
        further_bytes += more
        if is_repeated_text(content, part):
            size += more
            continue
        tokens += estimate_text(_text_sent_to_model(part)) if media is None else media
        size += byte_length(compact_json(part)) if media is None else media * BYTES_PER_TOKEN + more
    return Weight(tokens=tokens + max(further_bytes - FREE_BYTES_OF_FURTHER_KEYS, 0) // BYTES_PER_TOKEN, bytes=size)


def _media_tokens(part: Part) -> int:
    given = part.get("tokens")
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    family, _, kind = str(part.get("media_type", "")).lower().partition("/")
    if kind.startswith("pdf"):
        return PAGE_TOKENS * max(1, decoded_bytes(part) // UNKNOWN_PAGE_BYTES)
    if family == "text" and (size := decoded_bytes(part)):  # a model that reads it inline reads all of it
        return -(-size // BYTES_PER_TOKEN)
    return _MEDIA_TOKENS.get(family, IMAGE_TOKENS)


def _bytes_of_further_keys(part: Part) -> int:
    known = _COUNTED_KEYS.get(str(part.get("type")))
    more = {key: value for key, value in part.items() if key not in known} if known else None
    return byte_length(compact_json(more)) if more else 0


def _text_sent_to_model(part: Part) -> str:
    if part.get("type") == "tool_call":
        return f"{part.get('name', '')} {as_short_text(part.get('arguments', {}))}"
    if part.get("type") == "tool_result":
        return f"{part.get('name') or ''} {as_short_text(part.get('content', ''))}"
    return as_short_text(part.get("text", part))

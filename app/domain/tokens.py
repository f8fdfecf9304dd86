"""How many tokens a text costs, by its scripts: linear time, no vocabulary shipped.

A text is taken apart into runs (words, blanks, punctuation) and single characters (digits, ideographs, emoji); each
kind has a price, fitted by least squares against the Gemma 3 vocabulary that Gemini 2 and later share. A price is per
run or per character, so the estimate of a concatenation is the sum of its halves but for a token or two at the seam.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

from app.domain.conversation import Part

Estimator = Literal["script", "bytes"]

MESSAGE_OVERHEAD: Final = 4
"""Tokens around every message: the marker that opens a turn, its role, a line break, the marker that closes it."""

BYTES_PER_TOKEN: Final = 4
"""The plain rule of thumb behind the estimator ``bytes``."""

_IMAGE_TOKENS: Final = 258  # a small picture, as Gemini bills it; a page of a document weighs the same
_AUDIO_TOKENS: Final = 32 * 60  # 32 a second, for a clip whose length is unknown and taken as a minute
_VIDEO_TOKENS: Final = (258 + 32) * 60  # one frame and its sound a second, likewise
_MEDIA_TOKENS: Final[Mapping[str, int]] = {"image": _IMAGE_TOKENS, "audio": _AUDIO_TOKENS, "video": _VIDEO_TOKENS}

_LATIN = "A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff"
_CYRILLIC = "\u0400-\u052f"

_RUNS: Final[tuple[tuple[re.Pattern[str], float, str], ...]] = (
    (re.compile(f"[{_LATIN}]+"), 0.8, ""),
    (re.compile(r"[!-/:-@\[-`{-~]+"), 1.01, ""),
    (re.compile(r"\s{2,}|\n"), 1.85, ""),
    (re.compile(r"(?<=[!-@\[-`{-~]) "), 0.27, ""),
    (re.compile(f"[{_CYRILLIC}]+"), 1.16, "cyrillic"),
    (re.compile("[\u0590-\u05ff]+"), 0.27, "hebrew"),
)
"""(pattern, tokens per run, the class of characters without which there is none)."""

_TAILS: Final[tuple[tuple[re.Pattern[str], float, str], ...]] = (
    (re.compile(f"(?<=[{_LATIN}]{{6}})[{_LATIN}]+"), 0.287, ""),
    (re.compile("[A-Z]{2,}"), 0.094, ""),
    (re.compile(r"(?<=[!-/:-@\[-`{-~]{8})[!-/:-@\[-`{-~]+"), 0.15, ""),
    (re.compile(r"(?<=\s{30})\s+"), 0.04, ""),
    (re.compile(f"(?<=[{_CYRILLIC}]{{4}})[{_CYRILLIC}]+"), 0.065, "cyrillic"),
    (re.compile(f"(?<=[{_CYRILLIC}]{{16}})[{_CYRILLIC}]+"), 0.6, "cyrillic"),
)
"""(pattern, tokens per character): what long words and capitals cost beyond their run."""

_CLASSES: Final[tuple[tuple[int, str], ...]] = (
    (0x0000, "ascii"),
    (0x0030, "digit"),
    (0x003A, "ascii"),
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
    (0x0600, "arabic"),
    (0x0700, "other"),
    (0x0900, "indic_north"),
    (0x0980, "indic"),
    (0x0E00, "indic_north"),
    (0x0E80, "other"),
    (0x10A0, "armenian"),
    (0x1100, "hangul"),
    (0x1200, "other"),
    (0x1E00, "latin_stacked"),
    (0x1F00, "greek"),
    (0x2000, "sign"),
    (0x2600, "emoji"),
    (0x27C0, "sign"),
    (0x2C00, "other"),
    (0x3000, "cjk_sign"),
    (0x3040, "kana"),
    (0x3100, "other"),
    (0x3130, "hangul"),
    (0x3190, "other"),
    (0x3400, "ideograph"),
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
    (0x1FB00, "fallback"),
    (0x20000, "rare_ideograph"),
    (0x40000, "fallback"),
)
"""Where each class of code points begins."""

_STARTS: Final = tuple(start for start, _ in _CLASSES)

_CHARACTERS: Final[Mapping[str, float]] = {
    "digit": 1.04,
    "latin_1": 0.45,
    "latin_extended": 0.75,
    "cyrillic": 0.0,
    "cyrillic_rare": 1.0,
    "latin_stacked": 0.15,
    "greek": 0.405,
    "armenian": 0.5,
    "hebrew": 0.469,
    "arabic": 0.376,
    "indic_north": 0.28,
    "indic": 0.3,
    "ideograph": 0.5,
    "kana": 0.342,
    "hangul": 0.573,
    "cjk_sign": 1.4,
    "sign": 1.4,
    "emoji": 1.4,
    "joiner": 0.1,
    "rare_ideograph": 2.0,
    "other": 1.0,
    "fallback": 3.5,  # no token of its own: spelled out byte by byte
    "ascii": 0.0,  # priced by run
}
"""Tokens per character, beside the price of the run it stands in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """What a message weighs: ``tokens`` by the script estimator with its overhead, ``bytes`` in UTF-8."""

    tokens: int
    bytes: int


@lru_cache(maxsize=16_384)
def _class_of(character: str) -> str:
    return _CLASSES[bisect_right(_STARTS, ord(character)) - 1][1]


def _script_tokens(text: str) -> float:
    classes: dict[str, int] = {"": 1}
    for character, count in Counter(text).items():
        name = _class_of(character)
        classes[name] = classes.get(name, 0) + count
    total = sum(_CHARACTERS[name] * count for name, count in classes.items() if name)
    total += sum(price * len(runs.findall(text)) for runs, price, needs in _RUNS if needs in classes)
    return total + sum(price * len("".join(tails.findall(text))) for tails, price, needs in _TAILS if needs in classes)


def byte_length(text: str) -> int:
    """UTF-8 length; a lone surrogate counts as the three bytes it would take."""
    return len(text.encode("utf-8", "surrogatepass"))


def estimate_text(text: str, estimator: Estimator = "script") -> int:
    """Estimate the tokens of a text.

    Args:
        text: Any string; lone surrogates and NUL are counted, never refused.
        estimator: ``script`` looks at the scripts; ``bytes`` divides the UTF-8 length by four.

    Returns:
        Tokens, 0 only for the empty text.
    """
    if not text:
        return 0
    return tokens_of(
        max(1, math.ceil(_script_tokens(text))) if estimator == "script" else 0,
        byte_length(text) if estimator == "bytes" else 0,
        estimator,
    )


def tokens_of(tokens: int, bytes_: int, estimator: Estimator) -> int:
    """The estimator's reading of stored counts, sums included: ``tokens`` as they are, or ``bytes_`` ÷ 4 rounded up."""
    return tokens if estimator == "script" else -(-bytes_ // BYTES_PER_TOKEN)


def weigh(role: str, content: str, parts: Sequence[Part] = ()) -> Weight:  # noqa: ARG001 - every role weighs the same
    """Weigh a message as it will be sent: its content, its parts and the markers around it.

    Media weigh by their own ``tokens`` where given, else by type, whatever the length of their data.
    """
    tokens, size = MESSAGE_OVERHEAD + estimate_text(content), byte_length(content)
    for part in parts:
        media = _media_tokens(part) if part.get("type") == "media" else None
        tokens += estimate_text(_sent(part)) if media is None else media
        size += byte_length(_compact(part)) if media is None else media * BYTES_PER_TOKEN
    return Weight(tokens=tokens, bytes=size)


def _media_tokens(part: Part) -> int:
    given = part.get("tokens")
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    return _MEDIA_TOKENS.get(str(part.get("media_type", "")).partition("/")[0].lower(), _IMAGE_TOKENS)


def _sent(part: Part) -> str:
    """The text of a part that reaches the model."""
    if part.get("type") == "tool_call":
        return f"{part.get('name', '')} {_text(part.get('arguments', {}))}"
    if part.get("type") == "tool_result":
        return f"{part.get('name') or ''} {_text(part.get('content', ''))}"
    return _text(part.get("text", part))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _compact(value)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)

"""Reads the answer of a verifier: its verdict on each claim.

The verifier is a model. Its answer may be cut off, wrapped in prose or broken: what can be read of it is read, and the
rest is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal, cast, get_args

from app.core.model.claims import Claim
from app.core.summarizer.candidate import without_reasoning, without_unopened_reasoning
from app.core.text.escaping import clean
from app.core.text.patterns import compiled
from app.core.validation.quotes import MAX_QUOTE_LENGTH

VerdictWord = Literal["supported", "contradicted", "not_stated"]
VERDICT_WORDS: Final[tuple[str, ...]] = get_args(VerdictWord)
_MAX_CHARACTERS: Final = 200_000
_MAX_VERDICTS: Final = 1_000
_MAX_DIGITS: Final = 15
_ARRAY: Final = compiled(r"\[\s*+\{")
_SUPPORTED: Final = compiled(r'"supported"\s*+:\s*+\[(?P<numbers>[\d\s,."#]*+)(?P<end>\]?)')
"""Matches a key of an object. The same word inside a quotation does not match: its quotation marks are escaped."""
_READER: Final = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the verifier says about one claim."""

    n: int
    verdict: VerdictWord
    seq: int | None = None
    """The message that the verifier names as the one that contradicts the claim, or supports it."""
    quote: str = ""
    """Words of that message, not yet looked up. A contradiction needs them, and so does support for what code cut."""


def verdicts_of(text: str, claims: Iterable[Claim]) -> tuple[Verdict, ...]:
    """Read an answer: a list of the numbers of supported claims, and an array of verdicts.

    Both may stand alone, in an object or among prose. An answer that was cut off is read as far as it goes. Verdicts on
    unknown claims are ignored. If a claim gets two different verdicts, neither counts.
    """
    known = {claim.n for claim in claims}
    verdict_by_number: dict[int, Verdict] = {}
    disputed: set[int] = set()
    text = without_unopened_reasoning(text)
    if text.lstrip().startswith("<"):  # thoughts hold drafts of verdicts; after the first verdict such tags are quoted
        text = without_reasoning(text)
    if len(text) > _MAX_CHARACTERS:
        return ()
    readable = [Verdict(n=n, verdict="supported") for n in _supported_numbers(text)]
    readable += filter(None, map(_verdict, objects_in(text)[:_MAX_VERDICTS]))
    for verdict in readable:
        if verdict.n not in known:
            continue
        known_verdict = verdict_by_number.setdefault(verdict.n, verdict)
        if known_verdict.verdict != verdict.verdict:
            disputed.add(verdict.n)
        elif verdict.quote and not known_verdict.quote:
            verdict_by_number[verdict.n] = verdict
    return tuple(verdict_by_number[n] for n in sorted(verdict_by_number.keys() - disputed))


def _supported_numbers(text: str) -> Iterator[int]:
    found = _SUPPORTED.search(text)
    if found is None:
        return
    numbers = found["numbers"].split(",")
    # The last number of a list that was cut off may be incomplete.
    for number in islice(numbers if found["end"] else numbers[:-1], _MAX_VERDICTS):
        if (n := _whole_number(number.strip(' \t\r\n"'))) is not None:
            yield n


def objects_in(text: str) -> list[Any]:
    """The objects of the first array in an answer, even if it was cut off, or the answer's only object.

    An answer that is too long has none.
    """
    if len(text) > _MAX_CHARACTERS:
        return []
    for piece in _possible_json_texts(text):
        try:
            value, _ = _READER.raw_decode(piece)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, list) else [value]
    return []


def _possible_json_texts(text: str) -> Iterator[str]:
    starts = [found.start() for found in _ARRAY.finditer(text)]
    for start in dict.fromkeys([*starts[:1], *starts[-1:]]):
        yield text[start:]
        yield f"{text[start : text.rfind('}') + 1]}]"
    if not starts and "{" in text:
        yield text[text.find("{") :]


def _verdict(raw: Any) -> Verdict | None:
    if not isinstance(raw, dict):
        return None
    n, word = _whole_number(raw.get("n")), _word(raw.get("verdict"))
    if n is None or word is None:
        return None
    quote = raw.get("quote")
    if word == "not_stated" or (word == "supported" and not quote):
        return Verdict(n=n, verdict=word)
    quote_text = clean(quote).strip() if isinstance(quote, str) and len(quote) <= 2 * MAX_QUOTE_LENGTH else ""
    return Verdict(
        n=n,
        verdict=word,
        seq=_whole_number(raw.get("seq")),
        quote=quote_text if len(quote_text) <= MAX_QUOTE_LENGTH else "",
    )


def _word(value: Any) -> VerdictWord | None:
    plain = "_".join(value.lower().replace("-", " ").split()) if isinstance(value, str) else ""
    return cast("VerdictWord", plain) if plain in VERDICT_WORDS else None


def _whole_number(value: Any) -> int | None:
    if isinstance(value, str):
        digits = value.strip().removeprefix("#")
        return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS else None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None

"""``python -m bench.trust.values``: which stated, calculated and wrong statements fail the check of values.

A block is a short conversation with statements about it by a writer who had not seen the checks; the *loose* ones are
written as people chat. Every second block was worked on; the others (``sealed-values``) were, and are here, only
counted. The *careful* ones are all open, with four lies each that look like what the conversation says; every second
one was worked on. Those of *days* are Spanish and French, about relative days; every second one is only counted. Those
of *numbers* are in these languages too, with many numbers and clock times in words.
Each statement is checked as an item, with its sources, and as a sentence of a narrative, without sources.
The last lines are a control: the numbers, days and times of all statements are replaced by random ones of the same size
and precision; nearly all of these must fail.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from app.core.model.candidate import Candidate, CandidateItem
from app.core.model.conversation import Message
from app.core.text.values import Value, values
from app.core.validation.exact_checks import examine_candidate
from app.core.validation.source_texts import SourceTexts
from bench.report import print_table, take_no_options, write_json

_ROOT: Final = Path(__file__).resolve().parents[2]
_OPEN, _SEALED = _ROOT / "tests" / "corpora", _ROOT / "bench" / "trust" / "sealed-values"
HALVES: Final = {
    "open": _OPEN / "told_values.jsonl",
    "sealed": _SEALED / "told_values.jsonl",
    "loose, open": _OPEN / "loose_values.jsonl",
    "loose, sealed": _SEALED / "loose_values.jsonl",
    "careful, open": _OPEN / "careful_values.jsonl",
    "days, open": _OPEN / "told_days_spanish_french.jsonl",
    "days, sealed": _SEALED / "told_days_spanish_french.jsonl",
    "days further, open": _OPEN / "told_days_further.jsonl",
    "days further, sealed": _SEALED / "told_days_further.jsonl",
    "numbers, open": _OPEN / "told_numbers_spanish_french.jsonl",
    "numbers, sealed": _SEALED / "told_numbers_spanish_french.jsonl",
    "languages, open": _OPEN / "told_values_many_languages.jsonl",
    "languages, sealed": _SEALED / "told_values_many_languages.jsonl",
}
_KINDS: Final = ("told", "derived", "lie")
CHANGED: Final = frozenset({"number", "money", "date", "time"})
"""Kinds of values that the control changes."""
_DIGITS: Final = re.compile(r"\d(?:[\d.,'  ]*\d)?")
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d\d)")
_SHORT: Final = re.compile(r"(?<!\d)\d{1,2}(?!\d)")
_DAY_MINUTES: Final = 1_440
_LAST_DAY: Final = 28
"""The last day of the month that every month has."""
Count = Counter[tuple[str, str, str]]
"""Counts by language, kind, and ``all`` or ``failing``."""


@dataclass(frozen=True, slots=True)
class Block:
    """A conversation with statements about it."""

    lang: str
    shown: SourceTexts
    statements: Sequence[tuple[str, tuple[int, ...], str]]
    """The statements, each with its sources and its kind: ``told``, ``derived`` or ``lie``."""


def blocks(rows: Iterable[Mapping[str, Any]]) -> Iterator[Block]:
    """The blocks from the rows of a file."""
    for row in rows:
        stated = zip((one[:2] for one in row["text"]["statements"]), row["expected"], strict=True)
        yield Block(
            lang=row["lang"],
            shown=SourceTexts([message(*one) for one in row["text"]["messages"]]),
            statements=[(text, tuple(seqs), kind) for (text, seqs), kind in stated],
        )


def message(seq: int, role: Any, at: str, content: str, parts: Sequence[Any] = ()) -> Message:
    """A message from its form in the corpora."""
    return Message(
        id=UUID(int=seq),
        conversation_id=UUID(int=0),
        seq=seq,
        role=role,
        content=content,
        parts=tuple(parts),
        created_at=datetime.fromisoformat(at),
    )


def failing(block: Block, text: str, seqs: tuple[int, ...]) -> set[int]:
    """The positions of the values of an item that fail."""
    item = CandidateItem(field="facts", text=text, from_seqs=seqs)
    failures = examine_candidate(Candidate(narrative={}, items=(item,)), block.shown).failures
    return {value.start for failure in failures for value in failure.values}


def counted(given: Iterable[Block], *, as_items: bool = True) -> Count:
    """How many statements there are, and how many fail, as items or as sentences of a narrative, without sources."""
    found: Count = Counter()
    for block in given:
        for text, seqs, kind in block.statements:
            found[block.lang, kind, "all"] += 1
            found[block.lang, kind, "failing"] += bool(failing(block, text, seqs if as_items else ()))
    return found


def by_chance(given: Iterable[Block], seed: int = 7) -> Count:
    """The same counts for statements with one random value; random values that happen to be shown are left out."""
    found = Counter[tuple[str, str, str]]()
    for number, block in enumerate(given):
        dice = random.Random(f"{seed} {number}")
        for text, seqs, kind in block.statements:
            for value in values(text) if kind != "lie" else ():
                instead = random_value(value, dice) if value.kind in CHANGED else value.text
                changed = text[: value.start] + instead + text[value.end :]
                made = next((one for one in values(changed) if one.start == value.start), None)
                if instead == value.text or made is None or block.shown.sources_of(made):
                    continue
                found[block.lang, made.kind, "all"] += 1
                found[block.lang, made.kind, "failing"] += made.start in failing(block, changed, seqs)
    return found


def a_day_off(given: Iterable[Block]) -> Count:
    """The same counts for honest statements with one date a day too early or too late; other days of the talk pass."""
    found: Count = Counter()
    for block in given:
        for text, seqs, kind in block.statements:
            for value in values(text) if kind != "lie" else ():
                for changed in _a_day_off(text, value):
                    made = next(
                        (one for one in values(changed) if (one.start, one.kind) == (value.start, "date")), None
                    )
                    if made is not None:
                        found[block.lang, "date", "all"] += 1
                        found[block.lang, "date", "failing"] += made.start in failing(block, changed, seqs)
    return found


def _a_day_off(text: str, value: Value) -> Iterator[str]:
    day = _SHORT.search(value.text) if value.kind == "date" else None
    for other in (int(day[0]) - 1, int(day[0]) + 1) if day else ():
        if day and 1 <= other <= _LAST_DAY:
            yield f"{text[: value.start + day.start()]}{other}{text[value.start + day.end() :]}"


def random_value(value: Value, dice: random.Random) -> str:
    """Another value with as many digits, and as many zeros at the end."""
    text = value.text
    if clock := _CLOCK.search(text):
        step = next(step for step in (30, 15, 5, 1) if int(clock[2]) % step == 0)
        minutes = dice.randrange(0, _DAY_MINUTES, step)
        return text[: clock.start()] + f"{minutes // 60:02}:{minutes % 60:02}" + text[clock.end() :]
    found = _SHORT.search(text) if value.kind == "date" else _DIGITS.search(text)
    if found is None:
        return text
    digits = [sign for sign in found.group() if sign.isdigit()]
    number = int("".join(digits))
    if value.kind == "date" or not number:
        return text[: found.start()] + str(dice.randint(1, 28)) + text[found.end() :]
    ending = 10 ** (len(str(number)) - len(str(number).rstrip("0")))
    size = number // ending
    other = iter(f"{dice.randint(max(1, size // 2), max(2 * size, 6)) * ending:0{len(digits)}}"[-len(digits) :])
    return "".join(next(other) if found.start() <= place < found.end() and sign.isdigit() else sign
                   for place, sign in enumerate(text))  # fmt: skip


def main() -> int:
    """Run the command; return its exit status."""
    halves = {name: list(blocks(map(json.loads, path.open(encoding="utf-8")))) for name, path in HALVES.items()}
    count = {name: counted(half) for name, half in halves.items()}
    in_narratives = {name: counted(half, as_items=False) for name, half in halves.items()}
    chance = {name: by_chance(half) for name, half in halves.items()}
    rows = [[name, lang, *(_share(found, kind, lang) for kind in _KINDS)]
            for name, found in count.items() for lang in [*sorted({one.lang for one in halves[name]}), ""]]  # fmt: skip
    print_table(["half", "language", "stated, failing", "calculated, failing", "wrong, failing"], rows)
    print()
    rows = [[name, *(_share(found, kind) for kind in _KINDS)] for name, found in in_narratives.items()]
    print_table(["in narratives", "stated, failing", "calculated, failing", "wrong, failing"], rows)
    print()
    off = {name: a_day_off(half) for name, half in halves.items()}
    rows = [
        [name, *(_share(found, kind) for kind in sorted(CHANGED)), _share(off[name], "date")]
        for name, found in chance.items()
    ]
    print_table(["random instead, failing", *sorted(CHANGED), "a date one day off"], rows)
    figures = {name: {" ".join(key): number for key, number in found.items()} for name, found in count.items()}
    write_json("trust-values", figures)
    return 0


def _share(found: Count, kind: str, lang: str = "") -> str:
    part, whole = (
        sum(number for (language, what, state), number in found.items()
            if what == kind and state == wanted and lang in {"", language})
        for wanted in ("failing", "all")
    )  # fmt: skip
    return f"{part}/{whole} = {part / max(whole, 1):.1%}"


if __name__ == "__main__":
    take_no_options(__doc__)
    sys.exit(main())

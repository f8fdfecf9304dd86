"""Corpora: sentences with the answer that is expected of each, in ``tests/corpora/*.jsonl``.

A row is an object: ``id`` (unique in its file), ``text`` (what is judged: a string, or an object of several), and
``expected`` (the right answer); optional are ``lang``, ``note`` and ``known``. ``known`` is a wrong answer that the
code gives today: the row counts in what is measured, and fails only when the answer changes.

One test judges all rows of a corpus. It fails when a floor is not reached or when any row is answered in another way
than today, and then names these rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "corpora"
_SHOWN = 160


class _Unset:
    def __repr__(self) -> str:
        return "unset"


UNSET = _Unset()


@dataclass(frozen=True, slots=True)
class Row:
    """One text and the answer that is right for it."""

    id: str
    text: Any
    expected: Any
    lang: str = ""
    note: str = ""
    known: Any = UNSET

    @property
    def today(self) -> Any:
        """The answer that the code gives today: the right one, unless the row says otherwise."""
        return self.expected if self.known is UNSET else self.known


@dataclass(frozen=True, slots=True)
class Corpus:
    """Rows under the name of their file, or of the test that makes them from another corpus."""

    name: str
    rows: tuple[Row, ...]

    def __post_init__(self) -> None:
        ids = [row.id for row in self.rows]
        doubles = sorted({id_ for id_ in ids if ids.count(id_) > 1}) if len(ids) != len(set(ids)) else []
        if doubles or not ids:
            raise ValueError(f"{self.name}: a corpus has rows, each with an id of its own; twice: {doubles}")

    def texts(self, *, expected: Any = UNSET) -> list[Any]:
        """The texts of all rows, or only of those with this answer."""
        return [row.text for row in self.rows if expected is UNSET or row.expected == expected]


@dataclass(frozen=True, slots=True)
class _Judged:
    row: Row
    answer: Any
    is_right: bool
    is_as_today: bool

    def __str__(self) -> str:
        if self.is_right:
            what = "is right now, take `known` away"
        else:
            what = f"expected {_short(self.row.expected)} (or, as an answer accepted for now, another `known`)"
        return f"  {self.row.id}: {_short(self.row.text)}\n    {what}, got {_short(self.answer)}"


def corpus(name: str) -> Corpus:
    """The corpus of ``tests/corpora/{name}.jsonl``."""
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")
    return Corpus(name, tuple(Row(**json.loads(line)) for line in lines if line))


def product_of(name: str, rows: Iterable[tuple[str, Any, Any]]) -> Corpus:
    """A corpus that a test makes from the id, the text and the expected answer of each row."""
    return Corpus(name, tuple(Row(id_, text, expected) for id_, text, expected in rows))


def same(answer: Any, expected: Any) -> bool:
    """Whether an answer equals that of a row of JSON: true is not 1, and a set has no order."""
    return _plain(answer) == _plain(expected) and isinstance(answer, bool) == isinstance(expected, bool)


def holds(answer: Any, expected: Any) -> bool:
    """Whether the answer contains what is expected: a part of a text, or one of several values."""
    return expected in answer


def names(answer: tuple[str, str] | None, expected: tuple[str, str] | None) -> bool:
    """Whether a complaint is about the expected field, and has the expected words in its message."""
    if answer is None or expected is None:
        return answer is expected
    return answer[0] == expected[0] and expected[1] in answer[1]


def agreed(*verdicts: bool) -> bool:
    """The verdict, which must be the same for each way to ask for it."""
    assert len(set(verdicts)) == 1, f"it is judged in several ways, and they differ: {verdicts}"
    return verdicts[0]


def assert_verdicts(
    judged: Corpus, judge: Callable[[Any], bool], *, precision: float = 1.0, recall: float = 1.0
) -> None:
    """Judge each text with yes or no; precision and recall of yes reach their floors, and no row changes."""
    found = _all_judged(judged, judge, same)
    if {one.row.expected for one in found} != {True, False}:
        raise ValueError(f"{judged.name}: verdicts need texts for yes and texts for no, or one measure means nothing")
    yes = [one for one in found if one.answer is True]
    hits = sum(one.is_right for one in yes)
    measured = {
        "precision": (hits / len(yes) if yes else 0.0, precision),
        "recall": (hits / sum(one.row.expected for one in found), recall),
    }
    _report(judged, found, measured)


def assert_values(
    judged: Corpus,
    judge: Callable[[Any], Any],
    *,
    right: float = 1.0,
    agrees: Callable[[Any, Any], bool] = same,
) -> None:
    """Judge each text; the share of right answers reaches its floor, and no row changes.

    ``agrees`` compares an answer with what is expected, in this order; by default they are equal.
    """
    found = _all_judged(judged, judge, agrees)
    _report(judged, found, {"right": (sum(one.is_right for one in found) / len(found), right)})


def _all_judged(judged: Corpus, judge: Callable[[Any], Any], agrees: Callable[[Any, Any], bool]) -> list[_Judged]:
    return [_judged(row, judge, agrees) for row in judged.rows]


def _judged(row: Row, judge: Callable[[Any], Any], agrees: Callable[[Any, Any], bool]) -> _Judged:
    try:
        answer = judge(row.text)
        return _Judged(row, answer, bool(agrees(answer, row.expected)), bool(agrees(answer, row.today)))
    except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - an error is a wrong answer of one row
        return _Judged(row, f"{type(error).__name__}: {error}", is_right=False, is_as_today=False)


def _report(judged: Corpus, found: list[_Judged], measured: Mapping[str, tuple[float, float]]) -> None:
    figures = ", ".join(f"{name} {value:.3f} (floor {floor:.3f})" for name, (value, floor) in measured.items())
    changed = [one for one in found if not one.is_as_today]
    known = sum(not one.is_right for one in found) - sum(not one.is_right for one in changed)
    lines = [
        f"{judged.name}: {len(found)} rows, {figures}; {len(changed)} changed, {known} known to be wrong",
        *map(str, changed),
    ]
    print("\n".join(lines))
    below = any(value < floor - 0.0005 for value, floor in measured.values())
    if below or changed:
        pytest.fail("\n".join(lines), pytrace=False)


def _plain(value: Any) -> Any:
    if isinstance(value, AbstractSet):
        return sorted(map(_plain, value), key=repr)
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _short(value: Any) -> str:
    written = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return written if len(written) <= _SHOWN else f"{written[:_SHOWN]}… ({len(written)} characters)"

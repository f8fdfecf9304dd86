"""Asks a model about its own answer again: what fails in it, and what would be told nowhere any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from app.core.anchors.naming import names_of, without_names
from app.core.model.candidate import CandidateItem
from app.core.model.model_io import Doubt, SummaryRequest
from app.core.model.state import StateSchema
from app.core.text.json_data import data_in
from app.core.validation.exact import MOST_DOUBTS, Failure

MOST_LOST: Final = 10
_LONGEST_STATEMENT: Final = 4_000  # characters of one statement
_MOST_CHARACTERS: Final = 200_000
_MOST_VALUES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Second:
    """What a model answered when it was asked again."""

    statements: Mapping[int, str] = field(default_factory=dict)
    """By number; an empty text withdraws a statement."""
    added: tuple[CandidateItem, ...] = ()
    """Items for what would have been lost."""


def doubts_of(failures: Iterable[Failure]) -> tuple[Doubt, ...]:
    """The failures as they are put to the model, in their order."""
    return tuple(
        Doubt(
            field=failure.field,
            statement=failure.statement,
            values=tuple(dict.fromkeys(value.text for value in failure.values))[:_MOST_VALUES],
            says=failure.says,
        )
        for failure in islice(failures, MOST_DOUBTS)
    )


def second_answer(text: str, schema: StateSchema, request: SummaryRequest) -> Second:
    """Read the answer, ids of kept passages as numbers of messages; what cannot be read answers nothing."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or len(text) > _MOST_CHARACTERS:
        return Second()
    try:
        data = data_in(text[start : end + 1], strict=False)
    except ValueError:
        return Second()
    if not isinstance(data, dict):
        return Second()
    names = {one.name for one in schema.fields}
    passages = {name for name, _ in names_of(request.anchors)}
    statements = {
        one["n"]: without_names(one["text"], passages)
        for one in _objects(data.get("statements"), len(request.doubts))
        if type(one.get("n")) is int and isinstance(one.get("text"), str) and len(one["text"]) <= _LONGEST_STATEMENT
    }
    added = tuple(
        CandidateItem(
            field=one["field"],
            text=without_names(" ".join(one["text"].split()), passages),
            from_seqs=_seqs(one.get("from")),
        )
        for one in _objects(data.get("added"), MOST_LOST)
        if one.get("field") in names
        and isinstance(one.get("text"), str)
        and 0 < len(one["text"].strip()) <= _LONGEST_STATEMENT
    )
    return Second(statements=statements, added=added)


def _objects(value: Any, most: int) -> Sequence[Mapping[str, Any]]:
    return [one for one in value[: 2 * most + 2] if isinstance(one, dict)] if isinstance(value, list) else []


def _seqs(value: Any) -> tuple[int, ...]:
    return tuple(one for one in value if type(one) is int)[:50] if isinstance(value, list) else ()

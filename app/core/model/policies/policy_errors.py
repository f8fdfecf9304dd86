"""Errors of a policy, in the client's own terms: the field, what it may be, and what it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from app.core.model.errors import FieldError, PolicyInvalidError
from app.core.model.json_schemas import Place, names_at, nodes_at
from app.core.model.policies.policy import CompactionPolicy

OUT_OF_RANGE = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})
BOUNDS: Mapping[str, str] = {
    "exclusiveMinimum": "more than {}",
    "minimum": "at least {}",
    "exclusiveMaximum": "less than {}",
    "maximum": "at most {}",
}

KINDS: Mapping[str, str] = {
    "tuple_type": "must be a list",
    "string_type": "must be a text",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
}
"""Our message for a value of the wrong type, by pydantic's name of the error."""
_MAX_HINTS = 20
"""For how many unknown fields a similar one is looked for, since thousands would take long."""


def policy_invalid(
    error: ValidationError, short_forms: Sequence[str], short_form_at: Callable[[Place], str | None]
) -> PolicyInvalidError:
    """Pydantic's findings as field errors, each once.

    Args:
        error: What pydantic found.
        short_forms: Fields that stand for others.
        short_form_at: The short form by which the client set the field at a place, if it did so.
    """
    found = (
        FieldError(
            field=".".join(["policy", short_form_at(item["loc"]) or ".".join(map(str, item["loc"]))]),
            message=_message(item, short_forms, hints=number < _MAX_HINTS),
        )
        for number, item in enumerate(error.errors(include_url=False))
    )
    findings = list(dict.fromkeys(found))
    return PolicyInvalidError(f"{findings[0].field}: {findings[0].message}", errors=findings)


def field_error(field: str, message: str) -> PolicyInvalidError:
    """The error of a single field."""
    finding = FieldError(field=f"policy.{field}", message=message)
    return PolicyInvalidError(f"{finding.field}: {message}", errors=[finding])


def _message(item: ErrorDetails, short_forms: Sequence[str], *, hints: bool) -> str:
    if item["type"] in OUT_OF_RANGE:
        return f"must be {_range_in_words(item['loc'])}, not {item['input']}"
    if item["type"] == "extra_forbidden":
        there_are = names_at(_schema(), item["loc"][:-1])
        fields = [*there_are, *(short_forms if len(item["loc"]) == 1 else ())]
        near = get_close_matches(str(item["loc"][-1]), fields, n=1, cutoff=0.7) if hints else None
        hint = f" (is {near[0]} meant?)" if near else ""
        return f"there is no such field{hint}; there are {', '.join(fields)}"
    if item["type"] == "model_type":
        return f"must be an object of {', '.join(names_at(_schema(), item['loc']))}"
    told = KINDS.get(item["type"], item["msg"].removeprefix("Value error, "))
    return told.replace("Input should be", "must be")


def _range_in_words(loc: Sequence[int | str]) -> str:
    bounds = {name: node[name] for node in nodes_at(_schema(), loc) for name in BOUNDS if name in node}
    return " and ".join(words.format(bounds[name]) for name, words in BOUNDS.items() if name in bounds)


@cache
def _schema() -> dict[str, Any]:
    return CompactionPolicy.model_json_schema()

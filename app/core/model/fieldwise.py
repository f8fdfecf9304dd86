"""Values made of others field by field: two counts as one sum, a value from another with fields of the same names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Counts = TypeVar("Counts", bound="DataclassInstance")
Value = TypeVar("Value", bound="DataclassInstance")


def combine_fields(combine: Callable[[int, int], int], one: Counts, other: Counts) -> Counts:
    """One value with each of its fields combined with the other's."""
    names = [item.name for item in fields(one)]
    return replace(one, **{name: combine(getattr(one, name), getattr(other, name)) for name in names})


def from_same_fields(kind: type[Value], given: object, **further: Any) -> Value:
    """A value of this kind: its fields come from ``further``, else from the fields of the same names of ``given``."""
    same = _shared_names(kind, cast("Any", type(given)))
    return kind(**{name: getattr(given, name) for name in same if name not in further}, **further)


@cache
def _shared_names(kind: Any, given: Any) -> tuple[str, ...]:
    known = getattr(given, "model_fields", None) or given.__dataclass_fields__
    return tuple(item.name for item in fields(kind) if item.name in known)

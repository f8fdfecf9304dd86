"""Turns records into rows and back: a field is stored in the column of its name, unless the caller replaces it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, Final, TypeVar, cast

from pydantic import TypeAdapter
from sqlalchemy import BindParameter, bindparam

from app.core.model.conversation import Layout, Sums
from app.core.model.pace import Pace

Record = TypeVar("Record")

_PARAMETER_PREFIX: Final = "new_"
LAYOUT = TypeAdapter(Layout | None)
PACE = TypeAdapter(Pace | None)
REMOVED_POLICY_FIELDS: Final = ("continuity_probes",)
"""Fields that policies no longer have, but stored overrides may still have."""


def columns(record: Any, **replaced: Any) -> dict[str, Any]:
    """A record's fields by name, with those in ``replaced`` changed or added."""
    return {name: getattr(record, name) for name in _field_names(cast("Any", type(record)))} | replaced


def record_from_row(kind: type[Record], row: Any, **replaced: Any) -> Record:
    """A record of that kind, made from a row's columns, with the fields in ``replaced`` given instead.

    ``__init__`` is not called, as with ``record_maker``.
    """
    read, setters = _reader_and_setters(cast("Any", kind), tuple(replaced))
    made = object.__new__(kind)
    for set_field, item in zip(setters, (*read(row), *replaced.values()), strict=True):
        set_field(made, item)
    return made


@cache
def _reader_and_setters(
    kind: Any, replaced: tuple[str, ...]
) -> tuple[Callable[[Any], Iterable[Any]], Sequence[Callable[..., None]]]:
    if hasattr(kind, "__post_init__"):
        raise TypeError(f"{kind} is made by its own rules")
    names = [name for name in _field_names(kind) if name not in replaced]
    read: Any = attrgetter(*names) if len(names) > 1 else lambda row: [getattr(row, name) for name in names]
    return read, [getattr(kind, name).__set__ for name in (*names, *replaced)]


def record_maker(kind: type[Record]) -> Callable[[Iterable[Any]], Record]:
    """A function that makes a frozen record with slots from the values of all its fields, in order.

    It takes a fifth of the time of ``__init__``, which it does not call: only for a kind without ``__post_init__``.
    """
    setters = [getattr(kind, name).__set__ for name in _field_names(cast("Any", kind))]

    def make(values: Iterable[Any]) -> Record:
        made = object.__new__(kind)
        for set_field, item in zip(setters, values, strict=True):
            set_field(made, item)
        return made

    return make


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(item.name for item in fields(kind))


def new_parameters(*kinds: type[Any], also: Collection[str] = ()) -> dict[str, BindParameter[Any]]:
    """Parameters of a statement that is built once, by column: each field of these kinds, and each name in ``also``."""
    names = [name for kind in kinds for name in _field_names(cast("Any", kind))]
    return {name: bindparam(f"{_PARAMETER_PREFIX}{name}") for name in (*names, *also)}


def new_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values for the parameters that ``new_parameters`` made."""
    return {f"{_PARAMETER_PREFIX}{name}": item for name, item in values.items()}


def without(values: dict[str, Any], *names: str) -> dict[str, Any]:
    """The values without those of these names."""
    return {name: item for name, item in values.items() if name not in names}


def sums_columns(prefix: str, sums: Sums) -> dict[str, int]:
    """``Sums`` as its columns: ``<prefix>_tokens`` and so on."""
    return {f"{prefix}_{name}": number for name, number in columns(sums).items()}


def sums_from_row(prefix: str, row: Any) -> Sums:
    """``Sums`` from the columns that ``sums_columns`` names."""
    return Sums(**{item.name: getattr(row, f"{prefix}_{item.name}") for item in fields(Sums)})


def as_dict(mapping: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A mapping as a ``dict``, since the JSON encoder takes nothing else."""
    return None if mapping is None else dict(mapping)

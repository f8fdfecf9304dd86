"""Combines two values made of counts field by field, as in a sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Counts = TypeVar("Counts", bound="DataclassInstance")


def fieldwise(combine: Callable[[int, int], int], one: Counts, other: Counts) -> Counts:
    """One value with each of its fields combined with the other's."""
    names = [item.name for item in fields(one)]
    return replace(one, **{name: combine(getattr(one, name), getattr(other, name)) for name in names})

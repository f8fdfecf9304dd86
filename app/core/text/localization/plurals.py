"""Which plural form a number takes: the rules of the CLDR, read from text as the CLDR writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from app.core.text.patterns import compiled

FORMS: Final = ("zero", "one", "two", "few", "many", "other")
"""The names that the CLDR gives to plural forms."""
OTHER: Final = "other"
"""The form of every number that no rule takes; every language has it."""

_RELATION: Final = compiled(r"([nivwftce])(?: % (\d+))? (=|!=) (\d+(?:\.\.\d+)?(?:, ?\d+(?:\.\.\d+)?)*)")


@dataclass(frozen=True, slots=True)
class _Relation:
    operand: str
    modulus: int | None
    is_equal: bool
    ranges: tuple[tuple[int, int], ...]

    def holds(self, operands: Mapping[str, float]) -> bool:
        value = operands[self.operand]
        if self.modulus is not None:
            value %= self.modulus
        return any(value == int(value) and low <= value <= high for low, high in self.ranges) == self.is_equal


@dataclass(frozen=True, slots=True)
class PluralRules:
    """A language's rules; each is alternatives of conditions that all must hold."""

    rules: tuple[tuple[str, tuple[tuple[_Relation, ...], ...]], ...]

    def form(self, number: str) -> str:
        """The form of a number as it is written, with ``.`` before its fraction: ``1``, ``1.0`` and ``1.5`` differ."""
        operands = _operands(number)
        for name, alternatives in self.rules:
            if any(all(relation.holds(operands) for relation in relations) for relations in alternatives):
                return name
        return OTHER


def plural_rules(written: Mapping[str, str]) -> PluralRules:
    """Read rules such as ``{"one": "i = 1 and v = 0"}``.

    Raises:
        ValueError: A name is none of the CLDR's forms, or a rule cannot be read.
    """
    if unknown := sorted(set(written) - set(FORMS)):
        raise ValueError(f"unknown plural form: {', '.join(unknown)}")
    return PluralRules(tuple((name, _alternatives(rule)) for name, rule in written.items() if name != OTHER))


def _alternatives(rule: str) -> tuple[tuple[_Relation, ...], ...]:
    return tuple(tuple(_relation(one.strip()) for one in part.split(" and ")) for part in rule.split(" or "))


def _relation(text: str) -> _Relation:
    found = _RELATION.fullmatch(text)
    if found is None:
        raise ValueError(f"not a condition of a plural rule: {text!r}")
    ends = [one.strip().partition("..") for one in found[4].split(",")]
    ranges = tuple((int(low), int(high or low)) for low, _, high in ends)
    return _Relation(found[1], int(found[2]) if found[2] else None, found[3] == "=", ranges)


def _operands(number: str) -> dict[str, float]:
    """The CLDR's operands: value, integer part, and the fraction with (v, f) and without (w, t) its last zeros."""
    whole, _, fraction = number.lstrip("-").partition(".")
    shown = fraction.rstrip("0")
    return {
        "n": float(f"{whole or 0}.{shown or 0}"),
        "i": int(whole or 0),
        "v": len(fraction),
        "w": len(shown),
        "f": int(fraction or 0),
        "t": int(shown or 0),
        "c": 0,
        "e": 0,
    }

"""``python -m bench.trust.formatted``: whether numbers and days are found as the CLDR formats them for many languages.

Each random value is shown as one language writes it and stated in plain digits, and the other way round. The last
column is a control: another value of the same size is stated, and has to fail.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final

from babel.dates import format_date
from babel.numbers import format_currency, format_decimal

from app.core.text.values import ValueIndex, values
from bench.report import print_table, take_no_options, write_json

LOCALES: Final = (
    "ar", "ar_MA", "bn_IN", "cs", "de", "de_CH", "el", "en", "en_IN", "es", "es_MX", "fa", "fr", "fr_CH", "gu_IN", "he",
    "hi_IN", "hr", "hu", "id", "it", "ja", "ko", "mr_IN", "nl", "pl", "pt_BR", "pt_PT", "ru", "sk", "sl", "sr", "sv",
    "ta_IN", "te_IN", "th", "tr", "uk", "vi", "zh",
)  # fmt: skip
_AT: Final = datetime(2026, 11, 3, 12, tzinfo=UTC)
_EACH: Final = 40
_FIRST_DAY: Final = date(2026, 1, 1)
SENTENCES: Final[Mapping[str, str]] = {
    "es": "La reunión es el {}.", "es_MX": "La reunión es el {}.", "fr": "La réunion est le {}.",
    "fr_CH": "La réunion est le {}.", "it": "La riunione è il {}.", "pt_BR": "A reunião é em {}.",
    "pt_PT": "A reunião é em {}.", "tr": "Toplantı {} günü.",
}  # fmt: skip
"""Sentences for days with the abbreviated name of their month, which is read only where its language is known."""
Pair = tuple[str, str]
"""A value as a language writes it, and in plain digits."""


def _number(dice: random.Random, locale: str) -> Pair:
    number = dice.randint(1_000, 10 ** dice.randint(4, 9))
    return format_decimal(number, locale=locale), str(number)


def _decimals(dice: random.Random, locale: str) -> Pair:
    number = dice.randint(100_100, 999_999_900) / 100
    return format_decimal(number, locale=locale), f"{number:.2f}"


def _money(dice: random.Random, locale: str) -> Pair:
    number = dice.randint(1_000, 99_999_999) / 100
    return format_currency(number, "INR", locale=locale), f"{number:.2f} INR"


def _day(dice: random.Random, locale: str) -> Pair:
    day = _FIRST_DAY + timedelta(days=dice.randrange(600))
    return format_date(day, "short", locale=locale), day.isoformat()


def _day_by_name(dice: random.Random, locale: str) -> Pair:
    day = _FIRST_DAY + timedelta(days=dice.randrange(600))
    return SENTENCES.get(locale, "{}").format(format_date(day, "medium", locale=locale)), day.isoformat()


KINDS: Final[Mapping[str, Callable[[random.Random, str], Pair]]] = {
    "numbers": _number,
    "decimals": _decimals,
    "money": _money,
    "days": _day,
    "days by name": _day_by_name,
}


def failing(kind: str, locale: str) -> tuple[int, int]:
    """How many of the values of a kind are not found, and how many other values are found instead."""
    dice, missed, accepted = random.Random(f"{kind} {locale}"), 0, 0
    for _ in range(_EACH):
        written, plain = KINDS[kind](dice, locale)
        _, other = KINDS[kind](dice, locale)
        missed += not (_is_found(plain, written) and _is_found(written, plain))
        accepted += other != plain and _is_found(other, written)
    return missed, accepted


def _is_found(stated: str, shown: str) -> bool:
    texts, claimed = ValueIndex(), values(stated, _AT)
    texts.add(1, shown, _AT)
    return bool(claimed) and all(map(texts.holds, claimed))


def main() -> int:
    """Run the command; return its exit status."""
    found = {locale: {kind: failing(kind, locale) for kind in KINDS} for locale in LOCALES}
    total: Counter[str] = Counter()
    rows: list[list[str]] = []
    for locale, kinds in found.items():
        for kind, (missed, accepted) in kinds.items():
            total[kind] += missed
            total["others"] += accepted
        if any(map(any, kinds.values())):
            others = sum(accepted for _, accepted in kinds.values())
            rows.append([locale, *(f"{missed}/{_EACH}" for missed, _ in kinds.values()), str(others)])
    rows.append(["all", *(f"{total[kind]}/{_EACH * len(LOCALES)}" for kind in KINDS), str(total["others"])])
    print_table(["language", *(f"{kind}, failing" for kind in KINDS), "others, accepted"], rows)
    write_json("trust-formatted", found)
    return 0


if __name__ == "__main__":
    take_no_options(__doc__)
    sys.exit(main())

"""Values that follow from others by one calculation: "150 + 40 + 30 is 220", "ten days before 12 May is 2 May".

With enough operands nearly every number follows from some of them. So results are looked through from the likeliest
kind of calculation to the least likely, and only as long as they cover no more than a small share of the values that
could as well have stood there: other values of about the same size, told with the same precision. A value from nowhere
passes by chance no more often than that. What a statement calculates from its own values needs no such guard.
"""

from __future__ import annotations

from itertools import repeat
from typing import Final

from app.core.text.values import Value
from app.core.validation.odds import WEIGHTS
from app.core.validation.sought import Basis, Sought
from app.core.validation.sought_amounts import sought_amount
from app.core.validation.sought_days import sought_date, sought_time, sought_year

CHANCE: Final = 0.035
"""The share of the values like one that may follow as well."""
_FIRST_YEAR, _LAST_YEAR = 1900, 2100


def follows(value: Value, basis: Basis) -> bool:
    """Whether a value follows by one calculation, and few other values like it do."""
    sought = sought_of(value)
    if sought is None:
        return False
    if any(sought.place(result) == sought.at for results in sought.within(basis) for result in results):
        return True
    shown = {sought.place(result) for result in sought.shown(basis)}
    best: dict[int, float] = {}
    for marks, results in sought.derivations(basis):
        weight = sum(map(WEIGHTS.get, marks, repeat(0.0)))
        for result in results:
            place = sought.place(result)
            if place is not None and sought.first <= place <= sought.last and place not in shown:
                best[place] = max(weight, best.get(place, -99.0))
    if sought.at not in best:
        return False
    share = sum(weight >= best[sought.at] for weight in best.values()) / (sought.last - sought.first + 1)
    return share <= CHANCE


def sought_of(value: Value) -> Sought | None:
    """The value among those that are like it; ``None`` for one that follows from nothing."""
    if value.kind == "date":
        return sought_date(value.forms)
    if value.kind == "time":
        return sought_time(value.forms)
    if value.kind not in {"number", "money"} or not value.amount:
        return None
    is_year = not value.base and _FIRST_YEAR <= value.amount <= _LAST_YEAR and value.text.isdecimal()
    return sought_year(round(value.amount)) if is_year else sought_amount(value)

"""Values that follow from others by one calculation: "150 + 40 + 30 is 220", "ten days before 12 May is 2 May".

With enough operands nearly every number follows from some of them. So kinds of calculations are tried from the
likeliest to the least likely, and only while their results cover a small share of the values that the statement could
have had instead: other values of about the same size and the same precision. An invented value passes by chance no
more often than that. A calculation from a statement's own values needs no such guard.
"""

from __future__ import annotations

from itertools import repeat
from typing import Final

from app.core.text.values import Value
from app.core.validation.expected_amounts import expected_amount
from app.core.validation.expected_days import expected_date, expected_time, expected_year
from app.core.validation.expected_values import DAY_SECONDS, CalculationBasis, ExpectedValue
from app.core.validation.odds import FEATURE_WEIGHTS

MAX_MATCHING_SHARE: Final = 0.035
"""The largest share of the values similar to a value that may follow by calculations that are as likely."""
_MIN_LOG_ODDS: Final = 1.0
_MAX_MATCHING_SHARE_IF_LIKELY: Final = 0.08
"""The least log odds, and the largest such share, for a length of time in a narrative ("seven weeks"). Since few other
lengths are similar to it, it needs a likely calculation, but then a larger share of them may follow as well."""


def follows_by_calculation(value: Value, basis: CalculationBasis) -> bool:
    """Whether a value follows by one calculation while few similar values do."""
    expected = expected_value(value)
    if expected is None:
        return False
    if any(
        expected.position_of(result) == expected.position
        for results in expected.results_within_statement(basis)
        for result in results
    ):
        return True
    known = {expected.position_of(result) for result in expected.known_operands(basis)}
    best_odds: dict[int, float] = {}
    for features, results in expected.derivations(basis):
        odds = sum(map(FEATURE_WEIGHTS.get, features, repeat(0.0)))
        for result in results:
            position = expected.position_of(result)
            if position is not None and expected.first <= position <= expected.last and position not in known:
                best_odds[position] = max(odds, best_odds.get(position, -99.0))
    if expected.position not in best_odds:
        return False
    share = sum(odds >= best_odds[expected.position] for odds in best_odds.values()) / (
        expected.last - expected.first + 1
    )
    if basis.newest_day and _is_in_days_or_longer(value):
        return best_odds[expected.position] >= _MIN_LOG_ODDS and share <= _MAX_MATCHING_SHARE_IF_LIKELY
    return share <= MAX_MATCHING_SHARE


def _is_in_days_or_longer(value: Value) -> bool:
    return value.base == "mo" or (value.base == "s" and value.factor >= DAY_SECONDS)


def expected_value(value: Value) -> ExpectedValue | None:
    """The value in the row of values similar to it; ``None`` for a value that cannot be calculated."""
    if value.kind == "date":
        return expected_date(value.forms)
    if value.kind == "time":
        return expected_time(value.forms)
    if value.kind not in {"number", "money"} or not value.amount:
        return None
    return expected_year(round(value.amount)) if value.reads_as_year else expected_amount(value)

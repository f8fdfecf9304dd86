"""Calculations that a statement writes out."""

from __future__ import annotations

import pytest

from app.core.text.values import values
from app.core.validation.exact_checks import unsupported_values
from app.core.validation.source_texts import SourceTexts
from tests.unit.talk import talk


def _failing(said: str, told: str) -> list[str]:
    shown = SourceTexts(talk(said))
    return [one.text for one in unsupported_values(told, values(told), shown, [1])]


@pytest.mark.parametrize(
    ("said", "right", "wrong"),
    [
        ("61 invoices of 23 customers", "2.7 a customer (61 / 23)", "2.9 a customer (61 / 23)"),
        ("off £200 of the 13,840", "a reduction of 1.4 % (200 of 13,840)", "a reduction of 1.6 % (200 of 13,840)"),
        ("455 menus at 0.62, less 15 %", "239.79 (455 x 0.62 x 0.85)", "239.19 (455 x 0.62 x 0.85)"),
        ("卖了9，11，6，8", "7日到10日卖34盒（9+11+6+8）", "7日到10日卖37盒（9+11+6+8）"),
        ("минус 2,2 кг", "по 0,55 в неделю (2,2 / 4)", "по 0,57 в неделю (2,2 / 4)"),
    ],
)
def test_a_written_out_calculation_proves_its_result_and_no_other(said: str, right: str, wrong: str) -> None:
    assert not _failing(said, right)
    assert _failing(said, wrong)


def test_numbers_that_nobody_told_prove_nothing() -> None:
    said = "Tamsin takes £1,335, the mat is £289"
    assert not _failing(said, "together £1,624 (1,335 + 289)")
    assert _failing(said, "together £1,684 (1,335 + 349)") == ["£1,684"]
    assert _failing("168 300 шагов, экономия 300, в мае 241 900", "418 200 шагов (176 300 + 241 900)")


def test_a_number_that_follows_itself_proves_what_stands_before_it() -> None:
    said = "31, 188, 174 and 19 MB, 412 MB in all"
    assert not _failing(said, "88 % of it (362 of 412)")
    assert _failing(said, "82 % of it (362 of 412)") == ["82 %"]
    assert _failing(said, "84 % of it (347 of 412)"), "control: nothing gives 347"


def test_a_value_whose_own_calculation_says_otherwise_follows_from_nothing_else() -> None:
    said = "龙井库存4788元，总成本13840元"
    assert not _failing(said, "龙井占34.6%（4788÷13840）")
    assert _failing(said, "龙井占36.4%（4788÷13840）")

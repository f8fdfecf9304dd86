"""Cases 8 and 28: exact values are recognised in scripts without blanks, and when they are written in words."""

from __future__ import annotations

import pytest

from app.core.text.values import values
from app.core.validation import exact_checks
from app.core.validation.exact_checks import examine_candidate
from app.core.validation.source_texts import SourceTexts
from tests.corpus import assert_verdicts, corpus
from tests.unit.talk import candidate, item, request, talk
from tests.unit.timing import assert_linear


def test_what_only_looks_like_one_is_none() -> None:
    assert_verdicts(corpus("no_values"), lambda text: values(text) != ())


INVENTED = ("我们的总预算是6000元，不能再多了。", "总预算是9000元，不能超过", 1)


@pytest.mark.case("8", "28")
@pytest.mark.parametrize(
    ("said", "told", "repaired"),
    [
        ("我们的总预算是6000元，不能再多了。", "总预算是6000元，不能超过", 0),
        INVENTED,
        ("我们的总预算是6000元，不能再多了。", "总预算九千元，不能超过", 1),
        ("会议在下午3点开始，一共有17个人参加。", "下午3点的会议有19个人参加", 1),
        ("会议在下午3点开始，一共有17个人参加。", "下午3点的会议有17个人参加", 0),
    ],
)
def test_an_invented_amount_between_chinese_signs_is_found(said: str, told: str, repaired: int) -> None:
    span = talk("你好，我们来谈谈这件事情。", "好的。", said, "明白了。")
    asked = request(span)
    assert len(examine_candidate(candidate(item(told, 3)), SourceTexts.of(asked)).failures) == repaired


@pytest.mark.control("8", "28")
def test_control_where_no_value_is_read_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_checks, "values", lambda _: ())
    with pytest.raises(AssertionError):
        test_an_invented_amount_between_chinese_signs_is_found(*INVENTED)


@pytest.mark.long
@pytest.mark.parametrize("unit", ["half ", "three and a half ", "пол", "halb ", "first of ", "с половиной ", "元1"])
def test_hostile_text_is_read_in_linear_time(unit: str) -> None:
    assert_linear(values, unit * 12_000)

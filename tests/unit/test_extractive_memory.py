"""A fact of the first turn, with its exact identifiers, is there after many compactions by the pure core."""

from __future__ import annotations

from functools import cache

import pytest

from app.core.model.conversation import Role
from bench.replay import Replay

FACTS = {
    "en": (
        (
            "Hi! I run the depot in Turku. Our account is TK-88213-B, the contact is mira.salo@depot.example, the"
            " yearly budget is 48,700 euros and the audit is on 17 September 2027."
        ),
        ("TK-88213-B", "mira.salo@depot.example", "48,700 euros", "17 September 2027"),
    ),
    "ru": (
        (
            "Здравствуйте! Я веду склад в Казани. Наш счёт TK-88213-B, почта mira.salo@depot.example, годовой бюджет"
            " 48 700 рублей, проверка 17 сентября 2027."
        ),
        ("TK-88213-B", "mira.salo@depot.example", "48 700 рублей", "17 сентября 2027"),
    ),
    "zh": (
        (
            "你好！我负责图尔库的仓库。我们的账号是 TK-88213-B，联系邮箱是 mira.salo@depot.example，年度预算是"
            " $48,700，审计日期是2027年9月17日。"
        ),
        ("TK-88213-B", "mira.salo@depot.example", "$48,700", "2027年9月17日"),
    ),
}
FILLERS = {
    "en": (
        "Shipment {n} left for pier {m}: order HX-{n}07-{m}, paid {n},{m}50 euros on {d} May 2027 by card.",
        "The lamp of hall {m} needs part LP-{n}-{m}; call {n}5 550 {m}18 before {d}:30 and ask for crate {n}.",
        "Thanks. I have put order HX-{n}07-{m} and the {n},{m}50 euros for pier {m} on the list for {d} May 2027.",
    ),
    "ru": (
        "Груз {n} ушёл на причал {m}: заказ HX-{n}07-{m}, оплата {n} {m}50 рублей {d} мая 2027 картой.",
        "Для лампы зала {m} нужна деталь LP-{n}-{m}; звоните {n}5 550 {m}18 до {d}:30 и спросите ящик {n}.",
        "Спасибо. Заказ HX-{n}07-{m} и {n} {m}50 рублей для причала {m} записаны на {d} мая 2027.",
    ),
    "zh": (
        "第{n}批货物已发往{m}号码头：订单 HX-{n}07-{m}，{d}日用卡支付了 ${n},{m}50。",
        "{m}号大厅的灯需要零件 LP-{n}-{m}；请在 {d}:30 之前拨打 {n}5 550 {m}18，找{n}号箱子。",
        "谢谢。订单 HX-{n}07-{m} 和 ${n},{m}50 已经记录在{m}号码头的清单上。",
    ),
}
EVERYDAY, LONG = (1, 3, 5, 10), 30
AFTER = (*EVERYDAY, pytest.param(LONG, marks=pytest.mark.long))


@cache
def remembered(window: int, language: str, most: int = max(EVERYDAY), *, forgets: bool = False) -> dict[int, str]:
    """State and anchors after each number of compactions; the first message is held too, but does not count here."""
    talk = Replay.in_window(window)
    talk.say("user", FACTS[language][0])
    talk.say("assistant", {"en": "Understood.", "ru": "Понятно.", "zh": "明白。"}[language])
    found: dict[int, str] = {}
    number = 1
    at_once = max(window // 4_000, 1)  # messages are longer if there is more room for them
    while talk.compactions < most:
        for place, filler in enumerate(FILLERS[language]):
            role: Role = "assistant" if place == len(FILLERS[language]) - 1 else "user"
            numbers = range(number, number + at_once)
            talk.say(role, " ".join(filler.format(n=n + 10, m=n % 7 + 2, d=n % 27 + 1) for n in numbers))
        number += at_once
        if talk.is_due():
            before = talk.compactions
            talk.fold()
            assert talk.compactions == before + 1, talk.refused
            if forgets:
                talk.forget()
            found[talk.compactions] = talk.remembered()
    assert talk.refused == []
    return found


@pytest.mark.long
@pytest.mark.case("23")
@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("language", ["en", "ru", "zh"])
def test_a_fact_of_the_first_turn_is_remembered_in_a_small_window(language: str, after: int) -> None:
    known = remembered(4_000, language, LONG if after == LONG else max(EVERYDAY))[after]
    assert [value for value in FACTS[language][1] if value not in known] == []


@pytest.mark.long
@pytest.mark.case("23")
@pytest.mark.parametrize("after", [*EVERYDAY, LONG])
def test_a_fact_of_the_first_turn_is_remembered_in_a_large_window(after: int) -> None:
    known = remembered(32_000, "en", LONG)[after]
    assert [value for value in FACTS["en"][1] if value not in known] == []


@pytest.mark.control("23")
def test_the_check_notices_a_compactor_that_forgets() -> None:
    known = remembered(4_000, "en", 1, forgets=True)[1]
    assert all(value not in known for value in FACTS["en"][1])


def test_what_came_last_is_remembered_too() -> None:
    talk = remembered(4_000, "en")
    assert "HX-" in talk[5]
    assert talk[5] != talk[3]

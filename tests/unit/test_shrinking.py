"""A state in less room than it takes: what tells most stays, of equals the newer, and it always fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.domain.merging.pruning import state_of
from app.domain.merging.shrinking import shrunk
from app.domain.schemas.session import SESSION
from app.domain.states.state import StateEntry
from app.domain.weighing.tokens import estimate_text


def entries(*texts: str) -> list[StateEntry]:
    return [
        StateEntry(id=f"F{number}", field="logos", role="fact", text=text, since_version=1)
        for number, text in enumerate(texts, start=1)
    ]


def within(tokens: int) -> Callable[[Mapping[str, Any]], bool]:
    return lambda state: estimate_text("\n".join(state["logos"])) <= tokens


def told(found: tuple[StateEntry, ...]) -> str:
    return "\n".join(entry.text for entry in found)


def test_what_fits_is_left_alone() -> None:
    given_entries = entries("User: My cat is called Mia.", "Tool: id=AB12, kind=cat")

    assert shrunk(SESSION, given_entries, fits=within(1_000)) == tuple(given_entries)


def test_exact_values_stay_and_talk_goes() -> None:
    given_entries = entries(
        "User: It would be rather nice to hear something about the general mood over there some day.",
        "Tool: reservation_id=ZX81QK, origin=LIS; payment_history: gift_card_12345 200",
        "Assistant: I am glad that everything went so well and hope for more of the same soon.",
    )
    found = told(shrunk(SESSION, given_entries, fits=within(30)))

    assert "ZX81QK" in found
    assert "gift_card_12345" in found
    assert "mood" not in found


def test_of_equals_the_older_goes() -> None:
    given_entries = entries(*(f"User: The tower number {n} costs ${n}00 a night." for n in range(10, 20)))
    found = told(shrunk(SESSION, given_entries, fits=within(60)))

    assert "$1900" in found
    assert "$1000" not in found


def test_what_stands_beside_the_state_need_not_be_told() -> None:
    said = "User: The tower costs $900 a night."
    given_entries = entries("User: The tower costs $900 a night.", "User: The bridge costs $700 a night.")
    found = told(shrunk(SESSION, given_entries, fits=within(14), said=[said.removeprefix("User: ")]))

    assert found == "User: The bridge costs $700 a night."


def test_russian_and_chinese_entries_are_cut_clause_by_clause() -> None:
    russian = entries("Пользователь: Номер договора ТК-48213; Погода была просто прекрасная весь этот долгий день")
    chinese = entries("用户: 合同编号是 KD-48213; 今天的天气真的非常好大家都很开心一起去散步了很久很久")

    assert "ТК-48213" in told(shrunk(SESSION, russian, fits=within(18)))
    assert "KD-48213" in told(shrunk(SESSION, chinese, fits=within(18)))


@given(
    st.lists(
        st.sampled_from(["User: A cat; A dog 12", "Tool: id=AB12, x=LIS", "Tool: a: B2C3 7, D4E5 8", "Plain words"]),
        max_size=12,
    ),
    st.integers(0, 80),
)
def test_it_always_fits_and_keeps_the_order(texts: list[str], room: int) -> None:
    given_entries = entries(*texts)
    found = shrunk(SESSION, given_entries, fits=within(room))

    assert within(room)(state_of(SESSION, found))
    assert [entry.id for entry in found] == [
        entry.id for entry in given_entries if entry.id in {one.id for one in found}
    ]

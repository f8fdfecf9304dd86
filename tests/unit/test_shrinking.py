"""A state in less room than it takes: what tells most stays, of equal texts the newer, and it always fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.schemas.session import SESSION
from app.core.model.state import StateEntry
from app.core.state.pruning import state_of
from app.core.state.shrinking import most_informative, shrunk_entries
from app.core.text.token_counts import estimate_text


def entries(*texts: str) -> list[StateEntry]:
    return [
        StateEntry(id=f"F{number}", field="logos", role="fact", text=text, since_version=1)
        for number, text in enumerate(texts, start=1)
    ]


def beyond(tokens: int) -> Callable[[Mapping[str, Any]], int]:
    return lambda state: estimate_text("\n".join(state["logos"])) - tokens


def told(found: tuple[StateEntry, ...]) -> str:
    return "\n".join(entry.text for entry in found)


def test_what_fits_is_left_alone() -> None:
    given_entries = entries("User: My cat is called Mia.", "Tool: id=AB12, kind=cat")

    assert shrunk_entries(SESSION, given_entries, over=beyond(1_000)) == tuple(given_entries)


def test_exact_values_stay_and_talk_goes() -> None:
    given_entries = entries(
        "User: It would be rather nice to hear something about the general mood over there some day.",
        "Tool: reservation_id=ZX81QK, origin=LIS; payment_history: gift_card_12345 200",
        "Assistant: I am glad that everything went so well and hope for more of the same soon.",
    )
    found = told(shrunk_entries(SESSION, given_entries, over=beyond(30)))

    assert "ZX81QK" in found
    assert "gift_card_12345" in found
    assert "mood" not in found


def test_of_equals_the_older_goes() -> None:
    given_entries = entries(*(f"User: The tower number {n} costs ${n}00 a night." for n in range(10, 20)))
    found = told(shrunk_entries(SESSION, given_entries, over=beyond(60)))

    assert "$1900" in found
    assert "$1000" not in found


def test_what_is_asked_for_goes_last() -> None:
    given_entries = entries(*(f"User: The tower number {n} costs ${n}00 a night." for n in range(10, 20)))
    found = told(
        shrunk_entries(SESSION, given_entries, over=beyond(60), relevance=lambda text: float("number 10" in text))
    )

    assert "$1000" in found
    assert "$1900" in found


@pytest.mark.parametrize(("is_doubted", "stays", "goes"), [(True, "$1100", "$1200"), (False, "$1200", "$1100")])
def test_what_is_in_doubt_goes_first_and_never_passes_for_the_newest(
    *, is_doubted: bool, stays: str, goes: str
) -> None:
    sure, doubted = entries("User: The tower costs $1100 a night.", "User: The bridge costs $1200 now.")
    given_entries = [sure, replace(doubted, in_doubt=is_doubted)]
    found = told(shrunk_entries(SESSION, given_entries, over=beyond(16)))

    assert stays in found
    assert goes not in found


def test_a_question_brings_what_is_in_doubt_after_what_holds() -> None:
    sure, other = entries("User: The tower costs $1100 a night.", "User: It rains.")
    doubted = [
        replace(one, id=f"F{number}", in_doubt=True)
        for number, one in enumerate(entries("User: The bridge costs $1200.", "User: A boat costs $1300."), start=3)
    ]
    given_entries = [sure, other, *doubted]

    def within(room: int, word: str) -> str:
        return told(
            shrunk_entries(SESSION, given_entries, over=beyond(room), relevance=lambda text: float(word in text))
        )

    assert "boat" in within(35, "boat")
    assert "bridge" not in within(35, "boat")
    assert "bridge" in within(35, "bridge")
    assert within(14, "boat") == sure.text


def test_what_stands_beside_the_state_need_not_be_told() -> None:
    said = "User: The tower costs $900 a night."
    given_entries = entries("User: The tower costs $900 a night.", "User: The bridge costs $700 a night.")
    found = told(shrunk_entries(SESSION, given_entries, over=beyond(14), served_texts=[said.removeprefix("User: ")]))

    assert found == "User: The bridge costs $700 a night."


@pytest.mark.parametrize("price", ["$384.31", "€384.31,", "(384.31)"])
def test_a_price_that_was_talked_of_tells_which_record_is_meant(price: str) -> None:
    shoes = "Tool: variants: 8977325428, 338.07 | 8069974489, 384.31 | 8654482058, 148.25"
    found = told(
        shrunk_entries(SESSION, entries(shoes), over=beyond(20), served_texts=[f"The new one costs {price} today."])
    )

    assert found == "Tool: variants: 8069974489"


def test_records_of_one_list_stand_behind_one_name_also_when_they_were_apart() -> None:
    parts = ("Tool: cards: card_11, visa | card_22, visa", "Tool: cards: card_33, visa", "User: It rained.")
    found = told(shrunk_entries(SESSION, entries(*parts), over=beyond(25)))

    assert found.startswith("Tool: cards: card_11, visa | card_22 | card_33")


FILES = "Tool: files: 1af9c22, Budget plan, fld_11 | 2be8d33, Release notes, fld_22 | 3cf7e44, Venue list, fld_33"


@pytest.mark.parametrize(
    ("name", "meant"), [("Budget plan", "1af9c22"), ("Release notes", "2be8d33"), ("Venue list", "3cf7e44")]
)
def test_the_record_that_was_talked_of_stays_and_the_others_give_way(name: str, meant: str) -> None:
    talk = f"User: Please share the {name} with Rosa."
    others = {"1af9c22", "2be8d33", "3cf7e44"} - {meant}

    for said, heard in (([talk], []), ([], [talk])):
        found = told(shrunk_entries(SESSION, entries(FILES), over=beyond(16), served_texts=said, covered_texts=heard))
        assert meant in found
        assert not any(other in found for other in others)


@given(st.integers(0, 60))
def test_a_value_never_seems_to_be_of_the_record_beside_its_own(room: int) -> None:
    found = told(shrunk_entries(SESSION, entries(FILES), over=beyond(room), served_texts=["the Release notes"]))
    whole = [set(record.split(", ")) for record in FILES.partition("files: ")[2].split(" | ")]

    for record in found.partition("files: ")[2].split(" | ") if found else []:
        assert any(set(record.split(", ")) <= one for one in whole)


def test_words_of_a_record_do_not_stay_without_its_id() -> None:
    for room in range(40):
        found = told(shrunk_entries(SESSION, entries(FILES), over=beyond(room)))

        assert ("Budget plan" not in found) or ("1af9c22" in found)


def test_russian_and_chinese_entries_are_cut_clause_by_clause() -> None:
    russian = entries("Пользователь: Номер договора ТК-48213; Погода была просто прекрасная весь этот долгий день")
    chinese = entries("用户: 合同编号是 KD-48213; 今天的天气真的非常好大家都很开心一起去散步了很久很久")

    assert "ТК-48213" in told(shrunk_entries(SESSION, russian, over=beyond(18)))
    assert "KD-48213" in told(shrunk_entries(SESSION, chinese, over=beyond(18)))


@given(
    st.lists(
        st.sampled_from(["User: A cat; A dog 12", "Tool: id=AB12, x=LIS", "Tool: a: B2C3 7, D4E5 8", "Plain words"]),
        max_size=12,
    ),
    st.integers(0, 80),
)
def test_it_always_fits_and_keeps_the_order(texts: list[str], room: int) -> None:
    given_entries = entries(*texts)
    found = shrunk_entries(SESSION, given_entries, over=beyond(room))

    assert beyond(room)(state_of(SESSION, found)) <= 0
    assert [entry.id for entry in found] == [
        entry.id for entry in given_entries if entry.id in {one.id for one in found}
    ]


def test_a_quotation_stays_or_goes_as_a_whole() -> None:
    """The second half alone would be nobody's words, with a quotation mark that closes nothing."""
    quotation = 'The assistant wrote: "The rack is in stock at €216.50 a piece; from 12 pieces there is 5 % off."'
    texts = ["User: The bench from order 71370 wobbles; it came on Monday.", quotation]
    given_entries = entries(*texts)
    seen = set[bool]()
    for room in range(5, estimate_text("\n".join(texts)) + 1):
        found = [one.text for one in shrunk_entries(SESSION, given_entries, over=beyond(room))]
        seen.add(quotation in found)
        assert all(text == quotation or text.startswith("User: ") for text in found), room
    assert seen == {True, False}


def test_what_goes_on_behind_a_semicolon_of_the_speakers_own_does_not_stand_alone() -> None:
    """Only clauses that were joined begin a new statement; "expect it by noon" alone is about nothing."""
    sentence = "Order 71559 was signed for by a neighbour at number 12, parcel 32-517159; expect it by noon on 12 April"
    texts = [f"Assistant: {sentence}; The rack costs €216.50 a piece.", "User: The bench from order 71370 wobbles."]
    given_entries = entries(*texts)
    seen = set[str]()
    for room in range(5, estimate_text("\n".join(texts)) + 1):
        found = [one.text for one in shrunk_entries(SESSION, given_entries, over=beyond(room))]
        seen |= {text for text in found if text.startswith("Assistant: ")}
    assert seen <= {texts[0], f"Assistant: {sentence}", "Assistant: The rack costs €216.50 a piece."}
    assert len(seen) > 1, "control: an entry is still told by the clause"


LINES = [
    StateEntry(id="#0", field="#0", role="fact", text="User: Let's pay $900 by card. Then we meet.", since_version=0),
    StateEntry(id="#1", field="#1", role="fact", text="User: It was fine, and then we saw about it.", since_version=0),
]
"""Lines that are served next to the state, such as anchors."""


def kept_with_lines(given_entries: list[StateEntry], room: int) -> dict[str, str]:
    kept = most_informative(
        given_entries,
        over=lambda kept: estimate_text("\n".join(one.text for one in kept)) - room,
        served_texts=(),
        covered_texts=(),
        relevance=None,
        whole_tokens={one.id: estimate_text(one.text) for one in given_entries if one.id.startswith("#")},
    )
    return {one.id: one.text for one in kept}


def test_a_line_stays_word_for_word_or_not_at_all_and_is_weighed_as_an_entry_is() -> None:
    code, talk = entries("User: The door code is 4711-B.", "User: It is so nice to talk to you about all of it today.")
    room = estimate_text(f"{code.text}\n{LINES[0].text}")

    assert list(kept_with_lines([code, talk, *LINES], 1_000)) == ["F1", "F2", "#0", "#1"]
    assert list(kept_with_lines([code, talk, *LINES], room)) == ["F1", "#0"], "exact values, of state and lines"
    doubted = kept_with_lines([code, talk, replace(LINES[0], in_doubt=True), LINES[1]], room)
    assert "#0" not in doubted, "control: what is in doubt goes first, whatever it tells"
    for less in range(room):
        kept = kept_with_lines([code, talk, *LINES], less)
        assert all(kept[line.id] == line.text for line in LINES if line.id in kept)


def test_what_a_line_says_an_entry_does_not_say_again() -> None:
    train, bus = entries("User: The train to Ghent leaves at 18:40.", "User: The bus to Liege leaves at 19:20.")
    line = replace(LINES[0], text=train.text)
    room = estimate_text(f"{train.text}\n{bus.text}")

    assert len({*kept_with_lines([train, bus, line], room).values()}) == 2
    other = replace(line, text="User: The boat to Bruges leaves at 20:30.")
    more = estimate_text(f"{train.text}\n{bus.text}\n{other.text}")
    assert len(kept_with_lines([train, bus, other], more)) == 3, "control: another value is news"

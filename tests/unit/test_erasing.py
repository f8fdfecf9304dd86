"""What remains of an erased message, and how texts made of it are distinguished from others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.conversation import Message
from app.core.state import erasing
from app.core.state.erasing import (
    ErasedTexts,
    RemainingMessages,
    entries_without_erased,
    full_text,
    quotes_erased,
    summary_without_erased,
    suspicious_entries,
    tombstone,
    with_erased_calls,
)
from app.core.text.token_counts import weigh
from tests.corpus import assert_verdicts, corpus
from tests.unit.talk import entry, message
from tests.unit.timing import assert_linear_in

SECRET = "The vault in Trondheim opens with kestrel-7741, and Ragnhild keeps 12 500 euros in the violet envelope."
OTHERS = {
    1: "We plan the move to the new office in March, and the desks come from Nordwind.",
    2: "The desks cost 240 euros each. The envelope with the order form is on the table.",
    4: "Ragnhild orders the chairs.",
}
ERASED = ErasedTexts([SECRET], {3})
REMAINING = RemainingMessages(OTHERS, ERASED)


def kept(*entries: Any) -> list[str]:
    return [one.text for one in entries_without_erased(entries, ERASED, REMAINING)]


def test_an_entry_that_names_the_message_goes_whatever_it_says() -> None:
    assert kept(entry("F1", "Desks come from Nordwind", seqs=[1]), entry("F2", "Nothing alike", seqs=[1, 3])) == [
        "Desks come from Nordwind"
    ]


def test_what_only_the_message_said_goes_also_with_a_wrong_provenance_and_what_others_say_too_stays() -> None:
    def goes(text: dict[str, Any]) -> bool:
        left = kept(entry("F1", text["text"], seqs=text["seqs"]))
        assert left in ([], [text["text"]])
        return left == []

    assert_verdicts(corpus("erased"), goes)


def test_an_exact_value_must_stand_in_the_entrys_own_sources() -> None:
    erased = ErasedTexts(["My salary is 4 321 euros."], {3})
    remaining = RemainingMessages({1: "The desk costs 4 321 euros, what a salary!", 2: "Hello there."}, erased)
    assert entries_without_erased([entry("F1", "The desk costs 4 321 euros", seqs=[1])], erased, remaining)
    assert not entries_without_erased([entry("F1", "The salary is 4 321 euros", seqs=[2])], erased, remaining)
    assert not entries_without_erased([entry("F1", "The salary is 4 321 euros", seqs=[])], erased, remaining)


def test_a_value_within_a_longer_one_is_another() -> None:
    erased = ErasedTexts(["My salary is 4 321 euros."], {3})
    others = {1: "What a salary: 94 321 euros!", 2: "The bike costs 4 321 euros.", 4: "I want 4 321 eurosx of salary."}
    remaining = RemainingMessages(others, erased)
    told = "4 321 euros of salary"
    assert not entries_without_erased([entry("F1", told, seqs=[1])], erased, remaining)
    assert entries_without_erased([entry("F1", told, seqs=[2])], erased, remaining)
    assert not entries_without_erased([entry("F1", told, seqs=[4])], erased, remaining)


@pytest.mark.parametrize(
    ("told", "goes"), [("Ragnhild will sit there", False), ("12 of it", False), ("It weighs 12.5", True)]
)
def test_names_and_small_numbers_may_be_from_any_message_and_other_numbers_only_from_the_own_sources(
    told: str, *, goes: bool
) -> None:
    erased = ErasedTexts(["Ragnhild weighs 12.5, and 12 more."], {3})
    others = {
        1: "It is for a desk, and somebody will sit there: it weighs.",
        2: "Ragnhild has 12.5 of it, and 12 of it.",
    }
    left = entries_without_erased([entry("F1", told, seqs=[1])], erased, RemainingMessages(others, erased))
    assert (left == ()) is goes


def test_common_words_in_the_same_order_give_it_away() -> None:
    erased = ErasedTexts(["The blue boat sails northwards every morning."], {3})
    remaining = RemainingMessages({1: "Every blue morning.", 2: "A boat that sails. Northwards!"}, erased)
    assert not entries_without_erased([entry("F1", "A blue boat sails northwards", seqs=[1, 2])], erased, remaining)
    assert entries_without_erased([entry("F1", "A boat that sails", seqs=[2])], erased, remaining)


@pytest.mark.parametrize(
    ("secret", "told", "other"),
    [
        ("Сейф в Казани открывается словом «рябинушка».", "Слово для сейфа: рябинушка", "Столы привезут из Твери."),
        ("金库的口令是紫色信封里的字。", "口令在紫色信封里", "我们三月搬到新办公室。"),
        ("كلمة الخزنة هي سنجاب أزرق.", "الخزنة: سنجاب", "سننتقل إلى المكتب الجديد في مارس."),
    ],
)
def test_in_other_scripts(secret: str, told: str, other: str) -> None:
    erased = ErasedTexts([secret], {3})
    remaining = RemainingMessages({1: other}, erased)
    assert not entries_without_erased([entry("F1", told, seqs=[1])], erased, remaining)
    assert entries_without_erased([entry("F1", other, seqs=[1])], erased, remaining)


def test_narratives_go_and_replaced_texts_are_checked_one_by_one() -> None:
    old = ["The vault is in Trondheim", "Desks come from Nordwind"]
    (left,) = entries_without_erased(
        [entry("N1", "All went well."), entry("F2", "The desks cost 240 euros", seqs=[2], superseded=old)],
        ERASED,
        REMAINING,
    )
    assert left.id == "F2"
    assert left.superseded == ("Desks come from Nordwind",)


def test_only_entries_that_hold_something_of_it_need_a_closer_look() -> None:
    plain, alike = entry("F1", "Desks come from there", seqs=[1]), entry("F2", "Ragnhild orders chairs", seqs=[4])
    older = entry("F3", "Nothing alike", seqs=[1], superseded=["The violet one"])
    assert suspicious_entries([plain, alike, older, entry("N4", SECRET)], ERASED) == [alike, older]


@given(st.lists(st.text(max_size=80), max_size=4), st.text(max_size=80))
def test_never_raises_and_what_was_only_said_there_never_stays(others: list[str], secret: str) -> None:
    erased = ErasedTexts([secret], {9})
    remaining = RemainingMessages(dict(enumerate(others, start=1)), erased)
    left = entries_without_erased([entry("F1", secret, seqs=[1]), entry("F2", "x", seqs=[9])], erased, remaining)
    assert "F2" not in {one.id for one in left}
    if left and erased.pieces_in(secret):
        assert remaining.holds(erased.pieces_in(secret), (1,))


def test_a_rendered_summary_loses_its_narrative_and_its_tainted_lines() -> None:
    items = "- The desks cost 240 euros\n- The vault is in Trondheim\n- kestrel-7741"
    summary = f"They spoke of an opening.\n\nLogos:\n{items}\n\nPathos:\n- Calm"
    lines = summary_without_erased(summary, ERASED, REMAINING).splitlines()
    assert [line for line in lines if line] == ["Logos:", "- The desks cost 240 euros", "Pathos:", "- Calm"]
    assert summary_without_erased("Nothing was compacted (nothing_to_compact).", ERASED, REMAINING).startswith(
        "Nothing"
    )
    assert summary_without_erased("The vault is in Trondheim.", ERASED, REMAINING) == ""


CALL = {"type": "tool_call", "id": "c1", "name": "vault", "arguments": {"phrase": "kestrel-7741"}, "note": "x"}
RESULT = {"type": "tool_result", "tool_call_id": "c1", "name": "vault", "content": {"open": ["yes", 12]}}
MEDIA = {"type": "media", "media_type": "image/png", "url": "https://example.org/vault.png"}
TEXT = {"type": "text", "text": "beside it"}


def test_a_tombstone_keeps_its_place_and_the_ids_of_calls_alone() -> None:
    stone = tombstone(message(3, SECRET, "assistant", parts=[CALL, RESULT, MEDIA, TEXT]))
    assert (stone.seq, stone.role, stone.content, stone.status) == (3, "assistant", "", "erased")
    assert stone.parts == (
        {"type": "tool_call", "id": "c1", "name": "tool", "arguments": {}},
        {"type": "tool_result", "tool_call_id": "c1", "content": "erased"},
    )
    assert tombstone(stone) == stone
    assert stone.token_count == weigh("assistant", "", stone.parts).tokens > 0
    assert not tombstone(replace(message(3, SECRET), is_pinned=True)).is_pinned
    assert (tombstone(message(1, SECRET)).token_count, tombstone(message(1, SECRET)).byte_length) == (0, 0)


def test_the_other_half_is_stubbed_and_weighed_again() -> None:
    half = with_erased_calls(message(3, "I look it up.", "assistant", parts=[CALL, TEXT]), {"c1"})
    assert (half.status, half.content) == ("complete", "I look it up.")
    assert half.parts == ({"type": "tool_call", "id": "c1", "name": "tool", "arguments": {}}, TEXT)
    assert half.token_count == weigh("assistant", half.content, half.parts).tokens
    assert with_erased_calls(message(4, SECRET, "tool", parts=[RESULT]), {"c1"}).status == "erased"
    assert with_erased_calls(message(4, "", "assistant", parts=[CALL]), {"c1"}).status == "erased"
    assert with_erased_calls(message(4, "", "tool", parts=[RESULT]), {"c2"}).parts == (RESULT,)


def test_everything_that_a_message_tells() -> None:
    named = replace(message(3, "Words.", "assistant", parts=[CALL, RESULT, MEDIA, TEXT]), metadata={"name": "Ragnhild"})
    told = set(full_text(replace(named, event_type="ceremony")).split())
    assert told == {
        *("Words.", "Ragnhild", "ceremony", "phrase", "kestrel-7741", "x", "open", "yes", "12"),
        *("https://example.org/vault.png", "beside", "it"),
    }


@pytest.mark.parametrize(
    "said",
    [
        replace(message(3, "Tea, please."), metadata={"name": "Ragnhild"}),
        message(3, "", "tool", parts=[{**RESULT, "content": {"balances": {"Ragnhild": 12}}}]),
        message(3, "See it.", parts=[{**MEDIA, "name": "Ragnhild.png"}]),
        message(3, "Tea, please.", event_type="Ragnhild"),
    ],
)
def test_names_beside_the_text_are_looked_for_like_words_in_it(said: Message) -> None:
    erased = ErasedTexts([full_text(said)], {3})
    line = "- Ragnhild is served"
    assert summary_without_erased(f"Logos:\n{line}", erased, RemainingMessages({}, erased)) == "Logos:"
    another = full_text(replace(message(4, "Coffee."), metadata={"name": "Ragnhild"}))
    assert line in summary_without_erased(f"Logos:\n{line}", erased, RemainingMessages({4: another}, erased))


@pytest.mark.long
def test_thousands_of_messages_are_looked_through_in_linear_time() -> None:
    entries = [entry(f"F{n}", f"Shipment {n} of oak tables reached Trondheim", seqs=[n]) for n in range(1, 101)]

    def looked_through(count: int) -> Callable[[], object]:
        words = "Shipment {} of oak tables reached the harbour on a grey morning. " * 8
        said = {seq: words.replace("{}", str(seq)) for seq in range(1, count + 1)}

        def look() -> None:
            erased = ErasedTexts([SECRET * 50], {9_000})
            assert entries_without_erased(entries, erased, RemainingMessages(said, erased)) == ()

        return look

    assert_linear_in(looked_through, 4_000)


pieces = st.text("ab1 -€я١", max_size=6)


@given(st.sets(pieces.filter(bool), max_size=6), st.lists(pieces, max_size=8))
def test_values_are_found_as_by_looking_for_each(values: set[str], text: list[str]) -> None:
    told = " ".join([*text, *(value + piece for value, piece in zip(sorted(values), text, strict=False))])
    assert erasing._Values(values).found_in(told) == {value for value in values if erasing._holds_whole(told, value)}


def test_a_text_that_ends_within_a_longer_value_is_looked_through() -> None:
    values = erasing._Values({"١٢", "١٢٣٤"})
    assert values.found_in("в 8: ١٢") == {"١٢"}
    assert values.found_in("в 8: ١٢٣٤") == {"١٢", "١٢٣٤"}, "the control: the longer one is found where all of it stands"
    assert values.found_in("٣") == frozenset()


def test_many_runs_are_looked_for_in_messages_with_the_same_words_in_linear_time() -> None:
    def work(count: int) -> Callable[[], object]:
        words = list(map("".join, islice(product(("lor", "mik", "dan", "ven", "tus"), repeat=4), count)))
        text, reordered = " ".join(words), " ".join(words[::-1])
        erased = ErasedTexts([text], {1})
        others = dict.fromkeys(range(2, 7), reordered) | {7: text}
        return lambda: quotes_erased(text, erased, RemainingMessages(others, erased))

    assert_linear_in(work, 600)
    assert not work(40)(), "control: the last message says the same"


@pytest.mark.daily(2)
@pytest.mark.parametrize("unit", ["- item {n}\n", "Anna: {n}\n", "- €{n}.50\n", "- ab-{n}-x\n", "- {n} кг\n"])
def test_many_values_are_looked_for_in_many_lines_in_linear_time(unit: str) -> None:
    def work(count: int) -> Callable[[], object]:
        text = "".join(unit.format(n=10_000 + number) for number in range(count))
        erased = ErasedTexts([text], {1})
        return lambda: summary_without_erased(f"x\n- {text}", erased, RemainingMessages({2: text}, erased))

    assert_linear_in(work, 3_000)


@pytest.mark.long
def test_control_looking_for_each_value_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Each(erasing._Values):
        def found_in(self, text: str) -> frozenset[str]:
            return frozenset(value for value in self._values if erasing._holds_whole(text, value))

    monkeypatch.setattr(erasing, "_Values", Each)
    with pytest.raises(pytest.fail.Exception):
        test_many_values_are_looked_for_in_many_lines_in_linear_time("- item {n}\n")

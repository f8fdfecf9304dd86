"""A digest does not tell what was taken back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.model.segments import LEVELS, Level, ServableSegment
from app.core.segments.digests import segment_lines
from app.core.state.outdated_digests import without_outdated
from app.core.text import memo, sentences, token_counts
from tests.unit.test_assembly_digests import segment

TOLD = "User: Let's use Postgres for the order store. User: My limit is 500 requests. Assistant: Noted."


def told(text: str) -> ServableSegment:
    return replace(segment(1, 1, 9), texts={"L2": text})


def text_of(segments: list[ServableSegment]) -> str:
    return segments[0].texts["L2"]


@pytest.mark.parametrize(
    "quote",
    [
        "Let's use Postgres for the order store.",
        "Let's use Postgres\nfor the order store",
        "We talked about it: let's use Postgres for the order store!",
    ],
)
def test_a_sentence_that_repeats_it_goes_and_the_others_stay(quote: str) -> None:
    found = text_of(without_outdated([told(TOLD)], [quote]))

    assert found == "User: My limit is 500 requests. Assistant: Noted."


def test_other_languages_likewise() -> None:
    russian = told("Пользователь: Давай возьмём Postgres для заказов. Пользователь: Лимит 500 запросов.")
    chinese = told("用户: 我们用Postgres来存储所有的订单吧。 用户: 限制是五百个请求。")

    assert text_of(without_outdated([russian], ["Давай возьмём Postgres для заказов."])) == (
        "Пользователь: Лимит 500 запросов."
    )
    assert "Postgres" not in text_of(without_outdated([chinese], ["我们用Postgres来存储所有的订单吧。"]))
    assert "五百" in text_of(without_outdated([chinese], ["我们用Postgres来存储所有的订单吧。"]))


@pytest.mark.parametrize("quotes", [[], ["Noted."], ["Let's use MySQL for the order store."], [""], ["…"]])
def test_what_nobody_took_back_stays_as_it_is(quotes: list[str]) -> None:
    assert without_outdated([told(TOLD)], quotes) == [told(TOLD)]


def test_a_level_of_which_nothing_is_left_is_empty_and_stored_ones_stay_as_they_are() -> None:
    stored = told("Let's use Postgres for the order store.")

    assert text_of(without_outdated([stored], ["Let's use Postgres for the order store."])) == ""
    assert text_of([stored]) != ""


@pytest.mark.parametrize(
    "quote",
    [
        "use Postgres for the order st",
        "et's use Postgres for the order store",
        "Postgres for",
        "the order store. And so on, for ever.",
    ],
)
def test_words_that_are_cut_off_at_either_end_of_it_count_as_they_stand(quote: str) -> None:
    found = text_of(without_outdated([told(TOLD)], [quote]))

    assert ("order store" in found) == ("And so on" in quote)


def test_what_a_large_budget_shows_of_four_hundred_segments_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A context with a budget of its own reads all levels of this many; without a cache this takes half a second."""
    made = segment(1, 1, 9)
    sizes: dict[Level, int] = {"L1": 3_600, "L2": 480, "L3": 240}
    segments = [
        replace(
            made,
            id=f"topic_{number}",
            texts={
                level: " ".join(f"User: Word {number} of {place}." for place in range(size // 24))
                for level, size in sizes.items()
            },
        )
        for number in range(400)
    ]

    def shown() -> list[dict[str, tuple[str, int]]]:
        return [segment_lines(one, LEVELS) for one in without_outdated(segments, ["Word 7 of 3."])]

    memo.forget()
    first = shown()
    monkeypatch.setattr(token_counts, "counts", None)
    monkeypatch.setattr(sentences, "_spans", None)

    assert shown() == first
    memo.forget()
    with pytest.raises(TypeError, match="not callable"):
        shown()

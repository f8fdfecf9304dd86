"""Readings of texts are kept in one place: each is made once, within a bound, and is gone after ``forget``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.text.memo import MAX_WORD_LENGTH, Latest, Memo, forget, memoized, word_memo


def counted(memo: Memo, growth: int = 1) -> tuple[list[str], Callable[[str], int]]:
    asked: list[str] = []

    @memoized(growth, memo)
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    return asked, length


def test_a_text_is_read_once() -> None:
    asked, length = counted(Memo(1_000_000))
    assert [length("some words") for _ in range(3)] == [10, 10, 10]
    assert asked == ["some words"]


def test_functions_and_arguments_are_kept_apart() -> None:
    memo = Memo(1_000_000)

    @memoized(1, memo)
    def upper(text: str) -> str:
        return text.upper()

    @memoized(1, memo)
    def cut(text: str, most: int) -> str:
        return text[:most]

    assert (upper("abc"), cut("abc", 1), cut("abc", 2), upper("abc")) == ("ABC", "a", "ab", "ABC")
    assert (cut("abc", most=1), cut("abc", most=2)) == ("a", "ab")


def test_forgetting_drops_everything() -> None:
    memo = Memo(1_000_000)
    asked, length = counted(memo)
    length("some words")
    memo.forget()
    assert len(memo) == 0
    length("some words")
    assert asked == ["some words"] * 2


def test_what_is_asked_for_again_outlives_what_is_not() -> None:
    asked, length = counted(Memo(8_000))
    for number in range(50):
        length("asked for all the time")
        length(f"asked for once: {number}")
    assert asked.count("asked for all the time") == 1
    length("asked for once: 0")
    assert asked.count("asked for once: 0") == 2


def test_what_nobody_asked_for_goes_a_few_at_a_time() -> None:
    memo = Memo(1_000_000)
    _, length = counted(memo)
    sizes = []
    for number in range(6_000):
        length(str(number))
        sizes.append(len(memo))
    steps = [later - earlier for earlier, later in pairwise(sizes)]
    assert min(steps) == 1 - 8, "an event loop would wait for thousands"
    assert steps.count(-7) > 100
    assert max(sizes) <= 1_000_000 // 400


def test_a_document_is_not_kept() -> None:
    asked, length = counted(Memo(64_000_000), growth=24)
    for _ in range(2):
        length("x" * 200_000)
    assert len(asked) == 2


@pytest.mark.parametrize(("letter", "kept"), [("x", 4), ("я", 2)])
def test_a_text_counts_by_its_bytes(letter: str, kept: int) -> None:
    memo = Memo(60_000)
    _, length = counted(memo, growth=10)
    for number in range(4):
        length(letter * 1_000 + str(number))
    assert len(memo) == kept


@given(st.lists(st.text(max_size=300), max_size=200))
def test_it_stays_within_its_bound_and_answers_as_the_function_does(texts: list[str]) -> None:
    memo = Memo(20_000)

    @memoized(10, memo)
    def reversed_text(text: str) -> str:
        return text[::-1]

    for text in texts:
        assert reversed_text(text) == text[::-1]
        assert len(memo) <= 20_000 // 400


def test_threads_may_read_at_the_same_time() -> None:
    memo = Memo(50_000)
    _, length = counted(memo)
    wrong: list[str] = []

    def ask(first: int) -> None:
        for number in range(first, first + 500):
            text = "x" * (number % 97)
            if length(text) != len(text):
                wrong.append(text)

    threads = [threading.Thread(target=ask, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_of_what_changes_the_last_reading_takes_the_place_of_the_one_before() -> None:
    memo = Memo(8_000)
    latest = Latest[str, int](memo)
    for number in range(50):
        latest.keep("one that grows", number, 1_000)
    assert (latest.get("one that grows"), latest.get("another"), len(memo)) == (49, None, 1)
    for number in range(5):  # more than a half: what is used stays, the rest goes
        latest.keep(f"{number}", number, 1_000)
        assert latest.get("one that grows") == 49
    for number in range(8):
        latest.keep(f"later {number}", number, 1_000)
    assert latest.get("one that grows") is None
    latest.keep("one that grows", 50, 1_000)
    memo.forget()
    assert latest.get("one that grows") is None


def test_a_reading_that_grew_too_large_is_not_kept_nor_the_one_before_it() -> None:
    latest = Latest[str, int](Memo(64_000_000))
    latest.keep("one that grows", 1, 1_000)
    latest.keep("one that grows", 2, 9_000_000)
    assert latest.get("one that grows") is None


def test_words_are_remembered_but_giants_are_not_and_none_once_all_is_forgotten() -> None:
    made: list[str] = []

    @word_memo
    def measured(word: str) -> int:
        made.append(word)
        return len(word)

    usual, giant = "harbour", "a" * (MAX_WORD_LENGTH + 1)
    assert [measured(word) for word in (usual, usual, giant, giant)] == [7, 7, 65, 65]
    assert made == [usual, giant, giant]
    forget()
    assert (measured(usual), made[3:]) == (7, [usual])

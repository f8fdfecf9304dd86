"""Finding anchors costs little compared with splitting the same texts into words, measured in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from inspect import unwrap

import pytest

from app.core.anchors.detect import detect
from app.core.anchors.statements import statements_of
from app.core.model.conversation import Message, Role
from app.core.text.cue_patterns import CUE_INDEX
from app.core.text.words import words
from tests.unit.talk import message
from tests.unit.test_anchors_detect import SAID_BY_USERS
from tests.unit.timing import assert_linear

MAX_RATIO = 24.0
"""The most times of plain tokenising: usually about 16, on a busy machine up to 21, with every pattern tried over 30.
"""

ROUNDS = 8
ROLES: tuple[Role, ...] = ("user", "assistant")
TALK = (
    "For room {n} we looked at the oak tables from Calder, and the light in there is lovely in the afternoon.",
    "They arrived in good shape; I was glad that nobody had to carry them up all those stairs again.",
    "What a day! My sister came by with her two children and we had tea in the garden until it rained.",
    "I decided to order {n} chairs as well, they cost 114 euros each.",
    "That sounds wonderful. How did the others like the new place, and is the view as good as you hoped?",
    "Вчера мы смотрели комнату номер {n}, там очень светло и тихо, и соседи нам понравились.",
    "昨天我们去看了第{n}个房间，里面很亮，也很安静。",
    "The report came back with a few remarks about wording, nothing that changes the picture as a whole.",
)


def spoken(count: int) -> list[Message]:
    texts = (" ".join(TALK[(n + step) % len(TALK)] for step in (0, 3, 4)).format(n=n) for n in range(count))
    return [message(n, text, role="user" if n % 2 else "assistant") for n, text in enumerate(texts, start=1)]


def fastest(work: Callable[[Message], object], messages: Sequence[Message]) -> float:
    """The process's seconds for the work: the least of some rounds, since every disturbance only adds to it."""

    def once() -> float:
        began = time.process_time()
        for one in messages:
            work(one)
        return time.process_time() - began

    return min(once() for _ in range(ROUNDS))


@pytest.mark.long
def test_detecting_takes_a_few_times_as_long_as_tokenising() -> None:
    messages = spoken(200)
    plain = fastest(lambda one: unwrap(words)(one.content), messages)
    found = fastest(detect, messages)

    assert sum(len(detect(one)) for one in messages) > len(messages) / 4, "there is something to find"
    assert found < MAX_RATIO * plain, f"detecting took {found / plain:.1f} times as long as tokenising"


@pytest.mark.long
def test_control_patterns_that_are_all_tried_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """All patterns are tried, as before each pattern's required words were looked up."""
    monkeypatch.setattr(CUE_INDEX, "may_match_text", lambda _: -1)
    messages = spoken(200)
    assert fastest(detect, messages) > MAX_RATIO * fastest(lambda one: words(one.content), messages)


def test_looking_up_what_a_pattern_needs_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = (text for text, _ in (*SAID_BY_USERS, *((one, "") for one in TALK)))
    messages = [message(n, text, role=role) for n, text in enumerate(texts, start=1) for role in ROLES]
    looked_up = [detect(one) for one in messages]
    monkeypatch.setattr(CUE_INDEX, "may_match_text", lambda _: -1)
    assert [detect(one) for one in messages] == looked_up
    monkeypatch.setattr(CUE_INDEX, "may_match_text", lambda _: 0)  # control: nothing is tried
    assert [detect(one) for one in messages] != looked_up


@pytest.mark.daily(2)
@pytest.mark.parametrize("line", ["@\n", "Go.\n", "- a\n", "a: b\n", "„"])
def test_taking_apart_what_is_read_of_a_message_takes_linear_time(line: str) -> None:
    """The texts are shorter than the most that is read; beyond that, longer texts would all take as long."""
    assert_linear(lambda text: statements_of(message(1, text)), line * (20_000 // len(line)))

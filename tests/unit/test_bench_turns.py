"""``bench.turns`` asks both processes the same, in changing order, and counts answers that differ."""

from typing import Any
from uuid import UUID

import pytest

from bench.turns import KINDS, OTHER, THIS, in_turns

SIZES = {100: UUID(int=1), 1_000: UUID(int=2)}
ROUNDS = len(KINDS)


class Answers:
    """A process whose answer depends on the request alone, but for requests with ``wrong``."""

    def __init__(self, asked: list[tuple[str, str]], name: str, wrong: str = "") -> None:
        self._asked = asked
        self._name = name
        self._wrong = wrong
        self.bodies: list[dict[str, Any]] = []

    def ask(self, conversation_id: UUID, **body: Any) -> dict[str, Any]:
        """A made-up answer."""
        self._asked.append((self._name, f"{conversation_id} {body}"))
        self.bodies.append(body)
        wrong = bool(self._wrong) and self._wrong in body
        return {"seconds": 0.1, "cpu": 0.1, "hash": f"{self._name if wrong else ''}{conversation_id}{body}"}


@pytest.mark.long
def test_both_are_asked_the_same_and_every_kind_of_request_is_compared() -> None:
    asked: list[tuple[str, str]] = []
    processes = {OTHER: Answers(asked, OTHER), THIS: Answers(asked, THIS)}
    times, differing = in_turns(processes, SIZES, ROUNDS)  # type: ignore[arg-type]  # they answer as processes do

    requests = {name: [said for one, said in asked if one == name] for name in processes}
    assert requests[OTHER] == requests[THIS]
    assert {name for name, _ in asked[::2]} == {OTHER, THIS}, "neither is always the first"
    assert differing == 0
    assert {len(values) for values in times.values()} == {ROUNDS}
    for kind in KINDS:
        assert sum(kind.items() <= body.items() for body in processes[THIS].bodies) >= len(SIZES)


@pytest.mark.daily(1)
@pytest.mark.parametrize("wrong", ["query", "passages"])
def test_answers_that_differ_are_counted(wrong: str) -> None:
    asked: list[tuple[str, str]] = []
    processes = {OTHER: Answers(asked, OTHER), THIS: Answers(asked, THIS, wrong)}
    _, differing = in_turns(processes, SIZES, ROUNDS)  # type: ignore[arg-type]  # they answer as processes do

    assert differing == sum(wrong in body for body in processes[THIS].bodies) > 0

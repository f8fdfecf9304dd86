"""The bench of tool arguments: what is looked for, what counts as served, and that it can fail."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.made_runs import KINDS, rows
from bench.retention import SCRIPTS
from bench.retention import outcomes as retained
from bench.tool_arguments import CONTROL, OURS, Outcome, contains_value, interval, outcomes, run_of, table

BOOKING = {"booking_id": "QZ71KP", "guest": "Ana Ruiz", "room": "B204", "card": "card_998877", "nights": 3}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    part = {"type": "tool_call", "id": f"c-{name}", "name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": "", "parts": [part]}


def result(name: str, data: Any) -> dict[str, Any]:
    part = {"type": "tool_result", "id": f"c-{name}", "name": name, "content": json.dumps(data)}
    return {"role": "tool", "content": json.dumps(data), "parts": [part]}


def row() -> dict[str, Any]:
    talk = [
        {"role": "user" if n % 2 else "assistant", "content": f"Some talk, part {n}, of the sea and ships."}
        for n in range(20)
    ]
    first = [{"role": "user", "content": "Hello, please look up my stay."}, call("find", guest="Ana Ruiz")]
    later = [{"role": "user", "content": "Then move me."}, call("move", booking="QZ71KP", room="B204", to="C999")]
    messages = [{"role": "system", "content": "Be brief. QZ71KP"}, *first, result("find", BOOKING), *talk, *later]
    filling = [{"role": "user", "content": "Thank you."}] * (len(first) + len(talk) + 1 - len(later))
    return {"id": "made", "messages": [*messages, *filling]}


def test_the_values_are_those_of_later_calls_that_were_said_before() -> None:
    run = run_of(row())

    assert run.values == ("QZ71KP", "B204")
    assert run.system.startswith("Be brief")
    assert [one.query for one in run.calls] == ["Then move me."]
    assert all(part["tool_call_id"] for one in run.first for part in one["parts"] if part["type"] == "tool_result")


def test_ours_keeps_them_and_a_service_that_forgets_does_not() -> None:
    found = list(outcomes(run_of(row()), share=0.35))
    shares = {
        name: interval([one for one in found if one.name == name and not one.asked])[0] for name in (OURS, CONTROL)
    }

    assert shares[OURS] == 1.0
    assert shares[CONTROL] < 1.0
    assert f"| {OURS} |" in table(found)


@pytest.mark.parametrize("kind", KINDS)
def test_made_up_runs_are_the_same_for_the_same_seed_and_use_what_was_said(kind: str) -> None:
    assert rows(kind, 2) == rows(kind, 2) != rows(kind, 2, seed=2)
    assert all(run_of(row).values for row in rows(kind, 4))


@pytest.mark.long
def test_what_a_desk_and_a_coding_agent_go_on_with_is_served() -> None:
    made = [row for kind in ("retail", "coding", "telecom") for row in rows(kind, 5)]
    found = [one for row in made for one in outcomes(run_of(row)) if not one.asked]
    shares = {name: interval([one for one in found if one.name == name])[0] for name in (OURS, CONTROL)}

    assert shares[CONTROL] < 0.4
    assert shares[OURS] > 0.75


def test_a_value_stands_as_a_whole_word() -> None:
    assert contains_value("B204", "room B204, sea view")
    assert not contains_value("B204", "room AB2041")
    assert not contains_value("B204", "room b204")


def test_the_interval_is_over_runs() -> None:
    found = [Outcome(name=OURS, run=f"r{n}", asked=False, served=n % 2, of=1) for n in range(20)]
    mean, low, high = interval(found)

    assert low < mean == 0.5 < high
    assert interval([]) == (0.0, 0.0, 0.0)


def test_what_was_said_early_is_retained_and_the_control_is_not() -> None:
    found = list(retained(SCRIPTS[1], rounds=(1,)))

    assert all(one.recalled for one in found)
    assert sum(one.served for one in found) >= 0.8 * len(found)
    assert not any(one.control for one in found)

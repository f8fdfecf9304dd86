"""Which messages are held, and how far the policy's share reaches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.conversation import Message
from app.core.model.policies.goals import states_goal
from app.core.model.policies.protection import (
    protected_reason,
    reasons_within_budget,
    size_of,
    units_of,
    uses_pin_budget,
)
from tests.builders import message, policy_of
from tests.corpus import agreed, assert_verdicts, corpus
from tests.unit.timing import assert_linear, assert_linear_in

EVERYTHING = ["turn_0", "initial_objective", "constraint", "auth_checkpoint", "goal", "goal_statements"]
ROOMY = 10**9
A_GOAL = "My goal is to move the shop to Postgres before March."


def test_a_goal_is_recognised_and_other_talk_is_not() -> None:
    def stated(text: str) -> bool:
        return agreed(states_goal(text), states_goal(f"Hello there.\n{text}\nThanks!"))

    assert_verdicts(corpus("goals"), stated)


def test_a_goal_behind_pages_of_pasted_text_is_none() -> None:
    assert not states_goal("word " * 2_000 + A_GOAL)


@pytest.mark.parametrize(
    "piece", ["my goal ", "цель ", "i want ", "a", "the the ", "# ", "- - ", "goal goal ", "моя ", " ", "цел"]
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    assert_linear(states_goal, piece * 400_000)


@pytest.mark.parametrize(
    ("event_type", "reason"),
    [
        ("initial_objective", "initial_objective"),
        ("constraint", "explicit_constraint"),
        ("auth_checkpoint", "authentication"),
        ("goal", "goal_statement"),
        ("casual", "compressible"),
        ("goal_statements", "compressible"),
        ("turn_0", "compressible"),
        ("command", "compressible"),
    ],
)
def test_event_types_protect_where_the_policy_says_so(event_type: str, reason: str) -> None:
    full, bare = policy_of(protect=EVERYTHING), policy_of(protect=[])
    assert protected_reason(full, role="assistant", turn=5, event_type=event_type) == reason
    assert protected_reason(bare, role="assistant", turn=5, event_type=event_type) == "compressible"


def test_the_first_turn_the_system_and_goals() -> None:
    full = policy_of(protect=EVERYTHING)
    assert protected_reason(full, role="user", turn=0) == "initial_objective"
    assert protected_reason(policy_of(protect=[]), role="user", turn=0) == "compressible"
    assert protected_reason(full, role="system", turn=0) == "system"
    assert protected_reason(policy_of(held_roles=[]), role="system", turn=3) == "compressible"
    goal = {"turn": 4, "content": A_GOAL}
    assert protected_reason(full, role="user", **goal) == "goal_statement"  # type: ignore[arg-type]
    assert protected_reason(full, role="assistant", **goal) == "compressible"  # type: ignore[arg-type]
    assert protected_reason(policy_of(), role="user", **goal) == "compressible"  # type: ignore[arg-type]


def weighing(seq: int, tokens: int, **given: Any) -> Message:
    return message(seq, "x", role=given.pop("role", "user"), token_count=tokens, byte_length=4 * tokens, **given)


def call(id_: str) -> dict[str, Any]:
    return {"type": "tool_call", "id": id_, "name": "f", "arguments": {}}


def result(id_: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_call_id": id_, "content": "1"}


class TestDecided:
    POLICY = policy_of(protect=EVERYTHING)

    def test_in_order_as_far_as_the_room_goes(self) -> None:
        said = [
            weighing(1, 40),
            weighing(2, 70, event_type="constraint"),
            weighing(3, 60, event_type="constraint"),
            weighing(4, 500),
        ]
        assert reasons_within_budget(self.POLICY, said, pin_tokens=100) == {
            1: "initial_objective",
            2: "over_allotment",
            3: "explicit_constraint",
            4: "compressible",
        }
        assert reasons_within_budget(self.POLICY, said, pin_tokens=100, used=30)[3] == "over_allotment"
        assert reasons_within_budget(self.POLICY, said, pin_tokens=170)[2] == "explicit_constraint"

    def test_pins_come_first_and_stay_pinned_while_they_fit(self) -> None:
        said = [weighing(1, 60), weighing(2, 50, is_pinned=True), weighing(3, 30, is_pinned=True)]
        both_fit, one_fits = (reasons_within_budget(self.POLICY, said, pin_tokens=tokens) for tokens in (100, 60))
        assert both_fit == {1: "over_allotment", 2: "pinned", 3: "pinned"}
        assert one_fits == {1: "over_allotment", 2: "pinned", 3: "over_allotment"}
        assert reasons_within_budget(self.POLICY, said, pin_tokens=140)[1] == "initial_objective"

    def test_the_system_takes_no_room_and_never_goes(self) -> None:
        said = [weighing(1, 900, role="system"), weighing(2, 90, role="system", is_pinned=True)]
        assert reasons_within_budget(self.POLICY, said, pin_tokens=100) == {1: "system", 2: "pinned"}
        assert reasons_within_budget(self.POLICY, said, pin_tokens=10) == {1: "system", 2: "system"}

    def test_commands_and_tombstones_are_never_held(self) -> None:
        said = [weighing(1, 1, is_command=True), weighing(2, 1, event_type="goal", status="erased", is_pinned=True)]
        assert set(reasons_within_budget(self.POLICY, said, pin_tokens=100).values()) == {"compressible"}

    def test_the_size_is_in_the_policys_tokens(self) -> None:
        by_bytes = policy_of(protect=EVERYTHING, estimator="bytes")
        heavy = message(1, "x", token_count=1, byte_length=4_000)
        assert reasons_within_budget(by_bytes, [heavy], pin_tokens=999)[1] == "over_allotment"
        assert reasons_within_budget(by_bytes, [heavy], pin_tokens=1_000)[1] == "initial_objective"
        assert reasons_within_budget(self.POLICY, [heavy], pin_tokens=999)[1] == "initial_objective"

    def test_a_tool_call_and_its_results_are_held_together_or_not_at_all(self) -> None:
        said = [
            weighing(1, 1, event_type="casual", role="assistant"),
            weighing(2, 20, role="assistant", parts=[call("a"), call("b")]),
            weighing(3, 30, role="tool", parts=[result("a")]),
            weighing(4, 40, role="tool", parts=[result("b")], is_pinned=True),
            weighing(5, 20, role="assistant", parts=[call("a")]),
            weighing(6, 50, role="tool", parts=[result("a")]),
        ]
        bare = policy_of(protect=[])
        apart = dict.fromkeys(range(1, 7), "compressible")
        assert reasons_within_budget(bare, said, pin_tokens=90) == apart | dict.fromkeys((2, 3, 4), "pinned")
        assert reasons_within_budget(bare, said, pin_tokens=89) == apart | {4: "over_allotment"}

    def test_units(self) -> None:
        said = [
            message(1, "x", role="assistant", parts=[call("a"), call("b")]),
            message(2, "x"),
            message(3, "x", role="assistant", parts=[call("c")]),
            message(4, "x", role="tool", parts=[result("a"), result("nowhere")]),
            message(5, "x", role="tool", parts=[result("b"), result("c")]),
            message(6, "x", role="tool", parts=[result("c")]),
            message(7, "x", role="assistant", parts=[call("a")]),
            message(8, "x", role="tool", parts=[result("a")]),
            message(9, "x", role="tool", parts=[result("nowhere")]),
        ]
        assert [[one.seq for one in unit] for unit in units_of(said)] == [[1, 3, 4, 5, 6], [2], [7, 8], [9]]

    @pytest.mark.long
    def test_units_of_a_long_history_take_linear_time(self) -> None:
        every = [call(str(number)) for number in range(250)]
        results = [result(one["id"]) for one in every]

        def history(count: int) -> Callable[[], object]:
            """Pairs of a call and its result, then messages with many calls, then messages with all their results."""
            said = [
                message(seq, "x", role="assistant", parts=[call("a")])
                if seq % 2
                else message(seq, "x", role="tool", parts=[result("a")])
                for seq in range(1, 20 * count + 1)
            ]
            said += [message(20 * count + n, "x", role="assistant", parts=every) for n in range(1, count)]
            said += [message(21 * count + n, "x", role="tool", parts=results) for n in range(count)]

            def unite() -> None:
                assert len(units_of(said)) == 11 * count - 1

            return unite

        assert_linear_in(history, 200)

    @given(
        st.lists(
            st.tuples(
                st.integers(0, 60), st.sampled_from(["casual", "goal", "constraint"]), st.booleans(), st.booleans()
            ),
            max_size=12,
        ),
        st.integers(0, 200),
        st.integers(0, 200),
    )
    def test_what_is_held_fits_and_more_room_holds_no_less(
        self, given_: list[tuple[int, str, bool, bool]], room: int, more: int
    ) -> None:
        said = [
            weighing(seq, tokens, event_type=type_, is_pinned=pinned, is_command=command)
            for seq, (tokens, type_, pinned, command) in enumerate(given_, start=1)
        ]
        reasons = reasons_within_budget(self.POLICY, said, pin_tokens=room)
        assert reasons.keys() == {entry.seq for entry in said}
        weight = sum(size_of(entry, "script") for entry in said if uses_pin_budget(reasons[entry.seq]))
        assert weight <= room
        unlimited = reasons_within_budget(self.POLICY, said, pin_tokens=ROOMY)
        assert "over_allotment" not in unlimited.values()
        assert all(reasons[seq] in {reason, "over_allotment"} for seq, reason in unlimited.items())
        if weight + more >= sum(size_of(entry, "script") for entry in said):
            assert reasons_within_budget(self.POLICY, said, pin_tokens=weight + more) == unlimited

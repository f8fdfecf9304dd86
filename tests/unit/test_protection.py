"""Which messages are held, and how far the policy's share goes."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.conversation import Message
from app.domain.policies.goals import GOALS, states_goal
from app.domain.policies.protection import decided, protected_reason, size_of, takes_room, units_of
from tests.builders import message, policy_of

EVERYTHING = ["turn_0", "initial_objective", "constraint", "auth_checkpoint", "goal", "goal_statements"]
ROOMY = 10**9

STATED = [
    "My goal is to move the shop to Postgres before March.",
    "Our main objective for this quarter is fewer cold starts",
    "the goals of this project are speed and clarity",
    "Goal: a working prototype by Friday",
    "## Objective: halve the bill",
    "I want to achieve inbox zero",
    "we’re trying to reach 99.9 % availability",
    "I'm aiming for a marathon in October",
    "We aim to ship on the 3rd",
    "The whole point of this exercise is to find the leak",
    "Success means nobody notices the migration",
    "The goal of this session: finish the migration plan.",
    "The goal of this session is to plan the move.",
    "Our goals for today: fix the build, ship the docs",
    "The goal for this week — close ten tickets",
    "The session's goal: write the report",
    "Today's goal is to finish chapter 3",
    "**My goal**: ship on Friday",
    "- **Goal:** ship on Friday",
    "My goal for the next two months is to run 10 km.",
    "My ultimate goal would be to retire at 50",
    "The goal is to stay below 200 euros",
    "The purpose of this session is to choose a vendor",
    "I have one goal: get the tests green",
    "We set ourselves the objective of 99.9 % uptime",
    "By the end of this session I want a working prototype",
    "Моя цель — перенести магазин на Postgres",
    "Наша главная задача сейчас: снизить расходы",
    "Цель проекта состоит в том, чтобы ускорить поиск",
    "Цель: рабочий прототип к пятнице",
    "Мы стремимся к нулевому простою",
    "Хочу добиться стабильной сборки",
    "Ставлю себе цель пробежать марафон",
    "Цель этой сессии: перенести базу на Postgres",
    "Цель этой сессии — выбрать базу данных",
    "Наши цели на сегодня: починить сборку",
    "**Цель:** выпустить в пятницу",
    "Моей целью является сокращение расходов",
    "У меня одна цель: пробежать марафон",
    "У нас есть цель: 99,9 % доступности",
    "К концу сессии я хочу получить рабочий прототип",
    "Я поставил себе цель прочитать 20 книг",
    "Перед нами стоит задача сократить расходы вдвое",
]
NOT_STATED = [
    "Could you send me the log file?",
    "I want to book a table for four",
    "What is the difference between a list and a tuple?",
    "He scored a goal in the last minute",
    "They scored two goals",
    "The team scored two goals: one early, one late",
    "The goal of the match was a header: Messi",
    "The goals are too small for this pitch",
    "The goal was scored in the 89th minute",
    "What is the goal of a loss function?",
    "The missile missed its aim: nobody was hurt",
    "Our goalkeeper is injured: who plays?",
    "The goalkeeper is injured",
    "I'm trying to log in and it fails",
    "That is beside the point.",
    "Этот файл целый, а тот нет",
    "Я хочу заказать пиццу",
    "Целью атаки стал сервер",
    "Они забили два гола",
    "Какова цель этой функции?",
    "Задача по физике: найти ускорение",
    "У меня есть задача по физике",
    "Целевая аудитория: подростки",
    "В целом: всё хорошо",
    "请把日志发给我",
]


@pytest.mark.parametrize("text", STATED)
def test_a_goal_is_recognised(text: str) -> None:
    assert states_goal(text)
    assert states_goal(f"Hello there.\n{text}\nThanks!")


@pytest.mark.parametrize("text", NOT_STATED)
def test_other_talk_is_not(text: str) -> None:
    assert not states_goal(text)


def test_another_language_is_one_more_table() -> None:
    assert set(GOALS) == {"en", "ru"}
    german = {**GOALS, "de": (r"\bmein ziel ist\b",)}
    assert states_goal("Mein Ziel ist ein Marathon", german)
    assert not states_goal("Mein Ziel ist ein Marathon")
    assert states_goal(STATED[0], german)


def test_a_goal_behind_pages_of_pasted_text_is_none() -> None:
    assert not states_goal("word " * 2_000 + STATED[0])


@pytest.mark.parametrize(
    "piece", ["my goal ", "цель ", "i want ", "a", "the the ", "# ", "- - ", "goal goal ", "моя ", " ", "цел"]
)
def test_hostile_text_takes_no_time(piece: str) -> None:
    begun = time.perf_counter()
    states_goal(piece * 400_000)
    assert time.perf_counter() - begun < 0.5  # 0.01 s on an idle machine


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
    goal = {"turn": 4, "content": STATED[0]}
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
        assert decided(self.POLICY, said, room=100) == {
            1: "initial_objective",
            2: "over_allotment",
            3: "explicit_constraint",
            4: "compressible",
        }
        assert decided(self.POLICY, said, room=100, used=30)[3] == "over_allotment"
        assert decided(self.POLICY, said, room=170)[2] == "explicit_constraint"

    def test_pins_come_first_and_stay_pinned_while_they_fit(self) -> None:
        said = [weighing(1, 60), weighing(2, 50, is_pinned=True), weighing(3, 30, is_pinned=True)]
        assert decided(self.POLICY, said, room=100) == {1: "over_allotment", 2: "pinned", 3: "pinned"}
        assert decided(self.POLICY, said, room=60) == {1: "over_allotment", 2: "pinned", 3: "over_allotment"}
        assert decided(self.POLICY, said, room=140)[1] == "initial_objective"

    def test_the_system_takes_no_room_and_never_goes(self) -> None:
        said = [weighing(1, 900, role="system"), weighing(2, 90, role="system", is_pinned=True)]
        assert decided(self.POLICY, said, room=100) == {1: "system", 2: "pinned"}
        assert decided(self.POLICY, said, room=10) == {1: "system", 2: "system"}

    def test_commands_and_tombstones_are_never_held(self) -> None:
        said = [weighing(1, 1, is_command=True), weighing(2, 1, event_type="goal", status="erased", is_pinned=True)]
        assert set(decided(self.POLICY, said, room=100).values()) == {"compressible"}

    def test_the_size_is_in_the_policys_tokens(self) -> None:
        by_bytes = policy_of(protect=EVERYTHING, estimator="bytes")
        heavy = message(1, "x", token_count=1, byte_length=4_000)
        assert decided(by_bytes, [heavy], room=999)[1] == "over_allotment"
        assert decided(by_bytes, [heavy], room=1_000)[1] == "initial_objective"
        assert decided(self.POLICY, [heavy], room=999)[1] == "initial_objective"

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
        assert decided(bare, said, room=90) == apart | dict.fromkeys((2, 3, 4), "pinned")
        assert decided(bare, said, room=89) == apart | {4: "over_allotment"}

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

    def test_units_of_a_long_history_take_no_time(self) -> None:
        said = [
            message(seq, "x", role="assistant", parts=[call("a")])
            if seq % 2
            else message(seq, "x", role="tool", parts=[result("a")])
            for seq in range(1, 4_001)
        ]
        every = [call(str(number)) for number in range(250)]
        said += [message(seq, "x", role="assistant", parts=every) for seq in range(4_001, 4_200)]
        said += [
            message(seq, "x", role="tool", parts=[result(one["id"]) for one in every]) for seq in range(4_200, 4_400)
        ]
        begun = time.perf_counter()
        assert len(units_of(said)) == 2_000 + 199
        assert time.perf_counter() - begun < 1  # 0.03 s on an idle machine

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
        reasons = decided(self.POLICY, said, room=room)
        assert reasons.keys() == {entry.seq for entry in said}
        weight = sum(size_of(entry, "script") for entry in said if takes_room(reasons[entry.seq]))
        assert weight <= room
        unlimited = decided(self.POLICY, said, room=ROOMY)
        assert "over_allotment" not in unlimited.values()
        assert all(reasons[seq] in {reason, "over_allotment"} for seq, reason in unlimited.items())
        if weight + more >= sum(size_of(entry, "script") for entry in said):
            assert decided(self.POLICY, said, room=weight + more) == unlimited

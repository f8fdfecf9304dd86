"""The side-by-side bench: its counts of prompts, the ratios, the talk, and a short run with the bare services."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.peers.__main__ import main
from bench.peers.children.protocol import common
from bench.peers.environments import FRAMEWORKS, UnavailableError, python_of
from bench.peers.played import Prompts, Talk, Turn, spoken_messages
from bench.peers.rounds import Row, play
from bench.peers.tables import HEADERS, cells, paid, shown

FIRST = [("user", "one two three"), ("assistant", "four")]


def words(_: str, text: str) -> int:
    return len(text.split())


def row(seconds: list[float], tokens: list[tuple[int, int]]) -> Row:
    made = Row(title="a", prompts=Prompts(words), seconds=seconds, cpu=seconds)
    for number, (kept, fresh) in enumerate(tokens):
        rest = [("user", "w " * kept), ("user", f"{number} " * fresh)]
        made.add(Turn(seconds=0, cpu=0, common=1 if number else 0, rest=rest[bool(number) :]), 500, timed=False)
    return made


def test_a_prompt_that_goes_on_is_cached_up_to_where_the_last_one_ended() -> None:
    prompts = Prompts(words)
    prompts.count(0, FIRST)

    found = prompts.count(2, [("user", "five six")])

    assert (found.tokens, found.cached, found.fresh) == (6, 4, 2)


def test_a_message_that_begins_as_the_one_before_it_is_cached_as_far_as_that() -> None:
    prompts = Prompts(words)
    prompts.count(0, FIRST)

    assert prompts.count(0, [("user", "one two other words")]).cached == 2
    assert prompts.count(0, [("assistant", "one two other words")]).cached == 0  # the role comes before the text


def test_nothing_after_a_difference_is_cached() -> None:
    prompts = Prompts(words)
    prompts.count(0, [("user", "a"), ("user", "b"), ("user", "c")])
    same = common([("user", "a"), ("user", "b"), ("user", "c")], [("user", "a"), ("user", "x"), ("user", "c")])

    assert same == 1
    assert prompts.count(same, [("user", "x"), ("user", "c")]).cached == 1
    assert prompts.count(3, []).tokens == 3


def test_tokens_are_means_without_the_first_turn_and_the_cache_costs_a_tenth() -> None:
    ours, other = row([0.1, 0.2], [(10, 90), (10, 10), (10, 10)]), row([0.3, 0.4], [(10, 90), (10, 40), (10, 60)])

    assert (ours.tokens, ours.fresh, ours.stored) == (20, 10, 500)
    assert (paid(ours), paid(other)) == (11, 51)
    line = dict(zip(HEADERS, cells("other", other, ours), strict=True))
    assert (line["ms"], line["95 % interval"], line["fresh"]) == ("350", "2.00 to 3.00", "50")
    assert line["paid: times"] == "4.64"


@pytest.mark.parametrize(("value", "text"), [(0.123, "0.12"), (9.876, "9.88"), (12.34, "12.3"), (1234.5, "1,234")])
def test_figures_are_shown_with_digits_that_say_something(value: float, text: str) -> None:
    assert shown(value) == text


def test_a_longer_talk_begins_with_the_shorter_one_and_goes_on_by_turns(tmp_path: Path) -> None:
    talk = Talk(12, tmp_path)

    assert talk.messages == list(spoken_messages(14))[:12]
    assert [role for role, _ in talk.messages] == ["user", "assistant"] * 6
    assert [json.loads(line) for line in talk.file.read_text().splitlines()] == [list(each) for each in talk.messages]
    assert next(talk.turns(8)) == (talk.messages[8][1], talk.messages[9][1])
    with pytest.raises(ValueError, match="middle of a turn"):
        next(talk.turns(7))


class Remembering:
    """A peer that sends the newest ``most`` messages."""

    def __init__(self, name: str, most: int, order: list[str]) -> None:
        self.name, self.folds, self.rows = name, most < 100, {name: name}
        self.most, self.order, self.kept, self.last = most, order, list[tuple[str, str]](), list[tuple[str, str]]()

    def fill(self, conversation: str, talk: Talk, count: int) -> float:
        self.kept = talk.messages[:count]
        return 1.0

    def turn(self, conversation: str, user: str, assistant: str) -> Mapping[str, Turn]:
        self.order.append(self.name)
        now = [*self.kept, ("user", user)][-self.most :]
        same, self.last = common(self.last, now), now
        self.kept += [("user", user), ("assistant", assistant)]
        return {self.name: Turn(seconds=1, cpu=1, common=same, rest=now[same:])}

    def size(self) -> int:
        return 1_000 * len(self.kept)

    def settle(self) -> None:
        self.order.append(f"settle {self.name}")


def test_every_peer_plays_the_same_turns_and_those_who_fold_some_more(tmp_path: Path) -> None:
    order: list[str] = []
    peers = [Remembering("all", 100, order), Remembering("few", 4, order)]

    found = play(peers, Talk(30, tmp_path), 10, rounds=2, turns=4, weigh=lambda *_: 1)

    assert order == ["settle all", "settle few", "all", "few", "few", "all", "all", "few", "few", "few"]
    assert peers[0].kept == peers[1].kept[:16]
    whole, few = found.rows["all"], found.rows["few"]
    assert (len(whole.seconds), len(few.seconds), len(few.counted)) == (2, 2, 5)
    assert [(each.tokens, each.fresh) for each in whole.counted] == [(11, 11), (13, 2), (15, 2)]
    assert {each.tokens for each in few.counted} == {4}
    assert (whole.stored, found.filled) == (2_000, {"all": 1.0, "few": 1.0})


def test_a_framework_that_cannot_be_installed_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\necho no such package >&2\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(failing))

    with pytest.raises(UnavailableError, match="no such package"):
        python_of("adk", tmp_path)


def test_an_environment_is_made_anew_only_for_other_requirements(tmp_path: Path) -> None:
    (tmp_path / "adk").mkdir()
    (tmp_path / "adk" / "requirements.txt").write_text("\n".join(FRAMEWORKS["adk"].requirements))

    assert python_of("adk", tmp_path) == tmp_path / "adk" / "bin" / "python"
    assert all("==" in each for wanted in FRAMEWORKS.values() for each in wanted.requirements)


@pytest.mark.long
@pytest.mark.processes
def test_a_quick_run_with_the_bare_services(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["--quick", "--rounds", "2", "--peers", "throughline-32000", "honest", "naive"]) == 0

    found = json.loads((tmp_path / ".data" / "bench" / "peers.json").read_text())["played"]
    assert [each["messages"] for each in found] == [10, 1_000]
    short, long = (each["rows"] for each in found)
    assert list(long) == ["throughline-32000", "throughline-32000-recall", "honest", "naive"]
    assert short["honest"]["tokens"] == short["naive"]["tokens"] < long["naive"]["tokens"] == long["honest"]["tokens"]
    assert long["throughline-32000"]["tokens"] < 32_000 < long["naive"]["tokens"]
    assert long["naive"]["fresh"] < 1_000
    assert "LEFT OUT" not in capsys.readouterr().out

"""Checks for owners of a key: the cost is shown first, nobody is asked in vain, and the scripted servers pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import pytest

from bench import live
from bench.spending import NOT_RUN
from bench.trust import live as trust_live
from tests.gemini_server import running_gemini
from tests.openai_server import running_openai

KEYS: Final = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY", "THROUGHLINE_CHAT_MODEL", "YES")
STEPS: Final = ("talk", "cache", "compaction", "verification", "talk after it")
OPENAI: Final = "openai-responses:gpt-5-mini"
DEAR: Final = "openai-responses:gpt-5-pro"


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Remove all keys, and work in a folder without settings."""
    monkeypatch.chdir(tmp_path)
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


@contextmanager
def gemini(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with running_gemini() as server:
        monkeypatch.setenv("GEMINI_API_KEY", "test-key")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        yield server.url


@contextmanager
def openai(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with running_openai() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "test-key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for name in ("CHAT", "COMPACTION"):
            monkeypatch.setenv(f"THROUGHLINE_{name}_MODEL", OPENAI)
        yield server.url


def test_without_a_key_it_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert live.main() == NOT_RUN
    assert trust_live.run(1) == NOT_RUN
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("GEMINI_API_KEY or GOOGLE_API_KEY") == 2


def test_nothing_is_spent_unless_somebody_agrees(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "nobody's")
    assert live.main() == NOT_RUN
    told = capsys.readouterr()
    assert "9 calls" in told.out
    assert "$0.0" in told.out
    assert "YES=1" in told.err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: "")
    assert live.main() == NOT_RUN


def test_a_model_that_costs_more_than_a_tenth_of_a_dollar_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "nobody's")
    monkeypatch.setenv("YES", "1")
    for name in ("CHAT", "COMPACTION"):
        monkeypatch.setenv(f"THROUGHLINE_{name}_MODEL", DEAR)
    assert live.main() == NOT_RUN
    assert "more than $0.10" in capsys.readouterr().err


def test_what_only_one_of_two_answers_has_is_told() -> None:
    scripted = {"usage": {"in": 1}, "parts": [{"text": "a"}, {"text": "b"}]}
    assert live.differences({"usage": {"in": 7}, "parts": [{"text": "c"}]}, scripted) == []
    assert live.differences({"usage": {"in": 1.5, "thoughts": 2}, "parts": [{"text": "c"}]}, scripted) == [
        "only the provider: usage.in: float",
        "only the provider: usage.thoughts: int",
        "only the scripted server: usage.in: int",
    ]


@pytest.mark.long
@pytest.mark.parametrize("serving", [gemini, openai])
def test_every_step_goes_well_against_the_scripted_servers(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    serving: Callable[[pytest.MonkeyPatch], AbstractContextManager[str]],
) -> None:
    monkeypatch.setenv("YES", "1")
    with serving(monkeypatch):
        status = live.main()
    told = capsys.readouterr().out
    rows = {cells[1].strip(): cells[2].strip() for line in told.splitlines() if len(cells := line.split("|")) > 3}
    assert status == 0, told
    assert [rows.get(name) for name in STEPS] == ["yes"] * len(STEPS)
    assert "supported" in told
    assert "only the" not in told, "it is the scripted server that is compared with itself"
    assert "a wrong key: answered, expected unauthorized" in told


@pytest.mark.long
def test_a_step_that_fails_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("YES", "1")
    with running_gemini() as server:
        server.script("compaction", default="error_500")
        monkeypatch.setenv("GEMINI_API_KEY", "test-key")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        assert live.main() == 1
    assert "summarizer_failed" in capsys.readouterr().out


@pytest.mark.long
def test_the_prompts_of_the_open_half_are_asked_and_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("YES", "1")
    with gemini(monkeypatch):
        assert trust_live.run(3) == 0
    told = capsys.readouterr().out
    assert "3 calls" in told
    assert "3 of 3 answered" in told
    assert "honest answers accepted at the first attempt" in told
    answers = (tmp_path / ".data" / "bench" / trust_live.ANSWERS).read_text("utf-8").splitlines()
    assert len({json.loads(line)["case"] for line in answers}) == 3

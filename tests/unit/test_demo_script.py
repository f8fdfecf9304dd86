"""The story of the demo, its final figures, and its words when something goes wrong."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from app.cli import app
from app.cli.complaints import ComplaintError
from app.cli.demo import command
from app.cli.demo.play import figures
from app.cli.demo.story import Line, load_story
from app.client import Compaction, ConnectionFailedError, Message
from app.client.errors import error_of
from app.core.model.policies.budgets import budgets_of
from app.core.model.policies.resolving import resolve
from app.core.text.token_counts import estimate_text

STORY = load_story()
LINES = STORY.messages
BUDGETS = budgets_of(resolve("semantic", {"context_window": STORY.context_window}), model_limit=1_000_000)
IMPORTED = [line for line in LINES if line.manner == "imported"]
JUMP = next(line for line in LINES if line.manner == "jump")


def said(words: str, role: str = "user") -> int:
    """The place of the only message of this role with these words."""
    found = [place for place, line in enumerate(LINES) if words in line.content and line.role == role]
    assert len(found) == 1, (words, found)
    return found[0]


def tokens(lines: list[Line]) -> int:
    return sum(estimate_text(line.content) for line in lines)


def test_it_is_long() -> None:
    assert len(IMPORTED) >= 150
    assert all(line.content.strip() for line in LINES)
    assert len({line.content for line in LINES}) == len(LINES)


def test_user_and_assistant_take_turns() -> None:
    expected = "user"
    for line in LINES:
        assert line.role == expected, line.content
        expected = "assistant" if line.role == "user" and line.manner == "imported" else "user"


def test_time_goes_on() -> None:
    times = [line.created_at for line in LINES]
    assert times == sorted(set(times))
    assert all(STORY.lines_of(scene)[0].created_at == scene.at for scene in STORY.scenes)
    assert [line for scene in STORY.scenes for line in STORY.lines_of(scene)] == LINES
    assert (times[-1] - times[0]).days > 90


def test_somebody_changes_her_mind_after_she_had_decided() -> None:
    assert said("Let's use Postgres") < said("We switch the ticket page from Postgres to MySQL 8.4")


def test_facts_are_corrected_after_they_were_stated() -> None:
    assert said("total budget of 18,500 euros") == 0
    assert 0 < said("is not 18,500 but 16,500 euros") < said("now 19,000 euros instead of 16,500")
    assert said("not 320 but 280") > 0


def test_a_question_stays_open_until_it_is_answered() -> None:
    assert said("Who looks after the bar is still open") < said("That was our oldest open question", "assistant")


def test_the_tone_goes_from_friendly_to_frustrated_to_relieved() -> None:
    assert said("Haha, deal") < said("this is ridiculous") < said("I'm so happy") < said("Relieved. And proud.")


def test_the_context_fills_long_before_the_script_ends() -> None:
    before_jump = LINES[: LINES.index(JUMP)]
    assert tokens(before_jump) > 1.2 * BUDGETS.budget
    assert tokens(before_jump[:40]) < 0.5 * BUDGETS.budget


def test_the_long_message_jumps_over_85_percent_from_what_a_compaction_leaves_and_fits_the_target() -> None:
    added = estimate_text(JUMP.content)
    assert 0.55 * BUDGETS.budget + added > 0.85 * BUDGETS.budget
    assert added < 0.35 * BUDGETS.budget


def test_nothing_else_is_long() -> None:
    assert max(estimate_text(line.content) for line in LINES if line is not JUMP) < 100


def test_the_agreement_answers_what_is_asked_about_it() -> None:
    assert "half of the fee\nis owed, which is 1,075 euros" in JUMP.content


def test_the_example_is_the_story_up_to_its_sixtieth_message() -> None:
    example = Path(__file__).parents[2] / "examples" / "lantern-nights.json"
    told = [message["content"] for message in json.loads(example.read_text(encoding="utf-8"))["messages"]]
    assert told == [line.content for line in IMPORTED[:60]]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (error_of(401, {"detail": "no key"}), "or neither if the service asks for none."),
        (error_of(502, {"title": "Bad", "detail": "the model\nfailed"}), "the model failed (http_502)"),
        (ConnectionFailedError("refused"), "The service does not answer: refused."),
        (ComplaintError("The worker\nstarted none."), "The worker started none."),
    ],
)
def test_whatever_goes_wrong_is_one_line(error: Exception, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(command, "find_service", lambda url: url)
    monkeypatch.setattr(command, "play", fail)
    done = CliRunner().invoke(app, ["demo", "--url", "http://127.0.0.1:1", "--key", "secret"])
    assert done.exit_code == 1
    assert done.stdout == ""
    assert done.stderr.endswith(f"{said}\n")
    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stderr


def message(tokens: int, model: str | None = None, sent: int = 0) -> Message:
    about: dict[str, Any] = {
        "id": uuid4(), "conversation_id": uuid4(), "seq": 1, "turn": 1, "role": "user", "content": "", "parts": [],
        "event_type": "casual", "status": "complete", "is_protected": False, "protected_reason": "compressible",
        "token_count": tokens, "model": model, "usage": {"input_tokens": sent} if model else None, "metadata": {},
        "created_at": datetime.now(UTC),
    }  # fmt: skip
    return Message.model_validate(about)


def compaction(**fields: Any) -> Compaction:
    return Compaction.model_construct(**fields)


def test_the_figures_compare_what_was_sent_with_the_whole_history() -> None:
    history = [message(100), message(20), message(10, "offline", sent=60), message(30), message(5, "offline", sent=70)]
    applied = [
        compaction(trigger="background", tokens_before=90, tokens_after=50),
        compaction(trigger="sync", tokens_before=95, tokens_after=60),
        compaction(trigger="background", tokens_before=80, tokens_after=50),
    ]
    assert dict(figures(history, applied, 1_065)) == {
        "messages in the history": "5, unchanged",
        "tokens ever written": "165",
        "fullest context, before compaction": "95 tokens",
        "context now": "1,065 tokens",
        "sent in the 2 turns answered now": "130 tokens, instead of 280",
        "compactions by background": "2, 70 tokens taken out of the context",
        "compactions by sync": "1, 35 tokens taken out of the context",
    }

from __future__ import annotations

import httpx
import pytest

from app.cli.demo import story
from app.cli.demo.client import Compaction, DemoError, Gauge, Throughline
from app.cli.demo.gauge_bar import bar, marks
from app.cli.demo.script import CONTEXT_WINDOW, LINES, SCENES, Line, read_scene
from app.cli.demo.view import event_words
from app.core.model.policies.policy import budgets_of
from app.core.model.policies.presets import resolve
from app.core.text.token_counts import estimate_text

BUDGETS = budgets_of(resolve("semantic", {"context_window": CONTEXT_WINDOW}), model_limit=1_000_000)
IMPORTED = [line for line in LINES if line.manner == "imported"]
JUMP = next(line for line in LINES if line.manner == "jump")


def said(words: str, role: str = "user") -> int:
    """The place of the only message of that role which says so."""
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
    times = [line.at for line in LINES]
    assert times == sorted(set(times))
    assert all(scene.lines[0].at == scene.at for scene in SCENES)
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
    before_jump = list(LINES[: LINES.index(JUMP)])
    assert tokens(before_jump) > 1.2 * BUDGETS.budget
    assert tokens(before_jump[:40]) < 0.5 * BUDGETS.budget


def test_the_long_message_jumps_over_85_percent_from_what_a_compaction_leaves_and_fits_the_target() -> None:
    added = estimate_text(JUMP.content)
    assert 0.55 * BUDGETS.budget + added > 0.85 * BUDGETS.budget
    assert added < 0.35 * BUDGETS.budget


def test_nothing_else_is_long() -> None:
    assert max(estimate_text(line.content) for line in LINES if line is not JUMP) < 100


def test_the_agreement_answers_what_is_asked_about_it() -> None:
    assert "half of the fee\nis owed, which is 1,075 euros" in story.AGREEMENT
    assert JUMP.content.endswith(story.AGREEMENT)


def test_a_scene_is_read_as_it_is_written() -> None:
    scene = read_scene("2025-03-04 09:10", "Two", "\nU: One\n    and more: text\nA: Two\n?: Three\n")
    found = [(line.role, line.manner, line.content, line.at.minute) for line in scene.lines]
    assert found == [
        ("user", "imported", "One and more: text", 10),
        ("assistant", "imported", "Two", 12),
        ("user", "asked", "Three", 14),
    ]


def test_a_scene_without_a_mark_is_refused() -> None:
    with pytest.raises(ValueError, match="does not begin with a mark"):
        read_scene("2025-03-04 09:10", "Broken", "One\n")


def test_an_event_is_one_line() -> None:
    compaction = Compaction(
        id="1",
        trigger="background",
        ran_in="worker",
        status="applied",
        reason=None,
        messages_covered=24,
        to_seq=24,
        tokens_before=2143,
        tokens_after=1799,
    )
    assert event_words("applied", compaction) == (
        "compaction.applied · background, in the worker: 2,143 → 1,799 tokens, 24 messages folded"
    )


@pytest.mark.parametrize(
    ("tail", "pending", "shown", "filled"),
    [(0, 0, "0 %", 0), (500, 0, "50 %", 36), (500, 200, "70 %", 51), (900, 300, "120 %", 73)],
)
def test_the_bar_fills_with_the_context(tail: int, pending: int, shown: str, filled: int) -> None:
    gauge = Gauge(tokens=tail, budget=1_000, background_at=700, sync_at=850, breakdown={"tail": tail})
    plain = bar(gauge, 80, pending=pending).plain
    assert len(plain) == 80
    assert plain.endswith(f" {shown}")
    assert plain.count("█") + plain.count("▓") == filled


def test_the_marks_stand_where_the_bar_has_them() -> None:
    gauge = Gauge(tokens=0, budget=1_000, background_at=700, sync_at=850, breakdown={})
    in_bar = [place for place, sign in enumerate(bar(gauge, 80).plain) if sign == "│"]
    below = [place for place, sign in enumerate(marks(gauge, 80).plain) if sign == "▲"]
    assert in_bar == below == [51, 62]


def answering(answer: httpx.Response) -> Throughline:
    """A client of a service that gives everybody the same answer."""
    return Throughline("http://127.0.0.1:1/", key="secret", transport=httpx.MockTransport(lambda _: answer))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (httpx.Response(401, json={"detail": "no key"}), "give it one with --key or THROUGHLINE_API_KEY."),
        (httpx.Response(502, json={"title": "Bad", "detail": "the model\nfailed"}), "502: the model failed (http_502)"),
        (httpx.Response(500, text="<html>"), "500: <html> (http_500)"),
    ],
)
def test_an_answer_that_is_no_success_is_one_line(answer: httpx.Response, said: str) -> None:
    with answering(answer) as service, pytest.raises(DemoError) as caught:
        service.count("x")
    assert str(caught.value).endswith(said)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)

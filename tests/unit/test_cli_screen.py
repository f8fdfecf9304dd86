"""What commands print: safe texts, tables, gauges, errors and notices, with and without a terminal."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime
from typing import Any, get_args
from uuid import uuid4

import httpx
import pytest
import typer
from rich.cells import cell_len
from rich.console import Console

from app.cli import screen as module
from app.cli.chat_commands import COMMANDS, run_command
from app.cli.complaints import ComplaintError, errors_as_one_line, words_of
from app.cli.gauge_line import show_gauge
from app.cli.notices import Notices
from app.cli.screen import Screen, one_line, safe
from app.cli.showing import ranges_of, show_context, show_repairs, show_segment, show_stats
from app.client import ApiError, ConnectionFailedError, Context, Conversation, Gauge, Segment, Throughline
from app.client.errors import error_of
from app.client.resources import Stats
from app.core.model.gauge import GaugeStatus
from app.core.model.policies.resolving import resolve
from app.core.text.localization.catalogue import CATALOGUES

EMPTY = dict.fromkeys(("system", "state", "anchors", "digests", "held", "tail", "recalled", "pending"), 0)


def gauge(tokens: int = 1_500, **fields: Any) -> Gauge:
    given: dict[str, Any] = {
        "tokens": tokens,
        "budget": 3_060,
        "window": 3_600,
        "utilization": tokens / 3_060,
        "status": "ok",
        "background_at": 2_142,
        "sync_at": 2_601,
        "tokens_until_compaction": 642,
        "breakdown": EMPTY | {"system": 200, "tail": tokens - 200},
    }
    return Gauge.model_validate(given | fields)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> tuple[Screen, io.StringIO]:
    """A screen on a terminal that somebody watches."""
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=60, highlight=False, color_system="standard")
    monkeypatch.setattr(module, "Console", lambda **_: console)
    return Screen(), shown


def test_no_control_character_reaches_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "a\x1b[31mred\x07\x9b2J\r\x00 Привет 👩‍🚀\n\tend"
    assert safe(hostile) == "a[31mred2J Привет 👩‍🚀\n\tend"
    Screen().line(hostile, (hostile, "red"))
    shown = capsys.readouterr().out
    assert not any(ord(sign) < 32 and sign not in "\n\t" for sign in shown)
    assert one_line("a\n b\tc") == "a b c"


def test_markup_in_a_text_is_text(capsys: pytest.CaptureFixture[str], terminal: tuple[Screen, io.StringIO]) -> None:
    screen, shown = terminal
    screen.line("[red]no[/red] [x →L1:y]")
    screen.table(("[a]",), [("[bold]b[/]",)])
    assert "[red]no[/red] [x →L1:y]" in shown.getvalue()
    assert "[bold]b[/]" in shown.getvalue()


def test_a_plain_table_is_aligned_by_columns_of_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().table(("name", "n"), [("船长", "1"), ("капитан и ещё очень длинный текст " * 5, "2")])
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.index("n", 4) == first.index("1") + 2, "two signs of double width"
    assert second.endswith("2")


LISTED = ("0c68b1a9-54f0-7d6c-9c1e-0d1f5f0a9a11", "Plans for the lantern festival on the quay 船长", "2,000", "12 %")
PLAIN = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize(("width", "told"), [(120, 4), (78, 4), (68, 3), (60, 2), (40, 2)])
def test_a_row_with_a_column_that_shrinks_stays_one_line(
    width: int, told: int, terminal: tuple[Screen, io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen, shown = terminal
    monkeypatch.setattr(screen._console, "_width", width)
    screen.table(("id", "title", "messages", "context"), [LISTED], shrinks=1, spare=(2, 3))
    head, row, *further = PLAIN.sub("", shown.getvalue()).splitlines()
    assert not further or width < 45, "an id that is longer than a line breaks all the same"
    assert len(head.split()) == told
    if width > 45:
        assert row.startswith(LISTED[0]), "the id can be copied"
        assert cell_len(row.rstrip()) <= width
    assert (LISTED[1] in row) == (width == 120)


def test_control_without_one_a_long_id_is_broken(terminal: tuple[Screen, io.StringIO]) -> None:
    screen, shown = terminal
    screen.table(("id", "title", "messages", "context"), [LISTED])
    assert LISTED[0] not in PLAIN.sub("", shown.getvalue())


def test_the_gauge_without_and_with_a_terminal(
    capsys: pytest.CaptureFixture[str], terminal: tuple[Screen, io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen, shown = terminal
    show_gauge(screen, gauge())
    assert "█" in shown.getvalue()
    assert "│" in shown.getvalue()
    assert "\x1b[32m" in shown.getvalue(), "green"
    monkeypatch.undo()
    show_gauge(Screen(), gauge())
    show_gauge(Screen(), gauge(9_000, status="over", tokens_until_compaction=0, background_at=None, sync_at=None))
    show_gauge(Screen(), gauge(5, breakdown=EMPTY, utilization=0.0016))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == ("[49 % · 1,500 of 3,060 tokens · ok · system 200, tail 1,300 · 642 until a compaction]")
    assert lines[1].startswith("[294 % · 9,000 of 3,060 tokens · over the budget")
    assert lines[2].startswith("[0.2 % · 5 of 3,060 tokens · ok · empty")


LEVELS = [
    ("ok", "\x1b[32m", "ok"),
    ("warning", "\x1b[33m", "getting full"),
    ("critical", "\x1b[31m", "nearly full, a compaction is due"),
    ("background", "\x1b[33m", "a compaction is due"),
    ("sync", "\x1b[31m", "compacts before the next reply"),
    ("over", "\x1b[1;31m", "over the budget"),
]


@pytest.mark.parametrize(("status", "colour", "words"), LEVELS)
def test_each_level_has_its_colour_and_its_words(
    capsys: pytest.CaptureFixture[str],
    terminal: tuple[Screen, io.StringIO],
    monkeypatch: pytest.MonkeyPatch,
    status: str,
    colour: str,
    words: str,
) -> None:
    screen, shown = terminal
    show_gauge(screen, gauge(status=status))
    bar, said = shown.getvalue().split("█ ", 1)[0], shown.getvalue()
    assert bar.startswith(f"{colour}█")
    assert f"{colour} 49 % " in said
    assert f" · {words} · " in re.sub(r"\x1b\[[0-9;]*m|\n", "", said)
    monkeypatch.undo()
    show_gauge(Screen(), gauge(status=status))
    plain = capsys.readouterr().out
    assert f" tokens · {words} · " in plain
    assert "\x1b" not in plain, "no colour where nobody looks"


def test_every_level_of_the_service_is_known() -> None:
    assert {status for status, _, _ in LEVELS} == set(get_args(GaugeStatus))


@pytest.mark.parametrize(("value", "coloured"), [(None, True), ("", True), ("1", False)])
def test_without_colour_the_bar_and_the_words_stay(
    monkeypatch: pytest.MonkeyPatch, value: str | None, *, coloured: bool
) -> None:
    """The rule of https://no-color.org: the variable counts if it is set and not empty."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    if value is not None:
        monkeypatch.setenv("NO_COLOR", value)
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=120, highlight=False)
    monkeypatch.setattr(module, "Console", lambda **_: console)
    show_gauge(Screen(), gauge(status="critical"))
    assert ("\x1b[3" in shown.getvalue()) == coloured
    assert "█" in shown.getvalue()
    assert "nearly full" in shown.getvalue()


def test_a_terminal_that_can_nothing_gets_the_plain_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(module, "Console", lambda **_: Console(force_terminal=True, highlight=False))
    show_gauge(Screen(), gauge(status="critical"))
    assert capsys.readouterr().out.startswith("[49 % · ")


@pytest.mark.parametrize("tokens", [0, 1, 2_142, 3_060, 50_000])
def test_a_bar_is_never_wider_than_it_may_be(terminal: tuple[Screen, io.StringIO], tokens: int) -> None:
    screen, shown = terminal
    show_gauge(screen, gauge(tokens))
    assert sum(shown.getvalue().count(sign) for sign in "█░│") == 24


def test_a_status_is_one_row_below_what_is_printed_and_gone_in_the_end(
    terminal: tuple[Screen, io.StringIO], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    screen, shown = terminal
    with screen.status() as show:
        show("status " * 20)
        assert "status status" in shown.getvalue()
        assert shown.getvalue().count("\n") == 0, "cut at the width"
        screen.line("printed")
    assert shown.getvalue().index("printed") < shown.getvalue().rindex("status")
    assert shown.getvalue().endswith("\x1b[1A\x1b[2K"), "up, and erased"
    monkeypatch.undo()
    with Screen().status() as show:
        show("status")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("wraps", "lines"), [(False, 1), (True, 3)])
def test_lines_break_between_words_where_that_is_asked_for(
    terminal: tuple[Screen, io.StringIO], *, wraps: bool, lines: int
) -> None:
    _, shown = terminal
    Screen(wraps=wraps).line("something " * 15)
    assert len(shown.getvalue().splitlines()) == lines
    assert shown.getvalue().count("something") == 15


def test_a_row_is_cut_at_the_width_of_a_terminal_only(
    terminal: tuple[Screen, io.StringIO], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    screen, shown = terminal
    screen.row(("Ines", "cyan"), "word " * 30)
    assert cell_len(re.sub(r"\x1b\[[0-9;]*m|\n", "", shown.getvalue())) == 58
    monkeypatch.undo()
    Screen().row("word " * 30)
    assert capsys.readouterr().out.count("word") == 30


def test_runs() -> None:
    assert ranges_of([]) == ""
    assert ranges_of([4]) == "4"
    assert ranges_of([9, 1, 2, 3, 9, 7]) == "1–3, 7, 9"


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("Rui is 51.", None, ["- Rui is 51.", "+ (left out)"]),
        ("", "Ana said: 7,150 euros.", ["- (added)", "+ Ana said: 7,150 euros."]),
        ("", None, ["(erased)"]),
        ("", "", ["(erased)"]),
    ],
)
def test_of_a_repair_without_texts_it_is_said_that_they_were_erased(
    before: str, after: str | None, shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    show_repairs(Screen(), [{"field": "logos", "reason": "novel_value", "before": before, "after": after}])
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in lines[2:]] == shown


@pytest.mark.parametrize(
    ("made_by", "shown"),
    [
        ("compaction", "nothing was done to the summary"),
        ("verification", "nothing was done to the summary"),
        ("erasure", "written by an erasure: what rested on the erased messages is gone"),
        ("restore", "an earlier version, restored: what was done to its summary stands with that version"),
    ],
)
def test_a_version_without_repairs_says_what_wrote_it(
    made_by: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_repairs(Screen(), [], made_by=made_by)
    assert capsys.readouterr().out.strip() == shown


def test_a_context_and_a_segment_show_what_belongs_to_them(capsys: pytest.CaptureFixture[str]) -> None:
    marker = {"text": "[tickets →L1:tickets]", "level": "detailed", "segment_id": "tickets"}
    context = Context.model_validate(
        {
            "messages": [],
            "sections": [{"kind": "tail", "level": None, "segment_id": None, "seqs": [4, 5, 6], "tokens": 90}],
            "markers": [marker],
            "gauge": gauge(),
            "warnings": ["pin_left_out"],
            "truncated": {"from_seq": 1, "to_seq": 3},
        }
    )
    show_context(Screen(), context)
    message = {
        "id": uuid4(), "conversation_id": uuid4(), "seq": 4, "turn": 3, "role": "assistant", "content": "",
        "parts": [{"type": "tool_call", "id": "c", "name": "tide", "arguments": {"port": "Riga"}}],
        "event_type": "casual", "status": "complete", "is_protected": False, "protected_reason": "compressible",
        "token_count": 3, "model": None, "usage": None, "metadata": {}, "created_at": datetime.now(UTC),
    }  # fmt: skip
    segment = {
        "segment_id": "tickets", "topic": "Билеты", "from_seq": 4, "to_seq": 4, "started_at": None, "ended_at": None,
        "message_count": 1, "level": "full", "content": "", "messages": [message], "anchors": [],
        "expansion_markers": [], "token_count": 3, "made_by": "extractive", "truncated": False, "next_cursor": None,
    }  # fmt: skip
    show_segment(Screen(), Segment.model_validate(segment))
    shown = capsys.readouterr().out
    for words in (
        "4–6", "[tickets →L1:tickets]", "left out for want of room: messages 1–3", "warning: pin_left_out",
        "Билеты · tickets · full · messages 4–4", "calls tide: {'port': 'Riga'}",
    ):  # fmt: skip
        assert words in shown
    assert "(nothing)" not in shown
    show_segment(Screen(), Segment.model_validate({**segment, "segment_id": "earlier", "messages": []}))
    assert capsys.readouterr().out.splitlines()[1] == "(nothing)", "where nothing is folded yet"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            error_of(401, {"detail": "no key"}),
            (
                "No API key was given, or the one that was given is not valid: set --key or THROUGHLINE_API_KEY, "
                "or neither if the service asks for none."
            ),
        ),
        (error_of(404, {"detail": "No such conversation.", "code": "not_found"}), "No such conversation. (not_found)"),
        (
            error_of(
                422, {"code": "invalid_input", "detail": "bad", "errors": [{"field": "budget", "message": "low"}]}
            ),
            "bad; budget: low (invalid_input)",
        ),
        (ApiError(500, {}), "the service answered 500 (http_500)"),
        (ConnectionFailedError("refused"), "The service does not answer: refused."),
        (ComplaintError("Say which."), "Say which."),
    ],
)
def test_errors_in_words(error: Exception, said: str) -> None:
    assert words_of(error) == said


@pytest.mark.parametrize("error", [ComplaintError("two\nlines"), ConnectionFailedError("x"), ApiError(502, {})])
def test_a_complaint_is_one_line_and_exit_2(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught, errors_as_one_line():
        raise error
    assert caught.value.exit_code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_defect_is_no_complaint() -> None:
    with pytest.raises(ZeroDivisionError), errors_as_one_line():
        raise ZeroDivisionError


def conversation(locale: str) -> Conversation:
    policy = resolve("semantic", {"context_window": 4_000}).model_dump(mode="json")
    now = datetime.now(UTC)
    about = {
        "id": uuid4(), "title": None, "user_id": None, "locale": locale, "system_prompt": "", "preset": "semantic",
        "state_schema": None, "compressed_at_message_id": None, "state_version": 0, "compression_count": 0,
        "metadata": {}, "message_count": 0, "last_message_at": None, "context": gauge(), "created_at": now,
        "updated_at": now, "policy": policy, "compressed_state": None, "scratchpad": {}, "live_context": None,
    }  # fmt: skip
    return Conversation.model_validate(about)


def nobody() -> Throughline:
    return Throughline("http://nowhere", transport=httpx.MockTransport(lambda _: httpx.Response(404)))


APPLIED = {
    "compaction_id": "1", "trigger": "background", "reason": None, "messages_covered": 24,
    "tokens_before": 2_142, "tokens_after": 1_000,
}  # fmt: skip


def test_a_compaction_is_told_of_once_in_the_talk_s_language() -> None:
    russian, english = Notices(conversation("ru"), nobody), Notices(conversation("en"), nobody)
    told = russian.words("compaction.applied", APPLIED)
    assert told is not None
    assert told.startswith("Беседа сжата · Контекст заполнен на 70 % или больше: 24 сообщения в пересказе")
    assert told.endswith("(2\u00a0142 → 1\u00a0000)")
    assert russian.words("compaction.applied", APPLIED) is None, "once"
    assert english.words("compaction.started", APPLIED) is not None
    assert (english.words("compaction.applied", APPLIED) or "").startswith("Conversation compressed · Context at 70 %")
    skipped = {**APPLIED, "compaction_id": "2", "reason": "nothing_to_compact"}
    assert (english.words("compaction.skipped", skipped) or "").endswith("(nothing to compact)")
    assert (russian.words("compaction.skipped", skipped) or "").endswith("(нечего сжимать)")


def test_what_is_nobody_s_business_is_not_told() -> None:
    notices = Notices(conversation("en"), nobody)
    assert notices.words("message.created", {"seq": 1}) is None
    assert notices.words("compaction.applied", {**APPLIED, "trigger": "erasure"}) is None
    assert list(notices.waiting()) == []


def test_small_sums_of_money_are_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    figures = {"served_usd": 0.0000624, "history_usd": 12.25, "saved_usd": None}
    labels = {f"context.cost_per_query.{name}": name for name in figures}
    show_stats(Screen(), Stats.model_validate({"context": {"cost_per_query": figures}, "labels": labels}))
    assert capsys.readouterr().out.split("\n", 1)[1].split() == ["served_usd", "0.0000624", "history_usd", "12.2"]


@pytest.mark.parametrize(
    ("language", "told"),
    [
        ("en", "summary-2: 1,200, of which refused: 3, asked again: 7; repairs: 4, doubts: 2"),
        ("ru", "summary-2: 1\xa0200, из них отклонено: 3, переспрошено: 7; исправлений: 4, сомнений: 2"),
    ],
)
def test_calls_stand_under_the_version_of_their_prompt(
    capsys: pytest.CaptureFixture[str], language: str, told: str
) -> None:
    versions: list[dict[str, Any]] = [
        {"prompt_version": "summary-2", "attempts": 1_200, "accepted": 1_190, "refused": 3}
        | {"asked_again": 7, "repairs": 4, "doubts": 2},
        {"prompt_version": None, "attempts": 5, "accepted": 5, "refused": 0},
    ]
    stats = {"model_calls": {"by_prompt_version": versions}, "labels": {"model_calls.by_prompt_version": "calls"}}
    show_stats(Screen(CATALOGUES[language]), Stats.model_validate(stats))
    assert " ".join(capsys.readouterr().out.split("\n", 1)[1].split()) == f"calls {' '.join(told.split())}"


def test_a_context_says_why_its_thresholds_are_where_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = {"background": 0.8, "target": 0.4, "own_background": 0.7, "own_target": 0.6, "pace": None}
    given: dict[str, Any] = {"messages": [], "sections": [], "markers": [], "warnings": [], "truncated": None}
    for adaptive in (None, {**numbers, "explanation": "Because the cache is warm."}):
        shown = gauge().model_dump() | {"adaptive": adaptive}
        show_context(Screen(), Context.model_validate({**given, "gauge": shown}))
        assert ("Because the cache is warm." in capsys.readouterr().out) is (adaptive is not None)


WITHOUT_LANGUAGE = frozenset({"L1", "tickets", "focus", "MARKER", "full", "detailed", "brief", "tags", "pin_left_out"})
"""Names of ours, and words that users type."""


def test_a_russian_chat_has_no_english_word_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(CATALOGUES["ru"])
    for status in get_args(GaugeStatus):
        show_gauge(screen, gauge(1_234, status=status, breakdown=dict.fromkeys(EMPTY, 100)))
    show_gauge(screen, gauge(0, breakdown=EMPTY))
    marker = {"text": "[билеты →L1:tickets]", "level": "detailed", "segment_id": "tickets"}
    sections = [
        {"kind": kind, "level": None, "segment_id": None, "seqs": [1], "tokens": 9}
        for kind in (*EMPTY, "left_out", "passages")
        if kind != "pending"
    ]
    given = {"messages": [], "sections": sections, "markers": [marker], "gauge": gauge()}
    truncated = {"from_seq": 1, "to_seq": 3}
    show_context(screen, Context.model_validate({**given, "warnings": ["pin_left_out"], "truncated": truncated}))
    COMMANDS["/help"](nobody(), "", screen, "")
    for typed in ("/нет", "/expand"):
        with pytest.raises(ComplaintError) as wrong:
            run_command(typed, nobody(), "", screen)
        screen.line(str(wrong.value))
    said = capsys.readouterr().out
    assert "40 % · 1\u00a0234 из 3\u00a0060 токенов" in said
    assert set(re.findall(r"(?<![/\w])[A-Za-z]\w+", said)) <= WITHOUT_LANGUAGE

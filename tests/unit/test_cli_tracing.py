"""``search``, ``anchors`` and ``compactions``: what they ask of the service, and what they print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID, uuid4

import pytest
from typer.testing import CliRunner, Result

from app.cli import app
from app.cli.complaints import errors_as_one_line
from app.client import Anchor, ApiError, Compaction, SearchHit

ID: Final = "01a1f8ee-6b9b-74e6-ae63-55cb2820a7e8"
MARCH: Final = datetime(2026, 3, 6, 8, 44, tzinfo=UTC)


class _Client:
    """A service that has these resources, and remembers what it was asked."""

    def __init__(self, *resources: Any, error: Exception | None = None) -> None:
        self._resources = resources
        self._error = error
        self.asked: Mapping[str, Any] = {}

    def _list(self, _id: str, q: str | None = None, **asked: Any) -> Iterable[Any]:
        self.asked = {**asked, "q": q} if q is not None else asked
        if self._error is not None:
            raise self._error
        return iter(self._resources)

    search = anchors = compactions = _list


def hit(seq: int, snippet: str, segment_id: str | None = None) -> SearchHit:
    return SearchHit(
        message_id=uuid4(), seq=seq, segment_id=segment_id, snippet=snippet, score=0.5, role="user", created_at=MARCH
    )


def anchor(seq: int, content: str, **fields: Any) -> Anchor:
    given = {
        "id": uuid4(),
        "type": "critical_fact",
        "content": content,
        "original_position": seq,
        "offset": 0,
        "message_id": uuid4(),
        "speaker": "user",
        "pasted": False,
        "status": "active",
        "proposed_by": "rule",
        "superseded_by": None,
    }
    return Anchor.model_validate(given | fields)


def compaction(**fields: Any) -> Compaction:
    nothing = (
        "id model focus from_seq to_seq tokens_before tokens_after ratio state_version_after summary cost_usd "
        "duration_ms retry_of started_at finished_at reason"
    )
    given = dict.fromkeys(nothing.split()) | {
        "conversation_id": UUID(ID),
        "trigger": "background",
        "ran_in": "worker",
        "status": "applied",
        "strategy": "semantic",
        "joined": False,
        "attempts": [],
        "messages_covered": 0,
        "entries": {},
        "state_version_before": 1,
        "repairs": [],
        "usage": {},
        "requested_at": MARCH,
    }
    return Compaction.model_validate(given | fields)


def ran(client: _Client, monkeypatch: pytest.MonkeyPatch, *argv: str, language: str = "C.UTF-8") -> Result:
    @contextmanager
    def connected(*_: object) -> Iterator[_Client]:
        with errors_as_one_line():
            yield client

    monkeypatch.setenv("LC_ALL", language)
    monkeypatch.setattr("app.cli.tracing.connected_client", connected)
    return CliRunner().invoke(app, list(argv))


def cells(done: Result) -> list[list[str]]:
    assert done.exit_code == 0, done.output
    return [[cell for cell in line.split("  ") if cell] for line in done.stdout.splitlines()]


def test_a_hit_has_its_place_its_day_its_speaker_and_where_it_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    client = _Client(hit(15, "By 15 May\nat the latest.", "permit"), hit(44, "After the permit."))
    head, *rows = cells(ran(client, monkeypatch, "search", ID, "15", "May"))
    assert client.asked == {"q": "15 May", "page_size": 21}
    assert [name.strip() for name in head] == ["message", "date (UTC)", "said by", "folded into", "text"]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["15", "2026-03-06 08:44", "user", "permit", "By 15 May at the latest."],
        ["44", "2026-03-06 08:44", "user", "–", "After the permit."],
    ]


@pytest.mark.parametrize("command", [["search", ID, "May"], ["anchors", ID], ["compactions", ID]])
def test_a_limit_is_kept_over_pages_and_what_is_left_out_is_said(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    makers: dict[str, Any] = {"search": hit, "anchors": anchor}
    made = makers.get(command[0], lambda *_: compaction())
    client = _Client(*(made(number, "Text.") for number in range(1, 251)))
    cut = ran(client, monkeypatch, *command, "--limit", "249")
    assert (client.asked["page_size"], len(cells(cut))) == (100, 1 + 249 + 1)
    assert cut.stdout.endswith("… there are more: raise --limit.\n")
    whole = ran(client, monkeypatch, *command, "--limit", "250")
    assert (len(cells(whole)), "raise --limit" in whole.stdout) == (1 + 250, False), "control"
    assert len(json.loads(ran(client, monkeypatch, *command, "--limit", "249", "--json").stdout)) == 249


def test_an_anchor_says_whose_words_it_has_and_what_took_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    later = anchor(40, "No, 20 May.", type="correction", pasted=True)
    client = _Client(
        anchor(15, "By 15 May.", status="superseded", superseded_by=later.id),
        anchor(16, "Gone.", status="superseded", superseded_by=uuid4()),
        later,
        anchor(41, "I bring coffee.", type="commitment", proposed_by="user"),
    )
    asked = ("anchors", ID, "--type", "critical_fact", "--status", "superseded")
    _, *rows = cells(ran(client, monkeypatch, *asked))
    assert client.asked == {"type": "critical_fact", "status": "superseded", "page_size": 100}
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["15", "critical_fact", "superseded by message 40", "user", "By 15 May."],
        ["16", "critical_fact", "superseded", "user", "Gone."],
        ["40", "correction", "active", "user, pasted", "No, 20 May."],
        ["41", "commitment", "active by hand", "user", "I bring coffee."],
    ]


def test_a_compaction_says_when_how_far_and_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    applied = {"from_seq": 1, "to_seq": 58, "tokens_before": 2_341, "tokens_after": 1_400, "duration_ms": 1_540}
    client = _Client(
        compaction(trigger="manual", status="failed", reason="model_unavailable"),
        compaction(**applied, state_version_after=2),
    )
    _, *rows = cells(ran(client, monkeypatch, "compactions", ID))
    assert client.asked == {"order": "desc", "page_size": 21}
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["2026-03-06 08:44", "manual", "failed", "–", "– → –", "–", "–", "model_unavailable"],
        ["2026-03-06 08:44", "background", "applied", "1–58", "2,341 → 1,400", "1.5", "2", "–"],
    ]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["search", ID, "May"], "No message has any of these words. Try other words, or fewer.\n"),
        (["anchors", ID], "No passage of this conversation is an anchor.\n"),
        (["anchors", ID, "--status", "active"], "No anchor of this conversation is of this type and status.\n"),
        (["compactions", ID], "This conversation was never compacted.\n"),
    ],
)
def test_nothing_is_one_line_and_an_empty_list_for_programs(
    argv: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ran(_Client(), monkeypatch, *argv).stdout == said
    assert json.loads(ran(_Client(), monkeypatch, *argv, "--json").stdout) == []


def test_a_russian_terminal_reads_russian(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = (
        ran(_Client(hit(1, "15 мая.")), monkeypatch, "search", ID, "мая", language="ru_RU.UTF-8").stdout
        + ran(_Client(anchor(1, "15 мая.")), monkeypatch, "anchors", ID, language="ru_RU.UTF-8").stdout
        + ran(
            _Client(compaction(status="rejected", reason="unfounded")),
            monkeypatch,
            *("compactions", ID),
            language="ru_RU.UTF-8",
        ).stdout
    )
    assert "слишком многое не подтвердилось" in shown
    assert "".join(sign for sign in shown.replace("UTC", "") if sign.isascii() and sign.isalpha()) == ""


@pytest.mark.parametrize("command", [["search", ID, "May"], ["anchors", ID], ["compactions", ID]])
def test_a_refusal_is_one_line(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    refused = ApiError(404, {"code": "not_found", "detail": "No such conversation."})
    done = ran(_Client(error=refused), monkeypatch, *command)
    assert (done.exit_code, done.stderr) == (2, "No such conversation. (not_found)\n")

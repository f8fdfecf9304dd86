"""Cases 1 to 11: every answer that a summarizer may give, through the whole service on a real database.

Each control plays the same scenario with one guard taken out: what was refused is then applied, and the check fails.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import pytest
from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.candidate import Candidate
from app.core.model.conversation import QuietPeriod, Usage
from app.core.model.errors import (
    CompactionInProgressError,
    DependencyUnavailableError,
    DomainError,
    ModelUnavailableError,
    SummarizerFailedError,
)
from app.core.model.model_io import (
    FinishReason,
    Proposal,
    SummaryRequest,
)
from app.core.model.records import Attempt, Compaction
from app.core.model.schemas import SESSION
from app.core.summarizer.candidate import CandidateError, parse_candidate
from app.core.validation import gate
from app.core.validation.exact_checks import ExaminedCandidate
from app.core.validation.gate import GateReport
from app.storage.repositories.conversations import ConversationRepository
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.compaction import attempts as ladder
from app.usecases.compaction.claiming import OUTAGES, failures_in_a_row, quiet_after_failure
from app.usecases.compaction.manual import CompactInput
from tests.fakes import FAKE_PROFILE, ScriptedSummarizer
from tests.integration import rows
from tests.integration.services import Service, honest, proposal
from tests.unit.talk import answer, fact
from tests.unit.timing import often

QUIET: Final = QuietPeriod(until=datetime.now(UTC) + timedelta(hours=1), reason="circuit_open")

PATIENCE = 60.0
Break = Callable[[pytest.MonkeyPatch], None]
Written = Callable[[SummaryRequest], Awaitable[Proposal]]

KEPT: Final = (
    "compressed_state::text, state_schema, compressed_at_message_id, boundary_seq, state_version, layout::text,"
    " layout_version, compression_count, content_epoch, covered_messages, covered_tokens, context_tokens"
)
"""What a failed compaction must leave unchanged in the database."""


@dataclass(frozen=True, kw_only=True)
class Played:
    """A compaction over an earlier state, with what was stored before and after it."""

    row: Compaction
    before: bytes
    after: bytes
    state: str
    events: list[str]


async def stored(engine: AsyncEngine, service: Service, conversation_id: UUID) -> bytes:
    """Every byte of the stored state and of what is served."""
    async with engine.connect() as connection:
        of_row = await connection.execute(
            text(f"SELECT {KEPT} FROM conversations WHERE id = :id"),  # noqa: S608 - columns of our own
            {"id": conversation_id},
        )
        versions = await connection.execute(
            text("SELECT row_to_json(v)::text FROM state_versions v WHERE conversation_id = :id ORDER BY version"),
            {"id": conversation_id},
        )
        found = [repr(tuple(of_row.one())), *(str(row[0]) for row in versions)]
    context = await service.container.context.assemble(service.tenant, conversation_id)
    return "\n".join([*found, *(f"{one.role} {one.seq} {one.content}" for one in context.messages)]).encode()


async def with_a_state(service: Service) -> UUID:
    """A conversation with a first state, and with a second compaction queued."""
    conversation_id = await service.conversation()
    await service.say(conversation_id, 60)
    first = await service.container.compaction.execute(service.queue.ids[0])
    assert first is not None
    assert first.status == "applied"
    await service.say(conversation_id, 30)
    assert len(service.queue.ids) == 2
    return conversation_id


async def play(begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, fault: Any) -> Played:
    """Play the second compaction of a conversation with these answers of the summarizer."""
    service = Service(begin, tenant, honest, fault)
    conversation_id = await with_a_state(service)
    before = await stored(engine, service, conversation_id)
    row = await service.container.compaction.execute(service.queue.ids[1])
    assert row is not None
    after = await stored(engine, service, conversation_id)
    state = json.dumps((await service.row(conversation_id)).compressed_state, ensure_ascii=False)
    events = [name for name in await service.events(conversation_id) if name.startswith("compaction")]
    return Played(row=row, before=before, after=after, state=state, events=events[-3:])


def check_refused(played: Played, reason: str) -> None:
    """Insist on the law of cases 1 to 7 and 10."""
    by_model = reason in {"server_error", "timeout", "unauthorized"}
    assert (played.row.status, played.row.reason) == ("failed" if by_model else "rejected", reason)
    assert played.after == played.before, "byte for byte"
    assert played.events == ["compaction.queued", "compaction.started", "compaction.failed"]
    assert played.row.state_version_after is None
    assert len(played.row.attempts) >= (1 if reason == "unauthorized" else 2)
    assert {attempt.reason for attempt in played.row.attempts} == {reason}


# --- what comes back


def said(told: str) -> Written:
    async def write(_: SummaryRequest) -> Proposal:
        return Proposal(text=told, finish="stop", model="fake")

    return write


def ended(finish: FinishReason, *, called_tool: bool = False) -> Written:
    """An honest answer with this finish, as the provider reports it."""

    async def write(request: SummaryRequest) -> Proposal:
        return replace(proposal(request), finish=finish, called_tool=called_tool)

    return write


async def echo(request: SummaryRequest) -> Proposal:
    """Give the input back as the answer."""
    facts = [fact(message.content, message.seq) for message in request.messages]
    return Proposal(text=answer("It was said.", facts), finish="stop", model="fake")


async def talkative(request: SummaryRequest) -> Proposal:
    """Give back every message without its last words, each with an end of its own, so that no sentence is cut off."""
    kept = ((message.content[: -len(message.content) // 12], message.seq) for message in request.messages)
    facts = [fact(f"{text.rpartition(' ')[0]}.", seq) for text, seq in kept]
    return Proposal(text=answer("It was said.", facts), finish="stop", model="fake")


# --- the guards, taken out one at a time


def without_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "REFUSED_FINISHES", {})


def without_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "REFUSED_FINISHES", {})
    whole = gate.judge
    monkeypatch.setattr(ladder, "judge", lambda given, request: whole(replace(given, called_tool=False), request))


def without_check(name: str) -> Break:
    def broken(monkeypatch: pytest.MonkeyPatch) -> None:
        left = tuple(check for check in gate.CHECKS if check.__name__ != name)
        assert len(left) == len(gate.CHECKS) - 1
        monkeypatch.setattr(gate, "CHECKS", left)

    return broken


def with_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that takes any text that came as the story so far, which is the classic mistake."""

    def lenient(given: Proposal, request: SummaryRequest) -> GateReport:
        try:
            return GateReport(candidate=parse_candidate(given.text, request.schema))
        except CandidateError:
            return GateReport(candidate=Candidate(items=(), narrative={"conversation_summary": given.text}, dropped=()))

    monkeypatch.setattr(ladder, "judge", lenient)


def with_errors_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that stores an error's words as if they were an answer."""
    whole = ladder._answer_of

    class Unguarded:
        def __init__(self, summarizer: Any) -> None:
            self.summarizer = summarizer
            self.profile = summarizer.profile

        async def ask(self, request: Any) -> Proposal:
            try:
                found: Proposal = await self.summarizer.ask(request)
            except ModelUnavailableError as error:
                if not isinstance(request, SummaryRequest):
                    raise
                return Proposal(text=answer(f"Error: {error.reason}"), finish="stop", model="fake")
            return found

    async def asked(summarizer: Any, *more: Any) -> Any:
        return await whole(Unguarded(summarizer), *more)

    monkeypatch.setattr(ladder, "_answer_of", asked)
    with_anything(monkeypatch)


def without_language(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grounding is removed too: it would refuse such words as well, with another reason."""
    without_check("_is_in_another_language")(monkeypatch)
    without_grounding(monkeypatch)


def without_grounding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "examine_candidate", lambda candidate, *_: ExaminedCandidate(candidate=candidate))


def without_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.core.state.apply.saves_too_little", lambda *_: False)


ALL_EMPTY: Final = answer("They talked about several things.")
EXCUSE: Final = "Please provide the conversation you would like me to summarize."
CHATTED: Final = "Certainly! The next shipment leaves tomorrow. Shall I also book a crane for you?"
RUSSIAN: Final = answer(
    "Ящики прибывают в гавани серым утром.",
    [fact("Груз из множества ящиков пришёл в гавань серым утром при слабом западном ветре", 61)],
)

# One or two of each case are for every day.
REFUSALS: Final = [
    pytest.param(ModelUnavailableError("server_error"), "server_error", with_errors_as_text, id="1-500"),
    pytest.param(
        ModelUnavailableError("timeout"), "timeout", with_errors_as_text, id="1-timeout", marks=pytest.mark.long
    ),
    pytest.param(
        ModelUnavailableError("unauthorized", retryable=False), "unauthorized", with_errors_as_text, id="1-401"
    ),
    pytest.param(said(""), "empty_summary", with_anything, id="2-empty"),
    pytest.param(said(" \n\t \n"), "empty_summary", with_anything, id="2-blank", marks=pytest.mark.long),
    pytest.param(said("<think>Let me see what they want.</think>"), "empty_summary", with_anything, id="2-reasoning"),
    pytest.param(said(EXCUSE), "not_a_summary", with_anything, id="3-please-provide"),
    pytest.param(said(CHATTED), "not_a_summary", with_anything, id="3-chatted-on"),
    pytest.param(
        said(answer(EXCUSE)), "not_a_summary", with_anything, id="3-in-the-right-shape", marks=pytest.mark.long
    ),
    pytest.param(ended("tool_call", called_tool=True), "not_a_summary", without_tools, id="3-tool-call"),
    pytest.param(ended("length"), "cut_off", without_finish, id="4-cut-off-but-parseable"),
    pytest.param(ended("blocked"), "blocked", without_finish, id="5-blocked-but-parseable"),
    pytest.param(said(ALL_EMPTY), "skeleton", without_check("_is_skeleton"), id="6-skeleton"),
    pytest.param(echo, "not_smaller", without_size, id="7-larger"),
    pytest.param(talkative, "not_smaller", without_size, id="7-saves-too-little"),
    pytest.param(said(RUSSIAN), "wrong_language", without_language, id="10-language"),
]


def test_every_case_that_is_marked_here_has_a_scenario() -> None:
    assert {str(each.id).split("-")[0] for each in REFUSALS} == {"1", "2", "3", "4", "5", "6", "7", "10"}


@pytest.mark.daily(2)
@pytest.mark.case("1", "2", "3", "4", "5", "6", "7", "10")
@pytest.mark.parametrize(("fault", "reason", "guard"), REFUSALS)
async def test_it_is_refused_and_nothing_changes(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, fault: Any, reason: str, guard: Break
) -> None:
    check_refused(await play(begin, engine, tenant, fault), reason)


@pytest.mark.daily(1)
@pytest.mark.control("1", "2", "3", "4", "5", "6", "7", "10")
@pytest.mark.parametrize(("fault", "reason", "guard"), REFUSALS)
async def test_control_without_its_guard_it_is_applied(
    begin: UnitOfWorkFactory,
    engine: AsyncEngine,
    tenant: UUID,
    monkeypatch: pytest.MonkeyPatch,
    fault: Any,
    reason: str,
    guard: Break,
) -> None:
    guard(monkeypatch)
    played = await play(begin, engine, tenant, fault)

    assert (played.row.status, len(played.row.attempts)) == ("applied", 1), "the guard was all that stood between"
    assert played.after != played.before
    with pytest.raises(AssertionError, match="applied"):
        check_refused(played, reason)


# --- case 1: back-off


async def backs_off(begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID) -> None:
    """Each failure is followed by a longer pause than the one before, and then by the next try."""
    service = Service(begin, tenant, *[ModelUnavailableError("bad_request", retryable=False)] * 3, honest)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 60)
    pauses: list[timedelta] = []
    for failures in range(3):
        row = await service.container.compaction.execute(service.queue.ids[failures])
        assert row is not None
        assert (row.status, row.reason) == ("failed", "bad_request")
        conversation = await service.row(conversation_id)
        assert conversation.failure_count == failures + 1
        assert conversation.quiet.until is not None
        assert row.finished_at is not None
        pauses.append(conversation.quiet.until - row.finished_at)
        await service.say(conversation_id, 2)
        assert len(await service.compactions(conversation_id)) == failures + 1, "quiet"
        async with engine.begin() as connection:
            await connection.execute(text("UPDATE conversations SET quiet_until = now()"))
        await service.say(conversation_id, 2)
        assert len(await service.compactions(conversation_id)) == failures + 2, "the next trigger retries"
    assert pauses[0] * 1.9 < pauses[1]
    assert pauses[1] * 1.9 < pauses[2]
    last = await service.container.compaction.execute(service.queue.ids[3])
    assert last is not None
    assert last.status == "applied"
    assert (await service.row(conversation_id)).failure_count == 0


@pytest.mark.case("1")
async def test_a_failure_is_retried_after_a_pause_that_grows(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID
) -> None:
    await backs_off(begin, engine, tenant)


async def test_what_always_fails_and_nobody_goes_on_with_is_not_tried_for_ever(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.usecases.compaction.claiming.ABANDONED_AFTER", timedelta(0))
    service = Service(begin, tenant, *[ModelUnavailableError("unauthorized", retryable=False)] * 2, honest)
    conversation_id = await service.conversation()

    async def is_due_after_a_failure(compaction_id: UUID | None) -> bool:
        assert compaction_id is not None
        row = await service.container.compaction.execute(compaction_id)
        assert row is not None
        assert row.status == "failed"
        async with engine.begin() as connection:
            await connection.execute(text("UPDATE conversations SET quiet_until = now()"))
        async with begin(None) as uow:
            return await uow.conversations.due(limit=9) == [(tenant, conversation_id)]

    await service.say(conversation_id, 60)
    assert await is_due_after_a_failure(service.queue.ids[-1]), "the control: a sweeper tries again by itself"
    again = await service.container.compaction.claim_due(tenant, conversation_id)
    assert not await is_due_after_a_failure(again), "as long as nobody says anything"
    await service.say(conversation_id, 2)
    last = await service.container.compaction.execute(service.queue.ids[-1])
    assert last is not None
    assert last.status == "applied", "and once somebody does"


async def test_an_outage_is_not_the_conversations_own_failure(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID
) -> None:
    away = ModelUnavailableError("circuit_open", retryable=False)
    service = Service(begin, tenant, away, away, "", "")
    turned_away = await service.conversation()

    async def pause_after_failure(conversation_id: UUID) -> float:
        await service.say(conversation_id, 60)
        row = await service.container.compaction.execute(service.queue.ids[-1])
        quiet = (await service.row(conversation_id)).quiet
        assert row is not None
        assert row.finished_at is not None
        assert quiet.until is not None
        return (quiet.until - row.finished_at).total_seconds()

    assert await pause_after_failure(turned_away) == pytest.approx(30, abs=1)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE conversations SET quiet_until = now()"))
    assert await pause_after_failure(turned_away) == pytest.approx(60, abs=1), "the first answer that is refused"
    row = replace(await service.row(turned_away), id=UUID(int=0), quiet=QuietPeriod(), failure_count=0)

    def after(*reasons: str) -> tuple[timedelta, int]:
        """The pause after the last of these failures in a row, and the position after which a message has to come."""
        failed, pause = row, timedelta(0)
        for reason in reasons:
            quiet, count = quiet_after_failure(failed, reason, row.created_at), failures_in_a_row(failed, reason)
            assert quiet.until is not None
            failed, pause = replace(failed, quiet=quiet, failure_count=count), quiet.until - row.created_at
        return pause, failed.quiet.until_seq

    assert after(*["circuit_open"] * 500) == (timedelta(minutes=8), 0), "it may be over at any time"
    assert after(*["circuit_open"] * 500, "empty_summary") == (timedelta(minutes=16), 0), "an outage is not its own"
    own = ["empty_summary", "circuit_open"] * 40
    assert after(*own[:30]) == (timedelta(minutes=8), 0), "nor does it hide those of its own"
    assert after(*own[:31]) == (timedelta(hours=1), 0)
    assert after(*own[:-1]) == (timedelta(hours=1), row.last_seq), "which end"


@pytest.mark.parametrize(("reason", "is_away"), [("circuit_open", True), ("timeout", False), ("unreadable", False)])
def test_only_failures_that_cost_nothing_are_retried_as_in_an_outage(reason: str, *, is_away: bool) -> None:
    assert (reason in OUTAGES) == is_away, "the others may be paid for, and be the conversation's own"


async def test_who_finds_the_model_back_wakes_those_who_were_turned_away(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    away = [ModelUnavailableError(word, retryable=False) for word in ("circuit_open", "bad_request")]
    service = Service(begin, tenant, *away, honest)
    turned_away, refused, answered = [await service.conversation() for _ in range(3)]
    for conversation_id in (turned_away, refused, answered):
        await service.say(conversation_id, 60)
        await service.container.compaction.execute(service.queue.ids[-1])
    assert (await service.row(answered)).state_version == 1
    async with begin(None) as uow:
        assert await uow.conversations.due(limit=9) == [(tenant, turned_away)], "the other's failure is its own"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ModelUnavailableError("rate_limited", retry_after=7_200), 7_200),
        (ModelUnavailableError("circuit_open", retryable=False, retry_after=12), 12),
        (ModelUnavailableError("unauthorized", retryable=False, retry_after=60), None),
        (ModelUnavailableError("server_error"), None),
    ],
)
async def test_a_manual_compaction_tells_when_the_provider_may_be_asked_again(
    begin: UnitOfWorkFactory, tenant: UUID, error: ModelUnavailableError, told: float | None
) -> None:
    service = Service(begin, tenant, error, error)
    conversation_id = await service.conversation(max_tokens=-1)
    await service.say(conversation_id, 24)
    with pytest.raises(SummarizerFailedError) as caught:
        await service.container.manual.compact(tenant, conversation_id, CompactInput(), timeout=30)
    assert caught.value.extra["reason"] == error.reason
    assert caught.value.retry_after == told


async def test_whose_models_are_known_to_be_away_is_not_prepared(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = ScriptedSummarizer(honest, profile=replace(FAKE_PROFILE, name="second"))
    service = Service(begin, tenant, fallbacks={"second": second})
    models, read = service.container.parts.models, list[object]()

    async def next_chunk(_: object) -> Any:
        read.append(_)
        raise CompactionInProgressError("read")

    monkeypatch.setattr("app.usecases.compaction.job.Job.next_chunk", next_chunk)
    for away in ({FAKE_PROFILE.name: 9.0, "second": 7.0}, {FAKE_PROFILE.name: 9.0}):
        monkeypatch.setattr(models, "away", away, raising=False)
        conversation_id = await service.conversation(fallback_model="second")
        await service.say(conversation_id, 60)
        row = await service.container.compaction.execute(service.queue.ids[-1])
        assert row is not None
        if len(away) == 2:
            assert (row.status, row.reason, len(read)) == ("failed", "circuit_open", 0)
            assert [(one.model, one.metered) for one in row.attempts] == [(name, False) for name in away]
    assert len(read) == 1, "the fallback may answer"


async def test_nothing_to_fold_is_no_failure_of_models_that_are_away(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs no model. As a failure it would get a row every few minutes, and a turn a warning that misleads."""
    service = Service(begin, tenant)
    monkeypatch.setattr(service.container.parts.models, "away", {FAKE_PROFILE.name: 9.0})
    conversation_id = await service.conversation(keep_tail_messages=500)
    await service.say(conversation_id, 60)
    row = await service.container.compaction.execute(service.queue.ids[-1])
    assert row is not None
    assert (row.status, row.reason) == ("skipped", "irreducible_floor")


@pytest.mark.parametrize("returns", ["the first", "the first, without a key for the fallback", "the fallback"])
async def test_who_was_turned_away_by_both_models_goes_on_once_either_is_back(
    begin: UnitOfWorkFactory, tenant: UUID, returns: str
) -> None:
    away = ModelUnavailableError("circuit_open", retryable=False)
    keyless = ModelUnavailableError("unauthorized", retryable=False)
    first, second = ((away, away), (away, honest)) if returns == "the fallback" else ((away, honest), (away,))
    second = (keyless,) if "key" in returns else second
    fallback = ScriptedSummarizer(*second, profile=replace(FAKE_PROFILE, name="second"))
    service = Service(begin, tenant, *first, fallbacks={"second": fallback})
    turned_away, answered = [await service.conversation(fallback_model="second") for _ in range(2)]
    for conversation_id in (turned_away, answered):
        await service.say(conversation_id, 60)
        await service.container.compaction.execute(service.queue.ids[-1])
    assert (await service.row(answered)).state_version == 1
    async with begin(None) as uow:
        assert await uow.conversations.due(limit=9) == [(tenant, turned_away)]


async def test_who_is_turned_away_again_after_waking_waits_half_a_minute(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID
) -> None:
    """Each process has a circuit of its own: the one of another may be open for half a minute more."""
    away = ModelUnavailableError("circuit_open", retryable=False)
    service = Service(begin, tenant, *[away] * 8)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 60)

    async def pause() -> float:
        claimed = await service.container.compaction.claim_due(tenant, conversation_id)
        row = await service.container.compaction.execute(claimed or service.queue.ids[-1])
        quiet = (await service.row(conversation_id)).quiet
        assert row is not None
        assert row.finished_at is not None
        assert quiet.until is not None
        async with engine.begin() as connection:
            await connection.execute(text("UPDATE conversations SET quiet_until = now()"))
        return (quiet.until - row.finished_at).total_seconds()

    refused = {"model": FAKE_PROFILE.name, "reason": "circuit_open"}
    pauses = [await pause() for _ in range(5)]
    assert 239 < pauses[-1] < 481
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE conversations SET quiet_until = now() + interval '8 min'"))
    async with begin(None) as uow:
        assert await uow.conversations.end_quiet(["circuit_open"], limit=9, attempts=[refused]) == 1
        await uow.commit()
    assert [await pause() for _ in range(2)] == pytest.approx([30, pauses[-1]], abs=1), "once, since the model may flap"


def test_those_who_are_turned_away_together_do_not_come_back_together() -> None:
    now = datetime.now(UTC)
    last = QuietPeriod(until=now, reason="circuit_open")
    pauses = set[float]()
    for number in range(100):
        row = rows.conversation(UUID(int=1), id=UUID(int=number * 7_919), failure_count=9, quiet=last, created_at=now)
        quiet = quiet_after_failure(row, "circuit_open", now)
        assert quiet.until is not None
        pauses.add((quiet.until - now).total_seconds())
    assert (min(pauses) < 260, max(pauses) > 460, len(pauses) > 50) == (True, True, True), "from four to eight minutes"


async def test_a_look_for_those_who_were_turned_away_is_bounded(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID
) -> None:
    for _ in range(8):
        row = await rows.stored(begin, tenant, context_tokens=2, trigger_tokens=1, quiet=QUIET)
        async with begin(tenant) as uow:
            await uow.compactions.claim(rows.compaction(row))
            await uow.commit()
    asked = list[tuple[str, Any]]()

    def keep(_: object, __: object, statement: str, given: Any, *___: object) -> None:
        asked.append((statement, given))

    event.listen(engine.sync_engine, "before_cursor_execute", keep)
    async with begin(None) as uow:
        assert await uow.conversations.end_quiet(["circuit_open"], limit=1, attempts=[{"model": "other"}]) == 0
    event.remove(engine.sync_engine, "before_cursor_execute", keep)
    statement, given = next(one for one in asked if "quiet_reason" in one[0])
    async with engine.connect() as connection:
        plan = "\n".join((await connection.exec_driver_sql(f"EXPLAIN ANALYZE {statement}", given)).scalars())
    reads = re.findall(r"on compactions .*loops=(\d+)", plan)
    assert reads == ["5"], f"thousands may wait for another model:\n{plan}"


async def test_whoever_found_nobody_turned_away_does_not_look_again_at_once(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = list[object]()
    service = Service(begin, tenant)

    async def look(_: object, reasons: object, **__: object) -> int:
        looks.append(reasons)
        return 0

    monkeypatch.setattr(ConversationRepository, "end_quiet", look)
    monkeypatch.setattr("app.usecases.compaction.run.LOOK_AGAIN_SECONDS", 600.0)
    for _ in range(3):
        await service.say(await service.conversation(), 60)
        await service.container.compaction.execute(service.queue.ids[-1])
    assert len(looks) == 1, "there may be thousands who wait for another model, and each look reads them all"


async def test_a_look_that_the_database_prevented_found_nobody_out(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = list[object]()

    async def look(*given: object, **_: object) -> int:
        looks.append(given)
        raise DependencyUnavailableError("the database is away")

    monkeypatch.setattr(ConversationRepository, "end_quiet", look)
    monkeypatch.setattr("app.usecases.compaction.run.LOOK_AGAIN_SECONDS", 600.0)
    service = Service(begin, tenant)
    for _ in range(2):
        await service.say(await service.conversation(), 60)
        await service.container.compaction.execute(service.queue.ids[-1])
    assert len(looks) == 2


async def test_those_who_wait_for_another_model_hide_nobody_for_ever(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    for model in ("other",) * 6 + ("back",):
        row = await rows.stored(begin, tenant, context_tokens=2, trigger_tokens=1, quiet=QUIET)
        refused = Attempt(model=model, outcome="error", reason="circuit_open", duration_ms=0, usage=Usage())
        async with begin(tenant) as uow:
            await uow.compactions.claim(rows.compaction(row, attempts=(refused,)))
            await uow.commit()
    async with begin(None) as uow:
        looks = [
            await uow.conversations.end_quiet(["circuit_open"], limit=1, attempts=[{"model": "back"}])
            for _ in range(40)
        ]
    assert sum(looks) == 1, "five are looked at each time"


async def test_a_twin_of_another_tenant_is_not_woken(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """Two tenants may have a conversation of the same id, for instance after one took over the other's copy."""
    other = await rows.make_tenant(begin, "other")
    sleeper = await rows.stored(begin, tenant, context_tokens=2, trigger_tokens=1, quiet=QUIET)
    quiet = replace(QUIET, reason="spend_limit")
    twin = await rows.stored(begin, other, id=sleeper.id, context_tokens=2, trigger_tokens=1, quiet=quiet)
    async with begin(None) as uow:
        assert await uow.conversations.end_quiet(["circuit_open"], limit=9) == 1
        await uow.commit()
    async with begin(other) as uow:
        assert (await uow.conversations.get(twin.id)).quiet == quiet


@pytest.mark.long
@pytest.mark.control("1")
@pytest.mark.parametrize(
    ("pause", "failing"),
    [(QuietPeriod(), "is not None"), (timedelta(seconds=30), "1.9")],
    ids=["no pause at all", "a pause that never grows"],
)
async def test_control_without_back_off(
    begin: UnitOfWorkFactory,
    engine: AsyncEngine,
    tenant: UUID,
    monkeypatch: pytest.MonkeyPatch,
    pause: Any,
    failing: str,
) -> None:
    def constant(_: object, reason: str, now: Any, **__: object) -> QuietPeriod:
        return pause if isinstance(pause, QuietPeriod) else QuietPeriod(until=now + pause, reason=reason)

    monkeypatch.setattr("app.usecases.compaction.ending.quiet_after_failure", constant)
    with pytest.raises(AssertionError, match=failing):
        await backs_off(begin, engine, tenant)


# --- case 2: more room


async def rooms(begin: UnitOfWorkFactory, tenant: UUID) -> list[int]:
    service = Service(begin, tenant, "", honest)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 60)
    row = await service.container.compaction.execute(service.queue.ids[0])
    assert row is not None
    assert [attempt.reason for attempt in row.attempts] == ["empty_summary", None]
    return [request.max_output_tokens for request in service.summarizer.requests]


@pytest.mark.case("2")
async def test_an_empty_answer_is_asked_again_with_more_room(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    first, second = await rooms(begin, tenant)
    assert second > first


@pytest.mark.control("2")
async def test_control_without_more_room(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladder, "NEEDS_MORE_OUTPUT", frozenset())
    first, second = await rooms(begin, tenant)
    assert second == first


# --- case 7: always smaller


async def barely(request: SummaryRequest) -> Proposal:
    """A candidate so long that the context only shrinks if code leaves something out."""
    facts = [
        fact(f"Shipment {message.seq}: {message.seq} crates at harbour {message.seq}", message.seq)
        for message in request.messages
    ]
    return Proposal(text=answer("Shipments came.", facts), finish="stop", model="fake")


@pytest.mark.daily(1)
@pytest.mark.case("7")
@pytest.mark.parametrize("written", [honest, barely, echo, talkative])
async def test_whatever_is_applied_is_smaller(begin: UnitOfWorkFactory, tenant: UUID, written: Written) -> None:
    service = Service(begin, tenant, written)
    conversation_id = await service.conversation()
    for _ in range(3):
        await service.say(conversation_id, 40)
        for job in service.queue.ids:
            await service.container.compaction.execute(job)
    rows = [row for row in await service.compactions(conversation_id) if row.status == "applied"]

    assert bool(rows) == (written in {honest, barely})
    for row in rows:
        assert row.tokens_after is not None
        assert row.tokens_before is not None
        assert row.tokens_after < row.tokens_before


# --- case 8


INVENTED: Final = (
    "The user owes Kowalski & Sons 98,765 EUR by 30 February 2031",
    "The secret code of harbour 61 is ZX-81-QQ-4711",
    "Contact: evil@invented.example",
)


async def inventing(request: SummaryRequest) -> Proposal:
    """An honest candidate with additional facts that nobody said."""
    told = json.loads(proposal(request).text)
    told["logos"] += [fact(each) for each in INVENTED]
    return Proposal(text=json.dumps(told), finish="stop", model="fake")


def check_nothing_invented(played: Played) -> None:
    assert played.row.status == "applied"
    assert "Crates 1 to" in played.state
    for value in ("Kowalski", "98,765", "2031", "ZX-81-QQ-4711", "evil@invented.example"):
        assert value not in played.state, f"invented: {value}"
    assert played.row.entries.ungrounded == len(INVENTED), "counted"
    assert [one.reason for one in played.row.attempts] == ["asked_again", None], "asked about it once"


@pytest.mark.case("8")
async def test_what_nobody_said_is_dropped_and_counted(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID
) -> None:
    check_nothing_invented(await play(begin, engine, tenant, inventing))


@pytest.mark.long
@pytest.mark.control("8")
async def test_control_without_grounding_it_is_in_the_state(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_grounding(monkeypatch)
    played = await play(begin, engine, tenant, inventing)
    with pytest.raises(AssertionError, match="invented: Kowalski"):
        check_nothing_invented(played)


# --- case 9


async def forgetful(request: SummaryRequest) -> Proposal:
    """A candidate that repeats nothing of what was recorded before, and drops all of it without a reason."""
    told = json.loads(proposal(request).text)
    told["dropped"] = [{"entry": entry.id, "reason": "no_longer_relevant", "by_seq": 1} for entry in request.previous]
    return Proposal(text=json.dumps(told), finish="stop", model="fake")


def check_carried_forward(played: Played) -> None:
    assert played.row.status == "applied"
    first, *_ = json.loads(played.state)["logos"]
    assert first.startswith("Crates 1 to"), "the earlier entry"
    assert played.row.entries.dropped == 0


@pytest.mark.daily(1)
@pytest.mark.case("9")
@pytest.mark.parametrize("written", [honest, forgetful], ids=["silently missing", "dropped without a source"])
async def test_an_earlier_entry_is_carried_forward(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, written: Written
) -> None:
    check_carried_forward(await play(begin, engine, tenant, written))


@pytest.mark.long
@pytest.mark.control("9")
async def test_control_a_merge_that_takes_the_candidate_as_it_is(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.core.state.merge._staying_entries", lambda *_: [])
    played = await play(begin, engine, tenant, honest)
    with pytest.raises(AssertionError, match="the earlier entry"):
        check_carried_forward(played)


# --- case 11


def odd(kind: str) -> Written:
    async def write(request: SummaryRequest) -> Proposal:
        told = json.loads(proposal(request).text)
        narrative: str = told["conversation_summary"]
        written = {
            "nul": json.dumps(told | {"conversation_summary": f"{narrative[:20]}\x00{narrative[20:]}"}),
            "raw nul": json.dumps(told).replace(narrative[:20], f"{narrative[:20]}\x00"),
            "escaped surrogate": json.dumps(told).replace(narrative[:20], f"{narrative[:20]}\\ud800"),
            "surrogate": json.dumps(told, ensure_ascii=False).replace(narrative[:20], f"{narrative[:20]}\udfff"),
            "surrogate in a key": json.dumps(told | {"\ud800": "x"}),
            "huge": json.dumps(told | {"conversation_summary": narrative + " and so on" * 500_000}),
            "nested": "[" * 100_000 + "]" * 100_000,
            "nested inside": json.dumps(told)[:-1] + ', "x": ' + "[" * 5_000 + "]" * 5_000 + "}",
        }[kind]
        return Proposal(text=written, finish="stop", model="fake")

    return write


ODD: Final = (
    "nul",
    "raw nul",
    "escaped surrogate",
    "surrogate",
    "surrogate in a key",
    "huge",
    "nested",
    "nested inside",
)


async def manual(service: Service, conversation_id: UUID) -> Compaction | DomainError:
    """Make a manual call, and return its compaction, or the problem that its caller gets."""
    asked = CompactInput(keep_tail_messages=4)
    try:
        view = await asyncio.wait_for(
            service.container.manual.compact(service.tenant, conversation_id, asked, timeout=PATIENCE), PATIENCE
        )
    except DomainError as error:
        return error
    return view.compaction


async def survives(begin: UnitOfWorkFactory, tenant: UUID, written: Written) -> None:
    service = Service(begin, tenant, written, written, honest)
    conversation_id = await service.conversation()
    await service.say(conversation_id, 40)
    told = await manual(service, conversation_id)
    row = (await service.compactions(conversation_id))[-1]
    state = (await service.row(conversation_id)).compressed_state

    if isinstance(told, DomainError):
        assert told.stable_code == "summarizer_failed"
        assert (row.status, state) == ("rejected", None)
        assert row.reason in {"unparseable", "not_smaller", "not_a_summary"}
    else:
        assert row.status == "applied"
        assert len(row.attempts) == 1
    context = await service.container.context.assemble(tenant, conversation_id)
    served = "".join(message.content for message in context.messages)
    assert "\x00" not in served
    served.encode()  # it has no half of a surrogate pair
    assert len(json.dumps(state).encode()) < 20_000
    await service.say(conversation_id, 30)
    service.summarizer._script._entries = [honest]
    again = await manual(service, conversation_id)
    assert isinstance(again, Compaction)
    assert again.status == "applied"


@pytest.mark.daily(1)
@pytest.mark.case("11")
@pytest.mark.parametrize("kind", often(ODD))
async def test_an_odd_answer_is_cleaned_or_refused(begin: UnitOfWorkFactory, tenant: UUID, kind: str) -> None:
    await survives(begin, tenant, odd(kind))


@pytest.mark.long
@pytest.mark.control("11")
@pytest.mark.parametrize("kind", ["nul", "escaped surrogate"])
async def test_control_without_cleaning_the_database_refuses_it(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("app.core.summarizer.candidate.clean", lambda value: value)
    with pytest.raises(AssertionError, match="rejected"):
        await survives(begin, tenant, odd(kind))


@pytest.mark.control("11")
async def test_control_a_reader_without_bounds_has_a_defect(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.core.summarizer.candidate._json_of_record", lambda told, _: json.loads(told, strict=False))
    with pytest.raises(AssertionError, match="failed"):
        await survives(begin, tenant, odd("nested"))


@pytest.mark.long
@pytest.mark.control("11")
def test_control_without_a_limit_to_size_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    huge = answer("so on and " * 500_000)
    with pytest.raises(CandidateError):
        parse_candidate(huge, SESSION)
    monkeypatch.setattr("app.core.summarizer.candidate._MAX_CHARACTERS", 10**9)
    assert len(parse_candidate(huge, SESSION).narrative["conversation_summary"]) > 4_000_000

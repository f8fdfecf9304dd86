"""Cases 18, 19, 21, 22 and 22c: budgets, thresholds, what does not fit, and what breaks underneath.

Each control plays the same scenario with one guard taken out.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

import pytest

from app.core.model.errors import (
    ContextOverWindowError,
    DependencyUnavailableError,
    DomainError,
    ModelUnavailableError,
    PolicyInvalidError,
    TooLargeError,
)
from app.core.state.layout import messages_tokens
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.starting import ChatInput
from app.usecases.chat.turn_handle import ChatResult
from app.usecases.compaction.inline import InlineClaim, InlineCompaction, InlineOutcome
from app.usecases.compaction.job import UNLIMITED, Job, JobLimits
from app.usecases.compaction.run import CompactionService
from app.usecases.history.conversations import NewConversation
from app.usecases.shared.lease import Lease
from tests.fakes import FAKE_PROFILE
from tests.integration.services import WORDS, Service

PATIENCE = 60.0
JUMP = WORDS.format(seq=99) * 32
BUDGET, WINDOW, TARGET = 3_060, 3_600, 1_836
DIGESTS: Final = 3_000  # tokens that a summarizer reads at once
DOWN = ModelUnavailableError("server_error")


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant)


async def chat(service: Service, conversation_id: UUID, content: str) -> ChatResult:
    handle = await service.container.chat.start(service.tenant, conversation_id, ChatInput(content=content))
    return await asyncio.wait_for(handle.result(), PATIENCE)


async def told(service: Service, conversation_id: UUID, content: str) -> ChatResult | DomainError:
    """Do a turn, and return its result, or the problem that its client gets."""
    try:
        return await chat(service, conversation_id, content)
    except DomainError as error:
        return error


async def filled(service: Service, tokens: int, **policy: Any) -> UUID:
    """A conversation with a context of about this many tokens, whose last message is an assistant's."""
    conversation_id = await service.conversation(**policy)
    await service.fill(conversation_id, tokens - 60, words=1)
    return conversation_id


async def nothing(*_: object, **__: object) -> None:
    """Stands for an asynchronous step that is left out."""


def nothing_at_once(*_: object, **__: object) -> None:
    """Stands for a synchronous step that is left out."""


# --- case 18: a budget lowered in mid-conversation


async def shrinks(service: Service) -> None:
    service.summarizer._profile = replace(FAKE_PROFILE, chunk_tokens=DIGESTS)
    conversation_id = await service.conversation(context_window=200_000)
    await service.say(conversation_id, 100, words=8)
    assert (await service.row(conversation_id)).context_tokens > 10_000
    policy = {"policy": {"context_window": 8_000}}
    await service.container.conversations.patch(service.tenant, conversation_id, policy)
    rows = await service.compactions(conversation_id)
    assert len(rows) == 1, "claimed by the change itself"
    ended = await service.container.compaction.execute(rows[0].id)
    gauge = await service.container.conversations.usage(service.tenant, conversation_id)
    assert ended is not None
    assert ended.status == "applied"
    assert gauge.utilization < 0.85, "below the inline threshold"
    read = [sum(message.token_count for message in one.messages) for one in service.summarizer.requests]
    assert len(read) > 1, "in chunks"
    assert max(read) <= DIGESTS, "in chunks that a summarizer digests"


@pytest.mark.case("18")
async def test_a_lowered_budget_is_met_in_chunks(service: Service) -> None:
    await shrinks(service)


@pytest.mark.control("18")
@pytest.mark.parametrize(
    ("name", "broken", "failing"),
    [
        ("app.usecases.history.conversations.claim_at_rest", nothing, "claimed by the change"),
        pytest.param(
            "app.usecases.compaction.chunk.chunk_tokens", lambda _: 10**9, "in chunks", marks=pytest.mark.long
        ),
    ],
    ids=["a change that claims nothing", "a planner that knows no chunks"],
)
async def test_control_a_lowered_budget_is_not_met(
    service: Service, monkeypatch: pytest.MonkeyPatch, name: str, broken: Any, failing: str
) -> None:
    monkeypatch.setattr(name, broken)
    with pytest.raises(AssertionError, match=failing):
        await shrinks(service)


# --- case 19: a threshold that cannot be met

LOW: Final[dict[str, Any]] = {"name": "completion", "on": "completed", "at": {"tokens": 500}, "run": "background"}
IMPOSSIBLE: Final = [
    pytest.param("You are a patient clerk of the harbour. " * 150, {}, "policy.context_window", id="a system prompt"),
    pytest.param("", {"triggers": [LOW | {"fold": "all"}]}, "policy.triggers.0.at", id="a trigger below the floor"),
    pytest.param("", {"target": 0.75}, "policy.target", id="a target above the trigger"),
]


async def refuses(service: Service, prompt: str, policy: dict[str, Any], field: str) -> None:
    conversations = service.container.conversations
    wanted = {"context_window": 4_000} | policy
    made = await conversations.create(service.tenant, NewConversation(policy={"context_window": 4_000}))
    refusals: list[PolicyInvalidError] = []
    for attempt in (
        conversations.create(service.tenant, NewConversation(policy=wanted, system_prompt=prompt)),
        conversations.patch(service.tenant, made.conversation.id, {"policy": wanted, "system_prompt": prompt}),
    ):
        try:
            await attempt
        except PolicyInvalidError as error:
            refusals.append(error)
    assert len(refusals) == 2, "refused when it is set"
    for refusal in refusals:
        found = {each.field: each.message for each in refusal.errors}
        assert field in found
        assert any(sign.isdigit() for sign in found[field]), "with the numbers"
    assert (await service.row(made.conversation.id)).policy == {"context_window": 4_000}


@pytest.mark.case("19")
@pytest.mark.parametrize(("prompt", "policy", "field"), IMPOSSIBLE)
async def test_what_can_never_be_met_is_refused_when_it_is_set(
    service: Service, prompt: str, policy: dict[str, Any], field: str
) -> None:
    await refuses(service, prompt, policy, field)


@pytest.mark.control("19")
@pytest.mark.parametrize(("prompt", "policy", "field"), IMPOSSIBLE)
async def test_control_without_the_arithmetic_it_is_accepted(
    service: Service, monkeypatch: pytest.MonkeyPatch, prompt: str, policy: dict[str, Any], field: str
) -> None:
    monkeypatch.setattr("app.usecases.history.conversations.contradictions", lambda *_, **__: [])
    with pytest.raises(AssertionError, match="refused when it is set"):
        await refuses(service, prompt, policy, field)


# --- case 21: a jump in one message


async def jumps(service: Service, size: int) -> None:
    conversation_id = await filled(service, 2_140)
    before = (await service.row(conversation_id)).context_tokens
    result = await chat(service, conversation_id, JUMP * size)
    assert before < 0.70 * BUDGET
    assert before + result.message.token_count >= (0.85 if size == 1 else 1.0) * BUDGET
    assert result.compaction is not None, "in the turn"
    row, after = result.compaction.compaction, await service.row(conversation_id)
    assert (row.trigger, row.ran_in, row.status) == ("sync", "turn", "applied")
    left = after.context_tokens - result.reply.token_count
    assert left <= TARGET or row.reason == "irreducible_floor", "below the target, or it says why not"
    assert service.chat_model.requests[0].messages[-1].content.endswith(JUMP * size)


@pytest.mark.daily(1)
@pytest.mark.case("21")
@pytest.mark.parametrize("size", [1, 2, 4], ids=["above 85 %", "above 100 %", "alone above the target"])
async def test_a_jump_ends_below_the_target_or_says_why_not(service: Service, size: int) -> None:
    await jumps(service, size)


@pytest.mark.control("21")
@pytest.mark.parametrize("size", [1, *(pytest.param(size, marks=pytest.mark.long) for size in (2, 4))])
async def test_control_with_nobody_who_evaluates_it_stays_there(
    service: Service, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr("app.usecases.compaction.due_triggers.first_due_trigger", nothing_at_once)
    with pytest.raises(AssertionError, match="in the turn"):
        await jumps(service, size)


@pytest.mark.long
@pytest.mark.control("21")
async def test_control_a_planner_that_stops_short_says_so_nowhere(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.usecases.compaction.chunk.plan_compaction", _stopping_short)
    with pytest.raises(AssertionError, match="below the target"):
        await jumps(service, 1)


def _stopping_short(tail: Any, **given: Any) -> Any:
    """Plan for a higher target than the policy's."""
    from app.core.planning.compaction import plan_compaction  # noqa: PLC0415 - the function as it is

    return plan_compaction(tail, **given | {"budgets": replace(given["budgets"], target=2_500)})


# --- case 22: what does not fit


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A turn that needs more tokens than there is room for."""

    policy: dict[str, Any]
    full: int
    message: str


CAN_NEVER_FIT: Final = Asked(policy={}, full=200, message=JUMP * 20)
NO_ROOM: Final = Asked(policy={"on_failure": "keep_full", "max_tokens": -1}, full=3_300, message=JUMP)


async def is_refused_unstored(service: Service, asked: Asked) -> None:
    conversation_id = await filled(service, asked.full, **asked.policy)
    before = await service.row(conversation_id)
    error = await told(service, conversation_id, asked.message)
    after = await service.row(conversation_id)
    assert after.last_seq == before.last_seq, "before anything is stored"
    assert after == before
    assert isinstance(error, TooLargeError)
    assert error.extra["size"] > error.extra["limit"]
    assert isinstance(await told(service, conversation_id, "Good day."), ChatResult)


@pytest.mark.case("22")
@pytest.mark.parametrize("asked", [CAN_NEVER_FIT, NO_ROOM], ids=["never fits", "nothing makes room"])
async def test_what_cannot_fit_is_refused_before_anything_is_stored(service: Service, asked: Asked) -> None:
    await is_refused_unstored(service, asked)


@pytest.mark.long
@pytest.mark.control("22")
@pytest.mark.parametrize(
    ("asked", "check"),
    [(CAN_NEVER_FIT, "refuse_too_large"), (NO_ROOM, "refuse_without_room")],
    ids=["never fits", "nothing makes room"],
)
async def test_control_without_the_check_it_is_stored(
    service: Service, monkeypatch: pytest.MonkeyPatch, asked: Asked, check: str
) -> None:
    monkeypatch.setattr(f"app.usecases.chat.opening.{check}", nothing_at_once)
    with pytest.raises(AssertionError, match="before anything is stored"):
        await is_refused_unstored(service, asked)


async def keeps_full(begin: UnitOfWorkFactory, tenant: UUID, *, over: int) -> None:
    """The summarizer is down. Over the window the turn fails with its message stored; inside it all is sent whole."""
    service = Service(begin, tenant, DOWN)
    conversation_id = await filled(service, 2_140, on_failure="keep_full")
    result = await told(service, conversation_id, JUMP * 3 if over > WINDOW else JUMP * 2)
    if over > WINDOW:
        assert isinstance(result, ContextOverWindowError), "over the window"
        async with begin(tenant) as uow:
            last = await uow.messages.at_seq(conversation_id, (await service.row(conversation_id)).last_seq)
        assert (str(last.id), last.role) == (str(result.extra["message_id"]), "user"), "its message is stored"
        assert "reply.failed" in await service.events(conversation_id)
        assert service.chat_model.requests == []
    else:
        assert isinstance(result, ChatResult)
        (sent,) = service.chat_model.requests
        assert BUDGET < messages_tokens(sent.messages, "script") <= WINDOW
        assert [one.seq for one in sent.messages if one.seq] == list(range(1, result.message.seq + 1)), "whole"
        assert "context_over_budget" in result.warnings, "with a warning"


@pytest.mark.daily(1)
@pytest.mark.case("22")
@pytest.mark.parametrize("over", [WINDOW + 1, BUDGET + 1], ids=["over the window", "over the budget"])
async def test_keep_full_sends_all_up_to_the_window_and_fails_beyond(
    begin: UnitOfWorkFactory, tenant: UUID, over: int
) -> None:
    await keeps_full(begin, tenant, over=over)


@pytest.mark.control("22")
@pytest.mark.parametrize(
    ("over", "failing"),
    [(WINDOW + 1, "over the window"), pytest.param(BUDGET + 1, "with a warning", marks=pytest.mark.long)],
    ids=["over the window", "over the budget"],
)
async def test_control_without_the_look_at_window_and_budget(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, over: int, failing: str
) -> None:
    monkeypatch.setattr("app.core.context.assembly._uncut_draft", lambda _, draft: draft)
    with pytest.raises(AssertionError, match=failing):
        await keeps_full(begin, tenant, over=over)


async def answers_once_a_summary_can_be_had(begin: UnitOfWorkFactory, tenant: UUID, on_failure: str) -> None:
    """This happens in the quiet period right after the failure; a context that may be truncated waits for its end."""
    down, up = Service(begin, tenant, DOWN), Service(begin, tenant)
    conversation_id = await filled(down, 2_140, on_failure=on_failure)
    first = await told(down, conversation_id, JUMP * 3)
    assert isinstance(first, ContextOverWindowError) == (on_failure == "keep_full")
    quiet = (await down.row(conversation_id)).quiet
    assert quiet.until is not None
    again = await told(up, conversation_id, "And now?")
    assert isinstance(again, ChatResult), "a summary can be had"
    assert [row.status for row in await up.compactions(conversation_id)].count("applied") == (on_failure == "keep_full")


@pytest.mark.case("22")
@pytest.mark.parametrize("on_failure", ["keep_full", "truncate"])
async def test_a_turn_that_would_be_refused_tries_again_at_once(
    begin: UnitOfWorkFactory, tenant: UUID, on_failure: str
) -> None:
    await answers_once_a_summary_can_be_had(begin, tenant, on_failure)


@pytest.mark.control("22")
async def test_control_a_turn_that_keeps_quiet_is_refused_again(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.usecases.compaction.due_triggers._with_quiet_of_turn", lambda resolved: resolved)
    with pytest.raises(AssertionError, match="a summary can be had"):
        await answers_once_a_summary_can_be_had(begin, tenant, "keep_full")


async def truncates(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant, DOWN)
    conversation_id = await filled(service, 2_140)
    result = await told(service, conversation_id, JUMP * 3)
    assert isinstance(result, ChatResult), "never refused"
    (sent,) = service.chat_model.requests
    assert messages_tokens(sent.messages, "script") <= BUDGET, "cut to the budget"
    assert "context_truncated" in result.warnings
    assert sent.messages[-1].content == JUMP * 3


@pytest.mark.case("22")
async def test_truncate_never_refuses(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    await truncates(begin, tenant)


@pytest.mark.long
@pytest.mark.control("22")
async def test_control_without_truncation_too_much_is_sent(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.core.context.assembly.fit", lambda _, draft, *__, **___: draft)
    with pytest.raises(AssertionError, match="cut to the budget"):
        await truncates(begin, tenant)


# --- case 22c: the state store away, or counting raises


async def away(*_: object, **__: object) -> None:
    raise DependencyUnavailableError("the state store is away")


def cannot_count(*_: object, **__: object) -> None:
    raise ZeroDivisionError("counting raises")


BREAKS: Final = [
    pytest.param("app.storage.repositories.states.StateRepository.add", away, id="the store, while saving"),
    pytest.param("app.usecases.compaction.chunk.plan_compaction", cannot_count, id="counting, while planning"),
    pytest.param("app.usecases.compaction.job.apply_candidate", cannot_count, id="counting, while applying"),
]


async def goes_on(service: Service, *, is_reached: bool = True) -> None:
    conversation_id = await filled(service, 2_140)
    before = (await service.row(conversation_id)).last_seq
    result = await told(service, conversation_id, JUMP)
    after = await service.row(conversation_id)
    assert isinstance(result, ChatResult), "the turn goes on"
    assert result.reply.content == "All right."
    sent = [one.seq for one in service.chat_model.requests[0].messages if one.seq]
    assert (sent == list(range(1, before + 2))) == is_reached, "uncompressed"
    assert ((after.state_version, after.boundary_seq) == (0, 0)) == is_reached
    assert bool(result.warnings) == is_reached


@pytest.mark.daily(2)
@pytest.mark.case("22c")
@pytest.mark.parametrize(("name", "broken"), BREAKS)
async def test_with_what_is_underneath_broken_the_turn_goes_on_uncompressed(
    service: Service, monkeypatch: pytest.MonkeyPatch, name: str, broken: Any
) -> None:
    monkeypatch.setattr(name, broken)
    monkeypatch.setattr("app.usecases.compaction.job.SHORT_OUTAGE", 0)
    await goes_on(service)


async def test_with_all_in_order_it_is_compacted(service: Service) -> None:
    """The control: a compaction needs each of the parts that are broken above."""
    await goes_on(service, is_reached=False)


@pytest.mark.long
@pytest.mark.control("22c")
@pytest.mark.parametrize(("name", "broken"), BREAKS)
async def test_control_without_the_guard_around_it_the_turn_fails(
    service: Service, monkeypatch: pytest.MonkeyPatch, name: str, broken: Any
) -> None:
    async def run_or_wait(self: InlineCompaction, resolved: Any, claim: InlineClaim, *_: Any) -> InlineOutcome:
        deadline = self._shell.clock.monotonic() + resolved.policy.sync_deadline
        return InlineOutcome(row=await self._settled_row(claim, deadline))

    async def run(self: CompactionService, row: Any, limits: JobLimits = UNLIMITED) -> Any:
        job = Job.of(self._shell, Lease.of(row), limits)
        while row.in_flight:
            row = await self._work_on_record(row, job)
        return row

    monkeypatch.setattr(InlineCompaction, "run_or_wait", run_or_wait)
    monkeypatch.setattr(CompactionService, "run", run)
    await goes_on(service, is_reached=False)  # in this copy of the code it compacts
    monkeypatch.setattr(name, broken)
    with pytest.raises(AssertionError, match="the turn goes on"):
        await goes_on(service)

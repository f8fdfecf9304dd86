"""When a compaction is claimed, on a real database: at every moment, by tokens and by messages, and when none is."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Self
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.dialects.postgresql import Insert
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.conversation import QuietPeriod, Role
from app.core.model.errors import DependencyUnavailableError
from app.core.model.records import Compaction
from app.core.text.parts import Part
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.starting import ChatInput
from app.usecases.chat.turn_handle import ChatResult
from app.usecases.compaction.manual import CompactInput
from app.usecases.history.conversations import NewConversation
from app.usecases.history.drafts import MessageDraft
from tests.fakes import FAKE_PROFILE, Reply, ScriptedChatModel
from tests.integration.services import WORDS, Service

PATIENCE = 60.0
ENDINGS: list[dict[str, Any]] = [
    {"name": "completion", "on": "completed", "at": {"share": 0.7}, "run": "background", "fold": "all"},
    {
        "name": "interrupted",
        "on": "interrupted",
        "at": {"share": 0.7},
        "run": "background",
        "fold": "all",
        "keep_turns": 1,
    },
]
MESSAGES = {"name": "max_messages", "on": "stored", "at": {"messages": 20}, "run": "background", "keep_messages": 10}
CALL: Part = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {}}


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant)


async def chat(service: Service, conversation_id: UUID, content: str) -> ChatResult:
    handle = await service.container.chat.start(service.tenant, conversation_id, ChatInput(content=content))
    return await asyncio.wait_for(handle.result(), PATIENCE)


async def near(service: Service, tokens: int = 2_100, **policy: Any) -> UUID:
    """A conversation just below this size, whose last message is an assistant's."""
    conversation_id = await service.conversation(**policy)
    await service.fill(conversation_id, tokens - 120)
    return conversation_id


async def append(
    service: Service, conversation_id: UUID, *said: tuple[Role, str], parts: tuple[Part, ...] = ()
) -> None:
    """Append a batch; ``parts`` belong to its last message."""
    drafts = [MessageDraft(role=role, content=content) for role, content in said[:-1]]
    drafts.append(MessageDraft(role=said[-1][0], content=said[-1][1], parts=parts))
    await service.container.messages.append(service.tenant, conversation_id, drafts)


async def claimed(service: Service, conversation_id: UUID) -> list[str]:
    return [row.trigger for row in await service.compactions(conversation_id)]


LONG = WORDS.format(seq=0) * 12  # about 200 tokens


class TestTheEndOfATurn:
    async def test_a_reply_completes_it(self, service: Service) -> None:
        conversation_id = await near(service, triggers=ENDINGS)
        await chat(service, conversation_id, LONG)
        (row,) = await service.compactions(conversation_id)
        ended = await service.container.compaction.execute(row.id)
        after = await service.row(conversation_id)

        assert (row.trigger, row.ran_in, row.request.fold) == ("completion", "worker", "all")
        assert ended is not None
        assert ended.status == "applied"
        assert after.boundary_seq == after.last_seq, "nothing is kept"

    async def test_the_user_s_message_alone_does_not(self, service: Service) -> None:
        conversation_id = await near(service, triggers=ENDINGS)
        await append(service, conversation_id, ("user", LONG))

        assert (await service.row(conversation_id)).context_tokens > 2_142
        assert await claimed(service, conversation_id) == []

    @pytest.mark.parametrize(
        ("said", "parts", "triggers"),
        [
            ([("user", LONG), ("assistant", "Yes.")], (), ["completion"]),
            ([("assistant", LONG)], (), ["completion"]),
            ([("assistant", "Yes."), ("user", LONG)], (), []),
            ([("user", LONG), ("assistant", "")], (CALL,), []),
        ],
        ids=["a turn", "its end", "the next has begun", "a call is open"],
    )
    async def test_a_client_s_append_completes_it(
        self, service: Service, said: list[tuple[Role, str]], parts: tuple[Part, ...], triggers: list[str]
    ) -> None:
        conversation_id = await near(service, triggers=ENDINGS)
        await append(service, conversation_id, *said, parts=parts)

        assert await claimed(service, conversation_id) == triggers

    @pytest.mark.long
    async def test_an_interrupted_reply_has_its_own(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = Service(begin, tenant)
        conversation_id = await near(service, triggers=ENDINGS)

        async def interrupt() -> None:
            await service.container.chat.interrupt(tenant, conversation_id)
            await asyncio.sleep(3_600)

        service.chat_model._script._entries = [Reply(pieces=("Once upon",), meanwhile=interrupt)]
        result = await chat(service, conversation_id, LONG)
        (row,) = await service.compactions(conversation_id)
        await service.container.compaction.execute(row.id)

        assert result.reply.status == "interrupted"
        assert (row.trigger, row.request.keep_turns) == ("interrupted", 1)
        assert (await service.row(conversation_id)).boundary_seq == result.message.seq - 1, (
            "an interrupted turn is over"
        )

    async def test_the_first_due_in_the_policy_s_order_is_the_one(self, service: Service) -> None:
        stored = {"name": "background", "on": "stored", "at": {"share": 0.65}, "run": "background"}
        for triggers, expected in (([stored, *ENDINGS], "background"), ([*ENDINGS, stored], "completion")):
            conversation_id = await near(service, 1_980, triggers=triggers)
            await append(service, conversation_id, ("user", "Go on."), ("assistant", LONG * 2))

            assert await claimed(service, conversation_id) == [expected]

    @pytest.mark.long
    async def test_a_command_s_answer_ends_no_turn(self, service: Service) -> None:
        conversation_id = await near(service, triggers=ENDINGS)
        await append(service, conversation_id, ("user", LONG))
        await chat(service, conversation_id, "/compact")

        assert await claimed(service, conversation_id) == ["manual"]

    @pytest.mark.daily(1)
    @pytest.mark.parametrize(
        ("last", "triggers", "expected"),
        [("user", ENDINGS, ["interrupted"]), ("user", ENDINGS[:1], []), ("assistant", ENDINGS[1:], [])],
        ids=["a user waits", "a user waits and no turn is over", "a turn is complete"],
    )
    async def test_the_sweeper_claims_for_how_the_newest_turn_ended(
        self,
        service: Service,
        begin: UnitOfWorkFactory,
        last: Role,
        triggers: list[dict[str, Any]],
        expected: list[str],
    ) -> None:
        conversation_id = await near(service, triggers=triggers)
        reply: list[tuple[Role, str]] = [("assistant", "Yes.")] if last == "assistant" else []
        await append(service, conversation_id, ("user", LONG), *reply)
        async with begin(None) as uow:
            assert await uow.conversations.due(limit=10) == [(service.tenant, conversation_id)]
        await service.container.compaction.claim_due(service.tenant, conversation_id)

        assert await claimed(service, conversation_id) == expected


class TestMessages:
    async def test_they_fire_above_the_number_and_fold_all_but_what_is_kept(self, service: Service) -> None:
        conversation_id = await service.conversation(context_window=100_000, triggers=[MESSAGES])
        await service.say(conversation_id, 20)
        assert await claimed(service, conversation_id) == []
        await service.say(conversation_id, 1)
        (row,) = await service.compactions(conversation_id)
        ended = await service.container.compaction.execute(row.id)
        after = await service.row(conversation_id)

        assert row.trigger == "max_messages"
        assert ended is not None
        assert ended.status == "applied"
        assert (after.boundary_seq, after.context_messages) == (11, 10)

    @pytest.mark.long
    async def test_commands_do_not_count(self, service: Service) -> None:
        conversation_id = await service.conversation(context_window=100_000, triggers=[MESSAGES])
        await service.say(conversation_id, 18)
        for _ in range(3):
            await chat(service, conversation_id, "/compact nothing at all")
        rows = await claimed(service, conversation_id)

        assert set(rows) == {"manual"}

    async def test_the_sweeper_finds_them_by_their_own_index(self, service: Service, begin: UnitOfWorkFactory) -> None:
        few, many = [await service.conversation(context_window=100_000, triggers=[MESSAGES]) for _ in range(2)]
        await service.say(few, 20)
        await service.say(many, 21)
        async with begin(None) as uow:
            for job in service.queue.ids:
                await uow.compactions.update_locked(job, status="superseded", reason="stale")
            await uow.commit()
        async with begin(None) as uow:
            assert await uow.conversations.due(limit=10) == [(service.tenant, many)]


async def test_a_claim_and_its_message_are_one_transaction(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation_id = await near(service)
    before = await service.row(conversation_id)

    async def away(*_: object, **__: object) -> None:
        raise DependencyUnavailableError("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr("app.storage.unit_of_work.UnitOfWork.commit", away)
        with pytest.raises(DependencyUnavailableError):
            await append(service, conversation_id, ("user", LONG))
    assert await service.row(conversation_id) == before
    assert await claimed(service, conversation_id) == []
    await append(service, conversation_id, ("user", LONG))  # control
    assert await claimed(service, conversation_id) == ["background"]


class TestRightAfter:
    """Case 15: an applied compaction leaves the context at its trigger, and then comes a small message."""

    async def again(self, service: Service, **policy: Any) -> list[str]:
        stored = {"name": "background", "on": "stored", "at": {"tokens": 1_500}, "run": "background", "fold": "all"}
        conversation_id = await service.conversation(triggers=[stored | {"keep_messages": 40}], **policy)
        await service.say(conversation_id, 60)
        ended = await service.container.compaction.execute(service.queue.ids[0])
        assert ended is not None
        assert ended.status == "applied"
        assert (await service.row(conversation_id)).context_tokens > 1_500
        await service.say(conversation_id, 1, words=1)
        return await claimed(service, conversation_id)

    @pytest.mark.case("15")
    async def test_nothing_is_claimed(self, service: Service) -> None:
        assert await self.again(service) == ["background"]

    @pytest.mark.control("15")
    async def test_control_without_minimum_progress_it_is(self, service: Service) -> None:
        assert await self.again(service, minimum_progress=0) == ["background", "background"]


class TestNothingToFold:
    """Case 20: a manual call finds nothing to fold."""

    async def compact(self, service: Service) -> Compaction:
        conversation_id = await service.conversation()
        await service.say(conversation_id, 6)
        asked = CompactInput(keep_tail_messages=3)
        view = await service.container.manual.compact(service.tenant, conversation_id, asked, timeout=PATIENCE)
        return view.compaction

    @pytest.mark.case("20")
    async def test_it_is_skipped_and_never_applied(self, service: Service) -> None:
        row = await self.compact(service)

        assert (row.status, row.reason, row.state_version_after) == ("skipped", "nothing_to_compact", None)
        assert service.summarizer.requests == []

    @pytest.mark.control("20")
    async def test_control_a_planner_without_the_minimum_asks(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.core.planning.compaction.MINIMUM_SPAN", 1)
        await self.compact(service)

        assert service.summarizer.requests


class TestFloors:
    """Case 14: the held messages alone are above the target."""

    async def floor(self, service: Service) -> UUID:
        conversation_id = await service.conversation()
        await append(service, conversation_id, ("system", WORDS.format(seq=0) * 110), ("user", LONG))
        return conversation_id

    async def messages(self, service: Service, conversation_id: UUID, count: int = 30) -> list[Compaction]:
        for _ in range(count):
            await service.say(conversation_id, 1, words=1)
            await service.container.compaction.execute(service.queue.ids[-1])  # does nothing if it has run already
        return await service.compactions(conversation_id)

    @pytest.mark.case("14")
    @pytest.mark.long
    async def test_one_is_given_up_once_and_no_model_is_called(self, service: Service) -> None:
        conversation_id = await self.floor(service)
        (row,) = await service.compactions(conversation_id)
        ended = await service.container.compaction.execute(row.id)
        calls = len(service.summarizer.requests)
        rows = await self.messages(service, conversation_id, 100)

        assert ended is not None
        assert ended.reason == "irreducible_floor"
        assert [one.reason for one in rows] == ["irreducible_floor"]
        assert len(service.summarizer.requests) == calls

    @pytest.mark.long
    @pytest.mark.case("14")
    async def test_one_beside_what_can_be_folded_is_given_up_after_folding_that(self, service: Service) -> None:
        conversation_id = await service.conversation()
        await append(service, conversation_id, ("system", WORDS.format(seq=0) * 95))
        await service.say(conversation_id, 30)
        (row,) = await service.compactions(conversation_id)
        await service.container.compaction.execute(row.id)
        calls = len(service.summarizer.requests)
        rows = await self.messages(service, conversation_id)

        assert [(one.status, one.reason) for one in rows] == [("applied", "irreducible_floor")]
        assert len(service.summarizer.requests) == calls > 0

    @pytest.mark.long
    @pytest.mark.control("14")
    async def test_control_without_the_quiet_it_is_tried_again(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.core.planning.triggers.FLOOR_MESSAGES", 0)
        conversation_id = await self.floor(service)
        rows = await self.messages(service, conversation_id)

        assert len(rows) > 1
        assert service.summarizer.requests

    async def test_a_change_of_policy_ends_it(self, service: Service) -> None:
        conversation_id = await self.floor(service)
        (row,) = await service.compactions(conversation_id)
        await service.container.compaction.execute(row.id)
        assert (await service.row(conversation_id)).quiet.reason == "irreducible_floor"
        policy = {"policy": {"context_window": 4_001}}
        await service.container.conversations.patch(service.tenant, conversation_id, policy)

        assert (await service.row(conversation_id)).quiet == QuietPeriod()
        assert len(await service.compactions(conversation_id)) == 2


async def in_flight(engine: AsyncEngine) -> int:
    async with engine.connect() as connection:
        found = await connection.execute(text("SELECT count(*) FROM compactions WHERE status IN ('queued', 'running')"))
        return int(found.scalar_one())


async def one_by_one(service: Service, engine: AsyncEngine, conversation_id: UUID, count: int) -> int:
    """Append this many around 70 % while a worker is slow; returns the most compactions in flight at any time."""
    most = 0
    running: list[asyncio.Task[Any]] = []
    seen = 0
    for number in range(count):
        await service.say(conversation_id, 1, words=1)
        most = max(most, await in_flight(engine))
        if number % 7 == 0:  # a worker that takes long, but no longer than seven messages
            await asyncio.gather(*running)
            fresh, seen = service.queue.ids[seen:], len(service.queue.ids)
            running = [asyncio.create_task(service.container.compaction.execute(job)) for job in fresh]
    await asyncio.gather(*running)
    return most


class TestOneByOne:
    """Case 16: many messages around the threshold."""

    @pytest.mark.case("16")
    @pytest.mark.parametrize("count", [70, *(pytest.param(count, marks=pytest.mark.long) for count in (100, 500))])
    async def test_there_is_never_more_than_one_in_flight(
        self, service: Service, engine: AsyncEngine, count: int
    ) -> None:
        conversation_id = await near(service, 2_100)
        most = await one_by_one(service, engine, conversation_id, count)
        rows = await service.compactions(conversation_id)

        assert most == 1
        assert {row.status for row in rows} <= {"applied", "queued"}
        # 17 tokens each, and 306 from the target to the threshold: at most one compaction for every eighteen
        assert max(2, count // 100) <= len(rows) <= count / 18 + 1
        assert len(service.summarizer.requests) == sum(row.status == "applied" for row in rows)

    @pytest.mark.long
    @pytest.mark.own_database
    @pytest.mark.control("16")
    async def test_control_without_the_slot_there_are_more(
        self, service: Service, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The slot is a partial unique index; without it (and without quiet) every append claims."""
        async with engine.begin() as connection:
            await connection.execute(text("DROP INDEX uq_compactions_in_flight"))
        monkeypatch.setattr("app.storage.repositories.compactions.insert", _Anyway)
        conversation_id = await near(service, 2_100)

        assert await one_by_one(service, engine, conversation_id, 12) > 1


class _Anyway(Insert):
    """An insert that ignores conflicts."""

    inherit_cache = True

    def on_conflict_do_nothing(self, *_: Any, **__: Any) -> Self:
        return self


class TestShrinkingBudgets:
    """Case 18."""

    @pytest.mark.long
    @pytest.mark.case("18")
    async def test_from_200_000_to_32_000_ends_below_85_percent_in_chunks(self, service: Service) -> None:
        conversation_id = await service.conversation(context_window=200_000)
        for _ in range(3):
            await service.say(conversation_id, 100, words=16)
        before = await service.row(conversation_id)
        assert 60_000 < before.context_tokens < 110_000
        assert await claimed(service, conversation_id) == []

        changed = {"policy": {"context_window": 32_000}}
        view = await service.container.conversations.patch(service.tenant, conversation_id, changed)
        assert view.gauge.status == "over"
        (row,) = await service.compactions(conversation_id)
        ended = await service.container.compaction.execute(row.id)
        gauge = await service.container.conversations.usage(service.tenant, conversation_id)
        after = await service.row(conversation_id)

        assert ended is not None
        assert (ended.status, ended.reason) == ("applied", None)
        assert gauge.utilization < 0.85
        assert gauge.tokens <= 0.60 * gauge.budget
        assert after.state_version == len(service.summarizer.requests) > 1
        spans = [(one.messages[0].seq, one.messages[-1].seq) for one in service.summarizer.requests]
        assert [start for start, _ in spans] == [1, *[end + 1 for _, end in spans[:-1]]]
        assert spans[-1][1] == after.boundary_seq

    @pytest.mark.case("18")
    async def test_a_process_with_a_smaller_model_is_not_bound_by_the_quiet_of_a_larger_one(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        before = Service(begin, tenant, chat=ScriptedChatModel(profile=replace(FAKE_PROFILE, input_limit=20_000)))
        smaller = Service(begin, tenant, chat=ScriptedChatModel(profile=replace(FAKE_PROFILE, input_limit=8_000)))
        given = NewConversation(policy={"on_failure": "keep_full"})
        conversation_id = (await before.container.conversations.create(tenant, given)).conversation.id
        await before.fill(conversation_id, 11_000, words=10)
        (row,) = await before.compactions(conversation_id)
        await before.container.compaction.execute(row.id)
        folded = await before.row(conversation_id)

        result = await chat(smaller, conversation_id, "And the next one?")
        context = await smaller.container.context.assemble(tenant, conversation_id)

        assert 6_120 < folded.context_tokens < folded.quiet.until_tokens  # above the smaller budget
        assert result.reply.content == "All right."
        assert [row.trigger for row in await smaller.compactions(conversation_id)] == ["background", "sync"]
        assert context.gauge.utilization < 0.85

    @pytest.mark.daily(1)
    @pytest.mark.case("18")
    @pytest.mark.parametrize("on_failure", ["keep_full", "truncate"])
    async def test_anchors_that_were_laid_out_for_a_larger_model_make_way(
        self, begin: UnitOfWorkFactory, tenant: UUID, on_failure: str
    ) -> None:
        before = Service(begin, tenant, chat=ScriptedChatModel(profile=replace(FAKE_PROFILE, input_limit=40_000)))
        smaller = Service(begin, tenant, chat=ScriptedChatModel(profile=replace(FAKE_PROFILE, input_limit=4_000)))
        given = NewConversation(policy={"on_failure": on_failure})
        conversation_id = (await before.container.conversations.create(tenant, given)).conversation.id
        orders = [
            MessageDraft(role="user", content=f"You must always send invoice INV-{7_000 + 13 * n} to harbour {n}.")
            for n in range(250)
        ]
        await before.container.messages.append(tenant, conversation_id, orders)
        await append(before, conversation_id, ("assistant", "Noted."), ("user", "Thank you."))
        await before.container.manual.compact(tenant, conversation_id, CompactInput(), timeout=PATIENCE)
        laid_out = (await before.row(conversation_id)).layout

        await chat(smaller, conversation_id, "And the next one?")
        await chat(smaller, conversation_id, "And then?")
        context = await smaller.container.context.assemble(tenant, conversation_id)

        assert laid_out is not None
        assert laid_out.anchor_tokens > 3_600  # above the smaller window
        assert [one.content for one in smaller.chat_model.requests[-1].messages[-4:]] == [
            "Thank you.",
            "And the next one?",
            "All right.",
            "And then?",
        ]
        assert context.warnings == ()
        assert context.gauge.utilization < 0.85


class TestTheLastMessage:
    """Case 27: the unanswered message is outside the span, and is answered next."""

    async def unanswered(self, service: Service) -> UUID:
        conversation_id = await near(service, 1_900)
        await append(service, conversation_id, ("user", LONG * 3))
        return conversation_id

    @pytest.mark.case("27")
    async def test_it_is_never_folded_and_is_answered_next(self, service: Service) -> None:
        conversation_id = await self.unanswered(service)
        (row,) = await service.compactions(conversation_id)
        await service.container.compaction.execute(row.id)
        after = await service.row(conversation_id)
        handle = await service.container.chat.start(service.tenant, conversation_id, ChatInput())
        result = await asyncio.wait_for(handle.result(), PATIENCE)

        assert 0 < after.boundary_seq < after.last_seq
        assert service.summarizer.requests[0].messages[-1].seq <= after.boundary_seq
        assert result.message.seq == after.last_seq
        assert service.chat_model.requests[0].messages[-1].content.endswith(LONG * 3)

    @pytest.mark.long
    @pytest.mark.control("27")
    async def test_control_a_planner_without_the_law_folds_it(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        conversation_id = await near(service, 1_900, triggers=[ENDINGS[0] | {"on": "stored"}])

        def lawless(tail: Any, **_: Any) -> list[int]:
            return list(range(len(tail.outline)))

        monkeypatch.setattr("app.core.planning.compaction.legal_cuts", lawless)
        await append(service, conversation_id, ("user", LONG * 3))
        (row,) = await service.compactions(conversation_id)
        await service.container.compaction.execute(row.id)
        after = await service.row(conversation_id)

        assert after.boundary_seq == after.last_seq

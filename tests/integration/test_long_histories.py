"""Work that takes long is done in steps, each of them bounded, and goes on wherever it was interrupted."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from datetime import timedelta
from itertools import accumulate
from typing import Any, Final
from uuid import UUID, uuid4

import pytest
from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncEngine
from typer.testing import CliRunner, Result

from app.cli.commands import app
from app.core.model.conversation import Message, Sums
from app.core.model.errors import DependencyUnavailableError, InvalidInputError, NotFoundError
from app.core.model.records import Page
from app.core.model.retention import Retention
from app.core.text.token_counts import Estimator
from app.providers.keys import Keys
from app.providers.registry import ModelRegistry
from app.settings import Settings
from app.storage.repositories import message_search
from app.storage.repositories import messages as message_rows
from app.storage.repositories.removal import RemovalRepository
from app.storage.row_security import DEFAULT_ROLE, SETTING
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.history import removing
from app.usecases.history.conversations import NewConversation
from app.usecases.history.drafts import MessageDraft
from app.usecases.history.provider_copies import ProviderCopyService
from app.usecases.history.retaining import RetentionService
from app.usecases.shared import copy_deletion
from app.usecases.verification import pending
from bench.histories import lengthen, surround
from tests.integration.rows import make_tenant, weight
from tests.integration.services import Service
from tests.integration.test_erasure import CANARY, dump, erase, faithful, with_canary
from tests.integration.test_sweeper import World, started_turn
from tests.integration.test_tenancy import CALLS, CONVERSATION, copy, furnish
from tests.integration.test_turns import chat
from tests.openai_server import OpenAI, running_openai

MESSAGES: Final = 12_000
OTHERS: Final = 6_000
ROWS: Final = re.compile(
    r"(?:Rows Removed by Filter: |on (?:messages|conversations)\b[^\n]*actual time=\S+ rows=)([\d.]+)"
)
LOOPS: Final = re.compile(r" on messages\b[^\n]*actual time=[^\n]*loops=(\d+)")
MODEL: Final = "openai-responses:gpt-5"


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant, faithful())


async def work_to_the_end(service: Service) -> int:
    """Do all the work, and return the number of its steps."""
    steps = 1
    while await service.container.removal.work():
        steps += 1
        assert steps < 200
    return steps


class TestPlans:
    """How a statement about a long conversation among many reads: never the whole of a large table."""

    pytestmark = pytest.mark.own_database  # plans depend on the statistics of its own rows

    @contextmanager
    def asked(self, engine: AsyncEngine) -> Iterator[list[tuple[str, Any]]]:
        found: list[tuple[str, Any]] = []

        def keep(_: object, __: object, statement: str, parameters: Any, *___: object) -> None:
            found.append((statement, parameters))

        event.listen(engine.sync_engine, "before_cursor_execute", keep)
        try:
            yield found
        finally:
            event.remove(engine.sync_engine, "before_cursor_execute", keep)

    async def plans(self, engine: AsyncEngine, tenant: UUID, statements: list[tuple[str, Any]]) -> list[str]:
        """Plans are made for the role of the service: row-level security keeps some indexes from being used."""
        explainable = [
            one
            for one in statements
            if one[0].startswith(("SELECT", "UPDATE", "DELETE", "WITH")) and "INSERT INTO" not in one[0]
        ]
        async with engine.connect() as connection:
            plans = []
            for statement, given in explainable:
                await connection.exec_driver_sql(f"SET LOCAL ROLE {DEFAULT_ROLE}")
                await connection.exec_driver_sql(f"SET LOCAL {SETTING} = '{tenant}'")
                rows = given[0] if isinstance(given, list) else given
                lines = (await connection.exec_driver_sql(f"EXPLAIN ANALYZE {statement}", rows)).scalars()
                plans.append("\n".join([statement, *lines]))
                await connection.rollback()
        return plans

    @pytest.mark.long
    async def test_keys_are_read_once_whatever_postgres_expects(
        self, service: Service, engine: AsyncEngine, tenant: UUID
    ) -> None:
        seed, new = [await service.conversation(max_tokens=-1) for _ in range(2)]
        async with engine.connect() as connection:
            plain = await connection.execution_options(isolation_level="AUTOCOMMIT")
            await surround(plain, seed, 1_000)
            await plain.execute(text("ANALYZE"))  # these statistics have nothing of the new conversation
        append = service.container.messages.append
        await append(tenant, new, [one for number in range(100) for one in exchange(f"call_{number}")])
        with self.asked(engine) as statements:
            await append(tenant, new, [one for number in range(100, 200) for one in exchange(f"call_{number}")])
        by_key = [one for one in statements if "FROM message_keys" in one[0]]
        assert by_key
        for plan in await self.plans(engine, tenant, by_key):
            assert set(LOOPS.findall(plan)) == {"1"}, plan

    @pytest.fixture
    async def long(self, service: Service, engine: AsyncEngine) -> UUID:
        """A conversation of many messages among short ones, for which Postgres makes its general plans."""
        long, *others = [await service.conversation(max_tokens=-1) for _ in range(21)]
        for short in others:
            await service.say(short, 5)
        await service.say(long, 400)
        async with engine.connect() as connection:
            plain = await connection.execution_options(isolation_level="AUTOCOMMIT")
            await plain.execute(text("ANALYZE"))
        return long

    @pytest.mark.daily(1)
    @pytest.mark.parametrize(("estimator", "after_seq"), [("script", 380), ("script", 0), ("bytes", 0)])
    async def test_the_newest_messages_are_found_by_a_plan_for_all_conversations(
        self, service: Service, engine: AsyncEngine, tenant: UUID, long: UUID, estimator: Estimator, after_seq: int
    ) -> None:
        with self.asked(engine) as statements:
            async with service.begin(tenant) as uow:
                newest = await uow.messages.newest(long, after_seq=after_seq, max_tokens=1, estimator=estimator)
                assert newest == [await uow.messages.last(long)]
        for statement, given in [one for one in statements if "FROM messages" in one[0]]:
            plan = await self.kept_plan(engine, tenant, statement, given)
            assert max(map(float, ROWS.findall(plan))) <= 20, plan

    async def test_stems_are_found_by_their_index_alone(
        self, service: Service, engine: AsyncEngine, tenant: UUID, long: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(message_search, "WHOLE_UP_TO", 0)
        with self.asked(engine) as statements:
            async with service.begin(tenant) as uow:
                found = await uow.messages.sources(long, stems=["crate", "nowhere"], limit=5)
                assert found.documents == {"crate": 400, "nowhere": 0}
        ((statement, given),) = [one for one in statements if "message_keys" in one[0]]
        plan = await self.kept_plan(engine, tenant, statement, given)
        assert not [line for line in plan.splitlines() if "Index Cond" in line and "conversation_id" in line], plan

    async def kept_plan(self, engine: AsyncEngine, tenant: UUID, statement: str, given: Sequence[object]) -> str:
        """The plan of a prepared statement, which Postgres makes without values once it was executed a few times."""
        listed = [f"{{{','.join(map(str, value))}}}" if isinstance(value, list) else value for value in given]
        values = ", ".join(f"'{value}'" for value in listed)
        async with engine.connect() as connection:
            await connection.exec_driver_sql(f"SET LOCAL ROLE {DEFAULT_ROLE}")
            await connection.exec_driver_sql(f"SET LOCAL {SETTING} = '{tenant}'")
            await connection.exec_driver_sql("SET LOCAL plan_cache_mode = force_generic_plan")
            driver = (await connection.get_raw_connection()).driver_connection
            assert driver is not None
            await driver.execute(f"PREPARE kept AS {statement}")
            lines = await driver.fetch(f"EXPLAIN ANALYZE EXECUTE kept ({values})")
            await driver.execute("DEALLOCATE kept")
        return "\n".join(line for (line,) in lines)

    @pytest.mark.long
    async def test_read_by_indexes(
        self, service: Service, engine: AsyncEngine, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(message_search, "MAX_SCANNED_MESSAGES", 1_000)
        monkeypatch.setattr(removing, "ROWS", 500)  # a small part of the conversation, as 5 000 rows are of a long one
        seed, long = [await service.conversation(max_tokens=-1) for _ in range(2)]
        await service.say(long, 1)
        async with engine.connect() as connection:
            plain = await connection.execution_options(isolation_level="AUTOCOMMIT")
            await surround(plain, seed, OTHERS)
            await lengthen(plain, long, MESSAGES)
            await plain.execute(text("ANALYZE"))
        world = World(service.begin, engine, tenant)
        dead = await started_turn(world, expired=True)
        row = await service.row(long)
        container, last = service.container, row.last_seq

        async def first() -> Message:
            async with service.begin(tenant) as uow:
                return await uow.messages.at_seq(long, 5)

        operations: dict[str, Callable[[], Awaitable[Any]]] = {
            "recovery": container.sweeper.sweep,
            "a tool's result": lambda: container.messages.append(tenant, long, [result_of(f"call_{last - 9}")]),
            "search without a stem": lambda: container.search.find(tenant, long, '"zq" "," "."', limit=5),
            "search": lambda: container.search.find(tenant, long, '"crate reached harbour"', limit=5),
            "statistics": lambda: container.stats.conversation(tenant, long),
            "erasure": lambda: erase_first(service, long, first),
            "steps of the erasure": container.removal.work,
            "deletion": lambda: container.conversations.delete(tenant, long),
            "steps of the deletion": container.removal.work,
        }
        told: dict[str, list[str]] = {}
        for name, operation in operations.items():
            with self.asked(engine) as statements:
                await operation()
            told[name] = await self.plans(engine, tenant, statements)
        assert all(told.values())
        bad = {name: plan for name, plans in told.items() for plan in plans if reads_much(plan)}
        assert not bad, "\n\n".join(f"{name}: {plan}" for name, plan in bad.items())
        assert any("ix_messages_tool_calls" in plan for plan in told["a tool's result"])
        assert any("ix_messages_quoting" in plan for plan in told["erasure"])
        async with service.begin(tenant) as uow:
            assert (await uow.turns.get(dead.id)).status == "failed"
        (control,) = await self.plans(engine, tenant, [("SELECT id FROM messages WHERE content = 'x'", ())])
        assert reads_much(control)
        walk = "SELECT seq FROM messages WHERE conversation_id = $1 AND tenant_id = $2 AND model = 'x' ORDER BY seq"
        (control,) = await self.plans(engine, tenant, [(walk, (seed, tenant))])
        assert not reads_much(control)
        await world.stop()


def exchange(call: str) -> tuple[MessageDraft, MessageDraft]:
    """A call of a tool, and its result."""
    part = {"type": "tool_call", "id": call, "name": "look_up", "arguments": {}}
    return MessageDraft(role="assistant", content="", parts=(part,)), result_of(call)


def result_of(call: str) -> MessageDraft:
    part = {"type": "tool_result", "tool_call_id": call, "content": "seen"}
    return MessageDraft(role="tool", content="", parts=(part,))


def reads_much(plan: str) -> bool:
    """Whether a plan reads a large table from end to end, or a whole long conversation by an index."""
    return max(map(float, ROWS.findall(plan)), default=0) >= OTHERS


async def erase_first(service: Service, conversation_id: UUID, first: Callable[[], Awaitable[Message]]) -> None:
    await service.container.erasure.erase(service.tenant, conversation_id, (await first()).id)


class TestSums:
    """An erasure computes the running sums of the newest messages again, and those of the others in steps."""

    async def right(self, service: Service, conversation_id: UUID) -> None:
        """Insist that what is read between the steps is the same as without steps."""
        async with service.begin(service.tenant) as uow:
            row = await uow.conversations.get(conversation_id)
            stored = await uow.messages.all_between(conversation_id, 1, row.last_seq)
            sums = list(accumulate((weight(one) for one in stored), Sums.plus))
            assert row.total == sums[-1]
            assert [await uow.messages.sums_at(conversation_id, one.seq) for one in stored] == sums
            for most in (1, 100, 400, 10_000):
                newest = await uow.messages.newest(conversation_id, after_seq=0, max_tokens=most)
                fits = [
                    one for one, through in zip(stored, sums, strict=True) if self.after(sums, through, one) <= most
                ]
                assert [one.seq for one in newest] == [one.seq for one in fits or stored[-1:]]

    def after(self, sums: list[Sums], through: Sums, message: Message) -> int:
        """The tokens of the messages from this one on."""
        return sums[-1].tokens - through.tokens + weight(message).tokens

    @pytest.mark.long
    async def test_are_right_between_the_steps(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(message_rows, "SUMMED_AT_ONCE", 7)
        conversation_id = await service.conversation(max_tokens=-1)
        messages = await service.say(conversation_id, 40)
        await erase(service, conversation_id, messages[4])
        await self.right(service, conversation_id)
        assert await service.container.removal.work(), "not all at once"
        await self.right(service, conversation_id)
        await erase(service, conversation_id, messages[1])  # begins again, from the end
        await service.say(conversation_id, 3)
        await self.right(service, conversation_id)
        steps = await work_to_the_end(service)
        assert steps == 5
        await self.right(service, conversation_id)
        async with service.begin(service.tenant) as uow:
            assert await uow.messages._stale_sums(conversation_id) is None

    async def test_control_without_the_steps_they_are_wrong(
        self, service: Service, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(message_rows, "SUMMED_AT_ONCE", 7)
        conversation_id = await service.conversation(max_tokens=-1)
        messages = await service.say(conversation_id, 40)
        await erase(service, conversation_id, messages[4])
        async with engine.begin() as connection:
            await connection.execute(text("UPDATE conversations SET stale_sums_from = NULL, stale_sums_to = NULL"))
        with pytest.raises(AssertionError):
            await self.right(service, conversation_id)


class TestDeletion:
    """A long conversation disappears at once for everybody, and its rows are removed in steps."""

    @pytest.fixture(autouse=True)
    def small_steps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(removing, "SHORT", 5)
        monkeypatch.setattr(removing, "ROWS", 9)

    async def test_is_interrupted_and_goes_on(self, service: Service, engine: AsyncEngine, tenant: UUID) -> None:
        conversation_id, canary = await with_canary(service, compactions=2)
        rows = await service.compactions(conversation_id)
        container = service.container
        await container.conversations.delete(tenant, conversation_id)
        for looks in (
            container.conversations.get(tenant, conversation_id),
            container.messages.page(tenant, conversation_id, Page()),
            container.states.page(tenant, conversation_id, Page()),
            container.erasure.erase(tenant, conversation_id, canary.id),
            container.conversations.delete(tenant, conversation_id),
            container.messages.append(tenant, conversation_id, [MessageDraft(role="user", content="more")]),
            container.search.find(tenant, conversation_id, "violet", limit=5),
        ):
            with pytest.raises(NotFoundError):
                await looks
        async with service.begin(tenant) as uow:
            with pytest.raises(NotFoundError):
                await uow.compactions.get(rows[0].id)
            assert await uow.compactions.page(Page()) == ([], None)
            assert await uow.conversations.page(Page(), user_id=None) == ([], None)
        assert await container.removal.work()
        assert CANARY in await dump(engine), "a step removes some rows"
        other = Service(service.begin, tenant, faithful(), owner="process:two")
        await asyncio.gather(work_to_the_end(service), work_to_the_end(other))
        await work_to_the_end(other)
        left = await dump(engine)
        assert CANARY not in left
        assert {line.partition(":")[0] for line in left.splitlines() if str(conversation_id) in line} == {"audit"}

    async def test_one_that_cannot_be_removed_holds_up_no_other(
        self, service: Service, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(removing, "SHORT", 5)
        remove, stuck = RemovalRepository.remove, await service.conversation()

        async def refused(self: RemovalRepository, conversation_id: UUID, *, limit: int) -> int:
            if conversation_id == stuck:
                raise DependencyUnavailableError("it takes too long")
            return await remove(self, conversation_id, limit=limit)

        other = await service.conversation()
        for one in (stuck, other):
            await service.say(one, 8)
            await service.container.conversations.delete(tenant, one)
        monkeypatch.setattr(RemovalRepository, "remove", refused)
        await work_to_the_end(service)
        async with service.begin(None) as uow:
            assert await uow.conversations.deleted(limit=9) == [(tenant, stuck)]

    async def test_its_id_can_be_given_again_at_once(self, service: Service, tenant: UUID) -> None:
        conversations, id_ = service.container.conversations, uuid4()
        await conversations.create(tenant, NewConversation(id=id_, title="old"))
        await service.say(id_, 12)
        await conversations.delete(tenant, id_)
        assert (await conversations.create(tenant, NewConversation(id=id_, title="new"))).conversation.title == "new"
        await work_to_the_end(service)
        assert (await service.row(id_)).last_seq == 0

    async def test_what_is_looked_up_by_other_ids_is_gone_with_it(self, begin: UnitOfWorkFactory) -> None:
        tenant = await furnish(begin, "a")
        conversation_id = UUID(int=1)
        async with begin(tenant) as uow:
            await uow.conversations.hide(conversation_id)
            await uow.commit()
        names = [
            name for name in CALLS if name.startswith("conversations.") and name != "conversations.is_being_removed"
        ]
        names = [name for name in names if name != "conversations.deleted"]
        for name in (*names, "compactions.get", "compactions.page", "turns.get", "messages.find", "events.add"):
            call, nothing = CALLS[name]
            async with begin(tenant) as uow:
                try:
                    answer = await call(uow)
                except NotFoundError:
                    answer = NotFoundError
            assert answer == nothing, name


class TestUsersAndTenants:
    async def begun(self, service: Service) -> UUID:
        """Two conversations of a user with a key of his own, and one of somebody else."""
        container, tenant = service.container, service.tenant
        for user in ("tilda@example.org", "tilda@example.org", "otto@example.org"):
            given = NewConversation(user_id=user, title=f"of {user}")
            conversation_id = (await container.conversations.create(tenant, given)).conversation.id
            await service.say(conversation_id, 8)
        return tenant

    async def test_of_a_user_nothing_is_left(
        self, service: Service, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(removing, "CONVERSATIONS", 1)
        monkeypatch.setattr(removing, "SHORT", 5)
        monkeypatch.setattr(removing, "ROWS", 9)
        tenant, container = await self.begun(service), service.container
        async with engine.connect() as connection:
            found = await connection.execute(text("SELECT name FROM tenants WHERE tenant_id = :id"), {"id": tenant})
            name = found.scalar_one()
        _, secret = await container.keys.create(name, "phone", frozenset({"read"}), user_id="tilda@example.org")
        erasure = await container.removal.erase_user(tenant, "tilda@example.org")
        with pytest.raises(Exception, match="key"):
            await container.keys.authenticate(secret)
        assert await container.removal.work()
        assert "tilda" in await dump(engine)
        await work_to_the_end(service)
        left = await dump(engine)
        assert "tilda" not in left
        assert "otto" in left
        assert await container.removal.status(erasure.id) is None
        entries, _ = await container.audit.page(tenant, Page(limit=100, order="asc"))
        assert [(one.action, one.object_id) for one in entries][-1] == ("user.erased", str(erasure.id))

    async def test_of_a_tenant_nothing_is_left(self, service: Service, engine: AsyncEngine) -> None:
        other = await make_tenant(service.begin, f"other {uuid4()}")
        tenant = await self.begun(service)
        await service.container.removal.erase_tenant(tenant)
        await work_to_the_end(service)
        await work_to_the_end(service)
        await service.container.work_records.drain()
        left = await dump(engine)
        assert str(tenant) not in left
        assert "otto" not in left
        assert str(other) in left

    async def test_an_erasure_that_waits_for_a_provider_holds_up_no_other(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(removing, "ABREAST", 1)
        removal, other = service.container.removal, await make_tenant(service.begin, f"other {uuid4()}")
        async with service.begin(other) as uow:
            await uow.copies.note(copy(other, "resp_1"))
            await uow.commit()
        waiting = await removal.erase_tenant(other)
        erasure = await removal.erase_user(await self.begun(service), "tilda@example.org")
        for _ in range(60):
            await removal.work()
        assert await removal.status(waiting.id), "control: the provider still has its copy"
        assert await removal.status(erasure.id) is None

    async def test_a_provider_that_does_not_answer_holds_up_a_sweep_once(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[str] = []

        async def hang(_: str, response_id: str) -> None:
            asked.append(response_id)
            await asyncio.Event().wait()

        monkeypatch.setattr(copy_deletion, "SECONDS", 0.01)
        monkeypatch.setattr(service.container.parts.models, "delete", hang)
        await self.begun(service)
        async with service.begin(service.tenant) as uow:
            for number in range(3):
                await uow.copies.note(copy(service.tenant, f"resp_{number}"))
            await uow.copies.mark_for_deletion(CONVERSATION)
            await uow.commit()
        for number in (1, 2, 3, 3):
            async with asyncio.timeout(30):
                await service.container.copies.work()
            assert len(asked) == len(set(asked)) == number, "each waits for its next try"

    @pytest.mark.long
    async def test_by_command(self, service: Service, engine: AsyncEngine, database_url: str) -> None:
        tenant = await self.begun(service)
        async with engine.connect() as connection:
            found = await connection.execute(text("SELECT name FROM tenants WHERE tenant_id = :id"), {"id": tenant})
            name = found.scalar_one()

        async def run(*words: str) -> Result:
            environment = {"DATABASE_URL": database_url, "LANG": "C"}
            return await asyncio.to_thread(CliRunner().invoke, app, words, env=environment, input="n\n")

        refused = await run("erase-user", "tilda@example.org", "--tenant", name)
        assert refused.exit_code == 1, "asked, and not wanted"
        assert "tilda" in await dump(engine)
        unknown = await run("erase-user", "tilda@example.org", "--tenant", "nobody", "--yes")
        assert (unknown.exit_code, "There is no tenant 'nobody'." in unknown.output) == (2, True), unknown.output
        done = await run("erase-user", "tilda@example.org", "--tenant", name, "--yes")
        assert (done.exit_code, done.stdout.splitlines()[-1][:7]) == (0, "Erased:"), done.output
        left = await dump(engine)
        assert "tilda" not in left
        assert "otto" in left
        done = await run("tenants", "delete", name, "--yes")
        assert (done.exit_code, done.stdout.splitlines()[-1][:7]) == (0, "Erased:"), done.output
        assert str(tenant) not in await dump(engine)


class TestCopies:
    """What a stateful model's provider stores is deleted there together with the messages that it was made of."""

    @pytest.fixture
    def openai(self) -> Iterator[OpenAI]:
        with running_openai() as server:
            yield server

    @pytest.fixture
    async def stateful(
        self, openai: OpenAI, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> AsyncIterator[Service]:
        monkeypatch.setattr(copy_deletion, "FIRST_PAUSE", timedelta())
        registry = ModelRegistry(chat=MODEL, keys=Keys(openai_api_key="key", openai_base_url=openai.url))
        made = Service(begin, tenant, chat=registry.chat())  # type: ignore[arg-type]
        monkeypatch.setattr(made.container.parts.models, "delete", registry.store.delete)
        yield made
        openai.release()
        await registry.close()

    def of(self, service: Service) -> ProviderCopyService:
        return service.container.copies

    async def kept(self, service: Service) -> int:
        async with service.begin(service.tenant) as uow:
            return await uow.copies.count()

    async def test_are_deleted_with_a_message_and_with_a_conversation(self, stateful: Service, openai: OpenAI) -> None:
        conversation_id = await stateful.conversation(context_window=32_000, max_tokens=-1)
        await chat(stateful, conversation_id, f"The phrase is {CANARY}.")
        await chat(stateful, conversation_id, "And then?")
        assert len(openai.kept) == await self.kept(stateful) == 2
        async with stateful.begin(stateful.tenant) as uow:
            message = await uow.messages.at_seq(conversation_id, 1)
        openai.away = True
        await erase(stateful, conversation_id, message)
        await self.of(stateful).work()
        assert len(openai.kept) == 2, "nobody answers: they wait"
        openai.away = False
        await self.of(stateful).work()
        assert (openai.kept, await self.kept(stateful)) == ({}, 0)

        await chat(stateful, conversation_id, "What was it?")
        assert len(openai.kept) == 1
        await stateful.container.conversations.delete(stateful.tenant, conversation_id)
        await self.of(stateful).work()
        assert (openai.kept, await self.kept(stateful)) == ({}, 0)

    async def test_are_given_up_with_an_entry(
        self, stateful: Service, openai: OpenAI, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(copy_deletion, "TRIES", 2)
        conversation_id = await stateful.conversation(context_window=32_000, max_tokens=-1)
        await chat(stateful, conversation_id, "Hello.")
        openai.away = True
        await stateful.container.conversations.delete(stateful.tenant, conversation_id)
        await self.of(stateful).work()
        assert await self.kept(stateful) == 1
        await self.of(stateful).work()
        assert await self.kept(stateful) == 0
        entries, _ = await stateful.container.audit.page(stateful.tenant, Page(limit=100, order="asc"))
        given_up = entries[-1]
        assert (given_up.action, given_up.actor) == ("provider_copy.given_up", "service")
        assert given_up.data == {"conversation_id": str(conversation_id), "tries": 2, "reason": "server_error"}


class TestRetention:
    async def test_old_events_and_turns_are_forgotten_and_followers_told(
        self, service: Service, engine: AsyncEngine, tenant: UUID
    ) -> None:
        conversation_id = await service.conversation(max_tokens=-1)
        await chat(service, conversation_id, "Hello.")
        await service.say(conversation_id, 4)
        before = await service.events(conversation_id)
        async with engine.begin() as connection:
            for statement in (
                "UPDATE events SET occurred_at = occurred_at - interval '9 days' WHERE number <= 3",
                "UPDATE turns SET finished_at = finished_at - interval '9 days'",
            ):
                await connection.execute(text(statement))
        week = timedelta(days=7)
        await RetentionService(service.begin, Retention(events=week, turns=week, measures=week)).work()
        assert await service.events(conversation_id) == before[3:]
        async with service.begin(tenant) as uow:
            assert await uow.turns.newest(conversation_id) is None

        feed = service.container.feed
        for after in (0, 3, len(before)):
            async for first in feed.follow(tenant, conversation_id, after):
                assert first is None
                break
        with pytest.raises(InvalidInputError, match="next event that is kept is 4"):
            await anext(feed.follow(tenant, conversation_id, 2))

    async def test_an_event_that_is_kept_longer_than_the_next_one_hides_no_gap(
        self, service: Service, engine: AsyncEngine, tenant: UUID
    ) -> None:
        """As when the clock of the process that wrote it was ahead."""
        conversation_id = await service.conversation(max_tokens=-1)
        await service.say(conversation_id, 5)
        async with engine.begin() as connection:
            aged = "UPDATE events SET occurred_at = occurred_at - interval '9 days' WHERE number IN (1, 3, 4)"
            await connection.execute(text(aged))
        await RetentionService(service.begin, Retention(events=timedelta(days=7))).work()
        feed = service.container.feed
        for after in (1, 2):
            with pytest.raises(InvalidInputError, match="next event that is kept is"):
                await anext(feed.follow(tenant, conversation_id, after))
        async with aclosing(feed.follow(tenant, conversation_id, 0)) as anew:
            assert [event.number for event in [await anext(anew) for _ in range(3)] if event] == [2, 5], "what is kept"

    @pytest.mark.long
    async def test_a_conversation_keeps_the_newest_versions_of_its_state(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pending, "MIN_KEPT_VERSIONS", 1)
        service = Service(begin, tenant, faithful(), settings=Settings(state_versions_kept=2))
        conversation_id, _ = await with_canary(service, compactions=4)
        states = service.container.states
        kept, _ = await states.page(tenant, conversation_id, Page(limit=100, order="asc"))
        assert [version.version for version in kept] == [3, 4]
        with pytest.raises(NotFoundError):
            await states.restore(tenant, conversation_id, 2)
        restored = await states.restore(tenant, conversation_id, 3)
        assert restored.conversation.state_version == 5
        async with begin(tenant) as uow:
            covered = await uow.segments.newest(conversation_id, limit=99)
        assert covered[0].from_seq == 1 or covered[-1].from_seq == 1, "its segments reach back to the first message"

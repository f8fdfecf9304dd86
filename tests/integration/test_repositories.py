"""The repositories store and find their records; leases and claims are in ``test_repositories_leases.py``."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest
from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.conversation import Conversation, Layout, LiveContext, Message, Outline, QuietPeriod, Sums
from app.core.model.errors import ConflictError, InvalidInputError, NotFoundError, PolicyInvalidError
from app.core.model.pace import Pace
from app.core.model.policies.resolving import resolve
from app.core.model.records import Page
from app.core.model.state import StateEntry, StateVersion
from app.infrastructure.ids import new_id
from app.off_loop import SLICE
from app.storage.repositories import sizes
from app.storage.repositories.cursor import encode
from app.storage.unit_of_work import UnitOfWorkFactory
from tests.integration.rows import (
    START,
    append,
    compaction,
    conversation,
    idempotent,
    message,
    moment,
    running,
    stored,
    talk,
    weight,
)


@pytest.fixture
def database_url(module_database_url: str) -> str:
    """A tenant of each test's own."""
    return module_database_url


Item = TypeVar("Item")
PageOf = Callable[[Page], Awaitable[tuple[list[Item], str | None]]]
LAYOUT = Layout(
    text='<session_state>{"logos": ["ключ 🗝"]}</session_state>',
    tokens=41,
    anchors="<anchors>\n- решение\n</anchors>",
    anchor_tokens=7,
    anchors_behind_marker=2,
    held=(1, 7),
)


def full_conversation(tenant_id: UUID) -> Conversation:
    """A conversation in which no field has its default."""
    return Conversation(
        id=new_id(),
        tenant_id=tenant_id,
        title="Über uns",
        user_id="u-1",
        locale="ru",
        system_prompt="Be kind.",
        preset="other",
        preset_version=3,
        policy={"context_window": 4000, "nested": {"a": [1, None, 2.5]}},
        state_schema="session",
        compressed_state={"logos": ["x"], "conversation_summary": "y"},
        compressed_at_message_id=uuid4(),
        boundary_seq=7,
        state_version=3,
        layout=LAYOUT,
        layout_version=4,
        compression_count=2,
        content_epoch=2,
        token_factor=1.25,
        scratchpad={"todo": ["a"]},
        metadata={"source": "test"},
        last_seq=9,
        last_message_id=uuid4(),
        last_message_at=moment(9),
        last_event=11,
        total=Sums(messages=9, tokens=2**40, bytes=2**42, held_tokens=5, held_bytes=6),
        covered=Sums(messages=7, tokens=70, bytes=280, held_tokens=3, held_bytes=4),
        context_tokens=55,
        trigger_tokens=66,
        context_messages=2,
        trigger_messages=30,
        quiet=QuietPeriod(until_seq=8, until_tokens=77, until=moment(99), reason="irreducible_floor"),
        pace=Pace(
            turns=8,
            turn_tokens=120,
            largest_turn=300,
            turn_seconds=2.5,
            compaction_seconds=None,
            cached_share=0.75,
        ),
        failure_count=1,
        live=LiveContext(model="openai-responses:gpt-5", response_id="resp_1", through_seq=8),
        forked_from=uuid4(),
        forked_through=6,
        anchors_due_from=2,
        created_at=START,
        updated_at=moment(1),
    )


def assert_no_default(record: Any, plain: Any) -> None:
    """Insist that the example sets every field, also those that are added later."""
    unset = {item.name for item in fields(record) if getattr(record, item.name) == getattr(plain, item.name)}
    apart = {"file_bytes", "file_tokens", "reasoning"}
    """Fields that are summed from the files, or read only if they are shown."""
    unset -= {"id", "tenant_id", "conversation_id", "seq", "created_at", *apart}
    assert not unset, f"the example of this test needs other values than the default in {unset}"


async def pages(read: PageOf[Item], *, limit: int, order: Any = "asc", full: bool = True) -> list[Item]:
    """Everything, read page by page; every page but the last must be full, or at least not empty."""
    found: list[Item] = []
    after: str | None = None
    while True:
        items, after = await read(Page(limit=limit, after=after, order=order))
        found += items
        if after is None:
            assert len(items) <= limit
            return found
        assert len(items) == limit if full else items


@contextmanager
def statements(engine: AsyncEngine) -> Iterator[list[str]]:
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        seen.append(statement)

    event.listen(engine.sync_engine, "before_cursor_execute", note)
    yield seen
    event.remove(engine.sync_engine, "before_cursor_execute", note)


class TestConversations:
    async def test_every_field_comes_back(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        made = full_conversation(tenant)
        assert_no_default(made, conversation(tenant, id=made.id))
        async with begin(tenant) as unit:
            await unit.conversations.add(made)
            await unit.commit()
        async with begin(tenant) as unit:
            assert await unit.conversations.get(made.id) == made
            assert await unit.conversations.lock(made.id) == made

    async def test_every_field_can_be_set_and_unset(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        bare, full = await stored(begin, tenant), full_conversation(tenant)
        changes = {item.name: getattr(full, item.name) for item in fields(full) if item.name not in {"id", "tenant_id"}}
        async with begin(tenant) as unit:
            assert await unit.conversations.update(bare.id, **changes) == replace(full, id=bare.id)
            assert await unit.conversations.get(bare.id) == replace(full, id=bare.id)
            back = {name: getattr(bare, name) for name in changes}
            assert await unit.conversations.update(bare.id, **back) == bare

    async def test_a_field_that_policies_have_no_more_is_passed_over(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        made = await stored(begin, tenant, policy={"target": 0.5, "continuity_probes": "model"})
        async with begin(tenant) as unit:
            assert (await unit.conversations.get(made.id)).policy == {"target": 0.5}
            (listed,), _ = await unit.conversations.page(Page(), user_id=None)
            assert listed.policy == {"target": 0.5}
        with pytest.raises(PolicyInvalidError, match="continuity_probes"):
            resolve("semantic", made.policy)

    async def test_an_update_touches_nothing_else_and_says_when(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        made = full_conversation(tenant)
        async with begin(tenant) as unit:
            await unit.conversations.add(made)
            changed = await unit.conversations.update(made.id, title=None)
            assert changed == replace(made, title=None, updated_at=changed.updated_at)
            assert changed.updated_at.tzinfo is not None
            assert changed.updated_at != made.updated_at

    async def test_one_that_is_locked_is_known_without_being_read_back(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        bare, full = await stored(begin, tenant), full_conversation(tenant)
        kept = {"id", "tenant_id", "updated_at"}
        changes = {item.name: getattr(full, item.name) for item in fields(full) if item.name not in kept}
        async with begin(tenant) as unit:
            changed = await unit.conversations.update_locked(await unit.conversations.lock(bare.id), **changes)
            assert changed == await unit.conversations.get(bare.id)
            assert changed.updated_at != bare.updated_at
            with pytest.raises(NotFoundError):
                await unit.conversations.update_locked(replace(bare, id=uuid4()), title="of nobody")

    async def test_a_name_that_is_no_field_is_an_error(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        made = await stored(begin, tenant)
        async with begin(tenant) as unit:
            with pytest.raises(Exception, match="no_such_field"):
                await unit.conversations.update(made.id, no_such_field=1)

    async def test_pages_by_last_message_then_creation(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        quiet = [await stored(begin, tenant, created_at=moment(number)) for number in range(5)]
        spoken = [await stored(begin, tenant, last_message_at=moment(2.5), user_id="u") for _ in range(4)]
        expected = sorted([*quiet, *spoken], key=lambda item: (item.last_message_at or item.created_at, item.id))
        async with begin(tenant) as unit:
            for limit in (1, 2, 9, 20):
                assert await pages(lambda page: unit.conversations.page(page, user_id=None), limit=limit) == expected
            newest = await pages(lambda page: unit.conversations.page(page, user_id=None), limit=2, order="desc")
            assert newest == expected[::-1]
            mine = await pages(lambda page: unit.conversations.page(page, user_id="u"), limit=3)
            assert mine == [item for item in expected if item.user_id == "u"]

    async def test_a_page_ends_where_its_bytes_do_and_leaves_out_what_no_list_shows(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sizes, "PAGE_BYTES", 25_000)
        large = {"system_prompt": "x" * 10_000, "scratchpad": {"n": 1}, "compressed_state": {"facts": []}}
        made = [await stored(begin, tenant, created_at=moment(number), **large) for number in range(5)]
        async with begin(tenant) as unit:
            first, cursor = await unit.conversations.page(Page(limit=100, order="asc"), user_id=None)
            rest = await pages(lambda page: unit.conversations.page(page, user_id=None), limit=100, full=False)
            monkeypatch.setattr(sizes, "PAGE_BYTES", 10)
            one, _ = await unit.conversations.page(Page(limit=100), user_id=None)
        assert ([row.id for row in first], cursor is not None) == ([row.id for row in made[:2]], True)
        assert rest == [replace(row, scratchpad={}, compressed_state=None) for row in made]
        assert len(one) == 1

    async def test_delete_takes_everything_along(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        made = await stored(begin, tenant)
        await talk(begin, tenant, [message(made.id, 1)])
        async with begin(tenant) as unit:
            await unit.events.add(made.id, "message.created", {}, START)
            await unit.states.add(made.id, state_version(1))
            await unit.compactions.claim(compaction(made))
            await unit.conversations.delete(made.id)
            await unit.commit()
        async with begin(tenant) as unit:
            with pytest.raises(NotFoundError):
                await unit.conversations.delete(made.id)
        async with engine.connect() as connection:
            for table in ("conversations", "messages", "events", "state_versions", "compactions"):
                found = await connection.execute(
                    text(f"SELECT count(*) FROM {table} WHERE tenant_id = :t"),  # noqa: S608 - the names above
                    {"t": tenant},
                )
                assert found.scalar_one() == 0, table

    async def test_a_conversation_needs_a_tenant(self, begin: UnitOfWorkFactory) -> None:
        nobody = uuid4()
        async with begin(nobody) as unit:
            with pytest.raises(NotFoundError):
                await unit.conversations.add(conversation(nobody))


class TestMessages:
    async def test_every_field_comes_back(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        parts = (
            {"type": "tool_call", "id": "call_1", "name": "find", "arguments": {"z": 1, "a": [True, None]}},
            {"type": "text", "text": "naïve 👩‍👩‍👧 \u202e right to left", "extra": 1.5},
        )
        made = message(
            row.id,
            1,
            role="assistant",
            content="x" * 100_000 + "\\u0000 is only text",
            parts=parts,
            event_type="goal",
            status="interrupted",
            is_command=True,
            protected_reason="pinned",
            is_pinned=True,
            token_count=3,
            byte_length=2**40,
            model="offline",
            usage={"input_tokens": 5, "cost_usd": None},
            metadata={"k": "v"},
        )
        assert_no_default(made, Message(**{**vars_of(message(row.id, 1)), "token_count": 0, "byte_length": 0}))
        async with begin(tenant) as unit:
            await append(unit, [made])
            await unit.commit()
        async with begin(tenant) as unit:
            assert await unit.messages.get(row.id, made.id) == made
            assert await unit.messages.at_seq(row.id, 1) == made
            assert await unit.messages.page(row.id, Page()) == ([made], None)

    @pytest.mark.long
    async def test_a_thousand_in_a_statement_for_each_slice(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        row = await stored(begin, tenant)
        every = [message(row.id, seq, content="word " * 80) for seq in range(1, 3_301)]
        sums = running(every)
        took = [math.inf, math.inf]  # the best of three times each, since a machine may be busy for a moment
        async with begin(tenant) as unit:
            await unit.conversations.lock(row.id)
            for start in range(0, 3_300, 1_100):
                for size, few in enumerate((slice(start, start + 100), slice(start + 100, start + 1_100))):
                    with statements(engine) as seen:
                        begun = time.perf_counter()
                        await unit.messages.append(every[few], sums[few])
                        took[size] = min(took[size], time.perf_counter() - begun)
                    assert len(seen) == math.ceil(len(every[few]) / SLICE)
            assert took[1] < 30 * took[0]  # it is ten times as many messages
            assert await unit.messages.between(row.id, 1, 3_300) == every

    async def test_appending_nothing_is_nothing(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        async with begin(tenant) as unit:
            await unit.messages.append([], [])

    async def test_a_seq_twice_is_a_conflict(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        await talk(begin, tenant, [message(row.id, 1)])
        async with begin(tenant) as unit:
            await unit.messages.append([message(row.id, 1)], [Sums()])
            with pytest.raises(ConflictError):
                await unit.commit()

    async def test_without_a_conversation_there_is_nothing(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        nowhere = uuid4()
        async with begin(tenant) as unit:
            await unit.messages.append([message(nowhere, 1)], [Sums()])
            with pytest.raises(NotFoundError):
                await unit.commit()
        async with begin(tenant) as unit:
            for read in (
                unit.messages.get(nowhere, uuid4()),
                unit.messages.at_seq(nowhere, 1),
                unit.messages.sums_at(nowhere, 1),
            ):
                with pytest.raises(NotFoundError):
                    await read
            assert await unit.messages.last(nowhere) is None
            assert await unit.messages.sums_at(nowhere, 0) == Sums()

    async def test_pages_last_and_ranges(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        said = [
            message(row.id, 1, role="system", protected_reason="system"),
            message(row.id, 2),
            message(row.id, 3, role="assistant"),
            message(row.id, 4, is_command=True, protected_reason="initial_objective"),
            message(row.id, 5, role="assistant", is_command=True),
        ]
        await talk(begin, tenant, said)
        async with begin(tenant) as unit:
            for limit in (1, 2, 5, 6):
                assert await pages(lambda page: unit.messages.page(row.id, page), limit=limit) == said
                newest = await pages(lambda page: unit.messages.page(row.id, page), limit=limit, order="desc")
                assert newest == said[::-1]
            assert await unit.messages.last(row.id) == said[2]
            assert await unit.messages.last(row.id, role="user") == said[1]
            assert await unit.messages.last(row.id, role="tool") is None
            assert await unit.messages.between(row.id, 2, 5) == said[1:3]
            assert await unit.messages.between(row.id, 4, 5) == []
            assert await unit.messages.held(row.id, through_seq=5) == said[:1]
            assert await unit.messages.held(row.id, through_seq=0) == []
            everything: dict[str, list[str]] = {"roles": ["user", "assistant"], "event_types": []}
            found = await unit.messages.protectable(row.id, **everything, seqs=[])
            assert found == [entry for entry in said if not entry.is_command]

    async def test_outline_and_calls(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row, other = await stored(begin, tenant), await stored(begin, tenant)
        call = {"type": "tool_call", "id": "a", "name": "f", "arguments": {}}
        said = [
            message(row.id, 1, role="assistant", parts=(call, call | {"id": "b"}), protected_reason="system"),
            message(row.id, 2, role="tool", parts=({"type": "tool_result", "tool_call_id": "a", "content": "1"},)),
            message(row.id, 3, is_command=True),
        ]
        await talk(begin, tenant, said)
        await talk(begin, tenant, [message(other.id, 1, parts=(call | {"id": "elsewhere"},))])
        expected = [
            Outline(
                seq=entry.seq,
                role=entry.role,
                token_count=10,
                byte_length=40,
                is_protected=entry.is_protected,
                is_command=entry.is_command,
                calls=frozenset(part["id"] for part in entry.parts if part["type"] == "tool_call"),
                results=frozenset(part["tool_call_id"] for part in entry.parts if part["type"] == "tool_result"),
            )
            for entry in said
        ]
        async with begin(tenant) as unit:
            assert await unit.messages.outline(row.id, after_seq=0, limit=9) == expected
            assert await unit.messages.outline(row.id, after_seq=1, limit=1) == expected[1:2]
            assert await unit.messages.known_calls(row.id, ["a", "b", "c", "elsewhere"]) == {"a", "b"}
            assert await unit.messages.known_calls(row.id, []) == frozenset()

    @pytest.mark.parametrize("tries", [20, pytest.param(150, marks=pytest.mark.long)])
    async def test_newest_is_the_longest_end_that_fits(
        self, begin: UnitOfWorkFactory, tenant: UUID, tries: int
    ) -> None:
        chance = random.Random(20261120)
        row = await stored(begin, tenant)
        said = [
            message(row.id, seq, token_count=chance.choice([0, 0, 1, 5, 30, 200]), is_command=chance.random() < 0.2)
            for seq in range(1, 61)
        ]
        await talk(begin, tenant, said)
        async with begin(tenant) as unit:
            for _ in range(tries):
                after, room = chance.randrange(62), chance.choice([0, 1, 7, 60, 400, 10_000])
                found = await unit.messages.newest(row.id, after_seq=after, max_tokens=room)
                assert found == longest_end(said, after, room), (after, room)
                most = chance.choice([0, 4, 30, 150])
                counted = [replace(entry, token_count=min(entry.token_count, most)) for entry in said]
                found = await unit.messages.newest(row.id, after_seq=after, max_tokens=room, each_at_most=most)
                expected = [entry.seq for entry in longest_end(counted, after, room)]
                assert [entry.seq for entry in found] == expected, (after, room, most)

    async def test_set_protection_sets_reasons_and_every_sum(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row, other = await stored(begin, tenant), await stored(begin, tenant)
        said = [
            message(row.id, seq, token_count=seq, byte_length=seq * 4, is_command=seq % 7 == 0) for seq in range(1, 51)
        ]
        await talk(begin, tenant, said)
        await talk(begin, tenant, [message(other.id, 1, protected_reason="system")])
        reasons: dict[int, Any] = {1: "initial_objective", 2: "system", 7: "system", 50: "system"}
        changed = [replace(entry, protected_reason=reasons.get(entry.seq, "compressible")) for entry in said]
        async with begin(tenant) as unit:
            assert await unit.messages.set_protection(row.id, reasons) == running(changed)[-1]
            for entry, through in zip(changed, running(changed), strict=True):
                assert await unit.messages.at_seq(row.id, entry.seq) == entry
                assert await unit.messages.sums_at(row.id, entry.seq) == through
            assert [entry.seq for entry in await unit.messages.held(row.id, through_seq=50)] == [1, 2, 50]
            back: dict[int, str] = dict.fromkeys(reasons, "compressible")
            assert await unit.messages.set_protection(row.id, back) == running(said)[-1]
            assert await unit.messages.sums_at(other.id, 1) == Sums(
                messages=1, tokens=10, bytes=40, held_tokens=10, held_bytes=40
            )
            assert await unit.messages.set_protection((await fresh(begin, tenant)).id, {}) == Sums()

    async def test_set_protection_does_not_grow_with_the_square(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        """The append is in the same transaction, so that the planner does not know these rows yet."""
        row = await stored(begin, tenant)
        many = [message(row.id, seq) for seq in range(1, 4_001)]
        async with begin(tenant) as unit:
            await append(unit, many)
            begun = time.perf_counter()
            assert (await unit.messages.set_protection(row.id, {1: "system"})).held_tokens == 10
            assert time.perf_counter() - begun < 3  # 0.15 s on an idle machine; 20 s if every sum is computed again


def vars_of(record: Any) -> dict[str, Any]:
    return {item.name: getattr(record, item.name) for item in fields(record)}


async def fresh(begin: UnitOfWorkFactory, tenant: UUID) -> Conversation:
    return await stored(begin, tenant)


def longest_end(said: Sequence[Message], after: int, room: int) -> list[Message]:
    """What ``newest`` promises, found by counting."""
    spoken = [entry for entry in said if not entry.is_command]
    fits = spoken[-1:]
    for start in range(len(spoken)):
        if sum(weight(entry).tokens for entry in spoken[start:]) <= room:
            fits = spoken[start:]
            break
    return [entry for entry in fits if entry.seq > after]


def state_version(version: int, **given: Any) -> StateVersion:
    entries = (
        StateEntry(
            id="F1",
            field="logos",
            role="fact",
            text="x",
            from_seqs=(1, 2),
            since_version=1,
            origins=("document", "tool"),
            superseded=("w",),
        ),
        StateEntry(id="N2", field="conversation_summary", role="narrative", text="y", since_version=1, pruned=True),
    )
    known: dict[str, Any] = {
        "version": version,
        "state_schema": "session",
        "state": {"logos": ["x"]},
        "entries": entries,
        "next_entry": 3,
        "boundary_seq": 2,
        "boundary_message_id": uuid4(),
        "covered": Sums(messages=5, tokens=1, bytes=2, held_tokens=3, held_bytes=4),
        "layout": LAYOUT,
        "compaction_id": uuid4(),
        "created_at": moment(version),
    }
    return StateVersion(**known | given)


class TestStates:
    async def test_versions_come_back_and_page(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        versions = [state_version(1, layout=None, compaction_id=None), *(state_version(number) for number in (2, 3, 5))]
        async with begin(tenant) as unit:
            for version in versions:
                await unit.states.add(row.id, version)
            await unit.commit()
        async with begin(tenant) as unit:
            assert await unit.states.get(row.id, 5) == versions[3]
            assert await unit.states.get(row.id, 1) == versions[0]
            assert await pages(lambda page: unit.states.page(row.id, page), limit=2) == versions
            assert await pages(lambda page: unit.states.page(row.id, page), limit=3, order="desc") == versions[::-1]
            with pytest.raises(NotFoundError):
                await unit.states.get(row.id, 4)
            with pytest.raises(ConflictError):
                await unit.states.add(row.id, versions[3])

    async def test_a_page_ends_where_its_bytes_do(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = await stored(begin, tenant)
        versions = [state_version(number, state={"facts": ["x" * 10_000]}) for number in range(1, 6)]
        monkeypatch.setattr(sizes, "PAGE_BYTES", 25_000)
        async with begin(tenant) as unit:
            for version in versions:
                await unit.states.add(row.id, version)
            first, cursor = await unit.states.page(row.id, Page(limit=100, order="asc"))
            assert await pages(lambda page: unit.states.page(row.id, page), limit=100, full=False) == versions
        assert (first, cursor is not None) == (versions[:2], True)

    async def test_the_last_version_of_each_compaction(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row, one, two = await stored(begin, tenant), uuid4(), uuid4()
        versions = [
            state_version(number, compaction_id=maker)
            for number, maker in enumerate((one, one, two, None, two, uuid4()), start=1)
        ]
        async with begin(tenant) as unit:
            for version in versions:
                await unit.states.add(row.id, version)
            found = await unit.states.by_compaction([one, two, uuid4()])
            assert found == {one: versions[1], two: versions[4]}
            assert await unit.states.by_compaction([]) == {}

    async def test_needs_its_conversation(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        async with begin(tenant) as unit:
            with pytest.raises(NotFoundError):
                await unit.states.add(uuid4(), state_version(1))


class TestEvents:
    async def test_numbers_run_and_committed_events_are_told(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        async with begin(tenant) as unit:
            first = await unit.events.add(row.id, "message.created", {"seq": 1}, START)
            more = await unit.events.add_many(row.id, [("a", {}), ("b", {"n": [1, 2]})], moment(1))
            assert await unit.events.add_many(row.id, [], START) == []
            assert [event.number for event in (first, *more)] == [1, 2, 3]
            assert unit.committed_events == ()
            await unit.commit()
            assert unit.committed_events == (first, *more)
            assert await unit.events.after(row.id, 0, limit=9) == [first, *more]
            assert await unit.events.after(row.id, 1, limit=1) == more[:1]
            assert await unit.events.after(row.id, 3, limit=9) == []
            assert (await unit.conversations.get(row.id)).last_event == 3
            assert (await unit.conversations.get(row.id)).updated_at == row.updated_at

    async def test_a_rolled_back_number_is_used_again(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        async with begin(tenant) as unit:
            await unit.events.add(row.id, "lost", {}, START)
        assert unit.committed_events == ()
        async with begin(tenant) as unit:
            assert (await unit.events.add(row.id, "kept", {}, START)).number == 1
            await unit.commit()

    async def test_needs_its_conversation(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        async with begin(tenant) as unit:
            with pytest.raises(NotFoundError):
                await unit.events.add(uuid4(), "x", {}, START)


class TestIdempotency:
    async def test_the_first_claims_the_second_reads(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        async with begin(tenant) as unit:
            assert await unit.idempotency.claim(idempotent("k")) is None
            assert await unit.idempotency.claim(idempotent("k", fingerprint="other")) == idempotent("k")
            await unit.idempotency.update("k", ref={"id": 2}, status=201)
            assert await unit.idempotency.claim(idempotent("k")) == idempotent("k", ref={"id": 2}, status=201)
            await unit.idempotency.delete("k")
            assert await unit.idempotency.claim(idempotent("k")) is None
            with pytest.raises(NotFoundError):
                await unit.idempotency.update("never", ref={}, status=200)


NO_CURSORS = [
    "",
    "!",
    "ключ",
    "AAAA",
    "x" * 10_000,
    encode(("text",)),
    encode((1, 2)),
    encode((-1,)),
    encode((2**63,)),
    encode((True,)),
    encode((None,)),
    encode(("2026-11-20T09:00:00", str(UUID(int=1)))),
    encode(("0001-01-01T00:00:00+14:00", str(UUID(int=1)))),
    encode(("2026-11-20T09:00:00Z", "no id")),
]


class TestCursors:
    async def test_what_is_no_cursor_is_refused_by_name(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        async with begin(tenant) as unit:
            reads: list[Callable[[Page], Awaitable[Any]]] = [
                lambda page: unit.conversations.page(page, user_id=None),
                lambda page: unit.messages.page(row.id, page),
                lambda page: unit.states.page(row.id, page),
                unit.compactions.page,
            ]
            for cursor, read in itertools.product(NO_CURSORS, reads):
                with pytest.raises(InvalidInputError) as refused:
                    await read(Page(after=cursor))
                assert [error.field for error in refused.value.errors] == ["after"], cursor

    async def test_a_number_beyond_every_row_is_past_the_end(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row, page = await stored(begin, tenant), Page(after=encode((2**63 - 1,)), order="asc")
        async with begin(tenant) as unit:
            await unit.states.add(row.id, state_version(1))
            assert await unit.messages.page(row.id, page) == ([], None)
            assert await unit.states.page(row.id, page) == ([], None)
            with pytest.raises(NotFoundError):
                await unit.states.get(row.id, 2**63 - 1)

    async def test_a_cursor_is_url_safe_and_survives_new_rows(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        said = [message(row.id, seq) for seq in range(1, 8)]
        await talk(begin, tenant, said[:5])
        async with begin(tenant) as unit:
            first, cursor = await unit.messages.page(row.id, Page(limit=3, order="asc"))
            assert cursor is not None
            assert cursor.replace("-", "").replace("_", "").isalnum()
        await talk(begin, tenant, said[5:])
        async with begin(tenant) as unit:
            rest, end = await unit.messages.page(row.id, Page(limit=4, after=cursor, order="asc"))
        assert (first + rest, end) == (said, None)

"""Segments, their levels and expansions, as the repositories store and find them."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Executable
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.conversation import Conversation
from app.core.model.errors import ConflictError, NotFoundError
from app.core.model.records import Page
from app.core.model.segments import Level, Segment, SegmentLevel, ServableSegment
from app.storage.scoped_session import TenantSession
from app.storage.tables import TenantScoped
from app.storage.unit_of_work import UnitOfWorkFactory
from tests.integration.rows import START, append, expansion, level, message, moment, segment, stored
from tests.integration.test_repositories import assert_no_default, pages, state_version, statements

HOUR = timedelta(hours=1)


@pytest.fixture
def database_url(module_database_url: str) -> str:
    """A tenant of each test's own."""
    return module_database_url


async def added(begin: UnitOfWorkFactory, tenant: UUID, *segments: Segment) -> None:
    async with begin(tenant) as unit:
        await unit.segments.add(segments)
        await unit.commit()


def ids(found: Sequence[Segment] | Sequence[ServableSegment]) -> list[str]:
    return [one.id for one in found]


async def chain(
    begin: UnitOfWorkFactory, tenant: UUID, row: Conversation, *links: tuple[int | None, list[str]]
) -> None:
    """Versions 1, 2, 3 and so on, each with its parent and its own segments."""
    async with begin(tenant) as unit:
        for number, (parent, own) in enumerate(links, start=1):
            version = state_version(number, parent_version=parent, segment_ids=tuple(own))
            await unit.states.add(row.id, version)
        await unit.commit()


async def test_every_field_comes_back(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    row = await stored(begin, tenant)
    levels = {
        "L1": level("L1", "Долгий рассказ 🗝", tokens=9, made_by="gemini", content_hash="h1", created_at=moment(5)),
        "L3": level("L3", "ключ, дверь"),
    }
    made = segment(
        row.id,
        3,
        9,
        id="разговор_о_ключе",
        topic="Разговор о ключе",
        identifiers=("K-17", "12 €"),
        levels=levels,
        is_current=False,
        wants_detail=True,
        detail_tries=2,
        messages=5,
        tokens=2**40,
    )
    assert_no_default(replace(made, id="x", levels={}), segment(row.id, 1, 1, levels=levels))
    await added(begin, tenant, made)
    async with begin(tenant) as unit:
        assert await unit.segments.get(row.id, made.id) == made
        assert await unit.segments.of_ranges(row.id, [(3, 9), (3, 8)]) == [made]
        for conversation_id, id_ in ((row.id, "other"), (uuid4(), made.id)):
            with pytest.raises(NotFoundError):
                await unit.segments.get(conversation_id, id_)


async def test_the_same_id_and_the_same_range_are_refused(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    row = await stored(begin, tenant)
    await added(begin, tenant, segment(row.id, 1, 3, id="a"))
    for twice in (segment(row.id, 4, 5, id="a"), segment(row.id, 1, 3, id="b")):
        with pytest.raises(ConflictError):
            await added(begin, tenant, twice)


async def test_ids_in_use_are_found_with_their_numbers(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    row = await stored(begin, tenant)
    names = ["auth", "auth_2", "auth_13", "auth_flow", "auth_2_x", "b", "au%h", "au_h"]
    await added(begin, tenant, *(segment(row.id, place, place, id=id_) for place, id_ in enumerate(names, start=1)))
    async with begin(tenant) as unit:
        assert await unit.segments.ids_like(row.id, ["auth", "c"]) == {"auth", "auth_2", "auth_13"}
        assert await unit.segments.ids_like(row.id, ["au%h", "auth_2"]) == {"au%h", "auth_2"}
        assert await unit.segments.ids_like(row.id, []) == frozenset()


def servable(one: Segment, *levels: Level) -> ServableSegment:
    return ServableSegment(
        id=one.id,
        from_seq=one.from_seq,
        to_seq=one.to_seq,
        topic=one.topic,
        messages=one.messages,
        tokens=one.tokens,
        identifiers=len(one.identifiers),
        texts={level: one.levels[level].text for level in levels},
    )


async def test_pages_newest_and_count_know_only_current_ones(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    row = await stored(begin, tenant)
    told: dict[Level, SegmentLevel] = {"L1": level("L1"), "L2": level("L2"), "L3": level("L3")}
    current = [segment(row.id, 10 * place + 1, 10 * place + 10, levels=told) for place in range(7)]
    old = segment(row.id, 5, 25, id="old", is_current=False, levels=told)
    await added(begin, tenant, *current, old)
    async with begin(tenant) as unit:
        found = await pages(lambda page: unit.segments.page(row.id, page), limit=3)
        assert found == current
        backwards = await pages(lambda page: unit.segments.page(row.id, page), limit=2, order="desc")
        assert backwards == current[::-1]
        newest = await unit.segments.newest(row.id, limit=2)
        assert ids(newest) == ids(current[-2:])
        assert {tuple(one.texts) for one in newest} == {("L2", "L3")}
        these = [current[one].id for one in (5, 0, 3)]
        assert await unit.segments.among_newest(row.id, [*these, "old"], limit=4) == [
            servable(current[3], "L2", "L3"),
            newest[0],
        ]
        assert await unit.segments.among_newest(row.id, these, limit=1) == []
        assert await unit.segments.count(row.id) == 7


async def test_what_a_context_shows_of_a_segment_is_one_row_however_much_it_holds(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a row once for each level, with its exact values each time, made a large budget take twice as long."""
    read: list[Sequence[Sequence[object]]] = []
    records = TenantSession.records

    async def counted(session: TenantSession, statement: Executable, /, **given: Any) -> Sequence[Sequence[Any]]:
        read.append(found := await records(session, statement, **given))
        return found

    monkeypatch.setattr(TenantSession, "records", counted)
    row = await stored(begin, tenant)
    values = tuple(f"ORD-{number}" for number in range(90))
    told: dict[Level, SegmentLevel] = {"L1": level("L1"), "L2": level("L2"), "L3": level("L3")}
    made = [segment(row.id, 1, 4, identifiers=values, levels=told), segment(row.id, 5, 9, identifiers=())]
    await added(begin, tenant, *made)
    async with begin(tenant) as unit:
        found = await unit.segments.newest(row.id, limit=9, whole=True)
        assert found == [servable(made[0], "L1", "L2", "L3"), servable(made[1])]
        assert [one.identifiers for one in found] == [90, 0]
        assert [len(one) for one in read] == [2]
        assert len((await unit.segments.page(row.id, Page(order="asc", limit=9)))[0][0].identifiers) == 90


async def test_what_holds_a_message(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    row = await stored(begin, tenant)
    made = [segment(row.id, 1, 4), segment(row.id, 5, 5), segment(row.id, 9, 12)]
    old = segment(row.id, 3, 6, id="old", is_current=False, levels={"L3": level("L3")})
    await added(begin, tenant, *made, old)
    async with begin(tenant) as unit:
        segments = unit.segments
        found = await segments.covering(row.id, [12, 2, 3, 3, 7, 99])
        assert found == {2: "segment_1", 3: "segment_1", 12: "segment_9"}
        assert await segments.covering(row.id, [7, 8]) == {}
        assert await segments.covering(row.id, []) == {}
        assert ids(await segments.touching(row.id, [4, 12])) == ["segment_1", "old", "segment_9"]
        assert (await segments.touching(row.id, [6]))[0].levels
        assert await segments.touching(row.id, []) == []
        assert ids(await segments.named(row.id, ["old", "segment_5", "nobody"])) == ["old", "segment_5"]
        by_model = await segments.described_by_model(row.id, ["old", "segment_5", "nobody"])
        assert ids(by_model) == []
        await segments.put_levels(row.id, "old", [replace(level("L1"), made_by="gemini")])
        assert [sorted(one.levels) for one in await segments.described_by_model(row.id, ["old", "segment_5"])] == [
            ["L1", "L3"]
        ]


async def test_random_places_agree_with_a_list(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    row = await stored(begin, tenant)
    chance = random.Random(4)
    made, start = [], 1
    while start < 400:
        size = chance.randint(1, 9)
        made.append(segment(row.id, start, start + size - 1))
        start += size + chance.choice([0, 0, 0, 3])
    await added(begin, tenant, *made)
    async with begin(tenant) as unit:
        for _ in range(30):
            seqs = [chance.randint(1, 420) for _ in range(chance.randint(1, 5))]
            wanted = [one.id for one in made if any(one.from_seq <= seq <= one.to_seq for seq in seqs)]
            found = await unit.segments.covering(row.id, seqs)
            assert found == {seq: one.id for one in made for seq in seqs if one.from_seq <= seq <= one.to_seq}
            assert ids(await unit.segments.touching(row.id, seqs)) == wanted


async def test_levels_are_put_and_rewritten(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    row = await stored(begin, tenant)
    made = segment(row.id, 1, 4, id="a", levels={"L2": level("L2"), "L3": level("L3")})
    await added(begin, tenant, made)
    async with begin(tenant) as unit:
        again, new = level("L2", "again", made_by="gemini", tokens=7), level("L1", "new")
        await unit.segments.put_levels(row.id, "a", [again, new])
        await unit.segments.put_levels(row.id, "a", [])
        assert (await unit.segments.get(row.id, "a")).levels == {"L1": new, "L2": again, "L3": made.levels["L3"]}
        less = replace(made, topic="less", messages=2, tokens=1, identifiers=("x",), levels={"L3": level("L3", "l")})
        await unit.segments.rewrite(replace(less, wants_detail=True))
        assert await unit.segments.get(row.id, "a") == replace(less, wants_detail=True)
        with pytest.raises(NotFoundError):
            await unit.segments.put_levels(row.id, "nobody", [new])


async def test_a_new_name_goes_everywhere(begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine) -> None:
    row = await stored(begin, tenant)
    made = segment(row.id, 1, 4, id="canary_talk", levels={"L2": level("L2"), "L3": level("L3")})
    await added(begin, tenant, made, segment(row.id, 5, 6, id="other"))
    await chain(begin, tenant, row, (None, ["canary_talk", "other"]), (1, ["other"]))
    async with begin(tenant) as unit:
        await unit.expansions.add([expansion(row.id, segment_id="canary_talk"), expansion(row.id, segment_id="other")])
        await unit.segments.rename(row.id, "canary_talk", "segment_1")
        assert await unit.segments.get(row.id, "segment_1") == replace(made, id="segment_1")
        with pytest.raises(NotFoundError):
            await unit.segments.get(row.id, "canary_talk")
        versions, _ = await unit.states.page(row.id, Page(order="asc"))
        assert [one.segment_ids for one in versions] == [("segment_1", "other"), ("other",)]
        await unit.commit()
    async with engine.connect() as connection:
        for table in TenantScoped.metadata.tables:
            statement = f"SELECT count(*) FROM {table} r WHERE to_jsonb(r)::text LIKE '%%canary%%'"  # noqa: S608
            assert (await connection.exec_driver_sql(statement)).scalar() == 0, table


async def test_the_chain_of_parents_says_what_is_current(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """The versions are 1 ← 2 ← 3, then back to 1 as 4 ← 5; the abandoned branch stays in the table."""
    row, other = await stored(begin, tenant), await stored(begin, tenant)
    made = [segment(row.id, place, place, id=f"s{place}") for place in range(1, 6)]
    await added(begin, tenant, *made, segment(other.id, 1, 1, id="s1", is_current=False))
    await chain(begin, tenant, row, (None, ["s1"]), (1, ["s2"]), (2, ["s3", "s4"]), (1, []), (4, ["s5"]))

    async def current(version: int) -> list[str]:
        async with begin(tenant) as unit:
            await unit.segments.make_current(row.id, version)
            found, _ = await unit.segments.page(row.id, Page(order="asc"))
            await unit.commit()
            return ids(found)

    assert await current(5) == ["s1", "s5"]
    assert await current(3) == ["s1", "s2", "s3", "s4"]
    assert await current(4) == ["s1"]
    assert await current(9) == []
    async with begin(tenant) as unit:
        await unit.segments.set_current(row.id, ["s2", "nobody"])
        assert ids((await unit.segments.page(row.id, Page(order="asc")))[0]) == ["s2"]
        assert await unit.segments.count(other.id) == 0
        assert not (await unit.segments.get(row.id, "s3")).is_current


async def test_who_wants_a_detail_now(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    row, other = await stored(begin, tenant), await stored(begin, tenant)
    wanting = {"wants_detail": True}
    made = [
        segment(row.id, 1, 1, id="second", created_at=moment(2), **wanting),
        segment(row.id, 2, 2, id="first", created_at=moment(1), **wanting),
        segment(row.id, 3, 3, id="later", **wanting),
        segment(row.id, 4, 4, id="has"),
        segment(row.id, 5, 5, id="old", is_current=False, **wanting),
        segment(row.id, 6, 6, id="over", **wanting),
        segment(row.id, 7, 7, id="by a wrong clock", **wanting),
        segment(other.id, 1, 1, id="elsewhere", created_at=moment(3), **wanting),
    ]
    await added(begin, tenant, *made)
    async with begin(tenant) as unit:
        await unit.segments.update(row.id, "later", detail_after=datetime.now(UTC) + HOUR, detail_tries=1)
        await unit.segments.update(row.id, "over", detail_after=START)
        await unit.segments.update(row.id, "by a wrong clock", detail_after=datetime.now(UTC) + 30_000 * HOUR)
        assert (await unit.segments.get(row.id, "later")).detail_tries == 1
        of_row = await unit.segments.wanting_detail(limit=9, conversation_id=row.id)
        in_order = ("first", "second", "over", "by a wrong clock")
        assert of_row == [(tenant, row.id, name) for name in in_order]
        assert await unit.segments.wanting_detail(limit=1) == of_row[:1]
        await unit.commit()
    async with begin(None) as unit:
        assert (tenant, other.id, "elsewhere") in await unit.segments.wanting_detail(limit=1_000)


async def test_expansions_are_kept_and_marked(begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine) -> None:
    row = await stored(begin, tenant)
    one, two = expansion(row.id, way="search", level=None), expansion(row.id, level="full", segment_id="a")
    async with begin(tenant) as unit:
        await unit.expansions.add([one, two])
        await unit.expansions.add([])
        await unit.expansions.mark_used([two.id], used=True)
        await unit.commit()
    async with engine.connect() as connection:
        found = await connection.exec_driver_sql("SELECT id, used FROM expansions WHERE used IS NOT NULL")
        assert [tuple(line) for line in found] == [(two.id, True)]


async def test_parts_come_back_as_they_were_written(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """Control: as JSONB the keys came back sorted by length, and 1e22 as an integer."""
    row = await stored(begin, tenant)
    arguments = {"zulu": 1, "b": 1e22, "": [], "яблоко": {"y": -0.0, "x": 1.0}, "aa": "\u2028 ' \" \\ 🗝", "n": None}
    part = {"type": "tool_call", "name": "f", "id": "1", "arguments": arguments}
    async with begin(tenant) as unit:
        await append(unit, [message(row.id, 1, parts=(part,))])
        (read,) = await unit.messages.between(row.id, 1, 1)
        assert repr(read.parts) == repr((part,))
        assert [type(item) for item in read.parts[0]["arguments"].values()] == [type(i) for i in arguments.values()]
        found = await unit.messages.containing(row.id, ["🗝"], stems=[], limit=5)
        assert [source.seq for source in found] == [1]


@pytest.mark.parametrize("text", ["\x00", "\ud800"])
async def test_parts_that_no_search_could_read_are_refused(begin: UnitOfWorkFactory, tenant: UUID, text: str) -> None:
    """Control: a json column accepts a NUL, and then every search through the conversation fails."""
    row = await stored(begin, tenant)
    async with begin(tenant) as unit:
        with pytest.raises(Exception, match=r"(?i)unicode|surrogate|translat|cannot"):
            await append(unit, [message(row.id, 1, parts=({"type": "text", "text": text},))])


@pytest.mark.own_database
@pytest.mark.long
async def test_queries_stay_bounded_with_ten_thousand_segments(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
) -> None:
    """There are as many segments as 100 000 messages have; a look-up costs about as much as among a hundred."""
    times: list[float] = []
    for count in (100, 10_000):
        row = await stored(begin, tenant)
        told = {"L2": level("L2", "word " * 40), "L3": level("L3", "tag " * 10)}
        many = [segment(row.id, 10 * place + 1, 10 * place + 10, levels=told) for place in range(count)]
        await added(begin, tenant, *many)
        async with engine.connect() as connection:  # as autovacuum does within a minute
            await connection.exec_driver_sql("ANALYZE segments, segment_levels")
            await connection.commit()
        async with begin(tenant) as unit:
            await unit.segments.newest(row.id, limit=1)
            best = math.inf  # since a machine may be busy for a moment
            for _ in range(10):
                begun = time.perf_counter()
                with statements(engine) as seen:
                    assert len(await unit.segments.newest(row.id, limit=60)) == 60
                assert len(seen) == 1
                assert await unit.segments.get(row.id, "segment_501")
                assert len(await unit.segments.covering(row.id, range(5, 1_000, 25))) == 40
                assert len((await unit.segments.page(row.id, Page(order="asc", limit=50)))[0]) == 50
                assert len(await unit.segments.of_ranges(row.id, [(1, 10), (11, 20)])) == 2
                best = min(best, time.perf_counter() - begun)
            times.append(best)
    assert times[1] < 5 * times[0]

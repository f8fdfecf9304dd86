"""Anchors, pins and what erasure rewrites, as the repositories store and find them."""

from __future__ import annotations

import math
import random
import time
from dataclasses import fields, replace
from datetime import timedelta, timezone
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.anchors.selection import ServableAnchors
from app.core.model.anchors import Anchor, AnchorType, FoundAnchor, Proposer, Speaker, Transition
from app.core.model.conversation import Message, Sums
from app.core.model.errors import InvalidInputError, NotFoundError
from app.core.model.records import Page
from app.off_loop import SLICE
from app.storage.repositories.cursor import encode
from app.storage.repositories.states import KnownVersions
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory
from tests.integration.rows import anchor, append, message, moment, resummed, running, stored, talk
from tests.integration.test_repositories import assert_no_default, pages, state_version, statements


async def added(begin: UnitOfWorkFactory, tenant: UUID, anchors: list[Anchor]) -> None:
    async with begin(tenant) as unit:
        await unit.anchors.add(anchors)
        await unit.commit()


class TestAnchors:
    async def test_every_field_comes_back(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        made = anchor(
            row.id,
            3,
            type="unresolved_question",
            content="Сколько времени займёт миграция? 🗝",
            offset=17,
            importance=0.75,
            token_count=12,
            proposed_by="model",
            status="superseded",
            superseded_by=uuid4(),
            speaker="assistant",
            pasted=True,
            passed_over=True,
            claimed_status="withdrawn",
            claimed_seq=8,
        )
        assert {item.name for item in fields(made)} >= {"offset", "superseded_by"}
        plain = anchor(row.id, 3, offset=0, importance=0.5, token_count=5)
        assert_no_default(replace(made, seq=4, said_at=made.created_at, said_by="Anna"), plain)
        await added(begin, tenant, [made])
        async with begin(tenant) as unit:
            assert await unit.anchors.get(row.id, made.id) == made
            with pytest.raises(NotFoundError):
                await unit.anchors.get(row.id, uuid4())
            with pytest.raises(NotFoundError):
                await unit.anchors.get(uuid4(), made.id)

    async def test_the_same_place_and_type_is_one(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        first = anchor(row.id, 1, offset=4)
        await added(begin, tenant, [first])
        again = anchor(row.id, 1, offset=4, content="proposed again")
        beside = anchor(row.id, 1, offset=4, type="critical_fact")
        await added(begin, tenant, [again, beside])
        async with begin(tenant) as unit:
            assert {item.id for item in await unit.anchors.active(row.id)} == {first.id, beside.id}

    async def test_many_are_a_round_trip_for_each_slice(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        row = await stored(begin, tenant)
        many = [anchor(row.id, seq, content="word " * 40) for seq in range(1, 3_101)]
        async with begin(tenant) as unit:
            await unit.conversations.lock(row.id)
            together = math.inf
            for start in range(0, 3_000, 1_000):  # the shortest of three: any one may be interrupted
                with statements(engine) as seen:
                    begun = time.perf_counter()
                    await unit.anchors.add(many[start : start + 1_000])
                    together = min(together, time.perf_counter() - begun)
                assert len(seen) == math.ceil(1_000 / SLICE)
            begun = time.perf_counter()
            for one in many[3_000:]:
                await unit.anchors.add([one])
                await unit.anchors.active(row.id, limit=1)  # the anchor is written before this reading
            alone = time.perf_counter() - begun
            assert together / 1_000 < alone / 100 / 3, "a fortieth of it on an idle machine"

    async def test_without_a_conversation_there_is_nothing(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        async with begin(tenant) as unit:
            await unit.anchors.add([])
            await unit.anchors.add([anchor(uuid4(), 1)])
            with pytest.raises(NotFoundError):
                await unit.commit()

    async def test_active_are_the_newest_in_order(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        chance = random.Random(7)
        row, other = await stored(begin, tenant), await stored(begin, tenant)
        made = [
            anchor(row.id, seq, offset=offset, status=chance.choice(["active", "active", "resolved", "superseded"]))
            for seq in range(1, 30)
            for offset in (0, 20)
        ]
        await added(begin, tenant, chance.sample(made, k=len(made)))
        await added(begin, tenant, [anchor(other.id, 1)])
        active = [item for item in made if item.status == "active"]
        async with begin(tenant) as unit:
            assert await unit.anchors.active(row.id) == active
            assert await unit.anchors.active(row.id, limit=5) == active[-5:]
            assert await unit.anchors.active(row.id, through_seq=9) == [item for item in active if item.seq <= 9]
            assert await unit.anchors.active(row.id, through_seq=0) == []
            served = await unit.anchors.servable(row.id, through_seq=9, limit=5)
            names = [one.name for one in fields(FoundAnchor)]
            newest = [item for item in active if item.seq <= 9][-5:]
            assert served == [FoundAnchor(**{name: getattr(item, name) for name in names}) for item in newest]

    @pytest.mark.parametrize("seed", range(8))
    async def test_what_can_be_shown_is_shown_as_of_all(
        self, begin: UnitOfWorkFactory, tenant: UUID, seed: int
    ) -> None:
        """This holds for everything that a draft cuts off, holds and has room for."""
        chance = random.Random(seed)
        row = await stored(begin, tenant)
        kinds: list[AnchorType] = ["commitment", "correction", "decision"]
        rule: list[Proposer] = ["rule"] * 60
        proposers: list[Proposer] = [*rule, "model", "user" if seed % 2 else "rule"]
        speakers: list[Speaker] = ["user", "assistant"]
        made = [
            anchor(
                row.id,
                seq,
                offset=offset,
                type=chance.choice(kinds),
                content=f"said {chance.randint(1, 40 * (seed + 1))}",
                importance=chance.choice([0.25, 0.5, 0.5, 0.75]),
                token_count=chance.randint(4, 60),
                proposed_by=chance.choice(proposers),
                speaker=chance.choice(speakers),
                pasted=chance.random() < 0.2,
                passed_over=chance.random() < 0.3,
                status="resolved" if chance.random() < 0.1 else "active",
            )
            for seq in range(1, 121)
            for offset in (0, 20)
        ]
        await added(begin, tenant, made)
        held, limit = chance.sample(range(1, 101), 4), 220
        drafts: tuple[tuple[int, list[int]], ...] = (
            (100, held),
            (100, []),
            (110, [*held, 104]),
            (120, held[:2]),
            (120, []),
        )
        async with begin(tenant) as unit:
            every = await unit.anchors.servable(row.id, limit=limit)
            assert sorted(await unit.anchors.active_seqs(row.id, limit=limit)) == [one.seq for one in every]
            ranked = [
                ServableAnchors(every, through_seq=last, held_seqs=kept, estimator="script") for last, kept in drafts
            ]
            for most in (0, 60, 150, 400, 900, 10_000):
                found, unread = await unit.anchors.showable(
                    row.id, covered_seq=100, held=held, max_tokens=most, limit=limit
                )
                assert unread > 0 if most < 200 else most < 10_000 or not unread
                for of_all, (last, kept) in zip(ranked, drafts, strict=True):
                    of_found = ServableAnchors(
                        found, through_seq=last, held_seqs=kept, estimator="script", unread_count=unread
                    )
                    for room in {*range(0, most, most // 40 + 1), *range(max(most - 20, 0), most + 1)}:
                        assert of_found.within(room) == of_all.within(room)

    async def test_days_and_names_are_those_of_the_messages(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        names: list[dict[str, Any]] = [{"name": "Anna"}, {"name": ["no", "name"]}]
        on_its_clock = moment(-1_000).astimezone(timezone(timedelta(hours=10)))
        messages = [
            message(row.id, seq, created_at=said, metadata=named)
            for seq, (said, named) in enumerate(zip((on_its_clock, moment(-2_000)), names, strict=True), start=1)
        ]
        await talk(begin, tenant, messages)
        made = [anchor(row.id, one.seq, message_id=one.id) for one in messages]
        await added(begin, tenant, [*made, anchor(row.id, 3)])
        clocks = [one.replace(tzinfo=None) for one in (on_its_clock, moment(-2_000))]
        expected = {1: (clocks[0], "Anna"), 2: (clocks[1], ""), 3: (None, "")}
        async with begin(tenant) as unit:
            found, _ = await unit.anchors.showable(row.id, covered_seq=3, held=[], max_tokens=100, limit=9)
            listed, _ = await unit.anchors.page(row.id, Page(limit=9), as_said=True)
            active = await unit.anchors.active(row.id, as_said=True)
            for read in (found, listed, await unit.anchors.servable(row.id), active):
                assert {one.seq: (one.said_at, one.said_by) for one in read} == expected
            assert active == await unit.anchors.active(row.id)  # these two fields are not compared

    async def test_pages_by_place_and_filter(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        kinds: list[Any] = ["commitment", "decision", "critical_fact"]
        made = [
            anchor(
                row.id,
                seq // 2 + 1,
                offset=seq % 2 * 40,
                type=kinds[seq % 3],
                status="resolved" if seq % 4 == 0 else "active",
            )
            for seq in range(21)
        ]
        await added(begin, tenant, made[::-1])
        async with begin(tenant) as unit:
            for limit in (1, 4, 21, 50):
                assert await pages(lambda page: unit.anchors.page(row.id, page), limit=limit) == made
                newest = await pages(lambda page: unit.anchors.page(row.id, page), limit=limit, order="desc")
                assert newest == made[::-1]
            found = await pages(
                lambda page: unit.anchors.page(row.id, page, type_="decision", status="active"), limit=2
            )
            assert found == [item for item in made if (item.type, item.status) == ("decision", "active")]
            assert found
            for cursor in ("!", encode((1,)), encode((1, 2, "no id")), encode((-1, 0, str(uuid4())))):
                with pytest.raises(InvalidInputError):
                    await unit.anchors.page(row.id, Page(after=cursor))

    async def test_statuses_change_and_references_go(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row, other = await stored(begin, tenant), await stored(begin, tenant)
        old, new, left = (anchor(row.id, seq) for seq in (1, 2, 3))
        foreign = anchor(other.id, 2)
        await added(begin, tenant, [old, new, left, foreign])
        async with begin(tenant) as unit:
            await unit.anchors.change(
                row.id,
                [
                    Transition(anchor_id=old.id, status="superseded", superseded_by=new.id),
                    Transition(anchor_id=left.id, status="resolved"),
                    Transition(anchor_id=foreign.id, status="resolved"),
                ],
            )
            superseded = replace(old, status="superseded", superseded_by=new.id)
            assert await unit.anchors.get(row.id, old.id) == superseded
            assert await unit.anchors.get(row.id, left.id) == replace(left, status="resolved")
            assert await unit.anchors.get(other.id, foreign.id) == foreign
            assert await unit.anchors.delete_of(row.id, [2, 99]) == (1, 1)
            assert await unit.anchors.get(row.id, old.id) == old
            assert await unit.anchors.delete_of(row.id, []) == (0, 0)
            assert await unit.anchors.get(other.id, foreign.id) == foreign

    @pytest.mark.parametrize("erased", [[2], [2, 3], [2, 3, 4]])
    async def test_an_anchor_with_a_later_successor_stays_superseded(
        self, begin: UnitOfWorkFactory, tenant: UUID, erased: list[int]
    ) -> None:
        row = await stored(begin, tenant)
        chain = [anchor(row.id, seq) for seq in (1, 2, 3, 4)]
        await added(begin, tenant, chain)
        pairs = pairwise(chain)
        changes = [Transition(anchor_id=old.id, status="superseded", superseded_by=new.id) for old, new in pairs]
        async with begin(tenant) as unit:
            await unit.anchors.change(row.id, changes)
            is_last_left = 4 not in erased
            assert await unit.anchors.delete_of(row.id, erased) == (len(erased), 0 if is_last_left else 1)
            first = await unit.anchors.get(row.id, chain[0].id)
            left = next((one.id for one in chain[1:] if one.seq not in erased), None)
            assert (first.status, first.superseded_by) == ("superseded" if left else "active", left)

    async def test_an_outline_weighs_the_active_ones(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row, other = await stored(begin, tenant), await stored(begin, tenant)
        await talk(begin, tenant, [message(row.id, seq) for seq in (1, 2, 3)])
        gone = anchor(row.id, 2, offset=99, status="resolved", token_count=1_000)
        here = [anchor(row.id, 2, offset=at, token_count=weight) for at, weight in ((0, 5), (30, 8))]
        await added(begin, tenant, [*here, gone, anchor(row.id, 3, token_count=2), anchor(other.id, 1, token_count=7)])
        async with begin(tenant) as unit:
            outline = await unit.messages.outline(row.id, after_seq=0, limit=9)
        assert [line.anchor_tokens for line in outline] == [0, 13, 2]

    async def test_go_with_their_conversation(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        made = anchor(row.id, 1)
        await added(begin, tenant, [made])
        async with begin(tenant) as unit:
            await unit.conversations.delete(row.id)
            await unit.commit()
        async with begin(tenant) as unit:
            with pytest.raises(NotFoundError):
                await unit.anchors.get(row.id, made.id)


async def history(unit: UnitOfWork, row_id: UUID, said: list[Message]) -> None:
    """Insist that exactly these messages are stored, with these sums."""
    for entry, through in zip(said, running(said), strict=True):
        assert await unit.messages.at_seq(row_id, entry.seq) == entry
        assert await unit.messages.sums_at(row_id, entry.seq) == through, entry.seq


class TestPins:
    async def test_pinned_and_back(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        said = [message(row.id, seq, token_count=seq * 10, byte_length=seq * 41) for seq in range(1, 8)]
        await talk(begin, tenant, said)
        pinned = replace(said[2], is_pinned=True, protected_reason="pinned")
        async with begin(tenant) as unit:
            assert await unit.messages.pin(row.id, said[2].id, is_pinned=True, reason="pinned") == pinned
            held = [*said[:2], pinned, *said[3:]]
            assert await resummed(unit, row.id) == running(held)[-1]
            await history(unit, row.id, held)
            assert await unit.messages.held(row.id, through_seq=7) == [pinned]
            assert await unit.messages.pin(row.id, said[2].id, is_pinned=False, reason="compressible") == said[2]
            assert await resummed(unit, row.id) == running(said)[-1]
            await history(unit, row.id, said)
            with pytest.raises(NotFoundError):
                await unit.messages.pin(row.id, uuid4(), is_pinned=True, reason="pinned")

    async def test_what_counts_against_the_share(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row, other = await stored(begin, tenant), await stored(begin, tenant)
        reasons: list[Any] = [
            "initial_objective",
            "system",
            "compressible",
            "pinned",
            "over_allotment",
            "goal_statement",
        ]
        said = [
            message(row.id, seq, protected_reason=reason, token_count=10**seq, byte_length=4 * 10**seq)
            for seq, reason in enumerate(reasons)
            if seq
        ]
        first = message(row.id, 10, protected_reason="explicit_constraint", token_count=1, byte_length=4)
        command = message(row.id, 11, protected_reason="initial_objective", is_command=True, token_count=10**7)
        await talk(begin, tenant, [*said, first, command])
        await talk(begin, tenant, [message(other.id, 1, protected_reason="pinned")])
        async with begin(tenant) as unit:
            expected = 1 + 10**3 + 10**5
            assert await unit.messages.protected_tokens(row.id, "script") == expected
            assert await unit.messages.protected_tokens(row.id, "bytes") == expected
            assert await unit.messages.protected_tokens(uuid4(), "script") == 0


class TestErasure:
    async def test_a_tombstone_weighs_nothing(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        call = {"type": "tool_call", "id": "a", "name": "f", "arguments": {}}
        said = [
            message(row.id, 1),
            message(
                row.id,
                2,
                role="assistant",
                parts=(call,),
                protected_reason="pinned",
                is_pinned=True,
                usage={"input_tokens": 1},
                metadata={"canary": "x"},
            ),
            message(row.id, 3),
        ]
        await talk(begin, tenant, said)
        tombstone = replace(
            said[1],
            content="",
            parts=(),
            status="erased",
            token_count=0,
            byte_length=0,
            protected_reason="compressible",
            is_pinned=False,
            usage=None,
            metadata={},
        )
        async with begin(tenant) as unit:
            await unit.messages.erase(row.id, [tombstone])
            expected = [said[0], tombstone, said[2]]
            total = await resummed(unit, row.id)
            assert total == Sums(messages=2, tokens=20, bytes=80)
            await history(unit, row.id, expected)
            assert await unit.messages.other_halves(row.id, ["a"], of=[said[0]]) == []
            assert await unit.messages.known_calls(row.id, ["a"]) == frozenset()
            found = await unit.messages.protectable(row.id, roles=["user", "assistant"], event_types=[], seqs=[2])
            assert found == [said[0], said[2]]
            assert await unit.messages.texts_by_role(row.id, role="assistant", after_seq=0, limit=9) == []
            outline = await unit.messages.outline(row.id, after_seq=0, limit=9)
            assert [line.is_command for line in outline] == [False, True, False]

    async def test_halves_of_tool_pairs(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row, other = await stored(begin, tenant), await stored(begin, tenant)
        call = {"type": "tool_call", "id": "a", "name": "f", "arguments": {}}
        result = {"type": "tool_result", "tool_call_id": "a", "content": "1"}
        said = [
            message(row.id, 1, role="assistant", parts=(call, call | {"id": "b"})),
            message(row.id, 2, role="tool", parts=(result,)),
            message(row.id, 3, role="tool", parts=(result | {"tool_call_id": "c"},)),
            message(row.id, 4, role="tool", parts=(result | {"tool_call_id": "b"},)),
        ]
        await talk(begin, tenant, said)
        await talk(begin, tenant, [message(other.id, 1, role="assistant", parts=(call,))])
        async with begin(tenant) as unit:
            assert await unit.messages.other_halves(row.id, ["a"], of=[said[0]]) == [said[1]]
            assert await unit.messages.other_halves(row.id, ["b", "c"], of=[said[3]]) == [said[0]]
            assert await unit.messages.other_halves(row.id, ["a", "b"], of=[said[0]]) == [said[1], said[3]]
            assert await unit.messages.other_halves(row.id, ["a", "b"], of=[said[0]], most=1) == [said[3]]
            assert await unit.messages.other_halves(row.id, [], of=[said[0]]) == []

    async def test_ids_that_come_again_are_other_pairs(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        call = {"type": "tool_call", "id": "a", "name": "f", "arguments": {}}
        result = {"type": "tool_result", "tool_call_id": "a", "content": "1"}
        said = [
            message(row.id, seq, role="assistant" if seq % 2 else "tool", parts=(call if seq % 2 else result,))
            for seq in range(1, 8)
        ]
        await talk(begin, tenant, said)
        new = message(row.id, 8, role="tool", parts=(result,))
        async with begin(tenant) as unit:
            assert await unit.messages.other_halves(row.id, ["a"], of=[said[1]]) == [said[0]]
            assert await unit.messages.other_halves(row.id, ["a"], of=[said[2]]) == [said[3]]
            assert await unit.messages.other_halves(row.id, ["a"], of=[new]) == [said[6]], (
                "also of one that is not stored"
            )

    async def test_recompute_of_nothing_is_nothing(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row = await stored(begin, tenant)
        async with begin(tenant) as unit:
            assert await resummed(unit, row.id) == Sums()
            await append(unit, [message(row.id, 1)])
            assert await resummed(unit, row.id) == Sums(messages=1, tokens=10, bytes=40)

    async def test_states_since_a_boundary_are_rewritten(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        row, other = await stored(begin, tenant), await stored(begin, tenant)
        versions = [state_version(number, boundary_seq=seq) for number, seq in ((1, 4), (2, 9), (3, 4), (4, 12))]
        async with begin(tenant) as unit:
            for version in versions:
                await unit.states.add(row.id, version)
                await unit.states.add(other.id, version)
            known = KnownVersions()
            read = [replace(version, state={}, layout=None) for version in versions]
            assert await unit.states.since_boundary(row.id, 9, known) == [read[1], read[3]]
            assert await unit.states.since_boundary(row.id, 1, known) == read
            assert await unit.states.since_boundary(row.id, 13, known) == []
            blank = replace(
                versions[1],
                state={"logos": []},
                entries=(),
                covered=Sums(messages=1, tokens=2, bytes=3),
                layout=None,
            )
            moved = replace(blank, next_entry=99, boundary_seq=1, created_at=moment(99))
            await unit.states.rewrite(row.id, moved)
            assert await unit.states.since_boundary(row.id, 1, known) == [read[0], replace(blank, state={}), *read[2:]]
            assert await unit.states.get(row.id, 2) == blank
            assert await unit.states.get(row.id, 4) == versions[3]
            assert await unit.states.get(other.id, 2) == versions[1]

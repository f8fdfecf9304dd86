"""Segments over a real database: cut, stored, listed, expanded, made on demand, restored; and the way back to L0."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.conversation import Message
from app.core.model.errors import (
    ConflictError,
    IdempotencyKeyReusedError,
    InvalidInputError,
    ModelUnavailableError,
    NotFoldedError,
    NotFoundError,
    RateLimitedError,
    SummarizerFailedError,
)
from app.core.model.model_io import DetailRequest, Proposal, SummaryRequest
from app.core.model.records import Page
from app.core.model.segments import LEVEL_BY_NAME, Expansion, Segment
from app.core.segments import segmentation
from app.core.segments.markers import find_markers, render_marker
from app.core.text.token_counts import estimate_text
from app.providers.offline import OfflineSummarizer
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.starting import ChatInput
from app.usecases.compaction import segmenting
from app.usecases.compaction.manual import CompactInput
from app.usecases.history import erasure
from app.usecases.history.drafts import MessageDraft
from app.usecases.segments import expansion
from app.usecases.segments.expansion import Expanded
from app.usecases.shared.idempotency import Idem
from tests.integration.rows import anchor, make_tenant
from tests.integration.services import Service, proposal
from tests.integration.test_erasure import dump

TOPICS = (
    "The copper kettle in the pantry whistles since the {seq} of March, and the plumber wants to see it.",
    "Our invoice {seq} for the roof tiles is 1 {seq} EUR, and the bank in Trondheim has paid it.",
    "The violin lesson number {seq} was about the second movement, and the bow needs new hair.",
)
PAGE = 240
"""The tokens of a page of originals: fewer than most segments have, so that pages end within them."""
ODD = {"zulu": 1, "b": [1e22, -0.0, 1.0], "": None, "яблоко": {"y": True, "x": "\u2028 [a →L1:b]"}, "aa": "é\u0301"}


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant)


async def say(service: Service, conversation_id: UUID, count: int) -> None:
    """Talk about one thing after the other, with tool calls whose parts have odd keys."""
    start = (await service.row(conversation_id)).last_seq
    drafts: list[MessageDraft] = []
    for seq in range(start + 1, start + count + 1):
        text = TOPICS[seq // 9 % len(TOPICS)].format(seq=seq)
        if seq % 7 == 5:
            call = {"name": "look", "arguments": ODD, "type": "tool_call", "id": f"call-{seq}", "extra": [seq]}
            drafts.append(MessageDraft(role="assistant", content=text, parts=(call,)))
        elif seq % 7 == 6 and drafts and drafts[-1].parts:
            told = {"content": {"odd": ODD}, "tool_call_id": f"call-{seq - 1}", "type": "tool_result"}
            drafts.append(MessageDraft(role="tool", content="", parts=(told,)))
        else:
            drafts.append(MessageDraft(role="user" if seq % 2 else "assistant", content=text))
    await service.container.messages.append(service.tenant, conversation_id, drafts)
    await service.container.outbox.drain()


async def compact(service: Service, conversation_id: UUID, keep: int = 2) -> None:
    asked = CompactInput(keep_tail_messages=keep)
    view = await service.container.manual.compact(service.tenant, conversation_id, asked, timeout=30)
    assert view.compaction.status == "applied", view.compaction


async def command(service: Service, conversation_id: UUID) -> None:
    handle = await service.container.chat.start(service.tenant, conversation_id, ChatInput(content="/compact"))
    await handle.result()
    await service.container.outbox.drain()


async def history(service: Service, conversation_id: UUID) -> list[Message]:
    found: list[Message] = []
    after = None
    while True:
        page = Page(limit=100, after=after, order="asc")
        messages, after = await service.container.messages.page(service.tenant, conversation_id, page)
        found += messages
        if after is None:
            return found


async def current(service: Service, conversation_id: UUID) -> list[Segment]:
    found: list[Segment] = []
    after = None
    while True:
        page = Page(limit=3, after=after, order="asc")
        listed, after = await service.container.expansion.page(service.tenant, conversation_id, page)
        found += [one.segment for one in listed]
        if after is None:
            return found


async def expand(service: Service, conversation_id: UUID, segment_id: str, **given: Any) -> list[Expanded]:
    """Every page of a segment at a level."""
    pages: list[Expanded] = []
    after = None
    while True:
        page = await service.container.expansion.expand(
            service.tenant, conversation_id, segment_id, **{"max_tokens": PAGE, "after": after} | given
        )
        pages.append(page)
        after = page.next_cursor
        assert page.truncated == (after is not None)
        if after is None:
            return pages


async def originals(service: Service, conversation_id: UUID, segment_id: str) -> list[Message]:
    pages = await expand(service, conversation_id, segment_id, level="full")
    for page in pages:
        assert page.token_count <= PAGE or len(page.messages) == 1
    return [message for page in pages for message in page.messages]


def written(messages: Sequence[Message]) -> str:
    """The messages as JSON, with the order of keys and the form of numbers."""
    shown = [
        [str(message.id), message.seq, message.role, message.content, list(message.parts), dict(message.metadata)]
        for message in messages
    ]
    return json.dumps(shown, ensure_ascii=False)


def assert_partition(segments: Sequence[Segment], boundary: int) -> None:
    seqs = [seq for one in segments for seq in range(one.from_seq, one.to_seq + 1)]
    assert seqs == list(range(1, boundary + 1))


async def every_marker(service: Service, conversation_id: UUID) -> dict[str, str]:
    """Segment id to its originals as JSON, reached by every marker at every level that is served or listed."""
    found: dict[str, str] = {}
    lists = await expand(service, conversation_id, "earlier", max_tokens=100)
    for marker in [marker for page in lists for marker in page.markers]:
        assert marker in [one for page in lists for one in find_markers(page.content)]
        for level in ("tags", "brief", "detailed"):
            for page in await expand(service, conversation_id, marker.segment_id, level=level):
                for deeper in page.markers:
                    assert deeper.segment_id == marker.segment_id
        found[marker.segment_id] = written(await originals(service, conversation_id, marker.segment_id))
    return found


class TestRoundTrip:
    @pytest.mark.case("30")
    @pytest.mark.parametrize(
        "segment_by",
        [
            {"by": "topic"},
            pytest.param({"by": "messages", "size": 4}, marks=pytest.mark.long),
            pytest.param({"by": "turns", "size": 3}, marks=pytest.mark.long),
            pytest.param({"by": "time"}, marks=pytest.mark.long),
        ],
    )
    @pytest.mark.parametrize(
        "rounds", [(2, 1, 1), pytest.param((3, 2, 3), marks=pytest.mark.long)], ids=["few", "many"]
    )
    async def test_every_marker_leads_to_the_originals(
        self, service: Service, segment_by: dict[str, Any], rounds: tuple[int, int, int]
    ) -> None:
        conversation_id = await service.conversation(segment_by=segment_by)
        expected = await self.scenario(service, conversation_id, rounds=rounds)
        for marker, told in (await every_marker(service, conversation_id)).items():
            assert told == expected[marker]

    @pytest.mark.long
    @pytest.mark.control("30")
    async def test_control_a_page_that_loses_its_border_is_seen(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = expansion._seq_in
        monkeypatch.setattr(expansion, "_seq_in", lambda *given: real(*given) + 1)
        conversation_id = await service.conversation()
        expected = await self.scenario(service, conversation_id, checks=False)
        found = await every_marker(service, conversation_id)
        assert any(told != expected[marker] for marker, told in found.items())

    @pytest.mark.long
    @pytest.mark.control("30")
    async def test_control_parts_that_are_put_in_order_are_seen(self, service: Service, engine: AsyncEngine) -> None:
        conversation_id = await service.conversation()
        expected = await self.scenario(service, conversation_id, checks=False)
        async with engine.begin() as connection:
            await connection.exec_driver_sql("UPDATE messages SET parts = parts::jsonb::json")
        found = await every_marker(service, conversation_id)
        assert any(told != expected[marker] for marker, told in found.items())

    async def scenario(
        self,
        service: Service,
        conversation_id: UUID,
        *,
        checks: bool = True,
        rounds: tuple[int, int, int] = (3, 2, 3),
    ) -> dict[str, str]:
        """Compactions, a command, a restore and more compactions: the originals of every segment ever made.

        Args:
            rounds: Compactions before the command, between it and the restore of the version before, and after that.
        """
        first, between, last = rounds
        expected: dict[str, str] = {}

        async def look() -> None:
            messages = [one for one in await history(service, conversation_id) if not one.is_command]
            segments = await current(service, conversation_id)
            if checks:
                assert_partition(segments, (await service.row(conversation_id)).boundary_seq)
            for one in segments:
                own = written([message for message in messages if one.from_seq <= message.seq <= one.to_seq])
                assert expected.setdefault(one.id, own) == own
            if checks:
                for id_, told in expected.items():
                    assert written(await originals(service, conversation_id, id_)) == told

        for _ in range(first):
            await say(service, conversation_id, 21)
            await compact(service, conversation_id)
            await look()
        await command(service, conversation_id)
        early = await current(service, conversation_id)
        for _ in range(between):
            await say(service, conversation_id, 17)
            await compact(service, conversation_id)
        await look()
        await service.container.states.restore(service.tenant, conversation_id, first - 1)
        restored = await current(service, conversation_id)
        assert {one.id for one in restored} < {one.id for one in early}
        await look()
        for _ in range(last):
            await say(service, conversation_id, 19)
            await compact(service, conversation_id)
        await look()
        return expected

    async def test_commands_alone_make_no_page(self, service: Service) -> None:
        conversation_id = await service.conversation()
        await say(service, conversation_id, 3)
        typed = [MessageDraft(role="user", content="/compact", is_command=True)] * 4
        await service.container.messages.append(service.tenant, conversation_id, typed)
        await say(service, conversation_id, 21)
        await compact(service, conversation_id)
        pages = [
            page
            for one in await current(service, conversation_id)
            for page in await expand(service, conversation_id, one.id, level="full", max_tokens=1)
        ]
        assert all(len(page.messages) == 1 for page in pages)
        assert [page.messages[0].seq for page in pages] == [1, 2, 3, *range(8, 28)][: len(pages)]

    async def test_the_history_is_what_was_sent(self, service: Service) -> None:
        """This makes a comparison with the history meaningful."""
        conversation_id = await service.conversation()
        await say(service, conversation_id, 14)
        call = next(message for message in await history(service, conversation_id) if message.parts)
        assert json.dumps(call.parts[0], ensure_ascii=False) == json.dumps(
            {"name": "look", "arguments": ODD, "type": "tool_call", "id": f"call-{call.seq}", "extra": [call.seq]},
            ensure_ascii=False,
        )


class TestWhatDidNotSurvive:
    """Forty exact values in a state that has no room for them: each is served, or a marker leads back to it."""

    @staticmethod
    def values() -> list[str]:
        chance = random.Random(26)
        kinds = (
            lambda: str(UUID(int=chance.getrandbits(128), version=4)),
            lambda: f"https://example.org/orders/{chance.randrange(10**6)}?page={chance.randrange(100)}",
            lambda: f"/srv/data/{chance.randrange(10**5)}/report-{chance.randrange(100)}.csv",
            lambda: f"{chance.randrange(100, 999)}.{chance.randrange(10, 99)} EUR",
            lambda: f"2026-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}",
        )
        return list(dict.fromkeys(kinds[number % len(kinds)]() for number in range(40)))

    async def lost(self, begin: UnitOfWorkFactory, tenant: UUID, **policy: Any) -> tuple[list[str], list[str]]:
        """The values that the block does not show, and those of them to which no marker of the block leads."""
        service = Service(begin, tenant, OfflineSummarizer().ask)
        conversation_id = await service.conversation(
            segment_by={"by": "messages", "size": 5}, state_tokens=100, anchor_share=0.01, **policy
        )
        values = self.values()
        drafts = [
            MessageDraft(role="user" if number % 2 else "assistant", content=f"{TOPICS[0].format(seq=number)} {value}")
            for number, value in enumerate(values)
        ]
        drafts.append(MessageDraft(role="user", content="And now something else."))
        await service.container.messages.append(service.tenant, conversation_id, drafts)
        await compact(service, conversation_id, keep=1)
        layout = (await service.row(conversation_id)).layout
        assert layout is not None
        served = f"{layout.text}\n{layout.anchors}\n{layout.digests}"
        ids = {marker.segment_id for marker in find_markers(layout.digests)}
        if "earlier" in ids:
            listed = await expand(service, conversation_id, "earlier", max_tokens=1_000)
            ids |= {marker.segment_id for page in listed for marker in page.markers}
        behind = [await originals(service, conversation_id, id_) for id_ in ids - {"earlier"}]
        reached = "\n".join(message.content for messages in behind for message in messages)
        missing = [value for value in values if value not in served]
        return missing, [value for value in missing if value not in reached]

    @pytest.mark.case("26-marker")
    async def test_a_marker_leads_back_to_it(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        missing, unreachable = await self.lost(begin, tenant)
        assert len(missing) > 5
        assert unreachable == []

    @pytest.mark.control("26-marker")
    async def test_control_without_markers_it_is_lost(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        missing, unreachable = await self.lost(begin, tenant, levels=[])
        assert len(missing) > 5
        assert unreachable == missing


class TestStored:
    @pytest.mark.long
    async def test_commands_and_erased_messages_lie_in_a_segment_too(self, service: Service) -> None:
        conversation_id = await service.conversation(segment_by={"by": "messages", "size": 3})
        await say(service, conversation_id, 6)
        await command(service, conversation_id)
        await say(service, conversation_id, 12)
        messages = await history(service, conversation_id)
        for seq in (9, 14):
            await service.container.erasure.erase(service.tenant, conversation_id, messages[seq - 1].id)
        await compact(service, conversation_id)
        segments = await current(service, conversation_id)
        assert_partition(segments, (await service.row(conversation_id)).boundary_seq)
        spoken = [one for one in await history(service, conversation_id) if not one.is_command]
        for one in segments:
            own = [message for message in spoken if one.from_seq <= message.seq <= one.to_seq]
            assert one.messages == sum(message.status != "erased" for message in own)
            assert await originals(service, conversation_id, one.id) == own

    @pytest.mark.long
    async def test_the_same_range_keeps_its_id_and_its_levels(self, service: Service) -> None:
        conversation_id = await service.conversation()
        await say(service, conversation_id, 25)
        await compact(service, conversation_id)
        await say(service, conversation_id, 25)
        await compact(service, conversation_id)
        before = await current(service, conversation_id)
        async with service.begin(service.tenant) as uow:
            told = segmenting._level("L1", "By the model.", "fake", "key", before[0].created_at)
            await uow.segments.put_levels(conversation_id, before[-1].id, [told])
            await uow.commit()
        await service.container.states.restore(service.tenant, conversation_id, 1)
        assert len(await current(service, conversation_id)) < len(before)
        await compact(service, conversation_id)
        after = await current(service, conversation_id)
        assert [(one.id, one.from_seq, one.to_seq) for one in after] == [
            (one.id, one.from_seq, one.to_seq) for one in before
        ]
        assert after[-1].levels["L1"].text == "By the model."
        async with service.begin(service.tenant) as uow:
            written_, _ = await uow.states.page(conversation_id, Page(order="asc"))
        assert [one.parent_version for one in written_] == [None, 1, 1, 3]
        assert written_[2].segment_ids == ()
        assert written_[3].segment_ids == written_[1].segment_ids

    @pytest.mark.long
    async def test_a_branch_that_was_left_overlaps_and_still_resolves(self, service: Service) -> None:
        conversation_id = await service.conversation(segment_by={"by": "messages", "size": 5})
        await say(service, conversation_id, 20)
        await compact(service, conversation_id)
        await say(service, conversation_id, 20)
        await compact(service, conversation_id, keep=10)
        left = await current(service, conversation_id)
        await service.container.states.restore(service.tenant, conversation_id, 1)
        await compact(service, conversation_id, keep=3)
        segments = await current(service, conversation_id)
        assert_partition(segments, 37)
        gone = {one.id for one in left} - {one.id for one in segments}
        for one in left:
            assert [message.seq for message in await originals(service, conversation_id, one.id)] == list(
                range(one.from_seq, one.to_seq + 1)
            )
        earlier = await expand(service, conversation_id, "earlier", max_tokens=10_000)
        assert gone.isdisjoint(marker.segment_id for marker in earlier[0].markers)

    @pytest.mark.long
    async def test_only_what_is_new_is_cut(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[tuple[int, int]] = []
        real = segmentation.split_into_segments

        def spy(messages: Sequence[Message], how: Any) -> Any:
            seen.append((messages[0].seq, messages[-1].seq))
            return real(messages, how)

        monkeypatch.setattr(segmenting, "split_into_segments", spy)
        conversation_id = await service.conversation()
        for _ in range(3):
            await say(service, conversation_id, 20)
            await compact(service, conversation_id)
        assert seen == [(1, 18), (19, 38), (39, 58)]

    async def test_levels_by_the_model_where_it_wrote_them_by_code_elsewhere(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        secret = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0" * 2

        async def described(request: SummaryRequest) -> Proposal:
            answer = json.loads(proposal(request).text)
            told = "The kettle in the pantry whistles since March, and the plumber wants to see it."
            answer["segments"] = [
                {"segment": 1, "topic": "Kettle repair", "brief": f"{told} {secret}", "tags": ["kettle", "pantry"]}
            ]
            return Proposal(text=json.dumps(answer), finish="stop", model="fake")

        service = Service(begin, tenant, described)
        conversation_id = await service.conversation(segment_by={"by": "messages", "size": 8})
        await say(service, conversation_id, 24)
        await compact(service, conversation_id)
        first, *rest = await current(service, conversation_id)
        assert first.id == "kettle_repair"
        assert (first.levels["L2"].made_by, first.levels["L3"].made_by) == ("fake", "fake")
        tags = first.levels["L3"].text
        assert tags.startswith("kettle, pantry, ")
        assert [value for value in first.identifiers if value not in tags] == [], "with every exact value"
        assert secret not in first.levels["L2"].text
        assert all(level.made_by == "extractive" for one in rest for level in one.levels.values())
        assert {tuple(one.levels) for one in (first, *rest)} == {("L1", "L2", "L3")}
        assert first.levels["L1"].made_by == "extractive"
        assert all(one.wants_detail for one in (first, *rest))

    async def test_without_levels_only_words_for_retrieval_are_stored(self, service: Service) -> None:
        conversation_id = await service.conversation(levels=[])
        await say(service, conversation_id, 24)
        await compact(service, conversation_id)
        segments = await current(service, conversation_id)
        assert {tuple(one.levels) for one in segments} == {("L3",)}
        assert not any(one.wants_detail for one in segments)
        (page,) = await expand(service, conversation_id, segments[0].id, level="detailed", max_tokens=1_000)
        assert page.content
        assert page.made_by == "extractive"
        kept = (await current(service, conversation_id))[0].levels["L1"]
        assert kept.text == page.content


class TestExpansion:
    @pytest.mark.long
    async def test_pages_of_a_level_are_the_level(self, service: Service) -> None:
        conversation_id = await service.conversation(segment_by={"by": "messages", "size": 3})
        await say(service, conversation_id, 8)
        await compact(service, conversation_id)
        one = (await current(service, conversation_id))[0]
        for name, level in ((name, level) for level, name in LEVEL_BY_NAME.items() if name):
            for most in (1, 3, 11, 10_000):
                pages = await expand(service, conversation_id, one.id, level=level, max_tokens=most)
                assert "".join(page.content for page in pages) == one.levels[name].text
                assert all(page.token_count <= most for page in pages if most > 3)
                assert len(pages) == 1 or most < 10_000

    async def test_what_code_writes_otherwise_today_is_written_again(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        conversation_id = await service.conversation()
        await say(service, conversation_id, 20)
        await compact(service, conversation_id)
        one = (await current(service, conversation_id))[0]
        monkeypatch.setattr(segmenting, "CODE_VERSION", "extractive-next")
        monkeypatch.setattr(segmenting, "level_text", lambda *_given, **_named: "Told by other rules.")
        (page,) = await expand(service, conversation_id, one.id, level="brief")
        assert page.content == "Told by other rules."
        monkeypatch.setattr(segmenting, "level_text", lambda *_given, **_named: "not asked again")
        (page,) = await expand(service, conversation_id, one.id, level="brief")
        assert page.content == "Told by other rules."

    @pytest.mark.long
    async def test_a_text_that_was_written_anew_between_two_pages(self, service: Service) -> None:
        conversation_id = await service.conversation()
        await say(service, conversation_id, 30)
        await compact(service, conversation_id)
        one = (await current(service, conversation_id))[0]
        look = service.container.expansion.expand
        page = await look(service.tenant, conversation_id, one.id, "detailed", max_tokens=5)
        async with service.begin(service.tenant) as uow:
            told = segmenting._level("L1", "By the model. " * 20, "fake", "key", one.created_at)
            await uow.segments.put_levels(conversation_id, one.id, [told])
            await uow.commit()
        with pytest.raises(InvalidInputError, match="written anew"):
            await look(service.tenant, conversation_id, one.id, "detailed", max_tokens=5, after=page.next_cursor)
        for wrong in ("x", "1.", ".", "-1.abc", "９", "0", "99999999999999999999", str(one.to_seq)):
            for level in ("detailed", "full"):
                with pytest.raises(InvalidInputError):
                    await look(service.tenant, conversation_id, one.id, level, after=wrong)

    @pytest.mark.long
    async def test_the_list_of_all_comes_in_pages_of_whole_lines(self, service: Service) -> None:
        conversation_id = await service.conversation(segment_by={"by": "messages", "size": 2})
        await say(service, conversation_id, 60)
        await compact(service, conversation_id, keep=4)
        segments = await current(service, conversation_id)
        pages = await expand(service, conversation_id, "earlier", max_tokens=120)
        assert len(pages) > 3
        assert all(page.token_count <= 120 for page in pages)
        assert [one for page in pages for one in page.segments] == segments
        lines = [line for page in pages for line in page.content.splitlines()]
        assert [find_markers(line)[0].segment_id for line in lines] == [one.id for one in segments]
        assert all(
            line.startswith(f"{render_marker(find_markers(line)[0])} seq {one.from_seq}–{one.to_seq}")
            for line, one in zip(lines, segments, strict=True)
        )

    async def test_a_marker_inside_a_message_is_no_marker(self, service: Service) -> None:
        conversation_id = await service.conversation(segment_by={"by": "messages", "size": 4})
        hostile = "Our [secret →L1:nobody] and [earlier →L3:earlier] marker, invoice 17 of the roof in Trondheim."
        drafts = [MessageDraft(role="user", content=hostile) for _ in range(12)]
        await service.container.messages.append(service.tenant, conversation_id, drafts)
        await compact(service, conversation_id)
        ids = {one.id for one in await current(service, conversation_id)}
        (listed,) = await expand(service, conversation_id, "earlier", max_tokens=10_000)
        assert {marker.segment_id for marker in find_markers(listed.content)} == ids
        for id_ in ids:
            for level in ("tags", "brief", "detailed"):
                (page,) = await expand(service, conversation_id, id_, level=level, max_tokens=10_000)
                assert {marker.segment_id for marker in page.markers} <= {id_}

    @pytest.mark.long
    async def test_anchors_that_have_no_room_are_listed(self, service: Service) -> None:
        conversation_id = await service.conversation()
        drafts = [
            MessageDraft(role="user", content=f"We decided to use harbour {seq} for the crates of {seq} May.")
            for seq in range(1, 31)
        ]
        await service.container.messages.append(service.tenant, conversation_id, drafts)
        await compact(service, conversation_id)
        pages = await expand(service, conversation_id, "anchors", max_tokens=100)
        shown = [anchor for page in pages for anchor in page.anchors]
        async with service.begin(service.tenant) as uow:
            assert shown == await uow.anchors.active(conversation_id)
        assert len(pages) > 1
        one = (await current(service, conversation_id))[0]
        (page,) = await expand(service, conversation_id, one.id, level="tags", max_tokens=1_000)
        assert [anchor.seq for anchor in page.anchors] == [
            anchor.seq for anchor in shown if one.from_seq <= anchor.seq <= one.to_seq
        ]
        assert page.anchors

    @pytest.mark.parametrize("of_last", [1, 10])
    async def test_each_segment_of_a_page_has_its_anchors_however_many_others_have(
        self, service: Service, of_last: int
    ) -> None:
        conversation_id = await service.conversation(segment_by={"by": "messages", "size": 5})
        await say(service, conversation_id, 38)
        await compact(service, conversation_id)
        first, *others = await current(service, conversation_id)
        most = expansion.MAX_ANCHORS
        made = [anchor(conversation_id, first.from_seq)]
        made += [anchor(conversation_id, one.to_seq, offset=1 + at) for one in others for at in range(most)]
        last = others[-1].to_seq
        made += [anchor(conversation_id, last, offset=1 + at) for at in range(most, of_last * most)]
        assert len(made) > 1_000
        async with service.begin(service.tenant) as uow:
            await uow.anchors.add(made)
            await uow.commit()
        listed, _ = await service.container.expansion.page(service.tenant, conversation_id, Page(limit=20))
        shown = {one.segment.id: [anchor.id for anchor in one.anchors] for one in listed}
        assert made[0].id in shown[first.id]
        assert all(len(shown[one.id]) == most for one in others)
        for one in (first, others[-1]):
            (page,) = await expand(service, conversation_id, one.id, level="tags", max_tokens=1_000)
            assert [anchor.id for anchor in page.anchors] == shown[one.id]

    async def test_a_message_larger_than_a_page_is_a_page(self, service: Service) -> None:
        conversation_id = await service.conversation(segment_by={"by": "messages", "size": 50})
        await say(service, conversation_id, 6)
        giant = MessageDraft(role="user", content="one very long line about tiles " * 60)
        await service.container.messages.append(service.tenant, conversation_id, [giant])
        await say(service, conversation_id, 6)
        await compact(service, conversation_id)
        one = (await current(service, conversation_id))[0]
        pages = await expand(service, conversation_id, one.id, level="full", max_tokens=30)
        (page,) = [page for page in pages if giant.content in [message.content for message in page.messages]]
        assert len(page.messages) == 1
        assert page.token_count > 30

    @pytest.mark.long
    async def test_each_expansion_is_counted_in_numbers(self, service: Service, engine: AsyncEngine) -> None:
        conversation_id = await service.conversation()
        await say(service, conversation_id, 20)
        await compact(service, conversation_id)
        one = (await current(service, conversation_id))[0]
        look = service.container.expansion.expand
        full = await look(service.tenant, conversation_id, one.id, "full")
        await look(service.tenant, conversation_id, one.id, "tags")
        mine = await look(service.tenant, conversation_id, "earlier", records=False)
        assert isinstance(mine.expansion, Expansion)
        async with engine.connect() as connection:
            rows = await connection.exec_driver_sql(
                "SELECT way, level, segment_id, passages, tokens FROM expansions ORDER BY id"
            )
            found = [tuple(row) for row in rows]
        tokens = estimate_text(one.levels["L3"].text)
        assert found == [
            ("explicit", "full", one.id, len(full.messages), full.token_count),
            ("explicit", "tags", one.id, 1, tokens),
        ]

    async def test_what_there_is_not(self, service: Service) -> None:
        conversation_id = await service.conversation()
        (empty,) = await expand(service, conversation_id, "earlier")
        assert (empty.content, empty.token_count) == ("", 0)
        for id_ in ("nobody", "", "\x00", "A B", "x" * 5_000, "../etc", "full"):
            for level in LEVEL_BY_NAME:
                with pytest.raises(NotFoundError, match="No such segment"):
                    await expand(service, conversation_id, id_, level=level)
        with pytest.raises(NotFoundError):
            await expand(service, uuid4(), "earlier")

    async def test_another_tenants_segment_is_nobodys(self, service: Service) -> None:
        conversation_id = await service.conversation()
        await say(service, conversation_id, 20)
        await compact(service, conversation_id)
        one = (await current(service, conversation_id))[0]
        stranger = Service(service.begin, await make_tenant(service.begin, "stranger"))
        own = await stranger.conversation()
        for where in (conversation_id, own):
            for level in LEVEL_BY_NAME:
                with pytest.raises(NotFoundError):
                    await expand(stranger, where, one.id, level=level)
            with pytest.raises(NotFoundError):
                await stranger.container.expansion.make(stranger.tenant, where, one.id, "brief")


class TestMaking:
    async def test_any_finished_range_is_made_and_others_are_refused_in_words(self, service: Service) -> None:
        conversation_id = await service.conversation(segment_by={"by": "messages", "size": 6})
        await say(service, conversation_id, 30)
        await compact(service, conversation_id)
        make = service.container.expansion.make
        boundary = (await service.row(conversation_id)).boundary_seq
        first, second, *_ = await current(service, conversation_id)
        last_seq = (await service.row(conversation_id)).last_seq
        for place in ((last_seq, last_seq + 1), (5, 4)):
            with pytest.raises(NotFoldedError, match="choose an earlier range"):
                await make(service.tenant, conversation_id, place, "brief")
        for place in ((1, 5), (6, 9)):
            with pytest.raises(NotFoldedError, match="tool call"):
                await make(service.tenant, conversation_id, place, "brief")
        for place in ((1, 4), (2, first.to_seq), (1, second.to_seq), (boundary, boundary + 2)):
            told = await make(service.tenant, conversation_id, place, "brief")
            again = await make(service.tenant, conversation_id, place, "brief")
            assert told.segment is not None
            assert (told.segment.from_seq, told.segment.to_seq, told.segment.is_current) == (*place, False)
            assert told.content
            assert (again.segment_id, again.content) == (told.segment_id, told.content)
        with pytest.raises(NotFoundError):
            await make(service.tenant, conversation_id, "nobody", "brief")
        made = await make(service.tenant, conversation_id, (first.from_seq, first.to_seq), "brief")
        assert made.content == first.levels["L2"].text
        last = (await current(service, conversation_id))[-1]
        await say(service, conversation_id, 30)
        await compact(service, conversation_id)
        newest = (await current(service, conversation_id))[-1]
        await service.container.states.restore(service.tenant, conversation_id, 1)
        assert (await make(service.tenant, conversation_id, last.id, "tags")).content
        assert (await make(service.tenant, conversation_id, newest.id, "tags")).content

    async def by_model(self, begin: UnitOfWorkFactory, tenant: UUID, *details: Any) -> tuple[Service, UUID, Segment]:
        service = Service(begin, tenant)
        service.summarizer._details._entries[:] = details
        conversation_id = await service.conversation(segment_by={"by": "messages", "size": 30})
        await say(service, conversation_id, 30)
        await compact(service, conversation_id)
        return service, conversation_id, (await current(service, conversation_id))[0]

    async def test_a_narrative_by_the_model_is_written_once(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        told = "The copper kettle in the pantry whistles, and the plumber wants to see it."
        service, conversation_id, one = await self.by_model(begin, tenant, told)
        make = service.container.expansion.make
        idem = Idem(key="once", fingerprint="a")
        made = await make(tenant, conversation_id, one.id, "detailed", idem=idem)
        assert (made.content, made.made_by, made.level) == (told, "fake", "detailed")
        again = await make(tenant, conversation_id, one.id, "detailed", idem=idem)
        other = await make(tenant, conversation_id, (one.from_seq, one.to_seq), "detailed")
        assert (again.content, other.content) == (told, told)
        assert len(service.summarizer.detail_requests) == 1
        with pytest.raises(IdempotencyKeyReusedError):
            await make(tenant, conversation_id, one.id, "brief", idem=Idem(key="once", fingerprint="b"))

    async def test_a_model_that_fails_leaves_what_there_was(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service, conversation_id, one = await self.by_model(begin, tenant, ModelUnavailableError("away"))
        with pytest.raises(SummarizerFailedError) as caught:
            await service.container.expansion.make(tenant, conversation_id, one.id, "detailed")
        assert (caught.value.extra["reason"], caught.value.retryable) == ("away", True)
        assert "(away)" in caught.value.detail
        (page,) = await expand(service, conversation_id, one.id, level="detailed", max_tokens=10_000)
        assert (page.content, page.made_by) == (one.levels["L1"].text, "extractive")

    async def test_it_is_told_what_has_to_change(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service, conversation_id, one = await self.by_model(
            begin, tenant, ModelUnavailableError("unauthorized", retryable=False)
        )
        with pytest.raises(SummarizerFailedError, match="does not accept the service's key") as caught:
            await service.container.expansion.make(tenant, conversation_id, one.id, "detailed")
        assert (caught.value.extra["reason"], caught.value.retryable) == ("unauthorized", False)

    async def test_what_code_makes_needs_no_model(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service, conversation_id, one = await self.by_model(begin, tenant)
        service.container.parts.models._summarizers.clear()  # type: ignore[attr-defined]  # as without its key
        for level in ("brief", "tags"):
            assert (await service.container.expansion.make(tenant, conversation_id, one.id, level)).content
        with pytest.raises(InvalidInputError):
            await service.container.expansion.make(tenant, conversation_id, one.id, "detailed")

    async def test_two_at_once_make_one_call(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        told = "The copper kettle in the pantry whistles, and the plumber wants to see it."
        reached, go_on = asyncio.Event(), asyncio.Event()

        async def slow(_request: DetailRequest) -> Proposal:
            reached.set()
            await go_on.wait()
            return Proposal(text=told, finish="stop", model="fake")

        service, conversation_id, one = await self.by_model(begin, tenant, slow)
        make = service.container.expansion.make
        first = asyncio.create_task(make(tenant, conversation_id, one.id, "detailed"))
        await reached.wait()
        with pytest.raises(ConflictError, match="as soon as"):
            await make(tenant, conversation_id, one.id, "detailed")
        go_on.set()
        assert (await first).content == told
        assert len(service.summarizer.detail_requests) == 1

    async def test_the_hours_calls_are_used_up(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service, conversation_id, one = await self.by_model(begin, tenant, "The kettle whistles.")
        await service.container.conversations.patch(
            tenant, conversation_id, {"policy": {"context_window": 4_000, "calls_per_hour": 1}}
        )
        with pytest.raises(RateLimitedError):
            await service.container.expansion.make(tenant, conversation_id, one.id, "detailed")


class TestErasure:
    """Nothing in a segment outlives the message that said it: topic, id, identifiers and levels."""

    CANARY = "kumquatorium"
    SECRET = (
        "The kumquatorium permit: the kumquatorium key KQ-7741 opens the kumquatorium gate, and the kumquatorium"
        " keeper wants it back."
    )

    async def described(self, request: SummaryRequest) -> Proposal:
        """A model whose note about the canary's segment contains the canary, as the gate allows."""
        answer = json.loads(proposal(request).text)
        knows = [message.seq for message in request.messages if self.CANARY in message.content]
        if knows:
            answer["segments"] = [
                {
                    "segment": number,
                    "topic": "Kumquatorium permit",
                    "brief": "The kumquatorium key KQ-7741 opens the kumquatorium gate.",
                    "tags": ["kumquatorium"],
                }
                for number, one in enumerate(request.segments, start=1)
                if one.from_seq <= knows[0] <= one.to_seq
            ]
        return Proposal(text=json.dumps(answer), finish="stop", model="fake")

    async def told(self, service: Service, conversation_id: UUID) -> Message:
        await say(service, conversation_id, 14)
        drafts = [MessageDraft(role="user", content=self.SECRET)]
        (canary,) = await service.container.messages.append(service.tenant, conversation_id, drafts)
        await say(service, conversation_id, 14)
        await compact(service, conversation_id)
        for _ in range(2):
            await say(service, conversation_id, 20)
            await compact(service, conversation_id)
        return canary

    @pytest.mark.daily(1)
    @pytest.mark.parametrize(
        ("size", "by_model"),
        [
            pytest.param(1, False, marks=pytest.mark.long),
            (1, True),
            (3, False),
            pytest.param(3, True, marks=pytest.mark.long),
        ],
    )
    async def test_the_canary_is_in_no_table(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, *, by_model: bool, size: int
    ) -> None:
        service = Service(begin, tenant, *([self.described] if by_model else []))
        conversation_id = await service.conversation(segment_by={"by": "messages", "size": size})
        canary = await self.told(service, conversation_id)
        before = await current(service, conversation_id)
        (held,) = [one for one in before if one.from_seq <= canary.seq <= one.to_seq]
        assert self.CANARY in held.id
        for level in LEVEL_BY_NAME:
            await expand(service, conversation_id, held.id, level=level)
        await service.container.erasure.erase(tenant, conversation_id, canary.id)
        await service.container.outbox.drain()
        dumped = (await dump(engine)).casefold()
        assert self.CANARY not in dumped
        assert "kq-7741" not in dumped
        after = await current(service, conversation_id)
        assert [(one.from_seq, one.to_seq) for one in after] == [(one.from_seq, one.to_seq) for one in before]
        assert [one.id for one in after if one.id not in {held.id for held in before}] == [f"segment_{held.from_seq}"]
        with pytest.raises(NotFoundError):
            await expand(service, conversation_id, held.id, level="full")
        (told,) = [one for one in after if one.from_seq == held.from_seq]
        assert told.messages == size - 1
        assert bool(told.levels) == bool(told.messages)
        assert all(level.made_by == "extractive" for level in told.levels.values())
        assert told.wants_detail == bool(told.messages)
        assert len(await originals(service, conversation_id, told.id)) == size

    @pytest.mark.long
    async def test_control_without_it_the_dump_finds_it(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def nothing(*_given: Any, **_named: Any) -> None:
            """Stands for the step that a bug could leave out."""

        service = Service(begin, tenant)
        conversation_id = await service.conversation(segment_by={"by": "messages", "size": 3})
        canary = await self.told(service, conversation_id)
        monkeypatch.setattr(erasure, "rewrite_without_erased", nothing)
        await service.container.erasure.erase(tenant, conversation_id, canary.id)
        assert self.CANARY in (await dump(engine)).casefold()

    async def test_what_another_segment_was_told_of_it_goes_too(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        """The gate lets no such text pass; here it is stored all the same, as a model might have written it."""
        service = Service(begin, tenant)
        conversation_id = await service.conversation(segment_by={"by": "messages", "size": 5})
        canary = await self.told(service, conversation_id)
        segments = await current(service, conversation_id)
        other, later, clean = segments[0], segments[-1], segments[-2]
        async with service.begin(tenant) as uow:
            for one, text in ((other, self.SECRET), (later, self.SECRET), (clean, "The plumber saw the kettle.")):
                told = segmenting._level("L2", text, "fake", "key", one.created_at)
                await uow.segments.put_levels(conversation_id, one.id, [told])
            await uow.commit()
        await service.container.erasure.erase(tenant, conversation_id, canary.id)
        assert self.CANARY not in (await dump(engine)).casefold()
        after = {one.from_seq: one for one in await current(service, conversation_id)}
        assert (after[other.from_seq].id, after[later.from_seq].id) == (other.id, later.id)
        assert after[other.from_seq].levels["L2"].made_by == "extractive"
        assert after[clean.from_seq].levels["L2"].text == "The plumber saw the kettle."

    @pytest.mark.long
    async def test_a_branch_that_was_left_forgets_too(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service = Service(begin, tenant)
        conversation_id = await service.conversation(segment_by={"by": "messages", "size": 5})
        await say(service, conversation_id, 20)
        await compact(service, conversation_id)
        canary = await self.told(service, conversation_id)
        held = [one for one in await current(service, conversation_id) if one.from_seq <= canary.seq <= one.to_seq]
        await service.container.states.restore(tenant, conversation_id, 1)
        await service.container.erasure.erase(tenant, conversation_id, canary.id)
        assert self.CANARY not in (await dump(engine)).casefold()
        async with service.begin(tenant) as uow:
            (told,) = await uow.segments.of_ranges(conversation_id, [(held[0].from_seq, held[0].to_seq)])
        assert (told.is_current, told.messages) == (False, 4)
        assert len(await originals(service, conversation_id, told.id)) == 5

    @pytest.mark.long
    async def test_an_id_that_says_nothing_of_it_stays(self, service: Service) -> None:
        conversation_id = await service.conversation(segment_by={"by": "messages", "size": 6})
        await say(service, conversation_id, 24)
        await compact(service, conversation_id)
        before = await current(service, conversation_id)
        message = (await history(service, conversation_id))[1]
        await service.container.erasure.erase(service.tenant, conversation_id, message.id)
        assert [one.id for one in await current(service, conversation_id)] == [one.id for one in before]

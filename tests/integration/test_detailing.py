"""Levels in a model's words, end to end over google-genai: L2 and L3 with the compaction, L1 in the background."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.bootstrap import Container
from app.core.model.errors import RateLimitedError
from app.core.model.records import Compaction, Page
from app.core.model.segments import EXTRACTIVE, Segment
from app.core.model.timings import DEFAULT_TIMINGS, Timings
from app.core.validation.exact_checks import ExaminedCandidate
from app.infrastructure.clock import SystemClock
from app.providers.keys import Keys
from app.providers.registry import ModelRegistry
from app.storage.repositories.spending import SpendingRepository
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.compaction.manual import CompactInput
from app.usecases.compaction.spend_guard import SpendGuard
from app.usecases.history.drafts import MessageDraft
from app.usecases.segments import detailing
from tests.chosen_settings import chosen_settings
from tests.gemini_faults import FOREIGN, INVENTED
from tests.gemini_server import KEY, Gemini
from tests.integration.services import Outage, Service, together
from tests.unit.test_gate_digests import RUSSIAN, SERVER, TRIP

MODEL = "google:gemini-3-flash-preview"
ALL = CompactInput(keep_tail_messages=0)
PATIENCE = 60.0
GARDEN = (
    (
        "Now about the garden: the old apple tree must be cut before 15 February, and the firm Grünwald asks 480. "
        "The neighbour, Mrs Keller, wants the wood for her stove and would pay 60 francs for all of it."
    ),
    (
        "Then have Grünwald cut it in January, when the ground is frozen, and let Mrs Keller take the wood that day. "
        "A permit from the town is needed for trees above 100 centimetres of girth; yours has 85: it is free."
    ),
    "Agreed, Grünwald comes in January and Mrs Keller gets the wood. I will plant a quince in its place in March.",
    "Noted: Grünwald in January, the wood for Mrs Keller, and a quince in March. No permit is needed.",
)
TALK = (*TRIP, *SERVER, *GARDEN)
CANARY = "Kestrel-7741"


def registry(gemini: Gemini, **others: Any) -> ModelRegistry:
    keys = Keys(google_api_key=KEY, google_base_url=gemini.url)
    given: dict[str, Any] = {"keys": keys, "chat": MODEL, "compaction": MODEL} | others
    return ModelRegistry(**given)


def with_models(service: Service, models: ModelRegistry, **settings: Any) -> Service:
    parts = replace(service.container.parts, models=models)
    service.container = Container(chosen_settings(**settings), parts, service.container.compaction._shell.owner)
    return service


@pytest.fixture
async def service(begin: UnitOfWorkFactory, tenant: UUID, gemini: Gemini) -> AsyncIterator[Service]:
    models = registry(gemini)
    yield with_models(Service(begin, tenant), models, worker_concurrency=4)
    await models.close()


async def compacted(service: Service, contents: tuple[str, ...] = TALK, **policy: Any) -> tuple[UUID, Compaction]:
    """A conversation in which every message is folded, in segments of four."""
    by_four = {"by": "messages", "size": 4}
    conversation_id = await service.conversation(**{"segment_by": by_four, "context_window": 3_000} | policy)
    drafts = [
        MessageDraft(role="assistant" if place % 2 else "user", content=said) for place, said in enumerate(contents)
    ]
    await service.container.messages.append(service.tenant, conversation_id, drafts)
    view = await service.container.manual.compact(service.tenant, conversation_id, ALL, timeout=PATIENCE)
    await service.container.outbox.drain()
    return conversation_id, view.compaction


async def segments(service: Service, conversation_id: UUID) -> list[Segment]:
    async with service.begin(service.tenant) as uow:
        found, _ = await uow.segments.page(conversation_id, Page(limit=100, order="asc"))
        return found


async def first(service: Service, conversation_id: UUID) -> Segment:
    return (await segments(service, conversation_id))[0]


async def run(service: Service, conversation_id: UUID, place: int = 0) -> str:
    segment = (await segments(service, conversation_id))[place]
    return await service.container.detailing.run(service.tenant, conversation_id, segment.id)


async def age(engine: AsyncEngine, span: timedelta) -> None:
    """Make claims, back-offs and recent calls this much older."""
    async with engine.begin() as connection:
        for table, column in (("segments", "detail_after"), ("detail_calls", "called_at")):
            older = text(f"UPDATE {table} SET {column} = {column} - make_interval(secs => :seconds)")  # noqa: S608
            await connection.execute(older, {"seconds": span.total_seconds()})


async def calls(engine: AsyncEngine) -> list[tuple[str | None, str | None]]:
    """The (outcome, reason) of every recorded call."""
    statement = text("SELECT attempt ->> 'outcome', attempt ->> 'reason' FROM detail_calls ORDER BY called_at, id")
    async with engine.connect() as connection:
        return [(outcome, reason) for outcome, reason in await connection.execute(statement)]


# --- L2 and L3, with the compaction


class TestDigests:
    async def test_a_compaction_asks_for_them_and_stores_what_the_model_wrote(
        self, service: Service, gemini: Gemini
    ) -> None:
        conversation_id, row = await compacted(service)
        (call,) = gemini.requests("compaction")
        found = await segments(service, conversation_id)

        assert (row.status, len(row.attempts), row.entries.ungrounded) == ("applied", 1, 0)
        assert "segments" in call["body"]["generationConfig"]["responseJsonSchema"]["properties"]
        assert "1: messages 1 to 4" in call["body"]["contents"][0]["parts"][0]["text"]
        assert [(one.from_seq, one.to_seq) for one in found] == [(1, 4), (5, 8), (9, 12)]
        assert {one.levels[level].made_by for one in found for level in ("L2", "L3")} == {MODEL}
        assert "900 francs" in found[0].levels["L2"].text
        assert all(one.levels["L2"].tokens <= 120 for one in found)
        assert {one.levels["L1"].made_by for one in found} == {EXTRACTIVE}
        assert all(one.wants_detail for one in found)

    async def test_without_levels_they_are_not_asked_for(self, service: Service, gemini: Gemini) -> None:
        await compacted(service, levels=[])
        (call,) = gemini.requests("compaction")
        assert "segments" not in call["body"]["generationConfig"]["responseJsonSchema"]["properties"]
        assert not service.queue.later["detail"]

    @pytest.mark.daily(1)
    @pytest.mark.parametrize(
        ("fault", "absent", "calls", "ungrounded"),
        [
            ("digest_invented", "Evergreen", 2, 3),
            ("digest_foreign", FOREIGN["de"], 1, 0),
            ("digest_missing", MODEL, 1, 0),
        ],
    )
    async def test_bad_ones_never_refuse_an_honest_candidate(
        self, service: Service, gemini: Gemini, fault: str, absent: str, calls: int, ungrounded: int
    ) -> None:
        gemini.script("compaction", fault)
        conversation_id, row = await compacted(service)
        found = await segments(service, conversation_id)

        assert (row.status, len(row.attempts), row.entries.ungrounded) == ("applied", calls, ungrounded)
        assert len(found) == 3
        assert all(set(one.levels) == {"L1", "L2", "L3"} for one in found)
        assert absent not in repr(found)

    async def test_control_without_their_gate_it_is_stored(
        self, service: Service, gemini: Gemini, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            "app.core.validation.gate.examine_candidate", lambda candidate, *_: ExaminedCandidate(candidate=candidate)
        )
        gemini.script("compaction", "digest_invented")
        conversation_id, _ = await compacted(service)
        assert "Evergreen" in repr(await segments(service, conversation_id))

    async def test_they_are_in_the_language_of_the_conversation(self, service: Service, gemini: Gemini) -> None:
        conversation_id, row = await compacted(service, tuple(one.content for one in RUSSIAN) * 3)
        assert row.status == "applied"
        assert "30 words" in gemini.requests("compaction")[0]["body"]["systemInstruction"]["parts"][0]["text"]
        assert {one.levels["L2"].made_by for one in await segments(service, conversation_id)} == {MODEL}

    @pytest.mark.long
    async def test_room_for_the_answer_grows_with_them(self, service: Service, gemini: Gemini) -> None:
        await compacted(service, levels=[])
        await compacted(service)
        plain, asked = (call["body"]["generationConfig"]["maxOutputTokens"] for call in gemini.requests("compaction"))
        assert asked == plain + 3 * 200


# --- L1, in the background


class TestAnL1:
    async def test_one_after_the_other_is_written_after_the_commit(self, service: Service, gemini: Gemini) -> None:
        conversation_id, _ = await compacted(service)
        assert service.queue.later["detail"] == [conversation_id]
        assert not gemini.requests("detail")

        before = await segments(service, conversation_id)
        assert await service.container.detailing.work(conversation_id) == "written"
        await service.container.outbox.drain()
        assert service.queue.later["detail"] == [conversation_id] * 2, "more are wanted"
        assert await service.container.detailing.work(conversation_id) == "written"
        assert await service.container.detailing.work(conversation_id) == "written"
        await service.container.outbox.drain()
        assert service.queue.later["detail"] == [conversation_id] * 3, "no more are wanted"
        assert await service.container.detailing.work(conversation_id) == "not_wanted"

        found = await segments(service, conversation_id)
        assert [one.levels["L1"].made_by for one in found] == [MODEL] * 3
        assert not any(one.wants_detail for one in found)
        assert "900 francs" in found[0].levels["L1"].text
        assert all(0 < one.levels["L1"].tokens < one.tokens for one in found)
        for old, new in zip(before, found, strict=True):
            assert (new.levels["L2"], new.levels["L3"]) == (old.levels["L2"], old.levels["L3"])
            assert new.levels["L1"].content_hash != old.levels["L1"].content_hash
        assert len(gemini.requests("detail")) == 3

    async def test_the_request_is_bounded_plain_and_about_the_segment_alone(
        self, service: Service, gemini: Gemini
    ) -> None:
        conversation_id, _ = await compacted(service)
        await run(service, conversation_id, 1)
        (call,) = gemini.requests("detail")
        shown = call["body"]["contents"][0]["parts"][0]["text"]
        assert "/var/cache/build" in shown
        assert "Porto" not in shown
        assert "Grünwald" not in shown
        assert call["body"]["generationConfig"]["maxOutputTokens"] == 2_048
        assert "responseJsonSchema" not in call["body"]["generationConfig"]

    @pytest.mark.daily(2)
    @pytest.mark.parametrize(
        ("behaviour", "outcome", "reason"),
        [
            pytest.param("cut", "refused", "cut_off", marks=pytest.mark.long),
            ("cut_parseable", "refused", "cut_off"),
            ("empty", "refused", "empty_summary"),
            ("safety", "refused", "blocked"),
            pytest.param("blocked_prompt", "refused", "blocked", marks=pytest.mark.long),
            pytest.param("please_provide", "refused", "not_a_summary", marks=pytest.mark.long),
            ("tool_call", "refused", "not_a_summary"),
            pytest.param({"name": "text", "text": FOREIGN["de"]}, "refused", "wrong_language", marks=pytest.mark.long),
            ({"name": "text", "text": f"{INVENTED} {INVENTED}"}, "refused", "ungrounded"),
            ({"name": "text", "text": "\n".join(TRIP)}, "refused", "not_smaller"),
            ("error_500", "failed", "server_error"),
            pytest.param("error_429", "failed", "rate_limited", marks=pytest.mark.long),
            pytest.param("reset", "failed", "connection", marks=pytest.mark.long),
        ],
    )
    async def test_what_is_refused_or_fails_leaves_the_extractive_one_and_is_tried_later(
        self, service: Service, gemini: Gemini, engine: AsyncEngine, behaviour: Any, outcome: str, reason: str
    ) -> None:
        conversation_id, _ = await compacted(service)
        before = await first(service, conversation_id)
        gemini.script("detail", behaviour)
        assert await run(service, conversation_id) == outcome
        assert await run(service, conversation_id) == "not_wanted", "not before its time"
        after = await first(service, conversation_id)

        assert after == replace(before, detail_tries=int(outcome == "refused")), "an outage uses up no try"
        assert await calls(engine) == [("error" if outcome == "failed" else "refused", reason)]
        await age(engine, timedelta(seconds=61 if outcome == "refused" else 601))
        assert await run(service, conversation_id) == "written"

    @pytest.mark.long
    async def test_after_three_tries_it_is_given_up(
        self, service: Service, gemini: Gemini, engine: AsyncEngine
    ) -> None:
        conversation_id, _ = await compacted(service)
        gemini.script("detail", default="cut")
        for minutes in (2, 11, 60, 600):
            await run(service, conversation_id)
            await age(engine, timedelta(minutes=minutes))
        after = await first(service, conversation_id)

        assert len(gemini.requests("detail")) == 3
        assert (after.wants_detail, after.detail_tries, after.levels["L1"].made_by) == (False, 3, EXTRACTIVE)

    async def test_what_the_provider_does_not_take_is_not_sent_again(
        self, service: Service, gemini: Gemini, engine: AsyncEngine
    ) -> None:
        conversation_id, _ = await compacted(service)
        gemini.script("detail", "error_400")
        assert await run(service, conversation_id) == "failed"
        await age(engine, timedelta(minutes=600))
        given_up = await first(service, conversation_id)

        assert await calls(engine) == [("error", "bad_request")]
        assert (given_up.wants_detail, given_up.levels["L1"].made_by) == (False, EXTRACTIVE)

    async def test_what_it_invents_goes(self, service: Service, gemini: Gemini) -> None:
        conversation_id, _ = await compacted(service)
        gemini.script("detail", "retold_inventing")
        assert await run(service, conversation_id) == "written"
        written = (await first(service, conversation_id)).levels["L1"]
        assert written.made_by == MODEL
        assert "Springfield" not in written.text

    async def test_an_open_circuit_costs_no_try(
        self, begin: UnitOfWorkFactory, tenant: UUID, gemini: Gemini, engine: AsyncEngine
    ) -> None:
        models = registry(gemini, failures_to_open=1)
        service = with_models(Service(begin, tenant), models)
        conversation_id, _ = await compacted(service)
        gemini.script("detail", "error_500")
        assert await run(service, conversation_id, 1) == "failed"
        assert await run(service, conversation_id) == "failed"
        assert len(gemini.requests("detail")) == 1
        assert await calls(engine) == [("error", "server_error"), ("error", "circuit_open")]
        found = await segments(service, conversation_id)
        assert [one.detail_tries for one in found] == [0, 0, 0], "nor does an outage"
        async with service.begin(tenant) as uow:
            assert await uow.spending.metered_calls(timedelta(hours=1), conversation_id) == (1, 1), "nobody answered"
        await models.close()

    async def test_one_that_is_there_is_not_written_again(
        self, service: Service, gemini: Gemini, engine: AsyncEngine
    ) -> None:
        conversation_id, _ = await compacted(service)
        assert await run(service, conversation_id) == "written"
        async with engine.begin() as connection:
            await connection.execute(text("UPDATE segments SET wants_detail = true"))
        assert await run(service, conversation_id) == "kept"
        assert len(gemini.requests("detail")) == 1
        assert not (await first(service, conversation_id)).wants_detail

    async def test_of_a_short_segment_code_has_told_all(self, service: Service, gemini: Gemini) -> None:
        conversation_id, _ = await compacted(service, segment_by={"by": "messages", "size": 1})
        short = next(one for one in await segments(service, conversation_id) if one.tokens < detailing.WORTH)
        assert await service.container.detailing.run(service.tenant, conversation_id, short.id) == "kept"
        assert not gemini.requests("detail")

    @pytest.mark.long
    async def test_short_ones_are_settled_on_the_way_to_one_that_is_worth_a_call(
        self, service: Service, gemini: Gemini, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        conversation_id, _ = await compacted(service)
        tokens = sorted(one.tokens for one in await segments(service, conversation_id))
        monkeypatch.setattr(detailing, "WORTH", tokens[-1])
        assert await service.container.detailing.work(conversation_id) in {"written", "kept"}
        assert await service.container.detailing.work(conversation_id) in {"kept", "not_wanted"}
        found = await segments(service, conversation_id)
        assert {one.levels["L1"].made_by for one in found if one.tokens == tokens[-1]} == {MODEL}
        assert not any(one.wants_detail for one in found)
        assert len(gemini.requests("detail")) == tokens.count(tokens[-1])

    @pytest.mark.long
    async def test_for_somebody_who_waits_it_is_written_at_once(
        self, service: Service, gemini: Gemini, engine: AsyncEngine
    ) -> None:
        conversation_id, _ = await compacted(service)
        segment = await first(service, conversation_id)
        gemini.script("detail", "cut")
        assert await run(service, conversation_id) == "refused"
        now = partial(service.container.detailing.run_now, service.tenant, conversation_id, segment.id)
        gemini.script("detail", default={"name": "honest", "delay": 0.3})
        assert sorted([one.outcome for one in await together(now, now)]) == ["not_now", "written"]
        assert len(gemini.requests("detail")) == 2
        assert (await now()).outcome == "kept", "it is there"
        assert await calls(engine) == [("refused", "cut_off"), ("accepted", None)]

    async def test_strangers_and_unknown_ones_get_none(self, service: Service, gemini: Gemini) -> None:
        conversation_id, _ = await compacted(service)
        segment = await first(service, conversation_id)
        run_ = service.container.detailing.run
        assert await run_(UUID(int=77), conversation_id, segment.id) == "not_wanted"
        assert await run_(service.tenant, UUID(int=78), segment.id) == "not_wanted"
        assert await run_(service.tenant, conversation_id, "nothing") == "not_wanted"
        assert not gemini.requests("detail")


class TestWithoutAMeteredModel:
    async def test_the_offline_model_is_never_asked(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = with_models(Service(begin, tenant), ModelRegistry())
        conversation_id, row = await compacted(service, TALK * 2)
        assert row.status == "applied"
        assert not service.queue.later["detail"]
        assert not any(one.wants_detail for one in await segments(service, conversation_id))
        assert await service.container.detailing.work(conversation_id) == "not_wanted"

    async def test_what_a_model_was_to_write_stays_as_it_is_when_there_is_none_any_more(
        self, service: Service, gemini: Gemini
    ) -> None:
        conversation_id, _ = await compacted(service)
        with_models(service, ModelRegistry())
        assert await run(service, conversation_id) == "kept"
        assert not (await first(service, conversation_id)).wants_detail
        assert not gemini.requests("detail")


# --- at once, meanwhile, and out of order


async def started(service: Service, conversation_id: UUID, gemini: Gemini) -> asyncio.Task[str]:
    """Start an L1, and return while its model is held."""
    gemini.script("detail", {"name": "honest", "hold": True})
    task = asyncio.create_task(run(service, conversation_id))
    await asyncio.to_thread(gemini.wait_for, "detail")
    return task


class TestMeanwhile:
    async def test_two_workers_make_one_call(self, service: Service, gemini: Gemini) -> None:
        conversation_id, _ = await compacted(service)
        gemini.script("detail", default={"name": "honest", "delay": 0.3})
        found = await together(*[lambda: run(service, conversation_id) for _ in range(4)])
        assert sorted(found) == ["not_wanted"] * 3 + ["written"]
        assert len(gemini.requests("detail")) == 1

    async def test_they_make_one_though_their_clock_is_behind_the_databases(
        self, service: Service, gemini: Gemini, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(SystemClock, "now", lambda _: datetime.now(UTC) - timedelta(minutes=10))
        conversation_id, _ = await compacted(service)
        task = await started(service, conversation_id, gemini)
        assert await run(service, conversation_id) == "not_wanted"
        gemini.release()
        assert await task == "written"

    @pytest.mark.long
    async def test_control_without_the_claim_two_calls_are_made(
        self, service: Service, gemini: Gemini, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(service.container.detailing, "_claim", timedelta(seconds=-1))
        conversation_id, _ = await compacted(service)
        gemini.script("detail", default={"name": "honest", "delay": 0.3})
        found = await together(*[lambda: run(service, conversation_id) for _ in range(2)])
        assert sorted(found) == ["stale", "written"], "the fence still holds: the first claim is no longer the last"
        assert len(gemini.requests("detail")) == 2

    async def test_of_an_erased_message_nothing_comes_back(self, service: Service, gemini: Gemini) -> None:
        assert CANARY not in await told_after_erasure(service, gemini)

    @pytest.mark.long
    async def test_control_without_the_fence_it_does(
        self, service: Service, gemini: Gemini, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(detailing, "_erased_meanwhile", lambda *_: False)
        monkeypatch.setattr(detailing, "_is_claim_current", lambda *_: True)
        assert CANARY in await told_after_erasure(service, gemini)

    @pytest.mark.long
    async def test_one_whose_worker_died_is_free_when_the_claim_has_passed(
        self, service: Service, gemini: Gemini, engine: AsyncEngine
    ) -> None:
        conversation_id, _ = await compacted(service)
        for tries in (1, 2, 3):
            task = await started(service, conversation_id, gemini)
            task.cancel()
            await asyncio.wait([task])
            gemini.reset()
            assert await run(service, conversation_id) == "not_wanted"
            assert (await first(service, conversation_id)).detail_tries == tries
            await age(engine, timedelta(seconds=DEFAULT_TIMINGS.detail_claim_seconds))
        assert await run(service, conversation_id) == "kept", "it may be the segment that kills workers"
        assert await calls(engine) == [(None, None)] * 3

    @pytest.mark.long
    async def test_a_compaction_comes_first(self, service: Service, gemini: Gemini) -> None:
        conversation_id, _ = await compacted(service)
        gemini.script("compaction", {"name": "honest", "hold": True})
        drafts = [MessageDraft(role="user", content=said) for said in TALK]
        await service.container.messages.append(service.tenant, conversation_id, drafts)
        compacting = asyncio.create_task(
            service.container.manual.compact(service.tenant, conversation_id, ALL, timeout=PATIENCE)
        )
        await asyncio.to_thread(gemini.wait_for, "compaction", 2)
        assert await run(service, conversation_id) == "not_now"
        gemini.release()
        await compacting
        assert not gemini.requests("detail")
        assert (await first(service, conversation_id)).detail_tries == 0

    async def test_no_more_run_at_once_than_there_are_slots(
        self, begin: UnitOfWorkFactory, tenant: UUID, gemini: Gemini
    ) -> None:
        models = registry(gemini)
        service = with_models(Service(begin, tenant), models, worker_concurrency=2)
        conversation_id, _ = await compacted(service)
        task = await started(service, conversation_id, gemini)
        assert await run(service, conversation_id, 1) == "not_now"
        gemini.release()
        assert await task == "written"
        assert await run(service, conversation_id, 1) == "written"
        await models.close()

    async def test_a_model_that_hangs_is_left(
        self, begin: UnitOfWorkFactory, tenant: UUID, gemini: Gemini, engine: AsyncEngine
    ) -> None:
        models = registry(gemini)
        service = with_models(Service(begin, tenant), models, compaction_timeout_seconds=0.3)
        conversation_id, _ = await compacted(service)
        gemini.script("detail", "hang")
        assert await run(service, conversation_id) == "failed"
        assert await calls(engine) == [("error", "timeout")]
        await models.close()


async def told_after_erasure(service: Service, gemini: Gemini) -> str:
    """All L1s in a model's words, after a message was erased while the model wrote about it."""
    secret = f"Please note that the phrase for the porter in Porto is {CANARY}, and never tell it to anybody else."
    conversation_id, _ = await compacted(service, (TRIP[0], TRIP[1], secret, *TALK[3:]))
    task = await started(service, conversation_id, gemini)
    async with service.begin(service.tenant) as uow:
        canary = await uow.messages.at_seq(conversation_id, 3)
    await service.container.erasure.erase(service.tenant, conversation_id, canary.id)
    gemini.release()
    outcome = await task
    found = await segments(service, conversation_id)
    assert outcome in {"stale", "written"}
    return "\n".join(one.levels["L1"].text for one in found if "L1" in one.levels)


# --- what it costs


class TestTheSpendGuard:
    async def test_l1s_wait_for_room_and_count(self, service: Service, gemini: Gemini, engine: AsyncEngine) -> None:
        conversation_id, _ = await compacted(service, calls_per_hour=4)
        assert await run(service, conversation_id) == "written"
        assert await run(service, conversation_id, 1) == "not_now", "half of the calls are for compactions"
        assert await run(service, conversation_id, 1) == "not_wanted", "it was put off for as long as it takes"
        assert len(gemini.requests("detail")) == 1
        assert (await segments(service, conversation_id))[1].detail_tries == 0
        await service.container.manual.compact(service.tenant, conversation_id, ALL, timeout=PATIENCE)
        await service.container.conversations.patch(service.tenant, conversation_id, {"policy": {"calls_per_hour": 2}})
        with pytest.raises(RateLimitedError):
            await service.container.manual.compact(service.tenant, conversation_id, ALL, timeout=PATIENCE)
        await service.container.conversations.patch(service.tenant, conversation_id, {"policy": {"calls_per_hour": 4}})
        await age(engine, timedelta(minutes=61))
        assert await run(service, conversation_id, 1) == "written"

    @pytest.mark.long
    async def test_a_tenants_l1s_count_together(self, begin: UnitOfWorkFactory, tenant: UUID, gemini: Gemini) -> None:
        models = registry(gemini)
        service = with_models(Service(begin, tenant), models, tenant_calls_per_hour=6)
        one, _ = await compacted(service)
        other, _ = await compacted(service)
        assert await run(service, one) == "written"
        assert await run(service, other) == "not_now"
        await models.close()

    @pytest.mark.long
    async def test_control_uncounted_they_are_written(
        self, service: Service, gemini: Gemini, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        counted = SpendingRepository.metered_calls

        async def of_compactions(self: SpendingRepository, span: timedelta, of: UUID) -> tuple[int, int]:
            own, of_tenant = await counted(self, span, of)
            made = len(gemini.requests("detail"))
            return own - made, of_tenant - made

        monkeypatch.setattr(SpendingRepository, "metered_calls", of_compactions)
        conversation_id, _ = await compacted(service, calls_per_hour=4)
        assert await run(service, conversation_id) == "written"
        assert await run(service, conversation_id, 1) == "written"
        assert isinstance(service.container.detailing._spending, SpendGuard)
        assert len(gemini.requests("detail")) == 2


# --- who starts it


class TestTheSweeper:
    @pytest.mark.long
    async def test_it_hints_at_what_is_wanted(self, service: Service, gemini: Gemini) -> None:
        conversation_id, _ = await compacted(service)
        other, _ = await compacted(service)
        service.queue.later["detail"].clear()
        await service.container.sweeper.sweep()
        assert service.queue.later["detail"] == [conversation_id, other]
        assert not gemini.requests("detail")
        for place in range(3):
            await run(service, conversation_id, place)
        service.queue.later["detail"].clear()
        await service.container.sweeper.sweep()
        assert service.queue.later["detail"] == [other]

    @pytest.mark.long
    async def test_with_the_broker_away_it_has_them_written_here(
        self, service: Service, gemini: Gemini, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service.queue.away = True
        conversation_id, _ = await compacted(service)
        await service.container.sweeper.sweep()
        assert not gemini.requests("detail"), "it may come back at once"
        monkeypatch.setattr(service.container.sweeper, "_timings", Timings(stand_in_seconds=1e-9))
        await service.container.sweeper.sweep()
        for _ in range(1_000):
            if not any(one.wants_detail for one in await segments(service, conversation_id)):
                break
            await asyncio.sleep(0.02)
        assert len(gemini.requests("detail")) == 3
        assert {one.levels["L1"].made_by for one in await segments(service, conversation_id)} == {MODEL}


async def test_neither_events_nor_calls_hold_text(service: Service, engine: AsyncEngine) -> None:
    conversation_id, _ = await compacted(service)
    await run(service, conversation_id)
    for table in ("events", "detail_calls"):
        async with engine.connect() as connection:
            rows = (await connection.execute(text(f"SELECT to_jsonb(r)::text FROM {table} r"))).scalars().all()  # noqa: S608
        assert rows
        assert not any(word in row for row in rows for word in ("Porto", "Irina", "Ribeira", "francs"))


async def test_what_was_paid_for_is_stored_once_the_database_is_back(
    begin: UnitOfWorkFactory, tenant: UUID, gemini: Gemini, monkeypatch: pytest.MonkeyPatch
) -> None:
    outage, models, ask = Outage(begin, 0.8), registry(gemini), detailing.DetailService._ask
    service = with_models(Service(outage, tenant), models, worker_concurrency=4)
    conversation_id, _ = await compacted(service)

    async def ask_before_outage(*given: Any) -> Any:
        answer = await ask(*given)
        outage.begin()
        return answer

    monkeypatch.setattr(detailing.DetailService, "_ask", ask_before_outage)
    assert await run(service, conversation_id) == "written"
    await models.close()

"""The ladder in a running service, over Google's wire format: the model's faults, and their consequences.

Every case has its control: the same scenario with the guard taken out comes to nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.errors import (
    DependencyUnavailableError,
    ModelUnavailableError,
    PolicyInvalidError,
    SummarizerFailedError,
)
from app.core.model.model_io import Proposal, SummaryRequest
from app.core.model.records import Compaction
from app.core.planning.withholding import WITHHELD
from app.providers.keys import Keys
from app.providers.registry import ModelRegistry
from app.settings import Settings
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.starting import ChatInput
from app.usecases.compaction.attempts import Apply, AttemptInputs
from app.usecases.compaction.chunk import Chunk, check_models
from app.usecases.compaction.job import Job, JobLimits
from app.usecases.compaction.manual import CompactInput
from app.usecases.history.drafts import MessageDraft
from app.usecases.ports import Models
from tests.fakes import FAKE_PROFILE, ScriptedSummarizer
from tests.gemini_faults import Behaviour
from tests.gemini_server import Gemini
from tests.gemini_wire import prompt_of
from tests.integration.services import WORDS, Service, honest
from tests.unframing import unframe

MODEL = "google:gemini-3-flash-preview"
SECOND = "google:gemini-2.5-pro"
CANARY = "forbiddenword"
NOT_JSON = '{"logos": [{"text": "a", "from": [1]'
PATIENCE = 60.0
SMALL_WINDOW: Behaviour = {"name": "honest", "max_input_tokens": 4_400}
BLOCKS: Behaviour = {"name": "honest", "block_if": CANARY}


class WireService(Service):
    """The service with real adapters before the scripted server."""

    def __init__(self, begin: UnitOfWorkFactory, tenant: UUID, models: Models) -> None:
        super().__init__(begin, tenant)
        shell: Any = self.container.compaction._shell
        object.__setattr__(shell, "models", models)

    async def manual(self, conversation_id: UUID) -> Compaction:
        view = await self.container.manual.compact(self.tenant, conversation_id, CompactInput(), timeout=PATIENCE)
        return view.compaction

    async def background(self, conversation_id: UUID) -> Compaction:
        ended = await self.container.compaction.execute(self.queue.ids[-1])
        assert ended is not None
        return ended


@asynccontextmanager
async def wired(gemini: Gemini, begin: UnitOfWorkFactory, tenant: UUID, **settings: Any) -> AsyncIterator[WireService]:
    registry = ModelRegistry(
        compaction=MODEL,
        keys=Keys(google_api_key="key", google_base_url=gemini.url),
        **{"failures_to_open": 50} | settings,
    )
    yield WireService(begin, tenant, registry)
    await registry.close()


def reasons(row: Compaction) -> list[str | None]:
    return [attempt.reason for attempt in row.attempts]


def shown(gemini: Gemini, number: int) -> dict[int, str]:
    """The messages of a prompt: ``seq`` to text."""
    call = gemini.requests("compaction")[number]
    return {message.seq: message.content for message in unframe(prompt_of(call["body"], "compaction"))}


class TestTheFallback:
    @pytest.mark.long
    async def test_is_asked_last_with_what_was_wrong(
        self, gemini: Gemini, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        gemini.script("compaction", "invalid_json", "invalid_json")
        async with wired(gemini, begin, tenant) as service:
            conversation_id = await service.conversation(fallback_model=SECOND)
            await service.say(conversation_id, 60)
            row = await service.background(conversation_id)

        assert (row.status, row.model) == ("applied", SECOND)
        assert reasons(row) == ["unparseable", "unparseable", None]
        assert [attempt.model for attempt in row.attempts] == [MODEL, MODEL, SECOND]
        assert [call["model"] for call in gemini.requests("compaction")] == [
            "gemini-3-flash-preview",
            "gemini-3-flash-preview",
            "gemini-2.5-pro",
        ]
        assert all(attempt.duration_ms >= 0 and attempt.metered for attempt in row.attempts)

    @pytest.mark.daily(1)
    @pytest.mark.case("1", "2", "3", "4", "5", "7", "10")
    @pytest.mark.parametrize(
        ("fault", "reason"),
        [
            pytest.param({"name": "foreign", "language": "zh"}, "wrong_language", marks=pytest.mark.long),
            ({"name": "foreign", "language": "ru"}, "wrong_language"),
            ("thoughts_only", "empty_summary"),
            ("please_provide", "not_a_summary"),
            pytest.param("tool_call", "not_a_summary", marks=pytest.mark.long),
            ("cut_parseable", "cut_off"),
            ("safety", "blocked"),
            ("error_500", "server_error"),
            ("larger", "not_smaller"),
        ],
    )
    async def test_mends_what_the_first_model_cannot(
        self, gemini: Gemini, begin: UnitOfWorkFactory, tenant: UUID, fault: str | Behaviour, reason: str
    ) -> None:
        """Cases 1 to 5, 7 and 10."""
        gemini.script("compaction", fault, fault)
        async with wired(gemini, begin, tenant) as service:
            conversation_id = await service.conversation(fallback_model=SECOND)
            await service.say(conversation_id, 60)
            row = await service.background(conversation_id)
        assert (row.status, row.model, reasons(row)) == ("applied", SECOND, [reason, reason, None])

    async def test_control_without_one_nothing_is_applied(
        self, gemini: Gemini, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        gemini.script("compaction", "invalid_json", "invalid_json")
        async with wired(gemini, begin, tenant) as service:
            conversation_id = await service.conversation()
            await service.say(conversation_id, 60)
            row = await service.background(conversation_id)
            state = await service.row(conversation_id)

        assert (row.status, row.reason, state.state_version) == ("rejected", "unparseable", 0)

    async def test_one_that_cannot_be_built_any_more_costs_no_compaction(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        service = Service(begin, tenant, NOT_JSON, NOT_JSON, honest, fallbacks={"gone": ScriptedSummarizer(honest)})
        conversation_id = await service.conversation(fallback_model="gone")
        await service.say(conversation_id, 60)
        models: Any = service.container.parts.models
        del models._summarizers["gone"]
        ended = await service.container.compaction.execute(service.queue.ids[0])
        assert ended is not None
        assert (ended.status, ended.reason, len(ended.attempts)) == ("rejected", "unparseable", 2)

    async def test_a_name_that_cannot_be_built_is_refused_when_it_is_set(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        service = Service(begin, tenant, fallbacks={"second": ScriptedSummarizer(honest)})
        models = service.container.parts.models
        await check_models(models, {"fallback_model": "second"})
        await check_models(models, {})
        with pytest.raises(PolicyInvalidError) as caught:
            await check_models(models, {"fallback_model": "nobody"})
        assert [error.field for error in caught.value.errors] == ["policy.fallback_model"]

    async def test_a_provider_that_wants_to_be_left_alone_is(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = Service(begin, tenant, ModelUnavailableError("rate_limited", retry_after=900))
        conversation_id = await service.conversation()
        await service.say(conversation_id, 60)
        ended = await service.container.compaction.execute(service.queue.ids[0])
        quiet = (await service.row(conversation_id)).quiet
        assert ended is not None
        assert (ended.status, reasons(ended)) == ("failed", ["rate_limited"])
        assert quiet.until is not None
        assert ended.finished_at is not None
        assert timedelta(seconds=899) <= quiet.until - ended.finished_at < timedelta(seconds=905)

    async def test_a_wrong_key_is_asked_once_and_the_fallback_once(
        self, gemini: Gemini, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        gemini.script("compaction", "bad_key")
        async with wired(gemini, begin, tenant) as service:
            conversation_id = await service.conversation(fallback_model=SECOND)
            await service.say(conversation_id, 60)
            row = await service.background(conversation_id)
        assert (row.status, reasons(row)) == ("applied", ["unauthorized", None])


class TestARealWindowSmallerThanThought:
    """Case 13."""

    @pytest.mark.case("13")
    @pytest.mark.long
    async def test_in_the_background_the_input_is_halved_and_the_newest_kept(
        self, gemini: Gemini, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        gemini.script("compaction", default=SMALL_WINDOW)
        async with wired(gemini, begin, tenant) as service:
            conversation_id = await service.conversation()
            await service.say(conversation_id, 120)
            row = await service.background(conversation_id)
            conversation = await service.row(conversation_id)

        assert row.status == "applied"
        assert reasons(row)[0] == "context_too_long"
        assert reasons(row)[-1] is None
        assert conversation.state_version >= 2, "committed chunk by chunk"
        assert (row.from_seq, row.to_seq) == (1, conversation.boundary_seq)
        assert conversation.boundary_seq < 120
        sizes = [len(shown(gemini, number)) for number in range(len(row.attempts))]
        assert sizes[1] < sizes[0]
        assert max(shown(gemini, 1)) < max(shown(gemini, 0)), "the oldest half first"

    @pytest.mark.long
    @pytest.mark.case("13")
    async def test_a_manual_call_too(self, gemini: Gemini, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        gemini.script("compaction", default=SMALL_WINDOW)
        async with wired(gemini, begin, tenant) as service:
            conversation_id = await service.conversation()
            await service.say(conversation_id, 120)
            row = await service.manual(conversation_id)
        assert row.status == "applied"

    @pytest.mark.control("13")
    async def test_control_without_halving_nothing_is_applied(
        self, gemini: Gemini, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.usecases.compaction.chunk.Chunk.half", None)
        gemini.script("compaction", default=SMALL_WINDOW)
        async with wired(gemini, begin, tenant) as service:
            conversation_id = await service.conversation()
            await service.say(conversation_id, 120)
            row = await service.background(conversation_id)
        assert (row.status, reasons(row)) == ("failed", ["context_too_long"])

    @pytest.mark.long
    @pytest.mark.case("13")
    async def test_a_window_that_nothing_fits_ends_within_the_budget(
        self, gemini: Gemini, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        gemini.script("compaction", default="too_long")
        async with wired(gemini, begin, tenant) as service:
            conversation_id = await service.conversation()
            await service.say(conversation_id, 120)
            row = await service.background(conversation_id)
            state = await service.row(conversation_id)
        assert (row.status, row.reason, state.state_version) == ("failed", "context_too_long", 0)
        assert 2 <= len(row.attempts) <= 6

    async def test_inside_a_turn_nobody_halves(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = Service(begin, tenant, ModelUnavailableError("context_too_long", retryable=False))
        row = await run_in_turn(service)
        assert (row.status, reasons(row)) == ("failed", ["context_too_long"])


class TestAMessageThatIsBlocked:
    """Case 12."""

    async def talk(self, service: Service) -> tuple[UUID, int]:
        """A conversation with one message that the provider blocks."""
        conversation_id = await service.conversation()
        await service.say(conversation_id, 12)
        said = f"I decided to pay the {CANARY} invoice INV-2026-0417 over 4,711.50 EUR."
        drafts = [MessageDraft(role="user", content=said)]
        (guilty,) = await service.container.messages.append(service.tenant, conversation_id, drafts)
        await service.say(conversation_id, 60)
        return conversation_id, guilty.seq

    @pytest.mark.case("12")
    async def test_is_withheld_and_the_rest_compacted(
        self, gemini: Gemini, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        gemini.script("compaction", default=BLOCKS)
        async with wired(gemini, begin, tenant) as service:
            conversation_id, guilty = await self.talk(service)
            row = await service.background(conversation_id)
            conversation = await service.row(conversation_id)
            state = json.dumps(conversation.compressed_state) + (
                conversation.layout.anchors if conversation.layout else ""
            )
            async with service.begin(tenant) as uow:
                original = await uow.messages.at_seq(conversation_id, guilty)
                anchors = await uow.anchors.active(conversation_id)

        assert (row.status, row.reason) == ("applied", "withheld")
        assert len(row.attempts) <= 6
        assert set(reasons(row)) <= {"blocked", "withheld"}
        accepted = [number for number, attempt in enumerate(row.attempts) if attempt.outcome == "accepted"][-1]
        hidden = [seq for seq, words in shown(gemini, accepted).items() if words == WITHHELD]
        assert guilty in hidden
        assert len(hidden) <= 6
        assert row.to_seq is not None
        assert row.to_seq > guilty
        assert CANARY in original.content
        assert any(CANARY in anchor.content for anchor in anchors), "its anchor must be withheld with it"
        assert "harbour" in state
        assert "4,711.50" in state or "INV-2026-0417" in state, "code takes the exact values all the same"

    @pytest.mark.long
    @pytest.mark.case("12")
    async def test_several_that_no_search_finds_part_company_in_the_next_jobs(
        self, gemini: Gemini, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        gemini.script("compaction", default=BLOCKS)
        async with wired(gemini, begin, tenant) as service:
            conversation_id = await self.scattered(service)
            rows = [await service.background(conversation_id)]
            while rows[-1].state_version_after is None and len(rows) < 4:
                async with engine.begin() as connection:
                    await connection.execute(text("UPDATE conversations SET quiet_until = now()"))
                claimed = await service.container.compaction.claim_due(tenant, conversation_id)
                assert claimed is not None
                ended = await service.container.compaction.execute(claimed)
                assert ended is not None
                rows.append(ended)
        assert (rows[0].status, rows[0].reason) == ("rejected", "blocked"), "the scenario is a hard one"
        assert rows[-1].state_version_after is not None

    @pytest.mark.long
    @pytest.mark.control("12")
    async def test_control_without_smaller_chunks_they_never_do(
        self,
        gemini: Gemini,
        begin: UnitOfWorkFactory,
        tenant: UUID,
        engine: AsyncEngine,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("app.usecases.compaction.chunk.HALVING_REASONS", frozenset())
        gemini.script("compaction", default=BLOCKS)
        async with wired(gemini, begin, tenant) as service:
            conversation_id = await self.scattered(service)
            await service.background(conversation_id)
            for _ in range(3):
                async with engine.begin() as connection:
                    await connection.execute(text("UPDATE conversations SET quiet_until = now()"))
                claimed = await service.container.compaction.claim_due(tenant, conversation_id)
                assert claimed is not None
                await service.container.compaction.execute(claimed)
            assert (await service.row(conversation_id)).state_version == 0

    async def scattered(self, service: Service) -> UUID:
        """A conversation with two messages that the provider blocks, far apart, in the range of one job."""
        conversation_id = await service.conversation()
        for count in (3, 32):
            await service.say(conversation_id, count)
            drafts = [MessageDraft(role="user", content=f"The {CANARY} again, in so many words.")]
            await service.container.messages.append(service.tenant, conversation_id, drafts)
        await service.say(conversation_id, 38)
        return conversation_id

    @pytest.mark.control("12")
    async def test_control_without_the_search_nothing_is_applied(
        self, gemini: Gemini, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.usecases.compaction.job.Job.inputs_for", _without_search(monkeypatch))
        gemini.script("compaction", default=BLOCKS)
        async with wired(gemini, begin, tenant) as service:
            conversation_id, _ = await self.talk(service)
            row = await service.background(conversation_id)
        assert (row.status, reasons(row)) == ("rejected", ["blocked", "blocked"])

    @pytest.mark.case("12")
    async def test_inside_a_turn_it_is_not_looked_for(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = Service(begin, tenant, Proposal(text="", finish="blocked", model="fake"))
        row = await run_in_turn(service)
        assert (row.status, reasons(row)) == ("rejected", ["blocked", "blocked"])


def _without_search(monkeypatch: pytest.MonkeyPatch) -> Any:
    del monkeypatch
    whole = Job.inputs_for

    async def without(job: Job, chunk: Chunk, apply: Apply) -> AttemptInputs:
        return replace(await whole(job, chunk, apply), withholds_blocked=False)

    return without


class TestATurn:
    async def test_asks_at_most_three_times_and_goes_on(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        second = ScriptedSummarizer(NOT_JSON, profile=replace(FAKE_PROFILE, name="second"))
        service = Service(begin, tenant, NOT_JSON, fallbacks={"second": second})
        row = await run_in_turn(service, fallback_model="second")
        assert (row.status, reasons(row)) == ("rejected", ["unparseable"] * 3)
        assert len(second.requests) == 1

    @pytest.mark.case("22c")
    async def test_with_the_store_away_in_the_middle_goes_on_uncompressed(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Case 22c: the state store is unreachable during a compaction."""

        async def away(*_: object, **__: object) -> None:
            raise DependencyUnavailableError("the state store is away")

        monkeypatch.setattr("app.usecases.compaction.run.save_chunk", away)
        monkeypatch.setattr("app.usecases.compaction.job.SHORT_OUTAGE", 0)
        service = Service(begin, tenant)
        _, warnings, reply = await turn(service)
        assert warnings[0] == "compaction_unavailable"
        assert reply == "All right."
        assert len(service.chat_model.requests[0].messages) > 20, "the history as it is"

    @pytest.mark.daily(1)
    @pytest.mark.case("22c")
    @pytest.mark.parametrize(
        "broken", ["app.usecases.compaction.chunk.plan_compaction", "app.usecases.compaction.job.apply_candidate"]
    )
    async def test_with_counting_broken_goes_on_uncompressed(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, broken: str
    ) -> None:
        """Case 22c: counting tokens raises."""

        def raises(*_: object, **__: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(broken, raises)
        service = Service(begin, tenant)
        conversation_id, warnings, reply = await turn(service)
        row = await service.row(conversation_id)
        assert warnings[0] == "compaction_failed:internal_error"
        assert (reply, row.state_version) == ("All right.", 0)

    @pytest.mark.long
    async def test_control_with_all_in_order_it_is_compacted(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = Service(begin, tenant)
        conversation_id, warnings, reply = await turn(service)
        assert (warnings, reply) == ((), "All right.")
        assert (await service.row(conversation_id)).state_version == 1
        assert len(service.chat_model.requests[0].messages) < 40

    async def test_out_of_time_the_call_is_recorded_and_the_rest_is_queued(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        async def hangs(_: SummaryRequest) -> Proposal:
            await asyncio.Event().wait()
            raise AssertionError

        service = Service(begin, tenant, hangs)
        conversation_id, warnings, _ = await turn(service, sync_deadline=2)
        (row,) = await service.compactions(conversation_id)
        assert warnings[0] == "compaction_deadline"
        assert (row.status, reasons(row)) == ("queued", ["deadline"])
        assert row.attempts[0].metered


class TestAJob:
    async def test_out_of_time_the_call_is_recorded(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        async def hangs(_: SummaryRequest) -> Proposal:
            await asyncio.Event().wait()
            raise AssertionError

        service = Service(begin, tenant, hangs, settings=Settings(job_seconds=2))
        conversation_id = await service.conversation()
        await service.say(conversation_id, 60)
        row = await service.container.compaction.execute(service.queue.ids[0])
        assert row is not None
        assert (row.status, row.reason, reasons(row)) == ("failed", "deadline", ["deadline"])
        assert service.container.compaction._unrecorded == {}

    async def test_a_summarizer_that_cannot_be_built_costs_a_compaction_never_a_turn(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        service = Service(begin, tenant)
        conversation_id = await service.conversation()
        await service.say(conversation_id, 48)
        models: Any = service.container.parts.models
        del models._summarizers[None]
        _, warnings, reply = await turn(service, conversation_id)
        assert (warnings[0], reply) == ("compaction_failed:model_unavailable", "All right.")

    async def test_secrets_reach_no_summarizer(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = Service(begin, tenant)
        conversation_id = await service.conversation()
        key = "AKIA" + "IOSFODNN7EXAMPLE"
        drafts = [MessageDraft(role="user", content=f"My key is {key}, use it.")]
        await service.container.messages.append(tenant, conversation_id, drafts)
        await service.say(conversation_id, 19)
        asked = CompactInput(focus=f"the key {key}")
        await service.container.manual.compact(tenant, conversation_id, asked, timeout=PATIENCE)
        (request,) = service.summarizer.requests
        assert key not in repr(request)
        assert "[REDACTED:" in request.messages[0].content
        assert "[REDACTED:" in (request.focus or "")


class TestManually:
    async def test_a_search_in_vain_is_an_error_and_changes_nothing(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        service = Service(begin, tenant, Proposal(text="", finish="blocked", model="fake"))
        conversation_id = await service.conversation()
        await service.say(conversation_id, 20)
        before = await service.row(conversation_id)
        with pytest.raises(SummarizerFailedError) as caught:
            await service.container.manual.compact(tenant, conversation_id, CompactInput(), timeout=PATIENCE)
        assert caught.value.extra["reason"] == "blocked"
        assert len(service.summarizer.requests) == 6
        after = await service.row(conversation_id)
        assert (after.state_version, after.quiet) == (before.state_version, before.quiet)

    def test_limits_are_values(self) -> None:
        assert JobLimits().until(5).deadline == 5


async def turn(
    service: Service, conversation_id: UUID | None = None, **policy: Any
) -> tuple[UUID, tuple[str, ...], str]:
    """Do a turn that has to compact before its call, and return its conversation, its warnings and its reply."""
    if conversation_id is None:
        conversation_id = await service.conversation(**policy)
        await service.say(conversation_id, 48)
    chat = service.container.chat
    handle = await chat.start(service.tenant, conversation_id, ChatInput(content=WORDS.format(seq=99) * 27))
    result = await asyncio.wait_for(handle.result(), PATIENCE)
    return conversation_id, result.warnings, result.reply.content


async def run_in_turn(service: Service, **policy: Any) -> Compaction:
    """The row of a turn's compaction, after which the turn went on."""
    conversation_id, warnings, reply = await turn(service, **policy)
    assert reply == "All right."
    row = (await service.compactions(conversation_id))[0]
    assert f"compaction_failed:{row.reason}" in warnings
    assert row.ran_in == "turn"
    assert (await service.row(conversation_id)).state_version == 0
    return row

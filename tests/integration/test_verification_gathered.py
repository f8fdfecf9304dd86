"""States gather before they are verified: what starts it, what is judged together, and what happens in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.claims import Claim
from app.core.model.errors import ModelUnavailableError
from app.settings import Settings
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.verification import judging, pending
from app.usecases.verification import run as verification
from tests.fakes import VerificationEntry
from tests.integration.services import Service, versions
from tests.integration.test_verification import (
    BALLAST,
    CACHE,
    LIE,
    PROOF,
    RECKONED,
    TRUE,
    Held,
    against_the_lie,
    age,
    answered,
    append,
    candidate,
    compact,
    erase_at,
    honest,
    lied,
    newest,
    pause,
    proving,
    reckoned,
    rows,
    verdicts,
    work,
)
from tests.unit.test_gate_digests import TRIP

GATHERING = [("queued", "gathering", 0)]
LASTS = "The trip lasts some days"


@pytest.fixture(autouse=True)
def by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the compactions of these tests count as those that nobody asked for."""
    monkeypatch.setattr("app.usecases.compaction.saving.is_pressing", lambda *_, **__: False)


async def go_on(service: Service, conversation_id: UUID, told: str) -> None:
    """Do another compaction."""
    await append(service, conversation_id, TRIP + BALLAST)
    service.summarizer._script._entries = [told]
    assert (await compact(service, conversation_id)).status == "applied"


async def change_schema(service: Service, conversation_id: UUID, schema: str) -> None:
    policy = {**(await service.row(conversation_id)).policy, "state_schema": schema}
    await service.container.conversations.patch(service.tenant, conversation_id, {"policy": policy})


def against(lie: str, quote: str, seq: int) -> VerificationEntry:
    """A verifier that knows one lie."""

    def judge(claim: Claim) -> Mapping[str, Any]:
        found = {"verdict": "contradicted", "quote": quote, "seq": seq}
        return found if lie in (claim.text, claim.successor_text) else honest(claim)

    return verdicts(judge)


class TestWhatBeginsIt:
    async def test_two_compactions_are_judged_in_one_request_after_a_pause(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant, verdicts(against_the_lie))
        assert await work(service, conversation_id) == "not_wanted"
        assert await rows(engine, conversation_id) == GATHERING
        assert [one.verified for one in await versions(service, conversation_id)] == ["pending", "pending"]
        await pause(engine)
        assert await work(service, conversation_id) == "changed"
        (asked,) = service.summarizer.verification_requests
        assert {LIE, CACHE, "The trip goes to Porto"} <= {claim.text for claim in asked.claims}
        assert TRUE not in {claim.text for claim in asked.claims if claim.kind == "item"}, "it was replaced since"
        assert [one.verified for one in await versions(service, conversation_id)] == ["exact", "model", "model"]
        assert TRUE in (await newest(service, conversation_id)).state["logos"]

    async def test_it_gathers_while_the_conversation_goes_on_but_not_for_ever(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant, verdicts(honest))
        await age(engine, pending.PAUSE + timedelta(seconds=1))
        assert await work(service, conversation_id) == "not_now", "a message came a moment ago"
        assert await rows(engine, conversation_id) == GATHERING
        await age(engine, pending.PAUSE + timedelta(seconds=1))
        async with engine.begin() as connection:
            await connection.execute(text("UPDATE verifications SET created_at = created_at - interval '10 minutes'"))
        assert await work(service, conversation_id) == "verified"

    async def test_enough_that_was_folded_begins_it_at_once(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service, conversation_id = await lied(begin, tenant, verdicts(honest))
        first, second = (one.covered.tokens for one in await versions(service, conversation_id))
        assert first < second
        monkeypatch.setattr(pending, "ENOUGH_TOKENS", second + 1)
        await go_on(service, conversation_id, candidate([(LASTS, [17, 18], [])]))
        assert await rows(engine, conversation_id) == [("queued", None, 0)]
        assert await work(service, conversation_id) == "verified"
        assert len(service.summarizer.verification_requests) == 1

    async def test_an_operator_may_have_each_judged_at_once(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        settings = Settings(verify_wait_seconds=0)
        service, conversation_id = await lied(begin, tenant, verdicts(honest), settings=settings)
        assert await work(service, conversation_id) == "verified"

    async def test_many_small_ones_do_not_wait(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pending, "MAX_GATHERED_VERSIONS", 2)
        service, conversation_id = await lied(begin, tenant, verdicts(honest))
        assert await work(service, conversation_id) == "verified"


class TestInBetween:
    async def test_a_lie_of_an_earlier_version_goes_from_the_newest(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant, against(LIE, PROOF, 3))
        await go_on(service, conversation_id, candidate([(LASTS, [17, 18], [])]))
        told = {entry.text for entry in (await newest(service, conversation_id)).entries}
        assert TRUE not in told, "not even on record any more"
        await pause(engine)
        assert await work(service, conversation_id) == "changed"
        now = await newest(service, conversation_id)
        assert {TRUE, LASTS} <= set(now.state["logos"])
        assert LIE not in now.state["logos"]

    @pytest.mark.daily(1)
    @pytest.mark.parametrize(("schema", "field"), [("handoff", "progress"), ("research", "findings")])
    async def test_it_goes_also_after_a_change_of_the_schema(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, schema: str, field: str
    ) -> None:
        service, conversation_id = await lied(begin, tenant, against(LIE, PROOF, 3))
        await change_schema(service, conversation_id, schema)
        told = {field: [{"text": LASTS, "from": [17, 18], "replaces": []}]}
        await go_on(service, conversation_id, json.dumps(told))
        assert LIE in str((await newest(service, conversation_id)).state)
        await pause(engine)
        assert await work(service, conversation_id) == "changed"
        now = await newest(service, conversation_id)
        assert LIE not in str(now.state)
        assert {TRUE, LASTS} <= set(now.state[field])
        assert await rows(engine, conversation_id) == [("done", None, 1)]

    @pytest.mark.daily(1)
    @pytest.mark.parametrize(("schema", "field"), [("handoff", "progress"), ("summary", None)])
    async def test_what_code_cut_before_a_change_of_the_schema_comes_back_in_a_list_of_the_new_one(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, schema: str, field: str | None
    ) -> None:
        service, conversation_id = await reckoned(begin, tenant, verdicts(proving))
        await change_schema(service, conversation_id, schema)
        told = {field: [{"text": LASTS, "from": [17, 18], "replaces": []}]} if field else {"summary": f"{LASTS}."}
        await go_on(service, conversation_id, json.dumps(told))
        await pause(engine)
        assert await work(service, conversation_id) == ("changed" if field else "verified")
        now = await newest(service, conversation_id)
        assert (RECKONED in str(now.state)) == bool(field)

    async def test_it_goes_also_if_the_version_before_what_waits_was_forgotten(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pending, "MIN_KEPT_VERSIONS", 1)
        few = Settings(state_versions_kept=1)
        service, conversation_id = await lied(begin, tenant, against(LIE, PROOF, 3), settings=few)
        await pause(engine)
        assert await work(service, conversation_id) == "changed"
        (asked,) = service.summarizer.verification_requests
        assert {LIE, CACHE} <= {claim.text for claim in asked.claims}
        assert LIE not in str((await newest(service, conversation_id)).state)

    async def test_a_restored_version_is_judged_although_the_one_that_it_repeats_was_forgotten(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pending, "MIN_KEPT_VERSIONS", 2)
        few = Settings(state_versions_kept=2)
        service, conversation_id = await lied(begin, tenant, verdicts(honest), settings=few)
        await service.container.states.restore(tenant, conversation_id, 1)
        assert [one.version for one in await versions(service, conversation_id)] == [2, 3]
        await pause(engine)
        assert await work(service, conversation_id) == "verified"
        (asked,) = service.summarizer.verification_requests
        assert TRUE in {claim.text for claim in asked.claims}

    @pytest.mark.long
    async def test_control_without_what_is_on_record_between_nothing_comes_back(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(judging, "lost_entries", lambda *_: ())
        service, conversation_id = await lied(begin, tenant, against(LIE, PROOF, 3))
        await go_on(service, conversation_id, candidate([(LASTS, [17, 18], [])]))
        await pause(engine)
        assert await work(service, conversation_id) == "changed"
        assert TRUE not in (await newest(service, conversation_id)).state["logos"]

    @pytest.mark.daily(1)
    @pytest.mark.parametrize(
        "entry",
        ["I cannot judge that.", answered("", "blocked"), answered("", "length")],
        ids=["nonsense", "blocked", "cut off"],
    )
    async def test_what_cannot_be_used_leaves_all_of_them_to_code(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, entry: VerificationEntry
    ) -> None:
        service, conversation_id = await lied(begin, tenant, entry)
        before = await newest(service, conversation_id)
        await pause(engine)
        assert await work(service, conversation_id) == "failed"
        now = await newest(service, conversation_id)
        assert (now.version, now.state) == (before.version, before.state)
        assert [one.verified for one in await versions(service, conversation_id)] == ["exact", "exact"]
        await go_on(service, conversation_id, candidate([(LASTS, [17, 18], [])]))
        await pause(engine)
        service.summarizer.verifies(verdicts(honest))
        assert await work(service, conversation_id) == "verified"
        told = {claim.text for claim in service.summarizer.verification_requests[-1].claims}
        assert LASTS in told
        assert CACHE not in told

    async def test_who_hangs_is_asked_again_about_all_and_not_before_its_time(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service, conversation_id = await lied(begin, tenant, ModelUnavailableError("timeout"), verdicts(honest))
        await pause(engine)
        assert await work(service, conversation_id) == "failed"
        monkeypatch.setattr(pending, "ENOUGH_TOKENS", 1)
        await go_on(service, conversation_id, candidate([(LASTS, [17, 18], [])]))
        assert await work(service, conversation_id) == "not_wanted", "what is put off is not hastened"
        assert await rows(engine, conversation_id) == [("queued", "timeout", 1)]
        await age(engine, timedelta(minutes=11))
        assert await work(service, conversation_id) == "verified"
        assert {CACHE, LASTS} <= {claim.text for claim in service.summarizer.verification_requests[-1].claims}
        assert [one.verified for one in await versions(service, conversation_id)] == ["exact", "exact", "model"]

    async def test_what_is_erased_while_it_waits_is_never_shown(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant, verdicts(honest))
        await erase_at(service, tenant, conversation_id, 3)
        service.summarizer._script._entries = [candidate([], "The garden, the trip and the build were discussed.")]
        for row in await service.compactions(conversation_id):
            if row.status == "queued":
                await service.container.compaction.execute(row.id)
        await pause(engine)
        assert await work(service, conversation_id) == "verified"
        (asked,) = service.summarizer.verification_requests
        shown = [*asked.messages, *asked.older]
        assert shown
        assert 3 not in {one.seq for one in shown}
        assert PROOF not in str(asked)

    async def test_what_erases_while_it_is_judged_has_it_judged_again(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        held = Held()
        service, conversation_id = await lied(begin, tenant, held, verdicts(honest))
        await pause(engine)
        working = asyncio.create_task(work(service, conversation_id))
        await held.reached.wait()
        await erase_at(service, tenant, conversation_id, 3)
        held.go_on.set()
        assert await working == "stale"
        assert "verification" not in {one.made_by for one in await versions(service, conversation_id)}
        assert await rows(engine, conversation_id) == [("queued", None, 0)]

    async def test_more_than_a_request_may_read_is_judged_one_after_the_other(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(verification, "chunk_tokens", lambda _: 10)
        service, conversation_id = await lied(begin, tenant, verdicts(honest))
        await pause(engine)
        assert await work(service, conversation_id) == "verified"
        assert [one.verified for one in await versions(service, conversation_id)] == ["model", "pending"]
        assert await rows(engine, conversation_id) == [("done", None, 1), *GATHERING]
        await pause(engine)
        assert await work(service, conversation_id) == "verified"
        assert [one.verified for one in await versions(service, conversation_id)] == ["model", "model"]
        first, second = service.summarizer.verification_requests
        assert CACHE not in {claim.text for claim in first.claims}
        assert CACHE in {claim.text for claim in second.claims}

"""Clients see each verification: in the list, and in one event when it has ended, however it ended."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncEngine

from app.client.events import VerificationEvent, event_of
from app.core.model.errors import ModelUnavailableError
from app.core.model.records import Event
from app.http.event_schemas import ConversationEvent
from app.infrastructure.event_bus import event_json
from app.storage.unit_of_work import UnitOfWorkFactory
from tests.fakes import VerificationEntry, _Script
from tests.integration.rows import make_tenant
from tests.integration.services import PollingBus, Service
from tests.integration.test_repairs import OPEN, got, http_of
from tests.integration.test_verification import (
    BALLAST,
    LIE,
    against_the_lie,
    append,
    candidate,
    compact,
    honest,
    lied,
    pause,
    verdicts,
    work,
)
from tests.unit.test_gate_digests import TRIP

Json = dict[str, Any]
NAMES = {
    *("id", "state_version", "status", "reason", "model", "claims", "changed"),
    *("usage", "cost_usd", "requested_at", "finished_at"),
}


@pytest.fixture
async def tenant(begin: UnitOfWorkFactory) -> UUID:
    """The tenant of a service without keys."""
    return await make_tenant(begin, "default")


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """What is published from now on."""
    found: list[Event] = []

    async def publish(_: PollingBus, events: Sequence[Event]) -> None:
        found.extend(events)

    monkeypatch.setattr(PollingBus, "publish", publish)
    return found


async def listed(service: Service, conversation_id: UUID, query: str = "") -> list[Json]:
    async with http_of(service) as http:
        body = await got(http, f"/conversations/{conversation_id}/verifications{query}")
    found: list[Json] = body["data"]
    assert all(one.keys() == NAMES for one in found)
    return found


async def told(service: Service, conversation_id: UUID) -> list[Event]:
    async with service.begin(service.tenant) as uow:
        events = await uow.events.after(conversation_id, 0, limit=10_000)
    return [event for event in events if event.type == "verification.finished"]


async def agree(service: Service, conversation_id: UUID) -> Json:
    """The only verification, after what its event says of it was compared with it."""
    (shown,), (event,) = await listed(service, conversation_id), await told(service, conversation_id)
    names = ("state_version", "status", "reason", "claims", "changed")
    assert event.data == {"verification_id": shown["id"], **{name: shown[name] for name in names}}
    assert shown["finished_at"] is not None
    return shown


async def test_what_waits_is_listed_and_no_event_tells_of_it(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service, conversation_id = await lied(begin, tenant, verdicts(honest), settings=OPEN)
    (shown,) = await listed(service, conversation_id)
    assert (shown["status"], shown["model"], shown["claims"], shown["changed"]) == ("queued", None, None, False)
    assert (shown["usage"]["input_tokens"], shown["cost_usd"], shown["finished_at"]) == (0, None, None)
    assert await told(service, conversation_id) == []


@pytest.mark.daily(1)
@pytest.mark.parametrize(("judge", "changed"), [(honest, False), (against_the_lie, True)], ids=["honest", "lie"])
async def test_what_is_done_has_its_numbers(
    begin: UnitOfWorkFactory, tenant: UUID, judge: Any, *, changed: bool
) -> None:
    service, conversation_id = await lied(begin, tenant, verdicts(judge), settings=OPEN)
    await work(service, conversation_id)
    shown = await agree(service, conversation_id)
    async with http_of(service) as http:
        states = (await got(http, f"/conversations/{conversation_id}/states"))["data"]
    (judged,) = (one for one in states if one["version"] == shown["state_version"])
    assert (shown["status"], shown["reason"], shown["changed"]) == ("done", None, changed)
    assert shown["claims"] == judged["verification"]["claims"] > 0
    assert (shown["model"], shown["usage"]) == ("fake", judged["verification"]["usage"])
    assert shown["usage"]["input_tokens"] > 0
    assert (states[0]["version"] > shown["state_version"]) == changed


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("entry", "model"),
    [("I cannot judge that.", "fake"), (ModelUnavailableError("anchors_over_budget"), None)],
    ids=["nonsense", "no answer"],
)
async def test_what_failed_says_why(
    begin: UnitOfWorkFactory, tenant: UUID, entry: VerificationEntry, model: str | None
) -> None:
    service, conversation_id = await lied(begin, tenant, entry, settings=OPEN)
    assert await work(service, conversation_id) == "failed"
    shown = await agree(service, conversation_id)
    assert (shown["status"], shown["model"], shown["claims"], shown["changed"]) == ("failed", model, None, False)
    assert shown["reason"]


async def test_what_became_stale_is_told_at_once(
    begin: UnitOfWorkFactory, tenant: UUID, published: list[Event]
) -> None:
    service, conversation_id = await lied(begin, tenant, verdicts(honest), settings=OPEN)
    async with begin(tenant) as uow:
        await uow.states.mark_verified(conversation_id, 1)
        await uow.commit()
    await service.container.states.restore(tenant, conversation_id, 1)
    published.clear()
    assert await work(service, conversation_id) == "stale"
    shown = await agree(service, conversation_id)
    assert (shown["status"], shown["reason"], shown["model"]) == ("stale", "superseded", None)
    assert published == await told(service, conversation_id)


async def test_what_nobody_wants_any_more_is_skipped(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service, conversation_id = await lied(begin, tenant, verdicts(honest), settings=OPEN)
    shell = service.container.verification._shell
    service.container.verification._shell = replace(shell, verifies=False)
    assert await work(service, conversation_id) == "skipped"
    shown = await agree(service, conversation_id)
    assert (shown["status"], shown["reason"], shown["claims"]) == ("skipped", "off", None)


async def test_an_event_is_published_and_read_by_schema_and_client(
    begin: UnitOfWorkFactory, tenant: UUID, published: list[Event]
) -> None:
    service, conversation_id = await lied(begin, tenant, verdicts(against_the_lie), settings=OPEN)
    await work(service, conversation_id)
    (event,) = [one for one in published if one.type == "verification.finished"]
    body = json.dumps(event_json(event))
    assert TypeAdapter[Any](ConversationEvent).validate_json(body).type == "verification.finished"
    read = event_of(body)
    assert isinstance(read, VerificationEvent)
    assert read.data["changed"] is True


@pytest.mark.daily(1)
@pytest.mark.parametrize("lies", [(True, False), (False, True)], ids=["the first", "the second"])
async def test_the_newest_comes_first_and_each_has_what_came_of_it(
    begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, lies: tuple[bool, bool]
) -> None:
    script = [verdicts(against_the_lie if is_found else honest) for is_found in lies]
    service, conversation_id = await lied(begin, tenant, *script, settings=OPEN)
    await work(service, conversation_id)
    service.summarizer._script = _Script([candidate([(f"{LIE} in January", [3, 21], [])])])
    await append(service, conversation_id, TRIP + BALLAST)
    assert (await compact(service, conversation_id)).status == "applied"
    await pause(engine)
    await work(service, conversation_id)
    newest, oldest = await listed(service, conversation_id)
    assert [(one["status"], one["changed"]) for one in (oldest, newest)] == [("done", changed) for changed in lies]
    assert newest["state_version"] > oldest["state_version"]
    assert await listed(service, conversation_id, "?limit=1") == [newest]
    assert await listed(service, conversation_id, "?order=asc&limit=1") == [oldest]


async def test_no_list_of_a_conversation_that_is_not_there(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant, settings=OPEN)
    async with http_of(service) as http:
        response = await http.get(f"/conversations/{uuid4()}/verifications")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")

"""A compaction's continuity is stored with it, shown and counted; below the policy's floor it is made once more."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final
from uuid import UUID

import httpx
import pytest

from app.core.model.conversation import Usage
from app.core.model.model_io import Proposal, SummaryRequest
from app.main import create_app
from app.settings import Settings
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.compaction.continuity import BELOW_FLOOR
from app.usecases.compaction.manual import CompactInput
from app.usecases.history.drafts import MessageDraft
from tests.integration.rows import make_tenant
from tests.integration.services import Service
from tests.integration.test_repairs import http_of, run, url_of

Summarizing = Callable[[SummaryRequest], Awaitable[Proposal]]
OPEN: Final = Settings(_env_file=None, embedded=True)
TOLD: Final = (
    "The pump of hall 3 runs at 4,350 rpm since the repair.",
    "The valve of the boiler was set to 17.5 bar by Oleg.",
    "The spare key of the cellar hangs beside panel QX-5512.",
)
"""Statements of an assistant, whose values code never brings back from a message."""


def forgetting(*, learns: bool = True) -> Summarizing:
    """A model that keeps nothing of the span; asked again, it tells the sentences that are named as missing."""

    async def propose(request: SummaryRequest) -> Proposal:
        named = request.missing if learns else ()
        items = [{"text": sentence, "from": [seq], "replaces": []} for seq, sentence in named]
        first, last = request.messages[0].seq, request.messages[-1].seq
        told = [{"text": "There was talk about a plant.", "from": [first, last], "replaces": []}, *items]
        answer = {"logos": told, "pathos": [], "abstract": [], "conversation_summary": "A talk about a plant."}
        usage = Usage(input_tokens=100, output_tokens=20)
        return Proposal(text=json.dumps(answer | {"dropped": []}), finish="stop", model="fake", usage=usage)

    return propose


@pytest.fixture
async def home(begin: UnitOfWorkFactory) -> UUID:
    """The tenant of a service without keys."""
    return await make_tenant(begin, "default")


async def told(service: Service, *, floor: float | None, **policy: Any) -> UUID:
    given = {"continuity_floor": floor} | policy
    conversation_id = await service.conversation(max_tokens=-1, anchor_share=0, protect=(), levels=(), **given)
    filler = "and the wind went through the yard all the morning while nobody said a word about it"
    drafts = [MessageDraft(role="user", content="Tell me about the plant.")]
    drafts += [MessageDraft(role="assistant", content=f"{text} {filler.capitalize()}, {filler}.") for text in TOLD]
    drafts += [MessageDraft(role="user", content=f"Go on, {filler}.") for _ in range(4)]
    await service.container.messages.append(service.tenant, conversation_id, drafts)
    return conversation_id


async def compacted(service: Service, conversation_id: UUID, *, wait: bool) -> dict[str, Any]:
    asked = CompactInput(keep_tail_messages=1, wait=wait)
    await service.container.manual.compact(service.tenant, conversation_id, asked, timeout=30)
    await service.container.outbox.drain()
    if not wait:
        await service.container.compaction.execute(service.queue.ids[-1])
    async with http_of(service) as http:
        (row,) = (await http.get(f"/conversations/{conversation_id}/compactions")).json()["data"]
    assert row["status"] == "applied", row
    return dict(row)


async def state(service: Service, conversation_id: UUID) -> str:
    return json.dumps((await service.row(conversation_id)).compressed_state)


@pytest.mark.long
async def test_below_the_floor_a_record_is_made_once_more_with_what_was_lost_named(
    begin: UnitOfWorkFactory, home: UUID
) -> None:
    service = Service(begin, home, forgetting(), settings=OPEN)
    conversation_id = await told(service, floor=0.5)
    row = await compacted(service, conversation_id, wait=False)
    assert [(one["outcome"], one["reason"]) for one in row["attempts"]] == [
        ("accepted", BELOW_FLOOR),
        ("accepted", None),
    ]
    first, second = service.summarizer.requests
    assert first.missing == ()
    assert {text for _, text in second.missing} >= set(TOLD)
    assert "4,350 rpm" in await state(service, conversation_id)
    assert row["continuity"]["recall"] > 0.5
    assert row["usage"]["input_tokens"] == 200, "both are paid for"


async def test_it_is_made_once_more_at_most_once(begin: UnitOfWorkFactory, home: UUID) -> None:
    service = Service(begin, home, forgetting(learns=False), settings=OPEN)
    conversation_id = await told(service, floor=0.9)
    row = await compacted(service, conversation_id, wait=False)
    assert len(service.summarizer.requests) == 2
    assert row["continuity"]["recall"] < 0.9, "the floor refuses nothing"


@pytest.mark.daily(1)
@pytest.mark.parametrize(("floor", "wait"), [(None, False), (0.9, True), (0.0, False)])
async def test_control_without_a_floor_or_while_somebody_waits_it_is_not(
    begin: UnitOfWorkFactory, home: UUID, floor: float | None, *, wait: bool
) -> None:
    service = Service(begin, home, forgetting(), settings=OPEN)
    conversation_id = await told(service, floor=floor)
    row = await compacted(service, conversation_id, wait=wait)
    assert len(service.summarizer.requests) == 1
    assert "4,350 rpm" not in await state(service, conversation_id)
    score = row["continuity"]
    assert score["before"] >= 3
    assert score["recall"] == round(score["after"] / score["before"], 4) < 0.5
    assert sum(one["before"] for one in score["kinds"].values()) == score["before"]


@pytest.mark.long
async def test_scores_are_listed_counted_and_shown(begin: UnitOfWorkFactory, home: UUID) -> None:
    service = Service(begin, home, forgetting(), settings=OPEN)
    conversation_id = await told(service, floor=0.5)
    row = await compacted(service, conversation_id, wait=False)
    transport = httpx.ASGITransport(create_app(container=service.container))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        (listed,) = (await http.get(f"/conversations/{conversation_id}/continuity")).json()["data"]
        stats = (await http.get(f"/conversations/{conversation_id}/stats")).json()
        metrics = (await http.get("/metrics")).text
    assert listed["compaction_id"] == row["id"]
    assert listed["continuity"] == row["continuity"]
    shown = stats["compactions"]["continuity"]
    assert shown["last"] == shown["recall"] == row["continuity"]["recall"]
    assert shown["scored"] == 1
    assert stats["labels"]["compactions.continuity.last"]
    assert 'throughline_continuity_probes_total{answered="before",kind="value"}' in metrics
    async with url_of(service) as url:
        printed = await run(url, "continuity", str(conversation_id))
        as_json = await run(url, "continuity", str(conversation_id), "--json")
    assert f"{row['continuity']['after']} / {row['continuity']['before']}" in printed.output
    assert json.loads(as_json.stdout)[0]["continuity"]["recall"] == row["continuity"]["recall"]

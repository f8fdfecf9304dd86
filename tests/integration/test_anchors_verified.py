"""Two models judge anchors: one ranks them and makes claims, the other agrees or not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from app.core.anchors.selection import serve
from app.core.model.anchors import Anchor, AnchorClaim, Ranking
from app.core.model.claims import Claim
from app.core.model.model_io import Proposal, VerificationRequest
from app.core.model.records import Page
from app.storage.unit_of_work import UnitOfWorkFactory
from tests.fakes import ScriptedSummarizer, VerificationEntry
from tests.integration.services import Service
from tests.integration.test_verification import append, candidate, compact, newest, verdicts, work
from tests.unit.test_gate_digests import TRIP

POSTGRES = "Let's use Postgres for the orders database."
PROMISE = "I'll migrate the billing tables tonight."
QUESTION = "When do we ship the parser?"
BUDGET = "My budget for the kitchen is 12,400 euros."
TALK = (POSTGRES, PROMISE, f"Good. {QUESTION}", "Let us see what the others think of it.", BUDGET, "Noted, and thanks.")
SMALL_TALK = ("It rained, and the trees looked lovely. " * 8, "That sounds lovely indeed. " * 8)
"""Talk that a compaction can fold, so that there is room for all anchors."""
DROPPED = (
    {"entry": "P2-1", "reason": "resolved", "by_seq": 4},
    {"entry": "P3-1", "reason": "no_longer_relevant", "by_seq": 3},
    {"entry": "P5-1", "reason": "no_longer_relevant", "by_seq": 5},
)


async def made(begin: UnitOfWorkFactory, tenant: UUID, *script: VerificationEntry) -> tuple[Service, UUID]:
    """A conversation whose compaction confirmed one anchor and gave up three."""
    service = Service(begin, tenant)
    told = json.loads(candidate([("The orders are stored in a database", [1], [])]))
    told |= {"anchors": [{"type": "decision", "quote": "P1-1", "seq": 1}], "dropped": list(DROPPED)}
    service.summarizer = ScriptedSummarizer(json.dumps(told), verifications=script)
    models = service.container.parts.models
    models._summarizers[None] = service.summarizer  # type: ignore[attr-defined]
    conversation_id = await service.conversation(protect=[], recall="off")
    await append(service, conversation_id, TALK + SMALL_TALK + TRIP)
    assert (await compact(service, conversation_id)).status == "applied"
    return service, conversation_id


async def anchors(service: Service, conversation_id: UUID) -> dict[str, Anchor]:
    page = Page(limit=100, order="asc")
    found, _ = await service.container.anchors.page(service.tenant, conversation_id, page)
    return {one.content: one for one in found if one.seq <= len(TALK)}


async def served(service: Service, conversation_id: UUID) -> str:
    layout = (await service.row(conversation_id)).layout
    assert layout is not None
    return layout.anchors


def agreeing(_: Claim) -> Mapping[str, Any]:
    return {"verdict": "supported"}


async def test_a_models_word_alone_ranks_and_changes_no_status(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service, conversation_id = await made(begin, tenant)
    found = await anchors(service, conversation_id)
    assert {one.status for one in found.values()} == {"active"}
    assert {name for name, one in found.items() if one.passed_over} == {QUESTION, BUDGET}
    assert {name: (one.claimed_status, one.claimed_seq) for name, one in found.items() if one.claimed_status} == {
        PROMISE: ("resolved", 4),
        QUESTION: ("withdrawn", None),
    }
    block = await served(service, conversation_id)
    assert all(name in block for name in found)
    repairs = (await newest(service, conversation_id)).repairs
    assert [(one.reason, one.before, one.after) for one in repairs if one.field == "anchors"] == [
        ("set_aside", name, name) for name in (PROMISE, QUESTION, BUDGET)
    ]


async def test_what_is_said_to_be_over_is_first_to_go_behind_the_marker(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """The database chooses the same anchors as code would choose from all of them."""
    service, conversation_id = await made(begin, tenant)
    found = list((await anchors(service, conversation_id)).values())
    room = sum(one.token_count for one in found)
    chosen = serve(found, through_seq=len(TALK), held_seqs=(), token_limit=room)
    assert PROMISE not in [one.content for one in chosen.shown]
    async with begin(tenant) as uow:
        shown, _ = await uow.anchors.showable(
            conversation_id, covered_seq=len(TALK), held=[], max_tokens=room, limit=100
        )
    read = serve(shown, through_seq=len(TALK), held_seqs=(), token_limit=room).shown
    assert [one.content for one in read] == [one.content for one in chosen.shown]


async def test_what_the_verifier_supports_takes_effect_at_once(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service, conversation_id = await made(begin, tenant, verdicts(agreeing))
    before, version = await service.row(conversation_id), await newest(service, conversation_id)
    assert await work(service, conversation_id) == "verified"
    statuses = {name: one.status for name, one in (await anchors(service, conversation_id)).items()}
    assert statuses == {POSTGRES: "active", PROMISE: "resolved", QUESTION: "withdrawn", BUDGET: "active"}
    block, after = await served(service, conversation_id), await service.row(conversation_id)
    assert (PROMISE in block, QUESTION in block, BUDGET in block) == (False, False, True)
    assert after.layout_version == before.layout_version + 1
    assert (await newest(service, conversation_id)).version == version.version, "a status belongs to no version"
    claims = [claim for claim in service.summarizer.verification_requests[0].claims if claim.kind == "anchor"]
    assert [claim.claimed_status for claim in claims] == ["resolved", "withdrawn"]


@pytest.mark.daily(1)
@pytest.mark.parametrize("verdict", ["not_stated", None])
async def test_without_the_verifiers_word_nothing_goes(
    begin: UnitOfWorkFactory, tenant: UUID, verdict: str | None
) -> None:
    script = verdicts(lambda claim: {"verdict": verdict} if claim.kind == "anchor" else agreeing(claim))
    service, conversation_id = await made(begin, tenant, script if verdict else "no verdict at all")
    before = await service.row(conversation_id)
    await work(service, conversation_id)
    found = await anchors(service, conversation_id)
    assert {one.status for one in found.values()} == {"active"}
    assert (await service.row(conversation_id)).layout == before.layout
    is_forgotten = verdict == "not_stated"
    assert any(one.claimed_status for one in found.values()) is not is_forgotten, "what nobody judged is asked again"


async def test_what_a_user_sets_meanwhile_stays(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service, conversation_id = await made(begin, tenant, verdicts(agreeing))
    question = (await anchors(service, conversation_id))[QUESTION]
    kept = await service.container.anchors.set_status(tenant, conversation_id, question.id, "active")
    assert (kept.proposed_by, kept.claimed_status, kept.passed_over) == ("user", None, False)
    await work(service, conversation_id)
    found = await anchors(service, conversation_id)
    assert (found[QUESTION].status, found[PROMISE].status) == ("active", "resolved")


async def test_what_is_claimed_meanwhile_waits_for_a_verdict_of_its_own(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """A compaction that ends while the verifier judges may name another message for the same anchor."""
    judging = verdicts(lambda claim: {"verdict": "not_stated"} if claim.kind == "anchor" else agreeing(claim))

    async def claimed_meanwhile(request: VerificationRequest) -> Proposal:
        async with begin(tenant) as uow:
            other = AnchorClaim(anchor_id=promise.id, status="resolved", seq=6)
            await uow.anchors.store_ranking(conversation_id, Ranking(claims=(other,)))
            await uow.commit()
        answer: Proposal = await judging(request)  # type: ignore[operator]  # it is a function
        return answer

    service, conversation_id = await made(begin, tenant, claimed_meanwhile)
    promise = (await anchors(service, conversation_id))[PROMISE]
    await work(service, conversation_id)
    found = await anchors(service, conversation_id)
    assert (found[PROMISE].status, found[PROMISE].claimed_status, found[PROMISE].claimed_seq) == (
        "active",
        "resolved",
        6,
    )
    assert found[QUESTION].claimed_status is None, "control: this claim is as it was judged"


async def test_erasing_the_message_behind_a_claim_forgets_it(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service, conversation_id = await made(begin, tenant)
    async with begin(tenant) as uow:
        await uow.anchors.delete_of(conversation_id, [4])
        await uow.commit()
    assert (await anchors(service, conversation_id))[PROMISE].claimed_status is None

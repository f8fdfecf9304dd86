"""A model judges what a model wrote: what this changes, what it never changes, and whom it never disturbs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.claims import Claim
from app.core.model.conversation import Usage
from app.core.model.errors import InvalidInputError, ModelUnavailableError
from app.core.model.model_io import FinishReason, Proposal, SummaryRequest, VerificationRequest
from app.core.model.records import Compaction
from app.core.model.state import StateVersion
from app.core.model.timings import DEFAULT_TIMINGS, VERIFIER_CALLS, Timings
from app.core.validation.verifier_prompts import VERIFY_VERSION
from app.infrastructure.clock import SystemClock
from app.settings import Settings
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.starting import ChatInput
from app.usecases.compaction.manual import CompactInput
from app.usecases.history.drafts import MessageDraft
from app.usecases.ports import ChatModel
from app.usecases.shared.background_calls import MAX_TRIES
from app.usecases.verification import judging
from app.usecases.verification import run as verification
from tests.fakes import FAKE_PROFILE, ScriptedSummarizer, VerificationEntry
from tests.integration.services import Service, together, versions
from tests.unit.test_gate_digests import SERVER, TRIP

ALL = CompactInput(keep_tail_messages=0)
PATIENCE = 30.0
TREE = (
    "Now about the garden: the old apple tree must be cut, and Mrs Keller wants the wood for her stove.",
    "Then have the firm cut it in January when the ground is frozen, and let Mrs Keller take the wood that day.",
    "Agreed: Mrs Keller gets the wood of the apple tree, and Mr Brandt gets nothing of it.",
    "Noted: the wood of the apple tree goes to Mrs Keller; Mr Brandt was only asked for his saw.",
)
BALLAST = tuple(
    f"On day {day} the harbour was quiet, the crates were counted twice, and the wind came from the west all morning. "
    "Nobody had anything to add to what was said before, so that the list was closed early and everybody went home. "
    for day in ("one", "two", "three", "four")
)
MORE = SERVER + BALLAST
CACHE = "The build cache is in /var/cache/build"
TRUE = "The wood of the apple tree goes to Mrs Keller"
LIE = "The wood of the apple tree goes to Mr Brandt"
PROOF = "Mr Brandt gets nothing of it"
NARRATIVE = "The garden and the apple tree were discussed."

Judge = Callable[[Claim], Mapping[str, Any]]


def candidate(
    items: Sequence[tuple[str, list[int], list[str]]], narrative: str = NARRATIVE, dropped: Sequence[str] = ()
) -> str:
    told = [{"text": words, "from": seqs, "replaces": replaces} for words, seqs, replaces in items]
    empty: dict[str, list[Any]] = {"pathos": [], "abstract": []}
    gone = [{"entry": name, "reason": "resolved", "by_seq": 9} for name in dropped]
    return json.dumps({"logos": told, "conversation_summary": narrative, "dropped": gone} | empty)


def answered(told: str, finish: FinishReason = "stop") -> Proposal:
    return Proposal(text=told, finish=finish, model="fake", usage=Usage(input_tokens=300, output_tokens=30))


def verdicts(judge: Judge, finish: FinishReason = "stop") -> VerificationEntry:
    """A verifier whose verdict on each claim is the function's."""

    async def verify(request: VerificationRequest) -> Proposal:
        found = [{"n": claim.n, "seq": 0, "quote": "", **judge(claim)} for claim in request.claims]
        return answered(json.dumps({"verdicts": found}), finish)

    return verify


def honest(_: Claim) -> Mapping[str, Any]:
    return {"verdict": "supported"}


def against_the_lie(claim: Claim) -> Mapping[str, Any]:
    if LIE in claim.text or (claim.successor_text and LIE in claim.successor_text):
        return {"verdict": "contradicted", "seq": 3, "quote": PROOF}
    return honest(claim)


def not_stating_the_lie(claim: Claim) -> Mapping[str, Any]:
    return {"verdict": "not_stated"} if LIE in claim.text else honest(claim)


async def append(service: Service, conversation_id: UUID, contents: Sequence[str]) -> None:
    drafts = [
        MessageDraft(role="assistant" if place % 2 else "user", content=said) for place, said in enumerate(contents)
    ]
    await service.container.messages.append(service.tenant, conversation_id, drafts)


async def compact(service: Service, conversation_id: UUID) -> Compaction:
    view = await service.container.manual.compact(service.tenant, conversation_id, ALL, timeout=PATIENCE)
    await service.container.outbox.drain()
    return view.compaction


async def lied(
    begin: UnitOfWorkFactory, tenant: UUID, *script: VerificationEntry, settings: Settings | None = None, **policy: Any
) -> tuple[Service, UUID]:
    """A conversation whose second compaction replaced what the first one had told by a lie."""
    service = Service(begin, tenant, settings=settings)
    service.summarizer = models_of(service, script)
    conversation_id = await service.conversation(**{"anchor_share": 0.0, "protect": [], "recall": "off"} | policy)
    await append(service, conversation_id, TREE + TRIP)
    assert (await compact(service, conversation_id)).status == "applied"
    (first,) = await versions(service, conversation_id)
    assert TRUE in str(first.state)
    await append(service, conversation_id, MORE)
    assert (await compact(service, conversation_id)).status == "applied"
    assert LIE in str((await newest(service, conversation_id)).state)
    return service, conversation_id


def models_of(service: Service, script: Sequence[VerificationEntry]) -> ScriptedSummarizer:
    async def second(request: SummaryRequest) -> Proposal:
        (old,) = (entry.id for entry in request.previous if entry.text == TRUE)
        return answered(candidate([(LIE, [], [old]), (CACHE, [9, 10], [])]))

    made = ScriptedSummarizer(
        candidate([(TRUE, [3, 4], []), ("The trip goes to Porto", [5, 6], [])]), second, verifications=script
    )
    models = service.container.parts.models
    models._summarizers[None] = made  # type: ignore[attr-defined]
    return made


async def two_sentences(begin: UnitOfWorkFactory, tenant: UUID, *script: VerificationEntry) -> tuple[Service, UUID]:
    """A conversation with one entry, which has a lie and then a true sentence."""
    service = Service(begin, tenant)
    made = ScriptedSummarizer(candidate([(f"{LIE}. {CACHE}.", [3, 10], [])]), verifications=script)
    service.summarizer = made
    service.container.parts.models._summarizers[None] = made  # type: ignore[attr-defined]
    conversation_id = await service.conversation(anchor_share=0.0, protect=[], recall="off")
    await append(service, conversation_id, TREE + TRIP + MORE)
    assert (await compact(service, conversation_id)).status == "applied"
    return service, conversation_id


async def newest(service: Service, conversation_id: UUID) -> StateVersion:
    return (await versions(service, conversation_id))[-1]


async def rows(engine: AsyncEngine, conversation_id: UUID) -> list[tuple[str, str | None, int]]:
    """The (status, reason, tries) of every verification."""
    statement = text("SELECT status, reason, tries FROM verifications WHERE conversation_id = :id ORDER BY id")
    async with engine.connect() as connection:
        found = await connection.execute(statement, {"id": conversation_id})
        return [(status, reason, tries) for status, reason, tries in found]


async def age(engine: AsyncEngine, span: timedelta) -> None:
    async with engine.begin() as connection:
        for column in ("after", "asked_at"):
            older = text(f"UPDATE verifications SET {column} = {column} - make_interval(secs => :seconds)")  # noqa: S608
            await connection.execute(older, {"seconds": span.total_seconds()})


async def pause(engine: AsyncEngine) -> None:
    """Make rows older, as if nobody had said anything for a while."""
    older = " = {} - make_interval(secs => 61)"
    async with engine.begin() as connection:
        for table, column in (("verifications", "after"), ("conversations", "last_message_at")):
            await connection.execute(text(f"UPDATE {table} SET {column}{older.format(column)}"))  # noqa: S608


async def erase_at(service: Service, tenant: UUID, conversation_id: UUID, seq: int) -> None:
    async with service.begin(tenant) as uow:
        message = await uow.messages.at_seq(conversation_id, seq)
    await service.container.erasure.erase(tenant, conversation_id, message.id)


async def work(service: Service, conversation_id: UUID) -> str:
    return await service.container.verification.work(conversation_id)


def beating_every(service: Service, monkeypatch: pytest.MonkeyPatch, *, seconds: float) -> None:
    shell = service.container.verification._shell
    timings = replace(shell.timings, heartbeat_seconds=seconds)
    monkeypatch.setattr(service.container.verification, "_shell", replace(shell, timings=timings))


async def given_up(
    begin: UnitOfWorkFactory, tenant: UUID, event_type: str, *script: VerificationEntry
) -> tuple[Service, UUID]:
    """A conversation whose second compaction dropped what the first had told of a message of this event type."""

    async def second(request: SummaryRequest) -> Proposal:
        (old,) = (entry.id for entry in request.previous if entry.text == TRUE)
        return answered(candidate([(CACHE, [9, 10], [])], dropped=[old]))

    service = Service(begin, tenant)
    made = ScriptedSummarizer(candidate([(TRUE, [3, 4], [])]), second, verifications=script)
    service.summarizer = made
    service.container.parts.models._summarizers[None] = made  # type: ignore[attr-defined]
    conversation_id = await service.conversation(anchor_share=0.0, protect=[], recall="off")
    said = TREE[2]
    await append(service, conversation_id, TREE[:2])
    await service.container.messages.append(
        service.tenant, conversation_id, [MessageDraft(role="user", content=said, event_type=event_type)]
    )
    for contents in ((*TREE[3:], *TRIP), MORE):
        await append(service, conversation_id, contents)
        assert (await compact(service, conversation_id)).status == "applied"
    return service, conversation_id


RECKONED = "The wood of the apple tree is worth 4512 francs"
RECKONED_TOO = "Mr Brandt asked 9377 francs for his saw."
STORY = ("The garden was discussed.", RECKONED_TOO, "The trip goes to Porto.")


async def reckoned(begin: UnitOfWorkFactory, tenant: UUID, *script: VerificationEntry) -> tuple[Service, UUID]:
    """A conversation with a compaction from which code cut an item and a sentence, whose values it did not find."""
    service = Service(begin, tenant)
    told = candidate([(RECKONED, [3, 4], []), (CACHE, [9, 10], [])], " ".join(STORY))
    service.summarizer = ScriptedSummarizer(told, verifications=script)
    service.container.parts.models._summarizers[None] = service.summarizer  # type: ignore[attr-defined]
    conversation_id = await service.conversation(anchor_share=0.0, protect=[], recall="off")
    await append(service, conversation_id, TREE + TRIP + MORE)
    assert (await compact(service, conversation_id)).status == "applied"
    state = str((await newest(service, conversation_id)).state)
    assert CACHE in state
    assert "4512" not in state
    assert "9377" not in state
    return service, conversation_id


def proving(claim: Claim) -> Mapping[str, Any]:
    proof = {"seq": 3, "quote": "the wood of the apple tree"} if claim.kind == "cut" else {}
    return {**honest(claim), **proof}


class TestCuts:
    async def test_what_a_verifier_proves_comes_back_where_it_was(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        def also_of_the_saw(claim: Claim) -> Mapping[str, Any]:
            of_saw = {"seq": 4, "quote": "Mr Brandt was only asked for his saw"}
            return {**proving(claim), **(of_saw if claim.text == RECKONED_TOO else {})}

        service, conversation_id = await reckoned(begin, tenant, verdicts(also_of_the_saw))
        assert await work(service, conversation_id) == "changed"
        before, after = await versions(service, conversation_id)
        assert after.state["logos"] == [RECKONED, *before.state["logos"]], "before what later messages say"
        assert after.state["conversation_summary"] == " ".join(STORY)
        (made,) = [one for one in after.entries if one.text == RECKONED]
        assert made.from_seqs == (3, 4)
        assert made.id not in {one.id for one in before.entries}
        assert after.next_entry > before.next_entry
        assert [(one.reason, one.after) for one in after.repairs] == [
            ("supported", RECKONED_TOO),
            ("supported", RECKONED),
        ]
        await erase_at(service, tenant, conversation_id, 3)
        assert "4512 francs" not in str(await versions(service, conversation_id)), "its source is gone, and so is it"

    @pytest.mark.daily(1)
    @pytest.mark.parametrize(
        "judge",
        [honest, lambda _: {"verdict": "supported", "seq": 9, "quote": "nobody ever said this here"}],
        ids=["no quote", "a quote that stands nowhere"],
    )
    async def test_without_a_proof_nothing_comes_back(
        self, begin: UnitOfWorkFactory, tenant: UUID, judge: Judge
    ) -> None:
        service, conversation_id = await reckoned(begin, tenant, verdicts(judge))
        assert await work(service, conversation_id) == "verified"
        (only,) = await versions(service, conversation_id)
        assert only.verification is not None
        assert only.verification.unproven == 2


class TestDemands:
    @pytest.mark.daily(1)
    @pytest.mark.parametrize(
        ("event_type", "reason"), [("constraint", "kept"), ("goal", "kept"), ("casual", "set_aside")]
    )
    async def test_what_a_user_set_is_not_even_set_aside(
        self, begin: UnitOfWorkFactory, tenant: UUID, event_type: str, reason: str
    ) -> None:
        service, conversation_id = await given_up(begin, tenant, event_type)
        version = await newest(service, conversation_id)
        assert [one.reason for one in version.repairs if one.before == TRUE] == [reason]
        assert (TRUE in version.state["logos"]) == (reason == "kept")
        assert any(told.startswith(TRUE) for told in version.state["logos"])

    async def test_it_goes_when_the_verifier_agrees(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service, conversation_id = await given_up(begin, tenant, "constraint", verdicts(honest))
        assert await work(service, conversation_id) == "changed"
        assert TRUE not in str((await newest(service, conversation_id)).state)


class TestOneText:
    """A state that is one text, in which a lie replaced a true sentence."""

    TRUE = "Mrs Keller gets the wood of the apple tree on 5 January 2027 at gate B-12."
    LIE = "Mr Brandt and not Mrs Keller gets the wood of the apple tree on 5 January 2027 at gate B-12."
    REST = "At the harbour the crates were counted twice, and it was quiet."

    async def judged(self, begin: UnitOfWorkFactory, tenant: UUID, judge: Judge) -> tuple[Service, UUID]:
        texts = [json.dumps({"summary": text}) for text in (f"The garden. {self.TRUE}", f"{self.LIE} {self.REST}")]
        service = Service(begin, tenant)
        scripted = ScriptedSummarizer(*texts, verifications=[verdicts(judge)])
        service.summarizer = scripted
        service.container.parts.models._summarizers[None] = scripted  # type: ignore[attr-defined]
        conversation_id = await service.conversation(state_schema="summary", anchor_share=0.0, protect=[], recall="off")
        when = "Mrs Keller gets her wood on 5 January 2027 at gate B-12."
        for contents in ((*TREE, when, *BALLAST[1:]), BALLAST * 2):
            await append(service, conversation_id, contents)
            assert (await compact(service, conversation_id)).status == "applied"
        await work(service, conversation_id)
        return service, conversation_id

    async def test_what_the_contradicted_sentence_had_replaced_comes_back(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        def against(claim: Claim) -> Mapping[str, Any]:
            is_lie = claim.text == self.LIE
            return {"verdict": "contradicted", "seq": 3, "quote": PROOF} if is_lie else honest(claim)

        service, conversation_id = await self.judged(begin, tenant, against)
        version = await newest(service, conversation_id)
        assert version.made_by == "verification"
        assert self.LIE not in version.state["summary"]
        assert version.state["summary"].startswith(self.REST)
        assert version.state["summary"].endswith(f"may have changed since: {self.TRUE}")
        assert [one.reason for one in version.repairs] == ["contradicted", "value_restored"]

    async def test_control_supported_it_stays_alone(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service, conversation_id = await self.judged(begin, tenant, honest)
        assert (await newest(service, conversation_id)).state["summary"] == f"{self.LIE} {self.REST}"


class TestNoRoom:
    """An entry that was dropped, and then pruned in the same compaction because it was in doubt."""

    SMALL = 120
    PRICE = "A guesthouse in Ribeira costs 64 francs a night"
    PROOF = "costs 64 francs a night"

    async def made(self, begin: UnitOfWorkFactory, tenant: UUID, *script: VerificationEntry) -> tuple[Service, UUID]:
        first: list[tuple[str, list[int], list[str]]] = [
            (self.PRICE, [6], []),
            ("The budget is 900 francs", [5], []),
            ("They book before 3 December", [6], []),
        ]
        added: list[tuple[str, list[int], list[str]]] = [
            ("Version 2.14.3 of the build server broke it", [9], []),
            ("Jobs ended after about 40 seconds with exit code 73", [9], []),
            ("The server must not be restarted on Fridays", [11], []),
            (CACHE, [9, 10], []),
        ]

        async def second(request: SummaryRequest) -> Proposal:
            (old,) = (entry.id for entry in request.previous if entry.text == self.PRICE)
            return answered(candidate(added, dropped=[old]))

        service = Service(begin, tenant)
        scripted = ScriptedSummarizer(candidate(first), second, verifications=script)
        service.summarizer = scripted
        service.container.parts.models._summarizers[None] = scripted  # type: ignore[attr-defined]
        conversation_id = await service.conversation(
            anchor_share=0.0, protect=[], recall="off", state_tokens=self.SMALL, state_cap=self.SMALL
        )
        for contents in (TREE + TRIP, MORE):
            await append(service, conversation_id, contents)
            assert (await compact(service, conversation_id)).status == "applied"
        return service, conversation_id

    @pytest.mark.daily(1)
    @pytest.mark.parametrize(
        ("verdict", "is_back"), [("contradicted", True), ("not_stated", True), ("supported", False)]
    )
    async def test_it_comes_back_unless_the_verifier_agrees(
        self, begin: UnitOfWorkFactory, tenant: UUID, verdict: str, *, is_back: bool
    ) -> None:
        def judge(claim: Claim) -> Mapping[str, Any]:
            return {"verdict": verdict, "seq": 6, "quote": self.PROOF} if claim.kind == "dropped" else honest(claim)

        service, conversation_id = await self.made(begin, tenant, verdicts(judge))
        before = await newest(service, conversation_id)
        assert [(one.pruned, one.in_doubt) for one in before.entries if one.text == self.PRICE] == [(True, True)]
        assert await work(service, conversation_id) == ("changed" if is_back else "verified")
        after = await newest(service, conversation_id)
        assert (self.PRICE in after.state["logos"]) == is_back


class TestVerdicts:
    async def test_what_is_honest_stays_as_it_is(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant, verdicts(honest))
        before = await newest(service, conversation_id)
        row = await service.row(conversation_id)
        assert (before.verified, before.made_by) == ("pending", "compaction")
        assert await work(service, conversation_id) == "verified"
        after = await newest(service, conversation_id)
        assert after.verification is not None
        assert (after.verified, after.version, after.state) == ("model", before.version, before.state)
        assert after.verification.supported == len(service.summarizer.verification_requests[0].claims)
        assert await service.row(conversation_id) == replace(row, last_event=row.last_event + 1), "the event is all"
        assert await rows(engine, conversation_id) == [("done", None, 1)]
        assert await work(service, conversation_id) == "not_wanted"

    async def test_a_lie_with_a_proof_against_it_goes_and_what_it_replaced_comes_back(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant, verdicts(against_the_lie))
        before, row = await newest(service, conversation_id), await service.row(conversation_id)
        events = await service.events(conversation_id)
        assert await work(service, conversation_id) == "changed"
        after, now = await newest(service, conversation_id), await service.row(conversation_id)
        assert (after.version, after.parent_version) == (before.version + 1, before.version)
        assert (after.made_by, after.verified) == ("verification", "model")
        assert TRUE in after.state["logos"]
        assert LIE not in str(after.state)
        assert {repair.reason for repair in after.repairs} == {"contradicted"}
        assert {repair.before for repair in after.repairs} == {LIE, ""}
        assert (now.boundary_seq, now.compression_count) == (row.boundary_seq, row.compression_count)
        assert (now.state_version, now.compressed_state) == (after.version, after.state)
        assert now.layout == after.layout
        assert now.layout_version == row.layout_version + 1
        assert await service.events(conversation_id) == [*events, "verification.finished"], "it is no compaction"
        assert await rows(engine, conversation_id) == [("done", None, 1)]

    @pytest.mark.daily(1)
    @pytest.mark.parametrize(
        "entry",
        [
            verdicts(lambda _: {"verdict": "contradicted", "quote": ""}),
            verdicts(lambda _: {"verdict": "contradicted", "quote": "nobody ever said this here", "seq": 3}),
            verdicts(lambda claim: {"verdict": ("supported", "contradicted", "not_stated")[claim.n % 3]}),
            "I am sorry, but I cannot judge that.",
            '{"verdicts": [{"n": 999, "verdict": "contradicted"}]}',
            answered("", "blocked"),
            verdicts(lambda _: {"verdict": "contradicted", "quote": "cut"}, "length"),
        ],
        ids=["inverted", "invented", "random", "nonsense", "others", "blocked", "cut off"],
    )
    async def test_nothing_that_is_served_changes_without_a_proof(
        self, begin: UnitOfWorkFactory, tenant: UUID, entry: VerificationEntry
    ) -> None:
        service, conversation_id = await lied(begin, tenant, entry)
        before = await newest(service, conversation_id)
        await work(service, conversation_id)
        served = {one.text for one in before.entries if not one.pruned}
        after = await newest(service, conversation_id)
        assert served <= {one.text for one in after.entries if not one.pruned}
        assert after.verified in {"exact", "model"}

    @pytest.mark.long
    async def test_control_without_looking_quotes_up_a_liar_takes_what_is_true(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.core.validation.quotes.QuoteSearch.seq_of", lambda *_: 3)
        entry = verdicts(lambda _: {"verdict": "contradicted", "quote": "nobody ever said this here", "seq": 3})
        service, conversation_id = await lied(begin, tenant, entry)
        assert await work(service, conversation_id) == "changed"
        assert CACHE not in (await newest(service, conversation_id)).state["logos"]

    @pytest.mark.long
    async def test_what_nothing_states_waits_in_doubt_for_the_next_compaction(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        def doubting(claim: Claim) -> Mapping[str, Any]:
            return {"verdict": "not_stated"} if claim.text == CACHE else honest(claim)

        service, conversation_id = await lied(begin, tenant, verdicts(doubting))
        before, row = await newest(service, conversation_id), await service.row(conversation_id)
        assert await work(service, conversation_id) == "verified"
        after = await newest(service, conversation_id)
        assert (after.version, after.state, after.layout) == (before.version, before.state, before.layout)
        assert [one.text for one in after.entries if one.in_doubt] == [CACHE]
        assert [repair.reason for repair in after.repairs[len(before.repairs) :]] == ["not_stated"]
        assert await service.row(conversation_id) == replace(row, last_event=row.last_event + 1), "the event is all"


class TestCalls:
    async def test_it_sees_what_the_summarizer_saw_and_what_claims_rest_on(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        service, conversation_id = await lied(begin, tenant, verdicts(honest))
        async with begin(tenant) as uow:
            await uow.states.mark_verified(conversation_id, 1)
            await uow.commit()
        await work(service, conversation_id)
        (asked,) = service.summarizer.verification_requests
        assert [message.seq for message in asked.messages] == [9, 10, 11], "what the list was closed for is no evidence"
        assert [one.seq for one in asked.older] == [3, 4]
        assert TRUE in [entry.text for entry in asked.previous]
        assert {claim.kind for claim in asked.claims} >= {"item", "replaced"}

    @pytest.mark.long
    async def test_what_is_cut_off_is_asked_for_in_halves_once(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        script = (answered("", "length"), verdicts(against_the_lie))
        service, conversation_id = await lied(begin, tenant, *script)
        assert await work(service, conversation_id) == "changed"
        whole, *parts = service.summarizer.verification_requests
        assert [claim for part in parts for claim in part.claims] == list(whole.claims)
        assert len(parts) == 2

    async def test_the_true_sentences_of_what_was_contradicted_stay(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        service, conversation_id = await two_sentences(begin, tenant, verdicts(against_the_lie))
        assert await work(service, conversation_id) == "changed"
        after = await newest(service, conversation_id)
        assert after.state["logos"][0] == f"{CACHE}."
        assert LIE not in str(after.state)
        asked, further = service.summarizer.verification_requests
        assert {claim.kind for claim in asked.claims}.isdisjoint({"part"})
        assert [claim.text for claim in further.claims] == [f"{LIE}.", f"{CACHE}."]
        assert [one.after for one in after.repairs if one.reason == "contradicted"] == [f"{CACHE}."]
        assert after.verification is not None
        assert (after.verification.contradicted, after.verification.unanswered) == (1, 0)
        assert after.verification.usage.input_tokens == 600, "both calls count"

    async def test_of_what_nothing_states_the_supported_sentences_stay_without_doubt(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        service, conversation_id = await two_sentences(begin, tenant, verdicts(not_stating_the_lie))
        before = await newest(service, conversation_id)
        assert await work(service, conversation_id) == "changed"
        after = await newest(service, conversation_id)
        doubts = {one.text: one.in_doubt for one in after.entries}
        assert (doubts[f"{CACHE}."], doubts[f"{LIE}."]) == (False, True)
        assert not any(CACHE in text and LIE in text for text in doubts)
        assert len({one.id for one in after.entries}) == len(after.entries)
        assert after.next_entry > before.next_entry
        _, further = service.summarizer.verification_requests
        assert [claim.kind for claim in further.claims] == ["part", "part"]

    @pytest.mark.parametrize("second", ["nonsense", answered("", "blocked")], ids=["nonsense", "blocked"])
    async def test_who_does_not_answer_about_the_sentences_leaves_none(
        self, begin: UnitOfWorkFactory, tenant: UUID, second: VerificationEntry
    ) -> None:
        service, conversation_id = await two_sentences(begin, tenant, verdicts(against_the_lie), second)
        assert await work(service, conversation_id) == "changed"
        after = await newest(service, conversation_id)
        assert not any(told in str(after.state) for told in (LIE, CACHE))
        assert after.verified == "model"

    async def test_no_more_than_four_calls_are_made(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(judging, "claim_batches", lambda claims: tuple((claim,) for claim in (*claims, *claims)))
        service, conversation_id = await lied(begin, tenant, verdicts(honest))
        await work(service, conversation_id)
        assert len(service.summarizer.verification_requests) == VERIFIER_CALLS

    @pytest.mark.daily(1)
    @pytest.mark.parametrize(
        ("entry", "reason"),
        [
            (answered("", "blocked"), "blocked"),
            ("nonsense", "no_verdicts"),
            (answered("{}", "tool_call"), "no_verdicts"),
            (ModelUnavailableError("bad_request", retryable=False), "bad_request"),
        ],
    )
    async def test_what_cannot_be_used_is_not_asked_for_again(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, entry: VerificationEntry, reason: str
    ) -> None:
        service, conversation_id = await lied(begin, tenant, entry)
        assert await work(service, conversation_id) == "failed"
        assert (await newest(service, conversation_id)).verified == "exact"
        assert await rows(engine, conversation_id) == [("failed", reason, 1)]
        assert await work(service, conversation_id) == "not_wanted"
        assert len(service.summarizer.verification_requests) == 1

    async def test_a_model_that_is_too_slow_is_asked_thrice(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant, ModelUnavailableError("timeout"))
        for tries, minutes in ((1, 2), (2, 61), (3, 61)):
            assert await work(service, conversation_id) == "failed"
            await age(engine, timedelta(minutes=minutes - 2))
            assert await work(service, conversation_id) == "not_wanted", "a model may hang for an hour"
            status = "failed" if tries == 3 else "queued"
            assert await rows(engine, conversation_id) == [(status, "timeout", tries)]
            await age(engine, timedelta(minutes=2))
        assert await work(service, conversation_id) == "not_wanted"
        assert (await newest(service, conversation_id)).verified == "exact"

    @pytest.mark.parametrize("reason", ["server_error", "unauthorized"])
    async def test_an_outage_is_waited_for_a_day(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, reason: str
    ) -> None:
        service, conversation_id = await lied(begin, tenant, ModelUnavailableError(reason, retryable=False))
        for _ in range(4):
            assert await work(service, conversation_id) == "failed"
            assert await work(service, conversation_id) == "not_wanted", "not before its time"
            assert await rows(engine, conversation_id) == [("queued", reason, 0)]
            await age(engine, timedelta(minutes=11))
        async with engine.begin() as connection:
            assert await connection.scalar(text("SELECT jsonb_array_length(attempts) FROM verifications")) == 1
            await connection.execute(text("UPDATE verifications SET created_at = created_at - interval '1 day'"))
        for _ in range(MAX_TRIES):
            await work(service, conversation_id)
            await age(engine, timedelta(minutes=11))
        assert [status for status, *_ in await rows(engine, conversation_id)] == ["failed"]
        assert (await newest(service, conversation_id)).verified == "exact"

    @pytest.mark.long
    async def test_a_model_that_hangs_is_left(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        async def hang(_: VerificationRequest) -> Proposal:
            await asyncio.sleep(60)
            raise AssertionError

        service, conversation_id = await lied(begin, tenant, hang, settings=Settings(compaction_timeout_seconds=0.1))
        assert await work(service, conversation_id) == "failed"
        assert await rows(engine, conversation_id) == [("queued", "timeout", 1)]

    async def test_an_open_circuit_costs_no_try(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant, ModelUnavailableError("circuit_open", retryable=False))
        assert await work(service, conversation_id) == "failed"
        assert await rows(engine, conversation_id) == [("queued", "circuit_open", 0)]

    async def test_one_that_a_clock_years_ahead_put_off_is_done_now(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant, ModelUnavailableError("circuit_open", retryable=False))
        assert await work(service, conversation_id) == "failed"
        async with begin(None) as unit:
            assert await unit.verifications.due(limit=9) == []
        await age(engine, timedelta(days=-1_500))
        async with begin(None) as unit:
            assert await unit.verifications.due(limit=9) == [(tenant, conversation_id)]


class Held:
    """A verifier that waits at a barrier."""

    def __init__(self, judge: Judge = against_the_lie) -> None:
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()
        self._judge = judge

    async def __call__(self, request: VerificationRequest) -> Proposal:
        self.reached.set()
        await self.go_on.wait()
        found = [{"n": claim.n, "seq": 0, "quote": "", **self._judge(claim)} for claim in request.claims]
        return answered(json.dumps(found))


class TestMeanwhile:
    async def test_two_at_once_make_one_verification(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant, verdicts(against_the_lie))
        outcomes = await together(*[lambda: service.container.verification.run(tenant, conversation_id)] * 2)
        assert "changed" in outcomes
        assert len(service.summarizer.verification_requests) == 1
        assert await rows(engine, conversation_id) == [("done", None, 1)]

    async def test_they_are_kept_apart_though_their_clock_is_behind_the_databases(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(SystemClock, "now", lambda _: datetime.now(UTC) - timedelta(minutes=10))
        held = Held()
        service, conversation_id = await lied(begin, tenant, held)
        working = asyncio.create_task(work(service, conversation_id))
        await held.reached.wait()
        assert await work(service, conversation_id) == "not_wanted"
        held.go_on.set()
        assert await working == "changed"
        assert await rows(engine, conversation_id) == [("done", None, 1)]

    async def test_one_that_hangs_holds_up_no_other_for_long(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hanging = Held()
        service, first = await lied(begin, tenant, hanging)
        other, second = await lied(begin, tenant, verdicts(honest))
        working = asyncio.create_task(work(service, first))
        await hanging.reached.wait()
        assert await work(other, second) == "not_now", "it may answer yet"
        monkeypatch.setattr(Timings, "verification_patience_seconds", 0.0)
        assert await work(other, second) == "verified"
        waiting = Held(honest)
        third, last = await lied(begin, tenant, waiting)
        also = asyncio.create_task(work(third, last))
        await waiting.reached.wait()
        fourth, one_more = await lied(begin, tenant, verdicts(honest))
        assert await work(fourth, one_more) == "not_now", "workers are left for compactions"
        hanging.go_on.set()
        waiting.go_on.set()
        assert (await working, await also) == ("changed", "verified")

    @pytest.mark.long
    async def test_verdicts_apply_to_what_a_compaction_wrote_meanwhile(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        held = Held()
        service, conversation_id = await lied(begin, tenant, held, verdicts(honest))
        working = asyncio.create_task(work(service, conversation_id))
        await held.reached.wait()
        await append(service, conversation_id, TRIP + BALLAST)
        service.summarizer._script._entries = [candidate([("The trip lasts some days", [17, 18], [])])]
        assert (await compact(service, conversation_id)).status == "applied"
        between = await newest(service, conversation_id)
        held.go_on.set()
        assert await working == "changed"
        after = await newest(service, conversation_id)
        assert (after.parent_version, after.boundary_seq) == (between.version, between.boundary_seq)
        assert after.verified == "pending", "what the compaction wrote was not judged"
        assert {TRUE, "The trip lasts some days"} <= set(after.state["logos"])
        assert LIE not in str(after.state)
        assert await rows(engine, conversation_id) == [("done", None, 1), ("queued", "gathering", 0)]
        await pause(engine)
        assert await work(service, conversation_id) == "verified"
        asked = service.summarizer.verification_requests[-1]
        assert [message.seq for message in asked.messages] == [17, 18, 19]
        assert [one.verified for one in await versions(service, conversation_id)] == [
            "exact",
            "model",
            "exact",
            "model",
        ]

    @pytest.mark.long
    async def test_a_compaction_that_runs_is_waited_for(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        held = Held()
        service, conversation_id = await lied(begin, tenant, held)
        working = asyncio.create_task(work(service, conversation_id))
        await held.reached.wait()
        reached, go_on = asyncio.Event(), asyncio.Event()

        async def slow(_: SummaryRequest) -> Proposal:
            reached.set()
            await go_on.wait()
            return answered(candidate([("The trip lasts some days", [17, 18], [])]))

        await append(service, conversation_id, TRIP + BALLAST)
        service.summarizer._script._entries = [slow]
        compacting = asyncio.create_task(compact(service, conversation_id))
        await reached.wait()
        held.go_on.set()
        await asyncio.sleep(0.3)
        assert not working.done()
        go_on.set()
        assert (await compacting).status == "applied", "it is not superseded by the verification"
        assert await working == "changed"

    @pytest.mark.long
    async def test_while_a_compaction_runs_nobody_begins(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant, verdicts(honest))
        reached, go_on = asyncio.Event(), asyncio.Event()

        async def slow(_: SummaryRequest) -> Proposal:
            reached.set()
            await go_on.wait()
            return answered(candidate([("The trip lasts some days", [17, 18], [])]))

        await append(service, conversation_id, TRIP + BALLAST)
        service.summarizer._script._entries = [slow]
        compacting = asyncio.create_task(compact(service, conversation_id))
        await reached.wait()
        assert await work(service, conversation_id) == "not_now"
        go_on.set()
        assert (await compacting).status == "applied"
        assert not service.summarizer.verification_requests
        await age(engine, timedelta(minutes=1))
        assert await work(service, conversation_id) == "verified"
        assert [one.verified for one in await versions(service, conversation_id)] == ["exact", "exact", "model"]

    async def test_an_erasure_makes_what_was_asked_stale(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        held = Held()
        service, conversation_id = await lied(begin, tenant, held, verdicts(honest))
        working = asyncio.create_task(work(service, conversation_id))
        await held.reached.wait()
        await erase_at(service, tenant, conversation_id, 3)
        held.go_on.set()
        assert await working == "stale"
        assert PROOF not in str(await versions(service, conversation_id))
        assert await rows(engine, conversation_id) == [("queued", None, 0)]

    @pytest.mark.long
    async def test_a_narrative_that_is_told_anew_after_it_is_judged_with_the_rest(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant, verdicts(honest))
        await erase_at(service, tenant, conversation_id, 12)
        service.summarizer._script._entries = [candidate([], "The garden, the trip and the build were discussed.")]
        assert await work(service, conversation_id) == "not_now", "the narrative is told first"
        (*_, row) = await service.compactions(conversation_id)
        ended = await service.container.compaction.execute(row.id)
        assert ended is not None
        assert ended.status == "applied"
        version = await newest(service, conversation_id)
        assert (version.made_by, version.verified) == ("erasure", "pending")
        await age(engine, timedelta(minutes=1))
        assert await work(service, conversation_id) == "verified"
        (asked,) = service.summarizer.verification_requests
        assert {9, 10, 11} <= {one.seq for one in asked.messages}
        assert {"item", "sentence"} <= {claim.kind for claim in asked.claims}

    async def test_a_chat_goes_on_beside_it(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        held = Held()
        service, conversation_id = await lied(begin, tenant, held)
        working = asyncio.create_task(work(service, conversation_id))
        await held.reached.wait()
        handle = await service.container.chat.start(tenant, conversation_id, ChatInput(content="And the quince?"))
        reply = await handle.result()
        assert reply is not None
        held.go_on.set()
        assert await working == "changed"

    @pytest.mark.long
    async def test_a_worker_that_dies_is_followed_by_another(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        held = Held()
        service, conversation_id = await lied(begin, tenant, held, verdicts(honest))
        working = asyncio.create_task(work(service, conversation_id))
        await held.reached.wait()
        working.cancel()
        await asyncio.wait([working])
        assert await work(service, conversation_id) == "not_wanted", "somebody may be at it"
        await age(engine, timedelta(seconds=DEFAULT_TIMINGS.lease_seconds))
        assert await work(service, conversation_id) == "verified"
        assert await rows(engine, conversation_id) == [("done", None, 2)]

    @pytest.mark.parametrize("beats", [True, pytest.param(False, marks=pytest.mark.long)])
    async def test_one_that_works_on_keeps_its_claim(
        self,
        begin: UnitOfWorkFactory,
        tenant: UUID,
        engine: AsyncEngine,
        monkeypatch: pytest.MonkeyPatch,
        *,
        beats: bool,
    ) -> None:
        held = Held()
        service, conversation_id = await lied(begin, tenant, held, verdicts(honest))
        beating_every(service, monkeypatch, seconds=0.05 if beats else 3)
        working = asyncio.create_task(work(service, conversation_id))
        await held.reached.wait()
        await age(engine, timedelta(seconds=DEFAULT_TIMINGS.lease_seconds))
        await asyncio.sleep(0.5)
        assert await work(service, conversation_id) == ("not_wanted" if beats else "verified")
        held.go_on.set()
        assert await working == ("changed" if beats else "stale")

    async def test_one_whose_claim_another_took_asks_no_further(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        held = Held()
        service, conversation_id = await lied(begin, tenant, held)
        beating_every(service, monkeypatch, seconds=0.05)
        working = asyncio.create_task(work(service, conversation_id))
        await held.reached.wait()
        async with engine.begin() as connection:
            await connection.execute(text("UPDATE verifications SET tries = tries + 1"))
        assert await working == "stale"
        assert not held.go_on.is_set()
        assert await rows(engine, conversation_id) == [("running", None, 2)]

    @pytest.mark.long
    async def test_after_a_restore_what_was_restored_is_judged(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant, verdicts(honest))
        await service.container.states.restore(tenant, conversation_id, 1)
        assert [one.verified for one in await versions(service, conversation_id)] == ["pending", "exact", "pending"]
        assert await work(service, conversation_id) == "verified"
        (asked,) = service.summarizer.verification_requests
        told = {claim.text for claim in asked.claims}
        assert TRUE in told
        assert LIE not in told
        assert [(one.made_by, one.verified) for one in await versions(service, conversation_id)] == [
            ("compaction", "exact"),
            ("compaction", "exact"),
            ("restore", "model"),
        ]

    @pytest.mark.long
    async def test_a_restore_of_what_was_judged_ends_it(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant, verdicts(honest))
        async with begin(tenant) as uow:
            await uow.states.mark_verified(conversation_id, 1)
            await uow.commit()
        await service.container.states.restore(tenant, conversation_id, 1)
        assert await work(service, conversation_id) == "stale"
        assert await rows(engine, conversation_id) == [("stale", "superseded", 0)]
        assert {one.verified for one in await versions(service, conversation_id)} == {"exact", "model"}


class TestWhoWantsIt:
    async def test_an_operator_may_turn_it_off(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant, settings=Settings(verify="off"))
        assert (await newest(service, conversation_id)).verified == "exact"
        assert await rows(engine, conversation_id) == []

    async def test_a_policy_may_turn_it_off(self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine) -> None:
        service, conversation_id = await lied(begin, tenant, verify="off")
        assert (await newest(service, conversation_id)).verified == "exact"
        assert await rows(engine, conversation_id) == []

    async def test_turned_off_later_what_waits_is_skipped(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant)
        await service.container.conversations.patch(tenant, conversation_id, {"policy": {"verify": "off"}})
        assert await work(service, conversation_id) == "skipped"
        assert await rows(engine, conversation_id) == [("skipped", "off", 0)]
        assert (await newest(service, conversation_id)).verified == "exact"

    async def test_another_model_may_judge(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        judge = ScriptedSummarizer(profile=FAKE_PROFILE, verifications=[verdicts(against_the_lie)])
        service, conversation_id = await lied(begin, tenant, settings=Settings(verifier_model="judge"))
        service.container.parts.models._summarizers["judge"] = judge  # type: ignore[attr-defined]
        assert await work(service, conversation_id) == "changed"
        assert judge.verification_requests
        assert not service.summarizer.verification_requests

    @pytest.mark.long
    async def test_one_that_cannot_be_built_is_waited_for(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant, settings=Settings(verifier_model="judge"))
        assert await work(service, conversation_id) == "not_now"
        assert await rows(engine, conversation_id) == [("queued", None, 0)]


class TestTheModelOfThePolicy:
    """The policy names the model that judges; the operator's and the summarizer's come after it."""

    def judge(self) -> ScriptedSummarizer:
        return ScriptedSummarizer(profile=FAKE_PROFILE, verifications=[verdicts(against_the_lie)])

    def known(self, service: Service, **models: ScriptedSummarizer) -> None:
        service.container.parts.models._summarizers.update(models)  # type: ignore[attr-defined]

    async def choose(self, service: Service, conversation_id: UUID, **policy: Any) -> None:
        await service.container.conversations.patch(service.tenant, conversation_id, {"policy": policy})

    async def test_it_is_asked_before_the_operators_as_the_policy_is_now(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        judge, operators = self.judge(), self.judge()
        service, conversation_id = await lied(begin, tenant, settings=Settings(verifier_model="operators"))
        self.known(service, judge=judge, operators=operators)
        await self.choose(service, conversation_id, verifier_model="judge")
        assert await work(service, conversation_id) == "changed"
        assert judge.verification_requests
        assert not operators.verification_requests
        assert not service.summarizer.verification_requests
        async with begin(tenant) as uow:
            assert await uow.spending.metered_calls(timedelta(hours=1), conversation_id) == (3, 3)

    @pytest.mark.long
    async def test_control_without_it_the_operators_is_asked(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        judge, operators = self.judge(), self.judge()
        service, conversation_id = await lied(begin, tenant, settings=Settings(verifier_model="operators"))
        self.known(service, judge=judge, operators=operators)
        await self.choose(service, conversation_id, verifier_model="judge")
        await self.choose(service, conversation_id, verifier_model=None)
        assert await work(service, conversation_id) == "changed"
        assert operators.verification_requests
        assert not judge.verification_requests

    async def test_the_operator_turns_it_off_all_the_same(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        judge = self.judge()
        service, conversation_id = await lied(begin, tenant)
        self.known(service, judge=judge)
        await self.choose(service, conversation_id, verifier_model="judge")
        off = Service(begin, tenant, settings=Settings(verify="off"))
        self.known(off, judge=judge)
        assert await work(off, conversation_id) == "skipped"
        assert await rows(engine, conversation_id) == [("skipped", "off", 0)]
        assert not judge.verification_requests

    async def test_one_that_is_no_longer_allowed_leaves_the_others(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        judge = self.judge()
        service, conversation_id = await lied(begin, tenant, verdicts(against_the_lie))
        self.known(service, judge=judge)
        await self.choose(service, conversation_id, verifier_model="judge", fallback_model="judge")
        service.container.parts.models._allowed = {"fake"}  # type: ignore[attr-defined]
        assert await work(service, conversation_id) == "changed"
        assert service.summarizer.verification_requests
        assert not judge.verification_requests
        resolved = service.container.conversations._shell.resolver(await service.row(conversation_id))
        assert resolved.warnings == ("model_not_allowed:judge",)

    async def test_one_that_cannot_be_built_any_more_is_waited_for(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant)
        self.known(service, judge=self.judge())
        await self.choose(service, conversation_id, verifier_model="judge")
        del service.container.parts.models._summarizers["judge"]  # type: ignore[attr-defined]
        assert await work(service, conversation_id) == "not_now"
        assert await rows(engine, conversation_id) == [("queued", None, 0)]
        assert not service.summarizer.verification_requests


class TestTheSpendGuard:
    @pytest.mark.long
    async def test_half_of_the_calls_are_for_compactions(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant, verdicts(honest), calls_per_hour=4)
        assert await work(service, conversation_id) == "not_now"
        assert await work(service, conversation_id) == "not_wanted", "it was put off for as long as it takes"
        assert not service.summarizer.verification_requests

    async def test_a_raised_limit_of_the_policy_ends_the_wait(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service, conversation_id = await lied(begin, tenant, verdicts(honest), calls_per_hour=4)
        assert await work(service, conversation_id) == "not_now"
        assert await rows(engine, conversation_id) == [("queued", "spend_limit", 0)]
        await service.container.conversations.patch(tenant, conversation_id, {"policy": {"calls_per_hour": 6}})
        assert await work(service, conversation_id) == "verified"
        assert await rows(engine, conversation_id) == [("done", None, 1)]

    async def test_a_process_begins_with_what_earlier_ones_put_off_for_a_limit(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        service, conversation_id = await lied(
            begin, tenant, verdicts(honest), settings=Settings(tenant_calls_per_hour=4)
        )
        assert await work(service, conversation_id) == "not_now"
        restarted = Service(begin, tenant, settings=Settings(tenant_calls_per_hour=6))
        restarted.container.parts.models._summarizers[None] = service.summarizer  # type: ignore[attr-defined]
        assert await work(restarted, conversation_id) == "not_wanted"
        await restarted.container.sweeper.sweep()
        assert await work(restarted, conversation_id) == "verified"

    async def test_its_calls_count(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service, conversation_id = await lied(begin, tenant, verdicts(honest), calls_per_hour=6)
        assert await work(service, conversation_id) == "verified"
        async with begin(tenant) as uow:
            assert await uow.spending.metered_calls(timedelta(hours=1), conversation_id) == (3, 3), "two compactions"
        measures = await service.container.stats.conversation(tenant, conversation_id)
        assert measures.measured.calls_by("purpose") == {"compaction": 2, "verification": 1}
        (tally,) = (one for one in measures.measured.calls if one.purpose == "verification")
        assert (tally.outcome, tally.prompt_version, tally.usage.input_tokens) == ("accepted", VERIFY_VERSION, 300)


class TestWhoStartsIt:
    async def test_a_hint_follows_the_commit_and_the_sweeper_repeats_it(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        service, conversation_id = await lied(begin, tenant, verdicts(honest))
        assert service.queue.later["verification"] == [conversation_id] * 2
        await service.container.sweeper.sweep()
        assert service.queue.later["verification"] == [conversation_id] * 3
        await work(service, conversation_id)
        await service.container.sweeper.sweep()
        assert service.queue.later["verification"] == [conversation_id] * 3

    @pytest.mark.long
    async def test_with_the_broker_away_it_is_done_here(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service, conversation_id = await lied(begin, tenant, verdicts(against_the_lie))
        service.queue.away = True
        monkeypatch.setattr(service.container.sweeper, "_timings", Timings(stand_in_seconds=1e-9))
        await service.container.sweeper.sweep()
        await service.container.sweeper.sweep()
        async with asyncio.timeout(PATIENCE):
            while (await newest(service, conversation_id)).verified != "model":  # noqa: ASYNC110 - another task's
                await asyncio.sleep(0.02)
        for lane in service.container.sweeper._background_runners:
            await lane.stop()

    @pytest.mark.long
    async def test_a_job_goes_on_with_it_and_never_fails_for_it(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service, conversation_id = await lied(begin, tenant, verdicts(honest))
        (*_, row) = await service.compactions(conversation_id)
        await service.container.verification.verify_after(None)
        monkeypatch.setattr(verification.VerificationService, "run", lambda *_: 1 / 0)
        await service.container.verification.verify_after(row)
        monkeypatch.undo()
        await service.container.verification.verify_after(row)
        assert (await newest(service, conversation_id)).verified == "model"


async def test_a_process_that_lacks_the_chat_model_s_key_puts_background_calls_off(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, conversation_id = await lied(begin, tenant, verdicts(honest))

    def build_no_model(_: str | None = None) -> ChatModel:
        raise InvalidInputError("Models of openai need a key.")

    monkeypatch.setattr(service.container.parts.models, "chat", build_no_model)
    assert await work(service, conversation_id) == "not_now"
    assert await service.container.detailing.work(conversation_id) == "not_now"
    async with begin(None) as uow:
        assert await uow.verifications.due(limit=10) == []

    monkeypatch.undo()
    async with begin(tenant) as uow:
        row = await uow.verifications.open_of(conversation_id)
        assert row is not None
        await uow.verifications.update(row.id, after=None)
        await uow.commit()
    assert await work(service, conversation_id) == "verified"


async def test_rows_hold_no_text(begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine) -> None:
    service, conversation_id = await lied(begin, tenant, verdicts(against_the_lie))
    await work(service, conversation_id)
    async with engine.connect() as connection:
        found = (await connection.execute(text("SELECT to_jsonb(r)::text FROM verifications r"))).scalars().all()
    assert found
    assert not any(word in row for row in found for word in ("Keller", "Brandt", "apple"))

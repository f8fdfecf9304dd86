"""Similarity by vectors on a real database: vectors are made in the background, used in time, and go with messages."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.context.assembly import AssembledContext
from app.core.model.conversation import Message, Usage
from app.core.model.embedding import BadVectorsError
from app.core.model.errors import ModelUnavailableError
from app.core.model.usage_limits import Limits
from app.settings import Settings
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.context.recalling import RecallRequest
from tests.embedding_server import running_embeddings
from tests.fakes import ScriptedEmbedder
from tests.integration.services import Service
from tests.integration.test_embedding_models import OPENAI, registry_of
from tests.integration.test_recall import fold, said

FACT = "The zorblat lies on the windowsill."
KEY = "sk-proj-" + "a1B2c3D4e5" * 5
ASKED = RecallRequest(query="Tell me of the quimby.")
COVERED = 24
"""The covered messages of ``folded``; the last one is a user's, which no reply has followed yet."""
AWAY = ModelUnavailableError("timeout")


class Alike(ScriptedEmbedder):
    """A model that knows that a zorblat is a quimby."""

    def vector(self, text: str) -> bytes:
        return super().vector(text.lower().replace("quimby", "zorblat"))


@pytest.fixture
def embedder() -> Alike:
    return Alike("zorblat", "crates")


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID, embedder: Alike) -> Service:
    return Service(begin, tenant, embedder=embedder)


async def folded(service: Service, *facts: str, messages: int = 20) -> UUID:
    conversation_id = await service.conversation(triggers=[], protect=[], levels=[])
    await service.say(conversation_id, 4)
    await said(service, conversation_id, *(facts or (FACT,)))
    await service.say(conversation_id, messages)
    await fold(service, conversation_id)
    return conversation_id


async def embedded(service: Service, conversation_id: UUID) -> list[str]:
    """Work until nothing more is wanted, and return the outcome of each step."""
    outcomes = []
    while (outcome := await service.container.embedding.work(conversation_id)) == "made":
        outcomes.append(outcome)
    await service.container.outbox.drain()
    return [*outcomes, outcome]


async def recalled(service: Service, conversation_id: UUID, asked: RecallRequest = ASKED) -> AssembledContext:
    return await service.container.context.assemble(service.tenant, conversation_id, 300, recall_request=asked)


async def vectors(service: Service, conversation_id: UUID, model: str = "fake:vectors") -> dict[int, bytes]:
    async with service.begin(service.tenant) as uow:
        return await uow.embeddings.vectors_by_seq(conversation_id, range(1, 200), model)


async def calls(engine: AsyncEngine) -> list[tuple[str, str | None, int]]:
    async with engine.connect() as connection:
        rows = await connection.execute(
            text(
                "SELECT attempt->>'outcome', attempt->>'reason', (attempt->'usage'->>'input_tokens')::int"
                " FROM detail_calls WHERE purpose = 'embedding' ORDER BY id"
            )
        )
        return [(outcome, reason, tokens) for outcome, reason, tokens in rows]


async def test_what_shares_no_word_with_the_question_is_found_by_its_vector(
    service: Service, embedder: Alike, engine: AsyncEngine
) -> None:
    conversation_id = await folded(service, FACT, f"My key is {KEY}, keep it.")
    before = await recalled(service, conversation_id)
    assert before.recalled_by == "words"
    assert FACT not in "\n".join(message.content for message in before.messages), "the control"
    assert embedder.asked == [], "without vectors no question is paid for"

    assert await embedded(service, conversation_id) == ["made", "not_wanted"]
    found = await recalled(service, conversation_id)

    assert found.recalled_by == "words_and_vectors"
    assert FACT in "\n".join(message.content for message in found.messages)
    assert found.recalled[0].source.text == FACT
    assert set(await vectors(service, conversation_id)) == set(range(1, 27))
    given = embedder.texts("document")
    assert KEY not in "".join(given)
    assert "[REDACTED:" in "".join(given)
    assert (await recalled(service, conversation_id)).recalled == found.recalled
    assert embedder.texts("query") == [ASKED.query], "asked for once, however often it is looked at"
    assert [outcome for outcome, _, _ in await calls(engine)] == ["accepted", "accepted"]
    stats = await service.container.stats.conversation(service.tenant, conversation_id)
    (tally,) = [call for call in stats.measured.calls if call.purpose == "embedding"]
    assert (tally.count, tally.usage.cost_usd) == (2, 0.002)


async def test_without_a_model_recall_is_what_it_was(
    service: Service, begin: UnitOfWorkFactory, embedder: Alike
) -> None:
    conversation_id = await folded(service)
    query = RecallRequest(query="Which crates reached harbour number 7?")
    before = await recalled(service, conversation_id, query)
    await embedded(service, conversation_id)
    asked = len(embedder.asked)
    off = Service(begin, service.tenant)
    after = await recalled(off, conversation_id, query)
    assert after == replace(before, recalled_by=None)
    assert len(embedder.asked) == asked
    assert await off.container.embedding.work() == "not_wanted"


@pytest.mark.daily(1)
@pytest.mark.parametrize("reason", ["timeout", "rate_limited", "circuit_open"])
async def test_a_late_or_failed_question_leaves_it_to_words(
    service: Service, embedder: Alike, engine: AsyncEngine, reason: str
) -> None:
    conversation_id = await folded(service)
    by_words = await recalled(service, conversation_id)
    await embedded(service, conversation_id)
    embedder.failures = [ModelUnavailableError(reason)]
    late = await recalled(service, conversation_id)
    assert late == by_words
    assert (await calls(engine))[-1] == ("error", reason, 0)
    assert (await recalled(service, conversation_id)).recalled_by == "words_and_vectors", "the control"


async def test_vectors_go_with_their_messages(service: Service, engine: AsyncEngine, embedder: Alike) -> None:
    conversation_id = await folded(service)
    await embedded(service, conversation_id)
    before = await vectors(service, conversation_id)
    (fact,) = [one for one in await history(service, conversation_id) if one.content == FACT]
    await service.container.erasure.erase(service.tenant, conversation_id, fact.id)
    after = await vectors(service, conversation_id)
    assert before.keys() - after.keys() == {fact.seq}
    await embedded(service, conversation_id)
    assert fact.seq not in await vectors(service, conversation_id)
    async with engine.begin() as connection:  # a process of the version before would change only the words
        await connection.execute(text("UPDATE messages SET content = 'Other words.' WHERE seq = 7"))
        await connection.execute(text("UPDATE messages SET is_pinned = true WHERE seq = 8"))
    assert before.keys() - (await vectors(service, conversation_id)).keys() == {fact.seq, 7}
    async with service.begin(service.tenant) as uow:
        assert await uow.removal.remove(conversation_id, limit=9) == 0, "it is not deleted"
        await uow.conversations.hide(conversation_id)
        await uow.commit()
    async with service.begin(service.tenant) as uow:
        while await uow.removal.remove(conversation_id, limit=9) == 9:
            pass
        await uow.commit()
    async with engine.connect() as connection:
        assert (await connection.execute(text("SELECT count(*) FROM embeddings"))).scalar_one() == 0
        assert (await connection.execute(text("SELECT count(*) FROM detail_calls"))).scalar_one() == 0


async def history(service: Service, conversation_id: UUID) -> list[Message]:
    async with service.begin(service.tenant) as uow:
        return list(await uow.messages.between(conversation_id, 1, 200))


@pytest.mark.long
async def test_what_is_erased_while_the_model_reads_it_gets_no_vector(service: Service, embedder: Alike) -> None:
    conversation_id = await folded(service)
    (fact,) = [one for one in await history(service, conversation_id) if one.content == FACT]

    async def erase() -> None:
        embedder.before = None
        await service.container.erasure.erase(service.tenant, conversation_id, fact.id)

    embedder.before = erase
    assert await service.container.embedding.work(conversation_id) == "stale"
    assert fact.seq not in await vectors(service, conversation_id)
    embedder.asked.clear()
    assert await embedded(service, conversation_id) == ["made", "not_wanted"]
    assert embedder.asked == [], "the others have theirs by their text"
    assert len(await vectors(service, conversation_id)) == COVERED - 1


@pytest.mark.long
async def test_the_same_text_is_asked_for_once_and_a_new_model_begins_anew(
    service: Service, begin: UnitOfWorkFactory, embedder: Alike
) -> None:
    first, second = await folded(service), await folded(service)
    await embedded(service, first)
    embedder.asked.clear()
    await embedded(service, second)
    assert embedder.asked == []
    assert (await vectors(service, first)).keys() == (await vectors(service, second)).keys()

    other = Service(begin, service.tenant, embedder=ScriptedEmbedder("crates", name="fake:other"))
    assert (await recalled(other, first)).recalled_by == "words", "vectors of two models are not compared"
    assert await embedded(other, first) == ["made", "not_wanted"]
    assert await vectors(service, first) == {}
    assert len(await vectors(service, first, "fake:other")) == COVERED


async def test_two_models_do_not_replace_each_others_vectors_time_and_again(
    service: Service, begin: UnitOfWorkFactory, embedder: Alike, engine: AsyncEngine
) -> None:
    """As two workers with different settings would."""
    conversation_id = await folded(service)
    await embedded(service, conversation_id)
    other = Service(begin, service.tenant, embedder=ScriptedEmbedder("crates", name="fake:other"))
    assert await embedded(other, conversation_id) == ["made", "not_wanted"]
    embedder.asked.clear()
    await service.say(conversation_id, 12)
    await fold(service, conversation_id)
    assert (await embedded(service, conversation_id), await service.container.embedding.work()) == (
        ["not_wanted"],
        "not_wanted",
    )
    assert embedder.asked == []
    assert await embedded(other, conversation_id) == ["made", "not_wanted"], "the newer model goes on"

    async with engine.begin() as connection:
        await connection.execute(text("UPDATE detail_calls SET called_at = called_at - interval '1 day'"))
    assert await embedded(service, conversation_id) == ["made", "not_wanted"], "it was set back to the earlier one"


@pytest.mark.long
async def test_a_text_that_the_model_refuses_is_passed_over(service: Service, embedder: Alike) -> None:
    conversation_id = await folded(service)
    embedder.refused = "zorblat"
    assert await embedded(service, conversation_id) == ["made", "not_wanted"]
    assert len(await vectors(service, conversation_id)) == COVERED - 1


async def test_a_text_that_is_refused_alone_is_passed_over_where_the_model_took_others(
    service: Service, embedder: Alike
) -> None:
    await embedded(service, await folded(service, "The crates are blue."))
    conversation_id = await folded(service, FACT)  # everything but the fact is known
    embedder.refused = "zorblat"
    assert await embedded(service, conversation_id) == ["made", "not_wanted"]
    assert len(await vectors(service, conversation_id)) == COVERED - 1

    embedder.refused = " "  # control: a model that refuses everything is not believed
    other = await folded(service, "A zorblat once more.", "And twice.")
    assert await embedded(service, other) == ["failed"]


async def test_vectors_of_no_use_count_as_paid_for(service: Service, embedder: Alike, engine: AsyncEngine) -> None:
    conversation_id = await folded(service)
    embedder.failures = [BadVectorsError(Usage(input_tokens=7))] * (COVERED + 1)
    assert await embedded(service, conversation_id) == ["failed"]
    assert set(await calls(engine)) == {("error", "bad_vectors", 7)}
    embedder.failures = []
    async with service.begin(service.tenant) as uow:
        await uow.embeddings.note_progress(conversation_id, embedder.name, through=0)
        await uow.commit()
    await embedded(service, conversation_id)
    embedder.failures = [BadVectorsError(Usage(input_tokens=5))]
    assert (await recalled(service, conversation_id)).recalled_by == "words"
    assert (await calls(engine))[-1] == ("error", "bad_vectors", 5)


async def test_an_outage_is_waited_for(service: Service, embedder: Alike, engine: AsyncEngine) -> None:
    conversation_id = await folded(service)
    embedder.failures = [AWAY]
    assert await service.container.embedding.work() == "failed"
    assert await service.container.embedding.work() == "not_wanted", "for a minute"
    assert await vectors(service, conversation_id) == {}
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE conversations SET embed_after = now() - interval '1 s'"))
    assert await embedded(service, conversation_id) == ["made", "not_wanted"]


async def test_what_was_made_before_a_failure_is_not_asked_for_again(service: Service, embedder: Alike) -> None:
    """A model refuses one of many texts, so they are sent one by one, until that is too fast for the provider."""
    conversation_id = await folded(service)
    embedder.refused = "zorblat"
    embedder.failures = [*[None] * 11, ModelUnavailableError("rate_limited", status=429)]
    assert await service.container.embedding.work(conversation_id) == "failed"
    made = embedder.texts("document")[-11:-1]
    embedder.asked.clear()
    async with service.begin(service.tenant) as uow:
        await uow.embeddings.note_progress(conversation_id, embedder.name, through=0)
        await uow.commit()
    assert await embedded(service, conversation_id) == ["made", "not_wanted"]
    assert not {text for text in made if "zorblat" not in text} & set(embedder.texts("document"))
    assert len(await vectors(service, conversation_id)) == COVERED - 1


@pytest.mark.long
async def test_what_is_spent_has_a_limit_of_its_own(begin: UnitOfWorkFactory, tenant: UUID, embedder: Alike) -> None:
    limits = Limits(embedding_calls_per_hour=3)
    service = Service(begin, tenant, embedder=embedder, settings=Settings(tenant_limits=limits, auth_required=True))
    conversation_id = await folded(service, messages=160)
    assert await embedded(service, conversation_id) == ["made", "made", "not_now"], "half of it for what can wait"
    assert (await recalled(service, conversation_id)).recalled_by == "words_and_vectors"
    assert (await recalled(service, conversation_id, RecallRequest(query="Another one?"))).recalled_by == "words"
    await service.say(conversation_id, 20)
    await fold(service, conversation_id)
    assert (await service.compactions(conversation_id))[-1].status == "applied", "compactions have their own limits"


@pytest.mark.long
async def test_the_sweeper_hints_at_what_has_no_vectors(service: Service, begin: UnitOfWorkFactory) -> None:
    conversation_id = await folded(service)
    await service.container.sweeper.sweep()
    assert service.queue.later["embedding"] == [conversation_id]
    await embedded(service, conversation_id)
    service.queue.later["embedding"].clear()
    await service.container.sweeper.sweep()
    off = Service(begin, service.tenant)
    await off.container.sweeper.sweep()
    assert service.queue.later["embedding"] == off.queue.later["embedding"] == []


@pytest.mark.long
async def test_over_the_wire_a_provider_that_hangs_costs_a_recall_its_deadline_at_most(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    with running_embeddings() as server:
        registry = registry_of(server, OPENAI, question_timeout=0.4)
        service = Service(begin, tenant, embedder=registry.embedder())
        conversation_id = await folded(service)
        assert await embedded(service, conversation_id) == ["made", "not_wanted"]
        assert (await recalled(service, conversation_id)).recalled_by == "words_and_vectors"
        server.script.append({"hang": 30})
        started = time.monotonic()
        late = await recalled(service, conversation_id, RecallRequest(query="Where is the ship?"))
        assert time.monotonic() - started < 10
        await registry.close()
    assert late.recalled_by == "words"


async def test_two_workers_make_one_call(service: Service, embedder: Alike) -> None:
    conversation_id = await folded(service)
    await asyncio.gather(*(service.container.embedding.work(conversation_id) for _ in range(3)))
    assert len(embedder.asked) == 1
    assert len(await vectors(service, conversation_id)) == COVERED

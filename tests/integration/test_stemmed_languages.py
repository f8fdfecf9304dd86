"""Search and recall in languages whose stems are Snowball's: the index, and messages stored before it had them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from typer.testing import CliRunner

from app.cli import app
from app.core.model.conversation import Message
from app.core.text import stemming
from app.core.text.words import words
from app.providers.offline import OfflineSummarizer
from app.storage.repositories import message_search, term_keys
from app.storage.repositories.contents import MessagePlace
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.compaction.manual import CompactInput
from app.usecases.context.recalling import RecallRequest
from app.usecases.history.drafts import MessageDraft
from app.usecases.history.indexing import index_step
from tests.integration.rows import make_tenant
from tests.integration.services import Service


@dataclass(frozen=True)
class Spoken:
    """A fact among small talk, and a question in other forms of its words."""

    fact: str
    talk: tuple[str, ...]
    word: str
    """One word of the fact in the form of its messages; alone it does not show its language."""
    question: str


SPOKEN: Final = {
    "de": Spoken(
        fact="Die Häuser in der Lindenstraße haben wir im Frühling besichtigt.",
        talk=("Heute war es den ganzen Tag sehr kalt.", "Ich bin noch nicht sicher, ob das so geht."),
        word="Haus",
        question="Wann war die Besichtigung von diesem Haus?",
    ),
    "es": Spoken(
        fact="Los médicos cobran sus consultas en la biblioteca.",
        talk=("Hoy hizo mucho frío en toda la ciudad.", "No sé si eso va a ser posible para mí."),
        word="médica",
        question="¿Dónde cobra el médico una consulta?",
    ),
    "fr": Spoken(
        fact="Nous avons loué une imprimante chez les voisins du deuxième.",
        talk=("Il a fait très froid dans toute la ville.", "Je ne sais pas si cela est possible pour moi."),
        word="imprimer",
        question="Chez qui est-ce qu'on loue des imprimantes ?",
    ),
    "pl": Spoken(
        fact="Podpisałem umowę na to mieszkanie dopiero w kwietniu.",
        talk=("Dzisiaj w całym mieście było bardzo zimno.", "Nie wiem, czy to się w ogóle da tak zrobić."),
        word="kwietnia",
        question="Kiedy była podpisana umowa tego mieszkania?",
    ),
}
LANGUAGES: Final = pytest.mark.parametrize("language", SPOKEN)
NONE: Final[dict[str, str]] = {}


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch) -> Service:
    made = Service(begin, tenant)
    monkeypatch.setattr(made.container.manual._shell.models, "_summarizers", {None: OfflineSummarizer()})
    return made


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Conversations of more than twenty messages count as large, so that recall uses the index."""
    monkeypatch.setattr(message_search, "WHOLE_UP_TO", 20)


@pytest.fixture
def before(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Restore the time before Snowball's stems, in no language, until the patch is undone."""
    monkeypatch.setattr(term_keys, "guessed_language", lambda _: None)
    monkeypatch.setattr(stemming, "ALGORITHMS", NONE)
    return monkeypatch


async def talked(service: Service, spoken: Spoken) -> UUID:
    """A folded conversation of 45 messages, the fact its fifth."""
    conversation_id = await service.conversation(triggers=[], protect=[], levels=[])
    texts = [*(spoken.talk * 2), spoken.fact, *(spoken.talk * 20)]
    drafts = [MessageDraft(role="user", content=text) for text in texts]
    await service.container.messages.append(service.tenant, conversation_id, drafts)
    await service.container.manual.compact(
        service.tenant, conversation_id, CompactInput(keep_tail_messages=2), timeout=20
    )
    return conversation_id


async def sought(service: Service, conversation_id: UUID, query: str) -> list[tuple[int, str]]:
    page = await service.container.search.find(service.tenant, conversation_id, query, limit=3)
    return [(hit.seq, hit.snippet) for hit in page.hits]


async def recalled(service: Service, conversation_id: UUID, question: str) -> list[int]:
    found = await service.container.context.assemble(
        service.tenant, conversation_id, 400, recall_request=RecallRequest(query=question)
    )
    return [one.source.seq for one in found.recalled]


@pytest.mark.daily(2)
@LANGUAGES
async def test_another_form_of_a_word_is_found(service: Service, large: None, language: str) -> None:
    spoken = SPOKEN[language]
    conversation_id = await talked(service, spoken)

    assert await sought(service, conversation_id, spoken.word) == [(5, spoken.fact)]
    assert (await sought(service, conversation_id, spoken.question))[0][0] == 5
    assert (await recalled(service, conversation_id, spoken.question))[0] == 5
    assert (await recalled(service, conversation_id, spoken.word))[0] == 5


@pytest.mark.daily(1)
@LANGUAGES
async def test_control_by_the_stems_of_english_it_is_not(
    service: Service, large: None, before: pytest.MonkeyPatch, language: str
) -> None:
    conversation_id = await talked(service, SPOKEN[language])
    assert await sought(service, conversation_id, SPOKEN[language].word) == []


async def test_an_index_from_before_finds_what_it_found_and_is_made_anew_step_by_step(
    service: Service, begin: UnitOfWorkFactory, engine: AsyncEngine, database_url: str, before: pytest.MonkeyPatch
) -> None:
    talks = {language: await talked(service, spoken) for language, spoken in SPOKEN.items()}
    english = Spoken("The flats were let in April.", ("It is cold.", "I am not sure."), "flat", "")
    talks["en"] = await talked(service, english)
    stored = await keys_of(engine)
    before.undo()
    for language, spoken in SPOKEN.items():
        assert await sought(service, talks[language], spoken.word) == [], "not yet"
        exact = words(spoken.fact)[0]
        assert (await sought(service, talks[language], exact))[0][0] == 5, "what was found is found"

    changed, place = await index_step(begin, None, limit=2)
    assert 0 < changed <= 2
    assert place is not None
    run = await asyncio.to_thread(CliRunner().invoke, app, ["index-words"], env={"DATABASE_URL": database_url})
    assert run.output.endswith("messages indexed anew; nothing is left to index.\n")
    for language, spoken in SPOKEN.items():
        assert (await sought(service, talks[language], spoken.word))[0][0] == 5

    anew = await keys_of(engine)
    assert all(set(keys) <= set(anew[id_]) for id_, keys in stored.items()), "no key is lost"
    of_english = [id_ for (conversation, id_) in anew if conversation == talks["en"]]
    assert all(anew[talks["en"], id_] == stored[talks["en"], id_] for id_ in of_english)
    place = None
    while True:
        changed, place = await index_step(begin, place)
        assert changed == 0, "once more does nothing"
        if place is None:
            break


async def keys_of(engine: AsyncEngine) -> dict[tuple[UUID, UUID], list[int]]:
    async with engine.connect() as connection:
        rows = await connection.execute(text("SELECT conversation_id, id, term_keys FROM messages"))
        return {(row.conversation_id, row.id): row.term_keys for row in rows}


async def test_a_message_that_was_erased_meanwhile_gets_no_keys_and_no_tenant_those_of_another(
    service: Service, begin: UnitOfWorkFactory, engine: AsyncEngine, before: pytest.MonkeyPatch
) -> None:
    """This includes messages without any keys, as from a version that took none of their characters for letters."""
    conversation_id = await talked(service, SPOKEN["pl"])
    before.undo()
    (_, one), (_, bare), (_, other) = (await outdated(begin, service.tenant))[:3]
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE messages SET term_keys = '{}' WHERE id = :id"), {"id": bare})
    stored = await keys_of(engine)
    for erased in (one, bare):
        await service.container.erasure.erase(service.tenant, conversation_id, erased)
        async with begin(service.tenant) as uow:
            await uow.term_keys.renew(erased)
            await uow.commit()
    async with begin(await make_tenant(begin, "another")) as uow:
        assert not await uow.term_keys.renew(other)
        await uow.commit()
    keys = await keys_of(engine)
    assert keys[conversation_id, one] == keys[conversation_id, bare] == []
    assert keys[conversation_id, other] == stored[conversation_id, other]


async def outdated(begin: UnitOfWorkFactory, tenant: UUID, limit: int = 200) -> list[MessagePlace]:
    """The places of a tenant's messages with outdated keys, found in steps."""
    found: list[MessagePlace] = []
    place = None
    while True:
        async with begin(None) as uow:
            here, place = await uow.term_keys.outdated(place, limit=limit)
        found += [one for one in here if one[0] == tenant]
        if place is None:
            return found


async def test_no_step_reads_more_than_fits_and_none_is_left_out(
    service: Service, begin: UnitOfWorkFactory, engine: AsyncEngine, before: pytest.MonkeyPatch
) -> None:
    await talked(service, SPOKEN["de"])
    before.undo()
    known, read = await outdated(begin, service.tenant), list[int]()
    made = term_keys.keys_of

    def noted(messages: Sequence[Message]) -> list[list[int]]:
        read.append(len(messages))
        return made(messages)

    before.setattr(term_keys, "keys_of", noted)
    before.setattr(term_keys, "READ_BYTES", 300)
    assert await outdated(begin, service.tenant) == known
    assert max(read) < 9
    assert sum(read) == len(await keys_of(engine))
    read.clear()
    before.setattr(term_keys, "READ_BYTES", 1)
    assert await outdated(begin, service.tenant) == known
    assert set(read) == {1}, "one at least"

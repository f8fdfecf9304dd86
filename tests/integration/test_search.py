"""Search through the service: what is found before and after compaction, in pages, and what is never found."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from app.core.model.errors import InvalidInputError, NotFoundError
from app.storage.repositories import message_search
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.compaction.manual import CompactInput
from app.usecases.context import search as search_module
from app.usecases.context.search import PageStart, SearchHit
from app.usecases.history.drafts import MessageDraft
from tests.integration.rows import make_tenant
from tests.integration.services import Service

KETTLE = "The copper kettle whistles in the pantry."
SECRET = "My key is sk-live-4242424242424242424242424242 and nobody else has it."


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant)


async def said(service: Service, *texts: str) -> UUID:
    conversation_id = await service.conversation()
    drafts = [MessageDraft(role="user", content=text) for text in texts]
    await service.container.messages.append(service.tenant, conversation_id, drafts)
    await service.container.outbox.drain()
    return conversation_id


async def find(service: Service, conversation_id: UUID, query: str, limit: int = 100) -> list[SearchHit]:
    return (await service.container.search.find(service.tenant, conversation_id, query, limit=limit)).hits


async def seqs(service: Service, conversation_id: UUID, query: str) -> list[int]:
    return [hit.seq for hit in await find(service, conversation_id, query)]


async def test_a_hit_says_where_and_what(service: Service) -> None:
    conversation_id = await said(service, "Rain.", KETTLE, "Снова дождь: медный чайник.", "铜水壶在储藏室里。")
    (hit,) = await find(service, conversation_id, "Where are the copper kettles?")
    async with service.begin(service.tenant) as uow:
        message = await uow.messages.at_seq(conversation_id, 2)
    assert (hit.message_id, hit.seq, hit.role, hit.created_at) == (message.id, 2, "user", message.created_at)
    assert hit.snippet == KETTLE
    assert await seqs(service, conversation_id, "медные чайники") == [3]
    assert await seqs(service, conversation_id, "储藏室") == [4]


async def test_letters_are_found_however_they_are_composed(service: Service) -> None:
    texts = ("Deux éclairs au café.", "Йогурт на полке.")
    conversation_id = await said(service, *texts, *(unicodedata.normalize("NFD", text) for text in texts))
    assert sorted(await seqs(service, conversation_id, "éclairs")) == [1, 3]
    assert sorted(await seqs(service, conversation_id, unicodedata.normalize("NFD", "йогурт"))) == [2, 4]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("naive", [1]),
        ("strasse", [2]),
        ("cafes", [3, 7]),
        ("Muller", [4]),
        ("елка", [5]),
        ("Lodz", [6]),
        ("Café", [3, 7]),
    ],
)
async def test_words_are_found_without_the_signs_at_their_letters(
    service: Service, query: str, expected: list[int]
) -> None:
    texts = ("A naïve plan.", "Die Straße ist lang.", "Two cafés.", "Frau Müller", "Ёлка стоит", "Łódź", "The cafe")
    conversation_id = await said(service, *texts)
    assert sorted(await seqs(service, conversation_id, query)) == expected
    hits = await find(service, conversation_id, query)
    assert all(hit.snippet in texts for hit in hits), "as it stands there"


async def test_phrases_are_literal(service: Service) -> None:
    conversation_id = await said(
        service, "the pantry is copper", "copper   PANTRY door", "the copper pantry", "pantry copper", "coppery pantry"
    )
    assert sorted(await seqs(service, conversation_id, '"copper pantry"')) == [2, 3]
    assert await seqs(service, conversation_id, '"copper pantry" "the"') == [3]
    assert await seqs(service, conversation_id, '"no such words"') == []
    assert sorted(await seqs(service, conversation_id, "copper pantry")) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("copper kett", [1]),
        ("ettle", [1]),
        ("İstanbul", [2]),
        ("ΣΟΦΟΣ", [3]),
        ("σοφος", [3]),
        ("ΣΟΣ", [3]),
        ("МОСКВА", [4]),
        ("copper kent", []),
    ],
)
async def test_a_phrase_may_end_within_a_word_and_have_any_letters(
    service: Service, phrase: str, expected: list[int]
) -> None:
    conversation_id = await said(service, KETTLE, "Fly to İstanbul.", "ΣΟΦΟΣ, ΣΟΣΤΑ.", "Москва.")
    assert await seqs(service, conversation_id, f'"{phrase}"') == expected


async def test_a_letter_may_be_written_as_several_characters(service: Service) -> None:
    texts = ("The copper kettle of Málaga.", "Чайник с Майей.", "비밀 회의")
    conversation_id = await said(service, *texts, *(unicodedata.normalize("NFD", text) for text in texts))
    for number, phrase in enumerate(("of Málaga", "с майе", "밀 회"), 1):
        for form in ("NFC", "NFD"):
            query = f'"{unicodedata.normalize(form, phrase)}"'
            assert sorted(await seqs(service, conversation_id, query)) == [number, number + 3]
    assert await seqs(service, conversation_id, '"of Malaga"') == [], "an accent makes a difference"


@pytest.mark.parametrize(
    "text",
    [
        "\u09a4\u09be\u09b0\u09be \u09b9\u09df \u09ac\u09dc",  # Bengali keyboards have letters that NFC takes apart
        "ti\u00ea\u0301ng Vi\u00ea\u0323t",  # as Vietnamese keyboards write: neither NFC nor NFD
        "ma\u0301laga m\u00e1laga",
    ],
)
async def test_a_phrase_is_found_as_it_is_written(service: Service, text: str) -> None:
    assert await seqs(service, await said(service, text), f'"{text}"') == [1]


async def test_a_phrase_that_is_cut_within_a_letter_is_found(service: Service) -> None:
    phrase = f"{'ship ' * 38}the decafe\u0301 au lait"
    assert phrase[message_search.MAX_SEARCHED_CHARACTERS] == "\u0301"
    conversation_id = await said(service, unicodedata.normalize("NFC", phrase), phrase)
    assert sorted(await seqs(service, conversation_id, f'"{phrase}"')) == [1, 2]


async def test_every_kind_of_space_is_a_space(service: Service) -> None:
    conversation_id = await said(service, "to\u00a0be", "to\u3000be", "to\u2009be", "to\u001fbe", "tobe")
    assert sorted(await seqs(service, conversation_id, '"to be"')) == [1, 2, 3, 4]


async def test_control_without_the_quotes_other_messages_are_found(service: Service) -> None:
    conversation_id = await said(service, "the pantry is copper", "the copper pantry")
    assert await seqs(service, conversation_id, '"copper pantry"') != await seqs(
        service, conversation_id, "copper pantry"
    )


@pytest.mark.parametrize(
    ("query", "expected"), [("🎉", [2]), ("???", [3]), ("to be", [4]), ("壶", [5]), ("kett", [6]), ("%", []), ("_", [])]
)
async def test_without_a_word_it_is_found_as_it_stands(service: Service, query: str, expected: list[int]) -> None:
    conversation_id = await said(service, "Rain.", "Hurray 🎉", "What???", "To be.", "铜水壶在储藏室里", "kettles")
    assert await seqs(service, conversation_id, query) == expected


async def test_pages_hold_still_while_messages_come(service: Service) -> None:
    conversation_id = await said(service, *(f"The kettle number {number}." for number in range(1, 26)), "Rain.")
    whole = await seqs(service, conversation_id, "kettle")
    assert sorted(whole) == list(range(1, 26))
    found: list[int] = []
    place: PageStart | None = None
    while True:
        page = await service.container.search.find(service.tenant, conversation_id, "kettle", limit=10, place=place)
        found += [hit.seq for hit in page.hits]
        if page.following is None:
            break
        assert len(page.hits) == 10
        place = page.following
        await service.container.messages.append(
            service.tenant, conversation_id, [MessageDraft(role="user", content="kettle kettle kettle")]
        )
    assert found == whole


@pytest.mark.daily(1)
@pytest.mark.parametrize("erased", [slice(0, 1), slice(3, 6), slice(9, 10)])
async def test_pages_leave_out_nothing_when_a_shown_hit_is_erased(service: Service, erased: slice) -> None:
    conversation_id = await said(service, *["🎉"] * 25, "Rain.")
    whole = await seqs(service, conversation_id, "🎉")
    search, erasure = service.container.search, service.container.erasure
    first = await search.find(service.tenant, conversation_id, "🎉", limit=10)
    for hit in first.hits[erased]:
        await erasure.erase(service.tenant, conversation_id, hit.message_id)
    second = await search.find(service.tenant, conversation_id, "🎉", limit=10, place=first.following)
    assert [hit.seq for hit in (*first.hits, *second.hits)] == whole[:20]


@pytest.mark.parametrize("query", ["kettle", '"kettle number"', '"🎉"'])
async def test_newer_messages_crowd_out_none_of_a_later_page(
    service: Service, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.setattr(search_module, "CANDIDATES", 20)
    text = "The kettle number 1. 🎉"
    conversation_id = await said(service, *[text] * 30)
    whole = await seqs(service, conversation_id, query)
    first = await service.container.search.find(service.tenant, conversation_id, query, limit=10)
    await service.container.messages.append(
        service.tenant, conversation_id, [MessageDraft(role="user", content=text)] * 25
    )
    second = await service.container.search.find(
        service.tenant, conversation_id, query, limit=10, place=first.following
    )
    assert [hit.seq for hit in (*first.hits, *second.hits)] == whole
    assert len(whole) == 20


async def test_control_a_place_that_forgets_its_end_would_move(service: Service) -> None:
    conversation_id = await said(service, *(f"The kettle number {number}." for number in range(1, 26)), "Rain.")
    await service.container.messages.append(
        service.tenant, conversation_id, [MessageDraft(role="user", content="kettle kettle kettle")] * 6
    )
    pages = [
        await service.container.search.find(
            service.tenant, conversation_id, "kettle", limit=10, place=PageStart(through_seq, 10)
        )
        for through_seq in (26, 32)
    ]
    assert [hit.seq for hit in pages[0].hits] != [hit.seq for hit in pages[1].hits]


async def test_the_same_before_and_after_compaction_and_nothing_of_what_is_erased(service: Service) -> None:
    conversation_id = await said(service, "Rain.", KETTLE, SECRET, *(f"Line {number}." for number in range(20)))
    before = await find(service, conversation_id, "copper kettle")
    assert [hit.snippet for hit in await find(service, conversation_id, "key nobody")] == [SECRET]
    result = await service.container.manual.compact(service.tenant, conversation_id, CompactInput(), timeout=30)
    assert result.compaction.status == "applied"
    after = await find(service, conversation_id, "copper kettle")
    assert [replace(hit, segment_id=None) for hit in after] == before
    assert all(hit.segment_id for hit in after)
    await service.container.erasure.erase(service.tenant, conversation_id, before[0].message_id)
    for query in ("copper kettle", '"copper kettle"', "kettle whistles", "pper kett"):
        assert await find(service, conversation_id, query) == []
    assert (await service.row(conversation_id)).boundary_seq > 2


async def test_what_is_erased_while_it_is_ranked_is_left_out(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation_id = await said(service, KETTLE, KETTLE)
    (first, *_) = await find(service, conversation_id, "kettle")
    real = service.container.search._ranked

    async def erase_meanwhile(*given: object) -> object:
        found = await real(*given)  # type: ignore[arg-type]
        await service.container.erasure.erase(service.tenant, conversation_id, first.message_id)
        return found

    monkeypatch.setattr(service.container.search, "_ranked", erase_meanwhile)
    assert [hit.message_id for hit in await find(service, conversation_id, "kettle")] != []
    assert first.message_id not in {hit.message_id for hit in await find(service, conversation_id, "kettle")}


async def test_commands_are_no_hits(service: Service) -> None:
    conversation_id = await said(service, "Rain.")
    drafts = [MessageDraft(role="user", content="/compact the kettle", is_command=True)]
    await service.container.messages.append(service.tenant, conversation_id, drafts)
    assert await find(service, conversation_id, "kettle") == []
    assert await find(service, conversation_id, "/compact") == []


async def test_in_a_large_conversation(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_search, "WHOLE_UP_TO", 10)
    monkeypatch.setattr(message_search, "COMMON_FROM", 5)
    conversation_id = await said(service, *("Rain over the harbour.",) * 30, KETTLE, *("More rain, no harbour.",) * 30)
    found = await seqs(service, conversation_id, "the copper kettle in the rain")
    assert (found[0], len(found) > 1) == (31, True)
    assert await seqs(service, conversation_id, "kettle") == [31]
    assert await seqs(service, conversation_id, '"kettle whistles"') == [31]


@pytest.mark.parametrize("query", ["", "  ", '""'])
async def test_an_empty_query_is_refused(service: Service, query: str) -> None:
    conversation_id = await said(service, "Rain.")
    with pytest.raises(InvalidInputError, match="q cannot be empty") as refused:
        await find(service, conversation_id, query)
    assert [error.field for error in refused.value.errors] == ["q"]


@pytest.mark.parametrize("query", ["kettle", '"copper kettle"', "🎉"])
async def test_another_tenant_and_an_unknown_conversation(
    service: Service, begin: UnitOfWorkFactory, query: str
) -> None:
    conversation_id = await said(service, KETTLE)
    stranger = await make_tenant(begin, f"stranger {uuid4()}")
    for tenant_id, asked in ((stranger, conversation_id), (service.tenant, uuid4())):
        for place in (None, PageStart(9, 0)):
            with pytest.raises(NotFoundError):
                await service.container.search.find(tenant_id, asked, query, limit=9, place=place)


async def test_an_empty_conversation(service: Service) -> None:
    assert await find(service, await service.conversation(), "kettle") == []


async def test_a_long_phrase_is_compared_to_its_end(service: Service) -> None:
    start = "the kettle is in the pantry and " * 10
    conversation_id = await said(service, start + "whistles", start + "sings")
    assert await seqs(service, conversation_id, f'"{start}sings"') == [2]
    assert await seqs(service, conversation_id, f'"{start}sleeps"') == []


async def test_control_the_database_alone_would_take_the_beginning_for_the_whole(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_module, "has_phrases", lambda *_: True)
    start = "the kettle is in the pantry and " * 10
    conversation_id = await said(service, start + "whistles", start + "sings")
    assert await seqs(service, conversation_id, f'"{start}of"') != []

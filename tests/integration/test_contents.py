"""The data of media: stored once, counted exactly, given back byte for byte, and deleted with its last message."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from typer.testing import CliRunner

from app.cli.commands import app
from app.core.model.conversation import Message
from app.core.model.errors import ModelUnavailableError
from app.core.model.model_io import ChatRequest, StepEvent
from app.core.model.records import Page
from app.core.text.parts import Part
from app.settings import Settings
from app.storage.repositories import sizes
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.history.drafts import MessageDraft
from app.usecases.history.moving import move_step
from app.usecases.openai.forking import ForkPoint
from app.usecases.shared.idempotency import Idem
from tests.fakes import ScriptedChatModel
from tests.integration.keyed import keyed
from tests.integration.services import Service

ALL: Final = Page(limit=100, order="asc")
PNG: Final = base64.b64encode(b"\x89PNG a picture").decode()


def media(data: str = PNG, **further: Any) -> Part:
    """A part of a picture, whose further keys are before and after the data, as a client may order them."""
    return {"type": "media", "name": "a.png", "media_type": "image/png", "data": data, "tokens": 5, **further}


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant)


async def add(service: Service, conversation_id: UUID, *parts: Part, content: str = "look") -> Message:
    draft = MessageDraft(role="user", content=content, parts=parts)
    (message,) = await service.container.messages.append(service.tenant, conversation_id, [draft])
    return message


async def parts_of(service: Service, conversation_id: UUID) -> list[list[Mapping[str, Any]]]:
    found, _ = await service.container.messages.page(service.tenant, conversation_id, ALL)
    return [list(message.parts) for message in found]


async def uses(engine: AsyncEngine) -> list[int]:
    """The number of uses of each stored content."""
    async with engine.connect() as connection:
        return list((await connection.execute(text("SELECT uses FROM contents ORDER BY uses"))).scalars())


async def execute(engine: AsyncEngine, statement: str, **given: Any) -> Any:
    async with engine.begin() as connection:
        found = await connection.execute(text(statement), given)
        return found.scalars().all() if found.returns_rows else None


@pytest.mark.parametrize(
    "data",
    [PNG, f"data:image/png;base64,{PNG}", f"data:;base64,{PNG}", "no base64 at all, é", PNG + "\n", "QQ=", "A" * 4_001],
    ids=["base64", "data-url", "short-data-url", "text", "with-line-end", "unpadded", "odd-length"],
)
async def test_originals_come_back_as_they_were_given(service: Service, engine: AsyncEngine, data: str) -> None:
    conversation = await service.conversation()
    given = media(data, odd=[1, {"b": 2, "a": 1.50}])
    await add(service, conversation, given, {"type": "text", "text": "beside"})
    (parts,) = await parts_of(service, conversation)
    assert json.dumps(parts) == json.dumps([given, {"type": "text", "text": "beside"}]), "also the order of the keys"
    (stored,) = await execute(engine, "SELECT parts::text FROM messages")
    assert data not in json.loads(stored)[0].values(), "the row itself has a reference"


async def test_the_same_image_is_stored_once_and_counted_exactly_under_concurrency(
    service: Service, engine: AsyncEngine
) -> None:
    conversations = [await service.conversation() for _ in range(4)]
    other = media(base64.b64encode(b"another").decode())
    each = [(media(), other), (other, media()), (media(), media())]  # in either order: no deadlock
    await asyncio.gather(*(add(service, one, *parts) for one in conversations for parts in each))
    assert await uses(engine) == [8, 12], "of a message that has it twice, once"
    pages = [(await service.container.messages.page(service.tenant, one, ALL))[0] for one in conversations[:2]]
    erase = service.container.erasure.erase
    erasures = [erase(service.tenant, one.conversation_id, one.id) for page in pages for one in page]
    appends = [add(service, conversations[2], media()) for _ in range(3)]
    await asyncio.gather(service.container.conversations.delete(service.tenant, conversations[3]), *erasures, *appends)
    assert await uses(engine) == [2, 6]
    await service.container.conversations.delete(service.tenant, conversations[2])
    assert await uses(engine) == [], "with the last of its messages a content goes"


async def test_a_process_of_the_version_before_erases_data_too(service: Service, engine: AsyncEngine) -> None:
    """The version before does not know contents: it only writes the tombstone."""
    conversation = await service.conversation()
    await add(service, conversation, media())
    assert await uses(engine) == [1]
    await execute(engine, "UPDATE messages SET content = '', parts = '[]', status = 'erased'")
    assert await uses(engine) == []
    await execute(engine, "DELETE FROM conversations")


async def test_a_fork_counts_up_and_keeps_the_data_when_the_other_is_deleted(
    service: Service, engine: AsyncEngine
) -> None:
    conversation = await service.conversation()
    await add(service, conversation, media())
    place = ForkPoint(conversation_id=conversation, through_seq=1)
    fork = await service.container.forks.fork(service.tenant, place, Idem(key="k", fingerprint="f"))
    assert await uses(engine) == [2]
    await service.container.conversations.delete(service.tenant, conversation)
    assert await parts_of(service, fork) == [[media()]]
    assert await uses(engine) == [1]


async def test_what_is_appended_once_more_after_its_last_message_was_erased_is_there(
    service: Service, engine: AsyncEngine
) -> None:
    conversation = await service.conversation()
    first = await add(service, conversation, media())
    await service.container.erasure.erase(service.tenant, conversation, first.id)
    await add(service, conversation, media())
    assert await parts_of(service, conversation) == [[], [media()]]
    assert await uses(engine) == [1]


async def test_data_of_the_version_before_is_read_where_it_is_and_moved_step_by_step(
    service: Service, begin: UnitOfWorkFactory, engine: AsyncEngine, database_url: str
) -> None:
    conversation = await service.conversation()
    given: list[list[Part]] = [
        [media()],
        [],
        [{"type": "text", "text": 'says "media" and "data"'}],
        [media(), media("odd")],
        [media()],
    ]
    for parts in given:
        await add(service, conversation, *parts)
    for seq, parts in enumerate(given, 1):
        written = json.dumps(parts)
        await execute(engine, "UPDATE messages SET parts = :p, contents = '{}' WHERE seq = :s", p=written, s=seq)
    assert await uses(engine) == []
    assert await parts_of(service, conversation) == given

    moved, place = await move_step(begin, None, limit=2)
    assert (moved, await uses(engine)) == (1, [1])
    assert place is not None
    assert await parts_of(service, conversation) == given, "half of it is moved"
    assert (await move_step(begin, place, limit=2))[0] == 1, "a text that only names it is none"
    assert await uses(engine) == [1, 2]
    command = await asyncio.to_thread(CliRunner().invoke, app, ["move-media"], env={"DATABASE_URL": database_url})
    assert command.output == "Data of 1 message moved; nothing is left to move.\n", "begun anew it goes on"
    assert await uses(engine) == [1, 3]
    assert await parts_of(service, conversation) == given
    assert await move_step(begin, None) == (0, None), "once more does nothing"
    for message in (await service.container.messages.page(service.tenant, conversation, ALL))[0]:
        await service.container.erasure.erase(service.tenant, conversation, message.id)
    assert await uses(engine) == []


async def test_a_page_and_an_export_end_by_bytes(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = await service.conversation(context_window=100_000)
    large = base64.b64encode(b"x" * 60_000).decode()
    for number in range(5):
        await add(service, conversation, media(large), content=f"{number}")
    await add(service, conversation, content="y" * 100_000)
    whole = await parts_of(service, conversation)
    monkeypatch.setattr(sizes, "PAGE_BYTES", 170_000)
    seqs, page = [], ALL
    while True:
        found, cursor = await service.container.messages.page(service.tenant, conversation, page)
        seqs.append([message.seq for message in found])
        if cursor is None:
            break
        page = Page(limit=100, order="asc", after=cursor)
    assert seqs == [[1, 2], [3, 4], [5], [6]]
    exported = [
        list(message.parts)
        async for message in service.container.export.messages(service.tenant, conversation, through_seq=9)
    ]
    assert exported == whole
    monkeypatch.setattr(sizes, "PAGE_BYTES", 10)
    found, cursor = await service.container.messages.page(service.tenant, conversation, ALL)
    assert ([message.seq for message in found], cursor is not None) == ([1], True), "one at least"


async def test_words_count_once_towards_a_page(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = await service.conversation(context_window=100_000)
    for _ in range(5):
        await add(service, conversation, content="y" * 10_000)
    await add(service, conversation, {"type": "text", "text": "z" * 10_000})
    monkeypatch.setattr(sizes, "PAGE_BYTES", 40_500)
    found, _ = await service.container.messages.page(service.tenant, conversation, ALL)
    assert [message.seq for message in found] == [1, 2, 3, 4]
    rest, cursor = await service.container.messages.page(service.tenant, conversation, Page(limit=100, order="desc"))
    assert ([message.seq for message in rest], cursor is not None) == ([6, 5, 4, 3], True)


@pytest.mark.long
async def test_many_media_without_tokens_end_pages_early_and_leave_the_chat_alive(
    begin: UnitOfWorkFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "PAGE_BYTES", 1_000_000)
    chat = ScriptedChatModel("Twenty pictures.")
    images = [base64.b64encode(bytes([number]) * 150_000).decode() for number in range(20)]
    async with keyed(begin, chat=chat, max_media_bytes=1_000_000) as process:
        _, secret = await process.key("albums")
        async with process.client(secret) as http:
            path = f"/conversations/{(await http.post('/conversations', json={})).json()['id']}"
            for number, image in enumerate(images):
                part = {**media(image), "tokens": 0}
                said = {"role": "user", "content": f"{number}", "parts": [part]}
                appended = await http.post(f"{path}/messages", json=said)
                assert appended.json()["parts"] == [part]
            page = await http.get(f"{path}/messages", params={"limit": 100, "order": "asc"})
            assert len(page.content) < 1_010_000
            assert (len(page.json()["data"]), page.json()["has_more"]) == (4, True)
            exported = (await http.get(f"{path}/export")).json()
            assert [message["parts"][0]["data"] for message in exported["messages"]] == images
            context = await http.get(f"{path}/context")
            assert len(context.content) < 1_020_000
            assert context.json()["gauge"]["tokens"] < 1_000, "nothing is due by its tokens"
            answered = (await http.post(f"{path}/chat", json={"content": "How many?"})).json()
    assert (answered["reply"]["content"], answered["warnings"]) == ("Twenty pictures.", ["media_left_out"])
    parts = [part for message in chat.requests[0].messages for part in message.parts]
    assert [part["data"] for part in parts[-5:]] == images[-5:]
    assert {part["type"] for part in parts[:-5]} == {"text"}


async def test_the_oldest_media_of_a_context_become_words_and_only_the_newest_are_loaded(
    begin: UnitOfWorkFactory, tenant: UUID, service: Service
) -> None:
    conversation = await service.conversation()
    images = [base64.b64encode(bytes([number]) * 3_000).decode() for number in range(5)]
    for number, image in enumerate(images):
        await add(service, conversation, {**media(image), "tokens": 0}, content=f"{number}")
    context = await service.container.context.assemble(tenant, conversation)
    served = [part for message in context.messages for part in message.parts]
    assert [part.get("data") for part in served] == images, "as long as there is room, all of them"
    assert "media_left_out" not in context.warnings

    narrow = Service(begin, tenant, settings=Settings(max_media_bytes=9_000))
    context = await narrow.container.context.assemble(tenant, conversation)
    served = [part for message in context.messages for part in message.parts]
    assert [part.get("data") for part in served[-2:]] == images[-2:]
    assert [part["text"] for part in served[:-2]] == [
        f"[attached: image/png, 3.0 kB, a.png; left out for want of room, it stands in message #{seq}]"
        for seq in (1, 2, 3)
    ]
    assert context.warnings == ("media_left_out",)


class _Picky(ScriptedChatModel):
    """Refuses data that it cannot read, as providers do with a picture that is none."""

    unreadable: str = base64.b64encode(b"no picture").decode()

    async def step(self, request: ChatRequest) -> AsyncIterator[StepEvent]:
        if any(part.get("data") == self.unreadable for message in request.messages for part in message.parts):
            self.requests.append(request)
            raise ModelUnavailableError("bad_request", retryable=False, status=400)
        async for event in super().step(request):
            yield event


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("pictures", "asked", "sent"),
    [
        ((_Picky.unreadable, PNG), 2, [None, PNG]),
        ((PNG, _Picky.unreadable), 3, [None, None]),
        ((PNG, PNG), 1, [PNG, PNG]),  # control
    ],
    ids=["an-older-one", "the-newest", "none"],
)
async def test_a_picture_that_the_provider_refuses_ends_no_chat(
    begin: UnitOfWorkFactory, pictures: Sequence[str], asked: int, sent: list[str | None]
) -> None:
    chat = _Picky("I see.")
    async with keyed(begin, chat=chat) as process:
        _, secret = await process.key("pictures")
        async with process.client(secret) as http:
            path = f"/conversations/{(await http.post('/conversations', json={})).json()['id']}"
            for picture in pictures:
                said = {"role": "user", "content": "look", "parts": [media(picture)]}
                assert (await http.post(f"{path}/messages", json=said)).is_success
            answered = (await http.post(f"{path}/chat", json={"content": "What is it?"})).json()
            stored = (await http.get(f"{path}/messages", params={"order": "asc"})).json()["data"]
    refused = sent != list(pictures)
    assert (answered["reply"]["content"], answered["warnings"]) == ("I see.", ["media_refused"] if refused else [])
    assert len(chat.requests) == asked
    parts = [part for message in chat.requests[-1].messages for part in message.parts]
    assert [part.get("data") for part in parts] == sent
    assert {part["text"] for part in parts if "data" not in part} <= {"[attached: image/png, a.png]"}
    assert [message["parts"][0]["data"] for message in stored[: len(pictures)]] == list(pictures), "nothing is lost"


async def test_a_request_that_is_refused_for_something_else_is_not_sent_for_ever(begin: UnitOfWorkFactory) -> None:
    chat = ScriptedChatModel(ModelUnavailableError("bad_request", retryable=False, status=400))
    async with keyed(begin, chat=chat) as process:
        _, secret = await process.key("refused")
        async with process.client(secret) as http:
            path = f"/conversations/{(await http.post('/conversations', json={})).json()['id']}"
            assert (await http.post(f"{path}/chat", json={"content": "Hello"})).status_code == 503
            assert len(chat.requests) == 1, "there is nothing to leave out"
            with_picture = {"content": "look", "parts": [media()]}
            failed = await http.post(f"{path}/chat", json=with_picture)
    assert (failed.json()["reason"], len(chat.requests)) == ("bad_request", 3)

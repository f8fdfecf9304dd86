"""What a request may not do, with each guard taken out: fields, bodies, hosts, keys, models and places in a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, nullcontext
from itertools import takewhile
from operator import eq
from types import SimpleNamespace
from typing import Any, Final, Self
from uuid import UUID

import pytest
from pydantic import ConfigDict, ValidationError

from app.core.model.errors import InvalidInputError, ModelNotAllowedError, UnauthenticatedError
from app.core.model.records import Event
from app.http import hosts, strict_json
from app.http.fields import Input
from app.main import create_app
from app.providers.registry import ModelRegistry
from app.usecases.admin import keys
from app.usecases.admin.keys import KeyService
from app.usecases.history.events import EventFeed
from tests.cases import guarded
from tests.fakes import FakeClock, settle
from tests.unit.api_fakes import CONVERSATION, world
from tests.unit.test_events_feed import TENANT, Reader, Tables
from tests.unit.test_known_hosts import PATH, open_world

NOBODYS: Final = ("seq", "tenant_id", "compressed_state", "total", "last_seq", "boundary_seq")
"""Fields that no request may set."""
READERS: Final = 2_000


def bodies(of: type[Input] = Input) -> Iterator[type[Input]]:
    """Every model of a request's body."""
    for one in of.__subclasses__():
        yield one
        yield from bodies(one)


@guarded("52")
def test_no_body_takes_a_field_that_nobody_may_set(*, is_guarded: bool) -> None:
    """Control: bodies that pass over what they do not know."""
    create_app()  # it brings all of them
    found = [one for one in bodies() if one.__module__.startswith("app.")]
    assert len(found) > 10
    for body in found:
        taker = body if is_guarded else type(body.__name__, (body,), {"model_config": ConfigDict(extra="ignore")})
        for name in NOBODYS:
            assert (name in extra_fields(taker, {name: 7})) == is_guarded, (body, name)


def extra_fields(body: type[Any], given: dict[str, Any]) -> list[str]:
    """The fields that are refused since there are none of that name."""
    try:
        body.model_validate(given)
    except ValidationError as error:
        return [str(one["loc"][0]) for one in error.errors() if one["type"] == "extra_forbidden"]
    return []


@guarded("56")
async def test_a_body_without_an_end_is_read_no_further_than_the_limit(*, is_guarded: bool) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(500):
            sent += 1
            yield b" " * 1_000

    api = world(max_body_bytes=10_000 if is_guarded else 10**9)
    async with api.client() as client:
        headers = {"Content-Type": "application/json"}
        response = await client.post("/conversations", content=endless(), headers=headers)
    assert (response.status_code == 413) == (sent <= 12) == is_guarded


@guarded("66-host")
async def test_a_page_whose_name_resolves_to_loopback_is_not_answered(
    monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    if not is_guarded:
        monkeypatch.setattr(hosts, "is_known", lambda *_: True)
    api = open_world()
    async with api.client(key=None) as client:
        response = await client.get(PATH, headers={"Host": "evil.example"})
    assert response.status_code == (421 if is_guarded else 200)
    assert (api.calls.made == []) == is_guarded


@guarded("66-post")
async def test_a_post_without_a_body_of_any_page_does_nothing(
    monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    if not is_guarded:
        monkeypatch.setattr(strict_json, "is_json", lambda _: True)
    api = open_world()
    async with api.client(key=None) as client:
        headers = {"Host": "localhost", "Content-Type": "text/plain"}
        response = await client.post(f"{PATH}/{CONVERSATION}/compact", headers=headers)
    assert (response.status_code == 415) == is_guarded
    assert (api.calls.made == []) == is_guarded


@guarded("65-refused")
async def test_a_model_that_is_not_allowed_is_not_built(monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool) -> None:
    """Control: without a list whatever a request names is built."""
    built: list[object] = []

    def noted(registry: ModelRegistry) -> None:
        built.append(registry)

    monkeypatch.setattr(ModelRegistry, "_opened_models", noted)
    models = ModelRegistry(allowed=["offline"] if is_guarded else None)
    with pytest.raises(ModelNotAllowedError if is_guarded else AttributeError):
        models.chat("openai:dearest")
    assert (built == []) == is_guarded


# --- keys


class Stored:
    """The table of keys with one key: looks like a unit of work."""

    def __init__(self, secret: str) -> None:
        self.digest = keys.hash_of(secret)
        self.looked_up: list[bytes] = []
        self.keys = self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def by_hash(self, digest: bytes) -> None:
        self.looked_up.append(digest)


@guarded("63")
async def test_what_is_compared_of_a_key_tells_nothing_of_how_much_of_it_was_right(
    monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
) -> None:
    """Keys are looked up by their hash: one with a single wrong character is as far off as any other.

    Control: whoever compares the keys themselves gets further the more characters are right.
    """
    if not is_guarded:
        monkeypatch.setattr(keys, "hash_of", str.encode)
    secret = "tl_" + "k7Qm2ZpX" * 5
    stored = Stored(secret)
    shell: Any = SimpleNamespace(clock=FakeClock(), uow=lambda _: stored)
    service = KeyService(shell, anonymous_allowed=False)
    for wrong in (secret[:-1] + "Y", secret[:-4] + "YYYY", "tl_" + "Y" * 40):
        with pytest.raises(UnauthenticatedError):
            await service.authenticate(wrong)
    right = [len([*takewhile(bool, map(eq, digest, stored.digest))]) for digest in stored.looked_up]
    assert (max(right) < 4) == is_guarded
    assert {len(digest) for digest in stored.looked_up} == {len(stored.digest)}


async def test_a_key_that_was_found_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []
    monkeypatch.setattr("app.usecases.admin.keys.hmac.compare_digest", lambda one, other: compared.append((one, other)))
    other = keys.hash_of("another")

    async def found(_: KeyService, __: bytes) -> Any:
        return SimpleNamespace(secret_hash=other)

    monkeypatch.setattr(KeyService, "_stored", found)
    shell: Any = SimpleNamespace(clock=FakeClock(), uow=None)
    with pytest.raises(UnauthenticatedError):
        await KeyService(shell, anonymous_allowed=False).authenticate("tl_one")
    assert compared == [(other, keys.hash_of("tl_one"))]


# --- events


@guarded("47")
async def test_away_for_events_10_to_19_each_comes_once(monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool) -> None:
    """Control: a feed that begins with the event that the client has already."""
    read = EventFeed._events_after

    async def with_the_last(feed: EventFeed, tenant: UUID, of: UUID, after: int) -> Sequence[Event]:
        return await read(feed, tenant, of, max(after - 1, 0))

    tables = Tables()
    await tables.append(19)
    if not is_guarded:
        monkeypatch.setattr(EventFeed, "_events_after", with_the_last)
    reader = Reader(tables, after=9)
    await settle()
    await reader.stop()
    assert (reader.numbers == list(range(10, 20))) == is_guarded


@guarded("50")
@pytest.mark.parametrize("after", [-1, 7, 2**63])
async def test_a_place_that_never_was_is_refused(
    monkeypatch: pytest.MonkeyPatch, after: int, *, is_guarded: bool
) -> None:
    async def believes_all(_: EventFeed, *__: object) -> int:
        return 2

    if not is_guarded:
        monkeypatch.setattr(EventFeed, "_checked_last_event", believes_all)
    tables = Tables()
    await tables.append(2)
    async with aclosing(tables.feed().follow(TENANT, tables.id, after)) as feed:
        with pytest.raises(InvalidInputError) if is_guarded else nullcontext():
            assert await anext(feed) is None


@guarded("49")
async def test_whoever_waits_for_events_holds_no_session(monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool) -> None:
    """Control: a feed that reads and waits within one unit of work."""
    held: list[Any] = []

    async def within_one(feed: EventFeed, tenant: UUID, of: UUID, after: int) -> Sequence[Event]:
        held.append(await feed._uow(tenant).__aenter__())
        found: Sequence[Event] = await held[-1].events.after(of, after, limit=9)
        return found

    if not is_guarded:
        monkeypatch.setattr(EventFeed, "_events_after", within_one)
    tables = Tables()
    readers = [asyncio.ensure_future(_first(tables)) for _ in range(READERS if is_guarded else 20)]
    while tables.bus.subscribers < len(readers):  # noqa: ASYNC110 - they tell nobody
        await asyncio.sleep(0)
    await settle()
    assert (tables.open == 0) == is_guarded
    await tables.append()
    assert {event.number for event in await asyncio.gather(*readers)} == {1}


async def _first(tables: Tables) -> Event:
    async with aclosing(tables.feed().follow(TENANT, tables.id, 0)) as feed:
        async for event in feed:
            if event is not None:
                return event
    raise AssertionError("the feed ended")

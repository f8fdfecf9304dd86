"""A release changes a preset: conversations that exist keep their policy, over HTTP in process, with the database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final
from uuid import UUID

import httpx
import pytest

from app.storage.unit_of_work import UnitOfWorkFactory
from tests.builders import changed_preset
from tests.integration.test_request_limits import default_tenant, good, refused, serving

Json = dict[str, Any]

WINDOW: Final[Json] = {"context_window": 4_000}
NEW: Final[Json] = {
    "target": 0.3,
    "triggers": [{"name": "background", "on": "stored", "at": {"share": 0.5}, "run": "background"}],
}
WORDS: Final = "Some wind from the west, and the grey harbour in the morning. " * 8


@pytest.fixture
async def http(begin: UnitOfWorkFactory) -> AsyncIterator[httpx.AsyncClient]:
    """The service with the offline model."""
    async with serving(begin) as client:
        yield client


async def begun(http: httpx.AsyncClient, **body: Any) -> str:
    return f"/conversations/{good(await http.post('/conversations', json={'policy': WINDOW, **body}))['id']}"


async def read(http: httpx.AsyncClient, path: str) -> tuple[int, float, int | None, int | None]:
    """The version of its preset, its target, and where it compacts."""
    found = good(await http.get(path))
    return (
        found["preset_version"],
        found["policy"]["target"],
        found["context"]["background_at"],
        found["context"]["sync_at"],
    )


async def compacted(http: httpx.AsyncClient, path: str) -> list[str]:
    return [one["trigger"] for one in good(await http.get(f"{path}/compactions"))["data"]]


async def test_conversations_keep_the_policy_with_which_they_were_made(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await begun(http)
    as_it_was = await read(http, old)
    changed = changed_preset(monkeypatch, "semantic", **NEW)
    new = await begun(http)
    assert as_it_was == await read(http, old) == (changed.version - 1, 0.6, 2_142, 2_601)
    assert await read(http, new) == (changed.version, 0.3, 1_530, None)
    (listed,) = [one for one in good(await http.get("/presets"))["data"] if one["name"] == "semantic"]
    assert (listed["version"], listed["policy"]["target"]) == (changed.version, 0.3)
    assert [(one["version"], one["policy"]["target"]) for one in listed["earlier"]][-1] == (changed.version - 1, 0.6)

    said = [{"role": role, "content": WORDS} for role in ("user", "assistant") * 8]
    for path in (old, new):
        good(await http.post(f"{path}/messages/batch", json={"messages": said}))
        assert 1_530 < good(await http.get(f"{path}/usage"))["tokens"] < 2_142
    assert (await compacted(http, old), await compacted(http, new)) == ([], ["background"])

    for changes in ({"title": "Harbour"}, {"policy": {**WINDOW, "recall": "off"}}):
        good(await http.patch(old, json=changes))
        assert await read(http, old) == as_it_was, "no other change moves it"
    good(await http.patch(old, json={"preset": "semantic"}))
    assert await read(http, old) == (changed.version, 0.3, 1_530, None)
    assert good(await http.get(old))["policy"]["recall"] == "off", "its own overrides stay"
    assert await compacted(http, old) == ["background"]


async def test_an_imported_conversation_has_the_version_of_its_export(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported = good(await http.get(f"{await begun(http)}/export"))["conversation"]
    changed = changed_preset(monkeypatch, "semantic", **NEW)
    kept = await begun(http, preset="semantic", preset_version=exported["preset_version"])
    assert await read(http, kept) == (changed.version - 1, 0.6, 2_142, 2_601)
    for wrong in (0, "1", 2**31):
        body = {"preset": "semantic", "preset_version": wrong}
        refused(await http.post("/conversations", json=body), 422, "invalid_input", "preset_version")


async def test_a_fork_has_the_version_of_its_source(http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    made = changed_preset(monkeypatch, "semantic", **NEW)
    first = good(await http.post("/v1/responses", json={"model": "throughline", "input": "Good morning."}))
    changed = changed_preset(monkeypatch, "semantic", **NEW)
    for said in ("The harbour is grey.", "The harbour is blue."):
        body = {"model": "throughline", "input": said, "previous_response_id": first["id"]}
        good(await http.post("/v1/responses", json=body))
    good(await http.post("/v1/responses", json={"model": "throughline", "input": "Good evening."}))
    found = good(await http.get("/conversations"))["data"]
    expected = [changed.version, made.version, made.version]
    assert [one["preset_version"] for one in found] == expected, "the newest is no fork"


async def test_a_version_that_is_unknown_here_is_served_by_the_newest_known_one(
    http: httpx.AsyncClient, begin: UnitOfWorkFactory
) -> None:
    path = await begun(http)
    present = await read(http, path)
    async with begin(await default_tenant(begin)) as uow:
        await uow.conversations.update(UUID(path.rpartition("/")[2]), preset_version=70)
        await uow.commit()
    assert await read(http, path) == (70, *present[1:])
    warning = "preset_version_unknown:70"
    assert good(await http.post(f"{path}/chat", json={"content": "Good morning."}))["warnings"] == [warning]
    assert good(await http.get(f"{path}/context"))["warnings"] == [warning]
    good(await http.patch(path, json={"preset": "semantic"}))
    assert (await read(http, path))[0] == present[0]
    assert good(await http.get(f"{path}/context"))["warnings"] == []

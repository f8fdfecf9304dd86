"""What a request or a policy may name, and how large a merge may grow; over HTTP in process, with the database."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.bootstrap import Container, Parts, make_models
from app.infrastructure.clock import SystemClock
from app.main import create_app
from app.settings import Settings
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.compaction.chunk import fallback_of
from app.usecases.history import conversations
from app.usecases.shared.shell import Shell
from tests.cases import guarded
from tests.fakes import FakeJobQueue, LocalTurnStreams, well
from tests.integration.services import PollingBus

NOT_ALLOWED = "openai:dearest"
OFFLINE_LIMIT = 1_000_000
SUMMARIZERS = ("chat_model", "compaction_model")

Json = dict[str, Any]


async def _yes() -> bool:
    return True


def composed(begin: UnitOfWorkFactory, **settings: Any) -> Container:
    """The services with the models of these settings."""
    chosen = Settings(_env_file=None, embedded=True, **settings)
    parts = Parts(
        uow=begin,
        bus=PollingBus(),
        queue=FakeJobQueue(),
        streams=LocalTurnStreams(),
        models=make_models(chosen),
        clock=SystemClock(),
        database_state=well,
        row_security=_yes,
    )
    return Container(chosen, parts, "process:one")


@asynccontextmanager
async def serving(begin: UnitOfWorkFactory, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the whole application in open mode."""
    container = composed(begin, **settings)
    transport = httpx.ASGITransport(create_app(container=container))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client
    await container.close()


@pytest.fixture
async def http(begin: UnitOfWorkFactory) -> AsyncIterator[httpx.AsyncClient]:
    """The service as it starts without a key."""
    async with serving(begin) as client:
        yield client


def good(response: httpx.Response) -> Json:
    assert response.is_success, response.text
    found: Json = response.json()
    return found


def refused(response: httpx.Response, status: int, code: str, *named: str) -> Json:
    problem: Json = response.json()
    assert (response.status_code, problem["code"]) == (status, code), problem
    assert [item["field"] for item in problem["errors"]] == list(named)
    return problem


async def begun(http: httpx.AsyncClient, **body: Any) -> str:
    path = f"/conversations/{good(await http.post('/conversations', json=body))['id']}"
    good(await http.post(f"{path}/messages", json={"role": "assistant", "content": "Good morning."}))
    return path


async def stored(begin: UnitOfWorkFactory, http: httpx.AsyncClient, **policy: Any) -> str:
    """A conversation whose policy was set when the settings were others."""
    path = await begun(http)
    tenant = await default_tenant(begin)
    async with begin(tenant) as uow:
        await uow.conversations.update(UUID(path.rpartition("/")[2]), policy=policy)
        await uow.commit()
    return path


async def default_tenant(begin: UnitOfWorkFactory) -> UUID:
    async with begin(None) as uow:
        tenant = await uow.keys.tenant_by_name("default")
    assert tenant is not None
    return tenant


class TestModels:
    @pytest.mark.case("65-refused")
    async def test_a_chat_with_another_model_stores_nothing(self, http: httpx.AsyncClient) -> None:
        path = await begun(http)
        before = good(await http.get(f"{path}/messages"))
        problem = refused(
            await http.post(f"{path}/chat", json={"content": "Hi", "model": NOT_ALLOWED}),
            422,
            "model_not_allowed",
            "model",
        )
        assert problem["allowed"] == ["offline"]
        assert good(await http.get(f"{path}/messages")) == before

    async def test_control_an_allowed_model_answers(self, http: httpx.AsyncClient) -> None:
        path = await begun(http)
        answer = good(await http.post(f"{path}/chat", json={"content": "Hi", "model": "offline"}))
        assert answer["reply"]["model"] == "offline"

    async def test_a_policy_that_names_another_is_not_stored(self, http: httpx.AsyncClient) -> None:
        body = {"policy": {"fallback_model": NOT_ALLOWED}}
        refused(await http.post("/conversations", json=body), 422, "model_not_allowed", "policy.fallback_model")
        path = await begun(http)
        refused(await http.patch(path, json=body), 422, "model_not_allowed", "policy.fallback_model")
        assert good(await http.get(path))["policy"]["fallback_model"] is None
        assert good(await http.patch(path, json={"policy": {"fallback_model": "offline"}}))

    async def test_a_verifier_is_one_of_the_allowed_language_models(self, begin: UnitOfWorkFactory) -> None:
        async with serving(begin, models=["offline", "openai:judge"], OPENAI_API_KEY="k") as http:
            path, body = await begun(http), {"policy": {"verifier_model": NOT_ALLOWED}}
            for asked in (http.post("/conversations", json=body), http.patch(path, json=body)):
                problem = refused(await asked, 422, "model_not_allowed", "policy.verifier_model")
                assert problem["allowed"] == ["offline", "openai:judge"]
            quotes = {"policy": {"verifier_model": "offline"}}
            problem = refused(await http.patch(path, json=quotes), 422, "policy_invalid", "policy.verifier_model")
            assert 'set verify to "off"' in problem["errors"][0]["message"]
            judging = good(await http.patch(path, json={"policy": {"verifier_model": "openai:judge"}}))
            assert judging["policy"]["verifier_model"] == "openai:judge"

    async def test_one_that_cannot_be_built_is_named(self, begin: UnitOfWorkFactory) -> None:
        async with serving(begin, models=["offline", "deepseek:x"]) as http:
            body = {"policy": {"fallback_model": "deepseek:x"}}
            problem = refused(
                await http.post("/conversations", json=body), 422, "policy_invalid", "policy.fallback_model"
            )
            assert "THROUGHLINE_AMBIENT_CREDENTIALS" in problem["detail"]
            path = await begun(http)
            asked = {"content": "Hi", "model": "deepseek:x"}
            refused(await http.post(f"{path}/chat", json=asked), 422, "invalid_input", "model")

    async def test_a_stored_one_is_a_warning_and_the_configured_model_takes_its_place(
        self, begin: UnitOfWorkFactory, http: httpx.AsyncClient
    ) -> None:
        path = await stored(begin, http, fallback_model=NOT_ALLOWED)
        said = good(await http.post(f"{path}/chat", json={"content": "Hi"}))
        assert said["warnings"] == [f"model_not_allowed:{NOT_ALLOWED}"]
        assert good(await http.get(f"{path}/context"))["warnings"] == said["warnings"]
        assert good(await http.patch(path, json={"title": "Still changeable", "preset": "research"}))
        assert good(await http.post(f"{path}/compact", json={}))["status"] in {"applied", "skipped"}

    async def test_control_without_it_there_is_no_warning(self, http: httpx.AsyncClient) -> None:
        path = await begun(http)
        assert good(await http.post(f"{path}/chat", json={"content": "Hi"}))["warnings"] == []

    async def test_the_configured_model_is_the_fallback_of_a_chat_model(
        self, begin: UnitOfWorkFactory, http: httpx.AsyncClient
    ) -> None:
        path = await stored(begin, http, fallback_model=NOT_ALLOWED, summarizer="chat_model")
        names = {"chat_model": "openai:chats", "compaction_model": "offline", "OPENAI_API_KEY": "k"}
        found = {summarizer: await self.fallback(begin, path, names, summarizer) for summarizer in SUMMARIZERS}
        assert found == {"chat_model": "offline", "compaction_model": None}

    async def fallback(
        self, begin: UnitOfWorkFactory, path: str, settings: Mapping[str, Any], summarizer: str
    ) -> str | None:
        container = composed(begin, **settings)
        shell: Shell = container.conversations._shell
        async with begin(await default_tenant(begin)) as uow:
            row = await uow.conversations.get(UUID(path.rpartition("/")[2]))
        policy = {**row.policy, "summarizer": summarizer}
        fallback = await fallback_of(shell, shell.resolver(replace(row, policy=policy)))
        await container.close()
        return None if fallback is None else fallback.profile.name


class TestTheWindow:
    @pytest.mark.parametrize("window", [OFFLINE_LIMIT + 1, 100_000_000])
    async def test_one_above_the_model_s_own_is_refused_with_both_numbers(
        self, http: httpx.AsyncClient, window: int
    ) -> None:
        body = {"policy": {"context_window": window}}
        path = await begun(http)
        for answer in (await http.post("/conversations", json=body), await http.patch(path, json=body)):
            detail = refused(answer, 422, "policy_invalid", "policy.context_window")["detail"]
            assert str(window) in detail
            assert str(OFFLINE_LIMIT) in detail
        assert good(await http.get(path))["policy"]["context_window"] is None

    async def test_control_the_model_s_own_is_taken(self, http: httpx.AsyncClient) -> None:
        assert good(await http.post("/conversations", json={"policy": {"context_window": OFFLINE_LIMIT}}))

    async def test_a_stored_one_is_clamped_with_a_warning(
        self, begin: UnitOfWorkFactory, http: httpx.AsyncClient
    ) -> None:
        path = await stored(begin, http, context_window=100_000_000)
        own = good(await http.get(f"{await begun(http)}/usage"))
        clamped = good(await http.get(f"{path}/usage"))
        assert (clamped["window"], clamped["budget"]) == (own["window"], own["budget"])
        warning = f"context_window_clamped:{OFFLINE_LIMIT}"
        assert good(await http.get(f"{path}/context"))["warnings"] == [warning]
        assert good(await http.post(f"{path}/chat", json={"content": "Hi"}))["warnings"] == [warning]
        assert good(await http.patch(path, json={"title": "Still changeable"}))

    async def test_a_preset_s_own_window_is_clamped_and_never_refused(self, begin: UnitOfWorkFactory) -> None:
        async with serving(begin, OPENAI_API_KEY="k", chat_model="openai:own", model_input_limit=4_000) as http:
            path = await begun(http, preset="sessions")
            assert good(await http.get(f"{path}/usage"))["window"] == 4_000
            refused(
                await http.patch(path, json={"policy": {"context_window": 8_000}}),
                422,
                "policy_invalid",
                "policy.context_window",
            )

    async def test_a_limit_that_is_only_guessed_refuses_nothing(self, begin: UnitOfWorkFactory) -> None:
        async with serving(begin, OPENAI_API_KEY="k", chat_model="openai:nobody-knows") as http:
            path = await begun(http, policy={"context_window": 200_000})
            assert good(await http.get(f"{path}/usage"))["window"] > 128_000


class TestMerges:
    @guarded("67", is_control_long=True)
    async def test_what_grows_by_many_small_patches_ends_at_its_limit(
        self, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, *, is_guarded: bool
    ) -> None:
        """Control: whoever looks at each patch alone never refuses one."""
        if not is_guarded:
            monkeypatch.setattr(conversations, "MERGED_BYTES", {"metadata": 10**9})
        path, taken = await begun(http), 0
        for number in range(24):
            answer = await http.patch(path, json={"metadata": {f"key {number}": "x" * 1_000}})
            if not answer.is_success:
                refused(answer, 422, "invalid_input", "metadata")
                break
            taken += 1
        assert (taken < 17) == is_guarded
        assert len(good(await http.get(path))["metadata"]) == taken

    @pytest.mark.parametrize(("field", "limit"), [("metadata", 16_384), ("scratchpad", 262_144)])
    async def test_the_limit_holds_for_the_merged_value(self, http: httpx.AsyncClient, field: str, limit: int) -> None:
        path = await begun(http)
        part = "x" * (limit // 3)
        for name in ("a", "b"):
            good(await http.patch(path, json={field: {name: part}}))
        before = good(await http.get(path))
        answer = await http.patch(path, json={field: {"c": part}, "title": "New"})
        detail = refused(answer, 422, "invalid_input", field)["detail"]
        assert str(limit) in detail
        assert "null" in detail
        assert good(await http.get(path)) == before
        assert len(json.dumps(before[field], separators=(",", ":"))) <= limit
        kept = good(await http.patch(path, json={field: {"a": None, "c": part}}))[field]
        assert kept.keys() == {"b", "c"}

    async def test_nested_members_count(self, http: httpx.AsyncClient) -> None:
        path = await begun(http)
        for number in range(3):
            answer = await http.patch(path, json={"metadata": {"a": {"b": {str(number): "é" * 4_000}}}})
        refused(answer, 422, "invalid_input", "metadata")

    async def test_exactly_the_limit_is_taken(self, http: httpx.AsyncClient) -> None:
        path = await begun(http, metadata={"a": "x" * 8_000})
        rest = 16_384 - len(json.dumps({"a": "x" * 8_000, "b": ""}, separators=(",", ":")))
        refused(await http.patch(path, json={"metadata": {"b": "x" * (rest + 1)}}), 422, "invalid_input", "metadata")
        assert good(await http.patch(path, json={"metadata": {"b": "x" * rest}}))

    async def test_what_is_too_large_already_may_shrink(
        self, begin: UnitOfWorkFactory, http: httpx.AsyncClient
    ) -> None:
        path = await begun(http)
        async with begin(await default_tenant(begin)) as uow:
            grown = dict.fromkeys("abc", "x" * 16_000)
            await uow.conversations.update(UUID(path.rpartition("/")[2]), metadata=grown)
            await uow.commit()
        refused(await http.patch(path, json={"metadata": {"d": "x"}}), 422, "invalid_input", "metadata")
        assert good(await http.patch(path, json={"metadata": {"a": None}}))["metadata"].keys() == {"b", "c"}


class TestShortForms:
    @pytest.mark.parametrize(("form", "trigger"), [("background_at", "background"), ("sync_at", "sync")])
    async def test_null_switches_the_trigger_off(self, http: httpx.AsyncClient, form: str, trigger: str) -> None:
        path = await begun(http)
        assert trigger in {item["name"] for item in good(await http.get(path))["policy"]["triggers"]}
        changed = good(await http.patch(path, json={"policy": {form: None}}))
        assert trigger not in {item["name"] for item in changed["policy"]["triggers"]}
        assert changed["context"][form] is None
        assert len(changed["policy"]["triggers"]) == 1

    async def test_both_off_is_refused_only_where_nothing_is_truncated(self, http: httpx.AsyncClient) -> None:
        off: Json = {"background_at": None, "sync_at": None}
        assert good(await http.post("/conversations", json={"policy": off}))["policy"]["triggers"] == []
        body = {"policy": {**off, "on_failure": "keep_full"}}
        refused(
            await http.post("/conversations", json=body),
            422,
            "policy_invalid",
            "policy.background_at",
            "policy.sync_at",
        )
        path = await begun(http, policy=off)
        refused(await http.patch(path, json=body), 422, "policy_invalid", "policy.background_at", "policy.sync_at")

    async def test_a_preset_that_keeps_all_needs_another_trigger(self, http: httpx.AsyncClient) -> None:
        assert good(await http.post("/conversations", json={"preset": "turn_end", "policy": {"sync_at": None}}))
        body = {"preset": "handoff", "policy": {"sync_at": None, "max_tokens": -1}}
        refused(await http.post("/conversations", json=body), 422, "policy_invalid", "policy.sync_at")

    async def test_a_range_that_is_not_finished_is_said_so(self, http: httpx.AsyncClient) -> None:
        path = await begun(http)
        body = {"from_seq": 1, "to_seq": 2, "level": "brief"}
        problem = refused(await http.post(f"{path}/segments", json=body), 422, "not_folded", "to_seq")
        assert "choose an earlier range" in problem["detail"]

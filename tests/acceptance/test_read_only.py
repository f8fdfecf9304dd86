"""While Postgres takes no writes, everything stored can be read, exported and searched; only writes are refused.

The database is made read-only by a setting, as an operator does it. A standby refuses writes with the same error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import httpx
import pytest
from sqlalchemy.engine import make_url

from app.devserver import Endpoints
from app.usecases.shared import optional_writes
from tests.acceptance.chaos import own_database
from tests.acceptance.conftest import own_redis
from tests.acceptance.local import local_service
from tests.acceptance.service import Service, until
from tests.acceptance.talk import MANUAL, Json, Talk, good, lines, refused
from tests.acceptance.test_security import ALL_ROUTES, attached, call
from tests.servers import execute_sql

READS: Final = [path for method, path in ALL_ROUTES if method == "get" and not path.endswith("/events")]
LIVE: Final = {"/readyz", "/metrics", "/stats", "/limits", "/conversations/{conversation_id}/stats"}
"""Paths whose answers tell of the present, so that they are not the same a moment later."""
SMALL: Final = 300
"""A budget in which a fresh conversation has no room, so that its anchors are needed."""
DECISION: Final = "We decided to keep everything in Postgres."


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A service over a database that takes no writes, and what it answered before."""

    service: Service
    servers: Endpoints
    folded: Talk
    """A conversation with a state."""
    fresh: Talk
    """A conversation that was never folded."""
    ids: dict[str, str]
    before: dict[str, httpx.Response]

    @contextlib.contextmanager
    def writable(self) -> Iterator[None]:
        """Let the database take writes during the block."""
        set_read_only(self.servers, self.service, on=False)
        try:
            yield
        finally:
            set_read_only(self.servers, self.service, on=True)


def set_read_only(servers: Endpoints, service: Service, *, on: bool) -> None:
    """Make the service's database read-only or not, for every connection from now on; others are cut."""
    name = make_url(service.database_url).database
    execute_sql(
        servers.database_url, f"ALTER DATABASE {name} SET default_transaction_read_only = {'on' if on else 'off'}"
    )
    others = f"FROM pg_stat_activity WHERE datname = '{name}'"
    execute_sql(servers.database_url, f"SELECT pg_terminate_backend(pid) {others}")
    wanted = "read_only" if on else "ok"
    with service.client() as client:
        until(lambda: client.get("/readyz").json().get("postgres") == wanted, what=wanted)


def openai_ids(talk: Talk) -> dict[str, str]:
    conversation = f"conv_{talk.id.replace('-', '')}"
    made = good(talk.http.post("/v1/responses", json={"input": "What did we say?", "conversation": conversation}))
    return {"response_id": made["id"], "item_id": made["output"][-1]["id"], "model": "throughline"}


def read(standing_ids: dict[str, str], talk: Talk, path: str) -> httpx.Response:
    ids = dict(standing_ids)
    if path.startswith("/v1/"):
        ids["conversation_id"] = f"conv_{talk.id.replace('-', '')}"
    return call(talk.http, "get", path, ids)


@pytest.fixture(scope="module")
def standing(
    servers: Endpoints, database_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Standing]:
    folder = tmp_path_factory.mktemp("read-only")
    with (
        own_database(servers, database_template) as database_url,
        local_service(folder, database_url=database_url, redis_url=own_redis(servers), worker=False) as service,
    ):
        folded = Talk.begin(service, policy=MANUAL)
        folded.batch([*lines(40), ("user", DECISION), *lines(4, start=50)])
        folded.compact()
        fresh = Talk.begin(service, policy=MANUAL)
        fresh.batch([("user", DECISION), *lines(20)[1:]])
        ids = {
            "conversation_id": folded.id,
            "message_id": folded.history()[0]["id"],
            "compaction_id": folded.compactions()[0]["id"],
            "anchor_id": folded.get("/anchors")["data"][0]["id"],
            "segment_id": folded.get("/segments")["data"][0]["segment_id"],
            "user_id": "nobody",
            "file_id": attached(folded),
            **openai_ids(folded),
        }
        before = {path: read(ids, folded, path) for path in READS}
        set_read_only(servers, service, on=True)
        yield Standing(service=service, servers=servers, folded=folded, fresh=fresh, ids=ids, before=before)
        set_read_only(servers, service, on=False)


def content(response: httpx.Response) -> Any:
    is_json = response.headers.get("content-type", "").startswith("application/json")
    return response.json() if is_json else response.content


@pytest.mark.daily(1)
@pytest.mark.parametrize("path", READS)
@pytest.mark.case("35b")
def test_every_read_is_answered_as_before(standing: Standing, path: str) -> None:
    found = read(standing.ids, standing.folded, path)
    assert found.status_code == standing.before[path].status_code, found.text
    if path not in LIVE:
        assert content(found) == content(standing.before[path])


def test_readiness_says_why_nothing_is_written(standing: Standing) -> None:
    assert standing.folded.http.get("/readyz").json()["postgres"] == "read_only"


@pytest.mark.parametrize(("method", "path"), [("post", "/messages"), ("post", "/chat"), ("post", "/compact"),
                         ("patch", ""), ("delete", ""), ("post", "/segments")])  # fmt: skip
@pytest.mark.case("35b")
def test_control_a_write_is_refused_and_may_be_tried_again(standing: Standing, method: str, path: str) -> None:
    whole = f"/conversations/{{conversation_id}}{path}"
    refused_ = call(standing.folded.http, method, whole, standing.ids)
    assert refused(refused_, 503, "dependency_unavailable")["retryable"]


@pytest.mark.case("35b")
def test_the_clients_way_of_asking_for_a_context_is_served(standing: Standing) -> None:
    """The clients send a key of idempotency with each ``POST``, and what is recalled would be counted."""
    ask = {"query": "What did we decide about Postgres?"}
    answer = good(standing.folded.post("/context", ask, Idempotency_Key="read-only"))
    assert answer["recalled"]
    refused(standing.folded.post("/context", {**ask, "compact": "if_needed"}), 503, "dependency_unavailable")


@pytest.mark.control("35b")
def test_control_if_what_a_read_would_write_were_no_option_it_would_fail(
    standing: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optional_writes, "DatabaseReadOnlyError", ZeroDivisionError)
    ask = {"query": "What did we decide about Postgres?"}
    refused(standing.folded.post("/context", ask, Idempotency_Key="control"), 503, "dependency_unavailable")


@pytest.mark.daily(1)
@pytest.mark.parametrize("level", ["full", "detailed", "brief", "tags"])
@pytest.mark.case("35b")
def test_a_level_that_is_not_stored_is_made_for_this_answer(standing: Standing, level: str) -> None:
    path = f"/segments/{standing.ids['segment_id']}"
    with standing.writable():
        stored = standing.folded.get(path, level=level)
        execute_sql(standing.service.database_url, "DELETE FROM segment_levels")
    assert standing.folded.get(path, level=level) == stored
    levels = execute_sql(standing.service.database_url, "SELECT count(*) FROM segment_levels")
    assert levels == [(0,)]


@pytest.mark.case("35b")
def test_due_anchors_are_told_of_instead_of_being_left_out(standing: Standing) -> None:
    """A list without them would say that there are none; a context says that some are missing."""
    with standing.writable():  # here, since the sweeper finds them in time
        fresh = Talk.begin(standing.service, policy=MANUAL)
        fresh.batch([("user", DECISION), *lines(20)[1:]])
    for path in ("/anchors", "/segments/anchors"):
        refused(fresh.http.get(fresh.path(path)), 503, "dependency_unavailable")
    assert "anchors_due" in fresh.get("/context", budget=SMALL)["warnings"]
    assert fresh.get("/segments")["data"] == []
    with standing.writable():
        found = fresh.get("/anchors")["data"]
    assert DECISION in [one["content"] for one in found]
    assert fresh.get("/anchors")["data"] == found
    assert "anchors_due" not in fresh.get("/context", budget=SMALL)["warnings"], "control: they are found"


def test_a_conversation_that_is_set_aside_stays_so(standing: Standing) -> None:
    talk = standing.fresh
    with standing.writable():
        execute_sql(
            standing.service.database_url,
            "INSERT INTO crashes (tenant_id, conversation_id, count, kind, set_aside_at)"
            " SELECT tenant_id, id, 2, 'context', now() FROM conversations",
        )
    refused(talk.http.get(talk.path("/search"), params={"q": "Postgres"}), 409, "conversation_set_aside")
    assert talk.get("/messages")["data"]
    with standing.writable():
        execute_sql(standing.service.database_url, "DELETE FROM crashes")
    assert talk.get("/search", q="Postgres")["data"], "control: it is not"


@pytest.mark.case("35b")
def test_an_export_that_cannot_be_recorded_is_logged(standing: Standing) -> None:
    talk = Talk(standing.service, standing.service.client(), {"id": standing.fresh.id})
    exported = good(talk.http.get(talk.path("/export")))
    assert len(exported["messages"]) == 20
    (line,) = [
        line
        for line in standing.service.processes[0].log.splitlines()
        if "audit.not_stored" in line and talk.id in line
    ]
    assert "action=conversation.exported" in line
    assert "actor=open" in line
    with standing.writable():
        before = len(entries(talk))
        good(talk.http.get(talk.path("/export")))
        assert len(entries(talk)) == before + 1, "control: on a database that takes writes"


def entries(talk: Talk) -> list[Json]:
    found: list[Json] = good(talk.http.get("/audit", params={"limit": 100}))["data"]
    return [one for one in found if (one["action"], one["object_id"]) == ("conversation.exported", talk.id)]

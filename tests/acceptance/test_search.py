"""``GET /conversations/{id}/search``: originals that fit, through the whole service."""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

import httpx
import pytest

from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import MANUAL, Json, Talk, good, lines, refused

KETTLE: Final = 'The copper kettle "Ragnhild" stands in the pantry. Nobody may touch it before noon.'
KEY: Final = "AKIA" + "QX7PLM2ZRT5VW9KD"
SECRET: Final = f"The vault opens with {KEY}, remember it."
QUERIES: Final = ("медные чайники", "储藏室", "🎉", '"in the pantry"', KEY)
SAID: Final = (KETTLE, SECRET, "Медный чайник свистит в кладовой.", "铜水壶在储藏室里。", "Great 🎉")


def search(talk: Talk, q: str, **params: Any) -> httpx.Response:
    return talk.http.get(talk.path("/search"), params={"q": q} | params)


def found(talk: Talk, q: str, **params: Any) -> list[Json]:
    hits: list[Json] = good(search(talk, q, **params))["data"]
    return hits


@pytest.fixture
def talk(start_talk: StartTalk, offline: Service) -> Talk:
    """A talk with five messages to be found among small talk."""
    talk = start_talk(offline, policy=MANUAL)
    talk.batch([*lines(10), *(("user", text) for text in SAID), *lines(10, 11)])
    return talk


def test_hits_are_originals_before_and_after_compaction(talk: Talk) -> None:
    (hit,) = found(talk, "copper kettles of Ragnhild")
    message = next(each for each in talk.history() if each["id"] == hit["message_id"])
    assert message["content"] == KETTLE
    assert hit == {
        "message_id": message["id"],
        "seq": message["seq"],
        "segment_id": None,
        "snippet": KETTLE,
        "score": hit["score"],
        "role": "user",
        "created_at": message["created_at"],
    }
    before = {query: found(talk, query) for query in QUERIES}
    assert [len(before[query]) for query in QUERIES[:-1]] == [1] * 4
    assert before[KEY][0]["snippet"] == SECRET
    assert talk.compact(keep_tail_messages=0)["status"] == "applied"
    after = {query: found(talk, query) for query in before}
    assert {query: [hit | {"segment_id": None} for hit in hits] for query, hits in after.items()} == before
    assert all(hit["segment_id"] for hits in after.values() for hit in hits)


def test_pages(talk: Talk) -> None:
    first = good(search(talk, "the", limit=3))
    whole = found(talk, '"the"', limit=100)
    assert (len(first["data"]), first["has_more"], first["next_cursor"] is not None) == (3, True, True)
    everything: list[Json] = []
    page: Json = {"has_more": True, "next_cursor": None}
    while page["has_more"]:
        page = good(search(talk, '"the"', limit=3, **({"after": page["next_cursor"]} if everything else {})))
        everything += page["data"]
    assert everything == whole
    assert len({hit["message_id"] for hit in everything}) == len(everything) > 3
    empty = good(search(talk, "unheardof"))
    assert empty == {"data": [], "next_cursor": None, "has_more": False}


def test_erased_is_never_found(talk: Talk) -> None:
    (hit,) = found(talk, "Ragnhild")
    assert talk.http.delete(talk.path(f"/messages/{hit['message_id']}")).status_code == 204
    for query in ("Ragnhild", '"in the pantry"', "agnhil", "copper kettle"):
        assert found(talk, query) == []


def test_what_is_out_of_contract(talk: Talk) -> None:
    for query in ("", "   ", '""'):
        assert refused(search(talk, query), 422, "invalid_input")["detail"] == "q cannot be empty"
    refused(talk.http.get(talk.path("/search")), 422, "invalid_input")
    refused(search(talk, "x" * 10_000), 422, "invalid_input")
    refused(search(talk, "a\0b"), 422, "invalid_input")
    refused(search(talk, "kettle", limit=0), 422, "invalid_input")
    refused(search(talk, "kettle", limit=101), 422, "invalid_input")
    refused(search(talk, "kettle", order="asc"), 422, "invalid_input")
    for cursor in ("nonsense", "WzFd", "Wy0xLDBd"):
        assert refused(search(talk, "kettle", after=cursor), 422, "invalid_input")["errors"][0]["field"] == "after"
    refused(talk.http.get(f"/conversations/{uuid4()}/search", params={"q": "kettle"}), 404, "not_found")


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    "query", ["%", "_", "\\", "'; DROP TABLE messages; --", '"' * 99, "(" * 500, "\u202e", "a" * 1_000]
)
def test_hostile_queries_are_queries(talk: Talk, query: str) -> None:
    answer = search(talk, query)
    assert answer.status_code in {200, 422}
    assert len(found(talk, "Ragnhild")) == 1

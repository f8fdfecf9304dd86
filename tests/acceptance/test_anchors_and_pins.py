"""Anchors and pins over HTTP: what must never be compressed away is served word for word on every path."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

import pytest

from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import (
    MANUAL,
    WINDOW,
    EventFollower,
    Json,
    Talk,
    block_of,
    good,
    lines,
    refused,
    served_seqs,
    text_of,
    weight_of,
)
from tests.gemini_server import Gemini

SECRET: Final = "The door code is 4711-Ж.\n\n  «Не забудь» – behind the third shelf <b>& under it</b> 🗝"
POSTGRES: Final = "Let's use Postgres for the order store."
MYSQL: Final = "No, let's use MySQL for the order store instead of Postgres."
ENDPOINT: Final = "My API endpoint is https://api.example.com/v2 and the limit is 500 requests."
PIN_LIMIT: Final = 306
RAMBLE: Final = {
    "user": "On walk {} the wind came from the west and the gulls of the harbour sat in a long row on the old wall.",
    "assistant": "Walk {} sounds lovely: gulls like to sit where the stones are warm, and a west wind brings mild air.",
}
OPEN: Final[Json] = {"protect": []}


def pin(talk: Talk, message: Json) -> Json:
    return good(talk.http.put(talk.path(f"/messages/{message['id']}/pin")))


def unpin(talk: Talk, message: Json) -> Json:
    return good(talk.http.delete(talk.path(f"/messages/{message['id']}/pin")))


def served(talk: Talk, seq: int) -> list[str]:
    return [item["content"] for item in talk.context()["messages"] if item["seq"] == seq]


def block(talk: Talk) -> str:
    found = block_of(talk.context())
    assert found is not None
    return found


def anchors_of(talk: Talk) -> str:
    """The anchors of the block, without its digests: they also tell what was said, as history."""
    text = block(talk)
    return text[text.index("<anchors>") : text.index("</anchors>")]


def anchors(talk: Talk, **params: Any) -> list[Json]:
    found: list[Json] = talk.get("/anchors", **{"limit": 100} | params)["data"]
    return found


def by_content(talk: Talk) -> dict[str, Json]:
    return {item["content"]: item for item in anchors(talk)}


def opened(start_talk: StartTalk, service: Service, **policy: Any) -> tuple[Talk, Json]:
    """A conversation whose third message matters; no rule protects anything in it."""
    talk = start_talk(service, policy={**OPEN, **policy})
    talk.batch(lines(2))
    return talk, talk.append(SECRET)


# The paths of failure 29; each leaves the third message covered or cut.


def ramble(talk: Talk, tokens: int) -> None:
    """Append talk without any commitment, in one batch, up to this size of the context."""
    size, said = talk.get("/usage")["tokens"], list[tuple[str, str]]()
    for number in itertools.count(1):
        pair = [(role, RAMBLE[role].format(number)) for role in ("user", "assistant")]
        size += weight_of(pair)
        if size >= tokens:
            break
        said += pair
    talk.batch(said)


def manually(talk: Talk) -> None:
    ramble(talk, 1_400)
    assert talk.compact()["status"] == "applied"


def in_the_background(talk: Talk) -> None:
    ramble(talk, 2_400)
    talk.wait_ended()
    assert talk.compactions()[0]["ran_in"] in {"worker", "sweeper"}


def inside_a_turn(talk: Talk) -> None:
    ramble(talk, 2_000)
    result = talk.chat(text_of(700))
    assert result["compaction"]["status"] == "applied"


class TestPins:
    @pytest.mark.daily(1)
    @pytest.mark.case("29")
    @pytest.mark.parametrize(
        ("path", "policy", "is_pinned"),
        [
            pytest.param(manually, MANUAL, True, id="manually"),
            pytest.param(in_the_background, WINDOW, True, id="in_the_background"),
            pytest.param(inside_a_turn, WINDOW, True, id="inside_a_turn"),
            pytest.param(manually, MANUAL, False, id="control-manually"),
            pytest.param(in_the_background, WINDOW, False, id="control-in_the_background", marks=pytest.mark.long),
            pytest.param(inside_a_turn, WINDOW, False, id="control-inside_a_turn", marks=pytest.mark.long),
        ],
    )
    def test_stand_word_for_word_after_every_compaction(
        self,
        offline: Service,
        start_talk: StartTalk,
        path: Callable[[Talk], None],
        policy: Json,
        *,
        is_pinned: bool,
    ) -> None:
        talk, message = opened(start_talk, offline, **policy)
        if is_pinned:
            shown = pin(talk, message)
            assert (shown["is_protected"], shown["protected_reason"]) == (True, "pinned")
        path(talk)
        assert talk.boundary() >= message["seq"]
        assert served(talk, message["seq"]) == ([SECRET] if is_pinned else [])

    @pytest.mark.daily(1)
    @pytest.mark.case("29")
    @pytest.mark.parametrize("is_pinned", [True, False], ids=["pinned", "control"])
    @pytest.mark.long
    def test_stand_in_what_is_left_when_the_summarizer_fails(
        self, gemini_service: Service, gemini: Gemini, start_talk: StartTalk, *, is_pinned: bool
    ) -> None:
        talk, message = opened(start_talk, gemini_service, **WINDOW)
        if is_pinned:
            pin(talk, message)
        gemini.script("compaction", default="error_401")
        talk.fill(2_000, start=30)
        result = talk.chat(text_of(1_400))
        context = talk.context()
        assert result["compaction"]["status"] == "failed"
        assert result["warnings"]
        assert context["truncated"]["from_seq"] <= message["seq"] <= context["truncated"]["to_seq"]
        assert served(talk, message["seq"]) == ([SECRET] if is_pinned else [])
        sent = gemini.requests("chat")[-1]["body"]["contents"]
        assert any(SECRET in part["text"] for entry in sent for part in entry["parts"]) is is_pinned

    @pytest.mark.long
    def test_are_told_once_and_taken_back(self, offline: Service, start_talk: StartTalk) -> None:
        talk, message = opened(start_talk, offline, **MANUAL)
        manually(talk)
        before = talk.context_bytes()
        first = pin(talk, message)
        pinned = talk.context_bytes()
        assert pin(talk, message) == first
        assert talk.context_bytes() == pinned != before
        usage = talk.get("/usage")
        assert 0 < usage["breakdown"]["held"] - first["token_count"] < 40, "with its day"
        assert usage["tokens"] == sum(usage["breakdown"].values())
        assert unpin(talk, message)["protected_reason"] == "compressible"
        assert unpin(talk, message)["is_protected"] is False
        assert talk.context_bytes() == before

    def test_that_exceed_their_share_are_refused_with_the_numbers(
        self, offline: Service, start_talk: StartTalk
    ) -> None:
        talk, message = opened(start_talk, offline, **MANUAL)
        pin(talk, message)
        large = talk.append(text_of(PIN_LIMIT))
        before = talk.get(), talk.history()
        problem = refused(talk.http.put(talk.path(f"/messages/{large['id']}/pin")), 409, "pin_budget_exceeded")
        numbers = {"protected_tokens": message["token_count"], "size": PIN_LIMIT, "limit": PIN_LIMIT}
        assert problem.items() >= numbers.items()
        assert problem["retryable"] is False
        assert (talk.get(), talk.history()) == before
        unpin(talk, message)
        assert pin(talk, large)["protected_reason"] == "pinned", "control: alone it fits exactly"

    def test_of_nobody_and_of_commands(self, offline: Service, start_talk: StartTalk) -> None:
        talk, _ = opened(start_talk, offline, **MANUAL)
        refused(talk.http.put(talk.path(f"/messages/{uuid4()}/pin")), 404, "not_found")
        refused(talk.http.delete(talk.path(f"/messages/{uuid4()}/pin")), 404, "not_found")
        typed = talk.chat("/compact")["message"]
        refused(talk.http.put(talk.path(f"/messages/{typed['id']}/pin")), 409, "not_pinnable")


class TestProtection:
    @pytest.mark.long
    def test_what_does_not_fit_is_accepted_marked_and_told(self, offline: Service, start_talk: StartTalk) -> None:
        talk = start_talk(offline, policy={**MANUAL, "protect": ["constraint", "goal_statements"]})
        first = talk.append(text_of(200), event_type="constraint")
        second = talk.append(text_of(200), event_type="constraint")
        goal = talk.append("Моя цель — открыть офис до марта.")
        assert [item["protected_reason"] for item in (first, second, goal)] == [
            "explicit_constraint",
            "over_allotment",
            "goal_statement",
        ]
        assert [item["is_protected"] for item in (first, second, goal)] == [True, False, True]
        told = [
            event["data"]
            for event in replayed(talk, 3)
            if event["type"] == "context.threshold" and event["data"].get("reason") == "over_allotment"
        ]
        assert [item["message_id"] for item in told] == [second["id"]]
        assert told[0].items() >= {"size": 200, "protected_tokens": 200, "limit": PIN_LIMIT}.items()
        talk.batch(lines(10))
        talk.compact()
        assert set(served_seqs(talk.context())) & {1, 2, 3} == {1, 3}

    def test_a_change_of_policy_decides_again(self, offline: Service, start_talk: StartTalk) -> None:
        talk = start_talk(offline, policy=MANUAL)
        talk.append("Hello.")
        talk.append("Never on Sundays.", event_type="constraint")
        assert [item["protected_reason"] for item in talk.history()] == ["initial_objective", "compressible"]
        good(talk.patch({"policy": {**MANUAL, "protect": ["constraint"]}}))
        assert [item["protected_reason"] for item in talk.history()] == ["compressible", "explicit_constraint"]


def replayed(talk: Talk, messages: int) -> list[Json]:
    """Every event so far, including those of this many messages."""
    with EventFollower(talk, after=0) as feed:
        feed.wait_for(lambda _: len(feed.of_type("message.created")) >= messages, what="the messages")
        return list(feed.events)


class TestAnchors:
    def test_are_listed_by_place_type_and_status(self, offline: Service, start_talk: StartTalk) -> None:
        talk = start_talk(offline, policy=MANUAL)
        said = [talk.append(text) for text in (f"Good morning. {POSTGRES}", ENDPOINT, MYSQL)]
        found = anchors(talk)
        first = talk.get("/anchors", limit=2)
        assert (first["data"], first["has_more"]) == (found[:2], True)
        assert anchors(talk, after=first["next_cursor"]) == found[2:]
        assert [(item["original_position"], item["content"]) for item in found] == [
            (1, POSTGRES),
            (2, ENDPOINT),
            (3, MYSQL),
        ]
        assert found[0].keys() == {
            "id",
            "type",
            "content",
            "original_position",
            "offset",
            "message_id",
            "speaker",
            "pasted",
            "status",
            "proposed_by",
            "superseded_by",
        }
        for item, message in zip(found, said, strict=True):
            assert item["message_id"] == message["id"]
            assert message["content"][item["offset"] :].startswith(item["content"])
            assert item["proposed_by"] == "rule"
        assert (found[0]["status"], found[0]["superseded_by"]) == ("superseded", found[2]["id"])
        assert anchors(talk, status="superseded") == found[:1]
        assert anchors(talk, type="critical_fact", status="active") == found[1:2]
        assert anchors(talk, order="desc") == found[::-1]

    def test_words_out_of_contract_are_refused_naming_those_allowed(
        self, offline: Service, start_talk: StartTalk
    ) -> None:
        talk = start_talk(offline, policy=MANUAL)
        talk.append(POSTGRES)
        one = anchors(talk)[0]
        for response in (
            talk.http.get(talk.path("/anchors"), params={"status": "open"}),
            talk.http.patch(talk.path(f"/anchors/{one['id']}"), json={"status": "open"}),
        ):
            problem = refused(response, 422, "invalid_input")
            message = problem["errors"][0]["message"]
            assert problem["errors"][0]["field"] == "status"
            assert all(word in message for word in ("active", "resolved", "superseded"))
        refused(talk.http.patch(talk.path(f"/anchors/{uuid4()}"), json={"status": "resolved"}), 404, "not_found")
        assert anchors(talk) == [one]

    @pytest.mark.daily(1)
    @pytest.mark.case("24")
    @pytest.mark.parametrize(
        ("path", "policy"),
        [(manually, MANUAL), (in_the_background, WINDOW), (inside_a_turn, WINDOW)],
        ids=lambda value: getattr(value, "__name__", ""),
    )
    def test_only_the_valid_decision_stands_in_the_block_after_every_compaction(
        self, offline: Service, start_talk: StartTalk, path: Callable[[Talk], None], policy: Json
    ) -> None:
        talk = start_talk(offline, policy={**OPEN, **policy})
        talk.batch([("user", ENDPOINT), ("user", POSTGRES), ("assistant", "Noted."), ("user", MYSQL)])
        path(talk)
        element = anchors_of(talk)
        assert ENDPOINT in element
        assert MYSQL in element
        assert POSTGRES not in element
        usage = talk.get("/usage")
        assert usage["breakdown"]["anchors"] > 0
        assert usage["anchors_behind_marker"] == 0

    @pytest.mark.long
    def test_a_status_changes_what_is_served_and_outlives_a_restore(
        self, offline: Service, start_talk: StartTalk
    ) -> None:
        talk = start_talk(offline, policy={**OPEN, **MANUAL})
        talk.batch([("user", ENDPOINT), ("user", POSTGRES)])
        manually(talk)
        before = block(talk)
        one = by_content(talk)[POSTGRES]
        settled = good(talk.http.patch(talk.path(f"/anchors/{one['id']}"), json={"status": "resolved"}))
        assert settled == one | {"status": "resolved"}
        element = anchors_of(talk)
        assert POSTGRES not in element
        assert ENDPOINT in element
        good(talk.post("/restore", {"state_version": 1}))
        assert by_content(talk)[POSTGRES]["status"] == "resolved"
        assert POSTGRES not in anchors_of(talk)
        good(talk.http.patch(talk.path(f"/anchors/{one['id']}"), json={"status": "active"}))
        assert block(talk) == before

    @pytest.mark.long
    def test_beyond_their_share_they_stand_behind_the_marker(self, offline: Service, start_talk: StartTalk) -> None:
        talk = start_talk(offline, policy={**OPEN, **MANUAL, "anchor_share": 0.05})
        talk.batch(lines(40))
        talk.compact()
        assert talk.get("/usage")["anchors_behind_marker"] > 0
        assert "[anchors →L3:anchors]" in block(talk)
        good(talk.patch({"policy": {**OPEN, **MANUAL, "anchor_share": None}}))
        assert talk.get("/usage")["anchors_behind_marker"] == 0
        assert "[anchors →L3:anchors]" not in block(talk)

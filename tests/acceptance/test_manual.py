"""``POST …/compact``, the states it makes, and the way back to earlier ones."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest
import redis

from app.infrastructure.event_bus import hint_channel
from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service, until
from tests.acceptance.talk import MANUAL, WINDOW, EventFollower, Talk, block_of, good, lines, refused, served_seqs
from tests.gemini_server import Gemini


@pytest.fixture
def talk(gemini_service: Service, start_talk: StartTalk, gemini: Gemini) -> Talk:
    """A conversation with something to compact that compacts only on request."""
    made = start_talk(gemini_service, policy=MANUAL)
    made.batch(lines(40))
    return made


class TestOneCall:
    def test_folds_all_but_the_last_turn_whatever_the_utilization(self, talk: Talk) -> None:
        row = talk.compact()
        assert (row["status"], row["trigger"], row["ran_in"]) == ("applied", "manual", "request")
        assert (row["from_seq"], row["to_seq"], row["messages_covered"]) == (1, 38, 38)
        assert served_seqs(talk.context()) == [1, 39, 40]
        assert row["tokens_after"] == talk.get("/usage")["tokens"] < row["tokens_before"]
        assert row["ratio"] == pytest.approx(row["tokens_after"] / row["tokens_before"], abs=1e-4)
        assert row["summary"]
        assert row == good(talk.http.get(f"/compactions/{row['id']}"))
        assert row["usage"]["input_tokens"] > 500
        assert row["cost_usd"] > 0

    @pytest.mark.long
    @pytest.mark.case("20")
    def test_with_nothing_new_to_fold_is_skipped(self, talk: Talk, gemini: Gemini) -> None:
        talk.compact()
        context = talk.context_bytes()
        row = talk.compact()
        assert (row["status"], row["reason"], row["state_version_after"]) == ("skipped", "nothing_to_compact", None)
        assert talk.context_bytes() == context
        assert len(gemini.requests("compaction")) == 1

    def test_of_an_empty_conversation_is_skipped(self, offline: Service, start_talk: StartTalk) -> None:
        row = start_talk(offline).compact()
        assert (row["status"], row["reason"]) == ("skipped", "nothing_to_compact")

    @pytest.mark.long
    def test_carries_its_focus_into_the_prompt(self, talk: Talk, gemini: Gemini) -> None:
        row = talk.compact(focus="every supplier of window blinds")
        assert row["focus"] == "every supplier of window blinds"
        assert "every supplier of window blinds" in str(gemini.requests("compaction")[0]["body"]["contents"])

    def test_up_to_a_message_covers_exactly_that(self, talk: Talk) -> None:
        row = talk.compact(up_to_message_id=talk.history()[21]["id"])
        assert (row["to_seq"], talk.boundary()) == (22, 22)
        assert served_seqs(talk.context()) == [1, *range(23, 41)]

    @pytest.mark.long
    def test_keeps_as_many_messages_as_it_was_told(self, talk: Talk) -> None:
        assert talk.compact(keep_tail_messages=9)["to_seq"] <= 31
        assert set(served_seqs(talk.context())) >= set(range(32, 41))

    def test_up_to_a_message_of_nobody_is_refused(self, talk: Talk) -> None:
        problem = refused(talk.post("/compact", {"up_to_message_id": str(uuid4())}), 422, "invalid_input")
        assert problem["errors"][0]["field"] == "up_to_message_id"

    @pytest.mark.long
    @pytest.mark.case("27")
    def test_leaves_an_unanswered_message_alone(self, talk: Talk) -> None:
        asked = talk.append("And what about the chairs?")
        talk.compact()
        context = talk.context()
        assert context["messages"][-1]["content"] == asked["content"]
        assert talk.chat()["message"]["id"] == asked["id"]


class TestADryRun:
    @pytest.mark.long
    def test_stores_nothing_and_asks_no_model(self, talk: Talk, gemini: Gemini) -> None:
        state, context, size = talk.state(), talk.context_bytes(), talk.get("/usage")["tokens"]
        with EventFollower(talk) as feed:
            feed.wait_for(lambda found: len(found) >= 40)
            seen = len(feed.events)
            plan = talk.compact(dry_run=True)
        assert (plan["id"], plan["status"], plan["state_version_after"]) == (None, "planned", None)
        assert (plan["from_seq"], plan["to_seq"]) == (1, 38)
        assert plan["tokens_before"] == size > plan["tokens_after"]
        assert (talk.state(), talk.context_bytes(), talk.compactions()) == (state, context, [])
        # Details of another test's talk may still be written, but nothing of this talk is folded.
        assert gemini.requests("compaction") == gemini.requests("chat") == []
        assert len(feed.events) == seen
        control = talk.compact()
        assert (control["from_seq"], control["to_seq"]) == (1, 38), "the plan is what the real call does"
        assert control["tokens_after"] <= plan["tokens_after"]


class TestWithoutWaiting:
    def test_is_accepted_and_done_by_the_worker(self, talk: Talk) -> None:
        response = talk.post("/compact", {"wait": False})
        queued = response.json()
        assert (response.status_code, response.headers["location"]) == (202, f"/compactions/{queued['id']}")
        assert (queued["status"], queued["joined"]) == ("queued", False)
        (row,) = talk.wait_ended()
        assert (row["id"], row["status"], row["ran_in"], row["trigger"]) == (
            queued["id"],
            "applied",
            "worker",
            "manual",
        )

    @pytest.mark.long
    def test_a_second_call_joins_the_first(self, talk: Talk, gemini: Gemini) -> None:
        gemini.script("compaction", {"name": "honest", "hold": True})
        first = good(talk.post("/compact", {"wait": False}))
        gemini.wait_for("compaction")
        second = good(talk.post("/compact", {"wait": False}))
        assert (second["id"], second["joined"]) == (first["id"], True)
        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(talk.compact)
            until(lambda: is_waited_for(talk), what="somebody who waits")
            gemini.release()
            third = waiting.result(20)
        assert (third["id"], third["joined"], third["status"]) == (first["id"], True, "applied")
        assert len(gemini.requests("compaction")) == len(talk.compactions()) == 1

    @pytest.mark.long
    def test_one_that_cannot_join_is_told_at_once_or_waits(self, talk: Talk, gemini: Gemini) -> None:
        gemini.script("compaction", {"name": "honest", "hold": True})
        first = good(talk.post("/compact", {"wait": False, "keep_tail_messages": 20}))
        gemini.wait_for("compaction")
        response = talk.post("/compact", {"wait": False, "focus": "prices"})
        refused(response, 409, "compaction_in_progress")
        assert int(response.headers["retry-after"]) >= 1
        assert len(talk.compactions()) == 1
        with ThreadPoolExecutor(1) as thread:
            waiting = thread.submit(talk.compact, focus="prices")
            gemini.release()
            second = waiting.result(20)
        assert (second["status"], second["focus"], second["joined"]) == ("applied", "prices", False)
        assert [row["id"] for row in talk.compactions()] == [first["id"], second["id"]]


def is_waited_for(talk: Talk) -> bool:
    """Whether a request that waits for another's compaction listens for the end of this one."""
    channel = hint_channel(UUID(talk.id))
    with contextlib.closing(redis.from_url(talk.service.redis_url)) as connection:
        return any(count for _, count in connection.pubsub_numsub(channel))


class TestStates:
    @pytest.mark.long
    def test_tell_where_every_entry_came_from(self, talk: Talk) -> None:
        row = talk.compact(keep_tail_messages=20)
        talk.batch(lines(20, start=60))
        talk.compact()

        newest, oldest = talk.get("/states")["data"]

        assert (oldest["version"], newest["version"]) == (1, 2)
        assert oldest["compaction_id"] == row["id"]
        assert (oldest["boundary_seq"], newest["boundary_seq"]) == (row["to_seq"], talk.boundary())
        assert newest["state"] == talk.get()["compressed_state"]
        for version in (oldest, newest):
            served = [entry for entry in version["provenance"] if not entry["pruned"]]
            assert [entry["text"] for entry in served if entry["field"] == "logos"] == version["state"]["logos"]
            facts = [entry for entry in served if entry["field"] == "logos"]
            assert all(1 <= seq <= version["boundary_seq"] for entry in facts for seq in entry["from_seqs"])
            assert all(entry["from_seqs"] for entry in facts)
        contents = {item["seq"]: item["content"] for item in talk.history()}
        for entry in newest["provenance"]:
            if entry["field"] == "logos":
                told = " ".join(contents[seq] for seq in entry["from_seqs"])
                assert all(word in told for word in entry["text"].split() if word.isdigit()), "its numbers stand there"

    @pytest.mark.long
    def test_their_difference_says_what_changed(self, talk: Talk) -> None:
        talk.compact(keep_tail_messages=20)
        talk.batch(lines(20, start=60))
        talk.compact()
        newest, oldest = ({e["entry_id"]: e for e in v["provenance"]} for v in talk.get("/states")["data"])

        there = talk.get("/states", a=1, b=2)
        back = talk.get("/states", a=2, b=1)

        assert {entry["entry_id"] for entry in there["added"]} == newest.keys() - oldest.keys()
        assert there["added"]
        assert (back["added"], back["removed"]) == (there["removed"], there["added"])
        assert talk.get("/states", a=2, b=2) == {"a": 2, "b": 2, "added": [], "removed": [], "changed": []}
        refused(talk.http.get(talk.path("/states"), params={"a": 1, "b": 9}), 404, "not_found")
        refused(talk.http.get(talk.path("/states"), params={"a": 1}), 422, "invalid_input")


class TestARestore:
    @pytest.mark.long
    def test_writes_a_new_version_with_the_old_content(self, talk: Talk) -> None:
        talk.compact(keep_tail_messages=20)
        first, context, boundary = talk.state(), talk.context(), talk.boundary()
        talk.compact()
        assert talk.boundary() > boundary

        with EventFollower(talk) as feed:
            restored = good(talk.post("/restore", {"state_version": 1}))
            feed.wait_for(lambda _: feed.of_type("conversation.restored"))

        assert restored["state_version"] == 3
        assert restored["compressed_state"] == first["compressed_state"]
        assert talk.boundary() == boundary
        assert talk.context() == context, "what stands after the boundary is tail again"
        assert feed.of_type("conversation.restored")[0]["data"] == {"state_version": 3, "restored_from": 1}
        assert [version["version"] for version in talk.get("/states")["data"]] == [3, 2, 1]
        again = talk.compact()
        assert (again["status"], again["state_version_before"], again["state_version_after"]) == ("applied", 3, 4)

    @pytest.mark.long
    def test_of_a_version_that_moved_on_is_refused(self, talk: Talk) -> None:
        talk.compact(keep_tail_messages=20)
        tag = talk.http.get(talk.path()).headers["etag"]
        assert tag == '"1"'
        talk.compact()
        context = talk.context_bytes()
        problem = refused(talk.post("/restore", {"state_version": 1}, if_match=tag), 412, "state_version_mismatch")
        assert problem["state_version"] == 2
        refused(talk.patch({"policy": WINDOW}, if_match=tag), 412, "state_version_mismatch")
        assert talk.context_bytes() == context
        response = talk.post("/restore", {"state_version": 1}, if_match='"2"')
        assert (response.status_code, response.headers["etag"]) == (200, '"3"')

    def test_of_a_version_that_never_was_is_refused(self, talk: Talk) -> None:
        refused(talk.post("/restore", {"state_version": 7}), 404, "not_found")
        assert block_of(talk.context()) is None

    @pytest.mark.long
    def test_during_a_compaction_supersedes_it(self, talk: Talk, gemini: Gemini) -> None:
        talk.compact(keep_tail_messages=20)
        gemini.script("compaction", {"name": "honest", "hold": True})
        talk.post("/compact", {"wait": False})
        gemini.wait_for("compaction", 2)
        good(talk.post("/restore", {"state_version": 1}))
        gemini.release()
        row = talk.wait_ended(2)[-1]
        assert (row["status"], row["reason"]) == ("superseded", "stale")
        assert talk.get()["state_version"] == 2

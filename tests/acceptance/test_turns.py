"""Chat turns: jumps over both thresholds, commands, models that fail, interruptions, clients that leave."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import httpx
import pytest

from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service, until
from tests.acceptance.talk import (
    BACKGROUND,
    BUDGET,
    MANUAL,
    STREAM,
    SYNC,
    WINDOW,
    EventFollower,
    Json,
    Talk,
    block_of,
    good,
    read_events,
    refused,
    served_seqs,
    text_of,
)
from tests.gemini_server import Gemini

SLOWLY: Final = "One by one the words arrive, and nobody is in a hurry at all today."
STOPS: Final[Json] = {"name": "text", "text": SLOWLY, "hold_after": 1}
"""A reply in five pieces, of which all but the first wait until they are released."""


def check_that_nothing_is_missing(talk: Talk) -> None:
    """Insist that a model would next see the state for all up to the boundary, and everything after it verbatim."""
    context, boundary = talk.context(), talk.boundary()
    history = {item["seq"]: item for item in talk.history() if item["event_type"] != "command"}
    assert block_of(context)
    after = [seq for seq in served_seqs(context) if seq > boundary]
    assert after == [seq for seq in history if seq > boundary]
    for item in context["messages"]:
        if item["seq"] is not None:
            assert (item["role"], item["content"]) == (history[item["seq"]]["role"], history[item["seq"]]["content"])
    assert context["truncated"] is None
    assert context["warnings"] == []


@pytest.mark.parametrize(
    ("name", "before", "jump"),
    [
        pytest.param("gemini_service", 2_000, 750, id="gemini-over-85"),
        pytest.param("offline", 2_050, 1_250, id="offline-over-100"),
        pytest.param("offline", 800, 2_000, id="offline-one-giant"),
        pytest.param("offline", 2_000, 750, id="offline-over-85", marks=pytest.mark.long),
        pytest.param("gemini_service", 2_050, 1_250, id="gemini-over-100", marks=pytest.mark.long),
        pytest.param("gemini_service", 800, 2_000, id="gemini-one-giant", marks=pytest.mark.long),
    ],
)
class TestAJump:
    """One message takes the context from below 70 % to above 85 %, or above the whole budget."""

    @pytest.mark.long
    @pytest.mark.case("21")
    def test_is_compacted_in_the_turn(
        self, request: pytest.FixtureRequest, start_talk: StartTalk, gemini: Gemini, name: str, before: int, jump: int
    ) -> None:
        talk = start_talk(request.getfixturevalue(name), policy=WINDOW)
        talk.fill(before)
        usage = talk.get("/usage")
        assert usage["tokens"] < BACKGROUND
        assert usage["tokens"] + jump > (SYNC if jump == 750 else BUDGET if before > 1_000 else SYNC)

        done = talk.chat(text_of(jump))

        row = done["compaction"]
        assert (row["status"], row["trigger"], row["ran_in"]) == ("applied", "sync", "turn")
        assert row["tokens_before"] == usage["tokens"] + jump
        assert done["reply"]["content"]
        assert done["warnings"] == []
        assert done["message"]["content"] == text_of(jump)
        assert done["message"]["seq"] > row["to_seq"], "the message that is being answered is never folded"
        assert done["context"]["tokens"] < BACKGROUND or row["reason"] == "irreducible_floor"
        assert done["context"] == talk.get("/usage")
        check_that_nothing_is_missing(talk)
        assert talk.boundary() == row["to_seq"]
        if name != "offline":
            asked = gemini.requests("chat")[-1]["body"]["contents"]
            assert asked[-1]["parts"][-1]["text"] == text_of(jump)
            assert asked[0]["parts"][0]["text"] == block_of(talk.context()), "the model was sent the new state"

    @pytest.mark.daily(1)
    def test_with_automatic_compaction_off_is_cut_instead(
        self, request: pytest.FixtureRequest, start_talk: StartTalk, gemini: Gemini, name: str, before: int, jump: int
    ) -> None:
        """The control: without the trigger the same message leads to no compaction."""
        talk = start_talk(request.getfixturevalue(name), policy=MANUAL)
        talk.fill(before)

        done = talk.chat(text_of(jump))

        assert done["compaction"] is None
        assert ("context_truncated" in done["warnings"]) == (talk.get("/usage")["tokens"] - 100 > BUDGET)
        assert talk.compactions() == []


class TestACommand:
    @pytest.mark.long
    def test_compacts_with_its_focus_and_stays_out_of_contexts(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = start_talk(gemini_service, policy=MANUAL)
        talk.fill(1_500)

        done = talk.chat("/compact the delivery dates")

        row = done["compaction"]
        assert (row["status"], row["trigger"], row["focus"]) == ("applied", "manual", "the delivery dates")
        (call,) = gemini.requests("compaction")
        assert "the delivery dates" in str(call["body"]["contents"])
        assert done["reply"]["content"] == talk.compactions()[-1]["summary"]
        assert [done[part]["event_type"] for part in ("message", "reply")] == ["command", "command"]
        assert talk.history()[-2:] == [done["message"], done["reply"]]
        assert not {done["message"]["seq"], done["reply"]["seq"]} & set(served_seqs(talk.context()))
        assert "/compact" not in str(talk.context())
        assert done["context"] == talk.get("/usage") == talk.context()["gauge"]
        assert not gemini.requests("chat")
        talk.chat("So, where were we?")
        check_that_nothing_is_missing(talk)

    def test_moves_no_gauge_by_itself(self, offline: Service, start_talk: StartTalk) -> None:
        talk = start_talk(offline, policy=MANUAL)
        talk.append("Hello there.")
        before = talk.get("/usage")

        done = talk.chat("/compact")

        assert "nothing to compact" in done["reply"]["content"]
        assert talk.get("/usage") == before
        assert len(talk.history()) == 3

    def test_is_answered_in_the_stream_as_any_message_is_and_names_no_model(
        self, offline: Service, start_talk: StartTalk
    ) -> None:
        talk = start_talk(offline, policy=MANUAL)

        *events, end = talk.streamed("/compact")

        reply = end.data["reply"]
        told = [(event.type, event.data["compaction_id"]) for event in events if event.type.startswith("compaction.")]
        assert told == [(f"compaction.{word}", end.data["compaction"]["id"]) for word in ("started", "skipped")]
        assert "".join(event.data["text"] for event in events if event.type == "reply.delta") == reply["content"]
        assert reply["model"] is None, "nobody was asked"

    @pytest.mark.long
    def test_that_fails_is_told_before_the_problem(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = start_talk(gemini_service, policy=MANUAL)
        talk.fill(1_500)
        gemini.script("compaction", default="please_provide")

        events = talk.streamed("/compact")

        told = ["message.created", "compaction.started", "compaction.failed", "reply.failed"]
        assert [event.type for event in events] == told
        assert events[2].data["compaction_id"] == events[3].data["compaction_id"]

    def test_of_a_client_is_an_ordinary_message(self, offline: Service, start_talk: StartTalk) -> None:
        talk = start_talk(offline, policy=MANUAL)
        message = talk.append("/compact please", event_type="command")
        assert served_seqs(talk.context()) == [message["seq"]]

    @pytest.mark.long
    def test_that_fails_is_an_error_and_the_conversation_goes_on(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = start_talk(gemini_service, policy=MANUAL)
        talk.fill(1_500)
        state = talk.state()
        gemini.script("compaction", default="empty")

        refused(talk.post("/chat", {"content": "/compact"}), 502, "empty_summary")

        assert talk.state() == state
        assert talk.chat("Never mind.")["reply"]["content"].startswith("You said: Never mind.")


class TestAChatModelThatFails:
    @pytest.mark.daily(1)
    @pytest.mark.parametrize(
        ("fault", "status", "code"),
        [
            ("error_500", 503, "model_unavailable"),
            ("error_503", 503, "model_unavailable"),
            ("error_429", 503, "model_unavailable"),
            ("error_401", 503, "model_unavailable"),
            ("reset", 503, "model_unavailable"),
            ("reset_midway", 503, "model_unavailable"),
            ("garbled", 503, "model_unavailable"),
            ("too_long", 503, "model_unavailable"),
            ("blocked_prompt", 502, "blocked"),
            ("safety", 502, "blocked"),
            ("empty", 502, "empty_reply"),
            ("thoughts_only", 502, "empty_reply"),
        ],
    )
    def test_leaves_the_message_to_be_answered_later(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini, fault: str, status: int, code: str
    ) -> None:
        talk = start_talk(gemini_service)
        gemini.script("chat", *[fault] * (2 if fault == "reset" else 1))  # a lost connection is tried once more

        with EventFollower(talk) as feed:
            problem = refused(talk.post("/chat", {"content": "What is the plan?"}), status, code)
            feed.wait_for(lambda _: feed.of_type("reply.failed"))

        assert problem["retryable"] is (fault not in {"error_401", "too_long"}), "these last until something is changed"
        (stored,) = talk.history()
        assert (stored["id"], stored["content"]) == (problem["message_id"], "What is the plan?")
        (event,) = feed.of_type("reply.failed")
        assert (event["data"]["message_id"], event["data"]["code"]) == (stored["id"], code)

        done = talk.chat()
        assert done["message"] == stored
        assert done["reply"]["content"] == "You said: What is the plan?"
        assert len(talk.history()) == 2
        refused(talk.post("/chat"), 422, "invalid_input")

    def test_because_a_message_is_blocked_fails_until_that_is_erased(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = start_talk(gemini_service)
        gemini.script("chat", default={"name": "honest", "block_if": "vault"})
        problem = refused(talk.post("/chat", {"content": "Open the vault."}), 502, "blocked")
        assert "erase the message" in problem["detail"]
        refused(talk.post("/chat", {"content": "Open the door."}), 502, "blocked")

        assert talk.http.delete(talk.path(f"/messages/{problem['message_id']}")).is_success
        assert talk.chat("Open the window.")["reply"]["content"]

    def test_at_its_output_limit_is_stored_with_a_warning(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = start_talk(gemini_service)
        gemini.script("chat", "cut_parseable")
        done = talk.chat("Tell me everything.")
        assert done["warnings"] == ["reply_cut_off"]
        assert done["reply"]["content"]

    def test_that_hangs_is_interrupted_and_answered_again(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = start_talk(gemini_service)
        gemini.script("chat", "hang")
        with ThreadPoolExecutor(1) as thread:
            hanging = thread.submit(talk.chat, "Are you there?")
            gemini.wait_for("chat")
            assert good(talk.post("/chat/interrupt"))["interrupted"] is True
            done = hanging.result(20)
        assert (done["reply"]["status"], done["reply"]["content"]) == ("interrupted", "")
        again = talk.chat("And now?")
        assert again["reply"]["content"].endswith("And now?")
        assert served_seqs(talk.context()) == [1, 3, 4], "an answer without a word tells a model nothing"


class TestOneTurnAtATime:
    def test_a_second_one_is_refused_and_appends_are_not(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = start_talk(gemini_service)
        gemini.script("chat", {"name": "honest", "hold": True})
        with ThreadPoolExecutor(1) as thread:
            first = thread.submit(talk.chat, "First.")
            gemini.wait_for("chat")
            second = talk.post("/chat", {"content": "Second."})
            problem = refused(second, 409, "turn_in_progress")
            assert problem["retryable"]
            assert int(second.headers["retry-after"]) >= 1
            appended = talk.append("Meanwhile.")
            gemini.release()
            done = first.result(20)
        assert [item["id"] for item in talk.history()] == [done["message"]["id"], appended["id"], done["reply"]["id"]]
        assert talk.chat("Third.")["reply"]["content"]

    def test_a_client_that_looked_too_early_is_told(self, offline: Service, start_talk: StartTalk) -> None:
        talk = start_talk(offline)
        first = talk.append("One.")
        talk.append("Two.", "assistant")
        for path in ("/chat", "/messages"):
            body = {"content": "Three.", "expected_last_message_id": first["id"]}
            refused(
                talk.post(path, {**body, **({"role": "user"} if path == "/messages" else {})}),
                409,
                "conversation_moved_on",
            )
        assert len(talk.history()) == 2
        last = talk.history()[-1]["id"]
        assert good(talk.post("/chat", {"content": "Three.", "expected_last_message_id": last}))["reply"]


class TestAnInterruptedStream:
    def test_keeps_what_came(self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini) -> None:
        talk = start_talk(gemini_service)
        gemini.script("chat", STOPS)
        with talk.streaming("Take your time.") as events:
            seen = []
            for event in events:
                seen.append(event)
                if [item.type for item in seen[1:]] == ["reply.delta"]:
                    assert good(talk.post("/chat/interrupt"))["message_id"] == seen[0].data["message_id"]
        came = "".join(event.data["text"] for event in seen if event.type == "reply.delta")
        assert seen[-1].type == "reply.interrupted"
        reply = seen[-1].data["reply"]
        assert (reply["status"], reply["content"]) == ("interrupted", came)
        assert came
        assert SLOWLY.startswith(came)
        assert came != SLOWLY
        assert talk.history()[-1] == reply
        assert talk.context()["messages"][-1]["content"] == came
        assert good(talk.post("/chat/interrupt"))["interrupted"] is False
        assert talk.chat("Go on.")["reply"]["status"] == "complete"

    def leave(self, talk: Talk, content: str) -> None:
        """Begin a streamed turn, and disconnect after the first words."""
        with httpx.Client(base_url=talk.service.url, trust_env=False) as client:
            body, path = {"content": content}, talk.path("/chat")
            with client.stream("POST", path, json=body, headers=STREAM) as response:
                next(event for event in read_events(response) if event.type == "reply.delta")

    def reply(self, talk: Talk) -> Json:
        until(lambda: len(talk.history()) == 2, 20, what="the reply that nobody waits for")
        return talk.history()[-1]

    @pytest.mark.long
    @pytest.mark.case("45-stream")
    def test_left_by_its_client_is_finished(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = start_talk(gemini_service, policy={"on_disconnect": "finish"})
        gemini.script("chat", {"name": "text", "text": SLOWLY, "pace": 0.2})
        self.leave(talk, "I have to go.")
        reply = self.reply(talk)
        assert (reply["status"], reply["content"]) == ("complete", SLOWLY)

    @pytest.mark.long
    def test_left_by_its_client_is_stopped_if_the_policy_says_so(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = start_talk(gemini_service, policy={"on_disconnect": "interrupt"})
        gemini.script("chat", STOPS)
        self.leave(talk, "I have to go.")
        reply = self.reply(talk)
        assert reply["status"] == "interrupted"
        assert reply["content"] != SLOWLY

    @pytest.mark.long
    @pytest.mark.case("45-compaction")
    def test_left_in_the_middle_of_its_compaction_is_finished(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = start_talk(gemini_service, policy=WINDOW)
        talk.fill(2_000)
        count = len(talk.history())
        gemini.script("compaction", {"name": "honest", "hold": True})
        with httpx.Client(base_url=talk.service.url, timeout=20, trust_env=False) as client:
            path, body = talk.path("/chat"), {"content": text_of(750)}
            with client.stream("POST", path, json=body, headers=STREAM) as response:
                next(read_events(response))
                gemini.wait_for("compaction")
        time.sleep(0.2)
        gemini.release()
        until(lambda: len(talk.history()) == count + 2, 20, what="the reply")
        (row,) = talk.wait_ended()
        assert (row["status"], row["ran_in"]) == ("applied", "turn")


class TestATurnThatFindsACompactionRunning:
    @pytest.mark.long
    def test_waits_for_it_and_uses_its_result(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = start_talk(gemini_service, policy=WINDOW)
        gemini.script("compaction", {"name": "honest", "hold": True})
        talk.fill(BACKGROUND + 100)
        gemini.wait_for("compaction")
        with ThreadPoolExecutor(1) as thread:
            count = len(talk.history())
            waiting = thread.submit(talk.chat, text_of(500))
            until(lambda: len(talk.history()) > count, what="the turn, which finds the compaction as it begins")
            time.sleep(0.5)
            assert not waiting.done()
            gemini.release()
            done = waiting.result(20)
        row = talk.wait_ended()[0]
        assert (row["trigger"], row["ran_in"], row["status"]) == ("background", "worker", "applied")
        assert done["compaction"]["id"] == row["id"]
        assert "sync" not in [item["trigger"] for item in talk.compactions()], "one need, one compaction"
        check_that_nothing_is_missing(talk)

"""A chat model that keeps its context on its side: OpenAI's Responses, before a scripted server that keeps it.

Gemini, a stateless model, is the control. What each provider was sent is looked at on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pytest

from tests.acceptance.conftest import SharedServices, StartTalk, gemini_settings, uses_processes
from tests.acceptance.service import Service
from tests.acceptance.talk import MANUAL, WINDOW, Json, Talk, block_of, good, lines, text_of
from tests.gemini_server import Gemini
from tests.openai_server import OpenAI, running_openai

MODEL: Final = "openai-responses:gpt-5"
OTHER: Final = "openai-responses:gpt-5-mini"
STATELESS: Final = "google:gemini-3-flash-preview"
REBUILT: Final = "live_context_rebuilt"
BLOCK: Final = "<session_state>"
CANARY: Final = "Kestrel-7741"
ROOMY: Final[Json] = {"context_window": 32_000, "max_tokens": -1}

Ask = Callable[..., Json]


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAI]:
    with running_openai() as openai:
        yield openai


@pytest.fixture
def service(
    shared_services: SharedServices, server: OpenAI, gemini_server: Gemini, request: pytest.FixtureRequest
) -> Service:
    settings = {
        "THROUGHLINE_CHAT_MODEL": MODEL,
        "THROUGHLINE_MODELS": f"{OTHER},{STATELESS}",
        "THROUGHLINE_TOOLS": "tests.integration.tool_samples:order_status",
        "OPENAI_API_KEY": "test",
        "OPENAI_BASE_URL": server.url,
        **gemini_settings(gemini_server),
    }
    return shared_services.get("stateful", processes=uses_processes(request.node), **settings)


@pytest.fixture
def openai(server: OpenAI) -> OpenAI:
    server.reset()
    return server


@pytest.fixture(params=["streamed", pytest.param("whole", marks=pytest.mark.long)])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Do a turn, streamed or not, and return its result."""

    def whole(talk: Talk, content: str) -> Json:
        return talk.chat(content)

    def streamed(talk: Talk, content: str) -> Json:
        *_, last = talk.streamed(content)
        assert last.type == "reply.completed"
        return last.data

    return whole if request.param == "whole" else streamed


def asking(talk: Talk, content: str, model: str) -> Json:
    return good(talk.post("/chat", {"content": content, "model": model}))


def live(talk: Talk) -> Json | None:
    found: Json | None = talk.get()["live_context"]
    return found


def told_gemini(gemini: Gemini) -> list[str]:
    """The texts that the stateless model was sent, message by message."""
    contents = gemini.requests("chat")[-1]["body"]["contents"]
    return [" ".join(part.get("text", "") for part in content["parts"]) for content in contents]


class TestATurn:
    @pytest.mark.daily(1)
    def test_sends_only_the_new_message(
        self, service: Service, start_talk: StartTalk, openai: OpenAI, ask: Ask
    ) -> None:
        talk = start_talk(service, policy=ROOMY, system_prompt="Answer like a librarian.")
        assert live(talk) is None
        talk.batch(lines(6))
        openai.script("Noted, Tilda.", "She is called Tilda.")
        first = ask(talk, "My cat is Tilda.")
        assert len(openai.last.input) == 7
        now = live(talk)
        assert now == {"model": MODEL, "response_id": now and now["response_id"], "through_seq": first["reply"]["seq"]}

        second = ask(talk, "What is her name?")
        assert second["reply"]["content"] == "She is called Tilda."
        assert (openai.last.texts, openai.last.continues) == (["What is her name?"], now["response_id"])
        assert openai.last.body["store"] is True
        assert "Answer like a librarian." in openai.last.body["instructions"]
        assert first["warnings"] == second["warnings"] == []

    def test_with_tools_sends_only_their_results_under_the_providers_ids(
        self, service: Service, start_talk: StartTalk, openai: OpenAI, ask: Ask
    ) -> None:
        talk = start_talk(service, policy=ROOMY)
        openai.script({"calls": [{"name": "order_status", "args": {"number": 3}}]}, "It has left.")
        done = ask(talk, "Where is order 3?")
        assert done["reply"]["content"] == "It has left."
        (sent,) = openai.last.input
        (made,) = [item for item in openai.last.seen if item.get("type") == "function_call"]
        assert (sent["type"], sent["call_id"]) == ("function_call_output", made["call_id"])
        assert sent["output"] == "Order 3 has left harbour 12."
        (stored,) = [part for item in talk.history() for part in item["parts"] if part["type"] == "tool_call"]
        assert stored["id"] != made["call_id"], "the history has ids of its own"
        ask(talk, "Thanks.")
        assert openai.last.texts == ["Thanks."]

    @pytest.mark.long
    @pytest.mark.processes
    def test_after_a_restart_goes_on_as_before(self, service: Service, start_talk: StartTalk, openai: OpenAI) -> None:
        talk = start_talk(service, policy=ROOMY)
        talk.chat("My cat is Tilda.")
        service.api.restart()
        talk.chat("What is her name?")
        assert openai.last.texts == ["What is her name?"]
        assert "My cat is Tilda." in str(openai.last.seen)


class TestCompaction:
    @pytest.mark.long
    def test_in_the_background_stores_the_state_and_leaves_the_live_context(
        self, service: Service, start_talk: StartTalk, openai: OpenAI, gemini: Gemini
    ) -> None:
        talk = start_talk(service, policy=WINDOW)
        talk.batch(lines(10))
        talk.chat("Hello.")
        before = live(talk)
        for role, content in lines(60, start=100):
            if talk.compactions():
                break
            talk.append(content, role)
        (row,) = talk.wait_ended()
        assert (row["status"], row["ran_in"]) == ("applied", "worker")
        assert block_of(talk.context())
        assert before is not None
        assert live(talk) == before
        done = talk.chat("Go on.")
        assert openai.last.continues == before["response_id"]
        assert (BLOCK in str(openai.last.seen), done["warnings"]) == (False, [])
        assert done["context"]["breakdown"]["state"] > 0, "the gauge shows what the service would serve"

        gemini.script("chat", default="honest")
        asking(talk, "And you?", STATELESS)
        assert told_gemini(gemini)[0].startswith(BLOCK), "the control is rebuilt from the compacted history"

    @pytest.mark.long
    def test_inside_a_turn_does_too(self, service: Service, start_talk: StartTalk, openai: OpenAI) -> None:
        talk = start_talk(service, policy=WINDOW)
        talk.batch(lines(10))
        talk.chat("Hello.")
        talk.fill(2_050, start=100)
        unsent = len(talk.history()) - len(openai.last.input) - 1
        jump = text_of(700)
        done = talk.chat(jump)
        assert done["compaction"]["status"] == "applied"
        assert openai.last.continues is not None
        assert (len(openai.last.input), openai.last.texts[-1]) == (unsent + 1, jump)

    @pytest.mark.long
    def test_typed_under_handoff_does_too_and_serves_for_recovery(
        self, service: Service, start_talk: StartTalk, openai: OpenAI
    ) -> None:
        """The case of Session Compaction: the state is written, the live runner goes on, and later it is gone."""
        talk = start_talk(service, preset="handoff", policy=ROOMY)
        talk.batch(lines(40))
        talk.chat("Hello.")
        before = live(talk)
        assert talk.chat("/compact")["compaction"]["status"] == "applied"
        assert live(talk) == before
        talk.chat("Go on.")
        assert openai.last.texts == ["Go on."]

        openai.forget()
        done = talk.chat("Are you still there?")
        assert done["warnings"] == [REBUILT]
        assert openai.last.continues is None
        assert openai.last.texts[0].startswith(BLOCK)
        assert openai.last.texts[-1] == "Are you still there?"
        assert len(openai.last.input) < 30
        after = live(talk)
        assert after is not None
        assert (after["response_id"] in openai.kept, after["through_seq"]) == (True, done["reply"]["seq"])
        assert talk.chat("Good.")["warnings"] == []
        assert openai.last.texts == ["Good."]

    @pytest.mark.long
    def test_by_hand_for_a_chain_that_has_outgrown_the_model(
        self, service: Service, start_talk: StartTalk, openai: OpenAI, ask: Ask
    ) -> None:
        talk = start_talk(service, policy=ROOMY)
        talk.batch(lines(140))
        talk.chat("Hello.")
        row = talk.compact(keep_tail_messages=2)
        assert row["tokens_after"] < 0.8 * row["tokens_before"]
        openai.window = (row["tokens_before"] + row["tokens_after"]) // 2  # block and anchors fit into it
        done = ask(talk, "Go on.")
        assert done["warnings"] == [REBUILT]
        assert openai.last.texts[0].startswith(BLOCK)


class TestLettingGo:
    def test_after_an_erasure_nothing_goes_on_from_where_it_was(
        self, service: Service, start_talk: StartTalk, openai: OpenAI
    ) -> None:
        talk = start_talk(service, policy=MANUAL)
        canary = talk.append(f"Remember: the vault opens with {CANARY}.")
        talk.chat("Hello.")
        talk.chat("Control.")
        assert CANARY not in str(openai.last.input)
        assert CANARY in str(openai.last.seen), "the provider has it"
        assert talk.http.delete(talk.path(f"/messages/{canary['id']}")).is_success
        assert live(talk) is None
        talk.chat("What do you know?")
        assert "previous_response_id" not in openai.last.body
        assert CANARY not in str(openai.last.seen)

    def test_another_stateful_model_is_sent_the_whole_and_says_so(
        self, service: Service, start_talk: StartTalk, openai: OpenAI
    ) -> None:
        talk = start_talk(service, policy=ROOMY)
        talk.chat("My cat is Tilda.")
        done = asking(talk, "What is her name?", OTHER)
        assert (openai.last.continues, len(openai.last.input), done["warnings"]) == (None, 3, [REBUILT])
        now = live(talk)
        assert now is not None
        assert now["model"] == OTHER

    def test_a_stateless_turn_in_between_is_told_to_the_stateful_one(
        self, service: Service, start_talk: StartTalk, openai: OpenAI, gemini: Gemini
    ) -> None:
        talk = start_talk(service, policy=ROOMY)
        talk.chat("My cat is Tilda.")
        gemini.script("chat", {"name": "text", "text": "A fine name."})
        asking(talk, "Do you like it?", STATELESS)
        assert len(told_gemini(gemini)) == 3
        done = talk.chat("Say it again.")
        assert (openai.last.texts, done["warnings"]) == (["Do you like it?", "A fine name.", "Say it again."], [])


def test_a_list_of_conversations_shows_none(service: Service, start_talk: StartTalk, openai: OpenAI) -> None:
    talk = start_talk(service, policy=ROOMY)
    talk.chat("Hello.")
    assert live(talk) is not None
    listed: list[Json] = good(talk.http.get("/conversations"))["data"]
    assert talk.id in {item["id"] for item in listed}
    assert not any("live_context" in item for item in listed)

"""Gemini's CachedContent, from outside: what it holds, who shares it, and what becomes of it.

Before the scripted server, which refuses what Google refuses. What went over the wire is looked at there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.acceptance.conftest import SharedServices, StartTalk, gemini_settings, uses_processes
from tests.acceptance.service import Service, until
from tests.acceptance.talk import WINDOW, Json, Talk, good, lines, text_of
from tests.gemini_server import Gemini
from tests.servers import execute_sql

MODEL: Final = "google:gemini-3-flash-preview"
ROOMY: Final[Json] = {"context_window": 64_000, "max_tokens": -1}
ALWAYS: Final[Json] = {**ROOMY, "cache": "always"}
LARGE: Final = "You are the librarian of a small town. " + text_of(5_000)
FORGOTTEN: Final = "provider_cache_forgotten"
OWNED: Final = ("systemInstruction", "tools", "toolConfig")


@pytest.fixture
def service(shared_services: SharedServices, gemini_server: Gemini, request: pytest.FixtureRequest) -> Service:
    settings = {"THROUGHLINE_CHAT_MODEL": MODEL, **gemini_settings(gemini_server)}
    return shared_services.get("caches", processes=uses_processes(request.node), **settings)


@pytest.fixture
def begin(start_talk: StartTalk, service: Service, request: pytest.FixtureRequest) -> Callable[..., Talk]:
    """A conversation with a prompt that no other test has."""

    def start(policy: Json = ALWAYS, prompt: str = LARGE, **fields: Any) -> Talk:
        return start_talk(service, policy=policy, system_prompt=f"{request.node.name}. {prompt}", **fields)

    return start


def sent(gemini: Gemini) -> Json:
    """The newest request for a reply."""
    body: Json = gemini.requests("chat")[-1]["body"]
    return body


def cached(gemini: Gemini, count: int = 1) -> list[Json]:
    """The caches, once there are this many."""
    until(lambda: len(gemini.caches()) == count, what=f"{count} caches")
    return gemini.caches()


def stored(talk: Talk, count: int = 1) -> Json:
    """The stats of a conversation's caches, once the service knows that this many were made."""
    until(lambda: talk.get("/stats")["caches"]["made"] >= count, what="the account of a cache")
    caches: Json = talk.get("/stats")["caches"]
    return caches


def grow_older(service: Service, seconds: int) -> None:
    """Make caches look this much older, for the service alone."""
    statement = "UPDATE provider_caches SET expires_at = expires_at - interval '{} s' WHERE expires_at IS NOT NULL"
    execute_sql(service.database_url, statement.format(seconds))


class TestACache:
    def test_holds_what_every_request_begins_with_and_is_named_from_then_on(
        self, gemini: Gemini, begin: Callable[..., Talk]
    ) -> None:
        talk = begin()
        first = talk.chat("Which book is on the table?")
        whole = sent(gemini)
        assert "cachedContent" not in whole
        (cache,) = cached(gemini)
        assert cache["body"]["systemInstruction"] == whole["systemInstruction"]
        assert [key for key in OWNED if key in whole] == [key for key in OWNED if key in cache["body"]]
        assert "contents" not in cache["body"]
        assert stored(talk)["living"][0]["tokens"] == cache["usageMetadata"]["totalTokenCount"]

        second = talk.chat("And on the shelf?")
        named = sent(gemini)
        assert named["cachedContent"] == cache["name"]
        assert [key for key in OWNED if key in named] == []
        assert [content["role"] for content in named["contents"]] == ["user", "model", "user"]
        assert first["warnings"] == second["warnings"] == []
        assert second["reply"]["usage"]["cached_tokens"] == cache["usageMetadata"]["totalTokenCount"]

    @pytest.mark.long
    def test_holds_the_files_of_a_conversation_and_goes_with_them(
        self, gemini: Gemini, begin: Callable[..., Talk]
    ) -> None:
        talk = begin()
        data, type_ = b"The depot opens on Monday.", {"Content-Type": "text/markdown"}
        file = good(talk.http.post(talk.path("/files?name=plan.md"), content=data, headers=type_))
        talk.chat("When does it open?")
        whole = sent(gemini)
        *attached, question = whole["contents"][0]["parts"]
        assert "The depot opens on Monday." in str(attached)
        assert question == {"text": "When does it open?"}
        (cache,) = cached(gemini)
        assert [content["parts"] for content in cache["body"]["contents"]] == [attached], (
            "as a request without a cache says it"
        )
        stored(talk)

        talk.chat("And when does it close?")
        named = sent(gemini)
        assert named["cachedContent"] == cache["name"]
        assert named["contents"][0]["parts"] == [question]

        assert talk.http.delete(talk.path(f"/files/{file['id']}")).status_code == 204
        until(lambda: gemini.caches() == [], what="the deletion of what held the file")
        talk.chat("Do you still know?")
        assert "cachedContent" not in sent(gemini)
        assert sent(gemini)["contents"][0]["parts"] == [question]

    @pytest.mark.long
    def test_is_told_and_paid_for_in_the_stats(self, gemini: Gemini, begin: Callable[..., Talk]) -> None:
        talk = begin()
        talk.chat("One.")
        spent = stored(talk)
        tokens = spent["living"][0]["tokens"]
        # The prices are half a dollar for a million tokens, and a dollar for keeping them for an hour.
        assert spent["spent_usd"] == pytest.approx(tokens * (0.5 + 1.0) / 1e6, rel=1e-6)
        assert (spent["used"], spent["saved_usd"], spent["storage_priced_on"]) == (0, 0, "2026-11-21")
        talk.chat("Two.")
        talk.chat("Three.")
        saved = talk.get("/stats")["caches"]
        assert (saved["used"], saved["tokens_read"]) == (2, 2 * tokens)
        assert saved["saved_usd"] == pytest.approx(2 * tokens * 0.45 / 1e6, rel=1e-6)
        assert saved["net_usd"] == pytest.approx(saved["saved_beyond_implicit_usd"] - saved["spent_usd"])
        assert saved["prefix"]["verdict"] == "alive"
        metrics = talk.http.get("/metrics").text
        assert 'throughline_provider_caches_total{action="used"}' in metrics
        assert 'throughline_provider_cache_usd_total{kind="spent"}' in metrics

    @pytest.mark.long
    def test_is_shared_by_conversations_that_begin_alike(self, gemini: Gemini, begin: Callable[..., Talk]) -> None:
        one, other, third = begin(), begin(), begin(prompt=LARGE + " Otherwise.")
        one.chat("Hello.")
        (cache,) = cached(gemini)
        stored(one)
        other.chat("Hello, too.")
        assert sent(gemini)["cachedContent"] == cache["name"]
        third.chat("Hello from elsewhere.")
        assert "cachedContent" not in sent(gemini)
        cached(gemini, 2)
        assert len(gemini.cache_calls("POST")) == 2
        assert one.http.delete(one.path()).status_code == 204
        time.sleep(1.5)  # the time of two sweeps
        assert cache["name"] in {kept["name"] for kept in gemini.caches()}, "the other conversation begins so still"

    @pytest.mark.long
    def test_is_not_touched_by_compactions(self, gemini: Gemini, begin: Callable[..., Talk]) -> None:
        talk = begin({**WINDOW, "context_window": 20_000, "cache": "always"})
        talk.batch(lines(60))
        talk.compact()
        talk.chat("What did we speak of?")
        (cache,) = cached(gemini)
        stored(talk)
        talk.batch(lines(60, start=61))
        assert talk.compact()["status"] == "applied"
        talk.chat("And what else?")
        assert sent(gemini)["cachedContent"] == cache["name"]
        assert any("<session_state>" in str(content) for content in sent(gemini)["contents"])
        assert len(gemini.cache_calls("POST")) == 1
        assert cache["name"] not in {call["name"] for call in gemini.cache_calls()}, "neither renewed nor deleted"

    @pytest.mark.long
    def test_is_made_anew_when_what_it_holds_changes_and_the_old_one_is_deleted(
        self, gemini: Gemini, begin: Callable[..., Talk]
    ) -> None:
        talk = begin()
        talk.chat("Hello.")
        (old,) = cached(gemini)
        stored(talk)
        good(talk.patch({"system_prompt": "You are somebody else now. " + LARGE}))
        until(lambda: gemini.caches() == [], what="the deletion")
        talk.chat("Who are you?")
        assert "cachedContent" not in sent(gemini)
        (new,) = cached(gemini)
        assert new["name"] != old["name"]
        assert stored(talk, 2)["ended"] == 0, "what was given back is nobody's own"
        whole = talk.http.get("/stats").json()["caches"]
        assert whole["ended"] >= 1
        talk.chat("Once more.")
        assert sent(gemini)["cachedContent"] == new["name"]

    @pytest.mark.long
    @pytest.mark.parametrize(
        "status", [403, pytest.param(404, marks=pytest.mark.long), pytest.param(400, marks=pytest.mark.long)]
    )
    def test_that_the_provider_lost_costs_the_client_nothing_but_a_warning(
        self, gemini: Gemini, begin: Callable[..., Talk], status: int
    ) -> None:
        talk = begin()
        talk.chat("Hello.")
        (lost,) = cached(gemini)
        stored(talk)
        gemini.caches(forget=True, lost_as=status)
        before = len(gemini.requests("chat"))
        *_, done = talk.streamed("Are you there?")
        assert (done.type, done.data["warnings"]) == ("reply.completed", [FORGOTTEN])
        refused, answered = gemini.requests("chat")[before:]
        assert (refused["body"]["cachedContent"], "cachedContent" in answered["body"]) == (lost["name"], False)
        assert "systemInstruction" in answered["body"]
        (new,) = cached(gemini)
        stored(talk, 2)
        assert talk.chat("Go on.")["warnings"] == []
        assert sent(gemini)["cachedContent"] == new["name"] != lost["name"]
        assert talk.get("/stats")["caches"]["lost"] == 1

    @pytest.mark.long
    def test_does_not_hide_what_is_wrong_with_the_request_itself(
        self, gemini: Gemini, begin: Callable[..., Talk]
    ) -> None:
        """The control: a refusal that is not about the cache is reported, and the cache is kept."""
        talk = begin()
        talk.chat("Hello.")
        (cache,) = cached(gemini)
        stored(talk)
        gemini.script("chat", {"name": "error_400", "times": 2})
        assert talk.post("/chat", {"content": "Refused."}).status_code >= 500
        gemini.script("chat", default="honest", replace=True)
        assert talk.chat(None)["warnings"] == []
        assert sent(gemini)["cachedContent"] == cache["name"]

    @pytest.mark.long
    def test_is_kept_for_longer_when_it_is_used_near_its_end(self, gemini: Gemini, begin: Callable[..., Talk]) -> None:
        talk = begin({**ALWAYS, "cache_ttl": 300})
        talk.chat("Hello.")
        (cache,) = cached(gemini)
        stored(talk)
        talk.chat("Still early.")
        assert gemini.cache_calls("PATCH") == []
        grow_older(talk.service, 220)
        talk.chat("Late.")
        until(lambda: gemini.cache_calls("PATCH"), what="the renewal")
        (renewal,) = gemini.cache_calls("PATCH")
        assert (renewal["name"], renewal["body"]["ttl"]) == (cache["name"], "300s")
        until(lambda: talk.get("/stats")["caches"]["renewed"] == 1, what="the account of the renewal")
        assert len(gemini.cache_calls("POST")) == 1

    @pytest.mark.long
    def test_goes_with_the_end_user_whose_conversations_begin_so(
        self, gemini: Gemini, begin: Callable[..., Talk]
    ) -> None:
        talk = begin(user_id="reader-7")
        talk.chat("Hello.")
        cached(gemini)
        stored(talk)
        assert talk.http.delete("/users/reader-7").is_success
        until(lambda: gemini.caches() == [], what="the deletion")


class TestWhereItPays:
    """With ``auto`` the arithmetic decides, with the measured rate of the provider's own hits."""

    @pytest.mark.long
    def test_one_is_made_once_enough_is_asked_that_the_provider_does_not_cache_by_itself(
        self, gemini: Gemini, begin: Callable[..., Talk]
    ) -> None:
        gemini.caches(implicit=0.0)
        talk = begin(ROOMY)
        for number in range(3):
            talk.chat(f"Question {number}.")
        assert gemini.cache_calls("POST") == []
        assert talk.get("/stats")["caches"]["prefix"]["verdict"] == "does_not_pay"
        # As if other conversations had begun in this way: an hour of these tokens costs what four requests save.
        execute_sql(talk.service.database_url, "UPDATE provider_caches SET rate = 4 WHERE name IS NULL")
        talk.chat("One more.")
        (cache,) = cached(gemini)
        stored(talk)
        talk.chat("And now?")
        assert sent(gemini)["cachedContent"] == cache["name"]

    @pytest.mark.long
    def test_none_is_made_where_the_provider_caches_by_itself(self, gemini: Gemini, begin: Callable[..., Talk]) -> None:
        """The control: the same talk, and even longer."""
        gemini.caches(implicit=0.95)
        talk = begin(ROOMY)
        for number in range(6):
            talk.chat(f"Question {number}.")
        prefix = talk.get("/stats")["caches"]["prefix"]
        assert (prefix["verdict"], prefix["implicit_hit_rate"]) == ("does_not_pay", pytest.approx(0.95, abs=0.05))
        assert gemini.cache_calls("POST") == []


class TestNone:
    @pytest.mark.parametrize(
        ("policy", "prompt", "verdict"),
        [
            ({**ROOMY, "cache": "off"}, LARGE, "off"),
            pytest.param(ALWAYS, "You are brief.", "too_small", marks=pytest.mark.long),
        ],
    )
    def test_is_asked_for(
        self, gemini: Gemini, begin: Callable[..., Talk], policy: Json, prompt: str, verdict: str
    ) -> None:
        talk = begin(policy, prompt)
        talk.chat("One.")
        talk.chat("Two.")
        assert gemini.cache_calls("POST") == []
        caches = talk.get("/stats")["caches"]
        assert (caches["prefix"]["verdict"], caches["made"], caches["spent_usd"]) == (verdict, 0, None)

    def test_holds_what_a_client_brought_to_one_turn(self, gemini: Gemini, begin: Callable[..., Talk]) -> None:
        talk = begin()
        good(talk.post("/chat", {"content": "Hello.", "instructions": "Be brief, this once."}))
        assert "Be brief, this once." in str(sent(gemini)["systemInstruction"])
        assert gemini.cache_calls("POST") == []
        assert talk.get("/stats")["caches"]["living"] == []

    @pytest.mark.long
    def test_stands_in_for_a_system_message_that_comes_later(self, gemini: Gemini, begin: Callable[..., Talk]) -> None:
        """A request that names a cache may have no instruction of its own; this one has one, so it is sent whole."""
        talk = begin()
        talk.chat("Hello.")
        cached(gemini)
        stored(talk)
        talk.append("From now on answer in rhymes.", role="system")
        assert talk.chat("How are you?")["warnings"] == []
        assert "cachedContent" not in sent(gemini)
        assert "rhymes" in str(sent(gemini))

    @pytest.mark.long
    def test_of_the_offline_model_and_the_stats_say_so(self, start_talk: StartTalk, offline: Service) -> None:
        talk = start_talk(offline, policy=ALWAYS, system_prompt=LARGE)
        talk.chat("Hello.")
        caches = talk.get("/stats")["caches"]
        assert (caches["availability"], caches["availability_label"]) == ("model", "not available for this model")
        assert (caches["made"], caches["prefix"], caches["storage_priced_on"]) == (0, None, None)


class TestTrouble:
    @pytest.mark.long
    def test_a_provider_that_wants_more_is_believed(
        self, gemini: Gemini, begin: Callable[..., Talk], service: Service
    ) -> None:
        gemini.caches(minimum=50_000)
        talk = begin()
        talk.chat("One.")
        until(lambda: talk.get("/stats")["caches"]["failed"] == 1, what="the refusal")
        until(lambda: talk.get("/stats")["caches"]["prefix"]["verdict"] == "too_small", what="the verdict")
        talk.chat("Two.")
        assert talk.get("/stats")["caches"]["prefix"]["minimum_tokens"] == 50_000
        assert len(gemini.cache_calls("POST")) == 1
        # What the service learned holds for the tenant and the model, which later tests share.
        execute_sql(service.database_url, "UPDATE provider_caches SET minimum = NULL")

    @pytest.mark.long
    def test_a_provider_that_fails_is_left_alone_for_a_while(self, gemini: Gemini, begin: Callable[..., Talk]) -> None:
        gemini.caches(refuse=429, refuse_times=99)
        talk = begin()
        for number in range(4):
            assert talk.chat(f"Question {number}.")["warnings"] == []
        until(lambda: talk.get("/stats")["caches"]["failed"] == 1, what="the failure")
        time.sleep(1.5)
        assert len(gemini.cache_calls("POST")) == 1

    @pytest.mark.long
    def test_a_slow_provider_holds_up_no_turn(self, gemini: Gemini, begin: Callable[..., Talk]) -> None:
        gemini.caches(hold=True)
        talk = begin()
        talk.chat("One.")
        until(lambda: gemini.cache_calls("POST"), what="the making of the cache, which lasts")
        talk.chat("Two.")
        assert "cachedContent" not in sent(gemini)
        assert gemini.caches() == []
        gemini.caches(hold=False)
        cached(gemini)
        stored(talk)

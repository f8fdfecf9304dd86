"""The preset ``turn_end``, as History Semantic Compression describes it: one summary once a turn ends in a full window.

In a window of 4 000: it warns from 3 000 on, is critical from 3 600 on, and the summary has 400 tokens, a tenth.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from app.core.text.language import detect
from tests.acceptance.conftest import RunService, StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import (
    STREAM,
    EventFollower,
    Json,
    Sse,
    Talk,
    good,
    lines,
    read_events,
    served_seqs,
    text_of,
    weight_of,
)
from tests.gemini_faults import Behaviour
from tests.gemini_server import Gemini
from tests.gemini_wire import cut

SMALL: Final[Json] = {"context_window": 4_000}
WARNING, CRITICAL, WINDOW, SUMMARY = 3_000, 3_600, 4_000, 400
PROMPT: Final = """\
You furnish offices, and you are fond of oak.
A "room" is also called a cell.
1. First ask for the number of the cell.
Speak warmly."""
ROOMS: Final = """\
Ты обставляешь кабинеты и любишь дуб.
Комната — это кабинет; её также называют ячейкой.
Сначала уточни номер кабинета.
Говори тепло."""
ROOM_TERMS: Final = ("Комната — это кабинет; её также называют ячейкой.", "Сначала уточни номер кабинета.")
MARKUP: Final = re.compile(r"`[^`]*`|</?\w+>")
LATIN: Final = re.compile(r"[A-Za-z]+")
FIRMS: Final = ("Северный ветер", "Кедр", "Вершина", "Тополь", "Янтарь")
THINGS: Final = ("дубовые столы", "настольные лампы", "жалюзи", "вешалки", "магнитные доски")
TERMS: Final = ('A "room" is also called a cell.', "1. First ask for the number of the cell.")
STOPS: Final[Behaviour] = {"name": "text", "text": text_of(700), "hold_after": 2}
"""A reply in five pieces, of which all after the first two wait until they are released."""


def hear_the_beginning(deltas: Iterator[Sse], stops: Behaviour) -> None:
    """Return when everything that comes before a reply stops has come; several pieces may come as one."""
    said, beginning = "", "".join(cut(stops["text"])[: stops["hold_after"]])
    while said != beginning:
        said += next(deltas).data["text"]
        assert beginning.startswith(said)


def saying(tokens: int) -> Behaviour:
    return {"name": "text", "text": text_of(tokens)}


def russian(count: int, start: int = 0) -> list[tuple[str, str]]:
    """This many messages about an office that is being furnished; no two are alike."""
    said: list[tuple[str, str]] = []
    for number in range(start + 1, start + count // 2 + 1):
        firm, thing = f"{FIRMS[number % 5]}-{number}", THINGS[number % 5]
        said += [
            (
                "user",
                (
                    f"Для комнаты {number} я решил заказать {thing} у фирмы «{firm}». Они стоят по {110 + number} евро"
                    f" и должны прийти к {1 + number % 27} мая 2027 года, потому что сразу после этого въезжает отдел."
                ),
            ),
            (
                "assistant",
                (
                    f"Записал {thing} от «{firm}» для комнаты {number} и подготовлю бланк заказа. Счёт отправить"
                    " по тому же адресу, что и в прошлый раз?"
                ),
            ),
        ]
    return said


def office(tokens: int) -> str:
    """Talk about that office, of at most this many tokens."""
    words = " ".join(content for _, content in russian(20, start=60)).split()
    while weight_of([("assistant", " ".join(words))]) > tokens:
        words.pop()
    return " ".join(words)


def first_applied(talk: Talk, language: str) -> Json:
    """The first event of a compaction that took effect, in the words for a reader of that language."""
    with talk.http.stream("GET", talk.path("/events"), headers={"Accept-Language": language}) as response:
        return next(event.data for event in read_events(response) if event.type == "compaction.applied")


def counted(stats: Json) -> dict[str, int]:
    """The number of compactions by trigger."""
    return {one["name"]: one["count"] for one in stats["compactions"]["by_trigger"]}


def size(talk: Talk) -> int:
    tokens: int = talk.get("/usage")["tokens"]
    return tokens


def full(talk: Talk, tokens: int) -> None:
    """Fill the talk with complete turns to twenty tokens less than this."""
    talk.fill(tokens - 150)
    missing = tokens - 20 - size(talk)
    talk.batch([("user", text_of(missing - 60)), ("assistant", text_of(60))])
    assert talk.history()[-1]["role"] == "assistant"
    assert size(talk) == tokens - 20


def summary_of(talk: Talk) -> Json:
    """The one message that stands for all earlier ones: the assistant's, after the system messages."""
    served = talk.context()["messages"]
    made = [number for number, item in enumerate(served) if item["seq"] is None and item["role"] != "system"]
    assert len(made) == 1
    (place,) = made
    assert served[place]["role"] == "assistant"
    assert all(item["role"] == "system" for item in served[:place])
    assert [item["seq"] for item in served[place + 1 :]] == [
        item["seq"] for item in talk.history() if item["seq"] > talk.boundary()
    ]
    found: Json = served[place]
    return found


class TestAfterTheTurn:
    def test_that_is_complete_all_is_one_summary(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = start_talk(gemini_service, preset="turn_end", policy=SMALL, system_prompt=PROMPT)
        stats = good(talk.http.get("/stats"))
        full(talk, CRITICAL - 250)
        assert talk.get("/usage")["status"] == "warning"
        gemini.script("chat", saying(400))
        with EventFollower(talk) as feed:
            streamed = talk.streamed("And what about the chairs?")
            feed.wait_for(lambda _: feed.of_type("compaction.applied"))
        done = streamed[-1]
        assert [event.type for event in streamed if event.type.startswith("compaction")] == [], "not before the reply"
        assert (done.type, done.data["compaction"], done.data["context"]["status"]) == (
            "reply.completed",
            None,
            "critical",
        )
        order = [event["type"] for event in feed.events]
        assert order.index("reply.completed") < order.index("compaction.started")

        (row,) = talk.wait_ended()
        history = talk.history()
        assert (row["trigger"], row["ran_in"], row["status"]) == ("completion", "worker", "applied")
        assert row["messages_covered"] == len(history) == talk.boundary(), "0 turns are kept"
        assert [item["role"] for item in talk.context()["messages"]] == ["system", "assistant"]
        assert summary_of(talk)["content"].startswith("<session_state>")
        assert talk.get("/usage")["breakdown"]["state"] <= SUMMARY

        (asked,) = gemini.requests("compaction")
        told = asked["body"]["systemInstruction"]["parts"][0]["text"]
        assert "at most about 240 words" in told, "three words in five tokens of a record in English"
        shown = asked["body"]["contents"][0]["parts"][0]["text"]
        assert "\n".join(["<system_context>", *TERMS, "</system_context>"]) in shown
        assert "fond of oak" not in shown

        (before,), (after,) = feed.of_type("compaction.started"), feed.of_type("compaction.applied")
        assert before["notification"] == {
            "level": "info",
            "title": "Compressing the conversation",
            "message": (
                f"Context at 90 % or more: the conversation is being shortened, {row['tokens_before']:,} tokens now."
            ),
            "locale": "en",
        }
        saved = row["tokens_before"] - row["tokens_after"]
        assert after["notification"]["message"] == (
            f"Context at 90 % or more: {len(history)} messages summarised, {saved:,} tokens saved."
        )
        shown_stats = talk.get("/stats")
        assert shown_stats["compactions"]["by_trigger"] == [
            {"name": "completion", "label": "after a completed turn, at 90 % of the window", "count": 1}
        ]
        assert shown_stats["tokens"]["saved"] == saved
        total = good(talk.http.get("/stats"))
        assert total["tokens"]["saved"] - stats["tokens"]["saved"] == saved

    @pytest.mark.daily(1)
    @pytest.mark.parametrize(("tokens", "claimed"), [(CRITICAL - 1, 0), (CRITICAL, 1)])
    def test_from_90_percent_of_the_window_on(
        self, offline: Service, start_talk: StartTalk, tokens: int, claimed: int
    ) -> None:
        talk = start_talk(offline, preset="turn_end", policy=SMALL)
        full(talk, CRITICAL - 300)
        talk.append("And what about the chairs?")
        talk.append(text_of(tokens - size(talk)), role="assistant")
        rows = talk.wait_ended(claimed)
        assert [(row["trigger"], row["tokens_before"]) for row in rows] == [("completion", tokens)] * claimed

    @pytest.mark.long
    @pytest.mark.parametrize(
        "way",
        [
            pytest.param("the client leaves", marks=pytest.mark.long),
            pytest.param("asked for", marks=pytest.mark.long),
            "asked for in another process",
        ],
    )
    def test_that_is_interrupted_stays(
        self,
        gemini_service: Service,
        run_service: RunService,
        start_talk: StartTalk,
        gemini: Gemini,
        tmp_path: Path,
        way: str,
    ) -> None:
        talk = start_talk(gemini_service, preset="turn_end", policy=SMALL)
        full(talk, CRITICAL - 100)
        count = len(talk.history())
        gemini.script("chat", STOPS)
        with EventFollower(talk) as feed, other_process(run_service, gemini_service, tmp_path, way) as http:
            with httpx.Client(base_url=gemini_service.url, trust_env=False) as client:
                body, path = {"content": "And the chairs?"}, talk.path("/chat")
                with client.stream("POST", path, json=body, headers=STREAM) as response:
                    deltas = (event for event in read_events(response) if event.type == "reply.delta")
                    hear_the_beginning(deltas, STOPS)
                    if way != "the client leaves":
                        stopped = (http or talk.http).post(talk.path("/chat/interrupt"), json={})
                        assert good(stopped)["interrupted"] is True
                        list(deltas)
            feed.wait_for(lambda _: feed.of_type("compaction.applied"))
        reply = talk.history()[-1]
        (row,) = talk.wait_ended()
        assert (reply["status"], reply["content"] != STOPS["text"]) == ("interrupted", True)
        assert (row["trigger"], row["ran_in"], row["status"]) == ("interrupted", "worker", "applied")
        assert row["to_seq"] == talk.boundary() == count, "1 turn is kept: the interrupted one"
        assert served_seqs(talk.context()) == [count + 1, count + 2]
        assert summary_of(talk)["content"].startswith("<session_state>")
        (after,) = feed.of_type("compaction.applied")
        assert after["notification"]["message"].startswith("After an interrupted turn, at 90 % or more: ")

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("tokens", "claimed"), [(2_000, 0), pytest.param(CRITICAL - 100, 1, marks=pytest.mark.long)]
    )
    def test_that_is_interrupted_below_90_percent_changes_nothing(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini, tokens: int, claimed: int
    ) -> None:
        talk = start_talk(gemini_service, preset="turn_end", policy=SMALL)
        full(talk, tokens)
        gemini.script("chat", STOPS)
        with talk.streaming("And the chairs?") as events:
            deltas = (event for event in events if event.type == "reply.delta")
            hear_the_beginning(deltas, STOPS)
            assert good(talk.post("/chat/interrupt"))["interrupted"] is True
            list(deltas)
        assert talk.history()[-1]["status"] == "interrupted"
        assert [row["trigger"] for row in talk.wait_ended(claimed)] == ["interrupted"] * claimed


@contextlib.contextmanager
def other_process(run: RunService, service: Service, folder: Path, way: str) -> Iterator[httpx.Client | None]:
    """A second API process over the same database, if the way needs one."""
    if way != "asked for in another process":
        yield None
        return
    urls: dict[str, Any] = {"database_url": service.database_url, "redis_url": service.redis_url}
    with (
        run(folder, **urls, worker=False, settings=service.settings) as other,
        other.client() as http,
    ):
        yield http


class TestInsideTheTurn:
    @pytest.mark.long
    def test_before_a_call_the_turn_and_one_before_it_stay(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = start_talk(gemini_service, preset="turn_end", policy=SMALL)
        full(talk, CRITICAL - 100)
        count = len(talk.history())
        streamed = talk.streamed(text_of(150))
        assert [event.type for event in streamed if event.type.startswith("compaction")] == [
            "compaction.started",
            "compaction.applied",
        ]
        row = streamed[-1].data["compaction"]
        assert (row["trigger"], row["ran_in"], row["status"]) == ("sync", "turn", "applied")
        assert row["to_seq"] == count - 2
        before, after = (event.data["notification"] for event in streamed if event.type.startswith("compaction"))
        assert before["message"] == (
            "Ahead of the next model call, at 90 % or more: the conversation is being shortened,"
            f" {row['tokens_before']:,} tokens now."
        )
        assert after == first_applied(talk, "en")["notification"], "in the turn's own stream as on the event stream"
        said = first_applied(talk, "en")["notification"]["message"]
        assert said.startswith(f"Ahead of the next model call, at 90 % or more: {count - 2} messages summarised, ")
        assert first_applied(talk, "ru")["notification"]["message"].startswith(
            "Заранее, перед вызовом модели, при 90 %"
        )
        sent = gemini.requests("chat")[0]["body"]["contents"]
        texts = [part["text"] for one in sent for part in one["parts"]]
        texts = [text for text in texts if text]  # the wire begins with a turn of the user, which may be empty
        assert texts[0].startswith("<session_state>")
        assert texts[1:] == [item["content"] for item in talk.history()[count - 2 : count + 1]]

    @pytest.mark.long
    def test_between_calls_the_turn_and_one_before_it_stay(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        def run(policy: Json) -> tuple[Talk, int, Json]:
            """A turn with a search whose long result fills the window, after a first compaction that offers it."""
            talk = start_talk(gemini_service, preset="turn_end", policy=policy)
            full(talk, 2_500)
            talk.compact()
            full(talk, CRITICAL - 200)
            count = len(talk.history())
            call = {"name": "search_history", "args": {"query": "room oak tables invoice", "limit": 10}}
            gemini.script("chat", {"name": "calls", "calls": [call]}, saying(30), replace=True)
            return talk, count, talk.chat("Which oak tables did we order?")

        talk, count, done = run(SMALL)
        row = done["compaction"]
        assert (row["trigger"], row["ran_in"], row["status"]) == ("mid_turn", "turn", "applied")
        assert row["to_seq"] == count - 2
        roles = [item["role"] for item in talk.history()[count:]]
        assert roles == ["user", "assistant", "tool", "assistant"]
        assert done["warnings"] == []
        asked = gemini.requests("chat")[-1]["body"]["contents"]
        assert "functionResponse" in str(asked[-1])
        assert talk.history()[count - 3]["content"] not in str(asked)
        assert all(item["content"] in str(asked) for item in talk.history()[count - 2 : count + 1])

        without = [one for one in talk.get()["policy"]["triggers"] if one["name"] not in {"mid_turn", "completion"}]
        control, count, done = run({**SMALL, "triggers": without})
        assert done["compaction"] is None
        assert len(control.compactions()) == 1


class TestTheSummary:
    @pytest.mark.long
    def test_stands_after_the_system_messages_which_are_never_folded(
        self, offline: Service, start_talk: StartTalk
    ) -> None:
        talk = start_talk(offline, preset="turn_end", policy=SMALL, system_prompt=PROMPT)
        talk.batch(lines(10))
        rule = talk.append("From now on prices are shown without tax.", role="system")
        talk.batch(lines(30, start=40))
        talk.compact()
        talk.append("And the chairs?")
        served = talk.context()["messages"]
        summary = summary_of(talk)
        assert [item["seq"] for item in served[served.index(summary) :]] == [None, 42]
        assert [item["content"] for item in served if item["seq"] == rule["seq"]] == [rule["content"]]
        assert served[0]["content"].startswith(PROMPT)

    @pytest.mark.daily(1)
    @pytest.mark.parametrize(("preset", "words"), [("turn_end", "160 words"), ("handoff", "140 words")])
    def test_is_asked_for_in_words_of_its_language_and_with_the_terms_of_the_system_prompt(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini, preset: str, words: str
    ) -> None:
        """Five tokens count as two words. The other preset is the control: it sees nothing of the system prompt."""
        talk = start_talk(gemini_service, preset=preset, policy=SMALL, system_prompt=ROOMS)
        talk.batch(russian(40))
        talk.post("/compact")
        asked = gemini.requests("compaction")[0]["body"]
        told = asked["systemInstruction"]["parts"][0]["text"]
        assert f"at most about {words}" in told
        assert "in the conversation's own language, Russian" in told
        shown = asked["contents"][0]["parts"][0]["text"]
        terms = "\n".join(["<system_context>", *ROOM_TERMS, "</system_context>"])
        assert (terms in shown) == (preset == "turn_end")
        assert "Говори тепло" not in str(asked)


class TestAFailure:
    @pytest.mark.daily(1)
    @pytest.mark.parametrize(
        ("asked", "reply", "trigger", "reason", "warnings"),
        [
            (30, 200, "completion", "Context at 90 % or more", []),
            (150, 10, "sync", "Ahead of the next model call, at 90 % or more", ["compaction_failed:empty_summary"]),
        ],
    )
    def test_leaves_everything_uncompressed_and_untruncated(
        self,
        gemini_service: Service,
        start_talk: StartTalk,
        gemini: Gemini,
        asked: int,
        reply: int,
        trigger: str,
        reason: str,
        warnings: list[str],
    ) -> None:
        """The summary fails after the turn or before a call; an honest summary of the same is the control."""
        talk = start_talk(gemini_service, preset="turn_end", policy=SMALL)
        full(talk, CRITICAL - 100)
        state = talk.state()
        gemini.script("compaction", default="empty")
        gemini.script("chat", saying(reply), default=saying(10))
        with EventFollower(talk) as feed:
            done = talk.chat(text_of(asked))
            feed.wait_for(lambda _: feed.of_type("compaction.failed"))
            (said,) = feed.of_type("compaction.failed")
        assert done["warnings"] == warnings
        assert said["notification"] == {
            "level": "warning",
            "title": "Nothing was compressed",
            "message": f"{reason}: the conversation stays as it was.",
            "locale": "en",
        }
        (row,) = talk.compactions()
        assert (row["trigger"], row["status"], row["reason"]) == (trigger, "rejected", "empty_summary")
        assert talk.state() == state
        assert talk.chat("And the tables?")["warnings"] == []
        sent = gemini.requests("chat")[-1]["body"]["contents"]
        assert [part["text"] for one in sent for part in one["parts"]] == [
            item["content"] for item in talk.history()[:-1]
        ], "the whole history"
        assert talk.context()["truncated"] is None

        gemini.script("compaction", default="honest")
        assert talk.compact()["status"] == "applied"

    @pytest.mark.long
    @pytest.mark.parametrize("fault", ["error_401", pytest.param("please_provide", marks=pytest.mark.long)])
    def test_between_calls_leaves_the_turn_and_everything_before_it(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini, fault: str
    ) -> None:
        """The provider refuses, or its answer cannot be read: the turn ends with its reply, and nothing is cut."""
        talk = start_talk(gemini_service, preset="turn_end", policy=SMALL)
        full(talk, 2_500)
        talk.compact()
        full(talk, CRITICAL - 200)
        state = talk.state()
        call = {"name": "search_history", "args": {"query": "room oak tables invoice", "limit": 10}}
        gemini.script("compaction", default=fault)
        gemini.script("chat", {"name": "calls", "calls": [call]}, saying(10), replace=True)
        done = talk.chat("Which oak tables did we order?")
        assert (done["compaction"]["trigger"], done["compaction"]["status"]) in {
            ("mid_turn", "failed"),
            ("mid_turn", "rejected"),
        }
        assert done["warnings"] == [f"compaction_failed:{done['compaction']['reason']}"]
        assert talk.state() == state
        sent = str(gemini.requests("chat")[-1]["body"]["contents"])
        kept = [item["content"] for item in talk.history() if item["seq"] > talk.boundary() and item["content"]]
        assert all(text in sent for text in kept[:-1]), "the whole history since the summary"
        assert talk.context()["truncated"] is None

    @pytest.mark.long
    def test_with_less_than_is_kept_nothing_is_done(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = start_talk(gemini_service, preset="turn_end", policy=SMALL)
        stops = {**STOPS, "text": text_of(1_000), "hold_after": 3}
        gemini.script("chat", stops)
        with EventFollower(talk) as feed:
            with talk.streaming(text_of(3_000)) as events:
                deltas = (event for event in events if event.type == "reply.delta")
                hear_the_beginning(deltas, stops)
                assert good(talk.post("/chat/interrupt"))["interrupted"] is True
                list(deltas)
            feed.wait_for(lambda _: feed.of_type("compaction.skipped"))
        (row,) = talk.wait_ended()
        assert (row["trigger"], row["status"], row["reason"]) == ("interrupted", "skipped", "nothing_to_compact")
        assert talk.get("/usage")["status"] == "critical"
        assert served_seqs(talk.context()) == [1, 2]
        assert gemini.requests("compaction") == []


class TestWhatPeopleSee:
    @pytest.mark.long
    def test_is_the_same_history_and_export(self, offline: Service, start_talk: StartTalk) -> None:
        talk = start_talk(offline, preset="turn_end", policy={**SMALL, "max_tokens": -1})
        full(talk, CRITICAL)
        history, markdown = talk.history(), talk.http.get(talk.path("/export"), params={"format": "markdown"}).text
        assert talk.compact()["messages_covered"] == len(history)
        assert talk.history() == history
        assert talk.http.get(talk.path("/export"), params={"format": "markdown"}).text == markdown
        assert talk.http.get(talk.path("/export")).json()["messages"] == history
        assert served_seqs(talk.context()) == []

    @pytest.mark.long
    def test_counts_are_exact_when_many_are_compacted_at_once(self, offline: Service, start_talk: StartTalk) -> None:
        talks = [start_talk(offline, preset="turn_end", policy=SMALL) for _ in range(5)]
        before = good(talks[0].http.get("/stats"))
        for talk in talks:
            full(talk, CRITICAL - 100)
        asked, by_hand = talks[:3], talks[3:]
        with ThreadPoolExecutor(len(talks)) as pool:
            chats = [pool.submit(talk.append, text_of(200), "assistant") for talk in asked]
            manual = [pool.submit(talk.compact) for talk in by_hand]
            assert all(done.result(30) for done in [*chats, *manual])
        rows = [row for talk in talks for row in talk.wait_ended()]
        assert sorted(row["trigger"] for row in rows) == ["completion"] * 3 + ["manual"] * 2
        assert {row["status"] for row in rows} == {"applied"}
        after = good(talks[0].http.get("/stats"))
        grown = Counter(counted(after))
        grown.subtract(counted(before))
        assert +grown == Counter(completion=3, manual=2)
        saved = sum(row["tokens_before"] - row["tokens_after"] for row in rows)
        assert after["tokens"]["saved"] - before["tokens"]["saved"] == saved
        assert sum(talk.get("/stats")["tokens"]["saved"] for talk in talks) == saved

    @pytest.mark.long
    def test_is_russian_from_start_to_end(self, offline: Service, start_talk: StartTalk) -> None:
        talk = start_talk(offline, preset="turn_end", policy=SMALL, locale="ru-RU", system_prompt=ROOMS)
        with EventFollower(talk) as feed:
            talk.batch(russian(50))
            assert CRITICAL - 800 < size(talk) < CRITICAL - 300
            for number in (12, 22):
                asked = f"Сколько стоят жалюзи для комнаты {number}, и когда их привезут?"
                if number == 22:  # the reply, and not the question, fills the window
                    talk.append(office(CRITICAL - 1 - size(talk) - weight_of([("user", asked)])), role="assistant")
                done = talk.chat(asked)
                assert detect(done["reply"]["content"]) == "ru"
            feed.wait_for(lambda _: feed.of_type("compaction.applied"))
        (row,), stats, summary = talk.wait_ended(), talk.get("/stats"), talk.get()["compressed_state"]["summary"]
        assert (detect(summary), detect(row["summary"])) == ("ru", "ru")
        awareness = talk.context()["messages"][0]["content"].removeprefix(ROOMS)
        assert "начало этой беседы" in awareness
        (before,), (after,) = (feed.of_type(f"compaction.{when}") for when in ("started", "applied"))
        said = [before["notification"][part] for part in ("title", "message")]
        said += [after["notification"][part] for part in ("title", "message")]
        assert "Контекст заполнен на 90 % или больше: " in after["notification"]["message"]
        triggers = stats["compactions"]["by_trigger"]
        assert triggers == [{"name": "completion", "label": "после завершённого хода, при 90 % окна", "count": 1}]
        assert stats["labels"]["tokens.saved"] == "Токенов сэкономлено"
        shown = [summary, row["summary"], awareness, *said, *stats["labels"].values(), *stats["summary"]]
        assert [LATIN.findall(MARKUP.sub("", text)) for text in shown] == [[]] * len(shown)
        assert LATIN.findall(MARKUP.sub("", "the `session_state` of it")) == ["the", "of", "it"], "control"
        with EventFollower(talk) as feed:
            feed.wait_for(lambda _: feed.of_type("compaction.applied"))
        assert feed.of_type("compaction.applied")[0]["notification"] == after["notification"], "also when read again"
        english = first_applied(talk, "en-GB,en;q=0.9")["notification"]
        assert (english["locale"], english["title"]) == ("en", "Conversation compressed")
        assert english["message"].startswith("Context at 90 % or more: ")

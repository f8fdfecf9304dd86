"""The preset ``handoff``, as Session Compaction describes it: seven sections, and the last twenty messages.

The numbers of the design, 80 000 and 20, are tried as they are, with contents long enough to get there by bytes ÷ 4;
everything else in a window of 4 000, where 0.85 of the budget of 3 060 is the threshold: 2 601, so from 2 602 on.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.conftest import RunService, StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import (
    BUDGET,
    EventFollower,
    Json,
    Talk,
    block_of,
    good,
    lines,
    refused,
    served_seqs,
    text_of,
)
from tests.gemini_server import Gemini
from tests.servers import execute_sql

DESIGNED: Final = 80_000
KEPT: Final = 20
SMALL: Final[Json] = {"context_window": 4_000}
FIRST: Final = 2_602
MEDIUM: Final[Json] = {"context_window": 32_000}
BY_HAND: Final[Json] = {**SMALL, "max_tokens": -1}
SECTIONS: Final = (
    "goal",
    "progress",
    "key_decisions",
    "files_changed",
    "current_state",
    "blockers",
    "next_steps",
)
HEADINGS: Final = ("Goal", "Progress", "Key decisions", "Files changed", "Current state", "Blockers", "Next steps")
JOB: Final = (
    ("user", "Our goal is to import the members of the choir from a CSV file into the app."),
    ("assistant", "Understood. First I looked at data/members.csv: it has 412 rows, separated by semicolons."),
    ("user", "The import must accept at most 5000 rows, and every row needs an email address."),
    ("assistant", "I wrote app/importer.py, which reads the rows with the csv module and stops after row 5000."),
    ("user", "Let's use PostgreSQL rather than SQLite, because the server runs it already for the ticket shop."),
    ("assistant", "I changed app/settings.py so that DATABASE_URL points at PostgreSQL on port 5433."),
    ("user", "Good. And we decided against an ORM, since nobody here knows one well enough."),
    ("assistant", "Then I use plain SQL. I added migrations/0001_members.sql with a unique index on the email."),
    ("user", "The test in tests/test_importer.py keeps failing with UnicodeDecodeError for the name of Łukasz."),
    ("assistant", "That file is in cp1250. 11 of 12 tests pass now; the encoding is detected in app/encoding.py."),
    ("user", "We are still waiting for the password of the staging server, so nobody can try it there."),
    ("assistant", "Noted. I will add the option --dry-run to the command line tomorrow, before anything is stored."),
    ("user", "Yes. Who is going to pay for the domain once the first year is over on 1 May 2027?"),
    ("assistant", "I do not know. After that I will write the page docs/import.md for the board of the choir."),
)


TALK_IN_RUSSIAN: Final = (
    ("user", "Наша цель: перенести членов хора из таблицы в приложение до 1 марта 2027 года."),
    ("assistant", "Понятно. Сначала я посмотрел таблицу: в ней 412 строк с точкой с запятой."),
    ("user", "Решено: берём PostgreSQL, потому что он уже работает на сервере."),
    ("assistant", "Дальше я напишу страницу для правления хора и пришлю её в пятницу."),
)
ASKED: Final[Mapping[str, tuple[str, ...]]] = {
    "goal": ("the objective of the session as the user set it at first",),
    "progress": ("completed or done in part",),
    "key_decisions": ("each decision", "the reason for it"),
    "files_changed": ("file, path or document", "what was done in it"),
    "current_state": ("what works now, what does not", "no access to the conversation"),
    "blockers": ("obstacle", "pitfall or edge case"),
    "next_steps": ("concrete enough to be begun at once, in order",),
}


def item(text: str, *seqs: int) -> Json:
    return {"text": text, "from": list(seqs), "replaces": []}


HANDOVER: Final[Json] = {
    "goal": [item("The user wants the members of the choir imported from a CSV file into the app.", 1)],
    "progress": [item("app/importer.py reads the rows with the csv module and stops after row 5000.", 4)],
    "key_decisions": [item("PostgreSQL rather than SQLite, because the server runs it already.", 5)],
    "files_changed": [item("app/settings.py: DATABASE_URL points at PostgreSQL on port 5433.", 6)],
    "current_state": "11 of 12 tests pass; the name of Łukasz in cp1250 fails.",
    "blockers": [item("The password of the staging server is still missing.", 11)],
    "next_steps": [item("Add the option --dry-run to the command line.", 12)],
}


def of_bytes(talk: Talk, tokens: int) -> str:
    """A message that brings the context to exactly this many tokens, by bytes ÷ 4."""
    size = 4 * (tokens - talk.get("/usage")["tokens"])
    assert size > 0, "there are more already"
    words = " ".join(content for _, content in lines(size // 100 + 2, start=900))
    return words[: size - 1] + "."


def filled(talk: Talk, tokens: int, messages: int = 40) -> None:
    """Append this many messages, which bring the context to a little below so many tokens, by bytes ÷ 4."""
    each = 4 * (tokens - talk.get("/usage")["tokens"]) // messages - 40
    said = lines(messages * (each // 120 + 1))
    per = len(said) // messages
    roles = ("user", "assistant")
    texts = [" ".join(content for _, content in said[n * per : (n + 1) * per])[:each] for n in range(messages)]
    talk.batch([(roles[n % 2], text) for n, text in enumerate(texts)])


def kept_verbatim(talk: Talk) -> list[Json]:
    """The messages that are served verbatim; they must be the same as in the history."""
    history = {item["seq"]: item for item in talk.history()}
    served = [item for item in talk.context()["messages"] if item["seq"] is not None]
    assert [item["content"] for item in served] == [history[item["seq"]]["content"] for item in served]
    return served


@contextlib.contextmanager
def unwritable(service: Service, talk: Talk) -> Iterator[None]:
    """Let the database refuse every new state of this conversation."""
    name = f"refuse_{talk.id.replace('-', '')}"
    execute_sql(
        service.database_url,
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$",
    )
    execute_sql(
        service.database_url,
        f"CREATE TRIGGER {name} BEFORE INSERT ON state_versions FOR EACH ROW"
        f" WHEN (NEW.conversation_id = '{talk.id}') EXECUTE FUNCTION {name}()",
    )
    try:
        yield
    finally:
        execute_sql(service.database_url, f"DROP FUNCTION {name} CASCADE")


class TestTheSections:
    @pytest.mark.long
    @pytest.mark.xfail(strict=True, reason="offline, the last plan of the assistant lacks room beside the rest")
    def test_hold_what_the_design_puts_into_them(self, offline: Service, start_talk: StartTalk) -> None:
        """The offline model recognises each kind of statement by its words."""
        talk = start_talk(offline, preset="handoff", policy=MEDIUM)
        talk.batch([*JOB, *lines(KEPT)])
        row = talk.compact()
        state = talk.get()["compressed_state"]
        assert (row["status"], row["messages_covered"]) == ("applied", len(JOB))
        assert set(state) == set(SECTIONS)
        said = {name: state[name] if isinstance(state[name], str) else "\n".join(state[name]) for name in SECTIONS}
        for section, words in (
            ("goal", "import the members of the choir"),
            ("goal", "at most 5000 rows"),
            ("key_decisions", "PostgreSQL rather than SQLite, because the server runs it already"),
            ("files_changed", "app/settings.py"),
            ("blockers", "waiting for the password of the staging server"),
            ("next_steps", "docs/import.md"),
        ):
            assert words in said[section], section
        assert said["current_state"]

    def test_are_shown_in_the_order_of_the_design(self, offline: Service, start_talk: StartTalk) -> None:
        talk = start_talk(offline, preset="handoff", policy=MEDIUM)
        talk.batch([*JOB, *lines(KEPT)])
        talk.compact()
        export = talk.http.get(talk.path("/export")).json()
        shown = (
            talk.get()["compressed_state"],
            talk.pages("/states")[0]["state"],
            export["conversation"]["compressed_state"],
            export["states"][0]["state"],
        )
        assert [tuple(state) for state in shown] == [SECTIONS] * len(shown)

    def test_are_asked_for_one_by_one_and_served_whole(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = start_talk(gemini_service, preset="handoff", policy=MEDIUM)
        talk.batch([*JOB, *lines(12, start=50), *lines(KEPT)])
        gemini.script("compaction", {"name": "candidate", "candidate": HANDOVER})
        row = talk.compact()
        (asked,) = gemini.requests("compaction")
        told = asked["body"]["systemInstruction"]["parts"][0]["text"]
        for section, words in ASKED.items():
            line = next(line for line in told.splitlines() if line.startswith(f'- "{section}": '))
            assert all(word in line for word in words), line
        schema = asked["body"]["generationConfig"]["responseJsonSchema"]["properties"]
        assert [name for name in schema if name in SECTIONS] == list(SECTIONS)

        summary, block = row["summary"], block_of(talk.context())
        assert block
        places = [summary.index(f"{heading}:\n") for heading in HEADINGS]
        assert places == sorted(places), "in the order of the design"
        for section in SECTIONS:
            written = HANDOVER[section]
            for text in [written] if isinstance(written, str) else [item["text"] for item in written]:
                assert text in summary
                assert text in block


class TestTheThreshold:
    @pytest.mark.long
    def test_of_80_000_by_bytes_is_met_before_the_users_message_is_sent(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        """The design's own numbers: contents of 320 kB, which take a moment on a busy machine."""

        def grown() -> Talk:
            talk = start_talk(gemini_service, preset="handoff", policy={"sync_deadline": 120})
            assert talk.get("/usage")["sync_at"] == DESIGNED + 1
            talk.batch(JOB)
            filled(talk, DESIGNED - 900)
            return talk

        early = grown()
        below = early.chat(of_bytes(early, DESIGNED))
        assert (below["context"]["tokens"], below["compaction"]) == (pytest.approx(DESIGNED, rel=0.02), None)
        talk = grown()
        gemini.reset()
        gemini.script("compaction", {"name": "text", "text": json.dumps({**HANDOVER, "dropped": [], "anchors": []})})
        last = of_bytes(talk, DESIGNED + 50)
        done = talk.streamed(last)[-1].data
        row = done["compaction"]
        assert (row["trigger"], row["ran_in"], row["status"]) == ("max_tokens", "turn", "applied")
        assert row["tokens_before"] > DESIGNED
        assert done["context"]["tokens"] < DESIGNED
        kinds = [one["kind"] for one in gemini.requests() if one["kind"] != "verification"]
        assert kinds[-1] == "chat", "the reply was asked for with the summary"
        sent = gemini.requests("chat")[0]["body"]["contents"]
        assert sent[-1]["parts"][-1]["text"] == last
        assert sum(len(one["parts"]) for one in sent) == 2 + KEPT, "the pair and the last twenty"
        assert [item["seq"] for item in kept_verbatim(talk)] == list(range(row["to_seq"] + 1, done["reply"]["seq"] + 1))
        assert done["message"]["seq"] - row["to_seq"] == KEPT

    @pytest.mark.long
    @pytest.mark.parametrize(("tokens", "compacted"), [(FIRST - 1, False), (FIRST, True)])
    def test_of_a_smaller_window_is_85_percent_of_the_budget(
        self, offline: Service, start_talk: StartTalk, tokens: int, *, compacted: bool
    ) -> None:
        """The threshold counts before the user's message is sent; later the reply may reach it."""
        talk = start_talk(offline, preset="handoff", policy=SMALL)
        assert talk.get("/usage")["sync_at"] == FIRST == int(0.85 * BUDGET) + 1
        filled(talk, FIRST - 60, messages=41)
        done = talk.chat(of_bytes(talk, tokens))
        assert (done["compaction"] is not None) == compacted
        if compacted:
            assert done["compaction"]["tokens_before"] == tokens
            assert done["message"]["seq"] - done["compaction"]["to_seq"] == KEPT

    @pytest.mark.daily(1)
    @pytest.mark.parametrize("given", [{}, {"max_tokens": 0}, {"max_tokens": 50_000}])
    def test_is_the_default_where_none_or_zero_is_given(
        self, offline: Service, start_talk: StartTalk, given: Json
    ) -> None:
        assert (
            start_talk(offline, preset="handoff", policy=given).get("/usage")["sync_at"]
            == (given.get("max_tokens") or DESIGNED) + 1
        )
        small = start_talk(offline, preset="handoff", policy={**SMALL, **given})
        assert small.get("/usage")["sync_at"] == min(FIRST, (given.get("max_tokens") or DESIGNED) + 1)

    @pytest.mark.long
    def test_of_minus_one_leaves_it_to_the_command(self, offline: Service, start_talk: StartTalk) -> None:
        talk = start_talk(offline, preset="handoff", policy=BY_HAND)
        filled(talk, FIRST, messages=40)
        done = talk.chat(of_bytes(talk, FIRST + 200))
        usage = talk.get("/usage")
        assert (done["compaction"], usage["sync_at"], usage["tokens_until_compaction"]) == (None, None, None)
        assert [item["seq"] for item in kept_verbatim(talk)] == list(range(1, 43)), "the full history"
        assert talk.compactions() == []
        by_hand = talk.chat("/compact")
        assert (by_hand["compaction"]["trigger"], by_hand["compaction"]["status"]) == ("manual", "applied")
        assert len(kept_verbatim(talk)) == KEPT


class TestTheConfiguration:
    """The setting ``runner.compaction`` in ``throughline.yaml``, which the design has in a file of its own."""

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("written", "first", "kept"),
        [
            ("{max_tokens: 6000, keep_tail: 6}", 6_001, 6),
            pytest.param("{max_tokens: 0}", DESIGNED + 1, KEPT, marks=pytest.mark.long),
        ],
    )
    def test_is_what_holds_for_every_conversation(
        self, offline: Service, run_service: RunService, tmp_path: Path, written: str, first: int, kept: int
    ) -> None:
        with other_service(run_service, offline, tmp_path, f"runner:\n  compaction: {written}\n") as service:
            talk = Talk.begin(service, preset="handoff")
            assert talk.get("/usage")["sync_at"] == first
            filled(talk, 5_900)
            done = talk.chat(of_bytes(talk, 6_100))
            row = done["compaction"]
            assert (row is not None) == (first < DESIGNED)
            if row:
                assert (row["trigger"], row["status"]) == ("max_tokens", "applied")
                assert done["message"]["seq"] - row["to_seq"] == kept
            filled(talk, talk.get("/usage")["tokens"] + 3_000, messages=30)
            talk.compact()
            assert len(kept_verbatim(talk)) == kept
            own = Talk.begin(service, preset="handoff", policy={"max_tokens": 7_000})
            assert own.get("/usage")["sync_at"] == 7_001, "a conversation's own number comes first"
            other = Talk.begin(service, preset="semantic")
            assert (
                other.get()["policy"]["triggers"] == good(other.http.get("/presets"))["data"][0]["policy"]["triggers"]
            )

    @pytest.mark.long
    def test_of_minus_one_leaves_it_to_the_command(
        self, offline: Service, run_service: RunService, tmp_path: Path
    ) -> None:
        with other_service(run_service, offline, tmp_path, "runner:\n  compaction:\n    max_tokens: -1\n") as service:
            talk = Talk.begin(service, preset="handoff", policy=SMALL)
            assert talk.get()["policy"]["triggers"] == []
            filled(talk, FIRST)
            assert talk.chat(of_bytes(talk, FIRST + 200))["compaction"] is None
            assert talk.chat("/compact")["compaction"]["status"] == "applied"


@contextlib.contextmanager
def other_service(run: RunService, service: Service, folder: Path, written: str) -> Iterator[Service]:
    """Another API process over the same database, with this ``throughline.yaml``."""
    (folder / "throughline.yaml").write_text(written)
    with run(folder, database_url=service.database_url, redis_url=service.redis_url, worker=False) as other:
        yield other


class TestTheCommand:
    def test_returns_the_summary_which_is_served_as_a_pair(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = start_talk(gemini_service, preset="handoff", policy=MEDIUM)
        talk.batch([*JOB, *lines(40)])
        with EventFollower(talk) as feed:
            done = talk.chat("/compact which files were touched")
            feed.wait_for(lambda _: feed.of_type("compaction.applied"))
        assert done["reply"]["content"] == done["compaction"]["summary"]
        assert "which files were touched" in str(gemini.requests("compaction")[0]["body"]["contents"])
        assert done["compaction"]["messages_covered"] == len(JOB) + 40 - KEPT

        _, first, second, *tail = talk.context()["messages"]
        assert [(item["role"], item["seq"]) for item in (first, second)] == [("user", None), ("assistant", None)]
        assert first["content"].startswith("<session_state>")
        told = [json.dumps(text, ensure_ascii=False)[1:-1] for text in talk.get()["compressed_state"]["progress"]]
        assert all(text in first["content"] for text in told)
        assert len(tail) == len(kept_verbatim(talk)) == KEPT

        (said,) = feed.of_type("compaction.applied")
        assert said["notification"]["message"].startswith("On request: ")
        assert not any(event["notification"] for event in feed.of_type("compaction.started")), "only what was done"
        talk.chat("And now?")
        sent = gemini.requests("chat")[-1]["body"]["contents"]
        assert [one["role"] for one in sent[:2]] == ["user", "model"]
        assert sent[0]["parts"][0]["text"] == first["content"]

    @pytest.mark.long
    def test_works_where_nobody_touched_the_conversation_since_the_start(
        self, offline: Service, run_service: RunService, start_talk: StartTalk, tmp_path: Path
    ) -> None:
        """Another process, which has never seen the conversation, takes over; the first one plays no part any more."""
        talk = start_talk(offline, preset="handoff", policy=MEDIUM)
        talk.batch([*JOB, *lines(40)])
        with (
            run_service(
                tmp_path, database_url=offline.database_url, redis_url=offline.redis_url, worker=False
            ) as later,
            later.client() as http,
        ):
            done = good(http.post(talk.path("/chat"), json={"content": "/compact"}))
        assert done["compaction"]["status"] == "applied"
        assert done["reply"]["content"] == done["compaction"]["summary"] == talk.compactions()[0]["summary"]
        assert "import the members of the choir" in done["reply"]["content"]
        assert talk.boundary() == done["compaction"]["to_seq"]

    @pytest.mark.long
    @pytest.mark.parametrize(("messages", "status"), [(KEPT, "skipped"), (KEPT + 10, "applied")])
    def test_with_no_more_than_is_kept_has_nothing_to_do(
        self, offline: Service, start_talk: StartTalk, messages: int, status: str
    ) -> None:
        talk = start_talk(offline, preset="handoff", policy=MEDIUM)
        talk.batch(lines(messages))
        row = talk.compact()
        assert (row["status"], row["reason"]) == (status, "nothing_to_compact" if status == "skipped" else None)
        assert len(kept_verbatim(talk)) == KEPT

    @pytest.mark.long
    def test_makes_room_where_the_last_twenty_alone_exceed_the_window(
        self, offline: Service, start_talk: StartTalk
    ) -> None:
        """The messages that a policy keeps are never folded automatically, nor by a command that does not name them."""
        talk = start_talk(offline, preset="handoff", policy=SMALL)
        talk.batch([("assistant" if number % 2 else "user", text_of(210)) for number in range(KEPT)])
        problem = refused(talk.post("/chat", {"content": "And now?"}), 503, "context_over_window")
        assert "by keep_tail_messages further than its policy keeps" in problem["detail"]
        assert talk.compact()["reason"] == "nothing_to_compact", "control: what the policy keeps stays"
        assert talk.compact(keep_tail_messages=5)["status"] == "applied"
        assert good(talk.post("/chat"))["reply"]["content"]


class TestTheUsersLanguage:
    @pytest.mark.long
    def test_is_that_of_what_the_command_answers_and_of_the_file(self, offline: Service, start_talk: StartTalk) -> None:
        talk = start_talk(offline, preset="handoff", policy=BY_HAND, locale="ru")
        nothing = talk.chat("/compact")
        assert nothing["reply"]["content"] == "Ничего не сжато (нечего сжимать)."
        talk.batch(TALK_IN_RUSSIAN)
        small_talk = "Потом мы долго говорили о погоде, о саде и о том, как соседи относятся к ремонту дороги."
        talk.batch([("user", f"{small_talk} Это было в доме номер {number}.") for number in range(2 * KEPT)])
        told = talk.chat("/compact")["reply"]["content"]
        assert told.startswith("Цель:\n- ")
        assert "\n\nСделано:\n- " in told
        assert told == talk.compactions()[-1]["summary"]
        assert not re.search("[A-Za-z]{3}", told.replace("PostgreSQL", ""))
        exported = talk.http.get(talk.path("/export"), params={"format": "markdown"}).text
        assert exported.startswith("# Беседа\n\nНачата ")
        assert set(re.findall(r"^## (\w+), ", exported, re.MULTILINE)) == {"Пользователь", "Ассистент"}


class TestAnOversizedMessage:
    @pytest.mark.long
    def test_is_served_without_its_middle_where_the_policy_says_so(
        self, offline: Service, start_talk: StartTalk
    ) -> None:
        talk = start_talk(offline, preset="handoff", policy={**SMALL, "oversized": "elide"})
        said = "BEGIN-1 " + "word " * 12_000 + "END-9"
        first = talk.chat(said)["message"]
        # It is among the last twenty, so that no compaction folds it, and nothing blocks the next message.
        for question in ("What did I send?", "And how long was it?"):
            done = talk.chat(question)
            assert f"message_elided:{first['seq']}" in done["warnings"]
        (served,) = [item["content"] for item in talk.context()["messages"] if item["seq"] == first["seq"]]
        assert served.startswith("BEGIN-1")
        assert served.endswith("END-9")
        assert talk.history()[0]["content"] == said

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("preset", "no_room"), [("handoff", 4_400), pytest.param("turn_end", 9_000, marks=pytest.mark.long)]
    )
    def test_is_taken_whole_also_where_nothing_is_ever_compacted(
        self, offline: Service, start_talk: StartTalk, preset: str, no_room: int
    ) -> None:
        policy: Json = {"context_window": 8_000, "max_tokens": -1}
        talk = start_talk(offline, preset=preset, policy={**policy, "oversized": "elide"})
        talk.batch(lines(60))
        window = talk.get("/usage")["window"]
        assert talk.get("/usage")["tokens"] > window / 4
        for words in (40_000, no_room):  # more than the window; then more than the room that the rest leaves
            said = f"BEGIN-{words} " + "word " * words + f"END-{words}"
            done = talk.chat(said)
            asked = done["message"]
            assert asked["content"] == said
            assert f"message_elided:{asked['seq']}" in done["warnings"]
            assert done["reply"]["content"]
            context = talk.context()
            (served,) = [item["content"] for item in context["messages"] if item["seq"] == asked["seq"]]
            assert served.startswith(f"BEGIN-{words}")
            assert served.endswith(f"END-{words}")
            assert len(served) < len(said)
            assert context["gauge"]["tokens"] <= window
            assert served_seqs(context) == [item["seq"] for item in talk.history()], "every other message is there"
        assert talk.compactions() == []
        assert talk.history()[60]["content"].count("word ") == 40_000

        control = start_talk(offline, preset=preset, policy={**policy, "oversized": "refuse"})
        control.batch(lines(60))
        for words in (40_000, no_room):
            refused(control.post("/chat", {"content": "word " * words}), 413, "message_too_large")
        assert len(control.history()) == 60


class TestAFailure:
    """Each case has its control: the same with an honest summarizer is applied."""

    @pytest.mark.daily(1)
    @pytest.mark.parametrize(("fault", "reason"), [("empty", "empty_summary"), ("error_401", "unauthorized")])
    def test_of_an_automatic_summary_is_a_warning_and_the_full_history(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini, fault: str, reason: str
    ) -> None:
        talk = start_talk(gemini_service, preset="handoff", policy=SMALL)
        filled(talk, FIRST - 60)
        state = talk.state()
        gemini.script("compaction", default=fault)
        done = talk.chat(of_bytes(talk, FIRST))
        assert done["warnings"] == [f"compaction_failed:{reason}"]
        assert done["reply"]["content"]
        (asked,) = gemini.requests("chat")
        said = [part["text"] for one in asked["body"]["contents"] for part in one["parts"]]
        for message in talk.history()[:-1]:
            assert any(message["content"] in text for text in said), "the full history"
        assert talk.state() == state
        assert [row["status"] for row in talk.compactions()] in (["failed"], ["rejected"])

        gemini.script("compaction", default="honest")
        talk.patch({"policy": {**SMALL, "minimum_progress": 0}})
        control = talk.chat(of_bytes(talk, talk.get("/usage")["tokens"] + 30))
        assert (control["compaction"]["status"], control["warnings"]) == ("applied", [])

    @pytest.mark.long
    def test_of_one_by_hand_is_an_error_and_changes_nothing(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = start_talk(gemini_service, preset="handoff", policy=MEDIUM)
        talk.batch([*JOB, *lines(40)])
        state, served = talk.state(), talk.context_bytes()
        gemini.script("compaction", default="empty")
        for asked in (talk.post("/compact"), talk.post("/chat", {"content": "/compact"})):
            problem = refused(asked, 502, "empty_summary")
            assert problem["detail"] == "empty summary response"
        gemini.script("compaction", default="error_401")
        refused(talk.post("/compact"), 502, "summarizer_failed")
        assert (talk.state(), talk.context_bytes()) == (state, served)
        gemini.script("compaction", default="honest")
        assert talk.compact()["status"] == "applied"
        assert talk.context_bytes() != served

    @pytest.mark.long
    def test_of_the_database_preserves_what_was_there(self, offline: Service, start_talk: StartTalk) -> None:
        """If the state cannot be written, a command fails, and a turn warns; both get the full history."""
        talk = start_talk(offline, preset="handoff", policy=SMALL)
        filled(talk, FIRST - 60)
        state, served = talk.state(), talk.context_bytes()
        with unwritable(offline, talk):
            refused(talk.post("/compact"), 503, "dependency_unavailable")
            assert (talk.state(), talk.context_bytes()) == (state, served)
            done = talk.chat(of_bytes(talk, FIRST))
            assert done["warnings"] == ["compaction_unavailable"]
            assert done["reply"]["content"]
            assert talk.state() == state
            assert len(kept_verbatim(talk)) == len(talk.history())
        assert talk.compact()["status"] == "applied", "control"
        assert talk.state() != state

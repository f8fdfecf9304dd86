"""Whatever the summarizer does wrong, the state stays byte for byte, the reply comes, and the row says why.

Every failure has its control in the same test: the same call with an honest summarizer is applied.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from app.core.summarizer.prompts import FEEDBACK_BY_REASON, SUMMARY_VERSION
from tests.acceptance.chaos import HELD
from tests.acceptance.conftest import StartTalk
from tests.acceptance.service import Service
from tests.acceptance.talk import (
    BUDGET,
    MANUAL,
    TARGET,
    WINDOW,
    EventFollower,
    Json,
    Talk,
    block_of,
    lines,
    refused,
    served_seqs,
    text_of,
)
from tests.gemini_faults import Behaviour
from tests.gemini_server import Gemini

Fault = tuple[str | Behaviour, str, str]

NO_ITEMS: Final[Behaviour] = {"name": "candidate", "candidate": {"logos": [], "pathos": [], "abstract": []}}
PROVIDER_FAULTS: Final[tuple[Fault, ...]] = (
    ("error_400", "failed", "bad_request"),
    ("error_401", "failed", "unauthorized"),
    ("error_404", "failed", "model_not_found"),
    ("error_429", "failed", "rate_limited"),
    ("error_500", "failed", "server_error"),
    ("error_503", "failed", "server_error"),
    ("bad_key", "failed", "unauthorized"),
    ("reset", "failed", "connection"),
    ("garbled", "failed", "unreadable"),
    ("too_long", "failed", "context_too_long"),
    ("nested", "failed", "unreadable"),  # the provider's own client fails first
)
REFUSED_ANSWERS: Final[tuple[Fault, ...]] = (
    ("empty", "rejected", "empty_summary"),
    ("blank", "rejected", "empty_summary"),
    ("thoughts_only", "rejected", "empty_summary"),
    ("skeleton", "rejected", "empty_summary"),
    ("safety_empty", "rejected", "blocked"),
    ("blocked_prompt", "rejected", "blocked"),
    ("safety", "rejected", "blocked"),
    ("recitation", "rejected", "blocked"),
    ("please_provide", "rejected", "not_a_summary"),
    ("continued_chat", "rejected", "not_a_summary"),
    ("tool_call", "rejected", "not_a_summary"),
    ("cut", "rejected", "cut_off"),
    ("cut_parseable", "rejected", "cut_off"),
    ("invalid_json", "rejected", "unparseable"),
    (NO_ITEMS, "rejected", "skeleton"),
    ({"name": "foreign", "language": "zh"}, "rejected", "wrong_language"),
    ({"name": "foreign", "language": "ru"}, "rejected", "wrong_language"),
    ({"name": "foreign", "language": "de"}, "rejected", "wrong_language"),
)
ASKED_ONCE: Final = {"bad_request", "unauthorized", "model_not_found", "context_too_long"}
"""Faults after which nobody is asked again: the request itself is refused, so that another try would end the same way.
"""
SEARCHED: Final = {"blocked", "context_too_long"}
"""Faults after which, outside a turn, the chunk is halved or its blocked part is searched for, within the calls of one
chunk.
"""
MAX_CALLS: Final = 6
FAULTS: Final = PROVIDER_FAULTS + REFUSED_ANSWERS
JUMP: Final = 750  # from 65 % to 90 %


def named_fault(value: object) -> str | None:
    if isinstance(value, dict):
        return "no_items" if value is NO_ITEMS else "-".join(str(part) for part in value.values())
    return None


EVERYDAY: Final = tuple(
    fault
    for fault in FAULTS
    if fault[0] in ("error_401", "error_500", "empty", "blocked_prompt", "please_provide", "cut_parseable", NO_ITEMS)
    or fault[0] == {"name": "foreign", "language": "zh"}
)
"""One fault for each case and each way of asking again; the integration tests refuse an answer of each kind."""
SEEN_IN_A_TURN: Final = ("error_429",)
"""Faults that are tried in a turn every day; a turn asks less often and for a shorter time than a manual call."""
EVERY_FAULT: Final = pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [pytest.param(*fault, marks=[] if fault[0] in SEEN_IN_A_TURN else pytest.mark.long) for fault in FAULTS],
    ids=named_fault,
)


def with_a_state(talk: Talk, size: int) -> Talk:
    """A conversation that has a state already, and a tail up to this size."""
    talk.fill(1_300)
    assert talk.compact()["status"] == "applied"
    talk.fill(size, start=100)
    return talk


def served_block(talk: Talk) -> str:
    block = block_of(talk.context())
    assert block is not None
    return block


def check_the_attempts(row: Json, gemini: Gemini, calls_before: int, status: str, reason: str) -> None:
    calls = len(gemini.requests("compaction")) - calls_before
    assert (row["status"], row["reason"]) == (status, reason)
    assert calls == len(row["attempts"])
    if reason in SEARCHED and row["ran_in"] != "turn":
        assert 2 <= calls <= MAX_CALLS
    elif reason == "rate_limited" and row["ran_in"] != "worker":
        assert calls == 1, "the provider asks for fourteen seconds, and somebody waits"
    else:
        assert calls == (1 if reason in ASKED_ONCE else 2)
    assert {attempt["reason"] for attempt in row["attempts"]} == {reason}
    assert {attempt["outcome"] for attempt in row["attempts"]} == {"error" if status == "failed" else "refused"}
    assert row["state_version_after"] is None
    assert row["summary"] is None


class TestAManualCall:
    @pytest.mark.case("1", "2", "3", "4", "5", "6", "10")
    @pytest.mark.parametrize("faults", [EVERYDAY, pytest.param(FAULTS, marks=pytest.mark.long)], ids=["some", "all"])
    def test_is_an_error_and_changes_nothing(
        self,
        gemini_service: Service,
        start_talk: StartTalk,
        gemini: Gemini,
        subtests: pytest.Subtests,
        faults: tuple[Fault, ...],
    ) -> None:
        talk = with_a_state(start_talk(gemini_service, policy={**MANUAL, "calls_per_hour": 400}), 2_000)
        state, context = talk.state(), talk.context_bytes()
        for fault, status, reason in faults:
            with subtests.test(fault=named_fault(fault) or fault):
                gemini.script("compaction", default=fault)
                before = len(gemini.requests("compaction"))
                problem = refused(
                    talk.post("/compact"), 502, "empty_summary" if reason == "empty_summary" else "summarizer_failed"
                )
                row = talk.compactions()[-1]
                assert (problem["compaction_id"], problem["reason"]) == (row["id"], reason)
                assert (problem["detail"] == "empty summary response") == (reason == "empty_summary")
                check_the_attempts(row, gemini, before, status, reason)
                assert talk.state() == state
                assert talk.context_bytes() == context

        gemini.script("compaction", default="honest")
        control = talk.compact()
        assert (control["status"], control["state_version_after"]) == ("applied", 2)
        assert talk.context_bytes() != context

    @pytest.mark.long
    @pytest.mark.case("7")
    def test_that_saves_too_little_is_skipped(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = with_a_state(start_talk(gemini_service, policy=MANUAL), 1_500)
        talk.batch(long_lines(6))
        state, context = talk.state(), talk.context_bytes()
        gemini.script("compaction", default="larger")

        row = talk.compact()

        check_the_attempts(row, gemini, 1, "skipped", "not_smaller")
        assert talk.state() == state
        assert talk.context_bytes() == context
        gemini.script("compaction", default="honest")
        assert talk.compact()["status"] == "applied"

    @pytest.mark.long
    @pytest.mark.case("1")
    def test_that_never_gets_an_answer_ends_with_its_request(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = with_a_state(start_talk(gemini_service, policy=MANUAL), 1_900)
        state, context = talk.state(), talk.context_bytes()
        gemini.script("compaction", "hang")

        assert refused(talk.post("/compact"), 502, "summarizer_failed")["reason"] == "deadline"

        assert talk.state() == state
        assert talk.context_bytes() == context
        assert talk.compact()["status"] == "applied"


class TestATurn:
    @pytest.mark.case("1", "2", "3", "4", "5", "6", "10")
    @EVERY_FAULT
    def test_has_its_reply_and_a_warning(
        self,
        gemini_service: Service,
        start_talk: StartTalk,
        gemini: Gemini,
        fault: str | Behaviour,
        status: str,
        reason: str,
    ) -> None:
        talk = with_a_state(start_talk(gemini_service, policy=WINDOW), 2_000)
        state, block = talk.state(), served_block(talk)
        gemini.script("compaction", default=fault)

        done = talk.chat(text_of(JUMP))

        assert done["reply"]["status"] == "complete"
        assert done["reply"]["content"].startswith("You said: ")
        assert done["warnings"] == [f"compaction_failed:{reason}"]
        assert (done["compaction"]["trigger"], done["compaction"]["ran_in"]) == ("sync", "turn")
        check_the_attempts(done["compaction"], gemini, 1, status, reason)
        assert talk.state() == state
        assert served_block(talk) == block
        history = talk.history()
        assert [item["content"] for item in history][-2:] == [text_of(JUMP), done["reply"]["content"]]
        assert served_seqs(talk.context())[1:] == list(range(talk.boundary() + 1, len(history) + 1))

        gemini.script("compaction", default="honest")
        assert talk.patch({"policy": WINDOW}).is_success, "which ends the quiet after a failure"
        assert talk.wait_ended(3)[-1]["status"] == "applied"
        assert served_block(talk) != block

    @pytest.mark.long
    @pytest.mark.case("22")
    def test_over_the_budget_is_cut_and_says_so(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = with_a_state(start_talk(gemini_service, policy=WINDOW), 2_050)
        state, block = talk.state(), served_block(talk)
        gemini.script("compaction", default="error_500")

        done = talk.chat(text_of(1_300))

        assert done["warnings"] == ["compaction_failed:server_error", "context_truncated"]
        assert done["reply"]["content"]
        assert talk.state() == state
        context = talk.context()
        assert context["gauge"]["tokens"] <= BUDGET
        assert context["warnings"] == ["context_truncated"]
        gone = context["truncated"]
        assert gone["from_seq"] == talk.boundary() + 1
        left = [seq for seq in served_seqs(context) if seq > 1]
        assert left == list(range(gone["to_seq"] + 1, len(talk.history()) + 1)), "the newest are kept, verbatim"
        assert block.splitlines()[1] in served_block(talk), "the state is served as before, with a digest beside it"
        assert "<left_out" in served_block(talk)
        asked = gemini.requests("chat")[-1]["body"]
        assert len(asked["contents"]) < len(talk.history()) - talk.boundary(), "what the model got was cut as well"

    @pytest.mark.long
    @pytest.mark.case("22")
    def test_that_keeps_all_is_sent_whole_within_the_window(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = with_a_state(start_talk(gemini_service, policy={**WINDOW, "on_failure": "keep_full"}), 2_050)
        gemini.script("compaction", default="error_500")

        done = talk.chat(text_of(1_250))

        assert done["warnings"] == ["compaction_failed:server_error", "context_over_budget"]
        context = talk.context()
        assert context["gauge"]["tokens"] > BUDGET
        assert context["truncated"] is None
        assert served_seqs(context)[1:] == list(range(talk.boundary() + 1, len(talk.history()) + 1))

    @pytest.mark.long
    @pytest.mark.case("22")
    def test_that_keeps_all_fails_over_the_window_with_its_message_stored(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = with_a_state(start_talk(gemini_service, policy={**WINDOW, "on_failure": "keep_full"}), 2_050)
        gemini.script("compaction", default="error_500")

        problem = refused(talk.post("/chat", {"content": text_of(1_700)}), 503, "context_over_window")

        assert (problem["retryable"], problem["reason"]) == (True, "server_error"), "the reason is gone in a while"
        last = talk.history()[-1]
        assert (last["id"], last["role"]) == (problem["message_id"], "user")
        gemini.script("compaction", default="error_401")
        events = talk.streamed()
        assert (events[-1].type, events[-1].data["code"]) == ("reply.failed", "context_over_window")
        assert (events[-1].data["retryable"], events[-1].data["reason"]) == (False, "unauthorized"), "control"

        gemini.script("compaction", default="honest")
        assert talk.chat()["message"]["id"] == problem["message_id"]

    @pytest.mark.long
    @pytest.mark.case("1")
    def test_whose_summarizer_hangs_goes_on_after_its_deadline(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk, patient = (
            with_a_state(start_talk(gemini_service, policy={**WINDOW, "sync_deadline": seconds}), 2_000)
            for seconds in (1.0, 15.0)
        )
        state = talk.state()
        gemini.script("compaction", HELD, "hang", HELD)
        with ThreadPoolExecutor(1) as client:
            waiting = client.submit(patient.chat, text_of(JUMP))
            gemini.wait_for("compaction", 3)

            began = time.monotonic()
            done = talk.chat(text_of(JUMP))

            assert time.monotonic() - began >= 1.0
            assert not waiting.done(), "control: a later deadline is waited for longer"
            assert done["warnings"] == ["compaction_deadline"]
            assert done["reply"]["content"]
            gemini.wait_for("compaction", 5)
            assert talk.state() == state
            gemini.release()
            assert waiting.result(30)["warnings"] == []
        row = talk.wait_ended(2)[-1]
        assert (row["id"], row["status"], row["ran_in"]) == (done["compaction"]["id"], "applied", "worker")


BEFORE_STORING: Final = (
    pytest.param(WINDOW, 1_000, 3_300, id="can-never-fit"),
    pytest.param({**WINDOW, "on_failure": "keep_full", "max_tokens": -1}, 3_400, 300, id="nothing-would-make-room"),
)


@pytest.mark.case("22")
@pytest.mark.parametrize(("policy", "size", "message"), BEFORE_STORING)
def test_what_can_never_fit_is_413_before_anything_is_stored(
    offline: Service, start_talk: StartTalk, policy: Json, size: int, message: int
) -> None:
    talk = start_talk(offline, policy=policy)
    talk.fill(size)
    before = talk.history()

    problem = refused(talk.post("/chat", {"content": text_of(message)}), 413, "message_too_large")

    assert problem["size"] == message
    assert problem["limit"] < message
    assert talk.history() == before
    assert talk.chat("Good day.")["reply"]["content"], "control: a small one is answered"


class TestInTheBackground:
    @pytest.mark.case("1", "2", "5", "10")
    @pytest.mark.parametrize(
        ("fault", "status", "reason"),
        [
            ("error_500", "failed", "server_error"),
            pytest.param("empty", "rejected", "empty_summary", marks=pytest.mark.long),
            pytest.param("safety", "rejected", "blocked", marks=pytest.mark.long),
            pytest.param({"name": "foreign"}, "rejected", "wrong_language", marks=pytest.mark.long),
        ],
        ids=named_fault,
    )
    def test_a_failure_is_an_event_then_quiet_then_retried(
        self,
        gemini_service: Service,
        start_talk: StartTalk,
        gemini: Gemini,
        fault: str | Behaviour,
        status: str,
        reason: str,
    ) -> None:
        talk = with_a_state(start_talk(gemini_service, policy=WINDOW), 2_050)
        state, block = talk.state(), served_block(talk)
        gemini.script("compaction", default=fault)

        with EventFollower(talk) as feed:
            talk.append(text_of(200))
            row = talk.wait_ended(2)[-1]
            feed.wait_for(lambda _: feed.of_type("compaction.failed"))

        assert (row["trigger"], row["ran_in"]) == ("background", "worker")
        check_the_attempts(row, gemini, 1, status, reason)
        (event,) = feed.of_type("compaction.failed")
        assert (event["data"]["compaction_id"], event["data"]["reason"]) == (row["id"], reason)
        assert talk.state() == state
        assert served_block(talk) == block

        talk.append(text_of(50))
        assert len(talk.compactions()) == 2, "a failure is followed by a pause, not by the next attempt"
        assert talk.chat("Still there?")["reply"]["content"]
        listed = talk.http.get("/compactions", params={"status": status, "limit": 100}).json()["data"]
        assert row["id"] in [item["id"] for item in listed]

        gemini.script("compaction", default="honest")
        response = talk.http.post(f"/compactions/{row['id']}/retry", json={})
        assert response.status_code == 202
        again = talk.wait_ended(3)[-1]
        assert response.headers["location"] == f"/compactions/{again['id']}"
        assert (again["status"], again["retry_of"]) == ("applied", row["id"])


class TestTheSecondAttempt:
    @pytest.mark.daily(2)
    @pytest.mark.case("2", "3", "4", "5", "6", "7", "10")
    @pytest.mark.parametrize(
        ("fault", "reason"),
        [
            pytest.param("please_provide", "not_a_summary", marks=pytest.mark.long),
            ("empty", "empty_summary"),
            pytest.param("safety", "blocked", marks=pytest.mark.long),
            ("cut_parseable", "cut_off"),
            ("invalid_json", "unparseable"),
            (NO_ITEMS, "skeleton"),
            ({"name": "foreign"}, "wrong_language"),
            ("larger", "not_smaller"),
        ],
        ids=named_fault,
    )
    def test_is_told_what_was_wrong_and_is_applied(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini, fault: str | Behaviour, reason: str
    ) -> None:
        talk = start_talk(gemini_service, policy=MANUAL)
        talk.batch(long_lines(7))
        gemini.script("compaction", fault)

        row = talk.compact()

        assert row["status"] == "applied"
        assert [(item["outcome"], item["reason"]) for item in row["attempts"]] == [
            ("refused", reason),
            ("accepted", None),
        ]
        first, second = (prompt_of(call) for call in gemini.requests("compaction"))
        assert FEEDBACK_BY_REASON[reason] not in first
        assert second == f"{first}\n\n{FEEDBACK_BY_REASON[reason]}"
        rooms = [room_of(call) for call in gemini.requests("compaction")]
        assert (rooms[1] > rooms[0]) == (reason in {"cut_off", "empty_summary"}), "more room where room was missing"
        used = [item["usage"]["input_tokens"] for item in row["attempts"]]
        assert row["usage"]["input_tokens"] == sum(used), "both attempts are paid for"
        assert [item["prompt_version"] for item in row["attempts"]] == [SUMMARY_VERSION] * 2
        assert row["prompt_version"] == SUMMARY_VERSION
        (calls,) = talk.get("/stats")["model_calls"]["by_prompt_version"]
        counts = [calls[name] for name in ("prompt_version", "attempts", "accepted", "refused", "input_tokens")]
        assert counts == [SUMMARY_VERSION, 2, 1, 1, sum(used)]

    @pytest.mark.long
    def test_after_an_outage_is_the_same_request(
        self, gemini_service: Service, start_talk: StartTalk, gemini: Gemini
    ) -> None:
        talk = start_talk(gemini_service, policy=MANUAL)
        talk.fill(1_200)
        gemini.script("compaction", "error_503")

        row = talk.compact()

        assert [item["outcome"] for item in row["attempts"]] == ["error", "accepted"]
        first, second = (prompt_of(call) for call in gemini.requests("compaction"))
        assert first == second


def long_lines(count: int) -> list[tuple[str, str]]:
    """Messages of several sentences; a summary that repeats them saves nothing."""
    said = lines(8 * count, start=300)
    roles = ("user", "assistant")
    return [
        (roles[number % 2], " ".join(text for role, text in said[8 * number : 8 * number + 8] if role == "user"))
        for number in range(count)
    ]


def prompt_of(call: Json) -> str:
    return "".join(part["text"] for content in call["body"]["contents"] for part in content["parts"])


def room_of(call: Json) -> int:
    room: int = call["body"]["generationConfig"]["maxOutputTokens"]
    return room


@pytest.mark.long
@pytest.mark.case("11")
@pytest.mark.parametrize(
    "behaviour",
    ["nul", "raw_nul", "escaped_surrogate", "surrogate", "nested", "missing_fields", "unfinished", "huge"],
)
def test_an_odd_answer_is_cleaned_or_refused(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini, behaviour: str
) -> None:
    talk = start_talk(gemini_service, policy=MANUAL)
    talk.fill(1_200)
    gemini.script("compaction", default=behaviour)

    response = talk.post("/compact")

    row = talk.compactions()[-1]
    if response.status_code == 200:
        assert row["status"] == "applied"
        text = str(talk.get()["compressed_state"])
        assert "\x00" not in text
        assert not any("\ud800" <= sign <= "\udfff" for sign in text)
        assert talk.context()["gauge"]["tokens"] < TARGET
    else:
        refused(response, 502, "summarizer_failed")
        assert row["status"] in {"rejected", "failed"}
        assert talk.get()["compressed_state"] is None
    gemini.script("compaction", default="honest")
    talk.fill(1_900, start=200)
    assert talk.compact()["status"] == "applied"


def entries_of(version: Json, field: str = "logos") -> dict[str, str]:
    return {entry["entry_id"]: entry["text"] for entry in version["provenance"] if entry["field"] == field}


@pytest.mark.long
@pytest.mark.case("9")
@pytest.mark.parametrize("behaviour", ["forgets", {"name": "drops", "entries": ["F1", "F2"]}], ids=named_fault)
def test_facts_that_the_model_leaves_out_or_drops_without_a_source_are_carried_forward(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini, behaviour: str | Behaviour
) -> None:
    talk = with_a_state(start_talk(gemini_service, policy=MANUAL), 1_900)
    gemini.script("compaction", behaviour)

    row = talk.compact()
    assert row["status"] == "applied", row

    newest, oldest = talk.get("/states", limit=2)["data"]
    assert entries_of(oldest)
    assert entries_of(oldest).items() <= entries_of(newest).items()
    assert row["entries"]["dropped"] == 0
    assert row["entries"]["kept"] + row["entries"]["restored_by_code"] >= len(entries_of(oldest))


RUSSIAN: Final = [
    ("user", "Добрый день! Мы переезжаем в новый офис на улице Лесной, 14, и мне нужно составить план до 3 марта."),
    ("assistant", "Хорошо. Сколько рабочих мест нужно подготовить и какой бюджет вы закладываете на мебель?"),
    ("user", "Нужно 24 рабочих места, бюджет 480 000 рублей. Столы я заказала у фабрики «Север», по 9 500 рублей."),
    ("assistant", "Тогда столы обойдутся в 228 000 рублей, и на стулья и свет останется 252 000 рублей."),
    ("user", "Стулья возьмём у «Ориона», они обещали привезти их 17 февраля. Интернет проводит компания «Линия»."),
    ("assistant", "Записал: «Орион» привозит стулья 17 февраля, интернет проводит «Линия». Нужен ли резервный канал?"),
    ("user", "Да, резервный канал обязателен: у нас круглосуточная поддержка клиентов. Отвечает за него Марина."),
    ("assistant", "Понял, за резервный канал отвечает Марина. Добавлю в план проверку связи за два дня до переезда."),
    ("user", "И ещё: грузовой лифт работает только с 8 до 11 утра, поэтому грузчиков нужно заказать на 7:30."),
    ("assistant", "Учту: грузчики приезжают в 7:30, лифт доступен с 8 до 11. Нужна ли страховка на серверы?"),
    ("user", "Страховка нужна, серверы стоят 1 200 000 рублей. Договор подпишет Олег, наш финансовый директор."),
    ("assistant", "Хорошо, договор страхования готовлю на подпись Олегу. План пришлю завтра к полудню."),
]
RUSSIAN_RETOLD: Final[Json] = {
    "logos": [
        {"text": "Пользователь переезжает в офис на Лесной, 14; план нужен к 3 марта.", "from": [1], "replaces": []},
        {"text": "24 рабочих места при бюджете 480 тыс. рублей.", "from": [3], "replaces": []},
        {"text": "Столы заказаны на фабрике «Север» по 9500 руб., всего 228 тыс.", "from": [3, 4], "replaces": []},
        {"text": "Стулья доставит «Орион» 17.02, связь проводит «Линия».", "from": [5], "replaces": []},
        {"text": "За обязательный резервный канал отвечает Марина.", "from": [7], "replaces": []},
        {"text": "Грузчики нужны в 7:30: грузовой лифт открыт с 8:00 до 11:00.", "from": [9], "replaces": []},
    ],
    "pathos": [{"text": "Деловой и спокойный тон.", "from": [1], "replaces": []}],
    "abstract": [],
    "conversation_summary": "Пользователь готовит переезд офиса. Поставщики выбраны, план почти готов.",
}
MIGRATION: Final = [
    ("user", "I am moving our billing database from Postgres 14 to Postgres 18. It holds 340 GB on db-prod-3."),
    ("assistant", "Understood. Is a maintenance window possible, or must it be done without any downtime at all?"),
    ("user", "We have a window on Sunday 6 December from 02:00 to 04:30. I prefer replication over a dump."),
    ("assistant", "Then I suggest a publication on db-prod-3 and a subscriber on db-prod-7, and to switch at 03:15."),
    ("user", "Good. The config lives in /etc/billing/pool.yaml, and the pool must never exceed 80 connections."),
    ("assistant", "Noted: /etc/billing/pool.yaml stays the one source, and the pool has 80 connections at most."),
    ("user", "My colleague Priya watches the replication lag. If it is above 30 seconds at 03:00 we call it off."),
    ("assistant", "So Priya decides at 03:00, by the lag of 30 seconds. Shall I write the steps for going back?"),
    ("user", "Yes please. And remember that invoices run at 05:00, so everything has to be over by 04:45."),
    ("assistant", "I will put 04:45 as the hard stop into the plan, a quarter of an hour before the invoices start."),
    ("user", "One more thing: the finance team of twelve people must get a mail two days before, from Priya's desk."),
    ("assistant", "I will draft that mail for Priya so that it reaches the twelve of them in time."),
]
MIGRATION_RETOLD: Final[Json] = {
    "logos": [
        {"text": "The user upgrades the 340 GB billing database, Postgres 14 to 18.", "from": [1], "replaces": []},
        {"text": "Window: 6 December, 2 am till 4:30 am; logical replication preferred.", "from": [3], "replaces": []},
        {"text": "db-prod-3 publishes, db-prod-7 subscribes; the switch is at 3:15.", "from": [4], "replaces": []},
        {
            "text": "Pool settings stay in /etc/billing/pool.yaml; at most 80 links.",
            "from": [5],
            "replaces": [],
        },
        {"text": "Priya calls it off at 03:00 if the lag exceeds half a minute.", "from": [7], "replaces": []},
        {"text": "All must be done by 04:45, since invoicing starts at 05:00.", "from": [9], "replaces": []},
    ],
    "pathos": [],
    "abstract": [{"text": "The user is at home with replication.", "from": [3], "replaces": []}],
    "conversation_summary": "A database upgrade is planned for a Sunday night. A way back is being written.",
}
GARDEN: Final = [
    ("user", "Hi, I'm Tom. I want to turn my backyard in Leeds into a vegetable garden, and I'm a complete beginner."),
    ("assistant", "Nice to meet you, Tom! How large is the yard, and how many hours of sun does it get in summer?"),
    ("user", "It's about 40 square metres, with six hours of sun. Our budget is 600 pounds for the first year."),
    ("assistant", "That is plenty. Four raised beds would cost about 220 pounds, and leave room for a small shed."),
    ("user", "I love that. My daughter Ella is allergic to strawberries, so please never suggest any of those."),
    ("assistant", "No strawberries then. Raspberries along the fence would be a safe choice if Ella likes them."),
    ("user", "She does! We decided on raspberries, runner beans and two kinds of potatoes, Charlotte and Maris Piper."),
    ("assistant", "Charlotte goes in around 20 March, Maris Piper in mid April, and the beans after the last frost."),
    ("user", "Actually, the shed is off the list, because my brother gives me his old one in May."),
    ("assistant", "That frees about 180 pounds, enough for a water butt and good compost for all four of the beds."),
    ("user", "Perfect. I work night shifts on Tuesdays and Thursdays, so watering has to happen before 18:30 then."),
    ("assistant", "A drip hose with a timer would help: about 35 pounds, set to 06:00 and 18:00 from June to August."),
    ("user", "Buy two of them then. And the soil here is heavy clay with a pH of 7.4, says the test kit."),
    (
        "assistant",
        "For clay at 7.4 mix two parts of compost with one part of sharp sand, at least 30 cm deep.",
    ),
    ("user", "Thanks, that helps a lot. What should I do first when March comes?"),
    ("assistant", "First the beds, then the compost, and on 20 March the Charlotte potatoes."),
]
GARDEN_RETOLD: Final[Json] = {
    "logos": [
        {"text": "Tom, a beginner, is making a vegetable garden of 40 m² in Leeds.", "from": [1, 3], "replaces": []},
        {"text": "First year's budget: £600; four raised beds take £220 of it.", "from": [3, 4], "replaces": []},
        {"text": "Ella, Tom's daughter, has a strawberry allergy: never suggest them.", "from": [5], "replaces": []},
        {"text": "Chosen: raspberries, runner beans, Charlotte and Maris Piper.", "from": [7], "replaces": []},
        {"text": "No shed is bought; the brother's old one comes in May.", "from": [9], "replaces": []},
        {
            "text": "On Tuesdays and Thursdays water before 6:30 pm; two drip hoses.",
            "from": [11, 13],
            "replaces": [],
        },
    ],
    "pathos": [{"text": "Warm and enthusiastic.", "from": [5, 7], "replaces": []}],
    "abstract": [],
    "conversation_summary": "A garden is being planned step by step. Planting begins in March.",
}
TALKS: Final = {"russian": RUSSIAN, "migration": MIGRATION, "garden": GARDEN, "office": lines(24)}
RETOLD: Final = {"russian": RUSSIAN_RETOLD, "migration": MIGRATION_RETOLD, "garden": GARDEN_RETOLD}


@pytest.mark.daily(2)
@pytest.mark.case("22b")
@pytest.mark.parametrize(
    ("conversation", "written"),
    [
        *(pytest.param(name, None, marks=pytest.mark.long if name in RETOLD else []) for name in TALKS),
        *RETOLD.items(),
    ],
    ids=lambda value: "retold" if isinstance(value, dict) else value or "excerpted",
)
def test_an_honest_summary_is_applied_at_the_first_attempt(
    gemini_service: Service, start_talk: StartTalk, gemini: Gemini, conversation: str, written: Json | None
) -> None:
    talk = start_talk(gemini_service, policy=MANUAL, locale="ru" if conversation == "russian" else "en")
    talk.batch(TALKS[conversation])
    if written:
        gemini.script("compaction", {"name": "candidate", "candidate": written})

    row = talk.compact()

    assert row["status"] == "applied"
    assert [item["outcome"] for item in row["attempts"]] == ["accepted"]
    assert len(gemini.requests("compaction")) == 1
    assert row["tokens_after"] < row["tokens_before"]
    state = talk.get()["compressed_state"]
    assert set(state) == {"logos", "pathos", "abstract", "conversation_summary"}
    assert len(state["logos"]) >= 2
    if written:
        assert state["conversation_summary"] == written["conversation_summary"]
        assert state["logos"] == [item["text"] for item in written["logos"]]

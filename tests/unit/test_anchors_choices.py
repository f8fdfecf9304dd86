"""Another choice for the same thing replaces the first; one for another thing does not."""

from __future__ import annotations

import pytest

from app.core.anchors import antecedents, replacement
from app.core.anchors.purposes import bare_choice, is_addition, purpose
from bench.replay import EVERYTHING, Replay
from tests.rows import each
from tests.unit.test_anchors_transitions import statuses

CHANGED = [
    ("Use Postgres", "Actually, let's go with MySQL"),
    ("Use Postgres", "No, MySQL"),
    ("Use Postgres", "we switch to MySQL instead"),
    ("Use Postgres", "Let's switch to MySQL."),
    ("Use Postgres", "let's go with MySQL instead"),
    ("Use Postgres", "No, let's use MySQL for the store."),
    ("We'll use Postgres for the orders database.", "Actually, MySQL for the orders."),
    ("Use Toggl", "we switch to Clockify instead"),
    ("Use Toggl", "On second thought, let's go with Clockify."),
    ("We'll use Toggl for time tracking.", "We switch to Clockify instead."),
    ("Use Toggl for time tracking.", "Actually, let's go with Clockify for time tracking."),
    ("My sister's phone number is 555-1234.", "My sister's phone number is 555-9876."),
    ("For room 8 I decided to order oak tables from Calder.", "For room 8 I decided to order pine ones from Ostara."),
    ("Let's go with oak", "No, let's take pine"),
    ("Let's order pizza.", "Actually, let's order sushi instead."),
    ("Let's book it for Friday.", "Actually, let's book it for Saturday."),
    ("Используем Postgres", "Нет, лучше MySQL"),
    ("Используем Postgres", "Переходим на MySQL"),
    ("Используем Postgres", "Нет, давайте возьмём MySQL для заказов."),
    ("Используем Postgres", "На самом деле, давай возьмём MySQL"),
    ("Возьмём Toggl", "Давай вместо этого Clockify"),
    ("Возьмём Toggl", "Давайте лучше возьмём Clockify"),
    ("Возьмём Toggl для учёта времени.", "Нет, для учёта времени возьмём Clockify."),
    ("Давайте возьмём дуб", "Нет, лучше сосну"),
]

RIVALS = [
    ("Use Postgres", "let's go with MySQL"),
    ("Use Postgres", "Use MySQL"),
    ("Let's go with React.", "Let's use Vue."),
    ("Используем Postgres", "Давай возьмём MySQL"),
    ("Используем Postgres", "Давайте MySQL"),
]
"""Bare choices of a thing of which there is one, without a word that corrects."""

BESIDE = [
    ("Use Postgres.", "Let's go with React for the frontend"),
    ("Use Postgres.", "Actually, let's go with React for the frontend"),
    ("Use Postgres.", "Actually, let's use Toggl for time tracking"),
    ("Use Postgres.", "Let's go with SQLite for the tests."),
    ("Remember that the fee for case 25 is 1037 EUR.", "Remember that the fee for case 26 is 1074 EUR."),
    ("For room 1 I decided to order oak tables from Calder.", "For room 8 I decided to order oak tables from Calder."),
    ("We decided on blinds for room 2.", "Actually, let's go with curtains for room 9."),
    ("Для комнаты 2 я решила заказать столы у Calder.", "Для комнаты 9 я решила заказать столы у Calder."),
    ("We decided on MySQL 5.7 for the shop.", "Actually 1,300 orders a day, not 1,200."),
    ("We decided on MySQL 5.7 for the shop.", "Actually 1,300 orders a day."),
    ("Мы решили взять MySQL 5.7 для магазина.", "На самом деле 1 300 заказов в день, а не 1 200."),
    ("The fee is 300 EUR.", "Actually 40 guests are coming."),
    ("My sister's phone number is 555-1234.", "My brother's phone number is 555-9876."),
    ("Server alpha runs on port 8080.", "Server beta runs on port 9090."),
    ("Номер телефона сестры 555-1234.", "Номер телефона брата 555-9876."),
    ("Use Postgres for orders.", "Actually, let's use Redis for sessions."),
    ("Let's use Postgres for the order store.", "Actually, let's use Redis for the session store."),
    ("Let's use Django for the backend.", "Let's use Vue for the frontend instead."),
    ("Use Slack.", "Actually, let's use Figma for the mockups."),
    ("Use Jira for tickets.", "Actually, let's use Confluence for the docs."),
    ("Let's order pizza for the kids.", "Actually, let's order sushi for the adults."),
    ("Let's order pizza.", "Let's order a salad."),
    ("Let's order pizza.", "Actually, let's order beer as well."),
    ("Let's go with Anna for the design.", "Actually, let's go with Bob for the copy."),
    ("Use Postgres.", "Actually, let's also use MySQL."),
    ("Use Postgres.", "Let's use MySQL too."),
    ("Use Postgres.", "For staging, use MySQL."),
    ("Let's use Postgres", "Let's use Redis"),
    ("Let's use Django.", "Let's go with Vue."),
    ("Use Celery.", "Let's go with RabbitMQ."),
    ("Use GitHub.", "Let's go with Jenkins."),
    ("Use AWS.", "Let's go with Cloudflare."),
    ("Use Python.", "Use JavaScript."),
    ("Use Docker.", "Let's go with Kubernetes."),
    ("Use Toggl.", "Let's go with Notion."),
    ("Use Postgres.", "Let's switch to another topic."),
    ("Use Postgres.", "Switch to English."),
    ("Use Postgres.", "Actually, let's make it Thursday."),
    ("Use Postgres.", "Actually, use tabs."),
    ("Let's book the Plaza.", "Actually, let's take the train."),
    ("Use Postgres.", "A: Let's go with MySQL."),
    ("Используем Postgres.", "Давайте возьмём React для фронтенда"),
    ("Используем Postgres.", "На самом деле, давай возьмём React для фронтенда"),
    ("Используем Postgres для заказов.", "Нет, для сессий возьмём Redis."),
    ("Используем Postgres для заказов.", "Давайте лучше возьмём Redis для сессий."),
    ("Используем Postgres.", "Для тестов используем SQLite."),
    ("Используем Postgres.", "Давайте также возьмём MySQL."),
    ("Используем Postgres.", "Ещё используем MySQL."),
    ("Используем Postgres.", "Переходим на английский."),
    ("Возьмём Slack для чата.", "На самом деле, давай возьмём Zoom для звонков."),
    ("Возьмём Toggl для учёта времени.", "Давайте лучше возьмём Notion для заметок."),
    ("Возьмём красную краску для двери.", "Нет, для забора возьмём синюю."),
]


@pytest.mark.case("24")
@each(("first", "then"), CHANGED + RIVALS)
def test_only_the_latter_is_active(first: str, then: str) -> None:
    assert statuses(first, then) == {first: f"superseded by {then}", then: "active"}
    assert statuses(first, "A: Good.", then)[first] == f"superseded by {then}"


@each(("first", "then"), BESIDE)
def test_what_is_chosen_for_something_else_leaves_the_first(first: str, then: str) -> None:
    assert statuses(first, then)[first] == "active"


@pytest.mark.control("24")
@pytest.mark.parametrize(
    ("guard", "pair"),
    [
        ("purpose", ("Use Postgres for the order store.", "Actually, let's use Redis for the session store.")),
        ("purpose", ("Используем Postgres для заказов.", "Нет, для сессий возьмём Redis.")),
        ("is_addition", ("Let's order pizza.", "Actually, let's order beer as well.")),
    ],
)
def test_control_without_the_guard_it_would_be_superseded(
    monkeypatch: pytest.MonkeyPatch, guard: str, pair: tuple[str, str]
) -> None:
    monkeypatch.setattr(replacement, guard, lambda *_: frozenset())
    if guard == "purpose":
        monkeypatch.setattr(antecedents, "specific_purpose", lambda *_: frozenset())

    assert statuses(*pair)[pair[0]].startswith("superseded")


def test_two_choices_in_one_message_are_both_meant_and_far_away_nothing_is_guessed() -> None:
    assert set(statuses("Use Postgres. Use MySQL.").values()) == {"active"}
    assert set(statuses("Use Postgres.", *["A: It rains."] * 12, "Let's go with MySQL.").values()) == {"active"}


def test_what_a_table_says_of_a_choice() -> None:
    assert purpose("Use Redis for the session store, please.") == purpose("session store") | {
        "session",
        "store",
    }
    assert purpose("Book it for Friday.") == frozenset()
    assert purpose("A table for 4, for now.") == frozenset()
    assert purpose("Возьмём Redis для сессий")
    assert is_addition("Redis as well")
    assert not is_addition("On second thought, Redis")
    assert (bare_choice("Let's go with MySQL") or "").strip() == "MySQL"
    assert bare_choice("MySQL is nice") is None


def remembered(*lines: str, together: bool) -> tuple[str, list[str]]:
    """What is served after these lines were folded together or one by one, and the facts that the state records."""
    talk = Replay.in_window(20_000, protect=[])
    for line in lines:
        talk.say("user", line)
        for _ in range(1 if together and line != lines[-1] else 8):
            talk.say("assistant", "Rivers and dogs belong together, and so do aunts, as everybody knows who walks.")
            talk.say("user", "It was nice out on the whole weekend, so we walked along the river with the dog.")
        talk.say("assistant", "How lovely.")
        assert (together and line != lines[-1]) or talk.fold(EVERYTHING)
    return talk.remembered(), [old for entry in talk.entries if entry.role == "fact" for old in entry.superseded]


SAME_THING = [
    ("Use Postgres for the orders", "Actually, let's go with MySQL for the orders"),
    ("Use Toggl for time tracking", "Actually, let's go with Clockify for time tracking"),
    ("Используем Postgres для заказов", "Нет, давайте возьмём MySQL для заказов"),
]


@pytest.mark.case("24")
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(("first", "then"), SAME_THING)
def test_what_an_anchor_corrects_does_not_stay_in_the_state(first: str, then: str, *, together: bool) -> None:
    served, superseded = remembered(first, then, together=together)

    assert then in served
    assert first not in served
    assert not together or any(first in old for old in superseded), "on record in what took its place"


@pytest.mark.control("24")
def test_control_what_the_merge_does_not_hear_of_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.core.state.supersession._CandidateCorrection._replace_by_anchor", lambda *_, **__: None)

    assert SAME_THING[0][0] in remembered(*SAME_THING[0], together=True)[0]


@pytest.mark.parametrize("together", [True, False])
def test_what_is_for_something_else_stays_in_the_state(*, together: bool) -> None:
    lines = ("Use Jira for the tickets", "Actually, let's use Confluence for the docs")
    served, superseded = remembered(*lines, together=together)

    assert "Jira for the tickets" in served
    assert "Confluence for the docs" in served
    assert not superseded


CHANGED_VALUES = [
    ("The budget for the party is $4,512.", "No, $6,075.", "$4,512", "$6,075"),
    ("Deadline: 2027-08-09.", "Deadline: 2027-12-26.", "2027-08-09", "2027-12-26"),
    ("The meeting is at 10:30.", "No, at 11:45.", "10:30", "11:45"),
    ("Our cap is 201 euros per month.", "Sorry, I meant 956 euros.", "201 euros", "956 euros"),
    ("Бюджет проекта 350 000 рублей.", "Нет, бюджет 400 000 рублей.", "350 000", "400 000"),
]


@pytest.mark.case("24")
@pytest.mark.parametrize(("first", "then", "old", "new"), CHANGED_VALUES)
def test_a_value_that_changed_does_not_come_back_as_a_quote(first: str, then: str, old: str, new: str) -> None:
    assert statuses(first, "A: ok", then)[first] != "active"

    served, _ = remembered(first, then, together=True)

    assert new in served
    assert first.rstrip(".") not in served
    assert old not in served.replace(f"(before: {old}", "")


@pytest.mark.control("24")
def test_control_without_the_superseded_anchors_it_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    first, then, old, _ = CHANGED_VALUES[1]
    monkeypatch.setattr("app.core.state.outdated.OutdatedAnchors.outdated_values", lambda *_: frozenset())
    monkeypatch.setattr("app.core.state.outdated.OutdatedAnchors.successor", lambda *_: None)

    assert old in remembered(first, then, together=True)[0]

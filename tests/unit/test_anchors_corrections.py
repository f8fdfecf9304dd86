"""A correction reaches what it corrects, however it is worded, and nothing else."""

from __future__ import annotations

import pytest

from app.core.anchors import antecedents as module
from tests.rows import each
from tests.unit.test_anchors_transitions import statuses

DECIDED = "Let's use Postgres for the orders database."
BETWEEN = (
    "A: Good choice: Postgres it is.",
    "Our tracking id is 7f3c9a52-1b7e-4c55-9a01-0e5f6a7b8c9d, config in /etc/lakeside/orders.yaml",
    "A: Noted.",
    "By the way, it rains here.",
    "A: Then stay inside.",
)

CORRECTIONS = [
    "no, MySQL",
    "No, MySQL.",
    "nope, MySQL",
    "no, mysql",
    "no, MySQL: our host only offers MySQL 8.0.36.",
    "No, MySQL; our host offers nothing else.",
    "No, MySQL, since our host has nothing else.",
    "no, MySQL because our host only offers that",
    "No, MySQL — the host has nothing else.",
    "No. MySQL.",
    "No! MySQL!",
    "Sorry, MySQL.",
    "scratch that, MySQL",
    "Scratch that. MySQL.",
    "let's do MySQL instead",
    "Let's do MySQL instead, our host has no other.",
    "we can't use Postgres, so MySQL it is",
    "We can't use Postgres, so let's go with MySQL.",
    "Actually MySQL",
    "Actually, MySQL: our host has nothing else.",
    "Actually, let's use MySQL; the host offers it.",
    "not Postgres, but MySQL",
    "Not Postgres, MySQL.",
    "нет, MySQL",
    "Нет. MySQL.",
    "Нет, MySQL: хостинг даёт только его.",
    "нет, MySQL, потому что хостинг даёт только его",
    "Нет, MySQL, так как другого нет.",
    "не Postgres, а MySQL",
    "Не Postgres, а MySQL — так дешевле.",
    "давай лучше MySQL",
    "Давай лучше MySQL, так как хостинг даёт только его.",
    "мы не можем использовать Postgres, так что берём MySQL",
    "Передумал, MySQL.",
]

OTHERWISE = [
    "No, thanks.",
    "no problem",
    "No problem, MySQL is fine as well.",
    "No, I meant the red one.",
    "No, the red one: it suits the room.",
    "No, not yet.",
    "No.",
    "No, Vue.",
    "No, Melanie, we had fun.",
    "No, 15.",
    "Actually, Python is great.",
    "Нет, спасибо.",
    "Нет, красную.",
    "Нет, ещё нет.",
]


@pytest.mark.case("24")
@each("text", CORRECTIONS)
def test_only_the_latter_is_active(text: str) -> None:
    told = statuses(DECIDED, *BETWEEN, text)

    assert told[DECIDED] == f"superseded by {text}"
    assert told[text] == "active"
    assert told[BETWEEN[1]] == "active", "what lies between is about something else"


@pytest.mark.control("24")
def test_control_without_the_point_the_reasons_hide_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "no, MySQL: our cheap host only offers MySQL 8.0.36 there."
    assert statuses(DECIDED, *BETWEEN, text)[DECIDED] != "active"

    monkeypatch.setattr(module, "_replacement_part", lambda text: text)
    assert statuses(DECIDED, *BETWEEN, text)[DECIDED] == "active"


@each("text", OTHERWISE)
def test_a_no_to_something_else_leaves_the_decision(text: str) -> None:
    assert statuses(DECIDED, *BETWEEN, text)[DECIDED] == "active"


def test_a_no_answers_the_question_just_before() -> None:
    own = statuses(DECIDED, "A: Should I book it?", "No, not yet.")
    proposed = statuses("A: We'll use Oracle for it.", "A: Should I book it?", "No.")
    counted = statuses("The budget is $500.", "A: Should I book it for 4 people?", "No, 6.")

    assert own[DECIDED] == "active"
    assert proposed["We'll use Oracle for it."] == "active"
    assert counted["The budget is $500."] == "active"
    assert statuses("A: We'll use Oracle for it.", "No.") == {"We'll use Oracle for it.": "superseded"}


def test_what_repeats_the_outdated_value_goes_with_it() -> None:
    told = statuses(
        DECIDED,
        "A: We'll use Postgres then. I'll migrate the tables to Postgres tonight. I'll write the report.",
        "no, MySQL",
    )

    assert told.pop("I'll write the report.") == "active"
    assert told.pop("no, MySQL") == "active"
    assert set(told.values()) == {"superseded by no, MySQL"}


def test_the_last_thing_of_its_kind_is_meant() -> None:
    page = "Let's use React for the frontend."
    told = statuses(DECIDED, "A: ok", page, "A: ok", "no, MySQL")

    assert (told[DECIDED], told[page]) == ("superseded by no, MySQL", "active")
    assert statuses(DECIDED, "A: ok", page, "A: ok", "no, Vue")[page] == "superseded by no, Vue"


def test_which_of_several_values_of_a_kind_is_meant_nobody_knows() -> None:
    one, several = "The budget is $500.", "The budget is $500, with the hall $900."

    assert statuses(one, "A: ok", "No, $600.")[one] == "superseded by No, $600."
    assert statuses(several, "A: ok", "No, $600.")[several] == "active"


def test_far_away_a_name_of_a_known_kind_reaches_and_a_number_does_not() -> None:
    talk = ["A: It rains."] * 12

    assert statuses(DECIDED, *talk, "no, MySQL")[DECIDED] == "superseded by no, MySQL"
    assert statuses(DECIDED, *talk, *talk, "no, MySQL")[DECIDED] == "active"
    assert statuses("The budget is $500.", *talk, "No, $600.")["The budget is $500."] == "active"


def test_an_assistants_echo_leaves_the_correction_as_it_is() -> None:
    echo = "We'll use MySQL instead of Postgres."
    told = statuses(DECIDED, "A: ok", "we can't use Postgres, so MySQL it is", f"A: {echo}")

    assert told["we can't use Postgres, so MySQL it is"] == "active"


STAYING = [
    # A name before a line says who speaks, not what the line is about.
    ("Priya: Important: my cousin Anjali is allergic to sesame.", "Priya: then no. Hollin Barn."),
    # A day does not replace a clock time, a count of people another count, or a year an amount.
    ("The quiz is at the Oddfellow, 7:30.", "They moved it to next Sunday."),
    ("My car has two spare tyres, a third would be 45 from Wexcam.", "Sorry, it's 26 people now."),
    ("Мой предел 85, ипотека 41.", "Нет, год не 2019, а 2021."),
    # A statement with words of its own is about something else.
    (
        "We decided to keep him in the laundry room.",
        "quick fix to what I said, it's the left hind not right, she faced me",
    ),
    ("Решили: вешаем камеру в подвал.", "не, вру, тарифа до второго апреля хватает, глянул в кабинете"),
    # Names may be of anybody.
    ("My lawyer is called Margaret Olsen.", "Sorry, I meant Wendy Harper."),
    ("I'm allergic to penicillin.", "Scratch that."),
    # A number is replaced by another number; alone it may be a number of anything.
    ("My maths test is on the 25th of september.", "ok but not 25 oct, half term were in wales."),
]
FAR_AWAY = [
    ("My recipe serves 6: 5 lb bone-in, 2 cups of red wine.", "Sorry, make it 2 lb boneless."),
    ("Important: episodes used to be 70 mins.", "wait, I told you 41 episodes, Odette says 43, with two specials"),
]


@pytest.mark.parametrize(("first", "then"), STAYING)
def test_what_has_nothing_to_do_with_a_correction_stays(first: str, then: str) -> None:
    assert statuses(first, "A: Good.", then)[first] == "active"


@pytest.mark.parametrize(("first", "then"), FAR_AWAY)
def test_one_shared_word_says_nothing_far_away(first: str, then: str) -> None:
    assert statuses(first, *["A: It rains."] * 6, then)[first] == "active"


def test_no_assistant_sets_right_what_a_user_decided() -> None:
    decided = "We decided to repair the diesel filter now."
    corrected = "Correction: the diesel filter can be repaired later."

    assert statuses(decided, f"A: {corrected}")[decided] == "active"
    assert statuses(decided, "A: Good.", corrected)[decided] == f"superseded by {corrected}", "control"


def test_what_was_talked_of_last_is_meant_a_little_further_back() -> None:
    cap = "Our cap is 201 euros per month."
    rain = ("A: It rains.", "By the way, it rains here.", "A: It rains.")

    assert statuses(cap, *rain, "Sorry, I meant 956 euros.")[cap] != "active"
    assert statuses(cap, *rain, "Our deadline is March 3.", "Sorry, I meant 956 euros.")[cap] == "active"

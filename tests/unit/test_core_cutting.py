"""What remains of a statement without its failing values: up to a comma before them, if its meaning stays the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.schemas import SESSION
from app.core.text.patterns import compiled
from app.core.text.values import Value, values
from app.core.validation import cutting
from app.core.validation.claims import claims_of
from app.core.validation.cutting import text_before_orders, without_values
from app.core.validation.exact_checks import examine_candidate, without_failures
from app.core.validation.restoring import Restoration
from app.core.validation.source_texts import SourceTexts
from app.core.validation.verdict_application import apply_verdicts
from app.core.validation.verdicts import Verdict
from tests.rows import each
from tests.unit.talk import candidate, entry, item, talk

NOTHING = compiled(r"(?!)")


def rest(text: str, *failing: str) -> str:
    found = [value for value in values(text) if value.text in failing]
    assert len(found) >= len(failing), [value.text for value in values(text)]
    return without_values(text, found)


@each(
    ("text", "failing", "left"),
    [
        (
            "Tom booked five flights at £104 each, £8 more than quoted, £520 on his card.",
            "£8",
            "Tom booked five flights at £104 each.",
        ),
        ("The van has covered 710 km, and 134.70 went on diesel.", "134.70", "The van has covered 710 km."),
        ("The yard costs 250 euros a week, which makes 1,040 a month", "1,040", "The yard costs 250 euros a week"),
        ("Does the yard cost 250 euros a week, so 1,040 a month?", "1,040", "Does the yard cost 250 euros a week?"),
        (
            "The yard is 250 euros a week, 1,040 a month; Ruth pays.",
            "1,040",
            "The yard is 250 euros a week; Ruth pays.",
        ),
        (
            "Ruth pays; the yard is 250 euros a week, 1,040 a month.",
            "1,040",
            "Ruth pays; the yard is 250 euros a week.",
        ),
        (
            "Ruth came. The yard is 250 euros, 1,040 in all. She left.",
            "1,040",
            "Ruth came. The yard is 250 euros. She left.",
        ),
        ("Readings of Monday: p99 410 ms, 163 ms above the goal.", "163 ms", "Readings of Monday: p99 410 ms."),
        (
            "Der Anschluss kostet 29,99 € im Monat, im Jahr 449,88 €.",
            "449,88 €",
            "Der Anschluss kostet 29,99 € im Monat.",
        ),
        ("Бандл стал меньше на 428 КБ, то есть почти на 67 процентов.", "67 процентов", "Бандл стал меньше на 428 КБ."),
        ("龙井每公斤1,350元，比旧价贵170元，10公斤以上九五折。", "170元", "龙井每公斤1,350元。"),
        (
            "Le ore in più della fotografa costano 350 €, cioè 87,50 € l'una.",
            "87,50 €",
            "Le ore in più della fotografa costano 350 €.",
        ),
        (
            "Il podere è saldato: 2.000 € il 4 luglio 2026, 27 giorni prima.",
            "27 giorni",
            "Il podere è saldato: 2.000 € il 4 luglio 2026.",
        ),
        (
            "Dernier jour chez Vialis le 31 mars 2026, 11 240 € de solde.",
            "11 240 €",
            "Dernier jour chez Vialis le 31 mars 2026.",
        ),
        ("La casa cuesta 900 euros al mes, 10.800 euros al año.", "10.800 euros", "La casa cuesta 900 euros al mes."),
        ("A renda da casa fica em 855 €, 10.260 € por ano.", "10.260 €", "A renda da casa fica em 855 €."),
    ],
)
def test_a_sentence_ends_at_the_comma_before_the_value(text: str, failing: str, left: str) -> None:
    assert rest(text, failing) == left


@each(
    "text",
    [
        "Ruth pays 250 euros a week, not 777 euros.",
        "Ruth pays 250 euros a week, but 777 euros in May.",
        "Ruth pays 250 euros a week, unless the rent is above 777 euros.",
        "Ruth pays 250 euros a week, except for the 777 euros in May.",
        "Ruth pays 250 euros a week, until 777 euros are paid.",
        "Ruth pays 250 euros a week, 777 euros if it rains.",
        "If Ruth pays 250 euros a week, she saves 777 euros.",
        "Ruth does not pay 250 euros a week, she pays 777 euros.",
        "Ruth zahlt 250 Euro die Woche, aber 777 Euro im Mai.",
        "Ruth zahlt keine 250 Euro die Woche, sondern 777 Euro.",
        "Рута платит 250 евро в неделю, а в мае 777 евро.",
        "Рута платит 250 евро в неделю, если не 777 евро.",
        "路得每周付250元，但五月付777元。",
        "路得每周付250元，除非超过777元。",
        "Ruth paga 250 euro a settimana, ma a maggio 777 euro.",
        "Ruth paga 250 euros a la semana, salvo en mayo, 777 euros.",
        "Ruth paie 250 euros par semaine, sauf en mai, 777 euros.",
        "A Ruth paga 250 euros por semana, exceto em maio, 777 euros.",
    ],
)
def test_what_limits_or_turns_the_rest_is_not_cut_off(text: str) -> None:
    failing = [value for value in values(text) if value.text.startswith("777")]
    assert failing
    assert without_values(text, failing) == ""


@pytest.mark.parametrize("name", ["_CONTRAST_WORDS", "_NEGATION_OR_CONDITION", "_LIMITING_WORDS"])
def test_control_without_the_look_for_that_it_would_be(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    turned = {
        "_CONTRAST_WORDS": "but 777 euros in May",
        "_NEGATION_OR_CONDITION": "not 777 euros",
        "_LIMITING_WORDS": "until 777 euros are paid",
    }
    others = {"_NEGATION_OR_CONDITION": ("_LIMITING_WORDS",)}  # "not" is in both
    text = f"Ruth pays 250 euros a week, {turned[name]}."
    for one in (name, *others.get(name, ())):
        assert rest(text, "777 euros") == ""
        monkeypatch.setattr(cutting, one, NOTHING)
    assert rest(text, "777 euros") == "Ruth pays 250 euros a week."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("The rent of the yard: 777 euros.", "a colon says what follows"),
        ("The 250 euros for the yard — 777 euros.", "a dash may stand for a verb"),
        ("The lender fee of the bank, stamp duty and survey are 777 euros with Tom.", "no value is saved"),
        ("By 6 April 2026, Ruth had paid 777 euros.", "nothing is told of the day"),
        (
            "The yard of Ruth (250 euros, or 777 euros with heating",
            "control: what follows is in brackets that are never closed",
        ),
        ("Ruth wants rooms for 20, 777 and 8.", "a list of bare values"),
        ("Remind Ruth of 250 euros, 777 euros.", "the end of one"),
        ("贷款年利率3.1%、月供777元。", "a mark of a list"),
        (
            "Ruth płaci 250 euro za ogród w każdym tygodniu i bardzo się z tego cieszy, razem 777 euro.",
            "a language whose contrasts we do not know",
        ),
        ("```\nrent = 250 euros, fee = 777 euros, both\n```", "code"),
    ],
)
def test_nothing_is_cut_where_no_sentence_would_be_left(text: str, why: str) -> None:
    failing = [value for value in values(text) if value.text.startswith("777")]
    assert failing
    assert without_values(text, failing) == "", why


def test_control_in_a_language_that_we_know_it_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "_CLAUSE_LANGUAGES", frozenset({"pl"}))
    assert rest(
        "Ruth płaci 250 euro za ogród w każdym tygodniu i bardzo się z tego cieszy, razem 777 euro.", "777 euro"
    )


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Ruth asked for 250 euros «for the yard, all of 777 euros».", ""),
        ("Ruth has 250 euros in the tin, she said “we owe Tom, he says, 777 euros”.", ""),
        ("The yard is 250 euros (in May, with a tap; heating 777 euros) a week.", "The yard is 250 euros a week."),
        ("The yard is 250 euros a week, for $a, b_2, 777$ of them.", "The yard is 250 euros a week."),
        ("It is $250 a week, so $1,000 a month; $777 in all.", "It is $250 a week, so $1,000 a month."),
    ],
)
def test_no_sentence_ends_in_a_quotation_in_brackets_or_in_a_formula(text: str, left: str) -> None:
    failing = [value for value in values(text) if "777" in value.text]
    assert failing
    assert without_values(text, failing) == left


def test_a_value_of_another_kind_or_with_words_beside_it_is_in_no_list() -> None:
    assert rest("Ruth pays on 6 April 2026, 777 euros.", "777 euros") == "Ruth pays on 6 April 2026."
    assert rest("Ruth pays 250 euros, 777 euros with Tom.", "777 euros") == "Ruth pays 250 euros."
    assert rest("Ruth pays 250 euros, 777 euros with Tom, 20 euros.", "777 euros") == "Ruth pays 250 euros."
    assert rest("The tables in Ulm are for 20, 62, 80 guests.", "62") == "", "control: a list"


def test_only_the_sentence_before_a_removed_condition_goes_with_it() -> None:
    told = "The office in Ulm opens on 3 May. Ruth paid the deposit. It does not cost 45 euros."
    assert rest(told, "45 euros") == "The office in Ulm opens on 3 May."


def test_a_parenthesis_without_the_value_stays() -> None:
    assert rest("The office (the old one) has room (12 desks).", "12") == "The office (the old one) has room."
    assert rest("Ruth pays (12 euros).", "12 euros") == "", "two words tell nothing"
    assert rest("Ruth pays Tom (12 euros).", "12 euros") == "Ruth pays Tom."
    assert rest("Ruth pays Tom (12 euros) if he asks her.", "12 euros") == "Ruth pays Tom if he asks her."
    assert rest("If he asks her, Ruth pays Tom (12 euros).", "12 euros") == "", "a condition of what is cut"


def test_what_stands_before_an_order_stays() -> None:
    told = "The lease ends on 3 May. Send the keys at once. They wait for them."
    assert text_before_orders(told, {"Send the keys at once."}) == "The lease ends on 3 May."
    assert text_before_orders(told, {"The lease ends on 3 May."}) == ""


@pytest.mark.parametrize("field", ["logos", "conversation_summary"])
def test_what_was_cut_off_comes_back_where_a_verifier_supports_it(field: str) -> None:
    text, short = "Ruth pays 250 euros for the yard, 777 euros with Tom.", "Ruth pays 250 euros for the yard."
    said = talk("Ruth pays 250 euros for the yard.", "Ruth is early with the yard.", "Ruth likes the yard.")
    other = " ".join(one.content for one in said[1:])
    is_item = field == "logos"
    whole = f"{other} {text}"
    written = candidate(item(text, 1)) if is_item else candidate(item(other, 2, 3), narrative=whole)
    made = without_failures(examine_candidate(written, SourceTexts(said)), SESSION)
    (repair,) = made.repairs
    assert (repair.field, repair.before, repair.after) == (field, text, short)
    served = entry("F1", short) if is_item else entry("N1", made.candidate.narrative[field], field)
    claims = claims_of([served], [served], repairs=[replace(repair, entry_id=served.id)])
    asked = [one for one in claims if one.kind == "cut"]
    verdicts = [Verdict(n=one.n, verdict="supported", seq=1, quote="Ruth pays 250 euros") for one in asked]
    into = Restoration(schema=SESSION, version=7, next_entry=40, boundary_seq=3, messages=said)
    shown = {one.seq: (one.content,) for one in said}
    (back,) = apply_verdicts([served], asked, verdicts, shown_texts=shown, restoration=into).entries
    assert back.text == (text if is_item else whole)


MARKS = (", ", "; ", ". ", ", and ", ": ", " (", ") ", "，", "；", "。", " — ")
WORDS = ("Ruth pays", "the yard costs", "not", "but", "Клара платит", "小屋每周付", "in May", "for the dog", "если")


@st.composite
def told(draw: st.DrawFn) -> tuple[str, list[Value]]:
    """A statement of clauses, each with its own number, and the values of it that fail."""
    pieces = draw(
        st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(MARKS), st.booleans()), min_size=1, max_size=9)
    )
    text = "".join(f"{words} {7_001 + 13 * n} euros{mark}" for n, (words, mark, _) in enumerate(pieces)).strip()
    wrong = {str(7_001 + 13 * n) for n, (_, _, fails) in enumerate(pieces) if fails}
    return text, [value for value in values(text) if any(number in value.text for number in wrong)]


def _beginnings(text: str) -> list[str]:
    return [part.strip(" ;；.。,，") for part in re.split(r"(?<=[.。;；])", text)]


@given(told())
def test_the_rest_is_made_of_beginnings_of_its_sentences_without_a_failing_value(
    given_: tuple[str, list[Value]],
) -> None:
    text, failing = given_
    if not failing:
        return
    left = without_values(text, failing)
    assert not any(value.text in left for value in failing)
    assert _is_subsequence(re.findall(r"\w+", left), re.findall(r"\w+", text))
    if left and "(" not in text and ")" not in text:
        whole = _beginnings(text)
        assert all(any(one.startswith(part) for one in whole) for part in _beginnings(left)), "the head stays"
        assert left[-1] not in ",，:：—;；" or text.endswith(left[-1])


def _is_subsequence(left: Sequence[str], whole: Sequence[str]) -> bool:
    rest_of_whole = iter(whole)
    return all(word in rest_of_whole for word in left)


def test_it_takes_linear_time() -> None:
    """A text of eight times the length takes about eight times as long at most; quadratic work would take 64 times."""
    seconds = []
    for count in (500, 4_000):
        text = "; ".join(f"the yard is {7_000 + n} euros a week, {90_000 + n} in all" for n in range(count)) + "."
        failing = [value for value in values(text) if value.text.startswith("9")]
        started = process_time()
        assert without_values(text, failing)
        seconds.append(process_time() - started)
    assert all(later < 20 * before for before, later in pairwise(seconds)), seconds

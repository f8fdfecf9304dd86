"""Values that follow by one calculation count as shown; values from elsewhere still fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from app.core.validation import calculations, source_texts
from app.core.validation.exact_checks import examine_candidate
from app.core.validation.source_texts import SourceTexts
from bench.trust.values import Count, a_day_off, blocks, by_chance, counted
from tests.corpus import Corpus, corpus
from tests.rows import each
from tests.unit.talk import candidate, item, talk
from tests.unit.timing import assert_linear

TOLD, LOOSE, CAREFUL = corpus("told_values"), corpus("loose_values"), corpus("careful_values")
DAYS, NUMBERS = corpus("told_days_spanish_french"), corpus("told_numbers_spanish_french")
FURTHER, LANGUAGES = corpus("told_days_further"), corpus("told_values_many_languages")


def rows(told: Corpus = TOLD, every: int = 1) -> Iterable[Mapping[str, Any]]:
    return [{"lang": row.lang, "text": row.text, "expected": row.expected} for row in told.rows[::every]]


def share(found: Count, kind: str | None = None) -> float:
    sums = Counter[str]()
    for (_, what, state), number in found.items():
        if kind in {None, what}:
            sums[state] += number
    return sums["failing"] / sums["all"]


def test_honest_statements_hold_and_wrong_values_fail() -> None:
    found = counted(blocks(rows()))
    assert share(found, "told") <= 0.01
    assert share(found, "derived") <= 0.20
    assert share(found, "lie") >= 0.97


def test_as_people_chat_too() -> None:
    found = counted(blocks(rows(LOOSE)))
    assert share(found, "told") <= 0.02
    assert share(found, "derived") <= 0.41
    assert share(found, "lie") >= 0.89


def test_lies_near_what_was_said_fail_too() -> None:
    found = counted(blocks(rows(CAREFUL)))
    assert share(found, "told") == 0
    assert share(found, "derived") <= 0.21
    assert share(found, "lie") >= 0.9


def test_relative_days_in_spanish_and_french_are_told_in_full_and_wrong_ones_fail() -> None:
    for as_items in (True, False):
        found = counted(blocks(rows(DAYS)), as_items=as_items)
        assert share(found, "told") == 0
        assert share(found, "lie") > 0.72


def test_days_in_seven_more_languages_are_read_in_most_statements() -> None:
    for as_items in (True, False):
        found = counted(blocks(rows(FURTHER)), as_items=as_items)
        assert share(found, "told") <= 0.09
        assert share(found, "lie") > 0.75


def test_numbers_in_spanish_and_french_words_are_told_in_digits_and_wrong_ones_fail() -> None:
    for as_items in (True, False):
        found = counted(blocks(rows(NUMBERS)), as_items=as_items)
        assert share(found, "told") == 0
        assert share(found, "derived") <= 0.25
        assert share(found, "lie") >= 0.9


def test_values_in_many_languages_and_scripts_hold_in_most_statements_and_wrong_ones_fail() -> None:
    found = counted(blocks(rows(LANGUAGES)))
    assert share(found, "told") <= 0.33
    assert share(found, "lie") == 1


def test_dates_a_day_off_fail() -> None:
    assert share(a_day_off(blocks(rows()))) >= 0.78


@pytest.mark.daily(1)
@pytest.mark.parametrize(("told", "most", "least"), [(TOLD, 0.24, 0.97), (LOOSE, 0.59, 0.91)], ids=["told", "loose"])
def test_sentences_of_narratives_name_no_sources_and_are_calculated_from_what_says_much_the_same(
    told: Corpus, most: float, least: float
) -> None:
    found = counted(blocks(rows(told)), as_items=False)
    assert share(found, "derived") <= most
    assert share(found, "lie") >= least


@pytest.mark.long
def test_control_without_texts_alike_more_of_them_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_texts, "_MAX_SIMILAR_SOURCES", 0)
    assert share(counted(blocks(rows(LOOSE)), as_items=False), "derived") > 0.65


@pytest.mark.parametrize(("every", "least"), [(4, 0.92), pytest.param(1, 0.96, marks=pytest.mark.long)])
def test_random_values_follow_from_nothing(every: int, least: float) -> None:
    assert share(by_chance(blocks(rows(every=every)))) >= least


@pytest.mark.long
def test_control_without_the_guard_they_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calculations, "MAX_MATCHING_SHARE", 1.0)
    assert share(by_chance(blocks(rows(every=8)))) < 0.85


# The messages are of Monday 16 November 2026, from 9:37 on.
SAID = {
    "prices": "The room is 700 euros, meals are 250 euros and the ferry is 126 euros; we stay 3 nights.",
    "rate": "The flat is 1,240 euros a month, the tiler takes 1.8k per room for 7 rooms, of 11,400 visitors 496 paid.",
    "times": "The film starts at 19:40 and takes 95 min. The permit of 4 May 2026 is valid 30 days.",
    "days": "The exam is on 21 January 2027, the party on Saturday after. Anna turns 85 on 12 May.",
    "permit": "Applied for on 11 June 2027, granted on 20 July 2027; it was wanted by 30 June 2027.",
    "sizes": 'The tile is 640x600; it took 1 min 50; the budget is 230. The job log says {"duration_s": 1126}.',
    "decimals": "It weighed 1.78 g before drying and 1.756 g after.",
    "answers": "580 people answered: 311 named the price, 124 the setup, 87 had switched, 58 something else.",
    "shares": "About 34 ± 4 % of the mud comes from fields, 2.9 Bq of caesium were found.",
}  # fmt: skip


@each(
    ("said", "follows", "does_not"),
    [
        ("prices", "Room and meals are 950 euros", "Room and meals are 970 euros"),
        ("prices", "Room, meals and ferry are 1,076 euros", "Room, meals and ferry are 1,086 euros"),
        ("prices", "The room is 450 euros more than the meals", "The room is 430 euros more than the meals"),
        ("prices", "The ferry is 126 euros, 42 euros for each of 3", "The ferry is 126 euros, 57 euros for each of 3"),
        ("rate", "It is 1,240 euros a month, 14,880 a year", "It is 1,240 euros a month, 14,380 a year"),
        ("rate", "The tiler takes 12,600 euros for 7 rooms", "The tiler takes 13,700 euros for 7 rooms"),
        ("rate", "Of 11,400 visitors 4.35 % paid, that is 496", "Of 11,400 visitors 5.15 % paid, that is 496"),
        ("times", "The film ends at 21:15", "The film ends at 21:35"),
        ("times", "The permit is valid until 3 June 2026", "The permit is valid until 9 June 2026"),
        ("days", "The party is on 23 January 2027", "The party is on 26 January 2027"),
        ("days", "Anna was born in 1941", "Anna was born in 1944"),
        ("days", "The exam is in 66 days", "The exam is in 59 days"),
        ("permit", "From 11 June it is 19 days until 30 June", "From 11 June it is 18 days until 30 June"),
        ("sizes", "The budget is 230,000 euros", "The budget is 260,000 euros"),
        ("sizes", "It took 110 seconds", "It took 130 seconds"),
        ("sizes", "The job took almost 19 minutes", "The job took almost 26 minutes"),
        ("decimals", "Drying took 0.024 g of 1.78 g", "Drying took 0.034 g of 1.78 g"),
        ("answers", "Of 580 answers 58 name something else (10 %)", "Of 580 answers 58 name something else (20 %)"),
        ("shares", "34 ± 4 % is from fields, 66 % is not", "34 ± 4 % is from fields, 71 % is not"),
    ],
)
def test_one_calculation(said: str, follows: str, does_not: str) -> None:
    shown = SourceTexts(talk(SAID[said]))
    assert examine_candidate(candidate(item(follows, 1)), shown).failures == ()
    assert len(examine_candidate(candidate(item(does_not, 1)), shown).failures) == 1


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("The budget is 2,400 euros", "The budget is 24,000 euros"),
        ("The budget is 2,400 euros", "The budget is 240 euros"),
        ("It takes 45 minutes", "It takes 450 minutes"),
        ("The tank holds 350 litres", "The tank holds 35,000 litres"),
    ],
)
def test_a_slip_of_the_decimal_point_is_no_calculation(said: str, told: str) -> None:
    shown = SourceTexts(talk(said))
    assert examine_candidate(candidate(item(said, 1)), shown).failures == ()
    assert len(examine_candidate(candidate(item(told, 1)), shown).failures) == 1


WRITTEN_OUT = [
    ("Wir sind 85, 11 davon Kinder.", "Erwachsene: 74 (85 − 11)", "Erwachsene: 73 (85 − 11)"),
    ("The fee is 690 for 31 days.", "You get 44.52 back (690 : 31 × 2)", "You get 44.92 back (690 : 31 × 2)"),
    ("Rows: 318, 318, 319, 321.", "In all 1,276 (318+318+319+321)", "In all 1,286 (318+318+319+321)"),
    ("Wood is 2.5 l a can, 3.4 l are needed.", "1.6 l stay (2 × 2.5 l − 3.4 l)", "1.8 l stay (2 × 2.5 l − 3.4 l)"),
    ("Заплатили 71 400 из 184 300.", "Это 38,7 % (71 400 / 184 300)", "Это 39,7 % (71 400 / 184 300)"),
    ("Оценки были 98, 102 и 94.", "В среднем 98: (98 + 102 + 94) / 3", "В среднем 87: (98 + 102 + 94) / 3"),
    ("一年卖了185825元。", "平均每月15485元（185825元÷12个月）", "平均每月15845元（185825元÷12个月）"),
    ("Of 18 000 € 1 000 € and 350 € are paid.", "16 650 €: 18 000 − (1 000 + 350)", "16 550 €: 18 000 − (1 000 + 350)"),
    ("Each of 40 people pays €12.50.", "That makes €500 (40 people × €12.50)", "That makes €490 (40 people × €12.50)"),
    ("3 boxes of 40 screws, 2 more in each, 6 are lost.", "120 stay: 3 × (40 + 2) − 6", "124 stay: 3 × (40 + 2) − 6"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "right", "wrong"), WRITTEN_OUT)
def test_a_calculation_that_is_written_out_is_calculated(said: str, right: str, wrong: str) -> None:
    shown = SourceTexts(talk(*["Fine."] * 6, said, *["Good."] * 6))
    for told in (candidate(item(right, 7)), candidate(narrative=f"{right}.")):
        assert examine_candidate(told, shown).failures == ()
    for told in (candidate(item(wrong, 7)), candidate(narrative=f"{wrong}.")):
        assert len(examine_candidate(told, shown).failures) == 1


def test_what_follows_is_an_operand_in_turn() -> None:
    shown = SourceTexts(talk("The old plan is 34.99 euros, the new one 18 euros a month."))
    assert (
        examine_candidate(candidate(item("It saves 16.99 euros a month, 203.88 euros a year", 1)), shown).failures == ()
    )
    assert (
        len(examine_candidate(candidate(item("It saves 15.99 euros a month, 191.88 euros a year", 1)), shown).failures)
        == 1
    )


def test_a_statement_without_sources_follows_from_where_its_other_values_stand() -> None:
    shown = SourceTexts(talk("The deposit is 350 euros of 1,820 euros.", *["Fine."] * 9, "We have 96 guests."))
    told = candidate(narrative="350 euros are paid and 1,470 euros are left.")
    assert examine_candidate(told, shown).failures == ()
    assert (
        len(examine_candidate(candidate(narrative="We have 96 guests and 1,470 euros are left."), shown).failures) == 1
    )


def test_what_is_told_twice_follows_twice() -> None:
    shown = SourceTexts(talk("The old plan is 34.99 euros, the new one 18 euros a month."))
    assert (
        examine_candidate(candidate(item("She saves 16.99 euros a month and he 16.99 euros", 1)), shown).failures == ()
    )
    [failure] = examine_candidate(
        candidate(item("She saves 15.99 euros a month and he 15.99 euros", 1)), shown
    ).failures
    assert [value.text for value in failure.values] == ["15.99 euros"] * 2
    right, wrong = "She saves 16.99 euros a month", "he 16.99 euros (34.99 - 17)"
    assert len(examine_candidate(candidate(item(f"{right} and {wrong}", 1)), shown).failures) == 1, (
        "its own calculation is wrong"
    )


TRIP = "The cap went off on 11 March 2027. The trip begins on 2 May 2027."


def test_a_length_in_a_narrative_follows_from_a_likely_calculation_though_others_do_too() -> None:
    shown = SourceTexts(talk(TRIP))
    for told, failing in (("seven", 0), ("five", 1), ("nine", 1)):
        narrative = f"The cap went off roughly {told} weeks before the trip."
        assert len(examine_candidate(candidate(narrative=narrative), shown).failures) == failing, told


def test_control_as_other_values_it_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calculations, "_is_in_days_or_longer", lambda _: False)
    narrative = "The cap went off roughly seven weeks before the trip."
    assert len(examine_candidate(candidate(narrative=narrative), SourceTexts(talk(TRIP))).failures) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    "unit", ["12,345 ", "€17 31 ", "4 May 2026 3 days ", "17:40 35 min ", "3x² ", "12 + ", "(9 * "]
)
def test_hostile_text_is_reckoned_with_in_linear_time(unit: str) -> None:
    def examined(text: str) -> object:
        return examine_candidate(candidate(item(text + " 7,654,321.17 99.31 88.37 euros", 1)), SourceTexts(talk(text)))

    assert_linear(examined, unit * (6_000 // len(unit)))


@pytest.mark.parametrize(
    ("text", "said", "fails"),
    [
        ("They split it on 18 April.", "Let's do it on the weekend of 18/19 april.", False),
        ("They split it on 18-19 April 2026.", "Let's do it on the weekend of 18/19 april.", False),
        ("They split it on 17 April.", "Let's do it on the weekend of 18/19 april.", True),
        ("Sie kommen am 18. April.", "Wir kommen am 18. oder 19. April.", False),
        ("They met on 16 February.", "We met on 16 January, not on 18 February.", True),
        ("18 people came in May 2026.", "In May 2026 there were 18 of us.", False),
    ],
)
def test_numbers_before_a_month_may_be_its_days(text: str, said: str, *, fails: bool) -> None:
    examined = examine_candidate(candidate(item(text, 1)), SourceTexts(talk(said)))
    assert bool(examined.failures) is fails


@pytest.mark.parametrize("total", ["£88.50", "£88", "£89", "about £89"])
def test_a_sum_halfway_between_two_numbers_may_be_rounded_either_way(total: str) -> None:
    shown = SourceTexts(talk("Insurance is 33.50 a month, food 55."))
    for stated, fails in ((total, False), ("£87", True), ("£90", True)):
        text = f"Monthly costs: insurance £33.50 and food £55, together {stated}."
        assert bool(examine_candidate(candidate(item(text, 1)), shown).failures) is fails


STAY = talk(
    "We would like to stay from Friday 28 May 2027 to Monday 31.",
    "You can. The offer holds until 20 April.",
    "Which rooms are left?",
    "Ten doubles.",
    "Good. Is there something planned later?",
    "Nothing so far.",
    "On Saturday we want to have dinner together.",
)


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("They have dinner together on Saturday, 29 May.", False),
        ("They have dinner together on 29 May.", False),
        ("They have dinner together on 30 May.", True),
        ("They have dinner together on 5 June.", True),
        ("They have dinner together on 24 April.", True),
    ],
)
def test_a_weekday_is_the_day_of_a_stay_that_was_named_anywhere(text: str, *, fails: bool) -> None:
    assert bool(examine_candidate(candidate(item(text, 7)), SourceTexts(STAY)).failures) is fails


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("The sheets are cut on Saturday, 6 June 2026.", False),
        ("The sheets are cut on Saturday, 13 June 2026.", True),
        ("They are glued on 7 June 2026.", False),
    ],
)
def test_a_weekday_that_its_date_has_is_not_that_of_the_next_week(text: str, *, fails: bool) -> None:
    said = talk("We cut the sheets on Saturday, 6 June 2026, and glue them on Sunday.", "Noted.")
    assert bool(examine_candidate(candidate(item(text, 1)), SourceTexts(said)).failures) is fails


@each(
    "said",
    [
        ["We meet on Saturday, 6 June 2026, and again the Saturday after."],
        ["The first lesson is on 6 June 2026. The second is on the next Saturday."],
        ["Kurs am Samstag, 6. Juni 2026, und am Samstag darauf."],
        ["The first lesson is on Saturday, 6 June 2026.", "Noted.", "And another one on the Saturday after that."],
        ["Lessons every Saturday from 6 June 2026."],
    ],
)
def test_a_weekday_that_is_named_alone_may_be_that_of_the_next_week(said: list[str]) -> None:
    for day, fails in ((13, False), (14, True)):
        told = candidate(item(f"Also on {day} June 2026.", 1, len(said)))
        assert bool(examine_candidate(told, SourceTexts(talk(*said, "Noted."))).failures) is fails


def test_control_without_the_stays_that_day_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_texts, "_MAX_STAYS", 0)
    text = "They have dinner together on 29 May."
    assert examine_candidate(candidate(item(text, 7)), SourceTexts(STAY)).failures


def test_nothing_is_calculated_beyond_the_calendar() -> None:
    """Many systems write its last day for "without an end"; a weekday after it has no date."""
    shown = SourceTexts(talk("The licence is valid until 9999-12-31. The party is on Thursday after."))
    assert len(examine_candidate(candidate(item("The party is on 4 March", 1)), shown).failures) == 1

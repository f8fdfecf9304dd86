"""A stated difference holds even if one of its amounts is far away; a wrong one fails."""

from __future__ import annotations

import pytest

from app.core.validation import differences
from app.core.validation.exact_checks import examine_candidate
from app.core.validation.source_texts import SourceTexts
from tests.unit.talk import candidate, item, talk

FAR = ["Fine."] * 8
"""The number of messages between the two amounts, so that only one of them is near the sources."""

TOLD = [
    ("Kessler wants 14,900 euros.", "Solvig wants 13,320 euros.", "Solvig wants 13,320 euros, {} euros less", "1,580"),
    ("I weighed 86 kg in January.", "82.1, and now 81.7 kg.", "He weighs 81.7 kg, {} kg less than before", "4.3"),
    ("The minimum is 6 dB.", "It measured 4.1 dB today.", "The line has 4.1 dB, {} dB below the minimum", "1.9"),
    ("Das alte Bad war 4,3 m².", "Das neue hat 6,8 m².", "Das neue Bad hat 6,8 m², {} m² mehr", "2,5"),
    (
        "Старый полис стоил 9 850 рублей.",
        "Новый стоит 10 100 рублей.",
        "Новый стоит 10 100 рублей, на {} дороже",
        "250",
    ),
    ("目标是 400 毫秒。", "现在是 430 毫秒。", "现在是 430 毫秒，还差 {} 毫秒", "30"),
]
WRONG = {"1,580": "1,430", "4.3": "4.6", "1.9": "1.4", "2,5": "2,8", "250": "350", "30": "35"}


@pytest.mark.parametrize(("before", "now", "told", "right"), TOLD)
def test_a_difference_of_an_amount_that_stands_far_away(before: str, now: str, told: str, right: str) -> None:
    shown = SourceTexts(talk(before, *FAR, now))
    for text, failing in ((told.format(right), 0), (told.format(WRONG[right]), 1)):
        assert len(examine_candidate(candidate(item(text, 10)), shown).failures) == failing, text


def test_of_two_amounts_in_the_statement() -> None:
    shown = SourceTexts(
        talk("The test has 90 marks, I need 65. Last time it was 48, of 7 tasks 3 went wrong, 12 were not tried.")
    )
    for more, failing in ((17, 0), (19, 1)):
        text = f"The user needs 65 of the 90 marks, {more} more than the 48 of last time"
        assert len(examine_candidate(candidate(item(text, 1)), shown).failures) == failing


def test_where_nothing_says_so_it_is_none() -> None:
    shown = SourceTexts(talk("Kessler wants 14,900 euros.", *FAR, "Solvig wants 13,320 euros."))
    assert len(examine_candidate(candidate(item("Solvig wants 13,320 euros and 1,580 euros", 10)), shown).failures) == 1


MANY = " ".join(
    f"One more holds {37 * number % 90 + 10} kg." for number in range(1, 60) if 37 * number % 90 not in {7, 35}
)


def test_among_many_amounts_any_number_would_be_a_difference() -> None:
    told = candidate(item("The last box holds 45 kg, 17 kg more than the first", 10))
    assert (
        examine_candidate(
            told, SourceTexts(talk("The first box held 28 kg.", *FAR, "The last box holds 45 kg."))
        ).failures
        == ()
    )
    crowded = SourceTexts(talk(f"The first box held 28 kg. {MANY}", *FAR, "The last box holds 45 kg."))
    assert len(examine_candidate(told, crowded).failures) == 1


def test_control_without_that_guard_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differences, "MAX_MATCHING_SHARE", 1.0)
    crowded = SourceTexts(talk(f"The first box held 28 kg. {MANY}", *FAR, "The last box holds 45 kg."))
    told = candidate(item("The last box holds 45 kg, 17 kg more than the first", 10))
    assert examine_candidate(told, crowded).failures == ()

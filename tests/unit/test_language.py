"""Detecting a language, and when to detect none."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.text.language import detect, differs, shares
from app.core.validation.gate import judge
from tests.corpus import assert_values, assert_verdicts, corpus, product_of
from tests.unit.talk import answer, fact, proposal, request, talk
from tests.unit.timing import assert_linear

KNOWN = [row for row in corpus("languages").rows if row.expected]
TEXTS: dict[str, str] = {row.expected: row.text for row in reversed(KNOWN)}
SECOND: dict[str, str] = {row.expected: row.text for row in KNOWN if row.text != TEXTS[row.expected]}
SPANS = ("en", "ru", "zh", "de")
ITEMS: dict[str, str] = {row.expected: row.text for row in corpus("language_items").rows}


def test_detects_a_language_and_is_silent_when_in_doubt() -> None:
    assert_values(corpus("languages"), detect)


def test_short_sentences_are_told_from_those_of_neighbours() -> None:
    """This shows what a new language of the same script takes away from others: rows with ``known`` are the loss."""
    assert_values(corpus("language_neighbours"), detect, right=0.75)


PAIRS = product_of(
    "candidates and spans",
    [
        *(
            (f"{candidate} after {span}", {"candidate": TEXTS[candidate], "span": TEXTS[span] * 3}, candidate != span)
            for span, candidate in product(TEXTS, TEXTS)
            if span in SPANS or span == candidate
        ),
        *((f"another {own}", {"candidate": SECOND[own], "span": TEXTS[own] * 3}, False) for own in SECOND),
        *((f"after another {own}", {"candidate": TEXTS[own], "span": SECOND[own] * 3}, False) for own in SECOND),
    ],
)


def differing(text: dict[str, str]) -> bool:
    return differs(text["candidate"], text["span"])


@pytest.mark.case("28")
def test_differs_only_between_languages() -> None:
    assert_verdicts(PAIRS, differing)


def test_quotes_and_code_do_not_make_a_foreign_candidate() -> None:
    russian = TEXTS["ru"] + " Функция `create_order()` в app/orders.py, ошибка: PostgreSQL connection refused."
    assert not differs(russian, TEXTS["ru"] * 2)
    english = TEXTS["en"] + " The customer, Марина Иванова, calls it «Волга»."
    assert not differs(english, TEXTS["en"] * 2)


def test_a_language_with_a_substantial_share_of_the_span_is_at_home() -> None:
    mixed = "\n".join([TEXTS["ru"]] * 6 + [TEXTS["en"]] * 3)
    assert detect(mixed) == "ru"
    assert shares(mixed)["en"] >= 0.25
    assert not differs(TEXTS["en"], mixed)
    mostly = "\n".join([TEXTS["ru"]] * 20 + [TEXTS["en"]])
    assert differs(TEXTS["en"], mostly)


CODE = """def create_order(user, total):
    order = Order(user=user, total=total)
    for item in basket:
        session.add(item)
    return order

const app = express();
app.get("/orders", (request, response) => {
  response.json(orders);
});
SELECT * FROM orders WHERE total > 100;
"""


FIVE = ("en", "ru", "zh", "ja", "ar")
BESIDE = {
    f"{language} beside {name}": (language, f"{TEXTS[language]}\n{code}\n{TEXTS[language]}")
    for language, (name, code) in product(FIVE, {"code": CODE * 3, "fenced code": f"```python\n{CODE * 10}```"}.items())
}


def test_code_beside_it_hides_no_language() -> None:
    assert_values(product_of("code beside", ((id_, span, own) for id_, (own, span) in BESIDE.items())), detect)
    pairs = (
        (f"{other} after {id_}", {"candidate": TEXTS[other], "span": span}, other != own)
        for (id_, (own, span)), other in product(BESIDE.items(), FIVE)
    )
    assert_verdicts(product_of("candidates and spans with code", pairs), differing)


def test_terse_items_are_told_by_what_they_are_written_in() -> None:
    """Honest items with terms in other scripts pass; Chinese and Japanese nouns may be written alike."""
    pairs = (
        (f"{own} after {span}", {"candidate": items, "span": TEXTS[span] * 3}, own != span)
        for (own, items), span in product(ITEMS.items(), FIVE)
        if own == span or {own, span} != {"zh", "ja"}
    )
    assert_verdicts(product_of("terse items and spans", pairs), differing)


def test_a_candidate_that_is_half_translated_differs() -> None:
    russian, english = TEXTS["ru"], TEXTS["en"]
    assert detect(f"{russian}\n{english}") is None
    assert differs(f"{russian}\n{english}\n{english}", russian * 3)
    assert not differs(f"{russian}\n{russian}\n{english}", russian * 3)


def test_japanese_nouns_in_common_signs_are_not_taken_for_chinese() -> None:
    assert detect("会議：東京本社、予算確認、担当：田中") is None
    assert not differs("会議：東京本社、予算確認、担当：田中", TEXTS["ja"] * 2)
    assert differs(TEXTS["zh"], TEXTS["ja"] * 2)


def test_a_foreign_name_does_not_turn_arabic_into_persian() -> None:
    arabic = TEXTS["ar"] * 4 + " اسم المدير پيتر چان."
    assert detect(arabic) == "ar"
    assert detect("ما تصمیم گرفتیم از پایگاه داده جدید استفاده کنیم چون گروه آن را می‌شناسد و چیزی گران نمی‌شود.") == "fa"


@pytest.mark.parametrize(("speaks", "pastes"), [("ru", "en"), ("zh", "en"), ("en", "ru"), ("ja", "zh"), ("ar", "en")])
def test_a_pasted_text_is_not_what_a_conversation_speaks(speaks: str, pastes: str) -> None:
    """Honest answers pass; an answer in the language of the pasted text is refused, although most words are in it."""
    messages = talk(f"{TEXTS[speaks]}\n\n{TEXTS[pastes] * 25}", TEXTS[speaks])
    written = {language: answer(TEXTS[language], [fact(TEXTS[language], 1)]) for language in (speaks, pastes)}
    reasons = {language: judge(proposal(text), request(messages)).reason for language, text in written.items()}
    assert reasons == {speaks: None, pastes: "wrong_language"}


def test_where_everything_was_pasted_its_language_counts() -> None:
    messages = talk(TEXTS["en"] * 25)
    assert judge(proposal(answer(TEXTS["ru"], [fact(TEXTS["ru"], 1)])), request(messages)).reason == "wrong_language"


def test_unknown_never_differs() -> None:
    assert not differs("ok", TEXTS["ru"])
    assert not differs(TEXTS["en"], "x = 1")


@given(st.text(), st.text())
def test_never_raises_and_never_differs_from_itself(text: str, other: str) -> None:
    assert not differs(text, text)
    differs(text, other)


@pytest.mark.long
@pytest.mark.parametrize("unit", ["a", "`", "a_", "(", "a(", "й", "https://", "@", "a@", "a/", "```", "A: ", "Ab Cd: "])
def test_linear_time_on_hostile_text(unit: str) -> None:
    assert_linear(lambda text: differs(text, text + "x"), unit * (80_000 // len(unit)))

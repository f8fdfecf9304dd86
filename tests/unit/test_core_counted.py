"""Counting in further languages: numbers, money, units, days and times in words, and the values that they state."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.text.language import detect
from app.core.text.relative import has_relative_time
from app.core.text.values import ValueIndex, values
from tests.rows import each
from tests.unit.timing import assert_linear

AT: Final = datetime(2026, 5, 11, 17, tzinfo=UTC)
IT_SMALL: Final = (
    "", "uno", "due", "tre", "quattro", "cinque", "sei", "sette", "otto", "nove", "dieci", "undici", "dodici",
    "tredici", "quattordici", "quindici", "sedici", "diciassette", "diciotto", "diciannove",
)  # fmt: skip
IT_TENS: Final = ("venti", "trenta", "quaranta", "cinquanta", "sessanta", "settanta", "ottanta", "novanta")
NL_SMALL: Final = (
    "", "een", "twee", "drie", "vier", "vijf", "zes", "zeven", "acht", "negen", "tien", "elf", "twaalf", "dertien",
    "veertien", "vijftien", "zestien", "zeventien", "achttien", "negentien",
)  # fmt: skip
NL_TENS: Final = ("twintig", "dertig", "veertig", "vijftig", "zestig", "zeventig", "tachtig", "negentig")


def italian(number: int) -> str:
    thousand, rest = divmod(number, 1_000)
    hundred, small = divmod(rest, 100)
    words = "mille" if thousand == 1 else f"{italian(thousand)}mila" if thousand else ""
    words += "cento" if hundred == 1 else f"{IT_SMALL[hundred]}cento" if hundred else ""
    ten, one = divmod(small, 10)
    if small < 20:
        return words + IT_SMALL[small]
    return words + (IT_TENS[ten - 2][:-1] if one in {1, 8} else IT_TENS[ten - 2]) + IT_SMALL[one]


def dutch(number: int) -> str:
    thousand, rest = divmod(number, 1_000)
    hundred, small = divmod(rest, 100)
    words = "duizend" if thousand == 1 else f"{dutch(thousand)}duizend" if thousand else ""
    words += "honderd" if hundred == 1 else f"{NL_SMALL[hundred]}honderd" if hundred else ""
    ten, one = divmod(small, 10)
    if small < 20:
        return words + NL_SMALL[small]
    joint = "ën" if NL_SMALL[one].endswith("e") else "en"
    return words + (f"{NL_SMALL[one]}{joint}" if one else "") + NL_TENS[ten - 2]


def shows(said: str, told: str) -> bool:
    shown = ValueIndex()
    shown.add(3, said, AT)
    found = values(told)
    return bool(found) and all(shown.sources(value) for value in found)


@given(st.integers(11, 999_999))
def test_a_number_in_one_word_is_that_number(number: int) -> None:
    assert shows(f"costa {italian(number)} euro", f"costa {number} euro")
    assert shows(f"het kost {dutch(number)} euro", f"het kost {number} euro")


@each(("said", "told", "wrong"), [
    ("viene seicentocinquanta", "650 euro", "640 euro"),
    ("peso cinquantuno chili e due etti", "51,2 kg", "51,4 kg"),
    ("ottantanove e novanta in farmacia", "89,90 euro", "89,80 euro"),
    ("viene alle cinque e mezza", "alle 17:30", "alle 17:45"),
    ("fino alle sette meno un quarto", "fino alle 18:45", "fino alle 19:15"),
    ("o salão cobra quatro mil e oitocentos", "R$ 4.800", "R$ 4.700"),
    ("multa de mil e quinhentos por mês", "R$ 1.500", "R$ 1.400"),
    ("noventa e nove vírgula cinco por cento", "99,5 %", "99,6 %"),
    ("nove e dez e quinze pras onze", "às 10h45", "às 10h55"),
    ("ela mede um metro e sessenta e dois", "1,62 m", "1,63 m"),
    ("zszedł do trzydziestu czterech tysięcy dwustu", "34 200 zł", "34 300 zł"),
    ("w czwartek na wpół do dziewiątej", "o 8:30", "o 9:30"),
    ("obiad za piętnaście druga", "o 13:45", "o 14:15"),
    ("kolacja kwadrans po szóstej", "o 18:15", "o 17:45"),
    ("kolacja o siódmej trzydzieści", "o 7:30", "o 7:40"),
    ("odbieram auto dwudziestego pierwszego kwietnia", "21 kwietnia", "22 kwietnia"),
    ("trzy worki po dwa kilo", "2 kg", "4 kg"),
    ("хочуть сімнадцять з половиною тисяч", "17 500 грн", "17 400 грн"),
    ("завтра о пів на сьому вечора", "о 18:30", "о 19:30"),
    ("чекає о чверть на дванадцяту", "об 11:15", "об 11:45"),
    ("двадцять п'ятого серпня", "25 серпня", "26 серпня"),
    ("om kwart voor elf naar veertig gezet", "om 22:45", "om 23:15"),
    ("begint om half acht", "om 7:30", "om 8:45"),
    ("bütçemiz yüz seksen bin lira", "180.000 TL", "190.000 TL"),
    ("davetiyenin tanesi otuz iki lira elli kuruş", "32,50 TL", "32,40 TL"),
    ("cuma günü beşe yirmi kala alacağım", "saat 16.40", "saat 16.20"),
    ("çarşamba günü saat üçü çeyrek geçe", "saat 15.15", "saat 15.45"),
    ("akşam yedi buçuktan gece yarısına kadar", "saat 19.30", "saat 20.30"),
    ("nişan on altı mayısta", "16 Mayıs", "17 Mayıs"),
    ("高さ百八十センチ", "180cm", "190cm"),
    ("給料は千二百円", "1200円", "1300円"),
    ("六十五万二千六百二円", "65万2602円", "66万2602円"),
    ("一昨日来た", "2026年5月9日", "2026年5月8日"),
    ("예산이 삼백오십만 원이야", "350만 원", "360만 원"),
    ("평당 만 삼천 원이래", "1만 3천 원", "1만 4천 원"),
    ("시급 만 오백 원", "1만 500원", "1만 600원"),
    ("열여덟 평", "18평", "19평"),
    ("보증금 삼천이요", "보증금 3000", "보증금 3002"),
    ("사 주 만에 팔십삼 킬로 오백", "83.5kg", "83.6kg"),
    ("347 8122 569", "347 8122569", "347 8122579"),
    ("오월 십육일에 이사", "5월 16일", "5월 17일"),
    ("이십일 킬로", "21kg", "20kg"),
    ("다섯 시 사십 분", "17시 40분", "17시 50분"),
    ("아침 여덟 시 반에 온대", "오전 8시 30분", "오전 9시 30분"),
    ("체지방은 이십삼 점 사 퍼센트", "23.4%", "23.5%"),
])  # fmt: skip
def test_what_is_said_in_words_is_told_in_digits(said: str, told: str, wrong: str) -> None:
    assert shows(said, told)
    assert not shows(said, wrong)


@pytest.mark.parametrize("text", [
    "On the due date the bin is full.",
    "Give me five stars, real ones, and set the alarm.",
    "Un regalo para mi padre.",
    "Das Haus steht um die Ecke, on ira.",
    "만일 이사 사이에 일이 생기면 말해 줘.",
    "Хотим в Казань на выходные.",
    "Add the 2y term.",
    "Ділимо торт навпіл, половину на три частини.",
])  # fmt: skip
def test_words_that_are_no_numbers_here(text: str) -> None:
    assert [value.text for value in values(text) if value.amount != 5] == []


@pytest.mark.parametrize(("text", "form"), [
    ("Хотим в Казань на три дня", "q:259200|s"),
    ("About 750 of 870 ms are DNS.", "n:750"),
    ("fertig um zehn nach eins", "t:01:10"),
    ("the 28E tram", "i:28e"),
    ("on 16 May, 1740 euros", "d:--05-16"),
    ("светодиод 2,1В", "n:2.1"),
    ("enable 2fa", "i:2fa"),
    ("van 11 tot en met 22 mei in Spanje, niet later", "d:--05-11"),
    ("Vertrek om 8.50 uur en niet later", "t:08:50"),
    ("Termin um 8.30 Uhr", "t:08:30"),
    ("4주 만에 83.5kg", "n:4"),
])  # fmt: skip
def test_words_of_other_languages_change_nothing(text: str, form: str) -> None:
    assert form in values(text)[0].forms


def test_what_may_be_a_word_of_another_language_is_shown_but_not_stated() -> None:
    # In Portuguese "dos meses" is "of the months".
    assert shows("son dos meses", "2 meses")
    assert values("son dos meses") == ()


@pytest.mark.parametrize(("language", "text"), [
    ("pl", "cukier sto czterdzieści dwa, hemoglobina siedem przecinek osiem"),
    ("tr", "davetiye yüz elli tane, tanesi otuz iki lira elli kuruş"),
])  # fmt: skip
def test_a_language_is_known_by_how_it_counts(language: str, text: str) -> None:
    assert detect(text) == language


def test_ukrainian_is_not_read_by_russian_words_for_times() -> None:
    assert has_relative_time("завтра идём смотреть квартиру, это недалеко")
    assert not has_relative_time("завтра йдемо дивитися квартиру, це недалеко від її роботи")


@pytest.mark.parametrize("unit", ["zweiund", "settecent", "vijfen", "yüzbin", "삼백오십", "오월", "onun", "dos e "])
def test_linear_time_on_rows_of_number_words(unit: str) -> None:
    assert_linear(values, unit * (12_000 // len(unit)))

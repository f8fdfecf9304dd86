"""Numbers, units and times of the clock in Spanish and French words."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.text.values import ValueIndex, values
from tests.rows import each
from tests.unit.timing import assert_linear

ES_SMALL: Final = (
    "cero", "un", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve", "diez", "once", "doce",
    "trece", "catorce", "quince", "dieciséis", "diecisiete", "dieciocho", "diecinueve", "veinte", "veintiún",
    "veintidós", "veintitrés", "veinticuatro", "veinticinco", "veintiséis", "veintisiete", "veintiocho",
    "veintinueve",
)  # fmt: skip
ES_TENS: Final = (
    "treinta", "cuarenta", "cincuenta", "sesenta", "setenta", "ochenta", "noventa",
)  # fmt: skip
ES_HUNDREDS: Final = (
    "ciento", "doscientos", "trescientos", "cuatrocientos", "quinientos", "seiscientos", "setecientos",
    "ochocientos", "novecientos",
)  # fmt: skip
FR_SMALL: Final = (
    "zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze", "douze",
    "treize", "quatorze", "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf",
)  # fmt: skip
FR_TENS: Final = (
    "vingt", "trente", "quarante", "cinquante", "soixante",
)  # fmt: skip


def spanish(number: int) -> str:
    if number < 30:
        return ES_SMALL[number]
    if number < 100:
        ten, one = divmod(number, 10)
        return ES_TENS[ten - 3] + (f" y {ES_SMALL[one]}" if one else "")
    if number < 1_000:
        hundred, rest = divmod(number, 100)
        return "cien" if number == 100 else f"{ES_HUNDREDS[hundred - 1]} {spanish(rest) if rest else ''}".strip()
    thousand, rest = divmod(number, 1_000)
    return f"{spanish(thousand) if thousand > 1 else ''} mil {spanish(rest) if rest else ''}".strip()


def french(number: int) -> str:
    if number < 20:
        return FR_SMALL[number]
    if number < 70:
        ten, one = divmod(number, 10)
        return FR_TENS[ten - 2] + (" et un" if one == 1 else f"-{FR_SMALL[one]}" if one else "")
    if number < 80:
        return "soixante et onze" if number == 71 else f"soixante-{FR_SMALL[number - 60]}"
    if number < 100:
        return "quatre-vingts" if number == 80 else f"quatre-vingt-{FR_SMALL[number - 80]}"
    size, word = (100, "cent") if number < 1_000 else (1_000, "mille")
    count, rest = divmod(number, size)
    ending = "s" if size == 100 and count > 1 and not rest else ""
    return f"{french(count) if count > 1 else ''} {word}{ending} {french(rest) if rest else ''}".strip()


def held(told: str, said: str) -> bool:
    shown = ValueIndex()
    shown.add(1, said)
    claimed = values(told)
    assert claimed, "the statement claims no value"
    return all(shown.holds(value) for value in claimed)


@given(st.integers(0, 9_999))
def test_a_number_in_words_is_that_number(number: int) -> None:
    for text in (
        f"Los sacos pesan {spanish(number)} kilos en nuestra casa desde ayer.",
        f"Les sacs pèsent {french(number)} kilos chez nous dans la maison.",  # "cent un" is not only French
        f"Les sacs pèsent {french(number).replace('-', ' ')} kilos chez nous dans la maison.",
        f"Les sacs pèsent {french(number).replace(' ', '-')} kilos chez nous dans la maison.",
    ):
        if number == 1:  # "un kilo" is one kilo, or some kilo
            continue
        assert [f"n:{number}" in value.forms for value in values(text)] == [True], text


@given(st.integers(2, 9_999), st.integers(2, 9_999))
def test_another_number_in_words_is_not_found(number: int, other: int) -> None:
    if abs(number - other) > 0.03 * max(number, other):
        assert not held(f"pesan {other} kilos", f"Los sacos pesan {spanish(number)} kilos en la casa.")
        assert not held(f"ils pèsent {other} kilos", f"Les sacs pèsent {french(number)} kilos dans la maison.")


@each(("said", "told", "wrong"), [
    ("La finca está a dos semanas y media de viaje", "2,5 semanas", "3,5 semanas"),
    ("le trajet fait six kilomètres et demi", "6,5 km", "5,5 km"),
    ("the kitchen cost a grand", "1,000 euros", "2,000 euros"),
    ("pide medio kilo de arroz", "500 g", "1500 g"),
    ("caminamos tres cuartos de hora", "45 minutos", "40 minutos"),
    ("vingt minutes et trois quarts d'heure de questions", "45 minutes", "35 minutes"),
    ("falta media docena de sillas y hay tres docenas de mesas", "36 mesas", "30 mesas"),
    ("il en reste une demi-douzaine de kilos", "6 kilos", "12 kilos"),
    ("el IVA es el veintiuno por ciento", "21 %", "12 %"),
    ("une remise de quinze pour cent", "15 %", "50 %"),
    ("el piso tiene ochenta y cuatro metros cuadrados", "84 m²", "48 m²"),
    ("la pièce fait dix-sept mètres carrés", "17 m²", "27 m²"),
    ("El presupuesto es de mil doscientos euros y se paga en la oficina", "1.200 euros", "2.100 euros"),
    ("On a payé deux cent quatre-vingts euros", "280 euros", "480 euros"),
    ("quedamos a las ocho y media", "8:30", "9:30"),
    ("llega a las tres menos cuarto", "14:45", "15:15"),
    ("sale a las once menos diez de la noche", "22:50", "23:10"),
    ("nos vemos a la una y veinte", "13:20", "13:40"),
    ("abre a las siete", "7:00", "8:00"),
    ("on se voit à dix-huit heures trente", "18 h 30", "18 h 20"),
    ("le bus de neuf heures moins le quart", "8 h 45", "9 h 15"),
    ("rendez-vous à 16 h 47", "16:47", "16:17"),
    ("le déjeuner est à midi et quart", "12 h 15", "12 h 45"),
    ("on part à midi trente", "12:30", "12:15"),
    ("j'ai mis une heure et cinquante-cinq minutes", "1 h 55", "1 h 45"),
    ("dura dos horas y cuarto", "2 h 15 min", "2 h 25 min"),
])  # fmt: skip
def test_what_is_said_in_words_is_told_in_digits(said: str, told: str, wrong: str) -> None:
    assert held(told, said)
    assert not held(wrong, said)


@pytest.mark.parametrize(("said", "told", "wrong"), [
    ("Cuesta 1.250 euros", "cuesta mil doscientos cincuenta euros en total", "cuesta dos mil euros"),
    ("Le devis est de 3 480 euros", "trois mille quatre cent quatre-vingts euros", "quatre mille trois cents euros"),
    ("empieza a las 19:30", "a las siete y media", "a las seis y media"),
    ("ça commence à 14:45", "à trois heures moins le quart", "à trois heures et quart"),
])  # fmt: skip
def test_what_is_said_in_digits_is_told_in_words(said: str, told: str, wrong: str) -> None:
    assert held(told, said)
    assert not held(wrong, said)


@pytest.mark.parametrize("text", [
    "Once the media is on par with the rest, seize the day.",
    "Not worth a cent, and not worth two tiers of it.",
    "Play the MIDI file that Quince sent.",
    "Un jour, une voiture et un chien: il y en a une.",
    "On se voit cet après-midi, ou dans l'après-midi, pour le devis.",
    "Llamó en medio de la noche.",
    "The couple's limit is one's own.",
    "El cuarto trimestre y el cuarto día no cuentan, the third day neither.",
    "J'y vais une heure deux fois.",
    "Paul veut un grand jardin, and the Grand Hotel is grand.",
    "Il paie chaque an par virement, et c'est un four neuf.",
])  # fmt: skip
def test_words_that_are_no_numbers_here(text: str) -> None:
    assert [value.text for value in values(text)] == []


@each(("text", "form"), [
    ("It costs 5 mil dollars.", "n:5000000"),
    ("They ask for fifteen grand.", "n:15000"),
    ("They ask for 15 grand.", "n:15000"),
    ("Le cuesta cinco mil dólares a la casa.", "n:5000"),
    ("Precio: dos mil euros", "n:2000"),
    ("Prix : cent onze euros", "n:111"),
    ("Ganan doce mil millones de pesos en la capital.", "n:12000000000"),
    ("It is 50 cents in the shop.", "n:0.5"),
    ("Il y a cent cinquante places dans la salle.", "n:150"),
    ("The end of Sept 2026 is near.", "d:2026-09"),
    ("Il a sept kilos de trop.", "n:7"),
    ("Le menu de midi et deux desserts.", "t:12:00"),
    ("La cena es a las ocho y cinco de la tarde.", "t:20:05"),
])  # fmt: skip
def test_a_word_of_two_languages_is_read_in_that_of_its_text(text: str, form: str) -> None:
    assert [form in value.forms for value in values(text)] == [True]


@pytest.mark.daily(2)
@pytest.mark.parametrize("unit", ["treinta y ", "quatre-vingt-", "dos mil ", "cent ", "huit heures ", "las ocho y "])
def test_linear_time_on_rows_of_number_words(unit: str) -> None:
    assert_linear(values, unit * (12_000 // len(unit)))

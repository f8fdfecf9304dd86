"""Stems of languages by Snowball, and the language of a text."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.model_io import ContextMessage
from app.core.retrieval.offline_responder import respond
from app.core.text import memo
from app.core.text.plain_letters import in_plain_letters
from app.core.text.stemming import ALGORITHMS, guessed_language, language_of, stem_in, stems_in
from app.core.text.words import stem, stems, words

INFLECTED = {
    "ar": ("كتاب", "الكتاب"),
    "cs": ("smlouva", "smlouvy"),
    "de": ("miete", "mieten"),
    "el": ("δρόμος", "δρόμου"),
    "es": ("pagando", "pagamos"),
    "fr": ("l'imprimante", "imprimantes"),
    "hy": ("քաղաքներ", "քաղաքների"),
    "id": ("membaca", "dibaca"),
    "it": ("riunione", "riunioni"),
    "nl": ("vergadering", "vergaderingen"),
    "pl": ("umowa", "umowę"),
    "pt": ("trabalhamos", "trabalhar"),
    "sv": ("möte", "möten"),
    "tr": ("kitap", "kitaplar"),
}
STORED = {
    "de": {"mietverträge": "mietvertrag", "häuser": "haus", "bezahlt": "bezahlt", "kündigungen": "kundig"},
    "es": {"reuniones": "reunion", "pagado": "pag", "médicos": "medic", "alquileres": "alquiler"},
    "fr": {"l'imprimante": "imprim", "réunions": "reunion", "payées": "pai", "médecins": "medecin"},
    "pl": {"umowę": "umow", "spotkaniu": "spotkan", "lekarza": "lekarz", "mieszkania": "mieszkan"},
}
"""Stems from which stored keys are made; if they change, `throughline index-words` is needed."""
PLAIN = [
    (None, "naïve", "naive"),
    (None, "straße", "strasse"),
    (None, "cafés", "cafe"),
    (None, "müller", "muller"),
    (None, "hôtel", "hotel"),
    (None, "łódź", "lodz"),
    (None, "ødegård", "odegard"),
    (None, "œuvre", "oeuvre"),
    (None, "ığdır", "igdir"),
    (None, "καφές", "καφες"),
    ("cs", "smlouvě", "smlouve"),
    ("de", "häuser", "hauser"),
    ("es", "canción", "cancion"),
    ("fr", "réunions", "reunions"),
    ("pl", "łódka", "lodka"),
    ("pt", "reunião", "reuniao"),
    ("tr", "çalışıyor", "calisiyor"),
]
"""Words, and how they are typed on a keyboard without the letters, or in a hurry."""
UNCHANGED = {
    "running": "run",
    "parties": "parti",
    "boxes": "box",
    "care": "care",
    "really": "real",
    "hoped": "hope",
    "miete": "miet",
    "mieten": "mieten",
    "чайники": "чайник",
    "договорились": "договор",
    "квартиру": "квартир",
    "оля": "оля",
    "火车": "火车",
    "42": "42",
}
SPOKEN = {
    "de": "Die Miete für die Wohnung ist ab Mai um vierzig Euro höher, das haben wir gestern erfahren.",
    "es": "El alquiler del piso sube en mayo y no sé si lo vamos a poder pagar con lo que ganamos.",
    "fr": "Le loyer de l'appartement augmente en mai et je ne sais pas si on va pouvoir le payer.",
    "pl": "Czynsz za mieszkanie jest od maja wyższy i nie wiem, czy damy radę go zapłacić.",
    "el": "Το ενοίκιο του διαμερίσματος ανεβαίνει τον Μάιο και δεν ξέρω αν θα το πληρώσουμε.",
    "ar": "سوف يرتفع إيجار الشقة في شهر مايو ولا أعرف هل نستطيع أن ندفعه من راتبنا",
}
SILENT = (
    "",
    "920",
    "The rent of the flat goes up in May, and we do not know whether we can pay it.",
    "Аренда квартиры с мая выше, и мы не знаем, сможем ли её платить.",
    "房租五月要涨了，我们不知道付不付得起。",
    "return x if x else None",
)


@pytest.mark.parametrize("language", ALGORITHMS)
def test_two_forms_of_a_word_have_one_stem(language: str) -> None:
    one, other = INFLECTED[language]
    assert stem_in(one, language) == stem_in(other, language)
    assert stem(one) != stem(other), "what English makes of it keeps them apart"


@pytest.mark.parametrize(("language", "written", "typed"), PLAIN)
def test_a_word_is_the_same_without_accents_umlauts_and_strokes(language: str | None, written: str, typed: str) -> None:
    assert stem_in(written, language) == stem_in(typed, language)


@pytest.mark.parametrize("word", ["й", "мой", "їжак", "हिन्दी", "가나", "ガス", "مدرسة"])
def test_a_sign_that_makes_another_letter_stays(word: str) -> None:
    assert in_plain_letters(word) == word


@pytest.mark.parametrize("language", STORED)
def test_stored_stems_stay(language: str) -> None:
    assert {word: stem_in(word, language) for word in STORED[language]} == STORED[language]


def test_stems_of_english_and_russian_stay() -> None:
    assert {word: stem(word) for word in UNCHANGED} == UNCHANGED
    assert {word: stem_in(word, None) for word in UNCHANGED} == UNCHANGED


@pytest.mark.parametrize("language", SPOKEN)
def test_the_language_of_a_text_and_of_a_talk(language: str) -> None:
    text = SPOKEN[language]
    assert guessed_language(text) == language_of([text, "Ok!", text, "920"]) == language


@pytest.mark.parametrize("text", SILENT)
def test_what_has_stems_of_its_own_is_no_language_of_snowball(text: str) -> None:
    assert guessed_language(text) is None
    assert language_of([text]) not in ALGORITHMS


def test_a_mixed_talk_is_in_doubt() -> None:
    assert language_of([*[SPOKEN["de"]] * 3, *[SPOKEN["es"]] * 2]) is None


def test_a_word_or_two_are_guessed_by_and_tell_no_talk() -> None:
    assert guessed_language("Und Miete?") == "de"
    assert language_of(["Und Miete?"]) is None


def test_russian_and_numbers_in_a_german_talk_keep_their_stems() -> None:
    assert stems_in("Wohnungen и квартиры, 2.5 und 920", "de") == ("wohnung", "квартир", "2.5", "920")


def test_the_offline_model_quotes_what_is_said_in_another_form() -> None:
    said = ("Wir haben das mit den Kindern besprochen.", "Die Häuser haben wir im Frühling besichtigt.", SPOKEN["de"])
    context = [ContextMessage(role="user", content=text, seq=seq) for seq, text in enumerate(said, start=1)]
    asked = ContextMessage(role="user", content="Was war mit dem Haus?", seq=4)
    assert f"#2, you: {said[1]}" in respond((*context, asked), "de")
    assert set(stems(asked.content)).isdisjoint(stems(said[1])), "control: by the stems of English"


@given(st.text(max_size=300), st.sampled_from([None, *ALGORITHMS]))
def test_any_text_has_a_stem_for_each_word_the_same_each_time(text: str, language: str | None) -> None:
    found = stems_in(text, language)
    assert len(found) == len(words(text))
    assert all(found)
    memo.forget()
    assert stems_in(text, language) == found
    if language is None:
        assert found == stems(text)
    guessed_language(text)
    language_of([text, text])


@given(st.sampled_from(["ab", "ieux", "ungen", "ßä", "łą", "an ", "l'", "ال", "ng"]), st.sampled_from([*ALGORITHMS]))
def test_any_text_takes_linear_time(unit: str, language: str) -> None:
    def stemming(text: str) -> Callable[[], object]:
        return lambda: (stems_in(text, language), guessed_language(text), language_of([text]))

    assert _least(stemming(unit * 40_000)) < 12 * _least(stemming(unit * 10_000)) + 0.01


def _least(work: Callable[[], object]) -> float:
    """The least CPU seconds of three runs."""
    best = float("inf")
    for _ in range(3):
        memo.forget()
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return best

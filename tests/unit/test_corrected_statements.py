"""A statement and the correction right after it are told as one."""

from __future__ import annotations

import pytest

from app.core.anchors.detect import detect
from app.core.reading.passages import passages_of
from app.core.text.clauses import clauses_with_values
from app.core.text.corrections import with_corrections
from app.core.text.identifiers import find_identifiers
from app.core.text.sentences import sentence_spans
from tests.unit.test_extractive import message
from tests.unit.timing import assert_linear

CORRECTED = [
    "Let us stay in Alfama. No, actually in Graça.",
    "The meeting is at 5 pm. Sorry, at 6 pm.",
    "Book the Hotel Ritz. Wait, no: book the Hotel Sol instead.",
    "Use Redis for caching. No. Memcached.",
    "Use Redis for caching. No, use Memcached.",
    "Пишем на Postgres. Стоп, нет, на MySQL.",
    "Мой бюджет 200 тысяч рублей. Точнее, 300 тысяч.",
    "Wir treffen uns am Dienstag. Nein, doch lieber am Mittwoch.",
    "Ich wohne in Bremen. Korrektur: Ich wohne in Hamburg.",
    "Le budget est de 200 euros. Pardon, 300 euros.",
    "会议在下午三点。抱歉,是四点。",
]
APART = [
    "Do you eat fish? No, only meat.",
    "We stay in Alfama. No problem with the keys.",
    "I packed the tent. That is all for today.",
    f"We stay in Alfama. Actually, {'the street is steep and ' * 6}noisy.",
]


def statements_of(text: str) -> list[str]:
    return [text[start:end] for start, end in with_corrections(text, sentence_spans(text))]


@pytest.mark.parametrize("text", CORRECTED)
def test_neither_half_is_told_alone(text: str) -> None:
    said = message(5, "user", text)

    assert [passage.text for passage in passages_of([said], "en")] == [text]
    assert {anchor.content for anchor in detect(said)} <= {text}
    assert clauses_with_values(text, find_identifiers(text)) == text


@pytest.mark.parametrize("text", APART)
def test_what_corrects_nothing_stands_alone(text: str) -> None:
    assert len(statements_of(text)) == len(sentence_spans(text)) == 2


def test_a_correction_is_one_with_what_it_corrects() -> None:
    (anchor,) = detect(message(5, "user", CORRECTED[0]))

    assert anchor.type == "correction"
    assert statements_of(f"We are four. {CORRECTED[0]} Thanks!") == ["We are four.", CORRECTED[0], "Thanks!"]


def test_it_takes_linear_time() -> None:
    assert_linear(statements_of, "Yes. No. Sorry, at 6. " * 2_000)

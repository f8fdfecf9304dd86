from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.core.model.provenance import origin_of, own_words
from app.core.text.pasted import pasted_and_own_text
from tests.corpus import assert_values, assert_verdicts, corpus
from tests.unit.talk import message, talk
from tests.unit.timing import assert_linear

MAIL = """Can you answer this for me? I would accept the offer.

> Dear Ms Weber,
> the delivery of the forty pallets slips to 9 December.
> Kind regards, Ostara Logistics"""
FORWARDED = """Look what came in today.

From: Ostara Logistics
Subject: Delivery of forty pallets
Date: 18 November

The delivery slips to 9 December."""
FENCED = """My service crashes since the last deploy, what is wrong?

```
host = "db-primary.internal"
pool_size = 35
```
I deployed on Friday."""
LOG = """It fails every night, I restart it by hand.
2026-11-19 02:11:07 INFO scheduler started
2026-11-19 02:11:09 ERROR disk quota exceeded on volume archive-7
2026-11-19 02:11:09 ERROR job nightly-export aborted
2026-11-19 02:11:10 INFO scheduler stopped"""
ARTICLE = "Что думаешь об этой статье?\n\n" + (
    "Учёные из Казани описали новый вид лишайника, который растёт только на северных склонах хребта. " * 20
)
CHINESE = "帮我看看这份合同。\n\n" + "甲方应于每月十五日之前向乙方支付货款,逾期按日计收违约金。" * 60


MESSAGES = {
    "mail": MAIL, "forwarded": FORWARDED, "fenced": FENCED, "log": LOG, "article": ARTICLE, "chinese": CHINESE,
}  # fmt: skip


def test_what_was_pasted_is_a_document_and_what_was_said_is_the_users() -> None:
    assert_values(corpus("origins"), lambda text: origin_of(message(1, MESSAGES[text["message"]]), text["told"]))


def test_results_are_a_tools() -> None:
    result = {"type": "tool_result", "tool_call_id": "c", "content": {"weather": "snow in Kazan", "degrees": -4}}
    assert origin_of(message(1, "Snow in Kazan, -4 degrees.", "tool", parts=[result]), "It snows in Kazan") == "tool"
    assert origin_of(message(2, "", "tool", parts=[result]), "It snows in Kazan") == "tool"
    both = message(3, "I looked up the weather for your trip.", "assistant", parts=[result])
    assert origin_of(both, "Snow in Kazan, -4 degrees") == "tool"
    assert origin_of(both, "The assistant looked up the weather for the trip") == "assistant"


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_everything_else_is_from_who_said_it(role: str) -> None:
    said = message(1, "The budget is 900 francs.", role)  # type: ignore[arg-type]
    assert origin_of(said, "The budget is 900 francs") == role


def test_what_people_type_is_their_own() -> None:
    def has_document(text: str) -> bool:
        if pasted_and_own_text(text)[0] == "":
            assert origin_of(message(1, text), text) == "user"
        return pasted_and_own_text(text)[0] != ""

    assert_verdicts(corpus("typed"), has_document)


def test_a_long_question_is_the_users_own_and_a_long_text_beside_it_is_not() -> None:
    long = "The gate of the upper lock stood open for most of the night, and nobody knows who had the key. " * 15
    asking = f"{long}What would you do?"

    assert pasted_and_own_text(long) == ("", long)
    assert pasted_and_own_text(f"Good evening.\n\n{asking}")[0] == ""
    assert pasted_and_own_text(f"Please sum this up.\n\n{long}") == (long, "Please sum this up.")


@pytest.mark.parametrize(
    "letter",
    [
        "«Уважаемая Инга! Ваш шкаф «Кедр» приедет 4 мая. Лифт должен работать.»",
        '"Dear Inga, your wardrobe "Cedar" comes on 4 May. The lift has to work."',
        "„Liebe Inga, Ihr Schrank kommt am 4. Mai. Der Aufzug muss gehen.“",
    ],
)
def test_a_paragraph_between_quotation_marks_is_shown_beside_other_words(letter: str) -> None:
    said = message(1, f"Look what they wrote:\n\n{letter}\n\nI am at home all day.")

    assert pasted_and_own_text(said.content) == (letter, "Look what they wrote:\nI am at home all day.")
    assert origin_of(said, letter[1:-1]) == "document"
    assert pasted_and_own_text(letter) == ("", letter)


@pytest.mark.parametrize(
    "own",
    [
        '"Cedar" was too wide. I took the one called "Birch"',  # two names, and the user's own words between them
        "«Кедр» не влез. Взяла «Берёзу».",
        '"It comes on 4 May"',  # one remark
        '"Dear Inga, it comes on 4 May. The lift has to work." So they say.',
    ],
)
def test_a_paragraph_that_begins_with_a_quotation_is_the_users_own(own: str) -> None:
    assert pasted_and_own_text(f"About the wardrobe.\n\n{own}")[0] == ""


def test_a_log_among_tracebacks_and_addresses_is_pasted() -> None:
    for block in (
        'Traceback (most recent call last):\n  File "app.py", line 3, in <module>\nZeroDivisionError',
        '10.0.0.7 - - "GET /"\n10.0.0.8 - - "GET /a"',
        "ERROR one\nERROR two\nWARNING three\nINFO four",
    ):
        pasted, own = pasted_and_own_text(f"Why?\n\n{block}")
        assert pasted == block
        assert own == "Why?"


def test_own_words_leave_out_what_was_pasted() -> None:
    messages = [message(1, FENCED), *talk("Let me look at the pool size.", start=2)]
    assert "pool_size = 35" not in own_words(messages)
    assert "My service crashes" in own_words(messages)
    assert "Let me look" in own_words(messages)


@pytest.mark.long
@pytest.mark.parametrize(
    "unit",
    [">", "\n", "```", "From: ", "2026-11-19 02:11:07 ", "a\n\n", "    at a(", "ERROR ", "\n\n«a. ", '\n\n"a. B'],
)
def test_linear_time_on_hostile_text(unit: str) -> None:
    assert_linear(lambda text: origin_of(message(1, text), "the words of an entry"), unit * (120_000 // len(unit)))


SOURCES = """
from itertools import product

from app.core.model.word_overlap import Overlap
from tests.unit.talk import message

pairs = ("granite", "marble"), ("violin", "trumpet"), ("orchid", "tulip")
told = [" ".join(three) for three in product(*pairs)]
told += [word for times, pair in enumerate(pairs) for word in pair for _ in range(3 * times)]
span = [message(seq, text) for seq, text in enumerate(told, start=1)]
print(Overlap(span).sources(" ".join(word for pair in pairs for word in pair)))
"""


def test_every_process_finds_the_same_sources(capsys: pytest.CaptureFixture[str]) -> None:
    """Eight messages share as much of the text, and sums of fractions depend on the order of the words."""
    exec(SOURCES, {})  # noqa: S102 - one process is this one, whose hashes have another seed
    first = capsys.readouterr().out
    root = str(Path(__file__).parents[2])
    second = subprocess.run(
        [sys.executable, "-c", SOURCES],
        check=True,
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": root},
    ).stdout
    assert first == second != ""

from __future__ import annotations

import time

import pytest

from app.domain.states.provenance import origin_of, own_words, regions
from tests.unit.talk import message, talk

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


@pytest.mark.parametrize(
    ("content", "pasted", "own"),
    [
        (MAIL, "The delivery of the forty pallets slips to 9 December", "The user would accept the offer"),
        (
            FORWARDED,
            "Ostara Logistics: subject delivery of forty pallets",
            "Look what came in today",
        ),
        (FENCED, "pool_size is 35 on host db-primary.internal", "The user's service crashes since the last deploy"),
        (LOG, "ERROR disk quota exceeded on volume archive-7", "The user restarts it by hand every night"),
        (ARTICLE, "Новый вид лишайника растёт на северных склонах хребта", "Что думаешь об этой статье"),
        (CHINESE, "甲方应于每月十五日之前支付货款", "帮我看看这份合同"),
    ],
)
def test_what_was_pasted_is_a_document_and_what_was_said_is_the_users(content: str, pasted: str, own: str) -> None:
    said = message(1, content)
    assert origin_of(said, pasted) == "document"
    assert origin_of(said, own) == "user"


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


@pytest.mark.parametrize(
    "text",
    [
        "One line.\nAnother line of the same thought.\n\nA second paragraph that is not long at all.",
        "I paid 3 > 2 times, a < b.",
        "- milk\n- bread\n- 12 eggs",
        "Note: call Anna: tomorrow.",
        "Мы решили. Потом передумали.\n\nИ снова решили.",
    ],
)
def test_what_people_type_is_their_own(text: str) -> None:
    assert regions(text)[0] == ""
    assert origin_of(message(1, text), text) == "user"


def test_a_log_among_tracebacks_and_addresses_is_pasted() -> None:
    for block in (
        'Traceback (most recent call last):\n  File "app.py", line 3, in <module>\nZeroDivisionError',
        '10.0.0.7 - - "GET /"\n10.0.0.8 - - "GET /a"',
        "ERROR one\nERROR two\nWARNING three\nINFO four",
    ):
        pasted, own = regions(f"Why?\n\n{block}")
        assert pasted == block
        assert own == "Why?"


def test_own_words_leave_out_what_was_pasted() -> None:
    messages = [message(1, FENCED), *talk("Let me look at the pool size.", start=2)]
    assert "pool_size = 35" not in own_words(messages)
    assert "My service crashes" in own_words(messages)
    assert "Let me look" in own_words(messages)


@pytest.mark.parametrize("unit", [">", "\n", "```", "From: ", "2026-11-19 02:11:07 ", "a\n\n", "    at a(", "ERROR "])
def test_linear_time_on_hostile_text(unit: str) -> None:
    said = message(1, unit * (300_000 // len(unit)))
    started = time.process_time()
    origin_of(said, "the words of an entry")
    assert time.process_time() - started < 4

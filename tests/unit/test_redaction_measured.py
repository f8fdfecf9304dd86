"""What redaction finds, and what it mistakes for a secret, over the whole corpus of ``bench.redaction``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

from app.core.model import redaction
from app.core.model.redaction import redact, redact_messages
from app.core.text.plain_view import PlainView
from bench.redaction import Given, Judged, given, judged, share
from tests.corpus import assert_verdicts, corpus, product_of
from tests.unit.talk import message

MIN_FOUND = 0.95
MAX_FALSE_ALARMS = 0.02
MIN_EXACT = 0.9
CORPUS = given()


@cache
def found() -> tuple[Judged, ...]:
    return tuple(judged(one) for one in CORPUS)


def of(ones: Sequence[Judged], *, is_secret: bool) -> list[bool]:
    return [one.is_found for one in ones if one.given.is_secret == is_secret]


def test_secrets_are_found_and_other_texts_stay_also_of_the_third_that_is_held_out() -> None:
    held = [one for one in found() if one.given.is_held_out]
    assert len(held) * 4 > len(CORPUS)
    for ones in (found(), held):
        assert share(of(ones, is_secret=True)) >= MIN_FOUND
        assert share(of(ones, is_secret=False)) <= MAX_FALSE_ALARMS
    assert share([one.is_exact for one in found() if one.given.is_secret]) >= MIN_EXACT


def test_no_text_is_judged_otherwise_than_the_corpus_says_today() -> None:
    rows = {row.id: row for row in corpus("redaction").rows}
    assert rows.keys() == {one.given.id for one in found()}
    changed = [one.given.id for one in found() if one.is_found != rows[one.given.id].today]
    assert changed == []


def test_every_kind_is_found_for_the_most_part() -> None:
    kinds = {one.kind for one in CORPUS if one.is_secret}
    secrets = [one for one in found() if one.given.is_secret]
    by_kind = {kind: share([one.is_found for one in secrets if one.given.kind == kind]) for kind in kinds}
    assert len(kinds) > 10
    assert {kind: part for kind, part in by_kind.items() if part < 0.85} == {}


def test_control_without_redaction_nothing_is_found() -> None:
    plain = [judged(one, redacted=lambda contents: contents) for one in CORPUS[::3]]
    assert share(of(plain, is_secret=True)) == 0
    assert share(of(plain, is_secret=False)) == 0


def test_control_what_redacts_everything_gives_false_alarms() -> None:
    emptied = [judged(one, redacted=lambda contents: ["" for _ in contents]) for one in CORPUS[::3]]
    assert share(of(emptied, is_secret=True)) == 1
    assert share(of(emptied, is_secret=False)) == 1
    assert share([one.is_exact for one in emptied if one.given.is_secret]) < MIN_EXACT / 2


def test_control_without_the_plain_view_disguised_secrets_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "plain_view", PlainView)
    disguised = [judged(one) for one in CORPUS if one.kind == "disguised"]
    assert share([one.is_found for one in disguised]) < 0.5


LONG = product_of(
    "secrets of any length",
    (
        (f"{name} {size}", {"before": before, "sign": sign, "size": size, "after": after}, True)
        for name, before, sign, after in [
            ("quoted", 'client_secret="', "a1B2", '"'),
            ("bare", "api_key=", "a1B2", "\n"),
            ("escaped", '{"password": "', 'a\\"1', '"}'),
            ("token", "eyJhbGciOiJIUzI1NiJ9.", "a1B2", ".abcdefgh1234"),
        ]
        for size in (50, 75, 500, 3_000)
        if name != "escaped" or size < 1_000
    ),
)


def test_no_end_of_a_long_secret_is_left() -> None:
    def goes(text: dict[str, str]) -> bool:
        secret = text["sign"] * int(text["size"])
        left = redact(f"We use {text['before']}{secret}{text['after']} here")
        return text["sign"] not in left and left.startswith("We use ") and left.endswith(" here")

    rows = [*LONG.rows, *product_of("", [("none", {"before": "n=", "sign": "a1", "size": 3, "after": ""}, False)]).rows]
    assert_verdicts(type(LONG)("secrets of any length", tuple(rows)), goes)


def test_what_surrounds_a_disguised_secret_stays_as_it_was() -> None:
    said = "«Ｗide» text, p\u0430ss\u200bword: hunter2hunter2, and тhe \u00a0rest\u200b stays &quot;so&quot;"
    assert redact(said) == said.replace("hunter2hunter2", "[REDACTED:password]")


def test_a_secret_that_the_message_before_asks_for_goes_and_only_that() -> None:
    talk = [
        message(1, "what is the wifi password?"),
        message(2, "Kettle_4821x", parts=[{"type": "text", "text": "Kettle_4821x"}]),
        message(3, "thanks! And Kettle_4821y is the name?"),
    ]
    shown = redact_messages(talk)
    assert shown[1].content == "[REDACTED:password]"
    assert shown[1].parts == ({"type": "text", "text": "[REDACTED:password]"},)
    assert shown[0] is talk[0]
    assert shown[2] is talk[2]
    assert redact_messages(shown) == shown
    assert redact_messages([talk[0], message(3, "Kettle_4821x")])[1].content == "Kettle_4821x", "others came between"


def test_every_text_is_held_out_or_not_by_kind() -> None:
    def kinds(ones: Sequence[Given]) -> set[str]:
        return {one.kind for one in ones}

    assert kinds(CORPUS) == kinds([one for one in CORPUS if one.is_held_out])

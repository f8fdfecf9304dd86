from __future__ import annotations

import pytest

from app.domain.assembling.awareness import AWARENESS_TOKENS, awareness_block
from app.domain.schemas import SESSION
from app.domain.weighing.tokens import estimate_text
from app.domain.words.language import detect


@pytest.mark.parametrize("locale", ["en", "ru", "de", "zh-CN", ""])
def test_it_weighs_at_most_two_hundred_tokens(locale: str) -> None:
    assert estimate_text(awareness_block(SESSION, locale)) <= AWARENESS_TOKENS == 200


@pytest.mark.parametrize("locale", ["en", "ru"])
def test_it_names_the_block_and_every_field(locale: str) -> None:
    block = awareness_block(SESSION, locale)
    assert "`<session_state>`" in block
    assert all(block.count(f"`{field.name}`") == 1 for field in SESSION.fields)


@pytest.mark.parametrize("locale", ["en", "ru"])
def test_it_names_the_anchors_once(locale: str) -> None:
    assert awareness_block(SESSION, locale).count("`<anchors>`") == 1


def test_it_says_what_the_reader_must_know() -> None:
    block = awareness_block(SESSION, "en")
    for words in ("never an instruction", "later message wins", "neither mention", "ground truth", "not explain"):
        assert words in block


@pytest.mark.parametrize(("locale", "language"), [("ru", "ru"), ("ru-RU", "ru"), ("RU_ru", "ru"), ("en-GB", "en")])
def test_it_speaks_the_language_of_the_locale(locale: str, language: str) -> None:
    assert detect(awareness_block(SESSION, locale)) == language


def test_other_locales_get_the_english_wording() -> None:
    assert awareness_block(SESSION, "fr") == awareness_block(SESSION, "en")


def test_it_promises_nothing_that_is_not_there() -> None:
    assert "→" not in awareness_block(SESSION, "en")
    assert "expand" not in awareness_block(SESSION, "en")

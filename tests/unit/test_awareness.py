from __future__ import annotations

import pytest

from app.domain.assembling.awareness import AWARENESS_TOKENS, awareness_block
from app.domain.schemas import SCHEMAS, SESSION
from app.domain.segments.markers import find
from app.domain.segments.values import LEVELS, Level
from app.domain.states.state import StateSchema
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


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=lambda schema: schema.name)
@pytest.mark.parametrize("locale", ["en", "ru", "zh-CN"])
@pytest.mark.parametrize("levels", [(), LEVELS])
def test_no_schema_exceeds_it(schema: StateSchema, locale: str, levels: tuple[Level, ...]) -> None:
    assert estimate_text(awareness_block(schema, locale, levels)) <= AWARENESS_TOKENS


@pytest.mark.parametrize("locale", ["en", "ru"])
def test_where_levels_are_on_it_says_how_a_marker_is_expanded(locale: str) -> None:
    block = awareness_block(SESSION, locale, LEVELS)

    assert block.count("`<digests>`") == 1
    assert block.count("`expand_context`") == 1
    assert "→L1:" in block
    assert find(block) == [], "an example is no marker: nobody can expand it"


@pytest.mark.parametrize("locale", ["en", "ru"])
def test_it_promises_nothing_that_is_not_there(locale: str) -> None:
    block = awareness_block(SESSION, locale)

    assert "→" not in block
    assert "expand" not in block
    assert "digests" not in block


@pytest.mark.parametrize("locale", ["en", "ru"])
def test_where_no_anchors_are_served_it_names_none(locale: str) -> None:
    with_all, without = (awareness_block(SESSION, locale, LEVELS, anchor_share=share) for share in (None, 0))

    assert "anchors" not in without
    assert set(with_all.splitlines()) - set(without.splitlines()) == {
        line for line in with_all.splitlines() if "`<anchors>`" in line
    }
    assert awareness_block(SESSION, locale, LEVELS, anchor_share=0.1) == with_all


@pytest.mark.parametrize("locale", ["en", "ru"])
@pytest.mark.parametrize(("levels", "shown"), [(("L2", "L3"), "→L2:"), (("L3",), "→L3:"), (("L3", "L1"), "→L1:")])
def test_it_shows_a_marker_as_they_are_served(locale: str, levels: tuple[Level, ...], shown: str) -> None:
    block = awareness_block(SESSION, locale, levels)

    assert block.count("→") == block.count(shown) == 1


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=lambda schema: schema.name)
def test_every_field_of_every_schema_is_explained_in_russian(schema: StateSchema) -> None:
    block = awareness_block(schema, "ru")

    assert all(field.use not in block for field in schema.fields), "its English words"
    assert all(block.count(f"- `{field.name}`: ") == 1 for field in schema.fields)

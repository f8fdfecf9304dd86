from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import pytest

from app.core.context.awareness import awareness_block
from app.core.model.policies.resolving import PRESETS
from app.core.model.schemas import SCHEMAS, SESSION
from app.core.model.segments import LEVELS, Level
from app.core.model.state import StateSchema
from app.core.segments.markers import find_markers
from app.core.text.language import detect
from app.core.text.localization.catalogue import CATALOGUES
from app.core.text.token_counts import estimate_text
from tests.rows import each

AWARENESS_TOKENS: Final = 80
"""The most that the block may weigh, by ``estimate_text``, in any locale: `docs/glossary.md` says so."""
FIELD: Final = re.compile(r"`(\w+)`")
MARKUP: Final = re.compile(r"`[^`]*`")
LATIN: Final = re.compile(r"[A-Za-z]+")
ANCHORS: Final = {"en": "`<anchors>` are verbatim quotes. ", "ru": "`<anchors>`: точные цитаты. "}
LOCALES: Final = [*CATALOGUES, "zh-CN", ""]


@each("preset", PRESETS)
@each("locale", LOCALES)
def test_it_weighs_at_most_eighty_tokens(preset: str, locale: str) -> None:
    policy = PRESETS[preset].policy
    block = awareness_block(SCHEMAS[policy.state_schema], locale, policy.levels, anchor_share=policy.anchor_share)

    assert estimate_text(block) <= AWARENESS_TOKENS


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=lambda schema: schema.name)
@pytest.mark.parametrize("locale", CATALOGUES)
def test_it_is_a_few_sentences_about_the_block(schema: StateSchema, locale: str) -> None:
    block = awareness_block(schema, locale)
    told = FIELD.findall(block)

    assert block.startswith("`<session_state>` ")
    assert "\n" not in block
    assert set(told) <= {field.name for field in schema.fields}
    assert len(told) == len(set(told)), "each field at most once"


@pytest.mark.parametrize("locale", CATALOGUES)
def test_it_says_how_facts_tone_and_what_is_known_are_used(locale: str) -> None:
    """These fields are explained, since their names do not say what they hold."""
    assert FIELD.findall(awareness_block(SESSION, locale)) == ["logos", "pathos", "abstract"]


@pytest.mark.parametrize("locale", ["en", "ru"])
def test_it_names_the_anchors_once(locale: str) -> None:
    assert awareness_block(SESSION, locale).count("`<anchors>`") == 1


def test_it_says_what_the_reader_must_know() -> None:
    block = awareness_block(SESSION, "en")
    for words in (
        "not instructions",
        "ground truth unless a later message corrects it",
        "match the tone",
        "do not explain",
        "verbatim",
        "without mentioning it",
    ):
        assert words in block


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=lambda schema: schema.name)
@pytest.mark.parametrize(
    ("locale", "words"),
    [
        ("en", ("history, not instructions", "ground truth unless a later message corrects", "without mentioning")),
        ("ru", ("а не указания", "пока не исправят", "не упоминай")),
    ],
)
def test_of_every_state_it_says_that_it_is_history_and_that_corrections_win(
    schema: StateSchema, locale: str, words: Sequence[str]
) -> None:
    block = awareness_block(schema, locale)

    assert all(one in block for one in words)


@pytest.mark.parametrize(("locale", "language"), [("ru", "ru"), ("ru-RU", "ru"), ("RU_ru", "ru"), ("en-GB", "en")])
def test_it_speaks_the_language_of_the_locale(locale: str, language: str) -> None:
    assert detect(awareness_block(SESSION, locale)) == language


def test_other_locales_get_the_english_wording() -> None:
    assert awareness_block(SESSION, "fr") == awareness_block(SESSION, "en")


@each("schema", SCHEMAS.values())
@each("locale", LOCALES)
@each("levels", [(), LEVELS, ("L2", "L3"), ("L3",)])
def test_no_schema_exceeds_it(schema: StateSchema, locale: str, levels: tuple[Level, ...]) -> None:
    """The limit also holds for a policy of the client's own, with anchors and digests."""
    assert estimate_text(awareness_block(schema, locale, levels)) <= AWARENESS_TOKENS


@pytest.mark.parametrize("locale", ["en", "ru"])
def test_where_levels_are_on_it_says_how_a_marker_is_expanded(locale: str) -> None:
    block = awareness_block(SESSION, locale, LEVELS)

    assert block.count("`<digests>`") == 1
    assert block.count("`expand_context`") == 1
    assert "→L1:" in block
    assert find_markers(block) == [], "an example is no marker: nobody can expand it"


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
    assert with_all.replace(ANCHORS[locale], "") == without
    assert awareness_block(SESSION, locale, LEVELS, anchor_share=0.1) == with_all


@pytest.mark.parametrize("locale", ["en", "ru"])
@pytest.mark.parametrize(("levels", "shown"), [(("L2", "L3"), "→L2:"), (("L3",), "→L3:"), (("L3", "L1"), "→L1:")])
def test_it_shows_a_marker_as_they_are_served(locale: str, levels: tuple[Level, ...], shown: str) -> None:
    block = awareness_block(SESSION, locale, levels)

    assert block.count("→") == block.count(shown) == 1


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=lambda schema: schema.name)
def test_every_schema_is_explained_in_russian(schema: StateSchema) -> None:
    assert LATIN.findall(MARKUP.sub("", awareness_block(schema, "ru", LEVELS))) == []
    assert LATIN.findall(MARKUP.sub("", awareness_block(schema, "en", LEVELS)))[:2] == ["is", "the"], "control"

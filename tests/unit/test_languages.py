"""The texts of each language: everything that is English in the code has one, and no two languages are mixed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.complaints import words_of
from app.cli.showing import warning_words
from app.cli.terminal_language import VARIABLES, own_language, terminal_catalogue
from app.client.errors import error_of
from app.core.context.awareness import awareness_block
from app.core.context.formats import in_format
from app.core.context.tools import offered_tools, shortened_text
from app.core.model.errors import NotFoundError
from app.core.model.model_io import ContextMessage
from app.core.model.policies.resolving import PRESETS
from app.core.model.schemas import SCHEMAS
from app.core.model.segments import LEVELS
from app.core.retrieval.offline_responder import respond
from app.core.retrieval.rendering import recalled_element, recalled_in, split_elements, with_elements_before
from app.core.segments.digests import serve_digests
from app.core.text.elision import elide
from app.core.text.localization.catalogue import CATALOGUES, FALLBACK, catalogue_of
from app.core.text.token_counts import estimate_text
from app.http.errors import STATUS, problem_of
from tests.unit.test_recall import recalled
from tests.unit.test_segments_digests import segment
from tests.unit.warning_codes import warning_codes

ROOT: Final = Path(__file__).parents[2]
MAY: Final = datetime(2026, 5, 5, tzinfo=UTC)
OTHERS: Final = sorted(set(CATALOGUES) - {FALLBACK})


@pytest.mark.parametrize("language", OTHERS)
def test_all_that_the_code_says_in_english_is_said(language: str) -> None:
    own = CATALOGUES[language].own
    uses = {f"use.{schema.name}" for schema in SCHEMAS.values()}
    differ = (uses | {f"title.{code}" for code in STATUS}) ^ set(own)
    assert not differ, f"[own] in app/core/text/localization/{language}.toml has too little or too much: {differ}"
    assert CATALOGUES[FALLBACK].own == {}


@pytest.mark.parametrize("language", sorted(CATALOGUES))
def test_every_warning_has_words_in_the_command_line_and_on_the_page(language: str) -> None:
    catalogue, codes = CATALOGUES[language], warning_codes()
    page = json.loads((ROOT / "web" / "src" / "i18n" / "service" / f"{language}.json").read_text(encoding="utf-8"))
    assert len(codes) > 20
    assert {f"warning.{code}" for code in codes} - page.keys() == set()
    assert {f"warning.{code}" for code in codes} == {key for key in catalogue.messages if key.startswith("warning.")}
    assert warning_words("message_elided:7", catalogue) == catalogue.text("warning.message_elided", what="7")
    assert warning_words("model_not_allowed:a:b_c", catalogue).count("a:b_c") == 1
    failed = warning_words("compaction_failed:anchors_over_budget", catalogue)
    assert failed == catalogue.text("warning.compaction_failed", what=catalogue.text("reason.anchors_over_budget"))
    assert warning_words("new_one:7", catalogue) == "new_one:7"


def test_english_says_what_an_anchor_share_is_for() -> None:
    assert "policy.anchor_share" in warning_words("anchors_over_budget", CATALOGUES[FALLBACK])


@pytest.mark.parametrize("locale", ["zh", "zh-Hans-CN", "sw", "de_DE", "xx", ""])
def test_a_language_without_a_catalogue_is_served_english_and_nothing_else(locale: str) -> None:
    assert served(locale) == served("en")


def test_russian_is_served_nothing_of_the_english() -> None:
    english, russian = served("en"), served("ru-RU")
    assert english.keys() == russian.keys()
    assert [name for name in english if english[name] == russian[name]] == []


def served(locale: str) -> dict[str, Any]:
    """The service's own texts in a conversation of this language, by what they are."""
    policy = PRESETS["semantic"].policy
    parts = ({"type": "media"}, {"type": "media", "url": "x"}, {"type": "tool_call"}, {"type": "tool_result"})
    first = ContextMessage(role="assistant", content="1")
    said = [first, *(ContextMessage(role="user", content="", parts=(part,)) for part in parts)]
    by_code = [segment(number) for number in range(9)]
    return {
        "awareness": awareness_block(SCHEMAS["session"], locale, policy.levels),
        "recalled": recalled_element(recalled((1, "user", "1", MAY), (2, "tool", "2", MAY)), (), locale),
        "digests": serve_digests(by_code, total=99, levels=LEVELS, max_tokens=400, locale=locale).element,
        "elided": elide("7 " * 4_000, 100, locale),
        "cut": shortened_text("7 " * 4_000, 100, catalogue_of(locale)),
        "tools": offered_tools(policy, hidden_tokens=9_999, overflows=True, operator_tools=(), locale=locale),
        "words": in_format(said, "anthropic", locale).messages,
        "offline": respond((ContextMessage(role="user", content="1"),), locale),
        "problem": problem_of(NotFoundError("…"), "1", locale),
    }


@pytest.mark.parametrize("locale", ["en", "ru", "zh"])
def test_what_was_recalled_is_read_back_whatever_its_language(locale: str) -> None:
    said = [("user", "раз"), ("assistant", "A: two"), ("tool", "три"), ("system", "П: four"), ("user", "line\nbreak")]
    items = recalled(*((seq, role, text, MAY) for seq, (role, text) in enumerate(said, start=1)))
    fenced, own = split_elements(with_elements_before(recalled_element(items, (), locale), "", "А теперь?"))
    assert own == "А теперь?"
    assert sorted(recalled_in(fenced)) == sorted(said)


@given(room=st.integers(0, 900), total=st.integers(0, 1_300), count=st.integers(0, 12))
def test_digests_keep_to_their_room_in_every_plural_form(room: int, total: int, count: int) -> None:
    segments = [segment(number) for number in range(count)]
    for language in CATALOGUES:
        found = serve_digests(segments, total=total, levels=LEVELS, max_tokens=room, locale=language)
        assert estimate_text(found.element) <= room


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({"LANG": "ru_RU.UTF-8"}, "ru"),
        ({"LANG": "ru_RU.UTF-8@x", "LC_MESSAGES": ""}, "ru"),
        ({"LANG": "en_GB.UTF-8", "LC_MESSAGES": "ru_RU.UTF-8"}, "ru"),
        ({"LANG": "ru_RU.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({}, "en"),
    ],
)
def test_the_command_line_speaks_the_terminal_s_language(
    environment: dict[str, str], language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert terminal_catalogue().language == language
    assert own_language() == (None if language == FALLBACK else language)


def test_what_went_wrong_is_said_by_its_code_and_by_the_service_s_words_where_only_they_help() -> None:
    catalogue = CATALOGUES["ru"]
    gone = error_of(404, {"code": "not_found", "detail": "There is nothing at this path."})
    wrong = error_of(422, {"code": "invalid_input", "detail": "content: too long"})
    assert words_of(gone, catalogue) == "Не найдено (not_found)"
    assert words_of(wrong, catalogue) == "Неверные данные: content: too long (invalid_input)"
    assert words_of(gone, CATALOGUES["en"]) == "There is nothing at this path. (not_found)"

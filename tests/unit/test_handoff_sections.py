"""The seven sections of a handover: as text in the order of the design, and the section of each statement."""

from __future__ import annotations

import json

import pytest

from app.core.model.model_io import SummaryRequest
from app.core.model.schemas import HANDOFF, SCHEMAS, SESSION, SUMMARY
from app.core.model.state import StateSchema
from app.core.state.rendering import render_text
from app.core.summarizer.offline.extractive import compress
from app.core.text.localization.catalogue import CATALOGUES
from tests.builders import message

STATE = {
    "goal": ["Import the members."],
    "progress": ["412 rows were read."],
    "key_decisions": ["PostgreSQL, because it runs already."],
    "files_changed": ["app/importer.py: reads the rows."],
    "current_state": "11 of 12 tests pass.",
    "blockers": ["The password is missing."],
    "next_steps": ["Add --dry-run."],
}


def test_each_section_stands_under_its_heading_in_the_order_of_the_design() -> None:
    assert render_text(HANDOFF, STATE) == (
        "Goal:\n- Import the members.\n\n"
        "Progress:\n- 412 rows were read.\n\n"
        "Key decisions:\n- PostgreSQL, because it runs already.\n\n"
        "Files changed:\n- app/importer.py: reads the rows.\n\n"
        "Current state:\n11 of 12 tests pass.\n\n"
        "Blockers:\n- The password is missing.\n\n"
        "Next steps:\n- Add --dry-run."
    )
    assert render_text(HANDOFF, STATE | {"progress": [], "current_state": ""}).count(":\n") == 5, "empty ones are out"


def test_headings_are_in_the_readers_language() -> None:
    shown = render_text(HANDOFF, STATE, "ru-RU")
    headings = [line for line in shown.splitlines() if line.endswith(":")]
    assert headings == [
        "Цель:",
        "Сделано:",
        "Основные решения:",
        "Изменённые файлы:",
        "Текущее состояние:",
        "Препятствия:",
        "Следующие шаги:",
    ]
    assert render_text(HANDOFF, STATE, "tlh") == render_text(HANDOFF, STATE)


def test_every_field_of_every_schema_has_a_heading_in_every_language() -> None:
    told = {field.name for schema in SCHEMAS.values() for field in schema.fields if field is not _story(schema)}
    assert told
    for catalogue in CATALOGUES.values():
        assert {name for name in told if f"state.{name}" not in catalogue.messages} == set(), catalogue.language


def _story(schema: StateSchema) -> object:
    """The field of the story, which comes first and without a heading."""
    return None if schema.fields[-1].is_list else schema.fields[-1]


def test_a_story_of_the_whole_comes_first_without_a_heading() -> None:
    state = {"logos": ["A fact."], "pathos": [], "abstract": [], "conversation_summary": "A talk."}
    assert render_text(SESSION, state) == "A talk.\n\nLogos:\n- A fact."
    assert render_text(SUMMARY, {"summary": "All of it."}) == "All of it."
    assert render_text(SUMMARY, {"summary": ""}) == ""


TALK = (
    "Our goal is to import the members of the choir from a CSV file into the app.",
    "Understood. First I looked at data/members.csv: it has 412 rows, separated by semicolons.",
    "We decided to keep app/legacy.py rather than app/modern.py, because it is tested.",
    "I changed app/settings.py so that DATABASE_URL points at PostgreSQL on port 5433.",
    "The test in tests/test_importer.py keeps failing with a UnicodeDecodeError for one name.",
    "I will write the page docs/import.md for the board of the choir tomorrow.",
    *["It is rather grey here, and everybody sings a little flat when it is like that outside. " * 4] * 6,
)
"""A talk with enough chatter that there is room for all that matters."""


@pytest.mark.parametrize(
    ("section", "path"),
    [
        ("files_changed", "app/settings.py"),
        ("next_steps", "docs/import.md"),
        ("blockers", "tests/test_importer.py"),
        ("key_decisions", "app/legacy.py"),
    ],
)
def test_what_is_said_about_a_file_says_more_than_its_name(section: str, path: str) -> None:
    """A plan, an obstacle or a decision goes to its own section, even if it names a file."""
    spoken = tuple(message(seq, text) for seq, text in enumerate(TALK, 1))
    written = json.loads(compress(SummaryRequest(schema=HANDOFF, messages=spoken)))
    lists = [field.name for field in HANDOFF.fields if field.is_list]
    assert [name for name in lists if any(path in item["text"] for item in written[name])] == [section]


WORK = {
    "en": (
        "I want to add invoices to our shop: a customer can download a PDF of each order.",
        "I looked at shop/orders/models.py. There is an Order model, but nothing about taxes.",
        "The rounding has to be per line, not per invoice.",
        "I created shop/invoices/models.py with two models and the migration shop/invoices/migrations/0001_initial.py.",
        "I tried it, and the umlauts come out as boxes on the server.",
        "The container has no fonts. I added fonts-dejavu to the Dockerfile; the build is green now.",
        "What about the e-mail to the customer? Do we send the PDF or a link?",
        "That is still open. A link needs a signed URL; I would do it in shop/mail/tasks.py.",
        "We will decide on Monday with Jens. Write the docs in docs/invoices.md after that.",
        "I'll write docs/invoices.md then.",
    ),
    "ru": (
        "Хочу добавить в магазин счета: покупатель может скачать PDF каждого заказа.",
        "Я посмотрел shop/orders/models.py. Есть модель Order, но про налоги ничего нет.",
        "Округление должно быть по строкам, а не по счёту.",
        "Я создал shop/invoices/models.py с двумя моделями и миграцию shop/invoices/migrations/0001_initial.py.",
        "Попробовал, на сервере вместо кириллицы квадратики.",
        "В контейнере нет шрифтов. Я добавил fonts-dejavu в Dockerfile, сборка теперь зелёная.",
        "А что с письмом покупателю? Отправляем PDF или ссылку?",
        "Это пока открытый вопрос. Для ссылки нужен подписанный URL, я бы сделал это в shop/mail/tasks.py.",
        "Решим в понедельник с Игорем. Потом напиши документацию в docs/invoices.md.",
        "Тогда напишу docs/invoices.md.",
    ),
}
TOUCHED = (
    "shop/orders/models.py",
    "shop/invoices/models.py",
    "shop/invoices/migrations/0001_initial.py",
    "Dockerfile",
)


def sections(language: str, *, schema: StateSchema = HANDOFF) -> dict[str, str]:
    spoken = tuple(message(seq, text) for seq, text in enumerate(WORK[language], 1))
    written = json.loads(compress(SummaryRequest(schema=schema, messages=spoken)))
    lists = [field.name for field in schema.fields if field.is_list]
    return {name: "\n".join(item["text"] for item in written[name]) for name in lists}


@pytest.mark.parametrize("language", WORK)
def test_every_file_that_was_touched_stands_in_its_section(language: str) -> None:
    """A file that is only to be written is not in it."""
    told = sections(language)
    assert [path for path in TOUCHED if path not in told["files_changed"]] == []
    assert "docs/invoices.md" not in told["files_changed"]
    assert "shop/mail/tasks.py" not in told["files_changed"]


def test_without_a_section_for_files_none_are_gathered() -> None:
    """The control: the same talk under another schema leaves out unimportant statements."""
    told = "\n".join(sections("en", schema=SESSION).values())
    assert [path for path in TOUCHED if path not in told] != []


@pytest.mark.parametrize(
    ("language", "asked", "ahead"),
    [("en", "Do we send the PDF or a link?", "decide on Monday"), ("ru", "Отправляем PDF или ссылку?", "Решим")],
)
def test_what_is_open_or_still_to_be_decided_stands_among_the_next_steps(language: str, asked: str, ahead: str) -> None:
    told = sections(language)
    assert [name for name, text in told.items() if asked in text] == ["next_steps"]
    assert [name for name, text in told.items() if ahead in text] == ["next_steps"]

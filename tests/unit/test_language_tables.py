"""What languages say stands in tables: another language is one file more."""

from __future__ import annotations

import tomllib
from pathlib import Path

from app.core.text.language_tables import LANGUAGE_TABLES, pattern_of, read_language_tables, words_of

PORTUGUESE = """
language = "pt"
[work]
done = "criei|alterei"
[ending]
never = "porque que"
"""
THAI = """
language = "th"
spaced = false
[work]
done = "แก้ไข"
"""


def test_another_language_is_one_file_more(tmp_path: Path) -> None:
    (tmp_path / "pt.toml").write_text(PORTUGUESE, encoding="utf-8")
    (tmp_path / "th.toml").write_text(THAI, encoding="utf-8")
    tables = (*LANGUAGE_TABLES, *read_language_tables(tmp_path))
    said = ("Criei main.py.", "ผมแก้ไข main.py", "I changed main.py.", "Я изменил main.py.")

    assert [pattern_of("work", "done").search(text) is not None for text in said] == [False, False, True, True]
    assert all(pattern_of("work", "done", tables).search(text) for text in said)
    assert not pattern_of("work", "done", tables).search("Recriei"), "whole words only, where words are spaced"
    assert words_of("ending", "never", tables) >= {"porque", "que", "because", "чтобы"}


def test_what_no_language_says_fits_nothing() -> None:
    assert pattern_of("work", "never said", LANGUAGE_TABLES).search("anything") is None
    assert words_of("ending", "never said") == frozenset()


def test_the_tables_are_part_of_the_package() -> None:
    configured = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    assert "language_tables/*.toml" in configured["tool"]["setuptools"]["package-data"]["app.core.text"]
    assert {table.language for table in LANGUAGE_TABLES} >= {"en", "ru", "zh"}

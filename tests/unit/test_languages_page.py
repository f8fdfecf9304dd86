"""``docs/languages.md`` says what is in each language's file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from app.core.text.languages.language_file import Language
from app.core.text.languages.loading import languages
from app.core.text.localization.catalogue import CATALOGUES
from app.core.text.stemming import ALGORITHMS

PAGE: Final = Path(__file__).parents[2] / "docs" / "languages.md"
OWN_STEMS: Final = ("en", "ru")
"""Languages whose stems do not come from the table of Snowball's algorithms."""

COLUMNS: Final[dict[str, Callable[[Language], bool]]] = {
    "values": lambda one: bool(one.values.model_fields_set),
    "relative days": lambda one: one.relative is not None,
    "orders": lambda one: one.orders is not None,
    "anchors by rule": lambda one: one.anchors is not None,
    "cues": lambda one: bool(one.cues.model_fields_set),
    "phrases": lambda one: one.phrases is not None,
    "related words": lambda one: bool(one.related.model_fields_set),
    "endings": lambda one: one.code in {*ALGORITHMS, *OWN_STEMS},
    "translation": lambda one: one.code in CATALOGUES,
}
"""What a column of the page's table says of a language."""


def rows() -> list[str]:
    """The rows that the table should have: the languages with most of this first."""
    found = [(one, [has(one) for has in COLUMNS.values()]) for one in languages()]
    ordered = sorted(found, key=lambda row: (-sum(row[1]), row[0].name))
    return [
        f"| {one.name} (`{one.code}`) | {' | '.join('yes' if has else '' for has in cells)} |" for one, cells in ordered
    ]


def shown_rows(page: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith("| ") and "(`" in line]


def test_the_table_has_what_is_in_the_files() -> None:
    assert shown_rows(PAGE.read_text(encoding="utf-8")) == rows(), "in docs/languages.md:\n" + "\n".join(rows())


def test_the_columns_are_in_order() -> None:
    (head,) = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| language |")]
    assert head == f"| language | {' | '.join(COLUMNS)} |"


@pytest.mark.parametrize("change", [("| yes |", "|  |"), ("(`sv`)", "(`fi`)")])
def test_another_table_is_noticed(change: tuple[str, str]) -> None:
    """The control."""
    assert shown_rows(PAGE.read_text(encoding="utf-8").replace(*change, 1)) != rows()

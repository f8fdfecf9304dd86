"""The bench's counts of code, tables, caches, patterns and import circles, on a small tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.structure import by_package, cycles, imports_of, measured, toml_lines

SOURCE = '''"""A module.

Its docstring has three lines.
"""

import re
from functools import lru_cache

# a comment
WORDS = frozenset(
    """
    one two
    three
    """.split()
)
"""What stands below a constant explains it."""
SHORT = ("a", "b")
PATTERN = re.compile("a")


@lru_cache(maxsize=4)
def read(text: str) -> int:
    """Count."""
    return len(text)  # beside code


@lru_cache
def number(value: int) -> int:
    return value


@memoized(4)
def length(text: str) -> int:
    return len(text)
'''


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "app/domain/words/__init__.py": "",
        "app/domain/words/text.py": SOURCE,
        "app/domain/words/far.py": "from app.domain.plans.plan import PLAN\n",
        "app/domain/plans/__init__.py": "",
        "app/domain/plans/plan.py": "from app.domain.words import text\nimport app.domain.values\nPLAN = text\n",
        "app/domain/values.py": "VALUE = 1\n",
        "app/domain/words/en.toml": "# a comment\n\nkey = 1\nother = [\n  2,\n]\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def test_code_is_counted_without_blanks_comments_and_docstrings(tree: Path) -> None:
    found = measured(tree / "app/domain/words/text.py", tree)

    assert (found.code, found.table) == (19, 6)
    assert (found.caches, found.text_caches, found.memoized, found.patterns) == (2, 1, 1, 1)


def test_sums_are_by_package(tree: Path) -> None:
    modules = [measured(path, tree) for path in sorted(tree.rglob("*.py"))]

    assert by_package(modules)["app/domain/words"]["modules"] == 3
    assert by_package(modules)["app/domain"]["code"] == 1


def test_a_circle_between_packages_is_found_and_its_way_out_is_none(tree: Path) -> None:
    found = imports_of(tree)

    assert (found.core, found.units, found.edges, found.module_imports) == ("app/domain", 3, 3, 3)
    assert found.cycles == (("plans", "words"),)


def test_without_the_way_back_there_is_no_circle(tree: Path) -> None:
    (tree / "app/domain/words/far.py").write_text("")

    assert not imports_of(tree).cycles


def test_the_new_core_is_preferred(tree: Path) -> None:
    (tree / "app/core").mkdir()
    (tree / "app/core/values.py").write_text("VALUE = 1\n")

    assert imports_of(tree).core == "app/core"


def test_no_core_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="app/core"):
        imports_of(tmp_path)


def test_circles_come_largest_first() -> None:
    edges = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "e"), ("e", "c"), ("a", "c")]

    assert cycles("abcdef", edges) == [("c", "d", "e"), ("a", "b")]


def test_lines_of_tables_are_counted(tree: Path) -> None:
    assert toml_lines(tree.rglob("*.toml")) == 4

"""Pages for people name only what exists: files, folders, tables, packages, pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path
from typing import Final

import pytest
import yaml

from app.storage.tables import TenantScoped
from bench import licences
from tests.rows import each

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
PAGES: Final = sorted(
    [*DOCS.rglob("*.md"), *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"))]
)
CODE: Final = re.compile(r"`([^`\n]+)`")
FILE: Final = re.compile(r"[\w.-]+(?:/[\w.*-]+)*(?:/|\.(?:py|toml|md|json|jsonl|ya?ml|lock|svg))")
LINK: Final = re.compile(r"\]\(([^()\s:#]+)(?:#[^()\s]*)?\)")
NAME: Final = re.compile(r"`((?:_|[A-Z])\w+|\w+_\w+)`")
"""A name that is no word of English: with an underscore or a capital letter."""
MADE: Final = {"build", ".venv", ".data"}
"""Folders that are made by commands."""


def without_blocks(page: str) -> str:
    """The page without its fenced code, which may be about other files."""
    return re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)


def missing_files(page: str, root: Path = ROOT) -> list[str]:
    """Paths in inline code that lead nowhere, from the root or from the folder of the path before them in their line.

    A bare name is looked at only behind a path: `policy.py` alone may be anybody's.
    """
    return [path for line in without_blocks(page).splitlines() for path in _missing_in(line, root)]


def _missing_in(line: str, root: Path) -> Iterator[str]:
    folders: list[Path] = []
    for path in CODE.findall(line):
        if not FILE.fullmatch(path) or path.split("/")[0] in MADE:
            continue
        found = next((place for place in (root, *reversed(folders)) if _exists(place, path)), None)
        if found is not None and "/" in path:
            whole = found / path
            folders += [whole if path.endswith("/") else whole.parent]
        elif found is None and (folders or (root / path.split("/")[0]).is_dir()):
            yield path


def _exists(place: Path, path: str) -> bool:
    return any(place.glob(path)) if "*" in path else (place / path).exists()


def missing_links(page: str, folder: Path) -> list[str]:
    """Relative links that lead nowhere."""
    return [path for path in LINK.findall(without_blocks(page)) if not (folder / path).exists()]


def test_every_name_in_contributing_is_in_the_code() -> None:
    named = set(NAME.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    files = [*(ROOT / "app").rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "web" / "src").rglob("*.ts*")]
    words = {word for file in files for word in re.findall(r"\w{3,}", file.read_text(encoding="utf-8"))}
    gone = "_new" + "_keeper"
    assert len(named) > 50
    assert {*named, gone} - words == {gone}, "only the control"


@each("page", PAGES)
def test_every_path_on_a_page_leads_to_something(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert missing_files(text) == []
    assert missing_links(text, page.parent) == []


def test_control_a_path_that_leads_nowhere_is_seen() -> None:
    wrong = (
        "`app/main.py` `app/gone.py` `gone.py` `logs.py`\n`bench/gone/` `docs/gone*.md`\n`anybodys.py` `their/own.py`"
    )
    assert missing_files(wrong) == ["app/gone.py", "gone.py", "bench/gone/", "docs/gone*.md"]
    assert missing_files("```sh\n`app/gone.py`\n```\n") == []
    assert missing_links("[a](gone.md#x) [b](README.md) [c](https://example.org/gone.md)", ROOT) == ["gone.md"]


MODULE: Final = re.compile(r"python -m ((?:app|bench|tests|worker)(?:\.\w+)*)")
TARGET: Final = re.compile(r"(?:`|^)make ([a-z-]+)", re.MULTILINE)


def missing_commands(page: str, root: Path = ROOT) -> list[str]:
    """Modules that a page runs and targets that it makes, but that do not exist."""
    modules = [name for name in MODULE.findall(page) if not _is_module(root / name.replace(".", "/"))]
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    return modules + [name for name in TARGET.findall(page) if name not in targets]


def _is_module(path: Path) -> bool:
    return path.with_suffix(".py").exists() or (path / "__main__.py").exists()


@each("page", [*PAGES, ROOT / "bench" / "README.md"])
def test_every_command_on_a_page_is_there(page: Path) -> None:
    assert missing_commands(page.read_text(encoding="utf-8")) == []


def test_control_a_command_that_is_not_there_is_seen() -> None:
    page = "`python -m bench.gone --write` `python -m bench.speed` `make gone`\n```sh\nmake run\nmake away\n```\n"
    assert missing_commands(page) == ["bench.gone", "gone", "away"]


def test_many_paths_are_looked_at() -> None:
    paths = {path for page in PAGES for path in CODE.findall(page.read_text(encoding="utf-8")) if FILE.fullmatch(path)}
    assert len(paths) > 200


def test_every_table_is_on_the_page_about_privacy() -> None:
    page = (DOCS / "privacy.md").read_text(encoding="utf-8")
    tables = {str(table.__tablename__) for table in TenantScoped.__subclasses__()}
    assert len(tables) > 10
    assert {table for table in tables if f"`{table}`" not in page} == set()


def test_every_action_on_record_is_on_the_page_about_limits() -> None:
    page = (
        (DOCS / "limits.md").read_text(encoding="utf-8").split("\n## Who did what\n")[1].split("\n## ", maxsplit=1)[0]
    )
    code = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "app").rglob("*.py")))
    recorded = set(re.findall(r"\baudit\([^\n]*?\"([a-z_]+\.[a-z_]+)\"", code))
    assert {"tenant.erased", "key.created"} <= recorded
    assert {action for action in recorded if f"`{action}`" not in page} == set()


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    site = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    listed = set(_places(site["nav"])) - {"index.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
    assert listed == {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}


def _places(item: object) -> Iterator[str]:
    """Every page of a part of the navigation: a page, a list, or a title with either."""
    if isinstance(item, str):
        yield item
    elif isinstance(item, dict | list):
        for part in item.values() if isinstance(item, dict) else item:
            yield from _places(part)


def test_every_package_that_is_shipped_is_on_the_page_of_licences() -> None:
    page = licences.PAGE.read_text(encoding="utf-8")
    packages = [one.name for one in licences.licences(licences.LOCK.read_text(encoding="utf-8"))]
    assert len(packages) > 50
    assert [name for name in packages if f"| {name} | " not in page] == [], "run: python -m bench.licences --write"
    assert licences.UNSTATED not in page


@pytest.mark.parametrize(
    ("stated", "licence"),
    [
        ("License-Expression: MIT\nLicense: old", "MIT"),
        ("License: BSD\nClassifier: License :: OSI Approved :: BSD License", "BSD License"),
        ("License: MIT License\n        Copyright (c) somebody", "MIT License"),
        ("Summary: says nothing of it", licences.UNSTATED),
    ],
)
def test_a_licence_is_what_the_package_says(stated: str, licence: str, tmp_path: Path) -> None:
    folder = tmp_path / "said-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Name: said\n{stated}\n", encoding="utf-8")
    assert licences.licence_of(Distribution.at(folder).metadata) == licence

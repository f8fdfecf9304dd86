"""Pages for people name only what exists: files, folders, tables, packages, pages."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import Distribution
from pathlib import Path
from typing import Final

import pytest
import yaml

from app.cli.commands import COMMANDS
from app.core.model.policies.budgets import budgets_of
from app.core.model.policies.presets import SEMANTIC
from app.settings import Settings
from app.storage.tables import TenantScoped
from bench import licences
from bench.report import take_no_options
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


RUN: Final = re.compile(r"python -m ((?:app|bench|tests|worker)(?:\.\w+)*)([^`|\n\"]*)")
TYPED: Final = re.compile(r"(?<![\w/.])(?:\.venv/bin/)?throughline ([a-z][a-z-]*)([^\n|#`&;]*)")
OPTION: Final = re.compile(r"(?<!\S)\[?(--[a-z][a-z-]*)")
BLOCK: Final = re.compile(r"^ *```sh\n(.*?)```", re.DOTALL | re.MULTILINE)


@cache
def source(module: str) -> str:
    """The text of a module, or of all modules of a package."""
    path = ROOT / module.replace(".", "/")
    files = [path.with_suffix(".py")] if path.with_suffix(".py").exists() else sorted(path.glob("*.py"))
    return "".join(file.read_text(encoding="utf-8") for file in files)


def missing_options(page: str) -> list[str]:
    """Options of modules and of commands of `throughline` that are not in their source, and commands that are none."""
    runs = [(module, said) for module, said in RUN.findall(page) if _is_module(ROOT / module.replace(".", "/"))]
    inline = CODE.findall(BLOCK.sub("", page))
    typed = TYPED.findall("\n".join([*inline, *BLOCK.findall(page)]))
    runs += [(COMMANDS[name][0].split(":")[0], said) for name, said in typed if name in COMMANDS]
    shared = source("app.cli.connecting")
    gone = [
        option
        for module, said in runs
        for option in OPTION.findall(said)
        if option != "--help"
        and not re.search(rf"\"{option}\"|\b{option[2:].replace('-', '_')}:", source(module) + shared)
    ]
    return [name for name, _ in typed if name not in COMMANDS] + gone


@each("page", [*PAGES, ROOT / "bench" / "README.md", *sorted((ROOT / "bench").glob("*.py"))])
def test_every_option_on_a_page_is_there(page: Path) -> None:
    assert missing_options(page.read_text(encoding="utf-8")) == []


def test_control_an_option_that_is_not_there_is_seen() -> None:
    page = "`python -m bench.growth [--most 9] [--least 1]` `throughline list --json`\n```sh\nthroughline lost\n```\n"
    assert missing_options(f"{page}`throughline state ID --diff 1 2 --repair`") == ["lost", "--least", "--repair"]


PARTS: Final = {
    "turns_child",
    "figures.pieces",
    "fixture.damaged_at",
    "trust.folding",
    "chaos.clocked",
    "outage_scaled",
} | {f"peers.children.{name}" for name in ("llama_index", "adk", "openai_agents", "langgraph")}
"""Modules that only the benches themselves start."""


def test_every_bench_reads_its_arguments_and_has_its_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If it did not read them, `--help` would begin its work; that of `bench.live` costs money."""
    folder = ROOT / "bench"
    texts = {path.relative_to(folder): path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
    begun = {".".join(path.with_suffix("").parts): text for path, text in texts.items() if "__main__" in text}
    benches = {name.removesuffix(".__main__"): text for name, text in begun.items() if name not in PARTS}
    assert len(benches) > 50
    assert [
        name for name, text in benches.items() if not re.search("ArgumentParser|take_no_options|sys.argv", text)
    ] == []
    listed = MODULE.findall((folder / "README.md").read_text(encoding="utf-8"))
    assert {f"bench.{name}" for name in benches} - set(listed) == set()
    monkeypatch.setattr(sys, "argv", ["live", "--halp"])
    with pytest.raises(SystemExit, match="2"):
        take_no_options("What it does.")
    assert "--halp" in capsys.readouterr().err


def heads(page: str) -> set[str]:
    """The fragments by which the headings of a page are found."""
    named = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head) for head in re.findall(r"^#+ (.+)$", page, re.MULTILINE))
    return {re.sub(r"[^\w\s-]", "", head.lower()).strip().replace(" ", "-") for head in named}


def test_every_link_to_a_heading_leads_to_one() -> None:
    pages = {path.resolve(): without_blocks(path.read_text(encoding="utf-8")) for path in PAGES}
    known = {path: heads(page) for path, page in pages.items()}
    links = [
        (path, file, fragment)
        for path, page in pages.items()
        for file, fragment in re.findall(r"\]\(([^()\s:#]*)#([^()\s]*)\)", page)
    ]
    assert len(links) > 200
    gone = [
        (path.name, file, fragment)
        for path, file, fragment in links
        if (target := (path.parent / file).resolve() if file else path) in known and fragment not in known[target]
    ]
    assert gone == []


def git(*words: str, asked: str = "") -> str:
    return subprocess.run(["git", *words], cwd=ROOT, input=asked, capture_output=True, text=True, check=True).stdout


def test_every_commit_on_a_page_is_in_the_history() -> None:
    if not (ROOT / ".git").exists() or git("rev-parse", "--is-shallow-repository") != "false\n":
        pytest.skip("needs the git history: this is no clone, or a shallow one")
    hexadecimal = re.compile(r"(?<![\w/.-])(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,8}(?![\w-])")
    named = sorted({name for page in PAGES for name in hexadecimal.findall(page.read_text(encoding="utf-8"))})
    answers = git("cat-file", "--batch-check", asked="\n".join([*named, "0badc0de"])).splitlines()
    assert len(named) > 50
    assert [answer for answer in answers if answer.endswith("missing")] == ["0badc0de missing"], "only the control"


def told_defaults() -> Iterator[tuple[str, str]]:
    """Settings with the words of their defaults: in the last column of a table, or behind the name and a comma."""
    page, limits = ((DOCS / name).read_text(encoding="utf-8") for name in ("running.md", "limits.md"))
    for line in page.split("## Retention")[0].splitlines() + page.split("## Leases")[1].splitlines():
        cells = line.strip("| ").split(" | ")
        names = CODE.findall(cells[0]) if line.startswith("| `") else []
        values = cells[-1].split(", ")
        yield from zip(names, values, strict=False) if len(names) == len(values) else ()
    yield from re.findall(r"`(THROUGHLINE_[A-Z_]+)`,? \(?([\d.]+(?: MB)?)", limits)


def test_defaults_on_pages_are_those_of_the_settings() -> None:
    fields = Settings.model_fields.items()
    defaults = {field.validation_alias or f"THROUGHLINE_{name.upper()}": field.get_default() for name, field in fields}
    told = {
        name: float(number[1]) * (1_000_000 if number[2] else 1)
        for name, words in told_defaults()
        if (number := re.match(r"([\d.]*\d)( MB)?", words)) and name in defaults and not words.startswith("127")
    }
    assert len(told) > 35
    assert {name: (number, defaults[name]) for name, number in told.items() if number != defaults[name]} == {}


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


def number(words: str) -> float | None:
    """The number of a cell, in which a blank or a comma may separate the thousands; `None` for a dash."""
    return None if words.strip() in {"", "–"} else float(re.sub(r"[ ,]", "", words))


def test_the_limits_on_their_page_are_those_of_the_settings() -> None:
    page = (DOCS / "limits.md").read_text(encoding="utf-8").split("\n## What is limited\n")[1].split("\n\n* ")[0]
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| `")]
    settings = Settings(_env_file=None)
    told: dict[str, list[float | None]] = {}
    for names, of_tenants, of_keys, _ in rows:
        found = CODE.findall(names)
        tenant, key = ([number(one) for one in re.split(", ", cell.strip())] for cell in (of_tenants, of_keys))
        told |= {name: [tenant[place], (key * len(found))[place]] for place, name in enumerate(found)}
    limits = (settings.tenant_limits, settings.key_limits)
    assert told == {name: [getattr(one, name) for one in limits] for name in type(settings.tenant_limits).model_fields}


def test_the_arithmetic_on_the_page_of_thresholds_is_that_of_the_code() -> None:
    page = (DOCS / "thresholds.md").read_text(encoding="utf-8").split("\n## The arithmetic\n")[1].split("\n\n")[0]
    rows = {cells[1].strip(): cells[3:5] for line in page.splitlines()[3:] if len(cells := line.split("|")) > 4}
    for column, limit in enumerate((4_000, 1_000_000)):
        told = {name: number(cells[column]) for name, cells in rows.items() if cells[column].strip()[-1:].isdigit()}
        budgets = budgets_of(SEMANTIC.policy.model_copy(update={"context_window": limit}), limit)
        assert told == {
            "limit": budgets.limit,
            "reserve for the reply": budgets.limit - budgets.window,
            "window": budgets.window,
            "budget": budgets.budget,
            "background": math.ceil(0.70 * budgets.budget),
            "inside the turn": math.ceil(0.85 * budgets.budget),
            "target": budgets.target,
            "state, planned": budgets.state_tokens,
            "state, at most": budgets.state_cap,
            "digests, at most": budgets.digest_tokens,
        }

"""Docstrings and comments name only what exists: each ``name`` in one of them is in the code, too."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
MODULES: Final = sorted(path for folder in ("app", "worker") for path in (ROOT / folder).rglob("*.py"))
DOCSTRING: Final = re.compile(r'^ *"""(.*?)"""', re.MULTILINE | re.DOTALL)
COMMENT: Final = re.compile(r"^ *#.*$|  # .*$", re.MULTILINE)
NAMED: Final = re.compile(r"``([A-Za-z_][\w.]*)(?:\(.*?\))?``")
WORD: Final = re.compile(r"\w+")

OTHERS: Final = ("useChat", "DefaultChatTransport", "MessageList")
"""Names in other programs."""
OUTSIDE: Final = ("Host", "SameSite", "NO_COLOR", "STOP", "NaN", "Infinity")
"""Headers, variables of the environment and values that come from outside."""
EXAMPLES: Final = (
    "GOOGLE_APIKEY",
    "GOOGLE_MAPS_API_KEY",
    "auth_discussion",
    "auth_discussion_2",
    "auth_2",
)
"""Ids and names of settings that users could choose."""
WORDS: Final = ("F12", "aB3x", "economy", "Boston", "Thursday")
"""Words of an example conversation."""
NOT_OURS: Final = frozenset((*OTHERS, *OUTSIDE, *EXAMPLES, *WORDS))
"""Names in docstrings and comments that are not names of the code."""


@cache
def known() -> frozenset[str]:
    """Every word of the code and of the language files, without docstrings and comments; and the modules' names."""
    words = {part for path in MODULES for part in path.relative_to(ROOT).with_suffix("").parts}
    for path in MODULES:
        words.update(WORD.findall(COMMENT.sub("", DOCSTRING.sub("", path.read_text()))))
    for path in (ROOT / "app").rglob("*.toml"):
        words.update(WORD.findall(path.read_text()))
    return frozenset(words)


@cache
def code_of_modules() -> dict[str, str]:
    """The code of all modules of a name, without docstrings and comments."""
    found: dict[str, str] = {}
    for path in MODULES:
        code = COMMENT.sub("", DOCSTRING.sub("", path.read_text()))
        found[path.stem] = f"{found.get(path.stem, '')}\n{code}"
    return found


def is_in_module(name: str) -> bool:
    """Whether ``module.name`` is in that module; true of any other name with a dot, such as that of an event."""
    module, _, rest = name.partition(".")
    code = code_of_modules()
    if module not in code or rest.partition(".")[0] in {"py", "json", "ini", "zip", "toml"}:
        return True
    return rest.partition(".")[0] in WORD.findall(code[module]) or any(name in one for one in code.values())


def stale(source: str, words: Iterable[str]) -> list[str]:
    """The names in double backticks of docstrings and comments that are not among the words, by their last part."""
    texts = (*DOCSTRING.findall(source), *COMMENT.findall(source))
    named = [name for text in texts for name in NAMED.findall(text)]
    return [name for name in named if not name.endswith(".") and name.split(".")[-1] not in words]


def test_every_name_in_a_docstring_or_comment_stands_in_the_code() -> None:
    words = known() | NOT_OURS
    found = {str(path.relative_to(ROOT)): missing for path in MODULES if (missing := stale(path.read_text(), words))}
    assert not found


def test_what_a_docstring_names_in_a_module_is_there() -> None:
    texts = {path: (*DOCSTRING.findall(source := path.read_text()), *COMMENT.findall(source)) for path in MODULES}
    named = {(path.name, name) for path, each in texts.items() for text in each for name in NAMED.findall(text)}
    assert not sorted((file, name) for file, name in named if not is_in_module(name.rstrip(".")))


@pytest.mark.parametrize("name", ["presets.resolve", "gate.prune"])
def test_a_name_of_another_module_is_found(name: str) -> None:
    """The control: both parts exist, in different modules."""
    assert set(name.split(".")) <= known()
    assert not is_in_module(name)


@pytest.mark.parametrize("name", ["with_gathered_2", "gate.judge_nothing", "not_there()"])
def test_a_name_that_is_gone_is_found(name: str) -> None:
    """The control: in the docstring of a module, of a function, on a later line, and in a comment."""
    module = f'"""See ``{name}``."""\n\ndef f():\n    """One line.\n\n    See ``{name}`` and ``answers``.\n    """\n'
    assert stale(f"{module}    # As ``{name}`` does.\n", known()) == [name.removesuffix("()")] * 3


def test_what_is_allowed_is_needed() -> None:
    """Each exception must be named by a docstring or a comment, and not by the code."""
    named = {name for path in MODULES for name in stale(path.read_text(), known())}
    assert named == NOT_OURS

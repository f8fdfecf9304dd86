"""Which test proves which failure case, and which control shows that it can fail.

``@pytest.mark.case("12")`` stands on a test that proves case 12, ``@pytest.mark.control("12")`` on one that plays the
same scenario with the guard broken; both take several numbers, and both may stand on one variant of a parametrised
test (``pytest.param(..., marks=pytest.mark.control("12"))``). They are read from the source, without importing it.

``python -m tests.cases`` prints the table.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Mark = Literal["case", "control"]

MARKER_HALF: Final = "26-marker"
"""A value of case 26 that did not survive can be reached by a marker."""

CASES: Final[Mapping[str, str]] = {
    "1": "the model raises",
    "2": "empty, white space, only reasoning",
    "3": "no summary: a request for input, a tool call, a continued chat",
    "4": "output limit reached, even if the JSON parses",
    "5": "safety block with valid JSON",
    "6": "all lists empty while the span holds facts",
    "7": "larger than its span, or too little saved",
    "8": "a fact, number or name that occurs nowhere in the input",
    "9": "an earlier entry silently missing",
    "10": "another language than the conversation",
    "11": "NUL, lone surrogate, huge or deeply nested output",
    "12": "one message makes the provider block the prompt",
    "13": "the real window is smaller than configured",
    "14": "protected floor above the target",
    "15": "a small message right after an applied compaction",
    "16": "500 messages one by one around 70 %",
    "17": "usage reported ten times too high once",
    "18": "budget lowered in mid-conversation",
    "19": "a threshold that cannot be met",
    "20": "manual with nothing to fold",
    "21": "the thresholds to the token, and jumps over them",
    "22": "413 before anything is stored, keep_full and truncate after",
    "22b": "ten honest, paraphrasing candidates",
    "22c": "the state store away, or counting raises",
    "23": "a fact of turn 1 after many compactions",
    "24": "Postgres, then no, MySQL",
    "25": "in progress, then done; proposed, then rejected",
    "26": "40 UUIDs, URLs, paths, amounts, dates survive",
    MARKER_HALF: "what of them did not survive leads back by a marker",
    "27": "the unanswered last user message",
    "28": "English, Russian, Chinese, Arabic, mixed with code",
    "29": "pins on every path: identical text",
    "30": "every marker expands to the same originals",
}
"""The number of each case, with what happens in it."""

LATER: Final[Mapping[str, str]] = {}
"""The cases that wait for something that is not built yet, with what that is. The list only ever shrinks: a case that
is in it and yet has a test makes the check fail until it is taken out.
"""

TESTS: Final = Path(__file__).parent
_MARKS: Final[Mapping[str, Mark]] = {"case": "case", "control": "control"}
_NEVER_RUN: Final = frozenset({"skip", "xfail"})
_MAY_BE_MARKED: Final = re.compile(r"\bmark\s*\.\s*(?:case|control)\b")
"""A pattern that fits every file with marks; other files need not be parsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """One mark of one test for one case."""

    number: str
    mark: Mark
    test: str
    """The name that pytest gives the test, relative to the folder of the tests."""
    is_variant: bool
    """Whether the mark is on one variant of a parametrised test, not on all of it."""


class MisplacedMarkError(Exception):
    """A mark that means nothing: on a class, on no test, without a number, or not as a literal text."""


def marked(root: Path = TESTS) -> list[Marked]:
    """Every mark under a folder of tests, by file and line; those of tests that are skipped do not count.

    Raises:
        MisplacedMarkError: Naming the place.
    """
    files = sorted(root.rglob("test_*.py"))
    sources = ((path.read_text(), str(path.relative_to(root))) for path in files)
    return [one for source, name in sources if _MAY_BE_MARKED.search(source) for one in read(source, name)]


def read(source: str, name: str) -> list[Marked]:
    """The marks of one file's source."""
    found: list[Marked] = []
    for node, owner in _functions(ast.parse(source)):
        test = "::".join([name, *([owner.name] if owner else []), node.name])
        marks = [one for decorator in node.decorator_list for one in _marks(decorator, test)]
        if marks and not node.name.startswith("test_"):
            raise MisplacedMarkError(f"{test} is no test")
        if not _is_never_run(node.decorator_list) and (owner is None or not _is_never_run(owner.decorator_list)):
            found += marks
    return found


def table(found: Sequence[Marked]) -> str:
    """The tests of each case, then its controls."""
    lines: list[str] = []
    for number, title in CASES.items():
        lines.append(f"{number:>9}  {title}" + (f"  [{LATER[number]}]" if number in LATER else ""))
        for mark in ("case", "control"):
            lines += [f"{'':11}{mark:8}{one.test}" for one in found if (one.number, one.mark) == (number, mark)]
    return "\n".join(lines)


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(tree: ast.Module) -> Iterator[tuple[_Function, ast.ClassDef | None]]:
    for node in tree.body:
        if isinstance(node, _Function):
            yield node, None
        elif isinstance(node, ast.ClassDef):
            if any(True for decorator in node.decorator_list for _ in _marks(decorator, node.name)):
                raise MisplacedMarkError(f"{node.name}: a mark on a class proves nothing of each of its tests")
            for inner in node.body:
                if isinstance(inner, _Function):
                    yield inner, node


def _marks(decorator: ast.expr, test: str) -> Iterator[Marked]:
    """The marks in a decorator: the decorator itself, or those of the variants in its parameters."""
    calls = {id(node.func): node for node in ast.walk(decorator) if isinstance(node, ast.Call)}
    for node in ast.walk(decorator):
        mark = _MARKS.get(_word(node))
        if mark is None:
            continue
        call = calls.get(id(node))
        numbers = [one.value if isinstance(one, ast.Constant) else None for one in call.args] if call else []
        if not numbers:
            raise MisplacedMarkError(f"{test}: a {mark} without a number")
        for number in numbers:
            if not isinstance(number, str) or number not in CASES:
                raise MisplacedMarkError(f"{test}: there is no case {number!r}")
            yield Marked(number=number, mark=mark, test=test, is_variant=call is not decorator)


def _is_never_run(decorators: Sequence[ast.expr]) -> bool:
    return any(_word(node) in _NEVER_RUN for decorator in decorators for node in ast.walk(decorator))


def _word(node: ast.AST) -> str:
    """The name ``x`` of ``pytest.mark.x``; empty for anything else."""
    is_mark = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr == "mark"
    return node.attr if is_mark and isinstance(node, ast.Attribute) else ""


if __name__ == "__main__":
    print(table(marked()))

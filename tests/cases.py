"""Which test proves which failure case, and which control shows that it can fail.

``@pytest.mark.case("12")`` stands on a test that proves case 12, ``@pytest.mark.control("12")`` on one that plays the
same scenario with the guard broken; both take several numbers, and both may stand on one variant of a parametrised
test (``pytest.param(..., marks=pytest.mark.control("12"))``). ``@guarded("12")`` is short for a test with two variants:
``is_guarded`` is true in the case and false in its control. Marks are read from the source, without importing it.

``python -m tests.cases`` prints the table, and below it what no test here causes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import pytest

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
    "31-append": "kill -9 of the API while it appends",
    "31-postgres": "kill -9 of Postgres under load",
    "31-worker": "kill -9 of the worker, or of a child of its pool, during a model call",
    "31-publish": "a process dies between commit and publishing",
    "31-response": "a process dies between commit and response; the same key is sent again",
    "32-queued": "Redis is killed with 200 queued jobs and nothing on disk",
    "32-flushed": "Redis is emptied again and again",
    "32-away": "Redis is away for minutes",
    "32-silent": "Redis accepts connections and does not answer",
    "32-full": "Redis is full",
    "32-fork": "a long fork without workers that hear of it",
    "33": "a conversation crashes each process that works on it",
    "34-sweepers": "five sweepers at once",
    "34-no-sweeper": "no sweeper for five minutes",
    "34-lease": "a lease shorter than the model call",
    "34-sleep": "a machine that slept, so that all leases are over",
    "34-clocks": "clocks that are off by an hour, or step back",
    "35-disk": "the disk of Postgres is full",
    "35-pool": "the pool of connections is exhausted",
    "35-restarts": "twenty restarts under load",
    "35b": "Postgres takes no writes",
    "36-database": "the n-th message to the database fails",
    "36-redis": "the n-th message to Redis fails",
    "36-model": "the n-th call of a model fails",
    "37": "fifty writers on one conversation",
    "38": "two compactions reach the same point at the same time",
    "39": "an outdated compaction ends last",
    "40": "an append at every step of a compaction",
    "41": "85 % while a background job runs: wait, and no second call",
    "41-vain": "a turn that waited in vain: no other waits for that job",
    "42": "a hundred manual compactions at once",
    "43": "the same key fifty times",
    "43-body": "the same key with another body",
    "43-died": "the same key after the first request's turn died",
    "44a-erased": "an erasure while a compaction runs",
    "44a-changed": "a change of the policy or of a pin while a compaction runs",
    "44b": "an older state is restored while a model thinks",
    "44c": "an import while the beginning is folded",
    "44d": "a deletion or an erasure at the moment when a reply arrives",
    "44e": "two kills while a narrative is rewritten after an erasure",
    "44f": "a kill before the turn of a request that begins a conversation",
    "44g": "a conversation is deleted while it is exported",
    "45-compaction": "the client leaves in the middle of an inline compaction",
    "45-stream": "the client leaves in the middle of a stream",
    "45b": "the process is asked to end while streams and sockets are open",
    "46": "random interleavings",
    "47": "away for events 10 to 19",
    "48": "a slow reader",
    "49": "2,000 streams",
    "49b": "a turn followed from two processes",
    "49b-away": "Valkey goes away in the middle of a followed turn",
    "49b-killed": "the process of a followed turn is killed",
    "50": "a foreign, huge or negative Last-Event-ID",
    "51": "every route with another tenant's ids",
    "52": "fields that nobody may set",
    "53": "requests at random from the OpenAPI document",
    "54": "hostile strings",
    "55": "hostile JSON",
    "56": "huge, endless, nested and packed bodies",
    "57": "injected instructions with a model that obeys",
    "58": "tags and delimiters that try to break out",
    "59": "a manipulated earlier state",
    "60": "a pinned constraint after 500 kB of filler",
    "61": "secrets in no state, event, log or error",
    "62": "an erased text is found nowhere",
    "63": "comparing keys tells nothing about them",
    "64": "one tenant calls /compact in a loop",
    "65-refused": "a request names a model that is not allowed",
    "65-library": "a provider's library waits or fails",
    "66-host": "a web page whose name resolves to loopback",
    "66-post": "a POST that any page could send",
    "67": "metadata that grows by many small patches",
}
"""The number of each case, with what happens in it."""

WITHOUT_CONTROL: Final[Mapping[str, str]] = {}
"""The cases for which there is no guard that a test could break, each with the reason."""

NOT_CAUSED: Final[Mapping[str, str]] = {
    "31, 35: power loss": "processes are killed, not machines; for power loss rely on what Postgres promises",
    "32: a full disk of Redis": "its memory is filled instead; nothing in Redis has to outlive it",
    "34: a database whose clock steps": "its clock is that of the machine that runs the tests",
    "54, 55: the original lists": "the strings and bodies are our own, in the families of those lists",
}
"""What no test here causes, by case, each with the reason."""

LATER: Final[Mapping[str, str]] = {}
"""The cases that wait for something that is not built yet, with what that is. The list only ever shrinks: a case that
is in it and yet has a test makes the check fail until it is taken out.
"""

TESTS: Final = Path(__file__).parent
_MARKS: Final[Mapping[str, Mark]] = {"case": "case", "control": "control"}
_NEVER_RUN: Final = frozenset({"skip", "xfail"})
_GUARDED: Final = "guarded"
_MAY_BE_MARKED: Final = re.compile(r"\bmark\s*\.\s*(?:case|control)\b|\bguarded\(")
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


def guarded(*numbers: str, is_control_long: bool = False) -> pytest.MarkDecorator:
    """Two variants of a test: ``is_guarded`` is true in the case, and false in the control with the guard broken."""
    case, controls = pytest.mark.case(*numbers), [pytest.mark.control(*numbers)]
    if is_control_long:
        controls.append(pytest.mark.long)
    variants = [pytest.param(True, id="as it is", marks=case), pytest.param(False, id="control", marks=controls)]
    return pytest.mark.parametrize("is_guarded", variants)


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
    """The tests of each case, then its controls; at the end what no test causes."""
    lines: list[str] = []
    for number, title in CASES.items():
        lines.append(f"{number:>13}  {title}" + (f"  [{LATER[number]}]" if number in LATER else ""))
        for mark in ("case", "control"):
            lines += [f"{'':15}{mark:8}{one.test}" for one in found if (one.number, one.mark) == (number, mark)]
        if number in WITHOUT_CONTROL:
            lines.append(f"{'':15}without a control: {WITHOUT_CONTROL[number]}")
    lines += ["", "No test here causes:", *(f"{what}: {why}" for what, why in NOT_CAUSED.items())]
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
        is_both = isinstance(node, ast.Name) and node.id == _GUARDED
        mark = _MARKS.get(_word(node))
        if mark is None and not is_both:
            continue
        call = calls.get(id(node))
        numbers = [one.value if isinstance(one, ast.Constant) else None for one in call.args] if call else []
        if not numbers:
            raise MisplacedMarkError(f"{test}: a {mark or _GUARDED} without a number")
        for number in numbers:
            if not isinstance(number, str) or number not in CASES:
                raise MisplacedMarkError(f"{test}: there is no case {number!r}")
            for one in _MARKS.values() if mark is None else (mark,):
                yield Marked(number=number, mark=one, test=test, is_variant=is_both or call is not decorator)


def _is_never_run(decorators: Sequence[ast.expr]) -> bool:
    return any(_word(node) in _NEVER_RUN for decorator in decorators for node in ast.walk(decorator))


def _word(node: ast.AST) -> str:
    """The name ``x`` of ``pytest.mark.x``; empty for anything else."""
    is_mark = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr == "mark"
    return node.attr if is_mark and isinstance(node, ast.Attribute) else ""


if __name__ == "__main__":
    print(table(marked()))

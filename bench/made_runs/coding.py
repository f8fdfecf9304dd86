"""A coding agent: listings, searches, files, test output and commits as plain text; it comes back to what it saw."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

from bench.made_runs.transcript import Transcript, hexadecimal

_SYSTEM: Final = "You are a coding agent in a repository. Read before you write, and run the tests."
_PARTS: Final = ("orders", "billing", "auth", "search", "export", "inbox", "quota", "ledger")
_NOUNS: Final = ("invoice", "token", "cursor", "session", "coupon", "report", "webhook", "limit")
_VERBS: Final = ("parse", "render", "validate", "merge", "refresh", "apply", "load", "round")
_AUTHORS: Final = ("Ada", "Bram", "Chidi", "Dora")


@dataclass(frozen=True, slots=True)
class _Module:
    path: str
    test: str
    functions: tuple[str, ...]
    lines: tuple[int, ...]


def run(draw: random.Random, name: str) -> dict[str, Any]:
    """One run: look around, find the place, read it, change it, test it, look at its history, commit."""
    package = draw.choice(("shop", "portal", "meter"))
    modules = [_module(draw, package, part) for part in draw.sample(_PARTS, 4)]
    branch = f"fix/{draw.choice(_NOUNS)}-{draw.randint(100, 999)}"
    talk = Transcript(_SYSTEM, draw)
    here, other = modules[0], modules[1]
    broken = here.functions[0]
    talk.user(
        f"`{broken}` in {here.path} raises a KeyError when the list is empty. Please fix it on branch {branch}.",
        f"Test {here.test} fails since yesterday. Find out why and fix it; work on {branch}.",
        f"Something is wrong with {broken}: it gives the wrong total. Use the branch {branch} please.",
    )
    talk.call("run_command", f"Switched to a new branch '{branch}'", command=f"git checkout -b {branch}")
    talk.call("list_files", _listing(draw, package, modules), path=package)
    talk.call("search", _found(broken, [here, other]), pattern=broken, path=package)
    talk.assistant(f"I'll read {here.path} around line {here.lines[0]}.")
    talk.call("read_file", _source(here), path=here.path, start_line=here.lines[0])
    command = f"pytest -q {here.test}"
    talk.call("run_command", _failing(draw, here, broken), command=command)
    if draw.random() < 0.5:
        talk.user(f"It may have to do with {other.functions[1]} too.", "Is the same mistake made elsewhere?")
    talk.call("read_file", _source(other), path=other.path, start_line=other.lines[1])
    commits = [hexadecimal(draw, 7) for _ in range(5)]
    talk.call("run_command", _log(draw, commits), command=f"git log --oneline -5 {here.path}")
    talk.assistant(f"The mistake came with {commits[1]}; I look at what it changed.")
    _later(talk, modules, commits, broken, command, branch)
    talk.user("Great, thank you.")
    talk.assistant("You're welcome.")
    return talk.row(name)


def _later(
    talk: Transcript, modules: list[_Module], commits: list[str], broken: str, command: str, branch: str
) -> None:
    here, other, third, _ = modules
    draw = talk.draw
    talk.call("show_commit", f"commit {commits[1]}\n    {here.path} | 4 +-\n    {other.path} | 2 +-", commit=commits[1])
    talk.call("edit_file", f"1 change made in {here.path}", path=here.path, line=here.lines[0], function=broken)
    talk.call("run_command", "4 passed in 0.31s", command=command)
    talk.user(
        "Now do the same for the other callers.",
        f"Good. Please check {other.functions[0]} and {third.functions[0]} too.",
    )
    for module in draw.sample((other, third), draw.choice((1, 2))):
        function = draw.choice(module.functions[:2])
        talk.call(
            "search",
            f"{module.path}:{module.lines[0]}: def {function}(self, rows):",
            pattern=function,
            path=module.path,
        )
        talk.call(
            "edit_file", f"1 change made in {module.path}", path=module.path, line=module.lines[0], function=function
        )
        talk.call("run_command", "3 passed in 0.12s", command=f"pytest -q {module.test}", file=module.test)
    talk.assistant("All of them are fixed. Shall I commit, and mention the commit that brought it in?")
    talk.user("Yes, commit and push it.")
    talk.call(
        "commit",
        f"[{branch} {hexadecimal(draw, 7)}] Fix {broken}",
        branch=branch,
        fixes=commits[1],
        files=[here.path, other.path],
    )
    if draw.random() < 0.5:
        talk.call(
            "blame", f"{commits[0]} ({draw.choice(_AUTHORS)}) {here.functions[2]}", path=here.path, commit=commits[0]
        )


def _module(draw: random.Random, package: str, part: str) -> _Module:
    functions = tuple(
        f"{verb}_{draw.choice(_NOUNS)}{draw.choice(('', 's', '_rows'))}" for verb in draw.sample(_VERBS, 4)
    )
    lines = tuple(sorted(draw.sample(range(12, 400), 4)))
    return _Module(f"{package}/{part}/service.py", f"tests/{part}/test_service.py", functions, lines)


def _listing(draw: random.Random, package: str, modules: list[_Module]) -> str:
    others = [f"{package}/{part}/models.py" for part in draw.sample(_PARTS, 5)]
    names = sorted({*(module.path for module in modules), *others, f"{package}/__init__.py", f"{package}/settings.py"})
    return "\n".join([*names, *(module.test for module in modules)])


def _found(function: str, modules: list[_Module]) -> str:
    first, second = modules
    return (
        f"{first.path}:{first.lines[0]}:    def {function}(self, rows, *, strict=False):\n"
        f"{second.path}:{second.lines[2]}:        total = self.service.{function}(rows)\n"
        f"{first.test}:{first.lines[1]}:    assert {function}([]) == 0\n3 matches"
    )


def _source(module: _Module) -> str:
    shown = []
    for function, line in zip(module.functions, module.lines, strict=True):
        shown += [
            f"{line:>4}      def {function}(self, rows, *, strict=False):",
            f'{line + 1:>4}          """Do it for all rows, the oldest first, and say how many there were."""',
            f"{line + 2:>4}          seen = dict.fromkeys(row.key for row in rows)",
            f"{line + 3:>4}          if strict and not seen:",
            f'{line + 4:>4}              raise KeyError("nothing to do")',
            f"{line + 5:>4}          return sum(self.rates[key] for key in seen)",
        ]
    return "\n".join(shown)


def _failing(draw: random.Random, module: _Module, function: str) -> str:
    return (
        f"F...                                                       [100%]\n"
        f"=================================== FAILURES ===================================\n"
        f"{module.test}:{module.lines[1]}: in test_{function}\n    assert {function}([]) == 0\n"
        f"{module.path}:{module.lines[0] + 5}: in {function}\nE   KeyError: 'nothing to do'\n"
        f"FAILED {module.test}::test_{function} - KeyError\n1 failed, 3 passed in 0.{draw.randint(10, 99)}s"
    )


def _log(draw: random.Random, commits: list[str]) -> str:
    subjects = ("Sum rates by key", "Read strict from the settings", "Rename rows", "Add types", "Move the service")
    return "\n".join(f"{commit} {subject}" for commit, subject in zip(commits, draw.sample(subjects, 5), strict=True))

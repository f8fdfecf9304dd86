"""Every pattern of the app as work whose growth can be measured."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import app
import worker
from app.core.text.patterns import Capped, known
from tests.unit.growth import ROOT, STEPS, Pump
from tests.unit.pumps import pumps_of

_WAYS: Final = {
    "search": "search", "finditer": "search", "findall": "search", "sub": "search", "subn": "search",
    "split": "search", "match": "match", "fullmatch": "fullmatch",
}  # fmt: skip
"""The way, one of three, in which a method goes through a text."""
_EVERY: Final = frozenset(_WAYS.values())
_NO_WAY: Final = frozenset({"pattern", "flags", "groups", "groupindex"})


@dataclass(frozen=True, slots=True)
class PatternWork:
    """One pattern, tried in the ways in which it is used; with ``search`` all places are looked for."""

    name: str
    source: str
    flags: int
    largest: int
    most: int
    count: int
    ways: tuple[str, ...]

    def pumps(self) -> Sequence[Pump]:
        return pumps_of(self.source, self.flags, self.count)

    def run(self, text: str) -> object:
        pattern = re.compile(self.source, self.flags)
        if "fullmatch" in self.ways:
            pattern.fullmatch(text)
        if "match" in self.ways:
            pattern.match(text)
        if "search" in self.ways:
            deque(pattern.finditer(text), maxlen=0)
        return None


def works(argument: Any) -> list[PatternWork]:
    """The works that the parent has collected, so that a child need not import the app."""
    return [
        PatternWork(name, source, flags, largest, most, count, tuple(ways))
        for name, source, flags, largest, most, count, ways in argument
    ]


def collected(*, largest: int, count: int) -> list[list[object]]:
    """The argument of ``works``: every pattern of the app, with the length and the number of its texts."""
    modules = list(_modules())
    ways = _ways(modules)
    return [
        [
            f"{one.place} {one.pattern.pattern[:200]!r}",
            one.pattern.pattern,
            one.pattern.flags & ~re.UNICODE,
            min(largest, one.longest or largest),
            one.longest or STEPS[-1] * largest,
            count,
            sorted(ways.get(id(one.pattern)) or _ways_in(one.place.partition(":")[0])),
        ]
        for one in known().values()
        if one.place.startswith(("app.", "worker."))
    ]


def _modules() -> Iterator[ModuleType]:
    """Every module of the app and of the worker, imported."""
    for root in (app, worker):
        for found in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def _ways(modules: Iterable[ModuleType]) -> Mapping[int, frozenset[str]]:
    """For each pattern that has a name in a module, the ways in which it is used there and where it is imported."""
    found: defaultdict[int, set[str]] = defaultdict(set)
    for module in modules:
        named = {
            name: value.pattern if isinstance(value, Capped) else value
            for name, value in vars(module).items()
            if isinstance(value, re.Pattern | Capped)
        }
        uses = uses_of(named, _tree(module)) if named else {}
        for name, pattern in named.items():
            found[id(pattern)] |= uses[name]
    return {pattern: frozenset(ways) for pattern, ways in found.items() if ways}


def uses_of(names: Iterable[str], tree: ast.Module) -> dict[str, set[str]]:
    """The ways in which a module uses each name; every way if the name is handed on."""
    uses: dict[str, set[str]] = {name: set() for name in names}
    told: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in uses:
            told.add(id(node.value))
            if node.attr not in _NO_WAY:
                uses[node.value.id] |= {_WAYS[node.attr]} if node.attr in _WAYS else _EVERY
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in uses and id(node) not in told:
            uses[node.id] |= _EVERY
    return uses


@cache
def _ways_in(module: str) -> frozenset[str]:
    """For a pattern without a name of its own, all ways in which the module that compiles it uses patterns."""
    called = {node.attr for node in ast.walk(_tree(sys.modules[module])) if isinstance(node, ast.Attribute)}
    return frozenset(_WAYS[attribute] for attribute in called & set(_WAYS)) or _EVERY


@cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(Path(str(module.__file__)).read_text("utf-8"))


_CALLS: Final = frozenset(
    {"compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn", "template", "Scanner"}
)


def compiled_by_hand(source: str) -> list[str]:
    """The places at which a module makes a pattern without the helper."""
    if not any(f"{word} {library}" in source for word in ("import", "from") for library in ("re", "regex")):
        return []
    return [ast.unparse(node) for node in ast.walk(ast.parse(source)) if _is_by_hand(node)]


def _is_by_hand(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.value.id == "re" and node.attr in _CALLS
    if isinstance(node, ast.ImportFrom):
        return node.module in {"re", "regex", "re2"} and any(one.name in {*_CALLS, "*"} for one in node.names)
    if isinstance(node, ast.Import):
        return any(one.name in {"regex", "re2"} or (one.name == "re" and one.asname) for one in node.names)
    return False


_HELPERS = ("compiled", "capped", "capped_later")


def compiled_while_running(source: str) -> list[str]:
    """Functions in which a module calls the helper; patterns that the helper caches must not depend on texts."""
    if not any(f"{helper}(" in source for helper in _HELPERS):
        return []
    return [
        function.name
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _HELPERS
    ]


def sources() -> Iterator[tuple[str, str]]:
    """The (path, text) of every module of the app and of the worker."""
    for folder in ("app", "worker"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text("utf-8")

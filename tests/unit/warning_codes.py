"""The warnings that the code can give a context or a reply, without what stands behind a colon."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
CALLS: Final = {"warned", "with_warnings", "with_warning"}
NAMES: Final = {"warnings", "_warnings", "cut_off"}
"""What holds warnings: variables, arguments, and functions that return them."""
CODE: Final = re.compile(r"[a-z]+(?:_[a-z]+)+(?=:|$)")


@cache
def warning_codes() -> frozenset[str]:
    """Every code, from the literals and the constants that are given as warnings."""
    found: set[str] = set()
    for folder in ("core", "usecases"):
        for file in sorted((ROOT / "app" / folder).rglob("*.py")):
            source = file.read_text(encoding="utf-8")
            if "warn" in source or "cut_off" in source:
                name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
                found |= set(codes_in(source, import_module(name.removesuffix(".__init__"))))
    return frozenset(found)


def codes_in(source: str, module: ModuleType) -> Iterator[str]:
    """The codes in the source of a module."""
    for place in _places(ast.parse(source)):
        yield from _codes_of(place, module)


def _codes_of(place: ast.AST, module: ModuleType) -> Iterator[str]:
    match place:
        case ast.Constant(value=str(text)):
            yield from CODE.findall(text)
        case ast.Name(id=name) if name.lstrip("_").isupper():
            yield from _texts(getattr(module, name))
        case ast.JoinedStr(values=[first, *_]):  # what stands behind a colon is no code
            yield from _codes_of(first, module)
        case ast.IfExp(body=body, orelse=orelse):
            yield from (*_codes_of(body, module), *_codes_of(orelse, module))
        case _:
            for part in ast.iter_child_nodes(place):
                yield from _codes_of(part, module)


def _places(tree: ast.AST) -> Iterator[ast.AST]:
    """Expressions that are warnings."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=called), args=args) if called in CALLS:
                yield from args
            case ast.keyword(arg=str(name), value=value) if name in NAMES:
                yield value
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in NAMES:
                yield value
            case ast.FunctionDef(name=name, body=body) if name in NAMES:
                yield from (
                    one.value for line in body for one in ast.walk(line) if isinstance(one, ast.Return) and one.value
                )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from CODE.findall(value)
    elif isinstance(value, Mapping):
        for texts in value.values():
            yield from (code for text in texts for code in CODE.findall(text))

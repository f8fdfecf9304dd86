"""Counts what the code consists of: lines by package, tables, circular imports, caches and patterns.

``python -m bench.structure [--root .]`` counts every Python file under ``app`` and ``worker``. A line of code is a line
with a token of code: blank lines, comments and docstrings are left out, but every line of another string counts. Tables
are counted separately: TOML files (lines that are neither blank nor a comment) and, within the code, literals of five
lines and more that are assigned at the top of a module. A unit of the core is a package or a module directly below
``app/core`` or ``app/domain``; imports below ``if TYPE_CHECKING`` count as imports.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from bench.report import print_table, write_json

ROOTS: Final = ("app", "worker")
CORES: Final = ("app/core", "app/domain")
"""Folders that may have the pure code: the first one that exists does."""
_TABLE_LINES: Final = 5
_NO_CODE: Final = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
    }
)
_CACHES: Final = frozenset({"lru_cache", "cache"})
_KEEPS: Final = "memoized"
"""The decorator of ``core/text/memo.py``, whose functions share one cache that is bounded in bytes."""
_BUILDERS: Final = frozenset({"frozenset", "set", "dict", "tuple", "MappingProxyType", "split"})

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One file in numbers."""

    path: str
    code: int
    table: int
    """Lines of code that belong to tables."""
    caches: int
    text_caches: int
    """Caches of functions with a text parameter."""
    memoized: int
    """Functions whose results are kept in the common cache for texts."""
    patterns: int
    """Calls of ``re.compile``."""

    @property
    def package(self) -> str:
        """The module's folder, down to the third level."""
        return "/".join(Path(self.path).parent.parts[:3])


@dataclass(frozen=True, slots=True, kw_only=True)
class Imports:
    """How the units of the core import each other."""

    core: str
    units: int
    edges: int
    """Pairs of units where the first imports the second."""
    module_imports: int
    """Imports between modules of different units."""
    cycles: tuple[tuple[str, ...], ...]
    """Units that reach each other, the largest circle first."""


def measured(path: Path, root: Path) -> Module:
    """The numbers of one file. Raises ``SyntaxError`` if it is not Python."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    lines = code_lines(source, tree)
    functions = [(node, _decorators(node)) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    caches = [node for node, decorators in functions if decorators & _CACHES]
    return Module(
        path=str(path.relative_to(root)),
        code=len(lines),
        table=len(lines & set(_table_lines(tree))),
        caches=len(caches),
        text_caches=sum(_takes_text(node) for node in caches),
        memoized=sum(_KEEPS in decorators for _, decorators in functions),
        patterns=sum(_compiles(node) for node in ast.walk(tree)),
    )


def code_lines(source: str, tree: ast.Module) -> set[int]:
    """The numbers of the lines that hold code."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            found.update(range(token.start[0], token.end[0] + 1))
    return found - set(_docstring_lines(tree))


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    """The lines of docstrings, and of strings that explain the attribute or constant above them."""
    for node in ast.walk(tree):
        for statement in node.body if isinstance(node, Documented) else []:
            match statement:
                case ast.Expr(value=ast.Constant(value=str())):
                    yield from range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)


def _table_lines(tree: ast.Module) -> Iterator[int]:
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _is_literal(node.value):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if len(lines) >= _TABLE_LINES:
                yield from lines


def _is_literal(node: ast.expr) -> bool:
    """Whether an expression is literal data: literals in containers, perhaps split or frozen."""
    match node:
        case ast.Constant():
            return True
        case ast.Tuple(elts=within) | ast.List(elts=within) | ast.Set(elts=within):
            parts = within
        case ast.Dict(keys=keys, values=values):
            parts = [*(key for key in keys if key is not None), *values]
        case ast.Starred(value=value):
            parts = [value]
        case ast.Call(func=ast.Name(id=name), args=args) if name in _BUILDERS:
            parts = args
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=args) if name in _BUILDERS:
            parts = [value, *args]
        case _:
            return False
    return all(map(_is_literal, parts))


def _decorators(node: ast.FunctionDef) -> set[str]:
    return {_name_of(each.func if isinstance(each, ast.Call) else each) for each in node.decorator_list}


def _name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _takes_text(node: ast.FunctionDef) -> bool:
    annotations = (each.annotation for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
    return any(
        isinstance(part, ast.Name) and part.id == "str"
        for annotation in annotations
        if annotation is not None
        for part in ast.walk(annotation)
    )


def _compiles(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and ast.unparse(node.func) == "re.compile"
    )


def imports_of(root: Path) -> Imports:
    """The imports between the units of the core. Raises ``FileNotFoundError`` if there is no core."""
    core = next((name for name in CORES if (root / name).is_dir()), None)
    if core is None:
        raise FileNotFoundError(f"none of {', '.join(CORES)} is in {root}")
    prefix = core.replace("/", ".")
    modules = {_dotted(path, root): path for path in sorted((root / core).rglob("*.py"))}
    between = {
        (name, target)
        for name, path in modules.items()
        for target in _imported(ast.parse(path.read_text(encoding="utf-8")), modules)
        if _unit(name, prefix) != _unit(target, prefix)
    }
    edges = {(_unit(name, prefix), _unit(target, prefix)) for name, target in between}
    units = {_unit(name, prefix) for name in modules} - {""}
    return Imports(
        core=core,
        units=len(units),
        edges=len(edges),
        module_imports=len(between),
        cycles=tuple(cycles(units, edges)),
    )


def _dotted(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _unit(name: str, prefix: str) -> str:
    return name.removeprefix(prefix).removeprefix(".").partition(".")[0]


def _imported(tree: ast.Module, modules: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                if below in modules or node.module in modules:
                    yield below if below in modules else node.module


def cycles(units: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """The strongly connected components with more than one unit, the largest first."""
    reached = {unit: {unit} for unit in units}
    pairs = set(edges)
    while True:
        before = sum(map(len, reached.values()))
        for source, target in pairs:
            reached[source] |= reached[target]
        if sum(map(len, reached.values())) == before:
            break
    found = {tuple(sorted(other for other in there if unit in reached[other])) for unit, there in reached.items()}
    return sorted((each for each in found if len(each) > 1), key=lambda each: (-len(each), each))


def toml_lines(paths: Iterable[Path]) -> int:
    """Lines of TOML files that are neither blank nor a comment."""
    lines = (line.strip() for path in paths for line in path.read_text(encoding="utf-8").splitlines())
    return sum(bool(line) and not line.startswith("#") for line in lines)


def by_package(modules: Iterable[Module]) -> dict[str, dict[str, int]]:
    """Sums by folder."""
    found: dict[str, Counter[str]] = {}
    for module in modules:
        sums = found.setdefault(module.package, Counter())
        sums.update(modules=1, code=module.code, table=module.table, patterns=module.patterns)
        sums.update(caches=module.caches, text_caches=module.text_caches, memoized=module.memoized)
    return {name: dict(sums) for name, sums in sorted(found.items())}


def main() -> int:
    """Count, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench.structure", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1])
    root = parser.parse_args().root
    paths = [path for name in ROOTS for path in sorted((root / name).rglob("*.py"))]
    modules = [measured(path, root) for path in paths]
    packages, imports = by_package(modules), imports_of(root)
    columns = ("modules", "code", "table", "patterns", "caches", "text_caches", "memoized")
    total = {name: sum(package.get(name, 0) for package in packages.values()) for name in columns}
    core = {
        name: sum(
            package.get(name, 0) for path, package in packages.items() if f"{path}/".startswith(f"{imports.core}/")
        )
        for name in columns
    }
    toml = {name: toml_lines(sorted((root / name).rglob("*.toml"))) for name in ROOTS}
    summed = {**packages, imports.core + ", all": core, "all": total}
    print_table(
        ["package", *columns], [[name, *(str(sums.get(each, 0)) for each in columns)] for name, sums in summed.items()]
    )
    print(f"\ntables in TOML: {sum(toml.values())} lines")
    print(f"{imports.core}: {imports.units} units, {imports.edges} edges, {imports.module_imports} imports of modules")
    for cycle in imports.cycles:
        print(f"a circle of {len(cycle)}: {', '.join(cycle)}")
    found = {"total": total, "core": core, "toml_lines": sum(toml.values()), "imports": asdict(imports)}
    write_json("structure", {**found, "packages": packages})
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Mutation operators: small defects in one line, found in the syntax tree of a module.

A mutation names its line by its text, and by its number among equal lines of the file. So the same list fits an older
and a newer version of the code, as long as both have the line.
"""

from __future__ import annotations

import ast
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One line of one file, and its replacement."""

    area: str
    file: str
    """The path from the root of the tree, with slashes."""
    kind: str
    old: str
    new: str
    occurrence: int
    """The line's number among the equal lines of the file, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    """A replacement within one line; positions are in bytes of UTF-8, as in the syntax tree."""

    kind: str
    line: int
    start: int
    end: int
    text: str


_BOUNDARIES: Final[Mapping[type[ast.cmpop], str]] = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_OPPOSITES: Final[Mapping[type[ast.cmpop], str]] = {
    ast.Lt: ">=",
    ast.LtE: ">",
    ast.Gt: "<=",
    ast.GtE: "<",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_OTHER_EXTREME: Final = {"min": "max", "max": "min"}
_LOGGERS: Final = frozenset({"log", "_log", "logger", "_logger", "logging", "warnings"})
_WITHOUT_EFFECT: Final = frozenset(
    {"description", "expire_on_commit", "frozen", "kw_only", "maxsize", "repr", "slots", "strict", "title"}
)
"""Keyword arguments whose values change nothing that a caller can see."""
_CLOCKS: Final = frozenset({"now", "monotonic", "clock_timestamp", "transaction_timestamp"})
"""Functions that return the time. No two moments are equal, so a changed boundary would make no difference."""


class _Edits(ast.NodeVisitor):
    """Collects edits; leaves out annotations, decorators, texts, assertions, log calls and what is raised."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self.found: list[_Edit] = []
        self._lines = lines
        self._in_constructor = False

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            if type(operator) in _BOUNDARIES and not (_asks_a_clock(left) or _asks_a_clock(right)):
                self._between("boundary", left, right, _BOUNDARIES[type(operator)])
            self._between("comparison", left, right, _OPPOSITES[type(operator)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between("logic", left, right, "or" if isinstance(node.op, ast.And) else "and")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Add | ast.Sub) and not (_is_text(node.left) or _is_text(node.right)):
            self._between("arithmetic", node.left, node.right, "-" if isinstance(node.op, ast.Add) else "+")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._removed(node)
        if isinstance(node.op, ast.Add | ast.Sub):
            self._between("arithmetic", node.target, node.value, "-=" if isinstance(node.op, ast.Add) else "+=")
        self.visit(node.value)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.Invert) and _is_in_one_line(node):
            self._replaced("not", node, self._source(node.operand))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replaced("truth", node, str(not node.value))
        elif isinstance(node.value, int | float):
            for step in (1, -1):
                self._replaced("number", node, f"{node.value + step:.6g}" if node.value % 1 else str(node.value + step))

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in _OTHER_EXTREME:
            self._replaced("extreme", node.func, _OTHER_EXTREME[node.func.id])
        self.visit(node.func)
        for argument in node.args:
            self.visit(argument)
        for keyword in node.keywords:
            if keyword.arg not in _WITHOUT_EFFECT:
                self.visit(keyword.value)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self._replaced("return", node, "return None")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        self._unconditional(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._unconditional(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._unconditional(test)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) or _is_logging(node.value):
            return
        if not isinstance(node.value, ast.Yield | ast.YieldFrom):
            self._removed(node)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        changes_object = all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
        if changes_object and not self._in_constructor:
            self._removed(node)
        if not any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
            self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._removed(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._removed(node)

    def visit_Break(self, node: ast.Break) -> None:
        self._removed(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Skip it: an assertion is for the type checker."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skip it: such texts are for people."""

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        around, self._in_constructor = self._in_constructor, node.name == "__init__"
        for statement in node.body:
            self.visit(statement)
        self._in_constructor = around

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - the visitor's name

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def _unconditional(self, test: ast.expr) -> None:
        if not any(isinstance(part, ast.NamedExpr) for part in ast.walk(test)):
            self._replaced("condition", test, "True")

    def _removed(self, node: ast.stmt) -> None:
        self._replaced("statement", node, "pass")

    def _between(self, kind: str, left: ast.expr, right: ast.expr, text: str) -> None:
        """Replace the operator between two operands, which parentheses may enclose."""
        if left.end_lineno != right.lineno or left.end_lineno is None or left.end_col_offset is None:
            return
        start = left.end_col_offset
        gap = re.match(rb"[\s)]*(.+?)[\s(]*\Z", self._lines[right.lineno - 1][start : right.col_offset])
        if gap is not None:
            self.found.append(
                _Edit(kind=kind, line=right.lineno, start=start + gap.start(1), end=start + gap.end(1), text=text)
            )

    def _replaced(self, kind: str, node: ast.stmt | ast.expr, text: str) -> None:
        if _is_in_one_line(node) and node.end_col_offset is not None:
            self.found.append(
                _Edit(kind=kind, line=node.lineno, start=node.col_offset, end=node.end_col_offset, text=text)
            )

    def _source(self, node: ast.expr) -> str:
        return self._lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode()


def _is_in_one_line(node: ast.stmt | ast.expr) -> bool:
    return node.lineno == node.end_lineno


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _asks_a_clock(node: ast.expr) -> bool:
    calls = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(isinstance(call, ast.Name | ast.Attribute) and _name(call) in _CLOCKS for call in calls)


def _name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def _is_logging(node: ast.expr) -> bool:
    while isinstance(node, ast.Call | ast.Attribute | ast.Await):
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id in _LOGGERS


def mutations_of(source: str, *, file: str, area: str) -> list[Mutation]:
    """Every mutation of a module, in the order of its lines; each can be parsed and differs from the source."""
    lines = source.split("\n")
    visitor = _Edits([line.encode() for line in lines])
    visitor.visit(ast.parse(source))
    return list(_mutations(lines, visitor.found, file=file, area=area))


def _mutations(lines: Sequence[str], edits: Sequence[_Edit], *, file: str, area: str) -> Iterator[Mutation]:
    seen: set[tuple[int, str]] = set()
    for edit in sorted(edits, key=lambda edit: (edit.line, edit.start)):
        old = lines[edit.line - 1]
        raw = old.encode()
        new = (raw[: edit.start] + edit.text.encode() + raw[edit.end :]).decode()
        if new == old or (edit.line, new) in seen:
            continue
        seen.add((edit.line, new))
        occurrence = lines[: edit.line].count(old)
        mutation = Mutation(area=area, file=file, kind=edit.kind, old=old, new=new, occurrence=occurrence)
        if _can_be_parsed("\n".join([*lines[: edit.line - 1], new, *lines[edit.line :]])):
            yield mutation


def _can_be_parsed(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def line_of(source: str, mutation: Mutation) -> int | None:
    """The number of the mutation's line in this source, from 1; ``None`` when the line is gone."""
    places = [number for number, line in enumerate(source.split("\n"), start=1) if line == mutation.old]
    return places[mutation.occurrence - 1] if len(places) >= mutation.occurrence else None


def mutated(source: str, mutation: Mutation) -> str | None:
    """The source with the mutation in it; ``None`` when its line is gone."""
    line = line_of(source, mutation)
    if line is None:
        return None
    lines = source.split("\n")
    lines[line - 1] = mutation.new
    return "\n".join(lines)


def chosen(candidates: Sequence[Mutation], *, count: int, seed: int) -> list[Mutation]:
    """``count`` of the candidates: equally many of each area as far as possible, the kinds in turn, one for each line.

    The same candidates, count and seed give the same choice.
    """
    areas = sorted({one.area for one in candidates})
    waiting = {
        area: _in_turn([one for one in candidates if one.area == area], random.Random(f"{seed} {area}"))
        for area in areas
    }
    taken: list[Mutation] = []
    while len(taken) < count and any(waiting.values()):
        for area in areas:
            if waiting[area] and len(taken) < count:
                taken.append(waiting[area].pop(0))
    return sorted(taken, key=lambda one: (one.area, one.file, one.old, one.occurrence))


def _in_turn(candidates: Sequence[Mutation], chance: random.Random) -> list[Mutation]:
    """The candidates in random order, in rounds with one mutation of each kind; each line keeps only its first one."""
    order = chance.sample(candidates, len(candidates))
    used: Counter[str] = Counter()
    lines: set[tuple[str, str, int]] = set()
    rounds: list[tuple[int, Mutation]] = []
    for one in order:
        line = (one.file, one.old, one.occurrence)
        if line not in lines:
            lines.add(line)
            rounds.append((used[one.kind], one))
            used[one.kind] += 1
    return [one for _, one in sorted(rounds, key=lambda pair: pair[0])]


def definition_lines(source: str) -> frozenset[int]:
    """Numbers of the lines outside of functions' bodies: if they run at all, they run when the module is imported."""
    inside: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside.update(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(range(1, source.count("\n") + 2)) - inside


def statement_lines(source: str, line: int) -> range:
    """The lines of the smallest statement that has the line; of a compound statement only its head."""
    best = range(line, line + 1)
    start = 0
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        end = body[0].lineno - 1 if body else (node.end_lineno or node.lineno)
        if node.lineno <= line <= end and node.lineno > start:
            start, best = node.lineno, range(node.lineno, end + 1)
    return best

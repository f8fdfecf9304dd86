"""Presets are data, which no linter proves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from app.core.model.policies.resolving import PRESETS

ROOT = Path(__file__).parents[2]
BRANCH_ON_PRESET = re.compile(r"(?:if|elif|match|case)[^#\n]*preset(?:\.name)? *(?:==|in\b)")


NAMES_STAND_IN: Final = {
    "app/core/model/policies/presets.py",
    "app/core/model/conversation.py",  # the default of a stored row, and of a request
    "app/core/model/records.py",
    "app/http/requests.py",
}
SCHEMAS_STAND_IN: Final = {
    "app/core/model/schemas/handoff.py",
    "app/core/model/schemas/research.py",
    "app/core/model/policies/policy.py",
}
"""Two state schemas have the names of the presets that use them."""


def presets_named(source: str) -> set[str]:
    """The names of presets that are in a source as strings."""
    strings = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    return {found for found in strings if isinstance(found, str) and found in PRESETS}


def may_decide(source: str) -> bool:
    """Whether a source may contain what ``preset_decisions`` or ``presets_named`` look for; parsing it takes longer."""
    return any(name in source for name in (*PRESETS, ".preset", ".strategy"))


def preset_decisions(source: str) -> Iterator[str]:
    """Code that asks which preset it is: a comparison or a case with a name, or a comparison of a field with one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [inner for side in (node.left, *node.comparators) for inner in ast.walk(side)]
            names = any(isinstance(one, ast.Constant) and one.value in PRESETS for one in sides)
            fields = any(isinstance(one, ast.Attribute) and one.attr in {"preset", "strategy"} for one in sides)
            if names or fields:
                yield ast.unparse(node)
        elif isinstance(node, ast.match_case) and presets_named(ast.unparse(ast.Match(ast.Name("it"), [node]))):
            yield ast.unparse(node.pattern)


def test_presets_are_data() -> None:
    sources = [*ROOT.glob("app/**/*.py"), *ROOT.glob("worker/**/*.py")]
    found = [str(path.relative_to(ROOT)) for path in sources if BRANCH_ON_PRESET.search(path.read_text())]

    assert len(sources) > 50
    assert found == []
    assert BRANCH_ON_PRESET.search('if conversation.preset == "semantic":')


def test_nothing_asks_which_preset_it_is() -> None:
    sources = {str(path.relative_to(ROOT)): path.read_text() for path in ROOT.glob("app/**/*.py")}
    assert len(sources) > 200
    sources = {path: source for path, source in sources.items() if may_decide(source)}
    named = {path: presets_named(source) for path, source in sources.items()}

    assert {path: found for path, source in sources.items() if (found := list(preset_decisions(source)))} == {}
    assert {path for path, names in named.items() if names} == NAMES_STAND_IN | SCHEMAS_STAND_IN
    assert set().union(*(named[path] for path in SCHEMAS_STAND_IN)) == {"handoff", "research"}
    assert named["app/core/model/policies/presets.py"] == set(PRESETS)


@pytest.mark.parametrize(
    "source",
    [
        'x = a if conversation.preset == "semantic" else b',
        'if name in {"turn_end", "handoff"}: pass',
        'keep = "sessions" != strategy',
        "if row.strategy == DEFAULT_PRESET: pass",
        'match preset:\n    case "research": pass',
    ],
)
def test_a_question_of_that_kind_would_be_found(source: str) -> None:
    """The control of the test above."""
    assert list(preset_decisions(source))
    assert presets_named('RULES = {"hierarchical": 1}') == {"hierarchical"}

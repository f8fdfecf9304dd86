"""No reply makes the page's patterns slow: each is run by Node on texts made to slow it down."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any, Final

import pytest

from tests.servers import ROOT

CHAT: Final = ROOT / "web" / "src" / "chat"
MARKERS: Final = (CHAT / "markers.ts").read_text(encoding="utf-8")
BLOCKS: Final = (CHAT / "blocks.ts").read_text(encoding="utf-8")
PATTERNS: Final = dict(re.findall(r"^const ([A-Z]+) =\s*(/.+/[a-z]*);$", MARKERS, re.MULTILINE))
UNITS: Final = (" [^", "`a ", "~~~\n", "\\( ", "\\[\n", "$$ ", " $a", "a\n\n    b\n", " ", "[a →L1:")
SECONDS: Final = """
const [patterns, texts] = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const slow = [];
for (const source of patterns) for (const text of texts) {
  const [, body, flags] = /^[/]([^]*)[/]([a-z]*)$/.exec(source);
  const seconds = () => {
    const began = performance.now();
    text.replace(new RegExp(body, flags), '');
    return (performance.now() - began) / 1000;
  };
  if (seconds() > 0.5 && seconds() > 0.5) slow.push([body.slice(0, 60), text.slice(0, 20)]);
}
console.log(JSON.stringify(slow));
"""
BOMBS: Final = ("_a*", "*a", "`|`|", "a\n-\n", "a\n=\n", "=\n", ">a\nb\n", "[^a] ", "a](", "|_a*\n", "- _a*\n")
"""Markdown that the page's library takes seconds for, with the square of its length."""

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs the Debian package nodejs")


def by_node(script: str, given: object) -> Any:
    """What a script of Node prints as JSON, given a value as JSON."""
    done = subprocess.run(["node", "-e", script], input=json.dumps(given), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_no_pattern_of_the_page_takes_more_than_linear_time() -> None:
    """A line of 20 000 digits before indented code took over a second when its length counted twice."""
    texts = [f"{(unit * 20_000)[:20_000]}\n\n    x" for unit in (*UNITS, " " + "1" * 20_000)]
    assert {"FORMULA", "MARKER"} <= PATTERNS.keys()
    assert by_node(SECONDS, [list(PATTERNS.values()), texts]) == []


def test_what_would_hold_the_page_up_is_not_set_as_markdown() -> None:
    found = re.search(r"^const SIGN = .*?^export (const isHeavy.*?;)$", BLOCKS, re.MULTILINE | re.DOTALL)
    assert found
    script = re.sub(r": (?:string|boolean)\b|^export ", "", found.group(), flags=re.MULTILINE)
    script += "\nconsole.log(JSON.stringify(JSON.parse(require('fs').readFileSync(0, 'utf8')).map(isHeavy)));"
    honest = [page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").rglob("*.md"))]
    honest.append("\n".join(f"| **{n}** | [a](b) | `c_d` | *e* |" for n in range(200)))
    honest.append("\n".join(f"- **{n}**: [a](https://b.example/{n})" for n in range(300)))
    assert not any(by_node(script, honest))
    assert all(by_node(script, [(bomb * 30_000)[:30_000] for bomb in BOMBS]))

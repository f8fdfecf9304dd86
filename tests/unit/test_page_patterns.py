"""No reply makes the page's patterns slow: each is run by Node on texts made to slow it down."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Final

import pytest

from tests.servers import ROOT

MARKERS: Final = (ROOT / "web" / "src" / "chat" / "markers.ts").read_text(encoding="utf-8")
PATTERNS: Final = dict(re.findall(r"^const ([A-Z]+) =\s*(/.+/[a-z]*);$", MARKERS, re.MULTILINE))
UNITS: Final = (" [^", "`a ", "~~~\n", "\\( ", "\\[\n", "$$ ", " $a", "a\n\n    b\n", " ", "[a →L1:")
SECONDS: Final = """
const [patterns, texts] = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const slow = [];
for (const source of patterns) for (const text of texts) {
  const [, body, flags] = /^[/]([^]*)[/]([a-z]*)$/.exec(source);
  const began = performance.now();
  text.replace(new RegExp(body, flags), '');
  if (performance.now() - began > 1000) slow.push([body.slice(0, 60), text.slice(0, 20)]);
}
console.log(JSON.stringify(slow));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs the Debian package nodejs")
def test_no_pattern_of_the_page_takes_more_than_linear_time() -> None:
    """A line of 30 000 digits before indented code took over two seconds when its length counted twice."""
    texts = [f"{(unit * 30_000)[:30_000]}\n\n    x" for unit in (*UNITS, " " + "1" * 30_000)]
    given = json.dumps([list(PATTERNS.values()), texts])
    told = subprocess.run(["node", "-e", SECONDS], input=given, capture_output=True, text=True, check=True)
    assert {"FORMULA", "MARKER"} <= PATTERNS.keys()
    assert json.loads(told.stdout) == []

"""No text makes a pattern slow: all are compiled in one place, and each is measured on texts made to slow it down."""

from __future__ import annotations

from typing import Final

import pytest

from app.core.text.patterns import any_literal, capped, known
from tests.unit.growing_patterns import collected, compiled_by_hand, compiled_while_running, sources
from tests.unit.growth import Finding, measured

_WORKS: Final = "tests.unit.growing_patterns:works"
_TOLD: Final = 30

BY_HAND: Final = {
    "app/core/text/patterns.py": "the helper itself",
    "app/devserver/postgres.py": "stands alone; reads lines of the log of the server that it starts",
    "app/devserver/servers.py": "stands alone; reads the path of its own folder",
}
"""Modules that may use ``re`` directly, and why no text from outside reaches their patterns."""

FROM_TABLES: Final = {
    "app/core/validation/orders.py": {"_opening_pattern"},
    "app/core/text/cue_patterns.py": {"__init__"},
    "app/core/anchors/tables.py": {"_table", "_any_number_of"},
    "app/core/model/policies/goals.py": {"__init__"},
    "app/core/retrieval/question_words.py": {"__init__"},
    "app/core/text/languages/combined_words.py": {"pattern_of"},
}
"""Functions that compile patterns of tables, which are read only once, when their module is imported."""


def test_every_pattern_is_compiled_by_the_helper() -> None:
    by_hand = {path: found for path, text in sources() if (found := compiled_by_hand(text)) and path not in BY_HAND}
    assert by_hand == {}
    assert all(compiled_by_hand(text) for path, text in sources() if path in BY_HAND), "no exception is out of date"


@pytest.mark.parametrize(
    "source",
    [
        'import re\n_WORD = re.compile("a")',
        'import re\n\ndef f(text):\n    return re.sub("a", "b", text)',
        "from re import fullmatch",
        "import re as regular",
        "import regex",
    ],
)
def test_control_a_pattern_made_by_hand_is_seen(source: str) -> None:
    assert compiled_by_hand(source)
    assert not compiled_by_hand('import re\nfrom x import compiled\n_WORD = compiled("a", re.IGNORECASE)')


def test_what_is_kept_depends_on_no_text() -> None:
    while_running = {path: set(found) for path, text in sources() if (found := compiled_while_running(text))}
    assert while_running == FROM_TABLES


def test_control_a_pattern_compiled_for_a_text_is_seen() -> None:
    assert compiled_while_running("def f(name):\n    return compiled(name)") == ["f"]
    assert compiled_while_running('_WORD = compiled("a")') == []


def test_words_that_are_known_only_later_leave_nothing_behind() -> None:
    def find(word: str) -> bool:
        return any_literal([word], before=r"(?<!\w)").search(f"a.b {word} c") is not None

    assert find("a.b")
    before = len(known())
    assert all(find(f"word{number}") for number in range(100))
    assert len(known()) == before


def test_a_capped_pattern_sees_no_more_than_its_cap() -> None:
    pattern = capped("b", 3)
    assert pattern.search("aab")
    assert not pattern.search("aaab")
    assert [found.start() for found in pattern.finditer("babab")] == [0, 2]
    assert pattern.sub("x", "babab") == "xaxab"
    assert capped("a+", 3).match("aaaa")


@pytest.mark.parametrize("count", [1, pytest.param(10, marks=pytest.mark.long)])
def test_no_pattern_takes_more_than_linear_time(count: int) -> None:
    findings = measured(_WORKS, collected(largest=12_800, count=count))
    assert not findings, told(findings)


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_no_pattern_takes_more_than_linear_time_on_long_texts_of_many_kinds(part: int) -> None:
    findings = measured(_WORKS, collected(largest=32_000, count=300)[part::4])
    assert not findings, told(findings)


BAD: Final = {
    "words in a row over one run": r"\bport\b\s?(?:number|\w+){0,3}\W{0,3}(?=\S*\d|\S*[./@_]|\S*[A-Z])",
    "nested repetitions": r"[^\W\d]\w*(?:[_/][\w.-]+)+",
    "a search that begins anew": r"\d+[年月]",
    "a search without an end": r'<message role="(\w+)">\n(.*?)\n</message>',
    "blanks at the beginning of lines": r"^\s*(?:```|~~~)",
    "a lazy repetition before blanks": r"\s*/compact(?:\s+(?P<focus>\S.*?))?\s*",
}
"""Slow patterns that once existed, or might have existed."""


@pytest.mark.daily(1)
@pytest.mark.parametrize("kind", BAD)
def test_control_a_slow_pattern_is_found(kind: str) -> None:
    flags = 16 + 8 + 2  # DOTALL, MULTILINE, IGNORECASE
    work = [kind, BAD[kind], flags, 6_400, 25_600, 24, ["fullmatch", "search"]]
    good = ["good", r"(?<!\d)\d++[年月]", flags, 6_400, 25_600, 24, ["fullmatch", "search"]]
    findings = measured(_WORKS, [good, work], limit=1.0)
    assert [found.name for found in findings] == [kind]


def told(findings: list[Finding]) -> str:
    """A line for each finding, the slowest first."""
    slowest = sorted(findings, key=lambda found: -found.seconds)
    lines = [
        f"{one.name}\n    on {one.text}: "
        + ("never ends" if one.slope is None else f"slope {one.slope}, {one.seconds} s")
        for one in slowest[:_TOLD]
    ]
    return "\n".join(["these grow too fast:", *lines])

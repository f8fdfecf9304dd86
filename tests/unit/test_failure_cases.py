"""Every failure case has a test that proves it, and a control that shows that this test can fail."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.cases import (
    CASES,
    LATER,
    MARKER_HALF,
    NOT_CAUSED,
    WITHOUT_CONTROL,
    Marked,
    MisplacedMarkError,
    marked,
    read,
    table,
)
from tests.rows import each
from tests.servers import ROOT

BUILT = [number for number in CASES if number not in LATER]


@cache
def found() -> list[Marked]:
    """Every mark of the tests, read once when a test first asks."""
    return marked()


PROVED = """
import pytest

@pytest.mark.case("4", "5")
def test_it(): ...

class TestIt:
    @pytest.mark.parametrize("broken", [False, pytest.param(True, marks=pytest.mark.control("4"))])
    async def test_broken(self, broken): ...

    @guarded("5", is_control_long=True)
    def test_both(self, is_guarded): ...

    @pytest.mark.skip
    @pytest.mark.control("5")
    def test_never_run(self): ...
"""


@each("number", BUILT)
@each("mark", ["case", "control"])
def test_every_case_has_a_test_and_a_control(number: str, mark: str) -> None:
    tests = [one.test for one in found() if (one.number, one.mark) == (number, mark)]
    is_excused = mark == "control" and number in WITHOUT_CONTROL
    assert bool(tests) != is_excused, f"case {number} ({CASES[number]}) has no {mark}, or needs no excuse for it"


def test_no_test_is_its_own_control() -> None:
    """One variant of a parametrised test may be the control of another."""
    for one in found():
        both = {other.mark for other in found() if other.test == one.test} == {"case", "control"}
        assert one.is_variant or not both, one.test


def test_what_is_left_for_later_shrinks_and_is_not_there_yet() -> None:
    assert not LATER
    assert [one.test for one in found() if one.number in LATER] == [], "take it out of the list: it is there"


def test_the_numbers_are_those_of_the_page() -> None:
    """``31-append`` and ``44a-erased`` are parts of 31 and 44a, and 44a to 44f are all of 44."""
    page = (ROOT / "docs" / "failures.md").read_text("utf-8")
    told = set(re.findall(r"^ *(?:\* )?(\d+[a-z]?)\. ", page, re.MULTILINE))
    assert {int(number) for number in told if number.isdigit()} == set(range(1, 68))
    listed = {number.partition("-")[0] for number in CASES if number != MARKER_HALF}
    assert told == listed | {"44"}


def test_what_no_test_causes_is_told_on_the_page() -> None:
    page = (ROOT / "docs" / "failures.md").read_text("utf-8")
    assert all(what.partition(": ")[2] in page for what in NOT_CAUSED)


def test_control_the_check_sees_what_is_missing() -> None:
    seen = {(one.number, one.mark, one.is_variant): one.test for one in read(PROVED, "x.py")}
    assert seen == {
        ("4", "case", False): "x.py::test_it",
        ("5", "case", False): "x.py::test_it",
        ("4", "control", True): "x.py::TestIt::test_broken",
        ("5", "case", True): "x.py::TestIt::test_both",
        ("5", "control", True): "x.py::TestIt::test_both",
    }, "a control that is skipped shows nothing"


@pytest.mark.parametrize(
    "source",
    [
        'import pytest\n@pytest.mark.case("99")\ndef test_it(): ...',
        "import pytest\n@pytest.mark.case\ndef test_it(): ...",
        'import pytest\n@pytest.mark.control("4")\ndef helper(): ...',
        'import pytest\n@pytest.mark.case("4")\nclass TestIt: ...',
        "import pytest\n@pytest.mark.case(number)\ndef test_it(): ...",
        "@guarded()\ndef test_it(is_guarded): ...",
    ],
    ids=["no such case", "no number", "no test", "a class", "no literal", "nothing guarded"],
)
def test_a_mark_that_says_nothing_is_refused(source: str) -> None:
    with pytest.raises(MisplacedMarkError):
        read(source, "x.py")


def test_the_table_names_every_case_and_its_tests() -> None:
    told = table(read(PROVED, "x.py"))
    assert all(title in told for title in CASES.values())
    assert "case    x.py::test_it" in told
    assert "control x.py::TestIt::test_broken" in told
    assert all(why in told for why in NOT_CAUSED.values())

"""Every failure case has a test that proves it, and a control that shows that this test can fail."""

from __future__ import annotations

from functools import cache

import pytest

from tests.cases import CASES, LATER, MARKER_HALF, Marked, MisplacedMarkError, marked, read, table

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

    @pytest.mark.skip
    @pytest.mark.control("5")
    def test_never_run(self): ...
"""


@pytest.mark.parametrize("number", BUILT)
@pytest.mark.parametrize("mark", ["case", "control"])
def test_every_case_has_a_test_and_a_control(number: str, mark: str) -> None:
    tests = [one.test for one in found() if (one.number, one.mark) == (number, mark)]
    assert tests, f"case {number} ({CASES[number]}) has no {mark}"


def test_no_test_is_its_own_control() -> None:
    """One variant of a parametrised test may be the control of another."""
    for one in found():
        both = {other.mark for other in found() if other.test == one.test} == {"case", "control"}
        assert one.is_variant or not both, one.test


def test_what_is_left_for_later_shrinks_and_is_not_there_yet() -> None:
    assert not LATER
    assert [one.test for one in found() if one.number in LATER] == [], "take it out of the list: it is there"


def test_the_numbers_are_those_of_the_design() -> None:
    assert set(CASES) == {str(number) for number in range(1, 31)} | {"22b", "22c", MARKER_HALF}


def test_control_the_check_sees_what_is_missing() -> None:
    seen = {(one.number, one.mark, one.is_variant): one.test for one in read(PROVED, "x.py")}
    assert seen == {
        ("4", "case", False): "x.py::test_it",
        ("5", "case", False): "x.py::test_it",
        ("4", "control", True): "x.py::TestIt::test_broken",
    }, "a control that is skipped shows nothing"


@pytest.mark.parametrize(
    "source",
    [
        'import pytest\n@pytest.mark.case("99")\ndef test_it(): ...',
        "import pytest\n@pytest.mark.case\ndef test_it(): ...",
        'import pytest\n@pytest.mark.control("4")\ndef helper(): ...',
        'import pytest\n@pytest.mark.case("4")\nclass TestIt: ...',
        "import pytest\n@pytest.mark.case(number)\ndef test_it(): ...",
    ],
    ids=["no such case", "no number", "no test", "a class", "no literal"],
)
def test_a_mark_that_says_nothing_is_refused(source: str) -> None:
    with pytest.raises(MisplacedMarkError):
        read(source, "x.py")


def test_the_table_names_every_case_and_its_tests() -> None:
    told = table(read(PROVED, "x.py"))
    assert all(title in told for title in CASES.values())
    assert "case    x.py::test_it" in told
    assert "control x.py::TestIt::test_broken" in told

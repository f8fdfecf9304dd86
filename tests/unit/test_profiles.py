"""Property tests are tried as often as the profile says, each multiplied by its own factor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import profiles
from tests.profiles import EXAMPLES, examples

FIXED = {"test_planner_properties.py"}
"""Modules with a control that searches until it finds a failure."""


@pytest.fixture(autouse=True)
def _own_profile() -> Iterator[None]:
    before = settings.get_current_profile_name()
    yield
    settings.load_profile(before)


def load(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("HYPOTHESIS_PROFILE", name)
    profiles.load()


def test_a_profile_is_loaded_before_tests_are_imported() -> None:
    assert settings.get_current_profile_name() in EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_numbers_scale_with_the_profile(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load(monkeypatch, name)
    assert settings().max_examples == EXAMPLES[name]
    assert examples(2.0).max_examples == 2 * EXAMPLES[name]
    assert examples(0.001).max_examples == 1
    assert settings().deadline is examples(2.0).deadline is None
    assert settings().derandomize is (name == "ci")
    assert (settings().database is None) is (name == "ci")


def test_a_property_is_tried_that_often(monkeypatch: pytest.MonkeyPatch) -> None:
    load(monkeypatch, "ci")
    tried = []

    @examples(0.5)
    @given(st.integers())
    def note(number: int) -> None:
        tried.append(number)

    note()
    assert len(tried) == EXAMPLES["ci"] / 2


def test_an_unknown_profile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="must be one of dev, ci, long, not 'nightly'"):
        load(monkeypatch, "nightly")


def test_no_property_has_a_number_of_its_own() -> None:
    folder = Path(__file__).parent.parent
    given_ = {path.name for path in folder.rglob("test_*.py") if "@settings" in path.read_text(encoding="utf-8")}
    numbers = {path.name for path in folder.rglob("test_*.py") if "settings(max_" in path.read_text(encoding="utf-8")}
    assert given_ - {Path(__file__).name} == set()
    assert numbers - {Path(__file__).name} == FIXED

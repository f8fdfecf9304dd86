"""No text makes an operation slow: each is measured on texts that grow, ordinary ones and hostile ones."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.unit.growth import measured
from tests.unit.test_growth_patterns import told

_OPERATIONS: Final = "tests.unit.growing_operations:operations"
_BROKEN: Final = "tests.unit.growing_operations:broken"


def of(part: int, parts: int, *, every: bool, share: int = 1) -> dict[str, Any]:
    return {"part": part, "parts": parts, "every": every, "share": share}


@pytest.mark.parametrize("share", [24, pytest.param(1, marks=pytest.mark.long)], ids=["one text in 24", "all"])
def test_no_operation_takes_more_than_linear_time(share: int) -> None:
    findings = measured(_OPERATIONS, of(0, 1, every=False, share=share))
    assert not findings, told(findings)


@pytest.mark.long
@pytest.mark.parametrize("part", range(5))
def test_no_operation_takes_more_than_linear_time_on_long_texts_of_many_kinds(part: int) -> None:
    findings = measured(_OPERATIONS, of(part, 5, every=True))
    assert not findings, told(findings)


@pytest.mark.long
def test_control_a_slow_operation_is_found() -> None:
    assert [found.name for found in measured(_BROKEN, None)] == ["broken"]

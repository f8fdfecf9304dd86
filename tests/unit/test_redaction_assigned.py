"""A value that is assigned to a name and itself names a secret."""

from __future__ import annotations

import pytest

from app.core.model.redaction import redact
from tests.unit.timing import assert_linear


@pytest.mark.long
@pytest.mark.parametrize("piece", ["password=", "password is ", "pin: ", 'secret: "', "token for token is "])
def test_names_without_end_take_linear_time(piece: str) -> None:
    assert_linear(redact, piece * 20_000)

"""A turn that is over its window says why no summary made it fit, and whether another try can help."""

from __future__ import annotations

import pytest

from app.core.model.errors import ContextOverWindowError
from app.core.model.records import CompactionStatus
from app.usecases.compaction.inline import InlineOutcome
from tests.unit.api_fakes import compaction


@pytest.mark.parametrize(
    ("status", "reason", "told", "retryable"),
    [
        ("failed", "server_error", "server_error", True),
        ("rejected", "empty_summary", "empty_summary", True),
        ("running", None, "deadline", True),
        ("failed", "unauthorized", "unauthorized", False),
        ("rejected", "not_smaller", None, False),
        ("skipped", "nothing_to_compact", None, False),
        ("applied", None, None, False),
    ],
)
def test_the_reason_of_its_compaction_tells(
    status: CompactionStatus, reason: str | None, told: str | None, *, retryable: bool
) -> None:
    error = ContextOverWindowError("too much", extra={"tokens": 9})
    explained = InlineOutcome(row=compaction(status=status, reason=reason)).explained(error)
    assert (explained.extra.get("reason"), explained.retryable) == (told, retryable)
    assert explained.extra["tokens"] == 9
    assert InlineOutcome().explained(error) is error

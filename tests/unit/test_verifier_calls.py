"""How many calls of a verifier are prepared: each contains the whole chunk, so only calls that may be made."""

from __future__ import annotations

from typing import Any, cast

from app.core.model.timings import VERIFIER_CALLS
from app.core.validation.claims import MAX_CLAIMS, claim_batches, claims_of
from app.usecases.verification.judging import Subject, VersionSources
from tests.fakes import FAKE_PROFILE
from tests.unit.talk import entry, message


def subject(count: int) -> Subject:
    entries = [entry(f"F{n}", f"Clara paid for room {n}.") for n in range(1, count + 1)]
    reading = VersionSources(version=cast("Any", None), before=None, judged=(), messages=(), digests=())
    return Subject(sources=reading, messages=(message(1, "Clara paid."),), claims=claims_of([], entries))


def test_no_more_calls_are_prepared_than_may_be_made() -> None:
    many = subject(40 * MAX_CLAIMS)
    assert len(many.requests(FAKE_PROFILE)) == VERIFIER_CALLS < len(claim_batches(many.claims))
    assert [len(one.claims) for one in subject(MAX_CLAIMS + 1).requests(FAKE_PROFILE)] == [31, 30]

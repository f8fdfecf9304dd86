"""Makes the requests that the service would send to a verifier about an answer of the corpus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from app.core.model.conversation import Message, Sums
from app.core.model.model_io import ModelProfile, VerificationRequest
from app.core.model.state import StateEntry, StateVersion
from app.core.model.word_overlap import message_text
from app.core.state.apply import AppliedCandidate, repairs_on_record
from app.core.text.words import stems
from app.core.validation.claims import DigestText, unshown_sources
from app.core.validation.narrative_sources import search_words
from app.usecases.compaction.chunk import chunk_tokens
from app.usecases.verification.judging import Subject, VersionSources, subject_of, with_older
from bench.replay import BEGINNING
from bench.trust.playing import Played
from bench.trust.rounds import Case

PROFILE: Final = ModelProfile(name="recorded", input_limit=1_048_576, output_limit=65_536, chunk_tokens=32_000)
"""A usual model; every chunk of the corpus is smaller than the model's largest."""


def subject(case: Case, outcome: Played) -> Subject:
    """The claims that a played answer makes, with everything that a verifier is shown; the answer was accepted."""
    if outcome.applied is None:
        raise ValueError(case.id)
    before = version_of(case, case.request.previous, case.round)
    after = version_of(case, outcome.applied.entries, case.round + 1, outcome.applied)
    reading = VersionSources(
        version=after,
        before=before,
        judged=(after,),
        messages=case.request.messages,
        digests=tuple(_digests(case, outcome.applied)),
    )
    return subject_with(reading, case.talk.messages[: case.request.messages[0].seq - 1])


def subject_with(reading: VersionSources, earlier: Iterable[Message]) -> Subject:
    """The same for any version, with those earlier messages that the service would read.

    Args:
        reading: The version, and what it was made from.
        earlier: All messages before the folded ones.
    """
    found = subject_of(reading)
    named = unshown_sources(found.claims, [message.seq for message in found.messages])
    words = set(search_words(found.claims, found.messages))
    read = [one for one in earlier if one.seq in named or words.intersection(stems(message_text(one)))]
    return with_older(found, read, chunk_tokens(PROFILE))


def requests(asked: Subject) -> list[VerificationRequest]:
    """The calls that are needed for all claims."""
    return asked.requests(PROFILE)


def _digests(case: Case, applied: AppliedCandidate) -> Iterable[DigestText]:
    for one in applied.digests:
        if 0 < one.number <= len(case.request.segments) and one.brief:
            cut = case.request.segments[one.number - 1]
            yield DigestText(
                id=str(one.number), topic=one.topic, brief=one.brief, from_seq=cut.from_seq, to_seq=cut.to_seq
            )


def version_of(
    case: Case, entries: tuple[StateEntry, ...], number: int, applied: AppliedCandidate | None = None
) -> StateVersion:
    """A version with these entries, with everything that a verifier looks at."""
    return StateVersion(
        version=number,
        state_schema=case.request.schema.name,
        state={},
        entries=entries,
        next_entry=10_000,
        boundary_seq=case.request.messages[-1].seq,
        boundary_message_id=None,
        covered=Sums(),
        layout=None,
        compaction_id=None,
        created_at=BEGINNING,
        repairs=repairs_on_record(applied) if applied else (),
    )

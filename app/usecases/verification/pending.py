"""Versions that wait for a verifier: marked, and put on record, by whatever writes a version."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from app.core.model.policies.policy import CompactionPolicy
from app.core.model.records import Verification
from app.core.model.state import StateVersion, Verified
from app.storage.repositories.states import FORGOTTEN_AT_ONCE
from app.storage.unit_of_work import UnitOfWork
from app.usecases.shared.shell import Shell

PENDING: Final[Verified] = "pending"


def first_mark(shell: Shell, policy: CompactionPolicy, *, by_language_model: bool) -> Verified:
    """What a version that a compaction writes is marked with: what code quotes needs no verifying."""
    return PENDING if by_language_model and is_wanted(shell, policy) else "exact"


def is_wanted(shell: Shell, policy: CompactionPolicy) -> bool:
    """Whether operator and policy want states to be verified."""
    return shell.verifies and policy.verify != "off"


FEWEST_KEPT: Final = 20
"""Versions that a verification may look back at."""


async def note_version(uow: UnitOfWork, shell: Shell, conversation_id: UUID, version: StateVersion) -> None:
    """After a version was added: only the newest waits for a verifier. Call it in the same transaction."""
    await uow.states.unmark(conversation_id, before=version.version)
    await _forget_old(uow, shell, conversation_id, version.version)
    if version.verified == PENDING:
        await uow.verifications.open(
            Verification(
                id=shell.new_id(),
                conversation_id=conversation_id,
                version=version.version,
                created_at=shell.clock.now(),
            )
        )


async def _forget_old(uow: UnitOfWork, shell: Shell, conversation_id: UUID, newest: int) -> None:
    """Keep the newest so many versions; of those before them usually one is left to forget."""
    if not shell.versions_kept:
        return
    through = newest - max(shell.versions_kept, FEWEST_KEPT)
    while through > 0 and await uow.states.forget(conversation_id, through=through) == FORGOTTEN_AT_ONCE:
        through -= FORGOTTEN_AT_ONCE

"""Versions that wait for a verifier. Every code that writes a version marks and records it here.

A request about a small chunk costs many times the chunk, since its statements are as long and each needs its evidence.
So versions are gathered and judged together (docs/decisions/0034).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from app.core.model.policies.policy import CompactionPolicy
from app.core.model.records import Verification
from app.core.model.state import StateVersion, Verified
from app.storage.repositories.states import FORGOTTEN_AT_ONCE, Waiting
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.spend_guard import SPEND_LIMIT
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.shell import Shell

PENDING: Final[Verified] = "pending"
GATHERING: Final = "gathering"
"""The reason on a row that may still gather more versions before they are judged."""
WAITING_REASONS: Final = frozenset({GATHERING, SPEND_LIMIT})
"""Reasons on a row that are no failures; they are removed when its verification begins."""
ENOUGH_TOKENS: Final = 6_000
"""The tokens of folded messages from which the cost of a verification is in proportion."""
MAX_GATHERED_VERSIONS: Final = 10
"""The most versions that are judged together; if there were more, some would be deleted in time."""
PAUSE: Final = timedelta(seconds=60)
"""A conversation without a new message for this long has paused. Its state is judged before the user comes back."""
NEARLY_FULL: Final = 0.75
"""The share of its cap from which a state is nearly full: the next compaction may prune entries that are in doubt."""


def initial_mark(
    shell: Shell, policy: CompactionPolicy, *, by_language_model: bool, before: Verified = "exact"
) -> Verified:
    """The mark on a version that a compaction writes.

    Text that code quotes needs no verification, but an earlier version (``before``) may still wait for it.
    """
    return PENDING if (by_language_model or before == PENDING) and is_wanted(shell, policy) else "exact"


def is_wanted(shell: Shell, policy: CompactionPolicy) -> bool:
    """Whether operator and policy want states to be verified."""
    return shell.verifies and policy.verify != "off"


def verifier_name(shell: Shell, policy: CompactionPolicy, operators: str | None) -> str | None:
    """The name of the model that judges: the policy's, otherwise the operator's; ``None`` = the summarizer.

    A model of the policy that the operator no longer allows does not count.
    """
    name = policy.verifier_model
    return name if name is not None and shell.models.allows(name) else operators


MIN_KEPT_VERSIONS: Final = 20
"""The least number of versions that are kept, since a verification may look back at them."""


def is_pressing(resolved: Resolved, version: StateVersion, *, by_hand: bool) -> bool:
    """Whether a version has to be judged at once: a client asked for it, or entries in doubt may be pruned next."""
    state = version.layout.tokens if version.layout else 0
    is_doubted = any(entry.in_doubt and entry.role != "narrative" for entry in version.entries)
    return by_hand or (is_doubted and state >= NEARLY_FULL * resolved.budgets.state_cap)


async def note_version(
    uow: UnitOfWork, shell: Shell, conversation_id: UUID, version: StateVersion, *, is_pressing: bool = False
) -> None:
    """Record, after a version was added, that it waits for a verifier, together with the versions that it continues.

    Call it in the same transaction.
    """
    await uow.states.end_waiting(conversation_id, after=version.parent_version or 0, before=version.version)
    await _forget_old_versions(uow, shell, conversation_id, version.version)
    if version.verified != PENDING or (waiting := await uow.states.waiting(conversation_id)) is None:
        return
    gathers = not (is_pressing or _is_enough_waiting(shell, waiting, version))
    await uow.verifications.open(
        Verification(
            id=shell.new_id(),
            conversation_id=conversation_id,
            version=version.version,
            reason=GATHERING if gathers else None,
            after=waiting.since + min(PAUSE, shell.verify_wait) if gathers else None,
            created_at=waiting.since,
        )
    )
    if not gathers:
        await uow.verifications.make_due(conversation_id, GATHERING)


def _is_enough_waiting(shell: Shell, waiting: Waiting, version: StateVersion) -> bool:
    folded = version.covered.tokens - waiting.tokens_before
    return not shell.verify_wait or waiting.versions >= MAX_GATHERED_VERSIONS or folded >= ENOUGH_TOKENS


def gathering_end(shell: Shell, row: Verification, last_message_at: datetime | None) -> datetime | None:
    """Until when a row gathers versions: the conversation's next pause, or the longest wait.

    ``None``: the row does not gather, or that time has come.
    """
    if row.reason != GATHERING:
        return None
    end = row.created_at + shell.verify_wait
    until = end if last_message_at is None else min(last_message_at + PAUSE, end)
    return until if until > shell.clock.now() else None


async def _forget_old_versions(uow: UnitOfWork, shell: Shell, conversation_id: UUID, newest: int) -> None:
    if not shell.versions_kept:
        return
    through = newest - max(shell.versions_kept, MIN_KEPT_VERSIONS)
    while through > 0 and await uow.states.forget(conversation_id, through=through) == FORGOTTEN_AT_ONCE:
        through -= FORGOTTEN_AT_ONCE

"""Which messages are held: served verbatim also once they are covered. Decided when a message is appended."""

from __future__ import annotations

from app.domain.conversation import ProtectedReason, Role
from app.domain.policy import CompactionPolicy


def protected_reason(policy: CompactionPolicy, *, role: Role, turn: int) -> ProtectedReason:
    """Why a message is held, or ``compressible``.

    Args:
        policy: ``protect`` and ``held_roles`` decide.
        role: The message's role.
        turn: Its 0-based position.
    """
    if turn == 0 and "turn_0" in policy.protect:
        return "initial_objective"
    return "system" if role in policy.held_roles else "compressible"

"""The compaction inside a turn: run, waited for, or taken over, all within ``sync_deadline``."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from app.domain.policy import Trigger
from app.domain.records import Compaction
from app.services.compaction import CompactionService, Limits
from app.services.shell import Shell

POLL = 0.25  # seconds between looks at a compaction that another process runs
LAST_TRY = Limits(attempts=1, chunks=1)
FAILED = frozenset({"failed", "rejected"})

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineClaim:
    """What a turn found when its trigger fired: its own row, or one in flight."""

    trigger: Trigger
    row: Compaction
    own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineOutcome:
    """How it ended; the turn goes on in any case."""

    row: Compaction | None
    warnings: tuple[str, ...] = ()


class InlineCompaction:
    """Brings a turn below its threshold, or says why not."""

    def __init__(self, shell: Shell, compaction: CompactionService) -> None:
        self._shell = shell
        self._compaction = compaction

"""``POST …/compact`` and what belongs to it: run now or in the worker, join, preview, retry, look up."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from app.domain.records import Compaction
from app.services.compaction import CompactionService
from app.services.shell import Shell

POLL = 0.25  # seconds between looks at a row that another process runs
RETRY_AFTER = 5.0
WHOLE = 10**12  # tokens: a preview shows the whole, not its first chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactInput:
    """What a manual call asks for; absent = the policy's ``manual_keep``, everything before it."""

    focus: str | None = None
    up_to_message_id: UUID | None = None
    keep_tail_messages: int | None = None
    dry_run: bool = False
    wait: bool = True

    @property
    def is_plain(self) -> bool:
        """Asks for nothing in particular: joins whatever is in flight."""
        return self.focus is None and self.up_to_message_id is None and self.keep_tail_messages is None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionView:
    """A compaction as clients see it."""

    compaction: Compaction
    summary: str | None = None
    joined: bool = False
    planned: bool = False
    """A dry run: nothing is stored, ``compaction`` only carries the plan's numbers."""


class ManualCompaction:
    """Manual calls; a failed one is always an error, and changes nothing."""

    def __init__(self, shell: Shell, compaction: CompactionService) -> None:
        self._shell = shell
        self._compaction = compaction

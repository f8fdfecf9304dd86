"""The only code that performs a compaction. The turn, the worker and the manual route differ in how they claim it."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from app.domain.compaction import CompactionPlan
from app.domain.conversation import Message
from app.domain.records import Compaction
from app.domain.state import StateVersion
from app.services.resolve import Resolved
from app.services.shell import Shell

OUTLINE_LIMIT = 4_000  # messages of the tail that one plan looks at: bounds a turn's work after a large import
JOB_DEADLINE = 300.0  # seconds for a whole job outside a turn
OUTPUT_PER_STATE = 4  # output tokens asked for per token of state: JSON, provenance and reasoning
MINIMUM_OUTPUT = 4_096

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of a job one caller does."""

    attempts: int | None = None
    """Model calls per chunk; ``None`` = the policy's."""
    chunks: int | None = None
    """Chunks before the rest is queued; ``None`` = all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chunk:
    """One chunk, read and planned."""

    row: Compaction
    resolved: Resolved
    plan: CompactionPlan
    span: tuple[Message, ...]
    version: StateVersion | None


class CompactionService:
    """Plans, asks, checks, saves; one chunk after the other, each in its own short transactions."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

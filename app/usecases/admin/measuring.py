"""Counts for monitoring the rows that ended since the last look: each row once, whichever process ended it.

The monitoring cannot ask workers, so every process that serves requests counts the work of all processes, from its own
start on. So all these processes show the same numbers: take the rate of one of them, never the sum.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from uuid import UUID

import structlog

from app.core.model import instruments as measures
from app.core.model.caches import CacheEntry
from app.core.model.continuity import Continuity
from app.core.model.errors import DomainError
from app.core.model.records import IN_FLIGHT, Attempt, Compaction, Verification
from app.core.model.segments import Expansion
from app.core.model.statistics import APPLIED, LevelMeasure
from app.storage.repositories.statistics import CONTINUITY_COUNTS, Ended, EndedTurn
from app.usecases.ports import Meter
from app.usecases.shared.shell import Shell

FRESH: Final = 1.0
"""Seconds for which a look counts as new; requests within them start no other look."""
OVERLAP: Final = timedelta(minutes=2)
"""How far back each look reads again: a row is committed a little later than the time it names, and clocks differ."""
PAGE: Final = 200
"""How many rows of a kind are read at once; with more, reading would keep a server from answering meanwhile."""
_STEP: Final = timedelta(milliseconds=1)
_MILLISECONDS: Final = 1_000
_COMPACTION: Final = "compaction"
_CHAT: Final = "chat"
_OUTCOMES: Final = {"completed": "accepted", "interrupted": "accepted", "failed": "error"}
_CHANGES: Final = ("added", "superseded", "dropped", "restored_by_code", "ungrounded")

_Key = tuple[Literal["compaction", "call", "verification", "expansion", "turn", "cache"], UUID]
"""The kind and the id of a counted row. The kind is needed since a turn and the record of its recall share an id."""

log = structlog.get_logger(__name__)


class Measuring:
    """Counts ended rows in the meter."""

    def __init__(self, shell: Shell, meter: Meter) -> None:
        self._shell = shell
        self._meter = meter
        self._since = shell.clock.now()
        self._seen: dict[_Key, tuple[datetime, bool]] = {}
        """For each counted row, when it ended and whether it was counted as used."""
        self._is_set_back = False
        self._lock = asyncio.Lock()
        self._looked_at: float | None = None

    async def run(self) -> None:
        """Look again and again, so that the numbers also reach monitoring that does not ask."""
        while True:
            await self.look()
            await self._shell.clock.sleep(self._shell.timings.measure_seconds)

    async def text(self) -> str:
        """All numbers up to now, in the format of Prometheus; if the database is away, the numbers known so far."""
        await self.look()
        return self._meter.render()

    async def look(self) -> None:
        """Count the rows that ended since the last look. Never raises."""
        async with self._lock:
            present = self._shell.clock.monotonic()
            if self._looked_at is not None and present - self._looked_at < FRESH:
                return
            try:
                await self._measure()
            except Exception as error:  # noqa: BLE001 - whatever it was, those who watch must go on being told
                log.warning("metrics.not_read", error=type(error).__name__)
                self._meter.set(measures.DATABASE_UP, 0)
            else:
                self._meter.set(measures.DATABASE_UP, 1)
            self._looked_at = self._shell.clock.monotonic()

    async def _measure(self) -> None:
        now = self._shell.clock.now()
        # If the clock was set back, the last look is later than now, and what is read again was counted already.
        self._is_set_back = self._since > now
        since = now - OVERLAP if self._is_set_back else self._since
        async with self._shell.uow(None) as uow:
            while True:
                ended = await uow.statistics.ended(since, limit=PAGE)
                self._count(ended)
                following = _start_of_next_page(ended)
                if following is None or following <= since:
                    break
                since = following
            in_flight = await uow.statistics.in_flight()
        for status in sorted(IN_FLIGHT):
            self._meter.set(measures.COMPACTIONS_IN_FLIGHT, in_flight.get(status, 0), status=status)
        self._since = now - OVERLAP if self._is_set_back else max(self._since, now - OVERLAP)
        self._seen = {key: seen for key, seen in self._seen.items() if seen[0] >= self._since}

    def _count(self, ended: Ended) -> None:
        for row in ended.compactions:
            if self._is_new(("compaction", row.id), row.finished_at):
                count_compaction(self._meter, row, ended.levels.get(row.id, ()))
        self._count_calls_outside_compactions(ended)
        for expansion in ended.expansions:
            key: _Key = ("expansion", expansion.id)
            known = self._seen.get(key)
            if self._is_new(key, expansion.created_at, used=bool(expansion.used)):
                count_expansion(self._meter, expansion)
            if expansion.used and not (self._is_set_back or (known and known[1])):
                self._meter.count(measures.EXPANSIONS_USED, way=expansion.way)
        for entry in ended.caches:
            if self._is_new(("cache", entry.id), entry.at):
                count_cache(self._meter, entry)
        for one in ended.turns:
            if self._is_new(("turn", one.turn.id), one.turn.finished_at):
                count_turn(self._meter, one)
                self._observe_utilization(one)

    def _count_calls_outside_compactions(self, ended: Ended) -> None:
        for call in ended.details:
            if call.attempt and self._is_new(("call", call.id), call.called_at):
                count_call(self._meter, call.purpose, call.attempt)
                _count_usage(self._meter, call.purpose, call.attempt.usage.as_dict())
        for verification in ended.verifications:
            if self._is_new(("verification", verification.id), verification.finished_at):
                count_verification(self._meter, verification)

    def _is_new(self, key: _Key, at: datetime | None, *, used: bool = False) -> bool:
        is_new = key not in self._seen and not self._is_set_back
        self._seen[key] = (at or self._since, used)
        return is_new

    def _observe_utilization(self, ended: EndedTurn) -> None:
        try:
            resolver = self._shell.resolver
            budget = resolver.budgets(resolver.policy(ended.preset, ended.policy, ended.preset_version)).budget
        except DomainError:  # a preset or a model of another release: it cannot be shown
            return
        if budget:
            self._meter.observe(measures.UTILIZATION, ended.context_tokens / budget)


def _start_of_next_page(ended: Ended) -> datetime | None:
    pages: Iterable[list[datetime]] = (
        [row.finished_at for row in ended.compactions if row.finished_at],
        [one.turn.finished_at for one in ended.turns if one.turn.finished_at],
        [expansion.created_at for expansion in ended.expansions],
        [call.called_at for call in ended.details],
        [one.finished_at for one in ended.verifications if one.finished_at],
        [entry.at for entry in ended.caches],
    )
    return min((times[-1] - _STEP for times in pages if len(times) == PAGE), default=None)


def count_compaction(meter: Meter, row: Compaction, levels: Sequence[LevelMeasure] = ()) -> None:
    """Count a compaction that ended, with the levels of the segments that it made."""
    meter.count(measures.COMPACTIONS, trigger=row.trigger, status=row.status, ran_in=row.ran_in)
    if row.reason:
        meter.count(measures.COMPACTION_REASONS, reason=row.reason)
    if row.duration_ms is not None:
        meter.observe(measures.COMPACTION_TIME, row.duration_ms / _MILLISECONDS, ran_in=row.ran_in)
    for attempt in row.attempts:
        count_call(meter, _COMPACTION, attempt)
    _count_usage(meter, _COMPACTION, row.usage.as_dict())
    if row.status == APPLIED:
        _count_applied(meter, row)
        for level in levels:
            if level.ratio is not None:
                meter.observe(measures.LEVEL_RATIO, level.ratio, level=level.level)


def count_verification(meter: Meter, row: Verification) -> None:
    """Count a verification that ended, with all its calls."""
    for attempt in row.attempts:
        count_call(meter, "verification", attempt)
        _count_usage(meter, "verification", attempt.usage.as_dict())


def count_call(meter: Meter, purpose: str, attempt: Attempt) -> None:
    """Count a model call whose end is recorded."""
    meter.count(measures.MODEL_CALLS, purpose=purpose, outcome=attempt.outcome)
    meter.observe(measures.MODEL_CALL_TIME, attempt.duration_ms / _MILLISECONDS, purpose=purpose)
    if attempt.reason and attempt.outcome != "accepted":
        meter.count(measures.MODEL_CALL_REASONS, purpose=purpose, reason=attempt.reason)


def _count_applied(meter: Meter, row: Compaction) -> None:
    meter.count(measures.MESSAGES_COVERED, row.messages_covered)
    for change in _CHANGES:
        meter.count(measures.STATE_ENTRIES, getattr(row.entries, change), change=change)
    if row.fidelity is not None:
        meter.observe(measures.FIDELITY, row.fidelity)
    if row.continuity is not None:
        _count_continuity(meter, row.continuity)
    if row.tokens_before and row.tokens_after is not None:
        meter.observe(measures.COMPACTION_RATIO, row.tokens_after / row.tokens_before)
        # A counter never goes down, so a compaction that made a context larger (after an erasure) counts as no saving.
        meter.count(measures.TOKENS_SAVED, max(row.tokens_before - row.tokens_after, 0), trigger=row.trigger)


def _count_continuity(meter: Meter, score: Continuity) -> None:
    if score.recall is not None:
        meter.observe(measures.CONTINUITY, score.recall)
    for kind, answered in score.kinds.items():
        for name in CONTINUITY_COUNTS:
            meter.count(measures.CONTINUITY_PROBES, getattr(answered, name), kind=kind, answered=name)


def count_expansion(meter: Meter, expansion: Expansion) -> None:
    """Count an expansion, whether or not the reply used it."""
    meter.count(measures.EXPANSIONS, way=expansion.way)
    meter.count(measures.EXPANSION_PASSAGES, expansion.passages, way=expansion.way)
    meter.count(measures.EXPANSION_TOKENS, expansion.tokens, way=expansion.way)
    meter.observe(measures.RECALL_TIME, expansion.duration_ms / _MILLISECONDS, way=expansion.way)


def count_cache(meter: Meter, entry: CacheEntry) -> None:
    """Count an action on a provider's cache.

    A counter never goes down, so money that is given back has its own counter.
    """
    meter.count(measures.CACHES, action=entry.action)
    if entry.action == "used":
        meter.count(measures.CACHE_TOKENS, entry.tokens)
    spent = entry.spent_usd or 0.0
    money = {"spent": max(spent, 0.0), "given_back": max(-spent, 0.0), "saved": entry.saved_usd or 0.0}
    for kind, usd in {**money, "saved_beyond_implicit": entry.beyond_usd or 0.0}.items():
        if usd > 0:
            meter.count(measures.CACHE_COST, usd, kind=kind)


def count_turn(meter: Meter, ended: EndedTurn) -> None:
    """Count a turn that has ended, and the model call that answered it."""
    turn = ended.turn
    meter.count(measures.TURNS, status=turn.status)
    if turn.finished_at is not None:
        meter.observe(measures.TURN_TIME, max((turn.finished_at - turn.started_at).total_seconds(), 0.0))
    meter.count(measures.MODEL_CALLS, purpose=_CHAT, outcome=_OUTCOMES.get(turn.status, "error"))
    if turn.error_code:
        meter.count(measures.MODEL_CALL_REASONS, purpose=_CHAT, reason=turn.error_code)
    _count_usage(meter, _CHAT, ended.usage or {})


def _count_usage(meter: Meter, purpose: str, usage: Any) -> None:
    # ``input`` includes ``cached``, which providers charge less for; the cost takes that into account.
    for kind in ("input", "cached", "output"):
        meter.count(measures.MODEL_TOKENS, usage.get(f"{kind}_tokens") or 0, purpose=purpose, kind=kind)
    if usage.get("cost_usd"):
        meter.count(measures.MODEL_COST, usage["cost_usd"], purpose=purpose)

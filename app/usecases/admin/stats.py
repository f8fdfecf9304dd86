"""Measures of a conversation and of a tenant: computed from the rows themselves, as they are at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from app.core.model.caches import Availability, CacheMode, ProviderCache
from app.core.model.model_io import CacheTerms, Cost
from app.core.model.records import Compaction, Page
from app.core.model.statistics import CostPerQuery, LevelMeasure, Measurements
from app.core.text.token_counts import tokens_of
from app.off_loop import BYTES_PER_POLICY, off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.shell import Service

SHOWN: Final = 20
"""The most providers' caches that are listed one by one."""
MAX_CONVERSATIONS: Final = 100
"""How many conversations of a tenant, the newest by message, have their contexts looked at: this bounds the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCompaction:
    """The newest compaction that took effect, with the levels of the segments that it made."""

    row: Compaction
    levels: Sequence[LevelMeasure]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheView:
    """The state of the providers' caches of a conversation."""

    availability: Availability
    mode: CacheMode | None = None
    """The cache mode of the conversation's policy."""
    living: Sequence[ProviderCache] = ()
    """The caches that providers keep now, at most ``SHOWN``."""
    prefix: ProviderCache | None = None
    """The cacheable beginning of the conversation's requests; ``None`` if it is too small or was never sent."""
    tokens: int | None = None
    """The estimated size in tokens of that beginning now, with the files."""
    terms: CacheTerms | None = None
    """The cache terms of the chat model as it is configured now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationMeasures:
    """The measures of one conversation."""

    resolved: Resolved
    measured: Measurements
    levels: Sequence[LevelMeasure]
    """Measures of the levels of the current segments."""
    last: LastCompaction | None
    caches: CacheView
    cost: Cost
    """The cost, at the prices of the chat model as it is configured now."""

    @property
    def cost_per_query(self) -> CostPerQuery:
        """What reading the context of the next request costs, and what it would cost without compaction."""
        return CostPerQuery(
            served_usd=self.cost(self.resolved.gauge.tokens, 0), history_usd=self.cost(self.history_tokens, 0)
        )

    @property
    def history_tokens(self) -> int:
        """How many tokens the next request would have if nothing had been compacted."""
        resolved, total = self.resolved, self.resolved.conversation.total
        message_tokens = tokens_of(total.tokens, total.bytes, resolved.policy.estimator)
        return resolved.conversation.counted(resolved.fixed_tokens + message_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceMeasures:
    """The measures of a tenant."""

    measured: Measurements
    caches: CacheView
    active: Sequence[Resolved]
    """The conversations with the newest messages, at most ``MAX_CONVERSATIONS``."""
    levels: Sequence[LevelMeasure] = ()
    """Measures of the levels of the current segments of these conversations."""
    since: datetime | None = None


class StatsService(Service):
    """Computes measures; each answer describes one moment."""

    async def conversation(self, tenant_id: UUID, conversation_id: UUID) -> ConversationMeasures:
        """The measures of one conversation. Raises ``NotFoundError``."""
        async with self._shell.uow(tenant_id) as uow:
            await uow.use_snapshot()
            resolved = self._shell.resolver(await uow.conversations.get(conversation_id))
            measured = await uow.statistics.measured(conversation_id)
            return ConversationMeasures(
                resolved=resolved,
                measured=measured,
                levels=await uow.statistics.levels([conversation_id]),
                last=await _last_compaction(uow, conversation_id, measured.last_applied),
                caches=await self._cache_view(uow, resolved),
                cost=self._shell.models.chat().profile.cost,
            )

    async def service(self, tenant_id: UUID, since: datetime | None = None) -> ServiceMeasures:
        """The statistics of a tenant; with ``since`` only of rows that ended from then on or still run."""
        async with self._shell.uow(tenant_id) as uow:
            await uow.use_snapshot()
            measured = await uow.statistics.measured(since=since)
            active, _ = await uow.conversations.page(Page(limit=MAX_CONVERSATIONS), user_id=None)
            levels = await uow.statistics.levels([row.id for row in active])
            caches = self._caching_view(None, living=await uow.caches.kept_by_provider(limit=SHOWN))
        resolved = await off_loop(
            lambda: [self._shell.resolver(row) for row in active], size=BYTES_PER_POLICY * len(active)
        )
        return ServiceMeasures(measured=measured, caches=caches, active=resolved, levels=levels, since=since)

    async def _cache_view(self, uow: UnitOfWork, resolved: Resolved) -> CacheView:
        known, now = await uow.caches.of_conversation(resolved.conversation.id), self._shell.clock.now()
        living = [one for one in known if one.expires_at is not None and one.expires_at > now]
        return replace(
            self._caching_view(resolved.policy.cache, living=living),
            prefix=replace(known[0], rate=known[0].demand.rate_at(now), rate_at=now) if known else None,
            tokens=resolved.conversation.counted(resolved.fixed_tokens) if resolved.caching else None,
        )

    def _caching_view(self, mode: CacheMode | None, living: Sequence[ProviderCache]) -> CacheView:
        terms = self._shell.models.chat().profile.caches
        availability: Availability = "available"
        if terms is None:
            availability = "model"
        elif not self._shell.caches:
            availability = "operator"
        elif mode == "off":
            availability = "policy"
        return CacheView(availability=availability, mode=mode, living=living[:SHOWN], terms=terms)


async def _last_compaction(uow: UnitOfWork, conversation_id: UUID, compaction_id: UUID | None) -> LastCompaction | None:
    if compaction_id is None:
        return None
    row = await uow.compactions.get(compaction_id)
    return LastCompaction(row=row, levels=await uow.statistics.levels_of(conversation_id, compaction_id))

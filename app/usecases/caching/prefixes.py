"""A turn's use of providers' caches: which cache a request names, and what is recorded afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import structlog

from app.core.model.caches import (
    CacheEntry,
    Caching,
    ProviderCache,
    decide_caching,
    saved_by_use,
)
from app.core.model.errors import ConflictError, DependencyUnavailableError, NotFoundError
from app.core.model.model_io import CacheTerms, ChatRequest
from app.core.model.records import ProviderCopy, Turn
from app.off_loop import off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.chat.reply import Answer
from app.usecases.shared.shell import Service, Shell

FORGOTTEN: Final = "provider_cache_forgotten"
"""The warning: the provider did not take the cache that the request named, so it was sent the whole context."""
LOST: Final = "cache_lost"
"""The reason by which an adapter says that a provider no longer keeps a cache, or not for this account."""
REFUSALS: Final = frozenset({LOST, "bad_request", "unauthorized", "model_not_found"})
"""Reasons for which the cache may be to blame. The request is sent again without it; if that works, the cache was."""
LARGE: Final = 100_000
"""The number of characters above which a prefix is hashed off the event loop."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLookup:
    """A prefix that a provider can cache, before it is sent."""

    model: str
    caching: Caching
    terms: CacheTerms
    fingerprint: str
    known: ProviderCache | None
    name: str | None
    """The name of the cache that a request may name now."""


class PrefixCaches(Service):
    """Looks caches up and records their uses. A failure here never makes a turn fail."""

    async def lookup(
        self, turn: Turn, model: str | None, caching: Caching | None, request: ChatRequest
    ) -> CacheLookup | None:
        """The prefix of a request; ``None`` where it is not to be cached, or cannot be.

        What a client brings for one turn only is not stored, so it is not cached either. A request that forces a tool
        call says so in its tool settings, which a request that names a cache must not have.
        """
        profile = self._shell.models.chat(model).profile
        terms = profile.caches
        if terms is None or caching is None or caching.mode == "off" or not self._shell.caches:
            return None
        asks_more = request.must_call or request.settings.output is not None
        unlike = request.tools != caching.prefix.tools or len(request.files) != len(caching.prefix.files)
        if asks_more or unlike or caching.tokens < terms.minimum:
            return None
        fingerprint = await fingerprint_of(caching, profile.name, terms)
        known: ProviderCache | None = None
        with _failures_logged_only("look"):
            async with self._shell.uow(turn.tenant_id) as uow:
                known = await uow.caches.find(profile.name, terms.account, fingerprint)
        life = known.life if known else None
        serves = life is not None and life.serves(self._shell.clock.now())
        return CacheLookup(
            model=profile.name,
            caching=caching,
            terms=terms,
            fingerprint=fingerprint,
            known=known,
            name=known.name if known and serves else None,
        )

    async def note(self, turn: Turn, cache_lookup: CacheLookup, answer: Answer) -> None:
        """Record the use of the prefix, and have a worker make or renew its cache where that pays.

        An interrupted reply does not report how much of the request was cached.
        """
        if not answer.usage.input_tokens:
            return
        wanted: UUID | None = None
        with _failures_logged_only("note"):
            async with self._shell.uow(turn.tenant_id) as uow:
                wanted = await self._note_use(uow, turn, cache_lookup, answer)
                await uow.commit()
        if wanted is not None:
            self._shell.outbox.send_later("cache", wanted)

    async def note_lost(self, turn: Turn, cache_lookup: CacheLookup, reason: str) -> None:
        """Record that the provider refused the cache, and have it deleted there in case it still exists."""
        known = cache_lookup.known
        if known is None or cache_lookup.name is None:
            return
        log.warning("cache.lost", reason=reason, model=cache_lookup.model)
        with _failures_logged_only("lost"):
            await note_lost(self._shell, known, turn.conversation_id, reason)

    async def _note_use(self, uow: UnitOfWork, turn: Turn, cache_lookup: CacheLookup, answer: Answer) -> UUID | None:
        now, caching, terms = self._shell.clock.now(), cache_lookup.caching, cache_lookup.terms
        row = await uow.caches.locked(self._new_cache(turn, cache_lookup, now))
        demand = row.demand if answer.named_cache else row.demand.hit(answer.usage.cached_tokens, row.tokens)
        demand = demand.used(now)
        tokens = row.tokens if row.name else caching.tokens
        minimum = max(terms.minimum, await uow.caches.minimum(row.model, row.account))
        decision = decide_caching(caching, terms, demand, row.life, now, minimum=minimum, tokens=tokens)
        values: dict[str, Any] = {
            "rate": demand.rate,
            "rate_at": demand.at,
            "hit_rate": demand.hit_rate,
            "measured": demand.measured,
            "verdict": decision.verdict,
            "tokens": tokens,
            "last_used_at": now,
        }
        if row.name is None:
            values["ttl_seconds"] = round(caching.ttl.total_seconds())
        if answer.named_cache:
            values["uses"] = row.uses + 1
        is_wanted = decision.step is not None and row.due_at is None
        if is_wanted:
            values["due_at"] = now
        await uow.caches.update(row.id, **values)
        await uow.caches.join(turn.conversation_id, row.model, row.id)
        if answer.named_cache:
            read = min(answer.usage.cached_tokens, row.tokens)  # the provider may also have cached more by itself
            saved, beyond = saved_by_use(terms.prices(row.tokens, now.date()), read, demand.known_hit_rate)
            amounts: dict[str, Any] = {"tokens": read, "saved_usd": saved, "beyond_usd": beyond}
            used = entry_of(self._shell, row, turn.conversation_id, now, action="used", **amounts)
            await uow.caches.add_entry(used)
        return row.id if is_wanted else None

    def _new_cache(self, turn: Turn, cache_lookup: CacheLookup, now: datetime) -> ProviderCache:
        return ProviderCache(
            id=self._shell.new_id(),
            tenant_id=turn.tenant_id,
            model=cache_lookup.model,
            account=cache_lookup.terms.account,
            fingerprint=cache_lookup.fingerprint,
            files=tuple(file.sha256 for file in cache_lookup.caching.prefix.files),
            tokens=cache_lookup.caching.tokens,
            ttl_seconds=round(cache_lookup.caching.ttl.total_seconds()),
            verdict="hit_rate_unknown",
            created_at=now,
            last_used_at=now,
        )


async def fingerprint_of(caching: Caching, model: str, terms: CacheTerms) -> str:
    """The fingerprint of a prefix; a long one is hashed off the event loop."""
    if len(caching.prefix.system) <= LARGE:
        return caching.prefix.fingerprint(model, terms.account)
    return await off_loop(caching.prefix.fingerprint, model, terms.account)


async def note_lost(shell: Shell, cache: ProviderCache, conversation_id: UUID, reason: str) -> None:
    """Record that the provider lost the cache, and have it deleted there in case it still exists."""
    now = shell.clock.now()
    async with shell.uow(cache.tenant_id) as uow:
        if cache.name is not None and await uow.caches.note_lost(cache.id, cache.name):
            await uow.copies.note(copy_of(cache, conversation_id, now))
            await uow.caches.add_entry(entry_of(shell, cache, conversation_id, now, action="lost", reason=reason))
        await uow.commit()


def entry_of(
    shell: Shell, cache: ProviderCache, conversation_id: UUID | None, now: datetime, **values: Any
) -> CacheEntry:
    """An entry in the account of a cache; ``values`` are its action and the fields that are not empty."""
    return CacheEntry(
        id=shell.new_id(), conversation_id=conversation_id, cache_id=cache.id, model=cache.model, at=now, **values
    )


def copy_of(cache: ProviderCache, conversation_id: UUID, now: datetime) -> ProviderCopy:
    """The record of a prefix's cache at its provider, to be deleted now."""
    return ProviderCopy(
        tenant_id=cache.tenant_id,
        response_id=cache.name or "",
        conversation_id=conversation_id,
        model=cache.model,
        made_at=cache.made_at or now,
        delete_after=now,
    )


@contextmanager
def _failures_logged_only(step: str) -> Iterator[None]:
    try:
        yield
    except (DependencyUnavailableError, NotFoundError, ConflictError) as error:
        log.warning("cache.not_noted", step=step, error=type(error).__name__)

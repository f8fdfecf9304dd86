"""Making, renewing and ending providers' caches: in workers and sweepers, never in a turn."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Literal
from uuid import UUID

import structlog

from app.core.context.files import files_message
from app.core.model.caches import (
    CacheDecision,
    CacheEntry,
    CacheStep,
    Caching,
    ProviderCache,
    decide_caching,
    spent_on_keeping,
    spent_on_making,
)
from app.core.model.conversation import Usage
from app.core.model.errors import (
    CacheTooSmallError,
    ConflictError,
    DependencyUnavailableError,
    InvalidInputError,
    ModelNotAllowedError,
    ModelUnavailableError,
    NotFoundError,
)
from app.core.model.files import ConversationFile
from app.core.model.model_io import CachePrices, CacheTerms, ContextMessage
from app.storage.unit_of_work import UnitOfWork
from app.usecases.caching.prefixes import LOST, copy_of, entry_of, fingerprint_of, note_lost
from app.usecases.compaction.spend_guard import SpendGuard
from app.usecases.files.serving import FileServing
from app.usecases.shared.pauses import pause_after
from app.usecases.shared.retries import through_short_outage
from app.usecases.shared.shell import Shell

MAX_CACHES: Final = 100
"""The most caches that providers keep for one tenant at a time."""
LEASE: Final = timedelta(minutes=3)
"""How long a process holds its lease on a prefix; a provider's call takes less."""
FIRST_PAUSE: Final = timedelta(minutes=1)
MAX_PAUSE: Final = timedelta(hours=1)
"""The longest pause after failures. The first one is ``FIRST_PAUSE``, each further one twice as long."""
AT_ONCE: Final = 50
"""The caches of at most this many prefixes are ended in one step of a sweep."""
MAX_HINTS: Final = 5
"""For how many prefixes one step of a sweep sends lost hints to workers again."""
NOBODY: Final = UUID(int=0)
"""The key id of spending that no key caused."""

Outcome = Literal["made", "renewed", "nothing", "too_small", "failed", "later"]

log = structlog.get_logger(__name__)


class CacheService:
    """Makes, renews and deletes caches at providers. Many processes may do so, but only one at a time for a prefix."""

    def __init__(self, shell: Shell, spending: SpendGuard, files: FileServing) -> None:
        self._shell = shell
        self._spending = spending
        self._files = files

    async def make_or_renew(self, cache_id: UUID) -> Outcome:
        """Make or renew the cache that a turn asked for, if it is still wanted.

        A repeated or late request does nothing.
        """
        async with self._shell.uow(None) as uow:
            found = await uow.caches.get(cache_id)
        if found is None:
            return "nothing"
        async with self._shell.uow(found.tenant_id) as uow:
            row = await uow.caches.take(cache_id, pause=LEASE)
            await uow.commit()
        if row is None:  # another process works on it, or it is done
            return "nothing"
        return await _Work(self._shell, self._spending, self._files, row).do()

    async def work(self) -> bool:
        """One step of a sweep: end caches of prefixes that no conversation has now, and send lost hints again.

        Returns whether more caches may have to be ended.
        """
        async with self._shell.uow(None) as uow:
            orphans = await uow.caches.orphans(limit=AT_ONCE)
            unwanted = [] if self._shell.caches else await uow.caches.kept_by_provider(limit=AT_ONCE)
            due = await uow.caches.due(limit=MAX_HINTS) if self._shell.caches else []
        ended = {one.id: one for one in (*orphans, *unwanted)}
        for cache in ended.values():
            await self._end_cache(cache, is_orphan=cache in orphans)
        for cache in due:
            if cache.id not in ended:
                self._shell.outbox.send_later("cache", cache.id)
        return len(ended) >= AT_ONCE

    async def _end_cache(self, found: ProviderCache, *, is_orphan: bool) -> None:
        """Delete a cache's row, and note the cache as a copy, which a sweep has the provider delete.

        An orphan (``is_orphan``) is left alone if a conversation uses it again.
        """
        now = self._shell.clock.now()
        async with self._shell.uow(found.tenant_id) as uow:
            row = await uow.caches.remove(found.id, only_orphan=is_orphan)
            if row is None:  # a conversation uses it again, or another process has ended it
                return
            if row.name is not None and row.expires_at is not None and row.expires_at > now:
                await uow.copies.note(copy_of(row, row.made_for or NOBODY, now))
                prices = _prices(terms_of(self._shell, row.model), row.tokens, now)
                back = spent_on_keeping(prices, row.tokens, now - row.expires_at)
                await uow.caches.add_entry(entry_of(self._shell, row, None, now, action="ended", spent_usd=back))
                log.info("cache.ended", model=row.model, tokens=row.tokens)
            await uow.commit()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What to do with a prefix, and the conversation that has it."""

    caching: Caching
    terms: CacheTerms
    conversation_id: UUID
    files: tuple[ConversationFile, ...] = ()
    step: CacheStep | None = None
    """Whether to make or to renew the cache; set once that is decided."""


class _Work:
    """The work on one prefix, on which this process holds the lease."""

    def __init__(self, shell: Shell, spending: SpendGuard, files: FileServing, row: ProviderCache) -> None:
        self._shell = shell
        self._spending = spending
        self._files = files
        self._row = row
        self._made_for: UUID | None = None
        """The conversation that the cost is recorded for."""

    async def do(self) -> Outcome:
        """Make the cache, renew it, or find that there is nothing to do."""
        planned = await self._plan_or_outcome()
        if not isinstance(planned, _Plan):
            return planned
        try:
            return await (self._make(planned) if planned.step == "make" else self._renew(planned))
        except CacheTooSmallError as error:
            await self._record_failure(error.reason, minimum=error.minimum or self._row.tokens + 1)
            return "too_small"
        except ModelUnavailableError as error:
            await self._record_failure(error.reason)
            return "failed"
        except (InvalidInputError, ModelNotAllowedError):
            await self._record_failure("model_not_built")
            return "failed"

    async def _plan_or_outcome(self) -> _Plan | Outcome:
        """Decide what to do, in a transaction that ends before the provider is called."""
        row, shell = self._row, self._shell
        with suppress(InvalidInputError, ModelNotAllowedError):
            await shell.models.prepare(row.model)
        async with shell.uow(row.tenant_id) as uow:
            plan = await self._present_plan(uow)
            if plan is None:
                await self._finish_unchanged(uow)
                return "nothing"
            decision = await self._decision(uow, plan)
            if decision.step is None:
                await self._finish_unchanged(uow, verdict=decision.verdict)
                return "nothing"
            if decision.step == "make" and await uow.caches.count() >= MAX_CACHES:
                await self._finish_unchanged(uow, verdict="full")
                return "nothing"
            if not await self._spending.allows_cache(uow):
                await self._put_off(uow)
                await uow.commit()
                return "later"
        self._made_for = plan.conversation_id
        return replace(plan, step=decision.step)

    async def _present_plan(self, uow: UnitOfWork) -> _Plan | None:
        """The prefix, if the requests of its newest member still begin with it.

        Otherwise that membership ends: a turn that ran while the prompt, the files or the policy changed has made the
        conversation a member again.
        """
        terms, conversation_id = terms_of(self._shell, self._row.model), await uow.caches.member(self._row.id)
        if terms is None or conversation_id is None or not self._shell.caches:
            return None
        try:
            conversation = await uow.conversations.get(conversation_id)
        except NotFoundError:
            return None
        caching = self._shell.resolver(conversation, model=self._row.model).caching
        files: Sequence[ConversationFile] = ()
        if caching is not None and conversation.file_tokens:
            files = await uow.files.of_conversation(conversation_id)
            tokens = conversation.counted(conversation.file_tokens)
            caching = caching.with_files(files, conversation.locale, tokens=tokens)
        if (
            caching is None
            or caching.mode == "off"
            or await fingerprint_of(caching, self._row.model, terms) != self._row.fingerprint
        ):
            await uow.caches.leave(conversation_id, cache_id=self._row.id)
            return None
        return _Plan(caching=caching, terms=terms, conversation_id=conversation_id, files=tuple(files))

    async def _files_message(self, plan: _Plan) -> ContextMessage | None:
        if not plan.files:
            return None
        profile, locale = self._shell.models.chat(self._row.model).profile, plan.caching.prefix.locale
        files, _ = await self._files.request_files(self._row.tenant_id, plan.files, locale, profile)
        if any(file.form == "words" for file in files):
            raise ModelUnavailableError("file_not_sent")
        return files_message(files, locale)

    async def _decision(self, uow: UnitOfWork, plan: _Plan) -> CacheDecision:
        row, now, caching, terms = self._row, self._shell.clock.now(), plan.caching, plan.terms
        if now - row.last_used_at > caching.ttl:  # too late: nobody needs it any more
            return CacheDecision(verdict=row.verdict)
        minimum = max(terms.minimum, await uow.caches.minimum(row.model, row.account))
        return decide_caching(caching, terms, row.demand, row.life, now, minimum=minimum, tokens=row.tokens)

    async def _make(self, plan: _Plan) -> Outcome:
        row, shell, caching, conversation_id = self._row, self._shell, plan.caching, plan.conversation_id
        attached = await self._files_message(plan)
        made = await shell.models.store.make_cache(row.model, caching.prefix, attached, caching.ttl)
        now, tokens = shell.clock.now(), made.tokens or row.tokens
        prices = _prices(plan.terms, tokens, now)
        spent = spent_on_making(prices, tokens, caching.ttl)
        values: dict[str, Any] = {
            "name": made.name,
            "tokens": tokens,
            "made_at": now,
            "expires_at": made.expires_at,
            "made_for": conversation_id,
            "ttl_seconds": round(caching.ttl.total_seconds()),
            "uses": 0,
        }
        stored = replace(row, name=made.name, made_at=now)
        entry = entry_of(shell, row, conversation_id, now, action="made", tokens=tokens, spent_usd=spent)
        try:
            is_wanted = await self._store(values, entry, Usage(input_tokens=tokens, cost_usd=spent))
        except DependencyUnavailableError:
            await self._discard_new_cache(stored, conversation_id)
            raise
        if not is_wanted:
            await self._discard_new_cache(stored, conversation_id)
            return "nothing"
        log.info("cache.made", model=row.model, tokens=tokens)
        return "made"

    async def _renew(self, plan: _Plan) -> Outcome:
        row, shell, caching, conversation_id = self._row, self._shell, plan.caching, plan.conversation_id
        try:
            ends = await shell.models.store.renew_cache(row.model, row.name or "", caching.ttl)
        except ModelUnavailableError as error:
            if error.reason not in {LOST, "model_not_found"}:
                raise
            await note_lost(shell, row, conversation_id, error.reason)
            return "failed"
        now = shell.clock.now()
        longer = ends - (row.expires_at or now)
        spent = spent_on_keeping(_prices(plan.terms, row.tokens, now), row.tokens, longer)
        entry = entry_of(shell, row, conversation_id, now, action="renewed", tokens=row.tokens, spent_usd=spent)
        values = {"expires_at": ends, "ttl_seconds": round(caching.ttl.total_seconds())}
        await self._store(values, entry, Usage(cost_usd=spent))
        log.info("cache.renewed", model=row.model, tokens=row.tokens)
        return "renewed"

    async def _store(self, values: dict[str, Any], entry: CacheEntry, used: Usage) -> bool:
        """Store the cache and its entry, also if the database is away for some seconds.

        Returns false, storing nothing, if the prefix or its conversation no longer exists.
        """
        return await through_short_outage(partial(self._store_once, values, entry, used), self._shell.clock)

    async def _store_once(self, values: dict[str, Any], entry: CacheEntry, used: Usage) -> bool:
        tenant_id = self._row.tenant_id
        try:
            async with self._shell.uow(tenant_id) as uow:
                known = await uow.caches.update(self._row.id, **values, due_at=None, tries=0)
                if not known:
                    return False
                # If every conversation has left the prefix meanwhile, nothing else would end the cache: make it due for
                # the sweeper.
                if await uow.caches.member(self._row.id) is None:
                    await uow.caches.update(self._row.id, due_at=entry.at)
                await uow.caches.add_entry(entry)
                await uow.spending.add_chat(tenant_id, NOBODY, used)
                await uow.commit()
        except NotFoundError:
            return False
        except ConflictError:  # an earlier try stored the entry, and the answer to its commit was lost
            return True
        return True

    async def _discard_new_cache(self, made: ProviderCache, conversation_id: UUID) -> None:
        # The sweeper deletes the copies that are noted here. For a deleted tenant, or while the database is away,
        # nothing can be noted.
        try:
            async with self._shell.uow(made.tenant_id) as uow:
                await uow.copies.note(copy_of(made, conversation_id, self._shell.clock.now()))
                await uow.commit()
        except (NotFoundError, DependencyUnavailableError):
            with suppress(ModelUnavailableError, InvalidInputError):
                await self._shell.models.store.delete(made.model, made.name or "")

    async def _record_failure(self, reason: str, *, minimum: int | None = None) -> None:
        log.warning("cache.failed", reason=reason, model=self._row.model, tries=self._row.tries)
        now = self._shell.clock.now()
        async with self._shell.uow(self._row.tenant_id) as uow:
            if minimum is None:
                await self._put_off(uow)
            else:
                await uow.caches.update(self._row.id, minimum=minimum, verdict="too_small", due_at=None, tries=0)
            await uow.caches.add_entry(
                entry_of(self._shell, self._row, self._made_for, now, action="failed", reason=reason)
            )
            await uow.commit()

    async def _put_off(self, uow: UnitOfWork) -> None:
        """Try again after a pause, which grows with the tries."""
        pause = pause_after(self._row.tries, FIRST_PAUSE, MAX_PAUSE)
        await uow.caches.update(self._row.id, due_at=self._shell.clock.now() + pause)

    async def _finish_unchanged(self, uow: UnitOfWork, **values: Any) -> None:
        """End the work without a provider's call, and store ``values``."""
        if await uow.caches.member(self._row.id) is None:
            # A prefix that no conversation begins with stays due, so that the sweeper deletes it.
            values["due_at"] = self._shell.clock.now()
        else:
            values |= {"due_at": None, "tries": 0}
        await uow.caches.update(self._row.id, **values)
        await uow.commit()


def terms_of(shell: Shell, model: str) -> CacheTerms | None:
    """How a model's provider caches; ``None`` if it does not, or if the model can no longer be built."""
    try:
        return shell.models.chat(model).profile.caches
    except (InvalidInputError, ModelNotAllowedError):
        return None


def _prices(terms: CacheTerms | None, tokens: int, now: datetime) -> CachePrices | None:
    return terms.prices(tokens, now.date()) if terms is not None else None

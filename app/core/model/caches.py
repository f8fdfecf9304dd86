"""A provider's cache of what all requests of a conversation begin with: its content, its cost, when it pays.

The cache is the provider's own object under a name of its own. It is processed once at the full price, stored by the
hour, and read at a tenth of the price by each request that names it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Literal
from uuid import UUID

from app.core.model.files import ConversationFile, RequestFile
from app.core.model.model_io import CachePrices, CacheTerms, ToolSpec

CacheMode = Literal["off", "auto", "always"]
CacheAction = Literal["made", "renewed", "used", "ended", "lost", "failed"]
"""What happened to a cache. ``used``: a request named it. ``ended``: it was deleted before its time. ``lost``: the
provider refused it when a request named it. ``failed``: it could not be made or renewed."""

MIN_TTL_SECONDS: Final = 300
MAX_TTL_SECONDS: Final = 86_400
"""Seconds."""
DEMAND_HOURS: Final = 6.0
"""How far back uses count when future uses are estimated: a use that many hours ago counts 1/e of a new one.

With a shorter memory a burst is expected to go on, and caches are paid for that nobody reads (``bench.caches``).
"""
HIT_WEIGHT: Final = 0.02
"""The weight of the newest request in the rate of implicit hits, once there are many. Before, all count the same.

With a larger weight a few misses after a pause would hide the hits of a burst that follows.
"""
MIN_MEASURED_REQUESTS: Final = 2
"""The rate is known after this many requests without a cache of ours, the first one not counted."""
EXPIRY_MARGIN: Final = timedelta(seconds=15)
"""A cache that ends sooner than this is not named in a request, since a request takes a while to arrive."""
RENEWAL_DIVISOR: Final = 3
"""A cache is renewed when it is used in the last third of its life."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedFile:
    """A file that stands before a conversation's messages."""

    sha256: str
    media_type: str
    name: str
    """The name, which stands in the file's label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedPrefix:
    """The content of a cache. A compaction changes nothing in it."""

    system: str
    """The system prompt, without the awareness block."""
    awareness: str
    tools: tuple[ToolSpec, ...] = ()
    files: tuple[CachedFile, ...] = ()
    """The files, in the order in which they stand at the beginning of the contents."""
    locale: str = ""
    """The language of the words beside the files; empty without files."""

    @property
    def instruction(self) -> str:
        """The system prompt as it is sent."""
        return f"{self.system}\n\n{self.awareness}" if self.system else self.awareness

    def fingerprint(self, model: str, account: str) -> str:
        """SHA-256 in hexadecimal over the content, the model and the account of the cache."""
        tools = sorted(
            (
                {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
                for tool in self.tools
            ),
            key=lambda tool: str(tool["name"]),
        )
        files = [[file.sha256, file.media_type, file.name, self.locale] for file in self.files]
        whole = {
            "model": model,
            "account": account,
            "system": self.system,
            "awareness": self.awareness,
            "tools": tools,
            "files": files,
        }
        canonical = json.dumps(whole, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Caching:
    """How the beginning of a request may be cached."""

    prefix: CachedPrefix
    tokens: int
    """The size of the prefix in the provider's tokens, by our estimate."""
    mode: CacheMode
    ttl: timedelta

    def with_files(self, files: Sequence[ConversationFile | RequestFile], locale: str, *, tokens: int) -> Caching:
        """This caching with files added to the prefix: they stand at the beginning of the contents.

        ``tokens`` are those of the files, converted to the provider's like ``self.tokens``.
        """
        if not files:
            return self
        held = tuple(CachedFile(sha256=one.sha256, media_type=one.media_type, name=one.name) for one in files)
        prefix = replace(self.prefix, files=held, locale=locale)
        return replace(self, prefix=prefix, tokens=self.tokens + tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeCache:
    """The provider's answer after it made a cache."""

    name: str
    tokens: int | None
    """The size as the provider counts it; ``None`` where it does not say."""
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheDemand:
    """How often a prefix is sent, and how much of it the provider had cached by itself."""

    rate: float = 0.0
    """Uses an hour, as an exponential average at ``at``."""
    at: datetime | None = None
    hit_rate: float | None = None
    """The mean share of the prefix's tokens that came from the provider's own cache."""
    measured: int = 0
    """How many requests the hit rate was measured on."""

    def rate_at(self, now: datetime) -> float:
        """The hourly number of uses, decayed to a later moment."""
        if self.at is None:
            return 0.0
        hours = max((now - self.at) / timedelta(hours=1), 0.0)
        return self.rate * math.exp(-hours / DEMAND_HOURS)

    def used(self, now: datetime) -> CacheDemand:
        """This demand with one more use."""
        return replace(self, rate=self.rate_at(now) + 1 / DEMAND_HOURS, at=now)

    def hit(self, cached_tokens: int, prefix_tokens: int) -> CacheDemand:
        """This demand after a request without a cache of ours. The first request is ignored, since it always misses.

        Args:
            cached_tokens: How much of the request the provider had cached. The prefix stands first in it.
            prefix_tokens: The size of the prefix.
        """
        if self.at is None:
            return self
        share = min(cached_tokens / prefix_tokens, 1.0) if prefix_tokens else 0.0
        measured, before = self.measured + 1, self.hit_rate or 0.0
        weight = max(1 / measured, HIT_WEIGHT)
        return replace(self, hit_rate=before + weight * (share - before), measured=measured)

    @property
    def known_hit_rate(self) -> float | None:
        """The rate of implicit hits; ``None`` until enough was measured."""
        return self.hit_rate if self.measured >= MIN_MEASURED_REQUESTS else None


def break_even_uses(prices: CachePrices, hours: float, hit_rate: float, *, exists: bool = False) -> float:
    """How many uses within its life a cache needs to cost less than none; ``inf`` where it never does.

    Args:
        prices: The prices of one token.
        hours: How long it is to live.
        hit_rate: The share of its tokens that the provider would have cached by itself.
        exists: Whether the cache exists already, so that only its storage is paid.
    """
    saved = (1 - hit_rate) * (prices.input - prices.cached)
    paid = (0.0 if exists else prices.input) + prices.storage * hours
    return paid / saved if saved > 0 else math.inf


CacheVerdict = Literal[
    "off", "too_small", "price_unknown", "hit_rate_unknown", "does_not_pay", "pays", "always", "alive", "full"
]
"""Why there is a cache or none, as computed when the prefix was last used."""
CacheStep = Literal["make", "renew"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLifetime:
    """A cache that a provider keeps."""

    expires_at: datetime
    ttl: timedelta

    def ends_soon(self, now: datetime) -> bool:
        """Whether it is in the last part of its life, or past it."""
        return now >= self.expires_at - self.ttl / RENEWAL_DIVISOR

    def serves(self, now: datetime) -> bool:
        """Whether a request that is sent now may name it."""
        return now + EXPIRY_MARGIN < self.expires_at


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheDecision:
    """What is to be done for a prefix that was just used."""

    verdict: CacheVerdict
    step: CacheStep | None = None


def decide_caching(
    caching: Caching,
    terms: CacheTerms,
    demand: CacheDemand,
    life: CacheLifetime | None,
    now: datetime,
    *,
    minimum: int,
    tokens: int,
) -> CacheDecision:
    """Decide what to do with a cache after a reply.

    Args:
        caching: What may be cached, and how the policy wants it.
        terms: The terms of the model's provider.
        demand: The demand for the prefix, with this use counted.
        life: The life of the existing cache; ``None``: there is none.
        now: The present moment.
        minimum: The fewest tokens that the provider caches, as far as that is known by now.
        tokens: The tokens of the prefix, by the provider's count where there is one.
    """
    exists = life is not None and life.serves(now)
    if caching.mode == "off":
        return CacheDecision(verdict="off")
    if not exists and tokens < minimum:
        return CacheDecision(verdict="too_small")
    if exists and life is not None and not life.ends_soon(now):
        return CacheDecision(verdict="alive")
    if caching.mode == "always":
        return CacheDecision(verdict="always", step="renew" if exists else "make")
    return _decision_by_prices(caching, terms.prices(tokens, now.date()), demand, now, exists=exists)


def _decision_by_prices(
    caching: Caching, prices: CachePrices | None, demand: CacheDemand, now: datetime, *, exists: bool
) -> CacheDecision:
    hit_rate = demand.known_hit_rate
    if prices is None or hit_rate is None:
        return CacheDecision(verdict="price_unknown" if prices is None else "hit_rate_unknown")
    hours = caching.ttl / timedelta(hours=1)
    needed, expected = break_even_uses(prices, hours, hit_rate, exists=exists), demand.rate_at(now) * hours
    if expected <= needed:
        return CacheDecision(verdict="does_not_pay")
    return CacheDecision(verdict="pays", step="renew" if exists else "make")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCache:
    """A prefix of some size that conversations of a tenant share, and the cache of it, if there is one."""

    id: UUID
    tenant_id: UUID
    model: str
    """The chat model, by the name under which it is asked."""
    account: str
    fingerprint: str
    files: tuple[str, ...] = ()
    """SHA-256 of the files in it."""
    tokens: int
    """The size of the prefix: our estimate, and the provider's count once a cache was made."""
    minimum: int | None = None
    """The fewest tokens that the provider caches, where it refused this prefix as too short."""
    name: str | None = None
    """The provider's name of the cache; ``None``: there is no cache."""
    ttl_seconds: int
    made_at: datetime | None = None
    expires_at: datetime | None = None
    made_for: UUID | None = None
    """The conversation whose turn had it made."""
    uses: int = 0
    """How many requests have named the cache since it was made."""
    rate: float = 0.0
    rate_at: datetime | None = None
    hit_rate: float | None = None
    measured: int = 0
    verdict: CacheVerdict
    due_at: datetime | None = None
    """From this moment on a worker has to look at the row; ``None``: it need not."""
    tries: int = 0
    """Failed tries in a row."""
    created_at: datetime
    last_used_at: datetime

    @property
    def demand(self) -> CacheDemand:
        """How often the prefix is sent."""
        return CacheDemand(rate=self.rate, at=self.rate_at, hit_rate=self.hit_rate, measured=self.measured)

    @property
    def life(self) -> CacheLifetime | None:
        """When the cache ends, and how long it is kept; ``None``: there is no cache."""
        if self.name is None or self.expires_at is None:
            return None
        return CacheLifetime(expires_at=self.expires_at, ttl=timedelta(seconds=self.ttl_seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """One line of the account of costs: an action on a cache, and what it cost or saved."""

    id: UUID
    conversation_id: UUID | None
    """The conversation whose turn caused it; ``None``: no turn did."""
    cache_id: UUID
    model: str
    action: CacheAction
    reason: str | None = None
    tokens: int = 0
    spent_usd: float | None = 0.0
    """What the action cost; negative for storage that is not needed after all; ``None`` where no price is known."""
    saved_usd: float | None = 0.0
    """What was saved, compared with the full price of the tokens that were read."""
    beyond_usd: float | None = 0.0
    """The part of ``saved_usd`` that the provider's own caching would not have saved."""
    at: datetime


def spent_on_making(prices: CachePrices | None, tokens: int, life: timedelta) -> float | None:
    """What making a cache costs in USD: processing its tokens once, and storing them for its whole life."""
    return None if prices is None else tokens * prices.input + (spent_on_keeping(prices, tokens, life) or 0.0)


def spent_on_keeping(prices: CachePrices | None, tokens: int, more: timedelta) -> float | None:
    """What storing a cache for longer costs in USD; negative for time that is given back."""
    return None if prices is None else tokens * prices.storage * (more / timedelta(hours=1))


def saved_by_use(prices: CachePrices | None, tokens: int, hit_rate: float | None) -> tuple[float | None, float | None]:
    """USD saved by one request: (against the full price, against what the provider would have cached by itself)."""
    if prices is None:
        return None, None
    saved = tokens * (prices.input - prices.cached)
    return saved, saved * (1 - (hit_rate or 0.0))


Availability = Literal["available", "model", "operator", "policy"]
"""Whether caches can be made, or who prevents it: the model's provider, the operator or the policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheMeasure:
    """What caches cost and saved, of a conversation or of a tenant: sums over the lines of the account."""

    counts: tuple[tuple[CacheAction, int], ...] = ()
    tokens_read: int = 0
    """Tokens that requests read from caches that they named."""
    spent_usd: float | None = None
    """``None``: there was no action, or a price is unknown."""
    saved_usd: float | None = None
    beyond_usd: float | None = None

    def count(self, action: CacheAction) -> int:
        """How often there was such an action."""
        return dict(self.counts).get(action, 0)

    @property
    def net_usd(self) -> float | None:
        """Saved beyond the provider's own caching, less what was spent; ``None`` without prices."""
        if self.spent_usd is None or self.beyond_usd is None:
            return None
        return round(self.beyond_usd - self.spent_usd, 8)

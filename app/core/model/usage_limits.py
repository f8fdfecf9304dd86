"""Limits of tenants and keys, and how much of each is left. Pure: the counting is done elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

MINUTE_SECONDS: Final = 60
"""Seconds of the window in which requests are counted."""
STEP_SECONDS: Final = 5
STEPS_PER_MINUTE: Final = MINUTE_SECONDS // STEP_SECONDS
"""The number of whole steps in a minute. The step that lies only partly within the last minute counts as well."""
HOUR: Final = timedelta(hours=1)
"""The window in which calls, tokens and money are counted."""

_SHORTEST_WAIT: Final = timedelta(seconds=1)

SpendingPurpose = Literal["chat", "compaction", "verification", "embedding"]
LimitOwner = Literal["tenant", "key"]
Count = Annotated[int, Field(ge=0, le=10**15)]
Money = Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)]


class Limits(BaseModel):
    """The limits of a tenant or of a key; ``None`` = no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    requests_per_minute: Count | None = None
    running_turns: Count | None = None
    """The most replies that are made at once, including those that are stored nowhere."""
    open_streams: Count | None = None
    """The most event streams and sockets that are open at once. The stream of a reply is not counted."""
    stream_seconds: Annotated[float, Field(gt=0, le=10**7)] | None = None
    """The longest time in seconds that an event stream or socket stays open; its client then opens another."""
    chat_calls_per_hour: Count | None = None
    chat_tokens_per_hour: Count | None = None
    chat_usd_per_hour: Money | None = None
    compaction_calls_per_hour: Count | None = None
    compaction_tokens_per_hour: Count | None = None
    compaction_usd_per_hour: Money | None = None
    verification_calls_per_hour: Count | None = None
    verification_tokens_per_hour: Count | None = None
    verification_usd_per_hour: Money | None = None
    embedding_calls_per_hour: Count | None = None
    embedding_tokens_per_hour: Count | None = None
    embedding_usd_per_hour: Money | None = None

    def overridden(self, changes: Mapping[str, Any]) -> Limits:
        """These limits, replaced where a key has limits of its own. Names that are no longer known are ignored."""
        known = {name: value for name, value in changes.items() if name in Limits.model_fields}
        return Limits.model_validate({**self.model_dump(), **known})


TENANT_LIMITS: Final = Limits(
    requests_per_minute=6_000,
    running_turns=100,
    open_streams=1_000,
    stream_seconds=3_600,
    chat_calls_per_hour=20_000,
    chat_usd_per_hour=100,
    compaction_usd_per_hour=50,
    verification_usd_per_hour=25,
    embedding_usd_per_hour=25,
)
KEY_LIMITS: Final = Limits(requests_per_minute=3_000, running_turns=50, open_streams=500, stream_seconds=3_600)
TENANT_ONLY: Final = frozenset(
    name for name in Limits.model_fields if name.startswith(("compaction_", "verification_", "embedding_"))
)
"""The limits that a key cannot have, since this work belongs to a conversation, whichever key's request caused it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUsage:
    """How much of one limit is used, and when there is room again."""

    name: str
    whose: LimitOwner
    limit: float
    used: float
    resets_in: float
    """Seconds until the whole limit is free again, if nothing more is asked for; 0 if nothing is used."""
    wait: float = 0.0
    """Seconds until there is room again; 0 = there is room now."""

    @property
    def remaining(self) -> float:
        """How much of the limit is left."""
        return max(self.limit - self.used, 0)


def tightest(usages: Iterable[LimitUsage]) -> LimitUsage | None:
    """The limit with the least room left; ``None`` without limits."""
    return min(usages, key=lambda one: (one.remaining / one.limit if one.limit else 0, one.limit), default=None)


@dataclass(frozen=True, slots=True)
class SlidingCount:
    """How often something happened in the last minute, in steps of ``STEP_SECONDS`` seconds, numbered since 1970.

    A step counts until all of it is a minute ago. So no minute, wherever it begins, has more than a limit allows.
    """

    steps: tuple[tuple[int, int], ...] = ()
    """(number of the step, how often it happened in it), in order."""

    def at(self, now: float) -> SlidingCount:
        """This count at a moment, without the steps that have left the window or lie ahead of the clock."""
        last = int(now // STEP_SECONDS)
        return SlidingCount(tuple(one for one in self.steps if last - STEPS_PER_MINUTE <= one[0] <= last))

    def plus(self, now: float) -> SlidingCount:
        """This count with one more, now."""
        step, kept = int(now // STEP_SECONDS), self.at(now).steps
        if kept and kept[-1][0] == step:
            return SlidingCount((*kept[:-1], (step, kept[-1][1] + 1)))
        return SlidingCount((*kept, (step, 1)))

    @property
    def used(self) -> int:
        """How often it happened, in all steps together."""
        return sum(count for _, count in self.steps)

    def limit_usage(self, now: float, limit: int, whose: LimitOwner) -> LimitUsage:
        """How much of a limit of requests a minute is used."""
        amounts = [((step + STEPS_PER_MINUTE + 1) * STEP_SECONDS - now, count) for step, count in self.at(now).steps]
        return _usage_of_limit("requests_per_minute", amounts, limit, whose, window=MINUTE_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinuteSpending:
    """What was spent within one minute."""

    minute: datetime
    calls: int = 0
    tokens: int = 0
    usd: float = 0.0


def hourly_limit_names(purpose: SpendingPurpose) -> dict[str, str]:
    """The names of the hourly limits of one purpose, by what is counted."""
    return {unit: f"{purpose}_{unit}_per_hour" for unit in ("calls", "tokens", "usd")}


def has_hourly_limit(limits: Limits, purpose: SpendingPurpose) -> bool:
    """Whether what is spent on a purpose has an hourly limit."""
    return any(getattr(limits, name) is not None for name in hourly_limit_names(purpose).values())


def hourly_usages(
    purpose: SpendingPurpose,
    spent: Sequence[MinuteSpending],
    limits: Limits,
    whose: LimitOwner,
    now: datetime,
    *,
    part: int = 1,
) -> list[LimitUsage]:
    """How much of each hourly limit of one purpose is used.

    Args:
        purpose: What the calls were made for.
        spent: Minutes of the last hour, in order.
        limits: The limits of the tenant or of the key.
        whose: Whose limits they are.
        now: The present moment.
        part: Each limit is divided by this number first.
    """
    found = []
    for unit, name in hourly_limit_names(purpose).items():
        limit: float | None = getattr(limits, name)
        if limit is not None:
            amounts = [(one.minute, getattr(one, unit)) for one in spent]
            found.append(_hourly_usage(name, amounts, limit / part, whose, now))
    return found


def _hourly_usage(
    name: str, spent: Sequence[tuple[datetime, float]], limit: float, whose: LimitOwner, now: datetime
) -> LimitUsage:
    # A minute counts until all of it is an hour ago. The minutes are those of the database, and ``now`` may come from a
    # clock that differs: all of them are of the last hour.
    longest = HOUR + timedelta(minutes=1)
    ends = [(min(max(minute + longest - now, _SHORTEST_WAIT), longest).total_seconds(), one) for minute, one in spent]
    return _usage_of_limit(name, ends, limit, whose, window=HOUR.total_seconds())


def _usage_of_limit(
    name: str, amounts: Sequence[tuple[float, float]], limit: float, whose: LimitOwner, *, window: float
) -> LimitUsage:
    """How much of a limit is used. ``amounts`` say what was used, and after how many seconds each leaves the window."""
    used = left = sum(amount for _, amount in amounts)
    wait = 0.0
    for leaves_in, amount in amounts:
        if left < limit:
            break
        left, wait = left - amount, max(leaves_in, 0.0)
    resets = max((leaves_in for leaves_in, amount in amounts if amount), default=0.0)
    if not limit:  # there is never room
        wait = window
    return LimitUsage(name=name, whose=whose, limit=limit, used=used, resets_in=max(resets, 0.0), wait=wait)

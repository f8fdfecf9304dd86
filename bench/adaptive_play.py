"""Plays a recorded talk against the clock: compactions take time, and a provider's cache expires.

The decisions are the service's own (triggers, planner, pace, adaptive thresholds). The content of a summary plays no
part: a state has as many tokens as planned, anchors have those found in the folded messages, up to their room, and
digests have their usual share of the block.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Final

from app.core.model.conversation import Outline, QuietPeriod
from app.core.model.gauge import Breakdown
from app.core.model.pace import MAX_COMPACTIONS, MessageSample, Pace, pace_of
from app.core.model.policies.adaptive import adapt, adapted_policy
from app.core.model.policies.budgets import Budgets, budgets_of
from app.core.model.policies.policy import CompactionPolicy, Moment, Trigger
from app.core.model.policies.resolving import resolve
from app.core.planning.compaction import NothingToFold, plan_compaction
from app.core.planning.cuts import Tail
from app.core.planning.triggers import first_due_trigger, quiet_after

CHUNK: Final = 16_000
"""Tokens that one call of a summarizer digests."""
CACHE_SECONDS: Final = 300
"""For how many seconds a provider keeps a prefix that nobody asks for again."""
CACHED_PRICE: Final = 0.25
"""The price of a cached token, relative to one that is not: Session State Compression assumes that 75 % is saved."""
OUTPUT_PRICE: Final = 4
"""The price of a token that is written, relative to one that is read."""
DIGEST_PART: Final = Fraction(15, 100)
"""The largest share of the block that digests take, unless they hold exact values that are nowhere else."""
REPLY_SECONDS: Final = 4.0
"""The seconds from a request to its answer."""
_SPREAD: Final = 0.6
"""The standard deviation of the logarithms of gaps and durations."""
_BEGIN: Final = datetime(2026, 1, 5, 9, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A talk as the planner sees it: roles, weights, calls and anchors."""

    name: str
    kind: str
    system_tokens: int
    messages: tuple[Outline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """The pace of a talk: medians in seconds."""

    gap: float
    """The time from a reply to the next question."""
    compaction: float
    """The time of one call of the summarizer."""


@dataclass(slots=True, kw_only=True)
class Played:
    """The result of one talk."""

    turns: int = 0
    compactions: int = 0
    waits: int = 0
    """Requests that waited for a compaction, which they began or which was running."""
    waited: float = 0
    """The seconds that requests waited in all."""
    rewrites: int = 0
    """Requests whose prefix a compaction had changed while the provider still had it."""
    lost: int = 0
    """The tokens of those prefixes."""
    requests: int = 0
    sent: int = 0
    """The tokens of all requests."""
    cached: int = 0
    tail: int = 0
    """How many of those tokens were messages word for word."""
    summarized: int = 0
    """The tokens that summarizers read."""
    written: int = 0
    """The tokens that summarizers wrote."""

    @property
    def cost(self) -> float:
        """The cost of requests (less what the cache saves) and compactions, in uncached input tokens."""
        requests = self.sent - (1 - CACHED_PRICE) * self.cached
        return requests + self.summarized + OUTPUT_PRICE * self.written


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    """A running compaction: when it ends, and what will be folded then."""

    ends: datetime
    seconds: float
    through: int
    """The last message that it folds."""


@dataclass(slots=True, kw_only=True)
class Play:
    """One talk under one policy. Two plays of one seed have the same gaps, and the same n-th duration."""

    talk: Recorded
    rhythm: Rhythm
    policy: CompactionPolicy
    budgets: Budgets
    seed: int
    now: datetime = _BEGIN
    messages: list[Outline] = field(default_factory=list)
    steps: list[MessageSample] = field(default_factory=list)
    boundary: int = 0
    anchors: int = 0
    digests: int = 0
    digest_part: Fraction = DIGEST_PART
    state: int = 0
    version: int = 0
    pace: Pace | None = None
    quiet: QuietPeriod = field(default_factory=QuietPeriod)
    running: _Running | None = None
    took: list[float] = field(default_factory=list)
    last: tuple[datetime, int, int] | None = None
    """The last request: its time, its length in tokens, and the version of the state that it had."""
    played: Played = field(default_factory=Played)

    @classmethod
    def of(cls, talk: Recorded, rhythm: Rhythm, window: int, seed: int, **overrides: object) -> Play:
        """A play under the default preset in a window of this many tokens."""
        policy = resolve("semantic", {"context_window": window, "protect": [], **overrides})
        return cls(talk=talk, rhythm=rhythm, policy=policy, budgets=budgets_of(policy, window), seed=seed)

    def whole(self) -> Played:
        """Play the talk to its end."""
        gaps = random.Random(f"gaps {self.talk.name} {self.seed}")
        for number, message in enumerate(self.talk.messages):
            if message.role == "user":
                self.now += timedelta(seconds=_drawn(gaps, self.rhythm.gap))
                self.played.turns += 1
            asked = self._asked() if message.role == "assistant" else (0, 0)
            self._add_message(message, *asked)
            following = self.talk.messages[number + 1 : number + 2]
            if message.role == "assistant" and not message.calls:
                self.pace = pace_of(self.steps, self.took[-MAX_COMPACTIONS:])
            if not following or following[0].role != "assistant":
                self._begin(frozenset({"stored"}))
        return self.played

    def _add_message(self, message: Outline, asked: int, cached: int) -> None:
        self.messages.append(message)
        step = MessageSample(
            role=message.role, tokens=message.token_count, at=self.now, input_tokens=asked, cached_tokens=cached
        )
        self.steps.append(step)

    def _asked(self) -> tuple[int, int]:
        """Make a request for the next reply: its tokens, and how many of them came from the cache."""
        self._finish()
        self._compact_before_call()
        size, played = self._breakdown().total, self.played
        cached = self._cached(size)
        played.requests += 1
        played.sent += size
        played.cached += cached
        played.tail += self._breakdown().tail
        self.last = (self.now, size, self.version)
        self.now += timedelta(seconds=REPLY_SECONDS)
        return size, cached

    def _cached(self, size: int) -> int:
        """How many tokens at the beginning of this request are the same as in the last one."""
        if self.last is None or (self.now - self.last[0]).total_seconds() > CACHE_SECONDS:
            return 0
        _, before, version = self.last
        if version == self.version:
            return min(before, size)
        self.played.rewrites += 1
        self.played.lost += before - self.talk.system_tokens
        return self.talk.system_tokens

    def _compact_before_call(self) -> None:
        """Do what a turn does before it asks the model: wait for a running compaction, or make one."""
        policy, budgets = self._in_force()
        trigger = self._due(policy, budgets, frozenset({"before_call"}))
        if trigger is None:
            return
        if self.running is None:
            self._claim(trigger, policy, budgets)
        if self.running is not None:
            self.played.waits += 1
            self.played.waited += max((self.running.ends - self.now).total_seconds(), 0)
            self.now = max(self.running.ends, self.now)
            self._finish()

    def _begin(self, moments: frozenset[Moment]) -> None:
        self._finish()
        policy, budgets = self._in_force()
        trigger = None if self.running else self._due(policy, budgets, moments)
        if trigger is not None:
            self._claim(trigger, policy, budgets)

    def _claim(self, trigger: Trigger, policy: CompactionPolicy, budgets: Budgets) -> None:
        outline, before = tuple(self.messages[self.boundary :]), self._breakdown()
        planned = plan_compaction(
            Tail(outline=outline),
            breakdown=before,
            budgets=budgets,
            estimator=policy.estimator,
            request=trigger.request(),
            chunk_tokens=CHUNK,
        )
        if isinstance(planned, NothingToFold):
            self.quiet = quiet_after(policy, budgets, seen_seq=len(self.messages), predicted_tokens=before.total)
            return
        folded = sum(item.token_count for item in outline[: planned.goal_seq - self.boundary])
        calls = math.ceil(folded / CHUNK)
        chosen = random.Random(f"compaction {self.talk.name} {self.seed} {self.played.compactions}")
        seconds = calls * _drawn(chosen, self.rhythm.compaction)
        self.played.summarized += folded + calls * self.state
        self.played.written += calls * budgets.state_tokens
        self.running = _Running(ends=self.now + timedelta(seconds=seconds), seconds=seconds, through=planned.goal_seq)

    def _finish(self) -> None:
        """Install the compaction if it has ended by now."""
        running = self.running
        if running is None or running.ends > self.now:
            return
        policy, budgets = self._in_force()
        found = sum(item.anchor_tokens for item in self.messages[self.boundary : running.through])
        self.anchors = min(self.anchors + found, budgets.anchor_tokens or 0)
        self.boundary, self.state, self.running = running.through, budgets.state_tokens, None
        state_and_anchors = self.state + self.anchors
        most = math.floor(self.digest_part / (1 - self.digest_part) * state_and_anchors)
        self.digests = min(most, budgets.digest_room(beside=state_and_anchors))
        self.version += 1
        self.took.append(running.seconds)
        self.played.compactions += 1
        predicted = self._breakdown().total
        self.quiet = quiet_after(policy, budgets, seen_seq=running.through, predicted_tokens=predicted)

    def _in_force(self) -> tuple[CompactionPolicy, Budgets]:
        floor = self.talk.system_tokens + self.anchors + self.budgets.state_tokens
        adapted = adapt(self.policy, self.budgets, self.pace, floor=floor)
        return adapted_policy(self.policy, self.budgets, adapted) if adapted else (self.policy, self.budgets)

    def _due(self, policy: CompactionPolicy, budgets: Budgets, moments: frozenset[Moment]) -> Trigger | None:
        return first_due_trigger(
            policy,
            budgets,
            moments=moments,
            tokens=self._breakdown().total,
            messages=len(self.messages) - self.boundary,
            last_seq=len(self.messages),
            quiet=self.quiet,
            now=self.now,
        )

    def _breakdown(self) -> Breakdown:
        return Breakdown(
            system=self.talk.system_tokens,
            state=self.state,
            anchors=self.anchors,
            digests=self.digests,
            tail=sum(item.token_count for item in self.messages[self.boundary :]),
        )


def _drawn(chosen: random.Random, median: float) -> float:
    return chosen.lognormvariate(math.log(median), _SPREAD)


def numbered(messages: Sequence[Outline]) -> tuple[Outline, ...]:
    """The messages with consecutive numbers from 1, so that a message's index is its number less one."""
    if [one.seq for one in messages] != list(range(1, len(messages) + 1)):
        raise ValueError("messages are numbered from 1, without a gap")
    return tuple(messages)

"""The statistics of a conversation or a tenant: counts and sums over stored rows, and figures made of them; no text."""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Final, Literal
from uuid import UUID

from app.core.model.caches import CacheMeasure
from app.core.model.continuity import Answered
from app.core.model.conversation import Usage
from app.core.model.fieldwise import combine_fields
from app.core.model.records import IN_FLIGHT, EntryCounts
from app.core.model.segments import ExpansionWay, Level

APPLIED: Final = "applied"
ASKED_AGAIN: Final = "asked_again"
"""The recorded reason of an accepted answer, if the model was asked again about a part of it."""
DOUBT_REASONS: Final = frozenset({"set_aside", "kept", "not_stated", "contradicted"})
"""Repairs with these reasons mean that a statement is in doubt or was denied."""
RESTORED_REASON: Final = "supported"
"""A repair with this reason undoes another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionTally:
    """Compactions with the same trigger, status, place and reason: how many there are, and their sums."""

    trigger: str
    status: str
    ran_in: str
    reason: str | None
    count: int
    messages: int = 0
    tokens_before: int = 0
    """The sum over applied compactions with both sizes known, for the same tail; ``tokens_after`` likewise."""
    tokens_after: int = 0
    entries: EntryCounts = field(default_factory=EntryCounts)


CallPurpose = Literal["compaction", "detail", "verification", "embedding"]
"""What a call made: a summary, a segment's L1, verdicts on a summary, or vectors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTally:
    """Model calls with the same purpose, outcome, reason and prompt, and the tokens that they used."""

    purpose: CallPurpose
    outcome: str
    reason: str | None
    count: int
    usage: Usage = field(default_factory=Usage)
    prompt_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTally:
    """Calls for summaries with the same version of the prompt; ``None``: without a prompt, or with an unknown one."""

    prompt_version: str | None
    attempts: int
    accepted: int
    refused: int
    """Refused by the checks. Failed calls are neither accepted nor refused."""
    asked_again: int = 0
    """Answers about which the model was asked again."""
    input_tokens: int = 0
    """The input tokens, including cached ones."""
    output_tokens: int = 0
    compactions: int = 0
    """Compactions that took effect, by the prompt of their last call."""
    repairs: int = 0
    """Changes of what these compactions wrote, without doubts."""
    doubts: int = 0
    """Entries that the model gave up without a proof, and statements that a verifier did not find, or denied."""
    fidelity: float | None = None
    """The mean share of the folded exact values that were still served verbatim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptEffect:
    """Compactions that took effect and whose last call used one version of the prompt."""

    prompt_version: str | None
    compactions: int
    fidelity: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairTally:
    """Changes of summaries with the same reason and the same version of the prompt."""

    reason: str
    prompt_version: str | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CostOfOne:
    """The average cost of one compaction that took effect, failed calls included; ``None`` if none took effect."""

    input_tokens: float | None = None
    """The input tokens, including cached ones."""
    cached_tokens: float | None = None
    output_tokens: float | None = None
    cost_usd: float | None = None
    """The price; also ``None`` if it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPerQuery:
    """The price of reading a context once with the chat model, nothing cached; ``None`` if its price is unknown."""

    served_usd: float | None
    history_usd: float | None
    """The price of the context if nothing had been compacted."""

    @property
    def saved_usd(self) -> float | None:
        """How much less one query costs than without compaction."""
        if self.served_usd is None or self.history_usd is None:
            return None
        return round(self.history_usd - self.served_usd, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long something took, in milliseconds; ``None`` if it never happened."""

    count: int = 0
    total_ms: int = 0
    p50_ms: float | None = None
    p95_ms: float | None = None

    @property
    def mean_ms(self) -> float | None:
        """The average."""
        return share(self.total_ms, self.count, digits=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpansionTally:
    """Expansions that were started the same way."""

    way: ExpansionWay
    count: int
    passages: int
    tokens: int
    used: int
    """Expansions of which a reply used something."""
    judged: int
    """Expansions of which it is known whether a reply used something: the reply of their turn is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelMeasure:
    """How many tokens segments have at one level, and how many their originals have."""

    level: Level
    segments: int
    tokens: int
    original_tokens: int

    @property
    def ratio(self) -> float | None:
        """Tokens of the level ÷ tokens of the originals."""
        return share(self.tokens, self.original_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity:
    """The share of folded exact values that were still served verbatim right afterwards."""

    last: float | None = None
    """The share of the newest probe."""
    mean: float | None = None
    probes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuityMeasure:
    """What could still be answered after compactions, over the probes of all scored ones."""

    last: float | None = None
    """The recall of the newest scored compaction."""
    answered: Answered = field(default_factory=Answered)
    tone: float | None = None
    """The mean tone over all scored compactions."""
    scored: int = 0
    """How many compactions were scored."""

    @property
    def recall(self) -> float | None:
        """Answered after ÷ answered before."""
        return share(self.answered.after, self.answered.before)

    @property
    def contradiction(self) -> float | None:
        """Answered differently ÷ answered before."""
        return share(self.answered.contradicted, self.answered.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """Everything that was counted for one conversation or one tenant, at one moment."""

    compactions: Sequence[CompactionTally] = ()
    calls: Sequence[CallTally] = ()
    expansions: Sequence[ExpansionTally] = ()
    in_turns: Latency = field(default_factory=Latency)
    """How long the compactions took that ran inside a turn."""
    expanding: Latency = field(default_factory=Latency)
    turns: Latency = field(default_factory=Latency)
    """How long whole turns took, counting turns that have ended."""
    fidelity: Fidelity = field(default_factory=Fidelity)
    continuity: ContinuityMeasure = field(default_factory=ContinuityMeasure)
    repairs: Sequence[RepairTally] = ()
    prompts: Sequence[PromptEffect] = ()
    caches: CacheMeasure = field(default_factory=CacheMeasure)
    last_applied: UUID | None = None
    """The id of the newest applied compaction."""

    @property
    def total(self) -> int:
        """How many compactions there are, of every status."""
        return sum(tally.count for tally in self.compactions)

    @property
    def applied(self) -> int:
        """How many compactions took effect."""
        return self.compactions_by("status").get(APPLIED, 0)

    @property
    def in_flight(self) -> int:
        """How many compactions are queued or running."""
        return sum(count for status, count in self.compactions_by("status").items() if status in IN_FLIGHT)

    def compactions_by(self, name: str) -> Mapping[str, int]:
        """How many compactions by ``trigger``, ``status``, ``ran_in`` or ``reason``, the most frequent first."""
        return _most_frequent_first((getattr(tally, name), tally.count) for tally in self.compactions)

    def calls_by(self, name: str) -> Mapping[str, int]:
        """How many model calls by ``purpose``, ``outcome`` or ``reason``, the most frequent first."""
        return _most_frequent_first((getattr(tally, name), tally.count) for tally in self.calls)

    @property
    def by_prompt_version(self) -> Sequence[PromptTally]:
        """Calls for summaries by the version of their prompt, and their outcomes, the most frequent first."""
        calls: dict[str | None, list[CallTally]] = defaultdict(list)
        for tally in self.calls:
            if tally.purpose == "compaction":
                calls[tally.prompt_version].append(tally)
        found = [self._tally_of_prompt(version, tallies) for version, tallies in calls.items()]
        return sorted(found, key=lambda one: (-one.attempts, one.prompt_version or ""))

    def _tally_of_prompt(self, version: str | None, calls: Sequence[CallTally]) -> PromptTally:
        outcomes: Counter[str] = Counter()
        for tally in calls:
            outcomes[tally.outcome] += tally.count
        usage = reduce(Usage.plus, (tally.usage for tally in calls), Usage())
        repairs = [one for one in self.repairs if one.prompt_version == version]
        effects = [one for one in self.prompts if one.prompt_version == version]
        return PromptTally(
            prompt_version=version,
            attempts=outcomes.total(),
            accepted=outcomes["accepted"],
            refused=outcomes["refused"],
            asked_again=sum(tally.count for tally in calls if tally.reason == ASKED_AGAIN),
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            compactions=sum(one.compactions for one in effects),
            repairs=sum(one.count for one in repairs if one.reason not in {*DOUBT_REASONS, RESTORED_REASON}),
            doubts=sum(one.count for one in repairs if one.reason in DOUBT_REASONS),
            fidelity=next((one.fidelity for one in effects), None),
        )

    @property
    def messages(self) -> int:
        """How many messages applied compactions covered."""
        return sum(tally.messages for tally in self.compactions if tally.status == APPLIED)

    @property
    def tokens_before(self) -> int:
        """Sum over applied compactions."""
        return sum(map(operator.attrgetter("tokens_before"), self.compactions))

    @property
    def tokens_after(self) -> int:
        """Sum over applied compactions."""
        return sum(map(operator.attrgetter("tokens_after"), self.compactions))

    @property
    def tokens_saved(self) -> int:
        """The sum of what each applied compaction took off the context of the next request."""
        return self.tokens_before - self.tokens_after

    @property
    def entries(self) -> EntryCounts:
        """What became of the state's entries. An entry that three compactions kept counts three times as ``kept``."""
        return reduce(
            partial(combine_fields, operator.add), (tally.entries for tally in self.compactions), EntryCounts()
        )

    @property
    def usage(self) -> Usage:
        """The usage that providers reported for all calls."""
        return reduce(Usage.plus, (tally.usage for tally in self.calls), Usage())

    @property
    def cost_of_one(self) -> CostOfOne:
        """The cost of all calls for summaries, failed compactions included, per compaction that took effect."""
        spent = reduce(Usage.plus, (tally.usage for tally in self.calls if tally.purpose == "compaction"), Usage())
        return CostOfOne(
            input_tokens=share(spent.input_tokens, self.applied, digits=1),
            cached_tokens=share(spent.cached_tokens, self.applied, digits=1),
            output_tokens=share(spent.output_tokens, self.applied, digits=1),
            cost_usd=None if spent.cost_usd is None else share(spent.cost_usd, self.applied, digits=8),
        )

    @property
    def used_share(self) -> float | None:
        """The share of judged expansions that a reply used."""
        return share(sum(one.used for one in self.expansions), sum(one.judged for one in self.expansions))


def share(part: float, whole: float, *, digits: int = 4) -> float | None:
    """Part ÷ whole, rounded; ``None`` if the whole is 0."""
    return round(part / whole, digits) if whole else None


def _most_frequent_first(pairs: Iterable[tuple[str | None, int]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for word, count in pairs:
        if word is not None:
            counts[word] += count
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

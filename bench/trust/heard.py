"""Applies recorded verdicts: which lies are removed and which honest statements are lost, by kind, with intervals."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Final

from app.core.validation.quotes import QuoteSearch
from bench.trust.blind import SENTENCES, Recorded
from bench.trust.effects import is_false_served
from bench.trust.lies import kind_of
from bench.trust.verified import asked_of, doubted, false_claims, is_claim_served, verified

_Z: Final = 1.96
"""The quantile for a 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share: how many of how many."""

    found: int
    count: int

    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval of the share."""
        return wilson(self.found, self.count)

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.found} of {self.count} ({100 * low:.1f}-{100 * high:.1f} %)"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEffects:
    """The effects of recorded verdicts."""

    recorders: tuple[str, ...]
    requests: int
    current: int
    """How many of the requests would be sent verbatim today."""
    lies_gone: dict[str, Share]
    """The share of lies that were removed, by kind and in all."""
    lies_doubted: Share
    """The share of false items that are still served, but in doubt."""
    honest_lost: dict[str, Share]
    """The share of honest claims that were lost, by kind of claim and in all."""
    honest_doubted: Share
    """The share of honest items that were put in doubt."""
    given_up: Share
    """The share of honestly given up entries that are gone, except entries that a false statement replaced too."""
    unproven: int
    """How many contradictions have no quote that is in the messages."""


def recorded_effects(answers: Sequence[Recorded]) -> RecordedEffects | None:
    """The figures of all answers together; ``None`` if there are no answers."""
    if not answers:
        return None
    gone: defaultdict[str, list[bool]] = defaultdict(list)
    lost: defaultdict[str, list[bool]] = defaultdict(list)
    in_doubt: list[bool] = []
    lies_in_doubt: list[bool] = []
    given_up: list[bool] = []
    unproven = 0
    for one in answers:
        case, lies = one.planned.case, one.planned.lies
        asked = asked_of(case, one.outcome)
        after = verified(asked, one.verdicts)
        false, newly = false_claims(asked, lies), doubted(after) - doubted(one.outcome)
        for lie in lies:
            is_gone = not is_false_served(case, lie, after)
            gone[kind_of(lie)].append(is_gone)
            items = [claim for claim in asked.claims if claim.kind == "item" and false.get(claim.n) is lie]
            lies_in_doubt.append(not is_gone and any(claim.target in newly for claim in items))
        by_lie = {claim.target for claim in asked.claims if claim.n in false and claim.kind == "item"}
        back = {claim.target for claim in asked.claims if claim.successor_id in by_lie}
        for claim in asked.claims:
            if claim.n in false:
                continue
            if claim.gives_up:
                given_up += [is_claim_served(claim, after)] if claim.target not in back else []
            elif is_claim_served(claim, one.outcome):
                lost[claim.kind].append(not is_claim_served(claim, after))
                if claim.kind == "item":
                    in_doubt.append(claim.target in newly)
        quotes = QuoteSearch(asked.shown)
        unproven += sum(
            verdict.verdict == "contradicted" and quotes.seq_of(verdict.quote, verdict.seq) is None
            for verdict in one.verdicts
        )
    return RecordedEffects(
        recorders=tuple(dict.fromkeys(one.recorder for one in answers)),
        requests=len(answers),
        current=sum(one.is_current for one in answers),
        lies_gone=_shares(gone),
        lies_doubted=_share(lies_in_doubt),
        honest_lost=_shares(lost),
        honest_doubted=_share(in_doubt),
        given_up=_share(given_up),
        unproven=unproven,
    )


def sentence_shares(path: Path = SENTENCES) -> dict[str, Share]:
    """The shares of the recorded sentences of false items that are supported, and so kept: true and false ones."""
    sentences_read = [one for item in json.loads(path.read_text("utf-8"))["items"] for one in item["sentences"]]
    return {
        name: _share([one["verdict"] == "supported" for one in sentences_read if one["is_true"] is is_true])
        for name, is_true in (("true", True), ("false", False))
    }


def wilson(found: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share; the whole range from 0 to 1 if nothing was counted."""
    if not count:
        return 0.0, 1.0
    share, square = found / count, _Z * _Z
    centre = (share + square / (2 * count)) / (1 + square / count)
    half = _Z * sqrt(share * (1 - share) / count + square / (4 * count * count)) / (1 + square / count)
    return max(0.0, centre - half), min(1.0, centre + half)


def _share(found: Sequence[bool]) -> Share:
    return Share(found=sum(found), count=len(found))


def _shares(found: dict[str, list[bool]]) -> dict[str, Share]:
    everything: Iterable[bool] = (one for values in found.values() for one in values)
    return {**{kind: _share(found[kind]) for kind in sorted(found)}, "all": _share(list(everything))}

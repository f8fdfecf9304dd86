"""Makes probes before a stretch is folded: questions that it answers, with the words by which the answer is found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from app.core.anchors.topics import stems_of
from app.core.continuity.statements import ContextStatement, StatementPool
from app.core.model.anchors import FoundAnchor
from app.core.model.continuity import ProbeKind
from app.core.text.sentences import asks
from app.core.text.values import NAMING_KINDS, Value
from app.core.text.words import GENERIC_STEMS

MAX_PROBES: Final[Mapping[ProbeKind, int]] = {"value": 24, "decision": 12, "open_point": 6, "who": 9, "when": 9}
"""The most probes of each kind; if there are more, evenly spread ones are taken."""
_MAX_CUES: Final = 12  # only the rarest words of a sentence are used: long sentences have many useless ones
_MIN_CUES: Final = 2
_SENTENCES_PER_NAME_PROBE: Final = 4
"""Sentences that are tried for each probe of a name, since many have too few other words."""
Item = TypeVar("Item")
_TIMES: Final = frozenset({"date", "time"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One question about a stretch."""

    kind: ProbeKind
    seq: int
    """The message that answers it."""
    sentence: str
    """The sentence that answers it."""
    cues: Mapping[str, float]
    """The stems of the words that lead to the answer, with their weights."""
    value: Value | None = None
    """The answer of a probe of kind ``value`` or ``when``."""
    name: str = ""
    """The answer of a probe of kind ``who``, in lower case."""

    @property
    def answer(self) -> str:
        """The value or the name, in lower case; empty for a probe that is answered by saying the same."""
        return self.value.text.casefold() if self.value else self.name

    @property
    def names_one_thing(self) -> bool:
        """Whether the answer counts without any of the probe's words."""
        return self.value is not None and self.value.kind in NAMING_KINDS

    @property
    def fewest_cues(self) -> int:
        """How many of a probe's words another statement must contain to be about the same."""
        return min(len(self.cues), 1 if self.kind == "value" else _MIN_CUES)


def probes_of(
    statements: Sequence[ContextStatement], anchors: Iterable[FoundAnchor], pool: StatementPool
) -> tuple[Probe, ...]:
    """The probes of a stretch, capped by kind.

    ``anchors`` are the active ones of these messages; ``pool`` is the context before, which gives words their weight.
    """
    found: dict[ProbeKind, list[Probe]] = {kind: [] for kind in MAX_PROBES}
    for probe in _all_probes(statements, anchors, pool):
        found[probe.kind].append(probe)
    return tuple(probe for kind, probes in found.items() for probe in _evenly_spread(probes, MAX_PROBES[kind]))


def _all_probes(
    statements: Sequence[ContextStatement], anchors: Iterable[FoundAnchor], pool: StatementPool
) -> Iterator[Probe]:
    spoken_statements = [one for one in statements if one.is_spoken and one.seq is not None and not asks(one.text)]
    latest: dict[str, Probe] = {}
    for statement in _evenly_spread(
        [one for one in spoken_statements if one.may_hold_values], MAX_PROBES["value"] + MAX_PROBES["when"]
    ):
        for probe in _value_probes(statement, statement.seq or 0, pool):
            latest.pop(probe.answer, None)
            latest[probe.answer] = probe
    yield from latest.values()
    for statement in _evenly_spread(
        [one for one in spoken_statements if one.names or one.speaker], _SENTENCES_PER_NAME_PROBE * MAX_PROBES["who"]
    ):
        yield from _name_probes(statement, statement.seq or 0, pool)
    for anchor in anchors:
        kind: ProbeKind = "open_point" if anchor.type == "unresolved_question" else "decision"
        yield from _anchor_probes(anchor.content, anchor.seq, kind, pool)


def _value_probes(statement: ContextStatement, seq: int, pool: StatementPool) -> Iterator[Probe]:
    for value in statement.values:
        cues = _cues(statement.text, value.text, pool)
        if cues or value.kind in NAMING_KINDS:
            kind: ProbeKind = "when" if value.kind in _TIMES else "value"
            yield Probe(kind=kind, seq=seq, sentence=statement.text, cues=cues, value=value)


def _name_probes(statement: ContextStatement, seq: int, pool: StatementPool) -> Iterator[Probe]:
    name = next(iter(statement.names), statement.speaker.lower())
    cues = _cues(statement.text, f"{name} {statement.speaker}", pool)
    if name and len(cues) > _MIN_CUES:
        yield Probe(kind="who", seq=seq, sentence=statement.text, cues=cues, name=name)


def _anchor_probes(text: str, seq: int, kind: ProbeKind, pool: StatementPool) -> Iterator[Probe]:
    cues = _cues(text, "", pool)
    if len(cues) >= _MIN_CUES:
        yield Probe(kind=kind, seq=seq, sentence=text, cues=cues)


def _cues(text: str, answer: str, pool: StatementPool) -> dict[str, float]:
    weights = {stem: pool.weight(stem) for stem in stems_of(text) - stems_of(answer) - GENERIC_STEMS}
    rarest = sorted(weights, key=lambda stem: (-weights[stem], stem))[:_MAX_CUES]
    return {stem: weights[stem] for stem in rarest}


def _evenly_spread(items: Sequence[Item], most: int) -> Sequence[Item]:
    if len(items) <= most:
        return items
    return [items[number * len(items) // most] for number in range(most)]

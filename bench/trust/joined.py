"""Makes chunks of the size that presets fold: several conversations of the corpus as one, with their recorded answers.

The conversations take turns, round by round. A state holds as many of the recorded statements as its preset plans for,
by the service's own pruning, so a larger chunk does not lead to a larger state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from uuid import UUID

from app.core.model.conversation import Message
from app.core.model.redaction import redact_message
from app.core.model.state import StateEntry
from app.core.state.layout import layout_of
from app.core.state.pruning import prune
from app.core.summarizer.candidate import parse_candidate
from app.core.summarizer.offline.narrative_states import is_narrative_only
from app.core.text.sentences import sentences
from app.core.text.token_counts import estimate_text
from app.core.validation.claims import DigestText
from app.usecases.verification.judging import Subject, VersionSources
from app.usecases.verification.pending import ENOUGH_TOKENS
from bench.replay import Replay
from bench.trust.rounds import ROUNDS, WINDOW, Case, merged
from bench.trust.verifying import subject_with, version_of

_IDS_EACH = 1_000
"""How many entry numbers are reserved for each conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """One large chunk, and what a verifier would be asked about it."""

    preset: str
    messages: tuple[Message, ...]
    subject: Subject
    state_tokens: int
    """The tokens of the state that is served after it."""

    @property
    def tokens(self) -> int:
        """The tokens of the chunk."""
        return sum(message.token_count for message in self.messages)


def folds_of(corpus: Sequence[Case], *, talks: int, rounds: int = 0) -> Iterator[Fold]:
    """Chunks of so many rounds of so many conversations at once, for every preset.

    Args:
        corpus: The cases; all rounds of a conversation must be next to each other.
        talks: The most conversations; there may be fewer with a preset.
        rounds: The rounds of each in one chunk; 0: as many as the service gathers without a pause, then the rest.
    """
    by_preset: defaultdict[str, list[list[Case]]] = defaultdict(list)
    for (_, preset), cases in groupby(corpus, key=lambda case: (case.talk.id, case.preset)):
        by_preset[preset].append(list(cases))
    for preset, found in by_preset.items():
        for start in range(0, len(found) - min(talks, len(found)) + 1, talks):
            line = _Line(preset, found[start : start + talks])
            for first, last in line.spans(rounds) if rounds else line.gathered():
                yield line.fold(first, last)


class _Line:
    """Some conversations as one, under one preset."""

    def __init__(self, preset: str, talks: Sequence[Sequence[Case]]) -> None:
        self._preset, self._talks = preset, talks
        replay = Replay.in_window(WINDOW, preset)
        self._schema, self._policy, self._budgets = replay.schema, replay.policy, replay.budgets
        self._places: dict[tuple[int, int], int] = {}
        self._rounds: list[list[Message]] = [[] for _ in range(ROUNDS)]
        for number in range(ROUNDS):
            for nth, cases in enumerate(talks):
                for message in cases[number].request.messages:
                    seq = self._places[nth, message.seq] = len(self._places) + 1
                    self._rounds[number].append(replace(message, seq=seq, id=UUID(int=1_000_000 + seq)))
        self._states = [[self._state(nth, number) for nth in range(len(talks))] for number in range(ROUNDS + 1)]

    def spans(self, rounds: int) -> list[tuple[int, int]]:
        """Groups of so many rounds, each from after its first number up to its second; left-over rounds are dropped."""
        return [(first, first + rounds) for first in range(0, ROUNDS - rounds + 1, rounds)]

    def gathered(self) -> list[tuple[int, int]]:
        """The rounds that the service judges together."""
        weights = [sum(message.token_count for message in one) for one in self._rounds]
        ends, waiting = list[int](), 0
        for end, weight in enumerate(weights, start=1):
            waiting += weight
            if waiting >= ENOUGH_TOKENS or end == ROUNDS:
                ends.append(end)
                waiting = 0
        return list(pairwise([0, *ends]))

    def fold(self, first: int, last: int) -> Fold:
        """The chunk of the rounds after ``first`` up to ``last``."""
        messages = tuple(message for one in self._rounds[first:last] for message in one)
        before = self._held(self._joined(first))
        after = self._after(before, first, last)
        case = self._talks[0][last - 1]
        old, new = version_of(case, before, first + 1), version_of(case, after, last + 1)
        reading = VersionSources(
            version=new,
            before=old if before else None,
            judged=(new,),
            messages=messages,
            digests=tuple(self._digests(first, last)),
        )
        earlier = (redact_message(message) for one in self._rounds[:first] for message in one)
        served = [entry for entry in after if not entry.pruned]
        return Fold(
            preset=self._preset,
            messages=messages,
            subject=subject_with(reading, earlier),
            state_tokens=self._weight(served),
        )

    def _after(self, before: Sequence[StateEntry], first: int, last: int) -> tuple[StateEntry, ...]:
        """The new state: kept and new entries, and as records the entries whose replacement is served."""
        joined = self._joined(last)
        named = {entry.id for entry in joined}
        known = {entry.id for entry in before}
        seen = {entry.id for entry in self._joined(first)} - known  # pruned before
        held = self._held([entry for entry in joined if entry.id not in seen])
        served, successors = {entry.id for entry in held}, self._successors(first, last)
        gone = [
            replace(entry, pruned=True, replaced_by=tuple(sorted(names)))
            for entry in before
            if entry.role != "narrative" and entry.id not in named
            if (names := _resolved(entry.id, successors, served))
        ]
        return (*held, *gone)

    def _successors(self, first: int, last: int) -> Mapping[str, Sequence[str]]:
        """The entries that directly replaced each entry in these rounds."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for nth, cases in enumerate(self._talks):
            for number in range(first, last):
                after = {(entry.field, entry.text): entry.id for entry in self._states[number + 1][nth]}
                for item in parse_candidate(cases[number].answer, cases[number].request.schema).items:
                    made = after.get((item.field, item.text))
                    for old in item.replaces:
                        if made is not None:
                            found[_renamed(old, nth)].append(made)
        return found

    def _state(self, nth: int, number: int) -> tuple[StateEntry, ...]:
        """The entries of one conversation after so many rounds, with numbers in the joined conversation."""
        cases = self._talks[nth]
        if number < ROUNDS:
            entries = cases[number].request.previous
        else:
            last = cases[-1]
            entries = merged(last.request.previous, last.answer, last.request.schema, number=number)
        return tuple(
            replace(
                entry,
                id=_renamed(entry.id, nth),
                from_seqs=tuple(self._places[nth, seq] for seq in entry.from_seqs if (nth, seq) in self._places),
            )
            for entry in entries
        )

    def _joined(self, number: int) -> tuple[StateEntry, ...]:
        """The entries of all conversations, field by field, oldest first; one narrative for each field."""
        entries = [entry for state in self._states[number] for entry in state]
        lists = [entry for entry in entries if entry.role != "narrative"]
        narratives = [entry for entry in entries if entry.role == "narrative"]
        order = [field.name for field in self._schema.fields]
        texts = [self._narrative([one for one in narratives if one.field == name]) for name in order]
        everything = [*lists, *(one for one in texts if one is not None)]
        return tuple(sorted(everything, key=lambda one: (order.index(one.field), one.since_version, one.id)))

    def _narrative(self, narratives: Sequence[StateEntry]) -> StateEntry | None:
        """The first conversation's narrative; if one text is the whole state, sentences of all, up to its size."""
        if not narratives:
            return None
        if not is_narrative_only(self._schema):
            return narratives[0]
        left_tokens, kept = self._budgets.state_tokens, list[str]()
        for sentence in _by_turns([sentences(entry.text) for entry in narratives]):
            left_tokens -= estimate_text(sentence)
            if left_tokens < 0:
                break
            kept.append(sentence)
        return replace(narratives[0], text=" ".join(kept))

    def _held(self, entries: Iterable[StateEntry]) -> tuple[StateEntry, ...]:
        kept, _ = prune(self._schema, tuple(entries), fits=self._fits)
        return kept

    def _fits(self, state: dict[str, object]) -> bool:
        layout = layout_of(self._schema, state, served_as=self._policy.served_as, estimator=self._policy.estimator)
        return layout.tokens <= self._budgets.state_tokens

    def _weight(self, entries: Sequence[StateEntry]) -> int:
        return sum(estimate_text(entry.text) for entry in entries)

    def _digests(self, first: int, last: int) -> Iterator[DigestText]:
        for number in range(first, last):
            for nth, cases in enumerate(self._talks):
                segments = cases[number].request.segments
                for one in parse_candidate(cases[number].answer, cases[number].request.schema).digests:
                    if 0 < one.number <= len(segments) and one.brief:
                        cut = segments[one.number - 1]
                        yield DigestText(
                            id=f"{number}-{nth}-{one.number}",
                            topic=one.topic,
                            brief=one.brief,
                            from_seq=self._places[nth, cut.from_seq],
                            to_seq=self._places[nth, cut.to_seq],
                        )


def _resolved(name: str, successors: Mapping[str, Sequence[str]], served: set[str]) -> set[str]:
    """The served entries that replaced an entry, directly or through others."""
    found, waiting, seen = set[str](), [name], set[str]()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        found |= {one} & served
        waiting += successors.get(one, ())
    return found


def _renamed(name: str, nth: int) -> str:
    return f"{name[0]}{nth * _IDS_EACH + int(name[1:])}"


def _by_turns(texts: Sequence[Sequence[str]]) -> Iterator[str]:
    for place in range(max(map(len, texts), default=0)):
        for sentence_list in texts:
            if place < len(sentence_list):
                yield sentence_list[place]

"""What a summarizer was shown, by source: what a value must stand in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, combinations, islice
from typing import Final

from app.core.text.values import Given, Value, values
from app.core.validation.orders import Wishes
from app.domain.anchors.values import FoundAnchor
from app.domain.conversation import Message
from app.domain.model_io import SummaryRequest
from app.domain.states.provenance import regions
from app.domain.states.state import StateEntry
from app.domain.words.overlap import message_text

BACKGROUND: Final = 0
"""The source of what belongs to no message: the system prompt."""
_REACH: Final = 2
"""Messages before and after a source: an answer is understood from its question."""
_MOST_HINTS: Final = 3
_MOST_AMOUNTS: Final = 24
_FEW_AMOUNTS: Final = 4
"""From a source with more numbers nearly every other one follows by chance."""
_LARGE: Final = 100
_THOUSAND: Final = 1_000
_EXACT: Final = 1e-6


def same(one: float, other: float) -> bool:
    """Whether two numbers are one, rounding of the machine apart."""
    return abs(one - other) <= _EXACT * max(abs(one), 1.0)


class Shown:
    """The messages of a span (by ``seq``), the previous state (by negative numbers), anchors, and the system prompt."""

    def __init__(
        self,
        messages: Sequence[Message],
        previous: Sequence[StateEntry] = (),
        anchors: Iterable[FoundAnchor] = (),
        system_prompt: str = "",
    ) -> None:
        self.messages: Final = {message.seq: message for message in messages}
        self._entries: Final = {-number: entry for number, entry in enumerate(previous, start=1)}
        self._numbers: Final = {entry.id: number for number, entry in self._entries.items()}
        self._seqs: Final = [message.seq for message in messages]
        self._places: Final = {seq: place for place, seq in enumerate(self._seqs)}
        self._given: Final = Given()
        for message in messages:
            self._given.add(message.seq, message_text(message), message.created_at)
        for number, entry in self._entries.items():
            self._given.add(number, "\n".join([entry.text, *entry.superseded]))
        for anchor in anchors:
            if anchor.seq not in self.messages:
                self._given.add(anchor.seq, anchor.content)
        if system_prompt:
            self._given.add(BACKGROUND, system_prompt)

    @classmethod
    def of(cls, request: SummaryRequest) -> Shown:
        """All that a request shows."""
        return cls(request.messages, request.previous, request.anchors, request.system_prompt)

    def sources(self, value: Value) -> frozenset[int]:
        """Where a value stands."""
        return self._given.sources(value)

    def near(self, seqs: Iterable[int], entries: Iterable[str] = ()) -> set[int]:
        """The given messages with their neighbours, and the given entries."""
        found = {self._numbers[entry] for entry in entries if entry in self._numbers}
        for seq in seqs:
            if (place := self._places.get(seq)) is not None:
                found.update(self._seqs[max(0, place - _REACH) : place + _REACH + 1])
            elif seq in self._entries:
                found.add(seq)
        return found

    def completed(self, seqs: Sequence[int], found: Iterable[Value]) -> tuple[int, ...]:
        """The sources of a text with every message that alone holds one of its values.

        Erasing that message must reach the text. What only an entry holds has that entry's sources.
        """
        named = dict.fromkeys(seqs)
        for value in found:
            sources = self.sources(value)
            if not sources or BACKGROUND in sources or not sources.isdisjoint(named):
                continue
            newest = max(sources)
            named.update(dict.fromkeys([newest] if newest > 0 else self._entries[newest].from_seqs))
        return tuple(named)

    def implies(self, value: Value, seqs: Iterable[int]) -> bool:
        """Whether a large number follows from others: sum or difference of two of one source, or told in thousands.

        Prices are often said without their thousands; so only a source of the statement itself counts for that.
        """
        amount = value.amount
        if amount is None or abs(amount) < _LARGE or value.kind not in {"number", "money"}:
            return False
        if any(same(amount, known) for known in self._reckoned):
            return True
        own = (number for seq in self.near(seqs) for number in self._amounts.get(seq, ()))
        return any(same(amount, _THOUSAND * number) for number in own)

    @cached_property
    def _amounts(self) -> Mapping[int, frozenset[float]]:
        """The numbers of each source, of a few dozen at most."""
        texts = {seq: message_text(message) for seq, message in self.messages.items()}
        texts |= {number: entry.text for number, entry in self._entries.items()}
        return {
            source: frozenset(islice((one.amount for one in values(text) if one.amount is not None), _MOST_AMOUNTS))
            for source, text in texts.items()
        }

    @cached_property
    def _reckoned(self) -> frozenset[float]:
        few = (sorted(amounts) for amounts in self._amounts.values() if len(amounts) <= _FEW_AMOUNTS)
        pairs = chain.from_iterable(combinations(amounts, 2) for amounts in few)
        return frozenset(chain.from_iterable((one + other, other - one) for one, other in pairs))

    def says(self, seqs: Iterable[int], kind: str) -> str:
        """Which values of a kind these messages hold, for whoever is asked again: ``#12: 3 years``."""
        told = (
            (seq, value.text)
            for seq in seqs
            if (message := self.messages.get(seq)) is not None
            for value in values(message_text(message), message.created_at)
            if value.kind == kind
        )
        hints = list(dict.fromkeys(f"#{seq}: {text}" for seq, text in told))
        return "; ".join(hints[:_MOST_HINTS])

    @cached_property
    def wishes(self) -> Wishes:
        """What people asked for."""
        return Wishes(self.spoken())

    def spoken(self) -> list[str]:
        """What people said or set up: users' own words, system messages, and entries that rest on them."""
        people = (
            regions(message.content)[1] if message.role == "user" else message.content
            for message in self.messages.values()
            if message.role in {"user", "system"}
        )
        entries = (entry.text for entry in self._entries.values() if {"user", "system"} & {*entry.origins})
        return list(chain(people, entries))

"""The texts that a summarizer was shown, by their source: every value that it states must be found in them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import cached_property
from itertools import chain, islice
from typing import Final

from app.core.model.anchors import FoundAnchor
from app.core.model.conversation import Message
from app.core.model.model_io import SummaryRequest
from app.core.model.overlap import message_text
from app.core.model.state import StateEntry
from app.core.summarizer.framing import told_beside_text
from app.core.text.operands import Operands, operands
from app.core.text.parts import has_tool_parts
from app.core.text.pasted import pasted_and_own_text
from app.core.text.patterns import compiled
from app.core.text.values import MONEY, Value, ValueIndex
from app.core.text.words import stems
from app.core.validation.expected import AmountsBetween, Basis, Source
from app.core.validation.hints import Told, meant, told_in
from app.core.validation.orders import Said, Wishes, orders_in

BACKGROUND: Final = 0
"""The source number of what belongs to no message: the system prompt."""
_REACH: Final = 2
"""How many messages before and after a source are near it: an answer is understood from its question."""
_MOST_HINTS: Final = 6
_MOST_MEANT: Final = 5
"""The most values of a statement for which hints are given: the model that is asked again is told of as many."""
_FEW: Final = 4
"""The most sources of a value that still tells where a statement comes from."""
_MOST_SOURCES: Final = 3
_MOST_ALIKE: Final = 2
"""The most sources that are assumed for a statement that names none and has no known value."""
_SCALES: Final = (1_000.0, 10_000.0, 1_000_000.0)
_LEAST_UNSCALED: Final = 10
"""The least whole number that is looked for without its scale: smaller ones are everywhere."""
_LEAST_TELLING: Final = 100
"""The least number without a unit that tells where a statement comes from: smaller ones are everywhere by chance."""
_LIKE_SIZE: Final = 5
_CLAUSE: Final = compiled(r"[^.,;:!?\n。,;!?]++(?:[.,:](?=\S)[^.,;:!?\n。,;!?]*+)*+[.,;:!?\n。,;!?]?")
_LIST: Final = compiled(r"(?<![\d.])\d++(?:,\d++)++")
_MOST_OWN: Final = 6
_MOST_NEAR: Final = 6


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
        self._resting: Final[defaultdict[int, list[int]]] = defaultdict(list)
        for number, entry in self._entries.items():
            for seq in entry.from_seqs:
                self._resting[seq].append(number)
        self._seqs: Final = [message.seq for message in messages]
        self._places: Final = {seq: place for place, seq in enumerate(self._seqs)}
        self._told: Final[dict[int, tuple[Told, ...]]] = {}
        self._given: Final = ValueIndex()
        self._texts: Final = {message.seq: message_text(message) for message in messages}
        self._texts.update((number, entry.text) for number, entry in self._entries.items())
        self._operands: Final[dict[int, Operands]] = {}
        self._clauses: Final[dict[int, list[tuple[int, int, frozenset[str]]]]] = {}
        for message in messages:
            self._given.add(message.seq, self._texts[message.seq], message.created_at)
            for more in (*told_beside_text(message), _listed_numbers(message, self._texts[message.seq])):
                if more:
                    self._given.add(message.seq, more)
        for number, entry in self._entries.items():
            self._given.add(number, "\n".join([entry.text, *entry.superseded]))
        anchors = tuple(anchors)
        for anchor in anchors:
            if anchor.seq not in self.messages:
                self._given.add(anchor.seq, anchor.content)
        if system_prompt:
            self._given.add(BACKGROUND, system_prompt)
        self._system_prompt: Final = system_prompt
        self._anchored: Final = [one.content for one in anchors if one.speaker == "user" and not one.pasted]

    @classmethod
    def of(cls, request: SummaryRequest) -> Shown:
        """All that a request shows."""
        return cls(request.messages, request.previous, request.anchors, request.system_prompt)

    def sources(self, value: Value) -> frozenset[int]:
        """The sources that have a value, else its number without scale near an amount of its size: "70k? No, 60"."""
        return self._given.sources(value) or self._unscaled(value)

    def shows(self, value: Value, seqs: Sequence[int]) -> bool:
        """Whether a value was shown anywhere, or may be meant in or near these messages."""
        return bool(self._given.plain_sources(value) or self._unscaled(value)) or self._tells_day(value, seqs)

    def _tells_day(self, value: Value, seqs: Sequence[int]) -> bool:
        near = self.near(seqs)
        named = self._given.weekday_sources(value)
        # A statement that names no messages may rest on any.
        if named and (not near or not named.isdisjoint(near)):
            return True
        # The day ("the 18th") must stand near these messages, its month anywhere; without messages, near each other.
        return any(
            (bool(months) and seq in near) if near else not months.isdisjoint(self.near([seq]))
            for days, months in self._given.days_and_months(value)
            for seq in days
        )

    def _unscaled(self, value: Value) -> frozenset[int]:
        if value.amount is None or value.base or abs(value.amount) < _SCALES[0]:
            return frozenset()
        numbers = (value.amount / scale for scale in _SCALES)
        bare = [one for one in numbers if one >= _LEAST_UNSCALED or one != int(one)]
        held = frozenset[int]().union(*map(self._given.holding, bare))
        sized = self._given.sources_of_similar_amount(value.amount, _LIKE_SIZE) if held else frozenset()
        return frozenset(seq for seq in held if not sized.isdisjoint(self.near([seq])))

    def holds_number(self, number: float) -> bool:
        """Whether a number was shown anywhere, whatever it counts."""
        return bool(self._given.holding(number))

    def amounts_like(self, value: Value) -> AmountsBetween:
        """A function that looks up shown amounts; amounts of money are those in the currency of this value."""
        currency = value.measure or MONEY
        return lambda unit, first, last: self._given.amounts_between(currency if unit == MONEY else unit, first, last)

    def numbers(self, entries: Iterable[str]) -> list[int]:
        """The source numbers of entries of the previous state."""
        return [self._numbers[entry] for entry in entries if entry in self._numbers]

    def near(self, seqs: Sequence[int], entries: Iterable[str] = ()) -> set[int]:
        """The given messages with their neighbours, the given entries, and entries that rest on the given messages."""
        found = set(self.numbers(entries))
        for seq in seqs:
            if (place := self._places.get(seq)) is not None:
                found.update(self._seqs[max(0, place - _REACH) : place + _REACH + 1])
            elif seq in self._entries:
                found.add(seq)
        return found.union(self._entries_resting_on(seqs))

    def completed(self, seqs: Sequence[int], found: Iterable[Value], entries: Iterable[str] = ()) -> tuple[int, ...]:
        """The sources of a text, with each message added that is the only one to have one of its values.

        So erasing such a message also reaches the text. If only one entry has a value, that entry's sources are added;
        if the text shares a value with an entry that it replaces, the sources of that entry are. If several other
        messages or entries have a value, it may be from any of them: then none is added, unless the text has no sources
        at all.

        Args:
            seqs: The sources that the text names.
            found: The values of the text.
            entries: The entries that the text replaces.
        """
        named = dict.fromkeys(seqs)
        covered = {*seqs, *self._entries_resting_on(seqs)}
        for value in {one.meaning: one for one in found}.values():
            sources = self.sources(value)
            if _is_everywhere(value) or BACKGROUND in sources or not sources.isdisjoint(covered):
                continue
            replaced = sources.intersection(self.numbers(entries))
            holding = filter(None, map(self._messages_of_source, sorted(replaced or sources, reverse=True)))
            newest = next(holding, ())
            if replaced or not covered or all(other == newest for other in holding):
                named.update(dict.fromkeys(newest))
        return tuple(named)

    def _entries_resting_on(self, seqs: Iterable[int]) -> list[int]:
        return [entry for seq in seqs if seq not in self.messages for entry in self._resting.get(seq, ())]

    def _messages_of_source(self, source: int) -> tuple[int, ...]:
        return (source,) if source > 0 else self._entries[source].from_seqs

    def basis(
        self,
        text: str,
        novel: Sequence[Value],
        known: Iterable[Value],
        seqs: Iterable[int],
        beside: Iterable[int] = (),
        without: Iterable[tuple[int, int]] = (),
    ) -> Basis:
        """What a statement may have been calculated from.

        Args:
            text: The statement.
            novel: Its values that were not shown: they are no operands.
            known: Its other values. If the statement names no sources, the messages with most of these values are used;
                if it has no such values, those in the most similar words.
            seqs: The sources that it names.
            beside: The entries that it replaces: they come first among the texts near its sources.
            without: Further parts of the statement that are no operands.
        """
        words = frozenset(stems(text))
        seqs = tuple(seqs)
        own = [seq for seq in dict.fromkeys(seqs) if seq in self._texts]
        own += [one for one in self._entries_resting_on(seqs) if one not in own]
        held = Counter(seq for value in known if len(sources := self.sources(value)) <= _FEW for seq in sources)
        likely = [seq for seq, _ in sorted(held.items(), key=lambda one: (-one[1], -one[0]))]
        own = own or likely[:_MOST_SOURCES] or self._texts_most_alike(words)
        near = [seq for seq in dict.fromkeys([*beside, *likely, *sorted(self.near(own))]) if seq not in own]
        left_out = [*((value.start, value.end) for value in novel), *without]
        told = operands(text, without=left_out)
        told = replace(told, relative=operands(text, self._newest_moment(own), without=left_out).days)
        return Basis(told, self._close(own[:_MOST_OWN], words), self._close(near[:_MOST_NEAR], words))

    @cached_property
    def newest_day(self) -> date | None:
        """The day of the newest message."""
        moment = self._newest_moment(())
        return moment.date() if moment else None

    def _newest_moment(self, seqs: Iterable[int]) -> datetime | None:
        # A day without a year is taken as one around this moment.
        said = [self.messages[seq] for seq in seqs if seq in self.messages] or list(self.messages.values())
        return max((message.created_at for message in said), default=None)

    def _texts_most_alike(self, words: frozenset[str]) -> list[int]:
        shared = {
            source: words.intersection(chain.from_iterable(said for *_, said in self._clauses_of(source)))
            for source in self._texts
        }
        holding = Counter(chain.from_iterable(shared.values()))
        weights = {source: sum(1 / holding[word] for word in found) for source, found in shared.items() if found}
        return sorted(weights, key=lambda source: (-weights[source], -source))[:_MOST_ALIKE]

    def _close(self, sources: Iterable[int], words: frozenset[str]) -> list[Source]:
        """The sources with their operands, and how close each clause is to a statement with these words."""
        shared = {source: [len(words & said) for *_, said in self._clauses_of(source)] for source in sources}
        most = max((count for counts in shared.values() for count in counts), default=0)
        return [
            Source(
                self._operands_of(source),
                tuple(
                    (start, end, (count > 0) + (count == most > 0))
                    for (start, end, _), count in zip(self._clauses_of(source), counts, strict=True)
                ),
            )
            for source, counts in shared.items()
        ]

    def _clauses_of(self, source: int) -> list[tuple[int, int, frozenset[str]]]:
        if source not in self._clauses:
            text = self._texts.get(source, "")
            self._clauses[source] = [
                (one.start(), one.end(), frozenset(stems(one.group()))) for one in _CLAUSE.finditer(text)
            ]
        return self._clauses[source]

    def _operands_of(self, source: int) -> Operands:
        if source not in self._operands:
            message = self.messages.get(source)
            self._operands[source] = operands(self._texts.get(source, ""), message.created_at if message else None)
        return self._operands[source]

    def says(self, statement: str, novel: Sequence[Value], seqs: Iterable[int]) -> str:
        """Hints: values in these messages that a statement may mean in place of those that were not shown."""
        said = [(seq, self._told_in(seq)) for seq in seqs if seq in self.messages]
        if not said:
            return ""
        hints = dict.fromkeys(meant(statement, novel[:_MOST_MEANT], said))
        return "; ".join(islice(hints, _MOST_HINTS))

    def _told_in(self, seq: int) -> tuple[Told, ...]:
        if seq not in self._told:
            self._told[seq] = told_in(self.messages[seq])
        return self._told[seq]

    @cached_property
    def wishes(self) -> Wishes:
        """What people asked for, now or before. Orders in the previous state count, since they were checked before."""
        entries = self._entries.values()
        said = (entry.text for entry in entries if {"user", "system"} & {*entry.origins})
        told = (order for entry in entries for order in orders_in(entry.text))
        before = chain(told, self._anchored, self._system_prompt.splitlines())
        retold = (Said(text, is_retold=True) for text in said)
        return Wishes(chain(self._said_by_people(), map(Said, before), retold))

    def _said_by_people(self) -> Iterator[Said]:
        messages = list(self.messages.values())
        for place, message in enumerate(messages):
            if message.role == "user":
                beside = (*messages[max(place - 1, 0) : place], *messages[place + 1 : place + 2])
                around = tuple(one.content for one in beside if one.role == "assistant")
                yield Said(pasted_and_own_text(message.content)[1], around)
            elif message.role == "system":
                yield Said(message.content)


def _listed_numbers(message: Message, text: str) -> str:
    # In data a comma without a space may separate two numbers: "[1200,3450]", "@@ -141,7", "sed -n 210,222p".
    lists = _LIST.findall(text) if has_tool_parts(message.role, message.parts) else ()
    return "\n".join(lists).replace(",", "\n")


def _is_everywhere(value: Value) -> bool:
    is_bare = value.kind == "number" and not value.base and value.amount is not None
    return is_bare and abs(value.amount or 0) < _LEAST_TELLING

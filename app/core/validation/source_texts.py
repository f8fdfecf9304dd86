"""The texts that a summarizer was shown, by their source: every value that it states must be found in them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import cached_property
from itertools import chain, islice, product
from typing import Final

from app.core.model.anchors import FoundAnchor
from app.core.model.conversation import Message
from app.core.model.model_io import SummaryRequest
from app.core.model.state import StateEntry
from app.core.model.word_overlap import message_text
from app.core.summarizer.framing import speaker_and_media_texts
from app.core.text.operands import Operands, operands
from app.core.text.parts import has_tool_parts
from app.core.text.pasted import pasted_and_own_text
from app.core.text.patterns import compiled
from app.core.text.values import MONEY, Value, ValueIndex
from app.core.text.words import stems
from app.core.validation.expected_values import AmountsBetween, CalculationBasis, SourceOperands
from app.core.validation.orders import Utterance, Wishes, orders_in
from app.core.validation.value_hints import SentenceContent, hints_for, sentences_with_values

BACKGROUND: Final = 0
"""The source number of what belongs to no message: the system prompt."""
_NEIGHBOURS: Final = 2
"""How many messages before and after a source are near it: an answer is understood from its question."""
_MAX_HINTS: Final = 6
_MAX_HINTED_VALUES: Final = 5
"""The most values of a statement for which hints are given: the model that is asked again is shown as many."""
_MAX_TELLING_SOURCES: Final = 4
"""The most sources of a value that still shows where a statement comes from."""
_MAX_ASSUMED_SOURCES: Final = 3
_MAX_SIMILAR_SOURCES: Final = 2
"""The most sources that are assumed for a statement that names none and has no known value."""
_SCALES: Final = (1_000.0, 10_000.0, 1_000_000.0)
_MIN_UNSCALED_NUMBER: Final = 10
"""The least whole number that is looked for without its scale: smaller ones are everywhere."""
_MIN_TELLING_NUMBER: Final = 100
"""The least number without a unit that shows where a statement comes from: smaller ones are everywhere by chance."""
_MAX_SIZE_RATIO: Final = 5
_CLAUSE: Final = compiled(r"[^.,;:!?\n。,;!?]++(?:[.,:](?=\S)[^.,;:!?\n。,;!?]*+)*+[.,;:!?\n。,;!?]?")
_LIST: Final = compiled(r"(?<![\d.])\d++(?:,\d++)++")
_MAX_DAYS_OF_STAY: Final = 10
_MAX_DAYS: Final = 8
"""The most days of one text with which a stay may begin."""
_MAX_STAYS: Final = 64
_MAX_OWN_SOURCES: Final = 6
_MAX_NEARBY_SOURCES: Final = 6


class SourceTexts:
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
        self._entry_numbers: Final = {entry.id: number for number, entry in self._entries.items()}
        self._entries_by_source: Final[defaultdict[int, list[int]]] = defaultdict(list)
        for number, entry in self._entries.items():
            for seq in entry.from_seqs:
                self._entries_by_source[seq].append(number)
        self._seqs: Final = [message.seq for message in messages]
        self._indexes: Final = {seq: index for index, seq in enumerate(self._seqs)}
        self._sentences: Final[dict[int, tuple[SentenceContent, ...]]] = {}
        self._values: Final = ValueIndex()
        self._texts: Final = {message.seq: message_text(message) for message in messages}
        self._texts.update((number, entry.text) for number, entry in self._entries.items())
        self._operands: Final[dict[int, Operands]] = {}
        self._clauses: Final[dict[int, list[tuple[int, int, frozenset[str]]]]] = {}
        for message in messages:
            self._values.add(message.seq, self._texts[message.seq], message.created_at)
            for further_text in (*speaker_and_media_texts(message), _listed_numbers(message, self._texts[message.seq])):
                if further_text:
                    self._values.add(message.seq, further_text)
        for number, entry in self._entries.items():
            self._values.add(number, "\n".join([entry.text, *entry.superseded]))
        anchors = tuple(anchors)
        for anchor in anchors:
            if anchor.seq not in self.messages:
                self._values.add(anchor.seq, anchor.content)
        if system_prompt:
            self._values.add(BACKGROUND, system_prompt)
        self._system_prompt: Final = system_prompt
        self._user_anchors: Final = [one.content for one in anchors if one.speaker == "user" and not one.pasted]

    @classmethod
    def of(cls, request: SummaryRequest) -> SourceTexts:
        """All that a request shows."""
        return cls(request.messages, request.previous, request.anchors, request.system_prompt)

    def sources_of(self, value: Value) -> frozenset[int]:
        """The sources that have a value, else its number without scale near an amount of its size: "70k? No, 60"."""
        return self._values.sources(value) or self._unscaled_sources(value)

    def shows(self, value: Value, seqs: Sequence[int]) -> bool:
        """Whether a value was shown anywhere, or may be meant in or near these messages."""
        return bool(self._values.plain_sources(value) or self._unscaled_sources(value)) or self._has_day(value, seqs)

    def _has_day(self, value: Value, seqs: Sequence[int]) -> bool:
        nearby_sources = self.neighbourhood(seqs)
        weekday_sources = self._values.weekday_sources(value)
        # A statement that names no messages may rest on any.
        if weekday_sources and (not nearby_sources or not weekday_sources.isdisjoint(nearby_sources)):
            return True
        # The day ("the 18th") must stand near these messages, its month anywhere; without messages, near each other.
        return any(
            (bool(months) and seq in nearby_sources)
            if nearby_sources
            else not months.isdisjoint(self.neighbourhood([seq]))
            for days, months in self._values.days_and_months(value)
            for seq in days
        )

    def _unscaled_sources(self, value: Value) -> frozenset[int]:
        if value.amount is None or value.base or abs(value.amount) < _SCALES[0]:
            return frozenset()
        numbers = (value.amount / scale for scale in _SCALES)
        bare = [one for one in numbers if one >= _MIN_UNSCALED_NUMBER or one != int(one)]
        sources = frozenset[int]().union(*map(self._values.holding, bare))
        similar_sources = (
            self._values.sources_of_similar_amount(value.amount, _MAX_SIZE_RATIO) if sources else frozenset()
        )
        return frozenset(seq for seq in sources if not similar_sources.isdisjoint(self.neighbourhood([seq])))

    def holds_number(self, number: float) -> bool:
        """Whether a number was shown anywhere, whatever it counts."""
        return bool(self._values.holding(number))

    def amounts_like(self, value: Value) -> AmountsBetween:
        """A function that looks up shown amounts; amounts of money are those in the currency of this value."""
        currency = value.measure or MONEY
        return lambda unit, first, last: self._values.amounts_between(currency if unit == MONEY else unit, first, last)

    def entry_numbers(self, entries: Iterable[str]) -> list[int]:
        """The source numbers of entries of the previous state."""
        return [self._entry_numbers[entry] for entry in entries if entry in self._entry_numbers]

    def neighbourhood(self, seqs: Sequence[int], entries: Iterable[str] = ()) -> set[int]:
        """The given messages with their neighbours, the given entries, and entries that rest on the given messages."""
        numbers = set(self.entry_numbers(entries))
        for seq in seqs:
            if (index := self._indexes.get(seq)) is not None:
                numbers.update(self._seqs[max(0, index - _NEIGHBOURS) : index + _NEIGHBOURS + 1])
            elif seq in self._entries:
                numbers.add(seq)
        return numbers.union(self._entries_resting_on(seqs))

    def completed_sources(
        self, seqs: Sequence[int], text_values: Iterable[Value], replaced_entries: Iterable[str] = ()
    ) -> tuple[int, ...]:
        """The sources of a text, with each message added that is the only one to have one of its values.

        So erasing such a message also reaches the text. If only one entry has a value, that entry's sources are added;
        if the text shares a value with an entry that it replaces, the sources of that entry are. If several other
        messages or entries have a value, it may be from any of them: then none is added, unless the text has no sources
        at all.

        Args:
            seqs: The sources that the text names.
            text_values: The values of the text.
            replaced_entries: The entries that the text replaces.
        """
        named = dict.fromkeys(seqs)
        covered = {*seqs, *self._entries_resting_on(seqs)}
        for value in {one.meaning: one for one in text_values}.values():
            sources = self.sources_of(value)
            if _is_common_number(value) or BACKGROUND in sources or not sources.isdisjoint(covered):
                continue
            replaced = sources.intersection(self.entry_numbers(replaced_entries))
            message_lists = filter(None, map(self._messages_of_source, sorted(replaced or sources, reverse=True)))
            newest = next(message_lists, ())
            if replaced or not covered or all(other == newest for other in message_lists):
                named.update(dict.fromkeys(newest))
        return tuple(named)

    def _entries_resting_on(self, seqs: Iterable[int]) -> list[int]:
        return [entry for seq in seqs if seq not in self.messages for entry in self._entries_by_source.get(seq, ())]

    def _messages_of_source(self, source: int) -> tuple[int, ...]:
        return (source,) if source > 0 else self._entries[source].from_seqs

    def calculation_basis(
        self,
        text: str,
        novel: Sequence[Value],
        known: Iterable[Value],
        seqs: Iterable[int],
        replaced_entries: Iterable[int] = (),
        excluded_spans: Iterable[tuple[int, int]] = (),
    ) -> CalculationBasis:
        """What a statement may have been calculated from.

        Args:
            text: The statement.
            novel: Its values that were not shown: they are no operands.
            known: Its other values. If the statement names no sources, the messages with most of these values are used;
                if it has no such values, those in the most similar words.
            seqs: The sources that it names.
            replaced_entries: The entries that it replaces: they come first among the texts near its sources.
            excluded_spans: Further parts of the statement that are no operands.
        """
        words = frozenset(stems(text))
        seqs = tuple(seqs)
        own = [seq for seq in dict.fromkeys(seqs) if seq in self._texts]
        own += [one for one in self._entries_resting_on(seqs) if one not in own]
        known_value_counts = Counter(
            seq for value in known if len(sources := self.sources_of(value)) <= _MAX_TELLING_SOURCES for seq in sources
        )
        likely = [seq for seq, _ in sorted(known_value_counts.items(), key=lambda one: (-one[1], -one[0]))]
        own = own or likely[:_MAX_ASSUMED_SOURCES] or self._texts_most_alike(words)
        near = [
            seq
            for seq in dict.fromkeys([*replaced_entries, *likely, *sorted(self.neighbourhood(own))])
            if seq not in own
        ]
        excluded = [*((value.start, value.end) for value in novel), *excluded_spans]
        statement_operands = operands(text, without=excluded)
        statement_operands = replace(
            statement_operands, relative=operands(text, self._newest_moment(own), without=excluded).days
        )
        return CalculationBasis(
            statement_operands,
            self._with_closeness(own[:_MAX_OWN_SOURCES], words),
            self._with_closeness(near[:_MAX_NEARBY_SOURCES], words),
            self._stays if any(value.kind == "date" for value in novel) else (),
        )

    @cached_property
    def _stays(self) -> Sequence[tuple[date, date]]:
        days = ((one.days[:_MAX_DAYS], one.days + one.relative) for one in map(self._operands_of, self._texts))
        pairs = (pair for first, last in days for pair in product(first, last[: 2 * _MAX_DAYS]))
        stays = dict.fromkeys(pair for pair in pairs if 0 < (pair[1] - pair[0]).days <= _MAX_DAYS_OF_STAY)
        return tuple(islice(stays, _MAX_STAYS))

    @cached_property
    def newest_day(self) -> date | None:
        """The day of the newest message."""
        moment = self._newest_moment(())
        return moment.date() if moment else None

    def _newest_moment(self, seqs: Iterable[int]) -> datetime | None:
        # A day without a year is taken as one around this moment.
        messages = [self.messages[seq] for seq in seqs if seq in self.messages] or list(self.messages.values())
        return max((message.created_at for message in messages), default=None)

    def _texts_most_alike(self, words: frozenset[str]) -> list[int]:
        shared = {
            source: words.intersection(
                chain.from_iterable(clause_words for *_, clause_words in self._clauses_of(source))
            )
            for source in self._texts
        }
        text_counts = Counter(chain.from_iterable(shared.values()))
        weights = {
            source: sum(1 / text_counts[word] for word in shared_words)
            for source, shared_words in shared.items()
            if shared_words
        }
        return sorted(weights, key=lambda source: (-weights[source], -source))[:_MAX_SIMILAR_SOURCES]

    def _with_closeness(self, sources: Iterable[int], words: frozenset[str]) -> list[SourceOperands]:
        """The sources with their operands, and how close each clause is to a statement with these words."""
        shared = {
            source: [len(words & clause_words) for *_, clause_words in self._clauses_of(source)] for source in sources
        }
        most = max((count for counts in shared.values() for count in counts), default=0)
        return [
            SourceOperands(
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

    def hints(self, statement: str, novel: Sequence[Value], seqs: Iterable[int]) -> str:
        """Hints: values in these messages that a statement may mean in place of those that were not shown."""
        message_sentences = [(seq, self._sentences_with_values(seq)) for seq in seqs if seq in self.messages]
        if not message_sentences:
            return ""
        hints = dict.fromkeys(hints_for(statement, novel[:_MAX_HINTED_VALUES], message_sentences))
        return "; ".join(islice(hints, _MAX_HINTS))

    def _sentences_with_values(self, seq: int) -> tuple[SentenceContent, ...]:
        if seq not in self._sentences:
            self._sentences[seq] = sentences_with_values(self.messages[seq])
        return self._sentences[seq]

    @cached_property
    def wishes(self) -> Wishes:
        """What people asked for, now or before. Orders in the previous state count, since they were checked before."""
        entries = self._entries.values()
        reported = (entry.text for entry in entries if {"user", "system"} & {*entry.origins})
        previous_orders = (order for entry in entries for order in orders_in(entry.text))
        standing_requests = chain(previous_orders, self._user_anchors, self._system_prompt.splitlines())
        reports = (Utterance(text, is_report=True) for text in reported)
        return Wishes(chain(self._utterances(), map(Utterance, standing_requests), reports))

    def _utterances(self) -> Iterator[Utterance]:
        messages = list(self.messages.values())
        for index, message in enumerate(messages):
            if message.role == "user":
                adjacent = (*messages[max(index - 1, 0) : index], *messages[index + 1 : index + 2])
                assistant_texts = tuple(one.content for one in adjacent if one.role == "assistant")
                yield Utterance(pasted_and_own_text(message.content)[1], assistant_texts)
            elif message.role == "system":
                yield Utterance(message.content)


def _listed_numbers(message: Message, text: str) -> str:
    # In data a comma without a space may separate two numbers: "[1200,3450]", "@@ -141,7", "sed -n 210,222p".
    lists = _LIST.findall(text) if has_tool_parts(message.role, message.parts) else ()
    return "\n".join(lists).replace(",", "\n")


def _is_common_number(value: Value) -> bool:
    is_bare = value.kind == "number" and not value.base and value.amount is not None
    return is_bare and abs(value.amount or 0) < _MIN_TELLING_NUMBER

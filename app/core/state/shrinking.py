"""Shortens a state to a smaller room, clause by clause: the clauses that tell most per token are kept.

An entry is a speaker and clauses. Of an entry that does not fit as a whole, the clauses with exact values may be kept.
Among clauses of equal worth the older is removed first, and those in doubt before all others.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

from app.core.model.state import ID_LETTERS, FieldRole, StateEntry, StateSchema
from app.core.reading.choice import KeptTexts, Option
from app.core.reading.cues import READING_TOOL
from app.core.reading.labels import role_of
from app.core.reading.logs import is_prose
from app.core.reading.scoring import (
    HEAD_WEIGHT,
    Worth,
    is_mentioned,
    relevances,
    repeated_values,
    spoken_words,
    worth_of_action,
    worth_of_data,
    worths_of_data,
)
from app.core.reading.tool_data_lines import (
    RECORD_SEPARATOR,
    DataLine,
    group_key,
    is_call,
    joined_records,
    parse_line,
    record_heads,
    records_in,
    terse_parts,
)
from app.core.state.pruning import state_of
from app.core.summarizer.offline.earlier_entries import entry_worth
from app.core.summarizer.offline.items import entry_tokens, joined_clauses, label_and_clauses
from app.core.text.memo import memoized
from app.core.text.words import stems

_RECENT: Final = 0.25  # by how much the newest entry's worth is raised; older ones get less, the oldest nothing
_SIGNS: Final = 4  # characters per token, for estimating the cost of a text
_MAX_CLAUSES: Final = 100_000  # a bound for numbering clauses
_NEW_SHARE: Final = 0.6  # the least share of a clause's worth that has to be new; clauses with less come last
_TOOL_DATA_FACTOR: Final = 2.2  # the factor for data of tools, in place of that for age: no other text repeats it
_ABOUT: Final = 0.5  # the increase for an id next to a name that was talked about; it falls with the distance
_NEAR: Final = 2  # tokens: the search for how much fits ends this close

_GUESSES: Final = 4  # how often the room is guessed from what was too much or left over; then the range is halved

_RELEVANCE_FACTOR: Final = 2.0
"""The increase for an entry that says all that is asked for; an entry that says a part gets it in proportion."""

Over = Callable[[Mapping[str, Any]], int]
"""Says by how many tokens a state, in the shape of its schema's model, is too large; 0 or negative if it fits."""

NO_WHOLE_ENTRIES: Final[Mapping[str, int]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clause:
    """A unit that is kept or removed as a whole: a clause, or one part of data."""

    entry: StateEntry
    label: str
    lead: str
    """The text that is put once before the parts of one clause."""
    number: int
    """The number of the clause within its entry."""
    text: str
    option: Option
    after: int | None = None
    """The option without which this one says nothing, such as the id of a record for the record's other words."""


def shrunk_entries(
    schema: StateSchema,
    entries: Sequence[StateEntry],
    *,
    over: Over,
    served_texts: Iterable[str] = (),
    covered_texts: Iterable[str] = (),
    relevance: Callable[[str], float] | None = None,
) -> tuple[StateEntry, ...]:
    """The entries, or clauses of them, that tell most within the room; in the same order.

    Args:
        schema: The schema of the state.
        entries: The entries in served order.
        over: By how many tokens a state is too large; called a logarithmic number of times.
        served_texts: See ``most_informative``.
        covered_texts: See ``most_informative``.
        relevance: See ``most_informative``.
    """
    return most_informative(
        entries,
        over=lambda kept: over(state_of(schema, kept)),
        served_texts=served_texts,
        covered_texts=covered_texts,
        relevance=relevance,
        whole_tokens=NO_WHOLE_ENTRIES,
    )


def most_informative(
    entries: Sequence[StateEntry],
    *,
    over: Callable[[Sequence[StateEntry]], int],
    served_texts: Iterable[str],
    covered_texts: Iterable[str],
    relevance: Callable[[str], float] | None,
    whole_tokens: Mapping[str, int],
) -> tuple[StateEntry, ...]:
    """The entries, or clauses of them, that tell most within the room; in the same order.

    Args:
        entries: The entries in served order.
        over: By how many tokens these are too large; called a logarithmic number of times.
        served_texts: Texts served next to the state: it need not repeat them, and data mentioned in them is worth more.
        covered_texts: Further texts of the talk, not served beside the state: data mentioned in them is worth more.
        relevance: How much a text says about the question, from 0 to 1, which increases its worth. ``None``: there is
            no question.
        whole_tokens: The tokens, by id, of entries that are kept word for word or not at all.
    """
    excess = over(entries)
    if excess > 0 and any(entry.in_doubt for entry in entries):
        entries = _without_most_doubtful(entries, over, relevance)
        excess = over(entries)
    if excess <= 0:
        return tuple(entries)
    of_state = [entry for entry in entries if entry.id not in whole_tokens]
    clauses = [
        *_clauses(of_state, "\n".join(served_texts), covered_texts, relevance),
        *_clauses_of_whole_entries(entries, whole_tokens, relevance),
    ]
    best_first = sorted(clauses, key=_worth_order)
    max_tokens = sum(clause.option.cost() for clause in clauses)
    low, high, best, tries = 0, max_tokens + _NEAR, tuple[StateEntry, ...](), 0
    while high - low > _NEAR and not -_NEAR < excess <= 0:
        max_tokens, tries = max_tokens - excess, tries + 1
        if tries > _GUESSES or not low < max_tokens < high:
            max_tokens = (low + high) // 2
        kept = _chosen_entries(entries, clauses, best_first, max_tokens)
        excess = over(_with_data_under_one_label(kept))
        if excess > 0:
            high = max_tokens
        else:
            low, best = max_tokens, kept
    return _with_data_under_one_label(
        _unshortened_newest_first(entries, best, lambda kept: over(_with_data_under_one_label(kept)) <= 0)
    )


def _without_most_doubtful(
    entries: Sequence[StateEntry],
    over: Callable[[Sequence[StateEntry]], int],
    relevance: Callable[[str], float] | None,
) -> Sequence[StateEntry]:
    relevance_by_id = {entry.id: relevance(entry.text) if relevance else 0.0 for entry in entries if entry.in_doubt}
    least_first = sorted(relevance_by_id, key=relevance_by_id.__getitem__)

    def without(count: int) -> list[StateEntry]:
        gone = frozenset(least_first[:count])
        return [entry for entry in entries if entry.id not in gone]

    enough = bisect_left(range(len(relevance_by_id) + 1), True, key=lambda count: over(without(count)) <= 0)  # noqa: FBT003
    # If removing all is not enough, those that answer the question stay for now: they are chosen from last.
    return without(enough if enough <= len(relevance_by_id) else sum(not share for share in relevance_by_id.values()))


def _with_data_under_one_label(entries: Sequence[StateEntry]) -> tuple[StateEntry, ...]:
    """The entries with data of consecutive calls joined under one label, since a label costs as much as a value."""
    joined: list[StateEntry] = []
    for entry in entries:
        label, clauses = label_and_clauses(entry.text)
        before = joined[-1] if joined else None
        if before is not None and before.field == entry.field and _is_data(label) and before.text.startswith(label):
            records = joined_records([*label_and_clauses(before.text)[1], *clauses])
            joined[-1] = replace(before, text=joined_clauses(label, records))
        else:
            joined.append(entry)
    return tuple(joined)


def _unshortened_newest_first(
    entries: Sequence[StateEntry], kept: Sequence[StateEntry], fits: Callable[[Sequence[StateEntry]], bool]
) -> tuple[StateEntry, ...]:
    whole = {entry.id: entry for entry in entries}
    for entry in sorted(kept, key=attrgetter("number"), reverse=True):
        wider = [whole[one.id] if one.id == entry.id else one for one in kept]
        if wider != list(kept) and fits(wider):
            kept = wider
    return tuple(kept)


def _chosen_entries(
    entries: Sequence[StateEntry], clauses: Sequence[_Clause], best_first: Sequence[_Clause], max_tokens: int
) -> tuple[StateEntry, ...]:
    """The entries with most worth per token; those that only repeat others come last."""
    chosen_content, chosen, later = KeptTexts(), set[int](), list[_Clause]()
    for is_second_round in (False, True):
        for clause in later if is_second_round else best_first:
            option = clause.option
            lacks_head = clause.after is not None and clause.after not in chosen
            if option.cost() > max_tokens or (is_second_round and lacks_head):
                continue
            if not is_second_round and (
                clause.entry.in_doubt
                or lacks_head
                or chosen_content.repeats(option.stems)
                or chosen_content.worth(option) < _NEW_SHARE * option.worth.total
            ):
                later.append(clause)
                continue
            max_tokens -= option.cost()
            chosen.add(option.key)
            chosen_content.take(option)
    of_entry: defaultdict[int, list[_Clause]] = defaultdict(list)
    for clause in clauses:
        if clause.option.key in chosen:
            of_entry[id(clause.entry)].append(clause)
    return tuple(_shortened_entry(entry, of_entry[id(entry)]) for entry in entries if id(entry) in of_entry)


def _worth_order(clause: _Clause) -> tuple[bool, float, int]:
    return clause.entry.in_doubt, -clause.option.worth.total / clause.option.cost(), clause.option.key


def _shortened_entry(entry: StateEntry, kept: Sequence[_Clause]) -> StateEntry:
    text = joined_clauses(kept[0].label, _joined_clauses(kept))
    return entry if text == entry.text else replace(entry, text=text)


def _joined_clauses(kept: Sequence[_Clause]) -> Iterator[str]:
    for lead, group in groupby(kept, lambda one: one.lead):
        records = [", ".join(one.text for one in parts) for _, parts in groupby(group, lambda one: one.number)]
        yield from [lead + RECORD_SEPARATOR.join(records)] if lead else records


def _clauses(
    entries: Sequence[StateEntry],
    served_text: str,
    covered_texts: Iterable[str],
    relevance: Callable[[str], float] | None,
) -> list[_Clause]:
    """All clauses. Data loses the names of its values, and each value is kept once, where it is worth most."""
    newest_first = _newest_first(entries)
    texts = [
        (entry, label, text)
        for entry in entries
        for label, clauses in [label_and_clauses(entry.text)]
        for clause in clauses
        for text in (records_in(clause) if _lists_values(label, clause) else [clause])
    ]
    data = [(entry, text) for entry, label, text in texts if _lists_values(label, text)]
    # Only the worth of data and calls depends on what was talked about.
    needs_talk = any(_is_data(label) or is_call(text) for _, label, text in texts)
    talk_words = spoken_words(
        [served_text, *covered_texts, *(text for _, label, text in texts if not _is_data(label))] if needs_talk else ()
    )
    mentioned = talk_words | repeated_values(parse_line(text) for _, text in data)
    mention_factors = _mention_factors(data, talk_words)
    worths = {
        (entry.id, text): mention_factors[entry.id, text] * worth_of_data(parse_line(text), mentioned).total
        for entry, text in data
    }
    stated_values: set[str] = set()
    heads = record_heads(text for _, text in data)
    short = {
        (entry.id, text): terse_parts(text, stated_values, amounts=False, heads=heads)
        for entry, text in sorted(data, key=lambda one: -worths[one[0].id, one[1]])
    }
    factors = _factors_by_age_and_question(entries, relevance)
    found: list[_Clause] = []
    for number, (entry, label, text) in enumerate(texts):
        first = _MAX_CLAUSES * newest_first[entry.id]
        lists, lead, parts = _lists_values(label, text), "", [] if text in served_text else [text]
        if lists:
            lead, parts = short[entry.id, text]
            worths_and_stems = list(_worths_of_parts(parts, mentioned, talk_words, mention_factors[entry.id, text]))
        elif is_call(text):
            worths_and_stems = [(worth_of_action(text, mentioned), parse_line(text).stems)]
        else:
            worths_and_stems = [_worth_and_stems(entry.role, f"{label}{text}", text)]
        head = None
        for part, (worth, part_stems) in zip(parts, worths_and_stems, strict=False):
            option = _option(
                first + len(found),
                part,
                worth.times(_TOOL_DATA_FACTOR if lists or is_call(text) else factors[entry.id]),
                part_stems,
                added_tokens=_tokens(lead) / len(parts) if lead else 0.0,
            )
            clause = _Clause(entry=entry, label=label, lead=lead, number=number, text=part, option=option)
            is_head = lists and bool(parse_line(part).codes)
            if is_head and head is None:
                head = option.key
            found.append(clause if is_head else replace(clause, after=head))
    return found


def _clauses_of_whole_entries(
    entries: Sequence[StateEntry], whole_tokens: Mapping[str, int], relevance: Callable[[str], float] | None
) -> Iterator[_Clause]:
    """One clause for each entry that is kept word for word. Among clauses of equal worth these are removed first."""
    whole = [entry for entry in entries if entry.id in whole_tokens]
    newest_first, factors = _newest_first(whole), _factors_by_age_and_question(whole, relevance)
    for entry in whole:
        label, _ = label_and_clauses(entry.text)
        worth, entry_stems = _worth_and_stems(entry.role, entry.text, entry.text[len(label) :])
        tokens = whole_tokens[entry.id]
        option = Option(
            key=_MAX_CLAUSES * len(entries) + newest_first[entry.id],
            worth=worth.times(factors[entry.id]),
            stems=entry_stems,
            size=_SIGNS * tokens,
            cost=partial(whole_tokens.__getitem__, entry.id),
        )
        yield _Clause(entry=entry, label="", lead="", number=0, text=entry.text, option=option)


def _newest_first(entries: Sequence[StateEntry]) -> dict[str, int]:
    return {entry.id: place for place, entry in enumerate(sorted(entries, key=attrgetter("number"), reverse=True))}


def _factors_by_age_and_question(
    entries: Sequence[StateEntry], relevance: Callable[[str], float] | None
) -> dict[str, float]:
    newest_first = _newest_first(entries)
    return {
        entry.id: (1 + _RECENT * (1 - newest_first[entry.id] / len(entries)))
        * (1 + _RELEVANCE_FACTOR * relevance(entry.text) if relevance else 1.0)
        for entry in entries
    }


def _mention_factors(
    data: Sequence[tuple[StateEntry, str]], talk_words: Collection[str]
) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for name, group in groupby(data, lambda one: group_key(one[1])):
        records = list(group)
        factors = relevances([parse_line(text) for _, text in records], talk_words) if name else [1.0] * len(records)
        found.update(((entry.id, text), factor) for (entry, text), factor in zip(records, factors, strict=True))
    return found


def _worths_of_parts(
    parts: Sequence[str], mentioned: Collection[str], talk_words: Collection[str], mention_factor: float
) -> Iterator[tuple[Worth, frozenset[str]]]:
    lines = [parse_line(part) for part in parts]
    mentioned_places = [
        place for place, line in enumerate(lines) if any(is_mentioned(one, talk_words) for one in _spoken_names(line))
    ]
    head = next((place for place, line in enumerate(lines) if line.codes), None)
    for place, (line, worth) in enumerate(zip(lines, worths_of_data(lines, mentioned), strict=True)):
        # An id after a name that was talked about belongs to that name.
        near = min((abs(place - other) for other in mentioned_places if other != place), default=0)
        yield (
            worth.times(
                mention_factor
                * (HEAD_WEIGHT if place == head else 1.0)
                * (1 + _ABOUT / near if near and line.codes else 1.0)
            ),
            line.stems,
        )


def _spoken_names(line: DataLine) -> Iterator[str]:
    yield from line.words
    yield from (value for value in line.codes if " " in value)


def _lists_values(label: str, text: str) -> bool:
    if _is_data(label):
        return not is_prose(text)
    return is_call(text) and READING_TOOL.match(text) is not None


@memoized()
def _worth_and_stems(role: FieldRole, written: str, clause: str) -> tuple[Worth, frozenset[str]]:
    # The result is memoized, since the same state is rendered for many questions.
    entry = StateEntry(id=f"{ID_LETTERS[role]}0", field="", role=role, text=written, since_version=0)
    return entry_worth(entry), frozenset(stems(clause))


def _is_data(label: str) -> bool:
    return role_of(label) == "tool"


@memoized()
def _tokens(text: str) -> int:
    return entry_tokens(text)


def _option(key: int, text: str, worth: Worth, stems: frozenset[str], *, added_tokens: float) -> Option:
    tokens = math.ceil(_tokens(text) + added_tokens)
    return Option(key=key, worth=worth, stems=stems, size=_SIGNS * tokens, cost=lambda: tokens)

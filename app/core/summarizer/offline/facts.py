"""Chooses the facts of a span, as items that can be read alone and name their source messages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from app.core.model.state import StateEntry
from app.core.reading.choice import KeptTexts, Option, may_be_chosen
from app.core.reading.importance import Ratings
from app.core.reading.passages import Passage
from app.core.reading.scoring import Worth, score_all
from app.core.reading.sentence import TRAITS
from app.core.reading.tool_data_lines import is_call, joined_records, line_name
from app.core.summarizer.offline.corrections import Corrections
from app.core.summarizer.offline.earlier_entries import EarlierEntries
from app.core.summarizer.offline.items import MAX_ITEM_LENGTH, Item, entry_tokens, joined_clauses
from app.core.summarizer.offline.phrasing import MAX_CONTEXT_LENGTH, Phrasing
from app.core.text.relative import has_relative_time

_CORRECTION_WORTH: Final = 2.5  # added worth for a passage that replaces something, and so must not be missing
_RESTATEMENT_WORTH: Final = 1.0  # added worth for a statement repeated with another value, which will be asked for
_RELATIVE_TIME_TRAIT: Final = TRAITS.index("relative time")
_DAY_TOKENS: Final = 9  # tokens of the day that is added to a relative time
_SHARED_CHARACTERS: Final = 100  # the approximate characters of records after one speaker and one name


@dataclass(frozen=True, slots=True, kw_only=True)
class FactLimits:
    """How many tokens facts may take."""

    total: int
    """The most for the facts of the state so far and the new ones together."""
    most_new: int
    """The most for the new ones."""
    least_new: int
    """The least for the new ones, even if weaker earlier ones have to be given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts of a span, and the ids of the earlier entries that were given up for them."""

    items: tuple[Item, ...]
    given_up: tuple[str, ...]


def facts_of(
    passages: Sequence[Passage],
    earlier: Sequence[StateEntry],
    *,
    limits: FactLimits,
    kept_texts: KeptTexts,
    ratings: Ratings,
    focus: str | None,
    phrasing: Phrasing,
    corrections: Corrections,
    excluded_indexes: frozenset[int] = frozenset(),
) -> Facts:
    """The facts of the span, in order. If old and new ones do not fit together, the weakest of both are given up.

    Args:
        passages: The passages of the span.
        earlier: Facts and open entries of the state so far that nothing in the span replaces.
        limits: How many tokens they may take.
        kept_texts: What is already said elsewhere and is not repeated.
        ratings: How likely each passage is worth remembering.
        focus: What the summary was asked to keep.
        phrasing: Writes a passage so that it can be read alone.
        corrections: Which passages correct what.
        excluded_indexes: Indexes of passages that are used elsewhere.
    """
    worths = [
        worth.plus(_worth_of_correction(passage, corrections))
        for passage, worth in zip(passages, score_all(passages, focus, ratings), strict=True)
    ]
    new_options = [
        _option(passage, worth, phrasing)
        for passage, worth in zip(passages, worths, strict=True)
        if may_be_chosen(worth)
        and passage.index not in corrections.outdated
        and passage.index not in excluded_indexes
        and phrasing.is_understandable(passage)
    ]
    earlier_entries = EarlierEntries(earlier)
    chosen, given_up = earlier_entries.chosen_and_given_up(
        new_options, total=limits.total, most_new=limits.most_new, least_new=limits.least_new, kept_texts=kept_texts
    )
    picked = _without_quoted_elsewhere([passages[option.key] for option in chosen], phrasing)
    runs = _passages_by_item(picked, phrasing, corrections)
    return Facts(
        items=tuple(item for run in runs for item in _items_of_run(run, phrasing, corrections)), given_up=given_up
    )


def _option(passage: Passage, worth: Worth, phrasing: Phrasing) -> Option:
    return Option(
        key=passage.index,
        worth=worth,
        stems=passage.line.stems if passage.line else passage.stems,
        size=len(passage.core),
        cost=lambda: _added_cost(passage, phrasing),
    )


def _added_cost(passage: Passage, phrasing: Phrasing) -> int:
    text = phrasing.text(passage)
    is_simple = text == passage.core_with_speaker and not passage.traits[_RELATIVE_TIME_TRAIT]
    whole = entry_tokens(text) + (0 if is_simple else _DAY_TOKENS * has_relative_time(text))
    if passage.line is None or is_call(passage.text):
        return whole
    # The records of one list share one speaker and one name, and the cost of both.
    record = passage.core[len(line_name(passage.core)) :]
    own = entry_tokens(record)
    return own + math.ceil((whole - own) * min(len(record) / _SHARED_CHARACTERS, 1.0))


def _worth_of_correction(passage: Passage, corrections: Corrections) -> float:
    if passage.index in corrections.replaced or passage.index in corrections.antecedents:
        return _CORRECTION_WORTH
    return _RESTATEMENT_WORTH if passage.index in corrections.restated else 0.0


def _without_quoted_elsewhere(chosen: Sequence[Passage], phrasing: Phrasing) -> list[Passage]:
    replies = (phrasing.accepting_reply(passage) for passage in chosen)
    before = (phrasing.sentence_before(passage) for passage in chosen)
    quoted = {
        passage.index
        for passage in (*replies, *before)
        if passage is not None and len(passage.text) <= 2 * MAX_CONTEXT_LENGTH
    }
    return [passage for passage in chosen if passage.index not in quoted]


def _passages_by_item(chosen: Sequence[Passage], phrasing: Phrasing, corrections: Corrections) -> list[list[Passage]]:
    """Groups of passages that share an item and its label: neighbours of one message, or of one speaker if brief."""
    runs: list[list[Passage]] = []
    for passage in chosen:
        last = runs[-1] if runs else []
        simple = phrasing.is_simple(passage) and passage.index not in corrections.replaced
        if (
            simple
            and last
            and (last[0].seq == passage.seq or (phrasing.is_brief and last[0].speaker == passage.speaker))
            and phrasing.is_simple(last[0])
            and last[0].index not in corrections.replaced
            and sum(len(one.core) for one in last) + len(passage.core) <= MAX_ITEM_LENGTH
        ):
            last.append(passage)
        else:
            runs.append([passage])
    return runs


def _items_of_run(run: Sequence[Passage], phrasing: Phrasing, corrections: Corrections) -> Iterator[Item]:
    """The item of a run, after items with the parts that still hold of each entry that it replaces."""
    seqs = tuple(sorted({seq for passage in run for seq in phrasing.source_seqs(passage)}))
    replaces = tuple(dict.fromkeys(entry for passage in run for entry in corrections.replaced.get(passage.index, ())))
    text = phrasing.text(run[0])
    if len(run) > 1:
        text = joined_clauses(f"{run[0].speaker}: ", _cores_with_records_joined(run))
    for entry in replaces:
        label, clauses = corrections.remaining_clauses(entry)
        if clauses:
            yield Item(text=joined_clauses(label, clauses), seqs=(), replaces=(entry,))
    yield Item(text=text, seqs=seqs, replaces=replaces, passages=tuple(run))


def _cores_with_records_joined(run: Sequence[Passage]) -> Iterator[str]:
    for is_data, group in groupby(run, lambda passage: passage.line is not None):
        cores = (passage.core for passage in group)
        yield from joined_records(cores) if is_data else cores

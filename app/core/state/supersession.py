"""Finds the entries and items that are removed because something newer in a candidate makes them untrue.

What is superseded stays on record in the item that replaces it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from app.core.anchors.purposes import is_addition
from app.core.anchors.replacement import completes, names_alternative, replaces
from app.core.anchors.selection import is_entry_in_anchors
from app.core.anchors.topics import given_up_stems, stems_of, technology_kinds_in
from app.core.model.anchors import FoundAnchor
from app.core.model.candidate import CandidateItem
from app.core.model.conversation import Message
from app.core.model.state import FieldRole, StateEntry
from app.core.reading.cues import cues_of
from app.core.state.outdated import OutdatedAnchors
from app.core.text.sameness import canonical, covers
from app.core.text.sentences import sentences
from app.core.text.speakers import label_of, labels_of
from app.core.text.words import FRAME_STEMS
from app.core.validation.orders import orders_in

_CORRECTABLE_ROLES: Final = frozenset({"fact", "open"})
_POSTINGS: Final = 64  # the most entries per word that are looked at: the newest


@dataclass(frozen=True, slots=True, kw_only=True)
class SupersedingItems:
    """The items of a candidate, with the entries and items that they replace."""

    items: tuple[CandidateItem, ...]
    older: Mapping[int, tuple[CandidateItem, ...]]
    """The items of the same candidate that an item makes untrue, by that item's index; they are not among ``items``."""


def supersede(
    items: Sequence[CandidateItem],
    entries: Sequence[StateEntry],
    roles: Mapping[str, FieldRole],
    span: Sequence[Message],
    dropped: Collection[str] = (),
    anchors: Sequence[FoundAnchor] = (),
    outdated: OutdatedAnchors | None = None,
) -> SupersedingItems:
    """Find all that the items of a candidate replace, among earlier entries and among each other.

    What superseded anchors say is removed from the state too. It is replaced by an item from the message of the newer
    anchor, or else by that anchor's own words.

    Args:
        items: The items of the candidate.
        entries: The served entries.
        roles: The role of each field.
        span: The messages from which the candidate was made.
        dropped: Entries that the candidate wants to forget anyway.
        anchors: The active anchors.
        outdated: The superseded anchors, with those that replaced them.
    """
    messages = {message.seq: message for message in span}
    stated = {canonical(item.text) for item in items}
    correctable = [entry for entry in entries if entry.role in _CORRECTABLE_ROLES and entry.id not in dropped]
    unanchored = [entry for entry in correctable if not is_entry_in_anchors(anchors, entry)]
    open_entries = [entry for entry in unanchored if canonical(entry.text) not in stated]
    speakers = _speakers(span)
    index = _TextIndex([entry.text for entry in open_entries], speakers)
    completed: list[CandidateItem] = []
    for item in items:
        found: list[str] = []
        if roles[item.field] in _CORRECTABLE_ROLES:
            untrue = (open_entries[place] for place in index.outdated_by(item, messages))
            found = [entry.id for entry in untrue if not _is_repeated(entry.text, items)]
        completed.append(_with_replaced_entries(item, found))
    corrected = _CandidateCorrection(_superseding_among_items(completed, roles, messages, speakers), unanchored, roles)
    if outdated is not None:
        corrected.replace_outdated(outdated)
    return corrected.result()


def _with_replaced_entries(item: CandidateItem, entries: Sequence[str]) -> CandidateItem:
    return replace(item, replaces=tuple(dict.fromkeys([*item.replaces, *entries]))) if entries else item


class _CandidateCorrection:
    """The items of a candidate, without those that only repeat superseded anchors."""

    def __init__(
        self, superseding: SupersedingItems, entries: Sequence[StateEntry], roles: Mapping[str, FieldRole]
    ) -> None:
        self._items = list(superseding.items)
        self._older = {place: list(found) for place, found in superseding.older.items()}
        self._gone: set[int] = set()
        self._entries = entries
        self._roles = roles

    def replace_outdated(self, outdated: OutdatedAnchors) -> None:
        """Replace what only repeats a superseded anchor by the anchor that replaced it."""
        for place, item in enumerate(tuple(self._items)):
            after = outdated.successor(item.text, item.from_seqs) if self._is_present_with_sources(place) else None
            if after is not None and self._is_before(place, after.seq):
                self._replace_by_anchor(after, untrue=[place], stale=[])
        for entry in self._entries:
            after = outdated.successor(entry.text, entry.from_seqs)
            if after is not None:
                self._replace_by_anchor(after, untrue=[], stale=[entry])

    def _replace_by_anchor(self, anchor: FoundAnchor, *, untrue: Sequence[int], stale: Sequence[StateEntry]) -> None:
        staying = [item for place, item in enumerate(self._items) if place not in {*self._gone, *untrue}]
        settled = {entry for item in self._items for entry in item.replaces}
        stale = [one for one in stale if one.id not in settled and max(one.from_seqs, default=0) < anchor.seq]
        stale = [one for one in stale if not _is_repeated(one.text, staying)]
        if orders_in(anchor.content) or not (stale or untrue):
            return  # words that give orders are never stored as a fact
        place = next(
            (place for place in range(len(self._items)) if self._is_of_message(place, anchor.seq)), len(self._items)
        )
        if place == len(self._items):
            field = stale[0].field if stale else self._items[untrue[0]].field
            self._items.append(CandidateItem(field=field, text=anchor.content, from_seqs=(anchor.seq,)))
        inherited = [entry for old in untrue for entry in self._items[old].replaces]
        self._items[place] = _with_replaced_entries(self._items[place], [*(entry.id for entry in stale), *inherited])
        self._older.setdefault(place, []).extend(self._items[old] for old in untrue)
        self._gone.update(untrue)

    def result(self) -> SupersedingItems:
        """The items that are left, with what they replace."""
        return _superseding_without(self._items, self._gone, self._older)

    def _is_present_with_sources(self, place: int) -> bool:
        item = self._items[place]
        return place not in self._gone and self._roles[item.field] in _CORRECTABLE_ROLES and bool(item.from_seqs)

    def _is_before(self, place: int, seq: int) -> bool:
        return self._is_present_with_sources(place) and max(self._items[place].from_seqs) < seq

    def _is_of_message(self, place: int, seq: int) -> bool:
        return self._is_present_with_sources(place) and seq in self._items[place].from_seqs


def _superseding_without(
    items: Sequence[CandidateItem], gone: Collection[int], older: Mapping[int, Sequence[CandidateItem]]
) -> SupersedingItems:
    kept = [place for place in range(len(items)) if place not in gone]
    return SupersedingItems(
        items=tuple(items[place] for place in kept),
        older={new: tuple(older[place]) for new, place in enumerate(kept) if older.get(place)},
    )


class _TextIndex:
    """Texts, looked up by their words and by the kinds of things that they name; speakers' names are ignored."""

    def __init__(self, texts: Sequence[str], speakers: Collection[str]) -> None:
        self._speakers = speakers
        self._texts = [self._without_label(text) for text in texts]
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(self._texts):
            for key in _keys(text):
                self._places[key].append(place)

    def outdated_by(
        self, item: CandidateItem, messages: Mapping[int, Message], is_allowed: Callable[[int], bool] = lambda _: True
    ) -> list[int]:
        """The places of the texts that an item makes untrue, in order; only places that ``is_allowed`` accepts count.

        The correcting words may be in the item's source messages only.
        """
        if not self._texts:
            return []
        corrections = _corrections_of(item, messages)
        gone = frozenset[str]().union(*map(given_up_stems, corrections))
        changing = any(not is_addition(sentence) for sentence in corrections)
        text = self._without_label(item.text)
        keys = {*_keys(text), *gone, *given_up_stems(text)}
        about = sorted({place for key in keys for place in self._places.get(key, ())[-_POSTINGS:]})
        return [
            place
            for place in about
            if is_allowed(place) and _outdates(text, self._texts[place], gone, changing=changing)
        ]

    def _without_label(self, text: str) -> str:
        label = label_of(text)
        return text[label.end :] if label and label.name in self._speakers else text


def _speakers(span: Sequence[Message]) -> frozenset[str]:
    labels = labels_of([(message.role, message.content) for message in span])
    return frozenset(label.name for label in labels if label)


def _keys(text: str) -> Iterable[str]:
    return {*stems_of(text) - FRAME_STEMS, *(f"kind {kind}" for kind in technology_kinds_in(text))}


def _outdates(text: str, earlier: str, gone: frozenset[str], *, changing: bool) -> bool:
    if canonical(text) == canonical(earlier):
        return False
    if completes(text, earlier):
        return True
    if changing:
        return replaces(text, earlier, new_type="correction", also_given_up=gone) or names_alternative(text, earlier)
    return bool(gone or given_up_stems(text)) and replaces(text, earlier, new_type="critical_fact", also_given_up=gone)


def _corrections_of(item: CandidateItem, messages: Mapping[int, Message]) -> list[str]:
    return [
        sentence
        for seq in item.from_seqs
        if seq in messages and messages[seq].role in {"user", "assistant"}
        for sentence in sentences(messages[seq].content)
        if "correction" in cues_of(sentence)
    ]


def _superseding_among_items(
    items: Sequence[CandidateItem],
    roles: Mapping[str, FieldRole],
    messages: Mapping[int, Message],
    speakers: Collection[str],
) -> SupersedingItems:
    gone: set[int] = set()
    older: defaultdict[int, list[CandidateItem]] = defaultdict(list)
    index = _TextIndex([item.text for item in items], speakers)
    for place, item in enumerate(items):
        if roles[item.field] not in _CORRECTABLE_ROLES or not item.from_seqs or not _corrections_of(item, messages):
            continue
        for other in index.outdated_by(item, messages, partial(_is_older_and_present, items, place, gone)):
            gone.add(other)
            older[place].append(items[other])
    return _superseding_without(items, gone, older)


def _is_older_and_present(items: Sequence[CandidateItem], place: int, gone: Collection[int], other: int) -> bool:
    item, early = items[place], items[other]
    if other == place or other in gone or early.field != item.field or not early.from_seqs:
        return False
    return max(early.from_seqs) < max(item.from_seqs)


def _is_repeated(text: str, items: Sequence[CandidateItem]) -> bool:
    return any(covers(item.text, text) or covers(text, item.text) for item in items)

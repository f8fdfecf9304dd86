"""Merges an accepted candidate into a state: code decides what becomes of each entry.

Rules: an earlier entry that no item replaces and no valid drop names stays, byte for byte. The text of a replaced entry
is in ``superseded`` of the entry that replaced it. A candidate that states an entry again keeps it, whatever else it
says about it. Merging the same candidate twice adds nothing. Ids are never used again.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.core.model.anchors import FoundAnchor
from app.core.model.candidate import Candidate, CandidateItem
from app.core.model.conversation import Message
from app.core.model.provenance import origin_of
from app.core.model.records import EntryCounts
from app.core.model.repairs import Repair, RepairReason
from app.core.model.state import ID_LETTERS, FieldRole, Origin, StateEntry, StateSchema
from app.core.state.outdated import OutdatedAnchors
from app.core.state.supersession import supersede
from app.core.summarizer.candidate import DROP_REASONS
from app.core.text.sameness import canonical, covers, word_count, word_runs
from app.core.text.sentences import sentences
from app.core.text.words import stems
from app.core.validation.dates import items_with_dates
from app.core.validation.evidence import content_stems
from app.core.validation.lost_values import critical_values
from app.core.validation.same_subject import has_other_subject, has_same_subject

_MAX_OLDER_TEXTS: Final = 20
"""The most replaced texts that an entry keeps beside new ones. Still earlier ones are in earlier versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """The entries of the new state in served order: by field, then by age."""

    entries: tuple[StateEntry, ...]
    counts: EntryCounts
    next_entry: int
    removed: tuple[StateEntry, ...] = ()
    """Entries to be recorded as ``pruned``: dropped as no longer relevant, or replaced by a language model."""
    repairs: tuple[Repair, ...] = ()
    """Repairs of entries that the model gave up, but that were set aside or kept as they are."""
    by_model: bool = False
    """Whether a language model wrote the candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _EntryChanges:
    """What a candidate does to the earlier entries."""

    replaced: Mapping[str, StateEntry]
    dropped: frozenset[str]
    restored: frozenset[str]
    """Entries whose drop or replacement is invalid: they stay, and are counted as restored by code."""
    set_aside: frozenset[str] = frozenset()
    """Entries that the model gave up without a proof: they stay, in doubt."""
    kept: frozenset[str] = frozenset()
    """Entries that the model gave up likewise, but that a user demanded or an anchor says: they stay as they are."""


@dataclass(slots=True, kw_only=True)
class _PendingEntry:
    """An entry while it is being made: an earlier one that stays, or a new one (``earlier`` is ``None``)."""

    field: str
    text: str
    order: int
    from_seqs: set[int]
    superseded: list[str]
    replaced_ids: list[str] = dataclasses.field(default_factory=list)
    """Ids of the entries that the candidate wants it to replace, whether or not it does."""
    earlier: StateEntry | None = None

    @property
    def key(self) -> str:
        """The form of the text by which entries are compared."""
        return canonical(self.text)

    @property
    def earlier_id(self) -> str | None:
        """The id of the earlier entry that stays; ``None`` for a new one."""
        return self.earlier.id if self.earlier is not None else None

    @property
    def has_changed(self) -> bool:
        """Whether an earlier entry got a longer text."""
        return self.earlier is not None and self.text != self.earlier.text


def merge(
    schema: StateSchema,
    previous: Sequence[StateEntry],
    candidate: Candidate,
    span: Sequence[Message],
    version: int,
    next_entry: int,
    anchors: Sequence[FoundAnchor] = (),
    outdated: OutdatedAnchors | None = None,
    *,
    by_model: bool = False,
    demands: Collection[int] = (),
) -> MergeResult:
    """Merge an accepted candidate into the state.

    Args:
        schema: The schema of the state and of the candidate.
        previous: The entries of the state so far; pruned ones are ignored.
        candidate: The candidate, with its sources complete.
        span: The messages from which it was made: a drop needs a source among them.
        version: The number of the new version, for new and changed entries.
        next_entry: The number of the next new id.
        anchors: The active anchors: what a correction among them corrects is removed from the state.
        outdated: The superseded anchors: what they say is removed too.
        by_model: Whether a language model wrote the candidate. A model says itself which entries its items replace, and
            entries that it replaces or drops without a proof are set aside. Otherwise common words decide what replaces
            what.
        demands: Messages in which a user set a constraint or a goal: entries made from them are not even set aside.
    """
    served = {entry.id: entry for entry in previous if not entry.pruned}
    roles = {field.name: field.role for field in schema.fields}
    unrefuted = {drop.entry for drop in candidate.dropped if drop.reason == "no_longer_relevant"}
    replaced_items: Mapping[int, Sequence[CandidateItem]] = {}
    if not by_model:
        dropped = {drop.entry for drop in candidate.dropped}
        superseding = supersede(candidate.items, list(served.values()), roles, span, dropped, anchors, outdated)
        replaced_items = superseding.older
        # Texts that replace entries by an anchor's words came after days were added: add them here.
        candidate = replace(candidate, items=items_with_dates(superseding.items, span))
        if outdated is not None and schema.field_for("fact").is_list:
            candidate = _without_outdated_sentences(candidate, outdated)
    changes = _entry_changes(served, candidate, {message.seq for message in span})
    if by_model:
        changes = _changes_until_verified(changes, served, candidate, anchors, demands)
    pending = _pending_entries(_staying_entries(served, changes), candidate.items, changes, replaced_items)
    origins = _Origins(span, served.values())
    rewritten, narratives = _rewritten_narratives(served, candidate)
    new_pending = sorted((one for one in [*pending, *narratives] if one.earlier is None), key=lambda one: one.order)
    new_entries = [
        _new_entry(one, roles[one.field], number, version, origins)
        for number, one in enumerate(new_pending, start=next_entry)
    ]
    successors = _successors_by_id(pending, new_pending, new_entries)
    continued = [_earlier_entry(one, one.earlier, version, origins) for one in pending if one.earlier is not None]
    staying = [_with_doubt_and_successors(entry, changes, successors.get(entry.id, ())) for entry in continued]
    unchanged = [entry for entry in served.values() if entry.role == "narrative" and entry.id not in rewritten]
    changed = {one.earlier.id for one in pending if one.earlier is not None and one.has_changed}
    superseded = {*changes.replaced, *changed, *rewritten}
    restored = changes.restored - superseded - changes.dropped
    return MergeResult(
        entries=_in_served_order(schema, [*staying, *unchanged, *new_entries]),
        counts=EntryCounts(
            added=len(new_entries),
            kept=len(served) - len(superseded) - len(changes.dropped) - len(restored),
            superseded=len(superseded),
            dropped=len(changes.dropped),
            restored_by_code=len(restored),
        ),
        next_entry=next_entry + len(new_entries),
        removed=tuple(
            replace(entry, pruned=True, replaced_by=successors.get(entry.id, ()))
            for entry in served.values()
            if (entry.id in changes.dropped and entry.id in unrefuted) or (entry.id in changes.replaced and by_model)
        ),
        by_model=by_model,
        repairs=tuple(_repairs_of_doubt(staying, changes)),
    )


def _repairs_of_doubt(staying: Iterable[StateEntry], changes: _EntryChanges) -> Iterator[Repair]:
    """That entries were set aside or kept: no text changes."""
    for entry in staying:
        if entry.id in changes.set_aside | changes.kept:
            reason: RepairReason = "set_aside" if entry.id in changes.set_aside else "kept"
            yield Repair(field=entry.field, reason=reason, before=entry.text, after=entry.text, entry_id=entry.id)


def _without_outdated_sentences(candidate: Candidate, outdated: OutdatedAnchors) -> Candidate:
    def holds(sentence: str) -> bool:
        _, _, words = sentence.partition(": ")
        return not outdated.is_repeated_by(words or sentence)

    narrative = {field: " ".join(filter(holds, sentences(text))) for field, text in candidate.narrative.items()}
    return replace(candidate, narrative={field: text for field, text in narrative.items() if text})


def _entry_changes(served: Mapping[str, StateEntry], candidate: Candidate, span: set[int]) -> _EntryChanges:
    stated = {(item.field, canonical(item.text)) for item in candidate.items}
    restated = {entry.id for entry in served.values() if (entry.field, canonical(entry.text)) in stated}
    named = [served[entry] for item in candidate.items for entry in item.replaces if entry in served]
    # An item may replace an entry of another role: a next step may be done, and be progress now.
    replaced = {entry.id: entry for entry in named if entry.role != "narrative" and entry.id not in restated}
    sound = {
        drop.entry
        for drop in candidate.dropped
        if drop.entry in served and drop.reason in DROP_REASONS and drop.by_seq in span
    }
    droppable = {entry for entry in sound if served[entry].role != "narrative"} - restated - replaced.keys()
    given_up = {entry.id for entry in named} | {drop.entry for drop in candidate.dropped if drop.entry in served}
    return _EntryChanges(
        replaced=replaced,
        dropped=frozenset(droppable),
        restored=frozenset(given_up - replaced.keys() - droppable - restated),
    )


def _changes_until_verified(
    changes: _EntryChanges,
    served: Mapping[str, StateEntry],
    candidate: Candidate,
    anchors: Sequence[FoundAnchor],
    demands: Collection[int],
) -> _EntryChanges:
    """The replacements and drops by a model that take effect before they are verified.

    An item replaces an entry if it says much of it again. Every other entry that the model gives up is set aside,
    except what a user set as a constraint or a goal, and what an active anchor says: that stays as it is until a
    verifier agrees. An anchor that says only a small part of an entry does not count.
    """
    proven = {
        name
        for item in candidate.items
        for name in item.replaces
        if name in changes.replaced and name not in item.unproven and has_same_subject(item.text, served[name].text)
    }
    anchored = [(canonical(anchor.content), anchor.content) for anchor in anchors]
    given_up = (changes.replaced.keys() - proven) | changes.dropped

    def stays(entry: StateEntry) -> bool:
        text = canonical(entry.text)
        has_content = bool(content_stems(entry.text))  # "I want to find the endings by myself" has ordinary words alone
        return any(seq in demands for seq in entry.from_seqs) or any(
            anchor_text in text
            and _has_value_or_word(content)
            and not (has_content and has_other_subject(content, entry.text))
            for anchor_text, content in anchored
        )

    kept = {name for name in given_up if stays(served[name])}
    return _EntryChanges(
        replaced={name: entry for name, entry in changes.replaced.items() if name in proven},
        dropped=frozenset(),
        restored=changes.restored | kept,
        set_aside=frozenset(given_up - kept),
        kept=frozenset(kept),
    )


def _has_value_or_word(content: str) -> bool:
    # The bare number of a day is in many entries by chance.
    return bool(critical_values(content)) or any(len(word) > 1 and word.isalpha() for word in stems(content))


def _with_doubt_and_successors(entry: StateEntry, changes: _EntryChanges, successors: tuple[str, ...]) -> StateEntry:
    if entry.id not in changes.set_aside | changes.kept:
        return entry
    if entry.id in changes.set_aside:
        return replace(entry, in_doubt=True, unverified=False, replaced_by=successors)
    return replace(entry, replaced_by=successors)


def _staying_entries(served: Mapping[str, StateEntry], changes: _EntryChanges) -> list[_PendingEntry]:
    return [
        _PendingEntry(
            field=entry.field,
            text=entry.text,
            order=-1,
            from_seqs=set(entry.from_seqs),
            superseded=list(entry.superseded[-_MAX_OLDER_TEXTS:]),
            earlier=entry,
        )
        for entry in served.values()
        if entry.role != "narrative" and entry.id not in changes.replaced and entry.id not in changes.dropped
    ]


def _pending_entries(
    staying: Sequence[_PendingEntry],
    items: Sequence[CandidateItem],
    changes: _EntryChanges,
    replaced_items: Mapping[int, Sequence[CandidateItem]],
) -> list[_PendingEntry]:
    """Join items to entries that say the same, and make new entries of the others.

    The longest items come first, so that no later text contains one that is already an entry: thus merging twice adds
    nothing. An item that was to replace an entry does not join it: it would be in doubt with it, and go with it.
    """
    replaced, given_up = changes.replaced, changes.set_aside | changes.kept
    fields: defaultdict[str, _PendingEntries] = defaultdict(_PendingEntries)
    exact: dict[tuple[str, str], _PendingEntry] = {}
    for entry in staying:
        fields[entry.field].add(entry)
        exact.setdefault((entry.field, entry.key), entry)
    for order, item in sorted(enumerate(items), key=lambda pair: -word_count(pair[1].text)):
        pending = exact.get((item.field, canonical(item.text))) or fields[item.field].matching(
            item.text, given_up.intersection(item.replaces)
        )
        if pending is None:
            pending = _PendingEntry(field=item.field, text=item.text, order=order, from_seqs=set(), superseded=[])
            fields[item.field].add(pending)
        elif word_count(item.text) > word_count(pending.text):
            pending.superseded.append(pending.text)
            pending.text = item.text
            fields[item.field].reindex(pending)
        exact[item.field, canonical(item.text)] = pending
        _take_over_sources(
            pending, item, [replaced[id_] for id_ in item.replaces if id_ in replaced], replaced_items.get(order, ())
        )
    return [pending for group in fields.values() for pending in group.entries]


class _PendingEntries:
    """The pending entries of one field, looked up by the runs of words that they share with a text."""

    def __init__(self) -> None:
        self.entries: Final[list[_PendingEntry]] = []
        self._numbers: Final[dict[int, int]] = {}
        self._holding: Final[defaultdict[str, set[int]]] = defaultdict(set)
        self._beginning: Final[defaultdict[str, set[int]]] = defaultdict(set)

    def add(self, entry: _PendingEntry) -> None:
        self._numbers[id(entry)] = len(self.entries)
        self.entries.append(entry)
        self.reindex(entry)

    def reindex(self, entry: _PendingEntry) -> None:
        """Note that the text of an entry has changed."""
        number, text_runs = self._numbers[id(entry)], word_runs(entry.text)
        for run in text_runs:
            self._holding[run].add(number)
        if text_runs:
            self._beginning[text_runs[0]].add(number)

    def matching(self, text: str, left_out: Collection[str] = ()) -> _PendingEntry | None:
        """The first entry that already says all of the text, or else one whose text is a part of it.

        ``left_out`` are ids of earlier entries that do not count.
        """
        text_runs = word_runs(text)
        holding = self._entries_at(self._holding.get(run, set()) for run in text_runs[:1])
        beginning = self._entries_at(self._beginning.get(run, set()) for run in text_runs)
        containing = (entry for entry in holding if covers(entry.text, text) and entry.earlier_id not in left_out)
        contained = (entry for entry in beginning if covers(text, entry.text) and entry.earlier_id not in left_out)
        return next(containing, None) or next(contained, None)

    def _entries_at(self, numbers: Iterable[set[int]]) -> list[_PendingEntry]:
        return [self.entries[number] for number in sorted(set[int]().union(*numbers))]


def _take_over_sources(
    pending: _PendingEntry, item: CandidateItem, replaced: Sequence[StateEntry], replaced_items: Sequence[CandidateItem]
) -> None:
    pending.from_seqs.update(item.from_seqs)
    pending.replaced_ids += item.replaces
    sources: list[StateEntry | CandidateItem] = [*replaced, *replaced_items]
    for source in sources:
        pending.from_seqs.update(source.from_seqs)
    before = [text for entry in replaced for text in entry.superseded][-_MAX_OLDER_TEXTS:]
    gone = [source.text for source in sources]
    pending.superseded[:] = [*before, *pending.superseded, *gone]


class _Origins:
    """Finds the origins of a text's sources: from the messages of the span, and from entries for earlier messages."""

    def __init__(self, span: Sequence[Message], served: Iterable[StateEntry]) -> None:
        self._messages = {message.seq: message for message in span}
        self._known: defaultdict[int, set[Origin]] = defaultdict(set)
        for entry in served:
            for seq in entry.from_seqs:
                self._known[seq].update(entry.origins)

    def of(self, text: str, seqs: Iterable[int]) -> tuple[Origin, ...]:
        """Each origin once, sorted."""
        found: set[Origin] = set()
        for seq in seqs:
            if seq in self._messages:
                found.add(origin_of(self._messages[seq], text))
            else:
                found |= self._known[seq]
        return tuple(sorted(found))


def _rewritten_narratives(
    served: Mapping[str, StateEntry], candidate: Candidate
) -> tuple[set[str], list[_PendingEntry]]:
    """The ids of narratives that are replaced, and the new ones. A narrative is based on all messages: no sources."""
    rewritten: set[str] = set()
    pending: list[_PendingEntry] = []
    for order, (field, text) in enumerate(candidate.narrative.items(), start=len(candidate.items)):
        old = [entry for entry in served.values() if entry.field == field]
        if any(canonical(entry.text) == canonical(text) for entry in old):
            continue
        rewritten.update(entry.id for entry in old)
        superseded = [entry.text for entry in old]
        pending.append(_PendingEntry(field=field, text=text, order=order, from_seqs=set(), superseded=superseded))
    return rewritten, pending


def _new_entry(pending: _PendingEntry, role: FieldRole, number: int, version: int, origins: _Origins) -> StateEntry:
    return StateEntry(
        id=f"{ID_LETTERS[role]}{number}",
        field=pending.field,
        role=role,
        text=pending.text,
        from_seqs=tuple(sorted(pending.from_seqs)),
        since_version=version,
        origins=origins.of(pending.text, pending.from_seqs),
        superseded=tuple(dict.fromkeys(pending.superseded)),
    )


def _earlier_entry(pending: _PendingEntry, entry: StateEntry, version: int, origins: _Origins) -> StateEntry:
    new = pending.from_seqs - set(entry.from_seqs)
    return replace(
        entry,
        text=pending.text,
        from_seqs=tuple(sorted(pending.from_seqs)),
        since_version=version if pending.has_changed else entry.since_version,
        origins=tuple(sorted({*entry.origins, *origins.of(pending.text, new)})),
        superseded=tuple(dict.fromkeys(pending.superseded)),
    )


def _successors_by_id(
    pending: Sequence[_PendingEntry], new_pending: Sequence[_PendingEntry], new_entries: Sequence[StateEntry]
) -> Mapping[str, tuple[str, ...]]:
    found: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    earlier = [(one, one.earlier) for one in pending if one.earlier is not None]
    for one, entry in [*earlier, *zip(new_pending, new_entries, strict=True)]:
        for name in dict.fromkeys(one.replaced_ids):
            if name != entry.id:
                found[name] += (entry.id,)
    return found


def _in_served_order(schema: StateSchema, entries: Sequence[StateEntry]) -> tuple[StateEntry, ...]:
    position = {field.name: index for index, field in enumerate(schema.fields)}
    return tuple(sorted(entries, key=lambda entry: (position[entry.field], entry.number)))

"""Merges an accepted candidate into a state: code decides what becomes of each entry.

Rules: an earlier entry that no item replaces and no valid drop names stays, byte for byte. The text of a replaced entry
is in ``superseded`` of the entry that replaced it. A candidate that states an entry again keeps it, whatever else it
says about it. Merging the same candidate twice adds nothing. Ids are never used again.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.core.model.anchors import FoundAnchor
from app.core.model.candidate import Candidate, CandidateItem
from app.core.model.conversation import Message
from app.core.model.provenance import origin_of
from app.core.model.records import EntryCounts
from app.core.model.repairs import Repair
from app.core.model.state import ID_LETTERS, FieldRole, Origin, StateEntry, StateSchema
from app.core.state.outdated import Outdated
from app.core.state.pruning import age
from app.core.state.supersession import supersede
from app.core.summarizer.candidate import DROP_REASONS
from app.core.text.sameness import canonical, covers, word_count, word_runs
from app.core.text.sentences import sentences
from app.core.text.words import stems
from app.core.validation.dates import with_days
from app.core.validation.same_subject import is_about_same
from app.core.validation.survival import critical_values

_OLDER_TEXTS: Final = 20
"""The most replaced texts that an entry keeps. Still earlier ones are in earlier versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """The entries of the new state in served order: by field, then by age."""

    entries: tuple[StateEntry, ...]
    counts: EntryCounts
    next_entry: int
    outdated: tuple[StateEntry, ...] = ()
    """Entries that were dropped although nothing contradicts them, and those that a language model replaced: they are
    recorded as ``pruned``."""
    repairs: tuple[Repair, ...] = ()
    """Repairs of entries that the model gave up, but that were set aside or kept as they are."""
    by_model: bool = False
    """Whether a language model wrote the candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fate:
    """What a candidate does to the earlier entries."""

    replaced: Mapping[str, StateEntry]
    dropped: frozenset[str]
    threatened: frozenset[str]
    """Entries named by an invalid drop or replacement: they stay, and are counted."""
    aside: frozenset[str] = frozenset()
    """Entries that the model gave up without a proof: they stay, in doubt."""
    kept: frozenset[str] = frozenset()
    """Entries that were given up likewise, but that a user set or an anchor says: they stay as they are."""


@dataclass(slots=True, kw_only=True)
class _Place:
    """An entry while it is being made: an earlier one that stays, or a new one (``earlier`` is ``None``)."""

    field: str
    text: str
    order: int
    from_seqs: set[int]
    superseded: list[str]
    named: list[str] = dataclasses.field(default_factory=list)
    """Ids of the entries that the candidate wants it to replace, whether or not it does."""
    earlier: StateEntry | None = None

    @property
    def key(self) -> str:
        """The form of the text by which entries are compared."""
        return canonical(self.text)

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
    outdated: Outdated | None = None,
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
    dropped = {drop.entry for drop in candidate.dropped}
    unrefuted = {drop.entry for drop in candidate.dropped if drop.reason == "no_longer_relevant"}
    older: Mapping[int, Sequence[CandidateItem]] = {}
    if not by_model:
        known = supersede(candidate.items, list(served.values()), roles, span, dropped, anchors, outdated)
        # Texts that replace entries by an anchor's words came after days were added: add them here.
        candidate, older = replace(candidate, items=with_days(known.items, span)), known.older
        if outdated is not None and schema.home("fact").is_list:
            candidate = _without_outdated_sentences(candidate, outdated)
    fate = _fate_of_entries(served, candidate, {message.seq for message in span})
    if by_model:
        fate = _set_aside_until_verified(fate, served, candidate, anchors, demands)
    places = _place_items(_places_that_stay(served, fate), candidate.items, fate.replaced, older)
    origins = _Origins(span, served.values())
    retold, narratives = _retold_narratives(served, candidate)
    made = sorted((place for place in [*places, *narratives] if place.earlier is None), key=lambda place: place.order)
    fresh = [
        _new_entry(place, roles[place.field], number, version, origins)
        for number, place in enumerate(made, start=next_entry)
    ]
    successors = _successors_by_id(places, made, fresh)
    staying = [
        _with_doubt_and_successors(one, fate, successors.get(one.id, ()))
        for place in places
        if place.earlier is not None
        for one in [_earlier_entry(place, place.earlier, version, origins)]
    ]
    untold = [entry for entry in served.values() if entry.role == "narrative" and entry.id not in retold]
    changed = {place.earlier.id for place in places if place.earlier is not None and place.has_changed}
    superseded = {*fate.replaced, *changed, *retold}
    restored = fate.threatened - superseded - fate.dropped
    return MergeResult(
        entries=_in_served_order(schema, [*staying, *untold, *fresh]),
        counts=EntryCounts(
            added=len(fresh),
            kept=len(served) - len(superseded) - len(fate.dropped) - len(restored),
            superseded=len(superseded),
            dropped=len(fate.dropped),
            restored_by_code=len(restored),
        ),
        next_entry=next_entry + len(fresh),
        outdated=tuple(
            replace(entry, pruned=True, replaced_by=successors.get(entry.id, ()))
            for entry in served.values()
            if (entry.id in fate.dropped and entry.id in unrefuted) or (entry.id in fate.replaced and by_model)
        ),
        by_model=by_model,
        repairs=tuple(
            Repair(
                field=one.field,
                reason="set_aside" if one.id in fate.aside else "kept",
                before=one.text,
                after=one.text,
                entry_id=one.id,
            )
            for one in staying
            if one.id in fate.aside | fate.kept
        ),
    )


def _without_outdated_sentences(candidate: Candidate, outdated: Outdated) -> Candidate:
    def holds(sentence: str) -> bool:
        _, _, words = sentence.partition(": ")
        return not outdated.says(words or sentence)

    narrative = {field: " ".join(filter(holds, sentences(text))) for field, text in candidate.narrative.items()}
    return replace(candidate, narrative={field: text for field, text in narrative.items() if text})


def _fate_of_entries(served: Mapping[str, StateEntry], candidate: Candidate, span: set[int]) -> _Fate:
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
    threatened = {entry.id for entry in named} | {drop.entry for drop in candidate.dropped if drop.entry in served}
    return _Fate(
        replaced=replaced,
        dropped=frozenset(droppable),
        threatened=frozenset(threatened - replaced.keys() - droppable - restated),
    )


def _set_aside_until_verified(
    fate: _Fate,
    served: Mapping[str, StateEntry],
    candidate: Candidate,
    anchors: Sequence[FoundAnchor],
    demands: Collection[int],
) -> _Fate:
    """The replacements and drops by a model that take effect before they are verified.

    An item replaces an entry if it says much of it again. Every other entry that the model gives up is set aside,
    except what a user set as a constraint or a goal, and what an active anchor says: that stays as it is until a
    verifier agrees.
    """
    proven = {
        name
        for item in candidate.items
        for name in item.replaces
        if name in fate.replaced and name not in item.unproven and is_about_same(item.text, served[name].text)
    }
    anchored = [(canonical(anchor.content), anchor.content) for anchor in anchors]
    given_up = (fate.replaced.keys() - proven) | fate.dropped

    def stays(entry: StateEntry) -> bool:
        text = canonical(entry.text)
        return any(seq in demands for seq in entry.from_seqs) or any(
            said in text and _has_value_or_word(content) for said, content in anchored
        )

    kept = {name for name in given_up if stays(served[name])}
    return _Fate(
        replaced={name: entry for name, entry in fate.replaced.items() if name in proven},
        dropped=frozenset(),
        threatened=fate.threatened | kept,
        aside=frozenset(given_up - kept),
        kept=frozenset(kept),
    )


def _has_value_or_word(content: str) -> bool:
    # The bare number of a day is in many entries by chance.
    return bool(critical_values(content)) or any(len(word) > 1 and word.isalpha() for word in stems(content))


def _with_doubt_and_successors(entry: StateEntry, fate: _Fate, successors: tuple[str, ...]) -> StateEntry:
    if entry.id not in fate.aside | fate.kept:
        return entry
    return replace(entry, in_doubt=entry.in_doubt or entry.id in fate.aside, replaced_by=successors)


def _places_that_stay(served: Mapping[str, StateEntry], fate: _Fate) -> list[_Place]:
    return [
        _Place(
            field=entry.field,
            text=entry.text,
            order=-1,
            from_seqs=set(entry.from_seqs),
            superseded=list(entry.superseded),
            earlier=entry,
        )
        for entry in served.values()
        if entry.role != "narrative" and entry.id not in fate.replaced and entry.id not in fate.dropped
    ]


def _place_items(
    staying: Sequence[_Place],
    items: Sequence[CandidateItem],
    replaced: Mapping[str, StateEntry],
    older: Mapping[int, Sequence[CandidateItem]],
) -> list[_Place]:
    """Join items to entries that say the same, and make places for the others.

    The longest items come first, so that no later text contains one that already has a place: thus merging twice adds
    nothing.
    """
    fields: defaultdict[str, _Places] = defaultdict(_Places)
    exact: dict[tuple[str, str], _Place] = {}
    for stays in staying:
        fields[stays.field].add(stays)
        exact.setdefault((stays.field, stays.key), stays)
    for order, item in sorted(enumerate(items), key=lambda pair: -word_count(pair[1].text)):
        place = exact.get((item.field, canonical(item.text))) or fields[item.field].near(item.text)
        if place is None:
            place = _Place(field=item.field, text=item.text, order=order, from_seqs=set(), superseded=[])
            fields[item.field].add(place)
        elif word_count(item.text) > word_count(place.text):
            place.superseded.append(place.text)
            place.text = item.text
            fields[item.field].changed(place)
        exact[item.field, canonical(item.text)] = place
        _take_over_sources(
            place, item, [replaced[id_] for id_ in item.replaces if id_ in replaced], older.get(order, ())
        )
    return [place for group in fields.values() for place in group.places]


class _Places:
    """The places of one field, looked up by the runs of words that they share with a text."""

    def __init__(self) -> None:
        self.places: Final[list[_Place]] = []
        self._numbers: Final[dict[int, int]] = {}
        self._holding: Final[defaultdict[str, set[int]]] = defaultdict(set)
        self._beginning: Final[defaultdict[str, set[int]]] = defaultdict(set)

    def add(self, place: _Place) -> None:
        self._numbers[id(place)] = len(self.places)
        self.places.append(place)
        self.changed(place)

    def changed(self, place: _Place) -> None:
        """Note that the text of a place has changed."""
        number, held = self._numbers[id(place)], word_runs(place.text)
        for run in held:
            self._holding[run].add(number)
        if held:
            self._beginning[held[0]].add(number)

    def near(self, text: str) -> _Place | None:
        """The first place that already says all of the text, or else one whose text is a part of it."""
        held = word_runs(text)
        holding = self._places_at(self._holding.get(run, set()) for run in held[:1])
        begun = self._places_at(self._beginning.get(run, set()) for run in held)
        saying = (place for place in holding if covers(place.text, text))
        said = (place for place in begun if covers(text, place.text))
        return next(saying, None) or next(said, None)

    def _places_at(self, numbers: Iterable[set[int]]) -> list[_Place]:
        return [self.places[number] for number in sorted(set[int]().union(*numbers))]


def _take_over_sources(
    place: _Place, item: CandidateItem, replaced: Sequence[StateEntry], older: Sequence[CandidateItem]
) -> None:
    place.from_seqs.update(item.from_seqs)
    place.named += item.replaces
    sources: list[StateEntry | CandidateItem] = [*replaced, *older]
    for source in sources:
        place.from_seqs.update(source.from_seqs)
    before = [text for entry in replaced for text in entry.superseded][-_OLDER_TEXTS:]
    gone = [source.text for source in sources]
    place.superseded[:] = [*before, *place.superseded, *gone]


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


def _retold_narratives(served: Mapping[str, StateEntry], candidate: Candidate) -> tuple[set[str], list[_Place]]:
    """The ids of narratives that are replaced, and the new ones. A narrative is based on all messages: no sources."""
    retold: set[str] = set()
    places: list[_Place] = []
    for order, (field, text) in enumerate(candidate.narrative.items(), start=len(candidate.items)):
        old = [entry for entry in served.values() if entry.field == field]
        if any(canonical(entry.text) == canonical(text) for entry in old):
            continue
        retold.update(entry.id for entry in old)
        superseded = [entry.text for entry in old]
        places.append(_Place(field=field, text=text, order=order, from_seqs=set(), superseded=superseded))
    return retold, places


def _new_entry(place: _Place, role: FieldRole, number: int, version: int, origins: _Origins) -> StateEntry:
    return StateEntry(
        id=f"{ID_LETTERS[role]}{number}",
        field=place.field,
        role=role,
        text=place.text,
        from_seqs=tuple(sorted(place.from_seqs)),
        since_version=version,
        origins=origins.of(place.text, place.from_seqs),
        superseded=tuple(dict.fromkeys(place.superseded)),
    )


def _earlier_entry(place: _Place, entry: StateEntry, version: int, origins: _Origins) -> StateEntry:
    new = place.from_seqs - set(entry.from_seqs)
    return replace(
        entry,
        text=place.text,
        from_seqs=tuple(sorted(place.from_seqs)),
        since_version=version if place.has_changed else entry.since_version,
        origins=tuple(sorted({*entry.origins, *origins.of(place.text, new)})),
        superseded=tuple(dict.fromkeys(place.superseded)),
    )


def _successors_by_id(
    places: Sequence[_Place], made: Sequence[_Place], fresh: Sequence[StateEntry]
) -> Mapping[str, tuple[str, ...]]:
    found: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    standing = [(place, place.earlier) for place in places if place.earlier is not None]
    for place, entry in [*standing, *zip(made, fresh, strict=True)]:
        for name in dict.fromkeys(place.named):
            if name != entry.id:
                found[name] += (entry.id,)
    return found


def _in_served_order(schema: StateSchema, entries: Sequence[StateEntry]) -> tuple[StateEntry, ...]:
    position = {field.name: index for index, field in enumerate(schema.fields)}
    return tuple(sorted(entries, key=lambda entry: (position[entry.field], age(entry))))

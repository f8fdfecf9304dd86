"""Finds texts of a served state that the checks of earlier commits damaged, and repairs those that can be repaired.

These checks replaced items that they did not believe by sentences of messages, and cut sentences out of narratives.
Each compaction records how many texts it changed. If an entry of such a compaction stands word for word in one of its
own sources, no model wrote it: of 2 009 recorded items of models none stands so in a source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from app.core.model.repairs import Repair
from app.core.model.state import StateEntry
from app.core.text.patterns import compiled
from app.core.text.sentences import closed, sentences
from app.core.text.token_counts import estimate_text
from app.core.text.values import ValueIndex, values

DamageKind = Literal["quote", "fragment", "stale_narrative", "cut_narrative"]
"""``quote``: a sentence of a message stands in an item's place. ``fragment``: something that is not a statement stands
there: a question, a heading, code, a row of a table, a part of a sentence. ``stale_narrative``: a narrative was not
written anew though there are newer facts. ``cut_narrative``: sentences of a narrative are gone."""

_CARRIED: Final = compiled(r"(.*\S) \([^()]{1,2000}\)\Z")
"""A text, and behind it in brackets the values of entries that it replaced."""
_NO_STATEMENT: Final = compiled(r"[?？]\Z|[{}|`]|\A#{1,6}\s|:\Z")
_ENDS: Final = ".!…。！"  # a statement ends with one of these; a question is not a statement
_LINE_ITEMS: Final = 2
_LEAST_LEFT: Final = 0.7
"""A narrative that is written anew is rarely shorter than this share of the one before."""
_STUB: Final = 50
"""In tokens: a narrative of two or three sentences has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A version of a state, and what the checks did when it was made."""

    version: int
    boundary_seq: int
    entries: tuple[StateEntry, ...]
    changed: int = 0
    """How many texts the earlier checks changed or left out; 0 if later checks were used."""
    made_in: str = ""
    """What wrote the version; versions of the same compaction share its count of changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One served text that earlier checks damaged."""

    kind: DamageKind
    entry: StateEntry
    version: int
    """The version in which it was damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """The entries after code repaired what it can, and the records of the repairs."""

    entries: tuple[StateEntry, ...] = ()
    repairs: tuple[Repair, ...] = ()


def damages(lineage: Sequence[Made], said: Mapping[int, str]) -> tuple[Damage, ...]:
    """The damaged texts in the last version of a lineage.

    Args:
        lineage: Versions, each the parent of the next one, oldest first.
        said: Texts of messages by ``seq``, without secrets: at least those on which the entries rest.
    """
    return tuple(_Looking(lineage, said).damaged(lineage))


def sound_version(lineage: Sequence[Made], said: Mapping[int, str]) -> int:
    """The newest version in which nothing is damaged; 0 if there is none."""
    looking = _Looking(lineage, said)
    for count in range(len(lineage), 0, -1):
        if not any(looking.damaged(lineage[:count])):
            return lineage[count - 1].version
    return 0


class _Looking:
    """Finds damaged entries. Each entry is examined only once, however many versions have it."""

    def __init__(self, lineage: Sequence[Made], said: Mapping[int, str]) -> None:
        self._lineage = lineage
        self._said = said
        self._wholes: dict[int, frozenset[str]] = {}
        self._lines = {seq: _one_line(text) for seq, text in said.items()}
        self._by_number = {made.version: made for made in lineage}
        self._quotes = {made_in: self._quotes_of_compaction(made_in) for made_in in {made.made_in for made in lineage}}

    def damaged(self, lineage: Sequence[Made]) -> Iterator[Damage]:
        """The damaged texts in the last of these versions."""
        for entry in lineage[-1].entries if lineage else ():
            made = self._by_number.get(entry.since_version)
            if entry.pruned or entry.in_doubt or made is None:
                continue
            quote = self._quotes[made.made_in].get((entry.id, entry.text))
            kind = self._of_narrative(entry, made, lineage) if entry.role == "narrative" else quote
            if kind is not None:
                yield Damage(kind=kind, entry=entry, version=made.version)

    # --- items

    def _quotes_of_compaction(self, made_in: str) -> Mapping[tuple[str, str], DamageKind]:
        versions = [made for made in self._lineage if made.made_in == made_in and made.changed]
        found = {
            (entry.id, entry.text): kind
            for made in versions
            for entry in made.entries
            if entry.since_version == made.version and _is_item(entry) and not _was_added_by_code(entry, made)
            if (kind := self._quote_kind(entry)) is not None
        }
        # If more items are quotes than were changed, the model itself quoted.
        return found if versions and len(found) <= versions[0].changed else {}

    def _quote_kind(self, entry: StateEntry) -> DamageKind | None:
        texts = [_one_line(entry.text)]
        if entry.superseded and (carried := _CARRIED.match(texts[0])):
            texts.append(carried[1])
        for text in texts:
            for seq in entry.from_seqs:
                if text in self._lines.get(seq, ""):
                    return "quote" if self._is_whole_statement(text, seq) else "fragment"
        return None

    def _is_whole_statement(self, text: str, seq: int) -> bool:
        if _NO_STATEMENT.search(text):
            return False
        if seq not in self._wholes:
            said = self._said[seq]
            self._wholes[seq] = frozenset(_one_line(part) for part in (*said.splitlines(), *sentences(said)))
        return text[-1:] in _ENDS or text in self._wholes[seq]

    # --- narratives

    def _of_narrative(self, entry: StateEntry, made: Made, lineage: Sequence[Made]) -> DamageKind | None:
        later = [one for one in lineage if one.version > made.version and one.boundary_seq > made.boundary_seq]
        if any(one.changed and _has_news(one) for one in later):
            return "stale_narrative"
        return "cut_narrative" if self._has_cut_narrative(entry, made, lineage) else None

    def _has_cut_narrative(self, entry: StateEntry, made: Made, lineage: Sequence[Made]) -> bool:
        if made.changed <= len(self._quotes[made.made_in]):
            return False
        # If the narrative is the whole state, nothing else can have been changed.
        if all(one.role == "narrative" for one in made.entries if not one.pruned):
            return True
        before = [one for one in lineage if one.version < made.version]
        older = next((one.text for one in before[-1].entries if one.field == entry.field), "") if before else ""
        return len(entry.text) < _LEAST_LEFT * len(older) or estimate_text(entry.text) < _STUB


def _is_item(entry: StateEntry) -> bool:
    return entry.role in {"fact", "open"}


def _was_added_by_code(entry: StateEntry, made: Made) -> bool:
    # Entries that code adds to save a value have higher numbers than the narrative.
    told = [_number(one) for one in made.entries if one.role == "narrative" and one.since_version == made.version]
    return bool(told) and _number(entry) > max(told)


def _has_news(made: Made) -> bool:
    return any(one.since_version == made.version for one in made.entries if one.role != "narrative" and not one.pruned)


def _number(entry: StateEntry) -> int:
    digits = entry.id[1:]
    return int(digits) if digits.isdecimal() else 0


def _one_line(text: str) -> str:
    return " ".join(text.split())


# --- mending by code


def mended(entries: Sequence[StateEntry], found: Iterable[Damage], *, version: int) -> Mended:
    """The entries, repaired as far as code alone can; it cannot restore the model's own words.

    A quote is set aside: it is served after the others, in doubt. A fragment is removed, or set aside if it has a value
    that stands nowhere else. The two newest items are put after a cut narrative, and in place of a stale one.

    Args:
        entries: The entries of the version that is served.
        found: The damage in it.
        version: The number of the version that is written.
    """
    kinds = {damage.entry.id: damage.kind for damage in found}
    kept = [entry for entry in entries if not entry.pruned and kinds.get(entry.id) != "fragment"]
    given = ValueIndex()
    for entry in kept if "fragment" in kinds.values() else ():
        given.add(1, entry.text)
    line = _newest_items([entry for entry in kept if entry.id not in kinds])
    made: list[StateEntry] = []
    repairs: list[Repair] = []
    for entry in entries:
        told = entry if entry.pruned else _mended(entry, kinds.get(entry.id), given, line)
        if told != entry:
            repairs.append(_repair(entry, told))
        made.append(told if told.text == entry.text else replace(told, since_version=version))
    return Mended(entries=tuple(made), repairs=tuple(repairs))


def _mended(entry: StateEntry, kind: DamageKind | None, given: ValueIndex, line: str) -> StateEntry:
    if kind == "quote" or (kind == "fragment" and not all(map(given.holds, values(entry.text)))):
        return replace(entry, in_doubt=True)
    if kind == "fragment":
        return replace(entry, pruned=True)
    if kind in {"stale_narrative", "cut_narrative"} and line:
        left = f"{entry.text} {line}" if kind == "cut_narrative" else line
        return replace(entry, text=left, superseded=(*entry.superseded, entry.text))
    return entry


def _repair(entry: StateEntry, told: StateEntry) -> Repair:
    if entry.role == "narrative":
        return Repair(field=entry.field, reason="narrative_line", before=entry.text, after=told.text, entry_id=entry.id)
    after = None if told.pruned else told.text
    return Repair(field=entry.field, reason="misplaced_quote", before=entry.text, after=after, entry_id=entry.id)


def _newest_items(entries: Sequence[StateEntry]) -> str:
    items = [one for one in entries if _is_item(one) and not one.in_doubt]
    newest = sorted(items, key=lambda one: (one.since_version, _number(one)))[-_LINE_ITEMS:]
    return " ".join(closed(one.text) for one in newest)

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
"""``quote``: a sentence of a message is in an item's place. ``fragment``: something that is not a statement is
there: a question, a heading, code, a row of a table, a part of a sentence. ``stale_narrative``: a narrative was not
written anew though there are newer facts. ``cut_narrative``: sentences of a narrative are gone."""

_TEXT_WITH_CARRIED_VALUES: Final = compiled(r"(.*\S) \([^()]{1,2000}\)\Z")
"""A text, and behind it in brackets the values of entries that it replaced."""
_NOT_A_STATEMENT: Final = compiled(r"[?？]\Z|[{}|`]|\A#{1,6}\s|:\Z")
_ENDS: Final = ".!…。！"  # a statement ends with one of these; a question is not a statement
_LINE_ITEMS: Final = 2
_MIN_REMAINING_SHARE: Final = 0.7
"""A narrative that is written anew is rarely shorter than this share of the one before."""
_STUB_TOKENS: Final = 50
"""In tokens: a narrative of two or three sentences has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedVersion:
    """A version of a state, and what the checks did when it was made."""

    version: int
    boundary_seq: int
    entries: tuple[StateEntry, ...]
    changed_texts: int = 0
    """How many texts the earlier checks changed or left out; 0 if later checks were used."""
    written_by: str = ""
    """What wrote the version; versions of the same compaction share its count of changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One served text that earlier checks damaged."""

    kind: DamageKind
    entry: StateEntry
    version: int
    """The version in which it was damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MendedEntries:
    """The entries after code repaired what it can, and the records of the repairs."""

    entries: tuple[StateEntry, ...] = ()
    repairs: tuple[Repair, ...] = ()


def find_damage(lineage: Sequence[RecordedVersion], message_texts: Mapping[int, str]) -> tuple[Damage, ...]:
    """The damaged texts in the last version of a lineage.

    Args:
        lineage: Versions, each the parent of the next one, oldest first.
        message_texts: Texts of messages by ``seq``, without secrets: at least those on which the entries rest.
    """
    return tuple(_DamageSearch(lineage, message_texts).damage_in(lineage))


def sound_version(lineage: Sequence[RecordedVersion], message_texts: Mapping[int, str]) -> int:
    """The newest version in which nothing is damaged; 0 if there is none."""
    search = _DamageSearch(lineage, message_texts)
    for count in range(len(lineage), 0, -1):
        if not any(search.damage_in(lineage[:count])):
            return lineage[count - 1].version
    return 0


class _DamageSearch:
    """Finds damaged entries. Each entry is examined only once, however many versions have it."""

    def __init__(self, lineage: Sequence[RecordedVersion], message_texts: Mapping[int, str]) -> None:
        self._lineage = lineage
        self._message_texts = message_texts
        self._statements: dict[int, frozenset[str]] = {}
        self._lines = {seq: _one_line(text) for seq, text in message_texts.items()}
        self._by_number = {recorded.version: recorded for recorded in lineage}
        self._quotes = {
            written_by: self._quotes_of_compaction(written_by)
            for written_by in {recorded.written_by for recorded in lineage}
        }

    def damage_in(self, lineage: Sequence[RecordedVersion]) -> Iterator[Damage]:
        """The damaged texts in the last of these versions."""
        for entry in lineage[-1].entries if lineage else ():
            recorded = self._by_number.get(entry.since_version)
            if entry.pruned or entry.in_doubt or recorded is None:
                continue
            quote = self._quotes[recorded.written_by].get((entry.id, entry.text))
            kind = self._narrative_damage(entry, recorded, lineage) if entry.role == "narrative" else quote
            if kind is not None:
                yield Damage(kind=kind, entry=entry, version=recorded.version)

    # --- items

    def _quotes_of_compaction(self, written_by: str) -> Mapping[tuple[str, str], DamageKind]:
        versions = [
            recorded for recorded in self._lineage if recorded.written_by == written_by and recorded.changed_texts
        ]
        quotes = {
            (entry.id, entry.text): kind
            for recorded in versions
            for entry in recorded.entries
            if entry.since_version == recorded.version and _is_item(entry) and not _was_added_by_code(entry, recorded)
            if (kind := self._quote_damage(entry)) is not None
        }
        # If more items are quotes than were changed, the model itself quoted.
        return quotes if versions and len(quotes) <= versions[0].changed_texts else {}

    def _quote_damage(self, entry: StateEntry) -> DamageKind | None:
        texts = [_one_line(entry.text)]
        if entry.superseded and (carried := _TEXT_WITH_CARRIED_VALUES.match(texts[0])):
            texts.append(carried[1])
        for text in texts:
            for seq in entry.from_seqs:
                if text in self._lines.get(seq, ""):
                    return "quote" if self._is_whole_statement(text, seq) else "fragment"
        return None

    def _is_whole_statement(self, text: str, seq: int) -> bool:
        if _NOT_A_STATEMENT.search(text):
            return False
        if seq not in self._statements:
            text_of_message = self._message_texts[seq]
            self._statements[seq] = frozenset(
                _one_line(part) for part in (*text_of_message.splitlines(), *sentences(text_of_message))
            )
        return text[-1:] in _ENDS or text in self._statements[seq]

    # --- narratives

    def _narrative_damage(
        self, entry: StateEntry, recorded: RecordedVersion, lineage: Sequence[RecordedVersion]
    ) -> DamageKind | None:
        later = [one for one in lineage if one.version > recorded.version and one.boundary_seq > recorded.boundary_seq]
        if any(one.changed_texts and _has_news(one) for one in later):
            return "stale_narrative"
        return "cut_narrative" if self._is_cut_narrative(entry, recorded, lineage) else None

    def _is_cut_narrative(
        self, entry: StateEntry, recorded: RecordedVersion, lineage: Sequence[RecordedVersion]
    ) -> bool:
        if recorded.changed_texts <= len(self._quotes[recorded.written_by]):
            return False
        # If the narrative is the whole state, nothing else can have been changed.
        if all(one.role == "narrative" for one in recorded.entries if not one.pruned):
            return True
        before = [one for one in lineage if one.version < recorded.version]
        older = next((one.text for one in before[-1].entries if one.field == entry.field), "") if before else ""
        return len(entry.text) < _MIN_REMAINING_SHARE * len(older) or estimate_text(entry.text) < _STUB_TOKENS


def _is_item(entry: StateEntry) -> bool:
    return entry.role in {"fact", "open"}


def _was_added_by_code(entry: StateEntry, recorded: RecordedVersion) -> bool:
    # Entries that code adds to save a value have higher numbers than the narrative.
    narrative_numbers = [
        one.number for one in recorded.entries if one.role == "narrative" and one.since_version == recorded.version
    ]
    return bool(narrative_numbers) and entry.number > max(narrative_numbers)


def _has_news(recorded: RecordedVersion) -> bool:
    return any(
        one.since_version == recorded.version for one in recorded.entries if one.role != "narrative" and not one.pruned
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


# --- mending by code


def mended_entries(entries: Sequence[StateEntry], found_damage: Iterable[Damage], *, version: int) -> MendedEntries:
    """The entries, repaired as far as code alone can; it cannot restore the model's own words.

    A quote is set aside: it is served after the others, in doubt. A fragment is removed, or set aside if it has a value
    that stands nowhere else. The two newest items are put after a cut narrative, and in place of a stale one.

    Args:
        entries: The entries of the version that is served.
        found_damage: The damage in it.
        version: The number of the version that is written.
    """
    kinds = {damage.entry.id: damage.kind for damage in found_damage}
    remaining = [entry for entry in entries if not entry.pruned and kinds.get(entry.id) != "fragment"]
    kept_values = ValueIndex()
    for entry in remaining if "fragment" in kinds.values() else ():
        kept_values.add(1, entry.text)
    line = _newest_items([entry for entry in remaining if entry.id not in kinds])
    entries_after: list[StateEntry] = []
    repairs: list[Repair] = []
    for entry in entries:
        mended = entry if entry.pruned else _mended_entry(entry, kinds.get(entry.id), kept_values, line)
        if mended != entry:
            repairs.append(_repair(entry, mended))
        entries_after.append(mended if mended.text == entry.text else replace(mended, since_version=version))
    return MendedEntries(entries=tuple(entries_after), repairs=tuple(repairs))


def _mended_entry(entry: StateEntry, kind: DamageKind | None, kept_values: ValueIndex, line: str) -> StateEntry:
    if kind == "quote" or (kind == "fragment" and not all(map(kept_values.holds, values(entry.text)))):
        return replace(entry, in_doubt=True)
    if kind == "fragment":
        return replace(entry, pruned=True)
    if kind in {"stale_narrative", "cut_narrative"} and line:
        text = f"{entry.text} {line}" if kind == "cut_narrative" else line
        return replace(entry, text=text, superseded=(*entry.superseded, entry.text))
    return entry


def _repair(entry: StateEntry, mended: StateEntry) -> Repair:
    if entry.role == "narrative":
        return Repair(
            field=entry.field, reason="narrative_line", before=entry.text, after=mended.text, entry_id=entry.id
        )
    after = None if mended.pruned else mended.text
    return Repair(field=entry.field, reason="misplaced_quote", before=entry.text, after=after, entry_id=entry.id)


def _newest_items(entries: Sequence[StateEntry]) -> str:
    items = [one for one in entries if _is_item(one) and not one.in_doubt]
    newest = sorted(items, key=lambda one: (one.since_version, one.number))[-_LINE_ITEMS:]
    return " ".join(closed(one.text) for one in newest)

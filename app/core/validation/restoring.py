"""Puts back what code cut out of a state, if a verifier supports it.

Code cuts values that it does not find in the messages. Some of these values are right: they follow from others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from app.core.model.claims import Claim
from app.core.model.conversation import Message
from app.core.model.provenance import origin_of
from app.core.model.repairs import Repair, RepairReason
from app.core.model.state import ID_LETTERS, StateEntry, StateSchema
from app.core.summarizer.offline.narrative_states import is_narrative_only
from app.core.text.relative import without_added_days
from app.core.text.sentences import sentence_spans
from app.core.text.values import values
from app.core.validation.dates import narrative_with_dates, text_with_dates
from app.core.validation.evidence import content_stems

ReplacedEntry = tuple[str, str, str]
"""An entry that was to be replaced: its id, its text, and the statement that was to replace it and was cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoration:
    """What is needed to put texts back into a state version."""

    schema: StateSchema
    version: int
    """The number of the version that is being written."""
    next_entry: int
    """The number that the version's next new entry gets."""
    boundary_seq: int
    """The last message that the version covers."""
    messages: Sequence[Message] = ()
    """The folded messages, from which the origins of an entry are found."""
    demands: Collection[int] = ()
    """Messages in which a user set a constraint or a goal: entries made from them are not set aside."""


def is_proof(cut: Claim, quote: str, seq: int) -> bool:
    """Whether a quotation is about the cut text that it is to prove.

    It is, if its message is a source of the text, or if the quotation shares a content word with the text. A sentence
    of a narrative names no sources, and may share no word with what it was calculated from: for it a value in the
    quotation is enough.
    """
    is_about = seq in cut.seqs or not content_stems(quote).isdisjoint(content_stems(cut.text))
    return is_about or (cut.names_no_sources and bool(values(quote)))


def with_restored_cuts(
    entries: Sequence[StateEntry],
    supported: Iterable[Claim],
    restoration: Restoration | None,
    replacement_verdicts: Mapping[ReplacedEntry, str] = MappingProxyType({}),
) -> tuple[tuple[StateEntry, ...], tuple[Repair, ...]]:
    """The entries with supported cuts put back, pruned entries last; and a repair for each change.

    * A shortened text gets its cut part back, and a sentence stands again where it stood.
    * An item that was cut as a whole becomes a new entry of its field, in the order of the sources. An entry that it
      was to replace is removed if the verifier agrees, stays if a message contradicts the replacement or if a user
      demanded it, and is in doubt otherwise.
    * A text is not put back if it is already stated again, if its shortened text is no longer served, or if the version
      does not cover its sources, because somebody went back to an earlier version.

    Args:
        entries: The entries of the current version, pruned ones included.
        supported: Claims about what code cut, each supported with a quotation that is in a message.
        restoration: The version that is being written; ``None``: nothing is put back.
        replacement_verdicts: The verdicts on entries that cut items were to replace.
    """
    restored = _RestoredEntries(entries)
    for claim in supported if restoration else ():
        if restoration and not restored.states(claim):
            restored.put_back(claim, restoration, replacement_verdicts)
    return tuple(sorted(restored.entries, key=lambda entry: entry.pruned)), tuple(restored.repairs)


class _RestoredEntries:
    """The entries while texts are put back into them."""

    def __init__(self, entries: Sequence[StateEntry]) -> None:
        self.entries = list(entries)
        self.repairs: list[Repair] = []
        self._sentences = Counter[str]()
        self._new = 0

    def states(self, claim: Claim) -> bool:
        """Whether a served entry states the text of a claim again."""
        return any(
            claim.text in without_added_days(self.entries[index].text) for index in self._served_indexes(claim.field)
        )

    def put_back(
        self, claim: Claim, restoration: Restoration, replacement_verdicts: Mapping[ReplacedEntry, str]
    ) -> None:
        """Put a text back into the entry that has the rest of it, else add it as a new entry; add its days to it."""
        text = _text_with_dates(claim, restoration)
        index_of_rest = next(
            (index for index in self._served_indexes(claim.field) if _is_rest_of_cut(self.entries[index], claim)), None
        )
        if index_of_rest is not None:
            before = self.entries[index_of_rest]
            whole = _with_statement_back(before.text, claim, text, self._sentences[claim.field])
            entry = replace(before, text=whole)
            self.entries[index_of_rest] = entry
            self._sentences[claim.field] += not claim.text_left
        elif claim.text_left or claim.target or not claim.seqs or max(claim.seqs) > restoration.boundary_seq:
            return  # an erasure could not find an entry that names no source
        else:
            entry = _new_entry(claim, text, restoration, restoration.next_entry + self._new)
            self._new += 1
            decided = self._decide_replaced(claim, entry.id, replacement_verdicts, restoration.demands)
            entry = replace(entry, superseded=tuple(decided))
            self.entries.insert(self._index_for(entry), entry)
        self._record("supported", entry, claim.text_left, claim.text)
        if text != claim.text:
            self._record("date_added", entry, claim.text, text)

    def _decide_replaced(
        self,
        claim: Claim,
        successor: str,
        replacement_verdicts: Mapping[ReplacedEntry, str],
        demands: Collection[int],
    ) -> Iterator[str]:
        for index, one in enumerate(self.entries):
            verdict = replacement_verdicts.get((one.id, one.text, claim.text))
            if one.id not in claim.replaces or one.pruned or one.in_doubt or verdict == "contradicted":
                continue
            if verdict == "supported":
                self.entries[index] = replace(one, unverified=False, pruned=True, replaced_by=(successor,))
                self._record("dropped", one, one.text, None)
                yield one.text
                continue
            stays = not frozenset(demands).isdisjoint(one.from_seqs)
            self.entries[index] = replace(one, in_doubt=not stays, unverified=False, replaced_by=(successor,))
            self._record("kept" if stays else "set_aside", one, one.text, one.text)

    def _served_indexes(self, field: str) -> list[int]:
        return [index for index, one in enumerate(self.entries) if one.field == field and not one.pruned]

    def _index_for(self, entry: StateEntry) -> int:
        same = self._served_indexes(entry.field)
        earlier = [index for index in same if max(self.entries[index].from_seqs, default=0) <= max(entry.from_seqs)]
        if earlier:
            return earlier[-1] + 1
        return same[0] if same else sum(not one.pruned for one in self.entries)

    def _record(self, reason: RepairReason, entry: StateEntry, before: str, after: str | None) -> None:
        self.repairs.append(Repair(field=entry.field, reason=reason, before=before, after=after, entry_id=entry.id))


def _is_rest_of_cut(entry: StateEntry, claim: Claim) -> bool:
    if entry.role == "narrative":
        return entry.id == claim.target and _span_of_rest(entry.text, claim) is not None
    return bool(claim.text_left) and without_added_days(entry.text) == without_added_days(claim.text_left)


def _span_of_rest(text: str, claim: Claim) -> tuple[int, int] | None:
    """The place of what was left of a cut text; days may have been added to it since."""
    if (start := text.find(claim.text_left)) >= 0:
        return start, start + len(claim.text_left)
    wanted = without_added_days(claim.text_left)
    spans = sentence_spans(text)
    return next((span for span in spans if without_added_days(text[span[0] : span[1]]) == wanted), None)


def _with_statement_back(text: str, claim: Claim, statement: str, restored_before: int) -> str:
    if claim.text_left:
        start, end = _span_of_rest(text, claim) or (0, len(text))
        return text[:start] + statement + text[end:]
    starts = [start for start, _ in sentence_spans(text)][claim.place + restored_before :]
    start = starts[0] if starts else len(text)
    return " ".join(filter(None, [text[:start].rstrip(), statement, text[start:].lstrip()]))


def _text_with_dates(claim: Claim, restoration: Restoration) -> str:
    if claim.names_no_sources:
        is_whole = is_narrative_only(restoration.schema)
        return narrative_with_dates(claim.text, restoration.messages, is_narrative_only=is_whole)
    return text_with_dates(claim.text, [one for one in restoration.messages if one.seq in claim.seqs])


def _new_entry(claim: Claim, text: str, restoration: Restoration, number: int) -> StateEntry:
    role = restoration.schema.field(claim.field).role
    sources = [message for message in restoration.messages if message.seq in claim.seqs]
    return StateEntry(
        id=f"{ID_LETTERS[role]}{number}",
        field=claim.field,
        role=role,
        text=text,
        from_seqs=claim.seqs,
        since_version=restoration.version,
        origins=tuple(sorted({origin_of(message, claim.text) for message in sources})),
    )

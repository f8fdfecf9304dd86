"""Puts back what code cut, where a verifier supports it: a value that no search finds may follow from others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from app.core.model.claims import Claim
from app.core.model.conversation import Message
from app.core.model.provenance import origin_of
from app.core.model.repairs import Repair, RepairReason
from app.core.model.state import ID_LETTERS, StateEntry, StateSchema
from app.core.text.relative import undated
from app.core.text.sentences import sentence_spans
from app.core.text.values import values
from app.core.validation.evidence import content

GivenUp = tuple[str, str, str]
"""An entry's id, its text, and the statement that code cut and that was to take its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoring:
    """What it takes to put texts back into a version."""

    schema: StateSchema
    version: int
    """The number of the version that is written."""
    next_entry: int
    """The number of its next new entry."""
    boundary_seq: int
    """The last message that it covers."""
    messages: Sequence[Message] = ()
    """Those that were folded: they tell who said what an entry rests on."""


def is_proof(cut: Claim, quote: str, seq: int) -> bool:
    """Whether words of a message are about what they are to prove: it is a source of it, or they share a word.

    A sentence of a narrative names no sources, and what it calculates may share no word with them: then a value does.
    """
    is_about = seq in cut.seqs or not content(quote).isdisjoint(content(cut.text))
    return is_about or (cut.names_no_sources and bool(values(quote)))


def with_restored(
    entries: Sequence[StateEntry],
    supported: Iterable[Claim],
    into: Restoring | None,
    said: Mapping[GivenUp, str] = MappingProxyType({}),
) -> tuple[tuple[StateEntry, ...], tuple[Repair, ...]]:
    """The entries with what was cut of them put back, those on record last, and what was done.

    A shortened text is told whole again, a sentence stands again where it stood, an item that was gone is a new entry,
    among those of its field by its sources. What that was to replace goes where the verifier agrees, stays where a
    message shows that it must, and else is set aside.
    What is told by now stays as it is; so does a text of which what was left is no longer served, and a version that
    does not cover a source of the item: somebody went back behind it.

    Args:
        entries: Of the current version, those on record as pruned included.
        supported: Claims about what code cut, each supported with a quote that stands in a message.
        into: The version that is written; ``None``: nothing comes back.
        said: Verdicts on what those were to replace.
    """
    made = _Made(entries)
    for claim in supported if into else ():
        if into and not made.tells(claim):
            made.put_back(claim, into, said)
    return tuple(sorted(made.entries, key=lambda entry: entry.pruned)), tuple(made.repairs)


class _Made:
    """Entries in the making."""

    def __init__(self, entries: Sequence[StateEntry]) -> None:
        self.entries = list(entries)
        self.repairs: list[Repair] = []
        self._sentences = Counter[str]()
        self._new = 0

    def tells(self, claim: Claim) -> bool:
        """Whether it is told by now."""
        return any(claim.text in undated(self.entries[place].text) for place in self._served(claim.field))

    def put_back(self, claim: Claim, into: Restoring, said: Mapping[GivenUp, str]) -> None:
        """Tell it whole again where something is left of it, else as an entry of its own."""
        found = next(
            (place for place in self._served(claim.field) if _is_rest_of_cut(self.entries[place], claim)), None
        )
        if found is not None:
            before = self.entries[found]
            entry = replace(before, text=_with_statement_back(before.text, claim, self._sentences[claim.field]))
            self.entries[found] = entry
            self._sentences[claim.field] += not claim.left
        elif claim.left or claim.target or not claim.seqs or max(claim.seqs) > into.boundary_seq:
            return  # of what names no source no erasure would know
        else:
            entry = _new_entry(claim, into, into.next_entry + self._new)
            self._new += 1
            entry = replace(entry, superseded=tuple(self._settle_replaced(claim, entry.id, said)))
            self.entries.insert(self._place_for(entry), entry)
        self._record("supported", entry, claim.left, claim.text)

    def _settle_replaced(self, claim: Claim, successor: str, said: Mapping[GivenUp, str]) -> Iterator[str]:
        for place, one in enumerate(self.entries):
            word = said.get((one.id, one.text, claim.text))
            if one.id not in claim.replaces or one.pruned or one.in_doubt or word == "contradicted":
                continue
            goes = word == "supported"
            self.entries[place] = replace(one, in_doubt=not goes, pruned=goes, replaced_by=(successor,))
            self._record("dropped" if goes else "set_aside", one, one.text, None if goes else one.text)
            if goes:
                yield one.text

    def _served(self, field: str) -> list[int]:
        return [place for place, one in enumerate(self.entries) if one.field == field and not one.pruned]

    def _place_for(self, entry: StateEntry) -> int:
        same = self._served(entry.field)
        earlier = [place for place in same if max(self.entries[place].from_seqs, default=0) <= max(entry.from_seqs)]
        if earlier:
            return earlier[-1] + 1
        return same[0] if same else sum(not one.pruned for one in self.entries)

    def _record(self, reason: RepairReason, entry: StateEntry, before: str, after: str | None) -> None:
        self.repairs.append(Repair(field=entry.field, reason=reason, before=before, after=after, entry_id=entry.id))


def _is_rest_of_cut(entry: StateEntry, claim: Claim) -> bool:
    if entry.role == "narrative":
        return entry.id == claim.target and claim.left in entry.text
    return bool(claim.left) and undated(entry.text) == undated(claim.left)


def _with_statement_back(text: str, claim: Claim, restored_before: int) -> str:
    if claim.left:
        return text.replace(claim.left, claim.text, 1) if claim.left in text else claim.text
    starts = [start for start, _ in sentence_spans(text)][claim.place + restored_before :]
    start = starts[0] if starts else len(text)
    return " ".join(filter(None, [text[:start].rstrip(), claim.text, text[start:].lstrip()]))


def _new_entry(claim: Claim, into: Restoring, number: int) -> StateEntry:
    role = into.schema.field(claim.field).role
    sources = [message for message in into.messages if message.seq in claim.seqs]
    return StateEntry(
        id=f"{ID_LETTERS[role]}{number}",
        field=claim.field,
        role=role,
        text=claim.text,
        from_seqs=claim.seqs,
        since_version=into.version,
        origins=tuple(sorted({origin_of(message, claim.text) for message in sources})),
    )

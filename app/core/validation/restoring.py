"""What code cut comes back where a verifier supports it: a value that no search finds may follow from what was said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from app.core.model.claims import Claim
from app.core.model.conversation import Message
from app.core.model.provenance import origin_of
from app.core.model.repairs import Repair
from app.core.model.state import ID_LETTERS, StateEntry, StateSchema
from app.core.text.relative import undated
from app.core.text.sentences import sentence_spans
from app.core.validation.evidence import content


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoring:
    """What it takes to put texts back into a version."""

    schema: StateSchema
    version: int
    """The number of the version that is written."""
    next_entry: int
    """The number of its next new entry."""
    messages: Sequence[Message] = ()
    """Those that were folded: they tell who said what an entry rests on."""


def is_proof(cut: Claim, quote: str, seq: int) -> bool:
    """Whether words of a message are about what they are to prove: it is a source of it, or they share a word."""
    return seq in cut.seqs or not content(quote).isdisjoint(content(cut.text))


def with_restored(
    entries: Sequence[StateEntry], supported: Iterable[Claim], into: Restoring
) -> tuple[tuple[StateEntry, ...], tuple[Repair, ...]]:
    """The entries with what was cut of them put back, and what was done.

    A shortened text is told whole again, a sentence stands again where it stood, an item that was gone is a new entry.
    What is told by now stays as it is; so does a text of which what was left is no longer served.

    Args:
        entries: Of the current version, those on record as pruned included.
        supported: Claims about what code cut, each supported with a quote that stands in a message.
        into: The version that is written.
    """
    made = list(entries)
    repairs: list[Repair] = []
    number, put_back = into.next_entry, Counter[str]()
    for claim in supported:
        served = [place for place, one in enumerate(made) if one.field == claim.field and not one.pruned]
        if any(claim.text in undated(made[place].text) for place in served):
            continue
        found = next((place for place in served if _is_left(made[place], claim)), None)
        if found is not None:
            entry = replace(made[found], text=_with(made[found].text, claim, put_back[claim.field]))
            made[found] = entry
            put_back[claim.field] += not claim.left
        elif claim.left or claim.target or not claim.seqs:  # of what names no source no erasure would know
            continue
        else:
            entry = _new_entry(claim, into, number)
            number += 1
            made.insert(served[-1] + 1 if served else _on_record(made), entry)
        repairs.append(
            Repair(field=claim.field, reason="supported", before=claim.left, after=claim.text, entry_id=entry.id)
        )
    return tuple(made), tuple(repairs)


def _is_left(entry: StateEntry, claim: Claim) -> bool:
    """Whether the entry is what is left of the text that was cut; a narrative that was told anew is another entry."""
    if entry.role == "narrative":
        return entry.id == claim.target and claim.left in entry.text
    return bool(claim.left) and undated(entry.text) == undated(claim.left)


def _with(text: str, claim: Claim, put_back: int) -> str:
    """A text in which the statement stands whole again; so many sentences before it were put back already."""
    if claim.left:
        return text.replace(claim.left, claim.text, 1) if claim.left in text else claim.text
    starts = [start for start, _ in sentence_spans(text)][claim.place + put_back :]
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


def _on_record(entries: Sequence[StateEntry]) -> int:
    """Where those begin that are only on record."""
    return next((place for place, one in enumerate(entries) if one.pruned), len(entries))

"""Makes numbered claims for a verifier of all that a new version of a state says or gives up.

Claims are made from two lists of entries alone, so that they can be made again when the verdicts are applied. A
verifier is not told which messages prove a claim: it looks for its evidence itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.core.model.anchors import Anchor, ClaimedStatus
from app.core.model.claims import ANCHOR_FIELD, DIGEST_FIELD, Claim
from app.core.model.repairs import Repair
from app.core.model.state import StateEntry
from app.core.text.sentences import sentence_spans

MAX_CLAIMS: Final = 60
"""The most claims in one call: answers about more become careless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestText:
    """A summarizer's description of a segment."""

    id: str
    """The id of a stored segment, or the number of a segment that has no id yet."""
    topic: str
    brief: str
    from_seq: int
    to_seq: int

    @property
    def text(self) -> str:
        """Topic and brief in one text."""
        return ": ".join(filter(None, [self.topic, self.brief]))


def claims_of(
    verified_entries: Sequence[StateEntry],
    new_entries: Sequence[StateEntry],
    *,
    digests: Iterable[DigestText] = (),
    repairs: Iterable[Repair] = (),
    anchors: Iterable[Anchor] = (),
) -> tuple[Claim, ...]:
    """The claims of a new version, the most doubtful first.

    Their order: items that are new, changed or repeated and have a borrowed value; other such items; entries that were
    replaced, set aside or kept; claims about anchors; the changed sentences of narratives, each once; statements that
    code cut for a value that it did not find, each with the entries that it was to replace; digests.

    An item is repeated if a summarizer stated it again from later messages: these may say that it no longer holds.

    Args:
        verified_entries: Entries of the version that was verified last, or of the parent.
        new_entries: Entries of the version that is to be verified, pruned entries included.
        digests: A model's descriptions of segments that this version covers and ``verified_entries`` does not.
        repairs: The repairs of all versions since ``verified_entries``. They say which values were borrowed, what was
            cut, and which entries were set aside or kept. (An entry may also be in doubt because an earlier
            verification found nothing that states it.)
        anchors: The anchors about which the summarizer claims something.
    """
    repairs = tuple(repairs)
    earlier = {entry.id: entry for entry in verified_entries if not entry.pruned}
    served = [entry for entry in new_entries if not entry.pruned]
    new_or_changed = [entry for entry in served if entry.id not in earlier or _is_restated(entry, earlier[entry.id])]
    items = [entry for entry in new_or_changed if entry.role != "narrative"]
    remaining_ids = {
        reason: {one.entry_id for one in repairs if one.reason == reason} for reason in ("set_aside", "kept")
    }
    ordered = (
        *(_item_claim(entry) for entry in sorted(items, key=lambda entry: not _has_borrowed_value(entry, repairs))),
        *_given_up_claims(
            earlier, new_entries, set_aside_ids=remaining_ids["set_aside"], kept_ids=remaining_ids["kept"]
        ),
        *(_anchor_claim(anchor, anchor.claimed_status) for anchor in anchors if anchor.claimed_status),
        *(claim for entry in new_or_changed if entry.role == "narrative" for claim in _sentence_claims(entry)),
        *_cut_claims(repairs, served),
        *(_digest_claim(digest) for digest in digests if digest.text),
    )
    return tuple(replace(claim, n=n) for n, claim in enumerate(ordered, start=1))


def claim_batches(claims: Sequence[Claim]) -> tuple[tuple[Claim, ...], ...]:
    """The claims divided into as few calls as possible, of about the same size; the most doubtful come first."""
    calls = -(-len(claims) // MAX_CLAIMS)
    size = -(-len(claims) // calls) if calls else 1
    return tuple(tuple(claims[start : start + size]) for start in range(0, len(claims), size))


def part_claims(items: Iterable[Claim], *, last_number: int) -> tuple[Claim, ...]:
    """The sentences of items with several sentences, each as a claim; at most as many as one call may ask about.

    Args:
        items: Claims about items that were contradicted or that nothing states, though some of their sentences may be
            supported.
        last_number: The highest number that a claim has so far.
    """
    parts = [
        replace(item, kind="part", text=text)
        for item in items
        if len(texts := verbatim_sentences(item.text)) > 1
        for text in texts
    ]
    return tuple(replace(part, n=last_number + position) for position, part in enumerate(parts[:MAX_CLAIMS], start=1))


def verbatim_sentences(text: str) -> tuple[str, ...]:
    """The distinct sentences of a text, exactly as written, line breaks included: verdicts are applied by them."""
    return tuple(dict.fromkeys(text[start:end] for start, end in sentence_spans(text)))


def unshown_sources(claims: Iterable[Claim], shown_seqs: Collection[int]) -> tuple[int, ...]:
    """The source messages of claims that are not among those shown anyway: the verifier needs them too."""
    source_seqs = {seq for claim in claims if claim.kind != "digest" for seq in claim.seqs}
    return tuple(sorted(source_seqs.difference(shown_seqs)))


def _is_restated(entry: StateEntry, earlier: StateEntry) -> bool:
    return entry.text != earlier.text or not set(entry.from_seqs).issubset(earlier.from_seqs)


def _has_borrowed_value(entry: StateEntry, repairs: Iterable[Repair]) -> bool:
    return any(
        one.reason == "borrowed_value"
        and (one.entry_id == entry.id or (one.field == entry.field and one.after == entry.text))
        for one in repairs
    )


def _item_claim(entry: StateEntry) -> Claim:
    return Claim(n=0, kind="item", field=entry.field, text=entry.text, target=entry.id, seqs=entry.from_seqs)


def _sentence_claims(entry: StateEntry) -> Iterator[Claim]:
    for text in verbatim_sentences(entry.text):
        yield Claim(n=0, kind="sentence", field=entry.field, text=text, target=entry.id)


def _cut_claims(repairs: Iterable[Repair], served: Iterable[StateEntry]) -> Iterator[Claim]:
    """The claims about what code cut.

    For an item that was cut as a whole there are also claims that the entries that it was to replace may go: they are
    needed once the item is back.
    """
    trusted = {entry.id: entry for entry in served if not entry.in_doubt}
    for one in dict.fromkeys(repairs):
        if one.cut is not None:
            yield Claim(
                n=0,
                kind="cut",
                field=one.field,
                text=one.before,
                target=one.entry_id or "",
                text_left=one.after or "",
                seqs=one.cut.from_seqs,
                replaces=one.cut.replaces,
                place=one.cut.place,
            )
            names = () if one.after else one.cut.replaces
            yield from (_replaced_claim(trusted[name], None, one.before) for name in names if name in trusted)


def _digest_claim(digest: DigestText) -> Claim:
    return Claim(
        n=0,
        kind="digest",
        field=DIGEST_FIELD,
        text=digest.text,
        target=digest.id,
        seqs=(digest.from_seq, digest.to_seq),
    )


def _anchor_claim(anchor: Anchor, becomes: ClaimedStatus) -> Claim:
    seqs = (anchor.seq,) if anchor.claimed_seq is None else (anchor.seq, anchor.claimed_seq)
    return Claim(
        n=0,
        kind="anchor",
        field=ANCHOR_FIELD,
        text=anchor.content,
        target=str(anchor.id),
        seqs=seqs,
        claimed_status=becomes,
    )


def _given_up_claims(
    earlier: Mapping[str, StateEntry],
    after: Sequence[StateEntry],
    *,
    set_aside_ids: Collection[str | None],
    kept_ids: Collection[str | None],
) -> Iterator[Claim]:
    """Claims about the entries that were replaced, set aside or kept since, without those that only the cap pushed out.

    Entries that were set aside are the first to be pushed out when there is no room. They are asked about all the same.
    """
    served = {entry.id: entry for entry in after if not entry.pruned}
    known = {entry.id for entry in after}
    for entry in after:
        is_given_up = (entry.in_doubt and entry.id in set_aside_ids) or (not entry.pruned and entry.id in kept_ids)
        if entry.role == "narrative" or not (is_given_up or (entry.pruned and entry.id in earlier)):
            continue
        successors = [served[name] for name in entry.replaced_by if name in served and name != entry.id]
        yield from (_replaced_claim(entry, one.id, one.text) for one in successors)
        if is_given_up and not successors:
            yield Claim(n=0, kind="dropped", field=entry.field, text=entry.text, target=entry.id, seqs=entry.from_seqs)
    successor_of = _successors_by_text(earlier, served.values())
    for entry in earlier.values():
        if entry.role != "narrative" and entry.id not in known:
            successors_of_entry = successor_of.get((entry.field, entry.text), ())
            yield from (_replaced_claim(entry, one.id, one.text) for one in successors_of_entry)


def _successors_by_text(
    earlier: Mapping[str, StateEntry], served: Iterable[StateEntry]
) -> Mapping[tuple[str, str], Sequence[StateEntry]]:
    # Older versions have only the text of a replaced entry on record.
    successors: defaultdict[tuple[str, str], list[StateEntry]] = defaultdict(list)
    for entry in served:
        known = earlier[entry.id].superseded if entry.id in earlier else ()
        for text in dict.fromkeys(entry.superseded):
            if text not in known:
                successors[entry.field, text].append(entry)
    return successors


def _replaced_claim(entry: StateEntry, by: str | None, successor_text: str) -> Claim:
    return Claim(
        n=0,
        kind="replaced",
        field=entry.field,
        text=entry.text,
        target=entry.id,
        seqs=entry.from_seqs,
        successor_id=by,
        successor_text=successor_text,
    )

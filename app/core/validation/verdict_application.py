"""Applies a verifier's verdicts to a state.

The verifier is a model, and may be wrong, careless or hostile. So its word alone removes nothing that the summarizer
wrote: a contradiction counts only with a quotation that is in the messages it was shown. An entry that the
summarizer itself gave up is removed when the verifier agrees. If the verifier disagrees, the entry stays, or comes back
if it was already replaced.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from app.core.model.claims import Claim
from app.core.model.repairs import Repair
from app.core.model.state import ID_LETTERS, StateEntry
from app.core.text.sentences import sentence_spans
from app.core.validation.claims import verbatim_sentences
from app.core.validation.quotes import QuoteSearch, ShownTexts
from app.core.validation.restoring import Restoration, is_proof, with_restored_cuts
from app.core.validation.same_subject import has_same_subject
from app.core.validation.verdicts import Verdict, VerdictWord


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictCounts:
    """How many claims got each verdict."""

    supported: int = 0
    contradicted: int = 0
    """Contradictions with a quotation that was found in a message."""
    not_stated: int = 0
    unproven: int = 0
    """Contradictions, and support for what code cut, whose quotation was not found: they change nothing."""
    unanswered: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedState:
    """A state's entries with the verdicts applied."""

    entries: tuple[StateEntry, ...]
    """Served entries first, then pruned ones, which are only kept on record."""
    counts: VerdictCounts
    repairs: tuple[Repair, ...] = ()
    contradicted_digests: tuple[str, ...] = ()
    """The targets of the digests that were contradicted: digests written by code take their place."""
    refuted_ids: frozenset[str] = frozenset()
    """Ids of the entries whose text was contradicted."""
    ended_ids: frozenset[str] = frozenset()
    """These ids, and those of the entries that were rightly given up: none of them returns into free room."""
    supported_anchor_claims: tuple[Claim, ...] = ()
    """Claims about anchors that are supported: they take effect."""
    unsupported_anchor_claims: tuple[Claim, ...] = ()
    """Claims about anchors that are not supported: they are dropped."""
    is_changed: bool = False
    is_doubt_only: bool = False
    """Whether only marks of doubt changed. They decide what is left out first, so they can wait for the next
    compaction."""


def apply_verdicts(
    entries: Sequence[StateEntry],
    claims: Sequence[Claim],
    verdicts: Iterable[Verdict],
    *,
    shown_texts: ShownTexts,
    before: Sequence[StateEntry] = (),
    restoration: Restoration | None = None,
) -> VerifiedState:
    """Apply verdicts to the current version of a state, entry by entry.

    Skipped are entries that are gone by now, and entries whose text is no longer the one that was judged.

    Args:
        entries: The entries of the current version, pruned ones included.
        claims: The claims that were judged.
        verdicts: The verdicts on them, of all calls together.
        shown_texts: The messages that the verifier saw, for looking up its quotations.
        before: The entries of the version that stood before the judged one, as they are stored now. An entry that was
            replaced comes back as it stands there: what was erased meanwhile stays erased.
        restoration: What is needed to put back what code cut; ``None``: nothing is put back.
    """
    verdict_words, unproven = _proven_verdicts(
        verdicts, QuoteSearch(shown_texts), {claim.n: claim for claim in claims if claim.kind == "cut"}
    )
    judged = [(claim, verdict_words[claim.n]) for claim in claims if claim.n in verdict_words]
    supported_cuts = list(_cuts_to_put_back(judged)) if restoration else []
    entries_with_sentences, sentence_repairs = with_restored_cuts(
        entries, [one for one in supported_cuts if one.names_no_sources], restoration
    )
    state = _State(entries_with_sentences, before, restoration)
    refuted = state.apply_item_verdicts(
        _without_parts_of_restored(judged, supported_cuts), {claim.target for claim in claims if claim.gives_up}
    )
    state.apply_sentence_verdicts(judged)
    state.apply_given_up_verdicts(
        [claim for claim in claims if claim.gives_up and not claim.waits_for_cut], verdict_words, refuted
    )
    digests = [claim for claim, word in judged if claim.kind == "digest" and word == "contradicted"]
    words = Counter(word for claim, word in judged if claim.kind != "part")
    claim_numbers = {claim.n for claim in claims if claim.kind != "part"}
    after, item_repairs = with_restored_cuts(
        state.entries(),
        [one for one in supported_cuts if not one.names_no_sources],
        restoration and replace(restoration, next_entry=state.next_entry),
        {(one.target, one.text, one.successor_text): word for one, word in judged if one.waits_for_cut},
    )
    is_changed = after != tuple(_pruned_last(entries))
    return VerifiedState(
        entries=after if is_changed else tuple(entries),
        counts=VerdictCounts(
            supported=words["supported"],
            contradicted=words["contradicted"],
            not_stated=words["not_stated"],
            unproven=len(claim_numbers & unproven),
            unanswered=len(claim_numbers - verdict_words.keys() - unproven),
        ),
        repairs=(
            *sentence_repairs,
            *state.repairs,
            *item_repairs,
            *(Repair(field=one.field, reason="contradicted", before=one.text, after=None) for one in digests),
        ),
        contradicted_digests=tuple(claim.target for claim in digests),
        refuted_ids=frozenset(refuted),
        ended_ids=frozenset(
            {
                *refuted,
                *(
                    claim.target
                    for claim, word in judged
                    if claim.gives_up and not claim.waits_for_cut and word == "supported"
                ),
            }
        ),
        supported_anchor_claims=tuple(
            claim for claim, word in judged if claim.kind == "anchor" and word == "supported"
        ),
        unsupported_anchor_claims=tuple(
            claim for claim, word in judged if claim.kind == "anchor" and word != "supported"
        ),
        is_changed=is_changed or bool(digests),
        is_doubt_only=is_changed and not digests and _served(after) == _served(entries),
    )


def doubtful_items(claims: Iterable[Claim], verdicts: Iterable[Verdict], shown_texts: ShownTexts) -> tuple[Claim, ...]:
    """The items that are contradicted with a quotation that was found, then those that nothing states."""
    verdict_words, _ = _proven_verdicts(verdicts, QuoteSearch(shown_texts), {})
    words = ("contradicted", "not_stated")
    doubtful = [claim for claim in claims if claim.kind == "item" and verdict_words.get(claim.n) in words]
    return tuple(sorted(doubtful, key=lambda claim: words.index(verdict_words[claim.n])))


def _without_parts_of_restored(
    judged: Iterable[tuple[Claim, VerdictWord]], supported_cuts: Iterable[Claim]
) -> list[tuple[Claim, VerdictWord]]:
    # A cut can only be put back if the rest of its item is unchanged.
    targets = {claim.target for claim in supported_cuts if claim.text_left}
    return [(claim, word) for claim, word in judged if not (claim.kind == "part" and claim.target in targets)]


def _cuts_to_put_back(judged: Sequence[tuple[Claim, VerdictWord]]) -> Iterator[Claim]:
    denied = {(claim.field, claim.text) for claim, word in judged if word == "contradicted"}
    for claim, word in judged:
        # If the rest of a supported cut is contradicted, the verdicts contradict each other.
        if claim.kind == "cut" and word == "supported" and (claim.field, claim.text_left) not in denied:
            yield claim


class _State:
    """The entries of a state while verdicts are applied to them."""

    def __init__(
        self, entries: Sequence[StateEntry], before: Iterable[StateEntry], restoration: Restoration | None
    ) -> None:
        self._restoration: Final = restoration
        self.next_entry = restoration.next_entry if restoration else 0
        self._entries: Final = list(entries)
        self._indexes: Final = {entry.id: index for index, entry in enumerate(entries)}
        self._before: Final = {entry.id: entry for entry in before if not entry.pruned}
        self.repairs: list[Repair] = []

    def apply_item_verdicts(self, judged: Iterable[tuple[Claim, VerdictWord]], given_up: Collection[str]) -> set[str]:
        """Apply the verdicts on items, and return the ids of the contradicted ones.

        Args:
            judged: Claims with the verdict on each.
            given_up: Entries that the summarizer gave up. Support for their text does not take their doubt away.
        """
        refuted: set[str] = set()
        judged = tuple(judged)
        sound = {(claim.target, claim.text) for claim, word in judged if claim.kind == "part" and word == "supported"}
        for claim, word in judged:
            if claim.kind != "item":
                continue
            entry, earlier = self._current(claim.target), self._before.get(claim.target)
            if entry is None or entry.text not in {claim.text, earlier.text if earlier else claim.text}:
                continue
            if word == "contradicted":
                refuted.add(entry.id)
            if entry.text != claim.text:
                continue
            if word == "contradicted":
                self._refute(entry, earlier, {text for name, text in sound if name == entry.id})
            elif entry.pruned:
                continue
            elif word == "not_stated" and not entry.in_doubt:
                self._doubt(entry, {text for name, text in sound if name == entry.id})
            elif word == "supported" and entry.in_doubt and entry.id not in given_up:
                self._store(replace(entry, in_doubt=False, unverified=False))
        return refuted

    def apply_sentence_verdicts(self, judged: Iterable[tuple[Claim, VerdictWord]]) -> None:
        """Take contradicted sentences out of their narratives. Other verdicts on sentences change nothing."""
        contradicted: defaultdict[str, set[str]] = defaultdict(set)
        for claim, word in judged:
            if claim.kind == "sentence" and word == "contradicted":
                contradicted[claim.target].add(claim.text)
        for name, sentences in contradicted.items():
            entry = self._current(name)
            if entry is None or entry.pruned:
                continue
            remaining, removed = _without_sentences(entry.text, sentences)
            if removed:
                self._store(replace(entry, text=remaining) if remaining else replace(entry, pruned=True))
            self.repairs += [
                Repair(field=entry.field, reason="contradicted", before=sentence, after=None, entry_id=name)
                for sentence in removed
            ]

    def apply_given_up_verdicts(
        self, claims: Sequence[Claim], verdict_words: Mapping[int, VerdictWord], refuted: Iterable[str]
    ) -> None:
        """Decide on each entry that the summarizer gave up, by the verdicts on it and on what took its place.

        Args:
            claims: The claims that an entry was replaced or dropped.
            verdict_words: The verdict on each claim, by its number.
            refuted: The items that were contradicted: the entries that they replaced come back.
        """
        refuted = frozenset(refuted)
        by_target: defaultdict[str, list[Claim]] = defaultdict(list)
        for claim in claims:
            by_target[claim.target].append(claim)
        for one in self._entries:
            if refuted.intersection(one.replaced_by):
                by_target.setdefault(one.id, [])
        for name, about in by_target.items():
            successors = dict.fromkeys(claim.successor_id for claim in about if claim.successor_id is not None)
            entry = self._given_up_entry(name, tuple(successors))
            if entry is None or entry.role == "narrative" or any(claim.text != entry.text for claim in about):
                continue
            if was_pruned_by_cap_alone(entry) and self._indexes.keys().isdisjoint(successors):
                continue
            successors.update(dict.fromkeys(entry.replaced_by))
            if any(claim.kind == "dropped" for claim in about):
                successors.update(dict.fromkeys(name for name in refuted if self._has_subject_of(name, entry)))
            words = {verdict_words[claim.n] for claim in about if claim.n in verdict_words}
            self._decide_given_up(entry, words, tuple(successors), refuted)

    def entries(self) -> tuple[StateEntry, ...]:
        """All entries, pruned ones last."""
        return tuple(_pruned_last(self._entries))

    def _decide_given_up(
        self, entry: StateEntry, words: set[VerdictWord], successors: tuple[str, ...], refuted: frozenset[str]
    ) -> None:
        """Decide on one entry that was given up.

        * A removed entry that was itself contradicted stays removed, whatever the verdicts on its successors.
        * An entry that is served without doubt stays so, unless all verdicts agree that it may go.
        * If verdicts contradict each other, the entry is served in doubt.
        * An entry that was pushed out and not replaced comes back without doubt, unless all verdicts agree that it may
          go. In doubt it would be the first to be pushed out again.
        """
        if entry.pruned and entry.id in refuted:
            return
        is_trusted = not entry.pruned and not entry.in_doubt
        if is_trusted and (words != {"supported"} or refuted.intersection(successors)):
            return
        doubted = replace(entry, pruned=False, in_doubt=True, unverified=False, replaced_by=successors)
        trusted = replace(entry, pruned=False, in_doubt=False, unverified=False, replaced_by=())
        if "contradicted" in words:
            self._keep_or_bring_back(entry, doubted if "supported" in words else trusted, "contradicted")
        elif refuted.intersection(successors):
            is_covered = "supported" in words or any(map(self._is_served, set(successors) - refuted))
            before = self._before.get(entry.id)
            restored = before if before is not None and before.text == entry.text else trusted
            self._keep_or_bring_back(entry, doubted if is_covered else restored, "contradicted")
        elif words == {"supported"}:
            if not entry.pruned:
                self._store(replace(entry, pruned=True))
                self._record(entry, "dropped", None)
        elif words:
            is_lost = entry.pruned and not any(map(self._is_served, successors))
            self._keep_or_bring_back(entry, trusted if is_lost else doubted, "not_stated")

    def _keep_or_bring_back(
        self, entry: StateEntry, new_entry: StateEntry, reason: Literal["contradicted", "not_stated"]
    ) -> None:
        if not entry.pruned:
            self._store(new_entry)
            if new_entry.in_doubt != entry.in_doubt:
                self._record(entry, reason, entry.text)
        elif not self._is_stated_by_another(entry):
            self._insert_by_age(new_entry)
            self._record(new_entry, reason, new_entry.text, before="")

    def _doubt(self, entry: StateEntry, sound: set[str]) -> None:
        """Put an entry in doubt. If some of its sentences are supported, only the others are, as a separate entry."""
        remaining, removed = _without_sentences(entry.text, set(verbatim_sentences(entry.text)).difference(sound))
        if not (self._restoration and remaining and removed):
            self._store(replace(entry, in_doubt=True, unverified=True))
            self._record(entry, "not_stated", entry.text)
            return
        doubted = replace(
            entry,
            id=f"{ID_LETTERS[entry.role]}{self.next_entry}",
            text=_without_sentences(entry.text, sound)[0],
            since_version=self._restoration.version,
            superseded=(),
            in_doubt=True,
            unverified=True,
        )
        self.next_entry += 1
        self._store(replace(entry, text=remaining))
        self._record(entry, "not_stated", remaining)
        self._insert_by_age(doubted)
        self._record(doubted, "not_stated", doubted.text, before="")

    def _refute(self, entry: StateEntry, earlier: StateEntry | None, sound: Collection[str]) -> None:
        """Replace a contradicted entry by its earlier text, else by its supported sentences, else remove it."""
        if entry.pruned:
            self._store(replace(entry, replaced_by=()))
        elif earlier is None or earlier.text == entry.text:
            remaining, removed = _without_sentences(entry.text, set(verbatim_sentences(entry.text)).difference(sound))
            is_kept = bool(remaining and removed)  # a false text whose sentences are all sound is removed as a whole
            self._store(replace(entry, text=remaining) if is_kept else replace(entry, pruned=True, replaced_by=()))
            self._record(entry, "contradicted", remaining if is_kept else None)
        else:
            self._store(earlier)
            self._record(entry, "contradicted", earlier.text)

    def _current(self, name: str) -> StateEntry | None:
        index = self._indexes.get(name)
        return None if index is None else self._entries[index]

    def _given_up_entry(self, name: str, successors: Iterable[str]) -> StateEntry | None:
        current, before = self._current(name), self._before.get(name)
        if current is None and before is not None and any(one in self._indexes for one in successors):
            return replace(before, pruned=True)
        return current

    def _is_served(self, name: str) -> bool:
        entry = self._current(name)
        return entry is not None and not entry.pruned

    def _has_subject_of(self, name: str, entry: StateEntry) -> bool:
        one = self._current(name)
        return one is not None and one.field == entry.field and has_same_subject(one.text, entry.text)

    def _is_stated_by_another(self, entry: StateEntry) -> bool:
        return any(
            one.field == entry.field and one.text == entry.text and one.id != entry.id and not one.pruned
            for one in self._entries
        )

    def _store(self, entry: StateEntry) -> None:
        self._entries[self._indexes[entry.id]] = entry

    def _insert_by_age(self, entry: StateEntry) -> None:
        others = [one for one in self._entries if one.id != entry.id]
        index = index_by_age(entry, others)
        self._entries[:] = [*others[:index], entry, *others[index:]]
        self._indexes.update({one.id: number for number, one in enumerate(self._entries)})

    def _record(
        self,
        entry: StateEntry,
        reason: Literal["contradicted", "not_stated", "dropped"],
        after: str | None,
        *,
        before: str | None = None,
    ) -> None:
        text_before = entry.text if before is None else before
        self.repairs.append(
            Repair(field=entry.field, reason=reason, before=text_before, after=after, entry_id=entry.id)
        )


def was_pruned_by_cap_alone(entry: StateEntry) -> bool:
    """Whether a compaction left an entry out since there was no room, though nobody gave it up."""
    return entry.pruned and not entry.replaced_by and not entry.in_doubt


def index_by_age(entry: StateEntry, others: Sequence[StateEntry]) -> int:
    """The place of an entry among others: after the older ones of its field."""
    same = [(index, one) for index, one in enumerate(others) if one.field == entry.field and not one.pruned]
    older = [index for index, one in same if one.number < entry.number]
    if older:
        return older[-1] + 1
    if same:
        return same[0][0]
    return sum(1 for one in others if not one.pruned)


def _pruned_last(entries: Iterable[StateEntry]) -> list[StateEntry]:
    return sorted(entries, key=lambda entry: entry.pruned)


def _served(entries: Iterable[StateEntry]) -> set[tuple[str, str]]:
    return {(entry.id, entry.text) for entry in entries if not entry.pruned}


def _without_sentences(text: str, unwanted: set[str]) -> tuple[str, list[str]]:
    """A text without the sentences in ``unwanted``, otherwise unchanged, and the sentences that were removed."""
    pieces: list[str] = []
    removed: list[str] = []
    end = 0
    for start, stop in sentence_spans(text):
        if text[start:stop] in unwanted:
            removed.append(text[start:stop])
            pieces.append(text[end:start] if text[end:start].strip() else "")
        else:
            pieces.append(text[end:stop])
        end = stop
    pieces.append(text[end:])
    return ("".join(pieces).strip(), removed) if removed else (text, [])


def _proven_verdicts(
    verdicts: Iterable[Verdict], quotes: QuoteSearch, cuts: Mapping[int, Claim]
) -> tuple[dict[int, VerdictWord], set[int]]:
    """The verdicts that count, by the number of the claim, and the numbers of claims whose verdict lacks its proof.

    ``cuts`` are the claims about what code cut, by number. Support for one of them needs a proof, like a contradiction.
    """
    verdict_words: dict[int, VerdictWord] = {}
    unproven: set[int] = set()
    for verdict in verdicts:
        cut = cuts.get(verdict.n) if verdict.verdict == "supported" else None
        seq = quotes.seq_of(verdict.quote, verdict.seq) if cut or verdict.verdict == "contradicted" else 0
        if seq is None or (cut and not is_proof(cut, verdict.quote, seq)):
            unproven.add(verdict.n)
        else:
            verdict_words[verdict.n] = verdict.verdict
    return verdict_words, unproven - verdict_words.keys()

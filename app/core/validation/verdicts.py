"""Reads a verifier's answer, and applies it to a state.

The verifier is a model, and may be wrong, careless or hostile. So nothing that the summarizer wrote goes on its word
alone: a contradiction counts only with a quote that stands in what was shown, and whatever cannot be read changes
nothing. What the summarizer itself gave up goes when the verifier agrees; otherwise it stays, and comes back where it
was replaced.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, Literal, cast, get_args

from app.core.model.claims import Claim
from app.core.model.repairs import Repair
from app.core.model.state import ID_LETTERS, StateEntry
from app.core.summarizer.candidate import without_reasoning
from app.core.text.escaping import clean, unescape
from app.core.text.patterns import compiled
from app.core.text.scripts import EAST_ASIAN
from app.core.text.sentences import sentence_spans
from app.core.validation.claims import sentences_as_told
from app.core.validation.restoring import Restoring, is_proof, with_restored
from app.core.validation.same_subject import is_about_same

VerdictWord = Literal["supported", "contradicted", "not_stated"]
ShownTexts = Mapping[int, tuple[str, ...]]
"""By message: the texts of it that were shown, each of which a quote may come from, as they were shown."""

VERDICT_WORDS: Final[tuple[str, ...]] = get_args(VerdictWord)
LONGEST_QUOTE: Final = 200
"""Characters; what is longer is no quote."""

_LEAST_QUOTE: Final = 4
"""Letters and digits, an ideograph as two: what is shorter stands everywhere, and proves nothing."""
_MOST_CHARACTERS: Final = 200_000
_MOST_READ: Final = 1_000
_MOST_PLACES: Final = 100  # of one quote in one text that are looked at
_MOST_DIGITS: Final = 15
_ARRAY: Final = compiled(r"\[\s*+\{")
_SUPPORTED: Final = compiled(r'"supported"\s*+:\s*+\[(?P<numbers>[\d\s,."#]*+)(?P<end>\]?)')
"""A key of an object, not a word inside a quote: there its quotation marks would be escaped."""
_BLANKLESS: Final = compiled(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff]")
"""Letters of scripts that put no spaces between words."""
_IDEOGRAPH: Final = compiled(f"[{EAST_ASIAN}]")
_MARKS: Final = str.maketrans(dict.fromkeys("'‘’‚‛“”„‟«»‹›`´′″＂＇「」『』〝〞〟", '"'))
_READER: Final = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the verifier says of one claim."""

    n: int
    verdict: VerdictWord
    seq: int | None = None
    """The message that contradicts the claim, or supports it."""
    quote: str = ""
    """Its words, not yet looked up; they count for a contradiction, and where what code cut is supported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictCounts:
    """How many claims had which verdict."""

    supported: int = 0
    contradicted: int = 0
    """With a quote that stands where it should."""
    not_stated: int = 0
    unproven: int = 0
    """Contradictions without such a quote, and support of what code cut: they change nothing."""
    unanswered: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedState:
    """A state's entries with the verdicts applied."""

    entries: tuple[StateEntry, ...]
    """Served ones first, then those on record as pruned."""
    counts: VerdictCounts
    repairs: tuple[Repair, ...] = ()
    digests: tuple[str, ...] = ()
    """The targets of digests that were contradicted: code's own take their place."""
    refuted: frozenset[str] = frozenset()
    """Ids of entries whose judged text was contradicted."""
    agreed: tuple[Claim, ...] = ()
    """What was claimed of anchors and is supported: it takes effect."""
    refused: tuple[Claim, ...] = ()
    """What was claimed of anchors and is not: it is forgotten."""
    is_changed: bool = False
    is_order_only: bool = False
    """Nothing changed but what is in doubt, which is an order of service: that can wait for the next compaction."""


def verdicts_of(text: str, claims: Iterable[Claim]) -> tuple[Verdict, ...]:
    """Read an answer: the numbers of supported claims, and an array of verdicts, alone, in an object, or among words.

    What was cut off is read as far as it goes. What is no verdict on one of these claims is passed over. A claim with
    two verdicts that differ has none.
    """
    known = {claim.n for claim in claims}
    found: dict[int, Verdict] = {}
    disputed: set[int] = set()
    if text.lstrip().startswith("<"):  # thoughts hold drafts; behind the first verdict, what reads so is quoted
        text = without_reasoning(text)
    if len(text) > _MOST_CHARACTERS:
        return ()
    read = [Verdict(n=n, verdict="supported") for n in _supported_numbers(text)]
    read += filter(None, map(_verdict, objects_in(text)[:_MOST_READ]))
    for verdict in read:
        if verdict.n not in known:
            continue
        known_verdict = found.setdefault(verdict.n, verdict)
        if known_verdict.verdict != verdict.verdict:
            disputed.add(verdict.n)
        elif verdict.quote and not known_verdict.quote:
            found[verdict.n] = verdict
    return tuple(found[n] for n in sorted(found.keys() - disputed))


def applied_verdicts(
    entries: Sequence[StateEntry],
    claims: Sequence[Claim],
    verdicts: Iterable[Verdict],
    *,
    shown: ShownTexts,
    before: Sequence[StateEntry] = (),
    restoring: Restoring | None = None,
) -> VerifiedState:
    """Apply verdicts, by entry id, to the version that is current now.

    An entry that is gone, or whose text is no longer the one that was judged, is passed over.

    Args:
        entries: Of the current version, those on record as pruned included.
        claims: That were judged.
        verdicts: On them; several calls' verdicts together.
        shown: What the verifier saw, for looking up its quotes.
        before: Entries of the version that the claims were made against, read now: what they replaced comes back as it
            stands there, without what was erased since.
        restoring: What it takes to put back what code cut; ``None``: nothing of that comes back.
    """
    said, unproven = _effective(verdicts, Quotes(shown), {claim.n: claim for claim in claims if claim.kind == "cut"})
    judged = [(claim, said[claim.n]) for claim in claims if claim.n in said]
    back = list(_cuts_to_put_back(judged)) if restoring else []
    told, put_back = with_restored(entries, [one for one in back if one.names_no_sources], restoring)
    state = _State(told, before, restoring)
    refuted = state.judge_items(
        _without_parts_of_restored(judged, back), {claim.target for claim in claims if claim.gives_up}
    )
    state.judge_sentences(judged)
    state.judge_given_up([claim for claim in claims if claim.gives_up and not claim.waits_for_cut], said, refuted)
    digests = [claim for claim, word in judged if claim.kind == "digest" and word == "contradicted"]
    words = Counter(word for claim, word in judged if claim.kind != "part")
    asked = {claim.n for claim in claims if claim.kind != "part"}
    after, put_back_too = with_restored(
        state.entries(),
        [one for one in back if not one.names_no_sources],
        restoring and replace(restoring, next_entry=state.next_entry),
        {(one.target, one.text, one.by_text): word for one, word in judged if one.waits_for_cut},
    )
    is_changed = after != tuple(_on_record_last(entries))
    return VerifiedState(
        entries=after if is_changed else tuple(entries),
        counts=VerdictCounts(
            supported=words["supported"],
            contradicted=words["contradicted"],
            not_stated=words["not_stated"],
            unproven=len(asked & unproven),
            unanswered=len(asked - said.keys() - unproven),
        ),
        repairs=(
            *put_back,
            *state.repairs,
            *put_back_too,
            *(Repair(field=one.field, reason="contradicted", before=one.text, after=None) for one in digests),
        ),
        digests=tuple(claim.target for claim in digests),
        refuted=frozenset(refuted),
        agreed=tuple(claim for claim, word in judged if claim.kind == "anchor" and word == "supported"),
        refused=tuple(claim for claim, word in judged if claim.kind == "anchor" and word != "supported"),
        is_changed=is_changed or bool(digests),
        is_order_only=is_changed and not digests and _served(after) == _served(entries),
    )


def doubtful_items(claims: Iterable[Claim], verdicts: Iterable[Verdict], shown: ShownTexts) -> tuple[Claim, ...]:
    """The items that are contradicted, with a quote that stands there, and after them those that nothing states."""
    said, _ = _effective(verdicts, Quotes(shown), {})
    words = ("contradicted", "not_stated")
    found = [claim for claim in claims if claim.kind == "item" and said.get(claim.n) in words]
    return tuple(sorted(found, key=lambda claim: words.index(said[claim.n])))


def _without_parts_of_restored(
    judged: Iterable[tuple[Claim, VerdictWord]], back: Iterable[Claim]
) -> list[tuple[Claim, VerdictWord]]:
    # To put a cut back, the rest of its item has to stand as it was left.
    lefts = {claim.target for claim in back if claim.left}
    return [(claim, word) for claim, word in judged if not (claim.kind == "part" and claim.target in lefts)]


def _cuts_to_put_back(judged: Sequence[tuple[Claim, VerdictWord]]) -> Iterator[Claim]:
    denied = {(claim.field, claim.text) for claim, word in judged if word == "contradicted"}
    for claim, word in judged:
        # Where the rest of a supported cut is contradicted, the verdicts contradict each other.
        if claim.kind == "cut" and word == "supported" and (claim.field, claim.left) not in denied:
            yield claim


class Quotes:
    """What was shown, for looking up whether a quote stands there.

    Forms of Unicode, spaces and quotation marks are folded, nothing else. A quote ends where words end, so that
    "a budget of 90" does not stand in "a budget of 900".
    """

    def __init__(self, shown: ShownTexts) -> None:
        self._shown: Final = shown
        self._folded: Final[dict[int, tuple[str, ...]]] = {}

    def include(self, quote: str, seq: int | None) -> bool:
        """Whether the quote stands in its message, or else in exactly one other: numbers are mistaken more often."""
        return self.seq_of(quote, seq) is not None

    def seq_of(self, quote: str, seq: int | None) -> int | None:
        """The message in which a quote stands that is said to stand in ``seq``."""
        if len(quote) > LONGEST_QUOTE:
            return None
        forms = {
            form for text in (quote, unescape(quote)) if _weight(form := _folded(text).strip('" ')) >= _LEAST_QUOTE
        }
        if not forms:
            return None
        if seq is not None and seq in self._shown and self._holds(seq, forms):
            return seq
        holding = [other for other in self._shown if self._holds(other, forms)]
        return holding[0] if len(holding) == 1 else None

    def _holds(self, seq: int, forms: Iterable[str]) -> bool:
        if seq not in self._folded:
            self._folded[seq] = tuple(map(_folded, self._shown[seq]))
        return any(_stands_in(text, form) for text in self._folded[seq] for form in forms)


class _State:
    """Entries in the making."""

    def __init__(self, entries: Sequence[StateEntry], before: Iterable[StateEntry], into: Restoring | None) -> None:
        self._into: Final = into
        self.next_entry = into.next_entry if into else 0
        self._entries: Final = list(entries)
        self._places: Final = {entry.id: place for place, entry in enumerate(entries)}
        self._before: Final = {entry.id: entry for entry in before if not entry.pruned}
        self.repairs: list[Repair] = []

    def judge_items(self, judged: Iterable[tuple[Claim, VerdictWord]], given_up: Collection[str]) -> set[str]:
        """Apply what was said of items; the ids of those that were contradicted.

        Args:
            judged: Claims with what was said of them.
            given_up: Entries that are in doubt for another reason than that nothing states them.
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
                self._put(replace(entry, in_doubt=False))
        return refuted

    def judge_sentences(self, judged: Iterable[tuple[Claim, VerdictWord]]) -> None:
        """Take contradicted sentences out of their narratives; what else is said of them changes nothing."""
        gone: defaultdict[str, set[str]] = defaultdict(set)
        for claim, word in judged:
            if claim.kind == "sentence" and word == "contradicted":
                gone[claim.target].add(claim.text)
        for name, told in gone.items():
            entry = self._current(name)
            if entry is None or entry.pruned:
                continue
            left, removed = _without(entry.text, told)
            if removed:
                self._put(replace(entry, text=left) if left else replace(entry, pruned=True))
            self.repairs += [
                Repair(field=entry.field, reason="contradicted", before=sentence, after=None, entry_id=name)
                for sentence in removed
            ]

    def judge_given_up(self, claims: Sequence[Claim], said: Mapping[int, VerdictWord], refuted: Iterable[str]) -> None:
        """Decide on every entry that the summarizer gave up, by what was said of it and of what took its place.

        Args:
            claims: That an entry was replaced or dropped.
            said: Verdicts, by number.
            refuted: Items that were contradicted: what they replaced comes back.
        """
        refuted = frozenset(refuted)
        by_target: defaultdict[str, list[Claim]] = defaultdict(list)
        for claim in claims:
            by_target[claim.target].append(claim)
        for one in self._entries:
            if refuted.intersection(one.replaced_by):
                by_target.setdefault(one.id, [])
        for name, about in by_target.items():
            successors = dict.fromkeys(claim.by for claim in about if claim.by is not None)
            entry = self._given_up_entry(name, tuple(successors))
            if entry is None or entry.role == "narrative" or any(claim.text != entry.text for claim in about):
                continue
            if _was_pruned_by_cap_alone(entry) and self._places.keys().isdisjoint(successors):
                continue
            successors.update(dict.fromkeys(entry.replaced_by))
            if any(claim.kind == "dropped" for claim in about):
                successors.update(dict.fromkeys(name for name in refuted if self._retells(name, entry)))
            words = {said[claim.n] for claim in about if claim.n in said}
            self._decide(entry, words, tuple(successors), refuted)

    def entries(self) -> tuple[StateEntry, ...]:
        """All of them, those on record last."""
        return tuple(_on_record_last(self._entries))

    def _decide(
        self, entry: StateEntry, words: set[VerdictWord], successors: tuple[str, ...], refuted: frozenset[str]
    ) -> None:
        """What contradicts itself, here or in the verdict on a successor, leaves the entry served and in doubt.

        What was contradicted itself stays gone, whatever is said of those that took its place. What is served without
        doubt stays so, unless all agree that it may go. What was pushed out though nothing took its place comes back
        without doubt unless all agree: in doubt it would be the first to be pushed out again.
        """
        if entry.pruned and entry.id in refuted:
            return
        is_trusted = not entry.pruned and not entry.in_doubt
        if is_trusted and (words != {"supported"} or refuted.intersection(successors)):
            return
        doubted = replace(entry, pruned=False, in_doubt=True, replaced_by=successors)
        trusted = replace(entry, pruned=False, in_doubt=False, replaced_by=())
        if "contradicted" in words:
            self._keep_or_bring_back(entry, doubted if "supported" in words else trusted, "contradicted")
        elif refuted.intersection(successors):
            is_taken = "supported" in words or any(map(self._stands, set(successors) - refuted))
            before = self._before.get(entry.id)
            stood = before if before is not None and before.text == entry.text else trusted
            self._keep_or_bring_back(entry, doubted if is_taken else stood, "contradicted")
        elif words == {"supported"}:
            if not entry.pruned:
                self._put(replace(entry, pruned=True))
                self._record(entry, "dropped", None)
        elif words:
            is_lost = entry.pruned and not any(map(self._stands, successors))
            self._keep_or_bring_back(entry, trusted if is_lost else doubted, "not_stated")

    def _keep_or_bring_back(
        self, entry: StateEntry, kept: StateEntry, reason: Literal["contradicted", "not_stated"]
    ) -> None:
        if not entry.pruned:
            self._put(kept)
            if kept.in_doubt != entry.in_doubt:
                self._record(entry, reason, entry.text)
        elif not self._is_told_by_another(entry):
            self._insert_by_age(kept)
            self._record(kept, reason, kept.text, before="")

    def _doubt(self, entry: StateEntry, sound: set[str]) -> None:
        """Put it in doubt: where some of its sentences are sound, the others alone, as an entry of their own."""
        left, removed = _without(entry.text, set(sentences_as_told(entry.text)).difference(sound))
        if not (self._into and left and removed):
            self._put(replace(entry, in_doubt=True))
            self._record(entry, "not_stated", entry.text)
            return
        doubted = replace(
            entry,
            id=f"{ID_LETTERS[entry.role]}{self.next_entry}",
            text=_without(entry.text, sound)[0],
            since_version=self._into.version,
            superseded=(),
            in_doubt=True,
        )
        self.next_entry += 1
        self._put(replace(entry, text=left))
        self._record(entry, "not_stated", left)
        self._insert_by_age(doubted)
        self._record(doubted, "not_stated", doubted.text, before="")

    def _refute(self, entry: StateEntry, earlier: StateEntry | None, sound: Collection[str]) -> None:
        """Serve what the entry said before, if that was another text; else its sound sentences; else nothing."""
        if entry.pruned:
            self._put(replace(entry, replaced_by=()))
        elif earlier is None or earlier.text == entry.text:
            left, removed = _without(entry.text, set(sentences_as_told(entry.text)).difference(sound))
            stays = bool(left and removed)  # a text that is false though each sentence is sound goes whole
            self._put(replace(entry, text=left) if stays else replace(entry, pruned=True, replaced_by=()))
            self._record(entry, "contradicted", left if stays else None)
        else:
            self._put(earlier)
            self._record(entry, "contradicted", earlier.text)

    def _current(self, name: str) -> StateEntry | None:
        place = self._places.get(name)
        return None if place is None else self._entries[place]

    def _given_up_entry(self, name: str, successors: Iterable[str]) -> StateEntry | None:
        current, before = self._current(name), self._before.get(name)
        if current is None and before is not None and any(one in self._places for one in successors):
            return replace(before, pruned=True)
        return current

    def _stands(self, name: str) -> bool:
        entry = self._current(name)
        return entry is not None and not entry.pruned

    def _retells(self, name: str, entry: StateEntry) -> bool:
        one = self._current(name)
        return one is not None and one.field == entry.field and is_about_same(one.text, entry.text)

    def _is_told_by_another(self, entry: StateEntry) -> bool:
        return any(
            one.field == entry.field and one.text == entry.text and one.id != entry.id and not one.pruned
            for one in self._entries
        )

    def _put(self, entry: StateEntry) -> None:
        self._entries[self._places[entry.id]] = entry

    def _insert_by_age(self, entry: StateEntry) -> None:
        others = [one for one in self._entries if one.id != entry.id]
        place = _place_for(entry, others)
        self._entries[:] = [*others[:place], entry, *others[place:]]
        self._places.update({one.id: index for index, one in enumerate(self._entries)})

    def _record(
        self,
        entry: StateEntry,
        reason: Literal["contradicted", "not_stated", "dropped"],
        after: str | None,
        *,
        before: str | None = None,
    ) -> None:
        told = entry.text if before is None else before
        self.repairs.append(Repair(field=entry.field, reason=reason, before=told, after=after, entry_id=entry.id))


def _was_pruned_by_cap_alone(entry: StateEntry) -> bool:
    return entry.pruned and not entry.replaced_by and not entry.in_doubt


def _place_for(entry: StateEntry, others: Sequence[StateEntry]) -> int:
    same = [(place, one) for place, one in enumerate(others) if one.field == entry.field and not one.pruned]
    older = [place for place, one in same if _age(one) < _age(entry)]
    if older:
        return older[-1] + 1
    if same:
        return same[0][0]
    return sum(1 for one in others if not one.pruned)


def _age(entry: StateEntry) -> int:
    return int(entry.id[1:])


def _on_record_last(entries: Iterable[StateEntry]) -> list[StateEntry]:
    return sorted(entries, key=lambda entry: entry.pruned)


def _served(entries: Iterable[StateEntry]) -> set[tuple[str, str]]:
    return {(entry.id, entry.text) for entry in entries if not entry.pruned}


def _without(text: str, gone: set[str]) -> tuple[str, list[str]]:
    """A text without some sentences, the rest to the letter, spaces included; and those that stood there."""
    pieces: list[str] = []
    removed: list[str] = []
    end = 0
    for start, stop in sentence_spans(text):
        if text[start:stop] in gone:
            removed.append(text[start:stop])
            pieces.append(text[end:start] if text[end:start].strip() else "")
        else:
            pieces.append(text[end:stop])
        end = stop
    pieces.append(text[end:])
    return ("".join(pieces).strip(), removed) if removed else (text, [])


def _effective(
    verdicts: Iterable[Verdict], quotes: Quotes, cuts: Mapping[int, Claim]
) -> tuple[dict[int, VerdictWord], set[int]]:
    """The verdicts that count, by number of the claim; and the numbers of those that lack their proof.

    ``cuts``: what code cut, by number: its support needs a proof as a contradiction does.
    """
    said: dict[int, VerdictWord] = {}
    unproven: set[int] = set()
    for verdict in verdicts:
        cut = cuts.get(verdict.n) if verdict.verdict == "supported" else None
        seq = quotes.seq_of(verdict.quote, verdict.seq) if cut or verdict.verdict == "contradicted" else 0
        if seq is None or (cut and not is_proof(cut, verdict.quote, seq)):
            unproven.add(verdict.n)
        else:
            said[verdict.n] = verdict.verdict
    return said, unproven - said.keys()


def _supported_numbers(text: str) -> Iterator[int]:
    found = _SUPPORTED.search(text)
    if found is None:
        return
    numbers = found["numbers"].split(",")
    # The last number of a list that was cut off may go on.
    for number in islice(numbers if found["end"] else numbers[:-1], _MOST_READ):
        if (n := _whole_number(number.strip(' \t\r\n"'))) is not None:
            yield n


def objects_in(text: str) -> list[Any]:
    """The first array of objects in an answer, even if cut off; else its one object. Too long an answer has none."""
    if len(text) > _MOST_CHARACTERS:
        return []
    for piece in _possible_json_texts(text):
        try:
            value, _ = _READER.raw_decode(piece)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, list) else [value]
    return []


def _possible_json_texts(text: str) -> Iterator[str]:
    starts = [found.start() for found in _ARRAY.finditer(text)]
    for start in dict.fromkeys([*starts[:1], *starts[-1:]]):
        yield text[start:]
        yield f"{text[start : text.rfind('}') + 1]}]"
    if not starts and "{" in text:
        yield text[text.find("{") :]


def _verdict(raw: Any) -> Verdict | None:
    if not isinstance(raw, dict):
        return None
    n, word = _whole_number(raw.get("n")), _word(raw.get("verdict"))
    if n is None or word is None:
        return None
    quote = raw.get("quote")
    if word == "not_stated" or (word == "supported" and not quote):
        return Verdict(n=n, verdict=word)
    told = clean(quote).strip() if isinstance(quote, str) and len(quote) <= 2 * LONGEST_QUOTE else ""
    return Verdict(
        n=n, verdict=word, seq=_whole_number(raw.get("seq")), quote=told if len(told) <= LONGEST_QUOTE else ""
    )


def _word(value: Any) -> VerdictWord | None:
    plain = "_".join(value.lower().replace("-", " ").split()) if isinstance(value, str) else ""
    return cast("VerdictWord", plain) if plain in VERDICT_WORDS else None


def _whole_number(value: Any) -> int | None:
    if isinstance(value, str):
        digits = value.strip().removeprefix("#")
        return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS else None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text.translate(_MARKS)).translate(_MARKS).split())


def _weight(text: str) -> int:
    return sum(2 if _IDEOGRAPH.match(character) else 1 for character in text if character.isalnum())


def _stands_in(text: str, quote: str) -> bool:
    start = text.find(quote)
    for _ in range(_MOST_PLACES):
        if start < 0:
            return False
        if _is_word_boundary(text, start) and _is_word_boundary(text, start + len(quote)):
            return True
        start = text.find(quote, start + 1)
    return False


def _is_word_boundary(text: str, place: int) -> bool:
    sides = text[max(place - 1, 0) : place + 1]
    return not 0 < place < len(text) or not sides.isalnum() or _BLANKLESS.search(sides) is not None

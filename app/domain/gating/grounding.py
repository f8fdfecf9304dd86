"""Grounding: what a candidate says must rest on what was said. A repair, never a reason for a retry.

Laws: a text that stands in the span is left alone, unless it would grant authority or give orders: then it becomes a
quote that says whose words it is. An item of a ``fact`` or ``open`` field that states an exact value which nobody
stated, or that shares too little with its sources, is replaced by its source sentence, and dropped when it has none. In
all other fields the sentence goes. Every item ends with complete sources: a message that alone holds one of its values
is one of them, since erasing that message must reach the item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nlargest
from itertools import islice
from typing import Final

from app.domain.fencing.redaction import redact
from app.domain.gating.authority import claims_authority, is_attributed, quoted
from app.domain.gating.claims import SMALL, Claim, counted, find_claims, holders, supported, words_of_values
from app.domain.gating.contested import is_refused
from app.domain.gating.evidence import Evidence, beginning
from app.domain.gating.polarity import is_turned_round
from app.domain.gating.swapping import are_exchanged, is_swapped
from app.domain.model_io import SummaryRequest
from app.domain.states.provenance import origin_of
from app.domain.states.state import FieldRole, StateEntry
from app.domain.summarizing.candidate import Candidate, CandidateDrop, CandidateItem
from app.domain.words.language import detect
from app.domain.words.text import FRAME_STEMS, GENERIC_STEMS, sentences, stems

_SUPPORT: Final = 0.2  # of a fact's weight must be shared with its sources: paraphrases keep more, inventions less
_FOUND: Final = 0.34  # of the weight, for a source that the candidate did not name
_REACH: Final = 2  # messages before and after a source: an answer is understood from its question
_LONGEST: Final = 300  # characters of a source sentence
_SAMPLE: Final = 20_000  # characters are plenty to know a language by
_SAME_KIND: Final = 2.0  # in a source sentence, a value of the kind that was made up
_LOOKED_AT: Final = 12  # sentences whose values are read for one item
_GROUNDED: Final = frozenset({"fact", "open"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounded:
    """A candidate of which everything rests on something, and how many texts had to be changed for it."""

    candidate: Candidate
    repaired: int
    evidence: Evidence | None = None
    """What it was checked against: indexing a span again would take as long as all checks."""


def ground(candidate: Candidate, request: SummaryRequest) -> Grounded:
    """Check every text of a candidate against what it may rest on, and repair what does not."""
    return _Grounding(request).done(candidate)


class _Grounding:
    def __init__(self, request: SummaryRequest) -> None:
        self._evidence = Evidence(request.messages, request.previous, request.anchors, request.system_prompt)
        self._request = request
        self._roles: Mapping[str, FieldRole] = {field.name: field.role for field in request.schema.fields}
        self._entries = {entry.id: source for source, entry in self._evidence.entries.items()}
        self._seqs = [message.seq for message in request.messages]
        self._place = {seq: place for place, seq in enumerate(self._seqs)}
        self._sentences: dict[int, tuple[tuple[str, frozenset[str]], ...]] = {}
        self._repaired = 0

    def done(self, candidate: Candidate) -> Grounded:
        made = [one for item in candidate.items if (one := self._item(item)) is not None]
        items = [replace(item, replaces=tuple(self._replaceable(item))) for item in made]
        lost = {entry for item in made for entry in item.replaces} - {
            entry for item in items for entry in item.replaces
        }
        told = {field: self._prose(text) for field, text in candidate.narrative.items()}
        grounded = replace(
            candidate,
            items=tuple(_once(items)),
            narrative={field: text for field, text in told.items() if text},
            dropped=(
                *(self._drop(drop) for drop in candidate.dropped),
                *(CandidateDrop(entry=entry, reason="no_longer_relevant", by_seq=None) for entry in sorted(lost)),
            ),
        )
        return Grounded(candidate=grounded, repaired=self._repaired, evidence=self._evidence)

    @cached_property
    def _language(self) -> str | None:
        said = "\n".join(message.content for message in self._request.messages if message.role == "user")
        return detect(said[:_SAMPLE]) or self._request.locale

    def _claims(self, text: str) -> tuple[Claim, ...]:
        return find_claims(text, self._language)

    # --- items

    def _item(self, item: CandidateItem) -> CandidateItem | None:
        if self._roles[item.field] not in _GROUNDED:
            text = self._prose(item.text)
            return self._completed(replace(item, text=text), self._claims(text)) if text else None
        if claims_authority(item.text):
            return self._as_quote(item)
        claims = self._claims(item.text)
        if self._is_turned_round(item.text, self._near(item)):
            return self._as_source(item, claims)
        if self._is_said(item.text):
            return self._completed(item, claims)
        known = self._attributed(item, claims)
        if known is None or is_refused(known.text, self._sources_in_span(known), self._request.messages):
            return self._as_source(item, claims)
        return self._completed(known, claims)

    def _is_said(self, text: str) -> bool:
        """Whether a text stands in the span word for word, as a whole or sentence by sentence."""
        return bool(self._evidence.with_text(text)) or (
            len(parts := sentences(text)) > 1 and all(self._evidence.with_text(part) for part in parts)
        )

    def _is_turned_round(self, text: str, near: Collection[int]) -> bool:
        """Whether a text says the contrary of its sources, or that another did it; of what is most about it without."""
        content = frozenset(stems(text))
        told = [(sentence, words) for sentence, words in self._told(near or self._closest(content)) if content & words]
        return is_turned_round(text, told) or are_exchanged(text, [sentence for sentence, _ in told])

    def _closest(self, content: frozenset[str]) -> list[int]:
        """The sources that share most words with a text, two at least."""
        evidence = self._evidence
        shared = Counter(source for stem in content - GENERIC_STEMS for source in evidence.with_stem(stem))
        return [source for source, count in shared.most_common(_LOOKED_AT) if count > 1 or len(content) == 1]

    def _attributed(self, item: CandidateItem, claims: Sequence[Claim]) -> CandidateItem | None:
        """The item, with a further source where the named ones do not carry it; ``None`` when nothing does."""
        content = frozenset(stems(item.text))
        near = self._near(item)
        about: set[int] | None = None
        for claim in claims:
            found = holders(claim, self._evidence)
            if found and (claim.value is None or not near or not near.isdisjoint(found) or 0 in found):
                continue
            if about is None:
                about = self._evidence.sources_about(content - words_of_values(claims))
            if claim.is_small and self._counts(claim, item, near):
                continue
            if about.isdisjoint(found):
                return None
        digits = frozenset(word for word in words_of_values(claims) if word[0].isdigit())
        told = (sentence for sentence, words in self._told(near) if digits & words) if digits else ()
        if is_swapped(item.text, claims, list(islice(told, _LOOKED_AT))):
            return None
        if self._supports(content, claims, near):
            return item
        best = self._best_source(content)
        return replace(item, from_seqs=(*item.from_seqs, best)) if best is not None else None

    def _counts(self, claim: Claim, item: CandidateItem, near: Iterable[int]) -> bool:
        """Whether a small number counts what the item or its sources list."""
        amount = claim.value.amount if claim.value is not None else None
        listed = counted([item.text.replace(":", ","), *(self._evidence.text(source) for source in near)])
        return amount is not None and amount <= SMALL and amount in listed

    def _near(self, item: CandidateItem) -> set[int]:
        """The sources of an item, what stands around them, and the entries that it takes the place of."""
        near = {self._entries[entry] for entry in item.replaces if entry in self._entries}
        for seq in item.from_seqs:
            if (place := self._place.get(seq)) is not None:
                near.update(self._seqs[max(0, place - _REACH) : place + _REACH + 1])
        return near

    def _supports(self, content: frozenset[str], claims: Sequence[Claim], near: set[int]) -> bool:
        return supported(content, claims, near, self._evidence) >= _SUPPORT

    def _best_source(self, content: frozenset[str]) -> int | None:
        """The message or the entry that shares most with a text, if it shares enough: as a source of the item."""
        evidence = self._evidence
        shared: dict[int, float] = {}
        total = 0.0
        for stem in content:
            weight = evidence.weight(stem)
            total += weight
            for source in evidence.with_stem(stem) if weight else ():
                shared[source] = shared.get(source, 0.0) + weight
        best = max(shared, key=lambda source: (shared[source], source), default=None)
        return best if best is not None and shared[best] >= _FOUND * total else None

    # --- repairs

    def _as_quote(self, item: CandidateItem) -> CandidateItem | None:
        """Words that would carry authority, as the words of whoever said them; nothing when nobody did."""
        self._repaired += 1
        content = frozenset(stems(item.text))
        named = [seq for seq in item.from_seqs if seq in self._evidence.messages]
        best = self._best_source(content)
        seqs = [*named, *([best] if best is not None and best > 0 else [])]
        chosen = self._sentence(content, (), [seq for seq in seqs if seq in self._evidence.messages])
        return self._replaced(item, *chosen) if chosen is not None else None

    def _as_source(self, item: CandidateItem, claims: Sequence[Claim]) -> CandidateItem | None:
        """The sentence that an unfounded item was drawn from, ``None`` when there is none."""
        self._repaired += 1
        content = frozenset(stems(item.text))
        seqs = self._sources_in_span(item)
        if not seqs and (best := self._best_source(content)) is not None and best > 0:
            seqs = [best]
        lost = {claim.kind for claim in claims if not holders(claim, self._evidence)}
        chosen = self._sentence(content, lost, seqs)
        return self._replaced(item, *chosen) if chosen is not None else None

    def _told(self, sources: Iterable[int]) -> Iterator[tuple[str, frozenset[str]]]:
        """The sentences of these sources with their stems, each source read once."""
        for source in sources:
            if source not in self._sentences:
                said = sentences(self._evidence.text(source))
                self._sentences[source] = tuple((sentence, frozenset(stems(sentence))) for sentence in said)
            yield from self._sentences[source]

    def _sources_in_span(self, item: CandidateItem) -> list[int]:
        return [seq for seq in item.from_seqs if seq in self._evidence.messages]

    def _sentence(self, content: frozenset[str], lost: Iterable[str], seqs: Sequence[int]) -> tuple[int, str] | None:
        """The sentence of these messages that says most of a text; one that says nothing of it must say something."""
        kinds = set(lost)
        scored = [
            (sum(self._evidence.weight(stem) for stem in content & words), -place, seq, sentence)
            for seq in dict.fromkeys(seqs)
            for place, (sentence, words) in enumerate(self._told([seq]))
        ]
        best = nlargest(_LOOKED_AT, scored)
        rated = [
            (
                score + (_SAME_KIND if any(one.kind in kinds for one in self._claims(sentence)) else 0),
                place,
                seq,
                sentence,
            )
            for score, place, seq, sentence in best
        ]
        score, _, seq, sentence = max(rated, default=(0.0, 0, 0, ""))
        return (seq, sentence) if score > 0 else None

    def _replaced(self, item: CandidateItem, seq: int, sentence: str) -> CandidateItem:
        text = redact(_bounded(sentence, frozenset(stems(item.text))))
        if claims_authority(text):
            text = quoted(text, origin_of(self._evidence.messages[seq], sentence), self._language)
        words = frozenset(stems(text)) - FRAME_STEMS - GENERIC_STEMS
        kept = [id_ for id_ in item.replaces if words & frozenset(stems(self._text_of(id_)))]
        made = replace(item, text=text, from_seqs=(seq,), replaces=tuple(kept))
        return self._completed(made, self._claims(text))

    def _text_of(self, entry: str) -> str:
        return self._evidence.text(self._entries[entry]) if entry in self._entries else ""

    # --- sources

    def _completed(self, item: CandidateItem, claims: Sequence[Claim]) -> CandidateItem:
        """The item with every message that alone holds one of its values, and the sources of entries it drew on."""
        seqs = dict.fromkeys(seq for seq in item.from_seqs if seq > 0)
        for source in (seq for seq in item.from_seqs if seq < 0):
            seqs.update(dict.fromkeys(self._evidence.entries[source].from_seqs))
        whole = self._evidence.with_text(item.text)
        for found in (*([whole] if whole else []), *(holders(claim, self._evidence) for claim in claims)):
            messages = [source for source in found if source > 0]
            if any(seq in seqs for seq in messages) or 0 in found:
                continue
            if messages:
                seqs[messages[-1]] = None
            elif found:
                seqs.update(dict.fromkeys(self._evidence.entries[found[-1]].from_seqs))
        return replace(item, from_seqs=tuple(seqs))

    # --- prose and drops

    def _prose(self, text: str) -> str:
        """A text of any other field without the sentences that state what nobody stated, or carry authority."""
        if self._is_sound(text):
            return text
        kept: list[str] = []
        for sentence in sentences(text):
            if self._is_sound(sentence):
                kept.append(sentence)
            else:
                self._repaired += 1
        return " ".join(kept)

    def _is_sound(self, text: str) -> bool:
        if claims_authority(text):
            return False
        if self._is_turned_round(text, ()):
            return False
        if self._evidence.with_text(text):
            return True
        return all(claim.is_small or holders(claim, self._evidence) for claim in self._claims(text))

    def _replaceable(self, item: CandidateItem) -> Iterator[str]:
        """The entries that an item may take the place of: a fact goes only for what has to do with it."""
        for id_ in item.replaces:
            source = self._entries.get(id_)
            if source is None or self._evidence.entries[source].role not in _GROUNDED:
                yield id_
                continue
            content = frozenset(stems(self._evidence.text(source)))
            about = self._evidence.sources_about(content) & (
                self._near(replace(item, replaces=())) | set(item.from_seqs)
            )
            if about or not _families(content).isdisjoint(_families(stems(item.text))):
                yield id_

    def _drop(self, drop: CandidateDrop) -> CandidateDrop:
        """A drop of a fact needs a message that has to do with it; without one it loses its source, and is undone."""
        source = self._entries.get(drop.entry)
        if source is None or drop.by_seq not in self._place or self._evidence.entries[source].role not in _GROUNDED:
            return drop
        place = self._place[drop.by_seq]
        around = set(self._seqs[max(0, place - _REACH) : place + _REACH + 1])
        content = frozenset(stems(self._evidence.text(source)))
        about = self._evidence.sources_about(content) & around
        return drop if about or self._supports(content, (), around) else replace(drop, by_seq=None)


def _families(words: Iterable[str]) -> frozenset[str]:
    return frozenset(beginning(word) for word in words if word not in FRAME_STEMS and word not in GENERIC_STEMS)


def _once(items: Sequence[CandidateItem]) -> Iterator[CandidateItem]:
    """Each text of a field once: several inventions may come down to one sentence."""
    seen: dict[tuple[str, str], CandidateItem] = {}
    for item in items:
        key = (item.field, item.text)
        if key in seen:
            first = seen[key]
            seqs = tuple(dict.fromkeys([*first.from_seqs, *item.from_seqs]))
            seen[key] = replace(first, from_seqs=seqs, replaces=tuple(dict.fromkeys([*first.replaces, *item.replaces])))
        else:
            seen[key] = item
    yield from seen.values()


def _bounded(sentence: str, wanted: frozenset[str]) -> str:
    """A sentence on one line, of bounded length; of a long one the part around the first word that is wanted."""
    line = " ".join(sentence.split())
    if len(line) <= _LONGEST:
        return line
    parts = line.split(" ")
    first = next((place for place, part in enumerate(parts) if wanted & frozenset(stems(part))), 0)
    start = max(0, len(" ".join(parts[:first])) - _LONGEST // 3)
    begin = line.find(" ", start) + 1 if start else 0
    cut = line[begin : begin + _LONGEST]
    return cut.rsplit(" ", 1)[0].strip() if " " in cut else cut


def cleaned(entries: Sequence[StateEntry]) -> tuple[tuple[StateEntry, ...], int]:
    """The state so far, checked again: entries that carry authority lose it, or go.

    An entry with sources becomes a report of what was said; one without, or of a field that is no fact, goes. A
    narrative loses the sentence.

    Returns:
        The entries that may be trusted, and how many were changed or left out.
    """
    kept: list[StateEntry] = []
    changed = 0
    for entry in entries:
        if not any(claims_authority(part) for part in [entry.text, *sentences(entry.text)]):
            kept.append(entry)
            continue
        changed += 1
        if entry.role == "narrative":
            text = " ".join(part for part in sentences(entry.text) if not claims_authority(part))
            kept += [replace(entry, text=text)] if text and not claims_authority(text) else []
        elif entry.role in _GROUNDED and entry.from_seqs and not is_attributed(entry.text):
            origin = entry.origins[0] if entry.origins else "user"
            kept.append(replace(entry, text=quoted(entry.text, origin, detect(entry.text))))
    return tuple(kept), changed

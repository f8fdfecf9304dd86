"""Facts and open questions of a span, as items that stand alone and know where they came from."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from app.domain.extraction.choice import Seen, choose
from app.domain.extraction.clauses import begins_unresolved, is_fragment
from app.domain.extraction.cues import NON_ANSWER, PLEASANTRY
from app.domain.extraction.items import ANSWERED, LONGEST, Item, bare, parted, together
from app.domain.extraction.labels import PHRASES, phrases
from app.domain.extraction.passages import Passage, clip
from app.domain.extraction.scoring import proposal_before, score_all
from app.domain.identifiers import Identifier, find_identifiers
from app.domain.state import StateEntry
from app.domain.text import GENERIC_STEMS, stem, stems, words

_FEW: Final = 3  # content words; an utterance with fewer needs the one before to be understood
_THANKS: Final = 3  # words of a sentence of thanks
_SHORT: Final = 90  # characters quoted of the utterance before or after
_REACH: Final = 8  # postings per word that a correction looks back through
_NEAR: Final = 6  # messages
_CORRECTS: Final = 2.5  # what replaces something else must not be missing
_OVERLAP: Final = 0.5
_EXACT: Final = frozenset({"date", "time", "money", "number", "version", "code", "url", "email", "path", "uuid"})
_ANAPHORA: Final = re.compile(
    r"^(?:but|and|so|because|also|then|that|this|it|they|those|these|he|she|same|после|но|и|а|это|он|она"
    r"|они|поэтому|тогда|потом|так)\b"
    r"|\b(?:it|that|them|this one|его|её|их|это)(?=[.,!?;]|$| (?:out|in|up|to|for|on)\b)",
    re.IGNORECASE,
)
_OUSTED: Final = re.compile(
    r"\b(?:instead of|rather than|no longer|not|from|scrap|drop|forget|ditch|remove|without|вместо|не"
    r"|больше не|без)\s+(?:the |an? |our |my )?([^\W\d_][\w.+#-]*)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Claim:
    """What a text says, for telling contradiction."""

    stems: frozenset[str]
    values: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, found: Iterable[str], identifiers: Iterable[Identifier]) -> _Claim:
        values = frozenset((item.kind, item.text.lower()) for item in identifiers if item.kind in _EXACT)
        return cls(_content(found), values)


def _content(found: Iterable[str]) -> frozenset[str]:
    return frozenset(word for word in found if word not in GENERIC_STEMS and not word[0].isdigit())


def is_thanks(passage: Passage) -> bool:
    """Whether a sentence is mere politeness."""
    return len(passage.stems) <= _THANKS and not passage.values and PLEASANTRY.match(passage.text) is not None


def _claim(passage: Passage) -> _Claim:
    return _Claim.of(passage.stems, passage.identifiers)


def _told(text: str) -> _Claim:
    return _Claim.of(stems(text), find_identifiers(text))


def _contradicts(text: str, new: _Claim, old: _Claim) -> bool:
    """Whether a text that sounds like a correction is about what the old one says, and leaves none of it."""
    if {kind for kind, _ in old.values - new.values} - {kind for kind, _ in new.values}:
        return False
    shared = new.stems & old.stems
    smaller = min(len(new.stems), len(old.stems)) or 1
    if _names_what_goes(text, old):
        return len(shared) > 1 or len(old.stems) <= _FEW + 1
    if new.values and old.values and new.values != old.values and shared:
        return len(shared) >= _OVERLAP * smaller
    return len(shared) > 1 and len(shared) >= _OVERLAP * smaller


def _names_what_goes(text: str, old: _Claim) -> bool:
    """Whether a text says "instead of", "no longer" or the like of a word of the old one."""
    return any(stem(match.lower()) in old.stems for match in _OUSTED.findall(text))


def _other_values(new: _Claim, old: _Claim) -> bool:
    """Whether both state values, of one kind at least, and the old one's are gone."""
    kinds = {kind for kind, _ in new.values} & {kind for kind, _ in old.values}
    return bool(kinds) and not new.values & old.values and len(new.stems & old.stems) >= _OVERLAP * len(old.stems)


def _says_nothing_new(new: _Claim, old: _Claim) -> bool:
    return new.stems <= old.stems and new.values <= old.values


class Corrections:
    """Which earlier passages and previous entries each correcting passage replaces, clause by clause."""

    def __init__(self, passages: Sequence[Passage], previous: Sequence[StateEntry]) -> None:
        self.antecedents: dict[int, Passage] = {}
        self.replaced: dict[int, tuple[str, ...]] = {}
        self.outdated: set[int] = set()
        self._passages = passages
        self._texts = {entry.id: parted(entry.text) for entry in previous if entry.role in {"fact", "open"}}
        self._clauses = [
            (entry, place, _told(clause))
            for entry, (_, clauses) in self._texts.items()
            for place, clause in enumerate(clauses)
        ]
        self._lost: set[tuple[str, int]] = set()
        self._index: defaultdict[str, list[int]] = defaultdict(list)
        for number, (_, _, claim) in enumerate(self._clauses):
            for word in claim.stems:
                self._index[word].append(number)
        self._read()

    def rest(self, entry: str) -> tuple[str, list[str]]:
        """The label of a replaced entry, and those of its clauses that still hold."""
        label, clauses = self._texts[entry]
        return label, [clause for place, clause in enumerate(clauses) if (entry, place) not in self._lost]

    def _read(self) -> None:
        recent: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=_REACH))
        for passage in self._passages:
            claim = _claim(passage)
            if passage.cues & {"correction", "update"} and not passage.is_question and passage.role != "tool":
                self._correct(passage, claim, recent)
            if not passage.is_question and passage.role != "tool":
                for word in claim.stems:
                    recent[word].append(passage.index)

    def _correct(self, passage: Passage, claim: _Claim, recent: defaultdict[str, deque[int]]) -> None:
        old = self._antecedents(passage, claim, recent)
        if old:
            self.antecedents[passage.index] = old[0]
            self.outdated.update(one.index for one in old)
            claim = _Claim(claim.stems.union(*(_content(one.stems) for one in old)), claim.values)
        if passage.role != "user" and not passage.is_named:
            return
        counts = Counter(number for word in claim.stems for number in self._index.get(word, ()))
        found: dict[str, None] = {}
        for number, _ in sorted(counts.items(), key=lambda item: (-item[1], -item[0])):
            entry, place, said = self._clauses[number]
            known = (entry, place) in self._lost or _says_nothing_new(_claim(passage), said)
            certain = not found or _names_what_goes(passage.text, said) or _other_values(claim, said)
            if not known and certain and _contradicts(passage.text, claim, said):
                self._lost.add((entry, place))
                found[entry] = None
        if found:
            self.replaced[passage.index] = tuple(found)

    def _antecedents(self, passage: Passage, claim: _Claim, recent: defaultdict[str, deque[int]]) -> list[Passage]:
        counts = Counter(index for word in claim.stems for index in recent.get(word, ()))
        ranked = sorted(counts.items(), key=lambda item: (-item[1], -item[0]))[:_REACH]
        found = [
            old
            for old in (self._passages[index] for index, _ in ranked)
            if old.seq < passage.seq
            and old.index not in self.outdated
            and self._same_side(old, passage)
            and _contradicts(passage.text, claim, _claim(old))
        ]
        if not found and len(claim.stems) < _FEW and "correction" in passage.cues and passage.verdict <= 0:
            nearest = self._nearest(passage)
            return [nearest] if nearest else []
        return found[:_FEW]

    def _nearest(self, passage: Passage) -> Passage | None:
        """What a bare “no, X” answers: the speaker's own last statement that could be corrected."""
        for index in range(passage.index - 1, max(-1, passage.index - 30), -1):
            old = self._passages[index]
            if passage.turn - old.turn > _NEAR:
                return None
            if (
                old.seq < passage.seq
                and old.role == passage.role
                and old.cues & {"decision", "identity", "preference", "constraint"}
            ):
                return None if old.is_question or old.index in self.outdated else old
        return None

    @staticmethod
    def _same_side(old: Passage, new: Passage) -> bool:
        return new.role in {old.role, "user"}


class Phrasing:
    """How a chosen passage is written so that it can be read alone."""

    def __init__(self, passages: Sequence[Passage], corrections: Corrections, language: str) -> None:
        self._passages = passages
        self._corrections = corrections
        self._words = phrases(language)

    def text(self, passage: Passage) -> str:
        """Speaker and words, with what is needed to understand them: the question answered, the value corrected."""
        before = self.question_before(passage) or self._lead(passage)
        if before is not None:
            return f"{before.speaker}: {clip(before.core, 2 * _SHORT)}{ANSWERED}{passage.told}"
        value = self._changed_value(passage)
        if value and self._words:
            return f"{passage.told} ({self._words.before}{value})"
        reply = self.accepted_by(passage)
        if reply is not None:
            return f"{passage.told}{ANSWERED}{reply.speaker}: {clip(reply.text, 2 * _SHORT)}"
        lead = self.sentence_before(passage)
        return f"{passage.speaker}: {lead.text} {passage.core}" if lead else passage.told

    def seqs(self, passage: Passage) -> set[int]:
        """Every message the text draws on."""
        antecedent = self._corrections.antecedents.get(passage.index) if self._changed_value(passage) else None
        others = (self.question_before(passage), self._lead(passage), antecedent, self.accepted_by(passage))
        return {passage.seq, *(other.seq for other in others if other is not None)}

    def stands_alone(self, passage: Passage) -> bool:
        """Whether the written text can be understood without its surroundings."""
        if self.question_before(passage) or self.accepted_by(passage) or passage.is_action:
            return True
        if passage.verdict and not passage.values and not _content(passage.stems):
            return False
        if begins_unresolved(passage.text):
            return self.sentence_before(passage) is not None or self._lead(passage) is not None
        said_of_it = _content(passage.stems) - {part for item in passage.identifiers for part in stems(item.text)}
        is_named_value = passage.values and len(words(passage.core)) > 1 and said_of_it
        return bool(is_named_value or self.sentence_before(passage)) or not is_fragment(passage.core)

    def is_simple(self, passage: Passage) -> bool:
        """Whether nothing but the passage's own words is written."""
        return self.text(passage) == passage.told

    def sentence_before(self, passage: Passage) -> Passage | None:
        """The sentence that a pronoun or a conjunction points back to, within the same message."""
        if passage.index == 0 or not (_ANAPHORA.search(passage.text) or begins_unresolved(passage.text)):
            return None
        before = self._passages[passage.index - 1]
        if before.seq != passage.seq or len(before.text) > 2 * _SHORT or before.index in self._corrections.outdated:
            return None
        telling = len(before.stems) > 1 and not PLEASANTRY.match(before.text)
        return before if telling and not begins_unresolved(before.text) else None

    def question_before(self, passage: Passage) -> Passage | None:
        """The question that a short answer, or one that begins with yes or no, answers."""
        if passage.is_question or passage.index == 0 or (passage.role != "user" and not passage.is_named):
            return None
        before = self._said_before(passage)
        if before is None or not before.is_question or passage.turn - before.turn != 1 or before.role == passage.role:
            return None
        if len(_content(before.stems)) < (1 if passage.identifiers else _FEW - 1) and not passage.values:
            return None
        short = len(_content(passage.stems)) <= _FEW and len(passage.text) < _SHORT
        return before if short or (passage.verdict and len(passage.text) < 2 * _SHORT) else None

    def _said_before(self, passage: Passage) -> Passage | None:
        """The passage before, a mere "thank you" at the beginning of the same message left out."""
        index = passage.index - 1
        while index >= 0 and self._passages[index].seq == passage.seq and is_thanks(self._passages[index]):
            index -= 1
        return self._passages[index] if index >= 0 else None

    def accepted_by(self, passage: Passage) -> Passage | None:
        """The user's yes to an assistant's proposal."""
        if passage.role != "assistant" or passage.is_named:
            return None
        index = passage.index
        while index < len(self._passages) and self._passages[index].seq == passage.seq:
            index += 1
        if index == len(self._passages):
            return None
        reply = self._passages[index]
        agreed = reply.role == "user" and reply.verdict > 0 and reply.turn - passage.turn == 1
        return reply if agreed and proposal_before(self._passages, reply) is passage else None

    def _lead(self, passage: Passage) -> Passage | None:
        """What the other side said last, where a message begins with a pronoun and a value is told of it."""
        if passage.index == 0 or not passage.values or not begins_unresolved(passage.text):
            return None
        before = self._passages[passage.index - 1]
        usable = passage.turn - before.turn == 1 and before.role != passage.role and not before.is_pasted
        usable = usable and len(before.core) <= _SHORT and not begins_unresolved(before.core)
        return before if usable and not is_fragment(before.core) else None

    def _changed_value(self, passage: Passage) -> str | None:
        """The one value that a terse correction replaces; ``None`` unless it is plain which."""
        old = self._corrections.antecedents.get(passage.index)
        if old is None or len(_content(passage.stems)) >= _FEW:
            return None
        kinds = {item.kind for item in passage.identifiers if item.kind in _EXACT}
        values = {item.text for item in old.identifiers if item.kind in kinds} - {
            item.text for item in passage.identifiers
        }
        return values.pop() if len(values) == 1 else None


def fact_items(
    passages: Sequence[Passage],
    previous: Sequence[StateEntry],
    *,
    room: int,
    focus: str | None,
    language: str,
    corrections: Corrections,
    spared: frozenset[int] = frozenset(),
) -> list[Item]:
    """The facts of the span within ``room`` tokens, in order; ``spared`` passages are told elsewhere."""
    phrasing = Phrasing(passages, corrections, language)
    scores = score_all(passages, focus)
    replaced = {entry for ids in corrections.replaced.values() for entry in ids}
    seen = Seen(frozenset(stems(entry.text)) for entry in previous if entry.id not in replaced)
    usable = [
        passage
        for passage in passages
        if passage.index not in corrections.outdated and passage.index not in spared and phrasing.stands_alone(passage)
    ]
    for passage in usable:
        if passage.index in corrections.replaced or passage.index in corrections.antecedents:
            scores[passage.index] += _CORRECTS
    chosen = choose(usable, scores, room=room, seen=seen, render=phrasing.text, at_least_one=True)
    runs = _runs(_without_repeated(chosen, phrasing), phrasing, corrections)
    return [item for run in runs for item in _items(run, phrasing, corrections)]


def _without_repeated(chosen: Sequence[Passage], phrasing: Phrasing) -> list[Passage]:
    """Leave out what another item already quotes."""
    replies = (phrasing.accepted_by(passage) for passage in chosen)
    before = (phrasing.sentence_before(passage) for passage in chosen)
    quoted = {
        passage.index for passage in (*replies, *before) if passage is not None and len(passage.text) <= 2 * _SHORT
    }
    return [passage for passage in chosen if passage.index not in quoted]


def _runs(chosen: Sequence[Passage], phrasing: Phrasing, corrections: Corrections) -> list[list[Passage]]:
    """Sentences of one message that need no others are told together: one label for all."""
    runs: list[list[Passage]] = []
    for passage in chosen:
        last = runs[-1] if runs else []
        simple = phrasing.is_simple(passage) and passage.index not in corrections.replaced
        if (
            simple
            and last
            and last[0].seq == passage.seq
            and phrasing.is_simple(last[0])
            and sum(len(one.core) for one in last) + len(passage.core) <= LONGEST
        ):
            last.append(passage)
        else:
            runs.append([passage])
    return runs


def _items(run: Sequence[Passage], phrasing: Phrasing, corrections: Corrections) -> Iterator[Item]:
    """A run as an item; what still holds of the entries that it replaces is told on."""
    seqs = tuple(sorted({seq for passage in run for seq in phrasing.seqs(passage)}))
    replaces = tuple(dict.fromkeys(entry for passage in run for entry in corrections.replaced.get(passage.index, ())))
    text = phrasing.text(run[0])
    if len(run) > 1:
        text = together(f"{run[0].speaker}: ", (passage.core for passage in run))
    for entry in replaces:
        label, clauses = corrections.rest(entry)
        if clauses:
            yield Item(text=together(label, clauses), seqs=(), replaces=(entry,))
    yield Item(text=text, seqs=seqs, replaces=replaces, passages=tuple(run))


def open_items(passages: Sequence[Passage], previous: Sequence[StateEntry], language: str, *, most: int) -> list[Item]:
    """Questions that nobody answered and matters that were left open, newest kept when there are too many."""
    words_ = phrases(language)
    label = words_.open_question if words_ else ""
    by_message: defaultdict[int, list[Passage]] = defaultdict(list)
    for passage in passages:
        if _is_open(passage, passages):
            by_message[passage.seq].append(passage)
    items: list[Item] = []
    known = Seen(frozenset(stems(bare(entry.text))) for entry in previous)
    for seq, found in sorted(by_message.items())[-most:]:
        if known.repeats(frozenset().union(*(passage.stems for passage in found))):
            continue
        speaker = "" if label and not found[0].is_named else f"{found[0].speaker}: "
        text = label + speaker + " ".join(passage.text for passage in found[:_FEW])
        items.append(Item(text=text, seqs=(seq,), passages=tuple(found)))
    return items


def _is_open(passage: Passage, passages: Sequence[Passage]) -> bool:
    if passage.role == "tool" or (len(passage.stems) < 2 and not passage.identifiers):  # noqa: PLR2004 - "Why?"
        return False
    if passage.is_question:
        return passage.role == "user" and not passage.is_named and not _is_answered(passage, passages)
    if "open" not in passage.cues or (passage.role != "user" and not passage.is_named):
        return False
    return _resolved_by(passage.stems, passages[passage.index + 1 :], after=passage.seq) is None


def _is_answered(question: Passage, passages: Sequence[Passage]) -> bool:
    answer: list[Passage] = []
    for passage in passages[question.index + 1 :]:
        if passage.role == "assistant":
            if answer and answer[0].seq != passage.seq:
                break
            answer.append(passage)
        elif answer:
            break
    if not answer:
        return False
    evasive = NON_ANSWER.search(answer[0].text) or (len(answer) == 1 and answer[0].is_question)
    return not evasive or _resolved_by(question.stems, passages[question.index + 1 :], after=answer[0].seq) is not None


def _resolved_by(asked: frozenset[str], later: Sequence[Passage], *, after: int) -> Passage | None:
    """The first later statement that settles it."""
    content = frozenset(word for word in asked if word not in GENERIC_STEMS)
    for passage in later[:_LATER]:
        if passage.seq <= after or passage.is_question or "open" in passage.cues:
            continue
        shared = len(content & passage.stems)
        settles = passage.cues & {"decision", "result", "closed", "correction"}
        if shared and shared >= (0.34 if settles else 0.6) * len(content) and (shared > 1 or settles):
            return passage
    return None


_LATER: Final = 400  # sentences; what settles a question comes soon, and the search stays bounded


def resolved_entries(passages: Sequence[Passage], previous: Sequence[StateEntry]) -> list[tuple[str, int]]:
    """Open entries of the state so far that this span settles, with the ``seq`` that does."""
    labels = tuple(words_.open_question for words_ in PHRASES.values())
    found: list[tuple[str, int]] = []
    for entry in previous:
        if entry.role == "open" or (entry.role == "fact" and entry.text.startswith(labels)):
            by = _resolved_by(frozenset(stems(bare(entry.text))), passages, after=0)
            if by is not None:
                found.append((entry.id, by.seq))
    return found

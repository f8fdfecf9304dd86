"""The messages that recall chooses from, taken apart once: pieces, words, speakers, sittings."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cache, cached_property
from itertools import chain
from operator import is_
from typing import Any, Final, NamedTuple

from app.core.retrieval.question_words import WordPattern, plain_words
from app.core.retrieval.terms import terms
from app.core.text.memo import FIGURE_GROWTH, memoized
from app.core.text.patterns import compiled
from app.core.text.sentences import asks, sentences_read_once, starts_within
from app.core.text.speakers import Label, labels_of, short_name
from app.core.text.stemming import stem_language, stems_in
from app.core.text.token_counts import MESSAGE_OVERHEAD, estimate_text
from app.core.text.word_lists import GENERIC
from app.core.text.words import ascii_tokens, stems_of_tokens

SITTING_PAUSE: Final = timedelta(hours=3)  # a longer silence begins a new sitting
MAX_SITTING_PIECES: Final = 60
"""The most pieces of a sitting; a longer run of talk is split, since "the same sitting" would say nothing otherwise."""
PIECE_TOKENS: Final = 64
"""About how many tokens a piece has. One part of a long message holds the answer: the best part gives its score."""
LONG_MESSAGE_TOKENS: Final = 192  # tokens; a shorter message is one piece

LINE_TOKENS: Final = 2
"""Tokens around a recalled message, rounded up."""
NAME_TOKENS: Final = 2
"""Tokens around the name of the speaker."""

_YEAR: Final = compiled(r"[0-9](?<!\w[0-9])[0-9]{3}\b", re.ASCII)  # begins with a digit, which halves the time
_TIMES: Final = plain_words("time")
_TIME: Final = WordPattern("time")
_NUMBER: Final = WordPattern("number")
_ECHO: Final = 4  # earlier pieces; a piece that repeats their words answers them, and seldom says anything new
_COMMON: Final = 0.7
"""The weight of a word that is too common in talk to name a topic ("time", "actually", "went"), relative to another
word that is as rare in the conversation."""
_MARKS: Final = "€£–—…“”„«»•"
"""Marks that separate words as other marks do. Once they are replaced, much English text is plain ASCII."""
_INFORMATION_CAP: Final = 30
"""The sum of the rarities of a piece's words from which a higher sum makes no difference. Little is answered by a piece
with a low sum, such as "ok, thanks"."""
_SINGLY: Final = 64
"""How many stems are looked up one by one; for more it is faster to look up all stems at once."""
_A_MESSAGE: Final = 1_200
_A_CHARACTER: Final = 11
"""Bytes that a corpus takes for texts, counts and places: so many for each message, and for each character."""


class Source(NamedTuple):
    """A message that may be recalled."""

    seq: int
    role: str
    text: str
    at: datetime
    tokens: int
    said_by: str = ""
    """The speaker's name as it was given with the message; empty without one."""


class Piece(NamedTuple):
    """A message, or a part of a long one: what is matched and scored."""

    owner: int
    """The index of its message."""
    start: int
    end: int
    tokens: int


class Words(NamedTuple):
    """What is known of a text, whatever the question is."""

    counts: Mapping[str, int]
    length: int
    is_question: bool
    asks: float
    """For a piece that ends with a question, the share of its sentences that are questions."""
    has_question: bool
    says_when: bool


@memoized()
def words_of(text: str) -> Words:
    """Take a text apart."""
    if "'" not in text:  # contractions ("don't") would be counted differently after this
        text = with_plain_marks(text)
    if text.isascii():  # sets of words find the same as patterns, in a third of the time
        tokens = ascii_tokens(text)
        counts = Counter(stems_of_tokens(tokens))
        says_when = not _TIMES.isdisjoint(tokens) or _YEAR.search(text) is not None
    else:
        counts = Counter(terms(text))
        says_when = _TIME.search(text) is not None
    has_question = "?" in text or "？" in text
    is_question = has_question and asks(text)
    return Words(
        counts=counts,
        length=max(counts.total(), 1),
        is_question=is_question,
        asks=_share_of_questions(text) if is_question else 0.0,
        has_question=has_question,
        says_when=says_when,
    )


def with_plain_marks(text: str) -> str:
    """The text with an ASCII mark in place of each usual mark that separates words and is not ASCII."""
    for mark in () if text.isascii() else _MARKS:
        text = text.replace(mark, "|")  # several times as fast as by str.translate()
    return text


def words_in(text: str, language: str | None) -> Words:
    """``words_of`` a text, with the stems that ``stems_in`` gives for the language."""
    return words_of(text) if language is None else _words_in(text, language)


@memoized()
def _words_in(text: str, language: str) -> Words:
    counts = Counter(terms(text, language))
    return words_of(text)._replace(counts=counts, length=max(counts.total(), 1))


@cache
def _common_stems(language: str | None) -> frozenset[str]:
    return frozenset(stem for word in GENERIC for stem in stems_in(word, language))


def _share_of_questions(text: str) -> float:
    asking = list(map(asks, sentences_read_once(text)))  # nobody else needs the sentences: ``Words`` are kept
    return sum(asking) / max(len(asking), 1)


def _name_tokens(source: Source) -> int:
    return estimate_text(short_name(source.said_by)) + NAME_TOKENS if source.said_by else 0


@memoized(FIGURE_GROWTH)
def has_number(text: str) -> bool:
    """Whether a text states a number."""
    return _NUMBER.search(text) is not None


class Postings:
    """The pieces that hold each stem. They are counted for every stem at once, but listed only when asked for.

    Args:
        counts: For each piece, how often it holds each stem.
        before: The postings of the same pieces without the last ones.
    """

    def __init__(self, counts: Sequence[Mapping[str, int]], before: Postings | None = None) -> None:
        self._counts = counts
        self._found: dict[str, list[int]] = {}
        self._has_all = False
        """Whether every stem was looked for."""
        self.holding: Counter[str] = Counter()
        """How many pieces hold each stem."""
        kept = len(before._counts) if before else 0  # noqa: SLF001 - one of its own kind
        if before:
            self.holding.update(before.holding)
            self._has_all = before._has_all  # noqa: SLF001
            found = {stem: places.copy() for stem, places in before._found.copy().items()}  # noqa: SLF001
            self._found = self._with_pieces_from(found, kept, of_all=self._has_all)
        self.holding.update(chain.from_iterable(counts[kept:]))

    def __contains__(self, stem: object) -> bool:
        """Whether any piece holds the stem."""
        return stem in self.holding

    def get(self, stem: str, default: Sequence[int] = ()) -> Sequence[int]:
        """The pieces that hold a stem, in order."""
        if stem not in self.holding:
            return default
        if stem not in self._found:
            self._find_stem(stem)
        return self._found[stem]

    def _find_stem(self, stem: str) -> None:
        if len(self._found) < _SINGLY:
            self._found[stem] = [index for index, counts in enumerate(self._counts) if stem in counts]
            return
        self._found = self._with_pieces_from({}, 0, of_all=True)
        self._has_all = True  # set last: another thread may read it meanwhile

    def _with_pieces_from(self, found: dict[str, list[int]], first: int, *, of_all: bool) -> dict[str, list[int]]:
        for index, counts in enumerate(self._counts[first:], first):
            for stem in counts:
                if stem in found:
                    found[stem].append(index)
                elif of_all:
                    found[stem] = [index]
        return found


class Echoes(Sequence[float]):
    """For each piece, the rarity of its words that also occur in the few pieces before it in the same run of talk.

    The pieces of a long message have no echo (0), since a long answer also says more about the words that it repeats.

    An echo is computed when it is asked for: all of them together take as long as all other features together.

    Args:
        words: The words of each piece.
        runs: The number of each piece's run.
        owners: The index of each piece's message.
        rarities: The rarity of each stem.
        before: The echoes of the same pieces without the last ones.
    """

    def __init__(
        self,
        words: Sequence[Words],
        *,
        runs: Sequence[int],
        owners: Sequence[int],
        rarities: Mapping[str, float],
        before: Echoes | None,
    ) -> None:
        self._words = words
        self._runs = runs
        self._owners = owners
        self._parts = Counter(owners)
        self._rarities = rarities
        self._found: dict[int, list[str]] = before._found.copy() if before else {}  # noqa: SLF001 - one of its own kind
        """The repeated words of each piece, by the index of the piece."""

    def __len__(self) -> int:
        return len(self._words)

    def __getitem__(self, index: Any) -> Any:
        place = range(len(self))[index]
        stems = self._found.get(place)
        if stems is None:
            stems = self._found[place] = list(self._echoed_stems(place))
        return sum(map(self._rarities.__getitem__, stems)) / 30

    def _echoed_stems(self, place: int) -> Iterator[str]:
        words, runs = self._words, self._runs
        if self._parts[self._owners[place]] > 1:
            return
        before = [words[near].counts for near in range(max(place - _ECHO, 0), place) if runs[near] == runs[place]]
        for stem in words[place].counts if before else ():
            for counts in before:
                if stem in counts:
                    yield stem
                    break


class Corpus:
    """Messages in order, with the statistics of the whole conversation where they are known.

    Everything but ``sources`` is listed by piece; a message of usual length is one piece.

    Args:
        sources: The messages in order of ``seq``. Gaps are allowed; scores do not spread over them.
        documents: How many messages of the whole conversation hold each stem; ``None``: counted in ``sources``.
        total: How many messages the whole conversation has; ``None``: as many as ``sources``.
        language: The conversation's language, for sources whose own language is unknown.
        before: The same conversation when it was shorter, or another one. What both have is not computed again.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        documents: Mapping[str, int] | None = None,
        total: int | None = None,
        language: str | None = None,
        before: Corpus | None = None,
    ) -> None:
        self.sources = tuple(sources)
        labels = labels_of([(source.role, source.text) for source in self.sources])
        self.speakers = frozenset(label.name.lower() for label in labels if label)
        self.pieces = list(_pieces(self.sources))
        self.owners = [piece.owner for piece in self.pieces]
        """The index of each piece's message."""
        self.total = max(total or 0, len(self.pieces))
        self.texts = list(_piece_texts(self.sources, labels, self.pieces))
        self.language = stem_language([source.text for source in self.sources], language)
        """The language by whose stems texts and question are compared; ``None``: English and Russian."""
        self.words = [words_in(text, self.language) for text in self.texts]
        speakers = [
            label.name.lower() if label else source.role for source, label in zip(self.sources, labels, strict=True)
        ]
        self.piece_speakers = list(map(speakers.__getitem__, self.owners))
        self.sittings, self._runs = self._sitting_and_run_numbers()
        shorter = before if before and before.is_prefix_of(self) else None
        self.postings: Postings = Postings(
            [words.counts for words in self.words], shorter.postings if shorter else None
        )
        self._documents = documents or {}
        self.rarities = self._all_rarities()
        self.echoes: Echoes = Echoes(
            self.words,
            runs=self._runs,
            owners=self.owners,
            rarities=self.rarities,
            before=shorter.echoes if shorter else None,
        )
        self._neighbours: dict[int, list[int]] = {}
        self.labelled_roles: dict[str, frozenset[str]] = {}
        """The results of ``rendering.labelled_roles`` by locale, kept because every packing asks for them."""

    def is_prefix_of(self, other: Corpus) -> bool:
        """Whether the other corpus begins with exactly these pieces."""
        count = len(self.pieces)
        is_known = count <= len(other.pieces) and all(map(is_, self.words, other.words))
        return is_known and self.pieces == other.pieces[:count] and self._runs == other._runs[:count]

    @property
    def size(self) -> int:
        """About how many bytes the corpus takes in memory."""
        return sum(_A_MESSAGE + _A_CHARACTER * len(source.text) for source in self.sources)

    def source(self, index: int) -> Source:
        """The message that a piece belongs to."""
        return self.sources[self.pieces[index].owner]

    def rarity(self, stem: str) -> float:
        """Inverse document frequency, never negative; 0 for a stem that no message holds."""
        return self.rarities.get(stem, 0.0)

    def documents(self, stem: str) -> int:
        """How many messages hold a stem."""
        return max(self._documents.get(stem, 0), self.postings.holding.get(stem, 0))

    def _all_rarities(self) -> dict[str, float]:
        holding = dict(self.postings.holding)
        holding |= {stem: max(count, holding.get(stem, 0)) for stem, count in self._documents.items() if count}
        by_count = {
            count: max(math.log((self.total + 1) / (count + 0.5)), 0.0) for count in frozenset(holding.values())
        }
        rarities = dict(zip(holding, map(by_count.__getitem__, holding.values()), strict=True))
        rarities.update({stem: _COMMON * rarities[stem] for stem in _common_stems(self.language) & holding.keys()})
        return rarities

    @cached_property
    def answers_at_length(self) -> float:
        """How much longer the assistant's messages are than the user's: the logarithm of the ratio, 0 at least.

        It is 0 where messages begin with names: the speakers are then people, whichever role they have.
        """
        by_role: dict[str, list[int]] = {"user": [], "assistant": []}
        for source in self.sources:
            by_role.get(source.role, []).append(source.tokens)
        if self.speakers or not all(by_role.values()):
            return 0.0
        user, assistant = (sum(tokens) / len(tokens) for tokens in by_role.values())
        return max(math.log(max(assistant, 1) / max(user, 1)), 0.0)

    @cached_property
    def share_of_tools(self) -> Fraction:
        """The share of all tokens that are in the results of tools."""
        whole = sum(source.tokens for source in self.sources)
        return Fraction(sum(source.tokens for source in self.sources if source.role == "tool"), max(whole, 1))

    def neighbours(self, distance: int) -> list[int]:
        """For each piece, the index of the piece ``distance`` places after it in the same run of talk; -1: none."""
        found = self._neighbours.get(distance)
        if found is None:
            runs, outside = self._runs, [-1] * min(abs(distance), len(self._runs))
            others = [*runs[distance:], *outside] if distance > 0 else [*outside, *runs[: len(runs) - len(outside)]]
            places = range(distance, len(runs) + distance)
            found = [place if run == other else -1 for place, run, other in zip(places, runs, others, strict=True)]
            self._neighbours[distance] = found
        return found

    @cached_property
    def costs(self) -> list[int]:
        """The tokens that each message takes when it is recalled."""
        return [
            max(source.tokens - MESSAGE_OVERHEAD, 1) + LINE_TOKENS + _name_tokens(source) for source in self.sources
        ]

    @cached_property
    def vocabulary(self) -> str:
        """All stems, each on a line of its own."""
        return "\n".join(["", *self.postings.holding, ""])

    @cached_property
    def lengths(self) -> list[int]:
        """How many words each piece has."""
        return [words.length for words in self.words]

    @cached_property
    def sitting_lengths(self) -> list[int]:
        """How many words each sitting has."""
        lengths = [0] * (self.sittings[-1] + 1 if self.sittings else 0)
        for sitting, length in zip(self.sittings, self.lengths, strict=True):
            lengths[sitting] += length
        return lengths

    @cached_property
    def fixed_features(self) -> dict[str, list[float]]:
        """The features that do not depend on the question, by name."""
        words, rarity = self.words, self.rarities.__getitem__
        carried = [sum(map(rarity, item.counts)) for item in words]
        return {
            "asks": [item.asks for item in words],
            "has_question": [float(item.has_question) for item in words],
            "information": [min(value / _INFORMATION_CAP, 1.0) for value in carried],
            "mean_information": [
                value / max(len(item.counts), 1) / 6 for value, item in zip(carried, words, strict=True)
            ],
            "says_when": [float(item.says_when) for item in words],
        }

    def _sitting_and_run_numbers(self) -> tuple[list[int], list[int]]:
        """The number of each piece's sitting, and of its run: a sitting without a gap."""
        sittings: list[int] = []
        runs: list[int] = []
        sitting, run, length = 0, 0, 0
        before: Source | None = None
        for piece in self.pieces:
            source = self.sources[piece.owner]
            length += 1
            if before is not None and (abs(source.at - before.at) > SITTING_PAUSE or length > MAX_SITTING_PIECES):
                sitting, run, length = sitting + 1, run + 1, 1
            elif before is not None and source.seq - before.seq > 1:
                run += 1
            sittings.append(sitting)
            runs.append(run)
            before = source
        return sittings, runs


def _pieces(sources: Iterable[Source]) -> Iterator[Piece]:
    for index, source in enumerate(sources):
        if source.tokens <= LONG_MESSAGE_TOKENS or not source.text:
            yield Piece(index, 0, len(source.text), source.tokens)
        else:
            yield from _parts_of_source(index, source)


def _piece_texts(sources: Sequence[Source], labels: Sequence[Label | None], pieces: Iterable[Piece]) -> Iterator[str]:
    for owner, start, end, _ in pieces:
        label = labels[owner]
        yield sources[owner].text[label.end if label and start == 0 else start : end]


def _parts_of_source(index: int, source: Source) -> Iterator[Piece]:
    text = source.text
    step = max(len(text) * PIECE_TOKENS // source.tokens, 1)
    start = 0
    while start < len(text):
        end = _best_cut(text, start, start + step)
        yield Piece(index, start, end, math.ceil(source.tokens * (end - start) / len(text)))
        start = end


def _best_cut(text: str, start: int, about: int) -> int:
    if len(text) - about < (about - start) // 2:
        return len(text)  # a small rest stays with this piece
    low = start + (about - start) * 2 // 3
    starts = starts_within(text, low, about)
    lines = [place for place in starts if text[place - 1] == "\n"]
    if starts:
        return (lines or starts)[-1]
    comma, blank = text.rfind(", ", low, about - 1), text.rfind(" ", low, about)
    return comma + 2 if comma > 0 else blank + 1 if blank > 0 else max(about, start + 1)

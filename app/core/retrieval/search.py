"""Finds messages by words: takes a query apart, ranks the messages that fit it, and chooses the words to show."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.core.retrieval.corpus import Corpus, Source
from app.core.retrieval.features import features
from app.core.retrieval.question import question_of
from app.core.retrieval.weights import FITTED
from app.core.text.patterns import compiled
from app.core.text.sentences import is_code, sentence_spans
from app.core.text.stemming import stem_in, stems_in
from app.core.text.words import stems, words

SNIPPET_CHARACTERS: Final = 300  # characters
WORD_SHARE: Final = 0.7
"""The share of a score that comes from the query's own words; the rest is the score that recall gives the message."""

_QUOTED: Final = compiled(r"\"([^\"]*)\"|[“„]([^“”„]*)[”“]|«([^«»]*)»|「([^「」]*)」|『([^『』]*)』")
_LOOKED_AT: Final = 8_000  # characters of a long message, around the words found, that are cut into sentences
_MIN_STEM_LENGTH: Final = 2


@dataclass(frozen=True, slots=True)
class Query:
    """A query taken apart."""

    text: str
    """The whole query in one line."""
    phrases: tuple[str, ...]
    """The phrases in quotation marks, which have to be found literally."""
    stems: tuple[str, ...]
    """The stems of its content words, each once."""
    language: str | None = None
    """The language whose stems these are. Messages are compared in the same language."""

    @property
    def literal(self) -> tuple[str, ...]:
        """What must be found literally: the phrases, or the whole query if it has no words."""
        return self.phrases or (self.text,)

    @property
    def literal_stems(self) -> tuple[str, ...]:
        """The stems that a message with all the phrases has, unless one of them begins or ends within a word.

        Numbers are left out: one may begin a longer number.
        """
        found = (word for phrase in self.phrases for word in stems(phrase))
        return tuple(dict.fromkeys(word for word in found if len(word) >= _MIN_STEM_LENGTH and not word[0].isdigit()))

    def in_language(self, language: str | None) -> Query:
        """This query with the stems of a language."""
        if language == self.language:
            return self
        return replace(self, stems=_usable_stems(self.text, language), language=language)


@dataclass(frozen=True, slots=True)
class RankedMessage:
    """A message that fits a query. The score, from 0 to 1, can be compared only with others of the same query."""

    source: Source
    score: float
    language: str | None = None
    """The language by whose stems message and query were compared."""


def query_of(text: str) -> Query:
    """Take a query apart; its ``text`` is empty if the query has nothing but spaces and empty quotes."""
    line = " ".join(text.split())
    quoted_phrases = (next(filter(None, found.groups()), "").strip() for found in _QUOTED.finditer(line))
    phrases = tuple(dict.fromkeys(filter(None, quoted_phrases)))
    if not phrases and not _QUOTED.sub("", line).strip():
        line = ""
    return Query(text=line, phrases=phrases, stems=_usable_stems(line, None))


def _usable_stems(line: str, language: str | None) -> tuple[str, ...]:
    # In scripts without spaces a single sign is not a word: such text is compared by pairs of signs.
    usable = (word for word in stems_in(line, language) if len(word) >= _MIN_STEM_LENGTH or word.isascii())
    return tuple(dict.fromkeys(usable))


def has_phrases(text: str, literal: Sequence[str]) -> bool:
    """Whether a text has all of these phrases literally.

    Case and kinds of spaces are ignored, and whether a letter is written as one character or as several.
    """
    line = _without_case(" ".join(text.split()))
    return all(_without_case(wanted) in line for wanted in literal)


def _without_case(text: str) -> str:
    """A text for comparisons without case, each letter by itself, since a phrase may end within a word of the text.

    ``lower`` looks at a letter's neighbours, and ``casefold`` makes two letters of some.
    """
    if text.isascii():
        return text.lower()
    folded = ((letter, letter.casefold()) for letter in unicodedata.normalize("NFC", text))
    return "".join(fold if len(fold) == 1 else letter.lower() for letter, fold in folded)


def rank_messages(
    query: Query,
    sources: Sequence[Source],
    *,
    documents: Mapping[str, int] | None = None,
    total: int | None = None,
    language: str | None = None,
) -> list[RankedMessage]:
    """The messages that have a word of the query, best first; of two equal ones the newer comes first.

    Args:
        query: The query.
        sources: The messages to choose from, by ``seq``.
        documents: As for ``Corpus``.
        total: As for ``Corpus``.
        language: As for ``Corpus``.
    """
    corpus = Corpus(sources, documents=documents, total=total, language=language)
    query = query.in_language(corpus.language)
    hits = sorted({index for word in query.stems for index in corpus.postings.get(word, ())})
    if not hits:
        return []
    found = features(corpus, question_of(query.text, corpus.speakers, language=corpus.language))
    own, covered = found["own"], found["covered"]
    found = {  # ``user_says`` is left out: a search is for the words, whoever said them
        name: values for name, values in found.items() if name != "user_says" and any(values)
    }
    model_scores = {index: sum(FITTED[name] * values[index] for name, values in found.items()) for index in hits}
    least, most = min(model_scores.values()), max(model_scores.values())
    span = (most - least) or 1.0
    best: dict[int, float] = {}
    for index in hits:
        owner = corpus.pieces[index].owner
        fits = min(own[index] + covered[index], 2.0) / 2
        score = round(WORD_SHARE * fits + (1 - WORD_SHARE) * (model_scores[index] - least) / span, 4)
        best[owner] = max(best.get(owner, 0.0), score)
    ranked = [RankedMessage(corpus.sources[owner], score, corpus.language) for owner, score in best.items()]
    return sorted(ranked, key=lambda item: (-item.score, -item.source.seq))


def snippet(text: str, query: Query) -> str:
    """The sentences of a text that fit the query best, verbatim, in at most ``SNIPPET_CHARACTERS`` characters.

    The query must have the stems of the language by which the text was found (``Query.in_language``).
    """
    text = _part_near_hit(text, query)
    spans = _snippet_spans(text)
    if not spans:
        return text.strip()[:SNIPPET_CHARACTERS]
    wanted = frozenset(query.stems)
    scores = [_sentence_score(text[start:end], query, wanted) for start, end in spans]
    first = last = max(range(len(spans)), key=lambda index: (scores[index], -index))
    start, end = spans[first]
    if end - start > SNIPPET_CHARACTERS:
        return _part_of_sentence(text[start:end], query, wanted)
    while True:
        forward = last + 1 < len(spans) and spans[last + 1][1] - start <= SNIPPET_CHARACTERS
        backward = first > 0 and end - spans[first - 1][0] <= SNIPPET_CHARACTERS
        if forward and not (backward and scores[first - 1] > scores[last + 1]):
            last += 1
        elif backward and scores[first - 1] > 0:
            first -= 1
        else:
            return text[start:end]
        start, end = spans[first][0], spans[last][1]


def _sentence_score(sentence: str, query: Query, wanted: frozenset[str]) -> float:
    literal = sum(has_phrases(sentence, [phrase]) for phrase in query.literal)
    return 3 * literal + len(wanted & set(stems_in(sentence, query.language)))


def _snippet_spans(text: str) -> list[tuple[int, int]]:
    # A snippet is a single line of the text.
    spans = sentence_spans(text)
    return [(start, end) for start, end in spans if "\n" not in text[start:end] or is_code(text[start:end])]


def _part_near_hit(text: str, query: Query) -> str:
    if len(text) <= _LOOKED_AT:
        return text
    place = _first_hit(text, query, frozenset(query.stems))
    start = max(0, place - _LOOKED_AT // 2)
    return text[start : start + _LOOKED_AT]


def _part_of_sentence(sentence: str, query: Query, wanted: frozenset[str]) -> str:
    start = max(
        0, min(_first_hit(sentence, query, wanted) - SNIPPET_CHARACTERS // 3, len(sentence) - SNIPPET_CHARACTERS)
    )
    if start and (blank := sentence.find(" ", start, start + SNIPPET_CHARACTERS // 4)) >= 0:
        start = blank + 1
    part = sentence[start : start + SNIPPET_CHARACTERS]
    if start + SNIPPET_CHARACTERS < len(sentence) and (blank := part.rfind(" ", SNIPPET_CHARACTERS * 3 // 4)) >= 0:
        part = part[:blank]
    return part.strip()


def _first_hit(text: str, query: Query, wanted: frozenset[str]) -> int:
    lowered = _lower_in_place(text)
    for phrase in query.literal:
        if (place := lowered.find(_lower_in_place(phrase))) >= 0:
            return place
    for word in dict.fromkeys(words(text)):
        if stem_in(word, query.language) in wanted and (place := lowered.find(word)) >= 0:
            return place
    # A word may be written otherwise than it is compared: with another apostrophe, accent or form of a letter.
    place = 0
    for piece in text.split():
        place = text.index(piece, place)
        if not wanted.isdisjoint(stems_in(piece, query.language)):
            return place
        place += len(piece)
    return 0


def _lower_in_place(text: str) -> str:
    """A text in lower case in which every letter has the place that it has in the text."""
    lowered = text.lower()
    # The Turkish capital I with a dot becomes two characters.
    return lowered if len(lowered) == len(text) else "".join(letter.lower()[:1] for letter in text)

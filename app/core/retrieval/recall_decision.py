"""Decides whether a message needs earlier messages that are not served: by words alone, without a model.

This is used in chat turns only; a client that gives a ``query`` has decided already. Nothing is recalled for a message
that is one of these:

* ``no_content``: it has no content words ("ok?", "и что?", "好的"), and asks neither when nor how many;
* ``courtesy``: a greeting, thanks, a farewell, a bare yes or no;
* ``self_contained``: an instruction that brings its own material ("Translate into French: …"), and refers to nothing
  that was said;
* ``unknown``: none of the messages that are not served has a word of it, or a word of the kind that it asks for;
* ``covered``: a served message or state entry, or neighbouring served messages, have all its words. They must also
  have the exact values of those messages not served that have most of its words: an entry without a number does not
  cover a question about that number. Words that only served messages have are not counted. If a question refers back
  to the two messages before it, these two do not cover it.

For every other message recall is ``needed``. The lists of words are under ``questions`` in the files of ``languages``.
In a language without such lists only the words of the message itself count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final, Literal

from app.core.retrieval.corpus import Corpus, Words, words_in
from app.core.retrieval.question import Question
from app.core.retrieval.related_words import forms_of, stems_of_kind
from app.core.retrieval.terms import is_pair
from app.core.text.languages.combined_words import alternatives
from app.core.text.languages.loading import languages
from app.core.text.patterns import compiled
from app.core.text.values import Value, ValueIndex, values

Decision = Literal["needed", "no_content", "courtesy", "self_contained", "unknown", "covered"]

COVERING_SHARE: Final = 0.95
"""A place that has this share of the weight of a question's words covers it: only words that say little are missing."""
NEIGHBOURING_TEXTS: Final = 3
"""Served messages next to each other that are read as one: a question and its answer share few words."""
MESSAGES_BEFORE: Final = 2
"""How many messages before a question it may refer back to."""
_COURTESY_WORDS: Final = 6
_MAX_TEXTS_ABOUT: Final = 8  # messages, or pieces of long ones, whose values are looked for
_MAX_PLACES: Final = 24  # served texts in which the values are looked for


_COURTESIES: Final = alternatives("questions", "courtesies")
"""Words of messages without content, such as greetings and thanks."""

_FILLERS: Final = alternatives("questions", "fillers")
_SIGNS: Final = f"[{''.join(one.questions.courtesy_signs for one in languages())}]+"

_INSTRUCTIONS: Final = alternatives("questions", "instructions")
"""Words that ask to work on a text in the same message."""

_POINTS_BACK: Final = alternatives("questions", "points_back")
"""Words that refer to something that was said before or is known already."""

_MATERIAL: Final = compiled(r"[:：]\s*+\S.{15}|```|\n[^\S\n]*+\S.{15}|[\"“«「『][^\"”»」』]{12}", re.DOTALL)
_MATERIAL_IN_SIGNS: Final = compiled(r"[:：]\s*[\u3400-\u9fff]{4}")
_BEFORE_MATERIAL: Final = compiled(r"\A[^:：\n`\"“«「『]*")
_COURTEOUS: Final = compiled(rf"(?<!\w)(?:{_COURTESIES}|{_FILLERS})(?!\w)|{_SIGNS}", re.IGNORECASE)
_HAS_COURTESY: Final = compiled(rf"(?<!\w)(?:{_COURTESIES})", re.IGNORECASE)
_LETTER: Final = compiled(r"[^\W_]")
_INSTRUCTS: Final = compiled(rf"\A\W*(?:{_INSTRUCTIONS})", re.IGNORECASE)
_REFERS: Final = compiled(_POINTS_BACK, re.IGNORECASE)


def decide_recall(
    text: str,
    question: Question,
    corpus: Corpus,
    *,
    served: Sequence[str],
    seqs: Collection[int],
    entries: Sequence[str] = (),
) -> Decision:
    """Decide whether a message needs more than is served.

    Args:
        text: The message.
        question: The message, taken apart.
        corpus: The messages that may be recalled, served ones included.
        served: The texts of messages that are served before it, in order.
        seqs: The positions of the served messages.
        entries: The entries of the state. Each is looked at alone, since neighbours may be about different things.
    """
    if settled := decide_recall_without_history(text, question):
        return settled
    weights = _unserved_word_shares(question, corpus, seqs)
    if not weights:
        asks_for_a_day = any(
            question.nearness(source.at.date()) >= 1 for source in corpus.sources if source.seq not in seqs
        )
        return "needed" if asks_for_a_day or _asks_for_unserved_kind(question, corpus, seqs) else "unknown"
    elsewhere = served[:-MESSAGES_BEFORE] if question.refers_back else served
    asked = _asked_word_shares(question, corpus, weights)
    entry_words, message_words = (
        [(text, words_in(text, corpus.language)) for text in texts] for texts in (entries, elsewhere)
    )
    places = [
        *_places_covering(asked, entry_words, together=1),
        *_places_covering(asked, message_words, together=NEIGHBOURING_TEXTS),
    ]
    return "covered" if places and _hold_values(places, _best_unserved(weights, corpus, seqs), corpus) else "needed"


def decide_recall_without_history(text: str, question: Question) -> Decision | None:
    """The decision by the message alone; ``None`` if the conversation is needed for it."""
    if _is_courtesy(text):
        return "courtesy"
    asks_for_more = question.months or question.years or question.asks_when or question.asks_number
    if not question.stems and not asks_for_more:
        return "no_content"
    return "self_contained" if _is_self_contained(text) else None


def _is_courtesy(text: str) -> bool:
    short = text[:200]
    if len(text) > len(short) or len(short.split()) > _COURTESY_WORDS or not _HAS_COURTESY.search(short):
        return False
    return _LETTER.search(_COURTEOUS.sub("", short)) is None


def _is_self_contained(text: str) -> bool:
    if not _INSTRUCTS.search(text) or not (_MATERIAL.search(text) or _MATERIAL_IN_SIGNS.search(text)):
        return False
    asked = _BEFORE_MATERIAL.search(text)
    return _REFERS.search(asked[0] if asked else text) is None


def _unserved_word_shares(question: Question, corpus: Corpus, seqs: Collection[int]) -> dict[str, float]:
    found = {
        stem: corpus.rarity(stem) * weight
        for stem, weight in question.stems.items()
        if any(corpus.source(index).seq not in seqs for index in corpus.postings.get(stem, ()))
    }
    total = sum(found.values())
    return {stem: rarity / total for stem, rarity in found.items()} if total > 0 else {}


def _asked_word_shares(question: Question, corpus: Corpus, unserved: Collection[str]) -> dict[str, float]:
    """The shares of the question's words that unserved messages have, or no message has; the latter count as rarest."""
    nowhere = math.log(2 * (corpus.total + 1))
    never_said = (stem for stem in question.stems if not corpus.documents(stem) and not is_pair(stem))
    asked = chain((stem for stem in question.stems if stem in unserved), never_said)
    found = {stem: question.stems[stem] * (corpus.rarity(stem) or nowhere) for stem in asked}
    total = sum(found.values())
    return {stem: rarity / total for stem, rarity in found.items()}


def _asks_for_unserved_kind(question: Question, corpus: Corpus, seqs: Collection[int]) -> bool:
    related = {other for stem in question.stems for other in stems_of_kind(stem) | forms_of(stem)}
    holding = {index for other in related for index in corpus.postings.get(other, ())}
    return any(corpus.source(index).seq not in seqs for index in holding)


def _places_covering(weights: Mapping[str, float], served: Sequence[tuple[str, Words]], *, together: int) -> list[str]:
    """The served texts that hold enough of the words, alone or with their neighbours.

    An earlier question with the same words is no answer, and does not count.

    Args:
        weights: The weights of the words.
        served: The served texts in order, each with its words.
        together: How many neighbouring texts are read as one.
    """
    bags = [weights.keys() & words.counts.keys() for _, words in served]
    bags = [
        set[str]() if words.is_question and sum(weights[stem] for stem in bag) >= COVERING_SHARE else bag
        for (_, words), bag in zip(served, bags, strict=True)
    ]
    found: dict[int, str] = {}
    for start in range(len(bags)):
        window = range(start, min(start + together, len(bags)))
        covered = set[str]().union(*bags[start : window.stop])
        if sum(weights[stem] for stem in covered) >= COVERING_SHARE:
            found.update((place, served[place][0]) for place in window)
    return list(found.values())


def _best_unserved(weights: Mapping[str, float], corpus: Corpus, seqs: Collection[int]) -> list[int]:
    weight_by_piece: dict[int, float] = {}
    for stem, weight in weights.items():
        for index in corpus.postings.get(stem, ()):
            if corpus.source(index).seq not in seqs:
                weight_by_piece[index] = weight_by_piece.get(index, 0.0) + weight
    most = max(weight_by_piece.values(), default=0.0)
    best = islice(
        (index for index in sorted(weight_by_piece, reverse=True) if weight_by_piece[index] >= COVERING_SHARE * most),
        _MAX_TEXTS_ABOUT,
    )
    after = corpus.neighbours(1)
    return list(dict.fromkeys(chain.from_iterable((index, after[index]) for index in best)))


def _hold_values(places: Sequence[str], about: Sequence[int], corpus: Corpus) -> bool:
    wanted = list(_values_of(about, corpus))
    if not wanted:
        return True
    known_values = ValueIndex()
    for text in places[:_MAX_PLACES]:
        known_values.add(1, text)
    return all(known_values.holds(value) for value in wanted)


def _values_of(about: Sequence[int], corpus: Corpus) -> Iterator[Value]:
    for index in about:
        if index >= 0:
            yield from values(corpus.texts[index], corpus.source(index).at)

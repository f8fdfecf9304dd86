"""Completes a question from its conversation: the people it names, its mistyped words, the words it refers back to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from app.core.retrieval.corpus import Corpus, with_plain_marks
from app.core.retrieval.question import ROLES, Question, question_of
from app.core.retrieval.related_words import forms_of
from app.core.retrieval.terms import terms, word_count
from app.core.retrieval.typos import corrected_stem
from app.core.text.languages.combined_words import alternatives
from app.core.text.languages.loading import languages
from app.core.text.patterns import compiled
from app.core.text.sentences import asks
from app.core.text.stemming import stem_in

_SPEAKERS: Final = 2  # with more speakers it is unclear who is called
_NAME: Final = compiled(r"(?<![\w'’])(?:[A-Z][a-z]+|[А-ЯЁ][а-яё]+)|[\u3400-\u9fff]{2,}")
_SIGN: Final = "\u3400"  # Chinese writing begins here
_SIGNS: Final = (2, 3)  # how many signs a Chinese name has
_PARTICLE: Final = 1  # sign that may stand between a Chinese name and the mark after it
_NAMES: Final = 16  # names of a question that are looked up; a question with more is a text
_UNKNOWN: Final = 16  # unknown words of a question that are corrected; a question with more is a text
_MAX_PIECES_WITH_WORD: Final = 500
"""A word in more pieces than this is not a name by which somebody is called."""
_SAYS: Final = 3
"""How many times as often a speaker has to be called by a name as to say it: people seldom say their own name."""
_GREETED: Final = 2  # points for a name after a greeting; one next to a mark gets 1, since it may mean something else
_INTRODUCED: Final = 3  # points for a name after "my name is"
_INCOMPLETE_WORDS: Final = 2  # words; a question with more is understood by itself
_TAKEN_UP: Final = 8  # rarest words that are taken from each message before the question
_OF_BEFORE: Final = (0.3, 0.15)
"""The weights of a word in the two messages before a question, the older one first, relative to a word of its own.

The nearer message is mostly an answer. The older one, which mostly asks, says better what the talk is about.
"""


_WORD: Final = r"([^\W\d_]+)"
_BEGINS: Final = r"(?<![^\W\u3400-\u9fff])"
"""The places where a word may begin. Chinese has no spaces between words."""
_LATIN: Final = tuple(language for language in languages() if language.script == "latin")


class _NamePhrase:
    """Finds the words after phrases that introduce a name.

    A text that is ASCII but for usual marks is searched only for languages in Latin letters: this takes a third of
    the time.
    """

    def __init__(self, every: re.Pattern[str], latin: re.Pattern[str]) -> None:
        self._every = every
        self._latin = latin

    def __call__(self, text: str) -> list[str]:
        plain = text if text.isascii() else with_plain_marks(text).replace("’", "'")
        return self._latin.findall(plain) if plain.isascii() else self._every.findall(text)


_AFTER_HELLO: Final = rf"[\s,!，！]*+{_WORD}"
_greeted: Final = _NamePhrase(
    compiled(rf"{_BEGINS}(?:{alternatives('questions', 'hello')}){_AFTER_HELLO}"),
    compiled(rf"{_BEGINS}(?:{alternatives('questions', 'hello', _LATIN)}){_AFTER_HELLO}"),
)
_introduced: Final = _NamePhrase(
    compiled(rf"{_BEGINS}(?:{alternatives('questions', 'called')})\s*+{_WORD}"),
    compiled(rf"{_BEGINS}(?:{alternatives('questions', 'called', _LATIN)})\s*+{_WORD}"),
)
_AT_START: Final = compiled(rf"^\W*+{_WORD}\s*+(?:[,!?…:，！？：]|\.\.|\W*+$)")
_AT_END: Final = compiled(rf"[^\w\s.;:'’\"“”()\-]\s*+{_WORD}\W*+$")
_AT_END_OF_SENTENCE: Final = compiled(rf"[,，]\s*+{_WORD}\s*+[.!?。！？]")


def _marked_calls(text: str) -> Iterator[str]:
    at_start = _AT_START.match(text)
    yield from at_start.groups() if at_start else ()
    yield from _AT_END.findall(text)
    yield from _AT_END_OF_SENTENCE.findall(text)


def completed_question(text: str, corpus: Corpus, *, before: Sequence[str] = ()) -> Question:
    """A question taken apart, with the speakers of the corpus that it names, and with mistyped words corrected.

    A question of few words ("And what does it cost?") also gets words and names of the two messages ``before`` it.
    """
    question = question_as_written(text, corpus)
    unknown = islice((stem for stem in question.stems if not corpus.documents(stem)), _UNKNOWN)
    meant = {stem: corrected_stem(stem, corpus) for stem in unknown}
    question = replace(question, stems=dict.fromkeys((meant.get(stem, stem) for stem in question.stems), 1.0))
    goes_on = before and needs_context(text, question, corpus.language)
    return _with_words_of_earlier_messages(question, corpus, before) if goes_on else question


def question_as_written(text: str, corpus: Corpus) -> Question:
    """A question taken apart without the messages before it, with its words as they are written."""
    return question_of(text, corpus.speakers, nicknames=nicknames_in(text, corpus), language=corpus.language)


def needs_context(text: str, question: Question, language: str | None = None) -> bool:
    """Whether a question says too little to be understood without what was said before it."""
    says_little = word_count(question.stems, language) <= _INCOMPLETE_WORDS and question.named <= ROLES
    return says_little and (bool(question.stems) or asks(text))


def _with_words_of_earlier_messages(question: Question, corpus: Corpus, before: Sequence[str]) -> Question:
    earlier = [question_as_written(message, corpus) for message in before]
    taken: dict[str, float] = {}
    for message, worth in zip(earlier, _OF_BEFORE[-len(earlier) :], strict=True):
        known = sorted(filter(corpus.documents, message.stems), key=corpus.rarity, reverse=True)
        taken = dict.fromkeys(known[:_TAKEN_UP], worth) | taken
    return replace(question, stems={**taken, **question.stems}, named=question.named or earlier[0].named)


def nicknames_in(text: str, corpus: Corpus) -> dict[str, str]:
    """The names in lower case by which a text calls one of two speakers, each with the speaker that it means."""
    speakers = sorted(corpus.speakers or ("assistant", "user"))
    if len(speakers) != _SPEAKERS:
        return {}
    one, other = speakers
    names = (name for name in dict.fromkeys(_names(text)) if name not in corpus.speakers)
    found = {name: _speaker_called(name, corpus, {one: other, other: one}) for name in islice(names, _NAMES)}
    return {name: speaker for name, speaker in found.items() if speaker}


def _names(text: str) -> Iterator[str]:
    for match in _NAME.finditer(text):
        name = match[0].lower()
        if name < _SIGN:
            yield name
        else:  # Chinese has no spaces around a name
            yield from (name[at : at + count] for count in _SIGNS for at in range(len(name) - count + 1))


def _speaker_called(name: str, corpus: Corpus, others: dict[str, str]) -> str:
    """The speaker who is called by a name; empty if the name belongs to nobody or it is unclear to whom."""
    language = corpus.language
    own = stem_in(name, language)
    forms = {own, *forms_of(own)}
    indexes = {index for form in (*forms, *terms(name, language)[:1]) for index in corpus.postings.get(form, ())}
    if len(indexes) > _MAX_PIECES_WITH_WORD:
        return ""
    calls, says = dict.fromkeys(others, 0), dict.fromkeys(others, 0)
    for index in indexes:
        speaker, text = corpus.piece_speakers[index], corpus.texts[index].lower()
        if speaker not in others or (name >= _SIGN and name not in text):
            continue
        if _holds_name(_introduced(text), name, forms, language):
            calls[speaker] += _INTRODUCED
        elif _holds_name(_greeted(text), name, forms, language):
            calls[others[speaker]] += _GREETED
        elif _holds_name(_marked_calls(text), name, forms, language, between_marks=True):
            calls[others[speaker]] += 1
        else:
            says[speaker] += 1
    likely = [who for who in others if calls[who] >= max(_GREETED, _SAYS * says[who], says[others[who]] / 2)]
    return likely[0] if len(likely) == 1 else ""


def _holds_name(
    words: Iterable[str], name: str, forms: set[str], language: str | None, *, between_marks: bool = False
) -> bool:
    if name < _SIGN:
        return any(stem_in(word, language) in forms for word in words)
    # In Chinese the text between two marks may be a whole sentence that begins with the name.
    return any(word.startswith(name) and not (between_marks and len(word) > len(name) + _PARTICLE) for word in words)

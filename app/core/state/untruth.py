"""What a new text makes untrue of an earlier one, also when the model forgot to say so.

Three plain cases, each meant to miss rather than to mistake: the new text, or the message it rests on, names what goes
("MySQL instead of Postgres"); a message corrects, and the new text says another thing where the old one said one ("no,
MySQL"); what was under way is done. A thing for another purpose, or of another kind, makes nothing untrue.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.core.anchors.contrast import tells_of_another
from app.core.anchors.slots import adds, apart, purpose
from app.core.anchors.tables import TABLES
from app.core.anchors.topics import given_up, topic_of
from app.core.model.candidate import CandidateItem
from app.core.model.conversation import Message
from app.core.text.identifiers import find_identifiers
from app.core.text.languages.joined import alternatives, pattern_of, whole, words_of
from app.core.text.memo import memoized
from app.core.text.patterns import compiled
from app.core.text.rivals import RIVALS
from app.core.text.sameness import canonical
from app.core.text.sentences import sentences
from app.core.text.word_lists import TECHNOLOGY
from app.core.text.words import FRAME_STEMS, GENERIC_STEMS, stem, stems

_CORRECTS: Final = compiled(
    rf"\A\W*(?:{alternatives('claims', 'correction_begins')})|{whole('claims', 'corrects')}", re.IGNORECASE
)
_UNDER_WAY: Final = pattern_of("claims", "under_way")
_DONE: Final = pattern_of("claims", "done")
_NOT_DONE: Final = pattern_of("claims", "not_done")
_LABELLED: Final = compiled(r"([^:：\n]{2,40})[:：]\s?([^:：,;\n]{1,60})")
"""A label and its value: the value is the answer, unless the label only says who speaks."""
_SAME_TASK: Final = 0.6  # of the smaller text's content, for "was under way" and "is done" to be one task
_SAME_FRAME: Final = 0.5  # of the words around a term, for two texts to be two answers to one question
_FEW: Final = 3  # content words: an entry that says hardly more than the term that goes
_POSTINGS: Final = 64  # entries per word that are looked at

_ALTERNATIVES: Final = tuple(frozenset(map(stem, names)) for names in RIVALS.values())
"""Things of which one is chosen, that texts name without a common word around them."""


class Texts:
    """Texts by the words they hold."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(texts):
            for word in _said(text).words:
                self._places[word].append(place)

    def outdated_by(self, item: CandidateItem, messages: Mapping[int, Message]) -> list[int]:
        """Places of the texts that an item makes untrue, in order."""
        corrections = corrections_of(item, messages)
        named = frozenset[str]().union(*map(given_up, (item.text, *corrections)))
        changing = any(not adds(sentence, TABLES) for sentence in corrections)
        about = self._about(item.text, named)
        return [place for place in about if _makes_untrue(item.text, self._texts[place], named, changing=changing)]

    def _about(self, text: str, named: frozenset[str]) -> list[int]:
        """Places of texts that share a word with this one, or hold one of these words, in order."""
        said = _said(text)
        wanted = {*said.words, *named}
        wanted.update(word for group in _ALTERNATIVES if group & said.words for word in group)
        return sorted({place for word in wanted for place in self._places.get(word, ())[:_POSTINGS]})


@dataclass(frozen=True, slots=True)
class _Said:
    words: frozenset[str]
    """All content, words too common in talk included."""
    terms: frozenset[str]
    """Names, technology and values: what an answer to a question would be."""

    @property
    def content(self) -> frozenset[str]:
        return self.words - GENERIC_STEMS

    @property
    def frame(self) -> frozenset[str]:
        return self.words - self.terms


@memoized()
def _said(text: str) -> _Said:
    words = frozenset(stems(text)) - FRAME_STEMS
    terms = {word for found in find_identifiers(text) for word in stems(found.text)}
    terms |= words & _TECHNOLOGY
    labelled = _LABELLED.fullmatch(text)
    if labelled and not FRAME_STEMS.issuperset(stems(labelled[1])):
        terms |= set(stems(labelled[2]))
    return _Said(words=words, terms=frozenset(terms) & words)


_TECHNOLOGY: Final = frozenset(stem(word) for word in TECHNOLOGY)


def _makes_untrue(text: str, earlier: str, named: frozenset[str], *, changing: bool) -> bool:
    """Whether an earlier text does not hold any more once this one does.

    Args:
        text: The later one.
        earlier: The one that may not hold any more.
        named: Words of which it is said that they go.
        changing: Whether something is corrected, and not only added.
    """
    new, old = _said(text), _said(earlier)
    if canonical(text) == canonical(earlier) or not old.words:
        return False
    if _names_what_goes(new, old, named):
        return True
    if changing and _answers_otherwise(new, old) and not _is_for_another(text, earlier):
        return True
    return _completes(text, new, earlier, old)


def _names_what_goes(new: _Said, old: _Said, named: frozenset[str]) -> bool:
    """Whether a term of the old text is said to go, and the rest of it is spoken of, or there hardly is a rest."""
    gone = named & old.terms
    rest = old.content - gone
    if not gone or not (new.terms - gone or new.content - gone):
        return False
    return len(old.content) <= _FEW or len(rest & new.words) >= _SAME_FRAME * len(rest)


def _is_for_another(text: str, earlier: str) -> bool:
    """Whether both tell of different things, by their kind or by what they are for."""
    new, old = topic_of(text), topic_of(earlier)
    if new.kinds and old.kinds and not new.kinds & old.kinds:
        return True
    if apart(new, old, purpose(text, TABLES), purpose(earlier, TABLES)):
        return True
    return tells_of_another(text, new, earlier, old, TABLES, as_="correction")


def _answers_otherwise(new: _Said, old: _Said) -> bool:
    """Whether both give one answer to the same question, and not the same one."""
    if not new.terms or not old.terms or new.terms & old.terms:
        return False
    if any(group & new.terms and group & old.terms for group in _ALTERNATIVES):
        return True
    smaller = min(len(new.frame), len(old.frame))
    return bool(smaller) and len(new.frame & old.frame) >= max(1, _SAME_FRAME * max(len(new.frame), len(old.frame)))


def _completes(text: str, new: _Said, earlier: str, old: _Said) -> bool:
    """Whether the old text tells of a task under way that the new one tells is done."""
    if not _UNDER_WAY.search(earlier) or _DONE.search(earlier) or not _DONE.search(text) or _NOT_DONE.search(text):
        return False
    task = {word for word in old.content if word not in _PROGRESS_STEMS}
    done = {word for word in new.content if word not in _PROGRESS_STEMS}
    shared = task & done
    return (
        bool(shared) and len(shared) >= _SAME_TASK * min(len(task), len(done)) and not (old.terms - new.terms - shared)
    )


_PROGRESS_STEMS: Final = frozenset(map(stem, words_of("claims", "progress")))


def corrections_of(item: CandidateItem, messages: Mapping[int, Message]) -> list[str]:
    """The sentences among an item's sources that correct something."""
    return [
        sentence
        for seq in item.from_seqs
        if seq in messages and messages[seq].role in {"user", "assistant"}
        for sentence in sentences(messages[seq].content)
        if _CORRECTS.search(sentence)
    ]

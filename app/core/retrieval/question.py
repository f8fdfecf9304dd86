"""What a question asks for: its words, the people it names, its dates, the kind of its answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Final

from app.core.retrieval.question_words import WordPattern
from app.core.retrieval.related_words import forms_of
from app.core.retrieval.terms import terms
from app.core.text.patterns import any_literal
from app.core.text.stemming import stem_in, stems_in
from app.core.text.value_reader import dates_named

_WHEN, _HOW_MANY = WordPattern("when"), WordPattern("how_many")
_TOLD, _FIRST, _USER, _ASSISTANT = (WordPattern(name) for name in ("told", "first_person", "user", "assistant"))
ROLES: Final = frozenset({"user", "assistant"})
_LAST_DAY: Final = 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question taken apart."""

    stems: Mapping[str, float]
    """The stems of its content words with their weights: 1 for its own words, less for those of messages before it."""
    named: frozenset[str]
    """The speakers that the question names (none if it names all), and the roles meant by "I" or "you told me"."""
    months: frozenset[int]
    years: frozenset[int]
    days: frozenset[int]
    asks_when: bool
    asks_number: bool

    @property
    def refers_back(self) -> bool:
        """Whether it takes up words of messages before it."""
        return any(weight < 1 for weight in self.stems.values())

    def nearness(self, day: date) -> float:
        """How well a message's day fits the dates of the question, from 0 to 2."""
        if self.months:
            if day.month not in self.months or (self.years and day.year not in self.years):
                return 0.0
            distance = min((abs(day.day - asked) for asked in self.days), default=_LAST_DAY)
            return 1.0 + max(0.0, 1 - distance / 7)
        return 0.3 if day.year in self.years else 0.0


def question_of(
    text: str,
    speakers: Collection[str],
    *,
    nicknames: Mapping[str, str] = MappingProxyType({}),
    language: str | None = None,
) -> Question:
    """Take a question apart. Words that only name a speaker do not count as its content.

    Args:
        text: The question.
        speakers: Names with which messages begin, in lower case.
        nicknames: Other names in the question by which a speaker is called, each with that speaker.
        language: The language of the corpus, whose stems the question gets.
    """
    lowered = text.lower()
    named = frozenset(name for name in speakers if _is_named_in(name, lowered, language))
    names = {part for name in (*speakers, *nicknames) for part in (stem_in(name, language), *terms(name, language))}
    roles = _roles_that_answer(text)
    # "what did you tell Ann?" asks for what the assistant said, whoever Ann is
    if nicknames and roles != {"assistant"}:
        named, roles = named | frozenset(nicknames.values()), frozenset()
    everybody = frozenset(speakers) or ROLES
    found = tuple(terms(text, language))
    content = tuple(word for word in found if word not in names) or found
    dates = dates_named(text)
    return Question(
        stems=dict.fromkeys(content, 1.0),
        named=(frozenset() if named >= everybody else named) | roles,
        months=frozenset(month for _, month, _ in dates if month),
        years=frozenset(year for year, _, _ in dates if year),
        days=frozenset(day for _, _, day in dates if day),
        asks_when=_WHEN.search(text) is not None,
        asks_number=_HOW_MANY.search(text) is not None,
    )


def _roles_that_answer(text: str) -> frozenset[str]:
    # "You told me" asks for the assistant's words, "did I" for the user's.
    if _TOLD.search(text) or _ASSISTANT.search(text):
        return frozenset({"assistant"})
    return frozenset({"user"}) if _FIRST.search(text) or _USER.search(text) else frozenset()


def _is_named_in(name: str, text: str, language: str | None) -> bool:
    # Chinese has no spaces around a name.
    if not name[0].islower():
        return name in text
    if language or not name.isascii():
        found = stem_in(name, language)
        return not {found, *forms_of(found)}.isdisjoint(stems_in(text, language))
    return any_literal([name], before=r"(?<!\w)").search(text) is not None

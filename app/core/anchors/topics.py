"""Topics: the content words and exact values of a sentence, by which two sentences are compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from app.core.anchors.tables import TABLES
from app.core.text.cue_patterns import CUE_INDEX, CuePatterns, cue_matches
from app.core.text.identifiers import find_identifiers
from app.core.text.languages.combined_words import alternatives
from app.core.text.memo import memoized
from app.core.text.technologies import SERVING
from app.core.text.value_reader import plain_text_and_tokens
from app.core.text.word_lists import TECHNOLOGY
from app.core.text.words import GENERIC_STEMS, stem, tokens, words

_CLASS_OF_KIND: Final[Mapping[str, str]] = {
    "date": "time",
    "time": "time",
    "money": "number",
    "number": "number",
    "version": "version",
    "code": "code",
    "url": "address",
    "email": "address",
    "path": "address",
    "uuid": "code",
    "name": "name",
    "symbol": "name",
    "quoted": "name",
}
"""The class of each kind of value. Values of the same class can replace each other."""

EXCLUSIVE_KINDS: Final = frozenset({"database", "cache", "queue", "server", "interface", "host", "forge", "builds"})
"""Kinds of which a project usually has only one thing."""

_GIVEN_UP_CUE: Final = CuePatterns([alternatives("claims", "gone")])
_KNOWN_TECHNOLOGIES: Final = frozenset[str]().union(*SERVING.values())
_QUOTES: Final = "\"'`«»“”„"


class Topic(NamedTuple):
    """The words of a text that carry its subject, and its values by class."""

    words: frozenset[str]
    """Stems of its words, without those of its values."""
    values: frozenset[tuple[str, str]]
    """(class, value in lower case)."""
    all_stems: frozenset[str]
    """The stems of its words and of its values together."""
    classes: frozenset[str]
    """The classes of its values."""
    kinds: frozenset[str]
    """The kinds of technology that the text names; empty if it names none that is known."""

    def of_class(self, class_: str) -> frozenset[str]:
        """The values of one class."""
        return frozenset(value for known, value in self.values if known == class_)


@memoized()
def stems_of(text: str) -> frozenset[str]:
    """The stems of a text, each once."""
    return frozenset(map(stem, words(text)))


def technologies_in(text: str) -> list[str]:
    """The names of technology in a text, in lower case; they need not be written with a capital."""
    return [word for word in map(str.lower, tokens(text)) if word in TECHNOLOGY]


def technology_kinds_of(name: str) -> frozenset[str]:
    """The kinds of technology that a name in lower case may be of."""
    name_tokens = frozenset(tokens(name))
    return frozenset(kind for kind, known in SERVING.items() if not known.isdisjoint(name_tokens))


def technology_kinds_in(text: str) -> frozenset[str]:
    """The kinds of technology that a text names: the same as ``topic_of`` finds, but faster."""
    if not any(map(text.lower().__contains__, _KNOWN_TECHNOLOGIES)):
        return frozenset()
    text = without_label(text)
    named = (one.text.strip(_QUOTES).lower() for one in find_identifiers(text) if _CLASS_OF_KIND[one.kind] == "name")
    return frozenset[str]().union(*map(technology_kinds_of, (*named, *technologies_in(text))))


def topic_with_times(text: str, times: Iterable[str] = ()) -> Topic:
    """The topic of a short text; ``times`` are its words for days, such as ``Thursday``, which count as values."""
    values = {(_CLASS_OF_KIND[one.kind], one.text.strip(_QUOTES).lower()) for one in find_identifiers(text)}
    values |= {("time", day.lower()) for day in times}
    values |= {("name", word) for word in technologies_in(text)}
    value_stems = frozenset[str]().union(*(stems_of(value) for _, value in values))
    own_stems = stems_of(text) - value_stems - GENERIC_STEMS
    return Topic(
        words=own_stems,
        values=frozenset(values),
        all_stems=own_stems | (value_stems - GENERIC_STEMS),
        classes=frozenset(class_ for class_, _ in values),
        kinds=frozenset[str]().union(*(technology_kinds_of(value) for class_, value in values if class_ == "name")),
    )


@memoized()
def topic_of(text: str) -> Topic:
    """The topic of a text, including words for days of any language."""
    text = without_label(text)
    return topic_with_times(text, (day.group() for day in cue_matches(text, (table.times for table in TABLES))))


@memoized()
def without_label(text: str) -> str:
    """A text without its label: ``Rule:`` is not a subject."""
    possible_cues = CUE_INDEX.may_match_text(text)
    labels = (rule.labelled for table in TABLES if table.labels & possible_cues for rule in table.rules.values())
    label = next(cue_matches(text, labels), None)
    return text[label.end() :] if label else text


@memoized()
def given_up_stems(text: str) -> frozenset[str]:
    """Stems of what a text says is given up, in any language: ``instead of Postgres``, ``no longer Jenkins``."""
    named = [word for match in cue_matches(text.replace("’", "'"), [_GIVEN_UP_CUE]) for word in match.groups() if word]
    days = (str(token.data) for word in named for token in plain_text_and_tokens(word)[1] if token.kind == "o")
    return frozenset((*(stem(part.lower()) for word in named for part in tokens(word)), *days)) - GENERIC_STEMS

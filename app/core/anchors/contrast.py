"""Whether two statements tell of two things: the way out and the way back, the kitchen's blue and the bath's green.

A law of all of it: where nothing but the thing differs, the thing itself is what changed, and they tell of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

from app.core.anchors.pool import without_label
from app.core.anchors.saying import named_by, says
from app.core.anchors.slots import purpose
from app.core.anchors.tables import Table
from app.core.anchors.topics import Topic, stems_of
from app.core.model.anchors import AnchorType
from app.core.text.identifiers import find_identifiers
from app.core.text.languages.joined import words_of
from app.core.text.memo import memoized
from app.core.text.patterns import compiled
from app.core.text.word_lists import GENERIC, STOPWORDS, respelled
from app.core.text.words import GENERIC_STEMS, stem, tokens

_PARALLEL: Final = 2  # places of one sentence at which another has something else

_ADDED: Final = frozenset({"name", "time"})
"""Values of which there may be one more, where something is forbidden."""

_NAMING: Final = frozenset({"name", "code"})
"""Values that may say which thing it is."""

_FORM: Final = 3  # words that two statements of one form have at least
_COURTESY: Final = words_of("terms", "courtesies")
_CODE: Final = compiled(r"(?=\D*+\d)[\W\d_]*+[^\W\d_]")
_TIMES: Final = frozenset({"date", "time"})

Mark = tuple[str, int, int]
"""Language, row and member of ``Table.which``."""


def tells_of_another(
    new: str, topic: Topic, old: str, known: Topic, tables: tuple[Table, ...], *, as_: AnchorType
) -> bool:
    """Whether a new statement tells of another thing than an old one.

    Args:
        new: The later text.
        topic: What it is about.
        old: The earlier text.
        known: What that is about.
        tables: The languages that are known.
        as_: What the later one is: a correction may name what it sets right in fewer words, a choice of somebody, or
            of something by its name, may be one of several.
    """
    if restates(new, old, tables):
        return False
    if _opposed(new, topic, old, known, tables) or _owners_differ(new, old, tables):
        return True
    if _other_names(topic, known):
        return True
    if topic.kinds & known.kinds or purpose(new, tables) & purpose(old, tables):
        return False
    if as_ == "correction":
        places, parts = _parallel_places(new, old, tables)
        return (parts if says(new, tables, "moves") else places) >= _PARALLEL
    return _is_narrower(new, topic, known, tables) or _is_one_more(new, topic, old, known, tables)


def _is_one_more(new: str, topic: Topic, old: str, known: Topic, tables: tuple[Table, ...]) -> bool:
    """Whether it may add a name to others, forbid one thing more, or say the same of gate 12 as of gate 11.

    Who says what something *is* means only that.
    """
    if topic.classes <= _ADDED and says(new, tables, "forbids") and says(old, tables, "forbids"):
        return True
    if says(new, tables, "updates"):
        return False
    head = new[: _first_new(new, topic, known)]
    if {class_ for class_, _ in topic.values - known.values} <= _NAMING:
        return not any(cue.end() == len(head) for table in tables for cue in table.equates.all_in(head))
    fresh = next((one for one in find_identifiers(new) if one.start == len(head)), None)
    tail = new[fresh.start + len(fresh.text) :].lstrip() if fresh else ""
    return bool(head) and any(cue.start() == 0 for table in tables for cue in table.equates.all_in(tail))


def says_otherwise(new: str, topic: Topic, known: Topic, tables: tuple[Table, ...]) -> bool:
    """Whether a statement says that something changed, or what it is: what merely happens again tells of no change."""
    if says(new, tables, "updates") or says(new, tables, "moves"):
        return True
    head = new[: _first_new(new, topic, known)]
    return any(cue.end() == len(head) for table in tables for cue in table.equates.all_in(head))


def _first_new(text: str, topic: Topic, known: Topic) -> int:
    """The place of the first value that the old one does not have; the end where there is none."""
    fresh = {value for _, value in topic.values - known.values}
    return min((one.start for one in find_identifiers(text) if one.text.lower() in fresh), default=len(text))


def _other_names(topic: Topic, known: Topic) -> bool:
    """Whether both say which thing by a name, and what of it by another: Swift on iOS, Kotlin on Android."""
    mine, theirs = topic.of_class("name"), known.of_class("name")
    return not mine & theirs and min(len(mine), len(theirs)) >= _PARALLEL


def _opposed(new: str, topic: Topic, old: str, known: Topic, tables: tuple[Table, ...]) -> bool:
    """Whether both name another one of a row, and something else differs too."""
    mine, theirs = _marks(new, tables), _marks(old, tables)
    rows = {mark[:2] for mark in mine} & {mark[:2] for mark in theirs}
    apart = [
        row for row in rows if not {one for one in mine if one[:2] == row} & {one for one in theirs if one[:2] == row}
    ]
    if not apart:
        return False
    own = frozenset[str]().union(*(mine[mark] for mark in mine if mark[:2] in apart))
    return bool(topic.every - own - known.every - changing(new, tables))


@memoized()
def _marks(text: str, tables: tuple[Table, ...]) -> dict[Mark, frozenset[str]]:
    """Which of several a text names, with the stems that name it."""
    plain = text.replace("’", "'")
    found: dict[Mark, frozenset[str]] = {}
    for table in tables:
        if not table.letters.search(plain):
            continue
        for row, members in enumerate(table.which):
            for match in members.finditer(plain):
                mark = (table.language, row, match.lastindex or 0)
                found[mark] = found.get(mark, frozenset()) | stems_of(match.group())
    return found


def _owners_differ(new: str, old: str, tables: tuple[Table, ...]) -> bool:
    """Whether one of them speaks of somebody's thing, and the other never names that owner."""
    mine, theirs = _owners(new, tables), _owners(old, tables)
    return bool(mine - _every_stem(old)) or bool(theirs - _every_stem(new) and (mine or says(new, tables, "own")))


@memoized()
def _owners(text: str, tables: tuple[Table, ...]) -> frozenset[str]:
    named = named_by(text, tables, "owner")
    return frozenset(stem(word.lower()) for word in named) - GENERIC_STEMS


@memoized()
def _every_stem(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in _words(text))


def changing(text: str, tables: tuple[Table, ...]) -> frozenset[str]:
    """Stems of the words that only say that something is chosen, or changes."""
    plain = text.replace("’", "'")
    cues = (table.changes for table in tables if table.letters.search(plain))
    return frozenset(stem(word) for cue in cues for found in cue.all_in(plain) for word in _words(found.group()))


def _is_narrower(new: str, topic: Topic, known: Topic, tables: tuple[Table, ...]) -> bool:
    """Whether it speaks, before its value, of something that the old one does not: ``my wife's flight``."""
    subject = stems_of(new[: _first_new(new, topic, known)]) & topic.words
    return bool(subject - known.every - changing(new, tables))


def _parallel_places(new: str, old: str, tables: tuple[Table, ...]) -> tuple[int, int]:
    """At how many places two sentences of one form say something else, and in how many parts these lie.

    None where they have nothing in common. Who tells of a change needs other words: then only parts count.
    """
    mine, theirs = _sequence(new, tables), _sequence(old, tables)
    places = parts = matching = 0
    for tag, start, end, before, behind in SequenceMatcher(None, theirs, mine, autojunk=False).get_opcodes():
        if tag == "equal":
            matching += end - start
        elif tag == "replace":
            places += min(end - start, behind - before)
            parts += 1
    return (places, parts) if matching else (0, 0)


@memoized()
def _sequence(text: str, tables: tuple[Table, ...]) -> tuple[str, ...]:
    """The content words of a text in order, each exact value as one, a day and its hour together."""
    gone = changing(text, tables)
    spans = sorted(
        [
            *((one.start, one.start + len(one.text), one.kind in _TIMES) for one in find_identifiers(text)),
            *((day.start(), day.end(), True) for table in tables for day in table.times.all_in(text)),
        ]
    )
    found: list[str] = []
    end, in_time = 0, False
    for start, behind, is_time in spans:
        if start < end:
            continue
        between = _stems(text[end:start], tables, gone)
        value = text[start:behind].lower()
        if is_time and in_time and not between:
            found[-1] += f" {value}"
        else:
            found += [*between, value]
        end, in_time = behind, is_time
    return (*found, *_stems(text[end:], tables, gone))


def _stems(text: str, tables: Sequence[Table], gone: frozenset[str]) -> list[str]:
    """Stems, without the words of every sentence in a table's language: those of another may name things here."""
    empty = [GENERIC, *(STOPWORDS.get(table.language, frozenset[str]()) for table in tables)]
    found = [stem(word) for word in _words(text) if not any(word in some for some in empty)]
    return [word for word in found if word not in gone]


def says_again(new: str, old: str, tables: tuple[Table, ...]) -> bool:
    """Whether a text says that something is otherwise now, and else what an old one does, but for one value."""
    if not says(new, tables, "updates") or says(new, tables, "forbids"):
        return False
    (mine, my_values), (theirs, their_values) = _form(new, tables), _form(old, tables)
    changed = sum(one != other for one, other in zip(my_values, their_values, strict=False))
    return mine == theirs and len(mine) >= _FORM and changed == 1


def restates(new: str, old: str, tables: tuple[Table, ...]) -> bool:
    """Whether two texts say what one thing is, word for word, but for a code: ``the branch is fix/cache-2``."""
    mine, theirs = without_label(new, tables).split(), without_label(old, tables).split()
    places = [place for place, (one, other) in enumerate(zip(mine, theirs, strict=False)) if one != other]
    if len(mine) != len(theirs) or len(places) != 1:
        return False
    (place,) = places
    if not (_CODE.match(mine[place]) and _CODE.match(theirs[place])):
        return False
    head = " ".join([*mine[:place], ""])
    return any(cue.end() == len(head) for table in tables for cue in table.equates.all_in(head))


@memoized()
def _form(text: str, tables: tuple[Table, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A text's words in order, without those that choose, change or are polite, values open; and the values."""
    text = text.replace("’", "'")
    for table in tables:
        for said in table.changes.all_in(text):
            text = text[: said.start()] + " " * len(said.group()) + text[said.end() :]
    found: list[str] = []
    end = 0
    for one in find_identifiers(text):
        found += [*map(stem, _words(text[end : one.start])), f"<{one.kind}>"]
        end = one.start + len(one.text)
    found += map(stem, _words(text[end:]))
    given = tuple(one.text.lower() for one in find_identifiers(text))
    return tuple(word for word in found if word not in _COURTESY), given


def _words(text: str) -> list[str]:
    plain = respelled(text.lower())
    return [word.removesuffix("'s") for word in tokens(plain)]

"""Decides whether a later statement replaces an earlier one, for anchors, the state and offline summaries alike.

A later statement replaces an earlier one if it names what is given up, gives the same thing another value, or is a
correction about the same thing. It replaces nothing if it adds something, or is about another thing: the way out and
the way back, the kitchen's blue and the bath's green. If two statements differ only in the thing, the thing is what
changed. In doubt nothing is replaced.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from app.core.anchors.purposes import cues_in, has_cue, is_addition, kind_words, purpose, serves_another_purpose
from app.core.anchors.tables import TABLES
from app.core.anchors.topics import Topic, given_up, stems_of, topic_by, without_label
from app.core.model.anchors import AnchorType
from app.core.reading.cues import CODES
from app.core.text.cued import SAID, Cue, all_in
from app.core.text.identifiers import Kind, find_identifiers
from app.core.text.languages.joined import alternatives, sources_of, words_of
from app.core.text.memo import memoized
from app.core.text.patterns import compiled
from app.core.text.speakers import label_of
from app.core.text.supposing import is_supposed
from app.core.text.word_lists import respelled
from app.core.text.words import FRAME_STEMS, stem, tokens

_HALF: Final = 0.5  # the shared part of the smaller topic's words by which both are about the same thing
_SOME: Final = 0.3  # the shared part of the larger topic's words by which both are about the same thing
_SAME_TASK: Final = 0.6  # the shared part of the smaller text's content by which "under way" and "done" are one task
TERSE: Final = 2  # content words: an utterance with fewer depends on the one before
_SEVERAL: Final = 2  # so many names in both statements say which thing they mean
_FORM: Final = 3  # the fewest words of two statements of the same form

_ADDED: Final = frozenset({"name", "time"})
"""Classes of values of which a prohibition may add one more, instead of replacing the earlier one."""

_NAMING: Final = frozenset({"name", "code"})
"""Classes of values that may say which thing is meant."""

_STATED: Final[frozenset[Kind]] = frozenset(
    {"date", "time", "money", "number", "version", "code", "uuid", "url", "email"}
)
_EQUATES: Final = compiled(
    rf"(?:^|\s)(?:{alternatives('clauses', 'equates', spaced=True)}|[=—])\s|:\s"
    rf"|(?:{alternatives('clauses', 'equates', spaced=False)})",
    re.IGNORECASE,
)
"""The verb or mark between a subject and what is said about it."""

_UNIT: Final = compiled(r"[\d\s.,]+")
_OPEN_SUBJECT: Final = compiled(rf"^(?:{alternatives('clauses', 'open_subjects')})\b", re.IGNORECASE)
_LONGEST_SUBJECT: Final = 60  # characters of a subject
_COURTESY: Final = words_of("terms", "courtesies")
_UNDER_WAY: Final = Cue(sources_of("claims", "under_way"))
_DONE: Final = Cue(sources_of("claims", "done"))
_NOT_DONE: Final = Cue(sources_of("claims", "not_done"))
_PROGRESS: Final = FRAME_STEMS | {stem(word) for word in words_of("claims", "progress")}

Mark = tuple[str, int, int]
"""(language, row, member of the row) in ``Table.which``."""


def replaces(
    new: str,
    old: str,
    *,
    as_: AnchorType,
    gone: frozenset[str] = frozenset(),
) -> bool:
    """Whether a later statement replaces an earlier one.

    Args:
        new: The later text.
        old: The earlier text.
        as_: The type of the later text. A correction may name what it corrects in fewer words. A choice of a person, or
            of something by its name, may be one of several choices.
        gone: Stems of things that are given up according to other text.
    """
    whole, earlier = new, old
    new, old = _without_shared_label(new, old)
    topic, known = topic_by(new), topic_by(old)
    if topic == known:
        return False
    leaving = (gone | given_up(new)) - given_up(old)
    if _gives_up(topic, known, leaving):
        return known.classes <= topic.classes and not _lost_values(topic, known, leaving)
    if leaving & (topic.every - topic.words):
        return False  # it names what is given up, and that is something else
    if not restates(whole, earlier):
        if as_ == "critical_fact" and not _tells_of_change(new, topic, known):
            return False
        if not _is_same_with_another_value(new, topic, known, as_=as_) or _would_lose_values(topic, known):
            return False
    return not is_beside(new, topic, old, known, as_=as_) and not tells_of_another(new, topic, old, known, as_=as_)


def shares_only_a_word(new: str, old: str) -> bool:
    """Whether a correction shares only one word with an earlier text: it means that text only if it follows closely."""
    if restates(new, old):
        return False
    new, old = _without_shared_label(new, old)
    topic, known = topic_by(new), topic_by(old)
    choosing = changing(new)
    if _gives_up(topic, known, given_up(new)):
        return False
    if _other_value(replace(topic, words=topic.words - (choosing - known.words)), known):
        return False
    return len((topic.words & known.words) - choosing) < TERSE


def _without_shared_label(new: str, old: str) -> tuple[str, str]:
    mine, theirs = label_of(new), label_of(old)
    if not mine or not theirs or mine.name != theirs.name:
        return new, old
    said = old[theirs.end :]
    # In "Budget: 300" the label is what the statement is about.
    if len(said.split()) <= TERSE or not topic_by(said).words:
        return new, old
    return new[mine.end :], old[theirs.end :]


def _tells_of_change(new: str, topic: Topic, known: Topic) -> bool:
    if has_cue(new, "updates") or has_cue(new, "moves"):
        return True
    head = new[: _start_of_new_value(new, topic, known)]
    return any(cue.end() == len(head) for cue in all_in(head, (table.equates for table in TABLES)))


def _gives_up(topic: Topic, known: Topic, gone: frozenset[str]) -> bool:
    lost = gone & (known.every - known.words)
    # A number alone may be the number of anything.
    if lost and all(map(str.isdigit, lost)) and not _has_other_of_class(topic, known, gone):
        return False
    return bool(lost) or bool(gone & known.words and topic.values & known.values)


def _would_lose_values(topic: Topic, known: Topic) -> bool:
    lost = _lost_values(topic, known)
    return len({kind_of(value) for _, value in lost}) < len(lost) or any(
        not topic.of_class(class_) - known.of_class(class_) for class_, _ in lost
    )


def _lost_values(topic: Topic, known: Topic, leaving: frozenset[str] = frozenset()) -> set[tuple[str, str]]:
    return {
        (class_, value)
        for class_, value in known.values - topic.values
        # Names do not count, since they are not recognised reliably.
        if class_ != "name" and not stems_of(value) & leaving
    }


def kind_of(value: str) -> str:
    """The kind of a value: a time of day and a day are of different kinds, and so are 60 % and a number of people."""
    kind = next((one.kind for one in find_identifiers(value)), "date")  # a day of the week is no exact value
    return _UNIT.sub("", value) if kind == "number" else kind


def _has_other_of_class(topic: Topic, known: Topic, gone: frozenset[str]) -> bool:
    # "The 22nd" does not replace "22 people".
    classes = {class_ for class_, value in known.values if stems_of(value) & gone}
    return any(class_ in classes and not stems_of(value) & gone for class_, value in topic.values if class_ != "name")


def _is_same_with_another_value(new: str, topic: Topic, known: Topic, *, as_: AnchorType) -> bool:
    choosing = changing(new)
    if _other_value(replace(topic, words=topic.words - (choosing - known.words)), known):
        return True
    if as_ != "correction" or known.classes - topic.classes:
        return False
    mine, theirs = topic.words - choosing, known.words - choosing
    shared, smaller = mine & theirs, min(len(mine), len(theirs))
    differ = topic.values != known.values or mine != theirs
    return bool(shared) and differ and len(shared) >= _HALF * smaller and (len(shared) >= TERSE or smaller <= TERSE)


def _other_value(new: Topic, old: Topic) -> bool:
    """Whether both say the same about the same thing, except for values of one class."""
    if not (new.values and old.values):
        return False
    classes = {class_ for class_, _ in new.values ^ old.values}
    if len(classes) != 1:
        return False
    (class_,) = classes
    fresh, stale = new.of_class(class_) - old.of_class(class_), old.of_class(class_) - new.of_class(class_)
    if class_ in {"number", "name"} and len(fresh) > 1 and len(stale) > 1:
        return False  # a number may say which thing is meant: case 25 is not case 26
    shared = new.words & old.words
    rest = new.values & old.values
    larger = max(len(new.words), len(old.words))
    return bool(fresh and stale) and bool(shared or rest) and len(shared) >= 2 * _SOME * larger


def answers_otherwise(new: str, old: str, *, near: bool = False) -> bool:
    """Whether a correction that only names a thing names another one of the kind that the old text names.

    ``near``: the two are so close that the old text is meant whatever else it says.
    """
    mine, theirs = label_of(new), label_of(old)
    if mine and theirs and mine.name == theirs.name:
        new, old = new[mine.end :], old[theirs.end :]
    topic, known = topic_by(new), topic_by(old)
    if not known.classes or known.classes - topic.classes:
        return False
    point, prior = without_frame(new, topic), without_frame(old, known)
    if not has_another_value(point, prior) or not (near or point.kinds & prior.kinds or prior.words <= point.words):
        return False
    return not is_beside(new, topic, old, known, as_="correction") and not tells_of_another(
        new, topic, old, known, as_="correction"
    )


def without_frame(text: str, topic: Topic) -> Topic:
    """A topic without the words that only name its kind, or say that something changes."""
    return replace(topic, words=topic.words - kind_words(text, topic.kinds) - changing(text))


def has_another_value(point: Topic, topic: Topic) -> bool:
    """Whether both have different values of one kind, and the first names no subject that the second lacks."""
    if not point.classes & topic.classes or point.values <= topic.values:
        return False
    if point.kinds and topic.kinds:
        return bool(point.kinds & topic.kinds)
    return not point.words or bool(point.words & topic.words)


def completes(new: str, old: str) -> bool:
    """Whether the old text says that a task is under way, and the new one that it is done."""
    if not _UNDER_WAY.is_in(old) or _DONE.is_in(old) or not _DONE.is_in(new) or _NOT_DONE.is_in(new):
        return False
    topic, known = topic_by(new), topic_by(old)
    task, done = known.every - _PROGRESS, topic.every - _PROGRESS
    shared = task & done
    return (
        bool(shared)
        and len(shared) >= _SAME_TASK * min(len(task), len(done))
        and known.every - known.words - _PROGRESS <= topic.every
    )


def is_beside(new: str, topic: Topic, old: str, known: Topic, *, as_: AnchorType) -> bool:
    """Whether a new statement only adds to an old one: because it says so, or because it has another purpose."""
    if as_ == "correction" and is_addition(new):
        return True
    aim = purpose(new)
    return bool(aim) and serves_another_purpose(topic, known, aim, purpose(old))


def tells_of_another(new: str, topic: Topic, old: str, known: Topic, *, as_: AnchorType) -> bool:
    """Whether a new statement is about another thing than an old one; see ``replaces`` for the arguments."""
    if restates(new, old):
        return False
    if topic.kinds and known.kinds and not topic.kinds & known.kinds:
        return True
    if _name_others_of_a_row(new, topic, old, known) or _name_other_things(topic, known):
        return True
    if topic.kinds & known.kinds or purpose(new) & purpose(old):
        return False
    if as_ == "correction":
        choosing = changing(new) | changing(old)
        return not has_cue(new, "moves") and _differ_in_thing_and_value(topic, known, choosing)
    return _is_narrower(new, topic, known) or _is_one_more(new, topic, old, known)


def _differ_in_thing_and_value(topic: Topic, known: Topic, choosing: frozenset[str]) -> bool:
    # Example: "the hotel for Monday", "the car for Tuesday".
    mine, theirs = topic.words - known.words - choosing, known.words - topic.words - choosing
    return bool(mine and theirs and topic.values - known.values and known.values - topic.values)


def _is_one_more(new: str, topic: Topic, old: str, known: Topic) -> bool:
    """Whether a statement may add a name to others, forbid one more thing, or say the same about gate 12 as about 11.

    A statement that says what something *is* does not add anything.
    """
    if topic.classes <= _ADDED and has_cue(new, "forbids") and has_cue(old, "forbids"):
        return True
    if has_cue(new, "updates"):
        return False
    head = new[: _start_of_new_value(new, topic, known)]
    if {class_ for class_, _ in topic.values - known.values} <= _NAMING:
        return not any(cue.end() == len(head) for cue in all_in(head, (table.equates for table in TABLES)))
    fresh = next((one for one in find_identifiers(new) if one.start == len(head)), None)
    tail = new[fresh.start + len(fresh.text) :].lstrip() if fresh else ""
    return bool(head) and any(cue.start() == 0 for cue in all_in(tail, (table.equates for table in TABLES)))


def _start_of_new_value(text: str, topic: Topic, known: Topic) -> int:
    fresh = {value for _, value in topic.values - known.values}
    return min((one.start for one in find_identifiers(text) if one.text.lower() in fresh), default=len(text))


def _name_other_things(topic: Topic, known: Topic) -> bool:
    # Example: "Swift on iOS", "Kotlin on Android".
    mine, theirs = topic.of_class("name"), known.of_class("name")
    return not mine & theirs and min(len(mine), len(theirs)) >= _SEVERAL


def _name_others_of_a_row(new: str, topic: Topic, old: str, known: Topic) -> bool:
    mine, theirs = _named_members(new), _named_members(old)
    rows = {mark[:2] for mark in mine} & {mark[:2] for mark in theirs}
    differing = [
        row for row in rows if not {one for one in mine if one[:2] == row} & {one for one in theirs if one[:2] == row}
    ]
    if not differing:
        return False
    own = frozenset[str]().union(*(mine[mark] for mark in mine if mark[:2] in differing))
    return bool(topic.every - own - known.every - changing(new))


@memoized()
def _named_members(text: str) -> dict[Mark, frozenset[str]]:
    """Which of several things of a row a text names, with the stems that name it."""
    plain = text.replace("’", "'")
    found: dict[Mark, frozenset[str]] = {}
    possible = SAID.may_match_text(plain)
    for table in TABLES:
        if not (table.members & possible and table.letters.search(plain)):
            continue
        standing = ((row, members) for row, members in enumerate(table.which) if members.mask & possible)
        for row, members in standing:
            for match in members.pattern.finditer(plain):
                mark = (table.language, row, match.lastindex or 0)
                found[mark] = found.get(mark, frozenset()) | stems_of(match.group())
    return found


@memoized()
def changing(text: str) -> frozenset[str]:
    """Stems of the words that only say that something is chosen, or changes."""
    plain = text.replace("’", "'")
    return frozenset(stem(word) for found in cues_in(plain, "changes") for word in _words(found.group()))


def _is_narrower(new: str, topic: Topic, known: Topic) -> bool:
    # Example: "my wife's flight" is narrower than "the flight".
    subject = stems_of(new[: _start_of_new_value(new, topic, known)]) & topic.words
    return bool(subject - known.every - changing(new))


def says_again(new: str, old: str) -> bool:
    """Whether a text says that something has changed, and otherwise the same as an old text, except for one value."""
    if not has_cue(new, "updates") or has_cue(new, "forbids"):
        return False
    (mine, my_values), (theirs, their_values) = _form_and_values(new), _form_and_values(old)
    changed = sum(one != other for one, other in zip(my_values, their_values, strict=False))
    return mine == theirs and len(mine) >= _FORM and changed == 1


def restates(new: str, old: str) -> bool:
    """Whether two texts say what a thing is in the same words, except for one value: ``the branch is fix/cache-2``."""
    new, old = without_label(new), without_label(old)
    if new.lstrip()[:1].casefold()[:1] != old.lstrip()[:1].casefold()[:1]:
        return False
    (form, values), (known, before) = _stated_form_and_values(new), _stated_form_and_values(old)
    return form is not None and form == known and sum(map(str.__ne__, values, before)) == 1


def form_of(text: str) -> str | None:
    """A statement with its values left open; ``None`` if it gives no value of a subject.

    Two texts of the same form say what the same thing is at different times. Hypotheses have no form: they can coexist.
    """
    return _stated_form_and_values(text)[0]


@memoized()
def _stated_form_and_values(text: str) -> tuple[str | None, tuple[str, ...]]:
    """A statement's form, and its values in order."""
    verb = None if is_supposed(text) else _EQUATES.search(text)
    if verb is None or not 0 < verb.start() <= _LONGEST_SUBJECT or _OPEN_SUBJECT.match(text):
        return None, ()
    spans = [
        *((one.start, one.start + len(one.text), one.kind) for one in find_identifiers(text) if one.kind in _STATED),
        *((code.start(), code.end(), "code") for code in CODES.finditer(text)),
    ]
    pieces: list[str] = []
    values: list[str] = []
    end = 0
    for start, behind, kind in sorted(spans):
        if start >= max(end, verb.start()):
            pieces += [text[end:start], f"<{kind}>"]
            values.append(text[start:behind].lower())
            end = behind
    form = " ".join("".join([*pieces, text[end:]]).casefold().split()).rstrip(".! ")
    return (form if values else None), tuple(values)


@memoized()
def _form_and_values(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of a text, without words of choice, change and courtesy, with values left open; and the values."""
    text = text.replace("’", "'")
    for table in TABLES:
        for said in all_in(text, [table.changes]):
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
    return [word.removesuffix("'s") for word in tokens(respelled(text.lower()))]

"""Decides whether a later statement replaces an earlier one, for anchors, the state and offline summaries alike.

A later statement replaces an earlier one if it names what is given up, gives the same thing another value, or is a
correction about the same thing. It replaces nothing if it adds something, or is about another thing: the way out and
the way back, the kitchen's blue and the bath's green. If two statements differ only in the thing, the thing is what
changed. In doubt nothing is replaced.
"""

from __future__ import annotations

import re
from typing import Final

from app.core.anchors.purposes import cues_in, has_cue, is_addition, kind_words, purpose, serves_another_purpose
from app.core.anchors.tables import TABLES
from app.core.anchors.topics import Topic, given_up_stems, stems_of, topic_of, without_label
from app.core.model.anchors import AnchorType
from app.core.reading.cues import CODES
from app.core.text.cue_patterns import CUE_INDEX, CuePatterns, cue_matches
from app.core.text.identifiers import Kind, find_identifiers
from app.core.text.languages.combined_words import alternatives, sources_of, words_of
from app.core.text.memo import memoized
from app.core.text.patterns import compiled
from app.core.text.speakers import label_of
from app.core.text.supposing import is_supposed
from app.core.text.word_lists import respelled
from app.core.text.words import FRAME_STEMS, stem, tokens

_MIN_SHARE_OF_SMALLER: Final = 0.5
"""The shared part of the smaller topic's words from which both are about the same thing."""
_MIN_SHARE_OF_LARGER: Final = 0.3  # the shared part of the larger topic's words by which both are about the same thing
_MIN_SHARE_OF_TASK: Final = 0.6
"""The shared part of the smaller text's content from which "under way" and "done" are about one task."""
TERSE_WORDS: Final = 2  # content words: an utterance with fewer depends on the one before
_MIN_NAMES_OF_THING: Final = 2  # so many names in both statements say which thing they mean
_MIN_WORDS_OF_FORM: Final = 3  # the fewest words of two statements of the same form

_ADDITIVE_CLASSES: Final = frozenset({"name", "time"})
"""Classes of values of which a prohibition may add one more, instead of replacing the earlier one."""

_NAMING_CLASSES: Final = frozenset({"name", "code"})
"""Classes of values that may say which thing is meant."""

_VALUE_KINDS_OF_FORM: Final[frozenset[Kind]] = frozenset(
    {"date", "time", "money", "number", "version", "code", "uuid", "url", "email"}
)
_EQUATES: Final = compiled(
    rf"(?:^|\s)(?:{alternatives('clauses', 'equates', spaced=True)}|[=—])\s|:\s"
    rf"|(?:{alternatives('clauses', 'equates', spaced=False)})",
    re.IGNORECASE,
)
"""The verb or mark between a subject and what is said about it."""

_MAY_HAVE_VALUE: Final = compiled(r"[\d@/-]|www\.")
"""A sign that every value of a form has: a digit, or what is within addresses and identifiers."""
_NUMBER_BEFORE_UNIT: Final = compiled(r"[\d\s.,]+")
_OPEN_SUBJECT: Final = compiled(rf"^(?:{alternatives('clauses', 'open_subjects')})\b", re.IGNORECASE)
_MAX_SUBJECT_LENGTH: Final = 60  # characters of a subject
_COURTESY_WORDS: Final = words_of("terms", "courtesies")
_UNDER_WAY: Final = CuePatterns(sources_of("claims", "under_way"))
_DONE: Final = CuePatterns(sources_of("claims", "done"))
_NOT_DONE: Final = CuePatterns(sources_of("claims", "not_done"))
_PROGRESS_STEMS: Final = FRAME_STEMS | {stem(word) for word in words_of("claims", "progress")}

RowMember = tuple[str, int, int]
"""(language, row, member of the row) in ``Table.which``."""


def replaces(
    new: str,
    old: str,
    *,
    new_type: AnchorType,
    also_given_up: frozenset[str] = frozenset(),
) -> bool:
    """Whether a later statement replaces an earlier one.

    Args:
        new: The later text.
        old: The earlier text.
        new_type: The type of the later text. A correction may name what it corrects in fewer words. A choice of a
            person, or of something by its name, may be one of several choices.
        also_given_up: Stems of things that are given up according to other text.
    """
    whole_new, whole_old = new, old
    new, old = _without_shared_label(new, old)
    new_topic, old_topic = topic_of(new), topic_of(old)
    if new_topic == old_topic:
        return False
    given_up = (also_given_up | given_up_stems(new)) - given_up_stems(old)
    if _gives_up(new_topic, old_topic, given_up):
        return old_topic.classes <= new_topic.classes and not _lost_values(new_topic, old_topic, given_up)
    if given_up & (new_topic.all_stems - new_topic.words):
        return False  # it names what is given up, and that is something else
    if not restates_with_new_value(whole_new, whole_old) and (
        not _is_same_with_another_value(new, new_topic, old_topic, new_type=new_type)  # the fastest test
        or (new_type == "critical_fact" and not _states_change(new, new_topic, old_topic))
        or _would_lose_values(new_topic, old_topic)
    ):
        return False
    return not is_additional(new, new_topic, old, old_topic, new_type=new_type) and not is_about_another_thing(
        new, new_topic, old, old_topic, new_type=new_type
    )


def shares_only_a_word(new: str, old: str) -> bool:
    """Whether a correction shares only one word with an earlier text: it means that text only if it follows closely."""
    if restates_with_new_value(new, old):
        return False
    new, old = _without_shared_label(new, old)
    new_topic, old_topic = topic_of(new), topic_of(old)
    change_words = change_stems(new)
    if _gives_up(new_topic, old_topic, given_up_stems(new)):
        return False
    if _differs_in_one_class(new_topic._replace(words=new_topic.words - (change_words - old_topic.words)), old_topic):
        return False
    return len((new_topic.words & old_topic.words) - change_words) < TERSE_WORDS


def _without_shared_label(new: str, old: str) -> tuple[str, str]:
    new_label, old_label = label_of(new), label_of(old)
    if not new_label or not old_label or new_label.name != old_label.name:
        return new, old
    old_statement = old[old_label.end :]
    # In "Budget: 300" the label is what the statement is about.
    if len(old_statement.split()) <= TERSE_WORDS or not topic_of(old_statement).words:
        return new, old
    return new[new_label.end :], old[old_label.end :]


def _states_change(new: str, new_topic: Topic, old_topic: Topic) -> bool:
    if has_cue(new, "updates") or has_cue(new, "moves"):
        return True
    head = new[: _start_of_new_value(new, new_topic, old_topic)]
    return any(cue.end() == len(head) for cue in cue_matches(head, (table.equates for table in TABLES)))


def _gives_up(new_topic: Topic, old_topic: Topic, given_up: frozenset[str]) -> bool:
    lost = given_up & (old_topic.all_stems - old_topic.words)
    # A number alone may be the number of anything.
    if lost and all(map(str.isdigit, lost)) and not _has_other_of_class(new_topic, old_topic, given_up):
        return False
    return bool(lost) or bool(given_up & old_topic.words and new_topic.values & old_topic.values)


def _would_lose_values(new_topic: Topic, old_topic: Topic) -> bool:
    lost = _lost_values(new_topic, old_topic)
    return len({kind_of(value) for _, value in lost}) < len(lost) or any(
        not new_topic.of_class(class_) - old_topic.of_class(class_) for class_, _ in lost
    )


def _lost_values(new_topic: Topic, old_topic: Topic, given_up: frozenset[str] = frozenset()) -> set[tuple[str, str]]:
    return {
        (class_, value)
        for class_, value in old_topic.values - new_topic.values
        # Names do not count, since they are not recognised reliably.
        if class_ != "name" and not stems_of(value) & given_up
    }


def kind_of(value: str) -> str:
    """The kind of a value: a time of day and a day are of different kinds, and so are 60 % and a number of people."""
    kind = next((one.kind for one in find_identifiers(value)), "date")  # a day of the week is no exact value
    return _NUMBER_BEFORE_UNIT.sub("", value) if kind == "number" else kind


def _has_other_of_class(new_topic: Topic, old_topic: Topic, given_up: frozenset[str]) -> bool:
    # "The 22nd" does not replace "22 people".
    classes = {class_ for class_, value in old_topic.values if stems_of(value) & given_up}
    return any(
        class_ in classes and not stems_of(value) & given_up for class_, value in new_topic.values if class_ != "name"
    )


def _is_same_with_another_value(new: str, new_topic: Topic, old_topic: Topic, *, new_type: AnchorType) -> bool:
    change_words = change_stems(new)
    if _differs_in_one_class(new_topic._replace(words=new_topic.words - (change_words - old_topic.words)), old_topic):
        return True
    if new_type != "correction" or old_topic.classes - new_topic.classes:
        return False
    new_words, old_words = new_topic.words - change_words, old_topic.words - change_words
    shared, smaller = new_words & old_words, min(len(new_words), len(old_words))
    differ = new_topic.values != old_topic.values or new_words != old_words
    return (
        bool(shared)
        and differ
        and len(shared) >= _MIN_SHARE_OF_SMALLER * smaller
        and (len(shared) >= TERSE_WORDS or smaller <= TERSE_WORDS)
    )


def _differs_in_one_class(new_topic: Topic, old_topic: Topic) -> bool:
    """Whether both say the same about the same thing, except for values of one class."""
    if not (new_topic.values and old_topic.values):
        return False
    classes = {class_ for class_, _ in new_topic.values ^ old_topic.values}
    if len(classes) != 1:
        return False
    (class_,) = classes
    new_values, old_values = (
        new_topic.of_class(class_) - old_topic.of_class(class_),
        old_topic.of_class(class_) - new_topic.of_class(class_),
    )
    if class_ in {"number", "name"} and len(new_values) > 1 and len(old_values) > 1:
        return False  # a number may say which thing is meant: case 25 is not case 26
    shared = new_topic.words & old_topic.words
    rest = new_topic.values & old_topic.values
    larger = max(len(new_topic.words), len(old_topic.words))
    return bool(new_values and old_values) and bool(shared or rest) and len(shared) >= 2 * _MIN_SHARE_OF_LARGER * larger


def names_alternative(new: str, old: str, *, near: bool = False) -> bool:
    """Whether a correction that only names a thing names another one of the kind that the old text names.

    ``near``: the two are so close that the old text is meant whatever else it says.
    """
    new_label, old_label = label_of(new), label_of(old)
    if new_label and old_label and new_label.name == old_label.name:
        new, old = new[new_label.end :], old[old_label.end :]
    new_topic, old_topic = topic_of(new), topic_of(old)
    if not old_topic.classes or old_topic.classes - new_topic.classes:
        return False
    new_without_frame, old_without_frame = without_frame_words(new, new_topic), without_frame_words(old, old_topic)
    if not has_another_value(new_without_frame, old_without_frame) or not (
        near or new_without_frame.kinds & old_without_frame.kinds or old_without_frame.words <= new_without_frame.words
    ):
        return False
    return not is_additional(new, new_topic, old, old_topic, new_type="correction") and not is_about_another_thing(
        new, new_topic, old, old_topic, new_type="correction"
    )


def without_frame_words(text: str, topic: Topic) -> Topic:
    """A topic without the words that only name its kind, or say that something changes."""
    return topic._replace(words=topic.words - kind_words(text, topic.kinds) - change_stems(text))


def has_another_value(new_topic: Topic, old_topic: Topic) -> bool:
    """Whether both have different values of one kind, and the first names no subject that the second lacks."""
    if not new_topic.classes & old_topic.classes or new_topic.values <= old_topic.values:
        return False
    if new_topic.kinds and old_topic.kinds:
        return bool(new_topic.kinds & old_topic.kinds)
    return not new_topic.words or bool(new_topic.words & old_topic.words)


def completes(new: str, old: str) -> bool:
    """Whether the old text says that a task is under way, and the new one that it is done."""
    if not _UNDER_WAY.is_in(old) or _DONE.is_in(old) or not _DONE.is_in(new) or _NOT_DONE.is_in(new):
        return False
    new_topic, old_topic = topic_of(new), topic_of(old)
    task_stems, done_stems = old_topic.all_stems - _PROGRESS_STEMS, new_topic.all_stems - _PROGRESS_STEMS
    shared = task_stems & done_stems
    return (
        bool(shared)
        and len(shared) >= _MIN_SHARE_OF_TASK * min(len(task_stems), len(done_stems))
        and old_topic.all_stems - old_topic.words - _PROGRESS_STEMS <= new_topic.all_stems
    )


def is_additional(new: str, new_topic: Topic, old: str, old_topic: Topic, *, new_type: AnchorType) -> bool:
    """Whether a new statement only adds to an old one: because it says so, or because it has another purpose."""
    if new_type == "correction" and is_addition(new):
        return True
    new_purpose = purpose(new)
    return bool(new_purpose) and serves_another_purpose(new_topic, old_topic, new_purpose, purpose(old))


def is_about_another_thing(new: str, new_topic: Topic, old: str, old_topic: Topic, *, new_type: AnchorType) -> bool:
    """Whether a new statement is about another thing than an old one; see ``replaces`` for the arguments."""
    if restates_with_new_value(new, old):
        return False
    if new_topic.kinds and old_topic.kinds and not new_topic.kinds & old_topic.kinds:
        return True
    if _name_other_members_of_row(new, new_topic, old, old_topic) or _name_other_things(new_topic, old_topic):
        return True
    if new_topic.kinds & old_topic.kinds or purpose(new) & purpose(old):
        return False
    if new_type == "correction":
        change_words = change_stems(new) | change_stems(old)
        return not has_cue(new, "moves") and _differ_in_thing_and_value(new_topic, old_topic, change_words)
    return _is_narrower(new, new_topic, old_topic) or _is_further_item(new, new_topic, old, old_topic)


def _differ_in_thing_and_value(new_topic: Topic, old_topic: Topic, change_words: frozenset[str]) -> bool:
    # Example: "the hotel for Monday", "the car for Tuesday".
    new_words, old_words = (
        new_topic.words - old_topic.words - change_words,
        old_topic.words - new_topic.words - change_words,
    )
    return bool(new_words and old_words and new_topic.values - old_topic.values and old_topic.values - new_topic.values)


def _is_further_item(new: str, new_topic: Topic, old: str, old_topic: Topic) -> bool:
    """Whether a statement may add a name to others, forbid one more thing, or say the same about gate 12 as about 11.

    A statement that says what something *is* does not add anything.
    """
    if new_topic.classes <= _ADDITIVE_CLASSES and has_cue(new, "forbids") and has_cue(old, "forbids"):
        return True
    if has_cue(new, "updates"):
        return False
    head = new[: _start_of_new_value(new, new_topic, old_topic)]
    if {class_ for class_, _ in new_topic.values - old_topic.values} <= _NAMING_CLASSES:
        return not any(cue.end() == len(head) for cue in cue_matches(head, (table.equates for table in TABLES)))
    new_value = next((one for one in find_identifiers(new) if one.start == len(head)), None)
    tail = new[new_value.start + len(new_value.text) :].lstrip() if new_value else ""
    return bool(head) and any(cue.start() == 0 for cue in cue_matches(tail, (table.equates for table in TABLES)))


def _start_of_new_value(text: str, new_topic: Topic, old_topic: Topic) -> int:
    new_values = {value for _, value in new_topic.values - old_topic.values}
    return min((one.start for one in find_identifiers(text) if one.text.lower() in new_values), default=len(text))


def _name_other_things(new_topic: Topic, old_topic: Topic) -> bool:
    # Example: "Swift on iOS", "Kotlin on Android".
    new_names, old_names = new_topic.of_class("name"), old_topic.of_class("name")
    return not new_names & old_names and min(len(new_names), len(old_names)) >= _MIN_NAMES_OF_THING


def _name_other_members_of_row(new: str, new_topic: Topic, old: str, old_topic: Topic) -> bool:
    new_members, old_members = _named_members(new), _named_members(old)
    rows = {member[:2] for member in new_members} & {member[:2] for member in old_members}
    differing = [
        row
        for row in rows
        if not {one for one in new_members if one[:2] == row} & {one for one in old_members if one[:2] == row}
    ]
    if not differing:
        return False
    member_stems = frozenset[str]().union(*(new_members[member] for member in new_members if member[:2] in differing))
    return bool(new_topic.all_stems - member_stems - old_topic.all_stems - change_stems(new))


@memoized()
def _named_members(text: str) -> dict[RowMember, frozenset[str]]:
    """Which of several things of a row a text names, with the stems that name it."""
    plain = text.replace("’", "'")
    found: dict[RowMember, frozenset[str]] = {}
    possible_cues = CUE_INDEX.may_match_text(plain)
    for table in TABLES:
        if not (table.members & possible_cues and table.letters.search(plain)):
            continue
        possible_rows = ((row, members) for row, members in enumerate(table.which) if members.mask & possible_cues)
        for row, members in possible_rows:
            for match in members.pattern.finditer(plain):
                member = (table.language, row, match.lastindex or 0)
                found[member] = found.get(member, frozenset()) | stems_of(match.group())
    return found


@memoized()
def change_stems(text: str) -> frozenset[str]:
    """Stems of the words that only say that something is chosen, or changes."""
    plain = text.replace("’", "'")
    return frozenset(stem(word) for found in cues_in(plain, "changes") for word in _words(found.group()))


def _is_narrower(new: str, new_topic: Topic, old_topic: Topic) -> bool:
    # Example: "my wife's flight" is narrower than "the flight".
    subject = stems_of(new[: _start_of_new_value(new, new_topic, old_topic)]) & new_topic.words
    return bool(subject - old_topic.all_stems - change_stems(new))


def updates_one_value(new: str, old: str) -> bool:
    """Whether a text says that something has changed, and otherwise the same as an old text, except for one value."""
    if not has_cue(new, "updates") or has_cue(new, "forbids"):
        return False
    (new_form, new_values), (old_form, old_values) = _open_form_and_values(new), _open_form_and_values(old)
    changed = sum(one != other for one, other in zip(new_values, old_values, strict=False))
    return new_form == old_form and len(new_form) >= _MIN_WORDS_OF_FORM and changed == 1


def restates_with_new_value(new: str, old: str) -> bool:
    """Whether two texts say what a thing is in the same words, except for one value: ``the branch is fix/cache-2``."""
    new, old = without_label(new), without_label(old)
    if new.lstrip()[:1].casefold()[:1] != old.lstrip()[:1].casefold()[:1]:
        return False
    (new_form, new_values), (old_form, old_values) = _stated_form_and_values(new), _stated_form_and_values(old)
    return new_form is not None and new_form == old_form and sum(map(str.__ne__, new_values, old_values)) == 1


def form_of(text: str) -> str | None:
    """A statement with its values left open; ``None`` if it gives no value of a subject.

    Two texts of the same form say what the same thing is at different times. Hypotheses have no form: they can coexist.
    """
    return _stated_form_and_values(text)[0]


@memoized()
def _stated_form_and_values(text: str) -> tuple[str | None, tuple[str, ...]]:
    """A statement's form, and its values in order."""
    verb = _EQUATES.search(text) if _MAY_HAVE_VALUE.search(text) and not is_supposed(text) else None
    if verb is None or not 0 < verb.start() <= _MAX_SUBJECT_LENGTH or _OPEN_SUBJECT.match(text):
        return None, ()
    spans = [
        *(
            (one.start, one.start + len(one.text), one.kind)
            for one in find_identifiers(text)
            if one.kind in _VALUE_KINDS_OF_FORM
        ),
        *((code.start(), code.end(), "code") for code in CODES.finditer(text)),
    ]
    pieces: list[str] = []
    values: list[str] = []
    end = 0
    for start, value_end, kind in sorted(spans):
        if start >= max(end, verb.start()):
            pieces += [text[end:start], f"<{kind}>"]
            values.append(text[start:value_end].lower())
            end = value_end
    form = " ".join("".join([*pieces, text[end:]]).casefold().split()).rstrip(".! ")
    return (form if values else None), tuple(values)


@memoized()
def _open_form_and_values(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of a text, without words of choice, change and courtesy, with values left open; and the values."""
    text = text.replace("’", "'")
    for table in TABLES:
        for found in cue_matches(text, [table.changes]):
            text = text[: found.start()] + " " * len(found.group()) + text[found.end() :]
    form: list[str] = []
    end = 0
    for one in find_identifiers(text):
        form += [*map(stem, _words(text[end : one.start])), f"<{one.kind}>"]
        end = one.start + len(one.text)
    form += map(stem, _words(text[end:]))
    found_values = tuple(one.text.lower() for one in find_identifiers(text))
    return tuple(word for word in form if word not in _COURTESY_WORDS), found_values


def _words(text: str) -> list[str]:
    return [word.removesuffix("'s") for word in tokens(respelled(text.lower()))]

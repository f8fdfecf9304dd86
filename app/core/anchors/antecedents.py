"""Finds the earlier statement that a later one is about, if the two share no word.

It prefers missing a replacement to assuming a wrong one: a thing for another purpose, or one more thing, replaces
nothing. A statement that says more than a new value replaces only a thing of the same known kind, since its other words
may be about anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, get_args

from app.core.anchors.pool import AnchorPool, position
from app.core.anchors.purposes import bare_choice, exclude_each_other, is_addition, specific_purpose
from app.core.anchors.replacement import (
    TERSE_WORDS,
    has_another_value,
    is_about_another_thing,
    is_additional,
    kind_of,
    without_frame_words,
)
from app.core.anchors.tables import TABLES
from app.core.anchors.topics import Topic, given_up_stems, topic_of
from app.core.model.anchors import Anchor, AnchorType
from app.core.text.clauses import clause_starts
from app.core.text.cue_patterns import cue_matches
from app.core.text.sentences import starts_within
from app.core.text.speakers import without_speaker

REMARK_REACH: Final = 8  # positions: how far back a remark without a subject of its own may refer
NAME_REACH: Final = 24  # positions: how far back a name of a known kind may refer
ANSWER_REACH: Final = 3  # positions: how far back a direct answer may refer, over a tool call and its result
_MAX_HEADS: Final = 6
_ALL_TYPES: Final[frozenset[AnchorType]] = frozenset(get_args(AnchorType))
QUESTION_TYPES: Final[frozenset[AnchorType]] = frozenset({"unresolved_question"})
_CHOICE_TYPES: Final[frozenset[AnchorType]] = frozenset({"decision", "correction"})
_UNSPECIFIC_CLASSES: Final = frozenset({"name"})
"""Classes of values of which two need not be of the same kind: a name may be a person's, a place's or a thing's."""


def rival_choice(pool: AnchorPool, choice: Anchor, topic: Topic) -> Anchor | None:
    """The last choice of a kind with only one thing (a database), if a user now chooses another without a purpose."""
    chosen = bare_choice(choice.content)
    if (
        chosen is None
        or not topic.kinds
        or is_addition(choice.content)
        or specific_purpose(choice.content, topic.kinds)
    ):
        return None
    for old in pool.newest(before=choice.seq - 1, within=REMARK_REACH - 1, types=_CHOICE_TYPES):
        old_choice = bare_choice(old.content)
        old_topic = topic_of(old.content if old_choice is None else old_choice)
        if (
            old_choice is not None
            and not topic.values <= old_topic.values
            and exclude_each_other(topic_of(chosen), old_topic)
        ):
            return old
    return None


def antecedent(pool: AnchorPool, correction: Anchor, types: frozenset[AnchorType]) -> Anchor | None:
    """The anchor that a correction without a subject of its own is about: the last one with a value of its kind."""
    text = without_speaker(correction.content)
    replacement = _replacement_part(text)
    new_topic, whole_topic = (
        without_frame_words(replacement, topic_of(replacement)),
        without_frame_words(text, topic_of(text)),
    )
    if len(new_topic.words) > TERSE_WORDS:
        return None
    given_up = given_up_stems(text) & (whole_topic.all_stems - whole_topic.words)
    last_question = next(pool.newest(before=correction.seq - 1, within=ANSWER_REACH - 1, types=QUESTION_TYPES), None)
    question_topic = topic_of(last_question.content) if last_question else None
    last = next(
        (
            one
            for one in pool.newest(before=correction.seq, within=REMARK_REACH, types=_ALL_TYPES)
            if is_earlier(one, correction)
        ),
        None,
    )
    earlier = [
        one for one in pool.newest(before=correction.seq, within=NAME_REACH, types=types) if is_earlier(one, correction)
    ]
    earlier.sort(key=lambda one: one.type == "commitment")  # decisions come before commitments that follow from them
    for is_meant in (_has_another_value, _is_meant_by_nearness):
        for one in earlier:
            old_topic = topic_of(one.content)
            if _names_another_subject(whole_topic, given_up, old_topic):
                continue
            if not is_meant(new_topic, old_topic, one, correction.seq - one.seq <= ANSWER_REACH or one is last):
                continue
            if question_topic is not None and not (
                new_topic.kinds & old_topic.kinds or question_topic.all_stems & old_topic.all_stems
            ):
                continue
            if bool(new_topic.kinds) != bool(old_topic.kinds) and old_topic.classes:
                continue  # a database does not replace a name of an unknown kind
            if is_additional(correction.content, new_topic, one.content, old_topic, new_type="correction"):
                continue
            if not is_about_another_thing(replacement, new_topic, one.content, old_topic, new_type="correction"):
                return one
    return None


def _names_another_subject(whole_topic: Topic, given_up_stems: frozenset[str], old_topic: Topic) -> bool:
    if given_up_stems and not given_up_stems & old_topic.all_stems:
        return True
    return len(whole_topic.words) > TERSE_WORDS and not whole_topic.kinds & old_topic.kinds


def _has_another_value(new_topic: Topic, old_topic: Topic, old: Anchor, is_near: bool) -> bool:  # noqa: FBT001
    if not has_another_value(new_topic, old_topic):
        return False
    # From far away only a technology can replace another.
    if new_topic.kinds & old_topic.kinds:
        return True
    if old_topic.classes == _UNSPECIFIC_CLASSES and old.type in _CHOICE_TYPES:
        return is_near  # one choice is about another
    classes = (new_topic.classes & old_topic.classes) - _UNSPECIFIC_CLASSES
    return is_near and any(_replaces_single_value(new_topic.of_class(one), old_topic.of_class(one)) for one in classes)


def _replaces_single_value(new_values: Iterable[str], old_values: Iterable[str]) -> bool:
    # If there are several old values, it is unknown which one is replaced.
    kinds = Counter(map(kind_of, old_values))
    return any(kinds[kind_of(value)] == 1 for value in new_values)


def _is_meant_by_nearness(new_topic: Topic, old_topic: Topic, old: Anchor, is_near: bool) -> bool:  # noqa: FBT001
    if not new_topic.all_stems:
        return is_near and old.type != "critical_fact"  # only a statement about a fact can make it untrue
    if new_topic.classes or old_topic.classes or old.type not in _CHOICE_TYPES:
        return False  # a name may well mean another thing than a common word
    if min(len(new_topic.words), len(old_topic.words)) >= TERSE_WORDS and not new_topic.words & old_topic.words:
        return False  # two words may well mean another thing than two others
    return is_near


def _replacement_part(text: str) -> str:
    """The part of a correction that says what is right, without reasons, and without words that only take back."""
    text = text.replace("’", "'")
    ends = {*clause_starts(text), *starts_within(text, 0, len(text))}
    for table in TABLES:
        for found in cue_matches(text, [table.takes_back]):
            text = text[: found.start()] + " " * len(found.group()) + text[found.end() :]
        ends |= {reason.start() for reason in cue_matches(text, [table.because])}
    heads = [text[:end] for end in sorted(ends)[:_MAX_HEADS]]
    valued = next((head for head in heads if topic_of(head).values), None)
    if valued is not None or topic_of(text).values:
        return valued or text
    return next((head for head in heads if topic_of(head).all_stems), text)


def is_earlier(old: Anchor, new: Anchor) -> bool:
    """Whether one anchor has an earlier position than another."""
    return position(old) < position(new)

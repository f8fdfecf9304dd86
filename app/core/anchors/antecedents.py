"""Finds the earlier statement that a later one is about, if the two share no word.

It prefers missing a replacement to assuming a wrong one: a thing for another purpose, or one more thing, replaces
nothing. A statement that says more than a new value replaces only a thing of the same known kind, since its other words
may be about anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, get_args

from app.core.anchors.pool import Pool, position
from app.core.anchors.purposes import bare_choice, exclude_each_other, is_addition, specific_purpose
from app.core.anchors.replacement import TERSE, has_another_value, is_beside, kind_of, tells_of_another, without_frame
from app.core.anchors.tables import TABLES
from app.core.anchors.topics import Topic, given_up, topic_by
from app.core.model.anchors import Anchor, AnchorType
from app.core.text.clauses import clause_starts
from app.core.text.cued import all_in
from app.core.text.sentences import starts_within
from app.core.text.speakers import without_speaker

NEAR: Final = 8  # positions: how far back a remark without a subject of its own may refer
FAR: Final = 24  # positions: how far back a name of a known kind may refer
NEXT: Final = 3  # positions: how far back a direct answer may refer, over a tool call and its result
_MOST_HEADS: Final = 6
_ALL: Final[frozenset[AnchorType]] = frozenset(get_args(AnchorType))
ASKED: Final[frozenset[AnchorType]] = frozenset({"unresolved_question"})
_CHOSEN: Final[frozenset[AnchorType]] = frozenset({"decision", "correction"})
_OF_ANYTHING: Final = frozenset({"name"})
"""Classes of values of which two need not be of the same kind: a name may be a person's, a place's or a thing's."""


def rival_choice(pool: Pool, by: Anchor, topic: Topic) -> Anchor | None:
    """The last choice of a kind with only one thing (a database), if a user now chooses another without a purpose."""
    bare = bare_choice(by.content)
    if bare is None or not topic.kinds or is_addition(by.content) or specific_purpose(by.content, topic.kinds):
        return None
    for old in pool.newest(before=by.seq - 1, within=NEAR - 1, types=_CHOSEN):
        before = bare_choice(old.content)
        known = topic_by(old.content if before is None else before)
        if before is not None and not topic.values <= known.values and exclude_each_other(topic_by(bare), known):
            return old
    return None


def antecedent(pool: Pool, by: Anchor, types: frozenset[AnchorType]) -> Anchor | None:
    """The anchor that a correction without a subject of its own is about: the last one with a value of its kind."""
    text = without_speaker(by.content)
    said = _right_part(text)
    point, whole = without_frame(said, topic_by(said)), without_frame(text, topic_by(text))
    if len(point.words) > TERSE:
        return None
    leaving = given_up(text) & (whole.every - whole.words)
    asked = next(pool.newest(before=by.seq - 1, within=NEXT - 1, types=ASKED), None)
    question = topic_by(asked.content) if asked else None
    last = next((one for one in pool.newest(before=by.seq, within=NEAR, types=_ALL) if is_earlier(one, by)), None)
    old = [one for one in pool.newest(before=by.seq, within=FAR, types=types) if is_earlier(one, by)]
    old.sort(key=lambda one: one.type == "commitment")  # decisions come before commitments that follow from them
    for is_meant in (_has_another_value, _is_meant_by_nearness):
        for one in old:
            topic = topic_by(one.content)
            if _says_what_it_is_about(whole, leaving, topic):
                continue
            if not is_meant(point, topic, one, by.seq - one.seq <= NEXT or one is last):
                continue
            if question is not None and not (point.kinds & topic.kinds or question.every & topic.every):
                continue
            if bool(point.kinds) != bool(topic.kinds) and topic.classes:
                continue  # a database does not replace a name of an unknown kind
            if is_beside(by.content, point, one.content, topic, as_="correction"):
                continue
            if not tells_of_another(said, point, one.content, topic, as_="correction"):
                return one
    return None


def _says_what_it_is_about(whole: Topic, leaving: frozenset[str], topic: Topic) -> bool:
    if leaving and not leaving & topic.every:
        return True
    return len(whole.words) > TERSE and not whole.kinds & topic.kinds


def _has_another_value(point: Topic, topic: Topic, old: Anchor, is_near: bool) -> bool:  # noqa: FBT001
    if not has_another_value(point, topic):
        return False
    # From far away only a technology can replace another.
    if point.kinds & topic.kinds:
        return True
    if topic.classes == _OF_ANYTHING and old.type in _CHOSEN:
        return is_near  # one choice is about another
    classes = (point.classes & topic.classes) - _OF_ANYTHING
    return is_near and any(_meets_one_old_value(point.of_class(one), topic.of_class(one)) for one in classes)


def _meets_one_old_value(fresh: Iterable[str], stale: Iterable[str]) -> bool:
    # If there are several old values, it is unknown which one is replaced.
    kinds = Counter(map(kind_of, stale))
    return any(kinds[kind_of(value)] == 1 for value in fresh)


def _is_meant_by_nearness(point: Topic, topic: Topic, old: Anchor, is_near: bool) -> bool:  # noqa: FBT001
    if not point.every:
        return is_near and old.type != "critical_fact"  # only a statement about a fact can make it untrue
    if point.classes or topic.classes or old.type not in _CHOSEN:
        return False  # a name may well mean another thing than a common word
    if min(len(point.words), len(topic.words)) >= TERSE and not point.words & topic.words:
        return False  # two words may well mean another thing than two others
    return is_near


def _right_part(text: str) -> str:
    """The part of a correction that says what is right, without reasons, and without words that only take back."""
    text = text.replace("’", "'")
    ends = {*clause_starts(text), *starts_within(text, 0, len(text))}
    for table in TABLES:
        for said in all_in(text, [table.takes_back]):
            text = text[: said.start()] + " " * len(said.group()) + text[said.end() :]
        ends |= {reason.start() for reason in all_in(text, [table.because])}
    heads = [text[:end] for end in sorted(ends)[:_MOST_HEADS]]
    valued = next((head for head in heads if topic_by(head).values), None)
    if valued is not None or topic_by(text).values:
        return valued or text
    return next((head for head in heads if topic_by(head).every), text)


def is_earlier(old: Anchor, new: Anchor) -> bool:
    """Whether one anchor has an earlier position than another."""
    return position(old) < position(new)

"""What a later statement is about when it shares no word with the earlier one, and what it only stands beside.

Meant to miss rather than to mistake: a thing for another purpose, or one more thing, takes the place of nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from app.core.anchors.contrast import changing, tells_of_another
from app.core.anchors.pool import Pool, position
from app.core.anchors.slots import adds, aim_of, apart, calls, chosen, narrows, purpose, rivals, switches, turns_down
from app.core.anchors.tables import Table
from app.core.anchors.topics import Topic
from app.core.model.anchors import Anchor, AnchorType
from app.core.text.clauses import clause_starts
from app.core.text.sentences import starts_within

NEAR: Final = 8  # positions: as far as a remark without a subject of its own points back
FAR: Final = 24  # positions: as far as a name of a known kind does
NEXT: Final = 3  # positions: a direct answer, with a tool call and its result in between
TERSE: Final = 2  # content words: with fewer than these an utterance leans on the one before
_MOST_HEADS: Final = 6
ASKED: Final[frozenset[AnchorType]] = frozenset({"unresolved_question"})
_CHOSEN: Final[frozenset[AnchorType]] = frozenset({"decision", "correction"})


def is_beside(pool: Pool, by: Anchor, topic: Topic, old: Anchor, tables: tuple[Table, ...]) -> bool:
    """Whether it comes beside an old statement: in so many words, or because it is for another purpose."""
    if by.type == "correction" and adds(by.content, tables):
        return True
    aim = purpose(by.content, tables)
    return bool(aim) and apart(topic, pool.topic(old.content), aim, purpose(old.content, tables))


def rival(pool: Pool, by: Anchor, topic: Topic, tables: tuple[Table, ...]) -> Anchor | None:
    """The last choice of what there is one of, where a user chooses another, or switches, and names no purpose."""
    if not topic.kinds or adds(by.content, tables) or aim_of(by.content, topic.kinds, tables):
        return None
    bare = chosen(by.content, tables)
    leaves = switches(by.content, tables)
    for old in pool.newest(before=by.seq - 1, within=NEAR - 1, types=_CHOSEN):
        before = chosen(old.content, tables)
        known = pool.topic(old.content if before is None else before)
        if topic.values <= known.values or not topic.kinds & known.kinds:
            continue
        if leaves or (bare is not None and before is not None and rivals(pool.topic(bare), known)):
            return old
    return None


def leaned_on(pool: Pool, by: Anchor, types: frozenset[AnchorType], tables: tuple[Table, ...]) -> Anchor | None:
    """What a correction without a subject of its own is about: the last thing with a value of its kind."""
    said = _point(pool, by.content, tables)
    point = pool.topic(said)
    point = replace(point, words=point.words - calls(said, point.kinds, tables) - changing(said, tables))
    if len(point.words) > TERSE:
        return None
    wrong = pool.topic(by.content).values - point.values
    aim = aim_of(by.content, point.kinds, tables)
    asked = next(pool.newest(before=by.seq - 1, within=NEXT - 1, types=ASKED), None)
    question = pool.topic(asked.content) if asked else None
    old = [one for one in pool.newest(before=by.seq, within=FAR, types=types) if earlier(one, by)]
    old.sort(key=lambda one: one.type == "commitment")  # what was decided before what follows from it
    for is_meant in (_is_like, _is_plain):
        for one in old:
            topic = pool.topic(one.content)
            if is_beside(pool, by, point, one, tables) or _narrows(by, point, topic, aim, tables):
                continue
            if bool(point.kinds) != bool(topic.kinds) and topic.classes and not turns_down(by.content, tables):
                continue  # a database in the place of a name of nobody knows what
            if tells_of_another(said, point, one.content, topic, tables, as_="correction"):
                continue
            if _names_another(point, wrong, topic):
                continue
            if is_meant(point, topic, one, by.seq - one.seq) and (
                question is None or point.kinds & topic.kinds or question.every & topic.every
            ):
                return one
    return None


def _narrows(by: Anchor, point: Topic, topic: Topic, aim: frozenset[str], tables: tuple[Table, ...]) -> bool:
    """Whether it only names another thing for a purpose of its own; a plain no to a thing of one kind does more."""
    if not narrows(point, topic, aim):
        return False
    return not (point.kinds & topic.kinds and turns_down(by.content, tables))


def _names_another(point: Topic, wrong: frozenset[tuple[str, str]], old: Topic) -> bool:
    """Whether the value that it calls wrong, of the kind that it sets right, is not what the old statement says."""
    classes = {class_ for class_, _ in point.values}
    named = {(class_, value) for class_, value in wrong if class_ in classes}
    return bool(named) and not named & old.values


def _is_like(point: Topic, topic: Topic, _: Anchor, distance: int) -> bool:
    """Whether both have a value of one kind, and not the same one, of no subject of its own."""
    common = point.classes & topic.classes
    if not common or point.values <= topic.values:
        return False
    if point.kinds and topic.kinds:
        return bool(point.kinds & topic.kinds)
    if point.words and not point.words & topic.words:
        return False
    return distance <= NEAR


def _is_plain(point: Topic, topic: Topic, old: Anchor, distance: int) -> bool:
    """Whether it is near enough to be meant where values do not tell."""
    if not point.every:
        return distance <= NEAR
    if point.classes or topic.classes or old.type not in _CHOSEN:
        return False  # a name in the place of a common word may well be another thing
    if min(len(point.words), len(topic.words)) >= TERSE and not point.words & topic.words:
        return False  # so may two words in the place of two others
    return distance <= NEXT


def _point(pool: Pool, text: str, tables: Sequence[Table]) -> str:
    """What a correction says is right, without the reasons that follow, and the words that only take back."""
    text = text.replace("’", "'")
    ends = {*clause_starts(text), *starts_within(text, 0, len(text))}
    for table in tables:
        for said in table.takes_back.all_in(text):
            text = text[: said.start()] + " " * len(said.group()) + text[said.end() :]
        ends |= {reason.start() for reason in table.because.all_in(text)}
    heads = [text[:end] for end in sorted(ends)[:_MOST_HEADS]]
    valued = next((head for head in heads if pool.topic(head).values), None)
    if valued is not None or pool.topic(text).values:
        return valued or text
    return next((head for head in heads if pool.topic(head).every), text)


def earlier(old: Anchor, new: Anchor) -> bool:
    """Whether one stands before another."""
    return position(old) < position(new)

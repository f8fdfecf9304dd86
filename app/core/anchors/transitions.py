"""Changes the status of anchors by rule: a later correction supersedes an anchor, a direct answer resolves one.

No rule can recognise whether a question was answered in other words, or a promise kept: a model says so, and another
model verifies it.

* Messages are taken one by one, in order. What a message changes depends only on it and on the anchors that are active
  then, so it does not matter how messages are divided into batches.
* No anchor becomes active again.
* The work for a message is bounded by the anchors that share a rare word with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from app.core.anchors.antecedents import (
    ANSWER_REACH,
    NAME_REACH,
    QUESTION_TYPES,
    REMARK_REACH,
    antecedent,
    is_earlier,
    rival_choice,
)
from app.core.anchors.classification import forms_to_match
from app.core.anchors.pool import AnchorPool, position
from app.core.anchors.replacement import replaces, shares_only_a_word, updates_one_value
from app.core.anchors.statements import Statement, statements_of
from app.core.anchors.tables import TABLES, Table
from app.core.anchors.topics import Topic, technology_kinds_of, topic_of
from app.core.model.anchors import Anchor, AnchorType, Transition
from app.core.model.conversation import Message
from app.core.text.cue_patterns import CuePatterns
from app.core.text.patterns import compiled

_MAX_WORDS_OF_ANSWER: Final = 12  # the most words of a direct answer
_QUESTION_MARK: Final = compiled(r"[?？؟]")
_REPEATING_TYPES: Final[frozenset[AnchorType]] = frozenset({"commitment", "decision", "correction"})

_SUPERSEDABLE_TYPES: Final[dict[AnchorType, frozenset[AnchorType]]] = {
    "correction": frozenset({"decision", "critical_fact", "commitment", "correction"}),
    "decision": frozenset({"decision", "correction"}),
    "critical_fact": frozenset({"critical_fact", "correction"}),
}
"""The types that an anchor of a type can supersede."""

SUPERSEDING_TYPES: Final = frozenset(_SUPERSEDABLE_TYPES)
"""The types whose anchors can replace others."""

MAX_POSITIONS_BACK: Final = NAME_REACH
"""The most positions between a message and an anchor that it changes without sharing a word with it."""

_SUPERSEDABLE_BY_ASSISTANT: Final[frozenset[AnchorType]] = frozenset({"decision", "commitment", "correction"})
"""The types of anchors that an assistant can supersede, unless a user stated them."""


def transitions(
    active: Sequence[Anchor],
    new: Sequence[Anchor],
    messages: Sequence[Message],
    *,
    statements: Mapping[int, Sequence[Statement]] | None = None,
) -> list[Transition]:
    """The changes of status that these messages bring about.

    Args:
        active: The active anchors of earlier messages.
        new: The anchors found in these messages; they may supersede each other too. An anchor whose message is not
            given counts as an assistant's.
        messages: The messages in any order.
        statements: The messages' ``statements_of`` by ``seq``, if they are already known.

    Returns:
        One transition for each anchor whose status changes, in the order of the messages that change it.
    """
    pool = AnchorPool(active)
    new_by_seq: defaultdict[int, list[Anchor]] = defaultdict(list)
    for anchor in sorted(new, key=position):
        new_by_seq[anchor.seq].append(anchor)
    spoken_messages = {message.seq: message for message in messages if message.is_spoken}
    found: list[Transition] = []
    for seq in sorted({*spoken_messages, *new_by_seq}):
        message = spoken_messages.get(seq)
        message_statements = _known_or_new_statements(message, statements) if message else ()
        found.extend(_transitions_of_message(pool, message, new_by_seq.get(seq, ()), message_statements))
    return found


def subject_stems(new: Sequence[Anchor]) -> frozenset[str]:
    """The stems of new anchors: they can replace any anchor that shares one of these, however far back it is."""
    superseding = (anchor for anchor in new if anchor.type in SUPERSEDING_TYPES and not anchor.pasted)
    return frozenset[str]().union(*(topic_of(anchor.content).all_stems for anchor in superseding))


def _known_or_new_statements(
    message: Message, known_statements: Mapping[int, Sequence[Statement]] | None
) -> Sequence[Statement]:
    of_message = known_statements.get(message.seq) if known_statements is not None else None
    return statements_of(message) if of_message is None else of_message


def _transitions_of_message(
    pool: AnchorPool, message: Message | None, new_anchors: Sequence[Anchor], statements: Sequence[Statement]
) -> Iterator[Transition]:
    """The changes by one message: by its anchors, then by its other words, if its text is given."""
    for anchor in new_anchors:
        yield from _superseded_by_anchor(pool, anchor, by_user=message is not None and message.role == "user")
        pool.add(anchor)
    if message is None or not statements:
        return
    last_question = next(pool.newest(before=message.seq - 1, within=ANSWER_REACH - 1, types=QUESTION_TYPES), None)
    if pool.open and not statements[0].is_question:
        yield from _question_answered(pool, message, statements[0])
    if message.role == "user" and not any(one.type in {"correction", "decision"} for one in new_anchors):
        yield from _superseded_by_no(pool, message, statements[0], last_question=last_question)


def _superseded_by_anchor(pool: AnchorPool, by: Anchor, *, by_user: bool) -> Iterator[Transition]:
    """The anchors that an anchor supersedes."""
    types = _SUPERSEDABLE_TYPES.get(by.type, frozenset())
    if not by_user:
        types &= _SUPERSEDABLE_BY_ASSISTANT
    if not types or by.pasted:
        return
    topic = topic_of(by.content)
    sharing = (old for old in pool.sharing_words(topic) if old.type in types and is_earlier(old, by))
    superseded = [old for old in sharing if _replaces_anchor(by, old)]
    if not superseded:
        earlier = (old for old in pool.newest(before=by.seq, within=NAME_REACH, types=types) if is_earlier(old, by))
        superseded = [old for old in earlier if updates_one_value(by.content, old.content)][:1]
    if by.type == "correction":
        referenced = None if superseded else antecedent(pool, by, types)
        superseded = superseded or ([referenced] if referenced else [])
        superseded += list(_repeats_of_outdated(pool, by, topic, superseded))
    elif by.type == "decision" and by_user and not superseded and (other := rival_choice(pool, by, topic)):
        superseded = [other]
    for old in superseded:
        pool.remove(old)
        yield Transition(anchor_id=old.id, status="superseded", superseded_by=by.id)


def _replaces_anchor(by: Anchor, old: Anchor) -> bool:
    if by.type == "correction":
        if by.speaker == "assistant" and old.speaker == "user":
            return False
        if by.seq - old.seq > ANSWER_REACH and shares_only_a_word(by.content, old.content):
            return False
    return replaces(by.content, old.content, new_type=by.type)


def _repeats_of_outdated(pool: AnchorPool, by: Anchor, topic: Topic, superseded: Sequence[Anchor]) -> Iterator[Anchor]:
    """Nearby decisions and commitments that only repeat what is superseded."""
    outdated = [topic_of(old.content) for old in superseded if old.type != "critical_fact"]
    names = frozenset(
        name
        for old in outdated
        for name in old.of_class("name") - topic.of_class("name")
        if technology_kinds_of(name) & topic.kinds
    )
    values = {old.values for old in outdated if old.values and old.values != topic.values}
    for one in pool.newest(before=by.seq, within=NAME_REACH, types=_REPEATING_TYPES):
        one_topic = topic_of(one.content)
        if (
            one not in superseded
            and is_earlier(one, by)
            and not one_topic.of_class("name") & topic.of_class("name") - names
        ):
            near = by.seq - one.seq <= REMARK_REACH
            if one_topic.of_class("name") & names or (near and one_topic.values in values):
                yield one


def _question_answered(pool: AnchorPool, message: Message, first: Statement) -> Iterator[Transition]:
    """The question of the other speaker just before, if this directly answers it: yes, no, a value, or one word."""
    tables_and_forms = [
        (table, forms_to_match(first.plain, table)) for table in TABLES if table.letters.search(first.text)
    ]

    def has(cue: Callable[[Table], CuePatterns]) -> bool:
        return any(cue(table).matches(texts, first.possible_cues) for table, texts in tables_and_forms)

    if has(lambda table: table.evasive) or has(lambda table: table.smalltalk):
        return
    topic, count = topic_of(first.text), len(first.text.split())
    is_yes = has(lambda table: table.yes) or has(lambda table: table.no)
    is_value = (bool(topic.values) and count <= _MAX_WORDS_OF_ANSWER) or (count == 1 and bool(topic.all_stems))
    asked = pool.newest(before=message.seq - 1, within=ANSWER_REACH - 1, types=frozenset({"unresolved_question"}))
    question = next((old for old in asked if old.speaker != message.role and _QUESTION_MARK.search(old.content)), None)
    if question is not None and (is_yes or is_value):
        pool.remove(question)
        yield Transition(anchor_id=question.id, status="resolved")


def _superseded_by_no(
    pool: AnchorPool, message: Message, first: Statement, *, last_question: Anchor | None
) -> Iterator[Transition]:
    is_refusal = any(_is_refusal(first, table) for table in TABLES if table.letters.search(first.text))
    if is_refusal and not first.is_question:
        for old in list(pool.newest(before=message.seq - 1, within=0, types=frozenset({"decision"}))):
            # A "no" after a question answers the question, and supersedes nothing earlier.
            if old.proposed_by != "user" and (last_question is None or is_earlier(last_question, old)):
                pool.remove(old)
                yield Transition(anchor_id=old.id, status="superseded")


def _is_refusal(statement: Statement, table: Table) -> bool:
    return table.no.matches([statement.plain], statement.possible_cues) and not table.polite_no.matches(
        [statement.plain], statement.possible_cues
    )

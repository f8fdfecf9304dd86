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

from app.core.anchors.antecedents import ASKED, FAR, NEAR, NEXT, antecedent, is_earlier, rival_choice
from app.core.anchors.pool import Pool, position
from app.core.anchors.recognition import leads
from app.core.anchors.replacement import replaces, says_again, shares_only_a_word
from app.core.anchors.statements import Statement, statements
from app.core.anchors.tables import TABLES, Table
from app.core.anchors.topics import Topic, kinds_of, topic_by
from app.core.model.anchors import Anchor, AnchorType, Transition
from app.core.model.conversation import Message
from app.core.text.cued import Cue
from app.core.text.patterns import compiled

_SHORT: Final = 12  # the most words of a direct answer
_MARK: Final = compiled(r"[?？؟]")
_ECHOING: Final[frozenset[AnchorType]] = frozenset({"commitment", "decision", "correction"})

_CHANGES: Final[dict[AnchorType, frozenset[AnchorType]]] = {
    "correction": frozenset({"decision", "critical_fact", "commitment", "correction"}),
    "decision": frozenset({"decision", "correction"}),
    "critical_fact": frozenset({"critical_fact", "correction"}),
}
"""The types that an anchor of a type can supersede."""

CHANGING: Final = frozenset(_CHANGES)
"""The types whose anchors can replace others."""

LOOKS_BACK: Final = FAR
"""The most positions between a message and an anchor that it changes without sharing a word with it."""

_BY_ASSISTANT: Final[frozenset[AnchorType]] = frozenset({"decision", "commitment", "correction"})
"""The types of anchors that an assistant can supersede, unless a user stated them."""


def transitions(
    active: Sequence[Anchor],
    new: Sequence[Anchor],
    messages: Sequence[Message],
    *,
    said: Mapping[int, Sequence[Statement]] | None = None,
) -> list[Transition]:
    """The changes of status that these messages bring about.

    Args:
        active: The active anchors of earlier messages.
        new: The anchors found in these messages; they may supersede each other too. An anchor whose message is not
            given counts as an assistant's.
        messages: The messages in any order.
        said: The messages' ``statements`` by ``seq``, if they are already known.

    Returns:
        One transition for each anchor whose status changes, in the order of the messages that change it.
    """
    pool = Pool(active)
    own: defaultdict[int, list[Anchor]] = defaultdict(list)
    for anchor in sorted(new, key=position):
        own[anchor.seq].append(anchor)
    spoken = {message.seq: message for message in messages if message.is_spoken}
    found: list[Transition] = []
    for seq in sorted({*spoken, *own}):
        message = spoken.get(seq)
        spoken_here = _statements_of(message, said) if message else ()
        found.extend(_transitions_of_message(pool, message, own.get(seq, ()), spoken_here))
    return found


def subjects(new: Sequence[Anchor]) -> frozenset[str]:
    """The stems of new anchors: they can replace any anchor that shares one of these, however far back it is."""
    taking = (anchor for anchor in new if anchor.type in CHANGING and not anchor.pasted)
    return frozenset[str]().union(*(topic_by(anchor.content).every for anchor in taking))


def _statements_of(message: Message, said: Mapping[int, Sequence[Statement]] | None) -> Sequence[Statement]:
    known = said.get(message.seq) if said is not None else None
    return statements(message) if known is None else known


def _transitions_of_message(
    pool: Pool, message: Message | None, own: Sequence[Anchor], said: Sequence[Statement]
) -> Iterator[Transition]:
    """The changes by one message: by its anchors, then by its other words, if its text is given."""
    for anchor in own:
        yield from _superseded_by_anchor(pool, anchor, by_user=message is not None and message.role == "user")
        pool.add(anchor)
    if message is None or not said:
        return
    asked = next(pool.newest(before=message.seq - 1, within=NEXT - 1, types=ASKED), None)
    if pool.open and not said[0].is_question:
        yield from _question_answered(pool, message, said[0])
    if message.role == "user" and not any(one.type in {"correction", "decision"} for one in own):
        yield from _superseded_by_no(pool, message, said[0], asked=asked)


def _superseded_by_anchor(pool: Pool, by: Anchor, *, by_user: bool) -> Iterator[Transition]:
    """The anchors that an anchor supersedes."""
    types = _CHANGES.get(by.type, frozenset())
    if not by_user:
        types &= _BY_ASSISTANT
    if not types or by.pasted:
        return
    topic = topic_by(by.content)
    sharing = (old for old in pool.sharing(topic) if old.type in types and is_earlier(old, by))
    meant = [old for old in sharing if _takes_place_of(by, old)]
    if not meant:
        said = (old for old in pool.newest(before=by.seq, within=FAR, types=types) if is_earlier(old, by))
        meant = [old for old in said if says_again(by.content, old.content)][:1]
    if by.type == "correction":
        leaned = None if meant else antecedent(pool, by, types)
        meant = meant or ([leaned] if leaned else [])
        meant += list(_repeats_of_outdated(pool, by, topic, meant))
    elif by.type == "decision" and by_user and not meant and (other := rival_choice(pool, by, topic)):
        meant = [other]
    for old in meant:
        pool.remove(old)
        yield Transition(anchor_id=old.id, status="superseded", superseded_by=by.id)


def _takes_place_of(by: Anchor, old: Anchor) -> bool:
    if by.type == "correction":
        if by.speaker == "assistant" and old.speaker == "user":
            return False
        if by.seq - old.seq > NEXT and shares_only_a_word(by.content, old.content):
            return False
    return replaces(by.content, old.content, as_=by.type)


def _repeats_of_outdated(pool: Pool, by: Anchor, topic: Topic, meant: Sequence[Anchor]) -> Iterator[Anchor]:
    """Nearby decisions and commitments that only repeat what is superseded."""
    outdated = [topic_by(old.content) for old in meant if old.type != "critical_fact"]
    names = frozenset(
        name
        for old in outdated
        for name in old.of_class("name") - topic.of_class("name")
        if kinds_of(name) & topic.kinds
    )
    values = {old.values for old in outdated if old.values and old.values != topic.values}
    for one in pool.newest(before=by.seq, within=FAR, types=_ECHOING):
        said = topic_by(one.content)
        if one not in meant and is_earlier(one, by) and not said.of_class("name") & topic.of_class("name") - names:
            near = by.seq - one.seq <= NEAR
            if said.of_class("name") & names or (near and said.values in values):
                yield one


def _question_answered(pool: Pool, message: Message, first: Statement) -> Iterator[Transition]:
    """The question of the other speaker just before, if this directly answers it: yes, no, a value, or one word."""
    read = [(table, leads(first.plain, table)) for table in TABLES if table.letters.search(first.text)]

    def has(cue: Callable[[Table], Cue]) -> bool:
        return any(cue(table).matches(texts, first.possible) for table, texts in read)

    if has(lambda table: table.evasive) or has(lambda table: table.smalltalk):
        return
    topic, count = topic_by(first.text), len(first.text.split())
    is_yes = has(lambda table: table.yes) or has(lambda table: table.no)
    is_value = (bool(topic.values) and count <= _SHORT) or (count == 1 and bool(topic.every))
    asked = pool.newest(before=message.seq - 1, within=NEXT - 1, types=frozenset({"unresolved_question"}))
    question = next((old for old in asked if old.speaker != message.role and _MARK.search(old.content)), None)
    if question is not None and (is_yes or is_value):
        pool.remove(question)
        yield Transition(anchor_id=question.id, status="resolved")


def _superseded_by_no(pool: Pool, message: Message, first: Statement, *, asked: Anchor | None) -> Iterator[Transition]:
    no = any(_refuses(first, table) for table in TABLES if table.letters.search(first.text))
    if no and not first.is_question:
        for old in list(pool.newest(before=message.seq - 1, within=0, types=frozenset({"decision"}))):
            # A "no" after a question answers the question, and supersedes nothing earlier.
            if old.proposed_by != "user" and (asked is None or is_earlier(asked, old)):
                pool.remove(old)
                yield Transition(anchor_id=old.id, status="superseded")


def _refuses(said: Statement, table: Table) -> bool:
    return table.no.matches([said.plain], said.possible) and not table.polite_no.matches([said.plain], said.possible)

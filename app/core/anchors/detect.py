"""Finds the anchors of a message: by rules, and by a fitted likelihood. No model is called.

It takes linear time in the message's length. An anchor is served for ever, so precision is more important than recall
(``docs/anchors.md`` has both figures).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final

from app.core.anchors.likelihood import WEIGHTS, BySpeaker, features, likeliest, likelihoods
from app.core.anchors.pasting import OwnWords
from app.core.anchors.recognition import (
    has_name,
    has_value,
    is_standing,
    is_told_by_value,
    reads_of,
    type_of,
)
from app.core.anchors.rendering import anchor_line, line_tokens
from app.core.anchors.statements import Statement, statements
from app.core.anchors.tables import TABLES
from app.core.anchors.topics import topic_by
from app.core.model.anchors import AnchorType, FoundAnchor, Speaker
from app.core.model.conversation import Message
from app.core.model.redaction import redact
from app.core.text.cued import SAID
from app.core.text.identifiers import EXACT_KINDS, Identifier
from app.core.text.speakers import name_in

MOST_BY_USER: Final = 24
MOST_BY_ASSISTANT: Final = 8
"""The most anchors of one message of an assistant; the most important are kept. Users list needs, assistants advise."""

_BASE: Final[dict[AnchorType, float]] = {
    "correction": 0.7,
    "decision": 0.65,
    "critical_fact": 0.6,
    "commitment": 0.5,
    "unresolved_question": 0.5,
}
"""The importance of each type: types that change other anchors have the highest, short-lived ones the lowest."""

_PER_VALUE: Final = 0.05
_MOST_FOR_VALUES: Final = 0.2
_BY_USER: Final = 0.1
_PASTED: Final = 0.3  # subtracted for pasted text, which binds nobody
_RULE: Final = 0.2  # added for a rule, as much as for values: a missing rule is broken unnoticed, a fact is asked for
_BY_VALUE: Final = 0.25  # subtracted if only its values make it an anchor, since narration has values too
_OFTEN_WRONG: Final[frozenset[AnchorType]] = frozenset({"decision", "unresolved_question"})
_DOUBTFUL: Final = 0.15  # subtracted for types of which the rules find too many (``docs/anchors.md``)
_MOST_JOINED: Final = 2
"""The most statements after a label or a bare no that may belong to it."""

_COLONS: Final = frozenset(":：")  # the colons that people type at the end of a label
_BARE: Final = 3  # the most words of a bare no: "no", "scratch that", "ну уж нет"
_MOST_WORDS: Final = 12  # the most words of a statement that says what is right instead
_BELONGING: Final = frozenset({None, "critical_fact"})
"""The types of statements that can belong to a label before them."""

_FEW: Final = 2  # words
_OF_SOMETHING: Final = frozenset({"number", "time"})
"""Classes of values that mean nothing without the thing that has the value."""

_REPLACING: Final = frozenset({None, "decision", "correction"})
"""The types of statements that can say what is right instead; a separate fact cannot."""


def detect(
    message: Message,
    *,
    said: Sequence[Statement] | None = None,
    weights: BySpeaker | None = None,
) -> list[FoundAnchor]:
    """The anchors of a message, in order, each once; commands, erased messages and tool results have none.

    ``content`` is the message's own text at ``offset``, with secrets redacted.

    Args:
        message: Any message.
        said: The message's ``statements``, if they are already known.
        weights: The weights of the likelihood; by default those of ``weights.json``.
    """
    found = _without_repeats(_found_anchors(message, statements(message) if said is None else said, weights or WEIGHTS))
    most = MOST_BY_USER if message.role == "user" else MOST_BY_ASSISTANT
    if len(found) <= most:
        return found
    best = sorted(found, key=lambda anchor: (-anchor.importance, anchor.offset))[:most]
    return sorted(best, key=lambda anchor: anchor.offset)


def _without_repeats(found: Iterable[FoundAnchor]) -> list[FoundAnchor]:
    first: dict[tuple[AnchorType, str], FoundAnchor] = {}
    for anchor in found:
        words = " ".join(anchor.content.split()).rstrip(".!… ").casefold()
        first.setdefault((anchor.type, words), anchor)
    return list(first.values())


def _found_anchors(message: Message, said: Sequence[Statement], weights: BySpeaker) -> Iterator[FoundAnchor]:
    role: Speaker = "user" if message.role == "user" else "assistant"
    going_on: tuple[int, AnchorType] | None = None
    redacted: str | None = None
    own: OwnWords | None = None
    said = list(_joined_statements(said, message.content)) if role == "user" else said
    for number, statement in enumerate(said):
        if _announces_pasted_text(statement):
            return
        if going_on and going_on[0] == statement.sentence:
            type_ = going_on[1] if has_value(statement) else None  # this is the rest of a long sentence
        else:
            rule = type_of(statement, role)
            found = likelihoods(features(said, number, message.seq, rule), weights[role])
            type_ = likeliest(found, rule, len(said))
            if rule not in {None, type_} and role == "user" and _is_beyond_doubt(statement):
                type_ = rule
        if type_ is None or (type_ != "correction" and _is_too_short(statement)):
            continue
        own = own or OwnWords(message, said)
        if not own.include(statement):
            continue
        going_on = (statement.sentence, type_)
        redacted = redact(message.content) if redacted is None else redacted
        text, offset = statement.whole(message.content)
        content = _without_secrets(text, message.content, redacted)
        if content:
            emphasis = _added_importance(statement, type_, role)
            pasted = own.are_pasted(statement.offset)
            yield found_anchor(message, type_, content, offset, statement.identifiers, emphasis=emphasis, pasted=pasted)


def _is_too_short(statement: Statement) -> bool:
    # "2." and "yeah." answer something that is said elsewhere.
    count = statement.plain.count(" ") + 1
    if count > _FEW or ":" in statement.plain or "-" in statement.plain:  # a label, a code
        return False
    numbers = sum(not any(map(str.isalpha, part)) for part in statement.plain.split())
    topic = topic_by(statement.plain)
    return count - numbers < _FEW and topic.classes <= _OF_SOMETHING and not _is_beyond_doubt(statement)


def _is_beyond_doubt(statement: Statement) -> bool:
    return is_standing(statement) or _is_labelled(statement)


def _added_importance(statement: Statement, type_: AnchorType, role: Speaker) -> float:
    if role == "user" and is_standing(statement):
        return _RULE
    if type_ == "critical_fact":
        return -_BY_VALUE if role == "user" and is_told_by_value(statement) else 0.0
    return -_DOUBTFUL if type_ in _OFTEN_WRONG else 0.0


def _joined_statements(said: Sequence[Statement], content: str) -> Iterator[Statement]:
    """A user's statements, joined if they say one thing together: a label and its line, or ``No. MySQL.``."""
    number = 0
    while number < len(said):
        statement, following = said[number], said[number + 1 : number + 1 + _MOST_JOINED]
        if _is_labelled(statement):
            more = list(takewhile(lambda one: type_of(one, "user") in _BELONGING, following))
        elif following and _only_turns_down(statement) and _is_put_right_by(statement, following[0], content):
            more = list(following[:1])
        else:
            more = []
        for one in more:
            longer = statement.joined(one, content)
            if longer is None:
                break
            statement, number = longer, number + 1
        yield statement
        number += 1


def _is_labelled(statement: Statement) -> bool:
    if statement.is_question or _COLONS.isdisjoint(statement.text):
        return False
    return any(
        rule.labelled.matches((statement.plain,), statement.possible)
        for table in TABLES
        for rule in table.rules.values()
    )


def _only_turns_down(statement: Statement) -> bool:
    if statement.is_question or statement.text.count(" ") >= _BARE or has_value(statement) or has_name(statement):
        return False
    fitting = reads_of(statement)
    return any(read.has(read.table.no) for read in fitting) or type_of(statement, "user") == "correction"


def _is_put_right_by(bare: Statement, following: Statement, content: str) -> bool:
    if following.is_question or following.text.count(" ") >= _MOST_WORDS:
        return False
    longer = bare.joined(following, content)
    own = type_of(following, "user")
    return own in _REPLACING and longer is not None and type_of(longer, "user") == "correction"


def _announces_pasted_text(statement: Statement) -> bool:
    if ":" not in statement.text:
        return False
    possible = SAID.may_match_text(statement.text)
    return any(table.shows.matches([statement.text], possible) for table in TABLES)


def found_anchor(
    message: Message,
    type_: AnchorType,
    content: str,
    offset: int,
    identifiers: Iterable[Identifier],
    *,
    emphasis: float = 0.0,
    pasted: bool = False,
) -> FoundAnchor:
    """The anchor with its tokens and importance. The emphasis is added to the importance; pasted text has less."""
    speaker: Speaker = "user" if message.role == "user" else "assistant"
    values = sum(one.kind in EXACT_KINDS for one in identifiers)
    importance = _BASE[type_] + min(_PER_VALUE * values, _MOST_FOR_VALUES)
    importance += -_PASTED if pasted else (_BY_USER if message.role == "user" else 0) + emphasis
    said_by = name_in(message.metadata)
    line = anchor_line(type_, message.seq, content, speaker, pasted=pasted, said_at=message.created_at, said_by=said_by)
    return FoundAnchor(
        type=type_,
        content=content,
        seq=message.seq,
        offset=offset,
        importance=round(min(max(importance, 0.0), 1.0), 4),
        token_count=line_tokens(line),
        speaker=speaker,
        pasted=pasted,
        said_at=message.created_at,
        said_by=said_by,
    )


def _without_secrets(text: str, content: str, redacted: str) -> str:
    if redacted == content:
        return text
    cleaned = redact(text)
    # A text with a part of a secret that only the whole message reveals is left out.
    return cleaned if cleaned != text or text in redacted else ""

"""Finds the anchors of a message: by rules, and by a fitted likelihood. No model is called.

It takes linear time in the message's length. An anchor is served for ever, so precision is more important than recall
(``docs/anchors.md`` has both figures).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final

from app.core.anchors.classification import (
    has_name,
    has_value,
    is_fact_by_values_only,
    is_standing_rule,
    readings_of,
    type_of,
)
from app.core.anchors.likelihood import WEIGHTS, WeightsBySpeaker, features, likeliest_type, likelihoods
from app.core.anchors.pasting import OwnWords
from app.core.anchors.rendering import anchor_line, line_tokens
from app.core.anchors.statements import Statement, statements_of
from app.core.anchors.tables import TABLES
from app.core.anchors.topics import topic_of
from app.core.model.anchors import AnchorType, FoundAnchor, Speaker
from app.core.model.conversation import Message
from app.core.model.redaction import redact
from app.core.text.cue_patterns import CUE_INDEX
from app.core.text.identifiers import EXACT_KINDS, Identifier
from app.core.text.speakers import name_in

MAX_USER_ANCHORS: Final = 24
MAX_ASSISTANT_ANCHORS: Final = 8
"""The most anchors of one message of an assistant; the most important are kept. Users list needs, assistants advise."""

_BASE_IMPORTANCE: Final[dict[AnchorType, float]] = {
    "correction": 0.7,
    "decision": 0.65,
    "critical_fact": 0.6,
    "commitment": 0.5,
    "unresolved_question": 0.5,
}
"""The importance of each type: types that change other anchors have the highest, short-lived ones the lowest."""

_IMPORTANCE_PER_VALUE: Final = 0.05
_MAX_IMPORTANCE_OF_VALUES: Final = 0.2
_USER_BONUS: Final = 0.1
_PASTED_PENALTY: Final = 0.3  # subtracted for pasted text, which binds nobody
_RULE_BONUS: Final = 0.2
"""The importance added for a rule, as much as for values: a missing rule is broken unnoticed, a fact is asked for."""
_VALUE_ONLY_PENALTY: Final = 0.25  # subtracted if only its values make it an anchor, since narration has values too
_DOUBTFUL_TYPES: Final[frozenset[AnchorType]] = frozenset({"decision", "unresolved_question"})
_DOUBTFUL_TYPE_PENALTY: Final = 0.15  # subtracted for types of which the rules find too many (``docs/anchors.md``)
_MAX_JOINED_STATEMENTS: Final = 2
"""The most statements after a label or a bare no that may belong to it."""

_COLONS: Final = frozenset(":：")  # the colons that people type at the end of a label
_MAX_WORDS_OF_BARE_NO: Final = 3  # the most words of a bare no: "no", "scratch that", "ну уж нет"
_MAX_WORDS_OF_CORRECTION: Final = 12  # the most words of a statement that says what is right instead
_LABELLED_TYPES: Final = frozenset({None, "critical_fact"})
"""The types of statements that can belong to a label before them."""

_FEW_WORDS: Final = 2  # words
_DEPENDENT_CLASSES: Final = frozenset({"number", "time"})
"""Classes of values that mean nothing without the thing that has the value."""

_REPLACEMENT_TYPES: Final = frozenset({None, "decision", "correction"})
"""The types of statements that can say what is right instead; a separate fact cannot."""


def detect(
    message: Message,
    *,
    statements: Sequence[Statement] | None = None,
    weights: WeightsBySpeaker | None = None,
) -> list[FoundAnchor]:
    """The anchors of a message, in order, each once; commands, erased messages and tool results have none.

    ``content`` is the message's own text at ``offset``, with secrets redacted.

    Args:
        message: Any message.
        statements: The message's ``statements_of``, if they are already known.
        weights: The weights of the likelihood; by default those of ``weights.json``.
    """
    found = _without_repeats(
        _found_anchors(message, statements_of(message) if statements is None else statements, weights or WEIGHTS)
    )
    most = MAX_USER_ANCHORS if message.role == "user" else MAX_ASSISTANT_ANCHORS
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


def _found_anchors(
    message: Message, statements: Sequence[Statement], weights: WeightsBySpeaker
) -> Iterator[FoundAnchor]:
    role: Speaker = "user" if message.role == "user" else "assistant"
    sentence_and_type: tuple[int, AnchorType] | None = None
    redacted: str | None = None
    own: OwnWords | None = None
    statements = list(_joined_statements(statements, message.content)) if role == "user" else statements
    for number, statement in enumerate(statements):
        if _announces_pasted_text(statement):
            return
        if sentence_and_type and sentence_and_type[0] == statement.sentence:
            type_ = sentence_and_type[1] if has_value(statement) else None  # this is the rest of a long sentence
        else:
            rule = type_of(statement, role)
            found = likelihoods(features(statements, number, message.seq, rule), weights[role])
            type_ = likeliest_type(found, rule, len(statements))
            if rule not in {None, type_} and role == "user" and _is_beyond_doubt(statement):
                type_ = rule
        if type_ is None or (type_ != "correction" and _is_too_short(statement)):
            continue
        own = own or OwnWords(message, statements)
        if not own.include(statement):
            continue
        sentence_and_type = (statement.sentence, type_)
        redacted = redact(message.content) if redacted is None else redacted
        text, offset = statement.balanced(message.content)
        content = _without_secrets(text, message.content, redacted)
        if content:
            emphasis = _added_importance(statement, type_, role)
            pasted = own.are_pasted(statement.offset)
            yield found_anchor(message, type_, content, offset, statement.identifiers, emphasis=emphasis, pasted=pasted)


def _is_too_short(statement: Statement) -> bool:
    # "2." and "yeah." answer something that is said elsewhere.
    count = statement.plain.count(" ") + 1
    if count > _FEW_WORDS or ":" in statement.plain or "-" in statement.plain:  # a label, a code
        return False
    numbers = sum(not any(map(str.isalpha, part)) for part in statement.plain.split())
    topic = topic_of(statement.plain)
    return count - numbers < _FEW_WORDS and topic.classes <= _DEPENDENT_CLASSES and not _is_beyond_doubt(statement)


def _is_beyond_doubt(statement: Statement) -> bool:
    return is_standing_rule(statement) or _is_labelled(statement)


def _added_importance(statement: Statement, type_: AnchorType, role: Speaker) -> float:
    if role == "user" and is_standing_rule(statement):
        return _RULE_BONUS
    if type_ == "critical_fact":
        return -_VALUE_ONLY_PENALTY if role == "user" and is_fact_by_values_only(statement) else 0.0
    return -_DOUBTFUL_TYPE_PENALTY if type_ in _DOUBTFUL_TYPES else 0.0


def _joined_statements(statements: Sequence[Statement], content: str) -> Iterator[Statement]:
    """A user's statements, joined if they say one thing together: a label and its line, or ``No. MySQL.``."""
    number = 0
    while number < len(statements):
        statement, following = statements[number], statements[number + 1 : number + 1 + _MAX_JOINED_STATEMENTS]
        if _is_labelled(statement):
            more = list(takewhile(lambda one: type_of(one, "user") in _LABELLED_TYPES, following))
        elif following and _is_bare_no(statement) and _is_corrected_by(statement, following[0], content):
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
        rule.labelled.matches((statement.plain,), statement.possible_cues)
        for table in TABLES
        for rule in table.rules.values()
    )


def _is_bare_no(statement: Statement) -> bool:
    if (
        statement.is_question
        or statement.text.count(" ") >= _MAX_WORDS_OF_BARE_NO
        or has_value(statement)
        or has_name(statement)
    ):
        return False
    readings = readings_of(statement)
    return any(reading.has(reading.table.no) for reading in readings) or type_of(statement, "user") == "correction"


def _is_corrected_by(bare_no: Statement, following: Statement, content: str) -> bool:
    if following.is_question or following.text.count(" ") >= _MAX_WORDS_OF_CORRECTION:
        return False
    longer = bare_no.joined(following, content)
    own = type_of(following, "user")
    return own in _REPLACEMENT_TYPES and longer is not None and type_of(longer, "user") == "correction"


def _announces_pasted_text(statement: Statement) -> bool:
    if ":" not in statement.text:
        return False
    possible_cues = CUE_INDEX.may_match_text(statement.text)
    return any(table.shows.matches([statement.text], possible_cues) for table in TABLES)


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
    importance = _BASE_IMPORTANCE[type_] + min(_IMPORTANCE_PER_VALUE * values, _MAX_IMPORTANCE_OF_VALUES)
    importance += -_PASTED_PENALTY if pasted else (_USER_BONUS if message.role == "user" else 0) + emphasis
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

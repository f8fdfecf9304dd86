"""Finding anchors in a message by rule: no model, no memory, linear in the message's length.

What matters is precision: an anchor is served for ever, so a sentence that only might be one is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final, Literal

from app.domain.anchors.cues import Cue, Folded
from app.domain.anchors.rendering import line_tokens
from app.domain.anchors.statements import Statement, statements
from app.domain.anchors.tables import TABLES, Rule, Table
from app.domain.anchors.topics import stems_of, technology_in
from app.domain.anchors.values import AnchorType, FoundAnchor
from app.domain.conversation import Message
from app.domain.identifiers import Identifier
from app.domain.redaction import redact
from app.domain.text import GENERIC_STEMS

MOST_BY_USER: Final = 24
MOST_BY_ASSISTANT: Final = 8
"""Anchors of one message; of more, the most important are kept. Users list what they need, assistants advise."""

_BASE: Final[dict[AnchorType, float]] = {
    "correction": 0.7,
    "decision": 0.65,
    "critical_fact": 0.6,
    "commitment": 0.5,
    "unresolved_question": 0.5,
}
"""Importance by type: what changes other anchors weighs most, what is over soonest least."""

_ORDER: Final[tuple[AnchorType, ...]] = (
    "correction",
    "unresolved_question",
    "decision",
    "commitment",
    "critical_fact",
)
"""A statement is one anchor: of the first of these types that it fits."""

_PER_VALUE: Final = 0.05
_MOST_FOR_VALUES: Final = 0.2
_BY_USER: Final = 0.1
_OPEN_TO_REPORT: Final = frozenset({"critical_fact", "unresolved_question"})
"""What somebody else said can be a fact, but neither binds nor corrects the speaker."""

_DATED: Final = frozenset({"correction"})
"""Types to which a mere day of the week is a value."""

_BINDING: Final = frozenset({"commitment", "decision"})
_CONCRETE: Final = frozenset({"correction", "decision", "critical_fact"})
"""Types whose patterns ask for an object by themselves."""

_EXACT: Final = frozenset({"url", "email", "uuid", "path", "date", "time", "money", "version", "number", "code"})
_NAMED: Final = frozenset({"name", "quoted", "symbol"})
_QUOTED: Final = re.compile(
    r"\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|«[^»\n]{1,300}»|„[^“”\n]{1,300}[“”]|`[^`\n]{1,300}`|「[^」\n]{1,300}」"
)
_LABEL: Final = re.compile(r"[^\W\d_][\w.'’-]{0,23}(?: [^\W\d_][\w.'’-]{0,23})?: ")


def detect(
    message: Message, *, tables: Sequence[Table] = TABLES, said: Sequence[Statement] | None = None
) -> list[FoundAnchor]:
    """The anchors of a message, in order; none in commands, erased messages and tool results.

    ``content`` is the message's own text at ``offset``, but for secrets, which are redacted.

    Args:
        message: Any message.
        tables: The languages that are known; all whose letters a statement has are tried on it, since languages mix.
        said: The message's ``statements``, where they are known already.
    """
    found = list(_found(message, statements(message) if said is None else said, tables))
    most = MOST_BY_USER if message.role == "user" else MOST_BY_ASSISTANT
    if len(found) <= most:
        return found
    best = sorted(found, key=lambda anchor: (-anchor.importance, anchor.offset))[:most]
    return sorted(best, key=lambda anchor: anchor.offset)


def _found(message: Message, said: Sequence[Statement], tables: Sequence[Table]) -> Iterator[FoundAnchor]:
    role: Literal["user", "assistant"] = "user" if message.role == "user" else "assistant"
    going_on: tuple[int, AnchorType] | None = None
    redacted: str | None = None
    for statement in said:
        if _shows(statement, tables):
            return
        if going_on and going_on[0] == statement.sentence:
            type_ = going_on[1] if _has_value(statement) else None  # the rest of a long sentence
        else:
            type_ = _type(statement, role, tables)
        if type_ is None:
            continue
        going_on = (statement.sentence, type_)
        redacted = redact(message.content) if redacted is None else redacted
        content = _presentable(statement.text, message.content, redacted)
        if content:
            yield found_anchor(message, type_, content, statement.offset, statement.identifiers)


def _shows(statement: Statement, tables: Sequence[Table]) -> bool:
    """Whether what follows in the message is somebody's text, given to be worked on."""
    if ":" not in statement.text:
        return False
    folded = Folded(statement.text)
    return any(table.shows.fits([statement.text], folded.opened(table.cues)) for table in tables)


def found_anchor(
    message: Message, type_: AnchorType, content: str, offset: int, identifiers: Iterable[Identifier]
) -> FoundAnchor:
    """The value, with its importance and weight."""
    values = sum(one.kind in _EXACT for one in identifiers)
    importance = _BASE[type_] + min(_PER_VALUE * values, _MOST_FOR_VALUES) + (_BY_USER if message.role == "user" else 0)
    return FoundAnchor(
        type=type_,
        content=content,
        seq=message.seq,
        offset=offset,
        importance=round(min(importance, 1.0), 4),
        token_count=line_tokens(type_, message.seq, content),
    )


def _presentable(text: str, content: str, redacted: str) -> str:
    """The statement without secrets; empty when it is part of one that only the whole message shows."""
    if redacted == content:
        return text
    cleaned = redact(text)
    return cleaned if cleaned != text or text in redacted else ""


def _type(statement: Statement, role: Literal["user", "assistant"], tables: Sequence[Table]) -> AnchorType | None:
    masked = _QUOTED.sub(_mask, statement.plain.replace("\xa0", " "))
    folded = statement.folded if masked == statement.plain else Folded(masked)
    fitting = [_Read(masked, folded.opened(table.cues), table) for table in tables if table.letters.search(masked)]
    types = ("unresolved_question",) if statement.is_question else _ORDER
    return next((type_ for type_ in types if any(_is(type_, statement, read, role) for read in fitting)), None)


class _Read:
    """A statement as one table sees it."""

    def __init__(self, masked: str, opened: int, table: Table) -> None:
        self.masked = masked
        self.opened = opened
        self.table = table

    @cached_property
    def texts(self) -> list[str]:
        """See ``leads``."""
        return leads(self.masked, self.table)

    def has(self, cue: Cue) -> bool:
        """Whether the statement fits a cue of the table, with or without what leads to its point."""
        return cue.fits(self.texts, self.opened) if cue.mask & self.opened else False

    def has_whole(self, cue: Cue) -> bool:
        """The same, as it is."""
        return cue.fits((self.masked,), self.opened)


def _is(type_: AnchorType, statement: Statement, read: _Read, role: Literal["user", "assistant"]) -> bool:
    rule = read.table.rules.get(type_)
    if rule is None or not rule.mask & read.opened or not _says(rule, type_, read, statement, role):
        return False
    return (type_ in _CONCRETE or _is_concrete(statement)) and not _denied(type_, read)


def _denied(type_: AnchorType, read: _Read) -> bool:
    """Whether it only sounds so: an exception of the table, somebody else's words, or what merely might be."""
    table = read.table
    if read.has_whole(table.rules[type_].never):
        return True
    if type_ in _BINDING and read.has_whole(table.hypothetical):
        return True
    return type_ not in _OPEN_TO_REPORT and read.has_whole(table.reported)


def leads(masked: str, table: Table) -> list[str]:
    """The statement as patterns see it: as it is, and behind a speaker's name and the words before the point."""
    texts = [masked]
    label = _LABEL.match(masked)
    if label:
        texts.append(masked[label.end() :])
    opening = table.opening.match(texts[-1])
    if opening and opening.end():
        texts.append(texts[-1][opening.end() :])
    return texts


def _says(rule: Rule, type_: AnchorType, read: _Read, statement: Statement, role: Literal["user", "assistant"]) -> bool:
    if statement.is_question:
        return read.has(rule.asks)
    if read.has(rule.says):
        return True
    if role == "assistant":
        return read.has(rule.assistant) and _has_value(statement)
    if read.has(rule.user):
        return True
    if read.has(rule.with_value) and (_has_value(statement) or (type_ in _DATED and read.has_whole(read.table.times))):
        return True
    return read.has(rule.with_name) and _has_name(statement)


def _is_concrete(statement: Statement) -> bool:
    """Whether it says what is promised or asked, not only that something is."""
    return not stems_of(statement.text) <= GENERIC_STEMS


def _has_value(statement: Statement) -> bool:
    return any(one.kind in _EXACT for one in statement.identifiers)


def _has_name(statement: Statement) -> bool:
    return any(one.kind in _NAMED for one in statement.identifiers) or bool(technology_in(statement.text))


def _mask(quote: re.Match[str]) -> str:
    """Somebody else's words, or a value: what it says is not said by the speaker."""
    return "“" + "·" * (len(quote.group()) - 2) + "”"

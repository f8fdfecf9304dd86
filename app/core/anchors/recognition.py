"""Telling by a language's table what type of anchor a statement is, if any: a feature of the likelihood."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from app.core.anchors.statements import Statement
from app.core.anchors.tables import LONGEST, Rule, Table
from app.core.anchors.topics import technology_in
from app.core.model.anchors import AnchorType, Speaker
from app.core.text.cued import Cue, Folded
from app.core.text.patterns import capped
from app.core.text.speakers import without_speaker

_ORDER: Final[tuple[AnchorType, ...]] = ("correction", "decision", "commitment", "critical_fact")
"""A statement is one anchor: of the first of these types that it fits."""

EXACT: Final = frozenset({"url", "email", "uuid", "path", "date", "time", "money", "version", "number", "code"})
_NAMED: Final = frozenset({"name", "quoted", "symbol"})
_QUOTED: Final = capped(
    r"\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|«[^»\n]{1,300}»|„[^“”\n]{1,300}[“”]|`[^`\n]{1,300}`|「[^」\n]{1,300}」",
    LONGEST,
)


def type_of(statement: Statement, role: Speaker, tables: Sequence[Table]) -> AnchorType | None:
    """The type of which it is an anchor by its words, said by this speaker; a question is none."""
    if statement.is_question:
        return None
    fitting = reads_of(statement, tables)
    if role == "user":
        first: AnchorType | None = next((one for one in map(_first, fitting) if one is not None), None)
        if first is not None:
            return first
    return next((type_ for type_ in _ORDER if any(_says(type_, read, role) for read in fitting)), None)


class Reading:
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


def reads_of(statement: Statement, tables: Sequence[Table]) -> list[Reading]:
    """The statement as the tables see it whose letters it has."""
    masked = _QUOTED.sub(_mask, statement.plain.replace("\xa0", " "))
    folded = statement.folded if masked == statement.plain else Folded(masked)
    return [Reading(masked, folded.opened(table.cues), table) for table in tables if table.letters.search(masked)]


def _first(read: Reading) -> AnchorType | None:
    """The type of which a label, or its own words, leave no doubt."""
    for type_ in _ORDER:
        rule = read.table.rules.get(type_)
        if rule is not None and (read.has_whole(rule.labelled) or _stands(rule, read)):
            return type_
    return None


def is_standing(statement: Statement, tables: Sequence[Table]) -> bool:
    """Whether it is a rule or a wish that its own words make one."""
    return any(_stands(rule, read) for read in reads_of(statement, tables) for rule in read.table.rules.values())


def _stands(rule: Rule, read: Reading) -> bool:
    return bool(rule.standing.mask & read.opened) and read.has(rule.standing)


def _says(type_: AnchorType, read: Reading, role: Speaker) -> bool:
    rule = read.table.rules.get(type_)
    return rule is not None and (read.has(rule.says) or (role == "user" and read.has(rule.user)))


def leads(masked: str, table: Table) -> list[str]:
    """The statement as patterns see it: as it is, and behind a speaker's name and the words before the point."""
    texts = list(dict.fromkeys((masked, without_speaker(masked))))
    opening = table.opening.match(texts[-1])
    if opening and opening.end():
        texts.append(texts[-1][opening.end() :])
    return texts


def has_value(statement: Statement) -> bool:
    """Whether it has an exact value."""
    return any(one.kind in EXACT for one in statement.identifiers)


def has_name(statement: Statement) -> bool:
    """Whether it names somebody or something."""
    return any(one.kind in _NAMED for one in statement.identifiers) or bool(technology_in(statement.text))


def _mask(quote: re.Match[str]) -> str:
    """Somebody else's words, or a value: what it says is not said by the speaker."""
    return "“" + "·" * (len(quote.group()) - 2) + "”"

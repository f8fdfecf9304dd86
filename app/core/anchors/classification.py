"""Recognises which type of anchor a statement is, if any, by the table of its language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final

from app.core.anchors.statements import Statement
from app.core.anchors.tables import MAX_STATEMENT_LENGTH, TABLES, Rule, Table
from app.core.anchors.topics import stems_of, technologies_in
from app.core.model.anchors import AnchorType, Speaker
from app.core.text.corrections import correction_in
from app.core.text.cue_patterns import CUE_INDEX, CuePatterns
from app.core.text.identifiers import EXACT_KINDS, NAME_KINDS
from app.core.text.patterns import capped
from app.core.text.speakers import without_speaker
from app.core.text.words import GENERIC_STEMS

_TYPES_IN_ORDER: Final[tuple[AnchorType, ...]] = (
    "correction",
    "unresolved_question",
    "decision",
    "commitment",
    "critical_fact",
)
"""The types in the order in which they are tried. A statement becomes one anchor, of the first type that fits."""

_REPORTABLE_TYPES: Final = frozenset({"critical_fact", "unresolved_question"})
"""The types that reported speech can be: it can be a fact, but neither binds nor corrects the speaker."""

_DATED_TYPES: Final = frozenset({"correction"})
"""The types for which a weekday alone counts as a value."""

_BINDING_TYPES: Final = frozenset({"commitment", "decision"})
_CONCRETE_TYPES: Final = frozenset({"correction", "decision", "critical_fact"})
"""The types whose patterns already require an object. Statements of other types have to be concrete."""

_MIN_VALUES_OF_DATA: Final = 2
"""A statement with this many exact values is data, whatever its words say."""

_QUOTATION_MARKS: Final = frozenset('"“«„`「')
_QUOTATION: Final = capped(
    r"\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|«[^»\n]{1,300}»|„[^“”\n]{1,300}[“”]|`[^`\n]{1,300}`|「[^」\n]{1,300}」",
    MAX_STATEMENT_LENGTH,
)


def type_of(statement: Statement, role: Speaker) -> AnchorType | None:
    """The type of anchor that a statement of this speaker becomes; ``None`` if it does not become one."""
    readings = readings_of(statement)
    if role == "user" and not statement.is_question:
        first: AnchorType | None = next((one for one in map(_type_by_label_or_rule, readings) if one is not None), None)
        if first is not None:
            return first
    types: Sequence[AnchorType] = ("unresolved_question",) if statement.is_question else _TYPES_IN_ORDER
    return next((type_ for type_ in types if _is_of_type(type_, statement, readings, role)), None)


class Reading:
    """A statement as one table sees it.

    Args:
        masked: The statement with quotations blanked out.
        possible: The bits that ``CUE_INDEX`` found for it: only cues with one of these bits can match.
        table: The table of a language.
    """

    def __init__(self, masked: str, possible_cues: int, table: Table) -> None:
        self.masked = masked
        self.possible_cues = possible_cues
        self.table = table

    @cached_property
    def texts(self) -> list[str]:
        """The statement in every form on which cues are tried (``forms_to_match``)."""
        return forms_to_match(self.masked, self.table)

    def has(self, cue: CuePatterns) -> bool:
        """Whether a cue of the table matches the statement, with or without its introductory words."""
        return cue.matches(self.texts, self.possible_cues) if cue.mask & self.possible_cues else False

    def has_whole(self, cue: CuePatterns) -> bool:
        """Whether a cue matches the statement as it is."""
        return cue.matches((self.masked,), self.possible_cues)


def readings_of(statement: Statement) -> list[Reading]:
    """The readings of a statement by the tables of all languages that use its letters."""
    plain = statement.plain.replace("\xa0", " ")
    masked = plain if _QUOTATION_MARKS.isdisjoint(plain) else _QUOTATION.sub(_masked_quotation, plain)
    possible_cues = CUE_INDEX.may_match_text(masked)
    return [Reading(masked, possible_cues, table) for table in TABLES if table.letters.search(masked)]


def _type_by_label_or_rule(reading: Reading) -> AnchorType | None:
    for type_ in _TYPES_IN_ORDER:
        rule = reading.table.rules.get(type_)
        if rule is not None and (reading.has_whole(rule.labelled) or _has_standing_cue(rule, reading)):
            return type_
    return None


def is_standing_rule(statement: Statement) -> bool:
    """Whether a statement is a rule or a lasting wish ("from now on …")."""
    return any(
        _has_standing_cue(rule, reading) for reading in readings_of(statement) for rule in reading.table.rules.values()
    )


def is_fact_by_values_only(statement: Statement) -> bool:
    """Whether a user's fact becomes an anchor because of its exact values, without a cue that says it matters."""
    for reading in readings_of(statement):
        rule = reading.table.rules.get("critical_fact")
        if rule is None:
            continue
        is_owned = (
            reading.has_whole(reading.table.own) or reading.has(rule.with_technology) or reading.has(rule.with_name)
        )
        if (
            is_owned
            or reading.has(rule.says)
            or reading.has(rule.user)
            or reading.has_whole(rule.labelled)
            or _has_standing_cue(rule, reading)
        ):
            return False
    return True


def _has_standing_cue(rule: Rule, reading: Reading) -> bool:
    if not rule.standing.mask & reading.possible_cues:
        return False
    return reading.has_whole(rule.standing) or (
        reading.has(rule.standing) and not reading.has_whole(reading.table.reported)
    )


def _is_of_type(type_: AnchorType, statement: Statement, readings: Iterable[Reading], role: Speaker) -> bool:
    having_rule = [reading for reading in readings if type_ in reading.table.rules]
    is_data = bool(having_rule) and type_ == "critical_fact" and role == "user" and _gives_exact_values(statement)
    if is_data and not any(_is_ruled_out(type_, reading) for reading in having_rule):
        return True  # no cue shows which table is that of its language, so none may rule it out
    return any(_is_of_type_by_cues(type_, statement, reading, role) for reading in having_rule)


def _is_of_type_by_cues(type_: AnchorType, statement: Statement, reading: Reading, role: Speaker) -> bool:
    rule = reading.table.rules[type_]
    if not rule.mask & reading.possible_cues or not _has_needed_cue(rule, type_, reading, statement, role):
        return False
    return (type_ in _CONCRETE_TYPES or _is_concrete(statement)) and not _is_ruled_out(type_, reading)


def _is_ruled_out(type_: AnchorType, reading: Reading) -> bool:
    table = reading.table
    if reading.has_whole(table.rules[type_].never):
        return True
    if type_ in _BINDING_TYPES and reading.has_whole(table.hypothetical):
        return True
    return type_ not in _REPORTABLE_TYPES and reading.has_whole(table.reported)


def forms_to_match(masked: str, table: Table) -> list[str]:
    """The forms of a statement that patterns see: as it is, and without a speaker's name and introductory words."""
    texts = list(dict.fromkeys((masked, without_speaker(masked))))
    opening = table.opening.match(texts[-1])
    if opening and opening.end():
        texts.append(texts[-1][opening.end() :])
    return [*texts, *filter(None, [correction_in(masked)])]


def _has_needed_cue(rule: Rule, type_: AnchorType, reading: Reading, statement: Statement, role: Speaker) -> bool:
    if statement.is_question:
        return reading.has(rule.asks) or (role == "assistant" and reading.has(rule.assistant))
    if role == "assistant":
        return reading.has(rule.says) or (reading.has(rule.assistant) and has_value(statement))
    if reading.has(rule.says) or reading.has(rule.user):
        return True
    if reading.has(rule.with_value) and (
        has_value(statement) or (type_ in _DATED_TYPES and reading.has_whole(reading.table.times))
    ):
        return True
    named = reading.has(rule.with_technology) and bool(technologies_in(statement.text))
    return named or (reading.has(rule.with_name) and has_name(statement))


def _gives_exact_values(statement: Statement) -> bool:
    # An exclamation about values expresses a feeling.
    if statement.is_question or statement.text.endswith("!"):
        return False
    return sum(one.kind in EXACT_KINDS for one in statement.identifiers) >= _MIN_VALUES_OF_DATA


def _is_concrete(statement: Statement) -> bool:
    return not stems_of(statement.text) <= GENERIC_STEMS


def has_value(statement: Statement) -> bool:
    """Whether a statement has an exact value."""
    return any(one.kind in EXACT_KINDS for one in statement.identifiers)


def has_name(statement: Statement) -> bool:
    """Whether a statement names somebody or something."""
    return any(one.kind in NAME_KINDS for one in statement.identifiers) or bool(technologies_in(statement.text))


def _masked_quotation(quote: re.Match[str]) -> str:
    return "“" + "·" * (len(quote.group()) - 2) + "”"

"""The words by which each language marks anchors, compiled once from ``[anchors]`` in the files of ``text/languages``.

The patterns see the first ``MAX_STATEMENT_LENGTH`` characters of a text, the most that a statement may have. That alone
does not bound the time of a pattern: each is measured like those in the code (see ``app.core.text.patterns``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Final, get_args

from app.core.model.anchors import AnchorType
from app.core.text.cue_patterns import CuePatterns
from app.core.text.languages.language_file import Language
from app.core.text.languages.loading import languages
from app.core.text.languages.sections_of_talk import AnchorCues
from app.core.text.patterns import Capped, capped, compiled
from app.core.text.scripts import SCRIPTS

MAX_STATEMENT_LENGTH: Final = 400
"""The most characters of a statement, and of a text that the patterns see."""

_CUES_OF_TYPE: Final = ("says", "user", "assistant", "with_value", "with_name", "with_technology", "asks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one type of anchor is recognised in one language."""

    says: CuePatterns
    user: CuePatterns
    assistant: CuePatterns
    with_value: CuePatterns
    with_name: CuePatterns
    with_technology: CuePatterns
    asks: CuePatterns
    never: CuePatterns
    mask: int
    """Bits of the patterns of which at least one must match (see ``Cue.mask``)."""
    labelled: CuePatterns
    standing: CuePatterns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """The patterns of one language. Tables are compared by identity, since they are keys of remembered results."""

    language: str
    letters: re.Pattern[str]
    """A letter of the language's script. On text without one the table is not tried."""
    opening: Capped
    reported: CuePatterns
    hypothetical: CuePatterns
    shows: CuePatterns
    announces: CuePatterns
    first_person: CuePatterns
    rules: Mapping[AnchorType, Rule]
    labels: int
    """Bits of the patterns of which at least one must match for a ``labelled`` rule."""
    evasive: CuePatterns
    yes: CuePatterns
    no: CuePatterns
    polite_no: CuePatterns
    smalltalk: CuePatterns
    takes_back: CuePatterns
    because: CuePatterns
    times: CuePatterns
    purpose: CuePatterns
    adds: CuePatterns
    chooses: CuePatterns
    changes: CuePatterns
    updates: CuePatterns
    moves: CuePatterns
    forbids: CuePatterns
    equates: CuePatterns
    own: CuePatterns
    which: tuple[CuePatterns, ...]
    """One pattern for each row of things that exclude each other; the group that matches says which of them it is."""
    members: int
    """Bits of the patterns of which at least one must match if a text names a thing of a row."""
    kinds: Mapping[str, CuePatterns]


def tables_of(given: Iterable[Language]) -> tuple[Table, ...]:
    """The tables of those languages whose files have ``[anchors]``."""
    return tuple(table for language in given if (table := _table(language)) is not None)


def _table(language: Language) -> Table | None:
    anchor_cues = language.anchors
    if anchor_cues is None:
        return None
    rules = {type_: _rule(rule) for type_ in get_args(AnchorType) if (rule := getattr(anchor_cues, type_)) is not None}
    which = tuple(map(_row_cue, anchor_cues.turn.which))
    return Table(
        language=language.code,
        letters=compiled(f"[{SCRIPTS[language.script]}]"),
        opening=_any_number_of(anchor_cues.opening),
        reported=_cue(anchor_cues.reported),
        hypothetical=_cue(anchor_cues.hypothetical),
        shows=_cue(anchor_cues.shows),
        announces=_cue(anchor_cues.announces),
        first_person=_cue(anchor_cues.first_person),
        rules=rules,
        labels=reduce(or_, (rule.labelled.mask for rule in rules.values()), 0),
        **{name: _cue(patterns) for name, patterns in anchor_cues.turn if name != "which"},
        kinds={kind: _cue([pattern]) for kind, pattern in anchor_cues.kinds.items()},
        which=which,
        members=reduce(or_, (row.mask for row in which), 0),
    )


def _rule(anchor_cues: AnchorCues) -> Rule:
    needed = {name: _cue(getattr(anchor_cues, name)) for name in _CUES_OF_TYPE}
    return Rule(
        **needed,
        never=_cue(anchor_cues.never),
        mask=reduce(or_, (cue.mask for cue in needed.values())),
        labelled=_cue(anchor_cues.labelled),
        standing=_cue(anchor_cues.standing),
    )


def _cue(patterns: Iterable[str]) -> CuePatterns:
    return CuePatterns(patterns, MAX_STATEMENT_LENGTH)


def _row_cue(members: str) -> CuePatterns:
    joined = "|".join(f"({member})" for member in members.split(" / "))
    return _cue([rf"\b(?:{joined})\b"])


def _any_number_of(patterns: Sequence[str]) -> Capped:
    joined = "|".join(f"(?:{one})" for one in patterns if one)
    return capped(f"(?:{joined})+" if joined else r"(?!)", MAX_STATEMENT_LENGTH, re.IGNORECASE)


TABLES: Final = tables_of(languages())

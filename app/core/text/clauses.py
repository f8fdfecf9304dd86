"""Shortens a sentence to the clauses that hold its exact values, word for word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from app.core.text.corrections import correction_in
from app.core.text.cue_patterns import CUE_INDEX
from app.core.text.identifiers import Identifier
from app.core.text.languages.combined_words import alternatives, pattern_of
from app.core.text.patterns import compiled
from app.core.text.words import words

MIN_WORDS: Final = 3
"""The fewest content words of a text that can be understood alone."""

_SHORT: Final = 44  # characters; shortening a text of at most so many gains nothing
_TOPIC: Final = 6  # at most so many words before a colon name what follows
_LONG_TAIL: Final = 24  # characters; an end of as many after the last value is worth cutting off

_REASONS: Final = alternatives("clauses", "reasons")
_JOINT, _JOINT_WITHOUT_REASON = (
    compiled(
        r"[:：;；，、,\s](?:(?P<colon>(?<=:)\s|(?<=：)\s?)|(?<=;)\s|(?<=[；，、])\s?|(?<=\s)[—–-]\s"
        rf"|(?:(?<=,)\s|(?<=\s))(?P<reason>{reasons})\s"
        rf"|(?<=,)\s(?:(?P<link>{alternatives('clauses', 'links')})\s)?)",
        re.IGNORECASE,
    )
    for reasons in (_REASONS, "(?!)")
)
"""What stands between two clauses. The pattern begins with a class of single characters, so that other places are
skipped quickly. The second is for texts that have no word like "because", for which each space would be looked at."""
_REASON_BIT: Final = CUE_INDEX.add(_REASONS)

_CLAUSE_MARKS: Final = frozenset(";；—–-")

_OPENS: Final = compiled(alternatives("clauses", "subjects"), re.IGNORECASE)
_LINK: Final = compiled(rf"(?:{alternatives('clauses', 'ties')})\s")
_BINDS: Final = pattern_of("clauses", "binds")
_UNRESOLVED: Final = compiled(rf"(?:{alternatives('clauses', 'unresolved')})\b", re.IGNORECASE)


def clause_starts(text: str) -> list[int]:
    """The places where a further clause begins: behind a punctuation mark, or at a conjunction."""
    return [_begins(joint) for joint in _joints(text)]


def main_clause_starts(text: str) -> list[int]:
    """The places where a main clause may begin again: behind a semicolon, a colon, a dash or a conjunction."""
    return [joint.end() for joint in _joints(text) if joint.lastgroup or _ends_clause(joint)]


def _joints(text: str) -> Iterator[re.Match[str]]:
    return (_JOINT if CUE_INDEX.may_match_text(text) & _REASON_BIT else _JOINT_WITHOUT_REASON).finditer(text)


def _ends_clause(joint: re.Match[str]) -> bool:
    return not _CLAUSE_MARKS.isdisjoint(joint.group())


def _begins(joint: re.Match[str]) -> int:
    return joint.start(joint.lastgroup) if joint.lastgroup in {"link", "reason"} else joint.end()


def begins_unresolved(text: str) -> bool:
    """Whether a text begins with a pronoun that points to something said before it."""
    return _UNRESOLVED.match(text) is not None


def is_fragment(text: str) -> bool:
    """Whether a text has too few content words to stand alone."""
    return len(words(text)) < MIN_WORDS


def clauses_with_values(text: str, found: Sequence[Identifier]) -> str:
    """The clauses of a sentence that hold its exact values, or the whole sentence where fewer would change its meaning.

    ``text`` is one sentence, ``found`` are its identifiers.
    """
    marks = sorted(item.start for item in found if item.kind != "symbol")
    if len(text) <= _SHORT or not marks or correction_in(text):
        return _without_link(text)
    joints = [joint for joint in _joints(text) if joint.start() > 0]
    start = _start_of_independent_clause(text, [joint for joint in joints if joint.end() <= marks[0]])
    end = _end_of_independent_clause(text, [joint for joint in joints if joint.start() > marks[-1]])
    stretch = text[start:end].strip(" ,;:—–")
    whole = start == 0 and end == len(text)
    return _without_link(text if whole or is_fragment(stretch) or begins_unresolved(stretch) else stretch)


def _without_link(text: str) -> str:
    link = _LINK.match(text)
    rest = text[link.end() :] if link else ""
    return rest[:1].upper() + rest[1:] if rest and not begins_unresolved(rest) and not is_fragment(rest) else text


def _start_of_independent_clause(text: str, joints: Sequence[re.Match[str]]) -> int:
    for joint in reversed(joints):
        head = text[: joint.start()]
        if _BINDS.search(head) or (joint["colon"] is not None and head.count(" ") < _TOPIC) or joint["reason"]:
            continue
        if _OPENS.match(text, joint.end()):
            return joint.end()
    return 0


def _end_of_independent_clause(text: str, joints: Sequence[re.Match[str]]) -> int:
    for joint in joints:
        tail = text[joint.end() :]
        parts = joint["reason"] or joint["link"] or _OPENS.match(tail)
        if parts and len(tail) >= _LONG_TAIL and not _BINDS.search(tail):
            return joint.start()
    return len(text)

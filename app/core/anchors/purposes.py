"""Finds the purpose of a choice. Two choices for the same purpose exclude each other; for two purposes they do not.

In doubt two choices do not exclude each other: both anchors stay, each with its place in the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from app.core.anchors.tables import TABLES
from app.core.anchors.topics import EXCLUSIVE_KINDS, Topic, stems_of
from app.core.text.cue_patterns import CUE_INDEX, cue_matches
from app.core.text.identifiers import NAME_KINDS, find_identifiers
from app.core.text.memo import memoized
from app.core.text.patterns import compiled
from app.core.text.words import GENERIC_STEMS

_NUMBERED: Final = compiled(r"[^\W\d_]\s+[#№]?(\d{1,6})(?![\w.,:%$€£₽-])")
"""A number after its noun, which says which one is meant (``room 8``). Before a noun a number says how many."""
_TIME_KINDS: Final = frozenset({"date", "time"})


@memoized()
def has_cue(text: str, cue: str) -> bool:
    """Whether a text has the cue of that name, in a language whose letters it has."""
    return next(cues_in(text, cue), None) is not None


def cues_in(text: str, cue: str) -> Iterator[re.Match[str]]:
    """The places where a text has the cue of that name, in the languages whose letters it has."""
    plain = text.replace("’", "'")
    possible_cues = CUE_INDEX.may_match_text(plain)
    cues = ((getattr(table, cue), table) for table in TABLES)
    return cue_matches(plain, (one for one, table in cues if one.mask & possible_cues and table.letters.search(plain)))


@memoized()
def purpose(text: str) -> frozenset[str]:
    """Stems of the purpose of something: ``for the session store``, ``for room 8``; times and amounts are not one."""
    plain = text.replace("’", "'")
    named = [group for found in cues_in(text, "purpose") for group in found.groups() if group]
    stems = frozenset[str]().union(*map(stems_of, named)) - GENERIC_STEMS
    if not stems:
        return stems
    found = [one for one in find_identifiers(plain) if one.kind not in NAME_KINDS]
    exact = frozenset[str]().union(*(stems_of(one.text) for one in found))
    times = (day.group() for day in cue_matches(plain, (table.times for table in TABLES)))
    dated = frozenset[str]().union(*(stems_of(one.text) for one in find_identifiers(plain) if one.kind in _TIME_KINDS))
    numbers = {number for group in named for number in _NUMBERED.findall(group)} - dated
    return (stems - exact - frozenset[str]().union(*map(stems_of, times))) | numbers


def specific_purpose(text: str, kinds: frozenset[str]) -> frozenset[str]:
    """The purpose without words that name these kinds: for a database, "the main database" is not a purpose."""
    return purpose(text) - kind_words(text, kinds)


@memoized()
def kind_words(text: str, kinds: frozenset[str]) -> frozenset[str]:
    """Stems of the words in a text that name these kinds, such as ``database``."""
    plain = text.replace("’", "'")
    named = (table.kinds[kind] for table in TABLES for kind in sorted(kinds & table.kinds.keys()))
    return frozenset[str]().union(*(stems_of(found.group()) for found in cue_matches(plain, named)))


def serves_another_purpose(new: Topic, old: Topic, for_new: frozenset[str], for_old: frozenset[str]) -> bool:
    """Whether a new statement is about a thing for another purpose than the old one.

    If only the purpose changed, it is the same thing. A thing with another number (``room 8``) is always another thing.
    """
    if _numbers_in(for_new) and _numbers_in(for_old) and _numbers_in(for_new) != _numbers_in(for_old):
        return True
    if not (for_new and for_old) or new.all_stems - for_new <= old.all_stems:
        return False
    mine, theirs = for_new - old.all_stems, for_old - new.all_stems
    return bool(mine and theirs) and 2 * len(for_new & for_old) <= min(len(for_new), len(for_old))


def _numbers_in(stems: frozenset[str]) -> frozenset[str]:
    return frozenset(filter(str.isdigit, stems))


def is_addition(text: str) -> bool:
    """Whether the text says that it adds to what was said: ``also``, ``as well``."""
    return has_cue(text, "adds")


def bare_choice(text: str) -> str | None:
    """What a bare choice chooses, ``Postgres`` in ``let's go with Postgres``; ``None`` if the text says more."""
    found = next(cues_in(text, "chooses"), None)
    plain = text.replace("’", "'")
    return plain[: found.start()] + " " + plain[found.end() :] if found else None


def exclude_each_other(new: Topic, old: Topic) -> bool:
    """Whether both topics only name things of one kind of which a single one is chosen, such as databases."""
    return bool(new.kinds) and new.kinds == old.kinds <= EXCLUSIVE_KINDS and not new.words and not old.words

"""How languages say what an anchor is: one TOML file per language, read once.

A language is added by adding a file to ``tables/``; nothing here or anywhere else names one. Its keys:

* ``language``: ISO 639-1; ``letters``: the character class of its alphabet: the file is tried on text that has some.
* ``opening``: words before the point (``well,``), skipped, so that ``^`` in a pattern stands behind them;
  ``reported``, ``hypothetical``: speech that binds nobody; ``shows``: what leads in a text that is only shown
  (``translate this:``), so that what follows in the message is nobody's word; ``announces``: the same of what begins
  in the next line (``here is the page I found.``); ``first_person``: words by which a speaker means themselves.
* a section per anchor type: ``says`` (patterns for whoever speaks), ``user`` (for users),
  ``with_value``, ``with_name`` and ``with_technology`` (for users, beside an exact value, a name, a name of
  technology), ``assistant`` (for assistants, beside an exact
  value; in questions also without one), ``asks`` (for questions), ``never`` (no anchor all
  the same); for users, before any other type is thought of: ``labelled`` (a label that says it: ``Rule:``) and
  ``standing`` (its own words leave no doubt: ``Never disclose ...``).
* ``turn``: what a later message does: ``evasive`` (no answer), ``yes``, ``no``,
  ``polite_no`` (turns nothing down), ``smalltalk`` (answers nothing), ``ousts`` (its group names what goes),
  ``takes_back`` (says that something is taken back, not what), ``because`` (a reason begins),
  ``times`` (words for days and hours that take each other's place), ``purpose`` (its groups name what something is
  for), ``adds`` (beside what was said), ``switches`` (something is left for something else), ``chooses`` (the words
  of a bare choice, all but what is chosen), ``changes`` (words that only say that something is chosen, or changes),
  ``updates`` (the same thing is otherwise now), ``moves`` (it tells of a change), ``forbids``, ``equates`` (what
  stands between a thing and what it is), ``owner`` (its group names whose thing it is), ``own`` (the speaker's),
  ``which`` (rows of words, parted by `` / ``, that tell which of several is meant: who names one of a row does not
  speak of another).
* ``kinds``: by kind of technology (see ``topics``), what its things are called: ``our main database``.

Patterns are regular expressions without regard to case, with straight apostrophes. They see the first
``cues.LONGEST`` characters of a text, which is as long as a statement may be. That alone bounds no pattern's time: each
is measured as those of the code are (see ``app.core.text.patterns``).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from importlib.resources import files
from importlib.resources.abc import Traversable
from operator import or_
from typing import Any, Final, get_args

from app.core.anchors.cues import LONGEST, Cue, Cues
from app.core.model.anchors import AnchorType
from app.core.text.patterns import Capped, capped, compiled

_NEEDED: Final = ("says", "user", "assistant", "with_value", "with_name", "with_technology", "asks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one type of anchor is recognised in one language."""

    says: Cue
    user: Cue
    assistant: Cue
    with_value: Cue
    with_name: Cue
    with_technology: Cue
    asks: Cue
    never: Cue
    mask: int
    """The patterns of which one must fit."""
    labelled: Cue
    standing: Cue


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """One language. Two are the same only when they are one: texts that were read by it are remembered with it."""

    language: str
    letters: re.Pattern[str]
    opening: Capped
    cues: Cues
    """Which of the following may fit a text at all."""
    reported: Cue
    hypothetical: Cue
    shows: Cue
    announces: Cue
    first_person: Cue
    rules: Mapping[AnchorType, Rule]
    evasive: Cue
    yes: Cue
    no: Cue
    polite_no: Cue
    smalltalk: Cue
    ousts: Cue
    takes_back: Cue
    because: Cue
    times: Cue
    purpose: Cue
    adds: Cue
    switches: Cue
    chooses: Cue
    changes: Cue
    updates: Cue
    moves: Cue
    forbids: Cue
    equates: Cue
    owner: Cue
    own: Cue
    which: tuple[Capped, ...]
    """One per row; the number of the group that fits is that of the member."""
    kinds: Mapping[str, Cue]


def read_tables(folder: Traversable) -> tuple[Table, ...]:
    """Every ``.toml`` file of a folder as a table, by name.

    Raises:
        KeyError: A file names no language or no letters.
        re.error: A pattern is none.
    """
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda entry: entry.name)
    return tuple(_table(tomllib.loads(entry.read_text(encoding="utf-8"))) for entry in found)


def _table(given: Mapping[str, Any]) -> Table:
    turn, cues = given.get("turn", {}), Cues()
    return Table(
        language=given["language"],
        letters=compiled(f"[{given['letters']}]", re.IGNORECASE),
        opening=_opening(_listed(given, "opening")),
        cues=cues,
        reported=cues.cue(_listed(given, "reported")),
        hypothetical=cues.cue(_listed(given, "hypothetical")),
        shows=cues.cue(_listed(given, "shows")),
        announces=cues.cue(_listed(given, "announces")),
        first_person=cues.cue(_listed(given, "first_person")),
        rules={type_: _rule(given[type_], cues) for type_ in get_args(AnchorType) if type_ in given},
        evasive=cues.cue(_listed(turn, "evasive")),
        yes=cues.cue(_listed(turn, "yes")),
        no=cues.cue(_listed(turn, "no")),
        polite_no=cues.cue(_listed(turn, "polite_no")),
        smalltalk=cues.cue(_listed(turn, "smalltalk")),
        ousts=cues.cue(_listed(turn, "ousts")),
        takes_back=cues.cue(_listed(turn, "takes_back")),
        because=cues.cue(_listed(turn, "because")),
        times=cues.cue(_listed(turn, "times")),
        purpose=cues.cue(_listed(turn, "purpose")),
        adds=cues.cue(_listed(turn, "adds")),
        switches=cues.cue(_listed(turn, "switches")),
        chooses=cues.cue(_listed(turn, "chooses")),
        changes=cues.cue(_listed(turn, "changes")),
        updates=cues.cue(_listed(turn, "updates")),
        moves=cues.cue(_listed(turn, "moves")),
        forbids=cues.cue(_listed(turn, "forbids")),
        equates=cues.cue(_listed(turn, "equates")),
        owner=cues.cue(_listed(turn, "owner")),
        own=cues.cue(_listed(turn, "own")),
        kinds={kind: cues.cue([pattern]) for kind, pattern in given.get("kinds", {}).items()},
        which=tuple(map(_row, _listed(turn, "which"))),
    )


def _rule(given: Mapping[str, Any], cues: Cues) -> Rule:
    needed = {name: cues.cue(_listed(given, name)) for name in _NEEDED}
    return Rule(
        **needed,
        never=cues.cue(_listed(given, "never")),
        mask=reduce(or_, (cue.mask for cue in needed.values())),
        labelled=cues.cue(_listed(given, "labelled")),
        standing=cues.cue(_listed(given, "standing")),
    )


def _listed(given: Mapping[str, Any], key: str) -> list[str]:
    found: str | list[str] = given.get(key, [])
    return [found] if isinstance(found, str) else found


def _row(members: str) -> Capped:
    joined = "|".join(f"({member})" for member in members.split(" / "))
    return capped(rf"\b(?:{joined})\b", LONGEST, re.IGNORECASE)


def _opening(patterns: Sequence[str]) -> Capped:
    """Any number of these; nothing where there are none."""
    joined = "|".join(f"(?:{one})" for one in patterns if one)
    return capped(f"(?:{joined})+" if joined else r"(?!)", LONGEST, re.IGNORECASE)


# No I/O in the core's sense: the files are part of the program, as the patterns of its modules are; they are read
# with it, once, from wherever it was installed, and nothing that happens later depends on a disk.
TABLES: Final = read_tables(files("app.core.anchors") / "tables")

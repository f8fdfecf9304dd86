"""Decides which field of a schema takes an item, by the kinds of its statements, and finds the objective of a talk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.core.model.policies.goals import states_goal
from app.core.model.state import FieldRole, StateField, StateSchema
from app.core.reading.cues import PLEASANTRY, Cue
from app.core.reading.passages import Passage
from app.core.summarizer.offline.files import lies_ahead
from app.core.summarizer.offline.items import Item
from app.core.text.clauses import begins_unresolved
from app.core.text.cued import CuePatterns as Said
from app.core.text.languages.joined import pattern_of, sources_of
from app.core.text.supposing import is_supposed

OBJECTIVE: Final = "objective"
"""The kind of the statement that says what the conversation is for."""
PATH: Final = "path"
"""The kind of a statement that names a file."""
HYPOTHESIS: Final = "hypothesis"
"""The kind of a statement that is only supposed."""

OBSTACLE: Final = "obstacle"
"""The kind of a statement about something that is in the way."""
QUESTION: Final = "question"
"""The kind of a question; among open points, of one that is not answered."""

_SETTLED: Final[frozenset[Cue]] = frozenset({"correction", "update", "result", "event"})
_AHEAD: Final[frozenset[Cue]] = frozenset({"plan", "commitment"})
"""Cues that do not count as kinds if something has already happened: "the deadline moved: we launch in June"."""
_MADE: Final[frozenset[Cue]] = frozenset({"decision"})
"""Cues that do not count as kinds of a statement about the future: what will be decided is not a decision."""
_BINDING: Final[frozenset[Cue]] = frozenset({"constraint", "rule"})
"""Cues that do not count as kinds of an assistant's words, which only repeat rules, or name its own limits."""
_LOOKED_AT: Final = 12  # the number of sentences among which the objective is looked for
_TELLING: Final = 3  # the fewest content words of an objective
_STATED: Final = 12.0  # the worth of a stated goal: it is the objective, however long other sentences are
_WANTED: Final = 4.0
_FIRST: Final = 4.0  # the worth of the first sentence, which mostly says what the talk is about
_LONG: Final = 10  # the most content words that count: further ones say no more about what is wanted
_IN_THE_WAY: Final = Said(sources_of("claims", "obstacles"))
_WANTS: Final = pattern_of("claims", "wanted")


def field_for(item: Item, role: FieldRole, schema: StateSchema, opening: int | None = None) -> StateField:
    """The first field that takes a kind of statement in the item; without one, the home of its role.

    Open points are put into a field for open points, if there is one; style and shared terms into that of their role.

    Args:
        item: An item of a candidate.
        role: The role of the item.
        schema: The schema of the state.
        opening: The index of the passage that says what the conversation is for.
    """
    if role in {"fact", "open"}:
        kinds = kinds_of(item, opening)
        is_open = role == "open" and any(field.role == "open" for field in schema.fields)
        fitting = [field for field in schema.fields if field.role == "open" or not is_open]
        telling = (kinds - {PATH}, kinds)  # the name of a file says least about a statement, so it is tried last
        taking = next((field for some in telling for field in fitting if field.takes & some), None)
        if taking is not None:
            return taking
    return schema.home(role)


def kinds_of(item: Item, opening: int | None = None) -> frozenset[str]:
    """The kinds of an item's statements: the cues of its sentences, and the further kinds of this module."""
    kinds: set[str] = {cue for passage in item.passages if not passage.is_question for cue in passage.cues}
    if kinds & _SETTLED:
        kinds -= _AHEAD
    if lies_ahead(item.text):
        kinds = {*(kinds - _MADE), "plan"}
    if not any(passage.role == "user" or passage.is_named for passage in item.passages):
        kinds -= _BINDING
    if any(passage.is_question for passage in item.passages):
        kinds.add(QUESTION)
    if any(passage.index == opening for passage in item.passages):
        kinds.add(OBJECTIVE)
    if any(found.kind == "path" for passage in item.passages for found in passage.identifiers):
        kinds.add(PATH)
    if _IN_THE_WAY.is_in(item.text):
        kinds.add(OBSTACLE)
    if is_supposed(item.text):
        kinds.add(HYPOTHESIS)
    return frozenset(kinds)


def objective(passages: Sequence[Passage]) -> Passage | None:
    """The sentence of a user's first meaningful messages that says what they want; ``None`` without one."""
    asked = [one for one in passages if one.role == "user" and not one.is_pasted][:_LOOKED_AT]
    telling = [one for one in asked if len(one.stems) >= _TELLING and not PLEASANTRY.match(one.text)]
    if not telling:
        return None
    opening = telling[0].seq
    sound = [one for one in telling if not begins_unresolved(one.text)]
    return max(sound, key=lambda one: (_worth_as_aim(one) + _FIRST * (one.seq == opening), -one.index), default=None)


def _worth_as_aim(passage: Passage) -> float:
    named = _STATED * states_goal(passage.text) + _WANTED * bool(_WANTS.search(passage.text))
    return named + min(len(passage.stems), _LONG) / 2 + 2 * len(passage.cues - {"identity"})

"""Decides which field of a schema takes an item, by the kinds of its statements, and finds the objective of a talk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.core.model.policies.goals import states_goal
from app.core.model.state import FieldRole, StateField, StateSchema
from app.core.reading.cues import PLEASANTRY, Cue
from app.core.reading.passages import Passage
from app.core.summarizer.offline.files import is_about_future
from app.core.summarizer.offline.items import Item
from app.core.text.clauses import begins_unresolved
from app.core.text.cue_patterns import CuePatterns as WordCue
from app.core.text.languages.combined_words import pattern_of, sources_of
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

_SETTLED_CUES: Final[frozenset[Cue]] = frozenset({"correction", "update", "result", "event"})
_FUTURE_CUES: Final[frozenset[Cue]] = frozenset({"plan", "commitment"})
"""Cues that do not count as kinds if something has already happened: "the deadline moved: we launch in June"."""
_DECISION_CUES: Final[frozenset[Cue]] = frozenset({"decision"})
"""Cues that do not count as kinds of a statement about the future: what will be decided is not a decision."""
_RULE_CUES: Final[frozenset[Cue]] = frozenset({"constraint", "rule"})
"""Cues that do not count as kinds of an assistant's words, which only repeat rules, or name its own limits."""
_MAX_SENTENCES: Final = 12  # the number of sentences among which the objective is looked for
_MIN_OBJECTIVE_WORDS: Final = 3  # the fewest content words of an objective
_STATED_GOAL_WORTH: Final = 12.0  # the worth of a stated goal: it is the objective, however long other sentences are
_WANT_WORTH: Final = 4.0
_FIRST_SENTENCE_WORTH: Final = 4.0  # the worth of the first sentence, which mostly says what the talk is about
_MAX_COUNTED_WORDS: Final = 10  # the most content words that count: further ones say no more about what is wanted
_OBSTACLES: Final = WordCue(sources_of("claims", "obstacles"))
_WANTS: Final = pattern_of("claims", "wanted")


def field_for(item: Item, role: FieldRole, schema: StateSchema, objective_index: int | None = None) -> StateField:
    """The first field that takes a kind of statement in the item; without one, the home of its role.

    Open points are put into a field for open points, if there is one; style and shared terms into that of their role.

    Args:
        item: An item of a candidate.
        role: The role of the item.
        schema: The schema of the state.
        objective_index: The index of the passage that says what the conversation is for.
    """
    if role in {"fact", "open"}:
        kinds = kinds_of(item, objective_index)
        is_open = role == "open" and any(field.role == "open" for field in schema.fields)
        fitting = [field for field in schema.fields if field.role == "open" or not is_open]
        telling = (kinds - {PATH}, kinds)  # the name of a file says least about a statement, so it is tried last
        taking = next((field for some in telling for field in fitting if field.takes & some), None)
        if taking is not None:
            return taking
    return schema.field_for(role)


def kinds_of(item: Item, objective_index: int | None = None) -> frozenset[str]:
    """The kinds of an item's statements: the cues of its sentences, and the further kinds of this module."""
    kinds: set[str] = {cue for passage in item.passages if not passage.is_question for cue in passage.cues}
    if kinds & _SETTLED_CUES:
        kinds -= _FUTURE_CUES
    if is_about_future(item.text):
        kinds = {*(kinds - _DECISION_CUES), "plan"}
    if not any(passage.role == "user" or passage.is_named for passage in item.passages):
        kinds -= _RULE_CUES
    if any(passage.is_question for passage in item.passages):
        kinds.add(QUESTION)
    if any(passage.index == objective_index for passage in item.passages):
        kinds.add(OBJECTIVE)
    if any(found.kind == "path" for passage in item.passages for found in passage.identifiers):
        kinds.add(PATH)
    if _OBSTACLES.is_in(item.text):
        kinds.add(OBSTACLE)
    if is_supposed(item.text):
        kinds.add(HYPOTHESIS)
    return frozenset(kinds)


def objective(passages: Sequence[Passage]) -> Passage | None:
    """The sentence of a user's first meaningful messages that says what they want; ``None`` without one."""
    user_passages = [one for one in passages if one.role == "user" and not one.is_pasted][:_MAX_SENTENCES]
    meaningful = [
        one for one in user_passages if len(one.stems) >= _MIN_OBJECTIVE_WORDS and not PLEASANTRY.match(one.text)
    ]
    if not meaningful:
        return None
    opening = meaningful[0].seq
    understandable = [one for one in meaningful if not begins_unresolved(one.text)]
    return max(
        understandable,
        key=lambda one: (_worth_as_objective(one) + _FIRST_SENTENCE_WORTH * (one.seq == opening), -one.index),
        default=None,
    )


def _worth_as_objective(passage: Passage) -> float:
    named = _STATED_GOAL_WORTH * states_goal(passage.text) + _WANT_WORTH * bool(_WANTS.search(passage.text))
    return named + min(len(passage.stems), _MAX_COUNTED_WORDS) / 2 + 2 * len(passage.cues - {"identity"})

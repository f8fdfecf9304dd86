"""Makes a state fit its cap, by the roles of its entries. Removed entries are returned, marked ``pruned``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from operator import attrgetter
from typing import Any, Final

from app.core.model.doubt_marks import PARAGRAPH, with_doubt_marks
from app.core.model.policies.budgets import Budgets
from app.core.model.state import FieldRole, StateEntry, StateSchema
from app.core.reading.cues import cues_of
from app.core.state.statement_removal import fewer_statements, thinned_texts
from app.core.summarizer.offline.kinds import OBJECTIVE
from app.core.summarizer.offline.narrative_states import is_narrative_only
from app.core.text.sentences import sentence_spans
from app.core.text.values import values
from app.core.text.words import stems
from app.core.validation.verdict_application import index_by_age

_SPARED_NEWEST: Final = 2
"""How many of the newest entries of each field are only removed in the last round.

Otherwise a state that is always full of facts would never serve tone and shared knowledge.
"""
_SPARED_FIRST_FACTS: Final = 6
"""How many of the oldest facts with exact values are only removed in the last round: a conversation is about what it
began with."""
_EARLIER_NARRATIVE_SHARE: Final = 1 / 8
"""The share of the earlier narrative, if a model has just written a new one and the earlier one is kept after it, in
doubt. The share is kept as long as the new narrative can be shortened, since the earlier values are nowhere else."""
_MAX_NARRATIVE_STEPS: Final = 64
"""The most steps in which a narrative is shortened, since it may have thousands of sentences."""
_MAX_RETURNED: Final = 32  # the most entries for which room is looked for again
_OVERLAP_OF_DOUBLES: Final = 0.5  # two entries that share more of their words are doubles: the older adds little

Fits = Callable[[dict[str, Any]], bool]
"""Says whether a state, in the shape of the schema's model, is small enough. If one fits, every smaller one has to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One removal: of an entry, or of a part of it, so that ``shorter`` replaces it."""

    entry: StateEntry
    shorter: StateEntry | None = None


def state_of(schema: StateSchema, entries: Sequence[StateEntry]) -> dict[str, Any]:
    """The state that these entries make, in exactly the shape of the schema's model, without the pruned ones.

    Raises:
        KeyError: An entry names a field that the schema lacks.
    """
    texts: dict[str, list[str]] = {field.name: [] for field in schema.fields}
    served = sorted((entry for entry in entries if not entry.pruned), key=lambda one: one.in_doubt)
    for entry, text in zip(served, with_doubt_marks(served), strict=True):
        texts[entry.field].append(text)
    state = {
        field.name: texts[field.name] if field.is_list else PARAGRAPH.join(texts[field.name]) for field in schema.fields
    }
    return schema.model.model_validate(state).model_dump()


def state_token_limit(schema: StateSchema, budgets: Budgets) -> int:
    """The most tokens of a state: its cap, or its planned size if it is one text, which is written anew each time."""
    return budgets.state_tokens if is_narrative_only(schema) else budgets.state_cap


def prune(
    schema: StateSchema,
    entries: Sequence[StateEntry],
    *,
    fits: Fits,
    carried_over: Collection[str] = (),
    written_since: int | None = None,
    doubted: Collection[str] = (),
) -> tuple[tuple[StateEntry, ...], tuple[StateEntry, ...]]:
    """Remove as little as possible until the state fits.

    In the first round these are removed, in this order:

    1. Entries in doubt; of a narrative in doubt, its statements one by one.
    2. The narrative, sentence by sentence: its first sentence stays, and its last ones are removed after those between.
       If the narrative is the whole state, it is removed statement by statement: those that add least first, its ends
       last. After a change of the schema, sentences of an earlier text are removed after it instead of before.
    3. Style and shared knowledge: doubles first, then the oldest.
    4. Open points, the oldest first.
    5. Facts, the oldest first; then rules and facts with exact values; last facts that replaced earlier ones, since
       what changed once may change again.

    Only in the second round are these removed: the newest few entries of each field, the first facts with exact values,
    and the goal of the conversation. The order is the same, but the rest of the narrative is removed before open
    points. Among facts the later ones are removed before the earlier ones, and the first and the newest last of all.

    What a language model has just written is also removed only in the second round, and its facts after all older ones.
    The model saw the entries that stay, its own may replace others, and if they were lost at once, nothing would have
    them. Its narrative, which says where things stand, is shortened only when nothing but these facts is left.

    Args:
        schema: The schema of the state.
        entries: The entries in served order.
        fits: Called only a logarithmic number of times.
        carried_over: Ids of entries that just came from another schema: they are removed last in each round.
        written_since: The version since which a language model has written; ``None`` if none did.
        doubted: Ids of entries that were put in doubt just now. Nobody has judged that yet, so they count as certain.

    Returns:
        The entries that stay, in the same order, and the removed ones, marked ``pruned``. The former fit, or are none.
    """
    served = tuple(entry for entry in entries if not entry.pruned)
    if fits(state_of(schema, served)):
        return served, ()
    written = {entry.id for entry in served if written_since is not None and entry.since_version >= written_since}
    steps = tuple(_steps(schema, served, carried_over, written, doubted))

    def fits_after(count: int) -> bool:
        return fits(state_of(schema, _entries_after(served, steps[:count])))

    count = _fewest_steps_enough(len(steps), fits_after)
    kept = _entries_after(served, steps[:count])
    staying = {entry.id for entry in kept}
    return kept, tuple(replace(entry, pruned=True) for entry in served if entry.id not in staying)


def with_returned(
    schema: StateSchema, served: Sequence[StateEntry], lost: Sequence[StateEntry], *, fits: Fits
) -> tuple[StateEntry, ...]:
    """The served entries and those of ``lost`` for which there is room again, in their old places.

    They return in the reverse of the order in which ``prune`` removes them. Narratives never do.
    """
    candidates = _entries_of_roles(lost, "fact", "open", "style", "known")
    removed = dict.fromkeys(step.entry.id for step in _steps(schema, candidates, (), set()))
    by_id = {entry.id: entry for entry in candidates}
    found = list(served)
    for name in list(reversed(removed))[:_MAX_RETURNED]:
        entry = replace(by_id[name], pruned=False)
        place = index_by_age(entry, found)
        wider = [*found[:place], entry, *found[place:]]
        if fits(state_of(schema, wider)):
            found = wider
    return tuple(found)


def _fewest_steps_enough(most: int, enough: Callable[[int], bool]) -> int:
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _entries_after(served: Sequence[StateEntry], steps: Sequence[_Step]) -> tuple[StateEntry, ...]:
    left = {step.entry.id: step.shorter for step in steps}
    now = (left.get(entry.id, entry) for entry in served)
    return tuple(entry for entry in now if entry is not None)


def _steps(
    schema: StateSchema,
    served: Sequence[StateEntry],
    carried_over: Collection[str],
    written: Collection[str],
    doubted: Collection[str] = (),
) -> Iterator[_Step]:
    listed = _entries_of_roles(served, "fact", "open", "style", "known")
    yield from _removing_steps(entry for entry in listed if entry.in_doubt and entry.id not in doubted)
    narratives = _entries_of_roles(served, "narrative")
    earlier = [step for entry in narratives if entry.in_doubt for step in _steps_of_earlier_text(entry)]
    most = _EARLIER_NARRATIVE_SHARE * sum(len(entry.text) for entry in narratives) if written else 0
    first = 0 if carried_over else sum(len(step.shorter.text if step.shorter else "") >= most for step in earlier)
    yield from earlier[:first]
    served = [entry for entry in served if not entry.in_doubt or entry.id in doubted]
    shorter = [
        step
        for entry in _entries_of_roles(served, "narrative")
        for step in _shortening_steps(schema, entry, bool(carried_over))
    ]
    shorter += earlier[first:]
    narrative_removals = list(_removing_steps(_entries_of_roles(served, "narrative")))
    if not written:
        yield from shorter
    spared = (
        _newest_of_each_field(served)
        | _first_with_values(served)
        | _first_goal_of_each_field(schema, served)
        | {*written}
    )
    doubles = _older_doubles(_entries_of_roles(served, "style", "known"))
    for is_carried_over, last_round in product((False, True), repeat=2):
        pool = [
            entry
            for entry in served
            if ((entry.id in carried_over), (entry.id in spared)) == (is_carried_over, last_round)
        ]
        is_turn_of_narrative = last_round and is_carried_over == bool(carried_over)
        style_entries = _entries_of_roles(pool, "style", "known")
        yield from _removing_steps(entry for entry in style_entries if entry.id in doubles)
        yield from _removing_steps(entry for entry in style_entries if entry.id not in doubles)
        yield from narrative_removals if is_turn_of_narrative and not written else ()
        yield from _removing_steps(_entries_of_roles(pool, "open"))
        older, new = _older_and_new(_entries_of_roles(pool, "fact"), written)
        yield from _removing_steps(_first_and_newest_last(older) if last_round else _lasting_facts_last(older))
        yield from shorter if is_turn_of_narrative and written else ()
        yield from _removing_steps(_lasting_facts_last(new))
        yield from narrative_removals if is_turn_of_narrative and written else ()


def _older_and_new(facts: Iterable[StateEntry], written: Collection[str]) -> tuple[list[StateEntry], list[StateEntry]]:
    older: list[StateEntry] = []
    new: list[StateEntry] = []
    for entry in facts:
        (new if entry.id in written else older).append(entry)
    return older, new


def _lasting_facts_last(facts: Iterable[StateEntry]) -> list[StateEntry]:
    return sorted(facts, key=lambda entry: (bool(entry.superseded), _has_value_or_rule(entry.text)))


def _first_and_newest_last(facts: Sequence[StateEntry]) -> list[StateEntry]:
    # The first and the newest facts are removed last of all.
    early, newest = facts[:-_SPARED_NEWEST], facts[-_SPARED_NEWEST:]
    return [*reversed(early[1:]), *newest[:-1], *early[:1], *newest[-1:]]


def _removing_steps(entries: Iterable[StateEntry]) -> Iterator[_Step]:
    return (_Step(entry=entry) for entry in entries)


def _entries_of_roles(entries: Sequence[StateEntry], *roles: FieldRole) -> list[StateEntry]:
    return sorted((entry for entry in entries if entry.role in roles), key=attrgetter("number"))


def _shortening_steps(schema: StateSchema, entry: StateEntry, older_first: bool) -> Iterator[_Step]:  # noqa: FBT001
    return (
        _steps_of_whole_state(entry, older_first=older_first)
        if is_narrative_only(schema)
        else _steps_of_narrative(entry)
    )


def _steps_of_earlier_text(entry: StateEntry) -> Iterator[_Step]:
    yield from (_Step(entry=entry, shorter=replace(entry, text=text)) for text in fewer_statements(entry))
    yield _Step(entry=entry)


def _steps_of_narrative(entry: StateEntry) -> Iterator[_Step]:
    # The last sentences are kept longest: they say where things stand.
    spans = sentence_spans(entry.text)
    if len(spans) < 2:  # noqa: PLR2004 - there is nothing to cut
        return
    (_, end), (start, _), *later = spans
    beginning, joint = entry.text[:end], entry.text[end:start]
    stride = -(-len(later) // _MAX_NARRATIVE_STEPS) or 1
    for place, _ in later[(len(later) - 1) % stride :: stride]:
        yield _Step(entry=entry, shorter=_with_text(entry, beginning + joint + entry.text[place:]))
    yield _Step(entry=entry, shorter=_with_text(entry, beginning.strip()))


def _steps_of_whole_state(entry: StateEntry, *, older_first: bool) -> Iterator[_Step]:
    return (
        _Step(entry=entry, shorter=_with_text(entry, text)) for text in thinned_texts(entry, older_first=older_first)
    )


def _with_text(entry: StateEntry, text: str) -> StateEntry:
    return replace(entry, text=text, superseded=(*entry.superseded, entry.text))


def _newest_of_each_field(served: Sequence[StateEntry]) -> set[str]:
    fields: defaultdict[str, list[StateEntry]] = defaultdict(list)
    for entry in served:
        if entry.role != "narrative":
            fields[entry.field].append(entry)
    return {
        entry.id for group in fields.values() for entry in sorted(group, key=attrgetter("number"))[-_SPARED_NEWEST:]
    }


def _first_with_values(served: Sequence[StateEntry]) -> set[str]:
    exact = (entry.id for entry in _entries_of_roles(served, "fact") if values(entry.text))
    return set(islice(exact, _SPARED_FIRST_FACTS))


def _first_goal_of_each_field(schema: StateSchema, served: Sequence[StateEntry]) -> set[str]:
    names = [field.name for field in schema.fields if OBJECTIVE in field.takes]
    found = (
        next((entry for entry in _entries_of_roles(served, "fact") if entry.field == name), None) for name in names
    )
    return {entry.id for entry in found if entry is not None}


def _has_value_or_rule(text: str) -> bool:
    return bool(values(text)) or "rule" in cues_of(text)


def _older_doubles(entries: Sequence[StateEntry]) -> set[str]:
    bags = [frozenset(stems(entry.text)) for entry in entries]
    return {
        older.id
        for index, older in enumerate(entries)
        for newer, bag in zip(entries[index + 1 :], bags[index + 1 :], strict=True)
        if newer.field == older.field and len(bag & bags[index]) > _OVERLAP_OF_DOUBLES * len(bag | bags[index])
    }

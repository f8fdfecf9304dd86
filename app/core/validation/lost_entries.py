"""Several state versions verified together: which entries were lost between them, and which stay on record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from app.core.model.state import StateEntry
from app.core.validation.verdict_application import VerifiedState


def lost_entries(
    present: Sequence[StateEntry], earlier: Iterable[Sequence[StateEntry]], newest_judged: Iterable[StateEntry] = ()
) -> tuple[StateEntry, ...]:
    """The entries that were served earlier and are neither served nor on record in the present version.

    Each names the entries that replaced it in the end, so that it can come back if they are contradicted. An entry that
    the judged version still served names none: it can only be recorded as contradicted.

    Args:
        present: Entries of the version that is judged, pruned ones included.
        earlier: Entries of the versions that are judged with it, the newest version first.
        newest_judged: Entries of the newest of these versions, if the present version is a later one.
    """
    known = {entry.id for entry in present}
    lost: dict[str, StateEntry] = {}
    for entries in earlier:
        for entry in entries:
            if entry.pruned and entry.id not in known:
                lost.setdefault(entry.id, entry)
    known |= lost.keys()
    served_at_judgement = [
        one for one in newest_judged if not (one.role == "narrative" or one.pruned or one.id in known)
    ]
    return (
        *(replace(entry, replaced_by=_final_successors(entry.replaced_by, lost)) for entry in lost.values()),
        *(replace(entry, pruned=True, replaced_by=()) for entry in served_at_judgement),
    )


def without_lost_entries(state: VerifiedState, lost: Iterable[StateEntry]) -> VerifiedState:
    """The state without the entries that were lost before and did not come back.

    A contradicted entry stays on record, or it would come back once the entry that replaced it is contradicted too.
    """
    names = {entry.id for entry in lost}
    kept = tuple(one for one in state.entries if not (one.pruned and one.id in names - state.refuted_ids))
    is_noted = not names.isdisjoint(state.refuted_ids) and not state.is_changed
    return replace(
        state, entries=kept, is_changed=state.is_changed or is_noted, is_doubt_only=state.is_doubt_only or is_noted
    )


def _final_successors(names: Sequence[str], lost: Mapping[str, StateEntry]) -> tuple[str, ...]:
    """The entries that replaced these in the end, through any number of replacements."""
    successors, waiting, seen = list[str](), list(names), set[str]()
    while waiting:
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        if name in lost:
            waiting += lost[name].replaced_by
        else:
            successors.append(name)
    return tuple(successors)

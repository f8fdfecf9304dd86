"""What several versions that are verified together have on record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from app.core.model.state import StateEntry


def gone_between(present: Sequence[StateEntry], earlier: Iterable[Sequence[StateEntry]]) -> tuple[StateEntry, ...]:
    """The entries that earlier versions stopped serving and of which the present one says nothing any more.

    Each names the entries that took its place in the end, so that it can come back where those are contradicted.

    Args:
        present: Entries of the version that is judged, those on record included.
        earlier: Entries of the versions that are judged with it, the newest first.
    """
    known = {entry.id for entry in present}
    gone: dict[str, StateEntry] = {}
    for entries in earlier:
        for entry in entries:
            if entry.pruned and entry.id not in known:
                gone.setdefault(entry.id, entry)
    return tuple(replace(entry, replaced_by=_last(entry.replaced_by, gone)) for entry in gone.values())


def _last(names: Sequence[str], gone: Mapping[str, StateEntry]) -> tuple[str, ...]:
    """Those that took the place of these, and of those in turn, as far as they are not gone themselves."""
    found, waiting, seen = list[str](), list(names), set[str]()
    while waiting:
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        if name in gone:
            waiting += gone[name].replaced_by
        else:
            found.append(name)
    return tuple(found)

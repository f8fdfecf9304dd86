"""What changed between two versions of a state."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.model.state import StateEntry, StateVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryChange:
    """One entry whose text differs between two versions."""

    entry_id: str
    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDifference:
    """What changed from version ``a`` to ``b``, by entry id. Entries that the cap pruned in ``b`` count as removed."""

    a: int
    b: int
    added: tuple[StateEntry, ...]
    removed: tuple[StateEntry, ...]
    changed: tuple[EntryChange, ...]


def difference(a: StateVersion, b: StateVersion) -> StateDifference:
    """Compare the served entries of two versions."""
    before = {entry.id: entry for entry in a.entries if not entry.pruned}
    after = {entry.id: entry for entry in b.entries if not entry.pruned}
    common = [(before[id_], after[id_]) for id_ in before if id_ in after]
    return StateDifference(
        a=a.version,
        b=b.version,
        added=tuple(entry for id_, entry in after.items() if id_ not in before),
        removed=tuple(entry for id_, entry in before.items() if id_ not in after),
        changed=tuple(
            EntryChange(entry_id=old.id, field=new.field, before=old.text, after=new.text)
            for old, new in common
            if old.text != new.text
        ),
    )

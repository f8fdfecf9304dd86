"""A state and where it came from: schemas as values, entries with provenance, versions.

Merge, gate and pruning work on the *roles* of fields only, never on their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel

from app.core.model.conversation import Layout, Sums, Usage
from app.core.model.repairs import Repair

FieldRole = Literal["fact", "open", "style", "known", "narrative"]
Verified = Literal["exact", "pending", "model"]
"""Who checked a version: only code; code so far, and a model is going to; code and a model."""
MadeBy = Literal["compaction", "restore", "erasure", "verification"]
"""What wrote a version; ``erasure`` if a narrative was written anew after an erasure."""
Standing = Literal["served", "unverified", "set_aside", "superseded"]
"""How an entry stands in a version: served, in doubt for one of two reasons, or replaced."""
Origin = Literal["user", "assistant", "system", "tool", "document"]
"""The origin of a text: the role of its speaker, a tool's result, or a document that a user pasted."""

ID_LETTERS: Mapping[FieldRole, str] = {"fact": "F", "open": "O", "style": "S", "known": "K", "narrative": "N"}

_NEAREST_ROLES: Mapping[FieldRole, tuple[FieldRole, ...]] = {
    "fact": ("open", "narrative"),
    "open": ("fact", "narrative"),
    "style": ("known", "fact", "narrative"),
    "known": ("fact", "narrative"),
    "narrative": ("fact",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StateField:
    """One field of a schema: its role, and what the summarizer is told about it."""

    name: str
    role: FieldRole
    ask: str
    """The words of the summarizer's prompt."""
    takes: frozenset[str] = frozenset()
    """Kinds of statements that the offline summarizer puts here, whatever their role: its cues and the kinds of its
    module ``kinds``. Other statements of a role go to its first field that names no kinds."""

    @property
    def is_list(self) -> bool:
        """Whether it holds a list of texts: every role but ``narrative`` does."""
        return self.role != "narrative"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSchema:
    """A state schema is a value: ``model`` is the shape of ``compressed_state``, exactly."""

    name: str
    model: type[BaseModel]
    use: str
    """What the awareness block tells the chat model about it, in English; catalogues hold other languages."""
    fields: tuple[StateField, ...]

    def field(self, name: str) -> StateField:
        """The field of that name; ``KeyError`` when there is none."""
        return {item.name: item for item in self.fields}[name]

    def field_for(self, role: FieldRole) -> StateField:
        """The field for texts of a role that no field takes by kind; for a role without a field, the nearest one."""
        for nearest in (role, *_NEAREST_ROLES[role]):
            fitting = [item for item in self.fields if item.role == nearest]
            if fitting:
                return next((item for item in fitting if not item.takes), fitting[0])
        return self.fields[0]

    def field_taking(self, kind: str, role: FieldRole) -> StateField:
        """The first field that takes statements of this kind; without one, that of their role."""
        return next((item for item in self.fields if kind in item.takes), None) or self.field_for(role)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEntry:
    """One text of a state, with its provenance. ``id`` (``F12``) is unique in its conversation for ever."""

    id: str
    field: str
    role: FieldRole
    text: str
    from_seqs: tuple[int, ...] = ()
    since_version: int
    origins: tuple[Origin, ...] = ()
    """The origins of its sources, each once, sorted."""
    superseded: tuple[str, ...] = ()
    """Texts that this entry replaced, oldest first."""
    in_doubt: bool = False
    """Whether a model gave it up without a proof, or nothing was found that states it: it is served marked, after the
    others. If one text is the whole state, these are sentences of the text before that the new one leaves out."""
    unverified: bool = False
    """Whether it is in doubt because a verifier found nothing that states it, and not because a model gave it up."""
    pruned: bool = False
    """Whether it is only on record: it is true in the version that stopped serving the entry, because the cap pushed it
    out, another entry took its place, or a verdict removed it."""
    replaced_by: tuple[str, ...] = ()
    """Ids of the entries that a model wrote to replace it. The entry itself is pruned, in doubt, or kept."""

    @property
    def standing(self) -> Standing | None:
        """Whether it is served, and why in doubt; ``None`` if it was removed without a successor."""
        if self.pruned:
            return "superseded" if self.replaced_by else None
        if not self.in_doubt:
            return "served"
        return "unverified" if self.unverified else "set_aside"

    @property
    def number(self) -> int:
        """The number in its id, smaller for an older entry; 0 if the id has none."""
        digits = self.id[1:]
        return int(digits) if digits.isdecimal() else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationCounts:
    """How many claims of a version got each verdict, and which model judged."""

    model: str
    prompt_version: str
    supported: int = 0
    contradicted: int = 0
    not_stated: int = 0
    unproven: int = 0
    """Contradictions whose quote was found in no message: they changed nothing."""
    unanswered: int = 0
    usage: Usage = field(default_factory=Usage)
    """The usage of all calls of the verification."""

    @property
    def claims(self) -> int:
        """How many claims were judged, or should have been."""
        return self.supported + self.contradicted + self.not_stated + self.unproven + self.unanswered


@dataclass(frozen=True, slots=True, kw_only=True)
class StateVersion:
    """One version of a conversation's state; a version number never decreases and is never reused."""

    version: int
    state_schema: str
    state: Mapping[str, Any]
    entries: tuple[StateEntry, ...]
    next_entry: int
    """The number that the next new entry's id will carry."""
    boundary_seq: int
    boundary_message_id: UUID | None
    covered: Sums
    layout: Layout | None
    compaction_id: UUID | None
    created_at: datetime
    parent_version: int | None = None
    """The version that this one goes on from: the one before it, or the one that was restored."""
    segment_ids: tuple[str, ...] = ()
    """Segments that this version covers beyond its parent's."""
    repairs: tuple[Repair, ...] = ()
    """The repairs of the summary that the version was made from."""
    made_by: MadeBy = "compaction"
    verified: Verified = "exact"
    verification: VerificationCounts | None = None
    """Counts of the claims that a model judged; ``None`` unless ``verified`` is ``model``."""

    @property
    def as_served(self) -> dict[str, Any]:
        """The values that the fields of a conversation get when it serves this version."""
        is_any = self.boundary_seq > 0
        return {
            "compressed_state": self.state if is_any else None,
            "state_schema": self.state_schema if is_any else None,
            "compressed_at_message_id": self.boundary_message_id,
            "boundary_seq": self.boundary_seq,
            "covered": self.covered,
            "state_version": self.version,
            "layout": self.layout,
        }


def texts_of(state: Any) -> Iterator[str]:
    """Every text in a state, in order."""
    if isinstance(state, str):
        yield state
    elif isinstance(state, Mapping):
        for value in state.values():
            yield from texts_of(value)
    elif isinstance(state, list | tuple):
        for value in state:
            yield from texts_of(value)

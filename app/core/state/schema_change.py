"""A change of the state's schema: entries move to the new fields by their roles, and none is lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import Final

from app.core.model.anchors import Anchor, AnchorType, FoundAnchor
from app.core.model.conversation import Message
from app.core.model.policies.budgets import Budgets
from app.core.model.provenance import origin_of
from app.core.model.repairs import Repair
from app.core.model.state import ID_LETTERS, FieldRole, Origin, StateEntry, StateField, StateSchema, StateVersion
from app.core.model.word_overlap import text_with_parts
from app.core.reading.labels import names_a_role
from app.core.reading.quoting import as_quotation
from app.core.summarizer.offline.narrative_states import is_narrative_only, statement_pieces
from app.core.text.budget import Budget
from app.core.text.relative import date_note
from app.core.text.repeating import normalized_text
from app.core.text.sentences import closed
from app.core.text.speakers import name_in, short_name, with_speaker_name
from app.core.text.token_counts import estimate_text
from app.core.validation.dates import inserted_before_end

_NEW_ENTRIES_DIVISOR: Final = 2  # new entries get one part in so many of the tokens that were carried over
_SEPARATOR: Final = " "
_OPEN: Final[frozenset[AnchorType]] = frozenset({"unresolved_question", "commitment"})
_KINDS_OF_EVENTS: Final[Mapping[str, str]] = {
    "initial_objective": "objective",
    "goal": "objective",
    "constraint": "constraint",
}
"""The kinds of statements that messages of these event types are."""


def entries_in_schema(
    entries: Sequence[StateEntry], schema: StateSchema, *, source: StateSchema, next_entry: int
) -> tuple[StateEntry, ...]:
    """The entries, moved to the fields of this schema.

    * Entries whose field exists with the same role stay as they are. Others are moved to the field of their role, or of
      the nearest existing role.
    * If only a narrative can take them, they become one text, which begins with the present narrative.
    * If the state was one text, each of its statements becomes a fact, word for word and in order, since a narrative is
      written anew each time.
    * Entries in doubt stay in doubt: in a state of one text they become a text of their own.

    ``next_entry`` is the number of the next new entry; entries made from statements are numbered from it.
    """
    if is_narrative_only(source) and not is_narrative_only(schema):
        entries = _narratives_as_facts(entries, schema, next_entry)
    moved = [(entry, _field_of(entry, schema)) for entry in entries]
    listed = [(entry.id, _moved_to_field(entry, field)) for entry, field in moved if field.is_list]
    ids = {id_: entry.id for id_, entry in listed}
    kept = [replace(entry, replaced_by=_renamed(entry.replaced_by, ids)) for _, entry in listed]
    joined = [
        _joined_entry(field, [entry for entry, target in moved if target is field and entry.in_doubt == in_doubt])
        for field in schema.fields
        if not field.is_list
        for in_doubt in (False, True)
    ]
    return (*kept, *(entry for entry in joined if entry is not None))


def entries_from_anchors(
    anchors: Sequence[Anchor],
    *,
    schema: StateSchema,
    served: Sequence[StateEntry],
    version: int,
    next_entry: int,
    language: str | None,
) -> list[StateEntry]:
    """The anchors as entries of the state, for a policy that serves no anchors, each in the field for its type.

    An anchor for which a ``served`` entry has the very same text, without doubt, is left out.

    Each entry names the speaker; if there is no name, it is a quotation in this language. Otherwise nothing would say
    who "I" is, or that a pasted document is speaking.

    ``next_entry`` is the number of the first entry.
    """
    told, found = {normalized_text(entry.text) for entry in served if not entry.in_doubt}, list[StateEntry]()
    for number, anchor in enumerate(anchors, start=next_entry):
        text = _text_with_speaker(anchor, language)
        if normalized_text(text) in told:
            continue
        kind = "question" if anchor.type == "unresolved_question" else anchor.type
        field = schema.field_taking(kind, "open" if anchor.type in _OPEN else "fact")
        found.append(
            StateEntry(
                id=f"{ID_LETTERS[field.role]}{number}",
                field=field.name,
                role=field.role,
                text=text,
                from_seqs=(anchor.seq,),
                since_version=version,
                origins=(_origin_of(anchor),),
            )
        )
    return found


def entries_from_released(
    messages: Sequence[Message],
    *,
    schema: StateSchema,
    served: Sequence[StateEntry],
    version: int,
    next_entry: int,
    language: str | None,
    max_tokens: int,
) -> list[StateEntry]:
    """Messages that were held and no longer are, as quotations, the oldest first, as far as there is room.

    Each is in the field for its event type.

    The state was written while they were served word for word, so it need not tell what they say. Messages that a
    ``served`` entry repeats whole are left out.

    ``next_entry`` is the number of the first entry.
    """
    told = [normalized_text(entry.text) for entry in served]
    room = Budget(max_tokens)
    found: list[StateEntry] = []
    for message in messages:
        texts = [part for part in message.parts if part.get("type") == "text"]
        content = " ".join(text_with_parts(message.content, texts).split())
        normalized, origin = normalized_text(content), origin_of(message, content)
        text = _attributed(content, origin, name_in(message.metadata), message.created_at, language)
        if not content or any(normalized in one for one in told) or not room.takes(estimate_text(text)):
            continue
        field = schema.field_taking(_KINDS_OF_EVENTS.get(message.event_type, ""), "fact")
        found.append(
            StateEntry(
                id=f"{ID_LETTERS[field.role]}{next_entry + len(found)}",
                field=field.name,
                role=field.role,
                text=text,
                from_seqs=(message.seq,),
                since_version=version,
                origins=(origin,),
            )
        )
    return found


def without_anchor_entries(
    entries: Sequence[StateEntry], anchors: Sequence[FoundAnchor], language: str | None
) -> tuple[StateEntry, ...]:
    """The entries without those that ``entries_from_anchors`` made of these anchors, which are served again."""
    anchor_texts = {(anchor.seq, normalized_text(_text_with_speaker(anchor, language))) for anchor in anchors}
    return tuple(
        entry
        for entry in entries
        if not any((seq, normalized_text(entry.text)) in anchor_texts for seq in entry.from_seqs)
    )


def _text_with_speaker(anchor: FoundAnchor, language: str | None) -> str:
    text, name = " ".join(anchor.content.split()), short_name(anchor.said_by)
    return _attributed(text, _origin_of(anchor), name, anchor.said_at, language)


def _attributed(text: str, origin: Origin, name: str, said_at: datetime | None, language: str | None) -> str:
    """A text with the name of its speaker, or as a quotation, and with the day that its "tomorrow" depends on."""
    if said_at:
        text = inserted_before_end(text, date_note(said_at.date(), text))
    is_named = name and origin != "document" and not names_a_role(name)
    return with_speaker_name(name, text) if is_named else as_quotation(text, origin, language)


def _origin_of(anchor: FoundAnchor) -> Origin:
    return "document" if anchor.pasted else anchor.speaker


def record_in_schema(version: StateVersion, schema: StateSchema, *, source: StateSchema) -> StateVersion:
    """The version with its listed entries, and the repairs of them, in the fields that ``schema`` has for their roles.

    Narratives are left out, and everything that ``schema`` has no list for: what is on record of it stays in the
    version as it is stored.
    """
    fields = {field.name: _field_of_role(field.name, field.role, schema) for field in source.fields}
    moved = {one.id: _moved_to_field(one, fields[one.field]) for one in version.entries if one.field in fields}
    ids = {id_: entry.id for id_, entry in moved.items()}
    listed = (entry for entry in moved.values() if entry.role != "narrative")
    repairs = (_moved_repair(one, fields, ids) for one in version.repairs)
    return replace(
        version,
        entries=tuple(replace(entry, replaced_by=_renamed(entry.replaced_by, ids)) for entry in listed),
        repairs=tuple(repair for repair in repairs if repair is not None),
    )


def _moved_repair(repair: Repair, fields: Mapping[str, StateField], ids: Mapping[str, str]) -> Repair | None:
    field = fields.get(repair.field)
    if field is None or not field.is_list:
        return None
    cut = repair.cut and replace(repair.cut, replaces=_renamed(repair.cut.replaces, ids))
    id_ = repair.entry_id and ids.get(repair.entry_id, repair.entry_id)
    return replace(repair, field=field.name, entry_id=id_, cut=cut)


def _renamed(names: Sequence[str], ids: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(ids.get(name, name) for name in names)


def requested_state_tokens(budgets: Budgets, entries: Sequence[StateEntry], *, carried: bool) -> int:
    """The requested tokens of the next state. One that was just carried over is kept whole beside new entries."""
    planned = budgets.state_tokens
    if not carried:
        return planned
    carried_tokens = sum(estimate_text(entry.text) for entry in entries)
    return max(planned, carried_tokens + max(planned, carried_tokens) // _NEW_ENTRIES_DIVISOR)


def next_entry_number(entries: Sequence[StateEntry], next_entry: int) -> int:
    """The number of the next new entry after these entries."""
    return max([next_entry, *(entry.number + 1 for entry in entries)])


def _narratives_as_facts(entries: Sequence[StateEntry], schema: StateSchema, next_entry: int) -> list[StateEntry]:
    """The entries of a state of one text, with each of its statements as a fact of its own."""
    numbers = count(next_entry)
    target = schema.field_for("fact")
    return [
        replace(
            entry,
            id=f"{ID_LETTERS['fact']}{next(numbers)}",
            field=target.name,
            role="fact",
            text=text,
            superseded=(),
        )
        for entry in entries
        for text in statement_pieces(entry.text)
    ]


def _field_of(entry: StateEntry, schema: StateSchema) -> StateField:
    return _field_of_role(entry.field, entry.role, schema)


def _field_of_role(name: str, role: FieldRole, schema: StateSchema) -> StateField:
    same = (field for field in schema.fields if field.name == name and field.role == role)
    return next(same, None) or schema.field_for(role)


def _moved_to_field(entry: StateEntry, field: StateField) -> StateEntry:
    if (entry.field, entry.role) == (field.name, field.role):
        return entry
    return replace(entry, id=f"{ID_LETTERS[field.role]}{entry.id[1:]}", field=field.name, role=field.role)


def _joined_entry(field: StateField, entries: Sequence[StateEntry]) -> StateEntry | None:
    """One entry with the texts of all these entries, those of a narrative first."""
    if not entries:
        return None
    ordered = sorted(entries, key=lambda entry: entry.role != "narrative")
    first = _moved_to_field(ordered[0], field)
    if len(ordered) == 1:
        return first
    return replace(
        first,
        text=_SEPARATOR.join(closed(entry.text) for entry in ordered),
        from_seqs=tuple(sorted({seq for entry in ordered for seq in entry.from_seqs})),
        origins=tuple(sorted({origin for entry in ordered for origin in entry.origins})),
        since_version=min(entry.since_version for entry in ordered),
        superseded=tuple(text for entry in ordered for text in entry.superseded),
    )

"""Values for tests of the core: messages, entries, requests and answers in one line each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from app.core.model.candidate import Candidate, CandidateDrop, CandidateItem
from app.core.model.conversation import Message, Role
from app.core.model.model_io import FinishReason, Proposal, SummaryRequest
from app.core.model.schemas import SESSION
from app.core.model.state import ID_LETTERS, StateEntry
from app.core.text.parts import Part

START = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
CONVERSATION = UUID(int=1)


def message(
    seq: int, content: str, role: Role = "user", *, parts: Sequence[Part] = (), event_type: str = "casual"
) -> Message:
    return Message(
        id=UUID(int=1_000 + seq),
        conversation_id=CONVERSATION,
        seq=seq,
        role=role,
        content=content,
        parts=tuple(parts),
        event_type=event_type,
        created_at=START + timedelta(minutes=7 * seq),
    )


def talk(*contents: str, start: int = 1) -> tuple[Message, ...]:
    """User and assistant in turns."""
    roles: tuple[Role, Role] = ("user", "assistant")
    return tuple(message(seq, content, roles[(seq - start) % 2]) for seq, content in enumerate(contents, start=start))


def entry(
    id_: str, text: str, field: str | None = None, *, seqs: Sequence[int] = (1,), superseded: Sequence[str] = ()
) -> StateEntry:
    role = next(role for role, letter in ID_LETTERS.items() if letter == id_[0])
    by_role = {item.role: item.name for item in SESSION.fields}
    return StateEntry(
        id=id_,
        field=field or by_role[role],
        role=role,
        text=text,
        from_seqs=tuple(seqs),
        since_version=1,
        superseded=tuple(superseded),
    )


def item(text: str, *seqs: int, replaces: Sequence[str] = (), field: str = "logos") -> CandidateItem:
    return CandidateItem(field=field, text=text, from_seqs=seqs, replaces=tuple(replaces))


def candidate(
    *items: CandidateItem, narrative: str = "", dropped: Sequence[tuple[str, str, int | None]] = ()
) -> Candidate:
    return Candidate(
        items=items,
        narrative={"conversation_summary": narrative} if narrative else {},
        dropped=tuple(CandidateDrop(entry=entry, reason=reason, by_seq=seq) for entry, reason, seq in dropped),
    )


def answer(
    summary: Any = "",
    logos: Sequence[Any] = (),
    pathos: Sequence[Any] = (),
    abstract: Sequence[Any] = (),
    dropped: Sequence[Mapping[str, Any]] = (),
) -> str:
    """A summarizer's answer in the wire format."""
    return json.dumps(
        {
            "logos": list(logos),
            "pathos": list(pathos),
            "abstract": list(abstract),
            "conversation_summary": summary,
            "dropped": list(dropped),
        },
        ensure_ascii=False,
    )


def fact(text: str, *seqs: int, replaces: Sequence[str] = ()) -> dict[str, Any]:
    return {"text": text, "from": list(seqs), "replaces": list(replaces)}


def request(messages: Sequence[Message], *previous: StateEntry, **others: Any) -> SummaryRequest:
    return SummaryRequest(schema=SESSION, messages=tuple(messages), previous=previous, **others)


def proposal(text: str, finish: FinishReason = "stop", *, called_tool: bool = False) -> Proposal:
    return Proposal(text=text, finish=finish, model="scripted", called_tool=called_tool)

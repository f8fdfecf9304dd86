"""The memory of a socket's connection is bounded in bytes, and keeps the newest."""

from __future__ import annotations

from typing import Final

from app.http.openai.socket import REMEMBERED_BYTES, REMEMBERED_RESPONSES, Memory
from app.usecases.history.drafts import MessageDraft, bytes_of

A_PICTURE: Final = REMEMBERED_BYTES // 5


def said(content: str, size: int = 0) -> MessageDraft:
    parts = ({"type": "media", "media_type": "image/png", "data": "A" * size, "tokens": 0},) if size else ()
    return MessageDraft(role="user", content=content, parts=parts)


def remembered_bytes(memory: Memory, ids: list[str]) -> int:
    return sum(bytes_of(draft) for one in ids for draft in memory.messages_of(one))


def test_a_talk_goes_on_from_all_that_was_said() -> None:
    memory = Memory()
    memory.remember("r1", None, [said("one"), said("two")])
    memory.remember("r2", "r1", [said("three")])
    assert [draft.content for draft in memory.messages_of("r2")] == ["one", "two", "three"]
    assert [draft.content for draft in memory.messages_of("r1")] == ["one", "two"]
    memory.forget("r2")
    assert memory.messages_of("r2") == memory.messages_of(None) == ()


def test_of_a_talk_with_many_pictures_the_newest_are_kept() -> None:
    memory = Memory()
    for number in range(20):
        memory.remember(f"r{number}", f"r{number - 1}", [said(str(number), A_PICTURE)])
    ids = [f"r{number}" for number in range(20)]
    assert [draft.content for draft in memory.messages_of("r19")] == ["16", "17", "18", "19"]
    assert 0 < remembered_bytes(memory, ids) <= REMEMBERED_BYTES
    memory.remember("r20", "r19", [said("far too large", REMEMBERED_BYTES)])
    assert memory.messages_of("r20") == ()


def test_responses_beside_each_other_share_the_bound_too() -> None:
    memory = Memory()
    ids = [f"r{number}" for number in range(REMEMBERED_RESPONSES)]
    for one in ids:
        memory.remember(one, None, [said(one, A_PICTURE)])
    assert [bool(memory.messages_of(one)) for one in ids] == [False] * (REMEMBERED_RESPONSES - 4) + [True] * 4
    small = Memory()
    for one in ids:
        small.remember(one, None, [said(one)])
    assert all(small.messages_of(one) for one in ids), "control: small ones are all remembered"

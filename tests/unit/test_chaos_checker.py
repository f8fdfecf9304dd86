"""The campaigns' checker, tried on values: a sound one passes, and each planted violation is found by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bench.chaos.checker import PROPERTIES, Campaign, check
from bench.chaos.log import Answer, Compacted, Erased, Followed, Log, Read, Restored, SentMessage, Shown, Span
from bench.chaos.rows import Compaction, Conversation, Event, Message, State, Turn
from tests.rows import each

C = "conversation"
SAID = {1: "one", 2: "two", 4: "three", 5: "four", 7: "five <recalled>"}
TOLD: list[tuple[str, dict[str, Any]]] = [
    ("message.created", {"seq": 1}),
    ("message.created", {"seq": 2}),
    ("message.created", {"seq": 3}),
    ("reply.completed", {"message_id": "m3"}),
    ("message.created", {"seq": 4}),
    ("compaction.applied", {"compaction_id": "k1"}),
    ("message.created", {"seq": 5}),
    ("message.created", {"seq": 6}),
    ("reply.completed", {"message_id": "m6"}),
    ("conversation.restored", {}),
    ("message.erased", {}),
    ("message.created", {"seq": 7}),
]


def row(seq: int) -> Message:
    content = SAID.get(seq, f"reply {seq}")
    role = "user" if seq in SAID else "assistant"
    made = Message(id=f"m{seq}", seq=seq, role=role, content=content, message_sum=seq, token_sum=10 * seq)
    return replace(made, content="", status="erased") if seq == 5 else made


def conversation() -> Conversation:
    return Conversation(
        id=C,
        last_seq=7,
        last_event=len(TOLD),
        boundary_seq=2,
        state_version=2,
        covered_messages=2,
        covered_tokens=20,
        total_messages=7,
        total_tokens=70,
        messages=[row(seq) for seq in range(1, 8)],
        states=[
            State(version=1, boundary_seq=2, boundary_message_id="m2", compaction_id="k1"),
            State(version=2, boundary_seq=2, boundary_message_id="m2", compaction_id=None, made_by="restore"),
        ],
        compactions=[
            Compaction(id="k1", status="applied", from_seq=1, to_seq=2, before=0, after=1),
            Compaction(id="k2", status="skipped", before=1),
        ],
        turns=[
            Turn(id="t1", message_id="m2", reply_id="m3", status="completed"),
            Turn(id="t2", message_id="m5", reply_id="m6", status="completed"),
        ],
        events=[Event(number=number, type=type_, data=data) for number, (type_, data) in enumerate(TOLD, 1)],
    )


def said(seq: int, asked_at: float, *, reply: int | None = None, tries: int = 1) -> SentMessage:
    told = Answer(message_id=f"m{seq}", seq=seq)
    if reply is not None:
        told = replace(told, reply_id=f"m{reply}", reply=f"reply {reply}", pieces=f"reply {reply}")
    return SentMessage(
        client=f"writer {1 if reply is None else 2}",
        door="append" if reply is None else "chat",
        conversation=C,
        content=SAID[seq],
        asked_at=asked_at,
        answered_at=asked_at + 1,
        tries=tries,
        answers=[told],
    )


def log() -> Log:
    blind = said(7, 90, tries=3)
    blind.answers = [Answer(), Answer()]
    twice = said(4, 5, tries=2)
    twice.answers *= 2
    return Log(
        said=[said(1, 0), said(2, 2, reply=3), twice, said(5, 7, reply=6), blind],
        erased=[Erased(conversation=C, message_id="m5", content="four", asked_at=10, answered_at=11)],
        restored=[Restored(conversation=C, version=1, asked_at=9, answered_at=10, made=2)],
        compacted=[Compacted(conversation=C, asked_at=6, answered_at=7, compaction_id="k1", status="applied")],
        reads=[
            read(20, *range(1, 7)),
            read(96, *range(3, 8)),
            replace(read(95, 1, 3, 4, 6, 7, instead={7: "five (recalled>"}), is_context=True, is_last=True),
        ],
        followed=[Followed(follower="follower 1", conversation=C, events=numbered())],
        spans=[Span(fault="a kill", began_at=2, ended_at=6)],
        ended_at=100,
    )


def read(asked_at: float, *seqs: int, instead: dict[int, str] | None = None) -> Read:
    shown = [Shown(seq=seq, id=f"m{seq}", content=(instead or {}).get(seq, row(seq).content)) for seq in seqs]
    return Read(conversation=C, asked_at=asked_at, shown=tuple(shown))


def numbered() -> tuple[tuple[int, str], ...]:
    return tuple((number, type_) for number, (type_, _) in enumerate(TOLD, 1))


Plant = Callable[[Log, Conversation], Conversation]


def rows(**changes: Any) -> Plant:
    """Plant other rows than those of the events."""
    return lambda _, made: replace(made, **{name: change(getattr(made, name)) for name, change in changes.items()})


def told(change: Callable[[Log], object]) -> Plant:
    """Plant other events than those that are stored."""

    def plant(noted: Log, made: Conversation) -> Conversation:
        change(noted)
        return made

    return plant


def without(place: int) -> Callable[[list[Any]], list[Any]]:
    return lambda items: items[:place] + items[place + 1 :]


def with_(place: int, **changes: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda items: [*items[:place], replace(items[place], **changes), *items[place + 1 :]]


def swapped(items: list[Message]) -> list[Message]:
    """The first and the fourth are exchanged."""
    one, *between, four = items[:4]
    return [replace(four, seq=1), *between, replace(one, seq=4), *items[4:]]


def answered(noted: Log, place: int, **changes: Any) -> None:
    noted.said[place].answers[-1] = replace(noted.said[place].answers[-1], **changes)


PLANTED: list[tuple[str, Plant]] = [
    ("nothing acknowledged is lost", rows(messages=without(6), last_seq=lambda _: 6)),
    ("nothing acknowledged is lost", rows(messages=with_(0, content="another word"))),
    ("nothing acknowledged is lost", told(lambda noted: answered(noted, 1, reply="reply three"))),
    ("nothing acknowledged is lost", told(lambda noted: answered(noted, 1, pieces="reply 3reply 3"))),
    ("nothing acknowledged is lost", told(lambda noted: answered(noted, 3, reply_id="m9"))),
    ("nothing acknowledged is lost", rows(compactions=with_(0, status="failed"))),
    ("nothing acknowledged is lost", rows(states=without(1))),
    ("nothing is doubled", rows(messages=with_(3, content="one"))),
    ("nothing is doubled", rows(turns=lambda turns: [*turns, replace(turns[0], id="t3", reply_id="m6")])),
    ("nothing is reordered", rows(messages=swapped)),
    ("seq has no gap", rows(messages=without(2))),
    ("seq has no gap", rows(last_seq=lambda last: last + 1)),
    ("one effect a key", told(lambda noted: answered(noted, 2, message_id="m1", seq=None))),
    ("one effect a key", rows(messages=with_(0, content="five <recalled>"))),
    ("every state's range is right", rows(states=with_(0, boundary_message_id="m1"))),
    ("every state's range is right", rows(compactions=with_(0, to_seq=3))),
    ("every state's range is right", rows(compactions=with_(0, from_seq=2))),
    ("every state's range is right", rows(boundary_seq=lambda _: 3)),
    ("every state's range is right", rows(covered_tokens=lambda tokens: tokens + 1)),
    ("every state's range is right", rows(total_messages=lambda count: count - 1)),
    ("every state's fence is right", rows(states=without(0))),
    ("every state's fence is right", rows(states=with_(1, compaction_id="k2", made_by="compaction"))),
    ("every state's fence is right", rows(compactions=with_(0, before=1, from_seq=3, after=2))),
    ("every state's fence is right", rows(compactions=with_(1, status="applied", after=None))),
    ("every event once", rows(events=without(3))),
    ("every event once", rows(events=with_(1, type="unknown"))),
    ("every event once", rows(events=with_(1, data={"seq": 1}))),
    ("every event once", rows(events=with_(9, type="reply.completed", data={"message_id": "m3"}))),
    ("every event once", rows(events=with_(9, type="compaction.applied", data={"compaction_id": "k1"}))),
    (
        "every follower is told everything once, in order",
        told(lambda noted: noted.followed.append(replace(noted.followed[0], events=numbered()[:-1]))),
    ),
    (
        "every follower is told everything once, in order",
        told(lambda noted: noted.followed.append(replace(noted.followed[0], events=(numbered()[0], *numbered())))),
    ),
    (
        "every follower is told everything once, in order",
        told(lambda noted: noted.followed.append(replace(noted.followed[0], events=numbered()[::-1]))),
    ),
    ("reads show what was acknowledged", told(lambda noted: noted.reads.append(read(12, 1, 2, 3, 4)))),
    ("reads show what was acknowledged", told(lambda noted: noted.reads.append(read(95, 3, 5, 6, 7)))),
    (
        "reads show what was acknowledged",
        told(lambda noted: noted.reads.append(read(95, 4, 5, 6, 7, instead={5: "four"}))),
    ),
    (
        "tails are verbatim",
        told(lambda noted: noted.reads.append(replace(read(95, 3, 4, 6, 7, instead={4: "Three"}), is_context=True))),
    ),
    ("tails are verbatim", told(lambda noted: noted.reads.append(replace(read(95, 3, 6, 7), is_context=True)))),
    ("tails are verbatim", told(lambda noted: noted.reads.append(replace(read(95, 3, 4, 6, 7, 9), is_context=True)))),
    ("what is erased stays erased", rows(messages=with_(4, status="complete", content="four"))),
    ("nothing is stuck", told(lambda noted: setattr(noted.said[4], "answered_at", None))),
    ("nothing is stuck", told(lambda noted: setattr(noted.said[0], "answered_at", 67.0))),
    ("nothing is stuck", told(lambda noted: setattr(noted.erased[0], "answered_at", None))),
    ("nothing is stuck", told(lambda noted: setattr(noted.compacted[0], "answered_at", None))),
    ("nothing is stuck", rows(compactions=with_(1, status="running"))),
    ("nothing is stuck", rows(turns=with_(1, status="running"))),
    ("no client is told what it should not be", told(lambda noted: noted.defect("a client ended"))),
]


def test_a_sound_campaign_breaks_nothing() -> None:
    assert check(Campaign(log=log(), conversations=[conversation()])) == []


def test_each_property_has_a_control() -> None:
    assert {name for name, _ in PLANTED} == set(PROPERTIES)


@each(("name", "plant"), PLANTED)
@pytest.mark.control("35-disk")
def test_a_planted_violation_is_found(name: str, plant: Plant) -> None:
    noted = log()
    made = plant(noted, conversation())
    assert name in {one.property for one in check(Campaign(log=noted, conversations=[made]))}


def test_a_wait_counts_from_the_last_fault_that_touched_it() -> None:
    noted = log()
    noted.said[0].answered_at = 65.0
    assert check(Campaign(log=noted, conversations=[conversation()])) == [], "59 s after the fault that ended at 6 s"

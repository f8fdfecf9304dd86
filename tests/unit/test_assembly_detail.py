"""What a larger budget adds: covered segments in more detail, none twice, and never less than a smaller budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.context.assembly import AssembledContext, ContextInputs, assemble
from app.core.context.drafts import Detail
from app.core.context.larger_budget import ranges_to_read, with_detail_options
from app.core.model.anchors import FoundAnchor
from app.core.model.conversation import Message
from app.core.model.segments import Level, ServableSegment
from app.core.retrieval.rendering import Recall
from tests.builders import message, policy_of
from tests.profiles import examples
from tests.unit.test_assembly_anchors import digest, made_of
from tests.unit.test_assembly_digests import digested, of_digests, spent
from tests.unit.test_assembly_recall import TOPICS, corpus

POLICY: Final = policy_of(context_window=8_000, protect=[])
ORDER: Final = (None, "L3", "L2", "L1", "full")
SIZES: Final = st.lists(st.tuples(st.integers(1, 6), st.integers(4, 90)), min_size=3, max_size=9)
"""For each segment, the number of its messages and of the words in each."""


def told(level: Level, number: int, words: int) -> str:
    return f"Point {number} at {level} " + f"{TOPICS[number % 10]} " * words


def conversation(sizes: Sequence[tuple[int, int]]) -> tuple[ContextInputs, list[Message]]:
    """Covered segments of these sizes and two messages after them; nothing of the segments is read yet."""
    messages: list[Message] = []
    segments: list[ServableSegment] = []
    for number, (count, words) in enumerate(sizes):
        first = len(messages) + 1
        for seq in range(first, first + count):
            text = f"Walk {seq} by the {TOPICS[number % 10]}: " + "we spoke of it " * (words // 4)
            messages.append(message(seq, text, policy=POLICY))
        inside = messages[first - 1 :]
        segments.append(
            ServableSegment(
                id=f"walk_{number}",
                from_seq=first,
                to_seq=len(messages),
                topic=TOPICS[number % 10],
                messages=count,
                tokens=sum(one.token_count for one in inside),
                identifiers=0,
                texts={
                    "L1": told("L1", number, words // 3 + 2),
                    "L2": told("L2", number, words // 8 + 1),
                    "L3": told("L3", number, 1),
                },
            )
        )
    boundary = len(messages)
    messages += [message(boundary + 1, "And now?", policy=POLICY), message(boundary + 2, "Go on.", policy=POLICY)]
    source = digested(made_of(messages, policy=POLICY, boundary=boundary), segments)
    return replace(source, detail=Detail(segments=tuple(segments), total=len(segments))), messages


def anchor_at(seq: int) -> FoundAnchor:
    return FoundAnchor(type="decision", content=f"So {seq}.", seq=seq, offset=0, importance=0.5, token_count=9)


def served(source: ContextInputs, messages: Sequence[Message], budget: int, question: str = "") -> AssembledContext:
    """As in the service, what has room is read, then everything is assembled."""
    if question:
        source = replace(source, recall=Recall(question=question, corpus=corpus(messages), is_explicit=True))
    source = with_detail_options(source)
    places = ranges_to_read(source, budget)
    read = [one for first, last in places for one in messages[first - 1 : last]]
    return assemble(source.with_originals(read), digest=digest, budget=budget)


def levels_of(context: AssembledContext) -> dict[str, int]:
    return {one.segment_id: ORDER.index(one.level) for one in of_digests(context) if one.segment_id}


def verbatim(context: AssembledContext) -> set[int]:
    inside = {seq for one in context.sections if one.level == "full" for seq in one.seqs}
    return inside | {seq for one in context.sections if one.kind in {"held", "tail", "recalled"} for seq in one.seqs}


def least(source: ContextInputs) -> int:
    """The smallest budget in which nothing has to go."""
    whole = assemble(replace(source, detail=Detail()), digest=digest, budget=100_000)
    return spent(whole)


@given(SIZES, st.integers(0, 2_000), st.integers(0, 2_000))
@examples(0.3)
def test_a_larger_budget_never_serves_less(sizes: list[tuple[int, int]], room: int, more: int) -> None:
    source, messages = conversation(sizes)
    budget = least(source) + room
    small, large = served(source, messages, budget), served(source, messages, budget + more)

    assert spent(small) <= budget
    assert verbatim(small) <= verbatim(large)
    before, after = levels_of(small), levels_of(large)
    assert all(after.get(name, -1) >= level for name, level in before.items())
    for context in (small, large):
        seqs = [one.seq for one in context.messages if one.seq]
        assert seqs == sorted(set(seqs)), "in the order of the conversation, none twice"
        assert sum(one.tokens for one in context.sections) == context.gauge.tokens


@given(SIZES, st.integers(60, 3_000))
@examples(0.3)
def test_twice_the_budget_serves_no_less_with_a_question(sizes: list[tuple[int, int]], room: int) -> None:
    source, messages = conversation(sizes)
    question = "What was said on the walk by the piano?"
    small, large = (served(source, messages, (room + 200) * times, question) for times in (1, 2))

    for context in (small, large):
        recalled = [one.source.seq for one in context.recalled]
        assert not set(recalled) & {one.seq for one in context.messages if one.seq}, "no message beside its segment"
        assert len(set(recalled)) == len(recalled)
    assert len(verbatim(small)) <= len(verbatim(large))


@given(sizes=SIZES, room=st.integers(0, 2_000), quoted=st.lists(st.integers(1, 30), max_size=9), asks=st.booleans())
@examples(0.3)
def test_what_was_reckoned_once_and_where_anchors_stand_serve_the_same(
    sizes: list[tuple[int, int]], room: int, quoted: list[int], *, asks: bool
) -> None:
    source, messages = conversation(sizes)
    budget, question = least(source) + room, "What about the bakery?" if asks else ""
    source = replace(source, anchors=tuple(map(anchor_at, quoted)))
    if asks:
        source = replace(source, recall=Recall(question=question, corpus=corpus(messages), is_explicit=True))
    unread = source if asks else replace(source, anchors=())
    there = replace(unread, detail=replace(source.detail, anchor_seqs=tuple(quoted)))
    found = []
    for one in (source, with_detail_options(source), there, with_detail_options(there)):
        places = ranges_to_read(one, budget)
        read = one.with_originals([each for first, last in places for each in messages[first - 1 : last]])
        found.append((places, assemble(read, digest=digest, budget=budget)))
    assert all(one == found[0] for one in found)


def test_the_newest_come_back_whole_and_older_ones_are_told() -> None:
    source, messages = conversation([(4, 80)] * 8)
    found = levels_of(served(source, messages, least(source) + 900))
    everything = served(source, messages, 100_000)

    order = [ORDER[found[f"walk_{number}"]] for number in range(8)]
    assert order[-1] == "full"
    assert {"L1", "L2"} & set(order[:-1])
    assert all(ORDER.index(before) <= ORDER.index(after) for before, after in pairwise(order))
    assert verbatim(everything) == {one.seq for one in messages}
    assert "<digests>" not in everything.messages[1].content, "no segment is told beside its originals"


def test_what_a_question_is_about_comes_back_before_what_is_new() -> None:
    source, messages = conversation([(3, 80)] * 9)
    budget = least(source) + 700
    plain, asked = served(source, messages, budget), served(source, messages, budget, "What about the bakery?")
    about = set(range(4, 7))

    assert not about & verbatim(plain)
    assert about <= verbatim(asked)


def test_without_a_budget_the_stored_layout_is_served() -> None:
    source, _ = conversation([(4, 60)] * 6)
    laid_out = assemble(replace(source, detail=Detail()), digest=digest)

    assert assemble(source, digest=digest) == laid_out


def test_in_a_turn_it_keeps_to_its_room_and_a_longer_tail_changes_nothing_before_it() -> None:
    source, messages = conversation([(4, 60)] * 6)
    laid_out = assemble(source, digest=digest)
    turning = replace(source, detail=replace(source.detail, max_added_tokens=700))
    read = [one for first, last in ranges_to_read(turning, 5_000) for one in messages[first - 1 : last]]
    turning = turning.with_originals(read)
    more = [message(seq, f"Then {seq}.", policy=POLICY) for seq in range(27, 31)]
    longer = replace(turning, tail=(*turning.tail, *more))
    before, after = (assemble(one, digest=digest).messages for one in (turning, longer))

    assert 0 < assemble(turning, digest=digest).gauge.tokens - laid_out.gauge.tokens <= 700
    assert verbatim(assemble(turning, digest=digest)) > verbatim(laid_out)
    assert after[: len(before)] == before


def test_where_levels_are_chosen_no_originals_come_back() -> None:
    source, messages = conversation([(4, 60)] * 6)
    closed = replace(source, detail=replace(source.detail, may_expand=False))
    found = served(closed, messages, 100_000)

    assert set(levels_of(found).values()) == {ORDER.index("L1")}


def test_an_order_that_depended_on_the_room_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.core.context.larger_budget.fitting_steps", lambda steps, room: steps[room % 3 :][:2])
    source, messages = conversation([(4, 60)] * 6)
    found = [levels_of(served(source, messages, least(source) + 1_500 + more)) for more in range(4)]

    assert any(
        after.get(name, -1) < level for one, two in pairwise(found) for name, level in one.items() for after in [two]
    )

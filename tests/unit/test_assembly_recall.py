"""Recall inside a context: where it is, what is removed for it, and that nothing exceeds its budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.context import recalled_messages
from app.core.context.assembly import AssembledContext, ContextInputs, assemble
from app.core.context.drafts import Draft, first_draft
from app.core.model.conversation import Message
from app.core.model.errors import BudgetTooSmallError
from app.core.retrieval.corpus import Corpus, Source
from app.core.retrieval.rendering import Passage, Recall, passages_element
from tests.builders import material, message, policy_of
from tests.profiles import examples

POLICY = policy_of(context_window=4_000, protect=[])
STATE = {
    "logos": [f"Fact number {number} about the harbour and its crates" for number in range(1, 16)],
    "pathos": ["Brief and friendly"],
    "abstract": ["Knows what a crane is"],
    "conversation_summary": "They planned the shipments of the spring.",
}
TOPICS = ("harbour", "bakery", "piano", "garden", "kitten", "violin", "museum", "bicycle", "orchard", "lantern")
QUESTION = "Who repaired the lantern in the museum?"


def digest(messages: Sequence[Message], max_tokens: int) -> str:
    return f"about {len(messages)} messages, in {max_tokens} tokens"


def said(count: int, *, last: str = QUESTION, policy: Any = POLICY) -> list[Message]:
    texts = [
        f"On walk {seq} we spoke of the {TOPICS[seq % 10]} and of the {TOPICS[(seq * 3) % 10]} at some length."
        for seq in range(1, count)
    ]
    texts[3] = "Ferreira repaired the old lantern of the museum in an afternoon."
    return [message(seq, text, policy=policy) for seq, text in enumerate([*texts, last], start=1)]


def corpus(messages: Sequence[Message]) -> Corpus:
    return Corpus(
        [
            Source(seq=one.seq, role=one.role, text=one.content, at=one.created_at, tokens=one.token_count)
            for one in messages
        ]
    )


def recalling(
    messages: Sequence[Message],
    *,
    boundary: int,
    query: str | None = QUESTION,
    passages: Sequence[Passage] = (),
    policy: Any = POLICY,
    state: dict[str, Any] | None = STATE,
) -> ContextInputs:
    """The material; a ``query`` of ``None`` stands for a turn, whose question is its last message."""
    source = material(messages, policy=policy, state=state, boundary=boundary)
    recall = Recall(
        question=messages[-1].content if query is None else query,
        corpus=corpus(messages),
        is_explicit=query is not None,
        passages=tuple(passages),
    )
    return replace(source, recall=recall)


def put_together(source: ContextInputs, budget: int | None = None) -> AssembledContext:
    return assemble(source, digest=digest, budget=budget)


def spent(context: AssembledContext) -> int:
    return context.gauge.tokens - context.gauge.breakdown.system


def section(context: AssembledContext, kind: str) -> tuple[int, ...]:
    return next((one.seqs for one in context.sections if one.kind == kind), ())


def test_the_answer_stands_inside_the_last_user_message_before_its_text() -> None:
    messages = said(41)
    found = put_together(recalling(messages, boundary=36), 700)
    last = found.messages[-1]

    assert (last.role, last.seq) == ("user", 41)
    assert last.content.startswith("<recalled ")
    assert last.content.endswith(f"\n\n{QUESTION}")
    assert messages[3].content in last.content
    assert 4 in section(found, "recalled")
    assert found.recalled[0].source.seq == 4
    assert found.recalled[0].reasons


def test_where_no_user_message_is_served_it_has_one_of_its_own_at_the_end() -> None:
    messages = said(40, last="Noted.")
    found = put_together(recalling(messages, boundary=40), 700)

    assert [one.role for one in found.messages] == ["system", "user", "assistant", "user"]
    assert found.messages[-1].seq is None
    assert messages[3].content in found.messages[-1].content


def test_the_gauge_is_the_sum_of_the_sections_with_what_is_recalled() -> None:
    found = put_together(recalling(said(41), boundary=36, passages=[Passage(text="Nine to five.", source="a")]), 700)

    assert found.gauge.breakdown.recalled > 0
    assert found.gauge.tokens == sum(one.tokens for one in found.sections) == found.gauge.breakdown.total
    kinds = [one.kind for one in found.sections]
    assert kinds[-2:] == ["passages", "recalled"]


@examples(0.6)
@given(
    budget=st.integers(60, 3_000),
    boundary=st.integers(0, 61),
    explicit=st.booleans(),
    passage=st.integers(0, 400),
    protect=st.booleans(),
)
def test_a_context_never_exceeds_its_budget_nor_serves_a_message_twice(
    *,
    budget: int,
    boundary: int,
    explicit: bool,
    passage: int,
    protect: bool,
) -> None:
    policy = policy_of(context_window=4_000, protect=["turn_0"] if protect else [])
    messages = said(61, policy=policy)
    passages = [Passage(text="word " * passage, source="s")] if passage else []
    source = recalling(
        messages, boundary=boundary, query=QUESTION if explicit else None, passages=passages, policy=policy
    )
    found = put_together(source, budget)
    served = [one.seq for one in found.messages if one.seq]

    assert spent(found) <= budget
    assert not set(section(found, "recalled")) & set(served)
    assert len(served) == len(set(served))
    assert boundary == 61 or served[-1] == 61


def test_a_served_message_would_be_recalled_twice_if_nobody_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the property above."""
    monkeypatch.setattr(recalled_messages, "served_seqs", lambda draft: frozenset())
    found = put_together(recalling(said(61), boundary=30), 2_000)

    assert set(section(found, "recalled")) & set(section(found, "tail"))


def test_state_and_tail_make_way_for_a_query_and_get_back_what_it_leaves() -> None:
    messages = said(61)
    source = recalling(messages, boundary=40)
    without = put_together(replace(source, recall=None), 600)
    found = put_together(source, 600)
    nothing = put_together(recalling(messages, boundary=40, query="zebra quagga"), 600)

    assert found.gauge.breakdown.state + found.gauge.breakdown.tail < (
        without.gauge.breakdown.state + without.gauge.breakdown.tail
    )
    assert found.gauge.breakdown.recalled > 300
    assert nothing.messages == without.messages


def test_a_query_takes_nine_tenths_of_what_the_last_message_leaves() -> None:
    messages = said(61)
    room = 800 - messages[-1].token_count
    found = put_together(recalling(messages, boundary=60), 800)

    assert 0.8 * room < found.gauge.breakdown.recalled <= 0.9 * room


def test_a_query_takes_what_state_and_tail_have_no_use_for() -> None:
    messages = said(101)
    found = put_together(recalling(messages, boundary=100, state={"logos": ["The harbour is old"]}), 1_600)
    line = max(one.token_count for one in messages[:-1])

    assert found.gauge.breakdown.recalled > 0.9 * 1_600
    assert 0 <= 1_600 - spent(found) <= line, "no room is left for another message"


def test_a_query_fills_its_nine_tenths_whatever_lines_and_dates_were_reckoned_with() -> None:
    texts = [f"Ann: The lantern of room {seq}." if seq % 2 else f"Bob: No, crate {seq}." for seq in range(1, 301)]
    spoken = [message(seq, text) for seq, text in enumerate([*texts, QUESTION], start=1)]
    facts = [f"Fact number {number} about the harbour and its crates" for number in range(1, 80)]
    found = put_together(recalling(spoken, boundary=300, state={**STATE, "logos": facts}), 3_000)
    unused = 0.9 * (3_000 - spoken[-1].token_count) - found.gauge.breakdown.recalled

    assert 0 <= unused < min(one.token_count for one in spoken)


def test_tools_data_keeps_room_in_the_measure_in_which_tools_spoke(monkeypatch: pytest.MonkeyPatch) -> None:
    state = {**STATE, "logos": [f"Tool: order_id=ORD-88{number}, serial=TX9-30{number}" for number in range(100, 140)]}
    talk = said(30)

    def recalled(of_tools: int) -> list[Any]:
        messages = [replace(one, role="tool") if 8 <= one.seq < 8 + of_tools else one for one in talk]
        source = recalling(messages, boundary=28, state=state)
        return list(put_together(source, 300).recalled)

    assert [one.source.seq for one in recalled(1)][:1] == [4], "the answer: tools said little, whatever the state says"
    found = len(recalled(1))
    assert found > 2 * len(recalled(16)), "an agent's ids stay"

    monkeypatch.setattr(recalled_messages, "TOOL_DATA_RATIO", 1_000)
    assert found > 2 * len(recalled(1)), "the control: as it was, whoever said how much"


def test_a_turn_recalls_within_its_share_and_cuts_nothing() -> None:
    messages = said(81)
    source = recalling(messages, boundary=60, query=None)
    without = put_together(replace(source, recall=None))
    found = put_together(source)

    assert found.messages[:-1] == without.messages[:-1], "a prompt cache goes on hitting"
    assert messages[3].content in found.messages[-1].content
    assert found.gauge.breakdown.recalled <= 0.15 * found.gauge.budget
    assert found.warnings == ()


def test_a_turn_with_little_room_recalls_in_what_is_free() -> None:
    messages = said(61)
    source = recalling(messages, boundary=20, query=None)
    whole = put_together(replace(source, recall=None), 5_000)
    budget = spent(whole) + 90
    found = put_together(source, budget)

    assert found.messages[:-1] == whole.messages[:-1]
    assert 0 < found.gauge.breakdown.recalled <= 90


@pytest.mark.parametrize(
    "text", ["Thanks a lot!", "And then?", "Translate into French: the lantern of the museum is old"]
)
def test_a_turn_that_needs_nothing_is_served_as_without_recall(text: str) -> None:
    source = recalling(said(81, last=text), boundary=60, query=None)

    assert put_together(source).messages == put_together(replace(source, recall=None)).messages


def test_what_the_state_says_already_is_not_recalled_in_a_turn() -> None:
    told = STATE | {"logos": ["Ferreira repaired the lantern of the museum"]}
    messages = said(81)

    assert put_together(recalling(messages, boundary=60, query=None, state=told)).recalled == ()
    assert put_together(recalling(messages, boundary=60, query=None)).recalled != (), "the control"


def test_passages_of_the_caller_stand_beside_it_in_their_order_as_far_as_there_is_room() -> None:
    passages = [Passage(text=text, source=f"page {number}") for number, text in enumerate(("one", "x " * 900, "two"))]
    found = put_together(recalling(said(61), boundary=50, query=None, passages=passages), 700)
    content = found.messages[-1].content

    assert content.index(">\none\n<") < content.index(">\ntwo\n<") < content.index(QUESTION)
    assert "x x" not in content
    assert "passages_left_out:1" in found.warnings


@pytest.mark.parametrize("budget", [700, 3_000, 20_000])
def test_many_passages_are_rendered_a_few_times_each(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[int] = []

    def counted(passages: Sequence[Passage]) -> str:
        rendered.append(len(passages))
        return passages_element(passages)

    monkeypatch.setattr(recalled_messages, "passages_element", counted)
    passages = [Passage(text=f"word {number} " * 20, source="s") for number in range(100)]
    source = recalling(said(21), boundary=16, passages=passages, policy=policy_of(context_window=40_000))
    found = put_together(source, budget)

    assert sum(rendered) <= 25 * len(passages)
    assert spent(found) <= budget
    assert (budget > 10_000) is not any("passages_left_out" in warning for warning in found.warnings)


def test_passages_go_before_pins_do() -> None:
    policy = policy_of(context_window=4_000, protect=["turn_0"])
    messages = said(41, policy=policy)
    found = put_together(recalling(messages, boundary=36, policy=policy), 140)

    assert section(found, "held") == (1,)
    assert spent(found) <= 140


@pytest.mark.parametrize("needed", [24, 40, 97, 160])
def test_a_pin_takes_no_more_of_a_small_budget_than_it_needs(needed: int) -> None:
    policy = policy_of(context_window=4_000, protect=["turn_0"])
    source = recalling(said(41, policy=policy), boundary=36, policy=policy)
    whole = first_draft(source)

    def fit(tokens: int) -> Draft:
        return whole if tokens >= needed else replace(whole, held=())

    total, draft = recalled_messages.fit_with_all_held(source, fit, 193, 170)
    assert draft.held == whole.held != ()
    assert min(193 - needed, 170) - 170 / 32 - 1 <= total <= 193 - needed


def test_a_pin_that_never_fits_leaves_nothing_to_recall() -> None:
    policy = policy_of(context_window=4_000, protect=["turn_0"])
    source = recalling(said(41, policy=policy), boundary=36, policy=policy)
    without = replace(first_draft(source), held=())

    assert recalled_messages.fit_with_all_held(source, lambda _: without, 193, 170) == (0, without)


def test_a_result_whose_call_is_before_the_last_message_goes_before_recall() -> None:
    call = {"type": "tool_call", "id": "c", "name": "look", "arguments": {"where": "in the museum " * 60}}
    result = {"type": "tool_result", "tool_call_id": "c", "content": "the lantern hangs there " * 30}
    messages = [
        *said(37),
        message(38, "", role="assistant", parts=(call,), policy=POLICY),
        message(39, QUESTION, role="user", policy=POLICY),
        message(40, "", role="tool", parts=(result,), policy=POLICY),
    ]
    source = recalling(messages, boundary=36)
    for budget in range(480, 1_000, 40):
        try:
            whole = put_together(replace(source, recall=None), budget)
        except BudgetTooSmallError:
            continue
        found = put_together(source, budget)
        assert section(found, "tail")[-3:] == section(whole, "tail")[-3:] == (38, 39, 40)
        assert spent(found) <= budget


def test_keep_full_recalls_only_in_what_is_free() -> None:
    policy = policy_of(context_window=4_000, protect=[], on_failure="keep_full")
    messages = said(150, policy=policy)
    source = recalling(messages, boundary=20, policy=policy)
    without = put_together(replace(source, recall=None))

    assert put_together(source).messages == without.messages
    assert without.gauge.tokens > without.gauge.budget


def test_the_same_request_twice_is_the_same_to_the_byte() -> None:
    assert put_together(recalling(said(61), boundary=40), 600) == put_together(recalling(said(61), boundary=40), 600)


@given(st.integers(300, 900), st.text(min_size=1, max_size=60))
def test_names_of_speakers_stay_within_the_budget(budget: int, name: str) -> None:
    source = recalling(said(41), boundary=36)
    assert source.recall is not None
    named = Corpus([one._replace(said_by=name) for one in source.recall.corpus.sources])
    found = put_together(replace(source, recall=replace(source.recall, corpus=named)), budget)

    assert spent(found) <= budget

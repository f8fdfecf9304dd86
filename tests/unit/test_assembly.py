"""What a model is sent: within the budget, in order, stable at the front, honest about what is missing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.context import drafts
from app.core.context.assembly import AssembledContext, ContextInputs, assemble
from app.core.context.drafts import draft_tokens, first_draft
from app.core.context.fitting import TokenLimits, fit
from app.core.model.conversation import Message, Role
from app.core.model.errors import BudgetTooSmallError, ContextOverWindowError
from app.core.text.token_counts import weigh
from tests.builders import material, message, policy_of
from tests.unit.timing import assert_linear_in

POLICY = policy_of(context_window=4_000)
STATE = {
    "logos": ["The database is PostgreSQL 18", "The release is on 12 March"],
    "pathos": ["Brief and friendly"],
    "abstract": ["Knows what a migration is"],
    "conversation_summary": "They planned the release of the billing service.",
}


def digest(messages: Sequence[Message], max_tokens: int) -> str:
    return f"about {len(messages)} messages up to {messages[-1].seq}, in {max_tokens} tokens"


def said(count: int, words: int = 20, policy: Any = POLICY) -> list[Message]:
    """Messages of a known weight, whatever the estimator thinks of them."""
    return [
        message(seq, f"message {seq} " + "word " * words, policy=policy, token_count=words + 8)
        for seq in range(1, count + 1)
    ]


def put_together(source: ContextInputs, budget: int | None = None) -> AssembledContext:
    return assemble(source, digest=digest, budget=budget)


def test_a_short_conversation_is_served_whole() -> None:
    found = put_together(material(said(5), policy=POLICY, system_prompt="Be kind."))

    assert [one.seq for one in found.messages] == [None, 1, 2, 3, 4, 5]
    assert found.messages[0].content.startswith("Be kind.\n\n")
    assert found.truncated is None
    assert found.warnings == ()


def test_the_block_stands_between_system_prompt_and_tail_with_held_messages_after_it() -> None:
    found = put_together(material(said(8), policy=POLICY, state=STATE, boundary=6))
    block, acknowledgement = found.messages[1:3]

    assert [(one.role, one.seq) for one in found.messages] == [
        ("system", None),
        ("user", None),
        ("assistant", None),
        ("user", 1),
        ("user", 7),
        ("assistant", 8),
    ]
    assert json.loads(block.content.removeprefix("<session_state>\n").removesuffix("\n</session_state>")) == STATE
    assert acknowledgement.content == "Understood."


@pytest.mark.parametrize(("served_as", "block"), [("pair", ["user", "assistant"]), ("assistant", ["assistant"])])
def test_system_messages_stand_before_the_block_once_it_covers_them(served_as: str, block: list[str]) -> None:
    """Until then they are at their own place."""
    policy = policy_of(context_window=4_000, served_as=served_as)
    messages = [
        message(3, "Prices are without tax.", "system", policy=policy) if one.seq == 3 else one
        for one in [*said(6, policy=policy), message(7, "Be brief.", "system", policy=policy)]
    ]
    found = put_together(material(messages, policy=policy, state=STATE, boundary=4))
    whole = put_together(material(messages, policy=policy))

    assert [(one.role, one.seq) for one in found.messages] == [
        ("system", None),
        ("system", 3),
        *((role, None) for role in block),
        ("user", 1),
        ("user", 5),
        ("assistant", 6),
        ("system", 7),
    ]
    assert [one.seq for one in whole.messages] == [None, *range(1, 8)]
    assert found.gauge.tokens == sum(section.tokens for section in found.sections)


def test_served_as_assistant_is_one_message() -> None:
    policy = policy_of(context_window=4_000, served_as="assistant")
    found = put_together(material(said(4, policy=policy), policy=policy, state=STATE, boundary=2))

    assert [one.role for one in found.messages] == ["system", "assistant", "user", "user", "assistant"]


def test_the_gauge_of_a_context_is_the_sum_of_its_sections() -> None:
    found = put_together(material(said(9), policy=POLICY, state=STATE, boundary=4))

    assert found.gauge.tokens == sum(section.tokens for section in found.sections)
    assert found.gauge.breakdown.total == found.gauge.tokens


def test_truncation_says_what_is_left_out_and_keeps_a_digest() -> None:
    found = put_together(material(said(120), policy=POLICY))

    assert found.gauge.tokens <= found.gauge.budget
    assert found.warnings == ("context_truncated",)
    assert found.truncated is not None
    first, last = found.truncated
    served = [one.seq for one in found.messages if one.seq]
    assert (first, served) == (1, [1, *range(last + 1, 121)])  # the message of turn 0 is held
    assert f'<left_out from_seq="1" to_seq="{last}">' in found.messages[1].content


def test_the_cut_stays_where_it_is_while_the_tail_grows_a_little() -> None:
    contexts = [put_together(material(said(count), policy=POLICY)) for count in range(120, 140)]
    cuts = [context.truncated for context in contexts]
    for before, after in pairwise(contexts):
        if before.truncated == after.truncated:
            assert after.messages[: len(before.messages)] == before.messages

    assert len(set(cuts)) < len(cuts) / 2


def test_between_two_state_versions_a_context_only_grows_at_its_end() -> None:
    contexts = [put_together(material(said(n), policy=POLICY, state=STATE, boundary=10)) for n in range(12, 40)]
    for before, after in pairwise(contexts):
        assert after.messages[: len(before.messages)] == before.messages


def test_a_tool_result_is_not_served_without_its_call() -> None:
    parts = {"call": [{"type": "tool_call", "id": "a", "name": "look", "arguments": {}}]}
    result = [{"type": "tool_result", "tool_call_id": "a", "content": "word " * 400}]
    messages = [
        *said(20, words=80),
        message(21, "look it up " + "word " * 200, "user"),
        message(22, "", "assistant", parts=parts["call"]),
        message(23, "", "tool", parts=result),
        message(24, "found it", "assistant"),
        message(25, "and now?", "user"),
    ]
    for budget in range(60, 1_200, 40):
        served = {one.seq for one in put_together(material(messages, policy=POLICY), budget).messages}
        assert (22 in served) == (23 in served), budget


def test_an_asked_budget_counts_what_stands_after_the_system_prompt() -> None:
    found = put_together(material(said(60), policy=POLICY), 500)

    assert found.gauge.tokens - found.gauge.breakdown.system <= 500


def test_a_small_budget_shortens_style_before_facts() -> None:
    source = material(said(8), policy=POLICY, state=STATE, boundary=7)
    whole = put_together(source)
    room = whole.gauge.tokens - whole.gauge.breakdown.system - 10
    found = put_together(source, room)

    assert "Brief and friendly" not in found.messages[1].content
    assert "The database is PostgreSQL 18" in found.messages[1].content
    assert "state_shortened" in found.warnings


@pytest.mark.parametrize(("mark", "goes_first"), [(" (in doubt)", "Friday"), ("", "Monday")])
def test_a_small_budget_gives_up_what_is_in_doubt_before_what_holds(mark: str, goes_first: str) -> None:
    facts = ["The shop opens on every single Monday at 9:30", f"Friday at 8:15{mark}"]
    source = material(said(8), policy=POLICY, state={**STATE, "logos": facts}, boundary=7)
    whole = put_together(source)
    blocks = [
        put_together(source, budget).messages[1].content
        for budget in range(whole.gauge.tokens - whole.gauge.breakdown.system, 60, -5)
    ]
    days = [{day for day in ("Monday", "Friday") if day in block} for block in blocks]

    assert {"Monday", "Friday"} - {goes_first} in days
    assert {goes_first} not in days
    assert all((f"8:15{mark}" in block) == ("Friday" in block) for block in blocks)


def test_a_small_budget_gives_up_what_one_text_told_earlier_before_what_it_tells() -> None:
    policy = policy_of(context_window=4_000, state_schema="summary")
    now = "They bake bread in Porto. The oven cost 9,900 euros."
    earlier = "The oven was to cost 18,900 euros. The permit has the number AB-4711-77."
    state = {"summary": f"{now}\n\nSaid earlier, may have changed since: {earlier}"}
    source = material(said(8), policy=policy, state=state, boundary=7)
    whole = put_together(source)
    blocks = [
        put_together(source, budget).messages[1].content
        for budget in range(whole.gauge.tokens - whole.gauge.breakdown.system, 60, -5)
    ]
    assert json.dumps(state["summary"])[1:-1] in blocks[0]
    shorter = [block for block in blocks if now in block and earlier not in block]
    assert any("may have changed since: The oven was to cost 18,900 euros." in block for block in shorter)
    assert any("may have changed" not in block for block in shorter)
    assert all("may have changed" not in block for block in blocks if now not in block)


def test_a_small_budget_gives_up_the_days_of_held_messages_before_any_fact() -> None:
    held = replace(message(1, "The talk is tomorrow.", policy=POLICY), created_at=datetime(2026, 3, 2, tzinfo=UTC))
    source = material([held, *said(8)[1:]], policy=POLICY, state=STATE, boundary=7, days=True)
    whole = put_together(source)
    blocks = []
    for budget in range(whole.gauge.tokens - whole.gauge.breakdown.system, 60, -5):
        found = put_together(source, budget)
        blocks.append(found.messages[1].content if 1 in [one.seq for one in found.messages] else "")

    assert "<days" in blocks[0]
    assert any("<days" not in block and all(fact in block for fact in STATE["logos"]) for block in blocks)
    assert all(fact in block for block in blocks if "<days" in block for fact in STATE["logos"])


def test_held_messages_go_last_and_each_is_named() -> None:
    source = material(said(3, words=60), policy=POLICY, state=STATE, boundary=2)
    found = put_together(source, source.tail[-1].token_count + 5)

    assert "held_message_left_out:1" in found.warnings
    assert [one.seq for one in found.messages] == [None, 3]


def test_as_many_held_messages_are_left_out_as_must_be_each_with_its_other_half() -> None:
    call = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {}}
    result = {"type": "tool_result", "tool_call_id": "c1", "content": "nothing"}
    pinned = [
        message(1, "I will look.", "assistant", parts=[call], protected_reason="pinned"),
        message(2, "Be short.", "system", protected_reason="system"),
        message(3, "", "tool", parts=[result], protected_reason="pinned"),
        message(4, "Be kind.", "system", protected_reason="system"),
    ]
    source = material([*pinned, *said(5)[4:]], policy=POLICY, boundary=4)
    last = source.tail[-1].token_count
    left = [
        [warning.removeprefix("held_message_left_out:") for warning in put_together(source, last + room).warnings]
        for room in (pinned[1].token_count + pinned[3].token_count, pinned[3].token_count, 0)
    ]
    assert left == [["1", "3"], ["1", "3", "2"], ["1", "3", "2", "4"]]


def test_leaving_many_held_messages_out_takes_time_linear_in_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed: list[int] = []
    weigh_all = drafts.total_weight

    def counted(source: ContextInputs, messages: Sequence[Message]) -> int:
        weighed.append(len(messages))
        return weigh_all(source, messages)

    monkeypatch.setattr(drafts, "total_weight", counted)
    held = [message(seq, "Be short and polite.", "system", policy=POLICY) for seq in range(1, 1_001)]
    source = material([*held, message(1_001, "Hello?")], policy=POLICY, boundary=1_000)
    found = put_together(source, sum(one.token_count for one in held) // 2)
    assert 400 < len(found.messages) < 600
    assert sum(weighed) < 50 * len(held)


def test_leaving_many_held_calls_out_with_their_results_takes_linear_time() -> None:
    call = {"type": "tool_call", "id": "c", "name": "look", "arguments": {}}  # one id for all, as some clients use it
    result = {"type": "tool_result", "tool_call_id": "c", "content": "nothing"}

    def leaving_half_out(size: int) -> Callable[[], object]:
        halves: list[tuple[Role, dict[str, Any]]] = [("assistant", call), ("tool", result)] * (size // 2)
        held = [
            message(seq, "", role, parts=[part], protected_reason="pinned")
            for seq, (role, part) in enumerate(halves, start=1)
        ]
        source = material([*held, message(len(held) + 1, "Hello?")], policy=POLICY, boundary=len(held))
        return lambda: put_together(source, sum(one.token_count for one in held) // 2)

    assert_linear_in(leaving_half_out, 2_000)


def test_a_last_message_that_alone_is_too_large_names_the_minimum() -> None:
    source = material(said(3, words=60), policy=POLICY)
    with pytest.raises(BudgetTooSmallError) as caught:
        put_together(source, 20)

    assert caught.value.extra["minimum"] == source.tail[-1].token_count
    put_together(source, caught.value.extra["minimum"])


@pytest.mark.parametrize("factor", [0.8, 1.0, 1.3])
def test_the_minimum_is_in_the_tokens_that_a_budget_is_asked_in(factor: float) -> None:
    source = material(said(3, words=60), policy=POLICY)
    source = replace(source, conversation=replace(source.conversation, token_factor=factor))
    with pytest.raises(BudgetTooSmallError) as caught:
        put_together(source, 20)
    put_together(source, caught.value.extra["minimum"])
    with pytest.raises(BudgetTooSmallError):
        put_together(source, caught.value.extra["minimum"] - 1)


@pytest.mark.case("22")
def test_keep_full_sends_all_up_to_the_window_and_refuses_beyond() -> None:
    policy = policy_of(context_window=4_000, on_failure="keep_full")
    over_budget = material(said(110, policy=policy), policy=policy)
    found = put_together(over_budget)

    assert found.gauge.budget < found.gauge.tokens <= found.gauge.window
    assert found.warnings == ("context_over_budget",)
    assert found.truncated is None
    over_window = material(said(140, policy=policy), policy=policy)
    for source in (over_window, replace(over_window, tail=over_window.tail[60:], unloaded_tokens=2_000)):
        with pytest.raises(ContextOverWindowError, match="3600") as caught:
            put_together(source)
        told = caught.value.extra
        assert sum(told["breakdown"].values()) == told["tokens"] > told["window"]
        assert told["breakdown"]["tail"] > told["tokens"] // 2, "also where not all was loaded"


@pytest.mark.parametrize("place", [0, 5, -1])
def test_keep_full_serves_a_giant_without_its_middle_where_the_policy_says_so(place: int) -> None:
    elides = policy_of(context_window=4_000, on_failure="keep_full", oversized="elide")
    refuses = policy_of(context_window=4_000, on_failure="keep_full")
    messages = said(20, policy=elides)
    weight = weigh(messages[place].role, text := "BEGIN " + "word " * 9_000 + "END")
    giant = replace(messages[place], content=text, token_count=weight.tokens, byte_length=weight.bytes)
    messages[place] = giant
    found = put_together(material(messages, policy=elides))

    (served,) = [one for one in found.messages if one.seq == giant.seq]
    assert served.content.startswith("BEGIN")
    assert served.content.endswith("END")
    assert found.gauge.tokens <= found.gauge.window
    assert found.warnings == (f"message_elided:{giant.seq}",)
    others = {one.seq: one.content for one in messages if one.seq != giant.seq}
    assert {one.seq: one.content for one in found.messages if one.seq in others} == others
    with pytest.raises(ContextOverWindowError):
        put_together(material(messages, policy=refuses))
    with pytest.raises(ContextOverWindowError):  # many that are not too large are never cut
        put_together(material(said(140, policy=elides), policy=elides))


def test_keep_full_serves_a_large_message_in_the_room_that_is_left_where_the_policy_says_so() -> None:
    elides = policy_of(context_window=4_000, on_failure="keep_full", oversized="elide")
    messages = said(60, policy=elides)
    text = "BEGIN " + "word " * 4_000 + "END"
    weight = weigh("user", text)
    messages.append(replace(messages[-2], seq=61, content=text, token_count=weight.tokens, byte_length=weight.bytes))
    assert weight.tokens < 3_000, "alone it would fit"
    whole = material(messages, policy=elides)
    found = put_together(whole)

    assert [one.seq for one in found.messages if one.seq is not None] == list(range(1, 62))
    (served,) = [one.content for one in found.messages if one.seq == 61]
    assert (served[:5], served[-3:]) == ("BEGIN", "END")
    assert found.gauge.budget < found.gauge.tokens <= found.gauge.window
    assert found.warnings == ("message_elided:61", "context_over_budget")
    with pytest.raises(ContextOverWindowError):  # messages that were not read are never left out silently
        put_together(replace(whole, unloaded_tokens=1))


def test_what_was_not_loaded_counts_and_can_only_be_cut() -> None:
    messages = said(120)
    whole = material(messages, policy=POLICY)
    late = [one for one in messages if one.seq > 10]
    missing = sum(one.token_count for one in messages[:10])
    held = tuple(one for one in messages[:10] if one.is_protected)
    partly = ContextInputs(
        conversation=whole.conversation,
        schema=whole.schema,
        policy=whole.policy,
        budgets=whole.budgets,
        system=whole.system,
        held=held,
        tail=tuple(late),
        unloaded_tokens=missing - sum(one.token_count for one in held),
    )

    assert put_together(partly).truncated == put_together(whole).truncated


def _minimum(source: ContextInputs, budget: int | None) -> int | None:
    try:
        put_together(source, budget)
    except BudgetTooSmallError as error:
        return int(error.extra["minimum"])
    return None


@given(
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=40),
    boundary_share=st.floats(0, 1),
    has_state=st.booleans(),
    budget=st.one_of(st.none(), st.integers(1, 4_000)),
)
def test_any_conversation_fits_or_is_refused_with_a_minimum_that_fits(
    sizes: list[int], boundary_share: float, *, has_state: bool, budget: int | None
) -> None:
    messages = [message(seq, "word " * size, policy=POLICY) for seq, size in enumerate(sizes, start=1)]
    boundary = int(boundary_share * (len(messages) - 1)) if has_state else 0
    source = material(messages, policy=POLICY, state=STATE if has_state else None, boundary=boundary)
    minimum = _minimum(source, budget)
    if minimum is not None:
        assert budget is None or minimum > budget
        budget = minimum
    found = put_together(source, budget)
    room = found.gauge.budget if budget is None else budget + found.gauge.breakdown.system
    served = [one.seq for one in found.messages if one.seq]

    assert found.gauge.tokens <= room
    assert served == sorted(served)
    assert put_together(source, budget) == found
    if found.truncated is None and "held_message_left_out" not in str(found.warnings):
        assert set(served) >= set(range(boundary + 1, len(messages) + 1))


def test_what_is_recalled_moves_neither_the_cut_nor_the_digest_unless_it_takes_much_more() -> None:
    """A digest takes seconds of work, so that questions that leave about the same room share one."""
    source = material(said(400), policy=POLICY)
    asked: set[tuple[int, int, int]] = set()

    def noted(messages: Sequence[Message], max_tokens: int) -> str:
        asked.add((messages[0].seq, messages[-1].seq, max_tokens))
        return "what was said"

    whole = first_draft(source)
    rooms = range(1_000, 2_000, 7)
    for tokens in rooms:
        draft = fit(source, whole, TokenLimits(tokens=tokens, anchors=None), noted)
        assert draft_tokens(source, draft) <= tokens
        assert draft_tokens(source, draft) > 0.75 * tokens
    assert len(asked) <= 17
    assert len(rooms) > 140

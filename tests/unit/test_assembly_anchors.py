"""Anchors in every context that is assembled, the order of removal, elision, and what holds for any conversation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart

from app.core.anchors.selection import MIN_TOKEN_LIMIT, ServableAnchors, serve
from app.core.context import fitting
from app.core.context.assembly import AssembledContext, ContextInputs, assemble, available_anchor_tokens, exceeds_budget
from app.core.context.drafts import Draft, first_draft, with_anchors
from app.core.context.fitting import RemovedFirst, TokenLimits, fit
from app.core.model.anchors import Anchor, Proposer
from app.core.model.conversation import Message, QuietPeriod
from app.core.model.errors import BudgetTooSmallError
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.redaction import redact_message
from app.core.retrieval.corpus import Corpus, Source
from app.core.retrieval.rendering import Recall
from app.core.state.layout import layout_of, state_json
from app.core.summarizer.offline.extractive import digest as extractive_digest
from app.providers.messages import to_provider
from tests.builders import material, message, policy_of
from tests.profiles import examples
from tests.unit.test_anchors_transitions import anchors_of
from tests.unit.test_assembly import STATE

POLICY = policy_of(context_window=4_000)
ELIDING = policy_of(context_window=4_000, oversized="elide")


def digest(messages: Sequence[Message], max_tokens: int) -> str:
    return extractive_digest([redact_message(one) for one in messages], max_tokens)


def made_of(
    messages: Sequence[Message],
    *,
    policy: CompactionPolicy = POLICY,
    boundary: int = 0,
    anchors: Sequence[Anchor] | None = None,
) -> ContextInputs:
    """The material that the service would load, with the layout that it would have stored."""
    found = anchors_of(messages) if anchors is None else anchors
    source = material(messages, policy=policy, state=STATE if boundary else None, boundary=boundary)
    if boundary:
        held = [one.seq for one in source.held]
        served = serve(found, through_seq=boundary, held_seqs=held, token_limit=source.budgets.anchor_tokens)
        layout = layout_of(
            source.schema,
            STATE,
            served_as=policy.served_as,
            estimator=policy.estimator,
            held=source.held,
            anchors=served,
            markers=bool(policy.levels),
        )
        source = replace(source, conversation=replace(source.conversation, layout=layout))
    return replace(source, anchors=tuple(found))


def put_together(source: ContextInputs, budget: int | None = None) -> AssembledContext:
    return assemble(source, digest=digest, budget=budget)


def block(context: AssembledContext) -> str:
    return "\n".join(one.content for one in context.messages[1:] if one.seq is None)


def room_of(context: AssembledContext) -> int:
    return context.gauge.tokens - context.gauge.breakdown.system


def talk_of(count: int, *, words: int = 20, policy: CompactionPolicy = POLICY) -> list[Message]:
    """Small talk of a known weight, in which every tenth message is a decision."""
    lines = [
        f"Let's use port {5000 + seq} for service number {seq}."
        if seq % 10 == 5
        else f"oh chat {seq} " + "word " * words
        for seq in range(1, count + 1)
    ]
    return [message(seq, line, policy=policy, token_count=words + 8) for seq, line in enumerate(lines, start=1)]


def set_by(source: ContextInputs, seq: int, by: Proposer) -> ContextInputs:
    changed = [replace(one, proposed_by=by) if one.seq == seq else one for one in source.anchors]
    return replace(source, anchors=tuple(changed))


def test_with_a_state_the_stored_layout_is_served_as_it_is() -> None:
    source = made_of(talk_of(30), boundary=20)
    found = put_together(source)
    layout = source.conversation.layout

    assert layout is not None
    assert layout.anchors in block(found)
    assert "- decision #5 (user): " in block(found)
    assert "- decision #15 (user): " in block(found)
    assert "- decision #25 (user): " not in block(found)
    anchors = next(section for section in found.sections if section.kind == "anchors")
    assert anchors.seqs == (5, 15)
    assert anchors.tokens == found.gauge.breakdown.anchors == layout.anchor_tokens


def test_what_truncation_cuts_off_leaves_its_anchors_also_without_a_state() -> None:
    source = made_of(talk_of(140))
    found = put_together(source)

    assert found.truncated is not None
    gone = [one for one in source.anchors if one.seq <= found.truncated[1]]
    assert len(gone) > 1
    assert all(one.content in block(found) for one in gone)
    assert all(f"#{one.seq} (user): " not in block(found) for one in source.anchors if one not in gone)
    assert "<left_out" in block(found)
    assert found.gauge.tokens <= found.gauge.budget


def test_control_without_the_anchors_of_the_cut_they_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "with_anchors", lambda _, draft, **__: draft)
    source = made_of(talk_of(140))
    found = put_together(source)

    assert found.truncated is not None
    assert "<anchors>" not in block(found)


def test_with_a_state_truncation_serves_both_the_covered_and_the_cut() -> None:
    source = made_of(talk_of(200), boundary=60)
    found = put_together(source)
    shown = next(section.seqs for section in found.sections if section.kind == "anchors")

    assert found.truncated is not None
    assert shown == tuple(one.seq for one in source.anchors if one.seq <= found.truncated[1])
    assert {5, 55, 65} <= set(shown)


def test_beyond_their_share_they_stand_behind_the_marker_and_the_gauge_says_so() -> None:
    policy = policy_of(context_window=4_000, anchor_share=0.02)
    source = set_by(made_of(talk_of(140, policy=policy), policy=policy), 5, "user")
    found = put_together(source)

    assert "[anchors →L3:anchors]" in block(found)
    assert found.gauge.anchors_behind_marker > 0
    assert "- decision #5 (user): " in block(found)
    shown = next(section.seqs for section in found.sections if section.kind == "anchors")
    assert found.truncated is not None
    behind = [one for one in source.anchors if one.seq <= found.truncated[1] and one.seq not in shown]
    assert len(behind) == found.gauge.anchors_behind_marker


def test_a_held_message_speaks_for_its_own_anchors() -> None:
    messages = [replace(one, protected_reason="pinned") if one.seq == 15 else one for one in talk_of(140)]
    found = put_together(made_of(messages))

    assert "#5 (user): " in block(found)
    assert "#15 (user): " not in block(found)
    assert 15 in [one.seq for one in found.messages]


def test_a_held_half_of_a_tool_pair_keeps_the_other() -> None:
    call = [{"type": "tool_call", "id": "a", "name": "look", "arguments": {}}]
    result = [{"type": "tool_result", "tool_call_id": "a", "content": "found it"}]
    pair = [
        message(3, "", "assistant", parts=call),
        message(4, "", "tool", parts=result, protected_reason="pinned"),
    ]
    messages = [*talk_of(2), *pair, *[one for one in talk_of(140) if one.seq > 4]]
    served = [one.seq for one in put_together(made_of(messages)).messages]

    assert {3, 4} <= set(served)
    assert 7 not in served
    source = made_of(messages)
    for budget in range(60, 900, 20):
        some = {one.seq for one in put_together(source, budget).messages}
        assert (3 in some) == (4 in some), budget


def asking(messages: Sequence[Message]) -> Recall:
    """A caller's question, asked about these messages."""
    sources = [
        Source(seq=one.seq, role=one.role, text=one.content, at=one.created_at, tokens=one.token_count)
        for one in messages
    ]
    return Recall(question="Which chat had the most words?", corpus=Corpus(sources), is_explicit=True)


@pytest.mark.parametrize("budget", [900, 1_200, 1_800])
def test_a_question_takes_no_place_from_anchors_where_the_policy_lets_none_go(budget: int) -> None:
    def asked(share: float | None) -> AssembledContext:
        policy = policy_of(context_window=4_000, anchor_share=share)
        messages = talk_of(120, policy=policy)
        return put_together(replace(made_of(messages, policy=policy, boundary=60), recall=asking(messages)), budget)

    kept = asked(None)
    assert kept.gauge.anchors_behind_marker == 0
    assert all(f"port {5000 + seq} for service number {seq}." in block(kept) for seq in range(5, 120, 10))
    assert kept.recalled, "what the question needs has room beside them"
    assert room_of(kept) <= budget
    assert asked(0.99).gauge.anchors_behind_marker, "control: under a share they make way"


def test_what_data_would_keep_goes_to_the_question_where_anchors_want_more_than_their_half() -> None:
    """Anchors want more than the half that is kept free for them; data shares that half, and gets nothing else."""
    policy = policy_of(context_window=4_000, anchor_share=None)
    messages = talk_of(240, policy=policy)
    source = replace(made_of(messages, policy=policy, boundary=120), recall=asking(messages))
    data = [f"Tool: order_id=AB{number}X, seat=C{number}" for number in range(1_000, 1_060)]
    told = {**STATE, "logos": [*STATE["logos"], *data]}
    with_data = replace(source, conversation=replace(source.conversation, compressed_state=told))
    plain, found = put_together(source, 900), put_together(with_data, 900)

    assert found.recalled
    assert [one.source.seq for one in found.recalled] == [one.source.seq for one in plain.recalled]
    assert plain.gauge.anchors_behind_marker > 0, "control: they want more than their half"


@pytest.mark.daily(1)
@pytest.mark.parametrize("share", [0.99, None], ids=["share", "no anchor goes"])
def test_the_order_of_removal(share: float | None) -> None:
    """As the budget shrinks: digest, old tail, style and known, narrative, anchors, facts, the other tail, pins.

    If the policy lets no anchor go, facts and anchors are removed by how much they tell.
    """
    policy = policy_of(context_window=4_000, anchor_share=share)  # a small share would remove anchors too early
    messages = [replace(one, protected_reason="pinned") if one.seq in {2, 3} else one for one in talk_of(40)]
    messages[-3:] = [
        message(38, "word " * 60, "user"),
        message(39, "word " * 60, "assistant"),
        message(40, "word " * 30, "assistant"),
    ]
    source = made_of(messages, policy=policy, boundary=20)
    whole = put_together(source)
    texts: dict[str, Any] = STATE
    present: dict[str, Callable[[AssembledContext], bool]] = {
        "digest": lambda found: "<left_out" in block(found),
        "old tail": lambda found: any((one.seq or 0) in range(21, 38) for one in found.messages),
        "style": lambda found: texts["pathos"][0] in block(found),
        "narrative": lambda found: texts["conversation_summary"] in block(found),
        "anchors": lambda found: "- decision #" in block(found),
        "facts": lambda found: texts["logos"][1] in block(found),
        "other tail": lambda found: 38 in [one.seq for one in found.messages],
        "pins": lambda found: 3 in [one.seq for one in found.messages],
    }
    lost: dict[str, int] = {}
    for budget in range(room_of(whole), 0, -3):
        found = _within(source, budget)
        if found is None:
            break
        for name, is_there in present.items():
            if name not in lost and not is_there(found) and (name != "digest" or found.truncated):
                lost[name] = budget
    both = ["anchors", "facts"] if share else sorted(["anchors", "facts"], key=lambda name: -lost[name])
    order = ["old tail", "style", "narrative", *both, "other tail", "pins"]

    assert sorted(order, key=lambda name: -lost[name]) == order
    assert lost["digest"] > lost["style"]


def folded_with_facts(*, decided: str) -> ContextInputs:
    """A folded talk with many anchors, and a state whose facts hold exact values."""
    policy = policy_of(context_window=4_000, anchor_share=None)
    messages = [
        message(seq, decided.format(seq=seq) if seq % 2 else f"oh chat {seq}", policy=policy, token_count=20)
        for seq in range(1, 61)
    ]
    source = made_of(messages, policy=policy, boundary=50)
    said = [f"User: It was rather nice to see her at number {seq} again, and to talk of it all." for seq in range(20)]
    exact = [f"User: The order {seq} of Vera Brandt costs ${seq}50." for seq in range(10, 20)]
    state = {**STATE, "logos": [*said, *exact]}
    layout = source.conversation.layout
    assert layout is not None
    laid_out = replace(layout, text=state_json(source.schema, state))
    return replace(source, conversation=replace(source.conversation, compressed_state=state, layout=laid_out))


def test_where_the_policy_lets_no_anchor_go_a_small_budget_serves_what_tells_most_of_facts_and_anchors() -> None:
    source = folded_with_facts(decided="Let's go on with this, then, as it is.")
    assert source.anchors
    exact = folded_with_facts(decided="Let's use port 50{seq} for service number {seq}.")

    for one in (source, exact):
        for budget in range(200, 900, 50):
            found = put_together(one, budget)
            assert room_of(found) <= budget
            assert "Vera Brandt" in block(found), "facts do not all go before the first anchor"
    both = put_together(exact, 600)
    assert "for service number" in block(both), "nor anchors before the first fact"
    assert 0 < both.gauge.anchors_behind_marker < len(exact.anchors)
    assert "[anchors →L3:anchors]" in block(both)


def test_of_anchors_on_the_same_thing_the_older_gives_way_first(monkeypatch: pytest.MonkeyPatch) -> None:
    source = folded_with_facts(decided="Let's use port 50{seq} for service number {seq}.")
    before, between, after = source.anchors[:2], source.anchors[3:9], source.anchors[10:]
    old = replace(source.anchors[2], content="Let's take the cottage at Lake Orrin from 4 to 18 July.")
    later = (
        "Let's take the cottage at Lake Orrin only in August, from the 1st to the 15th, since Vera is ill until then."
    )
    new = replace(source.anchors[9], content=later)
    source = replace(source, anchors=(*before, old, *between, new, *after))

    def shown() -> list[tuple[bool, bool]]:
        blocks = [block(put_together(replace(source), budget)) for budget in range(200, 500, 50)]
        return [(old.content in one, new.content in one) for one in blocks]

    assert (True, False) not in shown()
    assert (False, True) in shown()
    monkeypatch.setattr(ServableAnchors, "with_newest_shown", lambda _self, hidden: frozenset(hidden))
    assert (True, False) in shown(), "the control: by what they tell alone the old one would stay"


@pytest.mark.long
def test_in_a_turn_facts_make_way_while_all_anchors_fit_and_else_what_tells_least_goes() -> None:
    exact = folded_with_facts(decided="Let's use port 50{seq} for service number {seq}.")
    without_facts = replace(exact, conversation=replace(exact.conversation, compressed_state=None))
    small, large, of_budget = 0, 0, 0
    for tokens in range(200, 1_200, 25):
        room = TokenLimits(tokens=tokens, anchors=None, removed_first="facts")
        found = fit(exact, first_draft(exact), room, digest)
        bare = fit(without_facts, replace(first_draft(exact), state=None), room, digest)
        if not bare.anchors_behind_marker:
            if bare.left_out == found.left_out:
                assert not found.anchors_behind_marker, tokens
                large += 1
            asked = fit(exact, first_draft(exact), replace(room, removed_first="least"), digest)
            of_budget += asked.anchors_behind_marker
        else:
            assert "Vera Brandt" in (found.state or ""), tokens
            small += 1
    assert small
    assert large
    assert of_budget, "control: where a budget is asked for, anchors go before all facts have"


def test_in_a_turn_what_is_left_of_facts_and_anchors_stays_the_same_for_the_next_one() -> None:
    exact = folded_with_facts(decided="Let's use port 50{seq} for service number {seq}.")
    longer = replace(exact, tail=(*exact.tail, message(61, "Then: The order 15 of Vera Brandt costs $1550.", "user")))

    def blocks(first: RemovedFirst) -> list[tuple[str | None, str]]:
        room = TokenLimits(tokens=600, anchors=None, removed_first=first)
        return [(one.state, one.anchors) for one in (fit(each, first_draft(each), room, digest) for each in both)]

    both = [replace(exact, tail=exact.tail[-1:]), replace(longer, tail=longer.tail[-1:])]
    before, after = blocks("facts")
    assert before == after
    before, after = blocks("least")
    assert before != after, "control: a small budget leaves out what stands in its messages"


def test_anchors_that_a_user_set_stay_whatever_the_others_tell() -> None:
    exact = folded_with_facts(decided="Let's use port 50{seq} for service number {seq}.")
    seq = exact.anchors[3].seq
    budget = next(size for size in range(200, 900, 20) if f"#{seq} (user)" not in block(put_together(exact, size)))

    assert f"#{seq} (user)" in block(put_together(set_by(exact, seq, "user"), budget))


def _within(source: ContextInputs, budget: int) -> AssembledContext | None:
    try:
        return put_together(source, budget)
    except BudgetTooSmallError:
        return None


@pytest.mark.case("29")
def test_pins_go_with_a_warning_and_identical_text_until_then() -> None:
    messages = [replace(one, protected_reason="pinned") if one.seq in {2, 3} else one for one in talk_of(40)]
    source = made_of(messages, boundary=20)
    for budget in range(40, 400, 9):
        found = _within(source, budget)
        if found is None:
            continue
        served = {one.seq: one.content for one in found.messages}
        for seq in (1, 2, 3):
            assert (served.get(seq) == messages[seq - 1].content) != (f"held_message_left_out:{seq}" in found.warnings)


@pytest.mark.control("29")
def test_control_without_the_holding_truncation_would_take_a_pin(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [replace(one, protected_reason="pinned") if one.seq == 15 else one for one in talk_of(140)]
    assert 15 in [one.seq for one in put_together(made_of(messages)).messages]
    monkeypatch.setattr(fitting, "held_indexes", lambda _: frozenset())

    assert 15 not in [one.seq for one in put_together(made_of(messages)).messages]


def test_anchors_that_a_user_set_go_last_of_all_with_a_warning() -> None:
    source = set_by(made_of(talk_of(30), boundary=20), 5, "user")
    last = source.tail[-1].token_count
    kept = put_together(source, last + 90)
    gone = put_together(source, last)

    assert "- decision #5 (user): " in block(kept)
    assert "anchors_left_out" not in kept.warnings
    assert block(gone) == ""
    assert "anchors_left_out" in gone.warnings


def test_an_oversized_last_message_is_elided_where_the_policy_says_so() -> None:
    giant = "Please read: " + "many words and 12345 of them " * 2_000 + " The code is QX-77."
    messages = [*talk_of(20, policy=ELIDING), message(21, giant, "user", policy=ELIDING)]
    found = put_together(made_of(messages, policy=ELIDING, boundary=10))
    refusing = made_of([*talk_of(20), message(21, giant, "user")], boundary=10)

    assert "message_elided:21" in found.warnings
    assert found.gauge.tokens <= found.gauge.budget
    assert "characters left out here" in found.messages[-1].content
    assert found.messages[-1].content.endswith("The code is QX-77.")
    assert STATE["logos"][0] in block(found)
    with pytest.raises(BudgetTooSmallError):
        put_together(refusing)


def test_a_giant_tool_result_is_elided_in_its_part() -> None:
    parts: list[Any] = [
        {"type": "tool_call", "id": "a", "name": "read", "arguments": {}},
        {"type": "tool_result", "tool_call_id": "a", "content": "row of data, " * 5_000},
    ]
    messages = [
        *talk_of(5, policy=ELIDING),
        message(6, "", "assistant", parts=parts[:1], policy=ELIDING),
        message(7, "", "tool", parts=parts[1:], policy=ELIDING),
    ]
    found = put_together(made_of(messages, policy=ELIDING))

    assert "message_elided:7" in found.warnings
    assert found.gauge.tokens <= found.gauge.budget
    assert "left out here" in found.messages[-1].parts[0]["content"]


def test_erased_messages_and_commands_say_nothing() -> None:
    messages = talk_of(6)
    messages[2] = replace(messages[2], content="", status="erased", token_count=0, byte_length=0)
    messages[3] = replace(messages[3], is_command=True)

    assert [one.seq for one in put_together(made_of(messages)).messages] == [None, 1, 2, 5, 6]


@pytest.mark.parametrize("again", [False, True], ids=["once", "again"])
def test_what_was_never_loaded_is_left_out_and_an_orphaned_result_with_it(*, again: bool) -> None:
    """Also if a later call has the id of the one that was not loaded."""
    result = [{"type": "tool_result", "tool_call_id": "lost", "content": "x"}]
    call = [{"type": "tool_call", "id": "lost", "name": "look", "arguments": {}}]
    tail = [message(51, "", "tool", parts=result), message(52, "ok", "assistant"), message(53, "and?", "user")]
    if again:
        tail += [message(54, "", "assistant", parts=call), message(55, "", "tool", parts=result)]
    source = replace(material([], policy=POLICY), tail=tuple(tail), unloaded_tokens=50_000)
    found = put_together(source)

    assert [one.seq for one in found.messages if one.seq] == [one.seq for one in tail[1:]]
    assert found.truncated == (1, 51)


def test_what_was_erased_after_its_tokens_were_counted_is_not_looked_for() -> None:
    found = put_together(replace(material([], policy=POLICY), unloaded_tokens=50_000))
    assert not [one for one in found.messages if one.seq]


def test_anchors_are_needed_only_where_something_has_to_go() -> None:
    small = made_of(talk_of(10))

    assert not exceeds_budget(small)
    assert exceeds_budget(small, budget=50)
    assert exceeds_budget(made_of(talk_of(300)))
    keeping = policy_of(context_window=4_000, on_failure="keep_full")
    assert not exceeds_budget(made_of(talk_of(300, policy=keeping), policy=keeping))


@pytest.mark.long
def test_a_truncated_context_only_grows_at_its_end_until_the_next_step() -> None:
    messages = talk_of(190)
    found = anchors_of(messages)
    contexts = [
        put_together(made_of(messages[:count], anchors=[one for one in found if one.seq <= count]))
        for count in range(150, 190)
    ]
    same = [(one, two) for one, two in pairwise(contexts) if one.truncated == two.truncated]

    assert len(same) > len(contexts) / 2
    for before, after in same:
        assert after.messages[: len(before.messages)] == before.messages


SAID = st.sampled_from(
    [
        "Use Postgres",
        "no, MySQL",
        "I'll send the report by Friday.",
        "The port is 5433.",
        "Should we shard the database?",
        "Меня зовут Ольга.",
        "word " * 40,
        "слово " * 120,
        "password=hunter2hunter2",
        "",
        "</session_state> [anchors →L3:anchors]",
        "hello",
    ]
)
KINDS = st.sampled_from(["plain"] * 6 + ["pair", "pending", "held", "command", "erased", "system", "held pair"])
STEPS = st.lists(st.tuples(KINDS, st.sampled_from(["user", "assistant"]), SAID), min_size=1, max_size=25)
ROUNDED_APART = [
    ("plain", "user", "Use Postgres"),
    ("plain", "user", "Should we shard the database?"),
    ("system", "user", "I'll send the report by Friday."),
    ("held pair", "user", "слово " * 120),
    ("held pair", "user", "слово " * 120),
    ("plain", "user", "no, MySQL"),
]
"""Held messages and a tail with numbers of bytes that four does not divide; each is rounded up."""


def conversation_of(steps: Sequence[tuple[str, str, str]]) -> list[Message]:
    found: list[Message] = []

    def add(content: str, role: Any, parts: Sequence[Any] = (), **changes: Any) -> None:
        found.append(message(len(found) + 1, content, role, parts=parts, **changes))

    for number, (kind, role, content) in enumerate(steps):
        call = {"type": "tool_call", "id": f"c{number}", "name": "look", "arguments": {"for": content}}
        result = {"type": "tool_result", "tool_call_id": f"c{number}", "content": content}
        if kind in {"pair", "held pair"}:
            add("", "assistant", [call])
            add("", "tool", [result], protected_reason="pinned" if kind == "held pair" else "compressible")
        elif kind == "pending":
            add(content, "assistant", [call])
        elif kind == "held":
            add(content, role, protected_reason="pinned")
        elif kind == "command":
            add("/compact", "user", is_command=True)
        elif kind == "erased":
            add("", role, status="erased", token_count=0, byte_length=0)
        elif kind == "system":
            add(content, "system", protected_reason="system")
        else:
            add(content, role)
    return found


@examples(1.5)
@given(
    STEPS,
    st.floats(0, 1),
    st.one_of(st.none(), st.integers(1, 1_500)),
    st.sampled_from(["refuse", "elide"]),
    st.sampled_from(["script", "bytes"]),
)
@example(ROUNDED_APART, 0.5, None, "refuse", "bytes")
def test_any_conversation_fits_with_roles_that_providers_take_or_names_a_true_minimum(
    steps: list[tuple[str, str, str]], share: float, budget: int | None, oversized: str, estimator: str
) -> None:
    policy = policy_of(context_window=2_000, state_tokens=60, estimator=estimator, oversized=oversized)
    messages = conversation_of(steps)
    boundary = _legal_boundary(messages, int(share * (len(messages) - 1)))
    source = made_of(messages, policy=policy, boundary=boundary)
    try:
        found = put_together(source, budget)
    except BudgetTooSmallError as error:
        minimum = int(error.extra["minimum"])
        assert minimum > (budget if budget is not None else source.budgets.budget - 200)
        with pytest.raises(BudgetTooSmallError):
            put_together(source, minimum - 1)
        found, budget = put_together(source, minimum), minimum
    room = found.gauge.budget if budget is None else budget + found.gauge.breakdown.system

    assert found.gauge.tokens <= room
    assert found.gauge.breakdown.total == found.gauge.tokens == sum(section.tokens for section in found.sections)
    assert put_together(source, budget) == found
    _check_told(source, found)
    _check_provider(found)


def _legal_boundary(messages: Sequence[Message], wanted: int) -> int:
    """The nearest boundary at or before the wanted one that does not separate a pair."""
    while wanted and any(part["type"] == "tool_call" for part in messages[wanted - 1].parts):
        wanted -= 1
    return wanted


def _check_told(source: ContextInputs, found: AssembledContext) -> None:
    """Insist that every message that is not served is named: covered, truncated, or in a warning (law I10)."""
    served = {one.seq for one in found.messages if one.seq}
    spoken = {one.seq for one in (*source.held, *source.tail) if (one.content or one.parts) and not one.is_command}
    first, last = found.truncated or (0, -1)
    warned = {int(text.partition(":")[2]) for text in found.warnings if text.startswith("held_message_left_out")}

    assert served <= spoken
    assert all(first <= seq <= last or seq in warned for seq in spoken - served)


def _check_provider(found: AssembledContext) -> None:
    thread = to_provider(found.messages, lambda _: False)
    assert all(type(one) is not type(two) for one, two in pairwise(thread))
    assert isinstance(thread[0], ModelRequest)
    for index, one in enumerate(thread):
        calls = [part.tool_call_id for part in one.parts if isinstance(part, ToolCallPart)]
        if calls:
            following = thread[index + 1]
            results = [part.tool_call_id for part in following.parts if isinstance(part, ToolReturnPart)]
            assert isinstance(one, ModelResponse)
            assert results == calls


@examples(0.6)
@given(STEPS, st.integers(1, 12))
def test_with_the_same_layout_appending_only_grows_the_end(steps: list[tuple[str, str, str]], more: int) -> None:
    messages = conversation_of(steps)
    boundary = _legal_boundary(messages, len(messages) // 3)
    later = [message(len(messages) + number, f"more {number}") for number in range(1, more + 1)]
    before = put_together(made_of(messages, boundary=boundary))
    whole = made_of([*messages, *later], boundary=boundary, anchors=anchors_of(messages))
    after = put_together(whole)

    if before.truncated is None and after.truncated is None:
        assert after.messages[: len(before.messages)] == before.messages


def test_a_digest_keeps_no_secret() -> None:
    messages = talk_of(160)
    messages[3] = message(4, "The server takes password=hunter2hunter2 and runs PostgreSQL 18 on host db-4.", "user")
    found = put_together(made_of(messages))

    assert found.truncated is not None
    assert found.truncated[1] > 4
    assert "hunter2hunter2" not in block(found)


@pytest.mark.daily(3)
@pytest.mark.parametrize(("share", "share_before"), [(0, 0), (0, 0.3), (0.02, 0.02), (0.02, 0.3), (0.15, 0.15)])
@pytest.mark.parametrize("by", ["rule", "user"])
@pytest.mark.parametrize("boundary", [120, 199])
def test_no_step_gives_anchors_more_room_than_is_read_for(
    monkeypatch: pytest.MonkeyPatch, share: float, share_before: float, by: Proposer, boundary: int
) -> None:
    """This also holds if they were laid out under a policy that gave them more."""
    policy, before = (policy_of(context_window=4_000, anchor_share=one) for one in (share, share_before))
    talk = talk_of(200, policy=policy)
    source, laid_out = (made_of(talk, policy=one, boundary=boundary) for one in (policy, before))
    source = replace(source, conversation=laid_out.conversation)
    source = replace(
        source, anchors=tuple(replace(one, proposed_by=by if one.seq % 20 == 5 else "rule") for one in source.anchors)
    )
    given: list[int] = []

    def seen(material: ContextInputs, draft: Draft, *, token_limit: int | None) -> Draft:
        assert token_limit is not None
        staying = sum(one.token_count for one in material.servable(draft).within(MIN_TOKEN_LIMIT).shown)
        given.append(token_limit - staying)
        return with_anchors(material, draft, token_limit=token_limit)

    monkeypatch.setattr(fitting, "with_anchors", seen)
    for budget in (None, *range(40, 2_600, 40)):
        given.clear()
        with contextlib.suppress(BudgetTooSmallError):
            put_together(source, budget)
        most = available_anchor_tokens(source, budget)
        assert most is not None
        assert not [(room, most, budget) for room in given if room > most]


def test_all_anchors_are_read_where_none_has_to_go_or_their_weight_is_not_known() -> None:
    for policy in (
        policy_of(context_window=4_000, anchor_share=None),
        policy_of(context_window=4_000, estimator="bytes"),
    ):
        assert available_anchor_tokens(made_of(talk_of(20, policy=policy), policy=policy), 500) is None


@pytest.mark.parametrize(
    ("count", "reason", "warned"),
    [(140, "anchors_over_budget", True), (140, "timeout", False), (20, "anchors_over_budget", False)],
    ids=["refused for its anchors", "refused otherwise", "nothing is left out"],
)
def test_what_is_left_out_since_anchors_have_no_room_is_warned_of(count: int, reason: str, *, warned: bool) -> None:
    source = made_of(talk_of(count))
    quiet = replace(source, conversation=replace(source.conversation, quiet=QuietPeriod(reason=reason)))

    assert ("anchors_over_budget" in put_together(quiet).warnings) is warned
    assert "anchors_over_budget" not in put_together(source).warnings


def test_anchors_of_which_the_policy_lets_none_go_are_warned_of_where_they_have_no_room() -> None:
    policy = policy_of(context_window=4_000, anchor_share=None)
    messages = [message(seq, f"Let's use port {5000 + seq} for service {seq}.", policy=policy) for seq in range(1, 301)]
    found = put_together(made_of(messages, policy=policy, boundary=290))

    assert found.gauge.anchors_behind_marker > 0
    assert "anchors_over_budget" in found.warnings
    with_share = made_of(messages, policy=POLICY, boundary=290)
    assert "anchors_over_budget" not in put_together(with_share).warnings, "control"

"""What is folded: legal cuts, the target, keeps, chunks, and the properties that hold for any conversation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.conversation import Outline
from app.core.model.gauge import Breakdown
from app.core.model.policies.budgets import Budgets
from app.core.model.records import FoldRequest
from app.core.planning.compaction import MINIMUM_SPAN, CompactionPlan, NothingToFold, plan_compaction
from app.core.planning.cuts import Tail, held_indexes, legal_cuts
from tests.builders import budgets, outline, policy_of

BUDGETS = budgets(policy_of(context_window=4_000))
TO_TARGET = FoldRequest(fold="to_target")
ALL = FoldRequest(fold="all")


def plan(
    *items: Any,
    request: FoldRequest = TO_TARGET,
    system: int = 100,
    state: int = 0,
    held: int = 0,
    anchors: int = 0,
    digests: int = 0,
    chunk: int = 100_000,
    complete: bool = True,
    within: Budgets = BUDGETS,
) -> CompactionPlan | NothingToFold:
    messages = outline(*items)
    tail = sum(item.token_count for item in messages if not item.is_command)
    return plan_compaction(
        Tail(outline=messages, complete=complete),
        breakdown=Breakdown(system=system, state=state, anchors=anchors, digests=digests, held=held, tail=tail),
        budgets=within,
        estimator="script",
        request=request,
        chunk_tokens=chunk,
    )


def talk(turns: int, tokens: int = 100) -> list[tuple[str, int]]:
    return [("user" if index % 2 == 0 else "assistant", tokens) for index in range(2 * turns)]


def cuts(*items: Any, request: FoldRequest = ALL, complete: bool = True) -> list[int]:
    return legal_cuts(Tail(outline=outline(*items), complete=complete), estimator="script", request=request)


def item(role: Any = "assistant", tokens: int = 100, **more: Any) -> Outline:
    return Outline(seq=0, role=role, token_count=tokens, byte_length=4 * tokens, **more)


def test_the_oldest_messages_go_until_the_target_is_met() -> None:
    found = plan(*talk(13))  # now 100 + 2 600; the state will take 367 and digests 306, so 1 537 have to go

    assert isinstance(found, CompactionPlan)
    assert (found.from_seq, found.to_seq) == (1, 16)
    assert found.predicted_tokens == 100 + 367 + 306 + 1_000
    assert found.predicted_tokens <= BUDGETS.target
    assert found.is_last


def test_without_levels_no_room_is_kept_for_digests() -> None:
    found = plan(*talk(12), within=budgets(policy_of(context_window=4_000, levels=[])))  # 1 031 have to go

    assert isinstance(found, CompactionPlan)
    assert found.to_seq == 12  # eleven would be enough; with twelve the tail begins with a turn
    assert found.predicted_tokens == 100 + 367 + 1_200


def test_the_room_for_digests_is_reckoned_once_however_many_there_are_already() -> None:
    plans = [plan(*talk(12), digests=present) for present in (0, 150, 306)]

    assert {one.to_seq for one in plans if isinstance(one, CompactionPlan)} == {14}
    assert [type(one) for one in plans] == [CompactionPlan] * 3


def test_a_share_that_cannot_be_had_keeps_no_more_room_than_half_the_budget() -> None:
    greedy = budgets(policy_of(context_window=4_000, digest_share=1.0))
    found = plan(*talk(13), within=greedy)  # 1 529 is less than half of 3 060; a state of 367 leaves 1 162

    assert isinstance(found, CompactionPlan)
    assert found.to_seq == 24
    assert not found.irreducible


def test_digests_never_make_a_floor() -> None:
    messages = (("user", 1_000), ("assistant", 300), ("user", 1_300))
    plans = [plan(*messages, digests=present) for present in (0, 306)]

    assert [type(one) for one in plans] == [CompactionPlan] * 2
    assert not any(one.irreducible for one in plans if isinstance(one, CompactionPlan))
    assert {one.predicted_tokens for one in plans} == {BUDGETS.target}, (
        "100 + 367 + 1 300, and what is left for digests"
    )
    assert plan(("user", 1_300), digests=306) == NothingToFold(reason="nothing_to_compact", predicted_tokens=1_706)


def test_what_is_predicted_for_digests_is_a_part_of_what_is_folded() -> None:
    small, large = plan(*talk(3), request=ALL), plan(*talk(30), request=ALL)

    assert isinstance(small, CompactionPlan)
    assert isinstance(large, CompactionPlan)
    assert small.predicted_tokens == 100 + 367 + 600 // 4
    assert large.predicted_tokens == 100 + 367 + 306


def test_no_growth_is_predicted() -> None:
    """A result that is not smaller is refused; what code adds is dropped before that happens."""
    short = plan(("user", 200), ("assistant", 200), ("user", 1), request=ALL)

    assert isinstance(short, CompactionPlan)
    assert short.predicted_tokens == 100 + 401 - 1  # not 100 + 367 + 400 // 4 + 1


def test_a_turn_start_that_is_too_far_is_not_waited_for() -> None:
    near = plan(*talk(5), ("user", 100), *[("assistant", 200)] * 2, ("assistant", 150), *talk(4))
    far = plan(*talk(5), ("user", 100), *[("assistant", 200)] * 2, ("assistant", 160), *talk(4))

    assert isinstance(near, CompactionPlan)
    assert isinstance(far, CompactionPlan)
    assert near.to_seq == 14  # 1 387 or more have to go, and up to 5 % of the budget, 153 tokens, may be folded besides
    assert far.to_seq == 13


def test_a_present_state_is_reckoned_at_its_size() -> None:
    small = plan(*talk(12), state=200)
    large = plan(*talk(12), state=700)

    assert isinstance(small, CompactionPlan)
    assert isinstance(large, CompactionPlan)
    assert small.to_seq < large.to_seq


def test_held_messages_are_covered_but_save_nothing() -> None:
    found = plan(item("user", 500, is_protected=True), *talk(12))

    assert isinstance(found, CompactionPlan)
    assert found.folded_tokens == sum(100 for _ in range(found.to_seq - 1))


def test_below_the_target_nothing_is_folded() -> None:
    assert plan(*talk(3)) == NothingToFold(reason="nothing_to_compact", predicted_tokens=700)


def test_a_short_span_is_not_worth_a_call() -> None:
    spans = [MINIMUM_SPAN - 1, MINIMUM_SPAN]
    found = [
        plan(("user", tokens), ("assistant", 5), request=FoldRequest(fold="all", keep_messages=1)) for tokens in spans
    ]

    assert isinstance(found[0], NothingToFold)
    assert isinstance(found[1], CompactionPlan)


def test_a_floor_above_the_target_says_so_and_folds_what_it_can() -> None:
    stuck = plan(item("user", 2_500, is_protected=True), ("assistant", 100))
    partly = plan(item("user", 1_500, is_protected=True), *talk(6))

    assert stuck == NothingToFold(reason="irreducible_floor", predicted_tokens=2_700, lasting=True)
    assert isinstance(partly, CompactionPlan)
    assert partly.irreducible
    assert partly.to_seq == 13


def anchored(count: int, anchor_tokens: int) -> list[Outline]:
    return [item("user" if number % 2 == 0 else "assistant", anchor_tokens=anchor_tokens) for number in range(count)]


def test_anchors_of_folded_messages_move_into_the_block_and_are_not_saved() -> None:
    plain, moved = plan(*anchored(24, 0)), plan(*anchored(24, 20))

    assert isinstance(plain, CompactionPlan)
    assert isinstance(moved, CompactionPlan)
    assert plain.to_seq == 14
    assert moved.to_seq == 18  # 1 337 at 80 each are 17, and the tail begins with a turn
    assert moved.folded_tokens == 1_800  # what leaves the tail; what enters the block is counted separately
    assert moved.predicted_tokens == 100 + 367 + 306 + 600 + 18 * 20


def test_anchors_take_no_more_than_what_is_left_of_their_room() -> None:
    found = {taken: plan(*anchored(24, 90), anchors=taken) for taken in (0, 259, 459)}
    moved = {taken: min(459 - taken, 24 * 90) for taken in found}
    plans = {taken: one for taken, one in found.items() if isinstance(one, CompactionPlan)}

    assert set(plans) == set(found)
    assert {taken: one.predicted_tokens for taken, one in plans.items()} == {
        taken: 100 + 367 + 306 + taken + moved[taken] + 2_400 - one.folded_tokens for taken, one in plans.items()
    }
    assert [plans[taken].to_seq for taken in (0, 259, 459)] == [18, 18, 18]


def test_without_a_share_anchors_have_all_the_room_there_is() -> None:
    policy = policy_of(context_window=4_000, anchor_share=None)
    found = plan(*anchored(24, 90), within=budgets(policy))

    assert isinstance(found, CompactionPlan)
    assert found.irreducible
    assert found.predicted_tokens == 100 + 367 + 24 * 90  # only anchors are left


def test_what_the_gate_would_refuse_is_not_even_asked() -> None:
    policy = policy_of(context_window=4_000, anchor_share=None)
    found = plan(*anchored(24, 91), within=budgets(policy))

    assert found == NothingToFold(reason="irreducible_floor", predicted_tokens=2_500)


def test_a_held_message_s_anchors_are_not_in_the_block() -> None:
    held = item("user", 100, is_protected=True, anchor_tokens=90)
    found = plan(held, *talk(12))

    assert isinstance(found, CompactionPlan)
    assert found.predicted_tokens == 100 + 367 + 306 + 100 + 2_400 - found.folded_tokens


def test_a_held_half_of_a_pair_holds_the_other() -> None:
    call = item("assistant", 500, calls=frozenset({"a", "b"}))
    results = [item("tool", 300, results=frozenset({"a"})), item("tool", 200, results=frozenset({"b"}))]
    pinned = item("tool", 300, results=frozenset({"a"}), is_protected=True)
    free = plan(("user", 100), call, *results, *talk(3), request=ALL)
    held = plan(("user", 100), call, pinned, results[1], *talk(3), request=ALL)

    assert isinstance(free, CompactionPlan)
    assert isinstance(held, CompactionPlan)
    assert free.folded_tokens - held.folded_tokens == 1_000  # the call, and through it the other result


def test_an_irreducible_floor_is_only_what_a_pruned_state_leaves() -> None:
    prunable = plan(("user", 1_000), ("assistant", 300), ("user", 1_000), state=734)
    above = plan(("user", 1_000), ("assistant", 300), ("user", 1_400), state=734)

    assert isinstance(prunable, CompactionPlan)
    assert isinstance(above, CompactionPlan)
    assert not prunable.irreducible
    assert prunable.predicted_tokens == BUDGETS.target  # it fits without pruning, with digests of 2 tokens
    assert above.irreducible
    assert above.predicted_tokens == 100 + 367 + 1_400
    pruned = plan(("user", 1_000), ("assistant", 300), ("user", 1_100), state=734)
    assert isinstance(pruned, CompactionPlan)
    assert (pruned.irreducible, pruned.predicted_tokens) == (False, BUDGETS.target)


def test_only_a_floor_of_what_is_held_lasts() -> None:
    held = [item("system", 700, is_protected=True), item("system", 700, is_protected=True)]
    lasting = [plan(*held, ("user", 400)), plan(*held, *talk(4)), plan(*talk(4), held=1_400)]
    passing = [plan(("user", 1_900)), plan(*talk(4), ("user", 1_900)), plan(*held[:1], *talk(4), ("user", 900))]

    assert [one.lasting for one in lasting] == [True, True, True]
    assert [one.lasting for one in passing] == [False, False, False]
    assert [type(one) for one in lasting[:2]] == [type(one) for one in passing[:2]] == [NothingToFold, CompactionPlan]


def test_a_large_state_with_nothing_to_fold_is_no_floor() -> None:
    kept = plan(("user", 1_100), state=734)
    floor = plan(("user", 1_500), state=734)

    assert kept == NothingToFold(reason="nothing_to_compact", predicted_tokens=1_934)
    assert floor == NothingToFold(reason="irreducible_floor", predicted_tokens=2_334)


def test_a_little_above_the_target_folds_what_is_worth_a_call() -> None:
    found = plan(*[("user" if number % 2 == 0 else "assistant", 15) for number in range(80)])

    assert isinstance(found, CompactionPlan)  # the state will take 367 and digests 306, which makes 137 too many
    assert MINIMUM_SPAN <= found.folded_tokens <= MINIMUM_SPAN + 30
    assert not found.irreducible


def test_a_turn_larger_than_the_target_is_cut_inside() -> None:
    tools = [
        one
        for number in range(20)
        for one in (
            item("assistant", 50, calls=frozenset({f"call {number}"})),
            item("tool", 150, results=frozenset({f"call {number}"})),
        )
    ]
    found = plan(("user", 100), *tools)

    assert isinstance(found, CompactionPlan)
    assert found.to_seq % 2 == 1  # the user's message and whole exchanges
    assert not found.irreducible
    assert found.predicted_tokens <= BUDGETS.target


def test_no_chunk_is_too_short_or_only_of_held_messages() -> None:
    giant = item("user", 5_000, is_protected=True)
    found = plan(giant, *talk(30), request=ALL, chunk=4_000)

    assert isinstance(found, CompactionPlan)
    assert found.folded_tokens >= MINIMUM_SPAN


@pytest.mark.case("27")
def test_the_unanswered_user_message_is_never_folded() -> None:
    assert cuts(("user", 100), ("assistant", 100), ("user", 900)) == [0, 1]
    assert cuts(("user", 100), ("assistant", 100), ("user", 900), complete=False) == [0, 1, 2]


def test_a_call_and_its_result_stay_on_one_side() -> None:
    call, result = item(calls=frozenset({"a"})), item("tool", results=frozenset({"a"}))

    assert cuts(("user", 9), call, result, ("assistant", 9)) == [0, 2, 3]
    assert cuts(("user", 9), call, ("assistant", 9), result, ("assistant", 9)) == [0, 3, 4]


def test_a_result_belongs_to_the_last_call_before_it_with_its_id() -> None:
    call, result = item(calls=frozenset({"a"})), item("tool", results=frozenset({"a"}))
    turn: list[Any] = [("user", 9), call, result, ("assistant", 9)]

    assert cuts(*turn, *turn, *turn) == [0, 2, 3, 4, 6, 7, 8, 10, 11]
    assert cuts(*turn, ("user", 9), call) == [0, 2, 3], "the last call still waits"
    assert cuts(*turn, ("user", 9), call, complete=False) == [0, 2, 3, 4]
    pinned = item("tool", is_protected=True, results=frozenset({"a"}))
    assert held_indexes(outline(*turn, ("user", 9), call, pinned, *turn)) == {5, 6}


def test_nothing_is_cut_after_a_pending_call() -> None:
    call, other = item(calls=frozenset({"a"})), item(calls=frozenset({"b"}))

    assert cuts(("user", 9), ("assistant", 9), ("user", 9), call) == [0, 1], "its question waits with it"
    assert cuts(("user", 9), call, other, item("tool", results=frozenset({"b"}))) == [0]
    assert cuts(("user", 9), call, ("assistant", 9), complete=False) == [0]


def test_an_unanswered_call_of_a_turn_that_is_over_is_no_longer_pending() -> None:
    call = item(calls=frozenset({"a"}))

    assert cuts(("user", 9), call, ("user", 9), ("assistant", 9)) == [0, 1, 2, 3]
    interrupted = cuts(("user", 9), call, ("assistant", 0), request=FoldRequest(fold="all"))
    assert interrupted == [0, 1, 2], "the reply that was broken off ends the turn too"


@pytest.mark.parametrize(
    ("request_", "last"),
    [
        (FoldRequest(fold="all"), 7),
        (FoldRequest(fold="all", keep_messages=3), 4),
        (FoldRequest(fold="all", keep_turns=1), 5),
        (FoldRequest(fold="all", keep_turns=2), 3),
        (FoldRequest(fold="all", keep_turns=9), None),
        (FoldRequest(fold="all", keep_tokens=250), 4),
        (FoldRequest(fold="all", up_to_seq=3), 2),
        (FoldRequest(fold="all", keep_messages=1, keep_turns=2), 3),
    ],
)
def test_every_keep_is_a_minimum(request_: FoldRequest, last: int | None) -> None:
    found = cuts(*talk(4), request=request_)

    assert (found[-1] if found else None) == last


def test_an_open_turn_is_kept_beside_those_that_are_over() -> None:
    kept_one = cuts(*talk(3), ("user", 100), request=FoldRequest(fold="all", keep_turns=1))

    assert kept_one[-1] == 3  # the open turn, and one turn before it


def test_commands_weigh_nothing_and_are_no_turns() -> None:
    command = item("user", 900, is_command=True)
    found = plan(*talk(12), command)

    assert isinstance(found, CompactionPlan)
    assert found.to_seq == 14
    assert cuts(*talk(4), command, request=FoldRequest(fold="all", keep_turns=1))[-1] == 5


def test_a_span_larger_than_the_summarizer_digests_goes_in_even_chunks() -> None:
    found = plan(*talk(50), request=ALL, chunk=4_000)

    assert isinstance(found, CompactionPlan)
    assert not found.is_last
    assert found.goal_seq == 100
    assert 3_000 <= found.folded_tokens <= 4_000  # three chunks of about 3 333, not two of 4 000 and a small rest
    assert found.to_seq % 2 == 0  # the next chunk begins with a turn


def test_a_turn_larger_than_a_chunk_is_one_chunk() -> None:
    found = plan(("user", 9_000), ("assistant", 300), ("user", 100), request=ALL, chunk=4_000)

    assert isinstance(found, CompactionPlan)
    assert (found.to_seq, found.goal_seq) == (1, 2)


def test_a_scrap_goes_with_the_giant_that_follows_it() -> None:
    """Alone the scrap would be refused at every attempt as not smaller, and the giant would stay for ever."""
    scrap = 2 * BUDGETS.state_tokens - 1
    giant, rest = ("user", 9_000), talk(3)
    for before, end in ((scrap, 2), (scrap + 1, 1)):
        found = plan(("user", before), giant, *rest, request=ALL, chunk=4_000)
        assert isinstance(found, CompactionPlan)
        assert found.to_seq == end, before
    found = plan(("user", scrap), ("user", 3_900), *rest, request=ALL, chunk=4_000)
    assert isinstance(found, CompactionPlan)
    assert found.to_seq == 1, "what is not elided anyhow is not elided for a scrap's sake"


ROLES = st.sampled_from(["user", "assistant", "tool", "system"])
MESSAGES = st.lists(
    st.builds(
        Outline,
        seq=st.just(0),
        role=ROLES,
        token_count=st.integers(1, 900),
        byte_length=st.integers(1, 4_000),
        is_protected=st.booleans(),
        is_command=st.booleans(),
        calls=st.frozensets(st.sampled_from("abc"), max_size=2),
        results=st.frozensets(st.sampled_from("abc"), max_size=2),
    ),
    max_size=40,
)
REQUESTS = st.builds(
    FoldRequest,
    fold=st.sampled_from(["to_target", "all"]),
    keep_turns=st.integers(0, 4),
    keep_messages=st.integers(0, 9),
    keep_tokens=st.integers(0, 2_000),
)


@given(MESSAGES, REQUESTS, st.integers(300, 5_000))
def test_a_plan_folds_a_beginning_of_the_tail_at_a_legal_cut(
    messages: list[Outline], request_: FoldRequest, chunk: int
) -> None:
    shown = outline(*messages)
    found = plan(*messages, request=request_, chunk=chunk)
    if isinstance(found, NothingToFold):
        return
    folded, kept = shown[: found.to_seq], shown[found.to_seq :]

    assert found.from_seq == 1
    assert found.to_seq <= found.goal_seq
    held = {shown[index].seq for index in held_indexes(shown)}
    assert found.folded_tokens == sum(one.token_count for one in folded if one.seq not in held and not one.is_command)
    assert sum(not one.is_command for one in kept) >= request_.keep_messages
    callers: dict[str, int] = {}
    for one in shown:
        callers |= dict.fromkeys(one.calls, one.seq)
        answered = [callers[call] for call in one.results if call in callers]
        assert not any(caller <= found.to_seq < one.seq for caller in answered), "no call is cut from its result"


@given(MESSAGES, REQUESTS)
def test_the_tail_is_never_cut_behind_the_unanswered_message(messages: list[Outline], request_: FoldRequest) -> None:
    shown = outline(*messages)
    spoken = [one for one in shown if not one.is_command]
    found = plan(*messages, request=request_)

    if isinstance(found, CompactionPlan) and spoken[-1].role == "user":
        assert found.goal_seq < spoken[-1].seq


@given(MESSAGES)
def test_to_target_meets_the_target_or_says_that_it_cannot(messages: list[Outline]) -> None:
    found = plan(*messages)

    if isinstance(found, CompactionPlan):
        assert found.irreducible == (found.predicted_tokens > BUDGETS.target)

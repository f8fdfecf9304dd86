"""What is served: a state within its size, digests with something new, recalled messages, and days of old messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.conversation import Layout
from app.core.model.gauge import Breakdown, gauge_of
from app.core.model.policies.resolving import PRESETS
from app.core.model.schemas import SESSION
from app.core.model.segments import LEVELS, ServableSegment
from app.core.retrieval.question import question_of
from app.core.retrieval.recall_decision import decide_recall
from app.core.segments.digests import MARKER_ELEMENT_TOKENS
from app.core.state import apply as applying
from app.core.state import digest_selection
from app.core.state.digest_selection import BLOCK_SHARE, DigestSource
from app.core.state.layout import block_messages, days_element, layout_of, with_digests
from app.core.state.pruning import state_token_limit
from bench.replay import EVERYTHING, Replay
from bench.served import WINDOW, Verbose, looked_at, played
from tests.builders import budgets, message, policy_of
from tests.profiles import examples
from tests.unit.talk import talk
from tests.unit.test_assembly_digests import segment
from tests.unit.test_assembly_recall import POLICY, QUESTION, corpus, put_together, recalling, said

# --- the size of the state

TOPICS = ("crane", "ledger", "choir", "garden", "bakery", "museum")


def round_of(number: int, length: int, count: int) -> list[str]:
    return [
        f"Order {number}-{place} of the {TOPICS[place % 6]} costs {number * 100 + place} euros, due by Friday. "
        + f"It goes to gate {place} of hall {number}. " * length
        for place in range(count)
    ]


def states(preset: str, kind: type[Replay], rounds: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The weight of the state and the most that it may weigh, after each round."""
    replay = kind.in_window(8_000, preset)
    found = []
    for number, (length, count) in enumerate(rounds, start=1):
        for place, text in enumerate(round_of(number, length, count)):
            replay.say("assistant" if place % 2 else "user", text)
        replay.fold(EVERYTHING)
        if replay.layout is not None:
            found.append((replay.layout.state_tokens, state_token_limit(replay.schema, replay.budgets)))
    return found


ROUNDS = st.lists(st.tuples(st.integers(0, 3), st.integers(10, 30)), min_size=2, max_size=10)
FEW_ROUNDS = st.lists(st.tuples(st.integers(0, 2), st.integers(8, 14)), min_size=2, max_size=5)
KINDS = st.sampled_from([Replay, Verbose])


@examples(0.2)
@given(st.sampled_from(sorted(PRESETS)), KINDS, FEW_ROUNDS)
def test_the_state_is_within_its_size_after_any_round(
    preset: str, kind: type[Replay], rounds: list[tuple[int, int]]
) -> None:
    assert all(state <= most for state, most in states(preset, kind, rounds))


@pytest.mark.long
@given(st.sampled_from(sorted(PRESETS)), KINDS, ROUNDS)
def test_the_state_is_within_its_size_after_many_rounds(
    preset: str, kind: type[Replay], rounds: list[tuple[int, int]]
) -> None:
    assert all(state <= most for state, most in states(preset, kind, rounds))


@pytest.mark.long
def test_control_with_twice_the_room_it_grows_beyond_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [(1, 20)] * 3
    assert max(state / most for state, most in states("semantic", Verbose, many)) > 0.9, "and it is full"
    monkeypatch.setattr(applying, "_most_state_tokens", lambda to: 2 * to.budgets.state_cap)
    assert max(state / most for state, most in states("semantic", Verbose, many)) > 1.2


def test_a_row_of_the_table_in_the_page_about_presets() -> None:
    ((number, replay),) = played("semantic", Verbose, 1, WINDOW)
    row = looked_at("semantic", "verbose", number, replay)
    assert 0 < row.state <= row.most
    assert 0 < row.digests < 1


# --- digests

FILLING = [f"Shelf {number} of the archive holds old maps of the northern coast" for number in range(10, 40)]
STATE: Mapping[str, Any] = {
    "logos": ["Marta pays 900 euros for the harbour crane on 12 June 2027", "The ledger moves to room 114", *FILLING],
    "pathos": [],
    "abstract": [],
    "conversation_summary": "They planned the move of the ledger.",
}
SAID_ALREADY = "User: Marta pays 900 euros for the harbour crane on 12 June 2027."
NEW_VALUE = "User: The choir concert needs 450 chairs from Okafor."
NEW_WORDS = "User: Everybody enjoyed the choir concert in the old garden."


def digests_beside(*briefs: str, room: int = 2_000) -> Layout:
    """The layout with digests of segments with these texts, whose words are also their keywords."""
    segments = [_telling(segment(number, number * 5 + 1, number * 5 + 5), brief) for number, brief in enumerate(briefs)]
    texts = [text for value in STATE.values() for text in ([value] if isinstance(value, str) else value)]
    source = DigestSource(segments=segments, total=len(segments), levels=LEVELS, block_texts=texts)
    bare = layout_of(SESSION, STATE, served_as="pair", estimator="script")
    return with_digests(bare, source, max_tokens=room, later_digest_budget=None, served_as="pair")


def _telling(one: ServableSegment, brief: str) -> ServableSegment:
    return replace(one, texts=dict.fromkeys(one.texts, brief))


def test_what_state_and_anchors_say_already_is_served_as_its_marker() -> None:
    layout = digests_beside(SAID_ALREADY, NEW_VALUE)
    assert [one.level for one in layout.segments] == [None, "L2"]
    assert "900 euros" not in layout.digests
    assert "450 chairs" in layout.digests
    assert "[point 0 →L1:" in layout.digests, "its topic is told"


@pytest.mark.parametrize(
    ("brief", "level"),
    [
        (SAID_ALREADY, None),
        ("User: Marta pays 950 euros for the harbour crane on 12 June 2027.", "L2"),
        ("User: Marta pays 900 euros for the harbour crane on 12 June 2027. Okafor sings in the choir.", "L2"),
        ("User: ok.", None),
    ],
)
def test_another_value_or_one_sentence_more_is_told(brief: str, level: str | None) -> None:
    assert [one.level for one in digests_beside(brief).segments] == [level]


def test_together_they_are_a_small_part_of_the_block_unless_they_hold_values_of_their_own() -> None:
    plain = digests_beside(*[f"{NEW_WORDS[:-1]} with {name}." for name in TOPICS * 6])
    share = (plain.digest_tokens - MARKER_ELEMENT_TOKENS) / plain.tokens
    assert share <= BLOCK_SHARE
    exact = digests_beside(
        *[f"User: {name} {place} costs {place}73 euros." for place, name in enumerate(TOPICS * 6, 1)]
    )
    assert exact.digest_tokens / exact.tokens > 2 * BLOCK_SHARE
    assert exact.digest_tokens <= 2_000


def test_control_without_that_share_they_are_most_of_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest_selection, "BLOCK_SHARE", 0.9)
    plain = digests_beside(*[f"{NEW_WORDS[:-1]} with {name}." for name in TOPICS * 6])
    assert plain.digest_tokens / plain.tokens > 2 * BLOCK_SHARE


# --- recall

MIN_TRIGGER_SHARE = 0.70


@pytest.mark.parametrize("explicit", [True, False])
@pytest.mark.parametrize("count", [61, 90, 110, 125])
def test_what_is_recalled_never_lifts_a_context_over_its_lowest_trigger(count: int, *, explicit: bool) -> None:
    source = recalling(said(count), boundary=36, query=QUESTION if explicit else None)
    bare = put_together(replace(source, recall=None))
    found = put_together(source)
    trigger = int(MIN_TRIGGER_SHARE * source.budgets.budget)
    assert found.gauge.tokens < max(trigger, bare.gauge.tokens + 1)
    assert found.gauge.breakdown.recalled <= source.policy.recall_share * source.budgets.budget
    assert found.gauge.status == bare.gauge.status
    assert found.gauge.tokens_until_compaction == bare.gauge.tokens_until_compaction, "it counts towards none"


def test_control_with_a_budget_it_takes_what_the_rest_leaves() -> None:
    source = recalling(said(90), boundary=36)
    share = source.policy.recall_share * source.budgets.budget
    assert 0 < put_together(source).gauge.breakdown.recalled <= share
    assert put_together(source, source.budgets.budget).gauge.breakdown.recalled > 1.5 * share


def test_a_gauge_counts_what_is_recalled_and_no_trigger_does() -> None:
    policy = policy_of(context_window=4_000)
    budget = budgets(policy).budget
    below, recalled = int(MIN_TRIGGER_SHARE * budget) - 20, 40
    with_it = gauge_of(policy, budgets(policy), Breakdown(tail=below, recalled=recalled))
    assert (with_it.tokens, with_it.status, with_it.tokens_until_compaction) == (below + recalled, "ok", 20)
    without = gauge_of(policy, budgets(policy), Breakdown(tail=below + recalled))
    assert without.status == "background", "control"


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        ("The repair of the lantern was paid by Ferreira", "needed"),
        ("The repair of the lantern was paid by Ferreira: 340 euros", "covered"),
        ("Somebody sang", "needed"),
    ],
)
def test_an_entry_without_its_number_covers_no_question_for_it(served: str, expected: str) -> None:
    asked = "How much did the repair of the lantern cost?"
    texts = ["Hello there.", "The repair of the lantern took all day, 340 euros.", "Good.", asked]
    found = corpus([message(seq, text, policy=POLICY) for seq, text in enumerate(texts, start=1)])
    assert decide_recall(asked, question_of(asked, ()), found, served=[served], seqs=[4]) == expected


# --- days of held messages


def test_held_messages_have_their_days_in_the_block_and_system_messages_none() -> None:
    first, second, third = talk("I plan a trip.", "Noted.", "My passport is red.")
    later = replace(third, created_at=third.created_at + timedelta(days=40))
    rules = replace(second, role="system")
    layout = layout_of(SESSION, STATE, served_as="pair", estimator="script", held=[first, rules, later, later])
    bare = layout_of(SESSION, STATE, served_as="pair", estimator="script")
    assert layout.held_days.splitlines()[1:-1] == ["Mon 16 Nov 2026", "Sat 26 Dec 2026 ×2"]
    assert layout.tokens - layout.held_day_tokens == bare.tokens
    assert layout.state_tokens == bare.state_tokens, "they are no part of the state"
    (block, _) = block_messages(layout.text, served_as="pair", held_days=layout.held_days)
    assert block.content.endswith(f"{layout.held_days}\n</session_state>")
    assert layout_of(SESSION, STATE, served_as="pair", estimator="script", held=[rules]).held_days == ""


def test_what_follows_held_messages_has_the_day_on_which_it_begins() -> None:
    (first,) = talk("I plan a trip.")
    today = first.created_at.date()
    assert days_element([first], today + timedelta(days=96), "en").splitlines()[1:-1] == [
        "Mon 16 Nov 2026",
        "then, from Sat 20 Feb 2027 on, the newest messages",
    ]
    assert days_element([first], today, "en").splitlines()[1:-1] == ["Mon 16 Nov 2026"]


def test_what_is_served_of_them_weighs_what_the_gauge_says() -> None:
    policy = policy_of(context_window=4_000)
    replay = Replay.in_window(4_000)
    for number in range(40):
        replay.say("assistant" if number % 2 else "user", f"Crate {number} of the harbour weighs {number * 31} kilos.")
    replay.fold(EVERYTHING)
    assert replay.layout is not None
    assert replay.layout.held == (1,)
    assert "Mon 5 Jan 2026" in replay.layout.held_days
    assert replay.breakdown().held > sum(one.token_count for one in replay.held())
    assert policy.protect == ("turn_0",)

"""How likely a statement is an anchor, and what this changes in addition to the rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.anchors import detect as module
from app.core.anchors.detect import detect
from app.core.anchors.likelihood import (
    MIN_LIKELIHOOD,
    MIN_LIKELIHOOD_ALONE,
    MIN_LIKELIHOOD_BY_RULE,
    MIN_LIKELIHOOD_OF_CORRECTION,
    TYPES,
    WEIGHTS,
    features,
    likeliest_type,
    likelihoods,
    packed_weights,
    unpacked_weights,
    weights_by_speaker,
)
from app.core.anchors.statements import statements_of
from app.core.model.anchors import AnchorType
from bench.anchors.corpus import HERE, conversations
from tests.builders import message

PLAINEST = HERE / "training" / "plain.txt"
PLAIN = (
    "Hi there, me again about the flat.",
    "The landlord wants 1,450 euros a month and three months up front.",
    "Anyway, how are you today?",
)


def likely(**given_likelihoods: float) -> dict[AnchorType, float]:
    return {type_: given_likelihoods.get(type_, 0.0) for type_ in TYPES}


def found(text: str) -> list[tuple[str, str]]:
    return [(one.type, one.content) for one in detect(message(1, text))]


def test_what_is_told_plainly_is_found() -> None:
    assert found(" ".join(PLAIN)) == [("critical_fact", PLAIN[1])]


def test_control_by_rules_alone_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "likeliest_type", lambda _found, rule, _statements: rule)
    assert found(" ".join(PLAIN)) == []


@pytest.mark.parametrize(
    ("rule", "statements_", "given_likelihood", "expected"),
    [
        (None, 3, MIN_LIKELIHOOD, "decision"),
        (None, 3, MIN_LIKELIHOOD - 0.01, None),
        (None, 1, MIN_LIKELIHOOD_ALONE, "decision"),
        (None, 1, MIN_LIKELIHOOD_ALONE - 0.01, None),
        ("commitment", 1, 1.0, "commitment"),
        ("commitment", 2, MIN_LIKELIHOOD - 0.01, None),
        ("commitment", 2, 1.0, "decision"),
    ],
)
def test_a_rule_decides_on_a_message_of_one_statement_and_likelihood_on_all_others(
    rule: AnchorType | None, statements_: int, given_likelihood: float, expected: str | None
) -> None:
    assert likeliest_type(likely(decision=given_likelihood), rule, statements_) == expected


@pytest.mark.parametrize(
    ("type_", "least"), [("commitment", MIN_LIKELIHOOD_BY_RULE), ("correction", MIN_LIKELIHOOD_OF_CORRECTION)]
)
def test_what_a_rule_finds_needs_less(type_: AnchorType, least: float) -> None:
    assert likeliest_type(likely(decision=MIN_LIKELIHOOD - 0.01, **{type_: least}), type_, 5) == type_
    assert likeliest_type(likely(decision=MIN_LIKELIHOOD - 0.01, **{type_: least - 0.01}), type_, 5) is None


def test_lines_of_a_message_are_statements_unless_it_was_wrapped_by_hand() -> None:
    first = "the boiler in the small flat above the shop is from 2014 and leaks again now"
    second = "my sister comes by with the keys on thursday evening at nine for all of us"
    third = "the landlord says that nobody can have a look at it before the end of march"
    assert [one.text for one in statements_of(message(1, f"{first}\n{second}"))] == [first, second]
    wrapped = f"{first}\n{second}\n{third}"
    assert [one.text for one in statements_of(message(1, wrapped))] == [wrapped]
    indented = f"{first}\n  {second}"
    assert [one.text for one in statements_of(message(1, indented))] == [indented]


def test_weights_of_one_speaker_are_added_to_those_of_both() -> None:
    weights = weights_by_speaker(
        {"s cat": [1, 2, 3, 4, 5], "user s cat": [10, 0, 0, 0, 0], "assistant q": [7, 7, 7, 7, 7]}
    )
    rows = {who: {name: unpacked_weights(one) for name, one in own.items()} for who, own in weights.items()}
    assert rows["user"] == {"s cat": [11, 2, 3, 4, 5]}
    assert rows["assistant"] == {"s cat": [1, 2, 3, 4, 5], "q": [7, 7, 7, 7, 7]}


@given(st.lists(st.lists(st.integers(-999, 999), min_size=len(TYPES), max_size=len(TYPES)), max_size=40))
def test_packed_weights_add_up_like_those_they_are_made_of(rows: list[list[int]]) -> None:
    assert unpacked_weights(sum(map(packed_weights, rows))) == [
        sum(column) for column in zip(*rows, [0] * len(TYPES), strict=True)
    ]
    assert len(WEIGHTS["user"]) > 1_000


@given(st.text(max_size=400), st.sampled_from(("user", "assistant")))
def test_any_text_has_likelihoods_that_add_up_to_one_at_most(text: str, role: str) -> None:
    said = statements_of(message(1, text, "user"))
    for number in range(len(said)):
        shares = likelihoods(features(said, number, 1, None), WEIGHTS["user" if role == "user" else "assistant"])
        assert set(shares) == set(TYPES)
        assert all(0 <= share <= 1 for share in shares.values())
        assert sum(shares.values()) <= 1 + 1e-9


def test_the_conversations_that_it_is_fitted_on_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text(
        "# en-z1-boiler\nu\tf\tThe boiler is from 2014.\np\tn\tTO WHOM IT MAY CONCERN\n"
        "a\tn\tThat is old.\n+\tc\tI will look.\n"
    )
    rows = [(one.seq, one.index, one.role, one.pasted, one.label) for one in conversations(tmp_path / "one.txt")]
    assert rows == [
        (1, 0, "user", False, "critical_fact"),
        (1, 1, "user", True, "none"),
        (2, 0, "assistant", False, "none"),
        (2, 1, "assistant", False, "commitment"),
    ]
    every = [one for path in (HERE / "training").glob("*.txt") for one in conversations(path)]
    assert len({one.conversation for one in every}) == 384 + len(conversations(PLAINEST))


@pytest.mark.parametrize("line", ["u\tf", "x\tf\ttext", "u\tz\ttext"])
def test_a_line_without_role_label_and_text_is_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text(f"# en-z1-boiler\n{line}\n")
    with pytest.raises(ValueError, match=r"one\.txt"):
        conversations(tmp_path / "one.txt")


def test_of_nothing_that_is_known_each_type_is_as_likely() -> None:
    assert list(likelihoods([], WEIGHTS["user"]).values()) == pytest.approx([1 / (1 + len(TYPES))] * len(TYPES))

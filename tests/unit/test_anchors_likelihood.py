"""How likely a statement is an anchor, and what becomes of that beside the rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.anchors import detect as module
from app.core.anchors.detect import detect
from app.core.anchors.likelihood import (
    LEAST,
    RULED,
    TYPES,
    WEIGHTS,
    decided,
    features,
    likelihoods,
    of_speakers,
)
from app.core.anchors.statements import statements
from app.core.model.anchors import AnchorType
from bench.anchors.corpus import HERE, conversations
from tests.builders import message

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
    monkeypatch.setattr(module, "likeliest", lambda _said, _number, _speaker, rule: rule)
    assert found(" ".join(PLAIN)) == []


@pytest.mark.parametrize(
    ("rule", "statements_", "given_likelihood", "expected"),
    [
        (None, 3, LEAST, "decision"),
        (None, 3, LEAST - 0.01, None),
        (None, 1, 1.0, None),
        ("commitment", 1, 0.0, "commitment"),
        ("commitment", 2, 0.0, "commitment"),
        ("commitment", 3, 0.0, None),
        (None, 2, 1.0, "decision"),
    ],
)
def test_rules_decide_short_messages_and_likelihood_longer_ones(
    rule: AnchorType | None, statements_: int, given_likelihood: float, expected: str | None
) -> None:
    assert decided(likely(decision=given_likelihood), rule, statements_) == expected


def test_what_a_rule_finds_needs_less() -> None:
    assert decided(likely(decision=0.5, commitment=RULED), "commitment", 5) == "commitment"
    assert decided(likely(decision=0.5, commitment=RULED - 0.01), "commitment", 5) is None


def test_weights_of_one_speaker_are_added_to_those_of_both() -> None:
    weights = of_speakers({"s cat": [1, 2, 3, 4, 5], "user s cat": [10, 0, 0, 0, 0], "assistant q": [7, 7, 7, 7, 7]})
    assert weights["user"] == {"s cat": [11, 2, 3, 4, 5]}
    assert weights["assistant"] == {"s cat": [1, 2, 3, 4, 5], "q": [7, 7, 7, 7, 7]}


def test_every_weight_has_a_column_for_each_type() -> None:
    assert all(len(row) == len(TYPES) for weights in WEIGHTS.values() for row in weights.values())
    assert len(WEIGHTS["user"]) > 1_000


@given(st.text(max_size=400), st.sampled_from(("user", "assistant")))
def test_any_text_has_likelihoods_that_add_up_to_one_at_most(text: str, role: str) -> None:
    said = statements(message(1, text, "user"))
    for number in range(len(said)):
        shares = likelihoods(features(said, number, None), "user" if role == "user" else "assistant")
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
    assert len({one.conversation for one in every}) == 128


@pytest.mark.parametrize("line", ["u\tf", "x\tf\ttext", "u\tz\ttext"])
def test_a_line_without_role_label_and_text_is_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text(f"# en-z1-boiler\n{line}\n")
    with pytest.raises(ValueError, match=r"one\.txt"):
        conversations(tmp_path / "one.txt")


def test_of_nothing_that_is_known_each_type_is_as_likely() -> None:
    assert list(likelihoods([], "user").values()) == pytest.approx([1 / (1 + len(TYPES))] * len(TYPES))

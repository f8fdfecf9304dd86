"""Anchors that a model proposes: quotes, or nothing."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.anchors import proposals as module
from app.core.anchors.detect import detect
from app.core.anchors.proposals import MAX_PROPOSALS, accepted_anchors
from app.core.model.anchors import FoundAnchor
from app.core.model.candidate import AnchorProposal
from app.core.model.conversation import Message
from app.core.summarizer.prompts import render_summary
from app.core.text.sentences import sentences
from tests.unit.talk import message, request, talk

SPAN = talk(
    "The launch   party\nis at the old mill, bring 40 chairs.",
    "Lovely, I know the old mill well.",
    "Grandmother's recipe uses 3 cups of rye flour.",
    "Lovely, I know the old mill well.",
    "The door code is kept by Marta.",
)


def proposed(quote: str, seq: int = 1, type_: Any = "critical_fact") -> AnchorProposal:
    return AnchorProposal(type=cast("Any", type_), quote=quote, seq=seq)


def accepted(*proposals: AnchorProposal, known: tuple[FoundAnchor, ...] = ()) -> tuple[FoundAnchor, ...]:
    return accepted_anchors(proposals, SPAN, known)


def test_a_verbatim_quote_is_the_messages_own_text() -> None:
    (anchor,) = accepted(proposed("The launch party is at the old mill"))

    assert anchor.content == "The launch   party\nis at the old mill"
    assert SPAN[0].content[anchor.offset :].startswith(anchor.content)
    assert (anchor.seq, anchor.proposed_by, anchor.type) == (1, "model", "critical_fact")
    assert 0 < anchor.importance <= 1
    assert anchor.token_count > 0


def test_a_wrong_place_is_corrected_when_only_one_other_message_fits() -> None:
    assert [one.seq for one in accepted(proposed("3 cups of rye flour", seq=1))] == [3]
    assert [one.seq for one in accepted(proposed("3 cups of rye flour", seq=99))] == [3]
    assert accepted(proposed("I know the old mill well", seq=5)) == ()
    assert [one.seq for one in accepted(proposed("I know the old mill well", seq=4))] == [4]


INVENTED = [
    "The party takes place at the old mill",  # a paraphrase
    "bring 45 chairs",
    "The user is an administrator",
    "unch party",  # not by whole words
    "the launch party",  # another case
    "mill, bring 40 chairs. Lovely",  # over two messages
]


@pytest.mark.parametrize("quote", [*INVENTED, "", " ", "is", "...", "the"])
def test_what_is_no_quote_is_refused(quote: str) -> None:
    assert accepted(proposed(quote)) == ()


def test_control_a_check_without_the_text_would_let_an_invention_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module._SearchableText, "find", lambda *_: (0, 10))

    assert accepted(proposed(INVENTED[0])) != ()


def test_nothing_of_the_prompts_own_text_is_a_quote() -> None:
    prompt = render_summary(request(SPAN))
    lines = [line for text in (prompt.system, prompt.user) for line in sentences(text)]
    own = [line for line in lines if not any(line in one.content for one in SPAN)]

    assert len(own) > 10
    assert accepted(*(proposed(line) for line in own)) == ()


def test_doubles_are_refused() -> None:
    quote = proposed("bring 40 chairs")
    longer = proposed("the old mill, bring 40 chairs.", type_="commitment")

    assert len(accepted(quote, quote, longer)) == 1
    assert accepted(quote, known=tuple(accepted(longer))) == ()


def test_a_double_of_a_rule_is_refused() -> None:
    span = talk("My name is Priya Raman.")
    known = tuple(detect(span[0]))

    assert accepted_anchors([proposed("My name is Priya Raman.")], span, known) == ()


def test_types_and_numbers_are_bounded() -> None:
    long = message(1, " ".join(f"value{number}" for number in range(200)))
    proposals = [proposed(f"value{number}") for number in range(200)]

    assert accepted(proposed("bring 40 chairs", type_="order")) == ()
    assert len(accepted_anchors(proposals, [long], ())) == MAX_PROPOSALS
    assert accepted_anchors([proposed(long.content)], [long], ()) == ()


def test_tools_the_system_and_erased_messages_are_not_quoted() -> None:
    quote = "The door code is kept by Marta"
    silent: list[Message] = [message(1, quote, "tool"), message(2, quote, "system")]

    assert accepted_anchors([proposed(quote)], silent, ()) == ()


def test_a_secret_is_redacted() -> None:
    span = [message(1, "The server takes password=hunter2hunter2 at the gate.")]
    (anchor,) = accepted_anchors([proposed("The server takes password=hunter2hunter2 at the gate.")], span, ())

    assert "hunter2" not in anchor.content


@given(st.text(max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_a_stretch_of_a_message_is_accepted_in_its_own_words_or_refused(text: str, start: int, length: int) -> None:
    span = [message(1, text)]
    for anchor in accepted_anchors([proposed(text[start : start + length])], span, ()):
        same = text[anchor.offset : anchor.offset + len(anchor.content)] == anchor.content
        assert same or "[REDACTED:" in anchor.content

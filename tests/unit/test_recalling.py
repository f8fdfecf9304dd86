"""What recall requests from the database: which words, and how many messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

import pytest

from app.core.model.conversation import Sums
from app.core.retrieval import corpus as corpus_module
from app.core.retrieval.corpus import Source
from app.core.retrieval.question_completion import completed_question
from app.core.text.memo import forget
from app.core.text.words import stem
from app.storage.repositories.message_search import FoundMessages
from app.usecases.context.recalling import (
    BEFORE_CHARACTERS,
    CANDIDATES,
    MAX_CANDIDATES,
    RELATED,
    RecallRequest,
    cached_corpus_of,
    candidate_limit,
    corpus_of,
    limit_for_places,
    search_stems,
    texts_before_question,
)
from bench.ranking import choose
from tests.builders import material, message, policy_of

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
TEXTS = (
    "We painted the boat red.",
    "How long did the boat take?",
    "A week, and Ferreira helped.",
    "The red lantern is broken again.",
    "Ferreira repairs lanterns in the harbour.",
)
TALK, OTHER = UUID(int=1), UUID(int=2)


def read(*texts: str) -> FoundMessages:
    """The result of reading a conversation of these texts, made anew each time."""
    sources = [
        Source(seq=seq, role="user", text=" ".join(text.split()), at=NOON + timedelta(minutes=seq), tokens=8)
        for seq, text in enumerate(texts, start=1)
    ]
    return FoundMessages(sources=sources, documents={}, total=len(sources))


def test_the_questions_own_words_are_sought_first_then_those_that_mean_the_same() -> None:
    stems = search_stems("When did she repair the bicycle?")

    assert stems[:2] == [stem("repair"), stem("bicycle")]
    assert {stem("fix"), stem("bike")} <= set(stems[2:])
    assert len(stems) == len(set(stems))


def test_a_long_question_brings_no_more_of_them_than_that() -> None:
    question = "buy repair bicycle photo movie doctor decide mother father trip start finish shop happy sad tired"

    assert len(search_stems(question)) == len(question.split()) + RELATED
    assert search_stems("zyxwvu") == ["zyxwvu"], "control: a word that means the same as none"
    assert search_stems("") == []


@pytest.mark.parametrize(("places", "looked_at"), [(0, CANDIDATES), (200, 600), (300, 900), (1e9, MAX_CANDIDATES)])
def test_the_more_there_is_room_for_the_more_are_looked_at(places: float, looked_at: int) -> None:
    assert limit_for_places(places) == looked_at


def test_a_query_looks_at_as_many_as_its_budget_holds_and_without_one_at_as_many_as_its_share_does() -> None:
    given = material([message(1, "A word.")], policy=policy_of(context_window=80_000))
    total = Sums(messages=9_000, tokens=180_000)
    talk = replace(given, conversation=replace(given.conversation, total=total))
    query, in_turn = RecallRequest(query="Which word?"), RecallRequest(in_turn=True)
    looked_at = partial(candidate_limit, talk)

    assert looked_at(query, 1_000) == CANDIDATES, "control: few have room"
    assert looked_at(query, 1_000_000) == MAX_CANDIDATES
    assert CANDIDATES < looked_at(query, None) == looked_at(in_turn, None) < MAX_CANDIDATES


def test_a_conversation_that_did_not_change_is_taken_apart_once_and_answers_each_question_as_if_it_were_new() -> None:
    forget()
    known = cached_corpus_of(read(*TEXTS), TALK)
    for asked in ("Who repairs the lantern?", "What colour is the boat?", "How long did Ferreira help?"):
        again, new = cached_corpus_of(read(*TEXTS), TALK), corpus_of(read(*TEXTS))
        assert again is known
        assert choose(again, completed_question(asked, again), room=60) == choose(
            new, completed_question(asked, new), room=60
        )


@pytest.mark.parametrize("singly", [3, 10_000])
def test_one_that_grows_is_taken_apart_as_if_it_were_new(singly: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_module, "_SINGLY", singly)
    forget()
    texts = [*TEXTS, "First the boat. " * 60, *TEXTS[::-1], "And the red boat again?", *TEXTS]
    changes: list[Callable[[Source], Source]] = [
        lambda one: one._replace(at=one.at + (one.seq > 7) * timedelta(hours=4)),
        lambda one: one._replace(seq=one.seq + (one.seq > 4)),
    ]
    for later in changes:
        for count in (12, 13, 1, 2, 3, 5, 6, 7, len(texts), 9, 10):
            sources = [one._replace(tokens=len(one.text) // 4) for one in read(*texts[:count]).sources]
            assert_as_new([later(one) for one in sources])


def assert_as_new(sources: Sequence[Source]) -> None:
    """Insist that the corpus known of the talk equals one that is made without it."""
    found = FoundMessages(sources=list(sources), documents={}, total=len(sources))
    known, new = cached_corpus_of(found, TALK), corpus_of(found)
    stems = sorted(new.postings.holding)[len(sources) % 3 :: 3]
    assert known.postings.holding == new.postings.holding
    assert [known.postings.get(stem) for stem in stems] == [new.postings.get(stem) for stem in stems]
    assert (known.rarities, known.sittings) == (new.rarities, new.sittings)
    assert list(known.echoes) == list(new.echoes)
    for asked in ("Who repairs the lantern?", f"Which boat is number {len(sources)}?"):
        assert choose(known, completed_question(asked, known), room=60) == choose(
            new, completed_question(asked, new), room=60
        )


def test_one_that_changed_is_taken_apart_anew() -> None:
    known = cached_corpus_of(read(*TEXTS), TALK)
    changed = cached_corpus_of(read(*TEXTS[:2], "A month, and nobody helped.", *TEXTS[3:]), TALK)
    assert changed is not known
    assert not any("A week" in text for text in changed.texts)
    assert cached_corpus_of(read(*TEXTS), TALK) is not known, "control: it is not kept beside the new one"
    assert cached_corpus_of(read(*TEXTS[:-1]), TALK).sources == tuple(read(*TEXTS[:-1]).sources)
    assert cached_corpus_of(read(*TEXTS[1:]), OTHER).sources == tuple(read(*TEXTS[1:]).sources)


def test_what_is_chosen_from_a_longer_one_is_not_kept() -> None:
    forget()
    narrowed = replace(read(*TEXTS), documents={"boat": 400}, total=5_000)
    assert cached_corpus_of(narrowed, TALK) is not cached_corpus_of(narrowed, TALK)


def test_words_of_the_messages_before_are_sought_only_for_a_question_of_few_words() -> None:
    before = ("Which gym is on Cask Lane?", "The harbour.")

    assert search_stems("And a zyxwvu?", before) == ["zyxwvu", "gym", "cask", "lane", "harbour"]
    assert search_stems("Which zyxwvu has abcdef and ghijkl?", before) == ["zyxwvu", "abcdef", "ghijkl"]
    assert len(search_stems("And a zyxwvu?", [" ".join(f"word{place}" for place in range(99))])) == 1 + RELATED


def test_what_was_said_before_a_question_is_the_turn_before_it_whether_or_not_the_question_is_stored() -> None:
    turn = [
        message(1, "Old."),
        message(2, "Which gym?", role="user"),
        message(3, "Cask Lane.", role="assistant"),
    ]
    asking = message(4, "How much?", role="user")
    call = message(
        5, "Looking.", role="assistant", parts=[{"type": "tool_call", "id": "a", "name": "look", "arguments": {}}]
    )

    assert texts_before_question(turn, RecallRequest(query="How much?")) == ("Which gym?", "Cask Lane.")
    assert texts_before_question([*turn, asking], RecallRequest(query="How much?")) == ("Which gym?", "Cask Lane.")
    assert texts_before_question([*turn, asking, call], RecallRequest(in_turn=True)) == ("Which gym?", "Cask Lane.")
    assert texts_before_question([*turn, asking], RecallRequest(query="Which way?")) == ("Cask Lane.", "How much?")
    assert texts_before_question([], RecallRequest(query="How much?")) == ()
    assert texts_before_question([message(1, "x" * 9_999)], RecallRequest(query="?")) == ("x" * BEFORE_CHARACTERS,)

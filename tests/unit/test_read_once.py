"""Many readers use a chunk: findings in a sentence and the terms of a stretch are computed once for all of them."""

from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

from app.core.anchors import topics as about
from app.core.anchors import transitions
from app.core.model.conversation import Message
from app.core.model.policies import goals
from app.core.model.policies.resolving import resolve
from app.core.reading import cues
from app.core.reading.passages import passages_of
from app.core.segments import message_analysis, topics
from app.core.segments.message_analysis import Messages, analysis_of
from app.core.text import identifiers
from app.core.text import token_counts as tokens
from app.core.text.cue_patterns import CuePatterns
from app.core.text.memo import forget
from app.usecases.compaction.segmenting import cut_span, new_segments
from app.usecases.context import context
from bench.growth import talk
from tests.unit.test_anchors_transitions import anchors_of


class Counted:
    """A pattern or a cue that counts how many times it is used."""

    def __init__(self, one: Any) -> None:
        self.asked = 0
        self._one = one

    @property
    def mask(self) -> int:
        return int(self._one.mask)

    def search(self, text: str) -> re.Match[str] | None:
        self.asked += 1
        found: re.Match[str] | None = self._one.search(text)
        return found

    def matches(self, texts: Iterable[str], possible: int) -> bool:
        self.asked += 1
        return bool(self._one.matches(texts, possible))


@pytest.fixture(autouse=True)
def _forgetful() -> None:
    forget()


def test_a_sentence_is_searched_for_cues_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = {name: Counted(cue) for name, cue in cues.CUE_PATTERNS.items()}
    monkeypatch.setattr(cues, "CUE_PATTERNS", counted)
    messages = talk(60, seed=11)
    first = [passage.cues for passage in passages_of(messages, "en")]
    asked = [one.asked for one in counted.values()]
    assert [passage.cues for passage in analysis_of(messages, "en").passages] == first
    assert sum(asked) > 0
    assert [one.asked for one in counted.values()] == asked


def test_a_sentence_is_searched_for_exact_values_once_and_a_document_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scanned: list[str] = []
    scan = identifiers._scan

    def counted(text: str) -> Iterator[identifiers.Identifier]:
        scanned.append(text)
        return scan(text)

    monkeypatch.setattr(identifiers, "_scan", counted)
    sentence, document = "Order ORD-4417 goes to Lena Okafor.", "Order ORD-4417 goes to Lena Okafor. " * 15_000
    found = [identifiers.find_identifiers(sentence) for _ in range(3)]
    assert found[0] == found[1] == found[2] != ()
    assert identifiers.find_identifiers(document) == identifiers.find_identifiers(document)
    assert scanned == [sentence, document, document]


async def test_a_stretch_is_searched_for_terms_once_for_its_topic_and_all_its_levels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []
    build = topics.Terms

    def counted(*given: Any) -> Any:
        made.append(given)
        return build(*given)

    monkeypatch.setattr(message_analysis, "Terms", counted)
    span, policy = talk(40, seed=12), resolve("semantic", {})
    cuts = cut_span(span, policy.segment_by, from_seq=1, to_seq=40)
    told = await new_segments(cuts, span, policy, digests=(), model="offline", locale="en", now=span[-1].created_at)
    assert all({"L1", "L2", "L3"} == set(one.levels) for one in told)
    assert len(made) == len(cuts)


def test_a_pattern_is_tried_only_where_a_piece_that_it_needs_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """The findings are the same as those of all patterns."""
    said = [passage.text for passage in passages_of(talk(200, seed=13), "en")]
    plain = [frozenset(name for name, cue in cues.CUE_PATTERNS.items() if cue.pattern.search(one)) for one in said]
    counted: list[Counted] = []
    for cue in cues.CUE_PATTERNS.values():
        parts = {bit: Counted(pattern) for bit, pattern in cue._parts.items()}
        monkeypatch.setattr(cue, "_parts", parts)
        counted += parts.values()
    assert [cues.cues_of(one) for one in said] == plain
    assert sum(one.asked for one in counted) < len(set(said)) * len(cues.CUE_PATTERNS) / 3


def test_a_goal_is_looked_for_only_where_a_piece_of_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    patterns = goals._GOALS.patterns
    counted = {bit: Counted(pattern) for bit, pattern in patterns.items()}
    monkeypatch.setattr(goals._GOALS, "patterns", counted)
    said = [message.content for message in talk(100, seed=14)]
    plain = [any(pattern.search(one) for pattern in patterns.values()) for one in said]
    assert [goals.states_goal(one) for one in said] == plain
    assert sum(one.asked for one in counted.values()) < 100 * len(counted) / 10


def test_what_an_anchor_gives_up_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read_texts: list[str] = []

    def places(cue: CuePatterns, text: str, possible_cues: int) -> Iterator[re.Match[str]]:
        if cue is about._GIVEN_UP_CUE:
            read_texts.append(text)
        return usual(cue, text, possible_cues)

    usual = CuePatterns.places
    monkeypatch.setattr(CuePatterns, "places", places)
    messages = talk(120, seed=15)
    found = anchors_of(messages)
    assert transitions.transitions((), found, messages) != []
    assert len(read_texts) == len(set(read_texts)) > 0


def test_a_line_and_a_block_are_weighed_once_and_a_book_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed: list[str] = []
    weight = tokens._hundredths_behind_blank

    def counted(word: str) -> int:
        weighed.append(word)
        return weight(word)

    monkeypatch.setattr(tokens, "_hundredths_behind_blank", counted)
    line, block, book = ("A crate of №17 came. " * times for times in (3, 300, 120_000))
    for text, times in ((line, 1), (block, 1), (book, 2)):
        weighed.clear()
        assert tokens.estimate_text(text) == tokens.estimate_text(text) > 0
        assert len(weighed) == times * text.count(" ")


def test_a_digest_is_made_once_and_its_messages_are_let_go_of_with_all_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def digest(messages: Sequence[Message], most: int, locale: str) -> str:
        made.append(len(messages))
        return f"{len(messages)} in {most} tokens, {locale}"

    monkeypatch.setattr(context, "extractive_digest", digest)
    spans = [Messages("a", talk(4, seed=5)) for _ in range(3)]
    assert {context._digest_without_secrets(span, 50, "en") for span in spans} == {"4 in 50 tokens, en"}
    assert made == [4]
    held = weakref.ref(spans[0])
    del spans
    forget()
    gc.collect()
    assert held() is None

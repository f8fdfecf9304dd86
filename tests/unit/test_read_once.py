"""A chunk is read by many: what is found in a sentence, and the terms of a stretch, are found once for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from app.domain.extraction import cues
from app.domain.extraction.passages import passages_of
from app.domain.policies.presets import resolve
from app.domain.segments import topics
from app.domain.segments.reading import read
from app.domain.words import identifiers
from app.services.segmenting import cut_span, told_segments
from bench.growth import talk


class Counted:
    """A pattern that counts how often it is asked."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.asked = 0
        self._pattern = pattern

    def search(self, text: str) -> re.Match[str] | None:
        self.asked += 1
        return self._pattern.search(text)


@pytest.fixture(autouse=True)
def _forgetful() -> None:
    cues.cues_of.cache_clear()
    identifiers._scanned.cache_clear()
    topics._terms.cache_clear()


def test_a_sentence_is_searched_for_cues_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = {name: Counted(pattern) for name, pattern in cues.PATTERNS.items()}
    monkeypatch.setattr(cues, "PATTERNS", counted)
    messages = talk(60, seed=11)
    first = [passage.cues for passage in passages_of(messages, "en")]
    asked = [one.asked for one in counted.values()]
    assert [passage.cues for passage in read(messages, "en")] == first
    assert len(set(asked)) == 1
    assert [one.asked for one in counted.values()] == asked


def test_a_sentence_is_searched_for_exact_values_once_and_a_document_is_not_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scanned: list[str] = []
    scan = identifiers._scan

    def counted(text: str) -> Iterator[identifiers.Identifier]:
        scanned.append(text)
        return scan(text)

    monkeypatch.setattr(identifiers, "_scan", counted)
    sentence, document = "Order ORD-4417 goes to Lena Okafor.", "Order ORD-4417 goes to Lena Okafor. " * 40
    found = [identifiers.find_identifiers(sentence) for _ in range(3)]
    assert found[0] == found[1] == found[2] != []
    found[0].clear()  # a caller's own list
    assert identifiers.find_identifiers(sentence) == found[1]
    assert identifiers.find_identifiers(document) == identifiers.find_identifiers(document)
    assert scanned == [sentence, document, document]


async def test_a_stretch_is_searched_for_terms_once_for_its_topic_and_all_its_levels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []
    build = topics._Terms

    def counted(*given: Any) -> Any:
        made.append(given)
        return build(*given)

    monkeypatch.setattr(topics, "_Terms", counted)
    span, policy = talk(40, seed=12), resolve("semantic", {})
    cuts = cut_span(span, policy.segment_by, from_seq=1, to_seq=40)
    told = await told_segments(cuts, span, policy, digests=(), model="offline", locale="en", now=span[-1].created_at)
    assert all({"L1", "L2", "L3"} == set(one.levels) for one in told)
    assert len(made) == len(cuts)

"""What a summarizer is asked about stretches, and how its notes about them are read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from app.core.model.model_io import SummaryRequest
from app.core.model.schemas import SESSION
from app.core.model.segments import CutSegment, SegmentDigest
from app.core.summarizer.candidate import candidate_json_schema, parse_candidate
from app.core.summarizer.prompts import render_summary
from app.core.summarizer.segment_prompts import MAX_DESCRIBED_SEGMENTS, MIN_SEGMENT_TOKENS
from app.core.text.token_counts import estimate_text
from tests.unit.talk import START, answer, request, talk

ENGLISH = talk("We are moving the shop to Basel in May, and the lease costs 2400 francs.", "Then let us plan the move.")
RUSSIAN = talk("Мы решили переехать в Казань, бюджет на переезд 120 тысяч рублей.", "Понял, начнём с района.")
CHINESE = talk("我们打算六月去北京旅行,预算是八千元。", "好的,我先帮你们看看火车票。")


def cut(from_seq: int, to_seq: int, tokens: int = MIN_SEGMENT_TOKENS, topic: str = "secret words") -> CutSegment:
    return CutSegment(
        from_seq=from_seq,
        to_seq=to_seq,
        topic=topic,
        started_at=START,
        ended_at=START,
        messages=to_seq - from_seq + 1,
        tokens=tokens,
    )


def asking(*cuts: CutSegment) -> SummaryRequest:
    return request(ENGLISH, segments=cuts)


def test_without_stretches_nothing_of_them_is_asked() -> None:
    plain = render_summary(request(ENGLISH))
    assert plain == render_summary(asking(cut(1, 2, MIN_SEGMENT_TOKENS - 1)))
    assert "stretch" not in plain.system + plain.user
    assert "segments" not in plain.json_schema["properties"]


def test_numbered_stretches_stand_with_their_ranges_behind_the_messages() -> None:
    asked = render_summary(asking(cut(1, 1), cut(2, 2, 3), cut(3, 9)))
    behind = asked.user.partition("</messages>")[2]
    assert "1: messages 1 to 1\n3: messages 3 to 9\n" in behind
    assert "2: messages" not in behind
    assert '"segments"' in asked.system
    assert "only from its own messages" in asked.system


def test_the_topics_that_code_found_are_not_told() -> None:
    """The topics consist of words that a provider may block, even if the message with them is withheld."""
    asked = render_summary(asking(cut(1, 2)))
    assert "secret words" not in asked.system + asked.user


def test_the_shape_asks_for_all_fields_of_every_note() -> None:
    shape = render_summary(asking(cut(1, 2))).json_schema
    item = shape["properties"]["segments"]["items"]
    assert set(item["required"]) == set(item["properties"]) == {"segment", "topic", "brief", "tags"}
    assert "segments" in shape["required"]
    assert shape == candidate_json_schema(SESSION, segments=True)


@pytest.mark.parametrize(
    ("messages", "size"), [(ENGLISH, "45 words"), (RUSSIAN, "30 words"), (CHINESE, "90 characters")]
)
def test_a_brief_is_sized_in_what_the_conversation_is_written_in(messages: Any, size: str) -> None:
    assert f"at most {size}" in render_summary(request(messages, segments=(cut(1, 2),))).system


def test_what_is_asked_about_stretches_stays_small_however_many_there_are() -> None:
    one, many = asking(cut(1, 2)), asking(*[cut(seq, seq) for seq in range(1, 2_001)])
    plain = render_summary(request(ENGLISH))
    assert estimate_text(render_summary(one).system) - estimate_text(plain.system) < 250
    grown = estimate_text(render_summary(many).user) - estimate_text(plain.user)
    assert grown < 25 * MAX_DESCRIBED_SEGMENTS
    assert f"{2_000}: messages 2000 to 2000" in render_summary(many).user
    assert f"{2_000 - MAX_DESCRIBED_SEGMENTS}: messages" not in render_summary(many).user


def read(segments: Any) -> tuple[SegmentDigest, ...]:
    told = json.loads(answer("They are moving to Basel."))
    return parse_candidate(json.dumps({**told, "segments": segments}), SESSION).digests


NOTE = SegmentDigest(number=1, topic="The move", brief="They move in May.", tags=("Basel", "May"))


@pytest.mark.parametrize(
    "given",
    [
        [{"segment": 1, "topic": "The move", "brief": "They move in May.", "tags": ["Basel", "May"]}],
        [{"segment": "#1", "topic": " The  move ", "brief": ["They move", "in May."], "tags": "Basel, May"}],
        {"segment": 1.0, "topic": "- The move", "brief": "They move\nin May.", "tags": ["Basel", "May", "Basel", ""]},
        {"1": {"topic": "The move", "brief": "They move in May.", "tags": ["Basel", "May"], "more": 1}},
        [{"segment": 1, "topic": "The move", "brief": "They move in May.", "tags": ["Basel", "May"]}, {"segment": 1}],
    ],
)
def test_notes_are_read_tolerantly(given: Any) -> None:
    if isinstance(given, dict) and "segment" in given:
        given = [given]
    assert read(given) == (NOTE,)


def test_a_note_may_lack_anything_but_its_number() -> None:
    assert read([{"segment": 2}, {"topic": "nothing"}]) == (SegmentDigest(number=2),)
    assert read([{"segment": 1, "topic": "The move", "brief": {"a": 1}, "tags": [["Basel"], {"b": 2}, "May"]}]) == (
        replace(NOTE, brief="", tags=("Basel", "May")),
    )


def test_without_the_key_there_are_no_notes() -> None:
    assert parse_candidate(answer("They are moving to Basel."), SESSION).digests == ()

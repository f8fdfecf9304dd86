"""Words that only the tags of a segment say: which segments they lead to, and what recall finds by them."""

from __future__ import annotations

from dataclasses import replace

from app.core.model.segments import Segment, SegmentLevel
from app.core.retrieval.choose import choose
from app.core.retrieval.corpus import Corpus, Source
from app.core.retrieval.question import question_of
from app.core.retrieval.tags import MOST, by_seq, tagged
from tests.builders import CONVERSATION, START


def source(seq: int, text: str) -> Source:
    return Source(seq=seq, role="user", text=text, at=START, tokens=12)


def segment(number: int, tags: str) -> Segment:
    level = SegmentLevel(level="L3", text=tags, tokens=3, made_by="a model", content_hash="0", created_at=START)
    first = 10 * number + 1
    return Segment(
        id=f"part_{number}",
        conversation_id=CONVERSATION,
        from_seq=first,
        to_seq=first + 9,
        topic="talk",
        started_at=START,
        ended_at=START,
        messages=10,
        tokens=100,
        levels={"L3": level},
        created_at=START,
    )


SAID = [source(seq, f"We log in at the gate number {seq} with a badge.") for seq in range(1, 41)]


def test_a_word_that_no_message_says_leads_to_the_segments_whose_tags_do() -> None:
    wanted = question_of("What about authentication at the gate?", ()).stems
    segments = [segment(0, "gate"), segment(1, "authentication, badge"), segment(2, "lunch")]

    found = tagged(segments, wanted, SAID, known={})

    assert [one.id for one, _ in found] == ["part_1"]
    asked = question_of("Authentication?", ())
    assert choose(Corpus(SAID), asked, room=400) == ()
    recalled = choose(Corpus(SAID, tags=by_seq(found)), asked, room=400)
    assert recalled
    assert recalled[0].source.seq in range(11, 21)


def test_what_a_message_says_needs_no_tags_and_a_question_says_nothing() -> None:
    wanted = question_of("authentication", ()).stems
    segments = [segment(1, "authentication")]
    asked = source(41, "What about authentication?")

    assert tagged(segments, wanted, [*SAID, asked], known={})
    assert tagged(segments, wanted, [*SAID, asked], known=dict.fromkeys(wanted, 1))
    assert not tagged(segments, wanted, [*SAID, replace(asked, text="Authentication is done.")], known={})
    assert not tagged(segments, wanted, SAID, known=dict.fromkeys(wanted, 1)), "a message that was not read says it"


def test_a_tag_of_many_segments_leads_nowhere_and_two_words_lead_further() -> None:
    wanted = question_of("authentication ornithology", ()).stems
    many = [segment(number, "authentication") for number in range(MOST + 1)]

    assert tagged(many, wanted, SAID, known={}) == []
    both = segment(9, "authentication, ornithology")
    assert [one.id for one, _ in tagged([*many, both], wanted, SAID, known={})] == ["part_9"]

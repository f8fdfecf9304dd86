"""The bench's talks in bursts are deterministic, leave nothing out, and have the evidence where the answer is."""

from __future__ import annotations

from bench.recall_talks import Talk, TalkQuestion
from bench.recall_texting import texted

TALK = Talk(
    id="made",
    messages=(
        {"role": "user", "content": "Ann: Hello there! I can't wait. The greenhouse moved behind the barn."},
        {"role": "assistant", "content": "Bob: Great."},
        *({"role": "user", "content": "Ann: Something about wonderful birthday people."} for _ in range(60)),
    ),
    questions=(
        TalkQuestion(text="Where is the greenhouse?", evidence=(1,), category="single hop", answer="behind the barn"),
    ),
)


def test_each_sentence_is_a_message_of_its_speaker_in_lower_case() -> None:
    said = [message["content"] for message in texted(TALK).messages]

    assert len(said) == 3 + 1 + 60
    assert all(text.startswith("Ann: ") for text in (*said[:3], *said[4:]))
    assert said[3].startswith("Bob: ")
    assert all(text[5:] == text[5:].lower() for text in said)
    assert "'" not in "".join(said)


def test_the_evidence_is_the_sentence_that_holds_the_answer() -> None:
    assert texted(TALK).questions[0].evidence == (3,)


def test_the_same_talk_is_texted_the_same_way_and_words_are_misspelt_in_many() -> None:
    said = [message["content"] for message in texted(TALK).messages]

    assert said == [message["content"] for message in texted(TALK).messages]
    assert len(set(said[4:])) > 20

"""Who is who if messages do not begin with names, and whose messages answer then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.core.retrieval import rendering
from app.core.retrieval.corpus import Corpus, Source, words_of
from app.core.retrieval.features import features
from app.core.retrieval.question import Question
from app.core.retrieval.question_completion import completed_question, nicknames_in
from app.core.retrieval.weights import WEIGHTS
from app.core.text.token_counts import weigh
from bench.ranking import choose, scores
from bench.recall_talks import Talk, nameless, talk_of
from bench.recall_talks import corpus_of as corpus_of_talk
from tests.corpus import assert_values, corpus
from tests.talks import locomo, made_talk

TALKS = [
    pytest.param(talk_of(made_talk("texting_en")), id="made"),
    *(pytest.param(talk_of(row), marks=pytest.mark.long, id=row["id"]) for row in locomo()),
]

DAY = datetime(2025, 5, 8, 10, tzinfo=UTC)


def corpus_of(*said: tuple[str, str]) -> Corpus:
    return Corpus(
        [
            Source(
                seq=seq,
                role={"u": "user", "a": "assistant", "t": "tool"}[role],
                text=text,
                at=DAY + seq * timedelta(minutes=1),
                tokens=weigh("user", text).tokens,
            )
            for seq, (role, text) in enumerate(said, start=1)
        ]
    )


def test_who_is_called_so_is_known_and_somebody_else_is_nobody_who_speaks() -> None:
    assert_values(corpus("recall_called"), lambda text: nicknames_in(text["asked"], corpus_of(*text["said"])))


def test_a_nickname_is_that_of_the_speaker_whose_messages_begin_with_a_name() -> None:
    said = [("u", "Caroline: hi Mel"), ("a", "Melanie: hey"), ("u", "Caroline: how are you?"), ("a", "Melanie: fine")]
    corpus = corpus_of(*said, ("u", "Caroline: thanks Mel"), ("a", "Melanie: sure"))

    assert nicknames_in("What does Mel like?", corpus) == {"mel": "melanie"}
    assert nicknames_in("İYİ. What does Mel like?", corpus) == {"mel": "melanie"}, "a letter that grows in lower case"
    assert completed_question("What does Mel like?", corpus).named == {"melanie"}
    assert completed_question("What do Mel and Caroline like?", corpus).named == frozenset(), (
        "both is nobody in particular"
    )


def test_what_the_assistant_told_somebody_is_the_assistants() -> None:
    corpus = corpus_of(("u", "My name is Craig."), ("a", "Hi Craig, try the boat shed."))

    assert completed_question("What did you recommend to Craig?", corpus).named == {"assistant"}
    assert completed_question("What is Craig looking for?", corpus).named == {"user"}


@pytest.mark.parametrize("mark", ["", " €", " – …", " “”", " ’", " é", " 你"])
def test_whatever_else_is_written_a_name_is_found_where_it_is_called(mark: str) -> None:
    for call in ("hi devin", "thank you, devin", "well, devin. fine", "devin! come"):
        assert nicknames_in("Where is Devin?", corpus_of(("a", f"{call}{mark}"), ("a", f"hi devin{mark}"))) == {
            "devin": "user"
        }
        told = corpus_of(("a", f"we saw devin there{mark}"), ("a", f"and devin saw us too{mark}"))
        assert nicknames_in("Where is Devin?", told) == {}


def test_whom_a_question_names_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def noting(text: str, corpus: Corpus, *, before: Sequence[str]) -> Question:
        asked.append(text)
        return completed_question(text, corpus, before=before)

    monkeypatch.setattr(rendering, "completed_question", noting)
    recall = rendering.Recall(question="Where is Devin?", corpus=corpus_of(("a", "hi devin"), ("a", "devin!")))

    assert recall.completed_question is recall.completed_question
    assert recall.completed_question.named == {"user"}
    assert asked == ["Where is Devin?"]
    assert replace(recall, question="").completed_question.named == frozenset(), "another question is another one"
    assert len(asked) == 2


def test_the_name_is_no_word_of_the_content_and_its_bearer_answers() -> None:
    greeting = [("a", "hi Mara"), ("u", "hi devin"), *[("u", "well"), ("a", "well")] * 4]
    for teller, asked, other in (("a", "Devin", "Mara"), ("u", "Mara", "Devin")):
        said = [*greeting, (teller, "i keep bees"), *greeting[2:], ("u" if teller == "a" else "a", "i keep rats")]
        corpus = corpus_of(*said)
        question = completed_question(f"What does {asked} keep?", corpus)

        assert asked.lower() not in question.stems
        assert choose(corpus, question, room=12)[0].source.text == "i keep bees"
        of_other = completed_question(f"What does {other} keep?", corpus)
        assert choose(corpus, of_other, room=12)[0].source.text == "i keep rats"


def test_a_text_full_of_names_is_looked_through_for_a_few_only() -> None:
    names = " ".join(f"Q{chr(97 + n % 26)}{chr(97 + n // 26)}x" for n in range(400))
    assert nicknames_in(f"{names} Mara", corpus_of(("a", "hi Mara"), ("u", "hello"))) == {}
    assert nicknames_in(f"Mara {names}", corpus_of(("a", "hi Mara"), ("u", "hello"))) == {"mara": "user"}


@pytest.mark.long
@pytest.mark.parametrize("run", [" ", "!", ", ", "hi ", "devin ", "devin!", "a, "])
def test_a_hostile_text_takes_linear_time(run: str) -> None:
    """A pattern that goes back over a run would take minutes for these."""
    text = f"devin{run * 100_000}x"
    corpus = Corpus([Source(seq=1, role="user", text=text, at=DAY, tokens=100)])

    assert nicknames_in("Where is Devin?", corpus) in ({}, {"devin": "assistant"})


@pytest.mark.long
@pytest.mark.parametrize("run", [".", "?", "!?", "\n", ". "])
def test_a_run_of_marks_is_counted_in_linear_time(run: str) -> None:
    assert 0 < words_of(f"Is it?{run * 200_000}x?").asks <= 1


LONG = "Here is a list of what one may think of when a garden is laid out in spring. " * 12


def test_beside_long_answers_the_users_own_messages_come_first() -> None:
    said = [("u", "we moved the shed"), ("a", LONG), ("u", "the cat is well"), ("a", LONG)]
    asked = "Where is the blue shed now?"
    corpus = corpus_of(*said)
    values = features(corpus, completed_question(asked, corpus))["user_says"]
    of = dict(zip([corpus.source(index).role for index in range(len(values))], values, strict=True))

    assert WEIGHTS["user_says"] > 0
    assert of["user"] > 1 > of["assistant"]
    assert choose(corpus, completed_question(asked, corpus), room=40)[0].source.role == "user"


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ([("u", "we moved the shed"), ("a", LONG)], "Which list did you recommend to me?"),
        ([("u", "we moved the shed"), ("a", "we too")], "Where is the shed?"),
        ([("u", "Ann: we moved"), ("a", f"Bob: {LONG}")], "Where is the shed?"),
        ([("u", LONG), ("a", "fine")], "Where is the shed?"),
        ([("u", "we moved the shed")], "Where is the shed?"),
    ],
)
def test_whose_messages_they_are_says_nothing_elsewhere(said: Sequence[tuple[str, str]], asked: str) -> None:
    corpus = corpus_of(*said)

    assert not any(features(corpus, completed_question(asked, corpus))["user_says"])


def test_a_message_that_tells_and_then_asks_is_less_of_a_question() -> None:
    corpus = corpus_of(("u", "We moved the shed. It is blue. Is that fine?"), ("u", "Is that fine?"), ("u", "Fine."))
    asks = features(corpus, completed_question("Where is the shed?", corpus))["asks"]

    assert asks == pytest.approx([1 / 3, 1.0, 0.0])


def test_common_words_of_talk_count_for_less_than_others_as_rare() -> None:
    corpus = corpus_of(("u", "actually quokkas"), ("a", "nothing"), ("u", "of that"))

    assert corpus.rarity("actual") == pytest.approx(0.7 * corpus.rarity("quokka"))
    assert corpus.rarity("quokka") > 0


@pytest.mark.parametrize("talk", TALKS)
def test_in_whole_talks_without_names_both_speakers_are_known_and_nobody_else_is(talk: Talk) -> None:
    named, corpus = corpus_of_talk(talk), corpus_of_talk(nameless(talk))
    roles = dict(zip(named.piece_speakers, corpus.piece_speakers, strict=True))
    called: dict[str, str] = {}
    for asked in talk.questions:
        called |= nicknames_in(asked.text, corpus)

    assert not corpus.speakers
    assert len(roles) == 2
    assert {name: called[name] for name in roles} == roles
    short = {name: role for name, role in called.items() if name not in roles}
    assert all(any(name.startswith(each) or each.startswith(name) for name in roles) for each in short)
    assert all(roles[name] == role for each, role in short.items() for name in roles if name[:2] == each[:2])


TALK = corpus_of(
    ("u", "The barn in Orrin costs 3200 for the day."),
    ("a", "Noted."),
    *[("u", "It rained."), ("a", "Oh dear.")] * 5,
    ("u", "The dress is moss green."),
    ("a", "Lovely."),
    ("u", "It cost 180 pounds at the market."),
    ("a", "A bargain."),
)


def test_a_question_of_few_words_is_about_what_was_said_just_before() -> None:
    before = ("What colour is the dress?", "Moss green.")
    alone, after = (
        completed_question("And what did it cost?", TALK),
        completed_question("And what did it cost?", TALK, before=before),
    )

    assert alone.stems == {"cost": 1.0}
    assert after.stems == {"cost": 1.0, "dress": 0.3, "moss": 0.15, "green": 0.15}, "no word that was never said"
    leads = [values[14] - values[0] for values in (scores(TALK, alone), scores(TALK, after))]
    assert leads[0] + 0.5 < leads[1], "by itself the barn's price is as good"


@pytest.mark.parametrize(
    "asked",
    ["What did the barn in Orrin cost?", "So it did.", "What does Rhoda cost?"],
    ids=["says enough", "asks nothing", "names somebody"],
)
def test_control_what_stands_by_itself_takes_nothing_up(asked: str) -> None:
    talk = corpus_of(*[(role, f"{name}: {text}") for role, name in (("u", "Rhoda"), ("a", "Ben")) for text in "abcd"])
    told = talk if "Rhoda" in asked else TALK

    assert completed_question(asked, told, before=("What colour is the dress?", "a b c")) == completed_question(
        asked, told
    )


def test_whom_the_question_before_named_is_meant_still() -> None:
    said = ("u", "Rhoda: I bought the kayak."), ("a", "Ben: And I the tent."), ("u", "Rhoda: Nice."), ("a", "Ben: Yes.")
    talk = corpus_of(*said)

    assert completed_question("And the price?", talk, before=("What did Rhoda buy?", "The kayak.")).named == {"rhoda"}
    assert completed_question("And Ben's?", talk, before=("What did Rhoda buy?", "The kayak.")).named == {"ben"}


@pytest.mark.parametrize(
    ("texts", "before", "asked", "taken"),
    [
        (("我买了一辆蓝色的自行车。", "天气很好。"), ("谁的自行车？", "蓝色的。"), "那多少钱？", "自行"),
        (
            ("Gestern habe ich in Rovinj ein Boot gekauft.", "Das ist schön.", "Ja, und es hat geregnet."),
            ("Wo habe ich das Boot gekauft?", "In Rovinj."),
            "Und was hat er dafür verlangt?",
            "boot",
        ),
    ],
    ids=["Chinese words have two signs", "function words of German"],
)
def test_few_words_are_counted_as_the_language_has_them(
    texts: Sequence[str], before: tuple[str, str], asked: str, taken: str
) -> None:
    talk = corpus_of(*[("u", text) for text in texts])

    assert len(completed_question(asked, talk).stems) > 2
    assert taken in completed_question(asked, talk, before=before).stems


def test_a_chinese_sentence_that_begins_with_a_name_calls_nobody() -> None:
    told = [("u", "妈妈手术很顺利，住了八天。"), ("u", "妈妈说我瘦了，哈哈"), ("a", "太好了。")]
    called = [("u", "妈妈，你好吗？"), ("u", "妈妈呀，快来"), ("a", "太好了。")]

    assert nicknames_in("妈妈什么时候做手术？", corpus_of(*told)) == {}
    assert nicknames_in("妈妈什么时候做手术？", corpus_of(*called)) == {"妈妈": "assistant"}, "the control"

"""Times in entries are absolute: the day is added next to its word, nothing is replaced, and nothing is guessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.anchors.detect import detect
from app.core.anchors.rendering import anchor_line, seqs_in
from app.core.model.conversation import Message
from app.core.model.policies.goals import states_goal
from app.core.model.schemas import SESSION
from app.core.reading.cues import cues_of
from app.core.text.languages.language_file import Language
from app.core.text.languages.loading import languages
from app.core.text.relative import date_note, has_relative_time, near_days, without_added_days
from app.core.text.sameness import canonical
from app.core.validation import dates
from app.core.validation.dates import text_with_dates
from app.core.validation.gate import judge
from app.core.validation.orders import orders_in
from tests.rows import each
from tests.unit.talk import answer, fact, proposal, request, talk

AT = datetime(2025, 5, 13, 22, 30, tzinfo=UTC)


def said(*texts: str, days: Sequence[int] | None = None) -> list[Message]:
    """Messages of these days, counted from the first."""
    ahead = days or [0] * len(texts)
    return [replace(one, created_at=AT + timedelta(days=day)) for one, day in zip(talk(*texts), ahead, strict=True)]


@each(
    ("text", "expected"),
    [
        ("Yesterday evening I paid it.", "Yesterday evening (12 May 2025) I paid it."),
        ("Marta: I'll send it tomorrow!", "Marta: I'll send it tomorrow (14 May 2025)!"),
        ("It broke the day before yesterday.", "It broke the day before yesterday (11 May 2025)."),
        ("Yesterday's bill is open.", "Yesterday's (12 May 2025) bill is open."),
        ("Вчера вечером был, послезавтра едем.", "Вчера вечером (12 мая 2025) был, послезавтра (15 мая 2025) едем."),
        ("Ich rufe morgen früh an.", "Ich rufe morgen früh (14. Mai 2025) an."),
        ("Heute Morgen war er da.", "Heute Morgen (13. Mai 2025) war er da."),
        ("我明天下午去银行。", "我明天下午（2025年5月14日）去银行。"),
        ("I saw her last Friday.", "I saw her last Friday (said Tue 13 May 2025)."),
        ("I pay her on Friday 12.05 times.", "I pay her on Friday 12.05 times (said Tue 13 May 2025)."),
        ("I saw her last Fri.", "I saw her last Fri (said Tue 13 May 2025)."),
        ("I see her on Friday 22.", "I see her on Friday 22 (said Tue 13 May 2025)."),
        ("Wir sahen sie letzten Fr in Köln.", "Wir sahen sie letzten Fr in Köln (gesagt am Di 13. Mai 2025)."),
        ("Мы видели её в прошлую пт.", "Мы видели её в прошлую пт (сказано 13 мая 2025, вт)."),
        ("We moved last week", "We moved last week (said 13 May 2025)"),
        ("She retires next year.", "She retires next year (said May 2025)."),
        ("Встреча была на прошлой неделе.", "Встреча была на прошлой неделе (сказано 13 мая 2025)."),
        ("他上周五走的。", "他上周五走的（说于2025年5月13日星期二）。"),
        ("Er kommt am Freitag.", "Er kommt am Freitag (gesagt am Di 13. Mai 2025)."),
        ('The user wrote: "I paid yesterday."', 'The user wrote: "I paid yesterday." (said 13 May 2025)'),
    ],
)  # fmt: skip
def test_the_day_stands_beside_its_word_or_beside_the_entry(text: str, expected: str) -> None:
    found = text_with_dates(text, said(text))
    assert found == expected
    assert text_with_dates(found, said(text)) == found, "once"
    assert without_added_days(found) == text
    assert canonical(found) == canonical(text), "it is the same entry"


@pytest.mark.parametrize(
    "text",
    [
        "USA Today wrote about it.",
        "We listened to Yesterday by the Beatles.",
        "Guten Morgen, Anna!",
        "目前天气很好。",
        "The meeting is every Friday.",
        "It opened yesterday (12 May).",
        "On Friday, 16 May 2025, we fly.",
        "Sign it by Friday (05/16).",
        "Unterschrift bis Freitag, 16.05., Tisch am Freitag (16.05.)",
        "The budget is 900 euros.",
        "The last night is at the airport hotel.",
    ],
)
def test_nothing_is_added_where_no_day_follows_or_one_is_told(text: str) -> None:
    assert text_with_dates(text, said(text)) == text


@pytest.mark.parametrize("text", ["Ivo comes on Friday", "Встреча будет в четверг", "Они приехали в прошлый четверг"])
def test_a_space_at_which_no_line_breaks_hides_no_time(text: str) -> None:
    tight = text.replace(" ", "\u00a0")
    dated = text_with_dates(text, said(text))
    assert dated != text
    assert text_with_dates(text, said(tight)) == dated
    assert text_with_dates(tight, said(text)) == tight + dated.removeprefix(text)


@pytest.mark.parametrize("space", ["\u00a0", "\u202f", "\u2009"])
def test_nor_any_other_words(space: str) -> None:
    demand, goal, order = "The room must not be red", "My goal is to save 900 euros", "Always call the bride Mrs Lund"
    assert cues_of(demand.replace(" ", space)) == cues_of(demand) != frozenset()
    assert states_goal(goal.replace(" ", space))
    assert orders_in(order.replace(" ", space))


def test_the_day_is_that_of_the_message_which_says_so() -> None:
    messages = said("I met Ivo.", "I met him yesterday.", "Nice.", days=[0, 4, 9])
    assert text_with_dates("The user met Ivo yesterday.", messages) == "The user met Ivo yesterday (16 May 2025)."
    assert text_with_dates("The user met Ivo yesterday.", messages[::2]) == "The user met Ivo yesterday.", (
        "nobody said so"
    )
    twice = said("I paid yesterday.", "I paid yesterday.", days=[0, 3])
    assert text_with_dates("The user paid yesterday.", twice) == "The user paid yesterday.", "which one is not known"
    assert text_with_dates("The user paid yesterday.", []) == "The user paid yesterday."


def test_behind_the_end_of_the_calendar_there_is_no_day_but_that_of_the_message() -> None:
    last = [replace(one, created_at=datetime(9999, 12, 31, tzinfo=UTC)) for one in said("We go tomorrow.")]
    assert text_with_dates("We go tomorrow.", last) == "We go tomorrow (said 31 December 9999)."


SPAN = said("My dog Rex was ill yesterday, the vet Dr Lind took 90 euros.", "I hope he is better.")


@pytest.mark.parametrize("model", ["made-up", "offline"])
def test_what_was_added_is_on_record_whoever_summarizes(model: str) -> None:
    told = answer(
        "Rex the dog was ill yesterday.", [fact("Rex was ill yesterday", 1), fact("The vet took 90 euros", 1)]
    )
    report = judge(replace(proposal(told), model=model), request(SPAN))
    assert report.candidate is not None
    texts = [item.text for item in report.candidate.items]
    assert texts == ["Rex was ill yesterday (12 May 2025)", "The vet took 90 euros"]
    assert report.candidate.narrative == {"conversation_summary": "Rex the dog was ill yesterday (12 May 2025)."}
    assert [(one.reason, one.field, one.after) for one in report.repairs] == [
        ("date_added", "logos", texts[0]),
        ("date_added", SESSION.fields[-1].name, "Rex the dog was ill yesterday (12 May 2025)."),
    ]
    assert report.ungrounded_count == 0


def test_control_without_that_step_the_times_stay_relative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dates, "text_with_dates", lambda text, sources, beside=True: text)
    report = judge(proposal(answer("", [fact("Rex was ill yesterday", 1)])), request(SPAN))
    assert report.candidate is not None
    assert report.candidate.items[0].text == "Rex was ill yesterday"
    assert report.repairs == ()


def test_an_anchor_with_a_relative_time_is_served_with_its_day_and_others_are_not() -> None:
    (found, *_) = detect(said("I will send the signed contract to Marta tomorrow.")[0])
    line = anchor_line(found.type, found.seq, found.content, said_at=found.said_at)
    assert line == "- commitment #1 (user) (said 13 May 2025): I will send the signed contract to Marta tomorrow."
    assert seqs_in(f"<anchors>\n{line}\n</anchors>") == (1,)
    assert anchor_line("decision", 3, "We use Postgres.", said_at=AT) == "- decision #3 (user): We use Postgres."
    assert anchor_line("commitment", 1, found.content) == f"- commitment #1 (user): {found.content}", (
        "an unknown moment"
    )


def test_an_anchor_of_the_same_moment_on_another_clock_has_its_own_day() -> None:
    moment = datetime(2025, 5, 13, 23, 30, tzinfo=UTC)
    lines = [
        anchor_line(
            "commitment", 1, "I will call tomorrow.", said_at=moment.astimezone(timezone(timedelta(hours=hours)))
        )
        for hours in (0, 2)
    ]
    assert ["13 May" in lines[0], "14 May" in lines[1]] == [True, True]


PIECES = st.sampled_from([
    "yesterday", " (12 May 2025)", "Today", "last Friday", '"', " tomorrow", "morgen", "вчера", "明天", "on Monday",
    ". ", "the dog", " 900 euros", "(", ")", "\n", "heute ", "«", "»", "昨天",
])  # fmt: skip


@given(st.lists(PIECES, max_size=12).map("".join))
def test_code_adds_and_never_replaces(text: str) -> None:
    found = text_with_dates(text, said(text))
    left = iter(found)
    assert all(sign in left for sign in text), "every sign of it, in order"
    assert text_with_dates(found, said(text)).count("said") == found.count("said"), "once"


@pytest.mark.parametrize("language", [one for one in languages() if one.relative], ids=lambda one: one.code)
def test_every_word_of_a_language_is_found_in_a_text_of_its_own_signs(language: Language) -> None:
    assert language.relative
    for word in language.relative.days:
        assert language.code in {near.language for near in near_days(word)}


def test_japanese_is_not_read_by_chinese_words_for_times() -> None:
    japanese, chinese = "家は築46年で、今年の夏に耐震工事をする予定です。", "今年夏天要装修房子，请记下来。"
    assert date_note(AT.date(), japanese) == ""
    assert not has_relative_time(japanese)
    assert date_note(AT.date(), chinese) == "（说于2025年5月）", "control: Chinese is"

"""The offline model: what it keeps, what it says, and its bounds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from app.core.anchors.rendering import anchor_line
from app.core.model.conversation import Message, Role
from app.core.model.model_io import ContextMessage, Proposal, SummaryRequest
from app.core.model.schemas.handoff import HANDOFF
from app.core.model.schemas.research import RESEARCH
from app.core.model.schemas.session import SESSION
from app.core.model.schemas.summary import SUMMARY
from app.core.model.state import FieldRole, StateEntry, StateField, StateSchema
from app.core.retrieval.offline_responder import respond
from app.core.retrieval.rendering import Passage, passages_element, with_elements_before
from app.core.summarizer.candidate import parse_candidate
from app.core.summarizer.offline.extractive import compress, digest
from app.core.text.clauses import begins_unresolved, clauses_with_values, is_fragment
from app.core.text.identifiers import find_identifiers
from app.core.text.language import detect
from app.core.text.token_counts import estimate_text, weigh
from app.core.validation.gate import judge
from tests.corpus import assert_values, corpus, holds
from tests.profiles import examples
from tests.rows import each
from tests.unit.timing import assert_linear, assert_linear_in

AT = datetime(2026, 1, 5, tzinfo=UTC)

CHATTER = (
    "In general it helps to think about such things step by step. Many teams find that the simple way serves them well"
    " for a long time. There are several ways to look at it, and each of them has its merits. One could also say that"
    " experience shows the way. It is often said that simple things stay simple. As always, it depends on taste. "
) * 4

PROJECT = f"""
U Hi! I'm Dana, I lead a team of four at a bakery-delivery startup called CrumbRoute in Porto.
A Hello Dana! Happy to help. What is the deadline?
U Deadline is June 14th, and the budget is €18,000, not a cent more.
A Understood. I'd suggest FastAPI with Postgres. Would you like me to sketch it?
U Yes, please do. And keep your answers short, I'm mostly on my phone.
A Architecture: FastAPI, Postgres 16 for orders, Redis for the queue.
U OK, let's go with Twilio for the codes. But the session must not be longer than 7 days, our lawyer insisted on it.
A Noted: sessions expire after 7 days. Should we store phone numbers hashed?
U No, we call customers when a delivery is late, so we need them readable.
A Then I'd keep an audit log of each access.
U Let's use MongoDB for it, our intern Tiago knows it.
A A table in Postgres would be simpler.
U Actually, scrap MongoDB, put the audit log in Postgres.
A Good. {CHATTER}
U Payment: we still need to decide between MB WAY and Stripe.
A Both have Python libraries. {CHATTER}
U Still not working!! Same error with ORD-20944. This is getting annoying.
A I'm sorry, it is fixed in commit 4f2a91c.
U How many orders per minute can we handle?
A I don't know yet, I'll have to run a load test first.
U By the way the deadline moved: we launch on June 21st instead of June 14th, because of the holiday.
A Noted, thanks!
"""

CHATTER_RU = (
    "Вообще такие вещи удобно разбирать по порядку. Многим хватает самого простого пути. На это можно смотреть с разных"
    " сторон, и у каждой есть достоинства. Опыт показывает дорогу. Простое остаётся простым. "
) * 4

RUSSIAN = f"""
U Привет! Меня зовут Марина, я руковожу отделом продаж в Казани.
A Здравствуйте, Марина! Какой нужен отчёт?
U Отчёт должен приходить каждый понедельник в 9:00 на почту sales@volga-tea.ru, в формате Excel.
A Понял. Предлагаю собирать данные ночью. Подходит?
U Да, давайте так. Данные нельзя отправлять за пределы нашего сервера.
A Хорошо.
U Бюджет 250 тысяч рублей, больше не дадут.
A Учту. {CHATTER_RU}
U Ещё не решили, делать ли отдельный отчёт для директора.
A Вернёмся к этому.
U Отчёт опять не пришёл! Сколько можно, я уже третий раз пишу.
A Извините, исправил.
"""

GERMAN = """
U Hallo, ich heiße Jonas und plane eine Hochzeit für 80 Gäste am 12. September in Freiburg.
A Herzlichen Glückwunsch! Wie hoch ist das Budget und gibt es schon einen Ort?
U Unser Budget liegt bei 22.000 Euro, und wir möchten im Gasthaus Adler feiern. Meine Verlobte ist Vegetarierin.
A Dann frage ich das Gasthaus nach einem vegetarischen Menü. Wollt ihr eine Band oder einen DJ?
U Lieber einen DJ, die Band war uns zu teuer. Die Feier muss um 1 Uhr enden, wegen der Nachbarn.
A Gut, ein DJ bis 1 Uhr, und danach ist Schluss.
"""


def message(seq: int, role: Role, content: str, parts: tuple[dict[str, Any], ...] = ()) -> Message:
    return Message(
        id=UUID(int=seq), conversation_id=UUID(int=0), seq=seq, role=role, content=content, parts=parts, created_at=AT
    )


def talk(text: str, start: int = 1) -> tuple[Message, ...]:
    roles: dict[str, Role] = {"U": "user", "A": "assistant"}
    return tuple(message(seq, roles[line[0]], line[2:]) for seq, line in enumerate(text.strip().splitlines(), start))


def entry(name: str, text: str, *, id_: str, role: FieldRole = "fact") -> StateEntry:
    return StateEntry(id=id_, field=name, role=role, text=text, from_seqs=(1,), since_version=1)


def state(messages: Sequence[Message], *, target: int = 800, previous: Sequence[StateEntry] = (), **more: Any) -> Any:
    request = SummaryRequest(
        schema=SESSION, messages=tuple(messages), previous=tuple(previous), target_tokens=target, **more
    )
    return json.loads(compress(request))


def texts(candidate: Any, name: str = "logos") -> str:
    return "\n".join(item["text"] for item in candidate[name])


def size(candidate: Any) -> int:
    items = [item["text"] for field in ("logos", "pathos", "abstract") for item in candidate[field]]
    return sum(map(estimate_text, items)) + estimate_text(candidate["conversation_summary"])


def weight(messages: Sequence[Message]) -> int:
    return sum(weigh(one.role, one.content, one.parts).tokens for one in messages)


def test_keeps_who_what_and_how_much() -> None:
    facts = texts(state(talk(PROJECT)))
    for kept in ("Dana", "CrumbRoute", "€18,000", "Twilio", "7 days", "June 21st", "Postgres", "ORD-20944"):
        assert kept in facts
    assert "Happy to help" not in facts
    assert "Noted, thanks" not in facts


def test_facts_name_their_speaker_and_their_message() -> None:
    candidate = state(talk(PROJECT))
    budget = next(item for item in candidate["logos"] if "€18,000" in item["text"])
    assert budget["text"].startswith("User: ")
    assert budget["from"] == [3]


def test_a_change_of_mind_replaces_what_was_said_in_the_span() -> None:
    facts = texts(state(talk(PROJECT)))
    assert "scrap MongoDB" in facts
    assert "Let's use MongoDB" not in facts


def test_an_accepted_proposal_is_told_with_its_yes_and_a_rejected_one_is_not() -> None:
    accepted = talk("U We need a queue.\nA I suggest Redis with one worker for the emails.\nU Yes, go ahead with that.")
    rejected = talk("U We need a queue.\nA I suggest Redis with one worker for the emails.\nU No, I'd rather not.")
    filler = talk(PROJECT, start=10)
    found = next(item for item in state([*accepted, *filler])["logos"] if "Redis with one worker" in item["text"])
    assert "User: Yes, go ahead" in found["text"]
    assert found["from"] == [2, 3]
    assert "Redis with one worker" not in texts(state([*rejected, *filler]))


def test_a_short_answer_carries_its_question() -> None:
    candidate = state([*talk("A How many managers will read the report?\nU Twelve."), *talk(PROJECT, start=3)])
    item = next(item for item in candidate["logos"] if "Twelve" in item["text"])
    assert item["text"] == "Assistant: How many managers will read the report? — User: Twelve."
    assert item["from"] == [1, 2]


def test_a_short_answer_carries_its_question_also_where_all_have_one_role() -> None:
    rows = "U Tess: Lovely.\nU Yuki: Lovely.\nU Tess: Until when can we cancel the house?\nU Yuki: until May 30."
    assert texts(state(talk(rows))) == "Tess: Until when can we cancel the house? — Yuki: until May 30."


def test_a_person_does_not_answer_their_own_question() -> None:
    rows = "U Tess: Lovely.\nU Yuki: Lovely.\nU Tess: Until when can we cancel the house?\nU Tess: until May 30."
    assert "—" not in texts(state(talk(rows)))


def test_a_sentence_carries_the_one_before_it_also_where_that_begins_with_a_pronoun() -> None:
    told = texts(state(talk(f"U He charges family rates. 07700 900482\nA Noted. {CHATTER}")))
    assert "User: He charges family rates. 07700 900482" in told


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("User: Let's use Postgres for the orders database.", "Actually no, use MySQL for the orders database."),
        ("User: Let's use Postgres for the orders.", "I changed my mind: MySQL for the orders instead of Postgres."),
        ("User: The launch is on June 14th.", "The launch moved to June 21st."),
        ("User: My budget is $5,000.", "The budget is now $7,000, it was raised."),
        ("Пользователь: Для заказов берём Postgres.", "На самом деле нет, для заказов берём MySQL вместо Postgres."),
    ],
)
def test_a_correction_replaces_the_earlier_entry(old: str, new: str) -> None:
    previous = [entry("logos", old, id_="F1"), entry("logos", "User: I live in Porto with two cats.", id_="F2")]
    messages = talk(f"U {new}\nA Noted. {CHATTER}\nU The office opens at 8:00 every day.", start=20)
    candidate = state(messages, previous=previous)
    replacing = [item for item in candidate["logos"] if item["replaces"]]
    assert [item["replaces"] for item in replacing] == [["F1"]]
    assert 20 in replacing[0]["from"]


@pytest.mark.parametrize(
    ("old", "new", "stays"),
    [
        ("The launch deadline is 2027-03-19.", "Update: the launch date moved to August 21.", False),
        ("The launch party has 40 guests.", "Update: the launch date moved to August 21.", True),
    ],
)
def test_a_later_value_of_the_same_kind_is_told_alone_though_one_word_is_shared(
    old: str, new: str, *, stays: bool
) -> None:
    told = texts(state(talk(f"U {old}\nA Noted. {CHATTER}\nU {new}\nA Noted. {CHATTER}")))

    assert new.rstrip(".") in told
    assert (old.rstrip(".") in told) is stays


def test_an_entry_with_another_value_is_not_replaced() -> None:
    previous = [entry("logos", "User: Deadline is June 14th, and the budget is €18,000.", id_="F1")]
    candidate = state(
        talk("U The deadline moved to June 21st.\nA Noted, June 21st it is then.", start=9), previous=previous
    )
    assert all(not item["replaces"] for item in candidate["logos"])


def test_what_is_already_known_is_not_repeated() -> None:
    first = state(talk(PROJECT))
    previous = [entry("logos", item["text"], id_=f"F{number}") for number, item in enumerate(first["logos"])]
    again = state(talk(PROJECT, start=30), previous=previous)
    known = {item["text"] for item in first["logos"]}
    assert not known & {item["text"] for item in again["logos"]}


def test_open_questions_are_kept() -> None:
    facts = texts(state(talk(PROJECT)))
    assert "Open question: Payment: we still need to decide between MB WAY and Stripe." in facts
    assert "Open question: How many orders per minute can we handle?" in facts
    assert "Open question: What is the deadline" not in facts


def test_open_fields_take_open_questions() -> None:
    class Shape(BaseModel):
        facts: list[str] = []
        open_points: list[str] = []

    schema = StateSchema(
        name="other",
        model=Shape,
        use="",
        fields=(
            StateField(name="facts", role="fact", ask="facts"),
            StateField(name="open_points", role="open", ask="open points"),
        ),
    )
    candidate = json.loads(compress(SummaryRequest(schema=schema, messages=talk(PROJECT))))
    assert set(candidate) == {"facts", "open_points", "dropped"}
    assert "MB WAY" in texts(candidate, "open_points")
    assert "MB WAY" not in texts(candidate, "facts")


def test_style_tells_tone_and_wishes() -> None:
    style = texts(state(talk(PROJECT)), "pathos")
    assert "Tone: " in style
    assert "worsening" in style
    assert "keep your answers short" in style


def test_a_new_tone_replaces_the_old_one() -> None:
    previous = [entry("pathos", "Tone: polite; mood stable", id_="S4", role="style")]
    style = state(talk(PROJECT, start=9), previous=previous)["pathos"]
    assert style[0]["replaces"] == ["S4"]


FESTIVAL = f"""
U I want to put on an open-air festival called Lantern Nights on the Old Ferry Quay. We need a screen and a permit.
A Lovely. What about the screen? {CHATTER}
U The screen has to be large, and the permit must be in by 15 May 2025 at the latest.
A Understood, the permit first. {CHATTER}
"""


def test_the_story_tells_the_subject_and_what_came_last() -> None:
    story = state(talk(FESTIVAL))["conversation_summary"]
    assert story.startswith("User: I want to put on an open-air festival called Lantern Nights on the Old Ferry Quay. ")
    assert story.endswith("the permit must be in by 15 May 2025 at the latest.")


def test_the_story_keeps_its_subject_and_replaces_what_came_last() -> None:
    first = state(talk(FESTIVAL))["conversation_summary"]
    previous = [entry("conversation_summary", first, id_="N1", role="narrative")]
    rows = f"U The tickets cost 9 euros each.\nA Fine. {CHATTER}\nU We sell the tickets from 2 June 2025 on.\nA Good."
    later = state(talk(rows, start=50), previous=previous)["conversation_summary"]
    assert later.startswith("User: I want to put on an open-air festival called Lantern Nights on the Old Ferry Quay. ")
    assert later.endswith("Last (User): We sell the tickets from 2 June 2025 on.")
    assert "15 May" not in later


def test_the_story_is_what_was_said_first_and_last() -> None:
    story = state(talk(PROJECT), target=2_000)["conversation_summary"]
    assert story.startswith("User: I'm Dana, I lead a team of four at a bakery-delivery startup called CrumbRoute")
    assert "June 21st" in story
    assert estimate_text(story) <= 90
    russian = state(talk(RUSSIAN))["conversation_summary"]
    assert russian.startswith("Пользователь: ")
    assert "Последнее" in russian


def test_the_language_of_the_talk_is_kept() -> None:
    russian = state(talk(RUSSIAN), locale="en")
    assert detect("\n".join([texts(russian), texts(russian, "pathos"), russian["conversation_summary"]])) == "ru"
    assert "250 тысяч рублей" in texts(russian)
    assert "Открытый вопрос: " in texts(russian)
    german = state(talk(GERMAN), locale="en")
    assert detect("\n".join([texts(german), german["conversation_summary"]])) == "de"
    assert "22.000 Euro" in texts(german)


def test_a_sentence_is_cut_to_the_clause_that_holds_its_values_and_not_to_less() -> None:
    assert_values(corpus("clauses"), lambda sentence: clauses_with_values(sentence, find_identifiers(sentence)))


@given(st.text(max_size=400) | st.lists(st.sampled_from(PROJECT.split()), max_size=60).map(" ".join))
def test_a_cut_keeps_every_value_and_adds_no_word(text: str) -> None:
    found = [item for item in find_identifiers(text) if item.kind != "symbol"]
    cut = clauses_with_values(text, find_identifiers(text))
    assert cut.casefold() in text.casefold()
    assert all(item.text in cut or item.text.casefold() in cut.casefold() for item in found)


FRAGMENTS = f"""
A When must the permit be in?
U By 15 May 2025 at the latest.
A Decided. {CHATTER}
U The bass.
A Noted, we look at the loudspeakers. {CHATTER}
U He also asks where the seat codes come from.
A Six signs each. {CHATTER}
U I rang at the Net Loft. They have 150 seats under a roof.
A Good to know. {CHATTER}
"""


def test_entries_stand_alone() -> None:
    facts = [item["text"] for item in state(talk(FRAGMENTS))["logos"]]
    assert "Assistant: When must the permit be in? — User: By 15 May 2025 at the latest." in facts
    assert "User: I rang at the Net Loft. They have 150 seats under a roof." in facts
    assert not [fact for fact in facts if "Decided" in fact or "The bass" in fact or "He also asks" in fact]


@pytest.mark.parametrize("text", [PROJECT, RUSSIAN, FRAGMENTS, FESTIVAL])
def test_no_entry_is_a_fragment_or_begins_with_a_pronoun(text: str) -> None:
    for item in state(talk(text))["logos"]:
        words = item["text"].partition(": ")[2]
        assert not is_fragment(words)
        assert not begins_unresolved(words)


def test_a_thank_you_does_not_part_an_answer_from_its_question() -> None:
    rows = f"A What is the date of the wedding?\nU Lovely, thank you! It is 14 June 2026.\nA Noted. {CHATTER}"
    facts = texts(state(talk(rows)))
    assert facts == "Assistant: What is the date of the wedding? — User: It is 14 June 2026."


REVERSED = f"""
U No. We switch the ticket page from Postgres to MySQL 8.4.
A Changed: MySQL 8.4 instead of Postgres. {CHATTER}
"""


def test_a_reversal_replaces_what_both_sides_said() -> None:
    previous = [
        entry("logos", "User: Let's use Postgres for the ticket page then.", id_="F1"),
        entry("logos", "Assistant: Decided: Postgres for the ticket page.", id_="F2"),
        entry("logos", "User: My nephew Tomasz builds the ticket page.", id_="F3"),
    ]
    candidate = state(talk(REVERSED, start=20), previous=previous)
    changed = next(item for item in candidate["logos"] if "MySQL 8.4" in item["text"])
    assert sorted(changed["replaces"]) == ["F1", "F2"]
    assert changed["from"] == [20]


def test_a_reversal_inside_the_span_leaves_neither_side() -> None:
    rows = f"U Let's use Postgres for the ticket page then.\nA Decided: Postgres for the ticket page. {CHATTER}"
    facts = texts(state([*talk(rows), *talk(REVERSED, start=3)]))
    assert "from Postgres to MySQL 8.4" in facts
    assert "Let's use Postgres" not in facts
    assert "Decided: Postgres" not in facts


def test_of_an_entry_only_the_reversed_clause_goes() -> None:
    both = "User: our reference is HM-2025-0417; Let's use Postgres for the ticket page"
    previous = [entry("logos", both, id_="F1")]
    found = [item for item in state(talk(REVERSED, start=20), previous=previous)["logos"] if item["replaces"]]
    assert [item["text"] for item in found] == [
        "User: our reference is HM-2025-0417",
        "User: We switch the ticket page from Postgres to MySQL 8.4.",
    ]
    assert [item["replaces"] for item in found] == [["F1"], ["F1"]]


MOOD = """
U Hi there! I'd love to plan a small wedding at the lake, could you help me please?
A With pleasure. What is the date?
U Wonderful, thank you! It is 14 June 2026, and about 60 guests are coming.
A Noted: 14 June, 60 guests. How about a permit for the lake shore?
U The permit was refused! This is ridiculous, I sent every form twice.
A I am sorry. Did they say why?
U No. I'm so angry, nobody answers the phone about the permit.
A Write to the mayor's office, they can look at it again.
"""
RELIEF = """
U The permit is here!!! I'm so relieved, the mayor called me herself!
A Congratulations!
U Finally. Thank you so much for your patience!
A Any time.
"""
MOOD_RU = """
U Здравствуйте! Помогите, пожалуйста, подготовить отчёт для директора к 20 марта.
A Здравствуйте! Какой период нужен?
U Отлично, спасибо! Нужен весь 2025 год, бюджет был 250 тысяч рублей.
A Понял, весь 2025 год.
U Отчёт опять не пришёл! Сколько можно, я уже третий раз пишу.
A Извините, проверяю почту.
"""
RELIEF_RU = """
U Наконец-то отчёт пришёл, слава богу! Спасибо большое.
A Пожалуйста!
U Я рада, что получилось.
A Хорошо.
"""


def tone(text: str, previous: Sequence[StateEntry] = ()) -> str:
    return str(state(talk(text), previous=previous)["pathos"][0]["text"])


def test_the_tone_says_what_changed() -> None:
    assert tone(MOOD).endswith("mood worsening: frustrated")
    assert tone(MOOD + RELIEF.lstrip()) == "Tone: polite, friendly; mood improving: frustrated"
    assert "настроение улучшается: раздражение" in tone(MOOD_RU + RELIEF_RU.lstrip())


def test_the_tone_remembers_earlier_trouble() -> None:
    before = [entry("pathos", tone(MOOD), id_="S1", role="style")]
    later = f"{RELIEF}U Let's book the boat.\nA Good.\nU And the music, please.\nA Gladly. {CHATTER}"
    assert tone(later, before).endswith("mood improving")


def test_joy_with_three_exclamation_marks_is_no_anger() -> None:
    rows = (
        "U We are on sale!!!\nA Good.\nU I'm not angry any more!!!\nA Good.\nU Great idea!!!\nA Yes.\nU Good night!\n"
    )
    assert state(talk(f"{rows}A {CHATTER}"))["pathos"] == []


@pytest.mark.parametrize("text", [PROJECT, RUSSIAN, GERMAN, FRAGMENTS, FESTIVAL, REVERSED, MOOD, MOOD_RU])
def test_the_gate_passes_it_at_first_attempt(text: str) -> None:
    request = SummaryRequest(schema=SESSION, messages=talk(text), target_tokens=367)
    proposed = compress(request)
    assert judge(Proposal(text=proposed, finish="stop", model="offline"), request).reason is None
    assert parse_candidate(proposed, SESSION).items


LISTS = {
    "ids": " ".join(f"AB-{number:06d}-XY" for number in range(300)),
    "days": " ".join(f"2025-01-{number % 28 + 1:02d}" for number in range(300)),
    "addresses": " ".join(f"https://example.com/{number}/path?q={number}#x" for number in range(100)),
}


@each("kind", LISTS)
@each("schema", [SESSION, HANDOFF, RESEARCH, SUMMARY])
def test_of_a_list_in_one_line_its_beginning_is_told(kind: str, schema: StateSchema) -> None:
    span = (message(1, "user", LISTS[kind]), message(2, "assistant", "Noted."), message(3, "user", "ok"))
    request = SummaryRequest(schema=schema, messages=span)
    candidate = compress(request)
    assert LISTS[kind].split()[0] in candidate
    assert judge(Proposal(text=candidate, finish="stop", model="offline"), request).reason is None
    assert estimate_text(candidate) < request.target_tokens


def test_focus_weighs_up() -> None:
    chat = talk("\n".join(f"U I must pay the bill number {n}1{n} by Monday.\nA Noted." for n in range(12)))
    aside = message(99, "user", "The tortoise sleeps under the old staircase of my aunt.")
    assert "tortoise" not in texts(state([*chat, aside], target=200))
    assert "tortoise" in texts(state([*chat, aside], target=200, focus="where the tortoise sleeps"))


def test_named_speakers_keep_their_names() -> None:
    rows = "U Ann: I bought a red bicycle in Ghent yesterday.\nA Ben: I sold my boat to Carla for $900 last week.\n" * 5
    facts = texts(state(talk(rows)))
    assert "Ann: I bought a red bicycle" in facts
    assert "User:" not in facts


def test_actions_of_tools_are_kept_and_of_dumps_the_exact_values() -> None:
    call = {"type": "tool_call", "id": "c1", "name": "book_flight", "arguments": {"flight": "HAT069", "seat": "12A"}}
    dump = '[{"a": "zebra-1", "colour": "striped", "b": "zebra-2"}, {"c": 7, "d": 8, "e": 9, "f": 10}]'
    result = {"type": "tool_result", "tool_call_id": "c1", "content": dump}
    chat = [*talk(PROJECT), message(30, "assistant", "", (call,)), message(31, "tool", "", (result,))]
    facts = texts(state(chat))
    assert "book_flight(flight=HAT069, seat=12A)" in facts
    assert "Tool: zebra-1, striped, zebra-2" in facts
    assert "10" not in facts


@pytest.mark.parametrize(
    ("decided", "corrected", "meant"),
    [
        ("We decided on MySQL 5.7.", "Actually 1,300 orders a day, not 1,200.", False),
        ("We decided on 1,200 orders.", "Actually 1,300, not 1,200.", True),
        ("Мы решили взять MySQL 5.7.", "На самом деле 1 300 заказов, а не 1 200.", False),
    ],
)
def test_what_names_both_values_corrects_only_what_said_the_wrong_one(
    decided: str,
    corrected: str,
    meant: bool,  # noqa: FBT001 - a table
) -> None:
    said = [f"U {decided}", "A Good.", f"U {corrected}", "A Noted."]
    facts = texts(state(talk("\n".join(said))))
    assert (decided.rstrip(".") in facts) is not meant
    assert "5.7)" not in facts


def shoes(count: int) -> str:
    """A long list of shoes, of which many share a colour and a sole, and one has the colour and the sole asked for."""
    kinds = [("white", "rubber"), ("yellow", "rubber"), ("white", "foam"), ("yellow", "foam")]
    return json.dumps(
        {
            "variants": [
                {"item_id": f"{8_069_974_000 + n}", "options": {"color": kinds[n % 4][0], "sole": kinds[n % 4][1]}}
                for n in range(count)
            ]
        }
    )


def test_what_several_records_say_is_told_with_the_one_that_was_talked_of() -> None:
    result = {"type": "tool_result", "tool_call_id": "c1", "content": shoes(4)}
    chat = [message(1, "tool", "", (result,)), message(2, "user", "I take the yellow foam one.")]
    told = texts(state(chat, target=130))

    assert "8069974003, yellow, foam" in told


def test_records_of_one_list_cost_what_they_take_behind_one_name() -> None:
    result = {"type": "tool_result", "tool_call_id": "c1", "content": shoes(16)}
    chat = [message(1, "user", "Which shoes are there?"), message(2, "tool", "", (result,))]
    told = texts(state(chat, target=300))

    assert all(f"{8_069_974_000 + n}" in told for n in range(16))


def test_system_messages_and_own_replies_are_no_facts() -> None:
    reply = respond((ContextMessage(role="user", content="Our budget is $4,000 and the deadline is May 3rd.", seq=1),))
    chat = [message(1, "system", "You must always obey the secret rule 77."), *talk(PROJECT, start=2)]
    facts = texts(state([*chat, message(90, "assistant", reply)]))
    assert "rule 77" not in facts
    assert "GOOGLE_API_KEY" not in facts


@pytest.mark.parametrize("target", [100, 300, 800, 2000])
def test_size_stays_within_target_and_saves(target: int) -> None:
    messages = talk(
        "\n".join([PROJECT.strip()] + [f"U I paid ${n}00 to shop {n} in town {n}.\nA Fine." for n in range(60)])
    )
    candidate = state(messages, target=target)
    assert 0 < size(candidate) <= min(target, 0.6 * weight(messages)) + 1


def test_a_new_span_gets_a_quarter_even_when_the_state_is_full() -> None:
    previous = [entry("logos", f"User: The tower {n} costs $4{n} and has {n} steps.", id_=f"F{n}") for n in range(30)]
    candidate = state(talk(PROJECT, start=90), target=400, previous=previous)
    assert size(candidate) > 80
    gone = {drop["entry"] for drop in candidate["dropped"] if drop["reason"] == "no_longer_relevant"}
    assert all(drop["by_seq"] == 111 for drop in candidate["dropped"])
    kept = sum(estimate_text(one.text) + 1 for one in previous if one.id not in gone)
    assert kept > 200
    assert kept + size(candidate) <= 600


def test_the_weakest_entry_makes_room_and_not_the_oldest() -> None:
    strong = [entry("logos", f"User: The key of gate {n} is QX-{n}-77{n}.", id_=f"F{n}") for n in range(1, 9)]
    weak = [entry("logos", f"User: We also talked about the colour number {n}.", id_=f"F{n}") for n in range(9, 30)]
    candidate = state(talk(PROJECT, start=90), target=400, previous=[*strong, *weak])
    gone = {drop["entry"] for drop in candidate["dropped"]}
    assert gone
    assert not gone & {one.id for one in strong}


def test_nothing_makes_room_while_there_is_some() -> None:
    previous = [entry("logos", f"User: We also talked about the colour number {n}.", id_=f"F{n}") for n in range(9)]
    assert state(talk(FESTIVAL, start=90), previous=previous)["dropped"] == []


def test_the_same_sentence_with_another_number_is_another_fact() -> None:
    order = "User: For room {0} I decided to order the oak tables from Calder-{0}."
    previous = [entry("logos", order.format(n), id_=f"F{n}") for n in range(1, 30)]
    for room, news in ((41, True), (7, False)):
        span = talk(f"U For room {room} I decided to order the oak tables from Calder-{room}.\nA Noted.", start=90)
        assert (f"room {room}" in texts(state(span, target=367, previous=previous))) is news


def test_a_span_of_facts_is_never_a_story_alone_however_full_the_state() -> None:
    previous = [entry("logos", f"User: fact number {n} about the tall tower {n}.", id_=f"F{n}") for n in range(90)]
    long = (
        "U The hall in Turku costs 1,250 euros for the evening of 4 May, with chairs, lamps, a stage and the cleaning."
    )
    assert state(talk(f"{long}\nA Noted.", start=200), target=100, previous=previous)["logos"]


@pytest.mark.parametrize("locale", ["en", "ru", "de"])
def test_the_smallest_span_still_has_a_story(locale: str) -> None:
    assert state(talk("U We put the lamp behind the house.\nA Ok."), locale=locale)["conversation_summary"]
    assert state(talk("U Ok.\nA Ok."), locale=locale)["conversation_summary"]


def test_small_talk_still_has_a_story() -> None:
    candidate = state(talk("U Hi!\nA Hello! How are you?\nU Fine, thanks!\nA Great!"))
    assert candidate["conversation_summary"]


ONE_FACT = 120  # tokens, if every fact of a record is longer than its target
CONTENT = st.text(st.characters(), max_size=160) | st.sampled_from(PROJECT.splitlines() + RUSSIAN.splitlines())
ROLE = st.sampled_from(["user", "assistant", "system", "tool"])


@examples(0.6)
@given(st.lists(st.tuples(ROLE, CONTENT), max_size=14), st.integers(50, 1500), st.text(max_size=20))
@example([("user", "0" * 22), ("user", "0" * 24)], 50, "")
def test_any_span_gives_a_valid_candidate(rows: list[tuple[Role, str]], target: int, focus: str) -> None:
    messages = [message(seq, role, content) for seq, (role, content) in enumerate(rows, 5)]
    previous = [entry("logos", "User: The budget is $5,000.", id_="F1")]
    candidate = state(messages, target=target, previous=previous, focus=focus)
    assert candidate == state(messages, target=target, previous=previous, focus=focus)
    assert list(candidate) == ["logos", "pathos", "abstract", "conversation_summary", "dropped"]
    seqs = {one.seq for one in messages}
    for name in ("logos", "pathos", "abstract"):
        for item in candidate[name]:
            assert set(item) == {"text", "from", "replaces"}
            assert item["text"].strip()
            assert item["from"]
            assert set(item["from"]) <= seqs
            assert set(item["replaces"]) <= {"F1"}
    assert all(gone["by_seq"] in seqs for gone in candidate["dropped"])
    is_one_fact = [len(candidate[name]) for name in ("logos", "pathos", "abstract")] == [1, 0, 0]
    assert size(candidate) <= (max(target, ONE_FACT) if is_one_fact else target)


@examples(0.6)
@given(st.lists(st.tuples(ROLE, CONTENT), max_size=12), st.integers(0, 300))
def test_a_digest_fits(rows: list[tuple[Role, str]], most: int) -> None:
    messages = [message(seq, role, content) for seq, (role, content) in enumerate(rows, 1)]
    told = digest(messages, most, "en")
    assert estimate_text(told) <= most
    assert all(line.startswith("#") for line in told.split("\n") if told)


def test_a_digest_tells_the_best_in_order() -> None:
    told = digest(talk(PROJECT), 150, "en")
    numbers = [int(line.split(" ", 1)[0][1:]) for line in told.splitlines()]
    assert numbers == sorted(numbers)
    assert "#3 User: Deadline is June 14th, and the budget is €18,000, not a cent more." in told


@examples(0.6)
@given(st.lists(st.tuples(ROLE, CONTENT), max_size=12))
def test_any_context_gets_an_answer(rows: list[tuple[Role, str]]) -> None:
    context = tuple(ContextMessage(role=role, content=text, seq=seq) for seq, (role, text) in enumerate(rows, 1))
    answer = respond(context)
    assert answer == respond(context)
    assert "GOOGLE_API_KEY" in answer
    assert len(answer.split()) <= 120


def asked(question: str, text: str = PROJECT) -> str:
    context = [ContextMessage(role="system", content="You are the secret budget keeper.")]
    context += [ContextMessage(role=one.role, content=one.content, seq=one.seq) for one in talk(text)]
    return respond((*context, ContextMessage(role="user", content=question, seq=77)))


def test_answers_quote_what_was_said_and_statements_get_a_receipt() -> None:
    assert_values(corpus("offline_answers"), asked, agrees=holds)
    assert not any("secret" in asked(text) for text in corpus("offline_answers").texts())


def test_a_question_without_words_of_its_own_is_about_what_was_said_before() -> None:
    rows = "U My dentist appointment is on 9 December.\nA Noted.\nU Actually it was moved to Thursday.\nA Noted."
    assert "moved to Thursday" in asked("When is it now?", rows)
    assert "nothing about that" in asked("What can you do?", rows), "control: it asks for no day and no number"


def test_an_answer_to_a_question_without_shared_words_is_found_beside_it() -> None:
    rows = "U The weather is fine.\nA What is the name of your dog?\nU Luna, she is three.\nA Nice.\nU I like tea."
    assert "Luna" in asked("Do you remember my dog's name?", rows)


def test_answers_in_the_language_of_the_question() -> None:
    answer = asked("Какой у нас бюджет?", RUSSIAN)
    assert "250 тысяч рублей" in answer
    assert "языковая модель не подключена" in answer
    assert "nothing about that" in asked("What colour is the whale?")


def test_the_state_block_is_quoted_too() -> None:
    block = json.dumps({"logos": ["User: The boat is called Nautilus."], "conversation_summary": "They plan a voyage."})
    left_out = '<left_out from_seq="1" to_seq="4">\n#3 User: The captain is Nemo.\n</left_out>'
    context = (
        ContextMessage(role="user", content=f"<session_state>\n{block}\n{left_out}\n</session_state>"),
        ContextMessage(role="assistant", content="Understood."),
    )
    answer = respond((*context, ContextMessage(role="user", content="What is the boat called?", seq=9)))
    assert "earlier: User: The boat is called Nautilus." in answer
    answer = respond((*context, ContextMessage(role="user", content="Who is the captain?", seq=9)))
    assert "#3: User: The captain is Nemo." in answer
    answer = respond((*context, ContextMessage(role="user", content="Please summarize what we have so far.", seq=9)))
    assert "They plan a voyage." in answer


@pytest.mark.parametrize(
    ("content", "asks"),
    [
        ("Marta signs the lease contract.", "Who signs the lease contract?"),
        ("Marta signs the lease contract tomorrow.", "Who signs the lease contract?"),
        ("Договор завтра получит Марта.", "Кто получит договор?"),
        ("我明天把合同寄给玛尔塔。", "合同寄给谁？"),
    ],
    ids=["without a day", "en", "ru", "zh"],
)
def test_an_anchor_is_quoted_with_a_day_and_without(content: str, asks: str) -> None:
    line = anchor_line("decision", 7, content, said_at=datetime(2026, 2, 2, tzinfo=UTC), said_by="Anna")
    block = ContextMessage(role="user", content=f"<session_state>\n<anchors>\n{line}\n</anchors>\n</session_state>")
    assert f"> #7: {content}" in respond((block, ContextMessage(role="user", content=asks, seq=9)))


def test_an_entry_that_is_a_question_with_its_answer_is_quoted_whole() -> None:
    entry = "Assistant: Does the fire officer look at the quay? — User: He comes on 27 March at ten."
    block = f"<session_state>\n{json.dumps({'logos': [entry]}, ensure_ascii=False)}\n</session_state>"
    asked = ContextMessage(role="user", content="When does the fire officer come?", seq=9)
    answer = respond((ContextMessage(role="user", content=block), asked))
    assert entry in answer


def test_a_caller_s_passage_is_quoted_by_its_source() -> None:
    given = [Passage(text="A page on rain: the cover costs 99 euros.", source='wiki "tents"')]
    asks = "What does the rain cover cost?"
    context = (
        ContextMessage(role="user", content="The tent costs 380 euros.", seq=1),
        ContextMessage(role="assistant", content="Noted.", seq=2),
        ContextMessage(role="user", content=with_elements_before("", passages_element(given), asks), seq=3),
    )
    answer = respond(context)
    assert '> wiki "tents": A page on rain: the cover costs 99 euros.' in answer
    assert answer.index("99 euros") < answer.find("380 euros") or "380 euros" not in answer


def test_a_pasted_document_is_acknowledged_by_the_users_own_words() -> None:
    document = "1. Premises. The pontoon stays closed at all times and costs 85 euros a day. " * 20
    answer = asked(f"Here's the whole agreement, draft 3. Please keep it at hand.\n\n{document}")
    assert "Here's the whole agreement, draft 3." in answer
    assert "pontoon" not in answer
    assert "GOOGLE_API_KEY" in answer


def test_only_what_fits_is_quoted() -> None:
    rows = """
U I want a festival: two evenings on the quay, about 320 seats, with a total budget of 18,500 euros.
A Lovely.
U Relieved, and proud. And I need to iron a tablecloth for Mrs. Petrakis.
A I'll add the seats to the plan.
"""
    answer = asked("Which two evenings of the festival, how many seats and what budget did I name?", rows)
    assert "18,500 euros" in answer
    assert "tablecloth" not in answer


def test_a_neighbour_that_says_nothing_of_it_is_not_quoted() -> None:
    rows = "U And I need to iron a tablecloth.\nA The seats and the budget stand in the plan."
    answer = asked("What about the seats and the budget?", rows)
    assert "stand in the plan" in answer
    assert "tablecloth" not in answer


def test_receipts_vary() -> None:
    said = [f"The shop number {n} opens at {n}:00 on Sundays." for n in range(8, 16)]
    assert len({asked(one).split(":")[0] for one in said}) > 1


def long_talk(copies: int) -> tuple[Message, ...]:
    rows = []
    for n in range(copies):
        rows += [f"U In week {n} I paid ${n}50 for item {n % 37} and decided to keep vendor V-{n}.", "A Noted, fine."]
        rows += [
            f"U Actually, move delivery {n % 11} to day {n % 28}, please. What about order {n}?",
            "A It is on its way.",
        ]
    return talk("\n".join(rows))


@pytest.mark.long
def test_work_is_linear_in_the_number_of_messages() -> None:
    state(long_talk(75))
    assert_linear_in(lambda copies: partial(state, long_talk(copies)), 300, most=6.5)


@pytest.mark.long
@pytest.mark.parametrize(
    "unit", ["a", "1", "?", ". ", "no, ", "Ab ", "«", "`", "well, ", "not ", "is x now ", "да, ", "a: "]
)
def test_linear_time_on_hostile_text(unit: str) -> None:
    def answered(text: str) -> None:
        state([message(1, "user", text), message(2, "assistant", text), message(3, "user", "Is it $5?")])
        respond((ContextMessage(role="user", content=text, seq=1), ContextMessage(role="user", content=text, seq=2)))

    assert_linear(answered, unit * (50_000 // len(unit)))


def test_anchors_of_the_block_are_quoted_with_their_number() -> None:
    block = (
        '<session_state>\n{"logos":[],"pathos":[],"abstract":[],"conversation_summary":""}\n<anchors>\n'
        "- correction #7: no, MySQL is the database we can have.\n</anchors>\n</session_state>"
    )
    context = (
        ContextMessage(role="user", content=block),
        ContextMessage(role="assistant", content="Understood."),
        ContextMessage(role="user", content="Which database can we have?", seq=9),
    )
    assert "> #7: no, MySQL is the database we can have." in respond(context)


def test_two_messages_told_together_are_two_sentences() -> None:
    said = (message(1, "user", "we rent the harbour hall in Porto"), message(2, "user", "This costs 900 euros."))
    told = texts(state((*said, message(3, "assistant", "I see.")), target=200))
    assert told == "User: we rent the harbour hall in Porto. This costs 900 euros."

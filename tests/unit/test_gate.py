from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest

from app.core.model.conversation import Message
from app.core.model.model_io import OFFLINE, FinishReason, Proposal
from app.core.model.schemas import SESSION
from app.core.state.layout import layout_of
from app.core.state.merge import merge
from app.core.state.pruning import state_of
from app.core.text.token_counts import estimate_text
from app.core.validation import gate
from app.core.validation.excuses import is_excuse
from app.core.validation.gate import judge, new_word_count, saves_too_little
from tests.rows import each
from tests.unit.talk import answer, entry, fact, message, proposal, request, talk

TRIP = talk(
    "Hi! My sister Clara gets married in Porto on 12 June 2027 and I'd like to travel by train from Zurich.",
    "What a lovely reason to travel. You would change in Lyon and Barcelona; two nights on the way make it relaxed.",
    "Fine, but everything together must stay under 900 francs, hotel included. I can leave next Monday evening.",
    "Then I'd book the Lyon leg now: TGV 9766 at 18:34 is 59 francs. Shall I also look for a hotel near Perrache?",
    "Yes please. And no hostels, I'm too old for bunk beds, ha.",
)
CODE = talk(
    "Our worker dies with `asyncpg.exceptions.TooManyConnectionsError` since `pool_size` went to 40 in settings.py.",
    "Postgres allows max_connections = 100; three workers with 40 each exceed it. Lower pool_size or add PgBouncer.",
    "We can't add PgBouncer before v2.4.0. Let's go with pool_size=20 and call `engine.dispose()` after the fork.",
    "Put it in `worker/runtime.py`:\n```python\nengine.sync_engine.dispose(close=False)\n```\nand keep max_overflow=5.",
)
RUSSIAN = talk(
    "Меня зовут Марина, я веду проект «Северный мост». Нам надо уложиться в 1,2 млн рублей до 15 марта.",
    "Понял, Марина. Тогда предлагаю начать со сметы и выбрать подрядчика до конца января.",
    "Подрядчика уже выбрали: «СтройГрад», договор № 47-Б подписали вчера. Только не обещай заказчику скидок.",
    "Хорошо, скидок не обещаем. Что со сроками поставки бетона?",
    "Бетон привезут через две недели, Олег Петрович обещал. Я, честно говоря, очень устала от этих созвонов.",
)
MIXED = talk(
    "Слушай, у нас в проде падает `PaymentService.charge()`: HTTP 502 от api.stripe.com, примерно 3 % запросов.",
    "Похоже на таймаут. Поставь timeout=10 и retry с jitter, а идемпотентность через заголовок Idempotency-Key.",
    "Окей, решили: timeout=10, три попытки, деплой в четверг. Ветка fix/stripe-timeout, тикет PAY-311.",
    "Принято. Не забудь метрику payments_retry_total.",
)
CHAT = talk(
    "hey, how are you doing today?",
    "I'm doing great, thanks for asking! What's on your mind?",
    "nothing much, just bored, tell me something nice",
    "Somewhere a puppy is seeing snow for the first time and has decided that it is the best thing ever.",
    "haha that is really cute, thank you so much, you made me smile",
)
ORDER = "A-7781 shipped 2026-11-12, parcel JD0146, 84.90 EUR"
TOOL = (
    message(1, "What is the status of my order?"),
    message(2, "", "assistant", parts=[{"type": "tool_call", "id": "c", "name": "orders", "arguments": {"no": 1}}]),
    message(3, "", "tool", parts=[{"type": "tool_result", "tool_call_id": "c", "content": ORDER}]),
    message(4, "It left on 12 November with parcel number JD0146.", "assistant"),
)

HONEST: list[tuple[str, tuple[Message, ...], str]] = [
    (
        "dates resolved from message times, names and amounts kept",
        TRIP,
        answer(
            "The user plans a train journey to Porto for a family wedding. The first leg is about to be booked.",
            [
                fact("Clara, the user's sister, marries in Porto on 12 June 2027", 1),
                fact("The whole trip, lodging included, may cost at most CHF 900", 3),
                fact("Departure from Zurich: the evening of Monday, 23 November 2026", 3),
                fact("Proposed first leg: TGV 9766 to Lyon at 18:34, 59 francs", 4),
                fact("A hotel near Perrache is to be found; hostels are out", 4, 5),
            ],
            [fact("Warm and joking; mood good and stable", 5)],
        ),
    ),
    (
        "amounts reworded, nothing but one list",
        TRIP,
        answer(
            "", [fact("They have nine hundred Swiss francs for everything", 3), fact("Two stopovers on the way", 2)]
        ),
    ),
    (
        "bare strings without sources",
        TRIP,
        answer(
            "Wedding trip in preparation.",
            ["Wedding of sister Clara: Porto, 2027-06-12", "Wants the train", "No hostels, because of the bunk beds"],
            ["Jokes about own age"],
        ),
    ),
    (
        "code terms, decisions with reasons",
        CODE,
        answer(
            "A connection-pool failure was diagnosed and a fix agreed; it has not been applied yet.",
            [
                fact("Cause: three workers × pool_size 40 > max_connections = 100 (TooManyConnectionsError)", 1, 2),
                fact("Decision: pool_size=20, max_overflow=5, PgBouncer only from v2.4.0", 3, 4),
                fact("`engine.sync_engine.dispose(close=False)` goes into worker/runtime.py after the fork", 3, 4),
            ],
            [],
            [fact("Knows connection pooling and forking", 3)],
        ),
    ),
    (
        "almost only code in the items",
        CODE,
        answer("", ["pool_size=20", "max_overflow=5", "worker/runtime.py: engine.sync_engine.dispose(close=False)"]),
    ),
    (
        "Russian, names inflected, dates resolved, amount in words",
        RUSSIAN,
        answer(
            "Обсудили бюджет и сроки «Северного моста». Ждут поставки бетона.",
            [
                fact("Пользователя зовут Марина, она руководит «Северным мостом»", 1),
                fact("Бюджет — один миллион двести тысяч рублей, срок — 15.03", 1),
                fact("Договор № 47-Б со «СтройГрадом» подписан 15 ноября 2026 года", 3),
                fact("Поставка бетона ожидается около 30 ноября 2026 (по словам Олега Петровича)", 5),
                fact("Заказчику скидки не обещать", 3),
            ],
            [fact("Марина устала от созвонов, настроение ухудшается", 5)],
        ),
    ),
    (
        "Russian in short notes",
        RUSSIAN,
        answer("Идёт стройка.", ["Подрядчик: СтройГрад", "Скидок не обещаем", "Бетон: через две недели от 16 ноября"]),
    ),
    (
        "Russian talk mixed with English terms",
        MIXED,
        answer(
            "Разбирали ошибки 502 при оплате, договорились об исправлении.",
            [
                fact("`PaymentService.charge()` получает HTTP 502 от api.stripe.com в трёх процентах случаев", 1),
                fact("Решение: timeout=10, 3 попытки с jitter, Idempotency-Key; выкладка в четверг 19 ноября", 2, 3),
                fact("Ветка fix/stripe-timeout, задача PAY-311, метрика payments_retry_total", 3, 4),
            ],
            [],
            [fact("Понимает повторные попытки и идемпотентность", 3)],
        ),
    ),
    (
        "a talk without facts needs no items",
        CHAT,
        answer("Small talk: the user was bored, asked for something nice and was cheered up by a story about a puppy."),
    ),
    (
        "small talk with a mood",
        CHAT,
        answer("Friendly small talk about nothing in particular.", [], [fact("Bored at first, cheered up", 3, 5)]),
    ),
    (
        "a tool's answer",
        TOOL,
        answer(
            "The user asked about an order; it is on its way.",
            [fact("According to the order system, A-7781 (84,90 €) was sent on 12.11.2026 as parcel JD0146", 3)],
        ),
    ),
    (
        "a record of a refusal is no refusal",
        talk(
            "Please provide the conversation transcript of my doctor's appointment on 3 May.",
            "I'm sorry, but I can't help with that: I have no access to medical records.",
        ),
        answer("The user asked for the transcript of a doctor's appointment; the assistant could not provide it."),
    ),
    (
        "names only",
        talk("Our team is Anna, Bertrand, Chidi and Dmitri.", "Nice to meet you all! Who does what?"),
        answer("", ["Team: Anna, Bertrand, Chidi, Dmitri"]),
    ),
    (
        "German",
        talk(
            "Wir ziehen am 1. März nach Leipzig, die Wohnung kostet 1.150 Euro warm und hat keinen Aufzug.",
            "Dann brauchen Sie bis Februar eine Umzugsfirma; ohne Aufzug wird es teurer.",
        ),
        answer(
            "Der Umzug nach Leipzig wird geplant.",
            [fact("Umzug nach Leipzig am 1. März; die Warmmiete beträgt 1150 Euro, es gibt keinen Aufzug", 1)],
        ),
    ),
]


@pytest.mark.case("22b")
@each(("span", "text"), [case[1:] for case in HONEST])
def test_honest_paraphrases_pass_at_the_first_attempt(span: tuple[Message, ...], text: str) -> None:
    report = judge(proposal(text), request(span))
    assert report.reason is None
    assert report.candidate is not None
    assert sorted(report.candidate.texts()) == sorted(
        each["text"] if isinstance(each, dict) else each
        for value in json.loads(text).values()
        for each in (value if isinstance(value, list) else [value])
        if each
    )


def test_an_update_that_only_adds_what_is_new_passes() -> None:
    earlier = (entry("F1", "Clara marries in Porto"), entry("N2", "A trip is planned."))
    text = answer("The trip is booked.", [fact("Clara marries in Porto on 12 June 2027", 1, replaces=["F1"])])
    report = judge(proposal(text), request(TRIP, *earlier))
    assert report.candidate is not None
    assert report.candidate.items[0].replaces == ("F1",)


GOOD = HONEST[0][2]


def reason(text: str, span: tuple[Message, ...] = TRIP, *previous: Any, finish: FinishReason = "stop") -> str | None:
    report = judge(proposal(text, finish), request(span, *previous))
    assert (report.reason is None) != (report.candidate is None)
    return report.reason


# --- what the provider says of its own answer


@pytest.mark.case("3", "4", "5")
@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ("blocked", "blocked"),
        ("length", "cut_off"),
        ("tool_call", "not_a_summary"),
        ("stop", None),
        ("other", None),
    ],
)
def test_how_the_call_ended_counts_also_when_the_json_is_good(finish: FinishReason, expected: str | None) -> None:
    assert reason(GOOD, finish=finish) == expected


def test_how_the_call_ended_is_the_reason_whatever_came() -> None:
    assert reason("", finish="blocked") == "blocked"
    assert reason('{"logos": ["half', finish="length") == "cut_off"
    assert judge(proposal(GOOD, "blocked", called_tool=True), request(TRIP)).reason == "blocked"


@pytest.mark.case("3")
def test_a_called_tool_is_no_summary() -> None:
    assert judge(proposal(GOOD, called_tool=True), request(TRIP)).reason == "not_a_summary"
    assert judge(proposal("", called_tool=True), request(TRIP)).reason == "not_a_summary"


# --- reading


@pytest.mark.case("2")
@pytest.mark.parametrize("text", ["", " \n", "<think>I should summarise.</think>", answer(), "{}"])
def test_empty(text: str) -> None:
    assert reason(text) == "empty_summary"
    assert reason(f"<think>Let me see.</think>{GOOD}") is None


@pytest.mark.case("3")
@pytest.mark.parametrize(
    "text",
    [
        "Please provide the conversation you would like me to summarize.",
        "I'm sorry, but I can't assist with that.",
        "Of course! A hotel near Perrache would be the Mercure, it has quiet rooms.",
        "Конечно! Пришлите, пожалуйста, переписку.",
    ],
)
def test_prose_is_no_summary(text: str) -> None:
    assert reason(text) == "not_a_summary"
    assert reason(f"{text}\n\n{GOOD}") is None


@pytest.mark.parametrize("text", [GOOD[:-40], GOOD.replace(":", ";"), "{'logos': []}", '{"summary": "x", "facts": []}'])
def test_unparseable(text: str) -> None:
    assert reason(text) == "unparseable"


# --- what was proposed


EXCUSES = [
    "Please provide the conversation.",
    "Please provide the messages you'd like me to compress.",
    "Could you please share the transcript?",
    "I'm sorry, but I cannot help with this request.",
    "I’m sorry, I can’t continue.",
    "I cannot summarize this conversation.",
    "Sorry, I am unable to process this.",
    "As an AI language model, I have no memory of earlier talks.",
    "No conversation was provided.",
    "There are no messages to summarize.",
    "There is no conversation history available.",
    "I don't see any conversation in your message.",
    "Sure! Please paste the chat here.",
    "Unfortunately, I can't assist with that.",
    "How can I help you today?",
    "I'm ready to summarize. Send me the text.",
    "Извините, я не могу помочь с этим.",
    "К сожалению, не могу выполнить этот запрос.",
    "Пожалуйста, предоставьте текст беседы.",
    "Как языковая модель, я не храню переписку.",
    "Нет сообщений для обработки.",
    "Чем я могу помочь?",
    "Lo siento, no puedo ayudar con eso.",
    "抱歉,我无法完成这个请求。",
    "Leider kann ich diese Frage nicht beantworten.",
    "Ich sehe keine Nachrichten, die ich zusammenfassen könnte.",
    "Hallo! Womit kann ich Ihnen helfen?",
    "Lamentablemente no puedo ayudarte por ahora.",
    "¡Hola! ¿En qué puedo ayudarte?",
    "Désolé, je ne peux pas vous aider sur ce sujet.",
    "Bonjour ! Comment puis-je vous aider ?",
    "您好!请问有什么可以帮您?",
    "作为人工智能，我无法总结这段对话。",
    "我没有看到任何需要总结的消息。",
]


@pytest.mark.case("3")
@each("excuse", EXCUSES)
def test_an_excuse_in_the_right_shape_is_no_summary(excuse: str) -> None:
    assert reason(answer(excuse)) == "not_a_summary"
    assert reason(answer("", [excuse])) == "not_a_summary"
    assert reason(answer(excuse, [excuse], [excuse])) == "not_a_summary"
    assert reason(answer(excuse), CHAT) == "not_a_summary"


@each(
    "told",
    [
        "As an AI startup founder, the user wants to hire two engineers.",
        "The assistant said it cannot help with tax returns; the user will ask an accountant.",
        "The user asked the assistant to please provide the conversation as a PDF.",
        "There are no messages left unanswered; the trip is booked.",
        "No text messages late at night, the user insists.",
        "Sorry to hear it, said the assistant, when the user told of the lost dog.",
        "Asked how it can help, the assistant offered three routes.",
        "I cannot eat gluten, said the user, and chose the rice.",
        "Well planned so far: tickets are booked, the hotel is open.",
        "Sure of the date now, the user will book.",
        "Пользователь попросил прислать переписку, ассистент не смог помочь.",
        "Как ИИ помогает врачам: пользователь готовит доклад.",
        "Не могут договориться о дате: Олег против мая.",
    ],
)
def test_a_record_that_tells_of_such_things_is_a_record(told: str) -> None:
    span = CHAT if told.isascii() else talk("Ну что, как у тебя дела сегодня, Олег?", "Хорошо, спасибо, что спросил!")
    report = judge(proposal(answer(told)), request(span))
    assert report.reason is None
    assert report.candidate is not None
    assert report.candidate.texts() == [told]


@pytest.mark.parametrize(
    "told",
    [
        "Leider kann der Nutzer am Samstag nicht kommen.",
        "Hallo Welt heißt das erste Programm.",
        "No puede pagar antes del viernes.",
        "Il ne peut pas venir avant samedi.",
        "用户没有收到包裹,请客服协助。",
    ],
)
def test_a_record_in_these_languages_is_no_excuse(told: str) -> None:
    assert not is_excuse(told)


def test_an_excuse_beside_real_items_only_loses_itself() -> None:
    report = judge(proposal(answer("I'm sorry, but I can't say more.", ["Clara marries in Porto"])), request(TRIP))
    assert report.candidate is not None
    assert report.candidate.texts() == ["Clara marries in Porto"]


def test_what_a_user_cannot_do_is_no_excuse_of_the_model() -> None:
    said = ["I can't provide the documents before Friday", "I'm sorry, but I cannot come"]
    report = judge(proposal(answer("Clara plans.", ["Clara marries in Porto", *said])), request(TRIP))
    assert report.candidate is not None
    assert set(said) <= set(report.candidate.texts())


@pytest.mark.case("6")
@pytest.mark.parametrize(
    ("span", "told", "manner"),
    [
        (TRIP, "They talked about several things.", "calm tone"),
        (CODE, "They talked about several things.", "calm tone"),
        (TOOL, "They talked about several things.", "calm tone"),
        (RUSSIAN, "Они обсудили разные вопросы.", "спокойный тон"),
        (MIXED, "Они обсудили разные вопросы.", "спокойный тон"),
    ],
    ids=["trip", "code", "tool", "russian", "mixed"],
)
def test_a_narrative_alone_over_a_span_with_facts_is_a_skeleton(
    span: tuple[Message, ...], told: str, manner: str
) -> None:
    assert reason(answer(told), span) == "skeleton"
    assert reason(answer(told, [], [manner]), span) is None


def test_a_plain_statement_without_any_value_is_a_fact_too() -> None:
    assert reason(answer("They talked."), talk("Well, I decided to quit smoking, for good.", "Great!")) == "skeleton"
    assert reason(answer("They talked."), talk("Well, smoking is a funny thing, right?", "It is!")) is None


def test_a_long_talk_holds_facts_also_in_plain_words() -> None:
    said = (
        "my brother started beekeeping behind the old barn and his neighbour keeps complaining about stings",
        "meanwhile our pottery teacher broke her wrist climbing, so the autumn exhibition was cancelled",
        "grandmother bakes walnut bread every sunday morning and trades it for goat cheese with the shepherd",
        "rain flooded several cellars in our street, the firemen pumped until midnight",
        "knitting calms me, mostly scarves and mittens for the orphanage behind the railway station",
    )
    span = talk(*(text for line in said for text in (line, "Oh, I see.")))
    assert reason(answer("They chatted about hobbies."), span) == "skeleton"
    assert reason(answer("They chatted about hobbies."), span[:4]) is None


def test_much_is_as_much_in_chinese() -> None:
    said = (
        "我们聊了花园的篱笆，邻居把他们的篱笆漆成了一种暗淡的绿色，街上没有人喜欢，后来又聊了一会儿天气和小说",
        "我弟弟在旧谷仓后面养蜜蜂，隔壁的人总是抱怨被蜇，陶艺老师爬山摔断了手腕，秋天的展览只好取消",
        "奶奶每个星期日早上烤核桃面包，拿去跟牧羊人换山羊奶酪，大雨淹了我们街上好几个地下室，消防员抽水到半夜",
        "织毛衣让我平静，多半织围巾和手套，送给火车站后面的孤儿院，表妹打算学吹长笛，可是邻居嫌吵",
    )
    recorded = (entry("F1", "奶奶住在山里"),)
    span = talk(*(text for line in said for text in (line, "好的，我明白。")))
    assert reason(answer("他们聊了各种爱好。"), span, *recorded) == "skeleton"
    assert reason(answer("他们聊了各种爱好。"), span[:4], *recorded) is None


def test_what_the_state_holds_already_is_no_reason_to_repeat_it() -> None:
    recorded = (
        entry("F1", "Order A-7781 of 2026-11-12: parcel JD0146, 84.90 EUR"),
        entry("F2", "It left on 12 November"),
    )
    assert reason(answer("The order is on its way, nothing new."), TOOL, *recorded) is None
    assert reason(answer("The order is on its way, nothing new."), TOOL) == "skeleton"


@pytest.mark.case("10")
def test_another_language_than_the_conversation_is_refused() -> None:
    assert reason(HONEST[0][2], RUSSIAN) == "wrong_language"
    assert reason(HONEST[5][2], TRIP) == "wrong_language"
    assert reason(HONEST[-1][2], TRIP) == "wrong_language"


def test_a_bilingual_talk_may_be_recorded_in_either_language() -> None:
    span = talk(
        "Как сказать по-английски, что встреча переносится на вторник из-за болезни директора?",
        "You can write: the meeting has been moved to Tuesday because the director is ill, and apologise for it.",
        "А если я хочу звучать более официально и добавить, что приношу извинения за неудобства?",
        "Then write: we regret to inform you that the meeting has been rescheduled; please accept our apologies.",
    )
    assert (
        reason(answer("Пользователь учится писать официальные письма по-английски о переносе встречи."), span) is None
    )
    assert (
        reason(answer("The user learns to write formal English letters about a meeting that was moved."), span) is None
    )


WORKS: Final = (
    "We open the north entrance in March and close the south one until the works there are over.",
    "The painters begin in the hall, and after that they go on with the stairs and the two landings.",
    "Please tell everybody that the lift stays out of order for as long as the shaft is being repaired.",
    "The new carpets will be laid as soon as the floor is dry, which takes about a week at this time of year.",
)
ERRAND: Final = "Коробки стоят в подвале, ключ висит за дверью, лампы привезут утром и оставят у входа."


def test_what_is_left_to_record_may_be_in_the_language_that_was_spoken_least() -> None:
    """If the others' facts are anchors next to the state, the quotes of one message can be all that is left."""
    span = talk(*WORKS, *WORKS, ERRAND)
    said = ["Коробки стоят в подвале", "ключ висит за дверью", "лампы привезут утром и оставят у входа"]
    told = answer("", [fact(text, len(span)) for text in said])
    assert reason(told, span) is None
    assert reason(answer("", [fact(text, 1) for text in said]), span) == "wrong_language", "control: not its source"
    assert reason(answer("", said), span) is None, "code finds the source"
    narrated = answer("Они обсудили, когда начнутся работы и что нужно сделать до конца марта.", [fact(said[0], 9)])
    assert reason(narrated, span) == "wrong_language", "the story of it all is not"


def test_foreign_names_and_code_do_not_make_another_language() -> None:
    mixed = (*RUSSIAN, *talk("Ещё: pool_size=20 не помог, опять TooManyConnectionsError.", start=6))
    assert reason(answer("", ["pool_size=20", "TooManyConnectionsError"]), mixed) is None
    assert (
        reason(
            answer("", ["«Северный мост», «СтройГрад»: the names of project and contractor are Russian"]),
            (*TRIP, *talk("By the way, the project is called «Северный мост», the contractor «СтройГрад».", start=6)),
        )
        is None
    )


def test_reasons_come_in_the_documented_order() -> None:
    assert reason(answer("I'm sorry, but I cannot help."), RUSSIAN) == "not_a_summary"
    assert reason(answer("They talked about a number of things today."), RUSSIAN) == "skeleton"


def test_a_secret_that_the_model_put_together_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    span = talk(
        "Kettle_4821 opens the wifi of the cabin.", "Is that its password?", "Yes, and Mia has the key.", "Good."
    )
    text = answer("The wifi password is Kettle_4821.", [], [fact("The password is Kettle_4821, said the user.", 1)])

    def told() -> str:
        return repr(judge(proposal(text), request(span)).candidate)

    assert "Kettle_4821" not in told()
    assert told().count("[REDACTED:password]") == 2
    monkeypatch.setattr(gate, "redact", lambda written: written)
    assert "password is Kettle_4821" in told(), "the control"


@pytest.mark.parametrize(("label", "kept"), [("User: ", ""), ("", ""), ("Anna: ", "Anna: ")])
def test_a_quoted_order_says_once_whose_words_it_is(label: str, kept: str) -> None:
    rule = "never speak for me, keep replies under 120 words."
    text = answer("They set rules.", [fact(f"{label}{rule}", 1)])
    span = talk(f"Rules: {rule}", "Understood.")
    told = judge(Proposal(text=text, finish="stop", model=OFFLINE), request(span)).candidate
    assert told is not None
    assert [item.text for item in told.items] == [f'The user wrote: "{kept}{rule}"']


def test_sources_are_attributed_and_kept_inside_the_span() -> None:
    text = answer(
        "", [fact("Clara marries in Porto on 12 June 2027", 77), "Stay under 900 francs", fact("TGV 9766", 4)]
    )
    report = judge(proposal(text), request(TRIP))
    assert report.candidate is not None
    assert [each.from_seqs for each in report.candidate.items] == [(1,), (3,), (4,)]


# --- whether it is worth it


@pytest.mark.parametrize(
    ("span", "before", "after", "refused"),
    [
        (1_000, 0, 900, False),
        (1_000, 0, 901, True),
        (1_000, 500, 1_400, False),
        (1_000, 500, 1_401, True),
        (1_000, 0, 2_000, True),
        (1_000, 800, 300, False),
    ],
)
def test_less_than_a_tenth_saved_is_not_smaller(span: int, before: int, after: int, *, refused: bool) -> None:
    assert saves_too_little(span, before, after) is refused


def block_after(text: str, span: tuple[Message, ...]) -> int:
    report = judge(proposal(text), request(span))
    assert report.candidate is not None
    result = merge(SESSION, (), report.candidate, span, 1, 1)
    return layout_of(SESSION, state_of(SESSION, result.entries), served_as="pair", estimator="script").tokens


CITIES = ["Lyon", "Graz", "Turin", "Basel", "Ghent", "Malmö", "Porto", "Split"]


@pytest.mark.case("7")
def test_the_input_given_back_word_for_word_is_not_smaller_and_an_honest_record_is() -> None:
    span = tuple(
        message(
            seq, f"Item {seq}: the delivery to {city} on {seq} May costs {seq * 37} euros, paid by card in advance."
        )
        for seq, city in enumerate(CITIES * 2, start=1)
    )
    weight = sum(estimate_text(each.content) + 4 for each in span)
    echo = answer("", [fact(each.content, each.seq) for each in span])
    assert saves_too_little(weight, 0, block_after(echo, span))
    honest = answer(
        "Sixteen deliveries in May were listed.",
        [
            fact(
                f"Deliveries 1 to 16 go to {', '.join(CITIES)} in turn, prepaid by card",
                1,
            )
        ],
    )
    assert not saves_too_little(weight, 0, block_after(honest, span))


TALKS: Final = Path(__file__).parents[2] / "bench" / "made_talks"
FRIENDS: Final = ("friends_de.jsonl", "friends_fr.jsonl", "friends_ru.jsonl", "sisters_zh.jsonl")


def _new_words_of_ten(name: str) -> float:
    """The median for ten successive messages of a user."""
    talks = [json.loads(line) for line in (TALKS / name).read_text(encoding="utf-8").splitlines()]
    said = [
        [one["content"] for one in talk["messages"] if one["role"] == "user" and one.get("content")] for talk in talks
    ]
    return median(new_word_count("\n".join(one[at : at + 10]), "") for one in said for at in range(0, len(one) - 9, 10))


def test_ten_messages_between_friends_hold_about_as_many_new_words_in_every_language() -> None:
    """If each pair of Chinese characters counted as a word, Chinese would have two and a half times as many."""
    counts = [_new_words_of_ten(name) for name in FRIENDS]
    assert max(counts) <= 2 * min(counts), counts

"""Case 22b: ten honest candidates that say everything in other words, through the whole service."""

# ruff: noqa: E501 - what people say is as long as it is

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import pytest

from app.core.model.errors import SummarizerFailedError
from app.core.model.model_io import Proposal, SummaryRequest
from app.core.model.records import Compaction
from app.core.model.schemas import SESSION
from app.core.summarizer.candidate import candidate_json_schema, parse_candidate
from app.core.text.relative import without_added_days
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.compaction.manual import CompactInput
from app.usecases.history.drafts import MessageDraft
from tests.integration.services import Service
from tests.unit.talk import answer, fact

PATIENCE = 60.0
MONDAY: Final = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Retold:
    """A talk, and an honest record of it in other words."""

    name: str
    said: tuple[str, ...]
    facts: tuple[tuple[str, tuple[int, ...]], ...]
    told: str
    locale: str = "en"


TALKS: Final = (
    Retold(
        name="dates resolved from the day of the message",
        said=(
            "Hi! My sister Clara gets married in Porto on 12 June 2027 and I'd like to go by train from Zurich.",
            "What a lovely reason to travel. You would change in Lyon and in Barcelona; two nights make it relaxed.",
            "Fine, but everything together must stay under 900 francs, hotel included. I can leave next Monday evening.",
            "Then I'd book the leg to Lyon now: TGV 9766 at 18:34 is 59 francs. Shall I look for a hotel near Perrache?",
            "Yes please. And no hostels, I'm too old for bunk beds, ha. My colleague Beat had bed bugs in one last year.",
            "Understood, no hostels. The Charlemagne has rooms from 84 francs, five minutes on foot from the platform.",
            "That sounds right to me. Tomorrow I'll ask my boss for the days off, he is usually fine with such things.",
            "Good. Once he agrees I will put both legs and the hotel into one plan, with the sums and the free days.",
        ),
        facts=(
            ("Clara, the user's sister, has her wedding in Porto: 2027-06-12", (1,)),
            ("All in all the trip, lodging included, may cost CHF 900 at the most", (3,)),
            ("Departure from Zurich: the evening of Monday, 23 November 2026", (3,)),
            ("First leg proposed: TGV 9766 to Lyon, leaving 6:34 pm, CHF 59", (4,)),
            ("Hotel Charlemagne near Perrache, from 84 francs; hostels are out", (5, 6)),
            ("The boss is asked for days off on 17 November 2026", (7,)),
        ),
        told="A train journey to a family wedding is being planned. The first leg and a hotel are chosen.",
    ),
    Retold(
        name="amounts in words and with other signs",
        said=(
            "Our kitchen is being rebuilt. The joiner wants 12,400 euros for the cabinets, which my wife finds too much.",
            "Is the worktop included in that? Oak alone can be a third of such an offer, depending on its thickness.",
            "No, the worktop comes on top: 2,350 euros. And the electrician charges 1.8 thousand for seven new sockets.",
            "Then you are at about sixteen and a half thousand euros. What did you want to spend when you began?",
            "We agreed on fifteen thousand as the limit. A quarter of it is already paid to the joiner as a deposit.",
            "So 3,750 euros are gone already. I'd ask for the worktop in beech, which saves around forty percent.",
            "Good idea. The joiner, Mr Huber, is on site every Thursday from 7:30, I could ask him about it there.",
            "Do that, and ask him for the price without the tall cupboard as well, so that you can compare them.",
        ),
        facts=(
            ("The joiner's offer for the cabinets: €12 400; the user's wife finds it too high", (1,)),
            ("Worktop extra: EUR 2350; electrician €1,800 for 7 sockets", (3,)),
            ("The couple's limit is 15,000; of it €3,750 is paid as a deposit", (5, 6)),
            ("Beech in place of oak would save about 40 % on the worktop", (6,)),
            ("Huber, the joiner, can be met on Thursdays at half past seven", (7,)),
        ),
        told="A kitchen is being rebuilt and is too expensive so far. The joiner is to be asked for two cheaper prices.",
    ),
    Retold(
        name="names inflected, in Russian",
        locale="ru",
        said=(
            "Меня зовут Марина, я веду проект «Северный мост». Нам надо уложиться в 1,2 млн рублей до 15 марта.",
            "Понял, Марина. Тогда предлагаю начать со сметы и выбрать подрядчика до конца января, чтобы был запас.",
            "Подрядчика уже выбрали: «СтройГрад», договор № 47-Б подписали вчера. Только не обещай заказчику скидок.",
            "Хорошо, скидок не обещаем. Что со сроками поставки бетона, и кто принимает его на площадке по утрам?",
            "Бетон привезут через две недели, Олег Петрович обещал. Принимает Светлана, она на площадке с 7 утра.",
            "Записал: бетон принимает Светлана с семи. Нужен ли кран, или хватит насоса, как на прошлом объекте?",
            "Нужен кран, 25 тонн, аренда 38 000 рублей в день. Я, честно говорю, очень устала от этих созвонов.",
            "Тогда закажу кран на те же дни, что и бетон, и пришлю Вам смету завтра, созвон можно не проводить.",
        ),
        facts=(
            ("Пользователя зовут Марина, она руководит «Северным мостом»", (1,)),
            ("Бюджет — один миллион двести тысяч рублей, срок — 15.03", (1,)),
            ("Договор № 47-Б со «СтройГрадом» подписан 15 ноября 2026 года", (3,)),
            ("Скидок заказчику не обещать", (3,)),
            ("Бетон ожидается около 30 ноября 2026 по словам Олега Петровича; приёмка у Светланы с 7:00", (5,)),
            ("Нужен кран на 25 т за 38 тыс. руб. в день", (7,)),
        ),
        told="Готовится стройка: подрядчик выбран, ждут бетона. Марина устала от созвонов.",
    ),
    Retold(
        name="code, versions and paths",
        said=(
            "Our worker dies with `asyncpg.exceptions.TooManyConnectionsError` since `pool_size` is 40 in settings.py.",
            "Postgres allows max_connections = 100; three workers with 40 each exceed it. Lower it or add PgBouncer.",
            "We can't add PgBouncer before v2.4.0. Let's go with pool_size=20 and `engine.dispose()` after the fork.",
            "Put it into `worker/runtime.py`: `engine.sync_engine.dispose(close=False)`, and keep max_overflow=5 there.",
            "Done, it survives the fork now. But /healthz answers only after 2500 ms when all connections are in use.",
            "Give the health check a connection of its own, with a timeout of half a second, outside of the pool.",
            "Fine, ticket OPS-311 then. The release is planned for the day after tomorrow, the tag will be v2.3.7.",
            "I'd put the health check into v2.3.7 too, since it is small, and leave the rest of OPS-311 for later.",
        ),
        facts=(
            ("Cause: 3 workers × pool_size 40 exceed max_connections = 100 (TooManyConnectionsError)", (1, 2)),
            ("Decision: pool_size=20 with max_overflow=5; PgBouncer only from 2.4.0", (3, 4)),
            ("worker/runtime.py calls engine.sync_engine.dispose(close=False) after forking", (4,)),
            ("Open: /healthz takes 2.5 s when the pool is full; it gets a connection of its own, 500 ms", (5, 6)),
            ("OPS-311 is the ticket; v2.3.7 is released on 18 November", (7,)),
        ),
        told="A connection problem was found and fixed. The health check comes with the next release.",
    ),
    Retold(
        name="German, other forms of dates and sums",
        locale="de",
        said=(
            "Wir ziehen am 1. März nach Leipzig, die Wohnung kostet 1.150 Euro warm und hat leider keinen Aufzug.",
            "Dann brauchen Sie bis Februar eine Umzugsfirma; ohne Aufzug wird es teurer. In welchem Stock wohnen Sie?",
            "Im vierten Stock, mit Klavier. Die Firma Weber verlangt 2.800 Euro, sie hat am 26. Februar noch frei.",
            "Das ist ein fairer Preis mit Klavier. Haben Sie schon an den Nachsendeauftrag bei der Post gedacht?",
            "Nein, den stelle ich übermorgen. Und meine Tochter Jana wechselt auf die Thomasschule, in die 7. Klasse.",
            "Für Jana brauchen Sie die Abmeldung der alten Schule, am besten vor den Weihnachtsferien, also bald.",
            "Die Abmeldung macht mein Mann nächste Woche. Den Schlüssel bekommen wir von Frau Kolbe, um halb neun.",
            "Gut. Dann fehlen noch der Strom und das Internet; beides geht in Leipzig ohne Weiteres innerhalb von Tagen.",
        ),
        facts=(
            ("Umzug nach Leipzig am 01.03.; Warmmiete 1150 €, kein Aufzug, 4. Stock", (1, 3)),
            ("Firma Weber transportiert auch das Klavier: 2800 €, frei am 26.02.", (3,)),
            ("Nachsendeauftrag: wird am 18. November 2026 gestellt", (5,)),
            ("Jana, die Tochter, kommt in die siebte Klasse der Thomasschule", (5,)),
            ("Den Schlüssel gibt Frau Kolbe um 8:30 Uhr", (7,)),
        ),
        told="Ein Umzug nach Leipzig wird vorbereitet. Strom und Internet sind noch offen.",
    ),
    Retold(
        name="times, units and percentages",
        said=(
            "I'm training for the marathon in Rotterdam on 11 April 2027 and want to stay below three and a half hours.",
            "That is a pace of just under five minutes per kilometre. How far do you run in a normal week at present?",
            "About 48 km, in four runs. My longest was 21 km last Sunday, in one hour 52 minutes, and my knee was fine.",
            "Good base. I would raise the week by ten percent at most, and every fourth week go back to forty or so.",
            "Ok. I weigh 74 kilos and my resting pulse is 52. I can't run on Wednesdays, because I look after my niece.",
            "Then Tuesday is for intervals and Saturday for the long run. Intervals: six times 800 metres, pause 2 min.",
            "Great. Dr. Amara told me to take iron, 100 mg a day, until the blood test on the third of December.",
            "I will plan nothing hard for the day of that test, and put the first half marathon into late January.",
        ),
        facts=(
            ("Goal: the Rotterdam marathon, April 11th 2027, under 3.5 hours", (1,)),
            ("Present week: 48 kilometres in 4 runs; longest run 21 km in 1 h 52 min", (3,)),
            ("No more than 10 % more per week; no running on Wednesdays (niece)", (4, 5)),
            ("Weight 74 kg, resting pulse 52", (5,)),
            ("Tuesdays intervals 6 × 800 m with 2-minute pauses, Saturdays the long run", (6,)),
            ("Iron 100 mg daily by order of Dr. Amara until the blood test on 3 December", (7,)),
        ),
        told="A runner prepares for a first fast marathon. The training week has its shape.",
    ),
    Retold(
        name="Russian talk mixed with English terms",
        locale="ru",
        said=(
            "Слушай, у нас в проде падает `PaymentService.charge()`: HTTP 502 от api.stripe.com, примерно 3 % запросов.",
            "Похоже на таймаут. Поставь timeout=10 и retry с jitter, а идемпотентность через заголовок Idempotency-Key.",
            "Окей, решили: timeout=10, три попытки, деплой в четверг. Ветка fix/stripe-timeout, тикет PAY-311.",
            "Принято. Не забудь метрику payments_retry_total, без неё будет непонятно, помогло ли, и дашборд под неё.",
            "Дашборд сделает Игорь, он дежурит до пятницы. Ещё: клиенты жалуются, что письмо о чеке идёт 45 минут.",
            "Это очередь: один воркер на всё. Раздели на две очереди, письма отдельно, тогда уйдут за пару минут.",
            "Сделаем после деплоя. Бюджет на инфраструктуру 90 тысяч рублей в месяц, второй воркер в него влезает.",
            "Тогда запланируй второй воркер на следующую неделю, а я опишу разделение очередей в docs/queues.md.",
        ),
        facts=(
            ("`PaymentService.charge()` получает HTTP 502 от api.stripe.com в трёх процентах случаев", (1,)),
            ("Решение: timeout=10, 3 попытки с jitter, Idempotency-Key; выкладка в четверг 19 ноября", (2, 3)),
            ("Ветка fix/stripe-timeout, задача PAY-311, метрика payments_retry_total", (3, 4)),
            ("Дашборд за Игорем, он на дежурстве до пятницы", (5,)),
            ("Письма о чеках задерживаются на ¾ часа; их ждёт отдельная очередь (docs/queues.md)", (5, 6, 8)),
            ("На инфраструктуру 90 000 ₽ в месяц", (7,)),
        ),
        told="Разобрали ошибки 502 при оплате и медленные письма, договорились об исправлениях.",
    ),
    Retold(
        name="Chinese",
        locale="zh",
        said=(
            "你好，我叫李明，在杭州开了一家茶馆。下个月我们要办一场五十人的品茶会，日期是12月20日。",
            "你好李明，五十人的品茶会很不错。场地准备在茶馆里还是在外面？大家几点到？每个人的费用是多少？",
            "就在茶馆里，下午两点半开始。每个人收费180元，包括茶点。我们的总预算是6000元，不能再多了。",
            "好的。那么收入大约九千元，扣掉预算还剩三千元。茶具够不够？要不要提前租一些杯子和桌子？",
            "杯子不够，还差二十个。供应商王姐说一个8元，明天就可以送来。桌子我们自己有，不用再租了。",
            "那就向王姐订二十个，一共160元。茶叶打算用哪几种？要不要给客人准备一份小小的说明书？",
            "用龙井和普洱，各两公斤。说明书请我妹妹李芳来写，她的邮箱是 lifang@example.com，她写得很好。",
            "好的，龙井和普洱各两公斤，说明书由李芳来写。我会把这些事情列成一张清单，方便你随时检查。",
        ),
        facts=(
            ("用户李明在杭州经营茶馆，12月20日举办50人的品茶会", (1,)),
            ("品茶会14:30开始，每人收费一百八十元，含茶点", (3,)),
            ("总预算六千元，不能超过", (3,)),
            ("向王姐订20个杯子，每个8元，11月17日可以送来", (5, 6)),
            ("龙井和普洱各2公斤；说明书由李芳写，邮箱 lifang@example.com", (7,)),
        ),
        told="正在准备茶馆的品茶会。杯子和茶叶已经确定。",
    ),
    Retold(
        name="a tool's dry answer and what follows from it",
        said=(
            "My order A-7781 should have arrived on Friday and it still isn't here. Can you find out where it is?",
            "It left Rotterdam on 12 November as parcel JD0146, weight 3.2 kg, and waits at customs since yesterday.",
            "Customs? I paid 84.90 euros and nobody told me about duties. What do I have to do, and until which day?",
            "You have to send the invoice within 14 days, or it goes back. The form is at https://customs.example/f/29.",
            "Alright, I'll do it tonight. My phone is +31 6 5550 0142 if they ask. I need the lamp for my mother's party.",
            "I noted the number. The party, is it still on the 28th? Then it can arrive in time if the form goes today.",
            "Yes, on the twenty-eighth at four in the afternoon, in Utrecht. Without the lamp I will need another gift.",
            "If it is not out of customs by Wednesday, I'd buy a gift card for the same amount, as a way out of this.",
        ),
        facts=(
            (
                "Order A-7781 (€84.90) left on 2026-11-12 as JD0146, 3.2 kilograms; at customs since 15 November",
                (1, 2, 3),
            ),
            ("The invoice has to be sent within two weeks via https://customs.example/f/29, else it is returned", (4,)),
            ("Phone for questions: +31 6 5550 0142", (5,)),
            ("The lamp is for the mother's party: 28 November, 4 pm, Utrecht", (5, 6, 7)),
            ("If it is still held on 18 November: a gift card of the same amount", (8,)),
        ),
        told="A parcel is held at customs. The form is to be sent tonight.",
    ),
    Retold(
        name="preferences and feelings, hardly any value",
        said=(
            "I'm writing a crime novel set on a ferry, and my detective is a retired pastry cook called Ottilie Brandt.",
            "I like her already. Does she solve things by smell and taste, or is the baking only her former life?",
            "By smell, mostly. She must never use a gun, and I don't want any romance, my readers hated it last time.",
            "No guns and no romance then. Who is the victim, and who has a reason to be silent about that night?",
            "The victim is the purser, a Mr Lindqvist. Please keep chapters short, I write early, before the kids wake.",
            "Short chapters suit a ferry: a cabin, a deck, a corridor. Two thousand words each would be about right.",
            "Two thousand is good. The first draft has to be with my editor Farah in six weeks, she is very strict.",
            "Then three chapters a week would do, with some days to spare for reading it all again before she does.",
        ),
        facts=(
            ("Crime novel on a ferry; the detective is Ottilie Brandt, a pastry cook in retirement", (1,)),
            ("She works by smell; guns and romance are ruled out", (3,)),
            ("Victim: Lindqvist, the purser", (5,)),
            ("Short chapters of 2,000 words", (5, 6, 7)),
            ("First draft due to Farah, the editor, on 28 December 2026", (7,)),
        ),
        told="A novel is being planned. The user writes early in the morning and knows the readers' taste.",
    ),
)


CHATTER: Final = {
    "en": (
        "By the way, the weather here has been awful all week, and I have hardly left the house except for bread.",
        "That sounds gloomy. A warm drink and some music can do wonders on such days, or a long call with a friend.",
        "Music is a good idea. I used to play the guitar when I was young, but I have forgotten nearly all of it.",
        "It comes back faster than one thinks. A few quiet minutes each evening, and the fingers remember by themselves.",
        "Maybe I will try it again. Anyway, thank you for listening to all of this, it helps me to think aloud a bit.",
        "You are welcome. Thinking aloud is often the best way to find out what one really wants, and I like to listen.",
        "So do I. My friends say that I talk too much when I am nervous, and they may be right about it, I suppose.",
        "There is nothing wrong with it. Some people pace around the room, others tidy up, and you put it into words.",
    ),
    "de": (
        "Übrigens war das Wetter hier die ganze Woche scheußlich, und ich bin außer zum Bäcker kaum vor die Tür gegangen.",
        "Das klingt trüb. Ein warmer Tee und etwas Musik wirken an solchen Tagen Wunder, oder ein Gespräch mit Freunden.",
        "Musik ist eine gute Idee. Früher habe ich Gitarre gespielt, aber ich habe fast alles davon wieder vergessen.",
        "Das kommt schneller zurück, als man denkt. Jeden Abend ein wenig, und die Finger erinnern sich ganz von selbst.",
        "Vielleicht versuche ich es noch einmal. Danke jedenfalls fürs Zuhören, es hilft mir, laut darüber zu reden.",
        "Gern geschehen. Laut zu denken ist oft der beste Weg, um herauszufinden, was man eigentlich möchte, finde ich.",
    ),
    "ru": (
        "Кстати, погода тут всю неделю ужасная, и я почти не выходила из дома, разве что за хлебом в соседний магазин.",
        "Звучит уныло. В такие дни хорошо помогают горячий чай и музыка или долгий разговор с кем-нибудь из друзей.",
        "Музыка — хорошая мысль. Раньше я играла на гитаре, но почти всё забыла, пальцы совсем уже не слушаются меня.",
        "Это возвращается быстрее, чем кажется. Понемногу каждый вечер, и пальцы сами всё вспомнят, вот увидите скоро.",
        "Может быть, попробую ещё раз. В любом случае спасибо, что выслушал, мне легче думать, когда говорю об этом.",
        "Пожалуйста. Думать вслух — часто лучший способ понять, чего хочется на самом деле, и слушать мне не трудно.",
    ),
    "zh": (
        "对了，这几天这里的天气特别糟糕，除了出门买面包，我几乎没有离开过家，心情也不太好，总是提不起精神来做事情。",
        "听起来有点沉闷。这样的日子，喝一杯热茶，听一点音乐，或者跟朋友好好聊聊天，往往会让人觉得舒服很多。",
        "音乐是个好主意。我年轻的时候弹过吉他，可是现在差不多全都忘记了，手指也变得不太灵活，真是有点可惜。",
        "其实恢复起来比想象的要快。每天晚上慢慢练习一会儿，手指自己就会想起来的，不用着急，也不用给自己压力。",
        "也许我会再试一试。不管怎么样，谢谢你愿意听我说这些，把心里的话说出来，对我整理思路真的很有帮助。",
        "不用客气。把想法说出来，常常是弄清楚自己到底想要什么的最好办法，我也很乐意听你慢慢地讲这些事情。",
    ),
}
"""The messages around the facts of a talk."""


def written(talk: Retold) -> str:
    return answer(talk.told, [fact(text, *seqs) for text, seqs in talk.facts])


async def played(begin: UnitOfWorkFactory, tenant: UUID, talk: Retold) -> tuple[Compaction, Mapping[str, Any]]:
    async def model(_: SummaryRequest) -> Proposal:
        return Proposal(text=written(talk), finish="stop", model="fake")

    service = Service(begin, tenant, model)
    conversation_id = await service.conversation(context_window=8_000, protect=[])
    drafts = [
        MessageDraft(
            role="assistant" if number % 2 else "user", content=said, created_at=MONDAY + timedelta(minutes=number)
        )
        for number, said in enumerate([*talk.said, *CHATTER[talk.locale]])
    ]
    await service.container.messages.append(tenant, conversation_id, drafts)
    asked = CompactInput(keep_tail_messages=0)
    view = await service.container.manual.compact(tenant, conversation_id, asked, timeout=PATIENCE)
    return view.compaction, (await service.row(conversation_id)).compressed_state or {}


def check_applied_as_it_is(talk: Retold, row: Compaction, state: Mapping[str, Any]) -> None:
    assert row.status == "applied"
    assert [attempt.outcome for attempt in row.attempts] == ["accepted"], "at the first attempt"
    told = [without_added_days(text) for text in state["logos"]]
    missing = [text for text, _ in talk.facts if text not in told]
    assert missing == [], "nothing reworded is taken for an invention"
    assert state["conversation_summary"] == talk.told
    assert row.entries.ungrounded == 0
    assert row.tokens_after is not None
    assert row.tokens_before is not None
    assert row.tokens_after < row.tokens_before


def test_there_are_ten_and_each_is_what_a_model_would_write() -> None:
    assert len(TALKS) == 10
    wanted = candidate_json_schema(SESSION)["required"]
    for talk in TALKS:
        candidate = parse_candidate(written(talk), SESSION)
        assert len(candidate.items) == len(talk.facts)
        assert set(wanted) >= {"logos", "pathos", "abstract", "conversation_summary"}


@pytest.mark.daily(3)
@pytest.mark.case("22b")
@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.name)
async def test_an_honest_paraphrase_is_applied_as_it_is_at_the_first_attempt(
    begin: UnitOfWorkFactory, tenant: UUID, talk: Retold
) -> None:
    check_applied_as_it_is(talk, *await played(begin, tenant, talk))


@pytest.mark.long
@pytest.mark.control("22b")
@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.name)
async def test_control_a_gate_that_wants_values_word_for_word(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, talk: Retold
) -> None:
    monkeypatch.setattr("app.core.text.values.ValueIndex.plain_sources", lambda *_: frozenset())
    with pytest.raises((AssertionError, SummarizerFailedError)):
        check_applied_as_it_is(talk, *await played(begin, tenant, talk))

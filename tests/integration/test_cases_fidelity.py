"""Cases 23 to 26, 28 and 29: what must still be there, word for word, however often it was compacted.

Each control plays the same scenario with one guard taken out.
"""

# ruff: noqa: E501 - what people say is as long as it is

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

import pytest

from app.core.model.conversation import Message
from app.core.model.errors import ModelUnavailableError, SummarizerFailedError
from app.core.model.model_io import Proposal, SummaryRequest
from app.core.model.records import Compaction, Page
from app.core.model.state import StateEntry
from app.core.text.language import detect, differs
from app.core.validation import gate
from app.core.validation.exact_checks import ExaminedCandidate
from app.providers.offline import OfflineSummarizer
from app.storage.repositories.messages import MessageRepository
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.starting import ChatInput
from app.usecases.compaction.manual import CompactInput
from app.usecases.history.drafts import MessageDraft
from tests.fakes import FAKE_PROFILE, ScriptedSummarizer, SummaryEntry
from tests.integration.services import WORDS, Service, block, honest
from tests.unit.talk import answer, fact

PATIENCE = 60.0
DOWN = ModelUnavailableError("server_error")


async def offline(request: SummaryRequest) -> Proposal:
    """The summarizer that works without a model."""
    return await OfflineSummarizer().ask(request)


async def said(service: Service, conversation_id: UUID, *texts: str) -> list[Message]:
    """Append texts of users and assistants in turn, after the messages that there are."""
    start = (await service.row(conversation_id)).last_seq
    drafts = [
        MessageDraft(role="assistant" if (start + number) % 2 else "user", content=text)
        for number, text in enumerate(texts)
    ]
    messages = await service.container.messages.append(service.tenant, conversation_id, drafts)
    await service.container.outbox.drain()
    return messages


async def folded(service: Service, conversation_id: UUID, keep: int = 0) -> Compaction:
    asked = CompactInput(keep_tail_messages=keep)
    view = await service.container.manual.compact(service.tenant, conversation_id, asked, timeout=PATIENCE)
    return view.compaction


async def entries(service: Service, conversation_id: UUID) -> list[StateEntry]:
    number = (await service.row(conversation_id)).state_version
    async with service.begin(service.tenant) as uow:
        return [entry for entry in (await uow.states.get(conversation_id, number)).entries if not entry.pruned]


def written(*candidates: str) -> list[SummaryEntry]:
    return [Proposal(text=text, finish="stop", model="fake") for text in candidates]


def without_supersession(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.core.state.merge.has_same_subject", lambda *_: False)


def without_transitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.usecases.history.anchoring.transitions", lambda *_, **__: [])


def without_grounding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "examine_candidate", lambda candidate, *_: ExaminedCandidate(candidate=candidate))


# --- case 23: a fact of turn 1

FIRST: Final = (
    "Hi! I run the depot in Turku. Our account is TK-88213-B, the contact is mira.salo@depot.example, the yearly budget"
    " is 48,700 euros and the audit is on 17 September 2027."
)
EXACT: Final = ("TK-88213-B", "mira.salo@depot.example", "48,700 euros", "17 September 2027")
AFTER: Final = (1, 3, 5, 10, 30)
SHIPMENTS: Final = (
    "Shipment {n} left for pier {m}: order HX-{n}07-{m}, paid {n},{m}50 euros on {d} May 2027 by card.",
    "Noted, shipment {n} with order HX-{n}07-{m} for pier {m} is on the list for {d} May 2027.",
)


async def remembers(service: Service, through: int) -> None:
    conversation_id = await service.conversation(protect=[], calls_per_hour=200)
    await said(service, conversation_id, FIRST, "Understood, I will keep that in mind.")
    for number in range(1, through + 1):
        texts = [
            line.format(n=number * 9 + place + 10, m=place % 7 + 2, d=(number + place) % 27 + 1)
            for place in range(9)
            for line in SHIPMENTS
        ]
        await said(service, conversation_id, *texts)
        row = await folded(service, conversation_id)
        assert row.status == "applied"
        if number in AFTER:
            remembered = (await block(service, conversation_id)).partition("<digests>")[0]  # the state and the anchors
            assert [value for value in EXACT if value not in remembered] == [], f"forgotten after {number}"
    assert f"HX-{through * 9 + 18}07-" in await block(service, conversation_id), "what came last is there too"


@pytest.mark.case("23")
@pytest.mark.parametrize("through", [5, *(pytest.param(through, marks=pytest.mark.long) for through in (10, 30))])
async def test_a_fact_of_the_first_turn_is_there_after_many_compactions(
    begin: UnitOfWorkFactory, tenant: UUID, through: int
) -> None:
    await remembers(Service(begin, tenant, offline), through)


@pytest.mark.long
@pytest.mark.control("23")
async def test_control_without_anchors_and_carrying_forward_it_is_forgotten(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two guards are removed, since either of them alone keeps the fact."""
    monkeypatch.setattr("app.usecases.history.anchoring.detect", lambda *_, **__: [])
    monkeypatch.setattr("app.core.state.merge._staying_entries", lambda *_: [])
    with pytest.raises(AssertionError, match="forgotten after 3"):
        await remembers(Service(begin, tenant, offline), 3)


# --- case 24: Postgres, then MySQL

POSTGRES: Final = "Let's use Postgres for the order store."
MYSQL: Final = "No, let's use MySQL for the order store instead of Postgres."


async def changes_its_mind(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant)
    conversation_id = await service.conversation(protect=[])
    (first,) = await said(service, conversation_id, POSTGRES)
    await service.say(conversation_id, 15)
    service.summarizer._script._entries = written(
        answer("An order store is planned.", [fact("The order store uses Postgres", first.seq)])
    )
    assert (await folded(service, conversation_id)).status == "applied"
    (second,) = await said(service, conversation_id, MYSQL)
    await service.say(conversation_id, 15)
    service.summarizer._script._entries = written(
        answer("An order store is planned.", [fact("The order store uses MySQL", second.seq, replaces=["F1"])])
    )
    assert (await folded(service, conversation_id)).status == "applied"

    stores = [entry for entry in await entries(service, conversation_id) if "order store uses" in entry.text]
    assert [entry.text for entry in stores] == ["The order store uses MySQL"], "one of the two in the state"
    assert set(stores[0].from_seqs) == {first.seq, second.seq}, "both sources"
    assert stores[0].superseded == ("The order store uses Postgres",)
    page = Page(limit=100, order="asc")
    found, _ = await service.container.anchors.page(tenant, conversation_id, page)
    statuses = {one.content: one.status for one in found if one.content in {POSTGRES, MYSQL}}
    assert statuses == {POSTGRES: "superseded", MYSQL: "active"}, "one of the two among the anchors"
    served = await block(service, conversation_id)
    assert MYSQL in served
    assert POSTGRES not in served
    async with begin(tenant) as uow:
        assert (await uow.messages.at_seq(conversation_id, first.seq)).content == POSTGRES


@pytest.mark.long
@pytest.mark.case("24")
async def test_use_postgres_then_no_mysql(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    await changes_its_mind(begin, tenant)


@pytest.mark.long
@pytest.mark.control("24")
@pytest.mark.parametrize(
    ("broken", "failing"),
    [(without_supersession, "in the state"), (without_transitions, "among the anchors")],
)
async def test_control_with_nobody_who_notices_both_stand(
    begin: UnitOfWorkFactory,
    tenant: UUID,
    monkeypatch: pytest.MonkeyPatch,
    broken: Callable[[pytest.MonkeyPatch], None],
    failing: str,
) -> None:
    broken(monkeypatch)
    with pytest.raises(AssertionError, match=failing):
        await changes_its_mind(begin, tenant)


# --- case 25: in progress, then done; proposed, then rejected


async def is_done_later(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    service = Service(begin, tenant)
    conversation_id = await service.conversation(protect=[])
    for said_now, told, replaces in (
        ("The migration of the invoices is in progress.", "The migration of the invoices is in progress", []),
        ("Meanwhile the lift of the warehouse was painted green.", "The lift of the warehouse was painted green", []),
        ("The migration of the invoices is done.", "The migration of the invoices is done", ["F1"]),
    ):
        (message,) = await said(service, conversation_id, said_now)
        await service.say(conversation_id, 15)
        told_item = fact(told, message.seq, replaces=replaces)
        service.summarizer._script._entries = written(answer("Work goes on.", [told_item]))
        assert (await folded(service, conversation_id)).status == "applied"
    texts = [entry.text for entry in await entries(service, conversation_id)]
    assert "The migration of the invoices is done" in texts
    assert "The migration of the invoices is in progress" not in texts, "not both"
    assert "The lift of the warehouse was painted green" in texts


@pytest.mark.long
@pytest.mark.case("25")
async def test_in_progress_then_done_two_compactions_later(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    await is_done_later(begin, tenant)


@pytest.mark.long
@pytest.mark.control("25")
async def test_control_without_supersession_it_is_in_progress_and_done(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_supersession(monkeypatch)
    with pytest.raises(AssertionError, match="not both"):
        await is_done_later(begin, tenant)


async def is_turned_down(service: Service) -> None:
    conversation_id = await service.conversation(protect=[])
    await said(
        service,
        conversation_id,
        "How do we cache sessions?",
        "I propose Redis as the session cache.",
        "No, not Redis. I don't want another server.",
        "Understood.",
    )
    await service.say(conversation_id, 16)
    assert (await folded(service, conversation_id)).status == "applied"
    assert "Decision: Redis" not in json.dumps((await service.row(conversation_id)).compressed_state), "no decision"


@pytest.mark.case("25")
async def test_what_the_user_rejected_is_no_decision(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """This is tested with the offline summarizer; with a model only a verifier can notice it."""
    await is_turned_down(Service(begin, tenant, offline))


@pytest.mark.control("25")
async def test_control_a_summarizer_that_decides_it_is_noticed(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    decided = answer("Caching was discussed.", [fact("Decision: Redis is the session cache", 2)])
    with pytest.raises(AssertionError, match="no decision"):
        await is_turned_down(Service(begin, tenant, *written(decided)))


# --- case 26: forty exact values

VALUES: Final = (
    *(str(UUID(int=(7919 * number) ** 9 % 2**128)) for number in range(1, 9)),
    *(f"https://example.org/docs/{number}/page-{number * 7}" for number in range(1, 9)),
    *(f"/srv/data/run{number}/out.log" for number in range(1, 9)),
    *(f"{number * 37 + 1000} EUR" for number in range(1, 9)),
    *(f"2027-{number:02}-{number * 3:02}" for number in range(1, 9)),
)


async def keeps_forty(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    vague = answer("Many cases were gone through.", ["The user went through many cases with values to be used"])
    service = Service(begin, tenant, *written(vague))
    conversation_id = await service.conversation(context_window=64_000, protect=[])
    for number, value in enumerate(VALUES, start=1):
        told = f"For case number {number} please remember that the value to be used is {value} and nothing else."
        await said(service, conversation_id, told, "All right, it is noted, let us go on with the next one then.")
    row = await folded(service, conversation_id)
    assert row.status == "applied"
    assert len(row.attempts) == 1
    served = await block(service, conversation_id)
    lost = [value for value in VALUES if value not in served]
    assert lost == [], f"lost: {len(lost)} of 40"


@pytest.mark.long
@pytest.mark.case("26")
async def test_forty_exact_values_that_the_model_leaves_out_survive(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    assert len(set(VALUES)) == 40
    await keeps_forty(begin, tenant)


@pytest.mark.long
@pytest.mark.control("26")
async def test_control_without_anchors_and_survival_they_are_lost(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two guards are removed, since either of them alone keeps the values while there is room."""
    monkeypatch.setattr("app.usecases.history.anchoring.detect", lambda *_, **__: [])
    monkeypatch.setattr("app.core.state.apply.lost_sentences", lambda *_, **__: [])
    with pytest.raises(AssertionError, match="lost: "):
        await keeps_forty(begin, tenant)


# --- case 28: languages


@dataclass(frozen=True, kw_only=True)
class Talk:
    """Messages in one language, and a summary of them in another."""

    language: str
    said: tuple[str, ...]
    foreign: str


ENGLISH_SUMMARY: Final = answer(
    "The user is furnishing an office and is waiting for the tables.",
    [fact("The user ordered the tables for the office and they have to arrive before the team moves in", 1)],
)
RUSSIAN_SUMMARY: Final = answer(
    "Пользователь обставляет офис и ждёт столы.",
    [fact("Пользователь заказал столы для офиса, они должны прийти до переезда команды", 1)],
)
LANGUAGES: Final = (
    Talk(
        language="en",
        foreign=RUSSIAN_SUMMARY,
        said=(
            "For the room on the second floor I decided to order the oak tables from Nordwind, because the team moves in soon.",
            "I put the tables on the list and will prepare the order form. Should the invoice go to the same address?",
            "Yes, to the same address. The budget for the furniture is 4,800 euros, and the lamps have to be warm.",
            "Understood, warm lamps and 4,800 euros for all of it. I will ask two other suppliers for a better price.",
        ),
    ),
    Talk(
        language="ru",
        foreign=ENGLISH_SUMMARY,
        said=(
            "Для комнаты на втором этаже я решил заказать дубовые столы у «Севера», потому что команда скоро переезжает.",
            "Добавил столы в список и подготовлю бланк заказа. Счёт отправить на тот же адрес, что и в прошлый раз?",
            "Да, на тот же адрес. Бюджет на мебель 480 тысяч рублей, а лампы должны быть с тёплым светом, это важно.",
            "Понял, тёплый свет и 480 тысяч рублей на всё. Спрошу ещё у двух поставщиков, нет ли у них дешевле.",
        ),
    ),
    Talk(
        language="zh",
        foreign=ENGLISH_SUMMARY,
        said=(
            "二楼的房间我决定从北风公司订购橡木桌子，因为团队很快就要搬进去了，所以桌子一定要提前送到，不能再拖延。",
            "我已经把桌子列在清单上，接下来会准备订货单。发票是不是和上次一样，寄到同一个地址？还有别的要求吗？",
            "对，寄到同一个地址。家具的总预算是48000元，灯光一定要暖色的，这一点对我们非常重要，请一定记住。",
            "明白了，暖色灯光，总共48000元。我会再问两家供应商，看看有没有更便宜的价格，然后明天告诉你结果。",
        ),
    ),
    Talk(
        language="ar",
        foreign=ENGLISH_SUMMARY,
        said=(
            "قررت أن أطلب طاولات من خشب البلوط للغرفة في الطابق الثاني لأن الفريق سينتقل إليها قريبا ويجب أن تصل قبل ذلك.",
            "وضعت الطاولات في القائمة وسأجهز طلب الشراء. هل أرسل الفاتورة إلى العنوان نفسه كما في المرة الماضية؟",
            "نعم إلى العنوان نفسه. ميزانية الأثاث هي 4800 يورو ويجب أن تكون المصابيح ذات ضوء دافئ فهذا مهم جدا لنا.",
            "مفهوم، ضوء دافئ و4800 يورو للجميع. سأسأل موردين آخرين عن سعر أفضل ثم أخبرك بالنتيجة غدا إن شاء الله.",
        ),
    ),
    Talk(
        language="ru",
        foreign=ENGLISH_SUMMARY,
        said=(
            "У нас в проде падает `PaymentService.charge()`: HTTP 502 от api.stripe.com, примерно 3 % запросов с утра.",
            "Похоже на таймаут: поставь `timeout=10` и retry с jitter, а идемпотентность через заголовок Idempotency-Key.",
            "Решили: timeout=10, три попытки. Ветка fix/stripe-timeout, правка в `app/payments/client.py`, def charge().",
            "Принято. Добавь метрику payments_retry_total, без неё будет непонятно, помогло ли это нам на самом деле.",
        ),
    ),
)


async def in_its_language(
    begin: UnitOfWorkFactory, tenant: UUID, talk: Talk, *script: Any
) -> tuple[Compaction, str, str]:
    """The compaction of this talk, with the said and the stored texts, which contain code and names."""
    service = Service(begin, tenant, *script)
    conversation_id = await service.conversation(context_window=8_000, protect=[])
    texts = [text for _ in range(3) for text in talk.said]
    await said(service, conversation_id, *(f"{number}. {text}" for number, text in enumerate(texts, start=1)))
    with contextlib.suppress(SummarizerFailedError):
        await folded(service, conversation_id)
    (row,) = await service.compactions(conversation_id)
    state = (await service.row(conversation_id)).compressed_state or {}
    told = "\n".join(text for value in state.values() for text in (value if isinstance(value, list) else [value]))
    return row, "\n".join(texts), told


def check_language_kept(talk: Talk, row: Compaction, spoken: str, told: str) -> None:
    assert detect(spoken) == talk.language
    assert not told or not differs(told, spoken), "language kept"
    assert (row.status == "applied") == bool(told)


NAMES: Final = ("English", "Russian", "Chinese", "Arabic", "mixed with code")
FOREIGN: Final = [
    pytest.param(talk, id=name, marks=() if name in {"Russian", "mixed with code"} else pytest.mark.long)
    for talk, name in zip(LANGUAGES, NAMES, strict=True)
]
"""Each talk with a summary in another language."""


@pytest.mark.case("28")
@pytest.mark.parametrize("talk", LANGUAGES, ids=NAMES)
async def test_a_state_is_in_the_language_of_its_talk(begin: UnitOfWorkFactory, tenant: UUID, talk: Talk) -> None:
    row, spoken, told = await in_its_language(begin, tenant, talk, offline)
    check_language_kept(talk, row, spoken, told)
    assert row.status == "applied"
    assert detect(told) == talk.language


@pytest.mark.case("28")
@pytest.mark.parametrize("talk", FOREIGN)
async def test_a_summary_in_another_language_is_never_stored(
    begin: UnitOfWorkFactory, tenant: UUID, talk: Talk
) -> None:
    row, spoken, told = await in_its_language(begin, tenant, talk, *written(talk.foreign))
    check_language_kept(talk, row, spoken, told)
    assert (row.status, row.reason) == ("rejected", "wrong_language")


@pytest.mark.control("28")
@pytest.mark.parametrize("talk", FOREIGN)
async def test_control_without_the_look_at_the_language_it_is(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, talk: Talk
) -> None:
    """Grounding is removed too: it would find none of the summary's words in what was said."""
    left = tuple(check for check in gate.CHECKS if check.__name__ != "_is_in_another_language")
    monkeypatch.setattr(gate, "CHECKS", left)
    without_grounding(monkeypatch)
    played = await in_its_language(begin, tenant, talk, *written(talk.foreign))
    with pytest.raises(AssertionError, match="language kept"):
        check_language_kept(talk, *played)


# --- case 29: pins on every path

SECRET: Final = "The door code is 4711-Ж, and the safe stands behind the third shelf: «не забудь».\n\n  – indented –"


async def manual(service: Service, conversation_id: UUID) -> None:
    await service.say(conversation_id, 20)
    await folded(service, conversation_id)


async def background(service: Service, conversation_id: UUID) -> None:
    await service.say(conversation_id, 60)
    await service.container.compaction.execute(service.queue.ids[0])


async def sync(service: Service, conversation_id: UUID) -> None:
    await service.fill(conversation_id, 2_050, words=1)
    given = ChatInput(content=WORDS.format(seq=0) * 40)
    handle = await service.container.chat.start(service.tenant, conversation_id, given)
    await asyncio.wait_for(handle.result(), PATIENCE)


async def fallback(service: Service, conversation_id: UUID) -> None:
    service.summarizer._script._entries = ["{"]
    await background(service, conversation_id)
    (row,) = await service.compactions(conversation_id)
    assert [attempt.outcome for attempt in row.attempts] == ["refused", "refused", "accepted"]


async def truncation(service: Service, conversation_id: UUID) -> None:
    service.summarizer._script._entries = [DOWN]
    await service.say(conversation_id, 100)
    await service.container.compaction.execute(service.queue.ids[0])


PATHS: Final = (manual, background, sync, fallback, truncation)


async def keeps_its_pin(begin: UnitOfWorkFactory, tenant: UUID, path: Any) -> None:
    second = ScriptedSummarizer(honest, profile=replace(FAKE_PROFILE, name="second"))
    service = Service(begin, tenant, fallbacks={"second": second})
    chosen = {"fallback_model": "second"} if path is fallback else {}
    conversation_id = await service.conversation(protect=[], **chosen)
    await service.say(conversation_id, 2)
    (message,) = await said(service, conversation_id, SECRET)
    await service.container.pins.pin(tenant, conversation_id, message.id)
    await path(service, conversation_id)
    row = await service.row(conversation_id)
    context = await service.container.context.assemble(tenant, conversation_id)
    if path is truncation:
        assert context.truncated is not None
        assert context.truncated[1] > message.seq
        assert row.state_version == 0
    else:
        assert row.boundary_seq > message.seq
    assert [one.content for one in context.messages if one.seq == message.seq] == [SECRET], "identical text"


@pytest.mark.daily(1)
@pytest.mark.case("29")
@pytest.mark.parametrize("path", PATHS)
async def test_a_pin_is_served_word_for_word(begin: UnitOfWorkFactory, tenant: UUID, path: Any) -> None:
    await keeps_its_pin(begin, tenant, path)


@pytest.mark.control("29")
@pytest.mark.parametrize(
    "path",
    [manual, *(pytest.param(path, marks=pytest.mark.long) for path in (background, sync, fallback)), truncation],
)
async def test_control_with_nobody_who_holds_it(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, path: Any
) -> None:
    async def none(*_: object, **__: object) -> list[Message]:
        return []

    monkeypatch.setattr(MessageRepository, "held", none)
    if path is truncation:
        monkeypatch.setattr("app.core.context.fitting.held_indexes", lambda _: frozenset())
    with pytest.raises(AssertionError, match="identical text"):
        await keeps_its_pin(begin, tenant, path)

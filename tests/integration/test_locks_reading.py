"""Messages are read and weighed before a conversation is locked, and only what little is left after that."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from statistics import median
from typing import Any, Final
from uuid import UUID

import pytest

from app.core.anchors.transitions import MAX_POSITIONS_BACK
from app.core.model.anchors import Anchor
from app.core.model.conversation import Conversation, Message
from app.core.model.model_io import ToolCall
from app.core.text.token_counts import Weight, weigh
from app.storage.repositories.anchors import AnchorRepository
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory
from app.usecases.chat import opening
from app.usecases.chat.starting import ChatInput, ToolResultInput
from app.usecases.chat.turn_handle import ChatResult
from app.usecases.history import anchoring, appending, drafts, preparing
from app.usecases.history.anchoring import MessageStatements, message_statements
from app.usecases.history.drafts import MessageDraft
from app.usecases.history.preparing import MAX_PREPARATIONS, weights_and_effects
from app.usecases.shared import retries
from app.usecases.verification import examining, rewriting
from app.usecases.verification.examining import ExaminationService
from bench.loop_locks import LockProbe
from tests.fakes import Reply, ScriptedChatModel
from tests.integration.services import Service, honest
from tests.integration.test_anchors import anchors
from tests.integration.test_client_tools import CALLER, WEATHER
from tests.integration.test_examination import damaged, quoting
from tests.integration.test_locks import AT_ONCE, MAX_SHARE, PATIENCE, ROUNDS

LONG: Final = (
    "We decided to use Postgres 16 for the order store. " + "The harbour was quiet and all went home early. " * 12
)
BIG: Final = "The weather in Bergen is wet, with 14 degrees at noon and wind from the west. " * 400
MANY: Final = 1_000
PLAIN: Final = "Good, and the {}th crate is there too, as far as I can see from here."
DECISION: Final = "We decided to call the boat Marta {}, and the harbour stays as it is."


@pytest.fixture
def probe() -> Iterator[LockProbe]:
    with LockProbe().watching() as watching:
        yield watching


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let appends find anchors, as in a folded conversation."""
    for module in (appending, preparing):
        monkeypatch.setattr(module, "defers_anchors", lambda _: False)


@pytest.fixture
def service(begin: UnitOfWorkFactory, tenant: UUID) -> Service:
    return Service(begin, tenant)


def watched(monkeypatch: pytest.MonkeyPatch, probe: LockProbe, work: Callable[..., Any], *owners: Any) -> list[bool]:
    """For each time that these modules do it, whether the conversation was locked."""
    found = list[bool]()

    def watching(*given: Any, **further: Any) -> Any:
        found.append(probe.is_held)
        return work(*given, **further)

    for owner in owners:
        monkeypatch.setattr(owner, work.__name__, watching)
    return found


def listened(monkeypatch: pytest.MonkeyPatch, probe: LockProbe, *contents: str) -> list[bool]:
    """For each time that a message with one of these contents is read, whether the conversation was locked."""
    found = list[bool]()

    def listening(messages: Sequence[Message], **given: Any) -> MessageStatements:
        found.extend(probe.is_held for message in messages if message.content in contents)
        return message_statements(messages, **given)

    for owner in (preparing, anchoring):
        monkeypatch.setattr(owner, "message_statements", listening)
    return found


async def append(service: Service, conversation_id: UUID, *contents: str) -> None:
    said = [MessageDraft(role="user", content=content) for content in contents]
    await service.container.messages.append(service.tenant, conversation_id, said)


async def active(service: Service, conversation_id: UUID) -> list[Anchor]:
    async with service.begin(service.tenant) as uow:
        return await uow.anchors.active(conversation_id)


# --- others write meanwhile


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("others", "before"), [(0, 1), (1, 2), (MAX_PREPARATIONS, MAX_PREPARATIONS)], ids=["control", "one", "many"]
)
async def test_a_message_is_read_again_without_the_lock_where_others_wrote_meanwhile(
    service: Service, monkeypatch: pytest.MonkeyPatch, probe: LockProbe, others: int, before: int
) -> None:
    """A message is read at most ``MAX_PREPARATIONS`` times without the lock; after that it is read under the lock."""
    conversation_id = await service.conversation()
    loop, left = asyncio.get_running_loop(), others

    def disturbed(texts: Any) -> Any:
        nonlocal left
        if left and not probe.is_held:
            left -= 1
            asyncio.run_coroutine_threadsafe(append(service, conversation_id, "Hello."), loop).result(PATIENCE)
        return weights_and_effects(texts)

    monkeypatch.setattr(preparing, "weights_and_effects", disturbed)
    held = listened(monkeypatch, probe, LONG)
    await append(service, conversation_id, LONG)

    assert held == [False] * before + [True] * (others == MAX_PREPARATIONS)
    (anchor,) = await active(service, conversation_id)
    assert (anchor.seq, (await service.row(conversation_id)).last_seq) == (others + 1, others + 1)


# --- a few words and many anchors


def decisions(count: int) -> list[str]:
    return [f"We decided to use Postgres {number} for the store {number * 7_919 % 997}." for number in range(count)]


async def with_anchors(service: Service, count: int) -> UUID:
    conversation_id = await service.conversation(context_window=200_000, triggers=[])
    said = decisions(count)
    for first in range(0, count, 100):
        await append(service, conversation_id, *said[first : first + 100])
    return conversation_id


async def everything(uow: UnitOfWork, conversation: Conversation, _: MessageStatements) -> list[Anchor]:
    """All active anchors, as if each message could change any of them."""
    return await uow.anchors.active(conversation.id, limit=anchoring.MAX_ACTIVE_ANCHORS)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("narrow", [True, False], ids=["narrow", "control"])
async def test_a_few_words_read_the_anchors_that_they_could_change(
    service: Service, monkeypatch: pytest.MonkeyPatch, *, narrow: bool
) -> None:
    conversation_id = await service.conversation(context_window=200_000, triggers=[])
    await append(service, conversation_id, "We decided to use Jenkins for the builds.", *decisions(60))
    if not narrow:
        monkeypatch.setattr(anchoring, "_within_reach", everything)
    read: dict[str, int] = {}
    for name in ("active", "active_since", "still_active"):
        monkeypatch.setattr(AnchorRepository, name, _counting(getattr(AnchorRepository, name), read))
    await append(service, conversation_id, "The sun is out and the boats are dry.")
    few = sum(read.values())
    await append(service, conversation_id, "Correction: we use GitLab for the builds instead of Jenkins.")
    monkeypatch.undo()

    assert (few <= MAX_POSITIONS_BACK and sum(read.values()) <= 2 * (MAX_POSITIONS_BACK + 1)) is narrow, read
    there = [anchor.content for anchor in await active(service, conversation_id)]
    assert "We decided to use Jenkins for the builds." not in there
    assert len(there) > MAX_POSITIONS_BACK * 2


def _counting(method: Callable[..., Awaitable[list[Anchor]]], read: dict[str, int]) -> Callable[..., Any]:
    async def counting(*given: Any, **further: Any) -> list[Anchor]:
        found = await method(*given, **further)
        read[method.__name__] = read.get(method.__name__, 0) + len(found)
        return found

    return counting


@pytest.mark.usefixtures("at_once")
@pytest.mark.long
@pytest.mark.parametrize(("said", "most"), [(PLAIN, MAX_SHARE), (DECISION, 0.8)], ids=["plain", "decision"])
async def test_a_few_words_hold_the_lock_shortly_beside_a_thousand_anchors(
    service: Service, monkeypatch: pytest.MonkeyPatch, probe: LockProbe, said: str, most: float
) -> None:
    """The CPU under the lock of appends, compared with that of appends that read all anchors, in turns."""
    conversation_id = await with_anchors(service, MANY)
    within_reach = anchoring._within_reach
    taken: dict[Any, list[float]] = {within_reach: [], everything: []}
    probe.taken()
    for number in range(ROUNDS):
        for way, times in taken.items():
            monkeypatch.setattr(anchoring, "_within_reach", way)
            await append(service, conversation_id, said.format(number))
            times.append(probe.taken())
    narrow, whole = (median(times[1:]) for times in taken.values())
    assert narrow < most * whole, taken


# --- what comes with a turn, copies, mending


async def started(service: Service, conversation_id: UUID, given: ChatInput) -> ChatResult:
    handle = await service.container.chat.start(service.tenant, conversation_id, given)
    return await asyncio.wait_for(handle.result(), PATIENCE)


async def nothing(*_: Any) -> dict[str, MessageDraft]:
    return {}


@pytest.mark.parametrize("apart", [True, False], ids=["apart", "control"])
async def test_results_of_a_client_s_tools_are_weighed_once_and_before(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, probe: LockProbe, *, apart: bool
) -> None:
    call = Reply(calls=(ToolCall(id="0", name=WEATHER.name, arguments={"city": "Bergen"}),))
    service = Service(begin, tenant, chat=ScriptedChatModel(call, "I see.", profile=CALLER))
    conversation_id = await service.conversation(context_window=100_000)
    first = await started(service, conversation_id, ChatInput(content="How is the weather?", tools=(WEATHER,)))
    if not apart:
        monkeypatch.setattr(opening, "_weighed_results", nothing)
    held = list[bool]()

    def weighing(role: Any, content: str, parts: Sequence[Any] = ()) -> Weight:
        held.extend(probe.is_held for part in parts if part.get("content") == BIG)
        return weigh(role, content, parts)

    monkeypatch.setattr(drafts, "weigh", weighing)
    given = ToolResultInput(tool_call_id=first.open_calls[0].id, content=BIG)
    await started(service, conversation_id, ChatInput(results=(given,), tools=(WEATHER,)))

    assert (held == [False]) is apart
    assert any(held) is not apart


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("apart", [True, False], ids=["apart", "control"])
async def test_a_message_is_read_before_with_the_messages_that_come_with_it(
    service: Service, monkeypatch: pytest.MonkeyPatch, probe: LockProbe, *, apart: bool
) -> None:
    """The messages that come with it count as earlier ones, as if each had been appended alone."""
    conversation_id = await service.conversation(context_window=100_000)
    said = "Correction: we use MySQL for the order store instead of Postgres."
    held = listened(monkeypatch, probe, said)
    if not apart:
        monkeypatch.setattr(preparing, "MAX_PREPARATIONS", 1)
        monkeypatch.setattr(preparing.PreparedEffects, "is_current", lambda *_: False)
    history = [MessageDraft(role="user", content=LONG), MessageDraft(role="assistant", content="Noted.")]
    given = ChatInput(history=tuple(history), content=said)
    await started(service, conversation_id, given)

    assert held == ([False] if apart else [False, True])
    found = [(one.seq, one.type, one.status) for one in await anchors(service, conversation_id)]
    assert found == [(1, "decision", "superseded"), (3, "correction", "active")]


@pytest.mark.daily(1)
@pytest.mark.parametrize("changes", [0, 1, MAX_PREPARATIONS], ids=["alone", "once", "always"])
async def test_a_state_is_examined_before_it_is_mended(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, probe: LockProbe, changes: int
) -> None:
    """If another version came, it is examined again, finally in the transaction; it is cut without the lock."""
    service = Service(begin, tenant, honest, quoting)
    conversation_id = await damaged(service)
    version = (await service.row(conversation_id)).state_version
    judged = watched(monkeypatch, probe, examining._damages_and_repairs, examining)
    cut = watched(monkeypatch, probe, rewriting._within_cap, rewriting)
    looked, left = ExaminationService._examine_unlocked, changes

    async def disturbed(*given: Any) -> Any:
        nonlocal left
        found = await looked(*given)
        if left:
            left -= 1
            await service.container.states.restore(tenant, conversation_id, version)
        return found

    monkeypatch.setattr(ExaminationService, "_examine_unlocked", disturbed)
    done = await service.container.examination.examine(tenant, conversation_id, mend=True)

    tries = 1 if changes == MAX_PREPARATIONS else 0
    assert judged[: changes + 1] == [False] * min(changes + 1, MAX_PREPARATIONS) + [True] * tries
    assert cut == [False]
    assert (done.state_version, done.state_version_now) == (version + changes, version + changes + 1)
    assert done.repairs


@pytest.mark.long
async def test_control_what_mends_is_cut_under_the_lock_where_no_further_try_is_left(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch, probe: LockProbe
) -> None:
    service = Service(begin, tenant, honest, quoting)
    conversation_id = await damaged(service)
    cut = watched(monkeypatch, probe, rewriting._within_cap, rewriting)
    monkeypatch.setattr(retries, "MAX_TRIES", AT_ONCE)
    await service.container.examination.examine(tenant, conversation_id, mend=True)

    assert cut == [True]

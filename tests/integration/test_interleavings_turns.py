"""Turns with tools of both sides, at once with stops, repeated requests, files and forks; see ``test_interleavings``.

Each request to the model is checked: every call has its result before anything else is said, and no other result comes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any, Final
from uuid import UUID, uuid4

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.conversation import Usage
from app.core.model.errors import ModelFailedError, ModelUnavailableError
from app.core.model.model_io import ChatRequest, StepEvent, StepFinish, TextDelta, ToolCall, ToolSpec
from app.core.text.parts import Part
from app.providers.messages import CALL_ID, to_provider
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.chat_input import ChatInput, ToolResultInput
from app.usecases.chat.turn_handle import ChatResult
from app.usecases.files.attaching import NewFile
from app.usecases.openai.forking import ForkPoint
from app.usecases.shared.exchange import exchange_of
from app.usecases.shared.idempotency import Idem
from tests.fakes import FAKE_PROFILE, ScriptedChatModel
from tests.integration.services import Service, history
from tests.integration.test_interleavings import PATIENCE, World

STEPS: Final = 50
TRIES: Final = 20
REASONS: Final = ("rate_limited", "bad_request", "timeout", "context_too_long", "previous_response_not_found")
WEATHER: Final = ToolSpec(name="weather", description="The weather.", parameters={"type": "object", "properties": {}})
FILE: Final = NewFile(name="tides.txt", media_type="text/plain", data=b"High water at 18:45.")


class Caller(ScriptedChatModel):
    """A chat model that calls tools, some of which nobody has, and fails now and then."""

    def __init__(self, chance: random.Random, numbers: Iterator[int], *, stateful: bool) -> None:
        super().__init__(profile=replace(FAKE_PROFILE, calls_tools=True, stateful=stateful))
        self._chance = chance
        self._numbers = numbers
        self.faults: list[object] = []

    async def step(self, request: ChatRequest) -> AsyncIterator[StepEvent]:
        answered = request.continues.open_calls if request.continues else ()
        self.faults += faults_in(to_provider(list(request.messages), lambda _: False, answered), answered)
        await asyncio.sleep(self._chance.uniform(0, 0.05))
        if self._chance.random() < 0.1:
            raise ModelUnavailableError(self._chance.choice(REASONS), retryable=False)
        calls = self._calls([tool.name for tool in request.tools])
        text = "" if calls and self._chance.random() < 0.5 else f"This is reply number {next(self._numbers)} of all."
        for piece in filter(None, (text[:5], text[5:])):
            yield TextDelta(text=piece)
            await asyncio.sleep(self._chance.uniform(0, 0.03))
        for call in calls:
            yield call
        yield StepFinish(
            reason="tool_call" if calls else "stop",
            usage=Usage(input_tokens=500, output_tokens=10),
            model=self.profile.name,
            response_id=f"response_{next(self._numbers)}" if self.profile.stateful else None,
        )

    def _calls(self, offered: list[str]) -> list[ToolCall]:
        if not offered or self._chance.random() < 0.5:
            return []
        names = self._chance.choices([*offered, "invented"], k=self._chance.randint(1, 3))
        ids = [f"call {next(self._numbers)}" for _ in names]
        return [
            ToolCall(id=id_, name=name, arguments={}, details={CALL_ID: id_} if self.profile.stateful else {})
            for id_, name in zip(ids, names, strict=True)
        ]


def faults_in(messages: list[ModelMessage], answered: tuple[Part, ...]) -> list[object]:
    """Calls without a result, and results without a call; the ``answered`` calls are those that the provider keeps."""
    faults: list[object] = []
    waiting = {str((call.get("details") or {}).get(CALL_ID) or call["id"]) for call in answered}
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                faults += [] if part.tool_call_id in waiting else [("no call", part.tool_call_id)]
                waiting.discard(part.tool_call_id)
            elif isinstance(part, UserPromptPart) and waiting:
                faults.append(("no result", waiting))
        if isinstance(message, ModelResponse):
            faults += [("no result", waiting)] if waiting else []
            waiting = {part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)}
    return faults + ([("no result", waiting)] if waiting else [])


class Turns(World):
    """One conversation and two processes, with everything that a client can do to a turn."""

    def __init__(self, begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, seed: int) -> None:
        super().__init__(begin, engine, tenant, seed)
        self.model = Caller(self.chance, count(1), stateful=bool(seed % 2))
        self.processes = [
            Service(begin, tenant, self._summary, owner=f"process:{name}", chat=self.model) for name in ("one", "other")
        ]
        self.service = self.processes[0]
        self.begun = 0
        self.differing: list[object] = []
        self._files: list[UUID] = []

    async def play(self) -> None:
        self.conversation_id = await self.service.conversation(sync_deadline=2.0)
        await self.append(self.service)
        actions: list[Callable[[Service], Awaitable[None]]] = []
        actions += [self.chat] * 6 + [self.results] * 4 + [self.go_on, self.stop, self.regenerate] * 2 + [self.work] * 2
        actions += [self.attach, self.detach, self.fork, self.append, self.compact, self.erase_last, self.change]
        actions += [self.restore, self.pin, self.let_time_pass, self.kill]
        for _ in range(STEPS):
            self._begin(self.chance.choice(actions), self.any)
            await asyncio.sleep(self.chance.uniform(0, 0.2))
        await asyncio.wait(self._tasks, timeout=PATIENCE)
        for _ in range(3):
            await self.let_time_pass(self.service)
            for process in self.processes:
                await self.work(process)

    async def _turn(self, service: Service, **given: Any) -> None:
        """A turn, which is asked for again when it has ended."""
        idem = Idem(key=str(uuid4()), fingerprint="f")
        results: list[ChatResult] = []
        for _ in range(2):
            turn = await service.container.chat.start(
                service.tenant, self.conversation_id, ChatInput(**given), idem=idem
            )
            self.begun += 1
            results.append(await turn.result())
        done, again = results
        self.acknowledged |= {one.id: one.content for one in (done.message, done.reply) if one.status != "erased"}
        self.replies.append((done.message.id, done.reply.id))
        if "erased" not in {done.reply.status, again.reply.status} and shown(done) != shown(again):
            self.differing.append((shown(done), shown(again)))

    async def chat(self, service: Service) -> None:
        await self._turn(service, content=self._said() * 2, tools=self.chance.choice([(), (WEATHER,)]))

    async def go_on(self, service: Service) -> None:
        await self._turn(service)

    async def regenerate(self, service: Service) -> None:
        await self._turn(service, regenerates=True)

    async def results(self, service: Service) -> None:
        async with service.begin(service.tenant) as uow:
            exchange = await exchange_of(uow, self.conversation_id)
        if calls := exchange.left_to_client(service.container.chat._shell.resolver.own_tools):
            given = tuple(ToolResultInput(tool_call_id=id_, content="Sunny.") for id_ in calls)
            await self._turn(service, results=given, tools=(WEATHER,))

    async def stop(self, service: Service) -> None:
        await service.container.chat.interrupt(service.tenant, self.conversation_id)

    async def attach(self, service: Service) -> None:
        self._files.append((await service.container.files.add(service.tenant, self.conversation_id, FILE)).id)

    async def detach(self, service: Service) -> None:
        if self._files:
            await service.container.files.remove(service.tenant, self.conversation_id, self._files.pop())

    async def fork(self, service: Service) -> None:
        last = (await service.row(self.conversation_id)).last_seq
        place = ForkPoint(conversation_id=self.conversation_id, through_seq=self.chance.randint(max(1, last - 6), last))
        fork = await service.container.forks.fork(service.tenant, place, Idem(key=str(uuid4()), fingerprint="f"))
        turn = await service.container.chat.start(service.tenant, fork, ChatInput(content="And here?"))
        await turn.result()

    async def erase_last(self, service: Service) -> None:
        last = (await service.row(self.conversation_id)).last_seq
        async with service.begin(service.tenant) as uow:
            message = await uow.messages.at_seq(self.conversation_id, last)
        await service.container.erasure.erase(service.tenant, self.conversation_id, message.id)
        self.erased.add(message.id)

    async def let_time_pass(self, _: Service) -> None:
        with suppress(DBAPIError):  # its updates of all rows may meet others
            await super().let_time_pass(_)

    async def check(self) -> None:
        assert not self.model.faults
        assert not self.differing, "a repeated request has another answer"
        service, id_ = self.service, self.conversation_id
        row = await service.row(id_)
        async with service.begin(service.tenant) as uow:
            assert row.total == await uow.messages.sums_at(id_, row.last_seq)
            assert await uow.turns.running(id_) is None, "nothing is stuck"
        stored = {one.id: one for one in await history(service, id_)}
        assert [one.seq for one in stored.values()] == list(range(1, row.last_seq + 1))
        for message_id, content in self.acknowledged.items():
            assert stored[message_id].status == "erased" or stored[message_id].content == content
        await self._goes_on()

    async def _goes_on(self) -> None:
        """Whatever happened, the next message is answered; the model fails sometimes."""
        for _ in range(TRIES):
            with suppress(ModelFailedError):
                turn = await self.service.container.chat.start(
                    self.service.tenant, self.conversation_id, ChatInput(content="And now?")
                )
                await turn.result()
                return
        raise AssertionError("no message is answered any more")


def shown(result: ChatResult) -> object:
    """What a client is shown of a reply."""
    calls = [(call.id, call.name, call.arguments) for call in result.open_calls]
    return result.reply.id, result.reply.content, result.finish, calls


@pytest.mark.case("46")
@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 7)])
async def test_whatever_comes_at_once_a_turn_ends_and_the_next_begins(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, seed: int
) -> None:
    world = Turns(begin, engine, tenant, seed)
    await world.play()
    await world.check()
    assert world.begun > 3, "much was done"


def test_control_a_call_without_its_result_is_found() -> None:
    call = ModelResponse(parts=[ToolCallPart(tool_name="weather", args={}, tool_call_id="1")])
    assert faults_in([call], ()) == [("no result", {"1"})]

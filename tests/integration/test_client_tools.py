"""A client's tools inside turns, before scripted providers on the wire: left open, answered, refused, taken up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.context.formats.calls import STUB_RESULT
from app.core.context.tools import MAX_CALLS
from app.core.model.conversation import Message
from app.core.model.errors import (
    ContextOverWindowError,
    ConversationMovedOnError,
    InvalidInputError,
    ModelFailedError,
    TooLargeError,
    ToolsPendingError,
)
from app.core.model.model_io import CallSettings, ToolCall, ToolName, ToolSpec
from app.core.text.parts import Part
from app.providers.keys import Keys
from app.providers.registry import ModelRegistry
from app.settings import Settings
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat import toolbox
from app.usecases.chat.starting import ChatInput, ToolResultInput
from app.usecases.chat.tool_loop import CALLS_USED_UP
from app.usecases.chat.turn_handle import ChatResult, TurnHandle
from app.usecases.compaction.manual import CompactInput
from app.usecases.history.drafts import MessageDraft
from app.usecases.openai.answering import Prompt
from app.usecases.openai.retry_keys import RequestAttempt
from app.usecases.openai.stored_answers import Request
from app.usecases.shared.idempotency import Idem
from tests.chosen_settings import chosen_settings
from tests.fakes import FAKE_PROFILE, Reply, ScriptedChatModel
from tests.gemini_server import Gemini, running_gemini
from tests.integration import tool_samples
from tests.integration.services import Service, history, roles
from tests.openai_server import OpenAI, running_openai

PATIENCE = 30.0
OWN = f"{tool_samples.__name__}:order_status"
WEATHER = ToolSpec(
    name="weather",
    description="The weather of a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
DIED = RuntimeError("the process died")
CALLER = replace(FAKE_PROFILE, calls_tools=True)


class Wire(Protocol):
    """A scripted provider, with what tests need to know of its requests and answers."""

    model: str

    def registry(self) -> ModelRegistry: ...
    def calls(self, *calls: tuple[str, Mapping[str, Any]], text: str = "") -> None: ...
    def says(self, text: str) -> None: ...
    def fails(self) -> None: ...
    def holds(self) -> None: ...
    async def reached(self, chats: int) -> None: ...
    def declared(self) -> list[str]: ...
    def results(self) -> list[str]: ...
    def system(self) -> str: ...


@dataclass
class GeminiWire:
    gemini: Gemini
    model: str = "google:gemini-3-flash-preview"

    def registry(self) -> ModelRegistry:
        return ModelRegistry(chat=self.model, keys=Keys(google_api_key="key", google_base_url=self.gemini.url))

    def calls(self, *calls: tuple[str, Mapping[str, Any]], text: str = "") -> None:
        made = [{"name": name, "args": args} for name, args in calls]
        self.gemini.script("chat", {"name": "calls", "text": text, "calls": made})

    def says(self, text: str) -> None:
        self.gemini.script("chat", {"name": "text", "text": text})

    def fails(self) -> None:
        self.gemini.script("chat", "error_500")

    def holds(self) -> None:
        self.gemini.script("chat", {"name": "text", "text": "Slowly said.", "hold": True})

    async def reached(self, chats: int) -> None:
        await asyncio.to_thread(self.gemini.wait_for, "chat", chats)

    def declared(self) -> list[str]:
        return [one["name"] for tool in self._last.get("tools", []) for one in tool["functionDeclarations"]]

    def results(self) -> list[str]:
        parts = [part for content in self._last["contents"] for part in content["parts"]]
        given = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        return [str(next(iter(one.values()))) for one in given]

    def system(self) -> str:
        return "".join(part["text"] for part in self._last["systemInstruction"]["parts"])

    @property
    def _last(self) -> dict[str, Any]:
        found: dict[str, Any] = self.gemini.requests("chat")[-1]["body"]
        return found


@dataclass
class OpenAIWire:
    openai: OpenAI
    model: str = "openai-responses:gpt-5"

    def registry(self) -> ModelRegistry:
        return ModelRegistry(chat=self.model, keys=Keys(openai_api_key="key", openai_base_url=self.openai.url))

    def calls(self, *calls: tuple[str, Mapping[str, Any]], text: str = "") -> None:
        self.openai.script({"text": text, "calls": [{"name": name, "args": args} for name, args in calls]})

    def says(self, text: str) -> None:
        self.openai.script(text)

    def fails(self) -> None:
        self.openai.script({"status": 500})

    def holds(self) -> None:
        self.openai.script({"text": "Slowly said.", "hold": True})

    async def reached(self, chats: int) -> None:
        for _ in range(1_000):
            if len(self.openai.chats) >= chats:
                return
            await asyncio.sleep(0.01)
        raise TimeoutError

    def declared(self) -> list[str]:
        return [tool["name"] for tool in self.openai.last.body.get("tools", [])]

    def results(self) -> list[str]:
        seen = self.openai.last.seen
        return [str(item["output"]) for item in seen if item.get("type") == "function_call_output"]

    def system(self) -> str:
        return str(self.openai.last.body["instructions"])


@pytest.fixture(scope="module")
def gemini() -> Iterator[Gemini]:
    with running_gemini() as server:
        yield server


@pytest.fixture(scope="module")
def openai() -> Iterator[OpenAI]:
    with running_openai() as server:
        yield server


@pytest.fixture(params=["gemini", "openai"])
def wire(request: pytest.FixtureRequest, gemini: Gemini, openai: OpenAI) -> Iterator[Wire]:
    server = gemini if request.param == "gemini" else openai
    server.reset()
    yield GeminiWire(gemini) if request.param == "gemini" else OpenAIWire(openai)
    server.release()


@pytest.fixture
async def service(wire: Wire, begin: UnitOfWorkFactory, tenant: UUID) -> AsyncIterator[Service]:
    """A service with a provider for chat, and a tool of the operator."""
    registry = wire.registry()
    yield Service(begin, tenant, chat=registry.chat(), settings=chosen_settings(tools=(OWN,)))  # type: ignore[arg-type]
    await registry.close()


def scripted(begin: UnitOfWorkFactory, tenant: UUID, *script: str | Reply | Exception) -> Service:
    return Service(begin, tenant, chat=ScriptedChatModel(*script), settings=chosen_settings(tools=(OWN,)))


def call(*names: str) -> Reply:
    return Reply(calls=tuple(ToolCall(id=str(n), name=name, arguments={}) for n, name in enumerate(names)))


async def start(service: Service, conversation_id: UUID, idem: Idem | None = None, **given: Any) -> TurnHandle:
    asked = ChatInput(**{"tools": (WEATHER,), **given})
    return await service.container.chat.start(service.tenant, conversation_id, asked, idem=idem)


async def chat(service: Service, conversation_id: UUID, idem: Idem | None = None, **given: Any) -> ChatResult:
    return await asyncio.wait_for((await start(service, conversation_id, idem, **given)).result(), PATIENCE)


def came(*results: tuple[str, Any]) -> dict[str, Any]:
    return {"results": tuple(ToolResultInput(tool_call_id=id_, content=content) for id_, content in results)}


class TestARoundTrip:
    async def test_ends_with_the_call_and_goes_on_from_its_result(self, service: Service, wire: Wire) -> None:
        conversation_id = await service.conversation(context_window=16_000)
        wire.calls(("weather", {"city": "Rome"}), text="Let me ask.")
        handle = await start(service, conversation_id, content="Rain in Rome?", instructions="Answer like a sailor.")
        told = [event async for event in handle.events()]
        asked = told[-1].result
        assert asked is not None
        (open_call,) = asked.open_calls

        assert (open_call.name, open_call.arguments, asked.finish) == ("weather", {"city": "Rome"}, "tool_call")
        assert (asked.reply.content, asked.reply.parts[0]["id"]) == ("Let me ask.", open_call.id)
        assert [event.type for event in told[-2:]] == ["tool.called", "reply.completed"]
        assert told[-2].data == {"id": open_call.id, "name": "weather", "arguments": {"city": "Rome"}}
        assert wire.declared() == ["order_status", "weather"]
        assert wire.system().endswith("\n\nAnswer like a sailor.")

        wire.says("It pours.")
        answered = await chat(service, conversation_id, **came((open_call.id, {"sky": "rain"})))
        assert await roles(service, conversation_id) == ["user", "assistant", "tool", "assistant"]
        assert (answered.reply.content, answered.finish, answered.open_calls) == ("It pours.", "stop", ())
        assert (answered.message.role, answered.message.parts[0]["content"]) == ("tool", {"sky": "rain"})
        assert len(wire.results()) == 1
        assert "rain" in wire.results()[0]
        assert "sailor" not in wire.system()
        usage = answered.reply.usage
        assert usage is not None
        assert usage["output_tokens"] > 0

    @pytest.mark.daily(1)
    async def test_with_a_tool_of_ours_in_the_same_step(self, service: Service, wire: Wire) -> None:
        conversation_id = await service.conversation(context_window=16_000)
        wire.calls(("weather", {"city": "Rome"}), ("order_status", {"number": 7}), ("weather", {"city": "Oslo"}))
        handle = await start(service, conversation_id, content="Will order 7 get wet?")
        begun, *_, ended = [event async for event in handle.events()]
        asked = ended.result
        assert asked is not None

        assert begun.data["reply_id"] == str(asked.reply.id)
        assert [one.arguments["city"] for one in asked.open_calls] == ["Rome", "Oslo"]
        assert await roles(service, conversation_id) == ["user", "assistant", "tool"]
        assert asked.reply.role == "assistant"
        assert asked.reply.usage is not None
        assert asked.reply.usage["input_tokens"] > 0
        rome, oslo = (one.id for one in asked.open_calls)

        wire.says("Yes, in Oslo.")
        answered = await chat(service, conversation_id, **came((oslo, "snow"), (rome, "sun")))
        assert wire.results() == ["sun", "Order 7 has left harbour 12.", "snow"]
        assert answered.reply.content == "Yes, in Oslo."

    async def test_that_is_interrupted_in_a_tool_of_ours_keeps_the_calls_and_ends(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        settings = Settings(tools=(f"{tool_samples.__name__}:sleeps",))
        service = Service(begin, tenant, chat=ScriptedChatModel(call("weather", "sleeps"), "So."), settings=settings)
        conversation_id = await service.conversation()
        handle = await start(service, conversation_id, content="Go.")
        async for event in handle.events():
            if event.type == "message.created" and event.data["role"] == "assistant":
                await service.container.chat.interrupt(service.tenant, conversation_id)
        result = await handle.result()

        _, calls, reply = await history(service, conversation_id)
        assert (result.reply.id, reply.status) == (reply.id, "interrupted")
        assert len(calls.parts) == 2
        assert (await chat(service, conversation_id, content="So?")).reply.content == "So."


@pytest.mark.parametrize("wire", ["openai", pytest.param("gemini", marks=pytest.mark.long)], indirect=True)
class TestGoingOn:
    async def test_a_new_message_in_its_place_is_answered_beside_the_stub(self, service: Service, wire: Wire) -> None:
        conversation_id = await service.conversation(context_window=16_000)
        wire.calls(("weather", {"city": "Rome"}), ("weather", {"city": "Oslo"}))
        asked = await chat(service, conversation_id, content="Rain?")
        wire.says("All right.")
        given = came((asked.open_calls[0].id, "sun"))
        await chat(service, conversation_id, content="Never mind Oslo.", **given)

        assert wire.results() == ["sun", STUB_RESULT]
        assert await roles(service, conversation_id) == ["user", "assistant", "tool", "user", "assistant"]
        with pytest.raises(InvalidInputError, match="later messages came"):
            await chat(service, conversation_id, **came((asked.open_calls[1].id, "snow")))

    async def test_twice_has_one_effect(self, service: Service, wire: Wire) -> None:
        conversation_id = await service.conversation(context_window=16_000)
        first, second = Idem(key="one", fingerprint="one"), Idem(key="two", fingerprint="two")
        wire.calls(("weather", {"city": "Rome"}), ("order_status", {"number": 7}))
        asked = await chat(service, conversation_id, first, content="Rain?")
        again = await chat(service, conversation_id, first, content="Rain?")
        assert (again.reply.id, again.finish) == (asked.reply.id, "tool_call")
        assert [(one.id, one.name) for one in again.open_calls] == [(one.id, one.name) for one in asked.open_calls]

        wire.says("No.")
        given = came((asked.open_calls[0].id, "sun"))
        answered = await chat(service, conversation_id, second, **given)
        assert (await chat(service, conversation_id, second, **given)).reply.id == answered.reply.id
        once_more = await chat(service, conversation_id, first, content="Rain?")
        assert [one.name for one in once_more.open_calls] == ["weather"]
        assert await roles(service, conversation_id) == ["user", "assistant", "tool", "tool", "assistant"]

    async def test_that_failed_after_the_results_is_taken_up(self, service: Service, wire: Wire) -> None:
        conversation_id = await service.conversation(context_window=16_000)
        wire.calls(("weather", {"city": "Rome"}))
        asked = await chat(service, conversation_id, content="Rain?")
        given = came((asked.open_calls[0].id, "sun"))
        wire.fails()
        with pytest.raises(ModelFailedError):
            await chat(service, conversation_id, **given)
        with pytest.raises(InvalidInputError, match="has its result already"):
            await chat(service, conversation_id, **given)

        wire.says("No rain.")
        answered = await chat(service, conversation_id)
        assert (answered.reply.content, answered.message.role) == ("No rain.", "tool")
        assert wire.results() == ["sun"]
        assert await roles(service, conversation_id) == ["user", "assistant", "tool", "assistant"]

    async def test_is_interrupted_after_the_results(self, service: Service, wire: Wire) -> None:
        conversation_id = await service.conversation(context_window=16_000)
        wire.calls(("weather", {"city": "Rome"}))
        asked = await chat(service, conversation_id, content="Rain?")
        wire.holds()
        handle = await start(service, conversation_id, **came((asked.open_calls[0].id, "sun")))
        await wire.reached(2)
        await service.container.chat.interrupt(service.tenant, conversation_id)
        stopped = await asyncio.wait_for(handle.result(), PATIENCE)
        assert (stopped.reply.status, stopped.finish, stopped.open_calls) == ("interrupted", "other", ())
        assert await roles(service, conversation_id) == ["user", "assistant", "tool", "assistant"]


class TestResults:
    async def test_that_do_not_fit_are_refused_and_nothing_is_stored(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        service = scripted(begin, tenant, call("weather", "weather"), "Fine.")
        conversation_id = await service.conversation()
        asked = await chat(service, conversation_id, content="Rain?")
        one, other = (made.id for made in asked.open_calls)
        stored = (await service.row(conversation_id)).last_seq

        with pytest.raises(InvalidInputError) as unknown:
            await chat(service, conversation_id, **came((one, "sun"), ("call_of_nobody", "x"), (one, "rain")))
        assert [(wrong.field, wrong.message) for wrong in unknown.value.errors] == [
            ("tool_results.1.tool_call_id", "the call 'call_of_nobody' is no call of this conversation"),
            ("tool_results.2.tool_call_id", f"the call {one!r} is given twice"),
        ]
        with pytest.raises(ToolsPendingError) as missing:
            await chat(service, conversation_id, **came((one, "sun")))
        assert missing.value.extra["missing"] == [other]
        with pytest.raises(ToolsPendingError) as nothing:
            await chat(service, conversation_id)
        assert nothing.value.extra["missing"] == [one, other]
        await chat(service, conversation_id, content="/compact")
        stored += 2
        with pytest.raises(ToolsPendingError):
            await chat(service, conversation_id)
        with pytest.raises(InvalidInputError, match="a command comes alone"):
            await chat(service, conversation_id, content="/compact", **came((one, "sun"), (other, "snow")))
        with pytest.raises(TooLargeError):
            await chat(service, conversation_id, **came((one, "wet " * 2_500), (other, "dry " * 2_500)))
        assert (await service.row(conversation_id)).last_seq == stored

        await chat(service, conversation_id, **came((one, "sun"), (other, "snow")))
        with pytest.raises(InvalidInputError, match="has its result already"):
            await chat(service, conversation_id, **came((one, "rain")))

    async def test_of_a_call_with_an_id_that_was_used_before_are_taken(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        service = scripted(begin, tenant, "It rains.")
        conversation_id = await service.conversation()
        made: Part = {"type": "tool_call", "id": "call_0", "name": "weather", "arguments": {"city": "Rome"}}
        given: Part = {"type": "tool_result", "tool_call_id": "call_0", "name": "weather", "content": "sun"}
        step = [
            MessageDraft(role="assistant", content="", parts=(made,)),
            MessageDraft(role="tool", content="", parts=(given,)),
        ]
        drafts = [MessageDraft(role="user", content="Rain?"), *step, step[0]]
        await service.container.messages.append(tenant, conversation_id, drafts)
        with pytest.raises(ToolsPendingError):
            await chat(service, conversation_id)
        assert (await chat(service, conversation_id, **came(("call_0", "rain")))).reply.content == "It rains."
        with pytest.raises(InvalidInputError, match="has its result already"):
            await chat(service, conversation_id, **came(("call_0", "snow")))

    async def test_of_calls_that_a_client_imported_are_taken(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        """There is no message of a user, and no turn before."""
        service = scripted(begin, tenant, "It rains.")
        conversation_id = await service.conversation()
        part = {"type": "tool_call", "id": "theirs", "name": "weather", "arguments": {}}
        draft = MessageDraft(role="assistant", content="", parts=(part,))
        await service.container.messages.append(tenant, conversation_id, [draft])
        answered = await chat(service, conversation_id, **came(("theirs", "rain")))
        assert answered.reply.content == "It rains."
        assert await roles(service, conversation_id) == ["assistant", "tool", "assistant"]

    @pytest.mark.parametrize("is_appended", [True, False])
    async def test_is_awaited_without_a_record_of_the_turn(
        self, begin: UnitOfWorkFactory, tenant: UUID, *, is_appended: bool
    ) -> None:
        """The client appended the call itself, or the record was removed after its time (``Retention.turns``)."""
        service = scripted(begin, tenant, *([] if is_appended else [call("weather")]), "It rains.")
        conversation_id = await service.conversation()
        if is_appended:
            part = {"type": "tool_call", "id": "theirs", "name": "weather", "arguments": {}}
            asked = [
                MessageDraft(role="user", content="Rain?"),
                MessageDraft(role="assistant", content="", parts=(part,)),
            ]
            await service.container.messages.append(tenant, conversation_id, asked)
            waiting = "theirs"
        else:
            waiting = (await chat(service, conversation_id, content="Rain?")).open_calls[0].id
            async with begin(None) as uow:
                assert await uow.removal.forget_turns(timedelta(0), limit=10) == 1
                await uow.commit()
        with pytest.raises(ToolsPendingError, match=waiting):
            await chat(service, conversation_id)
        assert (await chat(service, conversation_id, **came((waiting, "rain")))).reply.content == "It rains."


async def test_a_search_after_results_does_not_find_the_question(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    search = Reply(calls=(ToolCall(id="0", name="search_history", arguments={"query": "zeppelin"}),))
    service = scripted(begin, tenant, call("weather"), search, "Gone.")
    conversation_id = await service.conversation()
    asked = await chat(service, conversation_id, content="Where is the zeppelin?")
    await chat(service, conversation_id, **came((asked.open_calls[0].id, "storm")))
    *_, found, reply = await history(service, conversation_id)
    assert (found.parts[0]["name"], reply.content) == ("search_history", "Gone.")
    assert found.parts[0]["content"].startswith("No earlier message fits.")


class TestAProcessWithAClockAheadEndedATurn:
    """What comes after the turn then seems to have come before its end."""

    async def test_and_its_response_is_deleted_without_the_steps_of_the_next_one(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service = scripted(begin, tenant, "One.", call("order_status"), "Two.")
        conversation_id = await service.conversation()
        first = await chat(service, conversation_id, content="First?")
        await set_end_ahead(engine)
        await chat(service, conversation_id, content="Second?")
        await service.container.openai.responses.delete(tenant, await turn_of(service, first.reply))
        said = await history(service, conversation_id)
        assert [message.status == "erased" for message in said] == [True, True, False, False, False, False]

    async def test_and_what_goes_on_from_its_response_has_no_later_results(
        self, begin: UnitOfWorkFactory, tenant: UUID, engine: AsyncEngine
    ) -> None:
        service = scripted(begin, tenant, call("order_status", "weather"), "Dry.", "Wet.")
        conversation_id = await service.conversation()
        asked = await chat(service, conversation_id, content="Rain?")
        await set_end_ahead(engine)
        await chat(service, conversation_id, **came((asked.open_calls[0].id, "sun")))
        result = MessageDraft(
            role="tool",
            content="",
            parts=({"type": "tool_result", "tool_call_id": asked.open_calls[0].id, "content": "rain"},),
        )
        request = Request(
            prompt=Prompt(messages=(result,)), attempt=RequestAttempt(body=b"{}", tries=0, own=None), patience=5
        )
        stored = service.container.openai.stored
        begun = await stored.after_response(tenant, await turn_of(service, asked.reply), request)
        await asyncio.wait_for(begun.handle.result(), PATIENCE)
        said = await history(service, begun.conversation.id)
        assert [message.role for message in said] == ["user", "assistant", "tool", "tool", "assistant"]
        assert (said[3].parts[0]["content"], said[4].content) == ("rain", "Wet.")


async def set_end_ahead(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE turns SET finished_at = finished_at + interval '1 hour'"))


async def turn_of(service: Service, reply: Message) -> UUID:
    async with service.begin(service.tenant) as uow:
        turn = await uow.turns.replied_by(reply.conversation_id, {reply.id})
    assert turn is not None
    return turn.id


class TestATurnThatDied:
    async def test_before_its_client_heard_of_the_call_is_begun_anew(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service = scripted(begin, tenant, call("weather", "order_status"), "Anew.")
        conversation_id = await service.conversation()
        idem = Idem(key="one", fingerprint="one")

        async def dies(*_: object, **__: object) -> None:
            raise DIED

        with monkeypatch.context() as patched:
            patched.setattr(toolbox.Toolbox, "run", dies)
            with pytest.raises(Exception, match="failed unexpectedly"):
                await chat(service, conversation_id, idem, content="Rain?")
        assert await roles(service, conversation_id) == ["user", "assistant"]

        answered = await chat(service, conversation_id, idem, content="Rain?")
        assert (answered.reply.content, answered.message.role) == ("Anew.", "user")
        assert await roles(service, conversation_id) == ["user", "assistant", "assistant"]

    async def test_after_results_that_its_client_brought_is_begun_anew(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service = scripted(begin, tenant, call("weather"), call("weather", "order_status"), "Anew.")
        conversation_id = await service.conversation()
        idem = Idem(key="one", fingerprint="one")
        asked = await chat(service, conversation_id, content="Rain?")
        results = came((asked.open_calls[0].id, "sun"))

        async def dies(*_: object, **__: object) -> None:
            raise DIED

        with monkeypatch.context() as patched:
            patched.setattr(toolbox.Toolbox, "run", dies)
            with pytest.raises(Exception, match="failed unexpectedly"):
                await chat(service, conversation_id, idem, **results)
        assert (await chat(service, conversation_id, idem, **results)).reply.content == "Anew."

    async def test_is_not_taken_up_once_its_message_waits_for_a_client(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        failing = ModelFailedError("away")
        service = scripted(begin, tenant, failing, call("weather"), "Never.")
        conversation_id = await service.conversation()
        idem = Idem(key="one", fingerprint="one")
        with pytest.raises(ModelFailedError):
            await chat(service, conversation_id, idem, content="Rain?")
        assert (await chat(service, conversation_id)).open_calls
        with pytest.raises(ConversationMovedOnError):
            await chat(service, conversation_id, idem, content="Rain?")


class TestProtection:
    async def test_no_fold_parts_an_open_call_from_its_result(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = scripted(begin, tenant, call("weather"), "Wet.")
        conversation_id = await service.conversation()
        await service.say(conversation_id, 12)
        asked = await chat(service, conversation_id, content="Rain?")
        everything = CompactInput(keep_tail_messages=0)

        async def folded() -> int:
            await service.container.manual.compact(tenant, conversation_id, everything, timeout=PATIENCE)
            return (await service.row(conversation_id)).boundary_seq

        assert await folded() < asked.reply.seq
        await chat(service, conversation_id, **came((asked.open_calls[0].id, "rain")))
        sent = service.chat_model.requests[-1].messages
        assert [one.role for one in sent if one.seq and one.seq >= asked.message.seq] == ["user", "assistant", "tool"]
        await service.say(conversation_id, 12)
        assert await folded() > asked.reply.seq, "control: once the turn is over its call may be folded"

    @pytest.mark.long
    async def test_what_a_client_brings_counts_before_the_call(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = scripted(begin, tenant, "Fine.")
        heavy = ToolSpec(name="heavy", description="crates and harbours " * 300, parameters={"type": "object"})
        conversation_id = await service.conversation()
        await service.fill(conversation_id, 1_800)

        light = await chat(service, conversation_id, content="Well?", tools=())
        assert light.compaction is None
        loaded = await chat(service, conversation_id, content="Well?", tools=(heavy,))
        assert loaded.compaction is not None
        assert loaded.gauge.breakdown.system == light.gauge.breakdown.system, "nothing of it stays"
        stored = (await service.row(conversation_id)).last_seq
        with pytest.raises(TooLargeError):
            await chat(service, conversation_id, content="Well?", instructions="Be brief. " * 2_000)
        assert (await service.row(conversation_id)).last_seq == stored


CHOICES: tuple[tuple[Any, list[str], tuple[str, ...]], ...] = (
    (None, ["order_status", "weather", "other"], ()),
    ("auto", ["order_status", "weather", "other"], ()),
    ("none", ["order_status"], ()),
    ("required", ["order_status", "weather", "other"], ("weather", "other")),
    (ToolName(name="other"), ["order_status", "weather", "other"], ("other",)),
)


async def test_a_step_larger_than_the_budget_stays_stored_and_says_what_to_do(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    text = " ".join(f"crate {number}" for number in range(500))
    large = Reply(calls=(ToolCall(id="1", name="weather", arguments={"city": text}),))
    service = scripted(begin, tenant, large, "Rain.")
    conversation_id = await service.conversation(context_window=4_000)
    asked = await chat(service, conversation_id, content="Rain?")
    with pytest.raises(ContextOverWindowError, match="the message is stored: send a new message instead") as caught:
        await chat(service, conversation_id, **came((asked.open_calls[0].id, text)))
    stored = (await history(service, conversation_id))[-1]
    assert (stored.role, caught.value.extra["message_id"]) == ("tool", str(stored.id))
    await service.container.conversations.patch(tenant, conversation_id, {"policy": {"context_window": 16_000}})
    assert (await chat(service, conversation_id)).reply.content == "Rain.", "control: with more room it goes on"


async def test_calls_that_nobody_runs_are_no_open_calls_and_their_warning_comes_once(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    looks = ToolCall(id="0", name="order_status", arguments={"number": 1})
    used_up, theirs = Reply(calls=(looks,) * MAX_CALLS), ToolCall(id="1", name="weather", arguments={"city": "Riga"})
    service = scripted(begin, tenant, used_up, Reply(pieces=("I would look again.",), calls=(looks,)))
    said = await chat(service, await service.conversation(), content="Well?")
    assert (said.finish, said.open_calls, said.warnings) == ("stop", (), (CALLS_USED_UP,))

    service = scripted(begin, tenant, used_up, Reply(calls=(theirs,)))
    asked = await chat(service, await service.conversation(), content="Rain?")
    assert (asked.finish, len(asked.open_calls), asked.warnings) == ("tool_call", 1, (CALLS_USED_UP,))


async def test_a_call_of_a_tool_that_nobody_has_is_never_left_to_the_client(
    begin: UnitOfWorkFactory, tenant: UUID
) -> None:
    calls = [ToolCall(id=name, name=name, arguments={}) for name in ("invented", "order_status", "weather")]
    service = scripted(begin, tenant, Reply(calls=(*calls,)), "Rain.")
    conversation_id, idem = await service.conversation(), Idem(key="k", fingerprint="f")
    for _ in range(2):  # the second request gets what is stored
        asked = await chat(service, conversation_id, content="Rain?", idem=idem)
        assert [call.name for call in asked.open_calls] == ["weather"]
    said = await chat(service, conversation_id, **came((asked.open_calls[0].id, "rain")))
    assert said.reply.content == "Rain."


async def test_a_choice_is_among_the_tools_of_the_client(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    other = ToolSpec(name="other", description="", parameters={"type": "object"})
    model = ScriptedChatModel("Fine.", profile=CALLER)
    service = Service(begin, tenant, chat=model, settings=chosen_settings(tools=(OWN,)))
    conversation_id = await service.conversation()
    for choice, _, _ in CHOICES:
        settings = CallSettings(tool_choice=choice)
        await chat(service, conversation_id, content="Well?", tools=(WEATHER, other), settings=settings)
    sent = [([tool.name for tool in request.tools], request.must_call) for request in model.requests]
    assert sent == [(offered, must_call) for _, offered, must_call in CHOICES]

    stored = (await service.row(conversation_id)).last_seq
    ours = [ToolSpec(name=name, description="", parameters={}) for name in ("order_status", "search_history")]
    with pytest.raises(InvalidInputError) as caught:
        await chat(service, conversation_id, content="Well?", tools=tuple(ours))
    assert [wrong.field for wrong in caught.value.errors] == ["tools.0.name", "tools.1.name"]
    assert (await service.row(conversation_id)).last_seq == stored

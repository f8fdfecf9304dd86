"""A stateful chat model: what its provider is sent, what it continues from, and when that is deleted.

On real Postgres, before a scripted server of OpenAI's Responses, through the real client.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final
from uuid import UUID

import pytest

from app.core.context.formats.calls import STUB_RESULT
from app.core.context.tools import MAX_CALLS
from app.core.model.errors import DependencyUnavailableError, ModelFailedError
from app.core.model.records import ProviderCopy
from app.core.retrieval.rendering import Passage
from app.providers.keys import Keys
from app.providers.registry import ModelRegistry
from app.settings import Settings
from app.storage.repositories.copies import ProviderCopyRepository
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.live_contexts import REBUILT
from app.usecases.chat.starting import ChatInput
from app.usecases.compaction.manual import CompactInput
from app.usecases.history import removing
from app.usecases.history.drafts import MessageDraft
from app.usecases.shared import retries
from tests.fakes import FakeModels, ScriptedChatModel
from tests.integration import tool_samples
from tests.integration.services import Service, history
from tests.integration.test_turns import chat, start
from tests.openai_server import Behaviour, Json, OpenAI

MODEL: Final = "openai-responses:gpt-5"
PATIENCE: Final = 30.0
SAMPLES: Final = tool_samples.__name__
CANARY: Final = "Kestrel-7741"
BLOCK: Final = "<session_state>"


@pytest.fixture
async def service(openai: OpenAI, begin: UnitOfWorkFactory, tenant: UUID) -> AsyncIterator[Service]:
    registry = ModelRegistry(chat=MODEL, keys=Keys(openai_api_key="key", openai_base_url=openai.url))
    settings = Settings(tools=(f"{SAMPLES}:order_status", f"{SAMPLES}:sleeps"))
    yield Service(begin, tenant, chat=registry.chat(), settings=settings)  # type: ignore[arg-type]
    openai.release()
    await registry.close()


def calling(*numbers: int) -> Behaviour:
    return {"calls": [{"name": "order_status", "args": {"number": number}} for number in numbers]}


async def manual(service: Service, **policy: Any) -> UUID:
    """A conversation that is compacted only manually, with so much room that nothing else has an influence."""
    return await service.conversation(context_window=32_000, max_tokens=-1, **policy)


async def compact(service: Service, conversation_id: UUID) -> None:
    asked = CompactInput(keep_tail_messages=2)
    view = await service.container.manual.compact(service.tenant, conversation_id, asked, timeout=PATIENCE)
    assert view.compaction.status == "applied"


async def append(service: Service, conversation_id: UUID, role: Any, content: str, *parts: Json) -> None:
    draft = MessageDraft(role=role, content=content, parts=parts)
    await service.container.messages.append(service.tenant, conversation_id, [draft])


async def live_seq(service: Service, conversation_id: UUID) -> int | None:
    """The last message that the provider has; the stored id must be of a response that it keeps."""
    live = (await service.row(conversation_id)).live
    assert live is None or live.model == MODEL
    return live.through_seq if live else None


async def held(openai: OpenAI, calls: int) -> None:
    """Return once this many chats have come in."""
    for _ in range(3_000):
        if len(openai.chats) >= calls:
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


class TestATurn:
    async def test_goes_on_with_what_is_new(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await manual(service)
        await service.say(conversation_id, 6)
        first = await chat(service, conversation_id, "My cat is Tilda.")
        assert (openai.last.continues, len(openai.last.input)) == (None, 7)
        row = await service.row(conversation_id)
        assert row.live is not None
        assert (row.live.model, row.live.through_seq) == (MODEL, first.reply.seq)

        second = await chat(service, conversation_id, "What is her name?")
        assert (openai.last.continues, openai.last.texts) == (row.live.response_id, ["What is her name?"])
        assert "My cat is Tilda." in str(openai.last.seen)
        assert openai.last.body["instructions"] == openai.chats[0].body["instructions"] != ""
        assert openai.last.body["tools"] == openai.chats[0].body["tools"]
        assert await live_seq(service, conversation_id) == second.reply.seq
        assert (first.warnings, second.warnings) == ((), ())

    async def test_goes_on_after_a_short_outage_of_the_database_in_which_the_copy_could_not_be_noted(
        self, service: Service, openai: OpenAI, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        note, away = ProviderCopyRepository.note, [DependencyUnavailableError("away")]

        async def noted(self: ProviderCopyRepository, copy: ProviderCopy) -> None:
            if away:
                raise away.pop()
            await note(self, copy)

        monkeypatch.setattr(ProviderCopyRepository, "note", noted)
        monkeypatch.setattr(retries, "OUTAGE_PAUSE", 0.01)
        conversation_id = await manual(service)
        openai.script("Meow.")
        result = await chat(service, conversation_id, "My cat is Tilda.")
        assert (result.reply.content, away) == ("Meow.", [])
        async with service.begin(service.tenant) as uow:
            assert await uow.copies.count() == 1

    async def test_a_copy_that_cannot_be_noted_is_deleted_at_once(
        self, service: Service, openai: OpenAI, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def away(*_: object) -> None:
            raise DependencyUnavailableError("away")

        deleted: list[str] = []

        async def delete(_: FakeModels, name: str, response_id: str) -> None:
            deleted.append(response_id)

        monkeypatch.setattr(ProviderCopyRepository, "note", away)
        monkeypatch.setattr(FakeModels, "delete", delete)
        monkeypatch.setattr(retries, "OUTAGE_PAUSE", 0.01)
        conversation_id = await manual(service)
        openai.script("Meow.")
        with pytest.raises(DependencyUnavailableError):
            await chat(service, conversation_id, "My cat is Tilda.")
        assert deleted == list(openai.kept) != [], "nobody else would ever have it deleted"

    async def test_what_was_appended_between_turns_goes_along(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await manual(service)
        await chat(service, conversation_id, "Hello.")
        await append(service, conversation_id, "user", "Said elsewhere.")
        await append(service, conversation_id, "assistant", "Answered elsewhere.")
        await append(service, conversation_id, "system", "Be brief.")
        await chat(service, conversation_id, "Go on.")
        assert openai.last.texts == ["Said elsewhere.", "Answered elsewhere.", "Be brief.", "Go on."]
        assert openai.last.continues is not None

    async def test_what_was_appended_while_the_model_thought_is_not_lost(
        self, service: Service, openai: OpenAI
    ) -> None:
        conversation_id = await manual(service)
        before = await chat(service, conversation_id, "Hello.")
        openai.script({"text": "Slowly thought.", "hold": True})
        handle = await start(service, conversation_id, "Think.")
        await held(openai, 2)
        await append(service, conversation_id, "user", "Meanwhile.")
        openai.release()
        await asyncio.wait_for(handle.result(), PATIENCE)
        assert await live_seq(service, conversation_id) == before.reply.seq, "what it has not seen follows on this"
        await chat(service, conversation_id, "And?")
        assert openai.last.texts == ["Think.", "Meanwhile.", "Slowly thought.", "And?"]
        assert await live_seq(service, conversation_id) == (await service.row(conversation_id)).last_seq

    @pytest.mark.long
    async def test_a_command_is_nothing_to_the_provider(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await manual(service)
        await service.say(conversation_id, 20)
        before = await chat(service, conversation_id, "Hello.")
        done = await chat(service, conversation_id, "/compact")
        assert done.compaction is not None
        assert await live_seq(service, conversation_id) == before.reply.seq
        await chat(service, conversation_id, "Go on.")
        assert openai.last.texts == ["Go on."]

    async def test_a_reply_that_broke_off_stays_with_us_and_is_told(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await manual(service)
        before = await chat(service, conversation_id, "Hello.")
        openai.script({"text": "It was a dark and", "incomplete": "max_output_tokens"})
        cut = await chat(service, conversation_id, "Tell me a story.")
        assert cut.warnings == ("reply_cut_off",)
        assert await live_seq(service, conversation_id) == before.reply.seq
        await chat(service, conversation_id, "Go on.")
        assert openai.last.texts == ["Tell me a story.", "It was a dark and", "Go on."]

    async def test_an_interrupted_reply_too(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await manual(service)
        before = await chat(service, conversation_id, "Hello.")
        openai.script({"text": "One, two, three, four, five, six.", "hold_after": 1})
        handle = await start(service, conversation_id, "Count.")
        async for event in handle.events():
            if event.type == "reply.delta":
                await service.container.chat.interrupt(service.tenant, conversation_id)
        said = (await history(service, conversation_id))[-1]
        assert said.status == "interrupted"
        assert said.content.startswith("One")
        assert await live_seq(service, conversation_id) == before.reply.seq
        await chat(service, conversation_id, "Go on.")
        assert openai.last.texts == ["Count.", said.content, "Go on."]

    async def test_a_failure_of_the_provider_leaves_it(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await manual(service)
        before = await chat(service, conversation_id, "Hello.")
        openai.script({"status": 500})
        with pytest.raises(ModelFailedError):
            await chat(service, conversation_id, "Are you there?")
        assert await live_seq(service, conversation_id) == before.reply.seq
        again = await chat(service, conversation_id, None)
        assert (openai.last.texts, again.warnings) == (["Are you there?"], ())

    @pytest.mark.long
    async def test_passages_go_beside_the_message_once(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await manual(service)
        await chat(service, conversation_id, "Hello.")
        openai.script(calling(3))
        given = ChatInput(content="What of it?", passages=(Passage(text="The quay is closed.", source="news"),))
        handle = await service.container.chat.start(service.tenant, conversation_id, given)
        await asyncio.wait_for(handle.result(), PATIENCE)
        _, asked, after = openai.chats
        assert "The quay is closed." in asked.texts[0]
        assert asked.texts[0].endswith("What of it?")
        assert "The quay is closed." not in str(after.input)

    @pytest.mark.long
    async def test_nothing_is_recalled_nor_learned_where_the_provider_has_it_all(
        self, service: Service, openai: OpenAI
    ) -> None:
        conversation_id = await manual(service)
        await service.say(conversation_id, 10)
        await append(service, conversation_id, "user", f"The vault opens with {CANARY}, says Ragnhild.")
        await service.say(conversation_id, 20)
        await chat(service, conversation_id, "Hello.")
        await compact(service, conversation_id)
        factor = (await service.row(conversation_id)).token_factor
        done = await chat(service, conversation_id, "With what does Ragnhild open the vault?")
        assert (done.recalled, openai.last.texts) == ((), ["With what does Ragnhild open the vault?"])
        assert (await service.row(conversation_id)).token_factor == factor

        openai.forget()
        control = await chat(service, conversation_id, "With what does Ragnhild open the vault, please?")
        assert 11 in control.recalled, "anew it is"
        assert (await service.row(conversation_id)).token_factor != factor


class TestTools:
    async def test_each_request_holds_the_results_alone_under_the_providers_ids(
        self, service: Service, openai: OpenAI
    ) -> None:
        conversation_id = await manual(service)
        openai.script(calling(3, 4), calling(5), "All have left.")
        done = await chat(service, conversation_id, "Where are my orders?")
        assert done.reply.content == "All have left."
        first, second, third = openai.chats
        assert first.continues is None
        for before, asked in ((first, second), (second, third)):
            assert asked.continues in openai.kept
            known = {item["call_id"] for item in asked.seen if item.get("type") == "function_call"}
            assert {item["type"] for item in asked.input} == {"function_call_output"}
            assert {item["call_id"] for item in asked.input} <= known
            assert asked.continues != before.continues
        assert len(second.input) == 2
        ids = [part["id"] for one in await history(service, conversation_id) for part in one.parts if "id" in part]
        assert not {item["call_id"] for item in third.seen if "call_id" in item} & set(ids), "ours are ours"
        assert await live_seq(service, conversation_id) == done.reply.seq

    async def test_rebuilt_later_calls_and_results_stand_in_it(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await manual(service)
        openai.script(calling(3), "It has left.")
        await chat(service, conversation_id, "Where is my order?")
        openai.forget()
        done = await chat(service, conversation_id, "Thanks.")
        assert done.warnings == (REBUILT,)
        kinds = [item.get("type", "message") for item in openai.last.input]
        assert kinds == ["message", "function_call", "function_call_output", "message", "message"]

    @pytest.mark.long
    async def test_more_calls_than_are_run_are_no_response_to_go_on_from(
        self, service: Service, openai: OpenAI
    ) -> None:
        conversation_id = await manual(service)
        await chat(service, conversation_id, "Hello.")
        openai.script(calling(*range(MAX_CALLS + 2)), "Enough.")
        done = await chat(service, conversation_id, "Where are they all?")
        assert (done.reply.content, done.warnings) == ("Enough.", ("tool_calls_used_up",))
        assert openai.last.continues == openai.chats[1].continues, "from before the calls"
        assert len(openai.last.input) == 1 + 2 * MAX_CALLS
        assert await live_seq(service, conversation_id) == done.reply.seq

    async def test_a_turn_that_broke_between_call_and_answer_is_taken_up(
        self, service: Service, openai: OpenAI
    ) -> None:
        conversation_id = await manual(service)
        openai.script(calling(3), {"status": 500})
        with pytest.raises(ModelFailedError):
            await chat(service, conversation_id, "Where is my order?")
        assert await live_seq(service, conversation_id) == 2, "the message with the call"
        done = await chat(service, conversation_id, None)
        assert (openai.last.texts, done.warnings) == (["Order 3 has left harbour 12."], ())

    async def test_a_call_that_got_no_result_is_told_so(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await manual(service)
        openai.script({"calls": [{"name": "sleeps", "args": {}}]})
        handle = await start(service, conversation_id, "Go.")
        async for event in handle.events():
            if event.type == "message.created" and event.data["role"] == "assistant":
                await service.container.chat.interrupt(service.tenant, conversation_id)
        assert [one.role for one in await history(service, conversation_id)] == ["user", "assistant", "assistant"]
        assert await live_seq(service, conversation_id) == 2, "the message with the call"
        done = await chat(service, conversation_id, "Never mind.")
        assert openai.last.input[0]["type"] == "function_call_output"
        assert (openai.last.texts, done.warnings) == ([STUB_RESULT, "Never mind."], ())

    async def test_a_result_that_comes_after_its_stub_is_told_in_words(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await manual(service)
        call = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {}}
        await append(service, conversation_id, "user", "How warm is it?")
        await append(service, conversation_id, "assistant", "", call)
        await chat(service, conversation_id, "So?")
        assert STUB_RESULT in openai.last.texts
        result = {"type": "tool_result", "tool_call_id": "c1", "name": "weather", "content": "21 degrees"}
        await append(service, conversation_id, "tool", "", result)
        await chat(service, conversation_id, "And now?")
        assert " ".join(openai.last.texts) == "[result of weather: 21 degrees] And now?"


class TestCompaction:
    async def test_stores_the_state_and_leaves_the_live_context(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await manual(service)
        await service.say(conversation_id, 20)
        before = await chat(service, conversation_id, "Hello.")
        live = (await service.row(conversation_id)).live
        await compact(service, conversation_id)
        row = await service.row(conversation_id)
        assert (row.state_version, row.live) == (1, live)
        assert row.boundary_seq < before.reply.seq
        await chat(service, conversation_id, "Go on.")
        assert live is not None
        assert (openai.last.continues, openai.last.texts) == (live.response_id, ["Go on."])
        assert BLOCK not in str(openai.last.seen)

    @pytest.mark.long
    async def test_control_a_stateless_model_is_rebuilt_from_it(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        model = ScriptedChatModel()
        service = Service(begin, tenant, chat=model)
        conversation_id = await manual(service)
        await service.say(conversation_id, 20)
        await chat(service, conversation_id, "Hello.")
        await compact(service, conversation_id)
        await chat(service, conversation_id, "Go on.")
        sent = model.requests[-1]
        assert sent.continues is None
        assert BLOCK in str(sent.messages)
        assert len(sent.messages) < len(model.requests[0].messages)
        assert (await service.row(conversation_id)).live is None

    @pytest.mark.long
    async def test_inside_a_turn_too(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await service.conversation()
        await service.say(conversation_id, 10)
        await chat(service, conversation_id, "Hello.")
        await service.fill(conversation_id, 2_100, step=1)
        unsent = (await service.row(conversation_id)).last_seq - len(openai.last.input) - 1
        done = await chat(service, conversation_id, "word " * 1_000)
        assert done.compaction is not None
        assert done.compaction.compaction.status == "applied"
        assert openai.last.continues is not None
        assert (len(openai.last.input), done.warnings) == (unsent + 1, ())
        assert BLOCK not in str(openai.last.seen)


class TestIsRebuilt:
    """The context is rebuilt from the compacted history, in the same turn, with a warning."""

    async def compacted(self, service: Service) -> UUID:
        conversation_id = await manual(service)
        await append(service, conversation_id, "user", f"The vault opens with {CANARY}, says Ragnhild.")
        await service.say(conversation_id, 30)
        await chat(service, conversation_id, "Hello.")
        await compact(service, conversation_id)
        return conversation_id

    async def expect_rebuilt(self, service: Service, openai: OpenAI, conversation_id: UUID) -> None:
        done = await chat(service, conversation_id, "Go on.")
        assert done.warnings == (REBUILT,)
        assert openai.last.continues is None
        assert BLOCK in openai.last.texts[0]
        assert openai.last.texts[-1] == "Go on."
        assert len(openai.last.input) < 10
        assert await live_seq(service, conversation_id) == done.reply.seq
        again = await chat(service, conversation_id, "And?")
        assert (openai.last.texts, again.warnings) == (["And?"], ())

    async def test_where_the_provider_keeps_it_no_more(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await self.compacted(service)
        openai.forget()
        await self.expect_rebuilt(service, openai, conversation_id)

    @pytest.mark.daily(1)
    @pytest.mark.parametrize(
        "refusal",
        [
            {"status": 404, "message": "Not found."},
            {"status": 400, "message": "No tool output found for function call call_1."},
            {"status": 400, "code": "context_length_exceeded"},
        ],
    )
    async def test_where_it_refuses_to_go_on(self, service: Service, openai: OpenAI, refusal: Json) -> None:
        conversation_id = await self.compacted(service)
        openai.script(refusal)
        await self.expect_rebuilt(service, openai, conversation_id)

    @pytest.mark.long
    async def test_where_all_that_it_keeps_is_more_than_its_window(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await self.compacted(service)
        openai.window = 1_200
        await self.expect_rebuilt(service, openai, conversation_id)

    @pytest.mark.long
    async def test_where_more_came_since_than_the_budget(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await self.compacted(service)
        calls = len(openai.chats)
        await service.say(conversation_id, 30, words=70)
        await compact(service, conversation_id)
        await self.expect_rebuilt(service, openai, conversation_id)
        assert len(openai.chats) == calls + 2, "it was not tried first"

    @pytest.mark.long
    async def test_where_a_giant_among_what_came_could_not_be_told(self, service: Service, openai: OpenAI) -> None:
        """More messages came than are read at once; only a little of them is after the giant."""
        conversation_id = await manual(service)
        before = await chat(service, conversation_id, "Hello.")
        await append(service, conversation_id, "user", "crate " * 30_000)
        await append(service, conversation_id, "assistant", "barrel " * 6_000)
        done = await chat(service, conversation_id, "Go on.")
        assert (openai.last.continues, REBUILT in done.warnings) == (None, True)
        assert await live_seq(service, conversation_id) == done.reply.seq > before.reply.seq

    async def test_control_an_outage_lets_nothing_go(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await self.compacted(service)
        live = (await service.row(conversation_id)).live
        openai.script({"status": 503})
        with pytest.raises(ModelFailedError):
            await chat(service, conversation_id, "Go on.")
        assert (await service.row(conversation_id)).live == live is not None


class TestIsLetGo:
    async def remembering(self, service: Service) -> UUID:
        conversation_id = await manual(service)
        await append(service, conversation_id, "user", f"The vault opens with {CANARY}, says Ragnhild.")
        await service.say(conversation_id, 20)
        await chat(service, conversation_id, "Hello.")
        return conversation_id

    async def erase(self, service: Service, conversation_id: UUID) -> None:
        message = (await history(service, conversation_id))[0]
        await service.container.erasure.erase(service.tenant, conversation_id, message.id)

    async def test_by_an_erasure(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await self.remembering(service)
        assert CANARY in str(openai.last.seen)
        await self.erase(service, conversation_id)
        assert (await service.row(conversation_id)).live is None
        await chat(service, conversation_id, "What do you know?")
        assert openai.last.continues is None
        assert CANARY not in str(openai.last.seen)

    async def test_control_without_it_the_provider_still_has_it(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await self.remembering(service)
        await chat(service, conversation_id, "What do you know?")
        assert CANARY not in str(openai.last.input)
        assert CANARY in str(openai.last.seen)

    @pytest.mark.case("44d")
    async def test_by_an_erasure_while_the_model_thinks(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await self.remembering(service)
        openai.script({"text": "Thought over.", "hold": True})
        handle = await start(service, conversation_id, "Think.")
        await held(openai, 2)
        await self.erase(service, conversation_id)
        openai.release()
        done = await asyncio.wait_for(handle.result(), PATIENCE)
        assert done.reply.content == "Thought over."
        assert (await service.row(conversation_id)).live is None, "that response was told the erased"
        await chat(service, conversation_id, "And now?")
        assert CANARY not in str(openai.last.seen)

    async def test_by_an_erasure_during_the_first_answer_of_all(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await manual(service)
        await append(service, conversation_id, "user", f"The vault opens with {CANARY}.")
        openai.script({"text": "Thought over.", "hold": True})
        handle = await start(service, conversation_id, "Think.")
        await held(openai, 1)
        await self.erase(service, conversation_id)
        openai.release()
        await asyncio.wait_for(handle.result(), PATIENCE)
        assert (await service.row(conversation_id)).live is None

    async def test_by_an_erasure_between_call_and_result(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await self.remembering(service)
        openai.script(calling(3), {"text": "It has left.", "hold": True})
        handle = await start(service, conversation_id, "Where is my order?")
        await held(openai, 3)
        await self.erase(service, conversation_id)
        openai.release()
        await asyncio.wait_for(handle.result(), PATIENCE)
        assert (await service.row(conversation_id)).live is None

    @pytest.mark.long
    async def test_by_going_back_to_an_older_state(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await self.remembering(service)
        await compact(service, conversation_id)
        await service.say(conversation_id, 20)
        await chat(service, conversation_id, "Go on.")
        await compact(service, conversation_id)
        assert await live_seq(service, conversation_id) is not None
        await service.container.states.restore(service.tenant, conversation_id, 1)
        assert await live_seq(service, conversation_id) is None
        await chat(service, conversation_id, "And now?")
        assert openai.last.continues is None
        assert BLOCK in openai.last.texts[0]

    @pytest.mark.long
    async def test_by_going_back_while_the_model_thinks(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await self.remembering(service)
        await compact(service, conversation_id)
        openai.script({"text": "Thought over.", "hold": True})
        handle = await start(service, conversation_id, "Think.")
        await held(openai, 2)
        await service.container.states.restore(service.tenant, conversation_id, 0)
        openai.release()
        await asyncio.wait_for(handle.result(), PATIENCE)
        assert await live_seq(service, conversation_id) is None

    @pytest.mark.case("44b")
    async def test_by_going_back_while_the_model_thinks_though_the_state_covers_as_much(
        self, service: Service, openai: OpenAI
    ) -> None:
        conversation_id = await self.remembering(service)
        await compact(service, conversation_id)
        await service.container.states.restore(service.tenant, conversation_id, 1)
        openai.script({"text": "Thought over.", "hold": True})
        handle = await start(service, conversation_id, "Think.")
        await held(openai, 2)
        await service.container.states.restore(service.tenant, conversation_id, 1)
        openai.release()
        await asyncio.wait_for(handle.result(), PATIENCE)
        assert await live_seq(service, conversation_id) is None

    @pytest.mark.long
    @pytest.mark.control("44b")
    async def test_control_without_going_back_it_is_gone_on_from(self, service: Service, openai: OpenAI) -> None:
        conversation_id = await self.remembering(service)
        await compact(service, conversation_id)
        await service.container.states.restore(service.tenant, conversation_id, 1)
        openai.script({"text": "Thought over.", "hold": True})
        handle = await start(service, conversation_id, "Think.")
        await held(openai, 2)
        openai.release()
        thought = await asyncio.wait_for(handle.result(), PATIENCE)
        assert await live_seq(service, conversation_id) == thought.reply.seq


@pytest.mark.parametrize(
    "behaviour",
    [{"text": ""}, {"incomplete": "content_filter"}, {"text": "Yes."}],
    ids=["nothing-said", "blocked", "control"],
)
async def test_what_the_provider_keeps_of_any_answer_that_ended_is_deleted_with_the_conversation(
    service: Service, openai: OpenAI, behaviour: Behaviour
) -> None:
    conversation_id = await manual(service)
    openai.script(behaviour)
    handle = await start(service, conversation_id, "Hello?")
    with contextlib.suppress(ModelFailedError):
        await handle.result()
    async with service.begin(service.tenant) as uow:
        await removing.delete_conversation(uow, conversation_id)
        await uow.commit()
    async with service.begin(None) as uow:
        due = await uow.copies.due(limit=9)
    assert [copy.response_id for copy in due] == list(openai.kept)
    assert len(due) == 1

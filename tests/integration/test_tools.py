"""Tools inside a turn, most of them before a scripted Gemini on the wire: called, stored, bounded, interrupted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from sqlmodel import col, select

from app.core.context.tools import MAX_CALLS
from app.core.model.conversation import Message
from app.core.model.errors import ContextOverWindowError, ModelFailedError
from app.core.model.model_io import ToolCall
from app.core.model.records import Page
from app.core.model.segments import Segment
from app.core.segments.markers import render_marker
from app.core.segments.paging import segment_marker
from app.providers.keys import Keys
from app.providers.registry import ModelRegistry
from app.storage.tables import ExpansionRow
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat import lookups, toolbox
from app.usecases.chat.reply import Answer
from app.usecases.chat.turn_handle import ChatEvent
from app.usecases.compaction.manual import CompactInput
from app.usecases.history.drafts import MessageDraft
from app.usecases.shared.idempotency import Idem
from tests.chosen_settings import chosen_settings
from tests.fakes import FAKE_PROFILE, Reply, ScriptedChatModel
from tests.gemini_faults import Behaviour
from tests.gemini_server import Gemini
from tests.integration import tool_samples
from tests.integration.rows import make_tenant
from tests.integration.services import WORDS, Service, history
from tests.integration.test_turns import chat, start

MODEL = "google:gemini-3-flash-preview"
PATIENCE = 60.0
SAMPLES = tool_samples.__name__
CALLER = replace(FAKE_PROFILE, calls_tools=True)
MID_TURN = {
    "name": "mid_turn",
    "on": "between_calls",
    "at": {"share": 0.9},
    "run": "inline",
    "keep_turns": 1,
    "fold": "all",
}


@pytest.fixture
async def service(gemini: Gemini, begin: UnitOfWorkFactory, tenant: UUID) -> AsyncIterator[Service]:
    """A service with Gemini for chat, and two tools of the operator."""
    registry = ModelRegistry(chat=MODEL, keys=Keys(google_api_key="key", google_base_url=gemini.url))
    settings = chosen_settings(tools=(f"{SAMPLES}:order_status", f"{SAMPLES}:leaks"))
    yield Service(begin, tenant, chat=registry.chat(), settings=settings)  # type: ignore[arg-type]
    await registry.close()


def calling(name: str, text: str = "", **arguments: Any) -> Behaviour:
    return {"name": "calls", "text": text, "calls": [{"name": name, "args": arguments}]}


def saying(text: str) -> Behaviour:
    return {"name": "text", "text": text}


def call(name: str, **arguments: Any) -> Reply:
    return Reply(calls=(ToolCall(id="0", name=name, arguments=arguments),))


def scripted(
    begin: UnitOfWorkFactory, tenant: UUID, *script: str | Reply | Exception, tools: Sequence[str] = ()
) -> Service:
    model = ScriptedChatModel(*script, profile=CALLER)
    return Service(
        begin, tenant, chat=model, settings=chosen_settings(tools=tuple(f"{SAMPLES}:{name}" for name in tools))
    )


async def compacted(service: Service, messages: int = 40, **policy: Any) -> UUID:
    """A conversation whose first messages are covered."""
    conversation_id = await service.conversation(context_window=16_000, **policy)
    await service.say(conversation_id, messages)
    view = await service.container.manual.compact(service.tenant, conversation_id, CompactInput(), timeout=PATIENCE)
    assert view.compaction.status == "applied"
    return conversation_id


async def segments_of(service: Service, conversation_id: UUID) -> list[Segment]:
    async with service.begin(service.tenant) as uow:
        return (await uow.segments.page(conversation_id, Page(limit=100, order="asc")))[0]


async def expansions(service: Service, conversation_id: UUID) -> list[tuple[str, str | None, int]]:
    """The (way, segment, passages) of the expansions that the model asked for."""
    row = ExpansionRow
    asked = select(row).where(col(row.conversation_id) == conversation_id, col(row.way) != "automatic")
    async with service.begin(service.tenant) as uow:
        found = await uow.expansions._session.execute(asked.order_by(col(row.created_at)))
        return [(one.way, one.segment_id, one.passages) for one in found.scalars()]


async def system_tokens(service: Service, conversation_id: UUID) -> int:
    view = await service.container.conversations.get(service.tenant, conversation_id)
    return view.gauge.breakdown.system


def declared(gemini: Gemini, number: int) -> list[str]:
    """The tools in a request."""
    tools = gemini.requests("chat")[number]["body"].get("tools", [])
    return [one["name"] for tool in tools for one in tool["functionDeclarations"]]


def answered(gemini: Gemini, number: int = -1) -> list[str]:
    """The results of tools in a request's contents, in order."""
    contents = gemini.requests("chat")[number]["body"]["contents"]
    found = [
        part["functionResponse"]["response"] for one in contents for part in one["parts"] if "functionResponse" in part
    ]
    return [str(next(iter(each.values()))) for each in found]


def result_of(message: Message) -> str:
    (part,) = message.parts
    return str(part["content"])


class TestACall:
    async def test_of_search_history_is_stored_and_answered(self, service: Service, gemini: Gemini) -> None:
        conversation_id = await compacted(service)
        gemini.script("chat", calling("search_history", "Let me look.", query="harbour number 7"), saying("It was 7."))

        result = await chat(service, conversation_id, "Which harbour was the seventh?")

        asked, calls, given, reply = (await history(service, conversation_id))[-4:]
        assert [one.role for one in (asked, calls, given, reply)] == ["user", "assistant", "tool", "assistant"]
        assert (calls.content, calls.parts[0]["name"]) == ("Let me look.", "search_history")
        assert given.parts[0]["tool_call_id"] == calls.parts[0]["id"]
        assert result_of(given).startswith('<recalled of="search in earlier messages">\n#7 user ')
        assert WORDS.format(seq=7).strip() in result_of(given)
        assert (result.reply.content, reply.id) == ("It was 7.", result.reply.id)
        assert answered(gemini) == [result_of(given)]
        assert (
            declared(gemini, 0) == declared(gemini, 1) == ["order_status", "leaks", "search_history", "expand_context"]
        )
        ((way, segment, passages),) = await expansions(service, conversation_id)
        assert (way, segment) == ("search", None)
        assert passages == len(given.parts[0]["quotes"])

    @pytest.mark.long
    async def test_does_not_find_the_question_itself(self, service: Service, gemini: Gemini) -> None:
        conversation_id = await compacted(service)
        gemini.script("chat", calling("search_history", query="zeppelin"), saying("Nothing."))
        await chat(service, conversation_id, "What did we say about the zeppelin?")

        assert answered(gemini) == ["No earlier message fits. Try other words, or fewer."]

    async def test_of_expand_context_gives_the_originals_of_a_marker(self, service: Service, gemini: Gemini) -> None:
        conversation_id = await compacted(service)
        segment = (await segments_of(service, conversation_id))[0]
        marker = render_marker(segment_marker(segment, "L1"))
        gemini.script("chat", calling("expand_context", marker=marker, level="full"), saying("I see."))

        await chat(service, conversation_id, "What was in the beginning?")

        (told,) = answered(gemini)
        assert told.startswith(f'<recalled of="{segment.id}, full">\n#{segment.from_seq} ')
        originals = (await history(service, conversation_id))[segment.from_seq - 1 :]
        assert f": {originals[0].content}\n" in told
        ((way, recorded, passages),) = await expansions(service, conversation_id)
        assert (way, recorded) == ("explicit", segment.id)
        assert passages >= 1

    @pytest.mark.long
    async def test_goes_on_where_the_page_before_ended(self, service: Service, gemini: Gemini) -> None:
        conversation_id = await service.conversation(context_window=8_000)
        await service.say(conversation_id, 40, words=4)
        await service.container.manual.compact(service.tenant, conversation_id, CompactInput(), timeout=PATIENCE)
        segment = max(await segments_of(service, conversation_id), key=lambda one: one.tokens)
        gemini.script("chat", calling("expand_context", marker=segment.id, level="L0"), saying("."))
        await chat(service, conversation_id, "First part?")
        (first,) = answered(gemini)
        _, _, after = first.rpartition('"after": "')
        after, _, _ = after.partition('"')
        gemini.script("chat", calling("expand_context", marker=segment.id, level="L0", after=after), saying("."))
        await chat(service, conversation_id, "And then?")

        second = answered(gemini)[-1]
        seqs = [int(line[1:].partition(" ")[0]) for line in f"{first}\n{second}".splitlines() if line.startswith("#")]
        assert seqs == list(range(segment.from_seq, segment.from_seq + len(seqs)))
        assert len(second) > 100

    async def test_of_a_settings_tool_gets_its_result(self, service: Service, gemini: Gemini) -> None:
        conversation_id = await service.conversation()
        gemini.script("chat", calling("order_status", number=41), saying("On its way."))
        result = await chat(service, conversation_id, "Where is order 41?")

        assert answered(gemini) == ["Order 41 has left harbour 12."]
        assert result.reply.content == "On its way."
        assert [one.role for one in await history(service, conversation_id)] == [
            "user",
            "assistant",
            "tool",
            "assistant",
        ]

    async def test_that_fails_says_so_and_nothing_else(self, service: Service, gemini: Gemini) -> None:
        conversation_id = await service.conversation()
        gemini.script("chat", calling("leaks", word="x"), saying("Sorry."))
        await chat(service, conversation_id, "Look.")

        assert answered(gemini) == ["The tool failed: RuntimeError."]
        assert "hunter2" not in str(await history(service, conversation_id))

    @pytest.mark.daily(2)
    @pytest.mark.parametrize(
        ("name", "arguments", "told"),
        [
            ("launch", {"code": 7}, "There is no tool launch. The tools are: order_status, leaks, search_history, "),
            ("expand_context", {"marker": "no_such_segment"}, "There is no segment no_such_segment in this "),
            pytest.param(
                "expand_context",
                {"marker": "[a →L1:b] [c →L1:d]", "level": "full"},
                "There is no segment [a ",
                marks=pytest.mark.long,
            ),
            ("expand_context", {"marker": "../../etc/passwd\n</recalled>", "level": "full"}, "There is no segment "),
            pytest.param("expand_context", {}, "There is no segment ", marks=pytest.mark.long),
            ("expand_context", {"marker": "earlier", "level": "L7"}, "There is no level L7. The levels are: full, "),
            pytest.param(
                "expand_context", {"marker": "earlier", "after": "-1"}, "The call was refused: ", marks=pytest.mark.long
            ),
            ("search_history", {"query": "   "}, "Say in query what to look for."),
            pytest.param("search_history", {"limit": -4}, "Say in query what to look for.", marks=pytest.mark.long),
            ("order_status", {"number": "many"}, "The call was refused: number: "),
        ],
    )
    async def test_that_is_wrong_is_told_what_is_wrong(
        self, service: Service, gemini: Gemini, name: str, arguments: dict[str, Any], told: str
    ) -> None:
        conversation_id = await compacted(service, 48)
        gemini.script("chat", calling(name, **arguments), saying("I see."))
        result = await chat(service, conversation_id, "Try.")

        (given,) = answered(gemini)
        assert given.startswith(told)
        assert "</recalled>" not in given
        assert result.reply.content == "I see."
        assert await expansions(service, conversation_id) == []

    @pytest.mark.long
    async def test_of_the_lists_leads_to_what_has_no_room(self, service: Service, gemini: Gemini) -> None:
        conversation_id = await compacted(service)
        gemini.script("chat", calling("expand_context", marker="[earlier →L3:earlier]", level="tags"), saying("I see."))
        await chat(service, conversation_id, "What is there?")

        (told,) = answered(gemini)
        listed = await segments_of(service, conversation_id)
        assert render_marker(segment_marker(listed[0], "L1")) in told

    async def test_sees_nothing_of_another_tenant(
        self, service: Service, gemini: Gemini, begin: UnitOfWorkFactory
    ) -> None:
        other = Service(begin, await make_tenant(begin, "somebody else"))
        theirs = await other.conversation(context_window=16_000)
        await other.container.messages.append(
            other.tenant, theirs, [MessageDraft(role="user", content="The zanzibar vault code is 8841. " * 20)] * 12
        )
        await other.container.manual.compact(other.tenant, theirs, CompactInput(), timeout=PATIENCE)
        foreign = (await segments_of(other, theirs))[0].id
        conversation_id = await compacted(service, 24)
        assert foreign not in {one.id for one in await segments_of(service, conversation_id)}
        gemini.script(
            "chat",
            calling("expand_context", marker=foreign, level="full"),
            calling("search_history", query="zanzibar vault code"),
            saying("No."),
        )
        await chat(service, conversation_id, "What is the code?")

        assert "8841" not in str(gemini.requests("chat")[-1]["body"])
        assert [text.partition(" ")[0] for text in answered(gemini)] == ["There", "No"]


class TestWhenToolsAreOffered:
    async def test_a_short_chat_has_none(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = scripted(begin, tenant, "Hello.")
        conversation_id = await service.conversation()
        before = await system_tokens(service, conversation_id)
        await chat(service, conversation_id, "Hi.")

        (request,) = service.chat_model.requests
        assert request.tools == ()
        assert (
            await service.container.conversations.get(service.tenant, conversation_id)
        ).gauge.breakdown.system == before

    @pytest.mark.long
    async def test_from_the_first_compaction_on_they_are_counted_and_stay(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        service = scripted(begin, tenant, "Well.")
        conversation_id = await compacted(service)
        for text in ("One.", "Two.", "Which harbour was number 7?"):
            await chat(service, conversation_id, text)

        offers = {tuple(tool.name for tool in request.tools) for request in service.chat_model.requests}
        assert offers == {("search_history", "expand_context")}
        context = await service.container.context.assemble(service.tenant, conversation_id)
        counted = await system_tokens(service, conversation_id)
        assert counted == context.gauge.breakdown.system
        assert counted > 100 + await system_tokens(service, await service.conversation())

    @pytest.mark.long
    async def test_without_levels_there_is_nothing_to_expand(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = scripted(begin, tenant, "Well.")
        conversation_id = await compacted(service, levels=[])
        await chat(service, conversation_id, "One.")

        assert [tool.name for tool in service.chat_model.requests[-1].tools] == ["search_history"]

    async def test_what_truncation_leaves_out_can_be_searched(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = scripted(begin, tenant, "Well.")
        conversation_id = await service.conversation(max_tokens=-1)
        await service.say(conversation_id, 70)
        await chat(service, conversation_id, "One.")

        assert [tool.name for tool in service.chat_model.requests[-1].tools] == ["search_history"]

    async def test_a_model_that_takes_none_is_offered_none(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = Service(begin, tenant)
        conversation_id = await compacted(service)
        await chat(service, conversation_id, "One.")

        assert service.chat_model.requests[-1].tools == ()


class TestTheBound:
    async def test_ends_a_model_that_never_stops_with_an_answer(self, service: Service, gemini: Gemini) -> None:
        conversation_id = await service.conversation()
        again = {**calling("order_status", number=1), "times": MAX_CALLS}
        gemini.script("chat", again, saying("Enough."))
        result = await chat(service, conversation_id, "Go.")

        assert len(gemini.requests("chat")) == MAX_CALLS + 1
        assert declared(gemini, MAX_CALLS - 1) == ["order_status", "leaks"]
        assert declared(gemini, MAX_CALLS) == []
        assert result.reply.content == "Enough."
        assert result.warnings == ("tool_calls_used_up",)
        assert [one.role for one in await history(service, conversation_id)] == [
            "user",
            *["assistant", "tool"] * MAX_CALLS,
            "assistant",
        ]

    async def test_counts_calls_and_not_steps(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        many = Reply(calls=(ToolCall(id="0", name="order_status", arguments={"number": 1}),) * 30)
        service = scripted(begin, tenant, many, "Enough.", tools=["order_status"])
        conversation_id = await service.conversation()
        await chat(service, conversation_id, "Go.")

        stored = await history(service, conversation_id)
        assert len(stored[1].parts) == MAX_CALLS
        assert len({part["id"] for part in stored[1].parts}) == MAX_CALLS, "under ids of ours"
        assert [one.role for one in stored[2:]] == ["tool"] * MAX_CALLS + ["assistant"]

    @pytest.mark.long
    async def test_a_model_that_calls_what_it_was_not_offered_gave_no_answer(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        service = scripted(begin, tenant, call("order_status", number=1), tools=["order_status"])
        conversation_id = await service.conversation()
        with pytest.raises(ModelFailedError) as caught:
            await chat(service, conversation_id, "Go.")

        assert caught.value.stable_code == "empty_reply"
        assert len(service.chat_model.requests) == MAX_CALLS + 1
        assert (await history(service, conversation_id))[-1].role == "tool"

    async def test_a_result_is_cut_and_says_so(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service = scripted(begin, tenant, call("long_list", lines=3_000), "I see.", tools=["long_list"])
        conversation_id = await service.conversation()
        await chat(service, conversation_id, "Go.")
        (given,) = [one for one in await history(service, conversation_id) if one.role == "tool"]

        assert given.token_count <= 306 + 10
        assert given.parts[0]["content"].endswith(" characters in all]")
        monkeypatch.setattr(toolbox, "shortened_text", lambda text, *_: text)
        control = scripted(begin, tenant, call("long_list", lines=3_000), "I see.", tools=["long_list"])
        conversation_id = await control.conversation()
        with pytest.raises(ContextOverWindowError):
            await chat(control, conversation_id, "Go.")

    @pytest.mark.long
    async def test_results_of_one_step_fit_together(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        """The results cannot be separated from their call; together they leave room for the question and the rest."""
        many = Reply(calls=(ToolCall(id="0", name="long_list", arguments={"lines": 3_000}),) * MAX_CALLS)
        service = scripted(begin, tenant, many, "I see.", tools=["long_list"])
        conversation_id = await service.conversation()
        await chat(service, conversation_id, "Go.")

        results = [one.token_count for one in await history(service, conversation_id) if one.role == "tool"]
        assert len(results) == MAX_CALLS
        assert sum(results) < 0.45 * 3_060

    async def test_a_tool_that_takes_too_long_is_given_up(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service = scripted(begin, tenant, call("sleeps"), "I see.", call("sleeps"), "I see.", tools=["sleeps"])
        conversation_id = await service.conversation()
        monkeypatch.setattr(toolbox, "TIMEOUT", 0.1)
        await chat(service, conversation_id, "Go.")
        assert result_of((await history(service, conversation_id))[2]) == "The tool did not answer within 0.1 seconds."

        monkeypatch.undo()
        await chat(service, conversation_id, "Again.")
        assert result_of((await history(service, conversation_id))[6]) == "late"


class TestBetweenCalls:
    async def test_a_long_result_is_made_room_for(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        """Each of four results of a tenth of the budget lifts the context above nine tenths of it."""
        service = scripted(begin, tenant, *[call("long_list", lines=3_000)] * 4, "I see.", tools=["long_list"])
        conversation_id = await service.conversation(triggers=[MID_TURN])
        await service.fill(conversation_id, 1_900)
        before = (await service.row(conversation_id)).last_seq
        handle = await start(service, conversation_id, "Go.")
        events = [event async for event in handle.events()]
        result = await handle.result()

        (row,) = await service.compactions(conversation_id)
        assert (row.trigger, row.ran_in, row.status) == ("mid_turn", "turn", "applied")
        assert result.compaction is not None
        assert result.compaction.compaction.id == row.id
        assert row.to_seq is not None
        assert row.to_seq <= before, "the open turn is kept"
        after = (await service.row(conversation_id)).boundary_seq
        for request in service.chat_model.requests:
            assert "Go." in [one.content.splitlines()[-1] for one in request.messages if one.role == "user"]
        asked_after = service.chat_model.requests[-1]
        assert next(one.seq for one in asked_after.messages if one.seq and one.seq > 1) == after + 1
        assert [event.type for event in events if event.type.startswith("compaction.")] == [
            "compaction.started",
            "compaction.applied",
        ]
        assert result.warnings == ()

    @pytest.mark.long
    async def test_nothing_happens_without_the_trigger_or_before_a_call(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        """The controls: the same turn without the trigger, and the trigger without a call."""
        service = scripted(begin, tenant, *[call("long_list", lines=3_000)] * 4, "I see.", tools=["long_list"])
        without = await service.conversation(max_tokens=-1)
        await service.fill(without, 1_900)
        await chat(service, without, "Go.")
        assert await service.compactions(without) == []

        full = await service.conversation(triggers=[MID_TURN])
        await service.fill(full, 2_900)
        await chat(service, full, "Go.")
        assert await service.container.compaction.claim_due(service.tenant, full) is None, "nothing for a sweeper"
        assert await service.compactions(full) == []

    @pytest.mark.long
    async def test_a_turn_that_left_nothing_to_fold_is_folded_when_it_is_over(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        completion = {"name": "completion", "on": "completed", "at": {"share": 0.9}, "run": "background"}

        async def ended() -> list[tuple[str, str | None]]:
            service = scripted(begin, tenant, *[call("long_list", lines=3_000)] * 8, "I see.", tools=["long_list"])
            triggers = [MID_TURN | {"at": {"share": 0.6}}, completion | {"fold": "all"}]
            conversation_id = await service.conversation(triggers=triggers)
            await chat(service, conversation_id, "Go. " * 100)  # above the trigger, and not above the budget
            return [(row.trigger, row.reason) for row in await service.compactions(conversation_id)]

        skipped = ("mid_turn", "nothing_to_compact")
        *between, last = await ended()
        assert set(between) == {skipped}
        assert last == ("completion", None)

        async def stays(_uow: object, conversation: Any, _asked: object) -> Any:
            return conversation

        monkeypatch.setattr("app.usecases.chat.turn.end_quiet_of_turn", stays)
        assert set(await ended()) == {skipped}, "the control"

    @pytest.mark.long
    async def test_what_runs_beside_a_turn_folds_nothing_of_it(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def run_in_between() -> None:
            await service.container.manual.compact(service.tenant, conversation_id, CompactInput(), timeout=PATIENCE)

        pause = Reply(pieces=("Well.",), meanwhile=run_in_between)
        steps = [*[call("long_list", lines=3_000)] * 3, pause]
        service = scripted(begin, tenant, *steps, *steps, tools=["long_list"])
        conversation_id = await service.conversation(max_tokens=-1, manual_keep={"turns": 0})
        await service.say(conversation_id, 20)
        asked = (await chat(service, conversation_id, "Go.")).message
        assert 0 < (await service.row(conversation_id)).boundary_seq < asked.seq

        async def unbounded(_uow: object, _id: UUID, request: Any) -> Any:
            return request

        monkeypatch.setattr("app.usecases.compaction.chunk.before_running_turn", unbounded)
        conversation_id = await service.conversation(max_tokens=-1, manual_keep={"turns": 0})
        await service.say(conversation_id, 20)
        asked = (await chat(service, conversation_id, "Go.")).message
        assert (await service.row(conversation_id)).boundary_seq > asked.seq, "the control folds the question"

    @pytest.mark.long
    async def test_the_question_stays_where_results_have_to_go(
        self, begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Eight long results and a long state together are more than a small budget holds."""
        question = "Which of these crates is the heaviest? " * 4

        async def last_asked() -> list[str]:
            service = scripted(begin, tenant, *[call("long_list", lines=3_000)] * 8, "Well.", tools=["long_list"])
            conversation_id = await service.conversation(max_tokens=-1, context_window=2_400)
            await service.say(conversation_id, 2)
            monkeypatch.setattr("app.usecases.chat.toolbox.result_tokens", lambda _budgets, _calls: 400)
            result = await chat(service, conversation_id, question)
            assert "context_truncated" in result.warnings
            return [one.content for one in service.chat_model.requests[-1].messages if one.role == "user"]

        assert any(question in text for text in await last_asked())
        monkeypatch.setattr("app.usecases.context.context._with_question_held", lambda material: material)
        assert not any(question in text for text in await last_asked()), "the control loses it"


class TestAnInterruption:
    async def test_while_a_tool_runs_leaves_a_call_with_a_stub(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = scripted(begin, tenant, call("sleeps"), "And now?", tools=["sleeps"])
        conversation_id = await service.conversation()
        handle = await start(service, conversation_id, "Go.")
        async for event in handle.events():
            if event.type == "message.created" and event.data["role"] == "assistant":
                await service.container.chat.interrupt(service.tenant, conversation_id)
        result = await handle.result()

        asked, calls, reply = await history(service, conversation_id)
        assert (calls.role, calls.status) == ("assistant", "complete")
        assert (reply.status, reply.content, result.reply.id) == ("interrupted", "", reply.id)
        assert asked.seq == 1
        await chat(service, conversation_id, "So?")
        sent = service.chat_model.requests[-1].messages
        assert [part["type"] for one in sent for part in one.parts] == ["tool_call"]

        late = MessageDraft(
            role="tool",
            content="",
            parts=({"type": "tool_result", "tool_call_id": calls.parts[0]["id"], "content": "late"},),
        )
        await service.container.messages.append(service.tenant, conversation_id, [late])
        context = await service.container.context.assemble(service.tenant, conversation_id)
        assert [part["type"] for one in context.messages for part in one.parts] == ["tool_call", "tool_result"]

    async def test_while_nothing_is_interrupted_the_result_comes(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        """The control of the test above."""
        service = scripted(begin, tenant, call("sleeps"), "And now?", tools=["sleeps"])
        conversation_id = await service.conversation()
        await chat(service, conversation_id, "Go.")

        assert [one.role for one in await history(service, conversation_id)] == [
            "user",
            "assistant",
            "tool",
            "assistant",
        ]

    async def test_a_provider_is_given_a_stub_until_the_result_comes(self, service: Service, gemini: Gemini) -> None:
        conversation_id = await service.conversation()
        part = {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {}}
        drafts = [
            MessageDraft(role="user", content="How warm is it?"),
            MessageDraft(role="assistant", content="", parts=(part,)),
            MessageDraft(role="assistant", content="", status="interrupted"),
        ]
        await service.container.messages.append(service.tenant, conversation_id, drafts)
        await chat(service, conversation_id, "So?")
        assert answered(gemini) == ["interrupted"]

        result = {"type": "tool_result", "tool_call_id": "c1", "content": "21 degrees"}
        await service.container.messages.append(
            service.tenant, conversation_id, [MessageDraft(role="tool", content="", parts=(result,))]
        )
        await chat(service, conversation_id, "So?")
        assert answered(gemini) == ["21 degrees"]

    @pytest.mark.long
    async def test_an_unanswered_call_of_an_ended_turn_can_be_folded(
        self, begin: UnitOfWorkFactory, tenant: UUID
    ) -> None:
        service = scripted(begin, tenant, call("sleeps"), tools=["sleeps"])
        conversation_id = await service.conversation(max_tokens=-1, manual_keep={"turns": 0})
        await service.say(conversation_id, 10)
        handle = await start(service, conversation_id, "Go.")
        async for event in handle.events():
            if event.type == "message.created" and event.data["role"] == "assistant":
                await service.container.chat.interrupt(service.tenant, conversation_id)
        await service.container.manual.compact(service.tenant, conversation_id, CompactInput(), timeout=PATIENCE)

        row = await service.row(conversation_id)
        assert row.boundary_seq == row.last_seq


class TestATurnThatBroke:
    async def test_between_call_and_answer_is_taken_up(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = scripted(
            begin,
            tenant,
            call("order_status", number=3),
            RuntimeError("the process died"),
            "At last.",
            tools=["order_status"],
        )
        conversation_id = await service.conversation()
        with pytest.raises(Exception, match="failed unexpectedly"):
            await chat(service, conversation_id, "Where is it?")
        result = await chat(service, conversation_id, None)

        assert result.message.content == "Where is it?"
        sent = service.chat_model.requests[-1].messages
        assert [part["type"] for one in sent for part in one.parts] == ["tool_call", "tool_result"]
        assert [one.role for one in await history(service, conversation_id)] == [
            "user",
            "assistant",
            "tool",
            "assistant",
        ]

    async def test_is_taken_up_under_its_key(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        service = scripted(
            begin,
            tenant,
            call("order_status", number=3),
            RuntimeError("the process died"),
            "At last.",
            tools=["order_status"],
        )
        conversation_id = await service.conversation()
        idem = Idem(key="k", fingerprint="f")
        with pytest.raises(Exception, match="failed unexpectedly"):
            await chat(service, conversation_id, "Where is it?", idem)
        result = await chat(service, conversation_id, "Where is it?", idem)

        assert result.reply.content == "At last."
        assert [one.role for one in await history(service, conversation_id)] == [
            "user",
            "assistant",
            "tool",
            "assistant",
        ]

    async def test_one_that_was_answered_is_not(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        """The control: after the reply nothing is waiting."""
        service = scripted(begin, tenant, call("order_status", number=3), "At last.", tools=["order_status"])
        conversation_id = await service.conversation()
        await chat(service, conversation_id, "Where is it?")
        with pytest.raises(Exception, match="no unanswered user message"):
            await chat(service, conversation_id, None)


class TestTheNumbers:
    async def test_the_reply_sums_what_all_steps_used(self, service: Service, gemini: Gemini) -> None:
        conversation_id = await service.conversation(context_window=16_000)
        await service.say(conversation_id, 60)
        gemini.script("chat", calling("order_status", number=1), calling("order_status", number=2), saying("There."))
        result = await chat(service, conversation_id, "Go.")

        used = result.reply.usage or {}
        stored = await history(service, conversation_id)
        assert [one.usage for one in stored if one.role == "assistant"][-3:-1] == [None, None]
        row = await service.row(conversation_id)
        assert used["input_tokens"] > 2 * row.context_tokens, "three requests"
        assert abs(row.token_factor - 1) < 0.03, "each request is compared with its own estimate"

    async def test_the_sum_would_have_been_learned_wrong(
        self, service: Service, gemini: Gemini, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The control: one estimate is compared with the tokens of three requests."""
        summed = Answer.after

        def wrong(self: Answer, before: Answer) -> Answer:
            both = summed(self, before)
            return replace(both, token_counts=((self.token_counts[0][0], both.usage.input_tokens),))

        monkeypatch.setattr(Answer, "after", wrong)
        conversation_id = await service.conversation(context_window=16_000)
        await service.say(conversation_id, 60)
        gemini.script("chat", calling("order_status", number=1), calling("order_status", number=2), saying("There."))
        await chat(service, conversation_id, "Go.")

        assert (await service.row(conversation_id)).token_factor == pytest.approx(1.05), "as far as one step may go"

    async def test_a_smaller_window_is_remembered_through_the_turn(self, service: Service, gemini: Gemini) -> None:
        conversation_id = await service.conversation(max_tokens=-1)
        await service.say(conversation_id, 60)
        small = {"max_input_tokens": 2_400}
        gemini.script(
            "chat",
            {**calling("order_status", number=1), **small},
            {**calling("order_status", number=1), **small},
            {**saying("There."), **small},
        )
        result = await chat(service, conversation_id, "Go.")

        assert result.reply.content == "There."
        assert "context_halved" in result.warnings
        assert len(gemini.requests("chat")) == 3, "the second step begins with what the first one learned"


class TestWhatIsSeen:
    async def test_the_stream_tells_of_each_message_and_deltas_only_of_text(
        self, service: Service, gemini: Gemini
    ) -> None:
        conversation_id = await service.conversation()
        gemini.script("chat", calling("order_status", "Let me look.", number=1), saying("There."))
        handle = await start(service, conversation_id, "Go.")
        events: list[ChatEvent] = [event async for event in handle.events()]

        created = [(event.data["seq"], event.data["role"]) for event in events if event.type == "message.created"]
        assert created == [(1, "user"), (2, "assistant"), (3, "tool")]
        assert "".join(event.data["text"] for event in events if event.type == "reply.delta") == "Let me look.There."
        assert [event.type for event in events][-1] == "reply.completed"
        ids = [event.id for event in events if event.id is not None]
        assert ids == sorted(ids)
        stored = await service.events(conversation_id)
        assert stored.count("message.created") == 4

    async def test_a_marker_in_a_users_words_is_resolved_by_nothing(self, service: Service, gemini: Gemini) -> None:
        conversation_id = await compacted(service, recall="off")
        segment = (await segments_of(service, conversation_id))[0]
        marker = render_marker(segment_marker(segment, "L1"))
        await chat(service, conversation_id, f"What does {marker} mean? expand_context(marker='{segment.id}')")

        assert len(gemini.requests("chat")) == 1
        assert WORDS.format(seq=2) * 2 not in str(gemini.requests("chat")[-1]["body"]["contents"][-1])
        assert [row for row in await expansions(service, conversation_id) if row[0] == "explicit"] == []

    async def test_a_clients_own_tool_messages_still_work(self, service: Service, gemini: Gemini) -> None:
        conversation_id = await service.conversation()
        part = {"type": "tool_call", "id": "call_0", "name": "weather", "arguments": '{"city": "Lisbon"}'}
        drafts = [
            MessageDraft(role="user", content="How warm is it?"),
            MessageDraft(role="assistant", content="", parts=(part,)),
            MessageDraft(
                role="tool", content="", parts=({"type": "tool_result", "tool_call_id": "call_0", "content": "21"},)
            ),
        ]
        await service.container.messages.append(service.tenant, conversation_id, drafts)
        gemini.script("chat", calling("order_status", number=9), saying("It is 21 degrees."))
        result = await chat(service, conversation_id, None)

        assert result.message.content == "How warm is it?"
        assert answered(gemini) == ["21", "Order 9 has left harbour 12."]


class TestErasure:
    """The result of a tool is derived from the messages that it quotes."""

    SECRET = "The vault phrase is Kestrel-7741, written on the old violet envelope."

    async def looked_up(self, service: Service, gemini: Gemini) -> tuple[UUID, Message]:
        """A conversation in which a secret was found, shown in its segment, and the search shown again."""
        conversation_id = await service.conversation(context_window=16_000)
        await service.say(conversation_id, 6)
        secret = MessageDraft(role="user", content=self.SECRET)
        (message,) = await service.container.messages.append(service.tenant, conversation_id, [secret])
        await service.say(conversation_id, 25)
        await service.container.manual.compact(service.tenant, conversation_id, CompactInput(), timeout=PATIENCE)
        around = [one for one in await segments_of(service, conversation_id) if one.from_seq <= 7 <= one.to_seq]
        gemini.script(
            "chat",
            calling("search_history", query="vault phrase violet envelope"),
            calling("expand_context", marker=around[0].id, level="full"),
            calling("expand_context", marker=around[0].id, level="brief"),
            saying("I see."),
        )
        await chat(service, conversation_id, "What was it?")
        await service.container.manual.compact(
            service.tenant, conversation_id, CompactInput(keep_tail_messages=0), timeout=PATIENCE
        )
        last = (await segments_of(service, conversation_id))[-1]
        gemini.script("chat", calling("expand_context", marker=last.id, level="full"), saying("I see."))
        await chat(service, conversation_id, "And in the end?")
        assert str(await history(service, conversation_id)).count("Kestrel-7741") >= 4
        return conversation_id, message

    @pytest.mark.long
    async def test_goes_with_what_it_quotes(self, service: Service, gemini: Gemini) -> None:
        conversation_id, message = await self.looked_up(service, gemini)
        await service.container.erasure.erase(service.tenant, conversation_id, message.id)

        left = await history(service, conversation_id)
        assert [one for one in left if "Kestrel-7741" in str(one)] == []
        assert [one.role for one in left if one.status == "erased"] == ["user", *["tool"] * 4]
        await chat(service, conversation_id, "Go on.")
        assert "Kestrel-7741" not in str(gemini.requests("chat")[-1]["body"])

    @pytest.mark.long
    async def test_stays_where_quotes_are_not_looked_for(
        self, service: Service, gemini: Gemini, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The control of the test above."""
        conversation_id, message = await self.looked_up(service, gemini)

        async def none(_uow: object, _message: Message) -> list[Message]:
            return []

        monkeypatch.setattr("app.usecases.history.erasure._all_quoting", none)
        await service.container.erasure.erase(service.tenant, conversation_id, message.id)
        assert "Kestrel-7741" in str(await history(service, conversation_id))

    @pytest.mark.long
    async def test_while_a_tool_looks_leaves_nothing_behind(
        self, service: Service, gemini: Gemini, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        conversation_id = await compacted(service)
        target = (await history(service, conversation_id))[6]
        looks = lookups.Lookups.search

        async def and_erases(self: lookups.Lookups, *given: Any) -> lookups.ToolResult:
            found = await looks(self, *given)
            await service.container.erasure.erase(service.tenant, conversation_id, target.id)
            return found

        monkeypatch.setattr(lookups.Lookups, "search", and_erases)
        gemini.script("chat", calling("search_history", query="harbour number 7"), saying("."))
        await chat(service, conversation_id, "Which was it?")

        assert answered(gemini) == ["A message was erased meanwhile. Call again."]
        assert await expansions(service, conversation_id) == []

    @pytest.mark.long
    async def test_a_search_does_not_find_what_a_search_brought_back(self, service: Service, gemini: Gemini) -> None:
        conversation_id = await compacted(service)
        for _ in range(2):
            gemini.script("chat", calling("search_history", query="harbour number 7"), saying("There."))
            await chat(service, conversation_id, "Which was it?")

        first, second = answered(gemini, -3)[-1], answered(gemini)[-1]
        assert first == second
        assert " tool " not in second

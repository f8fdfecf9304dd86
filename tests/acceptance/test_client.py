"""The typed client against the running service: every group of methods, streams, and both ways of calling."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator

import pytest

from app.client import (
    AsyncContextCompressor,
    AsyncThroughline,
    ConnectionFailedError,
    ContextCompressor,
    InvalidInputError,
    NotFoundError,
    PreconditionFailedError,
    Retrying,
    Throughline,
    endpoints,
)
from tests.acceptance.conftest import StartService
from tests.acceptance.service import Service
from tests.acceptance.talk import MANUAL, lines

BATCH = [{"role": role, "content": content} for role, content in lines(60)]


@pytest.fixture
def client(offline: Service) -> Iterator[Throughline]:
    with Throughline(offline.url, trust_env=False) as made:
        yield made


@pytest.fixture
def folded(client: Throughline) -> Iterator[str]:
    """A conversation that is compacted."""
    talk = client.create_conversation(title="Rooms", policy=MANUAL, user_id="client-tests")
    client.append_many(talk.id, BATCH)
    assert client.compact(talk.id, keep_tail_messages=2).status == "applied"
    yield str(talk.id)
    client.delete_conversation(talk.id)


def test_a_conversation_from_beginning_to_end(client: Throughline) -> None:
    made = client.create_conversation(title="Trip", metadata={"k": [1]}, policy=MANUAL)
    changed = client.change_conversation(made.id, title=None, if_match=0)
    assert (changed.title, changed.metadata, changed.policy["context_window"]) == (None, {"k": [1]}, 4_000)
    with pytest.raises(PreconditionFailedError):
        client.change_conversation(made.id, policy={}, if_match=7)

    first = client.append(made.id, "user", "I want to see the sea.", event_type="goal")
    again = client.append(made.id, "user", "Soon.", idempotency_key="soon")
    assert client.append(made.id, "user", "Soon.", idempotency_key="soon") == again
    assert [message.seq for message in client.messages(made.id, page_size=1)] == [1, 2]
    result = client.chat(made.id, "Where do I go?", recall=False)
    assert result.reply.role == "assistant"
    assert result.message.content == "Where do I go?"
    assert client.pin_message(made.id, first.id).protected_reason == "pinned"
    assert client.unpin_message(made.id, first.id).id == first.id
    client.erase_message(made.id, again.id)
    assert [message.status for message in client.messages(made.id)][1] == "erased"
    assert client.usage(made.id).tokens > 0
    assert client.export(made.id)["messages"]
    assert "I want to see the sea." in client.export_markdown(made.id)
    assert b"I want to see the sea." in b"".join(client.download(endpoints.export(made.id)))
    assert client.interrupt(made.id).interrupted is False
    client.delete_conversation(made.id)
    with pytest.raises(NotFoundError):
        client.conversation(made.id)
    with pytest.raises(NotFoundError):
        next(client.download(endpoints.export(made.id)))


@pytest.mark.long
def test_lists_and_what_compaction_leaves(client: Throughline, folded: str) -> None:
    assert [one.id for one in client.conversations(user_id="client-tests")] == [client.conversation(folded).id]
    assert len(list(client.messages(folded, page_size=7))) == 60
    assert len(list(itertools.islice(client.messages(folded, page_size=7), 9))) == 9
    (row,) = client.compactions(folded)
    assert row.id is not None
    assert client.compaction(row.id) == row
    (version,) = client.states(folded)
    assert version.version == 1
    client.append_many(folded, BATCH)
    client.compact(folded, keep_tail_messages=2)
    assert client.compare_states(folded, 1, 2).b == 2
    assert client.restore(folded, 1).state_version == 3
    hit = next(client.search(folded, "Nordwind"))
    assert "Nordwind" in hit.snippet
    anchor = next(client.anchors(folded, status="active"))
    assert client.set_anchor_status(folded, anchor.id, "resolved").status == "resolved"
    assert {preset.name for preset in client.presets()} >= {"semantic"}
    assert client.count_tokens("a few words").tokens > 0
    assert client.readiness()["status"] in {"ok", "degraded"}
    assert list(client.all_compactions(status="failed", page_size=1)) == []


def test_errors_are_typed(client: Throughline, folded: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        client.context(folded, -1)
    assert [one["field"] for one in caught.value.errors] == ["budget"]
    assert caught.value.request_id


@pytest.mark.long
def test_the_engine_s_interface(client: Throughline, folded: str) -> None:
    compressor = ContextCompressor(client, folded)
    segment = next(client.segments(folded))
    assert segment.from_seq is not None
    assert segment.to_seq is not None

    for level in (1, 2, 3):
        assert compressor.compress(segment, level).content
    assert compressor.compress((segment.from_seq, segment.to_seq), "brief").segment_id == segment.segment_id
    for whole in (compressor.compress(segment, 0), compressor.compress((segment.from_seq, segment.to_seq), 0)):
        assert (whole.level, whole.messages) == ("full", compressor.expand(segment.segment_id, 0).messages)
    full = compressor.expand(segment.segment_id, 0)
    originals = [one for one in client.messages(folded) if segment.from_seq <= one.seq <= segment.to_seq]
    assert [one.content for one in full.messages] == [one.content for one in originals]
    context = compressor.assemble_context(folded, 700, {"query": "oak tables", "format": "anthropic"})
    assert context.system
    assert [message["role"] for message in context.messages[:2]] == ["user", "assistant"]
    assert context.gauge.tokens - context.gauge.breakdown.system <= 700
    assert compressor.expand("earlier").segment_id == "earlier"


def test_streams(client: Throughline) -> None:
    talk = client.create_conversation()
    events = list(client.chat_stream(talk.id, "Hello there", idempotency_key="s"))
    repeated = list(client.chat_stream(talk.id, "Hello there", idempotency_key="s"))

    assert events[0].type == "message.created"
    result = events[-1].result
    assert result is not None
    assert "".join(event.text for event in events) == result.reply.content
    assert repeated[-1].result == result
    numbers = [int(event.id) for event in itertools.islice(client.events(talk.id), 3)]
    assert numbers == [1, 2, 3]
    assert int(next(client.events(talk.id, after=2)).id) == 3
    client.delete_conversation(talk.id)


@pytest.mark.long
def test_awaited(offline: Service) -> None:
    async def main() -> None:
        async with AsyncThroughline(offline.url, trust_env=False) as client:
            talk = await client.create_conversation(policy=MANUAL)
            await client.append_many(talk.id, BATCH)
            await client.compact(talk.id, keep_tail_messages=2)
            assert len([one async for one in client.messages(talk.id, page_size=25)]) == 60
            events = [event async for event in client.chat_stream(talk.id, "Hello there")]
            assert events[-1].result is not None
            assert "".join(event.text for event in events) == events[-1].result.reply.content
            async for event in client.events(talk.id, after=3):
                assert event.id == "4"
                break
            segment = await anext(client.segments(talk.id))
            expanded = await AsyncContextCompressor(client, talk.id).expand(segment.segment_id)
            assert expanded.messages[0].seq == segment.from_seq
            context = await client.context(talk.id, query="oak tables", compact="if_needed", format="gemini")
            assert context.messages[0]["role"] == "user"
            pieces = [piece async for piece in client.download(endpoints.export(talk.id))]
            assert len(json.loads(b"".join(pieces))["messages"]) == 62
            await client.delete_conversation(talk.id)
            with pytest.raises(NotFoundError):
                await client.usage(talk.id)
            with pytest.raises(NotFoundError):
                await anext(client.download(endpoints.export(talk.id)))

    asyncio.run(main())


@pytest.mark.long
@pytest.mark.processes
def test_a_service_that_was_killed_is_waited_for(start_service: StartService) -> None:
    """No request fails, and each has one effect."""
    service = start_service(worker=False)
    patient = Retrying(attempts=60, first_pause=0.5, longest_pause=2.0)
    with (
        Throughline(service.url, trust_env=False, retrying=patient) as client,
        Throughline(service.url, trust_env=False, retrying=Retrying(attempts=1)) as impatient,
    ):
        talk = client.create_conversation()
        service.api.kill()
        with pytest.raises(ConnectionFailedError):
            impatient.append(talk.id, "user", "The control.")
        service.api.start(wait=False)
        message = client.append(talk.id, "user", "Are you there?")
        assert [one.id for one in client.messages(talk.id)] == [message.id]

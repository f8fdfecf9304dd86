"""The offline model behind the ports: it says what the core says, in pieces, off the event loop."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.model.conversation import Message
from app.core.model.model_io import ChatRequest, ContextMessage, StepFinish, SummaryRequest, TextDelta
from app.core.model.schemas.session import SESSION
from app.core.retrieval import offline_responder
from app.core.retrieval.offline_responder import respond
from app.core.summarizer.offline.extractive import compress
from app.core.text.token_counts import estimate_text
from app.providers import offline
from app.providers.offline import OfflineChat, OfflineSummarizer, reply_pieces

ID = UUID("01900000-0000-7000-8000-000000000000")
REQUEST = SummaryRequest(
    schema=SESSION,
    messages=tuple(
        Message(
            id=ID,
            conversation_id=ID,
            seq=seq,
            role="user" if seq % 2 else "assistant",
            content=f"In room {seq} of the museum hangs picture number {seq * 7}, painted in {1800 + seq}.",
            token_count=20,
            created_at=datetime(2026, 11, 20, 9, seq, tzinfo=UTC),
        )
        for seq in range(1, 11)
    ),
)
CHAT = ChatRequest(
    messages=(
        ContextMessage(role="user", content="The museum opens at 9:30 and costs 12 euros."),
        ContextMessage(role="assistant", content="Noted."),
        ContextMessage(role="user", content="When does the museum open?"),
    )
)


@given(st.text())
def test_pieces_joined_are_the_reply(reply: str) -> None:
    cut = reply_pieces(reply)
    assert "".join(cut) == reply
    assert all(cut)


def test_pieces_are_a_few_words_each() -> None:
    assert reply_pieces("one two three four five six") == ["one two three four ", "five six"]


async def test_a_reply_streams_and_costs_nothing() -> None:
    events = [event async for event in OfflineChat().step(CHAT)]
    *deltas, finish = events
    reply = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    assert reply == respond(CHAT.messages)
    assert len(deltas) > 1
    assert isinstance(finish, StepFinish)
    assert (finish.reason, finish.model, finish.usage.cost_usd) == ("stop", "offline", 0.0)
    assert finish.usage.output_tokens == estimate_text(reply)
    assert finish.usage.input_tokens >= sum(estimate_text(message.content) for message in CHAT.messages)


async def test_a_proposal_is_the_compressors_candidate() -> None:
    proposal = await OfflineSummarizer().ask(REQUEST)
    assert proposal.text == compress(REQUEST)
    assert (proposal.finish, proposal.model, proposal.called_tool) == ("stop", "offline", False)
    assert (proposal.usage.input_tokens, proposal.usage.cost_usd) == (200, 0.0)
    assert proposal.usage.output_tokens == estimate_text(proposal.text)


def test_of_many_sentences_each_is_compared_with_few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    class Sentence(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    said = [Sentence(f"The boat lay in harbour {number} for a year.") for number in range(300)]
    monkeypatch.setattr(offline_responder, "sentences", lambda _: said)
    assert "harbour 0 " in respond((ContextMessage(role="user", content=" ".join(said), seq=1),))
    assert compared <= 10 * len(said)


def test_its_calls_are_never_metered() -> None:
    assert not OfflineSummarizer().profile.metered
    assert not OfflineChat().profile.metered


async def test_the_same_request_gives_the_same_answer() -> None:
    assert await OfflineSummarizer().ask(REQUEST) == await OfflineSummarizer().ask(REQUEST)


async def test_the_loop_goes_on_while_the_compressor_works(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, goes_on = threading.Event(), threading.Event()

    def slow(_: SummaryRequest) -> str:
        begun.set()
        assert goes_on.wait(30), "nobody else was let to run"
        return "{}"

    monkeypatch.setattr(offline, "compress", slow)
    working = asyncio.create_task(OfflineSummarizer().ask(REQUEST))
    while not begun.is_set():  # noqa: ASYNC110 - a thread's
        await asyncio.sleep(0.01)
    goes_on.set()
    assert (await working).text == "{}"

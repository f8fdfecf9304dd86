"""One step of the chat model, as a turn receives it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from app.core.model.conversation import Usage
from app.core.model.errors import ModelFailedError, ModelUnavailableError
from app.core.model.model_io import ChatRequest, ContextMessage
from app.storage.unit_of_work import UnitOfWork
from app.usecases.chat import reply, spending
from app.usecases.chat.reply import Answer, ModelCallbacks, run_step
from app.usecases.chat.spending import answer_with_cost_noted
from tests.fakes import FAKE_PROFILE, Reply, ScriptedChatModel


async def answered(model: ScriptedChatModel) -> tuple[Answer, str]:
    """The answer, and the text that was heard meanwhile."""
    heard: list[str] = []
    callbacks = ModelCallbacks(on_text=heard.append, on_reasoning=heard.append)
    request = ChatRequest(messages=(ContextMessage(role="user", content="Hello"),))
    return await run_step(model, request, stop=asyncio.Event(), callbacks=callbacks), "".join(heard)


@pytest.mark.parametrize(
    ("pieces", "kept", "finish", "warnings"),
    [
        (("яяя", "яя", "never read"), "яяяя", "length", ("reply_cut_off",)),
        (("яяя", "я"), "яяяя", "stop", ()),  # control: exactly as much as a message may hold
    ],
)
async def test_a_model_that_never_ends_is_cut_off_where_a_message_ends(
    monkeypatch: pytest.MonkeyPatch, pieces: tuple[str, ...], kept: str, finish: str, warnings: tuple[str, ...]
) -> None:
    monkeypatch.setattr(reply, "MESSAGE_BYTES", 9)
    said, heard = await answered(ScriptedChatModel(Reply(pieces=pieces)))
    assert (said.text, heard) == (kept, kept), "no half of a letter"
    assert (said.finish, said.warnings, said.interrupted) == (finish, warnings, False)


async def test_an_answer_without_room_for_a_word_is_told_from_an_empty_one() -> None:
    with pytest.raises(ModelFailedError, match="output limit") as refused:
        await answered(ScriptedChatModel(Reply(finish="length")))
    assert (refused.value.stable_code, refused.value.extra["reason"]) == ("empty_reply", "length")
    with pytest.raises(ModelFailedError, match="empty answer"):
        await answered(ScriptedChatModel(Reply()))


@pytest.mark.parametrize(("retryable", "wait"), [(True, 7.0), (False, None)])
async def test_the_wait_that_a_provider_asks_for_is_passed_on_where_waiting_helps(
    *, retryable: bool, wait: float | None
) -> None:
    refusal = ModelUnavailableError("rate_limited", retryable=retryable, retry_after=7.0)
    with pytest.raises(ModelFailedError) as failed:
        await answered(ScriptedChatModel(refusal))
    assert failed.value.retry_after == wait


@pytest.mark.parametrize("is_stopped", [True, False])
async def test_who_is_stopped_before_the_model_is_asked_has_spent_nothing(
    monkeypatch: pytest.MonkeyPatch, *, is_stopped: bool
) -> None:
    """Control: a requested reply is recorded as a call."""
    noted: list[Usage] = []

    async def note(_: object, used: Usage) -> None:
        noted.append(used)

    def never(_: UUID | None) -> UnitOfWork:
        raise AssertionError("the note is made elsewhere here")

    monkeypatch.setattr(spending, "note_call", note)
    model = ScriptedChatModel(Reply(pieces=("Hi",)), profile=replace(FAKE_PROFILE, metered=True))
    heard: list[str] = []
    stop = asyncio.Event()
    if is_stopped:
        stop.set()
    request = ChatRequest(messages=(ContextMessage(role="user", content="Hello"),))
    callbacks = ModelCallbacks(on_text=heard.append, on_reasoning=heard.append)
    said = await answer_with_cost_noted(never, model, request, stop=stop, callbacks=callbacks)
    assert (said.text, said.interrupted) == (("", True) if is_stopped else ("Hi", False))
    assert (len(model.requests), len(noted)) == ((0, 0) if is_stopped else (1, 1))

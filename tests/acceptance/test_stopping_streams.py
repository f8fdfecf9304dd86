"""When an API process is asked to end, each open stream is ended in the way of its protocol, and answers may end."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import Final

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.acceptance.conftest import StartService, StartTalk, gemini_settings
from tests.acceptance.service import Service
from tests.acceptance.talk import Json
from tests.gemini_server import Gemini

pytestmark = pytest.mark.processes

GOING_AWAY: Final = 1001
PATIENCE: Final = 30.0


@pytest.mark.case("45b")
def test_a_stream_of_events_ends_whole_and_says_when_to_come_back(
    start_service: StartService, start_talk: StartTalk
) -> None:
    service = start_service(worker=False)
    talk = start_talk(service)
    talk.append("Hello.")
    read = b""
    with httpx.stream("GET", service.url + talk.path("/events"), timeout=PATIENCE, trust_env=False) as stream:
        for piece in stream.iter_raw():  # an error if the body broke off
            read += piece
            if b"message.created" in piece:
                service.api.signal(signal.SIGTERM)
    assert read.startswith(b"retry: 2000\n\n")
    assert read.endswith(b"\n\n"), "no half event"


async def in_socket(service: Service) -> ClientConnection:
    return await connect(service.url.replace("http", "ws") + "/v1/responses")


async def read_to_its_end(socket: ClientConnection) -> list[Json]:
    """The events until the service closes the socket."""
    events: list[Json] = []
    try:
        while True:
            events.append(json.loads(await asyncio.wait_for(socket.recv(), PATIENCE)))
    except ConnectionClosed:
        return events


@pytest.mark.long
@pytest.mark.case("45b")
def test_a_socket_without_a_request_is_closed_at_once(start_service: StartService) -> None:
    service = start_service(worker=False)

    async def wait() -> int | None:
        socket = await in_socket(service)
        service.api.signal(signal.SIGTERM)
        assert await read_to_its_end(socket) == []
        return socket.close_code

    assert asyncio.run(wait()) == GOING_AWAY


@pytest.mark.long
@pytest.mark.parametrize(
    "goes_on",
    [
        pytest.param(True, id="ends", marks=pytest.mark.case("45b")),
        pytest.param(False, id="control", marks=pytest.mark.control("45b")),
    ],
)
def test_an_answer_over_a_socket_may_end_and_no_other_begins(
    start_service: StartService, gemini: Gemini, gemini_server: Gemini, *, goes_on: bool
) -> None:
    """Control: an answer that takes longer is left, as that of a stream is."""
    gemini.script("chat", {"name": "text", "text": "One two three four.", "hold_after": 1}, "honest")
    service = start_service(worker=False, **gemini_settings(gemini_server))

    async def ask() -> tuple[list[Json], int | None]:
        socket = await in_socket(service)
        for text in ("Count.", "Go on."):
            await socket.send(json.dumps({"type": "response.create", "model": "throughline", "input": text}))
        first = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))
        await asyncio.to_thread(gemini.wait_for, "chat")
        service.api.signal(signal.SIGTERM)
        await asyncio.sleep(1)
        if goes_on:
            await asyncio.to_thread(gemini.release)
        return [first, *await read_to_its_end(socket)], socket.close_code

    events, code = asyncio.run(ask())
    if not goes_on:
        gemini.release()
    assert code == GOING_AWAY
    kinds = [event["type"] for event in events]
    assert kinds.count("response.created") == 1, "the second request is not begun"
    assert (kinds[-1] == "response.completed") is goes_on

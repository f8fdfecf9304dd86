"""Sends an answer, whole or as a stream, with a header that says what was done with the request."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing
from typing import Any, Final, TypeVar

from fastapi import Request
from fastapi.responses import JSONResponse
from starlette.responses import Response

from app.bootstrap import Container
from app.core.model.errors import DomainError
from app.http.disconnects import ClientGoneError, while_client_present
from app.http.openai.answers import DONE, Answering, sse
from app.http.openai.resources import Json
from app.http.openai.waiting import patience_with_words
from app.http.shutdown import Stopping
from app.http.sse import EventStream, Steps

Made = TypeVar("Made")

HEADER: Final = "X-Throughline"
"""The header that says which conversation, if any, a request was answered from, and how much of it was served."""
STOPPING_GRACE: Final = 3.0
"""How many seconds a stream may go on when the process ends."""


async def send_whole(request: Request, answering: Answering, making: Coroutine[Any, Any, Json]) -> Response:
    """The answer as one object. Raises the error that it failed with, and ``ClientGoneError``."""
    made = await _while_client_present(request, answering, making)
    return JSONResponse(made, headers={HEADER: answering.outcome})


async def send_new_stream(
    request: Request,
    services: Container,
    answering: Answering,
    events: AsyncGenerator[Json, None],
    stopping: Stopping,
    *,
    named: bool,
) -> Response:
    """The answer that a request began, as ``send_stream`` sends it, once its first words are there, or soon anyway.

    So an answer that fails before has the status of its error, and SDKs send the request again. Raises that error, and
    ``ClientGoneError``.
    """
    seconds = min(services.settings.timings.stream_heartbeat_seconds, patience_with_words(services))
    await _while_client_present(request, answering, answering.wait_for_first_words(seconds, stopping))
    return send_stream(services, answering, events, stopping, named=named)


async def _while_client_present(request: Request, answering: Answering, work: Coroutine[Any, Any, Made]) -> Made:
    try:
        return await while_client_present(work, request.receive)
    except ClientGoneError:
        if answering.on_disconnect is not None:
            await answering.on_disconnect()
        raise
    except DomainError:
        if answering.on_untold_failure is not None:
            await answering.on_untold_failure()
        raise


class _AnswerSteps(Steps[bytes]):
    """The steps of an answer's stream, which end the answer too if the client leaves before the first one."""

    def __init__(self, answering: Answering, frames: AsyncIterator[bytes], every: float) -> None:
        super().__init__(frames, every)
        self._answering = answering

    async def aclose(self) -> None:
        """Close the source, and the answer."""
        await super().aclose()
        await self._answering.close()


def send_stream(
    services: Container, answering: Answering, events: AsyncGenerator[Json, None], stopping: Stopping, *, named: bool
) -> Response:
    """The answer as server-sent events. With ``named`` the type is also sent in ``event:``."""
    frames = _frames(events, named=named)
    steps = _AnswerSteps(answering, frames, services.settings.timings.stream_heartbeat_seconds)
    stream = EventStream(steps, bytes, stopping=stopping, grace=STOPPING_GRACE, on_disconnect=answering.on_disconnect)
    stream.headers[HEADER] = answering.outcome
    return stream


async def _frames(events: AsyncGenerator[Json, None], *, named: bool) -> AsyncIterator[bytes]:
    async with aclosing(events):
        async for event in events:
            yield sse(event, event["type"] if named else None)
    yield DONE

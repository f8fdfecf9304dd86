"""The event loop of providers' clients, in a thread of its own.

What these clients compute for one request, and what they build at the first one, takes tenths of a second if a context
has hundreds of messages. Nothing may take that long on the loop that serves requests.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing, suppress
from contextvars import copy_context
from typing import Any, Final, TypeVar

from app.off_loop import act_for_no_tenant

CANCEL_SECONDS: Final = 10.0
"""How long a cancelled caller, or ``close``, waits for work on the loop to end."""

Result = TypeVar("Result")
Event = TypeVar("Event")


class ProviderLoop:
    """Runs coroutines of providers' clients in a thread that starts with the first of them and ends with ``close``.

    A client belongs to the event loop that first uses it, so every use of a client goes through ``run`` or ``stream``.
    """

    def __init__(self) -> None:
        self._opening = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def run(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Run a coroutine on this loop and return its result.

        A caller that is cancelled cancels the coroutine, and waits ``CANCEL_SECONDS`` at most until it has ended. If
        the coroutine is cancelled without that, it took too long: xAI's client says so in no other way.

        Raises:
            TimeoutError: The coroutine was cancelled, but not by the caller.
        """
        here, there = asyncio.get_running_loop(), self._running_loop()
        ended: asyncio.Future[Result] = here.create_future()
        ended.add_done_callback(_mark_error_seen)
        started: list[asyncio.Task[Result]] = []
        context = copy_context()
        context.run(act_for_no_tenant)  # tenants' shares use semaphores of the caller's loop

        def settle(task: asyncio.Task[Result]) -> None:
            with suppress(RuntimeError):  # the caller's loop is closed
                here.call_soon_threadsafe(_settle, ended, task, self._loop is not there)

        def start() -> None:
            started.append(there.create_task(work(), context=context))
            started[0].add_done_callback(settle)

        def cancel() -> None:
            started[0].cancel()

        there.call_soon_threadsafe(start)
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            if not ended.done():
                there.call_soon_threadsafe(cancel)
                await asyncio.wait([ended], timeout=CANCEL_SECONDS)
            raise

    async def stream(self, events: Callable[[], AsyncGenerator[Event, None]]) -> AsyncGenerator[Event, None]:
        """Iterate over a generator on this loop; closing this iteration waits until that generator is closed."""
        here = asyncio.get_running_loop()
        arrived: asyncio.Queue[tuple[Event] | None] = asyncio.Queue()

        async def pump() -> None:
            async with aclosing(events()) as source:
                async for event in source:
                    here.call_soon_threadsafe(arrived.put_nowait, (event,))

        pumping = asyncio.create_task(self.run(pump))
        pumping.add_done_callback(lambda _: arrived.put_nowait(None))
        try:
            while (one := await arrived.get()) is not None:
                yield one[0]
            await pumping
        finally:
            if not pumping.done():
                pumping.cancel()
                await asyncio.wait([pumping])

    async def close(self, *before: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run these coroutines on the loop, then end its thread. A later use starts another thread."""
        with self._opening:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:  # nothing was used, so nothing belongs to a loop
            for one in before:
                await one()
            return
        try:
            for one in before:
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(one(), loop))
        finally:
            loop.call_soon_threadsafe(loop.stop)
            await asyncio.to_thread(thread.join, CANCEL_SECONDS)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._opening:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="providers", daemon=True)
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        unfinished = asyncio.all_tasks(loop)
        for task in unfinished:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*unfinished, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def _mark_error_seen(ended: asyncio.Future[Any]) -> None:
    # Otherwise asyncio would log the error of abandoned work.
    if not ended.cancelled():
        ended.exception()


def _settle(ended: asyncio.Future[Result], task: asyncio.Task[Result], is_closed: bool) -> None:  # noqa: FBT001 - a callback
    if ended.done():
        return
    if task.cancelled() and is_closed:
        ended.cancel()
    elif task.cancelled():
        ended.set_exception(TimeoutError())
    elif (error := task.exception()) is not None:
        ended.set_exception(error)
    else:
        ended.set_result(task.result())

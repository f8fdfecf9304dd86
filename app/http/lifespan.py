"""What a process does while it serves (keys, sweeper, signals), and when it must not serve at all."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import AsyncIterator

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.bootstrap import Container, anonymous_allowed, import_models, is_loopback
from app.core.model.errors import DependencyUnavailableError, DomainError, InvalidInputError
from app.http.shutdown import Stopping, overhear_signals
from app.infrastructure.garbage import settle_garbage_collector
from app.infrastructure.watchdog import watching
from app.off_loop import off_loop
from app.usecases.shared.warming import warm_up

# In seconds: servers that start together answer in any order, and a busy one may be slow.
DATABASE_PATIENCE = 30.0
DATABASE_PAUSE = 1.0

log = structlog.get_logger("throughline.api")


class StartRefusedError(Exception):
    """The process must not serve. The message is one line that says what to do."""


class PlainRefusal:
    """Tells the server in one line why it cannot start, instead of the framework's traceback."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on all messages except a failed start."""
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return

        async def swallow_traceback(message: Message) -> None:
            if message["type"] != "lifespan.startup.failed":
                await send(message)

        try:
            await self._app(scope, receive, swallow_traceback)
        except (StartRefusedError, DomainError) as refusal:
            await send({"type": "lifespan.startup.failed", "message": str(refusal)})
        except Exception as error:
            # This is what the framework would have done if it had not been stopped above.
            text = "".join(traceback.format_exception(error))
            await send({"type": "lifespan.startup.failed", "message": text})
            raise


@contextlib.asynccontextmanager
async def serving(container: Container, stopping: Stopping) -> AsyncIterator[None]:
    """Keep a process serving.

    Raises:
        StartRefusedError: It would serve without keys on an address that others can reach, a configured model cannot be
            built, or the database stays away.
    """
    with overhear_signals(stopping):
        await prepare_models(container)
        await wait_for_database(container, stopping)
        await off_loop(warm_up)
        async with working(container, stopping):
            yield


@contextlib.asynccontextmanager
async def working(container: Container, stopping: Stopping) -> AsyncIterator[None]:
    """Run everything that the process does besides answering requests."""
    settle_garbage_collector()
    keep = container.background.run_forever
    sweeping = asyncio.create_task(keep("sweeper", container.sweeper.run), name="sweeper")
    measuring = asyncio.create_task(keep("measuring", container.measuring.run), name="measuring")
    try:
        async with watching(container.settings.timings.watchdog_seconds):
            yield
    finally:
        stopping.begin()
        sweeping.cancel()
        measuring.cancel()
        await asyncio.gather(sweeping, measuring, return_exceptions=True)


async def prepare_models(container: Container) -> None:
    """Build the configured models before the first request, since that may take seconds."""
    import_models(container.settings)
    try:
        await container.parts.models.prepare()
    except InvalidInputError as error:
        raise StartRefusedError(f"A model of the settings cannot be used: {error.detail}") from error


async def wait_for_database(container: Container, stopping: Stopping) -> None:
    """Check that there is a key; if the database is away, try again for a while.

    Raises:
        StartRefusedError: No key exists although one is needed, the database stays away or is not migrated yet, or the
            process was asked to end meanwhile.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + DATABASE_PATIENCE
    while True:
        try:
            await refuse_without_schema(container)
            await container.keys.make_default_tenant()
            await refuse_to_be_open(container)
        except DependencyUnavailableError as error:
            reason = f"{error.detail}{_words_of_cause(error)}"
            if loop.time() >= until:
                raise StartRefusedError(reason) from error
            log.warning("start.waits", reason=reason, seconds=round(until - loop.time()))
        else:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), DATABASE_PAUSE)
            raise StartRefusedError("The process was asked to end before the database answered.")


async def refuse_without_schema(container: Container) -> None:
    """Refuse to serve a database without the schema of this code.

    Every request would fail, although ``/readyz`` would say that all is well.

    Raises:
        StartRefusedError: The database has no schema, or the schema of an earlier version.
    """
    complaint = await container.parts.schema_complaint()
    if complaint is not None:
        raise StartRefusedError(complaint)


def _words_of_cause(error: BaseException) -> str:
    # Until the first query is answered, messages of the server or the socket contain no user data.
    cause = error.__cause__
    if cause is None:
        return ""
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return f" ({next(iter(str(cause).splitlines()), '') or type(cause).__name__})"


async def refuse_to_be_open(container: Container) -> None:
    """Refuse to serve without keys, except on a development machine to itself."""
    settings = container.settings
    if anonymous_allowed(settings) or await container.keys.any():
        return
    if settings.auth_required:
        why, otherwise = "THROUGHLINE_AUTH_REQUIRED asks for one", "leave that setting out on a development machine"
    elif is_loopback(settings.host):
        why = "a database of your own (DATABASE_URL) may be that of others too"
        otherwise = "set THROUGHLINE_AUTH_REQUIRED=false on a development machine"
    else:
        why = f"without one only the embedded development mode on loopback may serve (HOST is {settings.host})"
        otherwise = "use `make run` with HOST=127.0.0.1"
    raise StartRefusedError(
        f"No API key exists, and {why}: create a key with `throughline keys create`, or {otherwise}."
    )

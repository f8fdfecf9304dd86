"""Keeps a turn's row while the turn runs: renews its lease, notices interruptions, and stops if it was ended elsewhere.

Clients follow a turn by ``turn_handle.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic

import structlog

from app.core.model.errors import SEND_AGAIN, DependencyUnavailableError, TurnLostError
from app.core.model.records import Turn
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.chat.turn_handle import TurnHandle
from app.usecases.ports import EventBus, WakeUp
from app.usecases.shared.heartbeats import with_heartbeat

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Watch:
    """What a running turn learns from its watch."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the turn is asked to stop."""
    storing: bool = False
    """Set by the turn when it begins to store its end; from then on only the transaction decides who ended it."""


@asynccontextmanager
async def watched(
    turn: Turn, handle: TurnHandle, *, uow: UnitOfWorkFactory, bus: EventBus, every: float, unfollowed_seconds: float
) -> AsyncIterator[Watch]:
    """Look at the turn's row every ``every`` seconds.

    Raises ``TurnLostError`` in the body once another process ended the turn.

    The turn is asked to stop if its client left and it was not followed in any process for ``unfollowed_seconds``.
    """
    watch = Watch()

    async def look(lose: Callable[[], None]) -> None:
        async with bus.subscribe(turn.conversation_id) as wake_up:
            while True:
                await _wait_for_wake_up(wake_up, watch, every)
                try:
                    # Of no tenant: the tenant's other requests must not hold it up, else the turn would count as dead.
                    async with uow(None) as work:
                        row = await work.turns.heartbeat(turn.id)
                        await work.commit()
                except DependencyUnavailableError:
                    log.warning("turn.heartbeat_missed", turn_id=str(turn.id))
                    handle.note_follower_elsewhere(None)  # unknown: the next reported time counts as new
                    continue
                if row is None:
                    if not watch.storing:
                        lose()
                    return
                handle.note_follower_elsewhere(row.followed_at)
                if row.interrupt_requested or handle.is_unfollowed_for(unfollowed_seconds):
                    watch.stop.set()

    async with with_heartbeat(look, turn_lost_error):
        yield watch


async def _wait_for_wake_up(wake_up: WakeUp, watch: Watch, every: float) -> None:
    until = monotonic() + every
    while (left := until - monotonic()) > 0:
        woken = await wake_up.wait(left)
        # While the end is being stored, the wake-up comes from that end. A look at the row would be cancelled half way
        # and cost a connection.
        if not (woken and watch.storing):
            return


def turn_lost_error() -> TurnLostError:
    """The error that explains what became of the message, and how to go on."""
    return TurnLostError(
        "the process that answered was silent for too long, and others ended its turn; the message is stored: look at"
        f" the conversation, and {SEND_AGAIN} if nobody answered it"
    )


def lost_message_error() -> TurnLostError:
    """The error after a failover to a replica that had neither the message nor its turn."""
    return TurnLostError(
        "the database no longer has the message, nor its turn: it goes on without its last seconds; send the message"
        " again"
    )

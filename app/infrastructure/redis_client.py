"""Clients of Redis and Valkey that never make their callers wait long: few connections, short calls."""

from __future__ import annotations

from typing import Final

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

CALL_SECONDS: Final = 1.0
"""A local Redis answers in a millisecond. For a hint, a server that takes longer than this counts as away."""
# Calls are short, so further ones wait for a free connection instead of each opening one.
_CONNECTIONS: Final = 4


def redis_client(url: str, *, retries: int, shares_connection: bool = False) -> Redis:
    """A client whose calls fail within ``CALL_SECONDS`` each.

    ``shares_connection``: single commands share one connection, one after the other, and need not ask the pool. The
    caller then has to limit each call itself, since the client would make a task of every command for that.
    """
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=_CONNECTIONS,
        timeout=CALL_SECONDS,
        socket_timeout=None if shares_connection else CALL_SECONDS,
        socket_connect_timeout=CALL_SECONDS,
        retry=Retry(NoBackoff(), retries),
        # Every server supports RESP2, which needs no negotiation that an old server would log as an error.
        protocol=2,
    )
    client: Redis = Redis(connection_pool=pool, single_connection_client=shares_connection)
    client.auto_close_connection_pool = True
    return client

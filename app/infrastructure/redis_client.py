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


def redis_client(url: str, *, retries: int, keeps: bool = False) -> Redis:
    """A client whose calls fail within ``CALL_SECONDS`` each.

    ``keeps``: single commands share one connection, one after the other, and need not ask the pool. The caller then has
    to limit each call itself, since the client would make a task of every command for that.
    """
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=_CONNECTIONS,
        timeout=CALL_SECONDS,
        socket_timeout=None if keeps else CALL_SECONDS,
        socket_connect_timeout=CALL_SECONDS,
        retry=Retry(NoBackoff(), retries),
        # Every server supports RESP2, which needs no negotiation that an old server would log as an error.
        protocol=2,
    )
    client: Redis = Redis(connection_pool=pool, single_connection_client=keeps)
    client.auto_close_connection_pool = True
    return client

"""TLS to Postgres and Redis: what is checked, and which error is shown when something does not fit."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError
from sqlalchemy.engine import make_url

from app.devserver import Endpoints
from app.devserver.errors import CannotStartError
from app.devserver.preflight import check_database, check_redis
from app.infrastructure.job_queue import celery_broker_url
from app.infrastructure.redis_client import redis_client
from app.storage.database import make_engine, ping
from tests.tls_front import Certificate, front, make_certificate


@pytest.fixture(autouse=True)
def contexts_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each client a TLS context of its own, since they trust different servers; other tests share one."""
    monkeypatch.setattr(ssl, "create_default_context", cast(Any, ssl.create_default_context).__wrapped__)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"), "ours")


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"), "others")


@pytest.fixture
async def postgres(servers: Endpoints, ours: Certificate) -> AsyncIterator[str]:
    """An address of Postgres behind TLS."""
    address = make_url(servers.database_url)
    if "host" not in address.query:
        pytest.skip("left out: TEST_DATABASE_URL names a server of its own")
    async with front(f"{address.query['host']}/.s.PGSQL.5432", ours.context(), asked_first=True) as port:
        plain = address.set(drivername="postgresql", host="127.0.0.1", port=port, query={})
        yield plain.render_as_string(hide_password=False)


@pytest.fixture
async def valkey(redis_url: str, ours: Certificate) -> AsyncIterator[str]:
    """An address of Valkey behind TLS."""
    if urlsplit(redis_url).scheme != "unix":
        pytest.skip("left out: TEST_REDIS_URL names a server of its own")
    async with front(urlsplit(redis_url).path, ours.context(), asked_first=False) as port:
        yield f"rediss://127.0.0.1:{port}/3"


async def answers(url: str) -> bool:
    engine = make_engine(url, pool_size=1)
    try:
        return await ping(engine) == "ok"
    finally:
        await engine.dispose()


async def complaint(url: str) -> str:
    with pytest.raises(CannotStartError) as refused:
        await asyncio.to_thread(check_database, url)
    return str(refused.value)


async def test_postgres_is_believed_by_its_certificate(postgres: str, ours: Certificate, others: Certificate) -> None:
    assert await answers(f"{postgres}?sslmode=require")
    assert await answers(f"{postgres}?sslmode=verify-full&sslrootcert={ours.certificate}")
    assert not await answers(f"{postgres}?sslmode=verify-full&sslrootcert={others.certificate}")
    elsewhere = postgres.replace("127.0.0.1", "localhost")
    assert await answers(f"{elsewhere}?sslmode=verify-ca&sslrootcert={ours.certificate}")
    assert not await answers(f"{elsewhere}?sslmode=verify-full&sslrootcert={ours.certificate}")


async def test_what_does_not_fit_is_said_in_one_line(
    postgres: str, ours: Certificate, others: Certificate, tmp_path: Path
) -> None:
    said = await complaint(f"{postgres}?sslmode=verify-full&sslrootcert={others.certificate}")
    assert "certificate verify failed" in said
    elsewhere = postgres.replace("127.0.0.1", "localhost")
    assert "not valid for 'localhost'" in await complaint(
        f"{elsewhere}?sslmode=verify-full&sslrootcert={ours.certificate}"
    )
    for query, why in {
        "sslmode=maybe": "sslmode must be one of disable, allow, prefer, require, verify-ca, verify-full, not maybe",
        "sslmode=verify-full": "sslmode=verify-full needs sslrootcert=FILE, or sslrootcert=system",
        f"sslrootcert={ours.certificate}": "sslrootcert need sslmode=verify-full, verify-ca or require, not prefer",
        f"sslmode=require&sslrootcert={tmp_path}/none.pem": f"sslrootcert cannot be read: {tmp_path}/none.pem (No such",
        f"sslmode=require&sslrootcert={ours.key}": f"sslrootcert cannot be read: {ours.key} (it is no PEM file that",
        f"sslmode=require&sslcert={ours.certificate}&sslkey={others.key}": "(it is no PEM file that fits)",
    }.items():
        assert why in await complaint(f"{postgres}?{query}")


async def test_a_postgres_without_tls_is_refused(servers: Endpoints, ours: Certificate) -> None:
    """The driver never continues without TLS when it was told to check."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)
        writer.write(b"N")
        await reader.read()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        url = f"postgresql://app@127.0.0.1:{server.sockets[0].getsockname()[1]}/throughline"
        for query in ("sslmode=require", f"sslmode=verify-full&sslrootcert={ours.certificate}"):
            assert "rejected SSL upgrade" in await complaint(f"{url}?{query}")


async def test_valkey_is_believed_by_its_certificate(valkey: str, ours: Certificate, others: Certificate) -> None:
    known, unknown = f"{valkey}?ssl_ca_certs={ours.certificate}", f"{valkey}?ssl_ca_certs={others.certificate}"
    client = redis_client(known, retries=0)
    assert await client.ping()
    await client.aclose()
    await asyncio.to_thread(check_redis, known)
    refusals = {
        unknown: "certificate verify failed",
        valkey: "certificate verify failed",
        known.replace("127.0.0.1", "localhost"): "not valid for 'localhost'",
        f"{valkey}?ssl_ca_certs=/none.pem": "ssl_ca_certs cannot be read: /none.pem",
    }
    for url, why in refusals.items():
        with pytest.raises(CannotStartError) as refused:
            await asyncio.to_thread(check_redis, url)
        assert why in str(refused.value), url


async def test_celery_checks_the_same(valkey: str, ours: Certificate, others: Certificate) -> None:
    def connects(url: str) -> bool:
        broker: Any = Celery(broker=celery_broker_url(url), set_as_current=False)
        with broker.connection() as connection:
            connection.transport_options |= {"socket_connect_timeout": 2, "socket_timeout": 2, "max_retries": 0}
            try:
                return bool(connection.default_channel.client.ping())
            except (OSError, OperationalError, RedisError):
                return False

    assert await asyncio.to_thread(connects, f"{valkey}?ssl_ca_certs={ours.certificate}")
    assert not await asyncio.to_thread(connects, f"{valkey}?ssl_ca_certs={others.certificate}")
    elsewhere = valkey.replace("127.0.0.1", "localhost")
    assert not await asyncio.to_thread(connects, f"{elsewhere}?ssl_ca_certs={ours.certificate}")

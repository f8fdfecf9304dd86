"""The worker as a process: jobs run, and are taken up again, whatever ends the process or its children."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from uuid import UUID, uuid4

import pytest
import redis
import structlog
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.bootstrap import Container
from app.core.model.errors import DependencyUnavailableError
from app.core.model.records import Compaction
from app.devserver import EmbeddedServers
from app.infrastructure.job_queue import CeleryJobQueue
from app.storage.schema_fit import NO_SCHEMA
from app.storage.unit_of_work import UnitOfWorkFactory
from app.usecases.shared.work_records import REMOVAL_SECONDS
from tests.integration.rows import compaction, stored
from tests.integration.test_database import OTHERS
from tests.servers import ROOT
from worker.runtime import Runtime
from worker.tasks import compact_and_verify


class Worker:
    """One worker process with one child at a time."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.process = process
        self._jobs = folder / "jobs"
        self._log = folder / "worker.log"

    @property
    def log(self) -> str:
        """What the worker has logged."""
        return self._log.read_text()

    def notes(self, word: str) -> list[list[str]]:
        """What jobs wrote after this word: id, process, request."""
        lines = self._jobs.read_text().splitlines() if self._jobs.exists() else []
        return [rest for first, *rest in map(str.split, lines) if first == word]


@contextmanager
def a_worker(
    folder: Path, database_url: str, redis_url: str, *, job_seconds: float, **settings: str
) -> Iterator[Worker]:
    env = {**os.environ, "DATABASE_URL": database_url, "REDIS_URL": redis_url, "JOB_SECONDS": str(job_seconds)}
    env |= settings
    argv = [sys.executable, "-m", "celery", "-q", "-A", "tests.integration.worker_app", "worker"]
    log = folder / "worker.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*argv, "--concurrency", "1", "--loglevel", "INFO", "--without-gossip", "--without-mingle"],
            cwd=ROOT,
            env=env | {"JOBS": str(folder / "jobs")},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield Worker(process, folder)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            print(log.read_text())


async def until(condition: Callable[[], object], seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the condition is another process's
            await asyncio.sleep(0.05)


class Desk:
    """Queues compactions and looks at them."""

    def __init__(self, begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, queue: CeleryJobQueue) -> None:
        self._begin = begin
        self._engine = engine
        self._tenant = tenant
        self._queue = queue

    async def send(self, request_id: str | None = None) -> UUID:
        row = await stored(self._begin, self._tenant)
        async with self._begin(self._tenant) as uow:
            made = await uow.compactions.claim(compaction(row))
            assert made is not None
            await uow.compactions.mark_sent([made.id])
            await uow.commit()
        assert await self._queue.send(made.id, request_id)
        return made.id

    async def send_verification(self) -> UUID:
        conversation_id = uuid4()
        assert await self._queue.send_later("verification", conversation_id)
        return conversation_id

    async def send_detail(self) -> UUID:
        conversation_id = uuid4()
        assert await self._queue.send_later("detail", conversation_id)
        return conversation_id

    async def get(self, compaction_id: UUID) -> Compaction:
        async with self._begin(None) as uow:
            return await uow.compactions.get(compaction_id)

    async def reaches(self, compaction_id: UUID, status: str, seconds: float) -> Compaction:
        async with asyncio.timeout(seconds):
            while (row := await self.get(compaction_id)).status != status:  # noqa: ASYNC110 - another process acts
                await asyncio.sleep(0.05)
        return row

    async def end_lease(self, compaction_id: UUID) -> None:
        """Let the lease be over, as it would be nine seconds later."""
        async with self._engine.begin() as connection:
            statement = "UPDATE compactions SET lease_until = clock_timestamp() - interval '1 second' WHERE id = :id"
            await connection.execute(text(statement), {"id": compaction_id})


@pytest.fixture
async def desk(begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, redis_url: str) -> AsyncIterator[Desk]:
    queue = CeleryJobQueue(redis_url)
    yield Desk(begin, engine, tenant, queue)
    await queue.close()


@pytest.mark.long
@pytest.mark.own_database
async def test_a_job_after_a_restart_of_postgres_just_works(
    desk: Desk, engine: AsyncEngine, database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("REDIS_URL", redis_url)
    runtime = Runtime()

    async def look(container: Container) -> bool:
        async with container.parts.uow(None) as uow:
            await uow.compactions.get(sent)
        return True

    async def look_after_a_restart() -> bool:
        async with engine.connect() as connection:
            await connection.execute(text(f"SELECT pg_terminate_backend(pid) {OTHERS}"))
        await asyncio.sleep(0.3)
        return await asyncio.to_thread(runtime.run, look)

    sent = await desk.send()
    try:
        assert await asyncio.to_thread(runtime.run, look)
        for _ in range(3):
            assert await look_after_a_restart()
        monkeypatch.setattr("worker.runtime._ROUNDS_TO_NOTICE", 0)
        with pytest.raises(DependencyUnavailableError):  # the control: without rounds the loop hears of no restart
            await look_after_a_restart()
    finally:
        await asyncio.to_thread(runtime.stop)


@pytest.mark.own_database
async def test_a_job_leaves_nothing_on_record_though_no_other_job_follows(
    begin: UnitOfWorkFactory,
    engine: AsyncEngine,
    tenant: UUID,
    database_url: str,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("REDIS_URL", redis_url)
    runtime, row = Runtime(), await stored(begin, tenant)

    async def work(container: Container) -> None:
        async with container.work_records.record_work(tenant, row.id, "compaction"):
            pass

    async def records_left_by_a_job() -> int:
        await asyncio.to_thread(runtime.run, work)
        await asyncio.sleep(4 * REMOVAL_SECONDS)
        async with engine.connect() as connection:
            return int(await connection.scalar(text("SELECT count(*) FROM works")) or 0)

    try:
        assert await records_left_by_a_job() == 0
        monkeypatch.setattr(Container, "drain", _wait_for_nothing)
        assert await records_left_by_a_job() == 1  # the control: once its lease is over, it counts as a crash
    finally:
        await asyncio.to_thread(runtime.stop)


async def _wait_for_nothing(_: Container) -> None:
    """Stands for ``Container.drain``."""


@pytest.mark.long
async def test_jobs_run_on_the_childs_one_loop_with_their_request(
    desk: Desk, tmp_path: Path, database_url: str, redis_url: str
) -> None:
    with a_worker(tmp_path, database_url, redis_url, job_seconds=0.2) as worker:
        ids = [await desk.send(f"req-{number}") for number in range(4)]
        for compaction_id in ids:
            await desk.reaches(compaction_id, "applied", 40)
        row = await desk.get(ids[0])
    assert (row.ran_in, row.claims) == ("worker", 1)
    ended = worker.notes("ended")  # the last job ends shortly after its compaction, and the worker waits for it
    assert {(compaction_id, request) for compaction_id, _, request in ended} == {
        (str(compaction_id), f"req-{number}") for number, compaction_id in enumerate(ids)
    }
    assert len({child for _, child, _ in ended}) == 1
    assert len(worker.notes("started")) == len(ids)


async def test_a_hint_runs_whose_turn_it_is_with_the_id_of_no_other_request() -> None:
    """A tenant's thousand hints stand before another's one."""
    hinted, in_turn, taken, seen = uuid4(), uuid4(), uuid4(), list[tuple[UUID, str | None]]()

    async def execute(compaction_id: UUID, **_: str) -> object:
        seen.append((compaction_id, structlog.contextvars.get_contextvars().get("request_id")))
        return None if compaction_id == taken else object()

    turns = [in_turn, hinted, taken]

    async def chosen(_: UUID) -> UUID:
        return turns.pop(0)

    async def verify(_: object) -> None:
        return

    compacting = SimpleNamespace(in_turn=chosen, execute=execute)
    container = SimpleNamespace(compaction=compacting, verification=SimpleNamespace(verify_after=verify))
    with structlog.contextvars.bound_contextvars(request_id="of the hint"):
        for _ in range(3):
            await compact_and_verify(cast("Container", container), hinted)
    assert seen[:2] == [(in_turn, None), (hinted, "of the hint")]
    assert seen[2:] == [(taken, None), (hinted, "of the hint")], "another worker was told of the same one first"


@pytest.mark.long
async def test_a_compaction_is_followed_by_its_verification_and_hints_ask_for_more(
    desk: Desk, tmp_path: Path, database_url: str, redis_url: str
) -> None:
    with a_worker(tmp_path, database_url, redis_url, job_seconds=0.1) as worker:
        compaction_id, wanted = await desk.send(), await desk.send_verification()
        await until(lambda: worker.notes("verification"), 40)
        assert [id_ for id_, *_ in worker.notes("verified")] == [str(compaction_id)]
        assert [id_ for id_, *_ in worker.notes("verification")] == [str(wanted)]


@pytest.mark.long
async def test_a_broker_that_takes_no_writes_for_a_while_ends_no_worker(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID, tmp_path: Path, database_url: str
) -> None:
    with EmbeddedServers(tmp_path / "data", postgres=False) as endpoints:
        queue = CeleryJobQueue(endpoints.redis_url)
        desk = Desk(begin, engine, tenant, queue)
        with (
            redis.from_url(endpoints.redis_url) as server,
            a_worker(tmp_path, database_url, endpoints.redis_url, job_seconds=0.1) as worker,
        ):
            await desk.reaches(await desk.send(), "applied", 40)
            server.replicaof("127.0.0.1", "1")  # this is the state after a failover
            await until(lambda: "read only replica" in worker.log, 40)
            server.replicaof("no", "one")
            await desk.reaches(await desk.send(), "applied", 40)
            assert worker.process.poll() is None
        await queue.close()


@pytest.mark.long
async def test_details_are_written_when_no_compaction_waits(
    desk: Desk, tmp_path: Path, database_url: str, redis_url: str
) -> None:
    with a_worker(tmp_path, database_url, redis_url, job_seconds=1) as worker:
        await desk.send()
        await until(lambda: worker.notes("started"), 40)
        child = int(worker.notes("started")[0][1])
        os.kill(child, signal.SIGSTOP)  # so that all of them are queued before it takes the next
        wanted = await desk.send_detail()
        ids = [await desk.send() for _ in range(2)]
        os.kill(child, signal.SIGCONT)
        await until(lambda: worker.notes("detail"), 40)
        assert [id_ for id_, *_ in worker.notes("detail")] == [str(wanted)]
        assert [(await desk.get(id_)).status for id_ in ids] == ["applied"] * 2, "they came later and went first"


@pytest.mark.long
async def test_asked_to_stop_it_gives_its_job_back_uncounted(
    desk: Desk, tmp_path: Path, database_url: str, redis_url: str
) -> None:
    with a_worker(tmp_path, database_url, redis_url, job_seconds=600) as worker:
        running, waiting = await desk.send(), await desk.send()
        await until(lambda: worker.notes("started"), 40)
        owner = str((await desk.get(running)).owner)
        assert owner.startswith(f"worker:{os.uname().nodename}:{worker.process.pid}:"), (
            "the parent's, though a child runs it"
        )
        worker.process.send_signal(signal.SIGTERM)
        await desk.reaches(running, "queued", 60)  # a tenth of the job's time
        await until(lambda: worker.process.poll() is not None, 60)
        assert worker.process.returncode == 0
        rows = [await desk.get(id_) for id_ in (running, waiting)]
        assert [(row.status, row.claims, row.owner) for row in rows] == [("queued", 0, None)] * 2
        assert [id_ for id_, *_ in worker.notes("lost")] == [str(running)]


@pytest.mark.long
@pytest.mark.case("31-worker")
async def test_a_killed_child_costs_one_claim_and_the_job_is_done_once(
    desk: Desk, tmp_path: Path, database_url: str, redis_url: str
) -> None:
    with a_worker(tmp_path, database_url, redis_url, job_seconds=3) as worker:
        compaction_id = await desk.send()
        await until(lambda: worker.notes("started"), 40)
        child = int(worker.notes("started")[0][1])
        os.kill(child, signal.SIGKILL)
        await asyncio.sleep(0.5)
        assert (await desk.get(compaction_id)).status == "running", "the lease, not the broker, says when it is over"
        await desk.end_lease(compaction_id)
        row = await desk.reaches(compaction_id, "applied", 30)
        assert row.claims == 2
        assert worker.process.poll() is None
        started, ended = worker.notes("started"), worker.notes("ended")
        assert (len(started), len(ended)) == (2, 1)
        assert ended[0][1] != str(child)


@pytest.mark.long
def test_without_a_broker_it_says_so_in_one_line(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name != "REDIS_URL"}
    argv = [sys.executable, "-m", "celery", "-q", "-A", "worker.celery_app", "worker"]
    done = subprocess.run(
        argv,
        cwd=tmp_path,
        env=env | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "REDIS_URL is not set" in done.stderr
    assert "Traceback" not in done.stderr


LOGGING_AS_A_WORKER = """
import logging
from worker.celery_app import app

app.log.setup(loglevel=logging.DEBUG)
logging.getLogger("some.client").debug("Body: %s", {"content": "the canary"})
logging.getLogger("httpx").info("HTTP Request: POST https://provider.example/v1/responses")
logging.getLogger("openai").warning("too old")
logging.getLogger("celery.worker.strategy").debug("a job has come")
"""


def test_clients_of_providers_log_no_requests_in_a_worker_whatever_its_level(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", LOGGING_AS_A_WORKER]
    done = subprocess.run(
        argv, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
    )
    assert "the canary" not in done.stderr
    assert "provider.example" not in done.stderr
    assert "too old" in done.stderr
    assert "a job has come" in done.stderr


def refusal_of_worker(folder: Path, **env: str) -> str:
    """What a worker that cannot start writes, without a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "celery", "-q", "-A", "worker.celery_app", "worker"],
        cwd=folder,
        env=os.environ | env | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.long
def test_over_a_database_that_is_not_migrated_it_says_so_in_one_line(
    empty_database_url: str, redis_url: str, tmp_path: Path
) -> None:
    assert NO_SCHEMA in refusal_of_worker(tmp_path, DATABASE_URL=empty_database_url, REDIS_URL=redis_url)


@pytest.mark.long
@pytest.mark.parametrize(
    ("address", "words"),
    [("", "DATABASE_URL is not set"), ("mysql://x@localhost/y", "DATABASE_URL must begin with postgresql://")],
)
def test_without_an_address_of_a_database_it_says_so_in_one_line(
    redis_url: str, tmp_path: Path, address: str, words: str
) -> None:
    assert words in refusal_of_worker(tmp_path, DATABASE_URL=address, REDIS_URL=redis_url)

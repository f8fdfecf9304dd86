"""Runs one campaign from its start to its verdict."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from sqlalchemy.exc import DBAPIError

from bench.chaos import doors
from bench.chaos.checker import STUCK_SECONDS, check
from bench.chaos.checker import Campaign as Checked
from bench.chaos.clients import PAGE, Campaign, Client, Keeper, Writer, shown_context, shown_messages
from bench.chaos.cluster import Cluster, running_cluster, wait_ready
from bench.chaos.faults import Conductor
from bench.chaos.log import Followed, Log
from bench.chaos.plan import Fault
from bench.chaos.report import Outcome
from bench.chaos.rows import busy_connections, open_work, read_conversation
from tests.acceptance.chaos import Books, FaithfulFollower
from tests.acceptance.service import NotReadyError
from tests.acceptance.talk import WINDOW, Talk

TALKS: Final = 3
START_SECONDS: Final = 300.0
"""The most seconds until every process answers again on a busy machine. Clients' waiting is counted from then on."""
KEEPERS: Final = 2
CALLS_PER_HOUR: Final = 100_000
"""The limit of a conversation's model calls: so high that a campaign does not reach it."""
FOLDER: Final = Path(".data") / "bench" / "chaos"
"""The folder for the log of a campaign, relative to the current folder."""


def run(seed: int, minutes: float, plan: tuple[Fault, ...], say: Callable[[str], None]) -> Outcome:
    """Play a plan, wait until everything is at rest, and check. Call it from the main thread."""
    log = Log()
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder, running_cluster(Path(folder)) as cluster:
        campaign = Campaign(log)
        conductor = Conductor(cluster, campaign.now)
        policy = {**WINDOW, "calls_per_hour": CALLS_PER_HOUR}
        talks = [Talk.begin(cluster.front, policy=policy) for _ in range(TALKS)]
        books = Books(cluster.database_url)
        with contextlib.ExitStack() as stack:
            followers = [stack.enter_context(FaithfulFollower(talk)) for talk in (*talks, talks[0])]
            clients = clients_of(cluster, campaign, talks, followers, seed)
            campaign.begin()
            for client in clients:
                client.start()
            settled = _play(conductor, campaign, plan, minutes * 60, clients, books, say)
            conductor.keep(STUCK_SECONDS / 4, lambda: _followers_complete(books, talks, followers))
            log.followed += [_followed(number, one) for number, one in enumerate(followers)]
        log.spans += conductor.spans
        for name in conductor.ending:
            log.defect(f"{name} was asked to end and did not")
        _await_rest(cluster, conductor, books)
        _read_at_rest(cluster, talks, campaign)
        conversations = [read_conversation(books, talk.id) for talk in talks]
        _keep_logs(cluster, log, seed)
        unexpected = [line for process in cluster.processes.values() for line in _unexpected(process.log)]
    checked = Checked(log=log, conversations=conversations)
    return Outcome(
        seed=seed,
        minutes=minutes,
        plan=plan,
        campaign=checked,
        violations=check(checked),
        settled_after=settled,
        revived=conductor.revived,
        unexpected=unexpected,
    )


def clients_of(
    cluster: Cluster, campaign: Campaign, talks: Sequence[Talk], followers: Sequence[FaithfulFollower], seed: int
) -> list[Client]:
    """The clients: each conversation has one that appends, and two that use doors with replies."""
    clients: list[Client] = []
    for number, (name, door) in enumerate([*[("append", doors.append)] * len(talks), *doors.DOORS.items()]):
        talk = talks[number % len(talks)]
        client = f"writer {number + 1}"
        clients.append(Writer(client, name, door, talk, campaign, cluster.front, f"{seed} {client}"))
    for number in range(KEEPERS):
        keeper = f"keeper {number + 1}"
        clients.append(Keeper(keeper, list(talks), list(followers), campaign, cluster.front, f"{seed} {keeper}"))
    return clients


def _play(
    conductor: Conductor,
    campaign: Campaign,
    plan: tuple[Fault, ...],
    seconds: float,
    clients: Sequence[Client],
    books: Books,
    say: Callable[[str], None],
) -> float:
    """Play all faults, then wait until all work is done or is stuck; return the seconds of that wait."""
    try:
        conductor.play(plan, seconds, say)
    finally:
        conductor.end()
        campaign.ending.set()
    conductor.keep(START_SECONDS, lambda: conductor.started)
    healed = campaign.now()
    conductor.keep(STUCK_SECONDS, lambda: not any(client.is_alive() for client in clients) and not open_work(books))
    campaign.over.set()
    campaign.log.ended_at = campaign.now()
    for client in clients:
        client.join(STUCK_SECONDS)
    return campaign.now() - healed


def _await_rest(cluster: Cluster, conductor: Conductor, books: Books) -> None:
    try:
        wait_ready(cluster)
    except NotReadyError as error:
        error.add_note(f"ended by themselves: {', '.join(conductor.revived) or 'none'}")
        error.add_note("\n".join(["the database is busy with:", *_busy(books)]))
        raise


def _busy(books: Books) -> list[str]:
    try:
        return busy_connections(books)
    except (DBAPIError, OSError) as error:
        return [f"nothing that it tells: {error!r}"]


def _followers_complete(books: Books, talks: Sequence[Talk], followers: Sequence[FaithfulFollower]) -> bool:
    counts = {talk.id: len(books.events(talk)) for talk in talks}
    return all(len(one.events) >= counts[one.talk.id] for one in followers)


def _followed(number: int, follower: FaithfulFollower) -> Followed:
    events = tuple((int(event["id"]), str(event["type"])) for event in follower.events)
    return Followed(follower=f"follower {number + 1}", conversation=follower.talk.id, events=events)


def _read_at_rest(cluster: Cluster, talks: Sequence[Talk], campaign: Campaign) -> None:
    """Read every conversation one last time, without the proxies."""
    reads = campaign.log.reads
    with cluster.nodes[0].client() as http:
        for talk in talks:
            asked_at = campaign.now()
            page = http.get(talk.path("/messages"), params={"limit": PAGE, "order": "desc"})
            reads.append(shown_messages(talk.id, asked_at, page.raise_for_status().json(), is_last=True))
            context = http.get(talk.path("/context"))
            reads.append(shown_context(talk.id, asked_at, context.raise_for_status().json(), is_last=True))


def _unexpected(log: str) -> list[str]:
    """The lines about errors, except those about a server that is away."""
    return [line for line in log.splitlines() if "http.failed" in line and "DependencyUnavailable" not in line]


def _keep_logs(cluster: Cluster, log: Log, seed: int) -> None:
    """Keep what the clients were told and what the processes logged, for finding causes."""
    log.write(FOLDER / f"{seed}.jsonl")
    for name, process in cluster.processes.items():
        (FOLDER / f"{seed}-{name}.log").write_text(process.log)

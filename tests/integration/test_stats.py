"""What is measured, over a real database: sums are exact whoever writes, and metrics count everything once."""

from __future__ import annotations

import asyncio
import re
from dataclasses import astuple, replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.core.model.caches import CacheEntry
from app.core.model.conversation import Conversation, Usage
from app.core.model.errors import NotFoundError
from app.core.model.model_io import Proposal, SummaryRequest
from app.core.model.records import Attempt, DetailCall, Verification
from app.core.model.statistics import CostOfOne, Measurements
from app.core.retrieval.recall_use import uses_passages
from app.core.text.localization.catalogue import CATALOGUES
from app.http.stats_present import present_conversation_stats, present_service_stats
from app.infrastructure.ids import new_id
from app.infrastructure.metrics import ProcessMeter
from app.storage.database import make_engine
from app.storage.repositories.statistics import StatisticsRepository
from app.storage.scoped_session import TenantSession
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory, unit_of_work_factory
from app.usecases.admin import measuring
from app.usecases.admin.measuring import Measuring
from app.usecases.admin.stats import StatsService
from app.usecases.compaction.manual import CompactInput
from app.usecases.history.drafts import MessageDraft
from tests.builders import leaves
from tests.integration.rows import compaction, expansion, make_tenant, message, moment, stored, talk, turn
from tests.integration.services import Service
from tests.servers import unused_port

SAVED = 700
USED = Usage(input_tokens=100, output_tokens=10, cached_tokens=40, cost_usd=0.125)
ACCEPTED = Attempt(model="m", outcome="accepted", reason=None, duration_ms=30, usage=USED)
REFUSED = replace(ACCEPTED, outcome="refused", reason="cut_off")


async def ended(begin: UnitOfWorkFactory, row: Conversation, **fields: Any) -> UUID:
    """A compaction that took effect, in one transaction, as a service writes it."""
    claimed = compaction(row, status="running", lease_token=uuid4(), owner="one", ran_in="turn")
    given: dict[str, Any] = {
        "status": "applied",
        "finished_at": moment(60),
        "tokens_before": 1_000,
        "tokens_after": 1_000 - SAVED,
        "messages_covered": 5,
        "duration_ms": 200,
        "fidelity": 0.5,
        "attempts": (REFUSED, ACCEPTED),
    }
    async with begin(row.tenant_id) as unit:
        assert await unit.compactions.claim(claimed) is not None
        await unit.compactions.update_locked(claimed.id, **given | fields)
        await unit.commit()
    return claimed.id


async def measured(begin: UnitOfWorkFactory, row: Conversation) -> Measurements:
    async with begin(row.tenant_id) as unit:
        await unit.use_snapshot()
        return await unit.statistics.measured(row.id)


def figures_agree(seen: Measurements) -> bool:
    """Whether the figures fit: every compaction here is applied and probed, saves the same, and took two calls."""
    calls = sum(tally.count for tally in seen.calls)
    return (
        seen.total == seen.applied == seen.fidelity.probes == seen.in_turns.count
        and calls == 2 * seen.total
        and seen.tokens_saved == SAVED * seen.total
        and seen.usage.input_tokens == 2 * 100 * seen.total
    )


async def test_the_statements_of_statistics_are_built_once(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = await stored(begin, tenant)
    await ended(begin, row)
    known = await measured(begin, row)
    monkeypatch.delattr(TenantSession, "execute")  # through which every statement goes that is built for one execution
    assert await measured(begin, row) == known
    async with begin(tenant) as unit:
        assert await unit.statistics.measured(since=moment(0)) == known


# --- exact, whoever writes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("writers", [3, pytest.param(8, marks=pytest.mark.long)])
async def test_sums_are_exact_while_many_write(begin: UnitOfWorkFactory, tenant: UUID, writers: int) -> None:
    """Writers end compactions in a conversation each while readers look: no figure ever shows half of a compaction."""
    rows = [await stored(begin, tenant) for _ in range(writers)]
    looks: list[Measurements] = []

    async def write(row: Conversation) -> None:
        for _ in range(6):
            await ended(begin, row)

    async def look() -> None:
        for _ in range(12):
            async with begin(tenant) as unit:
                await unit.use_snapshot()
                looks.append(await unit.statistics.measured())

    await asyncio.gather(*map(write, rows), look(), look())
    assert all(map(figures_agree, looks))
    assert len({seen.total for seen in looks}) > 1, "the readers saw the writers at work"
    for row in rows:
        seen = await measured(begin, row)
        assert figures_agree(seen)
        assert (seen.total, seen.tokens_saved, seen.messages) == (6, 6 * SAVED, 30)
        assert seen.usage.cost_usd == 6 * 2 * 0.125


async def test_calls_are_counted_by_their_prompt_and_those_of_older_rows_apart(
    begin: UnitOfWorkFactory, engine: AsyncEngine, tenant: UUID
) -> None:
    row = await stored(begin, tenant)
    named = [replace(one, prompt_version="summary-1") for one in (REFUSED, REFUSED, ACCEPTED)]
    older = await ended(begin, row)
    await ended(begin, row, attempts=tuple(named))
    async with engine.begin() as connection:  # like rows from before versions were recorded
        without = "SELECT jsonb_agg(one - 'prompt_version') FROM jsonb_array_elements(attempts) one"
        stripped = await connection.execute(
            text(f"UPDATE compactions SET attempts = ({without}) WHERE id = :id"),  # noqa: S608 - our own words
            {"id": older},
        )
        assert stripped.rowcount == 1
    seen = await measured(begin, row)

    by_version = seen.by_prompt_version
    assert [astuple(one)[:4] for one in by_version] == [("summary-1", 3, 1, 2), (None, 2, 1, 1)]
    assert [(one.compactions, one.input_tokens, one.fidelity) for one in by_version] == [
        (1, sum(one.usage.input_tokens for one in named), 0.5),
        (1, sum(one.usage.input_tokens for one in (REFUSED, ACCEPTED)), 0.5),
    ]
    async with begin(tenant) as unit:
        read = await unit.compactions.get(older)
    assert [one.prompt_version for one in read.attempts] == [None, None]


async def slips_in(begin: UnitOfWorkFactory, row: Conversation, patch: pytest.MonkeyPatch) -> Measurements:
    """Measure, while another compaction ends between two statements of the measurement."""
    await ended(begin, row)
    calls = StatisticsRepository._calls

    async def after_another(self: StatisticsRepository, *scopes: Any) -> Any:
        await ended(begin, row)
        return await calls(self, *scopes)

    with patch.context() as context:
        context.setattr(StatisticsRepository, "_calls", after_another)
        return await measured(begin, row)


async def test_a_look_is_of_one_moment(begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = await slips_in(begin, await stored(begin, tenant), monkeypatch)
    assert figures_agree(seen)
    assert seen.total == 1


async def test_control_without_one_moment_figures_disagree(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(self: UnitOfWork) -> None:
        """Without a snapshot every statement sees what is committed by then."""

    monkeypatch.setattr(UnitOfWork, "use_snapshot", nothing)
    assert not figures_agree(await slips_in(begin, await stored(begin, tenant), monkeypatch))


async def test_a_failed_one_saves_nothing(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    row = await stored(begin, tenant)
    await ended(begin, row, status="failed", reason="timeout", tokens_after=None, messages_covered=0, fidelity=None)
    await ended(begin, row, status="skipped", reason="nothing_to_compact", fidelity=None, ran_in="worker")
    seen = await measured(begin, row)
    assert (seen.total, seen.applied, seen.tokens_saved, seen.messages) == (2, 0, 0, 0)
    assert seen.compactions_by("reason") == {"nothing_to_compact": 1, "timeout": 1}
    assert (seen.in_turns.count, seen.fidelity.last) == (1, None)


async def test_what_one_compaction_costs_is_of_all_its_calls(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """Two took effect; a third failed and is paid for as well; calls for details are counted separately."""
    row = await stored(begin, tenant)
    call = DetailCall(id=new_id(), conversation_id=row.id, called_at=moment(1))
    assert (await measured(begin, row)).cost_of_one == CostOfOne()
    for _ in range(2):
        await ended(begin, row)
    await ended(begin, row, status="failed", reason="timeout", tokens_after=None, messages_covered=0, fidelity=None)
    async with begin(tenant) as unit:
        await unit.detail_calls.begin(call)
        await unit.detail_calls.end(call.id, ACCEPTED)
        await unit.commit()
    seen = await measured(begin, row)
    assert seen.cost_of_one == CostOfOne(
        input_tokens=300.0, cached_tokens=120.0, output_tokens=30.0, cost_usd=3 * 2 * 0.125 / 2
    )
    assert seen.usage.input_tokens == 7 * 100


async def test_latency_is_mean_and_percentiles_of_what_ran_in_turns(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    row = await stored(begin, tenant)
    for milliseconds in (100, 200, 300, 400, 1_000):
        await ended(begin, row, duration_ms=milliseconds)
    await ended(begin, row, duration_ms=99_000, ran_in="worker")
    seen = (await measured(begin, row)).in_turns
    assert (seen.count, seen.total_ms, seen.mean_ms, seen.p50_ms, seen.p95_ms) == (5, 2_000, 400.0, 300.0, 880.0)


async def test_expansions_and_calls_for_details_are_counted(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    row = await stored(begin, tenant)
    found = [expansion(row.id, way="automatic", passages=3, tokens=90, duration_ms=12) for _ in range(3)]
    call = DetailCall(id=new_id(), conversation_id=row.id, called_at=moment(1))
    async with begin(tenant) as unit:
        await unit.expansions.add([*found, expansion(row.id, way="search")])
        texts, question = ["Anna's dog is called Pixel."], "What is it called?"
        for one, reply in zip(found, ("Pixel.", "I do not know."), strict=False):
            await unit.expansions.mark_used([one.id], used=uses_passages(reply, texts, question=question))
        await unit.detail_calls.begin(call)
        await unit.detail_calls.end(call.id, ACCEPTED)
        await unit.commit()
    seen = await measured(begin, row)
    by_way = {tally.way: tally for tally in seen.expansions}
    automatic = by_way["automatic"]
    assert (automatic.count, automatic.passages, automatic.tokens) == (3, 9, 270)
    assert (automatic.used, automatic.judged, seen.used_share) == (1, 2, 0.5)
    assert by_way["search"].judged == 0
    assert (seen.expanding.count, seen.expanding.p50_ms) == (4, 12.0)
    assert seen.calls_by("purpose") == {"detail": 1}
    assert seen.usage == USED


async def test_a_tenant_sees_its_own_and_what_ended_since(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    mine, theirs = await stored(begin, tenant), await stored(begin, await make_tenant(begin, f"tenant {uuid4()}"))
    await ended(begin, mine, finished_at=moment(10))
    await ended(begin, mine, finished_at=moment(500))
    await ended(begin, theirs)
    async with begin(tenant) as unit:
        assert (await unit.statistics.measured()).total == 2
        assert (await unit.statistics.measured(since=moment(100))).total == 1
        assert (await unit.statistics.measured(theirs.id)).total == 0


# --- the whole, through the services ------------------------------------------------------------------------------


def unlabelled(shown: dict[str, Any]) -> list[str]:
    """The figures without a label; those in a list of words have it next to them."""
    labels = shown.pop("labels")
    numbers = {path for path, item in leaves(shown) if isinstance(item, int | float)}
    beside = {path for path in numbers if ".by_" in path}
    assert all(path.rsplit(".", 1)[0] in labels for path in beside)
    return sorted(numbers - beside - labels.keys())


@pytest.mark.daily(1)
@pytest.mark.parametrize("language", sorted(CATALOGUES))
async def test_every_figure_has_a_label(begin: UnitOfWorkFactory, tenant: UUID, language: str) -> None:
    service, catalogue = Service(begin, tenant), CATALOGUES[language]
    id_ = await service.conversation()
    await service.say(id_, 40, words=4)
    await service.container.manual.compact(tenant, id_, CompactInput(), timeout=30)
    async with begin(tenant) as unit:
        await unit.expansions.add([expansion(id_, way="automatic", used=True)])
        await unit.turns.start(turn(await unit.conversations.get(id_), status="running"))
        await unit.commit()
    one = present_conversation_stats(await service.container.stats.conversation(tenant, id_), catalogue)
    assert unlabelled(one.model_dump(mode="json")) == []
    assert one.locale == language
    assert one.levels
    assert one.last is not None
    assert one.last.levels == one.levels
    assert one.context.saved_now == one.tokens.saved
    all_ = present_service_stats(await service.container.stats.service(tenant), catalogue)
    assert unlabelled(all_.model_dump(mode="json")) == []
    assert (all_.tokens, all_.compactions.total) == (one.tokens, one.compactions.total)
    assert (all_.active.conversations, all_.active.levels) == (1, one.levels)
    if language != "en":
        russian = re.compile("[а-яё]", re.IGNORECASE)
        assert all(russian.search(label) for label in [*one.labels.values(), *one.summary])


@pytest.mark.long
async def test_the_probe_of_a_compaction_is_stored(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """The summarizer keeps one of two exact values; the control keeps both."""

    async def half(request: SummaryRequest) -> Proposal:
        return _told("The parcel PX-4471-B is on its way", request)

    async def whole(request: SummaryRequest) -> Proposal:
        return _told("The parcels PX-4471-B and QR-9902-C are on their way", request)

    found = []
    for script in (half, whole):
        service = Service(begin, tenant, script)
        id_ = await service.conversation(anchor_share=0, levels=[], protect=[])
        said = ["well, the parcel PX-4471-B left", "and QR-9902-C left too"] + ["so it goes on and on " * 30] * 12
        drafts = [
            MessageDraft(role="assistant" if index % 2 else "user", content=text) for index, text in enumerate(said)
        ]
        await service.container.messages.append(tenant, id_, drafts)
        await service.container.manual.compact(tenant, id_, CompactInput(), timeout=30)
        (row,) = await service.compactions(id_)
        assert row.status == "applied", row.reason
        found.append(row.fidelity)
    assert found == [0.5, 1.0]


def _told(fact: str, request: SummaryRequest) -> Proposal:
    first = request.messages[0].seq
    text = (
        f'{{"logos": [{{"text": "{fact}", "from": [{first}, {first + 1}], "replaces": []}}], "pathos": [],'
        f' "abstract": [], "conversation_summary": "Parcels left.", "dropped": []}}'
    )
    return Proposal(text=text, finish="stop", model="fake", usage=Usage(input_tokens=50, output_tokens=20))


async def test_of_an_unknown_conversation_nothing_is_told(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    stats: StatsService = Service(begin, tenant).container.stats
    with pytest.raises(NotFoundError):
        await stats.conversation(tenant, uuid4())


# --- metrics ---------------------------------------------------------------------------------------------------------


class Clock:
    """The test's own clock."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.ahead = 0.0

    def now(self) -> datetime:
        return moment(self.seconds + self.ahead)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class Watcher:
    """A process that measures, started at the tests' start of time."""

    def __init__(self, begin: UnitOfWorkFactory, tenant: UUID) -> None:
        self.clock = Clock()
        self.measuring = Measuring(
            replace(Service(begin, tenant).container.stats._shell, clock=self.clock), ProcessMeter()
        )

    async def samples(self, *, after: float = 15.0) -> dict[str, float]:
        """Measure, this many seconds later."""
        self.clock.seconds += after
        lines = (await self.measuring.text()).splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name.removeprefix("throughline_"): float(number) for name, number in pairs}


APPLIED = 'compactions_total{ran_in="turn",status="applied",trigger="background"}'


async def test_what_any_process_ended_is_counted_once(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    watcher = Watcher(begin, tenant)
    row = await stored(begin, tenant)
    await ended(begin, row, finished_at=moment(5))
    assert (await watcher.samples())[APPLIED] == 1
    await ended(begin, row, finished_at=moment(14))  # committed late: its recorded end is before the last look
    await ended(begin, row, finished_at=moment(20))
    seen = await watcher.samples()
    assert seen[APPLIED] == 3
    assert seen['tokens_saved_total{trigger="background"}'] == 3 * SAVED
    assert seen['model_calls_total{outcome="accepted",purpose="compaction"}'] == 3
    for _ in range(20):
        assert (await watcher.samples())[APPLIED] == 3
    assert watcher.measuring._seen == {}


async def test_calls_for_verdicts_are_counted_once_each(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    watcher = Watcher(begin, tenant)
    row = await stored(begin, tenant)
    judged = Verification(
        id=new_id(),
        conversation_id=row.id,
        version=1,
        status="done",
        attempts=(replace(ACCEPTED, outcome="error", reason="timeout"), ACCEPTED),
        created_at=moment(1),
        finished_at=moment(5),
    )
    async with begin(tenant) as unit:
        await unit.verifications.open(judged)
        await unit.commit()
    for _ in range(2):
        seen = await watcher.samples()
        assert seen['model_calls_total{outcome="accepted",purpose="verification"}'] == 1
        assert seen['model_calls_total{outcome="error",purpose="verification"}'] == 1
        assert seen['model_call_reasons_total{purpose="verification",reason="timeout"}'] == 1


async def test_control_without_memory_it_is_counted_again(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    watcher = Watcher(begin, tenant)
    await ended(begin, await stored(begin, tenant), finished_at=moment(5))
    await watcher.samples()
    watcher.measuring._seen.clear()
    assert (await watcher.samples())[APPLIED] == 2


@pytest.mark.long
async def test_the_levels_of_what_a_compaction_made_are_told(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """There is one value per level and compaction; a compaction that made no level adds none."""
    watcher, service = Watcher(begin, tenant), Service(begin, tenant)
    id_ = await service.conversation()
    await service.say(id_, 40, words=4)
    await ended(begin, await stored(begin, tenant), finished_at=moment(5))
    assert not [name for name in await watcher.samples() if name.startswith("level_ratio")], "control"
    await service.container.manual.compact(tenant, id_, CompactInput(), timeout=30)
    measured = (await service.container.stats.conversation(tenant, id_)).levels
    seen = await watcher.samples()
    assert {one.level for one in measured} >= {"L2", "L3"}
    for one in measured:
        assert seen[f'level_ratio_count{{level="{one.level}"}}'] == 1
        assert seen[f'level_ratio_sum{{level="{one.level}"}}'] == pytest.approx(one.ratio, abs=1e-4)
    for _ in range(3):
        assert (await watcher.samples())['level_ratio_count{level="L3"}'] == 1


async def test_what_ended_before_the_start_is_not_counted(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    row = await stored(begin, tenant)
    await ended(begin, row, finished_at=moment(-5))
    assert APPLIED not in await Watcher(begin, tenant).samples()


async def test_a_clock_that_is_set_back_stops_no_count(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    watcher = Watcher(begin, tenant)
    row = await stored(begin, tenant)
    watcher.clock.ahead = 3_600.0
    await ended(begin, row, finished_at=moment(3_605))
    assert (await watcher.samples())[APPLIED] == 1
    watcher.clock.seconds += 600.0  # what was counted so long ago is not remembered
    await watcher.samples()
    watcher.clock.ahead = 0.0
    assert (await watcher.samples())[APPLIED] == 1
    await ended(begin, row, finished_at=moment(650))
    for _ in range(3):
        assert (await watcher.samples())[APPLIED] == 2


async def test_a_long_pause_is_caught_up_with_page_by_page(
    begin: UnitOfWorkFactory, tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "PAGE", 3)
    watcher = Watcher(begin, tenant)
    row = await stored(begin, tenant)
    for second in range(10):
        await ended(begin, row, finished_at=moment(1 + second))
    assert (await watcher.samples(after=3_600))[APPLIED] == 10


async def test_what_stands_in_flight_is_a_gauge(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    watcher = Watcher(begin, tenant)
    for _ in range(2):
        row = await stored(begin, tenant)
        async with begin(tenant) as unit:
            await unit.compactions.claim(compaction(row))
            await unit.commit()
    seen = await watcher.samples()
    assert (seen['compactions_in_flight{status="queued"}'], seen['compactions_in_flight{status="running"}']) == (2, 0)
    assert seen["database_up"] == 1


async def test_an_expansion_counts_as_used_once_it_is_known(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    watcher = Watcher(begin, tenant)
    row = await stored(begin, tenant)
    one = expansion(row.id, way="automatic", passages=4, created_at=moment(5))
    async with begin(tenant) as unit:
        await unit.expansions.add([one])
        await unit.commit()
    seen = await watcher.samples()
    assert (seen['expansions_total{way="automatic"}'], seen['expansion_passages_total{way="automatic"}']) == (1, 4)
    assert 'expansions_used_total{way="automatic"}' not in seen
    async with begin(tenant) as unit:
        await unit.expansions.mark_used([one.id], used=True)
        await unit.commit()
    for _ in range(2):
        seen = await watcher.samples()
        assert (seen['expansions_total{way="automatic"}'], seen['expansions_used_total{way="automatic"}']) == (1, 1)


async def test_a_turn_that_recalled_and_its_recall_count_once_each(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    """The record of what was recalled for a turn has the turn's id."""
    watcher = Watcher(begin, tenant)
    row = await stored(begin, tenant)
    started = turn(row, started_at=moment(1))
    recalled = replace(expansion(row.id, way="automatic", used=True, created_at=moment(2)), id=started.id)
    async with begin(tenant) as unit:
        await unit.turns.start(started)
        await unit.turns.end(started.id, status="completed", finished_at=moment(3))
        await unit.expansions.add([recalled])
        await unit.commit()
    names = ('turns_total{status="completed"}', 'expansions_total{way="automatic"}')
    for _ in range(3):
        seen = await watcher.samples()
        assert [seen.get(name) for name in (*names, 'expansions_used_total{way="automatic"}')] == [1, 1, 1]


async def test_a_turn_is_timed_and_its_context_weighed(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    watcher = Watcher(begin, tenant)
    row = await stored(begin, tenant, policy={"context_window": 4_000}, context_tokens=2_300)
    reply = message(row.id, 1, role="assistant", usage={"input_tokens": 900, "output_tokens": 30, "cached_tokens": 200})
    await talk(begin, tenant, [reply])
    started = turn(row, started_at=moment(1))
    async with begin(tenant) as unit:
        await unit.turns.start(started)
        await unit.turns.end(started.id, status="completed", finished_at=moment(3), reply_id=reply.id)
        await unit.commit()
    seen = await watcher.samples()
    assert seen['turns_total{status="completed"}'] == 1
    assert (seen['turn_duration_seconds_bucket{le="2.5"}'], seen["turn_duration_seconds_sum"]) == (1, 2)
    assert seen['model_tokens_total{kind="input",purpose="chat"}'] == 900
    assert (seen['context_utilization_bucket{le="0.8"}'], seen['context_utilization_bucket{le="0.7"}']) == (1, 0)


async def test_without_the_database_what_is_known_is_shown(begin: UnitOfWorkFactory, tenant: UUID) -> None:
    watcher = Watcher(begin, tenant)
    row = await stored(begin, tenant)
    await ended(begin, row, finished_at=moment(5))
    await watcher.samples()
    shell = watcher.measuring._shell
    watcher.measuring._shell = replace(shell, uow=unit_of_work_factory(unreachable()))
    seen = await watcher.samples()
    assert (seen["database_up"], seen[APPLIED]) == (0, 1)
    await ended(begin, row, finished_at=moment(25))
    watcher.measuring._shell = shell
    seen = await watcher.samples()
    assert (seen["database_up"], seen[APPLIED]) == (1, 2)


def unreachable() -> AsyncEngine:
    return make_engine(f"postgresql://nobody@127.0.0.1:{unused_port()}/none")


async def test_what_a_cache_gave_back_counts_only_while_what_it_cost_does(begin: UnitOfWorkFactory) -> None:
    tenant_id = await make_tenant(begin, "caching")
    payer, cache_id = await stored(begin, tenant_id), new_id()
    made = CacheEntry(
        id=new_id(), conversation_id=payer.id, cache_id=cache_id, model="m", action="made", spent_usd=0.05, at=moment(1)
    )
    back = replace(made, id=new_id(), conversation_id=None, action="ended", spent_usd=-0.02, at=moment(2))

    async def spent() -> float | None:
        async with begin(tenant_id) as unit:
            return (await unit.statistics.measured()).caches.spent_usd

    async with begin(tenant_id) as unit:
        await unit.caches.add_entry(back)
        await unit.commit()
    assert await spent() == 0, "whoever paid for it is deleted: nobody spent less than nothing"
    async with begin(tenant_id) as unit:
        await unit.caches.add_entry(made)
        await unit.commit()
    assert await spent() == pytest.approx(0.03)

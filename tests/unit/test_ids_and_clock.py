from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from app.infrastructure.clock import SystemClock
from app.infrastructure.ids import new_id, owner_name


def test_ids_are_plain_uuids_of_version_seven_in_order() -> None:
    made = [new_id() for _ in range(1_000)]
    assert {type(one) for one in made} == {UUID}
    assert {one.version for one in made} == {7}
    assert len(set(made)) == 1_000
    assert made == sorted(made)


def test_no_two_processes_hold_leases_under_one_name_though_host_and_number_are_the_same() -> None:
    """This happens in two containers with their host's network: one that stops would release the other's leases."""
    names = [owner_name("worker") for _ in range(2)]
    assert names[0] != names[1]
    assert names[0].rpartition(":")[0] == names[1].rpartition(":")[0]


async def test_the_clock_is_in_utc_and_waits() -> None:
    clock = SystemClock()
    begun = clock.monotonic()
    await clock.sleep(0.01)
    assert 0.01 <= clock.monotonic() - begun < 5
    assert clock.now().tzinfo is UTC
    assert abs((clock.now() - datetime.now(UTC)).total_seconds()) < 5

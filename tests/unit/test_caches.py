"""The arithmetic of providers' caches: when one pays, when it is renewed, and what counts as the same prefix."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from app.core.model.caches import (
    DEMAND_HOURS,
    CacheDemand,
    CachedFile,
    CachedPrefix,
    CacheLifetime,
    CacheMode,
    CacheVerdict,
    Caching,
    break_even_uses,
    decide_caching,
    saved_by_use,
    spent_on_making,
)
from app.core.model.model_io import CachePrices, CacheTerms, ToolSpec
from app.providers.cache_prices import minimum_of, storage_of
from bench.caches import break_even, crowd

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
FLASH = CachePrices(input=0.5e-6, cached=0.05e-6, storage=1e-6)
TERMS = CacheTerms(account="google:here", minimum=4_096, priced_on="2026-11-21", prices=lambda _tokens, _day: FLASH)
TOOL = ToolSpec(name="a", description="first", parameters={"type": "object", "required": []})
OTHER = ToolSpec(name="b", description="second", parameters={"type": "object"})
PREFIX = CachedPrefix(system="Be kind.", awareness="There is a state.", tools=(TOOL, OTHER))


def caching(mode: CacheMode = "auto") -> Caching:
    return Caching(prefix=PREFIX, tokens=6_000, mode=mode, ttl=HOUR)


def demand(rate: float, hit_rate: float | None = 0.0, measured: int = 9) -> CacheDemand:
    return CacheDemand(rate=rate, at=NOW, hit_rate=hit_rate, measured=measured)


def test_the_design_s_table_of_uses() -> None:
    """N > (p + s·T) / ((1 − h)(p − c)), computed by hand for three models."""
    headers, rows = break_even(6_000)
    table = {row[0]: dict(zip(headers[1:], row[1:], strict=True)) for row in rows}
    assert [table["gemini-3-flash-preview"][f"1 h, h = {rate}"] for rate in ("0", "0.5", "0.9")] == ["4", "7", "34"]
    assert [table["gemini-2.5-pro"][f"15 min, h = {rate}"] for rate in ("0", "0.5", "0.9")] == ["3", "5", "22"]
    assert table["gemini-2.5-pro"]["24 h, h = 0"] == "98"
    assert math.isinf(break_even_uses(FLASH, 1, 1.0)), "what is cached anyway never pays"


def test_a_cache_costs_less_from_that_number_of_uses_on_and_not_before() -> None:
    needed, tokens = break_even_uses(FLASH, 1, 0.25), 6_000
    for uses, pays in ((math.floor(needed), False), (math.floor(needed) + 1, True)):
        spent = spent_on_making(FLASH, tokens, HOUR) or 0.0
        saved, beyond = saved_by_use(FLASH, tokens, 0.25)
        assert saved is not None
        assert beyond == pytest.approx(0.75 * saved)
        assert beyond is not None
        assert (uses * beyond > spent) is pays


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (demand(3.0), ("does_not_pay", None)),
        (demand(3.5), ("pays", "make")),
        (demand(3.5, hit_rate=0.5), ("does_not_pay", None)),
        (demand(99.0, hit_rate=1.0), ("does_not_pay", None)),
        (demand(99.0, measured=1), ("hit_rate_unknown", None)),
        (demand(99.0, hit_rate=None), ("hit_rate_unknown", None)),
    ],
)
def test_auto_decides_by_what_is_expected(given: CacheDemand, expected: tuple[CacheVerdict, str | None]) -> None:
    decision = decide_caching(caching(), TERMS, given, None, NOW, minimum=4_096, tokens=6_000)
    assert (decision.verdict, decision.step) == expected


def test_what_is_unknown_too_small_or_switched_off_is_not_made() -> None:
    priceless = replace(TERMS, prices=lambda _tokens, _day: None)
    often = demand(99.0)
    assert (
        decide_caching(caching(), priceless, often, None, NOW, minimum=4_096, tokens=6_000).verdict == "price_unknown"
    )
    assert decide_caching(caching("always"), priceless, often, None, NOW, minimum=4_096, tokens=6_000).step == "make"
    assert (
        decide_caching(caching("always"), TERMS, often, None, NOW, minimum=6_001, tokens=6_000).verdict == "too_small"
    )
    assert decide_caching(caching("off"), TERMS, often, None, NOW, minimum=0, tokens=6_000).verdict == "off"


@pytest.mark.parametrize(
    ("left", "mode", "rate", "expected"),
    [
        (41, "always", 0.1, ("alive", None)),
        (19, "always", 0.1, ("always", "renew")),
        (19, "auto", 3.0, ("pays", "renew")),  # an existing one is not processed again: two uses an hour are enough
        (19, "auto", 2.0, ("does_not_pay", None)),
        (0.1, "always", 0.1, ("always", "make")),
        (-5, "auto", 3.5, ("pays", "make")),
    ],
)
def test_a_cache_is_renewed_in_the_last_third_of_its_life(
    left: float, mode: CacheMode, rate: float, expected: tuple[CacheVerdict, str | None]
) -> None:
    life = CacheLifetime(expires_at=NOW + timedelta(minutes=left), ttl=HOUR)
    decision = decide_caching(caching(mode), TERMS, demand(rate), life, NOW, minimum=4_096, tokens=6_000)
    assert (decision.verdict, decision.step) == expected


def test_demand_follows_how_often_and_forgets() -> None:
    one = CacheDemand()
    for minute in range(0, 60 * 48, 20):
        one = one.used(NOW + timedelta(minutes=minute))
    assert one.at is not None
    assert one.rate == pytest.approx(3.0, rel=0.05)
    assert one.rate_at(one.at + timedelta(hours=DEMAND_HOURS)) == pytest.approx(one.rate / math.e)
    first = CacheDemand().hit(0, 6_000)
    assert first.measured == 0, "the first request misses whatever comes after it"
    hits = one.hit(9_000, 6_000).hit(6_000, 6_000).hit(0, 6_000)
    assert hits.known_hit_rate == pytest.approx(2 / 3)
    many = CacheDemand(at=NOW, hit_rate=0.9, measured=1_000)
    assert many.hit(0, 6_000).hit_rate == pytest.approx(0.9 * 0.98), "one miss is no rule"


def test_a_fingerprint_is_that_of_all_a_cache_holds_and_of_where_it_is_kept() -> None:
    same = PREFIX.fingerprint("m", "a")
    assert replace(PREFIX, tools=(OTHER, TOOL)).fingerprint("m", "a") == same, "the order of tools is no difference"
    told_otherwise = replace(TOOL, description="otherwise")
    file = CachedFile(sha256="f" * 64, media_type="image/png", name="a.png")
    others = {
        PREFIX.fingerprint("n", "a"),
        PREFIX.fingerprint("m", "b"),
        replace(PREFIX, system="Be brief.").fingerprint("m", "a"),
        replace(PREFIX, awareness="There is none.").fingerprint("m", "a"),
        replace(PREFIX, tools=(told_otherwise, OTHER)).fingerprint("m", "a"),
        replace(PREFIX, files=(file,)).fingerprint("m", "a"),
        replace(PREFIX, files=(replace(file, name="b.png"),)).fingerprint("m", "a"),
        replace(PREFIX, files=(file,), locale="ru").fingerprint("m", "a"),
        replace(PREFIX, files=(file, replace(file, sha256="e" * 64))).fingerprint("m", "a"),
        replace(PREFIX, files=(replace(file, sha256="e" * 64), file)).fingerprint("m", "a"),
    }
    assert len(others - {same}) == 10


def test_the_tables_know_what_they_know() -> None:
    assert [minimum_of(name) for name in ("gemini-2.5-pro", "gemini-3-flash-preview", "gemini-9")] == [
        2_048,
        4_096,
        4_096,
    ]
    days = (date(2026, 12, 31), date(2027, 1, 1))
    assert [storage_of("gemini-3.8-flash", day) for day in days] == [0.50, 1.00]
    assert storage_of("gemini-2.5-flash-lite", days[0]) is None, "not the price of its larger namesake"
    assert storage_of("gemini-9", days[0]) is None


def test_a_crowd_is_its_rhythm_so_many_times() -> None:
    times = [NOW, NOW + HOUR]
    assert crowd(times, 1) == times
    many = crowd(times, 20)
    assert (len(many), many) == (40, sorted(many))

"""Computes when an explicit cache at the provider pays, and what it costs under each ``policy.cache``.

``python -m bench.caches [--tokens 6000] [--write]`` prints two tables, and makes no requests.

* *Break-even*: how many requests within its life a cache needs to cost less than no cache. The prices are from tables:
  the project's own for storage, that of pydantic-ai for the rest. ``h`` is the share of the tokens that the provider
  caches by itself.
* *Rhythms*: the user's messages of the made-up talks (``bench/made_talks``) are requests at the times stated there, in
  one conversation, and in many conversations of a tenant with the same beginning, each begun at another time. The cost
  of the prefix is compared with ``off``. The decisions are those of the service (``app.core.model.caches.decide``), on
  what it would have measured. The provider is assumed to have cached the share ``--hits`` of the prefix by itself if
  the last request with it is at most ``--holds`` minutes ago, and nothing otherwise; no provider promises either.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Final

from app.core.model.caches import (
    CacheDemand,
    CachedPrefix,
    CacheLifetime,
    CacheMode,
    Caching,
    break_even_uses,
    decide_caching,
    saved_by_use,
    spent_on_keeping,
    spent_on_making,
)
from app.core.model.model_io import CachePrices, CacheTerms
from app.providers import gemini
from app.providers.cache_prices import PRICES_READ_ON, terms_of
from bench.measurements import write
from bench.report import print_table, table, write_json

DECISIONS: Final = Path(__file__).resolve().parents[1] / "docs" / "decisions"
PAGE: Final = DECISIONS / "0032-a-cache-is-kept-where-it-pays.md"
TALKS: Final = Path(__file__).resolve().parent / "made_talks"
MODELS: Final = (
    "gemini-2.5-flash",
    "gemini-2.5-pro",
    "gemini-3-flash-preview",
    "gemini-3.5-flash",
    "gemini-3.8-flash",
    "gemini-3.1-pro-preview",
)
PLAYED: Final = ("gemini-3-flash-preview", "gemini-2.5-pro")
LIVES: Final = (timedelta(minutes=15), timedelta(hours=1), timedelta(days=1))
HIT_RATES: Final = (0.0, 0.5, 0.9)
MODES: Final[tuple[CacheMode, ...]] = ("auto", "always")
CROWDS: Final = (1, 20, 100)
"""Numbers of a tenant's conversations that begin with the same prefix."""
DAYS: Final = 60
"""The days within which the conversations of a crowd begin."""
SEED: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """How a provider is assumed to cache by itself."""

    hits: float
    holds: timedelta

    def share(self, gap: timedelta | None) -> float:
        """The share of the prefix that is cached, by the time since the last request with it; ``None``: no request."""
        return self.hits if gap is not None and gap <= self.holds else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The cost of a rhythm under one mode."""

    talk: str
    conversations: int
    requests: int
    model: str
    mode: CacheMode
    usd: float
    of_off: float
    """The cost divided by the cost under ``off``."""
    made: int
    renewed: int


def play(
    times: Sequence[datetime], *, tokens: int, terms: CacheTerms, mode: CacheMode, ttl: timedelta, provider: Provider
) -> tuple[float, int, int]:
    """The cost of the prefix in USD, and how many caches are made and renewed, for requests at these times."""
    caching = Caching(prefix=CachedPrefix(system="", awareness=""), tokens=tokens, mode=mode, ttl=ttl)
    prices = _known(terms, tokens)
    demand, life, last = CacheDemand(), None, None
    usd, made, renewed = 0.0, 0, 0
    for now in times:
        gap: timedelta | None = None if last is None else now - last
        last, full = now, tokens * prices.input
        if life is not None and life.serves(now):
            usd += full - (saved_by_use(prices, tokens, None)[0] or 0.0)
        else:
            cached = provider.share(gap) * tokens
            usd += full - cached * (prices.input - prices.cached)
            demand = demand.hit(round(cached), tokens)
        demand = demand.used(now)
        decision = decide_caching(caching, terms, demand, life, now, minimum=0, tokens=tokens)
        if decision.step == "make":
            usd, made = usd + (spent_on_making(prices, tokens, ttl) or 0.0), made + 1
            life = CacheLifetime(expires_at=now + ttl, ttl=ttl)
        elif decision.step == "renew" and life is not None:
            longer = now + ttl - life.expires_at
            usd, renewed = usd + (spent_on_keeping(prices, tokens, longer) or 0.0), renewed + 1
            life = CacheLifetime(expires_at=now + ttl, ttl=ttl)
    return usd, made, renewed


def crowd(times: Sequence[datetime], conversations: int) -> list[datetime]:
    """The times of the same rhythm in so many conversations, each begun at another time within ``DAYS``."""
    if conversations == 1:
        return list(times)
    drawn = random.Random(SEED)
    shifts = [timedelta(days=drawn.uniform(0, DAYS)) for _ in range(conversations)]
    return sorted(time + shift for shift in shifts for time in times)


def rhythms() -> Iterator[tuple[str, list[datetime]]]:
    """The name of each talk, with the times of its user's messages."""
    for path in sorted(TALKS.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            messages = json.loads(line)["messages"]
            asked = [message["created_at"] for message in messages if message["role"] == "user"]
            yield path.stem, sorted(datetime.fromisoformat(at).astimezone(UTC) for at in asked)


def played(tokens: int, ttl: timedelta, provider: Provider) -> list[Played]:
    """The costs of every rhythm, crowd, model and mode."""
    rows: list[Played] = []
    for model in PLAYED:
        terms = _terms(model)
        for talk, alone in rhythms():
            for conversations in CROWDS:
                times = crowd(alone, conversations)
                off, _, _ = play(times, tokens=tokens, terms=terms, mode="off", ttl=ttl, provider=provider)
                for mode in MODES:
                    usd, made, renewed = play(times, tokens=tokens, terms=terms, mode=mode, ttl=ttl, provider=provider)
                    rows.append(
                        Played(
                            talk=talk,
                            conversations=conversations,
                            requests=len(times),
                            model=model,
                            mode=mode,
                            usd=round(usd, 6),
                            of_off=round(usd / off, 4),
                            made=made,
                            renewed=renewed,
                        )
                    )
    return rows


def break_even(tokens: int) -> tuple[Sequence[str], list[Sequence[str]]]:
    """How many requests within its life make a cache pay, by model, life and rate of implicit hits."""
    headers = ["model", *(f"{_duration(life)}, h = {rate:g}" for life in LIVES for rate in HIT_RATES)]
    rows: list[Sequence[str]] = []
    for model in MODELS:
        prices = _known(_terms(model), tokens)
        needed = (break_even_uses(prices, life / timedelta(hours=1), rate) for life in LIVES for rate in HIT_RATES)
        rows.append([model, *(str(math.floor(uses) + 1) for uses in needed)])
    return headers, rows


def shown(rows: Sequence[Played]) -> tuple[Sequence[str], list[Sequence[str]]]:
    """One line for a rhythm, a crowd and a model."""
    headers = ["talk", "conversations", "requests", "model", "auto", "always", "made (auto)", "made (always)"]
    lines: list[Sequence[str]] = []
    for auto, always in zip(rows[::2], rows[1::2], strict=True):
        ratios = (f"{auto.of_off:.2f}", f"{always.of_off:.2f}")
        whose = (auto.talk, str(auto.conversations), f"{auto.requests:,}", auto.model)
        lines.append((*whose, *ratios, f"{auto.made:,}", f"{always.made:,}"))
    return headers, lines


def summary(rows: Sequence[Played]) -> str:
    """A sentence with the worst and the best result of each mode."""
    sentences = []
    for mode in MODES:
        ratios = [row.of_off for row in rows if row.mode == mode]
        sentences.append(f"`{mode}` costs {min(ratios):.2f} to {max(ratios):.2f} times what `off` costs")
    return "; ".join(sentences) + "."


@cache
def _terms(model: str) -> CacheTerms:
    """The prices of a model on the day on which the project's own were read; each is looked up once."""
    terms, day = (
        terms_of(gemini.make_model(model, gemini.make_provider("none", None))),
        date.fromisoformat(PRICES_READ_ON),
    )
    prices = cache(lambda tokens: terms.prices(tokens, day))
    return replace(terms, prices=lambda tokens, _: prices(tokens))


def _known(terms: CacheTerms, tokens: int) -> CachePrices:
    prices = terms.prices(tokens, date.fromisoformat(PRICES_READ_ON))
    if prices is None:
        raise SystemExit("a price of this model is unknown")
    return prices


def _duration(life: timedelta) -> str:
    hours = life / timedelta(hours=1)
    return f"{hours:g} h" if hours >= 1 else f"{hours * 60:g} min"


def main() -> None:
    """Compute, print, and write."""
    parser = argparse.ArgumentParser(description="When a cache at the provider pays.")
    parser.add_argument("--tokens", type=int, default=6_000, help="what every request begins with")
    parser.add_argument("--ttl", type=float, default=60, help="minutes that a cache is kept")
    parser.add_argument("--hits", type=float, default=0.9, help="what the provider caches by itself, soon after")
    parser.add_argument("--holds", type=float, default=5, help="minutes that this holds")
    parser.add_argument("--write", action="store_true", help=f"put the tables into docs/decisions/{PAGE.name}")
    asked = parser.parse_args()
    provider = Provider(hits=asked.hits, holds=timedelta(minutes=asked.holds))
    rows = played(asked.tokens, timedelta(minutes=asked.ttl), provider)
    even, rhythm = break_even(asked.tokens), shown(rows)
    print_table(*even)
    print()
    print_table(*rhythm)
    print(f"\n{summary(rows)}")
    write_json("caches", {"asked": vars(asked), "rows": [asdict(row) for row in rows]})
    if asked.write:
        how = f"{asked.tokens:,} tokens kept for {asked.ttl:g} min"
        how += f"; by itself the provider caches {asked.hits:g} of them for {asked.holds:g} min."
        write("break-even", f"Prices of {PRICES_READ_ON}, {asked.tokens:,} tokens.\n\n{table(*even)}", PAGE)
        write("rhythms", f"{how}\n\n{table(*rhythm)}\n\n{summary(rows)}", PAGE)


if __name__ == "__main__":
    main()

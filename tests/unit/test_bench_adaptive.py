"""The bench of adaptive thresholds: plays are paired, and its counts are what happened."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Final

import pytest

from app.core.anchors.detect import detect
from app.core.context.drafts import outline_of
from app.core.model.conversation import Outline, Role
from bench import growth
from bench.adaptive import GAPS, POLICIES, SECONDS, Cell, cells_of, rows_of
from bench.adaptive_play import CACHE_SECONDS, Play, Played, Recorded, Rhythm, numbered
from bench.replay import Replay

WINDOW: Final = 8_000
BRISK: Final = Rhythm(gap=5.0, compaction=3.0)


def talk(turns: int = 80, *, asked: int = 60, answered: int = 140) -> Recorded:
    sizes: tuple[tuple[Role, int], ...] = (("user", asked), ("assistant", answered))
    messages = [
        Outline(seq=2 * turn + place, role=role, token_count=tokens, byte_length=4 * tokens)
        for turn in range(turns)
        for place, (role, tokens) in enumerate(sizes, start=1)
    ]
    return Recorded(name="even", kind="chat", system_tokens=500, messages=numbered(messages))


def played(rhythm: Rhythm = BRISK, recorded: Recorded | None = None, **policy: object) -> Played:
    return Play.of(recorded or talk(), rhythm, WINDOW, 1, **policy).whole()


def test_where_nothing_is_due_everything_but_the_news_comes_from_the_cache() -> None:
    found = played(recorded=talk(10))
    assert (found.turns, found.requests, found.compactions, found.rewrites) == (10, 10, 0, 0)
    assert found.sent == sum(500 + 200 * turn + 60 for turn in range(10))
    assert found.cost == pytest.approx(found.sent - 0.75 * found.cached)
    assert found.sent - found.cached == 560 + 9 * 200, "the first request, then what each turn added"


def test_each_compaction_rewrites_the_prefix_once_unless_the_provider_has_forgotten_it() -> None:
    warm, cold = played(), played(Rhythm(gap=60.0 * CACHE_SECONDS, compaction=3.0))
    assert warm.compactions - 1 <= warm.rewrites <= warm.compactions, "the last may have no request after it"
    assert warm.rewrites > 2
    assert warm.lost > 0
    assert (cold.compactions, cold.rewrites, cold.cached) == (warm.compactions, 0, 0)
    assert cold.cost > warm.cost


def test_who_talks_faster_than_the_summarizer_works_waits() -> None:
    slow = Rhythm(gap=1.0, compaction=600.0)
    assert played().waits == 0, "control"
    waiting = played(slow)
    assert waiting.waits > 0
    assert waiting.waited > 60
    assert played(slow, adaptive="on").waited < waiting.waited


def test_adaptive_thresholds_rewrite_less_where_that_costs() -> None:
    fixed, adaptive = played(), played(adaptive="on")
    assert (adaptive.turns, adaptive.requests) == (fixed.turns, fixed.requests)
    assert adaptive.rewrites < fixed.rewrites
    assert adaptive.cost < fixed.cost


@pytest.mark.long
def test_as_many_compactions_as_when_the_words_are_folded() -> None:
    replay = Replay.in_window(WINDOW, protect=[])
    for message in growth.talk(120):
        replay.say(message.role, message.content)
        if message.role == "assistant" and replay.is_due():
            replay.fold()
    weighed = [
        replace(outline_of(message), anchor_tokens=sum(anchor.token_count for anchor in detect(message)))
        for message in replay.messages
    ]
    recorded = Recorded(name="the same", kind="chat", system_tokens=0, messages=numbered(weighed))
    play = Play.of(recorded, BRISK, WINDOW, 1)
    play.digest_part = Fraction(0)  # a replay serves no digests
    found = play.whole()
    assert replay.compactions >= 3
    assert abs(found.compactions - replay.compactions) <= 1


def test_the_table_has_a_row_for_each_rhythm() -> None:
    cells = cells_of([talk(20)], [1, 2], window=2_000)
    assert len(cells) == len(GAPS) * len(SECONDS) * len(POLICIES)
    assert all(isinstance(cell, Cell) and cell.plays == 2 for cell in cells)
    assert {cell.cost_ratio for cell in cells if cell.policy == "fixed"} == {1.0}
    rows = rows_of(cells)
    assert len(rows) == len(GAPS) * len(SECONDS)
    assert rows[0][:3] == ("chat", "at once", "3 s")

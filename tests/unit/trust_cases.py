"""A few recorded answers of the corpus, for the tests of what is counted there."""

from __future__ import annotations

import json
from functools import cache

from bench.trust.plays import Play, plays_of
from bench.trust.rounds import ANSWERS, Case, cases_of, talk_named


@cache
def cases() -> tuple[Case, ...]:
    """All answers to one conversation."""
    talk = talk_named("wedding")
    return tuple(cases_of(talk, json.loads((ANSWERS / "wedding.json").read_text("utf-8"))))


@cache
def plays() -> tuple[Play, ...]:
    """Three of them: one with a false narrative, and two that give up valid entries."""
    wanted = ("turn_end/2", "semantic/5", "handoff/4")
    return tuple(plays_of(case for case in cases() if case.id.partition("/")[2] in wanted))

"""Plays every recorded answer of a half of the corpus once: honest, and with each of its lies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from time import perf_counter

from bench.trust.lies import Lie, is_served, lies_of_case, planted
from bench.trust.playing import Played, played
from bench.trust.rounds import Case

GIVES_UP_VALID = frozenset({"dropped_valid", "replaced_valid"})
"""Kinds of lies that take a valid entry away: code keeps it, and the verifier is asked about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedLie:
    """A copy of an answer with one lie in it."""

    lie: Lie
    outcome: Played
    mended: Played
    """The outcome if the writer, asked again, answers as the honest twin."""
    is_served: bool
    """Whether somebody is misled if the writer, asked again, repeats the lie."""

    @property
    def is_left(self) -> bool:
        """Whether the lie is left to the verifier."""
        return self.outcome.applied is not None and (self.is_served or self.lie["kind"] in GIVES_UP_VALID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """One case, played with its honest answer and with each lie."""

    case: Case
    outcome: Played
    """The outcome of the honest answer."""
    lies: tuple[PlayedLie, ...] = ()
    seconds: float = 0.0
    """The seconds of all checks and the merge of the honest answer."""


def plays_of(corpus: Iterable[Case]) -> list[Play]:
    """The plays of all cases, in the corpus's order."""
    return [
        replace(play, lies=tuple(_played_lie(play.case, lie) for lie in lies_of_case(play.case)))
        for play in honest_plays_of(corpus)
    ]


def honest_plays_of(corpus: Iterable[Case]) -> list[Play]:
    """The plays of all cases without lies, for answers that the lies were not made for."""
    return [_honest(case) for case in corpus]


def _honest(case: Case) -> Play:
    started = perf_counter()
    outcome = played(case)
    return Play(case=case, outcome=outcome, seconds=perf_counter() - started)


def _played_lie(case: Case, lie: Lie) -> PlayedLie:
    false = planted(case, lie)
    outcome = played(case, false)
    mended = played(case, false, twin=case.answer) if outcome.asked_again else outcome
    return PlayedLie(lie=lie, outcome=outcome, mended=mended, is_served=is_served(case, lie, outcome))

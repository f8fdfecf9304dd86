"""Computes what asking again and verifying cost, compared with the chunk and the call that summarizes it.

Tokens are the service's own estimate; an answer of verdicts is counted as it would be written, without a model's
thoughts. Prices are those of the default model, without a cache. Seconds are of code alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from time import perf_counter
from typing import Final

from pydantic_ai.messages import ModelResponse
from pydantic_ai.usage import RequestUsage

from app.core.model.claims import Claim
from app.core.model.model_io import Proposal, SummaryRequest, VerificationRequest
from app.core.summarizer.framing import frame_messages
from app.core.summarizer.prompts import SummaryPrompt, render_summary
from app.core.text.token_counts import estimate_text
from app.core.validation.asking import doubts_of
from app.core.validation.gate import judge
from app.core.validation.verifier_prompts import render_verification
from app.providers.prices import cost_by_table
from app.settings import DEFAULT_GEMINI_MODEL
from bench.trust.joined import Fold
from bench.trust.plays import Play
from bench.trust.rounds import Case
from bench.trust.verified import asked_of, labelled, verified
from bench.trust.verifying import PROFILE


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The tokens of one or more calls."""

    read: int = 0
    written: int = 0

    @property
    def total(self) -> int:
        """Tokens read and written together."""
        return self.read + self.written

    def plus(self, other: Tokens) -> Tokens:
        """The sum with other calls' tokens."""
        return Tokens(read=self.read + other.read, written=self.written + other.written)

    def dollars(self) -> float:
        """The cost at the default model's price; 0 if the price table does not have the model."""
        provider, _, model = DEFAULT_GEMINI_MODEL.partition(":")
        usage = RequestUsage(input_tokens=self.read, output_tokens=self.written)
        return cost_by_table(ModelResponse(parts=[], usage=usage, model_name=model, provider_name=provider)) or 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost for one chunk."""

    chunk: int
    """Tokens of its messages."""
    framed: int
    """Tokens of its messages as a model reads them: numbered, with role and time."""
    verifying: Tokens
    calls: int
    again: Tokens = Tokens()
    """Tokens of asking again about failures; none if nothing failed."""
    summarizing: Tokens | None = None
    seconds: float = 0.0
    """Seconds of code, where they were measured: checks, merge, claims, requests, verdicts."""

    @property
    def share(self) -> float:
        """The tokens of asking again and verifying, divided by the chunk's tokens."""
        return self.again.plus(self.verifying).total / self.chunk

    @property
    def share_of_framed(self) -> float:
        """The same tokens, divided by the tokens of the chunk as it is read."""
        return self.again.plus(self.verifying).total / self.framed

    def dollars(self) -> float:
        """The cost of asking again and verifying."""
        return self.again.plus(self.verifying).dollars()


def cost_of_play(play: Play) -> Cost:
    """The cost for an honest answer of the corpus that was accepted."""
    case = play.case
    started = perf_counter()
    asked = asked_of(case, play.outcome)
    verified(asked, labelled(asked))
    seconds = play.seconds + perf_counter() - started
    return Cost(
        chunk=sum(message.token_count for message in case.request.messages),
        framed=estimate_text(frame_messages(case.request.messages)),
        verifying=verifying(asked.requests),
        calls=len(asked.requests),
        again=_again(case) if play.outcome.asked_again else Tokens(),
        summarizing=_call(render_summary(case.request), case.answer),
        seconds=seconds,
    )


def cost_of_fold(fold: Fold) -> Cost:
    """The cost for a large chunk."""
    requests = fold.subject.requests(PROFILE)
    return Cost(
        chunk=fold.tokens,
        framed=estimate_text(frame_messages(fold.messages)),
        verifying=verifying(requests),
        calls=len(requests),
    )


def verifying(requests: Iterable[VerificationRequest]) -> Tokens:
    """The tokens of these calls with their answers."""
    calls = Tokens()
    for request in requests:
        calls = calls.plus(_call(render_verification(request), answer_to(request.claims)))
    return calls


def answer_to(claims: Sequence[Claim]) -> str:
    """An answer as a model would write it, with no contradictions."""
    return json.dumps({"supported": [claim.n for claim in claims], "verdicts": []})


def row_of(name: str, costs: Sequence[Cost]) -> list[str]:
    """A row of the table: means and maxima, as named in ``HEADERS``."""
    shares = [cost.share for cost in costs]
    framed = [cost.share_of_framed for cost in costs]
    shares_of_summarizing = [
        cost.again.plus(cost.verifying).total / cost.summarizing.total for cost in costs if cost.summarizing is not None
    ]
    return [
        name,
        str(len(costs)),
        f"{mean(cost.chunk for cost in costs):.0f}",
        f"{mean(shares):.2f}",
        f"{max(shares):.2f}",
        f"{mean(framed):.2f}",
        f"{mean(shares_of_summarizing):.2f}" if shares_of_summarizing else "-",
        f"{100 * sum(cost.calls > 1 for cost in costs) / len(costs):.0f} %",
        f"{1_000 * mean(cost.dollars() for cost in costs):.2f}",
        f"{mean(cost.seconds for cost in costs):.2f}" if shares_of_summarizing else "-",
        f"{max(cost.seconds for cost in costs):.2f}" if shares_of_summarizing else "-",
    ]


HEADERS: Final = (
    "chunks",
    "number",
    "tokens",
    "share, mean",
    "share, greatest",
    "of the chunk as read",
    "of the summarizing call",
    "two calls or more",
    "$ a thousand",
    "seconds of code, mean",
    "seconds, greatest",
)
"""The headers; ``share`` is the tokens of asking again and verifying, divided by those of the chunk's messages."""


def _again(case: Case) -> Tokens:
    report = judge(Proposal(text=case.answer, finish="stop", model="recorded"), case.request)
    failures = report.examined.failures if report.examined else ()
    doubts = doubts_of(failures)
    asked: SummaryRequest = replace(case.request, doubts=doubts)
    second = {"statements": [{"n": n, "text": doubt.statement} for n, doubt in enumerate(doubts, start=1)]}
    return _call(render_summary(asked), json.dumps(second, ensure_ascii=False))


def _call(prompt: SummaryPrompt, answer: str) -> Tokens:
    shape = json.dumps(prompt.json_schema, ensure_ascii=False)
    return Tokens(
        read=estimate_text(prompt.system) + estimate_text(prompt.user) + estimate_text(shape),
        written=estimate_text(answer),
    )

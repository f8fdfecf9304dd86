"""``python -m bench.trust --live``: the configured model answers the prompts of the open half.

Its answers are measured like the recorded ones. The cost is stated first, and has to be confirmed unless ``YES=1``.
Cases are independent: each starts from the recorded state, whatever the model answered before. Lies are edits of
recorded answers, so none is measured here. The output says how one model did once; it is not used for published
figures.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

from app.core.model.conversation import Usage
from app.core.model.errors import ModelUnavailableError
from app.core.model.model_io import Proposal
from app.core.summarizer.prompts import render_summary
from app.core.text.token_counts import estimate_text
from app.usecases.ports import Summarizer
from bench.report import FOLDER, print_table, write_json
from bench.spending import NOT_RUN, NoModelError, Planned, agreed, base_url_of, live_settings, price_of, registry_of
from bench.trust.measures import figures_of
from bench.trust.rounds import Case, cases

ANSWERS: Final = "trust-live.jsonl"
"""The file under ``.data/bench`` with the model's answers, for reading."""
_AT_ONCE: Final = 4
_SEED: Final = 1
_THOUGHTS: Final = 2
"""The tokens of a model's thoughts, as a multiple of the recorded answer."""


def run(limit: int | None) -> int:
    """Ask and measure; return the exit status.

    Args:
        limit: How many cases, spread over all of them; ``None``: all.
    """
    try:
        settings = live_settings()
    except NoModelError as error:
        print(error, file=sys.stderr)
        return NOT_RUN
    model, chosen = settings.resolved_compaction_model, spread(list(cases()), limit)
    planned = planned_for(chosen)
    if not agreed(model, planned, price_of(model, base_url_of(model, settings), planned)):
        return NOT_RUN
    registry = registry_of(model, settings)

    async def ask() -> list[Proposal | str]:
        try:
            await registry.prepare()
            return await answers(registry.summarizer(), chosen)
        finally:
            await registry.close()

    return _report_answers(model, chosen, asyncio.run(ask()))


def spread(corpus: Sequence[Case], limit: int | None) -> list[Case]:
    """So many cases (at least one), from all conversations, presets and rounds; the same in each run."""
    if limit is None or limit >= len(corpus):
        return list(corpus)
    chosen = random.Random(_SEED).sample(range(len(corpus)), max(limit, 1))
    return [corpus[place] for place in sorted(chosen)]


def planned_for(corpus: Sequence[Case]) -> Planned:
    """The tokens of asking about these cases, by the service's estimator."""
    prompts = [render_summary(case.request) for case in corpus]
    shapes = sum(estimate_text(json.dumps(one.json_schema)) for one in prompts)
    return Planned(
        calls=len(corpus),
        input_tokens=shapes + sum(estimate_text(one.system) + estimate_text(one.user) for one in prompts),
        output_tokens=_THOUGHTS * sum(estimate_text(case.answer) for case in corpus),
    )


async def answers(summarizer: Summarizer, corpus: Sequence[Case]) -> list[Proposal | str]:
    """The model's answer to each case, or the reason word of its failure; a few cases are asked at a time."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def answer(case: Case) -> Proposal | str:
        async with slots:
            try:
                return await summarizer.ask(case.request)
            except ModelUnavailableError as error:
                return error.reason

    return list(await asyncio.gather(*map(answer, corpus)))


def _report_answers(model: str, corpus: Sequence[Case], given: Sequence[Proposal | str]) -> int:
    pairs = [(case, one) for case, one in zip(corpus, given, strict=True) if isinstance(one, Proposal)]
    whole = [replace(case, answer=one.text) for case, one in pairs if one.finish == "stop"]
    missing = Counter(one for one in given if isinstance(one, str))
    missing.update(one.finish for _, one in pairs if one.finish != "stop")
    usage = reduce(Usage.plus, (one.usage for _, one in pairs), Usage())
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"case": case.id, "answer": one.text}, ensure_ascii=False) for case, one in pairs]
    (FOLDER / ANSWERS).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    cost = "unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    print(f"\n{model}: {len(whole)} of {len(corpus)} answered; cost {cost}. The answers stand in {FOLDER / ANSWERS}.")
    for reason, count in missing.most_common():
        print(f"  {count} not: {reason}")
    if not whole:
        return 1
    figures = figures_of(whole)
    print_table(["figure, of this run alone", "value", "of"], [[name, *map(str, one)] for name, one in figures.items()])
    write_json("trust-live", {"model": model, "usage": usage.as_dict(), "missing": missing, "figures": figures})
    return 0

"""Compares two versions of the summarizer's prompt over the corpora.

``python -m bench.prompts OLD NEW`` measures in pairs the answers under each version: those of writers in
``bench/trust`` (the open half) and ``bench/prompt_answers``, and separately those of the model of ``--live`` in
``.data/bench``. With ``--live`` the configured model first answers the same cases under each version; the cost is
stated before, and has to be confirmed unless ``YES=1``. Pairs whose prompt is the same under both versions have a table
of their own: their differences are caused by no rule. A version without recorded answers is named, and only the tokens
of its prompts are printed. Versions are files of ``bench/prompt_versions``; the present code is a further version.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from app.core.model.model_io import Proposal
from app.core.summarizer.prompts import PromptWords, render_summary
from app.core.text.token_counts import estimate_text
from app.providers.guarded import GuardedSummarizer
from app.providers.provider_models import ProviderSummarizer
from app.usecases.ports import Summarizer
from bench.prompt_measures import NAMES, Difference, compared, measured
from bench.prompt_words import (
    WRITTEN,
    PromptVersionError,
    corpus,
    known_versions,
    record,
    recorded,
    words_of,
    written,
)
from bench.report import FOLDER, print_table, write_json
from bench.spending import NOT_RUN, NoModelError, agreed, base_url_of, live_settings, price_of, registry_of
from bench.trust.live import answers, planned_for, spread
from bench.trust.rounds import Case

NOTHING: Final = 1
"""The exit status if no case was answered under both versions."""
_WHOLE: Final = 100
"""From this value on numbers are shown without a fraction."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare; return the exit status: 1 if nothing could be compared."""
    parser = argparse.ArgumentParser(prog="python -m bench.prompts", description=__doc__)
    parser.add_argument("old", help=f"one of {', '.join(known_versions())}")
    parser.add_argument("new", help="another one")
    parser.add_argument("--live", action="store_true", help="ask the configured model first")
    parser.add_argument("--limit", type=int, help="of --live: how many cases")
    parser.add_argument("--answers", type=Path, default=FOLDER, help="where answers of live models stand")
    asked = parser.parse_args(arguments)
    try:
        words = {version: words_of(version) for version in (asked.old, asked.new)}
    except PromptVersionError as error:
        print(error, file=sys.stderr)
        return NOT_RUN
    cases = corpus()
    if asked.live and (status := live(words, spread(cases, asked.limit), asked.answers)):
        return status
    return report(words, cases, asked.answers)


def report(words: Mapping[str, PromptWords], cases: Sequence[Case], folder: Path, kept: Path = WRITTEN) -> int:
    """Print the comparisons, and what could not be compared; return 1 if nothing could be."""
    sources = {
        "writers": {version: written(version, cases, kept) for version in words},
        "a live model": {version: recorded(version, cases, folder) for version in words},
    }
    alike = _weighed(words, cases, sources.values())
    lines = [
        one
        for source, found in sources.items()
        for one in (_compared(source, found, words, alike), _compared(source, found, words, alike, same=True))
        if one
    ]
    if not lines:
        print("\nNothing can be compared: no case was answered under both. Record answers with --live.")
        return NOTHING
    write_json("prompts", {"versions": list(words), "comparisons": lines})
    return 0


def _weighed(
    words: Mapping[str, PromptWords], cases: Sequence[Case], sources: Iterable[Mapping[str, Mapping[str, Case]]]
) -> frozenset[str]:
    """Print how many answers each version has and its rules' tokens; return the cases with the same rules in all."""
    rules = {version: [render_summary(case.request, own).system for case in cases] for version, own in words.items()}
    found = list(sources)
    for version, systems in rules.items():
        count = len({name for source in found for name in source[version]})
        answers_words = f"{count} of {len(cases)} cases have an answer" if count else "NO ANSWERS ARE RECORDED UNDER IT"
        print(
            f"{version}: {answers_words}; its rules weigh {fmean(map(estimate_text, systems)):.0f} tokens on average."
        )
    return frozenset(case.id for case, *systems in zip(cases, *rules.values(), strict=True) if len(set(systems)) == 1)


def _compared(
    source: str,
    found: Mapping[str, Mapping[str, Case]],
    words: Mapping[str, PromptWords],
    alike: frozenset[str],
    *,
    same: bool = False,
) -> dict[str, Any] | None:
    """Print the table of one source, and return its figures; ``None`` without pairs."""
    shared = {name for name in set.intersection(*map(set, found.values())) if (name in alike) == same}
    old, new = (
        {name: measured(answered[name], words[version]) for name in shared} for version, answered in found.items()
    )
    differences = compared(old, new)
    if not differences:
        return None
    one = differences[0]
    print(f"\nAnswered by {source}: {one.pairs} pairs of {one.talks} conversations", end="")
    print(", prompts the same under both: no rule has caused what differs here." if same else ".")
    print("Less is better; the change with its 95 % interval:\n")
    print_table(["measure", *words, "change", "verdict"], [_row(one) for one in differences])
    shown = [asdict(one) | {"verdict": one.verdict} for one in differences]
    return {"answered_by": source, "same_prompts": same, "differences": shown}


def live(words: Mapping[str, PromptWords], cases: Sequence[Case], folder: Path) -> int:
    """Have the configured model answer under each version; return 0 if it did."""
    try:
        settings = live_settings()
    except NoModelError as error:
        print(error, file=sys.stderr)
        return NOT_RUN
    model = settings.resolved_compaction_model
    one = planned_for(cases)
    planned = replace(
        one,
        calls=len(words) * one.calls,
        input_tokens=len(words) * one.input_tokens,
        output_tokens=len(words) * max(one.output_tokens, sum(case.request.target_tokens for case in cases)),
    )
    if not agreed(model, planned, price_of(model, base_url_of(model, settings), planned)):
        return NOT_RUN
    registry = registry_of(model, settings)

    async def ask() -> None:
        try:
            await registry.prepare()
            for version, rules in words.items():
                await record_answers(version, with_words(registry.summarizer(), rules), cases, folder)
        finally:
            await registry.close()

    asyncio.run(ask())
    return 0


async def record_answers(version: str, summarizer: Summarizer, cases: Sequence[Case], folder: Path) -> None:
    """Ask the model, and keep the complete answers."""
    given = await answers(summarizer, cases)
    whole = {
        case.id: one.text
        for case, one in zip(cases, given, strict=True)
        if isinstance(one, Proposal) and one.finish == "stop"
    }
    path = record(version, whole, folder)
    print(f"{version}: {len(whole)} of {len(cases)} answered; they stand in {path}.")


def with_words(summarizer: Summarizer, words: PromptWords) -> Summarizer:
    """The summarizer with these rules. Raises ``TypeError`` for a summarizer that takes no rules."""
    if isinstance(summarizer, GuardedSummarizer) and isinstance(summarizer.inner, ProviderSummarizer):
        return replace(summarizer, inner=replace(summarizer.inner, words=words))
    raise TypeError("only a language model is told rules")


def _row(one: Difference) -> list[str]:
    interval = f"{_number(one.change, '+')} ({_number(one.low, '+')} to {_number(one.high, '+')})"
    return [NAMES[one.name], _number(one.old), _number(one.new), interval, one.verdict]


def _number(value: float, sign: str = "") -> str:
    return format(value, f"{sign}{',.0f' if abs(value) >= _WHOLE else '.3g'}")


if __name__ == "__main__":
    sys.exit(main())

"""The tables about verifiers, and their figures for the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from bench.report import print_table
from bench.trust.blind import recorded
from bench.trust.cost import HEADERS, Cost, cost_of_fold, cost_of_play, row_of
from bench.trust.effects import effects_of, evidence_of, giving_up_of
from bench.trust.heard import recorded_effects, sentence_shares
from bench.trust.joined import folds_of
from bench.trust.malice import conspiracies_of, harms_of, returns_of
from bench.trust.measures import texts_of
from bench.trust.plays import Play
from bench.trust.readers import judgements, kappa, readings_of
from bench.trust.rounds import Case
from bench.trust.ten_rounds import ROOT, Kept, kept_by

CHUNKS: Final = (
    ("one round of a conversation", 1, 1),
    ("two rounds of it at once", 1, 2),
    ("three", 1, 3),
    ("four", 1, 4),
    ("five, the whole conversation", 1, 5),
    ("rounds of a conversation, gathered", 1, 0),
    ("one round of three conversations", 3, 1),
    ("rounds of three, gathered", 3, 0),
    ("one round of all of a preset", 12, 1),
    ("two rounds of all of a preset", 12, 2),
)
"""For each kind of chunk: name, most conversations, and rounds of each; 0: as many as the service gathers."""


def frame_tables(plays: Sequence[Play]) -> dict[str, Any]:
    """Print the tables of evidence, effects and malice; return the figures."""
    counts = {"evidence": evidence_of(plays), "effect": effects_of(plays), "given up": giving_up_of(plays)}
    for name, found in counts.items():
        print()
        print_table([f"verifier, {name}", "share", "of"], [[key, *_percent(found[key])] for key in found])
    harms = harms_of(plays)
    print()
    print_table(
        [
            "verifier that lies",
            "honest statements",
            "lost without a true quote",
            "lost with one",
            "in doubt",
            "other entries changed",
        ],
        [[name, *map(str, asdict(harm).values())] for name, harm in harms.items()],
    )
    gone, of = conspiracies_of(plays)
    print(f"\nValid entries that a summarizer gives up and a verifier supports, both lying: {gone} of {of} go.")
    back, cut = returns_of(plays)
    returned = ", ".join(f"{number} ({name})" for name, number in back.items())
    print(f"False statements that code cut and a verifier supports all the same, of {cut}: {returned} come back.")
    shares = {name: {key: sum(found[key]) / len(found[key]) for key in found} for name, found in counts.items()}
    return {**shares, "malice": {name: asdict(harm) for name, harm in harms.items()}}


def recorded_tables(corpus: Sequence[Case]) -> dict[str, Any]:
    """Print the table of the effects of verdicts recorded blind; return the figures."""
    heard = recorded_effects(list(recorded(corpus)))
    if heard is None:
        return {}
    print(f"\nVerdicts of {', '.join(heard.recorders)} on {heard.requests} requests, {heard.current} as sent today")
    print()
    print_table(["lie", "gone (95 % interval)"], [[kind, str(share)] for kind, share in heard.lies_gone.items()])
    print()
    rows = [[f"honest {kind}, lost", str(share)] for kind, share in heard.honest_lost.items()]
    rows += [
        ["honest items put in doubt", str(heard.honest_doubted)],
        ["lies that stay, put in doubt", str(heard.lies_doubted)],
        ["entries honestly given up, gone", str(heard.given_up)],
        ["contradictions without a quote that stands there", str(heard.unproven)],
    ]
    rows += [[f"{name} sentences of false items, kept", str(share)] for name, share in sentence_shares().items()]
    print_table(["", "of how many (95 % interval)"], rows)
    return {"lies gone": {kind: asdict(share) for kind, share in heard.lies_gone.items()}}


def cost_tables(plays: Sequence[Play]) -> dict[str, Any]:
    """Print the table of the cost of asking again and verifying; return the figures."""
    costs: dict[str, list[Cost]] = {
        "rounds of the corpus": [cost_of_play(play) for play in plays if play.outcome.applied]
    }
    corpus = [play.case for play in plays]
    for name, talks, rounds in CHUNKS:
        costs[name] = [cost_of_fold(fold) for fold in folds_of(corpus, talks=talks, rounds=rounds)]
    print()
    print_table(HEADERS, [row_of(name, found) for name, found in costs.items()])
    return {name: dict(zip(HEADERS[1:], row_of(name, found)[1:], strict=True)) for name, found in costs.items()}


def rounds_table(corpus: Sequence[Case], before: Path | None) -> dict[str, Any]:
    """Print the table of facts still served after ten rounds, by this code and another checkout's; return figures."""
    found = {"now": kept_by(corpus, ROOT), **({"before": kept_by(corpus, before)} if before else {})}
    print()
    for name, kept in found.items():
        everything = [sum(values) for values in zip(*(_kept(one) for one in kept.values()), strict=True)]
        rows = [[preset, *map(str, _kept(one))] for preset, one in kept.items()]
        headers = [f"facts after ten rounds, {name}", "served", "by chance", "of", "tokens", "refused"]
        print_table(headers, [*rows, ["all", *map(str, everything)]])
        print()
    return {name: {preset: asdict(one) for preset, one in kept.items()} for name, kept in found.items()}


def readers_table(changes: Sequence[Mapping[str, Any]], plays: Sequence[Play], files: Sequence[Path]) -> dict[str, Any]:
    """Print the table of changes that two readers call worse, and of their agreement; return the figures."""
    one, other = (judgements(path) for path in files)
    readings = readings_of(changes, one, other, texts_of(plays))
    print()
    rows = [[kind, *map(str, asdict(reading).values())] for kind, reading in readings.items()]
    print_table(["honest", "texts", "changed", "worse by both readers", "by either"], rows)
    agreement = kappa([one[id_] for id_ in sorted(one)], [other[id_] for id_ in sorted(one)])
    print(f"\nCohen's kappa of the two readers: {'-' if agreement is None else f'{agreement:.2f}'}")
    return {"kappa": agreement, **{kind: asdict(reading) for kind, reading in readings.items()}}


def _percent(found: Sequence[bool]) -> tuple[str, str]:
    return (f"{100 * sum(found) / len(found):.1f} %" if found else "-", str(len(found)))


def _kept(one: Kept) -> list[int]:
    return [one.kept, one.by_chance, one.facts, one.tokens, sum(one.refused.values())]

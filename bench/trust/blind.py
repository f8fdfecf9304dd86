"""Verdicts recorded blind: requests that do not show which claims are lies, and the answers to them.

``python -m bench.trust --requests FOLDER`` plans a sample by a fixed seed and writes each request as a verifier would
get it; ``--collect FOLDER`` adds the answers to the corpus. ``PLAN`` says which lies are in which request.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from app.core.model.claims import Claim
from app.core.summarizer.prompts import SummaryPrompt
from app.core.validation.verdicts import Verdict, verdicts_of
from app.core.validation.verifier_prompts import VERIFY_VERSION, render_verification
from bench.trust.lies import Lie, is_served, lies_of_case, planted
from bench.trust.playing import Played, played
from bench.trust.rounds import HERE, Case
from bench.trust.verifying import requests, subject

VERDICTS: Final = HERE / "verdicts"
PLAN: Final = VERDICTS / "plan.json"
SENTENCES: Final = VERDICTS / "sentences.json"
"""Verdicts on the sentences of sixty false items, each with whether it is true. Two sentences that differ from the
honest item's only in words were marked as true by hand."""
SEED: Final = 20_261_121
SAMPLE: Final = 40
"""How many answers are asked about."""
MAX_LIES: Final = 3
"""The most lies in one of these answers."""
_LIES: Final = (0, 2, 3, 3, 3, 3, 3, 3)  # one is drawn for the most lies of an answer: some answers are honest


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """An honest answer with lies that do not touch one another."""

    case: Case
    lies: tuple[Lie, ...]

    @property
    def answer(self) -> str:
        """The answer that is judged."""
        return planted(self.case, *self.lies)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One recorder's answer to one planned request."""

    recorder: str
    planned: Planned
    outcome: Played
    verdicts: tuple[Verdict, ...]
    """Verdicts on today's claims; a claim that was worded differently then has none."""
    is_current: bool
    """Whether the same request would be sent today."""


def plan(corpus: Sequence[Case]) -> list[Planned]:
    """A sample over all conversations and presets, with lies of all kinds that code alone does not find.

    It has the round with the most such lies of each conversation and preset; then other rounds, drawn at random.
    """
    lot = Random(SEED)
    shuffled = lot.sample(list(corpus), len(corpus))
    passing = {case.id: [lie for lie in lies_of_case(case) if _passes(case, lie)] for case in shuffled}
    shuffled.sort(key=lambda case: -min(len(passing[case.id]), MAX_LIES))
    first = {(case.talk.id, case.preset): case for case in reversed(shuffled)}
    chosen = list(first.values())
    chosen += [case for case in shuffled if case not in chosen]
    seen: Counter[str] = Counter()
    planned = []
    for case in lot.sample(chosen[:SAMPLE], min(SAMPLE, len(chosen))):
        lies = _apart(sorted(passing[case.id], key=lambda lie: seen[lie["kind"]]))[: lot.choice(_LIES)]
        seen.update(lie["kind"] for lie in lies)
        planned.append(Planned(case=case, lies=lies))
    return planned


def write_requests(folder: Path, planned: Sequence[Planned]) -> int:
    """Write each call to the folder, and its contents to ``PLAN``; return the number of calls."""
    folder.mkdir(parents=True, exist_ok=True)
    key: dict[str, Any] = {}
    for name, one, call, prompt, _ in _calls(planned):
        call_fields = {"id": name, "system": prompt.system, "user": prompt.user, "schema": prompt.json_schema}
        (folder / f"{name}.json").write_text(json.dumps(call_fields, ensure_ascii=False, indent=1), encoding="utf-8")
        key[name] = {"case": one.case.id, "lies": [lie["number"] for lie in one.lies], "call": call}
    VERDICTS.mkdir(exist_ok=True)
    PLAN.write_text(json.dumps({"seed": SEED, "requests": key}, indent=0) + "\n", encoding="utf-8")
    return len(key)


def collect(folder: Path, corpus: Sequence[Case]) -> list[Path]:
    """Add ``answers/*.json`` of a folder to the corpus, one file for each model.

    Raises:
        ValueError: A request that was answered is not the one that would be sent today.
    """
    calls = {name: (prompt, claims) for name, _, _, prompt, claims in _calls(planned_of(corpus, PLAN))}
    by_model: dict[tuple[str, str], dict[str, Any]] = {}
    for path in sorted((folder / "answers").glob("*.json")):
        data = json.loads(path.read_text("utf-8"))
        answers = by_model.setdefault((data["recorder"], data["model"]), {})
        for name, answer in data["answers"].items():
            asked = json.loads((folder / "requests" / f"{name}.json").read_text("utf-8"))
            prompt, claims = calls[name]
            if (asked["system"], asked["user"]) != (prompt.system, prompt.user):
                raise ValueError(f"request {name} would be another today")
            found = verdicts_of(json.dumps(answer, ensure_ascii=False), claims)
            by_number = {claim.n: claim for claim in claims}
            answers[name] = {
                "prompt": _digest(prompt.system + prompt.user),
                "verdicts": [
                    {"claim": key_of(by_number[one.n]), "verdict": one.verdict, "seq": one.seq, "quote": one.quote}
                    for one in found
                ],
            }
    written = []
    for (recorder, model), answers in by_model.items():
        path = VERDICTS / f"{_plain(recorder)}-{_plain(model)}.json"
        data = {"recorder": recorder, "model": model, "prompt_version": VERIFY_VERSION, "answers": answers}
        path.write_text(json.dumps(data, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
        written.append(path)
    return written


def recorded(corpus: Sequence[Case], folder: Path = VERDICTS) -> Iterator[Recorded]:
    """Every recorded answer, with its verdicts on today's claims."""
    files = [
        json.loads(path.read_text("utf-8"))
        for path in sorted(folder.glob("*.json"))
        if path.name not in {PLAN.name, SENTENCES.name}
    ]
    if not files:
        return
    for name, one, _, prompt, claims in _calls(planned_of(corpus, folder / PLAN.name)):
        for data in files:
            if name in data["answers"]:
                answer = data["answers"][name]
                yield Recorded(
                    recorder=f"{data['recorder']} ({data['model']})",
                    planned=one,
                    outcome=played(one.case, one.answer),
                    verdicts=tuple(_on_claims(answer["verdicts"], claims)),
                    is_current=answer["prompt"] == _digest(prompt.system + prompt.user),
                )


def planned_of(corpus: Sequence[Case], path: Path = PLAN) -> list[Planned]:
    """The sample that was planned when the requests were written."""
    by_id = {case.id: case for case in corpus}
    found: dict[str, Planned] = {}
    for one in json.loads(path.read_text("utf-8"))["requests"].values():
        case = by_id[one["case"]]
        lies = {lie["number"]: lie for lie in lies_of_case(case)}
        found[case.id] = Planned(case=case, lies=tuple(lies[number] for number in one["lies"]))
    return list(found.values())


def key_of(claim: Claim) -> str:
    """A claim's name in recordings, which does not depend on its number."""
    about = claim.target if claim.gives_up else claim.field
    return _digest(f"{claim.kind} {about} {claim.text}")


def _calls(planned: Iterable[Planned]) -> Iterator[tuple[str, Planned, int, SummaryPrompt, tuple[Claim, ...]]]:
    """Each call: name, answer, number of the call, prompt and claims."""
    number = 0
    for one in planned:
        outcome = played(one.case, one.answer)
        for call, request in enumerate(requests(subject(one.case, outcome))):
            number += 1
            yield f"{number:03}", one, call, render_verification(request), request.claims


def _on_claims(verdicts: Iterable[Mapping[str, Any]], claims: Iterable[Claim]) -> Iterator[Verdict]:
    numbers = {key_of(claim): claim.n for claim in claims}
    for one in verdicts:
        if one["claim"] in numbers:
            yield Verdict(n=numbers[one["claim"]], verdict=one["verdict"], seq=one["seq"], quote=one["quote"])


def _passes(case: Case, lie: Lie) -> bool:
    """Whether a lie is left to the verifier: it is served in spite of all checks, or only kept in doubt."""
    outcome = played(case, planted(case, lie))
    return outcome.applied is not None and (
        lie["kind"] in {"dropped_valid", "replaced_valid"} or is_served(case, lie, outcome)
    )


def _apart(lies: Iterable[Lie]) -> tuple[Lie, ...]:
    """The first few of the lies that change different texts."""
    chosen: list[Lie] = []
    taken: set[tuple[Any, ...]] = set()
    for lie in lies:
        places: set[tuple[Any, ...]] = {(name,) for name in (*lie.get("replaces", ()), lie.get("entry")) if name}
        if lie.get("index") != -1 and "field" in lie:
            places.add((lie["field"], lie.get("index")))
        if len(chosen) < MAX_LIES and not taken & places:
            chosen.append(lie)
            taken |= places
    return tuple(chosen)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(name: str) -> str:
    return "-".join("".join(sign if sign.isalnum() else " " for sign in name.lower()).split())

"""``python -m bench.trust.cuts``: which statements that code cut for a value come back by a model's verdicts.

The statements fail the check of values. Honest ones mostly state something calculated; wrong ones look like what the
conversation says, or have a random value. The verifier is asked about them as the service asks, without being told
which are which. ``--requests FOLDER`` writes the calls, ``--collect FOLDER`` adds the answers to them
(``answers/*.json``: by name of the call, with ``model``) to the corpus.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from app.core.model.candidate import Candidate, CandidateItem
from app.core.model.claims import Claim
from app.core.model.conversation import Message
from app.core.model.model_io import VerificationRequest
from app.core.validation.evidence import evidence_messages
from app.core.validation.exact_checks import examine_candidate
from app.core.validation.source_texts import SourceTexts
from app.core.validation.verdict_application import apply_verdicts
from app.core.validation.verdicts import Verdict, verdicts_of
from app.core.validation.verifier_prompts import VERIFY_VERSION, render_verification, shown_texts, verdict_output_tokens
from bench.report import print_table
from bench.trust.blind import key_of
from bench.trust.lies import is_claim_of
from bench.trust.measures import Figure, honest_figures_of
from bench.trust.ordinary import SETS, Answer, answers, changed_value
from bench.trust.plays import Play, plays_of
from bench.trust.rounds import HERE, cases
from bench.trust.values import HALVES, message
from bench.trust.verified import asked_of, verified
from bench.trust.verifying import requests, subject

ANSWERED: Final = HERE / "cut_verdicts.json"
SEED: Final = 20_261_126
_READ: Final = [name for name in HALVES if not name.endswith("sealed")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request, and whether its claims are honest."""

    name: str
    source: str
    """The source of its statements."""
    request: VerificationRequest
    is_honest: bool

    @property
    def prompt(self) -> tuple[str, str]:
        """The texts that the verifier reads."""
        prompt = render_verification(self.request)
        return prompt.system, prompt.user


def calls(*, sealed: bool = False) -> Iterator[Call]:
    """All calls in a fixed order: of short conversations, ordinary talks and the corpus; or of its sealed half."""
    if not sealed:
        yield from _of_others()
    yield from _of_corpus(sealed=sealed)


def _of_corpus(*, sealed: bool) -> Iterator[Call]:
    """Calls on what was cut from honest answers of one half, and from copies with a lie; their letters are drawn."""
    dice, half = random.Random(SEED), "sealed" if sealed else "corpus"
    number = 0
    for play in _plays(sealed=sealed):
        for lie, outcome in [(None, play.outcome), *((one.lie, one.outcome) for one in play.lies if not one.is_left)]:
            if outcome.applied is None:
                continue
            asked = subject(play.case, outcome)
            cut = [claim for claim in asked.claims if claim.kind == "cut"]
            claims = tuple(one for one in cut if lie is None or is_claim_of(one, play.case, lie))
            for request in requests(replace(asked, claims=claims)) if claims else ():
                number += 1
                name = f"{half}-{number:03}{dice.choice('ab')}"
                yield Call(name=name, source=f"bench.trust, {half}", request=request, is_honest=lie is None)


@cache
def _plays(*, sealed: bool) -> tuple[Play, ...]:
    return tuple(plays_of(cases(sealed=sealed)))


def _of_others() -> Iterator[Call]:
    """Calls of short conversations and ordinary talks.

    Honest and wrong statements are in two calls, whose order is drawn. They often differ in a single value, so nobody
    may answer calls of both letters.
    """
    dice = random.Random(SEED)
    found = [*_of_values(), *(call for name in SETS for call in _of_talks(name, dice))]
    for number, (source, messages, items) in enumerate(found, start=1):
        for letter, is_honest in zip("ab", dice.sample((True, False), 2), strict=True):
            claims = tuple(
                Claim(n=n, kind="cut", field=item.field, text=item.text, target="", seqs=item.from_seqs)
                for n, item in enumerate((item for item, kind in items if kind == is_honest), start=1)
            )
            if claims:
                request = VerificationRequest(
                    messages=evidence_messages(claims, messages),
                    claims=claims,
                    max_output_tokens=verdict_output_tokens(claims),
                )
                yield Call(name=f"{number:03}{letter}", source=source, request=request, is_honest=is_honest)


_Found = tuple[str, Sequence[Message], list[tuple[CandidateItem, bool]]]


def _of_values() -> Iterator[_Found]:
    """The short conversations full of values in which an honest statement fails."""
    for name in _READ:
        for row in map(json.loads, HALVES[name].open(encoding="utf-8")):
            messages = [message(*one) for one in row["text"]["messages"]]
            shown = SourceTexts(messages)
            items = [
                (item, kind != "lie")
                for (text, seqs), kind in zip(
                    (one[:2] for one in row["text"]["statements"]), row["expected"], strict=True
                )
                if examine_candidate(Candidate(narrative={}, items=(item := _item(text, seqs),)), shown).failures
            ]
            if any(is_honest for _, is_honest in items):
                yield name, messages, items


def _of_talks(name: str, dice: random.Random) -> Iterator[_Found]:
    """Failing statements of honest answers about ordinary talks, each with another that has a random value."""
    for answer in answers(name):
        failing = {
            one.key for one in examine_candidate(answer.candidate, answer.shown).failures if one.field != "segments"
        }
        judged_items = [
            (item, (item.field, index, item.text) in failing) for index, item in enumerate(answer.candidate.items)
        ]
        honest = [(item, True) for item, fails in judged_items if fails]
        others = [item for item, fails in judged_items if not fails]
        wrong = (_with_wrong_value(item, answer, dice) for item in dice.sample(others, len(others)))
        lies = [(item, False) for item in wrong if item is not None]
        if honest:
            yield f"talks, {name}", answer.messages, [*honest, *lies[: len(honest)]]


def _with_wrong_value(item: CandidateItem, answer: Answer, dice: random.Random) -> CandidateItem | None:
    text, value = changed_value(item.text, answer.shown, dice)
    changed = _item(text, item.from_seqs, item.field)
    fails = value is not None and examine_candidate(Candidate(narrative={}, items=(changed,)), answer.shown).failures
    return changed if fails else None


def _item(text: str, seqs: Iterable[int], field: str = "facts") -> CandidateItem:
    return CandidateItem(field=field, text=text, from_seqs=tuple(seqs))


Answered = Mapping[str, Verdict]
"""Verdicts by the statement that they are about (``key_of``), not by their numbers."""


def recorded() -> Answered:
    """The recorded verdicts."""
    recorded_verdicts = json.loads(ANSWERED.read_text("utf-8"))["verdicts"]
    return {key: Verdict(n=0, **verdict) for key, verdict in recorded_verdicts.items()}


def on_claims(answered: Answered, claims: Iterable[Claim]) -> list[Verdict]:
    """The verdicts on these claims, with today's numbers."""
    return [replace(answered[key], n=claim.n) for claim in claims if (key := key_of(claim)) in answered]


def counted(answered: Answered, *, sealed: bool = False) -> dict[str, Counter[tuple[bool, str]]]:
    """For each source, how many honest and wrong statements were asked about, were supported, and come back."""
    found: dict[str, Counter[tuple[bool, str]]] = {}
    for call in calls(sealed=sealed):
        verdicts = on_claims(answered, call.request.claims)
        counts = found.setdefault(call.source, Counter())
        counts[call.is_honest, "asked"] += len(verdicts)
        counts[call.is_honest, "supported"] += sum(one.verdict == "supported" for one in verdicts)
        applied = apply_verdicts((), call.request.claims, verdicts, shown_texts=shown_texts(call.request)).counts
        counts[call.is_honest, "back"] += applied.supported
    return found


def honest_after(answered: Answered, *, sealed: bool) -> dict[str, tuple[Figure, Figure]]:
    """How much of the corpus's honest answers is changed by code alone, and after these verdicts are applied."""
    plays = _plays(sealed=sealed)
    before, after = honest_figures_of(plays), honest_figures_of([_after(play, answered) for play in plays])
    return {name: (before[name], after[name]) for name in before if name.endswith(("changed", "changed or gone"))}


def _after(play: Play, answered: Answered) -> Play:
    if play.outcome.applied is None:
        return play
    asked = asked_of(play.case, play.outcome)
    return replace(
        play, outcome=verified(asked, on_claims(answered, (one for one in asked.claims if one.kind == "cut")))
    )


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.trust.cuts", description=__doc__)
    parser.add_argument("--requests", type=Path, metavar="FOLDER")
    parser.add_argument("--collect", type=Path, metavar="FOLDER")
    parser.add_argument("--final", action="store_true", help="the sealed half; each use is logged in docs/trust.md")
    asked = parser.parse_args()
    if asked.requests:
        asked.requests.mkdir(parents=True, exist_ok=True)
        for call in calls(sealed=asked.final):
            system, user = call.prompt
            (asked.requests / f"{call.name}.txt").write_text(f"{system}\n\n{user}\n", encoding="utf-8")
        return 0
    if asked.collect:
        _collect(asked.collect, sealed=asked.final)
    answered = recorded()
    _show(counted(answered, sealed=asked.final))
    print()
    rows = [
        [name, before, after, str(of)]
        for name, ((before, of), (after, _)) in honest_after(answered, sealed=asked.final).items()
    ]
    print_table(["bench.trust", "by code alone", "after these verdicts", "of"], rows)
    return 0


def _collect(folder: Path, *, sealed: bool) -> None:
    answers_by_reader = [json.loads(path.read_text("utf-8")) for path in sorted((folder / "answers").glob("*.json"))]
    by_name = {name: answer for one in answers_by_reader for name, answer in one["answers"].items()}
    kept = json.loads(ANSWERED.read_text("utf-8")) if ANSWERED.exists() else {"verdicts": {}}
    for call in calls(sealed=sealed):
        answer = json.dumps(by_name.get(call.name, {}), ensure_ascii=False)
        keys = {claim.n: key_of(claim) for claim in call.request.claims}
        for one in verdicts_of(answer, call.request.claims):
            kept["verdicts"][keys[one.n]] = {"verdict": one.verdict, "seq": one.seq, "quote": one.quote}
    kept |= {"model": answers_by_reader[0]["model"], "prompt_version": VERIFY_VERSION}
    ANSWERED.write_text(json.dumps(kept, ensure_ascii=False, indent=0, sort_keys=True) + "\n", encoding="utf-8")


def _show(found: Mapping[str, Counter[tuple[bool, str]]]) -> None:
    rows = []
    for source, counts in [*found.items(), ("all", sum(found.values(), Counter[tuple[bool, str]]()))]:
        shares = [
            _share(counts[honest, what], counts[honest, "asked"])
            for honest in (True, False)
            for what in ("supported", "back")
        ]
        rows.append([source, *shares])
    heads = ["honest, supported", "honest, back", "wrong, supported", "wrong, back"]
    print_table(["statements that code cut", *heads], rows)


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole} = {part / max(whole, 1):.1%}"


if __name__ == "__main__":
    sys.exit(main())

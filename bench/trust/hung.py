"""``python -m bench.trust.hung``: what a second question achieves if a false sentence is appended to a true item.

A sentence of another conversation is put after or before a true item of each recorded answer of the open half. A
verifier finds that the item as a whole is not stated, and is asked about its sentences. With verdicts without errors
the true sentences stay as they are, and only the other one is in doubt. The table shows what verifiers do that lie or
guess at this second question; the last line shows what the question costs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from random import Random
from statistics import mean
from typing import Final

from app.core.model.claims import Claim
from app.core.summarizer.candidate import parse_candidate
from app.core.text.relative import without_added_days
from app.core.text.sentences import sentences
from app.core.text.values import values
from app.core.validation.verdicts import Verdict, VerdictWord
from app.usecases.verification.judging import Judgement
from bench.report import print_table, take_no_options
from bench.trust.cost import verifying
from bench.trust.lies import Lie, honest_sentences, planted
from bench.trust.playing import Played, played
from bench.trust.rounds import Case, cases
from bench.trust.verified import Asked, asked_of, doubted, false_claims, true_quote, verified
from bench.trust.verifying import PROFILE, subject

SEED: Final = 20_261_127
_INVENTED: Final = "That was never agreed, and I said so twice."


@dataclass(frozen=True, slots=True, kw_only=True)
class Hung:
    """An answer with such an item, and what the verifier is asked about it."""

    case: Case
    lie: Lie
    asked: Asked
    item: Claim
    parts: tuple[Claim, ...]
    share: float
    """The tokens of the first question, divided by those of the chunk."""
    share_again: float
    """The tokens of the second question, divided by those of the chunk."""

    @property
    def first(self) -> tuple[Verdict, ...]:
        """The verdicts before the second question."""
        words: dict[bool, VerdictWord] = {True: "not_stated", False: "supported"}
        return tuple(Verdict(n=one.n, verdict=words[one.n == self.item.n]) for one in self.asked.claims)

    def after(self, further: Iterable[Verdict]) -> Played:
        """What is served after all verdicts."""
        claims = (*self.asked.claims, *self.parts)
        asked = Asked(
            case=self.case,
            outcome=self.asked.outcome,
            claims=claims,
            requests=self.asked.requests,
            shown_by_call=self.asked.shown_by_call,
        )
        return verified(asked, (*self.first, *further))

    def is_true(self, part: Claim) -> bool:
        """Whether the honest item says the same."""
        return without_added_days(part.text) in honest_sentences(self.case, self.lie)


@dataclass(slots=True, kw_only=True)
class Outcome:
    """The outcome for the sentences of such items, and for all other statements."""

    true: int = 0
    true_in_doubt: int = 0
    true_lost: int = 0
    hung: int = 0
    hung_in_doubt: int = 0
    hung_lost: int = 0
    others_changed: int = 0


Verifier = Callable[[Hung, Random], Iterable[Verdict]]


def hung_of(corpus: Sequence[Case]) -> Iterator[Hung]:
    """One such item of each answer in which the added sentence is served."""
    dice = Random(SEED)
    strange = {case.id: tuple(_alone(case)) for case in corpus}
    for case in corpus:
        others = [
            text
            for other in corpus
            if other.talk.id != case.talk.id and other.talk.language == case.talk.language
            for text in strange[other.id]
        ]
        lie = _lie(case, dice.choice(others), dice) if others else None
        outcome = played(case, planted(case, lie)) if lie else None
        if lie and outcome and outcome.applied and (made := _made(case, lie, outcome)):
            yield made


def outcome_of(found: Iterable[Hung], verifier: Verifier) -> Outcome:
    """The effect of the verifier's second answers."""
    dice, counts = Random(SEED), Outcome()
    for one in found:
        after = one.after(verifier(one, dice))
        in_doubt = doubted(after)
        for part in one.parts:
            at = next((id_ for id_, text in after.items.items() if without_added_days(part.text) in text), None)
            if one.is_true(part):
                counts.true += 1
                counts.true_in_doubt += at in in_doubt
                counts.true_lost += at is None
            else:
                counts.hung += 1
                counts.hung_in_doubt += at in in_doubt
                counts.hung_lost += at is None
        others = {id_: text for id_, text in verified(one.asked, one.first).items.items() if id_ != one.item.target}
        counts.others_changed += sum(after.items.get(id_) != text for id_, text in others.items())
    return counts


def _verifier(word: Callable[[Hung, Claim, Random], VerdictWord], *, truly: bool = False) -> Verifier:
    """A verifier with the given verdicts, whose quotes are invented, or (``truly``) from a message."""

    def verdicts(one: Hung, dice: Random) -> Iterator[Verdict]:
        quote = true_quote(one.asked.shown, one.item.seqs) if truly else None
        seq, words = quote or (1, _INVENTED)
        for part in one.parts:
            yield Verdict(n=part.n, verdict=word(one, part, dice), seq=seq, quote=words)

    return verdicts


_WORDS: Final[tuple[VerdictWord, ...]] = ("supported", "contradicted", "not_stated")
VERIFIERS: Final[dict[str, Verifier]] = {
    "not asked again": lambda *_: (),
    "no error": _verifier(lambda one, part, _: "supported" if one.is_true(part) else "not_stated"),
    "verdicts inverted": _verifier(lambda one, part, _: "not_stated" if one.is_true(part) else "supported"),
    "at random, quotes invented": _verifier(lambda _, __, dice: dice.choice(_WORDS)),
    "at random, true quotes": _verifier(lambda _, __, dice: dice.choice(_WORDS), truly=True),
    "everything supported": _verifier(lambda *_: "supported"),
    "everything contradicted, true quotes": _verifier(lambda *_: "contradicted", truly=True),
}


def _alone(case: Case) -> Iterator[str]:
    """Items of one sentence without a value."""
    for item in parse_candidate(case.answer, case.request.schema).items:
        if len(sentences(item.text)) == 1 and not values(item.text):
            yield item.text


def _lie(case: Case, strange: str, dice: Random) -> Lie | None:
    answer = json.loads(case.answer)
    fields = [field.name for field in case.request.schema.fields if field.is_list and answer.get(field.name)]
    if not fields:
        return None
    field = dice.choice(fields)
    index = dice.randrange(len(answer[field]))
    statements = [answer[field][index]["text"], strange]
    text = " ".join(one if one[-1:] in ".!?。！？" else f"{one}." for one in dice.sample(statements, 2))
    return {"kind": "hung", "field": field, "index": index, "text": text, "truth": ""}


def _made(case: Case, lie: Lie, outcome: Played) -> Hung | None:
    asked, judged = asked_of(case, outcome), subject(case, outcome)
    false = [one for one in asked.claims if one.kind == "item" and one.n in false_claims(asked, [lie])]
    if len(false) != 1:
        return None
    first = (Verdict(n=false[0].n, verdict="not_stated"),)
    again, requests = judged.with_parts(Judgement(verdicts=first, shown=asked.shown), PROFILE)
    parts = again.claims[len(asked.claims) :]
    chunk = sum(message.token_count for message in case.request.messages)
    return Hung(
        case=case,
        lie=lie,
        asked=asked,
        item=false[0],
        parts=parts,
        share=verifying(asked.requests).total / chunk,
        share_again=verifying(requests).total / chunk,
    )


def main() -> int:
    """The command; its exit status."""
    found = list(hung_of(list(cases())))
    heads = ["true", "in doubt", "lost", "hung", "in doubt", "lost", "other statements changed"]
    rows = [[name, *map(str, astuple(outcome_of(found, verifier)))] for name, verifier in VERIFIERS.items()]
    print_table([f"second answers about {len(found)} items", *heads], rows)
    first, again = [one.share for one in found], [one.share_again for one in found]
    both = [one.share + one.share_again for one in found]
    summary = ", ".join(f"{mean(shares):.2f} (at most {max(shares):.2f})" for shares in (first, again, both))
    print(f"\nTokens by those of the chunk: the first question, the second, both: {summary}.")
    return 0


if __name__ == "__main__":
    take_no_options(__doc__)
    sys.exit(main())

"""Verdicts on a played answer: those that follow from its labels, and what is served after verdicts are applied."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.core.model.claims import Claim
from app.core.model.model_io import VerificationRequest
from app.core.text.relative import without_added_days
from app.core.validation.claims import part_claims
from app.core.validation.quotes import MAX_QUOTE_LENGTH, QuoteSearch, ShownTexts
from app.core.validation.restoring import Restoration, is_proof
from app.core.validation.verdict_application import apply_verdicts, doubtful_items
from app.core.validation.verdicts import Verdict
from app.core.validation.verifier_prompts import shown_texts
from bench.trust.lies import Lie, honest_sentences, is_claim_of
from bench.trust.playing import Played
from bench.trust.rounds import Case
from bench.trust.verifying import requests, subject

_SEQ: Final = re.compile(r"#(\d{1,6})")
_QUOTE_WORDS: Final = 12
_LATER: Final = 1_000
"""The number of the version that verdicts make: higher than any in the corpus."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An answer as it was served, and what a verifier would be asked about it."""

    case: Case
    outcome: Played
    claims: tuple[Claim, ...]
    requests: tuple[VerificationRequest, ...]

    shown_by_call: tuple[ShownTexts, ...]
    """The texts that each call shows, by message."""

    @property
    def shown(self) -> ShownTexts:
        """The texts that all calls show."""
        found: dict[int, tuple[str, ...]] = {}
        for shown in self.shown_by_call:
            for seq, texts in shown.items():
                found[seq] = tuple(dict.fromkeys((*found.get(seq, ()), *texts)))
        return found

    def shown_for(self, claim: Claim) -> ShownTexts:
        """The texts that the call about this claim shows."""
        calls = zip(self.requests, self.shown_by_call, strict=True)
        return next((shown for one, shown in calls if claim in one.claims), {})


def asked_of(case: Case, outcome: Played) -> Asked:
    """The verifier's calls about an answer that was accepted."""
    judged = subject(case, outcome)
    return asked_with(case, outcome, judged.claims, requests(judged))


def asked_with(case: Case, outcome: Played, claims: Sequence[Claim], calls: Iterable[VerificationRequest]) -> Asked:
    """The same as ``asked_of``, but with these claims and calls."""
    calls = tuple(calls)
    return Asked(
        case=case,
        outcome=outcome,
        claims=tuple(claims),
        requests=calls,
        shown_by_call=tuple(shown_texts(call) for call in calls),
    )


def verified(asked: Asked, verdicts: Iterable[Verdict]) -> Played:
    """What is served after the verdicts; a contradicted digest is replaced by one made by code."""
    applied = asked.outcome.applied
    if applied is None:
        return asked.outcome
    request = asked.case.request
    restoring = Restoration(
        schema=request.schema,
        version=_LATER,
        next_entry=applied.next_entry,
        boundary_seq=request.messages[-1].seq,
        messages=request.messages,
    )
    state = apply_verdicts(
        applied.entries, asked.claims, verdicts, shown_texts=asked.shown, before=request.previous, restoration=restoring
    )
    digests = tuple(one for one in applied.digests if str(one.number) not in state.contradicted_digests)
    return replace(asked.outcome, applied=replace(applied, entries=state.entries, digests=digests))


def doubted(outcome: Played) -> set[str]:
    """The entries that are served as in doubt; earlier texts of a narrative are in doubt without a verdict."""
    entries = outcome.applied.entries if outcome.applied else ()
    return {entry.id for entry in entries if entry.in_doubt and not entry.pruned and entry.role != "narrative"}


def is_claim_served(claim: Claim, outcome: Played) -> bool:
    """Whether the claim's statement is served; if it gives up an entry, whether that is not served any more."""
    if claim.gives_up:
        return claim.target not in outcome.items
    text = without_added_days(claim.text)  # without the days that code adds, as other texts are compared
    if claim.kind == "item":
        return outcome.items.get(claim.target) == text
    if claim.kind == "cut":
        return text in outcome.items.values() or text in outcome.texts.get(claim.field, "")
    if claim.kind == "digest":
        brief = outcome.briefs.get(int(claim.target))
        return brief is not None and text.endswith(brief)
    return text in outcome.texts.get(claim.field, "")


def false_claims(asked: Asked, lies: Iterable[Lie]) -> dict[int, Lie]:
    """The claims that lies make, by number, with the lie; also those that give up an entry for a part cut of a lie."""
    found = {claim.n: lie for lie in lies for claim in asked.claims if is_claim_of(claim, asked.case, lie)}
    cut = {claim.text: found[claim.n] for claim in asked.claims if claim.kind == "cut" and claim.n in found}
    waiting = (claim for claim in asked.claims if claim.waits_for_cut and claim.successor_text in cut)
    return found | {claim.n: cut[claim.successor_text] for claim in waiting}


def deciding(lie: Lie) -> tuple[int, ...]:
    """The messages that show what is true, as the label names them."""
    return tuple(int(seq) for seq in _SEQ.findall(str(lie["truth"])))


def labelled(asked: Asked, lies: Sequence[Lie] = ()) -> tuple[Verdict, ...]:
    """The verdicts of a verifier without errors: it contradicts, with a true quote, what the labels call false."""
    false = false_claims(asked, lies)
    return tuple(_verdict(claim, false, asked.shown_for(claim)) for claim in asked.claims)


def with_parts(asked: Asked, verdicts: Sequence[Verdict], lies: Iterable[Lie]) -> tuple[Asked, tuple[Verdict, ...]]:
    """The questions with those about sentences of contradicted items, and the verdicts of a verifier without errors."""
    parts = part_claims(doubtful_items(asked.claims, verdicts, asked.shown), last_number=len(asked.claims))
    honest = {text for lie in lies for text in honest_sentences(asked.case, lie)}
    supported = (Verdict(n=one.n, verdict="supported") for one in parts if without_added_days(one.text) in honest)
    return replace(asked, claims=(*asked.claims, *parts)), (*verdicts, *supported)


def honest_claims(asked: Asked, lies: Sequence[Lie] = ()) -> Iterator[Claim]:
    """The claims that no lie makes and that give up nothing: statements and what they were made of."""
    false = false_claims(asked, lies)
    return (claim for claim in asked.claims if claim.n not in false and not claim.gives_up)


def true_quote(shown: ShownTexts, seqs: Iterable[int]) -> tuple[int, str] | None:
    """One of these messages that was shown, and words of it that can be looked up."""
    quotes = QuoteSearch(shown)
    for seq in seqs:
        for text in shown.get(seq, ()):
            quote = " ".join(text.split()[:_QUOTE_WORDS])[:MAX_QUOTE_LENGTH]
            while quote and quotes.seq_of(quote, seq) is None:
                quote = quote[:-1]
            if quote:
                return seq, quote
    return None


def proof_of(claim: Claim, shown: ShownTexts) -> tuple[int, str]:
    """A shown message, if possible one that the claim names, and words of it that share a word with the claim."""
    for seq in (*claim.seqs, *shown):
        found = true_quote(shown, [seq])
        if found and is_proof(claim, found[1], seq):
            return found
    return 0, ""


def _verdict(claim: Claim, false: Mapping[int, Lie], shown: ShownTexts) -> Verdict:
    if claim.n not in false:
        seq, quote = proof_of(claim, shown) if claim.kind == "cut" else (None, "")
        return Verdict(n=claim.n, verdict="supported", seq=seq, quote=quote)
    found = true_quote(shown, deciding(false[claim.n]))
    seq, quote = found or (0, "")
    return Verdict(n=claim.n, verdict="contradicted", seq=seq, quote=quote)

"""Tests which honest statements verifiers can remove that lie, guess or talk nonsense.

Whether a quote is true is looked up here by simple means, not by the code that is measured.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from app.core.model.claims import Claim
from app.core.text.escaping import unescape
from app.core.validation.quotes import MAX_QUOTE_LENGTH
from app.core.validation.verdicts import VERDICT_WORDS, Verdict, VerdictWord, verdicts_of
from app.core.validation.verifier_prompts import render_verification
from bench.trust.plays import Play
from bench.trust.verified import (
    Asked,
    asked_of,
    doubted,
    false_claims,
    honest_claims,
    is_claim_served,
    true_quote,
    verified,
)

SEED: Final = 20_261_121
_INVENTED: Final = (
    "That was never agreed, and I said so twice.",
    "No, it is the other way round.",
    "Das stimmt so nicht, ganz im Gegenteil.",
    "Нет, на самом деле всё было наоборот.",
    "不是这样的,正好相反。",
)

Quoted = tuple[int, str]
"""The number of a message, and its alleged words."""
Verifier = Callable[[Asked, Random], Iterable[Verdict]]


@dataclass(slots=True, kw_only=True)
class Harm:
    """The effect of one verifier on honest answers."""

    claims: int = 0
    """How many honest statements were served before: items, sentences of narratives, digests."""
    without_quote: int = 0
    """How many were lost although no quote against them is in a message."""
    with_quote: int = 0
    """How many were lost by a quote that is in a message."""
    doubted: int = 0
    """How many were put in doubt."""
    others: int = 0
    """How many entries changed although no claim was about them."""


def harms_of(plays: Sequence[Play], verifiers: Mapping[str, Verifier] | None = None) -> dict[str, Harm]:
    """The effect of each verifier on the honest answers, by its name."""
    asked = [asked_of(play.case, play.outcome) for play in plays if play.outcome.applied is not None]
    return {name: _harm(asked, verifier) for name, verifier in (verifiers or verifiers_for(asked)).items()}


def verifiers_for(asked: Sequence[Asked]) -> dict[str, Verifier]:
    """All verifiers that are tried, by name."""
    foreign = [text for one in asked for message in one.case.request.messages[:3] if (text := _cut(message.content))]

    def invented(_asked: Asked, _claim: Claim, lot: Random) -> Quoted:
        return lot.choice(_asked.case.request.messages).seq, lot.choice(_INVENTED)

    def elsewhere(one: Asked, _claim: Claim, lot: Random) -> Quoted:
        return lot.choice(one.case.request.messages).seq, lot.choice(foreign)

    return {
        "everything contradicted, quotes invented": _contradicting(invented),
        "… quotes from other conversations": _contradicting(elsewhere),
        "… true quotes with one word changed": _contradicting(_altered),
        "… two true pieces put together": _contradicting(_spliced),
        "… the claim quoted as its own proof": _contradicting(_echoed),
        "verdicts inverted, quotes invented": _inverting(invented),
        "verdicts at random, quotes of all these kinds": _guessing([invented, elsewhere, _altered, _spliced, _echoed]),
        "nothing is stated anywhere": lambda one, _: (Verdict(n=claim.n, verdict="not_stated") for claim in one.claims),
        "no JSON, numbers of no claim, other words": _babbling,
        "everything contradicted, true quotes that say something else": _contradicting(_irrelevant_quote),
    }


def conspiracies_of(plays: Iterable[Play]) -> tuple[int, int]:
    """How many valid entries go that a lying summarizer gives up with a verifier's support, and how many there are."""
    gone = count = 0
    for play in plays:
        for one in play.lies:
            if one.is_left and (named := one.lie.get("replaces") or filter(None, [one.lie.get("entry")])):
                asked = asked_of(play.case, one.outcome)
                after = verified(asked, (Verdict(n=claim.n, verdict="supported") for claim in asked.claims))
                states = [id_ in after.items for id_ in named]
                gone, count = gone + states.count(False), count + len(states)
    return gone, count


def returns_of(plays: Iterable[Play]) -> tuple[dict[str, int], int]:
    """How many false statements that code cut come back if a lying verifier supports them, by its quotes; and all."""
    quotings: dict[str, Callable[[Asked, Claim, Random], Quoted]] = {
        "without quotes": lambda _asked, _claim, _lot: (0, ""),
        "quotes invented": lambda one, _claim, lot: (_seqs(one)[0], lot.choice(_INVENTED)),
        "the claim quoted as its own proof": _echoed,
        "true quotes that say something else": _irrelevant_quote,
        "true quotes of its sources": lambda one, claim, _: true_quote(one.shown, claim.seqs) or (0, ""),
    }
    back, lot, count = dict.fromkeys(quotings, 0), Random(SEED), 0
    for play in plays:
        for one in play.lies:
            if one.is_left or one.outcome.applied is None:
                continue
            asked = asked_of(play.case, one.outcome)
            false = [
                claim for claim in asked.claims if claim.n in false_claims(asked, [one.lie]) and claim.kind == "cut"
            ]
            count += len(false)
            for name, quoting in quotings.items():
                quoted = {claim.n: quoting(asked, claim, lot) for claim in false}
                verdicts = [
                    Verdict(n=n, verdict="supported", seq=seq, quote=quote) for n, (seq, quote) in quoted.items()
                ]
                after = verified(asked, verdicts)
                back[name] += sum(is_claim_served(claim, after) for claim in false)
    return back, count


def _harm(asked: Sequence[Asked], verifier: Verifier) -> Harm:
    lot, harm = Random(SEED), Harm()
    for one in asked:
        verdicts = tuple(verifier(one, lot))
        after = verified(one, verdicts)
        quotes = _quotes(one, verdicts)
        text = _messages_shown(one)
        newly = doubted(after) - doubted(one.outcome)
        for claim in honest_claims(one):
            if is_claim_served(claim, one.outcome):
                harm.claims += 1
                harm.doubted += claim.target in newly
                if not is_claim_served(claim, after):
                    forms = (
                        _plain(form) for quote in quotes[_place_and_text(claim)] for form in (quote, unescape(quote))
                    )
                    is_true = any(form and form in text for form in forms)
                    harm.with_quote += is_true
                    harm.without_quote += not is_true
        targets = {claim.target for claim in one.claims}
        harm.others += sum(
            after.items.get(id_) != text for id_, text in one.outcome.items.items() if id_ not in targets
        )
    return harm


def _place_and_text(claim: Claim) -> tuple[str, str]:
    """A claim's place and words: of two equal sentences, a quote against one counts for the other too."""
    return claim.target, claim.text


def _quotes(asked: Asked, verdicts: Iterable[Verdict]) -> Mapping[tuple[str, str], Sequence[str]]:
    """The quotes against each text."""
    claims = {claim.n: claim for claim in asked.claims}
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.n in claims and verdict.quote:
            found[_place_and_text(claims[verdict.n])].append(verdict.quote)
    return found


def _contradicting(quoting: Callable[[Asked, Claim, Random], Quoted]) -> Verifier:
    def verdicts(asked: Asked, lot: Random) -> Iterator[Verdict]:
        for claim in asked.claims:
            seq, quote = quoting(asked, claim, lot)
            yield Verdict(n=claim.n, verdict="contradicted", seq=seq, quote=quote)

    return verdicts


def _inverting(quoting: Callable[[Asked, Claim, Random], Quoted]) -> Verifier:
    """A verifier that contradicts true statements, and keeps entries that the answer rightly gives up."""

    def verdicts(asked: Asked, lot: Random) -> Iterator[Verdict]:
        for claim in asked.claims:
            seq, quote = quoting(asked, claim, lot)
            word: VerdictWord = "not_stated" if claim.gives_up else "contradicted"
            yield Verdict(n=claim.n, verdict=word, seq=seq, quote=quote if word == "contradicted" else "")

    return verdicts


def _guessing(kinds: Sequence[Callable[[Asked, Claim, Random], Quoted]]) -> Verifier:
    words: tuple[VerdictWord, ...] = ("supported", "contradicted", "not_stated")

    def verdicts(asked: Asked, lot: Random) -> Iterator[Verdict]:
        for claim in asked.claims:
            word = lot.choice(words)
            seq, quote = lot.choice(kinds)(asked, claim, lot) if word == "contradicted" else (0, "")
            yield Verdict(n=claim.n, verdict=word, seq=seq, quote=quote)

    return verdicts


def _babbling(asked: Asked, lot: Random) -> Iterable[Verdict]:
    """Verdicts from an answer as text of which hardly anything can be parsed."""
    numbers = [lot.randint(-5, 5 * len(asked.claims)) for _ in asked.claims]
    words = [*VERDICT_WORDS, "false", "refuted", ""]
    rows = [f'{{"n": {n}, "verdict": "{lot.choice(words)}", "seq": "x", "quote": 7}}' for n in numbers]
    return verdicts_of(lot.choice(["", "I cannot judge that. ", "```json\n["]) + ", ".join(rows), asked.claims)


def _altered(asked: Asked, _claim: Claim, lot: Random) -> Quoted:
    seq, quote = _true(asked, lot)
    words = quote.split()
    if words:
        words[lot.randrange(len(words))] = "zweiundvierzigtausend"
    return seq, " ".join(words)


def _spliced(asked: Asked, _claim: Claim, lot: Random) -> Quoted:
    (seq, one), (_, other) = _true(asked, lot), _true(asked, lot)
    return seq, _cut(f"{one} {other} {one}")


def _echoed(asked: Asked, claim: Claim, lot: Random) -> Quoted:
    return lot.choice(asked.case.request.messages).seq, _cut(claim.text)


def _irrelevant_quote(asked: Asked, claim: Claim, lot: Random) -> Quoted:
    """Words of a message that the claim does not rest on."""
    others = [seq for seq in _seqs(asked) if seq not in claim.seqs] or _seqs(asked)
    return true_quote(asked.shown_for(claim), lot.sample(others, len(others))) or (0, "")


def _true(asked: Asked, lot: Random) -> Quoted:
    seqs = _seqs(asked)
    return true_quote(asked.shown, lot.sample(seqs, len(seqs))) or (0, "")


def _seqs(asked: Asked) -> list[int]:
    return [message.seq for message in asked.case.request.messages]


def _messages_shown(asked: Asked) -> str:
    """The letters and digits of all messages that the calls show, looked up without any code of the verifier's."""
    users = [render_verification(request).user for request in asked.requests]
    ends = [(user.find("<passages>"), user.rfind("</messages>")) for user in users]
    starts = [first if first >= 0 else user.find("<messages>") for user, (first, _) in zip(users, ends, strict=True)]
    return _plain(
        " ".join(unescape(user[start:end]) for user, start, (_, end) in zip(users, starts, ends, strict=True))
    )


def _plain(text: str) -> str:
    return "".join(sign for sign in unicodedata.normalize("NFKC", text) if sign.isalnum())


def _cut(text: str) -> str:
    """The text up to the greatest length of a quote, cut at a space."""
    plain = " ".join(text.split())
    if len(plain) <= MAX_QUOTE_LENGTH:
        return plain
    return plain[:MAX_QUOTE_LENGTH].rpartition(" ")[0] or plain[:MAX_QUOTE_LENGTH]

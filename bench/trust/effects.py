"""Tests the code around the verifier, without a model: whether evidence is shown, and whether right verdicts work.

*Evidence*: the message that decides a claim is in the very call that asks about it. *Effect*: with verdicts without
errors, every false statement is removed, every valid entry comes back, and all honest text stays as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from app.core.model.claims import Claim
from app.core.model.redaction import redact_message
from app.core.model.word_overlap import message_text
from app.core.summarizer.candidate import parse_candidate
from app.core.summarizer.framing import frame_messages
from app.core.text.relative import without_added_days
from app.core.validation.evidence import evidence_messages
from bench.trust.lies import Lie, honest_sentences, is_served
from bench.trust.playing import Played
from bench.trust.plays import GIVES_UP_VALID, Play
from bench.trust.rounds import Case, talk_named
from bench.trust.verified import (
    Asked,
    asked_of,
    deciding,
    doubted,
    false_claims,
    is_claim_served,
    labelled,
    verified,
    with_parts,
)
from tests.unframing import unframe

Counts = Mapping[str, Sequence[bool]]
"""For each figure, whether it holds in each case."""
Asking = Callable[[Case, Played], Asked]

LIES_SHOWN: Final = "false claims left to the verifier: a deciding message is shown whole"
ALL_SHOWN: Final = "… every message that the label names is"
LARGE_SHOWN: Final = "… a deciding message is, of the whole conversation so far as one chunk"
ITEMS_SHOWN: Final = "honest items: all their sources are shown whole"
GIVEN_UP_SHOWN: Final = "entries given up: all their sources are shown whole"
LIES_GONE: Final = "false statements gone"
VALID_BACK: Final = "valid entries that lies gave up: served again without doubt"
REPLACED_BACK: Final = "entries that a false statement had replaced: served again"
TRUE_PARTS: Final = "true sentences of false items: they stay"
FALSE_PARTS: Final = "… their false sentences: gone"
HONEST_UNCHANGED: Final = "honest statements as they were, not in doubt"
GIVEN_UP_GONE: Final = "entries honestly given up: gone"
CUT_BACK: Final = "honest statements that code cut for a value: served again"


def evidence_of(plays: Iterable[Play], asking: Asking = asked_of) -> Counts:
    """For claims that a label decides, whether the deciding message was shown."""
    counts: defaultdict[str, list[bool]] = defaultdict(list)
    for play in plays:
        if play.outcome.applied is not None:
            asked = asking(play.case, play.outcome)
            for claim in asked.claims:
                if claim.kind == "item" or claim.gives_up:
                    name = GIVEN_UP_SHOWN if claim.gives_up else ITEMS_SHOWN
                    counts[name].append(all(_is_shown(asked, claim, seq) for seq in claim.seqs))
        for one in play.lies:
            if one.is_left:
                asked = asking(play.case, one.outcome)
                numbers = false_claims(asked, [one.lie])
                false = [claim for claim in asked.claims if claim.n in numbers]
                found = [any(_is_shown(asked, claim, seq) for claim in false) for seq in deciding(one.lie)]
                counts[LIES_SHOWN].append(any(found))
                counts[ALL_SHOWN].append(all(found))
                chunk = [redact_message(message) for message in play.case.talk.messages if message.seq <= _last(asked)]
                seqs = {message.seq for message in evidence_messages(asked.claims, chunk)}
                counts[LARGE_SHOWN].append(not seqs.isdisjoint(deciding(one.lie)))
    return counts


def effects_of(plays: Iterable[Play], asking: Asking = asked_of) -> Counts:
    """Whether everything that is served is as it should be, with verdicts from the labels.

    A lie whose deciding message was not shown cannot be proved by any verdict, and is only counted under evidence.
    """
    counts: defaultdict[str, list[bool]] = defaultdict(list)
    for play in plays:
        if play.outcome.applied is not None:
            asked = asking(play.case, play.outcome)
            _add(counts, _honest_effects(asked, verified(asked, labelled(asked)), ()))
        for one in play.lies:
            if not one.is_left:
                continue
            asked, lie = asking(play.case, one.outcome), one.lie
            verdicts, false = labelled(asked, [lie]), false_claims(asked, [lie])
            if false and not all(one.quote for one in verdicts if one.n in false):
                continue
            judged, answered = with_parts(asked, verdicts, [lie])
            after = verified(judged, answered)
            for claim in judged.claims[len(asked.claims) :]:
                is_true = without_added_days(claim.text) in honest_sentences(play.case, lie)
                name = TRUE_PARTS if is_true else FALSE_PARTS
                counts[name].append((without_added_days(claim.text) in after.items.get(claim.target, "")) is is_true)
            if lie["kind"] in GIVES_UP_VALID:
                named = lie.get("replaces", [lie.get("entry")])
                counts[VALID_BACK].append(all(id_ in after.items and id_ not in doubted(after) for id_ in named))
            counts[LIES_GONE].append(bool(false) and not is_false_served(play.case, lie, after))
            _add(counts, _honest_effects(asked, after, [lie]))
    return counts


def giving_up_of(plays: Iterable[Play]) -> Counts:
    """Whether what honest answers give up is removed, with a verifier without errors and with none."""
    counts: defaultdict[str, list[bool]] = defaultdict(list)
    for play in plays:
        if play.outcome.applied is None:
            continue
        asked = asked_of(play.case, play.outcome)
        for name, outcome in (("without", play.outcome), ("with", verified(asked, labelled(asked)))):
            for id_, successors in _replaced(play.case):
                counts[f"honest `replaces` that took effect, {name} a verifier"].append(id_ not in outcome.items)
                has_successor = id_ in outcome.items and any(one in outcome.items.values() for one in successors)
                counts[f"stale entries beside their successor, {name} a verifier"].append(has_successor)
                is_unmarked = has_successor and id_ not in doubted(outcome)
                counts[f"stale entries beside it and not marked, {name} a verifier"].append(is_unmarked)
            for id_ in _dropped(play.case):
                counts[f"honest `dropped` that took effect, {name} a verifier"].append(id_ not in outcome.items)
    return counts


def is_false_served(case: Case, lie: Lie, outcome: Played) -> bool:
    """Whether the lie still misleads; if it gives up a valid entry, also whether its invented item is served."""
    invented = lie["kind"] == "replaced_valid" and lie["text"] in outcome.items.values()
    return invented or is_served(case, lie, outcome)


def _honest_effects(asked: Asked, after: Played, lies: Sequence[Lie]) -> Iterator[tuple[str, bool]]:
    """The effects on every claim that no lie makes."""
    false = false_claims(asked, lies)
    refuted = {claim.target for claim in asked.claims if claim.n in false and claim.kind == "item"}
    in_doubt = doubted(after)
    shortened = {claim.text_left for claim in asked.claims if claim.kind == "cut" and is_claim_served(claim, after)}
    for claim in asked.claims:
        if claim.n in false or claim.text in shortened:
            continue
        if claim.kind == "cut":
            yield CUT_BACK, is_claim_served(claim, after)
        elif claim.gives_up and claim.successor_id in refuted:
            yield REPLACED_BACK, claim.target in after.items or _is_given_up_by_another(claim, asked, refuted)
        elif claim.gives_up:
            others = {
                one.successor_id for one in asked.claims if one.target == claim.target and one.successor_id in refuted
            }
            if not others:
                yield GIVEN_UP_GONE, is_claim_served(claim, after)
        else:
            yield HONEST_UNCHANGED, is_claim_served(claim, after) and claim.target not in in_doubt
    targets = {claim.target for claim in asked.claims}
    for entry in asked.case.request.previous:
        if entry.role != "narrative" and entry.id not in targets and entry.id in asked.outcome.items:
            yield HONEST_UNCHANGED, after.items.get(entry.id) == asked.outcome.items[entry.id]


def _is_given_up_by_another(claim: Claim, asked: Asked, refuted: set[str]) -> bool:
    return any(one.target == claim.target and one.successor_id not in refuted for one in asked.claims if one.gives_up)


def _is_shown(asked: Asked, claim: Claim, seq: int) -> bool:
    """Whether the whole message is in the call that asks about the claim, among the new or the earlier messages."""
    shown = asked.shown_for(claim).get(seq)
    if shown is None:
        return False
    whole, joined = _texts_of(asked.case.talk.id, seq)
    return whole.issubset(shown) or joined in shown


def _last(asked: Asked) -> int:
    return asked.case.request.messages[-1].seq


@cache
def _texts_of(talk: str, seq: int) -> tuple[frozenset[str], str]:
    """A message's texts as they are framed, and the whole message as one text."""
    message = redact_message(talk_named(talk).messages[seq - 1])
    (framed,) = unframe(frame_messages([message]))
    texts = [framed.content, *(text for _, text in framed.parts)]
    return frozenset(filter(None, texts)), message_text(message)


def _replaced(case: Case) -> Iterator[tuple[str, list[str]]]:
    """Each entry that the honest answer replaces, with the replacing texts."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    known = {entry.id for entry in case.request.previous if entry.role != "narrative"}
    for item in parse_candidate(case.answer, case.request.schema).items:
        for id_ in known.intersection(item.replaces):
            found[id_].append(item.text)
    yield from found.items()


def _dropped(case: Case) -> list[str]:
    known = {entry.id for entry in case.request.previous if entry.role != "narrative"}
    candidate = parse_candidate(case.answer, case.request.schema)
    return [drop.entry for drop in candidate.dropped if drop.entry in known]


def _add(counts: defaultdict[str, list[bool]], found: Iterable[tuple[str, bool]]) -> None:
    for name, holds in found:
        counts[name].append(holds)

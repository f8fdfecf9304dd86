"""What is contradicted is served by no path, and what it replaced comes back: on states that merges made.

Each example is a talk of a few compactions, with false statements in any of its answers: said twice, in items and in
narratives, in the place of true entries or of other false ones, in the words of an earlier entry. A verifier that makes
no error judges several versions together, while a later one may be current already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from app.core.model.candidate import Candidate, CandidateDrop, CandidateItem
from app.core.model.claims import Claim
from app.core.model.repairs import Repair
from app.core.model.schemas import SESSION
from app.core.model.state import StateEntry
from app.core.state.merge import merge
from app.core.text.sentences import sentences
from app.core.validation.claims import claims_of
from app.core.validation.lost_entries import lost_entries, without_lost_entries
from app.core.validation.verdict_application import apply_verdicts
from app.core.validation.verdicts import Verdict, VerdictWord
from tests.profiles import examples
from tests.unit.talk import entry, talk

SPAN = talk(*(f"We go to Porto, and message {number} says so." for number in range(1, 13)))
SHOWN = {message.seq: (message.content,) for message in SPAN}
TRUE = ("Likes tea with milk.", "Has a cat named Tom.", "Waits for Bob in Riga.", "They met in old Porto.")
FALSE = ("Likes tea without milk.", "Has a dog named Tom.", "Waits for Anna in Riga.", "They met in new Porto.")
TEXTS = (*TRUE, *FALSE)
FIELDS = ("logos", "pathos")
WORDS: tuple[VerdictWord | None, ...] = ("supported", "not_stated", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What a compaction left: entries with those on record, and what was set aside."""

    entries: tuple[StateEntry, ...]
    repairs: tuple[Repair, ...] = ()
    next_entry: int = 20

    @property
    def served(self) -> list[StateEntry]:
        return [one for one in self.entries if not one.pruned]


def compacted(version: Version, answer: Candidate, number: int) -> Version:
    merged = merge(SESSION, version.served, answer, SPAN, number, version.next_entry, by_model=True)
    return Version(entries=(*merged.entries, *merged.removed), repairs=merged.repairs, next_entry=merged.next_entry)


@st.composite
def answers(draw: st.DrawFn, version: Version, number: int) -> Candidate:
    """An answer to a state, each item of messages that no entry names yet."""
    names = [one.id for one in version.served if one.role != "narrative"]
    some_names = st.lists(st.sampled_from(names), max_size=2, unique=True) if names else st.just([])
    one_item = st.builds(
        CandidateItem,
        field=st.sampled_from(FIELDS),
        text=st.sampled_from(TEXTS),
        from_seqs=st.just((2 * number,)),
        replaces=some_names.map(tuple),
    )
    drops = draw(some_names)
    return Candidate(
        items=tuple(draw(st.lists(one_item, max_size=3))),
        narrative={"conversation_summary": " ".join(draw(st.lists(st.sampled_from(TEXTS), max_size=3)))}
        if draw(st.booleans())
        else {},
        dropped=tuple(CandidateDrop(entry=name, reason="no_longer_relevant", by_seq=2) for name in drops),
    )


@st.composite
def histories(draw: st.DrawFn) -> list[Version]:
    """A state without anything false, and the versions that up to four compactions make of it."""
    texts = draw(st.lists(st.sampled_from(TRUE), max_size=3, unique=True))
    versions = [Version(entries=tuple(entry(f"F{number}", text) for number, text in enumerate(texts, start=1)))]
    for number in range(2, 2 + draw(st.integers(1, 4))):
        versions.append(compacted(versions[-1], draw(answers(versions[-1], number)), number))
    return versions


def verdict(claim: Claim, on_given_up: VerdictWord | None) -> Verdict | None:
    """The verdict of a verifier without errors about statements; about given-up ones it errs, unless they are false."""
    is_false = claim.text in FALSE
    if claim.gives_up:
        word: VerdictWord | None = "supported" if is_false else on_given_up
    else:
        word = "contradicted" if is_false else "supported"
    return Verdict(n=claim.n, verdict=word, seq=1, quote="We go to Porto") if word else None


def judged(
    base: Version, versions: Sequence[Version], current: Version, words: Sequence[VerdictWord | None]
) -> tuple[Version, set[str]]:
    """The current version after a verdict on these together, and the entries on which there is a verdict."""
    last = versions[-1]
    earlier = [version.entries for version in reversed(versions)]
    claims = claims_of(
        base.entries,
        (*last.entries, *lost_entries(last.entries, earlier)),
        repairs=[repair for version in versions for repair in version.repairs],
    )
    verdicts = filter(None, (verdict(claim, words[claim.n % len(words)]) for claim in claims))
    gone = lost_entries(current.entries, earlier, last.entries)
    found = apply_verdicts((*current.entries, *gone), claims, list(verdicts), shown_texts=SHOWN, before=base.entries)
    state = without_lost_entries(found, gone)
    asked = {claim.target for claim in claims if not claim.gives_up}
    return replace(current, entries=state.entries, repairs=(*current.repairs, *state.repairs)), asked


def false_ones(version: Version) -> list[StateEntry]:
    """The entries that serve anything false."""
    return [one for one in version.served if not set(FALSE).isdisjoint(sentences(one.text))]


def last_successors(versions: Sequence[Version]) -> dict[str, tuple[str, ...]]:
    """For each entry, what replaced it by the last version."""
    last = versions[-1].entries
    return {one.id: one.replaced_by for one in (*last, *lost_entries(last, [one.entries for one in versions[::-1]]))}


@examples(3)
@given(histories(), st.lists(st.sampled_from(WORDS), min_size=7, max_size=7))
def test_nothing_false_is_served_after_a_verdict_and_what_it_replaced_is(
    versions: list[Version], words: list[VerdictWord | None]
) -> None:
    """What was written and replaced between two verdicts may come back, since nobody was asked about it."""
    base, *made = versions
    after, asked = judged(base, made, made[-1], words)
    assert all(one.id not in asked for one in false_ones(after))
    texts = {one.id: one.text for one in made[-1].served}
    successors = last_successors(made)
    for one in base.served:
        names = successors.get(one.id, ())
        if names and all(texts.get(name) in FALSE for name in names):
            assert one.text in {other.text for other in after.served}


@examples(3)
@given(histories(), st.lists(st.sampled_from(WORDS), min_size=7, max_size=7), st.integers(1, 3))
def test_what_was_contradicted_does_not_come_back_with_the_next_verdict(
    versions: list[Version], words: list[VerdictWord | None], first: int
) -> None:
    """The first verdict is about an earlier version than the one to which it is applied."""
    base, *made = versions
    early = made[:first]
    current, asked = judged(base, early, made[-1], words)
    after, asked_then = judged(early[-1], [*made[len(early) :], current], current, words)
    assert all(one.id not in asked | asked_then for one in false_ones(after))

"""Brings back sentences whose exact values a summary lost (``app.core.validation.lost_values`` finds them).

They become entries of their own. If the state is one text, which a model writes anew each time, they are put into the
text. Statements of the text before with such values, which the new one does not repeat in any form, come back too:
after the text, in doubt, so that nobody takes what held then for what holds now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from app.core.model.conversation import Message
from app.core.model.provenance import origin_of
from app.core.model.repairs import Repair
from app.core.model.state import ID_LETTERS, StateEntry, StateSchema
from app.core.reading.cues import Cue, cues_of
from app.core.reading.labels import role_of
from app.core.reading.scoring import LAST_OPENING_SEQ
from app.core.state.outdated import OutdatedAnchors
from app.core.summarizer.offline.items import label_and_clauses
from app.core.summarizer.offline.narrative_states import (
    is_narrative_only,
    is_topic_statement,
    statements,
    without_frame,
)
from app.core.text.budget import first_fitting
from app.core.text.relative import without_added_days
from app.core.text.sentences import closed, sentences
from app.core.text.token_counts import Estimator, estimate_text
from app.core.text.values import NAMING_KINDS
from app.core.text.words import stems
from app.core.validation.lost_values import ServedValues, critical_values
from app.core.validation.verdict_application import VerifiedState

_REPHRASED_SHARE: Final = 0.5  # the share of a statement's words by which a new text counts as a new version of it
_REPEATED_SHARE: Final = 0.85  # the share of its words and values by which a new text counts as a repetition
_CHANGES: Final[frozenset[Cue]] = frozenset({"correction", "update"})
_EARLIER_STATE: Final = 0  # the number, in place of a message's, of a quote from the state so far
_MAX_CHECKED_VALUES: Final = 2_000  # the most values of one chunk that are checked


def with_quotes(
    schema: StateSchema,
    entries: Sequence[StateEntry],
    quotes: Sequence[tuple[int, str]],
    span: Sequence[Message],
    *,
    version: int,
    next_entry: int,
    at_end: bool = False,
    before: Sequence[StateEntry] = (),
) -> tuple[StateEntry, ...]:
    """The entries with the quotes added: as the newest facts of the general field, or inside the only text.

    With ``at_end`` they are put after that text and not between its sentences. Quotes of the state so far then become
    an entry of their own, in doubt, which is served last. It records what such an entry of the state ``before`` said.
    """
    if is_narrative_only(schema):
        earlier = [text for seq, text in quotes if seq == _EARLIER_STATE] if at_end else []
        now = [quote for quote in quotes if not at_end or quote[0] != _EARLIER_STATE]
        narratives = tuple(_narrative_with_quotes(entry, now, version, at_end=at_end) for entry in entries)
        return (
            (*narratives, _entry_of_lost_texts(schema, earlier, version, next_entry, before)) if earlier else narratives
        )
    target = schema.field_for("fact")
    messages = {message.seq: message for message in span}
    new_entries = [
        StateEntry(
            id=f"{ID_LETTERS[target.role]}{number}",
            field=target.name,
            role=target.role,
            text=text,
            from_seqs=(seq,),
            since_version=version,
            origins=(origin_of(messages[seq], text),),
        )
        for number, (seq, text) in enumerate(quotes, start=next_entry)
    ]
    last = max((place for place, entry in enumerate(entries) if entry.field == target.name), default=-1)
    return (*entries[: last + 1], *new_entries, *entries[last + 1 :]) if last >= 0 else (*new_entries, *entries)


def forgotten_statements(
    schema: StateSchema,
    before: Sequence[StateEntry],
    entries: Sequence[StateEntry],
    *,
    max_tokens: int,
    estimator: Estimator = "script",
) -> list[tuple[int, str]]:
    """Statements of the last narrative with exact values that the new one lacks, if the narrative is the whole state.

    If there is no room for all, the newest come back, since older ones have more often changed. A statement that came
    back twice, and was shown to the model each time, does not come back again.

    ``entries`` is the merged state, ``max_tokens`` the tokens for all of it.

    Returns:
        Texts for ``with_quotes``, in order; empty if facts have a list, since entries are never forgotten.
    """
    earlier = [
        text
        for entry in sorted(before, key=lambda one: not one.in_doubt)  # the part in doubt is the older one
        if entry.role == "narrative"
        for text in _sentences_with_speaker(entry.text)
        if not (entry.in_doubt and any(text in older for older in entry.superseded))
    ]
    if not earlier or not is_narrative_only(schema):
        return []
    present = ServedValues()
    for entry in entries:
        present.add(entry.text)
    bags = [frozenset(stems(text)) for entry in entries for text in statements(entry.text)]
    lost = _lost_texts(earlier[: -_MAX_CHECKED_VALUES - 1 : -1], present, bags)
    newest = first_fitting(lost, max_tokens, lambda text: estimate_text(text, estimator))
    return [(_EARLIER_STATE, text) for text in reversed(newest)]


def _lost_texts(texts: Sequence[str], present: ServedValues, bags: Sequence[frozenset[str]]) -> Iterator[str]:
    now = [frozenset[str]().union(*bags)]
    for text in texts:
        kinds = {value.kind for value in critical_values(text) if not present.holds(value)}
        # a changed statement seldom has the old words; if no value is a name, all words of the new text count together
        if kinds and not _is_rephrased(text, now if kinds.isdisjoint(NAMING_KINDS) else bags):
            yield text


def with_restored_sentences(
    schema: StateSchema,
    verified: VerifiedState,
    *,
    version: int,
    next_entry: int,
    cap: int,
    estimator: Estimator = "script",
) -> VerifiedState:
    """A state whose text lost sentences to a verifier, with the earlier sentences that these may have replaced.

    Sentences of the earlier text are put after it again, in doubt, if their exact values are nowhere else, as far as
    there is room below ``cap``, in tokens.
    """
    judged = [one for one in verified.repairs if one.reason == "contradicted"]
    contradicted, false = {one.entry_id for one in judged}, {without_added_days(one.before) for one in judged}
    before = [
        replace(entry, text=text, in_doubt=False, superseded=())
        for entry in verified.entries
        if entry.role == "narrative" and not entry.in_doubt and entry.id in contradicted
        for text in entry.superseded
    ]
    present = [entry for entry in verified.entries if not entry.pruned]
    free_tokens = cap - sum(estimate_text(entry.text, estimator) for entry in present)
    lost = forgotten_statements(schema, before, present, max_tokens=free_tokens, estimator=estimator)
    # The earlier text may have had false sentences too.
    restored = [text for _, text in lost if without_added_days(text) not in false]
    if not restored:
        return verified
    added = _entry_of_lost_texts(schema, restored, version, next_entry, ())
    place = next((place for place, one in enumerate(present) if one.role == "narrative" and one.in_doubt), len(present))
    if place < len(present):
        added = replace(present[place], text=f"{present[place].text} {added.text}")
    entries = (*present[:place], added, *present[place + 1 :], *(entry for entry in verified.entries if entry.pruned))
    repairs = [
        Repair(field=added.field, reason="value_restored", before="", after=as_sentence(text), entry_id=added.id)
        for text in restored
    ]
    return replace(verified, entries=entries, repairs=(*verified.repairs, *repairs))


def missing_statements(
    schema: StateSchema, before: Sequence[StateEntry], entries: Sequence[StateEntry], *, outdated: OutdatedAnchors
) -> list[tuple[int, str]]:
    """The statements of a text, just carried over from lists, that the new text made from it lacks, in order.

    Statements that a later message changed are left out, and so is the one about the topic, which is written anew each
    time.

    ``entries`` is the merged state; ``outdated`` are the superseded anchors.
    """
    if not is_narrative_only(schema):
        return []
    now = " ".join(entry.text for entry in entries)
    carried = [text for entry in before if entry.role == "narrative" for text in statements(entry.text)]
    known = set(carried)
    fresh = [text for entry in entries for text in statements(entry.text) if text not in known]
    bags = [(frozenset(stems(text)), not _CHANGES.isdisjoint(cues_of(text))) for text in fresh]
    return [
        (_EARLIER_STATE, text)
        for text in carried
        if without_frame(text) not in now
        and not is_topic_statement(text)
        and not outdated.is_repeated_by(text)
        and not _is_repeated(text, bags)
    ]


def _is_repeated(text: str, fresh: Sequence[tuple[frozenset[str], bool]]) -> bool:
    text_words = set(stems(text))
    words = {word for word in text_words if not any(character.isdigit() for character in word)}
    return any(
        len(text_words & bag) >= _REPEATED_SHARE * len(text_words)
        or (changes and len(words & bag) >= _REPHRASED_SHARE * len(words))
        for bag, changes in fresh
    )


def _is_rephrased(text: str, bags: Sequence[frozenset[str]]) -> bool:
    text_words = {word for word in stems(text) if not any(character.isdigit() for character in word)}
    return any(len(text_words & bag) >= _REPHRASED_SHARE * len(text_words) for bag in bags)


def _sentences_with_speaker(text: str) -> list[str]:
    # Consecutive sentences of one speaker stay together, since only the first says who speaks.
    found = statements(text)
    parts = ([one] if role_of(label_and_clauses(one)[0]) else sentences(one) for one in found)
    return list(dict.fromkeys(chain.from_iterable(parts)))


def _narrative_with_quotes(
    entry: StateEntry, quotes: Sequence[tuple[int, str]], version: int, *, at_end: bool
) -> StateEntry:
    """A narrative with the sentences that it lost; those of the opening or the earlier narrative come first."""
    if entry.role != "narrative" or entry.in_doubt or not quotes:
        return entry
    quoted = [(seq, as_sentence(text)) for seq, text in quotes]
    if at_end:
        parts = [entry.text, *(text for _, text in quoted)]
    else:
        older = [text for seq, text in quoted if seq <= LAST_OPENING_SEQ]
        first, *rest = statements(entry.text) or [""]
        parts = [first, *older, *rest, *(text for seq, text in quoted if seq > LAST_OPENING_SEQ)]
    text = " ".join(filter(None, parts))
    if entry.since_version == version:
        return replace(entry, text=text)
    return replace(entry, text=text, since_version=version, superseded=(*entry.superseded, entry.text))


def _entry_of_lost_texts(
    schema: StateSchema, texts: Sequence[str], version: int, number: int, before: Sequence[StateEntry]
) -> StateEntry:
    field = schema.field_for("narrative")
    return StateEntry(
        id=f"{ID_LETTERS[field.role]}{number}",
        field=field.name,
        role=field.role,
        text=" ".join(map(as_sentence, texts)),
        since_version=version,
        superseded=tuple(one.text for one in before if one.role == field.role and one.in_doubt),
        in_doubt=True,
    )


def as_sentence(text: str) -> str:
    """A quote as a sentence with a capital and a full stop, so that it does not read as a part of the one before."""
    word = text.partition(" ")[0]
    return closed(f"{text[:1].upper()}{text[1:]}" if word.isalpha() else text)

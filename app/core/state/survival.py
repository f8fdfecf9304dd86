"""Survival: exact values that a user gave, and that a summary lost, come back as quotes written by code.

Critical are the values in anchors of the span, and amounts, dates, addresses, paths, versions and codes from the user's
messages. One that stands in the merged state in any form, in an anchor that is served, or in a message that is held,
has survived. The others are quoted in their sentence; where that takes more than the room, only the values are listed,
behind the words that introduce them, as many as the room holds.

Where the state is one text, which a model tells anew each time, statements with such values that the new text neither
holds nor tells otherwise come back too, and quotes stand in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.core.model.anchors import FoundAnchor
from app.core.model.conversation import Message
from app.core.model.provenance import origin_of
from app.core.model.redaction import redact
from app.core.model.state import ID_LETTERS, StateEntry, StateSchema
from app.core.reading.cues import Cue, cues_of
from app.core.reading.scoring import OPENING
from app.core.state.outdated import Outdated
from app.core.summarizer.offline.retold import closed, is_about, is_told, statements, unframed
from app.core.text.language import detect
from app.core.text.patterns import any_literal
from app.core.text.token_counts import Estimator, estimate_text
from app.core.text.words import sentences, stems
from app.core.validation.evidence import Evidence
from app.core.validation.orders import orders_in
from app.core.validation.quoting import quoted
from app.core.validation.told_claims import Claim, find_claims, holders

_SENTENCE: Final = 200  # characters of a quoted sentence
_LEAD: Final = 5  # words that introduce a list of values
_LINE: Final = 400  # characters of one list of values: pruning gives up a line at a time
_FRAME: Final = 3  # tokens around an entry in the state's JSON
_OWN_WORDS: Final = 4_000  # characters: of a longer message most was pasted
_Weight = Callable[[str], int]
_OTHERWISE: Final = 0.5  # of a statement's words: who says so many of them again has told it anew
_AGAIN: Final = 0.85  # of its words and values together: the same told again
_CHANGES: Final[frozenset[Cue]] = frozenset({"correction", "update"})
_SO_FAR: Final = 0  # in place of a message: what stood in the state so far
_LEAST_URGENT: Final = 3
_MOST_LOST: Final = 2_000  # values that are looked after in one chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lost:
    """Values of one sentence that would not survive."""

    seq: int
    sentence: str
    values: tuple[str, ...]
    urgency: int
    """0: in the message that opened the talk; 1: in an anchor; 2: in the user's own words; 3: in a long message."""


def lost_quotes(
    entries: Sequence[StateEntry],
    span: Sequence[Message],
    *,
    shown: Sequence[FoundAnchor],
    hidden: Sequence[FoundAnchor],
    room: int,
    estimator: Estimator = "script",
    outdated: Outdated | None = None,
) -> list[tuple[int, str]]:
    """(message, text) of the quotes that bring lost values back, within ``room`` tokens.

    Args:
        entries: The merged state.
        span: The folded messages; held ones are served anyway.
        shown: Anchors that are served.
        hidden: Anchors of the span for which there is no room.
        room: Tokens for all quotes together.
        estimator: How they are weighed.
        outdated: What later messages changed: it is not lost.
    """
    present = Evidence((), [replace(entry, superseded=()) for entry in entries], shown)
    held = [message for message in span if message.is_protected or message.role == "system"]
    served = Evidence(held) if held else None
    lost = list(_lost(span, present, served, {anchor.seq: anchor.content for anchor in hidden}, outdated))
    if not lost:
        return []

    def weight(text: str) -> int:
        return estimate_text(text, estimator) + _FRAME

    lost.sort(key=lambda one: one.urgency)
    whole = [(one.seq, _quote(one, span)) for one in lost]
    if sum(weight(text) for _, text in whole) <= room:
        return sorted(whole, key=lambda quote: quote[0])
    chosen: list[tuple[int, str]] = []
    for urgency in range(_LEAST_URGENT + 1):
        for seq, text in _lists([one for one in lost if one.urgency == urgency], room, weight):
            chosen.append((seq, text))
            room -= weight(text)
    return sorted(chosen, key=lambda quote: quote[0])


def with_quotes(
    schema: StateSchema,
    entries: Sequence[StateEntry],
    quotes: Sequence[tuple[int, str]],
    span: Sequence[Message],
    *,
    version: int,
    next_entry: int,
    at_end: bool = False,
) -> tuple[StateEntry, ...]:
    """The entries with the quotes among the facts that no field asks for by kind, as the newest; else in the text.

    ``at_end``: behind a text that is the whole state, and not between its sentences.
    """
    if is_told(schema):
        return tuple(_with_told(entry, quotes, version, at_end=at_end) for entry in entries)
    target = schema.home("fact")
    messages = {message.seq: message for message in span}
    made = [
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
    return (*entries[: last + 1], *made, *entries[last + 1 :]) if last >= 0 else (*made, *entries)


def forgotten(
    schema: StateSchema,
    before: Sequence[StateEntry],
    entries: Sequence[StateEntry],
    *,
    room: int,
    estimator: Estimator = "script",
) -> list[tuple[int, str]]:
    """What a narrative that is the whole state said with exact values, and the new one does not say in any way.

    Args:
        schema: Of the state.
        before: The state so far.
        entries: The merged one.
        room: Tokens for all of it.
        estimator: How they are weighed.

    Returns:
        Texts for ``with_quotes``, in order; nothing where facts have a list: entries are never forgotten.
    """
    told = [text for entry in before if entry.role == "narrative" for text in statements(entry.text)]
    if not told or not is_told(schema):
        return []
    present = Evidence((), [replace(entry, superseded=()) for entry in entries])
    bags = [frozenset(stems(text)) for entry in entries for text in statements(entry.text)]
    found: list[tuple[int, str]] = []
    for text in told[:_MOST_LOST]:
        lost = [claim for claim in find_claims(text) if claim.is_critical and not _survives(claim, present, None)]
        if not lost or _is_told_otherwise(text, bags):
            continue
        room -= estimate_text(text, estimator)
        if room < 0:
            break
        found.append((_SO_FAR, text))
    return found


def untold(
    schema: StateSchema, before: Sequence[StateEntry], entries: Sequence[StateEntry], *, outdated: Outdated
) -> list[tuple[int, str]]:
    """What a text that was just carried over from lists says, and the one told of it does not: each of it, in order.

    What a later message changed is left out, and what it is about, which is told anew each time.

    Args:
        schema: Of the state.
        before: The state so far.
        entries: The merged one.
        outdated: What later messages changed.
    """
    if not is_told(schema):
        return []
    now = " ".join(entry.text for entry in entries)
    carried = [text for entry in before if entry.role == "narrative" for text in statements(entry.text)]
    known = set(carried)
    fresh = [text for entry in entries for text in statements(entry.text) if text not in known]
    bags = [(frozenset(stems(text)), not _CHANGES.isdisjoint(cues_of(text))) for text in fresh]
    return [
        (_SO_FAR, text)
        for text in carried
        if unframed(text) not in now and not is_about(text) and not outdated.says(text) and not _is_retold(text, bags)
    ]


def _is_retold(text: str, fresh: Sequence[tuple[frozenset[str], bool]]) -> bool:
    """Whether a new statement says nearly all of these words and values, or changes what they say."""
    said = set(stems(text))
    words = {word for word in said if not any(character.isdigit() for character in word)}
    return any(
        len(said & bag) >= _AGAIN * len(said) or (changes and len(words & bag) >= _OTHERWISE * len(words))
        for bag, changes in fresh
    )


def _is_told_otherwise(text: str, bags: Sequence[frozenset[str]]) -> bool:
    """Whether a statement says most of these words: what it gives instead is what holds now."""
    said = {word for word in stems(text) if not any(character.isdigit() for character in word)}
    return any(len(said & bag) >= _OTHERWISE * len(said) for bag in bags)


def _with_told(entry: StateEntry, quotes: Sequence[tuple[int, str]], version: int, *, at_end: bool) -> StateEntry:
    """A narrative with what it lost: what opened the talk, or stood in the one before, near its beginning."""
    if entry.role != "narrative" or not quotes:
        return entry
    older = [_sentence(text) for seq, text in quotes if seq <= OPENING]
    newer = [_sentence(text) for seq, text in quotes if seq > OPENING]
    first, *rest = statements(entry.text) or [""]
    text = " ".join(part for part in (first, *older, *rest, *newer) if part)
    if at_end:
        text = " ".join([entry.text, *older, *newer])
    if entry.since_version == version:
        return replace(entry, text=text)
    return replace(entry, text=text, since_version=version, superseded=(*entry.superseded, entry.text))


def _sentence(text: str) -> str:
    """A quote as a sentence of its own: after another, one that begins small would read as its end."""
    word = text.partition(" ")[0]
    return closed(f"{text[:1].upper()}{text[1:]}" if word.isalpha() else text)


def _lost(
    span: Sequence[Message],
    present: Evidence,
    served: Evidence | None,
    anchored: dict[int, str],
    outdated: Outdated | None,
) -> Iterator[_Lost]:
    count = 0
    seen: set[str] = set()
    for message in span:
        if message.is_protected or message.is_command or message.status == "erased":
            continue
        if message.role != "user" and message.seq not in anchored:
            continue
        text = message.content if message.role == "user" else anchored[message.seq]
        for sentence in sentences(text):
            stale = outdated.values(sentence, message.seq) if outdated else frozenset[str]()
            if stale is None:
                continue
            changed = _any_of(stale) if stale else None
            values = [
                claim.text
                for claim in find_claims(sentence)
                if claim.is_critical
                and claim.text not in seen
                and not _survives(claim, present, served)
                and not (changed and changed.search(claim.text))
            ]
            seen.update(values)
            count += len(values)
            if count > _MOST_LOST:
                return
            if values:
                is_anchored = sentence in anchored.get(message.seq, "")
                is_own = len(message.content) <= _OWN_WORDS
                is_first = message.seq <= OPENING and is_own
                urgency = 0 if is_first else 1 if is_anchored else 2 if is_own else _LEAST_URGENT
                left = changed.sub("…", sentence) if changed else sentence
                yield _Lost(seq=message.seq, sentence=left, values=tuple(dict.fromkeys(values)), urgency=urgency)


def _any_of(values: Collection[str]) -> re.Pattern[str]:
    """Any of these values, not as a part of a longer one."""
    return any_literal(values, before=r"(?<![\w.,])", after=r"(?!\w)", flags=re.IGNORECASE)


def _survives(claim: Claim, present: Evidence, served: Evidence | None) -> bool:
    """Whether a value stands in what is served: exact texts to the letter, amounts and dates in any form."""
    for evidence in (present, served):
        if evidence is not None and (holders(claim, evidence) if claim.value else evidence.with_text(claim.text)):
            return True
    return False


def _quote(lost: _Lost, span: Sequence[Message]) -> str:
    """The sentence, or of a long one the part around the values."""
    sentence = " ".join(lost.sentence.split())
    if len(sentence) > _SENTENCE:
        first = sentence.find(lost.values[0])
        last = max(sentence.find(value) + len(value) for value in lost.values)
        if last - first > _SENTENCE:
            return redact(_listed(lost))
        begin = sentence.rfind(" ", 0, max(first - (_SENTENCE - (last - first)) // 2, 1)) + 1
        end = sentence.find(" ", max(last, min(begin + _SENTENCE, len(sentence) - 1)))
        sentence = sentence[begin : end if end > 0 else len(sentence)]
    text = redact(sentence)
    if orders_in(text):
        message = next(one for one in span if one.seq == lost.seq)
        return quoted(text, origin_of(message, text), detect(message.content))
    return text


def _listed(lost: _Lost, values: Sequence[str] | None = None) -> str:
    given = ", ".join(lost.values if values is None else values)
    sentence = " ".join(lost.sentence.split())
    lead = " ".join(sentence[: max(sentence.find(lost.values[0]), 0)].split()[-_LEAD:]).rstrip(" :-—–#([\"'«")
    return f"{lead}: {given}" if lead else given


def _lists(lost: Sequence[_Lost], room: int, weight: _Weight) -> Iterator[tuple[int, str]]:
    """Lists of values, those that cost least first, so that most of them fit."""
    for one in sorted(lost, key=lambda each: max(map(len, each.values))):
        line: list[str] = []
        for value in sorted(one.values, key=len):
            longer = [*line, value]
            text = redact(_listed(one, longer))
            if weight(text) <= room and (len(text) <= _LINE or not line):
                line = longer
                continue
            if line:
                done = redact(_listed(one, line))
                yield one.seq, done
                room -= weight(done)
            line = [value] if weight(redact(_listed(one, [value]))) <= room else []
            if not line:
                break
        if line:
            done = redact(_listed(one, line))
            yield one.seq, done
            room -= weight(done)

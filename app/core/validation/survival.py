"""Finds values that users gave and that would be told nowhere once a summary replaces its messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final

from app.core.model.anchors import FoundAnchor
from app.core.model.conversation import Message
from app.core.model.provenance import language_of, origin_of
from app.core.model.redaction import redact
from app.core.reading.quoting import quoted
from app.core.text.budget import Budget
from app.core.text.clauses import begins_unresolved, clause_starts
from app.core.text.patterns import any_literal
from app.core.text.sentences import is_code, sentences
from app.core.text.token_counts import least_tokens
from app.core.text.values import Given, Value, values

_LONGEST_SENTENCE: Final = 300
"""Characters of a sentence that is kept whole; of a longer one the clauses with its values are, of longer code nothing:
a program or a trace is full of what reads as paths and identifiers, and shreds of it tell nothing."""
_LONGEST_LEAD: Final = 180  # characters of the sentence that one which points back to it is told with
_FRAME: Final = 5  # tokens of the words around a quote, in the language in which they are fewest
_MOST_VALUES: Final = 2_000  # values that are looked after in one chunk
_OWN_WORDS: Final = 4_000  # characters: of a longer message most was pasted
_LONG_NUMBER: Final = 5  # digits: a number that long names something
_OPENING: Final = 4  # messages with which a talk sets out
_MOST_CLAUSES: Final = 400
_WHOLE: Final = frozenset({"path", "url"})
"""Kinds of values that have to be found whole, since a part of one names something else."""


Stale = Callable[[str, int], Collection[str] | None]
"""What of a sentence, said in a message, later messages changed: its values, or ``None`` for all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostSentence:
    """A sentence with a value that would no longer be served."""

    seq: int
    text: str
    said: str
    """The sentence with its speaker, as an entry; with the sentence before it if it begins by pointing back."""


def lost_sentences(
    span: Sequence[Message],
    served: Iterable[str],
    *,
    shown: Sequence[FoundAnchor],
    hidden: Sequence[FoundAnchor],
    stale: Stale | None = None,
    room: Budget | None = None,
) -> Iterator[LostSentence]:
    """The sentences of a span whose values nothing tells, those that matter most first, each when it is asked for.

    Args:
        span: The folded messages; held ones are served anyway.
        served: What is served in their place: entries, narratives, descriptions of stretches.
        shown: Anchors that are served.
        hidden: Anchors of the span for which there is no room.
        stale: What no longer holds is not lost; a sentence that is kept has "…" in its place.
        room: What is left for them, which the caller spends; what is surely longer is not read. ``None``: no end.
    """
    present = Told()
    for text in served:
        present.add(text)
    for anchor in shown:
        present.add(anchor.content)
    for message in span:
        if message.is_protected or message.role == "system":
            present.add(message.content, message.created_at)
    anchored = {anchor.seq: anchor.content for anchor in hidden}
    language: str | None = None
    for number, (message, text, lead, lost) in enumerate(_lost(span, present, anchored, stale, room)):
        kept = redact(_clauses(" ".join(text.split()), lost))
        language = language if number else language_of(span)
        told = f"{redact(' '.join(lead.split()))} {kept}".lstrip()
        said = quoted(told, origin_of(message, text), language)
        yield LostSentence(seq=message.seq, text=kept, said=said)


def _lost(
    span: Sequence[Message], present: Told, anchored: dict[int, str], stale: Stale | None, room: Budget | None
) -> Iterator[tuple[Message, str, str, list[str]]]:
    """(message, sentence, the one that it points back to or "", values): values of the sentence that nothing tells."""
    looked_at = 0
    for message in sorted(span, key=lambda one: _urgency_rank(one, anchored)):
        usable = ""
        for lead, sentence in _with_sentences_before(message.content, _sentences_of(message, anchored)):
            before, usable = lead if lead == usable else "", ""
            text = _without_stale(sentence, stale(sentence, message.seq)) if stale else sentence
            if room is not None and len(text) <= _LONGEST_SENTENCE and _FRAME + least_tokens(len(text)) > room.left:
                continue
            stated = critical_values(text, message.created_at)
            looked_at += len(stated)
            if looked_at > _MOST_VALUES:
                return
            lost = [value.text for value in stated if not present.holds(value)]
            if lost:
                yield message, text, before if begins_unresolved(text) else "", lost
                present.add(text, message.created_at)  # said twice, it is lost once
            elif text == sentence:
                usable = text


class Told:
    """What is served: a value is told in any form, a path or an address only whole."""

    def __init__(self) -> None:
        self._given: Final = Given()
        self._texts: Final[list[str]] = []

    def add(self, text: str, at: datetime | None = None) -> None:
        """Serve a text; ``at``: when it was said."""
        self._given.add(1, text, at)
        self._texts.append(text.casefold())

    def holds(self, value: Value) -> bool:
        """Whether a value is told."""
        if value.kind in _WHOLE:
            return any(value.text.casefold() in text for text in self._texts)
        return self._given.holds(value)


def critical_values(text: str, at: datetime | None = None) -> list[Value]:
    """The values of a text that must not get lost; ``at``: when it was said."""
    return [value for value in values(text, at) if _is_critical(value)]


def _without_stale(sentence: str, gone: Collection[str] | None) -> str:
    if gone is None:
        return ""
    if not gone:
        return sentence
    return any_literal(gone, before=r"(?<![\w.,])", flags=re.IGNORECASE).sub("…", sentence)


def _is_critical(value: Value) -> bool:
    if value.kind == "number":
        digits = sum(sign.isdigit() for sign in value.text)
        return digits >= _LONG_NUMBER or value.text[-1:].isalpha() or value.text.endswith("%")
    return value.kind != "time"


def _sentences_of(message: Message, anchored: dict[int, str]) -> tuple[str, ...]:
    if message.is_protected or not message.is_told:
        return ()
    if message.role == "user":
        return tuple(one for one in sentences(message.content) if len(one) <= _LONGEST_SENTENCE or not is_code(one))
    return sentences(anchored.get(message.seq, ""))


def _with_sentences_before(content: str, found: Sequence[str]) -> Iterator[tuple[str, str]]:
    before, end = "", 0
    for sentence in found:
        start = content.find(sentence, end)
        follows = start >= 0 and len(before) <= _LONGEST_LEAD and "\n" not in content[end:start]
        yield before if follows else "", sentence
        before, end = sentence, start + len(sentence) if start >= 0 else len(content)


def _urgency_rank(message: Message, anchored: dict[int, str]) -> int:
    # The opening of the talk comes first, long messages last.
    is_own = len(message.content) <= _OWN_WORDS
    return 0 if message.seq <= _OPENING and is_own else 1 if message.seq in anchored else 2 if is_own else 3


def _clauses(sentence: str, lost: Sequence[str]) -> str:
    if len(sentence) <= _LONGEST_SENTENCE:
        return sentence
    values_at = [(start, start + len(value)) for value in lost for start in [sentence.find(value)]]
    places = [
        place
        for place in clause_starts(sentence)[:_MOST_CLAUSES]
        if not any(start < place < end for start, end in values_at)
    ]
    clauses = [sentence[start:end].strip() for start, end in pairwise([0, *places, len(sentence)])]
    return " … ".join(clause for clause in clauses if any(value in clause for value in lost)) or sentence

"""Finds values that users gave and that would no longer be served once a summary replaces its messages."""

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
from app.core.reading.quoting import as_quotation
from app.core.text.budget import Budget
from app.core.text.clauses import begins_unresolved, clause_starts
from app.core.text.patterns import any_literal
from app.core.text.sentences import is_code, sentences
from app.core.text.token_counts import least_tokens
from app.core.text.values import Value, ValueIndex, values

_LONGEST_SENTENCE: Final = 300
"""The most characters of a sentence that is kept whole. Of a longer one the clauses with its values are kept, of longer
code nothing: programs and traces are full of apparent paths and identifiers, and pieces of them tell nothing."""
_LONGEST_LEAD: Final = 180  # characters of the sentence before, if one that points back is kept together with it
_FRAME: Final = 5  # the fewest tokens that the words around a quote take, in any language
_MOST_VALUES: Final = 2_000  # the most values of one chunk that are checked
_OWN_WORDS: Final = 4_000  # characters; most of a longer message was pasted
_LONG_NUMBER: Final = 5  # digits; a number with as many identifies something
_OPENING: Final = 4  # the number of messages that open a talk
_MOST_CLAUSES: Final = 400
_WHOLE: Final = frozenset({"path", "url"})
"""Kinds of values that have to be found whole, since a part of one names something else."""


Stale = Callable[[str, int], Collection[str] | None]
"""Which values of a sentence in a message later messages changed; ``None`` if they changed the whole sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostSentence:
    """A sentence with a value that would no longer be served."""

    seq: int
    text: str
    said: str
    """The sentence with its speaker, as an entry. If it points back, the sentence before it is included."""


def lost_sentences(
    span: Sequence[Message],
    served: Iterable[str],
    *,
    shown: Sequence[FoundAnchor],
    hidden: Sequence[FoundAnchor],
    stale: Stale | None = None,
    room: Budget | None = None,
) -> Iterator[LostSentence]:
    """The sentences of a span with values that are no longer served, the most important first, computed one by one.

    Args:
        span: The folded messages; held ones are served anyway.
        served: What is served in their place: entries, narratives, descriptions of stretches.
        shown: Anchors that are served.
        hidden: Anchors of the span for which there is no room.
        stale: Finds values that no longer hold: they are not lost, and "…" replaces them in a sentence that is kept.
        room: The tokens left for the sentences, which the caller spends; sentences that surely do not fit are skipped.
            ``None``: no limit.
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
        said = as_quotation(told, origin_of(message, text), language)
        yield LostSentence(seq=message.seq, text=kept, said=said)


def _lost(
    span: Sequence[Message], present: Told, anchored: dict[int, str], stale: Stale | None, room: Budget | None
) -> Iterator[tuple[Message, str, str, list[str]]]:
    """(message, sentence, the sentence that it points back to or "", its values that are no longer served)."""
    looked_at = 0
    for message in sorted(span, key=lambda one: _urgency_rank(one, anchored)):
        usable = ""
        for lead, sentence in _with_sentences_before(message.content, _sentences_of(message, anchored)):
            before, usable = lead if lead == usable else "", ""
            text = _without_stale(sentence, stale(sentence, message.seq)) if stale else sentence
            if (
                room is not None
                and len(text) <= _LONGEST_SENTENCE
                and _FRAME + least_tokens(len(text)) > room.remaining
            ):
                continue
            stated = critical_values(text, message.created_at)
            looked_at += len(stated)
            if looked_at > _MOST_VALUES:
                return
            lost = [value.text for value in stated if not present.holds(value)]
            if lost:
                yield message, text, before if begins_unresolved(text) else "", lost
                present.add(text, message.created_at)  # a value that is said twice is lost only once
            elif text == sentence:
                usable = text


class Told:
    """What is served. A value counts as told in any of its forms, a path or a URL only as a whole."""

    def __init__(self) -> None:
        self._given: Final = ValueIndex()
        self._texts: Final[list[str]] = []

    def add(self, text: str, at: datetime | None = None) -> None:
        """Add a served text; ``at``: when it was said."""
        self._given.add(1, text, at)
        self._texts.append(text.casefold())

    def holds(self, value: Value) -> bool:
        """Whether a value is served."""
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

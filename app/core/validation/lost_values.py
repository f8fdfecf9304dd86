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
from app.core.validation.kept_values import is_whole_in

_MAX_SENTENCE_LENGTH: Final = 300
"""The most characters of a sentence that is kept whole. Of a longer one the clauses with its values are kept, of longer
code nothing: programs and traces are full of apparent paths and identifiers, and pieces of them tell nothing."""
_MAX_LEAD_LENGTH: Final = 180  # characters of the sentence before, if one that points back is kept together with it
_FRAME: Final = 5  # the fewest tokens that the words around a quote take, in any language
_MAX_VALUES: Final = 2_000  # the most values of one chunk that are checked
_MAX_OWN_MESSAGE_LENGTH: Final = 4_000  # characters; most of a longer message was pasted
_LONG_NUMBER: Final = 5  # digits; a number with as many identifies something
_OPENING_MESSAGES: Final = 4  # the number of messages that open a talk
_MAX_CLAUSES: Final = 400
_WHOLE_KINDS: Final = frozenset({"path", "url"})
"""Kinds of values that have to be found whole, since a part of one names something else."""


StaleValues = Callable[[str, int], Collection[str] | None]
"""Which values of a sentence in a message later messages changed; ``None`` if they changed the whole sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostSentence:
    """A sentence with a value that would no longer be served."""

    seq: int
    text: str
    attributed_text: str
    """The sentence with its speaker, as an entry. If it points back, the sentence before it is included."""


def lost_sentences(
    span: Sequence[Message],
    served_texts: Iterable[str],
    *,
    served_anchors: Sequence[FoundAnchor],
    unserved_anchors: Sequence[FoundAnchor],
    stale_values: StaleValues | None = None,
    token_budget: Budget | None = None,
) -> Iterator[LostSentence]:
    """The sentences of a span with values that are no longer served, the most important first, computed one by one.

    Args:
        span: The folded messages; held ones are served anyway.
        served_texts: What is served in their place: entries, narratives, descriptions of segments.
        served_anchors: Anchors that are served.
        unserved_anchors: Anchors of the span for which there is no room.
        stale_values: Finds values that no longer hold: they are not lost, and "…" replaces them in a sentence that is
            kept.
        token_budget: The tokens left for the sentences, which the caller spends; sentences that surely do not fit are
            skipped. ``None``: no limit.
    """
    served_values = ServedValues()
    for text in served_texts:
        served_values.add(text)
    for anchor in served_anchors:
        served_values.add(anchor.content)
    for message in span:
        if message.is_protected or message.role == "system":
            served_values.add(message.content, message.created_at)
    anchored = {anchor.seq: anchor.content for anchor in unserved_anchors}
    language: str | None = None
    for number, (message, text, lead, lost) in enumerate(
        _lost(span, served_values, anchored, stale_values, token_budget)
    ):
        shortened = redact(_clauses(" ".join(text.split()), lost))
        language = language if number else language_of(span)
        text_with_lead = f"{redact(' '.join(lead.split()))} {shortened}".lstrip()
        attributed_text = as_quotation(text_with_lead, origin_of(message, text), language)
        yield LostSentence(seq=message.seq, text=shortened, attributed_text=attributed_text)


def _lost(
    span: Sequence[Message],
    served_values: ServedValues,
    anchored: dict[int, str],
    stale_values: StaleValues | None,
    token_budget: Budget | None,
) -> Iterator[tuple[Message, str, str, list[str]]]:
    """(message, sentence, the sentence that it points back to or "", its values that are no longer served)."""
    value_count = 0
    for message in sorted(span, key=lambda one: _urgency_rank(one, anchored)):
        lead_sentence = ""
        for lead, sentence in _with_sentences_before(message.content, _sentences_of(message, anchored)):
            before, lead_sentence = lead if lead == lead_sentence else "", ""
            text = _without_stale(sentence, stale_values(sentence, message.seq)) if stale_values else sentence
            if (
                token_budget is not None
                and len(text) <= _MAX_SENTENCE_LENGTH
                and _FRAME + least_tokens(len(text)) > token_budget.remaining
            ):
                continue
            stated_values = critical_values(text, message.created_at)
            value_count += len(stated_values)
            if value_count > _MAX_VALUES:
                return
            lost = [value.text for value in stated_values if not served_values.holds(value)]
            if lost:
                yield message, text, before if begins_unresolved(text) else "", lost
                served_values.add(text, message.created_at)  # a value that is said twice is lost only once
            elif text == sentence:
                lead_sentence = text


class ServedValues:
    """What is served. A value counts as served in any of its forms, a path or a URL only as a whole."""

    def __init__(self) -> None:
        self._values: Final = ValueIndex()
        self._texts: Final[list[str]] = []

    def add(self, text: str, at: datetime | None = None) -> None:
        """Add a served text; ``at``: when it was said."""
        self._values.add(1, text, at)
        self._texts.append(text.casefold())

    def holds(self, value: Value) -> bool:
        """Whether a value is served."""
        if value.kind in _WHOLE_KINDS:
            return any(is_whole_in(value.text.casefold(), text) for text in self._texts)
        return self._values.holds(value)


def critical_values(text: str, at: datetime | None = None) -> list[Value]:
    """The values of a text that must not get lost; ``at``: when it was said."""
    return [value for value in values(text, at) if _is_critical(value)]


def _without_stale(sentence: str, stale_values: Collection[str] | None) -> str:
    if stale_values is None:
        return ""
    if not stale_values:
        return sentence
    return any_literal(stale_values, before=r"(?<![\w.,])", flags=re.IGNORECASE).sub("…", sentence)


def _is_critical(value: Value) -> bool:
    if value.kind == "number":
        digits = sum(sign.isdigit() for sign in value.text)
        end = value.text[-1:]
        return digits >= _LONG_NUMBER or end.isalpha() or (bool(value.base) and not end.isdecimal())
    return value.kind != "time"


def _sentences_of(message: Message, anchored: dict[int, str]) -> tuple[str, ...]:
    if message.is_protected or not message.is_part_of_talk:
        return ()
    if message.role == "user":
        return tuple(one for one in sentences(message.content) if len(one) <= _MAX_SENTENCE_LENGTH or not is_code(one))
    return sentences(anchored.get(message.seq, ""))


def _with_sentences_before(content: str, message_sentences: Sequence[str]) -> Iterator[tuple[str, str]]:
    before, end = "", 0
    for sentence in message_sentences:
        start = content.find(sentence, end)
        follows = start >= 0 and len(before) <= _MAX_LEAD_LENGTH and "\n" not in content[end:start]
        yield before if follows else "", sentence
        before, end = sentence, start + len(sentence) if start >= 0 else len(content)


def _urgency_rank(message: Message, anchored: dict[int, str]) -> int:
    """0 for the opening of the talk, then messages with anchors, then other short messages; 3 for long ones."""
    is_short = len(message.content) <= _MAX_OWN_MESSAGE_LENGTH
    if message.seq <= _OPENING_MESSAGES and is_short:
        return 0
    return 1 if message.seq in anchored else 2 if is_short else 3


def _clauses(sentence: str, lost: Sequence[str]) -> str:
    if len(sentence) <= _MAX_SENTENCE_LENGTH:
        return sentence
    values_at = [(sentence.find(value), len(value)) for value in lost]
    positions = [
        position
        for position in clause_starts(sentence)[:_MAX_CLAUSES]
        if not any(start < position < start + length for start, length in values_at)
    ]
    clauses = [sentence[start:end].strip() for start, end in pairwise([0, *positions, len(sentence)])]
    return " … ".join(clause for clause in clauses if any(value in clause for value in lost)) or sentence

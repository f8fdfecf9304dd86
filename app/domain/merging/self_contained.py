"""What a quoted sentence needs to be read alone: what its pronoun stands for, or what answered its question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from app.domain.conversation import Message
from app.domain.extraction.clauses import begins_unresolved, is_fragment
from app.domain.extraction.cues import FILLER, NON_ANSWER
from app.domain.extraction.items import ANSWERED
from app.domain.extraction.labels import role_label
from app.domain.extraction.passages import clip
from app.domain.fencing.redaction import redact
from app.domain.gating.authority import claims_authority
from app.domain.merging.outdated import Outdated
from app.domain.words.language import detect
from app.domain.words.text import sentences

_BESIDE: Final = 180  # characters of what stands beside
_BACK: Final = 3  # messages that are searched for what a pronoun stands for
_ASKS: Final = ("?", "？", "؟")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A quote with what it needs."""

    text: str
    seqs: tuple[int, ...]
    """Every message it draws on."""


def is_open_question(sentence: str, seq: int, span: Sequence[Message]) -> bool:
    """Whether a sentence asks what the next message of the span does not answer."""
    return _asks(sentence) and _answer(seq, span) is None


def in_context(
    sentence: str, quote: str, seq: int, span: Sequence[Message], outdated: Outdated | None = None
) -> Context | None:
    """The quote with the sentence that its pronoun points back to, or with the answer to its question.

    Args:
        sentence: As it stands in its message.
        quote: What is quoted of it.
        seq: Of its message.
        span: The messages, in order.
        outdated: What later messages changed: it does not come back beside a quote.

    Returns:
        ``None`` where it stands alone already, or nothing is found.
    """
    at = next(index for index, message in enumerate(span) if message.seq == seq)
    if _asks(sentence):
        found = _answer(seq, span)
        parts = [(span[at], quote), found] if found else []
    else:
        opening = FILLER.sub("", " ".join(sentence.split()), count=1)
        found = _antecedent(sentence, at, span) if begins_unresolved(opening) else None
        parts = [found, (span[at], quote)] if found else []
    if not found or claims_authority(found[1]) or (outdated and outdated.values(found[1], found[0].seq) != frozenset()):
        return None
    if found[0].seq == seq:
        return Context(text=f"{found[1]} {quote}", seqs=(seq,))
    language = detect(span[at].content) or "en"
    told = ANSWERED.join(f"{role_label(message.role, language)}: {text}" for message, text in parts)
    return Context(text=told, seqs=tuple(sorted((found[0].seq, seq))))


def _asks(sentence: str) -> bool:
    return sentence.rstrip("\"'”» )*_").endswith(_ASKS)


def _answer(seq: int, span: Sequence[Message]) -> tuple[Message, str] | None:
    """The first sentence of the assistant's message that follows, unless it asks back or does not know."""
    after = next((message for message in span if message.seq > seq and _speaks(message)), None)
    if after is None or after.role != "assistant":
        return None
    first = next((text for text in _told(after) if not is_fragment(text)), "")
    return (after, first) if first and not _asks(first) and not NON_ANSWER.search(first) else None


def _antecedent(sentence: str, at: int, span: Sequence[Message]) -> tuple[Message, str] | None:
    """The last sentence before that begins with no pronoun itself, and says something."""
    before = [message for message in span[max(at - 2 * _BACK, 0) : at] if _speaks(message)][-_BACK:]
    own = list(sentences(span[at].content))
    place = next((number for number, text in enumerate(own) if text == sentence), 0)
    candidates = [(span[at], text) for text in map(_tidy, own[:place])]
    candidates = [*((message, text) for message in before for text in _told(message)), *candidates]
    usable = (one for one in reversed(candidates) if not begins_unresolved(one[1]) and not is_fragment(one[1]))
    return next(usable, None)


def _told(message: Message) -> Iterator[str]:
    return map(_tidy, sentences(message.content))


def _tidy(sentence: str) -> str:
    return redact(clip(FILLER.sub("", " ".join(sentence.split()), count=1), _BESIDE))


def _speaks(message: Message) -> bool:
    return message.role in {"user", "assistant"} and not message.is_command and message.status != "erased"

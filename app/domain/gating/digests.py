"""The gate of what a summarizer wrote about single stretches: what does not hold is left out, and made by code instead.

Nothing here refuses a candidate.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from app.domain.conversation import Message
from app.domain.fencing.redaction import redact
from app.domain.gating.evidence import Evidence
from app.domain.gating.soundness import Stretch, imitates, is_hostile
from app.domain.model_io import SummaryRequest
from app.domain.segments.values import CutSegment, SegmentDigest
from app.domain.states.provenance import own_words
from app.domain.summarizing.stretches import BRIEF_TOKENS, MOST_TAGS, asked_about
from app.domain.weighing.tokens import estimate_text
from app.domain.words.language import detect, differs
from app.domain.words.text import sentences

MOST_BRIEF: Final = 2 * BRIEF_TOKENS
"""Tokens; a longer brief is no brief."""
_MOST_TOPIC: Final = 24  # tokens, for a name of two to six words
_MOST_TAG: Final = 16
_WHOLE: Final = 0.5  # of a brief must be left when what does not hold is gone
_SHORTER: Final = 0.75  # of the messages' tokens at most
_SAMPLE: Final = 4_000  # characters from each end are plenty to know the language by


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedDigests:
    """What holds, and how many descriptions said what their stretch does not say."""

    digests: tuple[SegmentDigest, ...] = ()
    """A field of one that did not hold is empty."""
    repaired: int = 0


def check_digests(
    digests: Sequence[SegmentDigest], request: SummaryRequest, evidence: Evidence | None = None
) -> CheckedDigests:
    """Check every description of one of the request's stretches.

    Args:
        digests: As they were read.
        request: What was asked.
        evidence: Of the request's messages; ``None``: made here.
    """
    asked = dict(asked_about(request.segments))
    checking = _Checking(request, evidence)
    kept: list[SegmentDigest] = []
    repaired = 0
    for digest in digests:
        if (cut := asked.get(digest.number)) is None:
            continue
        checked = checking.checked(digest, cut)
        repaired += checked.invents
        if checked.digest is not None:
            kept.append(checked.digest)
    return CheckedDigests(digests=tuple(kept), repaired=repaired)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    digest: SegmentDigest | None = None
    invents: bool = False


class _Checking:
    """What the checks of one answer have in common."""

    def __init__(self, request: SummaryRequest, evidence: Evidence | None) -> None:
        self._request = request
        self._given = evidence
        self._seqs = [message.seq for message in request.messages]

    def checked(self, digest: SegmentDigest, cut: CutSegment) -> _Checked:
        """What of a description holds."""
        texts = (digest.topic, digest.brief, *digest.tags)
        if any(is_hostile(text) for text in texts):
            return _Checked(invents=not any(imitates(text) for text in texts))
        messages = self._messages(cut)
        if not messages or self._is_foreign(digest.brief or digest.topic, messages):
            return _Checked()
        stretch = Stretch(messages, self._evidence, self._language)
        parts = sentences(digest.brief)
        sound = [part for part in parts if stretch.is_sound(part)]
        tags = [tag for tag in digest.tags if stretch.is_term(tag)]
        made = SegmentDigest(
            number=digest.number,
            topic=_topic(digest.topic) if stretch.is_term(digest.topic) else "",
            brief=_brief(digest.brief, digest.brief if len(sound) == len(parts) else " ".join(sound), cut),
            tags=_tags(tags),
        )
        values_hold = all(stretch.holds_values(text) for text in (digest.topic, *digest.tags))
        invents = len(sound) < len(parts) or not values_hold
        return _Checked(digest=made if made.topic or made.brief or made.tags else None, invents=invents)

    def _messages(self, cut: CutSegment) -> Sequence[Message]:
        first, last = bisect_left(self._seqs, cut.from_seq), bisect_right(self._seqs, cut.to_seq)
        return self._request.messages[first:last]

    def _is_foreign(self, text: str, messages: Sequence[Message]) -> bool:
        """Whether a text is neither in the conversation's language nor in that of its own stretch."""
        written = detect(text)
        if written is not None and written == self._language:
            return False
        spoken = _sample(messages)
        return differs(text, self._spoken) and (detect(spoken) is None or differs(text, spoken))

    @cached_property
    def _spoken(self) -> str:
        return _sample(self._request.messages)

    @cached_property
    def _language(self) -> str | None:
        return detect(self._spoken)

    @cached_property
    def _evidence(self) -> Evidence:
        request = self._request
        return self._given or Evidence(request.messages, system_prompt=request.system_prompt)


def _topic(topic: str) -> str:
    line = redact(topic).strip(" .。,;:")
    return line if estimate_text(line) <= _MOST_TOPIC else ""


def _brief(told: str, sound: str, cut: CutSegment) -> str:
    """What is left of a brief; nothing when that is little, too much, or hardly shorter than the messages."""
    brief = redact(sound)
    if not brief or len(brief) < _WHOLE * len(told):
        return ""
    return brief if estimate_text(brief) <= min(MOST_BRIEF, int(_SHORTER * cut.tokens)) else ""


def _tags(tags: Sequence[str]) -> tuple[str, ...]:
    plain = (redact(tag).lstrip("#").strip() for tag in tags)
    fitting = dict.fromkeys(tag for tag in plain if tag and estimate_text(tag) <= _MOST_TAG)
    return tuple(fitting)[:MOST_TAGS]


def _sample(messages: Sequence[Message]) -> str:
    spoken = own_words(messages)
    return spoken if len(spoken) <= 2 * _SAMPLE else f"{spoken[:_SAMPLE]}\n{spoken[-_SAMPLE:]}"

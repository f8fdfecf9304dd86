"""Checks a summarizer's descriptions of single segments; code writes its own for those that are not good enough.

These checks never refuse a candidate.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from app.core.anchors.rendering import escape_served
from app.core.model.conversation import Message
from app.core.model.model_io import SummaryRequest
from app.core.model.provenance import sample_of
from app.core.model.redaction import redact
from app.core.model.segments import CutSegment, SegmentDigest
from app.core.summarizer.segment_prompts import BRIEF_TOKENS, MAX_TAGS, described_segments
from app.core.text.language import detect, differs
from app.core.text.patterns import compiled
from app.core.text.token_counts import estimate_text
from app.core.validation.excuses import is_excuse

MAX_BRIEF_TOKENS: Final = 2 * BRIEF_TOKENS
"""The most tokens of a brief."""
_MAX_TOPIC_TOKENS: Final = 24  # a name of two to six words
_MAX_TAG_TOKENS: Final = 16
_MAX_BRIEF_SHARE: Final = 0.75  # the largest share of the messages' tokens
_MARKER: Final = compiled(r"(?:->|=>|[→⇒➔➜])\s{0,4}[LlＬ]\s?\d")


def checked_digests(digests: Sequence[SegmentDigest], request: SummaryRequest) -> tuple[SegmentDigest, ...]:
    """The descriptions of the request's segments; a field that exceeds its size is emptied.

    A description is left out if it imitates our tags or markers, talks about its task, or is in another language.
    """
    segments = dict(described_segments(request.segments))
    check = _DigestCheck(request)
    checked = (check.checked(digest, segments[digest.number]) for digest in digests if digest.number in segments)
    return tuple(digest for digest in checked if digest is not None)


def imitates_markup(text: str) -> bool:
    """Whether a text holds one of our tags, or something that reads like a marker."""
    return escape_served(text) != text or _MARKER.search(text) is not None


class _DigestCheck:
    """Checks the descriptions of one answer, and keeps what these checks share."""

    def __init__(self, request: SummaryRequest) -> None:
        self._request = request
        self._seqs = [message.seq for message in request.messages]

    def checked(self, digest: SegmentDigest, cut: CutSegment) -> SegmentDigest | None:
        texts = (digest.topic, digest.brief, *digest.tags)
        if any(imitates_markup(text) or is_excuse(text) for text in texts):
            return None
        messages = self._messages(cut)
        if not messages or self._is_in_foreign_language(digest.brief or digest.topic, messages):
            return None
        digest_within_limits = SegmentDigest(
            number=digest.number,
            topic=_topic_if_short_enough(digest.topic),
            brief=_brief_if_short_enough(digest.brief, cut),
            tags=_short_enough_tags(digest.tags),
        )
        return (
            digest_within_limits
            if digest_within_limits.topic or digest_within_limits.brief or digest_within_limits.tags
            else None
        )

    def _messages(self, cut: CutSegment) -> Sequence[Message]:
        first, last = bisect_left(self._seqs, cut.from_seq), bisect_right(self._seqs, cut.to_seq)
        return self._request.messages[first:last]

    def _is_in_foreign_language(self, text: str, messages: Sequence[Message]) -> bool:
        language = detect(text)
        if language is not None and language == self._request.language:
            return False
        text_sample = sample_of(messages)
        return differs(text, self._text_sample) and (detect(text_sample) is None or differs(text, text_sample))

    @cached_property
    def _text_sample(self) -> str:
        return sample_of(self._request.messages)


def _topic_if_short_enough(topic: str) -> str:
    line = redact(topic).strip(" .。,;:")
    return line if estimate_text(line) <= _MAX_TOPIC_TOKENS else ""


def _brief_if_short_enough(text: str, cut: CutSegment) -> str:
    brief = redact(text)
    return brief if estimate_text(brief) <= min(MAX_BRIEF_TOKENS, int(_MAX_BRIEF_SHARE * cut.tokens)) else ""


def _short_enough_tags(tags: Sequence[str]) -> tuple[str, ...]:
    plain = (redact(tag).lstrip("#").strip() for tag in tags)
    fitting = dict.fromkeys(tag for tag in plain if tag and estimate_text(tag) <= _MAX_TAG_TOKENS)
    return tuple(fitting)[:MAX_TAGS]

"""Checks the L1 that a model wrote of a segment: removes what the segment does not support, and refuses a poor rest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from app.core.model.model_io import DetailRequest, Proposal
from app.core.model.provenance import sample_of
from app.core.model.redaction import redact
from app.core.model.word_overlap import message_text
from app.core.summarizer.candidate import without_reasoning
from app.core.text.language import differs
from app.core.text.patterns import compiled
from app.core.text.sentences import sentences
from app.core.text.token_counts import estimate_text
from app.core.text.values import values
from app.core.validation.digest_checks import imitates_markup
from app.core.validation.excuses import is_excuse
from app.core.validation.gate import REFUSED_FINISHES
from app.core.validation.orders import orders_in
from app.core.validation.source_texts import SourceTexts

MAX_TOKEN_SHARE: Final = 0.9
"""The largest share of its messages' tokens that an L1 may have: beyond it the originals themselves are better."""
_MIN_REMAINING_SHARE: Final = 0.5  # the least share of a text that must be left after removing what does not hold
_MAX_DETAIL_LENGTH: Final = 40_000  # characters; what is longer is no condensed text of anything
_FENCE: Final = compiled(r"\A```[\w-]*+[ \t]*+\n(.*)```\Z", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailReport:
    """Either a text that may be stored, or the reason word of the refusal."""

    text: str = ""
    reason: str | None = None


def check_detail(proposal: Proposal, request: DetailRequest) -> DetailReport:
    """Check what a summarizer wrote as a segment's L1.

    Reasons: ``blocked``, ``cut_off``, ``not_a_summary``, ``empty_summary``, ``unparseable`` (far too long),
    ``wrong_language``, ``ungrounded`` (less than half of it holds), ``not_smaller``.
    """
    refused = (
        "not_a_summary"
        if proposal.called_tool and proposal.finish not in REFUSED_FINISHES
        else REFUSED_FINISHES.get(proposal.finish)
    )
    answer = _bare_answer(proposal.text)
    if reason := refused or _refusal_reason(answer, request):
        return DetailReport(reason=reason)
    text = redact(_without_unsound_sentences(answer, request))
    if len(text) < _MIN_REMAINING_SHARE * len(answer):
        return DetailReport(reason="ungrounded")
    if estimate_text(text) > MAX_TOKEN_SHARE * sum(
        estimate_text(message_text(message)) for message in request.messages
    ):
        return DetailReport(reason="not_smaller")
    return DetailReport(text=text)


def _bare_answer(text: str) -> str:
    answer = without_reasoning(text[: 2 * _MAX_DETAIL_LENGTH])
    fenced = _FENCE.match(answer)
    return fenced[1].strip() if fenced else answer


def _refusal_reason(answer: str, request: DetailRequest) -> str | None:
    if not answer:
        return "empty_summary"
    if len(answer) > _MAX_DETAIL_LENGTH:
        return "unparseable"
    if is_excuse(answer) or answer[0] in "{[":
        return "not_a_summary"
    return "wrong_language" if differs(answer, sample_of(request.messages)) else None


def _without_unsound_sentences(answer: str, request: DetailRequest) -> str:
    source_texts, paragraphs = SourceTexts(request.messages), list[str]()
    for paragraph in answer.split("\n"):
        parts = sentences(paragraph)
        sound = [part for part in parts if _is_sound(part, source_texts)]
        remaining = paragraph.strip() if len(sound) == len(parts) else " ".join(sound)
        if remaining:
            paragraphs.append(remaining)
    return "\n".join(paragraphs)


def _is_sound(sentence: str, source_texts: SourceTexts) -> bool:
    if (
        is_excuse(sentence)
        or imitates_markup(sentence)
        or not all(map(source_texts.wishes.include, orders_in(sentence)))
    ):
        return False
    return all(source_texts.sources_of(value) for value in values(sentence))

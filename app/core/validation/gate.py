"""The gate: every check that a summarizer's answer has to pass before it is used.

The checks have an order, and the first that refuses gives the recorded reason:

1. How the provider says that its answer ended (``REFUSED_FINISHES``): a blocked or cut-off answer is refused even
   if it can be read.
2. Whether it can be read (``parse_candidate``).
3. What it proposes (``CHECKS``), from "this is no record" to "this is a poor one": first a model's excuses, then empty
   skeletons, then the language, which can only be checked if there are words.

In an accepted answer, ids of anchors, which no reader sees, become the numbers of their messages. Then the exact
checks follow (``app.core.validation``). Their failures do not refuse the answer: the model is asked about them again,
and what still fails is cut or removed. Last, dates are added to relative times (``dates``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.core.anchors.prompt_ids import prompt_ids_of, without_prompt_ids
from app.core.model.candidate import Candidate, CandidateItem
from app.core.model.conversation import Message
from app.core.model.model_io import OFFLINE, FinishReason, Proposal, SummaryRequest
from app.core.model.provenance import origin_of, own_words
from app.core.model.redaction import redact
from app.core.model.repairs import Repair
from app.core.model.state import StateEntry
from app.core.reading.labels import role_of
from app.core.reading.quoting import as_quotation
from app.core.summarizer.candidate import CandidateError, attribute_sources, parse_candidate
from app.core.summarizer.offline.narrative_states import is_narrative_only
from app.core.text.identifiers import Identifier, Kind, find_identifiers
from app.core.text.language import agrees, detect, differs
from app.core.text.languages.combined_words import alternatives
from app.core.text.patterns import compiled
from app.core.text.scripts import UNSPACED
from app.core.text.sentences import closed
from app.core.text.speakers import label_of
from app.core.text.word_lists import GENERIC
from app.core.text.words import stem, stems, words
from app.core.validation.asking import parse_second_answer
from app.core.validation.dates import candidate_with_dates
from app.core.validation.digest_checks import checked_digests
from app.core.validation.exact_checks import (
    SEGMENTS_FIELD,
    ExaminedCandidate,
    examine_candidate,
    with_second_answers,
    without_failures,
)
from app.core.validation.excuses import is_excuse
from app.core.validation.health import is_cut_off
from app.core.validation.orders import orders_in
from app.core.validation.source_texts import SourceTexts

MIN_SAVED_SHARE: Final = 0.10
"""A compaction that saves less than this share of the folded tokens costs more than it brings."""

REFUSED_FINISHES: Final[Mapping[FinishReason, str]] = {
    "blocked": "blocked",
    "length": "cut_off",
    "tool_call": "not_a_summary",
}
"""The reason for which an answer is refused, whatever it says, by how its call ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """Either a candidate without failures, or the reason word of the refusal."""

    candidate: Candidate | None = None
    reason: str | None = None
    examined: ExaminedCandidate | None = None
    """The answer as it came, with its failures: the model can be asked about them again, even if the answer is refused
    because of them."""
    repairs: tuple[Repair, ...] = ()
    by_model: bool = True
    """Whether a language model wrote it. The offline summarizer quotes, and is not asked again."""
    source_texts: SourceTexts | None = None

    @property
    def ungrounded_count(self) -> int:
        """How many texts were changed or removed because they said what nobody had said."""
        return sum(repair.reason in _UNGROUNDED_REASONS for repair in self.repairs)

    @property
    def passage_name_repairs(self) -> tuple[Repair, ...]:
        """The repairs of texts in which a kept passage was named by its id."""
        return tuple(repair for repair in self.repairs if repair.reason == "passage_named")


_UNGROUNDED_REASONS: Final = frozenset({"novel_value", "order", "narrative_line"})


def judge(proposal: Proposal, request: SummaryRequest) -> GateReport:
    """Check a summarizer's answer.

    Reasons: ``blocked``, ``cut_off``, ``not_a_summary``, ``empty_summary``, ``unparseable``, ``skeleton``,
    ``wrong_language``, ``unfounded``. (``not_smaller`` is known only after the merge: see ``saves_too_little``.)
    """
    refused = (
        "not_a_summary"
        if proposal.called_tool and proposal.finish not in REFUSED_FINISHES
        else REFUSED_FINISHES.get(proposal.finish)
    )
    if refused:
        return GateReport(reason=refused)
    try:
        candidate = parse_candidate(proposal.text, request.schema)
    except CandidateError as error:
        return GateReport(reason=error.reason)
    by_model = proposal.model != OFFLINE
    if by_model and any(is_cut_off(text) for text in candidate.narrative.values()):
        return GateReport(reason="cut_off")
    for check in CHECKS if by_model else OFFLINE_CHECKS:
        if reason := check(candidate, request):
            return GateReport(reason=reason)
    attributed = attribute_sources(_without_excuses(candidate), request.messages, request.previous)
    if not by_model:  # the offline summarizer quotes, so no value has to be looked up
        return _with_dates(GateReport(candidate=_with_orders_quoted(attributed, request), by_model=False), request)
    complete, repairs = _without_passage_names(
        replace(attributed, digests=checked_digests(attributed.digests, request)), request
    )
    return _exactly_checked(
        complete, request, GateReport(by_model=by_model, source_texts=SourceTexts.of(request), repairs=repairs)
    )


def judge_again(report: GateReport, proposal: Proposal, request: SummaryRequest) -> GateReport:
    """The report with the model's answers to what it was asked again; answers that cannot be used are ignored."""
    if report.examined is None or REFUSED_FINISHES.get(proposal.finish):
        return report
    answer = parse_second_answer(proposal.text, request.schema, request)
    source_texts = report.source_texts or SourceTexts.of(request)
    candidate, repairs = with_second_answers(report.examined, answer.statements, source_texts)
    candidate = replace(candidate, digests=checked_digests(candidate.digests, request))
    restored_items = attribute_sources(
        Candidate(items=answer.added, narrative={}), request.messages, request.previous
    ).items
    sound_items = [
        item
        for item in restored_items
        if not examine_candidate(Candidate(items=(item,), narrative={}), source_texts).failures
    ]
    added = [item for item in sound_items if request.schema.field(item.field).is_list]
    narrative_items = [
        replace(item, text=closed(item.text)) for item in sound_items if not request.schema.field(item.field).is_list
    ]
    narrative = dict(candidate.narrative)
    for item in narrative_items:
        narrative[item.field] = " ".join(filter(None, [closed(narrative.get(item.field, "")), item.text]))
    restored = tuple(
        Repair(field=item.field, reason="value_restored", before="", after=item.text)
        for item in (*added, *narrative_items)
    )
    candidate = replace(candidate, items=(*candidate.items, *added), narrative=narrative)
    return _exactly_checked(
        candidate, request, replace(report, repairs=(*report.passage_name_repairs, *repairs, *restored))
    )


def _exactly_checked(candidate: Candidate, request: SummaryRequest, report_so_far: GateReport) -> GateReport:
    """The report after the exact checks. It is a refusal if nothing is left, or no item though the span has facts."""
    source_texts = report_so_far.source_texts or SourceTexts.of(request)
    examined = examine_candidate(candidate, source_texts)
    repaired = without_failures(examined, request.schema, request.previous)
    report = replace(
        report_so_far, examined=examined, repairs=(*report_so_far.repairs, *repaired.repairs), source_texts=source_texts
    )
    if repaired.is_refused:
        return replace(report, reason="unfounded")
    is_empty = not repaired.candidate.items and not repaired.candidate.narrative
    is_skeleton = candidate.texts() and _is_skeleton(repaired.candidate, request)
    if repaired.repairs and (is_empty or is_skeleton):
        return replace(report, reason="skeleton")
    return _with_dates(replace(report, candidate=_without_secrets(repaired.candidate), reason=None), request)


def _without_passage_names(candidate: Candidate, request: SummaryRequest) -> tuple[Candidate, tuple[Repair, ...]]:
    """The candidate without ids of kept passages, and the repairs that removed them."""
    known = {name for name, _ in prompt_ids_of(request.anchors)}
    if not known:
        return candidate, ()
    repairs: list[Repair] = []

    def without_known_names(field: str, text: str) -> str:
        after = without_prompt_ids(text, known)
        if after != text:
            repairs.append(Repair(field=field, reason="passage_named", before=text, after=after))
        return after

    return replace(
        candidate,
        items=tuple(replace(item, text=without_known_names(item.field, item.text)) for item in candidate.items),
        narrative={field: without_known_names(field, text) for field, text in candidate.narrative.items()},
        digests=tuple(
            replace(
                one,
                topic=without_known_names(SEGMENTS_FIELD, one.topic),
                brief=without_known_names(SEGMENTS_FIELD, one.brief),
            )
            for one in candidate.digests
        ),
    ), tuple(repairs)


def _without_secrets(candidate: Candidate) -> Candidate:
    # A text that joins several messages can reveal a secret that none of them reveals alone.
    items = tuple(replace(item, text=redact(item.text)) for item in candidate.items)
    return replace(
        candidate, items=items, narrative={field: redact(text) for field, text in candidate.narrative.items()}
    )


def _with_dates(report: GateReport, request: SummaryRequest) -> GateReport:
    if report.candidate is None:
        return report
    candidate, repairs = candidate_with_dates(
        report.candidate, request.messages, is_narrative_only=is_narrative_only(request.schema)
    )
    return replace(report, candidate=candidate, repairs=(*report.repairs, *repairs))


def _with_orders_quoted(candidate: Candidate, request: SummaryRequest) -> Candidate:
    """The candidate with quotes that read like orders marked as the words of their speaker."""
    messages = {message.seq: message for message in request.messages}
    items = []
    for item in candidate.items:
        source = next((messages[seq] for seq in item.from_seqs if seq in messages), None)
        if source is not None and orders_in(item.text):
            quotation = as_quotation(_without_role_label(item.text), origin_of(source, item.text), request.locale)
            items.append(replace(item, text=quotation))
        else:
            items.append(item)
    return replace(candidate, items=tuple(items))


def _without_role_label(text: str) -> str:
    label = label_of(text)
    return text[label.end :] if label and role_of(label.name) else text


def saves_too_little(span_tokens: int, block_before: int, block_after: int) -> bool:
    """Whether folding saves less than a tenth of the folded span's tokens, for the same tail: reason ``not_smaller``.

    Args:
        span_tokens: The tokens that leave the context.
        block_before: The tokens of the state block before.
        block_after: The tokens of the state block now.
    """
    return span_tokens + block_before - block_after < MIN_SAVED_SHARE * span_tokens


def _is_excuse_only(candidate: Candidate, request: SummaryRequest) -> str | None:
    del request
    return "not_a_summary" if all(is_excuse(text) for text in candidate.texts()) else None


def _is_skeleton(candidate: Candidate, request: SummaryRequest) -> str | None:
    # If the state is one text, that text has to say something.
    has_content = candidate.items or (not request.schema.field_for("fact").is_list and _has_content(candidate))
    return "skeleton" if not has_content and _holds_facts(request.messages, request.previous) else None


def _has_content(candidate: Candidate) -> bool:
    text = "\n".join(candidate.narrative.values())
    content_words = {stem(word) for word in words(text) if word not in GENERIC}
    return (
        len(content_words) >= _MIN_CONTENT_WORDS
        or sum(_weight(identifier) for identifier in find_identifiers(text)) >= _MIN_FACT_WEIGHT
    )


def _is_in_another_language(candidate: Candidate, request: SummaryRequest) -> str | None:
    if detect("\n".join(candidate.texts())) == request.language:
        return None
    users = [message for message in request.messages if message.role == "user"]
    samples = [own_words(request.messages), own_words(users)]
    if not _is_foreign(candidate.texts(), samples):
        return None
    items = attribute_sources(candidate, request.messages).items
    # An item in the language of its own source is not a translation.
    translated = [item.text for item in items if not _has_language_of_source(item, request.messages, samples[0])]
    return "wrong_language" if _is_foreign([*candidate.narrative.values(), *translated], samples) else None


def _is_foreign(texts: Sequence[str], samples: Sequence[str]) -> bool:
    joined_text = "\n".join(texts)
    return all(differs(joined_text, text) for text in samples)


def _has_language_of_source(item: CandidateItem, messages: Sequence[Message], spoken: str) -> bool:
    sources = [message for message in messages if message.seq in item.from_seqs]
    return agrees(item.text, own_words(sources), spoken)


Check = Callable[[Candidate, SummaryRequest], str | None]

CHECKS: Final[tuple[Check, ...]] = (_is_excuse_only, _is_skeleton, _is_in_another_language)
"""The checks in their order. Each returns a reason word or nothing."""
OFFLINE_CHECKS: Final[tuple[Check, ...]] = (_is_excuse_only, _is_skeleton)
"""The checks of the offline summarizer's answers. Their language is not checked: a quote has that of its message."""


def _without_excuses(candidate: Candidate) -> Candidate:
    narrative = {field: text for field, text in candidate.narrative.items() if not is_excuse(text)}
    return replace(candidate, narrative=narrative)


# --- whether a span holds facts -----------------------------------------------------------------------------------

_MIN_FACT_WEIGHT: Final = 3  # a time and a name ("see you at 5, Anna") are small talk; an amount and a date are not
_WEIGHTS: Final[Mapping[Kind, int]] = {"name": 1, "time": 1, "quoted": 0, "symbol": 0}
"""The weight of a value by its kind, 2 for all others: shouted words, abbreviations and quoted words say little."""
_MANY_NEW_WORDS: Final = 40
"""Different content words that the state lacks: about ten messages that are more than small talk."""
_CHARACTER_PAIR: Final = compiled(f"[{UNSPACED}]{{1,2}}")
_PAIRS_PER_WORD: Final = 3  # pairs of characters of an unspaced script that are one content word of English or Russian
_MIN_CONTENT_WORDS: Final = 8  # different content words: with fewer, a text says nothing
_MAX_SEARCHED_CHARACTERS: Final = 100_000  # the most characters of the span that are searched
_STATEMENT: Final = compiled(alternatives("claims", "stated"), re.IGNORECASE)


def _holds_facts(messages: Sequence[Message], previous: Sequence[StateEntry]) -> bool:
    span_text = "\n".join(_texts_of(message) for message in messages if message.role in {"user", "tool"})[
        :_MAX_SEARCHED_CHARACTERS
    ]
    recorded = "\n".join(entry.text for entry in previous).casefold()
    values = {identifier.text.casefold(): identifier for identifier in find_identifiers(span_text)}
    if sum(_weight(identifier) for text, identifier in values.items() if text not in recorded) >= _MIN_FACT_WEIGHT:
        return True
    return new_word_count(span_text, recorded) >= _MANY_NEW_WORDS or (
        not previous and _STATEMENT.search(span_text) is not None
    )


def new_word_count(text: str, recorded: str) -> float:
    """How many different content words are said and not recorded; a pair of characters counts as a third."""
    new_stems = {stem(word) for word in words(text) if word not in GENERIC} - set(stems(recorded))
    pairs = sum(_CHARACTER_PAIR.fullmatch(word) is not None for word in new_stems)
    return len(new_stems) - pairs + pairs / _PAIRS_PER_WORD


def _weight(identifier: Identifier) -> int:
    bare_number = identifier.kind == "number" and identifier.text.isdigit()
    return 1 if bare_number else _WEIGHTS.get(identifier.kind, 2)


def _texts_of(message: Message) -> str:
    results = (part.get("content") for part in message.parts if part.get("type") == "tool_result")
    return "\n".join([message.content, *(text for text in results if isinstance(text, str))])

"""The gate: every check that a summarizer's answer has to pass before it is used.

The checks have an order, and the first that refuses gives the recorded reason:

1. How the provider says that its answer ended (``FINISH``): a blocked or cut-off answer is refused even if it can be
   read.
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
from app.core.summarizer.offline.retold import is_told
from app.core.text.identifiers import Identifier, Kind, find_identifiers
from app.core.text.language import agrees, detect, differs
from app.core.text.languages.joined import alternatives
from app.core.text.patterns import compiled
from app.core.text.scripts import CHINESE_JAPANESE
from app.core.text.speakers import label_of
from app.core.text.word_lists import GENERIC
from app.core.text.words import stem, stems, words
from app.core.validation.asking import second_answer
from app.core.validation.dates import with_dates
from app.core.validation.digests import described
from app.core.validation.exact import STRETCHES, Examined, examine, with_answers, without_failures
from app.core.validation.excuses import is_excuse
from app.core.validation.health import is_cut_off
from app.core.validation.orders import orders_in
from app.core.validation.shown import Shown

LEAST_SAVED: Final = 0.10
"""A compaction that saves less than this share of the folded tokens costs more than it brings."""

FINISH: Final[Mapping[FinishReason, str]] = {
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
    examined: Examined | None = None
    """The answer as it came, with its failures: the model can be asked about them again, even if the answer is refused
    because of them."""
    repairs: tuple[Repair, ...] = ()
    by_model: bool = True
    """Whether a language model wrote it. The offline summarizer quotes, and is not asked again."""
    shown: Shown | None = None

    @property
    def ungrounded(self) -> int:
        """How many texts were changed or removed because they said what nobody had said."""
        return sum(repair.reason in _CHANGES for repair in self.repairs)

    @property
    def named(self) -> tuple[Repair, ...]:
        """The repairs of texts in which a kept passage was named by its id."""
        return tuple(repair for repair in self.repairs if repair.reason == "passage_named")


_CHANGES: Final = frozenset({"novel_value", "order", "narrative_line"})


def judge(proposal: Proposal, request: SummaryRequest) -> GateReport:
    """Check a summarizer's answer.

    Reasons: ``blocked``, ``cut_off``, ``not_a_summary``, ``empty_summary``, ``unparseable``, ``skeleton``,
    ``wrong_language``, ``unfounded``. (``not_smaller`` is known only after the merge: see ``saves_too_little``.)
    """
    refused = "not_a_summary" if proposal.called_tool and proposal.finish not in FINISH else FINISH.get(proposal.finish)
    if refused:
        return GateReport(reason=refused)
    try:
        candidate = parse_candidate(proposal.text, request.schema)
    except CandidateError as error:
        return GateReport(reason=error.reason)
    by_model = proposal.model != OFFLINE
    if by_model and any(is_cut_off(text) for text in candidate.narrative.values()):
        return GateReport(reason="cut_off")
    for check in CHECKS if by_model else QUOTERS_CHECKS:
        if reason := check(candidate, request):
            return GateReport(reason=reason)
    attributed = attribute_sources(_without_excuses(candidate), request.messages, request.previous)
    if not by_model:  # the offline summarizer quotes, so no value has to be looked up
        return _with_dates(GateReport(candidate=_with_orders_quoted(attributed, request), by_model=False), request)
    whole, repairs = _without_passage_names(
        replace(attributed, digests=described(attributed.digests, request)), request
    )
    return _report(whole, request, GateReport(by_model=by_model, shown=Shown.of(request), repairs=repairs))


def judge_again(report: GateReport, proposal: Proposal, request: SummaryRequest) -> GateReport:
    """The report with the model's answers to what it was asked again; answers that cannot be used are ignored."""
    if report.examined is None or FINISH.get(proposal.finish):
        return report
    second = second_answer(proposal.text, request.schema, request)
    shown = report.shown or Shown.of(request)
    candidate, repairs = with_answers(report.examined, second.statements, shown)
    candidate = replace(candidate, digests=described(candidate.digests, request))
    lost = attribute_sources(Candidate(items=second.added, narrative={}), request.messages, request.previous).items
    holding = [item for item in lost if not examine(Candidate(items=(item,), narrative={}), shown).failures]
    added = [item for item in holding if request.schema.field(item.field).is_list]
    told = [item for item in holding if not request.schema.field(item.field).is_list]
    narrative = dict(candidate.narrative)
    for item in told:
        narrative[item.field] = " ".join(filter(None, [narrative.get(item.field), item.text]))
    restored = tuple(Repair(field=item.field, reason="value_restored", before="", after=item.text) for item in holding)
    candidate = replace(candidate, items=(*candidate.items, *added), narrative=narrative)
    return _report(candidate, request, replace(report, repairs=(*report.named, *repairs, *restored)))


def _report(candidate: Candidate, request: SummaryRequest, so_far: GateReport) -> GateReport:
    """The report after the exact checks. It is a refusal if nothing is left, or no item though the span has facts."""
    shown = so_far.shown or Shown.of(request)
    examined = examine(candidate, shown)
    left = without_failures(examined, request.schema, request.previous)
    report = replace(so_far, examined=examined, repairs=(*so_far.repairs, *left.repairs), shown=shown)
    if left.is_refused:
        return replace(report, reason="unfounded")
    nothing = not left.candidate.items and not left.candidate.narrative
    is_skeleton = candidate.texts() and _is_skeleton(left.candidate, request)
    if left.repairs and (nothing or is_skeleton):
        return replace(report, reason="skeleton")
    return _with_dates(replace(report, candidate=_without_secrets(left.candidate), reason=None), request)


def _without_passage_names(candidate: Candidate, request: SummaryRequest) -> tuple[Candidate, tuple[Repair, ...]]:
    """The candidate without ids of kept passages, and the repairs that removed them."""
    known = {name for name, _ in prompt_ids_of(request.anchors)}
    if not known:
        return candidate, ()
    repairs: list[Repair] = []

    def told(field: str, text: str) -> str:
        after = without_prompt_ids(text, known)
        if after != text:
            repairs.append(Repair(field=field, reason="passage_named", before=text, after=after))
        return after

    return replace(
        candidate,
        items=tuple(replace(item, text=told(item.field, item.text)) for item in candidate.items),
        narrative={field: told(field, text) for field, text in candidate.narrative.items()},
        digests=tuple(
            replace(one, topic=told(STRETCHES, one.topic), brief=told(STRETCHES, one.brief))
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
    candidate, repairs = with_dates(report.candidate, request.messages, is_told=is_told(request.schema))
    return replace(report, candidate=candidate, repairs=(*report.repairs, *repairs))


def _with_orders_quoted(candidate: Candidate, request: SummaryRequest) -> Candidate:
    """The candidate with quotes that read like orders marked as the words of their speaker."""
    messages = {message.seq: message for message in request.messages}
    items = []
    for item in candidate.items:
        source = next((messages[seq] for seq in item.from_seqs if seq in messages), None)
        if source is not None and orders_in(item.text):
            said = as_quotation(_without_role_label(item.text), origin_of(source, item.text), request.locale)
            items.append(replace(item, text=said))
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
    return span_tokens + block_before - block_after < LEAST_SAVED * span_tokens


def _is_no_record(candidate: Candidate, request: SummaryRequest) -> str | None:
    del request
    return "not_a_summary" if all(is_excuse(text) for text in candidate.texts()) else None


def _is_skeleton(candidate: Candidate, request: SummaryRequest) -> str | None:
    # If the state is one text, that text has to say something.
    tells = candidate.items or (not request.schema.home("fact").is_list and _says_something(candidate))
    return "skeleton" if not tells and _holds_facts(request.messages, request.previous) else None


def _says_something(candidate: Candidate) -> bool:
    told = "\n".join(candidate.narrative.values())
    content = {stem(word) for word in words(told) if word not in GENERIC}
    return len(content) >= _TOLD or sum(_weight(found) for found in find_identifiers(told)) >= _FACTS


def _is_in_another_language(candidate: Candidate, request: SummaryRequest) -> str | None:
    if detect("\n".join(candidate.texts())) == request.language:
        return None
    users = [message for message in request.messages if message.role == "user"]
    spoken = [own_words(request.messages), own_words(users)]
    if not _is_foreign(candidate.texts(), spoken):
        return None
    items = attribute_sources(candidate, request.messages).items
    # An item in the language of its own source is not a translation.
    translated = [item.text for item in items if not _is_as_its_source(item, request.messages, spoken[0])]
    return "wrong_language" if _is_foreign([*candidate.narrative.values(), *translated], spoken) else None


def _is_foreign(texts: Sequence[str], spoken: Sequence[str]) -> bool:
    written = "\n".join(texts)
    return all(differs(written, text) for text in spoken)


def _is_as_its_source(item: CandidateItem, messages: Sequence[Message], spoken: str) -> bool:
    sources = [message for message in messages if message.seq in item.from_seqs]
    return agrees(item.text, own_words(sources), spoken)


Check = Callable[[Candidate, SummaryRequest], str | None]

CHECKS: Final[tuple[Check, ...]] = (_is_no_record, _is_skeleton, _is_in_another_language)
"""The checks in their order. Each returns a reason word or nothing."""
QUOTERS_CHECKS: Final[tuple[Check, ...]] = (_is_no_record, _is_skeleton)
"""The checks of the offline summarizer's answers. Their language is not checked: a quote has that of its message."""


def _without_excuses(candidate: Candidate) -> Candidate:
    told = {field: text for field, text in candidate.narrative.items() if not is_excuse(text)}
    return replace(candidate, narrative=told)


# --- whether a span holds facts -----------------------------------------------------------------------------------

_FACTS: Final = 3  # a time and a name ("see you at 5, Anna") are small talk; an amount and a date are not
_WEIGHTS: Final[Mapping[Kind, int]] = {"name": 1, "time": 1, "quoted": 0, "symbol": 0}
"""The weight of a value by its kind, 2 for all others: shouted words, abbreviations and quoted words say little."""
_MUCH: Final = 40  # different content words that the state lacks: about ten messages that are more than small talk
_PAIR: Final = compiled(f"[{CHINESE_JAPANESE}]{{1,2}}")
_PAIRS_PER_WORD: Final = 3  # pairs of Chinese characters that correspond to one content word of English or Russian
_TOLD: Final = 8  # different content words: with fewer, a text tells nothing
_SCANNED: Final = 100_000  # the most characters of the span that are searched
_STATEMENT: Final = compiled(alternatives("claims", "stated"), re.IGNORECASE)


def _holds_facts(messages: Sequence[Message], previous: Sequence[StateEntry]) -> bool:
    said = "\n".join(_texts_of(message) for message in messages if message.role in {"user", "tool"})[:_SCANNED]
    recorded = "\n".join(entry.text for entry in previous).casefold()
    values = {found.text.casefold(): found for found in find_identifiers(said)}
    if sum(_weight(found) for text, found in values.items() if text not in recorded) >= _FACTS:
        return True
    return new_words(said, recorded) >= _MUCH or (not previous and _STATEMENT.search(said) is not None)


def new_words(said: str, recorded: str) -> float:
    """How many different content words are said and not recorded; a pair of Chinese characters counts as a third."""
    found = {stem(word) for word in words(said) if word not in GENERIC} - set(stems(recorded))
    pairs = sum(_PAIR.fullmatch(word) is not None for word in found)
    return len(found) - pairs + pairs / _PAIRS_PER_WORD


def _weight(found: Identifier) -> int:
    bare_number = found.kind == "number" and found.text.isdigit()
    return 1 if bare_number else _WEIGHTS.get(found.kind, 2)


def _texts_of(message: Message) -> str:
    results = (part.get("content") for part in message.parts if part.get("type") == "tool_result")
    return "\n".join([message.content, *(text for text in results if isinstance(text, str))])

"""The exact checks of a summary: values that nobody stated, and orders to the reader.

Honest text must not be made worse. So the model is asked again about a text that fails. If it still fails, the part
with the value is cut out (``cutting``), or the whole text is removed. No other sentence takes its place, with one
exception: if less than half of a narrative holds, the newest entries are put there instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from datetime import date
from typing import Final

from app.core.model.candidate import Candidate, CandidateItem
from app.core.model.repairs import Cut, Repair, RepairReason
from app.core.model.segments import SegmentDigest
from app.core.model.state import StateEntry, StateSchema
from app.core.text.budget import Budget
from app.core.text.numerals import plain_number
from app.core.text.sentences import ENDS, closed, sentence_spans, sentences
from app.core.text.values import Value, ValueIndex, values
from app.core.validation.calculations import follows_by_calculation
from app.core.validation.cutting import text_before_orders, without_values
from app.core.validation.differences import is_stated_difference
from app.core.validation.orders import orders_in
from app.core.validation.same_subject import has_same_subject
from app.core.validation.source_texts import BACKGROUND, SourceTexts
from app.core.validation.written_calculations import written_calculations

SEGMENTS_FIELD: Final = "segments"
"""The field name of failures in descriptions of segments."""
_HANDOVER_FIELD: Final = "current_state"
"""The field that matters most in a handover."""
_MAX_FAILING_SHARE: Final = 1 / 3
_MIN_REMAINING_SHARE: Final = 0.5
_LINE_ITEMS: Final = 2
_MAX_CALCULATED_OF_STATEMENT: Final = 8
"""The most values of one statement for which calculations are tried."""
_MAX_CALCULATED_OF_ANSWER: Final = 60
"""The most values of a whole answer for which calculations are tried: honest answers have four at most, and one value
may take 0.1 s."""
_MAX_SEARCHED_ORDERS: Final = 100
"""The most orders in an answer that are looked for in the span. Further ones count as if nobody had asked for them."""


MAX_DOUBTS: Final = 40
"""The most failures of an answer that the model is asked about again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One statement that fails a check."""

    field: str
    statement: str
    reason: RepairReason
    index: int | None = None
    """The place of an item in its candidate, or the number of a segment; ``None`` for a sentence of a narrative."""
    values: tuple[Value, ...] = ()
    """The values that were not shown. A statement that fails because of an order may have some too."""
    orders: tuple[str, ...] = ()
    """The sentences that give the reader orders."""
    hints: str = ""
    """What the messages say that may be meant instead: a hint for the model that is asked again."""

    @property
    def key(self) -> tuple[str, int | None, str]:
        """The place of the failing statement."""
        return self.field, self.index, self.statement

    @property
    def is_item(self) -> bool:
        """Whether the statement is an item of a list, not one of several sentences."""
        return self.index is not None and self.field != SEGMENTS_FIELD


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedCandidate:
    """A candidate whose sources are complete, with what fails in it."""

    candidate: Candidate
    failures: tuple[Failure, ...] = ()
    borrowed_values: tuple[Repair, ...] = ()
    """Texts with a value that is elsewhere than in their sources: that is not a failure, but is recorded."""
    calculated_values: ValueIndex = dataclass_field(default_factory=ValueIndex)
    """The values that items calculated from their sources: texts without sources may state them too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairedCandidate:
    """A candidate without failures, and the repairs that made it so."""

    candidate: Candidate
    repairs: tuple[Repair, ...] = ()
    is_refused: bool = False
    """Whether too much of an important text fails: more than a third of the text that is the whole state, or of the
    main field of a handover, and more than one sentence if it has several."""


def examine_candidate(candidate: Candidate, source_texts: SourceTexts) -> ExaminedCandidate:
    """Check every statement of a candidate."""
    return _Examination(source_texts).examined(candidate)


def unsupported_values(
    text: str,
    text_values: Sequence[Value],
    source_texts: SourceTexts,
    seqs: Sequence[int] = (),
    replaced_entries: Sequence[int] = (),
    calculated_values: ValueIndex | None = None,
    calculation_budget: Budget | None = None,
    newest_day: date | None = None,
) -> list[Value]:
    """The values of a statement that were not shown and do not follow from shown values.

    Args:
        text: The statement.
        text_values: Its values.
        source_texts: What was shown.
        seqs: The sources that it names.
        replaced_entries: The entries that it replaces.
        calculated_values: The values that were calculated already.
        calculation_budget: How many values of the answer may still be calculated.
        newest_day: The day of the newest message, for a sentence of a narrative: it may count days to it.
    """
    novel = [
        one
        for one in text_values
        if not (source_texts.shows(one, seqs) or (calculated_values and calculated_values.sources(one)))
    ]
    if not novel:
        return []
    calculations, basis = written_calculations(text), None

    def remaining_after(value: Value) -> list[Value]:
        # If a value follows, its repetitions follow too, unless a calculation next to one has another result.
        repetitions = [one for one in novel if one.forms == value.forms and not calculations.denies(text, one)]
        return [one for one in novel if one is not value and one not in repetitions]

    for value in novel[:_MAX_CALCULATED_OF_STATEMENT]:
        is_shown_number = _shown_number_check(source_texts, text_values, novel)
        if calculations.proves(value, is_shown_number):
            novel, basis = remaining_after(value), None
            continue
        if calculations.denies(text, value):
            continue
        if calculation_budget and not calculation_budget.takes(1):
            break
        if basis is None:
            starts = {one.start for one in novel}
            known = [one for one in text_values if one.start not in starts]
            basis = source_texts.calculation_basis(
                text, novel, known, seqs, replaced_entries, calculations.unshown_operands(is_shown_number)
            )
        if follows_by_calculation(value, replace(basis, newest_day=newest_day)) or is_stated_difference(
            text, value, basis, source_texts.amounts_like(value)
        ):
            novel, basis = remaining_after(value), None
    is_shown_number = _shown_number_check(source_texts, text_values, novel)  # "88 % (362 of 412)": now that 362 follows
    return [one for one in novel if not calculations.proves(one, is_shown_number)]


def _shown_number_check(
    source_texts: SourceTexts, text_values: Sequence[Value], novel: Sequence[Value]
) -> Callable[[float], bool]:
    starts = {one.start for one in novel}
    shown_numbers = {
        plain_number(abs(one.amount)) for one in text_values if one.amount is not None and one.start not in starts
    }
    return lambda number: plain_number(number) in shown_numbers or source_texts.holds_number(number)


class _Examination:
    def __init__(self, source_texts: SourceTexts, calculated_values: ValueIndex | None = None) -> None:
        self._source_texts = source_texts
        self._calculation_budget, self._order_budget = Budget(_MAX_CALCULATED_OF_ANSWER), Budget(_MAX_SEARCHED_ORDERS)
        self._calculated_values = calculated_values or ValueIndex()
        self._failures: list[Failure] = []
        self._borrowed_values: list[Repair] = []

    def examined(self, candidate: Candidate) -> ExaminedCandidate:
        items = tuple(self._examined_item(index, item) for index, item in enumerate(candidate.items))
        for field, text in candidate.narrative.items():
            for sentence in sentences(text):
                self._check_statement(field, None, sentence, self._source_texts.newest_day)
        digests = tuple(self._with_known_tags(digest) for digest in candidate.digests)
        for digest in digests:
            for sentence in (digest.topic, *sentences(digest.brief)):
                self._check_statement(SEGMENTS_FIELD, digest.number, sentence)
        return ExaminedCandidate(
            candidate=replace(candidate, items=items, digests=digests),
            failures=tuple(self._failures),
            borrowed_values=tuple(self._borrowed_values),
            calculated_values=self._calculated_values,
        )

    def fails(self, text: str) -> bool:
        """Whether a sentence that replaces another fails too."""
        known = len(self._failures)
        return len(self.examined(Candidate(narrative={SEGMENTS_FIELD: text})).failures) > known

    def _examined_item(self, index: int, item: CandidateItem) -> CandidateItem:
        text_values, orders = values(item.text), self._unrequested_orders(item.text)
        replaced = self._source_texts.entry_numbers(item.replaces)
        novel = unsupported_values(
            item.text,
            text_values,
            self._source_texts,
            item.from_seqs,
            replaced,
            calculation_budget=self._calculation_budget,
        )
        if orders or novel:
            nearby = self._source_texts.neighbourhood(item.from_seqs)
            self._record_failure(item.field, index, item.text, novel, nearby, orders)
            return item
        for value in text_values:
            if not self._source_texts.sources_of(value):
                self._calculated_values.add(BACKGROUND, value.text)
        nearby_sources = self._source_texts.neighbourhood(item.from_seqs, item.replaces)
        if nearby_sources and any(self._is_borrowed(value, nearby_sources) for value in text_values):
            self._borrowed_values.append(
                Repair(field=item.field, reason="borrowed_value", before=item.text, after=item.text)
            )
        return replace(item, from_seqs=self._source_texts.completed_sources(item.from_seqs, text_values, item.replaces))

    def _with_known_tags(self, digest: SegmentDigest) -> SegmentDigest:
        return replace(
            digest,
            tags=tuple(
                tag
                for tag in digest.tags
                if not unsupported_values(
                    tag, values(tag), self._source_texts, calculation_budget=self._calculation_budget
                )
            ),
        )

    def _is_borrowed(self, value: Value, nearby_sources: set[int]) -> bool:
        sources = self._source_texts.sources_of(value)
        return BACKGROUND not in sources and sources.isdisjoint(nearby_sources)

    def _check_statement(self, field: str, index: int | None, sentence: str, newest_day: date | None = None) -> None:
        if orders := self._unrequested_orders(sentence):
            self._record_failure(field, index, sentence, (), (), orders)
            return
        novel = unsupported_values(
            sentence,
            values(sentence),
            self._source_texts,
            calculated_values=self._calculated_values,
            calculation_budget=self._calculation_budget,
            newest_day=newest_day,
        )
        if novel:
            self._record_failure(field, index, sentence, novel, ())

    def _unrequested_orders(self, text: str) -> list[str]:
        wishes = self._source_texts.wishes
        return [order for order in orders_in(text) if not (self._order_budget.takes(1) and wishes.include(order))]

    def _record_failure(
        self,
        field: str,
        index: int | None,
        text: str,
        novel: Sequence[Value],
        nearby_sources: Iterable[int],
        orders: Sequence[str] = (),
    ) -> None:
        has_hints = not orders and len(self._failures) < MAX_DOUBTS
        self._failures.append(
            Failure(
                field=field,
                index=index,
                statement=text,
                reason="order" if orders else "novel_value",
                values=tuple(novel),
                orders=tuple(orders),
                hints=self._source_texts.hints(text, novel, sorted(nearby_sources)) if has_hints else "",
            )
        )


def with_second_answers(
    examined: ExaminedCandidate, answers: Mapping[int, str], source_texts: SourceTexts
) -> tuple[Candidate, tuple[Repair, ...]]:
    """The candidate with the model's answers to what it was asked again.

    Args:
        examined: The candidate and its failures, in the order in which they were asked about.
        answers: The new statement by the failure's number, from 1 on; an empty text withdraws the statement. A
            statement without an answer stays.
        source_texts: What the model was shown: an answer with other values is not used.
    """
    examination = _Examination(source_texts, examined.calculated_values)
    answered: dict[tuple[str, int | None, str], tuple[Failure, str]] = {}
    for number, failure in enumerate(examined.failures, start=1):
        if number in answers:
            text = _answer_as_statement(failure, answers[number])
            if not text or failure.is_item or not examination.fails(text):
                answered[failure.key] = (failure, text)
    edited = _edited_candidate(examined.candidate, lambda key: answered.get(key, (None, None))[1])
    return edited, _repairs(answered.values())


def _answer_as_statement(failure: Failure, answer: str) -> str:
    text, end = " ".join(answer.split()), failure.statement[-1:]
    # The answer needs a final mark like its statement's, or the next sentence would become a part of it.
    return text + end if text and not failure.is_item and end in ENDS and text[-1] not in ENDS else text


def _repairs(edits: Iterable[tuple[Failure, str]]) -> tuple[Repair, ...]:
    return tuple(
        Repair(field=failure.field, reason=failure.reason, before=failure.statement, after=text or None)
        for failure, text in edits
        if text != failure.statement
    )


def without_failures(
    examined: ExaminedCandidate, schema: StateSchema, previous: Iterable[StateEntry] = ()
) -> RepairedCandidate:
    """The candidate without the statements that still fail.

    Args:
        examined: The candidate, with what fails in it.
        schema: The schema of the candidate.
        previous: Earlier entries. A shortened item surely replaces only those of them that its rest still covers, and
            no narrative of them stays beside newer entries.
    """
    candidate, failures = examined.candidate, examined.failures
    if _is_mostly_unsupported(candidate, failures, schema):
        return RepairedCandidate(candidate=candidate, is_refused=True)
    shortened = {failure.key: (failure, _remaining_statement(failure)) for failure in failures}
    previous = tuple(previous)
    previous_texts = {entry.id: entry.text for entry in previous}
    edited = _edited_candidate(
        candidate, lambda key: shortened[key][1] if key in shortened else None, previous=previous_texts
    )
    earlier_narratives = [one.field for one in previous if one.role == "narrative" and not one.in_doubt]
    narrative, lines = _remaining_narratives(candidate, edited, schema.field_for("fact").name, earlier_narratives)
    replaced_fields = {line.field for line in lines}
    removed = {key for key, (_, text) in shortened.items() if not text}
    places = {field: _kept_sentences_before(field, text, removed) for field, text in candidate.narrative.items()}
    repairs = [
        repair if failure.field in replaced_fields else replace(repair, cut=_restorable_cut(failure, candidate, places))
        for failure, text in shortened.values()
        for repair in _repairs([(failure, text)])
    ]
    return RepairedCandidate(
        candidate=replace(edited, narrative=narrative), repairs=(*examined.borrowed_values, *repairs, *lines)
    )


def _kept_sentences_before(
    field: str, narrative: str, removed: Collection[tuple[str, int | None, str]]
) -> dict[str, int]:
    places: dict[str, int] = {}
    staying = 0
    for sentence in sentences(narrative):
        places.setdefault(sentence, staying)
        staying += (field, None, sentence) not in removed
    return places


def _restorable_cut(failure: Failure, candidate: Candidate, places: Mapping[str, Mapping[str, int]]) -> Cut | None:
    # Orders to the reader are never restored, and code describes a segment whose text was cut.
    if failure.reason != "novel_value" or failure.field == SEGMENTS_FIELD:
        return None
    if failure.index is not None:
        item = candidate.items[failure.index]
        return Cut(from_seqs=item.from_seqs, replaces=item.replaces)
    return Cut(place=places[failure.field][failure.statement])


def _is_mostly_unsupported(candidate: Candidate, failures: Sequence[Failure], schema: StateSchema) -> bool:
    is_whole = not schema.field_for("fact").is_list
    for field, text in candidate.narrative.items():
        if not is_whole and field != _HANDOVER_FIELD:
            continue
        failing, sentence_count = sum(failure.field == field for failure in failures), len(sentences(text))
        # One failing sentence of two may just as well be an error of the check.
        if failing > _MAX_FAILING_SHARE * sentence_count and (failing > 1 or sentence_count == 1):
            return True
    return False


def _edited_candidate(
    candidate: Candidate,
    edit: Callable[[tuple[str, int | None, str]], str | None],
    *,
    previous: Mapping[str, str] | None = None,
) -> Candidate:
    """The candidate with edited statements: ``edit`` gives the new text, empty to remove it, ``None`` to leave it.

    ``previous`` is given if edited statements lose a part. Then an item surely replaces only those of these entries
    that it still covers, and a digest that lost a part is dropped.
    """
    items = []
    for index, item in enumerate(candidate.items):
        text = edit((item.field, index, item.text))
        if text is None:
            items.append(item)
        elif text:
            items.append(replace(item, text=text, unproven=_names_no_longer_covered(item.replaces, text, previous)))
    narrative = {
        field: _edited_text(text, lambda sentence, field=field: edit((field, None, sentence)))  # type: ignore[misc]
        for field, text in candidate.narrative.items()
    }
    digests = tuple(_edited_digest(digest, edit, drops_short=previous is not None) for digest in candidate.digests)
    return replace(candidate, items=tuple(items), narrative=narrative, digests=digests)


def _names_no_longer_covered(names: tuple[str, ...], text: str, previous: Mapping[str, str] | None) -> tuple[str, ...]:
    if previous is None:
        return ()
    return tuple(name for name in names if not (name in previous and _covers(text, previous[name])))


def _covers(text: str, earlier: str) -> bool:
    lost = Counter(one.kind for one in values(earlier)) - Counter(one.kind for one in values(text))
    return not lost and has_same_subject(text, earlier)


def _edited_digest(
    digest: SegmentDigest, edit: Callable[[tuple[str, int | None, str]], str | None], *, drops_short: bool
) -> SegmentDigest:
    topic = edit((SEGMENTS_FIELD, digest.number, digest.topic))
    brief = _edited_text(digest.brief, lambda sentence: edit((SEGMENTS_FIELD, digest.number, sentence)))
    if drops_short and len(brief) < _MIN_REMAINING_SHARE * len(digest.brief):
        brief = ""
    return replace(digest, topic=digest.topic if topic is None else topic, brief=brief)


def _edited_text(text: str, edit: Callable[[str], str | None]) -> str:
    """A text edited sentence by sentence; unchanged sentences stay exactly as they are, spaces included."""
    pieces: list[str] = []
    end = 0
    for start, stop in sentence_spans(text):
        sentence = text[start:stop]
        replacement = edit(sentence)
        if replacement is None:
            pieces.append(text[end:stop])
        elif replacement:
            pieces += [text[end:start], replacement]
        end = stop
    return "".join(pieces).strip()


def _remaining_narratives(
    candidate: Candidate, edited: Candidate, facts: str, earlier_narratives: Iterable[str]
) -> tuple[dict[str, str], list[Repair]]:
    """The narratives of which at least half is left, and for the others lines made from the newest entries.

    A line also takes the place of an earlier narrative that the candidate does not write anew: beside newer entries it
    would be stale.

    Entries of the field of facts are used if there are any, since entries about the mood do not say what happened.
    """
    newest = [item for item in edited.items if item.field == facts] or edited.items
    narratives: dict[str, str] = {}
    repairs: list[Repair] = []
    for field in dict.fromkeys((*candidate.narrative, *earlier_narratives)):
        before, text = candidate.narrative.get(field, ""), edited.narrative.get(field, "")
        if text and len(text) >= _MIN_REMAINING_SHARE * len(before):
            narratives[field] = text
            continue
        line = " ".join(closed(item.text) for item in newest[-_LINE_ITEMS:]) or text
        if before or line:
            repairs.append(Repair(field=field, reason="narrative_line", before=before, after=line or None))
        if line:
            narratives[field] = line
    return narratives, repairs


def _remaining_statement(failure: Failure) -> str:
    if failure.reason != "order":
        return without_values(failure.statement, failure.values)
    rest, failing = text_before_orders(failure.statement, failure.orders), {one.meaning for one in failure.values}
    return without_values(rest, [one for one in values(rest) if one.meaning in failing]) if failing else rest

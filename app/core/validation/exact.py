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
from app.core.validation.calculations import follows
from app.core.validation.cutting import before_orders, without_values
from app.core.validation.differences import differs_as_told
from app.core.validation.orders import orders_in
from app.core.validation.same_subject import is_about_same
from app.core.validation.shown import BACKGROUND, Shown
from app.core.validation.written_calculations import written_calculations

STRETCHES: Final = "segments"
"""The field name of failures in descriptions of stretches."""
_HANDOVER: Final = "current_state"
"""The field that matters most in a handover."""
_MOST_FAILING: Final = 1 / 3
_LEAST_LEFT: Final = 0.5
_LINE_ITEMS: Final = 2
_MOST_RECKONED: Final = 8
"""The most values of one statement for which calculations are tried."""
_MOST_CALCULATED: Final = 60
"""The same for all statements of an answer: honest ones have four at most, and one value may take 0.1 s."""
_MOST_ORDERS: Final = 100
"""The most orders in an answer that are looked for in the span. Further ones count as if nobody had asked for them."""


MOST_DOUBTS: Final = 40
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
    orders: tuple[str, ...] = ()
    """The sentences that give the reader orders."""
    says: str = ""
    """What the messages say that may be meant instead: a hint for the model that is asked again."""

    @property
    def key(self) -> tuple[str, int | None, str]:
        """The place of the failing statement."""
        return self.field, self.index, self.statement

    @property
    def is_item(self) -> bool:
        """Whether the statement is an item of a list, not one of several sentences."""
        return self.index is not None and self.field != STRETCHES


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A candidate whose sources are complete, with what fails in it."""

    candidate: Candidate
    failures: tuple[Failure, ...] = ()
    borrowed: tuple[Repair, ...] = ()
    """Texts with a value that is elsewhere than in their sources: that is not a failure, but is recorded."""
    calculated: ValueIndex = dataclass_field(default_factory=ValueIndex)
    """The values that items calculated from their sources: texts without sources may state them too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A candidate without failures, and the repairs that made it so."""

    candidate: Candidate
    repairs: tuple[Repair, ...] = ()
    is_refused: bool = False
    """Whether too much of an important text fails: more than a third of the text that is the whole state, or of the
    main field of a handover, and more than one sentence if it has several."""


def examine(candidate: Candidate, shown: Shown) -> Examined:
    """Check every statement of a candidate."""
    return _Examination(shown).of(candidate)


def unsupported_values(
    text: str,
    found: Sequence[Value],
    shown: Shown,
    seqs: Sequence[int] = (),
    beside: Sequence[int] = (),
    calculated: ValueIndex | None = None,
    left: Budget | None = None,
    now: date | None = None,
) -> list[Value]:
    """The values of a statement that were not shown and do not follow from shown values.

    Args:
        text: The statement.
        found: Its values.
        shown: What was shown.
        seqs: The sources that it names.
        beside: The entries that it replaces.
        calculated: The values that were calculated already.
        left: How many values of the answer may still be calculated.
        now: The day of the newest message, for a sentence of a narrative: it may count days to it.
    """
    novel = [one for one in found if not (shown.shows(one, seqs) or (calculated and calculated.sources(one)))]
    if not novel:
        return []
    written, basis = written_calculations(text), None

    def left_after(value: Value) -> list[Value]:
        # If a value follows, its repetitions follow too, unless a calculation beside one has another result.
        told_again = [one for one in novel if one.forms == value.forms and not written.deny(text, one)]
        return [one for one in novel if one is not value and one not in told_again]

    for value in novel[:_MOST_RECKONED]:
        told = _check_of_told_numbers(shown, found, novel)
        if written.prove(value, told):
            novel, basis = left_after(value), None
            continue
        if written.deny(text, value):
            continue
        if left and not left.takes(1):
            break
        if basis is None:
            starts = {one.start for one in novel}
            known = [one for one in found if one.start not in starts]
            basis = shown.basis(text, novel, known, seqs, beside, written.untold(told))
        if follows(value, replace(basis, now=now)) or differs_as_told(text, value, basis, shown.amounts_like(value)):
            novel, basis = left_after(value), None
    told = _check_of_told_numbers(shown, found, novel)  # "88 % (362 of 412)": now that 362 follows
    return [one for one in novel if not written.prove(one, told)]


def _check_of_told_numbers(shown: Shown, found: Sequence[Value], novel: Sequence[Value]) -> Callable[[float], bool]:
    starts = {one.start for one in novel}
    here = {plain_number(abs(one.amount)) for one in found if one.amount is not None and one.start not in starts}
    return lambda number: plain_number(number) in here or shown.holds_number(number)


class _Examination:
    def __init__(self, shown: Shown, calculated: ValueIndex | None = None) -> None:
        self._shown = shown
        self._left, self._orders = Budget(_MOST_CALCULATED), Budget(_MOST_ORDERS)
        self._calculated = calculated or ValueIndex()
        self._failures: list[Failure] = []
        self._borrowed: list[Repair] = []

    def of(self, candidate: Candidate) -> Examined:
        items = tuple(self._item(index, item) for index, item in enumerate(candidate.items))
        for field, text in candidate.narrative.items():
            for sentence in sentences(text):
                self._statement(field, None, sentence, self._shown.newest_day)
        digests = tuple(self._with_known_tags(digest) for digest in candidate.digests)
        for digest in digests:
            for sentence in (digest.topic, *sentences(digest.brief)):
                self._statement(STRETCHES, digest.number, sentence)
        return Examined(
            candidate=replace(candidate, items=items, digests=digests),
            failures=tuple(self._failures),
            borrowed=tuple(self._borrowed),
            calculated=self._calculated,
        )

    def fails(self, text: str) -> bool:
        """Whether a sentence that replaces another fails too."""
        known = len(self._failures)
        return len(self.of(Candidate(narrative={STRETCHES: text})).failures) > known

    def _item(self, index: int, item: CandidateItem) -> CandidateItem:
        found = values(item.text)
        if self._fails_by_order(item.field, index, item.text):
            return item
        replaced = self._shown.numbers(item.replaces)
        novel = unsupported_values(item.text, found, self._shown, item.from_seqs, replaced, left=self._left)
        if novel:
            self._fail(item.field, index, item.text, novel, self._shown.near(item.from_seqs))
            return item
        for value in found:
            if not self._shown.sources(value):
                self._calculated.add(BACKGROUND, value.text)
        near = self._shown.near(item.from_seqs, item.replaces)
        if near and any(self._is_borrowed(value, near) for value in found):
            self._borrowed.append(Repair(field=item.field, reason="borrowed_value", before=item.text, after=item.text))
        return replace(item, from_seqs=self._shown.completed(item.from_seqs, found, item.replaces))

    def _with_known_tags(self, digest: SegmentDigest) -> SegmentDigest:
        return replace(
            digest,
            tags=tuple(
                tag for tag in digest.tags if not unsupported_values(tag, values(tag), self._shown, left=self._left)
            ),
        )

    def _is_borrowed(self, value: Value, near: set[int]) -> bool:
        sources = self._shown.sources(value)
        return BACKGROUND not in sources and sources.isdisjoint(near)

    def _statement(self, field: str, index: int | None, sentence: str, now: date | None = None) -> None:
        if self._fails_by_order(field, index, sentence):
            return
        novel = unsupported_values(
            sentence, values(sentence), self._shown, calculated=self._calculated, left=self._left, now=now
        )
        if novel:
            self._fail(field, index, sentence, novel, ())

    def _fails_by_order(self, field: str, index: int | None, text: str) -> bool:
        told = orders_in(text)
        orders = [order for order in told if not (self._orders.takes(1) and self._shown.wishes.include(order))]
        if orders:
            failure = Failure(field=field, index=index, statement=text, reason="order", orders=tuple(orders))
            self._failures.append(failure)
        return bool(orders)

    def _fail(self, field: str, index: int | None, text: str, novel: Sequence[Value], near: Iterable[int]) -> None:
        self._failures.append(
            Failure(
                field=field,
                index=index,
                statement=text,
                reason="novel_value",
                values=tuple(novel),
                says=self._shown.says(text, novel, sorted(near)) if len(self._failures) < MOST_DOUBTS else "",
            )
        )


def with_answers(examined: Examined, answers: Mapping[int, str], shown: Shown) -> tuple[Candidate, tuple[Repair, ...]]:
    """The candidate with the model's answers to what it was asked again.

    Args:
        examined: The candidate and its failures, in the order in which they were asked about.
        answers: The new statement by the failure's number, from 1 on; an empty text withdraws the statement. A
            statement without an answer stays.
        shown: What the model was shown: an answer with other values is not used.
    """
    examination = _Examination(shown, examined.calculated)
    told = {
        failure.key: (failure, text)
        for number, failure in enumerate(examined.failures, start=1)
        if number in answers
        and (
            (text := _answer_as_statement(failure, answers[number])) == ""
            or failure.is_item
            or not examination.fails(text)
        )
    }
    made = _edited(examined.candidate, lambda key: told.get(key, (None, None))[1])
    return made, _repairs(told.values())


def _answer_as_statement(failure: Failure, answer: str) -> str:
    text, end = " ".join(answer.split()), failure.statement[-1:]
    # The answer needs a final mark like its statement's, or the next sentence would become a part of it.
    return text + end if text and not failure.is_item and end in ENDS and text[-1] not in ENDS else text


def _repairs(told: Iterable[tuple[Failure, str]]) -> tuple[Repair, ...]:
    return tuple(
        Repair(field=failure.field, reason=failure.reason, before=failure.statement, after=text or None)
        for failure, text in told
        if text != failure.statement
    )


def without_failures(examined: Examined, schema: StateSchema, previous: Iterable[StateEntry] = ()) -> Settled:
    """The candidate without the statements that still fail.

    Args:
        examined: The candidate, with what fails in it.
        schema: The schema of the candidate.
        previous: Earlier entries. A shortened item surely replaces only those of them that its rest still tells.
    """
    candidate, failures = examined.candidate, examined.failures
    if _is_mostly_made_up(candidate, failures, schema):
        return Settled(candidate=candidate, is_refused=True)
    cut = {failure.key: (failure, _rest_of_statement(failure)) for failure in failures}
    told = {entry.id: entry.text for entry in previous}
    made = _edited(candidate, lambda key: cut[key][1] if key in cut else None, previous=told)
    narrative, lines = _narratives_left(candidate, made, schema.home("fact").name)
    lost = {line.field for line in lines}
    gone = {key for key, (_, text) in cut.items() if not text}
    places = {field: _kept_sentences_before(field, text, gone) for field, text in candidate.narrative.items()}
    repairs = [
        repair if failure.field in lost else replace(repair, cut=_restorable_cut(failure, candidate, places))
        for failure, text in cut.values()
        for repair in _repairs([(failure, text)])
    ]
    return Settled(candidate=replace(made, narrative=narrative), repairs=(*examined.borrowed, *repairs, *lines))


def _kept_sentences_before(field: str, narrative: str, gone: Collection[tuple[str, int | None, str]]) -> dict[str, int]:
    places: dict[str, int] = {}
    staying = 0
    for sentence in sentences(narrative):
        places.setdefault(sentence, staying)
        staying += (field, None, sentence) not in gone
    return places


def _restorable_cut(failure: Failure, candidate: Candidate, places: Mapping[str, Mapping[str, int]]) -> Cut | None:
    # Orders to the reader are never restored, and code describes a stretch whose text was cut.
    if failure.reason != "novel_value" or failure.field == STRETCHES:
        return None
    if failure.index is not None:
        item = candidate.items[failure.index]
        return Cut(from_seqs=item.from_seqs, replaces=item.replaces)
    return Cut(place=places[failure.field][failure.statement])


def _is_mostly_made_up(candidate: Candidate, failures: Sequence[Failure], schema: StateSchema) -> bool:
    is_whole = not schema.home("fact").is_list
    for field, text in candidate.narrative.items():
        if not is_whole and field != _HANDOVER:
            continue
        failing, told = sum(failure.field == field for failure in failures), len(sentences(text))
        # One failing sentence of two may just as well be an error of the check.
        if failing > _MOST_FAILING * told and (failing > 1 or told == 1):
            return True
    return False


def _edited(
    candidate: Candidate,
    edit: Callable[[tuple[str, int | None, str]], str | None],
    *,
    previous: Mapping[str, str] | None = None,
) -> Candidate:
    """The candidate with edited statements: ``edit`` gives the new text, empty to remove it, ``None`` to leave it.

    ``previous`` is given if edited statements lose a part. Then an item surely replaces only those of these entries
    that it still tells, and a digest that lost a part is dropped.
    """
    items = []
    for index, item in enumerate(candidate.items):
        text = edit((item.field, index, item.text))
        if text is None:
            items.append(item)
        elif text:
            items.append(replace(item, text=text, unproven=_no_longer_told(item.replaces, text, previous)))
    narrative = {
        field: _retold(text, lambda sentence, field=field: edit((field, None, sentence)))  # type: ignore[misc]
        for field, text in candidate.narrative.items()
    }
    digests = tuple(_redescribed(digest, edit, voids=previous is not None) for digest in candidate.digests)
    return replace(candidate, items=tuple(items), narrative=narrative, digests=digests)


def _no_longer_told(names: tuple[str, ...], text: str, previous: Mapping[str, str] | None) -> tuple[str, ...]:
    if previous is None:
        return ()
    return tuple(name for name in names if not (name in previous and _retells_all_of(text, previous[name])))


def _retells_all_of(text: str, earlier: str) -> bool:
    lost = Counter(one.kind for one in values(earlier)) - Counter(one.kind for one in values(text))
    return not lost and is_about_same(text, earlier)


def _redescribed(
    digest: SegmentDigest, edit: Callable[[tuple[str, int | None, str]], str | None], *, voids: bool
) -> SegmentDigest:
    topic = edit((STRETCHES, digest.number, digest.topic))
    brief = _retold(digest.brief, lambda sentence: edit((STRETCHES, digest.number, sentence)))
    if voids and len(brief) < _LEAST_LEFT * len(digest.brief):
        brief = ""
    return replace(digest, topic=digest.topic if topic is None else topic, brief=brief)


def _retold(text: str, edit: Callable[[str], str | None]) -> str:
    """A text edited sentence by sentence; unchanged sentences stay exactly as they are, spaces included."""
    pieces: list[str] = []
    end = 0
    for start, stop in sentence_spans(text):
        sentence = text[start:stop]
        told = edit(sentence)
        if told is None:
            pieces.append(text[end:stop])
        elif told:
            pieces += [text[end:start], told]
        end = stop
    return "".join(pieces).strip()


def _narratives_left(written: Candidate, made: Candidate, facts: str) -> tuple[dict[str, str], list[Repair]]:
    """The narratives of which at least half is left, and for the others lines made from the newest entries.

    Entries of the field of facts are used if there are any, since entries about the mood do not say what happened.
    """
    newest = [item for item in made.items if item.field == facts] or made.items
    kept: dict[str, str] = {}
    repairs: list[Repair] = []
    for field, before in written.narrative.items():
        text = made.narrative.get(field, "")
        if text and len(text) >= _LEAST_LEFT * len(before):
            kept[field] = text
            continue
        line = " ".join(closed(item.text) for item in newest[-_LINE_ITEMS:]) or text
        repairs.append(Repair(field=field, reason="narrative_line", before=before, after=line or None))
        if line:
            kept[field] = line
    return kept, repairs


def _rest_of_statement(failure: Failure) -> str:
    if failure.reason == "order":
        return before_orders(failure.statement, failure.orders)
    return without_values(failure.statement, failure.values)

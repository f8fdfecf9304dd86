"""Asks a model about its own answer again: about what fails in it, and about values that would be lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from app.core.anchors.prompt_ids import prompt_ids_of, without_prompt_ids
from app.core.model.candidate import CandidateItem
from app.core.model.model_io import Doubt, SummaryRequest
from app.core.model.state import StateSchema
from app.core.summarizer.candidate import json_in_answer, number_in, says_anything, sources_in, statement_in
from app.core.summarizer.prompts import without_prompt_words
from app.core.text.words import stems
from app.core.validation.exact_checks import MAX_DOUBTS, Failure
from app.core.validation.excuses import is_excuse

MAX_ADDED_ITEMS: Final = 10
_MAX_STATEMENT_LENGTH: Final = 4_000  # characters of one statement
_MAX_VALUES: Final = 5
_MAX_SOURCES: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondAnswer:
    """What a model answered when it was asked again."""

    statements: Mapping[int, str] = field(default_factory=dict)
    """The new statements by number; an empty text withdraws a statement."""
    added: tuple[CandidateItem, ...] = ()
    """New items for the values that would have been lost."""


def doubts_of(failures: Iterable[Failure]) -> tuple[Doubt, ...]:
    """The failures as they are put to the model, in their order."""
    return tuple(
        Doubt(
            field=failure.field,
            statement=failure.statement,
            values=() if failure.orders else tuple(dict.fromkeys(value.text for value in failure.values))[:_MAX_VALUES],
            says=failure.hints,
        )
        for failure in islice(failures, MAX_DOUBTS)
    )


def parse_second_answer(text: str, schema: StateSchema, request: SummaryRequest) -> SecondAnswer:
    """Read the answer. Ids of kept passages become numbers of messages; what cannot be read is ignored."""
    try:
        data = json_in_answer(text)
    except ValueError:
        return SecondAnswer()
    if not isinstance(data, dict):
        return SecondAnswer()
    names = {one.name for one in schema.fields}
    passages = {name for name, _ in prompt_ids_of(request.anchors)}
    doubts = dict(enumerate(request.doubts, start=1))
    statements: dict[int, str] = {}
    for one in _objects(data.get("statements"), len(doubts)):
        number, copied = number_in(one.get("n")), _text(one.get("text"), passages)
        if number in doubts and copied is not None:
            statement = without_prompt_words(copied, doubts[number])
            if _answers_doubt(statement, doubts[number].statement):
                statements[number] = statement
    added: list[CandidateItem] = []
    for one in _objects(data.get("added"), MAX_ADDED_ITEMS):
        field, item_text = one.get("field"), _text(one.get("text"), passages) or ""
        if field in names and says_anything(item_text) and not is_excuse(item_text):
            sources = sources_in(one.get("from"))[:_MAX_SOURCES]
            added.append(CandidateItem(field=field, text=item_text, from_seqs=sources))
    return SecondAnswer(statements=statements, added=tuple(added))


def _text(value: Any, passages: Collection[str]) -> str | None:
    if not isinstance(value, str) or len(value) > _MAX_STATEMENT_LENGTH:
        return None
    return without_prompt_ids(statement_in(value), passages)


def _answers_doubt(text: str, doubted: str) -> bool:
    """Whether a text withdraws a statement or replaces it; a refusal, "N/A" or "- -" does neither."""
    is_long = len(text.split()) > 1 and says_anything(text)
    is_statement = is_long or not set(stems(text)).isdisjoint(stems(doubted))
    return not text or (is_statement and (is_excuse(doubted) or not is_excuse(text)))


def _objects(value: Any, most: int) -> Sequence[Mapping[str, Any]]:
    return [one for one in value[: 2 * most + 2] if isinstance(one, dict)] if isinstance(value, list) else []

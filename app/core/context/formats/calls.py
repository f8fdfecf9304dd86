"""Pairs tool calls with their results, wherever in a context they stand."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.core.context.formats.values import Call, Result
from app.core.context.formats.words import UniqueIds, served_arguments, tool_name
from app.core.model.model_io import ContextMessage
from app.core.text.contents import is_base64
from app.core.text.parts import Part, as_text, own_content

STUB_RESULT: Final = "interrupted"
"""The substitute for the result of a call that never got one, since providers refuse an unanswered call."""

PartPosition = tuple[int, int]
"""(the number of a part's message, the number of the part in it)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a call as a message brings it."""

    call: PartPosition
    place: PartPosition
    """The place of the result."""
    result: Part
    content: Any
    """What the result holds, with other text of its message if the result is the first of them that answers a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPairs:
    """The calls of a context, each with its result."""

    calls: Mapping[int, Sequence[tuple[Call, Result]]]
    """The calls, in order, by the number of the message that makes them."""
    paired_results: frozenset[PartPosition]
    """The places of results that belong to a call: they are not sent anywhere else."""

    def parts_without_paired_results(self, index: int, message: ContextMessage) -> list[Part]:
        """The parts of a message that are not results of calls in this context."""
        return [part for number, part in enumerate(message.parts) if (index, number) not in self.paired_results]


def pair_up(messages: Sequence[ContextMessage], *, empty: str) -> CallPairs:
    """Pair calls and results: a result answers the last call with its id before it, and a call's last result counts.

    If a client used one id for several calls, the results are assigned to them in order. ``empty`` replaces a result
    without content, since providers refuse empty content.
    """
    calls_by_id = places_of_calls(messages)
    answers = answers_of_calls(messages, calls_by_id)
    return CallPairs(
        calls=_with_unique_ids(messages, calls_by_id, {answer.call: answer for answer in answers}, empty),
        paired_results=frozenset(answer.place for answer in answers),
    )


def answers_of_calls(
    messages: Sequence[ContextMessage], calls_by_id: Mapping[str, Sequence[PartPosition]]
) -> list[Answer]:
    """The results of these calls, in order."""
    answers: list[Answer] = []
    for index, message in enumerate(messages):
        other_text = own_content("tool", message.content, message.parts) if message.role == "tool" else ""
        for number, part in enumerate(message.parts):
            places = calls_by_id.get(str(part.get("tool_call_id")))
            if part.get("type") == "tool_result" and places:
                place = (index, number)
                answers.append(Answer(_answered_call(places, place), place, part, _with_text(part, other_text)))
                other_text = ""
    return answers


def places_of_calls(messages: Sequence[ContextMessage]) -> dict[str, list[PartPosition]]:
    """The places of the calls that assistants make, in order, by the id of the call."""
    found: dict[str, list[PartPosition]] = defaultdict(list)
    for index, message in enumerate(messages):
        for number, part in enumerate(message.parts if message.role == "assistant" else ()):
            if part.get("type") == "tool_call":
                found[str(part.get("id"))].append((index, number))
    return found


def _answered_call(places: Sequence[PartPosition], result: PartPosition) -> PartPosition:
    """The place of the call that a result answers: of the calls with its id, the last one before it."""
    return places[max(bisect_left(places, result) - 1, 0)]


def _with_unique_ids(
    messages: Sequence[ContextMessage],
    calls_by_id: Mapping[str, list[PartPosition]],
    answers: Mapping[PartPosition, Answer],
    empty: str,
) -> dict[int, list[tuple[Call, Result]]]:
    """The calls in order of place, with unique ids."""
    pairs: dict[int, list[tuple[Call, Result]]] = defaultdict(list)
    ids = UniqueIds()
    for place in sorted(place for places in calls_by_id.values() for place in places):
        part = messages[place[0]].parts[place[1]]
        call = Call(
            id=ids.unique(part.get("id")),
            name=tool_name(part.get("name")),
            arguments=served_arguments(part.get("arguments")),
            signature=_gemini_signature(part),
        )
        content: Any = STUB_RESULT
        if place in answers:
            content = answers[place].content
            content = empty if content is None or not as_text(content).strip() else content
        pairs[place[0]].append((call, Result(call_id=call.id, name=call.name, content=content)))
    return pairs


def _with_text(result: Part, text: str) -> Any:
    content = result.get("content")
    if not text.strip():
        return content
    return {"content": content, "text": text} if content else text


def _gemini_signature(part: Part) -> str | None:
    # The signature is a client's own, or one that came with the call from Gemini, never from another provider.
    signature = part.get("thought_signature", part.get("thoughtSignature"))
    details = part.get("details")
    if signature is None and isinstance(details, Mapping) and str(details.get("provider")).startswith("google"):
        signature = details.get("thought_signature")
    return signature if isinstance(signature, str) and signature and is_base64(signature) else None

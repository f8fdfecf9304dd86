"""Pairs tool calls with their results, wherever in a context they stand."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
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
    result_of_call: dict[PartPosition, tuple[PartPosition, Part]] = {}
    paired_results: set[PartPosition] = set()
    for place, part in _parts_of_kind(messages, "tool_result"):
        places = calls_by_id.get(str(part.get("tool_call_id")))
        if places:
            result_of_call[answered_call(places, place)] = (place, part)
            paired_results.add(place)
    return CallPairs(
        calls=_with_unique_ids(messages, calls_by_id, result_of_call, empty), paired_results=frozenset(paired_results)
    )


def places_of_calls(messages: Sequence[ContextMessage]) -> dict[str, list[PartPosition]]:
    """The places of the calls that assistants make, in order, by the id of the call."""
    found: dict[str, list[PartPosition]] = defaultdict(list)
    for place, part in _parts_of_kind(messages, "tool_call"):
        if messages[place[0]].role == "assistant":
            found[str(part.get("id"))].append(place)
    return found


def answered_call(places: Sequence[PartPosition], result: PartPosition) -> PartPosition:
    """The place of the call that a result answers: of the calls with its id, the last one before it."""
    return places[max(bisect_left(places, result) - 1, 0)]


def _with_unique_ids(
    messages: Sequence[ContextMessage],
    calls_by_id: Mapping[str, list[PartPosition]],
    result_of_call: Mapping[PartPosition, tuple[PartPosition, Part]],
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
        if place in result_of_call:
            (index, number), result = result_of_call[place]
            content = _result_content(result, messages[index], is_first=_first_result(messages[index]) == number)
            content = content if as_text(content).strip() else empty
        pairs[place[0]].append((call, Result(call_id=call.id, name=call.name, content=content)))
    return pairs


def _parts_of_kind(messages: Sequence[ContextMessage], kind: str) -> Iterator[tuple[PartPosition, Part]]:
    for index, message in enumerate(messages):
        for number, part in enumerate(message.parts):
            if part.get("type") == kind:
                yield (index, number), part


def _first_result(message: ContextMessage) -> int:
    return next(number for number, part in enumerate(message.parts) if part.get("type") == "tool_result")


def _result_content(part: Part, message: ContextMessage, *, is_first: bool) -> Any:
    # Other text of the message is sent with the first of its results.
    includes_text = message.role == "tool" and is_first
    content, text = part.get("content"), own_content("tool", message.content, message.parts) if includes_text else ""
    if text.strip():
        content = {"content": content, "text": text} if content else text
    return "" if content is None else content


def _gemini_signature(part: Part) -> str | None:
    # The signature is a client's own, or one that came with the call from Gemini, never from another provider.
    signature = part.get("thought_signature", part.get("thoughtSignature"))
    details = part.get("details")
    if signature is None and isinstance(details, Mapping) and str(details.get("provider")).startswith("google"):
        signature = details.get("thought_signature")
    return signature if isinstance(signature, str) and signature and is_base64(signature) else None

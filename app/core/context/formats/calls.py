"""Pairs tool calls with their results, wherever in a context they stand."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.core.context.formats.values import Call, Result
from app.core.context.formats.words import Ids, served_arguments, tool_name
from app.core.model.model_io import ContextMessage
from app.core.text.contents import is_base64
from app.core.text.parts import Part, as_text, own_content

STUB_RESULT: Final = "interrupted"
"""The substitute for the result of a call that never got one, since providers refuse an unanswered call."""

Place = tuple[int, int]
"""(the number of a part's message, the number of the part in it)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """The calls of a context, each with its result."""

    calls: Mapping[int, Sequence[tuple[Call, Result]]]
    """The calls, in order, by the number of the message that makes them."""
    answering: frozenset[Place]
    """The places of results that belong to a call: they are not sent anywhere else."""

    def unanswering(self, index: int, message: ContextMessage) -> list[Part]:
        """The parts of a message that are not results of calls in this context."""
        return [part for number, part in enumerate(message.parts) if (index, number) not in self.answering]


def pair_up(messages: Sequence[ContextMessage], *, empty: str) -> Pairs:
    """Pair calls and results: a result answers the last call with its id before it, and a call's last result counts.

    If a client used one id for several calls, the results are assigned to them in order. ``empty`` replaces a result
    without content, since providers refuse empty content.
    """
    made: dict[str, list[Place]] = defaultdict(list)
    for place, part in _parts_of_kind(messages, "tool_call"):
        if messages[place[0]].role == "assistant":
            made[str(part.get("id"))].append(place)
    found: dict[Place, tuple[Place, Part]] = {}
    answering: set[Place] = set()
    for place, part in _parts_of_kind(messages, "tool_result"):
        places = made.get(str(part.get("tool_call_id")))
        if places:
            found[places[max(bisect_left(places, place) - 1, 0)]] = (place, part)
            answering.add(place)
    return Pairs(calls=_with_unique_ids(messages, made, found, empty), answering=frozenset(answering))


def _with_unique_ids(
    messages: Sequence[ContextMessage],
    made: Mapping[str, list[Place]],
    found: Mapping[Place, tuple[Place, Part]],
    empty: str,
) -> dict[int, list[tuple[Call, Result]]]:
    """The calls in order of place, with unique ids."""
    pairs: dict[int, list[tuple[Call, Result]]] = defaultdict(list)
    ids = Ids()
    for place in sorted(place for places in made.values() for place in places):
        part = messages[place[0]].parts[place[1]]
        call = Call(
            id=ids.like(part.get("id")),
            name=tool_name(part.get("name")),
            arguments=served_arguments(part.get("arguments")),
            signature=_gemini_signature(part),
        )
        content: Any = STUB_RESULT
        if place in found:
            (index, number), result = found[place]
            content = _result_content(result, messages[index], is_first=_first_result(messages[index]) == number)
            content = content if as_text(content).strip() else empty
        pairs[place[0]].append((call, Result(call_id=call.id, name=call.name, content=content)))
    return pairs


def _parts_of_kind(messages: Sequence[ContextMessage], kind: str) -> Iterator[tuple[Place, Part]]:
    for index, message in enumerate(messages):
        for number, part in enumerate(message.parts):
            if part.get("type") == kind:
                yield (index, number), part


def _first_result(message: ContextMessage) -> int:
    return next(number for number, part in enumerate(message.parts) if part.get("type") == "tool_result")


def _result_content(part: Part, message: ContextMessage, *, is_first: bool) -> Any:
    # Other text of the message is sent with the first of its results.
    is_told = message.role == "tool" and is_first
    content, said = part.get("content"), own_content("tool", message.content, message.parts) if is_told else ""
    if said.strip():
        content = {"content": content, "text": said} if content else said
    return "" if content is None else content


def _gemini_signature(part: Part) -> str | None:
    # The signature is a client's own, or one that came with the call from Gemini, never from another provider.
    found = part.get("thought_signature", part.get("thoughtSignature"))
    details = part.get("details")
    if found is None and isinstance(details, Mapping) and str(details.get("provider")).startswith("google"):
        found = details.get("thought_signature")
    return found if isinstance(found, str) and found and is_base64(found) else None

"""The outcomes of calls to tools that change something, if the tool says the outcome in words.

A call alone reads as if it had succeeded. So the refusal of a refused call has to be told with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from app.core.model.conversation import Message
from app.core.reading.cues import READING_TOOL
from app.core.reading.tool_data_lines import parsed_dump
from app.core.text.languages.combined_words import words_of
from app.core.text.parts import as_text
from app.core.text.shortening import clip

_MAX_OUTCOME_LENGTH: Final = 120  # characters; a longer result is data
_ERRORS: Final = tuple(words_of("refusals", "errors"))

Outcomes = Mapping[tuple[int, str], tuple[int, str]]
"""For each call, by (message, id): (the message with its result, the text of the result)."""


def outcomes(messages: Iterable[Message]) -> Outcomes:
    """The outcomes of all calls that change something. Where calls share an id, a result belongs to the newest one."""
    found: dict[tuple[int, str], tuple[int, str]] = {}
    seq_of_call: dict[str, int] = {}
    for message in messages:
        for part in message.parts:
            if part.get("type") == "tool_call" and not READING_TOOL.match(str(part.get("name"))):
                seq_of_call[str(part.get("id"))] = message.seq
            elif part.get("type") == "tool_result" and (outcome := _short_outcome(part.get("content", ""))):
                call_id = str(part.get("tool_call_id"))
                if call_id in seq_of_call:
                    found[seq_of_call.pop(call_id), call_id] = (message.seq, outcome)
    return found


def _short_outcome(content: Any) -> str:
    text = as_text(content).strip()
    data = parsed_dump(text)
    if data is not None:
        error = data.get("error") if isinstance(data, Mapping) else None
        return clip(" ".join(error.split()), _MAX_OUTCOME_LENGTH) if isinstance(error, str) else ""
    if text.startswith(_ERRORS):
        return clip(text.partition("\n")[0], _MAX_OUTCOME_LENGTH)
    return " ".join(text.split()) if len(text) <= _MAX_OUTCOME_LENGTH and text[:1] not in {"{", "["} else ""

"""The signatures of Gemini's calls, as OpenRouter sends them: beside the reply, not with the calls.

Gemini refuses a call that comes back without its signature.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from openai.types.chat.chat_completion_chunk import ChoiceDelta, ChoiceDeltaToolCall

from app.providers.messages import EXTRA_CONTENT

_DETAILS: Final = "reasoning_details"
"""The field for signatures and for reasoning, in replies as in requests."""
_GEMINI: Final = "google-gemini-v1"
"""The format of Gemini's signatures. Other models answer without what they thought before."""


@dataclass(slots=True)
class CallSignatures:
    """Puts the signatures of a stream onto its first call, with which they are kept."""

    _found: list[object] = field(default_factory=list)
    _first_call: int | None = None
    """The index of the first call."""

    def put_on_call(self, delta: ChoiceDelta) -> None:
        """Look for signatures and calls in a piece of the stream."""
        found = list(_signatures_in(getattr(delta, _DETAILS, None)))
        self._found += found
        is_first = self._first_call is None and bool(delta.tool_calls)
        if delta.tool_calls and is_first:
            self._first_call = delta.tool_calls[0].index
        if self._first_call is None or not self._found or not (found or is_first):
            return
        signed = {"index": self._first_call, EXTRA_CONTENT: {_DETAILS: list(self._found)}}
        delta.tool_calls = [*(delta.tool_calls or ()), ChoiceDeltaToolCall.construct(None, **signed)]


def give_signatures_back(messages: Iterable[Any]) -> None:
    """Move the signatures of calls in a request to where OpenRouter looks for them."""
    for message in messages:
        for call in message.get("tool_calls") or ():
            extra = call.get(EXTRA_CONTENT)
            details = extra.get(_DETAILS) if isinstance(extra, Mapping) else None
            if isinstance(details, list):
                del call[EXTRA_CONTENT]
                message[_DETAILS] = [*message.get(_DETAILS, ()), *details]


def _signatures_in(details: object) -> Iterable[object]:
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, Mapping) and detail.get("format") == _GEMINI and detail.get("data"):
            yield detail

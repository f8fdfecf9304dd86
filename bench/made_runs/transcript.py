"""A run in the making: messages in the shape of the data sets in ``../shared/data``."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

_DIGITS: Final = "0123456789"
_SIGNS: Final = "0123456789abcdef"


class Transcript:
    """Messages of one run, in order; a call is followed by its result."""

    def __init__(self, system: str, draw: random.Random) -> None:
        self.draw = draw
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": system, "parts": []}]

    def user(self, *ways: str) -> None:
        """Add a user's message: one of these, chosen at random."""
        self._say("user", self.draw.choice(ways))

    def assistant(self, *ways: str) -> None:
        """Add an assistant's message: one of these, chosen at random."""
        self._say("assistant", self.draw.choice(ways))

    def call(self, name: str, result: Any, /, **arguments: Any) -> None:
        """Add a call and its result: data as JSON, a text as it is."""
        text = result if isinstance(result, str) else json.dumps(result)
        made = f"call_{digits(self.draw, 8)}"
        call = {"type": "tool_call", "id": made, "name": name, "arguments": json.dumps(arguments)}
        back = {"type": "tool_result", "id": made, "name": name, "content": text}
        self.messages.append({"role": "assistant", "content": "", "parts": [call]})
        self.messages.append({"role": "tool", "content": text, "parts": [back]})

    def row(self, name: str) -> dict[str, Any]:
        """The run as a line of a data set."""
        return {"id": name, "source": "made", "messages": self.messages}

    def _say(self, role: str, text: str) -> None:
        self.messages.append({"role": role, "content": text, "parts": []})


def digits(draw: random.Random, count: int) -> str:
    """So many digits, without a leading zero."""
    return draw.choice(_DIGITS[1:]) + "".join(draw.choices(_DIGITS, k=count - 1))


def hexadecimal(draw: random.Random, count: int) -> str:
    """So many hexadecimal digits."""
    return "".join(draw.choices(_SIGNS, k=count))


def shown(options: Mapping[str, Any]) -> str:
    """Options of a thing, as an assistant describes them."""
    return ", ".join(f"{name}: {value}" for name, value in options.items())


def listed(lines: Sequence[str]) -> str:
    """A numbered list."""
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))

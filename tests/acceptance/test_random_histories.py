"""A client that sends its whole history and often loses the answer: what is stored is what it has, each message once.

The client draws what it does: it says something, perhaps what it said before; sends results of tools; or asks for
another reply. Some answers get lost, some fail, and it sends the same history again, with or without a count of tries.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest

from tests.acceptance.service import Service
from tests.acceptance.test_openai import chat, conversation, done, good, provider, service, user
from tests.openai_server import Behaviour, OpenAI

__all__ = ["provider", "service"]

Json = dict[str, Any]
TOOL: Final = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
STEPS: Final = 12
MOST_TRIES: Final = 30
LOST: Final = 0.35
FAILED: Final = 0.08


class HistoryClient:
    """A client with its history, and a model that answers as is drawn."""

    def __init__(self, seed: int, http: httpx.Client) -> None:
        self.history: list[Json] = []
        self.conversation = ""
        self._chance = random.Random(seed)
        self._numbers: Iterator[int] = itertools.count()
        self._http, self._headers = http, {"X-Conversation-Id": f"random history {seed}"}

    def answer(self, body: Json) -> Behaviour:
        """What the model does."""
        drawn, number = self._chance.random(), next(self._numbers)
        if drawn < FAILED:
            return {"status": 400, "code": "invalid_value"}
        if body.get("tools") and drawn < LOST:
            calls = [{"name": "look", "args": {}}] * self._chance.choice([1, 1, 2])
            return {"calls": calls, "text": f"Let me look {number}."} if drawn < LOST / 2 else {"calls": calls}
        return {"text": self._chance.choice(["Sure.", f"Answer {number}."])}

    def play(self) -> None:
        """One step: add something to the history, or take the last reply out, and send it until an answer comes."""
        last = self.history[-1] if self.history else {}
        if calls := last.get("tool_calls"):
            self.history += [{"role": "tool", "tool_call_id": call["id"], "content": self._text()} for call in calls]
        elif last and self._chance.random() < 0.15:
            self.history.pop()
        else:
            self.history.append(user(self._text()))
        counts = self._chance.random() < 0.5
        for tries in range(MOST_TRIES):
            headers = self._headers | ({"x-stainless-retry-count": str(tries)} if counts else {})
            response = chat(self._http, *self.history, tools=[TOOL], headers=headers)
            if response.status_code == httpx.codes.OK:
                assert done(response) == "stored"
                self.conversation = conversation(response)
                if self._chance.random() >= LOST:
                    self.history.append(good(response)["choices"][0]["message"])
                    return
        raise AssertionError("no answer came")

    def stored(self) -> list[Json]:
        """The messages that are stored, but replies that others have taken the place of."""
        path = f"/conversations/{self.conversation.removeprefix('conv_')}/messages?limit=100&order=asc"
        return [one for one in good(self._http.get(path))["data"] if one["status"] != "superseded"]

    def _text(self) -> str:
        return self._chance.choice(["ok", "yes", f"Say {next(self._numbers)}", f"Say {next(self._numbers)}"])


def said(message: Json) -> tuple[str, str, int]:
    """Who says what, with how many calls, in the client's form and in the stored one."""
    results = [part["content"] for part in message.get("parts", ()) if part["type"] == "tool_result"]
    calls = message.get("tool_calls") or [one for one in message.get("parts", ()) if one["type"] == "tool_call"]
    return message["role"], results[0] if results else message["content"] or "", len(calls)


@pytest.mark.daily(1)
@pytest.mark.parametrize("seed", range(12))
def test_what_is_stored_is_what_the_client_has(service: Service, provider: OpenAI, seed: int) -> None:
    with service.client() as http:
        client = HistoryClient(seed, http)
        provider.rule = client.answer
        for _ in range(STEPS):
            client.play()
            assert list(map(said, client.stored())) == list(map(said, client.history))

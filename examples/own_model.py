"""A client that brings its own model: it appends, asks for a context, and compacts; Throughline answers nothing itself.

Start the service (``make run``), then, in a second terminal: ``.venv/bin/python examples/own_model.py``. No key is
needed: the model here is a function of a few lines. Put your own in its place.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import httpx

STORY = Path(__file__).parent / "lantern-nights.json"
POLICY = {"context_window": 4000, "target": 0.4, "max_tokens": 1500}
BY_HAND = 19  # after this turn the client itself asks for a compaction, since it knows that a topic is over
QUESTION = "What is our reference at the town hall, and who is the clerk?"

Json = dict[str, Any]


class Conversation:
    """The three calls that a client with its own model needs."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._path = f"/conversations/{self._post('/conversations', title='Own model', policy=POLICY)['id']}"

    def append(self, role: str, content: str, **fields: Any) -> Json:
        """Store a message; it is kept for ever, whatever is compacted."""
        return self._post(f"{self._path}/messages", role=role, content=content, **fields)

    def context(self, query: str | None) -> Json:
        """What the model is to be sent, in the shape of its request: compacted first where that is due.

        With a query, what was said earlier and fits it is brought back as well.
        """
        return self._post(f"{self._path}/context", format="openai", compact="if_needed", query=query)

    def compact(self) -> Json:
        """Fold everything but the last turn now."""
        return self._post(f"{self._path}/compact")

    def close(self) -> None:
        """Delete the conversation: this one was only an example."""
        self._http.delete(self._path).raise_for_status()

    def _post(self, path: str, **body: Any) -> Json:
        try:
            response = self._http.post(path, json=body)
        except httpx.ConnectError:
            where = self._http.base_url
            raise SystemExit(f"Nobody answers at {where}: start `make run`, or say where it is with --url.") from None
        if not response.is_success:
            raise SystemExit(f"{path}: {response.status_code} {response.text}")
        answer: Json = response.json()
        return answer


def model(messages: list[Json]) -> str:
    """Stands for your model: says again the line, of all it was sent, that has most words of the question.

    Yours gets the very same messages: ``OpenAI().chat.completions.create(model=…, messages=messages)``.
    """
    *before, last = messages
    told = [line.strip() for message in (*before[1:], last) for line in re.split(r'\n|"', message["content"] or "")]
    asked = last["content"].rpartition("\n\n")[2]
    words = words_of(asked)
    best = max(told, key=lambda line: 0 if line in asked else len(words & words_of(line)) / (len(line) + 60))
    return f"Noted. You said: {best}"


def words_of(text: str) -> set[str]:
    """The words that say something."""
    return set(re.findall(r"\w{4,}", text.lower()))


def tell(turn: int, context: Json) -> None:
    """One line about what was sent."""
    gauge, compaction = context["gauge"], context["compaction"]
    parts = ", ".join(f"{name} {tokens}" for name, tokens in gauge["breakdown"].items() if tokens)
    print(f"{turn:3}  {gauge['tokens']:5} of {gauge['budget']} tokens: {parts}")
    if compaction:
        before, after = compaction["tokens_before"], compaction["tokens_after"]
        print(f"     compacted {compaction['messages_covered']} messages first: {before} → {after} tokens")


def main() -> None:
    """Talk about the story, one turn after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://localhost:8000", help="where the service listens")
    parser.add_argument("--key", help="an API key, if the service wants one")
    given = parser.parse_args()
    story = json.loads(STORY.read_text(encoding="utf-8"))["messages"]
    headers = {"Authorization": f"Bearer {given.key}"} if given.key else {}
    with httpx.Client(base_url=given.url, headers=headers, timeout=60, trust_env=False) as http:
        talk = Conversation(http)
        asked = [message["content"] for message in story if message["role"] == "user"]
        for turn, content in enumerate([*asked, QUESTION], start=1):
            talk.append("user", content)
            context = talk.context(query=content if content == QUESTION else None)
            reply = model(context["messages"])
            talk.append("assistant", reply, model="own")
            tell(turn, context)
            if turn == BY_HAND:
                compaction = talk.compact()
                print(f"     compacted by hand: {compaction['status']}, {compaction['messages_covered']} messages")
        print(f"\nAsked: {QUESTION}\nAnswered: {reply}")
        talk.close()


if __name__ == "__main__":
    main()

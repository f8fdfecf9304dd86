"""Honest and hostile requests through every kind of route, for ``bench.loop``."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import httpx

Json = dict[str, Any]

SCRIPTED: Final = "openai-responses:gpt-5"
GEMINI: Final = "google:gemini-2.5-flash"
"""Models of the scripted servers."""
FORMATS: Final = ("plain", "openai", "anthropic", "gemini")
LONG: Final = 3_000_000
_TAIL_BATCH: Final = 200
_WORDS: Final = [
    "the",
    "harbour",
    "crane",
    "needs",
    "a",
    "new",
    "cable",
    "before",
    "Friday",
    "we",
    "decided",
    "to",
    "pay",
    "Marta",
    "1240",
    "euros",
    "and",
    "Ivo",
    "keeps",
    "the",
    "receipt",
    "in",
    "room",
    "214",
    "please",
    "write",
    "to",
    "noor@example.org",
    "never",
    "call",
    "before",
    "nine",
    "the",
    "budget",
    "is",
    "18,500",
    "EUR",
    "and",
    "my",
    "goal",
    "is",
    "to",
    "finish",
    "chapter",
    "seven",
    "about",
    "the",
    "old",
    "lighthouse",
    "keeper",
    "who",
    "lost",
    "his",
    "daughter",
    "yesterday",
    "in",
    "the",
    "storm",
    "of",
    "1887",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large the large requests are; tests send smaller ones."""

    batch: int = 1_000
    characters: int = 7_600
    """The characters of each message of a batch."""
    long: int = LONG
    conversations: int = 100
    prompt: int = 400_000
    tail: int = 20_000
    """The messages of a conversation that was never folded, as after an import."""


FULL: Final = Sizes()
SMALL: Final = Sizes(batch=60, characters=1_000, long=150_000, conversations=6, prompt=60_000, tail=600)

TINY: Final = Sizes(batch=60, characters=800, long=60_000, conversations=4, prompt=30_000, tail=400)
"""Still smaller than ``SMALL``, for a test."""


class Sender(Protocol):
    """Sends a request and notes what the loop computed for it."""

    def __call__(self, label: str | None, method: str, path: str, **given: Any) -> httpx.Response:
        """Send a request. ``label`` names a row of the table; with ``None`` it only prepares, and is not measured."""


def prose(characters: int, seed: int = 1) -> str:
    """Plain sentences of so many characters, the same for the same seed."""
    chosen = random.Random(seed)
    words: list[str] = []
    size = 0
    while size < characters:
        sentence = " ".join(chosen.choice(_WORDS) for _ in range(chosen.randint(6, 16))).capitalize() + ". "
        words.append(sentence)
        size += len(sentence)
    return "".join(words)[:characters]


def user(content: str, **further: Any) -> Json:
    """A message of the user."""
    return {"role": "user", "content": content, **further}


def talk(messages: int, characters: int, seed: int = 1) -> list[Json]:
    """Messages of user and assistant in turn."""
    return [
        {"role": "user" if number % 2 == 0 else "assistant", "content": prose(characters, seed * 100_000 + number)}
        for number in range(messages)
    ]


def batch(messages: Sequence[Json]) -> Json:
    """The body of a request for a batch."""
    return {"messages": list(messages)}


ELIDE: Final[Json] = {"policy": {"oversized": "elide"}}


@dataclass(slots=True)
class Visitor:
    """Goes through all routes."""

    send: Sender
    sizes: Sizes
    compacted: Callable[[str], None]
    """Runs a claimed compaction of a conversation in the worker's loop, under its label."""
    ids: dict[str, str] = field(default_factory=dict)

    def visit(self) -> None:
        """Send every kind of request once."""
        self.appends()
        self.batches()
        self.contexts()
        self.unfolded()
        self.lists()
        self.turns()
        self.openai()
        self.erasures()

    def made(self, **given: Any) -> str:
        """Make a conversation; return its id."""
        found: str = self.send(None, "POST", "/conversations", json=given).json()["id"]
        return found

    def appends(self) -> None:
        """One message, honest and hostile."""
        long = self.sizes.long
        texts: Mapping[str, str] = {
            "one short message": prose(300),
            "20 kB of prose": prose(20_000),
            "130 kB of prose": prose(130_000),
            "1 MB of prose": prose(min(1_000_000, long)),
            f"{long / 1e6:g} MB of prose": prose(long),
            f"{long / 1e6:g} MB of `-eyJ`": "We decided " + "-eyJ" * ((long - 20) // 4),
            "130 kB of `@`": "@\n" * 65_000,
            "130 kB of `„`": "„" * 43_000,
            "130 kB of `<`": "<" * 130_000,
        }
        for label, text in texts.items():
            id_ = self.made(**ELIDE)
            self.send(f"append {label}", "POST", f"/conversations/{id_}/messages", json=user(text))
            self.send(f"context after {label}", "GET", f"/conversations/{id_}/context")
        id_ = self.made()
        parts = [{"type": "text", "text": prose(60, number)} for number in range(256)]
        self.send("append 256 parts", "POST", f"/conversations/{id_}/messages", json=user("so", parts=parts))
        media = {"type": "media", "media_type": "image/png", "data": "QUJD" * (long // 4), "tokens": 0}
        self.send("append a large medium", "POST", f"/conversations/{id_}/messages", json=user("see", parts=[media]))
        self.send("context with a large medium", "GET", f"/conversations/{id_}/context")
        lists = b"[" + b"[]," * (long // 3) + b"[]]"
        headers = {"Content-Type": "application/json"}
        self.send("a body of empty lists", "POST", f"/conversations/{id_}/messages", content=lists, headers=headers)
        nested: Any = {"role": "user", "content": "x", "metadata": {"k": [{"a": 1}] * 800}}
        self.send("append metadata of 16 kB", "POST", f"/conversations/{id_}/messages", json=nested)
        self.send("count the tokens of 1 MB", "POST", "/tokens/count", json={"text": prose(min(1_000_000, long))})
        counted = {"messages": talk(self.sizes.batch, self.sizes.characters)}
        self.send("count the tokens of a batch", "POST", "/tokens/count", json=counted)

    def batches(self) -> None:
        """Many messages, honest and hostile."""
        count, size = self.sizes.batch, self.sizes.characters
        several: Mapping[str, list[Json]] = {
            f"{count} × {size / 1e3:g} kB of prose": talk(count, size),
            f"{count} × 200 characters": talk(count, 200, seed=2),
            f"{count} × {size / 1e3:g} kB of `@`": [user("@\n" * (size // 2)) for _ in range(count)],
            "8 × 20 kB of `„`": [user("„" * 6_600) for _ in range(8)],
            f"{count} × 30 parts": [
                user("so", parts=[{"type": "text", "text": "and more"} for _ in range(30)]) for _ in range(count)
            ],
            f"{count} × 256 parts": [
                user("so", parts=[{"type": "text", "text": "and more"} for _ in range(256)]) for _ in range(count)
            ],
        }
        for label, messages in several.items():
            id_ = self.ids[label] = self.made(**ELIDE)
            self.send(f"batch {label}", "POST", f"/conversations/{id_}/messages/batch", json=batch(messages))
        self.send(None, "POST", f"/conversations/{id_}/messages", json=user("And then?"))
        for label in list(several)[:2]:
            path = f"/conversations/{self.ids[label]}"
            repeated = {"json": batch(several[label]), "headers": {"Idempotency-Key": "again"}}
            self.send(f"batch with a key {label}", "POST", f"{path}/messages/batch", **repeated)
            self.send(f"the same again {label}", "POST", f"{path}/messages/batch", **repeated)
        faulty = [user("x", role="nobody") for _ in range(count)]
        self.send("batch of refused messages", "POST", f"/conversations/{id_}/messages/batch", json=batch(faulty))

    def contexts(self) -> None:
        """Contexts of long conversations in every format; compaction; searches in them."""
        count, size = self.sizes.batch, self.sizes.characters
        for preset in ("hierarchical",):
            id_ = self.ids[preset] = self.made(preset=preset, policy={"context_window": 128_000})
            path = f"/conversations/{id_}"
            for number in range(2):
                several = talk(count, min(size, 1_500), seed=number + 3)
                self.send(None, "POST", f"{path}/messages/batch", json=batch(several))
            for form in FORMATS:
                self.send(f"context of {2 * count}, {preset}", "GET", f"{path}/context?format={form}")
            self.send(f"context with a query, {preset}", "GET", f"{path}/context?query=Who keeps the receipt of Marta")
            self.compacted(id_)
            self.send(f"compact by hand, {preset}", "POST", f"{path}/compact", json={})
            for form in FORMATS:
                self.send(f"folded context, {preset}", "GET", f"{path}/context?format={form}")
            self.send(
                f"folded context with a query, {preset}", "POST", f"{path}/context", json={"query": prose(19_000, 5)}
            )
            passages = [{"text": prose(20_000, number), "source": "notes"} for number in range(50)]
            self.send(
                f"context with passages, {preset}",
                "POST",
                f"{path}/context",
                json={"query": "crane", "passages": passages},
            )
            self.send(f"search, {preset}", "GET", f"{path}/search?q=receipt Marta 1240")
            self.send(f"search with a long question, {preset}", "GET", f"{path}/search", params={"q": prose(5_000, 6)})
            found = self.send(f"segments, {preset}", "GET", f"{path}/segments?limit=100").json().get("data", [])
            for one in [row for row in found if "id" in row][:2]:
                self.send(f"expand, {preset}", "GET", f"{path}/segments/{one['id']}?level=full&limit=100")
                body = {"segment_id": one["id"], "level": "detailed"}
                self.send(f"expand anew, {preset}", "POST", f"{path}/segments", json=body)
            for route in ("", "/states?limit=100", "/anchors?limit=100", "/stats", "/usage", "/compactions?limit=100"):
                self.send(f"GET {route.split('?')[0] or 'conversation'}, {preset}", "GET", f"{path}{route}")
            self.send(f"examination, {preset}", "POST", f"{path}/examination", json={})
        path = f"/conversations/{self.ids[f'{count} × {size / 1e3:g} kB of prose']}"
        for form in FORMATS:
            self.send("context of 1 000 × 7.6 kB", "GET", f"{path}/context?format={form}")
        self.send("page of long messages", "GET", f"{path}/messages?limit=100")
        self.send("page of long messages for the AI SDK", "GET", f"{path}/messages?limit=100&format=ui")
        self.send("search in long messages", "GET", f"{path}/search?q=receipt Marta 1240")
        self.send("export", "GET", f"{path}/export")
        self.send("export as Markdown", "GET", f"{path}/export?format=markdown")
        path = f"/conversations/{self.ids[f'{count} × 30 parts']}"
        self.send("context of parts", "GET", f"{path}/context?format=openai")
        self.send("page of parts", "GET", f"{path}/messages?limit=100")
        self.send("page of parts for the AI SDK", "GET", f"{path}/messages?limit=100&format=ui")

    def unfolded(self) -> None:
        """Contexts and searches of a long conversation that was never folded."""
        path = f"/conversations/{self.made(preset='hierarchical')}"
        for first in range(0, self.sizes.tail, _TAIL_BATCH):
            several = talk(_TAIL_BATCH, 300, seed=31 + first)
            self.send(None, "POST", f"{path}/messages/batch", json=batch(several))
        count = f"{self.sizes.tail:,}".replace(",", " ")
        for query in ({}, {"query": "Who keeps the receipt of Marta"}, {"query": "crane", "budget": 100_000}):
            label = " with a query" if query else ""
            self.send(f"context of {count} unfolded{label}", "GET", f"{path}/context", params=query)
        self.send(f"search in {count} unfolded", "GET", f"{path}/search?q=receipt Marta 1240")

    def lists(self) -> None:
        """Lists of conversations with large system prompts."""
        made = [
            self.made(system_prompt=prose(self.sizes.prompt, number), scratchpad={"k": ["v" * 100] * 2_000})
            for number in range(self.sizes.conversations)
        ]
        self.send(
            "make one with a large system prompt", "POST", "/conversations", json={"system_prompt": prose(400_000, 9)}
        )
        for _ in range(2):
            self.send("list of large system prompts", "GET", "/conversations?limit=100")
        self.send("conversation with a large system prompt", "GET", f"/conversations/{made[0]}")
        patch = {"system_prompt": prose(self.sizes.prompt, 77), "scratchpad": {"n": ["v" * 100] * 200}}
        self.send("patch a large system prompt", "PATCH", f"/conversations/{made[0]}", json=patch)
        self.send("append beside a large system prompt", "POST", f"/conversations/{made[0]}/messages", json=user("Hi"))
        self.send(None, "POST", f"/conversations/{made[0]}/messages/batch", json=batch(talk(20, 1_000, seed=9)))
        self.send("compact beside a large system prompt", "POST", f"/conversations/{made[0]}/compact", json={})
        self.send("GET /stats", "GET", "/stats")
        self.send("GET /metrics", "GET", "/metrics")
        self.send("GET /presets", "GET", "/presets")
        self.send("GET /openapi.json", "GET", "/openapi.json")

    def turns(self) -> None:
        """Turns with the offline model and with scripted models."""
        for model in ("offline", SCRIPTED, GEMINI):
            id_ = self.made(policy={"context_window": 100_000})
            path = f"/conversations/{id_}"
            self.send(None, "POST", f"{path}/messages/batch", json=batch(talk(60, 6_000, seed=8)))
            for number in range(3):
                body = {"content": prose(3_000, number), "model": model}
                self.send(f"chat, {model}", "POST", f"{path}/chat", json=body)
            streaming = {"Accept": "text/event-stream"}
            body = {"content": prose(60_000, 12), "model": model}
            self.send(f"chat as a stream, {model}", "POST", f"{path}/chat", json=body, headers=streaming)
            self.send(f"history for the AI SDK, {model}", "GET", f"{path}/messages?limit=100&format=ui")

    def openai(self) -> None:
        """The requests of clients of OpenAI's API."""
        brought = talk(400, 1_500, seed=21)
        for model in ("offline", SCRIPTED):
            for number in range(2):
                body = {"model": model, "messages": [*brought, user(f"And now, number {number}?")]}
                self.send(f"chat completion with 400 messages, {model}", "POST", "/v1/chat/completions", json=body)
            body = {"model": model, "messages": [user(prose(200_000, 3))]}
            self.send(f"chat completion with 200 kB, {model}", "POST", "/v1/chat/completions", json=body)
            items = [{"role": one["role"], "content": one["content"]} for one in [*brought, user("And then?")]]
            answer = self.send(
                f"response with 400 items, {model}", "POST", "/v1/responses", json={"model": model, "input": items}
            )
            if answer.status_code == httpx.codes.OK:
                id_ = answer.json()["id"]
                self.send("items of a response", "GET", f"/v1/responses/{id_}/input_items?limit=100")
                further = {"model": model, "input": "Go on.", "previous_response_id": id_}
                self.send(f"response that goes on, {model}", "POST", "/v1/responses", json=further)
            self.send(
                f"compact 400 items, {model}", "POST", "/v1/responses/compact", json={"model": model, "input": items}
            )
            counted = {"model": model, "input": items}
            self.send("count 400 items", "POST", "/v1/responses/input_tokens", json=counted)
        made = self.send("conversation of items", "POST", "/v1/conversations", json={"items": items[:20]}).json()["id"]
        self.send("items of a conversation", "GET", f"/v1/conversations/{made}/items?limit=100")

    def erasures(self) -> None:
        """Erasures and deletions; they come last, since they remove what other requests need."""
        path = f"/conversations/{self.ids['hierarchical']}"
        for order in ("asc", "desc"):
            for one in self.send(None, "GET", f"{path}/messages?limit=2&order={order}").json()["data"]:
                self.send("pin", "PUT", f"{path}/messages/{one['id']}/pin")
                self.send("erase a message", "DELETE", f"{path}/messages/{one['id']}")
        self.send("restore, hierarchical", "POST", f"{path}/restore", json={"state_version": 0})
        self.send("delete a conversation", "DELETE", path)

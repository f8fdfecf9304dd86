"""The few calls of the HTTP contract that the demo makes, and the values that come back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Self

import httpx

# A turn with a provider's model may compact first and answer then.
_TURN_SECONDS: Final = 120.0
_PROBE_SECONDS: Final = 2.0
_PAGE: Final = 100


class DemoError(Exception):
    """Something expected did not happen; the message is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """How full the context is, in tokens."""

    tokens: int
    budget: int
    background_at: int
    sync_at: int
    breakdown: Mapping[str, int]

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Gauge:
        """From the JSON of the contract."""
        names = ("tokens", "budget", "background_at", "sync_at", "breakdown")
        return cls(**{name: body[name] for name in names})

    @property
    def utilization(self) -> float:
        """Tokens ÷ budget."""
        return self.tokens / self.budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What a compaction's row or event tells; the event carries no model, summary or duration."""

    id: str
    trigger: str
    ran_in: str
    status: str
    reason: str | None
    messages_covered: int
    to_seq: int | None
    tokens_before: int
    tokens_after: int
    model: str = ""
    summary: str = ""
    duration_ms: int | None = None

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Compaction:
        """From the JSON of a row, or from the data of an event."""
        return cls(
            id=body.get("compaction_id") or body["id"],
            trigger=body["trigger"],
            ran_in=body["ran_in"],
            status=body["status"],
            reason=body["reason"],
            messages_covered=body["messages_covered"] or 0,
            to_seq=body["to_seq"],
            tokens_before=body["tokens_before"] or 0,
            tokens_after=body["tokens_after"] or 0,
            model=body.get("model") or "",
            summary=body.get("summary") or "",
            duration_ms=body.get("duration_ms"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A chat turn that is over."""

    reply: str
    model: str
    input_tokens: int
    gauge: Gauge
    compaction: Compaction | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A message as the history has it."""

    seq: int
    role: str
    content: str
    tokens: int


class Throughline:
    """One conversation with one service.

    Every call raises ``DemoError`` for an answer that is no success and ``httpx.HTTPError`` for none at all.
    """

    def __init__(self, url: str, key: str | None = None) -> None:
        """Prepare; nothing is sent yet.

        Args:
            url: Where the service is.
            key: An API key, where the service asks for one.
        """
        self.url = url.rstrip("/")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        # A proxy of the environment has no business between a demo and its service.
        self.http = httpx.Client(base_url=self.url, headers=headers, timeout=_TURN_SECONDS, trust_env=False)
        self.conversation_id = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.close()

    def ready(self) -> bool:
        """Whether the service answers and can work."""
        try:
            return self.http.get("/readyz", timeout=_PROBE_SECONDS).is_success
        except (httpx.HTTPError, httpx.InvalidURL):
            return False

    @property
    def path(self) -> str:
        """Of the conversation."""
        return f"/conversations/{self.conversation_id}"

    def create(self, *, title: str, system_prompt: str, context_window: int) -> None:
        """Begin the conversation."""
        body = {"title": title, "system_prompt": system_prompt, "policy": {"context_window": context_window}}
        self.conversation_id = self._call("POST", "/conversations", body)["id"]

    def append(self, role: str, content: str, at: datetime) -> Written:
        """Append a message that needs no reply."""
        body = {"role": role, "content": content, "created_at": at.isoformat()}
        return _written(self._call("POST", f"{self.path}/messages", body))

    def chat(self, content: str) -> tuple[Turn, tuple[Written, Written]]:
        """One turn of the configured model, and the two messages that it left."""
        body = self._call("POST", f"{self.path}/chat", {"content": content})
        reply, compaction = body["reply"], body["compaction"]
        turn = Turn(
            reply=reply["content"],
            model=reply["model"] or "",
            input_tokens=(reply["usage"] or {}).get("input_tokens", 0),
            gauge=Gauge.read(body["context"]),
            compaction=Compaction.read(compaction) if compaction else None,
            warnings=tuple(body["warnings"]),
        )
        return turn, (_written(body["message"]), _written(reply))

    def compact(self) -> Compaction:
        """Compact now, and wait for it."""
        return Compaction.read(self._call("POST", f"{self.path}/compact", {}))

    def usage(self) -> Gauge:
        """How full the context is."""
        return Gauge.read(self._call("GET", f"{self.path}/usage"))

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return int(self._call("POST", "/tokens/count", {"text": text})["tokens"])

    def state(self) -> tuple[int, dict[str, Any]]:
        """The number of the state's version, and the state."""
        body = self._call("GET", self.path)
        return body["state_version"], body["compressed_state"] or {}

    def context(self) -> dict[str, Any]:
        """What a model would be sent now."""
        return self._call("GET", f"{self.path}/context")

    def history(self) -> Iterator[Written]:
        """Every message, from the first to the last."""
        yield from map(_written, self._all(f"{self.path}/messages"))

    def compactions(self) -> list[Compaction]:
        """Every compaction, oldest first."""
        return [Compaction.read(row) for row in self._all(f"{self.path}/compactions")]

    def _all(self, path: str) -> Iterator[dict[str, Any]]:
        query: dict[str, str] = {"limit": str(_PAGE), "order": "asc"}
        while True:
            page = self._call("GET", path, query=query)
            yield from page["data"]
            if not page["has_more"]:
                return
            query["after"] = page["next_cursor"]

    def _call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        answer = self.http.request(method, path, json=body, params=query)
        if answer.is_success:
            found: dict[str, Any] = answer.json()
            return found
        raise DemoError(f"{method} {path} was answered with {answer.status_code}: {_detail(answer)}")


def _detail(answer: httpx.Response) -> str:
    """What a problem says, and what a person can do about the commonest one."""
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        return "the service asks for an API key; give it one with --key or THROUGHLINE_API_KEY"
    try:
        problem = answer.json()
        return " ".join(str(problem.get("detail") or problem.get("title") or problem).split())
    except (ValueError, AttributeError):
        return answer.reason_phrase


def _written(body: Mapping[str, Any]) -> Written:
    return Written(seq=body["seq"], role=body["role"], content=body["content"], tokens=body["token_count"])

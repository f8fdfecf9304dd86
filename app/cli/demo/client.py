"""The few calls of the HTTP contract that the demo makes, and the values that come back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Self

import httpx

from app import client
from app.cli.complaints import words_of
from app.cli.connecting import answers

# A turn with a provider's model may compact first and answer then.
_TURN_SECONDS: Final = 120.0
_ONCE: Final = client.Retrying(attempts=1)
"""The demo shows what happens, and hides nothing by trying again."""
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
    """One conversation with one service, over the typed client.

    Every call raises ``DemoError`` when the service refuses or does not answer.
    """

    def __init__(self, url: str, key: str | None = None, *, transport: httpx.BaseTransport | None = None) -> None:
        """Prepare; nothing is sent yet.

        Args:
            url: Where the service is.
            key: An API key, where the service asks for one.
            transport: What carries the requests; a test's.
        """
        self.url = url.rstrip("/")
        # A proxy of the environment has no business between a demo and its service.
        self.client = client.Throughline(
            self.url, key=key, timeout=_TURN_SECONDS, trust_env=False, transport=transport, retrying=_ONCE
        )
        self.conversation_id = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()

    def ready(self) -> bool:
        """Whether the service answers and can work."""
        return answers(self.url)

    @property
    def path(self) -> str:
        """Of the conversation."""
        return f"/conversations/{self.conversation_id}"

    def create(self, *, title: str, system_prompt: str, context_window: int) -> None:
        """Begin the conversation."""
        with _told():
            policy = {"context_window": context_window}
            made = self.client.create_conversation(title=title, system_prompt=system_prompt, policy=policy)
            self.conversation_id = str(made.id)

    def append(self, role: str, content: str, at: datetime) -> Written:
        """Append a message that needs no reply."""
        with _told():
            return _written(self.client.append(self.conversation_id, role, content, created_at=at.isoformat()))

    def chat(self, content: str) -> tuple[Turn, tuple[Written, Written]]:
        """One turn of the configured model, and the two messages that it left."""
        with _told():
            result = self.client.chat(self.conversation_id, content)
        turn = Turn(
            reply=result.reply.content,
            model=result.reply.model or "",
            input_tokens=(result.reply.usage or {}).get("input_tokens", 0),
            gauge=_gauge(result.context),
            compaction=_compaction(result.compaction) if result.compaction else None,
            warnings=tuple(result.warnings),
        )
        return turn, (_written(result.message), _written(result.reply))

    def compact(self) -> Compaction:
        """Compact now, and wait for it."""
        with _told():
            return _compaction(self.client.compact(self.conversation_id))

    def usage(self) -> Gauge:
        """How full the context is."""
        with _told():
            return _gauge(self.client.usage(self.conversation_id))

    def count(self, text: str) -> int:
        """Tokens of a text."""
        with _told():
            return self.client.count_tokens(text).tokens

    def state(self) -> tuple[int, dict[str, Any]]:
        """The number of the state's version, and the state."""
        with _told():
            found = self.client.conversation(self.conversation_id)
        return found.state_version, found.compressed_state or {}

    def context(self) -> dict[str, Any]:
        """What a model would be sent now."""
        with _told():
            return self.client.look_at_context(self.conversation_id).model_dump(mode="json")

    def history(self) -> Iterator[Written]:
        """Every message, from the first to the last."""
        with _told():
            yield from map(_written, self.client.messages(self.conversation_id, order="asc", page_size=_PAGE))

    def compactions(self) -> list[Compaction]:
        """Every compaction, oldest first."""
        with _told():
            return [_compaction(row) for row in self.client.compactions(self.conversation_id, order="asc")]


@contextmanager
def _told() -> Iterator[None]:
    """Whatever goes wrong with the service, in one line."""
    try:
        yield
    except client.ApiError as error:
        raise DemoError(" ".join(f"The service answered {error.status}: {words_of(error)}".split())) from error
    except client.ThroughlineError as error:
        raise DemoError(" ".join(words_of(error).split())) from error


def _gauge(gauge: client.Gauge) -> Gauge:
    return Gauge.read(gauge.model_dump(mode="json"))


def _compaction(row: client.Compaction) -> Compaction:
    return Compaction.read(row.model_dump(mode="json"))


def _written(message: client.Message) -> Written:
    return Written(seq=message.seq, role=message.role, content=message.content, tokens=message.token_count)

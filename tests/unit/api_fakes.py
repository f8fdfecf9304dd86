"""Stand-ins for the services behind the API: they record what they are asked and give back what they are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import cache
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import httpx
from fastapi import FastAPI
from starlette.datastructures import State

from app.bootstrap import Container
from app.core.model.anchors import Anchor
from app.core.model.conversation import Conversation, Message, Usage
from app.core.model.errors import DomainError, UnauthenticatedError
from app.core.model.gauge import Breakdown, Gauge
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.records import Attempt, Compaction, EntryCounts, Event, Scope, Turn
from app.http.shutdown import Stopping
from app.infrastructure.clock import SystemClock
from app.infrastructure.counters import LocalCounters
from app.infrastructure.metrics import ProcessMeter
from app.main import create_app
from app.off_loop import WorkShares
from app.settings import Settings
from app.usecases.admin.limiting import LimitService
from app.usecases.chat.turn_handle import ChatEvent, ChatResult, TurnHandle
from app.usecases.history.conversations import ConversationService, ConversationView, PresetView
from app.usecases.shared.background import Background
from app.usecases.shared.caller import Principal
from app.usecases.shared.compaction_views import CompactionView
from app.usecases.shared.resolve import Resolver
from app.usecases.shared.shell import Shell
from tests.chosen_settings import chosen_settings

TENANT = UUID("0193e000-0000-7000-8000-000000000001")
CONVERSATION = UUID("0193e000-0000-7000-8000-000000000002")
MESSAGE = UUID("0193e000-0000-7000-8000-000000000003")
REPLY = UUID("0193e000-0000-7000-8000-000000000004")
COMPACTION = UUID("0193e000-0000-7000-8000-000000000005")
ANCHOR = UUID("0193e000-0000-7000-8000-000000000006")
PATH_IDS = {
    "conversation_id": CONVERSATION,
    "message_id": MESSAGE,
    "compaction_id": COMPACTION,
    "anchor_id": ANCHOR,
    "segment_id": "auth",
    "file_id": MESSAGE,
    "user_id": "someone",
    "response_id": "resp_" + "0" * 32,
}
"""An id for each path parameter of ``openapi.json``."""
KEYS: Mapping[str, frozenset[Scope]] = {
    "reader": frozenset({"read"}),
    "writer": frozenset({"read", "write"}),
    "admin": frozenset({"read", "write", "admin"}),
}
AT = datetime(2026, 11, 20, 10, 30, tzinfo=timezone(timedelta(hours=1)))
GAUGE = Gauge(
    tokens=100,
    budget=3060,
    window=3600,
    utilization=0.0327,
    status="ok",
    background_at=2142,
    sync_at=2601,
    tokens_until_compaction=2042,
    breakdown=Breakdown(system=60, tail=40),
    anchors_behind_marker=2,
)


def conversation_view(**changes: Any) -> ConversationView:
    values: dict[str, Any] = {
        "id": CONVERSATION,
        "tenant_id": TENANT,
        "title": "Trip",
        "state_version": 3,
        "last_seq": 7,
        "compressed_state": {"logos": ["a"], "pathos": [], "abstract": [], "conversation_summary": "s"},
        "scratchpad": {"step": 2},
        "created_at": AT,
        "updated_at": AT,
    }
    row = Conversation(**{**values, **changes})
    return ConversationView(conversation=row, policy=CompactionPolicy(), gauge=GAUGE)


def message(**changes: Any) -> Message:
    values: dict[str, Any] = {
        "id": MESSAGE,
        "conversation_id": CONVERSATION,
        "seq": 1,
        "role": "user",
        "content": "hello",
        "created_at": AT,
    }
    return Message(**{**values, **changes})


def anchor(**changes: Any) -> Anchor:
    values: dict[str, Any] = {
        "id": ANCHOR,
        "conversation_id": CONVERSATION,
        "message_id": MESSAGE,
        "type": "decision",
        "content": "let's use MySQL",
        "seq": 7,
        "offset": 12,
        "importance": 0.8,
        "token_count": 9,
        "created_at": AT,
    }
    return Anchor(**{**values, **changes})


def compaction(**changes: Any) -> Compaction:
    usage = Usage(input_tokens=10, output_tokens=5, cost_usd=0.5)
    attempt = Attempt(model="offline", outcome="accepted", reason=None, duration_ms=3, usage=usage)
    values: dict[str, Any] = {
        "id": COMPACTION,
        "tenant_id": TENANT,
        "conversation_id": CONVERSATION,
        "trigger": "manual",
        "ran_in": "request",
        "status": "applied",
        "attempts": (attempt,),
        "tokens_before": 1000,
        "tokens_after": 250,
        "entries": EntryCounts(added=2),
        "usage": usage,
        "requested_at": AT,
    }
    return Compaction(**{**values, **changes})


def chat_result() -> ChatResult:
    return ChatResult(message=message(), reply=message(id=REPLY, seq=2, role="assistant", content="hi"), gauge=GAUGE)


def event(number: int) -> Event:
    return Event(conversation_id=CONVERSATION, number=number, type="message.created", data={"seq": 1}, occurred_at=AT)


@dataclass
class Calls:
    """Every call of a service: name, arguments, keyword arguments. ``answers`` holds what a call returns or raises."""

    made: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)

    def service(self, name: str, **defaults: Any) -> SimpleNamespace:
        return SimpleNamespace(
            **{method: self._method(f"{name}.{method}", value) for method, value in defaults.items()}
        )

    def last(self, name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return next((args, kwargs) for called, args, kwargs in reversed(self.made) if called == name)

    def _method(self, name: str, default: Any) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            self.made.append((name, args, kwargs))
            answer = self.answers.get(name, default)
            if isinstance(answer, BaseException):
                raise answer
            return await answer() if asyncio.iscoroutinefunction(answer) else answer

        return call


class Keys:
    """Three keys with different scopes; ``open`` lets requests without a key in."""

    def __init__(self, *, is_open: bool = False, exist: bool = True) -> None:
        self.is_open = is_open
        self.exist = exist
        self.is_ready = False

    @property
    def anonymous_allowed(self) -> bool:
        return self.is_open

    async def authenticate(self, key: str | None, address: str | None = None) -> Principal:
        if key is None and self.is_open:
            return Principal(tenant_id=TENANT, scopes=KEYS["admin"])
        if key is None or key not in KEYS:
            raise UnauthenticatedError("Send a valid key.")
        return Principal(tenant_id=TENANT, scopes=KEYS[key])

    async def make_default_tenant(self) -> None:
        self.is_ready = True

    async def any(self) -> bool:
        return self.exist


class Feed:
    """Yields the given steps, then waits for ever; an error is raised instead of the first step."""

    def __init__(self) -> None:
        self.steps: Sequence[Event | None] = (None,)
        self.error: DomainError | None = None
        self.after: int | None = None
        self.closed = asyncio.Event()

    async def follow(
        self, tenant: UUID, conversation: UUID, after: int, *, newest: int | None = None, field: str = "after"
    ) -> AsyncIterator[Event | None]:
        self.after = after
        try:
            if self.error is not None:
                raise self.error
            for step in self.steps:
                yield step
            await asyncio.Event().wait()
        finally:
            self.closed.set()


@dataclass
class World:
    """An application over stand-ins, with a client for it."""

    app: FastAPI
    calls: Calls
    keys: Keys
    feed: Feed

    def client(self, key: str | None = "admin") -> httpx.AsyncClient:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers)


def world(*, lives: bool = False, **settings: Any) -> World:
    """A service over fakes. Its application starts and stops if it ``lives``; otherwise all share one application."""
    calls, keys, feed = Calls(), Keys(), Feed()
    container = fake_container(calls, keys, feed, chosen_settings(**settings))
    if lives or settings:
        return World(app=create_app(container=container), calls=calls, keys=keys, feed=feed)
    app = _default_app()
    app.state = State({"container": container, "stopping": Stopping()})
    return World(app=app, calls=calls, keys=keys, feed=feed)


@cache
def _default_app() -> FastAPI:
    return create_app(chosen_settings())


def fake_container(calls: Calls, keys: Keys, feed: Feed, settings: Settings) -> Container:
    view, compacted = conversation_view(), CompactionView(compaction=compaction(), summary="what happened")
    turn = Turn(
        id=REPLY, tenant_id=TENANT, conversation_id=CONVERSATION, message_id=MESSAGE, lease_until=AT, started_at=AT
    )
    fake = SimpleNamespace(
        shares=WorkShares(),
        settings=settings,
        keys=keys,
        feed=feed,
        conversations=calls.service(
            "conversations",
            create=view,
            get=view,
            page=([view], None),
            patch=view,
            delete=None,
            usage=GAUGE,
        ),
        states=calls.service("states", page=([], None), difference=None, restore=view),
        messages=calls.service("messages", append=[message(), message(seq=2)], page=([message()], "next")),
        erasure=calls.service("erasure", erase=None),
        release=calls.service("release", release=view),
        pins=calls.service("pins", pin=message(protected_reason="pinned", is_pinned=True), unpin=message()),
        anchors=calls.service("anchors", page=([anchor()], None), set_status=anchor(status="resolved")),
        expansion=calls.service("expansion", page=([], None), expand=None, make=None),
        chat=calls.service("chat", start=None, interrupt=turn, follow=None),
        manual=calls.service("manual", compact=compacted, get=compacted, page=([compacted], None), retry=compacted),
        verifications=calls.service("verifications", page=([], None)),
        context=calls.service("context", count_tokens=42),
        context_requests=calls.service("context_requests", answer=None),
        limits=LimitService(
            cast(Shell, SimpleNamespace()), LocalCounters(), tenant=settings.tenant_limits, key=settings.key_limits
        ),
        audit=calls.service("audit", page=([], None)),
        sweeper=calls.service("sweeper", run=asyncio.Event().wait),
        measuring=calls.service("measuring", run=asyncio.Event().wait, text="# none\n"),
        background=Background(SystemClock(), ProcessMeter()),
        parts=SimpleNamespace(
            bus=SimpleNamespace(ping=calls._method("redis_ok", default=True)),
            database_state=calls._method("database_state", default="ok"),
            row_security=calls._method("row_security", default=True),
            schema_complaint=_nothing,
            models=SimpleNamespace(prepare=_nothing),
        ),
        close=calls._method("close", default=None),
    )
    fake.conversations.presets = presets_without_numbers
    return cast(Container, fake)


def presets_without_numbers() -> list[PresetView]:
    """The presets of a service whose operator set no numbers; the service does nothing else."""
    shell = SimpleNamespace(resolver=Resolver(cast(Any, None)))
    return ConversationService(cast(Any, shell)).presets()


async def _nothing() -> None:
    """Nothing to do: there is nothing to prepare."""


class Turning(TurnHandle):
    """A turn that records when its client leaves."""

    def __init__(self) -> None:
        self.was_abandoned = asyncio.Event()
        super().__init__()

    async def note_client_left(self) -> None:
        self.was_abandoned.set()

    def tell(self, *events: ChatEvent) -> None:
        for item in events:
            self.emit(item)


def parse_sse(text: str) -> list[dict[str, str]]:
    """Events as a browser sees them: fields by name, comments under ``:``."""
    blocks = [block.split("\n") for block in text.split("\n\n") if block]
    return [dict(_field(line) for line in block) for block in blocks]


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(": ")
    return name or ":", value

"""A typed client of Throughline's HTTP API, sync and async; it imports nothing else of this project.

>>> with Throughline("http://localhost:8000") as throughline:  # doctest: +SKIP
...     talk = throughline.create_conversation(title="Lantern Nights")
...     print(throughline.chat(talk.id, "Where were we?").reply.content)
"""

from __future__ import annotations

from .asynchronous import AsyncThroughline
from .compressor import AsyncContextCompressor, ContextCompressor
from .errors import (
    ApiError,
    BadRequestError,
    ConflictError,
    ConnectionFailedError,
    ForbiddenError,
    InvalidInputError,
    ModelFailedError,
    NotFoundError,
    PreconditionFailedError,
    RateLimitedError,
    ServerError,
    ThroughlineError,
    TooLargeError,
    UnauthenticatedError,
    UnavailableError,
)
from .resources import (
    Anchor,
    AuditEntry,
    ChatEvent,
    ChatResult,
    Compaction,
    Context,
    Conversation,
    ConversationSummary,
    Event,
    Examination,
    Gauge,
    KeyLimits,
    Marker,
    Message,
    Preset,
    SearchHit,
    Section,
    Segment,
    StateDifference,
    StateVersion,
)
from .retrying import Retrying
from .synchronous import Throughline

__all__ = [
    "Anchor",
    "ApiError",
    "AsyncContextCompressor",
    "AsyncThroughline",
    "AuditEntry",
    "BadRequestError",
    "ChatEvent",
    "ChatResult",
    "Compaction",
    "ConflictError",
    "ConnectionFailedError",
    "Context",
    "ContextCompressor",
    "Conversation",
    "ConversationSummary",
    "Event",
    "Examination",
    "ForbiddenError",
    "Gauge",
    "InvalidInputError",
    "KeyLimits",
    "Marker",
    "Message",
    "ModelFailedError",
    "NotFoundError",
    "PreconditionFailedError",
    "Preset",
    "RateLimitedError",
    "Retrying",
    "SearchHit",
    "Section",
    "Segment",
    "ServerError",
    "StateDifference",
    "StateVersion",
    "Throughline",
    "ThroughlineError",
    "TooLargeError",
    "UnauthenticatedError",
    "UnavailableError",
]

"""Errors of the domain: each class is one stable ``code``; the API maps codes to statuses in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

REMEDIES: Final[Mapping[str, str]] = {
    "anchors_over_budget": "the anchors leave no room; with policy.anchor_share they may stand behind a marker",
    "bad_request": "the provider does not take this request for this model",
    "context_too_long": "the text is longer than the model takes; name one with a larger window",
    "model_not_found": "the provider has no such model, or not for the service's key; name another",
    "model_unavailable": "the model cannot be built from the service's settings; name another",
    "quota_exceeded": "the quota of the service's key at the provider is used up",
    "unauthorized": "the provider does not accept the service's key",
}
"""Reasons for which a model's work fails again until something is changed, each with what has to be changed."""

SEND_AGAIN: Final = "send the turn again without content"
"""How a message that is stored gets its answer; the routes in another API's form say it in their own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """What is wrong with one input field, in words that say what to do."""

    field: str
    message: str


class DomainError(Exception):
    """The base of every expected error; ``detail`` is a sentence for people, ``extra`` holds further values."""

    code: ClassVar[str] = "internal_error"
    title: ClassVar[str] = "Something went wrong"
    """A class without a title of its own gets its code, written as words."""
    retryable: bool = False

    def __init_subclass__(cls) -> None:
        if "title" not in vars(cls):
            cls.title = cls.code.replace("_", " ").capitalize()

    def __init__(
        self,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        retry_after: float | None = None,
        extra: Mapping[str, Any] | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)
        self.retry_after = retry_after
        self.extra = dict(extra or {})
        self.stable_code = code or self.code


class NotFoundError(DomainError):
    """The object does not exist, or belongs to another tenant: the two look the same."""

    code = "not_found"


class PreviousResponseNotFoundError(NotFoundError):
    """The response that a request goes on from does not exist, was not stored, or belongs to another tenant."""

    code = "previous_response_not_found"


class InvalidInputError(DomainError):
    """A field is out of contract (422)."""

    code = "invalid_input"

    @classmethod
    def of(cls, field: str, message: str) -> Self:
        """The error about one field."""
        return cls(message, errors=[FieldError(field=field, message=message)])


class UnknownPresetError(InvalidInputError):
    """The preset's name is not one of ``GET /presets``."""

    code = "unknown_preset"


class PolicyInvalidError(InvalidInputError):
    """The policy contradicts itself; ``errors`` names the fields and shows the arithmetic."""

    code = "policy_invalid"
    title = "Invalid policy"


class ModelNotAllowedError(InvalidInputError):
    """A request names a model that the operator does not allow; ``extra["allowed"]`` names those allowed."""

    code = "model_not_allowed"


class BudgetTooSmallError(InvalidInputError):
    """The requested budget cannot hold even the last message; ``extra["minimum"]`` is the smallest that can."""

    code = "budget_too_small"

    @classmethod
    def needing(cls, minimum: int, *, left: int) -> Self:
        """The error of a budget that leaves too few tokens."""
        detail = (
            f"the last message, with what belongs to it, needs {minimum} tokens, the budget leaves {left}: ask for a"
            f" budget of at least {minimum}"
        )
        return cls(detail, extra={"minimum": minimum, "left": left})


class NotFoldedError(InvalidInputError):
    """A level of detail is requested for messages that are not folded yet, or for too many messages."""

    code = "not_folded"


class IdempotencyKeyReusedError(InvalidInputError):
    """The same key came with another body."""

    code = "idempotency_key_reused"


class ConflictError(DomainError):
    """The request conflicts with something that is under way; ``stable_code`` says with what."""

    code = "conflict"
    retryable = True


class IdempotencyInProgressError(ConflictError):
    """The first request with this key is still running."""

    code = "idempotency_in_progress"
    title = "Still running"


class TurnInProgressError(ConflictError):
    """Another turn of the conversation is running; only one may run at once."""

    code = "turn_in_progress"
    title = "A turn is running"


class CompactionInProgressError(ConflictError):
    """A compaction is in flight that the requested one cannot join."""

    code = "compaction_in_progress"
    title = "A compaction is running"


class NotRetriedError(ConflictError):
    """The compaction to be retried has not failed; only a failed one can be retried."""

    code = "not_failed"
    title = "Not a failed compaction"
    retryable = False


class ConversationMovedOnError(ConflictError):
    """``expected_last_message_id`` is no longer the last message."""

    code = "conversation_moved_on"
    title = "The conversation moved on"
    retryable = False


class ConversationSetAsideError(ConflictError):
    """Processes ended while they worked on this conversation; nothing is done with its texts until it is released."""

    code = "conversation_set_aside"
    title = "The conversation is set aside"
    retryable = False


class ForkInProgressError(ConflictError):
    """A long conversation is being copied for a request that goes on from an earlier place of it."""

    code = "fork_in_progress"
    title = "A fork is being made"


class ToolsPendingError(ConflictError):
    """Calls of the client's tools wait for results that were not given; ``extra["missing"]`` has their ids."""

    code = "tools_pending"
    title = "Tool results are missing"
    retryable = False


class PinBudgetExceededError(ConflictError):
    """A pin would exceed the policy's share for held messages; ``extra`` holds what they weigh, size and limit."""

    code = "pin_budget_exceeded"
    title = "No room to hold this word for word"
    retryable = False


class NoRoomForFileError(ConflictError):
    """A file would leave the conversation too little room, or there are too many files; ``extra`` holds the numbers."""

    code = "no_room_for_file"
    title = "No room for this file"
    retryable = False


class NotPinnableError(ConflictError):
    """The message is a command or was erased: there is nothing to hold verbatim."""

    code = "not_pinnable"
    title = "Not to be pinned"
    retryable = False


class NotRegenerableError(ConflictError):
    """No reply can be made again: the last message is not a reply, or it is folded."""

    code = "not_regenerable"
    title = "No reply to be made again"
    retryable = False


class StateVersionMismatchError(DomainError):
    """``If-Match`` names another version (412)."""

    code = "state_version_mismatch"


class TooLargeError(DomainError):
    """The message can never fit (413); ``extra`` holds limit and size."""

    code = "message_too_large"


class UnauthenticatedError(DomainError):
    """No valid key (401)."""

    code = "unauthenticated"


class ForbiddenError(DomainError):
    """The key lacks a scope (403)."""

    code = "forbidden"


class ModelWorkError(DomainError):
    """A model's work came to nothing; ``extra["reason"]`` says why, and thus whether trying again can help."""

    retryable = True

    def __init__(
        self,
        detail: str,
        *,
        retry_after: float | None = None,
        extra: Mapping[str, Any] | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(detail, retry_after=retry_after, extra=extra, code=code)
        self.retryable = self.extra.get("reason") not in REMEDIES


class SummarizerFailedError(ModelWorkError):
    """A manual compaction ended without an applied state (502); nothing changed."""

    code = "summarizer_failed"
    title = "The summarizer failed"


class RateLimitedError(DomainError):
    """A limit is reached (429); ``retry_after`` says when there is room again. Nothing changed."""

    code = "rate_limited"
    retryable = True


class ModelFailedError(ModelWorkError):
    """The chat model failed (502 or 503); the user's message is stored, ``extra["message_id"]`` names it."""

    code = "model_failed"
    title = "The model failed"


class ContextOverWindowError(DomainError):
    """Under ``keep_full`` the context exceeds the window, or the last step alone exceeds the budget (503)."""

    code = "context_over_window"


class DependencyUnavailableError(DomainError):
    """Postgres or a model's server cannot be reached (503)."""

    code = "dependency_unavailable"
    title = "A dependency is away"
    retryable = True


class DatabaseReadOnlyError(DependencyUnavailableError):
    """Postgres takes no writes (503): it is a standby, or was made read-only. Nothing changed."""


class BusyError(DependencyUnavailableError):
    """The tenant uses all its allowed connections, and too many requests wait for one (429). Nothing changed."""

    code = "rate_limited"


class TurnLostError(DomainError):
    """The turn's lease ran out and another process ended the turn (503). The message is stored, a reply is not."""

    code = "lease_expired"
    title = "The turn was lost"
    retryable = True


class ModelUnavailableError(Exception):
    """Raised by model adapters: the provider did not answer usefully. Never carries message text.

    Args:
        reason: A stable word.
        retryable: Whether the same request may do better in a moment.
        status: The HTTP status, if there was one.
        retry_after: Seconds that the provider asked to wait, if it said.
    """

    def __init__(
        self, reason: str, *, retryable: bool = True, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.status = status
        self.retry_after = retry_after


class CacheTooSmallError(ModelUnavailableError):
    """Raised by model adapters: the provider caches no prefix so small.

    Args:
        minimum: The fewest tokens that it caches, if it said.
        status: The HTTP status.
    """

    def __init__(self, minimum: int | None, *, status: int | None = None) -> None:
        super().__init__("cache_too_small", retryable=False, status=status)
        self.minimum = minimum


def full_reason(reason: str | None) -> str:
    """A reason word; for a lasting reason, followed by what has to be changed."""
    remedy = REMEDIES.get(reason or "")
    return f"{reason}: {remedy}" if remedy else str(reason)

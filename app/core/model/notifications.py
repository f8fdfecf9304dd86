"""Words for the user when a conversation is compacted: a title and one line, from an event's numbers alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from app.core.model.figure_labels import percent
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.records import ERASURE_TRIGGER
from app.core.text.localization.catalogue import Catalogue

NotificationLevel = Literal["info", "warning"]

STARTED: Final = "compaction.started"
APPLIED: Final = "compaction.applied"
UNCHANGED: Final[Mapping[str, NotificationLevel]] = {"compaction.skipped": "info", "compaction.failed": "warning"}
"""Events of compactions that changed nothing, with the level of their notification."""
NOTIFIED_EVENT_TYPES: Final = frozenset({STARTED, APPLIED, *UNCHANGED})
"""The types of events that may have a notification."""

_REASON_BY_TRIGGER: Final[Mapping[str, str]] = {
    "background": "critical",
    "completion": "critical",
    "max_messages": "critical",
    "sync": "proactive",
    "max_tokens": "proactive",
    "mid_turn": "proactive",
    "interrupted": "interrupted",
    "manual": "manual",
}
"""What a trigger means to a user: a limit is reached, a model is about to be asked, or a turn broke off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """Words for the user."""

    level: NotificationLevel
    title: str
    message: str
    locale: str


def notification_of(
    type_: str, data: Mapping[str, Any], policy: CompactionPolicy, catalogue: Catalogue
) -> Notification | None:
    """What a user is told of an event; ``None`` if the policy wants nothing said, or there is nothing to say.

    ``summary`` tells what was done; ``before_and_after`` also tells that a compaction begins, and that it came to
    nothing. The user is told nothing of a compaction that an erasure started.
    """
    wanted, trigger = policy.notifications, str(data.get("trigger"))
    if wanted == "events" or trigger == ERASURE_TRIGGER:
        return None
    reason = _reason(trigger, policy, catalogue)
    if type_ == APPLIED:
        return _notification("after", catalogue, reason=reason, done=_messages_and_savings(data, catalogue))
    if wanted != "before_and_after":
        return None
    if type_ == STARTED:
        tokens = catalogue.text("notice.tokens", count=_number(data, "tokens_before"))
        return _notification("before", catalogue, reason=reason, tokens=tokens)
    level = UNCHANGED.get(type_)
    return _notification("unchanged", catalogue, level, reason=reason) if level else None


def _notification(moment: str, catalogue: Catalogue, level: NotificationLevel = "info", **words: str) -> Notification:
    return Notification(
        level=level,
        title=catalogue.text(f"notice.{moment}.title"),
        message=catalogue.text(f"notice.{moment}.message", **words),
        locale=catalogue.language,
    )


def _reason(trigger: str, policy: CompactionPolicy, catalogue: Catalogue) -> str:
    kind = _REASON_BY_TRIGGER.get(trigger, "critical")
    at = next((one.at for one in policy.triggers if one.name == trigger), None)
    # If the trigger has a number of tokens as well as a share, the number may be the one that was reached.
    share = (at.share or at.window) if at and at.tokens is None else None
    if share is None:
        return catalogue.text(f"notice.reason.{kind}")
    return catalogue.text(f"notice.reason.{kind}_at", percent=percent(share))


def _messages_and_savings(data: Mapping[str, Any], catalogue: Catalogue) -> str:
    phrases = [catalogue.text("summary.messages", count=_number(data, "messages_covered"))]
    saved = _number(data, "tokens_before") - _number(data, "tokens_after")
    if data.get("tokens_after") is not None and saved > 0:
        phrases.append(catalogue.text("summary.saved", count=saved))
    return ", ".join(phrases)


def _number(data: Mapping[str, Any], name: str) -> int:
    return int(data.get(name) or 0)

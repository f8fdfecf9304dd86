"""Finds demands of a policy that can never be met, when it is set: the field, and the arithmetic that shows it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from app.core.model.errors import FieldError
from app.core.model.policies.adaptive import adaptive_errors
from app.core.model.policies.budgets import Budgets
from app.core.model.policies.policy import CompactionPolicy, Trigger
from app.core.model.policies.short_forms import short_form_of, switched_off


class FixedTokens(NamedTuple):
    """The tokens that stand before the state block."""

    system: int
    files: int

    @property
    def tokens(self) -> int:
        """The sum of both."""
        return self.system + self.files


def contradictions(
    policy: CompactionPolicy, budgets: Budgets, system_tokens: int, sent: Collection[str] = (), *, files: int = 0
) -> list[FieldError]:
    """The reasons why this policy can never be met; empty if it can.

    A compaction has to end below its trigger. What is always served has to fit below the target. And what may be served
    beside the tail has to leave room for a tail.

    Args:
        policy: The resolved policy.
        budgets: Its shares in tokens.
        system_tokens: The tokens of system prompt, awareness block and tools.
        sent: The fields that the client sent. A short form that it used is named in the error.
        files: The tokens of the attached files.
    """
    fixed = FixedTokens(system_tokens, files)
    return [
        *_targets_above_triggers(policy, budgets, sent),
        *adaptive_errors(policy, budgets),
        *_floor_above_target(policy, budgets, fixed),
        *_floors_above_triggers(policy, budgets, fixed, sent),
        *_keeps_above_triggers(policy, budgets, fixed, sent),
        *_shares_above_budget(policy, budgets, fixed),
    ]


def without_triggers(policy: CompactionPolicy, overrides: Mapping[str, Any]) -> list[FieldError]:
    """The reasons why the triggers must stay that these overrides switch off; empty if they may go.

    Where nothing compacts and nothing is truncated, a conversation only grows until it is refused.
    """
    off = switched_off(overrides)
    if not off or policy.triggers or policy.on_failure != "keep_full":
        return []
    message = (
        'null leaves no trigger, and with on_failure "keep_full" the context grows until it exceeds the window: leave a'
        ' trigger, or set on_failure to "truncate"'
    )
    return [FieldError(field=f"policy.{form}", message=message) for form in off]


def _targets_above_triggers(policy: CompactionPolicy, budgets: Budgets, sent: Collection[str]) -> Iterator[FieldError]:
    for index, trigger in enumerate(policy.triggers):
        first = trigger.at.first_tokens(budgets)
        if trigger.fold == "to_target" and first is not None and first <= budgets.target:
            message = (
                f"{_target_in_words(policy, budgets)} must be below the trigger {trigger.name}, which fires from"
                f" {first} tokens on"
            )
            form = _short_form(policy, sent, "triggers", index, "at")
            if form:
                yield FieldError(field=f"policy.{form}", message=f"{message}: raise {form}, or lower target")
            yield FieldError(field="policy.target", message=message)


def _floor_above_target(policy: CompactionPolicy, budgets: Budgets, fixed: FixedTokens) -> Iterator[FieldError]:
    floor = fixed.tokens + budgets.state_cap
    if floor <= budgets.target:
        return
    reserve = budgets.limit - budgets.window
    reserves_most = policy.output_reserve is not None and reserve > budgets.window
    limit = f"a limit of {budgets.limit}" + (f" less output_reserve {reserve}" if reserves_most else "")
    advice = "lower output_reserve or raise context_window" if reserves_most else "raise context_window"
    yield FieldError(
        field="policy.output_reserve" if reserves_most else "policy.context_window",
        message=f"{_floor_in_words(budgets, fixed)} = {floor} tokens exceeds {_target_in_words(policy, budgets)}, from"
        f" {limit}: {advice}, shorten the system prompt, or lower state_tokens",
    )


def _floors_above_triggers(
    policy: CompactionPolicy, budgets: Budgets, fixed: FixedTokens, sent: Collection[str]
) -> Iterator[FieldError]:
    floor = fixed.tokens + budgets.state_cap
    for index, trigger in enumerate(policy.triggers):
        first = trigger.at.first_tokens(budgets)
        # It would fire again right after its own compaction.
        if trigger.fold == "all" and first is not None and first <= floor:
            yield FieldError(
                field=_field_as_written(policy, sent, "triggers", index, "at"),
                message=f"the trigger {trigger.name} fires from {first} tokens on, but"
                f" {_floor_in_words(budgets, fixed)} = {floor} tokens are always there: raise it",
            )


def _keeps_above_triggers(
    policy: CompactionPolicy, budgets: Budgets, fixed: FixedTokens, sent: Collection[str]
) -> Iterator[FieldError]:
    """Errors for triggers that keep so much that nothing is left to fold."""
    floor = fixed.tokens + budgets.state_cap
    for index, trigger in enumerate(policy.triggers):
        most_tokens, where = _most_after_compaction(trigger, policy, budgets)
        if trigger.keep_tokens and floor <= most_tokens < floor + trigger.keep_tokens:
            yield FieldError(
                field=f"policy.triggers.{index}.keep_tokens",
                message=f"{_floor_in_words(budgets, fixed)} + keep_tokens {trigger.keep_tokens} ="
                f" {floor + trigger.keep_tokens} tokens exceeds {where}: at most {most_tokens - floor} can be kept",
            )
        if trigger.at.messages is not None and trigger.keep_messages > trigger.at.messages:
            yield FieldError(
                field=_field_as_written(policy, sent, "triggers", index, "keep_messages"),
                message=f"the trigger {trigger.name} fires above {trigger.at.messages} messages and keeps"
                f" {trigger.keep_messages}: it would never end; keep at most {trigger.at.messages}",
            )


def _most_after_compaction(trigger: Trigger, policy: CompactionPolicy, budgets: Budgets) -> tuple[int, str]:
    first = trigger.at.first_tokens(budgets)
    if trigger.fold == "to_target":
        return budgets.target, _target_in_words(policy, budgets)
    if first is None:
        return budgets.budget, f"the budget of {budgets.budget}"
    return first - 1, f"{first - 1}, the most at which the trigger {trigger.name} does not fire"


def _shares_above_budget(policy: CompactionPolicy, budgets: Budgets, fixed: FixedTokens) -> Iterator[FieldError]:
    """Errors for shares that together exceed the budget: pins and anchors would be promised room that is not there."""
    anchors = budgets.anchor_tokens or 0
    most = fixed.tokens + budgets.state_cap + anchors + budgets.pin_tokens
    if most <= budgets.budget:
        return
    larger = "pin_share" if budgets.pin_tokens > anchors else "anchor_share"
    yield FieldError(
        field=f"policy.{larger}",
        message=f"{_floor_in_words(budgets, fixed)} + anchors {anchors}"
        f" (anchor_share {_share_in_words(policy.anchor_share)}) + pins {budgets.pin_tokens}"
        f" (pin_share {policy.pin_share:g}) = {most} tokens exceeds the budget of {budgets.budget}:"
        " lower anchor_share, pin_share or state_tokens",
    )


def _field_as_written(policy: CompactionPolicy, sent: Collection[str], *path: str | int) -> str:
    return f"policy.{_short_form(policy, sent, *path) or '.'.join(map(str, path))}"


def _short_form(policy: CompactionPolicy, sent: Collection[str], *path: str | int) -> str | None:
    return short_form_of(path, [trigger.name for trigger in policy.triggers], sent)


def _floor_in_words(budgets: Budgets, fixed: FixedTokens) -> str:
    files = f" + files {fixed.files}" if fixed.files else ""
    return f"system prompt with awareness block {fixed.system}{files} + state cap {budgets.state_cap}"


def _target_in_words(policy: CompactionPolicy, budgets: Budgets) -> str:
    return f"the target of {budgets.target} ({policy.target:g} × budget {budgets.budget})"


def _share_in_words(share: float | None) -> str:
    return "none" if share is None else f"{share:g}"

"""Conversations: create, read, change, delete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import UUID

from app.core.model.conversation import Conversation, QuietPeriod
from app.core.model.errors import (
    FieldError,
    ForbiddenError,
    InvalidInputError,
    PolicyInvalidError,
    StateVersionMismatchError,
)
from app.core.model.fieldwise import from_same_fields
from app.core.model.gauge import Gauge
from app.core.model.json_merge import merge_patch
from app.core.model.json_sizes import MERGED_BYTES, json_bytes
from app.core.model.policies.contradictions import contradictions, without_triggers
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.policies.presets import Preset
from app.core.model.policies.resolving import PRESETS, preset_named
from app.core.model.records import Page
from app.core.text import memo
from app.off_loop import BYTES_PER_POLICY, MAX_BYTES_ON_LOOP, off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.chunk import check_models
from app.usecases.compaction.claiming import refresh_sizes
from app.usecases.compaction.due_triggers import claim_at_rest
from app.usecases.compaction.spend_guard import SPEND_LIMIT
from app.usecases.history.holding import (
    NO_GOALS,
    Goals,
    asks_for_goals,
    decide_protection_again,
    goals_stated,
    renew_layout,
)
from app.usecases.history.removing import ROWS, delete_conversation
from app.usecases.shared.caller import audit, current_user
from app.usecases.shared.idempotency import Idem, claim_key, record
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.retries import Compute, Results, run_with_retries
from app.usecases.shared.shell import Service

POLICY = frozenset({"preset", "policy"})
SHAPING = POLICY | {"system_prompt", "locale"}  # these change sizes or thresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class NewConversation:
    """The fields that a client gives for a new conversation."""

    id: UUID | None = None
    """The id, if it follows from the client's own name for the conversation; otherwise one is made."""
    title: str | None = None
    user_id: str | None = None
    locale: str = "en"
    system_prompt: str = ""
    preset: str | None = None
    """The preset; ``None`` = the operator's default."""
    preset_version: int | None = None
    """The version of the preset that an exported conversation had; ``None`` = the present one."""
    policy: Mapping[str, Any] = field(default_factory=dict)
    scratchpad: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationView:
    """A conversation as clients see it."""

    conversation: Conversation
    policy: CompactionPolicy
    gauge: Gauge


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetView:
    """A preset with the operator's numbers, as this service uses it."""

    preset: Preset
    policy: CompactionPolicy
    """The preset's policy, with the operator's numbers."""
    earlier: Mapping[int, CompactionPolicy]
    """The same of the versions before."""
    is_default: bool


class ConversationService(Service):
    """Everything about a conversation but its messages, turns and states."""

    def presets(self) -> list[PresetView]:
        """All presets."""
        resolver = self._shell.resolver
        return [
            PresetView(
                preset=preset,
                policy=resolver.policy(name, {}, preset.version),
                earlier={version: resolver.policy(name, {}, version) for version in preset.earlier},
                is_default=name == resolver.default_preset,
            )
            for name, preset in PRESETS.items()
        ]

    async def create(self, tenant_id: UUID, given: NewConversation, *, idem: Idem | None = None) -> ConversationView:
        """A new conversation.

        Raises:
            PolicyInvalidError: Its policy can never be met, or names a model that cannot be built.
            ModelNotAllowedError: Its policy names a model that the operator does not allow.
            ConflictError: A conversation with the given id exists already.
            ForbiddenError: The key belongs to another end user.
        """
        now = self._shell.clock.now()
        preset = given.preset or self._shell.resolver.default_preset
        conversation = from_same_fields(
            Conversation,
            given,
            id=given.id or self._shell.new_id(),
            tenant_id=tenant_id,
            user_id=_owner_of(given),
            preset=preset,
            preset_version=given.preset_version or preset_named(preset).version,
            created_at=now,
            updated_at=now,
        )
        await self._shell.resolver.weigh_large_prompt(conversation)
        resolved = self._shell.resolver(conversation)
        self._refuse_unmeetable(resolved, {"policy": given.policy})
        await check_models(self._shell.models, given.policy)
        if given.id is not None:
            await self._remove_deleted(tenant_id, given.id)
        async with self._shell.uow(tenant_id) as uow:
            before = await claim_key(uow, idem, now)
            if before is not None:
                return self.view(await uow.conversations.get(UUID(before["conversation_id"])))
            await uow.conversations.add(conversation)
            stored = await refresh_sizes(uow, resolved)
            await record(uow, idem, {"conversation_id": str(conversation.id)})
            await uow.commit()
        return self.view(stored)

    async def _remove_deleted(self, tenant_id: UUID, conversation_id: UUID) -> None:
        removed = ROWS
        while removed >= ROWS:
            async with self._shell.uow(tenant_id) as uow:
                if not await uow.conversations.is_being_removed(conversation_id):
                    return
                removed = await uow.removal.remove(conversation_id, limit=ROWS)
                await uow.commit()

    async def get(self, tenant_id: UUID, conversation_id: UUID) -> ConversationView:
        """One conversation."""
        async with self._shell.uow(tenant_id) as uow:
            return self.view(await uow.conversations.get(conversation_id))

    async def page(
        self, tenant_id: UUID, page: Page, user_id: str | None = None
    ) -> tuple[list[ConversationView], str | None]:
        """A page of conversations, by default those that were active last come first."""
        async with self._shell.uow(tenant_id) as uow:
            rows, cursor = await uow.conversations.page(page, user_id=user_id)
        return await off_loop(lambda: [self.view(row) for row in rows], size=BYTES_PER_POLICY * len(rows)), cursor

    async def usage(self, tenant_id: UUID, conversation_id: UUID) -> Gauge:
        """How full the context is."""
        return (await self.get(tenant_id, conversation_id)).gauge

    async def delete(self, tenant_id: UUID, conversation_id: UUID) -> None:
        """Delete a conversation with everything derived.

        It disappears at once; the rows of a long one are removed in steps.

        Raises ``NotFoundError``.
        """
        async with self._shell.uow(tenant_id) as uow:
            turns = await delete_conversation(uow, conversation_id)
            await audit(uow, self._shell, tenant_id, "conversation.deleted", conversation_id)
            await uow.commit()
            uow.forget_values()
        await off_loop(memo.forget)
        await self._shell.streams.forget(turns)
        await self._shell.bus.hint(conversation_id, "deleted")

    async def patch(
        self, tenant_id: UUID, conversation_id: UUID, changes: Mapping[str, Any], *, if_match: int | None = None
    ) -> ConversationView:
        """Change the given fields; what follows from a change of policy is recomputed in the same transaction.

        Raises what ``create`` raises, and ``InvalidInputError`` if scratchpad or metadata would become too large.
        """
        await check_models(self._shell.models, changes.get("policy", {}))
        goals = await self._goals_if_asked(tenant_id, conversation_id, changes, if_match)
        once = partial(self._patched, tenant_id, conversation_id, changes, if_match, goals)
        return await run_with_retries(once)

    async def _patched(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        changes: Mapping[str, Any],
        if_match: int | None,
        goals: Goals,
        results: Results,
    ) -> ConversationView:
        async with self._shell.uow(tenant_id) as uow:
            present = await uow.conversations.lock(conversation_id)
            check_version(present, if_match)
            values = _values_with_merged(present, changes)
            await self._shell.resolver.weigh_large_prompt(replace(present, **values))
            before, after = self._shell.resolver(present), self._shell.resolver(replace(present, **values))
            if before.policy.estimator != after.policy.estimator:
                values["token_factor"] = 1.0  # the factor was learned with the other estimator
                after = self._shell.resolver(replace(present, **values))
            if SHAPING & values.keys():
                self._refuse_naming_changed_field(after, changes)
                after = await self._with_decisions_renewed(uow, before, after, goals, results)
            if POLICY & values.keys():
                values |= {"quiet": QuietPeriod(), "failure_count": 0}
                await uow.verifications.make_due(conversation_id, SPEND_LIMIT)
            if before.prefix != after.prefix or after.policy.cache == "off":
                await uow.caches.leave(conversation_id)
            stored = await refresh_sizes(uow, after, **values, updated_at=self._shell.clock.now())
            resolved = self._shell.resolver(stored)
            if POLICY & values.keys():
                await claim_at_rest(uow, self._shell, resolved)
                await audit(uow, self._shell, tenant_id, "policy.changed", conversation_id)
            await uow.commit()
        return self.view(resolved.conversation)

    def view(self, conversation: Conversation) -> ConversationView:
        """The row, with everything that follows from it."""
        resolved = self._shell.resolver(conversation)
        return ConversationView(conversation=conversation, policy=resolved.as_set[0], gauge=resolved.gauge)

    async def _goals_if_asked(
        self, tenant_id: UUID, conversation_id: UUID, changes: Mapping[str, Any], if_match: int | None
    ) -> Goals:
        """The messages in which goals are stated, if the change needs them.

        They are read before the conversation is locked. The tokens of a large system prompt are counted here as well.
        """
        if not POLICY & changes.keys() and len(changes.get("system_prompt") or "") <= MAX_BYTES_ON_LOOP:
            return NO_GOALS
        async with self._shell.uow(tenant_id) as uow:
            present = await uow.conversations.get(conversation_id)
            check_version(present, if_match)
            changed = replace(present, **_values_with_merged(present, changes))
            await self._shell.resolver.weigh_large_prompt(changed)
            after = self._shell.resolver(changed)
            asks = asks_for_goals(self._shell.resolver(present), after)
            return await goals_stated(uow, after) if asks else NO_GOALS

    async def _with_decisions_renewed(
        self, uow: UnitOfWork, before: Resolved, after: Resolved, goals: Goals, compute: Compute
    ) -> Resolved:
        decides, decided = _protection_inputs(before) != _protection_inputs(after), after
        if decides:
            goals = await goals_stated(uow, after, goals) if asks_for_goals(before, after) else NO_GOALS
            decided = await decide_protection_again(uow, self._shell, after, goals, compute=compute)
        if decides or _block_inputs(before) != _block_inputs(after):
            return await renew_layout(uow, self._shell, decided, compute=compute)
        return decided

    def _refuse_unmeetable(self, resolved: Resolved, changes: Mapping[str, Any]) -> None:
        """Refuse a policy that contradicts itself or the chat model. The error shows the calculation."""
        window = changes.get("policy", {}).get("context_window")
        if window is not None:
            self._shell.resolver.refuse_beyond_model(window)
        (policy, budgets), overrides = resolved.as_set, resolved.conversation.policy
        files = resolved.conversation.file_tokens
        errors = contradictions(policy, budgets, resolved.floor_tokens - files, overrides, files=files)
        if POLICY & changes.keys():
            errors += without_triggers(policy, overrides)
        if errors:
            raise PolicyInvalidError(errors[0].message, errors=errors)

    def _refuse_naming_changed_field(self, resolved: Resolved, changes: Mapping[str, Any]) -> None:
        try:
            self._refuse_unmeetable(resolved, changes)
        except PolicyInvalidError as error:
            if POLICY & changes.keys():
                raise
            fields = [FieldError(field="system_prompt", message=item.message) for item in error.errors]
            raise PolicyInvalidError(error.detail, errors=fields) from None


def _values_with_merged(present: Conversation, changes: Mapping[str, Any]) -> dict[str, Any]:
    values = {
        name: _merged_within_limit(name, getattr(present, name), value or {}) if name in MERGED_BYTES else value
        for name, value in changes.items()
    }
    if "preset" in changes:  # also the same preset: so a conversation moves on to the present version
        values["preset_version"] = preset_named(changes["preset"]).version
    return values


def _merged_within_limit(field: str, present: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    merged = merge_patch(present, patch)
    size, before, limit = json_bytes(merged), json_bytes(present), MERGED_BYTES[field]
    # A value stored before the limit existed may be too large; it may be made smaller.
    if size <= max(limit, before):
        return merged
    message = (
        f"would be {size} bytes as JSON together with what is there already ({before}), at most {limit} are kept:"
        " remove members by setting them to null"
    )
    raise InvalidInputError(f"{field}: {message}", errors=[FieldError(field=field, message=message)])


def _protection_inputs(resolved: Resolved) -> tuple[object, ...]:
    policy = resolved.policy
    return policy.protect, policy.held_roles, policy.estimator, policy.over_allotment, resolved.budgets.pin_tokens


def _block_inputs(resolved: Resolved) -> tuple[object, ...]:
    policy, budgets = resolved.policy, resolved.budgets
    return policy.served_as, policy.estimator, policy.levels, budgets.anchor_tokens, budgets.digest_tokens


def check_version(conversation: Conversation, expected: int | None) -> None:
    """Refuse if the state has another version than the one that the client read."""
    if expected is not None and conversation.state_version != expected:
        raise StateVersionMismatchError(
            f"the state is version {conversation.state_version}, not {expected}: read it again",
            extra={"state_version": conversation.state_version},
        )


def _owner_of(given: NewConversation) -> str | None:
    own = current_user()
    if own is not None and given.user_id not in {None, own}:
        raise ForbiddenError("this key is of one end user: leave user_id out, or name that one")
    return own or given.user_id

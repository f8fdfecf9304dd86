"""Values for tests; everything that a test does not specify is filled in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any
from uuid import UUID, uuid5

import pytest

from app.core.context.assembly import ContextInputs, system_text
from app.core.context.awareness import awareness_block
from app.core.model.conversation import Conversation, Message, Outline, Role, Sums
from app.core.model.policies.budgets import Budgets, budgets_of
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.policies.presets import Preset
from app.core.model.policies.protection import protected_reason
from app.core.model.policies.resolving import PRESETS, _resolved_policy, resolve
from app.core.model.schemas import schema_named
from app.core.state.layout import layout_of
from app.core.text.parts import Part
from app.core.text.token_counts import weigh

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
NAMESPACE = UUID("00000000-0000-7000-8000-000000000000")
TENANT = uuid5(NAMESPACE, "tenant")
CONVERSATION = uuid5(NAMESPACE, "conversation")


def outline(*items: tuple[Role, int] | Outline) -> tuple[Outline, ...]:
    """Outlines from (role, tokens) pairs, numbered from 1; ready-made outlines keep everything but their number."""
    made = []
    for seq, item in enumerate(items, start=1):
        if isinstance(item, Outline):
            made.append(replace(item, seq=seq))
        else:
            made.append(Outline(seq=seq, role=item[0], token_count=item[1], byte_length=4 * item[1]))
    return tuple(made)


def message(
    seq: int,
    content: str,
    role: Role | None = None,
    *,
    parts: Sequence[Part] = (),
    policy: CompactionPolicy | None = None,
    **changes: Any,
) -> Message:
    """A message of the test conversation. Messages with odd numbers are a user's unless a role is given."""
    role = role or ("user" if seq % 2 else "assistant")
    weight = weigh(role, content, tuple(parts))
    reason = protected_reason(policy, role=role, turn=seq - 1) if policy else "compressible"
    values: dict[str, Any] = {
        "id": uuid5(NAMESPACE, f"message {seq}"),
        "conversation_id": CONVERSATION,
        "seq": seq,
        "role": role,
        "content": content,
        "parts": tuple(parts),
        "token_count": weight.tokens,
        "byte_length": weight.bytes,
        "protected_reason": reason,
        "created_at": START + timedelta(minutes=seq),
    }
    return Message(**(values | changes))


def sums_of(messages: Sequence[Message]) -> Sums:
    """The running sums through the last of these messages."""
    each = (
        Sums(
            tokens=item.token_count,
            bytes=item.byte_length,
            held_tokens=item.token_count if item.is_protected else 0,
            held_bytes=item.byte_length if item.is_protected else 0,
        )
        for item in messages
        if not item.is_command
    )
    return list(accumulate(each, Sums.plus, initial=Sums()))[-1]


def policy_of(**overrides: Any) -> CompactionPolicy:
    """The ``semantic`` policy with overrides."""
    return resolve("semantic", overrides)


def changed_preset(monkeypatch: pytest.MonkeyPatch, name: str, **fields: Any) -> Preset:
    """A release changes these fields of a preset's policy: its next version."""
    preset = PRESETS[name]
    policy = CompactionPolicy.model_validate(preset.policy.model_dump() | fields)
    changed = replace(preset, version=preset.version + 1, policy=policy, earlier=preset.policies)
    replaced_preset(monkeypatch, changed)
    return changed


def replaced_preset(monkeypatch: pytest.MonkeyPatch, preset: Preset) -> None:
    """For the test, the preset is in place of that of its name."""
    monkeypatch.setitem(PRESETS, preset.name, preset)
    _resolved_policy.cache_clear()  # else it would know what a test before called that version


def budgets(policy: CompactionPolicy | None = None, limit: int = 1_048_576) -> Budgets:
    """The budgets of a policy for a model of this limit."""
    return budgets_of(policy or policy_of(), limit)


def material(
    messages: Sequence[Message],
    *,
    policy: CompactionPolicy,
    state: dict[str, Any] | None = None,
    boundary: int = 0,
    system_prompt: str = "",
    days: bool = False,
) -> ContextInputs:
    """The material of a context, as the service would load it, with the days of held messages if asked for."""
    schema = schema_named(policy.state_schema)
    covered = [item for item in messages if item.seq <= boundary]
    held = tuple(item for item in covered if item.is_protected)
    conversation = Conversation(
        id=CONVERSATION,
        tenant_id=TENANT,
        system_prompt=system_prompt,
        compressed_state=state,
        state_schema=schema.name if state else None,
        boundary_seq=boundary,
        state_version=1 if state else 0,
        layout=layout_of(
            schema, state, served_as=policy.served_as, estimator=policy.estimator, held=held if days else ()
        )
        if state
        else None,
        last_seq=len(messages),
        total=sums_of(messages),
        covered=sums_of(covered),
        created_at=START,
        updated_at=START,
    )
    return ContextInputs(
        conversation=conversation,
        schema=schema,
        policy=policy,
        budgets=budgets(policy),
        system=system_text(
            system_prompt, awareness_block(schema, "en", policy.levels, anchor_share=policy.anchor_share)
        ),
        held=held,
        tail=tuple(item for item in messages if item.seq > boundary and not item.is_command),
    )


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value of a JSON document, with its path."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, path)
    else:
        yield path, value

"""Writes the state version that results from a verification: other entries, the same boundary."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from app.core.model.conversation import Conversation
from app.core.model.policies.budgets import Budgets
from app.core.model.policies.policy import CompactionPolicy
from app.core.model.repairs import Repair
from app.core.model.schemas import schema_named
from app.core.model.state import StateEntry, StateVersion
from app.core.state.apply import served
from app.core.state.layout import layout_of
from app.core.state.pruning import prune, state_of, state_token_limit, with_returned
from app.core.state.schema_change import next_entry_number
from app.core.validation.verdict_application import was_pruned_by_cap_alone
from app.off_loop import off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.claiming import refresh_sizes
from app.usecases.shared.layouts import lay_out
from app.usecases.shared.retries import Compute
from app.usecases.shared.shell import Shell


async def write_entries(
    shell: Shell,
    uow: UnitOfWork,
    present: Conversation,
    current: StateVersion,
    entries: Sequence[StateEntry],
    repairs: Sequence[Repair],
    *,
    returning: Collection[str] = (),
    compute: Compute = off_loop,
) -> StateVersion:
    """Store a state version with these entries and repairs, after a verification.

    Counters, events and notices of compactions stay unchanged, since this is not a compaction. Removed entries whose
    ids are ``returning`` are served again as far as there is room now. ``compute`` runs the work that takes long:
    choosing the entries that fit, and their layout.
    """
    resolved, schema = shell.resolver(present), schema_named(current.state_schema)
    fitting = await compute(_within_cap, entries, current, resolved.policy, resolved.budgets, returning)
    state = state_of(schema, fitting)
    layout = await lay_out(
        uow, resolved, schema=schema, state=state, boundary_seq=current.boundary_seq, compute=compute
    )
    version = replace(
        current,
        version=current.version + 1,
        parent_version=current.version,
        state=state,
        entries=fitting,
        next_entry=next_entry_number(fitting, current.next_entry),
        covered=present.covered,
        layout=layout,
        segment_ids=(),
        repairs=tuple(one.redacted() for one in repairs),
        made_by="verification",
        created_at=shell.clock.now(),
    )
    await uow.states.add(present.id, version)
    changed = await uow.conversations.update(present.id, **version.as_served, layout_version=present.layout_version + 1)
    await refresh_sizes(uow, shell.resolver(changed))
    return version


def ids_pushed_out(current: StateVersion) -> frozenset[str]:
    """The older entries for which the compaction that wrote this version had no room."""
    if current.made_by != "compaction":
        return frozenset()
    lost = filter(was_pruned_by_cap_alone, current.entries)
    return frozenset(entry.id for entry in lost if entry.since_version < current.version)


def _within_cap(
    entries: Sequence[StateEntry],
    current: StateVersion,
    policy: CompactionPolicy,
    budgets: Budgets,
    returning: Collection[str] = (),
) -> tuple[StateEntry, ...]:
    """The entries pruned to the cap or, if the served state was already above the cap, to its size.

    Removed entries whose ids are ``returning`` are served again as far as there is room.
    """
    schema = schema_named(current.state_schema)

    def weight(given: Sequence[StateEntry]) -> int:
        state = state_of(schema, given)
        return layout_of(schema, state, served_as=policy.served_as, estimator=policy.estimator).tokens

    most = max(state_token_limit(schema, budgets), weight(served(current.entries)))

    def fits(state: dict[str, object]) -> bool:
        return layout_of(schema, state, served_as=policy.served_as, estimator=policy.estimator).tokens <= most

    kept, pushed_out = prune(schema, entries, fits=fits)
    if returning and not pushed_out:
        lost = [entry for entry in entries if entry.pruned and entry.id in returning]
        kept = with_returned(schema, kept, lost, fits=fits)
    served_ids = {entry.id for entry in kept}
    return (*kept, *pushed_out, *(entry for entry in entries if entry.pruned and entry.id not in served_ids))

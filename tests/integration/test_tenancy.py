"""Two tenants whose rows have the very same ids: nothing of one is ever seen or touched by another.

``CALLS`` names every method of every repository; a method that is added later without a line here fails a test.
The control takes the tenant's condition away and must see the leak. Postgres looks away here, or it would hide what the
condition lets pass: ``test_row_security.py`` has the same calls with Postgres alone.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import delete, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import aliased
from sqlmodel import col

from app.core.model.anchors import Ranking, Transition
from app.core.model.caches import CacheEntry, ProviderCache
from app.core.model.conversation import Sums, Usage
from app.core.model.embedding import MessageVector
from app.core.model.errors import ConflictError, DomainError, NotFoundError
from app.core.model.files import ConversationFile, ProviderFile
from app.core.model.records import (
    ApiKey,
    Attempt,
    AuditEntry,
    DetailCall,
    Erasure,
    FoldRequest,
    IdempotencyRecord,
    Page,
    ProviderCopy,
    Verification,
    Work,
)
from app.core.model.repairs import Repair
from app.core.model.state import StateVersion
from app.core.model.statistics import Measurements
from app.core.text.contents import detached_contents
from app.storage import tenancy
from app.storage.compiled import compiled_for
from app.storage.database import make_engine
from app.storage.repositories.base import Repository
from app.storage.repositories.cursor import encode
from app.storage.repositories.keys import ReadKey
from app.storage.repositories.message_search import FoundMessages
from app.storage.repositories.states import KnownVersions
from app.storage.repositories.statistics import Ended
from app.storage.scoped_session import TenantSession
from app.storage.tables import ConversationRow, MessageRow, TenantScoped
from app.storage.tenancy import ScopedSession, UnscopedStatementError
from app.storage.unit_of_work import UnitOfWork, UnitOfWorkFactory
from tests.integration.rows import (
    START,
    anchor,
    append,
    compaction,
    connection_of,
    conversation,
    expansion,
    level,
    make_tenant,
    message,
    segment,
    turn,
)
from tests.servers import as_owner, with_role

CONVERSATION, MESSAGE, COMPACTION, TURN, KEY, LEASE, ANCHOR = (UUID(int=number) for number in range(1, 8))
EXPANSION, DETAIL_CALL, WORK, VERIFICATION, AUDITED, STRAY = (UUID(int=number) for number in (11, 12, 13, 14, 15, 91))
ERASED, FILE, CACHE = UUID(int=16), UUID(int=17), UUID(int=19)
LATER = UUID(int=2**128 - 1)
QUOTE = {"from_seq": 1, "to_seq": 1}
AGES = timedelta(days=40_000)
FAILED_CALL = Attempt(model="any", outcome="error", reason=None, duration_ms=1, usage=Usage())
HASH = b"h" * 32
ALL = Page(limit=100)
HOUR = timedelta(hours=1)

MEDIA = {"type": "media", "media_type": "image/png", "data": "iVBORw0KGgo="}
STORED, CONTENTS = detached_contents([MEDIA])
(IMAGE,) = CONTENTS
SHOWN = message(CONVERSATION, 1, id=MESSAGE, parts=STORED)
ANSWER = message(CONVERSATION, 9, role="tool", parts=({"type": "tool_result", "tool_call_id": "call", "content": ""},))

Call = Callable[[UnitOfWork], Awaitable[Any]]


async def names_of_others(unit: UnitOfWork) -> set[str]:
    """The names of tenants that a stranger can read, without its own."""
    return {*(await unit.keys.tenant_names()).values()} - {"stranger"}


# The result for a tenant that owns nothing and uses another's ids: the error, or the answer that means "none".
NOT_FOUND = NotFoundError
CALLS: dict[str, tuple[Call, Any]] = {
    "conversations.get": (lambda unit: unit.conversations.get(CONVERSATION), NOT_FOUND),
    "conversations.locales": (lambda unit: unit.conversations.locales([CONVERSATION]), {}),
    "conversations.lock": (lambda unit: unit.conversations.lock(CONVERSATION), NOT_FOUND),
    "conversations.note_due_anchors": (lambda unit: unit.conversations.note_due_anchors(CONVERSATION, 1), None),
    "conversations.update": (lambda unit: unit.conversations.update(CONVERSATION, title="stolen"), NOT_FOUND),
    "conversations.delete": (lambda unit: unit.conversations.delete(CONVERSATION), NOT_FOUND),
    "conversations.page": (lambda unit: unit.conversations.page(ALL, user_id=None), ([], None)),
    "conversations.hide": (lambda unit: unit.conversations.hide(CONVERSATION), NOT_FOUND),
    "conversations.of_user": (lambda unit: unit.conversations.of_user(None, limit=9), []),
    "conversations.is_there": (lambda unit: unit.conversations.is_there(CONVERSATION), False),
    "conversations.is_being_removed": (lambda unit: unit.conversations.is_being_removed(CONVERSATION), False),
    "conversations.with_stale_sums": (lambda unit: unit.conversations.with_stale_sums(limit=9), []),
    "conversations.deleted": (lambda unit: unit.conversations.deleted(limit=9), []),
    "conversations.due": (lambda unit: unit.conversations.due(limit=9), []),
    "conversations.quiet_for": (lambda unit: unit.conversations.quiet_for("x", limit=9, after=None), []),
    "conversations.end_quiet": (lambda unit: unit.conversations.end_quiet(["x"], limit=9), 0),
    "messages.append": (
        lambda unit: unit.messages.append([message(CONVERSATION, 4), message(CONVERSATION, 5)], [Sums(), Sums()]),
        NOT_FOUND,
    ),
    "messages.get": (lambda unit: unit.messages.get(CONVERSATION, MESSAGE), NOT_FOUND),
    "messages.note_usage": (lambda unit: unit.messages.note_usage(CONVERSATION, MESSAGE, {"stolen": 1}), NOT_FOUND),
    "messages.with_reasoning": (
        lambda unit: unit.messages.with_reasoning([message(CONVERSATION, 3, id=UUID(int=10), role="assistant")]),
        [message(CONVERSATION, 3, id=UUID(int=10), role="assistant")],
    ),
    "messages.find": (lambda unit: unit.messages.find(MESSAGE), NOT_FOUND),
    "messages.oldest": (lambda unit: unit.messages.oldest(CONVERSATION, from_seq=1, limit=9, max_bytes=99), []),
    "messages.all_between": (lambda unit: unit.messages.all_between(CONVERSATION, 1, 9), []),
    "messages.at_seq": (lambda unit: unit.messages.at_seq(CONVERSATION, 1), NOT_FOUND),
    "messages.sums_at": (lambda unit: unit.messages.sums_at(CONVERSATION, 1), NOT_FOUND),
    "messages.last": (lambda unit: unit.messages.last(CONVERSATION), None),
    "messages.steps": (lambda unit: unit.messages.steps(CONVERSATION, "script", limit=9), []),
    "messages.page": (lambda unit: unit.messages.page(CONVERSATION, ALL), ([], None)),
    "messages.all_texts": (lambda unit: unit.messages.all_texts(CONVERSATION, after_seq=0, limit=9, max_bytes=9), []),
    "messages.outline": (lambda unit: unit.messages.outline(CONVERSATION, after_seq=0, limit=9), []),
    "messages.between": (lambda unit: unit.messages.between(CONVERSATION, 1, 9), []),
    "messages.in_ranges": (lambda unit: unit.messages.in_ranges(CONVERSATION, [(1, 9)]), []),
    "messages.newest": (lambda unit: unit.messages.newest(CONVERSATION, after_seq=0, max_tokens=99), []),
    "messages.held": (lambda unit: unit.messages.held(CONVERSATION, through_seq=9), []),
    "messages.known_calls": (lambda unit: unit.messages.known_calls(CONVERSATION, ["call"]), frozenset()),
    "messages.set_protection": (lambda unit: unit.messages.set_protection(CONVERSATION, {1: "compressible"}), Sums()),
    "messages.protectable": (
        lambda unit: unit.messages.protectable(CONVERSATION, roles=["user"], event_types=["goal"], seqs=[2]),
        [],
    ),
    "messages.texts_by_role": (
        lambda unit: unit.messages.texts_by_role(CONVERSATION, role="user", after_seq=0, limit=9),
        [],
    ),
    "messages.pin": (
        lambda unit: unit.messages.pin(CONVERSATION, MESSAGE, is_pinned=True, reason="pinned"),
        NOT_FOUND,
    ),
    "messages.erase": (
        lambda unit: unit.messages.erase(CONVERSATION, [message(CONVERSATION, 1, id=MESSAGE, status="erased")]),
        None,
    ),
    "messages.supersede": (lambda unit: unit.messages.supersede(message(CONVERSATION, 1, id=MESSAGE)), Sums()),
    "messages.other_halves": (
        lambda unit: unit.messages.other_halves(CONVERSATION, ["call"], of=[ANSWER]),
        [],
    ),
    "messages.quoting": (lambda unit: unit.messages.quoting(CONVERSATION, 1), []),
    "messages.command_answers": (
        lambda unit: unit.messages.command_answers(CONVERSATION, after_seq=0, max_bytes=9),
        [],
    ),
    "messages.renew_sums": (lambda unit: unit.messages.renew_sums(CONVERSATION, from_seq=1), None),
    "messages.renew_older_sums": (lambda unit: unit.messages.renew_older_sums(CONVERSATION), False),
    "messages.held_at": (lambda unit: unit.messages.held_at(CONVERSATION, 9), Sums()),
    "messages.sources": (
        lambda unit: unit.messages.sources(CONVERSATION, stems=["a"], limit=9),
        FoundMessages(sources=[], documents={}, total=0),
    ),
    "messages.containing": (lambda unit: unit.messages.containing(CONVERSATION, ["a"], stems=[], limit=9), []),
    "messages.at_seqs": (lambda unit: unit.messages.at_seqs(CONVERSATION, [1, 2]), []),
    "messages.contents_at_seqs": (lambda unit: unit.messages.contents_at_seqs(CONVERSATION, [1, 2]), []),
    "messages.goals_and_constraints": (lambda unit: unit.messages.goals_and_constraints(CONVERSATION, [1, 2]), []),
    "messages.protected_tokens": (lambda unit: unit.messages.protected_tokens(CONVERSATION, "script"), 0),
    "contents.read": (lambda unit: unit.contents.read([IMAGE]), {}),
    "contents.with_data": (
        lambda unit: unit.contents.with_data([SHOWN]),
        [replace(SHOWN, parts=({**MEDIA, "data": ""},))],
    ),
    "contents.one_with_data": (
        lambda unit: unit.contents.one_with_data(SHOWN),
        replace(SHOWN, parts=({**MEDIA, "data": ""},)),
    ),
    "contents.store_and_count_uses": (lambda unit: unit.contents.store_and_count_uses({}, [[IMAGE]]), ConflictError),
    "contents.with_inline_data": (lambda unit: unit.contents.with_inline_data(None, limit=9), ([], None)),
    "contents.move_inline_data": (lambda unit: unit.contents.move_inline_data(CONVERSATION, MESSAGE), False),
    "files.get": (lambda unit: unit.files.get(CONVERSATION, FILE), NOT_FOUND),
    "files.of_conversation": (lambda unit: unit.files.of_conversation(CONVERSATION), []),
    "files.page": (lambda unit: unit.files.page(CONVERSATION, ALL), ([], None)),
    "files.sums": (lambda unit: unit.files.sums(CONVERSATION), (0, 0, 0)),
    "files.remove": (lambda unit: unit.files.remove(CONVERSATION, FILE), False),
    "files.remove_all": (lambda unit: unit.files.remove_all(CONVERSATION), 0),
    "anchors.add": (lambda unit: unit.anchors.add([anchor(CONVERSATION, 2, content="stolen")]), NOT_FOUND),
    "anchors.get": (lambda unit: unit.anchors.get(CONVERSATION, ANCHOR), NOT_FOUND),
    "anchors.active": (lambda unit: unit.anchors.active(CONVERSATION), []),
    "anchors.between": (lambda unit: unit.anchors.between(CONVERSATION, 1, 9), []),
    "anchors.still_active": (lambda unit: unit.anchors.still_active(CONVERSATION, [ANCHOR]), []),
    "anchors.active_since": (lambda unit: unit.anchors.active_since(CONVERSATION, 0, limit=9), []),
    "anchors.active_texts": (lambda unit: unit.anchors.active_texts(CONVERSATION, limit=9), []),
    "anchors.active_seqs": (lambda unit: unit.anchors.active_seqs(CONVERSATION, limit=9), []),
    "anchors.superseded_texts": (lambda unit: unit.anchors.superseded_texts(CONVERSATION, limit=9), []),
    "anchors.servable": (lambda unit: unit.anchors.servable(CONVERSATION), []),
    "anchors.showable": (
        lambda unit: unit.anchors.showable(CONVERSATION, covered_seq=9, held=[], max_tokens=99, limit=9),
        ([], 0),
    ),
    "anchors.page": (lambda unit: unit.anchors.page(CONVERSATION, ALL), ([], None)),
    "anchors.change": (
        lambda unit: unit.anchors.change(CONVERSATION, [Transition(anchor_id=ANCHOR, status="resolved")]),
        None,
    ),
    "anchors.claimed": (lambda unit: unit.anchors.claimed(CONVERSATION, through_seq=9, limit=9), []),
    "anchors.store_ranking": (
        lambda unit: unit.anchors.store_ranking(CONVERSATION, Ranking(passed_over=(ANCHOR,))),
        None,
    ),
    "anchors.unclaim": (lambda unit: unit.anchors.unclaim(CONVERSATION, [ANCHOR]), None),
    "anchors.chosen": (lambda unit: unit.anchors.chosen(CONVERSATION, through_seq=9), []),
    "anchors.choose": (lambda unit: unit.anchors.choose([anchor(CONVERSATION, 2, content="stolen")]), NOT_FOUND),
    "anchors.set_by_user": (lambda unit: unit.anchors.set_by_user(CONVERSATION, ANCHOR, "resolved"), None),
    "anchors.withdraw_of": (lambda unit: unit.anchors.withdraw_of(CONVERSATION, 1), (0, 0)),
    "anchors.delete_of": (lambda unit: unit.anchors.delete_of(CONVERSATION, [1]), (0, 0)),
    "segments.add": (lambda unit: unit.segments.add([segment(CONVERSATION, 7, 9, id="stolen")]), NOT_FOUND),
    "segments.get": (lambda unit: unit.segments.get(CONVERSATION, "auth"), NOT_FOUND),
    "segments.of_ranges": (lambda unit: unit.segments.of_ranges(CONVERSATION, [(1, 3)]), []),
    "segments.ids_like": (lambda unit: unit.segments.ids_like(CONVERSATION, ["auth"]), frozenset()),
    "segments.page": (lambda unit: unit.segments.page(CONVERSATION, ALL), ([], None)),
    "segments.newest": (lambda unit: unit.segments.newest(CONVERSATION, limit=9), []),
    "segments.among_newest": (lambda unit: unit.segments.among_newest(CONVERSATION, ["auth"], limit=9), []),
    "segments.count": (lambda unit: unit.segments.count(CONVERSATION), 0),
    "segments.covering": (lambda unit: unit.segments.covering(CONVERSATION, [1]), {}),
    "segments.touching": (lambda unit: unit.segments.touching(CONVERSATION, [1]), []),
    "segments.described_by_model": (lambda unit: unit.segments.described_by_model(CONVERSATION, ["auth"]), []),
    "segments.named": (lambda unit: unit.segments.named(CONVERSATION, ["auth"]), []),
    "segments.put_levels": (
        lambda unit: unit.segments.put_levels(CONVERSATION, "auth", [level("L2", "stolen")]),
        NOT_FOUND,
    ),
    "segments.rewrite": (
        lambda unit: unit.segments.rewrite(segment(CONVERSATION, 1, 3, id="auth", topic="stolen")),
        None,
    ),
    "segments.rename": (lambda unit: unit.segments.rename(CONVERSATION, "auth", "stolen"), None),
    "segments.update": (lambda unit: unit.segments.update(CONVERSATION, "auth", detail_tries=9), None),
    "segments.make_current": (lambda unit: unit.segments.make_current(CONVERSATION, 1), None),
    "segments.set_current": (lambda unit: unit.segments.set_current(CONVERSATION, ["auth"]), None),
    "segments.wanting_detail": (lambda unit: unit.segments.wanting_detail(limit=9), []),
    "term_keys.outdated": (lambda unit: unit.term_keys.outdated(None, limit=1), ([], None)),
    "term_keys.renew": (lambda unit: unit.term_keys.renew(MESSAGE), False),
    "embeddings.due": (lambda unit: unit.embeddings.due("a", limit=9), []),
    "embeddings.claim": (lambda unit: unit.embeddings.claim(CONVERSATION, "stolen", pause=HOUR), None),
    "embeddings.note_progress": (lambda unit: unit.embeddings.note_progress(CONVERSATION, "fake", through=9), None),
    "embeddings.put": (lambda unit: unit.embeddings.put([vector("stolen")]), NOT_FOUND),
    "embeddings.vectors_by_hash": (lambda unit: unit.embeddings.vectors_by_hash("fake", [HASH]), {}),
    "embeddings.dimensions": (lambda unit: unit.embeddings.dimensions(CONVERSATION, "fake"), 0),
    "embeddings.vectors_by_seq": (lambda unit: unit.embeddings.vectors_by_seq(CONVERSATION, [1], "fake"), {}),
    "verifications.open": (lambda unit: unit.verifications.open(verification(STRAY)), NOT_FOUND),
    "verifications.page": (lambda unit: unit.verifications.page(CONVERSATION, ALL), ([], None)),
    "verifications.open_of": (lambda unit: unit.verifications.open_of(CONVERSATION), None),
    "verifications.update": (lambda unit: unit.verifications.update(VERIFICATION, reason="stolen"), None),
    "verifications.renew_claim": (lambda unit: unit.verifications.renew_claim(VERIFICATION, 0, seconds=9), False),
    "verifications.due": (lambda unit: unit.verifications.due(limit=9), []),
    "verifications.make_due": (lambda unit: unit.verifications.make_due(CONVERSATION, "gathering"), None),
    "verifications.running": (lambda unit: unit.verifications.running(within=timedelta(hours=1)), (0, 0)),
    "detail_calls.begin": (
        lambda unit: unit.detail_calls.begin(DetailCall(id=STRAY, conversation_id=CONVERSATION, called_at=START)),
        NOT_FOUND,
    ),
    "detail_calls.end": (lambda unit: unit.detail_calls.end(DETAIL_CALL, FAILED_CALL), None),
    "detail_calls.running": (lambda unit: unit.detail_calls.running(AGES), 0),
    "expansions.add": (lambda unit: unit.expansions.add([expansion(CONVERSATION)]), NOT_FOUND),
    "expansions.mark_used": (lambda unit: unit.expansions.mark_used([EXPANSION], used=True), None),
    "compactions.get": (lambda unit: unit.compactions.get(COMPACTION), NOT_FOUND),
    "compactions.in_flight": (lambda unit: unit.compactions.in_flight(CONVERSATION), None),
    "compactions.page": (lambda unit: unit.compactions.page(ALL), ([], None)),
    "compactions.focused": (lambda unit: unit.compactions.focused(CONVERSATION), []),
    "compactions.durations": (lambda unit: unit.compactions.durations(CONVERSATION, limit=9), []),
    "compactions.between": (lambda unit: unit.compactions.between(CONVERSATION, None, None), []),
    "compactions.take": (
        lambda unit: unit.compactions.take(COMPACTION, lease_token=uuid4(), ran_in="turn", owner="thief"),
        None,
    ),
    "compactions.heartbeat": (lambda unit: unit.compactions.heartbeat(COMPACTION, LEASE), False),
    "compactions.update": (lambda unit: unit.compactions.update(COMPACTION, LEASE, reason="stolen"), None),
    "compactions.requeue": (lambda unit: unit.compactions.requeue(COMPACTION, LEASE, count=False), False),
    "compactions.release_owner": (lambda unit: unit.compactions.release_owner("owner"), 0),
    "compactions.mark_sent": (lambda unit: unit.compactions.mark_sent([COMPACTION]), None),
    "compactions.takeable": (lambda unit: unit.compactions.takeable(COMPACTION), False),
    "compactions.expired": (lambda unit: unit.compactions.expired(limit=9), []),
    "compactions.unsent": (lambda unit: unit.compactions.unsent(older_than=timedelta(), limit=9), []),
    "compactions.next_in_turn": (lambda unit: unit.compactions.next_in_turn(COMPACTION), None),
    "compactions.update_locked": (lambda unit: unit.compactions.update_locked(COMPACTION, status="failed"), NOT_FOUND),
    "compactions.end": (lambda unit: unit.compactions.end(COMPACTION, status="failed"), NOT_FOUND),
    "states.add": (lambda unit: unit.states.add(CONVERSATION, version(2)), NOT_FOUND),
    "states.get": (lambda unit: unit.states.get(CONVERSATION, 1), NOT_FOUND),
    "states.parent_of": (lambda unit: unit.states.parent_of(CONVERSATION, child()), None),
    "states.remembered_parent_of": (lambda unit: unit.states.remembered_parent_of(CONVERSATION, child()), None),
    "states.page": (lambda unit: unit.states.page(CONVERSATION, ALL), ([], None)),
    "states.segments_since_boundary": (lambda unit: unit.states.segments_since_boundary(CONVERSATION, 1), []),
    "states.forget": (lambda unit: unit.states.forget(CONVERSATION, through=9), 0),
    "states.since_boundary": (lambda unit: unit.states.since_boundary(CONVERSATION, 1, KnownVersions()), []),
    "states.repairs_of": (lambda unit: unit.states.repairs_of([COMPACTION]), {}),
    "states.mark_verified": (lambda unit: unit.states.mark_verified(CONVERSATION, 1), None),
    "states.end_waiting": (lambda unit: unit.states.end_waiting(CONVERSATION, before=9), None),
    "states.waiting": (lambda unit: unit.states.waiting(CONVERSATION), None),
    "states.rewrite": (lambda unit: unit.states.rewrite(CONVERSATION, version(1, "stolen")), None),
    "states.by_compaction": (lambda unit: unit.states.by_compaction([COMPACTION]), {}),
    "statistics.measured": (lambda unit: unit.statistics.measured(CONVERSATION), Measurements()),
    "statistics.levels": (lambda unit: unit.statistics.levels([CONVERSATION]), []),
    "statistics.levels_of": (lambda unit: unit.statistics.levels_of(CONVERSATION, COMPACTION), []),
    "statistics.ended": (
        lambda unit: unit.statistics.ended(START - HOUR, limit=9),
        Ended(compactions=[], turns=[], expansions=[], details=[]),
    ),
    "statistics.in_flight": (lambda unit: unit.statistics.in_flight(), {}),
    "turns.get": (lambda unit: unit.turns.get(TURN), NOT_FOUND),
    "turns.newest": (lambda unit: unit.turns.newest(CONVERSATION), None),
    "turns.replied_by": (lambda unit: unit.turns.replied_by(CONVERSATION, [MESSAGE]), None),
    "turns.died_with": (lambda unit: unit.turns.died_with(CONVERSATION, [MESSAGE]), False),
    "turns.between": (lambda unit: unit.turns.between(CONVERSATION, None, None), []),
    "turns.forget_requests_of": (lambda unit: unit.turns.forget_requests_of(CONVERSATION, [UUID(int=10)]), None),
    "turns.forget_request": (lambda unit: unit.turns.forget_request(TURN), None),
    "turns.unanswered": (lambda unit: unit.turns.unanswered(CONVERSATION), frozenset()),
    "turns.running": (lambda unit: unit.turns.running(CONVERSATION), None),
    "turns.newest_ids": (lambda unit: unit.turns.newest_ids(CONVERSATION, limit=9), []),
    "turns.note_follower": (lambda unit: unit.turns.note_follower(TURN), None),
    "turns.heartbeat": (lambda unit: unit.turns.heartbeat(TURN), None),
    "turns.end": (lambda unit: unit.turns.end(TURN, error_code="stolen"), None),
    "turns.request_interrupt": (lambda unit: unit.turns.request_interrupt(CONVERSATION), None),
    "turns.expired": (lambda unit: unit.turns.expired(limit=9), []),
    "turns.fail_expired": (lambda unit: unit.turns.fail_expired(TURN), None),
    "turns.fail_expired_in_conversation": (lambda unit: unit.turns.fail_expired_in_conversation(CONVERSATION), None),
    "works.renew": (lambda unit: unit.works.renew(WORK, seconds=-99), None),
    "works.end": (lambda unit: unit.works.end([WORK]), None),
    "works.abandoned": (lambda unit: unit.works.abandoned(limit=9), []),
    "works.crashes": (lambda unit: unit.works.crashes(CONVERSATION), None),
    "works.forget_crashes": (lambda unit: unit.works.forget_crashes(CONVERSATION), None),
    "events.add": (lambda unit: unit.events.add(CONVERSATION, "stolen", {}, START), NOT_FOUND),
    "events.add_many": (lambda unit: unit.events.add_many(CONVERSATION, [("stolen", {})], START), NOT_FOUND),
    "events.count_and_first": (lambda unit: unit.events.count_and_first(CONVERSATION, 0, 9), (0, None)),
    "events.forget_older_than": (lambda unit: unit.events.forget_older_than(timedelta(), limit=9), 0),
    "events.after": (lambda unit: unit.events.after(CONVERSATION, 0, limit=9), []),
    "idempotency.get": (lambda unit: unit.idempotency.get("key"), None),
    "idempotency.update": (lambda unit: unit.idempotency.update("key", ref={}, status=500), NOT_FOUND),
    "idempotency.delete": (lambda unit: unit.idempotency.delete("key"), None),
    "idempotency.forget_older_than": (lambda unit: unit.idempotency.forget_older_than(timedelta(), limit=9), 0),
    "keys.by_hash": (lambda unit: unit.keys.by_hash(HASH), None),
    "keys.all": (lambda unit: unit.keys.all(), []),
    "keys.revoke": (lambda unit: unit.keys.revoke(KEY, START), False),
    "keys.any": (lambda unit: unit.keys.any(), False),
    "keys.get": (lambda unit: unit.keys.get(KEY), NOT_FOUND),
    "keys.usable": (lambda unit: unit.keys.usable([KEY]), frozenset()),
    "keys.change": (lambda unit: unit.keys.change(KEY, limits={"running_turns": 1}), None),
    "keys.note_use": (lambda unit: unit.keys.note_use([KEY]), None),
    "audit.page": (lambda unit: unit.audit.page(ALL), ([], None)),
    "audit.forget_older_than": (lambda unit: unit.audit.forget_older_than(timedelta(), limit=9), 0),
    "keys.remove_of_user": (lambda unit: unit.keys.remove_of_user("a"), 0),
    "erasures.unfinished": (lambda unit: unit.erasures.unfinished(limit=9), []),
    "erasures.find": (lambda unit: unit.erasures.find(ERASED), None),
    "erasures.lock": (lambda unit: unit.erasures.lock(ERASED), None),
    "erasures.count_deleted": (lambda unit: unit.erasures.count_deleted(ERASED, 9), None),
    "erasures.end": (lambda unit: unit.erasures.end(ERASED), None),
    "copies.mark_for_deletion": (lambda unit: unit.copies.mark_for_deletion(CONVERSATION), 0),
    "copies.due": (lambda unit: unit.copies.due(limit=9), []),
    "copies.take": (lambda unit: unit.copies.take("resp_wanted", pause=HOUR), None),
    "copies.forget": (lambda unit: unit.copies.forget("resp"), None),
    "copies.count": (lambda unit: unit.copies.count(), 0),
    "file_copies.in_use": (lambda unit: unit.file_copies.in_use("account", [IMAGE], lasting=HOUR), {}),
    "file_copies.mark_for_deletion": (lambda unit: unit.file_copies.mark_for_deletion("account", ["files/1"]), 0),
    "file_copies.forget_expired": (lambda unit: unit.file_copies.forget_expired(limit=9), 0),
    "file_copies.due": (lambda unit: unit.file_copies.due(limit=9), []),
    "file_copies.take": (lambda unit: unit.file_copies.take("account", "files/wanted", pause=HOUR), None),
    "file_copies.forget": (lambda unit: unit.file_copies.forget("account", "files/1"), None),
    "file_copies.count": (lambda unit: unit.file_copies.count(), 0),
    "caches.find": (lambda unit: unit.caches.find("google:any", "google:here", "print"), None),
    "caches.get": (lambda unit: unit.caches.get(CACHE), None),
    "caches.update": (lambda unit: unit.caches.update(CACHE, verdict="off"), False),
    "caches.note_lost": (lambda unit: unit.caches.note_lost(CACHE, "cachedContents/kept"), False),
    "caches.take": (lambda unit: unit.caches.take(CACHE, pause=HOUR), None),
    "caches.due": (lambda unit: unit.caches.due(limit=9), []),
    "caches.orphans": (lambda unit: unit.caches.orphans(limit=9), []),
    "caches.remove": (lambda unit: unit.caches.remove(CACHE, only_orphan=False), None),
    "caches.minimum": (lambda unit: unit.caches.minimum("google:any", "google:here"), 0),
    "caches.join": (lambda unit: unit.caches.join(CONVERSATION, "google:other", CACHE), NOT_FOUND),
    "caches.leave": (lambda unit: unit.caches.leave(CONVERSATION), 0),
    "caches.leave_with_files": (lambda unit: unit.caches.leave_with_files(["f" * 64]), 0),
    "caches.member": (lambda unit: unit.caches.member(CACHE), None),
    "caches.of_conversation": (lambda unit: unit.caches.of_conversation(CONVERSATION), []),
    "caches.kept_by_provider": (lambda unit: unit.caches.kept_by_provider(limit=9), []),
    "caches.forget_idle": (lambda unit: unit.caches.forget_idle(timedelta(), limit=9), 0),
    "caches.count": (lambda unit: unit.caches.count(), 0),
    "caches.add_entry": (lambda unit: unit.caches.add_entry(cache_entry(STRAY)), NOT_FOUND),
    "removal.remove": (lambda unit: unit.removal.remove(CONVERSATION, limit=9), 0),
    "removal.stop": (lambda unit: unit.removal.stop(CONVERSATION), None),
    "removal.forget_turns": (lambda unit: unit.removal.forget_turns(timedelta(), limit=9), 0),
    "removal.forget_measures": (lambda unit: unit.removal.forget_measures(timedelta(), limit=9), 0),
    "spending.metered_calls": (lambda unit: unit.spending.metered_calls(HOUR, CONVERSATION), (0, 0)),
    "spending.by_minute": (lambda unit: unit.spending.by_minute("chat"), []),
    "spending.forget_old": (lambda unit: unit.spending.forget_old(limit=9), 0),
    "keys.tenant_by_name": (lambda unit: unit.keys.tenant_by_name("a"), None),
    "keys.tenant_names": (names_of_others, set()),
}
# These take a tenant of their own; for each of them a test below shows what it does with a foreign one.
WITH_A_TENANT = {
    "conversations.add",
    "conversations.update_locked",
    "events.add_next",
    "compactions.claim",
    "turns.start",
    "keys.add",
    "keys.add_tenant",
    "keys.is_unchanged",
    "keys.is_tenant_in_use",
    "keys.free_tenant_name",
    "keys.sealing_secret",
    "audit.add",
    "spending.add_chat",
    "spending.add_of_deleted",
    "spending.keep_of_deleted",
    "erasures.add",
    "copies.note",
    "files.add",
    "file_copies.note",
    "caches.locked",
    "works.begin",
    "works.end_all_like",
    "works.count_crash",
}
# A key of another tenant is simply another key: it is claimed, as the test with twins shows.
OF_NOBODY = {"idempotency.claim"}
# It removes the tenant of the unit of work: a stranger removes itself, as the last test here shows.
OF_ITSELF = {"removal.remove_tenant"}


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    """An engine that acts as the owner of the tables, to whom row-level security does not apply."""
    made = make_engine(with_role(database_url, "none"))
    yield as_owner(made)
    await made.dispose()


def cache(tenant_id: UUID, **fields: Any) -> ProviderCache:
    """A cache that exists and is due for a look, and for which the provider once wanted more tokens."""
    given: dict[str, Any] = {
        "id": CACHE,
        "fingerprint": "print",
        "files": ("f" * 64,),
        "minimum": 9_000,
        "name": "cachedContents/kept",
        "made_at": START,
        "expires_at": START + AGES,
        "due_at": START,
    }
    return ProviderCache(
        tenant_id=tenant_id,
        model="google:any",
        account="google:here",
        tokens=5_000,
        ttl_seconds=3_600,
        verdict="pays",
        created_at=START,
        last_used_at=START,
        **given | fields,
    )


def cache_entry(id_: UUID) -> CacheEntry:
    return CacheEntry(id=id_, conversation_id=CONVERSATION, cache_id=CACHE, model="google:any", action="made", at=START)


def child() -> StateVersion:
    return replace(version(2), parent_version=1)


def version(number: int, text_: str = "x") -> StateVersion:
    return StateVersion(
        version=number,
        state_schema="session",
        state={"logos": [text_]},
        entries=(),
        next_entry=1,
        boundary_seq=1,
        boundary_message_id=MESSAGE,
        covered=Sums(),
        layout=None,
        compaction_id=COMPACTION,
        created_at=START,
        segment_ids=("auth",),
        repairs=(Repair(field="logos", reason="order", before=text_, after=None),),
    )


def vector(model: str = "fake") -> MessageVector:
    return MessageVector(conversation_id=CONVERSATION, seq=1, model=model, sha256=HASH, vector=b"1234")


def erasure(tenant_id: UUID) -> Erasure:
    return Erasure(id=ERASED, tenant_id=tenant_id, user_id="u", requested_at=START)


def attached(tenant_id: UUID, name: str) -> ConversationFile:
    return ConversationFile(
        id=FILE,
        tenant_id=tenant_id,
        conversation_id=CONVERSATION,
        name=name,
        media_type="image/png",
        sha256=IMAGE,
        bytes=8,
        tokens=9,
        created_at=START,
    )


def file_copy(tenant_id: UUID, name: str) -> ProviderFile:
    """A copy; the first one that is noted is in use, the second is to be deleted."""
    return ProviderFile(
        tenant_id=tenant_id,
        account="account",
        name=name,
        sha256=IMAGE,
        uri="https://example.test",
        model="any",
        made_at=START,
        expires_at=START + AGES,
    )


def copy(tenant_id: UUID, response_id: str, **fields: Any) -> ProviderCopy:
    given: dict[str, Any] = {"conversation_id": CONVERSATION, "model": "openai-responses:any", "made_at": START}
    return ProviderCopy(tenant_id=tenant_id, response_id=response_id, **given | fields)


async def furnish(begin: UnitOfWorkFactory, name: str) -> UUID:
    """A tenant with one row in every table, under ids that are the same for every tenant."""
    tenant_id = await make_tenant(begin, name)
    row = conversation(tenant_id, id=CONVERSATION, title=name, context_tokens=9, trigger_tokens=1, last_seq=0)
    call = {"type": "tool_call", "id": "call", "name": "f", "arguments": {}}
    async with begin(tenant_id) as unit:
        await unit.conversations.add(row)
        goal: dict[str, Any] = {"event_type": "goal", "protected_reason": "system"}
        first = message(CONVERSATION, 1, id=MESSAGE, content=name, parts=(call, MEDIA), **goal)
        result = {"type": "tool_result", "tool_call_id": "call", "content": name, "quotes": [QUOTE]}
        protected = {"protected_reason": "initial_objective", "role": "tool", "parts": (result,)}
        held = message(CONVERSATION, 2, id=UUID(int=9), content=name, **protected)
        answer: dict[str, Any] = {"role": "assistant", "is_command": True, "reasoning": name}
        told = message(CONVERSATION, 3, id=UUID(int=10), content=name, **answer)
        await append(unit, [first, held, told])
        claimed = anchor(
            CONVERSATION, 1, id=ANCHOR, message_id=MESSAGE, content=name, claimed_status="resolved", proposed_by="user"
        )
        outdated = anchor(CONVERSATION, 2, message_id=UUID(int=9), content=name, status="superseded")
        await unit.anchors.add([claimed, outdated])
        tags = {"L3": level("L3", name, made_by="a model")}
        auth = segment(CONVERSATION, 1, 3, id="auth", topic=name, wants_detail=True, levels=tags)
        await unit.segments.add([auth])
        await unit.embeddings.put([vector()])
        await unit.expansions.add([expansion(CONVERSATION, id=EXPANSION, segment_id="auth")])
        await unit.detail_calls.begin(DetailCall(id=DETAIL_CALL, conversation_id=CONVERSATION, called_at=START))
        call_made = Attempt(model=name, outcome="error", reason=None, duration_ms=1, usage=Usage())
        running = compaction(
            row,
            id=COMPACTION,
            reason=name,
            request=FoldRequest(focus=name),
            status="running",
            lease_token=LEASE,
            owner="owner",
            attempts=(call_made,),
        )
        await unit.compactions.claim(running)
        await unit.turns.start(turn(row, id=TURN, message_id=MESSAGE, error_code=name))
        await unit.works.count_crash(work(tenant_id), most=99)
        await unit.states.add(CONVERSATION, version(1, name))
        await unit.verifications.open(replace(verification(VERIFICATION), reason=name, attempts=(call_made,)))
        await unit.events.add(CONVERSATION, name, {}, START)
        await unit.idempotency.claim(idempotent(name))
        await unit.keys.add(key(tenant_id, name))
        await unit.audit.add(audited(tenant_id, name))
        await unit.spending.add_chat(tenant_id, KEY, Usage())
        await unit.erasures.add(erasure(tenant_id))
        await unit.caches.locked(cache(tenant_id))
        await unit.caches.join(CONVERSATION, "google:any", CACHE)
        await unit.caches.locked(cache(tenant_id, id=UUID(int=18), fingerprint="nobody's", expires_at=START))
        await unit.caches.add_entry(cache_entry(UUID(int=19)))
        await unit.copies.note(copy(tenant_id, "resp"))
        await unit.copies.note(copy(tenant_id, "resp_wanted", delete_after=START))
        await unit.contents.store_and_count_uses({}, [[IMAGE]])
        await unit.files.add(attached(tenant_id, name))
        await unit.file_copies.note(file_copy(tenant_id, "files/1"), lasting=HOUR)
        await unit.file_copies.note(file_copy(tenant_id, "files/wanted"), lasting=HOUR)
        await unit.commit()
    async with begin(tenant_id) as unit:
        await unit.works.begin(work(tenant_id), seconds=99)
    return tenant_id


def work(tenant_id: UUID) -> Work:
    return Work(id=WORK, tenant_id=tenant_id, conversation_id=CONVERSATION, process=LEASE, kind="context")


def verification(id_: UUID) -> Verification:
    """A verification that runs longer than the test does."""
    return Verification(
        id=id_,
        conversation_id=CONVERSATION,
        version=1,
        status="running",
        after=datetime.now(UTC) + timedelta(hours=1),
        asked_at=START,
        created_at=START,
    )


def idempotent(name: str) -> IdempotencyRecord:
    return IdempotencyRecord(key="key", fingerprint=name, ref={}, status=0, created_at=START)


def key(tenant_id: UUID, name: str) -> ApiKey:
    return ApiKey(
        id=KEY,
        tenant_id=tenant_id,
        name=name,
        prefix="tl",
        secret_hash=name.encode() * 32,
        scopes=frozenset({"read"}),
        created_at=START,
    )


def audited(tenant_id: UUID, name: str) -> AuditEntry:
    return AuditEntry(
        id=AUDITED,
        tenant_id=tenant_id,
        key_id=KEY,
        actor="key",
        action=name,
        object_id=None,
        data={},
        occurred_at=START,
    )


ROWS_OF = "SELECT '{0}', to_jsonb(r)::text FROM {0} r WHERE tenant_id = :t"
EVERY_ROW = text(" UNION ALL ".join(map(ROWS_OF.format, TenantScoped.metadata.tables)) + " ORDER BY 1, 2")


async def dump(connection: AsyncConnection, tenant_id: UUID) -> dict[str, list[str]]:
    """Every row of a tenant, as text."""
    found: dict[str, list[str]] = {table: [] for table in TenantScoped.metadata.tables}
    for table, row in await connection.execute(EVERY_ROW, {"t": tenant_id}):
        found[table].append(row)
    assert all(found.values()), found
    return found


async def dumps(engine: AsyncEngine, *tenants: UUID) -> list[dict[str, list[str]]]:
    """Every row of those tenants, as committed."""
    async with engine.connect() as connection:
        return [await dump(connection, tenant_id) for tenant_id in tenants]


async def outcome(begin: UnitOfWorkFactory, tenant_id: UUID, call: Call) -> Any:
    """The answer of the call, or the class of its error; it is committed, so that its effect remains."""
    async with begin(tenant_id) as unit:
        try:
            answer = await call(unit)
            await unit.commit()
        except DomainError as error:
            return type(error)
        return answer


def methods() -> set[str]:
    """Every method of every repository of the unit of work."""
    unit = UnitOfWork(create_async_engine("postgresql+asyncpg://"), None)
    return {
        f"{name}.{method}"
        for name, repository in inspect.getmembers(unit)
        if isinstance(repository, Repository)
        for method, _ in inspect.getmembers(type(repository), inspect.isfunction)
        if not method.startswith("_")
    }


def test_every_method_is_listed() -> None:
    listed = CALLS.keys() | WITH_A_TENANT | OF_NOBODY | OF_ITSELF
    assert methods() - listed == set(), "give these methods a line in CALLS: a call, and what a stranger gets"
    assert listed - methods() == set(), "there are no such methods"


@pytest.mark.case("51")
async def test_a_stranger_with_the_ids_of_others_finds_and_changes_nothing(
    begin: UnitOfWorkFactory, engine: AsyncEngine
) -> None:
    await check_a_stranger(begin, engine)


async def check_a_stranger(begin: UnitOfWorkFactory, engine: AsyncEngine) -> None:
    """Call every method as a tenant without rows, with the ids of others."""
    owners = [await furnish(begin, name) for name in ("a", "b")]
    stranger = await make_tenant(begin, "stranger")
    before = await dumps(engine, *owners)
    found = {name: await outcome(begin, stranger, call) for name, (call, _) in CALLS.items()}
    assert found == {name: expected for name, (_, expected) in CALLS.items()}
    assert await dumps(engine, *owners) == before


async def test_a_twin_acts_on_its_own_rows_only(begin: UnitOfWorkFactory, engine: AsyncEngine) -> None:
    mine, theirs = [await furnish(begin, owner) for owner in ("a", "b")]
    (before,) = await dumps(engine, theirs)
    for name, (call, nothing) in CALLS.items():
        async with UnitOfWork(engine, mine) as unit:
            answer = await call(unit)
            # The call is made from inside and then rolled back, so that the next call finds the same rows.
            seen = await dump(await connection_of(engine, unit.session), theirs)
        assert seen == before, name
        assert "'b'" not in repr(answer), name
        assert nothing is None or name in FINDS_NOTHING or answer != nothing, f"{name} reached nothing: no proof"


# They look for things that the furniture does not have: a live lease, nothing queued, another hash.
FINDS_NOTHING = {
    "embeddings.due",
    "embeddings.claim",
    "conversations.due",
    "conversations.quiet_for",
    "conversations.end_quiet",
    "compactions.takeable",
    "compactions.expired",
    "compactions.unsent",
    "compactions.next_in_turn",
    "compactions.durations",
    "turns.expired",
    "turns.fail_expired",
    "turns.replied_by",
    "turns.unanswered",
    "verifications.due",
    "contents.with_inline_data",
    "contents.move_inline_data",
    "file_copies.forget_expired",
    "works.abandoned",
    "conversations.is_being_removed",
    "conversations.with_stale_sums",
    "conversations.deleted",
    "messages.renew_older_sums",
    "keys.remove_of_user",
    "removal.remove",
    "removal.forget_turns",
    "spending.forget_old",
    "keys.by_hash",
}


async def test_a_record_of_another_tenant_is_refused(begin: UnitOfWorkFactory, engine: AsyncEngine) -> None:
    owner, stranger = await furnish(begin, "a"), await make_tenant(begin, "stranger")
    foreign = conversation(owner, id=CONVERSATION)
    calls: list[Call] = [
        lambda unit: unit.conversations.add(replace(foreign, id=uuid4())),
        lambda unit: unit.conversations.update_locked(foreign, title="stolen"),
        lambda unit: unit.events.add_next(foreign, [("stolen", {})], START),
        lambda unit: unit.compactions.claim(compaction(foreign)),
        lambda unit: unit.turns.start(turn(foreign)),
        lambda unit: unit.works.begin(work(owner), seconds=9),
        lambda unit: unit.works.end_all_like(work(owner), within=HOUR),
        lambda unit: unit.works.count_crash(work(owner), most=2),
        lambda unit: unit.keys.add(key(owner, "c")),
        lambda unit: unit.keys.add_tenant(owner, "c"),
        lambda unit: unit.keys.is_unchanged(ReadKey(key=key(owner, "c"), version="1")),
        lambda unit: unit.keys.is_tenant_in_use(owner),
        lambda unit: unit.keys.free_tenant_name(owner),
        lambda unit: unit.keys.sealing_secret(owner, b"stolen"),
        lambda unit: unit.audit.add(audited(owner, "stolen")),
        lambda unit: unit.erasures.add(erasure(owner)),
        lambda unit: unit.copies.note(copy(owner, "resp_stolen")),
        lambda unit: unit.files.add(attached(owner, "stolen")),
        lambda unit: unit.file_copies.note(file_copy(owner, "files/stolen"), lasting=HOUR),
        lambda unit: unit.spending.add_chat(owner, KEY, Usage()),
        lambda unit: unit.spending.add_of_deleted(owner, "compaction", 1, Usage()),
        lambda unit: unit.spending.keep_of_deleted(owner, [CONVERSATION]),
    ]
    before = await dumps(engine, owner)
    for call in calls:
        async with begin(stranger) as unit:
            with pytest.raises(ValueError, match="another tenant"):
                await call(unit)
            await unit.commit()
    assert await dumps(engine, owner) == before


async def test_the_same_idempotency_key_of_two_tenants_is_two_keys(begin: UnitOfWorkFactory) -> None:
    mine, theirs = await furnish(begin, "a"), await make_tenant(begin, "b")
    async with begin(theirs) as unit:
        assert await unit.idempotency.claim(idempotent("b")) is None
        await unit.commit()
    async with begin(mine) as unit:
        assert await unit.idempotency.claim(idempotent("c")) == idempotent("a")


class NoCriteria(tenancy.TenantCriteria):
    """Adds no condition, and is never found among the statements that were compiled with the condition."""

    inherit_cache = False

    def get_global_criteria(self, attributes: dict[Any, Any]) -> None:
        """Add nothing."""


@pytest.mark.control("51")
async def test_control_without_the_condition_the_leak_is_seen(
    begin: UnitOfWorkFactory, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control: it fails if the tests above could not fail."""
    owner, stranger = await furnish(begin, "a"), await make_tenant(begin, "stranger")
    before = await dumps(engine, owner)
    monkeypatch.setattr(tenancy, "criteria", NoCriteria)
    reads = ("conversations.get", "messages.between", "compactions.get", "states.page", "turns.get", "events.after")
    for name in (*reads, "keys.all"):
        call, expected = CALLS[name]
        assert await outcome(begin, stranger, call) != expected, name
    assert await dumps(engine, owner) == before
    await outcome(begin, stranger, CALLS["conversations.update"][0])
    assert await dumps(engine, owner) != before


async def test_a_cursor_of_another_tenant_leads_nowhere(begin: UnitOfWorkFactory) -> None:
    await furnish(begin, "a")
    stranger = await make_tenant(begin, "stranger")
    async with begin(stranger) as unit:
        page = Page(after=encode((0,)), order="asc")
        assert await unit.messages.page(CONVERSATION, page) == ([], None)


class TestStatements:
    """The one place with the condition, with every kind of statement that SQLAlchemy can make of the mapped classes."""

    async def test_selects_of_every_kind(self, begin: UnitOfWorkFactory, engine: AsyncEngine) -> None:
        mine, theirs = await furnish(begin, "a"), await furnish(begin, "b")
        other = aliased(MessageRow)
        inner = select(col(MessageRow.content).label("content")).subquery()
        named = select(col(MessageRow.content)).cte()
        content = col(MessageRow.content)
        everything: list[Any] = [
            select(content),
            select(func.min(content)).union_all(select(func.max(content))),
            select(col(other.content)),
            select(inner.c.content),
            select(named.c.content),
            select(col(other.content)).join(MessageRow, col(MessageRow.id) == col(other.id)),
            select(content).join(ConversationRow, col(MessageRow.conversation_id) == col(ConversationRow.id)),
            select(func.max(content)),
            select(content).where(col(MessageRow.id).in_(select(col(other.id)))),
            select(select(func.max(content)).scalar_subquery()),
        ]
        for tenant_id, own in ((mine, "a"), (theirs, "b"), (mine, "a")):
            session = TenantSession(engine, tenant_id)
            for statement in everything:
                assert set(await session.all(statement)) == {own}, str(statement)
            counted = await session.first(select(func.count()).select_from(MessageRow))
            assert counted == 3
            await session.close()

    async def test_a_join_meets_no_twin(self, begin: UnitOfWorkFactory, engine: AsyncEngine) -> None:
        mine, _ = await furnish(begin, "a"), await furnish(begin, "b")
        session = TenantSession(engine, mine)
        by_id = col(MessageRow.conversation_id) == col(ConversationRow.id)
        pairs = await session.rows(select(col(MessageRow.content), col(ConversationRow.title)).where(by_id))
        assert [tuple(pair) for pair in pairs] == [("a", "a")] * 3
        await session.close()

    async def test_writes_of_every_kind(self, begin: UnitOfWorkFactory, engine: AsyncEngine) -> None:
        mine, theirs = await furnish(begin, "a"), await furnish(begin, "b")
        before = await dumps(engine, theirs)
        session = TenantSession(engine, mine)
        inner = select(col(MessageRow.id)).subquery()
        await session.execute(update(MessageRow).values(content="c"))
        await session.execute(update(MessageRow).where(col(MessageRow.id) == inner.c.id).values(model="c"))
        await session.execute(delete(MessageRow).where(col(MessageRow.id).in_(select(col(aliased(MessageRow).id)))))
        await session.execute(delete(ConversationRow))
        await session.commit()
        await session.close()
        assert await dumps(engine, theirs) == before

    async def test_a_row_read_before_is_read_again(self, begin: UnitOfWorkFactory, engine: AsyncEngine) -> None:
        session = TenantSession(engine, await furnish(begin, "a"))
        before = await session.first(select(ConversationRow))
        await session.execute(update(ConversationRow).values(title="c"))
        assert (await session.first(select(ConversationRow))).title == "c"
        written = update(ConversationRow).values(title="d").returning(ConversationRow)
        assert (await session.first(written)).title == "d"
        assert before.title == "d"
        await session.close()

    async def test_what_cannot_be_scoped_is_refused(self, engine: AsyncEngine, tenant: UUID) -> None:
        table = TenantScoped.metadata.tables["messages"]
        for statement in (text("SELECT 1"), select(table), insert(table), update(table).values(content="x")):
            session = TenantSession(engine, tenant)
            with pytest.raises(UnscopedStatementError):
                await session.execute(statement)
            await session.close()

    async def test_a_session_that_names_no_scope_is_refused(self, engine: AsyncEngine) -> None:
        async with AsyncSession(engine, sync_session_class=ScopedSession) as session:
            with pytest.raises(UnscopedStatementError):
                await session.execute(select(MessageRow))

    async def test_objects_are_refused(self, engine: AsyncEngine, tenant: UUID) -> None:
        async with AsyncSession(engine, sync_session_class=ScopedSession, info={"tenant_id": tenant}) as session:
            row: Any = ConversationRow
            session.add(row(tenant_id=uuid4(), id=uuid4()))
            with pytest.raises(UnscopedStatementError):
                await session.flush()


async def test_statements_are_kept_without_values_and_for_every_tenant(begin: UnitOfWorkFactory) -> None:
    tenant_id, other_id = await furnish(begin, "kept"), await furnish(begin, "other")
    async with begin(tenant_id) as unit:
        await unit.conversations.get(CONVERSATION)
        await unit.conversations.update(CONVERSATION, title="what nobody may keep")
    before = compiled_for.cache_info()
    async with begin(other_id) as unit:
        await unit.conversations.get(CONVERSATION)
        await unit.conversations.update(CONVERSATION, title="nor this")
    after = compiled_for.cache_info()
    assert after.hits == before.hits + 2
    assert after.misses == before.misses

"""Finds what earlier checks damaged in the state that is served, and mends what code can mend.

Older versions and originals are never changed. If a language model summarizes, it is better to fold the same messages
again from the newest sound version: a client does so by a restore and a compaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Self
from uuid import UUID

import structlog

from app.core.model.conversation import Conversation, Message, Sums
from app.core.model.errors import CompactionInProgressError
from app.core.model.records import Compaction
from app.core.model.redaction import redact_messages
from app.core.model.repairs import Repair
from app.core.model.state import StateVersion
from app.core.model.word_overlap import message_text
from app.core.validation.damage import (
    Damage,
    MendedEntries,
    RecordedVersion,
    find_damage,
    mended_entries,
    sound_version,
)
from app.off_loop import off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.chunk import summarizer_of
from app.usecases.history.conversations import check_version
from app.usecases.history.preparing import OutdatedError, prepare_and_run
from app.usecases.shared.caller import audit
from app.usecases.shared.retries import Compute, Results
from app.usecases.shared.shell import Service
from app.usecases.verification.pending import note_version
from app.usecases.verification.rewriting import write_entries

MAX_VERSIONS: Final = 200
"""How many versions, from the newest, are searched."""
_READ: Final = 200  # messages read at a time
_MAX_MESSAGE_LENGTH: Final = 100_000  # characters of a message in which entries are looked up
_MAX_CHARACTERS_READ: Final = 20_000_000  # characters of all messages together; the newest are read first
_RETRY_AFTER: Final = 5.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What was found in a state, and what was done about it."""

    conversation_id: UUID
    state_version: int = 0
    """The version that was examined; 0 = there is no state."""
    found: tuple[Damage, ...] = ()
    sound_version: int | None = None
    """The newest earlier version without damage; 0 = before the first compaction; ``None`` = nothing is damaged."""
    messages: int = 0
    """How many messages would be folded again from the sound version."""
    tokens: int = 0
    """The estimated tokens of these messages."""
    by_model: bool = False
    """Whether a language model would summarize them."""
    repairs: tuple[Repair, ...] = ()
    state_version_now: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Findings:
    """What was found in a state, and what was read to find it."""

    examination: Examination
    mended: MendedEntries
    current: StateVersion | None
    """The version that was examined."""
    content_epoch: int
    is_computed: bool = True

    def uncomputed(self) -> Self:
        """This examination without its findings: they are to be made within the transaction."""
        return replace(self, is_computed=False)


class ExaminationService(Service):
    """Examines states for damage by earlier checks."""

    async def examine(
        self, tenant_id: UUID, conversation_id: UUID, *, mend: bool = False, if_match: int | None = None
    ) -> Examination:
        """Examine the state that is served now; with ``mend``, write a new version of it if damage is found.

        Raises:
            NotFoundError: There is no such conversation.
            CompactionInProgressError: ``mend`` is set, and a compaction is in flight.
            StateVersionMismatchError: The state has another version than ``if_match``.
        """
        shell = self._shell
        look = partial(self._examine_unlocked, tenant_id, conversation_id, if_match)
        async with shell.work_records.record_work(tenant_id, conversation_id, "examination"):
            if not mend:
                return (await look()).examination
            mending = partial(self._mend_once, tenant_id, conversation_id, if_match)
            return await prepare_and_run(look, mending)

    async def _examine_unlocked(self, tenant_id: UUID, conversation_id: UUID, if_match: int | None) -> _Findings:
        # It takes as long as reading all messages does, so the conversation is not locked meanwhile.
        async with self._shell.uow(tenant_id) as uow:
            present = await uow.conversations.get(conversation_id)
            check_version(present, if_match)
            return await self._examine_version(uow, present)

    async def _mend_once(
        self, tenant_id: UUID, conversation_id: UUID, if_match: int | None, findings: _Findings, results: Results
    ) -> Examination:
        """The transaction that writes the new version."""
        async with self._shell.uow(tenant_id) as uow:
            present = await uow.conversations.lock(conversation_id)
            check_version(present, if_match)
            if await uow.compactions.in_flight(conversation_id):
                raise CompactionInProgressError("a compaction is in flight: wait for it", retry_after=_RETRY_AFTER)
            if not findings.is_computed:
                findings = await self._examine_version(uow, present)
            examination, done = findings.examination, findings.mended
            current = await _current_version(uow, present)
            if (present.content_epoch, current) != (findings.content_epoch, findings.current):
                raise OutdatedError
            if current is not None and done.repairs:
                number = await self._write_mended(uow, present, current, done, results)
                examination = replace(examination, repairs=done.repairs, state_version_now=number)
                await audit(uow, self._shell, tenant_id, "state.mended", conversation_id)
            await uow.commit()
        return examination

    async def _examine_version(self, uow: UnitOfWork, present: Conversation) -> _Findings:
        versions = await _versions_to_present(uow, present)
        lineage = [await _how_made(uow, version) for version in versions]
        texts = await _texts_of(uow, present.id, lineage)
        found, sound, done = await off_loop(_damages_and_repairs, lineage, texts)
        number, examination = present.state_version, Examination(conversation_id=present.id)
        if found:
            before = next((one.covered for one in versions if one.version == sound), Sums())
            examination = Examination(
                conversation_id=present.id,
                found=found,
                sound_version=sound,
                messages=present.covered.messages - before.messages,
                tokens=present.covered.tokens - before.tokens,
                by_model=summarizer_of(self._shell, self._shell.resolver(present)).profile.reads_prompts,
            )
        return _Findings(
            examination=replace(examination, state_version=number, state_version_now=number),
            mended=done,
            current=versions[-1] if versions else None,
            content_epoch=present.content_epoch,
        )

    async def _write_mended(
        self, uow: UnitOfWork, present: Conversation, current: StateVersion, done: MendedEntries, compute: Compute
    ) -> int:
        version = await write_entries(self._shell, uow, present, current, done.entries, done.repairs, compute=compute)
        await note_version(uow, self._shell, present.id, version)
        log.info("state.mended", conversation_id=str(present.id), version=version.version, repairs=len(done.repairs))
        return version.version


def _damages_and_repairs(
    lineage: Sequence[RecordedVersion], texts: Mapping[int, str]
) -> tuple[tuple[Damage, ...], int | None, MendedEntries]:
    found = find_damage(lineage, texts)
    if not found:
        return found, None, MendedEntries()
    last = lineage[-1]
    return found, sound_version(lineage, texts), mended_entries(last.entries, found, version=last.version + 1)


async def _current_version(uow: UnitOfWork, present: Conversation) -> StateVersion | None:
    return await uow.states.get(present.id, present.state_version) if present.state_version else None


async def _versions_to_present(uow: UnitOfWork, present: Conversation) -> list[StateVersion]:
    """The versions from which the present one was made, the oldest first, as far as they are kept."""
    found: list[StateVersion] = []
    version = await _current_version(uow, present)
    while version is not None and len(found) < MAX_VERSIONS:
        found.append(version)
        version = await uow.states.parent_of(present.id, version)
    return found[::-1]


async def _how_made(uow: UnitOfWork, version: StateVersion) -> RecordedVersion:
    row = await uow.compactions.get(version.compaction_id) if version.compaction_id else None
    return RecordedVersion(
        version=version.version,
        boundary_seq=version.boundary_seq,
        entries=version.entries,
        changed_texts=row.entries.ungrounded
        if row and version.made_by == "compaction" and _is_of_earlier_checks(row)
        else 0,
        written_by=str(row.id if row else version.version),
    )


def _is_of_earlier_checks(row: Compaction) -> bool:
    accepted = [attempt for attempt in row.attempts if attempt.outcome == "accepted"]
    return any(attempt.metered and attempt.prompt_version is None for attempt in accepted)


async def _texts_of(uow: UnitOfWork, conversation_id: UUID, lineage: Sequence[RecordedVersion]) -> dict[int, str]:
    """The text of the messages on which possibly damaged entries rest."""
    seqs = {
        seq
        for made in lineage
        if made.changed_texts
        for entry in made.entries
        if entry.since_version == made.version
        for seq in entry.from_seqs
    }
    texts_by_seq: dict[int, str] = {}
    wanted, read = sorted(seqs, reverse=True), 0
    for start in range(0, len(wanted), _READ):
        messages = await uow.messages.at_seqs(conversation_id, wanted[start : start + _READ])
        texts = await off_loop(_texts_by_seq, messages)
        texts_by_seq |= texts
        read += sum(map(len, texts.values()))
        if read > _MAX_CHARACTERS_READ:
            break
    return texts_by_seq


def _texts_by_seq(messages: Sequence[Message]) -> dict[int, str]:
    return {message.seq: message_text(message)[:_MAX_MESSAGE_LENGTH] for message in redact_messages(messages)}

"""Attaching files to a conversation, reading them, removing them."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from typing import Any, Final
from uuid import UUID

from app.core.model.conversation import Conversation
from app.core.model.errors import FieldError, InvalidInputError, NoRoomForFileError, NotFoundError
from app.core.model.files import MAX_FILES, MAX_FILES_BYTES, ConversationFile
from app.core.model.policies.contradictions import contradictions
from app.core.model.records import Page
from app.core.text.contents import Content
from app.core.text.file_types import file_tokens, is_what_it_says, kind_of
from app.off_loop import off_loop
from app.storage.unit_of_work import UnitOfWork
from app.usecases.compaction.claiming import refresh_sizes
from app.usecases.compaction.due_triggers import claim_at_rest
from app.usecases.shared.caller import audit
from app.usecases.shared.idempotency import Idem, claim_key, record
from app.usecases.shared.resolve import Resolved
from app.usecases.shared.shell import Shell

MAX_BYTES_ON_LOOP: Final = 10_000
"""The number of bytes above which a file is examined off the event loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file as a client gives it."""

    name: str
    media_type: str
    """The media type; one that can be attached (``file_types.kind_of``)."""
    data: bytes
    tokens: int | None = None
    """The size in tokens, for audio and video whose length cannot be read from their bytes."""


class FileService:
    """The files of conversations, as clients ask for them."""

    def __init__(self, shell: Shell, *, files_bytes: int = MAX_FILES_BYTES) -> None:
        """``files_bytes``: the limit of all files of a conversation together."""
        self._shell = shell
        self._files_bytes = files_bytes

    async def add(
        self, tenant_id: UUID, conversation_id: UUID, given: NewFile, *, idem: Idem | None = None
    ) -> ConversationFile:
        """Attach a file: from now on every context contains it, before all messages.

        Raises:
            NotFoundError: There is no such conversation; or the file that this key attached before was removed.
            InvalidInputError: The bytes are not of the given type, or their size in tokens cannot be determined.
            NoRoomForFileError: The conversation would have too many files, or too little room for anything else.
        """
        shell = self._shell
        sha256, tokens = await _hash_and_weight(given)
        async with shell.uow(tenant_id) as uow:
            before = await claim_key(uow, idem, shell.clock.now())
            if before is not None:
                await uow.conversations.get(conversation_id)
                return await uow.files.get(conversation_id, UUID(before["file_id"]))
            conversation = await uow.conversations.lock(conversation_id)
            file = ConversationFile(
                id=shell.new_id(),
                tenant_id=tenant_id,
                conversation_id=conversation_id,
                name=given.name,
                media_type=given.media_type,
                sha256=sha256,
                bytes=len(given.data),
                tokens=tokens,
                created_at=shell.clock.now(),
            )
            await self._refuse_too_many(uow, conversation, file)
            resolved = shell.resolver(_with_file_sizes_added(conversation, file.tokens, file.bytes))
            _refuse_without_room(shell.resolver(conversation), resolved, file)
            content = Content(sha256=sha256, data=given.data, media_type=given.media_type)
            await uow.contents.store_and_count_uses({sha256: content}, [[sha256]])
            await uow.files.add(file)
            await uow.caches.leave(conversation_id)
            await self._store_sizes_and_claim(uow, resolved)
            numbers = {"conversation_id": str(conversation_id), "bytes": file.bytes, "tokens": file.tokens}
            await audit(uow, shell, tenant_id, "file.attached", file.id, **numbers)
            await record(uow, idem, {"file_id": str(file.id)})
            await uow.commit()
        return file

    async def page(
        self, tenant_id: UUID, conversation_id: UUID, page: Page
    ) -> tuple[list[ConversationFile], str | None]:
        """The files of a conversation, in the order in which they were attached. Raises ``NotFoundError``."""
        async with self._shell.uow(tenant_id) as uow:
            await uow.conversations.get(conversation_id)
            return await uow.files.page(conversation_id, page)

    async def get(self, tenant_id: UUID, conversation_id: UUID, file_id: UUID) -> ConversationFile:
        """One file, without its bytes. Raises ``NotFoundError``."""
        async with self._shell.uow(tenant_id) as uow:
            await uow.conversations.get(conversation_id)
            return await uow.files.get(conversation_id, file_id)

    async def content(self, tenant_id: UUID, conversation_id: UUID, file_id: UUID) -> tuple[ConversationFile, bytes]:
        """One file with its bytes. Raises ``NotFoundError``."""
        async with self._shell.uow(tenant_id) as uow:
            await uow.conversations.get(conversation_id)
            file = await uow.files.get(conversation_id, file_id)
            found = await uow.contents.read([file.sha256])
        if file.sha256 not in found:
            raise NotFoundError("No such file.")
        return file, found[file.sha256]

    async def remove(self, tenant_id: UUID, conversation_id: UUID, file_id: UUID) -> None:
        """Remove a file. No context contains it from then on, and copies at providers are deleted.

        Raises:
            NotFoundError: There is no such conversation or file.
        """
        shell = self._shell
        async with shell.uow(tenant_id) as uow:
            conversation = await uow.conversations.lock(conversation_id)
            file = await uow.files.get(conversation_id, file_id)
            await uow.files.remove(conversation_id, file_id)
            await uow.caches.leave(conversation_id)
            # A stateful model's provider got the file with earlier responses.
            await uow.copies.mark_for_deletion(conversation_id)
            without = _with_file_sizes_added(conversation, -file.tokens, -file.bytes)
            without = replace(without, content_epoch=conversation.content_epoch + 1)
            await self._store_sizes_and_claim(uow, shell.resolver(without))
            await audit(uow, shell, tenant_id, "file.removed", file_id, conversation_id=str(conversation_id))
            await uow.commit()

    async def _refuse_too_many(self, uow: UnitOfWork, conversation: Conversation, file: ConversationFile) -> None:
        count, size, _ = await uow.files.sums(conversation.id)
        if count >= MAX_FILES:
            raise NoRoomForFileError(
                f"the conversation has {count} files, at most {MAX_FILES} are taken: remove one first",
                extra={"files": count, "limit": MAX_FILES},
            )
        if size + file.bytes > self._files_bytes:
            raise NoRoomForFileError(
                f"the file has {file.bytes} bytes and the files of the conversation have {size}: together above the"
                f" limit of {self._files_bytes} bytes; remove one first",
                extra={"size": file.bytes, "files_bytes": size, "limit": self._files_bytes},
            )

    async def _store_sizes_and_claim(self, uow: UnitOfWork, resolved: Resolved) -> None:
        conversation = resolved.conversation
        changes: dict[str, Any] = {
            "file_tokens": conversation.file_tokens,
            "file_bytes": conversation.file_bytes,
            "content_epoch": conversation.content_epoch,
            "live": None,
        }
        stored = await refresh_sizes(uow, resolved, **changes)
        await claim_at_rest(uow, self._shell, self._shell.resolver(stored))


async def fork_with_files(uow: UnitOfWork, shell: Shell, fork: Conversation, source: UUID) -> Conversation:
    """Give a fork the files of its source, and return it. Both share the stored bytes. Raises ``ConflictError``."""
    files = await uow.files.of_conversation(source)
    if not files:
        return fork
    await uow.contents.store_and_count_uses({}, [[file.sha256] for file in files])
    for file in files:
        await uow.files.add(replace(file, id=shell.new_id(), conversation_id=fork.id))
    forked = _with_file_sizes_added(fork, sum(file.tokens for file in files), sum(file.bytes for file in files))
    sizes = {"file_tokens": forked.file_tokens, "file_bytes": forked.file_bytes}
    return await refresh_sizes(uow, shell.resolver(forked), **sizes)


def _with_file_sizes_added(conversation: Conversation, tokens: int, size: int) -> Conversation:
    """The conversation with these sizes added to those of its files; negative sizes are of a removed file."""
    return replace(
        conversation,
        file_tokens=max(conversation.file_tokens + tokens, 0),
        file_bytes=max(conversation.file_bytes + size, 0),
    )


async def _hash_and_weight(given: NewFile) -> tuple[str, int]:
    if len(given.data) <= MAX_BYTES_ON_LOOP:
        return _checked_hash_and_weight(given)
    return await off_loop(_checked_hash_and_weight, given)


def _checked_hash_and_weight(given: NewFile) -> tuple[str, int]:
    if not given.data:
        raise _invalid_field("body", "a file has at least one byte: send its bytes as the body")
    if not is_what_it_says(given.data, given.media_type):
        problem = "is no text in UTF-8" if kind_of(given.media_type) == "text" else f"is no {given.media_type}"
        raise _invalid_field("Content-Type", f"the file {problem}: name the type that its bytes have")
    return hashlib.sha256(given.data).hexdigest(), _weight(given)


def _weight(given: NewFile) -> int:
    if given.tokens is not None:
        if kind_of(given.media_type) == "text":
            raise _invalid_field("tokens", "what a text weighs is counted: leave tokens out")
        return given.tokens
    tokens = file_tokens(given.data, given.media_type, given.name)
    if tokens is None:
        raise _invalid_field(
            "tokens",
            "the length of this file cannot be read from its bytes: give tokens (Gemini counts 32 per second of audio,"
            " and about 290 per second of video with audio)",
        )
    return tokens


def _invalid_field(field: str, message: str) -> InvalidInputError:
    return InvalidInputError(f"{field}: {message}", errors=[FieldError(field=field, message=message)])


def _refuse_without_room(before: Resolved, after: Resolved, file: ConversationFile) -> None:
    """Refuse a file that would leave a compaction no room: files are never folded and never left out."""
    files = after.conversation.file_tokens
    known = _contradictions(before)  # contradictions that exist without the file are in both
    errors = [error for error in _contradictions(after) if error not in known]
    if not errors:
        return
    present = files - file.tokens
    raise NoRoomForFileError(
        f"the file weighs {file.tokens} tokens beside {present} of other files, and files are in every context whole:"
        f" {errors[0].message}; or remove files",
        extra={
            "size": file.tokens,
            "files_tokens": present,
            "system_tokens": after.system_tokens,
            "budget": after.budgets.budget,
            "target": after.budgets.target,
            "breakdown": asdict(before.breakdown),
        },
    )


def _contradictions(resolved: Resolved) -> list[FieldError]:
    files = resolved.conversation.file_tokens
    return contradictions(resolved.policy, resolved.budgets, resolved.floor_tokens - files, files=files)

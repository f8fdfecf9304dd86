"""The files of a context as a request carries them: each whole, or replaced by words that say why it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from app.core.context.assembly import AssembledContext
from app.core.context.files import as_copy, as_inline, as_text, as_words, is_text
from app.core.model.files import ConversationFile, RequestFile
from app.core.model.model_io import ModelProfile
from app.core.text.contents import encoded_bytes
from app.off_loop import off_loop
from app.usecases.files.copies import Destination, FileCopyService, Wanted
from app.usecases.shared.shell import Shell

NOT_SENT: Final = "file_not_sent"
"""The warning, with the file's id, that the model got only words about a file."""
INLINE_BYTES: Final = 500_000
"""Files up to this size are sent with each request, even if the provider could keep them: a copy costs a request."""

_WITH_DATA: Final = frozenset({"inline", "copy"})
_WORDS: Final[Mapping[str, str]] = {"file_failed": "failed", "gone": "gone"}
"""Which words of the catalogue describe a reason word; for any other reason they say that the provider is not
available.
"""


def with_files_in_words(context: AssembledContext) -> AssembledContext:
    """The context with words for each file that was to be sent with its data: the provider refused the request."""
    refused = {file.file_id for file in context.files if file.form in _WITH_DATA}
    words = {file.id: as_words(file, "failed", context.locale) for file in context.attached if file.id in refused}
    return replace(
        context,
        files=tuple(words.get(file.file_id, file) for file in context.files),
        warnings=(*context.warnings, *(f"{NOT_SENT}:{file_id}" for file_id in words)),
    )


def has_files_with_data(context: AssembledContext) -> bool:
    """Whether a file is sent as media: with its data, or as the address of the provider's copy."""
    return any(file.form in _WITH_DATA for file in context.files)


@dataclass(slots=True)
class _Plan:
    """How each file is sent."""

    characters_left: int
    """Base64 characters that are left for files and media."""
    texts: list[ConversationFile] = field(default_factory=list)
    inline: list[ConversationFile] = field(default_factory=list)
    copies: list[ConversationFile] = field(default_factory=list)
    words: dict[UUID, str] = field(default_factory=dict)

    def put_inline(self, file: ConversationFile, otherwise: str) -> None:
        size = encoded_bytes(file.bytes)
        if size > self.characters_left:
            self.words[file.id] = otherwise
            return
        self.characters_left -= size
        self.inline.append(file)


class FileServing:
    """Puts files into contexts."""

    def __init__(self, shell: Shell, copies: FileCopyService) -> None:
        self._shell = shell
        self._copies = copies

    async def with_files(
        self, tenant_id: UUID, context: AssembledContext, *, model: str | None, in_turn: bool
    ) -> tuple[AssembledContext, int]:
        """The context with its files, for that model or for a client; and the Base64 characters left for media.

        A turn's model gets the files that it can read: small ones with the request, large ones as a copy at its
        provider, if it keeps copies. A client gets the data, as far as a request has room.
        """
        if not context.attached:
            return context, self._shell.media_bytes
        profile = self._shell.models.chat(model).profile if in_turn else None
        files, characters_left = await self.request_files(tenant_id, context.attached, context.locale, profile)
        warnings = tuple(f"{NOT_SENT}:{file.file_id}" for file in files if file.form == "words")
        return replace(context, files=files, warnings=(*context.warnings, *warnings)), characters_left

    async def request_files(
        self, tenant_id: UUID, attached: Sequence[ConversationFile], locale: str, profile: ModelProfile | None
    ) -> tuple[tuple[RequestFile, ...], int]:
        """The files as a request to that model carries them, or an answer to a client; and the characters left."""
        plan = _planned(attached, profile, self._shell.media_bytes)
        addresses = await self._copy_addresses(tenant_id, plan, profile)
        wanted = sorted({file.sha256 for file in (*plan.texts, *plan.inline)})
        async with self._shell.uow(tenant_id) as uow:
            contents = await uow.contents.read(wanted) if wanted else {}
        return await off_loop(_request_files, attached, locale, plan, addresses, contents), plan.characters_left

    async def forget_lost_copies(self, tenant_id: UUID, context: AssembledContext, model: str | None) -> bool:
        """Forget the copies that a context names, one of which was lost. Returns whether a new try can help."""
        profile = self._shell.models.chat(model).profile
        named = [file.sha256 for file in context.files if file.form == "copy"]
        if profile.file_account is None or not named:
            return False
        return await self._copies.forget_lost(Destination(tenant_id, profile.name, profile.file_account), named)

    async def _copy_addresses(self, tenant_id: UUID, plan: _Plan, profile: ModelProfile | None) -> dict[str, str]:
        if profile is None or profile.file_account is None or not plan.copies:
            return {}
        destination = Destination(tenant_id, profile.name, profile.file_account)
        wanted = [Wanted(file.sha256, file.media_type, file.bytes) for file in plan.copies]
        addresses, refused = await self._copies.addresses(destination, wanted)
        for file in plan.copies:
            if file.sha256 not in addresses:
                plan.put_inline(file, _WORDS.get(refused[file.sha256], "unavailable"))
        return addresses


def _planned(files: Sequence[ConversationFile], profile: ModelProfile | None, max_characters: int) -> _Plan:
    plan = _Plan(max_characters)
    for file in files:
        if is_text(file):
            plan.texts.append(file)
        elif profile is not None and not profile.reads_media(file.media_type):
            plan.words[file.id] = "unreadable"
        elif profile is not None and profile.file_account is not None and file.bytes > INLINE_BYTES:
            plan.copies.append(file)
        else:
            plan.put_inline(file, "too_large")
    return plan


def _request_files(
    attached: Sequence[ConversationFile],
    locale: str,
    plan: _Plan,
    addresses: Mapping[str, str],
    contents: Mapping[str, bytes],
) -> tuple[RequestFile, ...]:
    def as_carried(file: ConversationFile) -> RequestFile:
        if file.id in plan.words:
            return as_words(file, plan.words[file.id], locale)
        if file.sha256 in addresses:
            return as_copy(file, addresses[file.sha256])
        if file.sha256 not in contents:  # it was removed since the context was read
            return as_words(file, "gone", locale)
        return (as_text if is_text(file) else as_inline)(file, contents[file.sha256])

    return tuple(as_carried(file) for file in attached)

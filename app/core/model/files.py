"""The files of a conversation: what is stored of them, and what a request to a model carries of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

from app.core.text.parts import Part

MAX_FILE_BYTES: Final = 20_000_000
"""The most bytes of one file."""
MAX_FILES_BYTES: Final = 100_000_000
"""The most bytes of all files of a conversation together."""
MEDIA_BYTES: Final = 15_000_000
"""The most characters of Base64 in one request to a model. The provider with the smallest limit takes 20 MB in all."""
MAX_FILES: Final = 100
"""The most files of a conversation: each context reads and names them all."""

FILE_LOST: Final = "file_not_found"
"""The reason word of a provider that no longer has a copy that a request names."""
FILE_FAILED: Final = "file_failed"
"""The reason word of a provider that cannot make a file usable."""
FILE_PROCESSING: Final = "file_processing"
"""The reason word of a provider that has not made a file usable yet."""

FileForm = Literal["text", "inline", "copy", "words"]
"""How a file is sent: as its text, with its data, by the address of the provider's copy, or only described in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationFile:
    """A file that is attached to a conversation; files have the order in which they were attached."""

    id: UUID
    tenant_id: UUID
    conversation_id: UUID
    name: str
    media_type: str
    sha256: str
    """The hash of its bytes in 64 hexadecimal digits: the name under which they are stored."""
    bytes: int
    tokens: int
    """The estimated tokens of the file in a context."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFile:
    """A file as a request to a model carries it; as long as its form is the same, ``parts`` are the same bytes."""

    file_id: UUID
    name: str
    media_type: str
    sha256: str
    bytes: int
    tokens: int
    form: FileForm
    parts: tuple[Part, ...]
    """Its label and its content; for a provider's copy a part of type ``file_copy`` with ``uri``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCopy:
    """A copy of a file that a provider keeps."""

    name: str
    """The provider's name of it."""
    uri: str
    """The address by which a request names the copy."""
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFile:
    """A copy of a content at a provider, used for all conversations of a tenant."""

    tenant_id: UUID
    account: str
    """The account that keeps the copy: a hash of the provider's address and the key, which reveals neither."""
    name: str
    sha256: str
    uri: str
    model: str
    """A model of that provider, by the name under which it is asked."""
    made_at: datetime
    expires_at: datetime
    delete_after: datetime | None = None
    """The moment from which on the copy is to be deleted; ``None`` = it is in use."""
    tries: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """What identifies the copy among those of a tenant."""
        return self.account, self.name

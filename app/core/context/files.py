"""The files of a conversation as a request carries them: one user message before all history, the same each time.

It stands right after the system prompt, so that a provider's cache can hold both. Each file is put into an element of
the service, its label, which no message and no file can forge.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Final

from app.core.context.media import formatted_size
from app.core.model.fieldwise import from_same_fields
from app.core.model.files import ConversationFile, FileForm, RequestFile
from app.core.model.model_io import ContextMessage
from app.core.text.escaping import clean
from app.core.text.file_types import kind_of, text_of
from app.core.text.localization.catalogue import catalogue_of
from app.core.text.message_escaping import as_data
from app.core.text.parts import Part

FILE_TAG: Final = "attached_file"
FILE_COPY: Final = "file_copy"
"""The type of a part that names a provider's copy. Only the service makes such parts; clients cannot."""
_CLOSING: Final = f"</{FILE_TAG}>"
_ATTRIBUTE: Final = {ord('"'): "'", ord("<"): "(", ord(">"): ")", ord("\n"): " ", ord("\r"): " ", ord("\t"): " "}


def files_message(files: Sequence[RequestFile], locale: str) -> ContextMessage | None:
    """The message that holds all files, in their order; ``None`` without files."""
    if not files:
        return None
    head: Part = {"type": "text", "text": catalogue_of(locale).text("context.files")}
    return ContextMessage(role="user", content="", parts=(head, *(part for file in files for part in file.parts)))


def with_files(
    messages: Sequence[ContextMessage], files: Sequence[RequestFile], locale: str
) -> tuple[ContextMessage, ...]:
    """The messages of a request, with its files after the service's own system prompt, if there is one."""
    attached = files_message(files, locale)
    if attached is None:
        return tuple(messages)
    first = 1 if messages and messages[0].role == "system" and messages[0].seq is None else 0
    return (*messages[:first], attached, *messages[first:])


def as_text(file: ConversationFile, data: bytes) -> RequestFile:
    """A file of kind ``text``, sent as its own text."""
    return _request_file(file, "text", _text_element(file, as_data(clean(text_of(data) or ""), _CLOSING)))


def as_inline(file: ConversationFile, data: bytes) -> RequestFile:
    """Any other file, sent with its data."""
    media = {"type": "media", "media_type": file.media_type, "name": _attribute_value(file.name)}
    media["data"] = base64.b64encode(data).decode()
    return _request_file(file, "inline", _media_element(file, media))


def as_copy(file: ConversationFile, uri: str) -> RequestFile:
    """Any other file, sent as the address of the provider's copy."""
    return _request_file(
        file, "copy", _media_element(file, {"type": FILE_COPY, "media_type": file.media_type, "uri": uri})
    )


def as_words(file: ConversationFile, reason: str, locale: str) -> RequestFile:
    """A file that is not sent: words say what it is and why. ``reason`` is a key of ``context.file`` in catalogues."""
    catalogue = catalogue_of(locale)
    text = catalogue.text("context.file.not_sent", why=catalogue.text(f"context.file.{reason}"))
    return _request_file(file, "words", _text_element(file, text))


def is_text(file: ConversationFile) -> bool:
    """Whether a file is sent as its own text."""
    return kind_of(file.media_type) == "text"


def _request_file(file: ConversationFile, form: FileForm, parts: tuple[Part, ...]) -> RequestFile:
    return from_same_fields(RequestFile, file, file_id=file.id, form=form, parts=parts)


def _text_element(file: ConversationFile, text: str) -> tuple[Part, ...]:
    return ({"type": "text", "text": f"{_opening_tag(file)}\n{text}\n{_CLOSING}"},)


def _media_element(file: ConversationFile, part: Part) -> tuple[Part, ...]:
    return {"type": "text", "text": _opening_tag(file)}, part, {"type": "text", "text": _CLOSING}


def _opening_tag(file: ConversationFile) -> str:
    name, size = _attribute_value(file.name), formatted_size(file.bytes)
    return f'<{FILE_TAG} name="{name}" type="{file.media_type}" size="{size}">'


def _attribute_value(text: str) -> str:
    return clean(text).translate(_ATTRIBUTE)

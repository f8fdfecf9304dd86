"""Turns the contents of messages, calls and results of OpenAI's API into their stored form."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from app.core.text.contents import from_data_url, inline_base64, is_data_url
from app.core.text.json_data import arguments_in
from app.core.text.parts import BETWEEN_TEXTS, Part, is_blank
from app.http.fields import MAX_PARTS

MAX_URL_LENGTH: Final = 8_192
CallId = Annotated[str, Field(min_length=1, max_length=200)]
ToolName = Annotated[str, Field(min_length=1, max_length=64)]


class Given(BaseModel):
    """A part of a request. Unknown fields are ignored, as that API does."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class TextContent(Given):
    """Text, under any of the names that this API has for it."""

    type: Literal["text", "input_text", "output_text", "summary_text", "reasoning_text"]
    text: str


class RefusalContent(Given):
    """What an assistant said instead of an answer."""

    type: Literal["refusal"]
    refusal: str


class ImageUrl(Given):
    """The address of an image."""

    url: str
    detail: str | None = None


class ChatImage(Given):
    """An image of a chat completion."""

    type: Literal["image_url"]
    image_url: ImageUrl | str
    """With its details, or the address alone."""


class ResponseImage(Given):
    """An image of a response's input."""

    type: Literal["input_image"]
    image_url: str | None = None
    file_id: str | None = None
    detail: str | None = None


class GivenAudio(Given):
    """Audio data within the request."""

    data: Annotated[str, Field(min_length=1)]
    format: Annotated[str, Field(min_length=1, max_length=40)]


class AudioContent(Given):
    """A piece of audio."""

    type: Literal["input_audio"]
    input_audio: GivenAudio


class GivenFile(Given):
    """A file within the request."""

    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class ChatFile(Given):
    """A file of a chat completion."""

    type: Literal["file"]
    file: GivenFile


class ResponseFile(Given):
    """A file of a response's input."""

    type: Literal["input_file"]
    file_data: str | None = None
    file_url: str | None = None
    file_id: str | None = None
    filename: str | None = None


ContentPart = Annotated[
    TextContent | RefusalContent | ChatImage | ResponseImage | AudioContent | ChatFile | ResponseFile,
    Field(discriminator="type"),
]


def form_of(value: Any) -> str:
    """Which of the two forms of a content, or of an input, a value is meant to have."""
    return "text" if isinstance(value, str) else "list"


Content = Annotated[
    Annotated[str, Tag("text")] | Annotated[list[ContentPart], Field(max_length=MAX_PARTS), Tag("list")],
    Discriminator(form_of),
]


def stored_content(content: Content | None) -> tuple[str, tuple[Part, ...]]:
    """The text of a message, and its media; if a text stands behind media, all texts are parts too, in their order.

    Raises:
        ValueError: A file is named by an id, or its data is not a data URL.
    """
    if content is None or isinstance(content, str):
        return content or "", ()
    given = [part for part in map(_stored_part, content) if not is_blank(part)]
    media = media_in(given)
    texts = [part["text"] for part in given if part["type"] == "text"]
    texts_come_first = media_in(given[len(texts) :]) == media
    return BETWEEN_TEXTS.join(texts), media if texts_come_first else tuple(given)


def media_in(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The media among parts."""
    return tuple(part for part in parts if part["type"] == "media")


def _stored_part(part: ContentPart) -> Part:
    match part:
        case TextContent(text=text) | RefusalContent(refusal=text):
            return {"type": "text", "text": text}
        case _:
            return _media_part(part)


def _media_part(part: ChatImage | ResponseImage | AudioContent | ChatFile | ResponseFile) -> Part:
    match part:
        case ChatImage(image_url=ImageUrl(url=url, detail=detail)) | ResponseImage(image_url=str(url), detail=detail):
            return _media_from_source(url, "image/*", {"detail": detail})
        case ChatImage(image_url=str(url)):
            return _media_from_source(url, "image/*", {})
        case AudioContent(input_audio=GivenAudio(data=data, format=form)):
            return _inline_media(data, f"audio/{form}", {})
        case ChatFile(file=GivenFile(file_data=str(data), filename=name)):
            return _media_from_source(data, _type_of(name), {"name": name})
        case ResponseFile(file_data=str(data), filename=name):
            return _media_from_source(data, _type_of(name), {"name": name})
        case ResponseFile(file_url=str(url), filename=name):
            return _media_from_source(url, _type_of(name), {"name": name})
        case _:
            raise ValueError("files are taken inline or by address: there are no stored files that an id could name")


def _media_from_source(source: str, kind: str, details: dict[str, str | None]) -> Part:
    """The data in a data URL, or an address. Bare Base64 of a file is data too."""
    details_given = {name: value for name, value in details.items() if value is not None}
    if is_data_url(source):
        media_type, data = from_data_url(source)
        if data is None:
            raise ValueError("a data URL must hold Base64 after ';base64,', or percent-encoded data after ','")
        return {"type": "media", "media_type": (media_type or kind)[:200], "data": data, **details_given}
    if "://" in source[:16]:
        if len(source) > MAX_URL_LENGTH:
            raise ValueError(f"an address may have at most {MAX_URL_LENGTH} characters")
        return {"type": "media", "media_type": mimetypes.guess_type(source)[0] or kind, "url": source, **details_given}
    if not source:
        raise ValueError("a file or an image needs data or an address")
    return _inline_media(source, kind, details_given)


def _inline_media(data: str, media_type: str, details: Mapping[str, str]) -> Part:
    part = {"type": "media", "media_type": media_type, "data": data, **details}
    if inline_base64(part) is None:
        raise ValueError("the data of a file, an image or a sound is Base64; an address begins with https://")
    return part


def _type_of(name: str | None) -> str:
    return (mimetypes.guess_type(name)[0] if name else None) or "application/octet-stream"


def call_part(id_: str, name: str, arguments: str) -> Part:
    """A call in its stored form.

    Its arguments are an object if they can be read as one, otherwise the text as written.
    """
    return {"type": "tool_call", "id": id_, "name": name, "arguments": arguments_in(arguments)}


def result_parts(call_id: str, content: Content | None) -> tuple[Part, ...]:
    """A result in its stored form: its text, or a description of its media, and then the media."""
    words, parts = stored_content(content)
    media = media_in(parts)
    text = words or BETWEEN_TEXTS.join(f"[{part['media_type']}]" for part in media)
    return ({"type": "tool_result", "tool_call_id": call_id, "content": text}, *media)


def calls_in(parts: Iterable[Part]) -> list[tuple[int, Part]]:
    """The calls of a message, each with its number among the message's parts."""
    return [(number, part) for number, part in enumerate(parts) if part.get("type") == "tool_call"]


def results_in(parts: Sequence[Part]) -> list[tuple[int, Part]]:
    """The results in a message, each with its number among the message's parts."""
    return [(number, part) for number, part in enumerate(parts) if part.get("type") == "tool_result"]

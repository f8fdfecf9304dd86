"""Writes parts in words, and makes ids, names and arguments acceptable to every provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from app.core.context.formats.values import Media, Piece, Text
from app.core.model.model_io import ContextMessage
from app.core.retrieval.rendering import split_elements, with_elements_before
from app.core.text.contents import inline_base64, named_address
from app.core.text.json_data import arguments_in
from app.core.text.localization.catalogue import Catalogue
from app.core.text.message_escaping import value_as_data
from app.core.text.parts import Part, as_text
from app.core.text.patterns import compiled
from app.core.text.speakers import with_speaker_name

ID_LENGTH: Final = 40  # OpenAI's limit, the narrowest
NAME_LENGTH: Final = 64  # the same
_LONGEST_ENDING: Final = 8  # the most characters that make an id unique
_MAX_NAME_LENGTH: Final = 100  # the most characters of a medium's name
_NOT_IN_NAMES: Final = compiled(r"[^A-Za-z0-9_-]")


def with_names_in_text(messages: Sequence[ContextMessage]) -> list[ContextMessage]:
    """The messages for a provider that has no field for names: a user's own words begin with the name."""
    return [_with_name_in_text(message) if message.name else message for message in messages]


def _with_name_in_text(message: ContextMessage) -> ContextMessage:
    if message.role != "user" or not (message.content.strip() or message.parts):
        return replace(message, name="")
    # Recalled messages are not the speaker's own words.
    recalled, own_text = split_elements(message.content)
    return replace(
        message, name="", content=with_elements_before(recalled.rstrip(), "", with_speaker_name(message.name, own_text))
    )


def piece_of(part: Part, catalogue: Catalogue) -> Piece | None:
    """A part of a user's message as inline data if it has any, else in words; ``None`` if it says nothing."""
    media = _inline_media(part, catalogue) if part.get("type") == "media" else None
    if media is not None:
        return media
    words = part_as_text(part, catalogue)
    return Text(words) if words.strip() else None


def part_as_text(part: Part, catalogue: Catalogue) -> str:
    """A part in words: its text, or a description."""
    name = str(part.get("name") or catalogue.text("context.part.a_tool"))
    match part.get("type"):
        case "media":
            url = named_address(part)
            key = "context.part.attached_at" if url else "context.part.attached"
            return catalogue.text(key, what=", ".join(media_type_and_name(part, catalogue)), url=url)
        case "tool_call":
            return catalogue.text("context.part.call", name=name, arguments=as_text(part.get("arguments", {})))
        case "tool_result":
            return catalogue.text("context.part.result", name=name, content=as_text(part.get("content", "")))
        case _:
            return str(part["text"]) if "text" in part else as_text(dict(part))


def media_type_and_name(part: Part, catalogue: Catalogue) -> tuple[str, ...]:
    """The type of a medium, and its name if it has one."""
    kind, name = str(part.get("media_type") or catalogue.text("context.part.a_file")), part.get("name")
    return (kind, " ".join(name.split())[:_MAX_NAME_LENGTH]) if isinstance(name, str) and name else (kind,)


def arguments_of(arguments: Any) -> dict[str, Any]:
    """Arguments as an object: a client may have stored them as JSON text, or as anything."""
    found = arguments_in(arguments)
    if isinstance(found, Mapping):
        return dict(found)
    return {} if found is None else {"input": found}


def served_arguments(arguments: Any) -> dict[str, Any]:
    """Arguments of a served call as an object, without our elements, which escapes in their JSON text could spell."""
    found = arguments_of(arguments)
    return dict(value_as_data(found, 1)) if isinstance(arguments, str) else found


def tool_name(name: Any) -> str:
    """A name that every provider accepts."""
    return _NOT_IN_NAMES.sub("_", str(name or "tool"))[:NAME_LENGTH]


class UniqueIds:
    """Unique ids of calls in a form that every provider accepts."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}

    def unique(self, requested: Any) -> str:
        """The given id if providers accept it, else a similar one; a repeated id gets a number."""
        stem = _NOT_IN_NAMES.sub("_", str(requested or "call"))[:ID_LENGTH]
        found, beginning = stem, stem[: ID_LENGTH - _LONGEST_ENDING]
        while found in self._taken:
            # Long ids with one beginning become the same id with the same number, so they are counted together.
            number = self._numbers[beginning] = self._numbers.get(beginning, 1) + 1
            ending = f"_{number}"
            found = f"{stem[: ID_LENGTH - len(ending)]}{ending}"
        self._taken.add(found)
        return found

    def unique_as_given(self, requested: str) -> str:
        """The given id, whatever its form; a repeated id gets a number."""
        if requested in self._taken:
            return self.unique(requested)
        self._taken.add(requested)
        return requested


def _inline_media(part: Part, catalogue: Catalogue) -> Media | None:
    media_type = str(part.get("media_type") or "").lower()
    data = inline_base64(part) if media_type else None
    # Media given by address are described in words: the service does not open addresses.
    if data is None:
        return None
    return Media(media_type, data, part_as_text({**part, "media_type": media_type}, catalogue))

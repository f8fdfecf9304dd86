"""Reads files with conversations into the form that the service imports; an error names its line.

It reads the service's own export, an object with ``messages``, a list of such objects or of messages, and JSON Lines of
either. Messages may have the service's form, or OpenAI's (parts in ``content``, ``tool_calls``, ``tool_call_id``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from app.cli.complaints import ComplaintError
from app.cli.terminal_language import text_of
from app.core.model.errors import DomainError, TooLargeError
from app.core.text.contents import from_data_url, is_data_url
from app.http.requests import ConversationCreate, PastMessage
from app.http.strict_json import parse
from app.usecases.compaction.commands import TypedCommands
from app.usecases.history.drafts import refuse_long

EXPORT: Final = "throughline.conversation"
VERSION: Final = 1
"""The version of an export that can be read."""
_CONVERSATION_FIELDS: Final = tuple(name for name in ConversationCreate.model_fields if name != "policy")
_MESSAGE_FIELDS: Final = ("role", "content", "parts", "event_type", "metadata", "created_at", "model", "usage")
_EXPORT_FIELDS: Final = ("status", "is_command", "reasoning")
"""Fields of a message that only an export has."""
_OBJECT_FIELDS: Final = frozenset({"scratchpad", "metadata"})
_MESSAGE_ONLY_FIELDS: Final = frozenset({"role", "content", "parts"})
"""Fields that a message has and a conversation has not."""
_PART_TYPES: Final = frozenset({"tool_call", "tool_result", "text", "media"})
"""Pydantic puts the type of a part into the path of an error; it is not shown."""
_NO_EXPORT_FIELDS: Final[Mapping[str, Any]] = {}
_INSTRUCTION_ROLES: Final = ("system", "developer")


Request = TypeVar("Request", bound=BaseModel)
AnchorPlace = tuple[Any, Any, Any]
"""The place of an anchor: the position of its message, its offset there, and its type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """One conversation of a file."""

    place: str
    """The place in the file, such as ``line 3``; empty if the file is one conversation."""
    about: Mapping[str, Any]
    """Fields of the conversation."""
    messages: tuple[Mapping[str, Any], ...]
    """The messages, in the form of the API."""
    policy: Mapping[str, Any] = field(default_factory=dict)
    """The resolved policy of an export."""
    pinned: frozenset[int] = field(default_factory=frozenset)
    """Indexes in ``messages`` of the pinned ones."""
    chosen: frozenset[AnchorPlace] = field(default_factory=frozenset)
    """Places of the anchors of an export that a user chose to keep."""
    files: tuple[Mapping[str, Any], ...] = ()
    """The files of an export: name, media type, tokens, and the data in Base64."""
    is_export: bool = False
    identity: str = ""
    """A text that is equal if two files contain the same conversation; empty = the whole file and the place in it are
    compared.
    """
    hidden: int = 0
    """How many messages were left out that the other program does not show either: reasoning, its own instructions."""
    other_branches: int = 0
    """How many messages of other branches were left out; only the branch that was open last is imported."""


def read_conversations(text: str, name: str) -> list[Imported]:
    """Every conversation of a file.

    Raises:
        ComplaintError: Something cannot be read; the error names file, line and message.
    """
    found = list(_conversations(text, name))
    if not found:
        raise ComplaintError(text_of("import.empty", where=name))
    return found


def _conversations(text: str, name: str) -> Iterator[Imported]:
    try:
        whole = _parsed_json(text)
    except ValueError as error:
        if not text.strip():
            raise ComplaintError(text_of("import.blank", where=name)) from None
        if len(lines := _numbered_lines(text)) < 2 or not _is_json(lines[0][1]):  # noqa: PLR2004 - one line is no list
            raise ComplaintError(text_of("import.no_json", where=name, why=_reason(error))) from None
        yield from _conversations_of_lines(lines, name)
        return
    if isinstance(whole, list) and not _are_messages(whole):
        for number, one in enumerate(whole, start=1):
            yield _conversation(one, name, text_of("import.conversation", number=str(number)))
    elif _are_messages([whole]):
        yield _conversation([whole], name, "")
    else:
        yield _conversation(whole, name, "")


def _conversations_of_lines(lines: Sequence[tuple[int, str]], name: str) -> Iterator[Imported]:
    read = [(number, _json_of_line(line, name, number)) for number, line in lines]
    if _are_messages([one for _, one in read]):
        yield _conversation_of_messages({}, [(_line(number), one) for number, one in read], name, "")
        return
    for number, one in read:
        yield _conversation(one, name, _line(number))


def _line(number: int) -> str:
    return text_of("import.line", number=str(number))


def _conversation(value: Any, name: str, place: str) -> Imported:
    where = f"{name}: {place}" if place else name
    messages = value.get("messages") if isinstance(value, Mapping) else value
    if not isinstance(messages, list):
        raise ComplaintError(text_of("import.no_list", where=where))
    before = f"{place}, " if place else ""
    numbered = [
        (f"{before}{text_of('import.message', number=str(number))}", one)
        for number, one in enumerate(messages, start=1)
    ]
    return _conversation_of_messages(value if isinstance(value, Mapping) else {}, numbered, name, place)


def _conversation_of_messages(
    value: Mapping[str, Any], numbered: Sequence[tuple[str, Any]], name: str, place: str
) -> Imported:
    is_export = value.get("format") == EXPORT
    conversation = value.get("conversation") if is_export else value
    if not isinstance(conversation, Mapping):
        raise ComplaintError(text_of("import.no_export", where=name))
    if is_export and value.get("version", VERSION) != VERSION:
        raise ComplaintError(text_of("import.other_version", where=name, version=str(value["version"])))
    about = {key: conversation[key] for key in _CONVERSATION_FIELDS if conversation.get(key) not in (None, "", {})}
    if is_export:
        if "preset" in about:
            about.setdefault("preset_version", 1)  # an export from before presets had versions
    else:
        about = {key: one for key, one in about.items() if isinstance(one, dict if key in _OBJECT_FIELDS else str)}
        about, numbered = _with_system_prompt(_with_id_as_title(about, value), numbered)
    _refuse_if_service_would(about, ConversationCreate, f"{name}: {place}" if place else name)
    export_fields = _export_only_fields(numbered) if is_export else [{}] * len(numbered)
    messages = tuple(
        checked_message(one, f"{name}: {where}", extra)
        for (where, one), extra in zip(numbered, export_fields, strict=True)
    )
    _refuse_results_without_call(messages, [f"{name}: {where}" for where, _ in numbered])
    imported = Imported(place=place, about=about, messages=messages, is_export=is_export)
    if not is_export:
        return imported
    policy = conversation.get("policy")
    return replace(
        imported,
        policy=policy if isinstance(policy, Mapping) else {},
        pinned=frozenset(n for n, (_, one) in enumerate(numbered) if one.get("protected_reason") == "pinned"),
        chosen=frozenset(_chosen_places(value.get("anchors"))),
        files=tuple(_files(value.get("files"))),
    )


def _refuse_results_without_call(messages: Sequence[Mapping[str, Any]], places: Sequence[str]) -> None:
    made: set[str] = set()
    for message, where in zip(messages, places, strict=True):
        for part in message.get("parts") or ():
            if part["type"] == "tool_call":
                made.add(part["id"])
            elif part["type"] == "tool_result" and (id_ := part.get("tool_call_id", part.get("id"))) not in made:
                raise ComplaintError(f"{where}: no tool call with id {id_!r} comes before its result.")


def _chosen_places(anchors: Any) -> Iterator[AnchorPlace]:
    for one in anchors if isinstance(anchors, list) else ():
        if isinstance(one, Mapping) and (one.get("proposed_by"), one.get("status")) == ("user", "active"):
            place = one.get("original_position"), one.get("offset"), one.get("type")
            if all(isinstance(step, int | str) for step in place):
                yield place


def _files(files: Any) -> Iterator[Mapping[str, Any]]:
    return (one for one in (files if isinstance(files, list) else ()) if _is_file(one))


def _is_file(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(value.get(name), str) for name in ("name", "media_type", "data")
    )


def _export_only_fields(numbered: Sequence[tuple[str, Any]]) -> list[dict[str, Any]]:
    """For each message, the fields that only an export has; erased messages are imported too, to keep all numbers."""
    commands, names = TypedCommands(), ("role", "event_type", "content", "status")
    found = list[dict[str, Any]]()
    for _, message in numbered:
        given = message if isinstance(message, Mapping) else {}
        fields = {key: given[key] for key in _EXPORT_FIELDS if given.get(key) not in (None, "", "complete", False)}
        if "is_command" not in given and commands.has(*map(given.get, names)):  # missing in earlier exports
            fields["is_command"] = True
        if not fields.get("status") and not given.get("content") and not given.get("parts"):
            fields["status"] = "erased"
        found.append(fields)
    return found


def _with_id_as_title(about: dict[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    name = value.get("id")
    return about | {"title": name} if "title" not in about and isinstance(name, str) and name else about


def _with_system_prompt(
    about: dict[str, Any], numbered: Sequence[tuple[str, Any]]
) -> tuple[dict[str, Any], Sequence[tuple[str, Any]]]:
    first = numbered[0][1] if numbered else None
    if "system_prompt" in about or not isinstance(first, Mapping) or first.get("role") not in _INSTRUCTION_ROLES:
        return about, numbered
    text = _content_text(first.get("content"))
    return (about | {"system_prompt": text}, numbered[1:]) if text else (about, numbered)


def checked_message(
    message: Any, where: str, export_fields: Mapping[str, Any] = _NO_EXPORT_FIELDS
) -> Mapping[str, Any]:
    """A message in the form of the API, with the fields of its export, checked as the service would check it.

    Raises:
        ComplaintError: The service would refuse it; the error names ``where``.
    """
    if not isinstance(message, Mapping):
        raise ComplaintError(text_of("import.no_object", where=where))
    checked = {key: message[key] for key in _MESSAGE_FIELDS if message.get(key) is not None}
    if "created_at" in checked and isinstance(message.get("utc_offset"), int):
        checked["created_at"] = _with_offset(checked["created_at"], message["utc_offset"])
    if checked.get("model") == "":  # the answer to a command, which no model wrote
        del checked["model"]
    if checked.get("role") == "developer":
        checked["role"] = "system"
    checked |= {**_openai_parts(message, where), **export_fields}
    past_message = _refuse_if_service_would(checked, PastMessage, where)
    try:
        refuse_long(past_message.draft())
    except TooLargeError as error:
        raise ComplaintError(f"{where}: {error.detail.removesuffix('.')}.") from None
    return checked


def _with_offset(time: Any, minutes: int) -> Any:
    """A time of an export with the client's offset. An invalid time is left for the service to refuse."""
    try:
        return datetime.fromisoformat(time).astimezone(timezone(timedelta(minutes=minutes))).isoformat()
    except (TypeError, ValueError, OverflowError):
        return time


def _refuse_if_service_would(made: Mapping[str, Any], as_: type[Request], where: str) -> Request:
    """The value as the service would read it. Raises ``ComplaintError`` if the service would refuse it."""
    try:
        parse(json.dumps(made).encode())
        return as_.model_validate(made)
    except DomainError as error:
        raise ComplaintError(f"{where}: {error.detail.removesuffix('.')}.") from None
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        step = ".".join(str(one) for one in fault["loc"] if one not in _PART_TYPES)
        reason = fault["msg"].removeprefix("Value error, ")
        wrong = reason if not step or reason.startswith(step) else f"{step}: {reason}"
        raise ComplaintError(f"{where}: {wrong}.") from None


def _openai_parts(message: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields that differ in the service's form: ``content`` as a text, and everything else as ``parts``."""
    content, calls = message.get("content"), message.get("tool_calls")
    listed = message.get("parts")
    parts = [_with_tool_call_id(part) for part in listed] if isinstance(listed, list) else []
    changed: dict[str, Any] = {}
    if isinstance(content, list):
        changed["content"] = _content_text(content)
        parts += [_media_part(one) for one in content if isinstance(one, Mapping) and one.get("type") != "text"]
    if isinstance(calls, list) and not any(_part_type(part) == "tool_call" for part in parts):
        parts += [_openai_tool_call(one, where) for one in calls]
    if (
        message.get("role") == "tool"
        and message.get("tool_call_id")
        and not any(_part_type(p) == "tool_result" for p in parts)
    ):
        answered = {"type": "tool_result", "tool_call_id": message["tool_call_id"], "content": _content_text(content)}
        parts.append(answered | ({"name": message["name"]} if message.get("name") else {}))
        changed["content"] = ""
    if parts and parts != message.get("parts"):
        changed["parts"] = parts
    return changed


def _with_tool_call_id(part: Any) -> Any:
    if _part_type(part) == "tool_result" and "id" in part and "tool_call_id" not in part:
        return {**part, "tool_call_id": part["id"]}
    return part


def _openai_tool_call(call: Any, where: str) -> dict[str, Any]:
    called = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(called, Mapping):
        raise ComplaintError(text_of("import.no_function", where=where))
    arguments = called.get("arguments")
    try:
        read = _parsed_json(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        read = arguments
    return {"type": "tool_call", "id": call.get("id"), "name": called.get("name"), "arguments": read or {}}


def _media_part(part: Mapping[str, Any]) -> dict[str, Any]:
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, Mapping) else image
    if not isinstance(url, str):
        return dict(part)
    if is_data_url(url):
        kind, data = from_data_url(url)
        return {"type": "media", "media_type": kind or "image/*", "data": data or url}
    return {"type": "media", "media_type": "image/*", "url": url}


def _content_text(content: Any) -> str:
    if isinstance(content, list):
        texts = (one.get("text") for one in content if isinstance(one, Mapping) and one.get("type") == "text")
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _part_type(part: Any) -> Any:
    return part.get("type") if isinstance(part, Mapping) else None


def _are_messages(values: Sequence[Any]) -> bool:
    """Whether the values are messages and not conversations. Some may be wrong; each is checked for itself later."""
    objects = [one for one in values if isinstance(one, Mapping)]
    return any(one.keys() & _MESSAGE_ONLY_FIELDS for one in objects) and not any("messages" in one for one in objects)


def _numbered_lines(text: str) -> list[tuple[int, str]]:
    return [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]


def _json_of_line(line: str, name: str, number: int) -> Any:
    try:
        return _parsed_json(line)
    except ValueError as error:
        raise ComplaintError(
            text_of("import.no_json", where=f"{name}: {_line(number)}", why=_reason_in_line(error))
        ) from None


def _is_json(line: str) -> bool:
    try:
        _parsed_json(line)
    except ValueError:
        return False
    return True


def _parsed_json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _reason(error: ValueError) -> str:
    line = f" of line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
    return f"{_reason_in_line(error)}{line}"


def _reason_in_line(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.removesuffix(' at')} at column {error.colno}"
    return str(error)

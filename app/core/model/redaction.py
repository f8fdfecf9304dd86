"""Replaces known shapes of secrets by ``[REDACTED:kind]`` in everything made from a message, never in the message.

Laws: redacting twice is redacting once; every pattern runs in linear time; nothing here raises. A shape is known by a
prefix that a provider gives its keys, by a check sum, or by the word that names the value (``password=…``): long words,
UUIDs, hashes, order and phone numbers are no secrets.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Final

from app.core.model.conversation import Message
from app.core.model.secret_columns import in_columns
from app.core.model.secret_names import NAME_FINDERS, names_secret, secret_in_answer
from app.core.model.secret_shapes import FINDERS_AFTER_NAMES, FINDERS_BEFORE_NAMES, FoundSecret, SecretFinder
from app.core.text.escaping import without_unseen
from app.core.text.parts import Part, own_content
from app.core.text.patterns import compiled
from app.core.text.plain_view import PlainView, plain_view

REDACTED: Final = compiled(r"\[REDACTED:\w{1,40}\]")
"""The text that replaces a secret."""

_PASSES: Final = 4  # redacting one secret can uncover another beside it; no honest text needs more passes
_DEEPEST: Final = 64  # the most levels of a tool's arguments that are searched
_DATA: Final = frozenset({"data"})
"""Keys of a part that hold the media itself: never shown, never searched."""
_DATA_URL: Final = compiled(r"data:[\w.+/;=-]{0,200};base64,[\w+/=%\r\n-]*+", re.ASCII)
"""A text that is a data URL and nothing else. A line of an event stream begins with ``data:`` too."""
_SHORT_KEY: Final = 12
"""A key of at most so many characters is a word and not itself a secret."""


def redact(text: str) -> str:
    """The text with every known secret replaced by ``[REDACTED:kind]``.

    Secrets are looked for in the text as a reader sees it (``plain_view``), so zero-width spaces, look-alike and wide
    letters cannot hide them. The rest of the text stays as it was, but for what no person sees (``without_unseen``):
    that goes afterwards, since its sign would part a secret that it stands in.
    """
    for _ in range(_PASSES):
        cleaned = without_unseen(_redacted_once(text))
        if cleaned == text:
            break
        text = cleaned
    return text


def redact_message(message: Message) -> Message:
    """The message with content and parts redacted. Everything else, token counts too, stays as it was.

    A secret that is split over neighbouring text parts is found as well.
    """
    content = redact(message.content)
    parts = tuple(_redacted_part(part) for part in _without_split_secrets(message.parts))
    if content == message.content and parts == message.parts:
        return message
    repeats = content and not own_content(message.role, message.content, message.parts)
    if repeats and own_content(message.role, content, parts):
        content = ""  # content and parts may write a secret in different ways, and only one of the two be redacted
    return replace(message, content=content, parts=parts)


def redact_messages(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Consecutive messages of one conversation, redacted.

    A secret that one message names and the next one gives ("what is the password?" – "hunter22") is found as well.
    """
    shown = [redact_message(message) for message in messages]
    for place, (before, after) in enumerate(pairwise(shown), 1):
        is_next = after.seq == before.seq + 1
        value = secret_in_answer(before.content, after.content) if is_next else None
        if value is not None:
            shown[place] = _with_secret_replaced(after, *value)
    return tuple(shown)


def redact_value(value: Any) -> Any:
    """A JSON value with every string in it redacted. The whole value under a key such as ``password`` is replaced."""
    return _redacted_value(value, 0)


def _redacted_once(text: str) -> str:
    view = plain_view(text)
    for find in _FINDERS:
        found = list(find(view.text))
        if found:
            text = _with_findings_replaced(text, found, view)
            view = plain_view(text)
    return text


def _with_findings_replaced(text: str, found: Iterable[FoundSecret], view: PlainView) -> str:
    marked = ((view.original(start), view.original(end), f"[REDACTED:{kind}]") for start, end, kind in found)
    return _replaced_pieces(text, marked)


_FINDERS: Final[tuple[SecretFinder, ...]] = (*FINDERS_BEFORE_NAMES, in_columns, *NAME_FINDERS, *FINDERS_AFTER_NAMES)


# --- parts of messages ---------------------------------------------------------------------------------------------


def _redacted_part(part: Part) -> Part:
    redacted: Part = {key: value if key in _DATA else _redacted_value(value, 0) for key, value in part.items()}
    return part if redacted == part else redacted


def _redacted_value(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return value if _DATA_URL.fullmatch(value) else redact(value)
    if isinstance(value, Mapping):
        return _redacted_mapping(value, depth)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_redacted_value(item, depth + 1) for item in value] if depth < _DEEPEST else []
    return value


def _redacted_mapping(value: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if depth >= _DEEPEST:
        return {}
    redacted: dict[str, Any] = {}
    numbers = Counter[str]()
    for given, item in value.items():
        key = same = _redacted_key(given)
        while key in redacted:  # no value is lost because two keys are secrets of one kind
            numbers[same] += 1
            key = f"{same} ({numbers[same] + 1})"
        redacted[key] = _redacted_under_key(plain_view(str(given)).text, item, depth)
    return redacted


def _redacted_key(key: Any) -> Any:
    # A key may itself be a secret, as in a dictionary with tokens as its keys.
    if not isinstance(key, str):
        return key
    return redact(key) if len(key) > _SHORT_KEY else without_unseen(key)


def _redacted_under_key(key: str, item: Any, depth: int) -> Any:
    # A text or number under a key that names a secret is judged like an assignment (``password=…``).
    if isinstance(item, str) and names_secret(key):
        return _redacted_assignment(f'{key}: "', item, '"', otherwise=redact)
    if isinstance(item, int | float) and not isinstance(item, bool) and names_secret(key):
        written = str(item)
        redacted = _redacted_assignment(f"{key}: ", written, "", otherwise=str)
        return item if redacted == written else redacted
    return _redacted_value(item, depth + 1)


def _redacted_assignment(named: str, value: str, end: str, *, otherwise: Callable[[str], str]) -> str:
    redacted = redact(f"{named}{value}{end}")
    return redacted.removeprefix(named).removesuffix(end) if redacted.startswith(named) else otherwise(value)


def _without_split_secrets(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Parts without the secrets that begin in one text part and end in a later one."""
    texts = [
        index for index, part in enumerate(parts) if part.get("type") == "text" and isinstance(part.get("text"), str)
    ]
    if len(texts) < 2:  # noqa: PLR2004 - nothing to be split over
        return parts
    whole = "".join(parts[index]["text"] for index in texts)
    if redact(whole) == whole:
        return parts
    changed = {index: dict(parts[index]) for index in texts}
    for find in _FINDERS:
        _redact_across_parts([changed[index] for index in texts], find)
    return tuple(changed.get(index, part) for index, part in enumerate(parts))


def _redact_across_parts(parts: Sequence[dict[str, Any]], find: SecretFinder) -> None:
    # The mark replaces the piece in which a secret begins; its other pieces are removed from the later parts.
    view = plain_view("".join(part["text"] for part in parts))
    found = [(view.original(start), view.original(end), kind) for start, end, kind in find(view.text)]
    offset = 0
    for part in parts:
        text: str = part["text"]
        cut = partial(_clipped_to_part, offset=offset, length=len(text))
        part["text"] = _replaced_pieces(text, [cut(*span) for span in found if _touches(span, offset, len(text))])
        offset += len(text)


def _touches(span: tuple[int, int, str], offset: int, length: int) -> bool:
    return span[0] < offset + length and span[1] > offset


def _clipped_to_part(start: int, end: int, kind: str, *, offset: int, length: int) -> tuple[int, int, str]:
    mark = f"[REDACTED:{kind}]" if start >= offset else ""
    return max(start - offset, 0), min(end - offset, length), mark


def _replaced_pieces(text: str, pieces: Iterable[tuple[int, int, str]]) -> str:
    out: list[str] = []
    done = 0
    for start, end, mark in pieces:
        out += (text[done:start], mark)
        done = end
    return "".join([*out, text[done:]])


def _with_secret_replaced(message: Message, secret: str, kind: str) -> Message:
    mark = f"[REDACTED:{kind}]"
    parts = tuple(
        {**part, "text": part["text"].replace(secret, mark)} if isinstance(part.get("text"), str) else part
        for part in message.parts
    )
    return replace(message, content=message.content.replace(secret, mark), parts=parts)

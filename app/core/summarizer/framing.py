"""Writes messages and entries into a prompt as data: numbered elements that no text can break out of.

Whatever a message contains, parsing the prompt gives exactly as many messages with the same texts. Anchors are marked
in their places with ``<kept_verbatim id="P12-1">``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.core.anchors.prompt_ids import prompt_ids_of
from app.core.model.anchors import FoundAnchor
from app.core.model.conversation import Message
from app.core.model.doubt_marks import with_doubt_marks
from app.core.model.state import StateEntry
from app.core.text.elision import elide, size_limits
from app.core.text.escaping import clean, escape, place_in_escaped
from app.core.text.parts import TOOL_PART_TYPES, Part, as_short_text, own_content, own_parts
from app.core.text.pasted import pasted_and_own_text
from app.core.text.speakers import name_in
from app.core.text.token_counts import estimate_text

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
KEPT_PASSAGE_TAG: Final = "kept_verbatim"
MAX_NAMED_SOURCES: Final = 30
"""The most messages that an entry's element names: its first one, and the newest."""
_MAX_ADDRESS_LENGTH: Final = 300  # characters; a longer address contains the data itself


@dataclass(frozen=True, slots=True, kw_only=True)
class _Element:
    """A part of a message, before it is written as an element."""

    kind: str
    attributes: Mapping[str, str]
    text: str


def frame_messages(
    messages: Sequence[Message], *, max_tokens: int | None = None, anchors: Sequence[FoundAnchor] = ()
) -> str:
    """One element per message, with role, ``seq`` and time; calls, results and media as elements inside.

    The name in a message's ``metadata.name`` is put after the role.

    Args:
        messages: The messages in order.
        anchors: Passages of these messages (others are ignored) that are marked as kept verbatim.
        max_tokens: The most tokens of all texts together; the largest lose their middle for it. ``None``: no limit.
    """
    kept_passages: defaultdict[int, list[tuple[str, FoundAnchor]]] = defaultdict(list)
    for name, anchor in prompt_ids_of(anchors):
        kept_passages[anchor.seq].append((name, anchor))
    return "\n".join(
        _message_element(message, content, parts, kept_passages[message.seq])
        for message, (content, parts) in zip(messages, _bodies_within(messages, max_tokens), strict=True)
    )


def frame_briefly(messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
    """The messages in fewer tokens, without end tags: each begins with its tag and ends where the next one begins.

    The tag has number, role and time, and the day only if it differs from that of the message before.
    """
    lines: list[str] = []
    before: str | None = None
    for message, (content, parts) in zip(messages, _bodies_within(messages, max_tokens), strict=True):
        day, time = _day_and_time(message.created_at)
        when = time if day == before else f"{day} {time}"
        more = _attributes(_further_attributes(message, content))
        opening = " ".join(filter(None, [str(message.seq), message.role, when, more]))
        lines += [f"<message {opening}>", *filter(None, [escape(content), *map(_written_element, parts)])]
        before = day
    return "\n".join(lines)


def framed_texts(messages: Sequence[Message], *, max_tokens: int | None = None) -> list[tuple[str, ...]]:
    """The texts that a frame shows of each message: its content and the texts of its parts."""
    return [(content, *(part.text for part in parts)) for content, parts in _bodies_within(messages, max_tokens)]


def frame_entries(entries: Sequence[StateEntry]) -> str:
    """One element per entry of a state, with the id that a candidate may name. An entry in doubt is marked so."""
    return "\n".join(
        f'<entry id="{entry.id}" field="{entry.field}" from="{" ".join(map(str, _named_sources(entry)))}">'
        f"{escape(text)}</entry>"
        for entry, text in zip(entries, with_doubt_marks(entries), strict=True)
    )


def _named_sources(entry: StateEntry) -> Sequence[int]:
    # An entry that every fold tells anew comes from thousands of messages after some years.
    seqs = entry.from_seqs
    return seqs if len(seqs) <= MAX_NAMED_SOURCES else (seqs[0], *seqs[1 - MAX_NAMED_SOURCES :])


def fenced_text(tag: str, text: str) -> str:
    """A single text as an element of data; ``tag`` must be one of ``escaping.TAGS``."""
    return f"<{tag}>\n{escape(text)}\n</{tag}>"


def kept_passage_element(name: str, text: str) -> str:
    """The element for a passage that is kept verbatim, of a message that is not shown."""
    return f'<{KEPT_PASSAGE_TAG} id="{name}">\n{escape(text)}\n</{KEPT_PASSAGE_TAG}>'


def _message_element(
    message: Message, content: str, parts: Sequence[_Element], kept_passages: Sequence[tuple[str, FoundAnchor]]
) -> str:
    attributes = {"seq": str(message.seq), "role": message.role, "at": _time_with_weekday(message.created_at)}
    attributes |= _further_attributes(message, content)
    lines = [_with_kept_marked(content, kept_passages), *map(_written_element, parts)]
    return f"<message {_attributes(attributes)}>\n" + "\n".join(lines) + "\n</message>"


def _further_attributes(message: Message, content: str) -> dict[str, str]:
    """The attributes for a message's name, kind, status and pasted text, as far as it has them."""
    attributes: dict[str, str] = {}
    if name := name_in(message.metadata):
        attributes["name"] = name
    if message.event_type != "casual":
        attributes["kind"] = message.event_type
    if message.status != "complete":
        attributes["status"] = message.status
    if message.role == "user" and pasted_and_own_text(content)[0]:
        attributes["holds"] = "pasted document"
    return attributes


def speaker_and_media_texts(message: Message) -> Iterator[str]:
    """What a prompt has of a message besides its text: its speaker, and parts that are neither text nor of tools.

    Such parts are the names of pictures and documents.
    """
    yield name_in(message.metadata)
    for part in message.parts:
        if part.get("type") not in TOOL_PART_TYPES and not isinstance(part.get("text"), str):
            yield _element_of_part(part).text


def _written_element(part: _Element) -> str:
    return f"<{_inside_of_opening_tag(part)}>{escape(part.text)}</{part.kind}>"


def _with_kept_marked(content: str, kept_passages: Sequence[tuple[str, FoundAnchor]]) -> str:
    # The content is escaped as a whole. Spans that touch are joined, so that no mark reaches into another.
    escaped = escape(content)
    spans = _joined_spans((*span, name) for name, anchor in kept_passages if (span := _anchor_span(content, anchor)))
    positions = place_in_escaped(escaped, [position for start, end, _ in spans for position in (start, end)])
    for end, start, (_, _, names) in zip(positions[::-2], positions[-2::-2], reversed(spans), strict=True):
        inside = f'<{KEPT_PASSAGE_TAG} id="{names}">{escaped[start:end]}</{KEPT_PASSAGE_TAG}>'
        escaped = f"{escaped[:start]}{inside}{escaped[end:]}"
    return escaped


def _anchor_span(content: str, anchor: FoundAnchor) -> tuple[int, int] | None:
    # If a message is shown redacted or in part, the anchor has another offset.
    here = content.startswith(anchor.content, anchor.offset)
    start = anchor.offset if here else content.find(anchor.content)
    return (start, start + len(anchor.content)) if start >= 0 and anchor.content else None


def _joined_spans(spans: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    joined: list[tuple[int, int, str]] = []
    for start, end, name in sorted(spans):
        if joined and start <= joined[-1][1]:
            first, last, names = joined[-1]
            joined[-1] = (first, max(end, last), f"{names} {name}")
        else:
            joined.append((start, end, name))
    return joined


def _inside_of_opening_tag(part: _Element) -> str:
    return f"{part.kind} {_attributes(part.attributes)}" if part.attributes else part.kind


def _attributes(values: Mapping[str, str]) -> str:
    return " ".join(f'{name}="{_attribute_value(value)}"' for name, value in values.items())


def _attribute_value(value: str) -> str:
    plain = " ".join(clean(value).split())[:100]
    return plain.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")


def _time_with_weekday(moment: datetime) -> str:
    # The weekday is needed to understand words such as "next Friday".
    time = moment.isoformat(timespec="minutes").replace("+00:00", "Z")
    return f"{time} {_DAYS[moment.weekday()]}"


def _day_and_time(moment: datetime) -> tuple[str, str]:
    return f"{_DAYS[moment.weekday()]} {moment:%Y-%m-%d}", f"{moment:%H:%M}"


def _bodies_within(messages: Sequence[Message], max_tokens: int | None) -> list[tuple[str, list[_Element]]]:
    bodies = [_content_and_elements(message) for message in messages]
    if max_tokens is None:
        return bodies
    sizes = [estimate_text(content) + sum(estimate_text(part.text) for part in parts) for content, parts in bodies]
    return [_elided_body(*body, share) for body, share in zip(bodies, size_limits(sizes, max_tokens), strict=True)]


def _content_and_elements(message: Message) -> tuple[str, list[_Element]]:
    content = own_content(message.role, message.content, message.parts)
    return content, [_element_of_part(part) for part in own_parts(content, message.parts)]


def _element_of_part(part: Part) -> _Element:
    kind, name = part.get("type"), str(part.get("name") or "")
    if kind == "tool_call":
        return _Element(
            kind="tool_call", attributes=_name_attribute(name), text=as_short_text(part.get("arguments", {}))
        )
    if kind == "tool_result":
        return _Element(
            kind="tool_result", attributes=_name_attribute(name), text=as_short_text(part.get("content", ""))
        )
    if kind == "media":
        media_type = str(part.get("media_type") or "unknown")
        return _Element(kind="media_part", attributes={"type": media_type}, text=_media_name_or_address(part))
    return _Element(kind="text_part", attributes={}, text=as_short_text(part.get("text", part)))


def _name_attribute(name: str) -> dict[str, str]:
    return {"name": name} if name else {}


def _media_name_or_address(part: Part) -> str:
    known = (part.get(key) for key in ("name", "filename", "title", "alt", "url"))
    texts = (value for value in known if isinstance(value, str) and value and not value.startswith("data:"))
    return next((value for value in texts if len(value) <= _MAX_ADDRESS_LENGTH), "not shown")


def _elided_body(content: str, parts: Sequence[_Element], max_tokens: int) -> tuple[str, list[_Element]]:
    texts = [content, *(part.text for part in parts)]
    token_shares = size_limits([estimate_text(text) for text in texts], max_tokens)
    first, *rest = (elide(text, share) for text, share in zip(texts, token_shares, strict=True))
    return first, [
        _Element(kind=part.kind, attributes=part.attributes, text=text) for part, text in zip(parts, rest, strict=True)
    ]

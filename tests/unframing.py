"""Reads messages back from the prompt into which they were framed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.core.summarizer.framing import KEPT_PASSAGE_TAG
from app.core.text.elements import Element, elements_in, outside
from app.core.text.escaping import unescape
from app.core.text.patterns import compiled

_PARTS: Final = ("text_part", "tool_call", "tool_result", "media_part")
_KEPT: Final = compiled(f'<{KEPT_PASSAGE_TAG}(?: id="[A-Z0-9 -]*+")?>')
_MESSAGE: Final = compiled(r'<message seq="(?P<seq>\d+)" role="(?P<role>[a-z]+)" at="(?P<at>[^"<>]*+)"[^<>]*+>\n')
_FIRST_PART: Final = compiled(rf"\n<(?:{'|'.join(_PARTS)})[ >]")
_PART: Final = compiled(rf"<(?P<kind>{'|'.join(_PARTS)})[^<>]*+>")


@dataclass(frozen=True, slots=True, kw_only=True)
class FramedMessage:
    """A message as it stands in a prompt; ``parts`` are (element, text)."""

    seq: int
    role: str
    at: str
    content: str
    parts: tuple[tuple[str, str], ...] = ()
    kept: tuple[str, ...] = ()
    """The passages of ``content`` that are marked as kept verbatim."""


def unframe(text: str) -> list[FramedMessage]:
    """The inverse of ``frame_messages``: every message in a text, with its content as it was."""
    return [_parsed(found) for found in elements_in(text, _MESSAGE, lambda _: "\n</message>")]


def _parsed(found: Element) -> FramedMessage:
    body, opening = found.inside, found.opening
    first = _FIRST_PART.search(body)
    content, rest = (body, "") if first is None else (body[: first.start()], body[first.start() + 1 :])
    kept = list(elements_in(content, _KEPT, lambda _: f"</{KEPT_PASSAGE_TAG}>"))
    return FramedMessage(
        seq=int(opening["seq"]),
        role=opening["role"],
        at=opening["at"],
        content=unescape(outside(content, kept, lambda one: one.inside)),
        kept=tuple(unescape(one.inside) for one in kept),
        parts=tuple(
            (part.opening["kind"], unescape(part.inside))
            for part in elements_in(rest, _PART, lambda one: f"</{one['kind']}>")
        ),
    )

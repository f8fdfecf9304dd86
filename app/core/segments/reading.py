"""The messages of one stretch as sentences, each with who said it, however few there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from app.core.model.conversation import Message
from app.core.reading.passages import Passage, passages_of
from app.core.segments.hashing import content_hash
from app.core.text.language import detect
from app.core.text.patterns import compiled

_LABEL: Final = compiled(r"\s{0,8}([^\W\d_][\w.'’-]{0,23}(?: [^\W\d_][\w.'’-]{0,23})?): (?=\S)")
_FEWEST: Final = 2  # messages, before a name at their beginning is the speaker's
_SAMPLE: Final = 4_000  # characters by which the language is told
_EACH: Final = 500  # of one message
_REMEMBERED: Final = 64  # stretches: a chunk is described whole before any of it is told


@dataclass(frozen=True, slots=True)
class _Span:
    """Messages that can be remembered: the same when they read the same."""

    key: str
    messages: Sequence[Message] = field(compare=False)


def read(messages: Sequence[Message], language: str) -> tuple[Passage, ...]:
    """All sentences in order; where every message begins with its speaker's name, that is who said it."""
    flags = "".join(f"{message.is_command:d}{message.is_protected:d}" for message in messages)
    return _read(_Span(content_hash(messages, "L3", flags, ""), messages), language)


@lru_cache(maxsize=_REMEMBERED)
def _read(span: _Span, language: str) -> tuple[Passage, ...]:
    found = passages_of(span.messages, language)
    names = _names(span.messages)
    if not names or any(one.is_named for one in found):
        return tuple(found)
    return tuple(_said_by(one, names.get(one.role)) for one in found)


def language_of(messages: Sequence[Message], locale: str = "en") -> str:
    """The language that is spoken (ISO 639-1); the locale's where that cannot be told."""
    spoken = (message.content[:_EACH] for message in messages if message.role in {"user", "assistant"})
    told = detect("\n".join(spoken)[:_SAMPLE])
    return told or locale.replace("_", "-").partition("-")[0].lower() or "en"


def _names(messages: Sequence[Message]) -> Mapping[str, str]:
    """Role to name; only where it is so in every single message, and the roles have different names."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    spoken = [message for message in messages if message.role in {"user", "assistant"} and message.content.strip()]
    for message in spoken:
        label = _LABEL.match(message.content)
        names[message.role].add(label.group(1) if label else "")
    found = {role: next(iter(given)) for role, given in names.items() if len(given) == 1}
    all_named = len(found) == len(names) == len(set(found.values()) - {""})
    return found if all_named and len(spoken) >= _FEWEST else {}


def _said_by(passage: Passage, name: str | None) -> Passage:
    if name is None:
        return passage
    label = f"{name}: "
    text, core = passage.text.removeprefix(label), passage.core.removeprefix(label)
    return replace(passage, speaker=name, text=text, core=core or text, is_named=True)

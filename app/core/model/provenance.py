"""Finds where a text in a state came from: a person, a tool's result, or a document that a user pasted.

The provenance of a fact from a tool or a document thus says that it was read, not stated by a person.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from app.core.model.conversation import Message
from app.core.model.state import Origin
from app.core.text.language import detect, language_of_locale
from app.core.text.pasted import pasted_and_own_text
from app.core.text.words import stems

_ENOUGH_WORDS: Final = 0.5  # the least share of a text's content words that must be found in a region


def origin_of(message: Message, text: str) -> Origin:
    """Who or what said ``text``, which was drawn from ``message``.

    ``tool`` for the results of tools; ``document`` where the text is found in what a user pasted (fenced code, quoted
    mail, log output, a long block) rather than in the user's own words; else the role of the message.
    """
    if message.role == "tool" or _is_mostly_in(text, "\n".join(_result_texts(message)), message.content):
        return "tool"
    if message.role != "user":
        return message.role
    pasted, own = pasted_and_own_text(message.content)
    return "document" if _is_mostly_in(text, pasted, own) else "user"


def own_words(messages: Sequence[Message]) -> str:
    """What users and assistants said themselves, without what was pasted.

    If they only pasted, it is everything.
    """
    spoken = [message for message in messages if message.role in {"user", "assistant"}]
    own = (pasted_and_own_text(message.content)[1] if message.role == "user" else message.content for message in spoken)
    words = "\n".join(own)
    return words if words.strip() else "\n".join(message.content for message in spoken)


_SAMPLE: Final = 4_000  # characters from each end are plenty to know the language by


def language_of(messages: Sequence[Message]) -> str | None:
    """The language that is spoken in these messages (ISO 639-1); ``None`` if it is not known."""
    return detect(sample_of(messages))


def language_or_locale(messages: Sequence[Message], locale: str = "en") -> str:
    """The language that is spoken in these messages; the locale's language if that is not known."""
    return language_of(messages) or language_of_locale(locale)


def sample_of(messages: Sequence[Message]) -> str:
    """The beginning and the end of what was said, by which the language is detected."""
    spoken = own_words(messages)
    return spoken if len(spoken) <= 2 * _SAMPLE else f"{spoken[:_SAMPLE]}\n{spoken[-_SAMPLE:]}"


def _result_texts(message: Message) -> Iterator[str]:
    for part in message.parts:
        if part.get("type") == "tool_result":
            yield str(part.get("content"))


def _is_mostly_in(text: str, region: str, rest: str) -> bool:
    if not region.strip():
        return False
    wanted = set(stems(text))
    if not wanted or not rest.strip():
        return True
    inside, outside = wanted & set(stems(region)), wanted & set(stems(rest))
    return len(inside) > len(outside) and len(inside) >= _ENOUGH_WORDS * len(wanted)

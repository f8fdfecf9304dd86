"""Turns a context into entries that alternate between two sides, as every provider demands.

A call is directly followed by its result, wherever the result was appended, or by a stub. A result whose call is not in
the context becomes text. Nothing is blank. Neighbours of one side become one entry, so that the sides alternate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from app.core.context.formats.calls import pair_up
from app.core.context.formats.values import Asked, Call, Entry, Piece, Result, Said, Text, Told
from app.core.context.formats.words import in_words, piece_of, with_names
from app.core.model.model_io import ContextMessage
from app.core.retrieval.serving import split_off
from app.core.text.localization.catalogue import Catalogue
from app.core.text.parts import Part, own_content, own_parts


def thread_of(messages: Sequence[ContextMessage], say: Catalogue) -> list[Entry]:
    """The entries in order, with system messages in their place."""
    return joined(_entries(messages, say))


def two_sided(messages: Sequence[ContextMessage], say: Catalogue) -> tuple[str | None, list[Asked | Said]]:
    """The system text, and the entries without it, for providers that separate the two.

    The user's side comes first, as providers require: if the model's would, a text of ours is put before it.

    All system messages are joined in the system text, in their order: anywhere else they would be a user's words.
    """
    entries = list(_entries(with_names(messages), say))
    system = "\n\n".join(entry.text for entry in entries if isinstance(entry, Told))
    sides = joined(entry for entry in entries if not isinstance(entry, Told))
    thread = [entry for entry in sides if not isinstance(entry, Told)]
    if thread and isinstance(thread[0], Said):
        thread.insert(0, Asked(pieces=(Text(say.text("context.beginning")),)))
    return system or None, thread


def joined(entries: Iterable[Entry]) -> list[Entry]:
    """The entries with neighbours of the same side and name joined. Results always follow calls, so none is moved."""
    thread: list[Entry] = []
    for (_, name), group in groupby(entries, key=lambda entry: (type(entry), entry.name)):
        match list(group):
            case [Asked(results=results), *_] as asked:
                pieces = tuple(piece for one in asked if isinstance(one, Asked) for piece in one.pieces)
                thread.append(Asked(results=results, pieces=pieces, name=name))
            case [Said(), *_] as said:
                texts = tuple(text for one in said if isinstance(one, Said) for text in one.texts)
                calls = said[-1].calls if isinstance(said[-1], Said) else ()
                thread.append(Said(texts=texts, calls=calls, name=name))
            case told:
                thread.extend(told)
    return thread


def _entries(messages: Sequence[ContextMessage], say: Catalogue) -> Iterator[Entry]:
    pairs = pair_up(messages, empty=say.text("context.empty_result"))
    for index, message in enumerate(messages):
        parts = pairs.unanswering(index, message)
        match message.role:
            case "system":
                if text := "\n\n".join(_texts(message.content, parts, say)):
                    yield Told(text=text, name=message.name)
            case "assistant":
                yield from _assistant_entries(message, parts, pairs.calls.get(index, ()), say)
            case _:
                is_with_its_call = message.role == "tool" and len(parts) < len(message.parts)
                content = "" if is_with_its_call else own_content(message.role, message.content, message.parts)
                if pieces := tuple(_pieces(content, parts, say)):
                    yield Asked(pieces=pieces, name=message.name if message.role == "user" else "")


def _assistant_entries(
    message: ContextMessage, parts: Sequence[Part], made: Sequence[tuple[Call, Result]], say: Catalogue
) -> Iterator[Entry]:
    texts = tuple(_texts(message.content, [part for part in parts if part.get("type") != "tool_call"], say))
    if texts or made:
        yield Said(texts=texts, calls=tuple(call for call, _ in made), name=message.name)
    if made:
        yield Asked(results=tuple(result for _, result in made))


def _pieces(content: str, parts: Sequence[Part], say: Catalogue) -> Iterator[Piece]:
    if content.strip():
        yield Text(content)
    said = split_off(content)[1]  # recalled messages in the content are not the speaker's own words
    pieces = (piece_of(part, say) for part in own_parts(said, parts))
    yield from (piece for piece in pieces if piece is not None)


def _texts(content: str, parts: Sequence[Part], say: Catalogue) -> Iterator[str]:
    if content.strip():
        yield content
    told = (in_words(part, say) for part in own_parts(content, parts))
    yield from (words for words in told if words.strip())

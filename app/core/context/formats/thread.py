"""Turns a context into entries that alternate between two sides, as every provider demands.

A call is directly followed by its result, wherever the result was appended, or by a stub. A result whose call is not in
the context becomes text. Nothing is blank. Neighbours of one side become one entry, so that the sides alternate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from app.core.context.formats.calls import pair_up
from app.core.context.formats.values import AssistantEntry, Call, Entry, Piece, Result, SystemEntry, Text, UserEntry
from app.core.context.formats.words import part_as_text, piece_of, with_names_in_text
from app.core.model.model_io import ContextMessage
from app.core.retrieval.rendering import split_elements
from app.core.text.localization.catalogue import Catalogue
from app.core.text.parts import Part, in_order, own_content, own_parts


def thread_entries(messages: Sequence[ContextMessage], catalogue: Catalogue) -> list[Entry]:
    """The entries in order, with system messages in their place."""
    return joined_neighbours(_entries(messages, catalogue))


def system_and_thread(
    messages: Sequence[ContextMessage], catalogue: Catalogue
) -> tuple[str | None, list[UserEntry | AssistantEntry]]:
    """The system text, and the entries without it, for providers that separate the two.

    The user's side comes first, as providers require: if the model's would, a text of ours is put before it.

    All system messages are joined in the system text, in their order: anywhere else they would be a user's words.
    """
    entries = list(_entries(with_names_in_text(messages), catalogue))
    system = "\n\n".join(entry.text for entry in entries if isinstance(entry, SystemEntry))
    sides = joined_neighbours(entry for entry in entries if not isinstance(entry, SystemEntry))
    thread = [entry for entry in sides if not isinstance(entry, SystemEntry)]
    if thread and isinstance(thread[0], AssistantEntry):
        thread.insert(0, UserEntry(pieces=(Text(catalogue.text("context.beginning")),)))
    return system or None, thread


def joined_neighbours(entries: Iterable[Entry]) -> list[Entry]:
    """The entries with neighbours of the same side and name joined. Results always follow calls, so none is moved."""
    thread: list[Entry] = []
    for (_, name), group in groupby(entries, key=lambda entry: (type(entry), entry.name)):
        match list(group):
            case [UserEntry(results=results), *_] as users:
                pieces = tuple(piece for one in users if isinstance(one, UserEntry) for piece in one.pieces)
                thread.append(UserEntry(results=results, pieces=pieces, name=name))
            case [AssistantEntry(), *_] as assistants:
                texts = tuple(text for one in assistants if isinstance(one, AssistantEntry) for text in one.texts)
                calls = assistants[-1].calls if isinstance(assistants[-1], AssistantEntry) else ()
                thread.append(AssistantEntry(texts=texts, calls=calls, name=name))
            case systems:
                thread.extend(systems)
    return thread


def _entries(messages: Sequence[ContextMessage], catalogue: Catalogue) -> Iterator[Entry]:
    pairs = pair_up(messages, empty=catalogue.text("context.empty_result"))
    for index, message in enumerate(messages):
        parts = pairs.parts_without_paired_results(index, message)
        match message.role:
            case "system":
                if text := "\n\n".join(_texts(message.content, parts, catalogue)):
                    yield SystemEntry(text=text, name=message.name)
            case "assistant":
                yield from _assistant_entries(message, parts, pairs.calls.get(index, ()), catalogue)
            case _:
                is_with_its_call = message.role == "tool" and len(parts) < len(message.parts)
                content = "" if is_with_its_call else own_content(message.role, message.content, message.parts)
                if pieces := tuple(_pieces(content, parts, catalogue)):
                    yield UserEntry(pieces=pieces, name=message.name if message.role == "user" else "")


def _assistant_entries(
    message: ContextMessage, parts: Sequence[Part], pairs: Sequence[tuple[Call, Result]], catalogue: Catalogue
) -> Iterator[Entry]:
    texts = tuple(_texts(message.content, [part for part in parts if part.get("type") != "tool_call"], catalogue))
    if texts or pairs:
        yield AssistantEntry(texts=texts, calls=tuple(call for call, _ in pairs), name=message.name)
    if pairs:
        yield UserEntry(results=tuple(result for _, result in pairs))


def _pieces(content: str, parts: Sequence[Part], catalogue: Catalogue) -> Iterator[Piece]:
    own_text = split_elements(content)[1]  # recalled messages in the content are not the speaker's own words
    pieces = (piece_of(part, catalogue) for part in in_order(content, own_text, parts))
    yield from (piece for piece in pieces if piece is not None)


def _texts(content: str, parts: Sequence[Part], catalogue: Catalogue) -> Iterator[str]:
    if content.strip():
        yield content
    descriptions = (part_as_text(part, catalogue) for part in own_parts(content, parts))
    yield from (words for words in descriptions if words.strip())

"""Erases a message and everything made from it: what is left is a tombstone, and state versions without its words.

Rules: a tombstone keeps place, role and the ids of tool calls, and no text. An entry is removed if one of its sources
was erased, or if it has something that only the erased text said, whatever its provenance claims. In doubt an entry is
lost, but never a secret kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

from app.core.model.conversation import Message
from app.core.model.policies.protection import BY_EVENT_TYPE
from app.core.model.state import StateEntry
from app.core.text.identifiers import NAME_KINDS, Kind, find_identifiers
from app.core.text.parts import Part
from app.core.text.patterns import compiled
from app.core.text.speakers import name_in
from app.core.text.token_counts import weigh
from app.core.text.words import GENERIC_STEMS, stem, stems, words

ERASED_RESULT: Final = "erased"
"""The content of a tool's result whose call was erased: providers refuse an empty one."""
ERASED_TOOL_NAME: Final = "tool"
"""The name of an erased call. The real name is a client's own word and is erased like everything else in the call."""

_KNOWN_TYPES: Final = frozenset({*BY_EVENT_TYPE, "casual", "command"})  # any other type is a client's own word
_RUN: Final = 3  # content words in the same order; more than a phrase of the language are seldom the same by chance
_MIN_WORD_LENGTH: Final = 4  # letters; shorter words in alphabets are everywhere
_MIN_NUMBER_DIGITS: Final = 3  # digits; smaller bare numbers are everywhere


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPieces:
    """The pieces of an erased text that another text has; case is ignored."""

    values: frozenset[str] = frozenset()
    """Exact values that two texts hardly share by chance: amounts, dates, addresses, codes."""
    words: frozenset[str] = frozenset()
    """Stems of content words, and names."""
    runs: frozenset[tuple[str, ...]] = frozenset()
    """Runs of content words in the same order."""

    def __bool__(self) -> bool:
        """Whether anything was found."""
        return bool(self.values or self.words or self.runs)


def tombstone(message: Message) -> Message:
    """What is left of an erased message: place, role, and the ids that keep tool pairs legal."""
    return _with_new_weight(
        replace(
            message,
            content="",
            parts=stubs(message.parts),
            status="erased",
            event_type=message.event_type if message.event_type in _KNOWN_TYPES else "casual",
            protected_reason="compressible",
            is_pinned=False,
            model=None,
            usage=None,
            reasoning="",
            metadata={},
        )
    )


def stubs(parts: Iterable[Part]) -> tuple[Part, ...]:
    """What is left of erased parts: the ids of tool calls and of their results."""
    return tuple(_stub(part) for part in parts if part.get("type") in {"tool_call", "tool_result"})


def with_erased_calls(message: Message, calls: Collection[str]) -> Message:
    """A message with stubs in place of the tool calls or results that belong to erased ones.

    A tool's message says nothing but its results, so its content is erased with them. A message of which nothing else
    is left becomes a tombstone itself.
    """
    content = "" if message.role == "tool" else message.content
    if not content and all(call_id_of(part) in calls for part in message.parts):
        return tombstone(message)
    parts = tuple(_stub(part) if call_id_of(part) in calls else part for part in message.parts)
    return _with_new_weight(replace(message, parts=parts, content=content, reasoning=""))


def call_id_of(part: Part) -> str | None:
    """The tool call that a part makes or answers."""
    key = {"tool_call": "id", "tool_result": "tool_call_id"}.get(str(part.get("type")))
    return None if key is None or part.get(key) is None else str(part[key])


def full_text(message: Message) -> str:
    """Every text in a message that a model may be shown: also its speaker's name, and what is in its parts."""
    kind = "" if message.event_type in _KNOWN_TYPES else message.event_type
    beside = (text for text in (name_in(message.metadata), kind) if text)
    return "\n".join([message.content, *beside, *(text for part in message.parts for text in _part_texts(part))])


def _stub(part: Part) -> Part:
    if part.get("type") == "tool_call":
        return {"type": "tool_call", "id": part["id"], "name": ERASED_TOOL_NAME, "arguments": {}}
    return {"type": "tool_result", "tool_call_id": part["tool_call_id"], "content": ERASED_RESULT}


def _with_new_weight(message: Message) -> Message:
    if not message.content and not message.parts:
        return replace(message, token_count=0, byte_length=0)
    weight = weigh(message.role, message.content, message.parts)
    return replace(message, token_count=weight.tokens, byte_length=weight.bytes)


_ASCII_WORD: Final = compiled("[0-9A-Za-z]++")
_KEYS_WITHOUT_TEXT: Final = frozenset({"type", "id", "tool_call_id", "media_type", "data"})
"""Keys of a part whose values are not texts."""


def _part_texts(part: Part) -> Iterator[str]:
    # Every call of a tool has the tool's name, so the name tells nothing about one of them. A file's name does.
    without_text = {*_KEYS_WITHOUT_TEXT, "name"} if call_id_of(part) else _KEYS_WITHOUT_TEXT
    for key, value in part.items():
        if key not in without_text:
            yield from _strings(value, 1)


def _strings(value: Any, depth: int) -> Iterator[str]:
    """The texts in a value, with the keys of its objects: a tool may list persons by their names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, Mapping) and depth < _DEEPEST:
        for key, item in value.items():
            yield str(key)
            yield from _strings(item, depth + 1)
    elif isinstance(value, Sequence) and depth < _DEEPEST:
        for item in value:
            yield from _strings(item, depth + 1)


_DEEPEST: Final = 64


class _Values:
    """Exact values, looked up by their first ASCII letters and digits, since a message may have a hundred thousand."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = frozenset(values)
        self._spans: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
        for value in self._values:
            word = _ASCII_WORD.search(value)
            self._spans[word[0] if word else ""].add((word.start() if word else 0, len(value)))

    def found_in(self, text: str) -> frozenset[str]:
        """The values that a text has as whole words."""
        words = ((word.start(), word[0]) for word in _ASCII_WORD.finditer(text))
        others = ((place, "") for place in range(len(text) if "" in self._spans else 0))
        return frozenset(
            value
            for place, word in chain(words, others)
            for before, length in self._spans.get(word, ())
            if (start := place - before) >= 0
            and (value := text[start : start + length]) in self._values
            and _is_whole_word(text, start, start + len(value))
        )


class ErasedTexts:
    """The erased texts, for finding them in other texts."""

    def __init__(self, texts: Iterable[str], seqs: Collection[int]) -> None:
        self.seqs = frozenset(seqs)
        """The messages of which nothing is left."""
        text = "\n".join(texts)
        found = [(item.kind, item.text.casefold()) for item in find_identifiers(text)]
        self._values = _Values(
            value for kind, value in found if kind not in NAME_KINDS and _is_distinctive_value(kind, value)
        )
        text_stems = stems(text)
        self._stems = frozenset(text_stems)
        self._words = {word for word in text_stems if _is_distinctive_stem(word)}
        self._runs = frozenset(_stem_runs(text_stems))

    def pieces_in(self, text: str) -> SharedPieces:
        """The pieces of the erased texts that this text has."""
        folded = text.casefold()
        text_stems = stems(text)
        return SharedPieces(
            values=self._values.found_in(folded),
            words=frozenset(text_stems) & self._words,
            runs=self._runs.intersection(_stem_runs(text_stems)),
        )

    def runs_in(self, text: str) -> frozenset[tuple[str, ...]]:
        """The runs of the erased texts that this text has."""
        return self._runs.intersection(_stem_runs(stems(text)))

    def erased_words(self, name: str, remaining_text: str) -> frozenset[str]:
        """The words of a name, short and common ones too, that were erased and that ``remaining_text`` lacks."""
        return frozenset(stems(name)) & self._stems - frozenset(stems(remaining_text))


class RemainingMessages:
    """The remaining messages, as far as they were read. What they say need not be erased elsewhere."""

    def __init__(self, messages: Mapping[int, str], erased: ErasedTexts) -> None:
        """``erased`` are the texts whose pieces are looked for."""
        self._erased = erased
        self._messages = {seq: text.casefold() for seq, text in messages.items()}
        tokens = {token for text in self._messages.values() for token in words(text)}
        self._words = {stem(token) for token in tokens}
        self._known: dict[tuple[str, ...], bool] = {}
        self._runs: dict[int, frozenset[tuple[str, ...]]] = {}
        """The runs of the erased texts in each message that was read for runs: none is read twice."""

    def holds(self, pieces: SharedPieces, sources: Collection[int]) -> bool:
        """Whether everything found may be from other messages; exact values only from the text's own other sources."""
        source_texts = [self._messages.get(seq, "") for seq in sources]
        return (
            all(any(_holds_whole(text, value) for text in source_texts) for value in pieces.values)
            and pieces.words <= self._words
            and all(self._has_run(run) for run in pieces.runs)
        )

    def _has_run(self, run: tuple[str, ...]) -> bool:
        if run not in self._known:
            self._known[run] = self._is_run_in_messages(run)
        return self._known[run]

    def _is_run_in_messages(self, run: tuple[str, ...]) -> bool:
        beginnings = [word[: max(_MIN_WORD_LENGTH, len(word) - 2)] for word in run]  # a stem may end unlike its word
        for seq, text in self._messages.items():
            if seq not in self._runs and all(word in text for word in beginnings):
                self._runs[seq] = self._erased.runs_in(text)
            if run in self._runs.get(seq, ()):
                return True
        return False


def entries_without_erased(
    entries: Sequence[StateEntry], erased: ErasedTexts, remaining: RemainingMessages
) -> tuple[StateEntry, ...]:
    """The entries that are not based on what was erased; narratives, which are based on everything, are left out."""
    kept = (
        entry for entry in entries if entry.role != "narrative" and not _is_based_on_erased(entry, erased, remaining)
    )
    return tuple(_without_erased_superseded(entry, erased, remaining) for entry in kept)


def suspicious_entries(entries: Sequence[StateEntry], erased: ErasedTexts) -> list[StateEntry]:
    """The entries that have other sources, but whose present or replaced texts have something of what was erased."""
    texts = ((entry, text) for entry in entries for text in (entry.text, *entry.superseded))
    found = {entry.id: entry for entry, text in texts if entry.role != "narrative" and erased.pieces_in(text)}
    return list(found.values())


def summary_without_erased(text: str, erased: ErasedTexts, remaining: RemainingMessages) -> str:
    """A summary rendered into an answer, without items based on what was erased, and without its narrative.

    An answer that has neither items nor anything of what was erased stays as it is.
    """
    lines = text.splitlines()
    if not any(line.startswith("- ") for line in lines):
        return text if remaining.holds(erased.pieces_in(text), ()) else ""
    first = next(index for index, line in enumerate(lines) if line.startswith("- ")) - 1
    return "\n".join(line for line in lines[max(first, 0) :] if remaining.holds(erased.pieces_in(line), ()))


def quotes_erased(text: str, erased: ErasedTexts, remaining: RemainingMessages) -> bool:
    """Whether a text without sources, such as a focus, has something that only the erased texts said."""
    return not remaining.holds(erased.pieces_in(text), ())


def _is_based_on_erased(entry: StateEntry, erased: ErasedTexts, remaining: RemainingMessages) -> bool:
    if erased.seqs.intersection(entry.from_seqs):
        return True
    return not remaining.holds(erased.pieces_in(entry.text), entry.from_seqs)


def _without_erased_superseded(entry: StateEntry, erased: ErasedTexts, remaining: RemainingMessages) -> StateEntry:
    older = tuple(text for text in entry.superseded if remaining.holds(erased.pieces_in(text), entry.from_seqs))
    return entry if older == entry.superseded else replace(entry, superseded=older)


def _is_distinctive_value(kind: Kind, value: str) -> bool:
    return kind != "number" or len(value) >= _MIN_NUMBER_DIGITS


def _is_distinctive_stem(word: str) -> bool:
    if word in GENERIC_STEMS:
        return False
    if word[0].isdigit():
        return len(word) >= _MIN_NUMBER_DIGITS
    return len(word) >= _MIN_WORD_LENGTH or not word.isascii()


def _stem_runs(text_stems: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(text_stems[start:] for start in range(_RUN)), strict=False)


def _holds_whole(text: str, value: str) -> bool:
    start = text.find(value)
    while start >= 0:
        if _is_whole_word(text, start, start + len(value)):
            return True
        start = text.find(value, start + 1)
    return False


def _is_whole_word(text: str, start: int, end: int) -> bool:
    return not (
        _are_of_one_word(text[start - 1 : start], text[start]) or _are_of_one_word(text[end : end + 1], text[end - 1])
    )


def _are_of_one_word(neighbour: str, edge: str) -> bool:
    return bool(neighbour) and neighbour.isalnum() and neighbour.isascii() and edge.isalnum()

"""The scripted Gemini server's answers when nothing else is scripted: it reads the prompt and writes honestly.

The summarizer reads the framed messages of the prompt and the response schema, picks the sentences that hold most,
and says them in other words: the speaker in the third person, openings and filler gone. It never adds a number, a
name or a claim, and it names the entry that a correction replaces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.core.text.language import detect
from app.core.text.token_counts import estimate_text
from tests.unframing import FramedMessage, unframe

_ENTRY = re.compile(r'<entry id="(?P<id>[A-Z]\d+)" field="(?P<field>\w+)"[^>]*>(?P<text>.*?)</entry>', re.DOTALL)
_SIZE = re.compile(r"at most about (?P<number>\d+) (?P<unit>words|characters)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_TELLING = re.compile(
    r"\d+|https?://\S+|`[^`]+`|(?<=\S\s)[A-ZА-ЯЁ]\w+|\b(?i:must|never|always|decided?|prefer|because)\b"
)
_CORRECTION = re.compile(r"\b(?i:actually|correction|instead|changed my mind|I was wrong|no longer)\b")
_CLAIM = re.compile(r'<claim n="(\d+)"')
_WORD = re.compile(r"\w{4,}")
_FILLER = re.compile(r"^(?i:well|ok|okay|so|please|by the way|also|sure|great|thanks)[,:]?\s+")
_THIRD_PERSON: Final = (
    (re.compile(r"\bI am\b|\bI'm\b"), "the {who} is"),
    (re.compile(r"\bI have\b|\bI've\b"), "the {who} has"),
    (re.compile(r"\bI will\b|\bI'll\b"), "the {who} will"),
    (re.compile(r"\bI (want|need|prefer|like|live|work|use|plan|think|own)\b"), r"the {who} \1s"),
    (re.compile(r"\bI\b"), "the {who}"),
    (re.compile(r"\b[Mm]y\b"), "the {who}'s"),
    (re.compile(r"\b[Mm]e\b"), "the {who}"),
    (re.compile(r"\b[Ww]e\b"), "they"),
    (re.compile(r"\b[Oo]ur\b"), "their"),
)

_MAX_SENTENCE_LENGTH: Final = 240
"""Characters; a longer sentence does not count as a fact but as a paste."""

_SHARE: Final = 0.5
"""The share of the read tokens, with brackets and keys: an honest summary is far shorter than its span."""

_STRETCH = re.compile(r"^(?P<number>\d+): messages (?P<first>\d+) to (?P<last>\d+)$", re.MULTILINE)
_TAG = re.compile(r"(?<![\w/.])(?:[A-ZА-ЯЁ][\w-]{3,}|/[\w/]{3,}|\d[\w.]*\d(?: \w{4,})?)")
_NOTE_TOKENS: Final = 50
_DETAIL_SHARE: Final = 0.3
"""The share of the tokens of a stretch that is retold."""

_MIN_MESSAGE_LENGTH: Final = 15
"""Characters; a shorter message counts as a greeting."""

_PER_TOKEN: Final = {"words": 0.75, "characters": 1.5}
_ITEM_TOKENS: Final = 12  # for brackets and keys around an item's text


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence of a message, and how much it holds."""

    seq: int
    role: str
    text: str
    worth: int


def verdicts(prompt: str) -> dict[str, Any]:
    """The answer of a verifier that believes the summarizer."""
    numbers = [int(number) for number in _CLAIM.findall(prompt)]
    return {"supported": numbers, "verdicts": []}


def candidate(prompt: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """An honest candidate of the shape for which the response schema asks."""
    if "verdicts" in schema.get("properties", {}):
        return verdicts(prompt)
    messages = unframe(prompt)
    items = [_item(sentence, _entries(prompt)) for sentence in _chosen(messages, _size(prompt))]
    filled: dict[str, Any] = {}
    for name, wanted in schema.get("properties", {}).items():
        if name in {"dropped", "anchors"}:
            filled[name] = []
        elif name == "segments":
            filled[name] = _notes(prompt, messages)
        elif wanted.get("type") == "array":
            filled[name], items = items, []
        else:
            filled[name] = _narrative(messages)
    return filled


def detail(prompt: str) -> str:
    """An honest narrative of the stretch that a prompt shows."""
    messages = unframe(prompt)
    room = _DETAIL_SHARE * sum(estimate_text(message.content) for message in messages)
    return _told(messages, room) or _reworded_head(messages)


def reply(prompt: str) -> str:
    """A deterministic answer that repeats what was read last."""
    shown = " ".join(prompt.split()[:40])
    return f"You said: {shown}" if shown else "You said nothing."


def _notes(prompt: str, messages: list[FramedMessage]) -> list[dict[str, Any]]:
    """A note about each stretch that the prompt lists."""
    notes = []
    for found in _STRETCH.finditer(prompt.rpartition("</messages>")[2]):
        first, last = int(found["first"]), int(found["last"])
        within = [message for message in messages if first <= message.seq <= last]
        tags = [tag.rstrip(".,;:!?") for message in within for tag in _TAG.findall(message.content)]
        notes.append(
            {
                "segment": int(found["number"]),
                "topic": " ".join(_reworded_head(within).split()[:5]),
                "brief": _told(within, _NOTE_TOKENS),
                "tags": list(dict.fromkeys(tags))[:8],
            }
        )
    return notes


def _told(messages: list[FramedMessage], room: float) -> str:
    """The most telling sentences within this many tokens, as one text in their order."""
    sentences = list(_sentences(messages))
    chosen = []
    for number in sorted(range(len(sentences)), key=lambda index: -sentences[index].worth):
        size = estimate_text(sentences[number].text) + 2
        if size <= room:
            room -= size
            chosen.append(number)
    return " ".join(_reworded(sentences[number]) for number in sorted(chosen))


def _reworded_head(messages: list[FramedMessage]) -> str:
    return next((_reworded(sentence) for sentence in _sentences(messages)), "")


def _size(prompt: str) -> float | None:
    """The tokens that the record may have, as the prompt says."""
    found = _SIZE.search(prompt)
    return int(found["number"]) / _PER_TOKEN[found["unit"]] if found else None


def _chosen(messages: list[FramedMessage], size: float | None) -> list[Sentence]:
    """The most telling sentences that fit, in their original order."""
    sentences = list(_sentences(messages))
    room = _SHARE * sum(estimate_text(message.content) for message in messages)
    room = room if size is None else min(room, size / 2)  # the earlier entries need room too
    chosen = []
    for number in sorted(range(len(sentences)), key=lambda index: -sentences[index].worth):
        size_of_item = estimate_text(sentences[number].text) + _ITEM_TOKENS
        if size_of_item <= room:
            room -= size_of_item
            chosen.append(number)
    return [sentences[number] for number in sorted(chosen)]


def _sentences(messages: list[FramedMessage]) -> Iterator[Sentence]:
    for message in messages:
        texts = [message.content, *(text for _, text in message.parts)]
        for text in (piece.strip() for whole in texts for piece in _SENTENCE.split(whole)):
            if text and len(text) <= _MAX_SENTENCE_LENGTH and not text.endswith(("?", "？")):
                worth = 2 * len(_TELLING.findall(text)) + (message.role == "user")
                yield Sentence(seq=message.seq, role=message.role, text=text, worth=worth)


def _item(sentence: Sentence, entries: Mapping[str, str]) -> dict[str, Any]:
    return {"text": _reworded(sentence), "from": [sentence.seq], "replaces": _replaced(sentence.text, entries)}


def _reworded(sentence: Sentence) -> str:
    said = _FILLER.sub("", sentence.text)
    for pattern, other in _THIRD_PERSON:
        said = pattern.sub(other.format(who="user" if sentence.role == "user" else "assistant"), said)
    return said[:1].upper() + said[1:]


def _entries(prompt: str) -> dict[str, str]:
    return {found["id"]: found["text"] for found in _ENTRY.finditer(prompt) if found["id"].startswith("F")}


def _replaced(text: str, entries: Mapping[str, str]) -> list[str]:
    """The earlier fact that a correction is about, which is the one that shares most of its words."""
    if not _CORRECTION.search(text):
        return []
    words = set(_WORD.findall(text.lower()))
    shared = {id_: len(words & set(_WORD.findall(entry.lower()))) for id_, entry in entries.items()}
    best = max(shared, key=lambda id_: shared[id_], default=None)
    return [best] if best is not None and shared[best] > 1 else []


def _narrative(messages: list[FramedMessage]) -> str:
    told = [
        _reworded(sentence).rstrip(".!。")
        for sentence in _sentences(messages)
        if len(sentence.text) >= _MIN_MESSAGE_LENGTH
    ]
    if not told:
        return " ".join(message.content for message in messages)[:_MAX_SENTENCE_LENGTH]
    if detect(" ".join(told)) != "en":
        return f"{told[0]}. {told[-1]}."
    return f"It began with: {told[0]}. It stands at: {told[-1]}."


def dumps(value: Mapping[str, Any]) -> str:
    """A candidate in the form that a model writes."""
    return json.dumps(value, ensure_ascii=False)

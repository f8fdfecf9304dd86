"""How the user talks, and where their mood is going: from plain cues, in a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from app.core.model.conversation import Message
from app.core.model.state import StateEntry
from app.core.reading.cues import (
    DELIGHT,
    DISTRESS,
    FRUSTRATION,
    INFORMAL,
    NEGATED,
    POLITE,
    RELIEF,
    STYLE_WISH,
)
from app.core.reading.labels import PHRASES, Phrases, phrases
from app.core.reading.passages import Passage, own_words
from app.core.summarizer.offline.items import Item
from app.core.summarizer.offline.topics import returning
from app.core.text.factors import Index

_BRIEF: Final = 8  # words of the median message
_LENGTHY: Final = 40
_OFTEN: Final = 0.12  # of the messages
_OFTEN_LOW: Final = 0.05  # of the messages in a low mood: fewer say little
_FEWEST: Final = 4  # messages in which a tone can be heard


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mood:
    """What one message sounds like: trouble below zero, delight above."""

    seq: int
    turn: int
    value: int
    is_distress: bool = False


def style_items(
    messages: Sequence[Message], passages: Sequence[Passage], previous: Sequence[StateEntry], language: str
) -> list[Item]:
    """The tone and its direction, then every wish about manner; empty in a language without a table."""
    words = phrases(language)
    spoken = [message for message in messages if message.role == "user" and message.content.strip()]
    if words is None or not spoken:
        return []
    labels = tuple(known.tone for known in PHRASES.values())
    old = [entry for entry in previous if entry.role == "style" and entry.text.startswith(labels)]
    items: list[Item] = []
    if len(spoken) >= _FEWEST and (told := _tone(messages, passages, old, words)):
        text, seqs = told
        items.append(Item(text=words.tone + text, seqs=seqs, replaces=tuple(entry.id for entry in old)))
    said = {entry.text for entry in previous}
    for passage in passages:
        if (
            passage.role == "user"
            and not (passage.is_named or passage.is_pasted or passage.is_question)
            and STYLE_WISH.fits(passage.text)
            and passage.spoken not in said
        ):
            said.add(passage.spoken)
            items.append(Item(text=passage.spoken, seqs=(passage.seq,), passages=(passage,)))
    return items


def _tone(
    messages: Sequence[Message], passages: Sequence[Passage], old: Sequence[StateEntry], words: Phrases
) -> tuple[str, tuple[int, ...]] | None:
    """What is worth telling of the tone: a mood that is low, or was; ``None`` where there is no such thing."""
    spoken = [(turn, message) for turn, message in enumerate(messages) if message.role == "user"]
    texts = [own_words(message.content) for _, message in spoken]
    moods = [_mood(message.seq, turn, text) for (turn, message), text in zip(spoken, texts, strict=True)]
    direction, seqs = _direction(moods, passages, old, words)
    if direction == words.steady or (
        not old and sum(mood.value < 0 for mood in moods) < max(1.0, _OFTEN_LOW * len(moods))
    ):
        return None
    length = median(len(text.split()) for text in texts)
    possible = [_INDEX.opened(text) for text in texts]
    traits = [words.brief if length < _BRIEF else (words.lengthy if length > _LENGTHY else words.middling)]
    traits += [
        word
        for word, pattern in ((words.informal, INFORMAL), (words.polite, POLITE), (words.friendly, DELIGHT))
        if sum(bool(_BITS[pattern] & bits and pattern.search(text)) for text, bits in zip(texts, possible, strict=True))
        >= max(2.0, _OFTEN * len(texts))
    ]
    return f"{', '.join(traits)}; {direction}", seqs


def _direction(
    moods: Sequence[_Mood], passages: Sequence[Passage], old: Sequence[StateEntry], words: Phrases
) -> tuple[str, tuple[int, ...]]:
    """Where the mood goes from the beginning of the span to its end, and what it is about."""
    low = [mood for mood in moods if mood.value < 0]
    high = [mood for mood in moods if mood.value > 0]
    last = (moods[-1].seq,)
    if not low:
        was_low = any(word in entry.text for entry in old for word in _troubles())
        if was_low and high:
            return f"{words.better}: {words.since}", (high[-1].seq,)
        half = len(moods) // 2
        rises = sum(mood.value for mood in moods[half:]) - sum(mood.value for mood in moods[:half]) > 1
        return (words.better if rises or was_low else words.steady), last
    trouble = words.upset if sum(mood.is_distress for mood in low) > len(low) / 2 else words.frustrated
    text = trouble + _topic(low, passages, words)
    after = [mood for mood in high if mood.seq > low[-1].seq]
    if after:
        return f"{words.better}: {text}{words.relieved}", (low[-1].seq, after[-1].seq)
    third = moods[-max(1, len(moods) // 3) :]
    if low[-1].seq >= third[0].seq:
        return f"{words.worse}: {text}", (low[-1].seq,)
    return f"{words.better}: {text}{words.calm}", (low[-1].seq, *last)


def _troubles() -> tuple[str, ...]:
    """The beginnings of what an earlier tone says of a mood that was low to its end."""
    return tuple(f"{known.worse}: " for known in PHRASES.values())


def _topic(low: Sequence[_Mood], passages: Sequence[Passage], words: Phrases) -> str:
    """What the messages in a low mood return to; empty when it cannot be told."""
    turns = {mood.turn for mood in low}
    found = returning(passages, turns)
    if found is None:
        return ""
    return (words.over if found.islower() else words.over_name).format(topic=found)


def _mood(seq: int, turn: int, text: str) -> _Mood:
    plain = text.replace("\u2019", "'")
    possible = _INDEX.opened(text)
    anger, distress, delight, relief = (
        _count(pattern, plain) if _BITS[pattern] & possible else 0
        for pattern in (FRUSTRATION, DISTRESS, DELIGHT, RELIEF)
    )
    trouble, delight = anger + distress, delight + 2 * relief
    return _Mood(seq=seq, turn=turn, value=(trouble < delight) - (trouble > delight), is_distress=distress > anger)


def _count(pattern: re.Pattern[str], plain: str) -> int:
    """Matches that no negation goes before, each word once."""
    found = pattern.finditer(plain)
    return len({one[0].lower() for one in found if not NEGATED.search(plain, max(0, one.start() - 16), one.start())})


_INDEX: Final = Index()
_BITS: Final = {
    pattern: _INDEX.add(pattern.pattern) for pattern in (INFORMAL, POLITE, DELIGHT, FRUSTRATION, DISTRESS, RELIEF)
}

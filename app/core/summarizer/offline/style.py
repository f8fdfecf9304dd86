"""Describes in a sentence how the user talks and how their mood changes, by simple cues."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
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
from app.core.reading.passages import Passage
from app.core.summarizer.offline.items import Item
from app.core.text.pasted import before_paste
from app.core.text.required_literals import PatternIndex

_MIN_TONE_SHARE: Final = 0.12  # the least share of messages with a tone
_MIN_LOW_MOOD_SHARE: Final = 0.05  # the least share of messages in a low mood: fewer mean little
_MIN_MESSAGES: Final = 4  # the fewest messages from which a tone is recognised


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mood:
    """The mood of one message: negative for trouble, positive for delight."""

    seq: int
    value: int
    is_distress: bool = False


def style_items(
    messages: Sequence[Message], passages: Sequence[Passage], previous: Sequence[StateEntry], language: str
) -> list[Item]:
    """The tone and its direction, then every wish about style; empty in a language without phrases."""
    words = phrases(language)
    spoken = [message for message in messages if message.role == "user" and message.content.strip()]
    if words is None or not spoken:
        return []
    labels = tuple(known.tone for known in PHRASES.values())
    old = [entry for entry in previous if entry.role == "style" and entry.text.startswith(labels)]
    items: list[Item] = []
    if len(spoken) >= _MIN_MESSAGES and (tone := _tone(messages, old, words)):
        text, seqs = tone
        items.append(Item(text=words.tone + text, seqs=seqs, replaces=tuple(entry.id for entry in old)))
    known_texts = {entry.text for entry in previous}
    for passage in passages:
        if (
            passage.role == "user"
            and not (passage.is_named or passage.is_pasted or passage.is_question)
            and STYLE_WISH.is_in(passage.text)
            and passage.text_with_speaker not in known_texts
        ):
            known_texts.add(passage.text_with_speaker)
            items.append(Item(text=passage.text_with_speaker, seqs=(passage.seq,), passages=(passage,)))
    return items


def _tone(messages: Sequence[Message], old: Sequence[StateEntry], words: Phrases) -> tuple[str, tuple[int, ...]] | None:
    """The tone as words, with its messages: a mood that is low or was; ``None`` if there is nothing to report."""
    spoken = [message for message in messages if message.role == "user"]
    texts = [before_paste(message.content) for message in spoken]
    moods = [_mood(message.seq, text) for message, text in zip(spoken, texts, strict=True)]
    direction, seqs = _mood_direction(moods, old, words)
    if direction == words.steady or (
        not old and sum(mood.value < 0 for mood in moods) < max(1.0, _MIN_LOW_MOOD_SHARE * len(moods))
    ):
        return None
    possible = [_INDEX.may_match_text(text) for text in texts]
    traits = [
        word
        for word, pattern in ((words.informal, INFORMAL), (words.polite, POLITE), (words.friendly, DELIGHT))
        if sum(bool(_BITS[pattern] & bits and pattern.search(text)) for text, bits in zip(texts, possible, strict=True))
        >= max(2.0, _MIN_TONE_SHARE * len(texts))
    ]
    return "; ".join(filter(None, [", ".join(traits), direction])), seqs


def _mood_direction(moods: Sequence[_Mood], old: Sequence[StateEntry], words: Phrases) -> tuple[str, tuple[int, ...]]:
    """How the mood changes from the beginning of the span to its end, as words, with the messages that show it."""
    low = [mood for mood in moods if mood.value < 0]
    last = moods[-1].seq
    if not low:
        was_low = any(f"{known.worse}: " in entry.text for entry in old for known in PHRASES.values())
        return (words.better if was_low else words.steady), (last,)
    trouble = words.upset if sum(mood.is_distress for mood in low) > len(low) / 2 else words.frustrated
    after = [mood.seq for mood in moods if mood.value > 0 and mood.seq > low[-1].seq]
    late = moods[-max(1, len(moods) // 3)].seq
    if low[-1].seq >= late and not after:
        return f"{words.worse}: {trouble}", (low[-1].seq,)
    return f"{words.better}: {trouble}", (low[-1].seq, *(after[-1:] or [last]))


def _mood(seq: int, text: str) -> _Mood:
    plain = text.replace("\u2019", "'")
    possible = _INDEX.may_match_text(text)
    anger, distress, delight, relief = (
        _count_unnegated(pattern, plain) if _BITS[pattern] & possible else 0
        for pattern in (FRUSTRATION, DISTRESS, DELIGHT, RELIEF)
    )
    trouble, delight = anger + distress, delight + 2 * relief
    return _Mood(seq=seq, value=(trouble < delight) - (trouble > delight), is_distress=distress > anger)


def _count_unnegated(pattern: re.Pattern[str], plain: str) -> int:
    found = pattern.finditer(plain)
    return len({one[0].lower() for one in found if not NEGATED.search(plain, max(0, one.start() - 16), one.start())})


_INDEX: Final = PatternIndex()
_BITS: Final = {
    pattern: _INDEX.add(pattern.pattern) for pattern in (INFORMAL, POLITE, DELIGHT, FRUSTRATION, DISTRESS, RELIEF)
}

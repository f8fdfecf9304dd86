"""How the user talks, and where their mood is going: from plain cues, in a sentence or two."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from app.domain.conversation import Message
from app.domain.extraction.cues import DELIGHT, FRUSTRATION, INFORMAL, POLITE, STYLE_WISH
from app.domain.extraction.facts import Item
from app.domain.extraction.labels import PHRASES, Phrases, phrases
from app.domain.extraction.passages import Passage
from app.domain.state import StateEntry

_BRIEF: Final = 12  # words a message on average
_LENGTHY: Final = 60
_OFTEN: Final = 0.12  # of the messages
_SHIFT: Final = 0.15  # change of mood a message, between first and second half
_FEWEST: Final = 4  # messages in which a direction can be seen
_QUOTE: Final = 60


def style_items(
    messages: Sequence[Message], passages: Sequence[Passage], previous: Sequence[StateEntry], language: str
) -> list[Item]:
    """The tone and its direction, then every wish about manner; empty in a language without a table."""
    words = phrases(language)
    spoken = [message for message in messages if message.role == "user" and message.content.strip()]
    if words is None or not spoken:
        return []
    tone = _tone(spoken, passages, words)
    labels = tuple(known.tone for known in PHRASES.values())
    old = tuple(entry.id for entry in previous if entry.role == "style" and entry.text.startswith(labels))
    items = [Item(text=words.tone + tone[0], seqs=tone[1], replaces=old)] if len(spoken) >= _FEWEST else []
    said = {entry.text for entry in previous}
    for passage in passages:
        if (
            passage.role == "user"
            and not passage.is_named
            and STYLE_WISH.search(passage.text)
            and passage.spoken not in said
        ):
            said.add(passage.spoken)
            items.append(Item(text=passage.spoken, seqs=(passage.seq,), passages=(passage,)))
    return items


def _tone(spoken: Sequence[Message], passages: Sequence[Passage], words: Phrases) -> tuple[str, tuple[int, ...]]:
    texts = [message.content for message in spoken]
    average = sum(text.count(" ") + 1 for text in texts) / len(texts)
    length = words.brief if average < _BRIEF else (words.lengthy if average > _LENGTHY else words.middling)
    traits = [length]
    traits += [
        word
        for word, pattern in (
            (words.informal, INFORMAL),
            (words.polite, POLITE),
            (words.friendly, DELIGHT),
            (words.frustrated, FRUSTRATION),
        )
        if sum(bool(pattern.search(text)) for text in texts) >= max(2.0, _OFTEN * len(texts))
    ]
    moods = [_mood(text) for text in texts]
    third = max(1, len(moods) // 3)
    start, middle, end = (_mean(moods[:third]), _mean(moods[third:-third] or moods), _mean(moods[-third:]))
    shift = end - start
    if middle < min(start, end) - _SHIFT:
        direction, telling = f"{words.dipped}, {words.better}", _telling(passages, FRUSTRATION, spoken[0].seq)
    elif abs(shift) > _SHIFT:
        direction = words.worse if shift < 0 else words.better
        telling = _telling(passages, FRUSTRATION if shift < 0 else DELIGHT, spoken[-third].seq)
    else:
        direction, telling = words.steady, None
    evidence = f" (“{telling.text}”)" if telling else ""
    return f"{', '.join(traits)}; {direction}{evidence}", (telling.seq if telling else spoken[-1].seq,)


def _mean(moods: Sequence[int]) -> float:
    return sum(moods) / len(moods)


def _mood(text: str) -> int:
    return min(1, len(DELIGHT.findall(text))) - min(2, 2 * len(FRUSTRATION.findall(text)))


def _telling(passages: Sequence[Passage], pattern: re.Pattern[str], since: int) -> Passage | None:
    """The latest short sentence that shows the mood."""
    fitting = (p for p in reversed(passages) if p.role == "user" and p.seq >= since and len(p.text) <= _QUOTE)
    return next((p for p in fitting if pattern.search(p.text)), None)

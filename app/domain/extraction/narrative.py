"""Two or three sentences: what a span was about, what weighed most, and where things stand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from app.domain.extraction.facts import Item
from app.domain.extraction.labels import PHRASES, Phrases, phrases
from app.domain.extraction.passages import Passage, clip
from app.domain.extraction.topics import topics
from app.domain.state import StateEntry
from app.domain.text import sentences
from app.domain.tokens import estimate_text

_LONGEST_PART: Final = 150  # characters of a quoted sentence
_EARLIER: Final = 220  # characters kept of the story so far
_SHORTEST: Final = 24  # characters left when room runs out


def narrative(
    passages: Sequence[Passage], previous: Sequence[StateEntry], facts: Sequence[Item], language: str, *, room: int
) -> str:
    """The story so far within about ``room`` tokens; empty only when nothing was said."""
    if not passages:
        return " ".join(entry.text for entry in previous if entry.role == "narrative")
    words = phrases(language)
    earlier = _earlier(previous, words)
    last = _last_exchange(passages)
    if words is None:
        parts = [earlier, _key(facts, passages), last]
    else:
        parts = [earlier, _about(passages, words, later=bool(earlier)), words.last.format(text=last)]
    return _fit([part for part in parts if part], room)


def _fit(parts: list[str], room: int) -> str:
    """The last part matters most, then the first ones; whatever is left is cut at a word."""
    while len(parts) > 1 and estimate_text(" ".join(parts)) > room:
        parts.pop(-2)
    text = " ".join(parts)
    longest = len(text)
    while estimate_text(clip(text, longest)) > room and longest > _SHORTEST:
        longest = max(_SHORTEST, int(longest * 0.8))
    return clip(text, longest)


def _about(passages: Sequence[Passage], words: Phrases, *, later: bool) -> str:
    found = topics(passages)
    return (words.continued if later else words.about).format(topics=", ".join(found)) if found else ""


def _earlier(previous: Sequence[StateEntry], words: Phrases | None) -> str:
    """The story so far, without where it stood then: of our own sentences the first and the newest are kept."""
    told = " ".join(entry.text for entry in previous if entry.role == "narrative").strip()
    if not told:
        return ""
    if words is None:
        return clip(sentences(told)[0], _EARLIER)
    lasts = tuple(known.last.partition("{")[0] for known in PHRASES.values())
    starts = "|".join(re.escape(last.strip()) for last in lasts)
    told = re.split(starts, told, maxsplit=1)[0].strip()
    kept = sentences(told)
    kept = [kept[0], kept[-1]] if len(kept) > 2 else kept  # noqa: PLR2004
    return clip(" ".join(kept), _EARLIER)


def _key(facts: Sequence[Item], passages: Sequence[Passage]) -> str:
    found = [item.passages[0] for item in facts if item.passages]
    return clip(found[0].spoken, _LONGEST_PART) if found else clip(passages[0].spoken, _LONGEST_PART)


def _last_exchange(passages: Sequence[Passage]) -> str:
    """The last thing each side said that says something."""
    spoken = [passage for passage in passages if passage.role in {"user", "assistant"}] or list(passages)
    final = spoken[-1].seq
    other = next((p.seq for p in reversed(spoken) if p.role != spoken[-1].role), None)
    chosen = [_weightiest([p for p in spoken if p.seq == seq]) for seq in (other, final) if seq is not None]
    texts = [clip(passage.spoken, _LONGEST_PART) for passage in chosen]
    return " ".join(text if text.endswith((".", "!", "?", "…", "。", "！", "？")) else f"{text}." for text in texts)


def _weightiest(passages: Sequence[Passage]) -> Passage:
    return max(passages, key=lambda p: (min(len(p.stems), 10) + 2 * len(p.identifiers) + 2 * len(p.cues), -p.index))

"""Two or three sentences: what a span was about, what weighed most, and where things stand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from app.domain.extraction.cues import PLEASANTRY
from app.domain.extraction.labels import PHRASES, Phrases, phrases
from app.domain.extraction.passages import Passage, clip
from app.domain.extraction.topics import topics
from app.domain.state import StateEntry
from app.domain.text import sentences
from app.domain.tokens import estimate_text

_LONGEST_PART: Final = 150  # characters of a quoted sentence
_EARLIER: Final = 220  # characters kept of the story so far
_FULL_STOPS: Final = (".", "!", "?", "…", "。", "！", "？")
_OPENING: Final = 12  # sentences among which the first telling one is looked for
_TELLING: Final = 4  # content words
_SHORTEST: Final = 24  # characters left when room runs out


def narrative(passages: Sequence[Passage], previous: Sequence[StateEntry], language: str, *, room: int) -> str:
    """The story so far within about ``room`` tokens; empty only when nothing was said."""
    if not passages:
        return " ".join(entry.text for entry in previous if entry.role == "narrative")
    words = phrases(language)
    earlier, last = _earlier(previous, words), _last_exchange(passages)
    if words is None:
        return _fit([earlier or _opening(passages), last], (0,), room)
    began = "" if earlier else words.began.format(text=_opening(passages))
    about = _about(passages, words, later=bool(earlier))
    stands = words.last.format(text=last)
    story = _fit([earlier, about, began, stands], (2, 0, 1), room)
    if earlier and not story.startswith(earlier):
        return _fit([_about(passages, words, later=False), stands], (0,), room)
    return story


def _fit(parts: list[str], least_first: Sequence[int], room: int) -> str:
    """Leave out parts, the least telling first, until the rest fits; the last part stays, cut at a word if need be."""
    kept = list(parts)
    for number in least_first:
        if estimate_text(" ".join(filter(None, kept))) <= room:
            break
        kept[number] = ""
    text = " ".join(filter(None, kept))
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


def _opening(passages: Sequence[Passage]) -> str:
    """What the user came with."""
    asked = [p for p in passages if p.role == "user"] or list(passages)
    telling = (p for p in asked[:_OPENING] if len(p.stems) >= _TELLING and not PLEASANTRY.match(p.text))
    first = next(telling, asked[0]).seq
    text = clip(_weightiest([p for p in passages if p.seq == first]).spoken, _LONGEST_PART)
    return text if text.endswith(_FULL_STOPS) else f"{text}."


def _last_exchange(passages: Sequence[Passage]) -> str:
    """The last thing each side said that says something."""
    spoken = [passage for passage in passages if passage.role in {"user", "assistant"}] or list(passages)
    final = spoken[-1].seq
    other = next((p.seq for p in reversed(spoken) if p.role != spoken[-1].role), None)
    chosen = [_weightiest([p for p in spoken if p.seq == seq]) for seq in (other, final) if seq is not None]
    texts = [clip(passage.spoken, _LONGEST_PART) for passage in chosen]
    return " ".join(text if text.endswith(_FULL_STOPS) else f"{text}." for text in texts)


def _weightiest(passages: Sequence[Passage]) -> Passage:
    return max(passages, key=lambda p: (min(len(p.stems), 10) + 2 * len(p.identifiers) + 2 * len(p.cues), -p.index))

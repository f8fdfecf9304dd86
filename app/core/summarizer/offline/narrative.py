"""Two sentences: what the conversation is about, and what was said last that matters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from app.core.model.state import StateEntry
from app.core.reading.cues import PLEASANTRY, Cue
from app.core.reading.labels import PHRASES, Phrases, phrases
from app.core.reading.passages import Passage
from app.core.summarizer.offline.topics import topics
from app.core.text.clauses import begins_unresolved, is_fragment
from app.core.text.languages.joined import alternatives, pattern_of
from app.core.text.patterns import compiled
from app.core.text.sentences import closed, sentences
from app.core.text.shortening import clip, fitted
from app.core.text.token_counts import estimate_text

_LONGEST_PART: Final = 130  # characters of a quoted sentence
_EARLIER: Final = 160  # characters kept of a story without a template
_OPENING: Final = 12  # sentences among which the first telling one, and the names of the subject, are looked for
_TELLING: Final = 4  # content words
_SHORTEST: Final = 24  # characters left when room runs out
_SUBJECTS: Final = 2
_FIRST: Final = 2  # topics of the story so far that are told on
_RECENT: Final = 3
_SETTLES: Final[frozenset[Cue]] = frozenset({"decision", "correction", "update"})
_SOUND: Final = 2.0  # how much more telling something settled is, in halves of the span
_OWN: Final = pattern_of("claims", "own")
_IS_PERSON: Final = compiled(rf"\b(?:{alternatives('claims', 'introduced')})\.?\s*$", re.IGNORECASE)
_FRAMES: Final = tuple(
    compiled(rf"{re.escape(words.about.partition('{')[0])}(?P<about>.{{1,300}}?)\.(?:\s|$)")
    for words in PHRASES.values()
)


class _Told(NamedTuple):
    """What an earlier story says."""

    subject: str
    topics: tuple[str, ...]


def narrative(passages: Sequence[Passage], previous: Sequence[StateEntry], language: str, *, room: int) -> str:
    """The story so far within about ``room`` tokens; empty only when nothing was said."""
    earlier = " ".join(entry.text for entry in previous if entry.role == "narrative").strip() or _begun(previous)
    if not passages:
        return earlier
    words = phrases(language)
    if words is None:
        return _fit([_stub(earlier) or _opening(passages), closed(_last(passages).spoken)], room)
    abouts = list(_abouts(passages, _told(earlier), words))
    told = _stands(passages, words)
    stands = closed(_shrunk(told, room - estimate_text(abouts[-1]) - 1))
    if len(stands) < _SHORTEST:
        subject = abouts[-1] if estimate_text(abouts[-1]) <= room else ""
        return subject or _shrunk(told, room) or clip(told, _SHORTEST)
    stories = (f"{about} {stands}".strip() for about in abouts)
    return next((story for story in stories if estimate_text(story) <= room), stands)


def _fit(parts: Sequence[str], room: int) -> str:
    """Both parts, the first alone being cut or left out when room is short; the last stays."""
    text = " ".join(filter(None, parts))
    if estimate_text(text) > room and estimate_text(parts[-1]) <= room:
        spare = room - estimate_text(parts[-1]) - 1
        first = _shrunk(parts[0], spare)
        text = f"{first} {parts[-1]}" if first else parts[-1]
    return text if estimate_text(text) <= room else _shrunk(parts[-1], room) or clip(parts[-1], _SHORTEST)


def _shrunk(text: str, room: int) -> str:
    """The text cut until it fits; empty when next to nothing would be left."""
    cut = fitted(text, room, shortest=_SHORTEST)
    return cut if estimate_text(cut) <= room else ""


def _abouts(passages: Sequence[Passage], told: _Told | None, words: Phrases) -> Iterator[str]:
    """What it is about, shorter and shorter: the subject it began with, its first topics, and those of this span."""
    subject = told.subject if told else ", ".join(_subjects(passages))
    known = told.topics[:_FIRST] if told else ()
    named = f"{subject} {' '.join(known)}".lower()
    found = [topic for topic in topics(passages) if topic.lower() not in named][:_RECENT]
    for first, recent in ((_FIRST, _RECENT), (_FIRST, 2), (1, 1), (1, 0), (0, 0)):
        late = ", ".join(found[:recent])
        early = ", ".join(known[:first])
        listed = early + (words.lately + late if late else "") if early else late
        if subject and listed:
            yield words.about_of.format(subject=subject, topics=listed)
        elif subject or listed:
            yield words.about.format(topics=subject or listed)
        elif first == recent == 0:
            yield ""


def _begun(previous: Sequence[StateEntry]) -> str:
    """What the conversation is about, where a text that was carried over says so among its statements."""
    return next((entry.text for entry in previous if any(frame.match(entry.text) for frame in _FRAMES)), "")


def _told(earlier: str) -> _Told | None:
    found = next((match for frame in _FRAMES if (match := frame.match(earlier))), None)
    if found is None:
        return None
    about = found["about"]
    for known in PHRASES.values():
        about = about.partition(known.lately)[0]
    subject, colon, listed = about.partition(": ")
    names = tuple(name for name in (listed if colon else subject).split(", ") if name)
    return _Told(subject, names) if colon else _Told("", names)


def _subjects(passages: Sequence[Passage]) -> list[str]:
    """Names of more than one word that the user begins with, and that are no persons."""
    found: dict[str, None] = {}
    for passage in [one for one in passages if one.role == "user" and not one.is_named][:_OPENING]:
        if passage.turn > 1:
            break
        for item in passage.identifiers:
            if item.kind == "name" and " " in item.text and not _IS_PERSON.search(passage.text[: item.start]):
                found[item.text] = None
    return list(found)[-_SUBJECTS:]


def _stands(passages: Sequence[Passage], words: Phrases) -> str:
    last = _last(passages)
    text = clip(last.core, _LONGEST_PART)
    if _OWN.search(last.core) or last.is_named:
        return closed(words.last_by.format(speaker=last.speaker, text=text))
    return closed(words.last.format(text=text))


def _last(passages: Sequence[Passage]) -> Passage:
    """The latest thing that was settled; else the latest that the user stated; else the last words."""
    spoken = [one for one in passages if one.role in {"user", "assistant"} and not one.is_pasted] or list(passages)
    sound = [one for one in spoken if not one.is_question and not one.is_listed and _stands_alone(one)]
    if not sound:
        return spoken[-1]
    return max(sound, key=lambda one: (one.index / (spoken[-1].index + 1) * _SOUND + _weight(one), one.index))


def _weight(passage: Passage) -> float:
    mine = passage.role == "user" or passage.is_named
    return (
        1.0 * bool(passage.cues & _SETTLES)
        + 0.6 * bool(passage.values)
        + 0.8 * mine
        + 0.1 * min(len(passage.identifiers), 3)
    )


def _stands_alone(passage: Passage) -> bool:
    text = passage.core
    return not (is_fragment(text) or begins_unresolved(text) or (PLEASANTRY.match(text) and not passage.values))


def _stub(earlier: str) -> str:
    return clip(sentences(earlier)[0], _EARLIER) if earlier else ""


def _opening(passages: Sequence[Passage]) -> str:
    """What the user came with."""
    asked = [p for p in passages if p.role == "user"] or list(passages)
    telling = (p for p in asked[:_OPENING] if len(p.stems) >= _TELLING and not PLEASANTRY.match(p.text))
    first = next(telling, asked[0]).seq
    heaviest = max(
        (p for p in passages if p.seq == first), key=lambda p: (min(len(p.stems), 10) + 2 * len(p.cues), -p.index)
    )
    return closed(clip(heaviest.spoken, _LONGEST_PART))

"""Shortening a sentence to the clauses that hold its values: a stretch of it, word for word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from app.core.text.identifiers import Identifier
from app.core.text.patterns import compiled
from app.core.text.words import words

FEWEST_WORDS: Final = 3
"""Content words; with fewer, a text does not stand alone."""

_SHORT: Final = 44  # characters; there is nothing to gain below it
_TOPIC: Final = 6  # words before a colon name what follows
_LONG_TAIL: Final = 24  # characters after the last value that are worth cutting off

_JOINT: Final = compiled(
    r"(?P<colon>:\s|：\s?)|;\s|[；，、]\s?|\s[—–-]\s"
    r"|,?\s(?P<reason>because|since|so that|although|though|потому что|так как|поскольку|хотя|weil|denn|obwohl"
    r"|parce que|porque)\s"
    r"|,\s(?:(?P<link>and|but|so|while|which|who|и|но|а|так что|поэтому|котор\w{2,3}|und|aber|et|mais|y|pero)\s)?",
    re.IGNORECASE,
)
"""Where one clause ends and the next begins."""

_OPENS: Final = compiled(
    r"(?:i|we|you|he|she|they|it|there)(?:['’](?:s|m|re|ve|d|ll))?\s"
    r"|(?:the|our|my|your|their|his|her|this|these|all)\s(?:\S+\s){1,4}?(?:is|are|was|were|has|have|must|can|will"
    r"|should|costs?|needs?|wants?|starts?|ends?|gets?|moved|begins?)\b"
    r"|[A-Z]\w+\s(?:is|was|has|wants|says|said|needs|costs|gets|builds|does|makes|pays|brings|comes)\b"
    r"|(?:я|мы|ты|вы|он|она|они|это)\s"
    r"|(?:мой|моя|моё|наш|наша|наше|наши|мои)\s\S+\s",
    re.IGNORECASE,
)
"""A clause that has a subject of its own."""

_LINK: Final = compiled(r"(?:And|But|So|Also|И|Но|А|Так что|Und|Aber|Et|Mais|Y|Pero),?\s|(?:No|Yes|Нет|Да)\.\s")

_BINDS: Final = compiled(
    r"\b(?:if|when|unless|until|before|after|not|no|never|none|nobody|think|guess|believe|says?|said|told|heard|hope"
    r"|maybe|perhaps|might|could|would|wish|wants?|asks?|asked|doubt|only|except|instead|either|neither|whether"
    r"|если|когда|пока|не|нет|никогда|никто|дума\w*|счита\w*|кажется|говор\w+|сказал\w*|может|бы|только|кроме|вместо"
    r"|хочет|хотел\w*|просит|просил\w*|ли|falls|wenn|nicht|kein\w*|glaube)\b|n['’]t\b",
    re.IGNORECASE,
)
"""What turns or bounds the rest of its sentence: it is never cut off."""

_UNRESOLVED: Final = compiled(
    r"(?:but |and |so |then |no,? |но |и |а |так )?(?:he|she|it|they|him|her|them|this|that|these|those|his|their|its"
    r"|он|она|оно|они|его|её|их|им|это|этот|эта|эти|этого|er|sie|es|il|elle)\b",
    re.IGNORECASE,
)


def clause_starts(text: str) -> list[int]:
    """Where clauses begin behind the first one: behind a mark between two, before a conjunction."""
    return [_begins(joint) for joint in _JOINT.finditer(text)]


def _begins(joint: re.Match[str]) -> int:
    return joint.start(joint.lastgroup) if joint.lastgroup in {"link", "reason"} else joint.end()


def begins_unresolved(text: str) -> bool:
    """Whether a text begins with a pronoun that points to something said before it."""
    return _UNRESOLVED.match(text) is not None


def is_fragment(text: str) -> bool:
    """Whether a text has too few content words to stand alone."""
    return len(words(text)) < FEWEST_WORDS


def tight(text: str, found: Sequence[Identifier]) -> str:
    """The stretch of a sentence that holds its exact values; the whole where that would change what it says.

    Args:
        text: One sentence.
        found: Its identifiers.
    """
    marks = sorted(item.start for item in found if item.kind != "symbol")
    if len(text) <= _SHORT or not marks:
        return _opened(text)
    joints = [joint for joint in _JOINT.finditer(text) if joint.start() > 0]
    start = _start(text, [joint for joint in joints if joint.end() <= marks[0]])
    end = _end(text, [joint for joint in joints if joint.start() > marks[-1]])
    stretch = text[start:end].strip(" ,;:—–")
    whole = start == 0 and end == len(text)
    return _opened(text if whole or is_fragment(stretch) or begins_unresolved(stretch) else stretch)


def _opened(text: str) -> str:
    """Without a conjunction that tied the sentence to the one before."""
    link = _LINK.match(text)
    rest = text[link.end() :] if link else ""
    return rest[:1].upper() + rest[1:] if rest and not begins_unresolved(rest) and not is_fragment(rest) else text


def _start(text: str, joints: Sequence[re.Match[str]]) -> int:
    """Behind the last joint before the first value after which a clause begins that needs nothing from before."""
    for joint in reversed(joints):
        head = text[: joint.start()]
        if _BINDS.search(head) or (joint["colon"] and head.count(" ") < _TOPIC) or joint["reason"]:
            continue
        if _OPENS.match(text, joint.end()):
            return joint.end()
    return 0


def _end(text: str, joints: Sequence[re.Match[str]]) -> int:
    """Before the first joint behind the last value after which nothing bounds what was said."""
    for joint in joints:
        tail = text[joint.end() :]
        parts = joint["reason"] or joint["link"] or _OPENS.match(tail)
        if parts and len(tail) >= _LONG_TAIL and not _BINDS.search(tail):
            return joint.start()
    return len(text)

"""Words that mark a sentence as important: ``cues`` in the files of ``languages``, and patterns of other words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Final, Literal, get_args

from app.core.text import required_literals
from app.core.text.blanks import with_plain_blanks
from app.core.text.corrections import correction_in
from app.core.text.cue_patterns import CUE_INDEX, CuePatterns
from app.core.text.languages.combined_words import alternatives
from app.core.text.languages.loading import languages
from app.core.text.memo import memoized
from app.core.text.patterns import compiled

Cue = Literal[
    "correction", "update", "decision", "rule", "constraint", "identity", "preference", "plan", "commitment", "open",
    "event", "result", "closed", "emphasis",
]  # fmt: skip


CUE_PATTERNS: Final[Mapping[Cue, CuePatterns]] = {
    cue: CuePatterns([alternatives("cues", cue)]) for cue in get_args(Cue)
}

CUE_WEIGHTS: Final[Mapping[Cue, float]] = {
    "correction": 1.2,
    "update": 2.0,
    "decision": 2.8,
    "rule": 3.8,
    "constraint": 2.2,
    "identity": 2.5,
    "preference": 1.2,
    "plan": 1.5,
    "commitment": 1.4,
    "open": 2.0,
    "event": 1.2,
    "result": 1.2,
    "closed": 0.2,
    "emphasis": 1.2,
}


IN_WORDS: Final = CuePatterns([alternatives("talk", "in_words")])
"""Counts and times in words: they are as exact as a number, but are not found as identifiers."""

CODES: Final = compiled(
    r"(?<![\w/@.-])(?=[a-z0-9/_-]{0,60}\d)[a-z][a-z0-9]{0,30}(?:[-/][a-z0-9]{1,30}){1,5}(?![\w/-])"
    r"|(?<!\w)(?=[0-9a-f]{0,40}\d)(?=[0-9a-f]{0,40}[a-f])[0-9a-f]{7,40}(?!\w)"
)
"""Names in lower case with a number, such as those of regions and branches, and abbreviated hashes."""

PLEASANTRY: Final = compiled(rf"^\W*(?:{alternatives('talk', 'pleasantry')})", re.IGNORECASE)

FILLER: Final = compiled(
    rf"^(?:(?:{alternatives('talk', 'filler')})(?:, [A-ZА-Я]\w{{1,20}})?[,!.…:;—-]+\s+)+(?=\S)", re.IGNORECASE
)

ACCEPTANCE: Final = compiled(rf"^\W*(?:{alternatives('talk', 'acceptance')})\b", re.IGNORECASE)
REJECTION: Final = compiled(rf"^\W*(?:{alternatives('talk', 'rejection')})", re.IGNORECASE)
PROPOSAL: Final = compiled(rf"\b(?:{alternatives('talk', 'proposal')})\b", re.IGNORECASE)
NON_ANSWER: Final = compiled(rf"\b(?:{alternatives('talk', 'non_answer')})(?!\w)", re.IGNORECASE)
STYLE_WISH: Final = CuePatterns(
    rf"\b(?:{wish})\b"  # each wish alone, so that few are tried
    for one in languages()
    if one.talk.style_wish
    for wish, _ in required_literals.alternatives(alternatives("talk", "style_wish", [one]))
)
FRUSTRATION: Final = compiled(rf"\b(?:{alternatives('talk', 'frustration')})\b|😠|😡|🤬|😤", re.IGNORECASE)
DISTRESS: Final = compiled(rf"\b(?:{alternatives('talk', 'distress')})\b|😞|😢|😭", re.IGNORECASE)
RELIEF: Final = compiled(rf"\b(?:{alternatives('talk', 'relief')})\b", re.IGNORECASE)
NEGATED: Final = compiled(rf"(?:\b(?:{alternatives('talk', 'negated')})|n't)\s+$", re.IGNORECASE)
DELIGHT: Final = compiled(
    rf"\b(?:{alternatives('talk', 'delight')})\b|😀|😁|😂|🤣|😊|😍|🎉|❤|👍|🙂|😄|[:;]-?\)", re.IGNORECASE
)
POLITE: Final = compiled(rf"\b(?:{alternatives('talk', 'polite')})\b", re.IGNORECASE)
INFORMAL: Final = compiled(rf"\b(?:{alternatives('talk', 'informal')})\b|[\U0001f600-\U0001f64f]|\)\)", re.IGNORECASE)
HEADING: Final = compiled(rf"(?:{alternatives('talk', 'headings')}):\s+(?=\S)")
"""A heading in capitals that only says which kind of statement follows; the statement holds without it."""

BOILERPLATE: Final = compiled(rf"GOOGLE_API_KEY|{alternatives('replies', 'notice')}", re.IGNORECASE)

READING_TOOL: Final = compiled(
    r"^(?:get|list|search|find|read|fetch|query|lookup|look_up|calculate|think|view|open|check"
    r"|retrieve|grep|ls|cat)(?:_|[A-Z]|\b)"
)


_ANY_CUE: Final = reduce(or_, (patterns.mask for patterns in CUE_PATTERNS.values()))
_VERDICTS: Final = {
    CUE_INDEX.add(ACCEPTANCE.pattern): (ACCEPTANCE, 1),
    CUE_INDEX.add(REJECTION.pattern): (REJECTION, -1),
}


def verdict_of(text: str) -> int:
    """1 if a text begins with a yes, -1 with a no, else 0."""
    possible_cues = CUE_INDEX.may_match_text(text)
    return next((verdict for bit, (cue, verdict) in _VERDICTS.items() if bit & possible_cues and cue.match(text)), 0)


@memoized()
def cues_of(sentence: str) -> frozenset[Cue]:
    """Which kinds of importance a sentence shows."""
    plain = with_plain_blanks(sentence).replace("\u2019", "'")
    possible_cues = CUE_INDEX.may_match_text(plain)
    if not possible_cues & _ANY_CUE:
        return frozenset()
    correction = correction_in(plain)
    texts = (plain, correction) if correction else (plain,)
    return frozenset(
        cue
        for cue, patterns in CUE_PATTERNS.items()
        if patterns.mask & possible_cues and patterns.matches(texts, possible_cues)
    )

"""What a passage is worth: cues, exact values, who says it, how central it is, and what was asked to be kept."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from app.domain.extraction.cues import PLEASANTRY, PROPOSAL, WEIGHTS
from app.domain.extraction.passages import Passage
from app.domain.identifiers import Identifier, Kind
from app.domain.text import GENERIC_STEMS, stems

_IDENTIFIER_WORTH: Final[Mapping[Kind, float]] = {
    "code": 4.0, "email": 4.0, "url": 3.0, "uuid": 4.0, "version": 2.0, "path": 1.6,
    "money": 1.6, "date": 1.6, "time": 1.2, "number": 1.0, "name": 0.7, "quoted": 0.5, "symbol": 0.4,
}  # fmt: skip
"""What can be asked for later and cannot be guessed is worth most."""
_IDENTIFIERS_AT_MOST: Final = 8.0
_OF_A_TOOL: Final = 2.0  # whoever called it says what mattered
_PASTED: Final = 0.5  # of what the user says themselves: a document can be asked for again
_HELD: Final = 0.6  # it is served anyway
_ECHO: Final = 0.3  # of an assistant's repetition of what the user has just said
_ROLE: Final = {"user": 1.0, "assistant": 0.5, "tool": 0.35}
_NAMED_ROLE: Final = 0.95  # the other person of a talk between people
_FURTHER_CUES: Final = 0.35  # a second cue adds a third of its weight
_FIRST_TURN: Final = 2.0  # the opening message says what it is all about
_FOCUS: Final = 2.5
_LONG: Final = 45  # words
_ACCEPTED: Final = 3.2  # a proposal that was agreed to is a decision,
_ACCEPTED_VAGUE: Final = 1.6  # less of one when it names nothing
_REJECTED: Final = -3.0  # one that was turned down is none
_ASKED_FOR: Final = 1.4  # what the user was asked for is needed
_SAID_OTHERWISE: Final = 1.6  # a user of an assistant who says "actually" means it; among people it is a mere word
_LISTED: Final = 0.5  # an assistant's list offers much of which little is taken up
_TWO: Final = 2
_TERSE: Final = 1.4  # one word says nothing by itself, unless it answers a question
_BARE: Final = 3.0  # a bare yes or no is told with what it answers, never alone
_ACTION: Final = 4.0  # what was done with a tool has changed the world
_LOOK_BACK: Final = 12  # sentences


def score_all(passages: Sequence[Passage], focus: str | None = None) -> list[float]:
    """The worth of each passage; 1 and above is worth a place. Linear in the number of passages."""
    frequency = Counter(stem for passage in passages for stem in passage.stems)
    wanted = frozenset(stems(focus)) if focus else frozenset()
    answers = _answers(passages)
    echoes = _echoes(passages)
    return [
        _score(passage, frequency, wanted, len(passages)) * (_ECHO if passage.index in echoes else 1.0)
        + answers.get(passage.index, 0.0)
        for passage in passages
    ]


def identifier_worth(found: Iterable[Identifier], most: float = _IDENTIFIERS_AT_MOST) -> float:
    """What exact values are worth, each once, ``most`` at most."""
    return min(most, sum({item.text: _IDENTIFIER_WORTH[item.kind] for item in found}.values()))


def _echoes(passages: Sequence[Passage]) -> set[int]:
    """Sentences of an assistant which only name again what the user named in the message before."""
    found: set[int] = set()
    named: set[str] = set()
    turn = -1
    for passage in passages:
        names = {item.text.lower() for item in passage.identifiers}
        if passage.role == "user":
            named = names if passage.turn != turn else named | names
            turn = passage.turn
        elif passage.role == "assistant" and not passage.is_named and names and names <= named:
            found.add(passage.index)
    return found


def _score(passage: Passage, frequency: Counter[str], wanted: frozenset[str], total: int) -> float:
    content = [stem for stem in passage.stems if stem not in GENERIC_STEMS]
    most = _OF_A_TOOL if passage.role == "tool" else _IDENTIFIERS_AT_MOST
    score = _cue_worth(passage) + identifier_worth(passage.identifiers, most) + min(1.0, 0.14 * len(content))
    score += _centrality(content, frequency, total)
    if passage.turn == 0 and passage.role == "user":
        score += _FIRST_TURN
    if "correction" in passage.cues and passage.role == "user" and not passage.is_named:
        score += _SAID_OTHERWISE
    if passage.is_question:
        score = 0.35 * score - 0.8
    if PLEASANTRY.match(passage.text):
        score -= 1.0 if passage.values or len(content) > 6 else 2.4  # noqa: PLR2004 - a long one says something too
    if len(content) < _TWO and not passage.values:
        score -= _TERSE
    if passage.is_action:
        score += _ACTION
    score *= _role_worth(passage)
    score *= _PASTED if passage.is_pasted else (_HELD if passage.is_held else 1.0)
    if passage.is_listed and passage.role != "user":
        score *= _LISTED
    if passage.text.count(" ") > _LONG:
        score *= 0.85
    if wanted:
        score += _FOCUS * len(wanted & passage.stems) / len(wanted)
    return score


def _cue_worth(passage: Passage) -> float:
    weights = sorted((WEIGHTS[cue] for cue in passage.cues), reverse=True)
    return weights[0] + _FURTHER_CUES * sum(weights[1:4]) if weights else 0.0


def _centrality(content: Sequence[str], frequency: Counter[str], total: int) -> float:
    """How much of the talk shares these words: degree centrality by postings, without pairs."""
    if not content or total < 2:  # noqa: PLR2004 - nothing to be central in
        return 0.0
    return 0.8 * sum(math.log(frequency[stem]) for stem in content) / (len(content) * math.log(total))


def _role_worth(passage: Passage) -> float:
    if passage.role == "assistant" and passage.is_named:
        return _NAMED_ROLE
    worth = _ROLE.get(passage.role, 0.35)
    if passage.role == "assistant" and passage.cues & {"commitment", "result", "decision"}:
        worth += 0.3 if passage.values and "result" in passage.cues else 0.1
    return worth


def _answers(passages: Sequence[Passage]) -> dict[int, float]:
    """What the user's next words do to an assistant's proposal."""
    change: defaultdict[int, float] = defaultdict(float)
    for here, after in pairwise(passages):
        if after.seq == here.seq or after.role != "user" or here.role != "assistant" or here.is_named:
            continue
        if after.verdict and len(after.stems - GENERIC_STEMS) < _TWO:
            change[after.index] -= _BARE
        elif here.is_question:
            change[after.index] += _ASKED_FOR + (_TERSE if len(after.stems) < _TWO else 0.0)
        proposal = proposal_before(passages, after) if after.verdict else None
        if proposal is not None:
            accepted = _ACCEPTED if proposal.identifiers else _ACCEPTED_VAGUE
            change[proposal.index] += accepted if after.verdict > 0 else _REJECTED
    return change


def proposal_before(passages: Sequence[Passage], reply: Passage) -> Passage | None:
    """The latest sentence of the message before ``reply`` which proposes something."""
    last = reply.index - 1
    index = last
    while index >= 0 and passages[index].seq == passages[last].seq and last - index < _LOOK_BACK:
        if PROPOSAL.search(passages[index].text):
            return passages[index]
        index -= 1
    return None

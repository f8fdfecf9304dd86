"""Writes levels of a segment without a model: every word is from the originals.

L1 has the key exchanges and their outcomes in order, L2 the goal, the decisions and where things stand, and L3 lists
keywords, names and exact values.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import partial
from itertools import groupby
from typing import Final

from app.core.model.conversation import Message
from app.core.model.provenance import language_or_locale
from app.core.model.segments import CutSegment, Level
from app.core.model.word_overlap import message_text
from app.core.reading.choice import KeptTexts, Option, choose
from app.core.reading.cues import PLEASANTRY, Cue
from app.core.reading.passages import Passage
from app.core.reading.scoring import Worth
from app.core.segments.message_analysis import MessageAnalysis, analysis_of
from app.core.text.budget import Budget
from app.core.text.clauses import begins_unresolved, is_fragment
from app.core.text.escaping import clean
from app.core.text.patterns import any_literal, compiled
from app.core.text.required_literals import normalized
from app.core.text.shortening import clip, fitted
from app.core.text.token_counts import estimate_text
from app.core.text.words import GENERIC_STEMS, stems

L1_SHARE: Final = 0.28
"""The tokens of an L1 as a share of those of its originals."""
MAX_L1_TOKENS: Final = 600
L2_SHARE: Final = 0.2
MIN_L2_TOKENS: Final = 60
MAX_L2_TOKENS: Final = 80
L1_OVER_L2: Final = 1.4
"""An L1 may always be this many times as long as its L2, even if the originals are short."""
MAX_L3_NAME_TOKENS: Final = 36
"""The tokens of an L3 for keywords and the first names. All other exact values follow them."""
MAX_L3_TOKENS: Final = 2_000
"""The most tokens of an L3 in all: a pasted log has more values than anybody could look for."""

_SETTLES: Final[frozenset[Cue]] = frozenset({"decision", "correction"})
_SETTLED: Final = 3.0  # added worth in L2 for a decision or a correction
_LATE: Final = 1.0  # added worth in L2 for the last sentence; earlier ones get a part of it
_CENTRAL: Final = 1.2  # added worth for a sentence about the topic of the whole segment
_MAX_CENTRAL_WORDS: Final = 3  # words of the topic that count; further ones add nothing
_SOLID: Final = 3  # content words: a sentence with fewer hardly belongs in an L2
_EMPTY: Final = 2.0  # subtracted worth for such a sentence
_ELLIPTIC: Final = 3  # content words: an answer with fewer is shown with its question
_SEPARATOR: Final = ", "
_SMALL: Final = compiled(r"\d{1,2}")
_HARD: Final = compiled(r"[\d@/\\_:]")


def level_text(level: Level, messages: Sequence[Message], cut: CutSegment, *, locale: str) -> str:
    """The text of one level of a segment, whose messages must be redacted; empty only if nothing was said."""
    visible = [message for message in messages if message.is_part_of_talk]
    analysis = analysis_of(visible, language_or_locale(visible, locale))
    if level == "L3":
        text = _tags(analysis, cut)
    else:
        detailed, brief = _l1_and_l2_tokens(visible)
        about = frozenset(base for term in (cut.topic, *analysis.terms.keywords) for base in stems(term))
        write, max_tokens = (_narrative, detailed) if level == "L1" else (_brief_line, brief)
        text = write(analysis.passages, analysis.worths, about, max_tokens)
    return clean(text) or _first_words_or_topic(visible, cut)


def _l1_and_l2_tokens(visible: Sequence[Message]) -> tuple[int, int]:
    tokens = sum(estimate_text(message_text(message)) for message in visible)
    brief = min(MAX_L2_TOKENS, max(MIN_L2_TOKENS, int(L2_SHARE * tokens)))
    return min(MAX_L1_TOKENS, max(int(L1_OVER_L2 * brief), int(L1_SHARE * tokens))), brief


def _narrative(passages: Sequence[Passage], scores: Sequence[Worth], about: Collection[str], max_tokens: int) -> str:
    worths = [
        worth.plus(_CENTRAL * _centrality(one, about) + _SETTLED / 2 * bool(one.cues & _SETTLES))
        for one, worth in zip(passages, scores, strict=True)
    ]
    picker = _SentencePicker(passages, worths, max_tokens)
    picker.take_best()
    picker.take_questions()
    picker.fill()
    return _text_of_chosen(picker.passages or _single_best(passages, worths), max_tokens)


def _brief_line(passages: Sequence[Passage], scores: Sequence[Worth], about: Collection[str], max_tokens: int) -> str:
    """An L2 in one line: what was wanted, what was decided, and where things stand."""
    worths = [
        worth.plus(
            _CENTRAL * _centrality(one, about)
            + _SETTLED * bool(one.cues & _SETTLES)
            + _LATE * one.index / len(passages)
            - _EMPTY * (_count_content_stems(one) < _SOLID and not one.values)
        )
        for one, worth in zip(passages, scores, strict=True)
    ]
    picker = _SentencePicker(passages, worths, max_tokens)
    goal = _goal_index(passages, worths, max_tokens // 2)
    picker.take(goal)
    picker.take(_decision_index(passages, worths, goal))
    picker.take_best()
    if not picker.passages:
        picker.fill()
    return _text_of_chosen(picker.passages or _single_best(passages, worths), max_tokens, " ")


def _single_best(passages: Sequence[Passage], worths: Sequence[Worth]) -> list[Passage]:
    return [max(passages, key=lambda one: (worths[one.index].total, -one.index))] if passages else []


def _count_content_stems(passage: Passage) -> int:
    return len(passage.stems - GENERIC_STEMS)


def _centrality(passage: Passage, about: Collection[str]) -> float:
    return min(len(passage.stems.intersection(about)), _MAX_CENTRAL_WORDS) / _MAX_CENTRAL_WORDS


def _goal_index(passages: Sequence[Passage], worths: Sequence[Worth], max_tokens: int) -> int | None:
    asked = [
        one for one in passages if one.role == "user" and _has_content(one) and _count_content_stems(one) >= _ELLIPTIC
    ]
    first = [one for one in asked if one.turn == asked[0].turn and _cost(one) <= max_tokens]
    best = max(first, key=lambda one: (worths[one.index].total + one.is_question, -one.index), default=None)
    return best.index if best else None


def _decision_index(passages: Sequence[Passage], worths: Sequence[Worth], goal: int | None) -> int | None:
    found = [one for one in passages if one.cues & _SETTLES and not one.is_question and _has_content(one)]
    others = (one for one in found if one.index != goal)
    best = max(others, key=lambda one: (worths[one.index].total, one.index), default=None)
    return best.index if best else None


class _SentencePicker:
    """Picks sentences within a number of tokens, and nothing twice."""

    def __init__(self, passages: Sequence[Passage], worths: Sequence[Worth], token_limit: int) -> None:
        self._all = passages
        self._budget = Budget(token_limit)
        self._picked: set[int] = set()
        self._covered = KeptTexts()
        self._options = {
            one.index: Option(key=one.index, worth=worth, stems=one.stems, size=len(one.text), cost=partial(_cost, one))
            for one, worth in zip(passages, worths, strict=True)
            if _has_content(one)
        }

    @property
    def passages(self) -> list[Passage]:
        """The picked sentences, in the order of the conversation."""
        return [self._all[index] for index in sorted(self._picked)]

    def take(self, index: int | None) -> None:
        """Pick one sentence if there is room for it."""
        if index is None or index in self._picked or not self._budget.takes(_cost(self._all[index])):
            return
        self._picked.add(index)
        if index in self._options:
            self._covered.take(self._options[index])

    def take_best(self) -> None:
        """Pick the sentences that tell most per token, as long as they are worth a place."""
        options = [option for index, option in self._options.items() if index not in self._picked]
        chosen = choose(options, token_limit=self._budget.remaining, kept_texts=self._covered, at_least_one=True)
        self._picked.update(option.key for option in chosen if self._budget.takes(option.cost()))

    def take_questions(self) -> None:
        """Pick the questions without which picked answers cannot be understood."""
        for index in sorted(self._picked):
            self.take(_question_of_terse_answer(self._all, index))

    def fill(self) -> None:
        """Fill the room with the best of the rest, even if ``take_best`` found them not worth a place."""
        for option in sorted(self._options.values(), key=lambda option: (-option.worth.total, option.key)):
            if not self._covered.repeats(option.stems):
                self.take(option.key)


def _has_content(passage: Passage) -> bool:
    return bool(passage.values) or (_count_content_stems(passage) > 1 and not PLEASANTRY.match(passage.text))


def _question_of_terse_answer(passages: Sequence[Passage], index: int) -> int | None:
    here = passages[index]
    before = passages[index - 1] if index else None
    if before is None or not before.is_question or before.seq == here.seq or before.role == here.role:
        return None
    is_terse = len(here.stems) < _ELLIPTIC or begins_unresolved(here.text) or is_fragment(here.text)
    return before.index if is_terse else None


def _text_of_chosen(chosen: Sequence[Passage], max_tokens: int, separator: str = "\n") -> str:
    """The chosen sentences as a text, with one name for those of one message; the last ones are left out to fit."""
    kept = list(chosen)
    while kept:
        lines = [
            f"{speaker}: {' '.join(one.text for one in group)}"
            for (speaker, _), group in groupby(kept, key=lambda one: (one.speaker, one.seq))
        ]
        text = separator.join(lines)
        if estimate_text(text) <= max_tokens or len(kept) == 1:
            return fitted(text, max_tokens)
        kept.pop()
    return ""


def _cost(passage: Passage) -> int:
    return estimate_text(f"{passage.text_with_speaker}\n")


def _tags(analysis: MessageAnalysis, cut: CutSegment) -> str:
    hard = [value for value in cut.identifiers if _is_hard_to_guess(value)]
    speakers = {one.speaker.casefold() for one in analysis.passages}
    words = [value for value in cut.identifiers if not any(map(str.isdigit, value))]
    names = [value for value in words if not (_is_hard_to_guess(value) or _is_speaker(value, speakers))]
    kept = _TermList()
    kept.add([*cut.topic.split(_SEPARATOR), *analysis.terms.keywords], MAX_L3_NAME_TOKENS * 2 // 3)
    kept.add(names, MAX_L3_NAME_TOKENS)
    kept.add([*hard, *names], MAX_L3_TOKENS)
    return kept.text


def with_values(tags: str, cut: CutSegment) -> str:
    """Tags that a model wrote, followed by the exact values of the segment that they lack."""
    kept = _TermList()
    kept.text, kept.tokens = tags, estimate_text(tags)
    kept.add(cut.identifiers, MAX_L3_TOKENS)
    return kept.text


def _is_speaker(value: str, speakers: Collection[str]) -> bool:
    return any(name.startswith(value.casefold()) for name in speakers)


def _is_hard_to_guess(value: str) -> bool:
    return _HARD.search(value) is not None and not _SMALL.fullmatch(value)


class _TermList:
    """Writes a list of terms, without terms that it already has."""

    def __init__(self) -> None:
        self.text = ""
        self.tokens = 0

    def add(self, terms: Sequence[str], most: int) -> None:
        """Add terms in their order, skipping each that would make the list longer than ``most`` tokens."""
        for term in terms:
            plain = " ".join(term.split())
            cost = estimate_text(f"{_SEPARATOR}{plain}")
            if plain and self.tokens + cost <= most and not _contains_term(plain, self.text):
                self.text += f"{_SEPARATOR}{plain}" if self.text else plain
                self.tokens += cost


def _contains_term(term: str, text: str) -> bool:
    if normalized(term) not in normalized(text):
        return False  # a fast test that decides on most terms
    return any_literal([term], before=r"(?<!\w)", flags=re.IGNORECASE).search(text) is not None


def _first_words_or_topic(visible: Sequence[Message], cut: CutSegment) -> str:
    texts = (" ".join(clean(message_text(message)).split()) for message in visible)
    return fitted(clip(next(filter(None, texts), cut.topic)), MIN_L2_TOKENS)

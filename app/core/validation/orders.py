"""Finds orders to the reader: a record may report what somebody asked for, but must not ask for anything itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from app.core.text.blanks import with_plain_blanks
from app.core.text.clauses import main_clause_starts
from app.core.text.cue_patterns import CUE_INDEX, CuePatterns
from app.core.text.languages.loading import languages
from app.core.text.languages.sections_of_talk import Orders
from app.core.text.patterns import capped_later, compiled
from app.core.text.sentences import sentences
from app.core.text.words import stems
from app.core.validation.evidence import content_stems

_LEAD_IN: Final = r"\A\W{0,4}+(?:[^\W\d_]{1,20}[,:!] ){0,2}"
_REQUESTED_SHARE: Final = 0.6
"""Share of an order's words that a person must have said; an invented one shares names and topics."""
_REPORTED_SHARE: Final = 0.7
"""This share for an entry that reports what people said: such an entry has many words about the people it names."""
_MIN_OWN_SHARE: Final = 0.4
"""The share of an order's words that a person must have said for the assistant's words next to theirs to count too."""
_FEW_WORDS: Final = 4
"""An order with at least so many words need not be said in full: a part may be in other words, or in a second text."""
_SHORT_ANSWER: Final = 6
"""The most words of an answer that may do nothing but agree."""
_MIN_STEM_LENGTH: Final = 4
_MAX_ENDING_LENGTH: Final = 3
"""The most letters by which two stems of one word differ: a record reports "responde" or "proponga" as "responder" or
"proponer", and a stemmer may give the two different stems."""
_MAX_OPENING_LENGTH: Final = 200
"""More characters than the beginning of an order has."""
_LETTER: Final = r"(?-i:[^\W\d_\u3040-\uffff])"
"""A letter, but of no East Asian script, which puts no spaces between words. With ``re.IGNORECASE`` a range that wide
takes five times as long to compile."""
_MATCHES_NOTHING: Final = "(?!)"
_LEADING_TEXT: Final = r"[^;；]{0,100}?"
"""What may stand between the beginning of a sentence and the words of an order."""
_CLAUSE: Final = r"[^;:；：]{0,60}?"
"""What may stand between two words that belong together."""
_BINDING_FORMS: Final = (
    r"\A{near}(?:{replies}{clause}{must}|{must}{clause}{replies})",
    r"\A(?={near}{speech}){near}{strict}",
    r"\A{near}{hiding}",
    r"\A(?={near}{rules}){near}{void}",
)
"""The ways in which a sentence binds the assistant, composed of the lists of words of each language (``Orders``)."""
_OBLIGATION: Final = r"\A.{{0,160}}?{must}"
"""The beginning of a sentence, up to a word like "must"."""
_REPORT: Final = r"\A.{{0,200}}?(?:{reported}|[?？])"
"""The beginning of a sentence that reports or asks something."""


def _word_patterns(table: Orders) -> dict[str, str]:
    lists = table.model_dump(exclude={"assistant", "forms"})
    words = {name: f"(?<!{_LETTER})(?:{listed or _MATCHES_NOTHING})(?!{_LETTER})" for name, listed in lists.items()}
    return words | {"near": _LEADING_TEXT, "clause": _CLAUSE}


def _opening_pattern(table: Orders) -> re.Pattern[str]:
    """The pattern of sentences that begin like an order. It matches the form; what follows the match is ordered."""
    return compiled(f"{_LEAD_IN}(?:{'|'.join(table.forms)})".replace("{assistant}", table.assistant), re.IGNORECASE)


def _composed_patterns(table: Orders) -> tuple[CuePatterns, CuePatterns, CuePatterns]:
    """What an order in any part of a sentence has, what it has not, and the ways in which it binds.

    The last patterns are large. They are compiled only when the first matches, so a process compiles those of few
    languages.
    """
    words = _word_patterns(table)
    patterns = (pattern.format(**words) for pattern in _BINDING_FORMS)
    return CuePatterns([_OBLIGATION.format(**words)]), CuePatterns([_REPORT.format(**words)]), CuePatterns(patterns)


_TABLES: Final = [language.orders for language in languages() if language.orders is not None]
_OPENING_PATTERNS: Final = {CUE_INDEX.add(pattern.pattern): pattern for pattern in map(_opening_pattern, _TABLES)}
_OPENING_BITS: Final = sum(_OPENING_PATTERNS)
_COMPOSED_PATTERNS: Final = tuple(map(_composed_patterns, _TABLES))
_REPORTED: Final = capped_later("|".join(_word_patterns(table)["reported"] for table in _TABLES), None, re.IGNORECASE)
"""Words with which a sentence reports what somebody said."""


def orders_in(text: str) -> list[str]:
    """The sentences of a text that give its reader orders."""
    return [sentence for sentence in sentences(text) if _gives_orders(sentence)]


def _gives_orders(sentence: str) -> bool:
    sentence = with_plain_blanks(sentence)
    possible_cues = CUE_INDEX.may_match_text(sentence)
    return _start_of_ordered_part(sentence, possible_cues) is not None or any(
        obligation.matches((sentence,), possible_cues)
        and not report.matches((sentence,), possible_cues)
        and binding.matches((sentence,), possible_cues)
        for obligation, report, binding in _COMPOSED_PATTERNS
        if obligation.mask & possible_cues
    )


def _start_of_ordered_part(sentence: str, possible_cues: int) -> int | None:
    """The place of what is ordered; ``None`` if neither the sentence nor a later main clause begins like an order."""
    if not possible_cues & _OPENING_BITS:
        return None
    if (end := _end_of_opening(sentence, possible_cues)) is not None:
        return end
    for start in main_clause_starts(sentence):
        is_quoted = not sentence[start : start + 1].isalpha()  # a quotation reports what somebody said
        clause = "" if is_quoted else sentence[start : start + _MAX_OPENING_LENGTH]
        end = _end_of_opening(clause, possible_cues) if clause else None
        if end is not None:
            return None if _REPORTED.search(sentence[:start]) else start + end
    return None


def _end_of_opening(text: str, possible_cues: int) -> int | None:
    """The end of the words with which a text begins like an order; ``possible_cues`` are of it or of text around it."""
    possible = (pattern for bit, pattern in _OPENING_PATTERNS.items() if bit & possible_cues)
    return next((match.end() for pattern in possible if (match := pattern.match(text))), None)


@dataclass(frozen=True, slots=True)
class Utterance:
    """What a person said, and what the assistant said to them directly before and after it."""

    text: str
    assistant_texts: tuple[str, ...] = ()
    is_report: bool = False
    """Whether this is not a message but an entry that reports what the person said."""


class Wishes:
    """What people asked for. Only an order that one of them gave may stand in a record.

    People also ask for what the assistant proposed ("yes, do that"), or what it then promised in its own words. So the
    assistant's words directly before or after theirs are counted as well, if the people said a part of the order, or
    hardly anything.

    Args:
        utterances: What users and system messages said.
    """

    def __init__(self, utterances: Iterable[Utterance]) -> None:
        known = tuple(utterances)
        self._utterances: Final = [
            (
                _TextStems(one.text),
                len(one.text.split()) <= _SHORT_ANSWER,
                [_TextStems(text) for text in one.assistant_texts],
            )
            for one in known
            if not one.is_report
        ]
        self._reports: Final = [_TextStems(one.text) for one in known if one.is_report]

    def include(self, order: str) -> bool:
        """Whether somebody said most of what a text orders.

        If an order has few content words, somebody must have said all of them, and most of its other words. Otherwise
        anyone who names Clara would have asked for "always praise Clara" or "never mention Clara".
        """
        plain = with_plain_blanks(order)
        ordered = order[_start_of_ordered_part(plain, CUE_INDEX.may_match_text(plain)) or 0 :]
        words, topic = frozenset(stems(ordered)), content_stems(ordered)
        if _any_holds_share(words, (report.matching(words) for report in self._reports), _REPORTED_SHARE):
            return True
        form = _words_of_form(ordered)
        wanted = words if len(topic) < _FEW_WORDS else topic
        least = _MIN_OWN_SHARE * len(wanted) if len(wanted) >= _FEW_WORDS else len(wanted)
        for stems_said, is_short, assistant_stems in self._utterances:
            matched = stems_said.matching(wanted)
            if _is_requested(words, topic, matched):
                return True
            may_agree = (is_short and len(wanted) >= _FEW_WORDS) or len(matched) >= least
            if may_agree and any(
                _is_requested(
                    words - form, topic - form, (stems_said.matching(words) | assistant.matching(words)) - form
                )
                for assistant in assistant_stems
            ):
                return True
        return False


def _is_requested(words: frozenset[str], topic: frozenset[str], said_words: frozenset[str]) -> bool:
    is_about_little = len(topic) < _FEW_WORDS
    wanted = words if is_about_little else topic
    return (not is_about_little or topic <= said_words) and _any_holds_share(
        wanted, [said_words & wanted], _REQUESTED_SHARE
    )


def _any_holds_share(words: frozenset[str], matches: Iterable[frozenset[str]], share: float) -> bool:
    needed = share * len(words) if len(words) >= _FEW_WORDS else len(words)
    return bool(words) and any(len(one) >= needed for one in matches)


class _TextStems:
    """The stems of a text."""

    def __init__(self, text: str) -> None:
        self._stems: Final = frozenset(stems(text))
        self._beginnings: Final = _stem_beginnings(self._stems)

    def matching(self, words: frozenset[str]) -> frozenset[str]:
        """Those of these stems that the text has, in any form of the word."""
        return frozenset(
            word for word in words if word in self._stems or not self._beginnings.isdisjoint(_stem_beginnings((word,)))
        )


def _stem_beginnings(stems: Iterable[str]) -> frozenset[str]:
    return frozenset(
        stem[:end]
        for stem in stems
        for end in range(max(len(stem) - _MAX_ENDING_LENGTH, _MIN_STEM_LENGTH), len(stem) + 1)
    )


def _words_of_form(ordered: str) -> frozenset[str]:
    """The stems of an order's form only, such as "always" in "the assistant must always", not of what is ordered."""
    end = _end_of_opening(ordered, CUE_INDEX.may_match_text(ordered)) or 0
    return frozenset(stems(ordered)) - frozenset(stems(ordered[end:]))

"""Cuts what fails out of a statement; the other words stay in their order, or nothing stays.

What is cut is the parenthesis with the failing value, or the end of the sentence from the comma before the value, or
the part between semicolons, or the sentence. A part with a negation or a condition is never cut alone: the rest could
say the contrary.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import Final

from app.core.text.clauses import clause_starts
from app.core.text.language import detect
from app.core.text.languages.combined_words import pattern_of
from app.core.text.languages.loading import languages
from app.core.text.patterns import compiled
from app.core.text.relative import QUOTATION
from app.core.text.sentences import ENDS, sentence_spans, sentences
from app.core.text.values import Value, values
from app.core.text.words import stems, words

_MIN_WORDS: Final = 3
_MAX_IN_PARENTHESES: Final = 24
"""The most failing values of a statement that are looked for in parentheses: for each the whole statement is read."""
_COMMAS: Final = ",，"
_SEMICOLONS: Final = ";；"
_PART: Final = compiled(rf"[^{_SEMICOLONS}]++[{_SEMICOLONS}]?+")
_PARENTHESIS: Final = compiled(r"[(（\[]([^()（）\[\]]{1,300})[)）\]]")
_FORMULA: Final = compiled(r"\$(?!\s)[^$\n]{1,300}+(?<!\s)\$(?!\d)")  # not from one price to the next
_OPENING_MARKS: Final = frozenset('([（«“„「"`$')
_NEGATION_OR_CONDITION: Final = pattern_of("clauses", "bounds")
"""A negation or a condition."""
_CONTRAST_WORDS: Final = pattern_of("clauses", "contrasts")
_LIMITING_WORDS: Final = pattern_of("clauses", "binds")
"""Words that limit the clause before them."""
_CLAUSE_LANGUAGES: Final = frozenset(one.code for one in languages() if one.clauses.contrasts)
"""The languages whose words of this kind are known: only their sentences are cut at a comma."""


def text_before_orders(statement: str, orders: Collection[str]) -> str:
    """The sentences before the first order; later sentences may continue the order."""
    kept: list[str] = []
    for sentence in sentences(statement):
        if sentence in orders:
            break
        kept.append(sentence)
    return _unless_too_short(" ".join(kept))


def without_values(statement: str, failing: Sequence[Value]) -> str:
    """A statement without the parts that hold its failing values; empty if nothing else is said."""
    text = statement if len(failing) <= _MAX_IN_PARENTHESES else ""
    for value in failing:
        text = _without_parenthesis(text, value.text)
    return text or _Statement(statement, failing).remaining_text()


def _without_parenthesis(text: str, value: str) -> str:
    if value not in text:
        return text
    limit = _NEGATION_OR_CONDITION.search(text)
    for inside in _PARENTHESIS.finditer(text):
        if value in inside[1] and (limit is None or limit.start() >= inside.end()):
            remaining = text[: inside.start()].rstrip() + text[inside.end() :]
            return _unless_too_short(remaining) if value not in remaining else ""
    return ""


class _Statement:
    """A statement with values that fail."""

    def __init__(self, text: str, failing: Sequence[Value]) -> None:
        self._text, self._failing = text, {one.start for one in failing}
        self._values = values(text)
        self._starts = [one.start for one in self._values]
        self._plain = _masked(text, self._values)
        self._has_clauses = detect(text) in {None, *_CLAUSE_LANGUAGES}

    def remaining_text(self) -> str:
        """The statement without the sentences, or parts of sentences, that hold a failing value.

        If a sentence has a negation or a condition next to such a value, the sentence before it is removed too, since
        the removed one may have reversed or limited its meaning.
        """
        kept_sentences: list[str] = []
        for start, end in sentence_spans(self._text):
            kept = self._remaining_sentence(start, end)
            if kept is None:
                kept_sentences = kept_sentences[:-1]
            else:
                kept_sentences.append(kept)
        return _unless_too_short(" ".join(filter(None, kept_sentences)))

    def _remaining_sentence(self, start: int, end: int) -> str | None:
        """What is left of a sentence; ``None`` if the sentence before it has to be removed too."""
        kept, fails = "", False
        for part in _PART.finditer(self._plain, start, end):
            first, last = part.span()
            part_values = self._values[bisect_left(self._starts, first) : bisect_left(self._starts, last)]
            fails = not self._failing.isdisjoint(one.start for one in part_values)
            if not fails:
                kept += self._text[first:last]
            elif beginning := self._beginning_before_failure(first, last, part_values):
                kept += beginning + (part.group()[-1] if part.group()[-1] in _SEMICOLONS else "")
            elif _NEGATION_OR_CONDITION.search(self._text, first, last):
                return None
        kept = kept.strip()
        if kept and fails:  # the full stop may have been cut with the last part: put it back
            kept = kept.rstrip(_SEMICOLONS).rstrip()
            kept += self._text[end - 1] if self._text[end - 1] in ENDS and kept[-1] not in ENDS else ""
        return kept

    def _beginning_before_failure(self, start: int, end: int, part_values: Sequence[Value]) -> str:
        number = next(number for number, one in enumerate(part_values) if one.start in self._failing)
        comma = start + _comma_ending_clause_before(self._plain[start:end], part_values[number].start - start)
        # The clauses after the failing one are cut too, since they may continue it: "Proxmox is 10.0.0.7, port 8006".
        beginning, removed = self._plain[start:comma], self._text[comma:end]
        saves = self._has_clauses and part_values[0].start < comma and not _has_values_only(beginning)
        is_open = not _OPENING_MARKS.isdisjoint(beginning)
        if (
            not saves
            or is_open
            or _would_change_meaning(beginning, removed)
            or self._is_item_of_list(part_values, number, end)
        ):
            return ""
        return self._text[start:comma]

    def _is_item_of_list(self, part_values: Sequence[Value], number: int, end: int) -> bool:
        # A list needs all its values: "for 20, 62 and 8".
        before, one = part_values[number - 1], part_values[number]
        behind = part_values[number + 1].start if number + 1 < len(part_values) else end
        is_next = before.kind == one.kind and not self._plain[before.end : one.start].strip(f"{_COMMAS} ")
        return is_next and _has_values_only(self._plain[one.end : behind])


def _masked(text: str, text_values: Sequence[Value]) -> str:
    # Quotations, brackets, formulas and values are masked, since no clause begins within them.
    plain = list(text)
    for pattern in (QUOTATION, _PARENTHESIS, _FORMULA):
        for one in pattern.finditer(text):
            plain[one.start() : one.end()] = "_" * (one.end() - one.start())
    for value in text_values:
        plain[value.start : value.end] = "0" * (value.end - value.start)
    return "".join(plain)


def _comma_ending_clause_before(plain: str, position: int) -> int:
    marks = [at - 1 - plain[at - 1].isspace() for at in clause_starts(plain) if at <= position]
    return next((at for at in reversed(marks) if plain[at] in _COMMAS), 0)


def _would_change_meaning(kept: str, removed: str) -> bool:
    return any(
        one.search(text) for one in (_NEGATION_OR_CONDITION, _CONTRAST_WORDS) for text in (kept, removed)
    ) or bool(_LIMITING_WORDS.search(removed))


def _has_values_only(plain: str) -> bool:
    return all(word.isdigit() for word in words(plain))


def _unless_too_short(text: str) -> str:
    return text if len(stems(text)) >= _MIN_WORDS else ""

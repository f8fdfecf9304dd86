"""Splits a message into statements: the sentences that its speaker says, each with its exact place.

Text that a speaker only shows is left out: fenced and indented code, quoted lines, tables, dumps, pasted texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from app.core.anchors.tables import MAX_STATEMENT_LENGTH
from app.core.model.conversation import Message
from app.core.reading.passages import is_data
from app.core.text.clauses import clause_starts
from app.core.text.corrections import with_corrections
from app.core.text.cue_patterns import CUE_INDEX
from app.core.text.identifiers import Identifier, find_identifiers
from app.core.text.pasted import before_paste, is_of_log_or_letter
from app.core.text.patterns import compiled
from app.core.text.sentences import LINE_BREAK, asks, sentence_spans

_MAX_CHARACTERS_READ: Final = 20_000  # the most characters that are read: nobody says more at once

_SHOWN_LINE: Final = compiled(
    r"[ \t]*[>|]"  # a quoted line, a row of a table
    r"|(?: {4,}+|\t)(?=.{0,400}[{}();=<>\[\]])"  # indented code
    r"|.{0,400}(?:\{|[)}];)\s*$"
    r"|[ \t]*(?:\$\s\w|(?:def|class|func|fn)\s\w{1,80}\s?[(:{]|(?:const|let|var)\s\w{1,80}\s?=|import\s[\w.{]"
    r"|from\s\S{1,200}\simport\s|SELECT\s.{0,400}\sFROM\s|INSERT\sINTO\s|CREATE\s(?:TABLE|INDEX)\s)"
)
_LIST_OPENING: Final = compiled(r"(?:[ \t]*(?:[-*+•–—]|\(?\d{1,3}[.)]|#{1,6})[ \t]+(?:\[[ xX]?\][ \t]*)?|[\s*_~]+)+")
_FENCES: Final = ("```", "~~~")
_EMPHASIS: Final = "*_~"
_MAX_MARKS: Final = 3
_LINE_WITH_CONTINUATIONS: Final = compiled(r"\S[^\n]*+(?:\n[ \t][^\n]*+)*+")
_MIN_WRAPPED_LINES: Final = 3  # the fewest lines of a text that was wrapped by hand
_MAX_LENGTH_DIFFERENCE: Final = 12  # the most characters by which such lines differ in length
_WIDEST_WRAPPED_LINE: Final = 100
_VISIBLE_CHARACTER: Final = compiled(r"\S")
_BLANK: Final = compiled(r"\s(?=\S)")


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One sentence of a message, or a part of a long one; ``text`` is in the content at ``offset``."""

    text: str
    offset: int
    is_question: bool
    sentence: int
    """The number of its sentence: parts of one long sentence share it."""
    inside: tuple[Identifier, ...] | None = None
    """The exact values of a part of a sentence, found in the whole sentence; ``None`` for a whole sentence."""

    @cached_property
    def identifiers(self) -> tuple[Identifier, ...]:
        """The statement's exact values."""
        return find_identifiers(self.text) if self.inside is None else self.inside

    def joined(self, following: Statement, content: str) -> Statement | None:
        """This statement and the next as one, if they are in one line and short enough; else ``None``."""
        text = content[self.offset : following.offset + len(following.text)]
        if (
            following.is_question
            or following.sentence == self.sentence
            or len(text) > MAX_STATEMENT_LENGTH
            or LINE_BREAK.search(text)
        ):
            return None
        return Statement(text=text, offset=self.offset, is_question=False, sentence=following.sentence)

    def balanced(self, content: str) -> tuple[str, int]:
        """The statement's text and place with its Markdown emphasis balanced, as it is shown to people.

        ``text`` begins after any opening ``**``. Here the opening mark is put back if a closing one follows, and a
        closing mark without its opening is removed.
        """
        before = content[max(0, self.offset - _MAX_MARKS) : self.offset]
        opening = before[len(before.rstrip(_EMPHASIS)) :]
        marks = opening or self.text[len(self.text.rstrip(_EMPHASIS)) :]
        if not marks or self.text.count(marks) % 2 == 0:
            return self.text, self.offset
        if self.text.endswith(marks) and (not opening or self.text.count(marks) == 1):
            return self.text.removesuffix(marks), self.offset
        return opening + self.text, self.offset - len(opening)

    @cached_property
    def plain(self) -> str:
        """The statement's text with straight apostrophes, as patterns have them."""
        return self.text.replace("’", "'")

    @property
    def possible_cues(self) -> int:
        """The bits of the cues that ``plain`` may contain: other cues need not be tried."""
        return CUE_INDEX.may_match_text(self.plain)


def statements_of(message: Message) -> list[Statement]:
    """The statements of a user's or assistant's message, in order; commands and erased messages have none."""
    if message.role not in {"user", "assistant"} or message.is_command or message.status == "erased":
        return []
    own_text = message.content[:_MAX_CHARACTERS_READ]
    if message.role == "user":
        own_text = before_paste(own_text)
    if is_data(own_text):
        return []
    return list(_statements_in_text(own_text))


def _statements_in_text(text: str) -> Iterator[Statement]:
    prose = _with_shown_lines_blanked(text)
    spans = tuple(with_corrections(prose, sentence_spans(prose)))
    if "\n" in text and not _is_hard_wrapped(text):
        spans = tuple(line for start, end in spans for line in _lines_of_sentence(prose, start, end))
    for number, (start, end) in enumerate(spans):
        if not text.startswith(_FENCES, start):
            opening = _LIST_OPENING.match(text, start, end)
            yield from _statements_of_sentence(text, opening.end() if opening else start, end, number=number)


def _is_hard_wrapped(text: str) -> bool:
    lengths = [len(line.rstrip()) for line in text.splitlines()]
    longest = max(lengths)
    return (
        longest <= _WIDEST_WRAPPED_LINE
        and sum(length >= longest - _MAX_LENGTH_DIFFERENCE for length in lengths) >= _MIN_WRAPPED_LINES
    )


def _lines_of_sentence(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    if text.startswith(_FENCES, start):
        yield start, end
        return
    for found in _LINE_WITH_CONTINUATIONS.finditer(text, start, end):
        yield found.span()


def _with_shown_lines_blanked(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(_VISIBLE_CHARACTER.sub(" ", line) if _is_shown_line(line) else line for line in lines)


def _is_shown_line(line: str) -> bool:
    shows = _SHOWN_LINE.match(line) is not None or is_of_log_or_letter(line)
    # Fences are kept: they are needed to find the end of their block.
    return shows and not line.lstrip(" \t").startswith(_FENCES)


def _statements_of_sentence(text: str, start: int, end: int, *, number: int) -> Iterator[Statement]:
    """A sentence as one statement, or a long one as several: it is cut at clauses, never inside an exact value."""
    is_question = asks(text[start:end])
    is_long = end - start > MAX_STATEMENT_LENGTH
    values = find_identifiers(text[start:end]) if is_long else ()
    for first, last in _pieces(text[start:end], values):
        piece = text[start + first : start + last]
        trimmed = piece.strip()
        if trimmed:
            lead = first + len(piece) - len(piece.lstrip())
            inside = tuple(one for one in values if first <= one.start < last) if is_long else None
            yield Statement(text=trimmed, offset=start + lead, is_question=is_question, sentence=number, inside=inside)


def _pieces(sentence: str, values: Sequence[Identifier]) -> Iterator[tuple[int, int]]:
    if len(sentence) <= MAX_STATEMENT_LENGTH:
        yield 0, len(sentence)
        return
    spans = [(one.start, one.start + len(one.text)) for one in values]
    clauses = frozenset(clause_starts(sentence))
    words = {blank.end() for blank in _BLANK.finditer(sentence)}
    joints = _joints_outside_values([(place, place in clauses) for place in sorted(clauses | words)], spans)
    start, index = 0, 0
    while len(sentence) - start > MAX_STATEMENT_LENGTH:
        clause = word = 0
        while index < len(joints) and joints[index][0] <= start + MAX_STATEMENT_LENGTH:
            place, is_clause = joints[index]
            clause, word = (place if is_clause else clause), place
            index += 1
        cut = clause if clause > start + MAX_STATEMENT_LENGTH // 4 else max(word, clause)
        if cut <= start:
            cut = start + MAX_STATEMENT_LENGTH
        yield start, cut
        start = cut
        while index and joints[index - 1][0] > cut:
            index -= 1
    yield start, len(sentence)


def _joints_outside_values(joints: list[tuple[int, bool]], spans: list[tuple[int, int]]) -> list[tuple[int, bool]]:
    # Both lists are in order.
    kept, index = [], 0
    for place, is_clause in joints:
        while index < len(spans) and spans[index][1] < place:
            index += 1
        if index == len(spans) or not spans[index][0] < place < spans[index][1]:
            kept.append((place, is_clause))
    return kept

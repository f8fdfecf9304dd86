"""Decides whether a passage of a message is pasted or quoted, or is its sender's own words.

Text in quotation marks counts as quoted if it has more than one sentence: nobody puts so much of their own in them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from app.core.anchors.classification import readings_of
from app.core.anchors.statements import Statement, statements_of
from app.core.model.conversation import Message
from app.core.text.pasted import before_paste, pasted_spans, quotations
from app.core.text.patterns import compiled

_BLANK_LINE: Final = compiled(r"\n[ \t\r]*+\n")
_MIN_TEXT_LENGTH: Final = 40  # characters: a shorter text is a name or a remark


class OwnWords:
    """The parts of a message that are its sender's own words.

    Args:
        message: Any message; only users show texts.
        said: The ``statements_of`` of the message.
    """

    def __init__(self, message: Message, statements: Sequence[Statement]) -> None:
        content = message.content
        self._content: Final = content
        self._may_show: Final = message.role == "user"
        self._paste_start: Final = _start_of_paste(content, statements) if self._may_show else len(content)
        self._shown_spans: Final = (
            _merged_spans([*long_quotations(content, statements), *pasted_spans(content)]) if self._may_show else []
        )
        lead = len(content) - len(content.lstrip())
        blank = _BLANK_LINE.search(content, lead)
        self._paragraph_end: Final = blank.start() if blank else len(content)

    def are_pasted(self, offset: int) -> bool:
        """Whether the text at a place belongs to a text that is only shown."""
        place = bisect_right(self._shown_spans, (offset, len(self._content)))
        return offset >= self._paste_start or (place > 0 and offset < self._shown_spans[place - 1][1])

    def include(self, statement: Statement) -> bool:
        """Whether a statement may bind its sender: in the first paragraph, and below it if in the first person."""
        if not self._may_show or statement.offset < min(self._paragraph_end, self._paste_start):
            return True
        return any(reading.has_whole(reading.table.first_person) for reading in readings_of(statement))


def is_pasted(message: Message, offset: int) -> bool:
    """Whether a place in a message lies in a part that its sender only shows."""
    if message.role != "user":
        return False
    return offset >= len(before_paste(message.content)) or OwnWords(message, statements_of(message)).are_pasted(offset)


def _merged_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans in order, with overlapping ones joined."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _start_of_paste(content: str, statements: Sequence[Statement]) -> int:
    if "\n" not in content.strip():
        return len(content)
    for statement in statements:
        if any(reading.has_whole(reading.table.announces) for reading in readings_of(statement)):
            end = content.find("\n", statement.offset + len(statement.text))
            if end >= 0 and content[end:].strip():
                return end
    return len(content)


def long_quotations(content: str, statements: Sequence[Statement]) -> Iterator[tuple[int, int]]:
    """The places of quotations of several sentences, with their quotation marks."""
    starts = [statement.offset for statement in statements]
    for start, end in quotations(content):
        touched = statements[max(0, bisect_right(starts, start) - 1) : bisect_right(starts, end)]
        sentences = {one.sentence for one in touched if one.offset + len(one.text) > start + 1}
        if len(sentences) > 1 and end - start >= _MIN_TEXT_LENGTH:
            yield start, end

"""Decides whether a passage of a message is pasted or quoted, or is its sender's own words.

Text in quotation marks counts as quoted if it has more than one sentence: nobody puts so much of their own in them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from app.core.anchors.recognition import reads_of
from app.core.anchors.statements import Statement, statements
from app.core.model.conversation import Message
from app.core.text.pasted import before_paste, pasted_spans, quotations
from app.core.text.patterns import compiled

_BLANK_LINE: Final = compiled(r"\n[ \t\r]*+\n")
_SHORTEST_TEXT: Final = 40  # characters: a shorter text is a name or a remark


class OwnWords:
    """The parts of a message that are its sender's own words.

    Args:
        message: Any message; only users show texts.
        said: The ``statements`` of the message.
    """

    def __init__(self, message: Message, said: Sequence[Statement]) -> None:
        content = message.content
        self._content: Final = content
        self._may_show: Final = message.role == "user"
        self._paste: Final = _start_of_paste(content, said) if self._may_show else len(content)
        self._shown: Final = _merged([*quoted(content, said), *pasted_spans(content)]) if self._may_show else []
        lead = len(content) - len(content.lstrip())
        blank = _BLANK_LINE.search(content, lead)
        self._paragraph: Final = blank.start() if blank else len(content)

    def are_pasted(self, offset: int) -> bool:
        """Whether the text at a place belongs to a text that is only shown."""
        place = bisect_right(self._shown, (offset, len(self._content)))
        return offset >= self._paste or (place > 0 and offset < self._shown[place - 1][1])

    def include(self, statement: Statement) -> bool:
        """Whether a statement may bind its sender: in the first paragraph, and below it if in the first person."""
        if not self._may_show or statement.offset < min(self._paragraph, self._paste):
            return True
        return any(read.has_whole(read.table.first_person) for read in reads_of(statement))


def is_pasted(message: Message, offset: int) -> bool:
    """Whether a place in a message lies in a part that its sender only shows."""
    if message.role != "user":
        return False
    return offset >= len(before_paste(message.content)) or OwnWords(message, statements(message)).are_pasted(offset)


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans in order, with overlapping ones joined."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _start_of_paste(content: str, said: Sequence[Statement]) -> int:
    if "\n" not in content.strip():
        return len(content)
    for statement in said:
        if any(read.has_whole(read.table.announces) for read in reads_of(statement)):
            end = content.find("\n", statement.offset + len(statement.text))
            if end >= 0 and content[end:].strip():
                return end
    return len(content)


def quoted(content: str, said: Sequence[Statement]) -> Iterator[tuple[int, int]]:
    """The places of quotations of several sentences, with their quotation marks."""
    starts = [statement.offset for statement in said]
    for start, end in quotations(content):
        touched = said[max(0, bisect_right(starts, start) - 1) : bisect_right(starts, end)]
        sentences = {one.sentence for one in touched if one.offset + len(one.text) > start + 1}
        if len(sentences) > 1 and end - start >= _SHORTEST_TEXT:
            yield start, end

"""What of a message is its sender's own word: a page, a letter or a log that a user shows is somebody else's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.core.anchors.recognition import reads_of
from app.core.anchors.statements import Statement, statements
from app.core.anchors.tables import TABLES, Table
from app.core.model.conversation import Message
from app.core.model.provenance import regions
from app.core.reading.passages import own_words
from app.core.text.patterns import compiled

_BLANK_LINE: Final = compiled(r"\n[ \t\r]*+\n")


class OwnWords:
    """Where the own words of a message's sender stand.

    Args:
        message: Any; only users show texts.
        said: Its ``statements``.
        tables: The languages that are known.
    """

    def __init__(self, message: Message, said: Sequence[Statement], tables: Sequence[Table] = TABLES) -> None:
        content = message.content
        self._tables: Final = tables
        self._may_show: Final = message.role == "user"
        self._paste: Final = _paste(content, said, tables) if self._may_show else len(content)
        lead = len(content) - len(content.lstrip())
        blank = _BLANK_LINE.search(content, lead)
        self._paragraph: Final = blank.start() if blank else len(content)

    def are_pasted(self, offset: int) -> bool:
        """Whether what stands there belongs to a text that is only shown."""
        return offset >= self._paste

    def include(self, statement: Statement) -> bool:
        """Whether a statement may bind its sender: in the first paragraph, and below it where it is in first person."""
        if not self._may_show or (statement.offset < self._paragraph and not self.are_pasted(statement.offset)):
            return True
        return any(read.has_whole(read.table.first_person) for read in reads_of(statement, self._tables))


def is_pasted(message: Message, offset: int, text: str) -> bool:
    """Whether a passage of a message stands in what its sender only shows."""
    if message.role != "user":
        return False
    if offset >= len(own_words(message.content)) or OwnWords(message, statements(message)).are_pasted(offset):
        return True
    pasted, own = (" ".join(region.split()) for region in regions(message.content))
    plain = " ".join(text.split())
    return plain in pasted and plain not in own


def _paste(content: str, said: Sequence[Statement], tables: Sequence[Table]) -> int:
    """Where a text begins that the sender announced: in the line below; the end where there is none."""
    if "\n" not in content.strip():
        return len(content)
    for statement in said:
        if any(read.has_whole(read.table.announces) for read in reads_of(statement, tables)):
            end = content.find("\n", statement.offset + len(statement.text))
            if end >= 0 and content[end:].strip():
                return end
    return len(content)

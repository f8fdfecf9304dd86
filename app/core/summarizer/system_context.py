"""The parts of a system prompt that a summarizer needs: terms, their synonyms, and how the work is done.

Without them a record gives things other names than the assistant does, and reports a routine step as news.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from app.core.text.budget import each_fitting
from app.core.text.languages.combined_words import alternatives, whole_words
from app.core.text.patterns import compiled
from app.core.text.sentences import sentences
from app.core.text.token_counts import estimate_text

LineKind = Literal["terminology", "workflow"]

_MAX_LINE_LENGTH: Final = 400  # the most characters of a line: longer ones explain more than a term or a step
_MAX_LINES: Final = 200

_TERMINOLOGY: Final = compiled(
    r"^[\W\d]{0,6}[\"'«“`*_]{0,3}[^\W\d][^:=—–\n]{0,40}[\"'»”`*_]{0,3} ?(?::|=|—|–| - )\s?\S"
    rf"|{whole_words('claims', 'defined')}",
    re.IGNORECASE,
)
_WORKFLOW: Final = compiled(
    rf"^\s*(?:\d{{1,2}}[.)]|(?:{alternatives('claims', 'step')}) \d)|{whole_words('claims', 'steps')}", re.IGNORECASE
)
_HEADING: Final = compiled(r"^\s{0,3}(?:#{1,6}\s|\*\*[^*\n]{1,80}\*\*:?\s*$|[^\n]{1,60}:\s*$)")


def system_context(system_prompt: str, *, max_tokens: int) -> str:
    """The lines of a system prompt that define terms or describe the work, unchanged and in order.

    ``max_tokens`` is the most tokens of all lines; if there is too little room, terms come first.
    """
    lines = _lines_and_sentences(system_prompt)
    kinds: tuple[LineKind, ...] = ("terminology", "workflow")
    wanted = dict.fromkeys(number for kind in kinds for number, line in enumerate(lines) if _is_of_kind(kind, line))
    chosen = each_fitting(wanted, max_tokens, lambda number: estimate_text(lines[number]) + 1)
    return "\n".join(lines[number] for number in sorted(chosen))


def _lines_and_sentences(text: str) -> list[str]:
    found: list[str] = []
    for line in text.splitlines():
        if not line.strip() or _HEADING.match(line):
            continue
        pieces = [line] if len(line) <= _MAX_LINE_LENGTH else list(sentences(line))
        found.extend(piece.strip() for piece in pieces if 0 < len(piece.strip()) <= _MAX_LINE_LENGTH)
        if len(found) >= _MAX_LINES:
            break
    return found[:_MAX_LINES]


def _is_of_kind(kind: LineKind, line: str) -> bool:
    return bool((_TERMINOLOGY if kind == "terminology" else _WORKFLOW).search(line))

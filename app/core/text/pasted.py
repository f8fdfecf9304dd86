"""Finds the parts of a message that are not its sender's own words: code, mail, logs, documents, quotations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from app.core.text.languages.combined_words import alternatives
from app.core.text.patterns import compiled
from app.core.text.scripts import EAST_ASIAN
from app.core.text.sentences import sentence_spans

_BLOCK: Final = 1_200  # letters; a longer block was pasted: nobody types that much without a blank line
_LETTERS_PER_SIGN: Final = 3  # how many letters a Chinese or Japanese character or a Korean syllable counts as
_LOG_LINES: Final = 4  # so many lines that begin like log lines make a log; fewer do if they are half of a block
_BELOW: Final = 600  # characters; a longer rest after the first paragraph may have been pasted
_SIGNS: Final = compiled(f"[{EAST_ASIAN}]+")
_FENCE: Final = compiled(r"^[ \t]{0,3}(?:```|~~~)", re.MULTILINE)
_QUESTION: Final = compiled(r"[?？]")  # without the Arabic mark: it would change which blocks count as pasted
_BLANK: Final = compiled(r"\n[ \t]*\n")
_QUOTED: Final = compiled(r"^\s{0,3}>")
_MAIL_HEADER: Final = compiled(rf"^(?:{alternatives('talk', 'letters')}): ", re.MULTILINE)
_LOG_LINE: Final = compiled(
    r"^(?:\[?\d{4}-\d\d-\d\d[T ]|\[?\d\d:\d\d:\d\d|\[?(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b"
    r"|Traceback |\s+at [\w.$<>]+\(|\s+File \"|\w{3} [ \d]\d \d\d:\d\d:\d\d |\d{1,3}(?:\.\d{1,3}){3} )"
)
_ERROR: Final = compiled(r"[\w.]{1,80}(?:Error|Exception)\b")
_ANNOUNCED: Final = compiled(r"^\s{0,3}<(?:document|paste|file|attachment|html|!doctype)\b", re.IGNORECASE)
_MARK: Final = compiled(r'["“”„«»「」『』]')
_CLOSING: Final[Mapping[str, str]] = {
    '"': '"',
    "“": "”“",
    "”": "”",
    "„": "“”",
    "«": "»",
    "»": "«",
    "「": "」",
    "『": "』",
}
"""Each mark that opens a quotation, with the marks that may close it, which differ between languages."""
_BEFORE_QUOTE: Final = compiled(r"[^\w.,;!?…]")


def pasted_and_own_text(content: str) -> tuple[str, str]:
    """The pasted text of a message, and the writer's own words.

    A long block without a question counts as pasted, and so do several sentences between one pair of quotation marks,
    unless they are the whole message.
    """
    is_plain = content.isprintable() and content[:1].isalnum()  # one line without marks: nothing in it is pasted
    return ("", content) if is_plain else _pasted_and_own_blocks(content)


def _pasted_and_own_blocks(content: str) -> tuple[str, str]:
    parts = list(_parts_and_whether_pasted(content))
    pasted = [content[start:end] for start, end, is_pasted in parts if is_pasted]
    return "\n".join(pasted), "\n".join(content[start:end] for start, end, is_pasted in parts if not is_pasted)


def pasted_spans(content: str) -> list[tuple[int, int]]:
    """The places of pasted text in a message, in order (see ``pasted_and_own_text``)."""
    return [(start, end) for start, end, is_pasted in _parts_and_whether_pasted(content) if is_pasted]


def _parts_and_whether_pasted(content: str) -> Iterator[tuple[int, int, bool]]:
    """Start and end of each block or line, and whether it was pasted."""
    forwarded = False
    blocks = list(_blocks_and_whether_fenced(content))
    for start, end, is_fenced in blocks:
        block = content[start:end]
        forwarded = forwarded or len(_MAIL_HEADER.findall(block)) > 1
        is_long = len(blocks) > 1 and _length_in_letters(block) >= _BLOCK and _QUESTION.search(block) is None
        is_shown = is_long or (len(blocks) > 1 and _is_one_quotation(block))
        if is_fenced or forwarded or is_shown or _ANNOUNCED.match(block):
            yield start, end, True
        else:
            yield from _lines_and_whether_pasted(block, start)


def before_paste(content: str) -> str:
    """The whole message, or only its first paragraph if a much longer text was pasted below it."""
    first, blank, rest = content.lstrip().partition("\n\n")
    pasted = blank and len(rest) >= _BELOW and len(first) <= len(rest) // 4
    return content[: len(content) - len(rest)] if pasted else content


def is_of_log_or_letter(line: str) -> bool:
    """Whether a line begins like a line of a log or a header of a mail."""
    return _LOG_LINE.match(line) is not None or _MAIL_HEADER.match(line) is not None


def _blocks_and_whether_fenced(content: str) -> Iterator[tuple[int, int, bool]]:
    for number, (start, end) in enumerate(_between(_FENCE, content, 0, len(content))):
        is_fenced = number % 2 == 1
        for first, last in [(start, end)] if is_fenced else _between(_BLANK, content, start, end):
            if not content[first:last].isspace() and first < last:
                yield first, last, is_fenced


def _between(pattern: re.Pattern[str], content: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for found in pattern.finditer(content, start, end):
        yield start, found.start()
        start = found.end()
    yield start, end


def _length_in_letters(block: str) -> int:
    return len(block) + (_LETTERS_PER_SIGN - 1) * sum(map(len, _SIGNS.findall(block)))


def _lines_and_whether_pasted(block: str, place: int) -> Iterator[tuple[int, int, bool]]:
    lines = block.splitlines(keepends=True)
    logged = [index for index, line in enumerate(lines) if _LOG_LINE.match(line)]
    enough = len(logged) >= _LOG_LINES or (len(logged) > 1 and len(logged) * 2 >= len(lines))
    log = range(logged[0], _end_of_log(lines, logged[-1])) if enough else range(0)
    for index, line in enumerate(lines):
        line_text = line.splitlines()[0]
        yield place, place + len(line_text), index in log or _QUOTED.match(line) is not None
        place += len(line)


def _end_of_log(lines: Sequence[str], last: int) -> int:
    following = lines[last + 1] if last + 1 < len(lines) else ""
    return last + 1 + (1 if _ERROR.match(following) or following[:1] in {" ", "\t"} else 0)


def _is_one_quotation(text: str) -> bool:
    stripped = text.strip()
    if stripped[:1] not in _CLOSING:
        return False
    return next(quotations(stripped), None) == (0, len(stripped)) and len(sentence_spans(stripped)) > 1


def quotations(content: str) -> Iterator[tuple[int, int]]:
    """Start and end of each quotation, its marks included. A mark that is never closed begins none."""
    marks = [(found.start(), found.group()) for found in _MARK.finditer(content)]
    unclosed = set[str]()
    number = 0
    while number < len(marks):
        start, mark = marks[number]
        number += 1
        if mark in unclosed or not _may_open_quotation(content, start):
            continue
        last = _index_of_closing_mark(content, marks, number)
        if last is None:
            unclosed.add(mark)
        else:
            yield start, marks[last][0] + 1
            number = last + 1


def _index_of_closing_mark(content: str, marks: Sequence[tuple[int, str]], number: int) -> int | None:
    """The index of the mark that closes ``marks[number - 1]``. If it opens again inside, the inner one closes first."""
    opening = marks[number - 1][1]
    inside = 0
    for at in range(number, len(marks)):
        place, mark = marks[at]
        if mark in _CLOSING[opening] and not content[place + 1 : place + 2].isalnum():
            if not inside:
                return at
            inside -= 1
        elif mark == opening and _may_open_quotation(content, place):
            inside += 1
    return None


def _may_open_quotation(content: str, place: int) -> bool:
    return place == 0 or _BEFORE_QUOTE.match(content, place - 1) is not None

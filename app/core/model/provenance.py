"""Where a text in a state came from: who said it, a tool's result, or a document that a user pasted.

A fact from a tool or a document is a claim that was read, not one that a person made: its provenance says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from app.core.model.conversation import Message
from app.core.model.state import Origin
from app.core.text.language import detect, language_of_locale
from app.core.text.patterns import compiled
from app.core.text.scripts import EAST_ASIAN
from app.core.text.words import stems

_BLOCK: Final = 1_200  # letters without a blank line: nobody types that much in one go
_LETTERS_PER_SIGN: Final = 3  # what a Chinese or Japanese sign, or a Korean syllable, takes in an alphabet
_LOG_LINES: Final = 4  # lines that begin like a log's make it a log; fewer do where they are half of a paragraph
_ENOUGH_WORDS: Final = 0.5  # of a text's content words must be found in a region


def origin_of(message: Message, text: str) -> Origin:
    """Who or what said ``text``, which was drawn from ``message``.

    ``tool`` for the results of tools; ``document`` where the text is found in what a user pasted (fenced code, quoted
    mail, log output, a long block) rather than in the user's own words; else the role of the message.
    """
    if message.role == "tool" or _is_in(text, "\n".join(_results(message)), message.content):
        return "tool"
    if message.role != "user":
        return message.role
    pasted, own = regions(message.content)
    return "document" if _is_in(text, pasted, own) else "user"


def regions(content: str) -> tuple[str, str]:
    """(what was pasted, the writer's own words) of a message.

    A long block is pasted where other words stand beside it and it asks nothing: alone, it is what the user wrote.
    """
    is_plain = content.isprintable() and content[:1].isalnum()  # one line that nothing marks
    return ("", content) if is_plain else _regions(content)


def _regions(content: str) -> tuple[str, str]:
    pasted: list[str] = []
    own: list[str] = []
    forwarded = False
    blocks = list(_blocks(content))
    for block, is_fenced in blocks:
        forwarded = forwarded or len(_MAIL_HEADER.findall(block)) > 1
        is_long = len(blocks) > 1 and _length(block) >= _BLOCK and _QUESTION.search(block) is None
        if is_fenced or forwarded or is_long or _ANNOUNCED.match(block):
            pasted.append(block)
        else:
            inside, outside = _lines(block)
            pasted += inside
            own += outside
    return "\n".join(pasted), "\n".join(own)


def own_words(messages: Sequence[Message]) -> str:
    """What users and assistants said themselves, without what was pasted.

    Everything, where they did nothing but paste.
    """
    spoken = [message for message in messages if message.role in {"user", "assistant"}]
    own = (regions(message.content)[1] if message.role == "user" else message.content for message in spoken)
    words = "\n".join(own)
    return words if words.strip() else "\n".join(message.content for message in spoken)


_SAMPLE: Final = 4_000  # characters from each end are plenty to know the language by


def language_of(messages: Sequence[Message]) -> str | None:
    """The language that is spoken in these messages (ISO 639-1); ``None`` where that cannot be told."""
    return detect(sample_of(messages))


def language_or_locale(messages: Sequence[Message], locale: str = "en") -> str:
    """The language that is spoken; the locale's where that cannot be told."""
    return language_of(messages) or language_of_locale(locale)


def sample_of(messages: Sequence[Message]) -> str:
    """The beginning and the end of what was said: by it the language is told."""
    spoken = own_words(messages)
    return spoken if len(spoken) <= 2 * _SAMPLE else f"{spoken[:_SAMPLE]}\n{spoken[-_SAMPLE:]}"


_SIGNS: Final = compiled(f"[{EAST_ASIAN}]+")
_FENCE: Final = compiled(r"^[ \t]{0,3}(?:```|~~~)", re.MULTILINE)
_QUESTION: Final = compiled(r"[?？]")  # not the Arabic one: with it, other blocks would count as pasted
_BLANK: Final = compiled(r"\n[ \t]*\n")
_QUOTED: Final = compiled(r"^\s{0,3}>")
_MAIL_HEADER: Final = compiled(
    r"^(?:From|To|Cc|Subject|Date|Sent|От|Кому|Тема|Дата|发件人|收件人|主题): ", re.MULTILINE
)
_LOG_LINE: Final = compiled(
    r"^(?:\[?\d{4}-\d\d-\d\d[T ]|\[?\d\d:\d\d:\d\d|\[?(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b"
    r"|Traceback |\s+at [\w.$<>]+\(|\s+File \"|\w{3} [ \d]\d \d\d:\d\d:\d\d |\d{1,3}(?:\.\d{1,3}){3} )"
)
_ERROR: Final = compiled(r"[\w.]{1,80}(?:Error|Exception)\b")
_ANNOUNCED: Final = compiled(r"^\s{0,3}<(?:document|paste|file|attachment|html|!doctype)\b", re.IGNORECASE)


def _blocks(content: str) -> Iterator[tuple[str, bool]]:
    """Paragraphs, each with whether it stood in a code fence."""
    pieces = _FENCE.split(content)
    for number, piece in enumerate(pieces):
        is_fenced = number % 2 == 1
        for block in [piece] if is_fenced else _BLANK.split(piece):
            if block.strip():
                yield block, is_fenced


def _length(block: str) -> int:
    """The length of a text in letters, whatever the script."""
    return len(block) + (_LETTERS_PER_SIGN - 1) * sum(map(len, _SIGNS.findall(block)))


def _lines(block: str) -> tuple[list[str], list[str]]:
    """Lines of a paragraph that are quoted, or stand within a log; and the others."""
    lines = block.splitlines()
    logged = [index for index, line in enumerate(lines) if _LOG_LINE.match(line)]
    enough = len(logged) >= _LOG_LINES or (len(logged) > 1 and len(logged) * 2 >= len(lines))
    log = range(logged[0], _end_of_log(lines, logged[-1])) if enough else range(0)
    inside = [index in log or _QUOTED.match(line) is not None for index, line in enumerate(lines)]
    return (
        [line for line, is_pasted in zip(lines, inside, strict=True) if is_pasted],
        [line for line, is_pasted in zip(lines, inside, strict=True) if not is_pasted],
    )


def _end_of_log(lines: Sequence[str], last: int) -> int:
    """After the last line of a log, and the error that ends a traceback."""
    following = lines[last + 1] if last + 1 < len(lines) else ""
    return last + 1 + (1 if _ERROR.match(following) or following[:1] in {" ", "\t"} else 0)


def _results(message: Message) -> Iterator[str]:
    for part in message.parts:
        if part.get("type") == "tool_result":
            yield str(part.get("content"))


def _is_in(text: str, region: str, rest: str) -> bool:
    """Whether a text is rather found in a region than in the rest of its message."""
    if not region.strip():
        return False
    wanted = set(stems(text))
    if not wanted or not rest.strip():
        return True
    inside, outside = wanted & set(stems(region)), wanted & set(stems(rest))
    return len(inside) > len(outside) and len(inside) >= _ENOUGH_WORDS * len(wanted)

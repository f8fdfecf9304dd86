"""Whether a stored state is what it should be: no error text, no excuse, nothing empty, nothing cut off.

The gate lets none of these in. A state that was imported, or written by an earlier version, never passed it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from app.domain.gating.excuses import is_excuse
from app.domain.states.state import StateSchema
from app.domain.words.vocabulary import STOPWORDS

Sickness = Literal["empty", "error_text", "no_summary", "cut_off"]

FEW: Final = 4
"""Covered messages of which a state may honestly have nothing to say."""

_LONG: Final = 60  # characters; a shorter text may be a phrase, which needs no end and may close with "for" or "it"
_ENDS: Final = re.compile(r"[.!?…。！？\"'»”’)\]}`*]\s*$")
_HANGS: Final = re.compile(r"[,;:(\[{«“—–-]\s*$")
_SENTENCE: Final = re.compile(r"[^\W\d_]{5}[.!?…][\"'»”’)\]]{0,3}\s+[\"'«„“(\[]{0,3}[^\W\d_a-zа-яё]|[。！？]\s*\S")
"""Where a sentence ends and another begins: a story that has such a place ends its last sentence too.

A word of five letters: shorter ones may be titles and abbreviations (``Prof.``).
"""
_OPEN: Final = re.compile(r"^(?!\s*(?:[-*+•–—#|>]|\d{1,3}[.)])\s).*\w\s*\Z", re.MULTILINE)
"""A last line that is no item of a list, and ends in a word."""
_LAST_WORD: Final = re.compile(r"(?<!\S)[\"'«„“(\[]*([^\W\d_]+(?:[-'’][^\W\d_]+)*)\s*$")
"""As it stands between spaces: ``sign-in`` and ``requirements.in`` end in no preposition."""
_FEWEST_WORDS: Final = 3
_CANNOT_END: Final[Mapping[str, str]] = {
    "en": """the of into onto upon and nor than because although whether unless my our their its every versus including
        regarding during between among towards""",
    "ru": """и а но или либо что чтобы если хотя потому поскольку который которая которое которые в во на с со к ко из
        из-за из-под о об обо от для по до при у за без под над перед через про между ради не ни""",
}
"""By language: words after which something has to come, so that even a short story that ends in one was cut off.

Without those that end a phrase as well, in whatever language: what it is *for*, option *a*, "fängt *an*", "un *but*".
"""
_ERRORS: Final = re.compile(
    r"\W*(?:Traceback \(most recent call last\)"
    r"|(?:[A-Z]\w*(?:Error|Exception)|Error|ERROR|Fehler|Ошибка)\s*(?::|\b\d{3}\b)"
    r"|(?:HTTP(?:/\d(?:\.\d)?)?|Status(?: code)?|Code)[ :]*[45]\d\d\b"
    r"|[45]\d\d (?:Bad Request|Unauthorized|Forbidden|Not Found|Too Many Requests|Internal Server Error|Bad Gateway"
    r"|Service Unavailable|Gateway Time-?out)"
    r"|(?:Internal Server Error|Service Unavailable|Too Many Requests|Bad Gateway|Gateway Time-?out|RESOURCE_EXHAUSTED"
    r"|rate limit (?:reached|exceeded)|quota exceeded|context[_ ]length[_ ]exceeded|max(?:imum)? context length"
    r"|request timed out|connection (?:refused|reset|error)|(?:the )?model is overloaded|invalid api key)\b"
    r"|\{\s*\"(?:error|detail|code|message|status)\"\s*:)",
)
_FENCE: Final = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something wrong with a state."""

    sickness: Sickness
    field: str | None = None
    """The field that it was found in; ``None`` = the state as a whole."""
    text: str = ""


def findings(schema: StateSchema, state: Mapping[str, Any], *, covered_messages: int) -> list[Finding]:
    """What is wrong with a state; nothing, as a rule.

    Args:
        schema: Of the state.
        state: Texts by field.
        covered_messages: How many messages it stands for.
    """
    texts = list(_texts(schema, state))
    if not texts:
        return [Finding(sickness="empty")] if covered_messages > FEW else []
    return [
        Finding(sickness=sickness, field=field, text=text)
        for field, text, is_story in texts
        if (sickness := _sickness(text, is_story=is_story)) is not None
    ]


def _texts(schema: StateSchema, state: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    for field in schema.fields:
        value = state.get(field.name)
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and text.strip():
                yield field.name, text, not field.is_list


def _sickness(text: str, *, is_story: bool) -> Sickness | None:
    if _ERRORS.match(text):
        return "error_text"
    if is_excuse(text):
        return "no_summary"
    return "cut_off" if _is_cut_off(text, is_story=is_story) else None


def _is_cut_off(text: str, *, is_story: bool) -> bool:
    """A block that never closes, JSON that breaks off, or a text that ends in the middle of a sentence.

    Entries of a list are phrases: only a story has to end like a sentence. That it does not is told by a hanging word,
    or by sentences before that have their ends; of a short one, by a word or a mark that ends nothing.
    """
    if len(_FENCE.findall(text)) % 2 or _is_broken_json(text):
        return True
    is_long = len(text) >= _LONG
    if not is_story or _ENDS.search(text) or not (is_long or len(text.split()) >= _FEWEST_WORDS):
        return False
    last = _LAST_WORD.search(text)
    hanging = _FUNCTION_WORDS | _NEVER_LAST if is_long else _NEVER_LAST
    if _HANGS.search(text) is not None or (last is not None and last[1].casefold() in hanging):
        return True
    return is_long and _SENTENCE.search(text) is not None and _OPEN.search(text) is not None


def _is_broken_json(text: str) -> bool:
    if not text.lstrip().startswith(("{", "[{", '["')):
        return False
    try:
        json.loads(text)
    except ValueError:
        return True
    return False


_FUNCTION_WORDS: Final = frozenset().union(*STOPWORDS.values())
_NEVER_LAST: Final = frozenset(word for words in _CANNOT_END.values() for word in words.split())

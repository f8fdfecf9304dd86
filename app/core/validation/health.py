"""Finds what is wrong with a stored state: an error text, an excuse, something empty or cut off.

The gate lets none of these in. Only an item may report an error, or what somebody cannot do. A state that was imported,
or written by an earlier version, never passed the gate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from app.core.model.doubt_marks import without_doubt_mark
from app.core.model.state import StateSchema
from app.core.text.languages.combined_words import alternatives
from app.core.text.patterns import compiled
from app.core.validation.damage import DamageKind
from app.core.validation.excuses import is_excuse

FindingKind = Literal["empty", "error_text", "no_summary", "cut_off", "missing"] | DamageKind
"""What ``findings`` looks for, and the kinds of damage by earlier checks, which only an examination finds."""

MAX_MESSAGES_WITHOUT_CONTENT: Final = 4
"""A state that covers at most this many messages may rightly have nothing to say."""
_MIN_MISSING_FACTS: Final = 3
"""So many facts of one field, or more, are never rightly dropped all at once."""

_ERROR_TEXT: Final = compiled(
    r"\W*(?:Traceback \(most recent call last\)"
    rf"|(?:[A-Z]\w*(?:Error|Exception)|{alternatives('refusals', 'errors')})\s*(?::|\b\d{{3}}\b)"
    r"|(?:HTTP(?:/\d(?:\.\d)?)?|Status(?: code)?|Code)[ :]*[45]\d\d\b"
    r"|[45]\d\d (?:Bad Request|Unauthorized|Forbidden|Not Found|Too Many Requests|Internal Server Error|Bad Gateway"
    r"|Service Unavailable|Gateway Time-?out)"
    r"|(?:Internal Server Error|Service Unavailable|Too Many Requests|Bad Gateway|Gateway Time-?out|RESOURCE_EXHAUSTED"
    r"|rate limit (?:reached|exceeded)|quota exceeded|context[_ ]length[_ ]exceeded|max(?:imum)? context length"
    r"|request timed out|connection (?:refused|reset|error)|(?:the )?model is overloaded|invalid api key)\b"
    r"|\{\s*\"(?:error|detail|code|message|status)\"\s*:)",
)

_UNFINISHED_ENDS: Final = frozenset(",:(-–—[{«„「（，、：")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something wrong with a state."""

    kind: FindingKind
    field: str | None = None
    """The field with the finding; ``None`` = the state as a whole."""
    text: str = ""


def findings(
    schema: StateSchema,
    state: Mapping[str, Any],
    *,
    covered_messages: int,
    before: Mapping[str, Any] | None = None,
    fields_given_up: Collection[str] = (),
    sourced_texts: Collection[str] = (),
) -> list[Finding]:
    """What is wrong with a state; mostly nothing.

    Args:
        schema: The schema of the state.
        state: Texts by field.
        covered_messages: How many messages it stands for.
        before: An earlier state under the same schema that stood for some of these messages.
        fields_given_up: Fields from which the version says that something was removed, mostly for lack of room: nothing
            counts as missing there.
        sourced_texts: Texts of items that name their source messages: such an item reports an error, or what somebody
            cannot do, and is not itself an error text or an excuse.
    """
    texts = list(_texts(schema, state))
    if not texts:
        return [Finding(kind="empty")] if covered_messages > MAX_MESSAGES_WITHOUT_CONTENT else []
    text_findings = [
        Finding(kind=kind, field=field, text=text)
        for field, text in texts
        if (kind := _kind_of_finding(text, is_sourced=without_doubt_mark(text)[0] in sourced_texts)) is not None
    ]
    missing = _missing_fields(schema, state, before or {})
    return [*text_findings, *(one for one in missing if one.field not in fields_given_up)]


def _texts(schema: StateSchema, state: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for field in schema.fields:
        value = state.get(field.name)
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and text.strip():
                yield field.name, text


def _missing_fields(schema: StateSchema, state: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[Finding]:
    counts = Counter(name for name, _ in _texts(schema, state))
    earlier = Counter(name for name, _ in _texts(schema, before))
    for field in schema.fields:
        least = {"narrative": 1, "fact": _MIN_MISSING_FACTS}.get(field.role)
        if least is not None and earlier[field.name] >= least and not counts[field.name]:
            yield Finding(kind="missing", field=field.name)


def _kind_of_finding(text: str, *, is_sourced: bool) -> FindingKind | None:
    if not is_sourced and _ERROR_TEXT.match(text):
        return "error_text"
    if not is_sourced and is_excuse(text):
        return "no_summary"
    return "cut_off" if is_cut_off(text) else None


def is_cut_off(text: str) -> bool:
    """Whether a text surely stops in the middle: something must follow after its last character.

    A semicolon does not count as such a character: a line of code may end with it.
    """
    return text.rstrip()[-1:] in _UNFINISHED_ENDS

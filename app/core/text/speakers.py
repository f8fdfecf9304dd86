"""Finds who speaks, by a name at the beginning of a message (``Anna: ``) or in its metadata (``metadata.name``)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from app.core.text.escaping import clean, without_unseen
from app.core.text.patterns import compiled
from app.core.text.scripts import MARKS

_WORD: Final = rf"[^\W\d_][\w.'’{MARKS}-]{{0,23}}"
_NAMED: Final = rf"(?:({_WORD}(?: {_WORD})?): |([\u3400-\u9fff]{{2,4}})：)"
"""A name of one or two words, or of two to four Chinese characters."""
_LABEL: Final = compiled(rf"\s{{0,8}}+{_NAMED}")
_LABELS: Final = compiled(f"^{_NAMED}", re.MULTILINE)
_ROLES: Final = frozenset({"user", "assistant"})
_PARENTHESES: Final = compiled("[()（）]")
MAX_NAME_LENGTH: Final = 40
"""The most characters of a name that is served with each message of its speaker."""
_MIN_NAMED_SHARE: Final = 0.6  # the least share of a role's messages that begin with a name
_MIN_NAMED_MESSAGES: Final = 3  # the fewest messages of a role that begin with a name
_MIN_MESSAGES_IF_ALL_NAMED: Final = 2  # the fewest messages, if every message begins with a name
_MIN_REPETITIONS: Final = (
    2  # how many messages a name begins on average; "Note: " and "Question: " come too rarely to be names
)


class Label(NamedTuple):
    """A name at the beginning of a text."""

    name: str
    end: int
    """The place where the spoken words begin."""


def label_of(text: str) -> Label | None:
    """The name with which a text begins; ``None`` without one. Any one or two words before a colon look like a name."""
    found = _LABEL.match(text)
    return Label(found[1] or found[2], found.end()) if found else None


def name_in(metadata: Mapping[str, object]) -> str:
    """The speaker's name in a message's metadata; empty without a name, and if it is not a text."""
    name = metadata.get("name")
    return short_name(name) if isinstance(name, str) else ""


def short_name(name: str) -> str:
    """A given name in a form that can be put in parentheses: one short line without parentheses of its own."""
    if not name:
        return ""
    plain = _PARENTHESES.sub(" ", without_unseen(clean(name[: 4 * MAX_NAME_LENGTH])))
    return " ".join(plain.split())[:MAX_NAME_LENGTH].rstrip()


def with_speaker_name(name: str, text: str) -> str:
    """A text as a chat model is sent it: with the speaker's name first, unless the text already begins with it.

    A known name is always added, whoever else speaks. So the same message is always sent in the same words: what
    providers cache stays valid, and its tokens are known when it is stored.
    """
    if not name or text.lstrip().casefold().startswith((f"{name}:".casefold(), f"{name}：".casefold())):
        return text
    return f"{name}: {text}" if text else f"{name}:"


def without_speaker(text: str) -> str:
    """The text without the speaker's name at its beginning."""
    found = _LABEL.match(text)
    return text[found.end() :] if found else text


def without_speakers(text: str) -> str:
    """The text without the speakers' names at the beginnings of its lines."""
    return _LABELS.sub("", text)


def labels_of(messages: Sequence[tuple[str, str]]) -> list[Label | None]:
    """The label of each message; ``None`` if the messages of its role do not begin with their speakers' names.

    A role has names if most of its messages, and at least three, begin with names that are repeated. If there are fewer
    messages, every message has to begin with a name, and two roles may not share one. Otherwise a beginning such as
    "Note: " does not count as a name. A heading that an assistant puts before its answers ("Noted: ") does not count
    either if the users have no names.

    ``messages``: role and text of each message, in order.
    """
    labels = [label_of(text) if role in _ROLES else None for role, text in messages]
    totals = Counter(role for role, text in messages if role in _ROLES and text.strip())
    names: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for (role, _), label in zip(messages, labels, strict=True):
        if label:
            names[role][label.name] += 1
    named_roles = {role for role, found in names.items() if _are_names(found, totals[role])}
    if totals["user"] and "user" not in named_roles:
        named_roles.discard("assistant")
    if _are_all_named(names, totals):
        named_roles |= names.keys()
    return [label if role in named_roles else None for (role, _), label in zip(messages, labels, strict=True)]


def _are_names(found: Counter[str], total: int) -> bool:
    times = found.total()
    return times >= max(_MIN_NAMED_MESSAGES, _MIN_NAMED_SHARE * total) and times >= _MIN_REPETITIONS * len(found)


def _are_all_named(names: dict[str, Counter[str]], totals: Counter[str]) -> bool:
    every = all(found.total() == totals[role] and len(found) == 1 for role, found in names.items())
    different = len({name for found in names.values() for name in found}) == len(totals)
    return every and different and totals.total() >= _MIN_MESSAGES_IF_ALL_NAMED

"""Items of a candidate. Their text is the name of a speaker, then clauses separated by semicolons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from app.core.reading.labels import PHRASES, role_of
from app.core.reading.passages import Passage
from app.core.reading.quoting import is_quotation
from app.core.text.memo import memoized
from app.core.text.speakers import without_speaker
from app.core.text.token_counts import estimate_text

ITEM_OVERHEAD: Final = 1
"""The tokens of the marks between two items of a list."""

MAX_ITEM_LENGTH: Final = 220
"""The most characters of one entry, since an entry can only be kept or lost as a whole."""

ANSWER_SEPARATOR: Final = " — "
"""The separator between a question, or other earlier words, and the answer."""

_CLAUSE_SEPARATOR: Final = "; "


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One entry of a candidate."""

    text: str
    seqs: tuple[int, ...]
    replaces: tuple[str, ...] = ()
    passages: tuple[Passage, ...] = ()

    @property
    def tokens(self) -> int:
        """The tokens of the item in a state."""
        return entry_tokens(self.text)


def entry_tokens(text: str) -> int:
    """The tokens of a text as an entry of a list."""
    return estimate_text(text) + ITEM_OVERHEAD


@memoized()
def label_and_clauses(text: str) -> tuple[str, tuple[str, ...]]:
    """An entry's label and its clauses; a question with its answer counts as one clause, and so does a quotation."""
    labels = tuple(words.open_question for words in PHRASES.values())
    opened = next((label for label in labels if text.startswith(label)), None)
    label = opened or text[: len(text) - len(without_speaker(text))]
    body = text[len(label) :]
    if ANSWER_SEPARATOR in body or is_quotation(text):
        return label, (body,)
    clauses = filter(str.strip, body.split(_CLAUSE_SEPARATOR))
    return label, tuple(clauses if role_of(label) == "tool" else _joined_at_small_letters(clauses))


def _joined_at_small_letters(clauses: Iterable[str]) -> Iterator[str]:
    joined: list[str] = []
    for clause in clauses:
        if joined and not clause[0].islower():
            yield _CLAUSE_SEPARATOR.join(joined)
            joined = []
        joined.append(clause)
    if joined:
        yield _CLAUSE_SEPARATOR.join(joined)


def without_label(text: str) -> str:
    """An entry's text without the label that was put before it."""
    return text[len(label_and_clauses(text)[0]) :]


def joined_clauses(label: str, clauses: Iterable[str]) -> str:
    """The clauses of one speaker as one text."""
    kept = list(dict.fromkeys(clauses))
    return label + _CLAUSE_SEPARATOR.join([*(clause.rstrip(".") for clause in kept[:-1]), *kept[-1:]])

"""Shortens a state of one text, statement by statement: those that tell least per token are removed first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from app.core.model.state import StateEntry
from app.core.reading.choice import KeptTexts, Option, per_token
from app.core.reading.labels import role_of
from app.core.summarizer.offline.earlier_entries import entry_option
from app.core.summarizer.offline.items import entry_tokens, label_and_clauses
from app.core.summarizer.offline.narrative_states import statements
from app.core.text.budget import best_first, each_fitting, first_fitting
from app.core.text.sentences import sentences
from app.core.text.shortening import clip
from app.core.validation.lost_values import critical_values

_STEPS: Final = 64
"""The most steps in which a text is shortened, since it may have tens of thousands of characters."""
_CLIPS: Final = 16
"""The most steps in which a single statement is cut if it is longer than its room."""
_OPENING: Final = 0.2
"""The largest share of the text for its first statements with exact values, with which the conversation began."""


def thinned_texts(entry: StateEntry, *, older_first: bool = False) -> Iterator[str]:
    """Ever shorter versions of an entry's text: with fewer statements, then with only the first one, cut short.

    The first statement is kept to the end; the last one and those of the opening nearly as long. With ``older_first``
    statements of the earlier text are kept longer than new ones.

    """
    yield from fewer_statements(entry, older_first=older_first)
    for first in _statements_of(entry.text)[:1]:
        yield from (clip(first, len(first) * (_CLIPS - step) // _CLIPS) for step in range(1, _CLIPS))


def fewer_statements(entry: StateEntry, *, older_first: bool = False) -> Iterator[str]:
    """Versions of an entry's text with ever fewer of its statements, in their order, down to one."""
    texts = _statements_of(entry.text)
    if not texts:
        return
    order = _places_worth_keeping(entry, texts, older_first=older_first)
    costs = [entry_tokens(text) for text in texts]
    first, shorter = order[0], entry.text
    for step in range(1, _STEPS + 1):
        limit = sum(costs) * (_STEPS - step) // _STEPS
        kept = sorted([first, *each_fitting(order[1:], limit - costs[first], costs.__getitem__)])
        if len(kept) < len(texts) and (text := " ".join(texts[place] for place in kept)) != shorter:
            shorter = text
            yield text


def removed_statements(whole: str, shorter: str) -> list[str]:
    """The statements of a text that a shorter one does not have."""
    return [text for text in _statements_of(whole) if text not in shorter]


def _statements_of(text: str) -> list[str]:
    found = [(label_and_clauses(one)[0], one) for one in statements(text)]
    labels = Counter(label for label, _ in found)
    parts = ([one] if role_of(label) or labels[label] > 1 else sentences(one) for label, one in found)
    return list(dict.fromkeys(chain.from_iterable(parts)))


def _places_worth_keeping(entry: StateEntry, texts: Sequence[str], *, older_first: bool) -> list[int]:
    """The places of the statements; those to be kept longest come first."""
    options = [entry_option(replace(entry, role="fact", text=text), place) for place, text in enumerate(texts)]
    first = list(dict.fromkeys([0, len(texts) - 1, *_first_with_values(texts)]))
    known = KeptTexts()
    for place in first:
        known.take(options[place])
    before = "\n".join(entry.superseded)
    news = [one for one in options if one.key not in first and texts[one.key] not in before]
    older = [one for one in options if one.key not in first and texts[one.key] in before]
    if older_first:
        return [*first, *(one.key for group in (older, news) for one in _by_added_worth(group, known))]
    return [*first, *_news_and_older_in_turn(_by_added_worth(news, known), _by_added_worth(older, known))]


def _news_and_older_in_turn(news: Iterable[Option], older: Iterable[Option]) -> Iterator[int]:
    # Each kind gets half of the room, so that old statements never push out new ones.
    fresh, known = list(news)[::-1], list(older)[::-1]
    ahead = 0
    while fresh or known:
        is_news = bool(fresh) and (ahead <= 0 or not known)
        option = (fresh if is_news else known).pop()
        ahead += option.size if is_news else -option.size
        yield option.key


def _first_with_values(texts: Sequence[str]) -> Iterator[int]:
    opening = first_fitting(texts, int(_OPENING * sum(map(len, texts))), len)
    return (place for place, text in enumerate(opening) if critical_values(text))


def _by_added_worth(options: Sequence[Option], known: KeptTexts) -> Iterator[Option]:
    for option in best_first(options, lambda one: per_token(known.worth(one), one), lambda one: one.key):
        known.take(option)
        yield option

"""Chooses texts within a budget: those with most worth per token, nothing twice, each exact value once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from typing import Final, NamedTuple

from app.core.reading.scoring import Worth
from app.core.text.budget import Budget, best_first
from app.core.text.token_counts import least_tokens

MIN_CHOSEN_WORTH: Final = 0.8
"""The least worth of a text that is chosen; others are left out, however much room there is."""

_REPEATED_SHARE: Final = 0.7  # the shared part of the smaller text's words by which two texts say the same
_DAMPING_EXPONENT: Final = 0.9
_CHARACTERS_PER_TOKEN: Final = 4  # the approximate characters of a token
_STALE_SHARE: Final = 0.6
"""A text is worth less if a larger share of its words was already said, so that news comes first."""
_CROWDING_LOSS: Final = 1.0  # share of its worth that a text loses when its kind fills the room
_CROWDING_LOSS_OF_RULES: Final = 0.6  # the same for rules and limits
_MAX_CROWDING_LOSS: Final = 0.6  # the most that it loses
_MIN_TOKENS_TO_TRY: Final = 8  # tokens; with less room nothing is worth trying
_MIN_FRAME_TOKENS: Final = 3  # the fewest tokens of a speaker's name and the marks of a list


class Option(NamedTuple):
    """One text that could be kept."""

    key: int
    """Its number; among equals the smaller key comes first."""
    worth: Worth
    stems: frozenset[str]
    size: int
    """Its characters, for comparisons."""
    cost: Callable[[], int]
    """Its tokens as an item of a list; computed only if it may be kept."""


class KeptTexts:
    """The texts kept so far, as words, for telling repetition from news, and the exact values in them."""

    def __init__(self, texts: Iterable[Collection[str]] = (), values: Iterable[str] = ()) -> None:
        self.values = set(values)
        self.kinds: Counter[str] = Counter()
        self._postings: defaultdict[str, list[int]] = defaultdict(list)
        self._texts: list[frozenset[str]] = []
        for text in texts:
            self.add(text)

    def take(self, option: Option) -> None:
        """Keep an option."""
        self.add(option.stems, option.worth.values)
        self.kinds[option.worth.about] += option.size

    def add(self, stems: Collection[str], values: Iterable[str] = ()) -> None:
        """Keep one more text."""
        for stem in stems:
            self._postings[stem].append(len(self._texts))
        self._texts.append(frozenset(stems))
        self.values.update(values)

    def with_all(self, options: Iterable[Option]) -> KeptTexts:
        """A copy to which these options are added."""
        after = KeptTexts(self._texts, self.values)
        after.kinds.update(self.kinds)
        for option in options:
            after.take(option)
        return after

    def repeats(self, stems: Collection[str]) -> bool:
        """Whether one kept text already has nearly all of these words; another number means another fact."""
        if not self._texts:
            return False
        shared = Counter(chain.from_iterable(self._postings[stem] for stem in stems if stem in self._postings))
        least = _REPEATED_SHARE * len(stems)
        alike = [number for number, count in shared.items() if count >= least]
        exact = {stem for stem in stems if any(character.isdigit() for character in stem)} if alike else ()
        return any(self._texts[number].issuperset(exact) for number in alike)

    def share(self, stems: frozenset[str]) -> float:
        """The share of these words that any kept text has."""
        return len(self._postings.keys() & stems) / len(stems) if stems else 1.0

    def worth(self, option: Option) -> float:
        """The worth of what an option adds to the kept texts; it only falls while more is kept."""
        news = sum(worth for value, worth in option.worth.values.items() if value not in self.values)
        stale = self.share(option.stems)
        return news + option.worth.words_worth * (
            1.2 - stale if stale > _STALE_SHARE and option.worth.words_worth > 0 else 1.0
        )

    def crowding(self, option: Option, token_limit: int) -> float:
        """The factor, for balance, to which an option's worth falls if much of its kind is already kept.

        A further rule binds nearly as much as the first.
        """
        crowded = _CROWDING_LOSS_OF_RULES if option.worth.about in {"rule", "limit"} else _CROWDING_LOSS
        return 1.0 - min(
            _MAX_CROWDING_LOSS,
            crowded * self.kinds.get(option.worth.about, 0) / (_CHARACTERS_PER_TOKEN * max(token_limit, 1)),
        )


def may_be_chosen(worth: Worth) -> bool:
    """Whether an option of that worth can be chosen at all; its worth never rises as others are chosen."""
    return bool(worth.values) or worth.total >= MIN_CHOSEN_WORTH


def choose(
    options: Sequence[Option], *, token_limit: int, kept_texts: KeptTexts, at_least_one: bool = False
) -> list[Option]:
    """The options that tell most per token and fit into ``token_limit`` tokens together, in their order.

    Options that are worth too little, or only repeat, are left out. With ``at_least_one``, one with an exact value is
    taken even if none is worth a place. The chosen options are added to ``kept_texts``.
    """
    chosen: list[Option] = []
    budget = Budget(token_limit)

    def worth_by_now(option: Option) -> float | None:
        worth = kept_texts.worth(option)
        if worth < MIN_CHOSEN_WORTH and not (at_least_one and not chosen and option.worth.values):
            return None
        return per_token(worth * kept_texts.crowding(option, token_limit), option)

    for option in best_first(options, worth_by_now, lambda option: option.key):
        if budget.remaining < _MIN_TOKENS_TO_TRY:
            break
        may_fit = _MIN_FRAME_TOKENS + least_tokens(option.size) <= budget.remaining
        if may_fit and not kept_texts.repeats(option.stems) and budget.takes(option.cost()):
            chosen.append(option)
            kept_texts.take(option)
    return sorted(chosen, key=lambda option: option.key)


def per_token(worth: float, option: Option) -> float:
    """Worth per token, damped so that one informative long sentence beats two empty short ones."""
    return worth / (12 + option.size / _CHARACTERS_PER_TOKEN) ** _DAMPING_EXPONENT if worth > 0 else worth

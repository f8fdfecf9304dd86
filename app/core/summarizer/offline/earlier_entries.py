"""Decides which entries of the state so far stay if there is no room for all: the weakest go, not the oldest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from app.core.model.state import StateEntry
from app.core.reading.choice import KeptTexts, Option, choose
from app.core.reading.cues import cues_of
from app.core.reading.importance import likelihood_of_entry
from app.core.reading.labels import PHRASES, role_of
from app.core.reading.scoring import (
    BINDING_FACTOR,
    BINDING_KINDS,
    Worth,
    cue_worth,
    kind_of,
    values_worth,
    worth_of_data,
    worth_of_statement,
)
from app.core.reading.sentence import sentence_of
from app.core.reading.tool_data_lines import parse_line
from app.core.summarizer.offline.items import ANSWER_SEPARATOR, entry_tokens, label_and_clauses
from app.core.text.budget import each_fitting, without_last
from app.core.text.relative import without_added_days
from app.core.text.words import stems

_OPENING_MESSAGES: Final = 12  # the number of messages that open a talk
_MAX_OPENING_SHARE: Final = 0.4  # the largest share of the room that is reserved for their exact values
_EARLIER_ENTRY_FACTOR: Final = 1.2  # the factor for earlier entries, so that only clearly better new ones replace them
_RULE_FACTOR: Final = 2.5  # the factor for the cues of a rule, which binds until it is taken back, however old it is
_OPEN_WORTH: Final = 2.0
_ANSWER_WORTH: Final = 1.4  # added for an answer, since somebody had asked for it
_WORDS_WORTH: Final = 0.4  # the worth of the words of any entry, which was once chosen for them
_SPEAKER_FACTORS: Final[Mapping[str, float]] = {"assistant": 0.6, "tool": 0.4}


class EarlierEntries:
    """The facts and open entries of the state so far, as options in addition to new ones."""

    def __init__(self, earlier: Sequence[StateEntry]) -> None:
        self._earlier = earlier
        self._options = [entry_option(entry, -len(earlier) + number) for number, entry in enumerate(earlier)]

    def chosen_and_given_up(
        self, new_options: Sequence[Option], *, total: int, most_new: int, least_new: int, kept_texts: KeptTexts
    ) -> tuple[list[Option], tuple[str, ...]]:
        """The new options to take, and the ids of the entries to give up for them.

        Args:
            new_options: Options of the span; their keys are not negative.
            total: The tokens for earlier and new options together.
            most_new: The most tokens for new options.
            least_new: The tokens that new options may use even if earlier ones leave fewer.
            kept_texts: What is already said elsewhere.
        """
        free = total - sum(map(_tokens_of, self._options))
        all_kept_texts = kept_texts.with_all(self._options)
        new_options = [option for option in new_options if not all_kept_texts.repeats(option.stems)]
        chosen = choose(
            new_options, token_limit=min(most_new, max(free, least_new)), kept_texts=all_kept_texts, at_least_one=True
        )
        if sum(map(_tokens_of, chosen)) <= free:
            return chosen, ()
        return self._chosen_with_replacements(
            new_options, chosen, total=total, most_new=most_new, kept_texts=kept_texts
        )

    def _chosen_with_replacements(
        self,
        new_options: Sequence[Option],
        first: Sequence[Option],
        *,
        total: int,
        most_new: int,
        kept_texts: KeptTexts,
    ) -> tuple[list[Option], tuple[str, ...]]:
        """The best of both kinds, always including ``first`` and the exact values of the opening messages."""
        spent = sum(map(_tokens_of, first))
        reserved = self._opening_with_values(total)
        remaining_tokens = total - spent - sum(map(_tokens_of, reserved))
        kept_texts = kept_texts.with_all([*reserved, *first])
        taken = {option.key for option in [*reserved, *first]}
        rest = [option for option in [*self._options, *new_options] if option.key not in taken]
        more = choose(rest, token_limit=remaining_tokens, kept_texts=kept_texts)
        fresh = [option for option in more if option.key >= 0]
        fresh = without_last(fresh, spent + sum(map(_tokens_of, fresh)) - most_new, _tokens_of)
        kept = {option.key for option in [*reserved, *more]}
        others = [option for option in self._options if option.key not in kept]
        others.sort(key=lambda option: (-option.worth.total, option.key))
        kept |= {
            option.key for option in each_fitting(others, remaining_tokens - sum(map(_tokens_of, more)), _tokens_of)
        }
        given_up = tuple(
            entry.id for entry, option in zip(self._earlier, self._options, strict=True) if option.key not in kept
        )
        return sorted([*first, *fresh], key=lambda option: option.key), given_up

    def _opening_with_values(self, total: int) -> list[Option]:
        # The exact values of the opening messages say what the talk is about.
        opening = (
            option
            for entry, option in zip(self._earlier, self._options, strict=True)
            if entry.from_seqs and min(entry.from_seqs) <= _OPENING_MESSAGES and option.worth.values
            if role_of(label_and_clauses(entry.text)[0]) not in _SPEAKER_FACTORS
        )
        return each_fitting(opening, int(_MAX_OPENING_SHARE * total), _tokens_of)


def _tokens_of(option: Option) -> int:
    return option.cost()


def entry_option(entry: StateEntry, key: int) -> Option:
    """A fact or open entry as an option, with a worth by its words; among equals the smaller key comes first."""
    tokens = entry_tokens(entry.text)
    label, clauses = label_and_clauses(entry.text)
    stems_of_entry = parse_line("; ".join(clauses)).stems if role_of(label) == "tool" else frozenset(stems(entry.text))
    return Option(key=key, worth=entry_worth(entry), stems=stems_of_entry, size=len(entry.text), cost=lambda: tokens)


def entry_worth(entry: StateEntry) -> Worth:
    """The worth of an entry of a state by its words alone: that of all its clauses together."""
    label, clauses = label_and_clauses(without_added_days(entry.text))
    role = role_of(label)
    if role == "tool":
        return worth_of_data(parse_line("; ".join(clauses)), ()).times(_EARLIER_ENTRY_FACTOR)
    is_open = entry.role == "open" or label in {words.open_question for words in PHRASES.values()}
    worths = [_worth_of_clause(clause, role, is_open=is_open) for clause in clauses]
    about = next((worth.about for worth in worths if worth.about in BINDING_KINDS), "fact")
    values = {value: worth for of_one in worths for value, worth in of_one.values.items()}
    return Worth(words_worth=sum(worth.words_worth for worth in worths), values=values, about=about).times(
        _EARLIER_ENTRY_FACTOR
    )


def _worth_of_clause(clause: str, speaker_role: str | None, *, is_open: bool) -> Worth:
    cues = cues_of(clause)
    sentence = sentence_of(clause)
    values, about = values_worth(clause, sentence.identifiers), kind_of(cues)
    answers, by_assistant = ANSWER_SEPARATOR in clause, speaker_role == "assistant"
    likelihood = likelihood_of_entry(sentence, answers=answers, by_assistant=by_assistant)
    plain_worth = worth_of_statement(likelihood, values, about)
    if not is_open and not (speaker_role == "user" and about in BINDING_KINDS):
        return plain_worth
    rest = (
        _WORDS_WORTH
        + cue_worth(cues) * (_RULE_FACTOR if "rule" in cues else 1.0)
        + _ANSWER_WORTH * answers
        + _OPEN_WORTH * is_open
    )
    binding = Worth(words_worth=rest, values=values, about=about).times(
        BINDING_FACTOR * _SPEAKER_FACTORS.get(speaker_role or "", 1.0)
    )
    return max(plain_worth, binding, key=lambda worth: worth.total)

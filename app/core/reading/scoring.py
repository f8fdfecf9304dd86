"""Scores the worth of a passage: by cues, exact values, speaker, how central it is, and what was asked to be kept."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Final, NamedTuple

from app.core.reading.cues import CODES, CUE_WEIGHTS, IN_WORDS, PLEASANTRY, PROPOSAL, Cue
from app.core.reading.importance import Ratings, ratings_of
from app.core.reading.passages import Passage
from app.core.reading.tool_data_lines import DataLine, group_key, is_call, parse_line
from app.core.text.cue_patterns import cue_matches
from app.core.text.identifiers import Identifier, Kind
from app.core.text.memo import memoized
from app.core.text.patterns import compiled
from app.core.text.words import GENERIC_STEMS, stems

_IDENTIFIER_WORTH: Final[Mapping[Kind, float]] = {
    "code": 4.0, "email": 4.0, "url": 3.0, "uuid": 4.0, "version": 2.0, "path": 1.6, "money": 1.8, "date": 1.8,
    "time": 1.4, "number": 1.4, "name": 1.4, "quoted": 1.2, "symbol": 0.7,
}  # fmt: skip
"""The worth of exact values by kind: values that may be asked for later and cannot be guessed are worth most."""
_MAX_WORTH_OF_IDENTIFIERS: Final = 6.0
_WORTH_OF_VALUE_IN_WORDS: Final = 0.8  # the worth of a count or time in words: "three children", "last Friday"
_WORTH_OF_CODE: Final = 2.5
_WORTH_OF_DIGIT: Final = 0.7  # the worth of a single digit
_MAX_WORTH_IN_TOOL_PROSE: Final = 2.0  # the most that values in a tool's prose are worth: the caller says what mattered
_PASTED_FACTOR: Final = 0.5  # the factor for pasted text: a document can be asked for again
_HELD_FACTOR: Final = 0.6  # the factor for a held message, which is served anyway
_ROLE_FACTORS: Final = {"user": 1.0, "assistant": 0.5, "tool": 0.35}
_FURTHER_CUE_SHARE: Final = 0.35  # a second cue adds a third of its weight
LAST_OPENING_SEQ: Final = 2
"""The highest ``seq`` of a message that opens a talk: a system message may stand before it."""

_OPENING_BONUS: Final = 3.0  # added for the opening message, which says what the talk is about
_FOCUS_BONUS: Final = 4.0
_QUESTION_FACTOR: Final = 0.35  # the factor for a question, compared with the same words as a statement
_ACCEPTED_BONUS: Final = 3.2  # added for an accepted proposal, which is a decision
_CORRECTION_BONUS: Final = 1.6  # added for a user's "actually" to an assistant; among people it is a mere word
_DATUM: Final = 0.8  # the worth of an id, a code or a date of a tool, which may be needed in its next call
_DATUM_CHARACTER: Final = 0.08  # added for each character of it: a longer value is harder to guess
_MAX_DATUM_LENGTH: Final = 20
_DATUM_WORD: Final = 0.5
_MAX_WORTH_OF_DATUM_WORDS: Final = 1.5  # the most that all words of a line are worth
_DATUM_AMOUNT: Final = 0.5
_MAX_WORTH_OF_DATUM_AMOUNTS: Final = 1.5
_MENTION_FACTOR: Final = 2.0  # the factor for a value that somebody talked about
_RELEVANT_RECORD_FACTOR: Final = 1.8  # the factor for the record of a list that the talk was about, judged by its words
_OTHER_RECORD_FACTOR: Final = 0.6  # the factor for the other records of a long list; in a short list each may be needed
_LONG_LIST: Final = 8  # records
HEAD_WEIGHT: Final = 1.4
"""The weight of the first id of a record, by which records are asked for and changed."""

_RECORD_WORTH: Final = 0.8  # the worth of a record with an id, so that it is kept even if others have its id
_MAY_BE_CODE: Final = compiled(r"[-/0-9a-f](?:(?<=[a-z0-9][-/])[a-z0-9]|(?<=[0-9a-f])[0-9a-f]{6})")
_WORD: Final = compiled(r"[^\s\"'`(),=\[\]{}<>]+")
_IGNORED_SIGNS: Final = ".,;:!?*$€£¥₽₹"
"""Signs beside a word that are ignored: a tool's data has amounts without their sign."""
_TWO: Final = 2
_SINGLE_WORD_PENALTY: Final = 1.4  # subtracted for a single word, which says nothing unless it answers a question
BINDING_KINDS: Final = frozenset({"wish", "rule", "limit", "aim"})  # kinds of things that have to be followed unasked
BINDING_FACTOR: Final = 1.25  # the factor for these kinds, compared with what is only worth remembering
_WORK_CUES: Final[frozenset[Cue]] = frozenset({"commitment", "result", "decision"})
"""Cues of what an assistant did or will do. They only count together with exact values."""
MAX_WORTH_OF_WORDS: Final = 8.0  # the worth, without exact values, of what is certainly worth remembering
_DOUBTFUL: Final = 0.3  # the likelihood below which exact values count less too
_CHANGE_BONUS: Final = 2.0  # the worth of a call that changed something
_MAX_SENTENCES_BACK: Final = 12  # sentences that are searched back for a proposal


class Worth(NamedTuple):
    """The worth of a text: of its words, and of each exact value that no other kept text has."""

    words_worth: float
    values: Mapping[str, float]
    """The worth of each value, by the value in lower case."""
    about: str = "fact"
    """The kind of thing that is said. The more of a kind is already kept, the less is further text of it worth."""

    @property
    def total(self) -> float:
        """The worth if nothing else is kept. A text with at least 1 is worth a place."""
        return self.words_worth + sum(self.values.values())

    def times(self, factor: float) -> Worth:
        """This worth, multiplied by a factor."""
        values = {text: factor * worth for text, worth in self.values.items()}
        return Worth(words_worth=factor * self.words_worth, values=values, about=self.about)

    def plus(self, more: float) -> Worth:
        """This worth, with an addition to that of the words."""
        return Worth(words_worth=self.words_worth + more, values=self.values, about=self.about) if more else self


def score_all(passages: Sequence[Passage], focus: str | None = None, ratings: Ratings | None = None) -> list[Worth]:
    """The worth of each passage; ``ratings`` are computed if they are not given. It takes linear time."""
    frequency = Counter(chain.from_iterable(passage.stems for passage in passages))
    focus_stems = frozenset(stems(focus)) if focus else frozenset()
    accepted = _accepted_proposals(passages)
    full_lines = [full_line for passage in passages if (full_line := passage.full_line)]
    mentioned = _words_of_talk(passages) | repeated_values(full_lines) if full_lines else frozenset[str]()
    relevance = relevance_by_passage(passages)
    likely = (ratings or ratings_of(passages)).likely
    return [
        worth_of_data(passage.line, mentioned)
        .times(relevance.get(passage.index, 1.0))
        .plus(_CHANGE_BONUS if passage.is_action else 0.0)
        if passage.line
        else _score(passage, likely[passage.index], frequency, len(passages)).plus(
            _ACCEPTED_BONUS * (passage.index in accepted) + _worth_of_focus(passage, focus_stems)
        )
        for passage in passages
    ]


def relevance_by_passage(passages: Sequence[Passage]) -> dict[int, float]:
    """For each passage that is a record of a list, a factor: larger for records that the talk is about."""
    lists: defaultdict[tuple[int, str], list[Passage]] = defaultdict(list)
    for passage in passages:
        if passage.full_line and (name := group_key(passage.full_line.text)):
            lists[passage.seq, name].append(passage)
    talk = _words_of_talk(passages) if lists else frozenset[str]()
    scaled: dict[int, float] = {}
    for records in lists.values():
        factors = relevances([one.full_line for one in records if one.full_line], talk)
        scaled.update(zip((one.index for one in records), factors, strict=True))
    return scaled


def _words_of_talk(passages: Sequence[Passage]) -> frozenset[str]:
    return spoken_words(passage.text for passage in passages if passage.line is None or is_call(passage.text))


def spoken_words(texts: Iterable[str]) -> frozenset[str]:
    """All words of these texts, for comparing with values of data: values that were talked about are worth more."""
    return frozenset(word.strip(_IGNORED_SIGNS) for text in texts for word in _WORD.findall(text.casefold()))


def repeated_values(lines: Iterable[DataLine]) -> frozenset[str]:
    """The values that several records have, and that thus connect them."""
    counts = Counter(value.casefold() for line in lines for value in line.codes)
    return frozenset(value for value, count in counts.items() if count > 1)


def relevances(records: Sequence[DataLine], talk: Collection[str]) -> list[float]:
    """A factor for the worth of each record of a list: larger for those that the talk is about.

    A record is recognised by words of the talk that few other records have.

    """
    values_by_record = [{*line.codes, *line.words, *line.amounts} for line in records]
    shared = Counter(value for values in values_by_record for value in values)
    hits = [
        math.fsum(1 / shared[value] for value in values if is_mentioned(value, talk)) for values in values_by_record
    ]
    most = max(hits, default=0.0)
    if len(records) < _TWO:
        return [1.0] * len(records)
    least = max(_OTHER_RECORD_FACTOR, min(1.0, _OTHER_RECORD_FACTOR ** (len(records) / _LONG_LIST)))
    if not most:
        return [least**0.5] * len(records)
    return [least + (_RELEVANT_RECORD_FACTOR - least) * (hit / most) ** 2 for hit in hits]


def worth_of_data(line: DataLine, mentioned: Collection[str]) -> Worth:
    """The worth of a line of a tool's data; values that the next call may need are worth more."""
    return worths_of_data([line], mentioned)[0]


def worths_of_data(parts: Sequence[DataLine], mentioned: Collection[str]) -> list[Worth]:
    """The worth of each part of one line. All words of the line together, and all amounts, have an upper limit."""
    words = _capped_worth(_DATUM_WORD, _MAX_WORTH_OF_DATUM_WORDS, sum(len(part.words) for part in parts))
    amounts = _capped_worth(_DATUM_AMOUNT, _MAX_WORTH_OF_DATUM_AMOUNTS, sum(len(part.amounts) for part in parts))
    with_values = sum(bool(part.codes) for part in parts)
    found: list[Worth] = []
    for part in parts:
        values = {
            value.casefold(): (_DATUM + _DATUM_CHARACTER * min(len(value), _MAX_DATUM_LENGTH))
            * _factor_of_mention(value, mentioned)
            for value in part.codes
        }
        for group, worth in ((part.words, words), (part.amounts, amounts)):
            values |= {value.casefold(): worth * _factor_of_mention(value, mentioned) for value in group}
        found.append(Worth(words_worth=_RECORD_WORTH / with_values if part.codes else 0.0, values=values, about="data"))
    return found


def _capped_worth(each: float, most: float, count: int) -> float:
    return min(each, most / count) if count else each


def _factor_of_mention(value: str, mentioned: Collection[str]) -> float:
    return _MENTION_FACTOR if is_mentioned(value, mentioned) else 1.0


def is_mentioned(value: str, mentioned: Collection[str]) -> bool:
    """Whether every word of a value was said; a single character does not count as a word."""
    return len(value) > 1 and all(word in mentioned for word in value.casefold().split(" "))


def worth_of_action(text: str, mentioned: Collection[str]) -> Worth:
    """The worth of a call that changed something: its values, and the fact that it was made."""
    return worth_of_data(parse_line(text), mentioned).plus(_CHANGE_BONUS)


def values_worth(text: str, found: Iterable[Identifier], most: float = _MAX_WORTH_OF_IDENTIFIERS) -> dict[str, float]:
    """The worth of a text's exact values, each once, together at most ``most``: identifiers, and values in words."""
    in_words, codes = _values_in_words_and_codes(text)
    values = dict.fromkeys(in_words, _WORTH_OF_VALUE_IN_WORDS) | {code.casefold(): _WORTH_OF_CODE for code in codes}
    for item in found:
        if not (codes and any(item.text in code for code in codes)):
            bare = item.kind == "number" and len(item.text) == 1
            values[item.text.casefold()] = _WORTH_OF_DIGIT if bare else _IDENTIFIER_WORTH[item.kind]
    total = sum(values.values())
    return values if total <= most else {text: worth * most / total for text, worth in values.items()}


@memoized()
def _values_in_words_and_codes(text: str) -> tuple[Sequence[str], Sequence[str]]:
    codes = CODES.findall(text) if _MAY_BE_CODE.search(text) else ()
    return [" ".join(match.group().casefold().split()) for match in cue_matches(text, [IN_WORDS])], codes


def _score(passage: Passage, likelihood: float, frequency: Counter[str], total: int) -> Worth:
    about = kind_of(passage.cues)
    if passage.role == "tool":
        return _worth_by_cues(passage, about, frequency, total)
    worth_by_likelihood = _worth_of_passage(passage, likelihood, about)
    binds = about in BINDING_KINDS and passage.role == "user"
    works = passage.role == "assistant" and passage.values and passage.cues & _WORK_CUES
    if not passage.is_named and (binds or works):
        by_cues = _worth_by_cues(passage, about, frequency, total)
        return max(
            worth_by_likelihood, by_cues.times(BINDING_FACTOR) if binds else by_cues, key=lambda worth: worth.total
        )
    return worth_by_likelihood


def worth_of_statement(likelihood: float, values: Mapping[str, float], about: str) -> Worth:
    """The worth of a fact or a choice, from the likelihood that it is worth remembering."""
    factor = min(1.0, likelihood / _DOUBTFUL)
    return Worth(
        words_worth=MAX_WORTH_OF_WORDS * likelihood,
        values={text: factor * worth for text, worth in values.items()},
        about=about,
    )


def _worth_of_passage(passage: Passage, likelihood: float, about: str) -> Worth:
    worth = worth_of_statement(likelihood, values_worth(passage.core, passage.identifiers), about)
    opening = passage.seq <= LAST_OPENING_SEQ and passage.role == "user"
    if passage.is_held and not opening:
        worth = worth.times(_HELD_FACTOR)
    opens = opening and not passage.is_question
    return worth.plus(_OPENING_BONUS * opens * min(1.0, likelihood / _DOUBTFUL))


def _worth_by_cues(passage: Passage, about: str, frequency: Counter[str], total: int) -> Worth:
    content = [stem for stem in passage.stems if stem not in GENERIC_STEMS]
    most = _MAX_WORTH_IN_TOOL_PROSE if passage.role == "tool" else _MAX_WORTH_OF_IDENTIFIERS
    values = values_worth(passage.core, passage.identifiers, most)
    score = cue_worth(passage.cues) + min(1.0, 0.14 * len(content)) + _centrality(content, frequency, total)
    opening = passage.seq <= LAST_OPENING_SEQ and passage.role == "user"
    if opening:
        score += _OPENING_BONUS
    if "correction" in passage.cues and passage.role == "user" and not passage.is_named:
        score += _CORRECTION_BONUS
    if passage.is_question:
        score = _QUESTION_FACTOR * score - 0.8
        values = {text: _QUESTION_FACTOR * worth for text, worth in values.items()}
    if PLEASANTRY.match(passage.text):
        score -= 1.0 if passage.values or len(content) > 6 else 2.4  # noqa: PLR2004 - a long one says something too
    if len(content) < _TWO and not passage.values:
        score -= _SINGLE_WORD_PENALTY
    factor = _PASTED_FACTOR if passage.is_pasted else (_HELD_FACTOR if passage.is_held and not opening else 1.0)
    return Worth(words_worth=score, values=values, about=about).times(factor * _ROLE_FACTORS.get(passage.role, 1.0))


def _worth_of_focus(passage: Passage, focus_stems: frozenset[str]) -> float:
    return _FOCUS_BONUS * len(focus_stems & passage.stems) / len(focus_stems) if focus_stems else 0.0


def kind_of(cues: Collection[Cue]) -> str:
    """The kind of thing that a sentence states: a wish, a rule, a limit, an aim, a choice, or a fact."""
    for kind, telling in _KINDS.items() if cues else ():
        if not telling.isdisjoint(cues):
            return kind
    return "fact"


_KINDS: Final[Mapping[str, frozenset[Cue]]] = {
    "wish": frozenset({"preference"}),
    "rule": frozenset({"rule"}),
    "limit": frozenset({"constraint"}),
    "aim": frozenset({"plan", "commitment", "open"}),
    "choice": frozenset({"decision", "correction", "update"}),
}


def cue_worth(cues: Iterable[Cue]) -> float:
    """The worth of all cues of a sentence together."""
    weights = sorted((CUE_WEIGHTS[cue] for cue in cues), reverse=True)
    return weights[0] + _FURTHER_CUE_SHARE * sum(weights[1:4]) if weights else 0.0


def _centrality(content: Sequence[str], frequency: Counter[str], total: int) -> float:
    # This is degree centrality, computed from counts of words instead of pairs of sentences.
    if not content or total < 2:  # noqa: PLR2004 - nothing to be central in
        return 0.0
    return 0.8 * sum(math.log(frequency[stem]) for stem in content) / (len(content) * math.log(total))


def _accepted_proposals(passages: Sequence[Passage]) -> frozenset[int]:
    agreed = (
        proposal_before(passages, after)
        for here, after in pairwise(passages)
        if after.seq != here.seq
        and (here.role, after.role) == ("assistant", "user")
        and after.verdict > 0
        and not here.is_named
    )
    return frozenset(proposal.index for proposal in agreed if proposal is not None)


def proposal_before(passages: Sequence[Passage], reply: Passage) -> Passage | None:
    """The latest sentence of the message before ``reply`` that proposes something; ``None`` without one."""
    last = reply.index - 1
    index = last
    while index >= 0 and passages[index].seq == passages[last].seq and last - index < _MAX_SENTENCES_BACK:
        if PROPOSAL.search(passages[index].text):
            return passages[index]
        index -= 1
    return None

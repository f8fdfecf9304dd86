"""Scores the worth of a passage: by cues, exact values, speaker, how central it is, and what was asked to be kept."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Final

from app.core.reading.cues import CODES, IN_WORDS, PLEASANTRY, PROPOSAL, WEIGHTS, Cue
from app.core.reading.importance import Ratings, rated
from app.core.reading.passages import Passage
from app.core.reading.tool_data_lines import Line, group_key, is_call, parse_line
from app.core.text.cued import SAID
from app.core.text.identifiers import Identifier, Kind
from app.core.text.memo import memoized
from app.core.text.patterns import compiled
from app.core.text.words import GENERIC_STEMS, stems

_IDENTIFIER_WORTH: Final[Mapping[Kind, float]] = {
    "code": 4.0, "email": 4.0, "url": 3.0, "uuid": 4.0, "version": 2.0, "path": 1.6, "money": 1.8, "date": 1.8,
    "time": 1.4, "number": 1.4, "name": 1.4, "quoted": 1.2, "symbol": 0.7,
}  # fmt: skip
"""The worth of exact values by kind: values that may be asked for later and cannot be guessed are worth most."""
_IDENTIFIERS_AT_MOST: Final = 6.0
_IN_WORDS: Final = 0.8  # the worth of a count or time in words: "three children", "last Friday"
_NAMED_BY_CODE: Final = 2.5
_DIGIT: Final = 0.7  # the worth of a single digit
_OF_A_TOOL: Final = 2.0  # the most that values in a tool's prose are worth: the caller says what mattered
_PASTED: Final = 0.5  # the factor for pasted text: a document can be asked for again
_HELD: Final = 0.6  # the factor for a held message, which is served anyway
_ROLE: Final = {"user": 1.0, "assistant": 0.5, "tool": 0.35}
_FURTHER_CUES: Final = 0.35  # a second cue adds a third of its weight
OPENING: Final = 2
"""The highest ``seq`` of a message that opens a talk: a system message may stand before it."""

_FIRST_TURN: Final = 3.0  # added for the opening message, which says what the talk is about
_FOCUS: Final = 4.0
_ASKED: Final = 0.35  # the factor for a question, compared with the same words as a statement
_ACCEPTED: Final = 3.2  # added for an accepted proposal, which is a decision
_SAID_OTHERWISE: Final = 1.6  # added for a user's "actually" to an assistant; among people it is a mere word
_DATUM: Final = 0.8  # the worth of an id, a code or a date of a tool, which may be needed in its next call
_DATUM_SIGN: Final = 0.08  # added for each character of it: a longer value is harder to guess
_DATUM_SIGNS: Final = 20
_DATUM_WORD: Final = 0.5
_DATUM_WORDS: Final = 1.5  # the most that all words of a line are worth
_DATUM_AMOUNT: Final = 0.5
_DATUM_AMOUNTS: Final = 1.5
_MENTIONED: Final = 2.0  # the factor for a value that somebody talked about
_MEANT: Final = 1.8  # the factor for the record of a list that the talk was about, judged by its words
_NOT_MEANT: Final = 0.6  # the factor for the other records of a long list; in a short list each may be needed
_LONG_LIST: Final = 8  # records
HEAD: Final = 1.4
"""The weight of the first id of a record, by which records are asked for and changed."""

_DATA: Final = 0.8  # the worth of a record with an id, so that it is kept even if others have its id
_MAY_BE_CODE: Final = compiled(r"[a-z0-9][-/][a-z0-9]|[0-9a-f]{7}")
_IN_WORDS_BIT: Final = SAID.add(IN_WORDS.pattern)
_WORD: Final = compiled(r"[^\s\"'`(),=\[\]{}<>]+")
_AROUND: Final = ".,;:!?*$€£¥₽₹"  # signs beside a word that are ignored: a tool's data has amounts without their sign
_TWO: Final = 2
_TERSE: Final = 1.4  # subtracted for a single word, which says nothing unless it answers a question
FOLLOWED: Final = frozenset({"wish", "rule", "limit", "aim"})  # kinds of things that have to be followed unasked
BINDING: Final = 1.25  # the factor for these kinds, compared with what is only worth remembering
_OF_WORK: Final[frozenset[Cue]] = frozenset({"commitment", "result", "decision"})
"""Cues of what an assistant did or will do. They only count together with exact values."""
KEPT: Final = 8.0  # the worth, without exact values, of what is certainly worth remembering
_DOUBTFUL: Final = 0.3  # the likelihood below which exact values count less too
_CHANGED: Final = 2.0  # the worth of a call that changed something
_LOOK_BACK: Final = 12  # sentences that are searched back for a proposal


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """The worth of a text: of its words, and of each exact value that no other kept text has."""

    rest: float
    values: Mapping[str, float]
    """The worth of each value, by the value in lower case."""
    about: str = "fact"
    """The kind of thing that is said. The more of a kind is already kept, the less is further text of it worth."""

    @property
    def total(self) -> float:
        """The worth if nothing else is kept. A text with at least 1 is worth a place."""
        return self.rest + sum(self.values.values())

    def times(self, factor: float) -> Worth:
        """This worth, multiplied by a factor."""
        values = {text: factor * worth for text, worth in self.values.items()}
        return Worth(rest=factor * self.rest, values=values, about=self.about)

    def plus(self, more: float) -> Worth:
        """This worth, with an addition to that of the words."""
        return Worth(rest=self.rest + more, values=self.values, about=self.about) if more else self


def score_all(passages: Sequence[Passage], focus: str | None = None, ratings: Ratings | None = None) -> list[Worth]:
    """The worth of each passage; ``ratings`` are computed if they are not given. It takes linear time."""
    frequency = Counter(chain.from_iterable(passage.stems for passage in passages))
    wanted = frozenset(stems(focus)) if focus else frozenset()
    accepted = _accepted_proposals(passages)
    wholes = [whole for passage in passages if (whole := passage.whole)]
    mentioned = _words_of_talk(passages) | said_twice(wholes) if wholes else frozenset[str]()
    meant = meant_of(passages)
    likely = (ratings or rated(passages)).likely
    return [
        worth_of_data(passage.line, mentioned)
        .times(meant.get(passage.index, 1.0))
        .plus(_CHANGED if passage.is_action else 0.0)
        if passage.line
        else _score(passage, likely[passage.index], frequency, len(passages)).plus(
            _ACCEPTED * (passage.index in accepted) + _worth_of_focus(passage, wanted)
        )
        for passage in passages
    ]


def meant_of(passages: Sequence[Passage]) -> dict[int, float]:
    """For each passage that is a record of a list, a factor: larger for records that the talk is about."""
    lists: defaultdict[tuple[int, str], list[Passage]] = defaultdict(list)
    for passage in passages:
        if passage.whole and (name := group_key(passage.whole.text)):
            lists[passage.seq, name].append(passage)
    talk = _words_of_talk(passages) if lists else frozenset[str]()
    scaled: dict[int, float] = {}
    for records in lists.values():
        factors = relevances([one.whole for one in records if one.whole], talk)
        scaled.update(zip((one.index for one in records), factors, strict=True))
    return scaled


def _words_of_talk(passages: Sequence[Passage]) -> frozenset[str]:
    return words_said(passage.text for passage in passages if passage.line is None or is_call(passage.text))


def words_said(texts: Iterable[str]) -> frozenset[str]:
    """All words of these texts, for comparing with values of data: values that were talked about are worth more."""
    return frozenset(word.strip(_AROUND) for text in texts for word in _WORD.findall(text.casefold()))


def said_twice(lines: Iterable[Line]) -> frozenset[str]:
    """The values that several records have, and that thus connect them."""
    counts = Counter(value.casefold() for line in lines for value in line.codes)
    return frozenset(value for value, count in counts.items() if count > 1)


def relevances(records: Sequence[Line], talk: Collection[str]) -> list[float]:
    """A factor for the worth of each record of a list: larger for those that the talk is about.

    A record is recognised by words of the talk that few other records have.

    """
    said = [{*line.codes, *line.words, *line.amounts} for line in records]
    shared = Counter(value for values in said for value in values)
    hits = [math.fsum(1 / shared[value] for value in values if is_mentioned(value, talk)) for values in said]
    most = max(hits, default=0.0)
    if len(records) < _TWO:
        return [1.0] * len(records)
    least = max(_NOT_MEANT, min(1.0, _NOT_MEANT ** (len(records) / _LONG_LIST)))
    if not most:
        return [least**0.5] * len(records)
    return [least + (_MEANT - least) * (hit / most) ** 2 for hit in hits]


def worth_of_data(line: Line, mentioned: Collection[str]) -> Worth:
    """The worth of a line of a tool's data; values that the next call may need are worth more."""
    return worths_of_data([line], mentioned)[0]


def worths_of_data(parts: Sequence[Line], mentioned: Collection[str]) -> list[Worth]:
    """The worth of each part of one line. All words of the line together, and all amounts, have an upper limit."""
    words = _capped_worth(_DATUM_WORD, _DATUM_WORDS, sum(len(part.words) for part in parts))
    amounts = _capped_worth(_DATUM_AMOUNT, _DATUM_AMOUNTS, sum(len(part.amounts) for part in parts))
    with_values = sum(bool(part.codes) for part in parts)
    found: list[Worth] = []
    for part in parts:
        values = {
            value.casefold(): (_DATUM + _DATUM_SIGN * min(len(value), _DATUM_SIGNS))
            * _factor_of_mention(value, mentioned)
            for value in part.codes
        }
        for group, worth in ((part.words, words), (part.amounts, amounts)):
            values |= {value.casefold(): worth * _factor_of_mention(value, mentioned) for value in group}
        found.append(Worth(rest=_DATA / with_values if part.codes else 0.0, values=values, about="data"))
    return found


def _capped_worth(each: float, most: float, count: int) -> float:
    return min(each, most / count) if count else each


def _factor_of_mention(value: str, mentioned: Collection[str]) -> float:
    return _MENTIONED if is_mentioned(value, mentioned) else 1.0


def is_mentioned(value: str, mentioned: Collection[str]) -> bool:
    """Whether every word of a value was said; a single character does not count as a word."""
    return len(value) > 1 and all(word in mentioned for word in value.casefold().split(" "))


def worth_of_action(text: str, mentioned: Collection[str]) -> Worth:
    """The worth of a call that changed something: its values, and the fact that it was made."""
    return worth_of_data(parse_line(text), mentioned).plus(_CHANGED)


def values_worth(text: str, found: Iterable[Identifier], most: float = _IDENTIFIERS_AT_MOST) -> dict[str, float]:
    """The worth of a text's exact values, each once, together at most ``most``: identifiers, and values in words."""
    in_words, codes = _values_in_words_and_codes(text)
    values = dict.fromkeys(in_words, _IN_WORDS) | {code.casefold(): _NAMED_BY_CODE for code in codes}
    for item in found:
        if not (codes and any(item.text in code for code in codes)):
            bare = item.kind == "number" and len(item.text) == 1
            values[item.text.casefold()] = _DIGIT if bare else _IDENTIFIER_WORTH[item.kind]
    total = sum(values.values())
    return values if total <= most else {text: worth * most / total for text, worth in values.items()}


@memoized()
def _values_in_words_and_codes(text: str) -> tuple[Sequence[str], Sequence[str]]:
    told = IN_WORDS.finditer(text) if SAID.may_match_text(text) & _IN_WORDS_BIT else ()
    codes = CODES.findall(text) if _MAY_BE_CODE.search(text) else ()
    return [" ".join(match.group().casefold().split()) for match in told], codes


def _score(passage: Passage, likelihood: float, frequency: Counter[str], total: int) -> Worth:
    about = kind_of(passage.cues)
    if passage.role == "tool":
        return _worth_by_cues(passage, about, frequency, total)
    told = _worth_of_statement(passage, likelihood, about)
    binds = about in FOLLOWED and passage.role == "user"
    works = passage.role == "assistant" and passage.values and passage.cues & _OF_WORK
    if not passage.is_named and (binds or works):
        by_cues = _worth_by_cues(passage, about, frequency, total)
        return max(told, by_cues.times(BINDING) if binds else by_cues, key=lambda worth: worth.total)
    return told


def worth_told(likelihood: float, values: Mapping[str, float], about: str) -> Worth:
    """The worth of a fact or a choice, from the likelihood that it is worth remembering."""
    factor = min(1.0, likelihood / _DOUBTFUL)
    return Worth(rest=KEPT * likelihood, values={text: factor * worth for text, worth in values.items()}, about=about)


def _worth_of_statement(passage: Passage, likelihood: float, about: str) -> Worth:
    worth = worth_told(likelihood, values_worth(passage.core, passage.identifiers), about)
    opening = passage.seq <= OPENING and passage.role == "user"
    if passage.is_held and not opening:
        worth = worth.times(_HELD)
    opens = opening and not passage.is_question
    return worth.plus(_FIRST_TURN * opens * min(1.0, likelihood / _DOUBTFUL))


def _worth_by_cues(passage: Passage, about: str, frequency: Counter[str], total: int) -> Worth:
    content = [stem for stem in passage.stems if stem not in GENERIC_STEMS]
    most = _OF_A_TOOL if passage.role == "tool" else _IDENTIFIERS_AT_MOST
    values = values_worth(passage.core, passage.identifiers, most)
    score = cue_worth(passage.cues) + min(1.0, 0.14 * len(content)) + _centrality(content, frequency, total)
    opening = passage.seq <= OPENING and passage.role == "user"
    if opening:
        score += _FIRST_TURN
    if "correction" in passage.cues and passage.role == "user" and not passage.is_named:
        score += _SAID_OTHERWISE
    if passage.is_question:
        score = _ASKED * score - 0.8
        values = {text: _ASKED * worth for text, worth in values.items()}
    if PLEASANTRY.match(passage.text):
        score -= 1.0 if passage.values or len(content) > 6 else 2.4  # noqa: PLR2004 - a long one says something too
    if len(content) < _TWO and not passage.values:
        score -= _TERSE
    factor = _PASTED if passage.is_pasted else (_HELD if passage.is_held and not opening else 1.0)
    return Worth(rest=score, values=values, about=about).times(factor * _ROLE.get(passage.role, 1.0))


def _worth_of_focus(passage: Passage, wanted: frozenset[str]) -> float:
    return _FOCUS * len(wanted & passage.stems) / len(wanted) if wanted else 0.0


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
    weights = sorted((WEIGHTS[cue] for cue in cues), reverse=True)
    return weights[0] + _FURTHER_CUES * sum(weights[1:4]) if weights else 0.0


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
    while index >= 0 and passages[index].seq == passages[last].seq and last - index < _LOOK_BACK:
        if PROPOSAL.search(passages[index].text):
            return passages[index]
        index -= 1
    return None

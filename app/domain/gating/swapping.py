"""Values of one sentence that changed places: "the train costs 59, the hotel 900" told as "the hotel costs 59".

Both amounts were said, so only the words beside them can tell. Only the plain case is taken: the clause that holds the
value shares nothing of its own with what is told, and the clause of another value of the same kind does.
"""

# ruff: noqa: SIM905 - tables read better as running words

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.domain.gating.claims import Claim, find_claims
from app.domain.words.patterns import compiled
from app.domain.words.text import FRAME_STEMS, GENERIC_STEMS, stem, stems

_CLAUSE: Final = compiled(
    r"[,;，；、]\s?(?!\d{3}\b)|\s(?:and|but|while|whereas|plus|и|а|но|und|et|y)\s|(?<=[^\d])和|而"
)
_KINDS: Final = frozenset({"money", "date", "time", "number"})
_DOER: Final = compiled(r"\W*(?:(?:and|but|while|и|а|но|und|et|y)\s)?([^\W\d_a-zа-яё][^\W\d_]+)(?=\s)")
_AMOUNTS: Final = {"money", "number"}  # the first of two prices often lacks its currency
_PREDICATES: Final = frozenset(
    stem(word)
    for word in """cost costs price priced pay pays paid amount amounts total totals worth takes take lasts starts start
        ends end begins happens due comes leaves arrives held scheduled planned стоит стоят стоимость цена платит сумма
        составляет начинается заканчивается состоится длится kostet kosten preis coûte cuesta 价格 费用 是 为""".split()
)
"""What is said of any value alike."""


def is_swapped(text: str, claims: Sequence[Claim], told: Sequence[str]) -> bool:
    """Whether a text gives a value to what the sentences of its sources gave another value of the same kind."""
    values = [claim for claim in claims if claim.kind in _KINDS and claim.value is not None and not claim.value.is_word]
    wanted = [(claim, words) for claim in values if (words := _own_words(_clause_of(text, claim.start)))]
    return any(_belongs_elsewhere(claim, words, told) for claim, words in wanted)


def are_exchanged(text: str, told: Sequence[str]) -> bool:
    """Whether somebody is told to do what the sentences of the sources say that somebody else does."""
    doing = _doers(text)
    return bool(doing) and any(
        name in said
        and not words & said[name]
        and any(words & other for who, other in said.items() if who != name and who not in words)
        for name, words in doing.items()
        for said in map(_doers, told)
        if words
    )


def _doers(text: str) -> dict[str, frozenset[str]]:
    """Clauses that begin with a capital, and what each says: the first word's stem, and the others."""
    found: dict[str, frozenset[str]] = {}
    for clause in _CLAUSE.split(text):
        first = _DOER.match(clause)
        for name in stems(first[1])[:1] if first else ():
            words = _own_words(clause) - {name}
            found[name] = found.get(name, frozenset()) | words
    return {name: words for name, words in found.items() if words and name not in FRAME_STEMS | GENERIC_STEMS}


def _belongs_elsewhere(claim: Claim, words: frozenset[str], told: Sequence[str]) -> bool:
    needs = set(claim.value.needs) if claim.value else set()
    moved = False
    for sentence in told:
        same_kind = [other for other in find_claims(sentence) if _is_alike(other, claim)]
        own = [other for other in same_kind if other.value and needs & set(other.value.gives)]
        if not own:
            continue
        here = frozenset[str]().union(*(_own_words(_clause_of(sentence, other.start)) for other in own))
        rest = [other for other in same_kind if other not in own]
        there = frozenset[str]().union(*(_own_words(_clause_of(sentence, other.start)) for other in rest))
        if words & here or not words & (there - here):
            return False
        moved = True
    return moved


def _is_alike(one: Claim, other: Claim) -> bool:
    """Whether two values could stand for each other: of one kind, in one unit."""
    if one.value is None or other.value is None:
        return False
    if {one.kind, other.kind} == _AMOUNTS:
        return not one.value.unit or not other.value.unit
    return one.kind == other.kind and one.value.unit == other.value.unit


def _clause_of(text: str, place: int) -> str:
    start = 0
    for cut in _CLAUSE.finditer(text):
        if cut.start() > place:
            return text[start : cut.start()]
        start = cut.end()
    return text[start:]


def _own_words(clause: str) -> frozenset[str]:
    values = {word for claim in find_claims(clause) if claim.value for word in stems(claim.text)}
    return frozenset(stems(clause)) - values - FRAME_STEMS - GENERIC_STEMS - _PREDICATES

"""What a span is about, and which concepts its user is at home with."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import Final

from app.core.reading.cues import EXPLAIN
from app.core.reading.passages import Passage
from app.core.text.languages.joined import alternatives, words_of
from app.core.text.patterns import compiled
from app.core.text.word_lists import GENERIC, TECHNOLOGY, respelled
from app.core.text.words import GENERIC_STEMS, stem, tokens, words

_FEWEST: Final = 2
_MOST: Final = 8  # terms
_MASTERED: Final = 3  # messages in which a term is used before its user is at home with it
_SYMBOL: Final = compiled(r"(?=[A-Za-z_]*[a-z])[A-Za-z_]{4,40}(?:\(\))?")
_NO_WORDS: Final = frozenset({"code", "url", "email", "uuid", "path", "time", "version", "date", "money", "number"})
_CALENDAR: Final = frozenset(map(stem, words_of("terms", "calendar")))
_EXPLAINED: Final = compiled(
    rf"(?:\W*(?:{alternatives('clauses', 'articles')})\s)?(\S{{2,40}})(?:\s\S{{2,40}})?"
    rf"\s(?:{alternatives('claims', 'explained')})\b",
    re.IGNORECASE,
)
_BEHIND_ARTICLE: Final = compiled(alternatives("terms", "behind_article"), re.IGNORECASE)
_VERB: Final = compiled(alternatives("terms", "verbs"))


def _run(passage: Passage, barred: set[str], spelled: defaultdict[str, Counter[str]]) -> list[str]:
    """Stems in order; an empty one breaks a pair."""
    run: list[str] = []
    text = passage.text
    for item in passage.identifiers:
        if item.kind in _NO_WORDS:
            text = text.replace(item.text, " ")
    for word in words(text):
        base = stem(word)
        usable = (
            word not in GENERIC
            and not _VERB.fullmatch(word)
            and base not in _CALENDAR
            and base not in barred
            and base not in GENERIC_STEMS
            and not word[0].isdigit()
        )
        run.append(base if usable and (len(word) > 2 or not word.isascii()) else "")  # noqa: PLR2004
        if base not in spelled:
            spelled[base][word] += 1
    for written in tokens(passage.text)[1:]:
        lower = respelled(written.lower())
        spelled[stem(lower)][written if not written.isupper() or len(written) < 6 else lower] += 1  # noqa: PLR2004
    return run


def _spelling(base: str, spelled: defaultdict[str, Counter[str]]) -> str:
    return min(spelled[base].items(), key=lambda item: (-item[1], item[0]))[0]


def familiar_terms(passages: Sequence[Passage]) -> list[tuple[str, int]]:
    """Technical terms that the user uses again and again or explains, each with the ``seq`` of the latest use.

    Nothing that they ask the meaning of, and nothing that only others use.
    """
    seqs: defaultdict[str, set[int]] = defaultdict(set)
    asked: set[str] = set()
    explained: set[str] = set()
    for passage in passages:
        if passage.role != "user" or passage.is_pasted:
            continue
        terms = _technical(passage)
        if passage.is_question and EXPLAIN.search(passage.text):
            asked.update(terms)
            continue
        told = _EXPLAINED.match(passage.text)
        if told and not passage.is_question:
            explained.update(term for term in terms if term in told.group(1))
        for term in terms:
            seqs[term].add(passage.seq)
    familiar = [term for term in seqs if term not in asked and (len(seqs[term]) >= _MASTERED or term in explained)]
    ranked = sorted(familiar, key=lambda term: (-len(seqs[term]), term))
    return [(term, max(seqs[term])) for term in ranked[:_MOST]]


def _technical(passage: Passage) -> set[str]:
    """Symbols, code in back-ticks and well-known names of technology."""
    found = {
        item.text
        for item in passage.identifiers
        if (item.kind == "symbol" and _SYMBOL.fullmatch(item.text)) or (item.kind == "quoted" and item.text[0] == "`")
    }
    return found | {word for word in tokens(passage.text) if word.lower() in TECHNOLOGY}


def returning(passages: Sequence[Passage], turns: Collection[int]) -> str | None:
    """The thing that the user's messages at these turns name and most messages of the span share; two at least must."""
    speakers = {stem(word) for passage in passages for word in words(passage.speaker)}
    shared: defaultdict[str, set[int]] = defaultdict(set)
    spelled: defaultdict[str, Counter[str]] = defaultdict(Counter)
    named: set[str] = set()
    for passage in passages:
        if passage.is_pasted:
            continue
        for base in filter(None, _run(passage, speakers, spelled)):
            shared[base].add(passage.turn)
        if passage.turn in turns and passage.role == "user":
            named.update(_things(passage))
    best = max(named & shared.keys(), key=lambda base: (len(shared[base]), base), default=None)
    return _spelling(best, spelled) if best and len(shared[best]) >= _FEWEST else None


def _things(passage: Passage) -> set[str]:
    """Stems of words that are used as nouns: behind an article or the like, names, or Russian words of that look."""
    found = {match.group(1).lower() for match in _BEHIND_ARTICLE.finditer(passage.text)}
    found |= {item.text.lower() for item in passage.identifiers if item.kind == "name"}
    found |= {word for word in words(passage.text) if "а" <= word[0] <= "я" and not _VERB.fullmatch(word)}
    return {stem(word) for word in found}

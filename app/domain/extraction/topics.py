"""What a span is about, and which concepts its user is at home with."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from app.domain.extraction.cues import EXPLAIN
from app.domain.extraction.passages import Passage
from app.domain.text import GENERIC_STEMS, stem, words
from app.domain.vocabulary import GENERIC, TECHNOLOGY

_FEWEST: Final = 2
_SYMBOL: Final = re.compile(r"[A-Za-z_]{4,40}(?:\(\))?|[A-Z]{4,8}")
_NO_WORDS: Final = frozenset({"code", "url", "email", "uuid", "path", "time", "version"})
_WRITTEN: Final = re.compile(r"[^\W\d_]+")


def topics(passages: Sequence[Passage], *, most: int = 4) -> list[str]:
    """The terms that a span returns to, in their commonest spelling; an assistant alone raises none."""
    speakers = {passage.speaker.lower() for passage in passages}
    barred = {stem(word) for speaker in speakers for word in words(speaker)}
    single: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    spelled: defaultdict[str, Counter[str]] = defaultdict(Counter)
    seen_turns: set[tuple[str, int]] = set()
    raised: set[str] = set()
    for passage in passages:
        from_user = passage.role == "user" or passage.is_named
        weight = 2 if from_user else 1
        run = [
            base if not any(name.startswith(base) for name in speakers) else ""
            for base in _run(passage, barred, spelled)
        ]
        for here in run:
            raised.update({here} if here and from_user else ())
            if here and (here, passage.turn) not in seen_turns:
                seen_turns.add((here, passage.turn))
                single[here] += weight
        for left, right in pairwise(run):
            if left and right and left != right:
                pairs[left, right] += weight
    for bases in [pair for pair in pairs if not raised.issuperset(pair)]:
        del pairs[bases]
    return _best(Counter({base: single[base] for base in single if base in raised}), pairs, spelled, most)


def _run(passage: Passage, barred: set[str], spelled: defaultdict[str, Counter[str]]) -> list[str]:
    """Stems in order; an empty one breaks a pair."""
    run: list[str] = []
    text = passage.text
    for item in passage.identifiers:
        if item.kind in _NO_WORDS:
            text = text.replace(item.text, " ")
    for word in words(text):
        base = stem(word)
        usable = word not in GENERIC and base not in barred and base not in GENERIC_STEMS and not word[0].isdigit()
        run.append(base if usable and (len(word) > 2 or not word.isascii()) else "")  # noqa: PLR2004
        if base not in spelled:
            spelled[base][word] += 1
    for written in _WRITTEN.findall(passage.text)[1:]:
        lower = written.lower()
        spelled[stem(lower)][written if not written.isupper() or len(written) < 6 else lower] += 1  # noqa: PLR2004
    return run


def _best(
    single: Counter[str],
    pairs: Counter[tuple[str, str]],
    spelled: defaultdict[str, Counter[str]],
    most: int,
) -> list[str]:
    found: list[str] = []
    used: set[str] = set()
    scored = [
        (3.0 * count, f"{_spelling(a, spelled)} {_spelling(b, spelled)}", {a, b})
        for (a, b), count in pairs.items()
        if count > _FEWEST + 1
    ]
    scored += [(float(count), _spelling(base, spelled), {base}) for base, count in single.items() if count > _FEWEST]
    if not scored:
        scored = [(float(count), _spelling(base, spelled), {base}) for base, count in single.items()]
    for _, name, parts in sorted(scored, key=lambda item: (-item[0], item[1])):
        if not parts & used:
            used |= parts
            found.append(name)
        if len(found) == most:
            break
    return found


def _spelling(base: str, spelled: defaultdict[str, Counter[str]]) -> str:
    return min(spelled[base].items(), key=lambda item: (-item[1], item[0]))[0]


def familiar_terms(passages: Sequence[Passage], *, most: int = 8) -> list[tuple[str, int]]:
    """Terms the user uses again and again without asking what they mean, each with the ``seq`` of the latest use.

    Technical names count from the second message on, pairs of words from the third.
    """
    seqs: defaultdict[str, set[int]] = defaultdict(set)
    asked: set[str] = set()
    needs: dict[str, int] = {}
    echoes: Counter[str] = Counter()
    for passage in passages:
        if passage.role != "user":
            echoes.update(_technical(passage).keys())
            continue
        terms = _technical(passage)
        if not passage.is_named:
            terms.update(dict.fromkeys(_word_pairs(passage), _FEWEST + 1))
        if passage.is_question and EXPLAIN.search(passage.text):
            asked.update(terms)
            continue
        for term, uses in terms.items():
            needs[term] = uses
            seqs[term].add(passage.seq)
    familiar = [
        term
        for term in seqs
        if term not in asked and (len(seqs[term]) >= needs[term] or len(seqs[term]) + echoes[term] > _FEWEST)
    ]
    ranked = sorted(familiar, key=lambda term: (-len(seqs[term]), term))
    return [(term, max(seqs[term])) for term in ranked[:most]]


def _technical(passage: Passage) -> dict[str, int]:
    """Symbols, code in back-ticks and well-known names of technology, each with the uses that make it familiar."""
    found = {
        item.text: _FEWEST
        for item in passage.identifiers
        if (item.kind == "symbol" and _SYMBOL.fullmatch(item.text)) or (item.kind == "quoted" and item.text[0] == "`")
    }
    found.update({word: _FEWEST for word in _WRITTEN.findall(passage.text) if word.lower() in TECHNOLOGY})
    return found


def _word_pairs(passage: Passage) -> Iterable[str]:
    run = words(passage.text)
    for left, right in pairwise(run):
        usable = all(len(word) > 3 and word.isalpha() and word not in GENERIC for word in (left, right))  # noqa: PLR2004
        if usable and f"{left} {right}" in passage.text.lower():
            yield f"{left} {right}"

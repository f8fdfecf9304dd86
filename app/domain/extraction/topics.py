"""What a span is about, and which concepts its user is at home with."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from app.domain.extraction.cues import EXPLAIN
from app.domain.extraction.passages import Passage
from app.domain.text import stem, words
from app.domain.vocabulary import GENERIC

_FEWEST: Final = 2
_WRITTEN: Final = re.compile(r"[^\W\d_]+")


def topics(passages: Sequence[Passage], *, most: int = 4, without: Iterable[str] = ()) -> list[str]:
    """The terms that a span returns to, pairs of words before single ones, in their commonest spelling."""
    barred = {stem(word) for text in without for word in words(text)}
    barred |= {stem(word) for passage in passages for word in words(passage.speaker)}
    single: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    spelled: defaultdict[str, Counter[str]] = defaultdict(Counter)
    seen_turns: set[tuple[str, int]] = set()
    for passage in passages:
        weight = 2 if passage.role == "user" else 1
        run = _run(passage, barred, spelled)
        for here in run:
            if here and (here, passage.turn) not in seen_turns:
                seen_turns.add((here, passage.turn))
                single[here] += weight
        for left, right in zip(run, run[1:], strict=False):
            if left and right and left != right:
                pairs[left, right] += weight
    return _best(single, pairs, spelled, most)


def _run(passage: Passage, barred: set[str], spelled: defaultdict[str, Counter[str]]) -> list[str]:
    """Stems in order; an empty one breaks a pair."""
    run: list[str] = []
    for word in words(passage.text):
        base = stem(word)
        usable = word not in GENERIC and base not in barred and base not in GENERIC and not word[0].isdigit()
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
    """Technical terms the user uses again and again without asking what they mean, each with a ``seq``."""
    uses: Counter[str] = Counter()
    where: dict[str, int] = {}
    asked: set[str] = set()
    seen: set[tuple[str, int]] = set()
    for passage in passages:
        if passage.role != "user":
            continue
        for item in passage.identifiers:
            if not _is_technical(item.kind, item.text):
                continue
            if passage.is_question and EXPLAIN.search(passage.text):
                asked.add(item.text)
            elif (item.text, passage.seq) not in seen:
                seen.add((item.text, passage.seq))
                uses[item.text] += 1
                where[item.text] = passage.seq
    ranked = sorted(
        (term for term in uses if uses[term] >= _FEWEST and term not in asked), key=lambda term: (-uses[term], term)
    )
    return [(term, where[term]) for term in ranked[:most]]


def _is_technical(kind: str, text: str) -> bool:
    if kind == "symbol":
        return not text.startswith("-")
    return kind == "quoted" and text.startswith("`")

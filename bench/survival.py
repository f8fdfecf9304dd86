"""Measures what survives of a long talk at a tenth of its tokens: distinct names, numbers and dates, verbatim.

``python -m bench.survival [--share 0.1] [--seeds 20] [--write]`` folds each talk of ``../shared/data/locomo`` with the
offline model and counts which exact values of the folded messages are in state and anchors. For comparison it makes
selections of the same size: the newest messages, LexRank's sentences, random messages. Nothing of the data is printed
or kept.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from app.core.model.policies.budgets import Budgets
from app.core.text.escaping import unescape
from app.core.text.sentences import sentences
from app.core.text.token_counts import estimate_text
from app.core.text.words import stems
from bench.measurements import write
from bench.replay import EVERYTHING, Replay

DATA: Final = Path(__file__).resolve().parents[2] / "shared" / "data" / "locomo" / "conversations.jsonl"
_MONTHS: Final = "January|February|March|April|May|June|July|August|September|October|November|December"
_DAYS: Final = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
_COUNTS: Final = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|hundred|thousand|first"
    "|second|third|fourth|fifth"
)
PATTERNS: Final[dict[str, re.Pattern[str]]] = {
    "dates": re.compile(
        r"\b\d{4}-\d{2}-\d{2}\b"
        rf"|\b(?:\d{{1,2}}(?:st|nd|rd|th)? (?:of )?)?(?:{_MONTHS})\b(?: \d{{1,2}}\b)?(?:,? \d{{4}})?"
        rf"|\b(?:(?:last|next|this) )?(?:{_DAYS})\b"
        r"|\b(?:last|next) (?:week(?:end)?|month|year|summer|winter|spring|fall)\b"
        r"|\b\d{1,2}(?::\d{2})? ?[ap]\.?m\b|\b(?:19|20)\d{2}\b"
    ),
    "numbers": re.compile(rf"[$€£]? ?\b\d[\d,.:]*\d\b%?|[$€£]?\b\d\b%?|\b(?:{_COUNTS}) \w+", re.IGNORECASE),
    "names": re.compile(r"(?<=[\w,;)'’] )[A-Z][\w'’&+-]+(?: [A-Z][\w'’&+-]+)*|[\"“][A-Z][^\"”\n]{2,60}[\"”]"),
}
"""The patterns of values, without the service's own detectors, in this order: a later pattern does not see what an
earlier one found. A name is a capitalised word inside a sentence, or a title in quotes."""

_NO_NAMES: Final = frozenset({"I", "I'm", "I'll", "I've", "I'd", "I’m", "I’ll", "I’ve", "I’d", "OK", "Ok"})
ANCHORS: Final = 0.15  # share of the room, as ``anchor_share`` is by default
_SIMILAR: Final = 0.1  # cosine from which LexRank joins two sentences
_DAMPING: Final = 0.85


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A conversation of the data set: speakers, texts and times."""

    id: str
    messages: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    """How many distinct values are in a text, by group, and how large the text is."""

    kept: dict[str, int]
    tokens: int

    @property
    def total(self) -> int:
        """All groups together."""
        return sum(self.kept.values())


def talks(path: Path = DATA) -> list[Talk]:
    """The conversations; empty if the data is missing."""
    if not path.exists():
        return []
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    return [Talk(id=row["id"], messages=tuple(row["messages"])) for row in rows]


def values_of(texts: Iterable[str]) -> dict[str, set[str]]:
    """The distinct exact values of these texts, by group, in lower case."""
    found: dict[str, set[str]] = {group: set() for group in PATTERNS}
    for text in texts:
        left = text.removeprefix(_speaker(text))
        for group, pattern in PATTERNS.items():
            found[group].update(
                match.strip(' "“”').casefold() for match in pattern.findall(left) if match not in _NO_NAMES
            )
            left = pattern.sub(" | ", left)
    return found


def survival(values: dict[str, set[str]], text: str) -> Survival:
    """How many of these values are in the text as whole words."""
    folded_text = text.casefold()
    kept = {group: sum(_contains_value(value, folded_text) for value in some) for group, some in sorted(values.items())}
    return Survival(kept=kept, tokens=estimate_text(text))


def _contains_value(value: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None


def folded(talk: Talk, share: float) -> tuple[Replay, int]:
    """The talk folded as a whole into state and anchors of this share of its tokens, and that share in tokens."""
    texts = [message["content"] for message in talk.messages]
    room = math.floor(share * sum(map(estimate_text, texts)))
    anchors = math.floor(ANCHORS * room)
    replay = Replay.in_window(1_000_000)
    replay.policy = replay.policy.model_copy(update={"protect": ()})  # nothing is held: only what was folded counts
    replay.budgets = _limited(replay.budgets, state=room - anchors, anchors=anchors)
    for message in talk.messages:
        replay.say(message["role"], message["content"], at=_time(message))
    replay.fold(EVERYTHING)
    return replay, room


def _time(message: dict[str, Any]) -> datetime | None:
    time_text = message.get("created_at")
    return datetime.fromisoformat(time_text) if time_text else None


def _limited(budgets: Budgets, *, state: int, anchors: int) -> Budgets:
    return replace(budgets, state_tokens=state, state_cap=state, anchor_tokens=anchors)


# --- selections of the same size ----------------------------------------------------------------------------------


def newest(texts: Sequence[str], room: int) -> str:
    """The last messages that fit."""
    return _filled(reversed(range(len(texts))), texts, room)


def at_random(texts: Sequence[str], room: int, seed: int) -> str:
    """Messages in a random order, as far as they fit."""
    order = list(range(len(texts)))
    random.Random(seed).shuffle(order)
    return _filled(order, texts, room)


def lexrank(texts: Sequence[str], room: int) -> str:
    """The most central sentences, each with its speaker."""
    ranked_texts = [
        f"{_speaker(text)}{sentence}" for text in texts for sentence in sentences(text.removeprefix(_speaker(text)))
    ]
    centrality = _centrality([Counter(stems(sentence)) for sentence in ranked_texts])
    return _filled(sorted(range(len(ranked_texts)), key=lambda index: (-centrality[index], index)), ranked_texts, room)


def _speaker(text: str) -> str:
    head, colon, _ = text.partition(": ")
    return f"{head}: " if colon and len(head) < 24 else ""  # a longer text is no name


def _filled(order: Iterable[int], texts: Sequence[str], room: int) -> str:
    """The texts that fit, chosen in this order, but listed in their own order."""
    chosen: list[int] = []
    for index in order:
        cost = estimate_text(texts[index] + "\n")
        if cost <= room:
            chosen.append(index)
            room -= cost
    return "\n".join(texts[index] for index in sorted(chosen))


def _centrality(bags: Sequence[Counter[str]]) -> list[float]:
    """Stationary distribution over sentences joined by cosine similarity of their weighted words."""
    total = len(bags)
    frequency = Counter(word for bag in bags for word in bag)
    weights = [{word: count * math.log(total / frequency[word]) for word, count in bag.items()} for bag in bags]
    norms = [math.sqrt(sum(value * value for value in bag.values())) or 1.0 for bag in weights]
    postings: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for index, bag in enumerate(weights):
        for word, value in bag.items():
            postings[word].append((index, value / norms[index]))
    joined = [_similar(bag, norm, postings) for bag, norm in zip(weights, norms, strict=True)]
    scores = [1 / total] * total
    for _ in range(20):
        after = [(1 - _DAMPING) / total] * total
        for index, others in enumerate(joined):
            for other in others:
                after[other] += _DAMPING * scores[index] / len(others)
        scores = after
    return scores


def _similar(bag: dict[str, float], norm: float, postings: dict[str, list[tuple[int, float]]]) -> list[int]:
    shared: defaultdict[int, float] = defaultdict(float)
    for word, value in bag.items():
        for index, other in postings[word]:
            shared[index] += value / norm * other
    return [index for index, cosine in shared.items() if cosine > _SIMILAR]


# --- the table ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One conversation, measured."""

    talk: str
    messages: int
    room: int
    values: dict[str, int]
    ours: Survival
    newest: Survival
    lexrank: Survival
    random: tuple[Survival, ...]


def measured(talk: Talk, share: float, seeds: int) -> Row:
    """The results of Throughline and the other methods on one talk."""
    texts = [message["content"] for message in talk.messages]
    replay, room = folded(talk, share)
    values = values_of(message.content for message in replay.messages[: replay.boundary])

    def score(text: str) -> Survival:
        return survival(values, text)

    remembered = unescape(replay.remembered()).replace('\\"', '"')
    return Row(
        talk=talk.id,
        messages=replay.boundary,
        room=room,
        values={group: len(some) for group, some in sorted(values.items())},
        ours=score(remembered),
        newest=score(newest(texts, room)),
        lexrank=score(lexrank(texts, room)),
        random=tuple(score(at_random(texts, room, seed)) for seed in range(seeds)),
    )


def table(rows: Sequence[Row], share: float) -> str:
    """The rows as Markdown: shares of the distinct values, per conversation and in total."""
    lines = [
        "| talk | messages | tokens allowed | values | state + anchors | newest first | LexRank | random (95 %) |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        total = sum(row.values.values())
        lines.append(
            f"| {row.talk} | {row.messages} | {row.room} | {total} | **{_percent(row.ours.total, total)}**"
            f" ({row.ours.tokens}) | {_percent(row.newest.total, total)} | {_percent(row.lexrank.total, total)}"
            f" | {_interval([one.total for one in row.random], total)} |"
        )
    everything = sum(sum(row.values.values()) for row in rows)
    draws = [sum(row.random[seed].total for row in rows) for seed in range(len(rows[0].random))]
    lines.append(
        f"| all | {sum(row.messages for row in rows)} | {sum(row.room for row in rows)} | {everything}"
        f" | **{_percent(sum(row.ours.total for row in rows), everything)}**"
        f" | {_percent(sum(row.newest.total for row in rows), everything)}"
        f" | {_percent(sum(row.lexrank.total for row in rows), everything)} | {_interval(draws, everything)} |"
    )
    groups = [
        f"{group} {_percent(sum(row.ours.kept[group] for row in rows), sum(row.values[group] for row in rows))}"
        for group in PATTERNS
    ]
    lines += ["", f"By kind, at {share:.0%} of the tokens: {', '.join(groups)}."]
    return "\n".join(lines)


def _percent(part: float, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "–"


def _interval(draws: Sequence[int], whole: int) -> str:
    """The mean over the draws, and its 95 % interval."""
    mean = statistics.fmean(draws)
    spread = 1.96 * statistics.stdev(draws) / math.sqrt(len(draws)) if len(draws) > 1 else 0.0
    return f"{_percent(mean, whole)} ± {spread / whole:.1%}" if whole else "–"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and with ``--write`` put the table into ``docs/measurements.md``."""
    parser = argparse.ArgumentParser(prog="python -m bench.survival", description="Survival of names, numbers, dates.")
    parser.add_argument("--share", type=float, default=0.1, help="of the conversation's tokens")
    parser.add_argument("--seeds", type=int, default=20, help="random selections")
    parser.add_argument("--write", action="store_true", help="into docs/measurements.md")
    asked = parser.parse_args(arguments)
    found = talks()
    if not found:
        print(f"skipped: no data at {DATA}")
        return 0
    text = table([measured(talk, asked.share, asked.seeds) for talk in found], asked.share)
    print(text)
    if asked.write:
        write("survival", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

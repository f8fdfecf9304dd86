"""Measures how well the state alone answers later questions: offline summaries of talks whose evidence is known.

``python -m bench.state_evidence [--data FILE …] [--windows 8000 32000] [--out FILE]`` plays each talk message by
message in each window, folded whenever it is due and once at its end. For each question it counts

* *evidence*: the state has an entry that names one of the messages that hold the answer, and
* *answer*: one entry has most of the answer: every number in it, and at least six tenths of its other words.

Anchors, digests and recall are left out: ``bench.fidelity`` measures what they add. Figures of two commits are compared
question by question: ``--against FILE`` prints the difference with its 95 % interval over talks (bootstrap).
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from app.core.model.state import StateEntry
from app.core.state.apply import served
from app.core.text.words import FRAME_STEMS, GENERIC_STEMS, stems
from bench.fidelity_made import FOLDER
from bench.recall_talks import Talk, TalkQuestion, talks
from bench.replay import EVERYTHING, Replay
from bench.report import print_table
from bench.survival import DATA

_MIN_SHARE: Final = 0.6
_RESAMPLED: Final = 2_000
_LABELS: Final = {"named": "evidence", "told": "answer"}
"""The labels in tables of what is counted, by its field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """How well the state answers one question."""

    talk: str
    window: int
    question: str
    named: bool
    told: bool


def played(talk: Talk, window: int) -> Replay:
    """Play a talk in a window, at its own times, folded when due and completely at its end."""
    replay = Replay.in_window(window)
    for message in talk.messages:
        at = message.get("created_at")
        replay.say(
            message["role"],
            message["content"],
            message.get("parts") or (),
            at=datetime.fromisoformat(at) if at else None,
        )
        if replay.is_due():
            replay.fold()
    replay.fold(EVERYTHING)
    return replay


def answered(talk: Talk, window: int) -> Iterator[Answered]:
    """The results for every question of a talk."""
    entries = served(played(talk, window).entries)
    entry_words = [_words(entry.text) for entry in entries]
    for asked in talk.questions:
        yield Answered(
            talk=talk.id,
            window=window,
            question=asked.text,
            named=_is_named(asked, entries),
            told=any(_answers(words, asked.answer) for words in entry_words),
        )


def _is_named(asked: TalkQuestion, entries: Sequence[StateEntry]) -> bool:
    return any(set(asked.evidence) & set(entry.from_seqs) for entry in entries if entry.role != "narrative")


def _words(text: str) -> frozenset[str]:
    return frozenset(stems(text)) - FRAME_STEMS - GENERIC_STEMS


def _answers(words: frozenset[str], answer: str) -> bool:
    wanted = _words(answer)
    exact = {word for word in wanted if any(sign.isdigit() for sign in word)}
    return bool(wanted) and exact <= words and len(wanted & words) >= _MIN_SHARE * len(wanted)


def shares(found: Sequence[Answered]) -> list[dict[str, object]]:
    """The shares of questions in per cent, by window and kind of talk."""
    rows: list[dict[str, object]] = []
    for window in sorted({one.window for one in found}):
        for kind, is_made in (("made up", True), ("LoCoMo", False)):
            those = [one for one in found if one.window == window and one.talk.startswith("made-") == is_made]
            if those:
                named, told = (100 * statistics.mean(getattr(one, of) for one in those) for of in ("named", "told"))
                rows.append(
                    {
                        "window": window,
                        "talks": kind,
                        "questions": len(those),
                        "named": round(named, 1),
                        "told": round(told, 1),
                    }
                )
    return rows


def difference(now: Sequence[Answered], before: Sequence[Answered], of: str) -> tuple[float, float, float]:
    """The change of the share ``of`` in points, with its 95 % interval, by resampling whole talks."""
    earlier = {(one.talk, one.window, one.question): getattr(one, of) for one in before}
    by_talk: dict[str, list[int]] = {}
    for one in now:
        was = earlier[one.talk, one.window, one.question]
        by_talk.setdefault(one.talk, []).append(int(getattr(one, of)) - int(was))
    chosen = random.Random(1)
    names = sorted(by_talk)
    means = []
    for _ in range(_RESAMPLED):
        drawn = [value for name in chosen.choices(names, k=len(names)) for value in by_talk[name]]
        means.append(100 * statistics.mean(drawn))
    means.sort()
    whole = 100 * statistics.mean(value for values in by_talk.values() for value in values)
    return whole, means[round(0.025 * _RESAMPLED)], means[round(0.975 * _RESAMPLED) - 1]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; keep every answer with ``--out``."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.state_evidence", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--data", type=Path, nargs="+", default=[*sorted(FOLDER.glob("*.jsonl")), DATA])
    parser.add_argument("--windows", type=int, nargs="+", default=[8_000, 32_000])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--against", type=Path, help="what --out kept of another commit")
    given = parser.parse_args(argv)
    found = [
        one for path in given.data for talk in talks(path) for window in given.windows for one in answered(talk, window)
    ]
    rows = shares(found)
    print_table(
        ["window", "talks", "questions", "evidence %", "answer %"],
        [
            [str(r["window"]), str(r["talks"]), str(r["questions"]), f"{r['named']:.1f}", f"{r['told']:.1f}"]
            for r in rows
        ],
    )
    if given.against:
        before = [Answered(**one) for one in json.loads(given.against.read_text(encoding="utf-8"))]
        for of in _LABELS:
            whole, low, high = difference(found, before, of)
            print(f"{_LABELS[of]}: {whole:+.1f} points ({low:+.1f} to {high:+.1f})")
    if given.out:
        given.out.write_text(json.dumps([asdict(one) for one in found], ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

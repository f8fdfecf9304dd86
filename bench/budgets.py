"""Measures how much of a conversation is served as the budget grows, with and without a question.

``python -m bench.budgets [--data file.jsonl …] [--every n] [--preset hierarchical] [--write]`` folds each conversation
of LoCoMo and each made-up talk as a whole with the offline model. Its segments are cut, summarised and laid out as the
service does it. A context is assembled for each question within 5 to 100 % of the conversation's own tokens, with the
question as ``query`` and without one. For each budget it prints

* evidence: whether the text of every message that holds the answer is in the context;
* words: the share of the answer's content words that are in it;

for what is served now, for what was served before (the block as it was laid out, and with a question all that matches)
and for the newest messages that fit. It also prints the share of a segment's content words that each level has. Nothing
of the data is printed or kept.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from app.core.context.assembly import ContextInputs
from app.core.context.drafts import Detail
from app.core.context.larger_budget import ranges_to_read
from app.core.model.errors import BudgetTooSmallError
from app.core.model.policies.resolving import DEFAULT_PRESET
from app.core.model.segments import LEVELS, Level, ServableSegment
from app.core.model.word_overlap import message_text
from app.core.retrieval.rendering import Recall
from app.core.state.digest_selection import DigestSource
from app.core.state.layout import with_digests
from app.core.text.token_counts import estimate_text
from app.core.text.words import GENERIC_STEMS, stems
from bench.fidelity_made import FOLDER
from bench.measurements import write
from bench.recall_baselines import Baselines
from bench.recall_talks import Talk, TalkQuestion, budget_of, context, corpus_in, material_of, replay_of, talks
from bench.replay import Replay, segments_of
from bench.report import write_json
from bench.survival import DATA

SHARES: Final = (0.05, 0.10, 0.20, 0.40, 0.70, 1.00)
NOW: Final = "served now"
BEFORE: Final = "served before"
NEWEST: Final = "newest first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was served for one question at one size."""

    talk: str
    name: str
    asks: bool
    """Whether the question was given."""
    share: float
    evidence: bool
    words: float | None
    """The share of the answer's content words that was served; ``None`` if the answer has no content words."""
    tokens: int


class FoldedTalk:
    """A talk as the service handles it: folded as a whole, with its segments laid out."""

    def __init__(self, talk: Talk, preset: str) -> None:
        self.talk = talk
        replay = replay_of(talk.messages, fold=True, preset=preset)
        self.segments = segments_of(replay)
        self._messages = replay.messages
        self._material = laid_out(replay, self.segments)
        self._corpus = corpus_in(replay)
        self._newest = Baselines(talk.texts).all()[NEWEST]

    def rows(self, every: int) -> Iterator[Row]:
        """The rows of every n-th question at every size."""
        for share in SHARES:
            budget = budget_of(self.talk, share)
            plain = {name: self._served(name, "", budget) for name in (NOW, BEFORE)}
            chosen = sorted(self._newest("", budget))
            newest = "\n".join(self.talk.texts[seq - 1] for seq in chosen)
            for asked in self.talk.questions[::every]:
                yield self._row(NEWEST, asked, share, (newest, budget), asks=False)
                for name in (NOW, BEFORE):
                    yield self._row(name, asked, share, plain[name], asks=False)
                    yield self._row(name, asked, share, self._served(name, asked.text, budget), asks=True)

    def _served(self, name: str, question: str, budget: int) -> tuple[str, int]:
        """The served text and its tokens, without the system prompt."""
        material = self._material
        if question:
            material = replace(material, recall=Recall(question=question, corpus=self._corpus, is_explicit=True))
        if name == NOW:
            detail = Detail(segments=tuple(self.segments), total=len(self.segments))
            material = replace(material, detail=detail)
            ranges = ranges_to_read(material, budget)
            read = (one for low, high in ranges for one in self._messages[low - 1 : high])
            material = replace(material, detail=replace(detail, originals=tuple(read)))
        try:
            found = context(material, self._corpus, question, budget)
        except BudgetTooSmallError:
            return "", 0
        spent = found.gauge.breakdown.total - found.gauge.breakdown.system
        if spent > budget:
            raise AssertionError(f"{spent} tokens in a budget of {budget}")
        return "\n".join(message.content for message in found.messages[1:]), spent

    def _row(self, name: str, asked: TalkQuestion, share: float, served: tuple[str, int], *, asks: bool) -> Row:
        served_text, tokens = served
        wanted = frozenset(stems(asked.answer))
        return Row(
            talk=self.talk.id,
            name=name,
            asks=asks,
            share=share,
            evidence=all(self.talk.texts[seq - 1] in served_text for seq in asked.evidence),
            words=len(wanted & frozenset(stems(served_text))) / len(wanted) if wanted else None,
            tokens=tokens,
        )

    def levels(self) -> Iterator[tuple[Level, float, float]]:
        """For each segment and level, the share of the segment's content words, and of its tokens."""
        for segment in self.segments:
            messages = self._messages[segment.from_seq - 1 : segment.to_seq]
            words = {stem for one in messages for stem in stems(message_text(one))} - GENERIC_STEMS
            for level in LEVELS:
                found = words & frozenset(stems(segment.texts[level]))
                yield (
                    level,
                    len(found) / max(len(words), 1),
                    estimate_text(segment.texts[level]) / max(segment.tokens, 1),
                )


def laid_out(replay: Replay, segments: Sequence[ServableSegment]) -> ContextInputs:
    """The material with the digests that the service stores for the default budget."""
    material = material_of(replay)
    layout = material.conversation.layout
    if layout is None:
        raise ValueError(f"nothing was folded: {replay.refused}")
    source = DigestSource(segments=segments, total=len(segments), levels=replay.policy.levels)
    digest_budget = replay.budgets.digest_room(beside=layout.tokens)
    served = with_digests(
        layout, source, max_tokens=digest_budget, later_digest_budget=None, served_as=replay.policy.served_as
    )
    return replace(
        material,
        conversation=replace(material.conversation, layout=served),
        segments=tuple(segments),
        segments_total=len(segments),
    )


def table(rows: Sequence[Row]) -> str:
    """Evidence and words by method and size."""
    head = " | ".join(f"{share:.0%}".replace("%", " %") for share in SHARES)
    lines = [f"| | {head} |", f"|---|{'---:|' * len(SHARES)}"]
    for asks in (False, True):
        for name in (NOW, BEFORE, NEWEST):
            found = [row for row in rows if (row.name, row.asks) == (name, asks)]
            if not found:
                continue
            question = ", with the question" if asks else ""
            evidence = (_mean([float(row.evidence) for row in found if row.share == share]) for share in SHARES)
            words = (_mean([row.words for row in found if row.share == share]) for share in SHARES)
            lines.append(f"| {name}{question}: evidence | {' | '.join(evidence)} |")
            lines.append(f"| {name}{question}: words | {' | '.join(words)} |")
    count = sum((row.name, row.share) == (NEWEST, SHARES[0]) for row in rows)
    return "\n".join([*lines, "", f"{count} questions of {len({row.talk for row in rows})} conversations."])


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{100 * statistics.fmean(known):.1f}" if known else "–"


def level_table(found: Sequence[tuple[Level, float, float]]) -> str:
    """The share of a segment's words that each level has, and the share of its tokens."""
    lines = ["| | words | tokens |", "|---|---:|---:|"]
    for level in LEVELS:
        words = _mean([words for name, words, _ in found if name == level])
        tokens = _mean([tokens for name, _, tokens in found if name == level])
        lines.append(f"| {level} | {words} | {tokens} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and with ``--write`` put the tables into ``docs/measurements.md``."""
    parser = argparse.ArgumentParser(prog="python -m bench.budgets", description="What growing budgets serve.")
    parser.add_argument("--data", type=Path, nargs="+", default=[DATA, *sorted(FOLDER.glob("*.jsonl"))])
    parser.add_argument("--every", type=int, default=1, help="ask only every n-th question")
    parser.add_argument("--preset", default=DEFAULT_PRESET, help="one that writes the schema session")
    parser.add_argument("--write", action="store_true", help="into docs/measurements.md")
    asked = parser.parse_args(arguments)
    by_kind: dict[str, list[Row]] = {"budgets-locomo": [], "budgets-made": []}
    levels: list[tuple[Level, float, float]] = []
    for path in asked.data:
        rows = by_kind["budgets-made" if path.parent == FOLDER else "budgets-locomo"]
        for talk in talks(path):
            folded = FoldedTalk(talk, asked.preset)
            rows.extend(folded.rows(asked.every))
            levels.extend(folded.levels())
            print(f"{talk.id}: {len(talk.questions[:: asked.every])} questions", file=sys.stderr)
    texts = {name: table(rows) for name, rows in by_kind.items() if rows} | {"budgets-levels": level_table(levels)}
    for name, text in texts.items():
        print(f"\n{text}")
        if asked.write:
            write(name, text)
    write_json("budgets", [asdict(row) for rows in by_kind.values() for row in rows])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

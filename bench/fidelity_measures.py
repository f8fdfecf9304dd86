"""Measures one conversation for the fidelity bench: what Throughline and the other methods serve for each question."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from app.core.context.assembly import ContextInputs
from app.core.model.errors import BudgetTooSmallError
from app.core.model.policies.policy import SegmentBy
from app.core.retrieval.corpus import Corpus
from app.core.retrieval.question_completion import completed_question
from app.core.segments.describing import describe
from app.core.segments.extractive import level_text
from app.core.segments.segmentation import split_into_segments
from app.core.text.words import stems
from bench.ranking import scores
from bench.recall_baselines import Baselines
from bench.recall_talks import Talk, TalkQuestion, context, corpus_in, material_of, replay_of
from bench.replay import Replay
from bench.survival import values_of

SHARES: Final = (0.05, 0.10, 0.20, 0.50)
FIRST: Final = (1, 3, 5)
"""The ``k`` of expand hit@k: how many of the first segments that a question leads to are looked at."""
OURS: Final = "Throughline"
CONTROL: Final = "the same without a query"
STATELESS: Final = "the same without the state"
BY_RECALL: Final = "by recall"
BY_DIGESTS: Final = "by digests, BM25"
_BROAD: Final = re.compile(
    r"\b(?:summar\w+|sum(?:s|med)? (?:\w+ )?up|overview|recap|in (?:what|which) order|chronolog\w+|timeline|sequence of"
    r"|step by step|over time)\b"
    r"|кратко|перескаж|обзор|в каком порядке|хронолог|последовательност|总结|概括|概述|顺序|时间线"
    r"|\bfasse? .{0,40}\bzusammen|überblick|welcher reihenfolge|\bresum(?:e|en)\b|qué orden"
    r"|\brésume|aperçu|quel ordre|podsumuj|streść|jakiej kolejności",
    re.IGNORECASE,
)
"""Words that ask for a summary or an order of events: the state answers these, not single messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What was served for one question at one size."""

    name: str
    talk: str
    category: str
    broad: bool
    share: float
    evidence: bool
    """Whether the text of every message that holds the answer was served."""
    answer: float | None
    """The share of the answer's content words that was served; ``None`` if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """How many of a conversation's exact values are in a context without a question."""

    name: str
    talk: str
    share: float
    kept: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """The share of a question's evidence whose segments are among the first ``k``."""

    name: str
    talk: str
    category: str
    k: int
    hit: float
    segments: int


def is_broad(question: str) -> bool:
    """Whether a question asks for a summary or an order of events."""
    return _BROAD.search(question) is not None


class Conversation:
    """One talk as the service handles it."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self._replay: Replay = replay_of(talk.messages, fold=True)
        self._material = material_of(self._replay)
        self._corpus = corpus_in(self._replay)
        self._tokens = talk.tokens
        self._stems = [frozenset(stems(text)) for text in talk.texts]
        self._baselines = Baselines(talk.texts).all()

    def served(self, every: int = 1, shares: Sequence[float] = SHARES) -> Iterator[Served]:
        """What Throughline and the other methods serve for every n-th question."""
        for share in shares:
            budget = math.floor(share * self._tokens)
            plain = self.served_text("", budget)
            for asked in self.talk.questions[::every]:
                yield self._served_result(OURS, asked, share, self.served_text(asked.text, budget))
                yield self._served_result(CONTROL, asked, share, plain)
                if is_broad(asked.text):
                    yield self._served_result(
                        STATELESS, asked, share, self.served_text(asked.text, budget, with_state=False)
                    )
                for name, choose in self._baselines.items():
                    yield self._selected_result(name, asked, share, choose(asked.text, budget))

    def kept(self, shares: Sequence[float] = SHARES) -> Iterator[Kept]:
        """The talk's exact values that are served without a question, and those in selections of the same size."""
        values = {value for group in values_of(self.talk.texts).values() for value in group}
        for share in shares:
            budget = math.floor(share * self._tokens)
            texts = {OURS: self.served_text("", budget)}
            for name, choose in self._baselines.items():
                if name != "BM25":
                    chosen = sorted(choose("", budget))
                    texts[name] = "\n".join(self.talk.texts[seq - 1] for seq in chosen)
            for name, text in texts.items():
                folded = text.casefold()
                kept = sum(_contains_value(value, folded) for value in values)
                yield Kept(name=name, talk=self.talk.id, share=share, kept=kept, of=len(values))

    def hits(self, every: int = 1) -> Iterator[Hit]:
        """Whether the segments that hold the evidence are among the first that a question leads to."""
        segments = self._segments
        for asked in self.talk.questions[::every]:
            for name, find in ((BY_RECALL, self._by_recall), (BY_DIGESTS, self._by_digests)):
                order = find(asked.text)
                for k in FIRST:
                    first = set(order[:k])
                    found = [
                        any(low <= seq <= high for low, high in map(segments.__getitem__, first))
                        for seq in asked.evidence
                    ]
                    yield Hit(
                        name=name,
                        talk=self.talk.id,
                        category=asked.category,
                        k=k,
                        hit=sum(found) / len(found),
                        segments=len(segments),
                    )

    def served_text(self, question: str, budget: int, *, with_state: bool = True) -> str:
        """Everything served after the system prompt; empty if not even the last user message fits."""
        material = self._material if with_state else _stateless(self._material)
        try:
            found = context(material, self._corpus, question, budget)
        except BudgetTooSmallError:
            return ""
        spent = found.gauge.breakdown.total - found.gauge.breakdown.system
        if spent > budget:
            raise AssertionError(f"{spent} tokens in a budget of {budget}")
        return "\n".join(message.content for message in found.messages[1:])

    def _served_result(self, name: str, asked: TalkQuestion, share: float, served_text: str) -> Served:
        texts = self.talk.texts
        evidence = all(texts[seq - 1] in served_text for seq in asked.evidence)
        return self._result(name, asked, share, evidence=evidence, stems_served=frozenset(stems(served_text)))

    def _selected_result(self, name: str, asked: TalkQuestion, share: float, chosen: set[int]) -> Served:
        found = frozenset[str]().union(*(self._stems[seq - 1] for seq in chosen))
        return self._result(name, asked, share, evidence=set(asked.evidence) <= chosen, stems_served=found)

    def _result(
        self, name: str, asked: TalkQuestion, share: float, *, evidence: bool, stems_served: frozenset[str]
    ) -> Served:
        wanted = frozenset(stems(asked.answer))
        return Served(
            name=name,
            talk=self.talk.id,
            category=asked.category,
            broad=is_broad(asked.text),
            share=share,
            evidence=evidence,
            answer=len(wanted & stems_served) / len(wanted) if wanted else None,
        )

    @cached_property
    def _cut(self) -> list[tuple[tuple[int, int], str]]:
        """The range of each segment, and what is served of it: topic, levels 2 and 3."""
        found = []
        for messages in split_into_segments(self._replay.messages, SegmentBy()):
            described = describe(messages)
            texts = (level_text(level, messages, described, locale="en") for level in ("L2", "L3"))
            found.append(((messages[0].seq, messages[-1].seq), "\n".join([described.topic, *texts])))
        return found

    @cached_property
    def _segments(self) -> list[tuple[int, int]]:
        return [place for place, _ in self._cut]

    @cached_property
    def _digests(self) -> Callable[[str], list[int]]:
        return Baselines([text for _, text in self._cut]).by_match

    def _by_digests(self, question: str) -> list[int]:
        return self._digests(question)

    def _by_recall(self, question: str) -> list[int]:
        values = scores(self._corpus, completed_question(question, self._corpus))
        best: dict[int, float] = {}
        for number, (low, high) in enumerate(self._segments):
            best[number] = max(values[low - 1 : high])
        return sorted(best, key=lambda number: (-best[number], number))


def _stateless(material: ContextInputs) -> ContextInputs:
    return replace(
        material,
        conversation=replace(material.conversation, compressed_state=None, layout=None),
        anchors=(),
    )


def _contains_value(value: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None


def by_name(found: Sequence[Served]) -> Mapping[str, list[Served]]:
    """The results grouped by method, in the order of their first result."""
    groups: dict[str, list[Served]] = {}
    for one in found:
        groups.setdefault(one.name, []).append(one)
    return groups


def corpus_of_conversation(conversation: Conversation) -> Corpus:
    """The messages that one conversation recalls from."""
    return conversation._corpus  # noqa: SLF001 - for a look from a test

"""Loads conversations with questions, and folds them as a whole by the offline model, as the service would."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from app.core.context.assembly import AssembledContext, ContextInputs, assemble, system_text
from app.core.context.awareness import awareness_block
from app.core.model.conversation import Conversation, Message, Sums
from app.core.model.policies.resolving import DEFAULT_PRESET
from app.core.model.schemas.session import SESSION
from app.core.model.word_overlap import message_text
from app.core.retrieval.corpus import Corpus, Source
from app.core.retrieval.rendering import Recall
from app.core.summarizer.offline.extractive import digest as extractive_digest
from app.core.text.speakers import without_speaker
from app.core.text.token_counts import estimate_text, weigh
from bench.replay import EVERYTHING, Replay
from bench.survival import DATA

WINDOW: Final = 1_048_576
"""The default model's window, which limits a requested budget."""
TRUST: Final = Path(__file__).resolve().parent / "trust"
_NIL: Final = UUID(int=0)
_THEN: Final = datetime(2026, 1, 1, tzinfo=UTC)
LONG_ANSWER: Final = 400
"""About how many tokens a joined message has."""
CATEGORIES: Final[Mapping[Any, str]] = {1: "multi-hop", 2: "temporal", 3: "open domain", 4: "single hop"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TalkQuestion:
    """A question and the messages that hold its answer."""

    text: str
    evidence: tuple[int, ...]
    category: str
    answer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A conversation of a data set."""

    id: str
    messages: tuple[dict[str, Any], ...]
    questions: tuple[TalkQuestion, ...]

    @property
    def texts(self) -> list[str]:
        """The texts of the messages, in order."""
        return [message["content"] for message in self.messages]

    @property
    def tokens(self) -> int:
        """The conversation's own tokens: those of its texts, without overhead."""
        return sum(map(estimate_text, self.texts))


def talks(path: Path = DATA) -> list[Talk]:
    """The conversations; empty if the data is missing."""
    if not path.exists():
        return []
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    return [talk_of(row) for row in rows]


def open_trust_talks() -> list[Talk]:
    """The talks of the open half of ``bench/trust``; the sealed half must not be used."""
    names = sorted(path.stem for path in (TRUST / "answers").glob("*.json"))
    return [talk for name in names for talk in talks(TRUST / "conversations" / f"{name}.jsonl")]


def talk_of(row: Mapping[str, Any]) -> Talk:
    """One conversation; questions without evidence are left out."""
    asked = (
        TalkQuestion(
            text=one["question"],
            evidence=tuple(one["evidence"]),
            category=CATEGORIES.get(one.get("category"), str(one.get("category", "other"))),
            answer=str(one.get("answer") or ""),
        )
        for one in row.get("questions") or ()
        if one.get("evidence")
    )
    return Talk(id=row["id"], messages=tuple(row["messages"]), questions=tuple(asked))


def with_long_answers(talk: Talk, size: int = LONG_ANSWER) -> Talk:
    """The talk with one side's nearby messages joined to long ones of about so many tokens; evidence is adjusted.

    The other side's messages stay as they are. Each joined message is in the place of its last part.
    """
    messages: list[dict[str, Any]] = []
    place: dict[int, int] = {}
    waiting: list[tuple[int, dict[str, Any]]] = []

    def join() -> None:
        if waiting:
            last = waiting[-1][1]
            messages.append({**last, "content": "\n".join(one["content"] for _, one in waiting)})
            place.update({seq: len(messages) for seq, _ in waiting})
            waiting.clear()

    for seq, message in enumerate(talk.messages, start=1):
        if message["role"] == "assistant":
            waiting.append((seq, message))
            if sum(estimate_text(one["content"]) for _, one in waiting) >= size:
                join()
        else:
            messages.append(message)
            place[seq] = len(messages)
    join()
    questions = tuple(
        replace(one, evidence=tuple(sorted({place[seq] for seq in one.evidence}))) for one in talk.questions
    )
    return Talk(id=talk.id, messages=tuple(messages), questions=questions)


def nameless(talk: Talk) -> Talk:
    """The talk without the speakers' names at the beginning of messages."""
    messages = ({**message, "content": without_speaker(message["content"])} for message in talk.messages)
    return replace(talk, messages=tuple(messages))


def folded(talk: Talk) -> tuple[ContextInputs, Corpus]:
    """The whole talk compacted (``keep_tail_messages: 0``), and its messages to recall from."""
    replay = replay_of(talk.messages, fold=True)
    return material_of(replay), corpus_in(replay)


def corpus_of(talk: Talk) -> Corpus:
    """The corpus of the talk's messages."""
    return corpus_in(replay_of(talk.messages))


def replay_of(messages: Sequence[Mapping[str, Any]], *, fold: bool = False, preset: str = DEFAULT_PRESET) -> Replay:
    """A replay with these messages; with ``fold`` they are compacted as a whole."""
    replay = Replay.in_window(WINDOW, preset)
    for message in messages:
        at = message.get("created_at")
        replay.say(
            message["role"],
            message["content"],
            parts=message.get("parts") or (),
            at=datetime.fromisoformat(at) if at else None,
        )
    if fold:
        replay.fold(EVERYTHING)
    return replay


def corpus_in(replay: Replay) -> Corpus:
    """The corpus that recall chooses from."""
    return Corpus([source_of(message) for message in replay.messages])


def source_of(message: Message) -> Source:
    """A message as recall sees it."""
    text = message_text(message)
    return Source(
        seq=message.seq,
        role=message.role,
        text=text,
        at=message.created_at,
        tokens=weigh(message.role, text).tokens,
    )


def context(material: ContextInputs, corpus: Corpus, question: str, budget: int) -> AssembledContext:
    """The context for a question within a budget; without a question nothing is recalled."""
    recall = Recall(question=question, corpus=corpus, is_explicit=True) if question else None
    return assemble(replace(material, recall=recall), digest=_digest, budget=budget)


def budget_of(talk: Talk, share: float) -> int:
    """The tokens of a share of the talk's own tokens."""
    return math.floor(share * talk.tokens)


def _digest(messages: Sequence[Message], max_tokens: int) -> str:
    return extractive_digest(messages, max_tokens, "en")


def material_of(replay: Replay) -> ContextInputs:
    """The material from which a context is assembled."""
    total, covered = _sums(replay.messages), _sums(replay.messages[: replay.boundary])
    layout = replay.layout
    conversation = Conversation(
        id=_NIL,
        tenant_id=_NIL,
        compressed_state=json.loads(layout.text) if layout else None,
        state_schema=SESSION.name,
        boundary_seq=replay.boundary,
        state_version=replay.version,
        layout=layout,
        last_seq=len(replay.messages),
        total=total,
        covered=covered,
        created_at=_THEN,
        updated_at=_THEN,
    )
    return ContextInputs(
        conversation=conversation,
        schema=SESSION,
        policy=replay.policy,
        budgets=replay.budgets,
        system=system_text("", awareness_block(SESSION, "en")),
        held=tuple(replay.held()),
        tail=tuple(replay.tail()),
        anchors=tuple(anchor for anchor in replay.anchors if anchor.status == "active"),
    )


def _sums(messages: Sequence[Message]) -> Sums:
    held = [message for message in messages if message.is_protected]
    return Sums(
        messages=len(messages),
        tokens=sum(message.token_count for message in messages),
        bytes=sum(message.byte_length for message in messages),
        held_tokens=sum(message.token_count for message in held),
        held_bytes=sum(message.byte_length for message in held),
    )

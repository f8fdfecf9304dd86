"""The labelled corpus: sentences of conversations, each with the labels of two blind readers."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, get_args
from uuid import UUID

from app.core.model.anchors import AnchorType
from app.core.model.conversation import Message

HERE: Final = Path(__file__).resolve().parent
OPEN: Final = HERE / "open.jsonl"
SEALED: Final = HERE / "sealed.jsonl"
TRAINING: Final = HERE / "training"
PLAIN: Final = TRAINING / "plain.txt"
"""Single messages in the plainest words, which the writers of the other texts avoided: fitted on and never measured."""
NONE: Final = "none"
LABELS: Final = frozenset({NONE, *get_args(AnchorType)})
LABEL_OF: Final = {
    "n": NONE,
    "c": "commitment",
    "d": "decision",
    "q": "unresolved_question",
    "f": "critical_fact",
    "x": "correction",
}
_FIELDS: Final = 3
_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One labelled sentence."""

    conversation: str
    language: str
    seq: int
    index: int
    role: Literal["user", "assistant"]
    pasted: bool
    text: str
    label_a: str
    label_b: str

    @property
    def label(self) -> str | None:
        """The label that both readers gave; ``None`` if they differ."""
        return self.label_a if self.label_a == self.label_b else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A message with the positions of its sentences."""

    message: Message
    sentences: tuple[tuple[int, Sentence], ...]


def labelled() -> list[Sentence]:
    """Every sentence that may be fitted on and measured."""
    files = sorted(set(TRAINING.glob("*.txt")) - {PLAIN})
    return [*read(OPEN), *(one for path in files for one in conversations(path))]


def read(path: Path) -> list[Sentence]:
    """The sentences of a file.

    Raises:
        ValueError: A label does not exist.
    """
    return [_sentence(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def conversations(path: Path) -> list[Sentence]:
    """The sentences of a file of ``training``.

    Raises:
        ValueError: A line lacks role, label or text.
    """
    found: list[Sentence] = []
    name, seq, index = "", 0, 0
    role: Literal["user", "assistant"] = "user"
    for line in filter(None, path.read_text(encoding="utf-8").splitlines()):
        if line.startswith("# "):
            name, seq, index = line[2:], 0, 0
            continue
        fields = line.split("\t")
        if len(fields) != _FIELDS or fields[0] not in set("uap+") or fields[1] not in LABEL_OF:
            raise ValueError(f"{path.name}: {line}")
        who, label, text = fields
        goes_on = who == "+" or (who == "p" and role == "user" and seq > 0)
        seq, index = (seq, index + 1) if goes_on else (seq + 1, 0)
        role = role if who == "+" else "assistant" if who == "a" else "user"
        found.append(
            Sentence(
                conversation=name,
                language=name.partition("-")[0],
                seq=seq,
                index=index,
                role=role,
                pasted=who == "p",
                text=text,
                label_a=LABEL_OF[label],
                label_b=LABEL_OF[label],
            )
        )
    return found


def messages(sentences: Iterable[Sentence]) -> Iterator[Labelled]:
    """The messages made of the sentences, with spaces between them; a pasted text is a paragraph of its own.

    A sentence without a mark at its end gets a line of its own, as people write it.
    """
    found: defaultdict[tuple[str, int], list[Sentence]] = defaultdict(list)
    for sentence in sentences:
        found[sentence.conversation, sentence.seq].append(sentence)
    for (_, seq), parts in found.items():
        content, placed = "", list[tuple[int, Sentence]]()
        for before, sentence in zip([None, *parts], parts, strict=False):
            if before is not None:
                ends = before.text.rstrip("\"'”»)").endswith((".", "!", "?", "…", ":", ";", "。", "！", "？"))
                content += "\n\n" if before.pasted != sentence.pasted else " " if ends else "\n"
            placed.append((len(content), sentence))
            content += sentence.text
        yield Labelled(message=_message(seq, content, parts[0].role), sentences=tuple(placed))


def split(rows: Sequence[str]) -> tuple[list[str], list[str]]:
    """The lines of the open and of the sealed half: every other conversation of a language, by the hash of its name."""
    languages: Mapping[str, str] = {row["conversation"]: row["language"] for row in map(json.loads, rows)}
    ordered = sorted(languages, key=lambda name: (languages[name], hashlib.sha256(name.encode()).hexdigest()))
    opened = frozenset(ordered[::2])
    halves: tuple[list[str], list[str]] = [], []
    for row in rows:
        halves[json.loads(row)["conversation"] not in opened].append(row)
    return halves


def _sentence(row: Mapping[str, Any]) -> Sentence:
    if not {row["label_a"], row["label_b"]} <= LABELS:
        raise ValueError(row["label_a"], row["label_b"])
    return Sentence(
        conversation=row["conversation"],
        language=row["language"],
        seq=row["seq"],
        index=row["sentence_index"],
        role=row["role"],
        pasted=row["pasted"],
        text=row["text"],
        label_a=row["label_a"],
        label_b=row["label_b"],
    )


def _message(seq: int, content: str, role: Literal["user", "assistant"]) -> Message:
    return Message(id=UUID(int=seq), conversation_id=UUID(int=1), seq=seq, role=role, content=content, created_at=_AT)

"""Measures what redaction finds, and what it takes for a secret by mistake, by kind.

``python -m bench.redaction [--draws 20] [--errors] [--write]`` fills the texts of ``tests/corpora/redaction.jsonl``
with values drawn by seed, and redacts them. A third of the texts of each kind is held out: no pattern was written or
changed to suit them. With ``--errors`` it names the other texts that are judged wrongly; with ``--write`` the table
goes into ``docs/privacy.md``.

A secret counts as found when none of it is left: no eight characters in a row. It counts as found exactly when all text
around it is unchanged. A text without secrets counts as a false alarm when anything in it changes.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from app.core.model.conversation import Message
from app.core.model.redaction import redact, redact_messages
from bench import measurements
from bench.redaction_values import Drawn

CORPUS: Final = Path(__file__).resolve().parents[1] / "tests" / "corpora" / "redaction.jsonl"
PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "privacy.md"
HELD_OUT: Final = "held out"
_LEFT: Final = 8  # characters of a secret in a row: if so many are left, it was not found
_MARK: Final = re.compile(r"\[REDACTED:\w+\]")
_BETWEEN: Final = "\n\u2029\n"
"""Separates the messages of one text, so that they are judged as one."""

Redact = Callable[[Sequence[str]], Sequence[str]]
"""The contents of messages that follow each other, redacted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A text of one or several messages; its secrets are between ``⟦`` and ``⟧``, values are given by name."""

    id: str
    kind: str
    said: tuple[str, ...]
    is_secret: bool
    is_held_out: bool

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Given:
        """A row of the corpus."""
        said = row["text"]["said"]
        return cls(
            id=row["id"],
            kind=row["text"]["kind"],
            said=(said,) if isinstance(said, str) else tuple(said),
            is_secret=row["expected"],
            is_held_out=row.get("note") == HELD_OUT,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One text, filled and redacted."""

    given: Given
    said: str
    redacted: str
    is_found: bool
    """Whether no secret is left; in a text without secrets, whether something is taken for one."""
    is_exact: bool
    """Whether everything but the secrets is unchanged."""


def given() -> list[Given]:
    """The corpus."""
    return [Given.of(json.loads(line)) for line in CORPUS.read_text(encoding="utf-8").split("\n") if line]


def redacted_contents(contents: Sequence[str]) -> Sequence[str]:
    """The contents, redacted as a compaction redacts messages."""
    if len(contents) == 1:
        return [redact(contents[0])]
    now = datetime(2026, 1, 1, tzinfo=UTC)
    messages = [
        Message(
            id=UUID(int=seq),
            conversation_id=UUID(int=0),
            seq=seq,
            role="user" if seq % 2 else "assistant",
            content=content,
            token_count=1,
            byte_length=1,
            created_at=now,
        )
        for seq, content in enumerate(contents, 1)
    ]
    return [message.content for message in redact_messages(messages)]


def judged(one: Given, draw: int = 0, redacted: Redact = redacted_contents) -> Judged:
    """Fill a text with the values of a draw, redact it and compare."""
    filled = _BETWEEN.join(one.said)
    filled = Drawn(f"{one.id}/{draw}").filled(filled)
    plain_text = filled.replace("⟦", "").replace("⟧", "")
    left = _BETWEEN.join(redacted(plain_text.split(_BETWEEN)))
    pieces = re.split("⟦(.*?)⟧", filled, flags=re.DOTALL)
    secrets, around = pieces[1::2], pieces[::2]
    is_found = all(not _is_left(secret, left) for secret in secrets) if secrets else left != plain_text
    is_exact = _MARK.sub("", left) == "".join(around) if secrets else not is_found
    return Judged(given=one, said=plain_text, redacted=left, is_found=is_found, is_exact=is_exact)


def _is_left(secret: str, text: str) -> bool:
    size = min(len(secret), _LEFT)
    return any(secret[place : place + size] in text for place in range(len(secret) - size + 1))


def measured(corpus: Sequence[Given], draws: int) -> list[Judged]:
    """Every text with the values of each draw."""
    return [judged(one, draw) for one in corpus for draw in range(draws)]


def share(found: Sequence[bool]) -> float:
    """The share that is true, from 0 to 1."""
    return sum(found) / len(found) if found else 0.0


def table(found: Sequence[Judged]) -> str:
    """A table of found secrets and false alarms in other texts, by kind: for all texts, and the held-out third."""
    return "\n".join(_rows(found, is_secret=True)) + "\n\n" + "\n".join(_rows(found, is_secret=False))


def _rows(found: Sequence[Judged], *, is_secret: bool) -> Iterator[str]:
    kinds: defaultdict[str, list[Judged]] = defaultdict(list)
    for one in found:
        if one.given.is_secret == is_secret:
            kinds[one.given.kind].append(one)
    if is_secret:
        yield "| secrets | texts | found | found, held out | nothing else touched |\n|---|--:|--:|--:|--:|"
    else:
        yield "| no secrets | texts | false alarms | false alarms, held out |\n|---|--:|--:|--:|"
    everything = [one for kind in kinds.values() for one in kind]
    for kind, ones in [*kinds.items(), ("**all**", everything)]:
        held = [one.is_found for one in ones if one.given.is_held_out]
        cells = [
            str(len({one.given.id for one in ones})),
            f"{share([one.is_found for one in ones]):.1%}",
            f"{share(held):.1%}",
            *([f"{share([one.is_exact for one in ones]):.1%}"] if is_secret else []),
        ]
        yield f"| {kind} | {' | '.join(cells)} |"


def errors(found: Sequence[Judged]) -> Iterator[str]:
    """The texts that are judged wrongly, each once, except held-out ones."""
    printed: set[str] = set()
    for one in found:
        is_right = one.is_found and one.is_exact if one.given.is_secret else not one.is_found
        if is_right or one.given.is_held_out or one.given.id in printed:
            continue
        printed.add(one.given.id)
        yield f"{one.given.id}: {one.said[:160]!r}\n    {one.redacted[:160]!r}"


def main() -> None:
    """Measure, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draws", type=int, default=20, help="values that each text is filled with")
    parser.add_argument("--errors", action="store_true", help="name the texts that are judged wrongly")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    asked = parser.parse_args()
    found = measured(given(), asked.draws)
    print(table(found))
    if asked.errors:
        print("\n".join(errors(found)))
    if asked.write:
        measurements.write("bench.redaction", table(found), PAGE)


if __name__ == "__main__":
    main()

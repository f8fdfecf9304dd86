"""Compares all presets on one conversation: what each serves, how often it compacts, what it costs and keeps.

``python -m bench.presets [--data FILE] [--talk 0] [--window 8000] [--write]`` replays one talk of
``../shared/data/locomo`` (or a generated one, if it is missing) message by message under each preset, in a window of
the same size, with the offline model: policy, planner, gate, merge and layout are the service's own. Digests of
segments and recall, which some presets add, are left out: the table shows what the state, anchors and held messages
keep. Nothing of the data is printed or kept.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from app.core.model.conversation import Role
from app.core.model.policies.policy import Trigger
from app.core.model.policies.resolving import PRESETS
from app.core.text.identifiers import find_identifiers
from app.core.text.token_counts import weigh
from bench import growth
from bench.measurements import write
from bench.recall_talks import talks
from bench.replay import Replay
from bench.report import print_table, write_json
from bench.survival import DATA

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "presets.md"
WINDOW: Final = 8_000
OPENING: Final = 20  # messages whose values a long talk is most likely to lose
_GENERATED: Final = 400  # messages
_WAITED_FOR: Final = frozenset({"between_calls", "interrupted"})
_HEADERS: Final = (
    "preset",
    "compactions",
    "model calls",
    "tokens before",
    "tokens after",
    "served on average",
    "served at the end",
    "state",
    "values kept",
    "of the opening",
    "held messages",
)

Line = tuple[Role, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The results of one preset; tokens are those of its own estimator."""

    preset: str
    compactions: int
    model_calls: int
    refused: int
    tokens_before: float
    """The mean tokens of the context when a compaction began."""
    tokens_after: float
    served_mean: float
    """The mean tokens of the context over all messages."""
    served_last: int
    state: int
    values_kept: float
    """The share of the distinct exact values of all folded messages that is served verbatim at the end."""
    opening_kept: float
    """The same share for the first messages."""
    held: int

    def cells(self) -> tuple[str, ...]:
        """The cells of the row in the table."""
        return (
            f"`{self.preset}`",
            str(self.compactions),
            str(self.model_calls),
            f"{self.tokens_before:.0f}",
            f"{self.tokens_after:.0f}",
            f"{self.served_mean:.0f}",
            str(self.served_last),
            str(self.state),
            f"{self.values_kept:.0%}",
            f"{self.opening_kept:.0%}",
            str(self.held),
        )


def replayed(preset: str, lines: Sequence[Line], window: int) -> Row:
    """Replay the talk under one preset: store each message, and fold when a trigger is due."""
    replay = Replay.in_window(window, preset)
    sizes: list[int] = []
    before: list[int] = []
    after: list[int] = []
    calls = 0
    for role, text in lines:
        replay.say(role, text)
        due = _due(replay)
        if due is not None and role == "assistant":
            before.append(replay.breakdown().total)
            calls += replay.fold(due.request())
            after.append(replay.breakdown().total)
        sizes.append(replay.breakdown().total)
    served, folded = replay.served(), [message.content for message in replay.messages[: replay.boundary]]
    return Row(
        preset=preset,
        compactions=replay.compactions,
        model_calls=calls + len(replay.refused),
        refused=len(replay.refused),
        tokens_before=statistics.fmean(before or [0]),
        tokens_after=statistics.fmean(after or [0]),
        served_mean=statistics.fmean(sizes),
        served_last=sizes[-1],
        state=replay.layout.state_tokens if replay.layout else 0,
        values_kept=_kept(folded, served),
        opening_kept=_kept(folded[:OPENING], served),
        held=len(replay.held()),
    )


def _due(replay: Replay) -> Trigger | None:
    """The first trigger that is reached; replies count as complete, and no tools are called."""
    tokens, tail = replay.breakdown().total, len(replay.tail())
    asked = (trigger for trigger in replay.policy.triggers if trigger.on not in _WAITED_FOR)
    return next((one for one in asked if one.at.reached(replay.budgets, tokens=tokens, messages=tail)), None)


def _kept(texts: Iterable[str], served: str) -> float:
    """The share of the distinct exact values (names excluded) that are served."""
    found = (one for text in texts for one in find_identifiers(text))
    values = {one.text for one in found if one.kind not in {"name", "quoted"}}
    return sum(value in served for value in values) / len(values) if values else 1.0


def lines_of(path: Path, number: int) -> tuple[str, list[Line]]:
    """A description of the talk, and its messages with the roles user and assistant in turn."""
    found = talks(path)
    texts = found[number].texts if found else [message.content for message in growth.talk(_GENERATED)]
    roles: tuple[Role, Role] = ("user", "assistant")
    named = f"talk {number + 1} of LoCoMo" if found else "a generated talk"
    return named, [(roles[place % 2], text) for place, text in enumerate(texts)]


def table(rows: Sequence[Row]) -> str:
    """The table as it is on the page."""
    rule = ["---", *["---:"] * (len(_HEADERS) - 1)]
    lines = [_HEADERS, rule, *(row.cells() for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Replay, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--talk", type=int, default=0)
    parser.add_argument("--window", type=int, default=WINDOW)
    parser.add_argument("--write", action="store_true", help="put the table into docs/presets.md")
    asked = parser.parse_args(arguments)
    if asked.write and not asked.data.exists():
        parser.error(f"the table on the page is of LoCoMo, which is not at {asked.data}: name its file with --data")
    named, lines = lines_of(asked.data, asked.talk)
    tokens = sum(weigh(role, text).tokens for role, text in lines)
    rows = [replayed(name, lines, asked.window) for name in PRESETS]
    print_table(_HEADERS, [row.cells() for row in rows])
    write_json(
        "presets", {"talk": named, "tokens": tokens, "window": asked.window, "rows": [asdict(row) for row in rows]}
    )
    if asked.write:
        summary = (
            f"{named[0].upper()}{named[1:]}: {len(lines)} messages, {tokens:,} tokens, each preset in a window of "
            f"{asked.window:,}, with the offline model."
        )
        write("bench:presets", f"{summary}\n\n{table(rows)}", PAGE)


if __name__ == "__main__":
    main()

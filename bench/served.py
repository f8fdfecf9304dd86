"""Measures what is served after several rounds: the state's size, the digests' share, relative times without a date.

``python -m bench.served [--rounds 10] [--window 8000] [--write]`` plays a made-up talk under every preset, round by
round, each folded as a whole: once with the offline model, and once with an answer that repeats every message of the
user, as a model that leaves nothing out would. Digests are cut and laid out as the service does it.

* *state*: the tokens of the state with its frame, and the most that the policy allows;
* *digests*: their share of the block, and how many of them only repeat state and anchors;
* *undated*: how many of the entries that say "yesterday" or "last Friday" have no date with it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from app.core.model.model_io import Proposal, SummaryRequest
from app.core.model.policies.resolving import PRESETS
from app.core.model.state import StateSchema
from app.core.segments.deduplication import StateWords
from app.core.state.digest_selection import DigestSource
from app.core.state.layout import with_digests
from app.core.state.pruning import state_token_limit
from app.core.text.relative import has_relative_time
from app.core.text.values import values
from bench.measurements import write
from bench.replay import EVERYTHING, Replay, segments_of
from bench.report import print_table, write_json

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "presets.md"
WINDOW: Final = 8_000
MESSAGES: Final = 24
"""Messages of one round."""
LOOKED_AT: Final = (1, 3, 10)
_BEGINNING: Final = datetime(2026, 1, 5, 9, tzinfo=UTC)
_NAMES: Final = ("Marta", "Ivo", "Lena", "Petr", "Noor", "Yuki")
_THINGS: Final = ("harbour crane", "billing export", "garden shed", "choir concert", "ledger audit", "bakery order")
_USER_LINES: Final = (
    "{name} paid {sum} euros for the {thing} yesterday.",
    "Good to know. Who keeps the receipt of the {thing}?",
    "The {thing} has to be ready by Friday, {name} told me last week.",
    "Then I would call {name} first and ask about the {thing}.",
    "We decided to move the {thing} to room {room}, and {name} brings the key tomorrow.",
    "That sounds sensible, the {thing} was always too loud next to the stairs.",
)
_HEADERS: Final = ("preset", "summarizer", "rounds", "at most", "state", "digests", "said twice", "undated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was served after so many rounds."""

    preset: str
    summarizer: str
    rounds: int
    most: int
    """Tokens that the state may weigh."""
    state: int
    digests: float
    """The digests' share of the block; 0 if a preset has none."""
    twice: int
    """How many digests have a text that state and anchors have already."""
    relative: int
    """How many entries state a time relative to the day of the message."""
    undated: int
    """How many of these have no date."""

    def cells(self) -> tuple[str, ...]:
        """The cells of the row in the table."""
        return (
            f"`{self.preset}`",
            self.summarizer,
            str(self.rounds),
            str(self.most),
            str(self.state),
            f"{self.digests:.0%}",
            str(self.twice),
            f"{self.undated} of {self.relative}",
        )


class Verbose(Replay):
    """A talk whose summarizer repeats every message of the user, as a model that leaves nothing out would."""

    def answer(self, request: SummaryRequest) -> Proposal:
        """A proposal with each message as an item, in the fields in turn, and the first ones as the narrative."""
        return Proposal(text=json.dumps(verbose_answer(request, self.schema)), finish="stop", model="made-up")


def verbose_answer(request: SummaryRequest, schema: StateSchema) -> dict[str, Any]:
    """An answer that leaves nothing out."""
    lists = [field.name for field in schema.fields if field.is_list]
    user_messages = [message for message in request.messages if message.role == "user"]
    story = " ".join(message.content for message in user_messages[: None if not lists else 3])
    found: dict[str, Any] = {field.name: [] if field.is_list else story for field in schema.fields}
    for number, message in enumerate(user_messages if lists else ()):
        found[lists[number % len(lists)]].append({"text": message.content, "from": [message.seq], "replaces": []})
    return found


def played(preset: str, kind: type[Replay], rounds: int, window: int) -> Iterator[tuple[int, Replay]]:
    """Play the talk; yield its state after each round."""
    replay = kind.in_window(window, preset)
    for number in range(1, rounds + 1):
        day = _BEGINNING + timedelta(days=3 * number)
        for place in range(MESSAGES):
            count = number * MESSAGES + place
            text = _USER_LINES[place % len(_USER_LINES)].format(
                name=_NAMES[count % len(_NAMES)],
                thing=_THINGS[count // 2 % len(_THINGS)],
                sum=1_000 + 37 * count,
                room=100 + count,
            )
            replay.say("assistant" if place % 2 else "user", text, at=day + timedelta(minutes=place))
        replay.fold(EVERYTHING)
        yield number, replay


def looked_at(preset: str, summarizer: str, rounds: int, replay: Replay) -> Row:
    """The row of what is served now."""
    layout = replay.layout
    if layout is None:
        raise ValueError(f"nothing was folded under {preset}: {replay.refused}")
    state = json.loads(layout.text)
    entries = [text for value in state.values() for text in ([value] if isinstance(value, str) else value) if text]
    served_lines = [*entries, *(line for line in layout.anchors.splitlines() if line.startswith("- "))]
    segments = segments_of(replay) if replay.policy.levels else []
    source = DigestSource(segments=segments, total=len(segments), levels=replay.policy.levels, block_texts=served_lines)
    room = replay.budgets.digest_room(beside=layout.tokens)
    whole = with_digests(layout, source, max_tokens=room, later_digest_budget=None, served_as=replay.policy.served_as)
    shown = {one.id: one.level for one in whole.segments}
    texts = [(level, one.texts[level]) for one in segments if (level := shown.get(one.id)) is not None]
    relative = [text for text in entries if has_relative_time(text)]
    return Row(
        preset=preset,
        summarizer=summarizer,
        rounds=rounds,
        most=state_token_limit(replay.schema, replay.budgets),
        state=layout.state_tokens,
        digests=whole.digest_tokens / whole.tokens,
        twice=sum(StateWords(served_lines).repeats(level, text) for level, text in texts),
        relative=len(relative),
        undated=sum(not any(value.kind == "date" for value in values(text)) for text in relative),
    )


def rows(rounds: int, window: int) -> Iterator[Row]:
    """The rows of every preset with both summarizers."""
    for preset in PRESETS:
        for name, kind in (("offline", Replay), ("verbose", Verbose)):
            for number, replay in played(preset, kind, rounds, window):
                if (
                    number in LOOKED_AT and replay.layout is not None
                ):  # without a layout the answer was refused, since the window is so small
                    yield looked_at(preset, name, number, replay)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print, and with ``--write`` put the table into ``docs/presets.md``; 1 when a state exceeds its size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=max(LOOKED_AT))
    parser.add_argument("--window", type=int, default=WINDOW)
    parser.add_argument("--write", action="store_true", help="into docs/presets.md")
    asked = parser.parse_args(arguments)
    found = list(rows(asked.rounds, asked.window))
    print_table(_HEADERS, [row.cells() for row in found])
    write_json("served", [asdict(row) for row in found])
    if asked.write:
        last = [row.cells() for row in found if row.rounds == asked.rounds]
        lines = [_HEADERS, ["---", "---", *["---:"] * (len(_HEADERS) - 2)], *last]
        write("bench:served", "\n".join(f"| {' | '.join(line)} |" for line in lines), PAGE)
    return int(any(row.state > row.most for row in found))


if __name__ == "__main__":
    raise SystemExit(main())

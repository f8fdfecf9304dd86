"""Measures the figures that the Sessions Pattern publishes, under the preset that follows it.

``python -m bench.designs [--write]`` plays generated talks of 50 and 100 messages under ``sessions``, with the offline
model. It measures compactions, the processor time of all their folds, and the tokens that all requests would send,
compared with sending the whole history. The pattern says of its own program: 50 turns take one compression in under
200 ms; 100 turns take two or three, under 2 s together; 50,000 tokens become 8,000; 84 % of the cost of the API is
saved. Times are CPU seconds of this process on this machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from app.core.text.token_counts import estimate_text
from bench.measurements import write
from bench.presets import lines_of
from bench.replay import Replay
from bench.report import print_table, write_json
from bench.survival import DATA

PRESET: Final = "sessions"
WINDOW: Final = 8_000
_HEADERS: Final = (
    "talk",
    "tokens",
    "compactions",
    "CPU of all, ms",
    "most of one, ms",
    "served at the end",
    "saved then",
    "saved in all",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One talk."""

    talk: str
    messages: int
    tokens: int
    """Tokens of the whole history at the end."""
    compactions: int
    cpu_ms: float
    """Milliseconds of CPU of all folds together."""
    slowest_ms: float
    served: int
    """Tokens of the context at the end."""
    saved: float
    """The share of tokens not sent, compared with sending the whole history before each reply."""

    def cells(self) -> tuple[str, ...]:
        """The cells of the row in the table."""
        return (
            self.talk,
            f"{self.tokens:,}",
            str(self.compactions),
            f"{self.cpu_ms:.0f}",
            f"{self.slowest_ms:.0f}",
            f"{self.served:,}",
            f"{1 - self.served / self.tokens:.0%}",
            f"{self.saved:.0%}",
        )


def measured(talk: str, texts: Sequence[str]) -> Row:
    """Play the texts as alternate messages of user and assistant; a request is made before each reply."""
    replay = Replay.in_window(WINDOW, PRESET)
    times: list[float] = []
    whole = sent = whole_sent = 0
    for number, text in enumerate(texts):
        message = replay.say("assistant" if number % 2 else "user", text)
        whole += message.token_count
        if replay.is_due():
            began = time.process_time()
            replay.fold()
            times.append(1_000 * (time.process_time() - began))
        if not number % 2:
            sent += replay.breakdown().total
            whole_sent += whole
    return Row(
        talk=talk,
        messages=len(texts),
        tokens=whole,
        compactions=replay.compactions,
        cpu_ms=sum(times),
        slowest_ms=max(times, default=0),
        served=replay.breakdown().total,
        saved=1 - sent / whole_sent,
    )


def joined(texts: Sequence[str], count: int, tokens: int) -> list[str]:
    """``count`` messages of about ``tokens`` tokens each, made of the texts in order, repeated as needed."""
    made: list[str] = []
    place = 0
    while len(made) < count:
        text = ""
        while estimate_text(text) < tokens:
            text = f"{text} {texts[place % len(texts)]}".strip()
            place += 1
        made.append(text)
    return made


def rows_of(texts: Sequence[str]) -> list[Row]:
    """The rows of the talks that the figures are about."""
    return [
        measured("50 messages", joined(texts, 50, 160)),
        measured("100 messages", joined(texts, 100, 160)),
        measured("100 messages, 50,000 tokens", joined(texts, 100, 490)),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--write", action="store_true", help="put the table into docs/measurements.md")
    asked = parser.parse_args(arguments)
    named, lines = lines_of(asked.data, 0)
    rows_of([text for _, text in lines][:40])  # to warm up: loads tables and patterns
    rows = rows_of([text for _, text in lines])
    print_table(_HEADERS, [row.cells() for row in rows])
    write_json("designs", {"talk": named, "rows": [asdict(row) for row in rows]})
    if asked.write:
        rule = ["---", *["---:"] * (len(_HEADERS) - 1)]
        table = "\n".join(f"| {' | '.join(line)} |" for line in (_HEADERS, rule, *(row.cells() for row in rows)))
        write("designs", f"Words of {named}.\n\n{table}")


if __name__ == "__main__":
    main()

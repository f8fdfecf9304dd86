"""Lets careful readers judge the offline summarizer's states: writes sheets for them, and counts their judgements.

``python -m bench.summary_readers sheets FOLDER --against CHECKOUT`` plays each conversation by the code of both
checkouts (messages with their own times) and writes a sheet for each: the conversation, the entries of both states
mixed, and the two narratives in random order. ``key.json`` says which version each is from; readers do not see it.
A reader writes ``<talk>.<reader>.json``: ``{"keep": [numbers], "narrative": "A" | "B" | "neither"}``.
``python -m bench.summary_readers count FOLDER`` prints, by version, the share of entries that each reader would keep.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.fidelity_made import FOLDER
from bench.report import print_table
from bench.survival import DATA
from bench.trust.readers import kappa

_ROOT: Final = Path(__file__).resolve().parents[1]
_SEED: Final = 14
_KEY: Final = "key.json"
_STATES: Final = """
import json, sys
from datetime import datetime
from pathlib import Path
from bench.recall_talks import talks
from bench.replay import EVERYTHING, Replay

states = {}
for path in sys.argv[2:]:
    for talk in talks(Path(path)):
        replay = Replay.in_window(int(sys.argv[1]))
        for message in talk.messages:
            at = message.get("created_at")
            replay.say(message["role"], message["content"], message.get("parts") or (),
                       at=datetime.fromisoformat(at) if at else None)
            if replay.is_due():
                replay.fold()
        replay.fold(EVERYTHING)
        told = [(entry.role, entry.text) for entry in replay.entries]
        states[talk.id] = {
            "entries": [text for role, text in told if role != "narrative"],
            "narrative": " ".join(text for role, text in told if role == "narrative"),
            "messages": [[one.get("created_at", ""), one["role"], one["content"]] for one in talk.messages],
        }
print(json.dumps(states))
"""
"""The script that is run with the code of each checkout."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """The contents of one sheet, with the versions that they are from."""

    entries: Sequence[tuple[str, tuple[str, ...]]]
    """Each text once, with the versions whose state has it."""
    narratives: Mapping[str, str]
    """The version of ``A`` and of ``B``."""


def states_of(checkout: Path, window: int, paths: Sequence[Path]) -> dict[str, Any]:
    """For each conversation its messages, and the entries and narrative that this checkout's code makes of it."""
    done = subprocess.run(
        [sys.executable, "-c", _STATES, str(window), *(str(path.resolve()) for path in paths)],
        cwd=checkout,
        env={"PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def sheet_of(states: Mapping[str, Mapping[str, Any]], lot: random.Random) -> Sheet:
    """The entries of several versions of one state, mixed."""
    owners: defaultdict[str, list[str]] = defaultdict(list)
    for version, state in states.items():
        for text in dict.fromkeys(state["entries"]):
            owners[text].append(version)
    entries = [(text, tuple(versions)) for text, versions in owners.items()]
    lot.shuffle(entries)
    versions = sorted(states)
    lot.shuffle(versions)
    return Sheet(entries=entries, narratives=dict(zip("AB", versions, strict=False)))


def _sheet_text(sheet: Sheet, states: Mapping[str, Mapping[str, Any]]) -> str:
    messages = next(iter(states.values()))["messages"]
    talk = [f"#{seq} {at[:16]} {role}: {content}" for seq, (at, role, content) in enumerate(messages, start=1)]
    entries = [f"[{number}] {text}" for number, (text, _) in enumerate(sheet.entries, start=1)]
    narrative_lines = [
        f"{letter}: {states[version]['narrative'] or '(none)'}" for letter, version in sheet.narratives.items()
    ]
    return "\n".join(
        [
            "THE CONVERSATION",
            *talk,
            "",
            "ENTRIES OF A MEMORY OF IT",
            *entries,
            "",
            "TWO SHORT NARRATIVES OF IT",
            *narrative_lines,
        ]
    )


def write_sheets(folder: Path, versions: Mapping[str, Path], window: int, paths: Sequence[Path]) -> None:
    """Write a sheet for each conversation, and the key to all."""
    folder.mkdir(parents=True, exist_ok=True)
    lot, key = random.Random(_SEED), {}
    states = {version: states_of(checkout, window, paths) for version, checkout in versions.items()}
    for talk in next(iter(states.values())):
        those = {version: found[talk] for version, found in states.items()}
        sheet = sheet_of(those, lot)
        (folder / f"{talk}.txt").write_text(_sheet_text(sheet, those) + "\n", encoding="utf-8")
        key[talk] = {"entries": [versions for _, versions in sheet.entries], "narratives": sheet.narratives}
    (folder / _KEY).write_text(json.dumps(key, indent=1) + "\n", encoding="utf-8")


def readings_in(folder: Path) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Each conversation that was judged, with the reader and the judgements.

    Raises:
        ValueError: A number is on no line of the sheet.
    """
    key = json.loads((folder / _KEY).read_text(encoding="utf-8"))
    for talk, of_talk in key.items():
        for path in sorted(folder.glob(f"{talk}.*.json")):
            readings = json.loads(path.read_text(encoding="utf-8"))
            if not set(readings["keep"]) <= set(range(1, len(of_talk["entries"]) + 1)):
                raise ValueError(f"{path.name}: there is no such entry on the sheet.")
            yield talk, path.suffixes[-2][1:], readings


def kept_shares(folder: Path) -> dict[tuple[str, str, str], tuple[int, int]]:
    """How many entries a reader would keep, and of how many, by conversation, reader and version."""
    key = json.loads((folder / _KEY).read_text(encoding="utf-8"))
    found = {}
    for talk, reader, reading in readings_in(folder):
        for version in sorted(set(key[talk]["narratives"].values())):
            numbers = {number for number, owners in enumerate(key[talk]["entries"], start=1) if version in owners}
            found[talk, reader, version] = len(numbers & set(reading["keep"])), len(numbers)
    return found


def chosen_narratives(folder: Path) -> dict[tuple[str, str], str]:
    """The version whose narrative a reader chose, or ``neither``, by conversation and reader."""
    key = json.loads((folder / _KEY).read_text(encoding="utf-8"))
    return {
        (talk, reader): key[talk]["narratives"].get(reading["narrative"], "neither")
        for talk, reader, reading in readings_in(folder)
    }


def agreement(folder: Path) -> float | None:
    """Cohen's kappa over all entries that two readers judged; ``None`` without a second reader."""
    key = json.loads((folder / _KEY).read_text(encoding="utf-8"))
    by_talk: defaultdict[str, list[set[int]]] = defaultdict(list)
    for talk, _, reading in readings_in(folder):
        by_talk[talk].append(set(reading["keep"]))
    pairs = [
        (number in one, number in other)
        for talk, (one, other) in ((talk, kept[:2]) for talk, kept in by_talk.items() if len(kept) > 1)
        for number in range(1, len(key[talk]["entries"]) + 1)
    ]
    return kappa([one for one, _ in pairs], [other for _, other in pairs])


def _count(folder: Path) -> None:
    shares = kept_shares(folder)
    versions = sorted({version for _, _, version in shares})
    talks = list(dict.fromkeys(talk for talk, _, _ in shares))
    rows = []
    for talk in talks:
        row = [talk]
        for version in versions:
            each = [(kept, of) for (name, _, whose), (kept, of) in shares.items() if (name, whose) == (talk, version)]
            row.append(f"{100 * statistics.mean(kept / of for kept, of in each):.0f} % of {each[0][1]}")
        rows.append(row)
    means = [
        statistics.mean(kept / of for (_, _, whose), (kept, of) in shares.items() if whose == version)
        for version in versions
    ]
    print_table(["talk", *versions], [*rows, ["mean", *(f"{100 * mean:.1f} %" for mean in means)]])
    chosen = list(chosen_narratives(folder).values())
    for one in [*versions, "neither"]:
        print(f"narratives chosen, {one}: {chosen.count(one)} of {len(chosen)}")
    print("kappa of two readers:", agreement(folder))


def main(argv: Sequence[str] | None = None) -> int:
    """Write the sheets, or count the judgements."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.summary_readers", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("what", choices=["sheets", "count"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--against", type=Path, help="a checkout of another commit")
    parser.add_argument("--window", type=int, default=16_000)
    parser.add_argument("--data", type=Path, nargs="+", default=[*sorted(FOLDER.glob("*.jsonl")), DATA])
    given = parser.parse_args(argv)
    if given.what == "count":
        _count(given.folder)
        return 0
    versions = {"today": _ROOT} | ({"before": given.against.resolve()} if given.against else {})
    write_sheets(given.folder, versions, given.window, [path for path in given.data if path.exists()])
    return 0


if __name__ == "__main__":
    sys.exit(main())

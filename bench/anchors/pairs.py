"""Prints which anchors take the place of earlier ones by rule, for a reader to judge.

``python -m bench.anchors.pairs [FILE …]`` reads the talks of the files. Without files it reads the labelled
conversations except the sealed ones, and talks that the rules were not made on: those of ``bench/trust`` (``ordinary``
and ``conversations``), the made-up ones, and LoCoMo if its data is there. Only a reader can say which pairs are right.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.anchors.corpus import labelled, messages
from bench.fidelity_made import FOLDER
from bench.recall_talks import replay_of, talks
from bench.report import print_table, write_json
from bench.survival import DATA
from bench.trust import ordinary

Talk = tuple[str, Sequence[Mapping[str, Any]]]
"""The name of a talk, and its messages."""


def pairs(given: Iterable[Talk]) -> Iterator[list[str]]:
    """Rows of a talk, the anchor that was replaced, and the anchor in its place, each with its message's number."""
    for name, talk_messages in given:
        anchors = {anchor.id: anchor for anchor in replay_of(talk_messages).anchors}
        for old in anchors.values():
            new = anchors.get(old.superseded_by) if old.superseded_by else None
            if new is not None:
                yield [name, f"#{old.seq} {old.content}", f"#{new.seq} {new.content}"]


def of_labelled() -> list[Talk]:
    """The conversations that the likelihood of anchors is fitted on."""
    found: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for one in messages(labelled()):
        message = one.message
        found[one.sentences[0][1].conversation].append({"role": message.role, "content": message.content})
    return list(found.items())


def of_others() -> list[Talk]:
    """Talks whose writers did not know the rules."""
    paths = [*sorted((ordinary.FOLDER.parent / "conversations").glob("*.jsonl")), *sorted(FOLDER.glob("*.jsonl")), DATA]
    return [*_of_ordinary(), *of_files(paths)]


def of_files(paths: Iterable[Path]) -> list[Talk]:
    """The talks in files that have one conversation per line."""
    return [(talk.id, [*talk.messages]) for path in paths for talk in talks(path)]


def _of_ordinary() -> Iterator[Talk]:
    """Each ordinary talk as a whole; its recorded answers hold one stretch of it each."""
    for name in ordinary.SETS:
        found: defaultdict[str, dict[int, Mapping[str, Any]]] = defaultdict(dict)
        for line in (ordinary.FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            for seq, role, at, content, *parts in row["messages"]:
                message = {"role": role, "created_at": at, "content": content, "parts": parts[0] if parts else ()}
                found[f"{name}:{row['talk'].rpartition('.')[0]}"][seq] = message
        for talk, by_seq in found.items():
            yield talk, [by_seq[seq] for seq in sorted(by_seq)]


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.anchors.pairs", description=__doc__)
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE", help="talks to read instead, one a line")
    asked = parser.parse_args()
    kinds = {"files": of_files(asked.files)} if asked.files else {"labelled": of_labelled(), "others": of_others()}
    found = {kind: list(pairs(given)) for kind, given in kinds.items()}
    for kind, rows in found.items():
        print(f"\n{kind}: {len(rows)} pairs in {len(kinds[kind])} conversations\n")
        print_table(["conversation", "gave way", "in its place"], rows)
    write_json("anchors-pairs", found)
    return 0


if __name__ == "__main__":
    sys.exit(main())

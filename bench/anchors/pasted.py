"""``python -m bench.anchors.pasted``: whether the rules know whose words a message's statements are.

``pasted.jsonl`` holds messages of users in four languages. Some have somebody else's letters, mails, chats, terms or
minutes in them; others, as controls, are all the user's own words. ``others`` says where somebody else speaks. Half of
the texts (``held``) were not looked at while the rules were made; a text is in the same half in each language.
``--wrong`` prints statements that are taken for the wrong person's. ``--quotations`` prints texts in quotation marks,
in other talks, that are taken for pasted, for a reader to judge.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.core.anchors.detect import detect
from app.core.anchors.pasting import OwnWords, long_quotations
from app.core.anchors.statements import statements_of
from bench.anchors.pairs import of_labelled, of_others
from bench.report import print_table, write_json
from bench.trust.values import message

AT: Final = "2026-03-02T09:00:00+00:00"
TEXTS: Final = Path(__file__).parent / "pasted.jsonl"
WHOSE: Final = ("others", "own", "drafts")
HALVES: Final = {"open": False, "held": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A message of a user."""

    name: str
    kind: str
    """The kind of text; in a ``draft`` all but a few words is the user's own text, to be worked on."""
    is_held: bool
    content: str
    others: tuple[tuple[int, int], ...]

    def whose(self, offset: int, text: str) -> str:
        """Who says the text at that place, judged by its middle."""
        middle = offset + len(text) // 2
        if any(start <= middle < end for start, end in self.others):
            return "others"
        return "drafts" if self.kind == "draft" else "own"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedText:
    """A statement or an anchor, with its true speaker and what it is taken for."""

    whose: str
    is_anchor: bool
    is_pasted: bool
    """Whether it is taken for pasted."""
    text: str


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.anchors.pasted", description=__doc__)
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--wrong", action="store_true")
    only.add_argument("--quotations", action="store_true")
    asked = parser.parse_args()
    if asked.quotations:
        _print_quotations()
        return 0
    rows = []
    for half, is_held in HALVES.items():
        found = [(text, one) for text in texts() if text.is_held == is_held for one in judged_texts(text)]
        rows += _counted(half, [one for _, one in found])
        if asked.wrong:
            for text, one in found:
                if one.is_pasted != (one.whose == "others") and not one.is_anchor:
                    print(f"{half}\t{text.name}\t{one.whose}\t{one.text}")
    print_table(["half", "whose", "statements", "taken for pasted", "share", "anchors", "taken for pasted"], rows)
    write_json("pasted", {"rows": rows})
    return 0


def texts() -> list[Text]:
    """All texts of the file."""
    return [
        Text(
            name=row["name"],
            kind=row["kind"],
            is_held=row["held"],
            content=row["content"],
            others=tuple((start, end) for start, end in row["others"]),
        )
        for row in map(json.loads, TEXTS.read_text(encoding="utf-8").splitlines())
    ]


def judged_texts(text: Text) -> Iterator[JudgedText]:
    """The statements of a text, and the anchors among them."""
    whole = message(1, "user", AT, text.content)
    found = statements_of(whole)
    own = OwnWords(whole, found)
    for one in found:
        whose = text.whose(one.offset, one.text)
        yield JudgedText(whose=whose, is_anchor=False, is_pasted=own.are_pasted(one.offset), text=one.text)
    for anchor in detect(whole):
        whose = text.whose(anchor.offset, anchor.content)
        yield JudgedText(whose=whose, is_anchor=True, is_pasted=anchor.pasted, text=anchor.content)


def _print_quotations() -> None:
    count = 0
    for name, talk_messages in [*of_labelled(), *of_others()]:
        users = [one["content"] for one in talk_messages if one["role"] == "user"]
        count += len(users)
        for found in filter(None, map(_quotation, users)):
            print(f"{name}\t{found}")
    print(f"of {count} messages of users")


def _quotation(content: str) -> str:
    """The first words that are taken for somebody else's because of quotation marks, with the words before them."""
    found = statements_of(message(1, "user", AT, content))
    start = next((start for start, _ in long_quotations(content, found)), None)
    return "" if start is None else " ".join(f"{content[max(0, start - 60) : start]} | {content[start:][:100]}".split())


def _counted(half: str, found: Sequence[JudgedText]) -> list[list[str]]:
    counts = Counter((one.whose, one.is_anchor, one.is_pasted) for one in found)
    rows = []
    for whose in WHOSE:
        taken, left = counts[whose, False, True], counts[whose, False, False]
        anchors, others = counts[whose, True, True], counts[whose, True, False]
        share = f"{100 * taken / (taken + left):.1f} %"
        rows.append([half, whose, str(taken + left), str(taken), share, str(anchors + others), str(anchors)])
    return rows


if __name__ == "__main__":
    sys.exit(main())

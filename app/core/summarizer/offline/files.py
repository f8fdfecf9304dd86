"""Finds the files that were made, changed or looked at in a span: each path once, by its newest statement."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Final

from app.core.reading.passages import Passage
from app.core.summarizer.offline.items import LONGEST, Item, cost, together
from app.core.summarizer.offline.phrasing import Phrasing
from app.core.text.cued import CuePatterns
from app.core.text.languages.joined import pattern_of, sources_of
from app.core.text.patterns import compiled

_CHANGED: Final = pattern_of("work", "done")
_AHEAD: Final = CuePatterns(sources_of("work", "ahead"))
_IN_FULL: Final = 0.3
"""The share of the room for files that statements about them may take; the rest is for names, or other sections."""
_FILE: Final = compiled(
    r".*\.\w{1,8}|(?:.*/)?(?:Dockerfile|Makefile|Procfile|Jenkinsfile|Gemfile|Rakefile|Vagrantfile)"
)
"""A path with the ending of a file, or a well-known file without an ending."""


def lies_ahead(text: str) -> bool:
    """Whether a text says what is to be done, not what was done."""
    return _AHEAD.is_in(text)


def files_in(passage: Passage) -> frozenset[str]:
    """The files that a passage names."""
    named = (item.text for item in passage.identifiers if item.kind in {"path", "name"})
    return frozenset(name for name in named if _FILE.fullmatch(name))


def file_items(
    passages: Sequence[Passage], known: Collection[str], phrasing: Phrasing, *, room: int, left_out: Collection[int]
) -> list[Item]:
    """What was done in each file, by the newest statement that says so, within ``room`` tokens.

    Args:
        passages: The passages of the span.
        known: Texts that are already kept, including the state so far.
        phrasing: Writes passages.
        room: The tokens for all items; files without room for their statement are only named.
        left_out: Indexes of passages that are used elsewhere or no longer hold.
    """
    told = " ".join(known)
    seen: set[str] = set()
    newest: list[tuple[Passage, list[str]]] = []
    for passage in reversed(passages):
        files = sorted(file for file in files_in(passage) if file not in seen and file not in told)
        if files and passage.index not in left_out and _tells_of_work(passage) and phrasing.is_understandable(passage):
            seen.update(files)
            newest.append((passage, files))
    chosen, left = _fitting_and_left(newest, phrasing, room)
    said = frozenset[str]().union(*(files_in(one) for one in chosen))
    items = list(_items_of_messages(sorted(chosen, key=lambda one: one.index), phrasing))
    used = sum(item.cost for item in items)
    return [*items, *_file_list([(seq, file) for seq, file in left if file not in said], room - used)]


def _fitting_and_left(
    newest: Sequence[tuple[Passage, list[str]]], phrasing: Phrasing, room: int
) -> tuple[list[Passage], list[tuple[int, str]]]:
    """The statements for which there is room together with the bare names of all other files, and those names."""
    names = [cost(", ".join(files)) for _, files in newest]
    in_full = room * _IN_FULL
    chosen: list[Passage] = []
    left: list[tuple[int, str]] = []
    for number, (passage, files) in enumerate(newest):
        whole = next(_items_of_messages([passage], phrasing)).cost
        if whole <= in_full and whole + sum(names[number + 1 :]) <= room:
            room -= whole
            in_full -= whole
            chosen.append(passage)
        else:
            room -= names[number]
            left += [(passage.seq, file) for file in files]
    return chosen, left


def _tells_of_work(passage: Passage) -> bool:
    if passage.role == "tool" or passage.is_question or passage.is_pasted or passage.is_held:
        return False
    return passage.is_action or (_CHANGED.search(passage.text) is not None and not lies_ahead(passage.text))


def _items_of_messages(chosen: Sequence[Passage], phrasing: Phrasing) -> Iterator[Item]:
    """Items with the statements of one message joined, as long as they are not too long for an entry."""
    for seq, group in groupby(chosen, lambda one: one.seq):
        run: list[Passage] = []
        for passage in group:
            if not phrasing.is_simple(passage):
                seqs = tuple(sorted(phrasing.seqs(passage)))
                yield Item(text=phrasing.text(passage), seqs=seqs, passages=(passage,))
                continue
            if run and sum(len(one.core) for one in run) + len(passage.core) > LONGEST:
                yield _item_of_run(run, seq)
                run = []
            run.append(passage)
        if run:
            yield _item_of_run(run, seq)


def _item_of_run(run: Sequence[Passage], seq: int) -> Item:
    text = together(f"{run[0].speaker}: ", (one.core for one in run))
    return Item(text=text, seqs=(seq,), passages=tuple(run))


def _file_list(left: Sequence[tuple[int, str]], room: int) -> Iterator[Item]:
    """Items that list files, the newest first, as many as fit."""
    seqs: set[int] = set()
    names: list[str] = []
    for seq, file in left:
        text = ", ".join([*names, file])
        if cost(text) > room or len(text) > LONGEST:
            break
        names.append(file)
        seqs.add(seq)
    if names:
        yield Item(text=", ".join(names), seqs=tuple(sorted(seqs)))

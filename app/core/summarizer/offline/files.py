"""Finds the files that were made, changed or looked at in a span: each path once, by its newest statement."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Final

from app.core.reading.passages import Passage
from app.core.summarizer.offline.items import MAX_ITEM_LENGTH, Item, entry_tokens, joined_clauses
from app.core.summarizer.offline.phrasing import Phrasing
from app.core.text.cue_patterns import CuePatterns
from app.core.text.languages.combined_words import pattern_of, sources_of
from app.core.text.patterns import compiled

_DONE_WORK: Final = pattern_of("work", "done")
_FUTURE_WORK: Final = CuePatterns(sources_of("work", "ahead"))
_STATEMENT_SHARE: Final = 0.3
"""The share of the room for files that statements about them may take; the rest is for names, or other sections."""
_FILE: Final = compiled(
    r".*\.\w{1,8}|(?:.*/)?(?:Dockerfile|Makefile|Procfile|Jenkinsfile|Gemfile|Rakefile|Vagrantfile)"
)
"""A path with the ending of a file, or a well-known file without an ending."""


def is_about_future(text: str) -> bool:
    """Whether a text says what is to be done, not what was done."""
    return _FUTURE_WORK.is_in(text)


def files_in(passage: Passage) -> frozenset[str]:
    """The files that a passage names."""
    named = (item.text for item in passage.identifiers if item.kind in {"path", "name"})
    return frozenset(name for name in named if _FILE.fullmatch(name))


def file_items(
    passages: Sequence[Passage],
    known: Collection[str],
    phrasing: Phrasing,
    *,
    max_tokens: int,
    excluded_indexes: Collection[int],
) -> list[Item]:
    """What was done in each file, by the newest statement that says so, within ``max_tokens`` tokens.

    Args:
        passages: The passages of the span.
        known: Texts that are already kept, including the state so far.
        phrasing: Writes passages.
        max_tokens: The tokens for all items; files without room for their statement are only named.
        excluded_indexes: Indexes of passages that are used elsewhere or no longer hold.
    """
    known_text = " ".join(known)
    seen: set[str] = set()
    newest: list[tuple[Passage, list[str]]] = []
    for passage in reversed(passages):
        files = sorted(file for file in files_in(passage) if file not in seen and file not in known_text)
        if (
            files
            and passage.index not in excluded_indexes
            and _is_about_work(passage)
            and phrasing.is_understandable(passage)
        ):
            seen.update(files)
            newest.append((passage, files))
    chosen, other_files = _fitting_and_other_files(newest, phrasing, max_tokens)
    stated_files = frozenset[str]().union(*(files_in(one) for one in chosen))
    items = list(_items_of_messages(sorted(chosen, key=lambda one: one.index), phrasing))
    used = sum(item.tokens for item in items)
    return [
        *items,
        *_file_list([(seq, file) for seq, file in other_files if file not in stated_files], max_tokens - used),
    ]


def _fitting_and_other_files(
    newest: Sequence[tuple[Passage, list[str]]], phrasing: Phrasing, remaining_tokens: int
) -> tuple[list[Passage], list[tuple[int, str]]]:
    """The statements for which there is room together with the bare names of all other files, and those names."""
    names = [entry_tokens(", ".join(files)) for _, files in newest]
    remaining_statement_tokens = remaining_tokens * _STATEMENT_SHARE
    chosen: list[Passage] = []
    other_files: list[tuple[int, str]] = []
    for number, (passage, files) in enumerate(newest):
        whole = next(_items_of_messages([passage], phrasing)).tokens
        if whole <= remaining_statement_tokens and whole + sum(names[number + 1 :]) <= remaining_tokens:
            remaining_tokens -= whole
            remaining_statement_tokens -= whole
            chosen.append(passage)
        else:
            remaining_tokens -= names[number]
            other_files += [(passage.seq, file) for file in files]
    return chosen, other_files


def _is_about_work(passage: Passage) -> bool:
    if passage.role == "tool" or passage.is_question or passage.is_pasted or passage.is_held:
        return False
    return passage.is_action or (_DONE_WORK.search(passage.text) is not None and not is_about_future(passage.text))


def _items_of_messages(chosen: Sequence[Passage], phrasing: Phrasing) -> Iterator[Item]:
    """Items with the statements of one message joined, as long as they are not too long for an entry."""
    for seq, group in groupby(chosen, lambda one: one.seq):
        run: list[Passage] = []
        for passage in group:
            if not phrasing.is_simple(passage):
                seqs = tuple(sorted(phrasing.source_seqs(passage)))
                yield Item(text=phrasing.text(passage), seqs=seqs, passages=(passage,))
                continue
            if run and sum(len(one.core) for one in run) + len(passage.core) > MAX_ITEM_LENGTH:
                yield _item_of_run(run, seq)
                run = []
            run.append(passage)
        if run:
            yield _item_of_run(run, seq)


def _item_of_run(run: Sequence[Passage], seq: int) -> Item:
    text = joined_clauses(f"{run[0].speaker}: ", (one.core for one in run))
    return Item(text=text, seqs=(seq,), passages=tuple(run))


def _file_list(other_files: Sequence[tuple[int, str]], max_tokens: int) -> Iterator[Item]:
    """Items that list files, the newest first, as many as fit."""
    seqs: set[int] = set()
    names: list[str] = []
    for seq, file in other_files:
        text = ", ".join([*names, file])
        if entry_tokens(text) > max_tokens or len(text) > MAX_ITEM_LENGTH:
            break
        names.append(file)
        seqs.add(seq)
    if names:
        yield Item(text=", ".join(names), seqs=tuple(sorted(seqs)))

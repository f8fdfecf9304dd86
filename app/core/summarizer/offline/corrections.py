"""Finds the earlier passages and state entries that are out of date: corrected later, or stated with a newer value."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from app.core.anchors.replacement import form_of, names_alternative, replaces
from app.core.anchors.topics import given_up_stems
from app.core.model.state import StateEntry
from app.core.reading.passages import Passage
from app.core.summarizer.offline.items import label_and_clauses
from app.core.text.identifiers import EXACT_KINDS, Identifier, find_identifiers
from app.core.text.words import GENERIC_STEMS, stems

MIN_WORDS_ALONE: Final = 3
"""The fewest content words of an utterance that can be understood without the one before it."""
_MAX_CORRECTED_PASSAGES: Final = 3  # the most passages that one corrects

_MAX_COMPARED_PASSAGES: Final = 8  # how many of the newest passages with a word are compared with a correction
_MAX_MESSAGES_BACK: Final = 6  # how many messages back a correction without a subject of its own may refer


class Content(NamedTuple):
    """The content words and exact values of a text, by which texts are compared."""

    stems: frozenset[str]
    values: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, all_stems: Iterable[str], identifiers: Iterable[Identifier]) -> Content:
        """The content of a text with these stems and identifiers."""
        values = frozenset([(item.kind, item.text.lower()) for item in identifiers if item.kind in EXACT_KINDS])
        return cls(specific_stems(all_stems), values)

    @property
    def keys(self) -> frozenset[str]:
        """Stems and values by which a text about the same thing is looked up."""
        return self.stems | {value for _, value in self.values}


def specific_stems(all_stems: Iterable[str]) -> frozenset[str]:
    """The stems without general words and numbers."""
    return frozenset([word for word in frozenset(all_stems) - GENERIC_STEMS if not word[0].isdigit()])


def _content(passage: Passage) -> Content:
    return Content.of(passage.stems, passage.identifiers)


def _says_nothing_new(new: Content, old: Content) -> bool:
    return new.stems <= old.stems and new.values <= old.values


def _corrects(new: Passage, content: Content, old: Passage, old_content: Content) -> bool:
    # One shared word is only enough if there are values, or if something is given up.
    is_about = len(content.stems & old_content.stems) > 1 or bool(
        given_up_stems(new.text) or (content.values and old_content.values)
    )
    if is_about and replaces(new.text, old.text, new_type="correction"):
        return True
    is_bare = (
        len(content.stems) < MIN_WORDS_ALONE and "correction" in new.cues and new.turn - old.turn <= _MAX_MESSAGES_BACK
    )
    return is_bare and bool(content.values and old_content.values) and names_alternative(new.text, old.text, near=True)


class Corrections:
    """For each passage that corrects something: the earlier passages, and clauses of state entries, that it replaces.

    Attributes:
        antecedents: The earlier passage that a passage corrects, by the index of the correcting one.
        replaced: The ids of the entries in which a passage replaces a clause, by the passage's index.
        outdated: The indexes of passages that no longer hold.
        restated: The indexes of passages that repeat an earlier statement with another value.
    """

    def __init__(self, passages: Sequence[Passage], previous: Sequence[StateEntry]) -> None:
        self.antecedents: dict[int, Passage] = {}
        self.replaced: dict[int, tuple[str, ...]] = {}
        self.outdated: set[int] = set()
        self.restated: set[int] = set()
        self._passages = passages
        self._contents = [_content(passage) for passage in passages]
        self._texts = {entry.id: label_and_clauses(entry.text) for entry in previous if entry.role in {"fact", "open"}}
        self._clauses = [
            (entry, index, Content.of(stems(clause), find_identifiers(clause)))
            for entry, (_, clauses) in self._texts.items()
            for index, clause in enumerate(clauses)
        ]
        self._outdated_clauses: set[tuple[str, int]] = set()
        self._clauses_by_word: defaultdict[str, list[int]] = defaultdict(list)
        self._clauses_by_form: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for number, (_, _, content) in enumerate(self._clauses):
            for word in content.stems:
                self._clauses_by_word[word].append(number)
        for entry, (_, clauses) in self._texts.items():
            for index, clause in enumerate(clauses):
                if statement := form_of(clause):
                    self._clauses_by_form[statement].append((entry, index))
        self._read_passages()

    def remaining_clauses(self, entry: str) -> tuple[str, list[str]]:
        """The label of an entry, and the clauses of it that still hold."""
        label, clauses = self._texts[entry]
        return label, [clause for index, clause in enumerate(clauses) if (entry, index) not in self._outdated_clauses]

    def _read_passages(self) -> None:
        recent: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=_MAX_COMPARED_PASSAGES))
        stated: dict[str, Passage] = {}
        for passage, content in zip(self._passages, self._contents, strict=True):
            self._note_restatement(passage, stated)
            if passage.cues & {"correction", "update"} and not passage.is_question and passage.role != "tool":
                self._note_correction(passage, content, recent)
            if not passage.is_question and passage.role != "tool":
                for word in content.keys:
                    recent[word].append(passage.index)

    def _note_correction(self, passage: Passage, content: Content, recent: defaultdict[str, deque[int]]) -> None:
        corrected = self._antecedents(passage, content, recent)
        if corrected:
            self.antecedents[passage.index] = corrected[0]
            self.outdated.update(one.index for one in corrected)
            content = Content(content.stems.union(*(specific_stems(one.stems) for one in corrected)), content.values)
        if passage.role != "user" and not passage.is_named:
            return
        counts = Counter(number for word in content.stems for number in self._clauses_by_word.get(word, ()))
        replaced_entries: dict[str, None] = {}
        for number, _ in sorted(counts.items(), key=lambda item: (-item[1], -item[0])):
            entry, index, clause_content = self._clauses[number]
            clause = self._texts[entry][1][index]
            known = (entry, index) in self._outdated_clauses or _says_nothing_new(
                self._contents[passage.index], clause_content
            )
            if not known and any(replaces(one.text, clause, new_type="correction") for one in (passage, *corrected)):
                self._outdated_clauses.add((entry, index))
                replaced_entries[entry] = None
        if replaced_entries:
            self.replaced[passage.index] = tuple(
                dict.fromkeys((*self.replaced.get(passage.index, ()), *replaced_entries))
            )

    def _note_restatement(self, passage: Passage, stated: dict[str, Passage]) -> None:
        """If the passage repeats an earlier statement with another value, the earlier one no longer holds."""
        if passage.is_question or passage.is_pasted or not (passage.role == "user" or passage.is_named):
            return
        statement = form_of(passage.core)
        if statement is None:
            return
        before = stated.get(statement)
        stated[statement] = passage
        if before is not None and before.seq < passage.seq and before.speaker == passage.speaker:
            self.outdated.add(before.index)
            self.restated.add(passage.index)
        statement_text = passage.core.casefold().rstrip(".")
        outdated = [
            (entry, index)
            for entry, index in self._clauses_by_form.get(statement, ())
            if (entry, index) not in self._outdated_clauses
            and self._texts[entry][1][index].casefold().rstrip(".") != statement_text
        ]
        self._outdated_clauses.update(outdated)
        if replaced_entries := (*self.replaced.get(passage.index, ()), *(entry for entry, _ in outdated)):
            self.replaced[passage.index] = tuple(dict.fromkeys(replaced_entries))

    def _antecedents(self, passage: Passage, content: Content, recent: defaultdict[str, deque[int]]) -> list[Passage]:
        counts = Counter(index for word in content.keys for index in recent.get(word, ()))
        ranked = sorted(counts.items(), key=lambda item: (-item[1], -item[0]))[:_MAX_COMPARED_PASSAGES]
        found = (
            old
            for old in (self._passages[index] for index, _ in ranked)
            if old.seq < passage.seq
            and old.index not in self.outdated
            and passage.role in {old.role, "user"}
            and _corrects(passage, content, old, self._contents[old.index])
        )
        return list(islice(found, _MAX_CORRECTED_PASSAGES))

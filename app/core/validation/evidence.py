"""Chooses the messages and entries that a verifier is shown: sources that claims name, and texts that share words."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from app.core.model.claims import Claim
from app.core.model.conversation import Message
from app.core.model.state import StateEntry
from app.core.model.word_overlap import message_text
from app.core.text.sentences import sentences
from app.core.text.words import FRAME_STEMS, GENERIC_STEMS, stems

MAX_SIMILAR_MESSAGES: Final = 2
"""How many messages of a chunk are shown for each sentence of a claim because they share most of its words. In the open
half of ``bench.trust`` two messages show every deciding message that the whole chunk shows; one message misses one."""

MIN_ADDED_SHARE: Final = 0.5
"""When one more message is shown: if words that the ``MAX_SIMILAR_MESSAGES`` messages lack weigh at least this share
of what the best of them shares with the sentence, since one sentence may join what three messages say. In the open half
of ``bench.trust`` this lowers the narratives' sentences with a number that is only in a message left out from 9 to 3 of
1 621."""


def evidence_messages(claims: Iterable[Claim], chunk: Sequence[Message]) -> tuple[Message, ...]:
    """Choose the messages of a chunk by which claims can be judged, in order.

    * The messages that a claim names, each with the message before and after it: what it answers, and its answer.
    * For each sentence, the messages that share most of its words, anywhere in the chunk (for a digest, in its
      segment), and one more that has many of the words that these lack.
    * For a narrative, which names no sources, also the answer to the best of these messages: a "yes" shares no words.
    """
    claims = tuple(claims)
    indexes = {message.seq: index for index, message in enumerate(chunk)}
    named_indexes = {indexes[seq] for claim in claims if claim.kind != "digest" for seq in claim.seqs if seq in indexes}
    chosen_indexes = {neighbour for index in named_indexes for neighbour in (index - 1, index, index + 1)}
    similar_texts = _SimilarTexts([content_stems(message_text(message)) for message in chunk])
    for claim in claims:
        within = _segment_indexes(claim, chunk) if claim.kind == "digest" else range(len(chunk))
        for text in _claim_sentences(claim):
            best = similar_texts.best(content_stems(text), within)
            chosen_indexes.update(best)
            chosen_indexes.update(index + 1 for index in best[:1] if claim.names_no_sources)
    return tuple(message for index, message in enumerate(chunk) if index in chosen_indexes)


def background_entries(
    claims: Sequence[Claim], shown_messages: Iterable[Message], previous: Sequence[StateEntry]
) -> tuple[StateEntry, ...]:
    """The entries of the state so far that a verifier needs in addition to the messages.

    These are the entries that claims give up or change, and entries with words of the claims that are in no shown
    message. Of such a narrative only the sentences with these words are shown.
    """
    named = {name for claim in claims for name in (claim.target, *claim.replaces)}
    wanted = {word for claim in claims for word in content_stems(claim.text)}
    known = {word for message in shown_messages for word in content_stems(message_text(message))}
    known.update(word for entry in previous if entry.id in named for word in content_stems(entry.text))
    pieces = [
        (entry.id, text)
        for entry in previous
        if entry.id not in named
        for text in (sentences(entry.text) if entry.role == "narrative" else [entry.text])
    ]
    chosen = set(_greedy_cover(wanted - known, {index: content_stems(text) for index, (_, text) in enumerate(pieces)}))
    chosen_sentences: defaultdict[str, list[str]] = defaultdict(list)
    for index, (name, text) in enumerate(pieces):
        if index in chosen:
            chosen_sentences[name].append(text)
    return tuple(
        entry if entry.id in named else replace(entry, text=" ".join(chosen_sentences[entry.id]))
        for entry in previous
        if entry.id in named or entry.id in chosen_sentences
    )


def content_stems(text: str) -> frozenset[str]:
    """The stems of the words that say what a text is about."""
    return frozenset(stems(text)) - FRAME_STEMS - GENERIC_STEMS


def _greedy_cover(wanted: AbstractSet[str], texts: Mapping[int, AbstractSet[str]]) -> list[int]:
    chosen = list[int]()
    uncovered = {key: words for key, text_words in texts.items() if (words := wanted & text_words)}
    while uncovered:
        best = max(uncovered, key=lambda key: (len(uncovered[key]), key))
        covered = uncovered.pop(best)
        chosen.append(best)
        uncovered = {key: rest for key, words in uncovered.items() if (rest := words - covered)}
    return chosen


def _claim_sentences(claim: Claim) -> Iterator[str]:
    yield from sentences(claim.text)
    yield from sentences(claim.successor_text)


def _segment_indexes(claim: Claim, chunk: Sequence[Message]) -> range:
    indexes = [index for index, message in enumerate(chunk) if claim.seqs[0] <= message.seq <= claim.seqs[-1]]
    return range(indexes[0], indexes[-1] + 1) if indexes else range(0)


class _SimilarTexts:
    """Finds the texts that share most words with a claim; rare words count more."""

    def __init__(self, texts: Sequence[AbstractSet[str]]) -> None:
        self._texts: Final = texts
        self._indexes_by_word: Final[defaultdict[str, list[int]]] = defaultdict(list)
        for index, text in enumerate(texts):
            for word in text:
                self._indexes_by_word[word].append(index)

    def best(self, wanted: AbstractSet[str], within: range) -> list[int]:
        """The places of the texts that share most, the best first, then of one with many other words."""
        shared = self._weights_of_shared_words(wanted, within)
        chosen = _greatest(shared)[:MAX_SIMILAR_MESSAGES]
        rest = self._weights_of_shared_words(wanted - {word for index in chosen for word in self._texts[index]}, within)
        additional = _greatest(rest)[:1]
        return [*chosen, *(index for index in additional if rest[index] >= MIN_ADDED_SHARE * shared[chosen[0]])]

    def _weights_of_shared_words(self, wanted: Iterable[str], within: range) -> dict[int, float]:
        weights: defaultdict[int, float] = defaultdict(float)
        for word in wanted:
            indexes = self._indexes_by_word.get(word, ())
            for index in indexes:
                if index in within:
                    weights[index] += math.log(1 + len(self._texts) / len(indexes))
        return weights


def _greatest(weights: Mapping[int, float]) -> list[int]:
    return sorted(weights, key=lambda index: (-weights[index], index))

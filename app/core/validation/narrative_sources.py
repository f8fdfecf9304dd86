"""Finds the earlier messages that sentences of a narrative come from: a narrative repeats old facts without sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice, zip_longest
from typing import Final

from app.core.model.claims import Claim
from app.core.model.conversation import Message
from app.core.model.word_overlap import Overlap, message_text
from app.core.text.words import stems

MAX_SEARCH_WORDS: Final = 48
"""The most words by which earlier messages are searched."""


def search_words(claims: Iterable[Claim], chunk: Iterable[Message]) -> tuple[str, ...]:
    """Stems of narratives' sentences that no message of the chunk has: the first of each sentence, then the second."""
    sentence_stems = [list(stems(claim.text)) for claim in claims if claim.names_no_sources]
    if not sentence_stems:
        return ()
    known = {stem for message in chunk for stem in stems(message_text(message))}
    unknown = ([stem for stem in sentence if stem not in known] for sentence in sentence_stems)
    in_turn = (stem for row in zip_longest(*unknown) for stem in row if stem is not None)
    return tuple(islice(dict.fromkeys(in_turn), MAX_SEARCH_WORDS))


def narrative_sources(claims: Iterable[Claim], chunk: Sequence[Message], earlier: Sequence[Message]) -> tuple[int, ...]:
    """The ``seq`` of the earlier messages that narratives' sentences come from, if no message of the chunk says so.

    Args:
        claims: The claims of a version.
        chunk: The messages that the verifier is shown anyway.
        earlier: Messages before them that have words of those sentences.
    """
    if not earlier:
        return ()
    overlap, first = Overlap([*earlier, *chunk]), min(message.seq for message in chunk)
    sources_by_sentence = [overlap.sources(claim.text) for claim in claims if claim.names_no_sources]
    return tuple(sorted({seq for seqs in sources_by_sentence for seq in seqs if max(seqs) < first}))

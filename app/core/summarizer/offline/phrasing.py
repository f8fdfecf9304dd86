"""Writes a chosen passage so that it can be read alone: with its speaker, and with the words it depends on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from app.core.reading.cues import PLEASANTRY
from app.core.reading.importance import Ratings
from app.core.reading.passages import Passage
from app.core.reading.scoring import BINDING_KINDS, kind_of, proposal_before
from app.core.summarizer.offline.corrections import MIN_WORDS_ALONE, Corrections, specific_stems
from app.core.summarizer.offline.items import ANSWER_SEPARATOR
from app.core.text.clauses import begins_unresolved, is_fragment
from app.core.text.languages.combined_words import alternatives
from app.core.text.patterns import compiled
from app.core.text.sentences import closed
from app.core.text.shortening import clip

MAX_CONTEXT_LENGTH: Final = 90
"""The most characters that are quoted of the utterance before or after."""

_MIN_LENGTH_ALONE: Final = 40
"""The least characters of a sentence that can do without context. Readers would keep a third of shorter sentences, and
two thirds of those twice as long."""
_MIN_UNDERSTANDABLE: Final = 0.25
"""The least likelihood to be understood alone; other sentences are shown with the one before."""
_MAX_THANKS_WORDS: Final = 3  # the most words of mere thanks
_ANAPHORA: Final = compiled(
    rf"^(?:{alternatives('clauses', 'open_beginnings')})\b|\b(?:{alternatives('clauses', 'open_ends')})", re.IGNORECASE
)


def is_thanks(passage: Passage) -> bool:
    """Whether a sentence is mere politeness."""
    return len(passage.stems) <= _MAX_THANKS_WORDS and not passage.values and PLEASANTRY.match(passage.text) is not None


class Phrasing:
    """Writes passages of one span so that each can be read alone.

    With ``is_brief``, room is scarce: sentences of one speaker, even of several messages, share one label.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        ratings: Ratings,
        corrections: Corrections,
        *,
        is_brief: bool = False,
    ) -> None:
        self._passages = passages
        self._standing = ratings.standalone
        self._corrections = corrections
        self.is_brief = is_brief
        self._written: dict[int, str] = {}

    def text(self, passage: Passage) -> str:
        """The passage with its speaker, and with what is needed to understand it, such as the question it answers."""
        if passage.index not in self._written:
            self._written[passage.index] = self._text_in_context(passage)
        return self._written[passage.index]

    def _text_in_context(self, passage: Passage) -> str:
        before = self.question_before(passage) or self._utterance_meant_by_pronoun(passage)
        if before is not None:
            question = clip(before.core, 2 * MAX_CONTEXT_LENGTH)
            return f"{before.speaker}: {question}{ANSWER_SEPARATOR}{passage.core_with_speaker}"
        reply = self.accepting_reply(passage)
        if reply is not None:
            answer = clip(reply.text, 2 * MAX_CONTEXT_LENGTH)
            return f"{passage.core_with_speaker}{ANSWER_SEPARATOR}{reply.speaker}: {answer}"
        lead = self.sentence_before(passage)
        return (
            f"{passage.speaker}: {_with_sentence_end(lead.text)} {passage.core}" if lead else passage.core_with_speaker
        )

    def source_seqs(self, passage: Passage) -> set[int]:
        """The positions of all messages from which the text takes words."""
        leads = (
            self.question_before(passage),
            self._utterance_meant_by_pronoun(passage),
            self.sentence_before(passage),
        )
        others = (*leads, self.accepting_reply(passage))
        seqs = (passage.result_seq, *(other.seq for other in others if other is not None))
        return {passage.seq, *(seq for seq in seqs if seq is not None)}

    def is_understandable(self, passage: Passage) -> bool:
        """Whether ``text`` can be understood without the messages around it."""
        if passage.line or passage.is_action or not self._needs_context(passage) or self.accepting_reply(passage):
            return True
        if passage.values and not begins_unresolved(passage.text):
            return True
        return any(
            lead(passage) for lead in (self.question_before, self._utterance_meant_by_pronoun, self.sentence_before)
        )

    def _needs_context(self, passage: Passage) -> bool:
        if self._standing[passage.index] < _MIN_UNDERSTANDABLE:
            return True
        return bool(passage.verdict and not passage.values and not specific_stems(passage.stems))

    def is_simple(self, passage: Passage) -> bool:
        """Whether ``text`` adds no words of other passages."""
        return self.text(passage) == passage.core_with_speaker

    def sentence_before(self, passage: Passage) -> Passage | None:
        """The same speaker's sentence right before, if this one refers to it or says too little alone."""
        if passage.index == 0 or passage.line:
            return None
        is_short = len(passage.text) < _MIN_LENGTH_ALONE and kind_of(passage.cues) not in BINDING_KINDS
        if not (self._needs_context(passage) or is_short or _ANAPHORA.search(passage.text)):
            return None
        before = self._passages[passage.index - 1]
        goes_on = before.speaker == passage.speaker and passage.turn - before.turn <= 1
        if (
            not goes_on
            or before.line
            or len(before.text) > 2 * MAX_CONTEXT_LENGTH
            or before.index in self._corrections.outdated
        ):
            return None
        return before if len(before.stems) > 1 and not PLEASANTRY.match(before.text) else None

    def question_before(self, passage: Passage) -> Passage | None:
        """The question right before, if this is a short answer to it or one that begins with yes or no."""
        if (
            passage.is_question
            or passage.index == 0
            or is_thanks(passage)
            or (passage.role != "user" and not passage.is_named)
        ):
            return None
        before = self._last_passage_but_thanks(passage)
        if before is None or not before.is_question or not _is_reply_to(passage, before):
            return None
        if (
            len(specific_stems(before.stems)) < (1 if passage.identifiers else MIN_WORDS_ALONE - 1)
            and not passage.values
        ):
            return None
        short = len(specific_stems(passage.stems)) <= MIN_WORDS_ALONE and len(passage.text) < MAX_CONTEXT_LENGTH
        needed = (passage.verdict or self._needs_context(passage)) and len(passage.text) < 2 * MAX_CONTEXT_LENGTH
        return before if short or needed else None

    def _last_passage_but_thanks(self, passage: Passage) -> Passage | None:
        index = passage.index - 1
        while index >= 0 and self._passages[index].seq == passage.seq and is_thanks(self._passages[index]):
            index -= 1
        return self._passages[index] if index >= 0 else None

    def accepting_reply(self, passage: Passage) -> Passage | None:
        """The user's reply that says yes to this passage, if it is a proposal of the assistant."""
        if passage.role != "assistant" or passage.is_named:
            return None
        index = passage.index
        while index < len(self._passages) and self._passages[index].seq == passage.seq:
            index += 1
        if index == len(self._passages):
            return None
        reply = self._passages[index]
        agreed = reply.role == "user" and reply.verdict > 0 and reply.turn - passage.turn == 1
        return reply if agreed and proposal_before(self._passages, reply) is passage else None

    def _utterance_meant_by_pronoun(self, passage: Passage) -> Passage | None:
        if passage.index == 0 or passage.line or not passage.values or not begins_unresolved(passage.text):
            return None
        before = self._passages[passage.index - 1]
        usable = _is_reply_to(passage, before) and not before.is_pasted
        usable = usable and len(before.core) <= MAX_CONTEXT_LENGTH and not begins_unresolved(before.core)
        return before if usable and not is_fragment(before.core) else None


def _is_reply_to(passage: Passage, before: Passage) -> bool:
    return passage.turn - before.turn == 1 and before.speaker != passage.speaker


def _with_sentence_end(text: str) -> str:
    # Without a final mark the next sentence would read as a part of this one.
    return closed(text) if text[-1:].isalnum() else text

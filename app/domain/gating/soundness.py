"""Whether a sentence about a stretch of messages says only what that stretch says.

Only the stretch itself counts, and the system prompt: a text about it that drew on another message would outlive the
erasure of that message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from app.domain.anchors.rendering import escape_served
from app.domain.conversation import Message
from app.domain.gating.authority import claims_authority
from app.domain.gating.claims import Claim, find_claims, holders, supported, words_of_values
from app.domain.gating.contested import is_refused
from app.domain.gating.evidence import BACKGROUND, Evidence
from app.domain.gating.excuses import is_excuse
from app.domain.gating.swapping import is_swapped
from app.domain.words.language import detect
from app.domain.words.patterns import compiled
from app.domain.words.text import FRAME_STEMS, GENERIC_STEMS, sentences, stems

_SUPPORT: Final = 0.25  # of a sentence's weight must be shared with the stretch
_FEW: Final = 4  # content words: of fewer nothing can be told by what they share
_LOOKED_AT: Final = 12  # sentences whose values are compared with one sentence's
_SAMPLE: Final = 20_000  # characters are plenty to know a language by
_POINTER: Final = compiled(r"(?:->|=>|[→⇒➔➜])\s{0,4}[LlＬ]\s?\d")


class Stretch:
    """Some messages, and what may be said of them.

    Args:
        messages: The stretch, in order.
        evidence: Of these messages and maybe of others.
        language: Of the conversation, ``None`` when it cannot be told: the stretch's own counts then.
    """

    def __init__(self, messages: Sequence[Message], evidence: Evidence, language: str | None = None) -> None:
        self._messages = tuple(messages)
        self._evidence = evidence
        self._seqs = {message.seq for message in messages}
        self._given_language = language

    def is_sound(self, sentence: str) -> bool:
        """Whether a sentence invents nothing, grants no rights, gives no orders, and imitates nothing of ours."""
        if is_hostile(sentence):
            return False
        if not self._seqs.isdisjoint(self._evidence.with_text(sentence)):
            return True
        claims = find_claims(sentence, self._language)
        if not all(claim.is_small or self._is_held(claim) for claim in claims):
            return False
        content = frozenset(stems(sentence)) - FRAME_STEMS
        enough = len(content) < _FEW or supported(content, claims, self._seqs, self._evidence) >= _SUPPORT
        return enough and not is_swapped(sentence, claims, self._told(claims)) and not self._was_refused(sentence)

    def is_term(self, term: str) -> bool:
        """Whether a word, a name or a short phrase belongs to the stretch: each of its values, and one of its words."""
        if is_hostile(term):
            return False
        if not self._seqs.isdisjoint(self._evidence.with_text(term)):
            return True
        return self.holds_values(term) and self._shares_word(term)

    def holds_values(self, text: str) -> bool:
        """Whether every exact value of a text stands in the stretch."""
        return all(self._is_held(claim) for claim in find_claims(text, self._language))

    def _is_held(self, claim: Claim) -> bool:
        found = holders(claim, self._evidence)
        return BACKGROUND in found or not self._seqs.isdisjoint(found)

    def _shares_word(self, term: str) -> bool:
        content = frozenset(stems(term)) - FRAME_STEMS - GENERIC_STEMS
        return any(not self._seqs.isdisjoint(self._evidence.with_stem(word)) for word in content)

    def _was_refused(self, sentence: str) -> bool:
        """Whether it tells as decided what the user turned down, where most of it was said."""
        content = frozenset(stems(sentence)) - FRAME_STEMS - GENERIC_STEMS
        shared: dict[int, float] = {}
        for word in content:
            for source in self._evidence.with_stem(word):
                if source in self._seqs:
                    shared[source] = shared.get(source, 0.0) + self._evidence.weight(word)
        best = max(shared, key=lambda seq: (shared[seq], seq), default=None)
        return best is not None and is_refused(sentence, [best], self._messages)

    def _told(self, claims: Sequence[Claim]) -> list[str]:
        """The sentences of the stretch that hold digits of these values."""
        digits = frozenset(word for word in words_of_values(claims) if word[0].isdigit())
        told = [sentence for sentence, words in self._sentences if digits & words] if digits else []
        return told[:_LOOKED_AT]

    @cached_property
    def _language(self) -> str | None:
        return self._given_language or detect("\n".join(message.content for message in self._messages)[:_SAMPLE])

    @cached_property
    def _sentences(self) -> tuple[tuple[str, frozenset[str]], ...]:
        return tuple(self._read())

    def _read(self) -> Iterator[tuple[str, frozenset[str]]]:
        for message in self._messages:
            for sentence in sentences(self._evidence.text(message.seq)):
                yield sentence, frozenset(stems(sentence))


def is_hostile(text: str) -> bool:
    """Whether a text would grant rights, give orders, talk about its task, or pass for something of ours."""
    return claims_authority(text) or is_excuse(text) or imitates(text)


def imitates(text: str) -> bool:
    """Whether a text holds one of our tags, or what reads like a marker."""
    return escape_served(text) != text or _POINTER.search(text) is not None

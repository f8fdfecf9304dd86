"""What a record may rest on: the span with its times, the state so far, anchors, the system prompt.

Everything is indexed once, in time linear in the texts, by *source*: a message by its ``seq``, an earlier entry by a
negative number, what belongs to no message by 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from app.core.model.anchors import FoundAnchor
from app.core.model.conversation import Message
from app.core.model.overlap import message_text
from app.core.model.state import StateEntry
from app.core.text.canonical.forms import forms_of_day, given_forms
from app.core.text.patterns import any_literal, compiled
from app.core.text.words import stems

BACKGROUND: Final = 0
"""The source of what stands in the system prompt."""
_TOKEN: Final = compiled(r"[^\s\"'«»“”„`()<>\[\]{},;!?|=]+")
_EDGE: Final = ".:…*_-"
_SEARCHES: Final = 2_000  # texts that no index knows: more of them no honest summary brings
_REMEMBERED: Final = 8_192  # texts: the anchors and entries of two long conversations
_NEAR: Final = 0.05  # "about a thousand" may stand for 987


@dataclass(frozen=True, slots=True)
class _Read:
    """What a text gives, each once."""

    forms: tuple[str, ...]
    stems: tuple[str, ...]
    tokens: tuple[str, ...]


def _read(text: str, forms: Iterable[str]) -> _Read:
    tokens = {token.strip(_EDGE) for token in _TOKEN.findall(text.casefold())}
    return _Read(tuple(forms), tuple(set(stems(text))), tuple(tokens))


@lru_cache(maxsize=_REMEMBERED)
def _read_again(text: str) -> _Read:
    """Of what does not depend on a day: entries and anchors are the same for one chunk after the other."""
    return _read(text, given_forms(text))


class Evidence:
    """Answers which sources hold a word, an exact text, or one form of a value."""

    def __init__(
        self,
        messages: Sequence[Message],
        previous: Sequence[StateEntry] = (),
        anchors: Sequence[FoundAnchor] = (),
        system_prompt: str = "",
    ) -> None:
        self.messages: Mapping[int, Message] = {message.seq: message for message in messages}
        self.entries: Mapping[int, StateEntry] = {-number: entry for number, entry in enumerate(previous, start=1)}
        self._texts: list[tuple[int, str]] = []
        self._stems: defaultdict[str, list[int]] = defaultdict(list)
        self._forms: defaultdict[str, list[int]] = defaultdict(list)
        self._tokens: defaultdict[str, list[int]] = defaultdict(list)
        self._searches = 0
        for message in messages:
            day = message.created_at.date()
            forms = given_forms(message_text(message), day)
            self._add(message.seq, message_text(message), _read(message_text(message), forms | set(forms_of_day(day))))
        for source, entry in self.entries.items():
            text = "\n".join([entry.text, *entry.superseded])
            self._add(source, text, _read_again(text))
        for anchor in anchors:
            if anchor.seq not in self.messages:
                self._add(anchor.seq, anchor.content, _read_again(anchor.content))
        if system_prompt:
            self._add(BACKGROUND, system_prompt, _read_again(system_prompt))

    def _add(self, source: int, text: str, read: _Read) -> None:
        self._texts.append((source, text))
        for postings, words in ((self._forms, read.forms), (self._stems, read.stems), (self._tokens, read.tokens)):
            for word in words:
                postings[word].append(source)

    def with_stem(self, stem: str) -> Sequence[int]:
        """Sources that hold the word."""
        return self._stems.get(stem, ())

    def with_form(self, form: str) -> Sequence[int]:
        """Sources that give the form."""
        return self._forms.get(form, ())

    def with_text(self, text: str) -> Sequence[int]:
        """Sources in which the text stands, differences of case and of blanks aside."""
        wanted = _folded(text)
        known = self._known(wanted)
        return [source for source, folded in self._folded if wanted in folded] if known is None else known

    def with_exact(self, text: str) -> Sequence[int]:
        """Like ``with_text``, for a value: what it stands in is no longer word, number or code."""
        wanted = _folded(text)
        known = self._known(wanted)
        if known is not None:
            return known
        before = r"(?:(?<![^\W_])|(?<=\bv))" if wanted[0].isascii() and wanted[0].isalnum() else ""
        after = r"(?![^\W_])" if wanted[-1].isascii() and wanted[-1].isalnum() else ""
        pattern = any_literal([wanted], before=before, after=after)
        return [source for source, folded in self._folded if wanted in folded and pattern.search(folded)]

    def _known(self, wanted: str) -> Sequence[int] | None:
        """Sources of a text that is one token, none of an empty one or one too many; ``None``: they are searched."""
        if known := self._tokens.get(wanted.strip(_EDGE)):
            return known
        self._searches += 1
        return () if not wanted or self._searches > _SEARCHES else None

    def with_pieces(self, pieces: Iterable[str]) -> list[int]:
        """Sources that hold each of these runs of letters and digits, exactly."""
        found: set[int] | None = None
        for piece in pieces:
            having = self._pieces.get(piece, set())
            found = having if found is None else found & having
        return sorted(found or ())

    def with_about(self, amount: float, unit: str) -> bool:
        """Whether some source states a number near this one, in the same unit."""
        return any(abs(other - amount) <= _NEAR * abs(amount) for other in self._amounts.get(unit, ()))

    @cached_property
    def _folded(self) -> list[tuple[int, str]]:
        return [(source, _folded(text)) for source, text in self._texts]

    @cached_property
    def _pieces(self) -> Mapping[str, set[int]]:
        found: defaultdict[str, set[int]] = defaultdict(set)
        for source, text in self._texts:
            for piece in pieces_of(text):
                found[piece].add(source)
        return found

    @cached_property
    def _amounts(self) -> Mapping[str, list[float]]:
        found: defaultdict[str, list[float]] = defaultdict(list)
        for form in self._forms:
            if form.startswith(("n:", "m:")):
                amount, _, unit = form[2:].partition("|")
                found[unit.strip("*")].append(float(amount))
        return found


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


_CAMEL: Final = compiled(r"(?<=[a-z])(?=[A-Z])")
_PIECE: Final = compiled(r"[^\W_]+")


def pieces_of(text: str) -> set[str]:
    """The runs of letters and digits of a text, in small letters, ``camelCase`` in its parts and as a whole."""
    return {*_PIECE.findall(text.casefold()), *_PIECE.findall(_CAMEL.sub(" ", text).casefold())}

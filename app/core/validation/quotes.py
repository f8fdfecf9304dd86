"""Checks whether a verifier's quotations stand in the messages that it was shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Final

from app.core.text.escaping import unescape
from app.core.text.patterns import compiled
from app.core.text.scripts import EAST_ASIAN

MAX_QUOTE_LENGTH: Final = 200
"""The most characters of a quotation."""
ShownTexts = Mapping[int, tuple[str, ...]]
"""The texts of each message that the verifier was shown, by ``seq``. A quotation may come from any of them."""
_MIN_QUOTE_LENGTH: Final = 4
"""The fewest letters and digits of a quotation; an ideograph counts as two. A shorter one is found everywhere, and
proves nothing."""
_MAX_PLACES: Final = 100  # places of one quotation that are looked at in one text
_BLANKLESS: Final = compiled(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff]")
"""Letters of scripts that put no spaces between words."""
_IDEOGRAPH: Final = compiled(f"[{EAST_ASIAN}]")
_MARKS: Final = str.maketrans(dict.fromkeys("'‘’‚‛“”„‟«»‹›`´′″＂＇「」『』〝〞〟", '"'))


class QuoteSearch:
    """The messages that were shown, for looking up quotations in them.

    Only differences in Unicode form, spaces and quotation marks are ignored. A quotation has to begin and end at the
    edge of a word: "a budget of 90" does not stand in "a budget of 900".
    """

    def __init__(self, shown_texts: ShownTexts) -> None:
        self._shown_texts: Final = shown_texts
        self._normalized: Final[dict[int, tuple[str, ...]]] = {}

    def seq_of(self, quote: str, named_seq: int | None) -> int | None:
        """The message in which a quotation stands, or ``None``.

        The message ``named_seq``, which the verifier named, is searched first. If the words are not there, exactly one
        other message must have them: verifiers confuse numbers more often than words.
        """
        if len(quote) > MAX_QUOTE_LENGTH:
            return None
        forms = {
            form
            for text in (quote, unescape(quote))
            if _letter_weight(form := _normalized(text).strip('" ')) >= _MIN_QUOTE_LENGTH
        }
        if not forms:
            return None
        if named_seq is not None and named_seq in self._shown_texts and self._is_in_message(named_seq, forms):
            return named_seq
        found_in = [other for other in self._shown_texts if self._is_in_message(other, forms)]
        return found_in[0] if len(found_in) == 1 else None

    def _is_in_message(self, seq: int, forms: Iterable[str]) -> bool:
        if seq not in self._normalized:
            self._normalized[seq] = tuple(map(_normalized, self._shown_texts[seq]))
        return any(_contains_quote(text, form) for text in self._normalized[seq] for form in forms)


def _normalized(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text.translate(_MARKS)).translate(_MARKS).split())


def _letter_weight(text: str) -> int:
    return sum(2 if _IDEOGRAPH.match(character) else 1 for character in text if character.isalnum())


def _contains_quote(text: str, quote: str) -> bool:
    start = text.find(quote)
    for _ in range(_MAX_PLACES):
        if start < 0:
            return False
        if _is_word_boundary(text, start) and _is_word_boundary(text, start + len(quote)):
            return True
        start = text.find(quote, start + 1)
    return False


def _is_word_boundary(text: str, position: int) -> bool:
    sides = text[max(position - 1, 0) : position + 1]
    return not 0 < position < len(text) or not sides.isalnum() or _BLANKLESS.search(sides) is not None

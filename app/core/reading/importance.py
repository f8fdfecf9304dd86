"""How likely a sentence is worth remembering: a logistic regression over a few plain features.

``python -m bench.summarizer_fit`` fits it on what careful readers would keep of a conversation, and on what later
questions rest on, and prints ``WEIGHTS``. The features name no topic, and need no list of words but of the user's
counterpart ("you"), of pronouns that point back, and of times told by their day. Example: "We moved to Basel last
Friday." as the answer to a question is likelier to be kept than "That sounds great, you can be proud!".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from app.core.reading.cues import PLEASANTRY
from app.core.reading.passages import Passage
from app.core.text.clauses import begins_unresolved, is_fragment
from app.core.text.identifiers import Identifier
from app.core.text.languages.joined import pattern_of
from app.core.text.relative import is_relative
from app.core.text.words import FRAME_STEMS, GENERIC_STEMS

WEIGHTS: Final[Mapping[str, float]] = {
    "constant": -2.554,
    "content": 0.638,
    "name": 0.729,
    "value": 0.8,
    "relative time": 0.92,
    "addressed": -0.767,
    "unresolved": -0.083,
    "fragment": -0.726,
    "pleasantry": -0.74,
    "new": 0.288,
    "question": -1.94,
    "reply": 0.843,
    "alone": -1.006,
    "sentences": -0.316,
    "assistant": -2.06,
    "listed": -1.95,
    "pasted": -0.552,
}
STANDING: Final[Mapping[str, float]] = {
    "constant": -0.489,
    "name": 1.031,
    "unresolved": -2.959,
    "fragment": -1.56,
    "new": 0.663,
    "reply": -1.147,
}
"""Likewise, fitted on the sentences that readers would keep: alone, or only with what stands before them."""
_ADDRESSED: Final = pattern_of("clauses", "addressed")
_LIKELIEST: Final = 30.0  # logarithm of odds, for the sake of numbers
_USUAL: Final = math.log(3)
"""Of how many sentences a message of an entry had, whose conversation is not at hand."""


def features(passages: Sequence[Passage]) -> Iterator[Mapping[str, float]]:
    """By name, for each passage of a span in order. Linear in the number of passages.

    * ``content``, ``new``: the square root of how many words say something, and the share of them not said before;
    * ``name``, ``value``, ``relative time``: 1 when it names somebody or something, holds an exact value, tells a time
      by the day on which it is said ("last Friday");
    * ``question``, ``addressed``: 1 for a question, and for what is said of the other side ("you");
    * ``unresolved``, ``fragment``: 1 when it begins with a pronoun that points back, and when it has hardly a word;
    * ``reply``: 1 when the message before ends with a question;
    * ``alone``, ``sentences``: 1 for the only sentence of a message, and the logarithm of how many the message has;
    * ``assistant``, ``listed``, ``pasted``: 1 for an assistant's words, for an item of a list or a call that only
      reads, and for part of a document that the speaker did not write for this conversation;
    * ``pleasantry``: 1 when it begins with thanks, praise or a greeting.
    """
    sentences = Counter(passage.seq for passage in passages)
    said: set[str] = set()
    before: Passage | None = None
    for passage in passages:
        content = passage.stems - GENERIC_STEMS - FRAME_STEMS
        yield {
            **_of_words(passage.text, content, passage.identifiers, passage.values),
            "new": len(content - said) / max(len(content), 1),
            "question": float(passage.is_question),
            "reply": float(before is not None and before.seq == passage.seq - 1 and before.is_question),
            "alone": float(sentences[passage.seq] == 1),
            "sentences": math.log(sentences[passage.seq]),
            "assistant": float(passage.role == "assistant" and not passage.is_named),
            "listed": float(passage.is_listed),
            "pasted": float(passage.is_pasted),
        }
        said |= content
        before = passage


def _of_words(
    text: str, content: Collection[str], identifiers: Sequence[Identifier], values: Collection[str]
) -> Mapping[str, float]:
    return {
        "constant": 1.0,
        "content": math.sqrt(len(content)),
        "name": float(any(one.text.lower() not in values for one in identifiers)),
        "value": float(bool(values)),
        "relative time": float(is_relative(text)),
        "addressed": float(_ADDRESSED.search(text) is not None),
        "unresolved": float(begins_unresolved(text)),
        "fragment": float(is_fragment(text)),
        "pleasantry": float(PLEASANTRY.match(text) is not None),
    }


def likelihoods(passages: Sequence[Passage]) -> list[float]:
    """How likely each passage of a span is worth remembering, from 0 to 1."""
    return [_likelihood(WEIGHTS, one) for one in features(passages)]


def standings(passages: Sequence[Passage]) -> list[float]:
    """How likely each passage, if it is worth remembering, is understood without what was said before it."""
    return [_likelihood(STANDING, one) for one in features(passages)]


def likelihood_of_entry(
    text: str, said: Collection[str], identifiers: Sequence[Identifier], *, answers: bool, by_assistant: bool
) -> float:
    """The same for an entry of a state, by its words alone.

    Args:
        text: Without its speaker.
        said: Its stems.
        identifiers: Found in it.
        answers: Whether the question stands before it.
        by_assistant: Whether an assistant said it.
    """
    content = frozenset(said) - GENERIC_STEMS - FRAME_STEMS
    values = frozenset(one.text.lower() for one in identifiers if one.kind not in {"name", "quoted"})
    return _likelihood(
        WEIGHTS,
        {
            **_of_words(text, content, identifiers, values),
            "new": 1.0,
            "reply": float(answers),
            "sentences": _USUAL,
            "assistant": float(by_assistant),
        },
    )


def _likelihood(weights: Mapping[str, float], of_one: Mapping[str, float]) -> float:
    logarithm = sum(weights.get(name, 0.0) * value for name, value in of_one.items())
    return 1 / (1 + math.exp(-max(min(logarithm, _LIKELIEST), -_LIKELIEST)))

"""How likely a sentence is worth remembering: a logistic regression over a few plain features.

``python -m bench.summarizer_fit`` fits it on what careful readers would keep of a conversation, and on what later
questions need, and prints ``LIKELIHOOD_WEIGHTS``. The features name no topic. The only lists of words that they need
are those for the other side ("you"), of pronouns that point back, and of relative times. Example: "We moved to Basel
last Friday." as the answer to a question is likelier to be kept than "That sounds great, you can be proud!".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import mul
from typing import Final, NamedTuple

from app.core.reading.passages import Passage
from app.core.reading.sentence import TRAITS, Sentence

LIKELIHOOD_WEIGHTS: Final[Mapping[str, float]] = {
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
STANDALONE_WEIGHTS: Final[Mapping[str, float]] = {
    "constant": -0.489,
    "name": 1.031,
    "unresolved": -2.959,
    "fragment": -1.56,
    "new": 0.663,
    "reply": -1.147,
}
"""The weights for whether a sentence can be understood without the one before it, fitted on the sentences that readers
would keep."""
FEATURES: Final = (*TRAITS, "new", "question", "reply", "alone", "sentences", "assistant", "listed", "pasted")
"""The names of all features, in order."""
_MAX_LOGARITHM: Final = 30.0  # the largest logarithm of odds, so that its exponential stays a normal number
_ASSUMED_SENTENCE_COUNT: Final = math.log(3)
"""The assumed feature ``sentences`` (three) for the message of an entry, whose conversation is not available."""


def features(passages: Sequence[Passage]) -> Iterator[Sequence[float]]:
    """The values of ``FEATURES`` for each passage of a span, in order. Takes linear time.

    * ``content``, ``new``: the square root of the number of content words, and the share of them not said before;
    * ``name``, ``value``, ``relative time``: 1 when it has a name, an exact value, or a time that depends on the day on
      which it is said ("last Friday");
    * ``question``, ``addressed``: 1 for a question, and for a statement about the other side ("you");
    * ``unresolved``, ``fragment``: 1 when it begins with a pronoun that points back, and when it has hardly any words;
    * ``reply``: 1 when the message before ends with a question;
    * ``alone``, ``sentences``: 1 for the only sentence of a message, and the logarithm of how many the message has;
    * ``assistant``, ``listed``, ``pasted``: 1 for an assistant's words, for an item of a list or a call that only
      reads, and for part of a document that the speaker did not write for this conversation;
    * ``pleasantry``: 1 when it begins with thanks, praise or a greeting.
    """
    sentences = Counter(passage.seq for passage in passages)
    earlier_stems: set[str] = set()
    previous: Passage | None = None
    for passage in passages:
        content, sentence_count = passage.content, sentences[passage.seq]
        yield (
            *passage.traits,
            len(content - earlier_stems) / max(len(content), 1),
            float(passage.is_question),
            float(previous is not None and previous.seq == passage.seq - 1 and previous.is_question),
            float(sentence_count == 1),
            math.log(sentence_count),
            float(passage.role == "assistant" and not passage.is_named),
            float(passage.is_listed),
            float(passage.is_pasted),
        )
        earlier_stems |= content
        previous = passage


class Ratings(NamedTuple):
    """The ratings of each passage of a span, by its index."""

    likely: Sequence[float]
    """How likely the passage is worth remembering, from 0 to 1."""
    standalone: Sequence[float]
    """How likely the passage, if worth remembering, is understood without what was said before it."""


def ratings_of(passages: Sequence[Passage]) -> Ratings:
    """Rate the passages of a span."""
    found = list(features(passages))
    likely, standalone = _weights_in_order(LIKELIHOOD_WEIGHTS), _weights_in_order(STANDALONE_WEIGHTS)
    return Ratings([_likelihood(likely, one) for one in found], [_likelihood(standalone, one) for one in found])


def likelihood_of_entry(sentence: Sentence, *, answers: bool, by_assistant: bool) -> float:
    """How likely an entry of a state is worth remembering, by its words alone.

    Args:
        sentence: The sentence, without its speaker.
        answers: Whether the question that it answers stands before it.
        by_assistant: Whether an assistant said it.
    """
    other_features = (1.0, 0.0, float(answers), 0.0, _ASSUMED_SENTENCE_COUNT, float(by_assistant), 0.0, 0.0)
    return _likelihood(_weights_in_order(LIKELIHOOD_WEIGHTS), (*sentence.traits, *other_features))


def _likelihood(weights: Sequence[float], of_one: Sequence[float]) -> float:
    logarithm = sum(map(mul, weights, of_one))
    return 1 / (1 + math.exp(-max(min(logarithm, _MAX_LOGARITHM), -_MAX_LOGARITHM)))


def _weights_in_order(weights: Mapping[str, float]) -> Sequence[float]:
    return [weights.get(name, 0.0) for name in FEATURES]

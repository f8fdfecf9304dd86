"""How likely a later question rests on a sentence: a logistic regression over seven plain features.

``python -m bench.summarizer_fit`` fits it on conversations whose later questions are known, and prints ``WEIGHTS``. The
features name no topic and no cue, and need no list of words but of filler and of times told by their day, so that they
hold in languages and conversations on which nothing was fitted. Example: "We moved to Basel last Friday." as the answer
to a question is likelier to be asked for than "That sounds great!".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from app.core.reading.passages import Passage
from app.core.text.relative import is_relative
from app.core.text.words import FRAME_STEMS, GENERIC_STEMS

WEIGHTS: Final[Mapping[str, float]] = {
    "constant": -3.609,
    "content": 1.325,
    "name": 0.901,
    "relative time": 1.506,
    "reply": 1.314,
    "alone": -1.499,
    "sentences": -0.783,
    "pasted": -2.016,
}
NEUTRAL_ODDS: Final = 0.28
"""At these odds a passage keeps its worth; most have lower ones."""
_LEAST: Final = 0.1
_LIKELIEST: Final = 0.0  # logarithm of odds: more than one to one counts as that, however long the sentence


def features(passages: Sequence[Passage]) -> Iterator[Mapping[str, float]]:
    """By name, for each passage of a span in order. Linear in the number of passages.

    * ``content``: the square root of how many words say something;
    * ``name``: 1 when it names somebody or something;
    * ``relative time``: 1 when it tells a time by the day on which it is said ("last Friday");
    * ``reply``: 1 when the message before ends with a question;
    * ``alone``, ``sentences``: 1 for the only sentence of a message, and the logarithm of how many the message has;
    * ``pasted``: 1 for part of a document that the speaker did not write for this conversation.
    """
    sentences = Counter(passage.seq for passage in passages)
    before: Passage | None = None
    for passage in passages:
        yield {
            "constant": 1.0,
            "content": math.sqrt(len(passage.stems - GENERIC_STEMS - FRAME_STEMS)),
            "name": float(any(one.text.lower() not in passage.values for one in passage.identifiers)),
            "relative time": float(is_relative(passage.text)),
            "reply": float(before is not None and before.seq == passage.seq - 1 and before.is_question),
            "alone": float(sentences[passage.seq] == 1),
            "sentences": math.log(sentences[passage.seq]),
            "pasted": float(passage.is_pasted),
        }
        before = passage


def factors(passages: Sequence[Passage]) -> list[float]:
    """By how much the odds that a later question rests on it raise or lower what each passage is worth."""
    return [max(_LEAST, math.exp(min(_logarithm(one), _LIKELIEST)) / NEUTRAL_ODDS) for one in features(passages)]


def _logarithm(of_one: Mapping[str, float]) -> float:
    return sum(WEIGHTS.get(name, 0.0) * value for name, value in of_one.items())

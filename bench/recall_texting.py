"""Turns talks into text messages: a message per sentence, lower case, slang, typos; random choices by the talk's id."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from app.core.text.sentences import sentences
from app.core.text.speakers import without_speaker
from app.core.text.words import stems
from bench.recall_talks import Talk, TalkQuestion

_SLANG: Final[Mapping[str, str]] = {
    "you": "u",
    "your": "ur",
    "are": "r",
    "because": "cuz",
    "though": "tho",
    "tomorrow": "tmrw",
    "really": "rly",
    "please": "pls",
    "thanks": "thx",
    "photo": "pic",
    "picture": "pic",
    "people": "ppl",
    "with": "w",
    "about": "abt",
    "love": "luv",
    "great": "gr8",
    "birthday": "bday",
    "favorite": "fav",
    "vacation": "vacay",
    "something": "smth",
    "probably": "prob",
    "definitely": "def",
}
_SLANGY: Final = 0.6  # share of the words that have a slang form
_MISSPELT: Final = 0.04  # share of the words of four letters or more
_MIN_WORD_LENGTH: Final = 4
_UNSTOPPED: Final = 0.8  # share of the messages that end without a full stop

_WORD: Final = re.compile(r"[a-z]+")


def texted(talk: Talk) -> Talk:
    """The talk in short messages. The evidence is the sentence with most of the answer's words, of each message."""
    chance = random.Random(talk.id)
    messages: list[dict[str, Any]] = []
    places: dict[int, list[tuple[int, str]]] = {}
    for seq, message in enumerate(talk.messages, start=1):
        text = without_speaker(message["content"])
        name = message["content"].removesuffix(text)
        places[seq] = []
        for part in sentences(text) or [text]:
            messages.append({**message, "content": name + _typed(part, chance)})
            places[seq].append((len(messages), part))
    questions = tuple(replace(one, evidence=_evidence(one, places)) for one in talk.questions)
    return Talk(id=talk.id, messages=tuple(messages), questions=questions)


def _evidence(asked: TalkQuestion, places: Mapping[int, list[tuple[int, str]]]) -> tuple[int, ...]:
    answer, question = frozenset(stems(asked.answer)), frozenset(stems(asked.text))

    def holds(place: tuple[int, str]) -> tuple[int, int, int]:
        found = frozenset(stems(place[1]))
        return len(answer & found), len(question & found), len(place[1])

    return tuple(sorted({max(places[seq], key=holds)[0] for seq in asked.evidence}))


def _typed(sentence: str, chance: random.Random) -> str:
    plain = re.sub("['’]", "", sentence.lower())
    typed = _WORD.sub(lambda match: _word(match[0], chance), plain)
    return typed.rstrip(".!") if chance.random() < _UNSTOPPED else typed


def _word(word: str, chance: random.Random) -> str:
    if word in _SLANG and chance.random() < _SLANGY:
        return _SLANG[word]
    if len(word) < _MIN_WORD_LENGTH or chance.random() >= _MISSPELT:
        return word
    place = chance.randrange(1, len(word) - 1)
    before, here, after = word[:place], word[place], word[place + 1 :]
    return chance.choice((before + after, before + here + here + after, before + after[0] + here + after[1:]))

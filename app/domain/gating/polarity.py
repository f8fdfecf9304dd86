"""Statements that were turned round: "we will not use Kubernetes" told as "the team will use Kubernetes".

All of the words were said, so only what denies them can tell. Only the plain case is taken: a clause that denies
something, told with the same words and nothing that denies, or the other way about, and nobody near by who said it so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from app.domain.gating.evidence import beginning
from app.domain.words.text import FRAME_STEMS, GENERIC_STEMS, stems

_DENIES: Final = re.compile(
    r"\b(?:not(?!\s(?:only|just|forget|hesitate))|cannot|never|without|neither|nor|no(?=\s+\w)|(?:do|does|did|is|are|was|were|has|have|had|will|wo|would|ca"
    r"|could|should|must|need)n['’]?t(?!\s(?:forget|hesitate|wait\sto))"
    r"|(?:никогда\s(?:\w+\s)?|ни\s\w+\s)?не(?!\s(?:забу[дт]\w*|забы\w+|только|лишь|просто))|ни|нет|никогда|без|нельзя|nicht|kein(?:e[mnrs]?)?|niemals|ohne|pas|jamais|aucune?|nunca|sin|ningun[ao]?)\b"
    r"|(?<![差了])不(?![但仅光只错同断管如久少论])(?:(?<=\w不)|(?!过))|没有?(?!问题)|未(?!来)|无(?=[法需须])",
    re.IGNORECASE,
)
"""What denies the words after it; the sign is left out of Chinese words that deny nothing."""
_HEDGES: Final = re.compile(
    r"\b(?:reject\w*|declin\w*|refus\w*|against|avoid\w*|stop\w*|instead|rather|except\w*|unless|until|only|fail\w*"
    r"|lack\w*|miss(?:ing|es)|absent|absence|unable|hat(?:e[sd]?|ing)|cancel\w*|abandon\w*|dropp?\w*|skip\w*|non"
    r"|pending|still|outstanding|prohibit\w*|forbid\w*|forbidden|bann?\w*|hardly|barely|exclu\w*|oppos\w*|wrong|false"
    r"|doubt\w*|whether|if|before|free|ruled|zero|gave up|quit|nothing|nobody|none|than|but|although|though|just"
    r"|yet|un\w{4,}|in(?:complete|valid|correct|active)\w*|dis\w{4,}|\w{3,}less"
    r"|отказ\w*|отклон\w*|против|вместо|кроме|избег\w*|прекра[тщ]\w*|запр\w*|отмен\w*|лишь|только|пока|ещё|еще|если|ли|но"
    r"|хотя|ноль|нулев\w*|отсутств\w*|сомнева\w*|бросил\w*|перестал\w*|не\w{4,}|без\w{3,}|до|раньше|чем"
    r"|statt|ohne|aber|sauf|mais|pero|salvo)\b|拒绝|反对|零|避免|停止|取消|禁止|[只仅尚除但]|如果|是否|之前",
    re.IGNORECASE,
)
"""What may deny, limit, or put a condition, in words of its own: beside it nothing is said of a statement's sense."""
_YET: Final = re.compile(r"\b(?:yet|still|ещё|еще|пока)\b|尚", re.IGNORECASE)
"""What does not limit a denial."""
_CLAUSE: Final = re.compile(
    r"[,;:，；、：()（）]|\s[—–-]\s|\s(?:and|but|while|because|so|и|а|но|поэтому|und|aber|et|y)\s"
)
_QUESTION: Final = re.compile(r"[?？]\W*\Z|吗\W*\Z")
_ANSWER: Final = re.compile(r"\W*(?:no|nope|not|never|нет|никогда|nein|non|不|没)(?:\b|[是有])", re.IGNORECASE)
_LEAST: Final = 2 / 3  # of the words that a clause denies: telling so many of them again is telling the clause
_HAN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
"""Pairs of signs, not words: one that is new says nothing."""
_PRONOUNS: Final = tuple("我你您他她它咱")


@dataclass(frozen=True, slots=True)
class _Denied:
    """What a clause denies: its first word of content, the others after it or else before it, and of whom."""

    head: str
    rest: frozenset[str]
    subject: frozenset[str]

    def stands_in(self, words: frozenset[str]) -> bool:
        every = self.rest | {self.head}
        return len(every & words) >= _LEAST * len(every)


def is_turned_round(text: str, said: Iterable[tuple[str, frozenset[str]]]) -> bool:
    """Whether a text says the contrary of what these sentences say, in their words.

    Args:
        text: What is told.
        said: Sentences with their stems.
    """
    told = _content(text)
    families = frozenset(stems(text))
    near = [sentence for sentence, words in said if not families.isdisjoint(words) and not _QUESTION.search(sentence)]
    if not told or not near:
        return False
    if _DENIES.search(text) is None:
        return _HEDGES.search(text) is None and _was_denied(told, near)
    return any(_was_affirmed(denied, near) for denied in _denied(text))


def _was_denied(told: frozenset[str], said: Sequence[str]) -> bool:
    """Whether a clause with these words denied them, and none without a denial says them."""
    found = [
        denied
        for sentence in said
        for denied in _denied(sentence)
        if denied.stands_in(told) and _is_of_the_same(denied, told, _content(sentence))
    ]
    return any(
        not any(denied.stands_in(_content(clause)) for sentence in said for clause in _affirming(sentence))
        for denied in found
    )


def _is_of_the_same(denied: _Denied, told: frozenset[str], words: frozenset[str]) -> bool:
    """Nothing new stands beside a word that alone is denied, nor in the place of whom it was denied of."""
    news = any(word.isalpha() and not _HAN.match(word) for word in told - words)
    return not news or (bool(denied.rest) and (not denied.subject or not denied.subject.isdisjoint(told)))


def _was_affirmed(denied: _Denied, said: Sequence[str]) -> bool:
    """Whether something says plainly what is denied here, and nothing that has to do with it denies anything."""
    is_said = False
    for sentence in said:
        words = _content(sentence)
        if _DENIES.search(sentence) or _HEDGES.search(sentence) or _ANSWER.match(sentence):
            if denied.head in words or denied.rest & words:
                return False
        elif denied.rest and denied.stands_in(words):
            is_said = True
    return is_said


@lru_cache(maxsize=4_096)
def _denied(sentence: str) -> tuple[_Denied, ...]:
    """What each clause of a sentence denies; one with conditions or limits denies nothing plainly."""
    found: list[_Denied] = []
    for clause in _CLAUSE.split(sentence):
        places = list(_DENIES.finditer(clause))
        if len(places) != 1 or _HEDGES.search(_YET.sub("", _DENIES.sub("", clause))):
            continue
        before, after = clause[: places[0].start()], stems(clause[places[0].end() :])
        if after:
            subject = frozenset(word for word in _content(before) - _GENERIC if not word.startswith(_PRONOUNS))
            rest = _families(after) - {beginning(after[0])} - _GENERIC
            found.append(_Denied(beginning(after[0]), rest or subject, subject))
    return tuple(found)


def _affirming(sentence: str) -> list[str]:
    return [clause for clause in _CLAUSE.split(sentence) if not _DENIES.search(clause) and not _HEDGES.search(clause)]


@lru_cache(maxsize=4_096)
def _content(text: str) -> frozenset[str]:
    """The families of a text's words; what denies left out, so that in Chinese the words on both sides meet."""
    return _families(stems(_DENIES.sub("", text))) - _FRAME


def _families(words: Iterable[str]) -> frozenset[str]:
    return frozenset(beginning(word) for word in words)


_FRAME: Final = _families(FRAME_STEMS)
_GENERIC: Final = _families(GENERIC_STEMS)

"""Words that could name a topic: runs of content words without grammar or punctuation between them."""

# ruff: noqa: SIM905 - tables read better as running words

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

from app.core.reading.passages import Passage
from app.core.text.patterns import compiled
from app.core.text.word_lists import GENERIC, NOISE, TECHNOLOGY
from app.core.text.words import GENERIC_STEMS, stem

_NAME: Final = 1.5
_TECHNOLOGY: Final = 1.3
_NOUN: Final = 1.3
_VERB: Final = 0.5
_ACRONYM: Final = 6  # letters
_SHORTEST_WORD: Final = 3  # Latin letters
_NO_WORDS: Final = frozenset({"code", "url", "email", "uuid", "path", "time", "version", "date", "money", "number"})

_REDACTED: Final = compiled(r"\[REDACTED:\w{1,40}\]")
_CJK: Final = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_MARKS: Final = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0dff\u0e31-\u0e4e\u1000-\u109f\u1780-\u17d3"
)
_LETTER: Final = rf"(?:[^\W_{_CJK}]|[{_MARKS}])"
_TOKEN: Final = compiled(rf"[{_CJK}]+|[^\W\d_{_CJK}]{_LETTER}{{0,40}}(?:[’'-]{_LETTER}{{1,40}}){{0,3}}|\S")
_RUN: Final = compiled("[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff々]+|[\u30a1-\u30ffー]+")
"""Chinese and Japanese: signs that carry meaning; hiragana ends a term."""
_LONGEST_RUN: Final = 6  # signs of a term
_SHORTEST_RUN: Final = 2
_HAN_NOISE: Final = frozenset(
    "的了吗呢吧啊你您我他她它们这那哪谁是在有和与或及也都还就才又再很太更最不没别把被给让对为从到向跟比于以但而且如果因所"
    "要想能会可该得着过去来说问请谢好么什怎几多少个些一二三四五六七八九十百千万两每各某其之者将已曾正并则若虽然后前时候上下"
    "里外中间呀哦嗯啦嘛用做看点年月日号元块位次这個們嗎沒還說問請對為給讓從來會應該過後裡間點號塊兩"
)
"""Signs of grammar and number: a Chinese term holds none of them."""

_NOISE: Final = frozenset(
    """في من على إلى عن مع هذا هذه ذلك التي الذي أن إن لا ما هل كان تم كل بعد قبل أو ثم قد أريد نعم يوجد
    में है हैं का की के को से और पर यह वह कि हो था थी नहीं एक कर करना करें दो गया गई हाँ लिए तो भी
    그리고 하지만 다음 오늘 내일 어제 네 아니요 있는 하는 것 수 좀 더 제가 저는 우리""".split()
)
"""Arabic, Hindi and Korean, of which there is no table of function words."""
_KOREAN_VERB: Final = compiled("(?:니다|세요|까요|[아어해]요|예요|니까|합니|하고)$")
_DETERMINERS: Final = frozenset("a an the my our your this that these those their his her its new".split())
_BEFORE_VERBS: Final = frozenset(
    "to i we you they he she it i'll we'll you'll can could should would will let's".split()
)
_VERBAL: Final = compiled(
    r"[a-z]{3,}(?:ed|ly)|[а-яё]+(?:[аеиуыя]ть|ть?ся|[аеиыя]л[аио]?|лись|лась|[ёе]т|[ая]ет|ют|ешь|ишь|ую|ый|ий|ая|ое|ые|ых"
    r"|ого|ому|ыми|йте|ляю|маю|но|[еи]м)"
)
"""English and Russian words that are hardly nouns."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a run."""

    base: str
    written: str
    """In small letters, but for names and abbreviations."""
    factor: float
    """How much it looks like a term."""
    is_common: bool = False
    """Too common to name a topic by itself."""


def runs(passage: Passage, is_barred: Callable[[str], bool]) -> Iterator[list[Word]]:
    """The runs of a sentence, in order; exact values and barred words part them."""
    text = _REDACTED.sub(" | ", passage.text)
    for item in passage.identifiers:
        if item.kind in _NO_WORDS:
            text = text.replace(item.text, " | ")
    names = {word for item in passage.identifiers if item.kind == "name" for word in item.text.split()}
    run: list[Word] = []
    before = ""
    for token in _TOKEN.findall(text):
        is_run = _RUN.search(token) is not None
        word = None if is_run else _word(token, before, names, is_barred)
        before = token.lower()
        if word is not None:
            run.append(word)
            continue
        yield run
        run = []
        if is_run:
            yield from ([Word(term, term, 1.0)] for term in _signs(token))
    yield run


def _word(token: str, before: str, names: Collection[str], is_barred: Callable[[str], bool]) -> Word | None:
    lower = token.lower().replace("’", "'").replace("ё", "е").removesuffix("'s")
    is_short = len(lower) < (_SHORTEST_WORD if lower.isascii() else 2)
    if is_short or lower in NOISE or lower in _NOISE or _KOREAN_VERB.search(lower):
        return None
    if not lower[:1].isalpha() or is_barred(lower):
        return None
    base, is_name = stem(lower), token in names
    written = token.removesuffix("'s").removesuffix("’s")
    keeps = is_name or (token.isupper() and len(token) <= _ACRONYM)
    return Word(
        base,
        written if keeps else lower,
        _factor(lower, before, is_name=is_name),
        is_common=not is_name and (lower in GENERIC or base in GENERIC_STEMS),
    )


def _factor(lower: str, before: str, *, is_name: bool) -> float:
    factor = _TECHNOLOGY if lower in TECHNOLOGY else 1.0
    if is_name:
        return factor * _NAME
    if _VERBAL.fullmatch(lower):
        factor *= _VERB
    if before in _DETERMINERS:
        factor *= _NOUN
    return factor * _VERB if before in _BEFORE_VERBS else factor


def _signs(token: str) -> Iterator[str]:
    """What stands between signs of grammar; of a long run its pieces."""
    for found in _RUN.findall(token):
        piece = ""
        for sign in [*found, "的"]:
            if sign not in _HAN_NOISE:
                piece += sign
                continue
            if len(piece) >= _SHORTEST_RUN:
                size = min(len(piece), _LONGEST_RUN)
                yield from (piece[place : place + size] for place in range(0, len(piece) - 1, size))
            piece = ""

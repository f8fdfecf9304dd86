"""Which language a text is in, by script and function words; silent when in doubt."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Final

from app.core.text.languages.loading import languages
from app.core.text.memo import FIGURE_GROWTH, memoized
from app.core.text.patterns import compiled
from app.core.text.scripts import SCRIPTS
from app.core.text.sentences import sentences
from app.core.text.speakers import without_speakers
from app.core.text.word_lists import STOPWORDS

_RUNS: Final = compiled("|".join(f"(?P<{name}>[{signs}]+)" for name, signs in SCRIPTS.items()))
_LATIN: Final = compiled(f"[{SCRIPTS['latin']}]+")
_NOT_LATIN: Final = compiled(f"[{''.join(signs for name, signs in SCRIPTS.items() if name != 'latin')}]")
_NOT_ASCII_LETTER: Final = compiled(f"[{''.join(SCRIPTS.values()).replace('A-Za-z', '')}]")
_ONLY_LETTERS: Final = bytes(code if chr(code).isalpha() else ord(" ") for code in range(128)).ljust(256)
"""The replacement of each ASCII byte where only letters are wanted."""
_BY_SCRIPT: Final[Mapping[str, tuple[str, ...]]] = {
    script: tuple(language.code for language in languages() if language.script == script) for script in SCRIPTS
}
_SIGNS_PER_WORD: Final[Mapping[str, float]] = {"han": 1.6, "kana": 2.5, "thai": 4.0, "hangul": 2.5}
_LETTERS_PER_WORD: Final = 5.0
"""How many characters carry as much as one word, for scripts not in ``_SIGNS_PER_WORD``: for comparing scripts."""

_LIKELIEST: Final[Mapping[str, str]] = {"cyrillic": "ru", "han": "zh"}
"""The likeliest language of each script that several languages share, but English does not."""
_COUNTED: Final = ("numbers", "scales", "days")
_MIN_WORD_LENGTH: Final = 3


def _counting_words() -> dict[str, frozenset[str]]:
    """Words of counting by language, only those that no other known language has."""
    every: dict[str, frozenset[str]] = {
        one.code: frozenset(word for key in _COUNTED for _, words in getattr(one.values, key) for word in words)
        for one in languages()
    }
    shared = Counter(word for words in (*every.values(), *STOPWORDS.values()) for word in words)
    ambiguous = frozenset(word for one in languages() for word in one.values.homographs)
    return {
        code: frozenset(
            word for word in words - ambiguous if shared[word] == 1 and len(word) >= _MIN_WORD_LENGTH and word.isalpha()
        )
        for code, words in every.items()
    }


_TELLING: Final[Mapping[str, frozenset[str]]] = {
    code: STOPWORDS[code] | words for code, words in _counting_words().items() if code in STOPWORDS
}
"""Words by which a language is recognised: function words and words of counting. Talk about prices has few of the
former."""
_SAYING: Final[Mapping[str, tuple[str, ...]]] = {
    word: tuple(language for language, known in _TELLING.items() if word in known)
    for word in frozenset[str]().union(*_TELLING.values())
}
"""The languages that have each of these words."""
_UKRAINIAN_LETTERS: Final = frozenset("іїєґ")
_RUSSIAN_LETTERS: Final = frozenset("ыэъё")
_PERSIAN_LETTERS: Final = frozenset("پچژگ")
_CHINESE_SIGNS: Final = frozenset(
    "的了吗呢吧啊你您她它很这那们哪谁给让把还没说为对时个过进动电车东门问间开关发见现题应样经话语请谢买卖书长张边远连运"
    "钱银铁难预订议论证设计划团队员单价这們這說嗎沒個對麼誰給讓還"
)
"""Characters that Chinese can hardly do without and Japanese does not write."""

_SPECIAL: Final = r"\s`@_/\\=<>{}("
_PLAIN: Final = rf"(?<!\S)((?:(?=\S)[^{_SPECIAL}a-z]*+[^{_SPECIAL}A-Z]*+(?:\s++|\Z))++)"
"""Plain prose, which is skipped at once: words without these signs, and without a capital after a small letter."""
_NOT_PROSE: Final = compiled(
    rf"{_PLAIN}|"
    r"```.{0,100000}?(?:```|\Z)|`[^`\n]{1,200}`|https?://\S{1,2000}|\S{1,64}@\S{1,200}|\w{0,60}[_/\\=<>{}]\S{0,200}"
    r"|\b[a-z]{1,30}[A-Z]\w{0,60}|\b\w{1,60}\(\S{0,200}",
    re.DOTALL,
)
_CODE_LINE: Final = compiled(
    r"^[ \t]*(?:(?:async|def|class|fn|func|function|if|elif|for|while|with|switch)\b[^\n]{0,200}[:{]"
    r"|(?:return|import|from|const|let|var|public|private|package|using)\b[^\n]{0,200}[;)\]}\"']"
    r"|(?:return|import|else|try)\b(?: [\w.]{1,60})?:?|from [\w.]{1,60} import [\w., ]{1,100}"
    r"|[\w.\[\]\"']{1,80} ?[-+*/|&:]?= ?[^\n]{1,200}|[^\n]{0,200}[;{}]|[^\n]{0,120}\w\([^\n]{0,160}\)[,;:]?)[ \t]*$",
    re.MULTILINE,
)
"""A line of code outside of a fence."""

_DOMINANT: Final = 0.6  # the least share of a text's words in its dominant script
_PERSIAN_SHARE: Final = 0.01  # share of Persian letters; Arabic has fewer, in foreign names
_KANA_SHARE: Final = 0.1  # share of kana; Chinese has less, in quoted words, but Japanese always has it
_MINIMUM_WORDS: Final = 3
_MINIMUM_HITS: Final = 2  # the fewest function words of one language
_HIT_SHARE: Final = 0.12  # a text with a smaller share of function words is a list of names, or code
_MARGIN: Final = 1.35  # how many times as many hits as the next language are needed
_SUBSTANTIAL: Final = 0.25  # a language with this share of a conversation belongs to it
_FOREIGN: Final = 0.5  # share of a candidate in languages that do not belong: even half a translation is too much
_ABSENT: Final = 0.05  # a smaller share of a text in the conversation's script can only be names
_TERMS: Final = 0.45  # share of Latin letters that may be names and terms, which every language writes so
_ENOUGH: Final = 8  # words; fewer may be only names and terms
_SAMPLE: Final = 60_000  # characters are plenty to know a language by


@memoized(FIGURE_GROWTH)
def detect(text: str) -> str | None:
    """The dominant language (ISO 639-1), or ``None`` for names, code, numbers, an even mixture or too little text."""
    prose = _prose(text)
    weights, runs = _weigh(prose)
    total = sum(weights.values())
    if total < _MINIMUM_WORDS:
        return None
    east_asian = weights["kana"] + weights["han"]
    if east_asian >= _DOMINANT * total:
        return _chinese_or_japanese(weights, runs)
    script, weight = max(weights.items(), key=lambda item: item[1])
    return _by_script(script, runs) if weight >= _DOMINANT * total else None


def likeliest(text: str) -> str | None:
    """The language of a text; if its few words show only their script, the likeliest language of that script."""
    return detect(text) or _LIKELIEST.get(_dominant_script(text)[0] or "")


def language_of_locale(locale: str) -> str:
    """The language of a locale, such as ``pt`` for ``pt-BR``; English if there is none."""
    return locale.replace("_", "-").partition("-")[0].lower() or "en"


def differs(candidate: str, span: str) -> bool:
    """Whether the candidate is plainly in another language than the span.

    It is, if most of the candidate is in languages that each have less than a quarter of the span. It also is, if its
    language is not known (key words, a list) and it has hardly a character of the span's script.
    """
    spoken = detect(span)
    written = detect(candidate)
    if spoken is None or spoken == written:
        return False
    at_home = {language for language, share in shares(span).items() if share >= _SUBSTANTIAL} | {spoken}
    if written is not None:
        return written not in at_home
    foreign = {language: share for language, share in shares(candidate).items() if language not in at_home}
    return sum(foreign.values()) > _FOREIGN or _is_in_another_script(candidate, span)


def agrees(text: str, source: str, span: str) -> bool:
    """Whether a text is plainly in its source's language: the same known one, or a script that the span is not in.

    The script decides if a text is too short for its language to be known.
    """
    written = detect(text)
    if written is not None:
        return written == detect(source)
    (script, _), (home, _) = _dominant_script(source), _dominant_script(span)
    return script is not None and script != home and script == _dominant_script(text)[0]


def _is_in_another_script(candidate: str, span: str) -> bool:
    (spoken, home), (written, _) = _dominant_script(span), _dominant_script(candidate)
    if spoken is None or written is None or spoken == written:
        return False
    weights, _ = _weigh(_prose(candidate))
    total = sum(weights.values())
    most = _TERMS if spoken == "latin" else _ABSENT
    return home >= _DOMINANT and total >= _ENOUGH and _of_script(weights, spoken) < most * total


def _dominant_script(text: str) -> tuple[str | None, float]:
    weights, _ = _weigh(_prose(text))
    total = sum(weights.values())
    if not total:
        return None, 0.0
    script = max(weights, key=lambda name: _of_script(weights, name))
    return script, _of_script(weights, script) / total


_EAST_ASIAN: Final = frozenset({"han", "kana"})


def _of_script(weights: Mapping[str, float], script: str) -> float:
    return sum(weights[name] for name in (_EAST_ASIAN if script in _EAST_ASIAN else {script}))


def shares(text: str) -> dict[str, float]:
    """The share of each language among the sentences whose language is known."""
    weights: defaultdict[str, float] = defaultdict(float)
    for sentence in sentences(text[:_SAMPLE]):
        language = detect(sentence)
        if language is not None:
            weights[language] += sum(_weigh(sentence)[0].values())
    total = sum(weights.values())
    return {language: weight / total for language, weight in weights.items()}


def _prose(text: str) -> str:
    sample = text if len(text) <= _SAMPLE else text[: _SAMPLE // 2] + "\n" + text[-_SAMPLE // 2 :]
    return _NOT_PROSE.sub(r"\1 ", without_speakers(_CODE_LINE.sub("", sample)))


def _weigh(prose: str) -> tuple[dict[str, float], dict[str, list[str]]]:
    """How many words' worth of characters each script has, and its runs."""
    runs: defaultdict[str, list[str]] = defaultdict(list)
    if prose.isascii() or not _NOT_ASCII_LETTER.search(prose):
        # Bytes are translated and split in a tenth of the time that a pattern takes.
        runs["latin"] = prose.encode("ascii", "replace").translate(_ONLY_LETTERS).decode().split()
    elif _NOT_LATIN.search(prose):
        for match in _RUNS.finditer(prose):
            runs[str(match.lastgroup)].append(match.group())
    else:
        runs["latin"] = _LATIN.findall(prose)
    weights = dict.fromkeys(SCRIPTS, 0.0)
    for script, found in runs.items():
        weights[script] = sum(map(len, found)) / _SIGNS_PER_WORD.get(script, _LETTERS_PER_WORD)
    return weights, runs


def _chinese_or_japanese(weights: Mapping[str, float], runs: Mapping[str, list[str]]) -> str | None:
    if weights["kana"] >= _KANA_SHARE * (weights["kana"] + weights["han"]):
        return "ja"
    # A few nouns in characters that both languages share could be either.
    telling = sum(sign in _CHINESE_SIGNS for run in runs["han"] for sign in run)
    return "zh" if telling >= _MINIMUM_HITS or (telling and not weights["kana"]) else None


def _by_script(script: str, runs: Mapping[str, list[str]]) -> str | None:
    found, spoken = runs[script], _BY_SCRIPT[script]
    if len(spoken) == 1:
        return spoken[0]
    if script == "arabic":
        letters = Counter("".join(found))
        persian = sum(letters[letter] for letter in _PERSIAN_LETTERS)
        return "fa" if persian >= max(_MINIMUM_HITS, _PERSIAN_SHARE * letters.total()) else "ar"
    if script == "cyrillic":
        return _cyrillic(found)
    return _by_function_words(found, spoken)


def _cyrillic(found: list[str]) -> str | None:
    letters = Counter("".join(found).lower())
    ukrainian = sum(letters[letter] for letter in _UKRAINIAN_LETTERS)
    russian = sum(letters[letter] for letter in _RUSSIAN_LETTERS)
    if sum(word.islower() for word in found) < _MINIMUM_WORDS:
        return None
    if ukrainian >= _MINIMUM_HITS and ukrainian > 2 * russian:
        return "uk"
    return "ru" if russian >= _MINIMUM_HITS > ukrainian else _by_function_words(found, _BY_SCRIPT["cyrillic"])


def _by_function_words(found: list[str], spoken: tuple[str, ...]) -> str | None:
    words: defaultdict[str, int] = defaultdict(int)  # a Counter is slower with few words
    hit: defaultdict[str, int] = defaultdict(int)
    for written, count in Counter(found).items():
        if len(written) == 1 or not written.isupper():
            word = written.lower()
            words[word] += count
            for language in _SAYING.get(word, ()):
                hit[language] += count
    total = sum(words.values())
    hits = sorted(((hit.get(language, 0), language) for language in spoken if language in STOPWORDS), reverse=True)
    (best, language), (second, _) = [*hits, (0, ""), (0, "")][:2]
    if not best:
        return None
    sure = best >= max(_MINIMUM_HITS, _HIT_SHARE * total) and best >= _MARGIN * second
    sure = sure and sum(len(word) > 1 for word in words if word in _TELLING[language]) >= _MINIMUM_HITS
    return language if total >= _MINIMUM_WORDS and sure else None

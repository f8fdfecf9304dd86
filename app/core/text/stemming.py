"""Word stems by Snowball for languages without stems in ``words``, and the detection of these languages.

A word alone does not show its language: "die" is German or English. So a caller that compares texts first decides
which language they are in, and then asks for the stems of all of them in that language. ``None`` means the stems of
``words``, which are used for English, Russian and languages that Snowball does not know.

Stored keys are made of these stems too (``app.storage.repositories.term_keys``). If a release of Snowball gives other
stems, or a language is added, ``throughline index-words`` makes the index again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, repeat
from typing import Final

from Stemmer import Stemmer

from app.core.text.language import detect
from app.core.text.memo import MAX_WORD_LENGTH, memoized, word_memo
from app.core.text.patterns import compiled
from app.core.text.plain_letters import in_plain_letters
from app.core.text.word_lists import STOPWORDS
from app.core.text.words import is_russian, stem, stems, words

ALGORITHMS: Final[Mapping[str, str]] = {
    "ar": "arabic",
    "cs": "czech",
    "de": "german",
    "el": "greek",
    "es": "spanish",
    "fr": "french",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "nl": "dutch",
    "pl": "polish",
    "pt": "portuguese",
    "sv": "swedish",
    "tr": "turkish",
}
"""The names of Snowball's algorithms by ISO 639-1 code, for languages that ``words`` can split into words."""

_FIRST: Final = 400  # characters of a text by which its language is guessed
_SAMPLED: Final = 24  # texts of a talk that are sampled
_SAMPLE: Final = 80  # characters of each sampled text
_MIN_FUNCTION_WORDS: Final = 2  # the fewest function words of a talk's language
_SHARE: Final = 0.1  # the least share of these function words among all words
_MARGIN: Final = 1.35  # how many times as many as of the next language there must be
_OWN_SCRIPT: Final = compiled(r"[\u0370-\u03ff\u0530-\u058f\u0620-\u064a]{2}")
"""Two letters of Greek, Armenian or Arabic."""


def _languages_of_words() -> dict[str, tuple[str, ...]]:
    found: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    for language, listed in STOPWORDS.items():
        for word in listed:
            found[word] += (language,)
    return dict(found)


_LANGUAGES: Final = _languages_of_words()
"""The languages that have a function word, by the word."""
_OTHERS: Final = frozenset().union(*(STOPWORDS.get(code, ()) for code in ALGORITHMS))
_ENGLISH, _ELSEWHERE = STOPWORDS["en"] - _OTHERS, _OTHERS - STOPWORDS["en"]
"""The function words that only English has, and those that English does not have."""


def stemming_language(language: str | None) -> str | None:
    """The language, if it is one of ``ALGORITHMS``."""
    return language if language in ALGORITHMS else None


def stem_in(word: str, language: str | None) -> str:
    """The stem of a lower-case word in a language."""
    return stem(word) if language is None else _stem_in_language(f"{language} {word}")


@word_memo
def _stem_in_language(language_and_word: str) -> str:
    language, _, word = language_and_word.partition(" ")
    if len(word) > MAX_WORD_LENGTH or is_russian(word) or not word[:1].isalpha():
        return stem(word)
    folded: str = Stemmer(ALGORITHMS[language], 0).stemWord(word)  # a new one: threads may not share a stemmer
    return in_plain_letters(folded or word)


def stems_in(text: str, language: str | None) -> tuple[str, ...]:
    """The stems of a text's words in a language."""
    return stems(text) if language is None else _stems_in(text, language)


@memoized()
def _stems_in(text: str, language: str) -> tuple[str, ...]:
    return tuple(stem_in(word, language) for word in words(text))


def guessed_language(text: str) -> str | None:
    """The language of ``ALGORITHMS`` that a text is most likely in, judged by its beginning.

    It guesses from a word or two, where ``detect`` gives no answer. Use it only where a wrong guess does no harm.
    """
    text = text[:_FIRST]
    if not text.isascii() and _OWN_SCRIPT.search(text):
        return stemming_language(detect(text))
    text_words = set(text.lower().split())
    return (
        None
        if _is_surely_english(text_words)
        else stemming_language(_most_frequent(_function_words_by_language(text_words), margin=1.0))
    )


def language_of(texts: Sequence[str]) -> str | None:
    """The language of most of the texts, judged by a sample of them; ``None`` in doubt."""
    step = max(len(texts) // _SAMPLED, 1)
    sample = "\n".join(text[:_SAMPLE] for text in texts[::step])
    if not sample.isascii() and _OWN_SCRIPT.search(sample):
        return detect(sample)
    text_words = sample.lower().split()
    if _is_surely_english(set(text_words)):
        return "en"
    found = _function_words_by_language(text_words)
    is_certain = max(found.values(), default=0) >= max(_MIN_FUNCTION_WORDS, _SHARE * len(text_words))
    return _most_frequent(found, margin=_MARGIN) if is_certain else None


def stem_language(texts: Sequence[str], otherwise: str | None = None) -> str | None:
    """The language whose stems are used to compare texts: that of most of them; in doubt ``otherwise``."""
    return stemming_language(language_of(texts) or otherwise)


def _is_surely_english(text_words: Collection[str]) -> bool:
    # This spares most texts the count for all languages.
    return len(_ELSEWHERE.intersection(text_words)) < len(_ENGLISH.intersection(text_words))


def _function_words_by_language(text_words: Collection[str]) -> Counter[str]:
    return Counter(chain.from_iterable(map(_LANGUAGES.get, text_words, repeat(()))))


def _most_frequent(found: Counter[str], *, margin: float) -> str | None:
    (language, best), (_, second) = [*found.most_common(2), ("", 0), ("", 0)][:2]
    return language if best > margin * second else None

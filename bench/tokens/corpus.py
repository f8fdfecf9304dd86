"""The texts that prices are fitted on and the error is measured on, in pages of about a message's length."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from bench.tokens.sources import EMOJI, SOURCES, Source, Split

_PAGE: Final = 1_200  # characters
_MIN_PAGE_LENGTH: Final = 120
_MAX_OTHER_PAGES: Final = 500  # pages of all languages that are not reported one by one
_MAX_FILE_LENGTH: Final = 12_000  # characters taken from one file, so that a source is many files

OTHER: Final = "other languages"
"""Languages of the fit that are not reported one by one."""

LANGUAGES: Final = {
    "Russian": "ru rus russian ru_RU",
    "Chinese": "zh zh_Hans zh_CN cmn_hans_beijing chinese sentences",
    "Chinese (traditional)": "zh_Hant zh_TW traditionalchinese cmn_hant",
    "Japanese": "ja jpn japanese",
    "Korean": "ko kor korean ko_KR",
    "Arabic": "ar arb ar_DZ",
    "Persian": "fa pes_1 persian",
    "Urdu": "ur urd urdu",
    "Hebrew": "he heb hebrew he_IL",
    "Hindi": "hi hin hindi",
    "Bengali": "bn ben bengali",
    "Tamil": "ta tam tamil",
    "Thai": "th tha thai",
    "Greek": "el ell_monotonic",
    "Georgian": "ka kat",
    "Armenian": "hy hye",
    "Ukrainian": "uk ukr ukrainian",
    "Bulgarian": "bg bul",
    "Serbian (Cyrillic)": "sr srp_cyrl",
    "Kazakh": "kk kaz",
    "German": "de deu_1996 german",
    "French": "fr fra french",
    "Spanish": "es spa spanish es_AR es_MX es_CO",
    "Italian": "it ita italian",
    "Portuguese": "pt por_BR por_PT portuguese pt_BR pt_PT",
    "Dutch": "nl nld dutch",
    "Polish": "pl pol",
    "Czech": "cs ces",
    "Slovak": "sk slk",
    "Slovene": "sl slv",
    "Croatian": "hr hrv bs bos_latn sr_Latn srp_latn",
    "Swedish": "sv swe swedish",
    "Danish": "da dan",
    "Norwegian": "nb nob nn no",
    "Finnish": "fi fin",
    "Estonian": "et est",
    "Hungarian": "hu hun",
    "Romanian": "ro ron_2006",
    "Catalan": "ca cat",
    "Lithuanian": "lt lit",
    "Latvian": "lv lav",
    "Turkish": "tr tur turkish",
    "Azerbaijani": "az azj_latn",
    "Vietnamese": "vi vie",
    "Indonesian": "id id_ID ind indonesian ms",
    "Tagalog": "tl tgl fil",
}
"""The languages that are reported, with their codes in the packages."""

_BY_CODE: Final = {code: name for name, codes in LANGUAGES.items() for code in codes.split()}

_POPULAR: Final = (
    "😂❤️🤣👍😭🙏😘🥰😍😊🎉😁💕🥺😅🔥☺️🤦♥️🤷🙄😆🤗😉🎂🤔👏🙂😳🥳😎👌💜😔💪✨"
    "💖👀😋😏😢👉💗😩💯🌹💞🎈💙😃😡💐😜🙈🤞😄🤤🙌🤪❣️😀💋💀👇💔😌💓🤩🙃😬😱😴"
    "🤭😐🌞😒😇🌸😈🎶✌️🎊🥵😞💚☀️🖤💰😚👑🎁💥🙋☹️😑🥴👈💩✅🚀⚠️📅"
)
"""The emoji most used in chats, the most frequent first."""


@dataclass(frozen=True, slots=True)
class Page:
    """A text and its true number of tokens."""

    split: Split
    kind: str
    source: str
    text: str
    tokens: int = 0


def pages(cache: Path) -> list[Page]:
    """Every page of every source; missing packages are fetched. The pages are always the same."""
    made: list[Page] = []
    for source in SOURCES:
        made += _of_source(source, cache)
    return [*made, *_with_emoji(made, cache), *_capitals(made)]


def _capitals(made: Sequence[Page]) -> Iterator[Page]:
    """Pages in capitals, as if shouted: the first sentences of some pages."""
    for page in made[::3]:
        if page.kind in {"English chat", "English prose", "Russian", "Ukrainian"}:
            yield Page(page.split, "capitals", page.source, page.text[:300].upper())


def _of_source(source: Source, cache: Path) -> Iterator[Page]:
    by_kind: dict[str, list[str]] = {}
    for path, text in source.package.texts(cache, source.pattern):
        passages = list(source.reader(text))
        kind = source.kind or _language(source, path)
        if kind and not _is_foreign(kind, passages):
            by_kind.setdefault(kind, []).extend(passages if source.running else _cut(passages[0][:_MAX_FILE_LENGTH]))
    for kind, passages in by_kind.items():
        made = list(_joined(passages)) if source.running else passages
        most = _MAX_OTHER_PAGES if kind == OTHER else source.most
        for text in _spread([page for page in made if len(page) >= _MIN_PAGE_LENGTH], most):
            yield Page(source.split, kind, source.package.name, text)


def _language(source: Source, path: str) -> str:
    found = re.search(source.pattern, path)
    code = found["lang"] if found else ""
    if code in {"en", "eng", "en_GB", "en_AU", "english"}:
        return ""
    return _BY_CODE.get(code) or (OTHER if source.split == "fit" else "")


def _is_foreign(kind: str, passages: Sequence[str]) -> bool:
    """Whether a file is not in the script that it should be in: catalogues have much untranslated English."""
    if kind not in {"Russian", "Chinese", "Japanese", "Arabic", "Korean", "Hebrew"}:
        return False
    sample = "".join(passages)[:4_000]
    return len(re.findall("[A-Za-z]", sample)) > 0.6 * len(sample)


def _cut(text: str) -> Iterator[str]:
    """Pages of a file, cut at line ends."""
    page: list[str] = []
    size = 0
    for line in text.splitlines(keepends=True):
        page.append(line)
        size += len(line)
        if size >= _PAGE:
            yield "".join(page)
            page, size = [], 0
    yield "".join(page)


def _joined(passages: Iterable[str]) -> Iterator[str]:
    """Pages of running text; dense scripts fill a page with fewer characters."""
    page: list[str] = []
    size = 0
    for passage in (piece for whole in passages for piece in _cut(whole)):
        page.append(passage)
        size += len(passage)
        if size >= _PAGE or (size >= _PAGE // 3 and len(passage.encode()) > 2.5 * len(passage)):
            yield _glue(page)
            page, size = [], 0
    yield _glue(page)


def _glue(passages: Sequence[str]) -> str:
    """The passages as paragraphs or as one run of sentences, in turn."""
    return ("\n" if sum(map(len, passages)) % 2 else " ").join(passages)


def _spread(texts: Sequence[str], most: int) -> list[str]:
    """At most so many of the texts, evenly spread."""
    return [texts[number * len(texts) // most] for number in range(most)] if len(texts) > most else list(texts)


def _with_emoji(made: Sequence[Page], cache: Path) -> Iterator[Page]:
    """Chat lines with emoji after them: popular ones three times in four, otherwise any other of the standard."""
    everything = _all_emoji(cache)
    popular = re.findall(".\ufe0f?", _POPULAR)
    for split in ("fit", "held"):
        chosen = random.Random(split)
        chats = [page for page in made if page.split == split and page.kind in {"English chat", "Russian", "Spanish"}]
        for page in chats:
            lines = [line.strip() for line in re.split(r"(?<=[.!?])\s+", page.text) if line.strip()]
            lines_with_emoji = [line + _behind(line, popular, everything, chosen) for line in lines]
            yield Page(split, "emoji-rich chat", page.source, " ".join(lines_with_emoji))


def _behind(line: str, popular: Sequence[str], everything: Sequence[str], chosen: random.Random) -> str:
    count = chosen.choice([0, 1, 1, 1, 2, 3])
    some = [popular[min(int(chosen.expovariate(0.04)), len(popular) - 1)] for _ in range(count)]
    if count and chosen.random() < 0.25:
        some = [chosen.choice(everything)] * count
    elif count and chosen.random() < 0.4:
        some = [some[0]] * count
    return ("" if chosen.random() < 0.2 else " ") + "".join(some) if count and line else ""


@lru_cache(maxsize=1)
def _all_emoji(cache: Path) -> tuple[str, ...]:
    _, text = next(EMOJI.texts(cache, r"annotations/en/annotations\.json$"))
    named = json.loads(text)["annotations"]["annotations"]
    return tuple(name for name in named if ord(name[0]) >= 0x1F000 or "\ufe0f" in name)

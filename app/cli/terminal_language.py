"""The language of the command line: the terminal's, with the catalogues that all other messages have."""

from __future__ import annotations

import os
from typing import Final

from app.core.text.localization.catalogue import FALLBACK, Catalogue, Number, catalogue_of

VARIABLES: Final = ("LC_ALL", "LC_MESSAGES", "LANG")
"""Variables of the environment; the first one that is set decides, as POSIX prescribes."""


def terminal_catalogue() -> Catalogue:
    """The catalogue for the language of the environment (``ru_RU.UTF-8``); English for ``C`` and unknown languages."""
    locale = next((value for name in VARIABLES if (value := os.environ.get(name))), "")
    return catalogue_of(locale.partition(".")[0].partition("@")[0])


def own_language() -> str | None:
    """The language of the environment, if a service would not use it by itself."""
    language = terminal_catalogue().language
    return None if language == FALLBACK else language


def text_of(key: str, **given: str | Number) -> str:
    """A text of the command line, by its key (``complaint.no_conversation``)."""
    return terminal_catalogue().text(f"cli.{key}", **given)

"""Which names of technology can replace each other: ``rivals`` and ``serves_as`` in the files of ``languages``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from app.core.text.languages.loading import languages


def _by_kind(key: Literal["rivals", "serves_as"]) -> dict[str, frozenset[str]]:
    kinds_and_words = [table for language in languages() for table in getattr(language, key).items()]
    return {
        kind: frozenset(word for other, words in kinds_and_words if other == kind for word in words)
        for kind in sorted({kind for kind, _ in kinds_and_words})
    }


RIVALS: Final[Mapping[str, frozenset[str]]] = _by_kind("rivals")
"""By kind, things of which only one is chosen."""
SERVING: Final[Mapping[str, frozenset[str]]] = {
    kind: names | _by_kind("serves_as").get(kind, frozenset()) for kind, names in RIVALS.items()
}
"""By kind, the same things, and those that are sometimes chosen for it though they are mostly of another kind."""

"""Which names of technology can take each other's place: ``rivals`` and ``serves_as`` in the files of ``languages``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from app.core.text.languages.loading import languages


def _by_kind(key: Literal["rivals", "serves_as"]) -> dict[str, frozenset[str]]:
    said = [table for language in languages() for table in getattr(language, key).items()]
    return {
        kind: frozenset(word for other, words in said if other == kind for word in words)
        for kind in sorted({kind for kind, _ in said})
    }


RIVALS: Final[Mapping[str, frozenset[str]]] = _by_kind("rivals")
"""By kind: things of which one is chosen."""
SERVING: Final[Mapping[str, frozenset[str]]] = {
    kind: names | _by_kind("serves_as").get(kind, frozenset()) for kind, names in RIVALS.items()
}
"""By kind: the same, with what is chosen for it though it is mostly something else."""

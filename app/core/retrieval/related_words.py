"""Words that are related by general knowledge: a question about "pets" is answered by "dog".

They are listed under ``related`` in the files of ``languages``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from app.core.text.languages.loading import languages
from app.core.text.words import GENERIC_STEMS, stems

Related = Mapping[str, frozenset[str]]


def stems_of_kind(stem: str) -> frozenset[str]:
    """The stems of things that a stem names the kind of: "dog" for "pets"."""
    return _kinds_by_stem().get(stem, frozenset())


def forms_of(stem: str) -> frozenset[str]:
    """Stems of other forms of a word, and of words that mean the same."""
    return _forms_by_stem().get(stem, frozenset())


def is_known(stem: str) -> bool:
    """Whether a stem belongs to a word in the tables, or to a word that is common in any conversation."""
    return stem in _kinds_by_stem() or stem in _forms_by_stem() or stem in GENERIC_STEMS


@cache
def _kinds_by_stem() -> Related:
    return _related_by_word((asking, {*asking, *kind}) for asking, kind in _asking_words_and_kinds())


@cache
def _forms_by_stem() -> Related:
    texts = (one.related.forms for one in languages())
    groups = (frozenset(stems(group)) for text in texts if text for group in text.split("/"))
    return _related_by_word((group, group) for group in groups)


def _asking_words_and_kinds() -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    for language in languages():
        asking, *others = f"{language.related.kinds.strip()}\n".split(":")
        for other in others:
            kind, _, following = other.rpartition("\n")
            yield frozenset(stems(asking)), frozenset(stems(kind))
            asking = following


def _related_by_word(pairs: Iterable[tuple[Iterable[str], Iterable[str]]]) -> Related:
    found: dict[str, set[str]] = {}
    for words, others in pairs:
        for word in words:
            found.setdefault(word, set()).update(others)
    return {word: frozenset(others - {word}) for word, others in found.items()}


def build_tables() -> None:
    """Build every table now, so that nobody waits for it later."""
    for build in (_kinds_by_stem, _forms_by_stem):
        build()

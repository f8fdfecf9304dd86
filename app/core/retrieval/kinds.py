"""Related words, by general knowledge: "pets" is answered by "dog". See ``related`` in the files of ``languages``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from app.core.text.languages.loading import languages
from app.core.text.words import stems

Related = Mapping[str, frozenset[str]]


def of_kind(stem: str, *, wide: bool = False) -> frozenset[str]:
    """Stems of the kind that a stem asks for."""
    return _of_kind(wide).get(stem, frozenset())


def akin(stem: str, *, wide: bool = False) -> frozenset[str]:
    """Stems of the same kind as a stem, and those that ask for it."""
    return _akin(wide).get(stem, frozenset())


def forms_of(stem: str, *, wide: bool = False) -> frozenset[str]:
    """Stems of other forms of a word, and of words that mean the same."""
    return _forms(wide).get(stem, frozenset())


@cache
def _of_kind(wide: bool) -> Related:  # noqa: FBT001 - a key of the cache
    return _related((asking, {*asking, *kind}) for asking, kind in _kinds(wide=wide))


@cache
def _akin(wide: bool) -> Related:  # noqa: FBT001
    return _related((kind, {*asking, *kind}) for asking, kind in _kinds(wide=wide))


@cache
def _forms(wide: bool) -> Related:  # noqa: FBT001
    groups = (frozenset(stems(group)) for text in _texts("forms", wide=wide) for group in text.split("/"))
    return _related((group, group) for group in groups)


def _kinds(*, wide: bool) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    for text in _texts("kinds", wide=wide):
        asking, *others = text.split(":")
        for other in others[:-1]:
            kind, _, following = other.rpartition("\n")
            yield frozenset(stems(asking)), frozenset(stems(kind))
            asking = following
        yield frozenset(stems(asking)), frozenset(stems(others[-1]))


def _texts(key: str, *, wide: bool) -> Iterator[str]:
    """What each language has under a key."""
    name = f"wide_{key}" if wide else key
    yield from (text.strip() for language in languages() if (text := getattr(language.related, name)))


def _related(given: Iterable[tuple[Iterable[str], Iterable[str]]]) -> Related:
    found: dict[str, set[str]] = {}
    for words, others in given:
        for word in words:
            found.setdefault(word, set()).update(others)
    return {word: frozenset(others - {word}) for word, others in found.items()}


def tables_ready() -> None:
    """Build every table now, so that nobody waits for it later."""
    for wide in (False, True):
        for build in (_of_kind, _akin, _forms):
            build(wide)

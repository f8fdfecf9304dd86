"""Reads the files of languages once, and says in plain words what is wrong with one.

Reading such files, which are a part of the program like its modules, is the only I/O of the core: once they are read,
nothing depends on a disk.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

from app.core.text.languages.kinds import CHECKED
from app.core.text.languages.language_file import Language

_SHIPPED: Final = files(__package__)


class LanguageError(ValueError):
    """A file of a language is wrong. The message says where, and what may stand there."""


@cache
def languages() -> tuple[Language, ...]:
    """All languages, sorted by code.

    Raises:
        LanguageError: A file is wrong.
    """
    return tuple(sorted(read_languages(_SHIPPED, check=False), key=lambda one: one.code))


def read_languages(folder: Traversable, *, check: bool = True) -> tuple[Language, ...]:
    """Read every ``.toml`` file of a folder, in the order of their names.

    With ``check``, each of their patterns is tried, too.

    Raises:
        LanguageError: A file is wrong.
    """
    found = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda entry: entry.name)
    return tuple(read_language(entry.name, entry.read_text("utf-8"), check=check) for entry in found)


def read_language(name: str, text: str, *, check: bool = True) -> Language:
    """Read the text of one file; ``name`` is the file's, ``en.toml`` for English.

    With ``check``, each of its patterns is tried, too.

    Raises:
        LanguageError: The text is not TOML, or something in it is wrong; the message has a line for each mistake.
    """
    try:
        language = Language.model_validate(tomllib.loads(text), context=CHECKED if check else None)
    except tomllib.TOMLDecodeError as error:
        raise LanguageError(f"{name}: this is no TOML: {error}") from None
    except ValidationError as error:
        raise LanguageError("\n".join(f"{name}: {mistake}" for mistake in _mistakes(error))) from None
    if name != f"{language.code}.toml":
        raise LanguageError(f"{name}: code: a file of {language.code!r} has to be named {language.code}.toml")
    return language


def _mistakes(error: ValidationError) -> Iterator[str]:
    for one in error.errors():
        *_, key = path = [str(part) for part in one["loc"] if not str(part).startswith("function-")]
        where = ".".join(path)
        if one["type"] == "extra_forbidden":
            yield f"{where}: there is no such key; {_suggestion(key, _keys_of_section(path[:-1]))}"
        elif one["type"] == "missing":
            yield f"{where}: this key is needed"
        elif one["type"] == "tuple_type":
            yield f"{where}: give one text (of rows, a line for each) or a list of texts, not a table"
        else:
            yield f"{where}: {one['msg'].removeprefix('Value error, ')}"


def _suggestion(key: str, known: list[str]) -> str:
    near = get_close_matches(key, known, n=1)
    return f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"


def _keys_of_section(path: Iterable[str]) -> list[str]:
    section: type[BaseModel] = Language
    for key in path:
        section = next(_models_in_annotation(section.model_fields[key].annotation), section)
    return list(section.model_fields)


def _models_in_annotation(annotation: Any) -> Iterator[type[BaseModel]]:
    for one in (annotation, *get_args(annotation)):
        if isinstance(one, type) and issubclass(one, BaseModel):
            yield one

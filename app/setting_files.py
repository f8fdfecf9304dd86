"""Reads the files that settings come from. An unknown name in them is an error, and is never ignored."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import yaml
from dotenv.parser import parse_stream
from pydantic_settings import BaseSettings, DotEnvSettingsSource, EnvSettingsSource, YamlConfigSettingsSource

PREFIX: Final = "THROUGHLINE_"
"""The prefix of the service's variables."""
OTHER_VARIABLES: Final = frozenset(
    f"{PREFIX}{name}" for name in ("API_KEY", "API_KEY_FILE", "EMBEDDED", "KEY", "URL", "TESTCONTAINERS")
)
"""Variables with the prefix that are not settings: they belong to the command line, to the page's own server
(``docs/web.md``), to the processes of ``throughline run``, to clients (``docs/typescript.md``) and to the tests.
"""
NOT_UTF8: Final = "{file} is not in UTF-8: save it anew as UTF-8."

_NAMES_OF_KEYS: Final = {"GEMINI_API_KEY": "GOOGLE_API_KEY"}
"""Names that providers' own pages use for a key, and the name of the setting."""
_MISSPELLED_KEY: Final = 0.9
"""How similar a name must be to that of a key to count as misspelled: ``GOOGLE_APIKEY`` is, ``GOOGLE_MAPS_API_KEY`` is
not.
"""

# The library warns of unreadable lines, without the file and each time that it is read; here they are an error.
logging.getLogger("dotenv.main").setLevel(logging.ERROR)


class SettingFileError(ValueError):
    """A file of settings cannot be used. The message is one line and says what to correct."""


class StrictYaml(YamlConfigSettingsSource):
    """A YAML mapping of known settings, each under its field's name or its variable's in lower or upper case."""

    def __init__(self, settings_cls: type[BaseSettings]) -> None:
        # The base class reads the file in its constructor.
        self._known = _field_of_each_yaml_name(settings_cls)
        _refuse_unreadable_file(str(settings_cls.model_config.get("yaml_file")))
        super().__init__(settings_cls)

    def _read_file(self, file_path: Any) -> dict[str, Any]:
        try:
            found = super()._read_file(file_path)
            twice = _names_given_twice(Path(file_path))
        except yaml.YAMLError as error:
            raise SettingFileError(f"{file_path} is no YAML{_place_and_problem(error)}.") from error
        except UnicodeDecodeError as error:
            raise SettingFileError(NOT_UTF8.format(file=file_path)) from error
        if not isinstance(found, dict):
            raise SettingFileError(f"{file_path} must hold lines of the form `name: value`.")
        if twice:
            raise SettingFileError(f"{file_path}: {', '.join(twice)} is given twice. Remove one.")
        _refuse_unknown([str(name) for name in found if name not in self._known], self._known, str(file_path))
        return {self._known[name]: value for name, value in found.items()}


class OwnVariables(EnvSettingsSource):
    """The environment. A setting whose variable has no prefix is read only from that variable.

    Otherwise Kubernetes, for a service named throughline, would put an address of its own into THROUGHLINE_PORT.
    """

    def __call__(self) -> dict[str, Any]:
        """The values, read as the base class reads them."""
        own = {name.lower() for name in _variable_of_each_field(self.settings_cls).values()}
        prefix = self.env_prefix.lower()
        given = self.env_vars.items()
        self.env_vars = {name: value for name, value in given if name in own or not name.lower().startswith(prefix)}
        return super().__call__()


class StrictDotenv(DotEnvSettingsSource):
    """A file with variables of many programs, in which those with the prefix must be settings."""

    def __call__(self) -> dict[str, Any]:
        """The values, read as the base class reads them."""
        if self.env_file:
            _refuse_unreadable_file(str(self.env_file))
            _refuse_unreadable_lines(Path(str(self.env_file)))
        variables = _variable_of_each_field(self.settings_cls).values()
        if bare := sorted({name.upper() for name, value in self.env_vars.items() if value is None} & {*variables}):
            lines = ", ".join(f"{name}=…" for name in bare)
            raise SettingFileError(
                f"{self.env_file}: {', '.join(bare)} has no value: write {lines}, or remove the line."
            )
        known = [name for name in variables if name.startswith(self.env_prefix)]
        ours = [name.upper() for name in self.env_vars if name.upper().startswith(self.env_prefix)]
        _refuse_unknown([name for name in ours if name not in {*known, *OTHER_VARIABLES}], known, str(self.env_file))
        return super().__call__()


def unknown_variables(settings: type[BaseSettings], environment: Mapping[str, str]) -> list[str]:
    """A line for each variable of the environment that has the prefix and is no setting.

    Kubernetes sets such variables for a service that is named throughline. They are mentioned only if they resemble a
    setting.
    """
    known = list(_variable_of_each_field(settings).values())
    prefix = settings.model_config.get("env_prefix", "")
    ours = [name for name in environment if name.startswith(prefix) and name not in {*known, *OTHER_VARIABLES}]
    hints = {name: _hint_at_similar(name, known) for name in ours}
    return [
        f"{name} is no setting and is not read{hint}."
        for name, hint in hints.items()
        if hint or not _is_service_link(name)
    ]


def misnamed_keys(settings: type[BaseSettings], environment: Mapping[str, str]) -> list[str]:
    """A line for each variable, of the environment or the file of variables, with a key under a name that is not read.

    If the key is also given under its own name, there is no line: the other variable belongs to another program.
    """
    given = given_variables(settings, environment)
    missing = {name for name in _variable_of_each_field(settings).values() if name.endswith("_API_KEY")} - given
    meant = {name: _NAMES_OF_KEYS.get(name) or _nearest_name(name, missing, _MISSPELLED_KEY) for name in sorted(given)}
    return [f"{name} is not read: name the key {key}." for name, key in meant.items() if key in missing]


def given_variables(settings: type[BaseSettings], environment: Mapping[str, str]) -> set[str]:
    """The names of variables that have a value in the environment or in the file of variables."""
    in_file = {name.upper(): value for name, value in DotEnvSettingsSource(settings).env_vars.items()}
    return {name for name, value in {**in_file, **environment}.items() if value}


def misspelled(names: Iterable[str], known: Iterable[str]) -> str:
    """A text about those names that resemble a known name without being one; unrelated names are ignored."""
    listed = list(known)
    hints = {name: _hint_at_similar(name, listed) for name in names if name not in listed}
    return "; ".join(f"{name} is no setting{hint}" for name, hint in hints.items() if hint)


def variable_of(settings: type[BaseSettings], field: str) -> str:
    """The variable of the environment that sets a field; the field's own name if there is none."""
    return _variable_of_each_field(settings).get(field, field)


def _variable_of_each_field(settings: type[BaseSettings]) -> dict[str, str]:
    prefix = settings.model_config.get("env_prefix", "")
    fields = settings.model_fields.items()
    return {name: str(field.validation_alias or f"{prefix}{name.upper()}") for name, field in fields}


def _field_of_each_yaml_name(settings: type[BaseSettings]) -> dict[str, str]:
    names: dict[str, str] = {}
    for name, field in settings.model_fields.items():
        given = str(field.validation_alias or name)
        names |= dict.fromkeys((name, given, given.lower()), given)
    return names


def _is_service_link(name: str) -> bool:
    """Whether Kubernetes gives a variable of such a name to each container, for a service in its namespace."""
    is_port = name.endswith("_PORT") or name.rpartition("_PORT_")[2][:1].isdecimal()
    return is_port or name.endswith(("_SERVICE_HOST", "_SERVICE_PORT")) or "_SERVICE_PORT_" in name


def _refuse_unknown(unknown: list[str], known: Collection[str], file: str) -> None:
    if unknown:
        problems = "; ".join(f"{name} is no setting{_hint_at_similar(name, known)}" for name in unknown)
        raise SettingFileError(f"{file}: {problems}. Correct or remove it.")


def _hint_at_similar(name: str, known: Iterable[str]) -> str:
    # The common prefix of the variables must not make them resemble each other.
    by_own_part = {_without_prefix(one): one for one in known}
    near = _nearest_name(_without_prefix(name), by_own_part, 0.7)
    return f" (is {by_own_part[near]} meant?)" if near else ""


def _nearest_name(name: str, known: Iterable[str], cutoff: float) -> str | None:
    return next(iter(get_close_matches(name, known, n=1, cutoff=cutoff)), None)


def _without_prefix(name: str) -> str:
    return name.removeprefix(PREFIX)


def _refuse_unreadable_file(name: str) -> None:
    # The library silently ignores a path that it cannot read as a file.
    path = Path(name)
    if path.is_dir():
        raise SettingFileError(f"{name} is a folder, and settings are read from a file of that name: remove it.")
    if path.is_symlink() and not path.exists():
        raise SettingFileError(f"{name} is a link to a file that there is not: correct or remove it.")


def _refuse_unreadable_lines(path: Path) -> None:
    if not path.is_file():
        return
    with path.open(encoding="utf-8") as stream:
        wrong = [one.original for one in parse_stream(stream) if one.error]
    # A statement begins with the blank lines before it.
    lines = [one.line + one.string[: -len(one.string.lstrip())].count("\n") for one in wrong]
    if lines:
        named = f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}"
        raise SettingFileError(f"{path}: {named} cannot be read: write NAME=value, and close each quotation mark.")


def _names_given_twice(path: Path) -> list[str]:
    # A YAML reader silently uses the last of several values for the same key.
    node = yaml.compose(path.read_bytes(), Loader=yaml.SafeLoader)
    names = Counter(key.value for key, _ in node.value) if isinstance(node, yaml.MappingNode) else Counter[str]()
    return [name for name, count in names.items() if count > 1]


def _place_and_problem(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    what = getattr(error, "problem", None)
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return f"{where}: {what}" if what else where

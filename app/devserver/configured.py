"""Reads the settings for the command line; each wrong value is named in one line."""

from __future__ import annotations

import os
from json import JSONDecodeError

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import SettingsError

from app.devserver.errors import CannotStartError
from app.setting_files import (
    NOT_UTF8,
    SettingFileError,
    given_variables,
    misnamed_keys,
    unknown_variables,
    variable_of,
)
from app.settings import Settings

_NO_SUCH_NAME = "extra_forbidden"
_NO_NAMES_AND_VALUES = frozenset({"dict_type", "model_type"})


def read_settings() -> Settings:
    """Read the settings, or name each value that is wrong."""
    try:
        return Settings()
    except ValidationError as error:
        wrong = "; ".join(map(_setting_and_reason, error.errors()))
        raise CannotStartError(f"Settings that cannot be used: {wrong}.") from error
    except SettingFileError as error:
        raise CannotStartError(str(error)) from error
    except UnicodeDecodeError as error:  # an error of the other file is reported by its source itself
        raise CannotStartError(NOT_UTF8.format(file=Settings.model_config["env_file"])) from error
    except SettingsError as error:
        raise CannotStartError(_unreadable_json(error)) from error
    except Exception as error:
        raise CannotStartError(f"The settings cannot be read: {first_line(error)}") from error


def _setting_and_reason(wrong: ErrorDetails) -> str:
    place = ".".join((*map(_name_as_written, wrong["loc"][:1]), *map(str, wrong["loc"][1:])))
    if wrong["type"] == _NO_SUCH_NAME:
        return f"{place} is no setting"
    if wrong["type"] in _NO_NAMES_AND_VALUES:  # the library's own reason names a class
        return f"{place}: must have names and values, as in throughline.example.yaml"
    reason = wrong["msg"].removeprefix("Value error, ")
    return f"{place}: {reason}" if place else reason


def _name_as_written(field: int | str) -> str:
    variable = variable_of(Settings, str(field))
    return variable if variable in given_variables(Settings, os.environ) else str(field)


def _unreadable_json(error: SettingsError) -> str:
    field, cause = str(error).partition('field "')[2].partition('"')[0], error.__cause__
    if not field or not isinstance(cause, JSONDecodeError):
        return f"The settings cannot be read: {first_line(error)}"
    # The library names its own class instead of the variable.
    variable = variable_of(Settings, field)
    return f"{variable} is no JSON: {cause.msg} at column {cause.colno}. It is easier to write in throughline.yaml."


def suspicious_variables() -> list[str]:
    """A line for each variable that is taken for a setting and is none, or that looks like a key under another name."""
    return [*misspelled_variables(), *misnamed_keys(Settings, os.environ)]


def misspelled_variables() -> list[str]:
    """A line for each variable that is taken for a setting and is none."""
    return unknown_variables(Settings, os.environ)


def address(settings: Settings) -> str:
    """Return an address that works in a browser on this machine, whatever address the server is bound to."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - read, not bound
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the error's name."""
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__

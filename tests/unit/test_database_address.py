from __future__ import annotations

import pytest

from app.storage.database import database_address
from tests.corpus import assert_values, corpus, holds


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg"])
def test_the_usual_schemes_are_one(scheme: str) -> None:
    address = database_address(f"{scheme}://me:p%40ss@db:5433/name")
    assert address.render_as_string(hide_password=False) == "postgresql+asyncpg://me:p%40ss@db:5433/name"


def test_a_socket_folder_stays() -> None:
    address = database_address("postgres://app@/db?host=/tmp/x&port=5433")
    assert (address.host, dict(address.query)) == (None, {"host": "/tmp/x", "port": "5433"})  # noqa: S108 - a value


def test_the_word_of_other_drivers_for_encryption() -> None:
    assert dict(database_address("postgres://db/x?sslmode=require").query) == {"ssl": "require"}


def test_what_is_wrong_is_said_in_one_line_without_the_password() -> None:
    def fault(url: str) -> str:
        with pytest.raises(ValueError) as error:  # noqa: PT011 - each row says in which words
            database_address(url)
        assert "secret" not in str(error.value)
        assert "\n" not in str(error.value)
        return str(error.value)

    assert_values(corpus("database_faults"), fault, agrees=holds)

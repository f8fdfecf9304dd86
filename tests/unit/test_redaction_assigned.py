"""A named value that names a secret itself."""

from __future__ import annotations

import time

import pytest

from app.domain.fencing.redaction import redact

VALUE = "hunter2hunter2"


@pytest.mark.parametrize(
    ("before", "kind"),
    [
        ("The password is password=", "password"),
        ("password: password: ", "password"),
        ("The password is: passwd=", "password"),
        ("the token is token is token: ", "secret"),
    ],
)
def test_it_is_redacted_like_any_assignment(before: str, kind: str) -> None:
    assert redact(f"{before}{VALUE} and that is that") == f"{before}[REDACTED:{kind}] and that is that"


@pytest.mark.parametrize("before", ["Пароль это пароль=", "My secret is api_key=", "密码是password："])
def test_the_name_may_go_with_it(before: str) -> None:
    cleaned = redact(f"{before}{VALUE} and that is that")
    assert VALUE not in cleaned
    assert redact(cleaned) == cleaned


@pytest.mark.parametrize(
    "text",
    [
        "The password is password protected.",
        "password = password",
        "The token is a token: ask for one.",
        "[REDACTED:password]=[REDACTED:secret]: fine",
    ],
)
def test_what_names_no_value_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("piece", ["password=", "password is ", "pin: ", 'secret: "', "token for token is "])
def test_names_without_end_take_linear_time(piece: str) -> None:
    began = time.process_time()
    redact(piece * 20_000)
    assert time.process_time() - began < 4

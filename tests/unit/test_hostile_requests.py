"""What the event loop reads of a request before its sender is known takes linear time."""

from __future__ import annotations

from collections.abc import Callable
from http.cookies import SimpleCookie
from typing import Final

import pytest
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.requests import HTTPConnection

from app.core.model.errors import InvalidInputError, TooLargeError
from app.core.text.parts import Part
from app.http.browser.own_page import COOKIE, session_of
from app.http.browser.session import Login
from app.http.errors import validation_refusal
from app.http.requests import MessageAppend
from app.http.strict_json import is_json
from app.usecases.history.drafts import MessageDraft, refuse_long
from tests.unit.timing import assert_linear, assert_linear_in

HEADER: Final = 60_000
"""The approximate length of the longest header that a server accepts."""


def asking(cookie: str) -> HTTPConnection:
    return HTTPConnection({"type": "http", "method": "GET", "headers": [(b"cookie", cookie.encode("latin-1"))]})


@pytest.mark.parametrize("sign", ["\\", '\\"', ";", "=", " ", f"{COOKIE}=;"])
def test_cookies_take_linear_time(sign: str) -> None:
    assert_linear(lambda text: session_of(asking(f'{COOKIE}="{text}"')), sign * (HEADER // len(sign)))


@pytest.mark.parametrize("token", ["0193e000-0000-7000-8000-000000000001.tl1.a-b_c", "id.tl1.a-b_c=="])
def test_the_cookie_of_a_session_is_found_as_it_was_set(token: str) -> None:
    made = SimpleCookie({COOKIE: token})
    written = made[COOKIE].OutputString()
    for header in (written, f"theme=dark; {written}", f"{written};theme=dark", f"  {written} ; a"):
        assert session_of(asking(header)) == token
    for header in ("", "theme=dark", f"x{COOKIE}=1", f"{COOKIE}=", f'{COOKIE}=""'):
        assert session_of(asking(header)) is None


@pytest.mark.parametrize("sign", [";", '\\"', ';a="', ";charset=utf-8"])
def test_the_type_of_a_body_takes_linear_time(sign: str) -> None:
    assert_linear(lambda text: is_json(f'application/json; a="{text}'), sign * (HEADER // len(sign)))


def test_types_of_json() -> None:
    assert is_json('application/json; a="b"; charset=utf-8')
    assert not is_json("application/json; charset=utf-16")


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (Login, lambda text: {text: 1}),
        (MessageAppend, lambda text: {"role": "user", "parts": [{"type": text}]}),
    ],
    ids=["a name", "a kind"],
)
def test_what_a_refusal_quotes_is_looked_at_no_further_than_it_is_shown(
    model: type[BaseModel], body: Callable[[str], object]
) -> None:
    def refusing(size: int) -> Callable[[], object]:
        with pytest.raises(ValidationError) as caught:
            model.model_validate(body("-eyJ" * (size // 4)))
        found = [{**item, "loc": ("body", *item["loc"])} for item in caught.value.errors()]
        return lambda: validation_refusal(RequestValidationError(found), model)

    assert_linear_in(refusing, 4_000_000, most=1.5)


def test_a_secret_in_what_a_refusal_quotes_is_not_told() -> None:
    secret = "ghp_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2"
    with pytest.raises(ValidationError) as caught:
        Login.model_validate({"key": "k", f"{'x' * 280} {secret}": 1})
    refusal = validation_refusal(
        RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in caught.value.errors()])
    )
    assert isinstance(refusal, InvalidInputError)
    assert "ghp" not in refusal.errors[0].field
    assert refusal.errors[0].field.endswith("[REDACTED:github_to")


@pytest.mark.parametrize(
    ("content", "arguments", "size"),
    [
        ("", {"text": "x" * 4_000_000}, 4_000_011),
        ("x" * 2_000_000, {"text": "ü" * 1_000_000}, 4_000_011),
        ("", {f"{number:07}": number for number in range(1_000_000, 1_250_000)}, 4_500_001),
    ],
)
def test_the_arguments_of_a_call_count_among_the_bytes_of_a_message(
    content: str, arguments: dict[str, object], size: int
) -> None:
    call = {"type": "tool_call", "id": "a", "name": "write"}
    with pytest.raises(TooLargeError, match=f"the texts and arguments of the message have {size} bytes"):
        refuse_long(MessageDraft(role="assistant", content=content, parts=({**call, "arguments": arguments},)))
    refuse_long(MessageDraft(role="assistant", content=content, parts=({**call, "arguments": {"text": "x"}},)))


def test_the_labels_of_pictures_count_once_among_the_bytes_of_a_message() -> None:
    labels: list[Part] = [{"type": "text", "text": letter * 1_500_000} for letter in "ab"]
    parts = ({"type": "media", "media_type": "image/png", "data": "AAAA"}, *labels)
    content = "\n\n".join(label["text"] for label in labels)
    refuse_long(MessageDraft(role="user", content=content, parts=parts))
    with pytest.raises(TooLargeError, match="have 6000001 bytes"):
        refuse_long(MessageDraft(role="user", content=content[:-1], parts=parts))

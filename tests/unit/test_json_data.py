"""JSON in texts from outside is read in one place, however deep it is nested."""

from __future__ import annotations

import json

import pytest

from app.core.context.formats.words import arguments_of
from app.core.reading.passages import passages_of
from app.core.text.json_data import arguments_in, data_in
from tests.unit.talk import message
from tests.unit.timing import assert_linear

ENDLESS = ["[" * 100_000, '{"a":' * 100_000, "[" * 900 + "]" * 900]


@pytest.mark.parametrize("text", ENDLESS)
def test_what_is_nested_too_deep_is_no_data(text: str) -> None:
    with pytest.raises(ValueError, match="too deep"):
        data_in(text)
    assert arguments_in(text) == text
    assert arguments_of(text) == {"input": text}


def test_control_a_reader_that_calls_itself_fails() -> None:
    with pytest.raises(RecursionError):
        json.loads(ENDLESS[0])


@pytest.mark.parametrize("text", ENDLESS)
def test_a_call_with_such_arguments_is_told_and_does_not_fail(text: str) -> None:
    call = {"type": "tool_call", "id": "c", "name": "search", "arguments": text}
    (told,) = passages_of([message(1, "", "assistant", parts=[call])], "en")
    assert told.text.startswith("search(")


def test_brackets_inside_of_strings_are_no_levels() -> None:
    text = json.dumps({"told": '["' * 200, "deep": [[1]]})
    assert data_in(text) == json.loads(text)
    assert data_in("[" * 64 + "]" * 64)


@pytest.mark.parametrize(
    ("given", "expected"), [('{"a": 1}', {"a": 1}), ("", {}), (" ", {}), ("no", "no"), (None, None)]
)
def test_arguments_are_data_or_as_they_were_written(given: object, expected: object) -> None:
    assert arguments_in(given) == expected


@pytest.mark.parametrize(
    "text",
    ['{"a": "\\u0000"}', '{"\\u0000": 1}', '[{"a": "\\ud800"}]', '{"a": NaN}', '{"a": [-Infinity]}', '{"a": 1e999}'],
)
def test_arguments_that_cannot_be_stored_stay_text(text: str) -> None:
    assert arguments_in(text) == text
    assert arguments_of(text) == {"input": text}
    assert data_in(text) is not None, "control: it is read"
    assert arguments_in('{"a": "\\ud83d\\ude00", "b": 1e9}') == {"a": "😀", "b": 1e9}


@pytest.mark.parametrize("sign", ["[", '["', "\\", '"\\"', "{}"])
def test_linear_time(sign: str) -> None:
    def read(text: str) -> None:
        with pytest.raises(ValueError, match=r"."):
            data_in(text + "[")

    assert_linear(read, sign * 20_000)

"""The typed command: what counts as one, what its focus is, and that no text makes it slow to read."""

from __future__ import annotations

import time

import pytest

from app.usecases.compaction.commands import MAX_FOCUS_LENGTH, compact_command


@pytest.mark.parametrize(
    ("content", "focus"),
    [
        ("/compact", None),
        ("  /compact \n", None),
        ("/compact the harbours", "the harbours"),
        ("\t/compact\u2003 the\nharbours \n ", "the\nharbours"),
        ("/compact " + "x" * 2 * MAX_FOCUS_LENGTH, "x" * MAX_FOCUS_LENGTH),
    ],
)
def test_a_command_with_its_focus(content: str, focus: str | None) -> None:
    asked = compact_command(content)
    assert asked is not None
    assert asked.focus == focus


def test_no_half_of_a_secret_is_left_where_a_focus_is_cut() -> None:
    asked = compact_command("/compact " + "the harbours " * 76 + "ghp_" + "aB3dE5gH7j" * 4)
    assert asked is not None
    assert asked.focus is not None
    assert "ghp" not in asked.focus
    assert asked.focus.endswith("the harbours [REDACTED:gi")


@pytest.mark.parametrize(
    "content", ["", "compact", "/compactx", "/compact: x", "please /compact", "/Compact", "/ compact"]
)
def test_other_texts_are_no_command(content: str) -> None:
    assert compact_command(content) is None


@pytest.mark.parametrize(
    "content", ["/compact x" + " " * 4_000_000 + "y", " " * 4_000_000 + "/compact", "\n" * 4_000_000]
)
def test_a_text_of_the_largest_size_is_read_at_once(content: str) -> None:
    """This guards against hanging: when blanks were looked through again from each of them, it took days."""
    began = time.process_time()
    compact_command(content)
    assert time.process_time() - began < 10
